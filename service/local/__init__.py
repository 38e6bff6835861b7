"""The local stack: Event Hubs, Cosmos and Azurite on loopback."""
