"""Seeded cases are made: a known answer, one deliberate fault in it, and the issues that the checks raise about that.

A fault is planted where no computed check sees it, so that nobody but the expert can. The case must have come to a
person anyway: a planted answer that the arbiter would have accepted is not used, because it would be told apart by that.
Nothing is invented: quotes stand on their pages, the reasoning is the agent's own, with the names of the types exchanged.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.findings import TEXT_FINDING_CODES
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
    TypePresence,
)
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import V2ConsistencyChecker
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import MAX_SNIPPET_WORDS, MIN_SNIPPET_WORDS, V4EvidenceQualityAssessor
from evalkit.classification.v5_arbiter import Decision, V5DecisionMaker
from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import EvalkitError, UsageError
from evalkit.evaluation.attention import read as read_attention
from evalkit.evaluation.study import Document, read_study
from evalkit.issue import Agent, Issue, number_issues
from evalkit.review.corrections import (
    CLASSIFICATION_PARTS,
    choose_dominant_type,
    compute_page_weighted_mixture,
    find_rule_violations,
)
from evalkit.review.ground_truth import GroundTruth
from evalkit.review.loaders import read_bundle, read_result
from evalkit.review.opinions import sync_seeded_cases
from evalkit.review.packet import SMEPacket, SMEPacketGenerator, format_timestamp, read_packet, utc_now
from evalkit.review.roster import Roster
from evalkit.review.seeded_cases import Fault, FaultKind, Seeded, iterate_seeded_cases
from evalkit.review.write_lock import hold_write_lock
from evalkit.store import (
    OutputFolder,
    OutputIndex,
    bundle_file_name,
    ground_truth_file_name,
    hash_canonical_json,
    packet_file_name,
    result_file_name,
    seed_record_file_name,
)

_USUAL = 0.9
"""Confidence of an agent that states none anywhere."""
_QUOTES = 2
"""So many quotes support a segment that nobody has quoted anything for."""

_FAILED = frozenset(f"{agent}-AGENT-FAILED" for agent in ("V2", "V3", "V4"))
_SEEN = frozenset(TEXT_FINDING_CODES.values())

_Segments = tuple[Segment, ...]
_Planted = tuple[_Segments, Fault]


@dataclass(frozen=True)
class SeededDraw:
    """One ``evalkit sample N --seeded``."""

    cases: tuple[Seeded, ...]
    """What was put into the queue."""
    nobody: tuple[str, ...]
    """The case_ids of seeded cases, earlier ones too, that wait although everybody in the roster knows the document."""


def sample_seeded(output: Path | str, number: int, *, seed: str, drawn_at: str) -> SeededDraw:
    """Put cases into the queue whose shown answer is wrong on purpose; as many as can be made, at most ``number``.

    Each is of another document, whose type and segments a person has vouched for; a program's word counts only where no
    person has vouched for any, in a demo. Equal seeds and moments plant equal faults. UsageError where none can be made,
    or where a run is writing; StoreError.
    """
    if number < 1:
        raise UsageError(f"{number} cases cannot be drawn", code="SAMPLE-NUMBER", remedy="Draw at least one.")
    files = OutputFolder(output)
    with files.run_lock():
        vouched = [one for one in read_study(output).documents if _is_vouched(one)]
        known = [one for one in vouched if one.truth and not one.truth.is_simulated] or vouched
        known.sort(key=lambda one: hashlib.sha256(f"{seed}:{drawn_at}:{one.sha256}".encode()).digest())
        used = {doc_id for _, doc_id in iterate_seeded_cases(files)}
        roster = Roster(files).list_deciding_reviewers()
        with OutputIndex(output) as index:
            made: list[Seeded] = []
            kept_for_nobody = 0
            for one in known:
                if len(made) == number:
                    break
                if one.doc_id in used:
                    continue
                if roster and {answer.reviewer for answer in one.answers}.issuperset(roster):
                    kept_for_nobody += 1
                    continue
                with hold_write_lock(files):  # no review may change the truth meanwhile
                    seeded = _seeded(files, one.doc_id, seed=seed, drawn_at=drawn_at)
                    if seeded is not None and files.create_json(
                        seed_record_file_name(seeded.packet.case_id), seeded.model_dump(mode="json")
                    ):
                        made.append(seeded)
            with hold_write_lock(files):
                sync_seeded_cases(files, index, format_timestamp(utc_now()))
        if not made:
            raise _nothing(len(known), kept_for_nobody)
        waiting = read_attention(files, [])
        return SeededDraw(tuple(made), tuple(one.case_id for one in waiting if one.standing == "nobody"))


def _nothing(known: int, for_nobody: int) -> UsageError:
    if for_nobody:
        return UsageError(
            f"everybody in the roster knows all documents ({for_nobody}) that a fault could be planted in",
            code="SAMPLE-NOBODY",
            remedy="Add a reviewer with `evalkit reviewers add NAME`, or draw when others have decided more cases.",
        )
    return UsageError(
        f"no fault can be planted: {known} documents have type and segments that a person vouched for, and none of "
        "them is left that would come to an expert unnoticed",
        code="SAMPLE-NOTHING-LEFT",
        remedy="Review more escalated cases first.",
    )


def _is_vouched(one: Document) -> bool:
    return one.truth is not None and one.truth.says("dominant_type") and one.truth.says("segments")


def _seeded(files: OutputFolder, doc_id: str, *, seed: str, drawn_at: str) -> Seeded | None:
    """A seeded case of that document; None where none can be made of it, or a file of it is damaged."""
    try:
        stored = files.read_json(ground_truth_file_name(doc_id))
        truth = GroundTruth.model_validate(stored)
        packet, bundle, result = read_packet(files, doc_id), read_bundle(files, doc_id), read_result(files, doc_id)
    except (EvalkitError, ValueError):
        return None
    # Read again, because a review may have come since the study was.
    if not isinstance(result, DocumentResult) or not {"dominant_type", "segments"} <= {*truth.vouched}:
        return None
    salt = f"{seed}:{drawn_at}:{bundle.sha256}"
    planted = plant(truth.ground_truth_classification, packet, bundle, random.Random(salt))  # noqa: S311 - no secret
    if planted is None:
        return None
    answer, fault, issues = planted
    case_id = f"{doc_id}-{hashlib.sha256(salt.encode()).hexdigest()[:8]}"
    if files.has_file(result_file_name(case_id)) or files.has_file(packet_file_name(case_id)):
        return None
    verdict = V5DecisionMaker().decide(issues)
    shown = result.model_copy(
        update={
            "doc_id": case_id,
            "classification": answer,
            "issues": issues,
            "decision": verdict.decision,
            "decision_rule": verdict.rule,
            "decision_reason": verdict.reason,
        }
    )
    case = SMEPacketGenerator().packet(
        shown,
        bundle,
        review_reason="escalated",
        inclusion_probability=1.0,
        production=packet.production_classification,
        created_at=packet.created_at,  # a case that is younger than the last run would be told by its age
    )
    return Seeded(
        doc_id=doc_id,
        fault=fault,
        truth_sha256=hash_canonical_json(stored),
        drawn_at=drawn_at,
        packet=case.model_copy(update={"document_bundle_path": bundle_file_name(doc_id)}),
    )


def plant(
    truth: ClassificationOutput, packet: SMEPacket, bundle: DocumentBundle, dice: random.Random
) -> tuple[ClassificationOutput, Fault, tuple[Issue, ...]] | None:
    """The known answer with one fault in it, the fault, and the issues that stand beside it; None where none fits.

    No computed check of V1 to V4 raises anything about the planted answer that it does not raise about the known one,
    the answer can be validated, and V5 sends it to a person.
    """
    known = _dressed(truth, packet, bundle)
    said = packet.classification
    # A wrong count is the agent's own fault, why the case came to a person, and arithmetic mends it.
    miscounted = said.number_of_segments - len(said.segments) if said else 0
    honest = _answered(truth, known, bundle)
    if honest is None or honest.dominant_type_overall != truth.dominant_type_overall:
        return None
    usual = _codes(_computed(honest, bundle))
    kinds = list(_KINDS)
    dice.shuffle(kinds)
    for kind in kinds:
        ways = list(_KINDS[kind](known, truth.dominant_type_overall, bundle))
        dice.shuffle(ways)
        for segments, fault in ways:
            answer = _answered(truth, segments, bundle)
            if answer is None or _codes(_computed(answer, bundle)) - usual:
                continue
            shown = answer.model_copy(update={"number_of_segments": answer.number_of_segments + miscounted})
            issues = (*_computed(shown, bundle), *_kept(packet, shown, fault))
            if V5DecisionMaker().decide(issues).decision is Decision.ESCALATE_TO_SME:
                return shown, fault, tuple(_numbered(issues))
    return None


# ------------------------------------------------------------------------------------------ the known answer


def _dressed(truth: ClassificationOutput, packet: SMEPacket, bundle: DocumentBundle) -> _Segments:
    """The true segments as an agent would state them: an expert's correction has no quotes, reasons and doubts."""
    agents = packet.classification.segments if packet.classification else ()
    same = {(one.start_page, one.end_page, one.dominant_type): one for one in agents}
    return tuple(
        one
        if _quoted(one)
        else same.get((one.start_page, one.end_page, one.dominant_type)) or _stated(one, agents, bundle)
        for one in truth.segments
    )


