"""The embedded builder: a statement becomes a template that reads it.

It tries a small number of meanings for what was surveyed (which column is what, what an amount without a sign is, how
dates are to be read), lets ``apply`` read the statement with each, and keeps the one whose sums meet best. A statement
whose printed sums do not add up keeps them so: the report says it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product, takewhile
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evalkit.documents.bundle import Box, DocumentBundle
from evalkit.errors import DocumentError
from evalkit.statements.apply import Statement, apply_to_lines, find_period
from evalkit.statements.dates import FORMATS, dated, read_day
from evalkit.statements.lines import Line, lines_of
from evalkit.statements.reconcile import Reconciliation, reconcile
from evalkit.statements.report import Category, Severity
from evalkit.statements.survey import Stack, Survey, amounts_in, literal, period_labels, survey
from evalkit.statements.template import (
    Amounts,
    Column,
    ColumnName,
    Dates,
    Identity,
    PageKind,
    Region,
    Rows,
    Section,
    StatementTemplate,
    Total,
    read_template,
)
from evalkit.statements.template import Reconciliation as Printed
from evalkit.statements.wording import matches, wording


class _Given(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ConsolidatedIssue(_Given):
    """An issue of either reviewer or of both."""

    issue_id: str
    severity: Severity
    category: Category
    message: str
    suggested_fix: str = ""
    reported_by: tuple[str, ...] = ()


class RetryInput(_Given):
    """What a builder is told when its template was rejected: specification 004, "Retry Input"."""

    retry_attempt: int = Field(ge=2)
    prior_template: str
    """As TOML."""
    reviewer_feedback: Mapping[str, Any] = {}
    consolidated_issues: tuple[ConsolidatedIssue, ...] = ()
    convergence_status: str = ""
    max_attempts_remaining: int = Field(0, ge=0)

    def complaints(self) -> dict[Category, float]:
        """What is complained about, 0..1 by its worst issue; also beyond the consolidated issues, which are capped.

        A reviewer who passed the template does not ask for another one.
        """
        told = [(one.category, one.severity) for one in self.consolidated_issues]
        for feedback in self.reviewer_feedback.values():
            if not feedback.get("pass", False):
                told += [(issue["category"], issue["severity"]) for issue in feedback.get("issues", ())]
        weights: dict[Category, float] = {}
        for category, severity in told:
            weights[category] = max(weights.get(category, 0.0), _WEIGHTS[severity])
        return weights


@dataclass(frozen=True)
class Built:
    """A template, and what it reads in the statement that it was built from."""

    template: StatementTemplate
    statement: Statement
    reconciliation: Reconciliation
    tried: int
    """How many meanings were tried."""


@dataclass(frozen=True)
class _Meaning:
    """What the surveyed things are taken for."""

    columns: tuple[ColumnName, ...]
    """One for each stack of amounts."""
    amounts: Amounts
    formats: tuple[str, ...]
    date_once: bool
    gap: float
    order: Literal["oldest_first", "newest_first"]
    is_wide: bool
    """The regions reach as far as no other line stands."""
    prior: float
    """How much speaks for it before any sum is made."""


#: A continuation's distance in heights of a word; the second is tried after a complaint, and where lines are wide apart.
_GAPS = (2.2, 3.4)
#: For and against a meaning. A sum that meets or not says more than a title, a title more than a habit.
_SUM, _TITLE, _LOST, _COMPLAINT = 1.0, 0.4, 0.03, 0.9
#: How much an issue asks for another template.
_WEIGHTS: Mapping[Severity, float] = {"low": 0.1, "medium": 0.5, "high": 1.0, "critical": 1.0}
_RUNNING = 3.0
#: Further columns of amounts are no statement's.
_MOST_COLUMNS = 4
#: Beside the outermost words of a column there is so much room for longer ones, in page widths.
_ROOM = 0.03
_CLOSE = 0.004
_LATER_SPACE = 0.03
_HEADING_WORDS = 8
#: In a column of check numbers so many of the words are numbers.
_MOSTLY = 0.8
#: Pages are read from here to there where nothing says otherwise; lines below the foot repeat on every page.
_TOP, _FOOT, _BOTTOM = 0.06, 0.9, 0.96
#: What each kind of complaint is about: the part of a template that is to be another.
_ASPECTS: dict[Category, Callable[[StatementTemplate], Any]] = {
    "bbox_accuracy": lambda template: template.regions,
    "column_mapping": lambda template: [(column.name, column.x) for column in template.columns],
    "sign_logic": lambda template: (template.amounts, [column.name for column in template.columns]),
    "date_format": lambda template: template.dates.formats,
    "multiline_handling": lambda template: (template.rows.continuation, template.rows.gap),
}
#: What an amount of a column ``amount`` may mean: deposit marks, withdrawal marks, without a mark; and how usual it is.
_SIGNS: tuple[tuple[Amounts, float], ...] = (
    (Amounts(), 0.2),
    (Amounts(unmarked="withdrawal"), 0.0),
    (
        Amounts(
            deposit=("minus", "trailing_minus", "parentheses", "cr"), withdrawal=("plus", "dr"), unmarked="withdrawal"
        ),
        -0.2,
    ),
    (Amounts(unmarked="section"), 0.1),
)


def build(bundle: DocumentBundle, *, template_id: str | None = None, retry: RetryInput | None = None) -> Built:
    """The template that reads the statement best; a draft, also where its sums do not meet.

    ``template_id``: else made of the bank's name. DocumentError STATEMENT-NO-TABLE where no dates and amounts stand
    below one another; UsageError where ``retry`` brings a template that is none.
    """
    pages = tuple(lines_of(page) for page in bundle.pages)
    seen = survey(pages)
    if seen is None:
        raise DocumentError(
            "no dates and amounts stand below one another",
            code="STATEMENT-NO-TABLE",
            remedy="Name a bank statement, with pages that can be read.",
        )
    draft = _Draft(seen, template_id, retry)
    best: tuple[float, Built] | None = None
    tried = 0
    for meaning in _meanings(seen, retry):
        template = draft.template(meaning)
        statement = apply_to_lines(template, pages)
        report = reconcile(template, statement)
        score = _score(statement, report) + meaning.prior + draft.answers(template)
        tried += 1
        if best is None or score > best[0]:
            best = score, Built(template, statement, report, tried)
    assert best is not None  # noqa: S101 - there is at least one meaning
    return Built(best[1].template, best[1].statement, best[1].reconciliation, tried)


def _score(statement: Statement, report: Reconciliation) -> float:
    """How much the sums speak for a reading."""
    running = [check for check in report.checks if check.name == "running_balance"]
    compared = max(sum(row.balance is not None for row in statement.transactions), 1)
    broken = sum(not check.is_met for check in running)
    score = _RUNNING * (1 - 2 * broken / compared) if running else 0.0
    score += sum(
        _SUM if check.is_met else -_SUM
        for check in report.checks
        if check.name not in ("running_balance", "repeated_rows")
    )
    return score - _LOST * (len(statement.left_over) + len(statement.outside))


# What is tried


def _meanings(seen: Survey, retry: RetryInput | None) -> Iterator[_Meaning]:
    complaints = retry.complaints() if retry else {}
    gaps = _GAPS if "multiline_handling" in complaints else _GAPS[:1]
    widths = (False, True) if "bbox_accuracy" in complaints else (False,)
    has_headings = bool(_sections(seen))
    dates = list(_date_meanings(seen))
    once = (False, True) if _has_undated(seen) else (False,)
    for columns, title_prior in _column_meanings(seen):
        for (formats, order, date_prior), (amounts, sign_prior), is_once, gap, is_wide in product(
            dates, _sign_meanings(seen, columns, has_headings=has_headings), once, gaps, widths
        ):
            prior = title_prior + date_prior + sign_prior
            yield _Meaning(columns, amounts, formats, is_once, gap, order, is_wide, prior)


def _column_meanings(seen: Survey) -> Iterator[tuple[tuple[ColumnName, ...], float]]:
    """Names for the stacks of amounts, and how much their titles speak for them."""
    stacks = seen.amounts[-_MOST_COLUMNS:]
    skipped: tuple[ColumnName, ...] = tuple("other" for _ in seen.amounts[:-_MOST_COLUMNS])
    titles = [_title_names(seen, stack) for stack in stacks]
    usual: tuple[tuple[ColumnName, ...], ...] = (
        ("amount",),
        ("amount", "balance"),
        ("debit", "credit"),
        ("debit", "credit", "balance"),
    )
    names: tuple[ColumnName, ...] = ("amount", "debit", "credit", "balance", "other")
    for given in product(names, repeat=len(stacks)):
        used = [name for name in given if name != "other"]
        if len(used) != len(set(used)) or not ({"amount"} & set(used) or {"debit", "credit"} <= set(used)):
            continue
        if "amount" in used and {"debit", "credit"} & set(used):
            continue
        said = sum(
            0 if not title else _TITLE if name in title else -_TITLE for name, title in zip(given, titles, strict=True)
        )
        yield (*skipped, *given), said + (0.1 if tuple(used) in usual else 0) - 0.3 * given.count("other")


def _title_names(seen: Survey, stack: Stack) -> set[str]:
    """What the title above the stack says that it is."""
    found: set[str] = set()
    for line in seen.headers:
        for cell in line.cells:
            if stack.overlaps(cell.box[0], cell.box[2]):
                name = next((name for name, pattern in wording().columns.items() if matches(pattern, cell.text)), None)
                found |= {name} if name else set()
    return found & {"amount", "debit", "credit", "balance"}


def _sign_meanings(
    seen: Survey, columns: Sequence[ColumnName], *, has_headings: bool
) -> Iterator[tuple[Amounts, float]]:
    written = {"decimal": seen.decimal, "whole": seen.is_whole}
    owed: tuple[Literal["held", "owed"], ...] = (
        ("held", "owed")
        if any(value.kind == "opening" for _, value in seen.values) or "balance" in columns
        else ("held",)
    )
    for (signs, prior), balance in product(_SIGNS if "amount" in columns else _SIGNS[:1], owed):
        if signs.unmarked == "section" and not has_headings:
            continue
        yield signs.model_copy(update={**written, "balance": balance}), prior - (0.1 if balance == "owed" else 0)


def _date_meanings(
    seen: Survey,
) -> Iterator[tuple[tuple[str, ...], Literal["oldest_first", "newest_first"], float]]:
    """Formats that read all dates, with the order in which they lie then.

    Days and months that could be taken for one another are told apart by the order of the rows and by the period.
    """
    texts = [placed.text for placed in seen.dates.placed]
    labels, forms = period_labels(seen.pages)
    counts = {form: sum(read_day(text, (form,), is_recognised=True) is not None for text in texts) for form in FORMATS}
    most = max(counts.values())
    fitting = [form for form in FORMATS if counts[form] == most]
    period = find_period(_only_dates(labels, forms, tuple(fitting)), seen.pages)
    is_day_first_usual = seen.decimal == ","
    judged = []
    for form in fitting:
        rest = tuple(other for other in FORMATS if other != form and counts[other] and most < len(texts))
        days = [
            found
            for text in texts
            if (day := read_day(text, (form,), is_recognised=True)) and (found := dated(day, period))
        ]
        lost = float(most - len(days))
        falls = sum(a > b for a, b in pairwise(days))
        rises = sum(a < b for a, b in pairwise(days))
        is_usual = (form.index("%d") < form.find("%m")) == is_day_first_usual if "%m" in form else True
        missed = sum(period is not None and not _is_in(day, period.start, period.end) for day in days)
        disorder = lost + min(falls, rises) + missed
        judged.append(
            (
                (form, *rest),
                "newest_first" if falls > 2 * rises else "oldest_first",
                disorder - 0.5 * is_usual,
                falls,
                rises,
            )
        )
    least = min(one[2] for one in judged)
    for forms_, order, disorder, falls, rises in judged:
        if disorder == least:
            yield forms_, order, 0.0  # type: ignore[misc]  # a literal of the two
            if not (falls and rises):
                return
            other: Literal["oldest_first", "newest_first"] = (
                "oldest_first" if order == "newest_first" else "newest_first"
            )
            yield forms_, other, -0.2
            return


def _is_in(day: Any, start: Any, end: Any) -> bool:
    return bool((start is None or day >= start) and day <= end)


def _only_dates(labels: tuple[str, ...], forms: tuple[str, ...], formats: tuple[str, ...]) -> StatementTemplate:
    """A template that knows no more than where the period is printed."""
    return StatementTemplate(
        template_id="period",
        identity=Identity(bank="-"),
        regions=(Region(box=(0, 0, 1, 1)),),
        columns=(Column(name="date", x=(0, 0.5)), Column(name="amount", x=(0.5, 1))),
        dates=Dates(formats=formats, period=labels, period_formats=forms),
    )


def _has_undated(seen: Survey) -> bool:
    """Whether amounts stand in lines between rows that have no date of their own."""
    known = {id(line) for line, _ in seen.values}
    for lines in seen.pages:
        at = _rows_of(seen, lines)
        for line in lines[at[0] : at[-1]] if at else ():
            if not seen.is_dated(line) and id(line) not in known:
                ends = [word.box[2] for word in line.words[-1:]]
                if any(stack.x0 <= end <= stack.x1 + _CLOSE for end in ends for stack in seen.amounts):
                    return True
    return False


# What is written down


class _Draft:
    """Writes templates for one statement."""

    def __init__(self, seen: Survey, template_id: str | None, retry: RetryInput | None) -> None:
        self._seen = seen
        self._prior = read_template(retry.prior_template, "prior_template") if retry else None
        self._complaints = retry.complaints() if retry else {}
        bank = _bank(seen)
        self._id = template_id or (self._prior.template_id if self._prior else f"{_slug(bank)}_draft_v1")
        self._identity = Identity(bank=bank, signs=(bank,))
        self._labels, self._forms = period_labels(seen.pages)
        self._printed = printed_sums(seen)
        self._sections = _sections(seen)
        self._accounts = _accounts(seen)
        self._tops = {is_wide: _regions(seen, is_wide=is_wide) for is_wide in (False, True)}
        self._ends = _ends(seen)
        self._furniture = (*wording().furniture, *_repeated(seen))

    def template(self, meaning: _Meaning) -> StatementTemplate:
        """The template of a meaning."""
        seen = self._seen
        columns = _columns(seen, meaning.columns)
        return StatementTemplate(
            template_id=self._id,
            version=self._prior.version + 1 if self._prior else 1,
            identity=self._identity,
            regions=_beside(self._tops[meaning.is_wide], columns),
            columns=columns,
            dates=Dates(formats=meaning.formats, period=self._labels, period_formats=self._forms),
            amounts=meaning.amounts,
            rows=Rows(
                gap=meaning.gap,
                date_once=meaning.date_once,
                order=meaning.order,
                furniture=self._furniture,
                section=self._sections,
                accounts=self._accounts,
                ends=self._ends,
            ),
            reconciliation=self._printed,
        )

    def answers(self, template: StatementTemplate) -> float:
        """How much of what the reviewers complained about is another than before; never as much as a sum."""
        if self._prior is None or not self._complaints:
            return 0.0
        asked = [(_ASPECTS[category], weight) for category, weight in self._complaints.items() if category in _ASPECTS]
        if not asked:
            return 0.0
        changed = sum(weight for of, weight in asked if of(template) != of(self._prior))
        return _COMPLAINT * changed / len(asked)


def _columns(seen: Survey, names: Sequence[ColumnName]) -> tuple[Column, ...]:
    """The columns from the left; what stands between dates and amounts is the description, and check numbers."""
    spans: list[tuple[ColumnName, float, float]] = [("date", seen.dates.x0, seen.dates.x1)]
    if seen.value_dates:
        spans.append(("value_date", seen.value_dates.x0, seen.value_dates.x1))
    spans += [(name, stack.x0, stack.x1) for name, stack in zip(names, seen.amounts, strict=True)]
    if check := _checks(seen):
        spans.append(("check_number", check.x0, check.x1))
    spans.append(("description", *_text_span(seen, [span[1:] for span in spans])))
    spans.sort(key=lambda span: span[1])
    edges = [max(spans[0][1] - _ROOM, 0.0), *(_edge(a, b) for a, b in pairwise(spans)), min(spans[-1][2] + _ROOM, 1.0)]
    return tuple(
        Column(name=name, x=(round(x0, 4), round(x1, 4)), title=_title(seen, x0, x1))
        for (name, *_), (x0, x1) in zip(spans, pairwise(edges), strict=True)
    )


def _edge(left: tuple[ColumnName, float, float], right: tuple[ColumnName, float, float]) -> float:
    """Between two columns: amounts may be longer to the left, texts to the right."""
    reached = min(left[2], right[1] - _CLOSE)
    return max(
        reached + _CLOSE / 2, right[1] - (_ROOM if right[0] in ("debit", "credit", "amount", "balance") else _CLOSE)
    )


def _text_span(seen: Survey, taken: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """From the first to the last word that is neither a date nor an amount, right of the dates, in most rows."""
    found: list[tuple[float, float]] = []
    first = min(stack.x0 for stack in seen.amounts)
    for placed in seen.dates.placed:
        words = [
            word
            for word in placed.line.words
            if placed.x1 < word.box[0] and not any(x0 - _CLOSE <= word.x <= x1 + _CLOSE for x0, x1 in taken)
        ]
        if words:
            found.append((words[0].box[0], max(word.box[2] for word in words)))
    if not found:
        return seen.dates.x1 + _CLOSE, first - _CLOSE
    starts = sorted(x0 for x0, _ in found)
    return starts[len(starts) // 20], max(x1 for _, x1 in found if x1 < first or x1 == max(x for _, x in found))


def _checks(seen: Survey) -> Stack | None:
    """The column whose title says check number, if numbers stand below it."""
    pattern = wording().columns["check_number"]
    for line in seen.headers:
        for cell in line.cells:
            if not matches(pattern, cell.text):
                continue
            x0, _, x1, _ = cell.box
            below = [
                word
                for placed in seen.dates.placed
                for word in placed.line.words
                if word.box[0] < x1 and x0 < word.box[2]
            ]
            words = [word for word in below if re.fullmatch(r"\W?\d{2,8}\W?", word.text)]
            if len(words) < _MOSTLY * len(below):
                continue  # a title of one table, where others have texts
            if words and not any(seen_stack.overlaps(x0, x1) for seen_stack in seen.amounts):
                return Stack(
                    min([x0, *(word.box[0] for word in words)]), max([x1, *(word.box[2] for word in words)]), ()
                )
    return None


def _title(seen: Survey, x0: float, x1: float) -> str:
    words = (word.text for line in seen.headers for word in line.words if x0 <= word.x < x1)
    return " ".join(dict.fromkeys(words))


def printed_sums(seen: Survey) -> Printed:
    """The labels of sums, as the statement prints them."""
    by_kind: dict[str, dict[str, bool]] = {}
    inside = {id(line) for lines in seen.pages for line in _between_rows(seen, lines)}
    for line, value in seen.values:
        is_inside = id(line) in inside
        if value.kind in ("deposits", "withdrawals") and is_inside and not matches(wording().subtotal, value.label):
            continue  # a row that begins so, not a sum
        by_kind.setdefault(value.kind, {})[_label(value.kind, value.label)] = is_inside
    # Where both balances are called "Balance on …", the same label is of both.
    labels_of = Counter(_label(value.kind, value.label) for _, value in seen.values if value.kind == "opening")
    for label, count in labels_of.items():
        if count > 1 and not by_kind.get("closing") and matches(wording().closing, label.replace("\\", "")):
            by_kind.setdefault("closing", {})[label] = False
    totals = [Total(label=label, of="columns") for label in _column_totals(seen)]
    kinds: tuple[Literal["deposits", "withdrawals"], ...] = ("deposits", "withdrawals")
    for kind in kinds:
        labels = by_kind.get(kind, {})
        whole = [label for label in labels if matches(wording().whole, label)]
        parts = [label for label, is_in in labels.items() if not is_in and not matches(wording().subtotal, label)]
        closing = [label for label, is_in in labels.items() if is_in and label not in whole]
        chosen = [*whole, *closing] or parts
        totals += [Total(label=label, of=kind, part=chosen is parts and len(parts) > 1) for label in chosen]
    totals.sort(key=lambda total: -len(total.label))  # "Total deposits" is how "Total deposits and credits" begins
    return Printed(
        opening=tuple(by_kind.get("opening", ())), closing=tuple(by_kind.get("closing", ())), total=tuple(totals)
    )


def _column_totals(seen: Survey) -> Iterator[str]:
    """The labels of lines with a total below each column."""
    known = {id(line) for line, _ in seen.values}
    for lines in seen.pages:
        for line in lines:
            if id(line) in known or seen.is_dated(line) or not matches(wording().subtotal, line.text):
                continue
            amounts = list(amounts_in(line, seen.decimal, is_whole=seen.is_whole))
            if len(amounts) > 1 and all(any(one.overlaps(it.x0, it.x1) for one in seen.amounts) for it in amounts):
                yield literal(" ".join(word.text for word in line.words if word.box[2] <= amounts[0].x0))


def _label(kind: str, text: str) -> str:
    """Of balances only what names them, of sums all words before a number: dates and counts change each month."""
    said = {"opening": wording().opening, "closing": wording().closing}.get(kind)
    named = matches(said, text) if said else None
    words = named.group() if named else re.split(r"\s*\(?\d", text, maxsplit=1)[0]
    return literal(words or text)


def _between_rows(seen: Survey, lines: Sequence[Line]) -> Sequence[Line]:
    """The lines from the page's first row to the one below its last; none where it has no rows."""
    at = _rows_of(seen, lines)
    return lines[at[0] : at[-1] + 2] if at else ()


