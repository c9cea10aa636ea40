"""Count of the results that a report prints, compared with extracted fields.

This is the judge of the fields' completeness: it shares no list and no pattern with the programs that extract fields, so
that what they cannot read can still be missed (contract rulings 20c and 27a). The rules are rows of ``item_count.toml``.
Each item has a role: only items that are the patient's own present results must be in a field.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise, product
from typing import Any, NamedTuple

from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import group_by, split_into_runs
from evalkit.core.package_tables import load_package_table
from evalkit.documents.bundle import Page
from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.extraction.field_template import FieldNeed, FieldTemplate, TemplateField
from evalkit.extraction.formats import normalise_value
from evalkit.extraction.optimizer import EvaluationIssue
from evalkit.extraction.printed_rows import PrintedCell, PrintedPage, PrintedRow, find_columns

PRESENT = "present"
#: A statement longer than this is cut, so that no pattern searches far.
_MAX_STATEMENT = 600
#: A line of at least this many characters continues on the next line unless its sentence ends.
_WRAPPED_LINE = 60
#: Names of one variant are at most this many characters apart: ``c.35G>A; p.Gly12Asp``.
_VARIANT_SPAN = 160
#: A line of at most this many characters above an item may be its label.
_LABEL = 40
_SECTION_KINDS = ("impression", "findings")
#: A section is in a value if its first letters are, at most so many.
_FIRST_LETTERS = 24
#: Issues quote at most this many characters of an item.
_MAX_QUOTE = 80
_AMINO_ACIDS = {
    "Ala": "A", "Arg": "R", "Asn": "N", "Asp": "D", "Cys": "C", "Gln": "Q", "Glu": "E", "Gly": "G", "His": "H", "Ile": "I",
    "Leu": "L", "Lys": "K", "Met": "M", "Phe": "F", "Pro": "P", "Ser": "S", "Thr": "T", "Trp": "W", "Tyr": "Y", "Val": "V",
    "Ter": "*", "X": "*",
}  # fmt: skip
#: The amino acid of each codon, in the standard genetic code.
_CODONS = dict(
    zip(
        map("".join, product("TCAG", repeat=3)),
        "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG",
        strict=True,
    )
)
_AMINO_ACID = re.compile("|".join(_AMINO_ACIDS))
_MISREAD_DIGITS = str.maketrans("OoIlSB", "001158")


@dataclass(frozen=True, slots=True)
class CountedItem:
    """One result that a report prints, such as a variant, a margin or a stain."""

    kind: str
    """A key of ``[kinds]`` in ``item_count.toml``: ``variant``, ``margin``, ``biomarker`` …"""
    text: str
    """The page's words."""
    page: int
    start: int
    """Start in the page's text."""
    end: int
    role: str
    """``present``, or why it is no present result: ``history``, ``family``, ``method``, ``criterion`` …"""
    name: str = ""
    """The stain, the grading system, the laboratory test, or the way a variant is written."""
    state: str = ""
    """Statement of the item in normal form: ``involved``, ``positive``, ``2`` … Empty if it has no state."""


class _Statement(NamedTuple):
    start: int
    text: str
    small_letters: str


class _Section(NamedTuple):
    start: int
    role: str
    title: str


class _Reading(NamedTuple):
    name: str
    state: str
    start: int
    end: int


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    name: str
    state: str | None
    states: Sequence[tuple[str, re.Pattern[str]]]
    within: re.Pattern[str] | None
    is_shared: bool
    """True if one state may belong to several names: "ER and PR positive"."""


class _Role(NamedTuple):
    role: str
    kinds: frozenset[str]
    before: re.Pattern[str] | None
    after: re.Pattern[str] | None
    around: re.Pattern[str] | None


class _Tables(NamedTuple):
    kinds: Mapping[str, Mapping[str, Any]]
    rules: Mapping[str, Sequence[_Rule]]
    roles: Sequence[_Role]
    headings: re.Pattern[str]
    heading_roles: Sequence[tuple[str, re.Pattern[str]]]
    stains: Sequence[tuple[str, re.Pattern[str]]]
    stain: re.Pattern[str]
    lesion: re.Pattern[str]


