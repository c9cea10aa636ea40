"""Lossless normalisation of a JSON answer to the shape of its JSON Schema.

The same rules apply to supplied classifications and to the answers of language models in every role (contract, ruling
23): wrappers are removed, and other spellings of keys and enum values, numbers as text and lists of one member are
read. Every change is listed. ``answer_spellings.toml`` has the other spellings of keys. What could only be read by a
guess is refused, with the name of the place and the expected form.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cache, partial
from typing import Any, NamedTuple, NoReturn

from pydantic import BaseModel

from evalkit.core.package_tables import load_package_table
from evalkit.document_types import cache_until_types_change
from evalkit.llm.answer_text import AnswerTextError, NormalisedAnswer, dump_for_comparison, extract_answer_json

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
#: A text that has one of these where a list is expected may hold one item or several.
_ITEM_SEPARATORS_PATTERN = re.compile(r"[,;|\n]|\s(?:and|&)\s", re.I)
_INDEX_PATTERN = re.compile(r"\[\d+\]")
_MAX_INTEGRAL_FLOAT = 2**53
_MAX_WRAPPERS = 6
_NULL_WORDS = ("null", "none")
#: Keys beside the answer with which a model says that it has failed; its empty lists then say nothing.
_FAILURE_KEYS = ("error", "errors", "errormessage", "failure", "refusal")
_BOOLEAN_WORDS = {"true": True, "yes": True, "false": False, "no": False}
#: Keys of an object that may hold its first and last page together: "1-5", [1, 2, 3].
_PAGE_RANGE_KEYS = ("pages", "pagerange", "pagenumbers")
_PAGE_RANGE_FIELDS = ("start_page", "end_page")
#: Fields that tell the members of a list apart: the first that a member has may be its key instead.
_MEMBER_KEYS = ("document_type", "segment_index", "field", "name")


class AnswerShapeError(ValueError):
    """Error for an answer that does not fit its schema; it quotes no text."""


@cache_until_types_change
def build_full_json_schema(answer_type: type[BaseModel]) -> Mapping[str, Any]:
    """Build the JSON Schema of a pydantic model, with its optional fields."""
    return answer_type.model_json_schema()


def normalise_answer(
    answer: Any, schema: Mapping[str, Any], *, may_be_missing: Collection[str] = ()
) -> NormalisedAnswer:
    """Normalise an answer to its schema, without guessing.

    ``answer`` is a text or a JSON value. The result holds the JSON value and the list of changes; limits of lengths and
    relations between fields are not checked. ``may_be_missing``: required fields that may be left out.

    AnswerTextError if a text is not one JSON value; AnswerShapeError if the answer contradicts itself or its schema.
    """
    normaliser = _Normaliser(schema, frozenset(may_be_missing))
    try:
        json_value, text_changes = (
            extract_answer_json(answer)
            if isinstance(answer, str)
            else (json.loads(json.dumps(answer, allow_nan=False)), ())
        )
        normalised = normaliser.normalise(normaliser.unwrap(json_value, schema), schema, "")
    except (AnswerTextError, AnswerShapeError):
        raise
    except (TypeError, ValueError, RecursionError):
        raise AnswerShapeError("it contains values that JSON cannot represent") from None
    return NormalisedAnswer(normalised, tuple(dict.fromkeys((*text_changes, *normaliser.changes))))


class _Rules(NamedTuple):
    """The rules for one value, with references resolved and null taken apart."""

    schema: Mapping[str, Any]
    is_nullable: bool = False

    @property
    def kind(self) -> Any:
        """The JSON type; None if any is allowed."""
        return self.schema.get("type")

    @property
    def words(self) -> Sequence[Any]:
        """The allowed values; empty if they are not listed."""
        return [word for word in self.schema.get("enum", [self.schema.get("const")]) if word is not None]

    @property
    def properties(self) -> Any:
        """The schemas of an object's fields; empty if they are not listed."""
        return self.schema.get("properties", {})


