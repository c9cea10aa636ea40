"""Planted faults: each is what it says, and who catches it is told truly."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
from benchmarks.quote_alterations import list_planted_pages
from builders import (
    GENOMIC,
    NOTE,
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
from evalkit.errors import UsageError
from evalkit.evaluation.faults import (
    FAULT_BY_ID,
    FAULTS,
    CleanAnswer,
    FaultNotApplicableError,
    MutatedAnswer,
    load_fault_texts,
)
from evalkit.evaluation.mutation_testing import (
    KIND_COLUMNS,
    JudgedMutation,
    MutationTestReport,
    challenge,
    format_report_table_and_summary,
    is_nearly_same_classification,
    plant_and_judge_mutations,
    run_mutation_test,
    select_mutation_operators,
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


def slides() -> CleanAnswer:
    return CleanAnswer(doc2_6(), parse_answer(doc2_6_answer()))


def plant(
    cleans: Sequence[CleanAnswer], kinds: str = "", model: Model | None = None, **options: int
) -> MutationTestReport:
    faults = select_mutation_operators(filter(None, kinds.split(",")))
    return asyncio.run(
        plant_and_judge_mutations(cleans, RetryOrchestrator(model, include_rule_findings=False), faults, **options)
    )


@cache
def everything() -> MutationTestReport:
    return plant([slides(), packet()], max_cases_per_kind=6, max_places_per_document=4)


def shares(made: MutationTestReport) -> Mapping[str, tuple[int, int]]:
    return {row["kind"]: (row["caught"], row["n"]) for row in made.tabulate_fault_kinds().to_dict("records")}


# ------------------------------------------------------------------------------------------------ what is planted


def test_at_least_25_faults_with_unique_ids() -> None:
    assert len(FAULTS) == len(FAULT_BY_ID) >= 25
    assert {fault.nature for fault in FAULTS} == {"structural", "quote", "semantic"}
    assert all(fault.expected_agents and fault.description for fault in FAULTS)


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
    once, again = (plant([packet()], "structural,semantic", max_cases_per_kind=5, seed=4) for _ in range(2))
    assert once == again
    assert once.cases != plant([packet()], "structural,semantic", max_cases_per_kind=5, seed=5).cases
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
        ("label-all", "V2"),
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
    assert agent in FAULT_BY_ID[kind].expected_agents


def test_most_words_for_a_model_are_caught_seen_or_hidden() -> None:
    """Not all: no list has every wording."""
    for kind in ("instruction", "instruction-hidden"):
        cases = [case for case in everything().cases if case.kind == kind]
        assert sum(case.caught for case in cases) >= len(cases) / 2
        assert all(case.agents == ("V3",) for case in cases if case.caught)


@pytest.mark.parametrize("name", ["forms", "panels", "boilerplates", "quoting_notes"])
def test_planted_report_page_has_evidence(name: str) -> None:
    kind = {"forms": "form", "panels": "panel", "boilerplates": "boilerplate", "quoting_notes": "quoted"}[name]
    for text in load_fault_texts()[name]:
        only_it = {**load_fault_texts(), name: [text]}
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("evalkit.evaluation.faults.load_fault_texts", lambda said=only_it: said)
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
    assert shares(asleep)["label-all"][0] > 0, "that the pages do not perform the act is computed without a model"
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
    assert FAULT_BY_ID["evidence-courtesy"].expected_agents == ("V4",)
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
    rows = {row["kind"]: row for row in made.tabulate_fault_kinds().to_dict("records")}
    assert (rows["merged"]["n"], rows["merged"]["skipped"]) == (0, 1)
    assert (rows["trap-vendor"]["n"], rows["trap-vendor"]["skipped"]) == (0, 1)
    assert rows["segment-count"]["skipped"] == 0
    assert list(made.tabulate_fault_kinds().columns) == list(KIND_COLUMNS)


def test_the_table_says_what_was_counted() -> None:
    def case(kind: str, outcome: str, by_other: bool = False) -> JudgedMutation:
        caught = outcome in ("escalated", "undone")
        return JudgedMutation(
            "d", kind, "quote", 0, caught, by_other, outcome, "MAJOR", ("V4",), ("V4-X",), "AUTO_ACCEPT", "7", False
        )

    made = MutationTestReport(
        "m", 4, (), (case("label", "escalated"), case("label", "missed"), case("merged", "undone", True)), {}
    )
    assert made.macro_detection_rate == pytest.approx(0.75)
    assert shares(made) == {"label": (1, 2), "merged": (1, 1)}
    head, rows, tail = format_report_table_and_summary(made)
    assert len(rows[0]) == len(head)
    assert rows[0][:4] == ["label", FAULT_BY_ID["label"].description, "2", "50.0 %"]
    assert rows[0][-2] == "1 missed"
    assert [row[head.index("by another")] for row in rows] == ["", "1"]
    assert any(line.startswith("By another: 1 cases were caught, but by none") for line in tail)
    assert [row["caught_by_other"] for row in made.to_json()["kinds"]] == [0, 1]
    assert "75.0 % caught on the mean of 2 kinds" in tail[0]
    more = replace(made, skipped_counts={"label": 0, "merged": 0, "boundary-5": 4})
    assert format_report_table_and_summary(more)[2][0].endswith("of 2 kinds; 1 kinds apply to none of these documents")
    assert tail[1].startswith("False alarms: 0 of 4 documents")


# ------------------------------------------------------------------------------------------------ folders and files


def test_an_output_folder_is_read_and_not_touched(demo_run: RunSummary) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        files = sorted(path for path in Path(demo_run.output).rglob("*") if path.is_file())
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = state()
    made = run_mutation_test([demo_run.output], Settings.load(), kinds=["structural"], max_cases_per_kind=1)
    assert state() == before
    accepted = [one.doc_id for one in demo_run.documents if one.decision == "AUTO_ACCEPT"]
    assert made.clean_document_count == len(accepted)
    assert {case.doc_id for case in made.cases} <= set(accepted)
    assert all(case.caught for case in made.cases)
    assert made.macro_detection_rate == 1.0


def test_corrected_answers_are_left_out_and_unreadable_named(demo_run: RunSummary, tmp_path: Path) -> None:
    folder = tmp_path / "output"
    shutil.copytree(demo_run.output, folder)
    before = run_mutation_test([folder], Settings.load(), kinds=["segment-count"], max_cases_per_kind=1)
    accepted = [one.doc_id for one in demo_run.documents if one.decision == "AUTO_ACCEPT"]
    corrected, broken = (folder / "ground_truth" / f"gt_{doc_id}.json" for doc_id in accepted[:2])
    value = json.loads(corrected.read_text())
    value |= {"ground_truth_source": "SME_CORRECTED", "reviewer": "Dr. A", "vouched": ["dominant_type"], "revision": 1}
    corrected.write_text(json.dumps(value))
    broken.write_text("{")
    made = run_mutation_test([folder], Settings.load(), kinds=["segment-count"], max_cases_per_kind=1)
    assert made.clean_document_count == before.clean_document_count - 1
    assert [broken.name in problem for problem in made.problems] == [True]


def test_a_document_that_is_named_twice_counts_once(demo_run: RunSummary) -> None:
    once, twice = (
        run_mutation_test([demo_run.output] * n, Settings.load(), kinds=["segment-count"], max_cases_per_kind=50)
        for n in (1, 2)
    )
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
    table = challenge(paths, kinds=["segment-count", "quote-invented"], limit=3)
    assert list(table["caught"]) == [3, 3]
    given = samples / "classifications" / "segment_count.json"
    (tmp_path / given.name).write_text(given.read_text())
    words = [samples / "segment_count.pdf", samples / "poor_scan.pdf", tmp_path / "gone"]
    without_ocr = Settings.load(ocr="none")
    made = run_mutation_test(
        words, without_ocr, classifications_folder=tmp_path, kinds=["merged"], max_cases_per_kind=3
    )
    assert (made.clean_document_count, [alarm.codes for alarm in made.false_alarms]) == (1, [("V1-SEGMENT-COUNT",)])
    assert made.unjudged_doc_ids == ("poor_scan",)
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
        made = run_mutation_test([demo_run.output], asked, kinds=["evidence-courtesy"], max_cases_per_kind=20)
        limited = Settings.load(**words, limits={"calls_per_run": 10})
        few = run_mutation_test([demo_run.output], limited, kinds=["evidence-courtesy"], max_cases_per_kind=20)
        calls = len(server.calls)
        forgiving = limited.model_copy(update={"on_agent_failure": "ignore"})
        same = run_mutation_test([demo_run.output], forgiving, kinds=["evidence-courtesy"], max_cases_per_kind=20)
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
