"""What the embedded model knows about the five types, and what of it speaks on a page.

The knowledge is data: ``lexicon.toml``. Here it is loaded, checked and applied to one page at a time, without any
opinion about the whole document: the result says which words were found where and what they weigh, so that a person
can be told why. Nothing in a header or footer counts.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import accumulate, islice, pairwise
from typing import Any, Literal, TypeVar, get_args

from evalkit.classification.schema import DocumentType
from evalkit.documents.bundle import Page
from evalkit.errors import UsageError

Zone = Literal["title", "heading", "body"]
Place = Literal["top", "end"]
Span = tuple[int, int]
Token = tuple[str, int, int]
V = TypeVar("V")


@dataclass(frozen=True)
class Group:
    """Words of one type that say the same thing equally loudly."""

    id: str
    document_type: DocumentType
    zone: Zone
    weight: float
    limit: float
    """The most the group may add to one page."""
    phrases: tuple[str, ...]
    symbols: tuple[str, ...]
    """Words whose case matters, such as genes."""
    patterns: tuple[re.Pattern[str], ...]


@dataclass(frozen=True)
class StartCue:
    """What stands where one document ends and the next one begins."""

    id: str
    where: Place
    weight: float
    patterns: tuple[re.Pattern[str], ...]


@dataclass(frozen=True)
class Lexicon:
    """``lexicon.toml``, checked."""

    version: str
    groups: tuple[Group, ...]
    starts: tuple[StartCue, ...]
    vendors: tuple[tuple[str, tuple[str, ...]], ...]
    """Canonical name and the phrases that stand for it."""

    @cached_property
    def group_by_id(self) -> dict[str, Group]:
        """Every group by its name."""
        return {group.id: group for group in self.groups}

    @cached_property
    def phrase_index(self) -> dict[str, tuple[tuple[tuple[str, ...], Group], ...]]:
        """First token → the phrases that begin with it: one walk over a page's tokens finds them all."""
        return _indexed((phrase, group) for group in self.groups for phrase in group.phrases)

    @cached_property
    def symbol_index(self) -> dict[str, tuple[Group, ...]]:
        """Symbol → the groups that have it."""
        index: dict[str, list[Group]] = defaultdict(list)
        for group in self.groups:
            for symbol in group.symbols:
                index[symbol].append(group)
        return {symbol: tuple(groups) for symbol, groups in index.items()}

    @cached_property
    def vendor_index(self) -> dict[str, tuple[tuple[tuple[str, ...], str], ...]]:
        """First token → the vendors' names that begin with it."""
        return _indexed((alias, name) for name, aliases in self.vendors for alias in aliases)


@dataclass(frozen=True)
class Cue:
    """One place on a page that spoke for a type."""

    document_type: DocumentType
    entry: str
    """The group's id."""
    zone: Zone
    weight: float
    block: int
    """Index in ``page.blocks``; -1 where the page's text is not made of its blocks."""
    start: int
    end: int
    """Characters of ``page.text``, end exclusive."""
    term: str
    """In normal form, so that the same word counts as the same."""


@dataclass(frozen=True)
class StartSign:
    """One thing at the top of a page that looks like a document's beginning."""

    id: str
    weight: float
    line: str
    """The line it stands in: where the page before has the same, it is a running header."""


@dataclass(frozen=True)
class PageReading:
    """All that the lexicon has to say about one page."""

    page: Page
    cues: tuple[Cue, ...]
    scores: Mapping[DocumentType, float]
    furniture: tuple[Span, ...]
    """Header and footer, as characters of ``page.text``."""
    top_lines: tuple[str, ...]
    """The first lines that are not furniture."""
    start_signs: tuple[StartSign, ...]
    """What looks like a document's beginning."""
    numbering: tuple[tuple[int, int], ...]
    """Each "page 2 of 5" on it, header and footer included."""
    record_numbers: frozenset[str]
    """Accession, case and document numbers."""
    is_signed_off: bool
    """The last lines look like a document's end."""
    vendors: tuple[str, ...]
    """Canonical names, in order of appearance."""


