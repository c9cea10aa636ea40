"""Hand-made documents, results and cases; nothing is read from a PDF and no model is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from places import open_folder, open_index

from evalkit.classification.document_result import DocumentResult, UsageReport
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    MixtureEntry,
    PresenceLevel,
    Segment,
    TypePresence,
)
from evalkit.classification.v5_arbiter import V5DecisionMaker
from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, Page, PageStatus
from evalkit.issue import Issue, IssueSeverity
from evalkit.review import ReviewSession as Tab
from evalkit.review import SMEPacket, SMEPacketGenerator, SMEReviewHelper, publish_packet_unless_frozen
from evalkit.store import bundle_file_name

BOX = (0.1, 0.1, 0.9, 0.2)


class Build:
    """Makers of the values that the tests work with."""

    @staticmethod
    def bundle(pages: Sequence[Sequence[str]] = (("Surgical pathology", "Diagnosis: carcinoma"),)) -> DocumentBundle:
        """A document of these paragraphs; a paragraph that begins with # is a header or footer."""
        return DocumentBundle(
            doc_id="doc2_6",
            file_path="/records/doc2_6.pdf",
            sha256="ab" * 32,
            reader="by hand",
            total_pages=len(pages),
            processing_timestamp="2025-01-01T00:00:00+00:00",
            pages=tuple(_page(number, texts) for number, texts in enumerate(pages, 1)),
        )

    @staticmethod
    def composition(
        shares: dict[str, float], evidence: Iterable[tuple[str, int]] = (), level: str = "PRIMARY"
    ) -> tuple[TypePresence, ...]:
        """Shares by type, the others 0; evidence (snippet, page) goes to each type with a share."""
        quotes = tuple(Evidence(snippet=text, page=page, anchors_found=("anchor",)) for text, page in evidence)
        return tuple(
            TypePresence(
                document_type=kind,
                presence_level=PresenceLevel(level) if kind in shares else PresenceLevel.NO_EVIDENCE,
                confidence=0.9 if kind in shares else 0.0,
                segment_share=shares.get(kind, 0.0),
                top_evidence=quotes if kind in shares else (),
            )
            for kind in DocumentType
        )

    @staticmethod
    def segment(
        index: int,
        start: int,
        end: int,
        kind: str | None,
        shares: dict[str, float] | None = None,
        evidence: Iterable[tuple[str, int]] = (),
        **changed: Any,
    ) -> Segment:
        """One segment, all of its type unless shares are given."""
        composition = Build.composition(shares or {str(kind): 1.0}, evidence)
        fields: dict[str, Any] = {
            "segment_index": index,
            "start_page": start,
            "end_page": end,
            "segment_page_count": end - start + 1,
            "dominant_type": kind,
            "reasoning": f"because of the headings of segment {index}",
            "segment_composition": composition,
        }
        return Segment(**(fields | changed))

    @staticmethod
    def answer(segments: Sequence[Segment], mixture: dict[str, float], dominant: str | None) -> ClassificationOutput:
        """A whole classification."""
        return ClassificationOutput(
            dominant_type_overall=dominant,
            number_of_segments=len(segments),
            segments=tuple(segments),
            document_mixture=tuple(
                MixtureEntry(
                    document_type=kind,
                    presence_level=PresenceLevel.PRIMARY if kind in mixture else PresenceLevel.NO_EVIDENCE,
                    confidence=0.9,
                    overall_share=mixture.get(kind, 0.0),
                )
                for kind in DocumentType
            ),
            vendor_signals=("Quest Diagnostics",),
            self_evaluation="sure",
        )

    @staticmethod
    def single(kind: str, pages: int = 1, evidence: Iterable[tuple[str, int]] = ()) -> ClassificationOutput:
        """One segment of one type."""
        return Build.answer([Build.segment(1, 1, pages, kind, evidence=evidence)], {kind: 1.0}, kind)

    @staticmethod
    def issue(
        issue_id: str = "V3-0001", severity: str = "BLOCKER", code: str = "V3-TRAP-VENDOR", **fields: Any
    ) -> Issue:
        """An issue; the agent is in its id."""
        agent: Any = issue_id.partition("-")[0]
        message = fields.pop("message", "something is wrong")
        made = Issue.create(agent, code, IssueSeverity(severity), message, **fields)
        return made.model_copy(update={"issue_id": issue_id})

    @staticmethod
    def result(
        classification: ClassificationOutput | None, issues: Sequence[Issue] = (), doc_id: str = "doc2_6"
    ) -> DocumentResult:
        """A result with the arbiter's own decision on these issues."""
        verdict = V5DecisionMaker().decide(issues)
        return DocumentResult(
            doc_id=doc_id,
            sha256="ab" * 32,
            fingerprint="f",
            decision=verdict.decision,
            decision_rule=verdict.rule,
            decision_reason=verdict.reason,
            classification=classification,
            issues=tuple(issues),
            attempts=(),
            evidence_quality_score=1.0,
            grounded_ratio=None,
            usage=UsageReport(),
            model="embedded",
            reader="by hand",
            versions={},
            times={},
        )

    @staticmethod
    def packet(result: DocumentResult, bundle: DocumentBundle | None = None, **changed: Any) -> SMEPacket:
        """The packet of a result."""
        fields: dict[str, Any] = {
            "review_reason": "escalated",
            "inclusion_probability": 1.0,
            "production_row": None,
            "created_at": "2025-02-01T10:00:00+00:00",
        }
        return SMEPacketGenerator().packet(result, bundle or Build.bundle(), **(fields | changed))


