"""The document types: evalkit's five, and a site's own types from a file.

``classification/types.toml`` says what the five mean, and their codes. A site's own file has the same form::

    ["Operative Note"]
    definition = "A surgeon's account of an operation."
    includes = ["operative reports", "brief operative notes"]
    excludes = ["consent to surgery"]
    loinc = { code = "11504-8", display = "Surgical operation note" }
    key = "6"

The types in force are the process's: those of the setting ``types_file``, else those that the opened output folders
keep.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import EnumType, StrEnum
from functools import cache, partial
from typing import Annotated, Any, ParamSpec, TypeVar, cast

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import override

from evalkit.core.loinc import Coding
from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord, describe_first_error
from evalkit.core.safe_io import read_regular_file
from evalkit.errors import UsageError

Parameters = ParamSpec("Parameters")
ResultT = TypeVar("ResultT")

#: More types of a site's own are refused: a person could not tell them apart on the screen.
MAX_OWN_TYPES = 20
#: Keys of the expert's screen that do nothing else in a classification case; 1 to 5 are those of the five types.
FREE_KEYS = "6789"

_MAX_FILE_BYTES = 256 * 1024
#: A title is one of the first lines that are not empty.
_TITLE_LINES = 5
_NAME_CHARACTERS = " &/().'-"
#: What the screen and the reports write in place of a type.
_TAKEN_NAMES = ("cannot tell", "unknown", "no form", "no box", "none", "version")

#: The code of a document of which nothing more is known, in US Core's value set of document types.
_UNKNOWN = Coding(code="UNK", display="unknown", system="http://terminology.hl7.org/CodeSystem/v3-NullFlavor")

_load_shipped_table = partial(load_package_table, "evalkit.classification", "types.toml")


class _OpenEnumType(EnumType):
    """Lets an enumeration also iterate over members that were added at run time."""

    @override
    def __iter__(cls) -> Iterator[Any]:
        yield from super().__iter__()
        yield from _own_members.values()

    @override
    def __len__(cls) -> int:
        return super().__len__() + len(_own_members)


class DocumentType(StrEnum, metaclass=_OpenEnumType):
    """The five types. What they mean is data: ``types.toml``."""

    CLINICAL_NOTE = "Clinical Note"
    PATHOLOGY_REPORT = "Pathology Report"
    GENOMIC_REPORT = "Genomic Report"
    RADIOLOGY_REPORT = "Radiology Report"
    OTHER = "Other"

    @override
    @classmethod
    def _missing_(cls, value: object) -> DocumentType | None:
        return _own_members.get(value) if isinstance(value, str) else None

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler(core_schema)
        if _own_members:
            definition = handler.resolve_ref_schema(json_schema)
            definition["enum"] = [kind.value for kind in cls]
            definition.pop("description", None)  # which says that there are five
        return json_schema


#: A site's own types in force, by name.
_own_members: dict[str, DocumentType] = {}
#: Their records, by name, in the file's order.
_own_records: Mapping[str, DocumentTypeRecord] = {}

_cache_clearers: list[Callable[[], None]] = []

#: The types of ``types.toml``, of which the built-in model has learned weights.
FIVE_TYPES = tuple(DocumentType)


def _require_plain_text(text: object) -> object:
    if isinstance(text, str) and (not text or not text.isprintable() or text != text.strip() or set(text) & set("<>")):
        raise ValueError("write one line of plain text, without < and >")
    return text


def _read_plain_code(loinc: object) -> object:
    return {"code": loinc} if isinstance(loinc, str) else loinc


_Sentence = Annotated[str, BeforeValidator(_require_plain_text), Field(max_length=400)]
_Clauses = Annotated[tuple[_Sentence, ...], Field(max_length=30)]


class TitledCoding(Coding):
    """Code of a narrower type, used for documents with a certain title."""

    names: _Clauses
    """The titles, in small letters."""


class DocumentTypeRecord(StrictRecord):
    """One document type's definition and codes: one table of a types file."""

    definition: _Sentence
    includes: _Clauses = ()
    excludes: _Clauses = ()
    loinc: Annotated[Coding | None, BeforeValidator(_read_plain_code)] = None
    """Code of a document of this type; a text is the code without its name. None: the code says "unknown"."""
    key: str | None = None
    """The key that sets this type on the expert's screen; None: only its button does."""
    report_category: Coding | None = None
    """Category of the FHIR DiagnosticReport; None: documents of this type report no results."""
    titles: tuple[TitledCoding, ...] = ()


