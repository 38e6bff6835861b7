"""A Cosmos DB (NoSQL) endpoint on loopback that speaks REST to the real SDKs."""
