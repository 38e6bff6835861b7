"""A token issuer for tests: it signs the bearer tokens that the local endpoints accept, and checks them.

It stands in for Microsoft Entra ID. Tokens are JWTs (RFC 7519) signed with RS256 (RFC 7518, 3.3) by a key that lives
as long as the object. Claims are those of a v1.0 access token, because Azurite's `--oauth basic` wants an issuer of
the form `https://sts.windows.net/<tenant>/`. There is no discovery document and no key endpoint: servers that check
tokens are handed the issuer itself.
"""

import base64
import binascii
import time
import uuid
from collections.abc import Collection

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLOCK_SKEW_SECONDS = 0.0
"""How far a token may lie outside its times. Entra ID's libraries allow 300 s; tests want the edge itself."""

_MAX_TOKEN_CHARACTERS = 64 * 1024


class TokenRejected(Exception):
    """A token that does not hold; `reason` says why, in words for the client's error."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TokenIssuer:
    """Signs tokens, and verifies that a token is its own, is meant for an audience, and is in its time."""

    def __init__(self, issuer: str | None = None) -> None:
        self.tenant = str(uuid.uuid4())
        self.issuer = issuer or f"https://sts.windows.net/{self.tenant}/"
        self._object_id = str(uuid.uuid4())
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._header = {"typ": "JWT", "alg": "RS256", "kid": uuid.uuid4().hex}

    def issue(self, audience: str, lifetime_seconds: float = 3600, **claims: object) -> str:
        """A token for `audience`, valid from now; extra claims are added or take the place of the standard ones."""
        now = time.time()
        body: dict[str, object] = {
            "aud": audience,
            "iss": self.issuer,
            "iat": int(now),
            "nbf": int(now),
            "exp": now + lifetime_seconds if lifetime_seconds % 1 else int(now + lifetime_seconds),
            "oid": self._object_id,
            "sub": self._object_id,
            "tid": self.tenant,
            "ver": "1.0",
        } | claims
        signed = f"{_encode(orjson.dumps(self._header))}.{_encode(orjson.dumps(body))}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encode(signature)}"

    def verify(self, token: str, audience: str | Collection[str], now: float | None = None) -> dict[str, object]:
        """The claims of a token that holds, or TokenRejected. A trailing `/` of an audience does not count."""
        if len(token) > _MAX_TOKEN_CHARACTERS:
            raise TokenRejected("The token is too long.")
        signed, _, signature = token.rpartition(".")
        try:
            header, claims = (orjson.loads(_decode(part)) for part in signed.split("."))
            self._key.public_key().verify(_decode(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            raise TokenRejected("The token's signature is not valid.") from None
        except (ValueError, UnicodeError):
            raise TokenRejected("The token is malformed.") from None
        if not isinstance(header, dict) or not isinstance(claims, dict) or header.get("alg") != "RS256":
            raise TokenRejected("The token is malformed.")
        wanted = {audience} if isinstance(audience, str) else audience
        self._check_claims(claims, {one.rstrip("/") for one in wanted}, time.time() if now is None else now)
        return claims

    def public_key_pem(self) -> bytes:
        """The key that verifies this issuer's signatures, for programs that check tokens themselves."""
        return self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def _check_claims(self, claims: dict[str, object], audiences: set[str], now: float) -> None:
        expires, begins = claims.get("exp"), claims.get("nbf", 0)
        if claims.get("iss") != self.issuer:
            raise TokenRejected("The token's issuer is not known.")
        if str(claims.get("aud")).rstrip("/") not in audiences:
            raise TokenRejected(f"The token's audience {claims.get('aud')!r} is not valid here.")
        if not isinstance(expires, int | float) or not isinstance(begins, int | float):
            raise TokenRejected("The token's times are malformed.")
        if expires + CLOCK_SKEW_SECONDS <= now:
            raise TokenRejected("The token has expired.")
        if begins - CLOCK_SKEW_SECONDS > now:
            raise TokenRejected("The token is not valid yet.")


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars="-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
