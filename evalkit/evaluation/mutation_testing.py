"""Are the checks awake? Faults planted one at a time into classifications that are right, and who catches them.

Each kind of fault is a row of :mod:`evalkit.evaluation.faults`. A fault is caught if a person sees the document because
of it: a new BLOCKER or MAJOR issue, and the decision to escalate. One that a repair undoes, so that the answer is the
clean one again, is caught as well; one that a repair turns into another answer is not. A verifier that could not
answer has caught nothing.

A fault that another issue catches than the kind names is caught, and counted as such as well: who is named may sleep.
An alarm about a clean answer is false only if somebody else than the program says that the answer is right.
``on_agent_failure`` is ``escalate`` here, whatever a site has set: with ``ignore`` a verifier that could not answer would
look like one that saw nothing.

Nothing is written, and nothing of what documents say is told: cases carry codes and counts.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.findings import is_agent_failure_issue
from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.patient_check import ANY_PATIENT, PatientExpectation
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v2_consistency import MIXTURE_TOLERANCE
from evalkit.classification.v5_arbiter import Decision
from evalkit.core.grouping import group_by
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import DocumentError, StoreError, UsageError
from evalkit.evaluation.faults import (
    FAULT_BY_ID,
    FAULTS,
    AnswerOrigin,
    CleanAnswer,
    FaultNotApplicableError,
    MutatedAnswer,
    MutationOperator,
)
from evalkit.evaluation.ground_truth_table import GroundTruthDocument, read_folder_ground_truth
from evalkit.evaluation.intervals import Estimate, estimate_proportion
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.model import Usage
from evalkit.pipeline.document_discovery import SourceDocument, discover_documents
from evalkit.pipeline.event_loop import run_sync
from evalkit.pipeline.executor.reader_pool import ReaderPool
from evalkit.pipeline.model_session import ModelSession
from evalkit.pipeline.run_setup import build_reader_config, create_orchestrator
from evalkit.pipeline.supplied_labels import read_supplied_classifications
from evalkit.review.loaders import read_bundle, read_result
from evalkit.settings import LimitSettings, Settings
from evalkit.store import RESULTS_FOLDER, encode_canonical_json, open_output_folder, parse_output_location

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
_Evaluate = Callable[[DocumentBundle, Any], Awaitable[ClassificationOutcome]]
"""Verifies an answer about a document, or classifies it where there is none."""

DEFAULT_MAX_CASES = 40
"""Cases of a kind, unless said otherwise: enough to tell 90 % from 100 %."""
DEFAULT_MAX_PLACES = 8
"""Cases of a kind in one document, at most."""
OUTCOME_NAMES = ("escalated", "undone", "repaired_otherwise", "missed")
_STRUCTURE_PARTS = frozenset({"dominant_type", "segments"})
"""What an expert must vouch for, that a correction is known to be right."""
_MAX_PLANTING_ATTEMPTS = 3
"""A place that does not apply is drawn again so often."""
_BUNDLE_TIMESTAMP = "1970-01-01T00:00:00Z"
"""Bundles that are read here are not kept."""

KIND_COLUMNS = (
    *("kind", "what", "nature", "seen_by", "n", "caught", "share", "low", "high"),
    *("escalated", "undone", "repaired_otherwise", "missed", "unanswered", "caught_by", "caught_by_other", "skipped"),
)


@dataclass(frozen=True)
class JudgedMutation:
    """One fault, planted once."""

    doc_id: str
    kind: str
    nature: str
    place: int
    """Which of the places in that document, from 0."""
    caught: bool
    caught_by_other: bool
    """Caught, but by none of the issues that the kind names."""
    outcome: str
    """``escalated``, ``undone`` (repaired into the clean answer), ``repaired_otherwise``, ``missed``."""
    severity: str | None
    """The worst of the new issues."""
    agents: tuple[str, ...]
    """Who raised a new BLOCKER or MAJOR issue."""
    codes: tuple[str, ...]
    """Of these issues."""
    decision: str
    decision_rule: str
    unanswered: bool
    """A verifier could not answer; what it might have seen counts as not seen."""


LEFT_OUT_ESCALATED = "not accepted, and nobody says what is right"
LEFT_OUT_CORRECTION = "an expert's correction that leaves segments unvouched or unquoted"
NOT_COUNTED_REASONS = {
    AnswerOrigin.UNVALIDATED: "the program's own answers, which nobody has validated and which may be wrong",
    AnswerOrigin.SIMULATED: "validated by a program in an expert's place",
}


@dataclass(frozen=True)
class FalseAlarm:
    """A clean document that escalates although nothing was planted, and whose answer is known to be right."""

    doc_id: str
    codes: tuple[str, ...]
    """Of its BLOCKER and MAJOR issues."""


@dataclass(frozen=True)
class MutationTestReport:
    """What came of it."""

    model: str
    clean_counts: Mapping[AnswerOrigin, int]
    """How many answers were taken for right, by who says so. Nothing is planted into those that escalate by themselves."""
    false_alarms: tuple[FalseAlarm, ...]
    """Those that escalate by themselves although somebody else than the program says that they are right."""
    cases: tuple[JudgedMutation, ...]
    skipped_counts: Mapping[str, int]
    """Documents by kind, to which it does not apply."""
    left_out_doc_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Documents that have no answer taken for right, by reason."""
    problems: tuple[str, ...] = ()
    """What could not be read: one line each."""
    usage_by_agent: Mapping[str, Usage] = field(default_factory=dict)
    """What language models were asked and paid."""

    @property
    def clean_document_count(self) -> int:
        """How many answers were taken for right."""
        return sum(self.clean_counts.values())

    @property
    def false_alarm_rate(self) -> Estimate:
        """Answers that escalate among those known to be right, with the exact 95 % interval."""
        return estimate_proportion(len(self.false_alarms), sum(self.count_clean_answers(is_counted=True).values()))

    def count_clean_answers(self, *, is_counted: bool) -> dict[AnswerOrigin, int]:
        """The origins whose answers count for false alarms, or those whose do not, with the number of answers."""
        return {
            origin: self.clean_counts[origin]
            for origin in AnswerOrigin
            if origin.is_vouched_from_outside is is_counted and self.clean_counts.get(origin)
        }

    @property
    def macro_detection_rate(self) -> float | None:
        """Mean over the kinds of the share that was caught; None where nothing was planted."""
        detection_rates = [
            sum(case.caught for case in cases) / len(cases) for cases in self._group_mutations_by_kind().values()
        ]
        return sum(detection_rates) / len(detection_rates) if detection_rates else None

    def _group_mutations_by_kind(self) -> dict[str, list[JudgedMutation]]:
        return group_by(self.cases, lambda case: case.kind)

    def tabulate_fault_kinds(self) -> pd.DataFrame:
        """One row per kind, in the table's order, kinds that applied nowhere too.

        Columns: ``kind, what, nature``; ``seen_by`` who should see it; ``n`` cases; ``caught``, ``share`` with ``low``
        and ``high``, the exact 95 % interval, which takes cases of one document for independent; ``escalated``,
        ``undone``, ``repaired_otherwise``, ``missed``: what became of them; ``unanswered``: cases in which a verifier
        could not answer; ``caught_by``: agents with the number of cases; ``caught_by_other``: cases that were caught, but
        by no issue of ``seen_by``; ``skipped``: documents it does not apply to.
        """
        import pandas as pd

        return pd.DataFrame(self._build_kind_rows(), columns=list(KIND_COLUMNS))

    def _build_kind_rows(self) -> list[dict[str, Any]]:
        cases_by_kind = self._group_mutations_by_kind()
        return [
            _build_kind_row(FAULT_BY_ID[kind], cases_by_kind.get(kind, []), self.skipped_counts.get(kind, 0))
            for kind in FAULT_BY_ID
            if kind in cases_by_kind or kind in self.skipped_counts
        ]

    def to_json(self) -> dict[str, Any]:
        """All of it, for a program."""
        false_alarm_rate = self.false_alarm_rate
        return {
            "model": self.model,
            "documents": self.clean_document_count,
            "false_alarms": {
                "counted": self.count_clean_answers(is_counted=True),
                "not_counted": self.count_clean_answers(is_counted=False),
                "documents": [vars(alarm) for alarm in self.false_alarms],
                "share": false_alarm_rate.value,
                "low": false_alarm_rate.low,
                "high": false_alarm_rate.high,
            },
            "macro": self.macro_detection_rate,
            "kinds": self._build_kind_rows(),
            "cases": [vars(case) for case in self.cases],
            "left_out": {reason: list(doc_ids) for reason, doc_ids in self.left_out_doc_ids.items()},
            "problems": list(self.problems),
            "by_agent": {agent: vars(usage) for agent, usage in self.usage_by_agent.items()},
        }


