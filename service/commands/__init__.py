"""The commands of `sluice`, one module a group. Each command is a few lines that call the module doing the work."""
