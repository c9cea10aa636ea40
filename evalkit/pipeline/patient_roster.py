"""Patients whom files should be about, from a table and from settings.

Source: contract ruling 22. The table names patients: errors name its rows, and never quote it.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.classification.patient_check import PatientExpectation
from evalkit.documents.bundle import Identifier, IdentifierKind
from evalkit.documents.identity.identifier_values import normalise_identifier
from evalkit.errors import UsageError
from evalkit.pipeline.document_discovery import SourceDocument
from evalkit.pipeline.supplied_labels import SuppliedLabels, TableKind, read_table_rows
from evalkit.settings import Settings

_ROSTER = TableKind(
    "the patients' roster",
    "ROSTER",
    "The file needs the columns doc_id or filename, and name, birth_date or record_number; one patient per document.",
    is_confidential=True,
)
_KIND_BY_COLUMN: dict[str, IdentifierKind] = {
    "name": "patient",
    "birth_date": "date_of_birth",
    "record_number": "mrn",
}
#: Maximum characters of a name, a date or a number in the table.
_MAX_CELL_LENGTH = 200
_NO_BOX = (0.0, 0.0, 0.0, 0.0)
#: Maximum number of rows that a problem names.
_MAX_NAMED_ROWS = 10


@dataclass(frozen=True)
class PatientRoster:
    """Expected patients by ``doc_id`` or file name, and the row number of each."""

    rows: SuppliedLabels
    row_number_by_key: Mapping[str, int]
    path: Path

    def map_identities_by_doc_id(self, sources: Sequence[SourceDocument]) -> dict[str, tuple[Identifier, ...]]:
        """Map the doc_id of each document that has a row to its patient's identifiers.

        A file name that several documents share matches none of them.
        """
        row_by_doc_id = self.rows.map_labels_by_doc_id(sources)
        return {doc_id: row["identity"] for doc_id, row in row_by_doc_id.items()}

    def list_unused_row_problems(
        self, sources: Sequence[SourceDocument], path_by_earlier_doc_id: Mapping[str, str | None]
    ) -> list[UsageError]:
        """List an error for each row that matches no document, or several.

        ``path_by_earlier_doc_id`` as for ``list_unused_label_problems``.
        """
        known_ids = [*path_by_earlier_doc_id, *(source.doc_id for source in sources)]
        known_names = [
            *(Path(path).name for path in path_by_earlier_doc_id.values() if path),
            *(source.path.name for source in sources),
        ]
        return [
            UsageError(
                f"{_ROSTER.name} {self.path}: {self._format_rows(keys)} {fault}", code=f"ROSTER-{code}", remedy=remedy
            )
            for keys, fault, code, remedy in (
                (
                    self.rows.find_ambiguous_names(sources),
                    "matches several documents of that name, and is used for none",
                    "AMBIGUOUS",
                    "Give each document a row with its doc_id.",
                ),
                (
                    self.rows.find_unmatched_keys(known_ids, known_names),
                    "belongs to no document",
                    "UNKNOWN",
                    "Correct the doc_id or file name in these rows, or remove the rows.",
                ),
            )
            if keys
        ]

    def _format_rows(self, keys: Sequence[str]) -> str:
        numbers = sorted(self.row_number_by_key[key] for key in keys)
        shown_numbers = ", ".join(map(str, numbers[:_MAX_NAMED_ROWS]))
        if len(numbers) == 1:
            return f"row {shown_numbers}"
        return f"each of the {len(numbers)} rows {shown_numbers}{' …' * (len(numbers) > _MAX_NAMED_ROWS)}"


def read_patient_roster(path: Path) -> PatientRoster:
    """Read the patients whom documents should be about from a CSV or JSON file.

    UsageError naming the file, the row and the fault. Columns: ``doc_id`` or ``filename``, and ``name``,
    ``birth_date``, ``record_number``, of which each row has at least one. JSON is a list of such objects.
    """
    row_by_key: dict[str, dict[str, Any]] = {}
    row_number_by_key: dict[str, int] = {}
    for row_number, row in enumerate(read_table_rows(path, _ROSTER), 1):
        key = row.get("doc_id") or row.get("filename")
        if not isinstance(key, str) or not key:
            raise _ROSTER.create_error(path, f"row {row_number} needs text in the column doc_id or filename")
        try:
            identity = tuple(_iterate_identifiers(row))
        except ValueError as error:
            raise _ROSTER.create_error(path, f"row {row_number}: {error}") from None
        if not identity:
            raise _ROSTER.create_error(path, f"row {row_number} has no name, birth_date or record_number")
        if row_by_key.setdefault(key, {"identity": identity})["identity"] != identity:
            raise _ROSTER.create_error(
                path, f"row {row_number} names another patient than an earlier row about the same document"
            )
        row_number_by_key.setdefault(key, row_number)
    if not row_by_key:
        raise _ROSTER.create_error(path, "the table has no rows")
    return PatientRoster(SuppliedLabels(row_by_key), row_number_by_key, path)


def _iterate_identifiers(row: Mapping[str, Any]) -> Iterable[Identifier]:
    """Yield the patient's identifiers in a row.

    ValueError naming the column whose value cannot be read.
    """
    for column, kind in _KIND_BY_COLUMN.items():
        cell = row.get(column)
        if cell is None or cell == "":
            continue
        if not isinstance(cell, str) or len(cell) > _MAX_CELL_LENGTH:
            raise ValueError(f"its {column} is not a text of at most {_MAX_CELL_LENGTH} characters")
        if not (text := cell.strip()):
            continue
        normal = normalise_identifier(kind, text)
        if normal is None:
            raise ValueError(f"its {column} is not valid")
        yield Identifier(kind=kind, value=text, normal=normal, box=_NO_BOX)


def build_patient_expectation(
    settings: Settings, absolute_document_path: Path, roster_identity: tuple[Identifier, ...] = ()
) -> PatientExpectation:
    """Combine a file's expected patients from its folder's setting and its row.

    Of nested folders with a setting, the innermost counts.
    """
    folder_settings = (
        (Path(os.path.abspath(folder)), patients) for folder, patients in settings.patients_by_folder.items()
    )
    _, patients = max(
        (
            (len(folder.parts), patients)
            for folder, patients in folder_settings
            if absolute_document_path.is_relative_to(folder)
        ),
        default=(0, settings.patients),
    )
    return PatientExpectation(patients, roster_identity)
