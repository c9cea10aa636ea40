"""Lossless conversion of JSON values to and from FHIR extensions.

An object is an extension with an inner extension for each key, a list one with inner extensions called ``item``. What no
FHIR type can hold (null, the empty text, an empty list or object) is a code.
"""

import base64
import re
from typing import Any

#: The characters of a FHIR string. Source: FHIR R4, datatypes, string.
_FHIR_STRING = re.compile(r"[ \r\n\t\S]+")
_ITEM = "item"
_EMPTY_VALUES: dict[str, Any] = {"null": None, "empty-text": "", "empty-list": [], "empty-object": {}}
_NAMES_BY_TYPE = {bool: "valueBoolean", int: "valueInteger", float: "valueDecimal"}


def encode_extension(url: str, value: Any) -> dict[str, Any]:
    """Return the extension with this URL that contains a JSON value.

    >>> encode_extension("pages", {"first": 3, "last": 5})
    {'url': 'pages', 'extension': [{'url': 'first', 'valueInteger': 3}, {'url': 'last', 'valueInteger': 5}]}
    """
    if isinstance(value, (dict, list, tuple)) and value:
        parts = value.items() if isinstance(value, dict) else ((_ITEM, inner) for inner in value)
        return {"url": url, "extension": [encode_extension(name, inner) for name, inner in parts]}
    return {"url": url} | _encode_single_value(value)


def _encode_single_value(value: Any) -> dict[str, Any]:
    for python_type, name in _NAMES_BY_TYPE.items():  # a truth value is a whole number, too, so it comes first
        if isinstance(value, python_type):
            return {name: value}
    if not value:
        return {"valueCode": next(code for code, empty in _EMPTY_VALUES.items() if isinstance(value, type(empty)))}
    if _FHIR_STRING.fullmatch(value):
        return {"valueString": value}
    return {"valueBase64Binary": base64.b64encode(value.encode()).decode()}  # with a form feed, a narrow space


def decode_extension(extension: dict[str, Any]) -> Any:
    """Return an extension's JSON value.

    LookupError, TypeError or ValueError if it has none.
    """
    inner = extension.get("extension")
    if inner and inner[0]["url"] == _ITEM:
        return [decode_extension(item) for item in inner]
    if inner:
        return {part["url"]: decode_extension(part) for part in inner}
    if "valueCode" in extension:
        return _EMPTY_VALUES[extension["valueCode"]]
    if "valueBase64Binary" in extension:
        return base64.b64decode(extension["valueBase64Binary"], validate=True).decode()
    if "valueDecimal" in extension:
        return float(extension["valueDecimal"])  # JSON has one kind of number, so 1.0 may come back as 1
    return next(extension[name] for name in ("valueString", "valueBoolean", "valueInteger") if name in extension)


def find_extension(element: dict[str, Any], url: str) -> Any:
    """Return the value of an element's extension of this URL; LookupError if none."""
    return decode_extension(next(inner for inner in element["extension"] if inner["url"] == url))
