"""Primary classifier: the documents of a file, with their types and evidence.

A language model is asked with the whole text. Offline, the built-in model answers the same question: it applies the
``lexicon`` to each page, divides the pages into documents (``page_segmentation``), and gives each document its most
probable type (``type_scoring``), or none if that is not probable enough. Its answers always satisfy V1's and V2's rules.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from evalkit.classification.classifier_answer import (
    ClassificationAnswer,
    build_answer_schema,
    parse_and_complete_answer,
)
from evalkit.classification.findings import render_judging_guide
from evalkit.classification.offline.lexicon import (
    CueMatch,
    Span,
    describe_cue,
    find_body_spans,
    load_lexicon,
)
from evalkit.classification.offline.model_weights import EmbeddedModelWeights
from evalkit.classification.offline.page_segmentation import BEGINNING_PROBABILITY, PageTransition, segment_pages
from evalkit.classification.offline.type_scoring import (
    ClassificationScores,
    ScoredPage,
    combine_page_scores,
    read_page_for_scoring,
    select_term_cues,
)
from evalkit.classification.offline.unlearned_types import find_unlearned_type
from evalkit.classification.schema import (
    PATTERNS,
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
    TypePresence,
    compute_mixture,
    normalise_shares,
)
from evalkit.classification.v2_consistency import (
    DOUBTS_KEY,
    SUMMARY_KEY,
    choose_overall_type,
)
from evalkit.core.document_cache import cache_by_identity
from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.furniture import has_page_furniture
from evalkit.documents.identity.file_persons import has_patient_identifier
from evalkit.grounding.locate import find_critical_doubtful_words, widen_to_whole_words
from evalkit.grounding.omitted_context import find_omitted_context
from evalkit.llm.model import DocumentQuestion
from evalkit.llm.prompts import describe_pictures, fence_document, fill_prompt_template

if TYPE_CHECKING:
    from evalkit.documents.page_pictures import PageImage

ScoreByType = Mapping[DocumentType, float]

# Minimum scores at which a type other than the dominant one counts as mentioned. Forms name every kind of record, so the
# minimum for segments of type Other is higher.
MIN_MENTION_SCORE = 2.0
MIN_MENTION_GAIN = 1.0
MIN_MENTION_SCORE_IN_OTHER = 6.0
#: Id of the lexicon's group of administrative words (``administrative.toml``).
ADMINISTRATIVE_GROUP = "other-administrative"
#: A type is named only if it is at least this many times as probable as the next.
MIN_TYPE_RATIO = 1.25
MIN_EMBEDDED_HEADINGS = 3
MIN_HEADING_WEIGHT = 3.0
MIN_SECONDARY_SHARE = 0.01
MAX_MENTION_SHARE = 0.05
MAX_EMBEDDED_SHARE = 0.15


MIN_QUOTE_WORDS, MAX_QUOTE_WORDS, QUOTE_WINDOW_WORDS = 3, 60, 40
MAX_SNIPPETS_BY_LEVEL = {PresenceLevel.PRIMARY: 3, PresenceLevel.EMBEDDED_RAW: 2, PresenceLevel.MENTION_ONLY: 1}
MAX_ANCHORS = 5
#: Minimum number of words of a document with a type; a shorter document is a divider or a stamp.
MIN_DOCUMENT_WORDS = 8


class ClassifierQuestion(DocumentQuestion[ClassificationOutput]):
    """Question to a model: which documents, of which types, do these pages contain?"""

    role = "classifier"
    answer_type = ClassificationOutput
    requested_type = ClassificationAnswer
    measured_field = "document_type"

    def __init__(
        self,
        bundle: DocumentBundle,
        pages: tuple[int, int] | None = None,
        page_images: Sequence[PageImage] = (),
    ) -> None:
        """Ask about the pages from first to last (``pages``); None: all pages.

        ``page_images``: of the document; those of other pages are left out.
        """
        self.bundle = bundle
        self._first_page, self._last_page = pages or (1, bundle.total_pages)
        shown_images = [image for image in page_images if self._first_page <= image.page_number <= self._last_page]
        self.images = tuple(image.png for image in shown_images)
        self.pictured_pages = tuple(image.page_number for image in shown_images)

    def render_prompt(self) -> str:
        """Render the prompt with document, type definitions and rules of the answer."""
        prompt = fill_prompt_template(
            "primary_classifier_agent_prompt",
            document=fence_document(self.bundle, self.bundle.iter_pages(self._first_page, self._last_page)),
            first_page=str(self._first_page),
            last_page=str(self._last_page),
            guide=render_judging_guide(),
        )
        return prompt + describe_pictures("Page_Pictures", self.pictured_pages)

    def offline(self) -> ClassificationOutput:
        """Answer by the built-in model."""
        return classify_by_embedded_model(self.bundle, self.bundle.iter_pages(self._first_page, self._last_page))

    def get_answer_schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of the parts of the answer that a model must supply."""
        return build_answer_schema(has_pictures=bool(self.images))

    def parse_answer(self, text: str) -> ClassificationOutput:
        """Parse a model's answer, cut out its quotes, and compute counts and shares."""
        return parse_and_complete_answer(text, self.bundle)


