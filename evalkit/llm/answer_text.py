"""Search for the only JSON value in the text of a model's answer.

Harmless deviations are corrected and listed: prose and fences around the value, comments, trailing commas, single
quotes, the same key twice with the same value. Ambiguous answers are refused: several values, a text that is cut off, a
key with two values.
"""

import html
import json
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, NoReturn


class NormalisedAnswer(NamedTuple):
    """The JSON value of an answer, and the harmless changes made to parse it."""

    json_value: Any
    changes: tuple[str, ...]
    """A few words for each kind of change, in the order of the answer, which they do not quote."""


class AnswerTextError(ValueError):
    """Error for a text without exactly one JSON value; it quotes no text."""


def state_probabilities(text: str, tokens: Sequence[tuple[bytes, float]], field: str) -> str:
    """Add ``{field}_probability``, the probability of a field's value, to a JSON text.

    ``tokens``: those of the text, each with the logarithm of its probability; unchanged if they are of another text.

    >>> state_probabilities('{"type": "A"}', [(b'{"type": "', 0.0), (b'A"', -0.693), (b"}", 0.0)], "type")
    '{"type": "A", "type_probability": 0.5001}'
    """
    written, ends = text.encode(), list(accumulate(len(token) for token, _ in tokens))
    if b"".join(token for token, _ in tokens) != written:
        return text

    def add_probability(match: re.Match[bytes]) -> bytes:
        own_tokens = tokens[bisect_right(ends, match.start(1)) : bisect_left(ends, match.end(1)) + 1]
        probability = math.exp(min(0.0, math.fsum(logarithm for _, logarithm in own_tokens)))
        return match[0] + f', "{field}_probability": {probability:.4f}'.encode()

    return re.sub(rf'"{field}"\s*:\s*"([^"\\]+)"'.encode(), add_probability, written).decode()


_THOUGHTS_PATTERN = re.compile(r"(?is)\A\s*<(think|thinking|thought|reasoning)>.*?</\1>")
_UNFINISHED_THOUGHTS_PATTERN = re.compile(r"(?i)\s*<(think|thinking|thought|reasoning)>")
_CURLY_QUOTE_PATTERN = re.compile(r"[{\[,]\s*[“”]")
_STRAIGHT_QUOTES = str.maketrans("“”", '""')
_TOKEN_PATTERN = re.compile(
    r"""(?P<double>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<single>(?<=[\[{,:\s(])'(?:[^'\\]|\\.)*')"""
    r"""|(?P<comment>//[^\n]*|/\*.*?\*/|\#[^\n]*)"""
    r"""|(?P<number>(?<![\w.])[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?P<percent>\s*%)?(?![\w.]))"""
    r"""|(?P<word>[A-Za-z_$][\w$-]*)(?P<colon>\s*:)?"""
    r"""|(?P<opening>[\[{])|(?P<closing>[\]}])""",
    re.DOTALL,
)
_TRAILING_COMMA_PATTERN = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', re.DOTALL)
_NEEDLESS_ESCAPE_PATTERN = re.compile(r"\\(\\|(?P<escaped>[^\"\\/bfnrtu]))", re.DOTALL)
_HARMLESS_ESCAPES = frozenset("'_*[]`#&$")
_PYTHON_CONSTANTS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_PROSE_BRACKETS_PATTERN = re.compile(r'\[[^\[\]{}"]*\]|\{[^\[\]{}"]*\}')
#: An empty tick box in prose, which is no empty list.
_TICK_BOX_PATTERN = re.compile(r"(?m)(?:\[[ \t]+\]|^\s*(?:[-*+•]|\d+[.)])\s*\[\])\Z")
#: Levels of JSON strings that contain JSON text, which are unwrapped.
_MAX_WRAPPED_TEXTS = 3


