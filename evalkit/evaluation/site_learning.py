"""Proposals of a site's own model weights, and their promotion and reversal."""

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalkit.classification.offline.model_weights import EmbeddedModelWeights, load_shipped_weights, use_site_weights
from evalkit.classification.patient_keys import load_or_create_patient_salt
from evalkit.core.grouping import group_pairs
from evalkit.document_types import get_own_types
from evalkit.errors import UsageError
from evalkit.evaluation.learning import AnsweredFile, Challenge, FileOutcome, LeftOut, challenge_champion
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, KnownTruth, ReviewRecord, Study, read_folder_study
from evalkit.pipeline.event_log import LoggedEvent, append_event
from evalkit.pipeline.event_loop import run_sync
from evalkit.pipeline.model_session import ModelSession
from evalkit.pipeline.patient_roster import build_patient_expectation
from evalkit.pipeline.run_setup import create_orchestrator
from evalkit.pipeline.site_weights import (
    SiteWeightsProposal,
    find_promotions_in_force,
    load_weights_in_force,
    read_promoted_weights,
    read_proposal,
)
from evalkit.review import ADJUDICATION_SUFFIX, read_bundle
from evalkit.settings import Settings
from evalkit.store import (
    SITE_WEIGHTS_FOLDER,
    OutputFolder,
    list_numbered_files_or_raise_on_gap,
    site_weights_file_name,
)

#: A reviewer who answered this many attention checks and noticed less than half teaches nothing.
_MIN_ATTENTION_CHECKS = 3


@dataclass(frozen=True)
class ProposalOutcome:
    """Comparison of proposed weights with the weights in use, and its file."""

    challenge: Challenge
    file_name: str | None
    """None if there was too little to learn from."""
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        return {
            "file": self.file_name,
            "facts": dict(self.challenge.facts),
            "left_out": [row._asdict() for row in self.challenge.left_out],
            "obstacles": list(self.challenge.obstacles),
        }


def propose_site_weights(
    output_folder: OutputFolder,
    settings: Settings,
    *,
    proposed_at: str,
    cutoff: str | None = None,
    allow_simulated: bool = False,
) -> ProposalOutcome:
    """Learn weights from a folder's reviews, test them and store the proposal.

    ``cutoff`` as for ``challenge_champion``. ``allow_simulated``: simulated reviewers' answers count too.
    """
    with output_folder.hold_run_lock():
        study = read_folder_study(output_folder)
        champion = load_weights_in_force(output_folder) or load_shipped_weights()
        file_names = list_numbered_files_or_raise_on_gap(output_folder, SITE_WEIGHTS_FOLDER, site_weights_file_name)
        earlier = [read_proposal(output_folder, name) for name in file_names]
        answered_files, excluded = _read_answered_files(
            output_folder, study, frozenset(_find_inattentive_reviewers(study)), allow_simulated=allow_simulated
        )

        def decide_files(files: Sequence[AnsweredFile], weights: EmbeddedModelWeights) -> list[FileOutcome]:
            return run_sync(_decide_files(files, weights, settings))

        salt = hmac.digest(load_or_create_patient_salt(output_folder), b"letterheads", "sha256").hex()
        with use_site_weights(champion):
            challenge = challenge_champion(
                answered_files,
                champion,
                decide_files,
                letterhead_salt=salt,
                attempt=1 + sum(proposal.base_version == champion.version for proposal in earlier),
                cutoff=cutoff,
            )
        challenge = replace(challenge, left_out=(*excluded, *challenge.left_out))
        if challenge.weights_json is None:
            return ProposalOutcome(challenge, None, study.problems)
        proposal = SiteWeightsProposal(
            proposed_at=proposed_at,
            base_version=champion.version,
            obstacles=challenge.obstacles,
            facts=dict(challenge.facts),
            weights=dict(challenge.weights_json),
        )
        file_name = site_weights_file_name(len(file_names) + 1)
        output_folder.create_json_if_absent(file_name, proposal.model_dump(mode="json"))
        return ProposalOutcome(challenge, file_name, study.problems)


async def _decide_files(
    files: Sequence[AnsweredFile], weights: EmbeddedModelWeights, settings: Settings
) -> list[FileOutcome]:
    """Decide files by the built-in model alone, whatever model the site uses."""
    settings = settings.model_copy(update={"models": type(settings.models)()})
    outcomes = []
    with use_site_weights(weights):
        async with ModelSession(settings) as model_session:
            orchestrator = create_orchestrator(settings, model_session)
            for file in files:
                expectation = build_patient_expectation(settings, Path(file.bundle.file_path))
                outcomes.append(FileOutcome.create(await orchestrator.evaluate(file.bundle, None, expectation)))
    return outcomes


