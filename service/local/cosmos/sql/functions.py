"""The system functions of the query language. An argument of the wrong type makes the result undefined."""

import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from service.local.cosmos.errors import BadRequest
from service.local.cosmos.sql.text_functions import TEXT
from service.local.cosmos.sql.values import UNDEFINED, is_number, same

Function = Callable[..., Any]
EARTH_METRES: Final = 6_371_008.8


def call(name: str, arguments: list[Any]) -> Any:  # noqa: ANN401 - values are anything
    """The result of a function."""
    try:
        return _FUNCTIONS[name](*arguments)
    except TypeError as error:
        raise BadRequest(f"The function {name} does not take {len(arguments)} arguments.") from error
    except (ArithmeticError, ValueError):
        return UNDEFINED


def is_known(name: str) -> bool:
    """Whether there is such a function."""
    return name in _FUNCTIONS


def _type_test(*types: type) -> Function:
    def test(value: object) -> bool:
        return isinstance(value, types) and (bool in types or not isinstance(value, bool))

    return test


def _is_primitive(value: object) -> bool:
    return value is not UNDEFINED and not isinstance(value, list | dict)


def _is_integer(value: object) -> bool:
    return is_number(value) and float(str(value)).is_integer()


def _numeric(function: Callable[..., Any]) -> Function:
    def apply(first: object, *more: object) -> object:
        values = (first, *more)
        return _tidy(function(*values)) if all(is_number(value) for value in values) else UNDEFINED

    return apply


def _tidy(value: Any) -> Any:  # noqa: ANN401
    """Numbers are doubles in the service and print without a fraction where they have none."""
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return UNDEFINED
        if value.is_integer() and abs(value) < 2**53:
            return int(value)
    return value


def _round(value: float) -> float:
    return math.floor(value + 0.5) if value >= 0 else math.ceil(value - 0.5)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _log(value: float, base: float = math.e) -> float:
    return math.log(value, base)


def _number_bin(value: float, size: float = 1) -> float:
    return math.floor(value / size) * size


def _array_contains(values: object, wanted: object, partly: object = False) -> object:
    if not isinstance(values, list):
        return UNDEFINED if values is UNDEFINED else False
    if wanted is UNDEFINED:
        return UNDEFINED
    if partly is True and isinstance(wanted, dict):
        return any(isinstance(value, dict) and _has(value, wanted) for value in values)
    return any(same(value, wanted) for value in values)


