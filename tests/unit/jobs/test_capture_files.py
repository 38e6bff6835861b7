"""Capture's files: their names, their form, and what is wrong with them."""

import contextlib
import io
import subprocess
import sys
import zlib
from datetime import UTC, datetime

import fastavro
import fastavro._write
import pyarrow as pa
import pytest

from service.jobs.events import from_arrow, to_arrow
from service.jobs.faults import BadInput
from service.jobs.options import CAPTURE_NAMES
from service.jobs.plan import FilePart
from service.jobs.sources import avro_file
from service.jobs.sources.avro_file import BadFile
from service.jobs.sources.capture import list_capture, look_at_ends
from service.jobs.sources.capture_names import NameFormat
from service.jobs.storage import Blobs, Ends, Folder
from tests.support.unprivileged import unprivileged

PROPERTY = ["long", "double", "string", "bytes"]


def snappy_block(file, body, _level):
    """As Avro has it: length, packed bytes, CRC of the plain ones. fastavro's own needs another package."""
    block = pa.compress(body, "snappy", asbytes=True) + zlib.crc32(body).to_bytes(4, "big")
    fastavro.schemaless_writer(file, "bytes", block)


def capture(count, *, codec="null", union=("null", "bytes"), properties=PROPERTY, values=None):
    fields = [
        {"name": "SequenceNumber", "type": "long"},
        {"name": "Offset", "type": "string"},
        {"name": "EnqueuedTimeUtc", "type": "string"},
        {"name": "SystemProperties", "type": {"type": "map", "values": PROPERTY}},
        {"name": "Properties", "type": {"type": "map", "values": properties}},
        {"name": "Body", "type": list(union)},
    ]
    rows = [
        {
            "SequenceNumber": n,
            "Offset": str(n * 100),
            "EnqueuedTimeUtc": "11/16/2016 4:44:11 PM",
            "SystemProperties": {"content-type": "application/json"},
            "Properties": values or {"n": 1, "text": "a"},
            "Body": b'{"id":"a"}',
        }
        for n in range(count)
    ]
    out = io.BytesIO()
    fastavro._write.BLOCK_WRITERS["snappy"] = snappy_block
    schema = {"type": "record", "name": "EventData", "namespace": "Microsoft.ServiceBus.Messaging", "fields": fields}
    fastavro.writer(out, fastavro.parse_schema(schema), rows, codec=codec, sync_interval=200)
    return out.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy"])
@pytest.mark.parametrize("union", [("null", "bytes"), ("bytes", "null")])
def test_sound_files_of_either_codec_and_any_order_of_unions_are_read(tmp_path, codec, union):
    path = tmp_path / "f.avro"
    path.write_bytes(capture(10, codec=codec, union=union, properties=["string", "bytes", "double", "long"]))
    assert avro_file.check(path) == 10
    events = [event for some in avro_file.read(path, 3) for event in some]
    assert [event.sequence for event in events] == list(range(10))
    assert events[0].enqueued_ms == int(datetime(2016, 11, 16, 16, 44, 11, tzinfo=UTC).timestamp() * 1000)
    assert events[0].content_type == "application/json"
    assert events[0].properties == {"n": 1, "text": "a"}


def test_a_property_may_be_null(tmp_path):
    path = tmp_path / "f.avro"
    path.write_bytes(capture(2, properties=[*PROPERTY, "null"], values={"n": 1, "nothing": None}))
    events = [event for some in avro_file.read(path, 100) for event in some]
    assert events[0].properties == {"n": 1, "nothing": None}
    (_, _, event), _ = from_arrow(to_arrow(1, "0", events))
    assert event.properties == {b"n": 1, b"nothing": None}


def test_a_file_cut_at_any_byte_is_never_taken_for_a_whole_one(tmp_path):
    whole = capture(6)
    path = tmp_path / "f.avro"
    ends = []
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        with contextlib.suppress(BadFile):
            ends.append(avro_file.check(path))
    # Only at the end of a block is there no telling: the events of whole blocks are then all there are.
    assert len(ends) == len(set(ends)) <= 6


def test_a_block_of_another_check_sum_is_seen(tmp_path):
    path = tmp_path / "f.avro"
    body = capture(6, codec="snappy")
    path.write_bytes(body[:-17] + bytes([body[-17] ^ 255]) + body[-16:])
    assert avro_file.check(path) == 6
    with pytest.raises(BadFile, match="another check sum"):
        list(avro_file.read(path, 100))


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy"])
def test_garbage_between_sound_ends_has_its_reason(tmp_path, codec):
    path = tmp_path / "f.avro"
    path.write_bytes(with_garbage(capture(50, codec=codec)))
    assert avro_file.check(path) == 50
    with pytest.raises(BadFile, match=r"cannot be decoded|damaged"):
        list(avro_file.read(path, 100))


def with_garbage(file):
    """The file with other bytes in its last block; the marks around it are as they were."""
    mark = file[-16:]
    begin = file.rindex(mark, 0, -16) + 16
    return file[: begin + 8] + b"\xff" * (len(file) - 16 - begin - 8) + mark


def test_a_damaged_block_is_seen(tmp_path):
    body = bytearray(capture(6))
    body[-1] ^= 255
    (tmp_path / "f.avro").write_bytes(body)
    with pytest.raises(BadFile, match="does not end as it should"):
        avro_file.check(tmp_path / "f.avro")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"PK\x03\x04", "no Avro file"),
        (capture(1, codec="bzip2"), "codec is bzip2"),
        (capture(1).replace(b"SequenceNumber", b"SequenceNumbxx"), "SequenceNumber is missing"),
        (capture(1)[:40], "cut off"),
    ],
)
def test_a_wrong_beginning_has_its_reason(head, message):
    with pytest.raises(BadFile, match=message):
        avro_file.check_ends(Ends(head, head[-16:], len(head)))