def promote_proposal(output_folder: OutputFolder, *, promoted_by: str, promoted_at: str) -> LoggedEvent:
    """Use the newest proposed weights from now on, and record this.

    UsageError if it may not be promoted.
    """
    with output_folder.hold_run_lock():
        file_names = list_numbered_files_or_raise_on_gap(output_folder, SITE_WEIGHTS_FOLDER, site_weights_file_name)
        if not file_names:
            raise _build_promotion_error("no new weights were proposed yet", "Run `evalkit learn propose` first.")
        proposal = read_proposal(output_folder, file_names[-1])
        in_force = load_weights_in_force(output_folder) or load_shipped_weights()
        if proposal.base_version != in_force.version:
            raise _build_promotion_error(
                "the newest proposed weights were compared with weights that are no longer in use",
                "Run `evalkit learn propose` again.",
            )
        if proposal.obstacles:
            raise _build_promotion_error(
                f"the newest proposed weights may not be promoted: {'; '.join(proposal.obstacles)}",
                "Review more files, then run `evalkit learn propose` again.",
            )
        sha256 = hashlib.sha256(output_folder.read_bytes(file_names[-1])).hexdigest()
        facts = {**proposal.facts, "file": file_names[-1], "sha256": sha256}
        return append_event(output_folder, "promoted", recorded_at=promoted_at, recorded_by=promoted_by, facts=facts)


def revert_promotion(output_folder: OutputFolder, *, reverted_by: str, reverted_at: str) -> LoggedEvent:
    """Revert the newest promotion, so that the earlier weights are used again."""
    with output_folder.hold_run_lock():
        promotions = find_promotions_in_force(output_folder)
        if not promotions:
            raise _build_promotion_error(
                "the weights in use are those that came with evalkit", "No promotion can be reverted."
            )
        restored = read_promoted_weights(output_folder, promotions[-2]) if promotions[1:] else load_shipped_weights()
        facts = {
            "file": promotions[-1].facts["file"],
            "sha256": promotions[-1].facts["sha256"],
            "restored": restored.version,
        }
        return append_event(
            output_folder, "promotion_reversed", recorded_at=reverted_at, recorded_by=reverted_by, facts=facts
        )


def _build_promotion_error(problem: str, remedy: str) -> UsageError:
    return UsageError(problem, code="LEARN-PROMOTION", remedy=remedy)


# ------------------------------------------------------------------------------------------------ experts' answers


def _find_inattentive_reviewers(study: Study) -> list[str]:
    noticed_by_reviewer = group_pairs(
        (check.reviewer, check.is_fault_noticed)
        for check in study.attention_checks
        if check.status == "answered" and check.reviewer is not None
    )
    return [
        reviewer
        for reviewer, noticed in noticed_by_reviewer.items()
        if len(noticed) >= _MIN_ATTENTION_CHECKS and 2 * sum(noticed) < len(noticed)
    ]


def _read_answered_files(
    output_folder: OutputFolder, study: Study, distrusted: frozenset[str], *, allow_simulated: bool
) -> tuple[list[AnsweredFile], list[LeftOut]]:
    """Read files with types that experts vouch for; say which answers are left out."""
    answered_files: list[AnsweredFile] = []
    excluded: dict[tuple[str, str], int] = defaultdict(int)
    for document in study.documents:
        if document.truth is None or document.truth.labels.dominant_type is None:
            continue
        if not document.truth.is_vouched("dominant_type") or document.truth.source == "GOLD":
            continue
        reviews = [review for review in document.reviews if review.labels_after is not None]
        agreeing = [
            review
            for review in reviews
            if review.labels_after and review.labels_after.dominant_type == document.truth.labels.dominant_type
        ]
        for who, reason, is_excluded in (
            ("", "a type of your own, which cannot be learned yet", _has_own_type(document.truth.labels)),
            ("", "simulated reviewers", any(review.is_simulated for review in reviews) and not allow_simulated),
            ("", "two reviewers disagree, and nobody has decided", _is_undecided(document)),
            *(
                (
                    reviewer,
                    "missed more than half of the attention checks",
                    {review.reviewer for review in agreeing} == {reviewer},
                )
                for reviewer in sorted(distrusted)
            ),
        ):
            if is_excluded:
                excluded[who, reason] += 1
                break
        else:
            if agreeing:
                answered_files.append(_build_answered_file(output_folder, document, document.truth, agreeing))
    return answered_files, [LeftOut(who, reason, count) for (who, reason), count in sorted(excluded.items())]


def _has_own_type(labels: DocumentLabels) -> bool:
    types = {labels.dominant_type, *(document_type for _, _, document_type in labels.segments)}
    return not types.isdisjoint(get_own_types())


def _is_undecided(document: DocumentRecord) -> bool:
    """Return True if two readers' newest answers differ without an adjudication."""
    types_by_case = {
        review.case_id: review.labels_after.dominant_type for review in document.reviews if review.labels_after
    }
    has_decision = any(case_id.endswith(ADJUDICATION_SUFFIX) for case_id in types_by_case)
    return not has_decision and len(set(types_by_case.values())) > 1


def _build_answered_file(
    output_folder: OutputFolder, document: DocumentRecord, truth: KnownTruth, agreeing: Sequence[ReviewRecord]
) -> AnsweredFile:
    shown = document.reviews[0].labels_before
    segments = truth.labels.segments if truth.is_vouched("segments") else ()
    is_confirmed = (
        shown is not None
        and shown.dominant_type == truth.labels.dominant_type
        and (not segments or shown.segments == segments)
    )
    return AnsweredFile(
        read_bundle(output_folder, document.doc_id),
        truth.labels.dominant_type or "",
        segments,
        max(review.submitted_at for review in agreeing),
        frozenset(review.reviewer for review in agreeing),
        is_blind=any(review.is_blind for review in agreeing),
        is_correction=not is_confirmed,
        weight=document.sampling_weight,
    )
