"""The primary classifier: which document types does the record hold, on which pages, by what evidence?

A language model is asked with the whole text. Offline, the same question is answered by the lexicon: each page is
read, pages are joined to documents, and each document takes the type that speaks loudest in all of its pages.
Whatever the text, that answer keeps the rules that V1 and V2 check.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from typing import Any

from evalkit.classification.answer import answer_schema, read_answer
from evalkit.classification.lexicon import Cue, PageReading, Span, clear_winner, lexicon, read_page
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
from evalkit.classification.v2_consistency import nearly_largest, tie_winner
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.grounding.locate import whole_words
from evalkit.llm.model import DocumentQuestion
from evalkit.llm.prompts import fenced, render

Scores = Mapping[DocumentType, float]

# Where documents begin. Signs are weighed in lexicon.toml; these are what the pages' order says.
START = 3.0
SIGNED_OFF = 1.0
FIRST_OF_COUNT = 2.5
NEXT_OF_COUNT = -4.0
LATER_OF_COUNT = -1.0
OTHER_RECORD = 1.5
SAME_RECORD = -3.0
OTHER_TYPE = 1.5
QUITE_OTHER_TYPE = 3.0
IN_MID_SENTENCE = -2.0
THIN = 1.0

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

#: What V3 calls header and footer: it identifies a page, it says nothing about a document's type.
_PAGE_FURNITURE = re.compile(
    r"(?i)\bpage\s*\d+\s*(?:of|/)\s*\d+|\bfax(?:\s*(?:no|number|#))?\.?\s*[:#(\d]|\bMRN\b|\bmedical record (?:no|num|#)"
    r"|\bdate of birth\b|\bbirth ?date\b|\bD\.?O\.?B\b"
)
# A ruled or dotted line ends a passage: what stands on both sides of a blank belongs to two fields.
_TITLE = "".join(rf"(?<!\b{title}\.)" for title in ("Mr", "Mrs", "Ms", "Dr", "Prof", "St", "No", "vs"))
_PASSAGE_END = re.compile(rf"(?<=[.!?]){_TITLE}\s+(?=[A-Z0-9\"(\[])|[\n\t]+|[_.]{{4,}}")
_WORD = re.compile(r"\S+")
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


def classify(bundle: DocumentBundle, pages: Iterable[Page] | None = None) -> ClassificationOutput:
    """The classification by the lexicon alone, of all pages or of these: deterministic, without any model."""
    readings = [read_page(page) for page in (bundle.pages if pages is None else pages)]
    documents = [_verdict(readings[start:end]) for start, end in page_runs(readings)]
    segments = tuple(_segment(index, document) for index, document in enumerate(documents, start=1))
    mixture = mixture_of(segments)
    return ClassificationOutput(
        dominant_type_overall=dominant_overall(segments, mixture),
        number_of_segments=len(segments),
        segments=segments,
        document_mixture=mixture,
        vendor_signals=tuple(dict.fromkeys(name for reading in readings for name in reading.vendors)),
        self_evaluation=_self_evaluation(documents),
    )


# -------------------------------------------------------------------------------------------- pages to documents


def page_runs(readings: Sequence[PageReading]) -> list[tuple[int, int]]:
    """The documents as index ranges, end exclusive: a new one begins where enough speaks for it."""
    if not readings:
        return []
    starts = [0]
    running = _no_scores()
    last: PageReading | None = None  # the last page that says anything; blank pages interrupt no document
    for index, reading in enumerate(readings):
        if _is_thin(reading):
            continue
        if last is not None and start_evidence(last, reading, clear_winner(running), len(readings)) >= START:
            starts.append(index)
            running = _no_scores()
        running = _added(running, reading.scores)
        last = reading
    return list(zip(starts, [*starts[1:], len(readings)], strict=True))


def start_evidence(last: PageReading, reading: PageReading, running: DocumentType | None, total_pages: int) -> float:
    """How much speaks for a new document on this page, after ``last`` of a document that is of type ``running``."""
    known = {sign.line for sign in last.start_signs} | set(last.top_lines)
    evidence = sum(sign.weight for sign in reading.start_signs if sign.line not in known)
    evidence += SIGNED_OFF if last.is_signed_off else 0.0
    evidence += _count_evidence(last, reading, total_pages)
    if last.record_numbers and reading.record_numbers:
        evidence += SAME_RECORD if last.record_numbers & reading.record_numbers else OTHER_RECORD
    evidence += _switch_evidence(reading, running)
    return evidence + (IN_MID_SENTENCE if _goes_on(reading) else 0.0)


def _count_evidence(last: PageReading, reading: PageReading, total_pages: int) -> float:
    """Page 1 of 3 begins a document, page 2 of 3 after page 1 of 3 goes on; the packet's own count says nothing."""
    counts = [count for count in reading.numbering if count != (reading.page.page_num, total_pages)]
    if any(number == 1 for number, _ in counts):
        return FIRST_OF_COUNT
    if any((number - 1, of) in last.numbering for number, of in counts):
        return NEXT_OF_COUNT
    return LATER_OF_COUNT if counts else 0.0


