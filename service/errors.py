"""Every error of ours, classed by what the caller does about it.

SluiceError
├── Retry              try again after `after_seconds`
├── SetupFault         credentials, network or names are wrong: stop taking, say so, try again; nothing is dead-lettered
├── LeaseLost          another host owns the partition now: stop this partition, write nothing more for it
└── Fatal              stop the process with `exit_code`
    ├── BadSettings        78: the settings cannot work; every fault is listed
    ├── BacklogExceeded    70: ALLOW_BACKLOG_OF or ALLOW_BACKLOG_TO was passed
    └── DeadLetterFlood    75: too many records are dead letters; the fault is in the set-up

SDK exceptions are translated into these once, at the edge (`source/`, `sink/`).
A record that can never be committed is no error but an outcome: see `sink/record.py`.
"""

from collections.abc import Sequence


class SluiceError(Exception):
    """The root of the tree."""


class Retry(SluiceError):
    """The service said no for now. Carries its own wait."""

    def __init__(self, message: str, after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.after_seconds = after_seconds


class SetupFault(SluiceError):
    """The set-up is wrong or not reachable, and a person has to mend it. Retried for ever; no record pays for it."""


class LeaseLost(SluiceError):
    """The partition belongs to another host, or to a later epoch of this one."""

    def __init__(self, partition: str, why: str) -> None:
        super().__init__(f"partition {partition} lost: {why}")
        self.partition = partition


class Fatal(SluiceError):
    """The process must end with `exit_code`."""

    exit_code = 1


class BadSettings(Fatal):
    """The settings cannot work. `faults` has one sentence for each, saying what to do."""

    exit_code = 78

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class BacklogExceeded(Fatal):
    """Cosmos has fallen too far behind the hub."""

    exit_code = 70


class DeadLetterFlood(Fatal):
    """So many records cannot be committed that the fault must be in the set-up, not in the records."""

    exit_code = 75
