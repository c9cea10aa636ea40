"""Writes ``guard.json``: invented texts as features, which a site's own weights must still read.

    cd tests && PYTHONPATH=. ../.venv/bin/python -m benchmarks.guard

Forty texts of each type, chosen by the hash of their name from texts that lie in the project. Write it again whenever
``weights.json`` changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from benchmarks.labelled_texts import INVENTED, read_author_texts
from benchmarks.measuring import ROOT

from evalkit.classification.offline.model_weights import LEXICON_FEATURE_NAMES, load_shipped_weights
from evalkit.classification.offline.type_scoring import combine_page_scores, read_page_for_scoring
from evalkit.classification.training.guard import GUARD_FILE, count_guard_errors
from evalkit.classification.training.labelled_texts import (
    DOCUMENT_TYPES,
    LabelledText,
    build_pages_from_text,
    read_labelled_texts,
)

TEXTS_A_TYPE = 40


def build_guard(labelled_texts: Iterable[LabelledText]) -> dict[str, Any]:
    """Build the contents of ``guard.json`` from texts, by the shipped weights."""
    weights = load_shipped_weights()
    number_by_term = {term: number for number, term in enumerate(sorted(weights.weights_by_term))}
    rows = []
    for text in labelled_texts:
        scores = combine_page_scores(
            [read_page_for_scoring(page, weights) for page in build_pages_from_text(text.text)]
        )
        features = [[round(value, 3) for value in scores.lexicon_features[name]] for name in LEXICON_FEATURE_NAMES]
        terms = sorted(number_by_term[term] for term in scores.terms)
        rows.append([DOCUMENT_TYPES.index(text.document_type), scores.unknown_word_count, features, terms])
    return {"schema_version": 1, "weights": weights.version, "texts": rows}


def main() -> None:
    """Write the file, and say how many texts the shipped weights get wrong."""
    texts = [*read_labelled_texts([INVENTED]), *read_author_texts("classifier_training.jsonl")]
    texts.sort(key=lambda text: hashlib.sha256(text.id.encode()).hexdigest())
    chosen = [
        text for kind in DOCUMENT_TYPES for text in [one for one in texts if one.document_type is kind][:TEXTS_A_TYPE]
    ]
    guard = build_guard(chosen)
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in guard.pop("texts"))
    file = ROOT / "evalkit" / "classification" / "training" / GUARD_FILE
    file.write_text(f'{json.dumps(guard)[:-1]}, "texts": [\n{rows}\n]}}\n', "utf-8")
    print(count_guard_errors(load_shipped_weights()))


if __name__ == "__main__":
    main()
