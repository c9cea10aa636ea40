"""People: what an expert is asked, what stands around it, and what becomes of the answer."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalkit.review.case import Case, MustSee
from evalkit.review.context import IssueContext, issue_context
from evalkit.review.desk import Desk, Submitted
from evalkit.review.draft import Draft, SegmentDraft, SegmentFlag
from evalkit.review.field_case import FieldCase
from evalkit.review.fields import FieldAnswer, FormFields
from evalkit.review.ground_truth import (
    FieldsGroundTruth,
    GroundTruth,
    IssueVerdict,
    Review,
    Shown,
    TemplateGroundTruth,
    accept_silver,
    withdraw_silver,
)
from evalkit.review.helper import SMEReviewHelper
from evalkit.review.opinions import Opinion, reproject
from evalkit.review.packet import (
    IssueSummary,
    SMEPacket,
    SMEPacketGenerator,
    issue_text,
    packet_digest,
    publish,
    withdraw,
)
from evalkit.review.queue import (
    Progress,
    Queue,
    QueueRow,
    QueueView,
    pending,
    rebuild_closings,
    review_status,
)
from evalkit.review.template_case import TemplateReview

if TYPE_CHECKING:
    from evalkit.review.page_view import LitPage, PageView, view

__all__ = [
    "Case",
    "Desk",
    "Draft",
    "FieldAnswer",
    "FieldCase",
    "FieldsGroundTruth",
    "FormFields",
    "GroundTruth",
    "IssueContext",
    "IssueSummary",
    "IssueVerdict",
    "LitPage",
    "MustSee",
    "Opinion",
    "PageView",
    "Progress",
    "Queue",
    "QueueRow",
    "QueueView",
    "Review",
    "SMEPacket",
    "SMEPacketGenerator",
    "SMEReviewHelper",
    "SegmentDraft",
    "SegmentFlag",
    "Shown",
    "Submitted",
    "TemplateGroundTruth",
    "TemplateReview",
    "accept_silver",
    "issue_context",
    "issue_text",
    "packet_digest",
    "pending",
    "publish",
    "rebuild_closings",
    "reproject",
    "review_status",
    "view",
    "withdraw",
    "withdraw_silver",
]


def __getattr__(name: str) -> Any:
    # Pictures with lit passages are for notebooks: the expert's screen, of which there are many, goes without their library.
    if name in ("LitPage", "PageView", "view"):
        return getattr(import_module("evalkit.review.page_view"), name)
    raise AttributeError(f"module 'evalkit.review' has no attribute {name!r}")
