"""Bench of statements of unknown banks: rows right, sums met, and what became stable without a person.

Run in ``tests``: ``python -m benchmarks.statement_shapes --half open`` (or another of ``HALVES``; ``before`` are the
shapes of ``statements/drawn.py``), with ``--shape NAME`` for one shape and ``--show`` for what is wrong in each
statement; the fourth to seventh halves have four banks of each shape (``--months 4``). A row is right if date,
description, amount, balance and page are; blanks are normalised, of scans they do not count. The template is built from
a bank's month, reviewed, and then reads that month and the next one. ``sound`` statements are those in which the page
proves all signs and dates; where it does not, a person must be asked: there the rows are counted again with the better
of the readings between which that person chooses, and without what the page does not say and the program has named as
open (a year, a sign). ``--without-words`` measures what does not rest on known words: on pages of text all longer words
are nonsense, but for months and what the rows say. ``--perturbed N`` needs no author: known shapes are drawn with columns
in another order or place, stacked titles, amounts below, other decimals and letters, otherwise for each ``N``; what is
true stays true.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib
import json
import math
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.first_contact.statement_shapes import drawing
from benchmarks.first_contact.statement_shapes.drawing import DrawShape, Statement, TrueRow, TrueSum
from benchmarks.first_contact.statement_shapes.perturbed import perturb
from benchmarks.measuring import ROOT, TIMESTAMP
from rich.console import Console
from rich.table import Table
from statements import drawn

import evalkit.documents
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.llm.embedded import EmbeddedModel
from evalkit.statements.alternative_readings import build_opposite_reading, build_other_date_order
from evalkit.statements.amounts import get_sign_mark, parse_amount
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.dates import find_named_month
from evalkit.statements.template_builder import build_draft_template
from evalkit.statements.template_review_loop import TemplateReviewLoop, TemplateReviewResult

CACHE = ROOT / ".bench" / "statement_shapes"
HALVES = (
    "open", "sealed", "third_open", "third_sealed", "fourth_open", "fourth_sealed", "fifth_open", "fifth_sealed",
    "sixth_open", "sixth_sealed", "seventh_open", "seventh_sealed", "before",
)  # fmt: skip
_SECONDS_PER_PAGE = 60
_LONGER_WORD = re.compile(r"[^\W\d_]{4,}")
_NONSENSE = str.maketrans(
    "aeioubcdfghjklmnpqrstvwxyzAEIOUBCDFGHJKLMNPQRSTVWXYZ", "eiouacdfghjklmnpqrstvwxyzbEIOUACDFGHJKLMNPQRSTVWXYZB"
)
_GRAVE = ("sign", "date", "amount", "missing row", "extra row")


@dataclass(frozen=True)
class Rows:
    """How many rows there are, were read, and are exactly right."""

    there: int = 0
    read: int = 0
    right: int = 0

    @property
    def most(self) -> int:
        """The denominator: rows that are missing and rows that are too many both count."""
        return max(self.there, self.read)


@dataclass(frozen=True)
class Outcome:
    """What became of one statement."""

    shape: str
    seed: int
    is_scanned: bool
    sound: bool
    must_ask: bool
    is_answered: bool
    """Whether a person chooses between readings of its rows: it must ask, or its words are nonsense."""
    rows: Rows
    next_rows: Rows
    answered_rows: Rows
    """The rows with a person's answer, in all that is printed."""
    sums: Counter[str]
    """How many printed sums are ``met``, ``told`` as an issue, or ``missed`` in silence."""
    next_sums: Counter[str]
    is_stable: bool
    wrong: Counter[str]
    """What is wrong in the rows of the statement that the template was built from."""
    errors: tuple[str, ...]
    attempts: int
    issues: tuple[str, ...]
    build_seconds: float
    review_seconds: float
    details: tuple[str, ...]

    @property
    def grave(self) -> tuple[str, ...]:
        """The faults that no stable template may have."""
        return tuple(f"{each} {self.wrong[each]}" for each in _GRAVE if self.wrong[each])


def names_of(half: str) -> list[str]:
    """Return the names of a half's shapes."""
    if half == "before":
        return list(drawn.SHAPES)
    return list(_shapes_of(half))


def _shapes_of(half: str) -> dict[str, DrawShape]:
    shapes: dict[str, DrawShape] = importlib.import_module(f"{drawing.__package__}.{half}").SHAPES
    return shapes


