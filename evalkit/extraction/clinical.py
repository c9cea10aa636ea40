"""What the embedded model reads in clinical reports: labels with their answers, tables, and the words of findings.

A first look takes what stands where such reports put it. Another look, at the fields that the evaluator asked for, takes
less usual labels, the lines beside a label, and words anywhere in the report: more is found so, and more of it wrongly,
which is why it is not the first. Nothing here knows whether a value is true; every value is a place on a page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import NamedTuple

from evalkit.documents.bundle import Page
from evalkit.extraction.clinical_formats import (
    ALTERATION,
    GENE,
    HGVS,
    NONE_FOUND,
    grade,
    is_gene,
    lab,
    margin,
    marker,
    msi,
    stage,
    tmb,
    variant,
)
from evalkit.extraction.report import Cell, Line, Report, Span, lexicon
from evalkit.extraction.template import Field
from evalkit.grounding.clause import left_out

SURE, LIKELY, GUESSED = 0.95, 0.9, 0.8
"""Of what stands beside its label, of what words say, of what only another look found: an order, no probabilities."""
MOST = 200
"""So many values of one field are read; a file made to hold more costs no more."""

_SENTENCE = re.compile(r"[.;](?=\s|$)|\n")
_CLAUSE_END = re.compile(r"[.;](?=\s|$)|\n|\t")
_NEXT_LABEL = re.compile(r"[.;,]?\s+(?=[A-Z][A-Za-z /()-]{2,40}:(?:\s|$))")
_SIZE = re.compile(
    r"(?<![\d.,-])\d+(?:\.\d+)?(?:\s*(?:mm|cm))?(?:\s*[x×]\s*\d+(?:\.\d+)?(?:\s*(?:mm|cm))?){0,2}\s*-?(?:mm|cm)\b(?!\s*(?:[23²³]|H2?O|Hg|slice|section|thick|collimation|interval|axial|cut))",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?<!\d)(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[/.-]\d{1,2}[/.-](?:\d{4}|\d{2})|[A-Z][a-z]{2,8}\.? \d{1,2},? \d{4}|\d{1,2} [A-Z][a-z]{2,8} \d{4})(?!\d)"
)
_GRADE = re.compile(
    r"(?i)(?<!nuclear )\b(?:(?:nottingham|figo|histologic(?:al)?|overall|who|sbr|bloom[- ]richardson|tumou?r|combined)[\s,-]{1,3}){0,4}\bgrade[:\s]{1,3}(?:of\s+)?(?:[1-3]|i{1,3})(?:\s?(?:/|of)\s?3)?(?!\w|\.\d)"
)
_DEGREE = re.compile(r"(?i)\b(?:well|moderately|poorly)[\s-]+differentiated\b|(?-i:\bG[1-3]\b)|(?-i:\bNHG\s?[1-3])")
_MARGIN = re.compile(
    r"(?i)\b(?:all\s+)?(?:[\w-]+\s+){0,2}margins?\s+(?:of resection\s+)?(?:(?:is|are|were|was)\s+)?(?:\w+ly\s+)?(?:negative|free|clear|uninvolved|not involved|positive|involved)\b[^.;\n\t]*"
)
_ANY_MARGIN = re.compile(r"(?i)\bmargins?\b")
_PTNM = re.compile(r"\b[ycra]{0,2}pT(?:is|[0-4X][a-d]?)[^\n\t]{0,30}")
_GREATEST = re.compile(
    r"(?i)(?P<size>\d+(?:\.\d+)?\s*(?:mm|cm))\s*,?\s*(?:in|is the)?\s*(?:greatest|maximum|maximal|largest) (?:dimension|diameter|extent)"
)
_OF_SPECIMEN = re.compile(r"(?i)\bspecimen\b[^.;]*$")
_STAGE_GROUP = re.compile(r"(?i)\bstage\s+(?:IV|III|II|I)[A-C]?\b")
_MSI = re.compile(r"(?i)\bMSI-?H(?:igh)?\b|\bMSI-?L(?:ow)?\b|(?-i:\bMSS\b)|\bmicrosatellite[- ]stable\b")
_ANY_MSI = re.compile(r"(?i)\bmicrosatellite\b|(?-i:\bMSI\b)")
_PER_MEGABASE = r"(?:\s*(?:somatic\s+)?(?:mut(?:ation)?s?|variants)\.?)?\s*(?:/|per)\s*(?:mb|megabase)"
_TMB = re.compile(
    rf"(?i)\b(?:TMB|mutation(?:al)? (?:burden|load))\b[^.;\n\t\d]{{0,30}}(?P<size>\d+(?:\.\d+)?{_PER_MEGABASE})"
)
_ANY_TMB = re.compile(rf"(?i)(?P<size>(?<![\d.])\d+(?:\.\d+)?{_PER_MEGABASE})")
_MASS = re.compile(
    r"(?i)\b(?:mass|tumou?r|lesion|nodule)\b[^.;\n\t]{0,50}?\b(?:measur(?:es|ing|ed)|of|is|,)\s*(?:about |approximately )?(?P<size>\d+(?:\.\d+)?(?:\s*[x×]\s*\d+(?:\.\d+)?){0,2}\s*(?:mm|cm))"
)
_LAB_ITEM = re.compile(
    r"(?P<name>[A-Z][A-Za-z0-9/ -]{1,40}?(?:\s*\([A-Za-z0-9/ -]{1,12}\))?)\s*(?:count)?\s*(?::|\s)\s*(?P<value>[<>]?\s*\d+(?:[.,]\d+)*\s*(?:[A-Za-z%µ^x*/0-9.]+(?:/[A-Za-z0-9µ^]+)?)?\s*\((?:(?:ref(?:erence)?(?: range)?|normal|range)\.?:?\s*)?[^()\n]{1,40}\))"
)
_RESULT = re.compile(r"(?i)^(?:(?:test )?results?|values?|in range|out of range|your value|today|observed|measured)$")
_TEST = re.compile(r"(?i)\b(?:test|analyte|component|assay|name|parameter|investigation)\b")
_BIRTH = re.compile(r"(?i)\b(?:birth|dob|born)\b")
_BEFORE = re.compile(r"(?i)^(?:previous|prior|baseline|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4})")


@dataclass(frozen=True)
class Found:
    """A value, where it stands: characters of the page's text."""

    page: Page
    start: int
    end: int
    confidence: float
    item: str = ""
    """Of a field of many values: which one, ``ER``."""
    more: tuple[Span, ...] = ()
    """Where a long text goes on, on the pages behind."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """All places of it, one for each page."""
        return ((self.page, self.start, self.end), *self.more)

    @property
    def text(self) -> str:
        """Its words."""
        return "\n".join(page.text[start:end] for page, start, end in self.spans)


def read(field: Field, report: Report, *, again: bool = False) -> list[Found]:
    """The values of a field that the report has, the likeliest first; fields of many values in the order of the page.

    ``again``: another look, where the first one is known not to have been enough.
    """
    found = list(islice(_distinct(readings(field, report)), MOST))
    if again:
        more = islice(_distinct(_reader(field)(field, report, True)), MOST)
        found += [one for one in more if not _is_known(one, found)]
    if field.format in _NUMBERED and field.many:
        found = [replace(one, item=str(number)) for number, one in enumerate(found, 1)]
    return found


def readings(field: Field, report: Report) -> tuple[Found, ...]:
    """All places of a first look: a value that stands twice, or two values of one name, come as often."""
    # Each attempt asks for them, and the judge once more for every value: looked for once.
    found: tuple[Found, ...] | None = report.kept.get(field)
    if found is None:
        found = report.kept[field] = tuple(_reader(field)(field, report, False))
    return found


def _reader(field: Field) -> _Reader:
    return _READERS.get(field.reader) or _BY_FORMAT.get(field.format, _labelled)


def _is_known(one: Found, found: Iterable[Found]) -> bool:
    """Whether it has the name, or some of the words, of what was found before."""
    return any(
        (one.item and not one.item.isdigit() and one.item == other.item)
        or (one.page is other.page and one.start < other.end and other.start < one.end)
        for other in found
    )


#: Formats whose values have no names, so that they are counted.
_NUMBERED = ("measurement", "variant")


def speaks_of(field: Field, report: Report) -> Line | None:
    """The first line that speaks of the field, but for those that say that it was not told."""
    if field.mentions is None:
        return None
    pattern, untold = re.compile(field.mentions), _untold()
    if field.reader == "section":
        names = {*field.labels, *field.more_labels}
        return next((line for line in report.lines if line.part in names), None)
    for line in report.told:
        text = f"{line.text}\n"
        if (found := pattern.search(text)) and not untold.search(text, found.start(), min(found.end() + 60, len(text))):
            return line
    return None


# ------------------------------------------------------------------------------------------------- labels


def _labelled(field: Field, report: Report, again: bool) -> Iterator[Found]:
    """What stands beside one of the field's labels and is in its format."""
    for line, start, end in _beside_labels(field, report, again):
        if field.format == "measurement" and _OF_SPECIMEN.search(line.page.text, max(start - 50, line.start), start):
            continue
        if found := _in_format(field, line.page, start, end):
            yield Found(line.page, *found, SURE if not again else GUESSED)


