"""The patterns of ``patterns.toml``: phrases of reports, and notations of values."""

from __future__ import annotations

import re
from functools import cache

from evalkit.core.package_tables import load_package_table


@cache
def get_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of this name, compiled on first use."""
    return re.compile(_expand(name))


def _expand(name: str) -> str:
    text = "".join(load_package_table("evalkit.extraction", "patterns.toml")[name])
    return re.sub(r"<<(\w+)>>", lambda match: _expand(match[1]), text)
