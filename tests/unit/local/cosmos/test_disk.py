"""What is kept in a directory is there again after a restart."""

import pytest

from service.local.cosmos.execution import run
from service.local.cosmos.operations import Operation
from service.local.cosmos.server import CosmosServer


def write(server, container, kind, document_id, **body):
    key = container.rules.keys.of((body.get("key", "k"),))
    document = {"id": document_id, "key": "k"} | body
    outcome = run(container, Operation(kind, key, document_id, document), container.route(key))
    server.account.flush()
    return outcome


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "data"


@pytest.fixture
async def opened(directory):
    """Makes servers on the directory, and closes them in the end."""
    made = []

    def make():
        made.append(CosmosServer(data=directory))
        return made[-1]

    yield make
    for server in made:
        await server.stop()


async def restarted(server, opened):
    await server.stop()
    return opened()


async def test_documents_ranges_and_throughput_outlive_a_restart(directory, opened):
    server = opened()
    container = server.add_container("db", "c", partition_key="/key", ranges=2, throughput=4000)
    container.split(range_id="0")
    for number in range(20):
        write(server, container, "Upsert", str(number), n=number)
    write(server, container, "Upsert", "3", n=33)
    write(server, container, "Delete", "4")
    before = container.documents()
    again = (await restarted(server, opened)).container("db", "c")
    assert again.documents() == before
    assert again.get("3", "k")["n"] == 33
    assert [r.id for r in again.ranges.ranges] == [r.id for r in container.ranges.ranges]
    assert again.ranges.ranges[0].budget.rate == pytest.approx(4000 / 3)
    assert (again.rid, again.store.lsn >= container.store.lsn) == (container.rid, True)


async def test_etags_and_resource_ids_are_never_given_twice(directory, opened):
    server = opened()
    container = server.add_container("db", "c", partition_key="/key")
    write(server, container, "Create", "a")
    server = await restarted(server, opened)
    container = server.container("db", "c")
    write(server, container, "Create", "b")
    first, second = container.documents()
    assert first["_etag"] != second["_etag"]
    assert first["_rid"] != second["_rid"]


async def test_without_a_stop_nothing_that_was_answered_is_lost(directory, opened):
    server = opened()
    container = server.add_container("db", "c", partition_key="/key")
    for number in range(10):
        write(server, container, "Create", str(number))
    assert opened().container("db", "c").count() == 10


async def test_a_last_line_that_was_cut_off_is_left_out_and_then_mended(directory, opened):
    server = opened()
    container = server.add_container("db", "c", partition_key="/key")
    for number in range(3):
        write(server, container, "Create", str(number))
    await server.stop()
    (file,) = directory.glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-20])
    server = opened()
    container = server.container("db", "c")
    assert container.count() == 2
    write(server, container, "Create", "new")
    assert (await restarted(server, opened)).container("db", "c").count() == 3


async def test_a_long_history_is_shortened_at_the_next_start(directory, opened):
    server = opened()
    container = server.add_container("db", "c", partition_key="/key")
    for number in range(50):
        write(server, container, "Upsert", "same", n=number)
    server = await restarted(server, opened)
    (file,) = directory.glob("*.jsonl")
    assert file.read_bytes().count(b"\n") == 2  # the counters and the document
    assert server.container("db", "c").store.lsn == container.store.lsn
    assert server.container("db", "c").get("same", "k")["n"] == 49


async def test_a_shortened_history_keeps_the_order_of_changes(directory, opened):
    server = opened()
    container = server.add_container("db", "c", partition_key="/key")
    for document_id in ["first", "second", "third", *["second"] * 5, "first"]:
        write(server, container, "Upsert", document_id)
    server = await restarted(server, opened)  # shortens it
    again = (await restarted(server, opened)).container("db", "c")
    assert [one.id for one in again.store.newest_first()] == ["first", "second", "third"]
    assert [one["id"] for one in again.documents()] == ["first", "second", "third"]
    assert again.documents() == container.documents()


async def test_a_deleted_container_leaves_no_file(directory, opened):
    server = opened()
    server.add_container("db", "c", partition_key="/key")
    server.account.delete_database("db")
    assert list(directory.glob("*.jsonl")) == []
    assert (await restarted(server, opened)).account.databases == {}
