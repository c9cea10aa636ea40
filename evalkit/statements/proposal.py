"""A template that a model proposes: taken only where it reads the statement at least as well as the measured one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import UsageError
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Model, Usage
from evalkit.statements.builder import Built, RetryInput, build
from evalkit.statements.questions import Asked, BuilderQuestion, Picture
from evalkit.statements.reading import Reading
from evalkit.statements.report import Rank
from evalkit.statements.reviewers import CHECKS
from evalkit.statements.survey import literal
from evalkit.statements.template import StatementTemplate, Status, read_template

T = TypeVar("T")
#: Characters of a proposal that are read: no template is longer.
_LONGEST = 100_000


class Aside(Protocol):
    """Runs what takes long beside the event loop."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """What ``work`` gives."""
        ...


class Made(NamedTuple):
    """A template, and what asking for it cost."""

    built: Built
    usage: Usage
    proposed_by: str = ""
    """The model whose proposal was taken; empty where it is the measured one."""


async def improved(
    model: Model,
    bundle: DocumentBundle,
    *,
    pictures: Sequence[Picture] = (),
    template_id: str | None = None,
    retry: RetryInput | None = None,
    seconds: float | None = None,
    aside: Aside,
) -> Made:
    """The measured template of a statement, or a model's better one. Errors as of ``build``; StoreError.

    A model that does not answer, or answers with something that is no template or reads less, changes nothing.
    """
    measured = await aside(lambda: build(bundle, template_id=template_id, retry=retry))
    if model.name == EmbeddedModel.name:
        return Made(measured, Usage())
    reading = await aside(lambda: Reading.of(measured.template, bundle))
    about = Asked(bundle.sha256, reading, tuple(pictures))
    told = None if retry is None else retry.model_dump(mode="json")
    answer = await model.ask(BuilderQuestion(about, retry=told, seconds=seconds))
    text = answer.value.template if answer.value else None
    proposed = None if text is None else proposal(text, measured.template)
    if proposed is None:
        return Made(measured, answer.usage)
    other = await aside(lambda: reading.with_template(proposed))
    if not reads_as_well(other, reading):
        return Made(measured, answer.usage)
    built = Built(other.template, other.statement, other.reconciliation, measured.tried + 1)
    return Made(built, answer.usage, model.name)


def proposal(text: str, measured: StatementTemplate) -> StatementTemplate | None:
    """The template of a model's TOML; None where it is none.

    Identity, number and status are the measured one's. Its patterns are plain words, but for those that the measured
    one has: a regular expression of a model's could run for ever.
    """
    try:
        found = read_template(text[:_LONGEST], "proposal")
        known = set(_patterns(measured.model_dump(mode="json")))
        plain = _plainly(found.model_dump(mode="json", by_alias=True), known)
        fixed = {"template_id": measured.template_id, "version": measured.version, "status": Status.DRAFT}
        return StatementTemplate.model_validate({**plain, **fixed, "schema_version": measured.schema_version})
    except (UsageError, ValueError, RecursionError):
        return None


def reads_as_well(other: Reading, measured: Reading) -> bool:
    """Whether a reading has no worse issues than the measured one, no fewer rows, and no fewer sums that are met."""
    return (
        _faults(other) <= _faults(measured)
        and len(other.statement.transactions) >= len(measured.statement.transactions)
        and _met(other) >= _met(measured)
    )


def _faults(reading: Reading) -> tuple[int, ...]:
    """Issues by severity, the worst first."""
    ranks = [Rank[one.severity] for checks in CHECKS.values() for check in checks for one in check(reading)]
    return tuple(ranks.count(rank) for rank in sorted(Rank, reverse=True))


def _met(reading: Reading) -> int:
    return sum(check.is_met for check in reading.reconciliation.checks)


#: Where patterns stand in a template.
_PATTERNS = frozenset(("period", "furniture", "accounts", "ends", "opening", "closing", "heading", "label"))


def _patterns(value: Any, key: str = "") -> Iterator[str]:
    """All patterns of a template."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _patterns(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _patterns(inner, key)
    elif isinstance(value, str) and key in _PATTERNS:
        yield value


def _plainly(value: Any, known: set[str], key: str = "") -> Any:
    """The same with every pattern that is not known taken for plain words."""
    if isinstance(value, dict):
        return {name: _plainly(inner, known, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plainly(inner, known, key) for inner in value]
    return literal(value) if isinstance(value, str) and key in _PATTERNS and value not in known else value