def classify_by_embedded_model(
    bundle: DocumentBundle, pages: Iterable[Page] | None = None, model_weights: EmbeddedModelWeights | None = None
) -> ClassificationOutput:
    """Classify pages by the built-in model, deterministically and offline.

    ``pages`` None: all pages. ``model_weights`` None: the weights in use.
    """
    scored_pages = [
        read_page_for_scoring(page, model_weights=model_weights) for page in (bundle.pages if pages is None else pages)
    ]
    segmentation = segment_pages(scored_pages)
    documents = [
        _score_document(scored_pages[start:end], segmentation.transitions)
        for start, end in segmentation.document_index_ranges
    ]
    segments = tuple(_build_segment(index, document) for index, document in enumerate(documents, start=1))
    mixture = compute_mixture(segments)
    return ClassificationOutput(
        dominant_type_overall=choose_overall_type(segments, mixture),
        number_of_segments=len(segments),
        segments=segments,
        document_mixture=mixture,
        vendor_signals=tuple(dict.fromkeys(name for page in scored_pages for name in page.lexicon_reading.vendors)),
        self_evaluation={
            SUMMARY_KEY: _compose_self_evaluation(documents),
            DOUBTS_KEY: [
                {"page": join.page_num, "begins": round(join.probability, 2)}
                for join in segmentation.transitions
                if join.is_doubtful
            ],
        },
    )


# ---------------------------------------------------------------------------------------------- one document


@dataclass(frozen=True)
class _ScoredDocument:
    pages: tuple[ScoredPage, ...]
    type_scores: ClassificationScores
    dominant_type: DocumentType | None
    composition: tuple[TypePresence, ...]
    transitions: tuple[PageTransition, ...]
    """Page breaks before the document's pages, including the break before the first."""
    unlearned_doubt: str | None
    """Why the document may be of a type that the model has not learned; None if it may not."""


def _score_document(pages: Sequence[ScoredPage], transitions: Iterable[PageTransition]) -> _ScoredDocument:
    type_scores = pages[0].type_scores if len(pages) == 1 else combine_page_scores(pages)
    page_numbers = {page.lexicon_reading.page.page_num for page in pages}
    own_joins = tuple(join for join in transitions if join.page_num in page_numbers)
    likely_type, next_type = type_scores.types_by_probability[:2]
    evidence: tuple[Evidence, ...] = ()
    min_probability = max(pages[0].model_weights.min_probability, MIN_TYPE_RATIO * type_scores.probabilities[next_type])
    unlearned_doubt = find_unlearned_type([page.lexicon_reading for page in pages])
    is_probable = type_scores.probabilities[likely_type] >= min_probability
    if is_probable and unlearned_doubt is None and _has_enough_words(pages):
        evidence = _choose_evidence(pages, likely_type, MAX_SNIPPETS_BY_LEVEL[PresenceLevel.PRIMARY])
    composition = (
        _build_decided_presences(pages, type_scores, likely_type, evidence)
        if evidence
        else _build_undecided_presences(pages, type_scores)
    )
    return _ScoredDocument(
        tuple(pages), type_scores, likely_type if evidence else None, composition, own_joins, unlearned_doubt
    )


