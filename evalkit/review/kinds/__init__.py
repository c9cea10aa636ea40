"""The kinds of case: classification, extraction and statement template.

To add a kind: one module here, one row in ``CASE_KINDS``, and its packet class in ``StoredPacket``.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel

from evalkit.review.case import CaseKind
from evalkit.review.kinds.classification import ClassificationKind, ClassificationPacket
from evalkit.review.kinds.extraction import ExtractionKind, ExtractionPacket
from evalkit.review.kinds.statement_template import TemplateKind, TemplatePacket
from evalkit.review.packet import SMEPacket, get_base_case_id
from evalkit.review.submission import Submission, build_incomplete_review_error

#: Every kind of case, by ``SMEPacket.kind``.
CASE_KINDS: Mapping[str, CaseKind[Any, Any]] = {
    "classification": ClassificationKind(),
    "extraction": ExtractionKind(),
    "statement_template": TemplateKind(),
}


class StoredPacket(
    RootModel[Annotated[ClassificationPacket | ExtractionPacket | TemplatePacket, Field(discriminator="kind")]]
):
    """Stored file of a case of any kind, as ``evalkit schema packet`` prints it."""

    model_config = ConfigDict(defer_build=True, hide_input_in_errors=True)


def get_packet_class(stored_packet: Mapping[str, Any]) -> type[SMEPacket]:
    """Get the class that holds cases of this ``kind``.

    An unknown kind counts as classification.
    """
    return CASE_KINDS.get(str(stored_packet.get("kind")), CASE_KINDS["classification"]).packet_class


def find_case_kind(case_id: str) -> CaseKind[Any, Any]:
    """Find the kind of a case by the longest kind suffix of its case_id."""
    base_case_id = get_base_case_id(case_id)
    return max(
        (kind for kind in CASE_KINDS.values() if base_case_id.endswith(kind.case_id_suffix)),
        key=lambda kind: len(kind.case_id_suffix),
    )


def list_document_case_ids(doc_id: str) -> tuple[str, ...]:
    """List the ids that the base cases of a document have, whether or not they exist."""
    return tuple(doc_id + kind.case_id_suffix for kind in CASE_KINDS.values() if kind.is_named_after_document)


def require_matching_corrections(packet: SMEPacket, submission: Submission) -> None:
    """Raise ReviewRefused if a submission corrects a different kind of case."""
    kind = CASE_KINDS[packet.kind]
    for other_kind in CASE_KINDS.values():
        if other_kind is not kind and submission.get_correction(other_kind.correction_class).is_given:
            raise build_incomplete_review_error(
                f"case {packet.case_id!r} is about {kind.topic}, not about {other_kind.topic}", kind.correction_remedy
            )
