"""Attention checks are put into the queue, and taken out of it."""

from __future__ import annotations

from evalkit.review.attention_checks.records import (
    is_hidden_truth_current,
    iterate_check_case_and_doc_ids,
    read_attention_check,
)
from evalkit.review.opinions import CaseOpinions
from evalkit.review.packet import is_packet_frozen, serialise_packet
from evalkit.store import OutputFolder, OutputIndex, packet_file_name


def queue_or_withdraw_attention_checks(
    output_folder: OutputFolder, index: OutputIndex, now: str, doc_id: str | None = None
) -> None:
    """Put the attention checks (of one document, or all) into the queue that belong there; the caller holds the lock.

    One of which the planted part's truth is another by now is taken out, unless somebody has begun it at ``now`` (ISO 8601, UTC).
    Heals a crash after one was written down. StoreError where one cannot be read.
    """
    for case_id, bundle_doc_id in list(iterate_check_case_and_doc_ids(output_folder)):
        if doc_id not in (None, bundle_doc_id):
            continue
        attention_check, name = read_attention_check(output_folder, case_id), packet_file_name(case_id)
        is_begun = (
            is_packet_frozen(output_folder, index, case_id, now) or index.deferrals.find_deferral(case_id) is not None
        )
        if not is_begun and not is_hidden_truth_current(output_folder, attention_check):
            output_folder.remove_file(name)
        elif not output_folder.has_file(name):
            output_folder.write_json(name, serialise_packet(attention_check.packet))
        if output_folder.has_file(name):
            row = CaseOpinions.read(output_folder, case_id).build_index_row(output_folder, case_id)
            if is_begun:
                row.pop("review_status")  # claims have a say in it
            index.upsert_case(row)
        else:
            index.remove_cases(case_id)
