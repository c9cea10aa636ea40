"""Are the checks awake? Faults planted one at a time into classifications that are right, and who catches them.

Each kind of fault is a row of :mod:`evalkit.evaluation.faults`. A fault is caught if a person sees the document because
of it: a new BLOCKER or MAJOR issue, and the decision to escalate. One that a repair undoes, so that the answer is the
clean one again, is caught as well; one that a repair turns into another answer is not. A verifier that could not
answer has caught nothing.

A fault that another agent catches than the kind names is caught, and counted as such as well: who is named may sleep.
``on_agent_failure`` is ``escalate`` here, whatever a site has set: with ``ignore`` a verifier that could not answer would
look like one that saw nothing.

Nothing is written, and nothing of what documents say is told: cases carry codes and counts.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.findings import is_agent_failure
from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.schema import ClassificationOutput
from evalkit.classification.v2_consistency import MIXTURE_TOLERANCE
from evalkit.classification.v5_arbiter import Decision
from evalkit.errors import DocumentError, StoreError, UsageError
from evalkit.evaluation.faults import BY_ID, FAULTS, Clean, Draft, Fault
from evalkit.evaluation.ground_truth import read_truths
from evalkit.evaluation.intervals import Estimate, exact
from evalkit.issue import Issue, IssueSeverity
from evalkit.llm.model import Usage
from evalkit.pipeline.document_discovery import SourceDocument, discover_documents
from evalkit.pipeline.model_session import ModelSession
from evalkit.pipeline.reader_pool import ReaderPool
from evalkit.pipeline.runner import build_reader_config, create_orchestrator, run_sync
from evalkit.pipeline.supplied_labels import read_classifications
from evalkit.review.loaders import read_bundle, read_result
from evalkit.settings import LimitSettings, Settings
from evalkit.store import RESULTS_FOLDER, OutputFolder, encode_canonical_json, parse_output_location

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

LIMIT = 40
"""Cases of a kind, unless said otherwise: enough to tell 90 % from 100 %."""
PLACES = 8
"""Cases of a kind in one document, at most."""
OUTCOMES = ("escalated", "undone", "repaired_otherwise", "missed")
_TRIES = 3
"""A place that does not apply is drawn again so often."""
_TIMESTAMP = "1970-01-01T00:00:00Z"
"""Bundles that are read here are not kept."""

KIND_COLUMNS = (
    *("kind", "what", "nature", "seen_by", "n", "caught", "share", "low", "high"),
    *("escalated", "undone", "repaired_otherwise", "missed", "unanswered", "caught_by", "caught_by_other", "skipped"),
)
CASE_COLUMNS = (
    *("doc_id", "kind", "nature", "place", "caught", "caught_by_other", "outcome", "severity", "agents", "codes"),
    *("decision", "decision_rule", "unanswered"),
)


@dataclass(frozen=True)
class Case:
    """One fault, planted once."""

    doc_id: str
    kind: str
    nature: str
    place: int
    """Which of the places in that document, from 0."""
    caught: bool
    caught_by_other: bool
    """Caught, but by none of the agents that the kind names."""
    outcome: str
    """``escalated``, ``undone`` (repaired into the clean answer), ``repaired_otherwise``, ``missed``."""
    severity: str | None
    """The worst of the new issues."""
    agents: tuple[str, ...]
    """Who raised a new BLOCKER or MAJOR issue."""
    codes: tuple[str, ...]
    """Of these issues."""
    decision: str
    decision_rule: str
    unanswered: bool
    """A verifier could not answer; what it might have seen counts as not seen."""


@dataclass(frozen=True)
class Alarm:
    """A clean document that escalates although nothing was planted."""

    doc_id: str
    codes: tuple[str, ...]
    """Of its BLOCKER and MAJOR issues."""


@dataclass(frozen=True)
class Challenge:
    """What came of it."""

    model: str
    documents: int
    """That were taken for right."""
    alarms: tuple[Alarm, ...]
    """Those of them that escalate by themselves; nothing is planted into these."""
    cases: tuple[Case, ...]
    skipped: Mapping[str, int]
    """Documents by kind, to which it does not apply."""
    left_out: tuple[str, ...] = ()
    """PDFs that were not accepted and of which nobody said what is right."""
    problems: tuple[str, ...] = ()
    """What could not be read: one line each."""
    by_agent: Mapping[str, Usage] = field(default_factory=dict)
    """What language models were asked and paid."""

    @property
    def false_alarms(self) -> Estimate:
        """Clean documents that escalate, among all of them, with the exact 95 % interval."""
        return exact(len(self.alarms), self.documents)

    @property
    def macro(self) -> float | None:
        """Mean over the kinds of the share that was caught; None where nothing was planted."""
        shares = [sum(one.caught for one in cases) / len(cases) for cases in self._by_kind().values()]
        return sum(shares) / len(shares) if shares else None

    def _by_kind(self) -> dict[str, list[Case]]:
        found: dict[str, list[Case]] = {}
        for case in self.cases:
            found.setdefault(case.kind, []).append(case)
        return found

    def by_kind(self) -> pd.DataFrame:
        """One row per kind, in the table's order, kinds that applied nowhere too.

        Columns: ``kind, what, nature``; ``seen_by`` who should see it; ``n`` cases; ``caught``, ``share`` with ``low``
        and ``high``, the exact 95 % interval, which takes cases of one document for independent; ``escalated``,
        ``undone``, ``repaired_otherwise``, ``missed``: what became of them; ``unanswered``: cases in which a verifier
        could not answer; ``caught_by``: agents with the number of cases; ``caught_by_other``: cases that were caught, but
        by none of ``seen_by``; ``skipped``: documents it does not apply to.
        """
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=list(KIND_COLUMNS))

    def _rows(self) -> list[dict[str, Any]]:
        by_kind = self._by_kind()
        return [
            _row(BY_ID[kind], by_kind.get(kind, []), self.skipped.get(kind, 0))
            for kind in BY_ID
            if kind in by_kind or kind in self.skipped
        ]

    def to_frame(self) -> pd.DataFrame:
        """One row per case, columns as the fields of :class:`Case`."""
        import pandas as pd

        return pd.DataFrame([vars(case) for case in self.cases], columns=list(CASE_COLUMNS))

    def to_json(self) -> dict[str, Any]:
        """All of it, for a program."""
        alarms = self.false_alarms
        return {
            "model": self.model,
            "documents": self.documents,
            "false_alarms": {
                "documents": [vars(alarm) for alarm in self.alarms],
                "share": alarms.value,
                "low": alarms.low,
                "high": alarms.high,
            },
            "macro": self.macro,
            "kinds": self._rows(),
            "cases": [vars(case) for case in self.cases],
            "left_out": list(self.left_out),
            "problems": list(self.problems),
            "by_agent": {agent: vars(usage) for agent, usage in self.by_agent.items()},
        }


def _row(fault: Fault, cases: Sequence[Case], skipped: int) -> dict[str, Any]:
    share = exact(sum(case.caught for case in cases), len(cases))
    outcomes = Counter(case.outcome for case in cases)
    agents = Counter(agent for case in cases if case.caught for agent in case.agents)
    return {
        "kind": fault.id,
        "what": fault.what,
        "nature": fault.nature,
        "seen_by": ", ".join(fault.seen_by),
        "n": len(cases),
        "caught": sum(case.caught for case in cases),
        "share": share.value,
        "low": share.low,
        "high": share.high,
        **{name: outcomes[name] for name in OUTCOMES},
        "unanswered": sum(case.unanswered for case in cases),
        "caught_by": ", ".join(f"{agent} {agents[agent]}" for agent in sorted(agents)),
        "caught_by_other": sum(case.caught_by_other for case in cases),
        "skipped": skipped,
    }


def challenge(
    paths: Iterable[Path | str],
    *,
    model: str | None = None,
    classifications: Path | str | None = None,
    kinds: Iterable[str] = (),
    limit: int = LIMIT,
    seed: int = 0,
    settings: Settings | None = None,
) -> pd.DataFrame:
    """:func:`conduct`, as a table with one row per kind of fault (``Challenge.by_kind``)."""
    made = conduct(
        paths, model=model, classifications=classifications, kinds=kinds, limit=limit, seed=seed, settings=settings
    )
    return made.by_kind()


def conduct(
    paths: Iterable[Path | str],
    *,
    model: str | None = None,
    profile: str | None = None,
    classifications: Path | str | None = None,
    kinds: Iterable[str] = (),
    limit: int = LIMIT,
    seed: int = 0,
    settings: Settings | None = None,
) -> Challenge:
    """Plant faults into classifications that are right, and see who catches them. Nothing is written.

    Args:
        paths: output folders, of which the documents count that were accepted or that experts validated; PDF files
            and folders of PDFs, which are read and classified, and count if they are accepted.
        model: who classifies PDFs and answers the verifiers' questions.
        profile: ``full`` or ``lean``.
        classifications: folder with ``{doc_id}.json``: right answers for PDFs, instead of asking.
        kinds: names of kinds, or ``structural``, ``quote``, ``semantic``; none: all.
        limit: so many cases of each kind at most.
        seed: the same seed plants the same faults.
        settings: instead of the environment and ``evalkit.toml``. Limits for a document count for nothing here, as one
            document is asked about often; those of a run hold. ``on_agent_failure`` counts as ``escalate``.

    Raises:
        UsageError: no such kind, no such path, or no classification that is taken for right.
    """
    given = settings or Settings.load(models={"default": model} if model is not None else None, profile=profile)
    return run_sync(_conduct(list(paths), given, classifications, chosen(kinds), limit, seed))


def chosen(kinds: Iterable[str]) -> list[Fault]:
    """The faults of these kinds or natures, in the table's order; all, where none is named. UsageError."""
    wanted = set(kinds)
    natures = {fault.nature for fault in FAULTS}
    if unknown := sorted(wanted - BY_ID.keys() - natures):
        raise UsageError(
            f"there is no kind of fault {', '.join(unknown)}",
            code="CHALLENGE-KIND",
            remedy=f"There are {', '.join(sorted(natures))}, or {', '.join(BY_ID)}.",
        )
    return [fault for fault in FAULTS if not wanted or fault.id in wanted or fault.nature in wanted]


