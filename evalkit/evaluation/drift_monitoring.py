"""Brakes: if a stratum's audited error rate rises, all its documents are audited.

They do so until they are certified again. ``pipeline/drift`` has the detector; this module applies it to a study and
records what follows in the event log. Nothing but wrong answers brake a stratum, so that documents that look unusual
and are right never do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from evalkit.core.grouping import group_by
from evalkit.errors import UsageError
from evalkit.evaluation.certificate import (
    Certificate,
    compute_certificates,
    is_answered_before_decision,
    judge_audit,
    parse_time,
)
from evalkit.evaluation.study import DocumentRecord, Study
from evalkit.pipeline.drift import (
    RUN_LENGTH,
    WARNING_WEIGHT,
    AuditSequence,
    DriftEvidence,
    compute_drift_evidence,
    find_brakes_by_stratum,
)
from evalkit.pipeline.event_log import EventFact, LoggedEvent, append_event
from evalkit.pipeline.input_monitoring import MonitoredRun, map_warned_starts, read_monitoring_record
from evalkit.pipeline.strata import STRATUM_SEPARATOR, describe_documents
from evalkit.settings import CertificateSettings
from evalkit.store import OutputFolder, hash_canonical_json


@dataclass(frozen=True)
class StratumDrift:
    """Evidence from audits about a stratum's error rate over time."""

    stratum: str
    """Main type and source folder of the documents."""
    decided_at: tuple[str, ...]
    """Time at which each audited document was accepted, oldest first."""
    audit_count: int
    wrong_count: int
    unanswered_count: int
    evidence: tuple[DriftEvidence, ...]
    """The detector after each wrong answer; of the audits since the last release, if there was one."""
    brake: LoggedEvent | None
    """The event that braked the stratum; None if it is not braked."""
    facts: dict[str, EventFact]
    """The numbers of the highest value of the detector; empty without a wrong answer."""

    @property
    def level(self) -> float:
        """The detector's highest value, as a share of its limit; 0 without errors."""
        return max((evidence.level for evidence in self.evidence), default=0.0)


def compute_stratum_drifts(study: Study, runs: Sequence[MonitoredRun] = ()) -> list[StratumDrift]:
    """Compute the drift of each stratum that has audits, by name.

    ``runs`` are the monitored runs; their warnings make a change more likely.

    Answers of programs count, too: a brake is the safe side. Reviews from before the decision do not, as the program
    may have learned from them.
    """
    audited_documents = [
        document
        for document in study.documents_ever
        if document.is_accepted
        and document.stratum
        and judge_audit(document) != "not drawn"
        and not is_answered_before_decision(document)
    ]
    documents_by_stratum = group_by(
        audited_documents, lambda document: document.stratum.drift_name if document.stratum else ""
    )
    warned_starts = map_warned_starts(runs)
    return [
        _compute_drift(study.events, stratum, documents_by_stratum[stratum], warned_starts.get(stratum, ()))
        for stratum in sorted(documents_by_stratum)
    ]


def _compute_drift(
    events: Sequence[LoggedEvent], stratum: str, documents: Sequence[DocumentRecord], warned_starts: Sequence[str]
) -> StratumDrift:
    ordered = sorted(documents, key=lambda document: (parse_time(document.decided_at), document.doc_id))
    answers = [judge_audit(document) for document in ordered]
    start_weights = np.ones(len(ordered))
    for started_at in warned_starts:
        position = sum(document.run_started_at < started_at for document in ordered)
        start_weights[position : position + 1] += WARNING_WEIGHT
    audits = AuditSequence(
        np.array([document.risk for document in ordered]),
        np.array([answer != "unanswered" for answer in answers]),
        np.array([answer == "wrong" for answer in answers]),
        start_weights,
    )
    released_at = max(
        (parse_time(event.recorded_at) for event in events if (event.kind, event.stratum) == ("released", stratum)),
        default=None,
    )
    first_position = sum(parse_time(document.decided_at) <= released_at for document in ordered) if released_at else 0
    evidence = compute_drift_evidence(audits, first_position)
    facts: dict[str, EventFact] = {}
    if evidence:
        highest = max(evidence, key=lambda candidate: candidate.level)
        recent_answers = answers[highest.first_position : highest.position + 1]
        facts = {
            "level": highest.level,
            "run_length": RUN_LENGTH,
            "since": ordered[highest.first_position].decided_at,
            "until": ordered[highest.position].decided_at,
            "audit_count": len(recent_answers),
            "wrong_count": recent_answers.count("wrong"),
            "unanswered_count": recent_answers.count("unanswered"),
            "start_weight": float(start_weights[highest.first_position]),
            "earlier_audit_count": highest.first_position,
            "earlier_wrong_count": answers[: highest.first_position].count("wrong"),
            "answers_sha256": hash_canonical_json(
                [(document.sha256, document.risk, answer) for document, answer in zip(ordered, answers, strict=True)]
            ),
        }
    return StratumDrift(
        stratum,
        tuple(document.decided_at for document in ordered),
        len(answers),
        answers.count("wrong"),
        answers.count("unanswered"),
        tuple(evidence),
        find_brakes_by_stratum(events).get(stratum),
        facts,
    )


