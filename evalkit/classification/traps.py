"""Traps of V3, as data.

``traps.toml``, the lists that others read as well, and a site's own file whose rows come on top.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Annotated, Any, ClassVar, Literal

import regex
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from evalkit.classification.bounded_regex import (
    compile_case_insensitive,
    find_first_match_with_timeout,
    require_fast_pattern,
)
from evalkit.classification.schema import DocumentType, PresenceLevel
from evalkit.classification.vendors import SearchableName, load_vendor_rows
from evalkit.core.records import describe_first_row_error
from evalkit.core.safe_io import read_regular_file
from evalkit.documents.furniture import load_furniture
from evalkit.errors import UsageError
from evalkit.issue import IssueSeverity

TrapScope = Literal["evidence", "page", "segment", "document"]

_PLACEHOLDERS = frozenset({"type", "level", "page", "found"})
"""Placeholders of messages and remedies."""


class _TrapModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TrapExample(_TrapModel):
    """A page and what is claimed of it; what is left out is usual for the kind of row."""

    page: str = ""
    """The page's text."""
    hidden: str = ""
    """The page's hidden text."""
    vendor: str | None = None
    """Among the vendor signals."""
    quote: str | None = None
    """The evidence, which the page says as well."""
    type: DocumentType | None = None
    level: PresenceLevel = PresenceLevel.PRIMARY
    severity: IssueSeverity | None = None
    """The worst that must be raised; None: the row's."""


def _check_placeholders(text: str) -> str:
    placeholders = [
        (name, spec, conversion) for _, name, spec, conversion in Formatter().parse(text) if name is not None
    ]
    if any(spec or conversion for _, spec, conversion in placeholders):
        raise ValueError("a name in braces has no ':' or '!'")
    names = {name for name, _, _ in placeholders}
    if unknown := sorted(names - _PLACEHOLDERS):
        raise ValueError(
            f"{', '.join(unknown) or 'an empty name'} cannot be filled in; known names: {', '.join(sorted(_PLACEHOLDERS))}"
        )
    return text


