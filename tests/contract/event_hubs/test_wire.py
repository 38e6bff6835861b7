"""What must be on the wire, said and heard by a client that leaves nothing to an SDK's taste."""

import asyncio
import time

import pytest

from service.amqp.decode import decode
from service.amqp.frames import AMQP_HEADER, HEARTBEAT, SASL_HEADER, Frame, ProtocolHeader
from service.amqp.messages import (
    DATA,
    DELIVERY_ANNOTATIONS,
    MESSAGE_ANNOTATIONS,
    SEQUENCE,
    VALUE,
    Message,
    section,
    sections,
)
from service.amqp.performatives import Attach, Begin, Close, Detach, Disposition, End, Flow, SaslInit, Transfer
from service.amqp.types import Described, Symbol, ULong
from service.local.event_hubs.access import DEFAULT_KEY, DEFAULT_KEY_NAME, sas_token
from service.local.event_hubs.events import BATCH_FORMAT
from service.local.event_hubs.namespace import Limits
from service.local.event_hubs.partition import Retention
from service.local.event_hubs.server import EventHubsServer
from service.local.tokens import TokenIssuer
from tests.contract.event_hubs.conftest import until
from tests.contract.event_hubs.raw import PLAIN, RawClient

PARTITION = "hub/ConsumerGroups/$Default/Partitions/0"
EARLIEST = "amqp.annotation.x-opt-offset > '-1'"
ANONYMOUS = SaslInit("ANONYMOUS", b"x")


@pytest.fixture
async def client(server):
    async with RawClient(server.port) as client:
        await client.open()
        yield client


def condition(body):
    return body.error.value[0] if body.error is not None else None


def sequence(received):
    annotations, _ = decode(received.payload, next(s for s in sections(received.payload) if s.code == 0x72).value)
    return annotations["x-opt-sequence-number"]


async def refusal(client, attach):
    """How a link was refused: the attach has no terminus, then comes the detach."""
    assert attach.source is None or attach.target is None
    return condition((await client.expect(Detach)).body)


# ---- credit, windows, frames


async def test_deliveries_stop_exactly_at_the_credit(server, client):
    server.hub("hub").append("0", [b"x"] * 20)
    await client.attach_receiver(PARTITION, selector=EARLIEST)
    client.credit(3)
    got = [await client.expect(Transfer) for _ in range(3)]
    assert [sequence(one) for one in got] == [0, 1, 2]
    # A tag must be there (2.7.5; Go's client insists). That it is always the same spares pyamqp's memory.
    assert all(one.body.settled for one in got)
    assert {one.body.delivery_tag for one in got} == {b"\0"}
    client.credit(2, count=3, incoming=3, echo=True)
    assert (await client.expect(Flow, ())).body.link_credit == 2
    assert [sequence(await client.expect(Transfer)) for _ in range(2)] == [3, 4]
    client.credit(2, count=3, incoming=5, echo=True)  # the client had not counted the last two yet: nothing is left
    assert (await client.expect(Flow, ())).body.link_credit == 0


async def test_drain_uses_the_credit_up(server, client):
    server.hub("hub").append("0", [b"x"] * 2)
    await client.attach_receiver(PARTITION, selector=EARLIEST)
    client.credit(10, drain=True)
    assert [sequence(await client.expect(Transfer, ())) for _ in range(2)] == [0, 1]
    flow = (await client.expect(Flow)).body
    assert (flow.drain, flow.link_credit, flow.delivery_count) == (True, 0, 10)


async def test_the_sessions_window_holds_deliveries_back(server, client):
    server.hub("hub").append("0", [b"x"] * 10)
    await client.attach_receiver(PARTITION, selector=EARLIEST)
    client.send(Flow(0, 4, 0, 2048, 0, 0, 10))
    assert [sequence(await client.expect(Transfer)) for _ in range(4)] == [0, 1, 2, 3]
    client.send(Flow(4, 2, 0, 2048, echo=True))
    assert (await client.expect(Flow, ())).body.next_outgoing_id == 4
    assert [sequence(await client.expect(Transfer)) for _ in range(2)] == [4, 5]


