"""Dead letters in Azurite: durable, one append for many, found again after a lost answer, listed, and sent again."""

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import orjson
import pytest
from azure.core.exceptions import ServiceResponseError
from azure.storage.blob.aio import BlobServiceClient

import service.sink.dead_letters as module
from service.errors import Retry
from service.sink.dead_letters import BlobDeadLetters, Letter
from service.sink.letter_archive import LetterArchive
from service.sink.outcome import Outcome
from service.sink.record import Decoder, DocumentOptions
from service.sink.redrive import redrive
from service.source.events import PartitionId
from tests.integration.sink.conftest import QUICK
from tests.simulation.memory_cosmos import MemoryContainer
from tests.simulation.sink.parts import HUB, Feeder, event, running

AT = datetime(2026, 3, 1, 14, 30, tzinfo=UTC)
FOLDER = "test.servicebus.windows.net/telemetry/$Default"


@asynccontextmanager
async def blobs(azurite: str, name: str):
    async with BlobServiceClient.from_connection_string(azurite, api_version="2025-01-05") as service:
        yield service.get_container_client(name)


def letter(sequence: int, partition: str = "0", body: bytes = b"poison", at: datetime = AT, index: int = 0) -> Letter:
    properties = {b"source": b"test", "n": 1, "when": AT, "raw": b"\xff"}
    taken = event(sequence, body, properties=properties, content_type="application/json")
    return Letter(HUB, PartitionId(partition), taken, index, "not JSON", 0, 0, 1, at)


async def stored(container) -> dict[str, list[dict]]:
    found = {}
    async for blob in container.list_blobs():
        text = await (await container.download_blob(blob.name)).readall()
        found[blob.name] = [orjson.loads(line) for line in text.splitlines() if line]
    return found


async def test_letters_stand_by_partition_and_hour_one_line_each(azurite, blob_container_name):
    async with blobs(azurite, blob_container_name) as container:
        box = BlobDeadLetters(container)
        await box.append([letter(1), letter(2, "7"), letter(3)])
        found = await stored(container)
    assert set(found) == {f"{FOLDER}/0/2026/03/01/14.jsonl", f"{FOLDER}/7/2026/03/01/14.jsonl"}
    first = found[f"{FOLDER}/0/2026/03/01/14.jsonl"][0]
    assert first == {
        "namespace": "test.servicebus.windows.net",
        "hub": "telemetry",
        "group": "$Default",
        "incarnation": 1_700_000_000_000,
        "partition": "0",
        "sequence": 1,
        "index": 0,
        "offset": "100",
        "enqueued": "2023-11-14T22:13:20.010+00:00",
        "properties": {"source": "test", "n": 1, "when": str(AT), "raw": "\\xff"},
        "content_type": "application/json",
        "content_encoding": None,
        "body": "cG9pc29u",
        "reason": "not JSON",
        "status": 0,
        "sub_status": 0,
        "tries": 1,
        "at": "2026-03-01T14:30:00.000+00:00",
    }


async def test_many_letters_are_one_append_and_a_new_process_goes_on_behind_them(azurite, blob_container_name):
    async with blobs(azurite, blob_container_name) as container:
        await BlobDeadLetters(container).append([letter(number) for number in range(500)])
        await BlobDeadLetters(container).append([letter(number) for number in range(500, 700)])
        name = f"{FOLDER}/0/2026/03/01/14.jsonl"
        properties = await container.get_blob_client(name).get_blob_properties()
        assert properties.append_blob_committed_block_count == 2
        assert [line["sequence"] for line in (await stored(container))[name]] == list(range(700))


@pytest.mark.parametrize("arrived", [True, False])
async def test_an_append_without_an_answer_is_looked_for_before_it_is_tried_again(
    azurite, blob_container_name, monkeypatch, arrived
):
    async with blobs(azurite, blob_container_name) as container:
        box = BlobDeadLetters(container)
        await box.append([letter(0)])
        place = next(iter(box._blobs.values()))
        real = place._blob.append_block

        async def lost(*args, **more):
            if arrived:
                await real(*args, **more)
            raise ServiceResponseError("connection reset")

        monkeypatch.setattr(place._blob, "append_block", lost)
        batch = [letter(1), letter(2), letter(3, "9")]
        with pytest.raises(Retry):
            await box.append(batch)
        monkeypatch.undo()
        await BlobDeadLetters(container).append([letter(4)])  # meanwhile another process appends
        await box.append(batch)
        found = await stored(container)
    sequences = sorted(line["sequence"] for line in found[f"{FOLDER}/0/2026/03/01/14.jsonl"])
    assert sequences == [0, 1, 2, 4]
    assert len(found[f"{FOLDER}/9/2026/03/01/14.jsonl"]) == 1


async def test_a_blob_is_rolled_before_its_last_block(azurite, blob_container_name, monkeypatch):
    monkeypatch.setattr(module, "_MAX_BLOCKS", 3)
    async with blobs(azurite, blob_container_name) as container:
        box = BlobDeadLetters(container)
        for number in range(7):
            await box.append([letter(number)])
        await BlobDeadLetters(container).append([letter(7)])
        counts = {name[-10:]: len(lines) for name, lines in (await stored(container)).items()}
    assert counts == {"1/14.jsonl": 3, "14-1.jsonl": 3, "14-2.jsonl": 2}


