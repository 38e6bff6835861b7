"""Dead letters as lines of text."""

import uuid
from datetime import UTC, datetime
from decimal import Decimal

import orjson

from service.sink.dead_letters import Letter, letter_line
from service.source.events import Event, Hub, PartitionId


def _line(properties: dict) -> dict:
    hub, event = Hub("ns", "hub", "$Default", 1), Event(7, "8589", 1_700_000_000_123, b"x", properties)
    letter = Letter(hub, PartitionId("0"), event, 0, "no JSON", 0, 0, 1, datetime.now(UTC))
    return orjson.loads(letter_line(letter))


def test_properties_of_every_type_that_amqp_has_can_be_kept():
    one = uuid.uuid4()
    values = {b"t": b"a", b"b": b"\xff", b"u": one, b"d": Decimal("1.5"), b"n": float("nan"), b"m": {5: b"\xff"}}
    kept = _line(values)["properties"]
    assert (kept["t"], kept["b"], kept["u"], kept["d"], kept["n"]) == ("a", "\\xff", str(one), "1.5", None)
    assert set(kept) == set("tbudnm")


def test_names_of_properties_that_are_no_text_can_be_kept():
    assert _line({5: 6, b"\xff": 7, None: 8})["properties"] == {"5": 6, "\\xff": 7, "None": 8}
