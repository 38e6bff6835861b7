"""Partition keys: the definition on the container, the value of a document, and where it hashes to.

Hashing follows the SDKs (azure.cosmos.partition_key): murmur3-x86-32 for version 1, murmur3-x64-128 for version 2, and
for hierarchical keys the version 2 hash of each level, one after the other.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from struct import pack, unpack
from typing import Any, Final, NamedTuple, cast

import mmh3
import orjson

from service.local.cosmos.errors import BadRequest

MAX_LEVELS: Final = 3
MAX_KEY_BYTES: Final = (
    2048  # documented limit of a partition key value (101 for version 1 containers, as strings there)
)
MAX_CACHED_KEYS: Final = 200_000
TOO_LONG: Final = f"The partition key is longer than {MAX_KEY_BYTES} bytes."
V1_STRING_CHARS: Final = 100  # version 1 hashes only so much of a string
MISMATCH: Final = (
    "PartitionKey extracted from document doesn't match the one specified in the header. Learn more: "
    "https://aka.ms/CosmosDB/sql/errors/wrong-pk-value"
)
WRONG_LEVELS: Final = (
    "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key "
    "field values specified in the document."
)

Component = str | int | float | bool | None | dict[str, Any]  # an empty dict stands for "undefined", as on the wire
Undefined: Final[dict[str, Any]] = {}


class KeyValue(NamedTuple):
    """The partition key of a document: its components, one canonical text, and its effective partition key."""

    components: tuple[Component, ...]
    text: str
    epk: str


@dataclass(slots=True)
class KeyDefinition:
    """How a container finds and hashes the partition key."""

    paths: tuple[str, ...]
    kind: str = "Hash"
    version: int = 2
    system: bool = False
    """A container of the time before partition keys: documents without one belong to the empty key."""
    _steps: tuple[tuple[str, ...], ...] = field(init=False)
    only: str | None = field(init=False, default=None)
    """The name of the key property, if the key is one property of the document itself."""
    _short: bool = field(init=False)
    cache: dict[str, KeyValue] = field(init=False, default_factory=dict)
    """Keys by the text that names them."""

    @property
    def steps(self) -> tuple[tuple[str, ...], ...]:
        """The paths, each as names."""
        return self._steps

    def __post_init__(self) -> None:
        self._steps = tuple(split_path(path) for path in self.paths)
        if len(self._steps) == 1 and len(self._steps[0]) == 1:
            self.only = self._steps[0][0]
        self._short = self.kind == "Hash" and self.version == 2

    @classmethod
    def from_json(cls, value: object) -> "KeyDefinition":
        """The definition in the properties of a container; refuses what the service refuses."""
        if not isinstance(value, Mapping):
            raise BadRequest("The partition key definition is not an object.")
        paths = value.get("paths")
        if not isinstance(paths, Sequence) or isinstance(paths, str) or not paths:
            raise BadRequest("The partition key definition has no paths.")
        if not all(isinstance(path, str) and path.startswith("/") and len(path) > 1 for path in paths):
            raise BadRequest("Each partition key path must start with a slash and name a property.")
        kind = value.get("kind", "Hash")
        if kind not in {"Hash", "MultiHash"}:
            raise BadRequest(f"The partition key kind {kind!r} is not supported.")
        if kind == "Hash" and len(paths) > 1:
            raise BadRequest("Too many partition key paths: a Hash key has one. Use the kind MultiHash for several.")
        if len(paths) > MAX_LEVELS:
            raise BadRequest(f"Too many partition key paths: a hierarchical key has at most {MAX_LEVELS}.")
        version = value.get("version", 2 if kind == "MultiHash" else 1)
        if version not in {1, 2} or (kind == "MultiHash" and version != 2):
            raise BadRequest(f"The partition key version {version!r} is not supported.")
        return cls(tuple(paths), kind, version, bool(value.get("systemKey", False)))

    def to_json(self) -> dict[str, Any]:
        """The definition as it stands in the properties of a container."""
        value: dict[str, Any] = {"paths": list(self.paths), "kind": self.kind, "version": self.version}
        return value | {"systemKey": True} if self.system else value

    def parse(self, text: str) -> KeyValue:
        """The key that a header or an operation names, such as `["a"]`; a whole key, not a prefix."""
        key = self.cache.get(text)
        if key is None:
            key = self.of(self.components(text))
            if len(self.cache) >= MAX_CACHED_KEYS:
                self.cache.clear()
            self.cache[text] = key
        return key

    def components(self, text: str) -> tuple[Component, ...]:
        """The components that a header names: as many as the key has levels, or fewer (a prefix)."""
        try:
            values = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise BadRequest(f"Partition key {text[:100]} is invalid.") from error
        if not isinstance(values, list) or len(values) > len(self.paths):
            raise BadRequest(f"Partition key {text[:100]} is invalid.")
        for value in values:
            if isinstance(value, list) or (isinstance(value, dict) and value):
                raise BadRequest(f"Partition key {text[:100]} is invalid.")
        return tuple(values)

    def of(self, components: tuple[Component, ...]) -> KeyValue:
        """The key with these components; an empty list is the key of documents without one (migrated containers)."""
        if self._short and len(components) == 1 and isinstance(only := components[0], str):
            return self._of_text(only)  # nearly every key: worth the shorter way
        if not components:
            components = (Undefined,) * len(self.paths)
        if len(components) != len(self.paths):
            raise BadRequest(WRONG_LEVELS, 1001)
        normal = tuple(_normal(component) for component in components)
        if any(isinstance(c, str) and len(c.encode()) > MAX_KEY_BYTES for c in normal):
            raise BadRequest(TOO_LONG)
        return KeyValue(normal, orjson.dumps(normal).decode(), self.effective(normal))

    def _of_text(self, text: str) -> KeyValue:
        """The key of version 2 that is one text."""
        raw = text.encode()
        if len(raw) > MAX_KEY_BYTES:
            raise BadRequest(TOO_LONG)
        hashed = mmh3.hash128(b"\x08" + raw + b"\xff", 0, True) & _BELOW_END
        return KeyValue((text,), orjson.dumps((text,)).decode(), f"{hashed:032X}")

    def extract(self, document: Mapping[str, Any]) -> tuple[Component, ...]:
        """The components as they stand in the document; what is not there is undefined."""
        return tuple(_scalar(_walk(document, steps)) for steps in self._steps)

    def matches(self, key: KeyValue, document: Mapping[str, Any]) -> bool:
        """Whether the document has this key, as the service checks it before each write."""
        if self.only is not None:  # nearly every container: worth the shorter way
            value, wanted = document.get(self.only), key.components[0]
            if value.__class__ is wanted.__class__ is str:
                return bool(value == wanted)
        components = self.extract(document)
        return components == key.components and all(
            isinstance(a, bool) == isinstance(b, bool) for a, b in zip(components, key.components, strict=True)
        )

    def effective(self, components: Sequence[Component]) -> str:
        """The effective partition key of a whole key, or of a prefix of a hierarchical one."""
        if self.kind == "MultiHash":
            return "".join(_hash_v2((component,)) for component in components)
        return _hash_v2(components) if self.version == 2 else _hash_v1(components)

    def bound(self, numerator: int, denominator: int) -> str:
        """The effective partition key at that fraction of the key space: where ranges of equal width meet."""
        if self.version == 1:
            return _encode_v1(float((numerator << 32) // denominator)).upper()
        return f"{(numerator << 126) // denominator:032X}"

    def prefix_range(self, components: Sequence[Component]) -> tuple[str, str]:
        """From where to where (exclusive) the documents under a prefix of a hierarchical key hash."""
        low = self.effective(tuple(_normal(component) for component in components))
        return low, low + "FF"


_STEP: Final = re.compile(r"""/(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^/]*))""")


def split_path(path: str) -> tuple[str, ...]:
    """The names in a path such as `/a/b`, `/"a b"/c` or `/'a "b"'`; quotes are for names with odd signs."""
    names: list[str] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise BadRequest(f"The path {path[:100]!r} is invalid.")
        quoted = found[1] if found[1] is not None else found[2]
        names.append(found[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        at = found.end()
    return tuple(names)


def _walk(document: Mapping[str, Any], steps: Sequence[str]) -> object:
    value: object = document
    for step in steps:
        if not isinstance(value, Mapping) or step not in value:
            return Undefined
        value = value[step]
    return value


def _scalar(value: object) -> Component:
    """Objects and arrays cannot be keys; the service takes them for undefined."""
    return Undefined if isinstance(value, list | dict) else cast("Component", value)


def _normal(component: Component) -> Component:
    """Numbers are doubles to the service: 1 and 1.0 are one key."""
    if isinstance(component, float) and component.is_integer() and abs(component) < 2**53:
        return int(component)
    return component


def _for_hashing(components: Sequence[Component], end_of_string: bytes) -> bytes:
    out = bytearray()
    for component in components:
        match component:
            case True:
                out += b"\x03"
            case False:
                out += b"\x02"
            case None:
                out += b"\x01"
            case str():
                out += b"\x08" + component.encode() + end_of_string
            case int() | float():
                out += b"\x05" + pack("<d", float(component))
            case _:
                out += b"\x00"
    return bytes(out)


_BELOW_END: Final = (1 << 126) - 1  # the first two bits are cleared: 'FF' is the end of the key space


def _hash_v2(components: Sequence[Component]) -> str:
    hashed = mmh3.hash128(_for_hashing(components, b"\xff"), 0, True)
    return f"{hashed & _BELOW_END:032X}"


def _hash_v1(components: Sequence[Component]) -> str:
    short = [c[:V1_STRING_CHARS] if isinstance(c, str) else c for c in components]
    digest = mmh3.hash(_for_hashing(short, b"\x00"), 0, signed=False)
    return "".join(_encode_v1(component) for component in (float(digest), *short)).upper()


def _encode_v1(component: Component) -> str:
    """An encoding whose order by bytes is the order of the values: version 1 keys sort by it."""
    match component:
        case True:
            return "03"
        case False:
            return "02"
        case None:
            return "01"
        case int() | float():
            return "05" + _encode_number(float(component)).hex()
        case str():
            raw = component.encode()
            cut = raw[: V1_STRING_CHARS + 1] if len(raw) > V1_STRING_CHARS else raw
            body = bytes((byte + 1) & 0xFF for byte in cut)
            return "08" + body.hex() + ("" if len(raw) > V1_STRING_CHARS else "00")
        case _:
            return "00"


def _encode_number(value: float) -> bytes:
    """Eight bits, then groups of seven with a bit that says whether another follows."""
    (bits,) = unpack("<Q", pack("<d", value))
    payload = bits ^ (1 << 63) if bits < 1 << 63 else (~bits + 1) & (1 << 64) - 1
    out = bytearray([payload >> 56])
    payload = (payload << 8) & (1 << 64) - 1
    while payload:
        out.append(payload >> 56 | 1)
        payload = (payload << 7) & (1 << 64) - 1
    if len(out) > 1:
        out[-1] &= 0xFE
    else:
        out.append(0)
    return bytes(out)
