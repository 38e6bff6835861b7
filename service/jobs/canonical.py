"""The hash of a document: the same for the text that was sent and for what Cosmos gives back of it. Pure.

Left out are the stamp and what Cosmos adds. Members are sorted, and numbers are doubles, since Cosmos has no others:
1, 1.0 and 1e0 are one number, and integers from 2^53 on are the double nearest to them.
"""

import hashlib
from typing import Any, Final

import orjson

SYSTEM: Final = frozenset({"_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"})
"""What Cosmos adds to a document."""
_EXACT: Final = 2**53


def document_hash(document: dict[str, Any], stamp: str) -> str:
    """16 hex digits. `stamp` names the property that is left out."""
    plain = {name: _plain(value) for name, value in document.items() if name not in SYSTEM and name != stamp}
    text = orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        return value if -_EXACT < value < _EXACT else float(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if kind is dict:
        return {name: _plain(each) for name, each in value.items()}
    if kind is list:
        return [_plain(each) for each in value]
    return value
