"""Whether a stored checkpoint fits the hub."""

import pytest

from service.source.events import Hub
from service.source.hub import PartitionDescription
from service.source.leases import Checkpoint
from service.source.position import Fit, judge
from service.source.store import NOTHING_STORED, Stored

HUB = Hub("ns", "records", "$Default", 500)


def _partition(begin, last, *, empty=False):
    return PartitionDescription(begin, last, str(last), 0, empty)


@pytest.mark.parametrize(
    ("stored", "partition", "fit"),
    [
        (NOTHING_STORED, _partition(0, 99), Fit.NONE),
        (Stored(Checkpoint(50), 500), _partition(0, 99), Fit.FITS),
        (Stored(Checkpoint(50), None), _partition(0, 99), Fit.FITS),
        (Stored(Checkpoint(99), 500), _partition(0, 99), Fit.FITS),
        (Stored(Checkpoint(-1), 500), _partition(0, -1, empty=True), Fit.FITS),
        (Stored(Checkpoint(-1), 500), _partition(0, 99), Fit.FITS),
        (Stored(Checkpoint(49), 500), _partition(50, 99), Fit.FITS),
        (Stored(Checkpoint(48), 500), _partition(50, 99), Fit.GAP),
        (Stored(Checkpoint(98), 500), _partition(100, 99, empty=True), Fit.GAP),
        (Stored(Checkpoint(99), 500), _partition(100, 99, empty=True), Fit.FITS),
        (Stored(Checkpoint(100), 500), _partition(0, 99), Fit.AHEAD),
        (Stored(Checkpoint(100), None), _partition(0, 99), Fit.AHEAD),
        (Stored(Checkpoint(50), 499), _partition(0, 99), Fit.AHEAD),
    ],
)
def test_a_checkpoint_fits_lies_before_a_gap_or_is_of_another_life(stored, partition, fit):
    assert judge(stored, HUB, partition) is fit
