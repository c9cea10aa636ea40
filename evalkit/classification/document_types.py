"""The document types as data: what they mean, their codes, their keys on the screen; from ``types.toml``."""

from __future__ import annotations

from functools import cache, partial

from evalkit.core.loinc import Coding
from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord

#: Load ``types.toml``: ``version``, and the record of each type by name; cached.
load_type_definitions = partial(load_package_table, "evalkit.classification", "types.toml")

#: A title is one of the first lines that are not empty.
_TITLE_LINES = 5


class TitledCoding(Coding):
    """Code of a narrower kind of document, which its title names."""

    names: tuple[str, ...]
    """The titles, in small letters."""


class DocumentTypeRecord(StrictRecord):
    """What one document type means: a table of ``types.toml``."""

    definition: str
    includes: tuple[str, ...]
    excludes: tuple[str, ...]
    key: str
    """The key that sets this type on the expert's screen."""
    loinc: Coding
    report_category: Coding | None = None
    """Category of the FHIR DiagnosticReport; None: documents of this type report no results."""
    titles: tuple[TitledCoding, ...] = ()


@cache
def load_type_records() -> dict[str, DocumentTypeRecord]:
    """Load the record of each document type by name, in the table's order."""
    return {
        name: DocumentTypeRecord.model_validate(row)
        for name, row in load_type_definitions().items()
        if name != "version"
    }


def get_type_coding(document_type: str, text: str = "") -> Coding:
    r"""Return the code of a document: its title's if one is known, else its type's.

    ``text``: the document's first page. A title is a whole line among its first ones.

    >>> get_type_coding("Clinical Note").code, get_type_coding("Clinical Note", "General Hospital\nDISCHARGE SUMMARY").code
    ('34109-9', '18842-5')
    """
    record = load_type_records()[document_type]
    titles = [" ".join(line.strip(" \t:*#_-").casefold().split()) for line in text.splitlines() if line.strip()]
    for title in titles[:_TITLE_LINES]:
        for coding in record.titles:
            if title in coding.names:
                return Coding(code=coding.code, display=coding.display, system=coding.system)
    return record.loinc


def get_report_category(document_type: str) -> Coding | None:
    """Return the category of a FHIR DiagnosticReport of this type; None if such documents are no reports."""
    return load_type_records()[document_type].report_category
