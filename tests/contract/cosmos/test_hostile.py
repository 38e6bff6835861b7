"""Bytes made to hurt: no crash, no hang, no effect on others, bounded memory, and the protocol's own error."""

import asyncio
import contextlib
import gc
import random

import orjson
import psutil
import pytest

from tests.contract.cosmos.raw import raw_client, upsert

SEED = 20161116
INPUTS = 10_000


@pytest.fixture
def container(server):
    return server.add_container("db", "items", partition_key="/key", ranges=2)


@pytest.fixture
async def raw(server, container):
    async with raw_client(server) as client:
        yield client


def hostile(choose, headers):
    """One input: noise, or a right request that is cut, changed or lies about its length."""
    signed = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    body = orjson.dumps([upsert(1, "k")])
    good = (
        f"POST /dbs/db/colls/items/docs HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{signed}\r\n"
    ).encode() + body
    match choose.randrange(6):
        case 0:
            return choose.randbytes(choose.randrange(1, 400))
        case 1:
            return good[: choose.randrange(1, len(good))]
        case 2:
            changed = bytearray(good)
            for _ in range(choose.randrange(1, 10)):
                changed[choose.randrange(len(changed))] = choose.randrange(256)
            return bytes(changed)
        case 3:
            return good.replace(
                b"Content-Length: ", b"Content-Length: " + choose.choice([b"9", b"-", b"x", b"99999999"])
            )
        case 4:
            length = choose.choice(
                [b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"Expect: 100-continue\r\n"]
            )
            return good.replace(b"Host:", length + b"Host:") + choose.randbytes(20)
        case _:
            return good.replace(
                b"/docs", choose.choice([b"/\x00", b"/%00", b"/%zz", b"/../..", b"/docs/" + b"a" * 40_000])
            )


