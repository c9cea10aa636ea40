"""Learn what sentences of reports are about: the weights of ``evalkit.extraction.sentence_topics``.

    cd tests && PYTHONPATH=. ../.venv/bin/python -m benchmarks.sentence_topics [--learn]

The texts are the field reports that are spent, their topics the places of the values that are right; and the sections of
the real radiology reports of ``../shared/data`` without their last sentences, which may be signatures. Prints how well the
weights that saw nothing of an author tell that author's sentences apart. ``--learn`` writes ``sentence_topics.json`` anew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.field_reports import HALVES, TYPES, extract, load_reports, mark_fields
from benchmarks.labelled_texts import TEXTS
from benchmarks.measuring import ROOT
from builders import document
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.reliability_loop import ReliabilityLoop
from evalkit.extraction.report_extraction import ReportPageRange, extract_reports
from evalkit.extraction.sentence_topics import (
    NARRATIVE,
    NARRATIVE_FIELDS,
    TopicWeights,
    extract_features,
    parse_topic_weights,
    split_sentences,
    squeeze_words,
)

TOPICS = (NARRATIVE, "date", "stage", "tumorSize")
LEARNED_HALVES = tuple(half for half in HALVES if not half.startswith("seventh"))
AUTHORS = tuple(dict.fromkeys(half.partition("_")[0] if "_" in half else "first" for half in LEARNED_HALVES))
RIDGE = 0.3
#: A feature is learned if sentences of so many authors have it, so that no house, name or number is.
MIN_AUTHORS = 3
#: Features whose weights are all smaller are left out.
MIN_WEIGHT = 0.03
#: A value of fewer letters proves its sentence only together with its quote.
MIN_LETTERS = 4


class LabelledSentence(NamedTuple):
    """A sentence with the topics that it states."""

    author: str
    text: str
    topics: frozenset[str]
    has_narrative: bool
    """True if all sections of its report that are taken whole are known."""


def list_topics(sentence: str, fields: Mapping[str, FieldValue]) -> frozenset[str]:
    """The topics of a sentence: fields with a value in it."""
    words = squeeze_words(sentence)
    topics = set()
    for name, value in fields.items():
        field = name.partition(".")[0]
        if not value.is_found or not value.raw or field == "rawText":
            continue
        raw, quote = squeeze_words(value.raw), squeeze_words(value.quote or "")
        if field in NARRATIVE_FIELDS:
            topics |= {NARRATIVE} if words in raw and len(words.strip()) > MIN_LETTERS else set()
        else:
            is_whole = raw in words and (len(raw.strip()) >= MIN_LETTERS or words in quote or quote in words)
            is_part = words in raw and len(words.strip()) > 2 * MIN_LETTERS
            topics |= {field} if is_whole or is_part else set()
    return frozenset(topics & {*TOPICS})


def label_sentences(halves: Iterable[str] = LEARNED_HALVES) -> Iterator[LabelledSentence]:
    """Extract the reports of these halves; values of fields with a difference from the truth prove nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for half in halves:
            author = half.partition("_")[0] if "_" in half else "first"
            for report in load_reports(half):
                extraction = extract(report, Path(folder), None)
                wrong = {words.partition(":")[0] for words in mark_fields(report, extraction.fields).differences}
                fields = {
                    name: value for name, value in extraction.fields.items() if name.partition(".")[0] not in wrong
                }
                text = fields["rawText"].value or ""
                has_narrative = all(
                    name in fields and fields[name].status is not FieldStatus.AMBIGUOUS for name in NARRATIVE_FIELDS
                )
                for sentence in split_sentences(text):
                    yield LabelledSentence(author, sentence, list_topics(sentence, fields), has_narrative)


def label_real_sections() -> Iterator[LabelledSentence]:
    """Extract the real radiology reports; each is an author of its own."""
    for row in map(json.loads, TEXTS.read_text("utf-8").splitlines()):
        if row["type"] != TYPES["radiology"]:
            continue
        pages = [ReportPageRange(1, 1, row["type"])]
        fields = asyncio.run(extract_reports(document(row["text"]), pages, ReliabilityLoop()))[0].fields
        for name in NARRATIVE_FIELDS:
            for sentence in split_sentences(fields[name].raw or "" if name in fields else "")[:-1]:
                yield LabelledSentence(row["id"], sentence, frozenset({NARRATIVE}), True)


