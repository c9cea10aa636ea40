"""Creation of attention checks: plant a fault in an answer known to be right.

A fault is planted only where no rule-based check detects it, so that only the expert can. A faulty answer that the
arbiter would have accepted is not used, because such a case would not be in the queue and so would give itself away.
Nothing is invented: quotes are on their pages, and the reasoning is the agent's own, with the types' names swapped.
"""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from evalkit.classification.document_result import DocumentResult
from evalkit.classification.findings import TEXT_FINDING_CODES, is_agent_failure_issue
from evalkit.classification.patient_check import PATIENT_CODES
from evalkit.classification.patient_keys import (
    attach_patient_keys,
    compute_patient_keys_by_page_range,
    load_or_create_patient_salt,
)
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    ReviewedClassification,
    Segment,
    TypePresence,
)
from evalkit.classification.v1_schema import V1SchemaValidator
from evalkit.classification.v2_consistency import EXPERT_QUESTION_CODES, V2ConsistencyChecker
from evalkit.classification.v3_traps import V3TrapDetector
from evalkit.classification.v4_evidence_quality import MAX_SNIPPET_WORDS, MIN_SNIPPET_WORDS, V4EvidenceQualityAssessor
from evalkit.classification.v5_arbiter import Decision, V5DecisionMaker
from evalkit.core.grouping import group_by
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.identity.file_persons import group_pages_by_person
from evalkit.errors import EvalkitError
from evalkit.issue import ISSUE_GROUP_BY_AGENT, Issue, number_issues
from evalkit.review.attention_checks.records import (
    AttentionCheck,
    FaultKind,
    PlantedFault,
    get_attention_check_file_name,
)
from evalkit.review.case_files import read_answering_model_name, read_packet
from evalkit.review.corrections import (
    CLASSIFICATION_PARTS,
    choose_dominant_type,
    compute_page_weighted_mixture,
    find_rule_violations,
)
from evalkit.review.ground_truth import GroundTruth
from evalkit.review.kinds.classification import ClassificationPacket
from evalkit.review.loaders import read_bundle, read_result
from evalkit.review.packet import SMEPacket
from evalkit.review.review_plan import ReviewCosts
from evalkit.store import (
    OutputFolder,
    ground_truth_file_name,
    hash_canonical_json,
    packet_file_name,
    result_file_name,
)

#: The confidence shown for a segment if the agent stated no confidence anywhere in its answer.
_DEFAULT_CONFIDENCE = 0.9
#: The number of quotes selected for a segment for which the agent quoted nothing.
_MAX_QUOTES = 2

_FAILURE_CODES = frozenset(f"{agent}-AGENT-FAILED" for agent in ("V2", "V3", "V4"))
_TEXT_CODES = frozenset(TEXT_FINDING_CODES.values())

_SegmentTuple = tuple[Segment, ...]
_FaultyVariant = tuple[_SegmentTuple, PlantedFault]


