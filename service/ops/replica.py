"""A running replica, asked over its ops pages from another process on the same machine."""

import urllib.error
import urllib.request
from typing import Any

import orjson

from service.config import Settings

ANSWER_SECONDS = 5


def address(settings: Settings) -> str:
    """Where the replica of these settings listens."""
    # A server that listens everywhere is asked here.
    host = "127.0.0.1" if settings.http_host == "0.0.0.0" else settings.http_host  # noqa: S104 - compared, not bound
    return f"http://{host}:{settings.http_port}"


def fetch_status(at: str) -> dict[str, Any] | None:
    """What `/status` says there; None where nobody answers."""
    try:
        with urllib.request.urlopen(f"{at}/status", timeout=ANSWER_SECONDS) as answer:  # noqa: S310 - the operator's own
            found: dict[str, Any] = orjson.loads(answer.read())
            return found
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None