async def test_large_letters_take_several_appends(azurite, blob_container_name):
    async with blobs(azurite, blob_container_name) as container:
        await BlobDeadLetters(container).append(
            [letter(1, body=b"x" * 7_000_000), letter(2), letter(3, body=b"y" * 3_200_000)]
        )
        archive = LetterArchive(container)
        found = [one async for one in archive.letters()]
    assert [(one.event.sequence, len(one.event.body)) for one in found] == [(1, 7_000_000), (2, 6), (3, 3_200_000)]
    assert archive.torn == 0


async def test_storage_that_is_away_is_an_error_to_retry(blob_container_name):
    away = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:9/a;"
    async with BlobServiceClient.from_connection_string(away, retry_total=0) as service:
        with pytest.raises(Retry, match="dead letters cannot be stored"):
            await BlobDeadLetters(service.get_container_client(blob_container_name)).append([letter(1)])


async def test_letters_are_listed_found_and_known_as_duplicates(azurite, blob_container_name):
    async with blobs(azurite, blob_container_name) as container:
        archive = LetterArchive(container)
        assert [one async for one in archive.letters()] == []
        several = [letter(1, index=0), letter(1, index=1), letter(2)]
        await BlobDeadLetters(container).append(several)
        await BlobDeadLetters(container).append([letter(2, at=AT.replace(hour=15))])
        await container.get_blob_client(f"{FOLDER}/0/2026/03/01/15.jsonl").append_block(b'{"torn": "li')
        found = [one async for one in archive.letters()]
        assert [(one.event.sequence, one.index, one.duplicate) for one in found] == [
            (1, 0, False),
            (1, 1, False),
            (2, 0, False),
            (2, 0, True),
        ]
        assert archive.torn == 1
        assert found[1].event.body == b"poison"
        assert found[0].event.properties == {"source": "test", "n": 1, "when": str(AT), "raw": "\\xff"}
        assert found[0].summary()["reason"] == "not JSON"
        assert [one.index for one in await archive.find("0", 1)] == [0, 1]
        assert [one.index for one in await archive.find("0", 1, 1)] == [1]


async def test_what_is_sent_again_is_guarded_and_marked(azurite, blob_container_name):
    """Letters of a transform that failed go again once it is mended; what is newer meanwhile stays."""
    cosmos = MemoryContainer(Random(1))
    guarded = replace(QUICK, guarded=True)
    async with blobs(azurite, blob_container_name) as container:
        box = BlobDeadLetters(container)
        async with running(cosmos, box, guarded) as sink:
            feeder = Feeder(sink, guarded=True)
            for number in range(20):
                feeder.feed({"id": f"d{number}", "key": "k"} if number != 7 else {"id": 7, "key": "k", "name": "d7"})
            feeder.feed({"id": "d3", "key": "k", "new": True})
            old = feeder.feed({"id": 3, "name": "d3", "key": "k"})
            feeder.feed({"id": "d3", "key": "k", "newest": True})
            await feeder.drain()
            assert old.outcomes == [Outcome.DEAD_LETTERED]
        archive = LetterArchive(container)
        async with running(cosmos, box, guarded) as sink:
            decoder = Decoder(DocumentOptions(id="/name"), sink.definition, guarded=True)
            begin = asyncio.get_running_loop().time()
            done = await redrive(archive, sink, decoder, rate=4)
            assert asyncio.get_running_loop().time() - begin >= 0.2
            assert done.outcomes == {Outcome.COMMITTED: 1, Outcome.SUPERSEDED: 1}
            assert cosmos.documents['["k"]', "d7"]["id"] == "d7"
            assert "newest" in cosmos.documents['["k"]', "d3"]
            assert all([one.redriven async for one in archive.letters()])
            again = await redrive(archive, sink, decoder)
            assert (again.outcomes, again.skipped) == ({}, 2)


async def test_a_redrive_that_is_stopped_has_marked_what_went(azurite, blob_container_name):
    cosmos = MemoryContainer(Random(1))
    async with blobs(azurite, blob_container_name) as container:
        box = BlobDeadLetters(container)
        await box.append([letter(number, body=orjson.dumps({"id": f"d{number}", "key": "k"})) for number in range(50)])
        archive = LetterArchive(container)
        async with running(cosmos, box, replace(QUICK, guarded=True)) as sink:
            decoder = Decoder(DocumentOptions(), sink.definition, guarded=True)
            task = asyncio.create_task(redrive(archive, sink, decoder, rate=100))
            while sink.statistics().committed < 5:  # noqa: ASYNC110 - figures have no event
                await asyncio.sleep(0.01)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            marked = sum([one.redriven async for one in archive.letters()])
            assert 5 <= marked <= len(cosmos.documents)
            rest = await redrive(archive, sink, decoder)
            assert rest.skipped == marked
            assert len(cosmos.documents) == 50
