"""What only kinds of the sealed half do to a stream; opened with it, once."""

from __future__ import annotations

import numpy as np
from benchmarks.first_contact.streams.generating import NEW_SENDER, Draft

#: How much later a document that was sent again arrives, at most.
MOST_DAYS_LATER = 6


def reverse_risks(draft: Draft, random: np.random.Generator) -> None:
    """Give the accepted documents' risks in the reverse order of their error probabilities."""
    columns = draft.columns
    members = np.flatnonzero(columns["is_accepted"])
    by_probability = members[np.argsort(columns["error_probability"][members], kind="stable")]
    columns["risk"][by_probability] = np.sort(columns["risk"][members])[::-1]


def zero_risks(draft: Draft, random: np.random.Generator, share_of_errors: float, share_of_right: float) -> None:
    """State a risk of exactly 0 for shares of the accepted errors and of the accepted right answers."""
    columns = draft.columns
    share = np.where(columns["is_wrong"], share_of_errors, share_of_right)
    hit = columns["is_accepted"] & (random.random(len(share)) < share)
    columns["risk"] = np.where(hit, 0.0, columns["risk"])


def hit_every_nth(draft: Draft, random: np.random.Generator, period: int, rate: float) -> None:
    """Make every nth accepted document wrong with a probability, in the order of arrival."""
    columns = draft.columns
    accepted = np.flatnonzero(columns["is_accepted"])
    hit = accepted[random.integers(period) :: period]
    columns["is_wrong"][hit] |= random.random(len(hit)) < rate
    for table in (draft.true_error_rate, draft.expected_error_rate):
        np.add(table, rate / period * (1.0 - table), out=table)


def repeat_documents(
    draft: Draft, random: np.random.Generator, share: float, mean_copies: float, most_copies: int
) -> None:
    """Send documents again over the following days: copies share answer, truth and what was measured.

    Wrong documents are no more often sent again than right ones, so the expected rate stays; the true rate of a day
    counts the errors among its repeated documents as they are.
    """
    columns, days = draft.columns, draft.recipe.days
    size = len(columns["day"])
    copies = np.where(
        random.random(size) < share, np.minimum(random.geometric(1.0 / mean_copies, size), most_copies), 0
    )
    source = np.repeat(np.arange(size), copies)
    later = columns["day"][source] + random.integers(0, MOST_DAYS_LATER + 1, size=len(source))
    chosen = np.concatenate([np.arange(size), source[later < days]])
    day = np.concatenate([columns["day"], later[later < days]])
    order = np.lexsort((random.random(len(day)), day))
    is_copy = (np.arange(len(day)) >= size)[order]
    draft.keep(chosen[order])
    draft.columns["day"] = day[order]
    _count_copies(draft, is_copy)


def _count_copies(draft: Draft, is_copy: np.ndarray) -> None:
    columns, shape = draft.columns, draft.true_error_rate.shape
    place = columns["day"] * shape[1] + columns["stratum"]
    accepted = columns["is_accepted"]
    masks = (accepted, accepted & is_copy, accepted & is_copy & columns["is_wrong"])
    everything, copied, wrong = (
        np.bincount(place[mask], minlength=shape[0] * shape[1]).reshape(shape) for mask in masks
    )
    fresh = (everything - copied) * draft.true_error_rate
    draft.true_error_rate = np.where(everything > 0, (fresh + wrong) / np.maximum(everything, 1), draft.true_error_rate)


def delay_bad_news(draft: Draft, random: np.random.Generator, factor: float) -> None:
    """Let answers that find an error take longer by a factor."""
    columns = draft.columns
    columns["answer_delay_days"] = np.where(columns["expert_says_wrong"], factor, 1.0) * columns["answer_delay_days"]


def spread_over_strata(draft: Draft, random: np.random.Generator, strata: int) -> None:
    """Spread the documents of the only stratum over many of the same kind."""
    draft.columns["stratum"] = random.integers(strata, size=len(draft.columns["day"]))
    draft.true_error_rate = np.repeat(draft.true_error_rate, strata, axis=1)
    draft.expected_error_rate = np.repeat(draft.expected_error_rate, strata, axis=1)


