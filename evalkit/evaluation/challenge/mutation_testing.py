"""Mutation-test the verifiers: inject one fault at a time, report who detects it.

Each fault kind is a row of :mod:`evalkit.evaluation.challenge.fault_kinds`. A fault is caught if a person sees the
document because of it: there is a new BLOCKER or MAJOR issue, and the decision is to escalate. A fault is also caught
if a repair restores the clean answer, but not if a repair produces a different answer. A verifier that gave no answer
has caught nothing.

A fault that is caught only by issues other than the expected codes counts as caught and is also counted separately,
because the expected check may be broken. An alarm about a clean answer counts as false only if an expert or another
system says that the answer is right. ``on_agent_failure`` is always ``escalate`` here, whatever the settings say: with
``ignore``, a verifier that gave no answer would look like a verifier that found nothing.

No file is written, and no text of a document is reported: cases carry codes and counts only.
"""

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.findings import is_agent_failure_issue
from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.patient_check import ANY_PATIENT, PatientExpectation
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v2_consistency import MIXTURE_TOLERANCE
from evalkit.classification.v5_arbiter import Decision
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import DocumentError, StoreError, UsageError
from evalkit.evaluation.challenge.fault_kinds import FAULT_BY_ID, FAULTS
from evalkit.evaluation.challenge.judge_performance import list_role_judgements
from evalkit.evaluation.challenge.mutated_answer import (
    AnswerOrigin,
    CleanAnswer,
    FaultNotApplicableError,
    MutatedAnswer,
    MutationOperator,
)
from evalkit.evaluation.challenge.report import FalseAlarm, JudgedMutation, MutationTestReport
from evalkit.evaluation.ground_truth_table import GroundTruthDocument, read_folder_ground_truth
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.prompts import compute_prompt_versions
from evalkit.pipeline.document_discovery import InputPaths, SourceDocument, discover_documents, list_paths
from evalkit.pipeline.event_loop import run_sync
from evalkit.pipeline.executor.reader_pool import ReaderPool
from evalkit.pipeline.model_session import ModelSession
from evalkit.pipeline.run_setup import build_reader_config, create_orchestrator
from evalkit.pipeline.supplied_labels import read_supplied_classifications
from evalkit.review.loaders import read_bundle, read_result
from evalkit.settings import LimitSettings, Settings
from evalkit.store import RESULTS_FOLDER, encode_canonical_json, open_output_folder, parse_output_location

T = TypeVar("T")
#: Verifies the given classification of a document; classifies the document itself if the second argument is None.
Evaluate = Callable[[DocumentBundle, Any], Awaitable[ClassificationOutcome]]


LEFT_OUT_ESCALATED = "not accepted, and no expert has said what is right"
LEFT_OUT_CORRECTION = "an expert's correction with segments that are unconfirmed or have no quote"
#: Parts that an expert must vouch for before the corrected answer counts as right.
_STRUCTURE_PARTS = frozenset({"dominant_type", "segments"})
#: Processing time of bundles read here: a constant, because these bundles are never stored.
_BUNDLE_TIMESTAMP = "1970-01-01T00:00:00Z"


