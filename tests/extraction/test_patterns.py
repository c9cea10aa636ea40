"""The file of patterns holds what the modules ask for, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import evalkit.extraction
from evalkit.core.package_tables import load_package_table
from evalkit.extraction.patterns import get_pattern

TABLE = load_package_table("evalkit.extraction", "patterns.toml")
SOURCE = "\n".join(path.read_text("utf-8") for path in Path(evalkit.extraction.__file__).parent.rglob("*.py"))


def test_every_pattern_compiles() -> None:
    for name in TABLE:
        assert "<<" not in get_pattern(name).pattern, name


def test_every_pattern_is_named_by_a_module_or_another_pattern() -> None:
    parts = {part for text in TABLE.values() for part in re.findall(r"<<(\w+)>>", "".join(text))}
    names_in_code = set(re.findall(r'"(\w+)"', SOURCE))
    names_in_code |= {f"statement_{name}" for name in names_in_code}
    assert set(TABLE) <= parts | names_in_code


def test_every_name_in_the_code_is_a_pattern() -> None:
    assert set(re.findall(r'(?<!_)get_pattern\("(\w+)"\)', SOURCE)) <= set(TABLE)
