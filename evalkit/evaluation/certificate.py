"""Certificates: proven upper bounds of the error rate of accepted documents.

The bounds hold at every look. A certificate is about the documents of one stratum, or of all strata, that were accepted
in one period. Its statement may be read after every audit: with probability ``confidence``, the bound is right at all
moments together.

*The process.* Before each accepted document a fictitious player bets part of their wealth against "a draw for audit will
find this document wrong". If document i is drawn with probability p and is wrong with probability m, a bet of the share
b multiplies the wealth by exp(b·p·m), and by 1 − b if the document is found wrong; on average that is at most 1. So no
strategy is likely ever to multiply its wealth by 1 / (1 − confidence) (Ville 1939). Error probabilities that would
have made the player that rich are refuted. Source: Waudby-Smith and Ramdas, Estimating means of bounded random
variables by betting (JRSS B 86, 2024), with bets in place of weights 1 / p; the exponential form also holds if m
changes from document to document (Howard, Ramdas, McAuliffe and Sekhon, Annals of Statistics 49, 2021).

*What is assumed.* Only that the draws are random with the recorded probability. Errors may come in bursts, drift, or
follow the risk or the date: the bound assumes the worst, that all wrong documents are those drawn most rarely. It
bounds the mean error probability in the period, and the share that is wrong. Experts are assumed to notice the share
of errors that ``measure_noticed_share`` estimates, whatever the error.

*Order.* Documents count in the order of their acceptance, which no answer can change. A drawn document without a blind
answer counts as wrong until it has one: experts may leave out just the wrong ones. Because the bound holds at all
moments, a certificate may end at an earlier one, before the first unanswered audit.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import logsumexp

from evalkit.core.grouping import group_by
from evalkit.evaluation.headline_estimates import score_agent_type
from evalkit.evaluation.intervals import FloatArray
from evalkit.evaluation.study import DocumentRecord, Study, hash_source_folder, read_documents_for_purge
from evalkit.pipeline.event_log import EventFact, LoggedEvent, append_event
from evalkit.pipeline.purge import AuditAnswer, PurgedAnswer
from evalkit.pipeline.strata import StratumKey
from evalkit.settings import CertificateSettings
from evalkit.store import OutputFolder, hash_canonical_json

#: Shares of the wealth that are bet, and the initial wealth of each. Betting all proves most as long as nothing is
#: found wrong; a bet of b is best if the errors are 1 − b times the tolerated ones.
_BETS = np.array([1.0, 0.85, 0.7, 0.55, 0.4, 0.25])
_BET_WEIGHTS = np.array([0.30, 0.20, 0.15, 0.15, 0.10, 0.10])
#: Bets on a document that is drawn often are reduced to this multiple of the smallest draw probability so far, so that
#: an error found there counts for as few documents as it represents; and the initial wealth of each.
_STAKE_LIMITS = np.array([1.0, 2.0, np.inf])
_STAKE_WEIGHTS = np.array([0.4, 0.3, 0.3])

#: Experts are assumed to have noticed 19 of 20 errors before the first attention check is answered.
_PRIOR_NOTICED, _PRIOR_SHOWN = 19, 20
#: A certificate lapses if the last document that it covers was accepted this many days before the newest one.
_MAX_AGE_DAYS = 60
#: A certificate that needs audits for more than this many days, at the present rate, cannot be had.
_HORIZON_DAYS = 365
#: So many standard deviations, and so many documents more, may be missing among the drawn ones by chance.
_MAX_MISSING_DEVIATIONS, _MAX_MISSING_DRAWS = 4, 4


class AuditHistory(NamedTuple):
    """Accepted documents in order of acceptance, with the facts that a bound needs."""

    draw_probabilities: FloatArray
    """Probability (0..1) that the document is drawn for a blind audit."""
    is_counted_wrong: npt.NDArray[np.bool_]
    """True if the document was drawn and its audit found it wrong, or counts as if it had."""

    def leave_out(self, is_unanswered: npt.NDArray[np.bool_]) -> AuditHistory:
        """Return a copy in which audits without an answer count as right."""
        return self._replace(is_counted_wrong=self.is_counted_wrong & ~is_unanswered)

    def take_first(self, document_count: int) -> AuditHistory:
        """Return a copy with the first documents only."""
        return AuditHistory(self.draw_probabilities[:document_count], self.is_counted_wrong[:document_count])


class BettingProcess:
    """Statistical test by betting: wealth of bets on the audited documents."""

    def __init__(self, history: AuditHistory, noticed_share: float) -> None:
        probabilities = np.asarray(history.draw_probabilities, dtype=float)
        self.document_count = len(probabilities)
        self._noticed_share = noticed_share
        smallest_so_far = np.minimum.accumulate(np.where(probabilities > 0, probabilities, np.inf))
        bet_shares = np.minimum(1.0, _STAKE_LIMITS[:, None] * smallest_so_far / np.maximum(probabilities, 1e-12))
        stakes = np.sort(probabilities * bet_shares, axis=1)
        self._stake_sums = np.concatenate([np.zeros((len(_STAKE_LIMITS), 1)), np.cumsum(stakes, axis=1)], axis=1)
        wrong_shares = bet_shares[:, np.asarray(history.is_counted_wrong, dtype=bool)]
        with np.errstate(divide="ignore"):  # a player who bet all has lost all
            losses = np.log1p(-_BETS[:, None, None] * wrong_shares).sum(axis=2)
        self._log_wealth_without_gains = losses + np.log(_BET_WEIGHTS[:, None] * _STAKE_WEIGHTS)

    def compute_log_wealth(self, error_rate: float) -> float:
        """Return the log of the wealth under the hypothesis of ``error_rate``.

        ``error_rate``: 0..1.
        """
        wrong_documents = error_rate * self.document_count
        whole_documents = min(int(wrong_documents), self.document_count)
        next_sums = self._stake_sums[:, min(whole_documents + 1, self.document_count)]
        sums = self._stake_sums[:, whole_documents]
        sums = sums + (wrong_documents - whole_documents) * (next_sums - sums)
        return float(logsumexp(self._log_wealth_without_gains + _BETS[:, None] * self._noticed_share * sums))

    def is_refuted(self, error_rate: float, confidence: float) -> bool:
        """Return True if the mean error probability is proven at most ``error_rate``."""
        return self.compute_log_wealth(error_rate) >= -math.log1p(-confidence)

    def compute_error_bound(self, confidence: float) -> float:
        """Return an upper bound (0..1) of the mean error rate, valid at any time.

        >>> audits = AuditHistory(np.full(8000, 0.05), np.arange(8000) < 1)
        >>> round(BettingProcess(audits, noticed_share=1.0).compute_error_bound(0.95), 4)
        0.0172
        """
        if not self.is_refuted(1.0, confidence):
            return 1.0
        target = -math.log1p(-confidence)
        return float(brentq(lambda rate: self.compute_log_wealth(rate) - target, 0.0, 1.0, xtol=1e-9))


@dataclass(frozen=True)
class Certificate:
    """Proof, from blind audits, of an error bound for one stratum of documents."""

    stratum: str
    """Name of the stratum; empty for all documents of the newest versions."""
    max_error_rate: float
    confidence: float
    error_bound: float
    """Upper bound (0..1) of the error rate among the covered documents."""
    is_proven: bool
    """True if the audits prove ``max_error_rate``."""
    accepted_count: int
    """Number of covered documents: accepted from ``first_accepted_at`` to ``covered_until``."""
    audit_count: int
    """Number of covered documents that were drawn for audit."""
    wrong_count: int
    """Number of these whose type a blind answer found wrong."""
    unanswered_count: int
    """Number of these without a blind answer: they count as wrong."""
    noticed_share: float
    """Share (0..1) of errors that experts are assumed to notice in an audit."""
    first_accepted_at: str
    covered_until: str
    more_audits_needed: int | None
    """Number of further audits, all right, that would prove ``max_error_rate``; 0 if proven; None if the stratum has too
    few documents for them within a year."""
    simulated_count: int
    """Number of audits that a program answered: with any, nothing is certified."""
    answers_sha256: str
    """Hash of all draws and answers on which the bound rests."""
    missing_draws: int
    """Number of documents that should have been drawn by the recorded probabilities and were not; 0 if chance explains
    it. With any, nothing is certified: documents that were drawn have been left out."""

    @property
    def is_in_force(self) -> bool:
        """True if the certificate is valid now.

        It must be proven, by experts' answers to random draws only.
        """
        return self.is_proven and not self.simulated_count and not self.missing_draws

    @property
    def statement(self) -> str:
        """Describe in one or two sentences what is proven, or what is missing."""
        rate, sure = _format_percent(self.max_error_rate), _format_percent(self.confidence)
        audits = f"{self.wrong_count} of {self.audit_count} blind audits found a wrong type"
        if self.unanswered_count:
            audits += f" and {self.unanswered_count} have no answer, which counts as wrong"
        bound = "an unknown share" if self.error_bound >= 1 else f"at most {_format_percent(self.error_bound)}"
        facts = (
            f"{audits}; {bound} of the {self.accepted_count} documents accepted from {self.first_accepted_at[:10]} to "
            f"{self.covered_until[:10]} {'is' if self.error_bound >= 1 else 'are'} wrong."
        )
        if self.simulated_count:
            return f"No certificate: answers by programs prove nothing (audits: {self.simulated_count})."
        if self.missing_draws:
            return (
                f"No certificate: about {self.missing_draws} documents fewer were drawn for audit than the recorded "
                "probabilities promise. Drawn documents were removed, or decided again without the others."
            )
        if self.is_proven:
            return (
                f"At most {rate} of the accepted documents are wrong, {sure} sure, at whatever moment you look: {facts}"
            )
        if self.more_audits_needed is None:
            return (
                f"“At most {rate} wrong” cannot be certified here: at the present audit rate, a year of this stratum's "
                f"documents would not prove it. {facts}"
            )
        return f"No certificate yet: {self.more_audits_needed} more audits, all of them right, would prove at most {rate}. {facts}"

    def list_facts(self) -> dict[str, EventFact]:
        """Return all numbers of the certificate for the event log."""
        return {name: value for name, value in vars(self).items() if name != "stratum"}


def _format_percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def measure_noticed_share(study: Study) -> float:
    """Estimate the share (0..1) of wrong types that experts notice.

    Checks of types count, added to a prior of 19 noticed among 20.
    """
    answered_checks = [
        check
        for check in study.attention_checks
        if check.status == "answered" and check.fault_kind == "type" and not check.is_simulated
    ]
    noticed_count = sum(check.is_fault_noticed for check in answered_checks)
    return (_PRIOR_NOTICED + noticed_count) / (_PRIOR_SHOWN + len(answered_checks))


def judge_audit(document: DocumentRecord) -> AuditAnswer:
    """Judge from a blind audit whether an accepted document's type is right.

    Only an answer that was given before the program's was shown counts, or a file of labels.
    """
    if document.review_reason not in ("audit", "sample"):
        return "not drawn"
    score = score_agent_type(document)
    if not document.reviews:
        return "unanswered" if score is None else "right" if score == 1 else "wrong"
    first_review = document.reviews[0]
    if not first_review.is_blind or first_review.labels_after is None or score is None:
        return "unanswered"
    agent_type = document.agent_labels.dominant_type if document.agent_labels else None
    return "right" if score == 1 and first_review.labels_after.dominant_type == agent_type else "wrong"


def open_answers_for_purge(output_folder: OutputFolder) -> Callable[[str], PurgedAnswer | None]:
    """Return a function that extracts what a purge keeps of a document's answer.

    The folder is read at the first call, when an interrupted purge has been finished.
    """
    open_reader = cache(partial(read_documents_for_purge, output_folder))

    def read_answer(doc_id: str) -> PurgedAnswer | None:
        document = open_reader()(doc_id)
        if document is None or document.stratum is None or document.decision is None:
            return None
        score = score_agent_type(document)
        return PurgedAnswer(
            decision=document.decision,
            stratum=tuple(document.stratum._replace(source=hash_source_folder(document.stratum.source))),
            run_started_at=document.run_started_at,
            decided_at=document.decided_at,
            probability=document.inclusion_probability,
            risk=document.risk,
            review_reason=document.review_reason,
            audit=judge_audit(document),
            is_type_right=None if score is None else score == 1,
            answered_at=document.reviews[0].submitted_at if document.reviews else None,
            is_simulated=any(review.is_simulated for review in document.reviews),
        )

    return read_answer


def compute_certificates(study: Study, settings: CertificateSettings | None = None) -> list[Certificate]:
    """Compute the certificate of all documents and of each stratum, by name.

    Only documents of the newest run's models, versions and readers count: another version is another stratum. After a
    brake, only documents decided since then count. A run that decided reviewed documents again does not count, but the
    errors that audits found in their earlier answers do.
    """
    settings = settings or CertificateSettings()
    documents = [document for document in study.documents_ever if document.is_accepted and document.stratum]
    newest_run = max((document.run_started_at for document in study.documents), default="")
    newest_versions = {
        document.stratum[2:]
        for document in study.documents
        if document.stratum and document.run_started_at == newest_run
    }
    repeated_runs = {
        document.run_started_at for document in study.documents_ever if is_answered_before_decision(document)
    }
    current_documents = [
        document
        for document in documents
        if document.stratum and document.stratum[2:] in newest_versions and document.run_started_at not in repeated_runs
    ]
    first_decided_at = min(
        (document.decided_at for document in current_documents), default="9999-12-31", key=parse_time
    )
    current_documents += [
        _restore_refuted_answer(document)
        for document in study.documents_ever
        if document.stratum
        and document.stratum[2:] in newest_versions
        and _is_audit_of_replaced_answer(document, first_decided_at)
    ]
    noticed_share = measure_noticed_share(study)
    documents_by_stratum = group_by(current_documents, lambda document: document.stratum)
    groups: list[tuple[StratumKey | None, Sequence[DocumentRecord]]] = [
        (None, current_documents),
        *sorted(documents_by_stratum.items(), key=lambda pair: str(pair[0])),
    ]
    certificates = []
    for stratum, stratum_documents in groups:
        braked_at = max((event.recorded_at for event in study.events if _is_brake_of(event, stratum)), default="")
        covered = [
            document for document in stratum_documents if parse_time(document.decided_at) > parse_time(braked_at)
        ]
        if covered:
            certificates.append(_compute_certificate(stratum.name if stratum else "", covered, settings, noticed_share))
    return certificates


def is_answered_before_decision(document: DocumentRecord) -> bool:
    """Return True if experts answered before a repeated run decided.

    The program may have learned from the answer. No document of such a run counts: those that were not drawn would
    otherwise stand for all.
    """
    decided_at = parse_time(document.decided_at).replace(microsecond=0)  # reviews are stamped in whole seconds
    return any(parse_time(review.submitted_at) < decided_at for review in document.reviews)


def _is_audit_of_replaced_answer(document: DocumentRecord, first_decided_at: str) -> bool:
    """Return True if an audit found an answer wrong that a later run decided again.

    Only if the present versions were in use by then: the error may be theirs.
    """
    if document.review_reason not in ("audit", "sample") or not is_answered_before_decision(document):
        return False
    review = document.reviews[0]
    return (
        review.labels_before is not None
        and judge_audit(_restore_refuted_answer(document)) == "wrong"
        and parse_time(review.submitted_at) > parse_time(first_decided_at)
    )


def _restore_refuted_answer(document: DocumentRecord) -> DocumentRecord:
    """Return the document with the answer its audit judged, as of that audit's time."""
    review, stratum = document.reviews[0], document.stratum
    document_type = review.labels_before.dominant_type if review.labels_before else None
    return replace(
        document,
        decision="AUTO_ACCEPT",
        agent_labels=review.labels_before,
        stratum=stratum and stratum._replace(document_type=document_type or "cannot tell"),
        decided_at=review.submitted_at,
    )