@cache
def _get_pattern(name: str) -> re.Pattern[str]:
    return re.compile(load_package_table("evalkit.extraction", "item_count.toml")["patterns"][name])


@cache
def _load_tables() -> _Tables:
    table = load_package_table("evalkit.extraction", "item_count.toml")
    words: dict[str, str] = {}

    def compile_pattern(text: str) -> re.Pattern[str]:
        return re.compile(re.sub(r"<<(\w+)>>", lambda match: words[match[1]], text), re.IGNORECASE | re.MULTILINE)

    for name, text in table["words"].items():
        words[name] = re.sub(r"<<(\w+)>>", lambda match: words[match[1]], text)
    states = {
        name: [(state, compile_pattern(pattern)) for state, pattern in rows] for name, rows in table["states"].items()
    }
    rules: dict[str, list[_Rule]] = {kind: [] for kind in table["kinds"]}
    for row in table["rule"]:
        within = compile_pattern(row["within"]) if "within" in row else None
        pattern = compile_pattern(row["pattern"])
        rules[row["kind"]].append(
            _Rule(
                pattern,
                row.get("name", ""),
                row.get("state"),
                states.get(row.get("states"), ()),
                within,
                "name" in pattern.groupindex,
            )
        )
    heading_rows = [(row["role"], row["heading"]) for row in table["role"] if "heading" in row]
    known_headings = "|".join(f"(?:{heading})" for _, heading in heading_rows)
    return _Tables(
        table["kinds"],
        rules,
        [
            _Role(
                row["role"],
                frozenset(row.get("kinds", table["kinds"])),
                *(compile_pattern(row[place]) if place in row else None for place in ("before", "after", "around")),
            )
            for row in table["role"]
            if "heading" not in row
        ],
        re.compile(
            rf"^[ \t]*(?:\d{{1,2}}[.)]?[ \t]+)?(?=[^\n:]{{3,60}}(?::|$))((?i:{known_headings})|[A-Z][A-Z /&()-]{{4,50}})[ \t]*(?::|\.?$)",
            re.MULTILINE,
        ),
        [(role, re.compile(heading, re.IGNORECASE)) for role, heading in heading_rows],
        states["stains"],
        compile_pattern(r"\b<<stain>>\b"),
        compile_pattern(r"\b<<lesion>>\b"),
    )


def count_items(pages: Iterable[Page], template: FieldTemplate | None = None) -> tuple[CountedItem, ...]:
    """Count the results that the pages of one report print, in page order.

    ``template``: count only the kinds that its fields ask for; None: all.
    """
    items: list[CountedItem] = []
    section = _Section(0, PRESENT, "")
    for page in pages:
        statements = _split_statements(page.text)
        text = "".join(statement.text for statement in statements)
        sections = [section, *_find_sections(text)]
        section = sections[-1]._replace(start=0)
        for kind, table in _load_tables().kinds.items():
            if template and _get_asking_field(table, template) is None:
                continue
            rows = list(_count_result_rows(page, sections)) if kind == "laboratory" else []
            for reading in _read_items(kind, statements, sections):
                role = _get_section(sections, reading.start).role
                is_in_row = any(first <= reading.start < last for first, last, _ in rows)
                if not is_in_row or reading.state.isalpha():
                    items.append(_build_item(kind, page, text, reading, role))
            items += [item for *_, row_items in rows for item in row_items]
    return tuple(items)