def plant_and_save_attention_check(
    output_folder: OutputFolder, doc_id: str, *, seed: str, drawn_at: str
) -> AttentionCheck | None:
    """Plant a fault in a document's right answer and record the attention check.

    Return None if no fault fits, if a file is missing or damaged, if no expert vouched for the type and segments, or if
    the same check exists already. ``seed`` and ``drawn_at`` (ISO 8601, UTC) determine the choice of the fault. The caller
    holds the write lock.
    """
    try:
        stored_truth = output_folder.read_json(ground_truth_file_name(doc_id))
        ground_truth = GroundTruth.model_validate(stored_truth)
        packet, bundle, result = (
            read_packet(output_folder, doc_id),
            read_bundle(output_folder, doc_id),
            read_result(output_folder, doc_id),
        )
    except (EvalkitError, ValueError):
        return None
    # The study that chose this document may be older than its newest review: check again.
    if not isinstance(result, DocumentResult) or not {"dominant_type", "segments"} <= {*ground_truth.vouched}:
        return None
    salt = f"{seed}:{drawn_at}:{bundle.sha256}"
    planted_variant = plant_answer_fault(ground_truth.ground_truth_classification, packet, bundle, random.Random(salt))  # noqa: S311 - no secret
    if planted_variant is None:
        return None
    faulty_answer, fault, issues = planted_variant
    case_id = f"{doc_id}-{hashlib.sha256(salt.encode()).hexdigest()[:8]}"
    if output_folder.has_file(result_file_name(case_id)) or output_folder.has_file(packet_file_name(case_id)):
        return None
    verdict = V5DecisionMaker().decide(issues)
    patients = compute_patient_keys_by_page_range(
        faulty_answer, group_pages_by_person(bundle.pages), load_or_create_patient_salt(output_folder)
    )
    shown_packet = ClassificationPacket.create(
        result.model_copy(
            update={
                "doc_id": case_id,
                "classification": attach_patient_keys(faulty_answer, patients),
                "issues": issues,
                "decision": verdict.decision,
                "decision_rule": verdict.rule,
                "decision_reason": verdict.reason,
            }
        ),
        bundle,
        review_reason="escalated",
        inclusion_probability=1.0,
        production_row=packet.production_classification,
        created_at=packet.created_at,  # a case younger than the last run would be recognised by its age
    )
    # A case that asks only about other parts could not show whether its expert is attentive.
    plan = shown_packet.plan_review(ReviewCosts(), read_answering_model_name(output_folder, packet))
    if not _list_parts_with_fault(fault, faulty_answer) <= {asked.part for asked in plan.asked}:
        plan = plan.model_copy(update={"is_shown_whole": True})
    shown_packet = shown_packet.model_copy(update={"review_plan": plan})
    attention_check = AttentionCheck(
        doc_id=doc_id,
        fault=fault,
        truth_sha256=hash_canonical_json(stored_truth),
        drawn_at=drawn_at,
        packet=shown_packet,
    )
    is_new = output_folder.create_json_if_absent(
        get_attention_check_file_name(case_id), attention_check.model_dump(mode="json")
    )
    return attention_check if is_new else None


def _list_parts_with_fault(fault: PlantedFault, answer: ClassificationOutput) -> set[str]:
    """List the answer's parts to be asked about so that the fault can be noticed."""
    if fault.kind == "type":
        return {
            f"segment:{segment.segment_index}"
            for segment in answer.segments
            if segment.start_page <= fault.end_page and fault.start_page <= segment.end_page
        }
    return {f"boundary:{page}" for page in (fault.shown_start, fault.true_start) if page}


def plant_answer_fault(
    true_answer: ClassificationOutput, packet: SMEPacket, bundle: DocumentBundle, random_source: random.Random
) -> tuple[ClassificationOutput, PlantedFault, tuple[Issue, ...]] | None:
    """Build a faulty variant of a right answer that only an expert can notice.

    Return the faulty answer, the planted fault and the issues to show, or None if no variant qualifies. For a variant that
    qualifies, the rule-based checks of V1 to V4 raise nothing that they do not raise for the true answer, the answer can
    be validated, and V5 escalates it.
    """
    if ReviewedClassification.model_validate(true_answer).has_refuted_type:
        return None  # no quote could be shown for the type
    true_answer = ClassificationOutput.model_validate(true_answer.model_dump())  # without the marks of the review
    true_segments = _restore_evidence(true_answer, packet, bundle)
    agent_answer = packet.classification
    # The agent's own miscount of segments is kept: it may be why the case was escalated, and validating repairs it.
    count_error = agent_answer.number_of_segments - len(agent_answer.segments) if agent_answer else 0
    honest_answer = _build_answer_if_valid(true_answer, true_segments, bundle)
    if honest_answer is None or honest_answer.dominant_type_overall != true_answer.dominant_type_overall:
        return None
    expected_codes = _count_codes(_run_rule_checks(honest_answer, bundle))
    fault_kinds = list(_FAULT_ITERATORS)
    random_source.shuffle(fault_kinds)
    for fault_kind in fault_kinds:
        variants = list(_FAULT_ITERATORS[fault_kind](true_segments, true_answer.dominant_type_overall, bundle))
        random_source.shuffle(variants)
        for segments, fault in variants:
            faulty_answer = _build_answer_if_valid(true_answer, segments, bundle)
            if faulty_answer is None or _count_codes(_run_rule_checks(faulty_answer, bundle)) - expected_codes:
                continue
            shown_answer = faulty_answer.model_copy(
                update={"number_of_segments": faulty_answer.number_of_segments + count_error}
            )
            issues = (
                *_run_rule_checks(shown_answer, bundle),
                *_iterate_issues_unrelated_to_fault(packet, shown_answer, fault),
            )
            if V5DecisionMaker().decide(issues).decision is Decision.ESCALATE_TO_SME:
                numbered_issues = (
                    issue
                    for agent, agent_issues in group_by(issues, lambda issue: issue.agent).items()
                    for issue in number_issues(agent, agent_issues)
                )
                return shown_answer, fault, tuple(numbered_issues)
    return None


