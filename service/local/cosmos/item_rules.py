"""What a document has to be before a container takes it: id, partition key, size, TTL, unique keys.

Limits are those of "Azure Cosmos DB service quotas"; the words are the service's, as far as they are published.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from service.local.cosmos.documents import NEVER, Key, Term, View
from service.local.cosmos.errors import BadRequest, Conflict, CosmosError
from service.local.cosmos.indexing import IndexPolicy
from service.local.cosmos.partition_key import MISMATCH, KeyDefinition, KeyValue, split_path
from service.local.cosmos.throughput import REFUSED_WRITE

MAX_ITEM_BYTES: Final = 2 * 1024 * 1024
MAX_ID_BYTES: Final = 1023
MAX_TTL_SECONDS: Final = 2**31 - 1
LOGICAL_PARTITION_BYTES: Final = 20 * 1024**3
BAD_ID: Final = re.compile(r"[/\\?#]| $")


@dataclass(slots=True)
class ItemRules:
    """The rules of one container."""

    keys: KeyDefinition
    indexing: IndexPolicy
    unique: tuple[tuple[tuple[str, ...], ...], ...] = ()
    """Each unique key: its paths, each as names."""
    default_ttl: int | None = None
    """None: no TTL at all; -1: only where a document says so; else seconds since its last change."""
    partition_limit_bytes: int = LOGICAL_PARTITION_BYTES

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any], partition_limit_bytes: int) -> "ItemRules":
        """The rules that the properties of a container state."""
        return cls(
            KeyDefinition.from_json(properties["partitionKey"]),
            IndexPolicy.from_json(properties.get("indexingPolicy")),
            unique_key_paths(properties.get("uniqueKeyPolicy")),
            check_default_ttl(properties.get("defaultTtl")),
            partition_limit_bytes,
        )

    def check_key(self, key: KeyValue, document: Mapping[str, Any]) -> None:
        """Refuse a document that does not have the key its request names."""
        if not self.keys.matches(key, document):
            raise BadRequest(MISMATCH, 1001)

    def expiry(self, document: Mapping[str, Any], now: int) -> float:
        """When the document goes away by itself."""
        ttl = document.get("ttl")
        if ttl is not None:
            check_ttl(ttl)
        if self.default_ttl is None:
            return NEVER
        seconds = self.default_ttl if ttl is None else int(ttl)
        return NEVER if seconds < 0 else now + seconds

    def check_size(self, view: View, partition_key: str, size: int, old_size: int) -> None:
        """Refuse what is too large by itself, or what no longer fits into its logical partition."""
        if size > MAX_ITEM_BYTES:
            raise CosmosError(413, "Request size is too large")
        if view.partition_bytes(partition_key) + size - old_size > self.partition_limit_bytes:
            raise CosmosError(
                403,
                "Partition key reached maximum size of 20 GB. Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk",
                1014,
                charge=REFUSED_WRITE,
            )

    def unique_terms(self, key: KeyValue, document: Mapping[str, Any]) -> tuple[Term, ...]:
        """What no other document of the logical partition may share. A path that is not there counts as null."""
        return tuple(
            (key.text, number, orjson.dumps([_value_at(document, path) for path in paths]).decode())
            for number, paths in enumerate(self.unique)
        )

    def check_unique(self, view: View, name: Key, terms: Sequence[Term]) -> None:
        """409 if another document has the same value of a unique key."""
        for term in terms:
            if view.holder(term) not in {None, name}:
                raise Conflict(
                    "Unique index constraint violation. Learn more: https://aka.ms/CosmosDB/sql/errors/unique-key",
                    REFUSED_WRITE,
                )


def check_id(value: object) -> str:
    """The id, if it follows the rules of ids."""
    if isinstance(value, str) and 0 < len(value) < MAX_ID_BYTES // 4 and not BAD_ID.search(value):
        return value  # nearly all of them
    if value is None:
        raise BadRequest("The input content is invalid because the required properties - 'id; ' - are missing.")
    if not isinstance(value, str):
        raise BadRequest("The input content is invalid because 'id' is not a string.")
    if not value:
        raise BadRequest("The input name '' is invalid. Ensure to provide a name that is not empty.")
    if BAD_ID.search(value):
        raise BadRequest(
            f"The input name '{value[:100]}' is invalid: it must not have any of '/', '\\', '?', '#', "
            "nor end with a space."
        )
    if len(value.encode()) > MAX_ID_BYTES:
        raise BadRequest(f"The input name is invalid: its length must not exceed {MAX_ID_BYTES} bytes.")
    return value


def check_ttl(value: object) -> None:
    """Refuse a TTL that is not -1 or a positive 32-bit number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise _bad_ttl(value)
    if not (value == -1 or 0 < value <= MAX_TTL_SECONDS):
        raise _bad_ttl(value)


def check_default_ttl(value: object) -> int | None:
    """The TTL of a container."""
    if value is None:
        return None
    check_ttl(value)
    return int(str(value))


def _bad_ttl(value: object) -> BadRequest:
    return BadRequest(
        f"The input ttl '{value}' is invalid. Ensure to provide a nonzero positive integer less than or equal to "
        f"'{MAX_TTL_SECONDS}', or -1 which means never expire."
    )


def unique_key_paths(policy: object) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The unique keys of a policy."""
    if policy is None:
        return ()
    keys = policy.get("uniqueKeys", []) if isinstance(policy, Mapping) else None
    if not isinstance(keys, list):
        raise BadRequest("The unique key policy is invalid.")
    found = []
    for key in keys:
        paths = key.get("paths") if isinstance(key, Mapping) else None
        if not isinstance(paths, list) or not paths or not all(isinstance(p, str) and p.startswith("/") for p in paths):
            raise BadRequest("The unique key policy is invalid: each unique key has paths that start with a slash.")
        found.append(tuple(split_path(path) for path in paths))
    return tuple(found)


def _value_at(document: Mapping[str, Any], path: Sequence[str]) -> object:
    value: object = document
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value
