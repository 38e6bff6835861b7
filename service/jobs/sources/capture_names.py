"""Names of Capture files: which partition, and when. Pure."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from service.jobs.faults import BadInput

_DIGITS: Final = {"Year": 4, "Month": 2, "Day": 2, "Hour": 2, "Minute": 2, "Second": 2}
_WORDS: Final = ("Namespace", "EventHub", "PartitionId", *_DIGITS)


@dataclass(frozen=True, slots=True)
class CaptureName:
    """What the name of a file says."""

    hub: str
    partition: str
    at: float
    """Seconds since 1970: when the file's window began, as far as is known."""


class NameFormat:
    """An `archiveNameFormat`. Matches the end of a path, so that a search may begin anywhere above the files."""

    def __init__(self, text: str) -> None:
        """Raises BadInput if Event Hubs itself would not take it."""
        parts = re.split(r"\{(\w+)\}", text.strip("/"))
        words = parts[1::2]
        missing = [word for word in _WORDS if word not in words]
        unknown = [word for word in words if word not in _WORDS]
        if missing or unknown or len(words) != len(set(words)):
            faults = [f"{{{word}}} is missing" for word in missing] + [f"{{{word}}} is unknown" for word in unknown]
            why = ", ".join(faults) or "a word comes twice"
            raise BadInput(f"--path-format {text!r} is no archiveNameFormat of Capture: {why}.")
        self.text = text
        self.words: Final = tuple(words)
        pattern = "".join(_group(part) if at % 2 else re.escape(part) for at, part in enumerate(parts))
        self.pattern: Final = rf"(?:^|/){pattern}\.avro$"
        """Also understood by Java: its groups have no names, but the order of `words`."""
        self._match = re.compile(self.pattern).search

    def parse(self, path: str) -> CaptureName | None:
        """None where the path is not of this format."""
        match = self._match(path)
        if match is None:
            return None
        found = dict(zip(self.words, match.groups(), strict=True))
        try:
            at = datetime(*(int(found[word]) for word in _DIGITS), tzinfo=UTC)  # type: ignore[arg-type, misc]
        except ValueError:
            return None
        return CaptureName(found["EventHub"], found["PartitionId"], at.timestamp())


def _group(word: str) -> str:
    return rf"(\d{{{_DIGITS[word]}}})" if word in _DIGITS else "([^/]+?)"