def _quoted(segment: Segment) -> bool:
    return any(one.top_evidence for one in segment.segment_composition if one.document_type == segment.dominant_type)


def _stated(segment: Segment, agents: Sequence[Segment], bundle: DocumentBundle) -> Segment:
    quotes = [
        quote
        for other in agents
        for presence in other.segment_composition
        for quote in presence.top_evidence
        if segment.start_page <= quote.page <= segment.end_page
    ]
    sure = [presence.confidence for other in agents for presence in other.segment_composition if presence.confidence]
    nearest = max(agents, key=lambda other: _common_pages(segment, other), default=None)
    reasoning = _exchanged(nearest.reasoning, nearest.dominant_type, segment.dominant_type) if nearest else ""
    return segment.model_copy(
        update={
            "reasoning": reasoning,
            "segment_composition": tuple(
                one.model_copy(
                    update={
                        "confidence": median(sure) if sure else _USUAL,
                        "top_evidence": tuple(quotes[:_QUOTES]) or _sentences(segment, bundle),
                    }
                )
                if one.document_type == segment.dominant_type
                else one
                for one in segment.segment_composition
            ),
        }
    )


def _common_pages(one: Segment, other: Segment) -> int:
    return min(one.end_page, other.end_page) - max(one.start_page, other.start_page) + 1


