"""The Cosmos port as HTTP/1.1 has it, byte by byte: what other clients than the SDKs may do."""

import asyncio
import contextlib
import ssl
import time

import orjson
import pytest

from service.local.certificates import make_certificate
from service.local.cosmos.faults import Fault
from service.local.cosmos.http2 import PREFACE
from service.local.cosmos.server import CosmosServer
from tests.contract.cosmos.raw import raw_client
from tests.contract.cosmos.test_hostile import throw
from tests.integration.source.kit import until

NOT_SIGNED = b"GET /dbs HTTP/1.1\r\nHost: localhost\r\n\r\n"  # gets a 401


@pytest.fixture
def container(server):
    return server.add_container("db", "items", partition_key="/key")


@pytest.fixture
async def raw(server, container):
    async with raw_client(server) as client:
        yield client


@pytest.fixture
def port(server):
    return int(server.endpoint.rstrip("/").rpartition(":")[2])


def create(raw, number, *, version="1.1", extra=""):
    body = orjson.dumps({"id": f"doc-{number}", "key": "k"})
    headers = raw.headers("POST", "docs", raw.link) | {"x-ms-documentdb-partitionkey": '["k"]'}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = (
        f"POST /{raw.link}/docs HTTP/{version}\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{lines}{extra}\r\n"
    )
    return head.encode() + body


class Conversation:
    """One connection, and its answers one after the other."""

    def __init__(self, reader, writer):
        self._reader = reader
        self.writer = writer

    async def answer(self):
        """Status line and headers as bytes, and the body."""
        async with asyncio.timeout(5):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            body = await self._reader.readexactly(int(length[0].partition(b":")[2])) if length else b""
        return head, body

    async def exactly(self, count):
        async with asyncio.timeout(5):
            return await self._reader.readexactly(count)

    async def ended(self):
        async with asyncio.timeout(5):
            return await self._reader.read()


