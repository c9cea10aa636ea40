"""A patient's name, birth date and record number stay in bundle, packet and page."""

from __future__ import annotations

import logging
from importlib.resources import files
from pathlib import Path

import pytest
from commands import evalkit_command

import evalkit
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.report import build_report, write_html_report
from evalkit.evaluation.study import read_study
from evalkit.samples.manuscript import Manuscript
from evalkit.samples.pdf_drawing import draw_pdf

MARKERS = ("ZZQuill", "07/23/1931", "1931-07-23", "ZZQ-918273")


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
    write_html_report(build_report(read_study(output), made_at="2026-01-01T00:00:00Z"), tmp_path / "report.html")
    export_ground_truth(output, tmp_path / "export.jsonl", silver=True)
    shown = [
        evalkit_command(*words, "--output", output).stdout
        for words in (("queue",), ("show", "misfiled_page"), ("show", "adjoining_notes"))
    ]
    console = capsys.readouterr()
    texts = {
        "log": caplog.text,
        "console": console.out + console.err,
        "shown": "".join(shown),
        **{path.name: path.read_text() for path in (*tmp_path.glob("*.*l"), *(output / "results").iterdir())},
    }
    assert {"report.html", "export.jsonl", "misfiled_page.json", "adjoining_notes.json"} <= texts.keys()
    assert [(place, marker) for place, text in texts.items() for marker in MARKERS if marker in text] == []
