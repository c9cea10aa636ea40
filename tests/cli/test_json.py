"""``--json`` of every command: one JSON value on standard output, its keys, and the exit status without it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from commands import evalkit_command
from once import make_once

import evalkit
from evalkit.cli import app
from evalkit.review import SMEReviewHelper

#: Commands without ``--json``: the server, which prints its address and runs on.
WITHOUT_JSON = {"review"}
#: Its words print one value; what it does is tested where PostgreSQL runs.
TESTED_ELSEWHERE = {
    *("move-database", "build-template", "review-template", "apply-template", "import-answers"),
    *("backup", "restore"),
}
RUN_KEYS = (
    *("documents", "problems", "copies", "skipped", "output", "seconds", "by_agent", "run", "kept_classifications"),
    "unknown_production_labels",
)
#: Words of a command (``IN``: a document, ``OUT``: its output folder, ``TO``: a file) and the keys of what it prints;
#: of a list, those of its first item.
COMMANDS: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "samples": (("TO",), {"folder", "documents"}),
    "run": (("IN",), set(RUN_KEYS)),
    "runs": ((), {"runs", "by_day"}),
    "extract": (("IN",), {"documents", "problems", "copies", "skipped", "output", "seconds", "by_agent"}),
    "queue": ((), {"case_id", "doc_id", "kind", "blocker", "major", "minor", "review_status"}),
    "show": (("segment_count",), {"doc_id", "decision", "issues", "classification", "versions"}),
    "export": (("--to", "TO"), {"rows", "to", "format", "level"}),
    "report": ((), {"sections", "warnings"}),
    "dossier": (("--to", "TO"), {"to", "warnings"}),
    "sample": (("1",), {"by", "drawn_at", "strata"}),
    "compare": (("first", "second"), {"a", "b", "versions", "documents", "decisions", "effort", "fields"}),
    "challenge": (("IN", "--classifications", "RIGHT", "--limit", "1", "--kinds", "structural"), {"kinds"}),
    "purge": (("segment_count", "--dry-run"), {"segment_count"}),
    "doctor": ((), {"name", "found", "is_fine", "remedy"}),
    "docs": ((), {"settings", "operations"}),
    "schema": (("result",), {"properties", "title"}),
    "reindex": ((), {"documents", "cases"}),
    "reviewers add": (("dr_new",), {"reviewer", "code"}),
    "reviewers appoint": (("dr_kim", "analyst"), {"reviewer", "role"}),
    "reviewers remove": (("dr_kim",), {"reviewer", "removed"}),
    "reviewers list": ((), {"dr_kim"}),
    "learn propose": ((), {"file", "facts", "left_out", "obstacles"}),
    "learn promote": (("1", "--by", "dr_kim"), set()),
    "learn revert": (("--by", "dr_kim", "--reason", "a test"), set()),
    "audit verify": ((), {"counts", "faults"}),
    "audit export": ((), {"schema_version", "events"}),
    "audit release": (("Other | in", "--by", "dr_kim", "--reason", "a test"), set()),
}
#: Commands that are refused here, because nothing was learned and nothing is braked: nothing on standard output.
REFUSED = {"learn promote", "learn revert", "audit release"}
WITHOUT_OUTPUT = {"samples", "docs", "schema", "challenge"}


def iterate_commands(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    subcommands = getattr(command, "commands", None)
    if subcommands is None:
        yield " ".join(path), {option for parameter in command.params for option in parameter.opts}  # type: ignore[attr-defined]
    for name, subcommand in (subcommands or {}).items():
        yield from iterate_commands(subcommand, (*path, name))


def test_every_command_that_prints_has_json() -> None:
    options_by_command = dict(iterate_commands(typer.main.get_command(app)))
    assert {name for name, options in options_by_command.items() if "--json" not in options} == WITHOUT_JSON
    assert options_by_command.keys() == COMMANDS.keys() | WITHOUT_JSON | TESTED_ELSEWHERE


@pytest.fixture(scope="module")
def folder(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> None:
        output, pdf = folder / "output", folder / "segment_count.pdf"
        (folder / "right").mkdir()
        shutil.copy(samples / "segment_count.pdf", pdf)
        evalkit.run(pdf, output=output, name="first")
        stored = json.loads((output / "results/segment_count.json").read_text())["classification"]
        (folder / "right/segment_count.json").write_text(json.dumps(stored))
        evalkit.run(pdf, output=output, name="second", classifications=samples / "classifications", profile="lean")
        helper = SMEReviewHelper(output, "dr_kim")
        helper.save_review("segment_count", agrees=False, corrected_dominant_type="Other")
        helper.reopen("segment_count", "a test")
        helper.close()
        evalkit.run(samples / "quest_cbc.pdf", output=output, no_classifications=True)
        evalkit_command("reviewers", "add", "dr_kim", "--output", output)

    make_once(tmp_path_factory, "json_commands", make)
    base = tmp_path_factory.getbasetemp()
    return (base if (base / "json_commands").exists() else base.parent) / "json_commands"


@pytest.mark.parametrize("command", COMMANDS)
def test_json_is_one_value_with_the_same_status(command: str, folder: Path, tmp_path: Path) -> None:
    words, keys = COMMANDS[command]
    runs = []
    for number, flags in enumerate([("--json",), ()]):
        output = tmp_path / str(number)
        shutil.copytree(folder / "output", output)
        places = {"IN": folder / "segment_count.pdf", "RIGHT": folder / "right", "TO": tmp_path / f"to{number}"}
        given = [str(places.get(word, word)) for word in words]
        location = () if command in WITHOUT_OUTPUT else ("--output", str(output))
        runs.append(evalkit_command(*command.split(), *given, *location, *flags, cwd=tmp_path))
    as_json, as_text = runs
    assert as_json.returncode == as_text.returncode, (as_json.stderr, as_text.stderr)
    if command in REFUSED:
        assert (as_json.returncode == 2, as_json.stdout) == (True, ""), as_json.stderr
        return
    content = json.loads(as_json.stdout)
    first = content[0] if isinstance(content, list) else content
    assert keys <= first.keys(), sorted(first)
