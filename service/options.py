"""From the settings to the options of each part: the only place that knows both."""

import os
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

from azure.core.credentials_async import AsyncTokenCredential
from azure.storage.blob.aio import ContainerClient
from pydantic import SecretStr

from service.config import Settings, connection_parts, entity_path
from service.flow.backlog import BacklogLimits
from service.memory import memory_limit
from service.sink.cosmos import CosmosAccess
from service.sink.flood import FloodOptions
from service.sink.lane import BatchOptions
from service.sink.options import SinkOptions
from service.sink.record import DocumentOptions
from service.source.balance import Strategy
from service.source.blob_leases import BlobLeases
from service.source.blob_ownership import BlobOwnership
from service.source.blobs import Blobs
from service.source.certificates import trusting
from service.source.connect import HubAddress
from service.source.position import OnAhead, OnGap, PositionPolicy
from service.source.processor import ProcessorOptions
from service.source.receiver import ReceiverOptions
from service.source.start import parse_start

OWNERSHIP_EXPIRY_SECONDS = 120.0
OWNERSHIP_RENEW_SECONDS = 30.0
"""In ownership mode, whatever LEASE_* say: the SDKs' processors in the same group go by these."""

WORKER_BYTES = 192 * 1024 * 1024
"""What a worker has in memory beside its backlog: about 110 MB at rest, and the requests that are on their way."""
LEAST_BACKLOG_BYTES = 16 * 1024 * 1024
RECEIVED_TIMES = 3
"""A receiver holds up to so many times what it fetches ahead: on the way, in the SDK's buffer, and handed over."""


def backlog(settings: Settings, share: Fraction) -> BacklogLimits:
    """ALLOW_BACKLOG_*, BACKLOG_POLICY; of the counted ones a worker has its share, but never less than an even one:
    what it holds already must not pass a limit that shrinks because another worker took a partition.
    """
    share = max(share, Fraction(1, settings.workers))
    return BacklogLimits(
        max(1, int(settings.allow_backlog_of * share)),
        settings.allow_backlog_to,
        max(1, int(backlog_bytes(settings) * share)),
        settings.backlog_policy,
    )


