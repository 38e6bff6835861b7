"""The settings, read from the environment and from `--env-file`, with every fault reported at once.

Names are those of the original sample where it had them. The README's table is generated from this module.
"""

import difflib
import os
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.errors import BadSettings
from service.source.start import parse_start
from service.units import parse_bytes, parse_duration

Duration = Annotated[float, BeforeValidator(parse_duration)]
"""Seconds; written `500ms`, `5s`, `10m`, or as a number of seconds."""
Bytes = Annotated[int, BeforeValidator(parse_bytes)]
"""Bytes; written `512MiB`, `220kB`, or as a number."""


def _start(text: str) -> str:
    parse_start(text)
    return text


class Settings(BaseSettings):
    """What one replica is told. Frozen; a change needs a new start, but for the rate (SIGHUP re-reads the file)."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    eventhub_connstring: SecretStr | None = None
    """Connection string of the namespace or hub; or give EVENTHUB_NAMESPACE."""
    eventhub_namespace: str | None = None
    """Host name of the namespace (`name.servicebus.windows.net`), read with managed identity."""
    eventhub_name: str | None = None
    """The hub's name, where the connection string has no EntityPath."""
    eventhub_consumergroup: str = "$Default"
    """The consumer group; one of its own for each application."""
    eventhub_ratelimit: Annotated[int, Field(ge=0)] = 0
    """Records per second of the replica, all its workers together; 0 = no limit."""
    eventhub_ratelimit_scope: Literal["replica", "fleet"] = "replica"
    """`replica`, or `fleet`: the number is for all hosts together, each takes its share by owned partitions."""
    eventhub_start: Annotated[str, BeforeValidator(_start)] = "earliest"
    """Where a partition without a checkpoint starts: `earliest`, `latest`, an ISO time, or JSON by partition."""
    eventhub_prefetch: Annotated[int, Field(ge=1, le=100_000)] = 3000
    """Events that a receiver may hold unread; shrinks with the size of events."""
    eventhub_max_batch: Annotated[int, Field(ge=1, le=10_000)] = 500
    """Events handed over at a time."""
    eventhub_max_wait: Annotated[Duration, Field(gt=0)] = 1.0
    """How long a receiver waits for events before it looks around."""
    eventhub_transport: Literal["amqp", "websocket"] = "amqp"
    """`websocket` for networks that let only port 443 through."""

    blob_connstring: SecretStr | None = None
    """Connection string of the storage account for leases and checkpoints; or give BLOB_ACCOUNT_URL."""
    blob_account_url: str | None = None
    """Address of the storage account (`https://name.blob.core.windows.net`), used with managed identity."""
    blob_container: str | None = None
    """The container for leases and checkpoints; made when missing."""

    lease_mode: Literal["lease", "ownership"] = "lease"
    """`lease`: blob leases and epochs, EventProcessorHost's layout; `ownership`: the current SDKs' layout."""
    lease_strategy: Literal["greedy", "balanced"] = "greedy"
    """How free partitions are taken: all of the fair share at once, or one a cycle."""
    lease_duration: Annotated[Duration, Field(ge=15, le=60)] = 30.0
    """How long a lease holds without renewal: 15 to 60 s (bounds of Azure). In ownership mode the expiry is 120 s."""
    lease_renew: Annotated[Duration, Field(gt=0)] = 10.0
    """How often leases are renewed; at most half the duration. In ownership mode the interval is 30 s."""
    lease_max_partitions: Annotated[int, Field(ge=0)] = 0
    """Partitions that one host may own; 0 = no limit."""

    checkpoint_interval: Annotated[Duration, Field(ge=0.1)] = 5.0
    """How often the frontier is made durable."""
    checkpoint_on_gap: Literal["warn", "stop"] = "warn"
    """When retention has passed the checkpoint: go on at the first event that is left, or stop."""
    checkpoint_on_ahead: Literal["stop", "earliest", "latest"] = "stop"
    """When the checkpoint is not of this hub's life (hub re-created): stop, or forget it and begin anew there."""

    cosmos_connstring: SecretStr | None = None
    """Connection string of the Cosmos account; or give COSMOS_ENDPOINT."""
    cosmos_endpoint: str | None = None
    """Address of the Cosmos account, used with managed identity."""
    cosmos_database: str | None = None
    """The database."""
    cosmos_container: str | None = None
    """The container that receives the documents."""
    cosmos_write: bool = True
    """`no` = dry run: read, decode, count; leases in memory, nothing written, its own consumer group required."""
    cosmos_write_mode: Literal["upsert", "guarded"] = "upsert"
    """`guarded`: no older record is ever written over a newer one, also across replays and backfill."""
    cosmos_bulk: Literal["auto", "off"] = "auto"
    """`off`: one request per record, should a service refuse the bulk protocol."""
    cosmos_batch_max: Annotated[int, Field(ge=1, le=100)] = 100
    """Records in one bulk request; the service takes at most 100."""
    cosmos_batch_wait: Annotated[Duration, Field(ge=0)] = 1.0
    """A batch leaves when it is full, or when its oldest record has waited this long since it arrived."""
    cosmos_retry_wait: Annotated[Duration, Field(gt=0)] = 2.0
    """Wait between tries where the service names none."""
    cosmos_rulimit: Annotated[int, Field(ge=0)] = 0
    """RU/s that this replica may spend; 0 = no limit."""

    allow_backlog_of: Annotated[int, Field(ge=1)] = 320_000
    """Records taken and not yet completed that the replica may hold."""
    allow_backlog_to: Annotated[Duration, Field(gt=0)] = 600.0
    """How long the oldest of them may wait."""
    allow_backlog_bytes: Annotated[Bytes, Field(ge=1024 * 1024)] = 512 * 1024 * 1024
    """Memory they may take; above it intake pauses, whatever the policy."""
    backlog_policy: Literal["fail", "pause"] = "fail"
    """Above the limits: end with exit code 70, or pause intake until there is room."""

    document_id: str = "/id"
    """Path of the document's id in the body, or `sequence`: made from incarnation, partition, sequence and index."""
    document_stamp: str = "_sluice"
    """Name of the property that says where a document came from; empty for none."""
    document_transform: str | None = None
    """`module:function` that may replace, split or drop a body."""
    document_body: str = "object"
    """`object`, `array`, or a path such as `/records` for several records in one event."""
    document_delete: str | None = None
    """Path whose truth makes the record a delete."""

    deadletter_container: str | None = None
    """Blob container for dead letters; `<BLOB_CONTAINER>-deadletters` unless given."""
    deadletter_max_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of dead letters above which the process stops with exit code 75."""
    deadletter_max_consecutive: Annotated[int, Field(ge=1)] = 1000
    """Dead letters in a row above which the process stops with exit code 75."""

    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes of this replica, each a host."""
    shutdown_deadline: Annotated[Duration, Field(gt=0)] = 50.0
    """From SIGTERM to the end: drain, checkpoint, release."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """How much is logged."""
    log_format: Literal["auto", "json", "text"] = "auto"
    """`auto`: text on a terminal, else JSON lines."""
    http_host: str = "127.0.0.1"
    """Where the ops pages listen; 0.0.0.0 in the image."""
    http_port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """Port of the ops pages; 0 = any free one."""

    @model_validator(mode="before")
    @classmethod
    def _empty_means_not_given(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Templates pass what was left out as an empty string. Only an empty stamp has a meaning: none."""
        return {name: value for name, value in values.items() if value != "" or name == "document_stamp"}

    @property
    def dead_letters_in(self) -> str:
        """The blob container for dead letters."""
        return self.deadletter_container or f"{self.blob_container}-deadletters"


