"""What the reliability loop gains: `PYTHONPATH=tests .venv/bin/python tests/benchmarks/reliability.py`.

An ablation on reports of known truth, drawn from made-up values (`tests/extraction/reports.py`): the first attempt beside
the best of up to three, for the embedded model and for a scripted one that errs and mends as its table says. The truth is
looked at only after the loop has ended. The layouts were written by the same hands as the reader, so that the embedded
figures are an upper bound; layouts that it was not made for ("letter") are in all figures. The scripted model's gain is what
its table makes of it: it shows that feedback arrives and that nothing is lost on the way, not how good any model is.
"""

import asyncio
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from builders import document
from extraction.reports import KINDS, LETTERS, Drawn, corpus, draw
from extraction.scripted import claims
from rich.console import Console
from rich.table import Table

from evalkit.documents.bundle import DocumentBundle
from evalkit.evaluation.intervals import estimate_by_bootstrap, estimate_proportion
from evalkit.extraction.clinical.clinical_extractor import ClaimedFields, ClinicalExtractor, ClinicalQuestion
from evalkit.extraction.clinical.clinical_rules import FieldValues, get_base_field_name
from evalkit.extraction.evaluator import ExtractionEvaluator
from evalkit.extraction.extraction_schema import Extraction
from evalkit.extraction.field_template import FieldNeed, get_field_template
from evalkit.extraction.optimizer import build_loop_config
from evalkit.extraction.reliability_loop import ReliabilityLoop, ReliabilityLoopResult, build_extraction
from evalkit.extraction.report_extraction import LOOP_METRICS
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Answer, AnswerT, Question, Usage

EACH = 60
"""Reports of each of the four kinds."""
FIRST = 10_000
"""The seeds of the tests are smaller: these reports were never looked at."""
REPEATS = 1000
_ASKED_FOR = frozenset(("stage", "tumorSize", "genes", "rawText"))
"""Fields that the truth says nothing about."""


class Right(NamedTuple):
    """How much of a report is right."""

    share: float
    """Of the values that it has."""
    wrong: int
    """Values that it has not."""
    missed: int
    """Of required and important fields: values that were not found."""

    @property
    def whole(self) -> bool:
        """Whether every value is there and none besides."""
        return self.share == 1 and not self.wrong

    @property
    def harmless(self) -> bool:
        """Whether no value is wrong, and none missing but the optional date and institution."""
        return not self.wrong and not self.missed


def right(drawn: Drawn, fields: FieldValues) -> Right:
    """Values compared as they are kept; sizes and variants by what they are, as their numbers mean nothing."""
    wanted = sorted(_named(name, known.value) for name, known in drawn.truth.items())
    got = [
        _named(name, value.value or "")
        for name, value in fields.items()
        if value.is_found and get_base_field_name(name) not in _ASKED_FOR
    ]
    left = list(got)
    hits = 0
    for one in wanted:
        if one in left:
            left.remove(one)
            hits += 1
    optional = {field.name for field in get_field_template(drawn.kind).get_fields_by_need(FieldNeed.OPTIONAL)}
    missed = [one for one in wanted if one not in got and one.partition("=")[0] not in optional]
    return Right(hits / len(wanted), len(left), len(missed))


def _named(name: str, value: str) -> str:
    key = get_base_field_name(name) if get_base_field_name(name) in ("measurements", "mutations") else name
    return f"{key}={' '.join(value.split())}"


# ------------------------------------------------------------------------------------------------- a model that errs


#: Of each value, at the first attempt: how often it errs so. At another attempt it mends what the feedback names with
#: MENDS, and errs anew in what was right with SLIPS.
ERRS = {"omits": 0.15, "alters a digit": 0.06, "shortens": 0.06, "says not present": 0.04}
INVENTS, MENDS, SLIPS = 0.05, 0.7, 0.03