def _is_brake_of(event: LoggedEvent, stratum: StratumKey | None) -> bool:
    """Return True if the event braked the stratum; a brake may leave out the versions."""
    is_same = stratum is None or event.stratum in ("", stratum.name) or stratum.name.startswith(f"{event.stratum} | ")
    return event.kind == "braked" and is_same


def parse_time(text: str) -> datetime:
    """Parse a stored time (ISO 8601, UTC by default); empty is the distant past."""
    time = datetime.fromisoformat(text or "0001-01-01")
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _compute_certificate(
    stratum: str, documents: Sequence[DocumentRecord], settings: CertificateSettings, noticed_share: float
) -> Certificate:
    ordered = sorted(documents, key=lambda document: (parse_time(document.decided_at), document.doc_id))
    answers = [judge_audit(document) for document in ordered]
    history = AuditHistory(
        np.array([document.inclusion_probability or 0.0 for document in ordered]),
        np.array([answer in ("wrong", "unanswered") for answer in answers]),
    )
    is_unanswered = np.array([answer == "unanswered" for answer in answers])
    draw_variance = float((history.draw_probabilities * (1 - history.draw_probabilities)).sum())
    missing_draws = float(history.draw_probabilities.sum()) - (len(answers) - answers.count("not drawn"))
    is_chance = missing_draws <= _MAX_MISSING_DEVIATIONS * math.sqrt(draw_variance) + _MAX_MISSING_DRAWS
    seconds = [(parse_time(document.decided_at) - parse_time("")).total_seconds() for document in ordered]
    days = np.array(seconds) / 86_400
    target = settings.max_error_rate, settings.confidence
    # An error that is known without an audit refutes a rate, too.
    known_wrong_share = sum(score_agent_type(document) == 0 for document in ordered) / len(ordered)
    proven_count = (
        find_proven_count(days, history, is_unanswered, noticed_share, *target)
        if known_wrong_share <= settings.max_error_rate
        else None
    )
    is_proven, covered_count = proven_count is not None, proven_count or len(ordered)
    process = BettingProcess(history.take_first(covered_count), noticed_share)
    covered_answers = answers[:covered_count]
    certificate = Certificate(
        stratum,
        *target,
        max(process.compute_error_bound(settings.confidence), known_wrong_share),
        is_proven,
        covered_count,
        covered_count - covered_answers.count("not drawn"),
        covered_answers.count("wrong"),
        covered_answers.count("unanswered"),
        noticed_share,
        ordered[0].decided_at,
        ordered[covered_count - 1].decided_at,
        0,
        sum(any(review.is_simulated for review in document.reviews) for document in ordered),
        hash_canonical_json(
            [
                (document.sha256, probability, answer)
                for document, probability, answer in zip(
                    ordered[:covered_count], history.draw_probabilities.tolist(), covered_answers, strict=False
                )
            ]
        ),
        0 if is_chance else round(missing_draws),
    )
    if is_proven:
        return certificate
    documents_a_year = int(len(ordered) * _HORIZON_DAYS / max(days[-1] - days[0], 1.0))
    audits = count_more_audits_needed(history.leave_out(is_unanswered), documents_a_year, noticed_share, *target)
    return replace(certificate, more_audits_needed=None if audits is None else audits + answers.count("unanswered"))