async def test_an_event_larger_than_the_clients_frames_comes_in_parts(server):
    server.hub("hub").append("0", [b"x" * 5000, b"y"])
    async with RawClient(server.port) as client:
        await client.open(max_frame_size=1024)
        await client.attach_receiver(PARTITION, selector=EARLIEST)
        client.credit(2)
        parts = [await client.expect(Transfer)]
        while parts[-1].body.more:
            parts.append(await client.expect(Transfer))
        assert {(part.body.delivery_id, part.body.delivery_tag) for part in parts} == {(0, b"\0")}
        assert Message.decode(b"".join(part.payload for part in parts)).body == b"x" * 5000
        last = await client.expect(Transfer)
        assert (last.body.delivery_id, Message.decode(last.payload).body) == (1, b"y")


async def test_an_event_of_more_frames_than_the_window_waits_for_it_between_its_parts(server):
    server.hub("hub").append("0", [b"x" * 3000, b"y"])
    async with RawClient(server.port) as client:
        await client.open(max_frame_size=512)
        await client.attach_receiver(PARTITION, selector=EARLIEST)
        client.send(Flow(0, 3, 0, 2048, 0, 0, 2))
        parts = [await client.expect(Transfer) for _ in range(3)]
        client.send(Flow(3, 0, 0, 2048, echo=True))  # no room: the answer comes next, and no transfer before it
        assert (await client.expect(Flow, ())).body.next_outgoing_id == 3
        client.send(Flow(3, 2048, 0, 2048))
        while parts[-1].body.more:
            parts.append(await client.expect(Transfer))
        assert {part.body.delivery_id for part in parts} == {0}
        assert Message.decode(b"".join(part.payload for part in parts)).body == b"x" * 3000
        assert Message.decode((await client.expect(Transfer)).payload).body == b"y"


async def test_parts_that_wait_for_the_window_go_with_their_link(server):
    server.hub("hub").append("0", [b"x" * 3000])
    async with RawClient(server.port) as client:
        await client.open(max_frame_size=512)
        await client.attach_receiver(PARTITION, selector=EARLIEST)
        client.send(Flow(0, 2, 0, 2048, 0, 0, 1))
        for _ in range(2):
            await client.expect(Transfer)
        client.send(Detach(0, closed=True))
        await client.expect(Detach, ())
        client.send(Flow(2, 2048, 0, 2048, echo=True))
        assert (await client.expect(Flow, ())).body.next_outgoing_id == 2


async def test_credit_and_window_may_be_as_large_as_their_type(server, client):
    server.hub("hub").append("0", [b"x"] * 3)
    await client.attach_receiver(PARTITION, selector=EARLIEST)
    client.send(Flow(0, 2**32 - 1, 0, 2048, 0, 0, 2**32 - 1))
    assert [sequence(await client.expect(Transfer)) for _ in range(3)] == [0, 1, 2]
    server.hub("hub").append("0", [b"x"])
    client.send(Flow(1, 2**32 - 1, 0, 2048, 0, 1, 2**32 - 1))
    assert sequence(await client.expect(Transfer)) == 3


@pytest.mark.parametrize("closed", [True, False])
async def test_a_detach_is_answered_in_kind(server, client, closed):
    await client.attach_receiver(PARTITION, selector=EARLIEST)
    client.send(Detach(0, closed=closed))
    assert (await client.expect(Detach)).body.closed is closed


@pytest.mark.parametrize("body", [section(VALUE, "x"), section(SEQUENCE, [1])], ids=["value", "sequence"])
async def test_a_batch_without_data_is_rejected_and_not_swallowed(server, client, body):
    await client.attach_sender("hub/Partitions/0")
    client.send(Transfer(0, 0, b"t", BATCH_FORMAT), payload=body)
    assert (await client.expect(Disposition)).body.state.descriptor == 0x25


async def test_runtime_metrics_come_only_to_those_who_asked(server, client):
    server.hub("hub").append("0", [b"x"] * 2)
    await client.attach_receiver(
        PARTITION, selector=EARLIEST, desired_capabilities=Symbol("com.microsoft:enable-receiver-runtime-metric")
    )
    client.credit(1)
    got = await client.expect(Transfer)
    first = next(iter(sections(got.payload)))
    assert first.code == DELIVERY_ANNOTATIONS
    assert decode(got.payload, first.value)[0]["last_enqueued_sequence_number"] == 1


async def test_sends_beyond_the_credit_are_taken_because_pyamqp_makes_them(client):
    await client.attach_sender("hub/Partitions/0")
    for _ in range(1500):
        client.send(Transfer(0, client.next_id, b"t", 0, settled=True), payload=section(DATA, b"x"))
        client.next_id += 1
    assert (await client.publish(b"last")).state.descriptor == 0x24


