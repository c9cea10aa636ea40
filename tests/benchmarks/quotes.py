"""Measure V4 on quotes of an author who has not read its rules, and on true quotes of real texts.

From ``tests``: ``python -m benchmarks.quotes [--half open|sealed] [--misses] [--true-quotes]``. A turned quote is right
where V4's computed part raises a BLOCKER or MAJOR about it, another one where neither part raises any; a strong quote
where it is accepted as a type's only evidence, a weak one where it is not.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builders import document, evidence, one_segment, parse_answer
from rich.console import Console
from rich.table import Table

from evalkit.classification.evidence_strength import find_weak_evidence
from evalkit.classification.v4_evidence_quality import V4EvidenceQualityAssessor
from evalkit.grounding import QuoteLocator
from evalkit.issue import IssueSeverity

FOLDER = Path(__file__).parent / "first_contact" / "quotes"
TEXTS = Path(__file__).parents[3] / "shared" / "data" / "clinical_text.jsonl"
STRENGTH = "strength"
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\b[DM]r\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bi\.e\.)\s+|\s*\n\s*(?![\sa-z(])"
)  # not where a line is only wrapped
_CLAUSE_BOUNDARY = re.compile(r"[,;:]\s|\s(?=(?:and|but|or|with|which|that)\s)")


def load_rows(half: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text().splitlines()]


def judge(row: dict[str, Any]) -> tuple[bool, str]:
    """Whether V4 judges the row rightly, and what it said."""
    page = row.get("page", row["quote"])
    answer, bundle = parse_answer(one_segment(row["type"], 1, evidence(row["quote"], 1))), document(page)
    quote_issues = [
        issue for issue in V4EvidenceQualityAssessor().validate(answer, bundle).issues if _is_serious(issue.severity)
    ]
    findings = [finding for finding in find_weak_evidence(answer, bundle) if _is_serious(finding.severity)]
    words = "; ".join(
        [f"{issue.code} {issue.difference or ''}" for issue in quote_issues] + [finding.message for finding in findings]
    )
    if row["kind"] == STRENGTH:
        return (not findings) == row["strong"], words
    return bool(quote_issues) if row["turned"] else not quote_issues and not findings, words


def _is_serious(severity: IssueSeverity) -> bool:
    return severity is not IssueSeverity.MINOR


def measure_rows(rows: list[dict[str, Any]], console: Console, *, has_misses: bool) -> None:
    tried: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for row in rows:
        kind = f"{STRENGTH} {'strong' if row['strong'] else 'weak'}" if row["kind"] == STRENGTH else row["kind"]
        is_right, words = judge(row)
        tried[kind] += 1
        right[kind] += is_right
        if has_misses and not is_right:
            console.print(f"{row['id']} ({row['type']}): {row['quote']!r}: {words or 'nothing raised'}", markup=False)
    table = Table("kind", "tried", "right")
    for kind in sorted(tried):
        table.add_row(kind, str(tried[kind]), str(right[kind]))
    table.add_section()
    table.add_row("all", str(tried.total()), str(right.total()))
    console.print(table)


def iter_true_quotes() -> Iterator[tuple[str, str, str, QuoteLocator]]:
    """Kind, document, quote and locator, for whole sentences of 6 to 40 words and for their halves."""
    for line in TEXTS.resolve().read_text().splitlines():
        row = json.loads(line)
        locator = QuoteLocator(document(row["text"]))
        for sentence in _SENTENCE_END.split(row["text"]):
            if not 6 <= len(sentence.split()) <= 40:
                continue
            yield "whole", row["id"], sentence, locator
            boundaries = list(_CLAUSE_BOUNDARY.finditer(sentence))
            if boundaries:
                middle = min(boundaries, key=lambda match: abs(match.start() - len(sentence) // 2))
                for kind, half in (
                    ("first half", sentence[: middle.start()]),
                    ("second half", sentence[middle.end() :]),
                ):
                    if len(half.split()) >= 3:
                        yield kind, row["id"], half, locator


def measure_true_quotes(console: Console, *, has_misses: bool) -> None:
    tried: Counter[str] = Counter()
    raised: Counter[str] = Counter()
    differences: Counter[str] = Counter()
    for kind, doc_id, quote, locator in iter_true_quotes():
        location = locator.locate(quote, 1)
        tried[kind] += 1
        if not location.is_found:
            raised[kind] += 1
            differences[f"{kind}: {location.verdict} {location.difference_text}"] += 1
            if has_misses:
                console.print(f"{kind} {doc_id}: {quote!r}: {location.difference_text}", markup=False, soft_wrap=True)
    table = Table("true quotes", "tried", "raised", "%")
    for kind in tried:
        table.add_row(kind, str(tried[kind]), str(raised[kind]), f"{100 * raised[kind] / tried[kind]:.2f}")
    console.print(table)
    for words, count in differences.most_common(25):
        console.print(f"{count:5d} {words}", markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--misses", action="store_true", help="show what was judged wrongly")
    parser.add_argument("--true-quotes", action="store_true", help="measure false alarms on sentences of real texts")
    chosen = parser.parse_args()
    console = Console(width=150)
    if chosen.true_quotes:
        measure_true_quotes(console, has_misses=chosen.misses)
    else:
        measure_rows(load_rows(chosen.half), console, has_misses=chosen.misses)


if __name__ == "__main__":
    main()