def find_proven_count(
    days: FloatArray,
    history: AuditHistory,
    is_unanswered: npt.NDArray[np.bool_],
    noticed_share: float,
    max_error_rate: float,
    confidence: float,
) -> int | None:
    """Find how many of the first documents a certificate may cover; None if none.

    All documents, or those before the first unanswered audit of a day that is not too long ago. ``days`` are the times
    of acceptance. There is no proof either way if the known errors of all documents, with unanswered audits taken for
    right, are too many: a certificate must not last because answers are late.
    """
    target = max_error_rate, confidence
    if not BettingProcess(history.leave_out(is_unanswered), noticed_share).is_refuted(*target):
        return None
    unanswered_positions = np.flatnonzero(is_unanswered)
    _, first_of_day = np.unique(np.floor(days[unanswered_positions]), return_index=True)
    period_ends: list[int] = [len(days), *unanswered_positions[first_of_day][::-1].tolist()]
    for count in period_ends:
        if count == 0 or days[-1] - days[count - 1] > _MAX_AGE_DAYS:
            return None
        if BettingProcess(history.take_first(count), noticed_share).is_refuted(*target):
            return count
    return None


def count_more_audits_needed(
    history: AuditHistory, document_limit: int, noticed_share: float, max_error_rate: float, confidence: float
) -> int | None:
    """Count the further error-free audits that prove ``max_error_rate``.

    Further documents are drawn with the mean probability of the newest hundred. None if the audits of
    ``document_limit`` further documents do not suffice.
    """
    probability = float(history.draw_probabilities[-100:].mean())

    def is_proven_after(document_count: int) -> bool:
        extended = AuditHistory(
            np.append(history.draw_probabilities, np.full(document_count, probability)),
            np.append(history.is_counted_wrong, np.zeros(document_count, dtype=bool)),
        )
        return BettingProcess(extended, noticed_share).is_refuted(max_error_rate, confidence)

    if not probability or not is_proven_after(document_limit):
        return None
    return math.ceil(bisect_left(range(document_limit), True, key=is_proven_after) * probability)