_TOP_LINES, _TOP_LENGTH, _END_LINES, _LETTERHEAD_LINES = 14, 1500, 4, 8
_TITLE_LENGTH, _TITLE_START, _TITLE_SIGN = 110, 60, 2.0
_TOKEN = re.compile(r"[^\W_]+(?:\(s\))?")
_LABEL_PARTS = re.compile(r"[/&,;(]|\b(?:and|or|AND|OR|And)\b")
_LABEL = re.compile(r"[ \t]*(?:[-•*▪○·]|\(?\d{1,2}[.)]|\(?[A-Za-z][.)])?[ \t]*([^\n\t:]{2,70}?)[ \t]*(:|$)")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9/&,()' -]{2,50}(?=:)")
_CAPITAL_SENTENCE = re.compile(r"(?:^|(?<=[.:)]\s))[A-Z][A-Z/& -]{2,40}(?=\.\s)", re.MULTILINE)
_CHECKBOX = re.compile(r"\s*(?:[^\w\s\"'(*=#-]|[*-]\s|_{2,}|\( ?\))")
_PERFORMER = re.compile(
    r"(?i)\b(?:perform(?:ed|ing)|test(?:ed|ing)|report(?:ed|ing)|reference|analy[sz]ed)\b[^\n]{0,30}\b(?:by|at|lab(?:oratory)?|site)\b"
    r"|\blab(?:oratory)?(?: name| facility)?\s*:"
)
_PAGE_OF = re.compile(r"(?i)\b(?:page|pg|p)\b\.?\s*0*(\d{1,4})\s*(?:of|/)\s*0*(\d{1,4})\b")
_RECORD_NUMBER = re.compile(
    r"(?i)\b(?:accession|document id|report id|case|specimen id|order|requisition)\b(?:\s+(?:id|no|number|#))?\s*[.:#]+\s*"
    r"(?=[\w-]*\d)([\w-]{4,})"
)
_SMALL_WORDS = {"a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with", "without"}


@cache
def lexicon() -> Lexicon:
    """The shipped lexicon, loaded once."""
    return parse_lexicon(tomllib.loads((files("evalkit.classification") / "lexicon.toml").read_text("utf-8")))


def parse_lexicon(data: Mapping[str, Any]) -> Lexicon:
    """The lexicon that the TOML data describes. UsageError naming the entry where it describes none."""
    groups = tuple(_group(number, row) for number, row in enumerate(data.get("group", ()), start=1))
    starts = tuple(_start_cue(number, row) for number, row in enumerate(data.get("start", ()), start=1))
    vendors = tuple(_vendor(number, row) for number, row in enumerate(data.get("vendor", ()), start=1))
    names = [group.id for group in groups] + [start.id for start in starts] + [name for name, _ in vendors]
    for name in names:
        if names.count(name) > 1:
            raise _wrong(f"entry {name!r}", "is there twice")
    if not isinstance(data.get("version"), str):
        raise _wrong("the file", "has no version")
    return Lexicon(data["version"], groups, starts, vendors)


def read_page(page: Page, words: Lexicon | None = None) -> PageReading:
    """What the lexicon has to say about the page."""
    words = lexicon() if words is None else words
    spans = _block_spans(page)
    furniture = tuple(span for number, span in spans if page.blocks[number].furniture)
    all_tokens = _tokens(page.text)
    tokens = [token for token in all_tokens if not _inside(token[1], furniture)] if furniture else all_tokens
    top = _top_lines(page.text, furniture)
    cues = _resolved(_cues(page, spans, tokens, furniture, top, words), len(page.text))
    return PageReading(
        page=page,
        cues=cues,
        scores=score(cues, words),
        furniture=furniture,
        top_lines=tuple(page.text[start:end].strip() for start, end in top),
        start_signs=_start_signs(page.text, furniture, cues, words),
        numbering=_numbering(page.text),
        record_numbers=_record_numbers(page.text),
        is_signed_off=_is_signed_off(page.text, furniture, words),
        vendors=_vendors(
            page, spans, all_tokens, words
        ),  # a letterhead that repeats is furniture, and names the vendor
    )


