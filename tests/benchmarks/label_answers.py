"""Label Studio's answers of another author, brought into a folder of cases: what is taken over, refused and told.

``python -m benchmarks.label_answers open`` (or ``sealed``) prints each file whose outcome differs from what its author expects.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import builders
from benchmarks.first_contact.interchange.answers import DOCUMENTS, Answer, LabelFile, Quote
from places import open_folder, open_index
from review.conftest import Build

from evalkit.errors import UsageError
from evalkit.evaluation.label_studio.answers_import import ImportedRow, import_label_studio_answers
from evalkit.review.case_files import read_numbered_reviews
from evalkit.review.ground_truth import Review
from evalkit.review.packet import compute_packet_digest
from evalkit.review.queue import list_case_ids_with_packet
from evalkit.review.roster import ReviewerRoster
from evalkit.store import bundle_file_name, packet_file_name

NAMES = {
    "document": "case_id", "sha256": "document_sha256", "pages": "pages", "image": "pages", "document_type": "file_type",
    "page_type": "begins", "begins": "begins", "quote": "quotes", "snippet": "quote_text", "notes": "notes",
}  # fmt: skip
#: A case's id has ASCII letters only.
CASE_IDS = {name: name.encode("ascii", "replace").decode().replace("?", "_") for name in DOCUMENTS}
PEOPLE = {
    "1": "dr_lee",
    "2": "dr_bell",
    "3": "dr_kim",
    "lee@example.org": "dr_lee",
    "bell@example.org": "dr_bell",
    "kim@example.org": "dr_kim",
}


def make_cases(root: Path) -> dict[str, dict[str, Any]]:
    """An escalated case for each of the documents; the data of their tasks."""
    files, index = open_folder(root), open_index(root)
    for name in sorted({*PEOPLE.values()}):
        ReviewerRoster(files).add_reviewer_or_replace_code(name)
    tasks = {}
    for document_name, document in DOCUMENTS.items():
        name = CASE_IDS[document_name]
        pages = [[f"Page {number} of this file"] for number in range(1, document.pages + 1)]
        bundle = Build.bundle(pages).model_copy(update={"doc_id": name, "sha256": document.sha256})
        files.write_json(bundle_file_name(name), bundle.model_dump(mode="json"))
        agent = builders.parse_answer(builders.one_segment("Other", document.pages))
        packet = Build.packet(Build.result(agent, [Build.issue("V4-0001", "MAJOR")], name), bundle)
        files.write_json(packet_file_name(name), packet.model_dump(mode="json"))
        tasks[document_name] = {
            "data": {
                "case_id": name,
                "packet_sha256": compute_packet_digest(packet),
                "document_sha256": document.sha256,
                "total_pages": document.pages,
                "answer_shown": True,
                "pages": [],
            }
        }
    index.close()
    return tasks


def list_files(half: str, tasks: dict[str, dict[str, Any]]) -> list[LabelFile]:
    module = importlib.import_module(f"benchmarks.first_contact.interchange.{half}_label_studio")
    make_writer = module.adapt(NAMES, tasks=tasks)

    def write(name: str) -> Any:
        writer = make_writer(name)
        writer.segment_results = lambda answer: [
            writer.result("begins", "choices", {"choices": [kind]}, start) for start, _, kind in answer.segments
        ]
        return writer

    return list(module.build(write))


def read_taken_over(root: Path) -> dict[str, list[Answer]]:
    """By document what its reviews say, one for each expert."""
    files = open_folder(root)
    taken: dict[str, list[Answer]] = {}
    for case_id in list_case_ids_with_packet(files):
        newest = {review.reviewer: review for _, review in read_numbered_reviews(files, case_id)}
        for review in newest.values():
            document = next(name for name, own in CASE_IDS.items() if own == case_id.removesuffix(".second"))
            taken.setdefault(document, []).append(_answer_of(review))
    return taken


def _answer_of(review: Review) -> Answer:
    answer: Any = review.after
    quotes = tuple(
        Quote(box[0], str(presence.document_type), quote.snippet, (box[1], box[2], box[3] - box[1], box[4] - box[2]))
        for segment in answer.segments
        for presence in segment.segment_composition
        for quote in presence.top_evidence
        for box in getattr(quote, "boxes", ())
    )
    segments = tuple((start, end, str(kind)) for start, end, kind in answer.typed_page_ranges)
    whole = str(answer.dominant_type_overall) if "dominant_type" in review.vouched else ""
    return Answer(segments, quotes, review.correction_notes, whole)


def _normal(answer: Answer) -> Any:
    quotes = sorted(
        (quote.page, quote.document_type, quote.snippet, *(round(100 * round(share, 6), 2) for share in quote.box))
        for quote in answer.quotes
    )
    return answer.segments, quotes, " ".join(answer.notes.split()), answer.document_type


def _expected_normal(answer: Answer) -> Any:
    return _normal(
        answer._replace(
            quotes=tuple(quote._replace(box=tuple(share / 100 for share in quote.box)) for quote in answer.quotes)
        )
    )


def judge(file: LabelFile, root: Path, folder: Path) -> str:
    """In a word what differs from the author's expectation; empty if nothing does."""
    path = folder / f"{file.name}.{file.suffix}"
    path.write_bytes(file.data)
    rows: list[ImportedRow] = []
    try:
        rows = import_label_studio_answers(root, path, PEOPLE)
        message = " ".join(" ".join(map(str, vars(row).values())) for row in rows) if rows else "the file has no task"
    except UsageError as error:
        message = str(error)
    taken = read_taken_over(root)
    expected = {
        name: sorted(map(repr, map(_expected_normal, answers))) for name, answers in file.expected.answers.items()
    }
    got = {name: sorted(map(repr, map(_normal, answers))) for name, answers in taken.items()}
    if expected != got:
        return f"taken over otherwise: {sorted(got)} instead of {sorted(expected)}; {message[:300]}"
    untold = [
        words for words in file.expected.told if not any(word.lower() in message.lower() for word in words.split("|"))
    ]
    return f"not told: {untold}; {message[:300]}" if untold else ""


def measure(half: str) -> Iterator[tuple[str, str]]:
    """Name of each file, and what differs."""
    with tempfile.TemporaryDirectory() as folder:
        names = [file.name for file in list_files(half, {})]
        for number, name in enumerate(names):
            root = Path(folder) / str(number)
            tasks = make_cases(root)
            yield name, judge(list_files(half, tasks)[number], root, Path(folder))


if __name__ == "__main__":
    outcomes = dict(measure(sys.argv[1]))
    wrong = {name: what for name, what in outcomes.items() if what}
    print(json.dumps(wrong, indent=1, ensure_ascii=False))
    print(f"{len(outcomes) - len(wrong)} of {len(outcomes)} as their author expects")
