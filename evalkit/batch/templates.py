"""Bank-statement templates: building one with a model, and ``evalkit review-template``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from rapidfuzz import fuzz

from evalkit.batch.asking import EMBEDDED, Asking
from evalkit.batch.identity import Source, find, stem_of
from evalkit.batch.purge import without_purged
from evalkit.batch.reading import Readers
from evalkit.batch.runner import how_of, in_a_thread, read_document, settings_of, stored_bundle
from evalkit.clocks import now
from evalkit.documents.bundle import SCHEMA_VERSION as BUNDLE_VERSION
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.render import page_pngs
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.llm.model import Usage
from evalkit.review.lock import writing
from evalkit.review.packet import SMEPacketGenerator, is_frozen, publish, withdraw
from evalkit.settings import Settings
from evalkit.statements.consensus import CAPS
from evalkit.statements.convergence import RETRIES, Scenario
from evalkit.statements.proposal import Made, improved
from evalkit.statements.questions import Picture
from evalkit.statements.record import STATEMENT_TEMPLATE, Cycle
from evalkit.statements.review_loop import Reviewed, ReviewLoop, Rules, aside
from evalkit.statements.template import StatementTemplate, Status, read_template, write_template
from evalkit.store import (
    BUNDLES,
    EXTRACTIONS,
    TEMPLATE_REVIEWS,
    Files,
    Index,
    bundle_name,
    cycle_name,
    template_name,
)

#: So many pages are shown to a model: the first ones and the last.
_MOST_PICTURES = 20
#: An engine may misread a letter of a bank's name; of two names that are so alike, in percent, one is the other.
_SAME_NAME = 85.0


@dataclass(frozen=True)
class TemplateReview:
    """What became of ``evalkit review-template``."""

    doc_id: str
    """The statement."""
    reviewed: Reviewed
    template: str
    """Where the template lies in the output folder."""
    cycles: tuple[str, ...]
    """Where its cycles lie."""
    case_id: str | None
    """The case that a person has to decide; None where it was approved."""
    is_taken: bool
    """Somebody has an earlier case of it open, or has decided it: that one and the template stay as they are."""
    by_agent: Mapping[str, Usage]
    """What language models were asked and paid."""


def review_template(
    text: str,
    name: str,
    pdf: Path,
    *,
    output: Path | str | None = None,
    model: str | None = None,
    even_purged: bool = False,
    settings: Settings | None = None,
) -> TemplateReview:
    """Review a template against a statement; writes its cycles, the template, and a case where a person has to decide.

    Works inside Jupyter too.

    Args:
        text: the template as TOML.
        name: of its file, for errors.
        pdf: the statement.
        output: the folder to write to.
        model: who reviews, arbitrates and builds, where ``[vllm_review.reviewers]`` names nobody else.
        even_purged: take the statement in again if it was purged.
        settings: instead of the environment and ``evalkit.toml``.

    Raises:
        UsageError: the template is none, or another bank's; the statement was purged; nothing could be begun.
        DocumentError: the statement cannot be read.
    """
    given = settings_of(settings, output=output, model=model)
    files = Files(output or given.output, given.database)
    return in_a_thread(_review(read_template(text, name), pdf, files, given, even_purged=even_purged))


async def _review(
    template: StatementTemplate, pdf: Path, files: Files, given: Settings, *, even_purged: bool
) -> TemplateReview:
    how = how_of(given)
    with files.run_lock(), Index(files.root, given.database) as index:
        source = _source(files, index, pdf, even_purged=even_purged)
        bundle = stored_bundle(files, source, how.reader)
        if bundle is None:
            with Readers(1, how) as readers:
                bundle = (await read_document(files, source, readers, now())).bundle
        _check_bank(template, bundle)
        async with Asking(given, index.calls, reviews=True) as asking:
            pictures = pictures_of(source.path, bundle) if asking.is_remote else ()
            loop = ReviewLoop(asking.model.of, rules_of(given), clock=now)
            first = _next_cycle(files, template.template_id)
            names: list[str] = []

            def keep(cycle: Cycle, number: int) -> None:
                names.append(cycle_name(template.template_id, number))
                files.write(names[-1], cycle.model_dump(mode="json"))

            done = await loop.review(template, bundle, pictures=pictures, number=first, on_cycle=keep)
        case_id, is_taken = _settle(files, index, done, bundle)
    return TemplateReview(
        source.doc_id, done, template_name(template.template_id), tuple(names), case_id, is_taken, asking.ledger.spent
    )


def build_template(bundle: DocumentBundle, pdf: Path, *, model: str | None = None) -> Made:
    """The template of a statement that was read from ``pdf``; ``model`` may propose a better one than the measured.

    DocumentError STATEMENT-NO-TABLE where no dates and amounts stand below one another; UsageError for the model.
    """
    given = settings_of(model=model)
    return in_a_thread(_build(bundle, pdf, given))


async def _build(bundle: DocumentBundle, pdf: Path, given: Settings) -> Made:
    async with Asking(given, reviews=True) as asking:
        builder = asking.model.of("builder")
        pictures = pictures_of(pdf, bundle) if builder.name != EMBEDDED else ()
        return await improved(builder, bundle, pictures=pictures, aside=aside)


def rules_of(settings: Settings) -> Rules:
    """``[vllm_review]`` as the loop has it."""
    given = settings.vllm_review
    retries: dict[Scenario, int] = {name: min(most, given.retry.max_attempts) for name, most in RETRIES.items()}
    retries["both_fail"] = given.retry.max_attempts
    most, times, free = given.pass_criteria, given.timeouts, given.reviewers
    return Rules(
        is_enabled=given.enabled,
        most={"critical": most.max_critical, "high": most.max_high, "medium": most.max_medium, "low": most.max_low},
        caps={category: getattr(given.issue_caps, category) for category in CAPS},
        retries=retries,
        diverging=given.retry.convergence_threshold,
        temperatures={
            "layout_geometry": free.layout_temperature,
            "semantic_financial": free.semantic_temperature,
            "arbitrator": free.arbitrator_temperature,
        },
        reviewer_seconds=times.single_reviewer_seconds,
        both_seconds=times.both_reviewers_seconds,
        arbitration_seconds=times.arbitration_seconds,
        cycle_seconds=times.total_cycle_seconds,
    )


def pictures_of(pdf: Path, bundle: DocumentBundle) -> tuple[Picture, ...]:
    """The pages as a model is shown them. DocumentError where one cannot be drawn."""
    pages = range(1, bundle.total_pages + 1)
    wanted = pages if len(pages) <= _MOST_PICTURES else (*pages[: _MOST_PICTURES - 1], pages[-1])
    return tuple(Picture(page, png) for page, png in zip(wanted, page_pngs(pdf, wanted), strict=True))


def keep_template(files: Files, template: StatementTemplate) -> None:
    """Write a template to its place; a draft takes no place where somebody has vouched for another."""
    name = template_name(template.template_id)
    if template.status is Status.DRAFT and is_stable(files, template.template_id):
        return
    files.write_text(name, write_template(template))


def is_stable(files: Files, template_id: str) -> bool:
    """Whether there is a template of that name that somebody has vouched for."""
    try:
        text = files.raw(template_name(template_id)).decode()
        return read_template(text, template_id).status is Status.STABLE
    except (NotFound, UsageError, UnicodeDecodeError):
        return False


def _settle(files: Files, index: Index, done: Reviewed, bundle: DocumentBundle) -> tuple[str | None, bool]:
    """Keep a template, and put it into the queue where a person has to decide.

    Its case, or None, and no case left, if approved; and whether a person was there before: what they see or have decided
    ranks above any review by machines, a passed one too.
    """
    case_id = done.template.template_id + STATEMENT_TEMPLATE
    with writing(files, case_id):
        is_taken = is_frozen(files, index, case_id, now())
        if not is_taken:
            keep_template(files, done.template)
    if done.case is None:
        withdraw(files, index, case_id)
        return None, is_taken
    at = str(done.cycles[-1].times["ended_at"])
    publish(files, index, SMEPacketGenerator().template_packet(done.case, bundle, created_at=at))
    return case_id, is_taken


def _source(files: Files, index: Index, pdf: Path, *, even_purged: bool) -> Source:
    """The statement, under a name that no other document has. DocumentError, UsageError where it cannot be had."""
    known = {row["sha256"]: row["doc_id"] for row in index.documents() if row["sha256"]}
    for name in files.names(EXTRACTIONS):
        with suppress(StoreError, LookupError):
            known.setdefault(files.read(name)["sha256"], PurePath(name).stem)
    # Of statements only the bundle is there: one that is called alike may be this one, and keeps its name.
    stem = stem_of(pdf)
    names = [PurePath(name).stem for name in files.names(BUNDLES)]
    alike = [doc_id for doc_id in names if doc_id == stem or doc_id.startswith(f"{stem}-")]
    for doc_id in alike:
        with suppress(StoreError, LookupError):
            known.setdefault(files.read(bundle_name(doc_id), schema_version=BUNDLE_VERSION)["sha256"], doc_id)
    found = find([pdf], known, reserved=alike)
    found = without_purged(files, found, known, even_purged=even_purged)
    for problem in found.problems:
        raise problem
    (source,) = found.sources
    if source.fault:
        raise source.fault
    return source


def _check_bank(template: StatementTemplate, bundle: DocumentBundle) -> None:
    """UsageError where the statement is another bank's: a template that is built anew from it would be that bank's."""
    printed = _plain(bundle.pages[0].text)
    signs = [_plain(sign) for sign in template.identity.signs]
    if signs and not any(fuzz.partial_ratio(sign, printed) >= _SAME_NAME for sign in signs):
        raise UsageError(
            f"the statement prints nothing of what {template.template_id} is known by",
            code="TEMPLATE-OTHER-BANK",
            remedy="Name a statement of its bank, or correct `signs` in the template's identity.",
        )


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).casefold()


def _next_cycle(files: Files, template_id: str) -> int:
    folder = f"{TEMPLATE_REVIEWS}/{template_id}"
    numbers = (re.fullmatch(r"cycle_(\d+)", PurePath(name).stem) for name in files.names(folder))
    return max((int(found[1]) for found in numbers if found), default=0) + 1