def iterate_clean_answers(
    folder_path: Path | str, collected_problems: list[str], collected_left_out: dict[str, list[str]]
) -> Iterator[CleanAnswer]:
    """Yield answers that an expert confirmed or the arbiter accepted.

    A corrected answer is used only if the expert vouches for type and segments and every segment's type has a quote;
    otherwise the right answer is not completely known. Documents without a usable answer go to ``collected_left_out``
    (doc_ids by reason), unreadable files to ``collected_problems``.
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
    """Return the answer taken to be right and its origin, or a reason to leave it out."""
    if truth is not None and truth.record.ground_truth_classification.segments:
        answer = truth.record.ground_truth_classification
        is_corrected = truth.record.ground_truth_source == "SME_CORRECTED"
        if answer.has_refuted_type or (
            is_corrected and not (_STRUCTURE_PARTS.issubset(truth.record.vouched) and _is_each_type_quoted(answer))
        ):
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


async def classify_pdfs(
    pdf_paths: Sequence[Path],
    settings: Settings,
    evaluate: Evaluate,
    classifications_folder: Path | str | None,
    collected_problems: list[str],
    collected_left_out: dict[str, list[str]],
) -> list[CleanAnswer]:
    """Read PDFs; return supplied answers, or accepted answers of the classifier.

    PDFs that cannot be read go to ``collected_problems``, PDFs without an accepted answer to ``collected_left_out``.
    """
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
        clean_answers = await gather_bounded(
            [partial(read_and_classify, source, reader_pool) for source in discovered_documents.sources], 2
        )
    return [clean_answer for clean_answer in clean_answers if clean_answer is not None]


async def gather_bounded(jobs: Sequence[Callable[[], Awaitable[T]]], max_concurrent: int) -> list[T]:
    """Run at most ``max_concurrent`` jobs at once; return results in job order."""
    semaphore = asyncio.Semaphore(max_concurrent)

    async def run_job(job: Callable[[], Awaitable[T]]) -> T:
        async with semaphore:
            return await job()

    return list(await asyncio.gather(*map(run_job, jobs)))


#: Default limit of cases per fault kind: enough to tell a detection rate of 90 % from 100 %.
DEFAULT_MAX_CASES = 40
#: Default limit of cases per fault kind in one document.
DEFAULT_MAX_PLACES = 8
#: How many random places are tried before a fault kind is taken as not applicable to an answer.
_MAX_PLANTING_ATTEMPTS = 3


def challenge(
    paths: InputPaths,
    *,
    model: str | None = None,
    classifications: Path | str | None = None,
    kinds: Iterable[str] = (),
    limit: int = DEFAULT_MAX_CASES,
    seed: int = 0,
    settings: Settings | None = None,
) -> MutationTestReport:
    """Plant faults into right answers and report which verifiers detect them.

    No file is written.

    Args:
        paths: output folders, whose accepted, validated or corrected documents are used; PDF files and folders of PDFs,
            which are read and classified, and used if they are accepted.
        model: the model of the verifiers, if no ``settings`` are given.
        classifications: folder with the right answers for the PDFs, as ``{doc_id}.json``; these PDFs are not
            classified.
        kinds: fault kinds to plant, or ``structural``, ``quote``, ``semantic``; all kinds if empty.
        limit: the maximum number of cases of each kind.
        seed: the same seed plants the same faults.
        settings: the models and limits, instead of the environment and ``evalkit.toml``. Limits per document are
            ignored, because one document is verified many times; limits per run apply. ``on_agent_failure`` is always
            ``escalate``.

    Raises:
        UsageError: a kind or path does not exist, or no classification is taken to be right.
    """
    return run_sync(
        _plant_faults(
            list_paths(paths),
            settings or Settings.load(models={"default": model} if model is not None else None),
            classifications,
            select_mutation_operators(kinds),
            limit,
            seed,
        )
    )


def select_mutation_operators(kind_or_nature_names: Iterable[str]) -> list[MutationOperator]:
    """Return the kinds of fault with these names or natures; all by default.

    UsageError if a name is unknown.
    """
    wanted_names = set(kind_or_nature_names)
    natures = {operator.nature for operator in FAULTS}
    if unknown_names := sorted(wanted_names - FAULT_BY_ID.keys() - natures):
        raise UsageError(
            f"unknown kind of fault: {', '.join(unknown_names)}",
            code="CHALLENGE-KIND",
            remedy=f"Choose from {', '.join(sorted(natures))}, or {', '.join(FAULT_BY_ID)}.",
        )
    return [
        operator
        for operator in FAULTS
        if not wanted_names or operator.fault_id in wanted_names or operator.nature in wanted_names
    ]


async def _plant_faults(
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
        model_session.ledger.stops_run_at_limit = False
        orchestrator = create_orchestrator(
            run_settings, model_session, include_rule_findings=False
        )  # issues computed by rules would hide that a model detects nothing
        patient_expectation = PatientExpectation(run_settings.patients)
        max_concurrent = run_settings.calls_in_flight if model_session.has_language_models else 1
        folder_paths, pdf_paths = _partition_paths(paths)
        clean_answers = [
            clean_answer
            for folder_path in folder_paths
            for clean_answer in iterate_clean_answers(folder_path, problems, left_out_doc_ids)
        ]
        if pdf_paths:
            clean_answers += await classify_pdfs(
                pdf_paths,
                run_settings,
                partial(orchestrator.evaluate, patient_expectation=patient_expectation),
                classifications_folder,
                problems,
                left_out_doc_ids,
            )
        # A document that occurs twice counts once, with the answer that an expert or another system vouches for, if any.
        clean_answers = list(
            {
                (candidate.bundle.sha256, encode_canonical_json(candidate.classification.to_json())): candidate
                for candidate in sorted(clean_answers, key=lambda answer: answer.origin.is_vouched_from_outside)
            }.values()
        )
        if not clean_answers:
            raise UsageError(
                "none of these paths contains a classification that is known to be right"
                + (f" ({problems[0]})" if problems else ""),
                code="CHALLENGE-NOTHING",
                remedy="Give an output folder with accepted documents, or PDFs and their right answers (--classifications).",
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
        model_by_role=run_settings.models.model_name_by_role,
        prompt_versions=compute_prompt_versions(run_settings.prompts_folder),
        left_out_doc_ids={reason: tuple(sorted(doc_ids)) for reason, doc_ids in left_out_doc_ids.items()},
        problems=(*problems, *report.problems),
        usage_by_agent=model_session.ledger.usage_by_role,
    )


def _partition_paths(paths: Iterable[Path | str]) -> tuple[list[Path | str], list[Path]]:
    """Separate output folders and bucket URLs from PDF files and folders of PDFs."""
    folder_paths, other_paths = [], []
    for path in map(parse_output_location, paths):
        if isinstance(path, str) or (path / RESULTS_FOLDER).is_dir():
            folder_paths.append(path)
        else:
            other_paths.append(path)
    return folder_paths, other_paths


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
    """Plant faults into right answers and let the verifiers judge each.

    At most ``max_places_per_document`` faults of one kind are planted into one document. The order of the documents
    depends on the seed, so that the limit of cases favours none. ``patient_expectation``: what is known about the
    patients of every file.
    """
    evaluate = partial(orchestrator.evaluate, patient_expectation=patient_expectation)
    clean_outcomes = await gather_bounded(
        [partial(evaluate, candidate.bundle, candidate.classification.to_json()) for candidate in clean_answers],
        max_concurrent,
    )
    evaluated_pairs = list(zip(clean_answers, clean_outcomes, strict=True))
    # If a verifier gave no answer about the clean document, it is unknown whether that document would have escalated.
    answered_pairs = [pair for pair in evaluated_pairs if not pair[1].unanswered]
    unanswered_problems = [
        f"{clean_answer.bundle.doc_id}: left out, because a verifier gave no answer about this document"
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
    cases = await gather_bounded(
        [partial(_judge_mutation, evaluate, candidate) for candidate in mutations], max_concurrent
    )
    return MutationTestReport(
        "",
        Counter(clean_answer.origin for clean_answer, _ in answered_pairs),
        tuple(false_alarms),
        tuple(cases),
        dict(skipped_counts),
        problems=tuple(unanswered_problems),
        clean_judgements=tuple(
            (clean_answer.origin, judgement)
            for clean_answer, clean_outcome in answered_pairs
            for judgement in list_role_judgements(clean_outcome, _select_grave_issues(clean_outcome))
        ),
    )


@dataclass(frozen=True)
class _PlantedMutation:
    """A planted fault before the verifiers have judged it."""

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
    """Yield up to ``max_case_count`` mutations of one kind, spread over documents.

    Documents to which the kind does not apply are counted in ``collected_skipped_counts``.
    """
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
    """Hash everything a verifier sees: the PDF's hash, the answer and all page texts."""
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


