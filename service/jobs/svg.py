"""Plots as inline SVG: bars that need no script and no network. Pure."""

from collections.abc import Mapping, Sequence
from html import escape

COLOURS = {
    "committed": "#2f7d4f",
    "superseded": "#8fb8a0",
    "dropped": "#c9c9c9",
    "dead_lettered": "#c98a2b",
    "missing": "#b3322c",
    "stale": "#c9542f",
    "different": "#7a3b8f",
    "unexpected": "#3b5c8f",
}
_OTHER = "#666666"
_WIDTH, _BAR, _GAP, _LABEL = 860, 20, 6, 150


def stacked_bars(rows: Sequence[tuple[str, Mapping[str, int]]], title: str) -> str:
    """One horizontal bar per row, its parts side by side, all on one scale."""
    most = max((sum(parts.values()) for _, parts in rows), default=0) or 1
    scale = (_WIDTH - _LABEL - 90) / most
    height = len(rows) * (_BAR + _GAP) + _GAP
    drawn = []
    for number, (label, parts) in enumerate(rows):
        y = _GAP + number * (_BAR + _GAP)
        drawn.append(f'<text x="{_LABEL - 8}" y="{y + 15}" text-anchor="end">{escape(label)}</text>')
        x = float(_LABEL)
        for name, count in parts.items():
            width = count * scale
            if count:
                drawn.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{max(width, 1):.1f}" height="{_BAR}"'
                    f' fill="{COLOURS.get(name, _OTHER)}">'
                    f"<title>{escape(label)}: {count:,} {escape(name)}</title></rect>"
                )
            x += width
        drawn.append(f'<text x="{x + 6:.1f}" y="{y + 15}">{sum(parts.values()):,}</text>')
    body = "".join(drawn)
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">{body}</svg>'


def columns(values: Sequence[tuple[str, Mapping[str, int]]], title: str) -> str:
    """One column per value, left to right: for time."""
    most = max((sum(parts.values()) for _, parts in values), default=0) or 1
    height, base = 180, 160
    step = (_WIDTH - 60) / max(1, len(values))
    drawn = [f'<text x="0" y="14">{most:,}</text>']
    for number, (label, parts) in enumerate(values):
        y = float(base)
        for name, count in parts.items():
            tall = count / most * (base - 20)
            y -= tall
            if count:
                drawn.append(
                    f'<rect x="{60 + number * step:.1f}" y="{y:.1f}" width="{max(1.0, step * 0.8):.1f}"'
                    f' height="{max(tall, 1):.1f}" fill="{COLOURS.get(name, _OTHER)}">'
                    f"<title>{escape(label)}: {count:,} {escape(name)}</title></rect>"
                )
    if values:
        drawn.append(f'<text x="60" y="{height - 4}">{escape(values[0][0])}</text>')
        drawn.append(f'<text x="{_WIDTH}" y="{height - 4}" text-anchor="end">{escape(values[-1][0])}</text>')
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">{"".join(drawn)}</svg>'


def legend(names: Sequence[str]) -> str:
    """What the colours mean."""
    marks = (
        f'<span class="mark" style="background:{COLOURS.get(name, _OTHER)}"></span>{escape(name.replace("_", "-"))}'
        for name in names
    )
    return f'<p class="legend">{" ".join(marks)}</p>'