def _build_item(kind: str, page: Page, text: str, reading: _Reading, section_role: str) -> CountedItem:
    # A stain, or a margin that is called positive, was not seen with the naked eye.
    # "Negative: S100" is no heading of genes without a variant.
    if section_role in ("gross", "negative") and (
        kind == "biomarker"
        or _load_tables().kinds[kind].get("is_notice")
        or "positive" in text[reading.start : reading.end].lower()
    ):
        section_role = PRESENT
    return CountedItem(
        kind,
        " ".join(page.text[reading.start : reading.end + _MAX_QUOTE * (kind in _SECTION_KINDS)].split()),
        page.page_num,
        reading.start,
        reading.end,
        section_role if section_role != PRESENT else _find_role(kind, text, reading),
        reading.name or _find_subject(kind, text, reading),
        reading.state,
    )


def _count_result_rows(page: Page, sections: Sequence[_Section]) -> Iterator[tuple[int, int, list[CountedItem]]]:
    """Count the numbers of each row of a table of results.

    Each row has its start, its end and its items.

    Numbers under a heading of limits or of earlier results are no items.
    """
    printed_rows = PrintedPage(page).split_into_rows(0, len(page.text))
    for run in split_into_runs(
        printed_rows,
        lambda run, row: len(row) > 1 and len(run[-1]) > 1 and not (_list_numbers(run[-1]) and not _list_numbers(row)),
    ):
        rows = [row for row in run if _list_numbers(row)]
        header = next((row for row, below in pairwise(run) if rows and below is rows[0]), ())
        units = [[cell.text for cell in row if _get_pattern("unit_cell").fullmatch(cell.text)] for row in rows]
        if not any(units) and not any(_get_pattern("range_cell").search(cell.text) for row in rows for cell in row):
            continue
        columns = find_columns(header, rows)
        headings = {cell: cells[0].text for cells in columns if cells[0] for cell in cells[1:] if cell}
        dates = [normalise_value(heading, "date") or "" for heading in headings.values()]
        for row, row_units in zip(rows, units, strict=True):
            numbers = _list_numbers(row)
            others = [cell for cell in row if cell.text not in row_units and cell not in dict(numbers)]
            names = [cell for cell in others if _get_pattern("name_cell").match(cell.text)]
            items = []
            for cell, number in numbers:
                heading = headings.get(cell, "")
                is_earlier = "" < (normalise_value(heading, "date") or "") < max(dates, default="")
                if not names or is_earlier or _get_pattern("other_column").search(heading):
                    continue
                items.append(
                    CountedItem(
                        "laboratory",
                        " ".join([cell.text, *row_units]),
                        page.page_num,
                        cell.start,
                        cell.end,
                        _get_section(sections, cell.start).role,
                        " ".join(name.text for name in names),
                        "".join(number.split()),
                    )
                )
            yield row[0].start, row[-1].end, items


def _list_numbers(row: PrintedRow) -> list[tuple[PrintedCell, str]]:
    """List the cells of a row that are results: no ranges, and limits only alone."""
    numbers = [(cell, match[1]) for cell in row if (match := _get_pattern("number_cell").match(cell.text))]
    exact = [(cell, number) for cell, number in numbers if number[0] not in "<>"]
    return exact or numbers[:1]


def _split_statements(text: str) -> list[_Statement]:
    """Split a page's text into statements; joined, they have the length of the text."""
    text = _get_pattern("leader").sub(lambda dots: ":".ljust(len(dots[0])), text)
    lines = text.split("\n")
    parts = []
    for line, next_line in zip(lines, [*lines[1:], ""], strict=True):
        is_wrapped = next_line.lstrip()[:1].islower() or (
            len(line) >= _WRAPPED_LINE
            and not line.rstrip().endswith((".", ":", ";"))
            and not _get_pattern("line_start").match(next_line)
            and not _load_tables().headings.match(next_line)
        )
        parts += [
            _get_pattern("statement_end").sub("\n", line),
            " " if is_wrapped and "\t" not in line else "\n",
        ]
    statements = "".join(parts)[: len(text)].splitlines(keepends=True)
    pieces = [
        statement[start : start + _MAX_STATEMENT]
        for statement in statements
        for start in range(0, len(statement), _MAX_STATEMENT)
    ]
    starts = accumulate(map(len, pieces), initial=0)
    return [_Statement(start, piece, piece.lower()) for start, piece in zip(starts, pieces, strict=False)]


