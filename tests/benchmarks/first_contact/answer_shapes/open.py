"""The open half of the answer shapes."""

from __future__ import annotations

import json
import re

from benchmarks.first_contact.answer_shapes.making import (
    AnswerShape,
    Json,
    Pairs,
    dump_pretty,
    find_boolean,
    find_enum,
    find_fraction,
    find_integer,
    get_element,
    replace_element,
)

_BYTE_ORDER_MARK = "\ufeff"


def _write_in_fence(answer: Json, schema: Json) -> str:
    return f"```json\n{dump_pretty(answer)}\n```\n"


def _write_between_prose(answer: Json, schema: Json) -> str:
    before = "Sure! I read the pages {all of them} and filled in the fields [as asked]. Here is the result:"
    return f"{before}\n\n{dump_pretty(answer)}\n\nLet me know if {{further}} details are needed."


def _write_extra_key(answer: Json, schema: Json) -> str:
    return json.dumps({"schema_version": "1", **answer}, ensure_ascii=False)


def _write_integers_as_floats(answer: Json, schema: Json) -> str:
    path = find_integer(answer, schema)
    return dump_pretty(replace_element(answer, path, float(get_element(answer, path))))


def _write_boolean_as_string(answer: Json, schema: Json) -> str:
    path = find_boolean(answer, schema)
    return dump_pretty(replace_element(answer, path, str(get_element(answer, path)).lower()))


def _write_numbers_as_strings(answer: Json, schema: Json) -> str:
    for path in (find_fraction(answer, schema), find_integer(answer, schema)):
        answer = replace_element(answer, path, str(get_element(answer, path)))
    return dump_pretty(answer)


def _write_trailing_commas(answer: Json, schema: Json) -> str:
    return re.sub(r"([^\[{,\s])(\n\s*[\]}])", r"\1,\2", dump_pretty(answer))


def _write_as_python(answer: Json, schema: Json) -> str:
    return repr(answer)


def _write_with_comments(answer: Json, schema: Json) -> str:
    lines = dump_pretty(answer).split("\n")
    commented = [f'{line}  // "see" page {{1}}' if line.endswith(",") else line for line in lines]
    return "\n".join(["/* the answer: */", *commented])


def _write_key_twice_alike(answer: Json, schema: Json) -> str:
    return dump_pretty(Pairs([*answer.items(), next(iter(answer.items()))]))


def _write_after_thoughts(answer: Json, schema: Json) -> str:
    path = find_enum(answer, schema)
    draft = dump_pretty(replace_element(answer, path, "Other"))
    return f"<think>\nFirst idea: {draft}\nNo, the title says otherwise.\n</think>\n\n{dump_pretty(answer)}"


def _write_byte_order_mark(answer: Json, schema: Json) -> str:
    return _BYTE_ORDER_MARK + json.dumps(answer)


def _write_under_answer(answer: Json, schema: Json) -> str:
    return json.dumps({"answer": answer}, ensure_ascii=False, indent=4)


def _write_enum_in_other_case(answer: Json, schema: Json) -> str:
    path = find_enum(answer, schema)
    return dump_pretty(replace_element(answer, path, f" {get_element(answer, path).upper().replace(' ', '  ')} "))


def _cut_inside_string(answer: Json, schema: Json) -> str:
    text = dump_pretty(answer)
    return text[: text.rindex('"') - 3]


def _write_two_answers(answer: Json, schema: Json) -> str:
    path = find_fraction(answer, schema)
    return f"Option A:\n{dump_pretty(answer)}\n\nOption B:\n{dump_pretty(replace_element(answer, path, 0.15))}"


def _write_key_twice_differently(answer: Json, schema: Json) -> str:
    *outer, key = find_fraction(answer, schema)
    holder = get_element(answer, tuple(outer)) if outer else answer
    doubled = Pairs([*holder.items(), (str(key), 0.05)])
    return dump_pretty(replace_element(answer, tuple(outer), doubled) if outer else doubled)


def _write_not_a_number(answer: Json, schema: Json) -> str:
    return dump_pretty(replace_element(answer, find_fraction(answer, schema), float("nan")))


def _leave_out_required_key(answer: Json, schema: Json) -> str:
    key = str(find_boolean(answer, schema)[0])
    return dump_pretty({name: element for name, element in answer.items() if name != key})


def _write_unknown_enum(answer: Json, schema: Json) -> str:
    return dump_pretty(replace_element(answer, find_enum(answer, schema), "a consult letter, probably"))


SHAPES = (
    AnswerShape("in a code fence", _write_in_fence, "lossless", "text"),
    AnswerShape("between prose that has brackets", _write_between_prose, "lossless", "text"),
    AnswerShape("an extra key", _write_extra_key, "lossless", "schema"),
    AnswerShape("2.0 for 2", _write_integers_as_floats, "lossless", "schema"),
    AnswerShape("a truth value as a string", _write_boolean_as_string, "lossless", "schema"),
    AnswerShape("numbers as strings", _write_numbers_as_strings, "lossless", "schema"),
    AnswerShape("trailing commas", _write_trailing_commas, "lossless", "text"),
    AnswerShape("as Python writes it", _write_as_python, "lossless", "text"),
    AnswerShape("with comments", _write_with_comments, "lossless", "text"),
    AnswerShape("a key twice, alike", _write_key_twice_alike, "lossless", "text"),
    AnswerShape("after thoughts with a draft", _write_after_thoughts, "lossless", "text"),
    AnswerShape("after a byte order mark", _write_byte_order_mark, "lossless", "text"),
    AnswerShape("under the key answer", _write_under_answer, "lossless", "schema"),
    AnswerShape("an enum in capitals with blanks", _write_enum_in_other_case, "lossless", "schema"),
    AnswerShape("cut off inside a string", _cut_inside_string, "named", "text", r"cut|truncat|incomplete|unterminated"),
    AnswerShape(
        "two different answers", _write_two_answers, "named", "text", r"\btwo\b|several|multiple|more than one|\b2\b"
    ),
    AnswerShape(
        "a key twice, differently",
        _write_key_twice_differently,
        "named",
        "text",
        r"twice|two|duplicat|repeat|different",
    ),
    AnswerShape("not a number", _write_not_a_number, "named", "text", r"nan\b|not a number|finite|constant"),
    AnswerShape("without a required key", _leave_out_required_key, "named", "schema", r"missing|required|lacks|absent"),
    AnswerShape(
        "a word that the enum does not have",
        _write_unknown_enum,
        "named",
        "schema",
        r"enum|allowed|permitted|expected|unknown|not (?:one of|in)|should be|must be",
    ),
)
