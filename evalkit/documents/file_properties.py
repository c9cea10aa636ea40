"""Properties of a file as a whole, by which documents are grouped and filtered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import Field

from evalkit.core.records import StrictRecord
from evalkit.documents.attachments import get_source_folder
from evalkit.documents.bundle import Page, PageStatus
from evalkit.documents.identity.file_persons import FilePerson, PageFacts, count_pages_of_other_persons

#: Form of a page by its ``PageStatus``; a blank page has none, and any other is a picture.
_FORM_BY_STATUS = {PageStatus.TEXT: "text", PageStatus.BLANK: ""}


class FileProperties(StrictRecord):
    """Properties of a file; an unknown property is empty or None."""

    source_folder: str = ""
    """Name of the folder from which the file was read."""
    sender: str = ""
    """Institution that the pages name most often as the issuer of their numbers."""
    language: str = ""
    """ISO 639-1 code of the language of most pages."""
    page_form: str = ""
    """``text``, ``scan`` or ``text and scan``."""
    patients_in_file: int | None = Field(default=None, ge=0)
    """Number of different patients named on the pages."""
    pages_of_others: int | None = Field(default=None, ge=0)
    """Number of pages that name a different patient than most pages do."""


def describe_file(file_path: str, pages: Sequence[Page | PageFacts], persons: Sequence[FilePerson]) -> FileProperties:
    """Describe a file by its path, its pages' facts, and the persons on its pages."""
    forms = {_FORM_BY_STATUS.get(page.status, "scan") for page in pages}
    return FileProperties(
        source_folder=get_source_folder(Path(file_path)).name,
        sender=_find_commonest(identifier.issuer for page in pages for identifier in page.identifiers),
        language=_find_commonest(page.language for page in pages),
        page_form=" and ".join(sorted(filter(None, forms), reverse=True)),
        patients_in_file=len(persons),
        pages_of_others=count_pages_of_other_persons(persons),
    )


def _find_commonest(names: Iterable[str | None]) -> str:
    """Return the commonest name, of equals the first; empty if there is none."""
    return next((name for name, _ in Counter(filter(None, names)).most_common(1)), "")
