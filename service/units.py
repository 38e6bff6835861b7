"""Durations and sizes as people write them."""

import re

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
_NUMBER_AND_UNIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_duration(text: object) -> float:
    """Seconds from `500ms`, `5s`, `10m`, `2h`, `1d`, or a number of seconds."""
    number, unit = _split(text, "a duration such as 500ms, 5s, 10m or 30")
    if unit and unit not in _SECONDS:
        raise ValueError(f"{text} has an unknown unit; write a duration such as 500ms, 5s, 10m or 30")
    return number * _SECONDS[unit or "s"]


def parse_bytes(text: object) -> int:
    """Bytes from `512MiB`, `220kB`, or a number of bytes."""
    number, unit = _split(text, "a size such as 512MiB or 1000000")
    if unit not in _BYTES:
        raise ValueError(f"{text} has an unknown unit; write a size such as 512MiB, 64kB or 1000000")
    return int(number * _BYTES[unit])


def _split(text: object, wanted: str) -> tuple[float, str]:
    match = _NUMBER_AND_UNIT.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not {wanted}")
    return float(match[1]), match[2].lower()
