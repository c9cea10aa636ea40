"""Edits of a statement template: edges, columns, regions, signs, date formats.

Every edit returns a new template; ReviewRefused if the result would be invalid. An edge is named after its region or
column, counted from 0 in the template's order: ``region.0.bottom``, ``column.2.left``.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

from pydantic import ValidationError

from evalkit.errors import EvalkitError, NotFound, ReviewRefused, UsageError
from evalkit.statements.alternative_readings import (
    build_opposite_reading,
    build_other_date_order,
    confirm_date_order,
    confirm_directions,
)
from evalkit.statements.dates import DATE_FORMATS
from evalkit.statements.reconciliation import ReconciliationReport
from evalkit.statements.statement_template import (
    AmountRules,
    ColumnName,
    PageKind,
    StatementTemplate,
    TemplateStatus,
    parse_template_toml,
)
from evalkit.store import OutputFolder, template_file_name

EdgeSide = Literal["left", "top", "right", "bottom"]

_SIDES: tuple[EdgeSide, ...] = get_args(EdgeSide)
_HORIZONTAL_SIDES: tuple[EdgeSide, EdgeSide] = ("left", "right")
_OPPOSITE_SIDE: dict[EdgeSide, EdgeSide] = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}
_EDGE_PATTERN = re.compile(r"(?P<part>region|column)\.(?P<at>\d+)\.(?P<side>left|top|right|bottom)")
#: The least width or height of a region or column, as a fraction of the page.
MIN_EXTENT = 0.005
#: The greatest distance, as a fraction of the page, at which two experts' edges count as the same: half a line of print.
_SAME_EDGE_TOLERANCE = 0.005
#: Decimals of an edge's position: a twentieth of a point on a letter page.
_EDGE_DECIMALS = 4
#: The greatest distance, as a fraction of the page, at which the edges of neighbouring columns count as one shared edge.
_SHARED_EDGE_TOLERANCE = 0.0006

#: The words on the screen for the pages that a region reads; they follow "transactions on".
PAGE_KIND_WORDS: dict[PageKind, str] = {
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
    "direction": "direction (in or out)",
    "other": "not used",
}


class _Edge(NamedTuple):
    part: str
    part_index: int
    side: EdgeSide


class TemplateChoice(NamedTuple):
    """Property of a template for which the expert chooses one of several options."""

    question: str
    read_value: Callable[[StatementTemplate], str]
    list_options: Callable[[StatementTemplate], Mapping[str, str]]
    """The possible values, each with its label on the screen."""
    build_update: Callable[[StatementTemplate, str], Mapping[str, Any]]
    """The template fields to replace for a chosen value, which is another one than the template has."""


class ReadingQuestion(NamedTuple):
    """A doubt about a template, settled by choosing one of two interpretations."""

    issue_code: str
    """Code of the issues in the packet that raise the doubt."""
    build_other: Callable[[StatementTemplate], StatementTemplate | None]
    """Returns the second reading; None if there is none."""
    confirm: Callable[[StatementTemplate], StatementTemplate]
    """Returns the template with a note that a person decided."""
    is_decided: Callable[[StatementTemplate], bool]


#: The doubts in which the expert chooses a reading, by name.
READING_QUESTIONS: dict[str, ReadingQuestion] = {
    "signs": ReadingQuestion(
        "TEMPLATE-SIGN-LOGIC",
        build_opposite_reading,
        confirm_directions,
        lambda template: "person" in template.amounts.sign_proof,
    ),
    "dates": ReadingQuestion(
        "TEMPLATE-DATE-FORMAT",
        build_other_date_order,
        confirm_date_order,
        lambda template: not template.dates.alternative_formats,
    ),
}


def list_readings(opened_template: StatementTemplate, question_name: str) -> list[StatementTemplate]:
    """List both interpretations of a template's doubt, each as a confirmed template.

    ReviewRefused if there is no such question or no other reading.
    """
    question = READING_QUESTIONS.get(question_name)
    other = question and question.build_other(opened_template)
    if question is None or other is None:
        raise _build_template_refusal_error("the template has no such question", "Reload the page.")
    return [question.confirm(opened_template), question.confirm(other)]


def choose_reading(
    template: StatementTemplate, question_name: str, number: int, *, opened_template: StatementTemplate
) -> StatementTemplate:
    """Choose interpretation 0 or 1 of ``list_readings``; keep boxes and edges.

    ReviewRefused if there is no such question or reading.
    """
    readings = list_readings(opened_template, question_name)
    if number not in range(len(readings)):
        raise _build_template_refusal_error("the question has no such reading", "Reload the page.")
    chosen = readings[number]
    if question_name == "dates":
        return template.model_copy(update={"dates": chosen.dates})
    columns = tuple(
        column.model_copy(update={"name": other.name}) if {column.name, other.name} == {"debit", "credit"} else column
        for column, other in zip(template.columns, chosen.columns, strict=True)
    )
    amounts = chosen.amounts.model_copy(update={"decimal": template.amounts.decimal})
    return template.model_copy(update={"amounts": amounts, "rows": chosen.rows, "columns": columns})


def find_chosen_reading(
    template: StatementTemplate, question_name: str, *, opened_template: StatementTemplate
) -> int | None:
    """Return which interpretation of ``list_readings`` was chosen, or None."""
    if not READING_QUESTIONS[question_name].is_decided(template):
        return None
    if question_name == "dates":
        return int(template.dates.formats != opened_template.dates.formats)
    return int(_list_directions(template) != _list_directions(opened_template))


def _list_directions(template: StatementTemplate) -> tuple[object, ...]:
    amounts, side_names = (
        template.amounts,
        [column.name for column in template.columns if column.name in ("debit", "credit")],
    )
    return amounts.deposit, amounts.unmarked, [section.direction for section in template.rows.section], side_names


def _update_amounts(template: StatementTemplate, **new_amounts: Any) -> Mapping[str, Any]:
    return {"amounts": template.amounts.model_dump(mode="json") | new_amounts}


#: The proof of directions that an expert has chosen.
_PERSON = ["person"]


def _get_direction_of_minus(amounts: AmountRules) -> str:
    return "deposits" if "minus" in amounts.deposit else "withdrawals"


def _list_date_formats(template: StatementTemplate) -> Mapping[str, str]:
    template_formats = template.dates.formats
    return {" or ".join(template_formats): " or ".join(map(_format_example_date, template_formats))} | {
        date_format: _format_example_date(date_format) for date_format in DATE_FORMATS
    }


def _format_example_date(date_format: str) -> str:
    """Format an example date in a date format, e.g. ``31/12/2024``."""
    for code, example in {"%d": "31", "%m": "12", "%b": "Dec", "%Y": "2024", "%y": "24"}.items():
        date_format = date_format.replace(code, example)
    return date_format


#: The template properties that an expert may change on the screen, by name.
TEMPLATE_CHOICES: dict[str, TemplateChoice] = {
    "signs": TemplateChoice(
        "Amounts with a minus, brackets or DR are",
        lambda template: _get_direction_of_minus(template.amounts),
        lambda _: {"withdrawals": "withdrawals", "deposits": "deposits"},
        lambda template, _: _update_amounts(
            template, deposit=template.amounts.withdrawal, withdrawal=template.amounts.deposit, sign_proof=_PERSON
        ),
    ),
    "unmarked": TemplateChoice(
        "Amounts without a sign are",
        lambda template: template.amounts.unmarked,
        lambda template: {
            "deposit": "deposits",
            "withdrawal": "withdrawals",
            "section": "as the heading above says",
            **({"balance": "as the balances in the rows say"} if template.find_column("balance") else {}),
        },
        lambda template, value: _update_amounts(template, unmarked=value, sign_proof=_PERSON),
    ),
    "balance": TemplateChoice(
        "A printed balance is",
        lambda template: template.amounts.balance,
        lambda _: {"held": "money held", "owed": "a debt"},
        lambda template, value: _update_amounts(template, balance=value),
    ),
    "decimal": TemplateChoice(
        "Cents come after",
        lambda template: template.amounts.decimal,
        lambda _: {".": "a point: 1,234.56", ",": "a comma: 1.234,56"},
        lambda template, value: _update_amounts(template, decimal=value),
    ),
    "dates": TemplateChoice(
        "Dates are written",
        lambda template: " or ".join(template.dates.formats),
        _list_date_formats,
        lambda template, value: {
            "dates": {
                **template.dates.model_dump(mode="json"),
                "formats": value.split(" or "),
                "alternative_formats": [],
            }
        },
    ),
}


def read_stored_template(output_folder: OutputFolder, template_id: str) -> StatementTemplate | None:
    """Read a template of the output folder; None if its file is missing or invalid."""
    try:
        return parse_template_toml(output_folder.read_bytes(template_file_name(template_id)).decode(), template_id)
    except (NotFound, UsageError, UnicodeDecodeError):
        return None


def move_template_edge(
    template: StatementTemplate, edge_name: str, page_fraction: float, *, opened_template: StatementTemplate
) -> StatementTemplate:
    """Move an edge to ``page_fraction`` (0..1), or as close to it as possible.

    Two columns that shared the edge when the case was opened (``opened_template``) keep sharing it; if the number of columns
    has changed since, two columns that share it now. ReviewRefused if there is no such edge.
    """
    edge = _parse_edge(template, edge_name)
    moved_edges = [edge, *_find_shared_edges(_choose_edge_sharing_reference(opened_template, template), edge)]
    lowest = max(_get_edge_bounds(template, moved_edge)[0] for moved_edge in moved_edges)
    highest = min(_get_edge_bounds(template, moved_edge)[1] for moved_edge in moved_edges)
    new_position = round(min(max(page_fraction, lowest), highest), _EDGE_DECIMALS)
    template_fields = template.model_dump(mode="json")
    for moved_edge in moved_edges:
        if moved_edge.part == "region":
            template_fields["region"][moved_edge.part_index]["box"][_SIDES.index(moved_edge.side)] = new_position
        else:
            template_fields["column"][moved_edge.part_index]["x"][moved_edge.side == "right"] = new_position
    return _build_validated_template(template_fields)


def get_edge_page_fraction(template: StatementTemplate, edge_name: str) -> float:
    """Get the position of an edge, as a fraction 0..1 of the page.

    ReviewRefused if there is no such edge.
    """
    return _get_page_fraction(template, _parse_edge(template, edge_name))


def list_column_edge_names_and_labels(
    template: StatementTemplate, opened_template: StatementTemplate
) -> list[tuple[str, str]]:
    """List name and label of each column edge from left to right, without repeats."""
    opened_template = _choose_edge_sharing_reference(opened_template, template)
    named_edges: list[tuple[str, str]] = []
    seen_edges: set[_Edge] = set()
    edges = [_Edge("column", position, side) for position in range(len(template.columns)) for side in _HORIZONTAL_SIDES]
    for edge in sorted(edges, key=lambda candidate: _get_page_fraction(template, candidate)):
        if edge in seen_edges:
            continue
        shared_edges = _find_shared_edges(opened_template, edge)
        seen_edges.update(shared_edges)
        column_name = _describe_column(template, edge.part_index)
        if shared_edges:
            label = f"edge between {column_name} and {_describe_column(template, shared_edges[0].part_index)}"
            if edge.side == "left":
                label = f"edge between {_describe_column(template, shared_edges[0].part_index)} and {column_name}"
        else:
            label = f"{edge.side} edge of {column_name}"
        named_edges.append((f"column.{edge.part_index}.{edge.side}", label))
    return named_edges


def add_region_for_page_kind(template: StatementTemplate, page: int, total_pages: int) -> StatementTemplate:
    """Add a region to a page that has none, and to all pages of the same kind.

    The kind is first, middle, last or later pages. The new region has the position of the template's last region.
    ReviewRefused if the page has a region already.
    """
    if template.find_region_indices(page, total_pages):
        raise _build_template_refusal_error(
            "this page already has a box", "Move the edges of the existing box instead."
        )
    if page == 1:
        page_kind = "first"
    elif template.find_region_indices(total_pages, total_pages):
        page_kind = "middle"
    else:
        page_kind = (
            "later"
            if not any(template.find_region_indices(other_page, total_pages) for other_page in range(2, total_pages))
            else "last"
        )
    template_fields = template.model_dump(mode="json")
    template_fields["region"].append({"pages": page_kind, "box": list(template.regions[-1].box)})
    return _build_validated_template(template_fields)


def rename_column_with_dependents(template: StatementTemplate, column_index: int, name: str) -> StatementTemplate:
    """Rename a column (from 0), and other columns so that the names stay consistent.

    A column that already has the name gets this column's old name. If debit or credit is chosen, an amount column becomes
    the opposite one or ``other``; if amount is chosen, debit and credit columns become ``other``. ReviewRefused if the
    template would not be valid afterwards.
    """
    if name not in COLUMN_WORDS or not 0 <= column_index < len(template.columns):
        raise _build_template_refusal_error(
            "the template has no such column, or a column cannot have this name", "Reload the page."
        )
    names: list[str] = [column.name for column in template.columns]
    if name != "other" and name in names:
        names[names.index(name)] = names[column_index]
    names[column_index] = name
    for other_index, column_name in enumerate(names):
        if other_index != column_index and name == "amount" and column_name in ("debit", "credit"):
            names[other_index] = "other"
        elif other_index != column_index and name in ("debit", "credit") and column_name == "amount":
            opposite = "credit" if name == "debit" else "debit"
            names[other_index] = "other" if opposite in names else opposite
    template_fields = template.model_dump(mode="json")
    for column, column_name in zip(template_fields["column"], names, strict=True):
        column["name"] = column_name
    if {"debit", "credit"} & {name, template.columns[column_index].name}:
        template_fields["amounts"]["sign_proof"] = _PERSON
    return _build_validated_template(template_fields)


def apply_choice(template: StatementTemplate, choice_name: str, value: str) -> StatementTemplate:
    """Set a property of the template to one of its options in TEMPLATE_CHOICES.

    ReviewRefused if there is no such property or option.
    """
    choice = TEMPLATE_CHOICES.get(choice_name)
    if choice is None or value not in choice.list_options(template):
        raise _build_template_refusal_error("the template has no such option", "Reload the page.")
    if choice.read_value(template) == value:
        return template
    return _build_validated_template(template.model_dump(mode="json") | dict(choice.build_update(template, value)))


def parse_corrected_template(agent_template: StatementTemplate, raw_template: object) -> StatementTemplate:
    """Parse an expert's template, given as a ``StatementTemplate`` or as TOML text.

    Version and status are taken from ``agent_template``, because the review determines them. ReviewRefused if the text is no
    valid template, or if its template_id differs.
    """
    try:
        expert_template = (
            raw_template
            if isinstance(raw_template, StatementTemplate)
            else parse_template_toml(str(raw_template), "corrected_template")
        )
    except EvalkitError as error:
        raise _build_template_refusal_error(error.message, error.remedy) from error
    if expert_template.template_id != agent_template.template_id:
        raise _build_template_refusal_error(
            "corrected_template has the wrong template_id",
            f"It must be {agent_template.template_id!r}, like the case's template.",
        )
    return expert_template.model_copy(update={"version": agent_template.version, "status": agent_template.status})


def build_approved_template(agent_template: StatementTemplate, expert_template: StatementTemplate) -> StatementTemplate:
    """Build the approved template: status stable, next version if it was changed."""
    version = agent_template.version + (expert_template != agent_template)
    return expert_template.model_copy(update={"status": TemplateStatus.STABLE, "version": version})


def extract_template_if_edited(agent_template: StatementTemplate, reviewed_answer: object) -> StatementTemplate | None:
    """Convert a review's template back to the template of a draft.

    None if the expert did not change the template, or if the review has no template.
    """
    if not isinstance(reviewed_answer, StatementTemplate):
        return None
    expert_template = reviewed_answer.model_copy(
        update={"version": agent_template.version, "status": agent_template.status}
    )
    return None if expert_template == agent_template else expert_template


def is_nearly_same_template(first: StatementTemplate, second: StatementTemplate) -> bool:
    """Return True if two templates differ at most by half a line in edges' positions."""
    both_fields = [version.model_dump(mode="json") for version in (first, second)]
    edges = [
        [
            position
            for part, key in (("region", "box"), ("column", "x"))
            for row in version[part]
            for position in row.pop(key)
        ]
        for version in both_fields
    ]
    return both_fields[0] == both_fields[1] and all(
        abs(first_edge - second_edge) <= _SAME_EDGE_TOLERANCE for first_edge, second_edge in zip(*edges, strict=True)
    )


