"""One lossless step before shape: harmless spellings of an answer are read and listed, what needs a guess is refused."""

from __future__ import annotations

import asyncio
import copy
import html
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from builders import NOTE, PATHOLOGY, Json, codes, copy_with, doc2_6, doc2_6_answer, finding, parse_answer
from hypothesis import given
from hypothesis import strategies as st
from llm.answer_shapes import LOSSLESS as LOSSLESS_SHAPES
from llm.answer_shapes import NAMED as NAMED_SHAPES
from llm.answer_shapes import make_answer
from pydantic import BaseModel, Field, ValidationError
from servers.gemini import GeminiServer
from servers.openai import ModelServer

from evalkit.classification.findings import Findings
from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.own_verifiers import _OwnQuestion
from evalkit.classification.primary_classifier import ClassifierQuestion
from evalkit.classification.supplied_classification import normalise_classification
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor
from evalkit.classification.verifiers import MergedFindings, MergedVerifier
from evalkit.extraction.clinical.clinical_extractor import ClaimedFields, ClinicalQuestion
from evalkit.extraction.evaluator import AccuracyQuestion
from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.forms.form_extractor import FormPart, FormQuestion
from evalkit.extraction.grader import GraderAnswer, GraderQuestion
from evalkit.llm.answer_normalisation import AnswerShapeError, build_full_json_schema, normalise_answer
from evalkit.llm.answer_text import AnswerTextError, NormalisedAnswer, dump_for_comparison
from evalkit.llm.client import LanguageModel
from evalkit.llm.concurrency_limiter import AimdLimiter
from evalkit.llm.json_schema import build_inlined_json_schema
from evalkit.llm.ledger import Ledger
from evalkit.llm.model import Answer, Provider, Question
from evalkit.llm.providers import build_provider
from evalkit.llm.providers.gemini import GeminiProvider
from evalkit.statements.template_questions import ArbitratorQuestion, BuilderQuestion, ReviewerAnswer, ReviewerQuestion

Spelling = Callable[[], Any]
ANSWER = doc2_6_answer()
TEXT = json.dumps(ANSWER)
PRIMARY_ROW = "segments.0.segment_composition.0"
QUOTE = f"{PRIMARY_ROW}.top_evidence.0"


def change(changes: dict[str, Any]) -> Spelling:
    """The answer with other values at these places."""
    return lambda: copy_with(ANSWER, changes)


def respell_keys(spell: Callable[[str], str]) -> Json:
    """The answer with every key written otherwise."""

    def respell(value: Any) -> Any:
        if isinstance(value, dict):
            return {spell(key): respell(member) for key, member in value.items()}
        return [respell(member) for member in value] if isinstance(value, list) else value

    respelled: Json = respell(ANSWER)
    return respelled


def rename(value: Any, old: str, new: str) -> Any:
    """The value with one key called otherwise, wherever it is."""
    if isinstance(value, dict):
        return {(new if key == old else key): rename(member, old, new) for key, member in value.items()}
    return [rename(member, old, new) for member in value] if isinstance(value, list) else value


def respell_words(spell: Callable[[str], str]) -> Json:
    """The answer with every type and presence level written otherwise."""

    def respell(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: respell(member, name) for name, member in value.items()}
        if isinstance(value, list):
            return [respell(member) for member in value]
        return spell(value) if key.startswith(("dominant_type", "document_type", "presence")) else value

    respelled: Json = respell(ANSWER)
    return respelled


def respell_numbers(spell: Callable[[float], Any], *names: str) -> Json:
    """The answer with the numbers of these names written otherwise."""

    def respell(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: respell(member, name) for name, member in value.items()}
        if isinstance(value, list):
            return [respell(member) for member in value]
        return spell(value) if key in names else value

    respelled: Json = respell(ANSWER)
    return respelled


SHARES = ("confidence", "segment_share", "overall_share")
COUNTS = ("number_of_segments", "segment_index", "start_page", "end_page", "segment_page_count", "page")


def write_per_cent(number: float) -> str:
    return f"{round(number * 100, 4):g}%"


def without(*places: str) -> Json:
    """The answer without these fields."""
    shortened = copy.deepcopy(ANSWER)
    for place in places:
        *way, last = place.split(".")
        holder: Any = shortened
        for step in way:
            holder = holder[int(step) if step.isdigit() else step]
        del holder[last]
    return shortened


def key_rows_by_type(answer: Json) -> Json:
    """The answer with objects by type instead of lists of rows."""
    keyed = copy.deepcopy(answer)
    for holder, name in [*((part, "segment_composition") for part in keyed["segments"]), (keyed, "document_mixture")]:
        holder[name] = {row.pop("document_type"): row for row in holder[name]}
    return keyed


