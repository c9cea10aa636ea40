"""Comparison of the production classifier with the agent and with the truth.

A production label that is none of the five document types, and that no setting maps to one of them, counts as unknown
and is not compared.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from evalkit.document_types import list_type_names
from evalkit.evaluation.headline_estimates import is_outside_random_draw
from evalkit.evaluation.intervals import (
    CertainlyReviewedCounts,
    DrawnDocument,
    Estimate,
    Observation,
    estimate_hit_share_in_domain,
    estimate_proportion,
    estimate_weighted_mean,
    widen_to_process,
)
from evalkit.evaluation.run_comparison import PairedAccuracy, compare_paired_accuracy
from evalkit.evaluation.study import DocumentRecord, Study

DIFFERENCE_COLUMNS = (
    *("doc_id", "production", "agent", "truth", "right", "production_confidence", "agent_confidence"),
    *("decision", "pages", "standing", "simulated"),
)
_ESTIMATE_SUFFIXES = ("", "_low", "_high", "_n")
CLASS_COLUMNS = (
    *("type", "true_reviewed", "said", "said_reviewed"),
    *(f"{name}{end}" for name in ("recall", "precision") for end in _ESTIMATE_SUFFIXES),
    *("recall_reviewed_only", "precision_reviewed_only", "wrong", "simulated"),
)


def tabulate_production_vs_agent(study: Study) -> pd.DataFrame:
    """Tabulate documents for which production and agent give different types.

    For the agent's evidence about one of them, see ``tabulate_agent_evidence``.

    Columns:
        doc_id: the document.
        production, agent: the type given by each; the agent's is None if it cannot tell or has no usable answer.
        truth: the true type; None if no expert vouches for one.
        right: who is right: ``production``, ``agent``, ``neither``, or ``not known``.
        production_confidence, agent_confidence: the confidence in these types, 0..1; None if unknown.
        decision: the arbiter's decision.
        pages: the number of pages; None if unknown.
        standing: the truth status, as in ``DocumentRecord.truth_status``.
        simulated: 1 if a simulated reviewer (a program) supplied the truth, else 0.
    """
    rows = [
        {
            "doc_id": document.doc_id,
            "production": production_label,
            "agent": _get_agent_type(document),
            "truth": get_true_type(document),
            "right": _name_side_with_true_type(document),
            "production_confidence": document.production_labels.confidence if document.production_labels else None,
            "agent_confidence": document.agent_labels.confidence if document.agent_labels else None,
            "decision": document.decision,
            "pages": document.page_count,
            "standing": document.truth_status,
            "simulated": int(_has_simulated_truth(document)),
        }
        for document in study.documents
        if (production_label := get_production_type(document)) is not None
        and production_label != _get_agent_type(document)
    ]
    return pd.DataFrame(rows, columns=list(DIFFERENCE_COLUMNS))


def tabulate_production_scores_by_type(study: Study) -> pd.DataFrame:
    """Tabulate the production classifier's precision and recall, lowest recall first.

    Columns: type: the document type. true_reviewed: number of documents known to have this type. said, said_reviewed:
        number of documents to which production gives this type; number of these with known truth. recall, recall_low,
        recall_high, recall_n: share (0..1) of all documents of the type to which production gives it,
            weighted by inclusion probability, with its 95 % interval and number of observations. The interval is that
            of all documents like these, of which the archive is a sample.
        precision, precision_low, precision_high, precision_n: share (0..1) of all documents to which production gives
            the type that truly have it; escalated documents without a review count as wrong, at the high end as right.
        recall_reviewed_only, precision_reviewed_only: unweighted shares of the reviewed documents, among which
            escalated documents are over-represented.
        wrong: the doc_ids of documents of the type to which production gives another type.
        simulated: number of truths in the row that a simulated reviewer (a program) supplied.
    """
    labelled_documents = [document for document in study.documents if get_production_type(document) is not None]
    occurring_types = {
        type_name
        for document in labelled_documents
        for type_name in (get_true_type(document), get_production_type(document))
    }
    type_names = [type_name for type_name in list_type_names() if type_name in occurring_types]
    rows = [_build_production_type_row(class_name, labelled_documents) for class_name in type_names]
    frame = pd.DataFrame(rows, columns=list(CLASS_COLUMNS))
    return frame.sort_values("recall", kind="stable", na_position="last", ignore_index=True)


def _build_production_type_row(type_name: str, labelled_documents: Sequence[DocumentRecord]) -> dict[str, Any]:
    true_documents = [document for document in labelled_documents if get_true_type(document) == type_name]
    called_documents = [document for document in labelled_documents if get_production_type(document) == type_name]
    called_reviewed = [document for document in called_documents if get_true_type(document) is not None]
    right_documents = [document for document in true_documents if get_production_type(document) == type_name]
    # How many documents have the type is not known of all: the known ones are fewer, so the interval is rather too wide.
    recall = widen_to_process(_estimate_recall(type_name, labelled_documents), len(true_documents))
    right_doc_ids = frozenset(document.doc_id for document in right_documents)
    precision = widen_to_process(_estimate_share(called_documents, right_doc_ids), len(called_documents))
    judged_documents = {document.doc_id: document for document in (*true_documents, *called_reviewed)}.values()
    return {
        "type": type_name,
        "true_reviewed": len(true_documents),
        "said": len(called_documents),
        "said_reviewed": len(called_reviewed),
        **_expand_estimate("recall", recall),
        **_expand_estimate("precision", precision),
        "recall_reviewed_only": estimate_proportion(len(right_documents), len(true_documents)).value,
        "precision_reviewed_only": estimate_proportion(len(right_documents), len(called_reviewed)).value,
        "wrong": tuple(document.doc_id for document in true_documents if get_production_type(document) != type_name),
        "simulated": sum(map(_has_simulated_truth, judged_documents)),
    }


def compare_program_with_production(study: Study) -> PairedAccuracy:
    """Compare production (A) with the program (B) on documents with known truth.

    Source: McNemar's exact test; the documents are no random selection of all.
    """
    return compare_paired_accuracy(
        [
            (get_production_type(document) == true_type, _get_agent_type(document) == true_type)
            for document in study.documents
            if (true_type := get_true_type(document)) is not None and get_production_type(document) is not None
        ]
    )


def _expand_estimate(column_name: str, estimate: Estimate) -> dict[str, float | None]:
    values = (estimate.value, estimate.low, estimate.high, estimate.n)
    return {f"{column_name}{suffix}": value for suffix, value in zip(_ESTIMATE_SUFFIXES, values, strict=True)}


def _estimate_recall(type_name: str, labelled_documents: Sequence[DocumentRecord]) -> Estimate:
    certain_outcomes = [
        (get_true_type(document), get_production_type(document) == type_name)
        for document in labelled_documents
        if is_outside_random_draw(document)
    ]
    uncertain_documents = [document for document in labelled_documents if not is_outside_random_draw(document)]
    return estimate_hit_share_in_domain(
        CertainlyReviewedCounts(
            hits=certain_outcomes.count((type_name, True)),
            misses=certain_outcomes.count((type_name, False)),
            undetermined_hits=certain_outcomes.count((None, True)),
            undetermined_misses=certain_outcomes.count((None, False)),
        ),
        [
            DrawnDocument(
                None if (true_label := get_true_type(document)) is None else true_label == type_name,
                get_production_type(document) == type_name,
                document.review_probability,
            )
            for document in uncertain_documents
            if document.review_probability and document.has_expert_action
        ],
        len(uncertain_documents),
    )


def _estimate_share(documents: Sequence[DocumentRecord], hit_doc_ids: frozenset[str]) -> Estimate:
    observations = [
        Observation(
            None if get_true_type(document) is None else float(document.doc_id in hit_doc_ids),
            document.review_probability,
        )
        for document in documents
        if document.review_probability and (document.review_probability == 1 or document.has_expert_action)
    ]
    return estimate_weighted_mean(
        observations, len(documents), certain_count=sum(map(is_outside_random_draw, documents))
    )


def get_production_type(document: DocumentRecord) -> str | None:
    """Return the production classifier's type of a document; None if unknown."""
    return document.production_labels.dominant_type if document.production_labels else None


def get_true_type(document: DocumentRecord) -> str | None:
    """Return the document's true type; None if no expert or label file gives one."""
    truth = document.truth
    return truth.labels.dominant_type if truth and truth.is_vouched("dominant_type") else None


def _get_agent_type(document: DocumentRecord) -> str | None:
    return document.agent_labels.dominant_type if document.agent_labels else None


def _name_side_with_true_type(document: DocumentRecord) -> str:
    true_label = get_true_type(document)
    if true_label is None:
        return "not known"
    return {get_production_type(document): "production", _get_agent_type(document): "agent"}.get(true_label, "neither")


def _has_simulated_truth(document: DocumentRecord) -> bool:
    return bool(document.truth and document.truth.is_simulated)
