"""What an output folder knows of every processed document: the one value that all of evaluation is computed from.

Reading goes on where a file is damaged: the file is named in ``Study.problems`` and its document counts as unreadable,
so that nothing that is missing makes a figure better.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from evalkit.classification.schema import DocumentType
from evalkit.errors import EvalkitError, UsageError
from evalkit.evaluation import attention
from evalkit.issue import Issue
from evalkit.pipeline.sample_draws import read_all_draws, read_draw_probabilities
from evalkit.pipeline.supplied_labels import (
    PageSpan,
    SuppliedLabels,
    parse_spans,
    read_production_labels,
    read_stored_labels,
    read_true_labels,
)
from evalkit.review.ground_truth import SCHEMA_VERSION as TRUTH_VERSION
from evalkit.review.ground_truth import is_simulated, list_revisions
from evalkit.review.packet import ADJUDICATION_SUFFIX, SECOND_SUFFIX
from evalkit.store import (
    GROUND_TRUTH_FOLDER,
    PACKETS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    OutputFolder,
    OutputIndex,
    ground_truth_file_name,
    has_database,
    packet_file_name,
    result_file_name,
    review_file_name,
)

if TYPE_CHECKING:
    import pandas as pd

Standing = Literal["reviewed", "undeterminable", "pending", "unseen", "unreadable"]
"""What is known of a document's truth. ``unseen``: accepted and not drawn for anybody to look at."""

TYPES = tuple(kind.value for kind in DocumentType)

_NAMED = 5
"""So many rows that belong to nothing are named."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What somebody says of a document."""

    dominant_type: str | None
    """None: cannot tell, or no usable answer."""
    segments: tuple[PageSpan, ...] = ()
    """First page, last page, type; empty where nothing is said of segments."""
    presence: Mapping[str, str] = field(default_factory=dict)
    """Document type → presence level in the whole document."""
    mixture: Mapping[str, float] = field(default_factory=dict)
    """Document type → share of the whole document, 0..1."""
    confidence: float | None = None
    """In the dominant type, 0..1."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What is true of a document, and who says so."""

    labels: Labels
    source: Literal["SME_VALIDATED", "SME_CORRECTED", "GOLD"]
    """``GOLD``: a file of labels that was given."""
    vouched: frozenset[str]
    """Of ``dominant_type``, ``segments``, ``mixture``: only these parts may be measured by."""
    reviewer: str | None
    is_simulated: bool
    """Whether a program, not a person, reviewed it."""
    review_reason: str | None
    notes: str = ""

    def says(self, part: str) -> bool:
        """Whether that part was vouched for."""
        return part in self.vouched


class Finding(NamedTuple):
    """One issue, and what experts said of it."""

    issue_id: str
    code: str
    agent: str
    origin: str
    severity: str
    status: str
    page: int | None
    message: str
    verdict: str | None
    """``confirmed``, ``dismissed``, or None: no expert said anything."""
    auto_fixable: bool = False
    """Whether arithmetic could have mended it: some rows of the arbiter's table count only such, or only others."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One submitted review of one case."""

    case_id: str
    revision: int
    reviewer: str
    is_simulated: bool
    outcome: str
    submitted_at: str
    seconds: float | None
    """Active seconds; None where nobody measured."""
    was_blind: bool
    """Whether the agent's answer was hidden until this one was given."""
    review_reason: str
    before: Labels | None
    """What the agent had said."""
    labels: Labels | None
    """What the reviewer says; None where nothing was decided."""
    vouched: frozenset[str] = frozenset()
    flags: tuple[Mapping[str, Any], ...] = ()
    """Remarks about single segments, as the review has them: ``segment_index``, ``flag``, perhaps pages."""


