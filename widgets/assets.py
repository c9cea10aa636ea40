"""What the browser gets: each widget's own file behind the two that all share. No build step."""

from pathlib import Path

_HERE = Path(__file__).parent


def esm(stem: str, *parts: str) -> str:
    """The module of a widget: the shared ``dom.js``, then its own parts and its own file."""
    return "".join(_read(f"{one}.js") for one in ("dom", *parts, stem))


def css(stem: str, *, with_theme: bool = False) -> str:
    """The style of a widget: its own file, for the first widget on the screen behind the shared ``theme.css``."""
    return (_read("theme.css") if with_theme else "") + _read(f"{stem}.css")


def _read(name: str) -> str:
    return (_HERE / name).read_text("utf-8")
