"""A server that stops closes also who had just been accepted."""

import asyncio
import contextlib
import gc
import socket
import warnings

import pytest

from service.local.cosmos.server import CosmosServer
from service.local.event_hubs.server import EventHubsServer


@pytest.mark.parametrize("kind", [CosmosServer, EventHubsServer])
@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_accepted_while_the_server_stops_is_closed_by_it(kind, turns):
    server = kind()
    port = await server.start()
    connected = socket.create_connection(("127.0.0.1", port), timeout=5)
    with connected as client, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(turns):  # of the loop: the connection is in the kernel, accepted, has a transport, a protocol
            await asyncio.sleep(0)
        await server.stop()
        del server
        gc.collect()
        assert [str(each.message) for each in seen] == []
        with contextlib.suppress(ConnectionResetError):  # aborted
            assert client.recv(1) == b""
