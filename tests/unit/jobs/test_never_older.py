"""A newer document is never overwritten: the jobs' writers beside a live one on the same documents.

On a virtual clock, over a container that throttles, splits, loses answers, and has every write in its log. Two writers
of the same history work at a time, as when the last tasks of a killed run end beside those of the next.
"""

import asyncio
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from service.jobs.writer import job_options
from service.sink.lane import BatchOptions
from service.sink.options import SinkOptions
from service.sink.record import DocumentOptions
from service.sink.stamp import Precedence, Stamp, compare
from tests.simulation.loop import simulate
from tests.simulation.memory_cosmos import MemoryContainer, Trouble
from tests.simulation.sink.parts import Feeder, event, ownership, running

BOUND = 1000
"""The live consumer's checkpoint: history lies below it, what the consumer writes beyond."""
DOCUMENTS = DocumentOptions(delete="/gone")
LIVE = SinkOptions(batch=BatchOptions(wait_seconds=0.05), retry_wait_seconds=0.1)
KINDS = ("plain", "ends", "goes", "bare")
"""A document that is only written; one whose history ends with a delete; one that the consumer deletes; and one that
somebody made by hand, without a stamp."""

troubles = st.builds(
    Trouble,
    **{
        name: st.sampled_from((0.0, 0.05, 0.2))
        for name in (
            "throttle_operation",
            "throttle_request",
            "lost_before",
            "lost_after",
            "short_answer",
            "foreign_write",
        )
    },
    delay_seconds=st.sampled_from(((0.001, 0.002), (0.005, 0.1))),
)
numbers = st.lists(st.integers(0, 11), min_size=1, max_size=60)
"""Documents in the order of their events."""


@given(st.integers(0, 2**32), numbers, numbers, troubles, st.booleans())
def test_no_document_ever_goes_back(seed, history, later, trouble, guarded):
    async def main():
        random = Random(seed)
        container = MemoryContainer(random, ranges=3, trouble=trouble)
        for number in range(12):
            if kind(number) == "bare":
                container.documents[f'["k{number % 3}"]', f"d{number}"] = {"id": f"d{number}", "_etag": "by hand"}
        live = SinkOptions(batch=LIVE.batch, retry_wait_seconds=0.1, guarded=guarded)
        async with (
            running(container, options=job_options(LIVE), seed=1) as one,
            running(container, options=job_options(LIVE), seed=2) as two,
            running(container, options=live, seed=3) as consumer,
        ):
            ended = {number: at for at, number in enumerate(history)}
            old = [(at, number, kind(number) == "ends" and ended[number] == at) for at, number in enumerate(history)]
            new = [(BOUND + at, number, kind(number) == "goes" and at % 2 == 0) for at, number in enumerate(later)]
            await asyncio.gather(
                feed(one, old, random, guarded=True),
                feed(two, old, random, guarded=True),
                feed(consumer, new, random, guarded=guarded),
                split(container, random),
            )
        check(container)

    simulate(main, seed)


def kind(number):
    return KINDS[number % len(KINDS)]


async def feed(sink, events, random, *, guarded):
    """A document's events are all of one partition, in order."""
    feeder = Feeder(sink, DOCUMENTS, guarded=guarded)
    owners = {name: ownership(name) for name in "01"}
    for sequence, number, gone in events:
        body = {"id": f"d{number}", "key": f"k{number % 3}", "n": sequence, "gone": gone}
        feeder.feed_event(event(sequence, body), owners[str(number % 2)])
        await asyncio.sleep(random.random() * 0.02)
    await feeder.drain()


async def split(container, random):
    await asyncio.sleep(random.random())
    container.split(5)


def check(container):
    """Over the whole log: no stamp is older than the one before, and what has none is nobody's but the consumer's."""
    last = {}
    for write in container.log:
        which = kind(int(write.id[1:]))
        if write.step == "Delete":
            stamp = last.pop(write.id, None)
            if which == "ends":
                assert stamp is None or stamp.sequence < BOUND, f"{write.id}: history deleted what is newer"
            continue
        stamp = Stamp.parse(write.body["_sluice"])
        assert stamp is not None
        if write.id in last:
            assert compare(stamp, last[write.id]) is not Precedence.OLDER, f"{write.id} went back to {stamp}"
        elif which == "bare":
            assert stamp.sequence >= BOUND, f"{write.id}: history was written over what somebody made by hand"
        last[write.id] = stamp
    for (_, name), document in container.documents.items():
        newest = last.get(name)
        assert newest is None or document["_sluice"]["sequence"] == newest.sequence
