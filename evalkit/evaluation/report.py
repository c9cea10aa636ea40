"""The evaluation report: sections of tables and figures, written as HTML or JSON.

Nothing is computed here: each section asks the module that it is named after, and says in words what its figures mean
and on what they rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader
from matplotlib.figure import Figure

from evalkit.classification.v5_arbiter import Decision
from evalkit.core.grouping import group_pairs
from evalkit.errors import UsageError
from evalkit.evaluation import (
    acceptance_threshold,
    attention_checks,
    document_type_scores,
    error_ranking,
    headline_estimates,
    plots,
    presence_metrics,
    production,
    reviewer_performance,
    segmentation_metrics,
    verifier_performance,
)
from evalkit.evaluation.export import create_private_file, replace_file_atomically
from evalkit.evaluation.intervals import Estimate
from evalkit.evaluation.study import DocumentRecord, Study, TruthStatus
from evalkit.evaluation.template_review_metrics import measure_template_reviews, read_template_review_cycles
from evalkit.store import open_output_folder

SIMULATED_WARNING = "Simulated: {count} of {of} reviews were made by a program. Nothing here says how good anything is."

_CLASS_COLUMNS = ("type", "true_reviewed", "said", "recall", "precision", "wrong")
_DIFFERENCE_COLUMNS = (
    *("doc_id", "production", "agent", "truth", "right", "production_confidence", "agent_confidence", "decision"),
)
_RULE_COLUMNS = (
    *("code", "origin", "raised", "confirmed", "dismissed", "precision", "alone", "validated", "corrected", "minutes"),
    *("verdict", "simulated"),
)
_RULE_NOTE = (
    "Alone: documents that nothing else would have escalated; validated and corrected: what became of them; minutes: "
    "the experts' active time on them."
)
_STOPPED_COLUMNS = ("level", "who", "errors", "stopped", "share", "documents")
_STOPPED_NOTE = (
    "Segments: all of them exactly, as given; merged: with neighbours of one type as one. The share is of all errors, those "
    "that nobody saw estimated from what was drawn, with its 95 % interval; errors and stopped count those that were seen."
)
#: What is said in place of a section that is left out of a report.
_MISSING_SECTION_TEXTS = {
    "types": "No expert has said yet which type a document is, and no labels were given.",
    "segments": "No expert has vouched yet for the segments of a document, and no labels were given.",
    "doubts": "No expert has vouched yet for the segments of a document, and no labels were given.",
    "production": "No document has a label of the production classifier: give it with `--production`.",
    "experts": "Nobody has reviewed a case yet.",
}
_MAX_NAMED_IN_CELL = 8
"""So many documents are named in a cell; the others are counted."""


@dataclass(frozen=True)
class EvaluationTable:
    """Rows under a caption."""

    caption: str
    frame: pd.DataFrame
    note: str = ""


@dataclass(frozen=True)
class EvaluationFigure:
    """A figure under a caption."""

    caption: str
    figure: Figure


@dataclass(frozen=True)
class EvaluationSection:
    """One question and what answers it."""

    key: str
    """What a notebook calls it: ``report["types"]``."""
    title: str
    about: str
    tables: tuple[EvaluationTable, ...] = ()
    figures: tuple[EvaluationFigure, ...] = ()

    def _repr_html_(self) -> str:
        """Render the section for a notebook's cell."""
        return str(_load_template_environment().get_template("section.html.j2").module.alone(self))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class EvaluationReport:
    """All sections."""

    made_at: str
    """ISO 8601, UTC."""
    output: str
    """The folder that was read."""
    warnings: tuple[str, ...]
    """What a reader must know before any figure."""
    sections: tuple[EvaluationSection, ...] = ()

    def __getitem__(self, key: str) -> EvaluationSection:
        """Return a section by name; an empty one says so. KeyError names those that exist."""
        for section in self.sections:
            if section.key == key:
                return section
        if key in _MISSING_SECTION_TEXTS:
            return EvaluationSection(key, "Nothing to show yet", _MISSING_SECTION_TEXTS[key])
        raise KeyError(
            f"{key!r} is none of {', '.join((*(section.key for section in self.sections), *_MISSING_SECTION_TEXTS))}"
        )


