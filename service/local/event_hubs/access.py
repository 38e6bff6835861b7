"""Who may use what: shared access signatures, bearer tokens, and what a connection has been granted.

Sources: "Authenticate access with shared access signatures" and the CBS section of the "AMQP 1.0 protocol guide" of
the Service Bus documentation; the texts of refusals as clients of the service have logged them.
"""

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping
from urllib.parse import quote_plus, unquote

from service.amqp.errors import UNAUTHORIZED_ACCESS, AmqpError
from service.local.tokens import TokenIssuer, TokenRejected

DEFAULT_KEY_NAME = "RootManageSharedAccessKey"
DEFAULT_KEY = "SAS_KEY_VALUE"
"""The key of Microsoft's own Event Hubs emulator: published, no secret."""

BEARER_AUDIENCE = "https://eventhubs.azure.net"
"""What a token for Event Hubs is issued for (SDK: `_constants.JWT_TOKEN_SCOPE`, without `/.default`)."""

MAX_GRANTS = 1024
"""Resources that one connection may hold tokens for."""


class Unauthorized(Exception):
    """A token that is refused; the text goes to the client with status 401."""


class Access:
    """Checks what clients show: SAS tokens, keys, and bearer tokens if there is an issuer to check them with."""

    def __init__(
        self,
        keys: Mapping[str, str] | None = None,
        issuer: TokenIssuer | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.keys = dict(keys) if keys is not None else {DEFAULT_KEY_NAME: DEFAULT_KEY}
        self.issuer = issuer
        self.clock = clock

    def check_key(self, name: str, key: str) -> bool:
        """Whether `key` is that of `name`, as SASL PLAIN shows them."""
        known = self.keys.get(name)
        return known is not None and hmac.compare_digest(known.encode(), key.encode())

    def check_sas(self, token: str, resource: str) -> float:
        """When a shared access signature that covers `resource` expires; Unauthorized if it does not hold."""
        kind, _, rest = token.partition(" ")
        parts = dict(re.findall(r"(sr|sig|se|skn)=([^&]*)", rest))
        if kind != "SharedAccessSignature" or len(parts) != 4:
            raise Unauthorized("MalformedToken: The token is malformed.")
        key = self.keys.get(unquote(parts["skn"]))
        if key is None or not hmac.compare_digest(_signature(key, parts["sr"], parts["se"]), unquote(parts["sig"])):
            raise Unauthorized("InvalidSignature: The token has an invalid signature.")
        if not covers(resource_path(unquote(parts["sr"])), resource):
            raise Unauthorized("InvalidAudience: The authorization header contains a token for another resource.")
        expires = float(parts["se"]) if parts["se"].isdecimal() and len(parts["se"]) < 16 else 0.0
        if expires <= self.clock():
            raise Unauthorized("ExpiredToken: The token is expired.")
        return expires

    def check_bearer(self, token: str) -> float:
        """When a bearer token expires; Unauthorized if it does not hold."""
        if self.issuer is None:
            raise Unauthorized("InvalidIssuer: Token issuer is invalid.")
        try:
            claims = self.issuer.verify(token, BEARER_AUDIENCE, now=self.clock())
        except TokenRejected as rejected:
            raise Unauthorized(f"InvalidToken: {rejected.reason}") from None
        expires = claims["exp"]
        return float(expires) if isinstance(expires, int | float) else 0.0


class Grants:
    """What one connection may use, and until when."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def grant(self, resource: str, until: float) -> None:
        """Adds or renews the right to a resource and what lies under it; `""` is everything."""
        if len(self._until) >= MAX_GRANTS and resource not in self._until:
            raise Unauthorized("Too many tokens on one connection.")
        self._until[resource] = until

    def allows(self, resource: str) -> bool:
        """Whether a grant that has not expired covers the resource."""
        now = self._clock()
        return any(until > now and covers(granted, resource) for granted, until in self._until.items())

    def check(self, resource: str) -> None:
        """AmqpError unless the resource is allowed."""
        if not self.allows(resource):
            raise AmqpError(
                "Unauthorized access. Put a valid token for this resource to $cbs before the link is attached. "
                f"Resource: '{resource[:200]}'.",
                UNAUTHORIZED_ACCESS,
            )

    def next_expiry(self) -> float | None:
        """When the next grant ends; those that have ended are forgotten."""
        now = self._clock()
        self._until = {granted: until for granted, until in self._until.items() if until > now}
        finite = [until for until in self._until.values() if until != float("inf")]
        return min(finite, default=None)


def resource_path(address: str) -> str:
    """The path of an address such as `sb://host:port/hub/Partitions/0`, in lower case and without host."""
    return re.sub(r"^[a-z]+://[^/]*", "", address.strip(), flags=re.IGNORECASE).strip("/").lower()


def covers(granted: str, resource: str) -> bool:
    """Whether the right to one path is also a right to the other: to itself and to what lies under it."""
    return granted in ("", resource) or resource.startswith(granted + "/")


def sas_token(resource: str, key_name: str, key: str, expires: float) -> str:
    """A shared access signature, as clients make it."""
    quoted, until = quote_plus(resource), str(int(expires))
    signature = quote_plus(_signature(key, quoted, until))
    return f"SharedAccessSignature sr={quoted}&sig={signature}&se={until}&skn={quote_plus(key_name)}"


def _signature(key: str, resource: str, expires: str) -> str:
    digest = hmac.new(key.encode(), f"{resource}\n{expires}".encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()
