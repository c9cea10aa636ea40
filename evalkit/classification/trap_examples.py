"""Whether the rows of ``traps.toml`` do what their examples say: each example is a page, and V3 looks at it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    MixtureEntry,
    PresenceLevel,
    Segment,
    TypePresence,
)
from evalkit.classification.traps import Example, Trap, Traps
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, Page, PageStatus
from evalkit.issue import IssueSeverity
from evalkit.llm.model import Answer


def wrong_examples(traps: Traps) -> list[str]:
    """A sentence for each example that its row does not treat as it should; each row is tried alone."""
    return [fault for row in traps.rows for fault in _faults(traps.only(row), row)]


def given_up(shipped: Traps, own: Traps) -> list[str]:
    """A sentence for each shipped row that a site's own row replaces and that did more: it was graver, or raised what
    the new one does not raise, or less gravely, as far as its own examples say.
    """
    before = {row.id: row for row in shipped.rows}
    return [
        f"{row.id} gives up {' and '.join(less)}"
        for row in own.rows
        if row.id in before and (less := list(_less(own.only(row), row, before[row.id])))
    ]


def _less(alone: Traps, row: Trap, before: Trap) -> Iterator[str]:
    if row.severity.rank > before.severity.rank:
        yield f"{before.severity.value} for {row.severity.value}"
    raised = [_raised(alone, row, example) for example in before.fires]
    if missed := raised.count(None):
        yield f"{missed} of {len(raised)} texts that the shipped row raises"


def _faults(alone: Traps, row: Trap) -> Iterator[str]:
    for number, example in enumerate(row.fires, 1):
        raised, wanted = _raised(alone, row, example), example.severity or row.severity
        if raised is not wanted:
            said = f"raises {raised.value}" if raised else "raises nothing"
            yield f"{row.id}: example {number} of `fires` {said}, not {wanted.value}"
    for number, example in enumerate(row.silent, 1):
        if raised := _raised(alone, row, example):
            yield f"{row.id}: example {number} of `silent` raises {raised.value}"


def _raised(alone: Traps, row: Trap, example: Example) -> IssueSeverity | None:
    """The worst that V3 raises about the example, with this row alone."""
    bundle, answer = _page(example), _claim(row, example)
    detector = V3TrapDetector(alone)
    asked = [Answer(one, one.offline()) for one in detector.questions(answer, bundle)]
    # What V3 knows without any row (a quoted report) is no row's doing.
    unasked = V3TrapDetector(alone.model_copy(update=dict.fromkeys(type(alone).model_fields.keys() - {"version"}, ())))
    known = [Answer(one, one.offline()) for one in unasked.questions(answer, bundle)]
    before = {issue.message for issue in unasked.read(known)}
    issues = [*detector.validate(answer, bundle), *detector.read(asked)]
    severities = (issue.severity for issue in issues if issue.message not in before)
    return min(severities, key=lambda severity: severity.rank, default=None)


def _page(example: Example) -> DocumentBundle:
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


def _claim(row: Trap, example: Example) -> ClassificationOutput:
    claimed = row.claimed(example)
    evidence = (Evidence(snippet=example.quote, page=1),) if example.quote else ()

    def level(kind: DocumentType) -> PresenceLevel:
        return example.level if kind is claimed else PresenceLevel.NO_EVIDENCE

    segment = Segment(
        segment_index=1,
        start_page=1,
        end_page=1,
        segment_page_count=1,
        dominant_type=claimed,
        segment_composition=tuple(
            TypePresence(
                document_type=kind,
                presence_level=level(kind),
                confidence=0.9 * (kind is claimed),
                segment_share=float(kind is claimed),
                top_evidence=evidence if kind is claimed else (),
            )
            for kind in DocumentType
        ),
    )
    mixture = tuple(
        MixtureEntry(
            document_type=kind,
            presence_level=level(kind),
            confidence=0.9 * (kind is claimed),
            overall_share=float(kind is claimed),
        )
        for kind in DocumentType
    )
    return ClassificationOutput(
        dominant_type_overall=claimed,
        number_of_segments=1,
        segments=(segment,),
        document_mixture=mixture,
        vendor_signals=(example.vendor,) if example.vendor else (),
    )
