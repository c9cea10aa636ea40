"""Expert review: cases, their queue and drafts, and the ground truth from reviews."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalkit.review.case import CaseKind, Opinion, RecordLine, ReviewCase, ViewingRequirements
from evalkit.review.case_files import (
    SMEPacketGenerator,
    publish_packet_unless_frozen,
    read_review_status,
    withdraw_packet_unless_frozen,
)
from evalkit.review.draft import Draft, ExpertQuote, SegmentFlag
from evalkit.review.field_answers import ExtractedFields, FieldAnswer
from evalkit.review.gapless_segments import SegmentDraft
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
from evalkit.review.kinds import CASE_KINDS
from evalkit.review.kinds.classification import ClassificationPacket, ClassificationReviewCase
from evalkit.review.kinds.extraction import ExtractionPacket, FieldReviewCase
from evalkit.review.kinds.statement_template import TemplatePacket, TemplateReviewCase
from evalkit.review.opinions import rebuild_case_files_and_list_index_rows
from evalkit.review.packet import IssueSummary, SMEPacket, compute_packet_digest, issue_text
from evalkit.review.plain_sentences import IssueAnswers, get_issue_answers
from evalkit.review.queue import (
    QueuePage,
    QueueQuery,
    QueueRow,
    ReviewProgress,
    derive_closed_case_rows,
    list_pending_cases_worst_first,
)
from evalkit.review.review_helper import SMEReviewHelper
from evalkit.review.session import ReviewSession, SubmissionReceipt

if TYPE_CHECKING:
    from evalkit.review.page_view import HighlightedPage, PageView, view

__all__ = [
    "CASE_KINDS",
    "CaseKind",
    "ClassificationPacket",
    "ClassificationReviewCase",
    "Draft",
    "ExpertQuote",
    "ExtractedFields",
    "ExtractionPacket",
    "FieldAnswer",
    "FieldReviewCase",
    "FieldsGroundTruth",
    "GroundTruth",
    "HighlightedPage",
    "IssueAnswers",
    "IssueContext",
    "IssueSummary",
    "IssueVerdict",
    "Opinion",
    "PageView",
    "QueuePage",
    "QueueQuery",
    "QueueRow",
    "RecordLine",
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
    "TemplatePacket",
    "TemplateReviewCase",
    "ViewingRequirements",
    "build_issue_context",
    "compute_packet_digest",
    "derive_closed_case_rows",
    "get_issue_answers",
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
    # Only notebooks show pages with highlights: the experts' many screens do not load the image library.
    if name in ("HighlightedPage", "PageView", "view"):
        return getattr(import_module("evalkit.review.page_view"), name)
    raise AttributeError(f"module 'evalkit.review' has no attribute {name!r}")