def _has_enough_words(pages: Sequence[ScoredPage]) -> bool:
    body_texts = (
        page.lexicon_reading.page.text[start:end]
        for page in pages
        for start, end in find_body_spans(page.lexicon_reading.page.text, page.lexicon_reading.furniture_spans)
    )
    return sum(len(body_text.split()) for body_text in body_texts) >= MIN_DOCUMENT_WORDS


def _build_decided_presences(
    pages: Sequence[ScoredPage],
    type_scores: ClassificationScores,
    dominant_type: DocumentType,
    evidence: tuple[Evidence, ...],
) -> tuple[TypePresence, ...]:
    lexicon_scores = type_scores.lexicon_scores
    presences = {
        kind: _build_secondary_presence(pages, lexicon_scores, kind, dominant_type)
        for kind in DocumentType
        if kind is not dominant_type
    }
    shares = {kind: presence.segment_share for kind, presence in presences.items()}
    shares[dominant_type] = 1 - sum(shares.values())
    exact_shares = dict(
        zip(DocumentType, normalise_shares([round(shares[kind], 4) for kind in DocumentType]), strict=True)
    )
    presences[dominant_type] = TypePresence(
        document_type=dominant_type,
        presence_level=PresenceLevel.PRIMARY,
        confidence=_compute_confidence(type_scores, dominant_type),
        segment_share=exact_shares[dominant_type],
        top_evidence=evidence,
    )
    return tuple(presences[kind].model_copy(update={"segment_share": exact_shares[kind]}) for kind in DocumentType)


def _build_secondary_presence(
    pages: Sequence[ScoredPage],
    lexicon_scores: ScoreByType,
    kind: DocumentType,
    dominant_type: DocumentType,
) -> TypePresence:
    is_other = dominant_type is DocumentType.OTHER
    min_score = MIN_MENTION_SCORE_IN_OTHER if is_other else MIN_MENTION_SCORE
    # a form names the reports that it orders or releases, but contains no text of them; of a site's own type, the lexicon
    # has no word
    is_named_by_form = is_other and any(
        cue.group_id == ADMINISTRATIVE_GROUP for page in pages for cue in page.lexicon_reading.cues
    )
    if lexicon_scores.get(kind, 0.0) < min_score or is_named_by_form:
        return _build_absent_presence(kind)
    headings = {
        cue.term
        for page in pages
        for cue in page.lexicon_reading.cues
        if cue.document_type is kind and cue.zone != "body" and cue.weight >= MIN_HEADING_WEIGHT
    }
    level, max_share = PresenceLevel.MENTION_ONLY, MAX_MENTION_SHARE
    if len(headings) >= MIN_EMBEDDED_HEADINGS and dominant_type is not DocumentType.OTHER:
        level, max_share = PresenceLevel.EMBEDDED_RAW, MAX_EMBEDDED_SHARE
    evidence = _choose_evidence(pages, kind, MAX_SNIPPETS_BY_LEVEL[level], min_gain=MIN_MENTION_GAIN)
    if not evidence:
        return _build_absent_presence(kind)
    score_share = lexicon_scores[kind] / (lexicon_scores[kind] + lexicon_scores[dominant_type])
    return TypePresence(
        document_type=kind,
        presence_level=level,
        confidence=round(score_share, 2),
        segment_share=min(max_share, max(MIN_SECONDARY_SHARE, round(score_share / 2, 2))),
        top_evidence=evidence,
    )