@pytest.mark.parametrize("place", ["folder", "blobs"])
def test_the_ends_of_a_file_say_whether_it_is_cut_off(tmp_path, azurite, blob_container_name, place):
    """What can be told without reading it whole; of a file of 100 KB the two ends are apart."""
    files = {
        "whole": capture(1200),
        "cut": capture(1200)[:-5],
        "idle": capture(0),
        "empty": b"",
        "short": capture(1),
    }
    if place == "folder":
        for name, body in files.items():
            (tmp_path / name).write_bytes(body)
        store, root = Folder(str(tmp_path)), f"{tmp_path}/"
    else:
        store, root = Blobs(blob_container_name, "", connection_string=azurite), ""
        with store.client() as client:
            client.create_container()
            for name, body in files.items():
                client.upload_blob(name, body)
    assert len(files["whole"]) > 100_000
    faulty, idle = look_at_ends(store, [FilePart(root + name, len(body), "v") for name, body in files.items()])
    assert [(each.name, each.why) for each in faulty] == [(root + "cut", "it is cut off: its last block is not whole")]
    assert idle == [root + "idle", root + "empty"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("11/16/2016 4:44:11 PM", 1479314651000),
        ("1/2/2026 12:00:00 AM", 1767312000000),
        ("2026-01-02T00:00:00Z", 1767312000000),
        ("2026-01-02T00:00:00.5", 1767312000500),
    ],
)
def test_times_of_both_forms(text, expected):
    assert avro_file.enqueued_ms(text) == expected


def test_names_say_partition_and_time():
    name = NameFormat(CAPTURE_NAMES).parse("deep/down/ns/hub/12/2026/11/16/02/03/04.avro")
    assert name is not None
    assert (name.hub, name.partition) == ("hub", "12")
    assert name.at == datetime(2026, 11, 16, 2, 3, 4, tzinfo=UTC).timestamp()
    other = NameFormat("{EventHub}/y={Year}/{Month}_{Day}_{Hour}_{Minute}_{Second}_{Namespace}_{PartitionId}")
    found = other.parse("hub/y=2026/11_16_02_03_04_ns_7.avro")
    assert found is not None
    assert found.partition == "7"
    assert NameFormat(CAPTURE_NAMES).parse("ns/hub/12/2026/13/16/02/03/04.avro") is None


@pytest.mark.parametrize("text", ["{Namespace}/{EventHub}", CAPTURE_NAMES + "/{Year}", CAPTURE_NAMES + "/{Week}"])
def test_a_name_format_that_event_hubs_would_not_take_is_refused(text):
    with pytest.raises(BadInput, match="no archiveNameFormat"):
        NameFormat(text)


def put(folder, partition, at, body=b"x"):
    path = folder / "ns" / "hub" / partition / at.replace("-", "/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".avro").write_bytes(body)


def test_files_are_pruned_by_the_time_in_their_names_and_empty_ones_are_named(tmp_path):
    for hour in ("01", "05", "09", "13"):
        put(tmp_path, "0", f"2026-01-01-{hour}-00-00")
    put(tmp_path, "1", "2026-01-01-05-00-00", b"")
    since, until = (datetime(2026, 1, 1, hour, tzinfo=UTC).timestamp() for hour in (5, 9))
    found = list_capture(Folder(str(tmp_path)), NameFormat(CAPTURE_NAMES), since, until)
    assert [part.name[-12:-8] for part in found.parts] == ["5/00", "9/00"]
    assert len(found.empty) == 1
    assert found.hubs == ("hub",)


def test_files_of_another_format_are_refused_by_name(tmp_path):
    put(tmp_path, "0", "2026-01-01-01-00-00")
    (tmp_path / "stray.avro").write_bytes(b"x")
    with pytest.raises(BadInput, match=r"stray\.avro.*--path-format"):
        list_capture(Folder(str(tmp_path)), NameFormat(CAPTURE_NAMES), None, None)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadInput, match="there is no"):
        Folder(str(tmp_path / "nowhere")).list()


def unprivileged_python(code):
    """The last line that a program says which has no more rights than its user."""
    command = [*unprivileged(), sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def test_a_folder_without_permission_is_named(tmp_path):
    put(tmp_path, "0", "2026-01-01-01-00-00")
    closed = tmp_path / "ns" / "hub"
    closed.chmod(0)
    said = unprivileged_python(f"from service.jobs.storage import Folder; Folder({str(tmp_path)!r}).list()")
    closed.chmod(0o755)
    assert said.endswith(f"BadInput: --path: {closed} may not be read: Permission denied. Check its permissions.")


def test_a_file_without_permission_is_faulty_to_the_look_and_to_both_readers(tmp_path):
    closed = tmp_path / "00.avro"
    closed.write_bytes(capture(1))
    closed.chmod(0)
    said = unprivileged_python(
        "from pathlib import Path\n"
        "from service.jobs.plan import FilePart\n"
        "from service.jobs.sources import by_file, capture\n"
        "from service.jobs.storage import Folder\n"
        f"store, part = Folder({str(tmp_path)!r}), FilePart({str(closed)!r}, 1, 'v')\n"
        "(look,), _ = capture.look_at_ends(store, [part])\n"
        "jvm = capture.CaptureReader(store, None, 1, 'avro')._on_disk(part, Path())\n"
        "(rows,) = by_file._read_part(part, store, 1, capture._read_one)\n"
        "print([look.why, jvm.why, rows.column('body')[0].as_py().decode()])\n"
    )
    assert said == str(
        [
            f"{closed} may not be read: Permission denied. Check its permissions.",
            "it may not be read: Permission denied. Check its permissions.",
            "it may not be read: Permission denied. Check its permissions.",
        ]
    )
