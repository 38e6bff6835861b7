"""The sink: records, their order, and bulk writes into Cosmos."""
