"""The extras of ``pyproject.toml``: libraries that some need and most do without."""

from __future__ import annotations


def format_install_hint(extra: str) -> str:
    """The command that installs an extra and where to give it, for a remedy.

    From the clone and by its lock: what PyPI calls evalkit is somebody else's.
    """
    return f'pip install --constraint requirements.lock --editable ".[{extra}]" in the folder of evalkit\'s source'
