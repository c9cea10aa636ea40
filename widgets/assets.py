"""What the browser gets: each widget's own file behind the two that all share. No build step."""

from pathlib import Path

_WIDGETS_FOLDER = Path(__file__).parent


def read_widget_script(widget_stem: str, *shared_stems: str) -> str:
    """The module of a widget: the shared ``dom.js``, then its own parts and its own file."""
    return "".join(_read_asset(f"{script_stem}.js") for script_stem in ("dom", *shared_stems, widget_stem))


def read_widget_style(widget_stem: str, *, include_theme: bool = False) -> str:
    """The style of a widget: its own file, for the first widget on the screen behind the shared ``theme.read_widget_style``."""
    return (_read_asset("theme.css") if include_theme else "") + _read_asset(f"{widget_stem}.css")


def _read_asset(file_name: str) -> str:
    return (_WIDGETS_FOLDER / file_name).read_text("utf-8")
