"""More documents for an expert to look at, drawn so that the probability of each is known.

Escalated documents are all looked at; of accepted ones an audit draws a share (contract, ruling 11). Whoever wants to
know more about rare classes draws again, in strata. A document that was at risk in both has the probability
``p + (1 − p) f``: drawn by what went before, or, if not, by this draw, which takes the fraction ``f`` of each stratum's
documents that nobody was to look at yet. Source: Horvitz and Thompson 1952, two independent draws.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from evalkit.classification.document_result import DocumentResult
from evalkit.errors import EvalkitError, StoreError, UsageError
from evalkit.evaluation.study import Document, Study, read_study
from evalkit.pipeline.sample_draws import Draw, Stratum, read_all_draws, read_sampled_probabilities
from evalkit.pipeline.supplied_labels import read_stored_labels
from evalkit.review.loaders import read_bundle, read_result
from evalkit.review.packet import SMEPacketGenerator, publish_packet
from evalkit.store import OutputFolder, OutputIndex, packet_file_name, sample_draw_file_name

By = Literal["production", "type", "decision"]
#: What a document is sorted by; the words for those that have no such value.
_VALUE: Mapping[By, tuple[Callable[[Document], str | None], str]] = {
    "production": (lambda one: one.production.dominant_type if one.production else None, "no label"),
    "type": (lambda one: one.agent.dominant_type if one.agent else None, "cannot tell"),
    "decision": (lambda one: one.decision_reason, "no reason"),
}


def plan(study: Study, number: int, by: By, *, seed: str, drawn_at: str) -> Draw:
    """Which documents ``number`` more looks would go to: spread evenly over the strata, so that rare ones are seen.

    ``drawn_at`` is ISO 8601 in UTC. UsageError where nothing is left to draw, or ``number`` or ``by`` is wrong.
    """
    if by not in get_args(By):
        raise UsageError(
            f"documents cannot be drawn by {by!r}", code="SAMPLE-BY", remedy="Draw by production, type or decision."
        )
    if number < 1:
        raise UsageError(f"{number} documents cannot be drawn", code="SAMPLE-NUMBER", remedy="Draw at least one.")
    value, without = _VALUE[by]
    strata: dict[str, list[Document]] = defaultdict(list)
    for one in study.documents:
        if one.is_accepted:
            strata[value(one) or without].append(one)
    unseen = {name: [one for one in all_ if one.standing == "unseen"] for name, all_ in sorted(strata.items())}
    shares = _spread(number, {name: len(some) for name, some in unseen.items()})
    if not any(shares.values()):
        raise UsageError(
            "every accepted document is in the queue or reviewed already",
            code="SAMPLE-NOTHING-LEFT",
            remedy="Review what waits, or run more documents.",
        )
    chosen = (
        _stratum(name, strata[name], some, shares[name], f"{seed}:{drawn_at}") for name, some in unseen.items() if some
    )
    return Draw(by=by, drawn_at=drawn_at, strata=tuple(chosen))


def _stratum(name: str, at_risk: Iterable[Document], unseen: Sequence[Document], number: int, salt: str) -> Stratum:
    fraction = number / len(unseen)
    by_chance = sorted(unseen, key=lambda one: hashlib.sha256(f"{salt}:{one.sha256}".encode()).digest())
    before = {one.doc_id: one.drawn_with or 0.0 for one in at_risk}
    return Stratum(
        value=name,
        probability={doc_id: known + (1 - known) * fraction for doc_id, known in before.items()},
        drawn=tuple(sorted(one.doc_id for one in by_chance[:number])),
    )


def _spread(number: int, room: Mapping[str, int]) -> dict[str, int]:
    """``number`` spread over the strata as evenly as their room allows, in their order.

    >>> _spread(7, {"a": 1, "b": 10, "c": 10})
    {'a': 1, 'b': 3, 'c': 3}
    """
    given = dict.fromkeys(room, 0)
    for _ in range(min(number, sum(room.values()))):
        fewest = min((name for name in room if given[name] < room[name]), key=lambda name: given[name])
        given[fewest] += 1
    return given


def sample(output: Path | str, number: int, by: By, *, seed: str, drawn_at: str) -> Draw:
    """Draw documents and put them into the queue; what was drawn.

    The draw is written down before its cases: what a broken run left out is put into the queue by the next draw, or by
    the next run. UsageError as in ``plan``, or where a run is writing; StoreError.
    """
    files = OutputFolder(output)
    with files.run_lock():
        made = plan(read_study(output), number, by, seed=seed, drawn_at=drawn_at)
        if not files.create_json(sample_draw_file_name(len(read_all_draws(files)) + 1), made.model_dump(mode="json")):
            raise StoreError(
                "another draw was written at the same moment", code="STORE-FAILED", remedy="Draw once more."
            )
        with OutputIndex(output) as index:
            _publish_missing(files, index, drawn_at)
    return made


def _publish_missing(files: OutputFolder, index: OutputIndex, now: str) -> None:
    production = read_stored_labels(files)
    for doc_id, probability in read_sampled_probabilities(files).items():
        if files.has_file(packet_file_name(doc_id)):
            continue
        try:
            result, bundle = read_result(files, doc_id), read_bundle(files, doc_id)
        except EvalkitError:
            continue  # damaged or gone: the next run reads it again and puts it into the queue
        if isinstance(result, DocumentResult):
            packet = SMEPacketGenerator().packet(
                result,
                bundle,
                review_reason="sample",
                inclusion_probability=probability,
                production=production.get(doc_id),
                created_at=now,
            )
            publish_packet(files, index, packet)