def _build_kind_row(operator: MutationOperator, cases: Sequence[JudgedMutation], skipped_count: int) -> dict[str, Any]:
    detection_rate = estimate_proportion(sum(case.caught for case in cases), len(cases))
    outcome_counts = Counter(case.outcome for case in cases)
    agent_counts = Counter(agent for case in cases if case.caught for agent in case.agents)
    return {
        "kind": operator.fault_id,
        "what": operator.description,
        "nature": operator.nature,
        "seen_by": ", ".join(operator.expected_codes),
        "n": len(cases),
        "caught": sum(case.caught for case in cases),
        "share": detection_rate.value,
        "low": detection_rate.low,
        "high": detection_rate.high,
        **{outcome_name: outcome_counts[outcome_name] for outcome_name in OUTCOME_NAMES},
        "unanswered": sum(case.unanswered for case in cases),
        "caught_by": ", ".join(f"{agent} {agent_counts[agent]}" for agent in sorted(agent_counts)),
        "caught_by_other": sum(case.caught_by_other for case in cases),
        "skipped": skipped_count,
    }


def challenge(
    paths: Iterable[Path | str],
    *,
    model: str | None = None,
    classifications: Path | str | None = None,
    kinds: Iterable[str] = (),
    limit: int = DEFAULT_MAX_CASES,
    seed: int = 0,
    settings: Settings | None = None,
) -> pd.DataFrame:
    """:func:`run_mutation_test`, as a table with one row per kind of fault (``MutationTestReport.tabulate_fault_kinds``)."""
    run_settings = settings or Settings.load(models={"default": model} if model is not None else None)
    report = run_mutation_test(
        paths, run_settings, classifications_folder=classifications, kinds=kinds, max_cases_per_kind=limit, seed=seed
    )
    return report.tabulate_fault_kinds()


