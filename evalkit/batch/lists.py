"""What lists many documents: production's labels and the draws. A purge takes documents out of them.

For whoever has the run's lock: nobody else writes these files. They are read once and written once for many documents,
since each of them has a row for every document that there is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from evalkit.batch.draws import Draw, Stratum, draws
from evalkit.batch.labels import stored_production
from evalkit.store import PRODUCTION, Files, draw_name


class Lists:
    """The lists of an output folder, as they were when they were read or last written."""

    def __init__(self, files: Files) -> None:
        """StoreError for one that is damaged."""
        self._files = files
        self._labels = stored_production(files)
        self._draws = draws(files)

    def strata_of(self, doc_id: str) -> Iterator[tuple[int, Stratum]]:
        """The strata that could have drawn the document, each with the number of its draw, from 1."""
        for number, draw in enumerate(self._draws, 1):
            for stratum in draw.strata:
                if doc_id in stratum.probability:
                    yield number, stratum

    def entries(self, doc_id: str) -> dict[str, int]:
        """In how many files of each kind the document stands; kinds in which it does not are left out."""
        found = {
            "production": int(doc_id in self._labels),
            "draws": len({number for number, _ in self.strata_of(doc_id)}),
        }
        return {kind: count for kind, count in found.items() if count}

    def take_out(self, doc_ids: Collection[str]) -> None:
        """Write the files anew without these documents; the probabilities of the others stay what they are."""
        gone = frozenset(doc_ids)
        if gone & self._labels.keys():
            self._labels = {name: row for name, row in self._labels.items() if name not in gone}
            self._files.write(PRODUCTION, {**self._files.read(PRODUCTION), "labels": self._labels})
        for number, draw in enumerate(self._draws, 1):
            if any(gone & stratum.probability.keys() for stratum in draw.strata):
                self._draws[number - 1] = _without(draw, gone)
                self._files.write(draw_name(number), self._draws[number - 1].model_dump(mode="json"))


def _without(draw: Draw, gone: frozenset[str]) -> Draw:
    strata = (
        stratum.model_copy(
            update={
                "probability": {name: share for name, share in stratum.probability.items() if name not in gone},
                "drawn": tuple(name for name in stratum.drawn if name not in gone),
            }
        )
        for stratum in draw.strata
    )
    return draw.model_copy(update={"strata": tuple(one for one in strata if one.probability)})
