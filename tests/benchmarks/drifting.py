"""How soon a rising error rate is found, how often a brake is false, and what harmless novelty costs.

    cd tests && PYTHONPATH=. ../.venv/bin/python -m benchmarks.drifting --half open --seeds 25 --json drifting.json

The streams are another author's (first_contact/streams). Each is lived through day by day with the product's rules:
documents are drawn for audit with the probability of the day, answers become known after their delay, and each night
the detectors look at what is known by then. A braked stratum sends all it accepts to audit and is released after two
weeks. *Delay* counts the audits of the stratum from the shift to the one whose answer braked it, in the order of
acceptance; streams in which a brake was on when the shift came have none. *False brakes* are those before the shift or
in a stratum that does not shift; for kinds that are judged by their rates, only the number of brakes is shown.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.first_contact.streams.generating import Stream, generate_stream, list_kinds

from evalkit.pipeline.drift import WARNING_WEIGHT, AuditSequence, compute_drift_evidence
from evalkit.pipeline.input_monitoring import (
    MonitoredRun,
    StratumCounts,
    find_warned_strata,
    find_warnings,
    map_warned_starts,
)
from evalkit.pipeline.sample_draws import AuditDraw, compute_audit_probability, compute_risk_deviation
from evalkit.settings import Settings

SETTINGS = Settings(_env_file=None)
RELEASED_AFTER_DAYS = 14
KNOWN_SENDER_DOCUMENTS = 3
MIN_RESULTS_READ, MAX_RESULTS_READ = 50, 200


class Brake(NamedTuple):
    """A brake of a stratum: its day, and the document whose answer caused it."""

    day: int
    stratum: int
    document: int


class Replay(NamedTuple):
    """What happened in a stream: brakes, drawn documents, warnings (day, stratum, measure), audits that these cost."""

    brakes: list[Brake]
    drawn: np.ndarray
    warnings: list[tuple[int, int, str]]
    warned_audits: float


def replay_stream(stream: Stream, *, with_warnings: bool = True) -> Replay:
    """Live through a stream day by day."""
    chances = np.random.default_rng([stream.seed, zlib.crc32(stream.kind.encode())]).random(len(stream.day))
    answered_at = stream.day + stream.answer_delay_days
    first_documents = np.searchsorted(stream.day, np.arange(stream.days + 1))
    is_new_sender = _find_new_senders(stream)
    braked_until: dict[int, int] = {}
    mean_deviation: float | None = None
    drawn = np.zeros(0, dtype=int)
    runs: list[MonitoredRun] = []
    replay = Replay([], drawn, [], 0.0)
    for day in range(stream.days):
        todays = np.arange(first_documents[day], first_documents[day + 1])
        accepted = todays[stream.is_accepted[todays]]
        earlier_accepted = np.flatnonzero(stream.is_accepted[: first_documents[day]])[:MAX_RESULTS_READ]
        if mean_deviation is None and len(earlier_accepted) >= MIN_RESULTS_READ:
            mean_deviation = float(np.mean([compute_risk_deviation(risk) for risk in stream.risk[earlier_accepted]]))
        usual_rate = AuditDraw.create(SETTINGS, int((answered_at[drawn] <= day).sum()), None).usual_rate
        warned = find_warned_strata(runs)
        rates = {
            stratum: 1.0
            if braked_until.get(stratum, 0) > day
            else max(usual_rate, SETTINGS.audit_rate_start)
            if str(stratum) in warned
            else usual_rate
            for stratum in range(stream.strata)
        }
        probabilities = np.array(
            [
                compute_audit_probability(rates[int(stream.stratum[document])], stream.risk[document], mean_deviation)
                for document in accepted
            ]
        )
        drawn_today = accepted[chances[accepted] < probabilities]
        drawn = np.concatenate([drawn, drawn_today])
        extra = sum(
            rates[int(stratum)] - usual_rate
            for stratum in stream.stratum[accepted]
            if braked_until.get(int(stratum), 0) <= day
        )
        replay = replay._replace(drawn=drawn, warned_audits=replay.warned_audits + float(extra))
        if with_warnings:
            run = _count_inputs(stream, day, todays, drawn_today, is_new_sender)
            run = run.model_copy(update={"warnings": find_warnings(runs, run)})
            runs.append(run)
            replay.warnings.extend(
                (day, int(stratum), measure) for stratum, warnings in run.warnings.items() for measure in warnings
            )
        _look_for_drift(stream, day, drawn, answered_at, braked_until, replay.brakes, runs)
    return replay


def _find_new_senders(stream: Stream) -> np.ndarray:
    """Mark the first documents of each sender."""
    seen: dict[int, int] = defaultdict(int)
    is_new = np.zeros(len(stream.sender), dtype=bool)
    for document, sender in enumerate(stream.sender.tolist()):
        is_new[document] = seen[sender] < KNOWN_SENDER_DOCUMENTS
        seen[sender] += 1
    return is_new


def _count_inputs(
    stream: Stream, day: int, documents: np.ndarray, drawn: np.ndarray, is_new_sender: np.ndarray
) -> MonitoredRun:
    strata = {}
    for stratum in range(stream.strata):
        own = documents[stream.stratum[documents] == stratum]
        if len(own):
            strata[str(stratum)] = StratumCounts(
                documents=len(own),
                audits=int((stream.stratum[drawn] == stratum).sum()),
                sums={
                    "new_words": float(stream.novelty[own].sum()),
                    "new_sender": float(is_new_sender[own].sum()),
                    "poor_reading": float((1 - stream.reader_quality[own]).sum()),
                    "escalated": float(stream.is_escalated[own].sum()),
                },
            )
    return MonitoredRun(started_at=str(day), strata=strata)


def _look_for_drift(
    stream: Stream,
    day: int,
    drawn: np.ndarray,
    answered_at: np.ndarray,
    braked_until: dict[int, int],
    brakes: list[Brake],
    runs: list[MonitoredRun],
) -> None:
    """Look at the strata in which an error became known today, and brake them if one is due."""
    is_new = (answered_at[drawn] > day) & (answered_at[drawn] <= day + 1) & stream.expert_says_wrong[drawn]
    for stratum in np.unique(stream.stratum[drawn[is_new]]).tolist():
        if braked_until.get(stratum, 0) > day:
            continue
        own = drawn[stream.stratum[drawn] == stratum]
        is_answered = answered_at[own] <= day + 1
        start_weights = np.ones(len(own))
        for started_at in map_warned_starts(runs).get(str(stratum), ()):
            position = int((stream.day[own] < int(started_at)).sum())
            start_weights[position : position + 1] += WARNING_WEIGHT
        is_found_wrong = is_answered & stream.expert_says_wrong[own]
        audits = AuditSequence(stream.risk[own], is_answered, is_found_wrong, start_weights)
        first_position = int((stream.day[own] < braked_until.get(stratum, 0)).sum())
        due = [item for item in compute_drift_evidence(audits, first_position) if item.level >= 1]
        if due:
            brakes.append(Brake(day, stratum, int(own[due[0].position])))
            braked_until[stratum] = day + RELEASED_AFTER_DAYS


def measure_kind(kind: str, seeds: range, *, with_warnings: bool = True) -> dict[str, Any]:
    """Replay a kind with many seeds and summarise what happened."""
    delays, days, costs = [], [], []
    false_count = brake_count = missed_count = already_braked_count = warning_count = quiet_days = 0
    for seed in seeds:
        stream = generate_stream(kind, seed)
        replay = replay_stream(stream, with_warnings=with_warnings)
        shift_day = stream.days if stream.shift_day is None else stream.shift_day
        brake_count += len(replay.brakes)
        warning_count += len(replay.warnings)
        costs.append(replay.warned_audits)
        false_brakes = [
            brake for brake in replay.brakes if brake.day < shift_day or brake.stratum not in stream.shift_strata
        ]
        false_count += len(false_brakes)
        quiet_days += shift_day
        if stream.shift_day is None:
            continue
        true_brakes = [brake for brake in replay.brakes if brake not in false_brakes]
        if any(
            brake.stratum in stream.shift_strata and shift_day - RELEASED_AFTER_DAYS < brake.day < shift_day
            for brake in replay.brakes
        ):
            already_braked_count += 1
        elif true_brakes:
            first = true_brakes[0]
            own = replay.drawn[
                (stream.stratum[replay.drawn] == first.stratum) & (stream.day[replay.drawn] >= shift_day)
            ]
            delays.append(int((own <= first.document).sum()))
            days.append(first.day - shift_day)
        else:
            missed_count += 1
    brake = generate_stream(kind, seeds[0]).brake
    result: dict[str, Any] = {"brake": brake, "streams": len(seeds), "brakes": brake_count}
    if brake != "not_judged":
        result["false_brakes"] = false_count
        result["false_brakes_a_year"] = round(false_count * 365 / quiet_days, 2)
    if delays:
        result |= {
            "delay_audits_mean": round(float(np.mean(delays)), 1),
            "delay_audits_90": round(float(np.quantile(delays, 0.9)), 1),
            "delay_days_median": float(np.median(days)),
        }
    if brake == "after_shift":
        result |= {"missed": missed_count, "already_braked": already_braked_count}
    result |= {
        "warnings_a_stream": round(warning_count / len(seeds), 2),
        "audits_for_warnings_a_stream": round(float(np.mean(costs)), 1),
    }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--kinds", nargs="*")
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--without-warnings", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    rows = {}
    for kind in arguments.kinds or list_kinds(arguments.half):
        rows[kind] = measure_kind(kind, seeds, with_warnings=not arguments.without_warnings)
        print(kind, json.dumps(rows[kind]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