def record_certificate_changes(
    output_folder: OutputFolder, study: Study, now: str, settings: CertificateSettings | None = None
) -> list[LoggedEvent]:
    """Log certificates that became valid or invalid; return the events.

    The caller holds the run lock. ``now`` is ISO 8601 in UTC.
    """
    certificates = {certificate.stratum: certificate for certificate in compute_certificates(study, settings)}
    newest_by_stratum = {
        event.stratum: event for event in study.events if event.kind in ("certified", "certificate_withdrawn")
    }
    events = []
    for stratum in sorted({*certificates, *newest_by_stratum}):
        certificate, newest = certificates.get(stratum), newest_by_stratum.get(stratum)
        is_in_force = certificate is not None and certificate.is_in_force
        is_certified = newest is not None and newest.kind == "certified"
        # A certificate of another rate or certainty is another statement.
        is_changed = (
            certificate is not None
            and newest is not None
            and is_in_force
            and is_certified
            and any(newest.facts.get(name) != getattr(certificate, name) for name in ("max_error_rate", "confidence"))
        )
        if is_in_force != is_certified or is_changed:
            facts: dict[str, EventFact] = (
                {**certificate.list_facts(), "statement": certificate.statement}
                if certificate
                else {"statement": "Models, prompts, tables or readers have changed, or its documents are gone."}
            )
            kind: Literal["certified", "certificate_withdrawn"] = (
                "certified" if is_in_force else "certificate_withdrawn"
            )
            events.append(append_event(output_folder, kind, recorded_at=now, stratum=stratum, facts=facts))
    return events
