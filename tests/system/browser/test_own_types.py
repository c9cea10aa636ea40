"""A sixth document type from a types file in a scratch folder, from the run to the report: nothing of evalkit is edited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import Json
from documents.drawing import lines, pdf
from playwright.sync_api import Browser, expect
from servers.openai import Call, ModelServer
from system.browser.screen import Screen
from system.browser.server import Serve

TYPES_FILE = """\
["Operative Note"]
definition = "A surgeon's account of an operation."
includes = ["operative reports with findings, technique and blood loss", "brief operative notes"]
excludes = ["consent to surgery"]
loinc = { code = "11504-8", display = "Surgical operation note" }
key = "6"

["Zahnärztlicher Befund"]
definition = "A dentist's findings of teeth and gums."
loinc = "28618-7"
"""
OPERATION = [
    "OPERATIVE NOTE", "", "Patient: Jane Sample", "DOB: 02/03/1961", "",
    "Procedure performed: laparoscopic cholecystectomy.",
    "The patient was taken to the operating room and placed supine.",
    "The cystic duct and artery were clipped and divided.", "Estimated blood loss was 20 mL.",
]  # fmt: skip
VISIT = [
    "PROGRESS NOTE", "", "Patient: Jane Sample", "DOB: 02/03/1961", "",
    "She returns two weeks after gallbladder removal and reports mild soreness and no fever.",
    "Abdomen soft, wounds clean and dry.", "Assessment and plan: recovering as expected, follow up as needed.",
]  # fmt: skip


def evalkit(folder: Path, *words: str, **environ: str) -> str:
    """The standard output of a command in the scratch folder."""
    command = [sys.executable, "-m", "evalkit", *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environ
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer(call: Call) -> str:
    """A model's answer: the classifier calls both pages the sixth type; the verifiers find nothing."""
    if "start_page" not in str(call.body):
        return json.dumps({"findings": []})
    quote = {"page": 1, "paragraph": None, "first_words": "The cystic duct", "last_words": "clipped and divided"}
    types = [{"evidence": [quote], "document_type": "operative note", "presence_level": "PRIMARY", "confidence": 0.4}]
    segment = {"start_page": 1, "end_page": 2, "notes": "", "reasoning": "A surgeon's account.", "types": types}
    return json.dumps({"segments": [segment], "vendor_signals": [], "self_evaluation": None})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scratch folder with a run by a model that calls a packet's two pages one Operative Note."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "types.toml").write_text(TYPES_FILE, "utf-8")
    (folder / "evalkit.toml").write_text('types_file = "types.toml"\n')
    (folder / "records").mkdir()
    (folder / "records" / "packet.pdf").write_bytes(pdf(lines(OPERATION), lines(VISIT)))
    with ModelServer(answer) as server:
        address = {"EVALKIT_OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none"}
        evalkit(folder, "run", str(folder / "records"), "--model", "openai:scripted", "--profile", "lean", **address)
        (prompt, *_) = [str(call.body) for call in server.calls if "start_page" in str(call.body)]
    assert "Operative Note: A surgeon's account of an operation." in prompt.replace("\\'", "'")
    assert '"Other", "Operative Note", "Zahnärztlicher Befund"' in prompt.replace('","', '", "')
    return folder


@pytest.fixture(scope="module")
def supplied(folder: Path) -> Json:
    """The right answer, of another system."""
    names = ("Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other")
    names = (*names, "Operative Note", "Zahnärztlicher Befund")

    def share(kind: str, quote: str, page: int, name: str) -> Json:
        is_kind = kind == name
        return {
            "document_type": name, "presence_level": "PRIMARY" if is_kind else "NO_EVIDENCE",
            "confidence": 0.9 * is_kind, "segment_share": float(is_kind),
            "top_evidence": [{"snippet": quote, "page": page, "anchors_found": []}] if is_kind else [],
        }  # fmt: skip

    parts = (
        (1, "Operative Note", "The cystic duct and artery were clipped and divided."),
        (2, "Clinical Note", "reports mild soreness and no fever"),
    )
    segments = [
        {
            "segment_index": page,
            "start_page": page,
            "end_page": page,
            "segment_page_count": 1,
            "dominant_type": kind,
            "segment_composition": [share(kind, quote, page, name) for name in names],
        }
        for page, kind, quote in parts
    ]
    halves = {"Operative Note": 0.5, "Clinical Note": 0.5}
    mixture = [
        {
            "document_type": name,
            "presence_level": "PRIMARY" if name in halves else "NO_EVIDENCE",
            "confidence": 0.9 * (name in halves),
            "overall_share": halves.get(name, 0.0),
        }
        for name in names
    ]
    overall: dict[str, Any] = {"dominant_type_overall": "Operative Note", "number_of_segments": 2}
    return {**overall, "segments": segments, "document_mixture": mixture}


