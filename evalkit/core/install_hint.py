"""Optional features are installed as extras of ``pyproject.toml``."""

from __future__ import annotations


def format_install_hint(extra: str) -> str:
    """Format the command that installs an extra, and where to run it, for a remedy.

    From the clone and its lock file: PyPI's evalkit is another project.
    """
    return f'pip install --constraint requirements.lock --editable ".[{extra}]" in the folder of evalkit\'s source'
