"""Further documents for review, drawn with known probabilities.

Escalated documents are all looked at; of accepted ones an audit draws a share (contract, ruling 11). Whoever wants to
know more about rare classes draws again, in strata. A document that was at risk in both has the probability
``p + (1 − p) f``: drawn by what went before, or, if not, by this draw, which takes the fraction ``f`` of each stratum's
documents that nobody was to look at yet. Source: Horvitz and Thompson 1952, two independent draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, get_args

from evalkit.classification.document_result import DocumentResult
from evalkit.core.grouping import group_by
from evalkit.errors import EvalkitError, StoreError, UsageError
from evalkit.evaluation.study import DocumentRecord, Study, read_folder_study
from evalkit.pipeline.sample_draws import Draw, Stratum, read_all_draws, read_probability_by_drawn_doc_id
from evalkit.pipeline.supplied_labels import read_stored_production_labels, translate_production_row
from evalkit.review.case_files import SMEPacketGenerator, publish_packet_unless_frozen
from evalkit.review.loaders import read_bundle, read_result
from evalkit.store import OutputFolder, OutputIndex, packet_file_name, sample_draw_file_name

StratifyBy = Literal["production", "type", "decision"]
#: What a document is sorted by; the words for those that have no such value.
_STRATUM_VALUES: Mapping[StratifyBy, tuple[Callable[[DocumentRecord], str | None], str]] = {
    "production": (
        lambda document: document.production_labels.dominant_type if document.production_labels else None,
        "no label",
    ),
    "type": (lambda document: document.agent_labels.dominant_type if document.agent_labels else None, "cannot tell"),
    "decision": (lambda document: document.decision_reason, "no reason"),
}


def draw_stratified_sample(study: Study, draw_size: int, stratify_by: StratifyBy, *, seed: str, drawn_at: str) -> Draw:
    """Draw documents for review, spread evenly over strata to include rare ones.

    ``drawn_at`` is ISO 8601 in UTC. UsageError where nothing is left to draw, or ``draw_size`` or ``stratify_by`` is wrong.
    """
    if stratify_by not in get_args(StratifyBy):
        raise UsageError(
            f"documents cannot be drawn by {stratify_by!r}",
            code="SAMPLE-BY",
            remedy="Draw by production, type or decision.",
        )
    if draw_size < 1:
        raise UsageError(f"{draw_size} documents cannot be drawn", code="SAMPLE-NUMBER", remedy="Draw at least one.")
    get_stratum, missing_label = _STRATUM_VALUES[stratify_by]
    documents_by_stratum = group_by(
        (document for document in study.documents if document.is_accepted),
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
            "every accepted document is in the queue or reviewed already",
            code="SAMPLE-NOTHING-LEFT",
            remedy="Review what waits, or run more documents.",
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
    """Spread ``draw_size`` over the strata as evenly as their sizes allow, in order.

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
) -> Draw:
    """Draw documents and put them into the queue; what was drawn.

    The draw is written down before its cases: what a broken run left out is put into the queue by the next draw, or by
    the next run. UsageError as in ``draw_stratified_sample``, or where a run is writing; StoreError.
    """
    with output_folder.hold_run_lock():
        draw = draw_stratified_sample(
            read_folder_study(output_folder, foreign_types=foreign_types),
            draw_size,
            stratify_by,
            seed=seed,
            drawn_at=drawn_at,
        )
        if not output_folder.create_json_if_absent(
            sample_draw_file_name(len(read_all_draws(output_folder)) + 1), draw.model_dump(mode="json")
        ):
            raise StoreError(
                "another draw was written at the same moment", code="STORE-FAILED", remedy="Draw once more."
            )
        with OutputIndex(output_folder) as index:
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
            continue  # damaged or gone: the next run reads it again and puts it into the queue
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
