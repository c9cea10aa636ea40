"""Results are kept while one document is worked on, and not longer."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from builders import doc2_6

from evalkit.classification.offline import lexicon, type_scoring
from evalkit.classification.offline.lexicon import LexiconReading
from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.core.identity_cache import cache_by_identity, keep_results
from evalkit.documents.bundle import Page


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
