"""Output folders with many documents and cases, as runs and experts leave them, in seconds.

Everything is drawn by a seed. The files have the bytes that evalkit itself writes: each kind of case is written once, and
its text goes under many names.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from places import open_folder
from review.conftest import Build

from evalkit.classification.document_result import UsageReport
from evalkit.core.clocks import format_iso_seconds
from evalkit.review import ClassificationPacket
from evalkit.review.ground_truth import Review
from evalkit.review.opinions import project_ground_truth
from evalkit.review.packet import compute_packet_digest, serialise_packet
from evalkit.store import (
    bundle_file_name,
    encode_canonical_json,
    ground_truth_file_name,
    packet_file_name,
    result_file_name,
    review_file_name,
)

KINDS = ("Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other", None)
SEVERITIES = ("BLOCKER", "MAJOR", "MINOR")
AGENTS = ("V1", "V2", "V3", "V4")
REASONS = ("escalated", "escalated", "escalated", "audit", "sample")
MODELS = ("embedded", "gemini:gemini-2.5-flash")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
"""The moment at which the queue is looked at; the cases are up to a month old."""
REVIEWED = 0.1
"""The share of cases that an expert has decided."""
_NAME, _FILE, _MADE = "DOC-NAME", "FILE-NAME", "MADE-AT"
_PAGES = (1, 2, 4, 9)
_SORTS = 60
"""So many cases differ in more than name and clock: to put one together takes as long as to write fifty."""
_WORDS = [
    "patient",
    "history",
    "of",
    "carcinoma",
    "with",
    "no",
    "evidence",
    "of",
    "metastasis",
    "on",
    "imaging",
    "follow",
    "up",
    "in",
    "six",
    "weeks",
    "lymph",
    "node",
    "biopsy",
    "margins",
    "negative",
    "receptor",
    "positive",
    "dose",
    "reduced",
    "because",
    "of",
    "neutropenia",
    "ejection",
    "fraction",
    "preserved",
]


@dataclass(frozen=True)
class Sort:
    """What the texts of a case follow from, its names and clock apart."""

    severity: str
    agent: str
    kind: str | None
    reason: str
    model: str
    pages: int


@dataclass(frozen=True)
class Filled:
    """One case, as whoever asks for it should find it."""

    case_id: str
    pdf_filename: str
    created_at: str
    is_closed: bool
    sort: Sort


@dataclass(frozen=True)
class _Texts:
    packet: str
    result: str
    bundle: str
    closed: str
    """The packet of a decided case."""
    review: str
    truth: str | None


def fill(output: Path, count: int, seed: int) -> Iterator[Filled]:
    """Write so many cases, each with its document's bundle and result, and of some a review and its ground truth."""
    chance = random.Random(seed)
    files = open_folder(output)
    for folder in ("sme_packets", "results", "document_bundles", "ground_truth", "reviews"):
        (output / folder).mkdir(parents=True, mode=0o700, exist_ok=True)
    sorts = [
        Sort(*(chance.choice(values) for values in (SEVERITIES, AGENTS, KINDS, REASONS, MODELS, _PAGES)))
        for _ in range(_SORTS)
    ]
    for number in range(count):
        sort = chance.choice(sorts)
        one = Filled(
            case_id=f"case_{number:06d}",
            pdf_filename=f"Fax {chance.randrange(count):06d}.pdf",
            created_at=format_iso_seconds(NOW - timedelta(minutes=chance.randrange(60 * 24 * 30))),
            is_closed=chance.random() < REVIEWED,
            sort=sort,
        )
        for name, text in _named(one):
            path = files.local_path(name)
            if one.is_closed and not path.parent.is_dir():
                path.parent.mkdir(mode=0o700)
            # Not through LocalOutputFolder.write_json: a hundred thousand synced files would take an hour.
            path.write_text(text)
        yield one


def _named(one: Filled) -> Iterator[tuple[str, str]]:
    texts = _texts(one.sort)

    def told(text: str) -> str:
        return text.replace(_NAME, one.case_id).replace(_FILE, one.pdf_filename).replace(_MADE, one.created_at) + "\n"

    yield bundle_file_name(one.case_id), told(texts.bundle)
    yield result_file_name(one.case_id), told(texts.result)
    if not one.is_closed:
        yield packet_file_name(one.case_id), told(texts.packet)
        return
    closed = told(texts.closed)
    yield packet_file_name(one.case_id), closed
    digest = compute_packet_digest(ClassificationPacket.model_validate_json(closed))
    yield review_file_name(one.case_id, 1), told(texts.review).replace(_DIGEST, digest)
    if texts.truth:
        yield ground_truth_file_name(one.case_id), told(texts.truth).replace(_DIGEST, digest)


_DIGEST = "PACKET-DIGEST"


@cache
def _texts(sort: Sort) -> _Texts:
    chance = random.Random(repr(sort))
    pages = [[_paragraph(chance) for _ in range(12)] for _ in range(sort.pages)]
    bundle = Build.bundle(pages).model_copy(
        update={"doc_id": _NAME, "file_path": f"/records/{_FILE}", "processing_timestamp": _MADE}
    )
    answer = Build.answer(
        [Build.segment(1, 1, sort.pages, sort.kind, evidence=[(pages[0][0][:80], 1), (pages[-1][1][:80], sort.pages)])],
        {sort.kind or "Other": 1.0},
        sort.kind,
    )
    worst = Build.issue(f"{sort.agent}-0001", sort.severity, f"{sort.agent}-FOUND", page=1, quote=pages[0][2][:60])
    more = [
        Build.issue(f"{sort.agent}-{number:04d}", "MINOR", f"{sort.agent}-FOUND", message=_paragraph(chance))
        for number in range(2, 6)
    ]
    issues = [worst, *more]
    result = Build.result(answer, issues, _NAME).model_copy(
        update={
            "model": sort.model,
            "times": {"finished_at": _MADE},
            "usage": UsageReport.model_validate({"by_agent": {"classifier": {}}}),
        }
    )
    packet = Build.packet(result, bundle, review_reason=sort.reason, created_at=_MADE)
    review = Review(
        reviewer="dr_lee",
        submitted_at=format_iso_seconds(NOW),
        seconds_active=61.5,
        outcome="corrected" if sort.kind else "undeterminable",
        before=answer,
        after=answer if sort.kind else None,
        vouched=("dominant_type",) if sort.kind else (),
        packet_sha256=_DIGEST,
        versions={"evalkit": "1"},
    )
    truth = project_ground_truth(packet, [(1, review)])
    return _Texts(
        packet=_readable(serialise_packet(packet)),
        result=_readable(result.model_dump(mode="json")),
        bundle=encode_canonical_json(bundle.model_dump(mode="json")).decode(),
        closed=_readable(serialise_packet(packet.model_copy(update={"review_status": "completed"}))),
        review=_readable(review.model_dump(mode="json")),
        truth=_readable(truth.model_dump(mode="json")) if truth else None,
    )


def _paragraph(chance: random.Random) -> str:
    return " ".join(chance.choices(_WORDS, k=25))


def _readable(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