def replace_page_numbers(write: Callable[[int, int], Any], key: str = "pages") -> Json:
    """The answer with one range of pages instead of first and last page."""
    ranged = copy.deepcopy(ANSWER)
    for part in ranged["segments"]:
        part[key] = write(part.pop("start_page"), part.pop("end_page"))
    return ranged


LOSSLESS: dict[str, Spelling] = {
    "as it is": lambda: ANSWER,
    "as text": lambda: TEXT,
    "indented": lambda: json.dumps(ANSWER, indent=4),
    "byte order mark": lambda: "\ufeff" + TEXT,
    "fence": lambda: f"```json\n{TEXT}\n```",
    "fence of tildes": lambda: f"~~~\n{TEXT}\n~~~",
    "fence that is never closed": lambda: f"```\n{TEXT}",
    "prose around": lambda: f"Here is what the pages hold [1]:\n\n{TEXT}\n\nLet me know, it's done (see {{above}}).",
    "marks around": lambda: f"<answer>{TEXT}</answer>",
    "thoughts before": lambda: f'<think>Perhaps {{"segments": []}}?</think>\n{TEXT}',
    "assignment": lambda: f"const result = {TEXT};",
    "quoted in a mail": lambda: "\n".join(f"> {line}" for line in json.dumps(ANSWER, indent=1).splitlines()),
    "twice the same": lambda: f"{TEXT}\n\nOnce more:\n{json.dumps(ANSWER, sort_keys=True)}",
    "trailing commas": lambda: re.sub(r"\n(\s*[\]}])", r",\n\1", re.sub(r"\[\]", "[ ]", json.dumps(ANSWER, indent=1))),
    "comments": lambda: json.dumps(ANSWER, indent=1).replace("{\n", "{ // {\n", 1) + " # end",
    "Python's words and quotes": lambda: repr(ANSWER),
    "keys without quotes": lambda: re.sub(r'"(\w+)":', r"\1:", TEXT),
    "curly quotes": lambda: re.sub(r'"([^"]*)"', r"“\1”", TEXT),
    "entities": lambda: html.escape(TEXT),
    "line break inside of a string": lambda: json.dumps(
        copy_with(ANSWER, {"segments.0.reasoning": "two\nlines"})
    ).replace("\\n", "\n"),
    "escaped underscores": lambda: TEXT.replace("_", "\\_"),
    "numbers as JavaScript allows": lambda: TEXT.replace("0.92", ".92").replace(": 5,", ": +5,").replace("0.9,", "9.e-1,"),
    "bare per cent": lambda: TEXT.replace("0.92", "92%"),
    "text in JSON": lambda: json.dumps(TEXT),
    "text in JSON, twice": lambda: json.dumps(json.dumps(TEXT)),
    "a part as text in JSON": change({"segments": json.dumps(ANSWER["segments"])}),
    "a key twice": lambda: TEXT.replace('"number_of_segments": 2', '"number_of_segments": 2, "number_of_segments": 2'),
    "wrapper": lambda: {"classification": ANSWER},
    "wrapper with other keys": lambda: {"doc_id": "doc2_6", "classification": ANSWER, "model": {"name": "m"}},
    "wrapper in a wrapper": lambda: {"status": "ok", "output": {"classification": ANSWER}},
    "list of one answer": lambda: [ANSWER],
    "tool call": lambda: {"name": "classify", "arguments": TEXT},
    "chat completion": lambda: {"choices": [{"index": 0, "message": {"content": f"```json\n{TEXT}\n```"}}]},
    "lower case words": lambda: respell_words(str.lower),
    "upper case words": lambda: respell_words(str.upper),
    "words with underscores": lambda: respell_words(lambda word: word.replace(" ", "_").upper()),
    "words with hyphens": lambda: respell_words(lambda word: re.sub("[ _]", "-", word)),
    "words without spaces": lambda: respell_words(lambda word: re.sub("[ _]", "", word)),
    "words with spaces": lambda: respell_words(lambda word: f"  {word.replace(' ', '  ').replace('_', ' ')}\n"),
    "names of a class": lambda: respell_words(
        lambda word: f"{'PresenceLevel' if word.isupper() else 'DocumentType'}.{word.replace(' ', '_').upper()}"
    ),
    "camel case keys": lambda: respell_keys(lambda key: re.sub("_(.)", lambda letter: letter[1].upper(), key)),
    "keys in words": lambda: respell_keys(lambda key: key.replace("_", " ").title()),
    "keys with hyphens": lambda: respell_keys(lambda key: key.replace("_", "-")),
    "page_number": lambda: rename(ANSWER, "page", "page_number"),
    "text for snippet": lambda: rename(ANSWER, "snippet", "text"),
    "quote for snippet, share for shares": lambda: rename(rename(ANSWER, "snippet", "quote"), "segment_share", "share"),
    "both names with the same value": change({f"{QUOTE}.page_number": 2}),
    "numbers as text": lambda: respell_numbers(str, *SHARES, *COUNTS),
    "per cent as text": lambda: respell_numbers(write_per_cent, *SHARES),
    "per cent with a space": lambda: respell_numbers(lambda number: f" {round(number * 100, 4)} % ", *SHARES),
    "decimal comma": lambda: respell_numbers(lambda number: str(float(number)).replace(".", ","), "confidence"),
    "counts with a decimal point": lambda: respell_numbers(float, *COUNTS),
    "counts as text with a decimal point": lambda: respell_numbers(lambda number: f"{number}.0", *COUNTS),
    "page 2": lambda: respell_numbers(lambda number: f"Page {number}", "page", "start_page", "end_page"),
    "p. 2": lambda: respell_numbers(lambda number: f"p. {number}", "page"),
    "null for every list that is empty": lambda: json.loads(TEXT.replace("[]", "null")),
    "an object for every list that is empty": lambda: json.loads(TEXT.replace("[]", "{}")),
    "null reasoning": change({"segments.0.reasoning": None}),
    "text for a list of one": change({"vendor_signals": "Myriad Genetics", f"{QUOTE}.anchors_found": "c.5266dupC"}),
    "an object for a list of one": lambda: copy_with(
        ANSWER, {f"{PRIMARY_ROW}.top_evidence": ANSWER["segments"][0]["segment_composition"][0]["top_evidence"][0]}
    ),
    "a list of one for a word": change({"dominant_type_overall": ["Genomic Report"], f"{PRIMARY_ROW}.confidence": [0.92]}),
    "rows by type": lambda: key_rows_by_type(ANSWER),
    "segments by number": lambda: ANSWER | {
        "segments": {"segment_2": ANSWER["segments"][1], "segment_1": ANSWER["segments"][0]}
    },
    "pages as a range": lambda: replace_page_numbers(lambda first, last: f"pp. {first}–{last}"),
    "pages as a list": lambda: replace_page_numbers(lambda first, last: list(range(first, last + 1))),
    "a range as a pair": lambda: replace_page_numbers(lambda first, last: [first, last], "page_range"),
    "a range as an object": lambda: replace_page_numbers(lambda first, last: {"start": first, "end": str(last)}),
    "segments by place": lambda: ANSWER | {"segments": {"1": ANSWER["segments"][1], "0": ANSWER["segments"][0]}},
    "no numbers of segments": lambda: without("segments.0.segment_index", "segments.1.segment_index"),
    "extra keys": change({"model": "m", "segments.0.note": "long", f"{QUOTE}.offset": 3}),
    "all at once": lambda: "Sure!\n```json\n" + json.dumps(
        {"classification": rename(respell_numbers(write_per_cent, *SHARES), "page", "pageNumber")}
    ) + "\n```",
}  # fmt: skip
#: Of these spellings the reasoning is another one.
OTHER_REASONING = {"line break inside of a string": "two\nlines"}

