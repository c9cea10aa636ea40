"""Faults to be planted into a classification that is right, one at a time: the table of kinds.

Each row says what it is, who should see it, and how it is planted. Planting changes a :class:`MutatedAnswer`: a copy
of the answer as JSON, and where the fault is in the text, of the document. What the texts say is data,
``faults.toml``. Whoever plants knows nothing of who finds: no check is asked here.
"""

from __future__ import annotations

import copy
import random
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import Any, Literal, TypeVar

from evalkit.classification.primary_classifier import choose_overall_type
from evalkit.classification.schema import (
    REPORT_TYPES,
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
    TypePresence,
    compute_mixture,
)
from evalkit.classification.v4_evidence_quality import MIN_SNIPPET_WORDS
from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, PackedWords, Page, PageStatus
from evalkit.evaluation.quote_faults import QuotableText, QuotedPassage, load_quote_faults

Json = dict[str, Any]
RandomSource = random.Random
T = TypeVar("T")

FaultNature = Literal["structural", "quote", "semantic"]
"""How a fault can be seen: by counting and adding up; by looking up a quote; only by understanding the text."""

_TYPE_NAMES = tuple(kind.value for kind in DocumentType)
_PRIMARY, _ABSENT = PresenceLevel.PRIMARY.value, PresenceLevel.NO_EVIDENCE.value
_GENOMIC_TYPE, _OTHER_TYPE = DocumentType.GENOMIC_REPORT.value, DocumentType.OTHER.value
_MAX_QUOTES = 2
"""So many sentences are quoted for what is claimed of pages."""
_MIN_DIVISIBLE_SHARE = 0.65
"""A share above this stays the largest when some of it goes to another type."""
_PAGE_COUNT_PATTERN = re.compile(r"(?i)\bpage \d+ of \d+")


class AnswerOrigin(StrEnum):
    """Who says that a classification is right."""

    SUPPLIED = "supplied"
    """Another system, whose answer it is."""
    VALIDATED = "validated"
    """An expert, as it was."""
    CORRECTED = "corrected"
    """An expert, who changed it."""
    SIMULATED = "simulated"
    """A program in place of an expert."""
    UNVALIDATED = "unvalidated"
    """Nobody but the program, which accepted its own answer."""

    @property
    def is_vouched_from_outside(self) -> bool:
        """Whether an alarm about the answer can be called false: the program's own answer may truly be wrong."""
        return self in (AnswerOrigin.SUPPLIED, AnswerOrigin.VALIDATED, AnswerOrigin.CORRECTED)


@dataclass(frozen=True, eq=False)
class CleanAnswer:
    """A classification that is taken for right, and its document."""

    bundle: DocumentBundle
    classification: ClassificationOutput
    origin: AnswerOrigin = AnswerOrigin.SUPPLIED

    @cached_property
    def quotable_text(self) -> QuotableText:
        """The document's passages, to be quoted and altered."""
        return QuotableText(self.bundle)


@dataclass
class MutatedAnswer:
    """What a fault is planted into."""

    clean_answer: CleanAnswer
    answer_json: Any
    """A classification as JSON, free to be changed."""
    bundle: DocumentBundle

    @classmethod
    def from_clean_answer(cls, clean_answer: CleanAnswer) -> MutatedAnswer:
        """A copy of the clean one."""
        return cls(clean_answer, copy.deepcopy(clean_answer.classification.to_json()), clean_answer.bundle)

    @property
    def segments(self) -> list[Json]:
        """Those of the answer."""
        segments: list[Json] = self.answer_json["segments"]
        return segments


class FaultNotApplicableError(Exception):
    """The kind of fault does not apply to an answer, or not where it was drawn."""


FaultPlanter = Callable[[MutatedAnswer, RandomSource], None]
"""Changes the draft. FaultNotApplicableError; then the draft is of no use any more."""


@dataclass(frozen=True)
class MutationOperator:
    """One kind of fault."""

    fault_id: str
    description: str
    """In words."""
    expected_codes: tuple[str, ...]
    """How the code of an issue about it should begin, one of these: whole codes, or agents where any of theirs will do."""
    nature: FaultNature
    plant: FaultPlanter


# ------------------------------------------------------------------------------------------------ what drafts consist of


@cache
def load_fault_texts() -> Mapping[str, Any]:
    """What planted faults say: ``faults.toml``."""
    return tomllib.loads((files("evalkit.evaluation") / "faults.toml").read_text("utf-8"))


def _fill_slots(template: str, random_source: RandomSource) -> str:
    """A text with its slots filled: ``{name}`` by one of that list, ``#`` by a digit."""
    slots: Mapping[str, Sequence[str]] = load_fault_texts()["slots"]
    for _ in range(2):  # what fills a slot may have slots
        template = re.sub(r"\{(\w+)\}", lambda match: random_source.choice(slots[match[1]]), template)
    return re.sub("#", lambda _: str(random_source.randint(1, 9)), template)


def _draw_text(text_key: str, random_source: RandomSource) -> str:
    return _fill_slots(random_source.choice(load_fault_texts()[text_key]), random_source)


def _find_presence_row(segment: Json, type_name: str | None) -> Json | None:
    return next((row for row in segment["segment_composition"] if row["document_type"] == type_name), None)


def _find_dominant_row(segment: Json) -> Json | None:
    """What is said of the type that the segment is called."""
    return _find_presence_row(segment, segment["dominant_type"])


def _require_applicable(is_applicable: bool) -> None:
    if not is_applicable:
        raise FaultNotApplicableError


def _draw_candidate(random_source: RandomSource, candidates: Sequence[T]) -> T:
    """Draw one of the places where a fault can be planted. FaultNotApplicableError if there is none."""
    _require_applicable(bool(candidates))
    return random_source.choice(candidates)