def _beside_labels(field: Field, report: Report, again: bool) -> Iterator[tuple[Line, int, int]]:
    labels = (*field.labels, *field.more_labels) if again else field.labels
    if not labels:
        return
    lines = report.lines if again else report.told
    for at, line in enumerate(lines):
        if line.group == "history":
            continue
        if line.kind == "row":
            yield from _beside_cells(line, labels)
            continue
        for found in _label(labels, again).finditer(line.text):
            start = line.start + found.end()
            if line.page.text[start : line.end].strip(" .:\t"):
                yield line, start, line.end
            elif again or line.kind == "heading":
                yield from _beside_lines(lines, at)


def _beside_cells(line: Line, labels: Iterable[str]) -> Iterator[tuple[Line, int, int]]:
    """The cells behind a label, the cell under it, or what follows it in its own cell."""
    whole = _alone(tuple(labels))
    inline = _label(tuple(labels), False)
    for number, cell in enumerate(line.cells):
        behind = [one for one in line.cells[number + 1 :] if one.text]
        if whole.match(cell.text):
            if behind:
                yield line, behind[0].start, behind[0].end
                yield line, behind[0].start, behind[-1].end
        elif found := inline.search(cell.text):
            yield line, cell.start + found.end(), cell.end
        elif cell.text and whole.match(cell.header):
            yield line, cell.start, cell.end


