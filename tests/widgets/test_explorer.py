"""The explorer without a browser: each press, and what it shows, writes or draws."""

from __future__ import annotations

import csv
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from places import open_folder

from evalkit import explore, run
from evalkit.evaluation.study import read_study
from evalkit.pipeline import RunSummary
from evalkit.pipeline.sample_draws import read_all_draws
from widgets.explorer import EXPORT_FILE, Explorer

TRUTH = "doc_id,dominant_type,segments\nquest_genomic,Other,1-2 Other\nclinical_note,Clinical Note,1-3 Clinical Note\n"


@pytest.fixture
def explorer(demo_run: RunSummary, tmp_path: Path) -> Explorer:
    shutil.copytree(demo_run.output, tmp_path / "output")
    (tmp_path / "truth.csv").write_text(TRUTH)
    return explore(tmp_path / "output", truth=tmp_path / "truth.csv")


def press(explorer: Explorer, action: str, **fields: Any) -> None:
    explorer.dispatch_message({"action": action, **fields})


def choose(explorer: Explorer, comparison: str = "program", **filters: str) -> None:
    press(explorer, "choose", filters=filters, comparison=comparison, page=0)


def test_a_cell_leads_to_its_document_and_the_lit_page(explorer: Explorer) -> None:
    choose(explorer, truth="Other", program="Genomic Report")
    assert [row["doc_id"] for row in explorer.panel.answer["documents"]] == ["quest_genomic"]
    press(explorer, "document", doc_id="quest_genomic")
    card, pane = explorer.panel.document, explorer.page_pane
    assert [one["page"] for one in card["differences"]] == [1, 2]
    assert (card["page"], pane.page, card["place"]) == (1, 1, [1, 1])
    assert {mark["style"] for mark in pane.marks} == {"found"}
    assert {mark["page"] for mark in pane.marks} == {1}
    assert len(card["captions"]) > 0
    assert explorer.view.children == (explorer.panel, pane)
    press(explorer, "overview")
    assert explorer.view.children == (explorer.panel,)
    assert explorer.panel.document == {}


def test_a_cell_run_again_shows_the_same_place(
    demo_run: RunSummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(demo_run.output, tmp_path / "output")
    explorers = []
    for cell_id in ("cell-1", "cell-1", "cell-2"):
        monkeypatch.setattr("widgets.explorer.find_running_cell_id", lambda cell_id=cell_id: cell_id)
        explorers.append(explore(tmp_path / "output"))
        if len(explorers) == 1:
            choose(explorers[0], program="Genomic Report")
            press(explorers[0], "document", doc_id="quest_genomic")
            press(explorers[0], "page", page=2, token=explorers[0].page_pane.version)
    first, again, other = explorers
    assert again.panel.filters == {"program": "Genomic Report"}
    assert (again.panel.document["doc_id"], again.page_pane.page) == ("quest_genomic", 2)
    assert first.panel.comm is None
    assert (other.panel.filters, other.panel.document) == ({}, {})


def test_a_page_of_the_open_document_is_shown_with_its_own_marks(explorer: Explorer) -> None:
    press(explorer, "document", doc_id="quest_genomic")
    press(explorer, "page", page=2, token=explorer.page_pane.version)
    assert (explorer.page_pane.page, explorer.panel.document["page"]) == (2, 2)
    assert {mark["page"] for mark in explorer.page_pane.marks} == {2}
    press(explorer, "page", page=1, token="another:1")
    press(explorer, "page", page=99)
    assert explorer.page_pane.page == 2


def test_pictures_come_only_for_the_open_document(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(
        explorer.page_pane, "send", lambda message, buffers=None: sent.append((message["kind"], message["page"]))
    )
    press(explorer, "thumbnails", pages=[1])
    assert sent == []
    press(explorer, "document", doc_id="quest_genomic")
    press(explorer, "thumbnails", pages=[1, 2, 3])
    press(explorer, "previews", kind="page", pages=[2])
    assert sent == [("page", 1), ("thumbnail", 1), ("thumbnail", 2), ("page", 2)]


def test_a_text_is_found_in_the_open_document(explorer: Explorer) -> None:
    press(explorer, "find", text="Quest")
    assert explorer.page_pane.found_for == ""
    press(explorer, "document", doc_id="quest_genomic")
    press(explorer, "find", text="Quest")
    assert explorer.page_pane.hits[0]["page"] == 1


def test_export_writes_the_chosen_documents(explorer: Explorer, tmp_path: Path) -> None:
    choose(explorer, decision="accepted")
    press(explorer, "export")
    path = tmp_path / "output" / EXPORT_FILE
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == explorer.panel.answer["matching"] == len(explorer.selection)
    assert {row["decision"] for row in rows} == {"AUTO_ACCEPT"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"Wrote {len(rows)} documents to {path}" in explorer.panel.notice


def test_only_chosen_documents_are_drawn(explorer: Explorer, tmp_path: Path) -> None:
    choose(explorer, program="Clinical Note", decision="accepted", review="unseen")
    chosen = set(explorer.selection["doc_id"])
    press(explorer, "draw", count=1)
    (draw,) = read_all_draws(open_folder(tmp_path / "output"))
    (stratum,) = draw.strata
    assert len(stratum.drawn) == 1
    assert {*stratum.drawn, *stratum.probability} <= chosen
    assert "Drew 1 of the chosen documents" in explorer.panel.notice
    queued = next(one for one in read_study(tmp_path / "output").documents if one.doc_id == stratum.drawn[0])
    assert (queued.truth_status, queued.review_reason) == ("pending", "sample")


def test_what_cannot_be_done_is_said(explorer: Explorer) -> None:
    choose(explorer, decision="escalated")
    press(explorer, "draw", count=3)
    assert "no document is left to draw" in explorer.panel.problem
    press(explorer, "draw", count=0)
    assert "at least 1" in explorer.panel.problem
    press(explorer, "document", doc_id="never seen")
    assert "Something went wrong (error " in explorer.panel.problem
    choose(explorer)
    assert explorer.panel.problem == ""


def test_a_document_without_pages_says_why(explorer: Explorer, tmp_path: Path) -> None:
    (tmp_path / "output/results/quest_genomic.json").write_text("{")
    press(explorer, "document", doc_id="quest_genomic")
    assert "quest_genomic.json" in explorer.panel.problem
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    run([tmp_path / "broken.pdf"], output=tmp_path / "broken")
    failed = explore(tmp_path / "broken")
    press(failed, "document", doc_id="broken")
    assert "broken.pdf has no pages to show" in failed.panel.problem
    assert failed.panel.document == explorer.panel.document == {}


def test_unknown_filters_and_messages_change_nothing(explorer: Explorer) -> None:
    before = explorer.panel.answer
    choose(explorer, "colour", __class__="x", stated="1")
    press(explorer, "validate")
    assert (explorer.panel.filters, explorer.panel.comparison) == ({}, "program")
    assert explorer.panel.answer == before
