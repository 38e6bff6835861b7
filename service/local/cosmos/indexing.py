"""The indexing policy, as far as it matters here: how many values of a document it indexes, a part of the cost."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from service.local.cosmos.errors import BadRequest
from service.local.cosmos.partition_key import split_path

MODES: Final = ("consistent", "lazy", "none")
Steps = tuple[str, ...]


ETAG: Final = '/"_etag"/?'


def full_policy(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The policy of a container, with what its maker may leave out, and without what the service no longer keeps."""
    if given is not None and not isinstance(given, Mapping):
        raise BadRequest("The indexing policy is not an object.")
    policy: dict[str, Any] = {"indexingMode": "consistent", "automatic": True} | dict(given or {})
    policy["indexingMode"] = str(policy["indexingMode"]).lower()
    if policy["indexingMode"] == "none":
        return policy | {"includedPaths": [], "excludedPaths": []}
    included, excluded = policy.get("includedPaths") or [], policy.get("excludedPaths") or []
    _paths(included)
    paths = [one["path"] for one in excluded] if _paths(excluded) else []
    policy["includedPaths"] = [{k: v for k, v in one.items() if k != "indexes"} for one in included]
    if not included and "/*" not in paths:
        policy["includedPaths"] = [{"path": "/*"}]
    policy["excludedPaths"] = excluded if ETAG in paths else [*excluded, {"path": ETAG}]
    return policy


@dataclass(frozen=True, slots=True)
class IndexPolicy:
    """Which paths are indexed: the most exact of the included and excluded ones decides."""

    on: bool = True
    everything: bool = True
    included: tuple[Steps, ...] = ()
    excluded: tuple[Steps, ...] = ()

    @classmethod
    def from_json(cls, policy: object) -> "IndexPolicy":
        """The policy in the properties of a container."""
        if policy is None:
            return cls()
        if not isinstance(policy, Mapping):
            raise BadRequest("The indexing policy is not an object.")
        mode = str(policy.get("indexingMode", "consistent")).lower()
        if mode not in MODES:
            raise BadRequest(f"The indexing mode {mode!r} is not one of {', '.join(MODES)}.")
        included = _paths(policy.get("includedPaths", []))
        excluded = tuple(path for path in _paths(policy.get("excludedPaths", [])) if path != ("_etag", "?"))
        everything = not excluded and (not included or ("*",) in included)
        return cls(mode != "none", everything and mode != "none", included or (("*",),), excluded)

    def count(self, text: bytes) -> int:
        """How many values of a document are indexed; the system's own, which are not in its text, are not charged."""
        if not self.on:
            return 0
        document = orjson.loads(text)
        if self.everything:
            return scalars(document.values())
        return sum(self._indexes(path) for path in _leaves(document, ()))

    def _indexes(self, path: Steps) -> bool:
        best = max((_match(rule, path) for rule in self.included), default=-1)
        return best >= 0 and best > max((_match(rule, path) for rule in self.excluded), default=-1)


def scalars(values: Iterable[Any]) -> int:
    """How many scalar values there are, at any depth: what the index holds if every path is indexed."""
    count = 0
    for value in values:
        kind = value.__class__
        if kind is dict:
            count += scalars(value.values())
        elif kind is list:
            count += scalars(value)
        else:
            count += 1
    return count


def _paths(entries: object) -> tuple[Steps, ...]:
    if not isinstance(entries, list):
        raise BadRequest("The indexing policy's paths are not a list.")
    found = []
    for entry in entries:
        path = entry.get("path") if isinstance(entry, Mapping) else None
        if not isinstance(path, str) or not path.startswith("/"):
            raise BadRequest(f"The indexing path {path!r} could not be accepted.")
        found.append(split_path(path))
    return tuple(found)


def _match(rule: Steps, path: Steps) -> int:
    """How exactly the rule names the path: the number of its names, or -1 if it does not."""
    names = rule[:-1] if rule and rule[-1] in {"*", "?"} else rule
    exact = bool(rule) and rule[-1] == "?"
    if path[: len(names)] != names or (exact and len(path) != len(names)):
        return -1
    return 2 * len(names) + exact


def _leaves(value: object, path: Steps) -> Iterator[Steps]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, (*path, "[]"))
    else:
        yield path
