"""A Dockerfile as stages of instructions, and a .dockerignore as a test for paths."""

import json
import re
from dataclasses import dataclass, field
from fnmatch import fnmatch


@dataclass(slots=True)
class Stage:
    """One FROM and what follows it."""

    name: str
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [rest for name, rest in self.instructions if name == word]

    def last(self, word: str) -> str | None:
        found = self.all(word)
        return found[-1] if found else None


def stages(text: str) -> dict[str, Stage]:
    """The stages by name, in order; ARG before the first FROM is put in place."""
    arguments: dict[str, str] = {}
    found: dict[str, Stage] = {}
    stage = None
    for line in _lines(text):
        word, _, rest = line.partition(" ")
        if word == "ARG" and stage is None:
            name, _, value = rest.partition("=")
            arguments[name] = value
        elif word == "FROM":
            base, _, name = rest.partition(" AS ")
            base = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match.group(1)], base)
            stage = found[name] = Stage(name, base)
        else:
            stage.instructions.append((word, rest.strip()))
    return found


def lineage(found: dict[str, Stage], name: str) -> list[Stage]:
    """The stage and those that it is built on, the first one first."""
    stage = found[name]
    return [*(lineage(found, stage.base) if stage.base in found else []), stage]


def environment(line_of_stages: list[Stage]) -> dict[str, str]:
    """What ENV sets, later stages winning."""
    words = [re.findall(r"(\w+)=(\S+)", rest) for stage in line_of_stages for rest in stage.all("ENV")]
    return {name: value for pairs in words for name, value in pairs}


def exec_form(rest: str | None) -> list[str]:
    """The words of ENTRYPOINT or CMD; fails for the shell form, in which signals do not reach the program."""
    words = json.loads(rest or "")
    assert isinstance(words, list)
    return words


def kept(dockerignore: str, path: str) -> bool:
    """Whether the path is in the build context: the last pattern that matches it, or a folder of it, decides."""
    parents = ["/".join(path.split("/")[: depth + 1]) for depth in range(path.count("/") + 1)]
    answer = True
    for line in dockerignore.splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        again, pattern = pattern.startswith("!"), pattern.removeprefix("!")
        if any(_matches(parent, pattern) for parent in parents):
            answer = again
    return answer


def _matches(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return any(fnmatch(part, pattern[3:]) for part in path.split("/"))
    return path.count("/") == pattern.count("/") and fnmatch(path, pattern)


def _lines(text: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", " ", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    return [line for line in joined.splitlines() if line.strip()]
