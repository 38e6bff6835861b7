"""A set-up that is wrong: said clearly, no dead letter, and it goes on by itself once it is mended."""

import asyncio
import time

import pytest
from azure.core.credentials import AccessToken

from service.errors import SetupFault
from service.local.certificates import make_certificate
from service.local.cosmos.auth import Authorizer
from service.local.cosmos.server import CosmosServer
from service.local.tokens import TokenIssuer
from service.sink.cosmos import CosmosAccess, CosmosContainer
from service.sink.outcome import Outcome
from tests.integration.sink.conftest import connected
from tests.simulation.sink.parts import MemoryBox

OTHER_KEY = "b3RoZXIga2V5IGZvciB0ZXN0cw=="


async def refused(access: CosmosAccess) -> str:
    container = CosmosContainer(access)
    try:
        with pytest.raises(SetupFault) as fault:
            await container.describe()
    finally:
        await container.close()
    return str(fault.value)


async def test_at_the_start_each_fault_is_said_clearly_and_without_the_key(server, items):
    host = server.endpoint
    assert "refuses the key" in await refused(CosmosAccess(host, OTHER_KEY, "db", "items"))
    assert "has no container nope in database db" in await refused(CosmosAccess(host, server.key, "db", "nope"))
    assert "has no container items in database nope" in await refused(CosmosAccess(host, server.key, "nope", "items"))
    away = await refused(CosmosAccess("http://127.0.0.1:9/", server.key, "db", "items"))
    assert "cannot be reached" in away
    assert server.key not in away
    assert server.key not in repr(CosmosAccess(host, server.key, "db", "items"))
    with pytest.raises(ValueError, match="AccountEndpoint=") as fault:
        CosmosAccess.from_connection_string("AccountKey=secret", "db", "items")
    assert "secret" not in str(fault.value)


async def until(condition) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the sink's figures have no event
            await asyncio.sleep(0.02)


async def test_a_key_that_is_changed_under_the_running_sink(server, items, connect):
    box = MemoryBox()
    async with connect(box=box) as feeder:
        feeder.feed({"id": "a", "key": "k"})
        await feeder.drain()
        right = server._authorizer
        server._authorizer = Authorizer(OTHER_KEY, None, time.time)
        feeder.feed({"id": "b", "key": "k"})
        await until(lambda: "refuses the key" in (feeder.sink.statistics().fault or ""))
        server._authorizer = right
        await feeder.drain()
        assert feeder.sink.statistics().fault is None
        assert items.count() == 2
    assert box.letters == []


async def test_a_container_that_is_deleted_and_created_again(server, items, connect):
    box = MemoryBox()
    async with connect(box=box) as feeder:
        feeder.feed({"id": "a", "key": "k"})
        await feeder.drain()
        server.account.delete_container(server.account.database("db"), "items")
        later = [feeder.feed({"id": f"b{n}", "key": f"k{n}"}) for n in range(300)]
        await until(lambda: "has no container" in (feeder.sink.statistics().fault or ""))
        again = server.add_container("db", "items", partition_key="/key", ranges=2)
        await feeder.drain(later)
        assert again.count() == 300
        assert feeder.sink.statistics().fault is None
        assert feeder.sink.statistics().ranges == 2
    assert box.letters == []


async def test_a_container_that_is_replaced_at_once(server, items, connect):
    box = MemoryBox()
    async with connect(box=box) as feeder:
        feeder.feed({"id": "a", "key": "k"})
        await feeder.drain()
        server.account.delete_container(server.account.database("db"), "items")
        again = server.add_container("db", "items", partition_key="/key", ranges=3)
        later = [feeder.feed({"id": f"b{n}", "key": f"k{n}"}) for n in range(300)]
        await feeder.drain(later)
        assert again.count() == 300
    assert box.letters == []


async def test_a_container_that_comes_back_with_another_partition_key(server, items, connect):
    box = MemoryBox()
    async with connect(box=box) as feeder:
        server.account.delete_container(server.account.database("db"), "items")
        server.add_container("db", "items", partition_key="/tenant")
        item = feeder.feed({"id": "a", "key": "k"})
        await until(lambda: "/tenant now" in (feeder.sink.statistics().fault or ""))
        assert item.outcomes == []
    assert box.letters == []


async def test_a_server_that_goes_away_and_comes_back(server, items, connect):
    async with connect() as feeder:
        feeder.feed({"id": "a", "key": "k"})
        await feeder.drain()
        port = server._listener.port
        await server.stop()
        item = feeder.feed({"id": "b", "key": "k"})
        await asyncio.sleep(0.5)
        assert item.outcomes == []
        await server.start(port=port)
        await feeder.drain()
        assert items.count() == 2


class Identity:
    """A managed identity, as far as the SDK looks at it."""

    def __init__(self, issuer: TokenIssuer) -> None:
        self.issuer = issuer
        self.lifetime = 3600.0
        self.asked = 0

    async def get_token(self, *scopes: str, **_: object) -> AccessToken:
        self.asked += 1
        audience = scopes[0].removesuffix("/.default")
        return AccessToken(self.issuer.issue(audience, self.lifetime), int(time.time() + max(self.lifetime, 1)))

    async def close(self) -> None:
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


async def test_tokens_of_an_identity_and_one_that_has_expired(tmp_path):
    issuer, box = TokenIssuer(), MemoryBox()
    identity = Identity(issuer)
    context = make_certificate(tmp_path).server_context()
    async with CosmosServer(ssl_context=context, issuer=issuer) as server:
        items = server.add_container("db", "items", partition_key="/key", ranges=2)
        access = CosmosAccess(server.endpoint, identity, "db", "items")
        async with connected(access, box=box) as feeder:
            feeder.feed({"id": "a", "key": "k"})
            await feeder.drain()
            assert identity.asked >= 1
            server._authorizer = Authorizer(server.key, TokenIssuer(), time.time)  # no token is good any more
            feeder.feed({"id": "b", "key": "k"})
            await until(lambda: "refuses the key or token" in (feeder.sink.statistics().fault or ""))
            server._authorizer = Authorizer(server.key, issuer, time.time)
            await feeder.drain()
            assert feeder.outcomes() == {Outcome.COMMITTED: 2}
            assert items.count() == 2
    assert box.letters == []
