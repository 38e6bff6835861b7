"""@azure/event-hubs against the server: an SDK of another language, on another AMQP stack (rhea)."""

from functools import partial

from tests.contract.js import node

run = partial(node.run, "event_hubs.mjs")


async def test_send_and_receive(server):
    connection = server.connection_string()
    sent = await run(command="send", connection=connection, hub="hub", count=5, partitionId="2")
    assert sent["partitionIds"] == ["0", "1", "2", "3"]
    await run(command="send", connection=connection, hub="hub", count=700, partitionKey="a key")
    got = await run(command="receive", connection=connection, hub="hub", count=705)
    assert got["error"] is None
    in_two = [event for event in got["events"] if event["partition"] == "2"][:5]
    assert [event["body"] for event in in_two] == [{"number": number} for number in range(5)]
    assert in_two[0]["properties"] == {"from": "js"}


async def test_start_positions_epochs_and_metrics(server):
    server.hub("hub").append("0", [b"%d" % number for number in range(10)])
    base = {"connection": server.connection_string(), "hub": "hub", "partitionId": "0"}
    offset = str(server.hub("hub").partition("0").log.offsets[6])
    for position, count in (({"sequenceNumber": 6, "isInclusive": True}, 4), ({"offset": offset}, 3)):
        got = await run(command="receive", **base, count=count, position=position, epoch=3, metrics=True)
        assert [event["sequence"] for event in got["events"]] == list(range(10 - count, 10))
        assert got["events"][-1]["last"] == 9


async def test_refusals_have_the_sdks_names(server):
    base = {"command": "receive", "connection": server.connection_string(), "count": 1, "partitionId": "0"}
    got = await run(**base, hub="hub", group="nobody")
    assert got["error"]["code"] == "MessagingEntityNotFoundError"
    got = await run(**base, hub="hub", position={"sequenceNumber": 99})
    assert got["error"]["code"] == "ArgumentError"
    assert "The supplied sequence number '99' is invalid" in got["error"]["message"]


async def test_its_processor_takes_all_partitions_and_goes_on_from_its_checkpoints(
    server, azurite, blob_container_name
):
    hub = server.hub("hub")
    for partition in "0123":
        hub.append(partition, [b"x"] * 25)
    storage = {"storage": azurite, "container": blob_container_name}
    first = await run(command="process", connection=server.connection_string(), hub="hub", count=100, **storage)
    assert sorted(map(tuple, first["events"])) == [(partition, n) for partition in "0123" for n in range(25)]
    assert first["errors"] == []
    for partition in "0123":
        hub.append(partition, [b"y"] * 5)
    second = await run(command="process", connection=server.connection_string(), hub="hub", count=20, **storage)
    assert sorted(map(tuple, second["events"])) == [(partition, n) for partition in "0123" for n in range(25, 30)]
