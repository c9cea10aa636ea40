"""The primary classifier: which document types does the record hold, on which pages, by what evidence?

A language model is asked with the whole text. Offline, the same question is answered by the embedded model: each page is
read (``lexicon``), pages are joined to documents (``sequence``), and each document takes its most probable type
(``judging``), or none where that is not probable enough. Whatever the text, that answer keeps the rules that V1 and V2
check.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from typing import Any

from evalkit.classification.answer import answer_schema, read_answer
from evalkit.classification.judging import Heard, Judgement, hear, judge, learned_cues
from evalkit.classification.learned import Learned
from evalkit.classification.lexicon import Cue, PageReading, Span, lexicon
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    MixtureEntry,
    PresenceLevel,
    Segment,
    TypePresence,
    normalised,
    type_definitions,
)
from evalkit.classification.sequence import BEGINS, Join, course
from evalkit.classification.v2_consistency import DOUBTS, SUMMARY, nearly_largest, tie_winner
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.grounding.locate import whole_words
from evalkit.llm.model import DocumentQuestion
from evalkit.llm.prompts import fenced, render

Scores = Mapping[DocumentType, float]

# Presence of the types that a segment is not. A form names every kind of record, so it must say more to mention one.
MENTION_EVIDENCE = 2.0
MENTION_GAIN = 1.0
MENTION_EVIDENCE_IN_OTHER = 6.0
EMBEDDED_HEADINGS = 3
HEADING_WEIGHT = 3.0
LEAST_SHARE = 0.01
MENTION_SHARE = 0.05
EMBEDDED_SHARE = 0.15


LEAST_WORDS, MOST_WORDS, WINDOW_WORDS = 3, 60, 40
SNIPPETS = {PresenceLevel.PRIMARY: 3, PresenceLevel.EMBEDDED_RAW: 2, PresenceLevel.MENTION_ONLY: 1}
ANCHORS = 5
#: A document of fewer words is a tab or a stamp: it may name a report, and holds none.
FEWEST_WORDS = 8

#: What V3 calls header and footer: it identifies a page, it says nothing about a document's type.
_PAGE_FURNITURE = re.compile(
    r"(?i)\bpage\s*\d+\s*(?:of|/)\s*\d+|\bfax(?:\s*(?:no|number|#))?\.?\s*[:#(\d]|\bMRN\b|\bmedical record (?:no|num|#)"
    r"|\bdate of birth\b|\bbirth ?date\b|\bD\.?O\.?B\b"
)
# A ruled or dotted line ends a passage: what stands on both sides of a blank belongs to two fields. A sentence that is
# wrapped is one passage: quoted from its second line on, "no / invasion" would be an invasion.
_TITLE = "".join(rf"(?<!\b{title}\.)" for title in ("Mr", "Mrs", "Ms", "Dr", "Prof", "St", "No", "vs"))
_PASSAGE_END = re.compile(rf"(?<=[.!?]){_TITLE}\s+(?=[A-Z0-9\"(\[])|(?:\t|\n(?![ ]*[a-z])|(?<![a-z,])\n)+|[_.]{{4,}}")
_WORD = re.compile(r"\S+")
_TELLING = re.compile(r"(?=\S*[^\W_])\S")
"""Where the first word begins that has a letter or a digit."""
_LEVEL_ORDER = tuple(PresenceLevel)


class ClassifierQuestion(DocumentQuestion[ClassificationOutput]):
    """Which types do these pages of a document hold, and where?"""

    role = "classifier"
    answer_type = ClassificationOutput

    def __init__(self, bundle: DocumentBundle, pages: tuple[int, int] | None = None) -> None:
        self.bundle = bundle
        self._first, self._last = pages or (1, bundle.total_pages)

    def worded(self) -> str:
        """The document, the types and the rules of the answer."""
        return render(
            "primary_classifier_agent_prompt",
            document=fenced(self.bundle, self.bundle.between(self._first, self._last)),
            first_page=str(self._first),
            last_page=str(self._last),
            types=types_text(),
        )

    def offline(self) -> ClassificationOutput:
        """The lexicon's answer."""
        return classify(self.bundle, self.bundle.between(self._first, self._last))

    def schema(self) -> Mapping[str, Any]:
        """A classification's, with quotes by their place."""
        return answer_schema()

    def read(self, text: str) -> ClassificationOutput:
        """The classification, its quotes cut out of the document."""
        return read_answer(text, self.bundle)