def extract_answer_json(text: str) -> NormalisedAnswer:
    """Return the only JSON value in a text, and the changes made to read the value.

    AnswerTextError if the text contains no or several values, is cut off, or gives one key two values.
    """
    try:
        return _extract_nested_answer_json(text, 0)
    except RecursionError:
        raise AnswerTextError("the JSON is nested too deeply") from None


def dump_for_comparison(json_value: Any) -> str:
    """Return a text that is equal for equal JSON values; 1 and true are different."""
    return json.dumps(json_value, sort_keys=True)


def _extract_nested_answer_json(text: str, depth: int) -> NormalisedAnswer:
    repeated_keys: list[str] = []
    changes: list[str] = []
    stripped_text = text.strip().removeprefix("\ufeff").lstrip()
    try:
        json_value = _load_json(stripped_text, repeated_keys, is_strict=True)
    except AnswerTextError:
        raise
    except ValueError:
        json_value = _extract_only_json_value(_unwrap_answer_text(stripped_text, changes), repeated_keys, changes)
    if repeated_keys:
        changes.append("a key with the same value twice read once")
    if isinstance(json_value, str) and depth < _MAX_WRAPPED_TEXTS and re.search(r"[{\[]", json_value):
        inner_answer = _extract_nested_answer_json(json_value, depth + 1)
        return NormalisedAnswer(
            inner_answer.json_value, (*changes, "JSON written as text in JSON read", *inner_answer.changes)
        )
    return NormalisedAnswer(json_value, tuple(dict.fromkeys(changes)))


def _load_json(json_text: str, repeated_keys: list[str], *, is_strict: bool) -> Any:
    def merge_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key, field in pairs:
            if key in fields:
                if dump_for_comparison(fields[key]) != dump_for_comparison(field):
                    raise AnswerTextError("a field occurs twice with different values")
                repeated_keys.append(key)
            fields[key] = field
        return fields

    return json.loads(
        json_text,
        object_pairs_hook=merge_pairs,
        parse_constant=_refuse_constant,
        parse_float=_parse_finite_float,
        strict=is_strict,
    )


def _parse_finite_float(number_text: str) -> float:
    number = float(number_text)
    return number if math.isfinite(number) else _refuse_constant("a number without end")


def _refuse_constant(constant: str) -> NoReturn:
    raise AnswerTextError(f"{constant} is not a JSON number")


def _unwrap_answer_text(text: str, changes: list[str]) -> str:
    """Remove wrappings of a whole text, and add each removal to ``changes``.

    Wrappings are thoughts before the answer, marks of quoted mail, HTML entities and curly quotes.
    """
    if (answer_text := _THOUGHTS_PATTERN.sub("", text)) != text:
        changes.append("thoughts before the answer left out")
        text = answer_text
    if _UNFINISHED_THOUGHTS_PATTERN.match(text):  # JSON in it is a draft
        raise AnswerTextError("it is cut off")
    if all(line.startswith(">") for line in text.splitlines()):
        changes.append("marks of a quoted mail left out")
        text = "\n".join(line.removeprefix(">").removeprefix(" ") for line in text.splitlines())
    if '"' not in text and "&quot;" in text:
        changes.append("HTML entities read as characters")
        return html.unescape(text)
    if '"' not in text and _CURLY_QUOTE_PATTERN.search(text):
        changes.append("curly quotes read as straight ones")
        return text.translate(_STRAIGHT_QUOTES)
    return text


