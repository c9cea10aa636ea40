"""An attempt to extract a clinical report, and the fields the report mentions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalkit.core.grouping import split_into_runs
from evalkit.documents.bundle import DocumentBundle
from evalkit.extraction.clinical.clinical_reader import find_field_values, find_line_mentioning_field
from evalkit.extraction.clinical.clinical_rules import FieldValues, get_base_field_name, get_found_values
from evalkit.extraction.clinical.labelled_values import LocatedClinicalValue
from evalkit.extraction.clinical.report_structure import ClinicalReport
from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.field_template import FieldTemplate
from evalkit.issue import Issue


@dataclass(frozen=True)
class FieldMentions:
    """The fields that a report mentions, computed without a language model."""

    mentioned_names: frozenset[str]
    """Fields that the report mentions, or that the offline reader finds; without a value they count as missing."""
    readings_by_multi_value_field: Mapping[str, tuple[LocatedClinicalValue, ...]]
    """Values of each multi-value field that the offline reader finds, by field name."""


@dataclass(frozen=True)
class ClinicalAttempt:
    """The result of one attempt to extract the fields of a report."""

    bundle: DocumentBundle
    page_numbers: tuple[int, ...]
    """Numbers of the readable pages that were read."""
    template: FieldTemplate
    report: ClinicalReport
    field_mentions: FieldMentions
    fields: dict[str, FieldValue]
    """Extracted values by name: ``grade``; for multi-value fields by field and item: ``ihcMarkers.ER``."""
    grounding_issues: tuple[Issue, ...] = ()
    """Issues about claimed values that are not on the pages."""
    reasoning: str = ""
    failure: str | None = None
    """The reason why the extractor could not answer; None if it did."""
    normalised: tuple[str, ...] = ()
    """Lossless changes made to read the extractor's answers."""


def find_mentioned_fields(template: FieldTemplate, report: ClinicalReport) -> FieldMentions:
    """Find the template's scored fields that a report mentions."""
    mentioned_names: set[str] = set()
    readings_by_multi_value_field: dict[str, tuple[LocatedClinicalValue, ...]] = {}
    for field in template.scored_fields:
        # The second pass is reliable for stains and tests, which have names; for other formats it finds too much.
        readings = tuple(find_field_values(field, report, include_second_pass=field.format in _NAMED_FORMATS))
        if readings or find_line_mentioning_field(field, report) is not None:
            mentioned_names.add(field.name)
        if readings and field.many:
            readings_by_multi_value_field[field.name] = readings
    return FieldMentions(frozenset(mentioned_names), readings_by_multi_value_field)


#: Formats whose values have names: stains and laboratory tests.
_NAMED_FORMATS = ("marker", "lab")


def find_fields_absent_from_document(
    template: FieldTemplate, fields: FieldValues, mentioned_names: Iterable[str]
) -> frozenset[str]:
    """Return names of scored fields that the document does not have.

    Such a field has no value, not even an ambiguous one, and is not in ``mentioned_names``. Source: specification 002,
    section 7.3.
    """
    mentioned = frozenset(mentioned_names)
    return frozenset(
        field.name
        for field in template.scored_fields
        if field.name not in mentioned
        and not get_found_values(fields, field.name)
        and not any(
            get_base_field_name(key) == field.name and value.status is FieldStatus.AMBIGUOUS
            for key, value in fields.items()
        )
    )


def split_pages_by_size(
    bundle: DocumentBundle, page_numbers: Sequence[int], max_characters: int | None
) -> list[tuple[int, ...]]:
    """Group page numbers into runs with at most ``max_characters`` of text each.

    None: all pages are one run. A page with more characters is a run of its own.
    """
    if max_characters is None:
        return [tuple(page_numbers)]
    runs = split_into_runs(
        page_numbers,
        lambda run, number: sum(len(bundle.page(page).text) for page in (*run, number)) <= max_characters,
    )
    return [tuple(run) for run in runs]
