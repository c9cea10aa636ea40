"""Quotes that a model read only in a page's picture: never softer for what is printed, and always a person's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from builders import (
    DOC2_6,
    GENOMIC,
    NOTE,
    Json,
    codes,
    doc2_6,
    document,
    evidence,
    one_segment,
    page,
    parse_answer,
)
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.primary_classifier import ClassifierQuestion
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor
from evalkit.documents.bundle import DocumentBundle, PageStatus
from evalkit.documents.page_pictures import PageImage
from evalkit.grounding import QuoteLocator
from evalkit.issue import Issue, QuoteVerdict
from evalkit.llm.model import Answer, Question

INVENTED = "RELEASED TO THE CLINIC MAR 05"
PRINTED = "BRCA1 c.5266dupC was detected"


def seen(snippet: str, page_number: int, *anchors: str) -> Json:
    return evidence(snippet, page_number, *anchors) | {"seen_in_picture": True}


def assess(quote: Json, *pictured_pages: int, bundle: DocumentBundle | None = None) -> list[Issue]:
    answer = parse_answer(one_segment(GENOMIC, 8, quote))
    return V4EvidenceQualityAssessor(pictured_pages).validate(answer, bundle or doc2_6()).issues


WORDS = st.sampled_from([*" ".join(DOC2_6).split(), "not", "RELEASED", "negative", "…", "2025", "BRCA2", "—"])
QUOTES = st.one_of(
    st.lists(WORDS, max_size=12).map(" ".join),
    st.builds(lambda start, count: " ".join(" ".join(DOC2_6).split()[start : start + count]), st.integers(0, 200), st.integers(1, 12)),
    st.text(max_size=40),
)  # fmt: skip


@given(QUOTES, st.integers(0, 9), st.sets(st.integers(1, 8)))
def test_seen_is_never_softer_for_what_is_printed(snippet: str, number: int, pictured: set[int]) -> None:
    plain = assess(evidence(snippet, number))
    claimed = assess(seen(snippet, number), *pictured)
    is_absent = "V4-QUOTE-ABSENT" in codes(plain)
    if number not in pictured or not is_absent or not any(map(str.isalnum, snippet)):
        assert claimed == plain
    else:
        assert codes(claimed)[0] == "V4-QUOTE-UNCERTAIN"
        assert {issue.severity for issue in claimed} & {"BLOCKER", "MAJOR"}


def test_a_seen_quote_without_text_is_uncertain() -> None:
    (issue,) = assess(seen(INVENTED, 2, "RELEASED"), 2)
    assert (issue.code, issue.severity, issue.verdict) == ("V4-QUOTE-UNCERTAIN", "MAJOR", "UNCERTAIN")
    assert (issue.auto_fixable, issue.found_page, issue.boxes, issue.facts) == (False, None, (), {"read": "picture"})
    assert issue.message.endswith("was read in the picture of page 2; the page's text does not have it")


@pytest.mark.parametrize(
    ("quote", "pictured", "expected"),
    [
        (seen(INVENTED, 2), (), "V4-QUOTE-ABSENT"),
        (seen(INVENTED, 2), (3,), "V4-QUOTE-ABSENT"),
        (evidence(INVENTED, 2), (2,), "V4-QUOTE-ABSENT"),
        (seen("BRCA1 c.5266dupC was not detected", 2), (2,), "V4-QUOTE-ALTERED"),
        (seen("BRCA2 c.5266dupC was detected", 2), (2,), "V4-QUOTE-ALTERED"),
        (seen(PRINTED, 3), (3,), "V4-QUOTE-WRONG-PAGE"),
        (seen("… — …", 2), (2,), "V4-QUOTE-ABSENT"),
    ],
)
def test_what_a_picture_does_not_excuse(quote: Json, pictured: tuple[int, ...], expected: str) -> None:
    assert codes(assess(quote, *pictured))[0] == expected


@pytest.mark.parametrize(
    ("text", "quote", "pictured", "expected"),
    [
        ("vi All records of the treatment", "[x] All records of the treatment", {1}, ("UNCERTAIN", True)),
        ("[J All records of the treatment", "☒ All records of the treatment", {1}, ("UNCERTAIN", True)),
        ("All records of the treatment", "[x] All records of the treatment", {1}, ("UNCERTAIN", True)),
        ("vi All records of the treatment", "[x] All records of the treatment", set(), ("ALTERED", False)),
        ("[ ] All records of the treatment", "[x] All records of the treatment", {1}, ("ALTERED", False)),
        ("☐ All records of the treatment", "☒ All records of the treatment", {1}, ("UNCERTAIN", False)),
        ("☒ All records of the treatment", "☒ All records of the treatment", {1}, ("NOISY", False)),
        ("vi All records of the treatment", "[x] No records of the treatment", {1}, ("ALTERED", False)),
    ],
)
def test_a_tick_is_seen_only_where_no_box_is_printed(
    text: str, quote: str, pictured: set[int], expected: tuple[str, bool]
) -> None:
    location = QuoteLocator(document(f"Records to be released:\n{text}")).locate_seen(quote, 1, pictured)
    assert (location.verdict, location.is_seen_only) == expected


def test_recognised_text_that_agrees_makes_a_seen_quote_noisy() -> None:
    locator = QuoteLocator(doc2_6())
    assert locator.locate(PRINTED, 2).verdict is QuoteVerdict.VERBATIM
    location = locator.locate_seen(PRINTED, 2, {2})
    assert (location.verdict, location.page_number, location.is_seen_only) == (QuoteVerdict.NOISY, 2, False)
    assert assess(seen(PRINTED, 2), 2) == []


def test_a_seen_quote_on_a_page_without_text_names_the_picture() -> None:
    scan = document("Progress note of today", page(2, "", "image"))
    (told,) = [issue for issue in assess(seen(INVENTED, 2), 2, bundle=scan) if issue.quote]
    (untold,) = [issue for issue in assess(evidence(INVENTED, 2), 2, bundle=scan) if issue.quote]
    assert (told.code, told.facts) == ("V4-QUOTE-UNCERTAIN", {"read": "picture"})
    assert (untold.code, untold.facts) == ("V4-QUOTE-UNCERTAIN", {})


# --------------------------------------------------------------------------------------------- a whole document


class SeeingModel:
    """Says what it is told to, finds nothing as a verifier, and keeps the questions."""

    name = "seeing"

    def __init__(self, answer: Json) -> None:
        self.answer, self.questions = answer, list[Question[Any]]()

    async def ask(self, question: Question[Any]) -> Answer[Any]:
        self.questions.append(question)
        is_classifier = isinstance(question, ClassifierQuestion)
        return Answer(question, parse_answer(self.answer) if is_classifier else question.offline())

    @property
    def pictures_by_role(self) -> dict[str, list[int]]:
        for question in self.questions:
            assert len(question.images) == len(question.pictured_pages)  # type: ignore[attr-defined]
        return {question.role: list(question.pictured_pages) for question in self.questions}  # type: ignore[attr-defined]


def scanned_form() -> DocumentBundle:
    """A note, a form with tick boxes, a page that could not be read, a table that was."""
    bundle = document(
        "Progress note. Chief complaint: breast lump noticed two weeks ago. The patient was examined today.",
        "Release of records",
        page(3, "", "image"),
        "WBC 5.2 HGB 13.1",
    )
    pages = (
        page if page.status is PageStatus.IMAGE else page.model_copy(update={"status": PageStatus.OCR, "quality": 0.9})
        for page in bundle.pages
    )
    return bundle.model_copy(update={"pages": tuple(pages)})


IMAGES = (PageImage(2, b"two", ("tick_boxes",)), PageImage(3, b"three", ("image",)), PageImage(4, b"four", ("table",)))
ALL_ROLES = frozenset({"classifier", "v2", "v4", "verifier"})
COMPLAINT = evidence("Chief complaint: breast lump noticed two weeks ago", 1)


def judge(quote: Json, seeing_roles: frozenset[str] = ALL_ROLES, **options: Any) -> tuple[ClassificationOutcome, SeeingModel]:  # fmt: skip
    claimed = one_segment(NOTE, 4, COMPLAINT, quote)
    model = SeeingModel(claimed)
    supplied = claimed if options.pop("is_supplied", False) else None
    orchestrator = RetryOrchestrator(model, seeing_roles=seeing_roles, **options)
    return asyncio.run(orchestrator.evaluate(scanned_form(), supplied, page_images=IMAGES)), model


def find_quote_issue(outcome: ClassificationOutcome) -> tuple[str, str]:
    (issue,) = [issue for issue in outcome.issues if issue.quote == INVENTED]
    return issue.code, issue.severity


def test_a_seen_quote_goes_to_a_person() -> None:
    outcome, model = judge(seen(INVENTED, 2))
    assert find_quote_issue(outcome) == ("V4-QUOTE-UNCERTAIN", "MAJOR")
    assert outcome.verdict.decision == "ESCALATE_TO_SME"
    assert model.pictures_by_role == {"classifier": [2, 3, 4], "V2": [2, 3], "V3": [], "V4": [2, 3]}
    for question in model.questions:
        assert ("PICTURES" in question.prompt()) is bool(question.images)


@pytest.mark.parametrize(
    ("quote", "options"),
    [
        (seen(INVENTED, 1), {}),  # a page of good text
        (seen(INVENTED, 4), {}),  # its picture is shown for a table
        (evidence(INVENTED, 2), {}),
        (seen(INVENTED, 2), {"is_supplied": True}),
        (seen(INVENTED, 2), {"seeing_roles": frozenset({"v2", "v4"})}),
        (seen(INVENTED, 2), {"seeing_roles": frozenset()}),
    ],
)
def test_a_made_up_quote_stays_fabricated(quote: Json, options: dict[str, Any]) -> None:
    outcome, _ = judge(quote, **options)
    assert find_quote_issue(outcome) == ("V4-QUOTE-ABSENT", "BLOCKER")


@pytest.mark.parametrize(
    ("seeing_roles", "profile", "expected"),
    [
        (frozenset(), "full", {"classifier": [], "V2": [], "V3": [], "V4": []}),
        (frozenset({"v4"}), "full", {"classifier": [], "V2": [], "V3": [], "V4": [3]}),
        (ALL_ROLES, "lean", {"classifier": [2, 3, 4], "verifier": [3]}),
    ],
)
def test_only_models_that_see_are_shown_pages(
    seeing_roles: frozenset[str], profile: str, expected: dict[str, list[int]]
) -> None:
    _, model = judge(evidence("breast lump noticed two weeks ago", 1), seeing_roles, profile=profile)
    assert model.pictures_by_role == expected


def test_each_window_has_the_pictures_of_its_pages() -> None:
    _, model = judge(evidence("breast lump noticed two weeks ago", 1), window_characters=20)
    asked = [list(question.pictured_pages) for question in model.questions if question.role == "classifier"]
    assert asked == [[], [2, 3], [3, 4]]
