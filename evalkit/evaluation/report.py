"""The evaluation report: sections of tables and figures, written as HTML or JSON.

Figures are computed in the other modules of this package; this module arranges them and explains what they mean.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from evalkit.core.notebook_cards import format_card
from evalkit.evaluation import (
    attention_checks,
    certificate,
    confidence_calibration,
    document_type_scores,
    drift_monitoring,
    error_ranking,
    headline_estimates,
    plots,
    production,
    reviewer_performance,
    segmentation_metrics,
    verifier_performance,
)
from evalkit.evaluation.certificate import parse_time
from evalkit.evaluation.extraction_monitoring import (
    list_alerts,
    list_judged_extractions,
    read_all_extractions,
    tabulate_attempts,
    tabulate_field_errors,
    tabulate_shares,
)
from evalkit.evaluation.intervals import Estimate, Quantity
from evalkit.evaluation.private_files import write_private_file
from evalkit.evaluation.review_yield import measure_review_yield
from evalkit.evaluation.study import DocumentRecord, Study, TruthStatus
from evalkit.evaluation.template_review_metrics import measure_template_reviews, read_template_review_cycles
from evalkit.pipeline.drift import RUN_LENGTH
from evalkit.pipeline.input_monitoring import MEASURES, find_warned_strata, read_monitoring_record
from evalkit.pipeline.run_history import read_run_records, tabulate_usage_by_day
from evalkit.pipeline.strata import describe_documents
from evalkit.settings import CertificateSettings
from evalkit.store import open_output_folder

SIMULATED_WARNING = (
    "Simulated: {count} of {of} reviews were made by a program. These figures say nothing about quality."
)
LEARNED_WARNING = (
    "Learned: {count} of {of} reviewed documents were decided by weights that may have been learned from their reviews. "
    "Figures that include them are too good."
)

_CLASS_COLUMNS = ("type", "true_reviewed", "said", "recall", "precision", "wrong")
_DIFFERENCE_COLUMNS = (
    *("doc_id", "production", "agent", "truth", "right", "production_confidence", "agent_confidence", "decision"),
)
_RULE_COLUMNS = (
    *("code", "origin", "raised", "confirmed", "dismissed", "precision", "wrong"),
    *("alone", "validated", "corrected", "minutes"),
    *("verdict", "simulated"),
)
_RULE_NOTE = (
    "Wrong: documents with the issue whose answer was wrong, the errors that the rule caught. Alone: documents that only this rule escalated; validated and corrected: how many of these documents experts "
    "validated or corrected; minutes: the experts' active time on these documents."
)
_STOPPED_COLUMNS = ("level", "who", "errors", "stopped", "share", "documents")
_STOPPED_NOTE = (
    "Level segments: an error is any wrong segment of a document, as given; segments merged: after merging neighbours of one "
    "type. Share: stopped errors as a share of all errors, including unreviewed ones estimated from the sample, with its "
    "95 % interval. The columns errors and stopped count reviewed documents only."
)
#: The sentence shown if a section has no data.
_MISSING_SECTION_TEXTS = {
    "types": "No expert has confirmed or corrected a document's type yet, and no file of labels was given.",
    "segments": "No expert has confirmed or corrected a document's segments yet, and no file of labels was given.",
    "doubts": "No expert has confirmed or corrected a document's segments yet, and no file of labels was given.",
    "certificate": "No document has been accepted yet.",
    "calibration": "No expert has confirmed or corrected the type of a document with a stated confidence yet.",
    "production": "No document has a label of the production classifier. Give a file of labels with `--production`.",
    "experts": "No case has been reviewed yet.",
    "fields": "No fields have been extracted yet. Run `evalkit extract`, or `evalkit run --extract`.",
}
#: Number of estimates in the summary that a notebook cell shows.
_ESTIMATES_IN_CARD = 4
#: Maximum number of documents named in a table cell; further ones are only counted ("and 5 more").
_MAX_NAMED_IN_CELL = 8
_MAX_PLOTTED_RULES = 15


@dataclass(frozen=True)
class EvaluationTable:
    """A table of the report, with its caption and an explanatory note."""

    caption: str
    frame: pd.DataFrame
    note: str = ""
    is_folded: bool = False
    """True if a figure of the section shows the same."""


@dataclass(frozen=True)
class EvaluationFigure:
    """A plot of the report, with its caption."""

    caption: str
    figure: Figure
    words: str = ""
    """What the plot shows, for those who cannot see it, unless a table of the section says it."""


@dataclass(frozen=True)
class EvaluationSection:
    """One section of the report: title, explanation, tables and figures."""

    key: str
    """Key of the section in a notebook, as in ``report["types"]``."""
    title: str
    about: str
    tables: tuple[EvaluationTable, ...] = ()
    figures: tuple[EvaluationFigure, ...] = ()

    def _repr_html_(self) -> str:
        """Render the section as HTML for a notebook cell."""
        return str(load_template_environment().get_template("section.html.j2").module.alone(self))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class EvaluationReport:
    """Evaluation report of an output folder; ``report["types"]`` returns one section."""

    made_at: str
    """Time of the report: ISO 8601 in UTC."""
    study: Study = field(repr=False)
    """The documents that the figures are about; ``study.to_frame()`` is a table of them."""
    warnings: tuple[str, ...]
    """Sentences shown above all figures, such as on simulated reviews or unreadable files."""
    sections: tuple[EvaluationSection, ...] = ()

    def __getitem__(self, key: str) -> EvaluationSection:
        """Return the section with this key, or one that explains why it has no data.

        KeyError if there is no such section; the message lists the existing keys.
        """
        for section in self.sections:
            if section.key == key:
                return section
        if key in _MISSING_SECTION_TEXTS:
            return EvaluationSection(key, "Nothing to show yet", _MISSING_SECTION_TEXTS[key])
        raise KeyError(
            f"the report has no section {key!r}; its sections are "
            f"{', '.join((*(section.key for section in self.sections), *_MISSING_SECTION_TEXTS))}"
        )

    def write_html(self, html_path: Path | str) -> None:
        """Write the report as one self-contained, printable HTML file (0600).

        UsageError if the file cannot be written.
        """
        template = load_template_environment().get_template("report.html.j2")
        html = template.render(report=self, version=version("evalkit"))
        # File names in the report may contain patients' names.
        write_private_file(html, html_path, error_code="REPORT", remedy="Name another output file with --to.")

    def _repr_html_(self) -> str:
        estimates = [
            f"{row['figure']}: {format_cell(row['estimate'])} of {row['of']}"
            for section in self.sections
            if section.key == "headlines"
            for row in section.tables[0].frame.head(_ESTIMATES_IN_CARD).to_dict("records")
        ]
        keys = ", ".join(section.key for section in self.sections)
        return format_card(
            f"{len(self.study.documents)} documents, the truth of {len(self.study.reviewed_documents)} is known",
            (*estimates, *self.warnings),
            (
                ('report["types"]', f"a section with its tables and figures: {keys}"),
                ("evalkit.show(report.study.to_frame())", "the documents, each a link to its pages"),
                ('report.write_html("report.html")', "the whole report as a file"),
            ),
        )


def build_report(
    study: Study, *, made_at: str, certificate_settings: CertificateSettings | None = None
) -> EvaluationReport:
    """Build the evaluation report of a study.

    ``made_at`` is the report's time (ISO 8601, UTC).
    """
    certificate_settings = certificate_settings or CertificateSettings()
    sections = (
        _build_processed_section(study),
        _build_headlines_section(study),
        _build_certificate_section(study, certificate_settings),
        _build_drift_section(study),
        _build_types_section(study),
        _build_segments_section(study),
        _build_patients_section(study),
        _build_presence_section(study),
        _build_production_section(study),
        _build_verifiers_section(study),
        _build_calibration_section(study),
        _build_doubts_section(study),
        _build_experts_section(study),
        _build_cost_section(study),
        _build_fields_section(study),
        _build_templates_section(study),
    )
    simulated_warning = SIMULATED_WARNING.format(count=study.simulated_review_count, of=len(study.reviews))
    return EvaluationReport(
        made_at,
        study,
        (
            *([simulated_warning] if study.simulated_review_count else ()),
            *warn_about_learned_documents(study),
            *study.problems,
            *study.label_warnings,
        ),
        tuple(section for section in sections if section is not None),
    )


def warn_about_learned_documents(study: Study) -> list[str]:
    """Warn if figures include documents from which a site's weights were learned."""
    cutoffs: list[str] = []
    for event in study.events:
        if event.kind == "promoted":
            cutoffs.append(str(event.facts.get("cutoff", "")))
        elif event.kind == "promotion_reversed":
            cutoffs = cutoffs[:-1]
    count = sum(
        certificate.is_answered_before_decision(document)
        and min(review.submitted_at for review in document.reviews) <= max(cutoffs, default="")
        for document in study.reviewed_documents
    )
    return [LEARNED_WARNING.format(count=count, of=len(study.reviewed_documents))] if count else []


