"""The user's own function between events and documents (setting DOCUMENT_TRANSFORM).

    def transform(document):            or   def transform(document, event):
        return document                      replace: any object; or the same one, changed
        return [one, two]                    split into several
        return None                          drop

`event` has `sequence`, `partition`, `enqueued_ms`, `properties` and `content_type`. The function must be plain and
quick: it runs on the event loop. What it raises makes the record a dead letter.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from service.errors import BadSettings
from service.source.events import Event


@dataclass(frozen=True, slots=True)
class EventView:
    """What a transform may know about the event."""

    sequence: int
    partition: str
    enqueued_ms: int
    properties: Mapping[Any, Any]
    content_type: str | None


class Transform:
    """The function, ready to be called."""

    def __init__(self, function: Callable[..., Any], name: str = "transform") -> None:
        """Raises BadSettings if it can never work."""
        if not callable(function) or inspect.iscoroutinefunction(function):
            raise BadSettings([f"DOCUMENT_TRANSFORM: {name} is not a plain function; write `def`, not `async def`"])
        self._wants_event = False
        try:
            inspect.signature(function).bind(None)
        except TypeError:
            self._wants_event = True
        except ValueError:
            pass  # a function of C that does not tell: it gets the document
        self._function = function

    @classmethod
    def load(cls, name: str) -> "Transform":
        """From `module:function`, also in the current directory. Raises BadSettings."""
        module_name, _, function_name = name.partition(":")
        if not module_name or not function_name:
            raise BadSettings([f"DOCUMENT_TRANSFORM: {name!r} is not of the form module:function"])
        here = os.getcwd()  # noqa: PTH109 - sys.path holds strings
        if here not in sys.path:
            sys.path.append(here)
        try:
            module = importlib.import_module(module_name)
        except Exception as fault:  # an import may raise anything
            raise BadSettings([f"DOCUMENT_TRANSFORM: cannot import {module_name}: {fault}"]) from fault
        function = getattr(module, function_name, None)
        if function is None:
            raise BadSettings([f"DOCUMENT_TRANSFORM: {module_name} has no {function_name}"])
        return cls(function, name)

    def __call__(self, document: Any, event: Event, partition: str) -> list[Any]:  # noqa: ANN401 - any JSON
        """What becomes of one document: none, one or several."""
        if self._wants_event:
            view = EventView(event.sequence, partition, event.enqueued_ms, event.properties, event.content_type)
            made = self._function(document, view)
        else:
            made = self._function(document)
        if made is None:
            return []
        return made if isinstance(made, list) else [made]


@dataclass(frozen=True, slots=True)
class Trial:
    """What a transform did to one line of a file: `sluice transform try` shows these."""

    line: int
    before: str
    after: tuple[str, ...]
    """The documents it gave; none if it dropped the line."""
    fault: str | None
    """Why this line would become a dead letter."""


def try_transform(transform: Transform, lines: list[bytes]) -> list[Trial]:
    """Run the transform over lines of JSON, as the service would over events."""
    return [_try_line(transform, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _try_line(transform: Transform, number: int, line: bytes) -> Trial:
    before = line.decode(errors="replace").strip()
    event = Event(number - 1, str(number - 1), 0, line, {})
    try:
        made = transform(orjson.loads(line), event, "0")
        return Trial(number, before, tuple(orjson.dumps(one).decode() for one in made), None)
    except Exception as fault:  # noqa: BLE001 - the user's code may raise anything; that is what is tried here
        return Trial(number, before, (), f"{type(fault).__name__}: {fault}")
