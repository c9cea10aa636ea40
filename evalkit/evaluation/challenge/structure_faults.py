"""Fault kinds: inconsistent counts, pages, shares and types.

Arithmetic can detect all of these faults.
"""

from __future__ import annotations

from functools import partial

from evalkit.classification.schema import (
    PresenceLevel,
)
from evalkit.evaluation.challenge.mutated_answer import (
    ABSENT,
    PRIMARY,
    TYPE_NAMES,
    Json,
    MutatedAnswer,
    MutationOperator,
    RandomSource,
    draw_candidate,
    drop_evidence_of_other_pages,
    find_dominant_row,
    move_share,
    recompute_totals_and_check_type,
    require_applicable,
)


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
