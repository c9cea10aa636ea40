"""Does evalkit learn from a hospital's experts, and does it refuse to learn wrong answers?

    cd tests && ../.venv/bin/python -m benchmarks.twelve_weeks [--source NAME …] [--half open|sealed] [--plot FILE] [--json FILE]
    cd tests && ../.venv/bin/python -m benchmarks.twelve_weeks --poison RUNS [--half open|sealed] [--json FILE]

Files of twelve weeks at invented hospitals (``first_contact/twelve_weeks``), made of labelled texts whose source the model
has not seen. Escalated files are answered with the program's answer in sight, a fifth of the accepted ones blind, 3 % of
the answers are wrong. After 100 answers the challenger that learned from them is compared with the champion on all
files of the later weeks; beside it, the weeks as they would pass if each challenger without an obstacle were promoted.

``--poison``: the answers of one week are wrong in a fifth of its files. A poisoned week is promoted if a challenger may be
promoted that learned from one of its wrong answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from benchmarks.first_contact.papers import CACHE, read_paper
from benchmarks.first_contact.twelve_weeks import (
    WEEKS,
    ExpertAnswer,
    Reading,
    ReplayDocument,
    answer,
    build_replay,
    list_hospitals,
    list_poison_kinds,
    poison,
)
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from rich.console import Console
from rich.table import Table

from evalkit.classification.offline import acts
from evalkit.classification.offline.acts import ActWeights
from evalkit.classification.offline.model_weights import (
    EmbeddedModelWeights,
    load_shipped_weights,
    parse_weights_json,
    use_site_weights,
)
from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.documents.bundle import DocumentBundle
from evalkit.evaluation import plots
from evalkit.evaluation.learning import (
    AnsweredFile,
    Challenge,
    FileOutcome,
    challenge_champion,
    learn_weights,
    number_groups,
)

SOURCES = ("mtsamples", "synthetic")
FILES_A_WEEK, AUDITED_SHARE, EXPERT_ERRORS, ANSWERS = 40, 0.2, 0.03, 100
POISONED_WEEKS, ANSWERED_WEEKS = (3, 4, 5, 6), 12
"""A week of these is poisoned; as many weeks are answered when the challenger is proposed."""
SALT = "benchmark"
_MONDAY = date(2026, 1, 5)


@contextmanager
def use_weights(weights: EmbeddedModelWeights, act_weights: ActWeights) -> Iterator[None]:
    """Judge by these weights, and by acts that have not seen the source."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(acts, "load_shipped_act_weights", lambda: act_weights))
        stack.enter_context(use_site_weights(weights))
        yield


class Unseen(NamedTuple):
    """Weights that saw nothing of a source."""

    embedded: EmbeddedModelWeights
    acts: ActWeights


def load_unseen_weights() -> dict[str, Unseen]:
    """Weights by the source that they have not seen; kept under ``.bench``, learning them takes ten minutes."""
    stored = CACHE.parent / "unseen_weights.json"
    if not stored.exists():
        from benchmarks.lies import learn_without_sources

        unseen, _ = learn_without_sources()
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text(
            json.dumps({name: [part.model_dump(by_alias=True) for part in pair] for name, pair in unseen.items()})
        )
    # how much pages' types count in where documents begin is a single number, not learned from any source's words
    influence = {"types": load_shipped_weights().page_type_influence}
    return {
        name: Unseen(
            parse_weights_json({**embedded, "joins": {**embedded["joins"], **influence}}),
            ActWeights.model_validate(act_weights),
        )
        for name, (embedded, act_weights) in json.loads(stored.read_text("utf-8")).items()
    }


class Decided(NamedTuple):
    """What the program made of a file."""

    outcome: FileOutcome
    certainty: float


