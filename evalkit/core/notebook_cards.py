"""Short summaries as HTML for notebook cells."""

from collections.abc import Iterable
from html import escape

_MAX_LINES = 8


def format_card(headline: str, lines: Iterable[str], next_steps: Iterable[tuple[str, str]]) -> str:
    """Format a summary as HTML: headline, lines, and suggested next steps.

    ``next_steps``: pairs of code or a command, and what it does. All texts are escaped, because documents' names and
    messages may contain HTML.
    """
    lines = list(lines)
    if len(lines) > _MAX_LINES:
        lines[_MAX_LINES:] = [f"and {len(lines) - _MAX_LINES} more"]
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    steps = "".join(f"<li><code>{escape(code)}</code> {escape(purpose)}</li>" for code, purpose in next_steps)
    return (
        f'<div style="font:14px/1.5 sans-serif"><p style="margin:0"><b>{escape(headline)}</b></p>'
        + (f'<ul style="margin:4px 0">{items}</ul>' if items else "")
        + (f'<p style="margin:4px 0 0">Next:</p><ul style="margin:0">{steps}</ul>' if steps else "")
        + "</div>"
    )
