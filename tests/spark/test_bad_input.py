"""Bad input: a clear message each, and nothing half done that is called done."""

import io
import os
import subprocess
import sys

import fastavro
import pytest

from service.errors import DeadLetterFlood, SetupFault
from service.jobs import commands
from service.jobs.faults import BadInput
from service.local.event_hubs.capture_avro import SCHEMA


def avro(count, *, codec="null", first=0, body=None):
    rows = [
        {
            "SequenceNumber": n,
            "Offset": str(n),
            "EnqueuedTimeUtc": "11/16/2026 4:44:11 AM",
            "SystemProperties": {},
            "Properties": {},
            "Body": body or b'{"id":"d%d","key":"k","n":%d}' % (n, n),
        }
        for n in range(first, first + count)
    ]
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(SCHEMA), rows, codec=codec)
    return out.getvalue()


@pytest.fixture
def folder(world):
    """A folder of Capture files; gives a function that puts one there."""
    root = world.folder / "captured"

    def put(body, minute=0, partition="0"):
        path = root / f"ns/{world.name}/{partition}/2026/11/16/04/{minute:02d}/00.avro"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        return path

    put.root = root
    return put


@pytest.mark.parametrize("reader", ["jvm", "python"])
def test_a_truncated_file_is_left_out_and_its_unit_is_not_done(spark, world, folder, reader):
    folder(avro(10))
    cut = folder(avro(10, first=10)[:-5], minute=1)
    folder(b"", minute=2)
    options = world.backfill(world.source(path=str(folder.root), reader=reader))
    assert commands.backfill(options, world.settings()) == 3
    found = world.summary("backfill")
    assert not found["complete"]
    assert found["units_done"] == 0
    assert "cut off" in found["left_out"][str(cut)]
    assert len(found["empty"]) == 1
    assert len(world.found()) == 10
    cut.write_bytes(avro(10, first=10))
    assert commands.backfill(options, world.settings()) == 0
    assert world.summary("backfill")["run_id"] == found["run_id"]
    assert len(world.found()) == 20


def test_a_delete_holds_although_an_earlier_file_was_mended_after_it(spark, world, folder):
    whole = avro(10)
    mended = folder(whole[:-5])
    folder(avro(1, first=10, body=b'{"id":"d3","key":"k","n":0,"gone":true}'), minute=1)
    options = world.backfill(world.source(path=str(folder.root)), window_bytes=1)
    assert commands.backfill(options, world.settings()) == 3
    assert world.summary("backfill")["units_done"] == 1
    mended.write_bytes(whole)
    assert commands.backfill(options, world.settings()) == 0
    assert set(world.found()) == {f"d{n}" for n in range(10)} - {"d3"}


def test_strict_ends_before_anything_is_written(spark, world, folder):
    folder(avro(10))
    folder(avro(10, first=10)[:-5], minute=1)
    with pytest.raises(BadInput, match=r"--strict: .*01/00\.avro: it is cut off"):
        commands.backfill(world.backfill(world.source(path=str(folder.root), strict=True)), world.settings())
    assert world.documents() == []


def test_a_reconciliation_with_a_file_left_out_is_incomplete(spark, world, folder):
    folder(avro(5))
    folder(avro(5, first=5)[:-5], minute=1)
    assert commands.reconcile(world.reconcile(world.source(path=str(folder.root))), world.settings()) == 3
    assert "could not be read" in (world.folder / "reconcile" / "report.html").read_text()


def test_files_of_a_wrong_schema_are_named(spark, world, folder):
    out = io.BytesIO()
    schema = {"type": "record", "name": "Other", "fields": [{"name": "a", "type": "long"}]}
    fastavro.writer(out, fastavro.parse_schema(schema), [{"a": 1}])
    folder(out.getvalue())
    with pytest.raises(BadInput, match=r"none of the 1 files can be read.*SequenceNumber is missing"):
        commands.backfill(world.backfill(world.source(path=str(folder.root))), world.settings())


def test_mixed_codecs_are_read_together(spark, world, folder):
    folder(avro(10))
    folder(avro(10, first=10, codec="deflate"), minute=1)
    assert commands.backfill(world.backfill(world.source(path=str(folder.root))), world.settings()) == 0
    assert len(world.found()) == 20


def test_bodies_that_are_no_json_flood_into_a_clear_end(spark, world, folder):
    folder(avro(3000, body=b"no json"))
    settings = world.settings(deadletter_max_consecutive=100)
    with pytest.raises(DeadLetterFlood, match="set-up") as raised:
        commands.backfill(world.backfill(world.source(path=str(folder.root))), settings)
    assert commands.exit_code_of(raised.value) == 75


def test_another_path_format_is_asked_for(spark, world, folder):
    folder(avro(1)).rename(folder.root / "one.avro")
    with pytest.raises(BadInput, match=r"one\.avro.*--path-format"):
        commands.backfill(world.backfill(world.source(path=str(folder.root))), world.settings())


def test_a_container_that_is_not_there_and_a_wrong_key_are_told_apart(spark, world):
    with pytest.raises(BadInput, match="no such blob container"):
        commands.backfill(world.backfill(world.source(path="blob://nothing-here/")), world.settings())
    wrong = world.stack.servers.azurite.connection_string.replace("AccountKey=", "AccountKey=AAAA")
    with pytest.raises((BadInput, SetupFault), match=r"refuses access|does not accept"):
        commands.backfill(world.backfill(), world.settings(blob_connstring=wrong))


def test_a_cosmos_container_that_is_not_there_is_named(spark, world):
    world.fill(1)
    world.capture()
    with pytest.raises(SetupFault, match="has no container nowhere"):
        commands.backfill(world.backfill(), world.settings(cosmos_container="nowhere"))


def test_a_report_folder_that_cannot_be_written_is_refused_first(spark, world):
    (world.folder / "backfill").write_text("a file")
    with pytest.raises(BadInput, match="cannot be written"):
        commands.backfill(world.backfill(), world.settings())


def test_repair_without_a_reconciliation_is_refused(spark, world):
    with pytest.raises(BadInput, match="holds no reconciliation"):
        commands.repair(world.repair(), world.settings())


@pytest.mark.parametrize(("java_home", "message"), [(None, "no `java` on the PATH"), ("/nowhere", "no bin/java in it")])
def test_without_java_the_message_says_so(world, java_home, message):
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": "/nowhere"}
    if java_home:
        environment["JAVA_HOME"] = java_home
    arguments = [
        "backfill",
        "--env-file",
        str(world.env_file()),
        "--source",
        "capture",
        "--report",
        str(world.folder / "r"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "service.jobs", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