@dataclass
class Replay:
    """The files of one hospital, with what each version of the weights makes of them."""

    source: str
    hospital: str
    seed: int
    unseen: Unseen
    files: list[ReplayDocument] = field(init=False)
    _bundles: dict[tuple[str, ...], DocumentBundle] = field(default_factory=dict)
    _decided: dict[tuple[str, str], Decided] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files = build_replay(self.source, self.hospital, self.seed, FILES_A_WEEK)

    def read(self, file: ReplayDocument) -> DocumentBundle:
        """The file's bundle; each is read once."""
        key = file.id, *file.pages
        if key not in self._bundles:
            self._bundles[key] = read_paper(file.id, file.pages)
        return self._bundles[key]

    def decide(self, bundle: DocumentBundle, weights: EmbeddedModelWeights) -> Decided:
        """What these weights make of a file; each file is decided once."""
        key = weights.version, bundle.sha256
        if key not in self._decided:
            with use_weights(weights, self.unseen.acts):
                outcome = asyncio.run(RetryOrchestrator().evaluate(bundle))
            answered = outcome.classification
            confidences = [
                max((part.confidence for part in segment.segment_composition), default=0.0)
                for segment in (answered.segments if answered else ())
            ]
            self._decided[key] = Decided(FileOutcome.create(outcome), min(confidences, default=0.0))
        return self._decided[key]

    def decide_files(self, files: Sequence[AnsweredFile], weights: EmbeddedModelWeights) -> list[FileOutcome]:
        """The function that a challenge is given."""
        return [self.decide(file.bundle, weights).outcome for file in files]

    def challenge(self, answered: Sequence[AnsweredFile], champion: EmbeddedModelWeights, **options: Any) -> Challenge:
        """Challenge the champion by these answers."""
        with use_weights(champion, self.unseen.acts):
            return challenge_champion(answered, champion, self.decide_files, letterhead_salt=SALT, **options)

    def answer_week(self, week: int, weights: EmbeddedModelWeights) -> list[AnsweredFile]:
        """Escalated files with the program's answer in sight, a fifth of the others blind."""
        answered = []
        for file in self.files:
            if file.week == week:
                outcome = self.decide(self.read(file), weights).outcome
                is_audited = random.Random(f"{self.seed} {file.id}").random() < AUDITED_SHARE
                if outcome.is_accepted and is_audited:
                    answered.append(self.record(file, answer(file, self.seed, EXPERT_ERRORS), None, 1 / AUDITED_SHARE))
                elif not outcome.is_accepted:
                    given = answer(file, self.seed, EXPERT_ERRORS, shown=outcome.segments)
                    answered.append(self.record(file, given, outcome))
        return answered

    def record(
        self, file: ReplayDocument, given: ExpertAnswer, shown: FileOutcome | None, weight: float = 1.0
    ) -> AnsweredFile:
        """An expert's answer as evalkit stores it."""
        longest = max(given.segments, key=lambda segment: segment[1] - segment[0])
        day = _MONDAY + timedelta(weeks=file.week - 1, days=file.day - 1)
        return AnsweredFile(
            self.read(file),
            longest[2],
            given.segments,
            f"{day}T12:00:00Z",
            frozenset({given.reviewer}),
            is_blind=shown is None,
            is_correction=shown is not None and shown.segments != given.segments,
            weight=weight,
        )

    def truth(self, file: ReplayDocument) -> AnsweredFile:
        """The true answer about a file."""
        segments = tuple((part.start_page, part.end_page, part.type) for part in file.segments)
        given = ExpertAnswer(file.id, "", "blind", segments, 0.0, file.day)
        return self.record(file, given, None)

    def count(self, files: Sequence[ReplayDocument], weights: EmbeddedModelWeights) -> dict[str, int]:
        """Files by what became of them; ``of the source``: without texts that were written for the benchmark."""
        counts = dict.fromkeys(
            ("files", "wrong type", "wrong", "wrong accepted", "needless", "source files", "source wrong"), 0
        )
        for file in files:
            outcome, truth = self.decide(self.read(file), weights).outcome, self.truth(file)
            is_right = outcome.is_right(truth)
            is_from_source = all(part.origin == "source" for part in file.segments)
            counts["files"] += 1
            counts["wrong type"] += outcome.dominant_type != truth.dominant_type
            counts["wrong"] += not is_right
            counts["wrong accepted"] += outcome.is_accepted and not is_right
            counts["needless"] += is_right and not outcome.is_accepted
            counts["source files"] += is_from_source
            counts["source wrong"] += is_from_source and not is_right
        return counts


