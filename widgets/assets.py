"""Loading of the widgets' scripts and styles, concatenated without a build step."""

from pathlib import Path

_WIDGETS_FOLDER = Path(__file__).parent


def read_widget_script(widget_stem: str, *shared_stems: str) -> str:
    """Concatenate ``dom.js``, the scripts ``shared_stems`` and a widget's own script."""
    return "".join(_read_asset(f"{script_stem}.js") for script_stem in ("dom", *shared_stems, widget_stem))


def read_widget_style(widget_stem: str, *, include_theme: bool = False) -> str:
    """Read a widget's CSS; ``include_theme`` puts the shared theme in front of it."""
    return (_read_asset("theme.css") if include_theme else "") + _read_asset(f"{widget_stem}.css")


def _read_asset(file_name: str) -> str:
    return (_WIDGETS_FOLDER / file_name).read_text("utf-8")