def build_report(study: Study, *, made_at: str, max_error_rate: float = 0.05) -> EvaluationReport:
    """Build a study's report.

    ``max_error_rate`` is the share of wrong acceptances that calibrated acceptance may leave, 0..1.
    """
    sections = (
        _build_processed_section(study),
        _build_headlines_section(study),
        _build_types_section(study),
        _build_segments_section(study),
        _build_patients_section(study),
        _build_presence_section(study),
        _build_production_section(study),
        _build_verifiers_section(study),
        _build_acceptance_section(study, max_error_rate),
        _build_doubts_section(study),
        _build_experts_section(study),
        _build_cost_section(study),
        _build_templates_section(study),
    )
    return EvaluationReport(
        made_at,
        str(study.output),
        tuple(_iterate_warnings(study)),
        tuple(section for section in sections if section is not None),
    )


def _iterate_warnings(study: Study) -> Iterable[str]:
    if study.simulated_review_count:
        yield SIMULATED_WARNING.format(count=study.simulated_review_count, of=len(study.reviews))
    yield from (*study.problems, *study.label_warnings)


# ------------------------------------------------------------------------------------------------------ sections


def _build_processed_section(study: Study) -> EvaluationSection:
    meaning_by_status: dict[TruthStatus, str] = {
        "reviewed": "an expert decided, or labels were given",
        "undeterminable": "an expert looked, and nobody can tell",
        "pending": "in the queue",
        "unseen": "accepted, and not drawn for anybody to look at",
        "unreadable": "could not be read",
    }
    status_counts = study.count_truth_statuses()
    status_table = pd.DataFrame(
        [(name, status_counts[name], meaning) for name, meaning in meaning_by_status.items()],
        columns=["standing", "documents", ""],
    )
    decision_counts = Counter(
        (document.decision or "none", document.decision_reason or document.error_code or "")
        for document in study.documents
    )
    decision_table = pd.DataFrame(
        [(*name, count) for name, count in decision_counts.most_common()], columns=["decision", "because", "documents"]
    )
    return EvaluationSection(
        "processed",
        "What was processed",
        f"{len(study.documents)} documents, the unreadable ones among them: they stay in the denominator of every "
        "figure about all documents.",
        (EvaluationTable("Where they stand", status_table), EvaluationTable("What was decided", decision_table)),
    )


def _build_headlines_section(study: Study) -> EvaluationSection:
    rows = [
        {
            "figure": headline.name,
            "of": f"{headline.population_description}: {headline.population_size}",
            "estimate": headline.estimate,
            "rests on": headline.reviewed_count,
            "reviewed only": headline.reviewed_estimate,
            "not right": headline.wrong_doc_ids,
        }
        for headline in headline_estimates.estimate_headlines(study)
    ]
    return EvaluationSection(
        "headlines",
        "How good is it?",
        "Each estimate is about all of these documents, and no others: escalated ones are all looked at, and of accepted "
        "ones those that chance drew count for as many as they represent; drawn ones whose turn has not come are taken for "
        "like those of the same draw that were answered, although the queue shows the ones with more remarks first and then "
        "goes by name: until all are answered, the estimate may be off. What is escalated and waits, is disputed, put off, unreadable, cannot be told or was accepted "
        "without a chance of being drawn counts as not right in the estimate and as right in the upper end of its 95 % interval. Where all were looked at, nothing is "
        "left to estimate, and the interval is a point. “Reviewed only” is the plain mean of what experts happened to see: "
        "hard cases for the most part, and no statement about the pipeline.",
        (EvaluationTable("Estimates with 95 % intervals", pd.DataFrame(rows)),),
    )


def _build_types_section(study: Study) -> EvaluationSection | None:
    type_metrics = document_type_scores.score_document_types(study)
    if not type_metrics.document_count:
        return None
    overall_rows = [
        ("accuracy", type_metrics.accuracy, type_metrics.reviewed_accuracy),
        ("macro F1", type_metrics.macro_f1, type_metrics.reviewed_macro_f1),
    ]
    rows = [
        (type_scores.type_name, type_scores.document_count, type_scores.precision, type_scores.recall, type_scores.f1)
        for type_scores in type_metrics.type_scores
    ]
    return EvaluationSection(
        "types",
        "Types of documents",
        f"{type_metrics.document_count} documents whose type an expert vouched for; a document drawn with probability p counts 1 / p "
        "times. “Cannot tell” counts as wrong. Those that nobody looked at yet are not in it.",
        (
            EvaluationTable(
                "Together, 95 % intervals (bootstrap over documents)",
                pd.DataFrame(overall_rows, columns=["measure", "estimate", "reviewed only"]),
            ),
            EvaluationTable("By type", pd.DataFrame(rows, columns=["type", "reviewed", "precision", "recall", "f1"])),
            EvaluationTable(
                "True type (rows) and what the pipeline said (columns), reviewed documents",
                type_metrics.confusion_table.reset_index(),
            ),
        ),
        (
            EvaluationFigure(
                "True type and what was said, reviewed documents", plots.plot_confusion(type_metrics.confusion_table)
            ),
        ),
    )