class PrimaryClassifier:
    """Asks what a document is."""

    def question(self, bundle: DocumentBundle, pages: tuple[int, int] | None = None) -> ClassifierQuestion:
        """The question about this document, or about these of its pages (first and last)."""
        return ClassifierQuestion(bundle, pages)


@cache
def types_text() -> str:
    """``types.toml`` as text for a prompt."""
    definitions = type_definitions()
    return "\n\n".join(
        "\n".join(
            [
                f"{kind.value}: {definitions[kind.value]['definition']}",
                *(f"  is one: {line}" for line in definitions[kind.value]["includes"]),
                *(f"  is not: {line}" for line in definitions[kind.value]["excludes"]),
            ]
        )
        for kind in DocumentType
    )


def classify(
    bundle: DocumentBundle, pages: Iterable[Page] | None = None, known: Learned | None = None
) -> ClassificationOutput:
    """The embedded model's classification, of all pages or of these: deterministic, without any language model.

    ``known``: other learned numbers than the shipped ones.
    """
    heard = [hear(page, known=known) for page in (bundle.pages if pages is None else pages)]
    found = course(heard)
    documents = [_verdict(heard[start:end], found.joins) for start, end in found.runs]
    segments = tuple(_segment(index, document) for index, document in enumerate(documents, start=1))
    mixture = mixture_of(segments)
    return ClassificationOutput(
        dominant_type_overall=dominant_overall(segments, mixture),
        number_of_segments=len(segments),
        segments=segments,
        document_mixture=mixture,
        vendor_signals=tuple(dict.fromkeys(name for page in heard for name in page.reading.vendors)),
        self_evaluation={
            SUMMARY: _self_evaluation(documents),
            DOUBTS: [
                {"page": join.page_num, "begins": round(join.probability, 2)}
                for join in found.joins
                if join.is_doubtful
            ],
        },
    )


# ---------------------------------------------------------------------------------------------- one document


@dataclass(frozen=True)
class _Source:
    """A page that evidence is taken from."""

    page: Heard
    passages: tuple[Span, ...]

    @property
    def reading(self) -> PageReading:
        return self.page.reading


@dataclass(frozen=True)
class _Verdict:
    """What one document's pages say together."""

    pages: tuple[Heard, ...]
    judgement: Judgement
    dominant_type: DocumentType | None
    presence: tuple[TypePresence, ...]
    joins: tuple[Join, ...]
    """Those on its pages, its first included."""

    @property
    def scores(self) -> Scores:
        return self.judgement.scores

    @property
    def ranking(self) -> list[DocumentType]:
        return self.judgement.ranking


def _verdict(pages: Sequence[Heard], joins: Iterable[Join]) -> _Verdict:
    judgement = pages[0].judgement if len(pages) == 1 else judge(pages)
    sources = [_Source(page, tuple(_passages(page.reading.page.text, page.reading.furniture))) for page in pages]
    numbers = {page.reading.page.page_num for page in pages}
    own = tuple(join for join in joins if join.page_num in numbers)
    dominant = judgement.ranking[0]
    if judgement.probabilities[dominant] >= pages[0].known.least and _has_words(pages):
        evidence = _chosen(sources, dominant, SNIPPETS[PresenceLevel.PRIMARY])
        if evidence:
            return _Verdict(
                tuple(pages), judgement, dominant, _composition(sources, judgement, dominant, evidence), own
            )
    return _Verdict(tuple(pages), judgement, None, _undecided(sources, judgement), own)


def _has_words(pages: Sequence[Heard]) -> bool:
    parts = (
        page.reading.page.text[start:end]
        for page in pages
        for start, end in _between(page.reading.furniture, len(page.reading.page.text))
    )
    return sum(len(part.split()) for part in parts) >= FEWEST_WORDS


