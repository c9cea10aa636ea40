"""Attention checks: cases whose known answer is shown with a fault, to measure how often experts notice it.

What others need to know of them is here; ``planting`` makes them. ``review.attention_check_queue`` puts them into the queue
and ``evaluation.attention_outcomes`` says what became of each: both also know opinions, which know this package.
"""

from evalkit.review.attention_checks.records import (
    Fault,
    FaultKind,
    Seeded,
    describe_fault,
    find_damage,
    format_feedback,
    get_record_name,
    is_attention_check,
    is_attention_check_review,
    is_fault_corrected,
    iterate_attention_checks,
    list_stray_records,
    map_attention_checks_by_document,
    read_attention_check,
    tell_feedback,
)

__all__ = [
    "Fault",
    "FaultKind",
    "Seeded",
    "describe_fault",
    "find_damage",
    "format_feedback",
    "get_record_name",
    "is_attention_check",
    "is_attention_check_review",
    "is_fault_corrected",
    "iterate_attention_checks",
    "list_stray_records",
    "map_attention_checks_by_document",
    "read_attention_check",
    "tell_feedback",
]
