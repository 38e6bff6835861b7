"""The latest record as Spark chooses it is the one that the guard would let win."""

import random

from service.jobs.records import NARROW, latest
from service.sink.stamp import Precedence, Stamp, compare


def test_spark_and_the_guard_agree_on_the_latest(spark):
    chance = random.Random(5)
    rows, stamps = [], {}
    for _ in range(400):
        name = f"d{chance.randrange(40)}"
        partition, sequence = chance.choice("012"), chance.randrange(200)
        seconds = sequence // 7  # never falls along a partition
        stamp = Stamp(chance.choice((1, 2)), partition, sequence, chance.randrange(3), seconds)
        stamps.setdefault(name, set()).add(stamp)
        place = (stamp.incarnation, partition, sequence, seconds * 1000)
        rows.append((*place, stamp.index, "upsert", '["k"]', name, seconds, None, None, "hash"))
    chosen = latest(spark.createDataFrame(rows, NARROW), 2).collect()
    assert len(chosen) == len(stamps)
    for row in chosen:
        best = Stamp(row["incarnation"], row["partition"], row["sequence"], row["index"], row["stamped"])
        assert all(compare(other, best) is not Precedence.NEWER for other in stamps[row["id"]])