def _check_pattern(pattern: str) -> str:
    try:
        expression = compile_case_insensitive(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
    if any(not match.group() for text in ("", "Ab 1.\n") for match in expression.finditer(text)):
        raise ValueError("it matches empty text; add at least one required letter")
    return pattern


_MessageTemplate = Annotated[str, AfterValidator(_check_placeholders)]
_PatternText = Annotated[str, Field(min_length=1), AfterValidator(_check_pattern)]
_TrapExamples = Annotated[tuple[TrapExample, ...], Field(min_length=1)]


class Trap(_TrapModel):
    """One row: what it is, who answers for it, and how to see that it is awake."""

    example_field: ClassVar[str]
    """Which field of an example a text alone is."""
    allowed_scopes: ClassVar[tuple[TrapScope, ...]]
    default_type: ClassVar[DocumentType | None] = DocumentType.OTHER
    """The type that an example's page is claimed to be; None: the row's."""

    id: str = Field(pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$")
    owner: str = Field(min_length=1)
    date: dt.date
    scope: TrapScope
    severity: IssueSeverity
    message: _MessageTemplate = ""
    """Instead of the usual one."""
    remedy: _MessageTemplate = ""
    """Instead of the usual suggestion."""
    replaces: bool = False
    """If a site's row takes the place of the shipped row with its id."""
    fires: _TrapExamples
    silent: _TrapExamples

    @model_validator(mode="before")
    @classmethod
    def _wrap_bare_examples(cls, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        return row | {
            name: [{cls.example_field: example} if isinstance(example, str) else example for example in row[name]]
            for name in ("fires", "silent")
            if isinstance(row.get(name), list)
        }

    @model_validator(mode="after")
    def _check_scope(self) -> Trap:
        if self.scope not in self.allowed_scopes:
            raise ValueError(f"scope must be {' or '.join(self.allowed_scopes)}")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """The regular expressions that it looks for."""
        return ()

    def get_claimed_type(self, example: TrapExample) -> DocumentType:
        """Get the type that the example's page is claimed to be."""
        return example.type or self.default_type or DocumentType.OTHER

    def render_message(self, default_message: str, **values: object) -> str:
        """Render its own message, or return the default."""
        return self.message.format_map(_TemplateValues(values)) if self.message else default_message

    def render_remedy(self, default_remedy: str, **values: object) -> str:
        """Render its own remedy, or return the default."""
        return self.remedy.format_map(_TemplateValues(values)) if self.remedy else default_remedy


class _TemplateValues(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return "–"


class RoutineVendorTrap(Trap):
    """A laboratory of trap 1."""

    example_field = "vendor"
    allowed_scopes = ("segment",)
    default_type = DocumentType.GENOMIC_REPORT

    name: SearchableName
    names: tuple[SearchableName, ...] = Field(min_length=1)
    short_names: tuple[SearchableName, ...] = ()
    genomic_assays: tuple[SearchableName, ...]


class _PrefilteredTrap(Trap):
    needs: tuple[str, ...] = ()
    """Lower-case words of which a text must have some; empty: no condition."""

    @field_validator("needs")
    @classmethod
    def _check_lowercase(cls, needs: tuple[str, ...]) -> tuple[str, ...]:
        if any(not substring or substring != substring.lower() for substring in needs):
            raise ValueError("use lower case: they are compared with lower-case text")
        return needs

    def can_match(self, lowercase_text: str) -> bool:
        """Tell if a search is worth while in a text of this lower-case form."""
        return not self.needs or any(map(lowercase_text.__contains__, self.needs))


class AdministrativePhraseTrap(_PrefilteredTrap):
    """A phrase of trap 2."""

    example_field = "page"
    allowed_scopes = ("segment", "document")
    default_type = DocumentType.PATHOLOGY_REPORT

    phrase: SearchableName
    pattern: _PatternText | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        """Its regular expression, else its phrase in whole words.

        Line breaks and a plural s do not matter.
        """
        words = r"\s+".join(re.escape(word) for word in self.phrase.split())
        return (self.pattern or rf"(?<!\w){words}s?(?!\w)",)

    def find_match(self, text: str) -> str | None:
        """Find the first match in the text, as it is written there."""
        return find_first_match_with_timeout(self.patterns[0], text)


class _PatternTrap(Trap):
    name: SearchableName
    pattern: _PatternText

    @property
    def patterns(self) -> tuple[str, ...]:
        """Its regular expression."""
        return (self.pattern,)

    def find_match(self, text: str) -> str | None:
        """Find the first match in the text, as it is written there."""
        return find_first_match_with_timeout(self.pattern, text)

    def has_match(self, text: str) -> bool:
        """Tell if the text has a match."""
        return self.find_match(text) is not None


class PageFurnitureTrap(_PatternTrap):
    """One kind of header or footer text of trap 3."""

    example_field = "quote"
    allowed_scopes = ("evidence",)


class PromptInjectionTrap(_PatternTrap, _PrefilteredTrap):
    """One kind of words that speak to a machine."""

    example_field = "page"
    allowed_scopes = ("page",)


def _check_reachable(at_least: int, available: int, noun: str) -> None:
    if at_least > available:
        raise ValueError(f"at_least is {at_least}, and there are {available} different {noun}: it could never fire")


class OrderFormTrap(Trap):
    """Words of forms that order something."""

    example_field = "page"
    allowed_scopes = ("page",)
    default_type = DocumentType.GENOMIC_REPORT

    at_least: int = Field(ge=1)
    words: tuple[SearchableName, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_threshold(self) -> OrderFormTrap:
        _check_reachable(self.at_least, len({" ".join(word.lower().split()) for word in self.words}), "words")
        return self


class BoilerplateTrap(Trap):
    """Words about a method or a service, in place of a result."""

    example_field = "page"
    allowed_scopes = ("segment",)
    default_type = None

    type: DocumentType
    at_least: int = Field(ge=1)
    phrases: tuple[_PatternText, ...] = Field(min_length=1)
    results: tuple[_PatternText, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_threshold(self) -> BoilerplateTrap:
        _check_reachable(self.at_least, len(set(self.phrases)), "phrases")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """Expressions of phrases and of results."""
        return (*self.phrases, *self.results)

    def get_claimed_type(self, example: TrapExample) -> DocumentType:
        """Get the example's type, else the row's own."""
        return example.type or self.type

    def find_phrases_unless_result(self, text: str) -> list[str]:
        """Find the phrases in the text, as written; none if it has a result."""
        if any(find_first_match_with_timeout(pattern, text) is not None for pattern in self.results):
            return []
        return [
            phrase for pattern in self.phrases if (phrase := find_first_match_with_timeout(pattern, text)) is not None
        ]


class HiddenTextTrap(Trap):
    """Amount of hidden text that is remarkable."""

    example_field = "hidden"
    allowed_scopes = ("page",)

    words: int = Field(ge=1)
    notable: int = Field(ge=1)


class Traps(_TrapModel):
    """``traps.toml``."""

    version: str
    routine_vendor: tuple[RoutineVendorTrap, ...] = ()
    administrative: tuple[AdministrativePhraseTrap, ...] = ()
    page_furniture: tuple[PageFurnitureTrap, ...] = ()
    order_form: tuple[OrderFormTrap, ...] = ()
    boilerplate: tuple[BoilerplateTrap, ...] = ()
    addressed_to_model: tuple[PromptInjectionTrap, ...] = ()
    hidden_text: tuple[HiddenTextTrap, ...] = ()

    @property
    def rows(self) -> tuple[Trap, ...]:
        """All of them, kind by kind."""
        return tuple(row for kind in TRAP_KINDS for row in getattr(self, kind))

    @model_validator(mode="after")
    def _check_unique_ids(self) -> Traps:
        ids = [row.id for row in self.rows]
        if repeated_ids := sorted({row_id for row_id in ids if ids.count(row_id) > 1}):
            raise ValueError(f"several rows have the id {', '.join(repeated_ids)}")
        return self

    def restrict_to_trap(self, trap: Trap) -> Traps:
        """With this row alone."""
        rows_by_kind = {
            kind: tuple(candidate for candidate in getattr(self, kind) if candidate is trap) for kind in TRAP_KINDS
        }
        return self.model_copy(update=rows_by_kind)

    def merge_site_traps(self, site_traps: Traps) -> Traps:
        """Merge a site's rows into the shipped ones.

        ValueError if a row has a shipped id without ``replaces``, or replaces an unknown id.
        """
        shipped_ids = {trap.id for trap in self.rows}
        for trap in site_traps.rows:
            if trap.id in shipped_ids and not trap.replaces:
                raise ValueError(
                    f"{trap.id}: a shipped row has this id; choose another, or write replaces = true, and `evalkit doctor` "
                    "shows what that gives up"
                )
            if trap.replaces and trap.id not in shipped_ids:
                raise ValueError(f"{trap.id}: no shipped row has this id to replace; remove replaces")

        # In the shipped order, each row replaced in its place; new ones come last.
        rows_by_kind = {
            kind: tuple({trap.id: trap for trap in (*getattr(self, kind), *getattr(site_traps, kind))}.values())
            for kind in TRAP_KINDS
        }
        return Traps.model_validate({"version": f"{self.version}+{site_traps.version}", **rows_by_kind})


TRAP_KINDS = tuple(name for name in Traps.model_fields if name != "version")
"""The kinds of rows, in the order of the file."""


@cache
def load_shipped_traps() -> Traps:
    """Load the shipped traps from all of their files.

    UsageError that names the wrong row.
    """
    rows = _parse_toml_rows((files("evalkit.classification") / "traps.toml").read_text("utf-8"), "traps")
    administrative_text = (files("evalkit.classification") / "administrative.toml").read_text("utf-8")
    return _validate_traps(
        rows
        | _parse_toml_rows(administrative_text, "administrative.toml")
        | {"routine_vendor": load_vendor_rows()["routine_vendor"], "page_furniture": load_furniture().page_furniture},
        "traps",
    )


@cache
def load_shipped_and_site_traps(site_traps_path: str | None) -> Traps:
    """Load the shipped traps, and those of a site's own file.

    UsageError that names the file and the wrong row.
    """
    if site_traps_path is None:
        return load_shipped_traps()
    try:
        text = read_regular_file(site_traps_path).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise UsageError(
            f"{site_traps_path} cannot be read: {reason}", code="TRAPS", remedy="Correct the setting traps_file."
        ) from error
    site_traps = parse_traps(text, site_traps_path)
    _require_fast_patterns(site_traps, site_traps_path)
    try:
        return load_shipped_traps().merge_site_traps(site_traps)
    except ValidationError as error:  # an id of another kind's row
        raise _build_trap_error(site_traps_path, site_traps.model_dump(), error) from error
    except ValueError as error:
        raise UsageError(f"{site_traps_path}: {error}", code="TRAPS", remedy="Correct that row.") from error


def _require_fast_patterns(site_traps: Traps, path: str) -> None:
    """Raise UsageError that names the row of a slow expression."""
    for trap in site_traps.rows:
        texts = [
            text
            for example in (*trap.fires, *trap.silent)
            for text in (example.page, example.hidden, example.quote or "")
            if text
        ]
        for pattern in trap.patterns:
            try:
                require_fast_pattern(pattern, texts)
            except UsageError as error:
                raise UsageError(f"{path}: {trap.id}: {error.message}", code="TRAPS", remedy=error.remedy) from error


def parse_traps(text: str, source_name: str = "traps") -> Traps:
    """Traps from the text of a TOML file. UsageError naming the row that is wrong."""
    return _validate_traps(_parse_toml_rows(text, source_name), source_name)


def _parse_toml_rows(text: str, source_name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source_name}: {error}", code="TRAPS", remedy="Correct that line.") from error


def _validate_traps(rows: dict[str, Any], source_name: str) -> Traps:
    try:
        return Traps.model_validate(rows)
    except ValidationError as error:
        raise _build_trap_error(source_name, rows, error) from error


def _build_trap_error(source_name: str, rows: Any, error: ValidationError) -> UsageError:
    problem = describe_first_row_error(error, rows)
    return UsageError(f"{source_name}: {problem}", code="TRAPS", remedy="Correct that row.")