def _composition(
    sources: Sequence[_Source], judgement: Judgement, dominant: DocumentType, evidence: tuple[Evidence, ...]
) -> tuple[TypePresence, ...]:
    scores = judgement.scores
    rest = {kind: _secondary(sources, scores, kind, dominant) for kind in DocumentType if kind is not dominant}
    shares = {kind: presence.segment_share for kind, presence in rest.items()}
    shares[dominant] = 1 - sum(shares.values())
    exact_shares = dict(zip(DocumentType, normalised([round(shares[kind], 4) for kind in DocumentType]), strict=True))
    rest[dominant] = TypePresence(
        document_type=dominant,
        presence_level=PresenceLevel.PRIMARY,
        confidence=_confidence(judgement, dominant),
        segment_share=exact_shares[dominant],
        top_evidence=evidence,
    )
    return tuple(rest[kind].model_copy(update={"segment_share": exact_shares[kind]}) for kind in DocumentType)


def _secondary(sources: Sequence[_Source], scores: Scores, kind: DocumentType, dominant: DocumentType) -> TypePresence:
    """The presence of a type that the document is not."""
    needed = MENTION_EVIDENCE_IN_OTHER if dominant is DocumentType.OTHER else MENTION_EVIDENCE
    if scores[kind] < needed:
        return _absent(kind)
    headings = {
        cue.term
        for source in sources
        for cue in source.reading.cues
        if cue.document_type is kind and cue.zone != "body" and cue.weight >= HEADING_WEIGHT
    }
    level, most = PresenceLevel.MENTION_ONLY, MENTION_SHARE
    if len(headings) >= EMBEDDED_HEADINGS and dominant is not DocumentType.OTHER:
        level, most = PresenceLevel.EMBEDDED_RAW, EMBEDDED_SHARE
    evidence = _chosen(sources, kind, SNIPPETS[level], least=MENTION_GAIN)
    if not evidence:
        return _absent(kind)
    part = scores[kind] / (scores[kind] + scores[dominant])
    return TypePresence(
        document_type=kind,
        presence_level=level,
        confidence=round(part, 2),
        segment_share=min(most, max(LEAST_SHARE, round(part / 2, 2))),
        top_evidence=evidence,
    )


def _undecided(sources: Sequence[_Source], judgement: Judgement) -> tuple[TypePresence, ...]:
    """Cannot tell: the most probable types, equal among each other; where nothing speaks, all five."""
    enough = max(judgement.probabilities.values()) / 2
    found = {kind: _chosen(sources, kind, 1) for kind in DocumentType if judgement.probabilities[kind] >= enough}
    candidates = [kind for kind, evidence in found.items() if evidence]
    equal = normalised([1.0 if kind in candidates or not candidates else 0.0 for kind in DocumentType])
    return tuple(
        TypePresence(
            document_type=kind,
            presence_level=PresenceLevel.MENTION_ONLY,
            confidence=_confidence(judgement, kind),
            segment_share=share,
            top_evidence=found[kind],
        )
        if kind in candidates
        else _absent(kind, share)
        for kind, share in zip(DocumentType, equal, strict=True)
    )


def _absent(kind: DocumentType, share: float = 0.0) -> TypePresence:
    return TypePresence(
        document_type=kind, presence_level=PresenceLevel.NO_EVIDENCE, confidence=0.0, segment_share=share
    )


def _confidence(judgement: Judgement, kind: DocumentType) -> float:
    """How probable the type is, calibrated; never certain."""
    return min(0.99, round(judgement.probabilities[kind], 2))


def _segment(index: int, verdict: _Verdict) -> Segment:
    pages = [page.reading.page.page_num for page in verdict.pages]
    return Segment(
        segment_index=index,
        start_page=pages[0],
        end_page=pages[-1],
        segment_page_count=len(pages),
        dominant_type=verdict.dominant_type,
        reasoning=_reasoning(verdict),
        segment_composition=verdict.presence,
    )


def _reasoning(verdict: _Verdict) -> str:
    first, second = verdict.ranking[:2]
    strongest = _strongest_terms(verdict, first)
    doubts = "".join(f" {_doubt(join)}." for join in verdict.joins if join.is_doubtful)
    if verdict.dominant_type is None:
        named = f" ({strongest})" if strongest else ""
        return f"Too little or too even evidence to tell: most speaks for {first.value}{named}, then {second.value}.{doubts}"
    against = _strongest_terms(verdict, second) if verdict.scores[second] else ""
    rest = f"; {second.value} is next ({against})" if against else "; nothing speaks for another type"
    return f"Strongest signs of {first.value}: {strongest}{rest}.{doubts}"


