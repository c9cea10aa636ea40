"""Checks of each row of ``traps.toml`` by the examples that the row contains.

V3 is run with this row alone on a page that is built from the example.
"""

import hashlib
from collections.abc import Iterator

from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
    TypePresence,
    compute_mixture,
)
from evalkit.classification.traps import Trap, TrapExample, Traps
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, Page, PageStatus
from evalkit.issue import IssueSeverity
from evalkit.llm.model import Answer


def describe_failing_examples(traps: Traps) -> list[str]:
    """Describe each example on which its row gives an unexpected severity.

    A row must raise its severity on its examples ``fires``, and nothing on its examples ``silent``.
    """
    return [
        fault for trap in traps.rows for fault in _describe_failing_examples_of_trap(traps.restrict_to_trap(trap), trap)
    ]


def describe_weakened_traps(shipped_traps: Traps, site_traps: Traps) -> list[str]:
    """Describe each shipped trap whose replacement by the site finds less.

    A replacement weakens a row if its severity is lower, or if it raises nothing on some of the shipped row's examples.
    """
    shipped_by_id = {trap.id: trap for trap in shipped_traps.rows}
    return [
        f"{trap.id} gives up {' and '.join(losses)}"
        for trap in site_traps.rows
        if trap.id in shipped_by_id
        and (losses := list(_describe_losses(site_traps.restrict_to_trap(trap), trap, shipped_by_id[trap.id])))
    ]


def _describe_losses(single_trap: Traps, trap: Trap, shipped_trap: Trap) -> Iterator[str]:
    if trap.severity.rank > shipped_trap.severity.rank:
        yield f"{shipped_trap.severity.value} for {trap.severity.value}"
    raised_severities = [_find_worst_raised_severity(single_trap, trap, example) for example in shipped_trap.fires]
    if missed_count := raised_severities.count(None):
        yield f"{missed_count} of {len(raised_severities)} texts that the shipped row raises"


def _describe_failing_examples_of_trap(single_trap: Traps, trap: Trap) -> Iterator[str]:
    for number, example in enumerate(trap.fires, 1):
        raised_severity, expected_severity = (
            _find_worst_raised_severity(single_trap, trap, example),
            example.severity or trap.severity,
        )
        if raised_severity is not expected_severity:
            outcome = f"raises {raised_severity.value}" if raised_severity else "raises nothing"
            yield f"{trap.id}: example {number} of `fires` {outcome}, not {expected_severity.value}"
    for number, example in enumerate(trap.silent, 1):
        if raised_severity := _find_worst_raised_severity(single_trap, trap, example):
            yield f"{trap.id}: example {number} of `silent` raises {raised_severity.value}"


def _find_worst_raised_severity(single_trap: Traps, trap: Trap, example: TrapExample) -> IssueSeverity | None:
    bundle, answer = _build_example_bundle(example), _build_example_classification(trap, example)
    detector = V3TrapDetector(single_trap)
    answers = [Answer(question, question.offline()) for question in detector.questions(answer, bundle)]
    # issues that V3 raises without any row, such as about a quoted report, are left out
    bare_detector = V3TrapDetector(
        single_trap.model_copy(update=dict.fromkeys(type(single_trap).model_fields.keys() - {"version"}, ()))
    )
    bare_answers = [Answer(question, question.offline()) for question in bare_detector.questions(answer, bundle)]
    bare_messages = {issue.message for issue in bare_detector.read(bare_answers)}
    issues = [*detector.validate(answer, bundle), *detector.read(answers)]
    severities = (issue.severity for issue in issues if issue.message not in bare_messages)
    return min(severities, key=lambda severity: severity.rank, default=None)


def _build_example_bundle(example: TrapExample) -> DocumentBundle:
    paragraphs = tuple(filter(None, [*example.page.split("\n"), example.quote]))
    blocks = [Block(type="paragraph", text=text, box=(0.1, 0.1, 0.9, 0.2)) for text in paragraphs]
    if example.hidden:
        blocks.append(Block(type="paragraph", text=example.hidden, box=(0.1, 0.8, 0.9, 0.9), hidden=True))
    page = Page(
        page_num=1,
        status=PageStatus.TEXT,
        text="\n".join(paragraphs),
        paragraphs=paragraphs,
        layout_metadata=LayoutMetadata(block_types=("paragraph",) * len(paragraphs), has_tables=False),
        blocks=tuple(blocks),
    )
    return DocumentBundle(
        doc_id="example",
        file_path="example.pdf",
        sha256=hashlib.sha256(page.text.encode()).hexdigest(),
        reader="example",
        total_pages=1,
        processing_timestamp="1970-01-01T00:00:00Z",
        pages=(page,),
    )


def _build_example_classification(trap: Trap, example: TrapExample) -> ClassificationOutput:
    claimed_type = trap.get_claimed_type(example)
    evidence = (Evidence(snippet=example.quote, page=1),) if example.quote else ()
    segment = Segment(
        segment_index=1,
        start_page=1,
        end_page=1,
        segment_page_count=1,
        dominant_type=claimed_type,
        segment_composition=tuple(
            TypePresence(
                document_type=kind,
                presence_level=example.level if kind is claimed_type else PresenceLevel.NO_EVIDENCE,
                confidence=0.9 * (kind is claimed_type),
                segment_share=float(kind is claimed_type),
                top_evidence=evidence if kind is claimed_type else (),
            )
            for kind in DocumentType
        ),
    )
    return ClassificationOutput(
        dominant_type_overall=claimed_type,
        number_of_segments=1,
        segments=(segment,),
        document_mixture=compute_mixture([segment]),
        vendor_signals=(example.vendor,) if example.vendor else (),
    )
