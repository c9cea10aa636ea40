"""Define right answers with JSON schemas, and tools to write their shapes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Json = dict[str, Any]
Path = tuple[str | int, ...]


class RightAnswer(NamedTuple):
    """An answer as the schema wants it."""

    name: str
    answer: Json
    schema: Json


@dataclass(frozen=True)
class AnswerShape:
    """A way to write an answer, and what is right to do with such a text."""

    name: str
    write: Callable[[Json, Json], str]
    """Return the text that a server sends, from the right answer and its JSON schema."""
    verdict: Literal["lossless", "named"]
    """``lossless``: accept as the same answer. ``named``: refuse with a reason that names what is wrong."""
    level: Literal["text", "schema"]
    """``text``: the text alone tells what is right. ``schema``: only the schema does."""
    reason: str = ""
    """Regular expression of which a reason must have a match, case ignored; for ``named`` only."""


class Pairs(list[tuple[str, Any]]):
    """An object as a list of keys and values, in which a key may occur twice."""


def dump_pretty(tree: Any, *, quote: Callable[[str], str] | None = None, indent: str = "  ", depth: int = 0) -> str:
    """Write a JSON tree line by line, quoting by choice; objects may be ``Pairs``."""
    quote_string = quote or dump_string
    inner, outer = "\n" + indent * (depth + 1), "\n" + indent * depth
    if isinstance(tree, dict):
        tree = Pairs(tree.items())
    if isinstance(tree, Pairs):
        members = [f"{quote_string(k)}: {dump_pretty(v, quote=quote, indent=indent, depth=depth + 1)}" for k, v in tree]
        return "{" + inner + ("," + inner).join(members) + outer + "}" if members else "{}"
    if isinstance(tree, list):
        items = [dump_pretty(element, quote=quote, indent=indent, depth=depth + 1) for element in tree]
        return "[" + inner + ("," + inner).join(items) + outer + "]" if items else "[]"
    return quote_string(tree) if isinstance(tree, str) else json.dumps(tree)


def dump_string(text: str) -> str:
    """Write a string as JSON does, letters of other alphabets as they are."""
    return json.dumps(text, ensure_ascii=False)


def resolve_schema(schema: Json, path: Sequence[str | int]) -> Json:
    """Return the schema of what lies at a path of the answer."""
    for step in path:
        schema = schema["items"] if isinstance(step, int) else schema["properties"][step]
    return schema


def iterate_paths(tree: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every element of an answer, outer ones first."""
    yield path
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, element in members:
        yield from iterate_paths(element, (*path, step))


def get_element(answer: Json, path: Path) -> Any:
    """Return what lies at a path of an answer."""
    element: Any = answer
    for step in path:
        element = element[step]
    return element


def replace_element(answer: Json, path: Path, element: Any) -> Json:
    """Return a copy of an answer with another element at a path."""
    changed: Json = copy.deepcopy(answer)
    get_element(changed, path[:-1])[path[-1]] = element
    return changed


def find_path(answer: Json, schema: Json, matches: Callable[[Any, Mapping[str, Any]], bool]) -> Path:
    """Return the path of the last element that matches together with its schema."""
    paths = [path for path in iterate_paths(answer) if path]
    return [path for path in paths if matches(get_element(answer, path), resolve_schema(schema, path))][-1]


def find_fraction(answer: Json, schema: Json) -> Path:
    """Return the path of a number between 0 and 1."""
    return find_path(answer, schema, lambda _, rules: rules.get("type") == "number" and rules.get("maximum") == 1)


def find_integer(answer: Json, schema: Json) -> Path:
    """Return the path of an integer."""
    return find_path(answer, schema, lambda _, rules: rules.get("type") == "integer")


def find_boolean(answer: Json, schema: Json) -> Path:
    """Return the path of a truth value."""
    return find_path(answer, schema, lambda _, rules: rules.get("type") == "boolean")


def find_enum(answer: Json, schema: Json) -> Path:
    """Return the path of a string out of a list of two or more words each."""
    return find_path(answer, schema, lambda element, rules: "enum" in rules and " " in element)


def find_empty_list(answer: Json, schema: Json) -> Path:
    """Return the path of an empty list."""
    return find_path(answer, schema, lambda element, _: element == [])


def find_string_list(answer: Json, schema: Json) -> Path:
    """Return the path of a list of two or more strings."""
    return find_path(
        answer,
        schema,
        lambda element, rules: (
            rules.get("type") == "array" and len(element) > 1 and all(isinstance(part, str) for part in element)
        ),
    )