def score(cues: Iterable[Cue], words: Lexicon | None = None) -> dict[DocumentType, float]:
    """How loudly each type speaks: a word's repeats add less and less, and a group never more than its limit."""
    groups = (lexicon() if words is None else words).group_by_id
    repeats: dict[tuple[str, str], list[float]] = defaultdict(list)
    for cue in cues:
        repeats[cue.entry, cue.term].append(cue.weight)
    by_group: dict[str, float] = defaultdict(float)
    for (entry, _), weights in repeats.items():
        by_group[entry] += weights[0] * (2 - 0.5 ** (len(weights) - 1))
    scores = dict.fromkeys(DocumentType, 0.0)
    for entry, total in by_group.items():
        scores[groups[entry].document_type] += min(total, groups[entry].limit)
    return scores


# ---------------------------------------------------------------------------------------------------- loading


def _wrong(where: str, what: str) -> UsageError:
    return UsageError(f"lexicon.toml: {where} {what}", code="LEXICON-ENTRY", remedy="Mend that entry of the file.")


def _group(number: int, row: Mapping[str, Any]) -> Group:
    where = _checked(
        number, "group", row, {"id", "type", "zone", "weight"}, {"limit", "phrases", "symbols", "patterns"}
    )
    if row["type"] not in [kind.value for kind in DocumentType]:
        raise _wrong(where, f"has the unknown type {row['type']!r}")
    if row["zone"] not in get_args(Zone):
        raise _wrong(where, f"has the unknown zone {row['zone']!r}")
    weight, limit = _positive(where, "weight", row["weight"]), _positive(where, "limit", row.get("limit", float("inf")))
    phrases, patterns = _phrases(where, row.get("phrases", ())), _patterns(where, row.get("patterns", ()))
    symbols = tuple(row.get("symbols", ()))
    for symbol in symbols:
        if not isinstance(symbol, str) or not _TOKEN.fullmatch(symbol):
            raise _wrong(where, f"has the symbol {symbol!r}, which is not one word")
    if not (phrases or symbols or patterns):
        raise _wrong(where, "has neither phrases nor symbols nor patterns")
    return Group(row["id"], DocumentType(row["type"]), row["zone"], weight, limit, phrases, symbols, patterns)


def _start_cue(number: int, row: Mapping[str, Any]) -> StartCue:
    where = _checked(number, "start", row, {"id", "where", "weight", "patterns"}, set())
    if row["where"] not in get_args(Place):
        raise _wrong(where, f"has the unknown place {row['where']!r}")
    patterns = _patterns(where, row["patterns"])
    return StartCue(row["id"], row["where"], _positive(where, "weight", row["weight"]), patterns)