def _sentences(segment: Segment, bundle: DocumentBundle) -> tuple[Evidence, ...]:
    """The first passages of the segment's pages that can be judged, as quotes."""
    found = (
        Evidence(snippet=block.text, page=number)
        for number in range(segment.start_page, segment.end_page + 1)
        for block in bundle.page(number).blocks
        if not (block.furniture or block.hidden) and MIN_SNIPPET_WORDS <= len(block.text.split()) <= MAX_SNIPPET_WORDS
    )
    return tuple(quote for quote, _ in zip(found, range(_QUOTES), strict=False))


def _exchanged(text: str, one: DocumentType | None, other: DocumentType | None) -> str:
    """The text with the names of two types in each other's place.

    >>> _exchanged("A Genomic Report, no Clinical Note.", DocumentType.GENOMIC_REPORT, DocumentType.CLINICAL_NOTE)
    'A Clinical Note, no Genomic Report.'
    """
    if one is None or other is None or one == other:
        return text
    names = {one.lower(): other.value, other.lower(): one.value}
    return re.sub("|".join(map(re.escape, names)), lambda match: names[match[0].lower()], text, flags=re.IGNORECASE)


def _answered(
    truth: ClassificationOutput, segments: Sequence[Segment], bundle: DocumentBundle
) -> ClassificationOutput | None:
    """The whole answer that these segments give, with the shares and the type that follow; None where it breaks a rule."""
    counted = tuple(
        one.model_copy(update={"segment_index": index, "segment_page_count": one.end_page - one.start_page + 1})
        for index, one in enumerate(segments, 1)
    )
    answer = truth.model_copy(
        update={"segments": counted, "number_of_segments": len(counted), "dominant_type_overall": DocumentType.OTHER}
    )
    if find_rule_violations(answer, bundle, ("segments",)):  # only segments that pass have page-weighted shares
        return None
    sure = {
        kind: max(one.confidence for each in counted for one in each.segment_composition if one.document_type == kind)
        for kind in DocumentType
    }
    mixture = tuple(
        one.model_copy(update={"confidence": sure[one.document_type]}) for one in compute_page_weighted_mixture(counted)
    )
    whole = answer.model_copy(
        update={"document_mixture": mixture, "dominant_type_overall": choose_dominant_type(mixture, counted)}
    )
    return None if find_rule_violations(whole, bundle, CLASSIFICATION_PARTS) else whole


# ------------------------------------------------------------------------------------------------- faults


def _swapped(segments: _Segments, dominant: DocumentType | None, _bundle: DocumentBundle) -> Iterator[_Planted]:
    for at, one in enumerate(segments):
        for kind in DocumentType:
            if one.dominant_type is not None and kind != one.dominant_type:
                fault = Fault(
                    kind="type",
                    start_page=one.start_page,
                    end_page=one.end_page,
                    shown_type=kind,
                    true_type=one.dominant_type,
                    true_dominant=dominant,
                )
                yield (*segments[:at], _as(one, kind), *segments[at + 1 :]), fault