def _sections(seen: Survey) -> tuple[Section, ...]:
    """Headings above or between rows that say which way the money went."""
    titles = {id(line) for line in seen.headers}
    known = {id(line) for line, _ in seen.values}
    found: dict[str, Section] = {}
    directions: tuple[tuple[str, Literal["deposit", "withdrawal"]], ...] = (
        (wording().deposits_heading, "deposit"), (wording().withdrawals_heading, "withdrawal"),
    )  # fmt: skip
    for lines in seen.pages:
        at = _rows_of(seen, lines)
        for line in lines[max(at[0] - 4, 0) : at[-1]] if at else ():
            if id(line) in titles or id(line) in known or seen.is_dated(line) or len(line.cells) > 1:
                continue
            for pattern, direction in directions:
                if matches(pattern, line.text) and not line.text[-1:].isdigit() and _is_left(seen, line):
                    found.setdefault(line.text, Section(heading=literal(line.text), direction=direction))
                    break
    return tuple(found.values())


def _is_left(seen: Survey, line: Line) -> bool:
    """Whether the line begins where the dates do: a heading, and no description's second line."""
    return line.box[0] < seen.dates.x1


def _accounts(seen: Survey) -> tuple[str, ...]:
    """Headings of accounts, where there are several with rows below each."""
    titled = {id(line) for line in seen.headers}
    current, filled = "", dict[str, int]()
    for lines in seen.pages:
        for line in lines:
            if seen.is_dated(line):
                filled[current] = filled.get(current, 0) + 1
            elif id(line) not in titled and _names_account(line):
                current = re.sub(r"\W*\(?continued\)?$", "", line.text, flags=re.IGNORECASE)
    named = [heading for heading in filled if heading]
    return tuple(dict.fromkeys(literal(heading) for heading in named)) if len(named) > 1 else ()


