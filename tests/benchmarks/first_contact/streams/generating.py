"""Draw a stream of documents from its kind and a seed: what arrives, what the program says, what is true.

``generate_stream(kind, seed)`` is pure: equal arguments give equal arrays. Kinds are rows of ``open.toml`` and
``sealed.toml``; README.md explains columns, facts and keys. Nothing here is shared with the code under test.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
HALVES = ("open", "sealed")
DAYS_OF_WEEK = 7
YEAR = 365
#: How far stated risks and novelty spread around their mean: the concentration of their beta distributions.
CONCENTRATION = 20.0
#: A stated risk is never exactly 0 or 1, as no honest model's is.
SMALLEST_RISK = 1e-6
REGULAR_SENDERS = 12
NEW_SENDER = 100

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Spell:
    """A period in which a share of a stratum's documents is different: a shift, a new sender, a new model.

    ``starts`` is a day or a range of days that the seed chooses from. ``days`` is its length; without it, it lasts. With
    ``ramp_days`` the rate moves there in a straight line. Keys that are left out stay as they were.
    """

    starts: int | list[int]
    rate: float
    days: int | list[int] | None = None
    ramp_days: int = 0
    strata: list[int] | None = None
    share: float = 1.0
    novelty: float | None = None
    quality: float | None = None
    escalated: float | None = None
    is_shift: bool = False
    is_new_sender: bool = False
    is_new_model: bool = False
    #: The program's stated risk knows the new rate.
    risk_knows: bool = False


@dataclass(frozen=True)
class Bursts:
    """Runs of bad days that come and go by chance and hit a share of a stratum: one sender's broken fax."""

    per_year: float
    mean_days: float
    rate: float
    share: float = 1.0
    strata: list[int] | None = None
    quality: float | None = None


@dataclass(frozen=True)
class Batches:
    """Documents that arrive together, of which a share of batches is wrong as a whole."""

    size: int
    share_wrong: float


@dataclass(frozen=True)
class Recipe:
    """A row of the tables: one kind of stream. ``rates`` are error rates among accepted documents, by stratum."""

    reality: str
    brake: str
    days: int = 180
    documents_per_day: float = 200.0
    shares: list[float] = field(default_factory=lambda: [1.0])
    rates: list[float] = field(default_factory=lambda: [0.008])
    #: Documents by day of the week, from Monday on, and error rates by it; volumes are scaled to a mean of 1.
    weekday_volumes: list[float] = field(default_factory=lambda: [1.25, 1.2, 1.15, 1.15, 1.1, 0.6, 0.55])
    weekday_rates: list[float] = field(default_factory=lambda: [1.0] * DAYS_OF_WEEK)
    #: ``[amplitude, period in days]`` of the first stratum's volume, and of every stratum's rate, both relative.
    volume_season: list[float] = field(default_factory=lambda: [0.0, 365.0])
    rate_season: list[float] = field(default_factory=lambda: [0.0, 365.0])
    spells: list[Spell] = field(default_factory=list)
    bursts: Bursts | None = None
    batches: Batches | None = None
    escalated: float = 0.2
    escalated_rate: float = 0.35
    risk_factor: float = 1.0
    is_risk_shuffled: bool = False
    novelty: float = 0.1
    novelty_wobble: float = 0.01
    novelty_outliers: float = 0.01
    quality: float = 0.9
    delay_median_days: float = 2.0
    delay_spread: float = 0.8
    unanswered: float = 0.03
    unanswered_if_wrong: float | None = None
    expert_misses: float = 0.0
    expert_invents: float = 0.0
    #: Further changes that only one kind has: names of functions and their arguments.
    effects: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Stream:
    """Documents in the order of their arrival, and the facts that the code under test must find out.

    The columns have one entry per document; the two rate tables have one row per day and one column per stratum.
    """

    kind: str
    seed: int
    day: Integers
    stratum: Integers
    sender: Integers
    model_version: Integers
    risk: Floats
    is_accepted: Booleans
    is_escalated: Booleans
    is_wrong: Booleans
    novelty: Floats
    reader_quality: Floats
    answer_delay_days: Floats
    expert_says_wrong: Booleans
    true_error_rate: Floats
    expected_error_rate: Floats
    shift_day: int | None
    return_day: int | None
    shift_strata: tuple[int, ...]
    shift_is_visible_in_novelty: bool
    shift_is_visible_in_quality: bool
    shift_is_visible_in_escalations: bool
    new_sender_day: int | None
    new_model_day: int | None
    brake: str

    @property
    def days(self) -> int:
        """Return how many days the stream lasts."""
        return len(self.true_error_rate)

    @property
    def strata(self) -> int:
        """Return how many strata the stream has."""
        return self.true_error_rate.shape[1]