@cache
def _load_shipped_records() -> dict[str, DocumentTypeRecord]:
    return {
        name: DocumentTypeRecord.model_validate(row) for name, row in _load_shipped_table().items() if name != "version"
    }


def load_type_records() -> dict[str, DocumentTypeRecord]:
    """Load the record of each document type in use, by name.

    The order is that of ``DocumentType``.
    """
    return {**_load_shipped_records(), **_own_records}


def list_type_names() -> list[str]:
    """Return the names of all types in use, in the order of ``DocumentType``."""
    return [kind.value for kind in DocumentType]


def get_own_types() -> dict[str, DocumentTypeRecord]:
    """Return the records of the site's own types in use, by name."""
    return dict(_own_records)


def compute_types_version() -> str:
    """Return the version of the document types in use.

    It is that of ``types.toml``, with a hash of the site's own types. Results and reviews carry it.
    """
    shipped_version = str(_load_shipped_table()["version"])
    if not _own_records:
        return shipped_version
    rows = {name: record.model_dump(mode="json") for name, record in _own_records.items()}
    return f"{shipped_version}+{hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:12]}"


def cache_until_types_change(function: Callable[Parameters, ResultT]) -> Callable[Parameters, ResultT]:
    """Cache a function's results until the document types in use change.

    Otherwise it works as ``functools.cache`` does.
    """
    cached_function = cache(function)
    _cache_clearers.append(cached_function.cache_clear)
    return cast("Callable[Parameters, ResultT]", cached_function)


def use_own_types(records: Mapping[str, DocumentTypeRecord]) -> None:
    """Replace the site's own types in this process by these types."""
    global _own_records  # noqa: PLW0603 - enumerations are the process's, and so are their members
    if records == _own_records:
        return
    _own_records = dict(records)
    _own_members.clear()
    _own_members.update((name, _create_member(name)) for name in records)
    for clear_cache in _cache_clearers:
        clear_cache()


@cache
def _create_member(name: str) -> DocumentType:
    """Create the member of this name: the same object each time.

    Members are compared by identity.
    """
    member = str.__new__(DocumentType, name)
    member._name_, member._value_ = name, name
    return member


def read_types_file(path: str) -> bytes:
    """Read a types file. UsageError TYPES-FILE if it cannot be read."""
    try:
        return read_regular_file(path, _MAX_FILE_BYTES)
    except OSError as error:
        problem = f"the file cannot be read: {error.strerror}"
        raise _build_file_error(path, problem, "Correct the setting types_file") from error


def load_own_types(path: str) -> dict[str, DocumentTypeRecord]:
    """Load a site's own types from a types file, as ``parse_own_types`` does."""
    return parse_own_types(read_types_file(path), path)