async def _conduct(
    paths: Sequence[Path | str],
    settings: Settings,
    classifications: Path | str | None,
    faults: Sequence[Fault],
    limit: int,
    seed: int,
) -> Challenge:
    by_run = {name: value for name, value in settings.limits.model_dump().items() if name.endswith("_per_run")}
    by_document = LimitSettings(calls_per_document=0)
    given = settings.model_copy(
        update={"limits": by_document.model_copy(update=by_run), "on_agent_failure": "escalate"}
    )
    problems: list[str] = []
    left_out: list[str] = []
    async with ModelSession(given) as asking:
        checks = create_orchestrator(
            given, asking, include_rule_findings=False
        )  # what is computed would hide that a model sleeps
        at_once = given.calls_in_flight if asking.has_language_models else 1
        folders, pdfs = _sorted_out(paths)
        cleans = [clean for folder in folders for clean in accepted(folder, problems)]
        if pdfs:
            cleans += await _from_pdfs(pdfs, given, checks, classifications, problems, left_out)
        # Folders that are named twice, or that have the same document, count it once.
        cleans = list(
            {(one.bundle.sha256, encode_canonical_json(one.classification.to_json())): one for one in cleans}.values()
        )
        if not cleans:
            raise UsageError(
                "nothing here has a classification that is taken for right" + (f" ({problems[0]})" if problems else ""),
                code="CHALLENGE-NOTHING",
                remedy="Name an output folder with accepted documents, or PDFs with their --classifications.",
            )
        made = await challenged(cleans, checks, faults, limit=limit, seed=seed, at_once=at_once)
    return replace(
        made,
        model=given.models.default,
        left_out=tuple(sorted(left_out)),
        problems=(*problems, *made.problems),
        by_agent=asking.ledger.spent,
    )


