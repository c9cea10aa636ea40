"""TOML files that come with evalkit's packages: words, patterns, definitions."""

import re
import tomllib
from functools import cache, partial
from importlib.resources import files
from typing import Any

_REFERENCE = re.compile(r"\{([a-z_]+)\}")


@cache
def load_package_table(package: str, file_name: str) -> dict[str, Any]:
    """Load a package's TOML file, unchecked; cached, so do not change the result.

    ``package``: dotted name, such as ``evalkit.grounding``.
    """
    return tomllib.loads((files(package) / file_name).read_text("utf-8"))


class PatternTable(dict[str, re.Pattern[str]]):
    """Regular expressions of a TOML file, by name, compiled on first use.

    They are in table ``patterns``; a long one may be a list of parts. ``{name}`` in them stands for the expression of that
    name in this table, in table ``fragments``, or in the keyword arguments.
    """

    def __init__(self, package: str, file_name: str, **fragments: str) -> None:
        self._load_table = partial(load_package_table, package, file_name)
        self._fragments = fragments

    def __missing__(self, name: str) -> re.Pattern[str]:
        table = self._load_table()
        expressions = self._fragments | table.get("fragments", {}) | table["patterns"]
        expression = "".join(expressions[name])
        while reference := _REFERENCE.search(expression):
            expression = expression.replace(reference[0], "".join(expressions[reference[1]]))
        return self.setdefault(name, re.compile(expression))