# ------------------------------------------------------------------------------------------------------ sections


def _build_processed_section(study: Study) -> EvaluationSection:
    meaning_by_status: dict[TruthStatus, str] = {
        "reviewed": "decided by an expert, or labelled in a file",
        "undeterminable": "seen by an expert; the type cannot be determined",
        "pending": "waiting for review",
        "unseen": "accepted and not drawn for review",
        "unreadable": "could not be read",
    }
    status_counts = Counter(document.truth_status for document in study.documents)
    status_table = pd.DataFrame(
        [(name, status_counts[name], meaning) for name, meaning in meaning_by_status.items()],
        columns=["status", "documents", "meaning"],
    )
    decision_counts = Counter(
        (document.decision or "none", document.decision_reason or document.error_code or "")
        for document in study.documents
    )
    decision_table = pd.DataFrame(
        [(*name, count) for name, count in decision_counts.most_common()], columns=["decision", "reason", "documents"]
    )
    return EvaluationSection(
        "processed",
        "Documents processed",
        f"{len(study.documents)} documents. Files that could not be read are included and count in every figure about all "
        "documents.",
        (EvaluationTable("Status", status_table), EvaluationTable("Decisions", decision_table)),
    )


def _build_headlines_section(study: Study) -> EvaluationSection:
    headlines = headline_estimates.estimate_headlines(study)
    rows = [
        {
            "figure": headline.name,
            "of": f"{headline.population_description}: {headline.population_size}",
            "estimate": headline.estimate,
            "these documents only": headline.archive_estimate,
            "sample size": headline.reviewed_count,
            "reviewed only": headline.reviewed_estimate,
            "wrong": headline.wrong_doc_ids,
        }
        for headline in headlines
    ]
    return EvaluationSection(
        "headlines",
        "How good is it?",
        "Each estimate covers all documents of its row. All escalated documents are reviewed, but only a random sample of the "
        "accepted documents; each sampled document counts for the number of documents that it represents. Sampled documents "
        "that wait for review are assumed to be like the sampled documents already reviewed; the queue is not in random "
        "order, so the estimate may be off until the whole sample is reviewed. Documents without a decision (waiting, "
        "disputed, deferred, unreadable, undeterminable, or accepted without a chance of being sampled) count as wrong in "
        "the estimate and as right in the upper limit of its 95 % interval. The interval of the estimate is for documents like "
        "these, also future ones; that of “these documents only” is for the documents of this folder, and a single point if "
        "each has a known truth. “Reviewed only” is the plain mean of the reviewed documents, which are mostly difficult: it does not "
        "show the quality of the program.",
        (EvaluationTable("Estimates with 95 % intervals", pd.DataFrame(rows)),),
        (
            EvaluationFigure(
                "Estimates with 95 % intervals, for documents like these",
                plots.plot_intervals({headline.name: headline.estimate for headline in headlines}, "share"),
            ),
        ),
    )