@pytest.fixture
def screen(chromium: Browser, serve: Serve, folder: Path) -> Iterator[Screen]:
    with serve(folder / "output", ["dr_lee"]) as server:
        screen = Screen(chromium, server.address, 1440, 900)
        screen.log_in(server.codes["dr_lee"])
        yield screen
        screen.close()


def test_supplied_answer_with_a_sixth_type_passes_all_checks(folder: Path, supplied: Json) -> None:
    (folder / "answers").mkdir()
    (folder / "answers" / "packet.json").write_text(json.dumps(supplied))
    evalkit(folder, "run", str(folder / "records"), "--classifications", "answers", "--output", "other")
    result = json.loads((folder / "other" / "results" / "packet.json").read_text())
    assert {issue["code"] for issue in result["issues"]} == {"V2-DOMINANT-TIE"}
    assert result["decision"] == "AUTO_ACCEPT"
    for entry in supplied["segments"]:
        entry["segment_composition"].pop()
    (folder / "answers" / "packet.json").write_text(json.dumps(supplied))
    evalkit(folder, "run", str(folder / "records"), "--classifications", "answers", "--output", "third")
    result = json.loads((folder / "third" / "results" / "packet.json").read_text())
    messages = [issue["message"] for issue in result["issues"] if issue["agent"] == "V1"]
    assert any("Zahnärztlicher Befund" in message for message in messages), messages


def test_expert_sets_the_sixth_type_by_its_key(folder: Path, screen: Screen, shots: Path | None) -> None:
    screen.shot(shots, "own_types_queue")
    screen.open("packet")
    types = screen.page.locator(".ek-types button")
    expect(types).to_have_count(7)
    expect(types.nth(5)).to_have_text("Operative Note6")
    expect(types.nth(6)).to_have_text("Zahnärztlicher Befund")
    screen.turn_to(2)
    screen.page.wait_for_selector(".ek-pane[data-painted$=':2']")
    screen.settle()
    for key in ("s", "6"):
        screen.page.keyboard.press(key)
        screen.settle()
    expect(screen.page.locator(".ek-editor .ek-head")).to_contain_text("Document 2 of 2")
    expect(screen.page.locator(".ek-types .ek-chosen")).to_contain_text("Operative Note")
    screen.shot(shots, "own_types_case")
    screen.page.keyboard.press("g")
    sheet = screen.page.get_by_role("dialog", name="all pages")
    expect(sheet.locator("header button", has_text="Operative Note")).to_be_visible()
    screen.shot(shots, "own_types_all_pages")
    screen.page.keyboard.press("g")
    expect(sheet).to_be_hidden()
    screen.page.keyboard.press("?")
    expect(screen.page.get_by_role("dialog", name="Keys")).to_contain_text("6Set its type: Operative Note")
    screen.page.keyboard.press("Escape")
    screen.page.keyboard.press("Shift+G")
    expect(screen.page.get_by_role("dialog", name="Guidelines")).to_contain_text("A dentist's findings")
    screen.shot(shots, "own_types_guidelines")
    screen.page.keyboard.press("Escape")
    screen.page.keyboard.press("1")
    expect(screen.page.locator(".ek-types .ek-chosen")).to_contain_text("Clinical Note")  # before another page is shown
    screen.see_everything()
    expect(screen.button("Submit correction")).to_be_enabled()
    screen.page.keyboard.press("Control+Enter")
    screen.page.wait_for_selector(".ek-queue-head, .ek-stop")
    screen.assert_clean()

    # in another working folder, whose settings name no types file: the output folder keeps the types
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    output = str(folder / "output")
    (exported,) = map(json.loads, evalkit(elsewhere, "export", "--output", output).splitlines())
    truth = exported["ground_truth_classification"]
    assert [segment["dominant_type"] for segment in truth["segments"]] == ["Operative Note", "Clinical Note"]
    report = evalkit(elsewhere, "report", "--output", output, "--to", "report.html")
    assert "The whole report is in" in report
    assert "Operative Note" in (elsewhere / "report.html").read_text("utf-8")
    assert "Operative Note" in evalkit(elsewhere, "compare", output, str(folder / "other"))
    evalkit(elsewhere, "export", "--output", output, "--format", "fhir", "--to", "fhir")
    bundles = "".join(path.read_text("utf-8") for path in (elsewhere / "fhir").rglob("*.json"))
    assert "11504-8" in bundles