def _build_segments_section(study: Study) -> EvaluationSection | None:
    if not segmentation_metrics.list_documents_with_segment_truth(study):
        return None
    rows = [
        {
            "measure": measure_estimate.name,
            "as given": measure_estimate.as_given,
            "neighbours of one type joined": measure_estimate.with_neighbours_merged,
        }
        for measure_estimate in segmentation_metrics.estimate_segmentation_measures(study)
    ]
    moved_pages = pd.DataFrame(segmentation_metrics.rank_documents_by_pages_to_move(study), columns=["doc_id", "pages"])
    return EvaluationSection(
        "segments",
        "Segments and pages",
        f"{len(segmentation_metrics.list_documents_with_segment_truth(study))} documents whose segments an expert vouched for, weighted. A segment is one "
        "source document; in the second reading neighbours of the same type are one.",
        (
            EvaluationTable("Measures with 95 % intervals (bootstrap over documents)", pd.DataFrame(rows)),
            EvaluationTable("Pages that a person must move", moved_pages),
        ),
    )


def _build_patients_section(study: Study) -> EvaluationSection | None:
    checked_documents = [document for document in study.documents if document.patients_in_file is not None]
    if not checked_documents:
        return None
    rows = [
        {
            "source folder": source_folder or None,
            "files": len(documents),
            "files with several patients": sum((document.patients_in_file or 0) > 1 for document in documents),
            "pages of others": sum(document.pages_of_others or 0 for document in documents),
        }
        for source_folder in sorted({document.source_folder for document in checked_documents})
        for documents in [[document for document in checked_documents if document.source_folder == source_folder]]
    ]
    return EvaluationSection(
        "patients",
        "Whose pages are they?",
        "How many files name more than one patient, and how many of their pages name another patient than most pages of "
        "the file do. The program read this from names, birth dates and numbers; pages that name nobody are not counted, "
        "and no expert is needed.",
        (EvaluationTable("By the folder that the files came from", pd.DataFrame(rows)),),
    )


def _build_presence_section(study: Study) -> EvaluationSection:
    measured_presence = presence_metrics.measure_type_presence(study)
    grounded_ratios = [record.grounded_ratio for record in study.documents if record.grounded_ratio is not None]
    quality_scores = [
        record.evidence_quality_score for record in study.documents if record.evidence_quality_score is not None
    ]
    evidence_table = pd.DataFrame(
        [
            (
                "quotes found on their page, mean share",
                len(grounded_ratios),
                fmean(grounded_ratios) if grounded_ratios else math.nan,
            ),
            (
                "documents with every quote found",
                len(grounded_ratios),
                _compute_share(record == 1 for record in grounded_ratios),
            ),
            (
                "evidence quality score, mean",
                len(quality_scores),
                fmean(quality_scores) if quality_scores else math.nan,
            ),
        ],
        columns=["measure", "documents", "value"],
    )
    rows = [
        (
            record.type_name,
            record.document_count,
            record.precision,
            record.recall,
            record.f1,
            record.level_agreement,
        )
        for record in measured_presence.by_type
    ]
    presence_tables = (
        EvaluationTable(
            "Mixture, 95 % interval (bootstrap over documents)",
            pd.DataFrame(
                [("mixture error, mean", measured_presence.mixture_error, measured_presence.reviewed_mixture_error)],
                columns=["measure", "estimate", "reviewed only"],
            ),
            "The share of a document that was put under the wrong type.",
        ),
        EvaluationTable(
            "Presence by type, 95 % intervals (bootstrap over documents)",
            pd.DataFrame(rows, columns=["type", "reviewed", "precision", "recall", "f1", "same level"]),
            "Present is all but NO_EVIDENCE; reviewed: documents that it truly is in.",
        ),
        EvaluationTable("Presence by type, reviewed only: unweighted", measured_presence.reviewed_table_by_type),
    )
    return EvaluationSection(
        "evidence",
        "Evidence, presence_metrics, mixture",
        "What stands behind the types. "
        + (
            f"Presence and mixture are measured on the {measured_presence.document_count} documents whose mixture an expert opened and vouched "
            "for; a document drawn with probability p counts 1 / p times. Those that nobody looked at yet are not in it."
            if measured_presence.document_count
            else "Presence and mixture are not measured: no expert has opened and vouched for a document's mixture yet."
        ),
        (
            EvaluationTable("Evidence", evidence_table, "Computed from the documents' own text; no expert is needed."),
            *(presence_tables if measured_presence.document_count else ()),
        ),
    )


