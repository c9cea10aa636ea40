"""Stratified sampling of further accepted documents for review.

All escalated documents are reviewed; of the accepted ones an audit draws a share (contract, ruling 11). A further,
stratified draw gives more information about rare classes. It takes the fraction ``f`` of those documents of each
stratum that were not selected for review before; a document with the earlier probability ``p`` then has the inclusion
probability ``p + (1 − p) f``. Source: Horvitz and Thompson 1952, two independent draws.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, get_args

from evalkit.classification.document_result import DocumentResult
from evalkit.core.grouping import group_by
from evalkit.errors import EvalkitError, StoreError, UsageError
from evalkit.evaluation.study import DocumentRecord, Study, read_folder_study
from evalkit.pipeline.sample_draws import Draw, Stratum, read_all_draws, read_probability_by_drawn_doc_id
from evalkit.pipeline.supplied_labels import read_stored_production_labels, translate_production_row
from evalkit.review import SMEPacketGenerator, open_index, publish_packet_unless_frozen, read_bundle, read_result
from evalkit.store import (
    OutputFolder,
    OutputIndex,
    packet_file_name,
    require_evalkit_output_folder,
    sample_draw_file_name,
)

StratifyBy = Literal["production", "type", "decision"]
#: For each way to stratify: a function that returns a document's stratum, and the stratum's name if it returns None.
_STRATUM_VALUES: Mapping[StratifyBy, tuple[Callable[[DocumentRecord], str | None], str]] = {
    "production": (
        lambda document: document.production_labels.dominant_type if document.production_labels else None,
        "no label",
    ),
    "type": (lambda document: document.agent_labels.dominant_type if document.agent_labels else None, "cannot tell"),
    "decision": (lambda document: document.decision_reason, "no reason"),
}


def draw_stratified_sample(
    study: Study,
    draw_size: int,
    stratify_by: StratifyBy,
    *,
    seed: str,
    drawn_at: str,
    doc_ids: Collection[str] | None = None,
) -> Draw:
    """Draw ``draw_size`` accepted documents for review, spread evenly over the strata.

    ``drawn_at`` is ISO 8601 in UTC. With ``doc_ids``, only these documents can be drawn. UsageError if no document is left to draw, ``draw_size`` is below 1 or
    ``stratify_by`` is unknown.
    """
    if stratify_by not in get_args(StratifyBy):
        raise UsageError(
            f"documents cannot be stratified by {stratify_by!r}",
            code="SAMPLE-BY",
            remedy="Stratify by production, type or decision.",
        )
    if draw_size < 1:
        raise UsageError(
            f"cannot draw {draw_size} documents",
            code="SAMPLE-NUMBER",
            remedy="Give a number of documents of at least 1.",
        )
    get_stratum, missing_label = _STRATUM_VALUES[stratify_by]
    documents_by_stratum = group_by(
        (
            document
            for document in study.documents
            if document.is_accepted and (doc_ids is None or document.doc_id in doc_ids)
        ),
        lambda document: get_stratum(document) or missing_label,
    )
    unseen_by_stratum = {
        stratum_name: [document for document in stratum_documents if document.truth_status == "unseen"]
        for stratum_name, stratum_documents in sorted(documents_by_stratum.items())
    }
    draw_sizes = _spread_draws_over_strata(
        draw_size, {stratum_name: len(unseen_documents) for stratum_name, unseen_documents in unseen_by_stratum.items()}
    )
    if not any(draw_sizes.values()):
        raise UsageError(
            f"no document is left to draw: every accepted {'' if doc_ids is None else 'and chosen '}document is in the review "
            "queue or reviewed already",
            code="SAMPLE-NOTHING-LEFT",
            remedy="Review the waiting cases, or run more documents.",
        )
    drawn_strata = (
        _draw_stratum(
            stratum_name,
            documents_by_stratum[stratum_name],
            unseen_documents,
            draw_sizes[stratum_name],
            f"{seed}:{drawn_at}",
        )
        for stratum_name, unseen_documents in unseen_by_stratum.items()
        if unseen_documents
    )
    return Draw(by=stratify_by, drawn_at=drawn_at, strata=tuple(drawn_strata))


def _draw_stratum(
    stratum_name: str,
    accepted_documents: Iterable[DocumentRecord],
    unseen_documents: Sequence[DocumentRecord],
    draw_size: int,
    salt: str,
) -> Stratum:
    draw_fraction = draw_size / len(unseen_documents)
    shuffled_documents = sorted(
        unseen_documents, key=lambda document: hashlib.sha256(f"{salt}:{document.sha256}".encode()).digest()
    )
    earlier_probabilities = {document.doc_id: document.inclusion_probability or 0.0 for document in accepted_documents}
    return Stratum(
        value=stratum_name,
        probability={
            doc_id: earlier_probability + (1 - earlier_probability) * draw_fraction
            for doc_id, earlier_probability in earlier_probabilities.items()
        },
        drawn=tuple(sorted(document.doc_id for document in shuffled_documents[:draw_size])),
    )


def _spread_draws_over_strata(draw_size: int, unseen_counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of documents to draw per stratum, as even as the sizes allow.

    >>> _spread_draws_over_strata(7, {"a": 1, "b": 10, "c": 10})
    {'a': 1, 'b': 3, 'c': 3}
    """
    draw_sizes = dict.fromkeys(unseen_counts, 0)
    for _ in range(min(draw_size, sum(unseen_counts.values()))):
        smallest = min(
            (stratum_name for stratum_name in unseen_counts if draw_sizes[stratum_name] < unseen_counts[stratum_name]),
            key=lambda stratum_name: draw_sizes[stratum_name],
        )
        draw_sizes[smallest] += 1
    return draw_sizes