def _build_certificate_section(study: Study, settings: CertificateSettings) -> EvaluationSection | None:
    certificates = certificate.compute_certificates(study, settings)
    if not certificates:
        return None
    overall, *_ = certificates
    rows = [
        {
            "documents": study.describe_stratum(stratum_certificate.stratum),
            "certified": stratum_certificate.is_in_force,
            "statement": stratum_certificate.statement,
            "error bound": _UpperBound(
                stratum_certificate.error_bound,
                0.0,
                stratum_certificate.error_bound,
                stratum_certificate.audit_count,
                "one-sided",
            ),
            "accepted": stratum_certificate.accepted_count,
            "audits": stratum_certificate.audit_count,
            "wrong": stratum_certificate.wrong_count,
            "without answer": stratum_certificate.unanswered_count,
            "more audits needed": stratum_certificate.more_audits_needed,
            "from": stratum_certificate.first_accepted_at[:10],
            "until": stratum_certificate.covered_until[:10],
        }
        for stratum_certificate in certificates
    ]
    return EvaluationSection(
        "certificate",
        "Certificate",
        f"{overall.statement} Each statement holds by itself with the stated certainty, however often you look. It is about "
        "document types, not about segments, and about the documents of the newest run's models, prompts and tables only. "
        f"It assumes that experts notice {100 * overall.noticed_share:.0f} % of the errors in an audit.",
        (
            EvaluationTable("By type, source folder and versions", pd.DataFrame(rows)),
            EvaluationTable("Versions", study.versions_frame()),
        ),
    )


