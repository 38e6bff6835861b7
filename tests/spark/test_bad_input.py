"""Bad input: a clear message each, and nothing half done that is called done."""

import io
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import fastavro
import pytest
from azure.storage.blob import AccountSasPermissions, BlobServiceClient, ResourceTypes, generate_account_sas

from service.errors import DeadLetterFlood, SetupFault
from service.jobs import commands, hadoop_azure, source
from service.jobs.faults import BadInput
from service.jobs.storage import Blobs
from service.local.event_hubs.capture_avro import SCHEMA
from tests.support.unprivileged import unprivileged


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


def test_what_only_sparks_reader_finds_wrong_is_left_out_by_the_other(spark, world, folder):
    """Garbage between sound ends: seen by no look at the frame, but by whoever decodes it."""
    whole = avro(400)
    folder(avro(10, first=400), minute=1)
    damaged = folder(whole[:2000] + b"\xff" * 500 + whole[2500:])
    options = world.backfill(world.source(path=str(folder.root), reader="jvm"))
    assert commands.backfill(options, world.settings()) == 3
    assert "cannot be decoded" in world.summary("backfill")["left_out"][str(damaged)]
    assert world.summary("backfill")["units_done"] == 0
    damaged.write_bytes(whole)
    assert commands.backfill(options, world.settings()) == 0
    assert len(world.found()) == 410


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


def job(world, *arguments, java=True, **environment):
    """A backfill by a process of its own, with no more rights than its user has."""
    command = [sys.executable, "-m", "service.jobs", "backfill", "--env-file", str(world.env_file())]
    command += ["--source", "capture", "--report", str(world.folder / "backfill"), *arguments]
    given = {name: value for name, value in os.environ.items() if java or name != "JAVA_HOME"} | environment
    done = subprocess.run([*unprivileged(), *command], env=given, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.proof
def test_a_file_without_permission_is_left_out_and_named(world, folder):
    """A whole job; what it does about such a file: unit/jobs/test_capture_files.py."""
    folder(avro(10))
    closed = folder(avro(10, first=10), minute=1)
    closed.chmod(0)
    done = job(world, "--path", str(folder.root), "--master", "local[1]", "--incarnation", "1")
    assert done.returncode == 3, done.stderr
    assert f"left out: {closed}: " in done.stdout
    assert "it may not be read: Permission denied. Check its permissions." in done.stdout
    assert not world.summary("backfill")["complete"]
    assert len(world.found()) == 10


def test_blobs_that_may_be_listed_but_not_read_are_named_and_nothing_is_written(spark, world, monkeypatch):
    """With a signature that lacks the right to read; the rest of the account is as before."""
    world.fill(10)
    world.capture()
    listing = signed(world.settings().blob_connstring.get_secret_value(), AccountSasPermissions(list=True))
    real = source.open_store

    def open_store(path, settings):
        store = real(path, settings)
        return replace(store, connection_string=listing) if path.startswith("blob://capture") else store

    monkeypatch.setattr(source, "open_store", open_store)
    with pytest.raises(BadInput, match=r"none of the 2 files can be read; .*\.avro: .*refuses access"):
        commands.backfill(world.backfill(), world.settings())
    assert world.documents() == []


def test_without_hadoops_file_system_no_signature_is_asked_for(spark, monkeypatch):
    """An identity may lack the right to sign, and need not have it then."""
    monkeypatch.setattr(hadoop_azure, "access_to", lambda _: pytest.fail("asked"))
    assert not hadoop_azure.opens(spark, Blobs("capture", "", "https://nowhere.invalid"), "0.avro")


def test_an_account_that_may_not_be_read_at_all_ends_it_at_once(spark, world):
    world.fill(10)
    world.capture()
    writing = signed(
        world.settings().blob_connstring.get_secret_value(), AccountSasPermissions(write=True, create=True, list=True)
    )
    with pytest.raises((BadInput, SetupFault), match="refuses access"):
        commands.backfill(world.backfill(), world.settings(blob_connstring=writing))
    assert world.documents() == []


def signed(connection_string, rights):
    """A connection string with a signature for these rights instead of the key."""
    with BlobServiceClient.from_connection_string(connection_string) as client:
        name, key = client.account_name, client.credential.account_key
        kinds = ResourceTypes(service=True, container=True, object=True)
        signature = generate_account_sas(name, key, kinds, rights, datetime.now(UTC) + timedelta(hours=1))
        return f"BlobEndpoint={client.url.rstrip('/')};SharedAccessSignature={signature}"


@pytest.mark.parametrize(("java_home", "message"), [(None, "no `java` on the PATH"), ("/nowhere", "no bin/java in it")])
def test_without_java_the_message_says_so(world, java_home, message):
    environment = {"PATH": "/nowhere"} | ({"JAVA_HOME": java_home} if java_home else {})
    done = job(world, java=False, **environment)
    assert done.returncode == 1
    assert message in done.stderr