def _draw_two_segments(mutated_answer: MutatedAnswer, random_source: RandomSource) -> list[Json]:
    _require_applicable(len(mutated_answer.segments) > 1)
    return random_source.sample(mutated_answer.segments, 2)


def _list_quoted_claims(mutated_answer: MutatedAnswer) -> list[tuple[Json, Json]]:
    """The segments with their claims, which are PRIMARY and have evidence."""
    return [
        (segment, claim)
        for segment in mutated_answer.segments
        if (claim := _find_dominant_row(segment)) and claim["top_evidence"]
    ]


def _draw_quoted_claim(mutated_answer: MutatedAnswer, random_source: RandomSource) -> tuple[Json, Json]:
    return _draw_candidate(random_source, _list_quoted_claims(mutated_answer))


def _recompute_totals_and_check_type(mutated_answer: MutatedAnswer) -> bool:
    """Mixture, counts and the overall type as the segments have them; whether there is an overall type."""
    for index, segment in enumerate(mutated_answer.segments, 1):
        segment["segment_index"] = index
        segment["segment_page_count"] = segment["end_page"] - segment["start_page"] + 1
    mutated_answer.answer_json["number_of_segments"] = len(mutated_answer.segments)
    segments = ClassificationOutput.model_validate(mutated_answer.answer_json).segments
    mixture = compute_mixture(segments)
    mutated_answer.answer_json["document_mixture"] = [presence.model_dump(mode="json") for presence in mixture]
    overall_type = choose_overall_type(segments, mixture)
    mutated_answer.answer_json["dominant_type_overall"] = overall_type.value if overall_type else None
    return overall_type is not None


def _swap_segment_types(segment: Json, type_name: str) -> None:
    """The segment's two types change places, with all that is said of them."""
    old_row, new_row = _find_dominant_row(segment), _find_presence_row(segment, type_name)
    if old_row is None or new_row is None:
        raise ValueError("a clean segment has every type")
    old_row["document_type"], new_row["document_type"] = type_name, segment["dominant_type"]
    segment["dominant_type"] = type_name


def _build_page(page_number: int, paragraphs: Sequence[str]) -> Page:
    height = 1 / (len(paragraphs) + 1)
    boxes = [(0.1, height * row_number, 0.9, height * (row_number + 1)) for row_number in range(len(paragraphs))]
    block_types = tuple("paragraph" for _ in paragraphs)
    return Page(
        page_num=page_number,
        status=PageStatus.TEXT,
        text="\n".join(paragraphs),
        paragraphs=tuple(paragraphs),
        layout_metadata=LayoutMetadata(block_types=block_types, has_tables=False),
        blocks=tuple(Block(type="paragraph", text=text, box=box) for text, box in zip(paragraphs, boxes, strict=True)),
    )


def _add_block(
    bundle: DocumentBundle,
    page_number: int,
    text: str,
    *,
    is_first: bool = False,
    is_furniture: bool = False,
    is_hidden: bool = False,
) -> DocumentBundle:
    """The document with one more block on that page, below or above all others."""
    page = bundle.page(page_number)
    block = Block(type="paragraph", text=text, box=(0.1, 0.0 if is_first else 0.97, 0.9, 0.02 if is_first else 0.99))
    block = block.model_copy(update={"furniture": is_furniture, "hidden": is_hidden})
    blocks = (block, *page.blocks) if is_first else (*page.blocks, block)
    changes: Json = {"blocks": blocks}
    if not is_hidden:
        paragraphs = (text, *page.paragraphs) if is_first else (*page.paragraphs, text)
        offset = len(text) + 1 if is_first else 0
        words = PackedWords((start + offset, end + offset, *box) for start, end, *box in page.words)
        block_types = (
            ("paragraph", *page.layout_metadata.block_types)
            if is_first
            else (*page.layout_metadata.block_types, "paragraph")
        )
        layout = page.layout_metadata.model_copy(update={"block_types": block_types})
        changes |= {"text": "\n".join(paragraphs), "paragraphs": paragraphs, "words": words, "layout_metadata": layout}
    return _replace_pages(
        bundle, [*bundle.pages[: page_number - 1], page.model_copy(update=changes), *bundle.pages[page_number:]]
    )


def _replace_pages(bundle: DocumentBundle, pages: Sequence[Page]) -> DocumentBundle:
    return bundle.model_copy(update={"pages": tuple(pages), "total_pages": len(pages)})


def _append_page(
    mutated_answer: MutatedAnswer, page_template: str, random_source: RandomSource
) -> tuple[int, list[str]]:
    """Let the file have one more page behind its last; its number and paragraphs."""
    page_number = mutated_answer.bundle.total_pages + 1
    paragraphs = [_fill_slots(line, random_source) for line in page_template.strip().splitlines() if line.strip()]
    page = _build_page(page_number, paragraphs)
    mutated_answer.bundle = _replace_pages(mutated_answer.bundle, [*mutated_answer.bundle.pages, page])
    return page_number, paragraphs


