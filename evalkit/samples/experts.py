"""``python -m evalkit.samples.experts OUTPUT TRUTH``: programs in the experts' place, to have something to evaluate.

They review what waits by a file of known labels (``truth.csv`` of the demo), now and then wrongly, as people do, and ask
each other; documents of which it says nothing they leave alone. Their names begin with ``simulated_``: whatever is made of their reviews says so.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalkit.batch.labels import read_production, spans
from evalkit.classification.schema import DocumentType
from evalkit.errors import EvalkitError, ReviewRefused, UsageError
from evalkit.review.ground_truth import SIMULATED, Shown
from evalkit.review.packet import ADJUDICATION, SECOND, SMEPacket, read_packet, utc_now
from evalkit.review.queue import pending
from evalkit.review.submission import Submission, Submitter
from evalkit.store import RESULTS, Files, Index

#: Who answers first, who is asked, who decides between them, and who has seen nothing yet: for planted faults.
FIRST, COLLEAGUE, JUDGE, NEWCOMER = (f"{SIMULATED}{name}" for name in ("ash", "birch", "cedar", "dogwood"))

_Row = Mapping[str, Any]


def review(
    output: Path | str,
    truth: Path | str,
    *,
    slips: float = 0.1,
    seconds: float = 0.2,
    attention: float = 0.7,
    seed: int = 1,
    on_left_out: Callable[[str], object] = lambda _: None,
) -> int:
    """Review what waits of the documents with a row; how many reviews that were.

    Args:
        output: the folder of a run.
        truth: CSV or JSON with ``doc_id``, ``dominant_type`` and, where a document is more than one segment of that
            type, ``segments``.
        slips: the share of answers, 0..1, in which the type is wrong; never the judge's.
        seconds: the share of cases, 0..1, in which a colleague is asked too.
        attention: the share of planted faults, 0..1, that are noticed in seeded cases.
        seed: equal seeds answer equally.
        on_left_out: is called with the doc_id of each document that waits and has no row, once.

    UsageError where the folder holds no results, or a row cannot be understood.
    """
    rows = _rows(Path(truth))
    if not Files(output).is_there(RESULTS):
        raise UsageError(
            f"{output} holds no results", code="OUTPUT-FOLDER", remedy="Name the output folder of an `evalkit run`."
        )
    files, done = Files(output), 0
    left_out: set[str] = set()
    with Index(output) as index:
        for ending, reviewer in ((None, FIRST), (SECOND, COLLEAGUE), (ADJUDICATION, JUDGE), (None, NEWCOMER)):
            submitter = Submitter(files, index, reviewer, utc_now)
            for case in pending(index):
                case_id = case["case_id"]
                if case["kind"] != "classification":  # only types and segments are known
                    continue
                if ending is not None and not case_id.endswith(ending):
                    continue
                dice = random.Random(f"{seed}:{reviewer}:{case_id}")  # noqa: S311 - a play, no secret
                packet = read_packet(files, case_id)
                if packet.is_seeded != (reviewer == NEWCOMER):
                    continue
                row = rows.get(packet.shown_doc_id)
                if row is None:
                    left_out.add(packet.shown_doc_id)
                    continue
                if packet.is_seeded:
                    row = row if dice.random() < attention else _shown(packet) or row
                    _submit(submitter, packet, row, dice, slip=False, second_opinion="")
                    done += 1
                    continue
                asks = "a colleague may see it otherwise" if ending is None and dice.random() < seconds else ""
                wrong = reviewer != JUDGE and dice.random() < slips
                _submit(submitter, packet, row, dice, slip=wrong, second_opinion=asks)
                done += 1
    for doc_id in sorted(left_out):
        on_left_out(doc_id)
    return done


def _rows(truth: Path) -> Mapping[str, _Row]:
    """The known labels; UsageError for types that there are not, and segments that cannot be read."""
    rows = read_production(truth).rows
    types = {kind.value for kind in DocumentType}
    for number, row in enumerate(rows.values(), 1):
        try:
            is_known = {row["dominant_type"], *(kind for _, _, kind in spans(row.get("segments")))} <= types
        except (TypeError, ValueError):
            is_known = False
        if not is_known:
            raise UsageError(
                f"{truth}: row {number} has segments or types that cannot be read",
                code="TRUTH-LABELS",
                remedy="Segments are written as 1-5 Genomic Report; 6-8 Clinical Note, in the five types.",
            )
    return rows


def _submit(
    submitter: Submitter, packet: SMEPacket, row: _Row, dice: random.Random, *, slip: bool, second_opinion: str
) -> None:
    told = Submission(
        seconds_active=round(20 + dice.expovariate(1 / 15) * (1 + packet.total_pages / 4), 1),
        pages_seen=range(1, packet.total_pages + 1),
        evidence_seen=[issue.issue_id for issue in packet.open_issues],
        issue_verdicts=[{"issue_id": one.issue_id, "verdict": "confirmed"} for one in packet.open_issues],
        shown=Shown(agent=not packet.is_asked_blind),
    )

    def save(said: Submission) -> None:
        submitter.submit(submitter.read(packet.case_id), said, base_revision=None, may=_anyway)

    told = replace(told, second_opinion=second_opinion)
    kind = dice.choice([one.value for one in DocumentType if one != row["dominant_type"]]) if slip else None
    corrected = replace(
        told,
        corrected_dominant_type=kind or row["dominant_type"],
        corrected_segments=None if kind else _segments(packet, row),
        correction_notes="simulated",
    )
    try:
        save(replace(told, agrees=True) if _is_right(packet, row) and not kind else corrected)
    except ReviewRefused:
        save(
            replace(corrected, corrected_segments=_segments(packet, row), corrected_dominant_type=row["dominant_type"])
        )


def _anyway(_digest: str, _now: str) -> None:
    """A program waits for nobody's claim."""


def _shown(packet: SMEPacket) -> _Row | None:
    """What is on the screen, as if it were known to be right."""
    answer = packet.classification
    if answer is None:
        return None
    parts = ((one.start_page, one.end_page, one.dominant_type) for one in answer.segments)
    segments = "; ".join(f"{start}-{end} {kind}" for start, end, kind in parts)
    return {"dominant_type": answer.dominant_type_overall, "segments": segments}


def _segments(packet: SMEPacket, row: _Row) -> list[dict[str, Any]]:
    """Those of the row, or the whole document as one."""
    known = spans(row.get("segments")) or ((1, packet.total_pages, row["dominant_type"]),)
    return [{"start_page": start, "end_page": end, "dominant_type": kind} for start, end, kind in known]


def _is_right(packet: SMEPacket, row: _Row) -> bool:
    answer = packet.classification
    if answer is None or answer.dominant_type_overall != row["dominant_type"]:
        return False
    said = [(one.start_page, one.end_page, one.dominant_type) for one in answer.segments]
    return said == [(one["start_page"], one["end_page"], one["dominant_type"]) for one in _segments(packet, row)]


def main(words: Sequence[str]) -> int:
    """Run it; the number to exit with: 2, and a line that says why, where it cannot be done."""
    try:
        output, truth = words
    except ValueError:
        sys.stderr.write("evalkit: usage: python -m evalkit.samples.experts OUTPUT TRUTH\n")
        return 2
    try:
        left_out: list[str] = []
        done = review(output, truth, on_left_out=left_out.append)
    except EvalkitError as error:
        sys.stderr.write(f"evalkit: {error}\n")
        return 2
    if left_out:
        sys.stderr.write(f"evalkit: left out, because {truth} has no row of them: {', '.join(left_out)}\n")
    sys.stdout.write(f"{done} reviews by simulated experts\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