def _sorted_out(paths: Iterable[Path | str]) -> tuple[list[Path | str], list[Path]]:
    """Output folders, and whatever else."""
    folders, others = [], []
    for path in map(parse_output_location, paths):
        if isinstance(path, str) or OutputFolder(path).has_folder(RESULTS_FOLDER):
            folders.append(path)
        else:
            others.append(path)
    return folders, others


def accepted(folder: Path | str, problems: list[str]) -> Iterator[Clean]:
    """An output folder's documents that were accepted, or whose answer an expert validated as it was.

    Those that an expert corrected are left out, accepted or not: their answer was wrong.
    """
    files = OutputFolder(folder)
    known = read_truths(folder)
    problems += known.problems
    sources = {truth.record.doc_id: truth.record.ground_truth_source for truth in known.truths}
    validated = {
        truth.record.doc_id: truth.record.ground_truth_classification
        for truth in known.truths
        if truth.record.ground_truth_source == "SME_VALIDATED"
    }
    for name in files.list_json_files(RESULTS_FOLDER):
        doc_id = Path(name).stem
        if sources.get(doc_id) == "SME_CORRECTED":
            continue
        try:
            result = read_result(files, doc_id)
            if not isinstance(result, DocumentResult):
                continue
            is_accepted = result.decision is Decision.AUTO_ACCEPT
            answer = result.classification if is_accepted else validated.get(doc_id)
            if isinstance(answer, ClassificationOutput) and answer.segments:
                yield Clean(read_bundle(files, doc_id), answer)
        except StoreError as error:
            problems.append(f"{doc_id}: {error}")