def backlog_bytes(settings: Settings) -> int:
    """ALLOW_BACKLOG_BYTES, or what the memory that this container has allows, where that is less."""
    limit = memory_limit()
    if limit is None:
        return settings.allow_backlog_bytes
    free = limit - settings.workers * WORKER_BYTES
    return min(settings.allow_backlog_bytes, max(LEAST_BACKLOG_BYTES, free // 2))


def hub(settings: Settings) -> HubAddress:
    """EVENTHUB_* that say which hub."""
    secret = settings.eventhub_connstring
    connection_string, endpoint = _without_port(secret) if secret else ("", "")
    return HubAddress(
        name=settings.eventhub_name or entity_path(settings) or "",
        group=settings.eventhub_consumergroup,
        connection_string=connection_string,
        namespace=settings.eventhub_namespace or "",
        transport=settings.eventhub_transport,
        endpoint=endpoint,
        ca_file=ca_file(),
    )


def _without_port(secret: SecretStr) -> tuple[str, str]:
    """The SDK takes a port in a connection string for emulators without TLS only; else it must be told apart."""
    text, parts = secret.get_secret_value(), connection_parts(secret)
    where = urlsplit(parts.get("endpoint", ""))
    if where.port is None or parts.get("usedevelopmentemulator") == "true":
        return text, ""
    return text.replace(f"{where.hostname}:{where.port}", str(where.hostname), 1), f"sb://{where.netloc}"


def ca_file() -> str:
    """Certificates to trust instead of the system's: SLUICE_CA_FILE, else SSL_CERT_FILE, which OpenSSL goes by."""
    return os.environ.get("SLUICE_CA_FILE") or os.environ.get("SSL_CERT_FILE", "")


def receiver(settings: Settings) -> ReceiverOptions:
    """EVENTHUB_PREFETCH, _MAX_BATCH, _MAX_WAIT."""
    return ReceiverOptions(
        prefetch=settings.eventhub_prefetch,
        max_batch=settings.eventhub_max_batch,
        max_wait_seconds=settings.eventhub_max_wait,
        prefetch_bytes=prefetch_bytes(settings),
    )


def prefetch_bytes(settings: Settings) -> int:
    """What one receiver may fetch ahead: with 32 partitions, the most of a standard hub, all that receivers hold is
    half of the memory allowed.
    """
    return backlog_bytes(settings) // (2 * 32 * RECEIVED_TIMES)


def blob_account(settings: Settings) -> dict[str, Any]:
    """BLOB_CONNSTRING or BLOB_ACCOUNT_URL, as `connect_blobs` takes them."""
    if settings.blob_connstring is not None:
        return {"connection_string": settings.blob_connstring.get_secret_value(), "ca_file": ca_file()}
    return {"account_url": settings.blob_account_url or "", "ca_file": ca_file()}


def processor(settings: Settings) -> ProcessorOptions:
    """LEASE_*, CHECKPOINT_ON_*, EVENTHUB_START."""
    as_the_sdks = settings.lease_mode == "ownership"
    return ProcessorOptions(
        strategy=Strategy(settings.lease_strategy),
        max_partitions=settings.lease_max_partitions,
        lease_seconds=OWNERSHIP_EXPIRY_SECONDS if as_the_sdks else settings.lease_duration,
        renew_seconds=OWNERSHIP_RENEW_SECONDS if as_the_sdks else settings.lease_renew,
        as_the_sdks=as_the_sdks,
        position=PositionPolicy(
            start=parse_start(settings.eventhub_start),
            on_gap=OnGap(settings.checkpoint_on_gap),
            on_ahead=OnAhead(settings.checkpoint_on_ahead),
        ),
    )


def cosmos(settings: Settings, credential: AsyncTokenCredential) -> CosmosAccess:
    """COSMOS_* that say which container."""
    database, container = settings.cosmos_database or "", settings.cosmos_container or ""
    if settings.cosmos_connstring is not None:
        secret = settings.cosmos_connstring.get_secret_value()
        return CosmosAccess.from_connection_string(secret, database, container)
    return CosmosAccess(settings.cosmos_endpoint or "", credential, database, container)


def dead_letters(settings: Settings, credential: AsyncTokenCredential) -> ContainerClient:
    """DEADLETTER_CONTAINER in the storage account of BLOB_*."""
    trust = trusting(ca_file())
    if settings.blob_connstring is not None:
        secret = settings.blob_connstring.get_secret_value()
        return ContainerClient.from_connection_string(secret, settings.dead_letters_in, **trust)
    return ContainerClient(settings.blob_account_url or "", settings.dead_letters_in, credential=credential, **trust)


def lease_store(settings: Settings, blobs: Blobs, *, adopt: bool = False) -> BlobLeases | BlobOwnership:
    """LEASE_MODE. `adopt` is for operators: start also beside what is another hub's or layout's."""
    if settings.lease_mode == "ownership":
        return BlobOwnership(blobs, OWNERSHIP_EXPIRY_SECONDS, adopt=adopt)
    return BlobLeases(blobs, settings.lease_duration, adopt=adopt)


def documents(settings: Settings) -> DocumentOptions:
    """DOCUMENT_*."""
    return DocumentOptions(
        id=settings.document_id,
        stamp=settings.document_stamp,
        transform=settings.document_transform or "",
        body=settings.document_body,
        delete=settings.document_delete or "",
    )


def sink(settings: Settings) -> SinkOptions:
    """COSMOS_* that say how to write, DEADLETTER_MAX_*."""
    return SinkOptions(
        batch=BatchOptions(settings.cosmos_batch_max, wait_seconds=settings.cosmos_batch_wait),
        guarded=settings.cosmos_write_mode == "guarded",
        stamp=settings.document_stamp,
        bulk=settings.cosmos_bulk,
        retry_wait_seconds=settings.cosmos_retry_wait,
        ru_limit=settings.cosmos_rulimit,
        flood=FloodOptions(settings.deadletter_max_ratio, settings.deadletter_max_consecutive),
    )