def _vendor(number: int, row: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    where = _checked(number, "vendor", row, {"name", "aliases"}, set())
    if not row["aliases"]:
        raise _wrong(where, "has no aliases")
    return row["name"], _phrases(where, row["aliases"])


def _checked(number: int, table: str, row: Mapping[str, Any], required: set[str], optional: set[str]) -> str:
    where = f"{table} {row.get('id') or row.get('name') or f'number {number}'!r}"
    if missing := sorted(required - row.keys()):
        raise _wrong(where, f"lacks {', '.join(missing)}")
    if unknown := sorted(row.keys() - required - optional):
        raise _wrong(where, f"has the unknown key {', '.join(unknown)}")
    return where


def _positive(where: str, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise _wrong(where, f"has the {name} {value!r}, which is no number above 0")
    return float(value)


def _phrases(where: str, values: Any) -> tuple[str, ...]:
    normal: list[str] = []
    for value in values:
        phrase = " ".join(token for token, _, _ in _tokens(value)) if isinstance(value, str) else ""
        if not phrase:
            raise _wrong(where, f"has the phrase {value!r}, which has no word")
        if phrase in normal:
            raise _wrong(where, f"has the phrase {value!r} twice")
        normal.append(phrase)
    return tuple(normal)


def _patterns(where: str, values: Any) -> tuple[re.Pattern[str], ...]:
    compiled: list[re.Pattern[str]] = []
    for value in values:
        try:
            compiled.append(re.compile(quick(value), re.MULTILINE))
        except (re.error, TypeError) as error:
            raise _wrong(where, f"has the pattern {value!r}, which is no regular expression") from error
        if compiled[-1].search(""):
            raise _wrong(where, f"has the pattern {value!r}, which matches nothing at all")
    return tuple(compiled)


#: A word's beginning and letters that must stand there, none of them repeated, left out or one of several.
_WORD_BEGUN = re.compile(r"\\b((?:\w|(?<=\w) (?=\w)|\\\.)+)(?![?*+{|\w])")


def quick(pattern: str) -> str:
    r"""An expression that finds the same: where it begins with a word's first letters, they are looked for before it is
    asked whether a word begins there. Python's engine leaps to letters, but tries a word's beginning at every place.

    >>> print(*map(quick, (r"\brs\d{4,}", r"\bcolou?r", r"\b(?:rs|chr)\d")))
    rs(?<=\brs)\d{4,} \bcolou?r \b(?:rs|chr)\d
    """
    begun = _WORD_BEGUN.match(pattern)
    return f"{begun[1]}(?<=\\b{begun[1]}){pattern[begun.end() :]}" if begun else pattern


def _indexed(phrases: Iterable[tuple[str, V]]) -> dict[str, tuple[tuple[tuple[str, ...], V], ...]]:
    index: dict[str, list[tuple[tuple[str, ...], V]]] = defaultdict(list)
    for phrase, value in phrases:
        words = tuple(phrase.split(" "))
        index[words[0]].append((words, value))
    return {first: tuple(rows) for first, rows in index.items()}


# ------------------------------------------------------------------------------------------------ where things are


def _tokens(text: str) -> list[Token]:
    """Words in normal form: small letters, without the plural's s."""
    return [(_normal(match[0]), *match.span()) for match in _TOKEN.finditer(text)]


@lru_cache(maxsize=8192)  # nearly all words of a document were in the one before
def _normal(word: str) -> str:
    word = word.lower().removesuffix("(s)")
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word


def _block_spans(page: Page) -> list[tuple[int, Span]]:
    """Where each visible block stands in the page's text, in order."""
    spans: list[tuple[int, Span]] = []
    cursor = 0
    for number, block in enumerate(page.blocks):
        if block.hidden or not block.text:
            continue
        found = page.text.find(block.text, cursor)
        if found >= 0:
            cursor = found + len(block.text)
            spans.append((number, (found, cursor)))
    return spans


def _inside(position: int, spans: Sequence[Span]) -> bool:
    index = bisect_right(spans, position, key=_start) - 1
    return index >= 0 and position < spans[index][1]


def _start(span: Span) -> int:
    return span[0]


def _lines(text: str) -> Iterator[Span]:
    start = 0
    for line in text.split("\n"):
        if line.strip():
            yield start, start + len(line)
        start += len(line) + 1


def _top_lines(text: str, furniture: Sequence[Span]) -> list[Span]:
    return list(islice((line for line in _lines(text) if not _inside(line[0], furniture)), _TOP_LINES))


def _title_spans(text: str, top: Iterable[Span]) -> list[Span]:
    """Where a title may begin: near the start of a short line at the top that is no sentence and no tick box."""
    return [
        (start, end)
        for start, end in top
        if end - start <= _TITLE_LENGTH and not _CHECKBOX.match(text, start) and _is_title_like(text[start:end])
    ]


def _is_title_like(line: str) -> bool:
    label = line.partition(":")[0].split()[:8]
    return all(not word[0].islower() or word.lower() in _SMALL_WORDS for word in label)


def _heading_edges(page: Page, spans: Iterable[tuple[int, Span]]) -> tuple[set[int], set[int]]:
    """Where a section heading or label, or one of its parts ("FINDINGS / IMPRESSION"), begins and ends."""
    text = page.text
    # One try at each line's start: searching would begin anew at every character of a long line.
    tries = [_LABEL.match(text, start, end) for start, end in _lines(text)]
    labels = [
        match.span(1)
        for match in tries
        if match and len(match[1].split()) <= 8 and (match[2] or _is_title_like(match[1]))
    ]
    labels += [match.span() for match in _CAPITALS.finditer(text)]
    labels += [match.span() for match in _CAPITAL_SENTENCE.finditer(text)]
    labels += [span for number, span in spans if page.blocks[number].type == "heading"]
    starts: set[int] = set()
    ends: set[int] = set()
    for start, end in labels:
        for part_start, part_end in _parts(text, start, end):
            starts.add(part_start)
            ends.add(part_end)
    return starts, ends


def _parts(text: str, start: int, end: int) -> Iterator[Span]:
    """The label and its parts, each from its first word's start to its last word's end."""
    cuts = [(start, start), *(match.span() for match in _LABEL_PARTS.finditer(text, start, end)), (end, end)]
    for (_, part_start), (part_end, _) in pairwise(cuts):
        words = [match.span() for match in _TOKEN.finditer(text, part_start, part_end)]
        if words:
            yield words[0][0], words[-1][1]


# ------------------------------------------------------------------------------------------------ what speaks


def _phrases_at(
    tokens: Sequence[Token], index: Mapping[str, Sequence[tuple[tuple[str, ...], V]]]
) -> Iterator[tuple[str, Span, V]]:
    words = tuple([word for word, _, _ in tokens])
    for position, begun in enumerate(map(index.get, words)):
        for phrase, value in begun or ():
            last = position + len(phrase)
            if words[position:last] == phrase:
                yield " ".join(phrase), (tokens[position][1], tokens[last - 1][2]), value


def _cues(
    page: Page,
    spans: Sequence[tuple[int, Span]],
    tokens: Sequence[Token],
    furniture: Sequence[Span],
    top: Sequence[Span],
    words: Lexicon,
) -> list[Cue]:
    text = page.text
    titles, (starts, ends) = _title_spans(text, top), _heading_edges(page, spans)
    block_numbers, block_starts = [number for number, _ in spans], [span[0] for _, span in spans]

    def is_heard(span: Span, group: Group) -> bool:
        if group.zone == "title":
            return any(start <= span[0] <= start + _TITLE_START and span[1] <= end for start, end in titles)
        return group.zone == "body" or (span[0] in starts and span[1] in ends)

    found = [(term, span, group) for term, span, group in _phrases_at(tokens, words.phrase_index)]
    found += [
        (text[start:end], (start, end), group)
        for _, start, end in tokens
        for group in words.symbol_index.get(text[start:end], ())
    ]
    heads = "\n".join(text[start:end] for start, end in titles)
    places = [0, *accumulate(end - start + 1 for start, end in titles)]
    for group in words.groups:
        for pattern in group.patterns:
            if group.zone == "title":
                for match in pattern.finditer(heads):
                    line = bisect_right(places, match.start()) - 1
                    shift = titles[line][0] - places[line]
                    found.append((match.group().lower(), (match.start() + shift, match.end() + shift), group))
            else:
                found += [
                    (match.group().lower(), match.span(), group)
                    for match in pattern.finditer(text)
                    if not _inside(match.start(), furniture)
                ]
    cues: list[Cue] = []
    for term, span, group in found:
        if is_heard(span, group):
            index = bisect_right(block_starts, span[0]) - 1
            block = block_numbers[index] if index >= 0 else -1
            cues.append(Cue(group.document_type, group.id, group.zone, group.weight, block, *span, term))
    return cues


def _resolved(cues: Iterable[Cue], length: int) -> tuple[Cue, ...]:
    """Of a type's overlapping cues the heaviest, else the longest; titles only until one of another type."""
    taken = {kind: bytearray(length) for kind in DocumentType}
    kept: list[Cue] = []
    for cue in sorted(cues, key=lambda cue: (-cue.weight, cue.start - cue.end, cue.start, cue.entry)):
        if not any(taken[cue.document_type][cue.start : cue.end]):
            taken[cue.document_type][cue.start : cue.end] = b"\1" * (cue.end - cue.start)
            kept.append(cue)
    kept.sort(key=lambda cue: (cue.start, -cue.end, cue.entry))
    # A form that lists kinds of records ("Discharge Summary, Radiology Report …") has one title, its first.
    titles = [cue for cue in kept if cue.zone == "title"]
    strange = next((cue.start for cue in titles if cue.document_type != titles[0].document_type), length)
    return tuple(cue for cue in kept if cue.zone != "title" or cue.start < strange)


def _start_signs(text: str, furniture: Sequence[Span], cues: Iterable[Cue], words: Lexicon) -> tuple[StartSign, ...]:
    signs: list[StartSign] = []
    title = next((cue for cue in cues if cue.zone == "title"), None)
    if title is not None:
        signs.append(StartSign("title", _TITLE_SIGN, _repeatable(_line_at(text, title.start), False)))
    # A letterhead that comes back on other first pages is furniture and still begins a document.
    top = list(islice(_lines(text), _TOP_LINES))
    end = min(top[-1][1], _TOP_LENGTH) if top else 0
    for cue in words.starts:
        if cue.where == "top":
            matches = [match.start() for pattern in cue.patterns if (match := pattern.search(text, 0, end))]
            if matches:
                first = min(matches)
                line = _repeatable(_line_at(text, first), _inside(first, furniture))
                signs.append(StartSign(cue.id, cue.weight, line))
    return tuple(signs)


def _repeatable(line: str, is_furniture: bool) -> str:
    """The line as it may come back on the next page: in a running header the numbers change."""
    return re.sub(r"\d+", "#", line) if is_furniture else line


def _numbering(text: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(match[1]), int(match[2])) for match in _PAGE_OF.finditer(text))


def _record_numbers(text: str) -> frozenset[str]:
    return frozenset(match[1].lower() for match in _RECORD_NUMBER.finditer(text))


def _line_at(text: str, position: int) -> str:
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)].strip()
    return line or text[position:].strip().partition("\n")[0]


def _is_signed_off(text: str, furniture: Sequence[Span], words: Lexicon) -> bool:
    last = [text[start:end] for start, end in _lines(text) if not _inside(start, furniture)][-_END_LINES:]
    tail = "\n".join(last)
    return any(p.search(tail) for cue in words.starts if cue.where == "end" for p in cue.patterns)


def _vendors(page: Page, spans: Sequence[tuple[int, Span]], tokens: Sequence[Token], words: Lexicon) -> tuple[str, ...]:
    """Vendors in the letterhead, in a heading or in a line that says who performed the test."""
    text = page.text
    lines = list(_lines(text))
    letterhead_end = lines[min(len(lines), _LETTERHEAD_LINES) - 1][1] if lines else 0
    headings = [span for number, span in spans if page.blocks[number].type == "heading"]
    names: dict[str, None] = {}
    for _, (start, _), name in _phrases_at(tokens, words.vendor_index):
        line = _line_at(text, start)
        in_letterhead = start < letterhead_end and len(line) <= _TITLE_LENGTH
        if in_letterhead or _inside(start, headings) or _PERFORMER.search(line):
            names.setdefault(name)
    return tuple(names)
