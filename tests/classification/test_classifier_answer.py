"""What a language model is asked to state, and what is computed from its answer."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from builders import (
    EMBEDDED_RAW,
    GENOMIC,
    MENTION_ONLY,
    NO_EVIDENCE,
    NOTE,
    OTHER,
    PATHOLOGY,
    PRIMARY,
    TYPES,
    CountingModel,
    Json,
    compose_model_answer,
    copy_with,
    doc2_6,
    doc2_6_answer,
    document,
    parse_answer,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from servers.openai import ModelServer

from evalkit.classification.classifier_answer import (
    MAX_EXTRACTED_QUOTE_WORDS,
    MAX_SECONDARY_SHARE,
    MENTION_SHARE,
    MIN_EMBEDDED_SHARE,
    build_answer_schema,
    extract_quote,
)
from evalkit.classification.findings import Findings, render_judging_guide
from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.primary_classifier import ClassifierQuestion
from evalkit.classification.schema import ClassificationOutput, DocumentType, PresenceLevel, load_judging_guide
from evalkit.classification.supplied_classification import normalise_classification
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import V2ConsistencyChecker, find_consistency_issues
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor
from evalkit.classification.verifiers import MergedFindings, MergedVerifier
from evalkit.documents.page_pictures import PageImage
from evalkit.grounding import QuoteLocator
from evalkit.issue import Issue
from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.json_schema import build_inlined_json_schema
from evalkit.llm.ledger import Ledger, MemoryJournal
from evalkit.llm.model import Question
from evalkit.llm.providers import build_provider

PAGE = "The lobe shows no mass. There is no mass in the other lobe\nFindings: a mass of 2.4 cm is seen, a mass of 3 cm too."


@pytest.mark.parametrize(
    ("paragraph", "first", "last", "expected"),
    [
        (2, "a mass of", "is seen", "a mass of 2.4 cm is seen"),
        (2, "A  MASS OF 3", "cm too", "a mass of 3 cm too"),
        (1, "a mass of", "is seen", "a mass of 2.4 cm is seen"),
        (None, "no mass", "other lobe", "no mass in the other lobe"),
        (9, "There is no mass", "no mass", "There is no mass"),
        (1, "no mass", "no mass", "no mass"),
        (2, "a mass of 2", "is seen", None),
        (1, "obe shows", "no mass", None),
        (1, "other lobe", "The lobe", None),
        (1, "", "no mass", None),
        (1, "no mass", " ", None),
    ],
)
def test_the_shortest_passage_that_begins_and_ends_so(
    paragraph: int | None, first: str, last: str, expected: str | None
) -> None:
    assert extract_quote(document(PAGE).page(1), paragraph, first, last) == expected


def test_two_words_at_both_ends_of_a_page_are_no_quote() -> None:
    page = document("Begin " + "word " * MAX_EXTRACTED_QUOTE_WORDS + "end").page(1)
    assert extract_quote(page, 1, "Begin", "end") is None
    assert extract_quote(page, 1, "word", "end") == "word end"


@given(st.data())
def test_what_was_cut_out_is_found_again(data: st.DataObject) -> None:
    words = data.draw(
        st.lists(
            st.sampled_from(["mass", "no", "cm", "2.4", "lobe", "the", "left", "right", "seen", "(3)"]),
            min_size=4,
            max_size=40,
        )
    )
    bundle = document(" ".join(words))
    start = data.draw(st.integers(0, len(words) - 2))
    end = data.draw(st.integers(start + 1, len(words)))
    found = extract_quote(
        bundle.page(1), 1, " ".join(words[start : start + 2]), " ".join(words[max(end - 2, start) : end])
    )
    if found is not None:
        assert QuoteLocator(bundle).has_quote(found, 1)
        assert found.split()[0] == words[start]


# ------------------------------------------------------------------------------------------------ what is asked


def list_fields(schema: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in schema.get("properties", {}).items():
        yield f"{place}{name}", field
        yield from list_fields(field.get("items", {}), f"{place}{name}.")


def test_the_order_of_fields_is_the_order_of_reasoning() -> None:
    assert [name for name, _ in list_fields(build_answer_schema())] == [
        "segments",
        "segments.start_page",
        "segments.end_page",
        "segments.notes",
        "segments.reasoning",
        "segments.types",
        "segments.types.evidence",
        "segments.types.evidence.page",
        "segments.types.evidence.paragraph",
        "segments.types.evidence.first_words",
        "segments.types.evidence.last_words",
        "segments.types.document_type",
        "segments.types.presence_level",
        "segments.types.confidence",
        "vendor_signals",
        "self_evaluation",
    ]


@pytest.mark.parametrize("shape", [None, Findings, MergedFindings])
def test_every_field_that_is_asked_is_described(shape: Any) -> None:
    fields = dict(list_fields(build_inlined_json_schema(shape) if shape else build_answer_schema()))
    assert [name for name, field in fields.items() if not field.get("description")] == []


def ask_all_roles(value: ClassificationOutput) -> list[Question[Any]]:
    verifiers = [V2ConsistencyChecker(), V3TrapDetector(), V4EvidenceQualityAssessor()]
    questions = [question for verifier in verifiers for question in verifier.questions(value, doc2_6())]
    return [ClassifierQuestion(doc2_6()), MergedVerifier(verifiers).build_question(value, doc2_6()), *questions]


def test_every_judging_role_reads_types_levels_and_examples() -> None:
    guide = render_judging_guide()
    assert all(guide in question.prompt() for question in ask_all_roles(parse_answer(doc2_6_answer())))
    for kind, level in itertools.zip_longest(DocumentType, PresenceLevel):
        assert f"\n{kind}: " in f"\n{guide}"
        assert level is None or f"\n{level}: " in guide


def test_every_type_and_every_trap_has_a_worked_example() -> None:
    examples = load_judging_guide()["examples"]
    judged = [[part.rpartition(" ")[::2] for part in row["judgement"].split(", ")] for row in examples]
    assert {level for row in judged for _, level in row} == set(PresenceLevel)
    assert {kind for row in judged for kind, level in row if level == PRIMARY} == set(DocumentType)
    assert all(kind in set(DocumentType) for row in judged for kind, _ in row)
    traps = [row["trap"] for row in examples if "trap" in row]
    assert traps == [
        "quoted report",
        "routine laboratory, headers that look like genes",
        "order form",
        "method text",
        "page header",
    ]


def test_verifiers_see_no_reasoning_of_the_classifier() -> None:
    value = copy_with(
        doc2_6_answer(), {"segments.0.reasoning": "the zebra spoke", "self_evaluation": "a giraffe doubts"}
    )
    for question in ask_all_roles(parse_answer(value))[1:]:
        assert "c.5266dupC" in question.prompt()
        assert "zebra" not in question.prompt()
        assert "giraffe" not in question.prompt()


def test_verifiers_see_every_vendor_that_is_claimed() -> None:
    vendors = ["Myriad Genetics", "Quest Diagnostics", "Foundation Medicine", "Guardant Health", "Acme Laboratory"]
    for question in ask_all_roles(parse_answer(copy_with(doc2_6_answer(), {"vendor_signals": vendors})))[1:]:
        assert all(vendor in question.prompt() for vendor in vendors)


# ------------------------------------------------------------------------------------------- what is computed

TEN = document("\n".join(f"paragraph {number} of the page" for number in range(1, 11)), "\n".join(["row of text"] * 10))


def place(page: int, paragraph: int | None) -> Json:
    return {"page": page, "paragraph": paragraph, "first_words": "paragraph", "last_words": "page"}


def row(kind: str, level: str, *evidence: Json, confidence: float = 0.9) -> Json:
    return {"evidence": list(evidence), "document_type": kind, "presence_level": level, "confidence": confidence}


def stated(*rows: Json, start: int = 1, end: int = 2) -> Json:
    return {"start_page": start, "end_page": end, "notes": "n", "reasoning": "r", "types": list(rows)}


def read(*segments: Json, **other: Any) -> ClassificationOutput:
    question = ClassifierQuestion(TEN)
    return question.parse_answer(
        json.dumps(question.normalise_answer(json.dumps({"segments": segments, **other})).json_value)
    )


@pytest.mark.parametrize(
    ("rows", "shares", "dominant"),
    [
        ([row(NOTE, PRIMARY)], {NOTE: 1.0}, NOTE),
        ([row(NOTE, PRIMARY), row(OTHER, MENTION_ONLY)], {NOTE: 1 - MENTION_SHARE, OTHER: MENTION_SHARE}, NOTE),
        ([row(NOTE, PRIMARY), row(PATHOLOGY, EMBEDDED_RAW, place(1, 3), place(1, 8))], {NOTE: 0.7, PATHOLOGY: 0.3}, NOTE),
        ([row(NOTE, PRIMARY), row(PATHOLOGY, EMBEDDED_RAW, place(1, 3), place(2, 2))], {NOTE: 0.55, PATHOLOGY: 0.45}, NOTE),
        ([row(NOTE, PRIMARY), row(PATHOLOGY, EMBEDDED_RAW, place(2, 1), place(2, 99))], {NOTE: 0.55, PATHOLOGY: 0.45}, NOTE),
        ([row(NOTE, PRIMARY), row(PATHOLOGY, EMBEDDED_RAW, place(1, None))], {NOTE: 0.88, PATHOLOGY: 0.12}, NOTE),
        ([row(NOTE, PRIMARY), row(PATHOLOGY, EMBEDDED_RAW, place(9, 1))], {NOTE: 0.88, PATHOLOGY: 0.12}, NOTE),
        (  # a large type presses no small one below the share at which V4 asks for a quote
            [row(NOTE, PRIMARY), row(PATHOLOGY, EMBEDDED_RAW, place(1, 1), place(2, 10)), row(GENOMIC, EMBEDDED_RAW)],
            {NOTE: 0.55, PATHOLOGY: 0.3356, GENOMIC: 0.1144}, NOTE,
        ),
        ([row(NOTE, PRIMARY), row(PATHOLOGY, PRIMARY)], {NOTE: 0.5, PATHOLOGY: 0.5}, None),
        ([row(GENOMIC, MENTION_ONLY), row(NOTE, NO_EVIDENCE)], {GENOMIC: 1.0}, None),
        ([], dict.fromkeys(TYPES, 0.2), None),
    ],
)  # fmt: skip
def test_shares_follow_from_levels_and_places(rows: list[Json], shares: dict[str, float], dominant: str | None) -> None:
    (segment,) = read(stated(*rows)).segments
    assert {one.document_type: one.segment_share for one in segment.segment_composition if one.segment_share} == shares
    assert segment.dominant_type == dominant
    assert MIN_EMBEDDED_SHARE < MAX_SECONDARY_SHARE < 0.5


def test_counts_mixture_and_overall_type_are_computed() -> None:
    answer = read(stated(row(NOTE, PRIMARY), end=1), stated(row(OTHER, PRIMARY), start=2))
    assert (answer.number_of_segments, answer.dominant_type_overall) == (2, NOTE)
    assert [(one.segment_index, one.segment_page_count) for one in answer.segments] == [(1, 1), (2, 1)]
    assert {one.document_type: one.overall_share for one in answer.document_mixture if one.overall_share} == {
        NOTE: 0.5,
        OTHER: 0.5,
    }
    assert not V1SchemaValidator().validate(answer, TEN)[2:]  # the two PRIMARY types without quotes


def test_a_right_answer_becomes_the_public_shape_of_it() -> None:
    bundle, right = doc2_6(), parse_answer(doc2_6_answer())
    question = ClassifierQuestion(bundle)
    read_answer = question.parse_answer(json.dumps(compose_model_answer(right, bundle)))
    assert read_answer.typed_page_ranges == right.typed_page_ranges
    assert read_answer.dominant_type_overall == right.dominant_type_overall
    for segment, right_segment in zip(read_answer.segments, right.segments, strict=True):
        levels = {one.document_type: one.presence_level for one in right_segment.segment_composition}
        assert {one.document_type: one.presence_level for one in segment.segment_composition} == levels


@pytest.mark.parametrize("extra", [{}, {"dominant_type": NOTE}])
def test_two_primary_types_are_a_persons_case(extra: Json) -> None:
    answer = read(stated(row(NOTE, PRIMARY), row(PATHOLOGY, PRIMARY)) | extra)
    assert "V2-CANNOT-TELL" in {issue.code for issue in find_consistency_issues(answer, 2)}


# ------------------------------------------------------------------------------- no contradiction is computed away

numbers = st.sampled_from([-1, 0, 1, 2, 3, 9])
fractions = st.sampled_from([-0.1, 0.0, 0.05, 0.3, 0.9, 1.0, 1.2])
levels = st.sampled_from([PRIMARY, EMBEDDED_RAW, MENTION_ONLY, NO_EVIDENCE])
kinds = st.sampled_from(TYPES)
places = st.builds(place, numbers, st.one_of(st.none(), numbers))
rows = st.builds(
    lambda kind, level, confidence, evidence: row(kind, level, *evidence, confidence=confidence),
    kinds, levels, fractions, st.lists(places, max_size=2),
)  # fmt: skip
segments = st.builds(
    lambda rows, start, end: stated(*rows, start=start, end=end), st.lists(rows, max_size=4), numbers, numbers
)


def to_literal(segment: Json, index: int) -> Json:
    """The public shape of a stated segment, as literally as possible: the first PRIMARY type is its type."""
    said = [one["document_type"] for one in segment["types"]]
    entries = [*segment["types"], *(row(kind, NO_EVIDENCE, confidence=0.0) for kind in TYPES if kind not in said)]
    weights = [
        {PRIMARY: 90, EMBEDDED_RAW: 8, MENTION_ONLY: 2, NO_EVIDENCE: 0}[one["presence_level"]] for one in entries
    ]
    total = sum(weights) or len(entries)
    primary = [one["document_type"] for one in entries if one["presence_level"] == PRIMARY]
    return {
        "segment_index": index,
        "start_page": segment["start_page"],
        "end_page": segment["end_page"],
        "segment_page_count": segment["end_page"] - segment["start_page"] + 1,
        "dominant_type": primary[0] if primary else None,
        "segment_composition": [
            {
                "document_type": one["document_type"],
                "presence_level": one["presence_level"],
                "confidence": one["confidence"],
                "segment_share": (weight if sum(weights) else 1) / total,
                "top_evidence": [
                    {
                        "page": quote["page"],
                        "snippet": (
                            extract_quote(TEN.page(quote["page"]), quote["paragraph"], "paragraph", "page")
                            if 1 <= quote["page"] <= TEN.total_pages
                            else None
                        )
                        or "paragraph … page",
                    }
                    for quote in one["evidence"]
                ],
            }
            for one, weight in zip(entries, weights, strict=True)
        ],
    }  # fmt: skip


def list_grave_issues(answer: ClassificationOutput) -> set[tuple[str, int | None, str | None]]:
    issues: list[Issue] = [
        *V1SchemaValidator().validate(answer, TEN),
        *find_consistency_issues(answer, TEN.total_pages),
        *V4EvidenceQualityAssessor().validate(answer, TEN).issues,
    ]
    # The literal reading has no mixture, whose issues would be of its own making.
    return {
        (issue.code, issue.segment_index, issue.document_type)
        for issue in issues
        if issue.severity != "MINOR" and (issue.segment_index is not None or issue.code.startswith("V2-PAGE"))
    }


@settings(max_examples=300)
@given(st.lists(segments, min_size=1, max_size=3))
@example(
    [stated(row(NOTE, PRIMARY), row(NOTE, PRIMARY)), stated(row(OTHER, PRIMARY, place(9, 1), confidence=1.2), end=9)]
)
@example([stated(row(NOTE, PRIMARY, confidence=0.1), row(OTHER, PRIMARY))])
def test_what_the_literal_reading_raises_is_raised(said: list[Json]) -> None:
    literal = ClassificationOutput.model_validate(
        {
            "dominant_type_overall": None,
            "number_of_segments": len(said),
            "segments": [to_literal(segment, index) for index, segment in enumerate(said, 1)],
            "document_mixture": [],
        }
    )
    raised = list_grave_issues(read(*said))
    untold = {index for code, index, _ in raised if code == "V2-CANNOT-TELL"}
    # Issues about a segment's type give way to "cannot tell", which no repair and no model can take back.
    missing = {
        one for one in list_grave_issues(literal) - raised if not (one[0].startswith("V2-") and one[1] in untold)
    }
    assert missing == set()


public_rows = st.fixed_dictionaries(
    {"document_type": kinds, "presence_level": levels, "confidence": fractions, "segment_share": fractions},
    optional={
        "top_evidence": st.lists(
            st.fixed_dictionaries({"snippet": st.sampled_from(["paragraph 1", "zebra"]), "page": numbers}), max_size=1
        )
    },
)
public_segments = st.fixed_dictionaries(
    {
        "segment_index": numbers, "start_page": numbers, "end_page": numbers, "segment_page_count": numbers,
        "dominant_type": st.one_of(st.none(), kinds), "segment_composition": st.lists(public_rows, min_size=1, max_size=6),
    }
)  # fmt: skip
public_answers = st.fixed_dictionaries(
    {
        "dominant_type_overall": st.one_of(st.none(), kinds),
        "number_of_segments": numbers,
        "segments": st.lists(public_segments, max_size=3),
        "document_mixture": st.lists(
            st.fixed_dictionaries(
                {"document_type": kinds, "presence_level": levels, "confidence": fractions, "overall_share": fractions}
            ),
            max_size=6,
        ),
        "vendor_signals": st.lists(st.sampled_from(["Quest", "Acme"]), max_size=2),
    }
)  # fmt: skip


@settings(max_examples=200)
@given(public_answers)
def test_stated_counts_and_shares_stay_for_the_verifiers(value: Json) -> None:
    """A model that states more than it is asked is read like another system: its errors are V1's and V2's to find."""
    supplied = ClassificationOutput.model_validate(normalise_classification(value).json_value)
    assert read(*value["segments"], **{name: part for name, part in value.items() if name != "segments"}) == supplied


@settings(max_examples=25, deadline=None)
@given(st.lists(segments, min_size=1, max_size=2))
def test_a_models_answer_is_judged_like_a_supplied_one(said: list[Json]) -> None:
    answer = read(*said)
    by_model = asyncio.run(RetryOrchestrator(CountingModel(answer.to_json())).evaluate(TEN))
    supplied = asyncio.run(RetryOrchestrator(CountingModel(answer.to_json())).evaluate(TEN, answer.to_json()))
    assert [issue.code for issue in by_model.issues] == [issue.code for issue in supplied.issues]
    assert by_model.verdict == supplied.verdict


@pytest.mark.parametrize(
    ("fields", "snippet", "is_seen"),
    [
        ({"words_in_picture": "RECEIVED MAR 05"}, "RECEIVED MAR 05", True),
        ({"words_in_picture": "no mass", "first_words": "no mass", "last_words": "other lobe"}, "no mass in the other lobe", False),
        ({"words_in_picture": "a stamp", "first_words": "not there", "last_words": "nor there"}, "a stamp", True),
        ({"words_in_picture": "a stamp", "page": 7}, "a stamp", True),
        ({"words_in_picture": "a stamp", "snippet": "written out"}, "written out", False),
        ({"first_words": "not there", "last_words": "nor there", "seen_in_picture": True}, "not there … nor there", False),
    ],
)  # fmt: skip
def test_only_words_of_a_picture_count_as_seen(fields: Json, snippet: str, is_seen: bool) -> None:
    quote = {"page": 1, "anchors_found": []} | fields
    answer_json = {"segments": [stated(row(NOTE, PRIMARY, quote), end=1)]}
    parsed = ClassifierQuestion(document(PAGE)).parse_answer(json.dumps(answer_json))
    (found,) = parsed.segments[0].segment_composition[0].top_evidence
    assert (found.snippet, found.seen_in_picture) == (snippet, is_seen)
    assert ("seen_in_picture" in found.model_dump()) is is_seen


def test_words_of_a_picture_are_asked_for_with_pictures_only() -> None:
    image = PageImage(2, b"png", ("image",))
    bundle = document("one", "two", "three")
    blind, seeing = ClassifierQuestion(bundle), ClassifierQuestion(bundle, (2, 3), [PageImage(1, b"other"), image])
    assert (blind.images, seeing.images, seeing.pictured_pages) == ((), (b"png",), (2,))
    assert "PICTURES" not in blind.prompt()
    assert "show page 2, in this order" in seeing.prompt()
    assert "words_in_picture" not in json.dumps(blind.get_answer_schema())
    assert "words_in_picture" in json.dumps(seeing.get_answer_schema())
    assert "seen_in_picture" not in json.dumps(seeing.get_answer_schema())


# How sure a model was of its words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("probability", "confidence"), [(None, 0.9), (0.97, 0.9), (0.31, 0.31), (0.0, 0.0)])
def test_a_type_is_no_surer_than_the_words_that_name_it(probability: float | None, confidence: float) -> None:
    stated = {"document_type": NOTE, "presence_level": PRIMARY, "confidence": 0.9, "evidence": []}
    measured = {} if probability is None else {"document_type_probability": probability}
    answer = {"segments": [{"start_page": 1, "end_page": 1, "types": [stated | measured]}]}
    question = ClassifierQuestion(document(PAGE))
    read = question.parse_answer(json.dumps(question.normalise_answer(json.dumps(answer)).json_value))
    assert read.segments[0].segment_composition[0].confidence == confidence
    assert "document_type_probability" not in json.dumps(question.get_answer_schema())


def test_probabilities_of_a_server_reach_the_certainty() -> None:
    bundle = doc2_6()
    answer = json.dumps(compose_model_answer(parse_answer(doc2_6_answer()), bundle))
    with ModelServer(lambda _: answer) as server:

        async def classify(name: str) -> ClassificationOutput | None:
            provider = build_provider(name, environment={}, base_url=f"{server.url}/v1")
            model = LanguageModel(provider, Ledger(MemoryJournal()), AimdLimiter(4))
            try:
                return (await model.ask(ClassifierQuestion(bundle))).value
            finally:
                await model.close()

        measured, unmeasured = (asyncio.run(classify(name)) for name in ("vllm:m", "ollama:llama3.2"))
    assert measured
    assert unmeasured
    for sure, stated in zip(measured.segments, unmeasured.segments, strict=True):
        for row, other in zip(sure.segment_composition, stated.segment_composition, strict=True):
            of_words = round(0.99 ** len(row.document_type.value), 4)  # the server's tokens are letters
            assert row.confidence == min(other.confidence, of_words)
    assert measured != unmeasured
