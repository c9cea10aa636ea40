"""Command that simulates experts' reviews, for demonstrations and tests.

Usage: ``python -m evalkit.samples.simulated_experts OUTPUT TRUTH [CASE…]``. Simulated experts review the waiting cases
by a file of known labels (``truth.csv`` of the demo). They sometimes make errors and ask each other for second
opinions. Documents without a label are not reviewed, nor are the cases that are named: they are left for people. The
experts' names begin with ``simulated_``, and every figure that uses their reviews says so.
"""

import random
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalkit.classification.schema import DocumentType
from evalkit.core.clocks import utc_now
from evalkit.errors import EvalkitError, ReviewRefused, UsageError
from evalkit.issue import QuoteVerdict
from evalkit.pipeline.supplied_labels import parse_typed_page_ranges, read_production_labels
from evalkit.review import (
    ADJUDICATION_SUFFIX,
    SECOND_SUFFIX,
    SIMULATED_PREFIX,
    ClassificationCorrection,
    ReviewSubmitter,
    ShownMachineAnswers,
    SMEPacket,
    Submission,
    list_pending_cases_worst_first,
    open_index,
    read_packet,
)
from evalkit.settings import Settings
from evalkit.store import RESULTS_FOLDER, OutputFolder, open_output_folder

#: Names of the simulated reviewers: for first reviews, second opinions, adjudications, and attention checks.
FIRST_REVIEWER, SECOND_REVIEWER, ADJUDICATOR, UNEXPOSED_REVIEWER = (
    f"{SIMULATED_PREFIX}{name}" for name in ("ash", "birch", "cedar", "dogwood")
)

_FALSE_QUOTE_VERDICTS = (QuoteVerdict.ABSENT, QuoteVerdict.ALTERED)

_TruthRow = Mapping[str, Any]


def simulate_and_submit_reviews(
    output_folder: OutputFolder,
    truth_path: Path | str,
    *,
    error_rate: float = 0.1,
    second_opinion_rate: float = 0.2,
    fault_notice_rate: float = 0.7,
    seed: int = 1,
    left_case_ids: Collection[str] = (),
    on_unlabelled: Callable[[str], object] = lambda _: None,
) -> int:
    """Submit simulated reviews of labelled documents' cases; return their number.

    Args:
        output_folder: the output folder of a run.
        truth_path: CSV or JSON file with ``doc_id``, ``dominant_type`` and, for documents of several segments,
            ``segments``.
        error_rate: probability (0..1) that a review gives a wrong type; adjudications are always right.
        second_opinion_rate: probability (0..1) that a first review asks for a second opinion.
        fault_notice_rate: probability (0..1) that the planted fault of an attention check is noticed.
        seed: the same seed gives the same reviews.
        left_case_ids: cases that are not reviewed.
        on_unlabelled: called once with the doc_id of each waiting document that has no label.

    UsageError if the folder has no results, or a row of the file cannot be read.
    """
    rows = _read_truth_rows(Path(truth_path))
    if not output_folder.has_folder(RESULTS_FOLDER):
        raise UsageError(
            f"{output_folder.root} holds no results",
            code="OUTPUT-FOLDER",
            remedy="Give the output folder of an `evalkit run`.",
        )
    review_count = 0
    unlabelled_doc_ids: set[str] = set()
    with open_index(output_folder) as index:
        for case_suffix, reviewer in (
            (None, FIRST_REVIEWER),
            (SECOND_SUFFIX, SECOND_REVIEWER),
            (ADJUDICATION_SUFFIX, ADJUDICATOR),
            (None, UNEXPOSED_REVIEWER),
        ):
            submitter = ReviewSubmitter(output_folder, index, reviewer, utc_now)
            for case in list_pending_cases_worst_first(index):
                case_id = case["case_id"]
                if (
                    case_id in left_case_ids or case["kind"] != "classification"
                ):  # the file of labels has types and segments only
                    continue
                if case_suffix is not None and not case_id.endswith(case_suffix):
                    continue
                generator = random.Random(f"{seed}:{reviewer}:{case_id}")  # noqa: S311 - a simulation, no secret
                packet = read_packet(output_folder, case_id)
                if packet.is_attention_check != (reviewer == UNEXPOSED_REVIEWER):
                    continue
                row = rows.get(packet.bundle_doc_id)
                if row is None:
                    unlabelled_doc_ids.add(packet.bundle_doc_id)
                    continue
                if packet.is_attention_check:
                    row = row if generator.random() < fault_notice_rate else _build_truth_row_from_answer(packet) or row
                    _submit_review(submitter, packet, row, generator, has_error=False, second_opinion="")
                    review_count += 1
                    continue
                second_opinion = (
                    "a colleague may see it otherwise"
                    if case_suffix is None and generator.random() < second_opinion_rate
                    else ""
                )
                has_error = reviewer != ADJUDICATOR and generator.random() < error_rate
                _submit_review(submitter, packet, row, generator, has_error=has_error, second_opinion=second_opinion)
                review_count += 1
    for doc_id in sorted(unlabelled_doc_ids):
        on_unlabelled(doc_id)
    return review_count


