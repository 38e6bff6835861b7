"""Sluice: records from Azure Event Hubs into Azure Cosmos DB, at exactly the rate you choose."""
