"""How many faults planted in templates and statements the reviewers report, and how many sound templates they reject.

    cd tests && python -m benchmarks.statement_faults --half open|sealed [--per-kind 10] [--sound 3] [--show]

A fault counts as planted if the reading of a template that was right before differs from the truth of the drawing. It
is caught if one of the two reviewers reports it in a fitting category, no milder than it is; a critical fault may be
reported as high, for that blocks as well. A fault of high or critical severity must also make the reviewer reject.
"""

from __future__ import annotations

import argparse
import importlib
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.first_contact.statement_faults.making import Drawing, Effect, FaultKind, NotPlantable
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest
from statements import drawn as shapes
from statements.drawn import Drawn
from statements.measuring import bundle_of

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import EvalkitError
from evalkit.statements.applied_template import AppliedTemplate
from evalkit.statements.reviewer_report import ReviewerReport, SeverityRank
from evalkit.statements.rule_based_review import TemplateReviewer, review_by_rules
from evalkit.statements.statement_template import StatementTemplate
from evalkit.statements.template_builder import build_draft_template

MOST_SEEDS = 30
"""Where a shape allows fewer plantings than asked for, no further statements are drawn."""
_ROLES: tuple[TemplateReviewer, ...] = ("layout_geometry", "semantic_financial")


class Trial(NamedTuple):
    """One fault, planted once."""

    kind: str
    statement: str
    seed: int
    effects: tuple[Effect, ...]
    is_caught: bool
    issues: tuple[tuple[str, str], ...]
    """Severity and category of each issue of both reviewers."""


class SoundReview(NamedTuple):
    """What the reviewers make of a template that reads its statement right."""

    statement: str
    seed: int
    is_rejected: bool
    issues: tuple[tuple[str, str, str], ...]


class SoundReading(NamedTuple):
    """A drawn statement, and the template that reads it exactly."""

    drawn: Drawn
    bundle: DocumentBundle
    applied: AppliedTemplate


class Half(NamedTuple):
    """The faults and the small statements of a half."""

    faults: tuple[FaultKind, ...]
    drawings: dict[str, Drawing]
    mends: dict[str, Callable[[dict[str, Any], Drawn], None]]


def load_half(half: str) -> Half:
    """Return the faults and the small statements of a half."""
    module = importlib.import_module(f"benchmarks.first_contact.statement_faults.{half}")
    return Half(module.FAULTS, module.DRAWINGS, module.MENDS)


def draw_statement(half: str, name: str, seed: int) -> Drawn:
    """Draw a shape, or one of the half's own small statements."""
    drawings = load_half(half).drawings
    return drawings[name](seed) if name in drawings else shapes.draw(name, seed)


def load_bundle(drawn: Drawn) -> DocumentBundle:
    """Read the drawn pages."""
    with tempfile.TemporaryDirectory() as folder:
        bundle: DocumentBundle = bundle_of(drawn, Path(folder))
    return bundle


@lru_cache(maxsize=4)
def build_sound_reading(half: str, name: str, seed: int) -> SoundReading | None:
    """Build the template of a statement; None if it does not read exactly what was drawn.

    In the templates of some small statements a person mends something first, if they are not right by themselves.
    """
    drawn = draw_statement(half, name, seed)
    bundle = load_bundle(drawn)
    try:
        applied = build_draft_template(bundle)
    except EvalkitError:
        return None
    mend = load_half(half).mends.get(name)
    if mend and not is_sound(drawn, applied):
        plain = applied.template.model_dump(mode="json", by_alias=True)
        mend(plain, drawn)
        applied = applied.apply_other_template(StatementTemplate.model_validate(plain))
    return SoundReading(drawn, bundle, applied) if is_sound(drawn, applied) else None


def is_sound(drawn: Drawn, applied: AppliedTemplate) -> bool:
    """Return whether all rows are read as drawn and all used sums are met."""
    return not find_row_effects(drawn, applied) and all(check.is_met for check in applied.sum_checks)