def run_mutation_test(
    paths: Iterable[Path | str],
    settings: Settings,
    *,
    classifications_folder: Path | str | None = None,
    kinds: Iterable[str] = (),
    max_cases_per_kind: int = DEFAULT_MAX_CASES,
    seed: int = 0,
) -> MutationTestReport:
    """Plant faults into classifications that are right, and see who catches them. Nothing is written.

    Args:
        paths: output folders, of which the documents count that were accepted or that experts validated or corrected;
            PDF files and folders of PDFs, which are read and classified, and count if they are accepted.
        settings: name the models. Limits for a document count for nothing here, as one document is asked about often;
            those of a run hold. ``on_agent_failure`` counts as ``escalate``.
        classifications_folder: folder with ``{doc_id}.json``: right answers for PDFs, instead of asking.
        kinds: names of kinds, or ``structural``, ``quote``, ``semantic``; none: all.
        max_cases_per_kind: so many cases of each kind at most.
        seed: the same seed plants the same faults.

    Raises:
        UsageError: no such kind, no such path, or no classification that is taken for right.
    """
    return run_sync(
        _run_mutation_test(
            list(paths), settings, classifications_folder, select_mutation_operators(kinds), max_cases_per_kind, seed
        )
    )


def select_mutation_operators(kind_or_nature_names: Iterable[str]) -> list[MutationOperator]:
    """The faults of these kinds or natures, in the table's order; all, where none is named. UsageError."""
    wanted_names = set(kind_or_nature_names)
    natures = {operator.nature for operator in FAULTS}
    if unknown_names := sorted(wanted_names - FAULT_BY_ID.keys() - natures):
        raise UsageError(
            f"there is no kind of fault {', '.join(unknown_names)}",
            code="CHALLENGE-KIND",
            remedy=f"There are {', '.join(sorted(natures))}, or {', '.join(FAULT_BY_ID)}.",
        )
    return [
        operator
        for operator in FAULTS
        if not wanted_names or operator.fault_id in wanted_names or operator.nature in wanted_names
    ]