class Imperfect:
    """Knows the truth, and errs as the table says; it mends only what the feedback in its prompt names."""

    name = "imperfect"

    def __init__(self, drawn: Drawn, seed: int) -> None:
        self._drawn = drawn
        self._dice = random.Random(f"{drawn.bundle.doc_id}:{seed}")
        self._says: dict[str, str | None] = {}

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        value = self._answer(question.prompt()) if isinstance(question, ClinicalQuestion) else question.offline()
        return Answer(question, value, usage=Usage(calls=1))

    def _answer(self, prompt: str) -> ClaimedFields:
        _, _, feedback = prompt.partition("--- FEEDBACK FROM QUALITY EVALUATION")
        named, _, _ = feedback.partition("PREVIOUS ATTEMPT")
        for name, known in self._drawn.truth.items():
            if name not in self._says and not feedback:
                self._says[name] = self._erring(known.words)
            elif feedback and self._says[name] != known.words:
                if get_base_field_name(name) in named and self._dice.random() < MENDS:
                    self._says[name] = known.words
            elif feedback and self._dice.random() < SLIPS:
                self._says[name] = self._erring(known.words, certainly=True)
        said = {name: words for name, words in self._says.items() if words != ""}
        if not feedback and self._dice.random() < INVENTS:
            said |= {"msiStatus": "MSI-High"} if self._drawn.kind == "genomics" else {"grade": "Grade 3"}
        elif feedback and "grade" not in self._drawn.truth:
            said.pop("grade", None)
        return claims(said)

    def _erring(self, words: str, *, certainly: bool = False) -> str | None:
        ways = list(ERRS)
        way = self._dice.choices([*ways, ""], [*ERRS.values(), 0 if certainly else 1 - sum(ERRS.values())])[0]
        if way == "omits":
            return ""
        if way == "says not present":
            return None
        if way == "alters a digit":
            return "".join(str((int(sign) + 1) % 10) if sign.isdigit() else sign for sign in words)
        if way == "shortens":
            return words.split(" (", maxsplit=1)[0].split(",", maxsplit=1)[0]
        return words


# ------------------------------------------------------------------------------------------------- the ablation


class Case(NamedTuple):
    """A report, and what the loop made of it."""

    drawn: Drawn
    result: ReliabilityLoopResult
    first: Right
    final: Right


def measured(case: Case) -> tuple[Extraction, float]:
    """A report's extraction, and its seconds."""
    template = get_field_template(case.drawn.kind)
    return build_extraction(case.result, template, template.document_type, (1, 1)), case.result.processing_seconds


def looped(drawn: Drawn, loop: ReliabilityLoop) -> Case:
    result = asyncio.run(loop.execute(drawn.bundle, [1], get_field_template(drawn.kind)))
    return Case(
        drawn,
        result,
        right(drawn, result.history[0].attempt.fields),
        right(drawn, result.best_iteration.attempt.fields if result.best_iteration else {}),
    )


def embedded(drawn: Drawn) -> Case:
    return looped(drawn, ReliabilityLoop())


def imperfect(drawn: Drawn) -> Case:
    extractor = ClinicalExtractor(Imperfect(drawn, 0))
    return looped(drawn, ReliabilityLoop(extractor=extractor, evaluator=ExtractionEvaluator(EmbeddedModel())))


def interval(values: Sequence[float], bounds: tuple[float, float] = (0.0, 1.0)) -> str:
    numbers = np.asarray(values, dtype=float)
    told = estimate_by_bootstrap(
        lambda rows: float(numbers[rows].mean()), len(numbers), seed=0, repeats=REPEATS, value_range=bounds
    )
    return f"{told.value:.3f} [{told.low:.3f}, {told.high:.3f}]"


def share(hits: int, n: int) -> str:
    told = estimate_proportion(hits, n)
    return f"{hits}/{n} = {told.value or 0:.3f} [{told.low:.3f}, {told.high:.3f}]" if n else "0/0"


def rows(cases: Sequence[Case]) -> list[tuple[str, str, str, str]]:
    """What was measured, first attempt, final, and the difference."""
    n = len(cases)
    accepted = [case for case in cases if case.result.decision == "AUTO_ACCEPT"]
    return [
        (
            "values right, mean share",
            interval([case.first.share for case in cases]),
            interval([case.final.share for case in cases]),
            interval([case.final.share - case.first.share for case in cases], (-1.0, 1.0)),
        ),
        (
            "reports without any error",
            share(sum(case.first.whole for case in cases), n),
            share(sum(case.final.whole for case in cases), n),
            interval([float(case.final.whole) - case.first.whole for case in cases], (-1.0, 1.0)),
        ),
        (
            "wrong values, in all",
            str(sum(case.first.wrong for case in cases)),
            str(sum(case.final.wrong for case in cases)),
            "",
        ),
        (
            "required and important, none missed or wrong",
            share(sum(case.first.harmless for case in cases), n),
            share(sum(case.final.harmless for case in cases), n),
            interval([float(case.final.harmless) - case.first.harmless for case in cases], (-1.0, 1.0)),
        ),
        (
            "score, mean",
            f"{statistics.fmean(case.result.history[0].score.overall or 0 for case in cases):.3f}",
            f"{statistics.fmean(case.result.final_score or 0 for case in cases):.3f}",
            "",
        ),
        (
            "final is worse than first",
            "",
            share(sum(case.final.share < case.first.share for case in cases), n),
            "",
        ),
        ("accepted", "", share(len(accepted), n), ""),
        (
            "accepted with an error in these",
            "",
            share(sum(not case.final.harmless for case in accepted), len(accepted)),
            "",
        ),
        ("accepted with a wrong value", "", share(sum(case.final.wrong > 0 for case in accepted), len(accepted)), ""),
        (
            "accepted with an optional value missed",
            "",
            share(sum(case.final.harmless and not case.final.whole for case in accepted), len(accepted)),
            "",
        ),
    ]