COLUMNS = (
    "day",
    "stratum",
    "sender",
    "model_version",
    "risk",
    "is_accepted",
    "is_escalated",
    "is_wrong",
    "novelty",
    "reader_quality",
    "answer_delay_days",
    "expert_says_wrong",
)


@dataclass
class Draft:
    """A stream that is being drawn: columns so far, tables by day and stratum, facts."""

    recipe: Recipe
    columns: dict[str, NDArray[Any]]
    true_error_rate: Floats
    expected_error_rate: Floats
    facts: dict[str, Any]

    def keep(self, chosen: NDArray[Any]) -> None:
        """Keep the documents that a mask or an array of indices names, in its order."""
        self.columns = {name: column[chosen] for name, column in self.columns.items()}


@cache
def read_recipes(half: str) -> dict[str, Recipe]:
    """Read the kinds of one half by name."""
    rows = tomllib.loads((HERE / f"{half}.toml").read_text("utf-8"))
    return {kind: _read_recipe(row) for kind, row in rows.items()}


def list_kinds(half: str) -> tuple[str, ...]:
    """List the kinds of the half ``open`` or ``sealed``."""
    return tuple(read_recipes(half))


def generate_stream(kind: str, seed: int) -> Stream:
    """Draw the stream of this kind and seed; KeyError if no table has the kind."""
    for half in HALVES:
        if kind in read_recipes(half):
            return _draw_stream(kind, seed, read_recipes(half)[kind], half)
    raise KeyError(kind)


def _read_recipe(row: dict[str, Any]) -> Recipe:
    nested = {
        "spells": [Spell(**spell) for spell in row.get("spells", [])],
        "bursts": Bursts(**row["bursts"]) if "bursts" in row else None,
        "batches": Batches(**row["batches"]) if "batches" in row else None,
    }
    recipe = Recipe(**(row | nested))
    if len(recipe.rates) != len(recipe.shares) or recipe.brake not in {"never", "after_shift", "not_judged"}:
        raise ValueError(f"a row of streams contradicts itself: {row}")
    return recipe


def _draw_stream(kind: str, seed: int, recipe: Recipe, half: str) -> Stream:
    entropy = int.from_bytes(hashlib.sha256(kind.encode()).digest()[:8], "big")
    arrivals, hidden, documents, answers, effects = np.random.default_rng([entropy, seed]).spawn(5)
    draft = Draft(recipe, _draw_arrivals(recipe, arrivals), *_base_rates(recipe), _no_facts(recipe))
    draft.columns |= _start_documents(draft, documents)
    _apply_spells(draft, hidden, documents)
    _apply_bursts(draft, hidden, documents)
    _apply_batches(draft, hidden)
    _draw_program(draft, documents)
    _apply_effects(draft, half, "documents", effects)
    _draw_answers(draft, answers)
    _apply_effects(draft, half, "answers", effects)
    return Stream(
        kind=kind,
        seed=seed,
        **{name: draft.columns[name] for name in COLUMNS},
        true_error_rate=draft.true_error_rate,
        expected_error_rate=draft.expected_error_rate,
        **draft.facts,
    )


