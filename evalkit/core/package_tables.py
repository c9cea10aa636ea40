"""TOML files that evalkit's packages bring along: words, patterns, definitions."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load_package_table(package: str, file_name: str) -> dict[str, Any]:
    """Load a package's TOML file, unchecked; cached, so do not change the result.

    ``package``: dotted name, such as ``evalkit.grounding``.
    """
    return tomllib.loads((files(package) / file_name).read_text("utf-8"))