async def _from_pdfs(
    paths: Sequence[Path],
    settings: Settings,
    checks: RetryOrchestrator,
    classifications: Path | str | None,
    problems: list[str],
    left_out: list[str],
) -> list[Clean]:
    found = discover_documents(paths, {})
    problems += [str(problem) for problem in found.problems]
    supplied: Mapping[str, Any] = {}
    if classifications is not None:
        supplied, unknown = read_classifications(Path(classifications), found.sources)
        problems += [str(problem) for problem in unknown]
    how = build_reader_config(settings)

    async def one(source: SourceDocument, readers: ReaderPool) -> Clean | None:
        try:
            if source.read_error:
                raise source.read_error
            bundle = (await readers.read(source.path, doc_id=source.doc_id, timestamp=_TIMESTAMP)).bundle
        except DocumentError as error:
            problems.append(f"{source.doc_id}: {error}")
            return None
        outcome = await checks.evaluate(bundle, supplied.get(source.doc_id))
        is_right = source.doc_id in supplied or outcome.verdict.decision is Decision.AUTO_ACCEPT
        if outcome.classification is None or not is_right:
            left_out.append(source.doc_id)
            return None
        return Clean(bundle, outcome.classification)

    with ReaderPool(settings.workers or 1, how) as readers:
        cleans = await _gathered([partial(one, source, readers) for source in found.sources], 2)
    return [clean for clean in cleans if clean is not None]


async def _gathered(works: Sequence[Callable[[], Awaitable[T]]], at_once: int) -> list[T]:
    """Their results in their order, so many under way at once."""
    gate = asyncio.Semaphore(at_once)

    async def one(work: Callable[[], Awaitable[T]]) -> T:
        async with gate:
            return await work()

    return list(await asyncio.gather(*map(one, works)))


# ---------------------------------------------------------------------------------------------------------------------
# Planting and judging


