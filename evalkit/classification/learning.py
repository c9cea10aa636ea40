"""How ``weights.json`` was learned, and how a hospital learns it again on its own records.

    python -m evalkit.classification.learning PATH… --to weights.json

A PATH is a file of JSON Lines or TOML, one labelled text each, or a folder with one sub-folder a type that holds .txt
files. Records of one patient or one source are one ``group``: what is judged is never judged by what was learned from
its own group. Only terms that several groups share are kept, letters only and no names, so that nobody's data is in the
file.
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
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, minimize
from scipy.sparse import csr_matrix

from evalkit.classification.judging import heed, lexicon_features, term_value, terms
from evalkit.classification.learned import HOTTEST, LEXICON_KINDS, learned, parse_learned
from evalkit.classification.lexicon import read_page
from evalkit.classification.schema import DocumentType
from evalkit.classification.sequence import SIGNS
from evalkit.documents.bundle import Block, LayoutMetadata, Page, PageStatus
from evalkit.errors import UsageError

Numbers = npt.NDArray[np.float64]
KINDS = tuple(DocumentType)

FOLDS = 5
LEAST_GROUPS = 4
"""So many groups must share a term."""
LEAST_OF_TYPE = 3
"""So many groups of a type must have a term that speaks for it: one source's habits are no evidence."""
THRESHOLDS = tuple(round(0.7 + 0.05 * step, 2) for step in range(6))
MOST_WRONG = 0.01
MOST_OF_TYPES = 1.0
"""How much the types of pages may count in where documents begin: on unlike records they are wrong more often."""
PAGE_LENGTH = 3000
"""Characters after which a text without pages gets a new page."""