# ---- hubs that change


async def test_latest_sees_only_what_comes_later(server, client):
    hub = server.hub("hub")
    hub.append("0", [b"before"])
    await client.attach_receiver(PARTITION, selector="amqp.annotation.x-opt-offset > '@latest'")
    client.credit(5)
    hub.append("0", [b"after"])
    assert sequence(await client.expect(Transfer)) == 1


async def test_a_partition_added_while_running_can_be_used(server, client):
    server.hub("hub").add_partitions(1)
    reply = await client.request("$management", hub_read())
    assert reply.body["partition_ids"] == ["0", "1", "2", "3", "4"]
    await client.attach_sender("hub/Partitions/4")
    assert (await client.publish(b"new")).state.descriptor == 0x24


async def test_a_hub_deleted_and_made_again_has_a_new_life(server, client):
    server.hub("hub").append("0", [b"old"] * 3)
    before = (await client.request("$management", hub_read())).body["created_at"]
    await client.attach_receiver(PARTITION, selector=EARLIEST)
    await asyncio.sleep(0.002)  # created_at has milliseconds
    server.delete_hub("hub")
    assert condition((await client.expect(Detach)).body) == "amqp:not-found"
    assert (await client.request("$management", hub_read())).application_properties["status-code"] == 404
    server.add_hub("hub", 4)
    assert (await client.request("$management", hub_read())).body["created_at"] > before
    await client.attach_sender("hub/Partitions/0", 1)
    await client.publish(b"new", 1)
    await client.attach_receiver(PARTITION, 2, selector=EARLIEST)
    client.credit(5, 2)
    assert sequence(await client.expect(Transfer)) == 0


async def test_retention_leaves_a_gap_that_late_readers_jump(server, client):
    hub = server.hub("hub")
    hub.append("0", [b"%d" % number for number in range(10)])
    await client.attach_receiver(PARTITION, 0, selector=EARLIEST)
    client.credit(2)
    assert [sequence(await client.expect(Transfer)) for _ in range(2)] == [0, 1]
    hub.retention = Retention(size_bytes=sum(map(len, hub.partition("0").log.events[6:])))
    hub.retain()
    client.credit(1, count=2, incoming=2)
    assert sequence(await client.expect(Transfer)) == 6
    await client.attach_receiver(PARTITION, 1, selector="amqp.annotation.x-opt-sequence-number > '2'")
    client.credit(1, 1, incoming=3)
    assert sequence(await client.expect(Transfer)) == 6
    read = Message(properties=["id"], application_properties=partition_read("0"))
    found = (await client.request("$management", read)).body
    assert found["begin_sequence_number"] == 6
    assert {"begin_sequence_number_epoch", "last_enqueued_sequence_number_epoch"} <= set(found)  # Rust insists on them


# ---- refusals


async def test_unknown_hubs_groups_and_partitions_are_refused(client):
    assert await refusal(client, await client.attach_receiver("nothing/ConsumerGroups/$Default/Partitions/0", 0)) == (
        "amqp:not-found"
    )
    assert await refusal(client, await client.attach_receiver("hub/ConsumerGroups/nobody/Partitions/0", 1)) == (
        "amqp:not-found"
    )
    assert await refusal(client, await client.attach_receiver("hub/ConsumerGroups/$Default/Partitions/9", 2)) == (
        "com.microsoft:argument-out-of-range"
    )
    assert await refusal(client, await client.attach_receiver("hub", 3)) == "amqp:not-found"
    assert await refusal(client, await client.attach_sender("nothing", 4)) == "amqp:not-found"
    assert await refusal(client, await client.attach_sender("hub/Partitions/x", 5)) == (
        "com.microsoft:argument-out-of-range"
    )
    assert await refusal(client, await client.attach_sender("a/b/c/d", 6)) == "amqp:not-found"
    assert (await client.attach_sender("amqps://any:5/HUB", 7)).target is not None


async def test_a_position_ahead_of_the_partition_is_refused(server, client):
    server.hub("hub").append("0", [b"x"])
    ahead = await client.attach_receiver(PARTITION, selector="amqp.annotation.x-opt-sequence-number > '5'")
    assert await refusal(client, ahead) == "com.microsoft:argument-error"
    wrong = await client.attach_receiver(PARTITION, 1, selector="nonsense")
    assert await refusal(client, wrong) == "amqp:invalid-field"