def _find_sections(text: str) -> Iterator[_Section]:
    """Find the headings, and what the items under each of them are."""
    tables = _load_tables()
    for match in tables.headings.finditer(text):
        title = match[1].strip()
        role = next((role for role, heading in tables.heading_roles if heading.fullmatch(title)), PRESENT)
        yield _Section(match.start(), role, title)


def _get_section(sections: Sequence[_Section], position: int) -> _Section:
    return sections[bisect_right(sections, position, key=lambda section: section.start) - 1]


def _read_items(
    kind: str, statements: Iterable[_Statement], sections: Sequence[_Section] = (_Section(0, PRESENT, ""),)
) -> list[_Reading]:
    """Read a kind's items in the statements that have one of its words."""
    tables = _load_tables()
    readings: list[_Reading] = []
    for statement in statements:
        if any(word in statement.small_letters for word in tables.kinds[kind]["words"]):
            title = _get_section(sections, statement.start).title
            rules = [rule for rule in tables.rules[kind] if not rule.within or rule.within.search(title)]
            readings += _apply_rules(rules, statement)
    return readings


def _apply_rules(rules: Iterable[_Rule], statement: _Statement) -> list[_Reading]:
    """Apply rules in order; later rules do not see the states that earlier rules read."""
    readings: list[_Reading] = []
    text = statement.text
    for rule in rules:
        hidden_text = text
        for match in rule.pattern.finditer(text):
            if rule.state == "" and _canonicalise_stain(match["name"]) in {reading.name for reading in readings}:
                continue  # the statement has its result, or names it twice
            readings += _build_readings(rule, match, statement.start)
            group = next((name for name in ("state", "more") if match.groupdict().get(name)), 0)
            first, last = match.span(group)
            if not rule.is_shared:
                hidden_text = hidden_text[:first] + "#" * (last - first) + hidden_text[last:]
        text = hidden_text
    return sorted(readings, key=lambda reading: reading.start)


def _build_readings(rule: _Rule, match: re.Match[str], offset: int) -> Iterator[_Reading]:
    groups = match.groupdict()
    state_text = " ".join((groups.get("state") or "").split())
    state = rule.state
    if state is None:
        state = next(
            (state for state, pattern in rule.states if pattern.fullmatch(state_text)),
            state_text.replace(" ", "") if state_text.isdigit() or not rule.states else "",
        )
    if groups.get("names"):
        for stain in _load_tables().stain.finditer(match["names"]):
            start = offset + match.start("names") + stain.start()
            yield _Reading(_canonicalise_stain(stain[0]), state, start, start + len(stain[0]))
    else:
        name = _canonicalise_stain(groups["name"] or "") if "name" in groups else rule.name
        end = match.end("state") if groups.get("state") else 0
        start = match.end("test") if groups.get("test") else match.start()
        yield _Reading(name, state, offset + start, offset + max(match.end(), end))


@cache_document_text(1_000)
def _canonicalise_stain(name: str) -> str:
    known_name = next((known for known, pattern in _load_tables().stains if pattern.fullmatch(name)), name)
    return re.sub(r"\W+", "", known_name).upper()


def _find_subject(kind: str, text: str, reading: _Reading) -> str:
    """Return a result's test, a size's lesion or a heading's first words, else empty."""
    if kind in _SECTION_KINDS:
        first_line, _, next_line = text[reading.end : reading.end + _MAX_STATEMENT].lstrip().partition("\n")
        if _get_pattern("category").fullmatch(first_line):
            return ""
        # The first row of a table may be its header, which is in no value.
        return _squeeze(next_line if "\t" in first_line else first_line)[:_FIRST_LETTERS]
    first, last = text.rfind("\n", 0, reading.start) + 1, text.find("\n", reading.end)
    if kind == "laboratory":
        match = _get_pattern("laboratory_test").search(text, max(first, reading.start - _MAX_QUOTE), reading.start)
        return match[1].strip() if match else ""
    if kind != "measurement":
        return ""
    end = min(len(text) if last < 0 else last, reading.end + _MAX_STATEMENT)
    lesion = _load_tables().lesion.search(text, max(first, reading.start - _MAX_STATEMENT), end)
    return lesion[0] if lesion else ""


