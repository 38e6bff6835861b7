"""The errors of the service: a status, a sub-status and the words that go with them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# The `code` of an error body, by status: the REST reference, "HTTP status codes for Azure Cosmos DB".
CODES: Final = MappingProxyType(
    {
        400: "BadRequest",
        401: "Unauthorized",
        403: "Forbidden",
        404: "NotFound",
        405: "MethodNotAllowed",
        408: "RequestTimeout",
        409: "Conflict",
        410: "Gone",
        412: "PreconditionFailed",
        413: "RequestEntityTooLarge",
        424: "FailedDependency",
        429: "429",
        449: "RetryWith",
        500: "InternalServerError",
        503: "ServiceUnavailable",
    }
)

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class CosmosError(Exception):
    """A refusal, as the client gets it."""

    def __init__(
        self,
        status: int,
        message: str,
        sub_status: int = 0,
        headers: Mapping[str, str] = NO_HEADERS,
        charge: float = 0.0,
    ) -> None:
        super().__init__(f"{status}/{sub_status}: {message}")
        self.status = status
        self.sub_status = sub_status
        self.message = message
        self.headers = headers
        self.charge = charge
        self.info: str | None = None
        """More for the client's code, which stands in the body as `additionalErrorInfo`."""

    @property
    def code(self) -> str:
        """The word for the status that stands in the body."""
        return CODES.get(self.status, str(self.status))


class BadRequest(CosmosError):
    """400: the request itself is wrong; the same one will never succeed."""

    def __init__(self, message: str, sub_status: int = 0, info: str | None = None) -> None:
        super().__init__(400, message, sub_status)
        self.info = info


class NotFound(CosmosError):
    """404: nothing of that name."""

    def __init__(self, message: str = "Resource Not Found.", sub_status: int = 0, charge: float = 0.0) -> None:
        super().__init__(404, message, sub_status, charge=charge)


class Conflict(CosmosError):
    """409: something of that name, or with that unique key, is there."""

    def __init__(self, message: str, charge: float = 0.0) -> None:
        super().__init__(409, message, charge=charge)


class PreconditionFailed(CosmosError):
    """412: If-Match, or the condition of a patch, does not hold."""

    def __init__(self, message: str, charge: float = 0.0) -> None:
        super().__init__(412, message, charge=charge)


class Gone(CosmosError):
    """410/1002: that range was split away; read the ranges again."""

    def __init__(self, range_id: str) -> None:
        super().__init__(410, f"The requested resource is no longer available: partition key range {range_id}.", 1002)


class Throttled(CosmosError):
    """429/3200: the range has spent its share of this second."""

    def __init__(self, retry_after_ms: int, charge: float = 0.0) -> None:
        super().__init__(
            429,
            "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this "
            "request later.",
            3200,
            {"x-ms-retry-after-ms": str(retry_after_ms)},
            charge,
        )
        self.retry_after_ms = retry_after_ms
