"""Passages of a report, and what a statement in them is about: this examination, an earlier one, a method.

The words that decide are rows of ``clinical.toml``, table ``statements``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from evalkit.documents.bundle import Page
from evalkit.extraction.clinical.labelled_values import StatementRole
from evalkit.extraction.clinical.report_structure import ClinicalReport, ReportLine
from evalkit.extraction.patterns import get_pattern

#: Characters of a passage, to bound the time of pattern searches.
_MAX_PASSAGE_LENGTH = 1_000


@dataclass(frozen=True)
class ReportPassage:
    """Lines of a report that belong together: a paragraph, a list line or a table row."""

    page: Page
    start: int
    """Position in ``Page.text``, as ``end``."""
    end: int
    topic: str
    """The label or heading that the passage is under, in small letters: ``margins``."""
    role: StatementRole
    """The role of statements in the passage, if their own sentence does not say otherwise."""

    @cached_property
    def text(self) -> str:
        """Text of the passage in one line, with colons for rows of dots, of the same length as on the page."""
        text = self.page.text[self.start : self.end].replace("\n", " ")
        return get_pattern("dot_leader").sub(lambda dots: f":{' ' * (len(dots.group()) - 1)}", text)

    def iter_clauses(self) -> Iterator[tuple[int, int]]:
        """Iterate over start and end of each clause in ``text``; a table row is one clause."""
        position = 0
        for clause_end in get_pattern("clause_end").finditer(self.text) if "\t" not in self.text else ():
            yield position, clause_end.start()
            position = clause_end.end()
        yield position, len(self.text)


def get_passages(report: ClinicalReport) -> tuple[ReportPassage, ...]:
    """Return the passages of a report, computed once."""
    return report.remember(get_passages, lambda: _mark_corrections(list(_iter_passages(report))))


def _iter_passages(report: ClinicalReport) -> Iterator[ReportPassage]:
    topic, is_bulleted, role = "", False, StatementRole.STATED
    pending: ReportPassage | None = None
    for line in _iter_lines_split_at_addenda(report):
        if pending and _continues(pending, line):
            pending = replace(pending, end=line.end)
            continue
        if pending:
            yield pending
        role = _find_line_role(line, role)
        label_match, last_label_match = (
            get_pattern("passage_label").match(line.text),
            get_pattern("last_label").search(line.text),
        )
        starts_subject = get_pattern("statement_subject").match(line.text)
        if line.kind == "heading" or starts_subject or (is_bulleted and not get_pattern("bullet").match(line.text)):
            topic, is_bulleted = line.text.lower() if line.kind == "heading" else "", False
        elif topic and not is_bulleted:
            is_bulleted = bool(get_pattern("bullet").match(line.text))
        own_topic = " ".join((topic, label_match["label"].lower() if label_match else "", *line.column_headers))
        own_role = StatementRole.ASIDE if line.group in ("history", "method") else role
        pending = ReportPassage(line.page, line.start, line.end, own_topic, own_role)
        if last_label_match:
            topic, is_bulleted = last_label_match["label"].lower(), False
    if pending:
        yield pending


def _iter_lines_split_at_addenda(report: ClinicalReport) -> Iterator[ReportLine]:
    for line in report.body_lines:
        cuts = [0, *(match.end() for match in get_pattern("inline_addendum").finditer(line.text)), len(line.text)]
        for first, last in pairwise(cuts):
            yield replace(line, start=line.start + first, end=line.start + last) if len(cuts) > 2 else line


def _continues(passage: ReportPassage, line: ReportLine) -> bool:
    """Return True if a line goes on with the passage's sentence."""
    return (
        line.kind == "text"
        and passage.page is line.page
        and line.end - passage.start < _MAX_PASSAGE_LENGTH
        and "\t" not in passage.text
        and passage.text.rstrip()[-1:] not in ".:"
        and not get_pattern("statement_addendum_line").match(line.text)
        and re.match(r"\s*[a-z(0-9]", line.text) is not None
        and get_pattern("statement_subject").match(line.text) is None
    )


def _find_line_role(line: ReportLine, role: StatementRole) -> StatementRole:
    if get_pattern("statement_addendum_line").match(line.text):
        return StatementRole.ADDED
    if get_pattern("statement_superseded_line").match(line.text):
        return StatementRole.SUPERSEDED
    is_new_part = line.kind == "heading" and get_pattern("statement_first_part").match(line.text)
    return StatementRole.STATED if is_new_part else role


def _mark_corrections(passages: Sequence[ReportPassage]) -> tuple[ReportPassage, ...]:
    """Mark an addendum's statements as corrections if any of them says that it corrects something."""
    is_correction = any(
        passage.role is StatementRole.ADDED and get_pattern("statement_correction").search(passage.text)
        for passage in passages
    )
    if not is_correction:
        return tuple(passages)
    return tuple(
        replace(passage, role=StatementRole.CORRECTED) if passage.role is StatementRole.ADDED else passage
        for passage in passages
    )


def find_statement_role(report: ClinicalReport, page: Page, start: int, end: int) -> StatementRole:
    """Find the role of the statement ``page.text[start:end]`` from the words around it.

    Text outside the report's body, as in a page's header, is STATED.
    """
    passages = get_passages(report)
    number = (
        bisect_right(passages, (page.page_num, start), key=lambda passage: (passage.page.page_num, passage.start)) - 1
    )
    if number < 0 or passages[number].page is not page or start >= passages[number].end:
        return StatementRole.STATED
    passage = passages[number]
    if passage.role in (StatementRole.ASIDE, StatementRole.SUPERSEDED):
        return passage.role
    text, first, last = passage.text, start - passage.start, min(end, passage.end) - passage.start
    cuts = [0, *(cut.end() for cut in get_pattern("passage_sentence_end").finditer(text)), len(text)]
    sentence_start = max(cut for cut in cuts if cut <= first)
    sentence_end = min((cut for cut in cuts if cut >= last), default=len(text))
    before, after = text[sentence_start:first], text[last:sentence_end]
    roles = (
        ("superseded_before", StatementRole.SUPERSEDED, before),
        ("superseded_after", StatementRole.SUPERSEDED, after),
        ("aside", StatementRole.ASIDE, text[sentence_start:sentence_end]),
        (
            "aside_before",
            StatementRole.ASIDE,
            f"{passage.topic if sentence_start == 0 else ''} {text[sentence_start:last]}",
        ),
        ("aside_from", StatementRole.ASIDE, text[first:sentence_end]),
        ("aside_after", StatementRole.ASIDE, after),
        ("correction", StatementRole.CORRECTED, text[sentence_start:sentence_end]),
    )
    return next((role for name, role, words in roles if get_pattern(f"statement_{name}").search(words)), passage.role)
