"""Lexicon: words typical of each of the five types, and matches on a page.

``lexicon.toml`` is loaded, checked and applied to one page at a time. The result says which words were found where and
what they weigh, so that a person can see the reasons; the whole document is judged elsewhere. Headers and footers
give no evidence of a type.
"""

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, chain, islice, pairwise
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from evalkit.classification.schema import DocumentType
from evalkit.classification.vendors import (
    find_vendor_mentions,
    is_in_letterhead,
    is_in_performing_lab_line,
    load_vendors,
)
from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import group_by, group_pairs
from evalkit.core.package_tables import PatternTable, load_package_table
from evalkit.core.records import StrictRecord, describe_first_row_error
from evalkit.document_types import FIVE_TYPES
from evalkit.documents.bundle import Page
from evalkit.documents.furniture import is_stamp_line
from evalkit.errors import UsageError

TextZone = Literal["title", "heading", "body"]
PagePlace = Literal["top", "end"]
Span = tuple[int, int]
TokenSpan = tuple[str, int, int]
V = TypeVar("V")


_WeightAboveZero = Annotated[float, Field(strict=True, gt=0)]


def _normalise_phrase(phrase: str) -> str:
    words = [word for word, _, _ in _tokenise(phrase)]
    if not words:
        raise ValueError(f"the phrase {phrase!r} contains no word")
    return " ".join(words)


def _check_unique_phrases(phrases: tuple[str, ...]) -> tuple[str, ...]:
    if repeated := [phrase for phrase in phrases if phrases.count(phrase) > 1]:
        raise ValueError(f"the phrase {repeated[0]!r} appears twice")
    return phrases


