"""The embedded model and a site's own types, which it has not learned."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from benchmarks.first_contact.interchange.open_types_files import build, build_documents
from benchmarks.first_contact.interchange.own_types import TypedDocument
from builders import document, page

from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.v5_arbiter import Decision
from evalkit.document_types import DocumentTypeRecord, use_own_types

TYPES = {own_type.name: own_type for file in build() for own_type in file.types}
DOCUMENTS = build_documents()


@pytest.fixture(autouse=True)
def no_own_types() -> Iterator[None]:
    yield
    use_own_types({})


def count_accepted(documents: list[TypedDocument]) -> int:
    """How many of these the embedded model's answer is accepted for."""
    bundles = [document(*(page(number, text) for number, text in enumerate(one.pages, 1))) for one in documents]
    outcomes = [asyncio.run(RetryOrchestrator(languages=("en", "de")).evaluate(bundle)) for bundle in bundles]
    return sum(outcome.verdict.decision is Decision.AUTO_ACCEPT for outcome in outcomes)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_text_of_an_unlearned_type_is_accepted(name: str) -> None:
    own_type = TYPES[name]
    record = DocumentTypeRecord(definition=own_type.definition, includes=own_type.includes, excludes=own_type.excludes)
    of_type = [one for one in DOCUMENTS[name] if one.document_type == name]
    others = [one for one in DOCUMENTS[name] if one.document_type != name]
    use_own_types({name: record})
    assert count_accepted(of_type) == 0
    assert count_accepted(others) >= len(others) / 2, "what has a known title is still told"


def test_without_own_types_nothing_is_kept_silent() -> None:
    documents = DOCUMENTS["Echo Report"]
    assert count_accepted(documents) == len(documents)