def describe_unmet_sums(reconciliation: ReconciliationReport) -> str:
    """Describe which sums do not add up, or state that no sums are printed.

    Empty if there are sums and all of them add up.
    """
    if reconciliation.has_only_met_checks:
        return ""
    failing_count = sum(not check.is_met for check in reconciliation.checks)
    if failing_count:
        count_words = f"{failing_count} of {len(reconciliation.checks)}"
        return f"{count_words} sums {'does' if failing_count == 1 else 'do'} not add up"
    return "the statement prints no sum by which the rows could be checked"


def describe_template_changes(agent_template: StatementTemplate, expert_template: StatementTemplate) -> Iterator[str]:
    """Describe each difference between two templates in one sentence."""
    described_fields = {"version", "status"}
    if _has_same_structure(agent_template, expert_template):
        described_fields |= {"regions", "columns"}
        yield from _describe_geometry_changes(agent_template, expert_template)
    for choice_name, choice in TEMPLATE_CHOICES.items():
        old_choice, new_choice = choice.read_value(agent_template), choice.read_value(expert_template)
        if old_choice != new_choice:
            described_fields.add("dates" if choice_name == "dates" else "amounts")
            yield f"{choice.question}: {choice.list_options(agent_template)[old_choice]} → {choice.list_options(expert_template)[new_choice]}"
    without_proof = [
        template.amounts.model_copy(update={"sign_proof": ()}) for template in (agent_template, expert_template)
    ]
    if agent_template.amounts != expert_template.amounts and without_proof[0] == without_proof[1]:
        described_fields.add("amounts")
        if _list_directions(agent_template) == _list_directions(expert_template):
            yield "Money in and money out: decided as they were read"
    if "dates" not in described_fields and agent_template.dates.formats == expert_template.dates.formats:
        described_fields.add("dates")
        if agent_template.dates != expert_template.dates:
            yield "Day and month: decided as they were read"
    for name in StatementTemplate.model_fields:  # a correction from Python may change any field
        if name not in described_fields and getattr(agent_template, name) != getattr(expert_template, name):
            yield f"The template's {name} changed"


