"""The source: Event Hubs, and the leases and checkpoints kept in blob storage."""
