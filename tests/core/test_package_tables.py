"""Tables of patterns that packages bring along."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import evalkit
from evalkit.core.package_tables import PatternTable, load_package_table
from evalkit.documents import aligned_tables, html_layout
from evalkit.documents.identity import person_name
from evalkit.grounding import critical_terms

TABLES = [
    ("evalkit.documents.identity", "patterns.toml", "*.py", person_name.PATTERNS),
    ("evalkit.grounding", "patterns.toml", "*.py", critical_terms.PATTERNS),
    ("evalkit.documents", "html_layout.toml", "html_layout.py", html_layout.PATTERNS),
    ("evalkit.documents", "aligned_tables.toml", "aligned_tables.py", aligned_tables.PATTERNS),
]


@pytest.mark.parametrize(("package", "table_file", "modules", "patterns"), TABLES, ids=[row[0] for row in TABLES])
def test_each_pattern_is_compiled_and_used(package: str, table_file: str, modules: str, patterns: PatternTable) -> None:
    folder = Path(evalkit.__file__).parent.joinpath(*package.split(".")[1:])
    sources = "".join(path.read_text("utf-8") for path in folder.glob(modules))
    rows = load_package_table(package, table_file)["patterns"]
    names = set(re.findall(r'\bPATTERNS\["(\w+)"\]', sources))
    references = set(re.findall(r"\{([a-z_]+)\}", " ".join(rows.values())))
    assert names <= rows.keys() <= names | references
    for name in rows:
        assert not re.search(r"\{[a-z_]+\}", patterns[name].pattern)


def test_pattern_contains_fragments_by_name() -> None:
    patterns = PatternTable("evalkit.documents.identity", "patterns.toml", written_date=r"\d{4}-\d{2}-\d{2}")
    assert patterns["born"].search("She was born on 1971-03-22.")[1] == "1971-03-22"  # type: ignore[index]
    assert patterns["born"] is patterns["born"]
    with pytest.raises(KeyError):
        patterns["no pattern of this name"]
