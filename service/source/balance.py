"""What a host does next about the partitions: a pure function of the table of leases.

Each host looks at the same table and decides for itself. The rules make that come to rest:
free partitions are taken up to the fair share; a live owner's partition is asked for only from the host that has
most, and only if that one has at least two more than we do, so that every move makes the spread more even; and
never one that moved a short while ago. A host that stays idle because all others have their share is a hot standby.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

from service.source.events import PartitionId
from service.source.store import Lease


class Strategy(Enum):
    """How fast a host goes for its share."""

    GREEDY = "greedy"
    """All of it at once."""
    BALANCED = "balanced"
    """One partition at a time."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one host."""

    strategy: Strategy = Strategy.GREEDY
    max_partitions: int = 0
    """Never hold more than this; 0 = no limit."""
    dwell_seconds: float = 30.0
    """A partition that moved is left where it is for this long."""
    handover_seconds: float = 5.0
    """How long an owner has to answer before its partition is taken, and a partition let go stays reserved."""
    as_the_sdks: bool = False
    """Move as the SDKs' processors do: only while below the floor of the share, one at a time."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now. The three are disjoint."""

    take: tuple[Lease, ...] = ()
    """Nobody's: acquire them."""
    ask: tuple[Lease, ...] = ()
    """A live owner's: ask for them."""
    steal: tuple[Lease, ...] = ()
    """A live owner's that did not answer, or cannot: acquire them."""

    @property
    def settled(self) -> bool:
        """Whether there is nothing to do, so the next look can wait."""
        return not (self.take or self.ask or self.steal)


def balance(
    table: Sequence[Lease],
    host: str,
    policy: Policy,
    random: Random,
    *,
    left_over: frozenset[PartitionId] = frozenset(),
    avoid: frozenset[PartitionId] = frozenset(),
) -> Plan:
    """The plan of `host`. `left_over`: seen free for so long that the share does not matter. `avoid`: not now."""
    counts = Counter(owner for lease in table if (owner := _bound_for(lease, policy)))
    hosts = set(counts) | {host}
    room = (policy.max_partitions or len(table)) - counts[host]
    step = 1 if policy.strategy is Strategy.BALANCED else len(table)
    usable = [lease for lease in table if lease.partition not in avoid]
    random.shuffle(usable)

    promised = [lease for lease in usable if not lease.live and _bound_for(lease, policy) == host]
    silent = [lease for lease in usable if lease.live and lease.wanted_by == host and _overdue(lease, policy)]
    free = [lease for lease in usable if not lease.live and not _bound_for(lease, policy)]
    free.sort(key=lambda lease: lease.partition not in left_over)
    late = sum(lease.partition in left_over for lease in free)
    share = -(-len(table) // len(hosts))
    taken = free[: max(0, min(room, step, max(share - counts[host], late)))]
    counts[host] += len(taken)

    limit = min(room, step) - len(taken)
    if policy.as_the_sdks:
        below_floor = counts[host] < len(table) // len(hosts)
        limit = min(limit, 1) if below_floor and not taken else 0
    moves = _moves(usable, host, policy, counts, limit)
    return Plan(
        take=(*promised, *taken),
        ask=tuple(lease for lease in moves if lease.asks),
        steal=(*silent, *(lease for lease in moves if not lease.asks)),
    )


def _bound_for(lease: Lease, policy: Policy) -> str:
    """The host that has the partition or is about to; empty where anyone may take it."""
    if lease.live:
        return lease.wanted_by if lease.wanted_by and not _forgotten(lease, policy) else lease.owner
    return lease.wanted_by if lease.wanted_seconds < 2 * policy.handover_seconds else ""


def _overdue(lease: Lease, policy: Policy) -> bool:
    """Whether the owner had its time to answer."""
    return policy.handover_seconds <= lease.wanted_seconds and not _forgotten(lease, policy)


def _forgotten(lease: Lease, policy: Policy) -> bool:
    """Whether the host that asked never came back for it."""
    return lease.wanted_seconds > 12 * policy.handover_seconds


def _moves(usable: Sequence[Lease], host: str, policy: Policy, counts: Counter[str], limit: int) -> list[Lease]:
    """Partitions of live owners to go for, each from the host that then has most, while that makes it more even."""
    by_owner: dict[str, list[Lease]] = {}
    for lease in usable:
        rested = lease.moved_seconds is None or lease.moved_seconds >= policy.dwell_seconds
        if lease.live and lease.owner != host and rested and _bound_for(lease, policy) == lease.owner:
            by_owner.setdefault(lease.owner, []).append(lease)
    moves: list[Lease] = []
    while len(moves) < limit:
        biggest = max((owner for owner in by_owner if by_owner[owner]), key=lambda owner: counts[owner], default="")
        if not biggest or counts[biggest] < counts[host] + 2:
            break
        moves.append(by_owner[biggest].pop())
        counts[biggest] -= 1
        counts[host] += 1
    return moves
