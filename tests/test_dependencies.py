"""A package that nobody could look up is not called sound, and one under an unknown licence is named."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from dependencies import (
    TESTS,
    is_allowed,
    read_installed_licenses,
    read_npm_licenses,
    summarise_audit,
    summarise_licenses,
)

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


RULES = tomllib.loads((TESTS / "licenses.toml").read_text())


@pytest.mark.parametrize(
    ("metadata", "licence", "status"),
    [
        ("License-Expression: MIT", "MIT", 0),
        ("License-Expression: GPL-3.0-only OR Apache-2.0", "GPL-3.0-only OR Apache-2.0", 0),
        ("License-Expression: GPL-3.0-only AND Apache-2.0", "GPL-3.0-only AND Apache-2.0", 1),
        ("License-Expression: (MIT OR GPL-3.0-only) AND ISC", "(MIT OR GPL-3.0-only) AND ISC", 1),
        ("Classifier: License :: OSI Approved :: BSD License", "BSD", 0),
        ("Classifier: License :: OSI Approved :: MIT License\nClassifier: License :: Free For Home Use", "MIT AND Free For Home Use", 1),
        ("License: Apache 2.0", "Apache-2.0", 0),
        ("License: UNKNOWN", "", 1),
        ("Summary: says nothing", "", 1),
    ],
)  # fmt: skip
def test_licence_of_an_installed_package(tmp_path: Path, metadata: str, licence: str, status: int) -> None:
    folder = tmp_path / "Some_Package-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: Some_Package\nVersion: 1.0\n{metadata}\n")
    licenses = list(read_installed_licenses(RULES["spdx"], [Distribution.at(folder)]))
    assert licenses == [("some-package", licence)]
    lines, code = summarise_licenses(licenses, RULES)
    assert (code, any(line.startswith("some-package: ") for line in lines)) == (status, bool(status))


def test_an_exception_holds_for_one_licence_alone() -> None:
    agpl = RULES["exceptions"]["pymupdf"]["license"]
    lines, code = summarise_licenses([("pymupdf", agpl)], RULES)
    assert code == 0
    assert lines[0].startswith(f"pymupdf: {agpl}: ")
    assert summarise_licenses([("pymupdf", "GPL-2.0-only")], RULES)[1] == 1
    assert summarise_licenses([("another", agpl)], RULES)[1] == 1


def test_every_npm_package_of_the_tests_is_allowed() -> None:
    licenses = [entry for lock in TESTS.rglob("package-lock.json") for entry in read_npm_licenses(lock)]
    assert len(licenses) > 100
    assert [name for name, licence in licenses if not is_allowed(licence, RULES["allowed"])] == []