def _compile_pattern(expression: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(rewrite_word_start_for_speed(expression), re.MULTILINE)
    except (re.error, TypeError) as error:
        raise ValueError(f"the pattern {expression!r} is not a valid regular expression") from error
    if pattern.search(""):
        raise ValueError(f"the pattern {expression!r} matches empty text")
    return pattern


_Phrases = Annotated[
    tuple[Annotated[str, AfterValidator(_normalise_phrase)], ...], AfterValidator(_check_unique_phrases)
]
_Patterns = tuple[Annotated[re.Pattern[str], BeforeValidator(_compile_pattern)], ...]


class CueGroup(StrictRecord):
    """Entry of the lexicon: words and patterns typical of one type, with a weight."""

    id: str
    document_type: DocumentType = Field(alias="type")
    zone: TextZone
    weight: _WeightAboveZero
    max_page_weight: _WeightAboveZero = Field(default=math.inf, alias="limit")
    """Maximum that the group can add to the score of a page."""
    phrases: _Phrases = ()
    symbols: tuple[Annotated[str, Field(pattern=r"^[^\W_]+(?:\(s\))?$")], ...] = ()
    """Words that are matched with their case, such as genes."""
    patterns: _Patterns = ()

    @model_validator(mode="before")
    @classmethod
    def _insert_listed_patterns(cls, row: Any) -> Any:
        if not (isinstance(row, dict) and row.get("list") == "administrative"):
            return row
        listed_rows = load_package_table("evalkit.classification", "administrative.toml")["administrative"]
        own_fields = {name: value for name, value in row.items() if name != "list"}
        # One alternation instead of many patterns, so that the text is searched once.
        return own_fields | {"patterns": [f"(?i)(?:{'|'.join(listed_row['pattern'] for listed_row in listed_rows)})"]}

    @model_validator(mode="after")
    def _require_content(self) -> Self:
        if not (self.phrases or self.symbols or self.patterns):
            raise ValueError("the group has no phrases, symbols or patterns: add at least one of them")
        return self


class BoundaryCue(StrictRecord):
    """Entry of the lexicon: patterns of a document's first or last lines."""

    id: str
    place: PagePlace = Field(alias="where")
    weight: _WeightAboveZero
    patterns: _Patterns


class Lexicon(StrictRecord):
    """Checked contents of ``lexicon.toml``."""

    version: str
    groups: tuple[CueGroup, ...] = Field(alias="group")
    boundary_cues: tuple[BoundaryCue, ...] = Field(alias="start")

    @model_validator(mode="after")
    def _require_unique_names(self) -> Self:
        names = [group.id for group in self.groups] + [cue.id for cue in self.boundary_cues]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two entries have the id {repeated[0]!r}")
        return self

    @cached_property
    def groups_by_id(self) -> dict[str, CueGroup]:
        """Group id → group."""
        return {group.id: group for group in self.groups}

    @cached_property
    def phrase_index(self) -> dict[str, tuple[tuple[tuple[str, ...], CueGroup], ...]]:
        """First word → the phrases that begin with this word, each with its group."""
        return _index_by_first_word((phrase, group) for group in self.groups for phrase in group.phrases)

    @cached_property
    def symbol_index(self) -> dict[str, tuple[CueGroup, ...]]:
        """Symbol → the groups that list it."""
        symbols = {symbol for group in self.groups for symbol in group.symbols}
        return {symbol: tuple(group for group in self.groups if symbol in group.symbols) for symbol in symbols}


@dataclass(frozen=True)
class CueMatch:
    """Match of a lexicon entry, or of a learned term, on a page."""

    document_type: DocumentType
    group_id: str
    """Id of the matched ``CueGroup``."""
    zone: TextZone
    weight: float
    start: int
    end: int
    """End of the match in ``page.text``, exclusive."""
    term: str
    """Matched words in normal form, by which repeats are counted."""


@dataclass(frozen=True)
class BeginningSign:
    """Sign of a new document at the top of a page, such as a title or letterhead."""

    id: str
    weight: float
    line: str
    """Line of the sign; a line that the page before has too is a running header."""


@dataclass(frozen=True)
class LexiconReading:
    """Result of applying the lexicon to a page."""

    page: Page
    cues: tuple[CueMatch, ...]
    scores: Mapping[DocumentType, float]
    furniture_spans: tuple[Span, ...]
    """Headers and footers as (start, end) in ``page.text``."""
    top_lines: tuple[str, ...]
    """First lines of the page outside of headers and footers."""
    beginning_signs: tuple[BeginningSign, ...]
    """Signs at the top of the page that a document begins there."""
    pagination_marks: tuple[tuple[int, int], ...]
    """Number and total of each "page 2 of 5" on the page, headers and footers included."""
    record_numbers: frozenset[str]
    """Accession, case, specimen, order and document numbers on the page, in lower case."""
    is_signed_off: bool
    """True if the last lines look like the end of a document."""
    vendors: tuple[str, ...]
    """Canonical names of the laboratories on the page, in order of appearance."""


#: Forms of words, labels, lines and page counts.
PATTERNS = PatternTable("evalkit.classification.offline", "page_patterns.toml")
_TOP_LINE_COUNT, _MAX_TOP_LENGTH, _END_LINE_COUNT = 14, 1500, 4
_MAX_TITLE_LENGTH, _MAX_TITLE_START, _TITLE_SIGN_WEIGHT = 110, 60, 2.0
_TITLE_SMALL_WORDS = {
    "a",
    "an",
    "and",
    "at",
    "by",
    "for",
    "from",
    "in",
    "of",
    "on",
    "or",
    "the",
    "to",
    "with",
    "without",
}


@cache
def load_lexicon() -> Lexicon:
    """Load the shipped lexicon; cached."""
    return parse_lexicon(load_package_table("evalkit.classification.offline", "lexicon.toml"))


def parse_lexicon(data: Mapping[str, Any]) -> Lexicon:
    """Convert TOML data to a checked lexicon.

    UsageError that names the wrong entry.
    """
    try:
        return Lexicon.model_validate(data)
    except ValidationError as error:
        problem = describe_first_row_error(error, data)
        raise UsageError(
            f"lexicon.toml: {problem}",
            code="LEXICON-ENTRY",
            remedy="Correct the entry of lexicon.toml that the message names.",
        ) from error


def apply_lexicon(page: Page) -> LexiconReading:
    """Find matches, signs, page counts, numbers and vendors on a page."""
    lexicon = load_lexicon()
    block_spans = _locate_visible_blocks(page)
    furniture = tuple(span for number, span in block_spans if page.blocks[number].furniture)
    all_tokens = _tokenise(page.text)
    tokens = [token for token in all_tokens if not _is_inside(token[1], furniture)] if furniture else all_tokens
    top_spans = _find_top_line_spans(page.text, furniture)
    cues = _keep_heaviest_cues(_find_cues(page, block_spans, tokens, furniture, top_spans, lexicon), len(page.text))
    return LexiconReading(
        page=page,
        cues=cues,
        scores=score_cues(cues),
        furniture_spans=furniture,
        top_lines=tuple(page.text[start:end].strip() for start, end in top_spans),
        beginning_signs=_find_beginning_signs(page.text, furniture, cues, lexicon),
        pagination_marks=tuple((int(match[1]), int(match[2])) for match in PATTERNS["page_count"].finditer(page.text)),
        record_numbers=frozenset(match[1].lower() for match in PATTERNS["record_number"].finditer(page.text)),
        is_signed_off=_has_sign_off_at_end(page.text, furniture, lexicon),
        vendors=_find_vendors(page, block_spans),
    )


def describe_cue(cue: CueMatch) -> str:
    """Name the phrase that was found on a page; for a regular expression, its group.

    A pattern's match could be anything on the page.
    """
    is_phrase = cue.term in load_lexicon().groups_by_id[cue.group_id].phrases
    return f"{cue.term!r} ({cue.zone})" if is_phrase else cue.group_id


def score_cues(cues: Iterable[CueMatch]) -> dict[DocumentType, float]:
    """Sum the weights of the lexicon matches for each type.

    All repeats of a term together add at most its weight again; a group adds at most ``max_page_weight``.
    """
    groups_by_id = load_lexicon().groups_by_id
    weights_by_term = group_pairs(((cue.group_id, cue.term), cue.weight) for cue in cues)
    scores_by_group: dict[str, float] = defaultdict(float)
    for (group_id, _), weights in weights_by_term.items():
        scores_by_group[group_id] += weights[0] * (2 - 0.5 ** (len(weights) - 1))
    scores = dict.fromkeys(FIVE_TYPES, 0.0)
    for group_id, total in scores_by_group.items():
        scores[groups_by_id[group_id].document_type] += min(total, groups_by_id[group_id].max_page_weight)
    return scores


# ---------------------------------------------------------------------------------------------------- loading


def rewrite_word_start_for_speed(pattern: str) -> str:
    r"""Rewrite a regular expression for word starts as an equivalent, faster one.

    ``re`` jumps to the next fixed letters, but tries a leading ``\b`` at every character.

    >>> print(*map(rewrite_word_start_for_speed, (r"\brs\d{4,}", r"\bcolou?r", r"\b(?:rs|chr)\d")))
    rs(?<=\brs)\d{4,} \bcolou?r \b(?:rs|chr)\d
    """
    match = PATTERNS["word_start"].match(pattern)
    return f"{match[1]}(?<=\\b{match[1]}){pattern[match.end() :]}" if match else pattern


def _index_by_first_word(phrases: Iterable[tuple[str, V]]) -> dict[str, tuple[tuple[tuple[str, ...], V], ...]]:
    rows = ((tuple(phrase.split(" ")), value) for phrase, value in phrases)
    return {first: tuple(group) for first, group in group_by(rows, lambda row: row[0][0]).items()}


# ------------------------------------------------------------------------------------------------ places on a page


def _tokenise(text: str) -> list[TokenSpan]:
    """Split a text into words in lower case without plural s, with their places."""
    return [(_normalise_word(match[0]), *match.span()) for match in PATTERNS["token"].finditer(text)]


@cache_document_text(8192)  # nearly all words of a document were in the previous document too
def _normalise_word(word: str) -> str:
    word = word.lower().removesuffix("(s)")
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word


def _locate_visible_blocks(page: Page) -> list[tuple[int, Span]]:
    spans: list[tuple[int, Span]] = []
    cursor = 0
    for number, block in enumerate(page.blocks):
        if block.hidden or not block.text:
            continue
        start = page.text.find(block.text, cursor)
        if start >= 0:
            cursor = start + len(block.text)
            spans.append((number, (start, cursor)))
    return spans


def _is_inside(position: int, spans: Sequence[Span]) -> bool:
    return any(start <= position < end for start, end in spans)


def _split_line_spans(text: str) -> Iterator[Span]:
    start = 0
    for line in text.split("\n"):
        if line.strip():
            yield start, start + len(line)
        start += len(line) + 1


def find_body_spans(text: str, furniture_spans: Sequence[Span]) -> Iterator[Span]:
    """Return the non-empty spans of the text between headers and footers."""
    edges = [0, *chain.from_iterable(furniture_spans), len(text)]
    return ((start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end)


def _find_top_line_spans(text: str, furniture_spans: Sequence[Span]) -> list[Span]:
    body_spans = (line_span for line_span in _split_line_spans(text) if not _is_inside(line_span[0], furniture_spans))
    return list(islice(body_spans, _TOP_LINE_COUNT))


def _find_title_spans(text: str, top_spans: Iterable[Span]) -> list[Span]:
    """Return the spans of top lines that may hold a title.

    Short lines that begin with no tick box and have capitalised words.
    """
    return [
        (start, end)
        for start, end in top_spans
        if end - start <= _MAX_TITLE_LENGTH
        and not PATTERNS["checkbox"].match(text, start)
        and _is_title_like(text[start:end])
    ]


def _is_title_like(line: str) -> bool:
    label_words = line.partition(":")[0].split()[:8]
    return all(not word[0].islower() or word.lower() in _TITLE_SMALL_WORDS for word in label_words)


def _find_heading_starts_and_ends(page: Page, block_spans: Iterable[tuple[int, Span]]) -> tuple[set[int], set[int]]:
    """Return all starts and all ends of section headings and labels.

    A heading of two parts, such as "FINDINGS / IMPRESSION", gives two starts and two ends.
    """
    text = page.text
    # match at each line's start, because search would try every character of a long line
    line_matches = [PATTERNS["label"].match(text, start, end) for start, end in _split_line_spans(text)]
    label_spans = [
        match.span(1)
        for match in line_matches
        if match and len(match[1].split()) <= 8 and (match[2] or _is_title_like(match[1]))
    ]
    label_spans += [match.span() for match in PATTERNS["capital_label"].finditer(text)]
    label_spans += [match.span() for match in PATTERNS["capital_sentence"].finditer(text)]
    label_spans += [span for number, span in block_spans if page.blocks[number].type == "heading"]
    starts: set[int] = set()
    ends: set[int] = set()
    for start, end in label_spans:
        for part_start, part_end in _split_label(text, start, end):
            starts.add(part_start)
            ends.add(part_end)
    return starts, ends


def _split_label(text: str, start: int, end: int) -> Iterator[Span]:
    cut_spans = [
        (start, start),
        *(match.span() for match in PATTERNS["label_separator"].finditer(text, start, end)),
        (end, end),
    ]
    for (_, part_start), (part_end, _) in pairwise(cut_spans):
        word_spans = [match.span() for match in PATTERNS["token"].finditer(text, part_start, part_end)]
        if word_spans:
            yield word_spans[0][0], word_spans[-1][1]


# ------------------------------------------------------------------------------------------------ matches and signs


def _match_phrases(
    tokens: Sequence[TokenSpan], index: Mapping[str, Sequence[tuple[tuple[str, ...], V]]]
) -> Iterator[tuple[str, Span, V]]:
    words = tuple([word for word, _, _ in tokens])
    for position, candidates in enumerate(map(index.get, words)):
        for phrase, value in candidates or ():
            phrase_end = position + len(phrase)
            if words[position:phrase_end] == phrase:
                yield " ".join(phrase), (tokens[position][1], tokens[phrase_end - 1][2]), value


def _find_cues(
    page: Page,
    block_spans: Sequence[tuple[int, Span]],
    tokens: Sequence[TokenSpan],
    furniture_spans: Sequence[Span],
    top_spans: Sequence[Span],
    lexicon: Lexicon,
) -> list[CueMatch]:
    text = page.text
    title_spans, (starts, ends) = _find_title_spans(text, top_spans), _find_heading_starts_and_ends(page, block_spans)

    def is_in_zone(span: Span, group: CueGroup) -> bool:
        if group.zone == "title":
            return any(start <= span[0] <= start + _MAX_TITLE_START and span[1] <= end for start, end in title_spans)
        return group.zone == "body" or (span[0] in starts and span[1] in ends)

    candidates = [(term, span, group) for term, span, group in _match_phrases(tokens, lexicon.phrase_index)]
    candidates += [
        (text[start:end], (start, end), group)
        for _, start, end in tokens
        for group in lexicon.symbol_index.get(text[start:end], ())
    ]
    title_text = "\n".join(text[start:end] for start, end in title_spans)
    title_offsets = [0, *accumulate(end - start + 1 for start, end in title_spans)]
    for group in lexicon.groups:
        for pattern in group.patterns:
            if group.zone == "title":
                for match in pattern.finditer(title_text):
                    line = bisect_right(title_offsets, match.start()) - 1
                    shift = title_spans[line][0] - title_offsets[line]
                    candidates.append((match.group().lower(), (match.start() + shift, match.end() + shift), group))
            else:
                candidates += [
                    (match.group().lower(), match.span(), group)
                    for match in pattern.finditer(text)
                    if not _is_inside(match.start(), furniture_spans)
                ]
    return [
        CueMatch(group.document_type, group.id, group.zone, group.weight, *span, term)
        for term, span, group in candidates
        if is_in_zone(span, group)
    ]


def _keep_heaviest_cues(cues: Iterable[CueMatch], text_length: int) -> tuple[CueMatch, ...]:
    """Drop overlapping matches of a type, keeping the heaviest, then the longest.

    A title after the first title of another type is dropped too.
    """
    taken = {kind: bytearray(text_length) for kind in FIVE_TYPES}
    resolved_cues: list[CueMatch] = []
    for cue in sorted(cues, key=lambda cue: (-cue.weight, cue.start - cue.end, cue.start, cue.group_id)):
        if not any(taken[cue.document_type][cue.start : cue.end]):
            taken[cue.document_type][cue.start : cue.end] = b"\1" * (cue.end - cue.start)
            resolved_cues.append(cue)
    resolved_cues.sort(key=lambda cue: (cue.start, -cue.end, cue.group_id))
    # A form that lists kinds of records ("Discharge Summary, Radiology Report …") has one title, its first.
    titles = [cue for cue in resolved_cues if cue.zone == "title"]
    other_title_start = next((cue.start for cue in titles if cue.document_type != titles[0].document_type), text_length)
    return tuple(cue for cue in resolved_cues if cue.zone != "title" or cue.start < other_title_start)


def _find_beginning_signs(
    text: str, furniture_spans: Sequence[Span], cues: Iterable[CueMatch], lexicon: Lexicon
) -> tuple[BeginningSign, ...]:
    signs: list[BeginningSign] = []
    title = next((cue for cue in cues if cue.zone == "title"), None)
    if title is not None:
        signs.append(
            BeginningSign("title", _TITLE_SIGN_WEIGHT, _mask_running_numbers(_get_line(text, title.start), False))
        )
    # headers are searched too, because a repeated letterhead counts as a header, but begins a document
    top_spans = list(islice(_split_line_spans(text), _TOP_LINE_COUNT))
    end = min(top_spans[-1][1], _MAX_TOP_LENGTH) if top_spans else 0
    for cue in lexicon.boundary_cues:
        if cue.place == "top":
            match_starts = [match.start() for pattern in cue.patterns if (match := pattern.search(text, 0, end))]
            if match_starts:
                position = min(match_starts)
                line = _mask_running_numbers(_get_line(text, position), _is_inside(position, furniture_spans))
                signs.append(BeginningSign(cue.id, cue.weight, line))
    return tuple(signs)


def _mask_running_numbers(line: str, is_furniture: bool) -> str:
    """Replace the numbers of a header line by "#", as they change between pages."""
    return re.sub(r"\d+", "#", line) if is_furniture else line


def _get_line(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)].strip()
    return line or text[position:].strip().partition("\n")[0]


def _has_sign_off_at_end(text: str, furniture_spans: Sequence[Span], lexicon: Lexicon) -> bool:
    last_lines = [text[start:end] for start, end in _split_line_spans(text) if not _is_inside(start, furniture_spans)][
        -_END_LINE_COUNT:
    ]
    tail = "\n".join(last_lines)
    return any(pattern.search(tail) for cue in lexicon.boundary_cues if cue.place == "end" for pattern in cue.patterns)


def _find_vendors(page: Page, block_spans: Sequence[tuple[int, Span]]) -> tuple[str, ...]:
    """Return the canonical names of the laboratories on a page, in order.

    Only names in the letterhead, in a heading, or in a line that names the performing laboratory. Letterheads count even
    if they repeat as headers; fax stamps do not count, because they name the sender.
    """
    text = page.text
    heading_spans = [span for number, span in block_spans if page.blocks[number].type == "heading"]
    stamp_spans = [
        span
        for number, span in block_spans
        if page.blocks[number].furniture and is_stamp_line(page.blocks[number].text)
    ]
    starts_by_name = {
        vendor.name: start
        for vendor in load_vendors()
        for start, _ in reversed(list(find_vendor_mentions(vendor, text)))
        if not _is_inside(start, stamp_spans)
        and (
            is_in_letterhead(text, start) or _is_inside(start, heading_spans) or is_in_performing_lab_line(text, start)
        )
    }
    return tuple(sorted(starts_by_name, key=starts_by_name.__getitem__))
