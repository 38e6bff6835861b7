"""Who may ask: the master key's signature, or a bearer token over TLS.

"Access control in the Azure Cosmos DB SQL API" (REST): `type=master&ver=1.0&sig=..` is an HMAC-SHA256 over verb,
resource type, resource link and date; `type=aad&ver=1.0&sig=<token>` carries a token of Microsoft Entra ID.
"""

import base64
import hmac
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from hashlib import sha256
from typing import Final, Protocol
from urllib.parse import unquote

from service.local.cosmos.errors import CosmosError
from service.local.cosmos.wire import Request

EMULATOR_KEY: Final = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
CLOCK_SKEW_SECONDS: Final = 15 * 60  # the service's own tolerance
MAX_ACCEPTED: Final = 1000
TYPES: Final = frozenset(
    {
        "dbs",
        "colls",
        "docs",
        "pkranges",
        "offers",
        "operations",
        "users",
        "sprocs",
        "udfs",
        "triggers",
        "conflicts",
        "permissions",
    }
)


class Verifier(Protocol):
    """What checks bearer tokens: `service.local.tokens.TokenIssuer`."""

    def verify(self, token: str, audience: str | Collection[str], now: float | None = None) -> dict[str, object]:
        """The claims, or an exception that says why not."""
        ...


@dataclass(slots=True)
class Authorizer:
    """Lets a request pass, or raises the service's 401."""

    key: str
    issuer: Verifier | None
    now: Callable[[], float]

    _hmac: hmac.HMAC = field(init=False)
    _accepted: set[tuple[str, ...]] = field(init=False, default_factory=set)
    """Signatures that were right, with all that they cover: clients may send one several times."""

    def __post_init__(self) -> None:
        self._hmac = hmac.new(base64.b64decode(self.key), digestmod=sha256)

    def check(self, request: Request) -> None:
        """Raise 401 unless the request may pass."""
        given = request.header("authorization")
        if not given:
            raise _refused("Required Header authorization is missing. Ensure a valid Authorization token is passed.")
        # The signature is the last field, and taken as it is: base64 has `=` and `+`.
        fields, _, signature = unquote(given).partition("sig=")
        if "type=master" in fields.split("&"):
            self._check_master(request, signature)
        elif "type=aad" in fields.split("&"):
            self._check_token(request, signature)
        else:
            raise _refused("The authorization token is not of a type that is known here: master or aad.")

    def _check_master(self, request: Request, signature: str) -> None:
        date = request.header("x-ms-date") or request.header("date") or ""
        try:
            age = self.now() - _timestamp(date)
        except (TypeError, ValueError) as error:
            raise _refused("The date header (x-ms-date) is missing or invalid.") from error
        if abs(age) > CLOCK_SKEW_SECONDS:
            raise CosmosError(403, "The authorization token is not valid at the current time.")
        signed = (signature, request.method, date, *request.path)
        if signed in self._accepted:
            return
        for link in _links(request):
            text = f"{request.method}\n{link[0]}\n".lower() + f"{link[1]}\n"
            text += f"{request.header('x-ms-date', '')}\n".lower()
            text += "\n" if request.header("x-ms-date") else f"{request.header('date', '')}\n".lower()
            digest = self._hmac.copy()
            digest.update(text.encode())
            if hmac.compare_digest(base64.b64encode(digest.digest()), signature.encode()):
                self._remember(signed)
                return
        raise _refused(
            "The input authorization token can't serve the request. The wrong key is being used, or the expected "
            "payload is not built as per the protocol."
        )

    def _remember(self, signed: tuple[str, ...]) -> None:
        if len(self._accepted) >= MAX_ACCEPTED:
            self._accepted.clear()
        self._accepted.add(signed)

    def _check_token(self, request: Request, token: str) -> None:
        if not request.secure or self.issuer is None:
            raise _refused("Bearer tokens are taken over TLS only, and only if the server has an issuer to check them.")
        host = request.base_url.rstrip("/")
        bare = host.rpartition(":")[0] if host.count(":") > 1 else host
        try:
            self.issuer.verify(token, {host, bare, "https://cosmos.azure.com"})
        except Exception as error:
            raise _refused(f"The bearer token was not accepted: {error}") from error


@lru_cache(maxsize=64)
def _timestamp(date: str) -> float:
    """The time that a date of RFC 1123 says; many requests come with the same."""
    return parsedate_to_datetime(date).timestamp()


def _links(request: Request) -> list[tuple[str, str]]:
    """Resource type and link that the signature covers: the resource, or for a feed its parent.

    Links by resource id are signed with the id alone, in lower case.
    """
    path = request.path
    if not path:
        return [("", "")]
    if path[-1] == "partitionkeydelete":
        link = "/".join(path[:-2])
        return [("partitionkey", link), ("colls", link)]  # azure-cosmos signs the second
    feed = len(path) % 2 == 1
    kind, owner = (path[-1], path[:-1]) if feed else (path[-2], path)
    if kind not in TYPES:
        return [(kind, "/".join(path))]
    link = "/".join(owner)
    return [(kind, link), (kind, owner[-1].lower() if owner else "")]


def _refused(message: str) -> CosmosError:
    return CosmosError(401, message)