@contextlib.asynccontextmanager
async def connected(port, **how):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, **how)
    try:
        yield Conversation(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_requests_one_behind_the_other_are_answered_in_their_order(raw, container, port):
    async with connected(port) as one:
        one.writer.write(b"".join(create(raw, number) for number in range(30)))
        for number in range(30):
            head, body = await one.answer()
            assert head.startswith(b"HTTP/1.1 201 Created\r\n")
            assert orjson.loads(body)["id"] == f"doc-{number}"


async def test_a_request_in_single_bytes_is_understood(raw, container, port):
    async with connected(port) as one:
        for byte in create(raw, 1):
            one.writer.write(bytes([byte]))
            await one.writer.drain()
        assert (await one.answer())[0].startswith(b"HTTP/1.1 201 ")


async def test_noise_behind_a_request_does_not_spoil_its_answer(raw, container, port):
    async with connected(port) as one:
        one.writer.write(create(raw, 1) + b"\x00\x01 noise\r\n\r\n")
        assert (await one.answer())[0].startswith(b"HTTP/1.1 201 ")
        head, body = await one.answer()
        assert head.startswith(b"HTTP/1.1 400 ")
        assert orjson.loads(body)["code"] == "BadRequest"
        assert await one.ended() == b""


async def test_the_connection_is_kept_or_closed_as_the_client_asks(raw, container, port):
    for version, extra, kept in [
        ("1.1", "", True),
        ("1.1", "Connection: close\r\n", False),
        ("1.0", "", False),
        ("1.0", "Connection: keep-alive\r\n", True),
    ]:
        async with connected(port) as one:
            one.writer.write(create(raw, 1 if kept else 2, version=version, extra=extra))
            head, _ = await one.answer()
            assert (b"Connection: keep-alive\r\n" in head) is kept
            if kept:
                one.writer.write(NOT_SIGNED)
                assert (await one.answer())[0].startswith(b"HTTP/1.1 401 ")
            else:
                assert await one.ended() == b""


async def test_a_client_that_waits_for_100_continue_gets_it(raw, container, port):
    head, _, body = create(raw, 1, extra="Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    async with connected(port) as one:
        one.writer.write(head + b"\r\n\r\n")
        assert await one.answer() == (b"HTTP/1.1 100 Continue\r\n\r\n", b"")
        one.writer.write(body)
        assert (await one.answer())[0].startswith(b"HTTP/1.1 201 ")


async def test_an_offer_of_http_2_is_passed_over(raw, container, port):
    upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    async with connected(port) as one:
        one.writer.write(create(raw, 1, extra=upgrade))
        assert (await one.answer())[0].startswith(b"HTTP/1.1 201 ")
        one.writer.write(NOT_SIGNED)
        assert (await one.answer())[0].startswith(b"HTTP/1.1 401 ")


async def test_a_client_that_only_listens_any_more_is_still_answered(raw, container, port):
    async with connected(port) as one:
        one.writer.write(create(raw, 1))
        one.writer.write_eof()
        assert (await one.ended()).startswith(b"HTTP/1.1 201 ")


async def test_http_2_by_prior_knowledge_is_refused_in_its_own_words(port):
    """Clients that try it first fall back when they are told so, not when the connection just ends."""
    settings = bytes.fromhex("000000 04 00 00000000")
    ping = bytes.fromhex("000008 06 00 00000000") + b"12345678"
    headers = bytes.fromhex("000003 01 05 00000001") + b"\x82\x86\x84"
    async with connected(port) as one:
        one.writer.write(PREFACE + settings + ping + headers[:7])
        one.writer.write(headers[7:])
        answer = await one.exactly(9 + 9 + 9 + 8 + 9 + 4)
        assert answer == (
            settings
            + bytes.fromhex("000000 04 01 00000000")
            + bytes.fromhex("000008 06 01 00000000")
            + b"12345678"
            + bytes.fromhex("000004 03 00 00000001 0000000d")  # RST_STREAM, HTTP_1_1_REQUIRED
        )
        one.writer.write(bytes.fromhex("000008 07 00 00000000 0000000000000000"))  # GOAWAY
        assert await one.ended() == b""


async def test_who_asks_over_http_2_and_does_not_read_is_cut_off(port):
    ping = bytes.fromhex("000008 06 00 00000000") + b"12345678"

    async def flood(writer):
        writer.write(PREFACE)
        for _ in range(2000):  # 34 MB, if it went on
            writer.write(ping * 1000)
            await asyncio.wait_for(writer.drain(), 5)

    async with connected(port) as one:
        with pytest.raises(ConnectionError):
            await flood(one.writer)


async def test_a_tunnel_is_refused(port):
    answer = await throw(port, b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 405 ")


async def test_head_gets_no_body(port):
    answer = await throw(port, b"HEAD /dbs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert answer.endswith(b"\r\n\r\n")


async def test_compressed_bodies_are_refused(raw, container, port):
    answer = await throw(port, create(raw, 1, extra="Content-Encoding: gzip\r\nConnection: close\r\n"))
    assert answer.startswith(b"HTTP/1.1 415 ")


async def test_a_header_without_end_is_cut_short(port):
    async with connected(port) as one:
        with contextlib.suppress(ConnectionError):
            one.writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nx-endless: ")
            for _ in range(100):
                one.writer.write(b"x" * 65_536)
                await asyncio.wait_for(one.writer.drain(), 5)
        assert (await one.answer())[0].startswith(b"HTTP/1.1 400 ")


async def test_many_headers_are_cut_short(port):
    lines = b"".join(b"x-%d: %b\r\n" % (number, b"y" * 100) for number in range(1000))
    answer = await throw(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")


async def test_a_client_that_does_not_read_holds_up_only_itself(raw, container, port):
    for number in range(30):
        await raw.post(
            {"id": str(number), "key": "k", "text": "x" * 100_000}, **{"x-ms-documentdb-partitionkey": '["k"]'}
        )
    headers = raw.headers("GET", "docs", raw.link)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    feed = f"GET /{raw.link}/docs HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode()
    async with connected(port) as deaf, connected(port) as other:
        for _ in range(200):
            deaf.writer.write(feed)  # 600 MB of answers, if all were made
        other.writer.write(NOT_SIGNED)
        assert (await other.answer())[0].startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("secure", [False, True])
async def test_stopping_does_not_wait_for_an_answer_that_takes_long(tmp_path, secure):
    certificate = make_certificate(tmp_path) if secure else None
    async with CosmosServer(ssl_context=certificate and certificate.server_context()) as server:
        server.faults.arm(Fault(1, delay_seconds=30))
        how = {"ssl": certificate.client_context(), "server_hostname": "localhost"} if certificate else {}
        async with (
            connected(int(server.endpoint.rstrip("/").rpartition(":")[2]), **how) as one,
            raw_client(server) as raw,
        ):
            headers = raw.headers("GET", "", "")
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            one.writer.write(f"GET / HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())
            await until(lambda: server.requests == 1)
            began = time.monotonic()
            await server.stop()
            assert time.monotonic() - began < 5
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                assert await one.ended() == b""