def let_strata_join(draft: Draft, random: np.random.Generator, strata: int, first_day: int, last_day: int) -> None:
    """Leave out the documents of the last strata before each one's day of joining."""
    count = draft.true_error_rate.shape[1]
    joins = np.zeros(count, dtype=np.int64)
    joins[count - strata :] = random.integers(first_day, last_day + 1, size=strata)
    draft.keep(draft.columns["day"] >= joins[draft.columns["stratum"]])


def tire_experts(draft: Draft, random: np.random.Generator, first: float, last: float) -> None:
    """Let experts overlook ever more errors, in a straight line over the stream."""
    columns = draft.columns
    misses = first + (last - first) * columns["day"] / draft.recipe.days
    columns["expert_says_wrong"] = columns["is_wrong"] & (random.random(len(misses)) >= misses)


def pile_up_answers(draft: Draft, random: np.random.Generator, first_day: int, days: int) -> None:
    """Let every answer that would come in the absence come in the two days after it."""
    columns = draft.columns
    answered_on = columns["day"] + columns["answer_delay_days"]
    is_absent = (answered_on >= first_day) & (answered_on < first_day + days)
    back = first_day + days + 2.0 * random.random(len(answered_on))
    columns["answer_delay_days"] = np.where(is_absent, back - columns["day"], columns["answer_delay_days"])


def accept_escalated(draft: Draft, random: np.random.Generator, days: list[int], share: float) -> None:
    """Accept a share of what would be escalated, from a day on: the least risky part of it.

    The rate of the newly accepted is that of the escalated documents below the cut; only the accepted mix changes.
    """
    columns, recipe = draft.columns, draft.recipe
    start = int(random.integers(days[0], days[1] + 1))
    escalated = columns["is_escalated"]
    limit = np.quantile(columns["risk"][escalated], share)
    hit = escalated & (columns["day"] >= start) & (columns["risk"] <= limit)
    columns["is_escalated"] = escalated & ~hit
    columns["is_accepted"] = ~columns["is_escalated"]
    newly = share * recipe.escalated
    rate_of_newly = float(columns["error_probability"][hit].mean())
    for table in (draft.true_error_rate, draft.expected_error_rate):
        kept = (1.0 - recipe.escalated) * table[start:]
        table[start:] = (kept + newly * rate_of_newly) / (1.0 - recipe.escalated + newly)
    draft.facts["shift_day"] = start
    draft.facts["shift_strata"] = tuple(range(draft.true_error_rate.shape[1]))
    draft.facts["shift_is_visible_in_escalations"] = True


def close_house(draft: Draft, random: np.random.Generator, first_day: int, days: int) -> None:
    """Leave out every document of a period."""
    day = draft.columns["day"]
    draft.keep((day < first_day) | (day >= first_day + days))


def ignore_sender(draft: Draft, random: np.random.Generator, share: float) -> None:
    """Leave a share of the audits of new senders unanswered."""
    columns = draft.columns
    hit = (columns["sender"] >= NEW_SENDER) & (random.random(len(columns["sender"])) < share)
    columns["answer_delay_days"] = np.where(hit, np.inf, columns["answer_delay_days"])


def anchor_experts(draft: Draft, random: np.random.Generator, longest: float, run: int) -> None:
    """Let an expert overlook an error the likelier, the more right documents came just before it.

    The chance rises in a straight line to ``longest`` after ``run`` right documents of the same stratum.
    """
    columns = draft.columns
    chances = random.random(len(columns["day"]))
    for stratum in range(draft.true_error_rate.shape[1]):
        members = np.flatnonzero(columns["stratum"] == stratum)
        wrong = columns["is_wrong"][members]
        places = np.arange(len(members))
        last_wrong = np.maximum.accumulate(np.where(wrong, places, -1))
        since = places - np.concatenate([[-1], last_wrong[:-1]]) - 1
        misses = longest * np.minimum(since, run) / run
        columns["expert_says_wrong"][members] = wrong & (chances[members] >= misses)
