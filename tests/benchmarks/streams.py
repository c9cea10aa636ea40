"""Certificates and draws on streams of documents that somebody else wrote.

    cd tests && PYTHONPATH=. ../.venv/bin/python -m benchmarks.streams --half open --streams 1000 --json streams.json

*Certificates.* Each stream is seen day by day, as a hospital sees it: documents are accepted, drawn for audit by the
product's own rules, and answered after their delay. After every answer (at most ten times a day) and for each stratum
(type, source and model version), the product is asked whether "at most 1 % wrong" is certified. A stream counts as
false if that ever happens while the documents that the certificate covers are worse: ``wrong`` by the share of them that
is wrong; ``rate`` by the mean chance that they are, given the bad days that came; ``long run`` by the rate that the
stream's author states, averaged over bad days that may not have come yet. ``patient`` repeats it with audits that the
stream never answers answered after 30 days: otherwise 3 % unanswered audits forbid any certificate of 1 %.

*Draws.* Audits (all answered, by experts who do not err) until the error rate of accepted documents is known to one
point in either direction: even draws and the earlier interval (Clopper-Pearson on the effective size) against draws by
risk and the interval with predictions. Coverage is of the share of wrong documents, after 100, 200 and 400 audits.
"""

import argparse
import json
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.first_contact.streams.generating import Stream, generate_stream, list_kinds
from evaluation.studies import NOTE, OTHER, labels, truth

from evalkit.evaluation.certificate import (
    _BET_WEIGHTS,
    _BETS,
    _STAKE_LIMITS,
    _STAKE_WEIGHTS,
    AuditHistory,
    find_proven_count,
)
from evalkit.evaluation.headline_estimates import estimate_headline, score_agent_type
from evalkit.evaluation.intervals import Estimate, Observation, estimate_weighted_mean
from evalkit.evaluation.study import DocumentRecord
from evalkit.pipeline.sample_draws import (
    AuditDraw,
    compute_audit_probability,
)
from evalkit.settings import CertificateSettings, Settings

SETTINGS = Settings(_env_file=None)
TARGET = CertificateSettings()
NOTICED_SHARE = 0.95
"""What the product assumes before the first attention check."""
LOOKS_A_DAY = 10
PATIENT_DAYS = 30.0
CHECKPOINTS = (100, 200, 400)
HALF_WIDTH = 0.01
AGENT_LABELS, TRUTH_IF_RIGHT, TRUTH_IF_WRONG = labels(NOTE), truth(NOTE), truth(OTHER)