def _describe_geometry_changes(agent_template: StatementTemplate, expert_template: StatementTemplate) -> Iterator[str]:
    for position in range(len(agent_template.regions), len(expert_template.regions)):
        yield f"A box is added: {describe_region(expert_template, position)}"
    for position, (old_region, new_region) in enumerate(
        zip(agent_template.regions, expert_template.regions, strict=False)
    ):
        for side, old_edge, new_edge in zip(_SIDES, old_region.box, new_region.box, strict=True):
            if old_edge != new_edge:
                region_words = describe_region(expert_template, position)
                yield f"{region_words[:1].upper()}{region_words[1:]}: {side} edge {_format_percent(old_edge, side)} → {_format_percent(new_edge, side)}"
    for position, (old_column, new_column) in enumerate(
        zip(agent_template.columns, expert_template.columns, strict=True)
    ):
        if old_column.name != new_column.name:
            yield f"Column {position + 1}{_quote_title(old_column.title)}: {COLUMN_WORDS[old_column.name]} → {COLUMN_WORDS[new_column.name]}"
        for side, old_x, new_x in zip(_HORIZONTAL_SIDES, old_column.x, new_column.x, strict=True):
            if old_x != new_x:
                yield f"Column {COLUMN_WORDS[new_column.name]}: {side} edge {_format_percent(old_x)} → {_format_percent(new_x)}"