async def test_a_sixth_reader_without_epoch_is_refused(client):
    for handle in range(5):
        assert (await client.attach_receiver(PARTITION, handle)).source is not None
    assert await refusal(client, await client.attach_receiver(PARTITION, 5)) == "amqp:resource-limit-exceeded"
    client.send(Detach(0, closed=True))
    await client.expect(Detach)
    assert (await client.attach_receiver(PARTITION, 6)).source is not None


async def test_an_epoch_steals_and_a_lower_one_is_refused(server, client):
    epoch = Symbol("com.microsoft:epoch")
    await client.attach_receiver(PARTITION, 0, properties={epoch: 5})
    async with RawClient(server.port) as other:
        await other.open()
        assert (await other.attach_receiver(PARTITION, properties={epoch: 5})).source is not None
        stolen = await client.expect(Detach)
        assert (stolen.body.handle, condition(stolen.body)) == (0, "amqp:link:stolen")
        lower = await client.attach_receiver(PARTITION, 2, properties={epoch: 4})
        assert await refusal(client, lower) == "amqp:link:stolen"
        assert await refusal(client, await client.attach_receiver(PARTITION, 3)) == "amqp:link:stolen"


async def test_a_message_above_the_limit_costs_the_link_and_nothing_else(server, client):
    await client.attach_sender("hub/Partitions/0")
    for _ in range(17):
        client.send(Transfer(0, 0, b"t", 0, more=True), payload=b"x" * 65_000)
    got = await client.expect(Detach)
    assert condition(got.body) == "amqp:link:message-size-exceeded"
    client.send(Detach(0, closed=True))
    await client.attach_sender("hub/Partitions/0", 1)
    assert (await client.publish(b"small", 1)).state.descriptor == 0x24
    assert server.hub("hub").partition("0").log.end == 1


async def test_a_message_that_is_none_is_rejected_and_the_link_stays(server, client):
    await client.attach_sender("hub/Partitions/0")
    for payload, kind in ((b"junk", 0), (section(DATA, b"junk"), BATCH_FORMAT)):
        client.send(Transfer(0, client.next_id, b"t", kind), payload=payload)
        client.next_id += 1
        state = (await client.expect(Disposition)).body.state
        assert state.descriptor == 0x25
        assert state.value[0].value[0] == "amqp:decode-error"
    assert (await client.publish(b"good")).state.descriptor == 0x24
    assert server.hub("hub").partition("0").log.end == 1


async def test_a_key_on_a_link_to_a_partition_is_kept_and_does_not_route(server, client):
    await client.attach_sender("hub/Partitions/3")
    for number in range(8):
        annotations = section(MESSAGE_ANNOTATIONS, {Symbol("x-opt-partition-key"): f"key {number}"})
        client.send(Transfer(0, number, b"t", 0), payload=annotations + section(DATA, b"x"))
        assert (await client.expect(Disposition)).body.state.descriptor == 0x24
    assert server.hub("hub").partition("3").log.end == 8
    assert b"key 7" in server.hub("hub").partition("3").log.events[7]


async def test_an_aborted_message_leaves_no_trace(server, client):
    await client.attach_sender("hub/Partitions/0")
    client.send(Transfer(0, 0, b"t", 0, more=True), payload=section(DATA, b"never"))
    client.send(Transfer(0, aborted=True))
    client.next_id = 1
    await client.publish(b"real")
    assert server.hub("hub").partition("0").log.end == 1


async def test_faults_of_a_session_end_the_session_and_not_the_connection(client):
    client.send(Transfer(7, 0, b"t", 0), payload=b"x")
    assert condition((await client.expect(End)).body) == "amqp:session:unattached-handle"
    client.send(Begin(None, 0, 2048, 2048))
    await client.expect(Begin)
    await client.attach_sender("hub")
    client.send(Attach("again", 0, role=False, target=Described(ULong(0x29), ["hub"])))
    assert condition((await client.expect(End)).body) == "amqp:session:handle-in-use"


# ---- rights


async def test_without_a_token_nothing_is_attached(server):
    async with RawClient(server.port) as client:
        await client.open(ANONYMOUS)
        assert await refusal(client, await client.attach_sender("hub")) == "amqp:unauthorized-access"
        assert await refusal(client, await client.attach_receiver(PARTITION, 1)) == "amqp:unauthorized-access"
        reply = await client.request("$management", hub_read())
        assert reply.application_properties["status-code"] == 401