def _build_undecided_presences(
    pages: Sequence[ScoredPage], type_scores: ClassificationScores
) -> tuple[TypePresence, ...]:
    """Build presences for a document of unknown type: equal shares of likely types.

    The types with at least half of the highest probability and a quote; all types if none has a quote.
    """
    min_probability = max(type_scores.probabilities.values()) / 2
    evidence_by_type = {
        kind: _choose_evidence(pages, kind, 1)
        for kind, probability in type_scores.probabilities.items()
        if probability >= min_probability
    }
    candidates = [kind for kind, evidence in evidence_by_type.items() if evidence]
    equal_shares = normalise_shares([1.0 if kind in candidates or not candidates else 0.0 for kind in DocumentType])
    return tuple(
        TypePresence(
            document_type=kind,
            presence_level=PresenceLevel.MENTION_ONLY,
            confidence=_compute_confidence(type_scores, kind),
            segment_share=share,
            top_evidence=evidence_by_type[kind],
        )
        if kind in candidates
        else _build_absent_presence(kind, share)
        for kind, share in zip(DocumentType, equal_shares, strict=True)
    )


def _build_absent_presence(kind: DocumentType, share: float = 0.0) -> TypePresence:
    return TypePresence(
        document_type=kind, presence_level=PresenceLevel.NO_EVIDENCE, confidence=0.0, segment_share=share
    )


def _compute_confidence(type_scores: ClassificationScores, kind: DocumentType) -> float:
    """Return the calibrated probability of the type, at most 0.99."""
    return min(0.99, round(type_scores.probabilities[kind], 2))


def _build_segment(segment_index: int, document: _ScoredDocument) -> Segment:
    page_numbers = [page.lexicon_reading.page.page_num for page in document.pages]
    return Segment(
        segment_index=segment_index,
        start_page=page_numbers[0],
        end_page=page_numbers[-1],
        segment_page_count=len(page_numbers),
        dominant_type=document.dominant_type,
        reasoning=_compose_reasoning(document),
        segment_composition=document.composition,
    )


def _compose_reasoning(document: _ScoredDocument) -> str:
    first_type, second_type = document.type_scores.types_by_probability[:2]
    strongest_terms = _format_strongest_terms(document, first_type)
    doubts = "".join(f" {_describe_doubtful_transition(join)}." for join in document.transitions if join.is_doubtful)
    if document.dominant_type is None and document.unlearned_doubt:
        return f"Perhaps of a type that the embedded model has not learned: {document.unlearned_doubt}.{doubts}"
    if document.dominant_type is None:
        terms_text = f" ({strongest_terms})" if strongest_terms else ""
        return f"Too little or too even evidence to tell: most speaks for {first_type.value}{terms_text}, then {second_type.value}.{doubts}"
    second_terms = (
        _format_strongest_terms(document, second_type) if document.type_scores.lexicon_scores[second_type] else ""
    )
    second_text = (
        f"; {second_type.value} is next ({second_terms})" if second_terms else "; nothing speaks for another type"
    )
    return f"Strongest signs of {first_type.value}: {strongest_terms}{second_text}.{doubts}"


def _describe_doubtful_transition(join: PageTransition) -> str:
    if join.probability >= BEGINNING_PROBABILITY:
        return f"Page {join.page_num} may go on from the page before ({1 - join.probability:.0%})"
    return f"Page {join.page_num} may begin another document ({join.probability:.0%})"


def _format_strongest_terms(document: _ScoredDocument, kind: DocumentType) -> str:
    cues = [cue for page in document.pages for cue in page.lexicon_reading.cues if cue.document_type is kind]
    cues.sort(key=lambda cue: -cue.weight)
    labels = dict.fromkeys(map(describe_cue, cues))
    if not labels:
        term_cues = sorted(
            (cue for page in document.pages for cue in select_term_cues(page, kind)), key=lambda cue: -cue.weight
        )
        labels = dict.fromkeys(f"{cue.term!r} (learned)" for cue in term_cues)
    return ", ".join(islice(labels, 4))