def _find_role(kind: str, text: str, reading: _Reading) -> str:
    first, last = text.rfind("\n", 0, reading.start) + 1, text.find("\n", reading.end)
    last = len(text) if last < 0 else last
    if (
        not text[first : reading.start].strip()
        and first - (start := text.rfind("\n", 0, max(first - 1, 0)) + 1) <= _LABEL
    ):
        first = start  # the line above may be the label
    first, last = max(first, reading.start - _MAX_STATEMENT), min(last, reading.end + _MAX_STATEMENT)
    before, after = " ".join(text[first : reading.start].split("\n")), text[reading.end : last]
    return next(
        (
            role.role
            for role in _load_tables().roles
            if kind in role.kinds
            and (
                (role.before and role.before.search(before))
                or (role.after and role.after.search(after))
                or (role.around and role.around.search(text, first, last))
            )
        ),
        PRESENT,
    )


def find_unread_items(
    items: Sequence[CountedItem], fields: Mapping[str, FieldValue], template: FieldTemplate
) -> tuple[EvaluationIssue, ...]:
    """Find results that the report prints but no field contains, as issues.

    ``field`` of an issue is the name of the template's field that asks for the item: ``margins``, ``ihcMarkers``. Issues
    of optional fields are minor.
    """
    issues: list[EvaluationIssue] = []
    for kind, field, kind_items, values in _iter_asked_kinds(items, fields, template):
        unread_items = _list_unread_items(kind, kind_items, values)
        issues += [
            EvaluationIssue(
                "minor" if field.need is FieldNeed.OPTIONAL else "major",
                field.name,
                f'The report prints the {_load_tables().kinds[kind]["noun"]} "{_shorten(item.text)}" on page {item.page}, '
                "which is in no field",
                f"Read page {item.page}, and add it to {field.name}, or confirm that it does not belong there",
                (item.page, item.start, item.end),
            )
            for item in (unread_items if field.many else unread_items[:1])
        ]
    return tuple(issues)


def find_doubted_values(
    items: Sequence[CountedItem], fields: Mapping[str, FieldValue], template: FieldTemplate
) -> tuple[EvaluationIssue, ...]:
    """Find values that the report contradicts, or prints only in another role.

    For example a relative's variant, or a former size. ``field`` of an issue is the name of the value: ``margins``,
    ``ihcMarkers.ER``.
    """
    return tuple(
        EvaluationIssue("major", name, description)
        for kind, _, kind_items, values in _iter_asked_kinds(items, fields, template)
        for name, value in values.items()
        if value.is_found and (description := _describe_doubt(kind, kind_items, name, value))
    )


def _get_asking_field(kind_table: Mapping[str, Any], template: FieldTemplate) -> TemplateField | None:
    return next(filter(None, map(template.get_field, kind_table["field"].split())), None)


def _iter_asked_kinds(
    items: Sequence[CountedItem], fields: Mapping[str, FieldValue], template: FieldTemplate
) -> Iterator[tuple[str, TemplateField, list[CountedItem], dict[str, FieldValue]]]:
    """Yield each counted kind a field asks for: kind, field, items, field's values."""
    for kind, kind_items in group_by(items, lambda item: item.kind).items():
        if field := _get_asking_field(_load_tables().kinds[kind], template):
            yield (
                kind,
                field,
                list(kind_items),
                {
                    name: value
                    for name, value in fields.items()
                    if name.partition(".")[0] == field.name
                    and value.value
                    and value.status is not FieldStatus.NOT_PRESENT
                },
            )


