"""The short way for plain upserts does what the long way does, for any entries."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.local.cosmos.batch import serve_batch
from service.local.cosmos.errors import CosmosError
from service.local.cosmos.server import CosmosServer
from service.local.cosmos.wire import Request

HEADERS = {
    "x-ms-cosmos-is-batch-request": "true",
    "x-ms-cosmos-batch-atomic": "false",
    "x-ms-documentdb-partitionkeyrangeid": "0",
}

keys = st.sampled_from(["a", "b", "é", 5, None, True])
bodies = st.fixed_dictionaries(
    {"id": st.sampled_from(["1", "2", "x/y", "", " ", "é", 7, None]), "key": keys},
    optional={
        "ttl": st.sampled_from([5, -1, 0, "x"]),
        "_etag": st.just("mine"),
        "deep": st.recursive(
            st.integers(-(2**53), 2**53) | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=8
        ),
    },
)
entries = st.fixed_dictionaries(
    {"operationType": st.sampled_from(["Upsert", "Upsert", "Upsert", "Delete", "Create"])},
    optional={
        "partitionKey": keys.map(lambda key: orjson.dumps([key]).decode()) | st.sampled_from(["[", 5]),
        "resourceBody": bodies | st.just("text"),
        "id": st.just("1"),
        "ifMatch": st.just('"none"'),
    },
)


def outcome(payloads, *, short, minimal=False, ranges=1):
    server = CosmosServer(now=lambda: 1_800_000_000.0)
    container = server.add_container("db", "c", partition_key="/key", ranges=ranges)
    if not short:
        container.faults.fail_next(1, scope="operation", operation="Never")  # an armed fault turns the short way off
    headers = HEADERS | ({"prefer": "return=minimal"} if minimal else {})
    answers = []
    for payload in payloads:
        request = Request("POST", ("dbs", "db", "colls", "c", "docs"), headers, payload, "http://x/")
        try:
            answers.append(orjson.loads(serve_batch(container, request).body))
        except CosmosError as error:
            answers.append((error.status, error.sub_status))
    changes = [document.etag for document in container.store.newest_first()]
    return answers, container.documents(), list(container.write_log), changes, container.request_units()


@given(st.lists(st.lists(entries, min_size=1, max_size=12), min_size=1, max_size=4), st.booleans())
def test_both_ways_come_to_the_same(batches, minimal):
    payloads = [orjson.dumps(batch) for batch in batches]
    assert outcome(payloads, short=True, minimal=minimal) == outcome(payloads, short=False, minimal=minimal)


def operation(body, key=b'[\\"b\\"]'):
    return b'{"operationType":"Upsert","partitionKey":"%b","resourceBody":%b}' % (key, body)


PLAIN = operation(b'{"id":"plain","key":"b"}')
ALIKE = b'},{"operationType":"Upsert","partitionKey":"[\\"b\\"]","resourceBody":{"id":"inner","key":"b"}'


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(
            operation(b'{"id":"1","key":"b","list":[{"b":1' + ALIKE + b"}]}"), id="an operation in a document"
        ),
        pytest.param(operation(orjson.dumps({"id": "1", "key": "b", "text": ALIKE.decode()})), id="one in a text"),
        pytest.param(operation(b'{"id":"1","key":"b"} '), id="white space behind a document"),
        pytest.param(operation(b' {"id":"1","key":"b"}'), id="white space before a document"),
        pytest.param(b" " + PLAIN, id="white space between operations"),
        pytest.param(operation(b'{"id":"1","key":"c"}'), id="another key than it says"),
        pytest.param(operation(b'{"id":"1","key":"b"'), id="a document without its end"),
        pytest.param(operation(b'{"id":"1","key":"b"}}'), id="a brace too many"),
        pytest.param(operation(b"5"), id="a number"),
        pytest.param(operation(b"null"), id="null"),
        pytest.param(operation(b""), id="nothing"),
        pytest.param(b"", id="a comma too many"),
        pytest.param(operation(b'{"id":"1","key":"b"}', b"[\\u0022b\\u0022]"), id="a key in escapes"),
        pytest.param(operation(b'{"id":"1","key":"b\\"b"}', b'[\\"b\\\\\\"b\\"]'), id="a key with a quote"),
        pytest.param(operation(b'{"id":"1","key":"b\\n"}', b'[\\"b\n\\"]'), id="a key with a bare line feed"),
        pytest.param(operation(b'{"id":"1","key":"\xff"}', b'[\\"\xff\\"]'), id="a key that is no UTF-8"),
        pytest.param(operation(b'{"id":"1","key":"b"}', b"a"), id="a key without brackets"),
        pytest.param(operation(b'{"id":"1","key":""}', b'[\\"\\"]'), id="an empty key"),
        pytest.param(operation(b'{"id":"1","key":"b"}', b'[\\"]'), id="half a key"),
        pytest.param(operation(b'{"id":"1","key":"a"}', b'[\\"a\\"]'), id="another range"),
        pytest.param(operation(b'{"id":"1 ","key":"b"}'), id="an id that ends in a space"),
        pytest.param(operation(b'{"id":"1\\n","key":"b"}'), id="an id that ends in a line feed"),
        pytest.param(operation(b'{"id":"%b","key":"b"}' % (b"i" * 300)), id="a long id"),
        pytest.param(b",".join([PLAIN] * 99), id="as many as are taken"),
        pytest.param(b",".join([PLAIN] * 100), id="more than are taken"),
    ],
)
def test_both_ways_come_to_the_same_where_a_cut_could_go_wrong(second):
    payloads = [b"[" + PLAIN + b"," + second + b"]", b"[" + second + b"," + PLAIN + b"]", b"[" + second + b"]"]
    assert outcome(payloads, short=True, ranges=2) == outcome(payloads, short=False, ranges=2)


def test_of_a_name_that_comes_twice_the_last_value_counts():
    payload = b"[" + operation(b'{"id": "1", "key":"a", "key":"b"}') + b"]"
    for short in (True, False):
        _, documents, _, _, _ = outcome([payload], short=short, ranges=2)
        assert [(document["id"], document["key"]) for document in documents] == [("1", "b")]


def test_a_document_that_is_broken_leaves_nothing_of_its_request_behind():
    payload = b"[" + PLAIN + b"," + operation(b'{"id":"1","key":"b"') + b"]"
    answers, documents, log, _, _ = outcome([payload], short=True, ranges=2)
    assert (answers, documents, log) == ([(400, 0)], [], [])


def test_the_short_way_is_taken_for_what_is_plain(monkeypatch):
    monkeypatch.setattr("service.local.cosmos.batch._bulk", None)  # the long way
    batch = [
        {"operationType": "Upsert", "partitionKey": '["a"]', "resourceBody": {"id": str(n), "key": "a"}}
        for n in range(5)
    ]
    batch += [{**batch[0], "resourceBody": {"id": "deep", "key": "a", "list": [1, {"b": [2]}]}}]
    payload = orjson.dumps(batch)
    answers, documents, log, _, _ = outcome([payload, payload], short=True)
    assert [one["statusCode"] for answer in answers for one in answer] == [201] * 6 + [200] * 6
    assert (len(documents), len(log)) == (6, 12)