async def _judge_mutation(evaluate: Evaluate, mutation: _PlantedMutation) -> JudgedMutation:
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
        judgements=list_role_judgements(mutated_outcome, new_issues),
    )


def _build_false_alarm(clean_answer: CleanAnswer, clean_outcome: ClassificationOutcome) -> FalseAlarm:
    codes = {issue.code for issue in _select_grave_issues(clean_outcome)}
    return FalseAlarm(clean_answer.bundle.doc_id, tuple(sorted(codes)))


def _select_grave_issues(outcome: ClassificationOutcome) -> list[Issue]:
    return [issue for issue in outcome.issues if issue.severity is not IssueSeverity.MINOR]


def _find_new_issues(clean_outcome: ClassificationOutcome, mutated_outcome: ClassificationOutcome) -> list[Issue]:
    """Return the BLOCKER and MAJOR issues that the clean answer did not raise.

    Repaired issues are included; issues about a failed agent are not.
    """

    def encode_content(issue: Issue) -> str:
        return issue.model_dump_json(exclude={"issue_id", "status", "facts"})

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
        return "escalated" if new_issues else "missed"  # escalated only because an agent failed: nothing was detected
    if not any(issue.status == "repaired" for issue in new_issues):
        return "missed"
    return (
        "undone"
        if mutated_outcome.classification
        and is_nearly_same_classification(clean_classification, mutated_outcome.classification)
        else "repaired_otherwise"
    )


def is_nearly_same_classification(first: ClassificationOutput, second: ClassificationOutput) -> bool:
    """Return True if two answers are equal, with shares that differ at most 0.05."""
    (first_answer, first_shares), (second_answer, second_shares) = _separate_shares(first), _separate_shares(second)
    are_shares_close = all(
        abs(a - b) <= float(MIXTURE_TOLERANCE) for a, b in zip(first_shares, second_shares, strict=False)
    )
    return first_answer == second_answer and are_shares_close


def _separate_shares(classification: ClassificationOutput) -> tuple[dict[str, Any], list[float]]:
    """Return the answer as JSON without shares, types sorted, and its shares."""
    answer_json = classification.to_json()
    shares: list[float] = []
    for rows, share_key in [
        *((segment["segment_composition"], "segment_share") for segment in answer_json["segments"]),
        (answer_json["document_mixture"], "overall_share"),
    ]:
        rows.sort(key=lambda row: row["document_type"])
        shares += [row.pop(share_key) for row in rows]
    return answer_json, shares
