"""How fast one range can be written: concurrency that follows throttling, and pacing by measured request units.

Pure: time is an argument. Sending what will be refused costs requests, CPU and time, and a batch that runs into the
limit has most of its operations refused, again and again. So once a range has refused something, it is sent no more per
second than it was seen to accept.

The service counts by seconds of its own, and a refusal tells when the next one begins. So from one such renewal to
another the range was used up by whole seconds, and what it accepted meanwhile is what it sells, however it was spread.
"""

from typing import Final

# How a range is probed once its rate is known: this much faster each second without a refusal, doubling up to the cap.
# A rate that rose (another client went away, throughput was raised) is so found again within seconds: twenty times as
# much in twelve of them.
_PROBE_FIRST: Final = 0.01
_PROBE_MOST: Final = 0.5
_MOST_RU: Final = 1e9
# Less time between two renewals says little about the rate. In more time than this the range was not used up all along.
_MEASURE_SECONDS: Final = 0.9
_SATURATED_SECONDS: Final = 2.5
# After the first refusal in a while: a probe or two too fast. The same is the most that a measure over more than one
# second can lower the rate: this process may have been held up in the first of them. What was used up in a single
# second is believed, step by step, and so is it while refusals go on without enough time to measure.
_STEP_BACK: Final = 0.985
_ONE_SECOND: Final = 1.5
_SLOWER: Final = 0.85
_SLOWER_EVERY_SECONDS: Final = 0.05
# Of what was measured; the rest is for what the measure misses (a batch more in one second than in the next).
_SAFETY: Final = 0.995
_LEARNING: Final = 0.2
# A batch may cost this many seconds of a range's rate: small enough that a second holds about ten of them.
_BATCH_SECONDS: Final = 0.1
# A wait is looked at again at least this often: the rate rises every second, and a debt is paid the sooner.
_LOOK_SECONDS: Final = 1.0
# What may be spent at once after a pause, in seconds of the rate. A process that was held up for a moment can make
# good for it within the service's second; much more would be refused when the pause lay across two of them.
_BURST_SECONDS: Final = 0.25


