"""Putting attention checks into the review queue and taking them out of it."""

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
    """Queue the attention checks of one document, or of all documents if None.

    A check whose planted fault no longer hides the current ground truth is removed from the queue, unless an expert has
    begun the check by ``now`` (ISO 8601, UTC). A check that was recorded but not queued, because the program crashed in
    between, is queued. The caller holds the write lock. StoreError if a recorded check cannot be read.
    """
    for case_id, bundle_doc_id in list(iterate_check_case_and_doc_ids(output_folder)):
        if doc_id not in (None, bundle_doc_id):
            continue
        attention_check, name = read_attention_check(output_folder, case_id), packet_file_name(case_id)
        is_begun = is_packet_frozen(output_folder, index, case_id, now) or index.deferrals.find(case_id) is not None
        if not is_begun and not is_hidden_truth_current(output_folder, attention_check):
            output_folder.remove_file(name)
        elif not output_folder.has_file(name):
            output_folder.write_json(name, serialise_packet(attention_check.packet))
        if output_folder.has_file(name):
            row = CaseOpinions.read(output_folder, case_id).build_index_row(output_folder, case_id)
            if is_begun:
                row.pop("review_status")  # claims and deferrals decide the status of a case that was begun
            index.upsert_case(row)
        else:
            index.remove_cases(case_id)
