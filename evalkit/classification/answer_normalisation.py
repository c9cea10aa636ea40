"""Lossless normalisation of a JSON answer to the shape of its pydantic model.

The same rules apply to supplied classifications and to language models' answers (contract, ruling 23): wrappers are
removed, and other spellings of keys and enum values, numbers as text and lists of one member are read. Every change is
listed. ``answer_spellings.toml`` has the other spellings of keys. A value that could only be read by a guess stays
as it is, so that pydantic refuses it, or raises :class:`AnswerShapeError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from evalkit.classification.schema import ClassificationOutput, Segment
from evalkit.core.package_tables import load_package_table
from evalkit.llm.answer_text import AnswerTextError, NormalisedAnswer, dump_for_comparison, extract_answer_json
from evalkit.llm.model import AnswerShapeError

_NUMBER_PATTERN = re.compile(
    r"([+-]?(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})(?:[eE][+-]?[0-9])?)\s*(%|percent)?", re.I
)
_COMMA_DECIMAL_PATTERN = re.compile(r"0,[0-9]+|1,00?")
_INTEGER_PATTERN = re.compile(
    r"(?:#|(?:pages?|pg|p|segment|seg|number)(?:[._:#]?\s*|[-_]))?(?P<digits>[0-9]{1,15})(?:\.0*)?"
    r"|(?P<signed>[+-][0-9]{1,15})(?:\.0*)?",
    re.IGNORECASE,
)
_PAGE_RANGE_PATTERN = re.compile(r"(?:pages?|pp?\.?)?\s*([0-9]{1,9})\s*(?:-|–|—|to|through)\s*([0-9]{1,9})", re.I)
_WORD_SEPARATORS_PATTERN = re.compile(r"[\s_\-‐‑–.'\"`*]+")
_MAX_INTEGRAL_FLOAT = 2**53
_MAX_WRAPPERS = 6
_NULL_WORDS = ("null", "none")
_UNION_ORIGINS = (Union, UnionType)


def normalise_answer(answer: Any, answer_type: type[BaseModel]) -> NormalisedAnswer:
    """Normalise an answer to ``answer_type``'s shape, without guessing.

    ``answer`` is a text or a JSON value. The result holds the JSON value and the list of changes. It is not validated:
    pydantic must still refuse a wrong shape.

    AnswerTextError if a text is not one JSON value; AnswerShapeError if the answer contradicts itself.
    """
    normaliser = _Normaliser()
    try:
        json_value, text_changes = (
            extract_answer_json(answer)
            if isinstance(answer, str)
            else (json.loads(json.dumps(answer, allow_nan=False)), ())
        )
        normalised = normaliser.normalise(normaliser.unwrap(json_value, answer_type), answer_type, "")
    except (AnswerTextError, AnswerShapeError):
        raise
    except (TypeError, ValueError, RecursionError):
        raise AnswerShapeError("it contains values that JSON cannot represent") from None
    if issubclass(answer_type, ClassificationOutput) and isinstance(normalised, dict):
        normalised = normaliser.add_zero_for_missing_counts(normalised)
    return NormalisedAnswer(normalised, tuple(dict.fromkeys((*text_changes, *normaliser.changes))))


class _Normaliser:
    """Normaliser of one answer, which collects the changes.

    ``changes`` name places without list positions (``segments[].start_page``), so that equal changes are listed once.
    """

    def __init__(self) -> None:
        self.changes: list[str] = []

    def unwrap(self, json_value: Any, answer_type: type[BaseModel]) -> Any:
        """Return the answer object without the wrapper around it.

        A bare list becomes ``{field: list}`` if the model has only that list. AnswerShapeError if there are several answers.
        """
        fields = answer_type.model_fields
        marker = next(name for name, field in fields.items() if field.is_required() and _is_list(field.annotation))
        if isinstance(json_value, list) and _is_only_list(fields[marker], answer_type):
            self.changes.append(f"a bare list read as {marker}")
            return {marker: json_value}
        answers = {
            dump_for_comparison(answer): answer
            for answer in _find_wrapped_answers(json_value, answer_type, marker, _MAX_WRAPPERS)
        }
        if len(answers) > 1:
            raise AnswerShapeError("it contains several different answers")
        if not answers or json_value in answers.values():
            return json_value
        self.changes.append("a wrapper around the answer left out")
        return next(iter(answers.values()))

    def normalise(self, json_value: Any, annotation: Any, location: str) -> Any:
        """Convert a value to its annotation's type; leave it unchanged if unclear."""
        if _is_list(annotation):
            return self._normalise_list(json_value, get_args(annotation)[0], location)
        alternatives = [kind for kind in get_args(annotation) if kind is not type(None)]
        if get_origin(annotation) in _UNION_ORIGINS:
            if json_value is None or len(alternatives) > 1:
                return json_value
            (annotation,) = alternatives
            if annotation is not str and str(json_value).strip().lower() in _NULL_WORDS:
                return self._note_change(None, location, "a word for null read as null")
        if isinstance(json_value, list) and len(json_value) == 1:
            json_value = self._note_change(json_value[0], location, "a list of one read as its only member")
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return self._normalise_object(json_value, annotation, location)
        if words := _list_enum_values(annotation):
            return self._normalise_enum_value(json_value, annotation, words, location)
        normalise_number = {int: self._normalise_integer, float: self._normalise_float}.get(annotation)
        return normalise_number(json_value, location) if normalise_number else json_value

    def add_zero_for_missing_counts(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Add 0 for missing counts and an empty list for a missing mixture.

        If no segment has a number, the segments are numbered from 1. V1 raises issues for the zeros, and the repair table
        repairs them.
        """
        segments = answer.get("segments")
        if not isinstance(segments, list) or not all(isinstance(segment, dict) for segment in segments):
            return answer
        are_unnumbered = all(segment.get("segment_index") is None for segment in segments)
        numbered_segments = []
        for index, segment in enumerate(segments, 1):
            missing_fields: dict[str, Any] = {"segment_index": index} if are_unnumbered else {}
            if segment.get("segment_page_count") is None:
                missing_fields["segment_page_count"] = 0
            self._note_missing(missing_fields, "segments[].")
            numbered_segments.append({**segment, **missing_fields})
        countable_parts: dict[str, Any] = {"number_of_segments": 0, "document_mixture": []}
        missing_parts = {name: default for name, default in countable_parts.items() if answer.get(name) is None}
        self._note_missing(missing_parts, "")
        return {**answer, **missing_parts, "segments": numbered_segments}

    def _note_missing(self, missing_fields: Mapping[str, Any], location: str) -> None:
        self.changes += [f"{location}{name}: missing, left to the checks" for name in missing_fields]

    def _note_change(self, json_value: Any, place: str, change: str) -> Any:
        self.changes.append(f"{place or 'answer'}: {change}")
        return json_value

    def _normalise_list(self, json_value: Any, member_type: Any, place: str) -> Any:
        member_place = f"{place}[]"
        json_value = self._read_json_text(json_value, place)
        if isinstance(json_value, str) and member_type is str:
            members = [json_value] if json_value.strip() else []
            return self._note_change(members, place, "text read as a list of one")
        if isinstance(json_value, dict) and isinstance(member_type, type) and issubclass(member_type, BaseModel):
            members = _convert_keyed_object_to_list(json_value, member_type)
            json_value = (
                members if members is json_value else self._note_change(members, place, "an object read as a list")
            )
        if not isinstance(json_value, list):
            return json_value
        return [self.normalise(member, member_type, member_place) for member in json_value]

    def _normalise_object(self, json_value: Any, model: type[BaseModel], place: str) -> Any:
        json_value = self._read_json_text(json_value, place)
        if not isinstance(json_value, dict):
            return json_value
        name_by_key = _map_keys_to_fields(model)
        normalised: dict[str, Any] = {}
        prefix = f"{place}." if place else ""
        for key, member in self._split_page_range(json_value, model, prefix):
            name = key if key in model.model_fields else name_by_key.get(_squash_key(key))
            if name is None:
                self._note_change(None, place, "an extra key left out")
                continue
            field = model.model_fields[name]
            if name != key:
                self.changes.append(f"{prefix}{name}: another spelling of the key read")
            if member is None and not field.is_required() and field.get_default() is not None:
                self.changes.append(f"{prefix}{name}: null read as left out")
                continue
            listed_member = (
                self._note_change([], f"{prefix}{name}", "null read as an empty list")
                if member is None and _is_only_list(field, model)
                else self._wrap_lone_object_in_list(member, field, f"{prefix}{name}")
            )
            normalised_member = self.normalise(listed_member, field.annotation, f"{prefix}{name}")
            if name in normalised and dump_for_comparison(normalised[name]) != dump_for_comparison(normalised_member):
                raise AnswerShapeError(f"{prefix}{name} appears twice with different values")
            normalised[name] = normalised_member
        return normalised

    def _split_page_range(
        self, fields: dict[str, Any], model: type[BaseModel], prefix: str
    ) -> Iterator[tuple[str, Any]]:
        """Yield keys and values; replace a page range by start_page and end_page."""
        has_range = {"start_page", "end_page"} <= model.model_fields.keys()
        for key, member in fields.items():
            range_key = _squash_key(key)
            is_range_key = has_range and range_key in _load_spellings()["page_range"]["keys"]
            pages = _parse_page_range(member, is_called_range="range" in range_key) if is_range_key else None
            if pages is None:
                yield key, member
            else:
                self.changes.append(f"{prefix}start_page: a range of pages read")
                yield from zip(("start_page", "end_page"), pages, strict=True)

    def _wrap_lone_object_in_list(self, member: Any, field: FieldInfo, place: str) -> Any:
        """Wrap an object in a list if the field is an optional list."""
        if not isinstance(member, dict) or not _is_list(field.annotation) or field.is_required():
            return member
        return self._note_change([member] if member else [], place, "an object read as a list of one")

    def _read_json_text(self, json_value: Any, place: str) -> Any:
        if not isinstance(json_value, str) or not json_value.lstrip().startswith(("{", "[")):
            return json_value
        try:
            inner_value, _ = extract_answer_json(json_value)
        except AnswerTextError:
            return json_value
        return self._note_change(inner_value, place, "JSON written as text in JSON read")

    def _normalise_enum_value(self, json_value: Any, annotation: Any, words: Sequence[str], place: str) -> Any:
        if not isinstance(json_value, str) or json_value in words:
            return json_value
        squashed_word = _squash_word(json_value)
        class_name = getattr(annotation, "__name__", "").lower()
        matching_words = [
            word for word in words if squashed_word in (_squash_word(word), class_name + _squash_word(word))
        ]
        if len(matching_words) != 1:
            return json_value
        return self._note_change(matching_words[0], place, "another case or spacing read")

    def _normalise_integer(self, json_value: Any, place: str) -> Any:
        if isinstance(json_value, float) and json_value.is_integer() and abs(json_value) < _MAX_INTEGRAL_FLOAT:
            return self._note_change(int(json_value), place, "a number with a decimal point read as a whole one")
        if isinstance(json_value, str) and (match := _INTEGER_PATTERN.fullmatch(json_value.strip())):
            return self._note_change(int(match["digits"] or match["signed"]), place, "text read as a number")
        return json_value

    def _normalise_float(self, json_value: Any, place: str) -> Any:
        if not isinstance(json_value, str):
            return json_value
        text = json_value.strip()
        if _COMMA_DECIMAL_PATTERN.fullmatch(text.removesuffix("%").strip()):
            text = text.replace(",", ".")
        match = _NUMBER_PATTERN.fullmatch(text)
        if match is None:
            return json_value
        number = Decimal(match[1])
        if not match[2]:
            return self._note_change(float(number), place, "text read as a number")
        if not 0 <= number <= 100:
            return json_value
        return self._note_change(float(number / 100), place, "per cent read as a number")


def _find_wrapped_answers(
    json_value: Any, answer_type: type[BaseModel], marker: str, depth: int
) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects that have a key for the field ``marker``.

    Looks ``depth`` levels deep, also into JSON in texts. AnswerShapeError if an object around an answer has fields of
    the answer too.
    """
    name_by_key = _map_keys_to_fields(answer_type)
    if isinstance(json_value, dict):
        names = {name_by_key.get(_squash_key(key)) for key in json_value}
        if marker in names:
            yield json_value
            return
        members: Sequence[Any] = list(json_value.values())
        is_partial_answer = bool(names - {None})
    elif isinstance(json_value, list):
        members, is_partial_answer = json_value, False
    elif isinstance(json_value, str) and marker in json_value:
        try:
            members, is_partial_answer = [extract_answer_json(json_value).json_value], False
        except AnswerTextError:
            return
    else:
        return
    if depth == 0:
        return
    for member in members:
        for answer in _find_wrapped_answers(member, answer_type, marker, depth - 1):
            if is_partial_answer:
                raise AnswerShapeError("it contains an answer inside of another answer")
            yield answer


def _convert_keyed_object_to_list(members_by_key: dict[str, Any], member_type: type[BaseModel]) -> Any:
    """Convert an object whose keys are types or numbers to a list of its values.

    The key becomes a field of each value. Any other object is returned unchanged.
    """
    key_name = next((name for name in ("document_type", "segment_index") if name in member_type.model_fields), None)
    if not (key_name and members_by_key and all(isinstance(member, dict) for member in members_by_key.values())):
        return members_by_key
    key_type = member_type.model_fields[key_name].annotation
    keys = [_Normaliser().normalise(key, key_type, "") for key in members_by_key]
    if not all(type(key) is int or key in _list_enum_values(key_type) for key in keys):
        return members_by_key
    keyed_members = list(zip(keys, members_by_key.values(), strict=True))
    if key_type is int:
        keyed_members.sort(key=lambda keyed_member: keyed_member[0])
    return [_add_key(key_name, key, member, member_type) for key, member in keyed_members]


def _add_key(key_name: str, key: Any, member: dict[str, Any], member_type: type[BaseModel]) -> dict[str, Any]:
    """Return the member with its key as the field ``key_name``.

    If the member has that field already, the field wins over a number; AnswerShapeError if it names another type than the key.
    """
    own_key = _Normaliser().normalise(member, member_type, "").get(key_name, key)
    if own_key != key and isinstance(key, str):
        raise AnswerShapeError(f"{key_name} appears twice with different values")
    return {**member, key_name: own_key}


def _parse_page_range(pages: Any, *, is_called_range: bool) -> tuple[Any, Any] | None:
    """Read ``1-5`` or ``[1, 2, 3]`` as first and last page; None if unclear.

    ``[1, 5]`` and a single number are read only if the key calls them a range (``is_called_range``).
    """
    if isinstance(pages, str) and (match := _PAGE_RANGE_PATTERN.fullmatch(pages.strip())):
        return int(match[1]), int(match[2])
    if isinstance(pages, dict):
        ends = {_map_keys_to_fields(Segment).get(_squash_key(key)): end for key, end in pages.items()}
        return (ends["start_page"], ends["end_page"]) if ends.keys() == {"start_page", "end_page"} else None
    if isinstance(pages, list) and pages and all(type(page) is int for page in pages):
        first, last = pages[0], pages[-1]
        is_pair = len(pages) == 2 and (first == last or is_called_range)
        return (first, last) if is_pair or pages == list(range(first, first + len(pages))) else None
    return (pages, pages) if is_called_range and isinstance(pages, str | int) else None


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is tuple


def _is_only_list(field: FieldInfo, model: type[BaseModel]) -> bool:
    """Return True if the field is a list and the model's only field.

    Then a bare list can be read as the whole answer, and null as an empty list.
    """
    return _is_list(field.annotation) and len(model.model_fields) == 1


def _list_enum_values(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(member.value for member in annotation)
    return ()


def _squash_word(word: str) -> str:
    return _WORD_SEPARATORS_PATTERN.sub("", word).lower()


def _squash_key(key: str) -> str:
    return re.sub(r"[\W_]+", "", key).lower()


@cache
def _map_keys_to_fields(model: type[BaseModel]) -> dict[str, str]:
    """Map each spelling of a key, in lower case without separators, to its field.

    A field's own name wins over another field's spelling.
    """
    spellings = _load_spellings()
    other_names = {
        _squash_key(other_name): name
        for ancestor in model.__mro__
        for name, names in spellings.get(ancestor.__name__, {}).items()
        for other_name in names
        if name in model.model_fields
    }
    return other_names | {_squash_key(name): name for name in model.model_fields}


#: Load other spellings of the answer's keys and values; cached.
_load_spellings = partial(load_package_table, "evalkit.classification", "answer_spellings.toml")
