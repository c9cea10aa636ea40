"""What V3 knows, as data: ``traps.toml``, and a site's own file of the same form whose rows come on top."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from string import Formatter
from typing import Annotated, Any, ClassVar, Literal

import regex
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from evalkit.classification.expressions import compiled, search, try_out
from evalkit.classification.schema import DocumentType, PresenceLevel
from evalkit.errors import UsageError
from evalkit.grounding.normalise import canonical_text
from evalkit.issue import IssueSeverity
from evalkit.regular import read_regular

Scope = Literal["evidence", "page", "segment", "document"]

_FILLED = frozenset({"type", "level", "page", "found"})
"""What messages and remedies may name."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Example(_Data):
    """A page and what is claimed of it; what is left out is usual for the kind of row."""

    page: str = ""
    """What the page says."""
    hidden: str = ""
    """What it says and nobody sees."""
    vendor: str | None = None
    """Among the vendor signals."""
    quote: str | None = None
    """The evidence, which the page says as well."""
    type: DocumentType | None = None
    level: PresenceLevel = PresenceLevel.PRIMARY
    severity: IssueSeverity | None = None
    """The worst that must be raised; None: the row's."""


def _fillable(text: str) -> str:
    slots = [(name, spec, how) for _, name, spec, how in Formatter().parse(text) if name is not None]
    if any(spec or how for _, spec, how in slots):
        raise ValueError("a name in braces stands alone, without ':' or '!'")
    names = {name for name, _, _ in slots}
    if unknown := sorted(names - _FILLED):
        raise ValueError(f"{', '.join(unknown) or 'an empty name'} cannot be filled in: there are {sorted(_FILLED)}")
    return text


