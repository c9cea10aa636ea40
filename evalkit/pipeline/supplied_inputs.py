"""Optional input files of a run: production labels, patients, classifications."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalkit.documents.bundle import Identifier
from evalkit.errors import UsageError
from evalkit.pipeline.document_discovery import SourceDocument
from evalkit.pipeline.options import RunOptions
from evalkit.pipeline.patient_roster import read_patient_roster
from evalkit.pipeline.run_history import read_run_records
from evalkit.pipeline.supplied_labels import (
    list_unknown_production_labels,
    list_unused_label_problems,
    merge_stored_production_labels,
    read_production_labels,
    read_supplied_classifications,
    translate_production_row,
)
from evalkit.settings import Settings
from evalkit.store import OutputFolder


@dataclass(frozen=True)
class SuppliedInputs:
    """Contents of a run's optional input files, by doc_id."""

    label_by_doc_id: Mapping[str, Mapping[str, Any]] | None
    """Production's labels; None if no file with labels was given."""
    unknown_production_labels: tuple[str, ...]
    """Production's labels that are none of the five types and that no setting maps to one of them."""
    identity_by_doc_id: Mapping[str, tuple[Identifier, ...]]
    """The identifiers of the patient whom each document should be about."""
    classification_by_doc_id: Mapping[str, Any]
    """Another system's classifications, which are verified instead of asking a model."""
    problems: tuple[UsageError, ...]
    """An error for each row or file that belongs to no document, or to several."""


def keep_earlier_classifications(output_folder: OutputFolder, options: RunOptions) -> tuple[RunOptions, str | None]:
    """Use the previous run's classifications if the options name none.

    Returns the options, and the sentence that says so; None if nothing is kept. UsageError if they are gone.
    """
    newest = next(iter(read_run_records(output_folder)[-1:]), None)
    folder = newest and newest.inputs.classifications
    if options.classifications is not None or options.no_classifications or not (newest and folder):
        return options, None
    if not Path(folder).is_dir():
        raise UsageError(
            f"the classifications of run {newest.name} are gone: {folder} is not a folder",
            code="CLASSIFICATIONS",
            remedy="Give --classifications DIR, or --no-classifications to ask the model.",
        )
    note = (
        f"The classifications of run {newest.name} are checked again: {folder}. To ask the model: --no-classifications"
    )
    return replace(options, classifications=folder), note


def read_supplied_inputs(
    options: RunOptions,
    settings: Settings,
    output_folder: OutputFolder,
    sources: Sequence[SourceDocument],
    path_by_earlier_doc_id: Mapping[str, str | None],
    *,
    is_classification_required: bool = True,
) -> SuppliedInputs:
    """Read the files that the options name, and store the production labels.

    ``path_by_earlier_doc_id`` has the documents of earlier runs. ``is_classification_required``: a classification that
    belongs to no document is a problem. UsageError if a file cannot be used.
    """
    unknown_labels: tuple[str, ...] = ()
    label_by_doc_id, problems = None, list[UsageError]()
    if options.production is not None:
        supplied_labels = read_production_labels(Path(options.production))
        row_by_doc_id = supplied_labels.map_labels_by_doc_id(sources)
        merge_stored_production_labels(output_folder, row_by_doc_id)
        label_by_doc_id = {
            doc_id: translate_production_row(row, settings.foreign_types) for doc_id, row in row_by_doc_id.items()
        }
        unknown_labels = list_unknown_production_labels(row_by_doc_id.values(), settings.foreign_types)
        problems += list_unused_label_problems(supplied_labels, sources, path_by_earlier_doc_id)
    identity_by_doc_id: Mapping[str, tuple[Identifier, ...]] = {}
    if options.patients_file is not None:
        roster = read_patient_roster(Path(options.patients_file))
        identity_by_doc_id = roster.map_identities_by_doc_id(sources)
        problems += roster.list_unused_row_problems(sources, path_by_earlier_doc_id)
    classification_by_doc_id: Mapping[str, Any] = {}
    if options.classifications is not None:
        classification_by_doc_id, file_problems = read_supplied_classifications(Path(options.classifications), sources)
        problems += file_problems if is_classification_required else ()
    return SuppliedInputs(
        label_by_doc_id, unknown_labels, identity_by_doc_id, classification_by_doc_id, tuple(problems)
    )
