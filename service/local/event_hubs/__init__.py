"""A local Event Hubs namespace that speaks AMQP 1.0, so that Microsoft's own SDKs of any language are its clients.

What it does follows the documentation, the SDKs' sources, or traces and error texts that users of the real service
have published; the places name them. `server.EventHubsServer` is the way in.
"""
