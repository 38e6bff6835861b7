"""Clients for the hub and the blobs, from a connection string or from a host name and an identity."""

from dataclasses import dataclass
from typing import Any, Literal

from azure.core.credentials_async import AsyncTokenCredential
from azure.eventhub import TransportType, parse_connection_string
from azure.eventhub.aio import EventHubConsumerClient
from azure.identity.aio import DefaultAzureCredential
from azure.storage.blob.aio import ContainerClient

from service.errors import BadSettings
from service.source.blobs import Blobs
from service.source.certificates import trusted, trusting
from service.source.event_hubs import EventHubs
from service.source.receiver import ReceiverOptions

_NEVER_SECONDS = 1e7
"""The SDK's own balancing is not wanted: after an error it would attach again after this long."""


@dataclass(frozen=True, slots=True)
class HubAddress:
    """Which hub to read, for whom, and how to reach it."""

    name: str
    group: str = "$Default"
    connection_string: str = ""
    namespace: str = ""
    """Host name of the namespace, where an identity is used instead of a connection string."""
    transport: Literal["amqp", "websocket"] = "amqp"
    endpoint: str = ""
    """Another address to connect to, such as `sb://gateway:443`, where the namespace is behind a gateway."""
    ca_file: str = ""
    """Certificates to trust instead of the system's; for local servers."""


def connect_hub(
    address: HubAddress, options: ReceiverOptions, credential: AsyncTokenCredential | None = None
) -> EventHubs:
    """A hub. Without a connection string or credential the process's own identity is used, and closed with the hub."""
    common: dict[str, Any] = {
        "consumer_group": address.group,
        "eventhub_name": address.name,
        "retry_total": 0,
        "load_balancing_interval": _NEVER_SECONDS,
        "transport_type": TransportType.Amqp if address.transport == "amqp" else TransportType.AmqpOverWebsocket,
        "ssl_context": trusted(address.ca_file),
    }
    if address.endpoint:
        common["custom_endpoint_address"] = address.endpoint
    if address.connection_string:
        namespace = _namespace(address.connection_string)

        def from_string() -> EventHubConsumerClient:
            return EventHubConsumerClient.from_connection_string(address.connection_string, **common)

        return EventHubs(from_string, namespace, address.name, options)
    own = None if credential else DefaultAzureCredential()

    def from_identity() -> EventHubConsumerClient:
        return EventHubConsumerClient(address.namespace, credential=credential or own, **common)  # type: ignore[arg-type]

    return EventHubs(from_identity, address.namespace.lower(), address.name, options, own.close if own else None)


def connect_blobs(
    container: str,
    *,
    connection_string: str = "",
    account_url: str = "",
    credential: AsyncTokenCredential | None = None,
    ca_file: str = "",
) -> Blobs:
    """A container of blobs, with the SDK's own retries off."""
    options: dict[str, Any] = {"retry_total": 0, "connection_timeout": 5, "read_timeout": 10, **trusting(ca_file)}
    if connection_string:
        try:
            client = ContainerClient.from_connection_string(connection_string, container, **options)
        except ValueError:
            raise BadSettings(["BLOB_CONNSTRING is no storage connection string"]) from None
        return Blobs(client)
    own = None if credential else DefaultAzureCredential()
    client = ContainerClient(account_url, container, credential=credential or own, **options)
    return Blobs(client, close_credential=own.close if own else None)


def _namespace(connection_string: str) -> str:
    """The host name in it, as the SDKs write it into blob names."""
    try:
        return str(parse_connection_string(connection_string).fully_qualified_namespace).lower()
    except ValueError:
        raise BadSettings(["EVENTHUB_CONNSTRING is no Event Hubs connection string"]) from None
