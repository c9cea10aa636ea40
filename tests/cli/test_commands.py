"""Every command: one line per fault, the contract's exit statuses, and what is printed."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import evalkit_command, evalkit_process
from places import open_folder

from evalkit.errors import StoreError
from evalkit.pipeline import RunSummary
from evalkit.review import SMEReviewHelper
from evalkit.store.change_chain import ChangeRecorder, has_unfinished_command


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", "--nope"],
        ["run", "gone.pdf"],
        ["run", "."],
        ["run", "gone.pdf", "--model", "gemini:whatever"],
        ["run", "gone.pdf", "--workers", "-1"],
        ["nope"],
        ["show", "nobody"],
        ["queue", "--output", "gone"],
        ["schema", "nope"],
        ["export", "--format", "xml"],
        ["export", "--format", "folder"],
        ["export", "--split", "1.5"],
        ["export", "--split", "0.9,0.2"],
        ["export", "--split", "0.5,0.2,0.3"],
        ["sample", "1", "--seeded"],
        ["sample", "1", "--seeded", "--by", "type"],
        ["sample"],
        ["sample", "1", "--for", "1"],
        ["sample", "--for", "1", "--by", "type"],
        ["challenge"],
        ["challenge", "gone.pdf"],
        ["challenge", "output", "--kinds", "nonsense"],
    ],
)
def test_wrong_usage_is_one_line_and_status_2(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "output").mkdir()
    shown = evalkit_command(*words, cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert len(shown.stderr.strip().splitlines()) == 1, shown.stderr


@pytest.mark.parametrize(
    "words",
    [
        *(["queue"], ["export"], ["sample", "1"], ["reindex"], ["purge", "one"]),
        *(["reviewers", "add", "dr_lee"], ["reviewers", "list"], ["audit", "verify"], ["audit", "export"]),
    ],
    ids=" ".join,
)
def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "of_mine.txt").write_text("kept")
    folder = tmp_path / "letters"
    shown = evalkit_command(*words, "--output", ".", cwd=folder)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert [path.name for path in folder.rglob("*")] == ["of_mine.txt"]


def test_wrong_usage_as_a_shell_sees_it(tmp_path: Path) -> None:
    shown = evalkit_process("run", "gone.pdf", cwd=tmp_path)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert len(shown.stderr.strip().splitlines()) == 1, shown.stderr


def test_run_prints_every_decision_and_fails_only_what_failed(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"no pdf")
    words = ["run", samples / "quest_cbc.pdf", tmp_path / "broken.pdf", tmp_path / "gone", "--output", tmp_path / "out"]
    shown = evalkit_command(*words)
    assert shown.returncode == 1
    assert "quest_cbc" in shown.stdout
    assert "AUTO_ACCEPT" in shown.stdout
    assert "NOT READ" in shown.stdout
    assert [line.split(":")[0] for line in shown.stderr.strip().splitlines()] == [
        "broken",
        f"{tmp_path / 'gone'} does not exist. Check the path.",
    ]


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_whose_output_is_closed_decides_as_any_other(samples: Path, tmp_path: Path, closed: str) -> None:
    command = [sys.executable, "-m", "evalkit", "run", samples / "quest_cbc.pdf", "--output", tmp_path / "out"]
    ended = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *command], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert json.loads((tmp_path / "out/results/quest_cbc.json").read_text())["decision"] == "AUTO_ACCEPT"


@pytest.mark.parametrize("words", [["schema", "review"], ["queue"], ["queue", "--json"]])
def test_what_cannot_be_printed_is_one_line(demo_run: RunSummary, words: list[str]) -> None:
    folder = [] if words[0] == "schema" else ["--output", demo_run.output]
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "evalkit", *words, *folder]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert (
        ended.stderr
        == "evalkit: standard output cannot be written (No space left on device). Send it to another file or program.\n"
    )


def test_json_is_text_whatever_a_file_is_called(samples: Path, tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    shutil.copy(samples / "quest_cbc.pdf", records)
    (records / os.fsdecode(b"b\xffad.pdf")).symlink_to("nowhere")
    command = [sys.executable, "-m", "evalkit", "run", records, "--output", tmp_path / "out", "--json"]
    ended = subprocess.run(
        command, capture_output=True, check=False, env=os.environ | {"PYTHONIOENCODING": "utf-8:surrogateescape"}
    )
    told = json.loads(ended.stdout.decode())
    assert "b\udcffad.pdf leads nowhere" in told["problems"][0]


def test_hint_names_output_folder_unless_it_is_configured(samples: Path, tmp_path: Path) -> None:
    document = samples / "quest_cbc.pdf"
    assert evalkit_command("run", document, cwd=tmp_path).stdout.endswith("Waiting cases: evalkit queue\n")
    shown = evalkit_command("run", document, "--output", "my own", cwd=tmp_path)
    assert shown.stdout.endswith("Waiting cases: evalkit queue --output 'my own'\n")
    shown = evalkit_command("sample", "1", "--output", "my own", cwd=tmp_path)
    assert shown.stdout.endswith("wait in the queue: evalkit queue --output 'my own'\n")
    shown = evalkit_command("run", document, cwd=tmp_path, EVALKIT_OUTPUT="my own")
    assert shown.stdout.endswith("Waiting cases: evalkit queue\n")


def test_show_sends_no_control_sequences_to_the_terminal(demo_run: RunSummary, tmp_path: Path) -> None:
    output = shutil.copytree(demo_run.output, tmp_path / "output")
    path = output / "results/quest_genomic.json"
    result = json.loads(path.read_text())
    result["decision_reason"] = "one\n\x1b]0;two\x07"
    path.write_text(json.dumps(result))
    shown = evalkit_command("show", "quest_genomic", "--output", output).stdout
    assert "one\n\N{REPLACEMENT CHARACTER}]0;two\N{REPLACEMENT CHARACTER}\n" in shown
    assert not [sign for sign in shown if sign != "\n" and not sign.isprintable()]


def test_run_as_json(samples: Path, tmp_path: Path) -> None:
    shown = evalkit_command("run", samples / "quest_cbc.pdf", "--output", tmp_path / "out", "--json")
    value = json.loads(shown.stdout)
    assert [one["decision"] for one in value["documents"]] == ["AUTO_ACCEPT"]


def test_show_prints_issues_as_slide_9_does(demo_run: RunSummary) -> None:
    shown = evalkit_command("show", "quest_genomic", "--output", demo_run.output).stdout
    assert "quest_genomic: ESCALATE_TO_SME (rule 1)" in shown
    assert (
        "[BLOCKER] V3-0001 (Agent: V3)\n"
        "  Message:   Routine lab vendor detected (Quest Diagnostics) but\n"
        "             Genomic Report marked PRIMARY\n"
        "  Location:  document_mixture → Genomic Report\n"
        "  Fix:       Reclassify as 'Other' or downgrade to MENTION_ONLY\n"
    ) in shown


def test_show_says_what_was_repaired(demo_run: RunSummary) -> None:
    shown = evalkit_command("show", "shares_106", "--output", demo_run.output).stdout
    assert "V2-0001" in shown
    assert "1.060" in shown
    assert "(repaired)" in shown


def test_queue_is_worst_first(demo_run: RunSummary) -> None:
    rows = json.loads(evalkit_command("queue", "--output", demo_run.output, "--json").stdout)
    severities = [(row["blocker"], row["major"], row["minor"]) for row in rows]
    assert severities == sorted(severities, reverse=True)
    assert {"fabricated_quote", "quest_genomic", "poor_scan", "segment_count"} <= {row["case_id"] for row in rows}


def test_queue_counts_cases_whose_packets_are_lost(demo_run: RunSummary, tmp_path: Path) -> None:
    output = shutil.copytree(demo_run.output, tmp_path / "output")
    shutil.rmtree(output / "sme_packets")
    shown = evalkit_command("queue", "--output", output)
    assert shown.returncode == 1
    assert "No cases are waiting" not in shown.stdout
    assert re.search(r"\d+ cases cannot be listed, because .*sme_packets/", shown.stdout)


def test_export_leaves_silver_out_unless_asked(demo_run: RunSummary, tmp_path: Path) -> None:
    nothing = evalkit_command("export", "--output", demo_run.output)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    silver = evalkit_command(
        "export", "--output", demo_run.output, "--silver", "--format", "csv", "--to", tmp_path / "t"
    )
    assert silver.returncode == 0
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o600
    rows = list(csv.DictReader((tmp_path / "t").read_text().splitlines()))
    assert {row["ground_truth_source"] for row in rows} == {"AUTO_ACCEPTED"}
    by_id = {row["doc_id"]: row for row in rows}
    assert by_id["doc2_6"]["segments"] == "1-5 Genomic Report; 6-8 Clinical Note"


def test_export_of_a_dataset(demo_run: RunSummary, tmp_path: Path) -> None:
    words = [
        "export",
        "--output",
        demo_run.output,
        "--silver",
        "--format",
        "folder",
        "--level",
        "page",
        "--split",
        "0.5",
    ]
    made = evalkit_command(*words, "--deidentify", "--with-text", "--to", tmp_path / "d", "--json")
    assert made.returncode == 0, made.stderr
    said = json.loads(made.stdout)
    rows = [row for path in (tmp_path / "d/data").iterdir() for row in pq.read_table(path).to_pylist()]
    assert said.pop("documents_by_part").keys() == {"train", "test"}
    assert said == {"rows": len(rows), "to": str(tmp_path / "d"), "format": "folder", "level": "page"}
    assert {row["split"] for row in rows} == {"train", "test"}
    assert not any("Ellison" in row["text"] for row in rows)


@pytest.mark.parametrize(
    "name", ["bundle", "classification", "export", "failure", "ground_truth", "issue", "packet", "result", "review"]
)
def test_schemas_are_json_schemas(name: str) -> None:
    schema = json.loads(evalkit_command("schema", name).stdout)
    members = [schema["$defs"][member["$ref"].rpartition("/")[2]] for member in schema.get("oneOf", [])]
    for member in members or [schema]:
        assert member["type"] == "object"
        assert member["properties"]


def test_seeded_cases_are_named_to_whoever_draws_them(demo_run: RunSummary, tmp_path: Path) -> None:
    output = shutil.copytree(demo_run.output, tmp_path / "output")
    expert = SMEReviewHelper(output, "dr_first")
    expert.save_review("altered_quotes", agrees=True)
    expert.close()
    shown = evalkit_command("sample", "3", "--seeded", "--json", "--output", output)
    (case,) = json.loads(shown.stdout)["cases"]
    assert (case["doc_id"], case["kind"]) == ("altered_quotes", "type")
    assert case["case_id"] in evalkit_command("queue", "--output", output).stdout
    again = evalkit_command("sample", "3", "--seeded", "--output", output)
    assert (again.returncode, again.stdout) == (2, ""), "a document serves once"


def test_schema_without_a_name_lists_them() -> None:
    assert "packet" in evalkit_command("schema").stdout.split()


def test_challenge_prints_a_table_or_json(samples: Path) -> None:
    words = ["challenge", samples / "quest_cbc.pdf", "--kinds", "segment-count,label", "--limit", "2"]
    shown = evalkit_command(*words)
    assert shown.returncode == 0, shown.stderr
    assert "segment-count" in shown.stdout
    assert "100.0 % caught (mean over 2 kinds)" in shown.stdout
    told = json.loads(evalkit_command(*words, "--json").stdout)
    assert [(kind["kind"], kind["n"], kind["caught"]) for kind in told["kinds"]] == [
        ("segment-count", 2, 2),
        ("label", 2, 2),
    ]
    assert told["false_alarms"]["not_counted"] == {"unvalidated": 1}
    assert told["false_alarms"]["share"] is None, "nobody says that the answer is right"


def test_a_file_name_is_not_markup(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "[red]x[blink].pdf").write_bytes((samples / "quest_cbc.pdf").read_bytes())
    shown = evalkit_command("run", tmp_path, "--output", tmp_path / "out")
    assert "_red_x_blink_" in shown.stdout


def test_logs_and_errors_hold_no_document_text_and_logs_no_names(samples: Path, tmp_path: Path) -> None:
    secret = "Zebulon Quagmire"
    supplied = json.loads((samples / "classifications/fabricated_quote.json").read_text())
    supplied["segments"][0]["start_page"] = secret
    folder = tmp_path / "classifications"
    folder.mkdir()
    (folder / "fabricated_quote.json").write_text(json.dumps(supplied))
    words = ["run", samples / "fabricated_quote.pdf", "--classifications", folder, "--output", tmp_path / "out"]
    shown = evalkit_process("--verbose", *words)
    assert shown.returncode == 0
    assert secret not in shown.stderr + shown.stdout
    assert "fabricated_quote" not in shown.stderr


@pytest.mark.parametrize(
    "words",
    [["run", "{samples}/quest_cbc.pdf"], ["purge", "quest_cbc"], ["sample", "1"], ["reviewers", "add", "dr_lee"]],
    ids=lambda words: words[0],
)
def test_a_chain_that_cannot_be_written_is_said_once(
    demo_run: RunSummary, samples: Path, tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    append, output = ChangeRecorder._append, shutil.copytree(demo_run.output, tmp_path / "output")

    def fail(recorder: ChangeRecorder, files: Mapping[str, str | None], **options: bool) -> None:
        if options["is_finished"]:
            raise StoreError("the disk is full", code="STORE-FULL", remedy="Make room.")
        append(recorder, files, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ChangeRecorder, "_append", fail)
        shown = evalkit_command(*(word.format(samples=samples) for word in words), "--output", output)
    assert (shown.returncode, shown.stderr.count("The chain of changes lacks")) == (1, 1), shown.stderr
    assert has_unfinished_command(open_folder(output)) == (words[0] == "reviewers")
    assert evalkit_command("queue", "--output", output).returncode == 0


def test_reindex_rebuilds_what_was_lost(samples: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    evalkit_command("run", samples / "adjoining_notes.pdf", samples / "quest_cbc.pdf", "--output", output)
    before = evalkit_command("queue", "--output", output, "--json").stdout
    for path in output.glob("evalkit.sqlite*"):
        path.unlink()
    shown = evalkit_command("queue", "--output", output, "--json")
    assert shown.stdout == before
    assert "the index was rebuilt from 1 packet and 2 results" in shown.stderr
    assert "claims, drafts" in shown.stderr
    assert "evalkit.sqlite is missing: " in shown.stderr
    assert "left as it was" not in shown.stderr
    doctor = json.loads(evalkit_command("doctor", "--output", output, "--json").stdout)
    (check,) = [check for check in doctor if check["name"] == "database"]
    assert (check["is_fine"], check["found"]) == (False, "evalkit.sqlite is missing")
    assert "evalkit reindex" in check["remedy"]
    assert not list(output.glob("evalkit.sqlite*"))
    shown = evalkit_command("reindex", "--output", output)
    assert shown.stdout.strip() == "2 documents and 1 case indexed"
    assert evalkit_command("queue", "--output", output, "--json").stdout == before
    again = json.loads(evalkit_command("run", samples / "quest_cbc.pdf", "--output", output, "--json").stdout)
    assert again["documents"][0]["resumed"]


def test_run_in_a_folder_that_cannot_be_written_is_one_error(samples: Path, tmp_path: Path) -> None:
    evalkit_command("run", samples / "quest_cbc.pdf", "--output", tmp_path)
    (tmp_path / "reviews").mkdir(exist_ok=True)
    (tmp_path / ".lock").unlink()
    (tmp_path / ".lock").mkdir()  # as on a read-only disk, it cannot be opened for writing
    shown = evalkit_command("run", samples / "quest_cbc.pdf", "--output", tmp_path)
    assert shown.returncode == 2
    assert shown.stderr.count("cannot be written") == 1
    assert "not recorded" not in shown.stderr


def test_lost_results_stop_no_run_that_makes_them_again(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "output/reviews/letter").mkdir(parents=True)
    told = evalkit_command("run", samples / "quest_cbc.pdf", "--output", tmp_path / "output")
    assert told.returncode == 0, told.stderr


def test_a_damaged_index_is_one_line(demo_run: RunSummary, tmp_path: Path) -> None:
    (tmp_path / "evalkit.sqlite").write_bytes(b"not a database, sorry" * 100)
    shown = evalkit_command("queue", "--output", tmp_path)
    assert shown.returncode == 1
    assert "reindex" in shown.stderr
    assert len(shown.stderr.strip().splitlines()) == 1


def test_show_says_why(demo_run: RunSummary) -> None:
    output = demo_run.output
    shown = evalkit_command("show", "radiology_report", "--why", "--output", output).stdout
    assert "For and against each type, by the built-in model:" in shown
    assert "Radiology Report, lexicon: '" in shown
    assert "Radiology Report, for: " in shown
    told = json.loads(evalkit_command("show", "doc2_6", "--why", "--json", "--output", output).stdout)
    assert [segment["types"][0]["document_type"] for segment in told["why"]["segments"]][:1] == ["Genomic Report"]
    assert any(one["probability"] > 0.5 for one in told["why"]["beginnings"])
    unread = json.loads(evalkit_command("show", "poor_scan", "--why", "--json", "--output", output).stdout)
    assert unread["why"] is None
    assert "why" not in json.loads(evalkit_command("show", "doc2_6", "--json", "--output", output).stdout)


def test_run_records_what_blind_audits_prove(tmp_path: Path) -> None:
    pages, output = tmp_path / "pages", tmp_path / "output"
    pages.mkdir()
    for number in range(9):
        (pages / f"note{number}.txt").write_text(
            "Progress note. The patient was seen in clinic today for follow up. "
            f"Assessment and plan: continue treatment. Visit {number}."
        )
    environment = {
        "EVALKIT_AUDIT_RATE_START": "1.0",
        "EVALKIT_CERTIFICATE__MAX_ERROR_RATE": "0.6",
    }
    command = ("run", str(pages), "--output", str(output))
    assert "Certified" not in evalkit_command(*command, **environment).stderr
    helper = SMEReviewHelper(output, "dr_lee")
    for number in range(9):
        helper.save_review(f"note{number}", agrees=True)
        review_file = output / f"reviews/note{number}/0001.json"
        review = json.loads(review_file.read_text())
        review_file.write_text(json.dumps(review | {"shown": review["shown"] | {"agent": False}}))
    shown = evalkit_command(*command, **environment)
    assert "Certified: all documents. At most 60 % of the accepted documents are wrong" in shown.stderr
    assert re.search(r"^Certified: [A-Z][A-Za-z ]+ from [a-z]+, V1\. At most", shown.stderr, re.MULTILINE), shown.stderr
    events = [json.loads(file.read_text()) for file in sorted((output / "events").iterdir())]
    assert [event["kind"] for event in events] == ["certified", "certified"]
    report = json.loads(evalkit_command("report", "--output", str(output), "--json", **environment).stdout)
    (table, _) = next(section for section in report["sections"] if section["title"] == "Certificate")["tables"]
    assert [row["certified"] for row in table["rows"]] == [True, True]
    assert evalkit_command("purge", "note0", "--output", output).returncode == 0
    report = json.loads(evalkit_command("report", "--output", str(output), "--json", **environment).stdout)
    (later, _) = next(section for section in report["sections"] if section["title"] == "Certificate")["tables"]
    assert later == table
    (pages / "note0.txt").unlink()
    withdrawn = evalkit_command(*command, **(environment | {"EVALKIT_CERTIFICATE__MAX_ERROR_RATE": "0.01"}))
    assert "Certificate withdrawn: all documents. " in withdrawn.stderr


def test_sample_says_how_many_audits_a_precision_takes(demo_run: RunSummary) -> None:
    shown = evalkit_command("sample", "--for", "1", "--output", str(demo_run.output))
    assert "more audits show the error rate of accepted documents to ± 1 percentage point;" in shown.stdout
    data = json.loads(evalkit_command("sample", "--for", "1", "--json", "--output", str(demo_run.output)).stdout)
    assert data["half_width"] == 0.01
    assert data["more_audits"] > 100