@dataclass(frozen=True, slots=True)
class Document:
    """One processed document."""

    doc_id: str
    sha256: str | None
    filename: str
    standing: Standing
    decision: str | None
    """AUTO_ACCEPT or ESCALATE_TO_SME; None where it could not be read."""
    decision_rule: str | None = None
    decision_reason: str = ""
    pages: int | None = None
    agent: Labels | None = None
    """The pipeline's answer; None where it gave no usable one."""
    production: Labels | None = None
    """The production classifier's label; None where it is not known."""
    truth: Truth | None = None
    drawn_with: float | None = None
    """The probability with which it was drawn, or could have been, 0..1; 1 where it was escalated; None: unreadable, or nobody knows."""
    probability: float | None = None
    """That of having been looked at by now: ``drawn_with``, times the share of those drawn alike that were; 1 where the
    truth was given, 0 where all of these still wait. So a draw by itself makes no figure better or worse."""
    cell: tuple[Any, ...] = ()
    """Documents with equal cells were drawn alike: by the same draws, from the same strata, at the same rate."""
    review_reason: str | None = None
    """Why it is or was in the queue; None where it never was."""
    is_put_off: bool = False
    """Whether an expert had it open and deferred it."""
    findings: tuple[Finding, ...] = ()
    answers: tuple[Answer, ...] = ()
    """Oldest first, those of second opinions and adjudications behind the case's own."""
    evidence_quality: float | None = None
    grounded_ratio: float | None = None
    calls: int = 0
    tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    """None where nobody knows the price."""
    seconds: float | None = None
    """From begin to end of its processing, waiting included."""
    error_code: str | None = None

    @property
    def weight(self) -> float:
        """How many documents it stands for where its truth is known, at least 1."""
        return 1 / self.probability if self.probability else 1.0

    @property
    def was_looked_at(self) -> bool:
        """Whether an expert had it open and did something about it, whether or not its truth is known by that."""
        return self.truth is not None or self.standing == "undeterminable" or bool(self.answers) or self.is_put_off

    @property
    def is_accepted(self) -> bool:
        """Whether the arbiter accepted it."""
        return self.decision == "AUTO_ACCEPT"


@dataclass(frozen=True)
class Study:
    """All processed documents of one output folder, by doc_id; replaced versions are none of them."""

    output: Path | str
    documents: tuple[Document, ...]
    problems: tuple[str, ...]
    """A sentence for each damaged file."""
    remarks: tuple[str, ...] = ()
    """A sentence for each label that could not be used as it is."""
    seeded: tuple[attention.SeededCase, ...] = ()
    """The cases whose shown answer is wrong on purpose: none of their reviews is an answer about a document."""

    @property
    def reviewed(self) -> list[Document]:
        """The documents whose truth is known."""
        return [one for one in self.documents if one.truth is not None]

    @property
    def answers(self) -> list[Answer]:
        """Every review of every document."""
        return [answer for one in self.documents for answer in one.answers]

    @property
    def simulated(self) -> int:
        """How many of them a program made: every figure that rests on any must say so."""
        return sum(answer.is_simulated for answer in self.answers)

    def to_frame(self) -> pd.DataFrame:
        """One row per document.

        Columns: ``doc_id``, ``filename``, ``pages``, ``standing``, ``decision``, ``agent`` and ``confidence``,
        ``production``, ``truth`` and ``source`` of it, ``blocker``, ``major``, ``minor`` (open issues),
        ``grounded_ratio``, ``probability`` (of having been looked at by now), ``seconds``, ``cost_usd``.
        """
        import pandas as pd

        return pd.DataFrame([_row(one) for one in self.documents])

    def counts(self) -> Counter[Standing]:
        """How many documents stand where."""
        return Counter(one.standing for one in self.documents)


def _row(one: Document) -> dict[str, Any]:
    open_issues = Counter(issue.severity for issue in one.findings if issue.status == "open")
    return {
        "doc_id": one.doc_id,
        "filename": one.filename,
        "pages": one.pages,
        "standing": one.standing,
        "decision": one.decision,
        "agent": one.agent.dominant_type if one.agent else None,
        "confidence": one.agent.confidence if one.agent else None,
        "production": one.production.dominant_type if one.production else None,
        "truth": one.truth.labels.dominant_type if one.truth else None,
        "source": one.truth.source if one.truth else None,
        **{severity.lower(): open_issues[severity] for severity in ("BLOCKER", "MAJOR", "MINOR")},
        "grounded_ratio": one.grounded_ratio,
        "probability": one.probability,
        "seconds": one.seconds,
        "cost_usd": one.cost_usd,
    }


