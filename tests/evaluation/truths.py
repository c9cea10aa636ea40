"""An output folder with ground truth in it, made by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import builders
from places import open_folder

from evalkit.documents.bundle import Block, DocumentBundle, Identifier, LayoutMetadata, Page, PageStatus
from evalkit.review.ground_truth import GroundTruth
from evalkit.store import bundle_file_name, ground_truth_file_name

NOTE, OTHER = "Clinical Note", "Other"
BOX = (0.1, 0.1, 0.9, 0.2)


def bundle_of(doc_id: str, pages: Sequence[str], identifiers: Iterable[tuple[str, str]] = ()) -> DocumentBundle:
    """A document that says this; ``identifiers`` are kind and normal form, found on page 1."""
    found = tuple(Identifier(kind=kind, value=normal, normal=normal, box=BOX) for kind, normal in identifiers)  # type: ignore[arg-type]
    return DocumentBundle(
        doc_id=doc_id,
        file_path=f"/records/{doc_id}.pdf",
        sha256=hashlib.sha256(doc_id.encode()).hexdigest(),
        reader="by hand",
        total_pages=len(pages),
        processing_timestamp="2025-01-01T00:00:00+00:00",
        pages=tuple(
            Page(
                page_num=number,
                status=PageStatus.TEXT,
                text=text,
                paragraphs=(text,),
                layout_metadata=LayoutMetadata(block_types=("paragraph",), has_tables=False),
                blocks=(Block(type="paragraph", text=text, box=BOX),),
                identifiers=found if number == 1 else (),
            )
            for number, text in enumerate(pages, 1)
        ),
    )


class Output:
    """An output folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = open_folder(root)

    def sha256(self, doc_id: str) -> str:
        return hashlib.sha256(doc_id.encode()).hexdigest()

    def add(
        self,
        doc_id: str,
        segments: Sequence[tuple[int, int, str]] = ((1, 1, OTHER),),
        *,
        pages: Sequence[str] = ("some text",),
        identifiers: Iterable[tuple[str, str]] = (),
        silver: bool = False,
        quote: str = "a quote",
        **changed: Any,
    ) -> None:
        """One document with its bundle; the first segment's type is that of the whole file."""
        bundle = bundle_of(doc_id, pages, identifiers)
        self.files.write_json(bundle_file_name(doc_id), bundle.model_dump(mode="json"))
        parts = [
            builders.segment(
                i, start, end, kind, builders.compose_single_type(kind, builders.evidence(quote, start, quote))
            )
            for i, (start, end, kind) in enumerate(segments, 1)
        ]
        answer = builders.answer(*parts, overall=segments[0][2], shares={segments[0][2]: 1.0})
        by_expert = {"reviewer": "dr_lee", "vouched": ("dominant_type", "segments"), "review_reason": "audit"}
        by_rules = {"reviewer": None, "vouched": (), "review_reason": None}
        record = GroundTruth(
            **{
                "doc_id": doc_id,
                "ground_truth_source": "AUTO_ACCEPTED" if silver else "SME_VALIDATED",
                "ground_truth_classification": answer,
                "corrected_dominant_type": None,
                "correction_notes": "",
                "reviewed_at": "2025-02-01T10:00:00+00:00",
                "inclusion_probability": 0.25,
                "packet_sha256": None,
                "revision": 0 if silver else 1,
                "supersedes": None,
                **(by_rules if silver else by_expert),
                **changed,
            }
        )
        self.files.write_json(ground_truth_file_name(doc_id), record.model_dump(mode="json"))
