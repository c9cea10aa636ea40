"""Attention checks: cases whose known answer is shown with a fault, to measure how often experts notice it.

What others need to know of them is here; ``planting`` makes them. ``review.attention_check_queue`` puts them into the queue
and ``evaluation.attention_outcomes`` says what became of each: both also know opinions, which know this package.
"""

from evalkit.review.attention_checks.records import (
    AttentionCheck,
    FaultKind,
    PlantedFault,
    describe_fault,
    find_attention_check_damage,
    format_attention_check_feedback,
    get_attention_check_file_name,
    is_attention_check,
    is_attention_check_review,
    is_fault_corrected,
    iterate_check_case_and_doc_ids,
    list_stray_attention_check_files,
    map_check_case_ids_by_doc_id,
    read_attention_check,
    read_attention_check_feedback,
)

__all__ = [
    "AttentionCheck",
    "FaultKind",
    "PlantedFault",
    "describe_fault",
    "find_attention_check_damage",
    "format_attention_check_feedback",
    "get_attention_check_file_name",
    "is_attention_check",
    "is_attention_check_review",
    "is_fault_corrected",
    "iterate_check_case_and_doc_ids",
    "list_stray_attention_check_files",
    "map_check_case_ids_by_doc_id",
    "read_attention_check",
    "read_attention_check_feedback",
]
