"""The checks of `evalkit doctor`."""

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import evalkit_command
from servers.postgresql import PostgreSQLServer

import evalkit
from evalkit.doctor import DoctorCheck, run_doctor_checks
from evalkit.errors import UsageError
from evalkit.pipeline import RunSummary
from evalkit.settings import Settings


def test_doctor_says_what_is_there(tmp_path: Path) -> None:
    shown = evalkit_command("doctor", "--json", cwd=tmp_path)
    checks = {check["name"]: check for check in json.loads(shown.stdout)}
    assert shown.returncode == 0
    assert checks["pymupdf"]["is_fine"]
    assert "traps" in checks["prompts and tables"]["found"]
    assert list(tmp_path.iterdir()) == []  # it only looks


OWN_TRAPS = """
version = "1"
[[administrative]]
id = "courier-slip"
owner = "the records office"
date = "2026-10-01"
scope = "segment"
severity = "MAJOR"
phrase = "courier slip"
fires = ["Courier slip no. 7"]
silent = ["the courier slipped"]
"""


def test_doctor_names_a_file_where_the_output_folder_is_to_be(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("in the way")
    (found,) = [
        one for one in run_doctor_checks(Settings(output=str(tmp_path / "taken"))) if one.name == "output folder"
    ]
    assert not found.is_fine
    assert "is not a folder" in found.found


def check(name: str, output: Path, **options: object) -> DoctorCheck:
    return next(one for one in run_doctor_checks(Settings.load(output=str(output), **options)) if one.name == name)


def test_doctor_tells_a_folder_that_others_can_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "output"
    output.mkdir(mode=0o700)
    assert check("output folder", output).is_fine
    output.chmod(0o755)
    found = check("output folder", output)
    assert (found.is_fine, found.found) == (False, f"{output} is open to other users (mode 0755)")
    assert found.remedy == f"Run: chmod -R g-w,o= {output}"
    output.chmod(0o700)
    monkeypatch.setattr("evalkit.doctor.os.geteuid", lambda: output.stat().st_uid + 1)
    assert "belongs to another user" in check("output folder", output).found


@pytest.mark.parametrize("name", ["output folder", "temporary folder"])
def test_doctor_tells_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    disk = SimpleNamespace(f_bavail=1 << 30, f_frsize=4096, f_files=1 << 20, f_favail=1 << 20)
    for changes, is_fine, words in (
        ({}, True, "GiB free"),
        ({"f_bavail": 10}, False, "0 GiB free"),
        ({"f_favail": 12}, False, "room for 12 more files only"),
        ({"f_files": 0, "f_favail": 0}, True, "GiB free"),
    ):
        monkeypatch.setattr("evalkit.doctor.os.statvfs", lambda _, new=changes: SimpleNamespace(**vars(disk) | new))
        found = check(name, tmp_path)
        assert (found.is_fine, words in found.found) == (is_fine, True)


def test_doctor_tells_a_wrong_clock(demo_run: RunSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("clock", demo_run.output).is_fine
    with monkeypatch.context() as patch:
        patch.setattr("evalkit.doctor.format_zulu_now", lambda: "2020-01-01T00:00:00.000Z")
        found = check("clock", demo_run.output)
        assert (found.is_fine, found.found[:22]) == (False, "it is 2020-01-01 here,")
    now = time.time()
    monkeypatch.setattr("evalkit.doctor.time.time", lambda: now - 3600)
    assert "+3600 s between this machine and the output folder's disk" in check("clock", demo_run.output).found


def test_doctor_asks_the_database_for_the_time(
    postgresql: PostgreSQLServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check("clock", tmp_path, database=postgresql.url).is_fine
    monkeypatch.setattr("evalkit.store.postgresql.time.time", lambda: 0.0)
    assert "the database server" in check("clock", tmp_path, database=postgresql.url).found


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("", "", "1 row, 2 examples, version 1"),
        ('severity = "MAJOR"', 'severity = "BAD"', "administrative → 0 (courier-slip) → severity"),
        ('["the courier slipped"]', '["courier slips"]', "courier-slip: example 1 of `silent` raises MAJOR"),
        ('["Courier slip no. 7"]', '["a slip"]', "courier-slip: example 1 of `fires` raises nothing, not MAJOR"),
    ],
)
def test_doctor_tries_a_sites_own_traps(tmp_path: Path, right: str, wrong: str, found: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(OWN_TRAPS.replace(right, wrong, 1))
    checks = {
        check.name: check for check in run_doctor_checks(Settings.load(traps_file=str(own), output=str(tmp_path)))
    }
    assert checks["own traps"].is_fine is (wrong == "")
    assert found in checks["own traps"].found
    assert "own traps" not in {check.name for check in run_doctor_checks(Settings.load(output=str(tmp_path)))}


def test_doctor_reports_weakened_and_slow_site_traps(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    replacing = OWN_TRAPS.replace("courier-slip", "fax-cover").replace('"MAJOR"', '"MAJOR"\nreplaces = true')
    own.write_text(replacing)
    (check,) = [
        one for one in run_doctor_checks(Settings.load(traps_file=str(own), output=str(tmp_path))) if "own" in one.name
    ]
    assert check.is_fine
    assert "fax-cover gives up BLOCKER for MAJOR and 4 of 4 texts" in check.found
    slow = tmp_path / "slow.toml"
    slow.write_text(
        OWN_TRAPS.replace("administrative", "page_furniture")
        .replace('"segment"', '"evidence"')
        .replace('phrase = "courier slip"', 'name = "slip"\npattern = "(a+)+$"')
        .replace("Courier slip no. 7", "a" * 28)
    )
    (check,) = [
        one for one in run_doctor_checks(Settings.load(traps_file=str(slow), output=str(tmp_path))) if "own" in one.name
    ]
    assert not check.is_fine
    assert "slow.toml: courier-slip: " in check.found
    assert "takes more than 2 s" in check.found
    assert check.remedy


def test_doctor_says_so_where_an_example_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise UsageError("'x+' takes more than 2 s on a page", code="TRAP-SLOW", remedy="Bound its repeats")

    own = tmp_path / "own.toml"
    own.write_text(OWN_TRAPS)
    monkeypatch.setattr("evalkit.doctor.describe_failing_examples", busy)
    (check,) = [
        one for one in run_doctor_checks(Settings.load(traps_file=str(own), output=str(tmp_path))) if "own" in one.name
    ]
    assert (check.is_fine, check.remedy) == (False, "Bound its repeats")


def test_a_sites_own_traps_are_part_of_every_result(samples: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        OWN_TRAPS.replace('"courier slip"', '"microscopic"').replace("ourier slip no. 7", "ourier: microscopic")
    )
    paths, output = [samples / "pathology_report.pdf"], tmp_path / "output"
    before = evalkit.run(paths, output=output).documents[0]
    after = evalkit.run(paths, output=output, settings=Settings.load(traps_file=str(own))).documents[0]
    assert (before.decision, after.decision) == ("AUTO_ACCEPT", "ESCALATE_TO_SME")
    assert not after.resumed
    result = json.loads((output / "results" / "pathology_report.json").read_text())
    assert result["versions"]["traps"].endswith("+1")
    assert {issue["code"] for issue in result["issues"]} == {"V3-TRAP-ADMINISTRATIVE"}
