"""People: what an expert is asked, what stands around it, and what becomes of the answer."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalkit.review.case import ReviewCase, ViewingRequirements
from evalkit.review.draft import Draft, SegmentDraft, SegmentFlag
from evalkit.review.field_answers import ExtractedFields, FieldAnswer
from evalkit.review.field_case import FieldReviewCase
from evalkit.review.ground_truth import (
    FieldsGroundTruth,
    GroundTruth,
    IssueVerdict,
    Review,
    ShownMachineAnswers,
    TemplateGroundTruth,
    withdraw_silver_ground_truth,
    write_silver_ground_truth,
)
from evalkit.review.issue_context import IssueContext, build_issue_context
from evalkit.review.opinions import Opinion, rebuild_case_files_and_list_index_rows
from evalkit.review.packet import (
    IssueSummary,
    SMEPacket,
    SMEPacketGenerator,
    compute_packet_digest,
    issue_text,
    publish_packet_unless_frozen,
    withdraw_packet_unless_frozen,
)
from evalkit.review.queue import (
    QueuePage,
    QueueQuery,
    QueueRow,
    ReviewProgress,
    derive_closed_case_rows,
    list_pending_cases_worst_first,
    read_review_status,
)
from evalkit.review.review_helper import SMEReviewHelper
from evalkit.review.session import ReviewSession, SubmissionReceipt
from evalkit.review.template_case import TemplateReviewCase

if TYPE_CHECKING:
    from evalkit.review.page_view import HighlightedPage, PageView, view

__all__ = [
    "Draft",
    "ExtractedFields",
    "FieldAnswer",
    "FieldReviewCase",
    "FieldsGroundTruth",
    "GroundTruth",
    "HighlightedPage",
    "IssueContext",
    "IssueSummary",
    "IssueVerdict",
    "Opinion",
    "PageView",
    "QueuePage",
    "QueueQuery",
    "QueueRow",
    "Review",
    "ReviewCase",
    "ReviewProgress",
    "ReviewSession",
    "SMEPacket",
    "SMEPacketGenerator",
    "SMEReviewHelper",
    "SegmentDraft",
    "SegmentFlag",
    "ShownMachineAnswers",
    "SubmissionReceipt",
    "TemplateGroundTruth",
    "TemplateReviewCase",
    "ViewingRequirements",
    "build_issue_context",
    "compute_packet_digest",
    "derive_closed_case_rows",
    "issue_text",
    "list_pending_cases_worst_first",
    "publish_packet_unless_frozen",
    "read_review_status",
    "rebuild_case_files_and_list_index_rows",
    "view",
    "withdraw_packet_unless_frozen",
    "withdraw_silver_ground_truth",
    "write_silver_ground_truth",
]


def __getattr__(name: str) -> Any:
    # Pages with highlighted passages are for notebooks: the experts' many screens do without the image library.
    if name in ("HighlightedPage", "PageView", "view"):
        return getattr(import_module("evalkit.review.page_view"), name)
    raise AttributeError(f"module 'evalkit.review' has no attribute {name!r}")