LOSSY: dict[str, Spelling] = {
    "nothing": lambda: "",
    "prose": lambda: "The record holds a genomic report and a note.",
    "two answers": lambda: f"{TEXT}\n{json.dumps(copy_with(ANSWER, {'dominant_type_overall': NOTE}))}",
    "two answers in a list": lambda: [ANSWER, copy_with(ANSWER, {"dominant_type_overall": NOTE})],
    "two wrapped answers": lambda: {"first": ANSWER, "second": copy_with(ANSWER, {"dominant_type_overall": NOTE})},
    "an answer inside of another": lambda: {"dominant_type_overall": NOTE, "classification": ANSWER},
    "cut off": lambda: TEXT[: len(TEXT) // 2],
    "cut off before the last bracket": lambda: f"```json\n{TEXT[:-1]}\n```",
    "without its beginning": lambda: TEXT[len(TEXT) // 3 :],
    "only its segments": lambda: json.dumps(ANSWER["segments"]),
    "a key twice, otherwise": lambda: TEXT.replace('"number_of_segments": 2', '"number_of_segments": 2, "number_of_segments": 1'),
    "1 and true": lambda: TEXT.replace('"start_page": 1', '"start_page": 1, "start_page": true'),
    "two names with other values": change({f"{QUOTE}.page_number": 3}),
    "two texts of a quote": change({f"{QUOTE}.text": "something else"}),
    "pages that contradict the range": change({"segments.0.pages": "1-4"}),
    "pages that are no range": lambda: rename(without("segments.0.start_page", "segments.0.end_page"), "reasoning", "pages"),
    "pages with a gap": lambda: replace_page_numbers(lambda first, last: [first, last]),
    "a number that may be a count": lambda: replace_page_numbers(lambda first, last: last - first + 1),
    "a row by type that says another type": lambda: ANSWER | {
        "document_mixture": {row["document_type"]: row | {"document_type": PATHOLOGY} for row in ANSWER["document_mixture"]}
    },
    "no such type": change({"dominant_type_overall": "Dermatology Report"}),
    "a part of a type": change({"dominant_type_overall": "Report"}),
    "a doubted type": change({"dominant_type_overall": "Genomic Report?"}),
    "no such level": change({f"{PRIMARY_ROW}.presence_level": "PARTIAL"}),
    "a level as truth value": change({f"{PRIMARY_ROW}.presence_level": True}),
    "high": change({f"{PRIMARY_ROW}.confidence": "high"}),
    "920 %": change({f"{PRIMARY_ROW}.confidence": "920 %"}),
    "-5 %": change({f"{PRIMARY_ROW}.segment_share": "-5%"}),
    "about": change({f"{PRIMARY_ROW}.confidence": "~0.9"}),
    "from to": change({f"{PRIMARY_ROW}.confidence": "0.8-0.9"}),
    "a comma that may part thousands": change({f"{PRIMARY_ROW}.confidence": "1,000"}),
    "no confidence": lambda: without(f"{PRIMARY_ROW}.confidence"),
    "no share": lambda: without(f"{PRIMARY_ROW}.segment_share"),
    "null for a share": change({f"{PRIMARY_ROW}.segment_share": None}),
    "one of two pages": change({f"{QUOTE}.page": "1 or 2"}),
    "half a page": change({f"{QUOTE}.page": 1.5}),
    "a page in words": change({f"{QUOTE}.page": "two-ish"}),
    "a page as truth value": change({f"{QUOTE}.page": True}),
    "a page of sixteen digits": change({f"{QUOTE}.page": "9" * 16}),
    "a page beyond what a float counts": change({f"{QUOTE}.page": 1e300}),
    "a text that may be two vendors": change({"vendor_signals": "Myriad Genetics, Ambry"}),
    "a list of two for a word": change({"dominant_type_overall": ["Genomic Report", NOTE]}),
    "a list of two for a quote": change({f"{QUOTE}.snippet": ["BRCA1", "c.5266dupC"]}),
    "no quote": lambda: without(f"{QUOTE}.snippet"),
    "no overall type": lambda: without("dominant_type_overall"),
    "no segments": lambda: without("segments"),
    "one segment of two": change({"segments": ANSWER["segments"][0]}),
    "elided": lambda: TEXT.replace("[{", "[..., {", 1),
    "NaN": lambda: TEXT.replace("0.92", "NaN"),
    "a number without end": lambda: TEXT.replace("0.92", "1e999"),
    "a number without end in a free field": lambda: TEXT.replace("null}", '{"doubt": 1e999}}'),
    "not a number in a free field": change({"self_evaluation": {"doubt": float("nan")}}),
    "null": lambda: "null",
}  # fmt: skip


def normalise(answer: Any) -> NormalisedAnswer:
    return normalise_classification(answer)


def evaluate(supplied: Any, **options: Any) -> ClassificationOutcome:
    return asyncio.run(RetryOrchestrator(**options).evaluate(doc2_6(), supplied))


@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless_spelling_is_read_as_the_answer_it_is(name: str) -> None:
    spelled = LOSSLESS[name]()
    before = copy.deepcopy(spelled)
    json_value, changes = normalise(spelled)
    expected = copy_with(ANSWER, {"segments.0.reasoning": OTHER_REASONING.get(name, "")})
    assert parse_answer(json_value) == parse_answer(expected)
    assert bool(changes) == (name not in ("as it is", "as text", "indented", "byte order mark"))
    assert len(set(changes)) == len(changes) < 30
    assert spelled == before


@pytest.mark.parametrize("name", LOSSY)
def test_spelling_that_needs_a_guess_is_unparseable(name: str) -> None:
    with pytest.raises((AnswerTextError, AnswerShapeError, ValidationError)):
        parse_answer(normalise(LOSSY[name]()).json_value)
    outcome = evaluate(LOSSY[name]())
    assert (codes(outcome.issues), outcome.classification) == (["V1-UNPARSEABLE"], None)


@pytest.mark.parametrize(
    ("name", "change_made"),
    [
        ("fence", "text around the JSON left out"),
        ("wrapper", "a wrapper around the answer left out"),
        ("per cent as text", "segments[].segment_composition[].confidence: per cent read as a number"),
        ("lower case words", "dominant_type_overall: another case or spacing read"),
        ("counts with a decimal point", "number_of_segments: a number with a decimal point read as a whole one"),
        ("text for a list of one", "vendor_signals: text read as a list of one"),
        (
            "page_number",
            "segments[].segment_composition[].top_evidence[].page: another spelling of the key read",
        ),
        ("extra keys", "segments[]: an extra key left out"),
    ],
)
def test_the_change_is_named_with_its_place(name: str, change_made: str) -> None:
    assert change_made in normalise(LOSSLESS[name]()).changes


@pytest.mark.parametrize(
    ("place", "written", "read"),
    [
        ("segments.0.start_page", "-1", -1),
        ("segments.0.start_page", " +4 ", 4),
        ("segments.0.start_page", "page-4", 4),
        ("segments.0.start_page", "#4", 4),
        ("segments.0.start_page", 4.0, 4),
        (f"{PRIMARY_ROW}.confidence", "-0.5", -0.5),
        (f"{PRIMARY_ROW}.confidence", "1.7", 1.7),
        (f"{PRIMARY_ROW}.confidence", "0.58%", 0.0058),
        (f"{PRIMARY_ROW}.confidence", "57 percent", 0.57),
    ],
)
def test_a_wrong_number_stays_the_number_that_it_is(place: str, written: Any, read: Any) -> None:
    *way, last = (int(step) if step.isdigit() else step for step in place.split("."))
    holder: Any = normalise(copy_with(ANSWER, {place: written})).json_value
    for step in way:
        holder = holder[step]
    assert (holder[last], type(holder[last])) == (read, type(read))


def test_null_for_segments_is_none_and_escalates() -> None:
    outcome = evaluate(copy_with(ANSWER, {"segments": None}))
    assert "classifier: segments: null read as an empty list" in outcome.attempts[0].normalised
    assert {"V1-SEGMENT-COUNT", "V2-PAGE-GAP"} <= set(codes(outcome.issues))
    assert outcome.verdict.decision == "ESCALATE_TO_SME"


def test_changes_are_listed_in_the_first_attempt_only() -> None:
    claimed = copy_with(ANSWER, {"segments.0.segment_page_count": 4, "vendor_signals": None})
    first, second = evaluate(f"```\n{json.dumps(claimed)}\n```").attempts
    assert first.normalised == (
        "classifier: text around the JSON left out",
        "classifier: vendor_signals: null read as left out",
    )
    assert "normalised" not in second.model_dump(mode="json")


def test_no_change_quotes_the_answer() -> None:
    named = copy_with(ANSWER, {"Zebulon Quartermain": 1, "segments.0.Zebulon": {"Quartermain": "1970"}})
    assert "Zebulon" not in "".join(normalise(f"Zebulon: {json.dumps(named)}").changes)


@pytest.mark.parametrize(
    ("places", "raised"),
    [
        (["number_of_segments"], ["V1-SEGMENT-COUNT"]),
        (["segments.0.segment_page_count"], ["V1-PAGE-COUNT"]),
        (["segments.0.segment_page_count", "segments.1.segment_page_count"], ["V1-PAGE-COUNT", "V1-PAGE-COUNT"]),
        (["document_mixture"], ["V1-MISSING-TYPE"]),
        (["document_mixture", "number_of_segments"], ["V1-MISSING-TYPE", "V1-SEGMENT-COUNT"]),
    ],
)
@pytest.mark.parametrize("is_null", [False, True])
def test_what_can_be_counted_is_raised_and_repaired(places: list[str], raised: list[str], is_null: bool) -> None:
    claimed = copy_with(ANSWER, dict.fromkeys(places)) if is_null else without(*places)
    v1_issues = [issue for issue in evaluate(claimed).issues if issue.agent == "V1"]
    assert codes(v1_issues) == raised
    assert all(issue.auto_fixable for issue in v1_issues)
    outcome = evaluate(claimed, lossless_repair=True)
    assert outcome.verdict.decision == "AUTO_ACCEPT"
    repaired = outcome.classification.to_json() if outcome.classification else {}
    assert repaired | {"document_mixture": []} == parse_answer(ANSWER).to_json() | {"document_mixture": []}
    assert {row["document_type"]: row["overall_share"] for row in repaired["document_mixture"]} == pytest.approx(
        {row["document_type"]: row["overall_share"] for row in ANSWER["document_mixture"]}, abs=1e-4
    )


def test_a_models_answer_keeps_quotes_by_their_place() -> None:
    place = {"page_number": "2", "paragraph": 2.0, "firstWords": "BRCA1 c.5266dupC", "last_words": "was detected"}
    asked = ClassifierQuestion(doc2_6())
    json_value, changes = asked.normalise_answer(json.dumps(copy_with(ANSWER, {QUOTE: place})))
    (quote,) = asked.parse_answer(json.dumps(json_value)).segments[0].segment_composition[0].top_evidence
    assert (quote.page, quote.snippet) == (2, "BRCA1 c.5266dupC was detected")
    assert changes


FINDING = finding("MAJOR", segment_index=1, page=3).model_dump(mode="json")


@pytest.mark.parametrize(
    "spelled",
    [
        {"findings": [FINDING]},
        [FINDING],
        json.dumps([FINDING]),
        f"I found this:\n```json\n{json.dumps([FINDING])}\n```",
        {"findings": [FINDING], "summary": "one finding"},
        {"issues": [FINDING]},
        {"V2": {"findings": [FINDING]}},
        {"findings": [FINDING | {"severity": "Major", "page": "3", "segment_index": "1", "confidence": 0.7}]},
        {"findings": [{("page_number" if key == "page" else key): field for key, field in FINDING.items()}]},
        {"findings": [FINDING | {"suggested_fix": None}]},
    ],
)
def test_findings_are_read_in_every_harmless_spelling(spelled: Any) -> None:
    assert Findings.model_validate(normalise_answer(spelled, build_full_json_schema(Findings)).json_value).model_dump(
        mode="json"
    ) == {"findings": [FINDING]}
    assert MergedFindings.model_validate(
        normalise_answer([FINDING | {"check": "v3"}], build_full_json_schema(MergedFindings)).json_value
    ).findings[0].check == "V3"  # fmt: skip


@pytest.mark.parametrize("answer_type", [Findings, MergedFindings])
@pytest.mark.parametrize(
    "spelled",
    [
        {"findings": None},
        '{"findings": null}',
        "```json\n{'findings': None}\n```",
        {"Findings": None, "confidence": 0.9, "summary": "", "output": True},
        {"V2": {"findings": None}},
    ],
)
def test_null_findings_are_none_and_recorded(spelled: Any, answer_type: type[Findings | MergedFindings]) -> None:
    normalised = normalise_answer(spelled, build_full_json_schema(answer_type))
    assert answer_type.model_validate(normalised.json_value).findings == ()
    assert "findings: null read as an empty list" in normalised.changes


@pytest.mark.parametrize(
    "spelled",
    [
        {},
        {"findings": {}},
        {"findings": FINDING},
        {"findings": "none"},
        {"summary": "nothing found"},
        {"findings": [], "issues": [FINDING]},
        {"findings": [], "blockers": [FINDING]},
        {"findings": [], "error": "page 2 could not be read"},
        {"findings": [], "Refusal": {"reason": "policy"}},
        {"findings": None, "V4": {"findings": [FINDING]}},
        {"findings": [], "V4": "I could not"},
        {"findings": [], "V4": ["I could not"]},
        {"Findings": None, "summary": "nothing to report"},
        {"findings": [], "is_complete": False},
        {"V2": {"findings": []}, "V4": "I could not"},
        {"output": '{"findings": []}', "status": {"V4": "I could not"}},
        "- [x] labels are right\n- [ ] evidence: I could not read page 2",
        "1. [] labels\n2. [] evidence",
        '<think>Perhaps {"findings": []}, but page 2 says carcinoma, so',
        '{"findings": []} {"findings": [{"severity": "MAJOR"}]}',
        '[1] [] {"findings": [',
        "No findings.",
        json.dumps({"findings": [FINDING]})[3:],
        [FINDING | {"severity": "SEVERE"}],
        [{"message": "no severity"}],
    ],
)
def test_broken_findings_are_never_no_findings(spelled: Any) -> None:
    with pytest.raises((AnswerTextError, AnswerShapeError, ValidationError)):
        Findings.model_validate(normalise_answer(spelled, build_full_json_schema(Findings)).json_value)


@given(st.text(alphabet="{}[]\",:1a/#\\\n“'%.- ", max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        json_value, _ = normalise(text)
    except (AnswerTextError, AnswerShapeError):
        return
    json.dumps(json_value)


@given(st.integers(1, len(TEXT) - 1))
def test_an_answer_cut_off_anywhere_is_refused(length: int) -> None:
    with pytest.raises((AnswerTextError, AnswerShapeError, ValidationError)):
        parse_answer(normalise(TEXT[:length]).json_value)


# ------------------------------------------------------------------------------------------- shapes × roles × protocols


class _OwnAnswer(BaseModel):
    """What a site's verifier may ask for."""

    is_signed: bool
    signed_by: list[str]
    kind: Literal["by hand", "by machine"]
    share: float = Field(ge=0, le=1)
    page: int | None = None


def build_question_of_each_role() -> dict[str, Question[Any]]:
    """The questions as the program builds them; what only their prompts need is left out."""
    bundle, classification = doc2_6(), parse_answer(ANSWER)
    verifiers = [V2ConsistencyChecker(), V3TrapDetector(), V4EvidenceQualityAssessor()]
    attempt: Any = SimpleNamespace(bundle=bundle, fields={}, template=None)
    context: Any = SimpleNamespace(page_images=(), document_sha256="")
    own_schema = build_full_json_schema(_OwnAnswer)
    reports: Any = {"layout_report": None, "semantic_report": None, "report_by_rules": None}
    questions: list[Question[Any]] = [
        ClassifierQuestion(bundle),
        *(question for verifier in verifiers for question in verifier.questions(classification, bundle)),
        MergedVerifier(verifiers).build_question(classification, bundle),
        _OwnQuestion("OWN", bundle, "", build_inlined_json_schema(_OwnAnswer), own_schema, {}, ""),
        ClinicalQuestion(bundle, (1,), get_field_template("pathology")),
        AccuracyQuestion(attempt, ()),
        FormQuestion(bundle, FormPart(1, 1, None), role="form extractor"),
        GraderQuestion(bundle, attempt, 1, 1),
        *(ReviewerQuestion(context, role=role) for role in ("layout_geometry", "semantic_financial")),
        ArbitratorQuestion(context, disputed_issues=(), measured_issue_ids=frozenset(), **reports),
        BuilderQuestion(context, retry=None),
    ]
    return {question.role: question for question in questions}


def get_full_schema(question: Question[Any]) -> Json:
    return dict(getattr(question, "full_schema", None) or build_full_json_schema(question.requested_type))


def is_written_otherwise(said: str, meant: Json) -> bool:
    try:
        return dump_for_comparison(json.loads(said.removeprefix("\ufeff"))) != dump_for_comparison(meant)
    except ValueError:
        return True


ROLES = tuple(build_question_of_each_role())


@pytest.mark.parametrize("role", ROLES)
def test_shapes_of_each_role_are_read_or_refused_by_name(role: str) -> None:
    question = build_question_of_each_role()[role]
    schema = get_full_schema(question)
    right = make_answer(schema)
    for name, write in LOSSLESS_SHAPES.items():
        written = write(right, schema)
        said, meant = written if isinstance(written, tuple) else (written, right)
        if said is not None:
            json_value, changes = question.normalise_answer(said)
            assert question.parse_answer(json.dumps(json_value)) == question.parse_answer(json.dumps(meant)), name
            is_listed = name == "a key twice, alike" or is_written_otherwise(said, meant)
            assert bool(changes) == is_listed, name
    for name, (write, reason) in NAMED_SHAPES.items():
        if said := write(right, schema):
            with pytest.raises((AnswerTextError, AnswerShapeError), match=reason):
                pytest.fail(f"{name}: {question.normalise_answer(str(said))}")


def build_question_of_each_cell() -> dict[str, tuple[Question[Any], str, str]]:
    """For each role and shape a question, the text of its answer, and the reason of a refusal; by the prompt."""
    cells = {}
    for role, question in build_question_of_each_role().items():
        schema = get_full_schema(question)
        right = make_answer(schema)
        shapes = {name: (write, "") for name, write in LOSSLESS_SHAPES.items()} | NAMED_SHAPES
        for name, (write, reason) in shapes.items():
            written = write(right, schema)
            if written is not None:
                prompt = f"<{role}: {name}>"
                asked = copy.copy(question)
                vars(asked)["_prompt"] = prompt
                cells[prompt] = (asked, written[0] if isinstance(written, tuple) else written, reason)
    return cells


@contextmanager
def serve_protocol(family: str, answer: Callable[[str], str]) -> Iterator[Provider]:
    """Serve a protocol; ``answer`` gets what a request contains."""
    if family == "gemini":
        with GeminiServer(lambda call: answer(call.prompt), caches=False) as gemini_server:
            yield GeminiProvider("m", base_url=gemini_server.url, api_key="k")
        return
    with ModelServer(lambda call: answer(json.dumps(call.body, ensure_ascii=False))) as server:
        yield build_provider(
            {"openai": "openai:m", "anthropic": "anthropic:claude-sonnet-4-6"}[family],
            environment={"ANTHROPIC_API_KEY": "k"},
            base_url=server.url + ("/v1" if family == "openai" else ""),
        )


PROTOCOLS = ("gemini", "openai", "anthropic")


@pytest.mark.parametrize("family", PROTOCOLS)
def test_every_protocol_carries_every_shape_and_role(family: str) -> None:
    """Each protocol has a third of the cells: reading a text does not depend on the protocol that carried it."""
    all_cells = sorted(build_question_of_each_cell().items(), key=lambda cell: cell[0].partition(": ")[2])
    cells = dict(all_cells[PROTOCOLS.index(family) :: len(PROTOCOLS)])
    assert {prompt.partition(":")[0] for prompt in cells} == {f"<{role}" for role in ROLES}
    assert len({prompt.partition(": ")[2] for prompt in cells}) == len(LOSSLESS_SHAPES | NAMED_SHAPES)

    def answer(request: str) -> str:
        (prompt,) = set(re.findall(r"<[^<>\n]+: [^<>\n]+>", request)) & cells.keys()
        return cells[prompt][1]

    async def ask_all(provider: Provider) -> list[Answer[Any]]:
        model = LanguageModel(provider, Ledger(), AimdLimiter(16), max_first_wait=0.001, max_wait=0.001)
        try:
            return await asyncio.gather(*(model.ask(question) for question, _, _ in cells.values()))
        finally:
            await model.close()

    with serve_protocol(family, answer) as provider:
        answers = asyncio.run(ask_all(provider))
    for (prompt, (_, _, reason)), got in zip(cells.items(), answers, strict=True):
        assert (got.value is None) == bool(reason), (prompt, got.failure)
        assert got.usage.calls == (2 if reason else 1), prompt
        assert re.search(f"({reason}).*LLM-(NOT-JSON|SHAPE)" if reason else "^$", got.failure or ""), prompt


GRADE = {"pass": True, "score": 90, "confidence": 0.9}
RANGED = {
    "type": "object",
    "properties": {name: {"type": "integer"} for name in ("start_page", "end_page", "pages")},
    "required": ["start_page", "end_page"],
}


@pytest.mark.parametrize(
    ("answer_type", "spelled", "read"),
    [
        (GraderAnswer, GRADE | {"score": "95%"}, {"score": 95.0}),
        (GraderAnswer, GRADE | {"confidence": "95%"}, {"confidence": 0.95}),
        (GraderAnswer, GRADE | {"score": 100}, {"score": 100}),
        (GraderAnswer, GRADE | {"score": 101}, "score must be 100 or less"),
        (GraderAnswer, GRADE | {"confidence": "1.7"}, "confidence must be 1 or less"),
        (GraderAnswer, GRADE | {"score": -1}, "score must be 0 or more"),
        (GraderAnswer, {"passed": True, "score": 90, "confidence": "90"}, "confidence must be 1 or less"),
        (ReviewerAnswer, [], "the answer must be an object"),
        (ReviewerAnswer, [{}], r"issues\[0\].message is missing"),
        (ClaimedFields, [{"field": "grade", "value": 2}], {"fields": [{"field": "grade", "value": "2"}]}),
        (ClaimedFields, {"fields": {"grade": {"value": "2"}}}, {"fields": [{"field": "grade", "value": "2"}]}),
        (ClaimedFields, {"fields": {"value": {"quote": "2"}, "quote": {"page": 1}}}, "fields must be a list"),
        (ClaimedFields, {"fields": [{"field": "grade", "value": 2.5}]}, r"fields\[0\].value must be text"),
    ],
)
def test_limits_lists_and_names_follow_the_schema(answer_type: type[BaseModel], spelled: Any, read: Any) -> None:
    if isinstance(read, str):
        with pytest.raises(AnswerShapeError, match=read):
            normalise_answer(spelled, build_full_json_schema(answer_type))
        return
    json_value = normalise_answer(spelled, build_full_json_schema(answer_type)).json_value
    assert {name: json_value[name] for name in read} == read


def test_a_field_called_pages_is_no_range() -> None:
    assert normalise_answer({"start_page": 1, "end_page": 4, "pages": 4}, RANGED).json_value["pages"] == 4
    assert normalise_answer({"page_range": "2-3"}, RANGED).json_value == {"start_page": 2, "end_page": 3}
    with pytest.raises(AnswerShapeError, match="pages must be a whole number"):
        normalise_answer({"start_page": 1, "end_page": 4, "pages": "1-4"}, RANGED)