def _beside_lines(lines: tuple[Line, ...], at: int) -> Iterator[tuple[Line, int, int]]:
    """The line below a label that has nothing behind it, then the line above."""
    for beside in (at + 1, at - 1):
        if 0 <= beside < len(lines) and lines[beside].kind != "heading" and lines[beside].page is lines[at].page:
            line = lines[beside]
            first = next((cell for cell in line.cells if cell.text), None)
            yield (line, first.start, first.end) if first else (line, line.start, line.end)


@cache
def _label(labels: tuple[str, ...], loosely: bool) -> re.Pattern[str]:
    words = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    sign = r"(?:\s*[:=]\s*|\s+[-–]\s+|\s+(?:is|was|are|were)\s+)"
    about = r"(?:\s*\([^()]{1,30}\))?"
    alone, before = rf"^\W*(?:{words}){about}\s*$", rf"(?<![\w-])(?<!nuclear )(?:{words})"
    return re.compile(rf"(?i){before}{about}{sign}|{alone}" + (rf"|{before}\s+(?=\S)" if loosely else ""))


@cache
def _alone(labels: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    return re.compile(rf"(?i)^(?:{words})(?:\s*\([^()]{{1,30}}\))?\s*:?$")


def _margins(field: Field, report: Report, again: bool) -> Iterator[Found]:
    """Whether they are free comes before how far away the nearest is."""
    reader = _in_words(_Words(_MARGIN), _Words(_ANY_MARGIN, is_clause=True), format_of=margin)
    yield from sorted(reader(field, report, again), key=lambda one: (margin(one.text) or "")[:1].isdigit())


def _in_format(field: Field, page: Page, start: int, end: int) -> tuple[int, int] | None:
    """The part of the words that is a value of the field's format; None where it says that there is none."""
    text = page.text[start:end]
    if _untold().match(text.strip(" :-")):
        return None
    for pattern in _WITHIN.get(field.format, ()):
        found = pattern.search(text)
        if not found:
            continue
        span = found.span("size") if "size" in pattern.groupindex else found.span()
        if field.normal(text[slice(*span)]) is not None:
            return start + span[0], start + span[1]
    if field.format in _WITHIN:
        return None
    stop = _NEXT_LABEL if field.format == "margin" else _SENTENCE
    cut = stop.search(text)
    short = text[: cut.start()] if cut and cut.start() else text
    for words in dict.fromkeys((short, text)):
        bare = words.strip(" \t\n.,;:")
        if bare and field.normal(bare) is not None and len(bare) <= _LONGEST.get(field.format, 200):
            first = start + text.index(bare)
            return first, first + len(bare)
    return None


_WITHIN: Mapping[str, tuple[re.Pattern[str], ...]] = {
    "date": (_DATE,),
    "measurement": (_SIZE,),
}
_LONGEST: Mapping[str, int] = {"margin": 160, "grade": 60, "msi": 80, "tmb": 80, "stage": 60}


@cache
def _untold() -> re.Pattern[str]:
    return re.compile(lexicon()["untold"]["words"])


# ------------------------------------------------------------------------------------------------- findings in words


class _Words(NamedTuple):
    """How a finding is written: the match, its group ``size`` where it has one, or the clause around it."""

    pattern: re.Pattern[str]
    is_clause: bool = False

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it is written in the text."""
        for match in self.pattern.finditer(text):
            start, end = match.span("size") if "size" in self.pattern.groupindex else match.span()
            if "size" in self.pattern.groupindex and _OF_SPECIMEN.search(text, max(start - 50, 0), start):
                continue
            yield _clause(text, start, end) if self.is_clause else (start, end)


def _clause(text: str, start: int, end: int) -> tuple[int, int]:
    """The clause or cell around ``start..end``."""
    first = max(
        (at + len(sign) for sign in (". ", "; ", "\n", "\t") if (at := text.rfind(sign, 0, start)) >= 0), default=0
    )
    behind = _CLAUSE_END.search(text, end)
    return first, behind.start() if behind else len(text)


def _in_words(first: _Words, *others: _Words, format_of: Callable[[str], str | None]) -> _Reader:
    """A reader of labels, then of the first way in which the finding is written; of the others at another look."""

    def reader(field: Field, report: Report, again: bool) -> Iterator[Found]:
        yield from _labelled(field, report, again)
        for words in (first, *others) if again else (first,):
            for line in report.lines if again else report.told:
                if line.group == "history":
                    continue
                for start, end in words.spans(line.text):
                    said = line.text[start:end].strip(" .,;:")
                    if said and format_of(said) is not None:
                        at = line.start + line.text.index(said, start)
                        yield Found(line.page, at, at + len(said), GUESSED if again else LIKELY)

    return reader


def _histology(field: Field, report: Report, again: bool) -> Iterator[Found]:
    """A tumor's name: beside its label, then in the diagnosis, at another look anywhere; none that is denied."""
    for line, start, end in _beside_labels(field, report, again):
        yield from _fullest(_tumors(line, start, end, SURE))
    named = [line for line in report.lines if "diagnosis" in line.part and line.group == "other"]
    lines = list(report.told) if again else named
    beside = tuple(lexicon()["histology"]["beside"])
    found = [
        one for line in lines for one in _fullest(_tumors(line, line.start, line.end, GUESSED if again else LIKELY))
    ]
    yield from sorted(found, key=lambda one: any(word in one.text.lower() for word in beside))
    if again and not found:
        for line in report.told:
            if match := _benign().search(line.text):
                yield Found(line.page, line.start + match.start(), line.start + match.end(), GUESSED)


def _tumors(line: Line, start: int, end: int, confidence: float) -> Iterator[Found]:
    for match in _tumor().finditer(line.page.text, start, end):
        if left_out(line.page.text, *match.span()) is None and not re.match(r"(?i)metasta", match.group()):
            yield Found(line.page, *match.span(), confidence)


def _fullest(found: Iterable[Found]) -> list[Found]:
    """Of the names that one line has, the one of most words first: "carcinoma" is short for another of them."""
    return sorted(found, key=lambda one: -len(one.text.split()))


@cache
def _tumor() -> re.Pattern[str]:
    words = lexicon()["histology"]
    before, nouns = ("|".join(map(re.escape, sorted(words[key], key=len, reverse=True))) for key in ("before", "nouns"))
    return re.compile(rf"(?i)(?<![\w-])(?:(?:{before})[\s,-]+){{0,6}}(?:{nouns}){words['behind']}(?![\w-])")


@cache
def _benign() -> re.Pattern[str]:
    return re.compile(lexicon()["histology"]["benign"])


def _markers(_field: Field, report: Report, again: bool) -> Iterator[Found]:
    """One result for each stain that the report names: in the row of a table, or behind the name."""
    for line in report.lines if again else report.told:
        if line.kind == "row":
            yield from _stained(line)
            continue
        names = [(match, name) for name, pattern in _stains() for match in pattern.finditer(line.text)]
        names.sort(key=lambda pair: (pair[0].start(), -pair[0].end()))
        for number, (match, name) in enumerate(names):
            if number and match.start() < names[number - 1][0].end():
                continue
            behind = next(
                (other.start() for other, _ in names[number + 1 :] if other.start() >= match.end()), len(line.text)
            )
            if found := _result(line, match.end(), behind, again):
                yield Found(line.page, *found, GUESSED if again else LIKELY, name)


def _stained(line: Line) -> Iterator[Found]:
    first = next((cell for cell in line.cells if cell.text), None)
    if first is None:
        return
    name = next(
        (name for name, pattern in _stains() if (m := pattern.match(first.text)) and len(first.text) - m.end() < 14),
        None,
    )
    results = [cell for cell in line.cells if cell.start > first.start and cell.text and marker(cell.text)]
    if name and results:
        yield Found(line.page, results[0].start, results[-1].end, SURE, name)


def _result(line: Line, start: int, end: int, again: bool) -> tuple[int, int] | None:
    """The result behind a stain's name, up to the next one or the end of its clause."""
    text = line.text[start:end]
    if not again and not re.match(
        r"\s*(?:\([^)]*\)\s*)?(?:[:=,-]|is\b|was\b|status\b|positive|negative|equivocal|\d|[<>])", text, re.I
    ):
        return None
    stop = _SENTENCE.search(text)
    clause = text[: stop.start()] if stop else text
    said = clause.strip(" :=,-\t")
    said = re.sub(r"[\s,(]+(?:and|by|with)?[\s(]*$", "", said)
    if not said or marker(said) is None or len(said) > 120:
        return None
    first = start + text.index(said)
    return line.start + first, line.start + first + len(said)


@cache
def _stains() -> tuple[tuple[str, re.Pattern[str]], ...]:
    def pattern(words: Iterable[str]) -> re.Pattern[str]:
        # Short names in capitals are other words in small letters.
        exact = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if len(word) <= 3)
        loose = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True) if len(word) > 3)
        either = "|".join(filter(None, (f"(?i:{loose})" if loose else "", exact)))
        return re.compile(rf"(?<![\w-])(?:{either})(?![\w+]|-\w)")

    return tuple((row["name"], pattern(row["words"])) for row in lexicon()["marker"])