async def test_a_wrong_key_is_refused_by_sasl(server):
    async with RawClient(server.port) as client:
        outcome = await client.handshake(SaslInit("PLAIN", f"\0{DEFAULT_KEY_NAME}\0wrong".encode()))
        assert outcome.code == 1
        assert await client.item() is None


def hub_read():
    return Message(
        properties=["id"],
        application_properties={"name": "hub", "operation": "READ", "type": "com.microsoft:eventhub"},
    )


def partition_read(partition):
    return {"name": "hub", "operation": "READ", "type": "com.microsoft:partition", "partition": partition}


def put_token(token, audience="sb://h/hub", kind="servicebus.windows.net:sastoken"):
    return Message(
        properties=["id"], application_properties={"operation": "put-token", "type": kind, "name": audience}, body=token
    )


def sas(seconds, key=DEFAULT_KEY, resource="sb://h/hub"):
    return sas_token(resource, DEFAULT_KEY_NAME, key, time.time() + seconds)


async def test_a_token_opens_what_it_names_and_nothing_else(server):
    server.add_hub("other", 1)
    async with RawClient(server.port) as client:
        await client.open(ANONYMOUS)
        for bad in (sas(-10), sas(60, key="wrong"), sas(60, resource="sb://h/else"), "", "junk"):
            reply = await client.request("$cbs", put_token(bad))
            assert reply.application_properties["status-code"] == 401
        nowhere = put_token(sas(60, resource="sb://h/nothing"), "sb://h/nothing")
        assert (await client.request("$cbs", nowhere)).application_properties["status-code"] == 404
        reply = await client.request("$cbs", put_token(sas(60)))
        assert reply.application_properties["status-code"] == 202
        assert reply.properties[5] == "id"
        assert (await client.attach_sender("hub", 1)).target is not None
        assert await refusal(client, await client.attach_sender("other", 2)) == "amqp:unauthorized-access"
        assert (await client.request("$management", hub_read())).application_properties["status-code"] == 200


async def test_management_takes_a_token_shown_in_the_request(server):
    """As Java's client does, which puts none to $cbs for it."""
    async with RawClient(server.port) as client:
        await client.open(ANONYMOUS)
        for token, status in ((sas(60), 200), (sas(-10), 401), (sas(60, key="wrong"), 401), ("junk", 401)):
            request = hub_read()
            request.application_properties["security_token"] = token
            assert (await client.request("$management", request)).application_properties["status-code"] == status
        assert await refusal(client, await client.attach_sender("hub", 1)) == "amqp:unauthorized-access"


async def test_links_are_dropped_when_their_token_expires_and_stay_when_it_is_renewed(server):
    async with RawClient(server.port) as client:
        await client.open(ANONYMOUS)
        await client.request("$cbs", put_token(sas(1.5)))
        await client.request("$cbs", put_token(sas(1.5, resource="sb://h/hub/partitions/1"), "sb://h/hub/Partitions/1"))
        await client.attach_sender("hub/Partitions/1", 1)
        await client.attach_sender("hub/Partitions/0", 2)
        await client.request("$cbs", put_token(sas(60, resource="sb://h/hub/partitions/1"), "sb://h/hub/Partitions/1"))
        got = await client.expect(Detach)
        assert (got.body.handle, condition(got.body)) == (2, "amqp:unauthorized-access")
        assert (await client.publish(b"still", 1)).state.descriptor == 0x24


async def test_bearer_tokens_are_checked_for_audience_and_expiry():
    issuer = TokenIssuer()
    server = EventHubsServer(token_issuer=issuer)
    server.add_hub("hub", 1)
    await server.start()
    try:
        async with RawClient(server.port) as client:
            await client.open(ANONYMOUS)
            for bad in (issuer.issue("https://other"), issuer.issue("https://eventhubs.azure.net", -5), "a.b.c"):
                reply = await client.request("$cbs", put_token(bad, kind="jwt"))
                assert reply.application_properties["status-code"] == 401
            reply = await client.request("$cbs", put_token(issuer.issue("https://eventhubs.azure.net"), kind="jwt"))
            assert reply.application_properties["status-code"] == 202
            assert (await client.attach_sender("hub", 1)).target is not None
    finally:
        await server.stop()


