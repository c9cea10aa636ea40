"""What the embedded classifier sees in pages that another program has typed."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from builders import (
    GENOMIC,
    NOTE,
    OTHER,
    PATHOLOGY,
    RADIOLOGY,
    TYPES,
    CountingModel,
    answer,
    codes,
    compose_single_type,
    copy_with,
    document,
    one_segment,
    parse_answer,
    presence,
    segment,
)
from classification.offline.test_acts import NOT_PERFORMED, PERFORMED, ROWS
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.offline.model_weights import EmbeddedModelWeights, load_embedded_weights
from evalkit.classification.offline.second_reading import (
    SECOND_READING_CODE,
    combine_readings,
    find_second_reading_issues,
)
from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.issue import Issue

PANEL = f"LABORATORY REPORT\nPatient: J. Roe\n{ROWS}\nGlucose was measured in serum. Reference intervals are those of adults."


def find_issues(kind: str, *texts: str, **changed: Any) -> list[Issue]:
    """The second reading of an answer that calls the whole document one type."""
    weights = load_embedded_weights().model_copy(update=changed)
    return list(find_second_reading_issues(parse_answer(one_segment(kind, len(texts))), document(*texts), weights))


@pytest.mark.parametrize("kind", PERFORMED)
@pytest.mark.parametrize("claimed", TYPES)
def test_a_claimed_type_is_contradicted_by_pages_of_another(kind: str, claimed: str) -> None:
    found = find_issues(claimed, PERFORMED[kind])
    assert bool(found) is (claimed != kind)
    for issue in found:
        assert (issue.code, issue.severity, issue.auto_fixable) == (SECOND_READING_CODE, "MAJOR", False)
        assert (issue.agent, issue.segment_index, issue.document_type, issue.page) == ("V2", 1, claimed, 1)
        assert re.search(
            rf"called {claimed}, but a second reading finds that only \d+% likely; {kind} is", issue.message
        )
        assert kind in issue.suggested_fix
        assert issue.quote
        assert issue.quote in PERFORMED[kind]


def test_the_page_with_the_strongest_cue_is_named() -> None:
    """Cues of the type that is read, not of another that a page before has."""
    beginning, end = ("\n".join(PERFORMED[NOTE].splitlines()[part]) for part in (slice(2), slice(-2, None)))
    for first_page in ("Thank you.", beginning, end):
        (issue,) = find_issues(GENOMIC, first_page, PERFORMED[PATHOLOGY], "Thank you.")
        assert PATHOLOGY in issue.suggested_fix
        assert issue.page == 2
        assert issue.quote in PERFORMED[PATHOLOGY]


def test_each_segment_is_read_by_itself() -> None:
    parts = [
        segment(number, number, number, kind, compose_single_type(kind))
        for number, kind in enumerate((RADIOLOGY, NOTE, PATHOLOGY), 1)
    ]
    value = answer(*parts, overall=NOTE, shares={NOTE: 1.0})
    bundle = document(PERFORMED[RADIOLOGY], PERFORMED[GENOMIC], PERFORMED[PATHOLOGY])
    (issue,) = find_second_reading_issues(parse_answer(value), bundle, load_embedded_weights())
    assert (issue.segment_index, issue.page) == (2, 2)


def test_the_limit_is_the_weights_own() -> None:
    assert find_issues(PATHOLOGY, PERFORMED[NOTE]) != []
    assert find_issues(PATHOLOGY, PERFORMED[NOTE], max_contradicted_probability=0.0) == []
    assert find_issues(PATHOLOGY, PERFORMED[NOTE], max_contradicted_probability=1.0) != []


@pytest.mark.parametrize("counts", [{}, {PATHOLOGY: 0}])
def test_nothing_is_said_of_a_type_that_was_not_learned(counts: dict[str, int]) -> None:
    learned = dict(load_embedded_weights().training_group_counts)
    assert find_issues(PATHOLOGY, PERFORMED[NOTE], training_group_counts=learned) != []
    unlearned = {kind: count for kind, count in learned.items() if kind != PATHOLOGY} | counts
    assert find_issues(PATHOLOGY, PERFORMED[NOTE], training_group_counts=unlearned) == []
    assert find_issues(GENOMIC, PERFORMED[NOTE], training_group_counts=unlearned) != []


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("text", ["0", "Thank you.", "See attached", "Page 3"])
def test_pages_that_say_nothing_contradict_no_type(text: str, kind: str) -> None:
    assert find_issues(kind, text, max_contradicted_probability=0.49) == []


def test_pages_without_text_or_type_are_not_read() -> None:
    assert find_issues(NOTE, "", " \n") == []
    untyped = copy_with(one_segment(NOTE, 1), {"segments.0.dominant_type": None})
    bundle = document(PERFORMED[PATHOLOGY])
    assert list(find_second_reading_issues(parse_answer(untyped), bundle, load_embedded_weights())) == []


@pytest.mark.parametrize("name", NOT_PERFORMED)
def test_other_that_performs_no_act_is_not_contradicted(name: str) -> None:
    _, text = NOT_PERFORMED[name]
    assert find_issues(OTHER, text) == []


def test_both_readings_count() -> None:
    words, acts = (dict.fromkeys(DocumentType, 0.1) | {kind: 0.6} for kind in (NOTE, PATHOLOGY))
    both = combine_readings(words, acts)
    assert both[NOTE] == pytest.approx(both[PATHOLOGY])
    assert sum(both.values()) == pytest.approx(1)
    assert combine_readings(words, None) == words
    assert combine_readings(words | {GENOMIC: 0.0}, acts)[GENOMIC] > 0


def test_the_embedded_models_own_answer_is_not_contradicted() -> None:
    for text in (*PERFORMED.values(), PANEL):
        bundle = document(text)
        own = classify_by_embedded_model(bundle)
        assert own.dominant_type_overall is not None
        assert list(find_second_reading_issues(own, bundle, load_embedded_weights())) == []


@pytest.mark.parametrize("profile", ["full", "lean"])
def test_answers_of_others_are_read_again_in_any_profile(profile: Any) -> None:
    """The reading takes no model's question, and the embedded model's own answer has none."""
    bundle, wrong = document(PERFORMED[PATHOLOGY]), one_segment(RADIOLOGY, 1)
    for model, supplied in ((CountingModel(), wrong), (CountingModel(wrong), None), (None, wrong)):
        outcome = asyncio.run(RetryOrchestrator(model, profile=profile).evaluate(bundle, supplied))
        assert SECOND_READING_CODE in codes(outcome.issues)
        assert outcome.verdict.decision == "ESCALATE_TO_SME"
        if model is not None:
            asked = {"V2", "V3", "V4"} if profile == "full" else {"verifier"}
            assert set(model.asked) == asked | ({"classifier"} if supplied is None else set())


def test_the_embedded_model_is_not_asked_about_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def record(classification: ClassificationOutput, *_: object) -> list[Issue]:
        read.append(classification.dominant_type_overall or "")
        return []

    monkeypatch.setattr("evalkit.classification.v2_consistency.find_second_reading_issues", record)
    bundle = document(PERFORMED[PATHOLOGY])
    asyncio.run(RetryOrchestrator(None).evaluate(bundle))
    assert read == []
    asyncio.run(RetryOrchestrator(None).evaluate(bundle, one_segment(NOTE, 1)))
    assert read == [NOTE]


LINES = st.sampled_from([line for text in (*PERFORMED.values(), PANEL) for line in text.splitlines()])


@given(
    st.lists(st.lists(LINES | st.text(max_size=60), max_size=5).map("\n".join), min_size=1, max_size=3),
    st.sampled_from(TYPES),
)
def test_each_issue_quotes_the_page_that_it_names(texts: list[str], kind: str) -> None:
    for issue in find_issues(kind, *texts):
        assert texts[issue.page - 1].strip()
        assert issue.quote is None or issue.quote in texts[issue.page - 1]
        assert f"; {kind} is" not in issue.message


def test_the_shipped_limit_leaves_what_is_likely() -> None:
    weights: EmbeddedModelWeights = load_embedded_weights()
    assert 0 < weights.max_contradicted_probability <= 0.9


def test_text_that_the_answer_says_is_contained_contradicts_nothing() -> None:
    """A report with a visit's note behind it, as the answer says; not if its first page is no report."""
    composition = compose_single_type(GENOMIC)
    for place, kind in enumerate(TYPES):
        if kind == NOTE:
            composition[place] = presence(NOTE, "EMBEDDED_RAW", 0.8, 0.3)
        if kind == GENOMIC:
            composition[place] = presence(GENOMIC, "PRIMARY", 0.9, 0.7)
    value = parse_answer(answer(segment(1, 1, 3, GENOMIC, composition), overall=GENOMIC, shares={GENOMIC: 1.0}))
    report, *notes = PERFORMED[GENOMIC], PERFORMED[NOTE], PERFORMED[NOTE]
    weights = load_embedded_weights()
    assert list(find_second_reading_issues(value, document(report, *notes), weights)) == []
    assert list(find_second_reading_issues(value, document(*notes, PERFORMED[RADIOLOGY]), weights)) != []
