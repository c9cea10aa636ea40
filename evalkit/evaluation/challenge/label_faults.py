"""Fault kinds: wrong types and boundaries; missing, repeated or shuffled pages."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from functools import partial

from evalkit.evaluation.challenge.mutated_answer import (
    OTHER_TYPE,
    TYPE_NAMES,
    FaultNotApplicableError,
    Json,
    MutatedAnswer,
    MutationOperator,
    RandomSource,
    add_block,
    append_page,
    draw_candidate,
    drop_evidence_of_other_pages,
    find_dominant_row,
    load_fault_texts,
    recompute_totals_and_check_type,
    replace_pages,
    require_applicable,
    swap_segment_types,
)

#: Maximum number of sentences quoted as evidence for a wrong type.
_MAX_QUOTES = 2
_PAGE_COUNT_PATTERN = re.compile(r"(?i)\bpage \d+ of \d+")
_ACT_TYPE_NAMES = tuple(type_name for type_name in TYPE_NAMES if type_name != OTHER_TYPE)


def _plant_wrong_label(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, claimable_types: Sequence[str]
) -> None:
    """Give a segment a wrong type and quote its two longest passages as evidence."""
    labels = [
        (segment, type_name)
        for segment in mutated_answer.segments
        for type_name in claimable_types
        if type_name != segment["dominant_type"]
    ]
    segment, type_name = draw_candidate(random_source, labels)
    swap_segment_types(segment, type_name)
    _quote_longest_sentences(mutated_answer, segment)
    require_applicable(recompute_totals_and_check_type(mutated_answer))


def _quote_longest_sentences(mutated_answer: MutatedAnswer, segment: Json) -> None:
    """Replace the evidence of a segment's type by the longest passages of its pages."""
    passages = mutated_answer.clean_answer.quotable_text.list_longest_passages(
        segment["start_page"], segment["end_page"]
    )
    claim = find_dominant_row(segment)
    require_applicable(bool(passages) and claim is not None)
    if claim is not None:
        claim["top_evidence"] = [
            {"snippet": passage.text, "page": passage.page, "anchors_found": []} for passage in passages[:_MAX_QUOTES]
        ]