# ------------------------------------------------------------------------------------------ the known answer


def _restore_evidence(true_answer: ClassificationOutput, packet: SMEPacket, bundle: DocumentBundle) -> _SegmentTuple:
    agent_segment_by_key = {
        (segment.start_page, segment.end_page, segment.dominant_type): segment for segment in packet.segments
    }
    return tuple(
        segment
        if _has_quotes(segment) and segment.reasoning
        else (
            not _has_quotes(segment)
            and agent_segment_by_key.get((segment.start_page, segment.end_page, segment.dominant_type))
        )
        or _add_agent_evidence(segment, packet.segments, bundle)
        for segment in true_answer.segments
    )


def _has_quotes(segment: Segment) -> bool:
    return any(
        presence.top_evidence
        for presence in segment.segment_composition
        if presence.document_type == segment.dominant_type
    )


def _add_agent_evidence(segment: Segment, agent_segments: Sequence[Segment], bundle: DocumentBundle) -> Segment:
    quotes = [
        quote
        for agent_segment in agent_segments
        for presence in agent_segment.segment_composition
        for quote in presence.top_evidence
        if segment.start_page <= quote.page <= segment.end_page
    ]
    confidences = [
        presence.confidence
        for agent_segment in agent_segments
        for presence in agent_segment.segment_composition
        if presence.confidence
    ]
    nearest_segment = max(
        agent_segments,
        key=lambda other: min(segment.end_page, other.end_page) - max(segment.start_page, other.start_page),
        default=None,
    )
    return segment.model_copy(
        update={
            "reasoning": (
                _swap_type_names(nearest_segment.reasoning, nearest_segment.dominant_type, segment.dominant_type)
                if nearest_segment
                else ""
            ),
            "segment_composition": tuple(
                type_presence.model_copy(
                    update={
                        "confidence": median(confidences) if confidences else _DEFAULT_CONFIDENCE,
                        "top_evidence": type_presence.top_evidence
                        or tuple(quotes[:_MAX_QUOTES])
                        or _select_quotes(segment, bundle),
                    }
                )
                if type_presence.document_type == segment.dominant_type
                else type_presence
                for type_presence in segment.segment_composition
            ),
        }
    )


def _select_quotes(segment: Segment, bundle: DocumentBundle) -> tuple[Evidence, ...]:
    quotes = (
        Evidence(snippet=block.text, page=page_number)
        for page_number in range(segment.start_page, segment.end_page + 1)
        for block in bundle.page(page_number).blocks
        if not (block.furniture or block.hidden) and MIN_SNIPPET_WORDS <= len(block.text.split()) <= MAX_SNIPPET_WORDS
    )
    return tuple(quote for quote, _ in zip(quotes, range(_MAX_QUOTES), strict=False))