def _compute_share(flags: Iterable[bool]) -> float:
    values = list(flags)
    return sum(values) / len(values) if values else math.nan


def _merge_estimate_columns_into_one(
    frame: pd.DataFrame, value_column: str, low_column: str, high_column: str
) -> pd.DataFrame:
    """Merge the columns of number and limits into one column of estimates."""
    estimate_cells = [
        Estimate(None if pd.isna(known_share) else float(known_share), lower, upper, math.nan, "")
        for known_share, lower, upper in zip(frame[value_column], frame[low_column], frame[high_column], strict=True)
    ]
    return frame.assign(**{value_column: pd.Series(estimate_cells, index=frame.index, dtype=object)}).drop(
        columns=[low_column, high_column]
    )


def _build_production_section(study: Study) -> EvaluationSection | None:
    if not any(document.production_labels for document in study.documents):
        return None
    difference_table = production.tabulate_production_vs_agent(study)
    class_table = production.tabulate_production_scores_by_type(study)
    for share_column in ("recall", "precision"):
        class_table = _merge_estimate_columns_into_one(
            class_table, share_column, f"{share_column}_low", f"{share_column}_high"
        )
    return EvaluationSection(
        "production",
        "The production classifier",
        f"{sum(document.production_labels is not None for document in study.documents)} documents have its label; in {len(difference_table)} it "
        "says another type than the pipeline.",
        (
            EvaluationTable("By true type, estimated over all its documents", class_table[list(_CLASS_COLUMNS)]),
            EvaluationTable("Where they differ", difference_table[list(_DIFFERENCE_COLUMNS)]),
        ),
    )


def _build_verifiers_section(study: Study) -> EvaluationSection:
    rule_table = _merge_estimate_columns_into_one(
        verifier_performance.tabulate_rule_performance(study), "precision", "low", "high"
    )
    stopped_table = _merge_estimate_columns_into_one(
        verifier_performance.tabulate_escalated_errors(study), "share", "low", "high"
    )
    stopped_table = stopped_table[(stopped_table["stopped"] > 0) | (stopped_table["kind"] != "code")]
    severities_by_agent = group_pairs(
        (issue.agent, issue.severity) for document in study.documents for issue in document.issues
    )
    issue_figure = EvaluationFigure(
        "Issues by agent and severity",
        plots.plot_stacked_bars(
            {agent: Counter(severities) for agent, severities in sorted(severities_by_agent.items())},
            plots.SEVERITY_COLOURS,
            "issues",
        ),
    )
    return EvaluationSection(
        "verifiers",
        "The verifiers",
        "What each rule raised, what experts said of it, and what it alone sent to an expert; then which errors of the "
        "classifier were stopped, by whom, and which nobody raised.",
        (
            EvaluationTable("By rule", rule_table[list(_RULE_COLUMNS)], _RULE_NOTE),
            EvaluationTable(
                "The classifier's errors: who stopped them", stopped_table[list(_STOPPED_COLUMNS)], _STOPPED_NOTE
            ),
            EvaluationTable(
                "Corrected by experts and raised by nobody", verifier_performance.tabulate_unraised_corrections(study)
            ),
        ),
        (issue_figure,) if severities_by_agent else (),
    )