def find_object(answer: Json, schema: Json) -> Path:
    """Return the path of an object inside an object."""
    return [path for path in iterate_paths(answer) if path and _is_key_of_object(answer, path)][-1]


def _is_key_of_object(answer: Json, path: Path) -> bool:
    return isinstance(path[-1], str) and isinstance(get_element(answer, path), dict)


def get_absent_key(answer: Json, schema: Json) -> str:
    """Return the name of an optional key that the answer does not have."""
    names: list[str] = [key for key in schema["properties"] if key not in answer and key not in schema["required"]]
    return names[0]


def _object(optional: Sequence[str] = (), **properties: Json) -> Json:
    required = [key for key in properties if key not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


_STRING: Json = {"type": "string"}
_PAGE: Json = {"type": "integer", "minimum": 1}
_FRACTION: Json = {"type": "number", "minimum": 0, "maximum": 1}
_BOOLEAN: Json = {"type": "boolean"}
_TYPE: Json = {
    "type": "string",
    "enum": ["Pathology Report", "Genomic Report", "Radiology Report", "Clinical Note", "Other"],
}
_LOCATION = _object(page=_PAGE, paragraph=_PAGE, first_words=_STRING, last_words=_STRING)

CLASSIFICATION = RightAnswer(
    "classification",
    {
        "notes": 'Page 1 has the title "SURGICAL PATHOLOGY"; see {letterhead} and https://lab.example/report.\nPage 3: note.',
        "ranges": [
            {
                "start_page": 1,
                "end_page": 2,
                "document_type": "Pathology Report",
                "confidence": 0.92,
                "location": {"page": 2, "paragraph": 4, "first_words": "The patient's", "last_words": "grade 2."},
            },
            {
                "start_page": 3,
                "end_page": 3,
                "document_type": "Clinical Note",
                "confidence": 0.81,
                "location": {"page": 3, "paragraph": 12, "first_words": "Seen today", "last_words": "in 2 weeks"},
            },
        ],
        "is_complete": True,
        "vendor_signals": ["Harbor View & Sons", "Cascade Molecular"],
        "doubts": [],
    },
    _object(
        ("self_evaluation",),
        notes=_STRING,
        ranges=_list(
            _object(start_page=_PAGE, end_page=_PAGE, document_type=_TYPE, confidence=_FRACTION, location=_LOCATION)
        ),
        is_complete=_BOOLEAN,
        vendor_signals=_list(_STRING),
        doubts=_list(_STRING),
        self_evaluation=_STRING,
    ),
)
VERIFICATION = RightAnswer(
    "verification",
    {
        "summary": 'The quote isn\'t about this patient; "no [malignancy]" was cut, size < 5 mm.\n\tSee page 4.',
        "findings": [
            {
                "severity_level": "must be fixed",
                "page_number": 4,
                "weight": 0.35,
                "claim": {"quote_words": 'negative for "malignancy"', "is_on_page": False},
                "pages_checked": ["page 3", "page 4", "page 5"],
            }
        ],
        "agrees": False,
        "left_out": [],
    },
    _object(
        ("remark",),
        summary=_STRING,
        findings=_list(
            _object(
                severity_level={"type": "string", "enum": ["must be fixed", "should be fixed", "cosmetic"]},
                page_number=_PAGE,
                weight=_FRACTION,
                claim=_object(quote_words=_STRING, is_on_page=_BOOLEAN),
                pages_checked=_list(_STRING),
            )
        ),
        agrees=_BOOLEAN,
        left_out=_list(_STRING),
        remark=_STRING,
    ),
)
EXTRACTION = RightAnswer(
    "extraction",
    {
        "reasoning": "Size is given twice: 18 x 15 mm; the larger is used // per guideline. Größe: 18 mm – 'T1c'.",
        "largest_size": {"millimeters": 18, "source_page": 2, "raw_text": "18 x 15 mm"},
        "tumor_content": 0.4,
        "stage_status": "not stated",
        "is_amended": True,
        "genes_tested": ["EGFR", "TP53", "BRCA2"],
        "variants": [],
    },
    _object(
        ("comment",),
        reasoning=_STRING,
        largest_size=_object(millimeters={"type": "integer", "minimum": 0}, source_page=_PAGE, raw_text=_STRING),
        tumor_content=_FRACTION,
        stage_status={"type": "string", "enum": ["not stated", "stated once", "contradictory"]},
        is_amended=_BOOLEAN,
        genes_tested=_list(_STRING),
        variants=_list(_STRING),
        comment=_STRING,
    ),
)
RIGHT_ANSWERS = (CLASSIFICATION, VERIFICATION, EXTRACTION)
