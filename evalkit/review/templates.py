"""What an expert says about a statement template: edges moved, columns named, signs and dates put right.

Every move gives a new template that is one: what would be none is refused, and the template stays what it was. An edge is
called by what it belongs to, counted from 0 in the template's order: ``region.0.bottom``, ``column.2.left``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

from pydantic import ValidationError

from evalkit.errors import EvalkitError, ReviewRefused
from evalkit.review.packet import SMEPacket
from evalkit.statements.dates import FORMATS
from evalkit.statements.reconcile import Reconciliation
from evalkit.statements.template import (
    Amounts,
    ColumnName,
    PageKind,
    StatementTemplate,
    Status,
    read_template,
)

Side = Literal["left", "top", "right", "bottom"]

_SIDES: tuple[Side, ...] = get_args(Side)
_ACROSS: tuple[Side, Side] = ("left", "right")
_OPPOSITE: dict[Side, Side] = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}
_EDGE = re.compile(r"(?P<part>region|column)\.(?P<at>\d+)\.(?P<side>left|top|right|bottom)")
#: Two edges of one region or column never come nearer, as a fraction of the page.
ROOM = 0.005
#: So near, as a fraction of the page, two hands put an edge to the same place: half a line of print.
_HAND = 0.005
#: Edges are kept to so many decimals: a twentieth of a point on a letter page.
_DECIMALS = 4
#: Edges of two columns that lie so near are one.
_JOINED = 0.0006

#: Where a region's transactions stand, for a clinician's eye: behind "transactions on".
PAGE_WORDS: dict[PageKind, str] = {
    "first": "the first page",
    "middle": "the middle pages",
    "last": "the last page",
    "later": "all pages but the first",
    "any": "every page",
}
COLUMN_WORDS: dict[ColumnName, str] = {
    "date": "date",
    "value_date": "value date",
    "description": "description",
    "debit": "debit (money out)",
    "credit": "credit (money in)",
    "amount": "amount (in and out)",
    "balance": "balance",
    "check_number": "check number",
    "other": "read by nobody",
}


class _Edge(NamedTuple):
    part: str
    at: int
    side: Side


class Choice(NamedTuple):
    """Something that is said of the whole template, one of several ways."""

    question: str
    read: Callable[[StatementTemplate], str]
    options: Callable[[StatementTemplate], Mapping[str, str]]
    """value → what it is called."""
    write: Callable[[StatementTemplate, str], Mapping[str, Any]]
    """What changes of the template with a value that ``options`` has."""


def _amounts(**changed: Any) -> Callable[[StatementTemplate], Mapping[str, Any]]:
    return lambda template: {"amounts": {**template.amounts.model_dump(mode="json"), **changed}}


def _signed(amounts: Amounts) -> str:
    return "deposits" if "minus" in amounts.deposit else "withdrawals"


def _with_signs(template: StatementTemplate, value: str) -> Mapping[str, Any]:
    amounts = template.amounts
    if _signed(amounts) == value:
        return {}
    return _amounts(deposit=amounts.withdrawal, withdrawal=amounts.deposit)(template)


def _formats(template: StatementTemplate) -> Mapping[str, str]:
    own = template.dates.formats
    return {" or ".join(own): " or ".join(map(_day, own))} | {form: _day(form) for form in FORMATS}


def _day(form: str) -> str:
    """A format as a person writes it: ``31/12/2024``."""
    for code, words in {"%d": "31", "%m": "12", "%b": "Dec", "%Y": "2024", "%y": "24"}.items():
        form = form.replace(code, words)
    return form


#: What an expert may choose of a template, by name.
CHOICES: dict[str, Choice] = {
    "signs": Choice(
        "Amounts with a minus, brackets or DR are",
        lambda template: _signed(template.amounts),
        lambda _: {"withdrawals": "withdrawals", "deposits": "deposits"},
        _with_signs,
    ),
    "unmarked": Choice(
        "Amounts without a sign are",
        lambda template: template.amounts.unmarked,
        lambda _: {"deposit": "deposits", "withdrawal": "withdrawals", "section": "as the heading above says"},
        lambda template, value: _amounts(unmarked=value)(template),
    ),
    "balance": Choice(
        "A printed balance is",
        lambda template: template.amounts.balance,
        lambda _: {"held": "money held", "owed": "a debt"},
        lambda template, value: _amounts(balance=value)(template),
    ),
    "decimal": Choice(
        "Cents stand behind",
        lambda template: template.amounts.decimal,
        lambda _: {".": "a point: 1,234.56", ",": "a comma: 1.234,56"},
        lambda template, value: _amounts(decimal=value)(template),
    ),
    "dates": Choice(
        "Dates are written",
        lambda template: " or ".join(template.dates.formats),
        _formats,
        lambda template, value: {"dates": {**template.dates.model_dump(mode="json"), "formats": value.split(" or ")}},
    ),
}


def template_of(packet: SMEPacket) -> StatementTemplate:
    """The template that a case is about, as it was when the case was made. ReviewRefused where it is about none."""
    if packet.template_case is None:
        raise _refused(f"case {packet.case_id!r} is not about a template", "Open another case.")
    return read_template(packet.template_case.template, packet.template_case.template_id)


def moved(template: StatementTemplate, name: str, to: float, *, by: StatementTemplate) -> StatementTemplate:
    """The template with that edge at ``to``, a fraction of the page; as near to it as there is room.

    Columns that share an edge in ``by``, the template as it was when the case was opened, go on sharing it; where that
    one has other columns, those that share one now. ReviewRefused for an edge that there is not.
    """
    edge = _edge(template, name)
    together = [edge, *_joined_with(_of_same_columns(by, template), edge)]
    low = max(_bounds(template, one)[0] for one in together)
    high = min(_bounds(template, one)[1] for one in together)
    place = round(min(max(to, low), high), _DECIMALS)
    plain = template.model_dump(mode="json")
    for one in together:
        if one.part == "region":
            plain["region"][one.at]["box"][_SIDES.index(one.side)] = place
        else:
            plain["column"][one.at]["x"][one.side == "right"] = place
    return _checked(plain)


def place_of(template: StatementTemplate, name: str) -> float:
    """Where an edge is, as a fraction of the page. ReviewRefused for one that there is not."""
    return _place(template, _edge(template, name))


def column_edges(template: StatementTemplate, by: StatementTemplate) -> list[tuple[str, str]]:
    """The edges of the columns, from the left, with what each is called; one that two columns share is one: see ``moved``."""
    by = _of_same_columns(by, template)
    found: list[tuple[str, str]] = []
    taken: set[_Edge] = set()
    edges = [_Edge("column", at, side) for at in range(len(template.columns)) for side in _ACROSS]
    for edge in sorted(edges, key=lambda one: _place(template, one)):
        if edge in taken:
            continue
        joined = _joined_with(by, edge)
        taken.update(joined)
        own = _column_name(template, edge.at)
        if joined:
            words = f"edge between {own} and {_column_name(template, joined[0].at)}"
            if edge.side == "left":
                words = f"edge between {_column_name(template, joined[0].at)} and {own}"
        else:
            words = f"{edge.side} edge of {own}"
        found.append((f"column.{edge.at}.{edge.side}", words))
    return found


def with_region(template: StatementTemplate, page: int, pages: int) -> StatementTemplate:
    """The template with a box on page ``page`` of ``pages``, both from 1, and on all that are like it.

    It begins where the last one is. ReviewRefused where the page has one.
    """
    if template.regions_on(page, pages):
        raise _refused("this page has a box already", "Move its edges.")
    if page == 1:
        kind = "first"
    elif template.regions_on(pages, pages):
        kind = "middle"
    else:
        kind = "later" if not any(template.regions_on(other, pages) for other in range(2, pages)) else "last"
    plain = template.model_dump(mode="json")
    plain["region"].append({"pages": kind, "box": list(template.regions[-1].box)})
    return _checked(plain)


def renamed(template: StatementTemplate, at: int, name: str) -> StatementTemplate:
    """The template with that column (from 0) of that name, and what follows from it for the others.

    Who has the name already takes this column's old one. Debit and credit take the place of an amount, and an amount
    theirs. ReviewRefused where no row could be read any more.
    """
    if name not in COLUMN_WORDS or not 0 <= at < len(template.columns):
        raise _refused("there is no such column", "Reload the page.")
    names: list[str] = [column.name for column in template.columns]
    if name != "other" and name in names:
        names[names.index(name)] = names[at]
    names[at] = name
    for other, own in enumerate(names):
        if other != at and name == "amount" and own in ("debit", "credit"):
            names[other] = "other"
        elif other != at and name in ("debit", "credit") and own == "amount":
            opposite = "credit" if name == "debit" else "debit"
            names[other] = "other" if opposite in names else opposite
    plain = template.model_dump(mode="json")
    for column, own in zip(plain["column"], names, strict=True):
        column["name"] = own
    return _checked(plain)


def chosen(template: StatementTemplate, what: str, value: str) -> StatementTemplate:
    """The template with one of ``CHOICES`` made. ReviewRefused for what cannot be chosen."""
    choice = CHOICES.get(what)
    if choice is None or value not in choice.options(template):
        raise _refused("this cannot be chosen", "Reload the page.")
    return _checked(template.model_dump(mode="json") | dict(choice.write(template, value)))


def given_template(packet: SMEPacket, given: object) -> StatementTemplate:
    """A corrected template as it was given from Python: one, or its TOML text. ReviewRefused.

    Its version and status are not taken over: both follow from the review.
    """
    agents = template_of(packet)
    try:
        said = given if isinstance(given, StatementTemplate) else read_template(str(given), "corrected_template")
    except EvalkitError as error:
        raise _refused(error.message, error.remedy) from error
    if said.template_id != agents.template_id:
        raise _refused("corrected_template has another template_id", f"The case is about {agents.template_id!r}.")
    return said.model_copy(update={"version": agents.version, "status": agents.status})


def approved(agents: StatementTemplate, said: StatementTemplate) -> StatementTemplate:
    """The template as it is relied on from now on: stable, and a new version where it was changed."""
    version = agents.version + (said != agents)
    return said.model_copy(update={"status": Status.STABLE, "version": version})


def edited(packet: SMEPacket, after: object) -> StatementTemplate | None:
    """What a review left, as the draft that it was made of; None where it changed nothing, or left no template."""
    agents = template_of(packet)
    if not isinstance(after, StatementTemplate):
        return None
    said = after.model_copy(update={"version": agents.version, "status": agents.status})
    return None if said == agents else said


def said_the_same(one: StatementTemplate, other: StatementTemplate) -> bool:
    """Whether two experts left the same template: no two hands drop an edge on the same hundredth of a percent."""
    plain = [each.model_dump(mode="json") for each in (one, other)]
    edges = [
        [place for part, key in (("region", "box"), ("column", "x")) for row in each[part] for place in row.pop(key)]
        for each in plain
    ]
    return plain[0] == plain[1] and all(abs(was - now) <= _HAND for was, now in zip(*edges, strict=True))


def unmet(reconciliation: Reconciliation) -> str:
    """What is wrong with the sums, in a sentence; empty where there are sums and all are met."""
    if reconciliation.is_met:
        return ""
    failing = sum(not check.is_met for check in reconciliation.checks)
    if failing:
        counted = f"{failing} of {len(reconciliation.checks)}"
        return f"{counted} sums {'is' if failing == 1 else 'are'} not met"
    return "the statement prints no sum to check by"


def changes(agents: StatementTemplate, said: StatementTemplate) -> Iterator[str]:
    """What differs between two templates, a sentence each."""
    told = {"version", "status"}
    if _is_alike(agents, said):
        told |= {"regions", "columns"}
        yield from _geometry(agents, said)
    for what, choice in CHOICES.items():
        was, now = choice.read(agents), choice.read(said)
        if was != now:
            told.add("dates" if what == "dates" else "amounts")
            yield f"{choice.question}: {choice.options(agents)[was]} → {choice.options(said)[now]}"
    for name in StatementTemplate.model_fields:  # from Python anything may be corrected
        if name not in told and getattr(agents, name) != getattr(said, name):
            yield f"Of the template: {name} changed"


def _geometry(agents: StatementTemplate, said: StatementTemplate) -> Iterator[str]:
    for at in range(len(agents.regions), len(said.regions)):
        yield f"A box is added: {region_words(said, at)}"
    for at, (before, after) in enumerate(zip(agents.regions, said.regions, strict=False)):
        for side, was, now in zip(_SIDES, before.box, after.box, strict=True):
            if was != now:
                yield f"{_capital(region_words(said, at))}: {side} edge {_percent(was, side)} → {_percent(now, side)}"
    for at, (one, other) in enumerate(zip(agents.columns, said.columns, strict=True)):
        if one.name != other.name:
            yield f"Column {at + 1}{_titled(one.title)}: {COLUMN_WORDS[one.name]} → {COLUMN_WORDS[other.name]}"
        for side, start, end in zip(_ACROSS, one.x, other.x, strict=True):
            if start != end:
                yield f"Column {COLUMN_WORDS[other.name]}: {side} edge {_percent(start)} → {_percent(end)}"


def _is_alike(agents: StatementTemplate, said: StatementTemplate) -> bool:
    """Whether every region and column of the agent's is still there, so that ``changes`` can tell what became of each."""
    before, after = ([region.pages for region in one.regions] for one in (agents, said))
    titles = [[column.title for column in one.columns] for one in (agents, said)]
    return before == after[: len(before)] and titles[0] == titles[1]


