"""Several workers seen as one."""

from service.ops.merge import merge_metrics, merge_status

LIMITS = {"records": 160, "bytes": 512, "oldest_seconds": 600.0, "policy": "fail"}
"""Of one of two workers."""


def status(host, committed, oldest, *partitions):
    return {
        "host": host,
        "records": {"committed": committed},
        "retried": {"429": committed},
        "backlog": {"items": 2, "oldest_seconds": oldest, "paused": False, "paused_by": [], "limits": dict(LIMITS)},
        "partitions": [{"id": each} for each in partitions],
        "partitions_in_hub": 4,
        "draining": False,
        "faults": [],
    }


def test_numbers_are_summed_and_partitions_listed_together():
    merged = merge_status("replica", [status("a", 5, 1.0, "2", "10"), status("b", 7, 3.0, "0")])
    assert merged["host"] == "replica"
    assert merged["hosts"] == ["a", "b"]
    assert merged["records"] == {"committed": 12}
    assert merged["retried"] == {"429": 12}
    limits = merged["backlog"].pop("limits")
    assert merged["backlog"] == {"items": 4, "oldest_seconds": 3.0, "paused": False, "paused_by": []}
    assert limits == {"records": 320, "bytes": 1024, "oldest_seconds": 600.0, "policy": "fail"}
    assert [row["id"] for row in merged["partitions"]] == ["0", "2", "10"]
    assert merged["partitions_in_hub"] == 4


def test_metrics_with_the_same_labels_are_summed():
    page = (
        "# HELP sluice_records_committed_total Records.\n# TYPE sluice_records_committed_total counter\n"
        "sluice_records_committed_total 5.0\n"
        '# HELP sluice_epoch Epoch.\n# TYPE sluice_epoch gauge\nsluice_epoch{partition="%s"} 3.0\n'
    )
    merged = merge_metrics([page % "0", page % "1"]).decode()
    assert "sluice_records_committed_total 10.0" in merged
    assert 'sluice_epoch{partition="0"} 3.0' in merged
    assert 'sluice_epoch{partition="1"} 3.0' in merged
    assert merged.count("# TYPE sluice_records_committed_total counter") == 1
