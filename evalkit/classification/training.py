"""How ``weights.json`` was learned, and how a hospital learns it again on its own records.

    python -m evalkit.classification.training PATH… --to weights.json

A PATH is a file of JSON Lines or TOML, one labelled text each, or a folder with one sub-folder a type that holds .txt
files. Records of one patient or one source are one ``group``: what is judged is never judged by what was learned from
its own group. Only terms that several groups share are kept, letters only and no names, so that nobody's data is in the
file. Where documents begin is learned by ``tests/benchmarks/join_weights.py``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax, softmax

from evalkit.classification.acts import ActWeights, read_act_of_pages
from evalkit.classification.lexicon import apply_lexicon
from evalkit.classification.model_weights import (
    LEXICON_FEATURE_NAMES,
    MAX_TEMPERATURE,
    load_embedded_weights,
    parse_weights_json,
)
from evalkit.classification.schema import DocumentType
from evalkit.classification.second_reading import combine_readings
from evalkit.classification.type_scoring import (
    compute_damping_factor,
    compute_familiarity,
    compute_lexicon_features,
    compute_term_weight,
    extract_terms,
)
from evalkit.documents.bundle import Block, LayoutMetadata, Page, PageStatus
from evalkit.documents.furniture import find_stamp_line_indices
from evalkit.documents.identity.identifier_values import load_given_names
from evalkit.errors import UsageError

FloatArray = npt.NDArray[np.float64]
DOCUMENT_TYPES = tuple(DocumentType)

FOLDS = 5
MIN_TERM_GROUPS = 4
"""So many groups must share a term."""
MIN_TYPE_GROUPS = 3
"""So many groups of a type must have a term that speaks for it: one source's habits are no evidence."""
CANDIDATE_THRESHOLDS = tuple(round(0.4 + 0.05 * step, 2) for step in range(12))
MAX_ERROR_RATE = 0.02
"""Of answers that would be accepted: at least as probable as the threshold, and not contradicted by the reading of acts."""
UNFAMILIAR_SHARE = 0.01
"""So many of the learned texts are unlike the others: half as many known words as the rest has are still believed in full."""
MIN_TERM_WEIGHT = 0.005
"""Terms that weigh less for every type are left out."""
MAX_CONTRADICTED_RATE = 0.02
"""Of right types, macro over the types, as many may be contradicted by the second reading."""
PAGE_LENGTH = 3000
"""Characters after which a text without pages gets a new page."""

_RIDGE_TERMS, _RIDGE_BIAS, _RIDGE_LEXICON = 0.1, 10.0, 0.05
_LONG_TEXT_LENGTH = 1200
_SEED = 5
#: A word that stands with a capital letter so often where a sentence goes on is a name of something.
_MIN_NAME_CAPITAL_SHARE = 0.5
_WORD_IN_SENTENCE_PATTERN = re.compile(r"(?<=[\w,;] )([A-Za-z][a-z]+)\b")
_EXCLUDED_TERMS = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "mon",
        "tue",
        "wed",
        "thu",
        "fri",
        "sat",
        "sun",
        "mister",
        "miss",
        "mrs",
        "name",
        "usa",
        "utc",
        "doctor",
        "www",
        "com",
        "http",
        "https",
    ]
)
#: A term of nothing else says how somebody writes, not what it is.
_STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "after",
        "all",
        "also",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "being",
        "below",
        "but",
        "by",
        "can",
        "could",
        "do",
        "does",
        "done",
        "each",
        "for",
        "from",
        "has",
        "have",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "may",
        "more",
        "most",
        "no",
        "not",
        "of",
        "off",
        "on",
        "or",
        "other",
        "out",
        "over",
        "per",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "this",
        "those",
        "through",
        "to",
        "under",
        "up",
        "upon",
        "us",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "with",
        "within",
        "without",
    ]
)
_LABEL_PATTERN = re.compile(r"(?m)^[ \t]*[-•*]?[ \t]*[^\n:]{2,70}:[ \t]*|[A-Z][A-Z /&-]{3,40}:")
_OCR_CONFUSIONS = dict(
    zip("lieahtcugsoBSIO", ("1", "l", "c", "o", "b", "f", "e", "v", "q", "5", "0", "8", "5", "l", "0"), strict=True)
)