def _as(segment: Segment, kind: DocumentType) -> Segment:
    """The segment with two types in each other's place, quotes and all."""
    places = {segment.dominant_type: kind, kind: segment.dominant_type}
    return segment.model_copy(
        update={
            "dominant_type": kind,
            "reasoning": _exchanged(segment.reasoning, segment.dominant_type, kind),
            "segment_composition": tuple(
                one.model_copy(update={"document_type": places.get(one.document_type, one.document_type)})
                for one in segment.segment_composition
            ),
        }
    )


def _moved(segments: _Segments, _dominant: DocumentType | None, bundle: DocumentBundle) -> Iterator[_Planted]:
    for at, (left, right) in enumerate(pairwise(segments), 1):
        for start in range(left.start_page + 1, right.end_page + 1):
            if start != right.start_page:
                fault = Fault(
                    kind="boundary",
                    start_page=min(start, right.start_page),
                    end_page=max(start, right.start_page) - 1,
                    shown_start=start,
                    true_start=right.start_page,
                )
                cut = (
                    _within(left.model_copy(update={"end_page": start - 1}), bundle),
                    _within(right.model_copy(update={"start_page": start}), bundle),
                )
                yield (*segments[: at - 1], *cut, *segments[at + 1 :]), fault


def _within(segment: Segment, bundle: DocumentBundle) -> Segment:
    """The segment with the quotes of its own pages; of a type that is left without, quotes from there."""

    def own(one: TypePresence) -> tuple[Evidence, ...]:
        kept = tuple(quote for quote in one.top_evidence if segment.start_page <= quote.page <= segment.end_page)
        is_bare = one.presence_level is PresenceLevel.PRIMARY and not kept
        return _sentences(segment, bundle) if is_bare else kept

    return segment.model_copy(
        update={
            "segment_composition": tuple(
                one.model_copy(update={"top_evidence": own(one)}) for one in segment.segment_composition
            )
        }
    )


def _joined(segments: _Segments, _dominant: DocumentType | None, _bundle: DocumentBundle) -> Iterator[_Planted]:
    for at, (left, right) in enumerate(pairwise(segments), 1):
        larger = right if right.segment_page_count > left.segment_page_count else left
        whole = larger.model_copy(update={"start_page": left.start_page, "end_page": right.end_page})
        fault = Fault(kind="joined", start_page=left.start_page, end_page=right.end_page, true_start=right.start_page)
        yield (*segments[: at - 1], whole, *segments[at + 1 :]), fault


_KINDS: Mapping[FaultKind, Callable[[_Segments, DocumentType | None, DocumentBundle], Iterator[_Planted]]] = {
    "type": _swapped,
    "boundary": _moved,
    "joined": _joined,
}


# ------------------------------------------------------------------------------------------------- issues


def _computed(answer: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
    """What the checks find without asking a model."""
    return [
        *V1SchemaValidator().validate(answer, bundle),
        *V2ConsistencyChecker().validate(answer, bundle),
        *V3TrapDetector().validate(answer, bundle),
        *V4EvidenceQualityAssessor().validate(answer, bundle).issues,
    ]


def _codes(issues: Sequence[Issue]) -> Counter[str]:
    return Counter(issue.code for issue in issues)


def _kept(packet: SMEPacket, answer: ClassificationOutput, fault: Fault) -> Iterator[Issue]:
    """What was seen in the text or said of it, as far as it is not about the fault: it is not looked for again."""
    agents = packet.classification.segments if packet.classification else ()
    before, after = ({one.segment_index: _drawn(one) for one in each} for each in (agents, answer.segments))
    for issue in packet.open_issues:
        place = issue.segment_index
        is_elsewhere = issue.page is not None and not fault.start_page <= issue.page <= fault.end_page
        still_fits = is_elsewhere if place is None else place in after and before.get(place) == after[place]
        is_seen = issue.code in _SEEN and still_fits
        if issue.agent == "reader" or is_seen or issue.code in _FAILED:
            yield issue


def _drawn(segment: Segment) -> tuple[int, int, DocumentType | None]:
    return segment.start_page, segment.end_page, segment.dominant_type


def _numbered(issues: Sequence[Issue]) -> Iterator[Issue]:
    agents: dict[Agent, list[Issue]] = {}
    for issue in issues:
        agents.setdefault(issue.agent, []).append(issue)
    for agent, raised in agents.items():
        yield from number_issues(agent, raised)
