"""The certificates that our clients trust, read once: azure-core reads a file of them at every request, for 30 ms."""

import ssl
from typing import Any

import aiohttp
import certifi
from azure.core.pipeline.transport import AioHttpTransport


def trusted(ca_file: str) -> ssl.SSLContext:
    """What a client trusts: this file's certificates, or the system's and certifi's where none is named."""
    context = ssl.create_default_context(cafile=ca_file or None)
    if not ca_file:
        context.load_verify_locations(certifi.where())
    return context


def trusting(ca_file: str) -> dict[str, Any]:
    """Options of a storage client that trusts the certificates in this file; none where no file is named."""
    return {"transport": _Transport(trusted(ca_file))} if ca_file else {}


class _Transport(AioHttpTransport):  # type: ignore[misc]
    """azure-core's own, on a session that has the certificates."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self._context = context
        self._opened = False

    async def open(self) -> None:
        """Make the session here and not before, since it belongs to the running loop."""
        if not self._opened:
            self._opened = True
            self.session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._context),
                trust_env=True,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        await super().open()
