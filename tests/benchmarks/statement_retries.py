"""How often the review finds the right template from one that misreads its statement, and what it tries.

    cd tests && python -m benchmarks.statement_retries --half open|sealed [--per-start 3] [--show]

No model is asked. A start counts if its template misreads the statement. Wanted: the template that becomes stable reads
the statement right; two attempts never have equal templates; no template that misreads becomes stable.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

from benchmarks.first_contact.statement_retries.making import MisreadStart
from benchmarks.statement_faults import build_sound_reading, describe_share, find_effects, is_sound
from rich.console import Console
from rich.table import Table

from evalkit.llm.embedded import EmbeddedModel
from evalkit.statements.statement_template import StatementTemplate, TemplateStatus, parse_template_toml
from evalkit.statements.template_review_loop import TemplateReviewLoop


class Outcome(NamedTuple):
    """What became of one misread start."""

    name: str
    statement: str
    seed: int
    attempts: int
    equal_attempts: int
    """Attempts whose template equals that of an earlier one."""
    is_stable: bool
    is_right: bool
    reason: str
    """Why a person must decide; empty if the template is stable."""


def load_starts(half: str) -> tuple[MisreadStart, ...]:
    """Return the starts of a half."""
    starts: tuple[MisreadStart, ...] = importlib.import_module(
        f"benchmarks.first_contact.statement_retries.{half}"
    ).STARTS
    return starts


def strip_template(toml: str) -> dict[str, Any]:
    """Return what a template says of reading, without its name, version and status."""
    template = parse_template_toml(toml, "attempt")
    return template.model_dump(exclude={"template_id", "version", "status", "identity"})


def run_start(job: tuple[str, int, int]) -> Outcome | None:
    """Review one statement from its misreading template; None if the template is not sound before or still after."""
    half, position, number = job
    start = load_starts(half)[position]
    seed = start.first_seed + number
    sound = build_sound_reading(half, start.statement, seed)
    if sound is None:
        return None
    plain = sound.applied.template.model_dump(mode="json", by_alias=True)
    start.spoil_template(plain, sound.drawn, random.Random(f"{start.name} {seed}"))
    template = StatementTemplate.model_validate(plain)
    if not find_effects(sound, sound.applied.apply_other_template(template)):
        return None
    loop = TemplateReviewLoop(lambda role: EmbeddedModel(), clock=lambda: "2024-05-01T08:00:00+00:00")
    review = asyncio.run(loop.review_template(template, sound.bundle))
    tried = [strip_template(cycle.template) for cycle in review.cycles]
    return Outcome(
        start.name,
        start.statement,
        seed,
        len(tried),
        sum(attempt in tried[:index] for index, attempt in enumerate(tried)),
        review.template.status is TemplateStatus.STABLE,
        is_sound(sound.drawn, sound.applied.apply_other_template(review.template)),
        str(review.template_case.escalation.escalation_reason) if review.template_case else "",
    )


def main() -> None:
    """Run the scorer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--per-start", type=int, default=3, help="statements of each start")
    parser.add_argument("--show", action="store_true", help="print every outcome that is not stable and right")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    starts = load_starts(options.half)
    work = [(options.half, position, number) for position in range(len(starts)) for number in range(options.per_start)]
    with ProcessPoolExecutor(options.jobs) as pool:
        outcomes = [outcome for outcome in pool.map(run_start, work) if outcome]
    console = Console(width=140)
    table = Table(title=f"misread starts, {options.half} half")
    for title in (
        "start",
        "statement",
        "run",
        "stable, right",
        "draft, right",
        "stable, wrong",
        "attempts",
        "equal",
        "to a person",
    ):
        table.add_column(title, overflow="fold")
    for start in starts:
        mine = [outcome for outcome in outcomes if outcome.name == start.name]
        table.add_row(
            start.name, start.statement, str(len(mine)), str(sum(outcome.is_stable and outcome.is_right for outcome in mine)),
            str(sum(outcome.is_right and not outcome.is_stable for outcome in mine)),
            str(sum(outcome.is_stable and not outcome.is_right for outcome in mine)),
            ", ".join(str(outcome.attempts) for outcome in mine), str(sum(outcome.equal_attempts for outcome in mine)),
            ", ".join(f"{reason} {count}" for reason, count in Counter(outcome.reason for outcome in mine if outcome.reason).items()),
        )  # fmt: skip
    console.print(table)
    if options.show:
        for outcome in outcomes:
            if not (outcome.is_stable and outcome.is_right):
                console.print(
                    f"{outcome.name} | {outcome.statement} {outcome.seed} | attempts {outcome.attempts} | "
                    f"{'stable' if outcome.is_stable else 'draft'}, {'right' if outcome.is_right else 'wrong'} | {outcome.reason}"
                )
    stable = sum(outcome.is_stable and outcome.is_right for outcome in outcomes)
    console.print(f"right and stable: {describe_share(stable, len(outcomes))}")
    console.print(f"equal templates in two attempts: {sum(outcome.equal_attempts for outcome in outcomes)} (wanted 0)")
    wrong = sum(outcome.is_stable and not outcome.is_right for outcome in outcomes)
    console.print(f"stable but wrong: {wrong} (wanted 0)")


if __name__ == "__main__":
    main()
