"""Results are kept while one document is worked on, and not longer."""

from __future__ import annotations

import asyncio
import gc
import os
import weakref
from pathlib import Path

import pymupdf
import pytest
from builders import doc2_6
from memory import count_holders, list_holders
from places import open_folder

import evalkit
from evalkit.classification.offline import lexicon, type_scoring
from evalkit.classification.offline.lexicon import LexiconReading
from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.core.document_cache import cache_by_identity, keep_results
from evalkit.documents.bundle import Page
from evalkit.pipeline.executor.protocol import ReaderConfig
from evalkit.pipeline.executor.reader_pool import ReaderPool
from widgets.workbench import Workbench


def test_results_are_kept_within_the_block_only() -> None:
    calls: list[object] = []

    @cache_by_identity
    def record(value: object) -> int:
        calls.append(value)
        return len(calls)

    values = ["a", "b"]
    with keep_results():
        assert [record(values), record(values), record(list(values))] == [1, 1, 2]
        with keep_results():
            assert record(values) == 3
        assert record(values) == 1
    assert [record(values), record(values)] == [4, 5]


def test_an_evaluated_document_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    read_texts: list[str] = []

    def apply_lexicon(page: Page) -> LexiconReading:
        read_texts.append(page.text)
        return lexicon.apply_lexicon(page)

    monkeypatch.setattr(type_scoring, "apply_lexicon", apply_lexicon)
    bundle = doc2_6()
    pages = [weakref.ref(page) for page in bundle.pages]
    asyncio.run(RetryOrchestrator().evaluate(bundle))
    assert sorted(read_texts) == sorted(page.text for page in bundle.pages), "all checks read each page once"
    del bundle
    gc.collect()
    assert [page() for page in pages] == [None] * len(pages)


def build_folder(folder: Path, word: str) -> Path:
    """A file of two documents, which a person must decide, full of that word."""
    texts = (
        f"PROGRESS NOTE\nPatient: {word} Miller\nDate of birth: 03/04/1960\nChief complaint: cough, {word}.",
        f"SURGICAL PATHOLOGY REPORT\nPatient: {word} Miller\nFinal diagnosis: ductal carcinoma, {word}.",
        f"PROGRESS NOTE\nPatient: Anna Brown\nDate of birth: 05/06/1971\nSeen with {word}. Blood pressure 120/80.",
    )
    document = pymupdf.open()
    for text in texts:
        document.new_page().insert_text((72, 72), text)
    folder.mkdir()
    document.save(folder / "arrival.pdf")
    return folder / "arrival.pdf"


def test_no_text_outlives_its_document(tmp_path: Path) -> None:
    word = f"zebra{os.getpid()}"
    pdf = build_folder(tmp_path / "arrivals", word)
    output = tmp_path / "output"
    evalkit.run(pdf, output=output)
    assert list_holders(word) == [], "after a run"
    evalkit.extract(pdf, output=output)
    assert list_holders(word) == [], "after an extraction"
    evalkit.report(output)
    assert list_holders(word) == [], "after a report"
    evalkit.export(output, tmp_path / "export", file_format="folder", silver=True, deidentify=True, with_text=True)
    assert list_holders(word) == [], "after an export"
    helper = evalkit.SMEReviewHelper(output, "dr_lee")
    for issue in helper.load_packet("arrival").issues:
        helper.get_issue_context(helper.load_packet("arrival"), issue)
    helper.close()
    assert list_holders(word) == [], "after a look at the issues"


def test_no_text_outlives_its_case_on_the_screen(tmp_path: Path) -> None:
    word = f"zebra{os.getpid()}"
    evalkit.run(build_folder(tmp_path / "arrivals", word), output=tmp_path / "output")
    screen = Workbench(open_folder(tmp_path / "output"), "dr_lee")
    screen.dispatch_message({"action": "hello", "tab": "tab-1", "case": None})
    screen.dispatch_message({"action": "next"})
    for issue_id in [issue.issue_id for issue in screen.case.packet.issues]:
        screen.dispatch_message({"action": "select", "token": screen.page_pane.version, "issue_id": issue_id})
    screen.dispatch_message({"action": "previews", "kind": "page", "token": screen.page_pane.version, "pages": [1, 2]})
    screen.dispatch_message({"action": "find", "text": "cough"})
    assert list_holders(word), "the test sees nothing"
    screen.dispatch_message({"action": "queue"})
    assert list_holders(word) == []


def test_no_text_outlives_its_document_in_a_worker(tmp_path: Path) -> None:
    half = str(os.getpid())
    pdf = build_folder(tmp_path / "arrivals", f"zebra{half}")

    async def read_and_count() -> int:
        with ReaderPool(1, ReaderConfig(60)) as pool:
            pool.reads_alone = False
            await pool.read(pdf, doc_id="arrival", processing_timestamp="2025-01-01T00:00:00Z")
            return await pool.run_in_worker(count_holders, "zebra", half)

    assert asyncio.run(read_and_count()) == 0
