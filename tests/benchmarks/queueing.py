"""Ten thousand cases: the queue's first page, a filter, and a review that is safely on the disk; beside Label Studio.

Alone: `PYTHONPATH=tests .venv/bin/python tests/benchmarks/queueing.py`.

The packets are real files of about 60 KB, each with a bundle; the index is rebuilt from them. A review is what an
expert waits for after pressing the key: `ReviewSession.submit_review`, with all that it syncs.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.label_studio import label_studio
from benchmarks.measuring import ROUNDS, TIMESTAMP, NotMeasured, Row
from places import open_folder
from rich.console import Console
from rich.table import Table

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.schema import DocumentType
from evalkit.documents.readers import read_document
from evalkit.pipeline import evaluate
from evalkit.review import QueueQuery, ReviewSession, SMEPacketGenerator
from evalkit.review.index_rebuild import reindex
from evalkit.samples import write_demo_folder
from evalkit.store import bundle_file_name, encode_canonical_json, packet_file_name

CASES, SIZE = 10_000, 60_000
"""Packets, and bytes of each."""
SAVED = 25
_TYPES = ("Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other", None)
_SEVERITIES = ("BLOCKER", "MAJOR", "MINOR")


class OurTimes(NamedTuple):
    """Milliseconds."""

    opened: float
    first_page: float
    filtered: float
    searched: float
    next_case: float
    saved: float


def packets(output: Path, count: int, size: int) -> None:
    """Cases as a run leaves them: one sample's packet and bundle under many names, of many types and weights."""
    with tempfile.TemporaryDirectory() as folder:
        path = next(one for one in write_demo_folder(Path(folder)) if one.stem == "fabricated_quote")
        bundle = read_document(path, doc_id="sample", processing_timestamp=TIMESTAMP)
        supplied = json.loads((Path(folder) / "classifications" / "fabricated_quote.json").read_text())
        result = evaluate(path, classification=supplied)
    sample = _packet(result, bundle)
    files, text = open_folder(output), bundle.model_dump(mode="json")
    padded = _padded(sample, size)
    now = datetime.now(UTC)
    for folder in ("sme_packets", "document_bundles"):
        (output / folder).mkdir(parents=True, mode=0o700, exist_ok=True)
    body = encode_canonical_json(text | {"doc_id": "DOC-ID"})
    for number in range(count):
        name = f"case_{number:05d}"
        row = _varied(padded, name, number, now)
        # Not through LocalOutputFolder.write_json: ten thousand synced files would take minutes, and how they came there is not timed.
        files.local_path(packet_file_name(name)).write_bytes(encode_canonical_json(row))
        files.local_path(bundle_file_name(name)).write_bytes(body.replace(b"DOC-ID", name.encode()))
    reindex(open_folder(output))


def _packet(result: DocumentResult, bundle: object) -> dict:
    packet = SMEPacketGenerator().packet(
        result, bundle, review_reason="escalated", inclusion_probability=1.0, production_row=None, created_at=TIMESTAMP
    )
    return packet.model_dump(mode="json")


def _padded(packet: dict, size: int) -> dict:
    """With as many more remarks of the agents as make it so long."""
    issue = packet["issues"][0]
    summary = packet["issues_summary"][0]
    extra = size - len(encode_canonical_json(packet))
    each = len(encode_canonical_json(issue)) + len(encode_canonical_json(summary)) + 2
    more = range(len(packet["issues"]), len(packet["issues"]) + max(extra, 0) // each)
    weight = {"severity": "MINOR", "agent": "V4"}
    issues = [*packet["issues"], *(issue | weight | {"issue_id": f"V4-{9000 + number}"} for number in more)]
    return packet | {
        "issues": issues,
        "issues_summary": [
            {name: one[name] for name in ("severity", "agent", "issue_id", "message")} for one in issues
        ],
        "total_issues": len(issues),
    }


def _varied(packet: dict, name: str, number: int, now: datetime) -> dict:
    worst = _SEVERITIES[number % 3]
    issues = [packet["issues"][0] | {"severity": worst, "agent": f"V{number % 4 + 1}"}, *packet["issues"][1:]]
    answer = packet["classification"] | {"dominant_type_overall": _TYPES[number % 6]}
    return packet | {
        "case_id": name,
        "doc_id": name,
        "pdf_filename": f"fax_{number * 7919 % CASES:05d}.pdf",
        "document_bundle_path": bundle_file_name(name),
        "issues": issues,
        "classification": answer,
        "review_reason": "audit" if number % 20 == 0 else "escalated",
        "created_at": (now - timedelta(minutes=number * 3)).isoformat(timespec="seconds"),
    }


def milliseconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median; the first one only fills caches."""
    took = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        work()
        took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took[1:])


def ours(output: Path) -> OurTimes:
    def opened() -> None:
        desk = ReviewSession(open_folder(output), "dr_lee", "tab")
        desk.load_queue_page()
        desk.close()

    desk = ReviewSession(open_folder(output), "dr_lee", "tab")
    filters = QueueQuery(dominant_type="Genomic Report", agent="V3")
    found = desk.load_queue_page(filters).matching
    assert 0 < found < CASES / 2, found
    times = [
        milliseconds(work)
        for work in (
            opened,
            desk.load_queue_page,
            lambda: desk.load_queue_page(filters),
            lambda: desk.load_queue_page(QueueQuery(search="fax_012", sort="name")),
            desk.choose_next_case_id,
        )
    ]
    took = []
    for _ in range(SAVED):
        case_id = desk.choose_next_case_id()
        assert case_id
        draft = desk.open_and_claim_case(case_id).draft.set_segment_type(0, DocumentType.OTHER).set_notes("looked at")
        for one in draft.segments:
            draft = draft.show_page_and_mark_seen(one.start_page)
        began = time.perf_counter()
        desk.submit_review(case_id, draft)
        took.append(1000 * (time.perf_counter() - began))
    desk.close()
    return OurTimes(*times, statistics.median(took))


def rows(output: Path) -> list[Row]:
    mine = ours(output)
    name = f"queue of {CASES:,}"
    try:
        peer = label_studio(CASES)
        first = f"goal 50; Label Studio {peer.first_page:.0f} with {peer.tasks:,} tasks: {mine.first_page / peer.first_page:.2f} of it, goal 0.10"
        saved = f"goal 20; Label Studio {peer.saved:.0f}: {mine.saved / peer.saved:.2f} of it, goal 0.50"
    except NotMeasured as error:
        first, saved = f"goal 50; Label Studio {error}", f"goal 20; Label Studio {error}"
    return [
        (f"{name}: first page", f"{mine.first_page:.0f} ms", first),
        (f"{name}: first page, database just opened", f"{mine.opened:.0f} ms", ""),
        (f"{name}: two filters", f"{mine.filtered:.0f} ms", "goal 300"),
        (f"{name}: search, by file name", f"{mine.searched:.0f} ms", ""),
        (f"{name}: which case is next", f"{mine.next_case:.1f} ms", ""),
        (f"{name}: a review saved durably", f"{mine.saved:.0f} ms (median of {SAVED})", saved),
    ]


def queueing() -> Table:
    table = Table("what", "evalkit", "beside", title=f"{CASES:,} packets of {SIZE // 1000} KB: medians of {ROUNDS}")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        packets(output, CASES, SIZE)
        for row in rows(output):
            table.add_row(*row)
    return table


if __name__ == "__main__":
    Console(width=150).print(queueing())