async def _run_mutation_test(
    paths: Sequence[Path | str],
    settings: Settings,
    classifications_folder: Path | str | None,
    operators: Sequence[MutationOperator],
    max_cases_per_kind: int,
    seed: int,
) -> MutationTestReport:
    run_limits = {
        limit_name: run_limit
        for limit_name, run_limit in settings.limits.model_dump().items()
        if limit_name.endswith("_per_run")
    }
    document_limits = LimitSettings(calls_per_document=0)
    run_settings = settings.model_copy(
        update={"limits": document_limits.model_copy(update=run_limits), "on_agent_failure": "escalate"}
    )
    problems: list[str] = []
    left_out_doc_ids: dict[str, list[str]] = {}
    async with ModelSession(run_settings) as model_session:
        orchestrator = create_orchestrator(
            run_settings, model_session, include_rule_findings=False
        )  # what is computed would hide that a model sleeps
        patient_expectation = PatientExpectation(run_settings.patients)
        max_concurrent = run_settings.calls_in_flight if model_session.has_language_models else 1
        folder_paths, pdf_paths = _partition_paths(paths)
        clean_answers = [
            clean_answer
            for folder_path in folder_paths
            for clean_answer in iterate_clean_answers(folder_path, problems, left_out_doc_ids)
        ]
        if pdf_paths:
            clean_answers += await _classify_pdfs(
                pdf_paths,
                run_settings,
                partial(orchestrator.evaluate, patient_expectation=patient_expectation),
                classifications_folder,
                problems,
                left_out_doc_ids,
            )
        # Folders that are named twice, or that have the same document, count it once, by the best word for it.
        clean_answers = list(
            {
                (candidate.bundle.sha256, encode_canonical_json(candidate.classification.to_json())): candidate
                for candidate in sorted(clean_answers, key=lambda answer: answer.origin.is_vouched_from_outside)
            }.values()
        )
        if not clean_answers:
            raise UsageError(
                "nothing here has a classification that is taken for right" + (f" ({problems[0]})" if problems else ""),
                code="CHALLENGE-NOTHING",
                remedy="Name an output folder with accepted documents, or PDFs with their --classifications.",
            )
        report = await plant_and_judge_mutations(
            clean_answers,
            orchestrator,
            operators,
            max_cases_per_kind=max_cases_per_kind,
            seed=seed,
            max_concurrent=max_concurrent,
            patient_expectation=patient_expectation,
        )
    return replace(
        report,
        model=run_settings.models.default,
        left_out_doc_ids={reason: tuple(sorted(doc_ids)) for reason, doc_ids in left_out_doc_ids.items()},
        problems=(*problems, *report.problems),
        usage_by_agent=model_session.ledger.usage_by_role,
    )


def _partition_paths(paths: Iterable[Path | str]) -> tuple[list[Path | str], list[Path]]:
    """Output folders, and whatever else."""
    folder_paths, other_paths = [], []
    for path in map(parse_output_location, paths):
        if isinstance(path, str) or open_output_folder(path).has_folder(RESULTS_FOLDER):
            folder_paths.append(path)
        else:
            other_paths.append(path)
    return folder_paths, other_paths


def iterate_clean_answers(
    folder_path: Path | str, collected_problems: list[str], collected_left_out: dict[str, list[str]]
) -> Iterator[CleanAnswer]:
    """Yield the answers of an output folder that an expert stands for, or that were accepted.

    A correction counts where the expert vouches for type and segments and each type is quoted: else the answer before
    it was wrong, and what is right is not all known.
    """
    output_folder = open_output_folder(folder_path)
    ground_truth = read_folder_ground_truth(folder_path)
    collected_problems += ground_truth.problems
    truth_by_doc_id = {document.record.doc_id: document for document in ground_truth.documents}
    for file_name in output_folder.list_json_files(RESULTS_FOLDER):
        doc_id = Path(file_name).stem
        try:
            result = read_result(output_folder, doc_id)
            if not isinstance(result, DocumentResult):
                continue
            answer = _choose_clean_answer(result, truth_by_doc_id.get(doc_id))
            if isinstance(answer, str):
                collected_left_out.setdefault(answer, []).append(doc_id)
            else:
                yield CleanAnswer(read_bundle(output_folder, doc_id), *answer)
        except StoreError as error:
            collected_problems.append(f"{doc_id}: {error}")