async def challenged(
    cleans: Sequence[Clean],
    checks: RetryOrchestrator,
    faults: Sequence[Fault] = FAULTS,
    *,
    limit: int = LIMIT,
    seed: int = 0,
    places: int = PLACES,
    at_once: int = 1,
) -> Challenge:
    """Plant these faults into these classifications, at ``places`` places of each document at most.

    Documents are taken in an order that the seed gives, so that a limit favours none.
    """
    befores = await _gathered(
        [partial(checks.evaluate, one.bundle, one.classification.to_json()) for one in cleans], at_once
    )
    pairs = list(zip(cleans, befores, strict=True))
    # Where a verifier could not answer about the clean document, nobody knows whether it would have escalated.
    answered = [pair for pair in pairs if not pair[1].unanswered]
    unknown = [
        f"{clean.bundle.doc_id}: a verifier could not answer about it" for clean, before in pairs if before.unanswered
    ]
    quiet = [pair for pair in answered if pair[1].verdict.decision is Decision.AUTO_ACCEPT]
    alarms = [_alarm(*pair) for pair in answered if pair[1].verdict.decision is not Decision.AUTO_ACCEPT]
    skipped: Counter[str] = Counter()
    planted: list[_Planted] = []
    for fault in faults:
        planted += _cases(fault, quiet, places, limit, seed, skipped)
        skipped[fault.id] += 0
    cases = await _gathered([partial(_judged, checks, one) for one in planted], at_once)
    return Challenge("", len(answered), tuple(alarms), tuple(cases), dict(skipped), problems=tuple(unknown))


@dataclass(frozen=True)
class _Planted:
    """A case before it is judged."""

    fault: Fault
    draft: Draft
    before: ClassificationOutcome
    place: int


def _cases(
    fault: Fault,
    quiet: Sequence[tuple[Clean, ClassificationOutcome]],
    places: int,
    limit: int,
    seed: int,
    skipped: Counter[str],
) -> Iterator[_Planted]:
    """Up to ``limit`` cases of one kind: one place of each document, then another of each, and no case twice."""
    order = sorted(quiet, key=lambda pair: _dice(seed, fault.id, pair[0].bundle.sha256).random())
    seen: set[str] = set()
    made = 0
    for place in range(places):
        for clean, before in order:
            if made >= limit:
                return
            draft = _draft(fault, clean, _dice(seed, fault.id, clean.bundle.sha256, place))
            if draft is None:
                skipped[fault.id] += place == 0
                continue
            if (mark := _mark(draft)) not in seen:
                seen.add(mark)
                made += 1
                yield _Planted(fault, draft, before, place)


def _mark(draft: Draft) -> str:
    """Of all that a check can see."""
    pages = [[block.text for block in page.blocks] for page in draft.bundle.pages]
    return hashlib.sha256(encode_canonical_json([draft.bundle.sha256, draft.answer, pages])).hexdigest()


def _dice(*parts: object) -> random.Random:
    return random.Random(":".join(map(str, parts)))  # noqa: S311 - it draws places, no secrets


def _draft(fault: Fault, clean: Clean, dice: random.Random) -> Draft | None:
    for _ in range(_TRIES):
        draft = Draft.of(clean)
        if fault.plant(draft, dice):
            return draft
    return None


async def _judged(checks: RetryOrchestrator, planted: _Planted) -> Case:
    draft, fault = planted.draft, planted.fault
    after = await checks.evaluate(draft.bundle, draft.answer)
    new = _new_issues(planted.before, after)
    outcome = _outcome(draft.clean.classification, after, new)
    caught, agents = outcome in ("escalated", "undone"), {one.agent for one in new}
    return Case(
        doc_id=draft.bundle.doc_id,
        kind=fault.id,
        nature=fault.nature,
        place=planted.place,
        caught=caught,
        caught_by_other=caught and agents.isdisjoint(fault.seen_by),
        outcome=outcome,
        severity=min((one.severity for one in new), key=lambda severity: severity.rank, default=None),
        agents=tuple(sorted(agents)),
        codes=tuple(sorted({one.code for one in new})),
        decision=after.verdict.decision.value,
        decision_rule=after.verdict.rule,
        unanswered=bool(after.unanswered),
    )


def _alarm(clean: Clean, before: ClassificationOutcome) -> Alarm:
    grave = (one for one in before.issues if one.severity is not IssueSeverity.MINOR)
    return Alarm(clean.bundle.doc_id, tuple(sorted({one.code for one in grave})))


