"""Requests and answers, free of any HTTP library."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, overload

import orjson

from service.local.cosmos.errors import BadRequest, CosmosError

SUPPORTED_VERSION: Final = "2020-07-15"


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its path cut at the slashes and decoded, its headers by any case of their names, its body whole."""

    method: str
    path: tuple[str, ...]
    headers: Mapping[str, str]
    body: bytes
    base_url: str
    """How the client reached us: what the account says its endpoint is."""
    secure: bool = False

    @overload
    def header(self, name: str) -> str | None: ...
    @overload
    def header(self, name: str, default: str) -> str: ...
    def header(self, name: str, default: str | None = None) -> str | None:
        """The value of a header."""
        return self.headers.get(name, default)

    def flag(self, name: str) -> bool:
        """Whether a header says true; SDKs write it in either case."""
        return self.headers.get(name, "").lower() == "true"

    @property
    def range_id(self) -> str | None:
        """The range that it names; SDKs may put the container's resource id and a comma before it."""
        named = self.headers.get("x-ms-documentdb-partitionkeyrangeid")
        return None if named is None else named.rpartition(",")[2]

    @property
    def is_query(self) -> bool:
        """Whether a POST is a question rather than something to create."""
        return self.flag("x-ms-documentdb-isquery") or "query+json" in self.headers.get("content-type", "")


@dataclass(frozen=True, slots=True)
class Response:
    """An answer; `charge` becomes a header."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    charge: float = 1.0


def parse_json(body: bytes) -> Any:  # noqa: ANN401 - JSON is anything
    """The JSON in a body, or the error that the service has for bytes that are none."""
    try:
        return orjson.loads(body)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise BadRequest(
            f"The request payload is invalid. Ensure to provide a valid request payload. {str(error)[:100]}"
        ) from error


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise BadRequest("The request payload is invalid. Ensure to provide a valid request payload.")
    return value


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None, charge: float = 1.0
) -> Response:
    """An answer with a JSON body."""
    return Response(status, headers or {}, orjson.dumps(value), charge)


def error_response(error: CosmosError) -> Response:
    """The answer that tells the client of an error."""
    body = {"code": error.code, "message": error.message}
    if error.info is not None:
        body["additionalErrorInfo"] = error.info
    return Response(
        error.status, {"x-ms-substatus": str(error.sub_status)} | dict(error.headers), orjson.dumps(body), error.charge
    )