def _doubt(join: Join) -> str:
    if join.probability >= BEGINS:
        return f"Page {join.page_num} may go on from the page before ({1 - join.probability:.0%})"
    return f"Page {join.page_num} may begin another document ({join.probability:.0%})"


def _strongest_terms(verdict: _Verdict, kind: DocumentType) -> str:
    cues = [cue for page in verdict.pages for cue in page.reading.cues if cue.document_type is kind]
    cues.sort(key=lambda cue: -cue.weight)
    # Phrases are the lexicon's own words; what a pattern matched could be anything on the page.
    known = lexicon().group_by_id
    named = dict.fromkeys(
        f"{cue.term!r} ({cue.zone})" if cue.term in known[cue.entry].phrases else cue.entry for cue in cues
    )
    if not named:
        spoke = sorted((cue for page in verdict.pages for cue in learned_cues(page, kind)), key=lambda cue: -cue.weight)
        named = dict.fromkeys(f"{cue.term!r} (learned)" for cue in spoke)
    return ", ".join(islice(named, 4))


def _self_evaluation(documents: Sequence[_Verdict]) -> str:
    if not documents:
        return "There is no page."
    closest = min(range(len(documents)), key=lambda index: _sureness(documents[index]))
    first, second = documents[closest].ranking[:2]
    judgement = documents[closest].judgement
    return (
        f"Computed from lexicon {lexicon().version} and weights {documents[0].pages[0].known.version} without a language model; least sure "
        f"of segment {closest + 1}: {first.value} {_confidence(judgement, first):.0%}, {second.value} {_confidence(judgement, second):.0%}."
    )


def _sureness(verdict: _Verdict) -> float:
    return verdict.judgement.probabilities[verdict.ranking[0]]


# ------------------------------------------------------------------------------------------------- evidence


@dataclass(frozen=True)
class _Quote:
    page: Page
    start: int
    end: int
    cues: tuple[Cue, ...]

    def gain(self, known: set[str]) -> float:
        """What it adds to what was already quoted; a title or label alone is a weaker quote than a finding."""
        terms = {cue.term: cue.weight if cue.zone == "body" else cue.weight / 2 for cue in self.cues}
        return sum((weight for term, weight in terms.items() if term not in known), start=0.0)


def _chosen(sources: Sequence[_Source], kind: DocumentType, most: int, least: float = 0.0) -> tuple[Evidence, ...]:
    """The passages that say most for the type, each adding more than ``least`` in words not quoted before.

    Where the lexicon has nothing to quote, what the learned terms stand in.
    """
    quotes = [quote for source in sources for quote in _quotes(source, kind, source.reading.cues)]
    if not quotes:
        quotes = [quote for source in sources for quote in _quotes(source, kind, learned_cues(source.page, kind))]
    chosen: list[_Quote] = []
    known: set[str] = set()
    while len(chosen) < most:
        best = max(quotes, key=lambda quote: quote.gain(known), default=None)
        if best is None or best.gain(known) <= least:
            break
        chosen.append(best)
        known |= {cue.term for cue in best.cues}
    return tuple(_evidence(quote) for quote in chosen)


def _evidence(quote: _Quote) -> Evidence:
    text = quote.page.text
    by_weight = sorted(quote.cues, key=lambda cue: -cue.weight)
    anchors = dict.fromkeys(text[slice(*whole_words(text, cue.start, cue.end))] for cue in by_weight)
    return Evidence(
        snippet=text[slice(*whole_words(text, quote.start, quote.end))],
        page=quote.page.page_num,
        anchors_found=tuple(islice(anchors, ANCHORS)),
    )


def _quotes(source: _Source, kind: DocumentType, spoke: Iterable[Cue]) -> Iterator[_Quote]:
    reading, text = source.reading, source.reading.page.text
    cues = sorted(
        (
            cue
            for cue in spoke
            # A ruled line or a tick box shows a form, but is nothing that could be quoted.
            if cue.document_type is kind and any(map(str.isalnum, text[cue.start : cue.end]))
        ),
        key=_place,
    )
    if not cues:
        return
    for passage in source.passages:
        inside = _within(cues, passage)
        if not inside:
            continue
        start, end = _window(text, *passage, inside)
        inside = _within(inside, (start, end))
        if inside and not _PAGE_FURNITURE.search(text, start, end):
            yield _Quote(reading.page, start, end, tuple(inside))


