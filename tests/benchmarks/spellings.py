"""How many spellings of one answer are read: ``python -m benchmarks.spellings [--half open|sealed]`` (from tests/).

The two pages of ``first_contact/spellings/pages.json`` become a PDF; each line of ``spellings.jsonl`` is supplied as what
another system answered about it. Of lossless spellings all should be accepted as the canonical answer is (those that
lack what can be counted: repaired, or raised as something that can be), of lossy ones none.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from documents import drawing

from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v5_arbiter import Decision
from evalkit.documents.bundle import DocumentBundle

FOLDER = Path(__file__).parent / "first_contact" / "spellings"
LINE_CHARACTERS = 88


@dataclass(frozen=True)
class Spelling:
    """One way to write the answer."""

    id: str
    half: str
    what: str
    text: str
    lossless: bool
    raises: bool = False
    """Whether it lacks what V1 raises and the repair table adds."""


def read_spellings(half: str | None) -> Iterator[Spelling]:
    """Read the spellings of one half, or of both."""
    for line in (FOLDER / "spellings.jsonl").read_text("utf-8").splitlines():
        spelling = Spelling(**json.loads(line))
        if half in (None, spelling.half):
            yield spelling


def read_bundle() -> DocumentBundle:
    """Draw the two pages as a PDF and read it as any file."""
    page_texts = json.loads((FOLDER / "pages.json").read_text("utf-8"))
    page_lines = (
        [part for line in page_text.splitlines() for part in wrap(line, LINE_CHARACTERS) or [""]]
        for page_text in page_texts
    )
    return drawing.bundle(drawing.pdf(*(drawing.lines(lines, x=54, y=70, size=10) for lines in page_lines)))


def evaluate(bundle: DocumentBundle, supplied: Any) -> ClassificationOutcome:
    """Verify a supplied answer with the embedded model."""
    return asyncio.run(RetryOrchestrator().evaluate(bundle, supplied))


def is_read(spelling: Spelling, outcome: ClassificationOutcome, canonical: ClassificationOutput) -> bool:
    """Whether a spelling came through: as the canonical answer, or with nothing but what can be repaired against it."""
    if spelling.lossless and not spelling.raises:
        return outcome.verdict.decision is Decision.AUTO_ACCEPT and outcome.classification == canonical
    if not spelling.lossless:
        return outcome.verdict.decision is Decision.AUTO_ACCEPT
    open_v1_issues = [issue for issue in outcome.issues if issue.agent == "V1" and issue.status == "open"]
    return outcome.classification is not None and all(issue.auto_fixable for issue in open_v1_issues)


def main() -> None:
    """Print for each half how many lossless and lossy spellings were tried and accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("open", "sealed"), help="only this half")
    arguments = parser.parse_args()
    canonical_json = json.loads((FOLDER / "canonical.json").read_text("utf-8"))
    canonical, bundle = ClassificationOutput.model_validate(canonical_json), read_bundle()
    canonical_outcome = evaluate(bundle, canonical_json)
    print(
        "canonical answer:",
        canonical_outcome.verdict.decision.value,
        [issue.code for issue in canonical_outcome.issues],
    )
    spellings = list(read_spellings(arguments.half))
    for half in sorted({spelling.half for spelling in spellings}):
        for is_lossless in (True, False):
            tried = [spelling for spelling in spellings if (spelling.half, spelling.lossless) == (half, is_lossless)]
            outcomes = {spelling.id: evaluate(bundle, spelling.text) for spelling in tried}
            accepted = [spelling for spelling in tried if is_read(spelling, outcomes[spelling.id], canonical)]
            print(f"{half}, {'lossless' if is_lossless else 'lossy'}: {len(tried)} tried, {len(accepted)} accepted")
            for spelling in tried:
                if (spelling in accepted) != is_lossless:
                    outcome = outcomes[spelling.id]
                    codes = [issue.code for issue in outcome.issues if issue.status == "open"]
                    print(f"  {spelling.id} {spelling.what}: {outcome.verdict.decision.value} {codes}")


if __name__ == "__main__":
    main()
