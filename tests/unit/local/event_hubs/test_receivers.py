from dataclasses import dataclass, field

import pytest

from service.amqp.errors import RESOURCE_LIMIT_EXCEEDED, STOLEN, AmqpError
from service.local.event_hubs.receivers import ReceiverGroup


@dataclass(eq=False)
class Reader:
    epoch: int | None
    receiver_name: str = "nil"
    detached: list[AmqpError] = field(default_factory=list)

    def detach(self, error):
        self.detached.append(error)

    def wake(self):
        pass


@pytest.mark.parametrize("epoch", [3, 4])
def test_an_equal_or_higher_epoch_steals(epoch):
    group, old, new = ReceiverGroup(), Reader(3, "old"), Reader(epoch, "new")
    group.admit(old)
    group.admit(new)
    assert group.receivers == [new]
    assert [error.condition for error in old.detached] == [STOLEN]
    assert f"New receiver 'new' with higher epoch of '{epoch}' is created" in old.detached[0].description


def test_a_lower_epoch_is_refused_and_disturbs_nobody():
    group, old = ReceiverGroup(), Reader(3)
    group.admit(old)
    with pytest.raises(AmqpError, match="with a higher epoch '3' already exists") as caught:
        group.admit(Reader(2))
    assert caught.value.condition == STOLEN
    assert group.receivers == [old]
    assert not old.detached


def test_without_epoch_five_may_read_and_no_more():
    group = ReceiverGroup()
    for number in range(5):
        group.admit(Reader(None, f"r{number}"))
    with pytest.raises(AmqpError, match=r"which is 5\. List of connected receivers - r0, r1, r2, r3, r4") as caught:
        group.admit(Reader(None))
    assert caught.value.condition == RESOURCE_LIMIT_EXCEEDED
    group.remove(group.receivers[0])
    group.admit(Reader(None))


def test_without_epoch_nobody_reads_beside_an_epoch():
    group = ReceiverGroup()
    group.admit(Reader(0))
    with pytest.raises(AmqpError, match="created with epoch of '0'") as caught:
        group.admit(Reader(None))
    assert caught.value.condition == STOLEN


def test_an_epoch_disconnects_all_who_read_without():
    group, old = ReceiverGroup(), [Reader(None), Reader(None)]
    for reader in old:
        group.admit(reader)
    group.admit(Reader(0))
    assert [len(reader.detached) for reader in old] == [1, 1]


def test_after_the_epoch_reader_has_gone_any_may_come():
    group, reader = ReceiverGroup(), Reader(9)
    group.admit(reader)
    group.remove(reader)
    group.admit(Reader(None))
    group.admit(Reader(1))