def _has_same_structure(agent_template: StatementTemplate, expert_template: StatementTemplate) -> bool:
    page_kinds_before, page_kinds_after = (
        [region.pages for region in template.regions] for template in (agent_template, expert_template)
    )
    titles = [[column.title for column in template.columns] for template in (agent_template, expert_template)]
    return page_kinds_before == page_kinds_after[: len(page_kinds_before)] and titles[0] == titles[1]


def describe_region(template: StatementTemplate, region_index: int) -> str:
    """Describe a region: ``transactions on the first page``, numbered if several."""
    page_kind = template.regions[region_index].pages
    same_kind_indexes = [number for number, region in enumerate(template.regions) if region.pages == page_kind]
    number = f", box {same_kind_indexes.index(region_index) + 1}" if len(same_kind_indexes) > 1 else ""
    return f"transactions on {PAGE_KIND_WORDS[page_kind]}{number}"


def _describe_column(template: StatementTemplate, column_index: int) -> str:
    column = template.columns[column_index]
    return column.title or COLUMN_WORDS[column.name] if column.name == "other" else COLUMN_WORDS[column.name]


def _quote_title(title: str) -> str:
    return f" “{title}”" if title else ""


def _format_percent(page_fraction: float, side: str = "left") -> str:
    dimension = "width" if side in ("left", "right") else "height"
    return f"{100 * page_fraction:.1f} % of the {dimension}"