def _swap_type_names(text: str, first_type: DocumentType | None, second_type: DocumentType | None) -> str:
    """Swap the names of two types in a text.

    >>> _swap_type_names("A Genomic Report, no Clinical Note.", DocumentType.GENOMIC_REPORT, DocumentType.CLINICAL_NOTE)
    'A Clinical Note, no Genomic Report.'
    """
    if first_type is None or second_type is None or first_type == second_type:
        return text
    replacements = {first_type.lower(): second_type.value, second_type.lower(): first_type.value}
    return re.sub(
        "|".join(map(re.escape, replacements)), lambda match: replacements[match[0].lower()], text, flags=re.IGNORECASE
    )


def _build_answer_if_valid(
    true_answer: ClassificationOutput, segments: Sequence[Segment], bundle: DocumentBundle
) -> ClassificationOutput | None:
    """Build the classification of these segments; None if it breaks a rule."""
    numbered_segments = tuple(
        part.model_copy(update={"segment_index": index, "segment_page_count": part.end_page - part.start_page + 1})
        for index, part in enumerate(segments, 1)
    )
    answer = true_answer.model_copy(
        update={
            "segments": numbered_segments,
            "number_of_segments": len(numbered_segments),
            "dominant_type_overall": DocumentType.OTHER,
        }
    )
    if find_rule_violations(answer, bundle, ("segments",)):  # only segments that pass have page-weighted shares
        return None
    max_confidences = {
        document_type: max(
            part.confidence
            for segment in numbered_segments
            for part in segment.segment_composition
            if part.document_type == document_type
        )
        for document_type in DocumentType
    }
    mixture = tuple(
        part.model_copy(update={"confidence": max_confidences[part.document_type]})
        for part in compute_page_weighted_mixture(numbered_segments)
    )
    complete_answer = answer.model_copy(
        update={"document_mixture": mixture, "dominant_type_overall": choose_dominant_type(mixture, numbered_segments)}
    )
    return None if find_rule_violations(complete_answer, bundle, CLASSIFICATION_PARTS) else complete_answer


# ------------------------------------------------------------------------------------------------- faults


def _iterate_type_faults(
    segments: _SegmentTuple, dominant_type: DocumentType | None, _bundle: DocumentBundle
) -> Iterator[_FaultyVariant]:
    for index, segment in enumerate(segments):
        for shown_type in DocumentType:
            if segment.dominant_type is not None and shown_type != segment.dominant_type:
                fault = PlantedFault(
                    kind="type",
                    start_page=segment.start_page,
                    end_page=segment.end_page,
                    shown_type=shown_type,
                    true_type=segment.dominant_type,
                    true_dominant=dominant_type,
                )
                yield (*segments[:index], _swap_segment_type(segment, shown_type), *segments[index + 1 :]), fault


def _swap_segment_type(segment: Segment, shown_type: DocumentType) -> Segment:
    replacement_types = {segment.dominant_type: shown_type, shown_type: segment.dominant_type}
    return segment.model_copy(
        update={
            "dominant_type": shown_type,
            "reasoning": _swap_type_names(segment.reasoning, segment.dominant_type, shown_type),
            "segment_composition": tuple(
                presence.model_copy(
                    update={"document_type": replacement_types.get(presence.document_type, presence.document_type)}
                )
                for presence in segment.segment_composition
            ),
        }
    )


def _iterate_boundary_faults(
    segments: _SegmentTuple, _dominant: DocumentType | None, bundle: DocumentBundle
) -> Iterator[_FaultyVariant]:
    for index, (left, right) in enumerate(pairwise(segments), 1):
        for shown_start in range(left.start_page + 1, right.end_page + 1):
            if shown_start != right.start_page:
                fault = PlantedFault(
                    kind="boundary",
                    start_page=min(shown_start, right.start_page),
                    end_page=max(shown_start, right.start_page) - 1,
                    shown_start=shown_start,
                    true_start=right.start_page,
                )
                cut_segments = (
                    _keep_quotes_of_own_pages(left.model_copy(update={"end_page": shown_start - 1}), bundle),
                    _keep_quotes_of_own_pages(right.model_copy(update={"start_page": shown_start}), bundle),
                )
                yield (*segments[: index - 1], *cut_segments, *segments[index + 1 :]), fault