def _compiles(pattern: str) -> str:
    try:
        expression = compiled(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
    if any(not found.group() for text in ("", "Ab 1.\n") for found in expression.finditer(text)):
        raise ValueError("it finds nothing at all in any text; say at least one letter that must be there")
    return pattern


def _has_letters(text: str) -> str:
    if not plain(text):
        raise ValueError("it has no letter and no digit, and would be in every text; leave it away")
    return text


_Text = Annotated[str, AfterValidator(_fillable)]
_Pattern = Annotated[str, Field(min_length=1), AfterValidator(_compiles)]
_Name = Annotated[str, AfterValidator(_has_letters)]
_Some = Annotated[tuple[Example, ...], Field(min_length=1)]


class Trap(_Data):
    """One row: what it is, who answers for it, and how to see that it is awake."""

    looked_at: ClassVar[str]
    """Which field of an example a text alone is."""
    scopes: ClassVar[tuple[Scope, ...]]
    usual_type: ClassVar[DocumentType | None] = DocumentType.OTHER
    """What an example's page is claimed to be; None: the row says it."""

    id: str = Field(pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$")
    owner: str = Field(min_length=1)
    date: dt.date
    scope: Scope
    severity: IssueSeverity
    message: _Text = ""
    """Instead of the usual one."""
    remedy: _Text = ""
    """Instead of the usual suggestion."""
    replaces: bool = False
    """Of a site's row: it takes the place of the shipped one with its id."""
    fires: _Some
    silent: _Some

    @model_validator(mode="before")
    @classmethod
    def _texts_are_examples(cls, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        return row | {
            name: [{cls.looked_at: one} if isinstance(one, str) else one for one in row[name]]
            for name in ("fires", "silent")
            if isinstance(row.get(name), list)
        }

    @model_validator(mode="after")
    def _looks_where_it_can(self) -> Trap:
        if self.scope not in self.scopes:
            raise ValueError(f"scope must be {' or '.join(self.scopes)}")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """The regular expressions that it looks for."""
        return ()

    def claimed(self, example: Example) -> DocumentType:
        """What the example's page is claimed to be."""
        return example.type or self.usual_type or DocumentType.OTHER

    def worded(self, usual: str, **values: object) -> str:
        """Its own message, or the usual one."""
        return self.message.format_map(_Values(values)) if self.message else usual

    def remedied(self, usual: str, **values: object) -> str:
        """Its own remedy, or the usual one."""
        return self.remedy.format_map(_Values(values)) if self.remedy else usual


class _Values(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return "–"


def plain(text: str) -> str:
    """Letters and digits alone, to compare names by."""
    return _plain(text)


@lru_cache(maxsize=512)  # the vendors' names, and the letterheads that are compared with each of them
def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, canonical_text(text)))


class RoutineVendor(Trap):
    """A laboratory of trap 1."""

    looked_at = "vendor"
    scopes = ("segment",)
    usual_type = DocumentType.GENOMIC_REPORT

    name: _Name
    names: tuple[_Name, ...] = Field(min_length=1)
    genomic_assays: tuple[_Name, ...]

    def is_in(self, text: str) -> bool:
        """Whether the text has one of its names; case, spaces and punctuation do not matter."""
        said = plain(text)
        return any(plain(name) in said for name in self.names)


class Administrative(Trap):
    """A phrase of trap 2."""

    looked_at = "page"
    scopes = ("segment", "document")
    usual_type = DocumentType.PATHOLOGY_REPORT

    phrase: _Name


class _Named(Trap):
    name: _Name
    pattern: _Pattern

    @property
    def patterns(self) -> tuple[str, ...]:
        """Its regular expression."""
        return (self.pattern,)

    def search(self, text: str) -> str | None:
        """The first place in the text, as it is written there."""
        return search(self.pattern, text)

    def matches(self, text: str) -> bool:
        """Whether the text holds it."""
        return self.search(text) is not None


class PageFurniture(_Named):
    """One kind of header or footer text of trap 3."""

    looked_at = "quote"
    scopes = ("evidence",)


class AddressedToModel(_Named):
    """One kind of words that speak to a machine."""

    looked_at = "page"
    scopes = ("page",)

    needs: tuple[str, ...] = ()
    """Of these small letters a text must have some; none: whatever the text."""

    @field_validator("needs")
    @classmethod
    def _are_small(cls, needs: tuple[str, ...]) -> tuple[str, ...]:
        if any(not one or one != one.lower() for one in needs):
            raise ValueError("they are compared with small letters")
        return needs

    def may_be_in(self, lowered: str) -> bool:
        """Whether it is worth looking for it in a text of which these are the small letters."""
        return not self.needs or any(map(lowered.__contains__, self.needs))


def _check_reachable(at_least: int, most: int, what: str) -> None:
    if at_least > most:
        raise ValueError(f"at_least is {at_least}, and there are {most} different {what}: it could never fire")


class OrderForm(Trap):
    """Words of forms that order something."""

    looked_at = "page"
    scopes = ("page",)
    usual_type = DocumentType.GENOMIC_REPORT

    at_least: int = Field(ge=1)
    words: tuple[_Name, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _can_fire(self) -> OrderForm:
        _check_reachable(self.at_least, len({" ".join(word.lower().split()) for word in self.words}), "words")
        return self


class Boilerplate(Trap):
    """Words about a method or a service, in place of a result."""

    looked_at = "page"
    scopes = ("segment",)
    usual_type = None

    type: DocumentType
    at_least: int = Field(ge=1)
    phrases: tuple[_Pattern, ...] = Field(min_length=1)
    results: tuple[_Pattern, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _can_fire(self) -> Boilerplate:
        _check_reachable(self.at_least, len(set(self.phrases)), "phrases")
        return self

    @property
    def patterns(self) -> tuple[str, ...]:
        """Of phrases and of results."""
        return (*self.phrases, *self.results)

    def claimed(self, example: Example) -> DocumentType:
        """The row's own type, if the example says none."""
        return example.type or self.type

    def found(self, text: str) -> list[str]:
        """The phrases in the text, as it writes them; none where it says a result."""
        if any(search(one, text) is not None for one in self.results):
            return []
        return [found for one in self.phrases if (found := search(one, text)) is not None]


class HiddenText(Trap):
    """How much of what nobody sees is remarkable."""

    looked_at = "hidden"
    scopes = ("page",)

    words: int = Field(ge=1)
    notable: int = Field(ge=1)


class Traps(_Data):
    """``traps.toml``."""

    version: str
    routine_vendor: tuple[RoutineVendor, ...] = ()
    administrative: tuple[Administrative, ...] = ()
    page_furniture: tuple[PageFurniture, ...] = ()
    order_form: tuple[OrderForm, ...] = ()
    boilerplate: tuple[Boilerplate, ...] = ()
    addressed_to_model: tuple[AddressedToModel, ...] = ()
    hidden_text: tuple[HiddenText, ...] = ()

    @property
    def rows(self) -> tuple[Trap, ...]:
        """All of them, kind by kind."""
        return tuple(row for kind in KINDS for row in getattr(self, kind))

    @model_validator(mode="after")
    def _ids_are_names(self) -> Traps:
        ids = [row.id for kind in KINDS for row in getattr(self, kind)]
        if twice := sorted({one for one in ids if ids.count(one) > 1}):
            raise ValueError(f"several rows have the id {', '.join(twice)}")
        return self

    def only(self, row: Trap) -> Traps:
        """With this row alone."""
        rows = {kind: tuple(one for one in getattr(self, kind) if one is row) for kind in KINDS}
        return self.model_copy(update=rows)

    def with_rows(self, more: Traps) -> Traps:
        """These and the others. ValueError where one of the others has an id that is here and does not say that it
        replaces it, or says so of an id that is not here.
        """
        here = {row.id for row in self.rows}
        for row in more.rows:
            if row.id in here and not row.replaces:
                raise ValueError(
                    f"{row.id}: a shipped row has this id; choose another, or write replaces = true, and `evalkit doctor` "
                    "says what is given up by that"
                )
            if row.replaces and row.id not in here:
                raise ValueError(f"{row.id}: no shipped row has this id that it could replace; leave replaces away")

        def together(ours: Sequence[Trap], theirs: Sequence[Trap]) -> Iterator[Trap]:
            by_id = {row.id: row for row in theirs}
            yield from (by_id.pop(row.id, row) for row in ours)
            yield from by_id.values()

        rows = {kind: tuple(together(getattr(self, kind), getattr(more, kind))) for kind in KINDS}
        return Traps.model_validate({"version": f"{self.version}+{more.version}", **rows})


KINDS = tuple(name for name in Traps.model_fields if name != "version")
"""The kinds of rows, in the order of the file."""


@cache
def shipped_traps() -> Traps:
    """The traps that evalkit ships. UsageError naming the row that is wrong."""
    return read_traps((files("evalkit.classification") / "traps.toml").read_text("utf-8"))


@cache
def traps_of(path: str | None) -> Traps:
    """The shipped traps, and those of a site's own file. UsageError naming the file and the row that is wrong."""
    if path is None:
        return shipped_traps()
    try:
        text = read_regular(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise UsageError(
            f"{path} cannot be read: {reason}", code="TRAPS", remedy="Correct the setting traps_file."
        ) from error
    own = read_traps(text, path)
    _check_expressions(own, path)
    try:
        return shipped_traps().with_rows(own)
    except ValidationError as error:  # an id of another kind's row
        raise _wrong(path, own.model_dump(), error) from error
    except ValueError as error:
        raise UsageError(f"{path}: {error}", code="TRAPS", remedy="Correct that row.") from error


def _check_expressions(own: Traps, path: str) -> None:
    """UsageError naming the row of an expression that some text keeps busy: it would hold up every run."""
    for row in own.rows:
        texts = [text for one in (*row.fires, *row.silent) for text in (one.page, one.hidden, one.quote or "") if text]
        for pattern in row.patterns:
            try:
                try_out(pattern, texts)
            except UsageError as error:
                raise UsageError(f"{path}: {row.id}: {error.message}", code="TRAPS", remedy=error.remedy) from error


def read_traps(text: str, name: str = "traps") -> Traps:
    """Traps from the text of a TOML file. UsageError naming the row that is wrong."""
    try:
        rows = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: {error}", code="TRAPS", remedy="Correct that line.") from error
    try:
        return Traps.model_validate(rows)
    except ValidationError as error:
        raise _wrong(name, rows, error) from error


def _wrong(name: str, rows: Any, error: ValidationError) -> UsageError:
    first = error.errors(include_url=False, include_input=False)[0]
    where, at = [], rows
    for part in first["loc"]:
        try:
            at = at[part]
        except (KeyError, IndexError, TypeError):
            at = None
        own = at.get("id") if isinstance(at, dict) else None
        where.append(f"{part} ({own})" if own else str(part))
    message = first["msg"].removeprefix("Value error, ")
    return UsageError(
        f"{name}: {' → '.join(where)}: {message}".replace(": : ", ": "), code="TRAPS", remedy="Correct that row."
    )