def draw(half: str, shape: str, seed: int, later: int) -> Statement:
    """Draw a statement of a half."""
    if half != "before":
        return _shapes_of(half)[shape](seed, later)
    before = drawn.draw(shape, seed, later)
    rows = tuple(
        TrueRow(each.date, each.description, each.amount, each.balance, each.page, each.check_number, each.account)
        for each in before.rows
    )
    return Statement(before.pdf, rows, (), drawn.SHAPES[shape].is_scanned, sum_count=before.sums)


@cache
def _reader_key() -> str:
    """Return a key of the code that reads documents: what it recognised of a scan is kept as long as it is the same."""
    digest = hashlib.sha256()
    for path in sorted(Path(evalkit.documents.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def read_statement(statement: Statement, folder: Path) -> DocumentBundle:
    """Read a statement as any other file; scans are recognised once."""
    path = folder / "statement.pdf"
    path.write_bytes(statement.pdf)
    if not statement.is_scanned:
        return read_document(path, doc_id="statement", processing_timestamp=TIMESTAMP)
    stored = CACHE / f"{_reader_key()}-{hashlib.sha256(statement.pdf).hexdigest()[:24]}.json"
    if stored.exists():
        return DocumentBundle.model_validate_json(stored.read_text("utf-8"))
    engine = resolve_ocr_engine()
    settings = PageOcrSettings(engine, _SECONDS_PER_PAGE) if engine else None
    bundle = read_document(path, doc_id="statement", processing_timestamp=TIMESTAMP, ocr_settings=settings)
    stored.parent.mkdir(parents=True, exist_ok=True)
    unfinished = stored.with_suffix(f".{os.getpid()}")
    unfinished.write_text(bundle.model_dump_json(), "utf-8")
    unfinished.replace(stored)
    return bundle


def take_words_away(statement: Statement, bundle: DocumentBundle) -> DocumentBundle:
    """Turn all longer words into nonsense, but for months, currencies, and what rows say."""
    spoken = set(_LONGER_WORD.findall(" ".join(each.description for each in statement.rows)))

    def rename(match: re.Match[str]) -> str:
        word = match.group()
        is_currency = not get_sign_mark(word) and parse_amount(f"1,00 {word}", ",")
        is_kept = word in spoken or find_named_month(f"{word} 2024") or is_currency
        return word if is_kept else word.translate(_NONSENSE)

    pages = [each.model_copy(update={"text": _LONGER_WORD.sub(rename, each.text)}) for each in bundle.pages]
    return bundle.model_copy(update={"pages": tuple(pages)})


def count_rows(statement: Statement, rows: Iterable[Any]) -> Rows:
    """Compare rows; one that was read twice is right once."""
    return _compare_keys(*(_keys(each, statement.is_scanned) for each in (statement.rows, rows)))


def _compare_keys(there: Counter[tuple[Any, ...]], read: Counter[tuple[Any, ...]]) -> Rows:
    return Rows(there.total(), read.total(), (there & read).total())


def count_answered_rows(statement: Statement, applied: AppliedTemplate | None, issues: Sequence[Any]) -> Rows:
    """Compare the better of the readings that a person may choose, in all that the page says.

    The year does not count if no page prints it and the rows have none, nor the signs if nothing proves them and an
    issue says so.
    """
    if applied is None:
        return count_rows(statement, ())
    template = applied.template
    others = (build_opposite_reading(template), build_other_date_order(template))
    readings = [applied, *map(applied.apply_other_template, filter(None, others))]
    is_sign_open = not statement.signs_proven and any(each.category == "sign_logic" for each in issues)
    return max(
        (_count_printed(statement, each.statement.transactions, is_sign_open=is_sign_open) for each in readings),
        key=attrgetter("right"),
    )


def _count_printed(statement: Statement, rows: Sequence[Any], *, is_sign_open: bool) -> Rows:
    is_year_open = not statement.dates_certain and any(each.date.startswith("--") for each in rows)

    def print_key(row: Any) -> tuple[Any, ...]:
        date, text, amount, balance, page = _key(row, statement.is_scanned)
        if is_sign_open:
            amount, balance = abs(amount), balance and abs(balance)
        return date[-5:] if is_year_open else date, text, amount, balance, page

    return _compare_keys(Counter(map(print_key, statement.rows)), Counter(map(print_key, rows)))


def _keys(rows: Iterable[Any], is_scanned: bool) -> Counter[tuple[Any, ...]]:
    return Counter(_key(each, is_scanned) for each in rows)


def _key(row: Any, is_scanned: bool) -> tuple[Any, ...]:
    return row.date, _plain(row.description, is_scanned), row.amount, row.balance, row.page


def _plain(text: str, is_scanned: bool) -> str:
    return ("" if is_scanned else " ").join(text.split())


def name_faults(statement: Statement, rows: Sequence[Any]) -> tuple[Counter[str], list[str]]:
    """Name what is wrong in each row that is not right, and print both readings."""
    is_scanned = statement.is_scanned
    true_keys, read_keys = (_keys(each, is_scanned) for each in (statement.rows, rows))
    missing, extra = (list((one - other).elements()) for one, other in ((true_keys, read_keys), (read_keys, true_keys)))
    wrong: Counter[str] = Counter()
    details: list[str] = []
    for fault, is_same in (
        ("page", lambda one, other: one[:4] == other[:4]),
        ("balance", lambda one, other: one[:3] == other[:3]),
        ("description", lambda one, other: (one[0], one[2]) == (other[0], other[2])),
        ("sign", lambda one, other: (one[0], one[2]) == (other[0], -other[2])),
        ("date", lambda one, other: (one[1], one[2]) == (other[1], other[2])),
        ("amount", lambda one, other: one[:2] == other[:2]),
        ("date", lambda one, other: one[1] == other[1] and abs(one[2]) == abs(other[2])),
    ):
        for true in list(missing):
            read = next((each for each in extra if is_same(true, each)), None)
            if read is not None:
                missing.remove(true)
                extra.remove(read)
                wrong[fault] += 1
                if fault == "date" and true[2] != read[2]:
                    wrong["sign"] += 1
                details.append(f"{fault}: {_row(true)} read as {_row(read)}")
    wrong.update({"missing row": len(missing), "extra row": len(extra)})
    details += [f"missing: {_row(each)}" for each in missing] + [f"extra: {_row(each)}" for each in extra]
    return wrong, details


def _row(key: tuple[Any, ...]) -> str:
    return " | ".join(map(str, key))


def judge_sums(statement: Statement, applied: AppliedTemplate | None, issues: Sequence[str]) -> Counter[str]:
    """Say of each printed sum whether it is used and met, named by an issue or a failed check, or neither."""
    count = statement.sum_count or len(statement.sums)
    if applied is None:
        return Counter({"missed": count})
    checks = applied.reconciliation.checks
    if statement.sum_count:
        met, told = sum(each.is_met for each in checks), sum(not each.is_met for each in checks)
        met, told = min(met, count), min(told, max(count - met, 0))
        return Counter({"met": met, "told": told, "missed": count - met - told})
    return _judge_amounts(statement.sums, applied, issues)


def _judge_amounts(sums: Sequence[TrueSum], applied: AppliedTemplate, issues: Sequence[str]) -> Counter[str]:
    checks = applied.reconciliation.checks
    used = {abs(each.value) for each in applied.statement.sums}
    met = {abs(each.expected) for each in checks if each.is_met}
    failed = {abs(amount) for each in checks if not each.is_met for amount in (each.expected, each.found)}
    told = {_digits(number) for each in issues for number in re.findall(r"\d[\d., '’]*\d", each)}
    is_all_met = bool(checks) and all(each.is_met for each in checks)
    verdicts: Counter[str] = Counter()
    for each in sums:
        amount = abs(each.amount)
        if amount in met or (amount in used and is_all_met):
            verdicts["met"] += 1
        elif amount in failed or _digits(f"{amount:.2f}") in told:
            verdicts["told"] += 1
        else:
            verdicts["missed"] += 1
    return verdicts


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text).lstrip("0")


def review(template: Any, bundle: DocumentBundle) -> tuple[float, TemplateReviewResult]:
    """Let both embedded reviewers look at a template, and return the seconds that it took."""
    loop = TemplateReviewLoop(lambda role: EmbeddedModel(), clock=lambda: datetime.now(UTC).isoformat())
    began = time.perf_counter()
    result = asyncio.run(loop.review_template(template, bundle))
    return time.perf_counter() - began, result


class _Run:
    """One statement on its way; a step that fails is noted with its class and stops nothing else."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a step, or note why it failed and return None."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - whatever is raised in one statement is counted, never the end
            self.errors.append(f"{name}: {type(error).__name__}: {str(error)[:110]}")
        return None


def measure(
    half: str, shape: str, seed: int, *, without_words: bool = False, perturbation: int | None = None
) -> Outcome:
    """Build a template from a bank's month, review it, and read that month and the next one with it."""
    run = _Run()

    def read(statement: Statement, folder: Path) -> DocumentBundle:
        bundle = read_statement(statement, folder)
        return take_words_away(statement, bundle) if without_words and not statement.is_scanned else bundle

    with nullcontext() if perturbation is None else perturb(shape, perturbation):
        statement, following = (draw(half, shape, seed, later) for later in (0, 1))
    build_seconds = review_seconds = 0.0
    result: TemplateReviewResult | None = None
    applied: AppliedTemplate | None = None
    later: AppliedTemplate | None = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = run.step("reading", lambda: read(statement, folder))
        began = time.perf_counter()
        built = run.step("building", lambda: build_draft_template(bundle)) if bundle else None
        build_seconds = time.perf_counter() - began
        if built is not None:
            reviewed = run.step("reviewing", lambda: review(built.template, bundle))
            if reviewed:
                review_seconds, result = reviewed
            template = result.template if result else built.template
            applied = run.step("applying", lambda: AppliedTemplate.create(template, bundle))
            next_bundle = run.step("reading the next month", lambda: read(following, folder))
            if next_bundle:
                later = run.step("next month", lambda: AppliedTemplate.create(template, next_bundle))
    rows = list(applied.statement.transactions) if applied else []
    last = result.cycles[-1] if result and result.cycles else None
    issues = [each.issue for each in last.issues] if last else []
    texts = [json.dumps(each.model_dump(mode="json"), ensure_ascii=False, default=str) for each in issues]
    wrong, details = name_faults(statement, rows)
    must_ask = statement.signs_proven is False or not statement.dates_certain or not statement.has_sums_right
    return Outcome(
        shape,
        seed,
        statement.is_scanned,
        statement.sound,
        must_ask,
        must_ask or without_words,
        count_rows(statement, rows),
        count_rows(following, later.statement.transactions if later else ()),
        count_answered_rows(statement, applied, issues),
        judge_sums(statement, applied, texts),
        judge_sums(following, later, ()),
        result is not None and result.template_case is None,
        wrong,
        tuple(run.errors),
        len(result.cycles) if result else 0,
        tuple(f"{each.severity} {each.category}: {each.message[:150]}" for each in issues),
        build_seconds,
        review_seconds,
        tuple(details),
    )


def interval(right: int, count: int) -> str:
    """Print a share with its 95 % interval after Wilson."""
    if not count:
        return "-"
    z = 1.959964
    share, scale = right / count, 1 + z * z / count
    middle = (share + z * z / (2 * count)) / scale
    reach = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / scale
    return f"{right}/{count} {share:.1%} [{max(0.0, middle - reach):.1%}, {min(1.0, middle + reach):.1%}]"


def _share(rows: Iterable[Rows]) -> str:
    counted = list(rows)
    right, most = sum(each.right for each in counted), sum(each.most for each in counted)
    return f"{right}/{most} ({right / most:.0%})" if most else "-"


def _sums(counts: Iterable[Counter[str]]) -> str:
    whole: Counter[str] = sum(counts, Counter())
    return f"{whole['met']}/{whole['told']}/{whole['missed']}"


def tell_shapes(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print a line for each shape."""
    table = Table("shape", "rows right", "next month", "sums m/t/missed", "stable", "stable, wrong", "errors", "s", "s")
    for shape in dict.fromkeys(each.shape for each in outcomes):
        some = [each for each in outcomes if each.shape == shape]
        kind = " (scan)" if some[0].is_scanned else ""
        table.add_row(
            shape + kind + (" (ask!)" if some[0].must_ask else "" if some[0].sound else " (may ask)"),
            _share(each.rows for each in some),
            _share(each.next_rows for each in some),
            _sums(each.sums for each in some),
            f"{sum(each.is_stable for each in some)}/{len(some)}",
            str(sum(each.is_stable and bool(each.grave) for each in some) or ""),
            str(sum(bool(each.errors) for each in some) or ""),
            f"{median(each.build_seconds for each in some):.2f}",
            f"{median(each.review_seconds for each in some):.2f}",
        )
    console.print(table)


def tell_total(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print the figures of all statements together."""
    for kind, some in (
        ("text", [each for each in outcomes if not each.is_scanned]),
        ("scans", [each for each in outcomes if each.is_scanned]),
    ):
        for name, rows in (("rows right", [one.rows for one in some]), ("next month", [one.next_rows for one in some])):
            console.print(f"{kind}: {name} {interval(sum(one.right for one in rows), sum(one.most for one in rows))}")
    for name, sums in (
        ("printed sums", sum((each.sums for each in outcomes), Counter())),
        ("printed sums, next month", sum((each.next_sums for each in outcomes), Counter())),
    ):
        console.print(f"{name}: met {sums['met']}, told {sums['told']}, missed in silence {sums['missed']}")
    sound = [each for each in outcomes if each.sound]
    console.print(f"sound, stable without a person: {interval(sum(each.is_stable for each in sound), len(sound))}")
    right = sum(each.is_stable and not each.grave for each in sound)
    console.print(f"sound, stable and right: {interval(right, len(sound))}")
    stable = [each for each in outcomes if each.is_stable]
    wrong = [each for each in stable if each.grave]
    console.print(f"stable with a wrong sign, date, amount or row: {interval(len(wrong), len(stable))}; must be 0")
    for each in wrong:
        console.print(f"  {each.shape}, bank {each.seed}: {', '.join(each.grave)}", highlight=False)
    asked = [each for each in outcomes if each.must_ask]
    for kind, answered in (
        ("of those that a person must be asked", asked),
        ("of text", [each for each in outcomes if not each.is_scanned]),
    ):
        rows = [each.answered_rows if each.is_answered else each.rows for each in answered]
        right, most = sum(each.right for each in rows), sum(each.most for each in rows)
        console.print(f"rows {kind} right in all that is printed, with that answer: {interval(right, most)}")
    hidden = [each for each in asked if each.is_stable]
    console.print(f"a person must be asked, but stable: {interval(len(hidden), len(asked))}; must be 0")
    for each in hidden:
        console.print(f"  {each.shape}, bank {each.seed}", highlight=False)
    failures = Counter(": ".join(text.split(": ")[:2]) for each in outcomes for text in each.errors)
    console.print(f"errors: {dict(failures)}" if failures else "errors: none", highlight=False)
    console.print(
        f"seconds: build {median(each.build_seconds for each in outcomes):.2f}, at most "
        f"{max(each.build_seconds for each in outcomes):.2f}; review {median(each.review_seconds for each in outcomes):.2f}, "
        f"at most {max(each.review_seconds for each in outcomes):.2f}"
    )


def tell_statements(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print for each statement what is wrong with it."""
    for each in outcomes:
        console.print(
            f"{each.shape}, bank {each.seed}: {each.rows.right}/{each.rows.most} rows, next month "
            f"{each.next_rows.right}/{each.next_rows.most}, sums {dict(each.sums)}, attempts {each.attempts}, "
            f"{'STABLE' if each.is_stable else 'to a person'}",
            highlight=False,
        )
        lines = [*each.errors, *each.issues, *each.details[:6]]
        for line in lines:
            console.print(f"    {line}", highlight=False, markup=False)


def main() -> None:
    """Measure one half and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, required=True)
    parser.add_argument("--months", type=int, default=5, help="banks of each shape")
    parser.add_argument("--shape", action="append", help="only the shapes whose names contain this")
    parser.add_argument("--show", action="store_true", help="what is wrong in each statement")
    parser.add_argument("--without-words", action="store_true", help="with longer words as nonsense")
    parser.add_argument("--perturbed", type=int, metavar="N", help="with columns, titles, lines and numbers otherwise")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    os.environ.setdefault("OMP_THREAD_LIMIT", "1")
    names = [
        name for name in names_of(options.half) if not options.shape or any(part in name for part in options.shape)
    ]
    work = [(options.half, name, seed) for name in names for seed in range(options.months)]
    with ProcessPoolExecutor(options.jobs) as pool:
        outcomes = list(
            pool.map(
                partial(measure, without_words=options.without_words, perturbation=options.perturbed),
                *zip(*work, strict=True),
            )
        )
    console = Console(width=170)
    if options.show:
        tell_statements(outcomes, console)
    tell_shapes(outcomes, console)
    tell_total(outcomes, console)


if __name__ == "__main__":
    main()