def _keep_quotes_of_own_pages(segment: Segment, bundle: DocumentBundle) -> Segment:
    """Remove a segment's quotes from other pages; reselect if a type has none left."""

    def select_own_quotes(presence: TypePresence) -> tuple[Evidence, ...]:
        own_quotes = tuple(
            quote for quote in presence.top_evidence if segment.start_page <= quote.page <= segment.end_page
        )
        is_bare = presence.presence_level is PresenceLevel.PRIMARY and not own_quotes
        return _select_quotes(segment, bundle) if is_bare else own_quotes

    return segment.model_copy(
        update={
            "segment_composition": tuple(
                presence.model_copy(update={"top_evidence": select_own_quotes(presence)})
                for presence in segment.segment_composition
            )
        }
    )


def _iterate_merged_segment_faults(
    segments: _SegmentTuple, _dominant: DocumentType | None, _bundle: DocumentBundle
) -> Iterator[_FaultyVariant]:
    for index, (left, right) in enumerate(pairwise(segments), 1):
        larger = right if right.segment_page_count > left.segment_page_count else left
        joined_segment = larger.model_copy(update={"start_page": left.start_page, "end_page": right.end_page})
        fault = PlantedFault(
            kind="joined", start_page=left.start_page, end_page=right.end_page, true_start=right.start_page
        )
        yield (*segments[: index - 1], joined_segment, *segments[index + 1 :]), fault


_FAULT_ITERATORS: Mapping[
    FaultKind, Callable[[_SegmentTuple, DocumentType | None, DocumentBundle], Iterator[_FaultyVariant]]
] = {
    "type": _iterate_type_faults,
    "boundary": _iterate_boundary_faults,
    "joined": _iterate_merged_segment_faults,
}


# ------------------------------------------------------------------------------------------------- issues


def _run_rule_checks(answer: ClassificationOutput, bundle: DocumentBundle) -> list[Issue]:
    """Run the checks that call no model, and drop V2's questions about boundaries.

    An attention check measures whether an expert looks where no question points, so it shows none of these questions.
    """
    issues = [
        *V1SchemaValidator().validate(answer, bundle),
        *V2ConsistencyChecker().validate(answer, bundle),
        *V3TrapDetector().validate(answer, bundle),
        *V4EvidenceQualityAssessor().validate(answer, bundle).issues,
    ]
    return [issue for issue in issues if issue.code not in EXPERT_QUESTION_CODES - PATIENT_CODES]


def _count_codes(issues: Sequence[Issue]) -> Counter[str]:
    return Counter(issue.code for issue in issues)


def _iterate_issues_unrelated_to_fault(
    packet: SMEPacket, answer: ClassificationOutput, fault: PlantedFault
) -> Iterator[Issue]:
    """Yield the case's earlier issues that still hold and do not concern the fault."""
    agent_keys, answer_keys = (
        {segment.segment_index: (segment.start_page, segment.end_page, segment.dominant_type) for segment in segments}
        for segments in (packet.segments, answer.segments)
    )
    for issue in packet.open_issues:
        segment_index = issue.segment_index
        is_elsewhere = issue.page is not None and not fault.start_page <= issue.page <= fault.end_page
        still_fits = (
            is_elsewhere
            if segment_index is None
            else segment_index in answer_keys and agent_keys.get(segment_index) == answer_keys[segment_index]
        )
        is_own = issue.agent not in ISSUE_GROUP_BY_AGENT  # raised by a site's own verifier, which does not run here
        is_seen = (issue.code in _TEXT_CODES or is_own) and still_fits
        is_failure = issue.code in _FAILURE_CODES or (is_own and is_agent_failure_issue(issue))
        if issue.agent == "reader" or is_seen or is_failure:
            yield issue
