"""The sealed half of the answer shapes."""

from __future__ import annotations

import html
import json
import re

from benchmarks.first_contact.answer_shapes.making import (
    AnswerShape,
    Json,
    Pairs,
    dump_pretty,
    dump_string,
    find_empty_list,
    find_enum,
    find_fraction,
    find_integer,
    find_object,
    find_string_list,
    get_absent_key,
    get_element,
    replace_element,
)

_NO_BREAK_SPACE = "\u00a0"
_FULL_WIDTH = str.maketrans("0123456789.", "".join(chr(ord(character) + 0xFEE0) for character in "0123456789."))
_LOOK_ALIKE = str.maketrans("0", "O")


def _write_assignment_in_open_fence(answer: Json, schema: Json) -> str:
    return f"```javascript\nconst answer = {dump_pretty(answer)};\n"


def _write_as_string(answer: Json, schema: Json) -> str:
    return json.dumps(json.dumps(answer, ensure_ascii=False, indent=1))


def _write_as_html(answer: Json, schema: Json) -> str:
    return f'<pre><code class="language-json">{html.escape(dump_pretty(answer))}</code></pre>'


def _write_percent_sign(answer: Json, schema: Json) -> str:
    path = find_fraction(answer, schema)
    return dump_pretty(replace_element(answer, path, f"{round(get_element(answer, path) * 100)} %"))


def _write_null_for_empty_list(answer: Json, schema: Json) -> str:
    return dump_pretty(replace_element(answer, find_empty_list(answer, schema), None))


def _write_null_for_absent(answer: Json, schema: Json) -> str:
    return dump_pretty({**answer, get_absent_key(answer, schema): None})


def _write_list_for_object(answer: Json, schema: Json) -> str:
    path = find_object(answer, schema)
    return dump_pretty(replace_element(answer, path, [get_element(answer, path)]))


def _write_keys_in_camel_case(answer: Json, schema: Json) -> str:
    pretty = dump_pretty(answer)
    return re.sub(
        r'(?m)^(\s*")([a-z_]+)(": )',
        lambda key: key[1] + re.sub(r"_([a-z])", lambda letter: letter[1].upper(), key[2]) + key[3],
        pretty,
    )


def _write_full_width_digits(answer: Json, schema: Json) -> str:
    for path in (find_fraction(answer, schema), find_integer(answer, schema)):
        answer = replace_element(answer, path, str(get_element(answer, path)).translate(_FULL_WIDTH))
    return dump_pretty(answer)


def _write_typographic_quotes(answer: Json, schema: Json) -> str:
    return dump_pretty(answer, quote=lambda text: f"“{dump_string(text)[1:-1]}”", indent=_NO_BREAK_SPACE * 2)


def _write_raw_line_breaks(answer: Json, schema: Json) -> str:
    def quote(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'") + '"'

    return dump_pretty(answer, quote=quote)


def _write_channels(answer: Json, schema: Json) -> str:
    thoughts = "<|channel|>analysis<|message|>The pages are {legible}; answer now.<|end|>"
    return f"{thoughts}<|start|>assistant<|channel|>final<|message|>{json.dumps(answer)}<|return|>"


def _write_tool_call(answer: Json, schema: Json) -> str:
    return json.dumps({"name": "final_result", "arguments": json.dumps(answer, ensure_ascii=False)})


def _leave_out_last_brackets(answer: Json, schema: Json) -> str:
    return dump_pretty(answer).rstrip("]} \n")


def _write_whole_percent(answer: Json, schema: Json) -> str:
    path = find_fraction(answer, schema)
    return dump_pretty(replace_element(answer, path, round(get_element(answer, path) * 100)))


def _decline(answer: Json, schema: Json) -> str:
    return "I'm sorry, but I can't help with medical records. Please consult a qualified professional."


def _shorten_list(answer: Json, schema: Json) -> str:
    path = find_string_list(answer, schema)
    first_element = get_element(answer, path)[0]
    pretty = dump_pretty(replace_element(answer, path, [first_element, "\0"]))
    return pretty.replace(dump_string("\0"), "...")


def _write_keys_that_differ_in_case(answer: Json, schema: Json) -> str:
    *outer, key = find_integer(answer, schema)
    holder = get_element(answer, tuple(outer))
    doubled = Pairs([*holder.items(), (str(key).title(), holder[key] + 1)])
    return dump_pretty(replace_element(answer, tuple(outer), doubled))


def _write_letter_for_digit(answer: Json, schema: Json) -> str:
    path = find_fraction(answer, schema)
    return dump_pretty(replace_element(answer, path, str(get_element(answer, path)).translate(_LOOK_ALIKE)))


def _write_two_words_of_enum(answer: Json, schema: Json) -> str:
    path = find_enum(answer, schema)
    chosen = get_element(answer, path)
    return dump_pretty(replace_element(answer, path, [chosen, "Other"]))


_OUT_OF_RANGE = r"range|maximum|at most|less than|greater than|exceed|above|between|larger|too (?:large|high)|> ?1"
_NO_ANSWER = r"\bno\b.*(?:json|answer|value|object)|not contain|without|refus|prose|declin"
_NOT_NUMBER = r"number|numeric|digit|float|decimal"
_NOT_STRING = r"enum|string|list|array|allowed|several|two|expected|must be|should be"

SHAPES = (
    AnswerShape("an assignment in an open fence", _write_assignment_in_open_fence, "lossless", "text"),
    AnswerShape("as a string of JSON", _write_as_string, "lossless", "text"),
    AnswerShape("as HTML", _write_as_html, "lossless", "text"),
    AnswerShape("a fraction with a percent sign", _write_percent_sign, "lossless", "schema"),
    AnswerShape("null for an empty list", _write_null_for_empty_list, "lossless", "schema"),
    AnswerShape("null for an absent key", _write_null_for_absent, "lossless", "schema"),
    AnswerShape("a list of one for an object", _write_list_for_object, "lossless", "schema"),
    AnswerShape("keys in camel case", _write_keys_in_camel_case, "lossless", "schema"),
    AnswerShape("digits of full width, as strings", _write_full_width_digits, "lossless", "schema"),
    AnswerShape("typographic quotes, no-break spaces", _write_typographic_quotes, "lossless", "text"),
    AnswerShape("raw line breaks, needless escapes", _write_raw_line_breaks, "lossless", "text"),
    AnswerShape("in the last of two channels", _write_channels, "lossless", "text"),
    AnswerShape("as the arguments of a tool call", _write_tool_call, "lossless", "schema"),
    AnswerShape(
        "without the last brackets",
        _leave_out_last_brackets,
        "named",
        "text",
        r"cut|truncat|incomplete|never closed|unclosed|not closed|unterminated|unbalanced",
    ),
    AnswerShape("92 for 0.92", _write_whole_percent, "named", "schema", _OUT_OF_RANGE),
    AnswerShape("declined in prose", _decline, "named", "text", _NO_ANSWER),
    AnswerShape(
        "a list cut short by dots", _shorten_list, "named", "text", r"\.\.\.|ellip|dots|left out|not json|invalid"
    ),
    AnswerShape(
        "two keys that differ in case",
        _write_keys_that_differ_in_case,
        "named",
        "schema",
        r"twice|two|duplicat|repeat|different|several|ambigu",
    ),
    AnswerShape("the letter O for 0", _write_letter_for_digit, "named", "schema", _NOT_NUMBER),
    AnswerShape("two words for an enum", _write_two_words_of_enum, "named", "schema", _NOT_STRING),
)