async def throw(port, data, patience=5.0):
    """What the server answers to these bytes, if it does so in time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        async with asyncio.timeout(patience):
            return await reader.read(65_536)
    except (ConnectionError, TimeoutError):
        return b""
    finally:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_ten_thousand_hostile_inputs_leave_the_server_as_it_was(server, raw, container):
    choose = random.Random(SEED)
    port = int(server.endpoint.rstrip("/").rpartition(":")[2])
    headers = raw.headers("POST", "docs", raw.link)
    await asyncio.gather(*(throw(port, hostile(choose, headers)) for _ in range(50)))
    gc.collect()
    before = psutil.Process().memory_info().rss
    for _ in range(INPUTS // 50):
        answers = await asyncio.gather(*(throw(port, hostile(choose, headers), 0.02) for _ in range(50)))
        assert not any(b" 500 " in answer.partition(b"\r\n")[0] for answer in answers)
    gc.collect()
    assert psutil.Process().memory_info().rss - before < 50 * 1024 * 1024
    key = {"x-ms-documentdb-partitionkey": '["k"]'}
    status, _, _ = await raw.post({"id": "alive", "key": "k"}, **key)
    assert status == 201


async def test_noise_gets_an_error_in_the_services_own_form(server, container):
    port = int(server.endpoint.rstrip("/").rpartition(":")[2])
    answer = await throw(port, b"\x16\x03\x01 this is no HTTP at all\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    assert orjson.loads(body)["code"] == "BadRequest"


async def test_a_body_in_chunks_is_read_whole_and_beyond_the_limit_is_413(server, raw, container):
    port = int(server.endpoint.rstrip("/").rpartition(":")[2])
    signed = raw.headers("POST", "docs", raw.link) | {"x-ms-documentdb-partitionkey": '["k"]'}
    lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    head = f"POST /{raw.link}/docs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n{lines}\r\n".encode()
    body = orjson.dumps({"id": "in-chunks", "key": "k", "padding": "x" * 200_000})
    parts = [body[at : at + 70_000] for at in range(0, len(body), 70_000)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    assert b" 201 " in (await throw(port, head + chunks + b"0\r\n\r\n")).partition(b"\r\n")[0]
    assert len(container.get("in-chunks", "k")["padding"]) == 200_000
    endless = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    assert b" 413 " in (await throw(port, head + endless * 80)).partition(b"\r\n")[0]


async def test_a_body_beyond_the_limit_is_413_without_being_read(server, raw, container):
    port = int(server.endpoint.rstrip("/").rpartition(":")[2])
    answer = await throw(
        port, b"POST /dbs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 1000
    )
    assert b" 413 " in answer.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"id": "a", "key": NaN}',
        b'{"id": "a", "key": "\\ud800"}',
        b'{"id": 5, "key": "k"}',
        b'{"id": "", "key": "k"}',
        b'{"id": "a/b", "key": "k"}',
        b'{"id": "a ", "key": "k"}',
        b'{"id": "' + b"a" * 1024 + b'", "key": "k"}',
        b'{"key": "k"}',
        b'{"id": "a", "key": "other"}',
        b'{"id": "a", "key": "k", "ttl": 0}',
        b'{"id": "a", "key": "k", "ttl": "x"}',
        b'{"id": "a", "key": "k", "deep": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id": "a", "key": "k", "deep": ' + b"[" * 600 + b"]" * 600 + b"}",
    ],
    ids=lambda body: repr(body[:30]),
)
async def test_a_body_that_is_no_document_is_400(raw, container, body):
    status, _, answer = await raw.post(body, **{"x-ms-documentdb-partitionkey": '["k"]'})
    assert (status, answer["code"]) == (400, "BadRequest")
    assert container.count() == 0


async def test_a_document_beyond_2_mb_is_413(raw, container):
    body = orjson.dumps({"id": "a", "key": "k", "text": "x" * (2 * 1024 * 1024)})
    status, _, answer = await raw.post(body, **{"x-ms-documentdb-partitionkey": '["k"]'})
    assert (status, answer["code"]) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ms-documentdb-partitionkey": "k"},
        {"x-ms-documentdb-partitionkey": '["a","b"]'},
        {"x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true"},
        {"x-ms-cosmos-is-batch-request": "true"},
    ],
    ids=repr,
)
async def test_headers_that_name_no_key_are_400(raw, headers):
    status, _, answer = await raw.post({"id": "a", "key": "k"}, **headers)
    assert (status, answer["code"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-ms-max-item-count", "many"),
        ("x-ms-max-item-count", "0"),
        ("x-ms-continuation", "not a token"),
        ("x-ms-continuation", "-RID:~AAAA#RT:1"),
    ],
)
async def test_bad_paging_headers_are_400(raw, name, value):
    marks = {"x-ms-documentdb-isquery": "true", "x-ms-documentdb-query-enablecrosspartition": "true"}
    status, _, _ = await raw.post({"query": "SELECT * FROM c"}, **(marks | {name: value}))
    assert status == 400


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"authorization": ""}, 401),
        ({"authorization": "Basic abc"}, 401),
        ({"authorization": "type%3Dmaster%26ver%3D1.0%26sig%3Dwrong"}, 401),
        ({"authorization": "type%3Daad%26ver%3D1.0%26sig%3Da.b.c"}, 401),
        ({"x-ms-date": "yesterday"}, 401),
        ({"x-ms-date": "Mon, 01 Jan 2001 00:00:00 GMT"}, 403),
    ],
    ids=repr,
)
async def test_requests_without_a_right_signature_are_refused(raw, change, status):
    got, _, _ = await raw.post({"id": "a", "key": "k"}, **({"x-ms-documentdb-partitionkey": '["k"]'} | change))
    assert got == status


async def test_a_signature_for_another_resource_or_verb_does_not_serve(raw, container):
    signed = raw.headers("GET", "docs", raw.link)
    got, _, _ = await raw.post({"id": "a", "key": "k"}, **({"x-ms-documentdb-partitionkey": '["k"]'} | signed))
    assert got == 401
    signed = raw.headers("POST", "docs", "dbs/db/colls/other")
    got, _, _ = await raw.post({"id": "a", "key": "k"}, **({"x-ms-documentdb-partitionkey": '["k"]'} | signed))
    assert got == 401


async def test_unknown_paths_and_verbs_have_their_own_errors(raw):
    assert (await raw.send("GET", "nothing/at/all", "at", "nothing/at/all"))[0] in {401, 404}
    assert (await raw.send("PUT", "dbs", "dbs", ""))[0] == 405
    assert (await raw.send("GET", "dbs/none", "dbs", "dbs/none"))[0] == 404
