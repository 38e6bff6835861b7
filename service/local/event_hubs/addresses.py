"""From an attach to a link: what its address names, and whether the client may have it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from service.amqp.errors import INVALID_FIELD, AmqpError
from service.amqp.performatives import RECEIVER, Attach, symbols
from service.amqp.types import Described
from service.local.event_hubs import cbs, management
from service.local.event_hubs.access import resource_path
from service.local.event_hubs.consumer import ConsumerLink
from service.local.event_hubs.hubs import DEFAULT_GROUP
from service.local.event_hubs.links import Link, ReplyLink, RequestLink
from service.local.event_hubs.positions import start_position
from service.local.event_hubs.publisher import PublisherLink

if TYPE_CHECKING:
    from service.local.event_hubs.session import Session

CBS, MANAGEMENT = "$cbs", "$management"

EPOCH = "com.microsoft:epoch"
RECEIVER_NAME = "com.microsoft:receiver-name"
RUNTIME_METRIC = "com.microsoft:enable-receiver-runtime-metric"

_ENTITY = re.compile(
    r"^(?P<hub>[^/]+)(?:/consumergroups/(?P<group>[^/]+))?(?:/partitions/(?P<partition>[^/]+))?$", re.IGNORECASE
)
_HOST = re.compile(r"^[a-z]+://[^/]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entity:
    """A hub, a partition of it to send to, or a partition in a consumer group to receive from."""

    hub: str
    group: str | None
    partition: str | None


def open_link(session: Session, attach: Attach) -> Link:
    """The link that an attach asks for; AmqpError if it cannot be had."""
    address = _address(attach.source if attach.role is RECEIVER else attach.target)
    path = _HOST.sub("", address).strip("/")
    node = path.rpartition("/")[2].lower()
    if node in (CBS, MANAGEMENT):
        return _node_link(session, attach, node)
    match = _ENTITY.match(path)
    if match is None:
        raise AmqpError(f"The messaging entity '{address[:200]}' could not be found.", "amqp:not-found")
    entity = Entity(match["hub"], match["group"], match["partition"])
    session.connection.grants.check(resource_path(address))
    session.connection.namespace.faults.check_busy(entity.hub)
    if attach.role is RECEIVER:
        return _consumer_link(session, attach, entity, resource_path(address))
    return _publisher_link(session, attach, entity, resource_path(address))


def _node_link(session: Session, attach: Attach, node: str) -> Link:
    connection = session.connection
    if attach.role is RECEIVER:
        return ReplyLink(session, attach.handle, attach.name, node, _address(attach.target))
    answer = partial(cbs.answer, connection) if node == CBS else partial(management.answer, connection)
    return RequestLink(session, attach.handle, attach.name, node, answer)


def _publisher_link(session: Session, attach: Attach, entity: Entity, resource: str) -> Link:
    hub = session.connection.namespace.hub(entity.hub)
    partition = hub.partition(entity.partition) if entity.partition is not None else None
    return PublisherLink(session, attach.handle, attach.name, resource, hub=hub, partition=partition)


def _consumer_link(session: Session, attach: Attach, entity: Entity, resource: str) -> Link:
    hub = session.connection.namespace.hub(entity.hub)
    group = entity.group or DEFAULT_GROUP
    hub.check_consumer_group(group)
    if entity.partition is None:
        raise AmqpError("A receiver needs a partition: <hub>/ConsumerGroups/<group>/Partitions/<id>.", "amqp:not-found")
    partition = hub.partition(entity.partition)
    properties = attach.properties or {}
    epoch = properties.get(EPOCH)
    if epoch is not None and not isinstance(epoch, int):
        raise AmqpError("The epoch is not a number.", INVALID_FIELD)
    link = ConsumerLink(
        session,
        attach.handle,
        attach.name,
        resource,
        hub=hub,
        partition=partition,
        group=group.lower(),
        epoch=None if epoch is None else int(epoch),
        receiver_name=str(properties.get(RECEIVER_NAME) or "nil"),
        runtime_metrics=RUNTIME_METRIC in symbols(attach.desired_capabilities),
    )
    link.next_sequence = partition.log.seek(start_position(attach.source))
    partition.group(group).admit(link)
    return link


def _address(terminus: Described | None) -> str:
    fields = terminus.value if terminus is not None else None
    return str(fields[0]) if isinstance(fields, list) and fields and isinstance(fields[0], str) else ""
