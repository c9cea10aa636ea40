"""Pages of a scan as pictures: to a model that sees, and what becomes of what it saw."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from documents.scanning import needs_tesseract
from PIL import Image

from evalkit import pipeline
from evalkit.errors import DocumentError
from evalkit.pipeline.executor.reader_pool import ReaderPool
from evalkit.pipeline.model_session import find_seeing_roles
from evalkit.settings import Settings

from .scanned_form import LABELS, STAMPED, run_with_model, write_scan

pytestmark = needs_tesseract


def quote_issues(output: Path) -> dict[str, tuple[str, str]]:
    issues = json.loads((output / "results/release.json").read_text())["issues"]
    return {issue["quote"]: (issue["code"], issue["verdict"]) for issue in issues if issue["verdict"]}


def test_a_stamp_and_a_ticked_box_go_to_a_person(tmp_path: Path) -> None:
    source = write_scan(tmp_path)
    calls = run_with_model("gemini:gemini-2.5-flash", source, tmp_path / "out")
    by_role = {call.role: call for call in calls}
    assert {role: len(call.images) for role, call in by_role.items()} == {"classifier": 1, "V2": 1, "V3": 0, "V4": 1}
    with Image.open(io.BytesIO(by_role["classifier"].images[0])) as picture:
        assert 1_000_000 < picture.width * picture.height <= 1_200_000
    assert "show page 1, in this order" in by_role["classifier"].prompt
    assert quote_issues(tmp_path / "out") == {
        f"[x] {LABELS[2]}": ("V4-QUOTE-UNCERTAIN", "UNCERTAIN"),
        STAMPED: ("V4-QUOTE-UNCERTAIN", "UNCERTAIN"),
    }
    result = json.loads((tmp_path / "out/results/release.json").read_text())
    assert result["decision"] == "ESCALATE_TO_SME"
    seen = result["classification"]["segments"][0]["segment_composition"]
    marks = [quote.get("seen_in_picture") for presence in seen for quote in presence["top_evidence"]]
    assert marks == [None, True, True]


def test_pictures_are_in_the_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-the-test")
    source, model = write_scan(tmp_path), "gemini:gemini-2.5-flash"
    rows = {row.role: row for row in pipeline.estimate(source, output=tmp_path / "out", model=model).rows}
    assert {role: row.images for role, row in rows.items()} == {"classifier": 1, "V2": 0, "V3": 0, "V4": 0}
    assert rows["classifier"].usage.input_tokens > rows["V3"].usage.input_tokens + 2_000


@pytest.mark.parametrize(
    ("model", "settings"),
    [("gemini:gemma-3-1b-it", {}), ("gemini:gemini-2.5-flash", {"EVALKIT_PICTURES_PER_DOCUMENT": "0"})],
)
def test_nothing_is_sent_to_who_does_not_see(
    model: str, settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    calls = run_with_model(model, write_scan(tmp_path), tmp_path / "out")
    assert len(calls) == 4
    assert not any(call.images or "PICTURES" in call.prompt for call in calls)


@pytest.mark.parametrize("code", ["READER-TOO-SLOW", "READER-TIMEOUT", "READER-CRASHED"])
def test_a_document_that_was_read_is_decided_without_pictures(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_arguments: object) -> None:
        raise DocumentError("drawing failed", code=code, remedy="None.")

    monkeypatch.setattr(ReaderPool, "render_page_images", fail)
    calls = run_with_model("gemini:gemini-2.5-flash", write_scan(tmp_path), tmp_path / "out")
    assert len(calls) == 4
    assert not any(call.images for call in calls)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, set()),
        ({"models": {"default": "gemini:gemini-2.5-flash"}}, {"classifier", "v2", "v4"}),
        ({"models": {"default": "gemini:gemini-2.5-flash"}, "profile": "lean"}, {"classifier", "verifier"}),
        ({"models": {"default": "gemini:gemini-2.5-flash", "classifier": "openai:o3-mini"}}, {"v2", "v4"}),
        ({"models": {"default": "openai:house-model", "v4": "anthropic:claude-sonnet-4-5"}}, {"v4"}),
        ({"models": {"default": "gemini:gemini-2.5-flash"}, "pictures_per_document": 0}, set()),
    ],
)
def test_roles_whose_model_is_known_to_see(settings: dict[str, object], expected: set[str]) -> None:
    assert find_seeing_roles(Settings.model_validate(settings)) == expected