def draw_audits(stream: Stream, answered_at: np.ndarray, *, is_even: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return each accepted document's draw probability, and whether it is drawn; 0 for the others."""
    generator = np.random.default_rng([stream.seed, zlib.crc32(stream.kind.encode()), is_even])
    chances, probabilities = generator.random(len(stream.day)), np.zeros(len(stream.day))
    is_drawn = np.zeros(len(stream.day), dtype=bool)
    deviations = np.sqrt(stream.risk * (1 - stream.risk))
    accepted = np.flatnonzero(stream.is_accepted)
    first_of_day = np.searchsorted(stream.day[accepted], np.arange(stream.days + 1))
    for day in range(stream.days):
        earlier, today = accepted[: first_of_day[day]], accepted[first_of_day[day] : first_of_day[day + 1]]
        rate = AuditDraw.create(
            SETTINGS, int((is_drawn[earlier] & (answered_at[earlier] <= day)).sum()), None
        ).usual_rate
        read = earlier[:: max(len(earlier) // 200, 1)][:200]
        mean_deviation = float(deviations[read].mean()) if len(read) >= 50 and not is_even else None
        # Risks of three digits: the product's function is asked once for each.
        known = {
            risk: compute_audit_probability(rate, risk, mean_deviation) for risk in set(round_risks(stream.risk[today]))
        }
        probabilities[today] = [known[risk] for risk in round_risks(stream.risk[today])]
        is_drawn[today] = chances[today] < probabilities[today]
    return probabilities, is_drawn


def round_risks(risks: np.ndarray) -> list[float]:
    """Round risks to 1 in 1,000."""
    return np.round(risks, 3).tolist()


def look_at_certificates(stream: Stream, target: CertificateSettings, *, is_patient: bool) -> dict[str, Any]:
    """Look after every answer; return what was certified, and whether it was ever false."""
    delays = np.where(
        np.isinf(stream.answer_delay_days), PATIENT_DAYS if is_patient else np.inf, stream.answer_delay_days
    )
    answered_at = stream.day + delays
    probabilities, is_drawn = draw_audits(stream, answered_at)
    outcome: dict[str, Any] = {"false": dict.fromkeys(("wrong", "rate", "long run"), False), "strata": []}
    keys = {(int(stratum), int(version)) for stratum, version in zip(stream.stratum, stream.model_version, strict=True)}
    for stratum, version in sorted(keys):
        chosen = np.flatnonzero(stream.is_accepted & (stream.stratum == stratum) & (stream.model_version == version))
        days = stream.day[chosen].astype(float)
        truths = {
            "wrong": stream.is_wrong[chosen].astype(float),
            "rate": stream.true_error_rate[stream.day[chosen], stratum],
            "long run": stream.expected_error_rate[stream.day[chosen], stratum],
        }
        is_too_bad = {
            name: np.cumsum(column) / np.arange(1, len(chosen) + 1) > target.max_error_rate + 1e-12
            for name, column in truths.items()
        }
        drawn, answers, answer_times = is_drawn[chosen], stream.expert_says_wrong[chosen], answered_at[chosen]
        fast_check = FastCheck(probabilities[chosen], target)
        certified_after, days_in_force, newest_day = None, 0, int(days[-1]) if len(days) else 0
        for day in range(int(days[0]) if len(days) else 0, newest_day + 1):
            count = int(np.searchsorted(days, day, side="right"))
            oldest = int(np.searchsorted(days, days[count - 1] - 60, side="left"))
            times_today = np.sort(
                answer_times[:count][drawn[:count] & (answer_times[:count] >= day) & (answer_times[:count] < day + 1)]
            )
            looks = (
                times_today[np.linspace(0, len(times_today) - 1, min(len(times_today), LOOKS_A_DAY)).astype(int)]
                if len(times_today)
                else []
            )
            if not any(column[oldest:count].any() for column in is_too_bad.values()):
                looks = looks[-1:]  # nothing that is certified now could be false
            for look in looks:
                unanswered = drawn[:count] & (answer_times[:count] > look)
                found = drawn[:count] & (answers[:count] | unanswered)
                history = AuditHistory(probabilities[chosen[:count]], found)
                if not fast_check.may_be_proven(count, np.flatnonzero(found & ~unanswered)):
                    continue
                proven = find_proven_count(
                    days[:count], history, unanswered, NOTICED_SHARE, target.max_error_rate, target.confidence
                )
                if proven is None:
                    continue
                if certified_after is None:
                    certified_after = {
                        "audits": int((drawn[:count] & ~unanswered).sum()),
                        "documents": count,
                        "day": day,
                    }
                days_in_force += look == looks[-1]
                for name, column in is_too_bad.items():
                    outcome["false"][name] |= bool(column[proven - 1])
        outcome["strata"].append(
            {
                "documents": len(chosen),
                "certified_after": certified_after,
                "days_in_force": int(days_in_force),
                "is_good": bool(len(chosen)) and not is_too_bad["long run"][-1],
            }
        )
    return outcome


class FastCheck:
    """Upper limit of the wealth on prefixes of one history: whoever is below it is surely not certified."""

    def __init__(self, probabilities: np.ndarray, target: CertificateSettings) -> None:
        self._target = target
        smallest = np.minimum.accumulate(probabilities)
        shares = np.minimum(1.0, _STAKE_LIMITS[:, None] * smallest / probabilities)
        self._stake_sums = np.cumsum(probabilities * shares, axis=1)
        with np.errstate(divide="ignore"):
            self._losses = np.log1p(-_BETS[:, None, None] * shares)

    def may_be_proven(self, count: int, is_found_wrong: np.ndarray) -> bool:
        """Take the mean stake of all documents for that of the rarely drawn ones."""
        losses = self._losses[:, :, :count][:, :, is_found_wrong].sum(axis=2)
        gains = _BETS[:, None] * NOTICED_SHARE * self._target.max_error_rate * self._stake_sums[:, count - 1]
        wealth = (np.exp(losses + gains) * _BET_WEIGHTS[:, None] * _STAKE_WEIGHTS).sum()
        return bool(wealth >= 1 / (1 - self._target.confidence))


def estimate_today(is_wrong: np.ndarray, probabilities: np.ndarray, is_drawn: np.ndarray) -> Estimate:
    """Estimate as before: even draws, no predictions."""
    rows = [
        Observation(float(not wrong), probability)
        for wrong, probability in zip(is_wrong[is_drawn], probabilities[is_drawn], strict=True)
    ]
    return estimate_weighted_mean(rows, len(is_wrong), certain_count=0)


def estimate_now(is_wrong: np.ndarray, probabilities: np.ndarray, is_drawn: np.ndarray, risks: np.ndarray) -> Estimate:
    """Estimate by the report's own function, from documents as it reads them."""
    documents = [
        DocumentRecord(
            f"d{position}",
            None,
            "",
            "reviewed" if known else "unseen",
            "AUTO_ACCEPT",
            agent_labels=AGENT_LABELS,
            truth=(TRUTH_IF_WRONG if wrong else TRUTH_IF_RIGHT) if known else None,
            inclusion_probability=probability,
            review_probability=probability,
            risk=risk,
        )
        for position, (wrong, probability, known, risk) in enumerate(
            zip(
                is_wrong.tolist(),
                np.minimum(probabilities, 1 - 1e-9).tolist(),
                is_drawn.tolist(),
                risks.tolist(),
                strict=True,
            )
        )
    ]
    return estimate_headline("", "", documents, score_agent_type).archive_estimate


def measure_precision(stream: Stream) -> dict[str, Any]:
    """Return audits for one point of precision by both ways, and whether intervals cover the truth."""
    answered_at = stream.day + 0.0
    chosen = np.flatnonzero(stream.is_accepted)
    is_wrong, risks = stream.is_wrong[chosen], stream.risk[chosen]
    ways: dict[str, Any] = {}
    for way in ("today", "now"):
        probabilities, is_drawn = draw_audits(stream, answered_at, is_even=way == "today")
        rates, drawn = probabilities[chosen], is_drawn[chosen]
        audits = np.cumsum(drawn)

        def estimate(count: int, way: str = way, rates: np.ndarray = rates, drawn: np.ndarray = drawn) -> Estimate:
            columns = is_wrong[:count], rates[:count], drawn[:count]
            return estimate_today(*columns) if way == "today" else estimate_now(*columns, risks[:count])

        def is_narrow(audit_count: int, audits: np.ndarray = audits, estimate: Any = estimate) -> bool:
            interval = estimate(int(np.searchsorted(audits, audit_count)) + 1)
            return (interval.high - interval.low) / 2 <= HALF_WIDTH

        low, high = 30, int(audits[-1])
        if high > low and is_narrow(high):
            while high - low > 4:
                middle = (low + high) // 2
                low, high = (low, middle) if is_narrow(middle) else (middle, high)
        else:
            high = 0
        reached = estimate(int(np.searchsorted(audits, high)) + 1) if high else None
        covered = {}
        if reached:
            share = 1 - is_wrong[: int(np.searchsorted(audits, high)) + 1].mean()
            covered["reached"] = bool(reached.low - 1e-9 <= share <= reached.high + 1e-9)
        for checkpoint in CHECKPOINTS:
            if audits[-1] >= checkpoint:
                count = int(np.searchsorted(audits, checkpoint)) + 1
                interval, share = estimate(count), 1 - is_wrong[:count].mean()
                covered[checkpoint] = bool(interval.low - 1e-9 <= share <= interval.high + 1e-9)
        ways[way] = {"audits": high or None, "covered": covered}
    return ways


def summarise(kinds: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Summarise outcomes by kind."""
    rows = {}
    for kind, outcomes in kinds.items():
        row: dict[str, Any] = {"streams": len(outcomes)}
        for run in ("as answered", "patient"):
            looked = [outcome[run] for outcome in outcomes if run in outcome]
            strata = [stratum for one in looked for stratum in one["strata"]]
            certified = [stratum["certified_after"] for stratum in strata if stratum["certified_after"]]
            row[run] = {
                "false": {name: sum(one["false"][name] for one in looked) for name in ("wrong", "rate", "long run")},
                "strata": len(strata),
                "good": sum(stratum["is_good"] for stratum in strata),
                "certified": len(certified),
                "median audits": float(np.median([one["audits"] for one in certified])) if certified else None,
                "median day": float(np.median([one["day"] for one in certified])) if certified else None,
            }
        measured = [outcome["precision"] for outcome in outcomes if "precision" in outcome]
        pairs = [
            (one["today"]["audits"], one["now"]["audits"])
            for one in measured
            if one["today"]["audits"] and one["now"]["audits"]
        ]
        if measured:
            row["precision"] = {
                "streams": len(measured),
                "reached by both": len(pairs),
                "reached today, now": [sum(bool(one[way]["audits"]) for one in measured) for way in ("today", "now")],
                "audits today": float(np.mean([today for today, _ in pairs])) if pairs else None,
                "audits now": float(np.mean([now for _, now in pairs])) if pairs else None,
                "coverage": {
                    way: [sum(hits), len(hits)]
                    for way in ("today", "now")
                    for hits in [
                        [hit for one in measured for name, hit in one[way]["covered"].items() if name != "reached"]
                    ]
                },
                "coverage when reached": {
                    way: [sum(hits), len(hits)]
                    for way in ("today", "now")
                    for hits in [
                        [one[way]["covered"]["reached"] for one in measured if "reached" in one[way]["covered"]]
                    ]
                },
            }
        rows[kind] = row
    return rows


def main() -> None:
    """Run the streams of one half and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--streams", type=int, default=200, help="number of streams, spread over the kinds")
    parser.add_argument(
        "--precision", type=int, default=0, help="streams of each kind for the audits that one point takes"
    )
    parser.add_argument("--rate", type=float, default=TARGET.max_error_rate, help="tolerated error rate")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    kinds = arguments.kinds or list_kinds(arguments.half)
    target = TARGET.model_copy(update={"max_error_rate": arguments.rate})
    outcomes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for number in range(arguments.streams):
        kind, seed = kinds[number % len(kinds)], arguments.first_seed + number // len(kinds)
        stream = generate_stream(kind, seed=seed)
        outcome = {
            "as answered": look_at_certificates(stream, target, is_patient=False),
            "patient": look_at_certificates(stream, target, is_patient=True),
        }
        if number // len(kinds) < arguments.precision:
            outcome["precision"] = measure_precision(stream)
        outcomes[kind].append(outcome)
    rows = summarise(outcomes)
    for kind, row in rows.items():
        print(kind, json.dumps(row))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