def _build_acceptance_section(study: Study, max_error_rate: float) -> EvaluationSection:
    measured_calibration = acceptance_threshold.measure_confidence_calibration(study)
    offer = acceptance_threshold.certify_acceptance_threshold(study, max_error_rate=max_error_rate)
    sentence = _describe_threshold_evidence(offer)
    report_figures = (
        (
            EvaluationFigure(
                "Can confidence be believed?", plots.plot_reliability(measured_calibration.reliability_table)
            ),
            EvaluationFigure(
                "Risk against coverage",
                plots.plot_risk_coverage(measured_calibration.risk_coverage_table, max_error_rate),
            ),
        )
        if measured_calibration.document_count
        else ()
    )
    summary_table = pd.DataFrame(
        [
            ("documents with truth and confidence", measured_calibration.document_count),
            ("expected calibration error", measured_calibration.calibration_error),
            ("Brier score", measured_calibration.brier_score),
            ("blind audits of one design", offer.audit_count),
            ("audits set aside to make their probabilities equal", offer.set_aside_count),
        ],
        columns=["measure", "value"],
    )
    return EvaluationSection(
        "acceptance",
        "Which acceptances can be trusted?",
        f"{sentence} The arbiter's table is not changed by this.",
        (
            EvaluationTable("Calibration", summary_table),
            EvaluationTable("Reliability", measured_calibration.reliability_table),
        ),
        report_figures,
    )


def _describe_threshold_evidence(threshold_evidence: acceptance_threshold.AcceptanceThresholdEvidence) -> str:
    """Describe the evidence of blind audits in words."""
    certificate = threshold_evidence.certificate
    if threshold_evidence.unaudited_wrong_ids:
        sentence = (
            f"Nothing can be offered: {len(threshold_evidence.unaudited_wrong_ids)} accepted documents that were looked at for another "
            f"reason than an audit have a wrong type ({format_cell(threshold_evidence.unaudited_wrong_ids)})."
        )
    elif threshold_evidence.undrawable_count:
        sentence = (
            f"Nothing can be offered: {threshold_evidence.undrawable_count} accepted documents had no chance of being drawn, so that no "
            "audit speaks for them (`evalkit sample` draws from all that nobody has seen)."
        )
    elif certificate.threshold is None:
        sentence = (
            f"{certificate.more_audits_needed} more blind audits without an error are needed before any threshold can be offered: "
            f"{threshold_evidence.audit_count} are done, {certificate.error_count} of them wrong, which shows at most {certificate.error_bound:.1%} wrong."
        )
    else:
        sentence = (
            f"From a confidence of {certificate.threshold:.2f} upwards, at most {threshold_evidence.max_error_rate:.0%} of what the arbiter accepts has "
            f"a wrong type, with {threshold_evidence.confidence_level:.0%} certainty: {certificate.audit_count} blind audits, {certificate.error_count} wrong, bound "
            f"{certificate.error_bound:.2%}; that is {certificate.coverage:.0%} of the accepted documents. It says nothing of their segments, "
            "and holds for one look: whoever asks after every audit until it passes will be lucky too often."
        )
    if threshold_evidence.cannot_tell_count:
        sentence += f" {threshold_evidence.cannot_tell_count} audits that cannot be told, are disputed or put off count as wrong."
    if threshold_evidence.simulated_audit_count:
        sentence += f" {threshold_evidence.simulated_audit_count} of the audits are simulated: this proves nothing."
    return sentence


def _build_doubts_section(study: Study) -> EvaluationSection | None:
    ranked_documents = error_ranking.list_ranked_documents(study)
    if not ranked_documents:
        return None
    ranking = error_ranking.rank_errors(ranked_documents)
    escalated_documents = [document for document in study.documents if document.decision == Decision.ESCALATE_TO_SME]
    shares = [
        headline_estimates.estimate_headline(name, population, documents, _score_wrong_segmentation)
        for name, population, documents in (
            ("needed correction", "escalated documents", escalated_documents),
            ("need correction", "all documents", study.documents),
        )
    ]
    return EvaluationSection(
        "doubts",
        "Do doubts point at errors?",
        f"{ranking.document_count} documents whose segments an expert vouched for, {ranking.wrong_count} of them wrong; a wrong one "
        f"has the higher risk than a right one with a probability of {format_cell(ranking.auroc)} (AUROC). "
        f"{ranking.wrong_page_count} of {ranking.page_count} pages have a wrong type or a wrong beginning.",
        (
            EvaluationTable(
                "Escalations that were needed, beside all that is wrong",
                pd.DataFrame(
                    [(figure.population_description, figure.name, figure.estimate) for figure in shares],
                    columns=["of", "that", "share"],
                ),
            ),
            EvaluationTable(
                "Errors caught if only the riskiest pages are looked at",
                pd.DataFrame(
                    [tuple(caught) for caught in ranking.caught_errors],
                    columns=["pages looked at", "errors caught", "best possible"],
                ),
            ),
        ),
    )


