"""Copies of right answers, into which faults of all kinds can be planted.

Planting changes a :class:`MutatedAnswer`: a copy of the answer as JSON and, if the fault is in the text, of the
document. The planted texts are data (``faults.toml``). Nothing here uses the verifiers' code, so that faults are not
made to be found.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, TypeVar

from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    PresenceLevel,
    compute_mixture,
)
from evalkit.classification.v2_consistency import choose_overall_type
from evalkit.core.package_tables import load_package_table
from evalkit.document_types import FIVE_TYPES
from evalkit.documents.bundle import Block, DocumentBundle, LayoutMetadata, PackedWords, Page, PageStatus
from evalkit.evaluation.challenge.quote_faults import QuotableText

Json = dict[str, Any]
RandomSource = random.Random
T = TypeVar("T")

#: What it takes to detect a fault: ``structural``, counting and adding; ``quote``, looking up a quote; ``semantic``,
#: understanding the text.
FaultNature = Literal["structural", "quote", "semantic"]

TYPE_NAMES = tuple(kind.value for kind in FIVE_TYPES)
PRIMARY, ABSENT = PresenceLevel.PRIMARY.value, PresenceLevel.NO_EVIDENCE.value
OTHER_TYPE = DocumentType.OTHER.value


class AnswerOrigin(StrEnum):
    """Origin of a right answer: who vouches that it is right."""

    SUPPLIED = "supplied"
    """Another system supplied the answer."""
    VALIDATED = "validated"
    """An expert validated the program's answer unchanged."""
    CORRECTED = "corrected"
    """An expert corrected the program's answer."""
    SIMULATED = "simulated"
    """A simulated reviewer (a program) validated or corrected the answer."""
    UNVALIDATED = "unvalidated"
    """The program accepted its own answer, and nobody has reviewed it."""

    @property
    def is_vouched_from_outside(self) -> bool:
        """True if an expert or another system, not the program, vouches for the answer."""
        return self in (AnswerOrigin.SUPPLIED, AnswerOrigin.VALIDATED, AnswerOrigin.CORRECTED)


@dataclass(frozen=True, eq=False)
class CleanAnswer:
    """A classification that is assumed to be right, with its document and origin."""

    bundle: DocumentBundle
    classification: ClassificationOutput
    origin: AnswerOrigin = AnswerOrigin.SUPPLIED

    @cached_property
    def quotable_text(self) -> QuotableText:
        """The document's visible passages, from which faulty quotes are made."""
        return QuotableText(self.bundle)


@dataclass
class MutatedAnswer:
    """A copy of a right answer and its document, into which a fault is planted."""

    clean_answer: CleanAnswer
    answer_json: Any
    """The classification as JSON, changed in place by fault planters."""
    bundle: DocumentBundle

    @classmethod
    def from_clean_answer(cls, clean_answer: CleanAnswer) -> MutatedAnswer:
        """Create a mutable copy of a right answer, without a fault yet."""
        return cls(clean_answer, copy.deepcopy(clean_answer.classification.to_json()), clean_answer.bundle)

    @property
    def segments(self) -> list[Json]:
        """The segments of ``answer_json``; changing the list changes the answer."""
        segments: list[Json] = self.answer_json["segments"]
        return segments


class FaultNotApplicableError(Exception):
    """Error for a kind of fault that cannot be planted into this answer."""


#: Plants a fault into the answer in place. If it raises FaultNotApplicableError, the answer may be half changed:
#: discard it.
FaultPlanter = Callable[[MutatedAnswer, RandomSource], None]


@dataclass(frozen=True)
class MutationOperator:
    """One kind of fault: how to plant it, and which issues should detect it."""

    fault_id: str
    description: str
    """The fault in a few words, for the report."""
    expected_codes: tuple[str, ...]
    """Issue codes that should detect the fault, or agent names (``V2``) if any issue code of that agent will do."""
    nature: FaultNature
    plant: FaultPlanter


def load_fault_texts() -> Mapping[str, Any]:
    """Load the texts that planted faults insert, from ``faults.toml``."""
    return load_package_table("evalkit.evaluation.challenge", "faults.toml")


def fill_slots(template: str, random_source: RandomSource) -> str:
    """Fill a text template: ``{name}`` with a random text, ``#`` with a digit 1-9."""
    slots: Mapping[str, Sequence[str]] = load_fault_texts()["slots"]
    for _ in range(2):  # the entry that fills a slot may contain slots too
        template = re.sub(r"\{(\w+)\}", lambda match: random_source.choice(slots[match[1]]), template)
    return re.sub("#", lambda _: str(random_source.randint(1, 9)), template)


def draw_text(text_key: str, random_source: RandomSource) -> str:
    """Draw a random text from a list of ``faults.toml`` and fill its slots."""
    return fill_slots(random_source.choice(load_fault_texts()[text_key]), random_source)


