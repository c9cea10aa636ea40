"""Mutation-test the verifiers: one planted fault at a time, and who detects it.

Each kind of fault is a row of :mod:`evalkit.evaluation.challenge.fault_table`. A fault is caught if a person sees the document because
of it: a new BLOCKER or MAJOR issue, and the decision to escalate. One that a repair undoes, so that the answer is the
clean one again, is caught as well; one that a repair turns into another answer is not. A verifier that could not
answer has caught nothing.

A fault that another issue catches than the kind names is caught, and counted as such as well: who is named may sleep.
An alarm about a clean answer is false only if somebody else than the program says that the answer is right.
``on_agent_failure`` is ``escalate`` here, whatever a site has set: with ``ignore`` a verifier that could not answer would
look like one that saw nothing.

Nothing is written, and no text of a document is reported: cases carry codes and counts.
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
    """Run :func:`run_mutation_test` and tabulate it, one row per kind of fault."""
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
    """Plant faults into right answers and report who detects them. Nothing is written.

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
    """Select the faults of these kinds or natures; all if none is named. UsageError."""
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
            clean_answers += await classify_pdfs(
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
