"""EVENTHUB_START, as a person writes it."""

import pytest

from service.source.events import PartitionId
from service.source.start import EARLIEST, LATEST, AtOffset, AtSequence, AtTime, StartPosition, parse_start


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", EARLIEST),
        (" Latest ", LATEST),
        ("2026-01-31T12:00:00Z", AtTime(1_769_860_800_000)),
        ("2026-01-31T13:00:00.250+01:00", AtTime(1_769_860_800_250)),
        ("2026-01-31", AtTime(1_769_817_600_000)),
    ],
)
def test_one_position_for_all_partitions(text, position):
    assert parse_start(text) == StartPosition(position)


def test_a_json_object_names_positions_by_partition_and_a_star_for_the_others():
    start = parse_start(
        '{"0": "latest", "1": 42, "2": {"sequence": 7}, "3": {"offset": "8589"}, '
        '"4": {"time": "2026-01-31"}, "*": "latest"}'
    )
    assert [start.of(PartitionId(str(each))) for each in range(6)] == [
        LATEST,
        AtSequence(42),
        AtSequence(7),
        AtOffset("8589"),
        AtTime(1_769_817_600_000),
        LATEST,
    ]


def test_partitions_that_are_not_named_start_at_the_oldest_event():
    assert parse_start('{"0": "latest"}').of(PartitionId("1")) == EARLIEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "{",
        '{"0": "soon"}',
        '{"0": -1}',
        '{"0": true}',
        '{"0": {"sequence": 1, "offset": "2"}}',
        '{"x": 1}',
        "[1]",
    ],
)
def test_what_cannot_be_understood_is_answered_with_a_sentence(text):
    with pytest.raises(ValueError, match=r"position|partition"):
        parse_start(text)