class _Normaliser:
    """Normaliser of one answer, which collects the changes.

    ``changes`` name places without list positions (``segments[].start_page``), so that equal changes are listed once.
    """

    def __init__(self, root_schema: Mapping[str, Any], may_be_missing: frozenset[str] = frozenset()) -> None:
        self.changes: list[str] = []
        self._has_remarks = False
        self._root_schema = root_schema
        self._may_be_missing = may_be_missing

    def unwrap(self, json_value: Any, schema: Mapping[str, Any]) -> Any:
        """Return the answer object without the wrapper around it.

        A bare list becomes ``{field: list}`` if the answer needs only that list. AnswerShapeError if there are several
        answers.
        """
        rules = self._resolve(schema)
        names = self._list_required_names(rules) or tuple(rules.properties)
        is_lone_list = len(names) == 1 and self._resolve(rules.properties[names[0]]).kind == "array"
        # An empty list says only of the one field that there is that it is empty.
        if isinstance(json_value, list) and is_lone_list and (json_value or len(rules.properties) == 1):
            self.changes.append(f"a bare list read as {names[0]}")
            return {names[0]: json_value}
        answers = {
            dump_for_comparison(answer): answer
            for answer in _find_wrapped_answers(json_value, tuple(rules.properties), frozenset(names), _MAX_WRAPPERS)
        }
        if len(answers) > 1:
            raise AnswerShapeError("it contains several different answers")
        self._has_remarks = _has_remarks(json_value, next(iter(answers), ""), tuple(rules.properties))
        if not answers or json_value in answers.values():
            return json_value
        self.changes.append("a wrapper around the answer left out")
        return next(iter(answers.values()))

    def normalise(self, json_value: Any, schema: Mapping[str, Any], place: str, *, is_required: bool = True) -> Any:
        """Convert a value to its schema's type. AnswerShapeError if that is unclear."""
        rules = self._resolve(schema)
        if rules.kind == "array":
            return self._normalise_list(json_value, rules, place, is_required=is_required)
        if rules.is_nullable and json_value is None:
            return None
        is_free_text = rules.kind == "string" and not rules.words
        if (
            rules.is_nullable
            and isinstance(json_value, str)
            and not is_free_text
            and json_value.strip().lower() in _NULL_WORDS
        ):
            return self._note_change(None, place, "a word for null read as null")
        if rules.kind and isinstance(json_value, list) and len(json_value) == 1:
            json_value = self._note_change(json_value[0], place, "a list of one read as its only member")
        if rules.words:
            return self._normalise_enum_value(json_value, rules, place)
        normalise_kind = {
            "object": self._normalise_object,
            "integer": self._normalise_integer,
            "number": self._normalise_float,
            "boolean": self._normalise_boolean,
            "string": self._normalise_text,
        }.get(rules.kind or "")
        return normalise_kind(json_value, rules, place) if normalise_kind else json_value

    def _resolve(self, schema: Mapping[str, Any]) -> _Rules:
        """Follow references, and separate null from the one other type.

        Several types allow any value.
        """
        if reference := schema.get("$ref"):
            return self._resolve(self._root_schema["$defs"][reference.rpartition("/")[2]])
        kinds = schema.get("type")
        alternatives = schema.get("anyOf") or (
            [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else ()
        )
        if not alternatives:
            return _Rules(schema)
        non_null_alternatives = [alternative for alternative in alternatives if alternative.get("type") != "null"]
        is_nullable = len(non_null_alternatives) < len(alternatives)
        if len(non_null_alternatives) != 1:
            return _Rules({}, is_nullable)
        return self._resolve(non_null_alternatives[0])._replace(is_nullable=is_nullable)

    def _list_required_names(self, rules: _Rules) -> tuple[str, ...]:
        return tuple(name for name in rules.schema.get("required", ()) if name not in self._may_be_missing)

    def _note_change(self, json_value: Any, place: str, change: str) -> Any:
        self.changes.append(f"{_INDEX_PATTERN.sub('[]', place) or 'answer'}: {change}")
        return json_value

    def _normalise_list(self, json_value: Any, rules: _Rules, place: str, *, is_required: bool) -> Any:
        if json_value is None:
            return None if rules.is_nullable else self._note_change([], place, "null read as an empty list")
        member_schema = rules.schema.get("items", {})
        member_rules = self._resolve(member_schema)
        json_value = self._read_json_text(json_value, place)
        if isinstance(json_value, str) and member_rules.kind == "string":
            if not member_rules.words and _ITEM_SEPARATORS_PATTERN.search(json_value.strip()):
                _refuse(place, "must be a list: its text may hold one item or several")
            json_value = self._note_change(
                [json_value] if json_value.strip() else [], place, "text read as a list of one"
            )
        if isinstance(json_value, dict) and (member_rules.kind == "object" or not json_value):
            json_value = self._convert_object_to_list(json_value, member_rules, place, is_required=is_required)
        if not isinstance(json_value, list):
            _refuse(place, "must be a list")
        return [self.normalise(member, member_schema, f"{place}[{index}]") for index, member in enumerate(json_value)]

    def _convert_object_to_list(
        self, members_by_key: dict[str, Any], member_rules: _Rules, place: str, *, is_required: bool
    ) -> Any:
        """Read an object keyed by types, numbers or names as a list.

        For an optional list, read a lone member. The key becomes a field of each member. Any other object is returned
        unchanged.
        """
        keyed_members = self._read_keyed_members(members_by_key, member_rules)
        if keyed_members:
            return self._note_change(keyed_members, place, "an object read as a list")
        if is_required:
            return members_by_key
        return self._note_change([members_by_key] if members_by_key else [], place, "an object read as a list of one")

    def _read_keyed_members(self, members_by_key: dict[str, Any], member_rules: _Rules) -> list[dict[str, Any]]:
        key_name = next((name for name in _MEMBER_KEYS if name in member_rules.properties), None)
        name_by_key = _map_keys_to_fields(tuple(member_rules.properties))
        is_keyed = all(
            isinstance(member, dict) and _squash_key(key) not in name_by_key for key, member in members_by_key.items()
        )
        if not key_name or not is_keyed:
            return []
        key_schema = member_rules.properties[key_name]
        quiet = _Normaliser(self._root_schema)
        try:
            keys = [quiet.normalise(key, key_schema, "") for key in members_by_key]
        except AnswerShapeError:
            return []
        keyed_members = list(zip(keys, members_by_key.values(), strict=True))
        if all(isinstance(key, int) for key in keys):
            keyed_members.sort(key=lambda keyed_member: keyed_member[0])
        members = []
        for key, member in keyed_members:
            own_keys = [field for name, field in member.items() if name_by_key.get(_squash_key(name)) == key_name]
            own_key = quiet.normalise(own_keys[0], key_schema, key_name) if own_keys else key
            # A number as key may count from another start; a name may not.
            if own_key != key and isinstance(key, str):
                raise AnswerShapeError(f"{key_name} appears twice with different values")
            members.append({**member, key_name: own_key})
        return members

    def _normalise_object(self, json_value: Any, rules: _Rules, place: str) -> Any:
        json_value = self._read_json_text(json_value, place)
        if not isinstance(json_value, dict):
            _refuse(place, "must be an object")
        if not rules.properties:
            return json_value
        name_by_key = _map_keys_to_fields(tuple(rules.properties))
        required_names = self._list_required_names(rules)
        normalised: dict[str, Any] = {}
        has_unread_objects = not place and self._has_remarks
        prefix = f"{place}." if place else ""
        for key, member in self._split_page_range(json_value, rules, prefix):
            name = key if key in rules.properties else name_by_key.get(_squash_key(key))
            if name is None:
                if not place and member and _squash_key(key) in _FAILURE_KEYS:
                    _refuse(place, "says that it failed")
                has_unread_objects |= isinstance(member, list) and any(isinstance(item, dict) for item in member)
                self._note_change(None, place, "an extra key left out")
                continue
            member_place = f"{prefix}{name}"
            if name != key:
                self._note_change(None, member_place, "another spelling of the key read")
            is_required = name in required_names
            if member is None and not is_required and not self._resolve(rules.properties[name]).is_nullable:
                self._note_change(None, member_place, "null read as left out")
                continue
            normalised_member = self.normalise(member, rules.properties[name], member_place, is_required=is_required)
            if name in normalised and dump_for_comparison(normalised[name]) != dump_for_comparison(normalised_member):
                _refuse(member_place, "appears twice with different values")
            normalised[name] = normalised_member
        _require_fields(normalised, required_names, prefix, has_unread_objects=has_unread_objects)
        return normalised

    def _split_page_range(self, fields: dict[str, Any], rules: _Rules, prefix: str) -> Iterator[tuple[str, Any]]:
        """Yield keys and values; replace a page range by start_page and end_page."""
        has_range = all(name in rules.properties for name in _PAGE_RANGE_FIELDS)
        for key, member in fields.items():
            range_key = _squash_key(key)
            is_range_key = has_range and range_key in _PAGE_RANGE_KEYS and key not in rules.properties
            pages = _parse_page_range(member, tuple(rules.properties), range_key) if is_range_key else None
            if pages is None:
                yield key, member
            else:
                self._note_change(None, f"{prefix}start_page", "a range of pages read")
                yield from zip(_PAGE_RANGE_FIELDS, pages, strict=True)

    def _read_json_text(self, json_value: Any, place: str) -> Any:
        if not isinstance(json_value, str) or not json_value.lstrip().startswith(("{", "[")):
            return json_value
        try:
            inner_value, _ = extract_answer_json(json_value)
        except AnswerTextError:
            return json_value
        return self._note_change(inner_value, place, "JSON written as text in JSON read")

    def _normalise_enum_value(self, json_value: Any, rules: _Rules, place: str) -> Any:
        if json_value in rules.words and not isinstance(json_value, bool):
            return json_value
        squashed_word = _squash_word(json_value) if isinstance(json_value, str) else None
        class_name = rules.schema.get("title", "").lower()
        matching_words = [
            word
            for word in rules.words
            if isinstance(word, str) and squashed_word in (_squash_word(word), class_name + _squash_word(word))
        ]
        if len(matching_words) != 1:
            _refuse(place, f"must be one of {', '.join(map(str, rules.words))}")
        return self._note_change(matching_words[0], place, "another case or spacing read")

    def _normalise_integer(self, json_value: Any, rules: _Rules, place: str) -> Any:
        if isinstance(json_value, float) and json_value.is_integer() and abs(json_value) < _MAX_INTEGRAL_FLOAT:
            json_value = self._note_change(int(json_value), place, "a number with a decimal point read as a whole one")
        elif isinstance(json_value, str) and (match := _INTEGER_PATTERN.fullmatch(json_value.strip())):
            json_value = self._note_change(int(match["digits"] or match["signed"]), place, "text read as a number")
        return _require_number(json_value, (int,), rules, place)

    def _normalise_float(self, json_value: Any, rules: _Rules, place: str) -> Any:
        if isinstance(json_value, str):
            text = json_value.strip()
            if _COMMA_DECIMAL_PATTERN.fullmatch(text.removesuffix("%").strip()):
                text = text.replace(",", ".")
            if match := _NUMBER_PATTERN.fullmatch(text):
                number = Decimal(match[1])
                if match[2]:
                    is_share = 0 <= number <= 100
                    # A number up to 100 is written in per cent already.
                    number /= 1 if rules.schema.get("maximum") == 100 else 100
                    change = "per cent read as a number"
                else:
                    is_share, change = True, "text read as a number"
                if is_share:
                    json_value = self._note_change(float(number), place, change)
        return _require_number(json_value, (int, float), rules, place)

    def _normalise_boolean(self, json_value: Any, _: _Rules, place: str) -> Any:
        if isinstance(json_value, str) and (word := json_value.strip().lower()) in _BOOLEAN_WORDS:
            return self._note_change(_BOOLEAN_WORDS[word], place, "text read as true or false")
        return json_value if isinstance(json_value, bool) else _refuse(place, "must be true or false")

    def _normalise_text(self, json_value: Any, _: _Rules, place: str) -> Any:
        if type(json_value) is int:
            return self._note_change(str(json_value), place, "a whole number read as text")
        return json_value if isinstance(json_value, str) else _refuse(place, "must be text")


def _refuse(place: str, reason: str) -> NoReturn:
    raise AnswerShapeError(f"{place or 'the answer'} {reason}")


def _require_number(json_value: Any, number_types: tuple[type, ...], rules: _Rules, place: str) -> Any:
    if type(json_value) not in number_types:
        _refuse(place, "must be a number" if float in number_types else "must be a whole number")
    minimum, maximum = (rules.schema.get(key) for key in ("minimum", "maximum"))
    if minimum is not None and json_value < minimum:
        _refuse(place, f"must be {minimum:g} or more")
    if maximum is not None and json_value > maximum:
        _refuse(place, f"must be {maximum:g} or less")
    return json_value


def _find_wrapped_answers(
    json_value: Any, fields: tuple[str, ...], markers: frozenset[str], depth: int
) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects that have a key for one of the fields ``markers``.

    Looks ``depth`` levels deep, also into JSON in texts. AnswerShapeError if an object around an answer has fields of
    the answer too.
    """
    name_by_key = _map_keys_to_fields(fields)
    if isinstance(json_value, dict):
        names = {name_by_key.get(_squash_key(key)) for key in json_value}
        if names & markers:
            unknown_members = [member for key, member in json_value.items() if _squash_key(key) not in name_by_key]
            _refuse_further_answers(unknown_members, fields, markers, depth - 1)
            yield json_value
            return
        members: Sequence[Any] = list(json_value.values())
        is_partial_answer = bool(names - {None})
    elif isinstance(json_value, list):
        members, is_partial_answer = json_value, False
    elif isinstance(json_value, str) and any(marker in json_value for marker in markers):
        try:
            members, is_partial_answer = [extract_answer_json(json_value).json_value], False
        except AnswerTextError:
            return
    else:
        return
    if depth == 0:
        return
    for member in members:
        for answer in _find_wrapped_answers(member, fields, markers, depth - 1):
            if is_partial_answer:
                raise AnswerShapeError("it contains an answer inside of another answer")
            yield answer


def _has_remarks(json_value: Any, dumped_answer: str, fields: tuple[str, ...]) -> bool:
    """Return True if words or "false" stand beside the answer or in unknown keys.

    Beside an empty list they may say that nothing was checked.
    """
    if isinstance(json_value, dict):
        is_answer = dump_for_comparison(json_value) == dumped_answer
        known_keys = _map_keys_to_fields(fields) if is_answer else {}
        json_value = [member for key, member in json_value.items() if _squash_key(key) not in known_keys]
    if isinstance(json_value, list):
        return any(_has_remarks(member, dumped_answer, fields) for member in json_value)
    if isinstance(json_value, str) and json_value:
        with suppress(AnswerTextError):
            return _has_remarks(extract_answer_json(json_value).json_value, dumped_answer, fields)
        return any(map(str.isalpha, json_value))
    return json_value is False


def _refuse_further_answers(
    members: Sequence[Any], fields: tuple[str, ...], markers: frozenset[str], depth: int
) -> None:
    """Raise AnswerShapeError if a member of an answer is an answer too.

    It may say otherwise.
    """
    if depth >= 0 and any(_find_wrapped_answers(members, fields, markers, depth)):
        raise AnswerShapeError("it contains an answer inside of another answer")


def _require_fields(fields: dict[str, Any], names: Sequence[str], prefix: str, *, has_unread_objects: bool) -> None:
    """Raise AnswerShapeError if a field is missing.

    Also if it is empty, and its members or a remark may be under an unknown key.
    """
    for name in names:
        if name not in fields:
            _refuse(f"{prefix}{name}", "is missing")
        if has_unread_objects and fields[name] == []:
            _refuse(f"{prefix}{name}", "is empty, but something else is said under an unknown key: leave that out")


def _parse_page_range(pages: Any, fields: tuple[str, ...], range_key: str) -> tuple[Any, Any] | None:
    """Read ``1-5`` or ``[1, 2, 3]`` as first and last page; None if unclear.

    ``[1, 5]`` and a single number are read only if the key calls them a range.
    """
    is_called_range = "range" in range_key
    if isinstance(pages, str) and (match := _PAGE_RANGE_PATTERN.fullmatch(pages.strip())):
        return int(match[1]), int(match[2])
    if isinstance(pages, dict):
        ends = {_map_keys_to_fields(fields).get(_squash_key(key)): end for key, end in pages.items()}
        return (ends["start_page"], ends["end_page"]) if ends.keys() == set(_PAGE_RANGE_FIELDS) else None
    if isinstance(pages, list) and pages and all(type(page) is int for page in pages):
        first, last = pages[0], pages[-1]
        is_pair = len(pages) == 2 and (first == last or is_called_range)
        return (first, last) if is_pair or pages == list(range(first, first + len(pages))) else None
    return (pages, pages) if is_called_range and isinstance(pages, str | int) else None


def _squash_word(word: str) -> str:
    return _WORD_SEPARATORS_PATTERN.sub("", word).lower()


def _squash_key(key: str) -> str:
    return re.sub(r"[\W_]+", "", key).lower()


@cache
def _map_keys_to_fields(fields: tuple[str, ...]) -> dict[str, str]:
    """Map each spelling of a key, in lower case without separators, to its field.

    A field's own name wins over another field's spelling.
    """
    return {
        _squash_key(other_name): name
        for spellings in _load_spellings().values()
        if spellings.keys() <= set(fields)
        for name, names in spellings.items()
        for other_name in names
    } | {_squash_key(name): name for name in fields}


#: Load other spellings of the answer's keys; cached.
_load_spellings = partial(load_package_table, "evalkit.llm", "answer_spellings.toml")
