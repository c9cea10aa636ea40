"""Asking only what is in doubt: pages that an expert must see, and errors that are missed, beside whole cases.

    cd tests && ../.venv/bin/python -m benchmarks.in_doubt [--half open|sealed] [--only cases packets] [--wrong-accept-usd 100] [--json]

The simulated expert sees only the pages that must be seen, is asked only what is asked, and is right about it. A case shown
whole is measured twice: with the pages that must be seen before it can be validated, and with all pages of the file. Cases
are counted as if none had been drawn to be shown whole. Minutes are pages at the seconds that are assumed before any case
was timed.

``cases``: invented packets by another author with errors that the doubts may not point at. ``packets``: packets drawn from
labelled texts, answered by weights that saw nothing of their sources.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import lies
from benchmarks.first_contact.in_doubt import find_missed_parts, find_wrong_parts, read_cases, write_cases
from benchmarks.measuring import TIMESTAMP
from places import open_folder
from rich.console import Console
from rich.table import Table

import evalkit
from evalkit.classification.document_result import DocumentResult
from evalkit.classification.schema import ClassificationOutput
from evalkit.review import SMEPacketGenerator
from evalkit.review.case_files import read_answering_model_name, read_packet
from evalkit.review.kinds.classification import ClassificationPacket
from evalkit.review.review_plan import ReviewCosts
from evalkit.settings import PriceSettings
from evalkit.store import packet_file_name


class Asked(NamedTuple):
    """What an expert sees of one escalated file, and what is missed."""

    name: str
    is_short: bool
    wrong: tuple[str, ...]
    """The wrong parts of the answer."""
    page_count: int
    pages: tuple[int, int]
    """Pages that must be seen: of the case as it is shown, and if it were shown whole."""
    missed: tuple[tuple[str, ...], ...]
    """Wrong parts that are missed: as it is shown, whole with the pages that must be seen, whole with all pages."""


def ask(packet: ClassificationPacket, case: dict[str, Any], costs: ReviewCosts, source: str) -> Asked:
    """Ask the simulated expert about an escalated file, of which ``case`` has the wrong parts and the pages needed."""
    plan = packet.plan_review(costs, source)
    required = packet.whole_requirements
    issue_pages = {
        issue.page for issue in packet.open_issues if issue.issue_id in required.issue_ids and issue.page is not None
    }
    whole_pages = {page for page in {*required.page_numbers, *issue_pages} if 1 <= page <= packet.total_pages}
    asked_pages = {page for asked in plan.asked for page in asked.pages} if plan.asked else whole_pages
    asked_parts = [asked.part for asked in plan.asked] if plan.asked else case["wrong"]
    return Asked(
        packet.case_id,
        bool(plan.asked),
        tuple(case["wrong"]),
        packet.total_pages,
        (len(asked_pages), len(whole_pages)),
        (
            tuple(find_missed_parts(case, asked_parts, asked_pages)),
            tuple(find_missed_parts(case, case["wrong"], whole_pages)),
            tuple(find_missed_parts(case, case["wrong"], range(1, packet.total_pages + 1))),
        ),
    )


def ask_about_cases(half: str, costs: ReviewCosts) -> Iterator[Asked | tuple[str, int]]:
    """Ask about the packets of another author; a file that was accepted is its name and its number of wrong parts."""
    cases = read_cases(half)
    with tempfile.TemporaryDirectory() as folder:
        folders = write_cases(cases, Path(folder))
        evalkit.run([folders.pdfs], output=Path(folder) / "output", classifications=folders.answers)
        files = open_folder(Path(folder) / "output")
        for case in cases:
            packet = read_packet(files, case["id"]) if files.has_file(packet_file_name(case["id"])) else None
            if isinstance(packet, ClassificationPacket) and packet.review_reason == "escalated":
                yield ask(packet, case, costs, read_answering_model_name(files, packet))
            else:
                yield case["id"], len(case["wrong"])


def ask_about_packets(costs: ReviewCosts) -> Iterator[Asked | tuple[str, int]]:
    """Ask about the drawn packets."""
    for name, packet, outcome in lies.judge_packets():
        answer = outcome.classification
        if answer is None:
            continue
        case = _describe_errors(answer, packet.truth)
        if outcome.verdict.decision == "AUTO_ACCEPT":
            yield name, len(case["wrong"])
            continue
        result = DocumentResult.model_construct(
            doc_id=name.replace(" ", "_"),
            classification=answer,
            issues=tuple(outcome.issues),
            decision=outcome.verdict.decision,
            decision_rule=str(outcome.verdict.rule),
            decision_reason=outcome.verdict.reason,
        )
        made = SMEPacketGenerator().packet(
            result,
            packet.bundle.model_copy(update={"doc_id": result.doc_id}),
            review_reason="escalated",
            inclusion_probability=1.0,
            production_row=None,
            created_at=TIMESTAMP,
        )
        yield ask(made, case, costs, "embedded")


def _describe_errors(answer: ClassificationOutput, truth: Iterable[tuple[int, int, str]]) -> dict[str, Any]:
    """Describe the errors of an answer as the cases of the other author do: wrong parts, and the pages that show each."""
    segments = [segment.model_dump(mode="json") for segment in answer.segments]
    # The patients of drawn packets are no question here: they are drawn of several.
    wrong = find_wrong_parts(segments, {"segments": list(truth), "persons": []})
    starts = {f"segment:{segment.segment_index}": [segment.start_page] for segment in answer.segments}
    needed = {
        part: starts.get(part) or [int(part.partition(":")[2]) - 1, int(part.partition(":")[2])] for part in wrong
    }
    return {"wrong": sorted(wrong), "needed": needed}


def summarise(results: Iterable[Asked | tuple[str, int]], costs: ReviewCosts) -> dict[str, Any]:
    """Summarise what was asked, seen and missed."""
    every = list(results)
    asked = [one for one in every if isinstance(one, Asked)]
    short = [one for one in asked if one.is_short]
    accepted_errors = [one[1] for one in every if not isinstance(one, Asked)]
    return {
        "files": len(every),
        "accepted": len(accepted_errors),
        "wrong parts accepted, which nobody is asked about": sum(accepted_errors),
        "escalated": len(asked),
        "asked only about doubts": len(short),
        "pages of a file, median": median(one.page_count for one in asked),
        "pages that must be seen, median": median(one.pages[0] for one in asked),
        "the same if shown whole, median": median(one.pages[1] for one in asked),
        "minutes": round(sum(costs.estimate_minutes("classification", one.pages[0]) for one in asked), 1),
        "minutes if shown whole": round(
            sum(costs.estimate_minutes("classification", one.pages[1]) for one in asked), 1
        ),
        "minutes if all pages are seen": round(
            sum(costs.estimate_minutes("classification", one.page_count) for one in asked), 1
        ),
        "wrong parts": sum(len(one.wrong) for one in asked),
        "missed": sum(len(one.missed[0]) for one in asked),
        "missed if shown whole": sum(len(one.missed[1]) for one in asked),
        "missed if all pages are seen": sum(len(one.missed[2]) for one in asked),
        "wrong parts of short cases": sum(len(one.wrong) for one in short),
        "missed in short cases": sum(len(one.missed[0]) for one in short),
        "missed in them if shown whole": sum(len(one.missed[1]) for one in short),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--only", nargs="*", default=["cases", "packets"], choices=("cases", "packets"))
    parser.add_argument("--wrong-accept-usd", type=float, default=PriceSettings().wrong_accept_usd)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--wrong", action="store_true", help="name each missed part")
    chosen = parser.parse_args()
    costs = ReviewCosts(PriceSettings(wrong_accept_usd=chosen.wrong_accept_usd))
    results = {
        name: list(ask_about_cases(chosen.half, costs) if name == "cases" else ask_about_packets(costs))
        for name in chosen.only
    }
    figures = {name: summarise(asked, costs) for name, asked in results.items()}
    if chosen.json:
        print(json.dumps(figures, indent=1))
        return
    table = Table("measure", *figures)
    for measure in next(iter(figures.values())):
        table.add_row(measure, *(f"{columns[measure]:g}" for columns in figures.values()))
    Console(width=140).print(table)
    for one in (asked for some in results.values() for asked in some if chosen.wrong and isinstance(asked, Asked)):
        if one.missed[0]:
            print(one.name, "short" if one.is_short else "whole", *one.missed[0], "| whole:", *one.missed[1])


if __name__ == "__main__":
    main()