def _score_wrong_segmentation(document: DocumentRecord) -> float | None:
    correctness = headline_estimates.score_agent_segmentation(document)
    return None if correctness is None else 1 - correctness


def _build_experts_section(study: Study) -> EvaluationSection | None:
    reviewer_table = reviewer_performance.tabulate_reviewer_performance(study)
    if reviewer_table.empty and not study.attention_checks:
        return None
    expert_agreement = reviewer_performance.measure_expert_agreement(study)
    rows = [
        ("pairs", len(expert_agreement.pair_table)),
        ("same type", expert_agreement.type_agreement),
        ("same segments", expert_agreement.segment_agreement),
        ("boundaries, F1", expert_agreement.boundary_f1),
        ("the agent's type, said by the first, who saw it", expert_agreement.agent_match_when_shown),
        ("the agent's type, said by the second, who did not", expert_agreement.agent_match_when_hidden),
        ("Cohen's kappa, types", expert_agreement.cohens_kappa),
        ("Krippendorff's alpha, types", expert_agreement.krippendorff_alpha),
    ]
    return EvaluationSection(
        "experts",
        "The experts",
        "Who says the agent's type where it is on screen, while a colleague who does not see it says another, is led by it: "
        "compare within the pairs. By reviewer, cases that are shown and hidden are not alike.",
        (
            EvaluationTable("By reviewer", reviewer_table),
            EvaluationTable(
                "Second opinions, each blind to the first", pd.DataFrame(rows, columns=["measure", "value"])
            ),
            EvaluationTable("The pairs", expert_agreement.pair_table),
            EvaluationTable(
                "Validated, and found wrong by others", reviewer_performance.tabulate_wrong_validations(study)
            ),
            *_build_attention_tables(study),
        ),
    )


def _build_attention_tables(study: Study) -> Sequence[EvaluationTable]:
    if not study.attention_checks:
        return ()
    return (
        EvaluationTable(
            "Faults planted on purpose: how many were noticed (exact 95 % intervals)",
            attention_checks.tabulate_reviewer_fault_detection(study.attention_checks),
            "Noticed: the planted part was corrected; validated: the wrong answer was, as it was shown. What was said in "
            "these cases counts nowhere else.",
        ),
        EvaluationTable(
            "The cases with a planted fault", attention_checks.tabulate_attention_checks(study.attention_checks)
        ),
    )


def _build_cost_section(study: Study) -> EvaluationSection:
    processing_seconds = [
        record.processing_seconds for record in study.documents if record.processing_seconds is not None
    ]
    known_costs = [record.cost_usd for record in study.documents if record.cost_usd is not None]
    active_seconds = [
        record.active_seconds
        for document in study.documents
        for record in document.reviews
        if record.active_seconds is not None
    ]
    rows: list[tuple[str, Any]] = [
        ("calls of models", sum(record.call_count for record in study.documents)),
        ("tokens", sum(record.token_count for record in study.documents)),
        ("US dollars", f"{sum(known_costs, Decimal(0)):.4f}"),
        ("documents without a known price", len(study.documents) - len(known_costs)),
        ("seconds a document, median", median(processing_seconds) if processing_seconds else math.nan),
        ("experts' active minutes, together", sum(active_seconds) / 60),
        ("experts' active seconds a case, median", median(active_seconds) if active_seconds else math.nan),
    ]
    report_figures = (
        [
            EvaluationFigure(
                "Processing time", plots.plot_histogram(processing_seconds, "seconds a document, waiting included")
            )
        ]
        if processing_seconds
        else []
    )
    if active_seconds:
        report_figures.append(
            EvaluationFigure("Experts' time", plots.plot_histogram(active_seconds, "active seconds a case", "cases"))
        )
    if any(known_costs):
        report_figures.append(
            EvaluationFigure(
                "Cost", plots.plot_histogram([float(record) for record in known_costs], "US dollars a document")
            )
        )
    return EvaluationSection(
        "cost",
        "Time and cost",
        "",
        (EvaluationTable("Together", pd.DataFrame(rows, columns=["measure", "value"])),),
        tuple(report_figures),
    )