def _names_account(line: Line) -> bool:
    """Whether the line is a heading: short, with a number and no amount."""
    is_short = len(line.words) <= _HEADING_WORDS
    return is_short and bool(matches(wording().account, line.text)) and not re.search(r"\d[.,]\d\d\b", line.text)


def _regions(seen: Survey, *, is_wide: bool) -> dict[int, Box]:
    """For each page with rows from the first of them to the foot of the page, over the whole width.

    The next month's statement has more rows or fewer: what ends the table is its ``ends``, not the region.
    """
    found: dict[int, Box] = {}
    titles = {id(line) for line in seen.headers}
    for number, lines in enumerate(seen.pages, 1):
        at = _rows_of(seen, lines)
        if not at:
            continue
        first = at[0]
        above = next((line for line in reversed(lines[:first]) if id(line) in titles), None)
        top = _between(above, lines[first]) if above else max(lines[first].box[1] - lines[first].height / 2, 0.0)
        foot = next((line for line in lines[_last(seen, lines, at[-1]) + 1 :] if line.box[1] > _FOOT), None)
        bottom = foot.box[1] - _CLOSE if foot else max(_BOTTOM, lines[at[-1]].box[3] + _CLOSE)
        if is_wide:
            top, bottom = max(top - _LATER_SPACE, 0.0), min(bottom + _LATER_SPACE, 1.0)
        found[number] = (0.0, top, 1.0, min(bottom, 1.0))
    return found


