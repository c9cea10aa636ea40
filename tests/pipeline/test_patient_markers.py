"""A patient's name, birth date and record number stay in bundle, packet and page."""

from __future__ import annotations

import json
import logging
import re
from importlib.resources import files
from pathlib import Path

import pytest
from commands import evalkit_command
from samples.demo_runs import PATIENT_SALT

import evalkit
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.report import build_report
from evalkit.evaluation.study import read_study
from evalkit.review import SMEReviewHelper
from evalkit.samples.manuscript import Manuscript
from evalkit.samples.pdf_drawing import draw_pdf

MARKERS = ("ZZQuill", "07/23/1931", "1931-07-23", "ZZQ-918273", "ZZQ918273", "ZZQUILL")


def draw_marked(name: str, original: tuple[str, str, str, str]) -> bytes:
    """A demo document whose patient is the markers."""
    text = (files("evalkit.samples") / "content" / f"{name}.toml").read_text("utf-8")
    family_name, given_name, birth_date, number = original
    text = text.replace(family_name, "ZZQuill").replace(given_name, "Zora")
    return draw_pdf(Manuscript.parse_toml(text.replace(birth_date, "07/23/1931").replace(number, "ZZQ-918273")))


def test_identifiers_stay_in_bundle_and_packet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    samples, output = tmp_path / "in", tmp_path / "out"
    samples.mkdir()
    documents = {
        "misfiled_page": ("Kessler", "Dorothy", "06/17/1949", "HC-502218"),
        "adjoining_notes": ("Osgood", "Walter", "02/08/1956", "BF-11873"),
    }
    for doc_id, original in documents.items():
        (samples / f"{doc_id}.pdf").write_bytes(draw_marked(doc_id, original))
    with caplog.at_level(logging.DEBUG):
        evalkit.run([samples], output=output)
    bundle_text = (output / "document_bundles/misfiled_page.json").read_text()
    assert all(marker in bundle_text for marker in ("ZZQuill", "07/23/1931", "ZZQ-918273"))
    build_report(read_study(output), made_at="2026-01-01T00:00:00Z").write_html(tmp_path / "report.html")
    helper = SMEReviewHelper(output, "dr_lee")
    helper.save_review("adjoining_notes", corrected_segments=[(1, 2, "Clinical Note")])
    helper.close()
    export_ground_truth(output, tmp_path / "export.jsonl", silver=True)
    export_ground_truth(output, tmp_path / "split.jsonl", silver=True, split={"train": 0.5, "test": 0.5})
    result = json.loads((output / "results/misfiled_page.json").read_text())
    patients = [segment["patient"] for segment in result["classification"]["segments"]]
    assert all(re.fullmatch("[0-9a-f]{32}", patient["name_key"]) for patient in patients)
    commands = [
        *(("queue",), ("queue", "--json"), ("show", "misfiled_page"), ("show", "adjoining_notes", "--json")),
        *(("purge", "--patient-key", patients[0]["name_key"]), ("audit", "verify", "--json"), ("audit", "export")),
    ]
    shown = [evalkit_command(*words, "--output", output) for words in commands]
    assert [command.returncode for command in shown] == [0] * len(shown)
    console = capsys.readouterr()
    texts = {
        "log": caplog.text,
        "console": console.out + console.err,
        "shown": "".join(command.stdout + command.stderr for command in shown),
        **{path.name: path.read_text() for path in (*tmp_path.glob("*.*l"), *(output / "results").iterdir())},
        **{path.name: path.read_text() for path in (*(output / "ground_truth").iterdir(), *output.glob("*.json"))},
    }
    expected = {"report.html", "export.jsonl", "split.jsonl", "misfiled_page.json", "adjoining_notes.json"}
    assert expected | {"gt_adjoining_notes.json", "patient_salt.json"} <= texts.keys()
    assert [(place, marker) for place, text in texts.items() for marker in MARKERS if marker in text] == []
    keys = [patient[name] for patient in patients for name in ("name_key", "number_key")]
    leaving = {name: texts[name] for name in ("report.html", "export.jsonl", "split.jsonl", "log")}
    secrets = [*filter(None, keys), PATIENT_SALT, "name_key", "fields_seen"]
    assert [(place, secret) for place, text in leaving.items() for secret in secrets if secret in text] == []
