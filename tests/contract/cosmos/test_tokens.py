"""TLS and bearer tokens: accepted, refused, and refreshed in the middle of a run."""

import asyncio
import time

import pytest
from azure.core.credentials import AccessToken
from azure.cosmos import exceptions
from azure.cosmos.aio import CosmosClient

from service.local.certificates import make_certificate
from service.local.cosmos.server import CosmosServer
from service.local.tokens import TokenIssuer


class Credential:
    """Gives tokens of the issuer for an audience, each good for `lifetime` seconds."""

    def __init__(self, issuer, audience=None, lifetime=3600.0):
        self.issuer, self.audience, self.lifetime = issuer, audience, lifetime
        self.given = 0

    async def get_token(self, *scopes, **_):
        self.given += 1
        audience = self.audience or scopes[0].removesuffix("/.default")
        return AccessToken(self.issuer.issue(audience, self.lifetime), int(time.time() + self.lifetime))

    async def close(self):
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass


@pytest.fixture(scope="module")
def issuer():
    return TokenIssuer()


@pytest.fixture
async def secure(issuer, tmp_path):
    made = make_certificate(tmp_path)
    async with CosmosServer(ssl_context=made.server_context(), issuer=issuer) as server:
        server.add_container("db", "items", partition_key="/key")
        yield server


async def refusal(server, credential):
    client = CosmosClient(server.endpoint, credential)
    with pytest.raises(exceptions.CosmosHttpResponseError) as caught:
        await client.__aenter__()
    await client.close()
    return caught.value


async def test_the_master_key_works_over_tls(secure):
    async with CosmosClient(secure.endpoint, secure.key) as client:
        items = client.get_database_client("db").get_container_client("items")
        await items.upsert_item({"id": "a", "key": "k"})
    assert secure.container("db", "items").count() == 1


@pytest.mark.parametrize("audience", [None, "https://cosmos.azure.com", "https://127.0.0.1/"])
async def test_a_token_for_this_endpoint_or_for_cosmos_is_accepted(secure, issuer, audience):
    async with CosmosClient(secure.endpoint, Credential(issuer, audience)) as client:
        items = client.get_database_client("db").get_container_client("items")
        await items.upsert_item({"id": "a", "key": "k"})
        assert (await items.read_item("a", "k"))["id"] == "a"


async def test_a_token_for_another_audience_is_401(secure, issuer):
    assert (await refusal(secure, Credential(issuer, "https://vault.azure.net"))).status_code == 401


async def test_an_expired_token_is_401(secure, issuer):
    assert (await refusal(secure, Credential(issuer, lifetime=-10))).status_code == 401


async def test_a_token_of_another_issuer_is_401(secure):
    assert (await refusal(secure, Credential(TokenIssuer()))).status_code == 401


async def test_a_token_that_runs_out_is_refreshed_in_the_middle_of_a_run(secure, issuer):
    credential = Credential(issuer, lifetime=1.2)
    async with CosmosClient(secure.endpoint, credential) as client:
        items = client.get_database_client("db").get_container_client("items")
        for number in range(4):
            await items.upsert_item({"id": str(number), "key": "k"})
            await asyncio.sleep(0.5)
    assert secure.container("db", "items").count() == 4
    assert credential.given > 1
