"""The SDK's reading of an event's bytes, made to bear whatever a sender of another language may put into them.

pyamqp (azure-eventhub 5.15) knows neither char, decimal32 and decimal64, nor arrays of described values, nor keys of a
map that Python cannot hash, nor sections described by a name. On such an event its receiver fails, and fails again each
time it comes back: the partition would stand still for ever. So where pyamqp fails, or finds no body, the sections are
cut by our own codec, and the event goes its way with its body whole. Properties that no codec can read are left out.

There is no public place for this: `install` puts itself in front of the function in both receivers of pyamqp.
"""

from collections.abc import Callable
from typing import Any

from azure.eventhub._pyamqp import receiver as _sync
from azure.eventhub._pyamqp._decode import decode_payload
from azure.eventhub._pyamqp.aio import _receiver_async as _aio
from azure.eventhub._pyamqp.message import Message, Properties

from service.amqp import messages
from service.amqp.decode import decode
from service.amqp.errors import DecodeError
from service.amqp.types import Described

_LISTS = {messages.DATA: "data", messages.SEQUENCE: "sequence"}
_VALUES: dict[int, tuple[str, Callable[[Any], Any]]] = {
    messages.DELIVERY_ANNOTATIONS: ("delivery_annotations", dict),
    messages.MESSAGE_ANNOTATIONS: ("message_annotations", dict),
    messages.PROPERTIES: ("properties", lambda fields: Properties(*fields)),
    messages.APPLICATION_PROPERTIES: ("application_properties", dict),
    messages.VALUE: ("value", lambda value: value),
    messages.FOOTER: ("footer", dict),
}
"""What becomes of a section. The header is of no use to a consumer."""


def install() -> None:
    """From now on the SDK reads payloads by `read`. Doing it twice does no harm."""
    _aio.decode_payload = _sync.decode_payload = read  # type: ignore[attr-defined]


def read(buffer: memoryview) -> Message:
    """A message, by pyamqp if it can."""
    try:
        message = decode_payload(buffer)
    except Exception:  # noqa: BLE001 - it raises whatever Python happens to raise on what it does not know
        return _read_whole(bytes(buffer))
    return message if message.data or message.sequence or message.value is not None else _read_whole(bytes(buffer))


def _read_whole(payload: bytes) -> Message:
    """By our own codec, a section at a time, so that one which cannot be read does not take the others with it."""
    parts: dict[str, Any] = {}
    for section in messages.sections(payload):
        if section.code == messages.HEADER:
            continue
        try:
            value = _as_pyamqp(decode(payload, section.value)[0])
            if section.code in _LISTS:
                parts.setdefault(_LISTS[section.code], []).append(value)
            else:
                name, make = _VALUES[section.code]
                parts[name] = make(value)
        except (DecodeError, TypeError, ValueError):
            continue
    return Message(**parts)


def _as_pyamqp(value: Any) -> Any:  # noqa: ANN401 - any AMQP value
    """Texts as octets and no descriptors: the forms in which pyamqp gives them, and the rest of us knows them."""
    match value:
        case str():
            return value.encode()
        case Described():
            return _as_pyamqp(value.value)
        case list():
            return [_as_pyamqp(each) for each in value]
        case dict():
            return {_as_pyamqp(key): _as_pyamqp(each) for key, each in value.items()}
        case _:
            return value