def read_study(
    output: Path | str,
    *,
    truth: Path | str | None = None,
    production: Path | str | None = None,
    foreign_types: Mapping[str, str] | None = None,
) -> Study:
    """Read an output folder.

    Args:
        output: the folder of a run.
        truth: CSV or JSON with labels that are known to be right (``doc_id`` or ``filename``, ``dominant_type``,
            optional ``segments`` as ``1-5 Genomic Report; 6-8 Clinical Note``); they stand for all documents they name,
            before any review.
        production: CSV or JSON with the production classifier's labels, before those that a run was given.
        foreign_types: a label of the production classifier → one of the five types.

    Raises:
        UsageError: the folder, or a file of labels, is not there or not readable; a label is mapped to no type.
        StoreError: a draw, ``production.json`` or the index is damaged: they are about all documents.
    """
    files = OutputFolder(output)
    if not files.has_folder(RESULTS_FOLDER):
        raise UsageError(
            f"{files.root} holds no results", code="OUTPUT-FOLDER", remedy="Name the output folder of an `evalkit run`."
        )
    for label, kind in (foreign_types or {}).items():
        if kind not in TYPES:
            raise UsageError(
                f"[foreign_types] maps {label!r} to {kind!r}",
                code="FOREIGN-TYPES",
                remedy=f"Map it to one of {', '.join(TYPES)}.",
            )
    reading = _Reading(files, dict(foreign_types or {}))
    reading.labels(truth, production)
    documents = [reading.document(name.rpartition("/")[2].removesuffix(".json")) for name in reading.results()]
    reading.name_unmatched(documents)
    seeded = tuple(attention.read(reading.files, reading.problems))
    return Study(
        files.root, tuple(answered(documents)), tuple(reading.problems), tuple(dict.fromkeys(reading.remarks)), seeded
    )


def answered(documents: Iterable[Document]) -> list[Document]:
    """The documents with the probability of having been looked at by now.

    Of those drawn alike, the ones that still wait are taken for like those that were looked at. That is right where all
    were, and nearly so where neither remarks nor names go with being wrong: nobody chooses the next case, but the queue
    shows those with more remarks first, then goes by name. Source: response weights within cells of equal probability (Little, JASA 81, 1986).
    """
    every = list(documents)
    waited = [one for one in every if one.review_reason is not None and not _is_given(one)]
    drawn = Counter(one.cell for one in waited)
    looked = Counter(one.cell for one in waited if one.was_looked_at)

    def chance(one: Document) -> float | None:
        if _is_given(one):
            return 1.0
        if not one.is_accepted or not one.drawn_with or not drawn[one.cell]:
            return one.drawn_with
        return one.drawn_with * looked[one.cell] / drawn[one.cell]

    return [replace(one, probability=chance(one)) for one in every]


def _is_given(one: Document) -> bool:
    """Whether its truth is known from a file of labels, whatever was drawn."""
    return one.truth is not None and one.truth.source == "GOLD"


def labels_of(classification: Mapping[str, Any] | None) -> Labels | None:
    """A stored classification as labels. LookupError, TypeError or ValueError where it is none."""
    if classification is None:
        return None
    kind = classification["dominant_type_overall"]
    mixture = [(_typed(one["document_type"], str), one) for one in classification["document_mixture"]]
    return Labels(
        _typed(kind, str, _NOTHING),
        tuple(
            (_typed(one["start_page"], int), _typed(one["end_page"], int), _typed(one["dominant_type"], str, _NOTHING))
            for one in classification["segments"]
        ),
        {name: _typed(one["presence_level"], str) for name, one in mixture},
        {name: _typed(one["overall_share"], int, float) for name, one in mixture},
        next((_typed(one["confidence"], int, float) for name, one in mixture if name == kind), None),
    )


_NOTHING = type(None)


def _typed(value: Any, *kinds: type) -> Any:
    """A value as the file should have it: of one of these types, and finite. TypeError, ValueError: it is damaged."""
    if type(value) not in kinds:
        raise TypeError("a value is of another type")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is none")
    return value


