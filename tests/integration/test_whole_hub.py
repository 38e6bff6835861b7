"""A hub of the size of the original sample's tests, cut to what a small machine can do."""

import pytest

from tests.support.stack import until

pytestmark = pytest.mark.proof


@pytest.mark.timeout(600)
def test_200000_records_over_16_partitions_and_15_ranges_and_a_second_run_redoes_nothing(make_stack, sluice, preload):
    stack = make_stack(partitions=16, physical_partitions=15)
    expected = preload(stack, 200_000, keys=70_000)
    first = sluice("run", "--env-file", str(stack.env_file))
    until(lambda: first.records()["committed"] >= 200_000, 300, "all committed", every=0.5, process=first)
    assert first.stop() == 0
    found = {document["id"]: document["number"] for document in stack.documents()}
    assert found == {name: body["number"] for name, body in expected.items()}
    second = sluice("run", "--env-file", str(stack.env_file))

    def at_the_end():
        rows = (second.status() or {"partitions": []})["partitions"]
        return len(rows) == 16 and all(row["lag"] == 0 for row in rows)

    until(at_the_end, 60, "every checkpoint at the end", process=second)
    assert second.records()["received"] == 0
