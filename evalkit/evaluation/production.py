"""The production classifier against the agent and against what is true: where they differ, and what production gets wrong.

A label of production that is none of the five types, and that no setting maps to one, is never right and keeps its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from evalkit.classification.schema import ClassificationOutput
from evalkit.evaluation.domain import Certain, Drawn, share_within
from evalkit.evaluation.estimates import is_certain
from evalkit.evaluation.intervals import Estimate, Observed, exact, weighted
from evalkit.evaluation.study import TYPES, Document, Study
from evalkit.store import OutputFolder, result_file_name, validate_stored

DIFFERENCE_COLUMNS = (
    *("doc_id", "production", "agent", "truth", "right", "production_confidence", "agent_confidence"),
    *("decision", "pages", "standing", "simulated"),
)
EVIDENCE_COLUMNS = ("page", "type", "snippet", "anchors")
CONFUSION_COLUMNS = ("truth", "production", "reviewed_only", "estimated", "low", "high", "documents", "simulated")
_SHARE = ("", "_low", "_high", "_n")
CLASS_COLUMNS = (
    *("type", "is_foreign", "true_reviewed", "said", "said_reviewed"),
    *(f"{name}{end}" for name in ("recall", "precision") for end in _SHARE),
    *("recall_reviewed_only", "precision_reviewed_only", "wrong", "simulated"),
)


def differences(study: Study) -> pd.DataFrame:
    """The documents of which production and agent say different types, by doc_id. Their evidence: ``evidence_of``.

    Columns:
        doc_id: the document.
        production, agent: their types; the agent's is None where it cannot tell or has no usable answer.
        truth: None where nobody stands for a type.
        right: ``production``, ``agent``, ``neither``, or ``not known``.
        production_confidence, agent_confidence: in these types, 0..1; None where not told.
        decision: the arbiter's.
        pages: of the document; None where not known.
        standing: what is known of its truth, as in ``Document``.
        simulated: 1 where a program told the truth.
    """
    rows = [
        {
            "doc_id": one.doc_id,
            "production": said,
            "agent": _agent(one),
            "truth": true_type(one),
            "right": _right(one),
            "production_confidence": one.production.confidence if one.production else None,
            "agent_confidence": one.agent.confidence if one.agent else None,
            "decision": one.decision,
            "pages": one.pages,
            "standing": one.standing,
            "simulated": int(_is_simulated(one)),
        }
        for one in study.documents
        if (said := production_type(one)) is not None and said != _agent(one)
    ]
    return pd.DataFrame(rows, columns=list(DIFFERENCE_COLUMNS))


def evidence_of(study: Study, doc_id: str) -> pd.DataFrame:
    """What the agent quotes: for its type of the whole document first, then for others; within one, larger shares first.

    Columns: ``page`` that the agent claims, from 1; ``type`` that the quote is to support; ``snippet``; ``anchors``, the
    terms in it that decided. Empty where there is no usable answer. Reads the document's result: NotFound where there
    is none, StoreError where it is damaged.
    """
    name = result_file_name(doc_id)
    stored = OutputFolder(study.output).read_json(name).get("classification")
    if stored is None:
        return pd.DataFrame([], columns=list(EVIDENCE_COLUMNS))
    answer = validate_stored(ClassificationOutput, stored, name, "Run the document with --fresh.")
    claims = [one for segment in answer.segments for one in segment.segment_composition]
    claims.sort(key=lambda one: (one.document_type != answer.dominant_type_overall, -one.segment_share))
    rows = [
        (quote.page, str(one.document_type), quote.snippet, quote.anchors_found)
        for one in claims
        for quote in one.top_evidence
    ]
    return pd.DataFrame(rows, columns=list(EVIDENCE_COLUMNS))


def confusion(study: Study) -> pd.DataFrame:
    """What production called the documents of each true type: one row per pair that was seen, the types in their order.

    Columns:
        truth, production: the types.
        reviewed_only: documents whose truth is known; escalated ones are too many among them.
        estimated, low, high: documents among all that production labelled, by inclusion probability, with the 95 %
            interval; the pending count in no cell but for all that they could be in ``high``. ``estimated`` is None where
            no accepted document was looked at.
        documents: the doc_ids of ``reviewed_only``.
        simulated: how many of them a program judged.
    """
    labelled = _labelled(study)
    cells: dict[tuple[str, str], list[Document]] = {}
    for one in labelled:
        truth, said = true_type(one), production_type(one)
        if truth is not None and said is not None:
            cells.setdefault((truth, said), []).append(one)
    order = _in_order({kind for pair in cells for kind in pair})
    rows = []
    for pair in sorted(cells, key=lambda pair: (order.index(pair[0]), order.index(pair[1]))):
        share = _share(labelled, frozenset(one.doc_id for one in cells[pair]))
        rows.append(
            {
                "truth": pair[0],
                "production": pair[1],
                "reviewed_only": len(cells[pair]),
                "estimated": None if share.value is None else share.value * len(labelled),
                "low": share.low * len(labelled),
                "high": share.high * len(labelled),
                "documents": tuple(one.doc_id for one in cells[pair]),
                "simulated": sum(map(_is_simulated, cells[pair])),
            }
        )
    return pd.DataFrame(rows, columns=list(CONFUSION_COLUMNS))


def worst_classes(study: Study) -> pd.DataFrame:
    """How good production is at each type: one row per type that occurs, the lowest recall first, unknown ones last.

    Columns:
        type, is_foreign: a type, or a label of production's that is none of the five; only precision is asked of it.
        true_reviewed: documents known to be of the type.
        said, said_reviewed: documents that production calls so; those of them whose truth is known.
        recall, recall_low, recall_high, recall_n: of all documents of the type, the share that production calls so, 0..1,
            by inclusion probability, with the 95 % interval and the number of observations that it rests on.
        precision, precision_low, precision_high, precision_n: of all documents that production calls so, the share that
            is of the type; escalated ones that nobody has judged yet count as wrong, in the high end as right.
        recall_reviewed_only, precision_reviewed_only: of the reviewed documents, unweighted. Escalated ones are too many
            among them.
        wrong: the doc_ids of the type that production calls otherwise.
        simulated: how many truths of the row a program told.
    """
    labelled = _labelled(study)
    names = _in_order({one for document in labelled for one in (true_type(document), production_type(document)) if one})
    rows = [_class_row(name, labelled) for name in names]
    frame = pd.DataFrame(rows, columns=list(CLASS_COLUMNS))
    return frame.sort_values("recall", kind="stable", na_position="last", ignore_index=True)


def _class_row(name: str, labelled: Sequence[Document]) -> dict[str, Any]:
    truly = [one for one in labelled if true_type(one) == name]
    said = [one for one in labelled if production_type(one) == name]
    said_reviewed = [one for one in said if true_type(one) is not None]
    right = [one for one in truly if production_type(one) == name]
    recall = _recall(name, labelled)
    precision = _share(said, frozenset(one.doc_id for one in right))
    judged = {one.doc_id: one for one in (*truly, *said_reviewed)}.values()
    return {
        "type": name,
        "is_foreign": name not in TYPES,
        "true_reviewed": len(truly),
        "said": len(said),
        "said_reviewed": len(said_reviewed),
        **_named("recall", recall),
        **_named("precision", precision),
        "recall_reviewed_only": exact(len(right), len(truly)).value,
        "precision_reviewed_only": exact(len(right), len(said_reviewed)).value,
        "wrong": tuple(one.doc_id for one in truly if production_type(one) != name),
        "simulated": sum(map(_is_simulated, judged)),
    }


def _named(name: str, estimate: Estimate) -> dict[str, float | None]:
    values = (estimate.value, estimate.low, estimate.high, estimate.n)
    return {f"{name}{end}": value for end, value in zip(_SHARE, values, strict=True)}


def _recall(name: str, labelled: Sequence[Document]) -> Estimate:
    certain = [(true_type(one), production_type(one) == name) for one in labelled if is_certain(one)]
    others = [one for one in labelled if not is_certain(one)]
    return share_within(
        Certain(
            hits=certain.count((name, True)),
            misses=certain.count((name, False)),
            open_hits=certain.count((None, True)),
            open_misses=certain.count((None, False)),
        ),
        [
            Drawn(_is(name, true_type(one)), production_type(one) == name, one.probability)
            for one in others
            if one.probability and one.was_looked_at
        ],
        len(others),
    )


def _is(name: str, truth: str | None) -> bool | None:
    return None if truth is None else truth == name


def _share(documents: Sequence[Document], hits: frozenset[str]) -> Estimate:
    """The share of hits (doc_ids) among all these documents, of which some were looked at."""
    observed = [
        Observed(None if true_type(one) is None else float(one.doc_id in hits), one.probability)
        for one in documents
        if one.probability and (one.probability == 1 or one.was_looked_at)
    ]
    return weighted(observed, len(documents), take_all=sum(map(is_certain, documents)))


def production_type(document: Document) -> str | None:
    """What production says; None where that is not known."""
    return document.production.dominant_type if document.production else None


def true_type(document: Document) -> str | None:
    """The type that somebody stands for; None where nobody does."""
    truth = document.truth
    return truth.labels.dominant_type if truth and truth.says("dominant_type") else None


def _agent(document: Document) -> str | None:
    return document.agent.dominant_type if document.agent else None


def _right(document: Document) -> str:
    truth = true_type(document)
    if truth is None:
        return "not known"
    return {production_type(document): "production", _agent(document): "agent"}.get(truth, "neither")


def _is_simulated(document: Document) -> bool:
    return bool(document.truth and document.truth.is_simulated)


def _labelled(study: Study) -> list[Document]:
    return [one for one in study.documents if production_type(one) is not None]


def _in_order(names: Iterable[str]) -> list[str]:
    """The five types in their order, then the others by name."""
    found = set(names)
    return [*(kind for kind in TYPES if kind in found), *sorted(found - set(TYPES))]
