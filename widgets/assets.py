"""Scripts and styles of the widgets, put together without a build step."""

from pathlib import Path

_WIDGETS_FOLDER = Path(__file__).parent


def read_widget_script(widget_stem: str, *shared_stems: str) -> str:
    """Read a widget's script: the shared ``dom.js``, then its parts and its own file."""
    return "".join(_read_asset(f"{script_stem}.js") for script_stem in ("dom", *shared_stems, widget_stem))


def read_widget_style(widget_stem: str, *, include_theme: bool = False) -> str:
    """Read a widget's style; the first widget on the screen brings the shared theme."""
    return (_read_asset("theme.css") if include_theme else "") + _read_asset(f"{widget_stem}.css")


def _read_asset(file_name: str) -> str:
    return (_WIDGETS_FOLDER / file_name).read_text("utf-8")