def _within(cues: Sequence[Cue], span: Span) -> list[Cue]:
    """Those of the cues, which are in order of their places, that the span holds."""
    first, behind = bisect_left(cues, span[0], key=_place), bisect_left(cues, span[1], key=_place)
    return [cue for cue in cues[first:behind] if cue.end <= span[1]]


def _place(cue: Cue) -> int:
    return cue.start


def _passages(text: str, furniture: Sequence[Span]) -> Iterator[Span]:
    """Sentences, lines and table rows; a heading or one of less than three words takes the next one with it."""
    for start, end in _between(furniture, len(text)):
        held: Span | None = None
        for part in [*_parts(text, start, end), (end, end)]:
            if part[0] == end or _PAGE_FURNITURE.search(text, *part):
                if held and _is_long_enough(text[slice(*held)]):
                    yield held
                held = None
                continue
            whole = (held[0] if held else part[0], part[1])
            if _is_long_enough(text[slice(*whole)]) and (held or not _is_heading(text[slice(*whole)])):
                yield whole
                held = None
            else:
                held = whole


def _parts(text: str, start: int, end: int) -> Iterator[Span]:
    """What stands between the ends of passages, without the bullets before and the space behind."""
    cuts = [(start, start), *(match.span() for match in _PASSAGE_END.finditer(text, start, end)), (end, end)]
    for (_, part_start), (part_end, _) in pairwise(cuts):
        if found := _TELLING.search(text, part_start, part_end):
            yield found.start(), part_start + len(text[part_start:part_end].rstrip())


def _is_long_enough(passage: str) -> bool:
    return len(passage.split()) >= LEAST_WORDS


def _is_heading(passage: str) -> bool:
    return passage.endswith(":") or passage.isupper()


def _between(furniture: Sequence[Span], length: int) -> Iterator[Span]:
    cursor = 0
    for start, end in furniture:
        if cursor < start:
            yield cursor, start
        cursor = end
    if cursor < length:
        yield cursor, length


def _window(text: str, start: int, end: int, cues: Sequence[Cue]) -> Span:
    """The passage, or where it is too long for a quote the words around its weightiest cue."""
    words = [match.span() for match in _WORD.finditer(text, start, end)]
    if len(words) <= MOST_WORDS:
        return start, end
    centre = max(cues, key=lambda cue: cue.weight)
    at = next(index for index, (_, word_end) in enumerate(words) if word_end > centre.start)
    first = max(0, min(at - WINDOW_WORDS // 2, len(words) - WINDOW_WORDS))
    return words[first][0], words[first + WINDOW_WORDS - 1][1]


# ------------------------------------------------------------------------------------------- the whole document


def mixture_of(segments: Sequence[Segment]) -> tuple[MixtureEntry, ...]:
    """All types with their shares weighted by pages; every segment has all types."""
    if not segments:
        return ()
    total = sum(segment.segment_page_count for segment in segments)
    rows = {kind: [_presence_of(segment, kind) for segment in segments] for kind in DocumentType}
    weights = [segment.segment_page_count / total for segment in segments]
    shares = normalised(
        [sum(w * row.segment_share for w, row in zip(weights, rows[kind], strict=True)) for kind in DocumentType]
    )
    return tuple(
        MixtureEntry(
            document_type=kind,
            presence_level=min((row.presence_level for row in rows[kind]), key=_LEVEL_ORDER.index),
            confidence=max(row.confidence for row in rows[kind]),
            overall_share=share,
        )
        for kind, share in zip(DocumentType, shares, strict=True)
    )


def _presence_of(segment: Segment, kind: DocumentType) -> TypePresence:
    return next(row for row in segment.segment_composition if row.document_type is kind)


def dominant_overall(segments: Sequence[Segment], mixture: Sequence[MixtureEntry]) -> DocumentType | None:
    """The type of the largest share; None where the pages that could not be told are the largest part."""
    pages = dict.fromkeys((*DocumentType, None), 0)
    for segment in segments:
        pages[segment.dominant_type] += segment.segment_page_count
    if not segments or pages[None] >= max(pages[kind] for kind in DocumentType):
        return None
    return tie_winner(nearly_largest(mixture), segments)
