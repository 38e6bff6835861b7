"""What an answer of Cosmos means for a record: one table, for single operations and for whole requests.

Pure. The same status may mean different things: a 404 for one delete is its success, for a whole request it says that
the container is not there.
"""

from enum import Enum
from typing import Final


class Verdict(Enum):
    """What is to be done."""

    DONE = "done"
    THROTTLED = "throttled"
    """Too fast for this range: again after its wait, and slower."""
    RETRY = "retry"
    """For now it cannot be done: again after a wait, for ever."""
    MOVED = "moved"
    """The range is no more: read the ranges again, then send it where it belongs now."""
    DEAD = "dead"
    """It can never be done: to the dead letters."""
    SPLIT = "split"
    """Something in this request can never be done: halve it, until what is at fault stands alone."""
    SETUP = "set-up"
    """The set-up is wrong: nothing can be done before a person mends it."""
    CONFLICT = "conflict"
    """Guarded writes: the document is not as it was thought to be."""


class Step(Enum):
    """What kind of operation was sent."""

    UPSERT = "Upsert"
    CREATE = "Create"
    REPLACE = "Replace"
    DELETE = "Delete"
    READ = "Read"


NO_ANSWER: Final = 0
"""Status of a request that got none: the connection failed or the time ran out. It may have had its effect."""

# Documented sub-statuses.
WRITE_FORBIDDEN: Final = 3  # the account is failing over to another region
PARTITION_FULL: Final = 1014  # a logical partition has its 20 GB
RESPONSE_TOO_LARGE: Final = 3402  # the answers of the others filled the response; this one was not done
SESSION_NOT_AVAILABLE: Final = 1002  # of a 404: a replica is behind
CONTAINER_CHANGED: Final = 1024  # of a 400: the container of this name is not the one that was meant
_MOVED: Final = frozenset({1002, 1007, 1008})  # of a 410: the range was split, is being split, or is moving
_PROTOCOL_REFUSED: Final = frozenset({405, 406, 415, 501})
_CONFLICTS: Final = {
    Step.CREATE: frozenset({409}),
    Step.REPLACE: frozenset({404, 412}),
    Step.DELETE: frozenset({412}),
    Step.READ: frozenset({404}),
}


def judge_operation(step: Step, status: int, sub_status: int = 0) -> Verdict:
    """What one operation's own answer means."""
    if 200 <= status < 300 or (step is Step.DELETE and status == 404):
        return Verdict.DONE
    if status in _CONFLICTS.get(step, ()):
        return Verdict.CONFLICT
    verdict = _judge(status, sub_status)
    return Verdict.DEAD if verdict is Verdict.SPLIT else verdict


def judge_request(status: int, sub_status: int = 0) -> Verdict:
    """What an answer to a whole request means. A success is no verdict: each operation has its own."""
    if 200 <= status < 300:
        return Verdict.RETRY  # it was said to be done, but not for which: only doing it again is sure
    if status in _PROTOCOL_REFUSED:
        return Verdict.SPLIT
    return _judge(status, sub_status)


def _judge(status: int, sub_status: int) -> Verdict:  # noqa: PLR0911 - a table reads best as one
    match status, sub_status:
        case 429, _:
            return Verdict.THROTTLED
        case 410, sub if sub in _MOVED:
            return Verdict.MOVED
        case (403, 3) | (404, 1002) | (413, 3402):
            return Verdict.RETRY
        case 400, 1024:
            return Verdict.SETUP
        case (400 | 409 | 412 | 413 | 422, _) | (403, 1014):
            return Verdict.SPLIT
        case (401 | 403 | 404, _):
            return Verdict.SETUP
        case _:
            return Verdict.RETRY  # 408, 410, 424, 449, 5xx, no answer, and whatever the service may come to say


def may_mean_no_bulk(status: int) -> bool:
    """Whether a service that does not know the bulk protocol would answer a bulk request so."""
    return status == 400 or status in _PROTOCOL_REFUSED


def setup_text(status: int, sub_status: int) -> str:
    """A set-up fault in words: what happened, what it means, what to do."""
    what = {
        401: "Cosmos refuses the key or token (401). Check COSMOS_CONNSTRING, or the identity and its clock",
        403: "Cosmos forbids the write (403/{}). Check the firewall, and that the identity may write items",
        404: "The Cosmos database or container is not there (404). Check COSMOS_DATABASE and COSMOS_CONTAINER",
        400: "The Cosmos container was deleted and created anew (400/{})",
    }.get(status, "Cosmos refuses to work as it is set up ({}/{})")
    return (
        f"{what.format(sub_status) if status in {400, 403} else what.format(status, sub_status)}. Nothing is lost:"
        " records wait and are tried again."
    )