def record_brake_changes(
    output_folder: OutputFolder, study: Study, now: str, settings: CertificateSettings | None = None
) -> Study:
    """Log new brakes, and the end of brakes on recertified strata.

    A stratum is released when a certificate covers the documents that it accepted since the brake. The caller holds the
    run lock. ``now`` is ISO 8601 in UTC.
    """
    braked = find_brakes_by_stratum(study.events)
    events = [
        append_event(output_folder, "braked", recorded_at=now, stratum=drift.stratum, facts=drift.facts)
        for drift in compute_stratum_drifts(study, read_monitoring_record(output_folder).runs)
        if drift.level >= 1 and drift.stratum not in braked
    ]
    certificates = compute_certificates(study, settings) if braked else []
    for stratum in sorted(braked):
        certificate = _find_releasing_certificate(stratum, certificates)
        if certificate:
            facts: dict[str, EventFact] = {"reason": certificate.statement, "certified_stratum": certificate.stratum}
            facts |= certificate.list_facts()
            events.append(append_event(output_folder, "released", recorded_at=now, stratum=stratum, facts=facts))
    return replace(study, events=(*study.events, *events))


def _find_releasing_certificate(stratum: str, certificates: Sequence[Certificate]) -> Certificate | None:
    """Return a certificate that releases the stratum, else None.

    All of the stratum's newest versions must be certified.
    """
    own_certificates = [
        certificate for certificate in certificates if certificate.stratum.startswith(stratum + STRATUM_SEPARATOR)
    ]
    is_released = own_certificates and all(certificate.is_in_force for certificate in own_certificates)
    return own_certificates[0] if is_released else None


def release_stratum(
    output_folder: OutputFolder, events: Sequence[LoggedEvent], stratum: str, *, reason: str, released_by: str, now: str
) -> LoggedEvent:
    """Log that an analyst ends the brake on a stratum; the caller holds the run lock.

    UsageError if the stratum is not braked, or if the name or the reason is empty.
    """
    braked = find_brakes_by_stratum(events)
    if stratum not in braked:
        raise UsageError(
            f"the group {stratum!r} has no brake"
            + (f"; groups with a brake: {', '.join(map(repr, sorted(braked)))}" if braked else ""),
            code="NOT-BRAKED",
            remedy="Give the group as `evalkit run` prints it after `audit release`."
            if braked
            else "No group has a brake: nothing has to be released.",
        )
    if not reason.strip() or not released_by.strip():
        raise UsageError(
            "a release needs a name and a reason", code="RELEASE-REASON", remedy="Give --by NAME and --reason TEXT."
        )
    facts: dict[str, EventFact] = {"reason": reason.strip(), "braked_at": braked[stratum].recorded_at}
    return append_event(
        output_folder, "released", recorded_at=now, recorded_by=released_by.strip(), stratum=stratum, facts=facts
    )


def describe_brake(brake: LoggedEvent) -> str:
    """Describe in one sentence which stratum has a brake, and why."""
    facts = brake.facts
    since = datetime.fromisoformat(str(facts["since"]))
    return (
        f"Braked: {describe_documents(brake.stratum)}: {facts['wrong_count']} of {facts['audit_count']} audits wrong since "
        f"{since.day} {since:%B}; its accepted documents go to audit. Release: evalkit audit release '{brake.stratum}' --by NAME --reason TEXT"
    )


def describe_release(release: LoggedEvent) -> str:
    """Describe in one sentence whose brake was ended, by whom and why."""
    return f"Released by {release.recorded_by}: {describe_documents(release.stratum)}. {release.facts['reason']}"