def _list_unread_items(kind: str, items: Sequence[CountedItem], values: Mapping[str, FieldValue]) -> list[CountedItem]:
    """List the present items that no value holds, each variant, stain or size once."""
    silent = _load_tables().kinds[kind].get("silent", ())
    unread: dict[str, CountedItem] = {}
    # The names of one variant: ``c.35G>A`` and the ``p.Gly12Asp`` after it.
    groups = split_into_runs(
        items,
        lambda group, item: (
            kind == "variant"
            and group[0].page == item.page
            and item.start - group[-1].end < _VARIANT_SPAN
            and item.name not in {"event", *(other.name for other in group)}
            and group[0].name != "event"
        ),
    )
    for group in groups:
        present = [
            item
            for item in group
            if item.role == PRESENT
            and not {item.name, item.state} & {*silent, *_load_tables().kinds[kind].get("parts", ())}
            and (item.name or kind not in ("measurement", "laboratory"))
        ]
        if present and not any(_is_in_value(item, name, value) for item in group for name, value in values.items()):
            unread.setdefault(_make_key(present[0]), present[0])
    if kind == "sheets":
        numbers = [int(item.name) for item in items]
        return [item for item in items[-1:] if 1 in numbers and max(numbers) < int(item.state)]
    if kind == "announcement":
        return [item for item in unread.values() if int(item.state) > len(values)]
    return list(unread.values())


def _make_key(item: CountedItem) -> str:
    """Return the key by which items are the same.

    A variant's letters and digits, a size in millimetres, or a stain.
    """
    if item.kind == "variant":
        return item.state if item.name == "event" else _canonicalise_variant(item.text)
    if item.kind == "measurement":
        return str(_measure(item.text))
    if item.kind == "laboratory":
        return f"{item.name} {item.state}".lower()
    return item.name if item.kind == "biomarker" else item.kind


def _is_in_value(item: CountedItem, name: str, value: FieldValue) -> bool:
    readings = (value.value, value.raw, *value.candidates, *(place.value for place in value.places))
    text, value_name, key = "\n".join(filter(None, readings)), name.partition(".")[2], _make_key(item)
    match item.kind:
        case "variant" if item.name == "event":
            return key in re.findall(r"[A-Z0-9]+", text)
        case "variant":
            return re.sub(r"^(\D?\d+)FS.*", r"\1", key) in _canonicalise_variant(text)
        case "biomarker":
            return key == _canonicalise_stain(value_name)
        case "measurement":
            return set(_measure(item.text)) <= set(_measure(text))
        case "laboratory":
            tests = [set(re.findall(r"[a-z]{2,}|[a-z]\d*", test.lower())) for test in (item.name, value_name)]
            return bool(tests[0] & tests[1]) and item.state.strip("<> ").lower() in re.findall(
                r"\d+(?:[.,]\d+)*|[a-z]+", text.lower()
            )
        case _:
            return not _load_tables().kinds[item.kind].get("is_notice") and item.name in (
                _squeeze(text) if item.kind in _SECTION_KINDS else item.name
            )