def _choose_clean_answer(
    result: DocumentResult, truth: GroundTruthDocument | None
) -> tuple[ClassificationOutput, AnswerOrigin] | str:
    """The answer about a document that is taken for right, and who says so; or why there is none."""
    if truth is not None and truth.record.ground_truth_classification.segments:
        answer = truth.record.ground_truth_classification
        is_corrected = truth.record.ground_truth_source == "SME_CORRECTED"
        if is_corrected and not (_STRUCTURE_PARTS.issubset(truth.record.vouched) and _is_each_type_quoted(answer)):
            return LEFT_OUT_CORRECTION
        if truth.is_simulated:
            return answer, AnswerOrigin.SIMULATED
        return answer, AnswerOrigin.CORRECTED if is_corrected else AnswerOrigin.VALIDATED
    if result.decision is not Decision.AUTO_ACCEPT or not (result.classification and result.classification.segments):
        return LEFT_OUT_ESCALATED
    is_supplied = "classifier" not in result.usage.by_agent
    return result.classification, AnswerOrigin.SUPPLIED if is_supplied else AnswerOrigin.UNVALIDATED


def _is_each_type_quoted(answer: ClassificationOutput) -> bool:
    return all(
        any(row.top_evidence for row in segment.segment_composition if row.document_type is segment.dominant_type)
        for segment in answer.segments
    )


async def _classify_pdfs(
    pdf_paths: Sequence[Path],
    settings: Settings,
    evaluate: _Evaluate,
    classifications_folder: Path | str | None,
    collected_problems: list[str],
    collected_left_out: dict[str, list[str]],
) -> list[CleanAnswer]:
    discovered_documents = discover_documents(pdf_paths, {})
    collected_problems += [str(problem) for problem in discovered_documents.problems]
    supplied_classifications: Mapping[str, Any] = {}
    if classifications_folder is not None:
        supplied_classifications, label_problems = read_supplied_classifications(
            Path(classifications_folder), discovered_documents.sources
        )
        collected_problems += [str(problem) for problem in label_problems]
    reader_config = build_reader_config(settings)

    async def read_and_classify(source: SourceDocument, reader_pool: ReaderPool) -> CleanAnswer | None:
        try:
            if source.read_error:
                raise source.read_error
            bundle = (
                await reader_pool.read(source.path, doc_id=source.doc_id, processing_timestamp=_BUNDLE_TIMESTAMP)
            ).bundle
        except DocumentError as error:
            collected_problems.append(f"{source.doc_id}: {error}")
            return None
        outcome = await evaluate(bundle, supplied_classifications.get(source.doc_id))
        is_supplied = source.doc_id in supplied_classifications
        is_trusted = is_supplied or outcome.verdict.decision is Decision.AUTO_ACCEPT
        if outcome.classification is None or not is_trusted:
            collected_left_out.setdefault(LEFT_OUT_ESCALATED, []).append(source.doc_id)
            return None
        origin = AnswerOrigin.SUPPLIED if is_supplied else AnswerOrigin.UNVALIDATED
        return CleanAnswer(bundle, outcome.classification, origin)

    with ReaderPool(settings.workers or 1, reader_config) as reader_pool:
        clean_answers = await _gather_bounded(
            [partial(read_and_classify, source, reader_pool) for source in discovered_documents.sources], 2
        )
    return [clean_answer for clean_answer in clean_answers if clean_answer is not None]


async def _gather_bounded(jobs: Sequence[Callable[[], Awaitable[T]]], max_concurrent: int) -> list[T]:
    """Their results in their order, so many under way at once."""
    semaphore = asyncio.Semaphore(max_concurrent)

    async def run_job(job: Callable[[], Awaitable[T]]) -> T:
        async with semaphore:
            return await job()

    return list(await asyncio.gather(*map(run_job, jobs)))


