"""What a process says of itself when it does not end."""

import asyncio

from service.ops.tasks import unfinished


async def test_each_task_is_named_with_the_calls_in_which_it_waits():
    never = asyncio.Event()

    async def inner():
        await never.wait()

    async def outer():
        await inner()

    task = asyncio.create_task(outer(), name="reader-3")
    await asyncio.sleep(0)
    (said,) = unfinished()
    name, _, calls = said.partition(": ")
    assert name == "reader-3"
    assert [each.partition(":")[0].rpartition(".")[2] for each in calls.split(" > ")] == ["outer", "inner", "wait"]
    task.cancel()
    await asyncio.wait([task])
    assert unfinished() == []