def region_words(template: StatementTemplate, at: int) -> str:
    """What a region is called: ``transactions on the first page``; of several of one kind with its number."""
    kind = template.regions[at].pages
    own = [number for number, region in enumerate(template.regions) if region.pages == kind]
    number = f", box {own.index(at) + 1}" if len(own) > 1 else ""
    return f"transactions on {PAGE_WORDS[kind]}{number}"


def _column_name(template: StatementTemplate, at: int) -> str:
    column = template.columns[at]
    return column.title or COLUMN_WORDS[column.name] if column.name == "other" else COLUMN_WORDS[column.name]


def _titled(title: str) -> str:
    return f" “{title}”" if title else ""


def _percent(place: float, side: str = "left") -> str:
    across = "width" if side in ("left", "right") else "height"
    return f"{100 * place:.1f} % of the {across}"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _edge(template: StatementTemplate, name: str) -> _Edge:
    found = _EDGE.fullmatch(name)
    parts = {"region": len(template.regions), "column": len(template.columns)}
    sides: dict[str, tuple[Side, ...]] = {"region": _SIDES, "column": _ACROSS}
    if found is None or int(found["at"]) >= parts[found["part"]] or found["side"] not in sides[found["part"]]:
        raise _refused("the template has no such edge", "Reload the page.")
    return _Edge(found["part"], int(found["at"]), next(side for side in _SIDES if side == found["side"]))