def _build_drift_section(study: Study) -> EvaluationSection | None:
    runs = read_monitoring_record(open_output_folder(study.output)).runs
    drifts = drift_monitoring.compute_stratum_drifts(study, runs)
    if not drifts:
        return None
    warned_measures = find_warned_strata(runs)
    rows = [
        {
            "documents": describe_documents(drift.stratum),
            "braked": drift.brake is not None,
            "audits": drift.audit_count,
            "wrong": drift.wrong_count,
            "without answer": drift.unanswered_count,
            "detector, share of limit": drift.level,
            "likely since": str(drift.facts.get("since", ""))[:10] or None,
            "wrong since": drift.facts.get("wrong_count"),
            "audits since": drift.facts.get("audit_count"),
            "more audits because of": MEASURES.get(warned_measures.get(drift.stratum, "")),
        }
        for drift in drifts
    ]
    changes = [
        (event.recorded_at, event.kind, describe_documents(event.stratum), event.recorded_by, event.facts.get("reason"))
        for event in study.events
        if event.kind in ("braked", "released")
    ]
    plotted = {
        describe_documents(drift.stratum): [
            (parse_time(drift.decided_at[item.position]), item.level) for item in drift.evidence
        ]
        for drift in drifts
        if drift.evidence
    }
    return EvaluationSection(
        "drift",
        "Drift and brakes",
        "Each group of documents of one type and source has a detector that compares its newest audits with its earlier ones. "
        "Where it reaches its limit (1), the group is braked: all documents that it accepts are audited until they are "
        "certified again, or an analyst releases it. Without any change, one false brake is expected in "
        f"{RUN_LENGTH:,.0f} audits of all groups together, about a year's at 200 documents a day. Unusual "
        "input alone brakes nothing: it leads to a limited number of further audits, and errors among them count for more.",
        (
            EvaluationTable("By type and source", pd.DataFrame(rows)),
            EvaluationTable(
                "Brakes and releases",
                pd.DataFrame(changes, columns=["time", "event", "documents", "recorded by", "reason"]),
            ),
        ),
        (EvaluationFigure("Detector after each wrong answer", plots.plot_drift(plotted)),) if plotted else (),
    )


def _build_types_section(study: Study) -> EvaluationSection | None:
    measures, type_scores, confusion_table = document_type_scores.score_document_types(study)
    document_count = int(confusion_table.to_numpy().sum())
    if not document_count:
        return None
    overall_rows = [(name, *values) for name, values in measures.items()]
    rows = [
        (scores.type_name, scores.document_count, scores.precision, scores.recall, scores.f1) for scores in type_scores
    ]
    return EvaluationSection(
        "types",
        "Document types",
        f"{document_count} documents whose type an expert vouched for. A document sampled with probability p counts 1 / p "
        "times. “Cannot tell” counts as wrong. Documents that nobody has reviewed yet are left out.",
        (
            EvaluationTable(
                "All types, 95 % intervals (bootstrap over documents)",
                pd.DataFrame(overall_rows, columns=["measure", "estimate", "reviewed only"]),
            ),
            EvaluationTable(
                "By type", pd.DataFrame(rows, columns=["type", "reviewed", "precision", "recall", "f1"]), is_folded=True
            ),
            EvaluationTable(
                "Confusion matrix: true type (rows), the program's type (columns), reviewed documents",
                confusion_table.reset_index(),
                is_folded=True,
            ),
        ),
        (
            EvaluationFigure("Confusion matrix, reviewed documents", plots.plot_confusion(confusion_table)),
            EvaluationFigure(
                "Precision and recall of each type, with 95 % intervals",
                plots.plot_intervals(
                    {
                        f"{scores.type_name}, {name}": estimate
                        for scores in type_scores
                        for name, estimate in (("precision", scores.precision), ("recall", scores.recall))
                        if estimate.value is not None
                    },
                    "share",
                ),
            ),
        ),
    )


