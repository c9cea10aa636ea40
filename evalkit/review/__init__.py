"""Expert review: cases, queue, drafts, and the ground truth from reviews."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalkit.review.attention_checks import (
    get_attention_check_file_name,
    is_attention_check_review,
    iterate_check_case_and_doc_ids,
)
from evalkit.review.case import (
    BoundaryDoubt,
    CaseKind,
    HighlightedPlace,
    Opinion,
    RecordLine,
    ReviewCase,
    ViewingRequirements,
)
from evalkit.review.case_files import (
    SMEPacketGenerator,
    publish_packet_unless_frozen,
    read_packet,
    read_review,
    read_review_status,
    withdraw_packet_unless_frozen,
)
from evalkit.review.draft import Draft, ExpertQuote, SegmentFlag
from evalkit.review.field_answers import (
    ExtractedFields,
    FieldAnswer,
    format_field_value,
    get_template_field_or_plain_text,
    is_extraction_review_required,
)
from evalkit.review.gapless_segments import SegmentDraft
from evalkit.review.ground_truth import (
    SIMULATED_PREFIX,
    FieldsGroundTruth,
    GroundTruth,
    GroundTruthRecord,
    IssueVerdict,
    Review,
    ShownMachineAnswers,
    TemplateGroundTruth,
    find_newest_revision,
    is_simulated_reviewer,
    list_revisions,
    withdraw_silver_ground_truth,
    write_silver_ground_truth,
)
from evalkit.review.index_rebuild import open_index
from evalkit.review.issue_context import IssueContext, build_issue_context
from evalkit.review.kinds import CASE_KINDS, list_document_case_ids
from evalkit.review.kinds.classification import ClassificationCorrection, ClassificationPacket, ClassificationReviewCase
from evalkit.review.kinds.extraction import ExtractionPacket, FieldReviewCase
from evalkit.review.kinds.statement_template import TemplatePacket, TemplateReviewCase
from evalkit.review.loaders import load_if_intact, read_bundle, read_extractions, read_result
from evalkit.review.opinions import CaseOpinions, rebuild_case_files_and_list_index_rows
from evalkit.review.packet import (
    ADJUDICATION_SUFFIX,
    EXTRACTION_SUFFIX,
    SECOND_SUFFIX,
    IssueSummary,
    SMEPacket,
    compute_packet_digest,
    get_base_case_id,
    is_packet_frozen,
    issue_text,
)
from evalkit.review.permissions import ReviewerRole
from evalkit.review.plain_sentences import IssueAnswers, describe_issue, get_issue_answers, shows_own_words
from evalkit.review.queue import (
    QueuePage,
    QueueQuery,
    QueueRow,
    ReviewProgress,
    derive_closed_case_rows,
    list_pending_cases_worst_first,
)
from evalkit.review.review_helper import SMEReviewHelper
from evalkit.review.roster import ReviewerRoster
from evalkit.review.session import ReviewSession, SubmissionReceipt
from evalkit.review.submission import Submission
from evalkit.review.submitter import ReviewSubmitter
from evalkit.review.write_lock import hold_case_write_lock

if TYPE_CHECKING:
    from evalkit.review.page_view import HighlightedPage, PageView, view

__all__ = [
    "ADJUDICATION_SUFFIX",
    "CASE_KINDS",
    "EXTRACTION_SUFFIX",
    "SECOND_SUFFIX",
    "SIMULATED_PREFIX",
    "BoundaryDoubt",
    "CaseKind",
    "CaseOpinions",
    "ClassificationCorrection",
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
    "GroundTruthRecord",
    "HighlightedPage",
    "HighlightedPlace",
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
    "ReviewSubmitter",
    "ReviewerRole",
    "ReviewerRoster",
    "SMEPacket",
    "SMEPacketGenerator",
    "SMEReviewHelper",
    "SegmentDraft",
    "SegmentFlag",
    "ShownMachineAnswers",
    "Submission",
    "SubmissionReceipt",
    "TemplateGroundTruth",
    "TemplatePacket",
    "TemplateReviewCase",
    "ViewingRequirements",
    "build_issue_context",
    "compute_packet_digest",
    "derive_closed_case_rows",
    "describe_issue",
    "find_newest_revision",
    "format_field_value",
    "get_attention_check_file_name",
    "get_base_case_id",
    "get_issue_answers",
    "get_template_field_or_plain_text",
    "hold_case_write_lock",
    "is_attention_check_review",
    "is_extraction_review_required",
    "is_packet_frozen",
    "is_simulated_reviewer",
    "issue_text",
    "iterate_check_case_and_doc_ids",
    "list_document_case_ids",
    "list_pending_cases_worst_first",
    "list_revisions",
    "load_if_intact",
    "open_index",
    "publish_packet_unless_frozen",
    "read_bundle",
    "read_extractions",
    "read_packet",
    "read_result",
    "read_review",
    "read_review_status",
    "rebuild_case_files_and_list_index_rows",
    "shows_own_words",
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
