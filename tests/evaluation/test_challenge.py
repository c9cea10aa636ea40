"""Planted faults: each is what it says, and who catches it is told truly."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from benchmarks.quote_alterations import list_planted_pages
from builders import (
    GENOMIC,
    NOTE,
    PATHOLOGY,
    CountingModel,
    answer,
    compose_single_type,
    doc2_6,
    doc2_6_answer,
    document,
    evidence,
    finding,
    one_segment,
    parse_answer,
    segment,
)
from servers.gemini import GeminiServer

from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.patient_check import PatientExpectation
from evalkit.classification.schema import DocumentType
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.errors import UsageError
from evalkit.evaluation.challenge import challenge
from evalkit.evaluation.challenge.fault_kinds import FAULT_BY_ID, FAULTS
from evalkit.evaluation.challenge.mutated_answer import (
    AnswerOrigin,
    CleanAnswer,
    FaultNotApplicableError,
    MutatedAnswer,
    load_fault_texts,
)
from evalkit.evaluation.challenge.mutation_testing import (
    LEFT_OUT_CORRECTION,
    LEFT_OUT_ESCALATED,
    is_nearly_same_classification,
    plant_and_judge_mutations,
    select_mutation_operators,
)
from evalkit.evaluation.challenge.report import (
    KIND_COLUMNS,
    JudgedMutation,
    MutationTestReport,
    format_report_table_and_summary,
)
from evalkit.llm.model import Answer, AnswerT, Model, Question
from evalkit.pipeline import RunSummary
from evalkit.settings import Settings

NOTE_PAGE = (
    "PROGRESS NOTE\nChief complaint: headache.\nThe patient reports no fever and denies nausea.\n"
    "Blood pressure 128/76, pulse 72.\nWe discussed the options. Follow up in 6 weeks."
)
GENOMIC_PAGES = (
    "Acme Genomics, 12 Elm Street, Tel (555) 555-0100\nGENOMIC REPORT\nDate reported: 02/01/2025\n"
    "BRCA1 c.5266dupC was detected in a heterozygous state.\nAllele fraction 0.48 at 212x coverage.",
    "The variant is classified as pathogenic.\nReference sequence NM_007294.4\nLoss of function at chr17.",
    "TP53 p.R175H was not detected.\nMicrosatellite stable, 4 mutations/mb.",
)


def packet() -> CleanAnswer:
    """A genomic report of three pages and a note of one."""
    parts = (
        segment(
            1,
            1,
            3,
            GENOMIC,
            compose_single_type(
                GENOMIC, evidence("BRCA1 c.5266dupC was detected in a heterozygous state.", 1, "BRCA1")
            ),
        ),
        segment(
            2, 4, 4, NOTE, compose_single_type(NOTE, evidence("The patient reports no fever and denies nausea.", 4))
        ),
    )
    value = answer(*parts, overall=GENOMIC, shares={GENOMIC: 0.75, NOTE: 0.25})
    return CleanAnswer(document(*GENOMIC_PAGES, NOTE_PAGE), parse_answer(value))


PATHOLOGY_PAGES = (
    "Valley Hospital, Department of Pathology\nSURGICAL PATHOLOGY REPORT\nAccession: S24-10234  Reported: 03/14/2024\n"
    "Specimen: left breast, core biopsy.\nThe specimen is three tan cores of tissue, the longest 1.4 cm, all embedded.\n"
    "The sections show an infiltrating tumor of small nests and cords in a dense stroma, with few mitoses.",
    "Immunohistochemistry was performed on block A1 with controls that stained as expected throughout.\n"
    "Estrogen receptor is positive in 95% of tumor cells and progesterone receptor in 60% of them.\n"
    "Final diagnosis: invasive lobular carcinoma, grade 2, of the left breast. The tumor measures 1.1 cm.",
)


def pathology() -> CleanAnswer:
    """A pathology report of two pages with enough words to be compared."""
    quote = evidence("Final diagnosis: invasive lobular carcinoma, grade 2, of the left breast.", 2)
    return CleanAnswer(document(*PATHOLOGY_PAGES), parse_answer(one_segment(PATHOLOGY, 2, quote)))


def slides() -> CleanAnswer:
    return CleanAnswer(doc2_6(), parse_answer(doc2_6_answer()))


def plant(
    cleans: Sequence[CleanAnswer], kinds: str = "", model: Model | None = None, **options: Any
) -> MutationTestReport:
    faults = select_mutation_operators(filter(None, kinds.split(",")))
    return asyncio.run(
        plant_and_judge_mutations(cleans, RetryOrchestrator(model, include_rule_findings=False), faults, **options)
    )


@cache
def everything() -> MutationTestReport:
    return plant([slides(), packet(), pathology()], max_cases_per_kind=9, max_places_per_document=4)


def shares(made: MutationTestReport) -> Mapping[str, tuple[int, int]]:
    return {row["kind"]: (row["caught"], row["n"]) for row in made.to_frame().to_dict("records")}


# ------------------------------------------------------------------------------------------------ what is planted


def test_at_least_25_faults_with_unique_ids() -> None:
    assert len(FAULTS) == len(FAULT_BY_ID) >= 25
    assert {fault.nature for fault in FAULTS} == {"structural", "quote", "semantic"}
    assert all(fault.expected_codes and fault.description for fault in FAULTS)


def test_a_clean_answer_stays_as_it_was_and_a_draft_is_another() -> None:
    clean = packet()
    before = clean.classification.to_json(), clean.bundle.model_dump()
    made = plant([clean], max_cases_per_kind=3)
    assert (clean.classification.to_json(), clean.bundle.model_dump()) == before
    assert made.clean_document_count == 1
    assert len(made.cases) > 60


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.fault_id)
def test_every_kind_changes_the_answer_or_the_text(fault) -> None:
    cleans = [
        slides(),
        packet(),
        *(
            CleanAnswer(bundle, parse_answer(one_segment(NOTE, 3, evidence("x", 1))))
            for bundle in list_planted_pages(0, 2)
        ),
    ]
    planted = 0
    for clean in cleans:
        for seed in range(3):
            draft = MutatedAnswer.from_clean_answer(clean)
            with suppress(FaultNotApplicableError):
                fault.plant(draft, random.Random(seed))
                planted += 1
                assert (draft.answer_json, draft.bundle) != (clean.classification.to_json(), clean.bundle)
                assert len(draft.bundle.pages) == draft.bundle.total_pages
                for page in draft.bundle.pages:
                    assert page.text == "\n".join(page.paragraphs)
                    assert len(page.paragraphs) == len(page.layout_metadata.block_types)
                    assert all(page.text[start:end].strip() for start, end, *_ in page.words)
    assert planted or fault.fault_id in ("quote-sign", "boundary-5", "quote-name")


def test_equal_seed_plants_equal_faults_without_duplicates() -> None:
    once, again = (plant([packet()], "structural,semantic", max_cases_per_kind=2, seed=4) for _ in range(2))
    assert once == again
    assert once.cases != plant([packet()], "structural,semantic", max_cases_per_kind=2, seed=5).cases
    few = plant([packet()], "segment-dropped", max_cases_per_kind=50, max_places_per_document=30)
    assert len(few.cases) == 2  # either segment


# ------------------------------------------------------------------------------------------------ who catches it


def test_nothing_structural_and_no_invented_quote_passes() -> None:
    made = everything()
    structural = [fault.fault_id for fault in FAULTS if fault.nature == "structural"]
    missed = {kind: n for kind, n in shares(made).items() if kind in structural and n[0] < n[1]}
    assert missed == {}
    assert made.false_alarms == ()


@pytest.mark.parametrize(
    ("kind", "agent"),
    [
        ("segment-count", "V1"),
        ("page-overlap", "V2"),
        ("label", "V2"),
        ("boundary-1", "V2"),
        ("merged", "V2"),
        ("quote-invented", "V4"),
        ("quote-digit", "V4"),
        ("evidence-courtesy", "V4"),
        ("evidence-header", "V4"),
        ("evidence-reference", "V4"),
        ("trap-vendor", "V3"),
        ("trap-letterhead", "V3"),
        ("trap-panel", "V2"),
        ("trap-boilerplate", "V2"),
        ("trap-quoted", "V3"),
        ("text-hidden", "V3"),
    ],
)
def test_each_kind_is_caught_by_whom_it_should(kind: str, agent: str) -> None:
    cases = [case for case in everything().cases if case.kind == kind]
    assert cases
    assert all(case.caught for case in cases), [case for case in cases if not case.caught]
    assert any(agent in case.agents for case in cases)
    assert any(code.startswith(agent) for code in FAULT_BY_ID[kind].expected_codes)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("label", "V2-NO-ACT"),
        ("label-other", "V2-ACT-IN-OTHER"),
        ("split", "V2-BOUNDARY-DOUBT"),
        ("merged-type", "V2-BOUNDARY-DOUBT"),
        ("presence-raw", "V4-PRESENCE-UNSUPPORTED"),
        ("presence-mention", "V4-PRESENCE-UNSUPPORTED"),
        ("presence-raw-strange", "V4-PRESENCE-UNSUPPORTED"),
        ("presence-mention-strange", "V4-PRESENCE-UNSUPPORTED"),
        ("unsure", "V2-UNSURE"),
        ("pages-missing", "V2-PAGES-MISSING"),
        ("pages-repeated", "V2-PAGES-REPEATED"),
        ("pages-shuffled", "V2-PAGES-ORDER"),
        ("quote-elided-negation", "V4-QUOTE-ALTERED"),
        ("quote-elided-hedge", "V4-QUOTE-ALTERED"),
        ("quote-elided-history", "V4-QUOTE-ALTERED"),
        ("quote-elided-question", "V4-QUOTE-ALTERED"),
    ],
)
def test_each_kind_is_caught_by_the_code_it_names(kind: str, code: str) -> None:
    assert code.startswith(FAULT_BY_ID[kind].expected_codes)
    assert any(code in case.codes and not case.caught_by_other for case in everything().cases if case.kind == kind)


def _list_words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def _iterate_texts(table: object) -> Iterator[str]:
    if isinstance(table, str):
        yield table
    for member in table.values() if isinstance(table, Mapping) else table if isinstance(table, list) else ():
        yield from _iterate_texts(member)


@pytest.mark.parametrize(
    "file_name",
    [
        "classification/administrative.toml",
        "classification/offline/act_features.toml",
        "classification/evidence_strength.toml",
        "classification/vendors.toml",
        "grounding/omitted_context.toml",
    ],
)
def test_no_planted_words_are_copied_from_rules(file_name: str) -> None:
    """Four words in a row, or a whole text of two or more; the specification's own words and the types' names apart."""
    rules = [_list_words(text) for text in _iterate_texts(tomllib.loads((files("evalkit") / file_name).read_text()))]
    runs = {tuple(words[index : index + 4]) for words in rules for index in range(len(words) - 3)}
    runs |= {tuple(words) for words in rules if len(words) > 1}
    runs -= {tuple(_list_words(kind)) for kind in DocumentType}
    named_by_specification = {"vendors", "letterheads", "administrative_lines"}
    planted = {key: text for key, text in load_fault_texts().items() if key not in named_by_specification}
    for line in (line for text in _iterate_texts(planted) for line in text.splitlines()):
        words = _list_words(re.sub(r"\{\w+\}|#", " | ", line))
        copied = {tuple(words), *(tuple(words[index : index + 4]) for index in range(len(words) - 3))} & runs
        assert not copied, line


def test_pages_move_with_their_segments_and_quotes() -> None:
    for kind in ("pages-missing", "pages-shuffled", "pages-repeated"):
        for seed in range(6):
            draft = MutatedAnswer.from_clean_answer(packet())
            with suppress(FaultNotApplicableError):
                FAULT_BY_ID[kind].plant(draft, random.Random(seed))
                assert [one["segment_page_count"] for one in draft.segments] != [3, 1] or kind == "pages-shuffled"
                assert draft.segments[-1]["end_page"] == draft.bundle.total_pages
                for part in draft.segments:
                    for quote in (quote for row in part["segment_composition"] for quote in row["top_evidence"]):
                        assert part["start_page"] <= quote["page"] <= part["end_page"]
                        assert quote["snippet"] in draft.bundle.page(quote["page"]).text


@pytest.mark.parametrize("turn", ["negation", "hedge", "history", "question"])
def test_an_elided_quote_leaves_out_words_of_its_sentence(turn: str) -> None:
    for seed in range(12):
        draft = MutatedAnswer.from_clean_answer(packet())
        FAULT_BY_ID[f"quote-elided-{turn}"].plant(draft, random.Random(seed))
        (quote,) = (
            quote
            for part in draft.segments
            for row in part["segment_composition"]
            for quote in row["top_evidence"]
            if "…" in quote["snippet"]
        )
        sentence = draft.bundle.page(quote["page"]).paragraphs[-1]
        first, *rest = quote["snippet"].split(" … ")
        assert "[" not in sentence + quote["snippet"]
        assert sentence.startswith(first)
        assert rest[-1].rstrip(".") in sentence


def test_a_split_gives_both_halves_quotes_of_their_own_pages() -> None:
    for seed in range(6):
        draft = MutatedAnswer.from_clean_answer(packet())
        FAULT_BY_ID["split"].plant(draft, random.Random(seed))
        first, second, _ = draft.segments
        assert (first["start_page"], second["end_page"], first["end_page"] + 1) == (1, 3, second["start_page"])
        for half in (first, second):
            claim = next(row for row in half["segment_composition"] if row["document_type"] == GENOMIC)
            assert claim["top_evidence"]
            for quote in claim["top_evidence"]:
                assert half["start_page"] <= quote["page"] <= half["end_page"]


def test_most_words_for_a_model_are_caught_seen_or_hidden() -> None:
    """Not all: no list has every wording."""
    for kind in ("instruction", "instruction-hidden"):
        cases = [case for case in everything().cases if case.kind == kind]
        assert sum(case.caught for case in cases) >= len(cases) / 2
        assert all("reader" in case.agents for case in cases if case.caught)


@pytest.mark.parametrize("name", ["forms", "panels", "boilerplates", "quoting_notes"])
def test_planted_report_page_has_evidence(name: str) -> None:
    kind = {"forms": "form", "panels": "panel", "boilerplates": "boilerplate", "quoting_notes": "quoted"}[name]
    for text in load_fault_texts()[name]:
        only_it = {**load_fault_texts(), name: [text]}
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("evalkit.evaluation.challenge.mutated_answer.load_fault_texts", lambda said=only_it: said)
            draft = MutatedAnswer.from_clean_answer(packet())
            FAULT_BY_ID[f"trap-{kind}"].plant(draft, random.Random(0))
        claimed = next(row for row in draft.segments[-1]["segment_composition"] if row["presence_level"] == "PRIMARY")
        assert claimed["top_evidence"], text["page"]


def test_undone_fault_is_caught_and_altered_answer_is_not() -> None:
    made = plant([packet()], "page-count,segment-share-sum", max_cases_per_kind=8, max_places_per_document=12)
    outcomes = {case.outcome for case in made.cases}
    assert outcomes == {"undone", "escalated"}
    assert all(case.caught and case.decision == "AUTO_ACCEPT" for case in made.cases if case.outcome == "undone")
    assert all("V1-PAGE-COUNT" in case.codes for case in made.cases if case.kind == "page-count")


def test_answers_are_the_same_up_to_shares_that_v2_lets_pass() -> None:
    one = packet().classification
    mixture = list(one.document_mixture)

    def moved(by: float):
        first = mixture[0].model_copy(update={"overall_share": mixture[0].overall_share + by})
        return one.model_copy(update={"document_mixture": (*mixture[1:], first)})

    assert is_nearly_same_classification(one, moved(0.0))
    assert is_nearly_same_classification(one, moved(0.04))
    assert not is_nearly_same_classification(one, moved(0.06))
    assert not is_nearly_same_classification(one, one.model_copy(update={"number_of_segments": 3}))


ASKED_KINDS = "evidence-courtesy,evidence-reference"
"""What only a verifier's question finds, V4's: no rule sees it."""


class Silent:
    """A model that finds nothing."""

    name = "silent"

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        return Answer(question, question.answer_type.model_validate({"findings": []}))


def test_a_verifier_that_sleeps_is_seen() -> None:
    awake, asleep = plant([packet()], "semantic"), plant([packet()], "semantic", model=Silent())
    assert shares(awake)["evidence-courtesy"][0] > 0
    assert shares(asleep)["evidence-courtesy"][0] == shares(asleep)["evidence-reference"][0] == 0
    assert shares(asleep)["label"][0] > 0, "that the pages do not perform the act is computed without a model"
    assert asleep.macro_detection_rate is not None
    assert awake.macro_detection_rate is not None
    assert asleep.macro_detection_rate < awake.macro_detection_rate
    assert {case.outcome for case in asleep.cases if case.kind == "evidence-courtesy"} == {"missed"}


def test_a_verifier_that_cannot_answer_has_caught_nothing() -> None:
    class Tiring(Silent):
        """It answers about the clean document alone."""

        asked = 0

        async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
            self.asked += 1
            return await super().ask(question) if self.asked <= 3 else Answer(question, None, failure="it timed out")

    made = plant([packet()], ASKED_KINDS, model=Tiring())
    assert {case.decision for case in made.cases} == {"ESCALATE_TO_SME"}
    assert not any(case.caught for case in made.cases)
    assert all(case.unanswered and case.outcome == "missed" for case in made.cases)


def test_fault_caught_by_another_agent_counts_as_caught() -> None:
    class Elsewhere(Silent):
        """V4 asleep; V2 finds something in whatever was not there before."""

        clean: frozenset[str] = frozenset()

        async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
            if question.role != "V2":
                return await super().ask(question)
            if not self.clean:
                self.clean = frozenset({question.prompt()})
            found = [] if question.prompt() in self.clean else [finding("MAJOR").model_dump()]
            return Answer(question, question.answer_type.model_validate({"findings": found}))

    made = plant([packet()], "evidence-courtesy", model=Elsewhere())
    assert FAULT_BY_ID["evidence-courtesy"].expected_codes == ("V4",)
    assert made.cases
    assert all(case.caught and case.caught_by_other and case.agents == ("V2",) for case in made.cases)
    assert not any(case.caught_by_other for case in plant([packet()], "evidence-courtesy").cases)


def test_escalated_clean_document_is_only_a_false_alarm() -> None:
    model = CountingModel(findings={"V2": [finding("MAJOR")]})
    made = plant([packet(), slides()], "structural", model=model)
    assert [alarm.doc_id for alarm in made.false_alarms] == ["doc2_6", "doc2_6"]
    assert made.false_alarms[0].codes == ("V2-SEMANTIC",)
    assert made.cases == ()
    assert made.false_alarm_rate[:2] == (1.0, pytest.approx(0.158, abs=0.001))
    assert made.macro_detection_rate is None


@pytest.mark.parametrize("origin", AnswerOrigin)
def test_only_answers_known_to_be_right_raise_false_alarms(origin: AnswerOrigin) -> None:
    model = CountingModel(findings={"V2": [finding("MAJOR")]})
    made = plant([replace(packet(), origin=origin)], "structural", model=model)
    is_counted = origin not in ("unvalidated", "simulated")
    assert len(made.false_alarms) == is_counted
    assert made.false_alarm_rate.value == (1.0 if is_counted else None)
    counted = made.to_json()["false_alarms"]
    assert counted["counted" if is_counted else "not_counted"] == {origin: 1}
    assert counted["not_counted" if is_counted else "counted"] == {}
    tail = "\n".join(format_report_table_and_summary(made)[2])
    assert ("False alarms: 1 of 1 answers" in tail) is is_counted
    assert ("Not counted for false alarms, " in tail) is not is_counted


def test_files_of_several_patients_are_challenged_as_they_are_run() -> None:
    rows = ("Patient: Ann Lee\nDOB: 03/04/1950\nMRN: 1234567", "Patient: Bo Day\nDOB: 07/09/1981\nMRN: 7654321")
    pages = [f"{row}\n{NOTE_PAGE}" for row in rows]
    quotes = [evidence("The patient reports no fever and denies nausea.", number) for number in (1, 2)]
    parts = [segment(number, number, number, NOTE, compose_single_type(NOTE, quotes[number - 1])) for number in (1, 2)]
    bundle = document(*pages)
    named = [page.model_copy(update={"identifiers": find_patient_identifiers(page.text, ())}) for page in bundle.pages]
    bundle = bundle.model_copy(update={"pages": tuple(named)})
    clean = CleanAnswer(bundle, parse_answer(answer(*parts, overall=NOTE, shares={NOTE: 1.0})))
    several = PatientExpectation(patients_per_file="several")
    assert "V2-PATIENT-SEVERAL" in plant([clean], "segment-count").false_alarms[0].codes
    assert plant([clean], "segment-count", patient_expectation=several).false_alarms == ()


def test_the_setting_of_patients_holds(demo_run: RunSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate, expected = RetryOrchestrator.evaluate, set()

    async def note_expectation(self: RetryOrchestrator, *words: Any, patient_expectation: PatientExpectation) -> Any:
        expected.add(patient_expectation.patients_per_file)
        return await evaluate(self, *words, patient_expectation=patient_expectation)

    monkeypatch.setattr(RetryOrchestrator, "evaluate", note_expectation)
    settings = Settings.load(patients="several")
    challenge([demo_run.output], settings=settings, kinds=["segment-count"], limit=1)
    assert expected == {"several"}


def test_an_issue_that_was_there_before_catches_nothing() -> None:
    """Baseline issues are not new, whatever is planted."""
    model = CountingModel(findings={"V4": [finding("MINOR")]})
    made = plant([packet()], ASKED_KINDS, model=model)
    assert {case.caught for case in made.cases} == {False}


# ------------------------------------------------------------------------------------------------ tables


def test_kinds_that_apply_nowhere_are_told_and_counted() -> None:
    single = CleanAnswer(
        document(NOTE_PAGE), parse_answer(one_segment(NOTE, 1, evidence("The patient reports no fever", 1)))
    )
    made = plant([single], "merged,trap-vendor,segment-count")
    rows = {row["kind"]: row for row in made.to_frame().to_dict("records")}
    assert (rows["merged"]["n"], rows["merged"]["skipped"]) == (0, 1)
    assert (rows["trap-vendor"]["n"], rows["trap-vendor"]["skipped"]) == (0, 1)
    assert rows["segment-count"]["skipped"] == 0
    assert list(made.to_frame().columns) == list(KIND_COLUMNS)


def test_the_table_says_what_was_counted() -> None:
    def case(kind: str, outcome: str, by_other: bool = False) -> JudgedMutation:
        caught = outcome in ("escalated", "undone")
        return JudgedMutation(
            "d", kind, "quote", 0, caught, by_other, outcome, "MAJOR", ("V4",), ("V4-X",), "AUTO_ACCEPT", "7", False
        )

    made = MutationTestReport(
        "m",
        {AnswerOrigin.SUPPLIED: 1, AnswerOrigin.CORRECTED: 3},
        (),
        (case("label", "escalated"), case("label", "missed"), case("merged", "undone", True)),
        {},
    )
    assert made.macro_detection_rate == pytest.approx(0.75)
    assert shares(made) == {"label": (1, 2), "merged": (1, 1)}
    head, rows, tail = format_report_table_and_summary(made)
    assert len(rows[0]) == len(head)
    assert rows[0][:4] == ["label", FAULT_BY_ID["label"].description, "2", "50.0 %"]
    assert rows[0][-2] == "1 missed"
    assert [row[head.index("by another")] for row in rows] == ["", "1"]
    assert any(line.startswith("By another: 1 cases were caught only by checks") for line in tail)
    assert [row["caught_by_other"] for row in made.to_json()["kinds"]] == [0, 1]
    assert "75.0 % caught (mean over 2 kinds)" in tail[0]
    more = replace(made, skipped_counts={"label": 0, "merged": 0, "boundary-5": 4})
    assert format_report_table_and_summary(more)[2][0].endswith(
        "over 2 kinds); 1 kinds could not be planted into any of these documents"
    )
    assert tail[1].startswith("False alarms: 0 of 4 answers (1 supplied, 3 corrected) escalate")


# ------------------------------------------------------------------------------------------------ folders and files


def test_an_output_folder_is_read_and_not_touched(demo_run: RunSummary) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        files = sorted(path for path in Path(demo_run.output).rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    made = challenge([demo_run.output], kinds=["structural"], limit=1)
    assert state() == before
    accepted = [one.doc_id for one in demo_run.documents if one.decision == "AUTO_ACCEPT"]
    assert made.clean_document_count == len(accepted)
    assert {case.doc_id for case in made.cases} <= set(accepted)
    assert all(case.caught for case in made.cases)
    assert made.macro_detection_rate == 1.0


def test_experts_say_which_answers_count_and_unreadable_are_named(demo_run: RunSummary, tmp_path: Path) -> None:
    folder = tmp_path / "output"
    shutil.copytree(demo_run.output, folder)
    accepted = [one.doc_id for one in demo_run.documents if one.decision == "AUTO_ACCEPT"]
    review = {"reviewer": "Dr. A", "vouched": ["dominant_type", "segments"], "revision": 1}
    corrected = review | {"ground_truth_source": "SME_CORRECTED"}
    records = [
        review | {"ground_truth_source": "SME_VALIDATED"},
        review | {"ground_truth_source": "SME_VALIDATED", "reviewer": "simulated_expert_1"},
        corrected,
        corrected | {"vouched": ["dominant_type"]},
        corrected,
    ]
    for doc_id, record in zip(accepted, records, strict=False):
        path = folder / "ground_truth" / f"gt_{doc_id}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | record))
    unquoted = json.loads((path := folder / "ground_truth" / f"gt_{accepted[4]}.json").read_text())
    for row in unquoted["ground_truth_classification"]["segments"][0]["segment_composition"]:
        row["top_evidence"] = []
    path.write_text(json.dumps(unquoted))
    broken = folder / "ground_truth" / f"gt_{accepted[5]}.json"
    broken.write_text("{")
    made = challenge([folder], kinds=["segment-count"], limit=1)
    supplied = made.clean_counts[AnswerOrigin.SUPPLIED]
    assert supplied == 1, "of the classifications of other systems one was accepted"
    assert made.clean_counts == {
        "validated": 1,
        "simulated": 1,
        "corrected": 1,
        "supplied": supplied,
        "unvalidated": len(accepted) - supplied - 5,
    }
    assert made.left_out_doc_ids[LEFT_OUT_CORRECTION] == tuple(sorted(accepted[3:5]))
    escalated = [one.doc_id for one in demo_run.documents if one.decision == "ESCALATE_TO_SME"]
    assert made.left_out_doc_ids[LEFT_OUT_ESCALATED] == tuple(sorted(escalated))
    assert [broken.name in problem for problem in made.problems] == [True]


def test_a_document_that_is_named_twice_counts_once(demo_run: RunSummary) -> None:
    once, twice = (challenge([demo_run.output] * n, kinds=["segment-count"], limit=50) for n in (1, 2))
    assert (once.clean_document_count, len(once.cases)) == (twice.clean_document_count, len(twice.cases))


def test_undefined_share_is_null_in_json() -> None:
    single = CleanAnswer(
        document(NOTE_PAGE), parse_answer(one_segment(NOTE, 1, evidence("The patient reports no fever", 1)))
    )
    made = plant([single], "merged,segment-count", max_cases_per_kind=1).to_json()
    assert {row["kind"]: row["share"] for row in made["kinds"]} == {"merged": None, "segment-count": 1.0}
    json.dumps(made, allow_nan=False)


def test_pdfs_count_if_accepted_or_with_supplied_answer(samples: Path, tmp_path: Path) -> None:
    paths = [samples / "clinical_note.pdf", samples / "quest_cbc.pdf"]
    table = challenge(paths, kinds=["segment-count", "quote-invented"], limit=3).to_frame()
    assert list(table["caught"]) == [3, 3]
    given = samples / "classifications" / "segment_count.json"
    (tmp_path / given.name).write_text(given.read_text())
    words = [samples / "segment_count.pdf", samples / "poor_scan.pdf", tmp_path / "gone"]
    without_ocr = Settings.load(ocr="none")
    made = challenge(words, settings=without_ocr, classifications=tmp_path, kinds=["merged"], limit=3)
    assert (made.clean_document_count, [alarm.codes for alarm in made.false_alarms]) == (1, [("V1-SEGMENT-COUNT",)])
    assert made.left_out_doc_ids == {LEFT_OUT_ESCALATED: ("poor_scan",)}
    assert ["gone" in problem for problem in made.problems] == [True]


@pytest.mark.parametrize(
    ("words", "code"),
    [({"kinds": ["nonsense"]}, "CHALLENGE-KIND"), ({"model": "nobody:x"}, None), ({}, "CHALLENGE-NOTHING")],
)
def test_what_cannot_be_challenged_is_said(tmp_path: Path, words: dict, code: str | None) -> None:
    (tmp_path / "results").mkdir()
    with pytest.raises(UsageError) as refused:
        challenge([tmp_path], **words)
    assert refused.value.remedy
    assert code in (None, refused.value.code)


def test_a_language_model_is_asked_and_its_costs_are_told(
    demo_run: RunSummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One document is asked about far more often than its limit of calls lets a run; the run's own limit holds."""
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    with GeminiServer(lambda call: '{"findings": []}') as server:
        words = {"models": {"default": "gemini:gemini-2.5-flash"}, "gemini_base_url": server.url}
        asked = Settings.load(**words)
        made = challenge([demo_run.output], settings=asked, kinds=["evidence-courtesy"], limit=20)
        limited = Settings.load(**words, limits={"calls_per_run": 10})
        few = challenge([demo_run.output], settings=limited, kinds=["evidence-courtesy"], limit=20)
        calls = len(server.calls)
        forgiving = limited.model_copy(update={"on_agent_failure": "ignore"})
        same = challenge([demo_run.output], settings=forgiving, kinds=["evidence-courtesy"], limit=20)
    assert made.model == "gemini:gemini-2.5-flash"
    assert (len(made.cases), made.false_alarms) == (20, ())
    assert not any(case.caught for case in made.cases)  # it never finds anything
    assert set(made.usage_by_agent) == {"V2", "V3", "V4"}
    assert all(Decimal(usage.cost_usd or 0) > 0 for usage in made.usage_by_agent.values())
    spent = sum(usage.calls for usage in (*made.usage_by_agent.values(), *few.usage_by_agent.values()))
    assert spent == calls
    assert sum(usage.calls for usage in few.usage_by_agent.values()) <= 10
    assert not any(case.caught for case in few.cases)
    assert few.false_alarms == ()
    assert few.clean_document_count + len(few.problems) == made.clean_document_count
    assert few.problems
    assert (same.clean_document_count, same.problems) == (few.clean_document_count, few.problems), (
        "a site's setting changes nothing here"
    )


def test_nothing_of_the_documents_is_told() -> None:
    told = json.dumps(plant([packet()], max_cases_per_kind=2).to_json(), default=str)
    assert not any(word in told for word in ("c.5266dupC", "headache", "Acme Genomics"))
