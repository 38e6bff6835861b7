"""Where events come from: Capture files, a hub's retained range, JSON lines and Parquet, dead letters."""
