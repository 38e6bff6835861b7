"""The flow between source and sink: slots, WorkLists, backlog, checkpoints. Knows neither Event Hubs nor Cosmos."""
