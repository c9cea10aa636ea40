"""How many planted alterations the quote checker catches, and how many honest quotes it refuses, kind by kind.

    PYTHONPATH=tests .venv/bin/python tests/benchmarks/alterations.py [--misses N] [--seed S] [--documents N]

The cases come from ``quote_alterations.py``, which knows nothing of the checker. Real documents are measured where
``../shared/data`` lies beside the checkout, the demo's and made-up ones always.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from benchmarks.measuring import documents
from benchmarks.quote_alterations import Kind, Noised, NoiseKind, Planted, list_planted_pages, noise, plant
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalkit.documents import DocumentBundle

ACCEPTED = frozenset({"VERBATIM", "NOISY"})

Locate = Callable[[DocumentBundle, str, int], tuple[str, str | None]]
"""Verdict and difference for a bundle, a quote and the page it is claimed for."""


@dataclass(frozen=True)
class Outcome:
    """One case and what the checker said about it."""

    case: Planted | Noised
    verdict: str
    difference: str | None

    @property
    def is_right(self) -> bool:
        """Whether an altered quote was caught, an honest one accepted."""
        return (self.verdict in ACCEPTED) == isinstance(self.case, Noised)


def outcomes(locate: Locate, bundles: Iterable[DocumentBundle], seed: int) -> Iterator[Outcome]:
    for bundle in bundles:
        for case in (*plant(bundle, seed), *noise(bundle, seed)):
            verdict, difference = locate(bundle, case.quote, case.page)
            yield Outcome(case, str(verdict), difference)


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


def planted_table(title: str, rows: Iterable[Outcome]) -> Table:
    seen: Counter[Kind] = Counter()
    caught: Counter[Kind] = Counter()
    named: Counter[Kind] = Counter()
    for row in rows:
        if isinstance(row.case, Planted):
            seen[row.case.kind] += 1
            caught[row.case.kind] += row.is_right
            named[row.case.kind] += row.verdict == "ALTERED"
    table = Table("altered", "n", "caught", "%", "missed", "ALTERED %", title=title)
    for kind in Kind:
        n = seen[kind]
        missed, share = str(n - caught[kind]), percent(named[kind], n)
        table.add_row(kind, str(n), str(caught[kind]), percent(caught[kind], n), missed, share)
    n, right = seen.total(), caught.total()
    table.add_section()
    table.add_row("all", str(n), str(right), percent(right, n), str(n - right), percent(named.total(), n))
    return table


def honest_table(title: str, rows: Iterable[Outcome]) -> Table:
    seen: Counter[NoiseKind] = Counter()
    refused: Counter[NoiseKind] = Counter()
    verdicts: dict[NoiseKind, Counter[str]] = {kind: Counter() for kind in NoiseKind}
    for row in rows:
        if isinstance(row.case, Noised):
            seen[row.case.kind] += 1
            refused[row.case.kind] += not row.is_right
            verdicts[row.case.kind][row.verdict] += 1
    table = Table("honest", "n", "refused", "%", "verdicts", title=title)
    for kind in NoiseKind:
        said = ", ".join(f"{verdict} {n}" for verdict, n in sorted(verdicts[kind].items()))
        table.add_row(kind, str(seen[kind]), str(refused[kind]), percent(refused[kind], seen[kind]), said)
    table.add_section()
    table.add_row("all", str(seen.total()), str(refused.total()), percent(refused.total(), seen.total()), "")
    return table


def misses(rows: Iterable[Outcome], limit: int) -> Iterator[Text]:
    """The first wrong answers of each kind, as lines."""
    shown: Counter[str] = Counter()
    for row in rows:
        kind = row.case.kind.value
        if row.is_right or shown[kind] >= limit:
            continue
        shown[kind] += 1
        change = f"  [{row.case.change}]" if isinstance(row.case, Planted) else ""
        yield Text(f"{kind}: {row.verdict}{change}", style="bold")
        yield Text(f"  page {row.case.page}: {row.case.genuine!r}\n  quote:  {row.case.quote!r}")
        if row.difference:
            yield Text(f"  difference: {row.difference}")


def checker() -> Locate:
    """The project's own checker; one is kept for the document at hand."""
    from evalkit.grounding import QuoteLocator

    kept: dict[str, QuoteLocator] = {}

    def locate(bundle: DocumentBundle, quote: str, page: int) -> tuple[str, str | None]:
        if bundle.sha256 not in kept:
            kept.clear()
            kept[bundle.sha256] = QuoteLocator(bundle)
        found = kept[bundle.sha256].locate(quote, page)
        return found.verdict, getattr(found, "difference_text", None)

    return locate


def alterations(console: Console, *, seed: int = 0, made_up: int = 50, shown: int = 0) -> None:
    """Print the tables, and so many wrong answers of each kind."""
    locate = checker()
    everything: list[Outcome] = []
    for name, bundles in (documents() | {"made up": list(list_planted_pages(seed, made_up))}).items():
        rows = list(outcomes(locate, bundles, seed))
        console.print(planted_table(f"{name}: altered quotes", rows), honest_table(f"{name}: honest quotes", rows))
        everything += rows
    console.print(planted_table("all: altered quotes", everything), honest_table("all: honest quotes", everything))
    for line in misses(everything, shown):
        console.print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--misses", type=int, default=0, help="show so many wrong answers of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--documents", type=int, default=50, help="how many made-up documents of three pages")
    chosen = parser.parse_args()
    alterations(Console(width=130), seed=chosen.seed, made_up=chosen.documents, shown=chosen.misses)


if __name__ == "__main__":
    main()
