"""Table of all kinds of planted fault, with the issues that should detect each.

Arithmetic can detect the structural kinds: inconsistent counts, pages, shares and types. The others are wrong types and
boundaries; missing, repeated or shuffled pages; wrong evidence, misleading pages, and prompt injection.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from evalkit.classification.schema import (
    REPORT_TYPES,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
    TypePresence,
)
from evalkit.classification.v4_evidence_quality import MIN_SNIPPET_WORDS
from evalkit.documents.bundle import Page
from evalkit.evaluation.challenge.mutated_answer import (
    ABSENT,
    OTHER_TYPE,
    PRIMARY,
    TYPE_NAMES,
    FaultNotApplicableError,
    Json,
    MutatedAnswer,
    MutationOperator,
    RandomSource,
    add_block,
    append_page,
    draw_candidate,
    draw_quoted_claim,
    draw_text,
    drop_evidence_of_other_pages,
    find_dominant_row,
    list_quoted_claims,
    load_fault_texts,
    move_share,
    normalise_quote,
    recompute_totals_and_check_type,
    replace_pages,
    require_applicable,
    swap_segment_types,
)
from evalkit.evaluation.challenge.quote_faults import load_quote_faults


def _plant_wrong_segment_count(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    mutated_answer.answer_json["number_of_segments"] += random_source.choice((-1, 1, 2))


def _plant_repeated_index(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    require_applicable(len(mutated_answer.segments) > 1)
    segment, other_segment = random_source.sample(mutated_answer.segments, 2)
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


def _draw_share_rows(mutated_answer: MutatedAnswer, random_source: RandomSource, share_key: str) -> list[Json]:
    """Return the mixture's rows, or those of a random segment for ``segment_share``."""
    table, rows_key = mutated_answer.answer_json, "document_mixture"
    if share_key == "segment_share":
        table, rows_key = random_source.choice(mutated_answer.segments), "segment_composition"
    rows: list[Json] = table[rows_key]
    return rows


