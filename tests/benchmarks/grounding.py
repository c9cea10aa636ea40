"""The quote checker's time beside langextract's: `PYTHONPATH=tests .venv/bin/python tests/benchmarks/grounding.py`.

CPU time of one quote on one page, medians of five rounds. Every round has quotes of its own, so that nothing is known
but the pages. langextract's aligner has every quote of a smaller sample looked for on the page it is claimed for. Both
also judge the same altered and honest quotes: what langextract aligns at all, it accepts.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import ROUNDS, NotMeasured, cpu, documents, peer
from benchmarks.quote_alterations import Kind, Noised, NoiseKind, Planted, noise, plant
from rich.console import Console
from rich.table import Table

from evalkit.documents import DocumentBundle
from evalkit.grounding import QuoteLocation, QuoteLocator

#: A round of evalkit's has so many quotes at most, one of langextract's so many.
OURS, THEIRS = 200, 20
JUDGED = 300
SEED = 0

# Runs in the peer's environment.
_PEER = """
import json, statistics, sys, time
from langextract import resolver
from langextract.core import data
asked = json.load(open(sys.argv[1]))
aligner = resolver.WordAligner()
def accepts(quote, text):
    wanted = [[data.Extraction(extraction_class="q", extraction_text=quote)]]
    found = aligner.align_extractions(wanted, text)
    return any(one.alignment_status is not None for group in found for one in group)
def microseconds(quotes):
    began = time.process_time()
    for quote in quotes:
        accepts(*quote)
    return 1e6 * (time.process_time() - began) / len(quotes)
