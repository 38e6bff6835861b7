"""The README as blocks: what is typed, and what is shown as its answer."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@dataclass(frozen=True, slots=True)
class Command:
    """One line of a `sh` block."""

    line: str
    """Without its comment."""
    comment: str

    @property
    def stays(self) -> bool:
        """Whether it goes on while the next ones are typed."""
        return "in a terminal of its own" in self.comment


@dataclass(frozen=True, slots=True)
class Block:
    """A `sh` block, and the lines of the `text` block right after it."""

    commands: tuple[Command, ...]
    shown: tuple[str, ...]


def blocks(text: str = README) -> list[Block]:
    """All of them, in order. ValueError for a fenced block that is neither: nobody could tell whether it is tried."""
    found: list[Block] = []
    for language, content in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines = [line for line in content.splitlines() if line.strip()]
        if language == "sh":
            found.append(Block(tuple(_command(line) for line in lines), ()))
        elif language == "text" and found and not found[-1].shown:
            found[-1] = Block(found[-1].commands, tuple(lines))
        else:
            raise ValueError(f"a block that is neither `sh` nor the answer to one: {content[:80]!r}")
    return found


def commands(text: str = README) -> list[Command]:
    """Every command, in order."""
    return [command for block in blocks(text) for command in block.commands]


def like(shown: str, said: str) -> bool:
    """Whether a line that was printed is the one that is shown, but for its numbers."""
    pattern = r"\s+".join(re.sub(r"\d+", r"\\d+", re.escape(word)) for word in shown.split())
    return re.search(pattern, said) is not None


def _command(line: str) -> Command:
    typed, _, comment = line.partition(" #")
    return Command(typed.strip(), comment.strip())
