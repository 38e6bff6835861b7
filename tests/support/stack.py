"""A local stack in a thread of its own, and `sluice` as real processes against it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

import psutil

from service.local import stack
from service.local.azurite import free_port


class RunningStack:
    """The servers, reachable from the test; `call` runs something on their loop."""

    def __init__(self, options: stack.StackOptions, folder: Path) -> None:
        self.env_file = folder / "stack.env"
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.servers: stack.Stack

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(90), "the local stack did not start"
        assert hasattr(self, "servers"), "the local stack did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)

    def call(self, function, *arguments):
        """`function(*arguments)` on the servers' loop, awaited there if it is a coroutine."""

        async def there():
            result = function(*arguments)
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(there(), self._loop).result(60)

    @property
    def container(self):
        return self.servers.cosmos.container(stack.DATABASE, stack.CONTAINER)

    @property
    def hub(self):
        return self.servers.event_hubs.hub(stack.HUB)

    def documents(self):
        return self.call(lambda: list(self.container.documents()))

    def _run(self) -> None:
        async def main():
            async with stack.running(self._options) as servers:
                self.servers = servers
                stack.write_env_file(self.env_file, servers.settings())
                self._ready.set()
                await self._stop.wait()

        try:
            self._loop.run_until_complete(main())
        finally:
            self._ready.set()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


class Process:
    """One `sluice` process. Its output goes to a file, so that a full pipe cannot stop it."""

    def __init__(
        self, *arguments: str, folder: Path, settings: dict[str, str] | None = None, data_bytes: int = 0
    ) -> None:
        """`data_bytes`: the kernel gives it no more memory than this; 0: as much as there is."""
        self.port = free_port()
        self.log = folder / f"{arguments[0]}-{self.port}.log"
        environment = {**os.environ, "HTTP_PORT": str(self.port), "LOG_FORMAT": "json", **(settings or {})}
        limited = ["prlimit", f"--data={data_bytes}"] if data_bytes else []
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [*limited, sys.executable, "-m", "service", *arguments],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, seconds: float = 60) -> int:
        """SIGTERM; gives the exit code."""
        self.process.terminate()
        return self.process.wait(seconds)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def peak_bytes(self) -> int:
        """The most memory that it ever had resident."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))

    def status(self) -> dict | None:
        """What /status says; None while nobody listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=5) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def get(self, path: str) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def records(self) -> dict[str, int]:
        status = self.status()
        return status["records"] if status else dict.fromkeys(("received", "committed", "failed", "superseded"), 0)


def until(condition, seconds: float = 60, what: str = "", every: float = 0.05, process: Process | None = None):
    """Wait for a condition; gives its value. Fails with `what` (and the process's output) when it does not come."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if process is not None and process.process.poll() is not None:
            raise AssertionError(f"the process ended with {process.process.returncode}:\n{process.output()[-3000:]}")
        if time.monotonic() > deadline:
            said = f"\n{process.output()[-3000:]}" if process is not None else ""
            raise AssertionError(f"not within {seconds} s: {what}{said}")
        time.sleep(every)
