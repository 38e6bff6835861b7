"""`$management`: what a hub and its partitions are (SDK: `_client_base.ClientBase._management_request`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.amqp.errors import NOT_FOUND, UNAUTHORIZED_ACCESS, AmqpError
from service.amqp.messages import Message
from service.amqp.types import Array, Int, Timestamp
from service.local.event_hubs.access import Unauthorized
from service.local.event_hubs.cbs import JWT_TYPE, SAS_TYPE, check_token, reply
from service.local.event_hubs.namespace import SERVER_BUSY

if TYPE_CHECKING:
    from service.local.event_hubs.connection import Connection
    from service.local.event_hubs.hubs import Hub
    from service.local.event_hubs.partition import Partition

HUB_TYPE = "com.microsoft:eventhub"
PARTITION_TYPE = "com.microsoft:partition"
NO_REPLICATION = Int(-1)
"""Which life of a geo-replicated namespace a sequence number is of. The SDK for Rust refuses answers without one; what
the service says where nothing is replicated is not public."""
_STATUS = {NOT_FOUND: 404, UNAUTHORIZED_ACCESS: 401, SERVER_BUSY: 503}


def answer(connection: Connection, request: Message) -> Message:
    """The reply to a READ of a hub or a partition."""
    fields = {_text(key): _text(value) for key, value in request.application_properties.items()}
    try:
        body = _read(connection, fields)
    except AmqpError as error:
        return reply(request, _STATUS.get(error.condition, 400), error.description, error.condition)
    return reply(request, 200, "OK", body=body)


def _read(connection: Connection, fields: dict[str, str]) -> dict[object, object]:
    name, kind = fields.get("name", ""), fields.get("type")
    connection.namespace.faults.check_busy(name)
    _check_access(connection, name.lower(), fields.get("security_token", ""))
    hub = connection.namespace.hub(name)
    if fields.get("operation") != "READ" or kind not in (HUB_TYPE, PARTITION_TYPE):
        raise AmqpError(f"The operation '{fields.get('operation')}' on '{kind}' is not known.", "amqp:not-implemented")
    return _hub(hub) if kind == HUB_TYPE else _partition(hub, hub.partition(fields.get("partition", "")))


def _check_access(connection: Connection, name: str, token: str) -> None:
    """JS puts its token to $cbs for the node, Python and Go for the hub; Java only shows it in the request."""
    grants, resource = connection.grants, f"{name}/$management"
    if grants.allows(resource) or grants.allows(name):
        return
    if not token:
        grants.check(name)
    try:
        check_token(connection, SAS_TYPE if token.startswith("SharedAccessSignature ") else JWT_TYPE, token, resource)
    except Unauthorized as refusal:
        raise AmqpError(str(refusal), UNAUTHORIZED_ACCESS) from None


def _hub(hub: Hub) -> dict[object, object]:
    return {
        "name": hub.name,
        "type": HUB_TYPE,
        "created_at": Timestamp(hub.created_ms),
        "partition_count": Int(len(hub.partitions)),
        "partition_ids": Array(partition.id for partition in hub.partitions),
        "georeplication_factor": Int(1),
    }


def _partition(hub: Hub, partition: Partition) -> dict[object, object]:
    log = partition.log
    return {
        "name": hub.name,
        "type": PARTITION_TYPE,
        "partition": partition.id,
        "begin_sequence_number": log.first,
        "begin_sequence_number_epoch": NO_REPLICATION,
        "last_enqueued_sequence_number": log.last,
        "last_enqueued_sequence_number_epoch": NO_REPLICATION,
        "last_enqueued_offset": str(log.last_offset),
        "last_enqueued_time_utc": Timestamp(log.last_enqueued_ms),
        "is_partition_empty": not log.events,
    }


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else "" if value is None else str(value)