def _plant_negative_share(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    row, other_row = random_source.sample(_draw_share_rows(mutated_answer, random_source, "segment_share"), 2)
    move_share(row, other_row, "segment_share", row["segment_share"] + random_source.uniform(0.02, 0.1))


def _plant_missing_type(mutated_answer: MutatedAnswer, random_source: RandomSource, *, share_key: str) -> None:
    rows = _draw_share_rows(mutated_answer, random_source, share_key)
    absent_rows = [row for row in rows if row["presence_level"] == ABSENT and row[share_key] == 0]
    rows.remove(draw_candidate(random_source, absent_rows))


def _plant_repeated_type(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    row, other_row = random_source.sample(random_source.choice(mutated_answer.segments)["segment_composition"], 2)
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
    earlier, later = draw_candidate(random_source, neighbours)
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
    segment = draw_candidate(random_source, long_segments)
    if random_source.random() < 0.5:
        segment["start_page"] += 1
    else:
        segment["end_page"] -= 1
    segment["segment_page_count"] -= 1
    drop_evidence_of_other_pages(segment)


def _plant_dropped_segment(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    require_applicable(len(mutated_answer.segments) > 1)
    mutated_answer.segments.remove(random_source.choice(mutated_answer.segments))
    require_applicable(recompute_totals_and_check_type(mutated_answer))


def _plant_wrong_dominant_type(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    segment = random_source.choice(mutated_answer.segments)
    other_types = [type_name for type_name in TYPE_NAMES if type_name != segment["dominant_type"]]
    segment["dominant_type"] = random_source.choice(other_types)


def _plant_wrong_overall_type(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    overall_type = mutated_answer.answer_json["dominant_type_overall"]
    share_by_type = {
        row["document_type"]: row["overall_share"] for row in mutated_answer.answer_json["document_mixture"]
    }
    smaller_types = [
        type_name for type_name in TYPE_NAMES if share_by_type[type_name] < share_by_type[overall_type] - 0.02
    ]
    mutated_answer.answer_json["dominant_type_overall"] = draw_candidate(random_source, smaller_types)


def _plant_weak_dominant_presence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Give a segment's dominant type a presence level other than PRIMARY."""
    claim = draw_candidate(random_source, list(filter(None, map(find_dominant_row, mutated_answer.segments))))
    claim["presence_level"] = random_source.choice([level.value for level in PresenceLevel if level.value != PRIMARY])


def _plant_denied_presence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    primary_rows = [row for row in mutated_answer.answer_json["document_mixture"] if row["presence_level"] == PRIMARY]
    draw_candidate(random_source, primary_rows)["presence_level"] = ABSENT


def _plant_unfounded_presence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    levels_by_type = {row["document_type"]: set[str]() for row in mutated_answer.answer_json["document_mixture"]}
    for segment in mutated_answer.segments:
        for row in segment["segment_composition"]:
            levels_by_type[row["document_type"]].add(row["presence_level"])
    absent_rows = [
        row
        for row in mutated_answer.answer_json["document_mixture"]
        if levels_by_type[row["document_type"]] == {ABSENT}
    ]
    draw_candidate(random_source, absent_rows)["presence_level"] = PRIMARY


def _plant_wrong_mixture(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Move part of the mixture's largest share to another type; it stays the largest."""
    rows = sorted(mutated_answer.answer_json["document_mixture"], key=lambda row: -row["overall_share"])
    max_shift = (rows[0]["overall_share"] - rows[1]["overall_share"]) / 2 - 0.02
    require_applicable(max_shift >= 0.07)
    move_share(rows[0], random_source.choice(rows[1:]), "overall_share", random_source.uniform(0.07, max_shift))


def _plant_cannot_tell(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    target = random_source.choice([mutated_answer.answer_json, *mutated_answer.segments])
    target["dominant_type_overall" if target is mutated_answer.answer_json else "dominant_type"] = None


# fmt: off
STRUCTURE_FAULTS: tuple[MutationOperator, ...] = (
    MutationOperator("segment-count", "number_of_segments is not the number of segments", ("V1",), "structural", _plant_wrong_segment_count),
    MutationOperator("segment-index", "two segments have the same index", ("V1",), "structural", _plant_repeated_index),
    MutationOperator("page-range", "a segment has pages that do not exist", ("V1",), "structural", _plant_page_out_of_range),
    MutationOperator("page-order", "a segment ends before it begins", ("V1",), "structural", _plant_reversed_pages),
    MutationOperator("page-count", "segment_page_count is wrong", ("V1",), "structural", _plant_wrong_page_count),
    MutationOperator("confidence-range", "a confidence is not between 0 and 1", ("V1",), "structural", _plant_confidence_out_of_range),
    MutationOperator("share-range", "a share is below 0, but the sum is right", ("V1",), "structural", _plant_negative_share),
    MutationOperator("type-missing", "a type is missing in a segment", ("V1",), "structural", partial(_plant_missing_type, share_key="segment_share")),
    MutationOperator("type-missing-mixture", "a type is missing in the mixture", ("V1",), "structural", partial(_plant_missing_type, share_key="overall_share")),
    MutationOperator("type-twice", "a segment names a type twice", ("V1",), "structural", _plant_repeated_type),
    MutationOperator("shape", "a field is missing or of the wrong kind", ("V1",), "structural", _plant_wrong_shape),
    MutationOperator("segment-share-sum", "the shares of a segment do not sum to 1", ("V2",), "structural", partial(_plant_wrong_sum, share_key="segment_share")),
    MutationOperator("mixture-share-sum", "the shares of the mixture do not sum to 1", ("V2",), "structural", partial(_plant_wrong_sum, share_key="overall_share")),
    MutationOperator("page-overlap", "two segments claim the same page", ("V2",), "structural", _plant_page_overlap),
    MutationOperator("page-gap", "a page belongs to no segment", ("V2",), "structural", _plant_page_gap),
    MutationOperator("segment-dropped", "a whole document of the file is left out", ("V2",), "structural", _plant_dropped_segment),
    MutationOperator("dominant-segment", "a segment's dominant type does not have the largest share", ("V2",), "structural", _plant_wrong_dominant_type),
    MutationOperator("dominant-overall", "the overall type does not have the largest share", ("V2",), "structural", _plant_wrong_overall_type),
    MutationOperator("dominant-presence", "the dominant type has a presence level below PRIMARY", ("V2",), "structural", _plant_weak_dominant_presence),
    MutationOperator("presence-denied", "the mixture says that a segment's type is absent", ("V2",), "structural", _plant_denied_presence),
    MutationOperator("presence-unfounded", "the mixture claims a type that no segment has", ("V2",), "structural", _plant_unfounded_presence),
    MutationOperator("mixture", "the mixture's shares do not follow from the segments", ("V2",), "structural", _plant_wrong_mixture),
    MutationOperator("cannot-tell", "no type is given", ("V2",), "structural", _plant_cannot_tell),
)
# fmt: on


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


#: A type's share above this stays the largest share even after up to 0.3 of it is moved to another type.
_MIN_DIVISIBLE_SHARE = 0.65
_GENOMIC_TYPE = DocumentType.GENOMIC_REPORT.value
_REPORT_TYPE_NAMES = tuple(document_type.value for document_type in REPORT_TYPES)


def _plant_no_evidence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Remove all quotes of a segment's type and set its confidence to 0.97."""
    _, claim = draw_quoted_claim(mutated_answer, random_source)
    claim.update(top_evidence=[], confidence=0.97)


def _plant_invented_presence(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, level: PresenceLevel, is_quoted: bool
) -> None:
    """Claim a further type for a segment, unquoted or with the right type's quote.

    Unless the invented level is PRIMARY, part of the right type's share is moved to the invented type.
    """
    segment, claim = draw_quoted_claim(mutated_answer, random_source)
    is_primary = level is PresenceLevel.PRIMARY
    absent_rows = [
        row
        for row in segment["segment_composition"]
        if row["presence_level"] == ABSENT and (is_primary or row["document_type"] != OTHER_TYPE)
    ]
    quotes = [random_source.choice(claim["top_evidence"]) | {"anchors_found": []}] if is_quoted else []
    row = draw_candidate(random_source, absent_rows)
    row.update(presence_level=level.value, confidence=0.9 if is_quoted else 0.8, top_evidence=quotes)
    if not is_primary:
        require_applicable(claim["segment_share"] > _MIN_DIVISIBLE_SHARE)
        move_share(claim, row, "segment_share", random_source.uniform(0.15, 0.3))
    recompute_totals_and_check_type(mutated_answer)


def _plant_low_confidence(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    _, claim = draw_quoted_claim(mutated_answer, random_source)
    claim["confidence"] = round(random_source.uniform(0.02, 0.4), 2)


def _plant_elided_quote(mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str) -> None:
    """Add a sentence; quote it without the words that reverse its meaning."""
    segment, claim = draw_quoted_claim(mutated_answer, random_source)
    page_number = random_source.randint(segment["start_page"], segment["end_page"])
    require_applicable(mutated_answer.bundle.page(page_number).status.is_readable)
    sentence = draw_text(text_key, random_source)
    mutated_answer.bundle = add_block(mutated_answer.bundle, page_number, re.sub(r"[\[\]]", "", sentence))
    _replace_quote(claim, re.sub(r"\s*\[.*?\]\s*", " … ", sentence).strip(" …"), page_number, random_source)


def _plant_altered_quote(mutated_answer: MutatedAnswer, random_source: RandomSource, *, kind: str) -> None:
    segment, claim = draw_quoted_claim(mutated_answer, random_source)
    altered_quote = mutated_answer.clean_answer.quotable_text.draw_altered_quote(
        kind, segment["start_page"], segment["end_page"], random_source
    )
    if altered_quote is None:
        raise FaultNotApplicableError
    _replace_quote(claim, altered_quote.text, altered_quote.page, random_source)


def _plant_invented_quote(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    segment, claim = draw_quoted_claim(mutated_answer, random_source)
    page_number = random_source.randint(segment["start_page"], segment["end_page"])
    _replace_quote(claim, draw_text("invented_quotes", random_source), page_number, random_source)


def _replace_quote(claim: Json, text: str, page_number: int, random_source: RandomSource) -> None:
    quote_index = random_source.randrange(len(claim["top_evidence"]))
    claim["top_evidence"][quote_index] = {"snippet": text, "page": page_number, "anchors_found": []}


def _plant_moved_quote(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """Move a quote to a page of the same segment that does not contain it."""
    moves = [
        (quote, page.page_num)
        for segment in mutated_answer.segments
        for row in segment["segment_composition"]
        for quote in row["top_evidence"]
        for page in mutated_answer.bundle.iter_pages(segment["start_page"], segment["end_page"])
        if page.page_num != quote["page"]
        and page.status.is_readable
        and normalise_quote(quote["snippet"]) not in _normalise_text_of_page_and_next(mutated_answer, page)
    ]
    quote, page = draw_candidate(random_source, moves)
    quote.update(page=page, anchors_found=[])


def _normalise_text_of_page_and_next(mutated_answer: MutatedAnswer, page: Page) -> str:
    """Normalise the text of a page and the next, where a quote may continue."""
    return normalise_quote(
        "".join(nearby_page.text for nearby_page in mutated_answer.bundle.iter_pages(page.page_num, page.page_num + 1))
    )


def _plant_quote_of_other_segment(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    quoted_claims = list_quoted_claims(mutated_answer)
    require_applicable(len(quoted_claims) > 1)
    (_, claim), (_, other_claim) = random_source.sample(quoted_claims, 2)
    claim["top_evidence"][0] = random_source.choice(other_claim["top_evidence"])


def _plant_quote_outside_file(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    _, claim = draw_quoted_claim(mutated_answer, random_source)
    random_source.choice(claim["top_evidence"])["page"] = random_source.choice(
        (0, mutated_answer.bundle.total_pages + random_source.randint(1, 4))
    )


def _plant_invented_anchor(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    _, claim = draw_quoted_claim(mutated_answer, random_source)
    quote = random_source.choice(claim["top_evidence"])
    anchor = draw_text("anchors", random_source)
    quote["anchors_found"].append(anchor)
    require_applicable(normalise_quote(anchor) not in normalise_quote(mutated_answer.bundle.page(quote["page"]).text))


def _plant_replaced_evidence(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, is_furniture: bool = False
) -> None:
    """Replace a type's evidence by one quote of a line that is added to the page."""
    segment, claim = draw_quoted_claim(mutated_answer, random_source)
    page_number = random_source.randint(segment["start_page"], segment["end_page"])
    text = draw_text(text_key, random_source)
    require_applicable(mutated_answer.bundle.page(page_number).status.is_readable)
    mutated_answer.bundle = add_block(
        mutated_answer.bundle, page_number, text, is_first=is_furniture, is_furniture=is_furniture
    )
    claim.update(top_evidence=[{"snippet": text, "page": page_number, "anchors_found": []}], confidence=0.9)


def _plant_routine_vendor(mutated_answer: MutatedAnswer, random_source: RandomSource) -> None:
    """List a routine laboratory among the vendors of a file with a genomic report."""
    require_applicable(any(segment["dominant_type"] == _GENOMIC_TYPE for segment in mutated_answer.segments))
    mutated_answer.answer_json["vendor_signals"].append(random_source.choice(load_fault_texts()["vendors"]))


def _plant_first_line(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, segment_types: Sequence[str]
) -> None:
    """Insert a line (letterhead, order form) at the top of a segment of a given type."""
    segments = [segment for segment in mutated_answer.segments if segment["dominant_type"] in segment_types]
    page_number = draw_candidate(random_source, segments)["start_page"]
    mutated_answer.bundle = add_block(
        mutated_answer.bundle, page_number, draw_text(text_key, random_source), is_first=True
    )


def _plant_mislabelled_page(
    mutated_answer: MutatedAnswer, random_source: RandomSource, *, text_key: str, claimable_types: Sequence[str]
) -> None:
    """Append a page and claim it as a document of a type that it is not."""
    page_template: Mapping[str, Any] = random_source.choice(load_fault_texts()[text_key])
    page_number, paragraphs = append_page(mutated_answer, page_template["page"], random_source)
    quotable_lines = [line for line in paragraphs if MIN_SNIPPET_WORDS <= len(line.split()) <= 40]
    claimed_type = random_source.choice(
        [type_name for type_name in claimable_types if type_name in page_template.get("as", claimable_types)]
    )
    evidence = tuple(
        Evidence(snippet=line, page=page_number)
        for line in random_source.sample(quotable_lines, min(2, len(quotable_lines)))
    )
    mutated_answer.segments.append(_build_segment(claimed_type, page_number, evidence).model_dump(mode="json"))
    recompute_totals_and_check_type(mutated_answer)


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
    text = draw_text(text_key, random_source)
    mutated_answer.bundle = add_block(
        mutated_answer.bundle, random_source.choice(readable_pages), text, is_hidden=is_hidden
    )


# fmt: off
EVIDENCE_FAULTS: tuple[MutationOperator, ...] = (
    MutationOperator("evidence-none", "a type has high confidence but no quote", ("V1", "V4"), "structural", _plant_no_evidence),
    MutationOperator("presence-no-evidence", "a second type is PRIMARY, without a quote", ("V1", "V4"), "structural", partial(_plant_invented_presence, level=PresenceLevel.PRIMARY, is_quoted=False)),
    MutationOperator("presence-raw", "an invented EMBEDDED_RAW with a share, without a quote", ("V4-PRESENCE-UNSUPPORTED",), "structural", partial(_plant_invented_presence, level=PresenceLevel.EMBEDDED_RAW, is_quoted=False)),
    MutationOperator("presence-mention", "an invented MENTION_ONLY with a share, without a quote", ("V4-PRESENCE-UNSUPPORTED",), "structural", partial(_plant_invented_presence, level=PresenceLevel.MENTION_ONLY, is_quoted=False)),
    MutationOperator("unsure", "a type is PRIMARY at a confidence below the floor", ("V2-UNSURE",), "structural", _plant_low_confidence),
    MutationOperator("evidence-outside-file", "evidence on a page that does not exist", ("V4",), "structural", _plant_quote_outside_file),
    MutationOperator("evidence-outside-segment", "evidence from another segment", ("V4",), "structural", _plant_quote_of_other_segment),
    MutationOperator("quote-invented", "a quote that appears nowhere", ("V4",), "structural", _plant_invented_quote),
    MutationOperator("quote-moved", "a quote claimed for another page", ("V4",), "quote", _plant_moved_quote),
    MutationOperator("anchor-invented", "an anchor that is not on the page", ("V4",), "quote", _plant_invented_anchor),
    *(MutationOperator(f"quote-{kind}", f"a quote altered: {row['description']}", ("V4",), "quote", partial(_plant_altered_quote, kind=kind)) for kind, row in load_quote_faults().items()),
    *(MutationOperator(f"quote-elided-{kind}", f"a quote with an ellipsis that hides a {kind}", ("V4-QUOTE",), "quote", partial(_plant_elided_quote, text_key=f"elided_{kind}")) for kind in ("negation", "hedge", "history", "question")),
    MutationOperator("presence-strange", "a second type is PRIMARY, with a quote of the first", ("V2", "V4"), "semantic", partial(_plant_invented_presence, level=PresenceLevel.PRIMARY, is_quoted=True)),
    MutationOperator("presence-raw-strange", "an invented EMBEDDED_RAW, with a quote of another type", ("V4-PRESENCE-UNSUPPORTED",), "semantic", partial(_plant_invented_presence, level=PresenceLevel.EMBEDDED_RAW, is_quoted=True)),
    MutationOperator("presence-mention-strange", "an invented MENTION_ONLY, with a quote of another type", ("V4-PRESENCE-UNSUPPORTED",), "semantic", partial(_plant_invented_presence, level=PresenceLevel.MENTION_ONLY, is_quoted=True)),
    MutationOperator("evidence-reference", "the only evidence is a reference to another document", ("V4",), "semantic", partial(_plant_replaced_evidence, text_key="references")),
    MutationOperator("evidence-courtesy", "the only evidence could appear in any document", ("V4",), "semantic", partial(_plant_replaced_evidence, text_key="courtesies")),
    MutationOperator("evidence-header", "the only evidence is the header of the page", ("V3", "V4"), "semantic", partial(_plant_replaced_evidence, text_key="headers", is_furniture=True)),
    MutationOperator("trap-vendor", "a routine laboratory listed as vendor of a genomic report", ("V3",), "structural", _plant_routine_vendor),
    MutationOperator("trap-letterhead", "a routine laboratory's letterhead, not listed as vendor", ("V3",), "semantic", partial(_plant_first_line, text_key="letterheads", segment_types=(_GENOMIC_TYPE,))),
    MutationOperator("trap-keyword", "administrative words on a page claimed as a report", ("V3",), "structural", partial(_plant_first_line, text_key="administrative_lines", segment_types=_REPORT_TYPE_NAMES)),
    MutationOperator("trap-form", "a form, order or cover sheet claimed as a report", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="forms", claimable_types=_REPORT_TYPE_NAMES)),
    MutationOperator("trap-panel", "a routine panel claimed as a genomic report", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="panels", claimable_types=(_GENOMIC_TYPE,))),
    MutationOperator("trap-boilerplate", "a laboratory's text about its method claimed as a result", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="boilerplates", claimable_types=(_GENOMIC_TYPE,))),
    MutationOperator("trap-quoted", "a report quoted in a note or letter claimed as the report", ("V2", "V3", "V4"), "semantic", partial(_plant_mislabelled_page, text_key="quoting_notes", claimable_types=_REPORT_TYPE_NAMES)),
    MutationOperator("instruction", "instructions to a model in the page's text", ("READER-ADDRESSED-TEXT",), "semantic", partial(_plant_extra_text, text_key="instructions", is_hidden=False)),
    MutationOperator("instruction-hidden", "instructions to a model in hidden text", ("READER-ADDRESSED-TEXT",), "semantic", partial(_plant_extra_text, text_key="instructions", is_hidden=True)),
    MutationOperator("text-hidden", "hidden text that contradicts the page", ("V3",), "semantic", partial(_plant_extra_text, text_key="hidden_reports", is_hidden=True)),
)
# fmt: on


#: All fault kinds, in the order of the report's rows.
FAULTS: tuple[MutationOperator, ...] = (*STRUCTURE_FAULTS, *LABEL_FAULTS, *EVIDENCE_FAULTS)
FAULT_BY_ID: Mapping[str, MutationOperator] = {fault.fault_id: fault for fault in FAULTS}
