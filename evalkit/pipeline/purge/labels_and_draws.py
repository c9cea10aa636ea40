"""Production's labels and the draws, which list many documents.

A purge removes documents from them. The caller holds the run lock: nobody else writes these files. They are read once
and written once for many documents, since each of them has a row for every document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from evalkit.pipeline.sample_draws import Draw, Stratum, read_all_draws
from evalkit.pipeline.supplied_labels import read_stored_production_labels
from evalkit.store import PRODUCTION_LABELS_FILE, OutputFolder, sample_draw_file_name


class ProductionLabelsAndDraws:
    """Production's labels and the draws of an output folder, kept in memory."""

    def __init__(self, output_folder: OutputFolder) -> None:
        """Read the labels and the draws. StoreError if a file is damaged."""
        self._output_folder = output_folder
        self._label_by_doc_id = read_stored_production_labels(output_folder)
        self._draws = read_all_draws(output_folder)

    def iterate_draw_numbers_and_strata(self, doc_id: str) -> Iterator[tuple[int, Stratum]]:
        """Yield each stratum that has the document, with its draw's number from 1."""
        for number, draw in enumerate(self._draws, 1):
            for stratum in draw.strata:
                if doc_id in stratum.probability:
                    yield number, stratum

    def count_naming_files_by_kind(self, doc_id: str) -> dict[str, int]:
        """Count the files that list the document, by kind; kinds without any are left out."""
        count_by_kind = {
            "production": int(doc_id in self._label_by_doc_id),
            "draws": len({number for number, _ in self.iterate_draw_numbers_and_strata(doc_id)}),
        }
        return {kind: count for kind, count in count_by_kind.items() if count}

    def rewrite_files_without_documents(self, doc_ids: Collection[str]) -> None:
        """Remove these documents from the labels and draws, and save the changed files.

        The other documents' probabilities do not change.
        """
        removed_ids = frozenset(doc_ids)
        if removed_ids & self._label_by_doc_id.keys():
            self._label_by_doc_id = {
                doc_id: label for doc_id, label in self._label_by_doc_id.items() if doc_id not in removed_ids
            }
            self._output_folder.write_json(
                PRODUCTION_LABELS_FILE,
                {**self._output_folder.read_json(PRODUCTION_LABELS_FILE), "labels": self._label_by_doc_id},
            )
        for number, draw in enumerate(self._draws, 1):
            if any(removed_ids & stratum.probability.keys() for stratum in draw.strata):
                self._draws[number - 1] = _remove_from_draw(draw, removed_ids)
                self._output_folder.write_json(
                    sample_draw_file_name(number), self._draws[number - 1].model_dump(mode="json")
                )


def _remove_from_draw(draw: Draw, removed_ids: frozenset[str]) -> Draw:
    strata = (
        stratum.model_copy(
            update={
                "probability": {
                    doc_id: probability
                    for doc_id, probability in stratum.probability.items()
                    if doc_id not in removed_ids
                },
                "drawn": tuple(doc_id for doc_id in stratum.drawn if doc_id not in removed_ids),
            }
        )
        for stratum in draw.strata
    )
    return draw.model_copy(update={"strata": tuple(shortened for shortened in strata if shortened.probability)})
