"""Calls of `sluice` as documents write them, looked up in the command line itself."""

import shlex

import typer

from service.cli import app


def unknown_words(line: str) -> list[str]:
    """The words of a call, given without its first, that are neither a command nor an option of that command."""
    found = typer.main.get_command(app)
    words = shlex.split(line)
    while words and words[0] in getattr(found, "commands", {}):
        found = found.commands[words.pop(0)]
    if hasattr(found, "commands") and words and not words[0].startswith("-"):
        return words[:1]
    known = {name for parameter in found.params for name in parameter.opts} | {"--help"}
    return [word for word in words if word.startswith("--") and word not in known]
