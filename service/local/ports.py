"""How a port is closed so that no connection is lost between the kernel and its protocol."""

import asyncio


async def stop_accepting(server: asyncio.Server) -> None:
    """Close the port; who had just been accepted is known to his protocol when this returns, and can be closed too.

    `Server.close` alone forgets a connection that is accepted in the same turn of the loop: its transport cannot
    attach to a closed server any more, and nobody ever closes its socket.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    for _ in range(3):  # turns of the loop: the accepted socket gets its transport, then its protocol hears of it
        await asyncio.sleep(0)
    server.close()