def _switch_evidence(reading: PageReading, running: DocumentType | None) -> float:
    opinion = reading.opinion
    if opinion is None or running is None or opinion is running:
        return 0.0
    return QUITE_OTHER_TYPE if reading.scores[running] * 3 <= reading.scores[opinion] else OTHER_TYPE


def _goes_on(reading: PageReading) -> bool:
    """The page begins in the middle of a sentence."""
    return bool(reading.top_lines) and reading.top_lines[0][0].islower()


def _is_thin(reading: PageReading) -> bool:
    """Hardly anything is said: such a page belongs to what is around it."""
    return sum(reading.scores.values()) < THIN and sum(sign.weight for sign in reading.start_signs) < START


def _no_scores() -> Scores:
    return dict.fromkeys(DocumentType, 0.0)


def _added(scores: Scores, more: Scores) -> Scores:
    return {kind: scores[kind] + more[kind] for kind in DocumentType}


# ---------------------------------------------------------------------------------------------- one document


@dataclass(frozen=True)
class _Source:
    """A page that evidence is taken from."""

    reading: PageReading
    passages: tuple[Span, ...]


@dataclass(frozen=True)
class _Verdict:
    """What one document's pages say together."""

    readings: tuple[PageReading, ...]
    scores: Scores
    dominant_type: DocumentType | None
    presence: tuple[TypePresence, ...]

    @property
    def ranking(self) -> list[DocumentType]:
        return sorted(DocumentType, key=lambda kind: -self.scores[kind])


def _verdict(readings: Sequence[PageReading]) -> _Verdict:
    scores = _no_scores()
    for reading in readings:
        scores = _added(scores, reading.scores)
    sources = [_Source(reading, tuple(_passages(reading.page.text, reading.furniture))) for reading in readings]
    dominant = clear_winner(scores)
    if dominant is not None:
        evidence = _chosen(sources, dominant, SNIPPETS[PresenceLevel.PRIMARY])
        if evidence:
            return _Verdict(tuple(readings), scores, dominant, _composition(sources, scores, dominant, evidence))
    return _Verdict(tuple(readings), scores, None, _undecided(sources, scores))