def _rows_of(seen: Survey, lines: Sequence[Line]) -> list[int]:
    """The places of the lines that begin a row."""
    return [place for place, line in enumerate(lines) if seen.is_dated(line)]


def _ends(seen: Survey) -> tuple[str, ...]:
    """The lines that follow a table: behind the last row of a page, before a further header, and on pages without rows."""
    titles = {id(line) for line in seen.headers}
    found: dict[str, None] = {}
    has_begun = False
    for lines in seen.pages:
        at = _rows_of(seen, lines)
        if not at and has_begun and lines:
            found[literal(lines[0].text)] = None
        has_begun = has_begun or bool(at)
        for here, following in pairwise((*at, len(lines))):
            between = lines[here + 1 : following]
            if following < len(lines) and not any(id(line) in titles for line in between):
                continue
            behind = lines[_last(seen, lines[:following], here) + 1 : following]
            foreign = next((line for line in behind if id(line) not in titles), None)
            if foreign and foreign.box[1] <= _FOOT and not _is_known(seen, foreign):
                found[literal(foreign.text)] = None
    return tuple(pattern for pattern in found if re.search(r"[^\W\d_]{2}", pattern))


def _is_known(seen: Survey, line: Line) -> bool:
    """Whether the line is a sum, a heading or furniture, which have rules of their own."""
    said = wording()
    patterns = (*said.furniture, said.deposits_heading, said.withdrawals_heading)
    return (
        any(line is other for other, _ in seen.values)
        or any(matches(one, line.text) for one in patterns)
        or _names_account(line)
    )