# ------------------------------------------------------------------------------------------------------- writing


def _build_templates_section(study: Study) -> EvaluationSection | None:
    review_cycles = read_template_review_cycles(open_output_folder(study.output))
    if not review_cycles:
        return None
    review_metrics = measure_template_reviews(review_cycles)
    rows = [
        ("approved on the first attempt", review_metrics.first_pass_approval_rate, "reviews"),
        ("approved in the end", review_metrics.convergence_rate, "reviews"),
        ("sent to arbitration", review_metrics.arbitration_rate, "attempts that both reviewers reported on"),
    ]
    return EvaluationSection(
        "templates",
        "Templates of bank statements",
        f"{review_metrics.review_count} reviews of templates in {review_metrics.attempt_count} attempts; {review_metrics.input_tokens:,} tokens in, "
        f"{review_metrics.output_tokens:,} out, "
        + ("price not known." if review_metrics.cost_usd is None else f"{review_metrics.cost_usd:.4f} US dollars."),
        (
            EvaluationTable("Shares with 95 % intervals", pd.DataFrame(rows, columns=["measure", "share", "of"])),
            EvaluationTable(
                "Issues that only one reviewer reported, where the two disagreed",
                pd.DataFrame(list(review_metrics.disagreement_categories.items()), columns=["category", "issues"]),
            ),
            EvaluationTable(
                "Why a person decides",
                pd.DataFrame(list(review_metrics.escalation_reasons.items()), columns=["reason", "reviews"]),
            ),
        ),
    )


def write_html_report(report: EvaluationReport, html_path: Path | str) -> None:
    """Write a self-contained, printable HTML file (0600). UsageError: not writable."""
    html = _load_template_environment().get_template("report.html.j2").render(report=report, version=version("evalkit"))
    try:
        with replace_file_atomically(Path(html_path)) as temporary_path:
            create_private_file(temporary_path, html)  # names of files may be those of patients
    except OSError as error:
        raise UsageError(
            f"{html_path} cannot be written ({error.strerror})", code="REPORT", remedy="Name another file with --to."
        ) from error


@cache
def _load_template_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("evalkit.evaluation"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(cell=format_cell, svg=plots.render_svg, is_number=_is_number)
    return environment


def convert_report_to_json(report: EvaluationReport) -> dict[str, Any]:
    """Convert the report's tables to plain JSON; what is undefined is null."""
    return {
        "made_at": report.made_at,
        "output": report.output,
        "warnings": list(report.warnings),
        "sections": [
            {
                "title": section.title,
                "about": section.about,
                "tables": [
                    {
                        "caption": table.caption,
                        "rows": [_simplify_for_json(row) for row in table.frame.to_dict("records")],
                    }
                    for table in section.tables
                ],
            }
            for section in report.sections
        ],
    }


def _simplify_for_json(value: Any) -> Any:
    if isinstance(value, Estimate):
        return _simplify_for_json(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): _simplify_for_json(inner_value) for key, inner_value in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_simplify_for_json(inner_value) for inner_value in value]
    if hasattr(value, "item"):  # numpy's own numbers
        return _simplify_for_json(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def format_cell(value: Any) -> str:
    """Format a cell for a reader.

    >>> format_cell(Estimate(0.9, 0.555, 0.9975, 10, "exact")), format_cell(0.25), format_cell(("a", "b")), format_cell(None), format_cell(3.0)
    ('90 % (56–100 %)', '0.25', 'a, b', '–', '3')
    """
    if isinstance(value, Estimate):
        interval_text = f"{100 * value.low:.0f}–{100 * value.high:.0f} %"
        return f"not known ({interval_text})" if value.value is None else f"{100 * value.value:.0f} % ({interval_text})"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        omitted_count = len(value) - _MAX_NAMED_IN_CELL
        return (", ".join(map(str, value[:_MAX_NAMED_IN_CELL])) or "–") + (
            f" and {omitted_count} more" if omitted_count > 0 else ""
        )
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Estimate | Decimal) and not isinstance(value, bool)