class Pace:
    """The pace of one range. Without a refusal it never waits."""

    __slots__ = (
        "_accepted",
        "_before_probe",
        "_mark",
        "_probe",
        "_probed_at",
        "_renewal",
        "_slowed_at",
        "_tokens",
        "_tokens_at",
        "_used",
        "rate",
        "unit_cost",
    )

    def __init__(self, now: float) -> None:
        self.rate: float | None = None
        """Request units per second that this range is sent; None as long as it has refused nothing."""
        self.unit_cost = 0.0
        """What an operation costs, learnt from answers; 0 before the first."""
        self._accepted = 0.0
        """Since `_mark`: the first use, then the latest renewal that was measured."""
        self._mark = now
        self._renewal: float | None = None
        """When the range has something to spend again; until then answers to what was sent before come in."""
        self._probe = _PROBE_FIRST
        self._probed_at = now
        self._before_probe = 0.0
        """The rate that the last probe went up from; 0 when there was none since the last refusal."""
        self._slowed_at = now
        self._tokens = 0.0
        self._tokens_at = now
        self._used = False

    def wait_seconds(self, now: float) -> float:
        """How long until the next batch may go, or until it is worth asking again: the rate may rise meanwhile."""
        if self.rate is None:
            return 0.0
        if self._renewal is not None and now >= self._renewal:
            self._measure(self.rate, self._renewal)
        self._refill(now)
        return min(_LOOK_SECONDS, max(0.0, -self._tokens / self.rate))

    def batch_limit(self, most: int) -> int:
        """How many operations a batch may have, so that it fits into the rate."""
        if self.rate is None or not self.unit_cost:
            return most
        return max(1, min(most, int(self.rate * _BATCH_SECONDS / self.unit_cost)))

    def spend(self, operations: int, now: float) -> float:
        """A batch goes: take what it will probably cost. Gives that, for `settle`."""
        if not self._used:
            self._used, self._mark = True, now
        cost = operations * self.unit_cost
        self._tokens -= cost
        return cost

    def settle(self, expected: float, charge: float, charged: int) -> None:
        """A batch came back: it cost `charge` for `charged` operations instead of what was expected."""
        # What was refused is not given back: or a refused batch would go again at once, to be refused again.
        self._tokens -= max(0.0, charge - expected)
        self._accepted += charge
        if charged:
            cost = charge / charged
            self.unit_cost = cost if not self.unit_cost else self.unit_cost + _LEARNING * (cost - self.unit_cost)

    def refused(self, now: float, wait_seconds: float) -> None:
        """The range said: too fast, come again after `wait_seconds`."""
        again_at = now + wait_seconds
        elapsed = again_at - self._mark
        step, self._probe, self._probed_at = self._probe, _PROBE_FIRST, again_at
        if self.rate is not None and self._before_probe:
            # The last probe went too far, perhaps by half. What was there before it was accepted for a second; what
            # lies between the two is looked for in smaller steps.
            self._probe = max(_PROBE_FIRST, step / 8)
            self.rate, self._before_probe = self._before_probe, 0.0
        if self.rate is None and not self._accepted:
            self._mark = again_at  # nothing is known of it yet, but that it is not now
        elif self.rate is None:
            # What went before was not counted against any rate. Perhaps it was not used up in the first second, so this
            # may be too much: the next measure tells.
            self._take_rate(self._accepted / max(1.0, elapsed) * _SAFETY, again_at)
        elif self._renewal is not None or elapsed >= _MEASURE_SECONDS:
            self._renewal = max(again_at, self._renewal or again_at)
        elif elapsed > 0 and now - self._slowed_at >= _SLOWER_EVERY_SECONDS:
            # Refused again and again: down, but not below what it did accept meanwhile.
            self.rate = max(self.rate * _SLOWER, min(self.rate, self._accepted / elapsed * _SAFETY))
            self._slowed_at = now

    def _measure(self, rate: float, renewal: float) -> None:
        elapsed = renewal - self._mark
        if elapsed > _SATURATED_SECONDS:
            measured = rate * _STEP_BACK
        else:
            least = rate * (_SLOWER if elapsed < _ONE_SECOND else _STEP_BACK)
            measured = max(self._accepted / max(1.0, elapsed) * _SAFETY, least)
        self._take_rate(measured, renewal)

    def _take_rate(self, rate: float, renewal: float) -> None:
        """From this renewal on it is the rate, and measured again."""
        self.rate = max(1.0, rate)
        self._accepted = self._tokens = 0.0
        self._mark = self._slowed_at = self._tokens_at = renewal
        self._renewal = None

    def _refill(self, now: float) -> None:
        if self.rate is None:
            return
        while now - self._probed_at >= 1.0:
            self._before_probe = self.rate
            self.rate = min(_MOST_RU, self.rate * (1 + self._probe))
            self._probe = min(_PROBE_MOST, self._probe * 2)
            self._probed_at += 1.0
        if now > self._tokens_at:
            self._tokens = min(self.rate * _BURST_SECONDS, self._tokens + (now - self._tokens_at) * self.rate)
            self._tokens_at = now


class Concurrency:
    """How many requests a range may have in flight: one more for each round without a refusal, half after one."""

    __slots__ = ("_halved_at", "limit", "most")

    def __init__(self, first: float, most: int) -> None:
        self.limit = first
        self.most = most
        self._halved_at = float("-inf")

    def answered(self, in_flight: int) -> None:
        """A request was wholly accepted. Only what was used is raised, so that idling is no licence to flood."""
        if in_flight + 1 >= int(self.limit):
            self.limit = min(float(self.most), self.limit + 1.0 / self.limit)

    def refused(self, now: float) -> None:
        """The range said: too fast. Requests that were in flight together count once."""
        if now - self._halved_at >= _MEASURE_SECONDS:
            self.limit = max(1.0, self.limit / 2)
            self._halved_at = now