@dataclass(frozen=True)
class LabelledText:
    """A labelled text."""

    id: str
    document_type: DocumentType
    text: str
    group: str
    """Of records that resemble each other: the same patient, source or report."""
    source: str = ""


class TextVariant(NamedTuple):
    """A text as it was, or as it might have been: a part of it, without labels, misread, with a report quoted in it."""

    name: str
    original: LabelledText
    text: str
    quoted_report: LabelledText | None = None
    """Whose text stands in it as well."""


# -------------------------------------------------------------------------------------------------------------- reading


def read_labelled_texts(paths: Iterable[Path]) -> list[LabelledText]:
    """All labelled texts under these paths. UsageError naming the file and row where there is something else."""
    labelled_texts = [example for path in paths for example in _read_labelled_path(path)]
    missing_types = [
        kind.value
        for kind in DOCUMENT_TYPES
        if not any(labelled_text.document_type is kind for labelled_text in labelled_texts)
    ]
    if missing_types:
        raise _build_training_input_error("the examples", f"have none of type {', '.join(missing_types)}")
    if len({labelled_text.group for labelled_text in labelled_texts}) < 2:
        raise _build_training_input_error(
            "the examples", "are all of one group, and none is judged by what was learned from its own"
        )
    return labelled_texts


def _read_labelled_path(path: Path) -> Iterator[LabelledText]:
    if path.is_dir():
        for file in sorted(path.glob("*/*.txt")):
            location = str(file.relative_to(path))
            try:
                text = file.read_text("utf-8")
            except (OSError, ValueError) as error:
                raise _build_training_input_error(location, "cannot be read as text in UTF-8") from error
            yield _parse_labelled_row(location, {"id": file.stem, "type": file.parent.name, "text": text})
        return
    try:
        text = path.read_text("utf-8")
        rows = (
            tomllib.loads(text).get("document", [])
            if path.suffix == ".toml"
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except (OSError, ValueError) as error:
        raise _build_training_input_error(path.name, "cannot be read as JSON Lines or TOML") from error
    if not isinstance(rows, list):
        raise _build_training_input_error(path.name, "has no rows [[document]]")
    for number, row in enumerate(rows, 1):
        yield _parse_labelled_row(f"{path.name}, row {number}", row)


def _parse_labelled_row(location: str, row: Any) -> LabelledText:
    if not isinstance(row, Mapping) or not all(isinstance(row.get(key), str) for key in ("type", "text")):
        raise _build_training_input_error(location, "has no type or no text")
    if row["type"] not in [kind.value for kind in DOCUMENT_TYPES]:
        raise _build_training_input_error(location, "has none of the five types")
    name = str(row.get("id") or row.get("doc_id") or hashlib.sha256(row["text"].encode()).hexdigest()[:12])
    return LabelledText(
        name, DocumentType(row["type"]), row["text"], str(row.get("group") or name), str(row.get("source") or "")
    )


def _build_training_input_error(location: str, problem: str) -> UsageError:
    return UsageError(f"{location} {problem}", code="LEARNING-INPUT", remedy="Give rows with type, text and group.")


def build_pages_from_text(text: str) -> tuple[Page, ...]:
    """The text as pages of lines, as a reader would make them of a file without any layout."""
    pages: list[list[str]] = [[]]
    for line in text.split("\n"):
        if not line.strip():
            continue
        if pages[-1] and sum(map(len, pages[-1])) + len(line) > PAGE_LENGTH:
            pages.append([])
        pages[-1].append(line)
    return tuple(_build_page(number, lines) for number, lines in enumerate(pages, 1))


def _build_page(number: int, lines: Sequence[str]) -> Page:
    stamps = find_stamp_line_indices(lines)
    return Page(
        page_num=number,
        status=PageStatus.TEXT if lines else PageStatus.BLANK,
        text="\n".join(lines),
        paragraphs=tuple(lines),
        layout_metadata=LayoutMetadata(block_types=("paragraph",) * len(lines), has_tables=False),
        blocks=tuple(
            Block(type="paragraph", text=line, box=(0.0, 0.0, 1.0, 1.0), furniture=index in stamps)
            for index, line in enumerate(lines)
        ),
    )


# ------------------------------------------------------------------------------------------------------------- variants


def create_text_variants(labelled_texts: Sequence[LabelledText], fold_by_group: Mapping[str, int]) -> list[TextVariant]:
    """Every text as it was and as it might have been. What is quoted in a note is of its own fold and, if it can be, source."""
    text_variants: list[TextVariant] = []
    texts_by_fold_and_type: dict[tuple[int, DocumentType], list[LabelledText]] = defaultdict(list)
    for labelled_text in labelled_texts:
        texts_by_fold_and_type[fold_by_group[labelled_text.group], labelled_text.document_type].append(labelled_text)
    for labelled_text in labelled_texts:
        random_source = random.Random(f"{_SEED} {labelled_text.id}")  # noqa: S311 - the same variants each time
        text_variants += [
            TextVariant(name, labelled_text, text) for name, text in _vary_text(labelled_text, random_source)
        ]
        text_variants += _insert_quoted_reports(
            labelled_text, texts_by_fold_and_type, fold_by_group[labelled_text.group], random_source
        )
    return text_variants


def _vary_text(labelled_text: LabelledText, random_source: random.Random) -> Iterator[tuple[str, str]]:
    text = labelled_text.text
    yield "whole", text
    if len(text) > _LONG_TEXT_LENGTH / 2:
        yield "beginning", text[:500]
    if len(text) > _LONG_TEXT_LENGTH:
        yield "middle", text[len(text) // 3 : len(text) // 3 + 900]
        yield "end", text[-700:]
    if len(unlabelled := _LABEL_PATTERN.sub("", text)) > 100:
        yield "no labels", unlabelled
    yield "one line", " ".join(text.split())
    yield "misread", simulate_ocr_errors(text, 0.08, random_source)


def _insert_quoted_reports(
    labelled_text: LabelledText,
    texts_by_fold_and_type: Mapping[tuple[int, DocumentType], Sequence[LabelledText]],
    fold: int,
    random_source: random.Random,
) -> Iterator[TextVariant]:
    text = labelled_text.text
    if labelled_text.document_type is not DocumentType.CLINICAL_NOTE or len(text) <= 300:
        return
    for kind in (DocumentType.RADIOLOGY_REPORT, DocumentType.PATHOLOGY_REPORT, DocumentType.GENOMIC_REPORT):
        if candidates := texts_by_fold_and_type.get((fold, kind)):
            # One source quotes one other at most: each pair of sources is held out together, and learned without once more.
            source = max(
                {candidate.source for candidate in candidates}, key=lambda name: (name == labelled_text.source, name)
            )
            quoted_report = random_source.choice([candidate for candidate in candidates if candidate.source == source])
            excerpt = quoted_report.text[: int(len(text) * random_source.choice((0.3, 0.5)))]
            insert_position = text.find("\n", len(text) // 2)
            insert_position = len(text) // 2 if insert_position < 0 else insert_position
            yield TextVariant(
                f"quotes {kind.value}",
                labelled_text,
                f"{text[:insert_position]}\nRESULTS:\n{excerpt}\n{text[insert_position:]}",
                quoted_report,
            )


def simulate_ocr_errors(text: str, error_rate: float, random_source: random.Random) -> str:
    """The text as a poor scan is read: characters mistaken, dropped and split."""
    characters: list[str] = []
    for character in text:
        if not character.isalnum() or random_source.random() >= error_rate:
            characters.append(character)
            continue
        draw = random_source.random()
        if draw < 0.6:
            characters.append(_OCR_CONFUSIONS.get(character, character))
        elif draw < 0.8:
            characters.append(character + " ")
    return "".join(characters)


# ------------------------------------------------------------------------------------------------------- what was found


@dataclass(frozen=True)
class TrainingSet:
    """Variants with all that is learned from."""

    variants: Sequence[TextVariant]
    lexicon_features: FloatArray
    """One row a variant, one column a type, one layer each of ``LEXICON_KINDS``."""
    term_sets: Sequence[frozenset[str]]
    true_types: npt.NDArray[np.intp]


def assign_folds_to_groups(labelled_texts: Iterable[LabelledText], fold_count: int = FOLDS) -> dict[str, int]:
    """Group → fold: types spread evenly, the same for the same groups."""
    type_by_group = {example.group: example.document_type.value for example in labelled_texts}
    ordered_groups = sorted(
        type_by_group, key=lambda group: (type_by_group[group], hashlib.sha256(group.encode()).hexdigest())
    )
    return {group: number % fold_count for number, group in enumerate(ordered_groups)}


def build_training_set(text_variants: Sequence[TextVariant]) -> TrainingSet:
    """Everything the variants say, read once."""
    feature_rows, term_sets = [], []
    for variant in text_variants:
        pages = build_pages_from_text(variant.text)
        _, features = compute_lexicon_features([apply_lexicon(page) for page in pages])
        feature_rows.append([features[kind] for kind in LEXICON_FEATURE_NAMES])
        term_sets.append(frozenset(term.text for page in pages for term in extract_terms(page.text)))
    return TrainingSet(
        text_variants,
        np.array(feature_rows).transpose(0, 2, 1),
        term_sets,
        np.array([DOCUMENT_TYPES.index(text_variant.original.document_type) for text_variant in text_variants]),
    )


def find_proper_names(texts: Iterable[str]) -> set[str]:
    """Words that mostly have a capital letter in the middle of a sentence."""
    capital_counts: Counter[str] = Counter()
    lowercase_counts: Counter[str] = Counter()
    for text in texts:
        for match in _WORD_IN_SENTENCE_PATTERN.finditer(text):
            (capital_counts if match[1][0].isupper() else lowercase_counts)[match[1].lower()] += 1
    return {
        word
        for word, count in capital_counts.items()
        if count >= _MIN_NAME_CAPITAL_SHARE * (count + lowercase_counts[word])
    }


def select_vocabulary(
    training_set: TrainingSet, rows: npt.NDArray[np.intp], min_groups: int = MIN_TERM_GROUPS
) -> list[str]:
    """The terms that enough groups share and that are no names, sorted."""
    groups_by_term: dict[str, set[str]] = defaultdict(set)
    whole_text_rows = [row for row in rows if training_set.variants[row].name == "whole"]
    for row in whole_text_rows:
        for term in training_set.term_sets[row]:
            groups_by_term[term].add(training_set.variants[row].original.group)
    excluded_words = (
        find_proper_names(training_set.variants[row].text for row in whole_text_rows)
        | load_given_names()
        | _EXCLUDED_TERMS
    )
    return sorted(
        term
        for term, term_groups in groups_by_term.items()
        if len(term_groups) >= min_groups
        and excluded_words.isdisjoint(words := term.split(" "))
        and not _STOP_WORDS.issuperset(words)
        and not any(map(_is_placeholder, words))
    )


def _is_placeholder(word: str) -> bool:
    """Letters in the order of the alphabet stand for anything: ``abc``, ``xyz``."""
    return len(word) > 2 and all(ord(after) - ord(before) == 1 for before, after in pairwise(word))


def _mark_unsupported_terms_by_type(
    training_set: TrainingSet, rows: npt.NDArray[np.intp], vocabulary: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Which terms too few groups of a type have to speak for it: one row a term, one column a type."""
    index_by_term = {term: term_index for term_index, term in enumerate(vocabulary)}
    groups_by_cell: dict[tuple[int, int], set[str]] = defaultdict(set)
    for row in rows:
        if training_set.variants[row].name == "whole":
            for term in training_set.term_sets[row] & index_by_term.keys():
                groups_by_cell[index_by_term[term], int(training_set.true_types[row])].add(
                    training_set.variants[row].original.group
                )
    is_unsupported = np.ones((len(vocabulary), len(DOCUMENT_TYPES)), dtype=bool)
    for (term_index, type_index), groups in groups_by_cell.items():
        is_unsupported[term_index, type_index] = len(groups) < MIN_TYPE_GROUPS
    return is_unsupported


# ------------------------------------------------------------------------------------------------------------- learning


class FittedWeights(NamedTuple):
    """What was learned of the types."""

    lexicon_weights: FloatArray
    bias: FloatArray
    terms: list[str]
    term_weights: FloatArray
    """One row a term, one column a type."""
    min_known_share: float = 0.0
    """Of different words, 0 to 1: what nearly all learned texts have."""

    def compute_damped_type_sums(self, training_set: TrainingSet, rows: npt.NDArray[np.intp]) -> FloatArray:
        """What speaks for each type of these variants, added up and believed as far as they say much in known words."""
        raw_sums = (
            training_set.lexicon_features[rows] @ self.lexicon_weights
            + build_term_matrix(training_set, rows, self.terms) @ self.term_weights
            + self.bias
        )
        evidence = np.expm1(training_set.lexicon_features[rows, :, LEXICON_FEATURE_NAMES.index("evidence")]).sum(axis=1)
        known_terms = frozenset(self.terms)
        familiarities = [
            compute_familiarity(*_count_known_words(training_set.term_sets[row], known_terms), self.min_known_share)
            for row in rows
        ]
        dampings = [compute_damping_factor(total) for total in evidence.tolist()]
        return np.asarray(raw_sums * np.multiply(dampings, familiarities)[:, None])


def _count_known_words(terms: AbstractSet[str], known_terms: AbstractSet[str]) -> tuple[int, int]:
    """Of a text's single words, how many are known, and how many there are."""
    words = {term for term in terms if " " not in term}
    return len(words & known_terms), len(words)


def fit_weights(
    training_set: TrainingSet, rows: npt.NDArray[np.intp], min_groups: int = MIN_TERM_GROUPS
) -> FittedWeights:
    """Multinomial logistic regression in which the lexicon's weights are the same for all types.

    Groups weigh the same within their type, whatever they have of variants; types by the root of their groups.
    """
    vocabulary = select_vocabulary(training_set, rows, min_groups)
    term_matrix = build_term_matrix(training_set, rows, vocabulary)
    transposed = term_matrix.T.tocsr()
    lexicon_features, true_types = training_set.lexicon_features[rows], training_set.true_types[rows]
    feature_count, type_count = lexicon_features.shape[2], len(DOCUMENT_TYPES)
    target, row_weights = np.eye(type_count)[true_types], compute_row_weights(training_set, rows)

    def compute_loss(loss_parameters: FloatArray) -> tuple[float, FloatArray]:
        lexicon_part, bias_part, term_part = (
            loss_parameters[:feature_count],
            loss_parameters[feature_count : feature_count + type_count],
            loss_parameters[feature_count + type_count :].reshape(-1, type_count),
        )
        type_sums = lexicon_features @ lexicon_part + term_matrix @ term_part + bias_part
        log_probabilities = log_softmax(type_sums, axis=1)
        errors = (np.exp(log_probabilities) - target) * row_weights[:, None]
        loss_sum = -(row_weights * (log_probabilities * target).sum(axis=1)).sum()
        loss_sum += (
            _RIDGE_LEXICON * (lexicon_part @ lexicon_part)
            + _RIDGE_BIAS * (bias_part @ bias_part)
            + _RIDGE_TERMS * (term_part * term_part).sum()
        ) / 2
        gradients = (
            np.einsum("ij,ijk->k", errors, lexicon_features) + _RIDGE_LEXICON * lexicon_part,
            errors.sum(axis=0) + _RIDGE_BIAS * bias_part,
            (transposed @ errors + _RIDGE_TERMS * term_part).ravel(),
        )
        return float(loss_sum), np.concatenate(gradients)

    upper_bounds = np.full(feature_count + type_count + len(vocabulary) * type_count, np.inf)
    upper_bounds[feature_count + type_count :] = np.where(
        _mark_unsupported_terms_by_type(training_set, rows, vocabulary), 0.0, np.inf
    ).ravel()
    parameters = minimize(
        compute_loss,
        np.zeros(len(upper_bounds)),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(-np.inf, upper_bounds),
        options={"maxiter": 200},
    ).x
    term_weights = parameters[feature_count + type_count :].reshape(-1, type_count)
    is_heavy = np.abs(term_weights).max(axis=1, initial=0.0) >= MIN_TERM_WEIGHT
    terms = [term for term, is_kept in zip(vocabulary, is_heavy, strict=True) if is_kept]
    return FittedWeights(
        parameters[:feature_count],
        parameters[feature_count : feature_count + type_count],
        terms,
        term_weights[is_heavy],
        _choose_min_known_share(training_set, rows, frozenset(terms)),
    )


def _choose_min_known_share(
    training_set: TrainingSet, rows: npt.NDArray[np.intp], known_terms: AbstractSet[str]
) -> float:
    word_counts = [
        _count_known_words(training_set.term_sets[row], known_terms)
        for row in rows
        if training_set.variants[row].name == "whole"
    ]
    known_shares = [known_count / word_count for known_count, word_count in word_counts if word_count]
    return float(np.quantile(known_shares, UNFAMILIAR_SHARE)) / 2 if known_shares else 0.0


def build_term_matrix(training_set: TrainingSet, rows: npt.NDArray[np.intp], vocabulary: Sequence[str]) -> csr_matrix:
    """Which terms of the vocabulary each of the rows has, weighted as ``type_scoring`` weighs them."""
    index_by_term = {term: term_index for term_index, term in enumerate(vocabulary)}
    indices_by_row = [
        sorted(index_by_term[term] for term in training_set.term_sets[row] if term in index_by_term) for row in rows
    ]
    starts = np.cumsum([0, *map(len, indices_by_row)])
    weights = [compute_term_weight(len(term_indices)) for term_indices in indices_by_row for _ in term_indices]
    return csr_matrix(
        (weights, [term_index for term_indices in indices_by_row for term_index in term_indices], starts),
        shape=(len(indices_by_row), len(vocabulary)),
    )


def compute_row_weights(training_set: TrainingSet, rows: npt.NDArray[np.intp]) -> FloatArray:
    """How much each variant counts: groups the same within their type, types by the root of their groups."""
    groups = [training_set.variants[row].original.group for row in rows]
    group_sizes = Counter(groups)
    # One patient has records of several types: the group counts for each of them.
    type_counts = Counter(kind for _, kind in set(zip(groups, training_set.true_types[rows].tolist(), strict=True)))
    row_weights = np.array(
        [
            1 / group_sizes[group] / math.sqrt(type_counts[kind])
            for group, kind in zip(groups, training_set.true_types[rows], strict=True)
        ]
    )
    return np.asarray(row_weights / row_weights.mean())


SourceParts = frozenset[Hashable]


def list_source_parts_by_variant(
    training_set: TrainingSet, get_part: Callable[[LabelledText], Hashable]
) -> list[SourceParts]:
    """Of each variant, the parts of the collection that its words are from: its own, and that of what it quotes."""
    return [
        frozenset(
            get_part(labelled_text) for labelled_text in (variant.original, variant.quoted_report) if labelled_text
        )
        for variant in training_set.variants
    ]


def predict_out_of_fold_sums(
    training_set: TrainingSet,
    parts_by_variant: Sequence[SourceParts],
    trainable_row_mask: npt.NDArray[np.bool_] | None = None,
) -> tuple[FloatArray, dict[SourceParts, FittedWeights]]:
    """For every variant the sums of a model that learned from nothing of its parts, quoted or not; and those models.

    ``trainable_row_mask``: which variants may be learned from; None: all.
    """
    allowed_rows = np.ones(len(parts_by_variant), dtype=bool) if trainable_row_mask is None else trainable_row_mask
    type_sums = np.zeros((len(parts_by_variant), len(DOCUMENT_TYPES)))
    weights_by_parts: dict[SourceParts, FittedWeights] = {}
    for held_out_parts in dict.fromkeys(parts_by_variant):
        weights_by_parts[held_out_parts] = fit_weights(
            training_set, np.flatnonzero(mark_independent_rows(parts_by_variant, held_out_parts) & allowed_rows)
        )
        held_out_rows = np.array(
            [row for row, variant_parts in enumerate(parts_by_variant) if variant_parts == held_out_parts]
        )
        type_sums[held_out_rows] = weights_by_parts[held_out_parts].compute_damped_type_sums(
            training_set, held_out_rows
        )
    return type_sums, weights_by_parts


def mark_independent_rows(
    parts_by_variant: Sequence[SourceParts], held_out_parts: SourceParts
) -> npt.NDArray[np.bool_]:
    """Which variants have nothing of the parts that are held out."""
    return np.array([held_out_parts.isdisjoint(variant_parts) for variant_parts in parts_by_variant])


class ProbabilityCalibration(NamedTuple):
    """How the sums are to be believed."""

    temperature: float
    min_probability: float
    max_contradicted_probability: float


class ActJudgements(NamedTuple):
    """What the reading of acts says of each variant that is a whole text: one row a variant, one column a type."""

    probabilities: FloatArray
    """Equal where a text says too little to judge, and for variants that were not read."""
    contradictions: npt.NDArray[np.bool_]
    """Which types it contradicts."""


def judge_acts(
    training_set: TrainingSet, select_weights: Callable[[LabelledText], ActWeights | None] = lambda _: None
) -> ActJudgements:
    """Read what whole texts do; ``select_weights``: by which a text is read, without its source; None: the shipped ones."""
    shape = (len(training_set.variants), len(DOCUMENT_TYPES))
    probabilities, contradictions = np.full(shape, 1 / len(DOCUMENT_TYPES)), np.zeros(shape, dtype=bool)
    for row, variant in enumerate(training_set.variants):
        if variant.name == "whole" and (
            reading := read_act_of_pages(build_pages_from_text(variant.text), select_weights(variant.original))
        ):
            probabilities[row] = [reading.probabilities[kind] for kind in DOCUMENT_TYPES]
            contradictions[row] = [reading.contradicts(kind) for kind in DOCUMENT_TYPES]
    return ActJudgements(probabilities, contradictions)


def calibrate_probabilities(
    type_sums: FloatArray,
    training_set: TrainingSet,
    act_judgements: ActJudgements,
    row_mask: npt.NDArray[np.bool_] | None = None,
) -> ProbabilityCalibration:
    """Calibrate from sums of a model that did not learn from what it judges; ``row_mask``: of these variants alone, None: of all.

    The temperature makes the probabilities of all variants likeliest to have been right; it never makes them surer. Below
    ``min_probability`` the answer is "cannot tell": the lowest of ``CANDIDATE_THRESHOLDS`` from which at most
    ``MAX_ERROR_RATE`` of the answers about whole texts that the reading of acts does not contradict are wrong.
    """
    selected_rows = np.ones(len(type_sums), dtype=bool) if row_mask is None else row_mask
    true_types, type_sums = training_set.true_types[selected_rows], type_sums[selected_rows]

    def compute_loss(log_temperature: FloatArray) -> float:
        return -float(
            np.log(
                compute_probabilities(type_sums, math.exp(log_temperature[0]))[np.arange(len(true_types)), true_types]
                + 1e-300
            ).sum()
        )

    temperature = min(
        MAX_TEMPERATURE, max(1.0, math.exp(minimize(compute_loss, np.zeros(1), method="Nelder-Mead").x[0]))
    )
    probability_rows = compute_probabilities(type_sums, temperature)
    is_whole_text = np.array([candidate.name == "whole" for candidate in training_set.variants])[selected_rows]
    answers = probability_rows.argmax(axis=1)
    is_standing = is_whole_text & ~act_judgements.contradictions[selected_rows][np.arange(len(answers)), answers]
    confidences, is_answer_wrong = probability_rows.max(axis=1)[is_standing], (answers != true_types)[is_standing]
    acceptable_thresholds = (
        candidate
        for candidate in CANDIDATE_THRESHOLDS
        if (is_answer_wrong & (confidences >= candidate)).sum() <= MAX_ERROR_RATE * (confidences >= candidate).sum()
    )
    readings = [
        combine_readings(*(dict(zip(DOCUMENT_TYPES, row.tolist(), strict=True)) for row in both))
        for both in zip(
            probability_rows[is_whole_text],
            act_judgements.probabilities[selected_rows][is_whole_text],
            strict=True,
        )
    ]
    whole_types = true_types[is_whole_text]
    right_probabilities = [
        reading[DOCUMENT_TYPES[kind]] for reading, kind in zip(readings, whole_types.tolist(), strict=True)
    ]
    return ProbabilityCalibration(
        temperature,
        next(acceptable_thresholds, CANDIDATE_THRESHOLDS[-1]),
        _choose_contradiction_limit(np.array(right_probabilities), whole_types),
    )


def _choose_contradiction_limit(right_probabilities: FloatArray, true_types: npt.NDArray[np.intp]) -> float:
    """The highest limit below which at most ``MAX_CONTRADICTED_RATE`` of the right types are, macro over the types."""
    candidates = [round(0.01 * step, 2) for step in range(91)]
    return max(
        limit
        for limit in candidates
        if np.mean([(right_probabilities[true_types == kind] < limit).mean() for kind in np.unique(true_types)])
        <= MAX_CONTRADICTED_RATE
    )


def compute_probabilities(type_sums: FloatArray, temperature: float) -> FloatArray:
    """Of each type, one row a text."""
    return np.asarray(softmax(type_sums / temperature, axis=1))


# ------------------------------------------------------------------------------------------------------------- the file


def train_model_with_held_out_sums(
    examples: Sequence[LabelledText], transition_weights: Mapping[str, float]
) -> tuple[dict[str, Any], FloatArray, TrainingSet]:
    """The contents of ``weights.json``; for every variant the sums of a model that had not seen its group; the variants."""
    fold_by_group = assign_folds_to_groups(examples)
    training_set = build_training_set(create_text_variants(examples, fold_by_group))
    type_sums, _ = predict_out_of_fold_sums(
        training_set, list_source_parts_by_variant(training_set, lambda example: fold_by_group[example.group])
    )
    fitted_weights = fit_weights(training_set, np.arange(len(training_set.variants)))
    return (
        build_weights_json(
            fitted_weights,
            calibrate_probabilities(type_sums, training_set, judge_acts(training_set)),
            transition_weights,
            examples,
        ),
        type_sums,
        training_set,
    )


def build_weights_json(
    fitted_weights: FittedWeights,
    calibration: ProbabilityCalibration,
    transition_weights: Mapping[str, float],
    counted_examples: Iterable[LabelledText] = (),
) -> dict[str, Any]:
    """The contents of ``weights.json``. Its version is the beginning of its numbers' hash.

    Of ``counted_examples`` the groups of each type are counted; nothing else is taken from them.
    """
    group_counts = Counter(
        kind for _, kind in {(example.group, example.document_type.value) for example in counted_examples}
    )
    weights_json: dict[str, Any] = {
        "learned_from": dict(sorted(group_counts.items())),
        "types": [kind.value for kind in DOCUMENT_TYPES],
        "temperature": round(calibration.temperature, 3),
        "least": round(calibration.min_probability, 3),
        "contradicts": round(calibration.max_contradicted_probability, 3),
        "familiar": round(fitted_weights.min_known_share, 3),
        "bias": _round_to_three_decimals(fitted_weights.bias),
        "lexicon": _round_to_three_decimals(fitted_weights.lexicon_weights),
        "joins": {name: round(value, 3) for name, value in transition_weights.items()},
        "terms": {
            term: _round_to_three_decimals(type_weights)
            for term, type_weights in zip(fitted_weights.terms, fitted_weights.term_weights, strict=True)
        },
    }
    version = hashlib.sha256(json.dumps(weights_json, sort_keys=True).encode()).hexdigest()[:12]
    return {"schema_version": 1, "version": version} | weights_json


def _round_to_three_decimals(values: FloatArray) -> list[float]:
    return [round(float(value), 3) + 0.0 for value in values]


def main() -> None:
    """Learn from labelled texts; where documents begin is taken from the shipped file."""
    parser = argparse.ArgumentParser(prog="python -m evalkit.classification.training", description=main.__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="JSON Lines, TOML, or a folder by types")
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="such as weights.json")
    arguments = parser.parse_args()
    shipped_weights = load_embedded_weights()
    try:
        examples = read_labelled_texts(arguments.paths)
    except UsageError as error:
        parser.error(str(error))
    data, type_sums, training_set = train_model_with_held_out_sums(
        examples, {**shipped_weights.transition_weights, "types": shipped_weights.page_type_influence}
    )
    parse_weights_json(data)
    arguments.to.write_text(format_weights_json(data), "utf-8")
    is_whole_text = np.array([variant.name == "whole" for variant in training_set.variants])
    probability_rows = compute_probabilities(type_sums, data["temperature"])[is_whole_text]
    is_right = probability_rows.argmax(axis=1) == training_set.true_types[is_whole_text]
    is_decided = probability_rows.max(axis=1) >= data["least"]
    print(  # noqa: T201 - what the command is asked for
        f"{arguments.to}: {len(data['terms'])} terms, version {data['version']}. Of {len(is_right)} texts, judged without their "
        f"groups: {int((is_right & is_decided).sum())} right, {int((~is_right & is_decided).sum())} wrong, {int((~is_decided).sum())} cannot tell"
    )


def format_weights_json(data: Mapping[str, Any]) -> str:
    """One line a term, so that two versions can be compared."""
    head = json.dumps({key: value for key, value in data.items() if key != "terms"}, indent=1)
    rows = ",\n".join(f"  {json.dumps(term)}: {json.dumps(row)}" for term, row in data["terms"].items())
    return f'{head[:-2]},\n "terms": {{\n{rows}\n }}\n}}\n'


if __name__ == "__main__":
    main()
