"""Mutation-test the verifiers: inject one fault at a time, report who detects it.

Each fault kind is a row of :mod:`evalkit.evaluation.challenge.fault_table`. A fault is caught if a person sees the
document because of it: there is a new BLOCKER or MAJOR issue, and the decision is to escalate. A fault is also caught
if a repair restores the clean answer, but not if a repair produces a different answer. A verifier that gave no answer
has caught nothing.

A fault that is caught only by issues other than the expected codes counts as caught and is also counted separately,
because the expected check may be broken. An alarm about a clean answer counts as false only if an expert or another
system says that the answer is right. ``on_agent_failure`` is always ``escalate`` here, whatever the settings say: with
``ignore``, a verifier that gave no answer would look like a verifier that found nothing.

No file is written, and no text of a document is reported: cases carry codes and counts only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.classification.patient_check import PatientExpectation
from evalkit.errors import UsageError
from evalkit.evaluation.challenge.fault_table import FAULT_BY_ID, FAULTS
from evalkit.evaluation.challenge.mutated_answer import (
    MutationOperator,
)
from evalkit.pipeline.event_loop import run_sync
from evalkit.pipeline.model_session import ModelSession
from evalkit.pipeline.run_setup import create_orchestrator
from evalkit.settings import LimitSettings, Settings
from evalkit.store import RESULTS_FOLDER, encode_canonical_json, open_output_folder, parse_output_location

if TYPE_CHECKING:
    import pandas as pd
from evalkit.evaluation.challenge.clean_answers import classify_pdfs, iterate_clean_answers
from evalkit.evaluation.challenge.judging import DEFAULT_MAX_CASES, plant_and_judge_mutations
from evalkit.evaluation.challenge.report import MutationTestReport


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
    """Mutation-test the verifiers and return a table with one row per kind of fault.

    For the arguments see :func:`run_mutation_test`; ``limit`` is its ``max_cases_per_kind``.
    """
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
    """Plant faults into right answers and report which verifiers detect them.

    No file is written.

    Args:
        paths: output folders, whose accepted, validated or corrected documents are used; PDF files and folders of PDFs,
            which are read and classified, and used if they are accepted.
        settings: the models and limits. Limits per document are ignored, because one document is verified many times;
            limits per run apply. ``on_agent_failure`` is always ``escalate``.
        classifications_folder: folder with the right answers for the PDFs, as ``{doc_id}.json``; these PDFs are not
            classified.
        kinds: fault kinds to plant, or ``structural``, ``quote``, ``semantic``; all kinds if empty.
        max_cases_per_kind: the maximum number of cases of each kind.
        seed: the same seed plants the same faults.

    Raises:
        UsageError: a kind or path does not exist, or no classification is taken to be right.
    """
    return run_sync(
        _run_mutation_test(
            list(paths), settings, classifications_folder, select_mutation_operators(kinds), max_cases_per_kind, seed
        )
    )


def select_mutation_operators(kind_or_nature_names: Iterable[str]) -> list[MutationOperator]:
    """Return the fault kinds with these names or natures; all kinds if none is named.

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
                "none of these paths holds a classification that is taken to be right"
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
        left_out_doc_ids={reason: tuple(sorted(doc_ids)) for reason, doc_ids in left_out_doc_ids.items()},
        problems=(*problems, *report.problems),
        usage_by_agent=model_session.ledger.usage_by_role,
    )


def _partition_paths(paths: Iterable[Path | str]) -> tuple[list[Path | str], list[Path]]:
    """Separate output folders and bucket URLs from PDF files and folders of PDFs."""
    folder_paths, other_paths = [], []
    for path in map(parse_output_location, paths):
        if isinstance(path, str) or open_output_folder(path).has_folder(RESULTS_FOLDER):
            folder_paths.append(path)
        else:
            other_paths.append(path)
    return folder_paths, other_paths