def learn_weights(sentences: Sequence[LabelledSentence]) -> dict[str, Any]:
    """Fit a logistic regression for each topic; the contents of ``sentence_topics.json``."""
    feature_sets = [extract_features(sentence.text) for sentence in sentences]
    authors: dict[str, set[str]] = defaultdict(set)
    for sentence, features in zip(sentences, feature_sets, strict=True):
        for feature in features:
            authors[feature].add(sentence.author)
    vocabulary = {
        feature: index
        for index, feature in enumerate(sorted(name for name in authors if len(authors[name]) >= MIN_AUTHORS))
    }
    rows = [[vocabulary[feature] for feature in features if feature in vocabulary] for features in feature_sets]
    matrix = csr_matrix(
        (np.ones(sum(map(len, rows))), [index for row in rows for index in row], np.cumsum([0, *map(len, rows)])),
        shape=(len(rows), len(vocabulary)),
    )
    models = [_fit_topic(topic, matrix, sentences) for topic in TOPICS]
    weights = np.stack([model.coef_[0] for model in models], axis=1).round(3)
    return {
        "schema_version": 1,
        "learned_from": {topic: sum(topic in sentence.topics for sentence in sentences) for topic in TOPICS},
        "topics": list(TOPICS),
        "bias": [round(float(model.intercept_[0]), 3) for model in models],
        "features": {
            feature: weights[index].tolist()
            for feature, index in vocabulary.items()
            if np.abs(weights[index]).max() >= MIN_WEIGHT
        },
    }


def _fit_topic(topic: str, matrix: csr_matrix, sentences: Sequence[LabelledSentence]) -> LogisticRegression:
    # The prose of other reports is neither a section nor anything else; of the real ones only the sections are known.
    rows = [
        row
        for row, sentence in enumerate(sentences)
        if (sentence.has_narrative if topic == NARRATIVE else sentence.author in AUTHORS)
    ]
    truth = [topic in sentences[row].topics for row in rows]
    return LogisticRegression(C=RIDGE, solver="liblinear").fit(matrix[rows], truth)


def learn_without(sentences: Sequence[LabelledSentence], author: str) -> TopicWeights:
    """Weights that saw nothing of this author."""
    return parse_topic_weights(learn_weights([sentence for sentence in sentences if sentence.author != author]))


def tabulate(sentences: Sequence[LabelledSentence]) -> Table:
    """How well each topic is told apart in sentences of authors that were left out."""
    judged = [
        (sentence, weights.compute_probabilities(sentence.text))
        for author in AUTHORS
        for weights in [learn_without(sentences, author)]
        for sentence in sentences
        if sentence.author == author
    ]
    table = Table("topic", "sentences", "AUROC, author left out")
    for topic in TOPICS:
        rows = [row for row in judged if topic != NARRATIVE or row[0].has_narrative]
        truth = [topic in sentence.topics for sentence, _ in rows]
        area = roc_auc_score(truth, [probabilities[topic] for _, probabilities in rows])
        table.add_row(topic, str(sum(truth)), f"{area:.3f}")
    return table


def format_weights(content: Mapping[str, Any]) -> str:
    """The weights as JSON with a feature a line."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in content["features"].items())
    head = json.dumps({name: part for name, part in content.items() if name != "features"}, indent=1)
    return f'{head[:-2]},\n "features": {{\n{rows}\n }}\n}}\n'


def main() -> None:
    """Print the table; write the weights if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learn", action="store_true", help="write sentence_topics.json")
    options = parser.parse_args()
    sentences = [*label_sentences(), *label_real_sections()]
    Console(width=120).print(tabulate(sentences))
    if options.learn:
        path = ROOT / "evalkit" / "extraction" / "sentence_topics.json"
        path.write_text(format_weights(learn_weights(sentences)), "utf-8")


if __name__ == "__main__":
    main()