def ablation(title: str, cases: Sequence[Case]) -> Table:
    table = Table("", "first attempt", "best of three", "gain", title=f"{title}, n = {len(cases)}, 95 % intervals")
    for row in rows(cases):
        table.add_row(*row)
    for metric in LOOP_METRICS:
        values = [value for case in cases for value in metric.measure(*measured(case))]
        alert_count = sum(map(metric.is_alert, values))
        if values:
            beyond = f"{alert_count} of {len(values)} beyond" if alert_count else ""
            table.add_row(metric.name, "", f"{statistics.fmean(values):.3f}", beyond)
    return table


# ------------------------------------------------------------------------------------------------- time


class Instant:
    """Says at once what it was given to say, so that what is left is the loop's own time."""

    name = "instant"

    def __init__(self, said: ClaimedFields) -> None:
        self._said = said

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        if isinstance(question, ClinicalQuestion):
            question.prompt()
            return Answer(question, self._said, usage=Usage(calls=1))
        question.prompt()
        return Answer(question, question.answer_type(field_scores=()), usage=Usage(calls=1))  # type: ignore[call-arg]


async def overhead(bundle: DocumentBundle, kind: str) -> float:
    """Milliseconds of CPU of a loop of three attempts over all pages with a model that takes no time."""
    pages = range(1, bundle.total_pages + 1)
    said = ClinicalQuestion(bundle, pages, get_field_template(kind)).offline()
    config = build_loop_config(quality_threshold=1.0, min_improvement=-1.0, max_iterations=3)
    short = said.model_copy(update={"fields": said.fields[:-1]})
    loop = ReliabilityLoop(config, Instant(short))
    began = time.process_time()
    result = await loop.execute(bundle, pages, get_field_template(kind))
    took = 1000 * (time.process_time() - began)
    return took if result.iteration_count == 3 else math.nan


async def overheads(each: int) -> list[float]:
    """One of every report in which the loop made three attempts; nothing of it was seen before."""
    await overhead(draw("pathology", FIRST - 1).bundle, "pathology")  # patterns are compiled once in a process
    told = [await overhead(drawn.bundle, drawn.kind) for drawn in corpus(each, FIRST + EACH)]
    return sorted(one for one in told if not math.isnan(one))


LONG = 12
"""Pages of a long report."""


async def long_overheads(each: int) -> list[float]:
    """As ``overheads``, of reports of ``LONG`` pages, each of which is a whole one-page report."""
    await overhead(draw("pathology", FIRST - 1).bundle, "pathology")
    told = []
    for kind in KINDS:
        for number in range(each):
            first = FIRST + 2 * EACH + LONG * number
            pages = [draw(kind, first + at).bundle.page(1).text for at in range(LONG)]
            told.append(await overhead(document(*pages), kind))
    return sorted(one for one in told if not math.isnan(one))


def timed(took: Sequence[float]) -> str:
    return f"{statistics.median(took):.1f} ms, {took[int(0.95 * len(took))]:.1f} ms, {took[-1]:.1f} ms"


def reliability(each: int = EACH) -> list[Table]:
    drawn = corpus(each, FIRST)
    measures: list[tuple[str, Callable[[Drawn], Case]]] = [
        ("embedded model", embedded),
        ("scripted imperfect model", imperfect),
    ]
    tables = []
    for name, measure in measures:
        cases = [measure(one) for one in drawn]
        tables.append(ablation(name, cases))
        if measure is embedded:
            made_for = [case for case in cases if case.drawn.layout not in LETTERS]
            tables.append(ablation("embedded model, without letters", made_for))
    took, long = asyncio.run(overheads(each)), asyncio.run(long_overheads(max(each // 6, 1)))
    table = Table("", "", title="the loop's own time, three attempts, instant model")
    table.add_row("reports of one page, of twelve", f"{len(took)}, {len(long)}")
    table.add_row("CPU of one page: median, 95th percentile, most", timed(took))
    table.add_row("CPU of twelve pages: median, 95th percentile, most", timed(long))
    return [*tables, table]


if __name__ == "__main__":
    console = Console(width=140)
    console.print(f"{EACH} reports of each kind: {', '.join(KINDS)}")
    for one in reliability():
        console.print(one)