def _compose_self_evaluation(documents: Sequence[_ScoredDocument]) -> str:
    if not documents:
        return "There is no page."
    least_sure_index = min(
        range(len(documents)), key=lambda index: max(documents[index].type_scores.probabilities.values())
    )
    type_scores = documents[least_sure_index].type_scores
    first_type, second_type = type_scores.types_by_probability[:2]
    return (
        f"Computed from lexicon {load_lexicon().version} and weights {documents[0].pages[0].model_weights.version} without a language model; least sure "
        f"of segment {least_sure_index + 1}: {first_type.value} {_compute_confidence(type_scores, first_type):.0%}, {second_type.value} {_compute_confidence(type_scores, second_type):.0%}."
    )


# ------------------------------------------------------------------------------------------------- evidence


@dataclass(frozen=True, eq=False)
class _QuoteCandidate:
    page: Page
    start: int
    end: int
    cues: tuple[CueMatch, ...]

    def sum_new_term_weights(self, quoted_terms: set[str]) -> float:
        """Sum the weights of the candidate's terms that are not in ``quoted_terms``.

        A term in a title or label counts half.
        """
        return sum((weight for term, weight in self._weight_by_term.items() if term not in quoted_terms), start=0.0)

    @cached_property
    def _weight_by_term(self) -> dict[str, float]:
        return {cue.term: cue.weight if cue.zone == "body" else cue.weight / 2 for cue in self.cues}

    @cached_property
    def is_identifying(self) -> bool:
        """True if the passage has facts of the patient, or page furniture."""
        words = self.page.text[slice(*widen_to_whole_words(self.page.text, self.start, self.end))]
        return has_page_furniture(self.page.text[self.start : self.end]) or has_patient_identifier(words, self.page)

    def is_doubtful(self) -> bool:
        """Return True if the sentence reverses the passage, or OCR may have misread it."""
        start, end = widen_to_whole_words(self.page.text, self.start, self.end)
        return bool(find_omitted_context(self.page.text, self.start, self.end)) or any(
            find_critical_doubtful_words(self.page, start, end)
        )


def _choose_evidence(
    pages: Sequence[ScoredPage], kind: DocumentType, max_quotes: int, min_gain: float = 0.0
) -> tuple[Evidence, ...]:
    """Choose at most ``max_quotes`` passages that speak most for the type.

    Each passage adds terms with a total weight above ``min_gain``. Passages with learned terms are used if no passage has a
    match of the lexicon. A passage whose sentence reverses its meaning, or with words that OCR may have misread, is quoted
    only if there is no other.
    """
    quotes = [quote for page in pages for quote in _find_quote_candidates(page, kind, page.lexicon_reading.cues)]
    if all(quote.is_identifying for quote in quotes):
        quotes = [quote for page in pages for quote in _find_quote_candidates(page, kind, select_term_cues(page, kind))]
    chosen_quotes: list[_QuoteCandidate] = []
    doubtful_quotes: list[_QuoteCandidate] = []
    quoted_terms: set[str] = set()
    while quotes and len(chosen_quotes) < max_quotes:
        best_quote = max(quotes, key=lambda quote: quote.sum_new_term_weights(quoted_terms))
        if best_quote.sum_new_term_weights(quoted_terms) <= min_gain:
            break
        quotes.remove(best_quote)
        if best_quote.is_identifying:
            continue
        if best_quote.is_doubtful():
            doubtful_quotes.append(best_quote)
            continue
        chosen_quotes.append(best_quote)
        quoted_terms |= {cue.term for cue in best_quote.cues}
    return tuple(_build_evidence(quote) for quote in chosen_quotes or doubtful_quotes[:1])


def _build_evidence(quote: _QuoteCandidate) -> Evidence:
    text = quote.page.text
    sorted_cues = sorted(quote.cues, key=lambda cue: -cue.weight)
    anchors = dict.fromkeys(text[slice(*widen_to_whole_words(text, cue.start, cue.end))] for cue in sorted_cues)
    return Evidence(
        snippet=text[slice(*widen_to_whole_words(text, quote.start, quote.end))],
        page=quote.page.page_num,
        anchors_found=tuple(islice(anchors, MAX_ANCHORS)),
    )


