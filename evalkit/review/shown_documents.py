"""Documents as reviewers see them; attention checks look like real cases."""

from pathlib import Path

from evalkit.classification.document_result import DocumentFailure, DocumentResult
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.source_file import hash_source_file
from evalkit.errors import DocumentError, StoreError
from evalkit.review.case_files import read_packet
from evalkit.review.loaders import read_bundle, read_result
from evalkit.store import OutputFolder, converted_file_name, packet_file_name, result_file_name


def _resolve_shown_doc_id(output_folder: OutputFolder, doc_or_case_id: str) -> str:
    """Resolve a doc_id or case_id to the id of the document whose pages are shown."""
    if output_folder.has_file(result_file_name(doc_or_case_id)) or not output_folder.has_file(
        packet_file_name(doc_or_case_id)
    ):
        return doc_or_case_id
    packet = read_packet(output_folder, doc_or_case_id)
    return packet.bundle_doc_id if packet.is_attention_check else doc_or_case_id


def read_result_as_shown(output_folder: OutputFolder, doc_or_case_id: str) -> DocumentResult | DocumentFailure:
    """Read a document's result; for an attention check, its faulty result.

    For the case_id of an attention check, the result contains the shown answer and issues, so that it looks like a real
    document. NotFound if there is no result; StoreError if a file is damaged.
    """
    doc_id = _resolve_shown_doc_id(output_folder, doc_or_case_id)
    result = read_result(output_folder, doc_id)
    if doc_id == doc_or_case_id or isinstance(result, DocumentFailure):
        return result
    packet = read_packet(output_folder, doc_or_case_id)
    return result.model_copy(
        update={
            "doc_id": doc_or_case_id,
            "classification": packet.classification,
            "issues": packet.issues,
            "decision": packet.v5_decision,
            "decision_rule": packet.decision_rule,
            "decision_reason": packet.decision_reason,
        }
    )


def read_bundle_as_shown(output_folder: OutputFolder, doc_or_case_id: str) -> DocumentBundle:
    """Read the pages of a document, or of a case. NotFound; StoreError."""
    return read_bundle(output_folder, _resolve_shown_doc_id(output_folder, doc_or_case_id))


def load_shown_pdf(output_folder: OutputFolder, bundle: DocumentBundle) -> Path | bytes:
    """Return the PDF of a bundle's pages: a path, or a converted file's content.

    DocumentError: READER-CHANGED if the file is not the one that was read, READER-UNREADABLE if it is missing.
    """
    if bundle.is_converted:
        try:
            return output_folder.read_bytes(converted_file_name(bundle.doc_id))
        except StoreError:
            raise DocumentError(
                f"the converted pages of {Path(bundle.file_path).name} are missing in the output folder",
                code="READER-UNREADABLE",
                remedy="Run the document again.",
            ) from None
    path = Path(bundle.file_path)
    if hash_source_file(path) != bundle.sha256:
        raise DocumentError(
            f"{path.name} has changed since it was read",
            code="READER-CHANGED",
            remedy="Run the document again before you decide.",
        )
    return path
