"""A client of the protocol itself: signed requests and raw sockets, for what no SDK would send."""

import base64
import hmac
from contextlib import asynccontextmanager
from email.utils import formatdate
from hashlib import sha256
from io import BytesIO
from urllib.parse import quote

import aiohttp
import orjson


class Raw:
    """Sends requests to one container of a server."""

    def __init__(self, server, session, database="db", container="items"):
        self._server = server
        self._session = session
        self.link = f"dbs/{database}/colls/{container}"

    def headers(self, method, kind, link):
        date = formatdate(usegmt=True)
        text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
        digest = hmac.new(base64.b64decode(self._server.key), text.encode(), sha256).digest()
        token = f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}"
        return {"x-ms-date": date, "authorization": quote(token, safe=""), "x-ms-version": "2020-07-15"}

    async def send(self, method, path, kind, link, body=b"", **headers):
        """Status, headers and parsed body of the answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        signed = self.headers(method, kind, link) | named
        async with self._session.request(
            method, self._server.endpoint + path, headers=signed, data=BytesIO(body)
        ) as answer:
            raw = await answer.read()
            return answer.status, answer.headers, orjson.loads(raw) if raw else None

    async def post(self, body, **headers):
        """A POST to `docs`."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        return await self.send("POST", f"{self.link}/docs", "docs", self.link, data, **headers)

    async def bulk(self, range_id, operations, **headers):
        """A bulk request as the JS SDK sends it."""
        marks = {
            "x-ms-cosmos-is-batch-request": "true",
            "x-ms-cosmos-batch-atomic": "false",
            "x-ms-cosmos-batch-continue-on-error": "true",
            "x-ms-documentdb-partitionkeyrangeid": range_id,
        }
        return await self.post(operations, **(marks | headers))


def upsert(number, key, **more):
    return {
        "operationType": "Upsert",
        "partitionKey": f'["{key}"]',
        "resourceBody": {"id": f"doc-{number}", "key": key, **more},
    }


@asynccontextmanager
async def raw_client(server, **names):
    async with aiohttp.ClientSession() as session:
        yield Raw(server, session, **names)