def measure_learning(replay: Replay) -> dict[str, Any]:
    """One hospital: later files by champion and challenger, and its weeks with promotions."""
    champion = in_force = replay.unseen.embedded
    answered: list[AnsweredFile] = []
    promoted_answers: list[AnsweredFile] = []
    compared: dict[str, Any] = {}
    weeks, promotions, attempt = [], [], 0
    for week in range(1, WEEKS + 1):
        files = [file for file in replay.files if file.week == week]
        weeks.append([replay.count(files, champion), replay.count(files, in_force)])
        answered += replay.answer_week(week, champion)
        promoted_answers += replay.answer_week(week, in_force)
        if len(answered) >= ANSWERS and not compared:
            later = [file for file in replay.files if file.week > week]
            with use_weights(champion, replay.unseen.acts):
                learned = learn_weights(answered, number_groups(answered), champion, SALT)
            compared = {
                "answers": len(answered),
                "corrections": sum(file.is_correction for file in answered),
                "learned_from": len(learned.learned_ids),
                "left_out": [list(row) for row in learned.left_out],
                "champion": replay.count(later, champion),
                "challenger": replay.count(later, parse_weights_json(learned.weights_json)),
            }
        proposal = replay.challenge(promoted_answers, in_force, attempt=attempt + 1)
        attempt += proposal.weights_json is not None
        if proposal.weights_json is not None and not proposal.obstacles:
            in_force, attempt = parse_weights_json(proposal.weights_json), 0
            promotions.append({"week": week, **proposal.facts})
    return {"compared": compared, "weeks": weeks, "promotions": promotions}


def measure_poisoning(replay: Replay, kind: str, seed: int) -> dict[str, Any] | None:
    """Whether a challenger that learned from the poisoned week would be promoted; None if there is nothing to poison."""
    champion = replay.unseen.embedded
    poisoned_week = random.Random(f"{seed} {kind}").choice(POISONED_WEEKS)
    files = [file for file in replay.files if file.week == poisoned_week]
    readings = {
        file.id: Reading(decided.outcome.segments, decided.certainty)
        for file in files
        for decided in (replay.decide(replay.read(file), champion),)
    }
    try:
        poisoned = poison(files, kind, seed, readings=readings)
    except ValueError:
        return None
    answered = [
        file
        for week in range(1, ANSWERED_WEEKS + 1)
        if week != poisoned_week
        for file in replay.answer_week(week, champion)
    ]
    for file, given in zip(poisoned.documents, poisoned.answers, strict=True):
        outcome = replay.decide(replay.read(file), champion).outcome
        answered.append(replay.record(file, given, outcome if given.kind == "correction" else None))
    challenge = replay.challenge(answered, champion)
    may_be_promoted = challenge.weights_json is not None and not challenge.obstacles
    learned_wrong = challenge.learned_ids & poisoned.wrong
    week_name = replay.record(poisoned.documents[0], poisoned.answers[0], None).week
    return {
        "kind": kind,
        "source": replay.source,
        "hospital": replay.hospital,
        "seed": seed,
        "wrong": len(poisoned.wrong),
        "learned_wrong": len(learned_wrong),
        "is_week_left_out": any(row.who == week_name for row in challenge.left_out),
        "may_be_promoted": may_be_promoted,
        "is_poison_promoted": may_be_promoted and bool(learned_wrong),
        "obstacles": list(challenge.obstacles),
    }