def _apply_effects(draft: Draft, half: str, moment: str, random: np.random.Generator) -> None:
    for row in draft.recipe.effects:
        arguments = dict(row)
        function = getattr(import_module(f"{__package__}.{half}_effects"), arguments.pop("name"))
        if arguments.pop("moment") == moment:
            function(draft, random, **arguments)


def _season(season: list[float], days: int) -> Floats:
    amplitude, period = season
    return 1.0 + amplitude * np.sin(2.0 * np.pi * np.arange(days) / period)


def _by_weekday(factors: list[float], days: int) -> Floats:
    return np.resize(np.asarray(factors), days)


def _draw_arrivals(recipe: Recipe, random: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Draw how many documents of each stratum arrive on each day, in mixed order within the day."""
    weekdays = np.asarray(recipe.weekday_volumes) / np.mean(recipe.weekday_volumes)
    volumes = recipe.documents_per_day * np.outer(_by_weekday(list(weekdays), recipe.days), recipe.shares)
    volumes[:, 0] *= _season(recipe.volume_season, recipe.days)
    counts = random.poisson(volumes)
    day = np.repeat(np.arange(recipe.days), counts.sum(axis=1))
    stratum = np.repeat(np.tile(np.arange(len(recipe.shares)), recipe.days), counts.ravel())
    order = np.lexsort((random.random(len(day)), day))
    return {"day": day, "stratum": stratum[order]}


def _base_rates(recipe: Recipe) -> tuple[Floats, Floats]:
    """Return the error rates by day and stratum before anything happens, twice: true and expected."""
    factors = _by_weekday(recipe.weekday_rates, recipe.days) * _season(recipe.rate_season, recipe.days)
    rates = np.outer(factors, recipe.rates)
    return rates, rates.copy()


def _no_facts(recipe: Recipe) -> dict[str, Any]:
    return {
        "shift_day": None,
        "return_day": None,
        "shift_strata": (),
        "shift_is_visible_in_novelty": False,
        "shift_is_visible_in_quality": False,
        "shift_is_visible_in_escalations": False,
        "new_sender_day": None,
        "new_model_day": None,
        "brake": recipe.brake,
    }


def _start_documents(draft: Draft, random: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Return what each document has before anything happens: its rate, sender, mean novelty and quality."""
    recipe, day, stratum = draft.recipe, draft.columns["day"], draft.columns["stratum"]
    size = len(day)
    sender = random.integers(REGULAR_SENDERS, size=size)
    wobble = np.zeros(recipe.days)
    for number, step in enumerate(random.normal(size=recipe.days)):
        wobble[number] = 0.8 * wobble[number - 1] * (number > 0) + recipe.novelty_wobble * 0.6 * step
    by_sender = np.linspace(-0.02, 0.02, REGULAR_SENDERS)[sender]
    return {
        "sender": sender,
        "model_version": np.zeros(size, dtype=np.int64),
        "rate": draft.true_error_rate[day, stratum],
        "believed": np.asarray(recipe.rates)[stratum],
        "escalated_share": np.full(size, recipe.escalated),
        "mean_novelty": recipe.novelty + by_sender + wobble[day],
        "mean_quality": np.full(size, recipe.quality),
    }


def _choose(value: int | list[int], random: np.random.Generator) -> int:
    return int(random.integers(value[0], value[1] + 1)) if isinstance(value, list) else value


def _mix_rates(table: Floats, place: Any, part: Floats, kept: float, kept_new: float, share: float) -> None:
    """Mix a share of documents of another rate into a table of rates, weighted by what of each is accepted."""
    old, new = (1.0 - share) * kept, share * kept_new
    table[place] = (old * table[place] + new * part) / (old + new)


def _apply_spells(draft: Draft, hidden: np.random.Generator, random: np.random.Generator) -> None:
    for spell in draft.recipe.spells:
        start = _choose(spell.starts, hidden)
        length = draft.recipe.days if spell.days is None else _choose(spell.days, hidden)
        _apply_spell(draft, spell, start, min(start + length, draft.recipe.days), random)


def _apply_spell(draft: Draft, spell: Spell, start: int, end: int, random: np.random.Generator) -> None:
    recipe, columns = draft.recipe, draft.columns
    strata = spell.strata if spell.strata is not None else list(range(len(recipe.shares)))
    marked = random.random(len(columns["day"])) < spell.share
    hit = marked & (columns["day"] >= start) & (columns["day"] < end) & np.isin(columns["stratum"], strata)
    progress = np.minimum(1.0, (np.arange(recipe.days) - start + 1) / max(spell.ramp_days, 1))
    ramp = draft.true_error_rate + progress[:, None] * (spell.rate - draft.true_error_rate)
    columns["rate"] = np.where(hit, ramp[columns["day"], columns["stratum"]], columns["rate"])
    escalated = recipe.escalated if spell.escalated is None else spell.escalated
    place = np.ix_(np.arange(start, end), strata)
    for table in (draft.true_error_rate, draft.expected_error_rate):
        _mix_rates(table, place, ramp[place], 1.0 - recipe.escalated, 1.0 - escalated, spell.share)
    columns["escalated_share"][hit] = escalated
    if spell.risk_knows:
        columns["believed"] = np.where(hit, columns["rate"], columns["believed"])
    if spell.novelty is not None:
        columns["mean_novelty"][hit] += spell.novelty - recipe.novelty
    if spell.quality is not None:
        columns["mean_quality"][hit] = spell.quality
    if spell.is_new_sender:
        columns["sender"][hit] = NEW_SENDER + recipe.spells.index(spell)
    if spell.is_new_model:
        columns["model_version"][hit] += 1
    _note_spell(draft, spell, start, end, strata)


def _note_spell(draft: Draft, spell: Spell, start: int, end: int, strata: list[int]) -> None:
    facts = draft.facts
    if spell.is_new_sender:
        facts["new_sender_day"] = start
    if spell.is_new_model:
        facts["new_model_day"] = start
    if spell.is_shift:
        facts["shift_day"] = start
        facts["return_day"] = end if end < draft.recipe.days else None
        facts["shift_strata"] = tuple(strata)
        facts["shift_is_visible_in_novelty"] = spell.novelty is not None
        facts["shift_is_visible_in_quality"] = spell.quality is not None
        facts["shift_is_visible_in_escalations"] = spell.escalated is not None


def _apply_bursts(draft: Draft, hidden: np.random.Generator, random: np.random.Generator) -> None:
    recipe, bursts = draft.recipe, draft.recipe.bursts
    if bursts is None:
        return
    for stratum in bursts.strata if bursts.strata is not None else range(len(recipe.shares)):
        is_bad = np.zeros(recipe.days, dtype=bool)
        starts, ends = bursts.per_year / YEAR, 1.0 / bursts.mean_days
        for day, chance in enumerate(hidden.random(recipe.days)):
            is_bad[day] = chance < (1.0 - ends if day and is_bad[day - 1] else starts)
        # The chance of a bad day starts at 0 before the first day and tends to its long-run value.
        long_run = starts / (starts + ends)
        chances = long_run * (1.0 - (1.0 - starts - ends) ** np.arange(1, recipe.days + 1))
        columns = draft.columns
        marked = random.random(len(columns["day"])) < bursts.share
        hit = marked & (columns["stratum"] == stratum) & is_bad[columns["day"]]
        columns["rate"][hit] = bursts.rate
        if bursts.quality is not None:
            columns["mean_quality"][hit] = bursts.quality
        for table, weights in ((draft.true_error_rate, is_bad), (draft.expected_error_rate, chances)):
            table[:, stratum] += weights * bursts.share * (bursts.rate - table[:, stratum])


def _apply_batches(draft: Draft, hidden: np.random.Generator) -> None:
    batches, columns = draft.recipe.batches, draft.columns
    if batches is None:
        return
    bad = np.zeros(len(columns["day"]), dtype=bool)
    for stratum in range(len(draft.recipe.shares)):
        members = np.flatnonzero(columns["stratum"] == stratum)
        number = np.arange(len(members)) // batches.size
        bad[members] = (hidden.random(len(members) // batches.size + 1) < batches.share_wrong)[number]
    columns["rate"][bad] = 1.0
    shape = draft.true_error_rate.shape
    place = columns["day"] * shape[1] + columns["stratum"]
    totals, wrong = (np.bincount(place, weights=part, minlength=shape[0] * shape[1]) for part in (None, bad))
    share = (wrong / np.maximum(totals, 1)).reshape(shape)
    draft.true_error_rate += share * (1.0 - draft.true_error_rate)
    draft.expected_error_rate += batches.share_wrong * (1.0 - draft.expected_error_rate)


def _draw_beta(mean: Floats, random: np.random.Generator) -> Floats:
    mean = np.clip(mean, SMALLEST_RISK, 1.0 - SMALLEST_RISK)
    return random.beta(mean * CONCENTRATION, (1.0 - mean) * CONCENTRATION)


def _draw_program(draft: Draft, random: np.random.Generator) -> None:
    """Draw what the program does: escalations, stated risks, errors, and what it measures of the page."""
    recipe, columns = draft.recipe, draft.columns
    size = len(columns["day"])
    columns["is_escalated"] = random.random(size) < columns["escalated_share"]
    columns["is_accepted"] = ~columns["is_escalated"]
    gravest = np.maximum(columns["rate"], recipe.escalated_rate)
    rate = np.where(columns["is_escalated"], gravest, columns["rate"])
    believed = np.where(columns["is_escalated"], recipe.escalated_rate, columns["believed"])
    stated = _draw_beta(believed, random)
    columns["error_probability"] = scale_probabilities(stated, believed, rate)
    columns["is_wrong"] = random.random(size) < columns["error_probability"]
    risk = stated * recipe.risk_factor
    if recipe.is_risk_shuffled:
        for accepted in (True, False):
            members = np.flatnonzero(columns["is_accepted"] == accepted)
            risk[members] = random.permutation(risk[members])
    columns["risk"] = np.clip(risk, SMALLEST_RISK, 1.0 - SMALLEST_RISK)
    novelty = _draw_beta(columns["mean_novelty"], random)
    outliers = random.random(size) < recipe.novelty_outliers
    columns["novelty"] = np.where(outliers, _draw_beta(np.full(size, 0.6), random), novelty)
    columns["reader_quality"] = _draw_beta(columns["mean_quality"], random)


def scale_probabilities(stated: Floats, believed: Floats, rate: Floats) -> Floats:
    """Return probabilities whose mean is ``rate``, made of stated ones whose mean is ``believed``.

    A higher rate adds errors everywhere, as a cause that the program does not know; a lower one scales all down.
    """
    added = stated + (1.0 - stated) * (rate - believed) / np.maximum(1.0 - believed, SMALLEST_RISK)
    return np.where(rate > believed, added, stated * rate / np.maximum(believed, SMALLEST_RISK))


def _draw_answers(draft: Draft, random: np.random.Generator) -> None:
    """Draw for every document what an expert would answer, and after how many days."""
    recipe, wrong = draft.recipe, draft.columns["is_wrong"]
    size = len(wrong)
    delay = recipe.delay_median_days * np.exp(recipe.delay_spread * random.normal(size=size))
    if_wrong = recipe.unanswered if recipe.unanswered_if_wrong is None else recipe.unanswered_if_wrong
    never = random.random(size) < np.where(wrong, if_wrong, recipe.unanswered)
    draft.columns["answer_delay_days"] = np.where(never, np.inf, delay)
    errs = random.random(size) < np.where(wrong, recipe.expert_misses, recipe.expert_invents)
    draft.columns["expert_says_wrong"] = wrong ^ errs