def _read_truth_rows(truth_path: Path) -> Mapping[str, _TruthRow]:
    """Read the file of known labels; return its rows by doc_id or file name.

    UsageError if a row has an unknown type or malformed segments.
    """
    rows = read_production_labels(truth_path).label_by_key
    type_names = {type_name.value for type_name in DocumentType}
    for number, row in enumerate(rows.values(), 1):
        try:
            is_known = {
                row["dominant_type"],
                *(type_name for _, _, type_name in parse_typed_page_ranges(row.get("segments"))),
            } <= type_names
        except (TypeError, ValueError):
            is_known = False
        if not is_known:
            raise UsageError(
                f"{truth_path}: row {number} has an unknown document type, or segments that cannot be read",
                code="TRUTH-LABELS",
                remedy="Use the five document types, and write segments like 1-5 Genomic Report; 6-8 Clinical Note.",
            )
    return rows


def _submit_review(
    submitter: ReviewSubmitter,
    packet: SMEPacket,
    row: _TruthRow,
    generator: random.Random,
    *,
    has_error: bool,
    second_opinion: str,
) -> None:
    is_correct = _is_answer_correct(packet, row)
    base_submission = Submission(
        seconds_active=round(20 + generator.expovariate(1 / 15) * (1 + packet.total_pages / 4), 1),
        pages_seen=range(1, packet.total_pages + 1),
        evidence_seen=[issue.issue_id for issue in packet.open_issues],
        issue_verdicts=[
            {
                "issue_id": issue.issue_id,
                # In a right answer, only a quote that the document does not contain is at fault.
                "verdict": "confirmed" if not is_correct or issue.verdict in _FALSE_QUOTE_VERDICTS else "dismissed",
            }
            for issue in packet.open_issues
        ],
        shown=ShownMachineAnswers(agent=not packet.is_first_review_blind),
        second_opinion=second_opinion,
    )

    def save_submission(submission: Submission) -> None:
        submitter.submit_review(
            submitter.load_case(packet.case_id),
            submission,
            base_revision=None,
            require_savable=_require_nothing_before_saving,
        )

    wrong_type = (
        generator.choice([candidate.value for candidate in DocumentType if candidate != row["dominant_type"]])
        if has_error
        else None
    )
    corrected_submission = replace(
        base_submission,
        corrections=(
            ClassificationCorrection(
                wrong_type or row["dominant_type"],
                None if wrong_type else _build_corrected_segments(packet, row),
            ),
        ),
        correction_notes="simulated",
    )
    try:
        save_submission(
            replace(base_submission, agrees=True) if is_correct and not wrong_type else corrected_submission
        )
    except ReviewRefused:
        save_submission(
            replace(
                corrected_submission,
                corrections=(ClassificationCorrection(row["dominant_type"], _build_corrected_segments(packet, row)),),
            )
        )


def _require_nothing_before_saving(_digest: str, _now: str) -> None:
    """Allow saving at once: a simulated reviewer does not claim cases."""


def _build_truth_row_from_answer(packet: SMEPacket) -> _TruthRow | None:
    """Build a label row from the shown answer, as if the fault was missed."""
    classification = packet.classification
    if classification is None:
        return None
    segments_text = "; ".join(
        f"{start}-{end} {type_name}" for start, end, type_name in classification.typed_page_ranges
    )
    return {"dominant_type": classification.dominant_type_overall, "segments": segments_text}


def _build_corrected_segments(packet: SMEPacket, row: _TruthRow) -> list[dict[str, Any]]:
    """Return the row's segments as JSON; one for the whole file if it has none."""
    segment_spans = parse_typed_page_ranges(row.get("segments")) or ((1, packet.total_pages, row["dominant_type"]),)
    return [
        {"start_page": start, "end_page": end, "dominant_type": type_name} for start, end, type_name in segment_spans
    ]


def _is_answer_correct(packet: SMEPacket, row: _TruthRow) -> bool:
    classification = packet.classification
    if classification is None or classification.dominant_type_overall != row["dominant_type"]:
        return False
    return classification.typed_page_ranges == [
        (segment["start_page"], segment["end_page"], segment["dominant_type"])
        for segment in _build_corrected_segments(packet, row)
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the command line OUTPUT TRUTH [CASE…]; return the exit status, 2 on error."""
    try:
        output_path, truth_path, *left_case_ids = arguments
    except ValueError:
        sys.stderr.write("evalkit: usage: python -m evalkit.samples.simulated_experts OUTPUT TRUTH [CASE…]\n")
        return 2
    try:
        unlabelled_doc_ids: list[str] = []
        output_folder = open_output_folder(output_path, Settings.load().database)
        review_count = simulate_and_submit_reviews(
            output_folder, truth_path, left_case_ids=left_case_ids, on_unlabelled=unlabelled_doc_ids.append
        )
    except EvalkitError as error:
        sys.stderr.write(f"evalkit: {error}\n")
        return 2
    if unlabelled_doc_ids:
        sys.stderr.write(
            f"evalkit: not reviewed, because {truth_path} has no row for them: {', '.join(unlabelled_doc_ids)}\n"
        )
    sys.stdout.write(f"{review_count} reviews by simulated experts\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
