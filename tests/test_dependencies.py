"""A package that nobody could look up is not called sound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dependencies import summarise_audit

HOLE = {"id": "CVE-1", "fix_versions": ["1.1"], "aliases": [], "description": "x"}
SOUND = {"name": "a", "version": "1.0", "vulns": []}
HOLED = {"name": "b", "version": "1.0", "vulns": [HOLE]}
UNKNOWN = {"name": "c", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("packages", "status", "says"),
    [
        ([SOUND], 0, "1 looked up, 0 could not be; 0 known holes"),
        ([SOUND, UNKNOWN], 0, "1 looked up, 1 could not be; 0 known holes"),
        ([SOUND, HOLED], 1, "b 1.0: CVE-1, mended in 1.1"),
        ([HOLED | {"vulns": [HOLE | {"fix_versions": []}]}], 1, "mended in no version yet"),
    ],
)
def test_what_is_told(tmp_path: Path, packages: list[dict[str, object]], status: int, says: str) -> None:
    (tmp_path / "audit.json").write_text(json.dumps({"dependencies": packages, "fixes": []}))
    lines, code = summarise_audit(tmp_path / "audit.json")
    assert code == status
    assert any(says in line for line in lines)


def test_without_the_list_nothing_fails_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "torn.json").write_text("{")
    for name in ("gone.json", "torn.json"):
        assert summarise_audit(tmp_path / name) == ([summarise_audit(tmp_path / "gone.json")[0][0]], 0)
    assert "not looked up" in summarise_audit(tmp_path / "gone.json")[0][0]