# ---- life of a connection


async def test_heart_beats_come_as_often_as_the_client_needs(server):
    async with RawClient(server.port) as client:
        await client.open(idle_time_out=100)
        for _ in range(3):
            assert await client.item() == Frame(0, 0, b"")


async def test_a_silent_client_is_closed_and_one_that_beats_is_not():
    server = EventHubsServer(limits=Limits(idle_timeout_seconds=0.3))
    await server.start()
    try:
        async with RawClient(server.port) as silent, RawClient(server.port) as beating:
            opened = await silent.open()
            await beating.open()
            assert opened.idle_time_out == 300
            for _ in range(6):
                await asyncio.sleep(0.1)
                beating.write(HEARTBEAT)
            closed = (await silent.expect(Close)).body
            assert condition(closed) == "amqp:connection:forced"
            assert "inactive for more than the allowed 300 milliseconds" in closed.error.value[1]
            assert await silent.item() is None
            beating.send(Close())
            assert condition((await beating.expect(Close)).body) is None
        await until(lambda: not server.namespace.connections)
    finally:
        await server.stop()


async def test_a_client_that_never_speaks_is_dropped():
    server = EventHubsServer(limits=Limits(idle_timeout_seconds=0.1))
    await server.start()
    try:
        async with RawClient(server.port) as client:
            assert await client.item() == ProtocolHeader(SASL_HEADER)
            assert await client.item() is None
    finally:
        await server.stop()


async def test_a_wrong_protocol_gets_the_right_header_and_the_end(server):
    for hello in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"AMQP\x02\x01\x00\x00",
        b"AMQP\x03\x00\x09\x01",
        b"\x16\x03\x01\x02\x00\x01",
    ):
        async with RawClient(server.port) as client:
            client.write(hello)
            assert await client.item() == ProtocolHeader(SASL_HEADER)
            assert await client.item() is None


async def test_amqp_without_sasl_is_anonymous(server):
    async with RawClient(server.port) as client:
        client.write(AMQP_HEADER)
        assert await client.item() == ProtocolHeader(AMQP_HEADER)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\x00\x00\x00\x04\x02\x00\x00\x00", "amqp:connection:framing-error"),
        (b"\x7f\xff\xff\xff\x02\x00\x00\x00", "amqp:connection:framing-error"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\xff\xff\xff\xff", "amqp:decode-error"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x10\x45", "amqp:invalid-field"),
        (b"\x00\x00\x00\x0c\x02\x00\x00\x09\x00\x53\x12\x45", "amqp:invalid-field"),
        (b"\x00\x00\x00\x10\x02\x00\x00\x09\x00\x53\x14\xc0\x03\x01\x52\x01", "amqp:not-allowed"),
    ],
)
async def test_a_wrong_frame_gets_the_protocols_own_error(server, client, raw, expected):
    async with RawClient(server.port) as other:
        await other.open()
        client.write(raw)
        assert condition((await client.expect(Close)).body) == expected
        assert await client.item() is None
        other.send(Close())
        assert condition((await other.expect(Close)).body) is None


async def test_a_delay_slows_every_answer_and_keeps_their_order(server, client):
    await client.attach_sender("hub/Partitions/0")
    server.control.delay(0.2)
    started = time.monotonic()
    client.send(Transfer(0, 0, b"t", 0), payload=section(DATA, b"a"))
    client.send(Transfer(0, 1, b"t", 0), payload=section(DATA, b"b"))
    got = [(await client.expect(Disposition)).body.first for _ in range(2)]
    assert got == [0, 1]
    assert time.monotonic() - started >= 0.2
    server.control.delay(0)
    client.next_id = 2
    assert (await client.publish(b"c")).first == 2


async def test_a_reader_that_was_closed_for_its_faults_does_not_stand_in_the_way(server, client):
    epoch = Symbol("com.microsoft:epoch")
    await client.attach_receiver(PARTITION, properties={epoch: 9})
    client.write(b"\x00\x00\x00\x04\x02\x00\x00\x00")
    await client.expect(Close)
    async with RawClient(server.port) as other:
        await other.open()
        assert (await other.attach_receiver(PARTITION, properties={epoch: 1})).source is not None


async def test_plain_sasl_opens_everything(server):
    async with RawClient(server.port) as client:
        await client.open(PLAIN)
        assert (await client.attach_sender("hub")).target is not None
