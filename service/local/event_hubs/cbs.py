"""`$cbs`: clients put the tokens that their links need (AMQP Claims-based Security, working draft 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.amqp.errors import UNAUTHORIZED_ACCESS, AmqpError
from service.amqp.messages import Message
from service.amqp.types import Int, Symbol
from service.local.event_hubs.access import Unauthorized, resource_path

if TYPE_CHECKING:
    from service.local.event_hubs.connection import Connection

SAS_TYPE = "servicebus.windows.net:sastoken"
JWT_TYPE = "jwt"


def answer(connection: Connection, request: Message) -> Message:
    """The reply to a put-token: 202 if the token holds for its audience, else 401, or 404 if there is no such hub."""
    fields = request.application_properties
    if _text(fields.get("operation")) != "put-token":
        return reply(request, 400, "BadRequest: The operation is not put-token.")
    resource = resource_path(_text(fields.get("name")))
    try:
        until = check_token(connection, _text(fields.get("type")), _text(request.body), resource)
        if resource:
            # The SDK's live tests expect a refusal at this point for a hub that is not there.
            connection.namespace.hub(resource.partition("/")[0])
        connection.grant(resource, until)
    except Unauthorized as refusal:
        return reply(request, 401, str(refusal), UNAUTHORIZED_ACCESS)
    except AmqpError as error:
        return reply(request, 404, error.description, error.condition)
    return reply(request, 202, "Accepted")


def reply(
    request: Message, status: int, description: str, condition: str | None = None, body: object = None
) -> Message:
    """A response that carries the request's id back (the SDKs pair them by correlation-id)."""
    fields: dict[object, object] = {"status-code": Int(status), "status-description": description}
    if condition is not None:
        fields["error-condition"] = Symbol(condition)
    properties: list[object] = [None, None, None, None, None, request.message_id]
    return Message(properties=properties, application_properties=fields, body=body)


def check_token(connection: Connection, kind: str, token: str, resource: str) -> float:
    """When a token that covers `resource` expires; Unauthorized if it does not hold."""
    access = connection.namespace.access
    if kind == SAS_TYPE:
        return access.check_sas(token, resource)
    if kind == JWT_TYPE:
        return access.check_bearer(token)
    raise Unauthorized(f"InvalidToken: Tokens of type '{kind[:100]}' are not known.")


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else "" if value is None else str(value)
