"""Ways in which models write an answer: what is lossless, and what must be refused by name; for any schema."""

from __future__ import annotations

import copy
import html
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]
Path = tuple[str | int, ...]
#: The answer in a shape, with the answer that it is if that is another one; None if the schema has no such field.
Written = str | tuple[str, Json] | None
Writer = Callable[[Json, Json], Written]


def make_answer(schema: Json) -> Any:
    """An answer of the schema: lists of objects have two members, other lists one."""
    definitions = schema.get("$defs", {})

    def make(rules: Json, name: str) -> Any:
        rules = resolve(rules, definitions)
        words = rules.get("enum") or [rules[key] for key in ("const",) if key in rules]
        if words:
            return max(words, key=lambda word: (" " in str(word), str(word)))
        if rules.get("type") == "object":
            return {key: make(field, key) for key, field in rules.get("properties", {}).items()}
        if rules.get("type") == "array":
            is_of_objects = resolve(rules["items"], definitions).get("type") == "object"
            return [make(rules["items"], f"{name} {number}") for number in range(1, 2 + is_of_objects)]
        return {"integer": 3, "number": 0.25, "boolean": True}.get(
            rules.get("type", ""), f"The words of {name} aren't [many]."
        )

    return make(schema, "answer")


def resolve(rules: Json, definitions: Json) -> Json:
    """The rules without references and null; none where several types are allowed."""
    if "$ref" in rules:
        return resolve(definitions[rules["$ref"].rpartition("/")[2]], definitions)
    options = [option for option in rules.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        return resolve(options[0], definitions)
    return {} if options else rules


def walk(answer: Any, rules: Json, definitions: Json, path: Path = ()) -> Iterator[tuple[Path, Json, Any]]:
    """Every element with its path and its rules, in the order of the answer."""
    rules = resolve(rules, definitions)
    yield path, rules, answer
    if isinstance(answer, dict) and "properties" in rules:
        for key, member in answer.items():
            yield from walk(member, rules["properties"][key], definitions, (*path, key))
    if isinstance(answer, list):
        for index, member in enumerate(answer):
            yield from walk(member, rules["items"], definitions, (*path, index))


def replace(answer: Json, path: Path, element: Any) -> Json:
    """A copy with another element at the path."""
    changed = copy.deepcopy(answer)
    holder: Any = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = element
    return changed


def at(kind: str, change: Callable[[Any, Json], Any]) -> Writer:
    """The answer with another last element of this kind; the change returns None if it does not fit."""

    def write(answer: Json, schema: Json) -> Written:
        for path, rules, element in reversed(list(walk(answer, schema, schema.get("$defs", {})))):
            is_kind = kind == "enum" if "enum" in rules else rules.get("type") == kind
            if path and is_kind and (changed := change(element, rules)) is not None:
                return json.dumps(replace(answer, path, changed))
        return None

    return write


def text(spell: Callable[[str], str]) -> Writer:
    """The answer's text, written otherwise."""
    return lambda answer, schema: spell(json.dumps(answer))


def whole(wrap: Callable[[Json], Any]) -> Writer:
    """The answer within something else."""
    return lambda answer, schema: json.dumps(wrap(answer))


def respell_keys(spell: Callable[[str], str]) -> Writer:
    """The answer with every key written otherwise."""

    def respell(element: Any) -> Any:
        if isinstance(element, dict):
            return {spell(key): respell(member) for key, member in element.items()}
        return [respell(member) for member in element] if isinstance(element, list) else element

    return lambda answer, schema: json.dumps(respell(answer))


def _null_for_optional(answer: Json, schema: Json) -> Written:
    names = [name for name in schema["properties"] if name not in schema["required"]]
    nullable = [name for name in names if "anyOf" in schema["properties"][name]]
    if not (names := [name for name in names if name not in nullable]):
        return None
    rest = {name: element for name, element in answer.items() if name != names[0]}
    return json.dumps({names[0]: None, **rest}), rest


def _null_for_empty_list(answer: Json, schema: Json) -> Written:
    for path, rules, _ in walk(answer, schema, schema.get("$defs", {})):
        if path and rules.get("type") == "array":
            return json.dumps(replace(answer, path, None)), replace(answer, path, [])
    return None


def _leave_out_required(answer: Json, schema: Json) -> str:
    return json.dumps({name: element for name, element in answer.items() if name != schema["required"][0]})


def _write_two_answers(answer: Json, schema: Json) -> Written:
    path, element = next(
        (path, element)
        for path, _, element in walk(answer, schema, schema.get("$defs", {}))
        if path and isinstance(element, str)
    )
    return f"A:\n{json.dumps(answer)}\nB:\n{json.dumps(replace(answer, path, element.lower() + '!'))}"


def _share(number: Any, rules: Json) -> str | None:
    return f"{number * 100:g}%" if rules.get("maximum") != 100 else None


def _is_words(element: Any) -> bool:
    return bool(element) and all(isinstance(member, str) for member in element)


FENCE = "```"
LOSSLESS: dict[str, Writer] = {
    "as it is": text(str),
    "indented": lambda answer, schema: json.dumps(answer, indent=4),
    "in a fence": text(lambda said: f"{FENCE}json\n{said}\n{FENCE}"),
    "in a fence that is never closed": text(lambda said: f"{FENCE}\n{said}"),
    "between prose": text(lambda said: f"Here is {{the answer}} [1]:\n\n{said}\n\nIsn't it?"),
    "after thoughts with a draft": text(lambda said: f'<think>Perhaps {{"a": []}}?</think>\n{said}'),
    "after a byte order mark": text(lambda said: f"\ufeff{said}"),
    "between tags": text(lambda said: f"<answer>{said}</answer>"),
    "as an assignment": text(lambda said: f"const result = {said};"),
    "as Python": lambda answer, schema: repr(answer),
    "with trailing commas": lambda answer, schema: re.sub(r"\n(\s*[\]}])", r",\n\1", json.dumps(answer, indent=1)),
    "with comments": lambda answer, schema: json.dumps(answer, indent=1).replace("{\n", "{ // {\n", 1) + " # end",
    "with keys without quotes": text(lambda said: re.sub(r'"(\w+)":', r"\1:", said)),
    "with HTML entities": text(html.escape),
    "quoted in a mail": lambda answer, schema: "\n".join(
        f"> {line}" for line in json.dumps(answer, indent=1).splitlines()
    ),
    "twice": text(lambda said: f"{said}\n\nOnce more:\n{said}"),
    "as text in JSON": text(json.dumps),
    "a key twice, alike": lambda answer, schema: "{" + ", ".join(
        f"{json.dumps(key)}: {json.dumps(element)}" for key, element in [*answer.items(), next(iter(answer.items()))]
    ) + "}",
    "with an extra key": whole(lambda answer: {"schema_version": "1", **answer}),
    "in a wrapper": whole(lambda answer: {"result": answer}),
    "in a wrapper in a wrapper": whole(lambda answer: {"status": "ok", "output": {"data": answer}}),
    "as a tool call": whole(lambda answer: {"tool": "answer", "arguments": json.dumps(answer)}),
    "in a list of one": lambda answer, schema: json.dumps([answer]) if len(schema["required"]) > 1 else None,
    "with keys in camel case": respell_keys(lambda key: re.sub("_(.)", lambda letter: letter[1].upper(), key)),
    "with keys in words": respell_keys(lambda key: key.replace("_", " ").title()),
    "an enum in capitals": at("enum", lambda word, rules: word.upper()),
    "an enum with underscores": at("enum", lambda word, rules: word.lower().replace(" ", "_")),
    "an enum with spaces around": at("enum", lambda word, rules: f"  {word.replace(' ', '  ')}\n"),
    "3.0 for 3": at("integer", lambda number, rules: float(number)),
    "a whole number as text": at("integer", lambda number, rules: str(number)),
    "page 3": at("integer", lambda number, rules: f"page {number}"),
    "a number as text": at("number", lambda number, rules: str(number)),
    "a number with a comma": at("number", lambda number, rules: str(number).replace(".", ",")),
    "per cent": at("number", _share),
    "a truth value as text": at("boolean", lambda value, rules: str(value)),
    "yes for true": at("boolean", lambda value, rules: "yes" if value else "no"),
    "a list of one for a word": at("enum", lambda word, rules: [word]),
    "a list of one for a number": at("number", lambda number, rules: [number]),
    "a list as JSON in text": at("array", lambda members, rules: json.dumps(members)),
    "a text for a list of one": at("array", lambda members, rules: members[0] if _is_words(members) and len(members) == 1 else None),
    "null for an empty list": _null_for_empty_list,
    "null for an optional field": _null_for_optional,
}  # fmt: skip
#: Each with what the reason must say.
NAMED: dict[str, tuple[Writer, str]] = {
    "prose": (text(lambda said: "I would rather not say."), "not JSON"),
    "cut off": (text(lambda said: said[: len(said) // 2]), "cut off"),
    "cut off before the last bracket": (text(lambda said: f"{FENCE}json\n{said[:-1]}\n{FENCE}"), "cut off"),
    "without its beginning": (text(lambda said: said[len(said) // 3 :]), "cut off|not JSON|JSON values|missing|must be"),
    "two answers": (_write_two_answers, "several"),
    "a key twice, otherwise": (lambda answer, schema: json.dumps(answer)[:-1] + f', "{next(iter(answer))}": 99}}', "twice"),
    "not a number": (at("number", lambda number, rules: float("nan")), "NaN"),
    "a number without end": (
        lambda answer, schema: said.replace(": 0.25", ": 1e999", 1) if ": 0.25" in (said := json.dumps(answer)) else None,
        "without end",
    ),
    "a required key left out": (_leave_out_required, "is missing|must be"),
    "an unknown word": (at("enum", lambda word, rules: "something else"), "must be one of"),
    "a doubted word": (at("enum", lambda word, rules: f"{word}?"), "must be one of"),
    "about 3": (at("integer", lambda number, rules: "about 3"), "must be a whole number"),
    "3.5 for 3": (at("integer", lambda number, rules: 3.5), "must be a whole number"),
    "true for 1": (at("integer", lambda number, rules: True), "must be a whole number"),
    "a range": (at("number", lambda number, rules: "0.2-0.3"), "must be a number"),
    "1 for true": (at("boolean", lambda value, rules: 1), "must be true or false"),
    "a list of two for a word": (at("enum", lambda word, rules: [word, word]), "must be one of"),
    "an object for text": (at("string", lambda words, rules: {"text": words}), "must be text"),
    "a number for a list": (at("array", lambda members, rules: 7), "must be a list"),
    "several in one text": (
        at("array", lambda members, rules: "one, two; three" if _is_words(members) else None),
        "must be a list",
    ),
}  # fmt: skip
