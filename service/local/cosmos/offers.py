"""Offers: the throughput of a container or database, fixed or autoscale.

Shapes follow the REST reference ("Offers") and what azure.cosmos.offer reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from service.local.cosmos.errors import BadRequest
from service.local.cosmos.resource_ids import offer_rid
from service.local.cosmos.wire import Request

MIN_FIXED: Final = 400
MIN_AUTOSCALE: Final = 1000
STEP_FIXED: Final = 100
STEP_AUTOSCALE: Final = 1000
MAX_RU: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Throughput:
    """So many RU/s; an autoscale one goes from a tenth of its maximum up to it."""

    limit: int
    autoscale: bool = False
    increment_percent: int = 0

    def __post_init__(self) -> None:
        low, step = (MIN_AUTOSCALE, STEP_AUTOSCALE) if self.autoscale else (MIN_FIXED, STEP_FIXED)
        if self.limit < low:
            raise BadRequest(f"Requested throughput {self.limit} is less than required minimum throughput {low}.")
        if self.limit > MAX_RU or self.limit % step:
            raise BadRequest(
                f"The offer should have valid throughput: between {low} and {MAX_RU} inclusive in increments of {step}."
            )

    @classmethod
    def from_headers(cls, request: Request) -> "Throughput | None":
        """What the creator of a database or container asks for."""
        fixed = request.header("x-ms-offer-throughput")
        settings = request.header("x-ms-cosmos-offer-autopilot-settings")
        if fixed and settings:
            raise BadRequest("Fixed and autoscale throughput cannot both be given.")
        if settings:
            return cls._autoscale(settings)
        if not fixed:
            return None
        try:
            return cls(int(fixed[:9]))
        except ValueError as error:
            raise BadRequest(f"The offer throughput {fixed[:20]!r} is not a number.") from error

    @classmethod
    def _autoscale(cls, settings: str) -> "Throughput":
        try:
            value = orjson.loads(settings)
            upgrade = (value.get("autoUpgradePolicy") or {}).get("throughputPolicy") or {}
            return cls(int(value["maxThroughput"]), True, int(upgrade.get("incrementPercent") or 0))
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadRequest("The autoscale settings are invalid.") from error

    @classmethod
    def from_content(cls, content: object) -> "Throughput":
        """What the content of a replaced offer asks for."""
        if not isinstance(content, Mapping):
            raise BadRequest("The offer has no content.")
        settings = content.get("offerAutopilotSettings")
        try:
            if settings:
                upgrade = (settings.get("autoUpgradePolicy") or {}).get("throughputPolicy") or {}
                return cls(int(settings["maxThroughput"]), True, int(upgrade.get("incrementPercent") or 0))
            return cls(int(content["offerThroughput"]))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadRequest("The offer's throughput is invalid.") from error


@dataclass(slots=True)
class Offer:
    """The throughput of one resource, as a resource of its own."""

    number: int
    resource_rid: str
    resource_link: str
    throughput: Throughput

    @property
    def rid(self) -> str:
        """Its resource id, which is also its name."""
        return offer_rid(self.number)

    def to_json(self) -> dict[str, Any]:
        """The offer on the wire."""
        limit = self.throughput.limit
        content: dict[str, Any] = {"offerThroughput": limit, "offerIsRUPerMinuteThroughputEnabled": False}
        if self.throughput.autoscale:
            settings: dict[str, Any] = {"tier": 0, "maximumTierThroughput": limit, "autoUpgrade": False}
            settings |= {"maxThroughput": limit}
            percent = {"incrementPercent": self.throughput.increment_percent}
            settings["autoUpgradePolicy"] = {"throughputPolicy": percent}
            content |= {"offerThroughput": limit // 10, "offerAutopilotSettings": settings}
        return {
            "resource": self.resource_link,
            "offerType": "Invalid",
            "offerResourceId": self.resource_rid,
            "offerVersion": "V2",
            "content": content,
            "id": self.rid,
            "_rid": self.rid,
            "_self": f"offers/{self.rid}/",
            "_etag": f'"{self.number:08x}-0000-0000-0000-000000000000"',
            "_ts": 0,
        }