def tabulate_learning(found: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[Table]:
    """Later files by champion and challenger, of each hospital and all."""
    table = Table(
        "source, hospital",
        "answers",
        "files",
        "wrong type",
        "wrong",
        "wrong accepted",
        "needless",
        "wrong, source only",
    )
    totals: dict[str, dict[str, int]] = {"champion": {}, "challenger": {}}
    for name, row in found:
        compared = row["compared"]
        for side in totals if compared else ():
            totals[side] = {key: totals[side].get(key, 0) + value for key, value in compared[side].items()}
        if compared:
            table.add_row(name, str(compared["answers"]), *_pair_cells(compared))
    table.add_row("all", "", *_pair_cells(totals))
    yield table


def _pair_cells(sides: dict[str, dict[str, int]]) -> list[str]:
    keys = ("files", "wrong type", "wrong", "wrong accepted", "needless", "source wrong")
    first, second = sides["champion"], sides["challenger"]
    return [
        str(first[key])
        if key == "files"
        else f"{first[key]} → {second[key]} ({(second[key] - first[key]) / max(first[key], 1):+.0%})"
        for key in keys
    ]


def plot_weeks(found: Sequence[tuple[str, dict[str, Any]]], file: Path) -> None:
    """Plot the share of wrong answers and of needless escalations by week, with promotions."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    weeks = range(1, WEEKS + 1)
    for number, (key, title) in enumerate((("wrong", "wrong answers"), ("needless", "needless escalations")), 1):
        axes = figure.add_subplot(1, 2, number)
        for side, label, colour in ((0, "as shipped, never learning", "#b8540a"), (1, "with promotions", "#0b5cad")):
            shares = [
                sum(row["weeks"][week - 1][side][key] for _, row in found)
                / sum(row["weeks"][week - 1][side]["files"] for _, row in found)
                for week in weeks
            ]
            axes.plot(weeks, shares, color=colour, label=label, marker="o", markersize=3)
        promoted = [promotion["week"] for _, row in found for promotion in row["promotions"]]
        for week in promoted:
            axes.axvline(week + 0.5, color="#d7dbe0", linewidth=0.8, zorder=0)
        axes.set_title(f"{title}, share of all files", fontsize=10)
        axes.set_xlabel("week (grey: a hospital promotes)")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    file.write_text(plots.render_svg(figure), "utf-8") if file.suffix == ".svg" else figure.savefig(file, dpi=150)


def store_json(found: Sequence[Any], file: Path | None) -> None:
    """Write what was found so far, because a run takes long."""
    if file is not None:
        file.write_text(json.dumps(found, indent=1), "utf-8")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", nargs="+", default=list(SOURCES))
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--poison", type=int, default=0, metavar="RUNS")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    unseen = load_unseen_weights()
    console = Console(width=150)
    found: list[Any] = []
    if options.poison:
        places = [(source, hospital) for hospital in list_hospitals(options.half) for source in options.source]
        replays: dict[tuple[str, str], Replay] = {}
        number = 0
        while len(found) < options.poison and number < 3 * options.poison:
            kinds = list_poison_kinds(options.half)
            place, kind = places[number // len(kinds) % len(places)], kinds[number % len(kinds)]
            if place not in replays:
                replays[place] = Replay(*place, options.seed, unseen[place[0]])
            run = measure_poisoning(replays[place], kind, options.seed + number // (len(kinds) * len(places)))
            number += 1
            if run is not None:
                found.append(run)
                store_json(found, options.json)
        table = Table(
            "kind", "runs", "wrong answers", "of them learned", "week left out", "may be promoted", "poison promoted"
        )
        for kind in (*list_poison_kinds(options.half), "all"):
            runs = [run for run in found if kind in (run["kind"], "all")]
            names = ("wrong", "learned_wrong", "is_week_left_out", "may_be_promoted", "is_poison_promoted")
            table.add_row(kind, str(len(runs)), *(str(sum(run[name] for run in runs)) for name in names))
        console.print(table)
    else:
        for source in options.source:
            for hospital in list_hospitals(options.half):
                found.append(
                    (f"{source}, {hospital}", measure_learning(Replay(source, hospital, options.seed, unseen[source])))
                )
                store_json(found, options.json)
                console.print(
                    found[-1][0], found[-1][1]["compared"], [row["week"] for row in found[-1][1]["promotions"]]
                )
        console.print(*tabulate_learning(found))
        if options.plot:
            plot_weeks(found, options.plot)


if __name__ == "__main__":
    main()