# ------------------------------------------------------------------------------------------------- many values


def _measurements(field: Field, report: Report, again: bool) -> Iterator[Found]:
    reader = _sizes if field.many else _in_words(_Words(_GREATEST), _Words(_MASS), format_of=_measured)
    yield from reader(field, report, again)


def _measured(text: str) -> str | None:
    """A size, for readers of one."""
    return text if _SIZE.search(text) else None


def _sizes(field: Field, report: Report, again: bool) -> Iterator[Found]:
    """Every size with its unit that the findings tell, but for those of earlier examinations."""
    number = 0
    seen: set[tuple[str, str]] = set()
    for line in report.lines if again else report.told:
        if line.group in ("history", "method"):
            continue
        spans = [(cell.start, cell.end) for cell in line.cells if not _BEFORE.match(cell.header)] or [
            (line.start, line.end)
        ]
        for start, end in spans:
            for match in _SIZE.finditer(line.page.text, start, end):
                about = re.search(r"[A-Za-z-]{4,}", line.page.text[match.end() : match.end() + 30])
                key = field.normal(match.group().replace("-", " ")) or "", about.group().lower() if about else ""
                if key not in seen:
                    seen.add(key)
                    number += 1
                    yield Found(line.page, *match.span(), LIKELY, str(number))