def parse_own_types(content: bytes, path: str) -> dict[str, DocumentTypeRecord]:
    """Parse the content of a types file to the records of a site's own types, by name.

    UsageError TYPES-FILE that names the file, the row and what to do if a row is incomplete, or a name or key is used
    twice or is one of evalkit's.
    """
    try:
        table = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise _build_file_error(path, "the file is not UTF-8 text", "Save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:  # the message of a syntax error names line and column
        raise _build_file_error(
            path, f"the file is not valid TOML: {_escape(str(error))}", "Correct the line that the message names"
        ) from error
    table.pop("version", None)  # a copy of types.toml has one; the file's hash is what counts
    if not 1 <= len(table) <= MAX_OWN_TYPES:
        problem = f"it has {len(table)} types; 1 to {MAX_OWN_TYPES} are possible"
        raise _build_file_error(path, problem, "Remove the types that nobody needs" if table else "Add a type")
    records: dict[str, DocumentTypeRecord] = {}
    for name, row in table.items():
        try:
            record = DocumentTypeRecord.model_validate(row)
            _require_free_name(name, records)
            _require_free_key(record.key, records)
        except ValidationError as error:
            problem = _escape(describe_first_error(error))
            raise _build_file_error(
                path, f"{_escape(name)}: {problem}", "Correct the row that the message names"
            ) from error
        except ValueError as error:
            raise _build_file_error(
                path, f"{_escape(name)}: {error}", "Correct the row that the message names"
            ) from error
        records[name] = record
    return records


def has_unknown_type_name(error: ValidationError) -> bool:
    """Return True if a well-formed but unknown name is used as document type."""
    for details in error.errors(include_url=False):
        name, expected = details["input"], details.get("ctx", {}).get("expected", "")
        if details["type"] == "enum" and isinstance(name, str) and repr(DocumentType.OTHER.value) in expected:
            with suppress(ValueError):
                _require_free_name(name, {})
                return True
    return False


def _require_free_name(name: str, records: Mapping[str, DocumentTypeRecord]) -> None:
    """Raise ValueError unless the name can be shown, and no other type has it."""
    if not (2 <= len(name) <= 40) or not all(letter.isalnum() or letter in _NAME_CHARACTERS for letter in name):
        allowed = " ".join(_NAME_CHARACTERS.strip())
        raise ValueError(f"a name has 2 to 40 letters, digits, spaces or {allowed}")
    if not name[0].isalpha() or name != " ".join(unicodedata.normalize("NFC", name).split()):
        raise ValueError("a name must begin with a letter, without double spaces or separate accents (Unicode NFC)")
    folded_name = _fold(name)
    if folded_name in map(_fold, DocumentType.__members__.values()):
        raise ValueError("this is one of evalkit's five types, which cannot be redefined; choose another name")
    if folded_name in (*_TAKEN_NAMES, *map(_fold, records)):
        raise ValueError("this name is used twice, or is reserved for an unknown type; choose another name")


def _fold(name: str) -> str:
    """Return the words of a name, without case and signs."""
    return " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", name).casefold()))


def _require_free_key(key: str | None, records: Mapping[str, DocumentTypeRecord]) -> None:
    """Raise ValueError unless the key does nothing else on the screen."""
    if key is None:
        return
    if len(key) != 1 or key not in FREE_KEYS:
        raise ValueError(f"key: choose one of {' '.join(FREE_KEYS)}, or leave the key out; the screen uses the others")
    if user := next((name for name, record in records.items() if record.key == key), None):
        raise ValueError(f"key: {key} is already the key of {user}")


def _escape(text: str) -> str:
    """Return a text of the file with what a terminal would obey shown as escapes."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)[:300]


def _build_file_error(path: str, problem: str, remedy: str) -> UsageError:
    return UsageError(
        f"types file {path}: {problem}",
        code="TYPES-FILE",
        remedy=f"{remedy}; `evalkit docs types` shows a whole file.",
    )


def get_type_coding(document_type: str, text: str = "") -> Coding:
    r"""Return a document's code: by its title if known, else by its type.

    ``text``: the document's first page. A title is a whole line among its first ones.

    >>> get_type_coding("Clinical Note").code, get_type_coding("Clinical Note", "General Hospital\nDISCHARGE SUMMARY").code
    ('34109-9', '18842-5')
    """
    record = load_type_records()[document_type]
    titles = [" ".join(line.strip(" \t:*#_-").casefold().split()) for line in text.splitlines() if line.strip()]
    for title in titles[:_TITLE_LINES]:
        for coding in record.titles:
            if title in coding.names:
                return Coding(code=coding.code, display=coding.display, system=coding.system)
    return record.loinc or _UNKNOWN


def get_report_category(document_type: str) -> Coding | None:
    """Return this type's FHIR DiagnosticReport category; None if it is no report."""
    return load_type_records()[document_type].report_category