def _find_quote_candidates(
    page: ScoredPage, kind: DocumentType, candidate_cues: Iterable[CueMatch]
) -> Iterator[_QuoteCandidate]:
    reading, text = page.lexicon_reading, page.lexicon_reading.page.text
    cues = sorted(
        (
            cue
            for cue in candidate_cues
            # a ruled line or a tick box is a sign of a form, but has no words to quote
            if cue.document_type is kind and any(map(str.isalnum, text[cue.start : cue.end]))
        ),
        key=_get_cue_start,
    )
    if not cues:
        return
    for passage in _list_passages(page):
        passage_cues = _select_cues_in_span(cues, passage)
        if not passage_cues:
            continue
        start, end = _fit_quote_window(text, *passage, passage_cues)
        passage_cues = _select_cues_in_span(passage_cues, (start, end))
        if passage_cues:
            yield _QuoteCandidate(reading.page, start, end, tuple(passage_cues))


def _select_cues_in_span(cues: Sequence[CueMatch], span: Span) -> list[CueMatch]:
    """Select the matches that lie inside the span; ``cues`` are sorted by start."""
    start_index, end_index = (
        bisect_left(cues, span[0], key=_get_cue_start),
        bisect_left(cues, span[1], key=_get_cue_start),
    )
    return [cue for cue in cues[start_index:end_index] if cue.end <= span[1]]


def _get_cue_start(cue: CueMatch) -> int:
    return cue.start


@cache_by_identity  # each type is searched for in the same passages
def _list_passages(page: ScoredPage) -> tuple[Span, ...]:
    return tuple(_split_passages(page.lexicon_reading.page.text, page.lexicon_reading.furniture_spans))


def _split_passages(text: str, furniture_spans: Sequence[Span]) -> Iterator[Span]:
    """Split a page's text into sentences, lines and table rows that can be quoted.

    A heading, or a part of less than ``MIN_QUOTE_WORDS`` words, is joined with the next part.
    """
    for start, end in find_body_spans(text, furniture_spans):
        pending_span: Span | None = None
        for part_span in [*_split_at_passage_ends(text, start, end), (end, end)]:
            if part_span[0] == end or has_page_furniture(text[slice(*part_span)]):
                if pending_span and _is_long_enough(text[slice(*pending_span)]):
                    yield pending_span
                pending_span = None
                continue
            combined_span = (pending_span[0] if pending_span else part_span[0], part_span[1])
            passage = text[slice(*combined_span)]
            is_heading = passage.endswith(":") or passage.isupper()
            if _is_long_enough(passage) and (pending_span or not is_heading):
                yield combined_span
                pending_span = None
            else:
                pending_span = combined_span


def _split_at_passage_ends(text: str, start: int, end: int) -> Iterator[Span]:
    cut_spans = [
        (start, start),
        *(match.span() for match in PATTERNS["passage_end"].finditer(text, start, end)),
        (end, end),
    ]
    for (_, part_start), (part_end, _) in pairwise(cut_spans):
        if first_word := PATTERNS["first_word"].search(text, part_start, part_end):
            yield first_word.start(), part_start + len(text[part_start:part_end].rstrip())


def _is_long_enough(passage: str) -> bool:
    return len(passage.split()) >= MIN_QUOTE_WORDS


def _fit_quote_window(text: str, start: int, end: int, cues: Sequence[CueMatch]) -> Span:
    word_spans = [match.span() for match in PATTERNS["printed_word"].finditer(text, start, end)]
    if len(word_spans) <= MAX_QUOTE_WORDS:
        return start, end
    heaviest_cue = max(cues, key=lambda cue: cue.weight)
    centre_index = next(index for index, (_, word_end) in enumerate(word_spans) if word_end > heaviest_cue.start)
    first_index = max(0, min(centre_index - QUOTE_WINDOW_WORDS // 2, len(word_spans) - QUOTE_WINDOW_WORDS))
    return word_spans[first_index][0], word_spans[first_index + QUOTE_WINDOW_WORDS - 1][1]