def _parse_edge(template: StatementTemplate, edge_name: str) -> _Edge:
    match = _EDGE_PATTERN.fullmatch(edge_name)
    part_counts = {"region": len(template.regions), "column": len(template.columns)}
    sides_by_part: dict[str, tuple[EdgeSide, ...]] = {"region": _SIDES, "column": _HORIZONTAL_SIDES}
    if (
        match is None
        or int(match["at"]) >= part_counts[match["part"]]
        or match["side"] not in sides_by_part[match["part"]]
    ):
        raise _build_template_refusal_error("the template has no edge of this name", "Reload the page.")
    return _Edge(match["part"], int(match["at"]), next(side for side in _SIDES if side == match["side"]))


def _get_page_fraction(template: StatementTemplate, edge: _Edge) -> float:
    if edge.part == "region":
        return template.regions[edge.part_index].box[_SIDES.index(edge.side)]
    return template.columns[edge.part_index].x[edge.side == "right"]


def _get_edge_bounds(template: StatementTemplate, edge: _Edge) -> tuple[float, float]:
    opposite_position = _get_page_fraction(template, edge._replace(side=_OPPOSITE_SIDE[edge.side]))
    return (
        (0.0, opposite_position - MIN_EXTENT) if edge.side in ("left", "top") else (opposite_position + MIN_EXTENT, 1.0)
    )