class _Reading:
    """One pass over an output folder."""

    def __init__(self, files: OutputFolder, foreign_types: Mapping[str, str]) -> None:
        self.files = files
        self.problems: list[str] = []
        self.remarks: list[str] = []
        self._foreign = foreign_types
        self._unknown: set[str] = set()
        self._rows = self._indexed()
        paths = [row["file_path"] for row in self._rows.values() if not row["replaced"]]
        # An index that was made again has none of what could not be read.
        self._names = Counter(Path(path).name for path in paths if path)
        self._packets = set(files.list_json_files(PACKETS_FOLDER))
        self._truths = set(files.list_json_files(GROUND_TRUTH_FOLDER))
        self._reviewed = set(files.list_subfolders(REVIEWS_FOLDER))
        self._drawn = read_draw_probabilities(files)
        self._strata = _strata(files)
        self._given: dict[str, SuppliedLabels] = {}
        self._gold: Mapping[str, Mapping[str, Any]] = {}
        self._production: Mapping[str, Mapping[str, Any]] = {}

    def _indexed(self) -> dict[str, dict[str, Any]]:
        if not has_database(self.files.root):
            return {}
        with OutputIndex(self.files.root) as index:
            return {row["doc_id"]: row for row in index.list_documents()}

    def results(self) -> Iterator[str]:
        """The results that stand for a document as it is now."""
        for name in self.files.list_json_files(RESULTS_FOLDER):
            row = self._rows.get(name.rpartition("/")[2].removesuffix(".json"))
            if not (row and row["replaced"]):
                yield name

    def labels(self, truth: Path | str | None, production: Path | str | None) -> None:
        """Read the files of labels."""
        if truth is not None:
            self._given["known labels"] = read_true_labels(Path(truth))
            self._gold = self._given["known labels"].label_by_key
        self._production = read_stored_labels(self.files)
        if production is not None:
            self._given["production labels"] = read_production_labels(Path(production))
            self._production = {**self._production, **self._given["production labels"].label_by_key}

    def name_unmatched(self, documents: Iterable[Document]) -> None:
        """Say which rows of labels belong to no document."""
        every = list(documents)
        for what, labels in self._given.items():
            lost = labels.find_unmatched_keys((one.doc_id for one in every), (one.filename for one in every))
            if lost:
                more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
                self.remarks.append(f"{what} of no document here: {', '.join(lost[:_NAMED])}{more}")

    def _json(self, name: str) -> dict[str, Any]:
        return self.files.read_json(name, schema_version=TRUTH_VERSION)

    def document(self, doc_id: str) -> Document:
        """One document; an unreadable one where a file of it is damaged."""
        filename = Path((self._rows.get(doc_id) or {}).get("file_path") or f"{doc_id}.pdf").name
        try:
            result = self._json(result_file_name(doc_id))
            return self._of(doc_id, filename, result)
        except EvalkitError as error:
            self.problems.append(str(error))
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError):
            self.problems.append(f"{RESULTS_FOLDER}/{doc_id}.json or a file of its case does not have its shape")
        return self._unreadable(doc_id, filename, None, "STORE-TORN")

    def _unreadable(self, doc_id: str, filename: str, sha256: str | None, code: str) -> Document:
        """It stays in the denominator, production's too, whatever else is known of it."""
        production = self._labelled(self._named(self._production, doc_id, filename))
        return Document(doc_id, sha256, filename, "unreadable", None, production=production, error_code=code)

    def _of(self, doc_id: str, filename: str, result: Mapping[str, Any]) -> Document:
        if "error" in result:
            return self._unreadable(doc_id, filename, result.get("sha256"), result["error"]["code"])
        gold = self._named(self._gold, doc_id, filename)
        packet = self._if_there(packet_file_name(doc_id), self._packets)
        record = self._if_there(ground_truth_file_name(doc_id), self._truths)
        truth = _gold(gold) if gold else _truth(record)
        reviews = list(self._reviews(doc_id))
        usage = result["usage"]
        agent = labels_of(result["classification"])
        is_accepted = result["decision"] == "AUTO_ACCEPT"
        drawn_with = self._drawn_with(doc_id, packet or record) if is_accepted else 1.0
        return Document(
            doc_id=doc_id,
            sha256=result["sha256"],
            filename=filename,
            standing="reviewed" if truth else _standing(packet, reviews, is_accepted=is_accepted),
            decision=result["decision"],
            decision_rule=result["decision_rule"],
            decision_reason=result["decision_reason"],
            pages=_typed(packet["total_pages"], int) if packet else _last_page(agent),
            agent=agent,
            production=self._labelled(self._named(self._production, doc_id, filename) or _production_of(packet)),
            truth=truth,
            drawn_with=drawn_with,
            cell=(drawn_with, *self._strata.get(doc_id, ())) if is_accepted else (),
            review_reason=packet["review_reason"] if packet else None,
            is_put_off=packet is not None and packet["review_status"] == "deferred",
            findings=tuple(_findings(result["issues"], _verdicts(result, packet, reviews))),
            answers=tuple(_answer(*one, packet["review_reason"] if packet else "") for one in reviews),
            evidence_quality=_number(result["evidence_quality_score"]),
            grounded_ratio=_number(result["grounded_ratio"]),
            calls=_typed(usage["calls"], int),
            tokens=_typed(usage["input_tokens"], int) + _typed(usage["output_tokens"], int),
            cost_usd=None if usage["cost_usd"] is None else Decimal(usage["cost_usd"]),
            seconds=_elapsed(result["times"]),
        )

    def _if_there(self, name: str, names: AbstractSet[str]) -> dict[str, Any] | None:
        return self._json(name) if name in names else None

    def _reviews(self, doc_id: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """The reviews of a document's cases with case and number, those of further opinions behind."""
        for case_id in (doc_id, f"{doc_id}{SECOND_SUFFIX}", f"{doc_id}{ADJUDICATION_SUFFIX}"):
            if case_id in self._reviewed:
                for number in list_revisions(self.files, case_id):
                    review = self._json(review_file_name(case_id, number))
                    if review.get("seeded") is not True:  # it says nothing about a document
                        yield case_id, number, review

    def _drawn_with(self, doc_id: str, drawn: Mapping[str, Any] | None) -> float | None:
        """With which an accepted document is drawn: its packet's or record's, or that of a later draw."""
        stored = _number(drawn["inclusion_probability"]) if drawn else None
        share = max((one for one in (stored, self._drawn.get(doc_id)) if one is not None), default=None)
        if share is not None and not 0 <= share <= 1:
            raise ValueError("a probability is not from 0 to 1")
        return share

    def _named(self, rows: Mapping[str, Mapping[str, Any]], doc_id: str, filename: str) -> Mapping[str, Any] | None:
        """The row of a document, by doc_id, or by a file name that no other document has."""
        if doc_id not in rows and filename in rows and self._names[filename] > 1:
            self.remarks.append(f"{self._names[filename]} documents are called {filename}: labels must name the doc_id")
            return None
        return rows.get(doc_id) or rows.get(filename)

    def _labelled(self, row: Mapping[str, Any] | None) -> Labels | None:
        """A production row as labels, in the five types where the mapping knows them."""
        if row is None:
            return None
        kind = self._foreign.get(row["dominant_type"], row["dominant_type"])
        if kind not in TYPES and kind not in self._unknown:
            self._unknown.add(kind)
            self.remarks.append(f"production says {kind!r}, which is none of the five types: map it in [foreign_types]")
        try:
            confidence = None if row.get("confidence") is None else _typed(float(row["confidence"]), float)
            parts = [
                (first, last, one and self._foreign.get(one, one))
                for first, last, one in parse_spans(row.get("segments"))
            ]
        except (TypeError, ValueError):
            self.remarks.append(
                "a production label has a confidence or segments that cannot be read: its type alone is used"
            )
            confidence, parts = None, []
        return Labels(kind, tuple(parts), confidence=confidence)


def _strata(files: OutputFolder) -> dict[str, tuple[str, ...]]:
    """doc_id → the strata that it was in, one for each draw that could have drawn it."""
    found: dict[str, tuple[str, ...]] = {}
    for number, draw in enumerate(read_all_draws(files), 1):
        for stratum in draw.strata:
            for doc_id in stratum.probability:
                found[doc_id] = (*found.get(doc_id, ()), f"{number}:{stratum.value}")
    return found


def _truth(record: Mapping[str, Any] | None) -> Truth | None:
    if record is None or record["ground_truth_source"] == "AUTO_ACCEPTED":  # silver: nobody looked
        return None
    labels = labels_of(record["ground_truth_classification"])
    if labels is None:
        return None
    return Truth(
        labels,
        record["ground_truth_source"],
        frozenset(record["vouched"]),
        record["reviewer"],
        is_simulated(record["reviewer"]),
        record["review_reason"],
        record["correction_notes"],
    )


def _answer(case_id: str, revision: int, review: Mapping[str, Any], review_reason: str) -> Answer:
    return Answer(
        case_id=case_id,
        revision=revision,
        reviewer=review["reviewer"],
        is_simulated=is_simulated(review["reviewer"]),
        outcome=review["outcome"],
        submitted_at=review["submitted_at"],
        seconds=_number(review["seconds_active"]),
        was_blind=not review["shown"]["agent"],
        review_reason=review_reason,
        before=labels_of(review["before"]),
        labels=labels_of(review["after"]),
        vouched=frozenset(review["vouched"]),
        flags=tuple(map(_flag, review["segment_flags"])),
    )


def _flag(remark: Any) -> Mapping[str, Any]:
    for name in ("start_page", "end_page"):
        _typed(_typed(remark, dict).get(name), int, _NOTHING)
    return cast("Mapping[str, Any]", remark)


def _standing(
    packet: Mapping[str, Any] | None, reviews: Sequence[tuple[str, int, Mapping[str, Any]]], *, is_accepted: bool
) -> Standing:
    if reviews and reviews[-1][2]["outcome"] == "undeterminable":
        return "undeterminable"
    return "unseen" if packet is None and is_accepted else "pending"


def _gold(row: Mapping[str, Any]) -> Truth:
    parts = parse_spans(row.get("segments"))
    vouched = frozenset({"dominant_type", "segments"} if parts else {"dominant_type"})
    return Truth(Labels(row["dominant_type"], parts), "GOLD", vouched, None, is_simulated=False, review_reason=None)


def _production_of(packet: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return packet["production_classification"] if packet else None


def _last_page(agent: Labels | None) -> int | None:
    return max((end for _, end, _ in agent.segments), default=None) if agent else None


def _number(value: Any) -> float | None:
    """A number, or None for null. TypeError or ValueError for anything else: the file is damaged."""
    return None if value is None else float(_typed(value, int, float))


def _verdicts(
    result: Mapping[str, Any], packet: Mapping[str, Any] | None, reviews: Sequence[tuple[str, int, Mapping[str, Any]]]
) -> dict[str, str]:
    """issue_id → the newest word of an expert, where the issue that was judged is still the result's."""
    said = {one["issue_id"]: one["verdict"] for *_, review in reviews for one in review["issue_verdicts"]}
    judged = {_about(one) for one in packet["issues"]} if packet else set()
    return {
        one["issue_id"]: said[one["issue_id"]]
        for one in result["issues"]
        if one["issue_id"] in said and _about(one) in judged
    }


def _about(issue: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(issue[name] for name in ("issue_id", "code", "page", "message"))


def _findings(issues: Sequence[Mapping[str, Any]], verdicts: Mapping[str, str]) -> Iterator[Finding]:
    for one in issues:
        Issue.model_validate(one)  # ValueError
        yield Finding(
            one["issue_id"],
            one["code"],
            one["agent"],
            one["origin"],
            one["severity"],
            one["status"],
            one["page"],
            one["message"],
            verdicts.get(one["issue_id"]),
            one["auto_fixable"],
        )


def _elapsed(times: Mapping[str, Any]) -> float | None:
    try:
        began, ended = (datetime.fromisoformat(times[name]) for name in ("started_at", "finished_at"))
    except (KeyError, ValueError):
        return None
    return (ended - began).total_seconds()