# ---------------------------------------------------------------------------------------------------------------------
# Planting and judging


async def plant_and_judge_mutations(
    clean_answers: Sequence[CleanAnswer],
    orchestrator: RetryOrchestrator,
    operators: Sequence[MutationOperator] = FAULTS,
    *,
    max_cases_per_kind: int = DEFAULT_MAX_CASES,
    seed: int = 0,
    max_places_per_document: int = DEFAULT_MAX_PLACES,
    max_concurrent: int = 1,
    patient_expectation: PatientExpectation = ANY_PATIENT,
) -> MutationTestReport:
    """Plant these faults into these classifications, at ``max_places_per_document`` places of each document at most.

    Documents are taken in an order that the seed gives, so that a limit favours none. ``patient_expectation``: what is
    known about the patients of every file.
    """
    evaluate = partial(orchestrator.evaluate, patient_expectation=patient_expectation)
    clean_outcomes = await _gather_bounded(
        [partial(evaluate, candidate.bundle, candidate.classification.to_json()) for candidate in clean_answers],
        max_concurrent,
    )
    evaluated_pairs = list(zip(clean_answers, clean_outcomes, strict=True))
    # Where a verifier could not answer about the clean document, nobody knows whether it would have escalated.
    answered_pairs = [pair for pair in evaluated_pairs if not pair[1].unanswered]
    unanswered_problems = [
        f"{clean_answer.bundle.doc_id}: a verifier could not answer about it"
        for clean_answer, clean_outcome in evaluated_pairs
        if clean_outcome.unanswered
    ]
    accepted_pairs = [pair for pair in answered_pairs if pair[1].verdict.decision is Decision.AUTO_ACCEPT]
    false_alarms = [
        _build_false_alarm(clean_answer, clean_outcome)
        for clean_answer, clean_outcome in answered_pairs
        if clean_outcome.verdict.decision is not Decision.AUTO_ACCEPT and clean_answer.origin.is_vouched_from_outside
    ]
    skipped_counts: Counter[str] = Counter()
    mutations: list[_PlantedMutation] = []
    for operator in operators:
        mutations += _plant_faults_of_kind(
            operator, accepted_pairs, max_places_per_document, max_cases_per_kind, seed, skipped_counts
        )
        skipped_counts[operator.fault_id] += 0
    cases = await _gather_bounded(
        [partial(_judge_mutation, evaluate, candidate) for candidate in mutations], max_concurrent
    )
    return MutationTestReport(
        "",
        Counter(clean_answer.origin for clean_answer, _ in answered_pairs),
        tuple(false_alarms),
        tuple(cases),
        dict(skipped_counts),
        problems=tuple(unanswered_problems),
    )


@dataclass(frozen=True)
class _PlantedMutation:
    """A case before it is judged."""

    operator: MutationOperator
    mutated_answer: MutatedAnswer
    clean_outcome: ClassificationOutcome
    place: int


def _plant_faults_of_kind(
    operator: MutationOperator,
    accepted_pairs: Sequence[tuple[CleanAnswer, ClassificationOutcome]],
    max_places: int,
    max_case_count: int,
    seed: int,
    collected_skipped_counts: Counter[str],
) -> Iterator[_PlantedMutation]:
    """Up to ``max_case_count`` cases of one kind: one place of each document, then another of each, and no case twice."""
    shuffled_pairs = sorted(
        accepted_pairs, key=lambda pair: _create_random_source(seed, operator.fault_id, pair[0].bundle.sha256).random()
    )
    seen_digests: set[str] = set()
    case_count = 0
    for place in range(max_places):
        for clean_answer, clean_outcome in shuffled_pairs:
            if case_count >= max_case_count:
                return
            mutated_answer = _plant_fault(
                operator,
                clean_answer,
                _create_random_source(seed, operator.fault_id, clean_answer.bundle.sha256, place),
            )
            if mutated_answer is None:
                collected_skipped_counts[operator.fault_id] += place == 0
                continue
            if (content_digest := _digest_visible_content(mutated_answer)) not in seen_digests:
                seen_digests.add(content_digest)
                case_count += 1
                yield _PlantedMutation(operator, mutated_answer, clean_outcome, place)


