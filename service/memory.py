"""How much memory this process may have: by its container (cgroup), or by a limit that was set for it."""

import resource
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
_NONE = 1 << 60
"""cgroup 1 says that there is no limit by a number near 2^63."""


def memory_limit(membership: Path = _MEMBERSHIP, cgroups: Path = _CGROUPS) -> int | None:
    """The smallest limit in bytes that holds for this process; None where there is none."""
    limits = [soft for soft, _ in map(resource.getrlimit, _LIMITS) if soft != resource.RLIM_INFINITY]
    limits += [limit for file in _files(membership, cgroups) if (limit := _read(file)) is not None]
    return min(limits, default=None)


def _files(membership: Path, cgroups: Path) -> list[Path]:
    """Where the limits of our cgroup stand, of version 2 and 1. Inside a container our group is the root."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []  # not Linux
    found = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            found += [root / "memory.max" for root in (cgroups, cgroups / group.lstrip("/"))]
        elif "memory" in controllers.split(","):
            folder = cgroups / "memory"
            found += [root / "memory.limit_in_bytes" for root in (folder, folder / group.lstrip("/"))]
    return found


def _read(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() and int(text) < _NONE else None
