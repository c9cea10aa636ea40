"""Label Studio's answers as its own app exports them, about documents whose neutral truth is known.

The schema that is assumed, in neutral terms. A task is a document with pages. Its data have the document's name, its SHA-256
and a list of page pictures. The labelling configuration has these controls, all over one multi-page image:

    document_type    choices, one for the task: the type of the whole document
    page_type        choices for each page: the type of the document that the page belongs to
    begins           choices for each page, with one choice: a document begins here
    quote            rectangles on a page, labelled with a type
    snippet          a text for each rectangle: the words in it
    notes            a text for the task

Another exporter has other names, and may say page ranges otherwise: ``adapt(names)`` gives a writer with those names, and
``adapt(names, tasks=…)`` one whose tasks are those that the exporter wrote (by document). A writer has ``segment_results``
as an attribute, which may be replaced where page ranges are no page choices.
"""

from __future__ import annotations

import hashlib
import json
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, NamedTuple

TYPES = ("Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other")
NAMES = {
    "document": "document", "sha256": "sha256", "pages": "pages",
    "image": "page", "document_type": "document_type", "page_type": "page_type", "begins": "begins",
    "begins_choice": "A document begins on this page", "quote": "quote", "snippet": "snippet", "notes": "notes",
}  # fmt: skip
"""Neutral names and, as values, the names in data and configuration."""
WIDTH, HEIGHT = 1700, 2200


class Quote(NamedTuple):
    """Words in a box; the box in percent of the page: left, top, width, height."""

    page: int
    document_type: str
    snippet: str
    box: tuple[float, float, float, float]


class Answer(NamedTuple):
    """What an annotator said of one document."""

    segments: tuple[tuple[int, int, str], ...]
    quotes: tuple[Quote, ...] = ()
    notes: str = ""
    document_type: str = ""


class Document(NamedTuple):
    """A document that was given to the annotators, and how many pages it has."""

    name: str
    pages: int
    sha256: str


DOCUMENTS = {
    name: Document(name, pages, hashlib.sha256(name.encode()).hexdigest())
    for name, pages in {"letter": 1, "packet_a": 3, "packet_b": 3, "packet_c": 8, "scan_ü": 2, "batch": 40}.items()
}
Outcome = Literal["imported", "refused", "skipped"]


class Expected(NamedTuple):
    """What a careful user expects: of the file, and of each document in it."""

    outcome: Outcome
    """`imported` something, `refused` the file, or `skipped` all of it with a word why."""
    told: tuple[str, ...] = ()
    """Words of which the message has at least one each; alternatives are separated by a bar."""
    answers: Mapping[str, tuple[Answer, ...]] = {}
    """By document what was taken over, one answer for each annotator."""
    annotators: Mapping[str, tuple[str, ...]] = {}
    """By document the annotators, where the idea is about them."""


class LabelFile(NamedTuple):
    """A file as a user would give it to the importer."""

    name: str
    what: str
    suffix: str
    data: bytes
    expected: Expected