def _digest_visible_content(mutated_answer: MutatedAnswer) -> str:
    """Of all that a check can see."""
    page_texts = [[block.text for block in page.blocks] for page in mutated_answer.bundle.pages]
    return hashlib.sha256(
        encode_canonical_json([mutated_answer.bundle.sha256, mutated_answer.answer_json, page_texts])
    ).hexdigest()


def _create_random_source(*seed_parts: object) -> random.Random:
    return random.Random(":".join(map(str, seed_parts)))  # noqa: S311 - it draws places, no secrets


def _plant_fault(
    operator: MutationOperator, clean_answer: CleanAnswer, random_source: random.Random
) -> MutatedAnswer | None:
    for _ in range(_MAX_PLANTING_ATTEMPTS):
        mutated_answer = MutatedAnswer.from_clean_answer(clean_answer)
        with suppress(FaultNotApplicableError):
            operator.plant(mutated_answer, random_source)
            return mutated_answer
    return None


async def _judge_mutation(evaluate: _Evaluate, mutation: _PlantedMutation) -> JudgedMutation:
    mutated_answer, operator = mutation.mutated_answer, mutation.operator
    mutated_outcome = await evaluate(mutated_answer.bundle, mutated_answer.answer_json)
    new_issues = _find_new_issues(mutation.clean_outcome, mutated_outcome)
    outcome = _determine_outcome_name(mutated_answer.clean_answer.classification, mutated_outcome, new_issues)
    is_caught, agents = outcome in ("escalated", "undone"), {issue.agent for issue in new_issues}
    return JudgedMutation(
        doc_id=mutated_answer.bundle.doc_id,
        kind=operator.fault_id,
        nature=operator.nature,
        place=mutation.place,
        caught=is_caught,
        caught_by_other=is_caught and not any(issue.code.startswith(operator.expected_codes) for issue in new_issues),
        outcome=outcome,
        severity=min((issue.severity for issue in new_issues), key=lambda severity: severity.rank, default=None),
        agents=tuple(sorted(agents)),
        codes=tuple(sorted({issue.code for issue in new_issues})),
        decision=mutated_outcome.verdict.decision.value,
        decision_rule=mutated_outcome.verdict.rule,
        unanswered=bool(mutated_outcome.unanswered),
    )


def _build_false_alarm(clean_answer: CleanAnswer, clean_outcome: ClassificationOutcome) -> FalseAlarm:
    grave_issues = (issue for issue in clean_outcome.issues if issue.severity is not IssueSeverity.MINOR)
    return FalseAlarm(clean_answer.bundle.doc_id, tuple(sorted({issue.code for issue in grave_issues})))


def _find_new_issues(clean_outcome: ClassificationOutcome, mutated_outcome: ClassificationOutcome) -> list[Issue]:
    """BLOCKER and MAJOR issues, repaired ones too, that were not there before; failures of agents are none."""

    def encode_content(issue: Issue) -> str:
        return issue.model_dump_json(exclude={"issue_id", "status"})

    unmatched_counts = Counter(map(encode_content, clean_outcome.issues))
    new_issues = []
    for issue in mutated_outcome.issues:
        if issue.severity is IssueSeverity.MINOR or is_agent_failure_issue(issue):
            continue
        unmatched_counts[encode_content(issue)] -= 1
        if unmatched_counts[encode_content(issue)] < 0:
            new_issues.append(issue)
    return new_issues


def _determine_outcome_name(
    clean_classification: ClassificationOutput, mutated_outcome: ClassificationOutcome, new_issues: Sequence[Issue]
) -> str:
    if mutated_outcome.verdict.decision is not Decision.AUTO_ACCEPT:
        return "escalated" if new_issues else "missed"  # an agent failed; had it answered, it might have said nothing
    if not any(issue.status == "repaired" for issue in new_issues):
        return "missed"
    return (
        "undone"
        if mutated_outcome.classification
        and is_nearly_same_classification(clean_classification, mutated_outcome.classification)
        else "repaired_otherwise"
    )