def _partition(keys: Iterable[object]) -> list[int]:
    numbers: dict[object, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def find_row_effects(drawn: Drawn, applied: AppliedTemplate) -> set[Effect]:
    """Return in what ways the rows that were read differ from those that were drawn."""
    there, read = drawn.rows, applied.statement.transactions
    effects: set[Effect] = set()

    def differs(get: Callable[[Any], object]) -> bool:
        return [get(row) for row in there] != [get(row) for row in read]

    def whole(row: Any) -> tuple[object, ...]:
        return row.date, row.description, row.amount, row.balance, row.check_number, row.page

    if len(read) != len(there):
        effects.add("row missing" if len(read) < len(there) else "row invented")
        amounts, read_amounts = Counter(row.amount for row in there), Counter(row.amount for row in read)
        if read_amounts - amounts:
            effects.add("amount")
        return effects
    if differs(whole) and Counter(map(whole, there)) == Counter(map(whole, read)):
        return {"order"}
    if differs(lambda row: abs(row.amount)):
        effects.add("amount")
    elif differs(lambda row: row.amount):
        effects.add("sign")
    fields: tuple[tuple[Effect, str], ...] = (
        ("date", "date"), ("description", "description"), ("balance", "balance"), ("check number", "check_number"),
    )  # fmt: skip
    effects.update(effect for effect, name in fields if differs(lambda row, name=name: getattr(row, name)))  # type: ignore[misc]
    if _partition(row.account for row in there) != _partition(row.account for row in read):
        effects.add("account")
    return effects


def find_effects(sound: SoundReading, applied: AppliedTemplate) -> set[Effect]:
    """Return how the reading differs from the truth, and its printed sums from those of the sound reading."""
    effects = find_row_effects(sound.drawn, applied)
    before, after = (
        Counter((printed.kind, printed.value, printed.is_part) for printed in reading.statement.sums)
        for reading in (sound.applied, applied)
    )
    if before - after:
        effects.add("sum unused")
    if after - before:
        effects.add("sum wrong")
    if [(check.name, check.found) for check in sound.applied.sum_checks] != [
        (check.name, check.found) for check in applied.sum_checks
    ] and any(not check.is_met for check in applied.sum_checks):
        effects.add("sum wrong")
    return effects


def review(applied: AppliedTemplate) -> list[ReviewerReport]:
    """Return the reports of both reviewers."""
    return [review_by_rules(applied, role, reviewer_id=role, reviewed_at="2024-05-01T08:00:00Z") for role in _ROLES]


def is_caught(kind: FaultKind, reports: Sequence[ReviewerReport]) -> bool:
    """Return whether a reviewer reports the fault as it must."""
    needed = min(SeverityRank[kind.severity], SeverityRank.high)
    return any(
        (needed < SeverityRank.high or not report.is_passed)
        and any(SeverityRank[issue.severity] >= needed and issue.category in kind.categories for issue in report.issues)
        for report in reports
    )


def plant(kind: FaultKind, sound: SoundReading, name: str, seed: int) -> Trial | None:
    """Plant a fault and ask both reviewers; None if it cannot be planted, or changes nothing that counts."""
    rng = random.Random(f"{kind.name} {name} {seed}")
    try:
        if kind.spoil_statement:
            pdf = kind.spoil_statement(sound.drawn, rng)
            bundle = load_bundle(Drawn(pdf, sound.drawn.rows, sound.drawn.sums))
            applied = AppliedTemplate.create(sound.applied.template, bundle)
        else:
            plain = sound.applied.template.model_dump(mode="json", by_alias=True)
            assert kind.spoil_template
            kind.spoil_template(plain, sound.drawn, rng)
            applied = sound.applied.apply_other_template(StatementTemplate.model_validate(plain))
    except NotPlantable:
        return None
    effects = find_effects(sound, applied)
    if not effects & set(kind.effects):
        return None
    reports = review(applied)
    issues = tuple((issue.severity, issue.category) for report in reports for issue in report.issues)
    return Trial(kind.name, name, seed, tuple(sorted(effects)), is_caught(kind, reports), issues)


def try_statement(job: tuple[str, str, int, tuple[str, ...]]) -> tuple[bool, list[Trial]]:
    """Plant several faults in one statement; also return whether its template was sound."""
    half, name, seed, kinds = job
    sound = build_sound_reading(half, name, seed)
    if sound is None:
        return False, []
    trials = [plant(kind, sound, name, seed) for kind in load_half(half).faults if kind.name in kinds]
    return True, [trial for trial in trials if trial]


def review_sound(job: tuple[str, str, int]) -> SoundReview | None:
    """Ask both reviewers about a sound template; None if the template is not sound."""
    half, name, seed = job
    sound = build_sound_reading(half, name, seed)
    if sound is None:
        return None
    reports = review(sound.applied)
    issues = tuple((issue.severity, issue.category, issue.message) for report in reports for issue in report.issues)
    return SoundReview(name, seed, not all(report.is_passed for report in reports), issues)


def run_half(half: str, per_kind: int, jobs: int) -> tuple[dict[str, list[Trial]], Counter[str]]:
    """Plant every fault of a half ``per_kind`` times, in several shapes; also count unsound templates by statement."""
    kinds = load_half(half).faults
    planted: dict[str, list[Trial]] = {kind.name: [] for kind in kinds}
    unsound: Counter[str] = Counter()
    with ProcessPoolExecutor(jobs) as pool:
        for seed in range(MOST_SEEDS):
            wanted: dict[str, list[str]] = defaultdict(list)
            for kind in kinds:
                if len(planted[kind.name]) < per_kind:
                    for name in kind.statements:
                        wanted[name].append(kind.name)
            if not wanted:
                break
            work = [(half, name, seed, tuple(names)) for name, names in wanted.items()]
            for (_, name, _, _), (is_sound, trials) in zip(work, pool.map(try_statement, work), strict=True):
                unsound[name] += not is_sound
                for trial in trials:
                    if len(planted[trial.kind]) < per_kind:
                        planted[trial.kind].append(trial)
    return planted, +unsound


def describe_share(part: int, whole: int) -> str:
    """Return a share with its Wilson limits of 95 %."""
    if not whole:
        return "none"
    limits = binomtest(part, whole).proportion_ci(method="wilson")
    return f"{part}/{whole} = {part / whole:.1%} ({limits.low:.1%} .. {limits.high:.1%})"


def report_faults(half: str, per_kind: int, jobs: int, console: Console, *, is_shown: bool) -> None:
    """Print planted and caught faults by kind, in total, and the critical ones apart."""
    planted, unsound = run_half(half, per_kind, jobs)
    table = Table(title=f"planted faults, {half} half")
    for title in ("kind", "severity", "planted", "caught", "missed in"):
        table.add_column(title, overflow="fold")
    kinds = load_half(half).faults
    for kind in kinds:
        trials = planted[kind.name]
        missed = Counter(trial.statement for trial in trials if not trial.is_caught)
        table.add_row(
            kind.name, kind.severity, str(len(trials)), str(sum(trial.is_caught for trial in trials)),
            ", ".join(f"{name} {count}" for name, count in missed.items()),
        )  # fmt: skip
    console.print(table)
    if is_shown:
        for kind in kinds:
            for trial in planted[kind.name]:
                if not trial.is_caught:
                    issues = ", ".join(f"{severity} {category}" for severity, category in trial.issues) or "nothing"
                    console.print(
                        f"{kind.name} | {trial.statement} {trial.seed} | {', '.join(trial.effects)} | {issues}"
                    )
    every = [(kind, trial) for kind in kinds for trial in planted[kind.name]]
    critical = [trial for kind, trial in every if kind.severity == "critical"]
    thin = [kind.name for kind in kinds if len(planted[kind.name]) < per_kind]
    console.print(f"kinds: {len(kinds)}, with fewer plantings than asked for: {', '.join(thin) or 'none'}")
    console.print(f"caught: {describe_share(sum(trial.is_caught for _, trial in every), len(every))}")
    console.print(f"critical caught: {describe_share(sum(trial.is_caught for trial in critical), len(critical))}")
    console.print(f"statements whose template was not sound: {dict(unsound) or 'none'}")


def report_sound(half: str, seeds: int, jobs: int, console: Console, *, is_shown: bool) -> None:
    """Print how many sound templates are rejected, and the issues with them by severity and category."""
    names = [name for name, shape in shapes.SHAPES.items() if not shape.is_scanned]
    work = [(half, name, seed) for name in names for seed in range(seeds)]
    with ProcessPoolExecutor(jobs) as pool:
        reviews = [sound_review for sound_review in pool.map(review_sound, work) if sound_review]
    rejected = [sound_review for sound_review in reviews if sound_review.is_rejected]
    console.print(f"sound templates: {len(reviews)} of {len(work)} statements")
    console.print(f"sound templates rejected: {describe_share(len(rejected), len(reviews))}")
    counts = Counter(
        f"{severity} {category}" for sound_review in reviews for severity, category, _ in sound_review.issues
    )
    console.print(f"issues with sound templates: {dict(counts.most_common()) or 'none'}")
    for sound_review in rejected if is_shown else ():
        console.print(f"{sound_review.statement} {sound_review.seed}: {sound_review.issues}")


def main() -> None:
    """Run the scorer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--per-kind", type=int, default=10, help="plantings of each kind")
    parser.add_argument(
        "--sound", type=int, default=3, help="statements of each shape whose sound template is reviewed"
    )
    parser.add_argument("--show", action="store_true", help="print what was reported instead, where a fault was missed")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    console = Console(width=160)
    if options.per_kind:
        report_faults(options.half, options.per_kind, options.jobs, console, is_shown=options.show)
    if options.sound:
        report_sound(options.half, options.sound, options.jobs, console, is_shown=options.show)


if __name__ == "__main__":
    main()
