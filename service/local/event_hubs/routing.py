"""Which partition a key belongs to: the service's own hash, as its SDKs' buffered producers compute it.

The hash is Bob Jenkins' lookup3 (hashlittle2, public domain). Its two words are folded to a signed 16-bit number, and
the remainder's absolute value is the partition's number (SDKs: JS `partitionKeyToIdMapper`, Python
`_partition_resolver`; the latter differs for negative hashes, where Python's `%` is not that of C# and JS).
"""

_MASK = 0xFFFFFFFF


def partition_index(key: str, partitions: int) -> int:
    """The number of the partition, from 0, for a partition key."""
    first, second = lookup3(key.encode())
    folded = (first ^ second) & 0xFFFF
    magnitude = folded if folded < 0x8000 else 0x10000 - folded
    return magnitude % partitions


def lookup3(raw: bytes) -> tuple[int, int]:
    """The two 32-bit words of hashlittle2 with both seeds 0."""
    a = b = c = (0xDEADBEEF + len(raw)) & _MASK
    if not raw:
        return c, b
    while len(raw) > 12:
        a, b, c = _mix(*_add(a, b, c, raw[:12]))
        raw = raw[12:]
    a, b, c = _final(*_add(a, b, c, raw.ljust(12, b"\0")))
    return c, b


def _add(a: int, b: int, c: int, block: bytes) -> tuple[int, int, int]:
    words = (int.from_bytes(block[at : at + 4], "little") for at in (0, 4, 8))
    x, y, z = words
    return (a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & _MASK) ^ _rotate(c, bits)
        c = (c + b) & _MASK
        a, b, c = b, c, a
    return a, b, c


def _final(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rotate(b, bits)) & _MASK
        a, b, c = b, c, a
    # Seven steps over three words leave them one place on.
    return c, a, b