def _variants(_field: Field, report: Report, again: bool) -> Iterator[Found]:
    """Every variant once, with its gene: in rows, in words, at another look also in the words of a clinic."""
    seen: set[str] = set()
    number = 0
    for page, start, end, confidence in _changes(report, again):
        changes = _named(page.text[start:end])
        if changes <= seen:
            continue
        seen |= changes
        number += 1
        yield Found(page, start, end, confidence, str(number))
    if not number:
        for line in report.told:
            if match := NONE_FOUND.search(line.text):
                yield Found(line.page, line.start + match.start(), line.start + match.end(), LIKELY, "1")
                return


def _named(text: str) -> set[str]:
    """The changes in a text; an unknown effect only with its gene, as many variants have it."""
    normal = variant(text) or ""
    return {change.strip(")") for change in HGVS.findall(text) if change != "p.?"} or {normal}


Change = tuple[Page, int, int, float]
"""Where a variant stands, and how sure that is."""
_NEAR = re.compile(
    rf"\b(?P<gene>{GENE})\b(?:\s*[,:(]?\s*(?:NM_\d+(?:\.\d+)?)?[\s,:(-]*)(?:{HGVS.pattern})(?:[\s,;(]*(?:{HGVS.pattern})\)?)?"
)
_CLINICAL = re.compile(rf"\b(?P<gene>{GENE})[\s:,(]+(?:{ALTERATION.pattern})")
_JOINED = re.compile(rf"\b(?P<gene>{GENE})\s*(?:::|-|/)\s*{GENE}\s+(?:gene )?(?:fusion|rearrangement)")


