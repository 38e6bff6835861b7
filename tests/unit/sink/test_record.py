"""From events to records: bytes pass through, rules are checked, and every fault has its reason."""

import gzip

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.sink.record import Decoder, DocumentOptions, Operation, unzip
from service.sink.routing import KeyKind, PartitionKeyDefinition
from service.sink.stamp import Stamp
from service.sink.transform import Transform
from service.source.events import Event, Hub, PartitionId

HUB = Hub("ns", "hub", "$Default", 1_700_000_000_123)
KEY = PartitionKeyDefinition.of("/key")
STAMP = b',"_sluice":{"incarnation":1700000000123,"partition":"3","sequence":7,"index":%d,"enqueued":1700000009}}'


def decode(text: bytes, definition=KEY, guarded=False, transform=None, event=None, **options):
    decoder = Decoder(DocumentOptions(**options), definition, guarded=guarded, transform=transform)
    event = event or Event(7, "700", 1_700_000_009_876, text, {})
    return decoder.decode(event, HUB, PartitionId("3"))


def one(text: bytes, **more):
    records = decode(text, **more)
    assert len(records) == 1
    return records[0]


def test_the_body_goes_out_byte_for_byte_with_the_stamp_at_its_end():
    body = '{"z":1.10, "n":123456789012345678901234567890 ,"id":"a","key":"k","u":"\\u00e9é"}'.encode()
    record = one(body)
    assert record.operation is Operation.UPSERT
    assert record.body == body[:-1] + STAMP % 0
    assert (record.id, record.key, record.index) == ("a", b'"[\\"k\\"]"', 0)


def test_space_around_and_a_byte_order_mark_are_no_harm():
    assert one(b'\xef\xbb\xbf {"id":"a","key":"k"}\r\n ').body == b'{"id":"a","key":"k"' + STAMP % 0


def test_a_stamp_that_is_there_already_is_replaced_and_nothing_else_changes():
    body = b'{"id":"a", "_sluice":{"sequence":[1,{"}":2}]} ,"key":"k","n":1.0}'
    assert one(body).body == b'{"id":"a","key":"k","n":1.0' + STAMP % 0


def test_no_stamp_if_none_is_wanted():
    assert one(b'{"id":"a","key":"k"}', stamp="").body == b'{"id":"a","key":"k"}'


def test_guarded_records_carry_their_stamp_as_a_value():
    assert one(b'{"id":"a","key":"k"}', guarded=True).stamp == Stamp(1_700_000_000_123, "3", 7, 0, 1_700_000_009)


values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists, max_leaves=5
)


@given(st.dictionaries(st.text(max_size=5), values))
def test_any_document_is_the_same_but_for_its_stamp(document):
    document |= {"id": "a", "key": "k"}
    written = orjson.loads(one(orjson.dumps(document)).body)
    stamp = written.pop("_sluice")
    document.pop("_sluice", None)
    assert written == document
    assert Stamp.parse(stamp) == Stamp(1_700_000_000_123, "3", 7, 0, 1_700_000_009)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the body is empty"),
        (b"{", "not JSON"),
        (b'{"id":"a","key":"k","x":NaN}', "not JSON"),
        (b'{"id":"a","key":"\xff"}', "not JSON"),
        (b"null", "the record is null, not an object"),
        (b'[{"id":"a","key":"k"}]', "the record is an array"),
        (b'"text"', "a string"),
        (b"1.5", "a number"),
        (b"true", "a boolean"),
        (b'{"key":"k"}', "the id /id is missing"),
        (b'{"id":5,"key":"k"}', "the id /id is not a string"),
        (b'{"id":"","key":"k"}', "is empty"),
        (b'{"id":"a/b","key":"k"}', "a character that Cosmos does not allow"),
        (b'{"id":"a ","key":"k"}', "a character that Cosmos does not allow"),
        (b'{"id":"' + b"x" * 1024 + b'","key":"k"}', "longer than 1023 bytes"),
        (b'{"id":"a"}', "the partition key /key is missing"),
        (b'{"id":"a","key":{}}', "the partition key /key is an object"),
        (b'{"id":"a","key":[1]}', "the partition key /key is an array"),
        (b'{"id":"a","key":"' + b"x" * 2049 + b'"}', "longer than 2048 bytes"),
        (b'{"id":"a","key":"k","x":"' + b"x" * 3_000_000 + b'"}', "Cosmos takes at most 2097152"),
        (b"\x1f\x8b\x08 nonsense", "not gzip"),
        (gzip.compress(b"{" + b" " * 40_000_000, mtime=0), "grows beyond"),
        (gzip.compress(b'{"id":"a","key":"k"}', mtime=0)[:-4], "cut off"),
        (b"[" * 100_000, "not JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_committed_says_why(body, reason):
    record = one(body)
    assert record.operation is Operation.POISON
    assert reason in record.reason


def test_other_amqp_bodies_are_poison():
    for kind in ("value", "sequence"):
        record = one(b"", event=Event(7, "700", 0, b"", {}, body_kind=kind))
        assert record.reason == f"the body is an AMQP {kind}, not data"


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("null", b'"[null]"'),
        ("true", b'"[true]"'),
        ("1", b'"[1]"'),
        ("1.0", b'"[1]"'),
        ("1.5", b'"[1.5]"'),
        ("9007199254740993", b'"[9007199254740992.0]"'),
    ],
)
def test_keys_of_every_kind(value, key):
    assert one(b'{"id":"a","key":%b}' % value.encode()).key == key


