"""The settings as a table for the README, made from the settings themselves so that the two cannot drift apart."""

from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from service.config import Settings

BEGIN = "<!-- settings: made by `sluice config table` -->"
END = "<!-- settings: end -->"


def settings_table() -> str:
    """Markdown, one row a setting."""
    rows = [f"| {name.upper()} | {default} | {meaning} |" for name, default, meaning in _rows()]
    return "\n".join([BEGIN, "| variable | default | meaning |", "|---|---|---|", *rows, END])


def _rows() -> Iterator[tuple[str, str, str]]:
    for name, field in Settings.model_fields.items():
        choices = _choices(field.annotation)
        meaning = (field.description or "").replace("\n", " ").replace("|", "\\|")
        if choices and not all(f"`{choice}`" in meaning for choice in choices):
            meaning += f" One of {', '.join(f'`{choice}`' for choice in choices)}."
        yield name, _default(name, field.default), meaning


def _default(name: str, value: Any) -> str:  # noqa: ANN401 - whatever a setting may be
    if value is None or value == "":
        return "–"  # noqa: RUF001 - as the rest of the README writes it
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "allow_backlog_bytes":
        return f"{value // 1024**2}MiB"
    if isinstance(value, float) and name != "deadletter_max_ratio":
        return f"{value:g}s"
    return f"`{value}`" if isinstance(value, str) else f"{value}"


def _choices(annotation: Any) -> tuple[str, ...]:  # noqa: ANN401 - a type
    if get_origin(annotation) is Literal:
        return tuple(str(choice) for choice in get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        return next((found for each in get_args(annotation) if (found := _choices(each))), ())
    return ()
