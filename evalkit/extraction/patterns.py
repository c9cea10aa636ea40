"""The patterns of ``patterns.toml``: words of reports and ways of writing values."""

from __future__ import annotations

import re
from functools import cache

from evalkit.core.package_tables import load_package_table


@cache
def get_pattern(name: str) -> re.Pattern[str]:
    """Compile the pattern of this name, once it is needed."""
    return re.compile(_expand(name))


def _expand(name: str) -> str:
    text = "".join(load_package_table("evalkit.extraction", "patterns.toml")[name])
    return re.sub(r"<<(\w+)>>", lambda match: _expand(match[1]), text)