def test_hierarchical_and_nested_keys():
    record = one(b'{"id":"a","t":{"u":"x"},"n":2}', definition=PartitionKeyDefinition.of("/t/u", "/n"))
    assert record.key == b'"[\\"x\\",2]"'
    missing = one(b'{"id":"a","t":1,"n":2}', definition=PartitionKeyDefinition.of("/t/u", "/n"))
    assert missing.reason == "the partition key /t/u is missing"


def test_old_containers_take_short_keys_only():
    old = PartitionKeyDefinition.of("/key", kind=KeyKind.V1)
    assert "longer than 101 bytes" in one(b'{"id":"a","key":"%b"}' % (b"x" * 102), definition=old).reason


def test_ids_from_elsewhere_are_written_into_the_document():
    record = one(b'{"key":"k","device":{"serial":42},"id":"other"}', id="/device/serial")
    assert record.id == "42"
    assert orjson.loads(record.body)["id"] == "42"
    assert record.body.count(b'"id"') == 1
    assert one(b'{"key":"k"}', id="sequence").id == "1700000000123-3-7-0"


def test_an_array_gives_a_record_for_each_element_as_it_stood():
    records = decode(b' [ {"id":"a","key":1.10} , 5,{"id":"b","key":"]"}]', body="array")
    assert [record.operation for record in records] == [Operation.UPSERT, Operation.POISON, Operation.UPSERT]
    assert [record.index for record in records] == [0, 1, 2]
    assert records[0].body == b'{"id":"a","key":1.10' + STAMP % 0
    assert records[2].body == b'{"id":"b","key":"]"' + STAMP % 2


def test_an_array_at_a_path():
    body = b'{"a":{"r":[1]},"a":{"r":[{"id":"a","key":"k"}]}}'
    assert one(body, body="/a/r").body == b'{"id":"a","key":"k"' + STAMP % 0
    assert one(b'{"a":{}}', body="/a/r").reason == "/a/r is missing"
    assert one(b'{"a":5}', body="/a").reason == "/a is not an array"
    assert one(b"{}", body="array").reason == "the body is not an array"


def test_an_empty_array_is_dropped():
    assert one(b"[]", body="array").operation is Operation.DROP


def test_truth_at_a_path_makes_a_delete():
    assert one(b'{"id":"a","key":"k","gone":true}', delete="/gone").operation is Operation.DELETE
    for kept in (b"false", b"0", b'""', b"null"):
        assert one(b'{"id":"a","key":"k","gone":%b}' % kept, delete="/gone").operation is Operation.UPSERT
    assert one(b'{"id":"a","key":"k"}', delete="/gone").operation is Operation.UPSERT


def test_gzip_by_encoding_or_by_its_first_bytes():
    packed = gzip.compress(b'{"id":"a",', mtime=0) + gzip.compress(b'"key":"k"}', mtime=0)
    assert one(packed).id == "a"
    assert one(b"", event=Event(7, "700", 0, packed, {}, content_encoding="gzip")).id == "a"
    assert "not gzip" in one(b"", event=Event(7, "700", 0, b'{"id":"a"}', {}, content_encoding="gzip")).reason


def test_unzipping_stops_at_the_limit():
    assert unzip(gzip.compress(b"x" * 100, mtime=0), 100) == b"x" * 100
    with pytest.raises(Exception, match="grows beyond 99 bytes"):
        unzip(gzip.compress(b"x" * 100, mtime=0), 99)


def test_a_transform_replaces_splits_drops_and_fails():
    def work(document):
        match document["id"]:
            case "drop":
                return None
            case "split":
                return [{**document, "id": "x"}, {**document, "id": "y"}]
            case "fail":
                raise KeyError("missing")
            case "odd":
                return {"id": "a", "key": object()}
        return {**document, "new": True}

    transform = Transform(work)
    assert one(b'{"id":"drop","key":"k"}', transform=transform).operation is Operation.DROP
    assert [record.id for record in decode(b'{"id":"split","key":"k"}', transform=transform)] == ["x", "y"]
    assert orjson.loads(one(b'{"id":"a","key":"k"}', transform=transform).body)["new"] is True
    assert "the transform raised KeyError" in one(b'{"id":"fail","key":"k"}', transform=transform).reason
    assert "not JSON" in one(b'{"id":"odd","key":"k"}', transform=transform).reason
    mixed = decode(b'[{"id":"fail","key":"k"},{"id":"split","key":"k"}]', transform=transform, body="array")
    assert [(record.index, record.id) for record in mixed] == [(0, ""), (1, "x"), (2, "y")]


@given(st.lists(st.integers(-5000, 5000) | st.integers(0, 2**42), min_size=1, max_size=5))
def test_a_stamp_is_whole_whatever_time_the_events_have(times):
    decoder = Decoder(DocumentOptions(), KEY, guarded=True)
    for sequence, enqueued_ms in enumerate(times):
        event = Event(sequence, "", enqueued_ms, b'{"id":"a","key":"k"}', {})
        record = decoder.decode(event, HUB, PartitionId("0"))[0]
        assert Stamp.parse(orjson.loads(record.body)["_sluice"]) == record.stamp


def test_time_never_falls_along_a_partition_and_a_replay_begins_anew():
    decoder = Decoder(DocumentOptions(), KEY, guarded=True)

    def seconds(sequence, enqueued_ms):
        event = Event(sequence, "", enqueued_ms, b'{"id":"a","key":"k"}', {})
        return decoder.decode(event, HUB, PartitionId("0"))[0].stamp.enqueued

    assert [seconds(1, 5_000), seconds(2, 3_000), seconds(3, 6_000), seconds(1, 4_000)] == [5, 5, 6, 4]
