"""A host that is stopped beyond its lease, and wakes: it must not touch what another owns by then."""

import signal

import pytest

from tests.support.stack import until

pytestmark = pytest.mark.proof


@pytest.mark.timeout(300)
def test_after_sigcont_the_old_owner_sends_nothing_to_cosmos_and_moves_no_checkpoint(make_stack, sluice, preload):
    # So slow that the first host holds a backlog when it is stopped.
    stack = make_stack(partitions=2, physical_partitions=1, throughput=400)
    preload(stack, 6_000)
    settings = {"LEASE_DURATION": "15s", "LEASE_RENEW": "3s", "CHECKPOINT_INTERVAL": "500ms"}
    old = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: (old.status() or {"backlog": {"items": 0}})["backlog"]["items"] > 500, 60, "backlog", process=old)
    old.signal(signal.SIGSTOP)
    stack.call(stack.container.set_throughput, 0)
    new = sluice("run", "--env-file", str(stack.env_file), **settings)
    until(lambda: len(stack.documents()) == 6_000, 120, "all documents", every=0.3, process=new)

    def checkpoints():
        return {row["id"]: row["checkpoint"]["sequence"] for row in new.status()["partitions"]}

    until(lambda: sorted(checkpoints().values()) == [2_999, 2_999], 30, "checkpointed", process=new)
    stack.call(stack.container.write_log.clear)
    old.signal(signal.SIGCONT)
    # It wakes, finds its leases gone, and asks for a share: half of the partitions may come back to it in order.
    until(lambda: old.status() is not None and old.status()["leases"]["lost"] >= 1, 60, "it knows", process=old)
    assert len(stack.call(lambda: list(stack.container.write_log))) == 0
    assert sum(len(process.status()["partitions"]) for process in (old, new)) <= 2
    assert min(checkpoints().values(), default=2_999) == 2_999
