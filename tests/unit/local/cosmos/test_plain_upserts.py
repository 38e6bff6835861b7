"""The short way for plain upserts does what the long way does, for any entries."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from service.local.cosmos.batch import serve_batch
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


def outcome(batches, *, short, minimal=False):
    server = CosmosServer(now=lambda: 1_800_000_000.0)
    container = server.add_container("db", "c", partition_key="/key")
    if not short:
        container.faults.fail_next(1, scope="operation", operation="Never")  # an armed fault turns the short way off
    headers = HEADERS | ({"prefer": "return=minimal"} if minimal else {})
    answers = []
    for batch in batches:
        request = Request("POST", ("dbs", "db", "colls", "c", "docs"), headers, orjson.dumps(batch), "http://x/")
        answers.append(orjson.loads(serve_batch(container, request).body))
    changes = [document.etag for document in container.store.newest_first()]
    return answers, container.documents(), list(container.write_log), changes, container.request_units()


@given(st.lists(st.lists(entries, min_size=1, max_size=12), min_size=1, max_size=4), st.booleans())
def test_both_ways_come_to_the_same(batches, minimal):
    assert outcome(batches, short=True, minimal=minimal) == outcome(batches, short=False, minimal=minimal)


def test_the_short_way_is_taken_for_what_is_plain(monkeypatch):
    monkeypatch.setattr("service.local.cosmos.batch.run", None)  # the long way
    batch = [
        {"operationType": "Upsert", "partitionKey": '["a"]', "resourceBody": {"id": str(n), "key": "a"}}
        for n in range(5)
    ]
    batch += [{**batch[0], "resourceBody": {"id": "deep", "key": "a", "list": [1, {"b": [2]}]}}]
    answers, documents, log, _, _ = outcome([batch, batch], short=True)
    assert [one["statusCode"] for answer in answers for one in answer] == [201] * 6 + [200] * 6
    assert (len(documents), len(log)) == (6, 12)