def _plant_exchanged_labels(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Swap the types of two neighbouring segments."""
    pairs = [
        (earlier, later)
        for earlier, later in zip(mutated_answer.segments, mutated_answer.segments[1:], strict=False)
        if earlier["dominant_type"] != later["dominant_type"]
    ]
    earlier, later = draw_candidate(random_source, pairs)
    for segment, type_name in ((earlier, later["dominant_type"]), (later, earlier["dominant_type"])):
        swap_segment_types(segment, type_name)
    require_applicable(recompute_totals_and_check_type(mutated_answer))


def _plant_moved_boundary(mutated_answer: MutatedAnswer, random_source: RandomSource, *, page_shift: int) -> None:
    """Move a boundary by ``page_shift`` pages and drop quotes left outside."""
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
        if all(map(drop_evidence_of_other_pages, moved_segments)):
            earlier.update(moved_segments[0])
            later.update(moved_segments[1])
            require_applicable(recompute_totals_and_check_type(mutated_answer))
            return
    raise FaultNotApplicableError


def _plant_false_split(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Split a segment of several pages into two segments of the same type."""
    splits = [
        (index, page)
        for index, segment in enumerate(mutated_answer.segments)
        for page in range(segment["start_page"] + 1, segment["end_page"] + 1)
    ]
    index, page = draw_candidate(random_source, splits)
    segment = mutated_answer.segments[index]
    parts = [
        copy.deepcopy(segment) | {"start_page": segment["start_page"], "end_page": page - 1},
        copy.deepcopy(segment) | {"start_page": page},
    ]
    for part in parts:
        if not drop_evidence_of_other_pages(part):
            _quote_longest_sentences(mutated_answer, part)
    mutated_answer.segments[index : index + 1] = parts
    require_applicable(recompute_totals_and_check_type(mutated_answer))


def _plant_merged_segments(mutated_answer: MutatedAnswer, random_source: RandomSource, *, is_of_one_type: bool) -> None:
    """Merge two neighbouring segments, keeping the claims of the longer (or first)."""
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
    index = draw_candidate(random_source, indexes)
    earlier, later = mutated_answer.segments[index : index + 2]
    longer = later if later["segment_page_count"] > earlier["segment_page_count"] else earlier
    merged_segment = longer | {"start_page": earlier["start_page"], "end_page": later["end_page"]}
    mutated_answer.segments[index : index + 2] = [merged_segment]
    require_applicable(recompute_totals_and_check_type(mutated_answer))


def _append_document_to_last_segment(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Append a new document of the last segment's type and merge it into it."""
    last_segment = mutated_answer.segments[-1]
    require_applicable(last_segment["end_page"] == mutated_answer.bundle.total_pages)
    templates = [
        template["page"]
        for template in load_fault_texts()["second_documents"]
        if template["type"] == last_segment["dominant_type"]
    ]
    append_page(mutated_answer, draw_candidate(random_source, templates), random_source)
    last_segment["end_page"] += 1
    require_applicable(recompute_totals_and_check_type(mutated_answer))


def _draw_counted_segment(mutated_answer: MutatedAnswer, random_source: RandomSource, min_page_count: int) -> Json:
    """Draw a segment with page counts ("Page 1 of 3"); add them if missing.

    The segment has at least ``min_page_count`` pages, none of them blank.
    """
    long_segments = [segment for segment in mutated_answer.segments if segment["segment_page_count"] >= min_page_count]
    segment = draw_candidate(random_source, long_segments)
    pages = list(mutated_answer.bundle.iter_pages(segment["start_page"], segment["end_page"]))
    require_applicable(all(page.status.is_readable and page.text.strip() for page in pages))
    if not all(_PAGE_COUNT_PATTERN.search(page.text) for page in pages):
        template = random_source.choice(load_fault_texts()["page_counts"])
        for number, page in enumerate(pages, 1):
            page_count = template.format(number=number, total=len(pages))
            mutated_answer.bundle = add_block(mutated_answer.bundle, page.page_num, page_count, is_furniture=True)
    return segment


def _reorder_pages(mutated_answer: MutatedAnswer, page_order: Sequence[int]) -> None:
    """Rebuild the file from the listed pages; renumber segments and quotes."""
    pages = [
        mutated_answer.bundle.page(page_number).model_copy(update={"page_num": new_number})
        for new_number, page_number in enumerate(page_order, 1)
    ]
    mutated_answer.bundle = replace_pages(mutated_answer.bundle, pages)
    for segment in mutated_answer.segments:
        own_pages = range(segment["start_page"], segment["end_page"] + 1)
        new_numbers = [new_number for new_number, page in enumerate(page_order, 1) if page in own_pages]
        segment["start_page"], segment["end_page"] = min(new_numbers), max(new_numbers)
        for quote in (quote for row in segment["segment_composition"] for quote in row["top_evidence"]):
            quote["page"] = page_order.index(quote["page"]) + 1 if quote["page"] in page_order else 0
        require_applicable(drop_evidence_of_other_pages(segment))
    require_applicable(recompute_totals_and_check_type(mutated_answer))


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
    """Insert copies of some of a segment's pages after its last page."""
    segment = random_source.choice(mutated_answer.segments)
    start, end = segment["start_page"], segment["end_page"]
    first = random_source.randint(start, end)
    repeated_pages = range(first, random_source.randint(first, end) + 1)
    require_applicable(all(mutated_answer.bundle.page(page).text.strip() for page in repeated_pages))
    _reorder_pages(
        mutated_answer, [*range(1, end + 1), *repeated_pages, *range(end + 1, mutated_answer.bundle.total_pages + 1)]
    )


# fmt: off
LABEL_FAULTS: tuple[MutationOperator, ...] = (
    MutationOperator("label", "a document has the type of another report or note, with true quotes", ("V2-SECOND-READING", "V2-NO-ACT"), "semantic", partial(_plant_wrong_label, claimable_types=_ACT_TYPE_NAMES)),
    MutationOperator("label-other", "a report or note has the type Other, with true quotes", ("V2-ACT-IN-OTHER",), "semantic", partial(_plant_wrong_label, claimable_types=(OTHER_TYPE,))),
    MutationOperator("labels-exchanged", "two neighbouring documents have each other's type", ("V2", "V3", "V4"), "semantic", _plant_exchanged_labels),
    MutationOperator("boundary-1", "a boundary is off by one page", ("V2",), "semantic", partial(_plant_moved_boundary, page_shift=1)),
    MutationOperator("boundary-2", "a boundary is off by two pages", ("V2",), "semantic", partial(_plant_moved_boundary, page_shift=2)),
    MutationOperator("boundary-5", "a boundary is off by five pages", ("V2",), "semantic", partial(_plant_moved_boundary, page_shift=5)),
    MutationOperator("split", "a document is split into two of its type", ("V2-BOUNDARY-DOUBT",), "semantic", _plant_false_split),
    MutationOperator("merged", "two documents of different types are merged into one", ("V2",), "semantic", partial(_plant_merged_segments, is_of_one_type=False)),
    MutationOperator("merged-type", "two documents of one type are merged into one", ("V2-BOUNDARY-DOUBT",), "semantic", partial(_plant_merged_segments, is_of_one_type=True)),
    MutationOperator("pages-missing", "a page of a document is missing", ("V2-PAGES-MISSING",), "semantic", _plant_missing_page),
    MutationOperator("pages-repeated", "pages of a document occur twice", ("V2-PAGES-REPEATED",), "semantic", _plant_repeated_pages),
    MutationOperator("pages-shuffled", "two pages of a document have changed places", ("V2-PAGES-ORDER",), "semantic", _plant_shuffled_pages),
)
# fmt: on