def _has(value: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(name in value and same(value[name], inner) for name, inner in wanted.items())


def _array_contains_any(values: object, *wanted: object) -> object:
    if not isinstance(values, list):
        return UNDEFINED
    return any(same(value, one) for value in values for one in wanted)


def _array_contains_all(values: object, *wanted: object) -> object:
    if not isinstance(values, list):
        return UNDEFINED
    return all(any(same(value, one) for value in values) for one in wanted)


def _array_length(values: object) -> object:
    return len(values) if isinstance(values, list) else UNDEFINED


def _array_concat(*arrays: object) -> object:
    joined: list[Any] = []
    for one in arrays:
        if not isinstance(one, list):
            return UNDEFINED
        joined += one
    return joined


def _array_slice(values: object, start: object, length: object = None) -> object:
    if not isinstance(values, list) or not isinstance(start, int):
        return UNDEFINED
    first = max(0, len(values) + start) if start < 0 else start
    if length is None:
        return values[first:]
    return values[first : first + max(0, length)] if isinstance(length, int) else UNDEFINED


def _set_intersect(left: object, right: object) -> object:
    if not isinstance(left, list) or not isinstance(right, list):
        return UNDEFINED
    return _unique([value for value in left if any(same(value, other) for other in right)])


def _set_union(left: object, right: object) -> object:
    return _unique(left + right) if isinstance(left, list) and isinstance(right, list) else UNDEFINED


def _unique(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if not any(same(value, other) for other in kept):
            kept.append(value)
    return kept


def _object_to_array(value: object, key: str = "k", inner: str = "v") -> object:
    return [{key: k, inner: v} for k, v in value.items()] if isinstance(value, dict) else UNDEFINED


def _iif(condition: object, one: object, other: object) -> object:
    return one if condition is True else other


def _choose(index: object, *values: object) -> object:
    return values[index - 1] if isinstance(index, int) and 1 <= index <= len(values) else UNDEFINED


def _to_string(value: object) -> object:
    if value is UNDEFINED or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


def _parsed(*types: type) -> Function:
    def parse(value: object) -> object:
        if not isinstance(value, str):
            return UNDEFINED
        try:
            found = orjson.loads(value.strip())
        except orjson.JSONDecodeError:
            return UNDEFINED
        return found if isinstance(found, types) and (bool in types or not isinstance(found, bool)) else UNDEFINED

    return parse


def _distance(left: object, right: object) -> object:
    """Metres between two GeoJSON points, on a sphere: within 0.5 % of the service's ellipsoid."""
    one, other = _point(left), _point(right)
    if one is None or other is None:
        return UNDEFINED
    (lon1, lat1), (lon2, lat2) = one, other
    half = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_METRES * math.asin(math.sqrt(min(1.0, half)))


def _point(value: object) -> tuple[float, float] | None:
    """Longitude and latitude in radians."""
    if not isinstance(value, dict) or value.get("type") != "Point":
        return None
    place = value.get("coordinates")
    if not isinstance(place, list) or len(place) < 2 or not is_number(place[0]) or not is_number(place[1]):
        return None
    return math.radians(place[0]), math.radians(place[1])


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


_FUNCTIONS: Final[Mapping[str, Function]] = {
    **TEXT,
    "IS_DEFINED": lambda value: value is not UNDEFINED,
    "IS_NULL": lambda value: value is None,
    "IS_BOOL": _type_test(bool),
    "IS_NUMBER": is_number,
    "IS_INTEGER": _is_integer,
    "IS_STRING": _type_test(str),
    "IS_ARRAY": _type_test(list),
    "IS_OBJECT": _type_test(dict),
    "IS_PRIMITIVE": _is_primitive,
    "ABS": _numeric(abs),
    "CEILING": _numeric(math.ceil),
    "FLOOR": _numeric(math.floor),
    "ROUND": _numeric(_round),
    "TRUNC": _numeric(math.trunc),
    "SIGN": _numeric(_sign),
    "SQRT": _numeric(math.sqrt),
    "SQUARE": _numeric(lambda value: value * value),
    "POWER": _numeric(math.pow),
    "EXP": _numeric(math.exp),
    "LOG": _numeric(_log),
    "LOG10": _numeric(math.log10),
    "SIN": _numeric(math.sin),
    "COS": _numeric(math.cos),
    "TAN": _numeric(math.tan),
    "ASIN": _numeric(math.asin),
    "ACOS": _numeric(math.acos),
    "ATAN": _numeric(math.atan),
    "ATN2": _numeric(math.atan2),
    "COT": _numeric(lambda value: 1 / math.tan(value)),
    "DEGREES": _numeric(math.degrees),
    "RADIANS": _numeric(math.radians),
    "PI": lambda: math.pi,
    "NUMBERBIN": _numeric(_number_bin),
    "ARRAY_CONTAINS": _array_contains,
    "ARRAY_CONTAINS_ANY": _array_contains_any,
    "ARRAY_CONTAINS_ALL": _array_contains_all,
    "ARRAY_LENGTH": _array_length,
    "ARRAY_CONCAT": _array_concat,
    "ARRAY_SLICE": _array_slice,
    "SETINTERSECT": _set_intersect,
    "SETUNION": _set_union,
    "OBJECTTOARRAY": _object_to_array,
    "IIF": _iif,
    "CHOOSE": _choose,
    "TOSTRING": _to_string,
    "STRINGTONUMBER": _parsed(int, float),
    "STRINGTOBOOLEAN": _parsed(bool),
    "STRINGTOARRAY": _parsed(list),
    "STRINGTOOBJECT": _parsed(dict),
    "STRINGTONULL": _parsed(type(None)),
    "ST_DISTANCE": _distance,
    "GETCURRENTDATETIME": _now,
    "GETCURRENTTIMESTAMP": lambda: int(time.time() * 1000),
    "GETCURRENTTICKS": lambda: int(time.time() * 10_000_000) + 621_355_968_000_000_000,
}