def _between(above: Line, below: Line) -> float:
    return (above.box[3] + below.box[1]) / 2


def _last(seen: Survey, lines: Sequence[Line], last: int) -> int:
    """The place of the last line that belongs to the table: behind its last row lines go on, sums are printed."""
    known = {id(line) for line, _ in seen.values}
    first_amount = min(stack.x0 for stack in seen.amounts)
    for place in range(last + 1, len(lines)):
        line, before = lines[place], lines[place - 1]
        is_known = id(line) in known or any(matches(one, line.text) for one in wording().furniture)
        ends_in_amounts = line.words[-1].box[2] > first_amount and not seen.is_dated(line)
        goes_on = seen.dates.x1 < line.box[0] and line.box[2] < first_amount
        has_amount = (
            ends_in_amounts
            and any(stack.x0 - _ROOM <= line.words[-1].x <= stack.x1 + _CLOSE for stack in seen.amounts)
            and line.words[-1].text[-1:].isdigit()
        )
        if line.y - before.y > _GAPS[0] * before.height or not (is_known or goes_on or has_amount):
            return place - 1
    return len(lines) - 1


def _repeated(seen: Survey) -> Iterator[str]:
    """Lines beside the rows that several pages have, but for their numbers."""
    titles = {id(line) for line in seen.headers} | {id(line) for line, _ in seen.values}
    counts: Counter[str] = Counter()
    for lines in seen.pages:
        inside = {id(line) for line in _between_rows(seen, lines)}
        if inside:
            counts.update({literal(line.text) for line in lines if id(line) not in inside | titles})
    return (pattern for pattern, count in counts.items() if count > 1 and re.search(r"[^\W\d_]{2}", pattern))