def _build_segments_section(study: Study) -> EvaluationSection | None:
    if not segmentation_metrics.list_documents_with_segment_truth(study):
        return None
    rows = [
        (name, *estimates) for name, estimates in segmentation_metrics.estimate_segmentation_measures(study).items()
    ]
    return EvaluationSection(
        "segments",
        "Segments and pages",
        f"{len(segmentation_metrics.list_documents_with_segment_truth(study))} files whose segments an expert vouched for; a file sampled with probability "
        "p counts 1 / p times. A segment is one source document within a file. In the second column, neighbouring segments "
        "of one type were merged before the comparison.",
        (
            EvaluationTable(
                "Measures with 95 % intervals (bootstrap over documents)",
                pd.DataFrame(rows, columns=["measure", "as given", "neighbours of one type merged"]),
            ),
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
        "Patients",
        "Files that name more than one patient, and pages that name a different patient than most pages of their file. The "
        "program compared names, birth dates and record numbers; no expert checked the result. Pages without a patient's name "
        "or number are not counted.",
        (EvaluationTable("By source folder", pd.DataFrame(rows)),),
    )


def _build_presence_section(study: Study) -> EvaluationSection:
    measured_presence = document_type_scores.measure_type_presence(study)
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
                fmean(ratio == 1 for ratio in grounded_ratios) if grounded_ratios else math.nan,
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
            "The share of a document that is assigned to the wrong type.",
        ),
        EvaluationTable(
            "Presence by type, 95 % intervals (bootstrap over documents)",
            pd.DataFrame(rows, columns=["type", "reviewed", "precision", "recall", "f1", "same level"]),
            "Present: any level except NO_EVIDENCE. Reviewed: documents that truly contain the type.",
        ),
    )
    return EvaluationSection(
        "evidence",
        "Evidence, presence, mixture",
        (
            f"Presence and mixture are measured on the {measured_presence.document_count} documents whose mixture an expert opened and vouched "
            "for. A document sampled with probability p counts 1 / p times."
            if measured_presence.document_count
            else "Presence and mixture are not measured: no expert has opened and confirmed a document's mixture yet."
        ),
        (
            EvaluationTable("Evidence", evidence_table, "Computed from the documents' own text; no expert is needed."),
            *(presence_tables if measured_presence.document_count else ()),
        ),
    )