def _squeeze(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


def _canonicalise_variant(text: str) -> str:
    """Return a variant in one spelling: ``p.(Gly12Asp)`` is ``G12D``."""
    short = _AMINO_ACID.sub(lambda match: _AMINO_ACIDS[match[0]], text)
    short = re.sub(
        r"(?<=\d)[OoIlSB]+(?=[\d>_+-])|(?<=\d)[OoIlSB]{2,}", lambda match: match[0].translate(_MISREAD_DIGITS), short
    )
    return re.sub(
        r"\b[cgmnp]\s?[.,:]|^[A-Z][A-Z0-9]+\s+(?=\(?[A-Z]\d)|[\s().,:-]", "", short, flags=re.IGNORECASE
    ).upper()


def _measure(text: str) -> tuple[float, ...]:
    """Return a size in millimetres; a number without a unit takes the next unit."""
    sizes: list[float] = []
    scale = 1.0
    for number, unit in reversed(_get_pattern("size").findall(text)):
        scale = {"m": 1.0, "c": 10.0}[unit[0].lower()] if unit else scale
        sizes.append(round(float(number.replace(",", ".")) * scale, 2))
    return tuple(reversed(sizes))


def _describe_doubt(kind: str, items: Sequence[CountedItem], name: str, value: FieldValue) -> str:
    """Describe what contradicts a value; empty if nothing does."""
    shown_value = f'"{_shorten(value.value)}"'
    check = _VALUE_CHECKS.get(kind)
    if check and check(items, value.value or ""):
        return f"The value {shown_value} on page {value.page} {_load_tables().kinds[kind]['doubt']}"
    if item := _find_contradiction(kind, items, name, value):
        return (
            f"The value is {shown_value} on page {value.page}, but the report also prints "
            f'"{_shorten(item.text)}" on page {item.page}'
        )
    matches = [item for item in items if _is_in_value(item, name, value)]
    if kind == "date":
        matches = [item for item in items if _squeeze(item.text) in _squeeze(value.raw or "")]
        matches *= all(item.role in (PRESENT, "birth") for item in matches)
    if (
        kind in ("variant", "biomarker", "measurement", "date")
        and matches
        and all(item.role != PRESENT for item in matches)
    ):
        return f"The report prints {shown_value} on page {matches[0].page} only as {matches[0].role}"
    return ""


def _has_side_of_its_own(items: Sequence[CountedItem], text: str) -> bool:
    """Return True if only this text names a side, or gives a lesion or size one."""
    own = Counter((reading.name, reading.state) for reading in _read_items("side", _split_statements(text)))
    counts = Counter((item.name, item.state) for item in items)
    sides = {state for name, state in own if name == "side"}
    rest = {state for name, state in counts - own if name != "side"}
    return (bool(rest) and "both" not in sides and bool(sides) and sides.isdisjoint(rest)) or any(
        counts[name, state] <= count
        and (
            len(sides) == 1 and ("side", "both") not in counts
            if name == "side"
            else any(counts[name, side] > own[name, side] for side in ("left", "right"))
        )
        for (name, state), count in own.items()
    )


def _says_the_contrary(items: Sequence[CountedItem], text: str) -> bool:
    """Return True if a text affirms what all other sentences deny, or the reverse."""
    own = Counter((reading.name, reading.state) for reading in _read_items("finding", _split_statements(text)))
    rest = Counter((item.name, item.state) for item in items) - own
    return any(
        rest[name, opposite] and not rest[name, state] and not own[name, opposite]
        for name, state in own
        for opposite in {"seen", "absent"} - {state}
    )


def _lacks_tumor(items: Sequence[CountedItem], text: str) -> bool:
    """Return True if the report names another tumor, or names it more exactly.

    A benign one must share a word with the value: follicular adenoma, follicular carcinoma.
    """
    own_words = re.findall(r"[\w-]+", text.lower())
    return any(
        not all(any(own_word.endswith(word) for own_word in own_words) for word in words)
        and (item.name != "benign" or not {*own_words}.isdisjoint(words[:-1]))
        for item in items
        if item.role == PRESENT
        for words in [item.text.lower().split()]
    )


def _is_impossible_variant(_items: Sequence[CountedItem], text: str) -> bool:
    """Return True if a variant's changes cannot belong together.

    It has two changes of a level, or its coding change cannot make its protein change.

    >>> [_is_impossible_variant((), f"KRAS c.35G>A p.{change}") for change in ("Gly12Asp", "(G12D)", "Gly12Val", "Gly13Asp")]
    [False, False, True, True]
    """
    short = _AMINO_ACID.sub(lambda match: _AMINO_ACIDS[match[0]], text)
    coding = re.search(r"\bc\.(\d+)([ACGT])>([ACGT])", short)
    protein = re.search(r"[ .(]([A-Z])(\d+)([A-Z*])(?!\w)", short)
    if not (coding and protein):
        return False
    codon, place = divmod(int(coding[1]) - 1, 3)
    return any(len({*re.findall(rf"\b{level}\.\(?[\w*]+", short)}) > 1 for level in "cp") or not (
        codon + 1 == int(protein[2])
        and any(
            (bases[place], amino_acid) == (coding[2], protein[1])
            and _CODONS[f"{bases[:place]}{coding[3]}{bases[place + 1 :]}"] == protein[3]
            for bases, amino_acid in _CODONS.items()
        )
    )


def _has_contradicted_flag(_items: Sequence[CountedItem], text: str) -> bool:
    """Return True if a result is called high or low, and its range says otherwise.

    >>> [_has_contradicted_flag((), text) for text in ("118 L mg/dL (70-99)", "118 H mg/dL (70-99)", "<5 L (10-20)", "7 (8-9)")]
    [True, False, False, False]
    """
    match = re.match(r"[<>]?([\d.]+) (?:H+|(L+))\b.*\(([\d.]+)-([\d.]+)\)$", text)
    return match is not None and (
        float(match[1]) >= float(match[3]) if match[2] else float(match[1]) <= float(match[4])
    )


#: Checks of a value by the kind of its items; ``doubt`` of the kind says what is in doubt.
_VALUE_CHECKS: Mapping[str, Callable[[Sequence[CountedItem], str], bool]] = {
    "promise": lambda _items, text: bool(_read_items("promise", _split_statements(text))),
    "side": _has_side_of_its_own,
    "finding": _says_the_contrary,
    "diagnosis": _lacks_tumor,
    "category": lambda items, text: (
        "T" in text and any(item.role == PRESENT and item.name not in text for item in items)
    ),
    # The day may be first, as in 03/04/2024.
    "added_date": lambda items, date: any(
        item.role == PRESENT
        and min(other := normalise_value(item.text, "date") or "", f"{other[:5]}{other[8:]}-{other[5:7]}") > date
        for item in items
    ),
    **dict.fromkeys(
        ("headline", "depth"), lambda items, _text: len({item.state for item in items if item.role == PRESENT}) > 1
    ),
    "variant": _is_impossible_variant,
    "laboratory": _has_contradicted_flag,
    **dict.fromkeys(_SECTION_KINDS, lambda _items, text: _get_pattern("cut_end").search(text) is not None),
}


def _find_contradiction(kind: str, items: Sequence[CountedItem], name: str, value: FieldValue) -> CountedItem | None:
    """Return the first present item whose state the value cannot have, else None."""
    table = _load_tables().kinds[kind]
    prefix = table.get("prefix", "") or f"{name.partition('.')[2]}: "
    own = _read_items(kind, _split_statements(f"{prefix}{value.value}"))
    quoted = _read_items(kind, _split_statements(f"{value.quote}\n{value.raw}"))
    if len({reading.state for reading in quoted}) == 1 and _get_pattern("replaces").search(value.quote or ""):
        return None
    if kind == "grade":
        # The words around the value name its grading system.
        states = {reading.state for reading in own}
        own = [reading for reading in quoted if reading.state in states] or quoted or own
    parts = [item for item in items if item.role in (PRESENT, "part") and item.name in table.get("parts", ())]
    if parts and own and max(part.state for part in parts) < max(reading.state for reading in own):
        return parts[0]
    for reading in filter(lambda reading: reading.state, own):
        is_number = reading.state[:1].isdigit()
        opposites = table.get("conflicts", {}).get(reading.state) or table.get("conflicts", {}).get("*", ())
        for item in items:
            if (
                item.role == PRESENT
                and item.name in (reading.name, *table.get("silent", ()), *table.get("parts", ()))
                and item.state != reading.state
                and (is_number == item.state[:1].isdigit() if opposites == "*" else item.state in opposites)
                and (item.name not in table.get("parts", ()) or item.state > reading.state)
            ):
                return item
    return None


def _shorten(text: str | None) -> str:
    words = " ".join((text or "").split())
    return words if len(words) <= _MAX_QUOTE else f"{words[: _MAX_QUOTE - 1]}…"
