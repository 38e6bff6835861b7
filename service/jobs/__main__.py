"""The jobs for spark-submit and `python -m service.jobs`: backfill, reconcile or repair, with `--name value` options.

Names and defaults are those of the options' classes; `--env-file` as for every command of `sluice`.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from service.config import Settings, load
from service.errors import BadSettings, SluiceError
from service.jobs import commands
from service.jobs.options import BackfillOptions, ReconcileOptions, RepairOptions

_COMMANDS: dict[str, tuple[type, Callable[[Any, Settings], int]]] = {
    "backfill": (BackfillOptions, commands.backfill),
    "reconcile": (ReconcileOptions, commands.reconcile),
    "repair": (RepairOptions, commands.repair),
}


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say; errors become a message and an exit code."""
    parser = argparse.ArgumentParser(prog="service.jobs", description="Backfill, reconcile, repair.")
    commands_parser = parser.add_subparsers(dest="command", required=True)
    for name, (kind, _) in _COMMANDS.items():
        one = commands_parser.add_parser(name)
        one.add_argument("--env-file", type=Path)
        _add(one, kind)
    given = vars(parser.parse_args(arguments))
    kind, command = _COMMANDS[given["command"]]
    try:
        return command(_build(kind, given), load(given["env_file"]))
    except BadSettings as error:
        for fault in error.faults:
            print(f"sluice: {fault}", file=sys.stderr)  # noqa: T201 - the command's answer
        return error.exit_code
    except SluiceError as error:
        print(f"sluice: {error}", file=sys.stderr)  # noqa: T201 - the command's answer
        return commands.exit_code_of(error)


def _add(parser: argparse.ArgumentParser, kind: Any) -> None:  # noqa: ANN401 - a dataclass
    hints = get_type_hints(kind)
    for each in fields(kind):
        hint = hints[each.name]
        if is_dataclass(hint):
            _add(parser, hint)
            continue
        name = "--" + each.name.replace("_", "-")
        if hint is bool:
            parser.add_argument(name, action="store_true")
            continue
        choices = get_args(hint) if get_origin(hint) is not None else None
        parser.add_argument(
            name, type=str if choices else hint, choices=choices, required=_is_required(each), default=each.default
        )


def _is_required(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _build(kind: Any, given: dict[str, Any]) -> Any:  # noqa: ANN401 - a dataclass
    hints = get_type_hints(kind)
    values = {
        each.name: _build(hints[each.name], given) if is_dataclass(hints[each.name]) else given[each.name]
        for each in fields(kind)
    }
    return kind(**values)


if __name__ == "__main__":
    sys.exit(main())