def _merge_estimate_columns_into_one(
    frame: pd.DataFrame, value_column: str, low_column: str, high_column: str
) -> pd.DataFrame:
    """Replace the columns of value and both limits by one column of ``Estimate``."""
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
    paired = production.compare_program_with_production(study)
    paired_rows = [
        ("documents with known truth", paired.document_count),
        ("both right", paired.both_right),
        ("only production right", paired.only_a_right),
        ("only the program right", paired.only_b_right),
        ("neither right", paired.neither_right),
        ("accuracy of the program minus that of production", Quantity(*paired.difference)),
        ("p-value of McNemar's exact test", paired.p_value),
        ("result", paired.describe_winner("production", "the program")),
    ]
    for share_column in ("recall", "precision"):
        class_table = _merge_estimate_columns_into_one(
            class_table, share_column, f"{share_column}_low", f"{share_column}_high"
        )
    return EvaluationSection(
        "production",
        "The production classifier",
        f"{sum(document.production_labels is not None for document in study.documents)} documents have a label of the production classifier; "
        f"{len(difference_table)} of these labels differ from the program's type.",
        (
            EvaluationTable("By type, estimated over all labelled documents", class_table[list(_CLASS_COLUMNS)]),
            EvaluationTable(
                "The program and production on the same documents, those with known truth",
                pd.DataFrame(paired_rows, columns=["measure", "value"]),
            ),
            EvaluationTable("Differences", difference_table[list(_DIFFERENCE_COLUMNS)]),
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
    issue_counts: dict[str, Counter[str]] = {
        agent: Counter(map(str, severities)) for agent, severities in sorted(severities_by_agent.items())
    }
    issue_figure = EvaluationFigure(
        "Issues by agent and severity",
        plots.plot_stacked_bars(issue_counts, plots.SEVERITY_COLOURS, "issues"),
        "; ".join(
            f"{agent}: {', '.join(f'{count} {severity}' for severity, count in counts.items())}"
            for agent, counts in issue_counts.items()
        ),
    )
    quote_count, document_count = verifier_performance.count_struck_quotes(study)
    return EvaluationSection(
        "verifiers",
        "The verifiers",
        "First, for each rule: how often it raised an issue, how experts judged these issues, and how many documents only this "
        "rule escalated. Then the classifier's errors: which verifier escalated them, and which errors no verifier raised."
        + (
            f" Experts struck {quote_count} quotes in {document_count} documents: errors of evidence, not counted as wrong "
            "types or segments."
            if quote_count
            else ""
        ),
        (
            EvaluationTable("By rule", rule_table[list(_RULE_COLUMNS)], _RULE_NOTE),
            EvaluationTable(
                "The classifier's errors, by what escalated them", stopped_table[list(_STOPPED_COLUMNS)], _STOPPED_NOTE
            ),
            EvaluationTable(
                "Corrected by experts although no verifier raised an issue",
                verifier_performance.tabulate_unraised_corrections(study),
            ),
        ),
        (*_plot_rules(rule_table), issue_figure) if severities_by_agent else (),
    )


def _plot_rules(rule_table: pd.DataFrame) -> list[EvaluationFigure]:
    """Plot how often rules are right, and if reviews only they caused were needed."""
    ranked = rule_table.sort_values(["wrong", "raised"], ascending=False, kind="stable")
    judged = ranked[ranked["judged"] > 0].head(_MAX_PLOTTED_RULES).to_dict("records")
    sole = ranked[ranked["alone"] > 0].head(_MAX_PLOTTED_RULES).to_dict("records")
    estimates: dict[str, Estimate] = {f"{row['code']} ({row['wrong']} caught)": row["precision"] for row in judged}
    needs: dict[str, dict[str, int]] = {
        row["code"]: {"needed": row["corrected"], "needless": row["validated"], "not known": row["open"]}
        for row in sole
    }
    return [
        EvaluationFigure(caption, figure)
        for caption, figure, has_data in (
            (
                "How often each rule is right, as experts judged its issues, with 95 % intervals; wrong documents caught in brackets",
                plots.plot_intervals(estimates, "share of the judged issues"),
                estimates,
            ),
            (
                "Documents that only this rule escalated: was the review needed?",
                plots.plot_stacked_bars(needs, plots.NEED_COLOURS, "documents"),
                needs,
            ),
        )
        if has_data
    ]


def _build_calibration_section(study: Study) -> EvaluationSection | None:
    measures, reliability_table = confidence_calibration.measure_confidence_calibration(study)
    if reliability_table.empty:
        return None
    return EvaluationSection(
        "calibration",
        "Calibration of the confidence",
        "Whether the answers of a stated confidence are right as often as it says.",
        (
            EvaluationTable("Calibration", tabulate_measures(measures)),
            EvaluationTable("Reliability", reliability_table, is_folded=True),
        ),
        (EvaluationFigure("Calibration of the confidence", plots.plot_reliability(reliability_table)),),
    )


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
        "Error ranking",
        f"{ranking.document_count} documents whose segments an expert vouched for, {ranking.wrong_count} of them wrong. The program gave a wrong "
        f"document a higher risk than a right one with a probability of {format_cell(ranking.auroc.value)} (AUROC). "
        f"{ranking.wrong_page_count} of {ranking.page_count} pages have a wrong type or a wrong boundary before them.",
        (
            EvaluationTable(
                "Documents whose segments needed correction",
                pd.DataFrame(
                    [(figure.population_description, figure.name, figure.estimate) for figure in shares],
                    columns=["population", "figure", "share"],
                ),
            ),
            EvaluationTable("Yield of the experts' minutes", tabulate_measures(measure_review_yield(study))),
            EvaluationTable(
                "How well risks point at errors",
                pd.DataFrame([("documents", ranking.auroc), ("pages", ranking.page_auroc)], columns=["of", "AUROC"]),
            ),
            EvaluationTable(
                "Errors caught if only the riskiest pages are reviewed",
                pd.DataFrame(
                    ranking.caught_errors,
                    columns=["share of pages reviewed", "errors caught", "best possible share"],
                ),
            ),
        ),
    )


def tabulate_measures(measures: Mapping[str, Any]) -> pd.DataFrame:
    """Tabulate named measures; columns ``measure`` and ``value``."""
    return pd.DataFrame(list(measures.items()), columns=["measure", "value"])


class _UpperBound(Estimate):
    """An upper bound of a share, which has no lower end."""


def _score_wrong_segmentation(document: DocumentRecord) -> float | None:
    correctness = headline_estimates.score_agent_segmentation(document)
    return None if correctness is None else 1 - correctness


def _build_experts_section(study: Study) -> EvaluationSection | None:
    reviewer_table = reviewer_performance.tabulate_reviewer_performance(study)
    if reviewer_table.empty and not study.attention_checks:
        return None
    pair_table, agreement = reviewer_performance.measure_expert_agreement(study)
    attention_tables = (
        EvaluationTable(
            "Attention checks: planted faults noticed (exact 95 % intervals)",
            attention_checks.tabulate_reviewer_fault_detection(study.attention_checks),
            "Noticed: the reviewer corrected the planted fault. Validated: the reviewer accepted the wrong answer as shown. These "
            "cases count in no other figure.",
        ),
        EvaluationTable(
            "Cases with a planted fault", attention_checks.tabulate_attention_checks(study.attention_checks)
        ),
    )
    return EvaluationSection(
        "experts",
        "The experts",
        "An expert who sees the program's type and agrees with it, while a colleague who does not see it gives another type, "
        "may have been influenced by the program: compare the two experts of a pair. The table by reviewer covers different "
        "cases for each reviewer, so it does not show such influence.",
        (
            EvaluationTable("By reviewer", reviewer_table),
            EvaluationTable("Second opinions, given without seeing the first", tabulate_measures(agreement)),
            EvaluationTable("Documents with a first and a second opinion", pair_table),
            EvaluationTable("Validated, later found wrong", reviewer_performance.tabulate_wrong_validations(study)),
            *(attention_tables if study.attention_checks else ()),
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
        ("model calls, those of the built-in model included", sum(record.call_count for record in study.documents)),
        ("tokens", sum(record.token_count for record in study.documents)),
        ("US dollars", f"{sum(known_costs, Decimal(0)):.4f}"),
        ("documents with unknown cost", len(study.documents) - len(known_costs)),
        ("seconds per document, median", median(processing_seconds) if processing_seconds else math.nan),
        ("experts' active minutes, total", sum(active_seconds) / 60),
        ("experts' active seconds per case, median", median(active_seconds) if active_seconds else math.nan),
    ]
    histograms = (
        ("Processing time", processing_seconds, "seconds per document, including waiting", "documents"),
        ("Experts' time", active_seconds, "active seconds per case", "cases"),
        ("Cost", list(map(float, known_costs)) if any(known_costs) else [], "US dollars per document", "documents"),
    )
    return EvaluationSection(
        "cost",
        "Time and cost",
        "",
        (
            EvaluationTable("Totals", pd.DataFrame(rows, columns=["measure", "value"])),
            EvaluationTable(
                "By day and model",
                pd.DataFrame(
                    tabulate_usage_by_day(read_run_records(study.folder)),
                    columns=["day", "model", "calls", "tokens", "cost_usd", "seconds"],
                ),
                "Of all runs of the folder. Seconds: those of the calls, which overlap; of the built-in model, of deciding.",
            ),
        ),
        tuple(
            EvaluationFigure(caption, plots.plot_histogram(values, x_label, y_label))
            for caption, values, x_label, y_label in histograms
            if values
        ),
    )


# ------------------------------------------------------------------------------------------------------- writing


def _build_fields_section(study: Study) -> EvaluationSection | None:
    output_folder = open_output_folder(study.output)
    documents = read_all_extractions(output_folder)
    if not documents:
        return None
    judged = list_judged_extractions(documents)
    prices = [document.usage.get("cost_usd", "0") for document in documents]
    cost = "price unknown" if None in prices else f"{sum(map(Decimal, prices), Decimal(0)):.4f} US dollars"
    alerts = [
        (metric, meaning, len(doc_ids), ", ".join(doc_ids[:_MAX_NAMED_IN_CELL]))
        for metric, meaning, doc_ids in list_alerts(judged)
    ]
    return EvaluationSection(
        "fields",
        "Fields of reports and forms",
        f"{len(judged)} reports and forms in {len(documents)} documents; "
        f"{sum(document.usage.get('calls', 0) for document in documents):,} calls, {cost}.",
        (
            EvaluationTable("Shares with 95 % intervals", tabulate_shares(judged)),
            EvaluationTable(
                "Gain by attempt",
                tabulate_attempts(judged),
                "Gain: mean score minus the score of the attempt before, with its 95 % interval.",
            ),
            EvaluationTable(
                "Errors by field",
                tabulate_field_errors(output_folder, documents),
                "Doubted: reports and forms with an open doubt about the field. Wrong: share of the values that experts "
                "checked and changed, with its 95 % interval.",
            ),
            EvaluationTable(
                "Alerts", pd.DataFrame(alerts, columns=["metric", "meaning", "documents", "the first of them"])
            ),
        ),
    )


def _build_templates_section(study: Study) -> EvaluationSection | None:
    review_cycles = read_template_review_cycles(open_output_folder(study.output))
    if not review_cycles:
        return None
    review_metrics = measure_template_reviews(review_cycles)
    rows = [
        ("approved on the first attempt (first-pass approval)", review_metrics.first_pass_approval_rate, "reviews"),
        ("approved within the retry limit (convergence)", review_metrics.convergence_rate, "reviews"),
        (
            "sent to arbitration (arbitration rate)",
            review_metrics.arbitration_rate,
            "attempts that both reviewers reported on",
        ),
    ]
    return EvaluationSection(
        "templates",
        "Templates of bank statements",
        f"{review_metrics.review_count} reviews of templates in {review_metrics.attempt_count} attempts; {review_metrics.input_tokens:,} tokens in, "
        f"{review_metrics.output_tokens:,} out, "
        + ("price unknown." if review_metrics.cost_usd is None else f"{review_metrics.cost_usd:.4f} US dollars."),
        (
            EvaluationTable("Shares with 95 % intervals", pd.DataFrame(rows, columns=["measure", "share", "of"])),
            EvaluationTable(
                "Issues that only one reviewer reported, where the two disagreed",
                pd.DataFrame(list(review_metrics.disagreement_categories.items()), columns=["category", "issues"]),
            ),
            EvaluationTable(
                "Reasons for escalation",
                pd.DataFrame(list(review_metrics.escalation_reasons.items()), columns=["reason", "reviews"]),
            ),
        ),
    )


@cache
def load_template_environment() -> Environment:
    """Load the templates of reports, with the functions that they use; cached."""
    environment = Environment(
        loader=PackageLoader("evalkit.evaluation"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(cell=format_cell, svg=plots.render_svg, is_number=_is_number)
    return environment


def convert_report_to_json(report: EvaluationReport) -> dict[str, Any]:
    """Convert the report to JSON values; undefined numbers become null.

    Figures and notes are left out.
    """
    return {
        "made_at": report.made_at,
        "output": str(report.study.output),
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
    """Format a table cell as text: shares in percent with interval, missing as "–".

    >>> format_cell(Estimate(0.9, 0.555, 0.9975, 10, "exact")), format_cell(0.25), format_cell(("a", "b")), format_cell(None), format_cell(3.0)
    ('90 % (56–100 %)', '0.25', 'a, b', '–', '3')
    """
    if isinstance(value, Quantity) and value.value is not None:
        upper_text = f"–{value.high:.2g}" if math.isfinite(value.high) else " or more"
        return f"{value.value:.2g} ({value.low:.2g}{upper_text})"
    if isinstance(value, Estimate):
        return _format_share(value)
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


def _format_share(share: Estimate) -> str:
    if share.value is None:
        return "no data"
    if isinstance(share, _UpperBound):
        return "nothing proven" if share.high >= 1 else f"at most {100 * share.high:.3g} %"
    return f"{100 * share.value:.0f} % ({100 * share.low:.0f}–{100 * share.high:.0f} %)"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Estimate | Decimal) and not isinstance(value, bool)