def _changes(report: Report, again: bool) -> Iterator[Change]:
    for line in report.told:
        in_row = list(_in_row(line))
        yield from in_row
        if in_row:
            continue
        yield from _matched(line, _NEAR, LIKELY)
        if again:
            yield from _matched(line, _CLINICAL, GUESSED)
            yield from _matched(line, _JOINED, GUESSED)
            for match in HGVS.finditer(line.text):
                yield line.page, line.start + match.start(), line.start + match.end(), GUESSED


def _in_row(line: Line) -> Iterator[Change]:
    """From the cell with the gene to the last one with a change."""
    gene = next((cell for cell in line.cells if is_gene(cell.text.split(" ")[0])), None)
    changes = [cell for cell in line.cells if HGVS.search(cell.text) or ALTERATION.fullmatch(cell.text)]
    if changes:
        is_before = gene is not None and gene.start < changes[0].start
        yield line.page, gene.start if gene and is_before else changes[0].start, changes[-1].end, SURE


def _matched(line: Line, pattern: re.Pattern[str], confidence: float) -> Iterator[Change]:
    """What is said of a gene; not what is denied."""
    for match in pattern.finditer(line.text):
        start, end = line.start + match.start(), line.start + match.end()
        if is_gene(match["gene"]) and left_out(line.page.text, start, end) is None:
            yield line.page, start, end, confidence


def _genes(_field: Field, report: Report, again: bool) -> Iterator[Found]:
    seen: set[str] = set()
    for page, start, end, confidence in _changes(report, again):
        for match in re.finditer(rf"(?<![\w.]){GENE}(?![\w.])", page.text[start:end]):
            if is_gene(match.group()) and match.group() not in seen:
                seen.add(match.group())
                yield Found(page, start + match.start(), start + match.end(), confidence, match.group())
                break


def _labs(_field: Field, report: Report, again: bool) -> Iterator[Found]:
    """The row of each test, from its result on; tests told in sentences where they give their range."""
    for line in report.told:
        if line.kind == "row":
            found = _tested(line, again)
            if found:
                yield found
            continue
        for match in _LAB_ITEM.finditer(line.text):
            name = _test_name(match["name"])
            if name and lab(match["value"]):
                yield Found(line.page, line.start + match.start("value"), line.start + match.end("value"), LIKELY, name)


def _tested(line: Line, again: bool) -> Found | None:
    cells = line.cells
    first = next((cell for cell in cells if cell.text), None)
    if first is None or not re.match(r"[A-Za-z]", first.text) or ":" in first.text:
        return None
    known = any(_RESULT.match(cell.header) for cell in cells) and (_TEST.search(first.header) or not first.header)
    if not known and not again:
        return None
    results: list[Cell] = [
        cell
        for cell in cells[1:]
        if re.match(r"[<>≤≥]?\s*\d", cell.text)
        and (_RESULT.match(cell.header) if known else not re.match(r"\d+(?:\.\d+)?\s*[-–]\s*\d", cell.text))
    ]
    if not results or results[0].start <= first.start:
        return None
    last = [cell for cell in cells if cell.text][-1]
    return Found(line.page, results[0].start, last.end, SURE if known else GUESSED, _test_name(first.text))


