"""Parsing of a supplied classification, which may lack its counts and mixture.

The checks can compute these.
"""

from collections.abc import Iterator
from typing import Any

from evalkit.classification.schema import ClassificationOutput
from evalkit.llm.answer_normalisation import build_full_json_schema, normalise_answer
from evalkit.llm.answer_text import NormalisedAnswer

#: Required fields that may be left out: V1 raises issues for them, and the repair table repairs them.
_COMPUTABLE_FIELDS = ("number_of_segments", "segment_index", "segment_page_count", "document_mixture")


def normalise_classification(
    answer: Any, answer_type: type[ClassificationOutput] = ClassificationOutput
) -> NormalisedAnswer:
    """Normalise a classification, given as text or JSON value, without guessing.

    Missing counts become 0, and a missing mixture an empty list. Without numbers, the segments are numbered from 1.
    AnswerTextError if a text is not one JSON value; AnswerShapeError if the answer contradicts itself or has another
    shape.
    """
    normalised, changes = normalise_answer(
        answer, build_full_json_schema(answer_type), may_be_missing=_COMPUTABLE_FIELDS
    )
    segments = normalised["segments"]
    are_unnumbered = not any("segment_index" in segment for segment in segments)
    additions = [
        *_add_missing(normalised, {"number_of_segments": 0, "document_mixture": []}, ""),
        *(
            addition
            for index, segment in enumerate(segments, 1)
            for addition in _add_missing(
                segment,
                {**({"segment_index": index} if are_unnumbered else {}), "segment_page_count": 0},
                "segments[].",
            )
        ),
    ]
    return NormalisedAnswer(normalised, tuple(dict.fromkeys((*changes, *additions))))


def _add_missing(fields: dict[str, Any], defaults: dict[str, Any], place: str) -> Iterator[str]:
    for name in defaults.keys() - fields.keys():
        fields[name] = defaults[name]
        yield f"{place}{name}: missing, left to the checks"