def _page(number: int, texts: Sequence[str]) -> Page:
    paragraphs = tuple(text.removeprefix("#") for text in texts)
    return Page(
        page_num=number,
        status=PageStatus.TEXT if texts else PageStatus.IMAGE,
        text="\n".join(paragraphs),
        paragraphs=paragraphs,
        layout_metadata=LayoutMetadata(block_types=("paragraph",) * len(texts), has_tables=False),
        blocks=tuple(
            Block(type="paragraph", text=text.removeprefix("#"), box=BOX, furniture=text.startswith("#"))
            for text in texts
        ),
    )


class Workspace:
    """An output folder and the people who work on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = open_folder(root)
        self.index = open_index(root)

    def helper(self, reviewer: str = "dr_lee") -> SMEReviewHelper:
        """An expert whose clock says 2025-02-01, then one second more at each look."""
        ticks = iter(range(60))
        return SMEReviewHelper(self.root, reviewer, clock=lambda: f"2025-02-01T12:00:{next(ticks):02d}+00:00")

    def publish(
        self,
        classification: ClassificationOutput | None,
        issues: Sequence[Issue] = (),
        bundle: DocumentBundle | None = None,
        doc_id: str = "doc2_6",
        **changed: Any,
    ) -> SMEPacket:
        """A case in the queue, with its bundle."""
        made = (bundle or Build.bundle()).model_copy(update={"doc_id": doc_id})
        self.files.write_json(bundle_file_name(doc_id), made.model_dump(mode="json"))
        packet = Build.packet(Build.result(classification, issues, doc_id), made, **changed)
        publish_packet_unless_frozen(self.files, self.index, packet)
        return packet

    def truth(self, case_id: str = "doc2_6") -> dict[str, Any] | None:
        """The ground truth file of a case, if there is one."""
        name = f"ground_truth/gt_{case_id}.json"
        return self.files.read_json(name) if self.files.has_file(name) else None


@pytest.fixture(scope="session")
def build() -> type[Build]:
    return Build


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "output")


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = datetime(2025, 2, 1, 10, 40, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def wait(self, **time: float) -> None:
        """Let that much time pass."""
        self.now += timedelta(**time)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_tab(workspace: Workspace, clock: Clock) -> Iterator[Callable[..., Tab]]:
    """Opens browser tabs on the output folder: ``tab("dr_lee")``, ``tab("dr_lee", "second tab")``."""
    opened: list[Tab] = []

    def made(reviewer: str = "dr_lee", session: str | None = None) -> Tab:
        opened.append(Tab(workspace.files, reviewer, session or f"tab of {reviewer}", clock=clock))
        return opened[-1]

    yield made
    for one in opened:
        one.close()