def _beside(tops: Mapping[int, Box], columns: Sequence[Column]) -> tuple[Region, ...]:
    """Regions by kinds of pages, as wide as the columns."""
    x0, x1 = columns[0].x[0], columns[-1].x[1]
    pages = max(tops)

    def region(kind: PageKind, numbers: Sequence[int]) -> Iterator[Region]:
        boxes = [tops[number] for number in numbers if number in tops]
        if boxes:
            top, bottom = min(box[1] for box in boxes), max(box[3] for box in boxes)
            yield Region(pages=kind, box=(x0, round(top, 4), x1, round(bottom, 4)))

    if pages == 1:  # where a longer statement goes on, nobody has seen yet
        return (*region("first", [1]), Region(pages="later", box=(x0, _TOP, x1, round(tops[1][3], 4))))
    return (*region("first", [1]), *region("later", range(2, pages + 1)))


def _bank(seen: Survey) -> str:
    """The first line above the rows that names a bank, else the first line."""
    above = takewhile(lambda line: not seen.is_dated(line), seen.pages[0])
    said = [cell.text for line in above for cell in line.cells if re.search(r"[^\W\d_]{3}", cell.text)]
    pattern = re.compile(wording().bank, re.IGNORECASE)
    named = (text for text in said if pattern.match(text) and len(text.split()) <= _HEADING_WORDS)
    return next(named, None) or next(iter(said), "Unknown bank")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_") or "statement"
