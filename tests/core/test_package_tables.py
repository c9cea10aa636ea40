"""Tables of patterns that packages bring along."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import evalkit
from evalkit.core.package_tables import PatternTable, load_package_table
from evalkit.documents.identity.person_name import PATTERNS as IDENTITY_PATTERNS
from evalkit.grounding.critical_terms import PATTERNS as GROUNDING_PATTERNS

TABLES = [("evalkit.documents.identity", IDENTITY_PATTERNS), ("evalkit.grounding", GROUNDING_PATTERNS)]


@pytest.mark.parametrize(("package", "patterns"), TABLES, ids=lambda value: value if isinstance(value, str) else "")
def test_each_pattern_is_compiled_and_used(package: str, patterns: PatternTable) -> None:
    folder = Path(evalkit.__file__).parent.joinpath(*package.split(".")[1:])
    sources = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    rows = load_package_table(package, "patterns.toml")["patterns"]
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