_RIDGE_TERMS, _RIDGE_BIAS, _RIDGE_LEXICON, _RIDGE_JOINS = 0.1, 10.0, 0.05, 2.0
_LONG = 1200
_SEED = 5
#: A word that stands with a capital letter so often where a sentence goes on is a name of something.
_NAME = 0.5
_IN_SENTENCE = re.compile(r"(?<=[\w,;] )([A-Za-z][a-z]+)\b")
_NO_TERMS = frozenset(
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
_SMALL_WORDS = frozenset(
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
_LABEL = re.compile(r"(?m)^[ \t]*[-•*]?[ \t]*[^\n:]{2,70}:[ \t]*|[A-Z][A-Z /&-]{3,40}:")
_MISREAD = dict(
    zip("lieahtcugsoBSIO", ("1", "l", "c", "o", "b", "f", "e", "v", "q", "5", "0", "8", "5", "l", "0"), strict=True)
)


@dataclass(frozen=True)
class Example:
    """A labelled text."""

    id: str
    kind: DocumentType
    text: str
    group: str
    """Of records that resemble each other: the same patient, source or report."""
    source: str = ""


class Variant(NamedTuple):
    """A text as it was, or as it might have been: a part of it, without labels, misread, with a report quoted in it."""

    name: str
    example: Example
    text: str
    quoted: Example | None = None
    """Whose text stands in it as well."""


# -------------------------------------------------------------------------------------------------------------- reading


def read_examples(paths: Iterable[Path]) -> list[Example]:
    """All labelled texts under these paths. UsageError naming the file and row where there is something else."""
    found = [example for path in paths for example in _examples(path)]
    missing = [kind.value for kind in KINDS if not any(one.kind is kind for one in found)]
    if missing:
        raise _wrong("the examples", f"have none of type {', '.join(missing)}")
    if len({one.group for one in found}) < 2:
        raise _wrong("the examples", "are all of one group, and none is judged by what was learned from its own")
    return found


def _examples(path: Path) -> Iterator[Example]:
    if path.is_dir():
        for file in sorted(path.glob("*/*.txt")):
            where = str(file.relative_to(path))
            try:
                text = file.read_text("utf-8")
            except (OSError, ValueError) as error:
                raise _wrong(where, "cannot be read as text in UTF-8") from error
            yield _example(where, {"id": file.stem, "type": file.parent.name, "text": text})
        return
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".toml":
            rows = tomllib.loads(text).get("document", [])
        else:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise _wrong(path.name, "cannot be read as JSON Lines or TOML") from error
    if not isinstance(rows, list):
        raise _wrong(path.name, "has no rows [[document]]")
    for number, row in enumerate(rows, 1):
        yield _example(f"{path.name}, row {number}", row)


def _example(where: str, row: Any) -> Example:
    if not isinstance(row, Mapping) or not all(isinstance(row.get(key), str) for key in ("type", "text")):
        raise _wrong(where, "has no type or no text")
    if row["type"] not in [kind.value for kind in KINDS]:
        raise _wrong(where, "has none of the five types")
    name = str(row.get("id") or row.get("doc_id") or hashlib.sha256(row["text"].encode()).hexdigest()[:12])
    return Example(
        name, DocumentType(row["type"]), row["text"], str(row.get("group") or name), str(row.get("source") or "")
    )


def _wrong(where: str, what: str) -> UsageError:
    return UsageError(f"{where} {what}", code="LEARNING-INPUT", remedy="Give rows with type, text and group.")


def pages_of(text: str) -> tuple[Page, ...]:
    """The text as pages of lines, as a reader would make them of a file without any layout."""
    pages: list[list[str]] = [[]]
    for line in text.split("\n"):
        if not line.strip():
            continue
        if pages[-1] and sum(map(len, pages[-1])) + len(line) > PAGE_LENGTH:
            pages.append([])
        pages[-1].append(line)
    return tuple(_page(number, lines) for number, lines in enumerate(pages, 1))


def _page(number: int, lines: Sequence[str]) -> Page:
    return Page(
        page_num=number,
        status=PageStatus.TEXT if lines else PageStatus.BLANK,
        text="\n".join(lines),
        paragraphs=tuple(lines),
        layout_metadata=LayoutMetadata(block_types=("paragraph",) * len(lines), has_tables=False),
        blocks=tuple(Block(type="paragraph", text=line, box=(0.0, 0.0, 1.0, 1.0)) for line in lines),
    )


# ------------------------------------------------------------------------------------------------------------- variants


def variants(examples: Sequence[Example], folds: Mapping[str, int]) -> list[Variant]:
    """Every text as it was and as it might have been. What is quoted in a note is of the note's own fold."""
    made: list[Variant] = []
    reports: dict[tuple[int, DocumentType], list[Example]] = defaultdict(list)
    for one in examples:
        reports[folds[one.group], one.kind].append(one)
    for one in examples:
        chance = random.Random(f"{_SEED} {one.id}")  # noqa: S311 - the same variants each time
        made += [Variant(name, one, text) for name, text in _versions(one, chance)]
        made += _quoting(one, reports, folds[one.group], chance)
    return made


def _versions(one: Example, chance: random.Random) -> Iterator[tuple[str, str]]:
    text = one.text
    yield "whole", text
    if len(text) > _LONG / 2:
        yield "beginning", text[:500]
    if len(text) > _LONG:
        yield "middle", text[len(text) // 3 : len(text) // 3 + 900]
        yield "end", text[-700:]
    if len(unlabelled := _LABEL.sub("", text)) > 100:
        yield "no labels", unlabelled
    yield "one line", " ".join(text.split())
    yield "misread", misread(text, 0.08, chance)


def _quoting(
    one: Example, reports: Mapping[tuple[int, DocumentType], Sequence[Example]], fold: int, chance: random.Random
) -> Iterator[Variant]:
    text = one.text
    if one.kind is not DocumentType.CLINICAL_NOTE or len(text) <= 300:
        return
    for kind in (DocumentType.RADIOLOGY_REPORT, DocumentType.PATHOLOGY_REPORT, DocumentType.GENOMIC_REPORT):
        if some := reports.get((fold, kind)):
            quoted = chance.choice(some)
            said = quoted.text[: int(len(text) * chance.choice((0.3, 0.5)))]
            cut = text.find("\n", len(text) // 2)
            cut = len(text) // 2 if cut < 0 else cut
            yield Variant(f"quotes {kind.value}", one, f"{text[:cut]}\nRESULTS:\n{said}\n{text[cut:]}", quoted)


def misread(text: str, rate: float, chance: random.Random) -> str:
    """The text as a poor scan is read: characters mistaken, dropped and split."""
    made: list[str] = []
    for character in text:
        if not character.isalnum() or chance.random() >= rate:
            made.append(character)
            continue
        how = chance.random()
        if how < 0.6:
            made.append(_MISREAD.get(character, character))
        elif how < 0.8:
            made.append(character + " ")
    return "".join(made)


# ------------------------------------------------------------------------------------------------------- what was found


@dataclass(frozen=True)
class Material:
    """Variants with all that is learned from."""

    variants: Sequence[Variant]
    lexicon: Numbers
    """One row a variant, one column a type, one layer each of ``LEXICON_KINDS``."""
    words: Sequence[frozenset[str]]
    truth: npt.NDArray[np.intp]


def fold_of(examples: Iterable[Example], folds: int = FOLDS) -> dict[str, int]:
    """Group → fold: types spread evenly, the same for the same groups."""
    kinds = {one.group: one.kind.value for one in examples}
    ordered = sorted(kinds, key=lambda group: (kinds[group], hashlib.sha256(group.encode()).hexdigest()))
    return {group: number % folds for number, group in enumerate(ordered)}


def material(made: Sequence[Variant]) -> Material:
    """Everything the variants say, read once."""
    rows, words = [], []
    for variant in made:
        pages = pages_of(variant.text)
        _, kinds = lexicon_features([read_page(page) for page in pages])
        rows.append([kinds[kind] for kind in LEXICON_KINDS])
        words.append(frozenset(term.text for page in pages for term in terms(page.text)))
    return Material(
        made,
        np.array(rows).transpose(0, 2, 1),
        words,
        np.array([KINDS.index(one.example.kind) for one in made]),
    )


def names(texts: Iterable[str]) -> set[str]:
    """Words that mostly have a capital letter in the middle of a sentence."""
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for text in texts:
        for match in _IN_SENTENCE.finditer(text):
            (capital if match[1][0].isupper() else small)[match[1].lower()] += 1
    return {word for word, times in capital.items() if times >= _NAME * (times + small[word])}


@cache
def given_names() -> frozenset[str]:
    """Common ones, of ``given_names.toml``: a patient's may stand at the head of every page, in small letters too."""
    data = tomllib.loads((files("evalkit.classification") / "given_names.toml").read_text("utf-8"))
    return frozenset(data["names"].split())


def vocabulary(some: Material, rows: npt.NDArray[np.intp], least_groups: int = LEAST_GROUPS) -> list[str]:
    """The terms that enough groups share and that are no names, sorted."""
    groups: dict[str, set[str]] = defaultdict(set)
    whole = [row for row in rows if some.variants[row].name == "whole"]
    for row in whole:
        for term in some.words[row]:
            groups[term].add(some.variants[row].example.group)
    barred = names(some.variants[row].text for row in whole) | given_names() | _NO_TERMS
    return sorted(
        term
        for term, those in groups.items()
        if len(those) >= least_groups
        and barred.isdisjoint(words := term.split(" "))
        and not _SMALL_WORDS.issuperset(words)
        and not any(map(_is_placeholder, words))
    )


def _is_placeholder(word: str) -> bool:
    """Letters in the order of the alphabet stand for anything: ``abc``, ``xyz``."""
    return len(word) > 2 and all(ord(after) - ord(before) == 1 for before, after in pairwise(word))


def _unsupported(some: Material, rows: npt.NDArray[np.intp], known: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which terms too few groups of a type have to speak for it: one row a term, one column a type."""
    places = {term: place for place, term in enumerate(known)}
    seen: dict[tuple[int, int], set[str]] = defaultdict(set)
    for row in rows:
        if some.variants[row].name == "whole":
            for term in some.words[row] & places.keys():
                seen[places[term], int(some.truth[row])].add(some.variants[row].example.group)
    few = np.ones((len(known), len(KINDS)), dtype=bool)
    for (place, kind), those in seen.items():
        few[place, kind] = len(those) < LEAST_OF_TYPE
    return few


# ------------------------------------------------------------------------------------------------------------- learning


class Fit(NamedTuple):
    """What was learned of the types."""

    lexicon: Numbers
    bias: Numbers
    terms: list[str]
    rows: Numbers
    """One row a term, one column a type."""

    def sums(self, some: Material, rows: npt.NDArray[np.intp]) -> Numbers:
        """What speaks for each type of these variants, added up and heeded."""
        spoke = some.lexicon[rows] @ self.lexicon + _matrix(some, rows, self.terms) @ self.rows + self.bias
        said = np.expm1(some.lexicon[rows, :, LEXICON_KINDS.index("evidence")]).sum(axis=1)
        return np.asarray(spoke * np.array([[heed(one)] for one in said.tolist()]))


def fit(some: Material, rows: npt.NDArray[np.intp], least_groups: int = LEAST_GROUPS) -> Fit:
    """Multinomial logistic regression in which the lexicon's weights are the same for all types.

    Groups weigh the same within their type, whatever they have of variants; types by the root of their groups.
    """
    known = vocabulary(some, rows, least_groups)
    words = _matrix(some, rows, known)
    transposed = words.T.tocsr()
    lexicon, truth = some.lexicon[rows], some.truth[rows]
    layers, count = lexicon.shape[2], len(KINDS)
    target, weight = np.eye(count)[truth], _weights(some, rows)

    def loss(numbers: Numbers) -> tuple[float, Numbers]:
        a, b, w = numbers[:layers], numbers[layers : layers + count], numbers[layers + count :].reshape(-1, count)
        sums = lexicon @ a + words @ w + b
        sums -= sums.max(axis=1, keepdims=True)
        whole = np.exp(sums).sum(axis=1, keepdims=True)
        wrong = (np.exp(sums) / whole - target) * weight[:, None]
        value = -(weight * ((sums * target).sum(axis=1) - np.log(whole[:, 0]))).sum()
        value += (_RIDGE_LEXICON * (a @ a) + _RIDGE_BIAS * (b @ b) + _RIDGE_TERMS * (w * w).sum()) / 2
        slopes = (
            np.einsum("ij,ijk->k", wrong, lexicon) + _RIDGE_LEXICON * a,
            wrong.sum(axis=0) + _RIDGE_BIAS * b,
            (transposed @ wrong + _RIDGE_TERMS * w).ravel(),
        )
        return float(value), np.concatenate(slopes)

    most = np.full(layers + count + len(known) * count, np.inf)
    most[layers + count :] = np.where(_unsupported(some, rows, known), 0.0, np.inf).ravel()
    found = minimize(
        loss,
        np.zeros(len(most)),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(-np.inf, most),
        options={"maxiter": 200},
    )
    numbers = found.x
    return Fit(numbers[:layers], numbers[layers : layers + count], known, numbers[layers + count :].reshape(-1, count))


def _matrix(some: Material, rows: npt.NDArray[np.intp], known: Sequence[str]) -> csr_matrix:
    places = {term: place for place, term in enumerate(known)}
    found = [sorted(places[term] for term in some.words[row] if term in places) for row in rows]
    starts = np.cumsum([0, *map(len, found)])
    values = [term_value(len(one)) for one in found for _ in one]
    return csr_matrix((values, [place for one in found for place in one], starts), shape=(len(found), len(known)))


def _weights(some: Material, rows: npt.NDArray[np.intp]) -> Numbers:
    groups = [some.variants[row].example.group for row in rows]
    sizes = Counter(groups)
    # One patient has records of several types: the group counts for each of them.
    kinds = Counter(kind for _, kind in set(zip(groups, some.truth[rows].tolist(), strict=True)))
    weights = np.array(
        [1 / sizes[group] / math.sqrt(kinds[kind]) for group, kind in zip(groups, some.truth[rows], strict=True)]
    )
    return np.asarray(weights / weights.mean())


Parts = frozenset[Hashable]


def parts_of(some: Material, part: Callable[[Example], Hashable]) -> list[Parts]:
    """Of each variant, the parts of the collection that its words are from: its own, and that of what it quotes."""
    return [frozenset(part(one) for one in (each.example, each.quoted) if one) for each in some.variants]


def out_of_fold(
    some: Material, parts: Sequence[Parts], learn_from: npt.NDArray[np.bool_] | None = None
) -> tuple[Numbers, dict[Parts, Fit]]:
    """For every variant the sums of a model that learned from nothing of its parts, quoted or not; and those models.

    ``learn_from``: which variants may be learned from; None: all.
    """
    allowed = np.ones(len(parts), dtype=bool) if learn_from is None else learn_from
    sums = np.zeros((len(parts), len(KINDS)))
    fits: dict[Parts, Fit] = {}
    for held_out in dict.fromkeys(parts):
        fits[held_out] = fit(some, np.flatnonzero(free_of(parts, held_out) & allowed))
        those = np.array([place for place, one in enumerate(parts) if one == held_out])
        sums[those] = fits[held_out].sums(some, those)
    return sums, fits


def free_of(parts: Sequence[Parts], held_out: Parts) -> npt.NDArray[np.bool_]:
    """Which variants have nothing of the parts that are held out."""
    return np.array([held_out.isdisjoint(one) for one in parts])


class Calibration(NamedTuple):
    """How the sums are to be believed."""

    temperature: float
    least: float


def calibration(sums: Numbers, some: Material, rows: npt.NDArray[np.bool_] | None = None) -> Calibration:
    """From sums of a model that did not learn from what it judges; ``rows``: of these alone, None: of all.

    The temperature makes the probabilities of all variants likeliest to have been right; it never makes them surer. Below
    ``least`` the answer is "cannot tell": the lowest of ``THRESHOLDS`` above which at most ``MOST_WRONG`` of the answers
    about whole texts are wrong.
    """
    chosen = np.ones(len(sums), dtype=bool) if rows is None else rows
    truth, sums = some.truth[chosen], sums[chosen]

    def loss(logarithm: Numbers) -> float:
        return -float(np.log(probabilities(sums, math.exp(logarithm[0]))[np.arange(len(truth)), truth] + 1e-300).sum())

    temperature = min(HOTTEST, max(1.0, math.exp(minimize(loss, np.zeros(1), method="Nelder-Mead").x[0])))
    said = probabilities(sums, temperature)
    whole = np.array([one.name == "whole" for one in some.variants])[chosen]
    sure, wrong = said.max(axis=1)[whole], (said.argmax(axis=1) != truth)[whole]
    fine = (one for one in THRESHOLDS if (wrong & (sure >= one)).sum() <= MOST_WRONG * (sure >= one).sum())
    return Calibration(temperature, next(fine, THRESHOLDS[-1]))


def probabilities(sums: Numbers, temperature: float) -> Numbers:
    """Of each type, one row a text."""
    scaled = (sums - sums.max(axis=1, keepdims=True)) / temperature
    return np.asarray(np.exp(scaled) / np.exp(scaled).sum(axis=1, keepdims=True))


# ---------------------------------------------------------------------------------------------------------------- joins


class Chain(NamedTuple):
    """A packet whose documents are known, for learning where they begin."""

    opinions: Numbers
    """One row a page, one column a type: logarithms."""
    signs: Numbers
    """One row a join, one column each of ``SIGNS``."""
    begins: npt.NDArray[np.bool_]
    kinds: npt.NDArray[np.intp]
    """The type of each page."""


def fit_joins(chains: Sequence[Chain]) -> dict[str, float]:
    """Weights of ``SIGNS`` and of the pages' types that make the true documents likeliest: a chain's conditional likelihood.

    Few packets move them little from what they were without any.

    Source: Lafferty, McCallum and Pereira, Conditional Random Fields (ICML 2001).
    """
    count = len(KINDS)
    unlearned = np.array(list(SIGNS.values()))

    def one(chain: Chain, w: Numbers, strength: float) -> tuple[float, Numbers, float]:
        n = len(chain.opinions)
        fits = np.exp(strength * chain.opinions)
        odds = np.exp(np.clip(chain.signs @ w, -30, 30))
        forward, scales = [fits[0] / fits[0].sum()], [fits[0].sum()]
        for place in range(1, n):
            now = (forward[-1] + odds[place - 1] / count) * fits[place]
            scales.append(now.sum())
            forward.append(now / scales[-1])
        behind = np.ones(count)
        pages, joins = np.zeros((n, count)), np.zeros(max(n - 1, 0))
        pages[-1] = forward[-1]
        for place in range(n - 2, -1, -1):
            seen = fits[place + 1] * behind
            joins[place] = odds[place] * seen.sum() / count / (odds[place] * seen.sum() / count + forward[place] @ seen)
            behind = seen + odds[place] * seen.sum() / count
            behind /= behind.sum()
            belief = forward[place] * behind
            pages[place] = belief / belief.sum()
        true_fit = chain.opinions[np.arange(n), chain.kinds].sum()
        true_joins = (chain.signs @ w - math.log(count))[chain.begins].sum()
        value = np.log(scales).sum() - strength * true_fit - true_joins
        slope_w = chain.signs.T @ (joins - chain.begins)
        slope = float((pages * chain.opinions).sum() - true_fit)
        return float(value), slope_w, slope

    def loss(numbers: Numbers) -> tuple[float, Numbers]:
        w, strength = numbers[:-1], numbers[-1]
        moved = w - unlearned
        value = _RIDGE_JOINS * float(moved @ moved) / 2
        slope = np.concatenate([_RIDGE_JOINS * moved, [0.0]])
        for chain in chains:
            more, slope_w, slope_s = one(chain, w, strength)
            value += more
            slope[:-1] += slope_w
            slope[-1] += slope_s
        return value, slope

    begin = np.array([*unlearned, MOST_OF_TYPES])
    bounds = [(None, None)] * len(SIGNS) + [(0.0, MOST_OF_TYPES)]
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 120}).x
    return dict(zip((*SIGNS, "types"), found.tolist(), strict=True))


# ------------------------------------------------------------------------------------------------------------- the file


def learn(examples: Sequence[Example], joins: Mapping[str, float]) -> tuple[dict[str, Any], Numbers, Material]:
    """The contents of ``weights.json``; for every variant the sums of a model that had not seen its group; the variants."""
    folds = fold_of(examples)
    some = material(variants(examples, folds))
    sums, _ = out_of_fold(some, parts_of(some, lambda one: folds[one.group]))
    everything = fit(some, np.arange(len(some.variants)))
    return written(everything, calibration(sums, some), joins, examples), sums, some


def written(
    what: Fit, believed: Calibration, joins: Mapping[str, float], examples: Iterable[Example] = ()
) -> dict[str, Any]:
    """The contents of ``weights.json``. Its version is the beginning of its numbers' hash."""
    groups = Counter(kind for _, kind in {(one.group, one.kind.value) for one in examples})
    numbers: dict[str, Any] = {
        "learned_from": dict(sorted(groups.items())),
        "types": [kind.value for kind in KINDS],
        "temperature": round(believed.temperature, 3),
        "least": round(believed.least, 3),
        "bias": _rounded(what.bias),
        "lexicon": _rounded(what.lexicon),
        "joins": {name: round(value, 3) for name, value in joins.items()},
        "terms": {
            term: _rounded(row) for term, row in zip(what.terms, what.rows, strict=True) if np.abs(row).max() >= 0.005
        },
    }
    version = hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()[:12]
    return {"schema_version": 1, "version": version} | numbers


def _rounded(values: Numbers) -> list[float]:
    return [round(float(value), 3) + 0.0 for value in values]


def main() -> None:
    """Learn from labelled texts; where documents begin is taken from the shipped file."""
    parser = argparse.ArgumentParser(prog="python -m evalkit.classification.learning", description=main.__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="JSON Lines, TOML, or a folder by types")
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="such as weights.json")
    chosen = parser.parse_args()
    shipped = learned()
    try:
        examples = read_examples(chosen.paths)
    except UsageError as error:
        parser.error(str(error))
    data, sums, some = learn(examples, {**shipped.joins, "types": shipped.page_types})
    parse_learned(data)
    chosen.to.write_text(as_json(data), "utf-8")
    whole = np.array([one.name == "whole" for one in some.variants])
    said = probabilities(sums, data["temperature"])[whole]
    right = said.argmax(axis=1) == some.truth[whole]
    told = said.max(axis=1) >= data["least"]
    print(  # noqa: T201 - what the command is asked for
        f"{chosen.to}: {len(data['terms'])} terms, version {data['version']}. Of {len(right)} texts, judged without their "
        f"groups: {int((right & told).sum())} right, {int((~right & told).sum())} wrong, {int((~told).sum())} cannot tell"
    )


def as_json(data: Mapping[str, Any]) -> str:
    """One line a term, so that two versions can be compared."""
    head = json.dumps({key: value for key, value in data.items() if key != "terms"}, indent=1)
    rows = ",\n".join(f"  {json.dumps(term)}: {json.dumps(row)}" for term, row in data["terms"].items())
    return f'{head[:-2]},\n "terms": {{\n{rows}\n }}\n}}\n'


if __name__ == "__main__":
    main()
