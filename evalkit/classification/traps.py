"""Table of traps (errors that look right), loaded from TOML files and checked.

The rows are in ``traps.toml``, in lists that other modules use too (administrative words, vendors, headers and
footers), and in a site's own file, whose rows are added or replace shipped rows.

Expressions of a site are tried on long texts before they are used, and matched with a time limit. Python's ``re``
backtracks without a limit and cannot be stopped: ``(a+)+$`` could hold up a run for years. ``regex`` reads the same
expressions and stops at a time limit.
"""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Iterable
from functools import cache, lru_cache
from string import Formatter
from typing import Annotated, Any, ClassVar, Literal

import regex
from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from evalkit.classification.schema import DocumentType, PresenceLevel
from evalkit.classification.vendors import SearchableName, Vendor, load_vendor_rows
from evalkit.core.package_tables import load_package_table
from evalkit.core.records import StrictRecord, describe_first_row_error
from evalkit.core.safe_io import read_regular_file
from evalkit.documents.furniture import load_furniture
from evalkit.errors import UsageError
from evalkit.issue import IssueSeverity

#: Time limit for one expression on one text. Shipped expressions take less than a thousandth of it on a page.
TIMEOUT_SECONDS = 2.0
#: Characters of each trial text: enough to show an expression whose time grows with the cube of the length.
_TRIAL_TEXT_LENGTH = 2000


@lru_cache(maxsize=1024)
def compile_case_insensitive(pattern: str) -> regex.Pattern[str]:
    """Compile with case ignored, and ``^`` and ``$`` at every line.

    regex.error if the expression is invalid.
    """
    return regex.compile(pattern, regex.IGNORECASE | regex.MULTILINE)


def find_first_match_with_timeout(pattern: str, text: str, timeout_seconds: float = TIMEOUT_SECONDS) -> str | None:
    """Return the first match as written in the text; None if there is none.

    UsageError TRAP-SLOW if matching takes longer than ``timeout_seconds``.
    """
    try:
        match = compile_case_insensitive(pattern).search(text, timeout=timeout_seconds)
    except TimeoutError:
        raise UsageError(
            f"the expression {pattern!r} takes more than {timeout_seconds:g} s on a page",
            code="TRAP-SLOW",
            remedy="Limit the expression's repeats, for example [^.\\n]{0,40} instead of .*",
        ) from None
    return match.group() if match else None


def require_fast_pattern(
    pattern: str, seed_texts: Iterable[str] = (), timeout_seconds: float = TIMEOUT_SECONDS
) -> None:
    """Raise UsageError TRAP-SLOW if the expression is slow on long texts.

    ``build_stress_texts`` builds these texts; ``timeout_seconds`` is the limit for each of them.
    """
    for text in build_stress_texts(pattern, seed_texts):
        find_first_match_with_timeout(pattern, text, timeout_seconds)