def load(env_file: Path | None = None) -> Settings:
    """The settings from the environment, which wins, and from a file. Raises BadSettings with every fault."""
    if env_file is not None and not env_file.is_file():
        raise BadSettings([f"--env-file: there is no file {env_file}. Give the path of a file with NAME=value lines."])
    faults: list[str] = []
    broken: dict[str, Any] = {}
    try:
        settings = Settings(_env_file=env_file)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            name = str(fault["loc"][0])
            broken[name] = Settings.model_fields[name].default
            faults.append(f"{name.upper()}: {_sentence(str(fault['msg']))}")
        # Once more with defaults in the broken places, so that the rest can be looked at too.
        settings = Settings(_env_file=env_file, **broken)
    faults += _missing(settings, broken.keys())
    faults += _contradictions(settings, broken.keys())
    faults += _misspelt(env_file)
    if faults:
        raise BadSettings(faults)
    return settings


def _sentence(message: str) -> str:
    return message.removeprefix("Value error, ").removeprefix("Input ").rstrip(".") + "."


def _missing(settings: Settings, broken: AbstractSet[str]) -> Iterator[str]:
    pairs = [
        ("eventhub_connstring", "eventhub_namespace"),
        ("blob_connstring", "blob_account_url"),
        ("cosmos_connstring", "cosmos_endpoint"),
    ]
    if not settings.cosmos_write:
        pairs.remove(("blob_connstring", "blob_account_url"))
    for key, identity in pairs:
        values = getattr(settings, key), getattr(settings, identity)
        if not any(values) and not broken & {key, identity}:
            yield f"{key.upper()}: missing. Give it, or {identity.upper()} to use managed identity."
        if all(values):
            yield f"{key.upper()} and {identity.upper()}: give one of them, not both."
    needed = ["cosmos_database", "cosmos_container"] + (["blob_container"] if settings.cosmos_write else [])
    for name in needed:
        if not getattr(settings, name) and name not in broken:
            yield f"{name.upper()}: missing."
    entity = entity_path(settings)
    if not settings.eventhub_name and not entity and "eventhub_name" not in broken:
        yield "EVENTHUB_NAME: missing, and EVENTHUB_CONNSTRING has no EntityPath."
    if settings.eventhub_name and entity and settings.eventhub_name.lower() != entity.lower():
        yield (
            f"EVENTHUB_NAME: is {settings.eventhub_name}, but the EntityPath in EVENTHUB_CONNSTRING is {entity}. "
            "Make them agree, or leave one out."
        )