def find_presence_row(segment: Json, type_name: str | None) -> Json | None:
    """Return a segment's row about a document type; None if there is none."""
    return next((row for row in segment["segment_composition"] if row["document_type"] == type_name), None)


def find_dominant_row(segment: Json) -> Json | None:
    """Return a segment's row about its dominant type; None if there is none."""
    return find_presence_row(segment, segment["dominant_type"])


def require_applicable(is_applicable: bool) -> None:
    """Raise FaultNotApplicableError if ``is_applicable`` is False."""
    if not is_applicable:
        raise FaultNotApplicableError


def draw_candidate(random_source: RandomSource, candidates: Sequence[T]) -> T:
    """Draw a random candidate. FaultNotApplicableError if the list is empty."""
    require_applicable(bool(candidates))
    return random_source.choice(candidates)


def list_quoted_claims(mutated_answer: MutatedAnswer) -> list[tuple[Json, Json]]:
    """List segments whose dominant type has quotes, each with its row."""
    return [
        (segment, claim)
        for segment in mutated_answer.segments
        if (claim := find_dominant_row(segment)) and claim["top_evidence"]
    ]


def draw_quoted_claim(mutated_answer: MutatedAnswer, random_source: RandomSource) -> tuple[Json, Json]:
    """Draw a random segment whose dominant type has quotes, with its row.

    FaultNotApplicableError if no segment's dominant type has a quote.
    """
    return draw_candidate(random_source, list_quoted_claims(mutated_answer))


def recompute_totals_and_check_type(mutated_answer: MutatedAnswer) -> bool:
    """Recompute counts, mixture and overall type after segments were changed.

    Return True if the changed answer has an overall type.
    """
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
    """Make ``type_name`` the segment's dominant type in place of its old type."""
    old_row, new_row = find_dominant_row(segment), find_presence_row(segment, type_name)
    if old_row is None or new_row is None:
        raise ValueError("an answer without faults must rate every document type in each segment")
    old_row["document_type"], new_row["document_type"] = type_name, segment["dominant_type"]
    segment["dominant_type"] = type_name


def _build_page(page_number: int, paragraphs: Sequence[str]) -> Page:
    height = 1 / (len(paragraphs) + 1)
    boxes = [(0.1, height * row_number, 0.9, height * (row_number + 1)) for row_number in range(len(paragraphs))]
    return Page(
        page_num=page_number,
        status=PageStatus.TEXT,
        text="\n".join(paragraphs),
        paragraphs=tuple(paragraphs),
        layout_metadata=LayoutMetadata(block_types=tuple("paragraph" for _ in paragraphs), has_tables=False),
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
    """Return a copy of the bundle with a text block added to a page (top or bottom).

    ``is_furniture`` marks the block as header or footer; a hidden block does not enter the page's text.
    """
    page = bundle.page(page_number)
    block = Block(type="paragraph", text=text, box=(0.1, 0.0 if is_first else 0.97, 0.9, 0.02 if is_first else 0.99))
    block = block.model_copy(update={"furniture": is_furniture, "hidden": is_hidden})
    changes: Json = {"blocks": ((block, *page.blocks) if is_first else (*page.blocks, block))}
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
    """Return a copy of the bundle with its pages replaced by ``pages``."""
    return bundle.model_copy(update={"pages": tuple(pages), "total_pages": len(pages)})


def append_page(
    mutated_answer: MutatedAnswer, page_template: str, random_source: RandomSource
) -> tuple[int, list[str]]:
    """Append a page to the mutated file; return the page's number and paragraphs."""
    page_number = mutated_answer.bundle.total_pages + 1
    paragraphs = [fill_slots(line, random_source) for line in page_template.strip().splitlines() if line.strip()]
    page = _build_page(page_number, paragraphs)
    mutated_answer.bundle = replace_pages(mutated_answer.bundle, [*mutated_answer.bundle.pages, page])
    return page_number, paragraphs


def normalise_quote(text: str) -> str:
    """Reduce a text to lower-case letters and digits, to compare quotes."""
    return "".join(filter(str.isalnum, text.casefold()))


def move_share(row: Json, other_row: Json, share_key: str, shift: float) -> None:
    """Move ``shift`` from one type's share to another's; the sum stays the same."""
    row[share_key] = round(row[share_key] - round(shift, 4), 4)
    other_row[share_key] = round(other_row[share_key] + round(shift, 4), 4)


def drop_evidence_of_other_pages(segment: Json) -> bool:
    """Drop a segment's quotes from pages outside the segment.

    Return False if a type that had quotes has none left.
    """
    is_still_quoted = True
    for row in segment["segment_composition"]:
        quotes = row["top_evidence"]
        row["top_evidence"] = [
            quote for quote in quotes if segment["start_page"] <= quote["page"] <= segment["end_page"]
        ]
        is_still_quoted &= bool(row["top_evidence"]) or not quotes
    return is_still_quoted
