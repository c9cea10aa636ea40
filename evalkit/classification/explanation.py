"""What spoke for and against each type, on which page, and where documents begin: the embedded model's reasons.

Computed anew from the document, so that it can be asked about any classification, whoever made it. Terms are the
lexicon's and the learned ones; of what a pattern matched, only the pattern's group is named.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evalkit.classification.judging import Heard, Judgement, hear, heed, judge
from evalkit.classification.learned import Learned
from evalkit.classification.lexicon import lexicon
from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.classification.sequence import Course, course
from evalkit.documents.bundle import DocumentBundle

_SHOWN = 5
_MOST = 0.999
"""Nothing is said to be certain."""


@dataclass(frozen=True)
class Reason:
    """One thing that spoke for a type (above 0) or against it."""

    what: str
    weight: float
    """What it adds for this type, less what it adds for all types on average."""
    pages: tuple[int, ...]


@dataclass(frozen=True)
class TypeReasons:
    """All that spoke for and against one type."""

    document_type: DocumentType
    probability: float
    reasons: tuple[Reason, ...]
    """The strongest first, whether for or against."""


@dataclass(frozen=True)
class Explanation:
    """Why a run of pages is of a type."""

    start_page: int
    end_page: int
    types: tuple[TypeReasons, ...]
    """The most probable first."""


@dataclass(frozen=True)
class Beginning:
    """Whether a document begins on a page."""

    page: int
    probability: float
    signs: tuple[Reason, ...]


@dataclass(frozen=True)
class Why:
    """The reasons for a whole document."""

    segments: tuple[Explanation, ...]
    beginnings: tuple[Beginning, ...]
    turns: tuple[int, ...]
    """Pages on which a document begins because text that the model can read and text that it cannot take turns."""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


def why(bundle: DocumentBundle, answer: ClassificationOutput, known: Learned | None = None) -> Why:
    """What spoke in the segments of this answer, those that have pages."""
    heard = [hear(page, known=known) for page in bundle.pages]
    spans = [(max(one.start_page, 1), min(one.end_page, len(heard))) for one in answer.segments]
    found = course(heard)
    return Why(
        tuple(_explained(heard[first - 1 : last]) for first, last in spans if first <= last),
        tuple(_beginnings(found, heard)),
        found.turns,
    )


def _explained(pages: Sequence[Heard]) -> Explanation:
    judgement = judge(pages)
    numbers = [page.reading.page.page_num for page in pages]
    where = _places(pages)
    types = tuple(
        TypeReasons(kind, round(judgement.probabilities[kind], 4), tuple(_reasons(judgement, kind, where)))
        for kind in judgement.ranking
    )
    return Explanation(numbers[0], numbers[-1], types)


def _places(pages: Sequence[Heard]) -> dict[str, tuple[int, ...]]:
    found: dict[str, dict[int, None]] = defaultdict(dict)
    for page in pages:
        for term in page.terms:
            found[term].setdefault(page.reading.page.page_num)
    return {term: tuple(numbers) for term, numbers in found.items()}


def _reasons(judgement: Judgement, kind: DocumentType, where: dict[str, tuple[int, ...]]) -> Iterator[Reason]:
    at = list(DocumentType).index(kind)
    scale = heed(math.fsum(judgement.scores.values())) / judgement.known.temperature
    pulls = (
        Reason(
            part.name if part.is_term else f"lexicon, {part.name}",
            round((part.weights[at] - sum(part.weights) / len(part.weights)) * scale, 3),
            where[part.name] if part.is_term else (),
        )
        for part in judgement.parts
    )
    yield from sorted((one for one in pulls if one.weight), key=lambda one: (-abs(one.weight), one.what))


def _beginnings(found: Course, heard: Sequence[Heard]) -> Iterator[Beginning]:
    for join in found.joins:
        weights = heard[0].known.joins
        signs = [Reason(name, weights.get(name, 0.0), (join.page_num,)) for name in join.signs if weights.get(name)]
        yield Beginning(
            join.page_num,
            round(join.probability, 4),
            tuple(sorted(signs, key=lambda one: (-abs(one.weight), one.what))),
        )


def cues(bundle: DocumentBundle, first: int, last: int, kind: DocumentType) -> list[Reason]:
    """The lexicon's words for a type on these pages, heaviest first."""
    groups = lexicon().group_by_id
    found: dict[tuple[float, str], dict[int, None]] = defaultdict(dict)
    for page in bundle.between(first, last):
        for cue in hear(page).reading.cues:
            if cue.document_type is kind:
                named = f"{cue.term!r} ({cue.zone})" if cue.term in groups[cue.entry].phrases else cue.entry
                found[cue.weight, named].setdefault(page.page_num)
    return [Reason(named, weight, tuple(pages)) for (weight, named), pages in sorted(found.items(), key=_heaviest)]


def _heaviest(row: tuple[tuple[float, str], object]) -> tuple[float, str]:
    (weight, named), _ = row
    return -weight, named


def lines(bundle: DocumentBundle, answer: ClassificationOutput) -> Iterator[str]:
    """The reasons as lines for a terminal: of each segment the two most probable types, of each doubt its signs."""
    told = why(bundle, answer)
    for segment in told.segments:
        pages = _pages(range(segment.start_page, segment.end_page + 1))
        chances = ", ".join(f"{one.document_type.value} {min(one.probability, _MOST):.1%}" for one in segment.types)
        yield f"{pages}: {chances}"
        for one in segment.types[:2]:
            named = cues(bundle, segment.start_page, segment.end_page, one.document_type)[:_SHOWN]
            for heading, some in (
                ("lexicon", named),
                ("for", [reason for reason in one.reasons if reason.weight > 0][:_SHOWN]),
                ("against", [reason for reason in one.reasons if reason.weight < 0][:_SHOWN]),
            ):
                if some:
                    yield f"  {one.document_type.value}, {heading}: " + "; ".join(map(_said, some))
    for beginning in told.beginnings:
        signs = ", ".join(f"{sign.what} {sign.weight:+.2f}" for sign in beginning.signs)
        yield f"page {beginning.page} begins a document: {min(beginning.probability, _MOST):.1%} ({signs}, and its type)"
    for page in told.turns:
        yield f"page {page} begins a document: text that the model can read and text that it cannot meet there"


def _said(reason: Reason) -> str:
    return f"{reason.what} {reason.weight:+.2f}" + (f" ({_pages(reason.pages)})" if reason.pages else "")


def _pages(numbers: Iterable[int]) -> str:
    some = list(numbers)
    if len(some) == 1:
        return f"page {some[0]}"
    if some == list(range(some[0], some[-1] + 1)):
        return f"pages {some[0]}–{some[-1]}"
    return "pages " + ", ".join(map(str, some))