def _normalise_quote(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


# ------------------------------------------------------------------------------------------------ structure


def _plant_wrong_segment_count(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    mutated_answer.answer_json["number_of_segments"] += random_source.choice((-1, 1, 2))


def _plant_repeated_index(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    segment, other_segment = _draw_two_segments(mutated_answer, random_source)
    segment["segment_index"] = other_segment["segment_index"]


def _plant_page_out_of_range(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    if random_source.random() < 0.5:
        mutated_answer.segments[-1]["end_page"] += random_source.randint(1, 5)
    else:
        mutated_answer.segments[0]["start_page"] = random_source.choice((0, -1))


def _plant_reversed_pages(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    segment = random_source.choice(mutated_answer.segments)
    segment["start_page"], segment["end_page"] = (
        segment["end_page"] + random_source.randint(1, 2),
        segment["start_page"],
    )


def _plant_wrong_page_count(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    random_source.choice(mutated_answer.segments)["segment_page_count"] += random_source.choice((-1, 1, 3))


def _plant_confidence_out_of_range(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    rows = [
        row for segment in mutated_answer.segments for row in segment["segment_composition"]
    ] + mutated_answer.answer_json["document_mixture"]
    random_source.choice(rows)["confidence"] = random_source.choice((1.01, 1.5, 95.0, -0.1))


def _move_share(row: Json, other_row: Json, share_key: str, shift: float) -> None:
    """The sum stays right."""
    row[share_key] = round(row[share_key] - round(shift, 4), 4)
    other_row[share_key] = round(other_row[share_key] + round(shift, 4), 4)


def _draw_share_rows(mutated_answer: MutatedAnswer, random_source: RandomSource, share_key: str) -> list[Json]:
    """The rows of the mixture, or of a segment."""
    table, rows_key = mutated_answer.answer_json, "document_mixture"
    if share_key == "segment_share":
        table, rows_key = random_source.choice(mutated_answer.segments), "segment_composition"
    rows: list[Json] = table[rows_key]
    return rows


def _plant_negative_share(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    row, other_row = random_source.sample(_draw_share_rows(mutated_answer, random_source, "segment_share"), 2)
    _move_share(row, other_row, "segment_share", row["segment_share"] + random_source.uniform(0.02, 0.1))


def _plant_missing_type(mutated_answer: MutatedAnswer, random_source: RandomSource, *, share_key: str) -> None:
    rows = _draw_share_rows(mutated_answer, random_source, share_key)
    absent_rows = [row for row in rows if row["presence_level"] == _ABSENT and row[share_key] == 0]
    rows.remove(_draw_candidate(random_source, absent_rows))


def _plant_repeated_type(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    rows = random_source.choice(mutated_answer.segments)["segment_composition"]
    row, other_row = random_source.sample(rows, 2)
    row["document_type"] = other_row["document_type"]


def _plant_wrong_shape(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    segment = random_source.choice(mutated_answer.segments)
    row = random_source.choice(segment["segment_composition"])
    match random_source.randrange(5):
        case 0:
            del segment["end_page"]
        case 1:
            segment["start_page"] = f"{segment['start_page']} or {segment['start_page'] + 1}"
        case 2:
            row["document_type"] = "Laboratory Report"
        case 3:
            row["confidence"] = "high"
        case _:
            mutated_answer.answer_json["segments"] = segment


def _plant_wrong_sum(mutated_answer: MutatedAnswer, random_source: RandomSource, *, share_key: str) -> None:
    factor = random_source.choice(
        (random_source.uniform(0.91, 0.98), random_source.uniform(1.02, 1.09), random_source.uniform(1.2, 2), 100.0)
    )
    for row in _draw_share_rows(mutated_answer, random_source, share_key):
        row[share_key] = round(row[share_key] * factor, 4)


def _plant_page_overlap(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    neighbours = list(zip(mutated_answer.segments, mutated_answer.segments[1:], strict=False))
    earlier, later = _draw_candidate(random_source, neighbours)
    if random_source.random() < 0.5 and later["start_page"] > 1:
        later["start_page"] -= 1
    else:
        earlier["end_page"] += 1
    for segment in (earlier, later):
        segment["segment_page_count"] = segment["end_page"] - segment["start_page"] + 1


def _plant_page_gap(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    long_segments = [
        candidate for candidate in mutated_answer.segments if candidate["end_page"] > candidate["start_page"]
    ]
    segment = _draw_candidate(random_source, long_segments)
    if random_source.random() < 0.5:
        segment["start_page"] += 1
    else:
        segment["end_page"] -= 1
    segment["segment_page_count"] -= 1
    _drop_evidence_of_other_pages(segment)


def _plant_dropped_segment(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    _require_applicable(len(mutated_answer.segments) > 1)
    mutated_answer.segments.remove(random_source.choice(mutated_answer.segments))
    _require_applicable(_recompute_totals_and_check_type(mutated_answer))


def _drop_evidence_of_other_pages(segment: Json) -> bool:
    """Drop quotes from pages that the segment has not; whether each type that was quoted still is."""
    is_still_quoted = True
    for row in segment["segment_composition"]:
        quotes = row["top_evidence"]
        row["top_evidence"] = [
            quote for quote in quotes if segment["start_page"] <= quote["page"] <= segment["end_page"]
        ]
        is_still_quoted &= bool(row["top_evidence"]) or not quotes
    return is_still_quoted


# ------------------------------------------------------------------------------------------------ consistency


def _plant_wrong_dominant_type(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    segment = random_source.choice(mutated_answer.segments)
    segment["dominant_type"] = _draw_different_type(segment, random_source)


def _plant_wrong_overall_type(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    overall_type = mutated_answer.answer_json["dominant_type_overall"]
    share_by_type = {
        row["document_type"]: row["overall_share"] for row in mutated_answer.answer_json["document_mixture"]
    }
    smaller_types = [
        type_name for type_name in _TYPE_NAMES if share_by_type[type_name] < share_by_type[overall_type] - 0.02
    ]
    mutated_answer.answer_json["dominant_type_overall"] = _draw_candidate(random_source, smaller_types)


def _plant_weak_dominant_presence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """The dominant type is said to be only mentioned, or not there at all."""
    claim = _draw_candidate(random_source, list(filter(None, map(_find_dominant_row, mutated_answer.segments))))
    claim["presence_level"] = random_source.choice([level.value for level in PresenceLevel if level.value != _PRIMARY])


def _plant_denied_presence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    primary_rows = [row for row in mutated_answer.answer_json["document_mixture"] if row["presence_level"] == _PRIMARY]
    _draw_candidate(random_source, primary_rows)["presence_level"] = _ABSENT


def _plant_unfounded_presence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    levels_by_type = {row["document_type"]: set[str]() for row in mutated_answer.answer_json["document_mixture"]}
    for segment in mutated_answer.segments:
        for row in segment["segment_composition"]:
            levels_by_type[row["document_type"]].add(row["presence_level"])
    absent_rows = [
        row
        for row in mutated_answer.answer_json["document_mixture"]
        if levels_by_type[row["document_type"]] == {_ABSENT}
    ]
    _draw_candidate(random_source, absent_rows)["presence_level"] = _PRIMARY


def _plant_wrong_mixture(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Some of the largest share goes to another type, so that the largest stays the largest."""
    rows = sorted(mutated_answer.answer_json["document_mixture"], key=lambda row: -row["overall_share"])
    max_shift = (rows[0]["overall_share"] - rows[1]["overall_share"]) / 2 - 0.02
    _require_applicable(max_shift >= 0.07)
    _move_share(rows[0], random_source.choice(rows[1:]), "overall_share", random_source.uniform(0.07, max_shift))


def _plant_cannot_tell(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    target = random_source.choice([mutated_answer.answer_json, *mutated_answer.segments])
    target["dominant_type_overall" if target is mutated_answer.answer_json else "dominant_type"] = None


# ------------------------------------------------------------------------------------------------ labels and boundaries


def _draw_different_type(segment: Json, random_source: RandomSource) -> str:
    return random_source.choice([type_name for type_name in _TYPE_NAMES if type_name != segment["dominant_type"]])


def _plant_wrong_label(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, claimable_types: Sequence[str]
) -> None:
    """A document is called another type, and its two longest sentences are quoted for that."""
    labels = [
        (segment, type_name)
        for segment in mutated_answer.segments
        for type_name in claimable_types
        if type_name != segment["dominant_type"]
    ]
    segment, type_name = _draw_candidate(random_source, labels)
    _swap_segment_types(segment, type_name)
    _quote_longest_sentences(mutated_answer, segment)
    _require_applicable(_recompute_totals_and_check_type(mutated_answer))


def _quote_longest_sentences(mutated_answer: MutatedAnswer, segment: Json) -> None:
    """Let the segment's type be supported by true sentences of its pages, whatever they say."""
    passages = mutated_answer.clean_answer.quotable_text.list_longest_passages(
        segment["start_page"], segment["end_page"]
    )
    claim = _find_dominant_row(segment)
    _require_applicable(bool(passages) and claim is not None)
    if claim is not None:
        claim["top_evidence"] = [_build_quote(passage) for passage in passages[:_MAX_QUOTES]]


def _build_quote(passage: QuotedPassage) -> Json:
    return {"snippet": passage.text, "page": passage.page, "anchors_found": []}


def _plant_exchanged_labels(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Two documents of a packet are called by each other's type."""
    pairs = [
        (earlier, later)
        for earlier, later in zip(mutated_answer.segments, mutated_answer.segments[1:], strict=False)
        if earlier["dominant_type"] != later["dominant_type"]
    ]
    earlier, later = _draw_candidate(random_source, pairs)
    for segment, type_name in ((earlier, later["dominant_type"]), (later, earlier["dominant_type"])):
        _swap_segment_types(segment, type_name)
    _require_applicable(_recompute_totals_and_check_type(mutated_answer))


def _plant_moved_boundary(mutated_answer: MutatedAnswer, random_source: RandomSource, *, page_shift: int) -> None:
    """A boundary moved by so many pages; what the shorter document had quoted from them is gone with them."""
    moves: list[tuple[Json, Json, int]] = []
    for earlier, later in zip(mutated_answer.segments, mutated_answer.segments[1:], strict=False):
        moves += [(earlier, later, -page_shift)] if earlier["segment_page_count"] > page_shift else []
        moves += [(earlier, later, page_shift)] if later["segment_page_count"] > page_shift else []
    random_source.shuffle(moves)
    for earlier, later, step in moves:
        moved_segments = (
            copy.deepcopy(earlier) | {"end_page": earlier["end_page"] + step},
            copy.deepcopy(later) | {"start_page": later["start_page"] + step},
        )
        if all(map(_drop_evidence_of_other_pages, moved_segments)):
            earlier.update(moved_segments[0])
            later.update(moved_segments[1])
            _require_applicable(_recompute_totals_and_check_type(mutated_answer))
            return
    raise FaultNotApplicableError


def _plant_false_split(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """A document is taken for two of its type."""
    splits = [
        (index, page)
        for index, segment in enumerate(mutated_answer.segments)
        for page in range(segment["start_page"] + 1, segment["end_page"] + 1)
    ]
    index, page = _draw_candidate(random_source, splits)
    segment = mutated_answer.segments[index]
    parts = [
        copy.deepcopy(segment) | {"start_page": segment["start_page"], "end_page": page - 1},
        copy.deepcopy(segment) | {"start_page": page},
    ]
    for part in parts:
        if not _drop_evidence_of_other_pages(part):
            _quote_longest_sentences(mutated_answer, part)
    mutated_answer.segments[index : index + 1] = parts
    _require_applicable(_recompute_totals_and_check_type(mutated_answer))


def _plant_merged_segments(mutated_answer: MutatedAnswer, random_source: RandomSource, *, is_of_one_type: bool) -> None:
    """Two documents taken for one: the longer one, or the first."""
    indexes = [
        index
        for index, (earlier, later) in enumerate(
            zip(mutated_answer.segments, mutated_answer.segments[1:], strict=False)
        )
        if (earlier["dominant_type"] == later["dominant_type"]) is is_of_one_type
    ]
    if is_of_one_type and not indexes:
        _append_document_to_last_segment(mutated_answer, random_source)
        return
    index = _draw_candidate(random_source, indexes)
    earlier, later = mutated_answer.segments[index : index + 2]
    longer = later if later["segment_page_count"] > earlier["segment_page_count"] else earlier
    merged_segment = longer | {"start_page": earlier["start_page"], "end_page": later["end_page"]}
    mutated_answer.segments[index : index + 2] = [merged_segment]
    _require_applicable(_recompute_totals_and_check_type(mutated_answer))


def _append_document_to_last_segment(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Another document of the last one's type is in the file behind it, and taken for a part of it."""
    last_segment = mutated_answer.segments[-1]
    _require_applicable(last_segment["end_page"] == mutated_answer.bundle.total_pages)
    templates = [
        template["page"]
        for template in load_fault_texts()["second_documents"]
        if template["type"] == last_segment["dominant_type"]
    ]
    _append_page(mutated_answer, _draw_candidate(random_source, templates), random_source)
    last_segment["end_page"] += 1
    _require_applicable(_recompute_totals_and_check_type(mutated_answer))


# ------------------------------------------------------------------------------------------------ pages


def _draw_counted_segment(mutated_answer: MutatedAnswer, random_source: RandomSource, min_page_count: int) -> Json:
    """Draw a document of so many pages, none blank, that count themselves; print the count on them if they do not."""
    long_segments = [segment for segment in mutated_answer.segments if segment["segment_page_count"] >= min_page_count]
    segment = _draw_candidate(random_source, long_segments)
    pages = list(mutated_answer.bundle.iter_pages(segment["start_page"], segment["end_page"]))
    _require_applicable(all(page.status.is_readable and page.text.strip() for page in pages))
    if not all(_PAGE_COUNT_PATTERN.search(page.text) for page in pages):
        template = random_source.choice(load_fault_texts()["page_counts"])
        for number, page in enumerate(pages, 1):
            page_count = template.format(number=number, total=len(pages))
            mutated_answer.bundle = _add_block(mutated_answer.bundle, page.page_num, page_count, is_furniture=True)
    return segment


def _reorder_pages(mutated_answer: MutatedAnswer, page_order: Sequence[int]) -> None:
    """Let the file have these of its pages, in this order; segments and quotes go with their pages."""
    pages = [
        mutated_answer.bundle.page(page_number).model_copy(update={"page_num": new_number})
        for new_number, page_number in enumerate(page_order, 1)
    ]
    mutated_answer.bundle = _replace_pages(mutated_answer.bundle, pages)
    for segment in mutated_answer.segments:
        own_pages = range(segment["start_page"], segment["end_page"] + 1)
        new_numbers = [new_number for new_number, page in enumerate(page_order, 1) if page in own_pages]
        segment["start_page"], segment["end_page"] = min(new_numbers), max(new_numbers)
        for quote in (quote for row in segment["segment_composition"] for quote in row["top_evidence"]):
            quote["page"] = page_order.index(quote["page"]) + 1 if quote["page"] in page_order else 0
        _require_applicable(_drop_evidence_of_other_pages(segment))
    _require_applicable(_recompute_totals_and_check_type(mutated_answer))


def _plant_missing_page(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    segment = _draw_counted_segment(mutated_answer, random_source, 3)
    page_order = list(range(1, mutated_answer.bundle.total_pages + 1))
    page_order.remove(random_source.randint(segment["start_page"], segment["end_page"]))
    _reorder_pages(mutated_answer, page_order)


def _plant_shuffled_pages(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    segment = _draw_counted_segment(mutated_answer, random_source, 2)
    page_order = list(range(1, mutated_answer.bundle.total_pages + 1))
    first, second = random_source.sample(range(segment["start_page"] - 1, segment["end_page"]), 2)
    page_order[first], page_order[second] = page_order[second], page_order[first]
    _reorder_pages(mutated_answer, page_order)


def _plant_repeated_pages(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Some pages of a document are in it a second time, behind its last."""
    segment = random_source.choice(mutated_answer.segments)
    start, end = segment["start_page"], segment["end_page"]
    first = random_source.randint(start, end)
    repeated_pages = range(first, random_source.randint(first, end) + 1)
    _require_applicable(all(mutated_answer.bundle.page(page).text.strip() for page in repeated_pages))
    _reorder_pages(
        mutated_answer, [*range(1, end + 1), *repeated_pages, *range(end + 1, mutated_answer.bundle.total_pages + 1)]
    )


# ------------------------------------------------------------------------------------------------ evidence


def _plant_no_evidence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """High confidence, and nothing is quoted."""
    _, claim = _draw_quoted_claim(mutated_answer, random_source)
    claim.update(top_evidence=[], confidence=0.97)


def _plant_invented_presence(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, level: PresenceLevel, is_quoted: bool
) -> None:
    """A second type is there, by nothing or by a quote of the first; if it is not PRIMARY as well, it has a share."""
    segment, claim = _draw_quoted_claim(mutated_answer, random_source)
    is_primary = level is PresenceLevel.PRIMARY
    absent_rows = [
        row
        for row in segment["segment_composition"]
        if row["presence_level"] == _ABSENT and (is_primary or row["document_type"] != _OTHER_TYPE)
    ]
    quotes = [random_source.choice(claim["top_evidence"]) | {"anchors_found": []}] if is_quoted else []
    row = _draw_candidate(random_source, absent_rows)
    row.update(presence_level=level.value, confidence=0.9 if is_quoted else 0.8, top_evidence=quotes)
    if not is_primary:
        _require_applicable(claim["segment_share"] > _MIN_DIVISIBLE_SHARE)
        _move_share(claim, row, "segment_share", random_source.uniform(0.15, 0.3))
    _recompute_totals_and_check_type(mutated_answer)


def _plant_low_confidence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    _, claim = _draw_quoted_claim(mutated_answer, random_source)
    claim["confidence"] = round(random_source.uniform(0.02, 0.4), 2)


def _plant_elided_quote(mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str) -> None:
    """A sentence that the page now has is quoted without the words in it that turn its meaning."""
    segment, claim = _draw_quoted_claim(mutated_answer, random_source)
    page_number = random_source.randint(segment["start_page"], segment["end_page"])
    _require_applicable(mutated_answer.bundle.page(page_number).status.is_readable)
    sentence = _draw_text(text_key, random_source)
    mutated_answer.bundle = _add_block(mutated_answer.bundle, page_number, re.sub(r"[\[\]]", "", sentence))
    _replace_quote(claim, re.sub(r"\s*\[.*?\]\s*", " … ", sentence).strip(" …"), page_number, random_source)


def _plant_altered_quote(mutated_answer: MutatedAnswer, random_source: RandomSource, *, kind: str) -> None:
    segment, claim = _draw_quoted_claim(mutated_answer, random_source)
    altered_quote = mutated_answer.clean_answer.quotable_text.draw_altered_quote(
        kind, segment["start_page"], segment["end_page"], random_source
    )
    if altered_quote is None:
        raise FaultNotApplicableError
    _replace_quote(claim, altered_quote.text, altered_quote.page, random_source)


def _plant_invented_quote(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    segment, claim = _draw_quoted_claim(mutated_answer, random_source)
    page_number = random_source.randint(segment["start_page"], segment["end_page"])
    _replace_quote(claim, _draw_text("invented_quotes", random_source), page_number, random_source)


def _replace_quote(claim: Json, text: str, page_number: int, random_source: RandomSource) -> None:
    quote_index = random_source.randrange(len(claim["top_evidence"]))
    claim["top_evidence"][quote_index] = {"snippet": text, "page": page_number, "anchors_found": []}


def _plant_moved_quote(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Claimed for another page of the same segment, on which it does not stand."""
    moves = [
        (quote, page.page_num)
        for segment in mutated_answer.segments
        for row in segment["segment_composition"]
        for quote in row["top_evidence"]
        for page in mutated_answer.bundle.iter_pages(segment["start_page"], segment["end_page"])
        if page.page_num != quote["page"]
        and page.status.is_readable
        and _normalise_quote(quote["snippet"]) not in _normalise_text_of_page_and_next(mutated_answer, page)
    ]
    quote, page = _draw_candidate(random_source, moves)
    quote.update(page=page, anchors_found=[])


def _normalise_text_of_page_and_next(mutated_answer: MutatedAnswer, page: Page) -> str:
    """What a quote from that page may say: it may run on to the next."""
    return _normalise_quote(
        "".join(nearby_page.text for nearby_page in mutated_answer.bundle.iter_pages(page.page_num, page.page_num + 1))
    )


def _plant_quote_of_other_segment(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    quoted_claims = _list_quoted_claims(mutated_answer)
    _require_applicable(len(quoted_claims) > 1)
    (_, claim), (_, other_claim) = random_source.sample(quoted_claims, 2)
    claim["top_evidence"][0] = random_source.choice(other_claim["top_evidence"])


def _plant_quote_outside_file(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    _, claim = _draw_quoted_claim(mutated_answer, random_source)
    random_source.choice(claim["top_evidence"])["page"] = random_source.choice(
        (0, mutated_answer.bundle.total_pages + random_source.randint(1, 4))
    )


def _plant_invented_anchor(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    _, claim = _draw_quoted_claim(mutated_answer, random_source)
    quote = random_source.choice(claim["top_evidence"])
    anchor = _draw_text("anchors", random_source)
    quote["anchors_found"].append(anchor)
    _require_applicable(
        _normalise_quote(anchor) not in _normalise_quote(mutated_answer.bundle.page(quote["page"]).text)
    )


def _plant_replaced_evidence(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, is_furniture: bool = False
) -> None:
    """All evidence of a segment's type is a line that the page now has: a reference, a courtesy, a header."""
    segment, claim = _draw_quoted_claim(mutated_answer, random_source)
    page_number = random_source.randint(segment["start_page"], segment["end_page"])
    text = _draw_text(text_key, random_source)
    _require_applicable(mutated_answer.bundle.page(page_number).status.is_readable)
    mutated_answer.bundle = _add_block(
        mutated_answer.bundle, page_number, text, is_first=is_furniture, is_furniture=is_furniture
    )
    claim.update(top_evidence=[{"snippet": text, "page": page_number, "anchors_found": []}], confidence=0.9)


# ------------------------------------------------------------------------------------------------ traps


def _plant_routine_vendor(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """A routine laboratory among the vendors of what is called a genomic report."""
    _require_applicable(any(segment["dominant_type"] == _GENOMIC_TYPE for segment in mutated_answer.segments))
    mutated_answer.answer_json["vendor_signals"].append(random_source.choice(load_fault_texts()["vendors"]))


def _plant_first_line(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, segment_types: Sequence[str]
) -> None:
    """A line on top of a document of one of these types: a letterhead, or words of an order or cover sheet."""
    segments = [segment for segment in mutated_answer.segments if segment["dominant_type"] in segment_types]
    page_number = _draw_candidate(random_source, segments)["start_page"]
    mutated_answer.bundle = _add_block(
        mutated_answer.bundle, page_number, _draw_text(text_key, random_source), is_first=True
    )


def _plant_mislabelled_page(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, claimable_types: Sequence[str]
) -> None:
    """One more page behind the last, claimed as a document of a type that it is not."""
    page_template: Mapping[str, Any] = random_source.choice(load_fault_texts()[text_key])
    page_number, paragraphs = _append_page(mutated_answer, page_template["page"], random_source)
    quotable_lines = [line for line in paragraphs if MIN_SNIPPET_WORDS <= len(line.split()) <= 40]
    claimed_type = random_source.choice(
        [type_name for type_name in claimable_types if type_name in page_template.get("as", claimable_types)]
    )
    evidence = tuple(
        Evidence(snippet=line, page=page_number)
        for line in random_source.sample(quotable_lines, min(2, len(quotable_lines)))
    )
    mutated_answer.segments.append(_build_segment(claimed_type, page_number, evidence).model_dump(mode="json"))
    _recompute_totals_and_check_type(mutated_answer)


def _build_segment(claimed_type: str, page_number: int, evidence: tuple[Evidence, ...]) -> Segment:
    def build_presence(document_type: DocumentType) -> TypePresence:
        is_claimed = document_type.value == claimed_type
        return TypePresence(
            document_type=document_type,
            presence_level=PresenceLevel.PRIMARY if is_claimed else PresenceLevel.NO_EVIDENCE,
            confidence=0.85 if is_claimed else 0.0,
            segment_share=1.0 if is_claimed else 0.0,
            top_evidence=evidence if is_claimed else (),
        )

    return Segment(
        segment_index=page_number,
        start_page=page_number,
        end_page=page_number,
        segment_page_count=1,
        dominant_type=DocumentType(claimed_type),
        segment_composition=tuple(map(build_presence, DocumentType)),
    )


def _plant_extra_text(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, is_hidden: bool
) -> None:
    readable_pages = [page.page_num for page in mutated_answer.bundle.pages if page.status.is_readable]
    text = _draw_text(text_key, random_source)
    mutated_answer.bundle = _add_block(
        mutated_answer.bundle, random_source.choice(readable_pages), text, is_hidden=is_hidden
    )


# ------------------------------------------------------------------------------------------------ the table


_REPORT_TYPE_NAMES = tuple(kind.value for kind in REPORT_TYPES)
_ACT_TYPE_NAMES = tuple(type_name for type_name in _TYPE_NAMES if type_name != _OTHER_TYPE)

# fmt: off
FAULTS: tuple[MutationOperator, ...] = (
    MutationOperator("segment-count", "number_of_segments is not the number of segments", ("V1",), "structural", _plant_wrong_segment_count),
    MutationOperator("segment-index", "two segments have one index", ("V1",), "structural", _plant_repeated_index),
    MutationOperator("page-range", "a segment has pages that the document has not", ("V1",), "structural", _plant_page_out_of_range),
    MutationOperator("page-order", "a segment ends before it begins", ("V1",), "structural", _plant_reversed_pages),
    MutationOperator("page-count", "segment_page_count is wrong", ("V1",), "structural", _plant_wrong_page_count),
    MutationOperator("confidence-range", "a confidence is not between 0 and 1", ("V1",), "structural", _plant_confidence_out_of_range),
    MutationOperator("share-range", "a share is below 0, the sum right", ("V1",), "structural", _plant_negative_share),
    MutationOperator("type-missing", "a type is missing in a segment", ("V1",), "structural", partial(_plant_missing_type, share_key="segment_share")),
    MutationOperator("type-missing-mixture", "a type is missing in the mixture", ("V1",), "structural", partial(_plant_missing_type, share_key="overall_share")),
    MutationOperator("type-twice", "a segment names a type twice", ("V1",), "structural", _plant_repeated_type),
    MutationOperator("shape", "a field is missing or of the wrong kind", ("V1",), "structural", _plant_wrong_shape),
    MutationOperator("segment-share-sum", "the shares of a segment do not sum to 1", ("V2",), "structural", partial(_plant_wrong_sum, share_key="segment_share")),
    MutationOperator("mixture-share-sum", "the shares of the mixture do not sum to 1", ("V2",), "structural", partial(_plant_wrong_sum, share_key="overall_share")),
    MutationOperator("page-overlap", "two segments claim one page", ("V2",), "structural", _plant_page_overlap),
    MutationOperator("page-gap", "a page belongs to no segment", ("V2",), "structural", _plant_page_gap),
    MutationOperator("segment-dropped", "a whole document of the packet is left out", ("V2",), "structural", _plant_dropped_segment),
    MutationOperator("dominant-segment", "the dominant type of a segment is not its largest share", ("V2",), "structural", _plant_wrong_dominant_type),
    MutationOperator("dominant-overall", "the document's type is not its largest share", ("V2",), "structural", _plant_wrong_overall_type),
    MutationOperator("dominant-presence", "the dominant type is only mentioned, or absent", ("V2",), "structural", _plant_weak_dominant_presence),
    MutationOperator("presence-denied", "the mixture denies what a segment is", ("V2",), "structural", _plant_denied_presence),
    MutationOperator("presence-unfounded", "the mixture claims what no segment has", ("V2",), "structural", _plant_unfounded_presence),
    MutationOperator("mixture", "the mixture does not follow from the pages", ("V2",), "structural", _plant_wrong_mixture),
    MutationOperator("cannot-tell", "no type is given", ("V2",), "structural", _plant_cannot_tell),
    MutationOperator("evidence-none", "high confidence, nothing quoted", ("V1", "V4"), "structural", _plant_no_evidence),
    MutationOperator("presence-no-evidence", "a second type is PRIMARY, nothing quoted", ("V1", "V4"), "structural", partial(_plant_invented_presence, level=PresenceLevel.PRIMARY, is_quoted=False)),
    MutationOperator("presence-raw", "an invented EMBEDDED_RAW with a share, nothing quoted", ("V4-PRESENCE-UNSUPPORTED",), "structural", partial(_plant_invented_presence, level=PresenceLevel.EMBEDDED_RAW, is_quoted=False)),
    MutationOperator("presence-mention", "an invented MENTION_ONLY with a share, nothing quoted", ("V4-PRESENCE-UNSUPPORTED",), "structural", partial(_plant_invented_presence, level=PresenceLevel.MENTION_ONLY, is_quoted=False)),
    MutationOperator("unsure", "a type is PRIMARY at a confidence below the floor", ("V2-UNSURE",), "structural", _plant_low_confidence),
    MutationOperator("evidence-outside-file", "evidence on a page that the document has not", ("V4",), "structural", _plant_quote_outside_file),
    MutationOperator("evidence-outside-segment", "evidence from another segment", ("V4",), "structural", _plant_quote_of_other_segment),
    MutationOperator("quote-invented", "a quote that stands nowhere", ("V4",), "structural", _plant_invented_quote),
    MutationOperator("quote-moved", "a quote claimed for another page", ("V4",), "quote", _plant_moved_quote),
    MutationOperator("anchor-invented", "an anchor that is not on the page", ("V4",), "quote", _plant_invented_anchor),
    *(MutationOperator(f"quote-{kind}", f"a quote altered: {row['description']}", ("V4",), "quote", partial(_plant_altered_quote, kind=kind)) for kind, row in load_quote_faults().items()),
    *(MutationOperator(f"quote-elided-{kind}", f"a quote elided over a {kind}", ("V4-QUOTE",), "quote", partial(_plant_elided_quote, text_key=f"elided_{kind}")) for kind in ("negation", "hedge", "history", "question")),
    MutationOperator("label", "a document is called another report or note, by true quotes", ("V2-SECOND-READING", "V2-NO-ACT"), "semantic", partial(_plant_wrong_label, claimable_types=_ACT_TYPE_NAMES)),
    MutationOperator("label-other", "a report or note is called Other, by true quotes", ("V2-ACT-IN-OTHER",), "semantic", partial(_plant_wrong_label, claimable_types=(_OTHER_TYPE,))),
    MutationOperator("labels-exchanged", "two neighbours are called each other's type", ("V2", "V3", "V4"), "semantic", _plant_exchanged_labels),
    MutationOperator("presence-strange", "a second type is PRIMARY, by a quote of the first", ("V2", "V4"), "semantic", partial(_plant_invented_presence, level=PresenceLevel.PRIMARY, is_quoted=True)),
    MutationOperator("presence-raw-strange", "an invented EMBEDDED_RAW, by a quote of another type", ("V4-PRESENCE-UNSUPPORTED",), "semantic", partial(_plant_invented_presence, level=PresenceLevel.EMBEDDED_RAW, is_quoted=True)),
    MutationOperator("presence-mention-strange", "an invented MENTION_ONLY, by a quote of another type", ("V4-PRESENCE-UNSUPPORTED",), "semantic", partial(_plant_invented_presence, level=PresenceLevel.MENTION_ONLY, is_quoted=True)),
    MutationOperator("boundary-1", "a boundary is off by one page", ("V2",), "semantic", partial(_plant_moved_boundary, page_shift=1)),
    MutationOperator("boundary-2", "a boundary is off by two pages", ("V2",), "semantic", partial(_plant_moved_boundary, page_shift=2)),
    MutationOperator("boundary-5", "a boundary is off by five pages", ("V2",), "semantic", partial(_plant_moved_boundary, page_shift=5)),
    MutationOperator("split", "a document is taken for two of its type", ("V2-BOUNDARY-DOUBT",), "semantic", _plant_false_split),
    MutationOperator("merged", "two documents of two types are taken for one", ("V2",), "semantic", partial(_plant_merged_segments, is_of_one_type=False)),
    MutationOperator("merged-type", "two documents of one type are taken for one", ("V2-BOUNDARY-DOUBT",), "semantic", partial(_plant_merged_segments, is_of_one_type=True)),
    MutationOperator("pages-missing", "a page of a document is missing", ("V2-PAGES-MISSING",), "semantic", _plant_missing_page),
    MutationOperator("pages-repeated", "pages of a document are there twice", ("V2-PAGES-REPEATED",), "semantic", _plant_repeated_pages),
    MutationOperator("pages-shuffled", "two pages of a document have changed places", ("V2-PAGES-ORDER",), "semantic", _plant_shuffled_pages),
    MutationOperator("evidence-reference", "the only evidence points elsewhere", ("V4",), "semantic", partial(_plant_replaced_evidence, text_key="references")),
    MutationOperator("evidence-courtesy", "the only evidence could stand in any document", ("V4",), "semantic", partial(_plant_replaced_evidence, text_key="courtesies")),
    MutationOperator("evidence-header", "the only evidence is the header of the page", ("V3", "V4"), "semantic", partial(_plant_replaced_evidence, text_key="headers", is_furniture=True)),
    MutationOperator("trap-vendor", "a routine laboratory as vendor of a genomic report", ("V3",), "structural", _plant_routine_vendor),
    MutationOperator("trap-letterhead", "its letterhead on the page, left out of the vendors", ("V3",), "semantic", partial(_plant_first_line, text_key="letterheads", segment_types=(_GENOMIC_TYPE,))),
    MutationOperator("trap-keyword", "administrative words on a page claimed as a report", ("V3",), "structural", partial(_plant_first_line, text_key="administrative_lines", segment_types=_REPORT_TYPE_NAMES)),
    MutationOperator("trap-form", "a form, order or cover sheet claimed as a report", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="forms", claimable_types=_REPORT_TYPE_NAMES)),
    MutationOperator("trap-panel", "a routine panel claimed as a genomic report", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="panels", claimable_types=(_GENOMIC_TYPE,))),
    MutationOperator("trap-boilerplate", "a laboratory's words about its method claimed as a result", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="boilerplates", claimable_types=(_GENOMIC_TYPE,))),
    MutationOperator("trap-quoted", "a report quoted in a note or letter claimed as the report", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="quoting_notes", claimable_types=_REPORT_TYPE_NAMES)),
    MutationOperator("instruction", "words for a model on the page", ("V3",), "semantic", partial(_plant_extra_text, text_key="instructions", is_hidden=False)),
    MutationOperator("instruction-hidden", "words for a model, hidden", ("V3",), "semantic", partial(_plant_extra_text, text_key="instructions", is_hidden=True)),
    MutationOperator("text-hidden", "hidden text that says something else than the page", ("V3",), "semantic", partial(_plant_extra_text, text_key="hidden_reports", is_hidden=True)),
)
# fmt: on

FAULT_BY_ID: Mapping[str, MutationOperator] = {fault.fault_id: fault for fault in FAULTS}