def _composition(
    sources: Sequence[_Source], scores: Scores, dominant: DocumentType, evidence: tuple[Evidence, ...]
) -> tuple[TypePresence, ...]:
    rest = {kind: _secondary(sources, scores, kind, dominant) for kind in DocumentType if kind is not dominant}
    shares = {kind: presence.segment_share for kind, presence in rest.items()}
    shares[dominant] = 1 - sum(shares.values())
    exact_shares = dict(zip(DocumentType, normalised([round(shares[kind], 4) for kind in DocumentType]), strict=True))
    rest[dominant] = TypePresence(
        document_type=dominant,
        presence_level=PresenceLevel.PRIMARY,
        confidence=_confidence(scores, dominant),
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


def _undecided(sources: Sequence[_Source], scores: Scores) -> tuple[TypePresence, ...]:
    """Cannot tell: the types that most speaks for, equal among each other; where nothing speaks, all five."""
    enough = max(scores.values()) / 2
    found = {kind: _chosen(sources, kind, 1) for kind in DocumentType if scores[kind] >= enough > 0}
    candidates = [kind for kind, evidence in found.items() if evidence]
    equal = normalised([1.0 if kind in candidates or not candidates else 0.0 for kind in DocumentType])
    return tuple(
        TypePresence(
            document_type=kind,
            presence_level=PresenceLevel.MENTION_ONLY,
            confidence=round(_confidence(scores, kind) / 3, 2),
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


def _confidence(scores: Scores, kind: DocumentType) -> float:
    """More for a longer lead over the next type, more for more evidence, never certain."""
    best_other = max(scores[other] for other in DocumentType if other is not kind)
    lead = scores[kind] / (scores[kind] + best_other) if scores[kind] else 0.0
    return round(min(0.99, math.sqrt(lead) * scores[kind] / (scores[kind] + 2)), 2)


def _segment(index: int, verdict: _Verdict) -> Segment:
    pages = [reading.page.page_num for reading in verdict.readings]
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
    if verdict.dominant_type is None:
        named = f" ({strongest})" if strongest else ""
        return f"Too little or too even evidence to tell: most speaks for {first.value}{named}, then {second.value}."
    against = _strongest_terms(verdict, second)
    rest = f"; {second.value} is next ({against})" if against else "; nothing speaks for another type"
    return f"Strongest signs of {first.value}: {strongest}{rest}."


def _strongest_terms(verdict: _Verdict, kind: DocumentType) -> str:
    cues = [cue for reading in verdict.readings for cue in reading.cues if cue.document_type is kind]
    cues.sort(key=lambda cue: -cue.weight)
    # Phrases are the lexicon's own words; what a pattern matched could be anything on the page.
    known = lexicon().group_by_id
    named = dict.fromkeys(
        f"{cue.term!r} ({cue.zone})" if cue.term in known[cue.entry].phrases else cue.entry for cue in cues
    )
    return ", ".join(islice(named, 4))


def _self_evaluation(documents: Sequence[_Verdict]) -> str:
    if not documents:
        return "There is no page."
    closest = min(range(len(documents)), key=lambda index: _lead(documents[index]))
    first, second = documents[closest].ranking[:2]
    ahead, behind = documents[closest].scores[first], documents[closest].scores[second]
    return (
        f"Computed from lexicon {lexicon().version} without a language model; least sure of segment {closest + 1}: "
        f"{first.value} {ahead:.1f}, {second.value} {behind:.1f}."
    )


def _lead(verdict: _Verdict) -> float:
    first, second = verdict.ranking[:2]
    return verdict.scores[first] / (verdict.scores[second] + 1)


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
    """The passages that say most for the type, each adding more than ``least`` in words not quoted before."""
    quotes = [quote for source in sources for quote in _quotes(source, kind)]
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


def _quotes(source: _Source, kind: DocumentType) -> Iterator[_Quote]:
    reading, text = source.reading, source.reading.page.text
    cues = [
        cue
        for cue in reading.cues
        # A ruled line or a tick box shows a form, but is nothing that could be quoted.
        if cue.document_type is kind and any(map(str.isalnum, text[cue.start : cue.end]))
    ]
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


def _within(cues: Iterable[Cue], span: Span) -> list[Cue]:
    return [cue for cue in cues if span[0] <= cue.start and cue.end <= span[1]]


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
        words = [match.span() for match in _WORD.finditer(text, part_start, part_end)]
        telling = next((word for word in words if any(map(str.isalnum, text[slice(*word)]))), None)
        if telling:
            yield telling[0], words[-1][1]


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