def _contradictions(settings: Settings, broken: AbstractSet[str]) -> Iterator[str]:
    yield from _incomplete(settings)
    for name in ("blob_account_url", "cosmos_endpoint"):
        address = getattr(settings, name)
        if address and not address.startswith(("https://", "http://")):
            yield f"{name.upper()}: must be an address that begins with https://."
    for name, words in (
        ("document_id", ("sequence",)),
        ("document_body", ("object", "array")),
        ("document_delete", ()),
    ):
        path = getattr(settings, name)
        if path and path not in words and not path.startswith("/"):
            choice = "".join(f"`{word}` or " for word in words)
            yield f"{name.upper()}: must be {choice}a path that begins with a slash, such as /id."
    if not broken & {"lease_renew", "lease_duration"} and settings.lease_renew > settings.lease_duration / 2:
        yield (
            f"LEASE_RENEW: {settings.lease_renew:g} s is more than half of LEASE_DURATION "
            f"({settings.lease_duration:g} s). One lost renewal would lose the lease: lower it or raise the duration."
        )
    if settings.cosmos_write_mode == "guarded" and not settings.document_stamp:
        yield "COSMOS_WRITE_MODE: guarded compares stamps, but DOCUMENT_STAMP is empty. Name a stamp or use upsert."
    if not settings.cosmos_write and settings.eventhub_consumergroup.lower() == "$default":
        yield (
            "COSMOS_WRITE: a dry run reads with leases of its own and would push out the real consumer. "
            "Give it a consumer group of its own in EVENTHUB_CONSUMERGROUP."
        )


def _incomplete(settings: Settings) -> Iterator[str]:
    """Connection strings that were not copied whole. Each name is followed by the keys of which one must be there."""
    for name, *needed in (
        ("eventhub_connstring", ("Endpoint",)),
        ("blob_connstring", ("AccountName", "BlobEndpoint", "UseDevelopmentStorage")),
        ("cosmos_connstring", ("AccountEndpoint",), ("AccountKey",)),
    ):
        secret: SecretStr | None = getattr(settings, str(name))
        if secret is None:
            continue
        parts = connection_parts(secret)
        lacking = [" or ".join(keys) for keys in needed if not any(parts.get(key.lower()) for key in keys)]
        if lacking:
            yield f"{str(name).upper()}: has no {' and no '.join(lacking)}. Copy the whole connection string."


def _misspelt(env_file: Path | None) -> Iterator[str]:
    """Names so close to one of ours that they must be meant: a typo in the rate limit would mean no limit."""
    known = {name.upper() for name in Settings.model_fields}
    given = set(os.environ) | set(dotenv_values(env_file, interpolate=False) if env_file else ())
    for name in sorted({name.upper() for name in given} - known):
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.92)
        if close:
            yield f"{name}: is no setting. Did you mean {close[0]}?"


def connection_parts(secret: SecretStr) -> dict[str, str]:
    """The parts of a connection string, keys in lower case."""
    pairs = (part.partition("=") for part in secret.get_secret_value().split(";") if "=" in part)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def entity_path(settings: Settings) -> str | None:
    """The hub that the connection string itself names."""
    if settings.eventhub_connstring is None:
        return None
    return connection_parts(settings.eventhub_connstring).get("entitypath")