def build_stress_texts(pattern: str, seed_texts: Iterable[str] = ()) -> list[str]:
    """Build long texts on which a slow regular expression backtracks.

    Each text repeats one letter or digit of the expression, one frequent character or one seed text, and ends in a
    character that no expression expects.
    """
    letters = dict.fromkeys([*"aA1 \n.-,", *(piece for piece in pattern if piece.isalnum())])
    runs = [*letters, *(piece for piece in seed_texts if piece), "a ", "a1", "1 a, "]
    return [(run * (_TRIAL_TEXT_LENGTH // len(run) + 1))[:_TRIAL_TEXT_LENGTH] + "\x00" for run in runs]


TrapScope = Literal["evidence", "page", "segment", "document"]

#: Placeholders that messages and remedies of a row may have.
_PLACEHOLDERS = frozenset({"type", "level", "page", "found"})


class TrapExample(StrictRecord):
    """Example of a row: a page, and the claim about it that V3 checks.

    Fields that are left out have the usual values of this kind of row.
    """

    page: str = ""
    """Visible text of the page."""
    hidden: str = ""
    """Hidden text of the page."""
    vendor: str | None = None
    """Vendor signal of the claim."""
    quote: str | None = None
    """Quote of the claim, which is added to the page's text."""
    type: DocumentType | None = None
    level: PresenceLevel = PresenceLevel.PRIMARY
    severity: IssueSeverity | None = None
    """Severity of the worst issue that must be raised; None: the severity of the row."""


def _check_placeholders(text: str) -> str:
    placeholders = [
        (name, spec, conversion) for _, name, spec, conversion in Formatter().parse(text) if name is not None
    ]
    if any(spec or conversion for _, spec, conversion in placeholders):
        raise ValueError("a placeholder in braces must be a name alone, without ':' or '!'")
    names = {name for name, _, _ in placeholders}
    if unknown := sorted(names - _PLACEHOLDERS):
        raise ValueError(
            f"{', '.join(unknown) or 'an empty name'} is no known placeholder; choose from {', '.join(sorted(_PLACEHOLDERS))}"
        )
    return text


def _check_pattern(pattern: str) -> str:
    try:
        expression = compile_case_insensitive(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"the pattern is not a valid regular expression: {error}") from error
    if any(not match.group() for text in ("", "Ab 1.\n") for match in expression.finditer(text)):
        raise ValueError("the pattern matches empty text; add at least one required letter")
    return pattern


_MessageTemplate = Annotated[str, AfterValidator(_check_placeholders)]
_PatternText = Annotated[str, Field(min_length=1), AfterValidator(_check_pattern)]
_TrapExamples = Annotated[tuple[TrapExample, ...], Field(min_length=1)]


class Trap(StrictRecord):
    """Row of the trap table: pattern, owner, severity, and examples that test it."""

    example_field: ClassVar[str]
    """Field of ``TrapExample`` that an example has which is only a text."""
    allowed_scopes: ClassVar[tuple[TrapScope, ...]]
    default_type: ClassVar[DocumentType | None] = DocumentType.OTHER
    """Type that the claim about an example names; None: the type of the row."""

    id: str = Field(pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$")
    owner: str = Field(min_length=1)
    date: dt.date
    scope: TrapScope
    severity: IssueSeverity
    message: _MessageTemplate = ""
    """Message of the issue; empty: the default message."""
    remedy: _MessageTemplate = ""
    """Suggested fix of the issue; empty: the default one."""
    replaces: bool = False
    """True if a site's row replaces the shipped row with the same id."""
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
        """Regular expressions that the row searches."""
        return ()

    def find_match(self, text: str) -> str | None:
        """Find the first match of the row's first expression, as written in the text."""
        return find_first_match_with_timeout(self.patterns[0], text)

    def get_claimed_type(self, example: TrapExample) -> DocumentType:
        """Return the type that the claim about the example names."""
        return example.type or self.default_type or DocumentType.OTHER

    def render_message(self, default_message: str, **values: object) -> str:
        """Fill in the row's message; return the default if the row has none."""
        return self.message.format_map(_TemplateValues(values)) if self.message else default_message

    def render_remedy(self, default_remedy: str, **values: object) -> str:
        """Fill in the row's remedy; return the default if the row has none."""
        return self.remedy.format_map(_TemplateValues(values)) if self.remedy else default_remedy


class _TemplateValues(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return "–"


class RoutineVendorTrap(Trap, Vendor):
    """Row of trap 1: a laboratory of routine tests, with its few genomic tests."""

    example_field = "vendor"
    allowed_scopes = ("segment",)
    default_type = DocumentType.GENOMIC_REPORT

    genomic_assays: tuple[SearchableName, ...]


class _PrefilteredTrap(Trap):
    needs: tuple[str, ...] = ()
    """Lower-case strings, one of which every matching text contains; empty: every text is searched."""

    @field_validator("needs")
    @classmethod
    def _check_lowercase(cls, needs: tuple[str, ...]) -> tuple[str, ...]:
        if any(not substring or substring != substring.lower() for substring in needs):
            raise ValueError(
                "the words in `needs` must be in lower case, because they are compared with lower-case text"
            )
        return needs

    def can_match(self, lowercase_text: str) -> bool:
        """Return True if the text contains one of ``needs``, so that it may match."""
        return not self.needs or any(map(lowercase_text.__contains__, self.needs))


class AdministrativePhraseTrap(_PrefilteredTrap):
    """Row of trap 2: a phrase typical of administrative papers."""

    example_field = "page"
    allowed_scopes = ("segment", "document")
    default_type = DocumentType.PATHOLOGY_REPORT

    phrase: SearchableName
    pattern: _PatternText | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        """Regular expression of the row, or of its phrase as whole words.

        The phrase also matches with line breaks and with a plural s.
        """
        words = r"\s+".join(re.escape(word) for word in self.phrase.split())
        return (self.pattern or rf"(?<!\w){words}s?(?!\w)",)


class _PatternTrap(Trap):
    name: SearchableName
    pattern: _PatternText

    @property
    def patterns(self) -> tuple[str, ...]:
        """Regular expression of the row."""
        return (self.pattern,)


class PageFurnitureTrap(_PatternTrap):
    """Row of trap 3: a pattern of header or footer text, which is no evidence."""

    example_field = "quote"
    allowed_scopes = ("evidence",)


class PromptInjectionTrap(_PatternTrap, _PrefilteredTrap):
    """Row for prompt injection: a pattern of words that address a language model."""

    example_field = "page"
    allowed_scopes = ("page",)


def _check_reachable(at_least: int, available: int, noun: str) -> None:
    if at_least > available:
        raise ValueError(
            f"at_least is {at_least}, but the row has only {available} different {noun}, so that it could never apply"
        )


class OrderFormTrap(Trap):
    """Row for order forms: words, of which an order contains at least ``at_least``."""

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
    """Row for texts about a method or service: their phrases, and patterns of results."""

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
        """Regular expressions of the phrases and of the results."""
        return (*self.phrases, *self.results)

    def get_claimed_type(self, example: TrapExample) -> DocumentType:
        """Return the type of the example, or that of the row if the example has none."""
        return example.type or self.type

    def find_phrases_unless_result(self, text: str) -> list[str]:
        """Return the phrases as written in the text; empty if the text has a result."""
        if any(find_first_match_with_timeout(pattern, text) is not None for pattern in self.results):
            return []
        return [
            phrase for pattern in self.phrases if (phrase := find_first_match_with_timeout(pattern, text)) is not None
        ]


class HiddenTextTrap(Trap):
    """Row for hidden text, which raises an issue from ``words`` hidden words.

    The issue is MINOR below ``notable`` words, and has the row's severity from there.
    """

    example_field = "hidden"
    allowed_scopes = ("page",)

    words: int = Field(ge=1)
    notable: int = Field(ge=1)


class Traps(StrictRecord):
    """All rows of V3's traps, by kind."""

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
        """All rows, kind by kind."""
        return tuple(row for kind in TRAP_KINDS for row in getattr(self, kind))

    @model_validator(mode="after")
    def _check_unique_ids(self) -> Traps:
        ids = [row.id for row in self.rows]
        if repeated_ids := sorted({row_id for row_id in ids if ids.count(row_id) > 1}):
            raise ValueError(f"several rows have the id {', '.join(repeated_ids)}")
        return self

    def restrict_to_trap(self, trap: Trap) -> Traps:
        """Return a copy of the table with this row only."""
        rows_by_kind = {
            kind: tuple(candidate for candidate in getattr(self, kind) if candidate is trap) for kind in TRAP_KINDS
        }
        return self.model_copy(update=rows_by_kind)

    def merge_site_traps(self, site_traps: Traps) -> Traps:
        """Return the shipped rows, with a site's rows added or replacing them.

        ValueError if a row has a shipped id without ``replaces``, or replaces an unknown id.
        """
        shipped_ids = {trap.id for trap in self.rows}
        for trap in site_traps.rows:
            if trap.id in shipped_ids and not trap.replaces:
                raise ValueError(
                    f"{trap.id}: a shipped row has this id; choose another id, or write replaces = true (`evalkit doctor` "
                    "shows what the replacement no longer finds)"
                )
            if trap.replaces and trap.id not in shipped_ids:
                raise ValueError(
                    f"{trap.id}: replaces is true, but no shipped row has this id; correct the id or remove replaces"
                )

        # a replacement takes the place of the shipped row; new rows come last
        rows_by_kind = {
            kind: tuple({trap.id: trap for trap in (*getattr(self, kind), *getattr(site_traps, kind))}.values())
            for kind in TRAP_KINDS
        }
        return Traps.model_validate({"version": f"{self.version}+{site_traps.version}", **rows_by_kind})


#: Kinds of rows: names of the tables in the TOML files.
TRAP_KINDS = tuple(name for name in Traps.model_fields if name != "version")


@cache
def load_shipped_traps() -> Traps:
    """Load the shipped traps from all of their files; cached.

    UsageError that names the wrong row.
    """
    return _validate_traps(
        load_package_table("evalkit.classification", "traps.toml")
        | load_package_table("evalkit.classification", "administrative.toml")
        | {"routine_vendor": load_vendor_rows()["routine_vendor"], "page_furniture": load_furniture().page_furniture},
        "traps",
    )


@cache
def load_shipped_and_site_traps(site_traps_path: str | None) -> Traps:
    """Load the shipped traps, merged with the traps of a site's file; cached.

    ``site_traps_path`` None: the shipped traps alone. UsageError that names the file and the wrong row.
    """
    if site_traps_path is None:
        return load_shipped_traps()
    try:
        text = read_regular_file(site_traps_path).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(
            f"{site_traps_path} cannot be read: {reason}",
            code="TRAPS",
            remedy="Correct the path in the setting traps_file, or save the file as UTF-8.",
        ) from error
    site_traps = parse_traps(text, site_traps_path)
    _require_fast_patterns(site_traps, site_traps_path)
    try:
        return load_shipped_traps().merge_site_traps(site_traps)
    except ValidationError as error:  # two kinds of rows have the same id
        raise _build_trap_error(site_traps_path, site_traps.model_dump(), error) from error
    except ValueError as error:
        raise UsageError(
            f"{site_traps_path}: {error}", code="TRAPS", remedy="Correct the row that the message names."
        ) from error


def _require_fast_patterns(site_traps: Traps, path: str) -> None:
    """Raise UsageError that names the row if one of its expressions is slow."""
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
    """Parse and check the traps of a TOML text.

    ``source_name`` names the text in errors. UsageError that names the wrong row.
    """
    try:
        rows = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{source_name}: {error}", code="TRAPS", remedy="Correct the TOML in the line that the message names."
        ) from error
    return _validate_traps(rows, source_name)


def _validate_traps(rows: dict[str, Any], source_name: str) -> Traps:
    try:
        return Traps.model_validate(rows)
    except ValidationError as error:
        raise _build_trap_error(source_name, rows, error) from error


def _build_trap_error(source_name: str, rows: Any, error: ValidationError) -> UsageError:
    problem = describe_first_row_error(error, rows)
    return UsageError(f"{source_name}: {problem}", code="TRAPS", remedy="Correct the row that the message names.")
