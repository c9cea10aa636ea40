"""Attention checks: cases with a planted fault, to see if experts notice it.

This package exports what reads their records; ``planting`` creates attention checks. ``review.opinions`` queues them and
``evaluation.attention_outcomes`` reports the outcome of each. These two modules are outside the package because they
depend on the reviews of other cases.
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
