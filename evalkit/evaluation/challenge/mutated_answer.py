"""The copy of a right answer that takes a fault, and steps that faults share.

Planting changes a :class:`MutatedAnswer`: a copy of the answer as JSON and, if the fault is in the text, of the document.
What the texts say is data, ``faults.toml``. No check is asked here: planting knows nothing of finding.
"""

from __future__ import annotations

import copy
import random
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal, TypeVar

from evalkit.classification.primary_classifier import choose_overall_type
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    PresenceLevel,
    compute_mixture,
)
from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, PackedWords, Page, PageStatus
from evalkit.evaluation.challenge.quote_faults import QuotableText

Json = dict[str, Any]
RandomSource = random.Random
T = TypeVar("T")

#: How a fault can be seen: by counting and adding up; by looking up a quote; only by understanding the text.
FaultNature = Literal["structural", "quote", "semantic"]

TYPE_NAMES = tuple(kind.value for kind in DocumentType)
PRIMARY, ABSENT = PresenceLevel.PRIMARY.value, PresenceLevel.NO_EVIDENCE.value
OTHER_TYPE = DocumentType.OTHER.value


class AnswerOrigin(StrEnum):
    """The source that vouches for a classification."""

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
        """True if an alarm is false for certain: the program's own answer may be wrong."""
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
    """A copy of a right answer, and of its document, into which a fault is planted."""

    clean_answer: CleanAnswer
    answer_json: Any
    """A classification as JSON, free to be changed."""
    bundle: DocumentBundle

    @classmethod
    def from_clean_answer(cls, clean_answer: CleanAnswer) -> MutatedAnswer:
        """Copy the clean answer."""
        return cls(clean_answer, copy.deepcopy(clean_answer.classification.to_json()), clean_answer.bundle)

    @property
    def segments(self) -> list[Json]:
        """The answer's segments, as JSON."""
        segments: list[Json] = self.answer_json["segments"]
        return segments


class FaultNotApplicableError(Exception):
    """The kind of fault does not apply to an answer, or not where it was drawn."""


#: Changes the draft. FaultNotApplicableError; then the draft is of no use any more.
FaultPlanter = Callable[[MutatedAnswer, RandomSource], None]


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


@cache
def load_fault_texts() -> Mapping[str, Any]:
    """Load the texts of planted faults: ``faults.toml``."""
    return tomllib.loads((files("evalkit.evaluation.challenge") / "faults.toml").read_text("utf-8"))


def fill_slots(template: str, random_source: RandomSource) -> str:
    """Fill a text's slots: ``{name}`` from that list, ``#`` by a digit."""
    slots: Mapping[str, Sequence[str]] = load_fault_texts()["slots"]
    for _ in range(2):  # what fills a slot may have slots
        template = re.sub(r"\{(\w+)\}", lambda match: random_source.choice(slots[match[1]]), template)
    return re.sub("#", lambda _: str(random_source.randint(1, 9)), template)


def draw_text(text_key: str, random_source: RandomSource) -> str:
    """Draw one of the texts of that name from ``faults.toml`` and fill its slots."""
    return fill_slots(random_source.choice(load_fault_texts()[text_key]), random_source)


def find_presence_row(segment: Json, type_name: str | None) -> Json | None:
    """Find the row of that type among a segment's types; None if it has none."""
    return next((row for row in segment["segment_composition"] if row["document_type"] == type_name), None)


def find_dominant_row(segment: Json) -> Json | None:
    """Find the row of the type that the segment is called."""
    return find_presence_row(segment, segment["dominant_type"])


def require_applicable(is_applicable: bool) -> None:
    """Raise FaultNotApplicableError if the fault cannot be planted here."""
    if not is_applicable:
        raise FaultNotApplicableError


def draw_candidate(random_source: RandomSource, candidates: Sequence[T]) -> T:
    """Draw one of the candidates. FaultNotApplicableError if there are none."""
    require_applicable(bool(candidates))
    return random_source.choice(candidates)


def draw_two_segments(mutated_answer: MutatedAnswer, random_source: RandomSource) -> list[Json]:
    """Draw two different segments. FaultNotApplicableError if there is only one."""
    require_applicable(len(mutated_answer.segments) > 1)
    return random_source.sample(mutated_answer.segments, 2)


def list_quoted_claims(mutated_answer: MutatedAnswer) -> list[tuple[Json, Json]]:
    """List the segments with their type's row, if it has quotes."""
    return [
        (segment, claim)
        for segment in mutated_answer.segments
        if (claim := find_dominant_row(segment)) and claim["top_evidence"]
    ]


def draw_quoted_claim(mutated_answer: MutatedAnswer, random_source: RandomSource) -> tuple[Json, Json]:
    """Draw a segment with its quoted type's row. FaultNotApplicableError if none has."""
    return draw_candidate(random_source, list_quoted_claims(mutated_answer))


def recompute_totals_and_check_type(mutated_answer: MutatedAnswer) -> bool:
    """Recompute counts, mixture and overall type; False if there is no overall type."""
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


def swap_segment_types(segment: Json, type_name: str) -> None:
    """Exchange the segment's type with another, together with their claims."""
    old_row, new_row = find_dominant_row(segment), find_presence_row(segment, type_name)
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


def add_block(
    bundle: DocumentBundle,
    page_number: int,
    text: str,
    *,
    is_first: bool = False,
    is_furniture: bool = False,
    is_hidden: bool = False,
) -> DocumentBundle:
    """Add a block to a page, above or below all others."""
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
    return replace_pages(
        bundle, [*bundle.pages[: page_number - 1], page.model_copy(update=changes), *bundle.pages[page_number:]]
    )


def replace_pages(bundle: DocumentBundle, pages: Sequence[Page]) -> DocumentBundle:
    """Copy the bundle with these pages instead of its own."""
    return bundle.model_copy(update={"pages": tuple(pages), "total_pages": len(pages)})


def append_page(
    mutated_answer: MutatedAnswer, page_template: str, random_source: RandomSource
) -> tuple[int, list[str]]:
    """Let the file have one more page behind its last; its number and paragraphs."""
    page_number = mutated_answer.bundle.total_pages + 1
    paragraphs = [fill_slots(line, random_source) for line in page_template.strip().splitlines() if line.strip()]
    page = _build_page(page_number, paragraphs)
    mutated_answer.bundle = replace_pages(mutated_answer.bundle, [*mutated_answer.bundle.pages, page])
    return page_number, paragraphs


def normalise_quote(text: str) -> str:
    """Keep letters and digits only, in lower case, to compare quotes."""
    return "".join(filter(str.isalnum, text.casefold()))


def move_share(row: Json, other_row: Json, share_key: str, shift: float) -> None:
    """Move ``shift`` of one row's share to another; the sum stays right."""
    row[share_key] = round(row[share_key] - round(shift, 4), 4)
    other_row[share_key] = round(other_row[share_key] + round(shift, 4), 4)


def drop_evidence_of_other_pages(segment: Json) -> bool:
    """Drop quotes from other pages; False if a quoted type has none left."""
    is_still_quoted = True
    for row in segment["segment_composition"]:
        quotes = row["top_evidence"]
        row["top_evidence"] = [
            quote for quote in quotes if segment["start_page"] <= quote["page"] <= segment["end_page"]
        ]
        is_still_quoted &= bool(row["top_evidence"]) or not quotes
    return is_still_quoted


def draw_different_type(segment: Json, random_source: RandomSource) -> str:
    """Move ``shift`` of one row's share to another row."""
    return random_source.choice([type_name for type_name in TYPE_NAMES if type_name != segment["dominant_type"]])
