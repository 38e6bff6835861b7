"""The whole local stack on loopback: Event Hubs, Cosmos and Azurite, started together and stopped together."""

import asyncio
import contextlib
import gc
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from service.local.azurite import Azurite, free_port
from service.local.certificates import Certificate, make_certificate
from service.local.cosmos.errors import Conflict
from service.local.cosmos.server import CosmosServer
from service.local.event_hubs.capture import CaptureSettings
from service.local.event_hubs.server import EventHubsServer
from service.local.tokens import TokenIssuer

HUB = "hub"
BLOB_CONTAINER = "sluice"
CAPTURE_CONTAINER = "capture"
DATABASE = "sluice"
CONTAINER = "documents"
PARTITION_KEY = "/key"


@dataclass(frozen=True, slots=True)
class StackOptions:
    """What `sluice local up` can be told."""

    partitions: int = 4
    physical_partitions: int = 3
    throughput: int = 0
    """RU/s of the Cosmos container, shared by its ranges; 0 = never throttle."""
    event_hubs_port: int = 0
    cosmos_port: int = 0
    blob_port: int = 0
    tls: bool = False
    """All three over TLS, with a certificate of the stack's own; tokens are accepted then, as in Azure."""
    websocket_port: int | None = None
    """AMQP over WebSockets as well; 0 = any free port, None = not at all."""
    control: bool = False
    """Ports over which other processes make trouble: see `event_hubs/control_http.py` and `cosmos/control.py`."""
    capture_seconds: float = 0.0
    """Write Capture files this often; 0 = no Capture."""
    data: Path | None = None
    """Keep everything in this folder over a restart; None = in memory."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack, with its servers at hand for tests."""

    event_hubs: EventHubsServer
    cosmos: CosmosServer
    azurite: Azurite
    issuer: TokenIssuer
    """Makes the tokens that the stack accepts over TLS."""
    certificate: Certificate | None = None
    more: dict[str, str] = field(default_factory=dict)
    """Further addresses, by the names under which `settings` has them."""

    def settings(self) -> dict[str, str]:
        """The settings that point `sluice` at this stack."""
        settings = {
            "EVENTHUB_CONNSTRING": self.event_hubs.connection_string(),
            "EVENTHUB_NAME": HUB,
            "BLOB_CONNSTRING": self.azurite.connection_string,
            "BLOB_CONTAINER": BLOB_CONTAINER,
            "COSMOS_CONNSTRING": self.cosmos.connection_string(),
            "COSMOS_DATABASE": DATABASE,
            "COSMOS_CONTAINER": CONTAINER,
            **self.more,
        }
        if self.certificate is not None:
            # A certificate is made for a name; some clients refuse addresses.
            settings = {name: value.replace("//127.0.0.1:", "//localhost:") for name, value in settings.items()}
            for name in ("SLUICE_CA_FILE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
                settings[name] = str(self.certificate.cert)
        return settings


@asynccontextmanager
async def running(options: StackOptions) -> AsyncIterator[Stack]:
    """A stack that answers on all three ports."""
    async with AsyncExitStack() as parts:
        folder = options.data or Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="sluice-stack-")))
        folder.mkdir(parents=True, exist_ok=True)
        options = _with_ports(options, folder)
        certificate = make_certificate(folder) if options.tls else None
        stack = _made(options, certificate)
        parts.push_async_callback(stack.azurite.stop)
        parts.push_async_callback(stack.event_hubs.stop)
        await stack.event_hubs.start(port=options.event_hubs_port)
        parts.push_async_callback(stack.cosmos.stop)
        await stack.cosmos.start(port=options.cosmos_port)
        await _open_more(stack, options)
        await stack.azurite.start()
        if options.capture_seconds:
            connection = stack.settings()["BLOB_CONNSTRING"]
            capture = CaptureSettings(
                connection,
                CAPTURE_CONTAINER,
                interval_seconds=options.capture_seconds,
                ca_file=str(certificate.cert) if certificate else "",
            )
            await stack.event_hubs.start_capture(capture)
        yield stack


async def _open_more(stack: Stack, options: StackOptions) -> None:
    """The ports that not everybody needs. Those of control are plain HTTP, also beside TLS."""
    if options.websocket_port is not None:
        port = await stack.event_hubs.start_websocket(port=options.websocket_port)
        scheme = "wss" if options.tls else "ws"
        stack.more["SLUICE_LOCAL_WEBSOCKET"] = f"{scheme}://127.0.0.1:{port}/$servicebus/websocket"
    if options.control:
        hubs, cosmos = await stack.event_hubs.start_control(), await stack.cosmos.start_control()
        stack.more["SLUICE_LOCAL_EVENTHUB_CONTROL"] = f"http://127.0.0.1:{hubs}"
        stack.more["SLUICE_LOCAL_COSMOS_CONTROL"] = f"http://127.0.0.1:{cosmos}"


def _with_ports(options: StackOptions, folder: Path) -> StackOptions:
    """The ports asked for; else those of the folder's last stack, since a hub at another address is another hub."""
    file = folder / "ports.json"
    before = orjson.loads(file.read_bytes()) if file.exists() else {}
    ports: dict[str, Any] = {
        name: getattr(options, name) or before.get(name) or free_port()
        for name in ("event_hubs_port", "cosmos_port", "blob_port")
    }
    file.write_bytes(orjson.dumps(ports))
    return replace(options, **ports)


def _made(options: StackOptions, certificate: Certificate | None) -> Stack:
    """The servers, not yet listening."""
    issuer = TokenIssuer()
    context = certificate.server_context() if certificate else None
    accepted = issuer if certificate else None
    event_hubs = EventHubsServer(
        ssl_context=context, token_issuer=accepted, data_dir=options.data and options.data / "event-hubs"
    )
    event_hubs.add_hub(HUB, partitions=options.partitions, exist_ok=True)
    cosmos = CosmosServer(ssl_context=context, issuer=accepted, data=options.data and options.data / "cosmos")
    with contextlib.suppress(Conflict):  # the folder has it from an earlier start
        cosmos.add_container(
            DATABASE,
            CONTAINER,
            partition_key=PARTITION_KEY,
            ranges=options.physical_partitions,
            throughput=options.throughput,
        )
    blobs = options.data and options.data / "blobs"
    azurite = Azurite(port=options.blob_port, data=blobs, certificate=certificate, oauth=certificate is not None)
    return Stack(event_hubs, cosmos, azurite, issuer, certificate)


def write_env_file(path: Path, settings: dict[str, str]) -> None:
    """Write the file whole or not at all: others wait for it to appear."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w") as file:
        file.writelines(f"{key}={value}\n" for key, value in settings.items())
    Path(name).replace(path)


async def up(options: StackOptions, env_file: Path | None, stop: asyncio.Event) -> None:
    """Run the stack until told to stop; says `ready` when every part answers."""
    # Documents and events are kept for good and make no cycles: each collection would look through all of them.
    gc.freeze()
    gc.set_threshold(200_000, 50, 1000)
    async with running(options) as stack:
        settings = stack.settings()
        if env_file is not None:
            write_env_file(env_file, settings)
        where = f", settings in {env_file}" if env_file else ""
        print(f"ready: Event Hubs, Cosmos and Azurite on loopback{where}", flush=True)  # noqa: T201 - the command's answer
        if env_file is None:
            for key, value in settings.items():
                print(f"{key}={value}", flush=True)  # noqa: T201 - the command's answer
        await stop.wait()