def _extract_only_json_value(text: str, repeated_keys: list[str], changes: list[str]) -> Any:
    values_by_text: dict[str, Any] = {}
    prose_parts: list[str] = []
    value_count = 0
    for prose, value_text in _split_prose_and_values(text):
        prose_parts.append(prose)
        if value_text is None:
            continue
        json_value, syntax_changes = _load_json_leniently(value_text, repeated_keys)
        if json_value is None or _TICK_BOX_PATTERN.search(prose + value_text):
            prose_parts.append(value_text)
            continue
        value_count += 1
        changes += syntax_changes
        values_by_text.setdefault(dump_for_comparison(json_value), json_value)
    prose = "".join(prose_parts)
    if re.search(r"[\[\]{}]", _PROSE_BRACKETS_PATTERN.sub("", prose)):
        raise AnswerTextError("it is cut off or not JSON")
    if len(values_by_text) > 1:  # [1] in prose is a reference, not an answer
        values_by_text = {value_text: value for value_text, value in values_by_text.items() if "{" in value_text}
    if len(values_by_text) != 1:
        raise AnswerTextError("it holds several JSON values" if value_count else "it is not JSON")
    if prose.strip():
        changes.insert(0, "text around the JSON left out")
    if value_count > 1:
        changes.append("the same JSON twice read once")
    return next(iter(values_by_text.values()))


def _split_prose_and_values(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each prose part with the bracketed text after it; None at the end.

    AnswerTextError if a bracket is never closed.
    """
    position = 0
    while (opening := re.compile(r"[\[{]").search(text, position)) is not None:
        end = _find_balanced_end(text, opening.start())
        yield text[position : opening.start()], text[opening.start() : end]
        position = end
    yield text[position:], None


def _find_balanced_end(text: str, start: int) -> int:
    depth = 0
    for token in _TOKEN_PATTERN.finditer(text, start):
        depth += (token["opening"] is not None) - (token["closing"] is not None)
        if depth == 0:
            return token.end()
    raise AnswerTextError("it is cut off")


def _load_json_leniently(value_text: str, repeated_keys: list[str]) -> tuple[Any, list[str]]:
    """Load a bracketed text as JSON; return the value and the changes made.

    None if the brackets are part of prose. AnswerTextError if the text is not JSON.
    """
    try:
        return _load_json(value_text, repeated_keys, is_strict=True), []
    except AnswerTextError:
        raise
    except ValueError:
        pass
    json_text = _TRAILING_COMMA_PATTERN.sub(
        lambda match: match[1] or "", _TOKEN_PATTERN.sub(_convert_token_to_json, value_text)
    )
    try:
        return _load_json(json_text, repeated_keys, is_strict=False), ["JSON syntax of another language read"]
    except AnswerTextError:
        raise
    except ValueError:
        if _PROSE_BRACKETS_PATTERN.fullmatch(value_text):
            return None, []
        raise AnswerTextError("it is cut off or not JSON") from None


def _convert_token_to_json(token: re.Match[str]) -> str:
    """Convert a token of JavaScript or Python to JSON; keep unknown tokens unchanged."""
    writer = _TOKEN_WRITERS.get(token.lastgroup or "")
    return writer(token) if writer else token[0]


def _convert_single_quoted_to_json(token: re.Match[str]) -> str:
    inner_text = token[0][1:-1].replace('\\"', '"').replace('"', '\\"')
    return _drop_needless_escapes(f'"{inner_text}"')


def _convert_number_to_json(token: re.Match[str]) -> str:
    if token["percent"]:
        return f'"{token["number"]}"'
    return re.sub(r"\.(?=$|[eE])", ".0", re.sub(r"^(-?)\.", r"\g<1>0.", token[0].removeprefix("+")))


def _drop_needless_escapes(string_text: str) -> str:
    return _NEEDLESS_ESCAPE_PATTERN.sub(
        lambda escape: escape["escaped"] if escape["escaped"] in _HARMLESS_ESCAPES else escape[0], string_text
    )


_TOKEN_WRITERS: dict[str, Callable[[re.Match[str]], str]] = {
    "double": lambda token: _drop_needless_escapes(token[0]),
    "single": _convert_single_quoted_to_json,
    "comment": lambda _: "",
    "number": _convert_number_to_json,
    "word": lambda token: _PYTHON_CONSTANTS.get(token[0], token[0]),
    "colon": lambda token: f'"{token["word"]}"{token["colon"]}',
}
