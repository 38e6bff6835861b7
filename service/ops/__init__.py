"""What people and platforms see: telemetry, logs, ops pages, admin commands."""
