"""Boundary strip: the bottom of one page above the top of the next page."""

from collections.abc import Iterator, Sequence
from typing import Any

from evalkit.classification.offline.second_opinion_boundaries import find_pagination_marks
from evalkit.documents.bundle import Box, DocumentBundle, Page
from evalkit.documents.identity.file_persons import compare_page_patients, get_page_patient_identity
from evalkit.documents.identity.same_person import SamePersonVerdict
from evalkit.documents.search import find_boxes_of_text_span
from evalkit.review import BoundaryDoubt, ReviewCase, describe_issue

#: The facts of a patient that are compared, in the order on the screen.
_PATIENT_FACTS = {"patient": "Name", "date_of_birth": "Date of birth", "sex": "Sex", "mrn": "Record number"}
_DOCUMENT_FACTS = {"accession": "Accession number", "visit": "Visit number", "report_date": "Date"}
_EDGE_LINES = 8
_MAX_LINE_LENGTH = 160

#: A fact's words, its comparable form and its box on the page; None if the page does not state it.
_StatedFact = tuple[str, Any, Box] | None


def render_boundary_doubt(case: ReviewCase, doubt: BoundaryDoubt) -> dict[str, Any]:
    """Build a row of ``PagePane.doubts``, except for the expert's answer."""
    before, page = case.bundle.page(doubt.page - 1), case.bundle.page(doubt.page)
    return {
        "page": doubt.page,
        "issue_id": doubt.issue_id or "",
        "question": next(
            (describe_issue(issue) for issue in case.packet.issues if issue.issue_id == doubt.issue_id),
            f"Does a new document begin on page {doubt.page}? The program's page ranges do not fit together here.",
        ),
        "is_disputed": doubt.is_disputed,
        "facts": list(compare_page_facts(before, page, case.bundle)),
        # where the words of the page before end and those of this page begin, as fractions of the page's height
        "edges": [
            max((word[5] for word in before.words), default=10_000) / 10_000,
            min((word[3] for word in page.words), default=0) / 10_000,
        ],
        "foot": _list_lines(before)[-_EDGE_LINES:],
        "head": _list_lines(page)[:_EDGE_LINES],
    }


def compare_patient_facts(bundle: DocumentBundle, page_numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Compare the patients of two pages: rows as in ``PagePane.doubts``.

    Empty if ``page_numbers`` is empty.
    """
    pages = [bundle.page(number) for number in page_numbers]
    rows = compare_page_facts(pages[0], pages[1], bundle) if pages else iter(())
    return [row for row in rows if row["name"] in _PATIENT_FACTS.values()]


def compare_page_facts(before: Page, page: Page, bundle: DocumentBundle) -> Iterator[dict[str, Any]]:
    """Compare what two pages state about patient, date, title and page count."""
    left, right = (get_page_patient_identity(compared) for compared in (before, page))
    is_other_patient = bool(left and right) and (
        compare_page_patients(left, right).relation is SamePersonVerdict.DIFFERENT  # type: ignore[arg-type]
    )
    facts: list[tuple[str, _StatedFact, _StatedFact]] = [
        (words, _find_identifier(before, kind), _find_identifier(page, kind))
        for kind, words in (_PATIENT_FACTS | _DOCUMENT_FACTS).items()
    ]
    facts += [("Title", _find_title(before), _find_title(page))]
    facts += [("Printed page", _find_count(before, bundle), _find_count(page, bundle))]
    for words, first, second in facts:
        if first or second:
            is_next = words == "Printed page" and first and second and second[1] == (first[1][0] + 1, first[1][1])
            differs = bool(first and second and first[1] != second[1] and not is_next)
            yield {
                "name": words,
                "values": [fact[0] if fact else "" for fact in (first, second)],
                "boxes": [list(fact[2]) if fact else [] for fact in (first, second)],
                "differs": differs,
                "is_other_patient": is_other_patient and differs and words in ("Name", "Date of birth"),
            }


def _find_identifier(page: Page, kind: str) -> _StatedFact:
    return next(
        (
            (identifier.value, identifier.normal.casefold(), identifier.box)
            for identifier in page.identifiers
            if identifier.kind == kind
        ),
        None,
    )


def _find_title(page: Page) -> _StatedFact:
    block = next((block for block in page.visible_blocks if block.type == "heading" and not block.furniture), None)
    words = " ".join(block.text.split())[:_MAX_LINE_LENGTH] if block else ""
    return (words, words.casefold(), block.box) if block and words else None


def _find_count(page: Page, bundle: DocumentBundle) -> _StatedFact:
    """Find the document's own printed page count; the file's own count says nothing."""
    for number, total, line in find_pagination_marks(page.text):
        start = page.text.find(line)
        boxes = find_boxes_of_text_span(page, start, start + len(line))
        if (number, total) != (page.page_num, bundle.total_pages):
            return f"{number} of {total}", (number, total), boxes[0][1:] if boxes else (0.0, 0.0, 0.0, 0.0)
    return None


def _list_lines(page: Page) -> list[str]:
    return [line.strip()[:_MAX_LINE_LENGTH] for line in page.text.splitlines() if line.strip()]