def draw_and_queue_sample(
    output_folder: OutputFolder,
    draw_size: int,
    stratify_by: StratifyBy,
    *,
    seed: str,
    drawn_at: str,
    foreign_types: Mapping[str, str] | None = None,
    doc_ids: Collection[str] | None = None,
) -> Draw:
    """Draw documents for review, record the draw and queue its cases; return the draw.

    The draw is recorded before its cases are queued: if the program is interrupted, the next draw or run queues the
    missing cases. UsageError as in ``draw_stratified_sample``, or if a run is writing; StoreError.
    """
    require_evalkit_output_folder(output_folder)
    with output_folder.hold_run_lock():
        draw = draw_stratified_sample(
            read_folder_study(output_folder, foreign_types=foreign_types),
            draw_size,
            stratify_by,
            seed=seed,
            drawn_at=drawn_at,
            doc_ids=doc_ids,
        )
        if not output_folder.create_json_if_absent(
            sample_draw_file_name(len(read_all_draws(output_folder)) + 1), draw.model_dump(mode="json")
        ):
            raise StoreError(
                "another process recorded a draw at the same time", code="STORE-FAILED", remedy="Repeat the draw."
            )
        with open_index(output_folder) as index:
            _queue_missing_sample_packets(output_folder, index, drawn_at, foreign_types or {})
    return draw


def _queue_missing_sample_packets(
    output_folder: OutputFolder, index: OutputIndex, created_at: str, foreign_types: Mapping[str, str]
) -> None:
    production_labels = read_stored_production_labels(output_folder)
    for doc_id, inclusion_probability in read_probability_by_drawn_doc_id(output_folder).items():
        if output_folder.has_file(packet_file_name(doc_id)):
            continue
        try:
            result, bundle = read_result(output_folder, doc_id), read_bundle(output_folder, doc_id)
        except EvalkitError:
            continue  # damaged or missing: the next run processes the document again and queues its case
        if isinstance(result, DocumentResult):
            packet = SMEPacketGenerator().packet(
                result,
                bundle,
                review_reason="sample",
                inclusion_probability=inclusion_probability,
                production_row=translate_production_row(production_labels[doc_id], foreign_types)
                if doc_id in production_labels
                else None,
                created_at=created_at,
            )
            publish_packet_unless_frozen(output_folder, index, packet)