def _new_issues(before: ClassificationOutcome, after: ClassificationOutcome) -> list[Issue]:
    """BLOCKER and MAJOR issues, repaired ones too, that were not there before; failures of agents are none."""

    def content(issue: Issue) -> str:
        return issue.model_dump_json(exclude={"issue_id", "status"})

    known = Counter(map(content, before.issues))
    new = []
    for issue in after.issues:
        if issue.severity is IssueSeverity.MINOR or is_agent_failure(issue):
            continue
        known[content(issue)] -= 1
        if known[content(issue)] < 0:
            new.append(issue)
    return new


def _outcome(clean: ClassificationOutput, after: ClassificationOutcome, new: Sequence[Issue]) -> str:
    if after.verdict.decision is not Decision.AUTO_ACCEPT:
        return "escalated" if new else "missed"  # an agent failed; had it answered, it might have said nothing
    if not any(issue.status == "repaired" for issue in new):
        return "missed"
    return "undone" if after.classification and is_same(clean, after.classification) else "repaired_otherwise"


def is_same(one: ClassificationOutput, other: ClassificationOutput) -> bool:
    """Whether two answers are the same, but for shares that differ by no more than V2 lets them (0.05)."""
    (answer, shares), (answer_of_other, shares_of_other) = _parted(one), _parted(other)
    near = all(abs(a - b) <= float(MIXTURE_TOLERANCE) for a, b in zip(shares, shares_of_other, strict=False))
    return answer == answer_of_other and near


def _parted(answer: ClassificationOutput) -> tuple[dict[str, Any], list[float]]:
    """The answer without its shares, types sorted, and the shares in that order."""
    value = answer.to_json()
    shares: list[float] = []
    for rows, name in [
        *((segment["segment_composition"], "segment_share") for segment in value["segments"]),
        (value["document_mixture"], "overall_share"),
    ]:
        rows.sort(key=lambda row: row["document_type"])
        shares += [row.pop(name) for row in rows]
    return value, shares


def lines(made: Challenge) -> tuple[tuple[str, ...], list[list[str]], list[str]]:
    """For a terminal: columns, a row for each kind, and what is said below the table."""
    rows = [
        [
            row["kind"],
            row["what"],
            str(row["n"]),
            f"{100 * row['share']:.1f} %" if row["n"] else "",
            f"{100 * row['low']:.0f}–{100 * row['high']:.0f}" if row["n"] else "",
            row["caught_by"],
            str(row["caught_by_other"] or ""),
            ", ".join(f"{row[name]} {name.replace('_', ' ')}" for name in OUTCOMES[1:] if row[name]),
            str(row["skipped"] or ""),
        ]
        for row in made.by_kind().to_dict("records")
    ]
    planted = len({case.kind for case in made.cases})
    alarms = made.false_alarms
    codes = Counter(code for alarm in made.alarms for code in alarm.codes)
    tail = [
        f"{len(made.cases)} cases"
        + ("" if made.macro is None else f", {100 * made.macro:.1f} % caught on the mean of {planted} kinds")
        + (f"; {len(rows) - planted} kinds apply to none of these documents" if planted < len(rows) else "")
    ]
    if alarms.value is not None:
        tail.append(
            f"False alarms: {len(made.alarms)} of {made.documents} documents escalate although nothing was planted, "
            f"{100 * alarms.value:.1f} % (95 % interval {100 * alarms.low:.1f} to {100 * alarms.high:.1f})"
            + (f": {', '.join(f'{code} {n}' for code, n in sorted(codes.items()))}" if codes else "")
        )
    if others := sum(case.caught_by_other for case in made.cases):
        tail.append(
            f"By another: {others} cases were caught, but by none of the agents that should see that kind; without those that "
            "did they would pass"
        )
    if made.left_out:
        tail.append(f"{len(made.left_out)} documents were left out: not accepted, and nobody says what is right")
    if unanswered := sum(case.unanswered for case in made.cases):
        tail.append(
            f"In {unanswered} cases a verifier could not answer; it has caught nothing in them (on_agent_failure counts as "
            "escalate here)"
        )
    return ("kind", "what is wrong", "n", "caught", "95 %", "by", "by another", "else", "n/a to"), rows, tail