timed = {name: statistics.median([microseconds(quotes) for quotes in rounds][1:]) for name, rounds in asked["timed"].items()}
judged = {name: sum(accepts(*quote) for quote in quotes) for name, quotes in asked["judged"].items()}
json.dump({"timed": timed, "judged": judged}, open(sys.argv[2], "w"))
"""


class Asked(NamedTuple):
    """A quote to be looked for."""

    locator: QuoteLocator
    bundle: DocumentBundle
    case: Planted | Noised

    def locate(self) -> QuoteLocation:
        return self.locator.locate(self.case.quote, self.case.page)

    @property
    def for_peer(self) -> tuple[str, str]:
        """The quote, and the text of the page it is claimed for."""
        return self.case.quote, self.bundle.page(self.case.page).text


class Task(NamedTuple):
    """What is timed."""

    name: str
    rounds: list[list[Asked]]
    """All as long; the first one only fills caches."""
    goal: str
    is_nowhere: bool = False
    """Every page of the document is looked at, so the time is of one of them."""


Ask = Callable[[Callable[[DocumentBundle], Iterable[Planted | Noised]]], list[Asked]]
"""The cases of all documents."""


def spread(asked: Sequence[Asked], most: int) -> list[Asked]:
    """At most so many of them, from everywhere."""
    count = min(most, len(asked))
    return [asked[at * len(asked) // count] for at in range(count)]


def even(rounds: Sequence[Sequence[Asked]]) -> list[list[Asked]]:
    count = min(OURS, *map(len, rounds))
    return [spread(asked, count) for asked in rounds]


def asking(bundles: Sequence[DocumentBundle]) -> Ask:
    locators = [(QuoteLocator(bundle), bundle) for bundle in bundles if bundle.has_text]
    for locator, bundle in locators:  # all pages, and what runs on from one to the next, are known from here on
        for number in range(1, bundle.total_pages + 1):
            locator.locate("a quote that stands nowhere", number)
    return lambda cases: [Asked(locator, bundle, case) for locator, bundle in locators for case in cases(bundle)]


def tasks(name: str, ask: Ask) -> Iterator[Task]:
    noised = [ask(lambda bundle, seed=seed: noise(bundle, seed)) for seed in range(ROUNDS + 1)]
    exact = [[one for one in asked if one.case.kind is NoiseKind.EXACT] for asked in noised]
    typical = [[one for one in asked if 10 <= len(one.case.quote.split()) <= 15] for asked in exact]
    misread = [[one for one in asked if one.case.kind is NoiseKind.CHARACTERS] for asked in noised]
    nowhere = [one for one in ask(lambda bundle: plant(bundle, SEED)) if one.case.kind is Kind.FABRICATED]
    yield Task(f"{name}: exact quote", even(exact), "goal 20 µs")
    yield Task(f"{name}: exact quote of 10 to 15 words", even(typical), "goal 20 µs")
    yield Task(f"{name}: misread characters", even(misread), "goal 400 µs")
    yield Task(f"{name}: nowhere", even([nowhere[at :: ROUNDS + 1] for at in range(ROUNDS + 1)]), "each page", True)


def microseconds(task: Task) -> float:
    """CPU time of a quote and page."""
    rounds = iter(task.rounds)
    (seconds,) = cpu(lambda: [one.locate() for one in next(rounds)])
    looks = [one.bundle.total_pages if task.is_nowhere else 1 for asked in task.rounds[1:] for one in asked]
    return 1e6 * seconds / (sum(looks) / ROUNDS)


def first_quote(bundles: Sequence[DocumentBundle]) -> float:
    """CPU time in ms of the first quote on a page of 3,000 characters: most of it is spent once on each page."""
    rounds = iter(range(ROUNDS + 1))

    def locate() -> None:
        unseen = "\n" * next(rounds)  # pages are known by their text
        for bundle in bundles:
            pages = tuple(page.model_copy(update={"text": page.text + unseen}) for page in bundle.pages)
            locator = QuoteLocator(bundle.model_copy(update={"pages": pages}))
            for page in pages:
                locator.locate(" ".join(page.text.split()[20:30]), page.page_num)

    (seconds,) = cpu(locate)
    return 1e3 * seconds * 3_000 / sum(len(page.text) for bundle in bundles for page in bundle.pages)


def judged(ask: Ask) -> dict[str, list[Asked]]:
    """Quotes that must not be accepted, and such as must. Of two pages langextract could see only one."""
    honest = [one for one in ask(lambda bundle: noise(bundle, SEED)) if one.case.kind is not NoiseKind.PAGE_JOIN]
    return {"altered": spread(ask(lambda bundle: plant(bundle, SEED)), JUDGED), "honest": spread(honest, JUDGED)}


def answers(timed: Sequence[Task], cases: dict[str, list[Asked]]) -> dict[str, dict[str, float]]:
    """langextract's microseconds by task, and how many quotes it accepts. NotMeasured."""
    asked = {
        "timed": {one.name: [[it.for_peer for it in spread(few, THEIRS)] for few in one.rounds] for one in timed},
        "judged": {name: [one.for_peer for one in quotes] for name, quotes in cases.items()},
    }
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / "asked.json", Path(folder) / "answered.json"
        question.write_text(json.dumps(asked))
        peer(_PEER, [question, answer])
        told: dict[str, dict[str, float]] = json.loads(answer.read_text())
    return told


def grounding() -> Table:
    timed = [task for name, bundles in documents().items() for task in tasks(name, asking(bundles))]
    cases = judged(asking([bundle for bundles in documents().values() for bundle in bundles]))
    try:
        theirs = answers(timed, cases)
        times = {name: f"{value:.0f} µs" for name, value in theirs["timed"].items()}
        accepted = {name: f"{value:.0f} of {len(cases[name])}" for name, value in theirs["judged"].items()}
        problem = ""
    except NotMeasured as error:
        times, accepted, problem = {}, {}, str(error)
    table = Table("quotes", "evalkit", "beside", "langextract", title=f"grounding, CPU time, medians of {ROUNDS}")
    for task in timed:
        ours = f"{microseconds(task):.1f} µs"
        table.add_row(task.name, ours, task.goal, times.get(task.name, problem))
    for name, bundles in documents().items():
        ours = f"{first_quote([bundle for bundle in bundles if bundle.has_text]):.2f} ms"
        table.add_row(f"{name}: first quote on a page of 3,000 characters", ours, "", "")
    for name, quotes in cases.items():
        ours = f"{sum(one.locate().is_found for one in quotes)} of {len(quotes)}"
        table.add_row(f"{name} quotes accepted", ours, "", accepted.get(name, problem))
    return table


if __name__ == "__main__":
    Console(width=130).print(grounding())