def _place(template: StatementTemplate, edge: _Edge) -> float:
    if edge.part == "region":
        return template.regions[edge.at].box[_SIDES.index(edge.side)]
    return template.columns[edge.at].x[edge.side == "right"]


def _bounds(template: StatementTemplate, edge: _Edge) -> tuple[float, float]:
    """Between which places the edge may lie."""
    other = _place(template, edge._replace(side=_OPPOSITE[edge.side]))
    return (0.0, other - ROOM) if edge.side in ("left", "top") else (other + ROOM, 1.0)


def _of_same_columns(by: StatementTemplate, template: StatementTemplate) -> StatementTemplate:
    """Columns are called by their number, so a template made anew, or given from Python, can only be its own measure."""
    return by if len(by.columns) == len(template.columns) else template


def _joined_with(template: StatementTemplate, edge: _Edge) -> list[_Edge]:
    """The edge of the column beside it that is the same line."""
    if edge.part == "region":
        return []
    place, side = _place(template, edge), _OPPOSITE[edge.side]
    others = (_Edge("column", at, side) for at in range(len(template.columns)) if at != edge.at)
    return [one for one in others if abs(_place(template, one) - place) < _JOINED][:1]


def _checked(plain: Mapping[str, Any]) -> StatementTemplate:
    try:
        return StatementTemplate.model_validate(plain)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]["msg"].removeprefix("Value error, ")
        raise _refused(first, "Choose otherwise: the template stays as it was.") from error


def _refused(message: str, remedy: str) -> ReviewRefused:
    return ReviewRefused(message, code="REVIEW-TEMPLATE", remedy=remedy)