def _test_name(text: str) -> str:
    """A test's name as a key."""
    words = re.sub(r"(?i)^(?:and|cbc|the)\s+", "", " ".join(text.split())).strip(" .,:;-")
    return words[:60]


# ------------------------------------------------------------------------------------------------- parts of a report


def _section(field: Field, report: Report, again: bool) -> Iterator[Found]:
    """The text under one of the field's headings."""
    labels = (*field.labels, *field.more_labels) if again else field.labels
    for label in labels:
        for part in report.parts:
            if part.name == label:
                (page, start, end), *more = part.spans
                if page.text[start:end].strip():
                    yield Found(page, start, end, SURE if label in field.labels else GUESSED, more=tuple(more))


def _whole_text(_field: Field, report: Report, _again: bool) -> Iterator[Found]:
    page = next((page for page in report.pages if page.text.strip()), None)
    if page:
        yield Found(page, 0, len(page.text), SURE)


def _institution(field: Field, report: Report, again: bool) -> Iterator[Found]:
    """Beside its label, then the letterhead; at another look any short line that has the words of one."""
    never = re.compile(lexicon()["institution"]["never"])
    for line, start, end in _beside_labels(field, report, False):
        if line.page.text[line.start : start].strip(" :-•\t").lower() not in field.labels and line.kind != "row":
            continue  # the word within a sentence
        words = _SENTENCE.split(line.page.text[start:end], maxsplit=1)[0].split("\t")[0].strip(" :,-")
        if 3 <= len(words) <= 80 and not words[0].isdigit() and not never.search(words):
            first = line.page.text.index(words, start)
            yield Found(line.page, first, first + len(words), SURE)
    name = re.compile(lexicon()["institution"]["words"])
    for line in report.lines if again else report.lines[:4]:
        text = re.split(r"\s[-–|]\s|\|", line.text)[0].strip()
        if (
            line.kind != "row"
            and 4 <= len(text) <= 70
            and name.search(text)
            and not never.search(text)
            and not text.endswith(".")
        ):
            first = line.start + line.text.index(text)
            yield Found(line.page, first, first + len(text), LIKELY)


def _dates(field: Field, report: Report, again: bool) -> Iterator[Found]:
    """A date beside one of the labels; in the order of the labels, as the first is the one meant."""
    labels = (*field.labels, *field.more_labels) if again else field.labels
    ranked: list[tuple[int, Found]] = []
    for line, start, end in _beside_labels(field, report, again):
        found = _in_format(field, line.page, start, min(end, start + 40))
        if found and not _BIRTH.search(line.page.text, max(found[0] - 40, line.start), found[0]):
            before = line.page.text[max(start - 60, 0) : start].rstrip(" :=\t\n-–").lower()
            rank = next((at for at, label in enumerate(labels) if before.endswith(label)), len(labels))
            ranked.append((rank, Found(line.page, *found, GUESSED if again else SURE)))
    yield from (found for _, found in sorted(ranked, key=lambda pair: pair[0]))


def _distinct(found: Iterable[Found]) -> Iterator[Found]:
    seen: set[tuple[str, str, int]] = set()
    for one in found:
        key = (one.item, "", 0) if one.item else ("", one.text, one.page.page_num)
        if key not in seen:
            seen.add(key)
            yield one


_Reader = Callable[[Field, Report, bool], Iterator[Found]]
_READERS: Mapping[str, _Reader] = {
    "section": _section,
    "histology": _histology,
    "institution": _institution,
    "whole_text": _whole_text,
}
_BY_FORMAT: Mapping[str, _Reader] = {
    "grade": _in_words(_Words(_GRADE), _Words(_DEGREE), format_of=grade),
    "margin": _margins,
    "stage": _in_words(_Words(_PTNM), _Words(_STAGE_GROUP), format_of=stage),
    "measurement": _measurements,
    "msi": _in_words(_Words(_MSI), _Words(_ANY_MSI, is_clause=True), format_of=msi),
    "tmb": _in_words(_Words(_TMB), _Words(_ANY_TMB), format_of=tmb),
    "marker": _markers,
    "variant": _variants,
    "gene": _genes,
    "lab": _labs,
    "date": _dates,
}
