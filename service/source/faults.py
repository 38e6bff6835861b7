"""What went wrong outside, in words a person can act on: the edge where SDK exceptions become ours.

Every sentence says what happened and what to do. None contains a key, a token or a connection string, since
only hosts, names and status codes go into them.
"""

import asyncio
import re

import structlog
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.eventhub.exceptions import AuthenticationError, EventHubError

from service.errors import Retry, SetupFault, SluiceError
from service.source.hub import Stolen

_log = structlog.get_logger()
_HIGHER_EPOCH = re.compile(r"higher epoch (?:of )?'(-?\d+)'", re.IGNORECASE)


def of_storage(error: BaseException, account: str) -> SluiceError:  # noqa: PLR0911 - a table, one sentence a row
    """A failed call to blob storage. Lost races (409, 412) are the callers' to read, before they come here."""
    match error:
        case ClientAuthenticationError():
            # The SDK keeps this class for 401; credentials that cannot get a token raise it too, without a response.
            return SetupFault(
                f"blob storage {account} does not accept our identity; check BLOB_CONNSTRING, or that the managed "
                "identity exists and AZURE_CLIENT_ID names it"
            )
        case HttpResponseError(status_code=403):
            return SetupFault(
                f"blob storage {account} refuses access (403 {_code(error)}); check the key in BLOB_CONNSTRING, or "
                "give the identity the role Storage Blob Data Contributor, and look at the account's firewall"
            )
        case HttpResponseError(status_code=404):
            return Retry(f"blob storage {account} has no such container or blob (404 {_code(error)}); it is made again")
        case HttpResponseError(status_code=int(status)) if status >= 500 or status in (408, 429):
            return Retry(f"blob storage {account} failed for now ({status} {_code(error)})", _retry_after(error))
        case HttpResponseError(status_code=status):
            return SetupFault(
                f"blob storage {account} does not take the request ({status} {_code(error)}); check that "
                "BLOB_CONTAINER is a valid name: 3 to 63 small letters, digits and hyphens"
            )
        case ServiceRequestError() | ServiceResponseError() | OSError() | asyncio.TimeoutError():
            return Retry(
                f"blob storage {account} cannot be reached; check the address in BLOB_CONNSTRING or BLOB_ACCOUNT_URL, "
                "and the network"
            )
        case _:
            return Retry(f"blob storage {account}: {type(error).__name__}")


def of_hub(error: BaseException, namespace: str, name: str) -> SluiceError:  # noqa: PLR0911 - as above
    """A failed call to Event Hubs."""
    where = f"event hub {name} at {namespace}"
    condition = str(getattr(error, "error", None) or "")
    text = str(error)
    if "link:stolen" in condition:
        named = _HIGHER_EPOCH.search(text)
        return Stolen(f"{where}: another receiver has the partition", int(named.group(1)) if named else None)
    if (
        isinstance(error, AuthenticationError | ClientAuthenticationError)
        or "unauthorized" in (condition + text).lower()
    ):
        return SetupFault(
            f"{where} does not accept our identity or key, or there is no such hub (the SDK does not tell which); "
            "check EVENTHUB_CONNSTRING and EVENTHUB_NAME, or give the identity the role Azure Event Hubs Data Receiver"
        )
    if "not-found" in condition or "404" in text:
        return SetupFault(
            f"{where}: the hub or the consumer group does not exist; check EVENTHUB_NAME and EVENTHUB_CONSUMERGROUP"
        )
    if "resource-limit-exceeded" in condition:
        return SetupFault(f"{where}: too many receivers or connections; give this service a consumer group of its own")
    if "server-busy" in condition or "timeout" in condition:
        return Retry(f"{where} is busy for now", 4.0)  # the wait the service itself asks for in its server-busy text
    if isinstance(error, asyncio.TimeoutError):
        return Retry(
            f"{where} does not answer in time; check the network, and that EVENTHUB_CONSUMERGROUP exists (where it "
            "does not, the SDK keeps the refusal to itself)"
        )
    if isinstance(error, EventHubError | OSError):
        return Retry(f"{where} cannot be reached or closed the connection ({condition or type(error).__name__})")
    return Retry(f"{where}: {type(error).__name__}")


class Faults:
    """The faults that stand now, each logged once when it comes, changes or goes, however many partitions have it."""

    def __init__(self, host: str) -> None:
        self._log = _log.bind(host=host)
        self._standing: dict[tuple[str, str], str] = {}
        """By where ("storage", "hub", "receiver") and whose (a partition's, or nobody's in particular)."""
        self.last = ""
        """The latest fault's sentence, kept after it has gone."""

    def raised(self, where: str, error: SluiceError, whose: str = "") -> None:
        """`where` answers with this error now."""
        text = str(error)
        known = text in self._sentences(where)
        self._standing[where, whose] = self.last = text
        if not known:
            self._log.warning("fault", where=where, fault=text, retry=True)

    def cleared(self, where: str, whose: str = "") -> None:
        """`where` answers well."""
        if self._standing.pop((where, whose), None) is not None and not self._sentences(where):
            self._log.info("fault is over", where=where)

    def standing(self, where: str) -> str:
        """The sentence of a standing fault; empty where there is none."""
        return next(iter(self._sentences(where)), "")

    def _sentences(self, where: str) -> list[str]:
        return [text for (place, _), text in self._standing.items() if place == where]


def backoff(attempt: int, jitter: float, *, first: float = 0.5, most: float = 30.0) -> float:
    """Seconds before try number `attempt` (from 0): doubling up to `most`, then spread by `jitter` in [0, 1)."""
    return float(min(most, first * 2 ** min(attempt, 16))) * (0.5 + jitter / 2)


def _code(error: HttpResponseError) -> str:
    """Storage's own word for the error."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or error.reason or "").strip()


def _retry_after(error: HttpResponseError) -> float | None:
    """What the service asks us to wait."""
    value = getattr(error.response, "headers", {}).get("Retry-After")
    return float(value) if value and value.isdecimal() else None