def is_nearly_same_classification(first: ClassificationOutput, second: ClassificationOutput) -> bool:
    """Whether two answers are the same, but for shares that differ by no more than V2 lets them (0.05)."""
    (first_answer, first_shares), (second_answer, second_shares) = _separate_shares(first), _separate_shares(second)
    are_shares_close = all(
        abs(a - b) <= float(MIXTURE_TOLERANCE) for a, b in zip(first_shares, second_shares, strict=False)
    )
    return first_answer == second_answer and are_shares_close


def _separate_shares(classification: ClassificationOutput) -> tuple[dict[str, Any], list[float]]:
    """The answer without its shares, types sorted, and the shares in that order."""
    answer_json = classification.to_json()
    shares: list[float] = []
    for rows, share_key in [
        *((segment["segment_composition"], "segment_share") for segment in answer_json["segments"]),
        (answer_json["document_mixture"], "overall_share"),
    ]:
        rows.sort(key=lambda row: row["document_type"])
        shares += [row.pop(share_key) for row in rows]
    return answer_json, shares


def format_report_table_and_summary(report: MutationTestReport) -> tuple[tuple[str, ...], list[list[str]], list[str]]:
    """For a terminal: columns, a row for each kind, and what is said below the table."""
    table_rows = [
        [
            row["kind"],
            row["what"],
            str(row["n"]),
            f"{100 * row['share']:.1f} %" if row["n"] else "",
            f"{100 * row['low']:.0f}–{100 * row['high']:.0f}" if row["n"] else "",
            row["caught_by"],
            str(row["caught_by_other"] or ""),
            ", ".join(
                f"{row[outcome_name]} {outcome_name.replace('_', ' ')}"
                for outcome_name in OUTCOME_NAMES[1:]
                if row[outcome_name]
            ),
            str(row["skipped"] or ""),
        ]
        for row in report.tabulate_fault_kinds().to_dict("records")
    ]
    planted_kind_count = len({case.kind for case in report.cases})
    summary_lines = [
        f"{len(report.cases)} cases"
        + (
            ""
            if report.macro_detection_rate is None
            else f", {100 * report.macro_detection_rate:.1f} % caught on the mean of {planted_kind_count} kinds"
        )
        + (
            f"; {len(table_rows) - planted_kind_count} kinds apply to none of these documents"
            if planted_kind_count < len(table_rows)
            else ""
        )
    ]
    summary_lines += _describe_false_alarms(report)
    if caught_by_other_count := sum(case.caught_by_other for case in report.cases):
        summary_lines.append(
            f"By another: {caught_by_other_count} cases were caught, but by no issue that should see that kind; without those that did "
            "they would pass"
        )
    summary_lines += [
        f"Left out, {reason}: {len(doc_ids)}" for reason, doc_ids in sorted(report.left_out_doc_ids.items())
    ]
    if unanswered_count := sum(case.unanswered for case in report.cases):
        summary_lines.append(
            f"In {unanswered_count} cases a verifier could not answer; it has caught nothing in them (on_agent_failure counts as "
            "escalate here)"
        )
    return (
        ("kind", "what is wrong", "n", "caught", "95 %", "by", "by another", "else", "n/a to"),
        table_rows,
        summary_lines,
    )


def _describe_false_alarms(report: MutationTestReport) -> Iterator[str]:
    """Say how many answers are known to be right, how many of them escalate, and which are not counted and why."""
    counted = report.count_clean_answers(is_counted=True)
    rate = report.false_alarm_rate
    if rate.value is None:
        yield "False alarms: not known, as no answer was supplied by another system or validated by an expert"
    else:
        code_counts = Counter(code for alarm in report.false_alarms for code in alarm.codes)
        codes = ", ".join(f"{code} {code_count}" for code, code_count in sorted(code_counts.items()))
        yield (
            f"False alarms: {len(report.false_alarms)} of {sum(counted.values())} answers "
            f"({', '.join(f'{count} {origin}' for origin, count in counted.items())}) escalate although nothing was planted, "
            f"{100 * rate.value:.1f} % (95 % interval {100 * rate.low:.1f} to {100 * rate.high:.1f}){codes and f': {codes}'}"
        )
    for origin, count in report.count_clean_answers(is_counted=False).items():
        yield f"Not counted for false alarms, {NOT_COUNTED_REASONS[origin]}: {count}"