def _choose_edge_sharing_reference(
    opened_template: StatementTemplate, template: StatementTemplate
) -> StatementTemplate:
    """Choose the opened template, unless the number of columns has changed since."""
    return opened_template if len(opened_template.columns) == len(template.columns) else template


def _find_shared_edges(template: StatementTemplate, edge: _Edge) -> list[_Edge]:
    if edge.part == "region":
        return []
    position, side = _get_page_fraction(template, edge), _OPPOSITE_SIDE[edge.side]
    other_edges = (_Edge("column", index, side) for index in range(len(template.columns)) if index != edge.part_index)
    return [
        other_edge
        for other_edge in other_edges
        if abs(_get_page_fraction(template, other_edge) - position) < _SHARED_EDGE_TOLERANCE
    ][:1]


def _build_validated_template(template_fields: Mapping[str, Any]) -> StatementTemplate:
    try:
        return StatementTemplate.model_validate(template_fields)
    except ValidationError as error:
        message = error.errors(include_url=False, include_input=False)[0]["msg"].removeprefix("Value error, ")
        raise _build_template_refusal_error(message, "Choose something else: the template was not changed.") from error


def _build_template_refusal_error(message: str, remedy: str) -> ReviewRefused:
    return ReviewRefused(message, code="REVIEW-TEMPLATE", remedy=remedy)