class Writer:
    """Write tasks, annotations and results in Label Studio's form, under these names."""

    def __init__(self, names: Mapping[str, str], tasks: Mapping[str, Mapping[str, Any]] | None, seed: str) -> None:
        self.names = {**NAMES, **names}
        self.tasks = tasks or {}
        self.rng = random.Random(seed)
        self.segment_results: Callable[[Answer], list[dict[str, Any]]] = self.write_page_choices
        self.number = 100

    def next_number(self) -> int:
        self.number += self.rng.randrange(1, 9)
        return self.number

    def region(self) -> str:
        return "".join(
            self.rng.choice("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789_-") for _ in range(10)
        )

    def result(
        self, control: str, kind: str, value: dict[str, Any], page: int | None = None, **more: Any
    ) -> dict[str, Any]:
        row: dict[str, Any] = {
            "value": value,
            "id": self.region(),
            "from_name": self.names.get(control, control),
            "to_name": self.names["image"],
            "type": kind,
            "origin": "manual",
        }
        return row | ({} if page is None else {"item_index": page - 1}) | more

    def write_page_choices(self, answer: Answer) -> list[dict[str, Any]]:
        rows = []
        for start, end, kind in answer.segments:
            rows.append(self.result("begins", "choices", {"choices": [self.names["begins_choice"]]}, start))
            rows += [self.result("page_type", "choices", {"choices": [kind]}, page) for page in range(start, end + 1)]
        return rows

    def write_quote(self, quote: Quote, **more: Any) -> list[dict[str, Any]]:
        left, top, width, height = quote.box
        box = {"x": left, "y": top, "width": width, "height": height, "rotation": 0}
        size = {"original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0}
        region = self.region()
        rows = [
            self.result(
                "quote", "rectanglelabels", {**box, "rectanglelabels": [quote.document_type]}, quote.page, **size
            )
        ]
        rows.append(self.result("snippet", "textarea", {**box, "text": [quote.snippet]}, quote.page, **size))
        for row in rows:
            row |= {"id": region, **more}
        return rows

    def results(self, answer: Answer) -> list[dict[str, Any]]:
        rows = self.segment_results(answer)
        if answer.document_type:
            rows.append(self.result("document_type", "choices", {"choices": [answer.document_type]}))
        for quote in answer.quotes:
            rows += self.write_quote(quote)
        if answer.notes:
            rows.append(self.result("notes", "textarea", {"text": answer.notes.split("\n\n")}))
        return rows

    def annotation(self, answer: Answer | None, by: Any = 1, **more: Any) -> dict[str, Any]:
        results = self.results(answer) if answer else []
        return {
            "id": self.next_number(), "completed_by": by, "result": results, "was_cancelled": False, "ground_truth": False,
            "created_at": "2026-03-02T09:30:11.204816Z", "updated_at": "2026-03-02T09:31:40.018273Z",
            "draft_created_at": "2026-03-02T09:30:02.771541Z", "lead_time": round(self.rng.uniform(8, 300), 3), "prediction": {},
            "result_count": len(results), "unique_id": str(uuid.UUID(int=self.rng.getrandbits(128), version=4)), "import_id": None,
            "last_action": None, "bulk_created": False, "project": 4, "updated_by": by if isinstance(by, int) else None,
            "parent_prediction": None, "parent_annotation": None, "last_created_by": None, **more,
        }  # fmt: skip

    def task(self, document: str, *annotations: dict[str, Any], **more: Any) -> dict[str, Any]:
        number = self.next_number()
        info = DOCUMENTS[document]
        pages = [f"/data/local-files/?d=pages/{document}/{page}.png" for page in range(1, info.pages + 1)]
        data = {self.names["document"]: document, self.names["sha256"]: info.sha256, self.names["pages"]: pages}
        kept = [{**row, "task": number} for row in annotations]
        return {
            "id": number, "annotations": kept, "file_upload": "7e1f-tasks.json", "drafts": [], "predictions": [],
            "data": deepcopy(dict(self.tasks.get(document, {}).get("data", data))), "meta": {}, "created_at": "2026-03-01T08:00:00.000000Z",
            "updated_at": "2026-03-02T09:31:40.102933Z", "allow_skip": True, "inner_id": number - 100, "total_annotations":
            sum(not row.get("was_cancelled") for row in kept), "cancelled_annotations": sum(bool(row.get("was_cancelled")) for row in kept),
            "total_predictions": 0, "comment_count": 0, "unresolved_comment_count": 0, "last_comment_updated_at": None,
            "project": 4, "updated_by": 1, "comment_authors": [], **more,
        }  # fmt: skip

    def minimal(self, document: str, answer: Answer, by: Any = "lee@example.org") -> dict[str, Any]:
        """The task as JSON_MIN has it: no pages beside choices and boxes."""
        task = self.task(document)
        row: dict[str, Any] = {**task["data"], "id": task["id"]}
        by_control: dict[str, list[Any]] = {}
        for result in self.results(answer):
            value = dict(result["value"])
            for plain in ("choices", "text"):
                if plain in value:
                    value = value[plain][0] if len(value[plain]) == 1 else {plain: value[plain]}
                    break
            else:
                value |= {key: result[key] for key in ("original_width", "original_height")}
            by_control.setdefault(result["from_name"], []).append(value)
        row |= {
            name: values[0] if len(values) == 1 and not isinstance(values[0], dict) else values
            for name, values in by_control.items()
        }
        return row | {
            "annotator": by, "annotation_id": self.next_number(), "created_at": "2026-03-02T09:30:11.204816Z",
            "updated_at": "2026-03-02T09:31:40.018273Z", "lead_time": 31.4,
        }  # fmt: skip


def dump(value: Any) -> bytes:
    """JSON as Label Studio writes it."""
    return json.dumps(value, ensure_ascii=False, indent=2).encode()


def make_answer(document: str, seed: str = "") -> Answer:
    """A sound answer about a document: segments over all pages and a quote in each."""
    rng = random.Random(f"{document}{seed}")
    pages, start, rows = DOCUMENTS[document].pages, 1, []
    while start <= pages:
        end = min(pages, start + rng.randrange(3))
        rows.append((start, end, rng.choice(TYPES)))
        start = end + 1
    quotes = tuple(
        Quote(start, kind, f"Words {rng.randrange(10**5)} of the {kind.lower()}.", (round(rng.uniform(5, 40), 4), round(rng.uniform(5, 80), 4), 33.25, 2.5))
        for start, _, kind in rows
    )  # fmt: skip
    lengths = {kind: sum(end - first + 1 for first, end, name in rows if name == kind) for kind in TYPES}
    return Answer(tuple(rows), quotes, "", max(TYPES, key=lambda kind: lengths[kind]))


LabelIdea = Callable[[Writer], "tuple[bytes, Expected] | tuple[bytes, Expected, str]"]


class LabelIdeas:
    """The ideas of one half: each writes a file and says what must become of it."""

    def __init__(self, half: str) -> None:
        self.half = half
        self.rows: list[tuple[str, str, LabelIdea]] = []

    def __call__(self, name: str, what: str) -> Callable[[LabelIdea], LabelIdea]:
        def put_down(function: LabelIdea) -> LabelIdea:
            self.rows.append((name, what, function))
            return function

        return put_down

    def adapt(
        self, names: Mapping[str, str], tasks: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Callable[[str], Writer]:
        """Writers with these names; each idea gets one of its own."""
        return lambda name: Writer(names, tasks, f"{self.half}/{name}")

    def build(self, writers: Callable[[str], Writer] | None = None) -> Iterator[LabelFile]:
        """All files of the half, by the default names or those of `adapt`."""
        writers = writers or self.adapt({})
        for name, what, function in self.rows:
            data, expected, *suffix = function(writers(name))
            yield LabelFile(name, what, suffix[0] if suffix else "json", data, expected)


def refuse(*told: str) -> Expected:
    return Expected("refused", told)


def skip(*told: str) -> Expected:
    return Expected("skipped", told)


def accept(
    answers: Mapping[str, Answer | Sequence[Answer]],
    *told: str,
    annotators: Mapping[str, tuple[str, ...]] | None = None,
) -> Expected:
    """The file is imported with these answers."""
    rows = {name: (row,) if isinstance(row, Answer) else tuple(row) for name, row in answers.items()}
    return Expected("imported", told, rows, annotators or {})
