"""How good everything is, on one page: sections of tables and figures, written as HTML or JSON.

Nothing is computed here: each section asks the module that it is named after, and says in words what its figures mean
and on what they rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader
from matplotlib.figure import Figure

from evalkit.errors import UsageError
from evalkit.evaluation import (
    acceptance,
    attention,
    doctypes,
    estimates,
    experts,
    plots,
    presence,
    production,
    segmentation,
    verifiers,
)
from evalkit.evaluation.export import replacing, write_private
from evalkit.evaluation.intervals import Estimate
from evalkit.evaluation.study import Standing, Study
from evalkit.evaluation.template_reviews import read_cycles, template_reviews
from evalkit.store import OutputFolder

SIMULATED = "Simulated: {count} of {of} reviews were made by a program. Nothing here says how good anything is."

_CLASS_COLUMNS = ("type", "true_reviewed", "said", "recall", "precision", "wrong")
_DIFFERENCE_COLUMNS = (
    *("doc_id", "production", "agent", "truth", "right", "production_confidence", "agent_confidence", "decision"),
)
_RULE_COLUMNS = (
    *("code", "origin", "raised", "confirmed", "dismissed", "precision", "alone", "validated", "corrected", "minutes"),
    *("verdict", "simulated"),
)
_RULE_NOTE = (
    "Alone: documents that nothing else would have escalated; validated and corrected: what became of them; minutes: "
    "the experts' active time on them."
)
_STOPPED_COLUMNS = ("level", "who", "errors", "stopped", "share", "documents")
_STOPPED_NOTE = (
    "Segments: all of them exactly, as given; merged: with neighbours of one type as one. The share is of all errors, those "
    "that nobody saw estimated from what was drawn, with its 95 % interval; errors and stopped count those that were seen."
)
#: What is said in place of a section that is left out of a report.
_MISSING = {
    "types": "No expert has said yet which type a document is, and no labels were given.",
    "segments": "No expert has vouched yet for the segments of a document, and no labels were given.",
    "production": "No document has a label of the production classifier: give it with `--production`.",
    "experts": "Nobody has reviewed a case yet.",
}
_SHOWN = 8
"""So many documents are named in a cell; the others are counted."""


@dataclass(frozen=True)
class Table:
    """Rows under a caption."""

    caption: str
    frame: pd.DataFrame
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A figure under a caption."""

    caption: str
    figure: Figure


@dataclass(frozen=True)
class Section:
    """One question and what answers it."""

    key: str
    """What a notebook calls it: ``report["types"]``."""
    title: str
    about: str
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()

    def _repr_html_(self) -> str:
        """As a notebook's cell shows it."""
        return str(_templates().get_template("section.html.j2").module.alone(self))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Report:
    """All sections."""

    made_at: str
    """ISO 8601, UTC."""
    output: str
    """The folder that was read."""
    warnings: tuple[str, ...]
    """What a reader must know before any figure."""
    sections: tuple[Section, ...] = ()

    def __getitem__(self, key: str) -> Section:
        """One section; one that no document belongs to yet says so. KeyError naming those that there are."""
        for one in self.sections:
            if one.key == key:
                return one
        if key in _MISSING:
            return Section(key, "Nothing to show yet", _MISSING[key])
        raise KeyError(f"{key!r} is none of {', '.join((*(one.key for one in self.sections), *_MISSING))}")


def build(study: Study, *, made_at: str, rate: float = 0.05) -> Report:
    """The report of a study; ``rate`` is the share of wrong acceptances that calibrated acceptance may leave, 0..1."""
    sections = (
        _processed(study),
        _headlines(study),
        _types(study),
        _segments(study),
        _presence(study),
        _production(study),
        _verifiers(study),
        _acceptance(study, rate),
        _experts(study),
        _cost(study),
        _templates_reviewed(study),
    )
    return Report(
        made_at, str(study.output), tuple(_warnings(study)), tuple(one for one in sections if one is not None)
    )


def _warnings(study: Study) -> Iterable[str]:
    if study.simulated:
        yield SIMULATED.format(count=study.simulated, of=len(study.answers))
    yield from (*study.problems, *study.remarks)


# ------------------------------------------------------------------------------------------------------ sections


def _processed(study: Study) -> Section:
    words: dict[Standing, str] = {
        "reviewed": "an expert decided, or labels were given",
        "undeterminable": "an expert looked, and nobody can tell",
        "pending": "in the queue",
        "unseen": "accepted, and not drawn for anybody to look at",
        "unreadable": "could not be read",
    }
    counts = study.counts()
    standing = pd.DataFrame(
        [(name, counts[name], what) for name, what in words.items()], columns=["standing", "documents", ""]
    )
    decided = Counter((one.decision or "none", one.decision_reason or one.error_code or "") for one in study.documents)
    decisions = pd.DataFrame(
        [(*name, count) for name, count in decided.most_common()], columns=["decision", "because", "documents"]
    )
    return Section(
        "processed",
        "What was processed",
        f"{len(study.documents)} documents, the unreadable ones among them: they stay in the denominator of every "
        "figure about all documents.",
        (Table("Where they stand", standing), Table("What was decided", decisions)),
    )


def _headlines(study: Study) -> Section:
    rows = [
        {
            "figure": one.name,
            "of": f"{one.about}: {one.population}",
            "estimate": one.estimate,
            "rests on": one.reviewed,
            "reviewed only": one.reviewed_only,
            "not right": one.wrong,
        }
        for one in estimates.headlines(study)
    ]
    return Section(
        "headlines",
        "How good is it?",
        "Each estimate is about all of these documents, and no others: escalated ones are all looked at, and of accepted "
        "ones those that chance drew count for as many as they stand for; drawn ones whose turn has not come are taken for "
        "like those of the same draw that were answered, although the queue shows the ones with more remarks first and then "
        "goes by name: until all are answered, the estimate may be off. What is escalated and waits, is disputed, put off, unreadable, cannot be told or was accepted "
        "without a chance of being drawn counts as not right in the estimate and as right in the upper end of its 95 % interval. Where all were looked at, nothing is "
        "left to estimate, and the interval is a point. “Reviewed only” is the plain mean of what experts happened to see: "
        "hard cases for the most part, and no statement about the pipeline.",
        (Table("Estimates with 95 % intervals", pd.DataFrame(rows)),),
    )


def _types(study: Study) -> Section | None:
    known = doctypes.doctypes(study)
    if not known.documents:
        return None
    overall = [
        ("accuracy", known.accuracy, known.accuracy_reviewed),
        ("macro F1", known.macro_f1, known.macro_f1_reviewed),
    ]
    rows = [(one.type, one.documents, one.precision, one.recall, one.f1) for one in known.by_type]
    return Section(
        "types",
        "Types of documents",
        f"{known.documents} documents whose type an expert vouched for; a document drawn with probability p counts 1 / p "
        "times. “Cannot tell” counts as wrong. Those that nobody looked at yet are not in it.",
        (
            Table(
                "Together, 95 % intervals (bootstrap over documents)",
                pd.DataFrame(overall, columns=["measure", "estimate", "reviewed only"]),
            ),
            Table("By type", pd.DataFrame(rows, columns=["type", "reviewed", "precision", "recall", "f1"])),
            Table(
                "True type (rows) and what the pipeline said (columns), reviewed documents",
                known.confusion.reset_index(),
            ),
        ),
        (Picture("True type and what was said, reviewed documents", plots.confusion(known.confusion)),),
    )


def _segments(study: Study) -> Section | None:
    if not segmentation.cuts(study):
        return None
    rows = [
        {"measure": one.name, "as given": one.as_given, "neighbours of one type joined": one.merged}
        for one in segmentation.measured(study)
    ]
    moved = pd.DataFrame(list(segmentation.pages_to_move(study).items()), columns=["doc_id", "pages"])
    return Section(
        "segments",
        "Segments and pages",
        f"{len(segmentation.cuts(study))} documents whose segments an expert vouched for, weighted. A segment is one "
        "source document; in the second reading neighbours of the same type are one.",
        (
            Table("Measures with 95 % intervals (bootstrap over documents)", pd.DataFrame(rows)),
            Table("Pages that a person must move", moved),
        ),
    )


def _presence(study: Study) -> Section:
    known = presence.presence(study)
    grounded = [one.grounded_ratio for one in study.documents if one.grounded_ratio is not None]
    scores = [one.evidence_quality for one in study.documents if one.evidence_quality is not None]
    evidence = pd.DataFrame(
        [
            ("quotes found on their page, mean share", len(grounded), fmean(grounded) if grounded else math.nan),
            ("documents with every quote found", len(grounded), _share(one == 1 for one in grounded)),
            ("evidence quality score, mean", len(scores), fmean(scores) if scores else math.nan),
        ],
        columns=["measure", "documents", "value"],
    )
    rows = [(one.type, one.documents, one.precision, one.recall, one.f1, one.level_agreement) for one in known.by_type]
    measured = (
        Table(
            "Mixture, 95 % interval (bootstrap over documents)",
            pd.DataFrame(
                [("mixture error, mean", known.mixture_error, known.mixture_error_reviewed)],
                columns=["measure", "estimate", "reviewed only"],
            ),
            "The share of a document that was put under the wrong type.",
        ),
        Table(
            "Presence by type, 95 % intervals (bootstrap over documents)",
            pd.DataFrame(rows, columns=["type", "reviewed", "precision", "recall", "f1", "same level"]),
            "Present is all but NO_EVIDENCE; reviewed: documents that it truly is in.",
        ),
        Table("Presence by type, reviewed only: unweighted", known.by_type_reviewed),
    )
    return Section(
        "evidence",
        "Evidence, presence, mixture",
        "What stands behind the types. "
        + (
            f"Presence and mixture are measured on the {known.documents} documents whose mixture an expert opened and vouched "
            "for; a document drawn with probability p counts 1 / p times. Those that nobody looked at yet are not in it."
            if known.documents
            else "Presence and mixture are not measured: no expert has opened and vouched for a document's mixture yet."
        ),
        (
            Table("Evidence", evidence, "Computed from the documents' own text; no expert is needed."),
            *(measured if known.documents else ()),
        ),
    )


def _share(flags: Iterable[bool]) -> float:
    values = list(flags)
    return sum(values) / len(values) if values else math.nan


def _joined(frame: pd.DataFrame, value: str, low: str, high: str) -> pd.DataFrame:
    """The frame with value and limits in one column of estimates."""
    cells = [
        Estimate(None if pd.isna(known) else float(known), least, most, math.nan, "")
        for known, least, most in zip(frame[value], frame[low], frame[high], strict=True)
    ]
    return frame.assign(**{value: pd.Series(cells, index=frame.index, dtype=object)}).drop(columns=[low, high])


def _production(study: Study) -> Section | None:
    if not any(one.production for one in study.documents):
        return None
    differing = production.differences(study)
    classes = production.worst_classes(study)
    for share in ("recall", "precision"):
        classes = _joined(classes, share, f"{share}_low", f"{share}_high")
    return Section(
        "production",
        "The production classifier",
        f"{sum(one.production is not None for one in study.documents)} documents have its label; in {len(differing)} it "
        "says another type than the pipeline.",
        (
            Table("By true type, estimated over all its documents", classes[list(_CLASS_COLUMNS)]),
            Table("Where they differ", differing[list(_DIFFERENCE_COLUMNS)]),
        ),
    )


def _verifiers(study: Study) -> Section:
    rules = _joined(verifiers.by_rule(study), "precision", "low", "high")
    stopped = _joined(verifiers.stopped(study), "share", "low", "high")
    stopped = stopped[(stopped["stopped"] > 0) | (stopped["kind"] != "code")]
    counted: dict[str, Counter[str]] = {}
    for one in study.documents:
        for issue in one.findings:
            counted.setdefault(issue.agent, Counter())[issue.severity] += 1
    picture = Picture(
        "Issues by agent and severity", plots.stacked(dict(sorted(counted.items())), plots.SEVERITY, "issues")
    )
    return Section(
        "verifiers",
        "The verifiers",
        "What each rule raised, what experts said of it, and what it alone sent to an expert; then which errors of the "
        "classifier were stopped, by whom, and which nobody raised.",
        (
            Table("By rule", rules[list(_RULE_COLUMNS)], _RULE_NOTE),
            Table("The classifier's errors: who stopped them", stopped[list(_STOPPED_COLUMNS)], _STOPPED_NOTE),
            Table("Corrected by experts and raised by nobody", verifiers.missed(study)),
        ),
        (picture,) if counted else (),
    )


def _acceptance(study: Study, rate: float) -> Section:
    known = acceptance.calibration(study)
    offered = acceptance.offer(study, rate=rate)
    sentence = _offered(offered)
    pictures = (
        (
            Picture("Can confidence be believed?", plots.reliability(known.reliability)),
            Picture("Risk against coverage", plots.risk_coverage(known.risk_coverage, rate)),
        )
        if known.documents
        else ()
    )
    summary = pd.DataFrame(
        [
            ("documents with truth and confidence", known.documents),
            ("expected calibration error", known.calibration_error),
            ("Brier score", known.brier),
            ("blind audits of one design", offered.audits),
            ("audits set aside to make their probabilities equal", offered.set_aside),
        ],
        columns=["measure", "value"],
    )
    return Section(
        "acceptance",
        "Which acceptances can be trusted?",
        f"{sentence} The arbiter's table is not changed by this.",
        (Table("Calibration", summary), Table("Reliability", known.reliability)),
        pictures,
    )


def _offered(offered: acceptance.Offer) -> str:
    """What blind audits show, in words."""
    proof = offered.certificate
    if offered.otherwise_wrong:
        told = (
            f"Nothing can be offered: {len(offered.otherwise_wrong)} accepted documents that were looked at for another "
            f"reason than an audit have a wrong type ({cell(offered.otherwise_wrong)})."
        )
    elif offered.never_drawn:
        told = (
            f"Nothing can be offered: {offered.never_drawn} accepted documents had no chance of being drawn, so that no "
            "audit speaks for them (`evalkit sample` draws from all that nobody has seen)."
        )
    elif proof.threshold is None:
        told = (
            f"{proof.more_audits} more blind audits without an error are needed before any threshold can be offered: "
            f"{offered.audits} are done, {proof.wrong} of them wrong, which shows at most {proof.bound:.1%} wrong."
        )
    else:
        told = (
            f"From a confidence of {proof.threshold:.2f} upwards, at most {offered.rate:.0%} of what the arbiter accepts has "
            f"a wrong type, with {offered.level:.0%} certainty: {proof.n} blind audits, {proof.wrong} wrong, bound "
            f"{proof.bound:.2%}; that is {proof.coverage:.0%} of the accepted documents. It says nothing of their segments, "
            "and holds for one look: whoever asks after every audit until it passes will be lucky too often."
        )
    if offered.cannot_tell:
        told += f" {offered.cannot_tell} audits that cannot be told, are disputed or put off count as wrong."
    if offered.simulated:
        told += f" {offered.simulated} of the audits are simulated: this proves nothing."
    return told


def _experts(study: Study) -> Section | None:
    people = experts.by_reviewer(study)
    if people.empty and not study.seeded:
        return None
    agreed = experts.agreement(study)
    rows = [
        ("pairs", len(agreed.pairs)),
        ("same type", agreed.same_type),
        ("same segments", agreed.same_segments),
        ("boundaries, F1", agreed.boundaries),
        ("the agent's type, said by the first, who saw it", agreed.led),
        ("the agent's type, said by the second, who did not", agreed.unled),
        ("Cohen's kappa, types", agreed.kappa),
        ("Krippendorff's alpha, types", agreed.alpha),
    ]
    return Section(
        "experts",
        "The experts",
        "Who says the agent's type where it is on screen, while a colleague who does not see it says another, is led by it: "
        "compare within the pairs. By reviewer, cases that are shown and hidden are not alike.",
        (
            Table("By reviewer", people),
            Table("Second opinions, each blind to the first", pd.DataFrame(rows, columns=["measure", "value"])),
            Table("The pairs", agreed.pairs),
            Table("Validated, and found wrong by others", experts.validated_wrongly(study)),
            *_attention(study),
        ),
    )


def _attention(study: Study) -> Sequence[Table]:
    if not study.seeded:
        return ()
    return (
        Table(
            "Faults planted on purpose: how many were noticed (exact 95 % intervals)",
            attention.attention(study.seeded),
            "Noticed: the planted part was corrected; validated: the wrong answer was, as it was shown. What was said in "
            "these cases counts nowhere else.",
        ),
        Table("The cases with a planted fault", attention.listed(study.seeded)),
    )


def _cost(study: Study) -> Section:
    seconds = [one.seconds for one in study.documents if one.seconds is not None]
    priced = [one.cost_usd for one in study.documents if one.cost_usd is not None]
    active = [one.seconds for document in study.documents for one in document.answers if one.seconds is not None]
    rows: list[tuple[str, Any]] = [
        ("calls of models", sum(one.calls for one in study.documents)),
        ("tokens", sum(one.tokens for one in study.documents)),
        ("US dollars", f"{sum(priced, Decimal(0)):.4f}"),
        ("documents without a known price", len(study.documents) - len(priced)),
        ("seconds a document, median", median(seconds) if seconds else math.nan),
        ("experts' active minutes, together", sum(active) / 60),
        ("experts' active seconds a case, median", median(active) if active else math.nan),
    ]
    pictures = (
        [Picture("Processing time", plots.histogram(seconds, "seconds a document, waiting included"))]
        if seconds
        else []
    )
    if active:
        pictures.append(Picture("Experts' time", plots.histogram(active, "active seconds a case", "cases")))
    if any(priced):
        pictures.append(Picture("Cost", plots.histogram([float(one) for one in priced], "US dollars a document")))
    return Section(
        "cost",
        "Time and cost",
        "",
        (Table("Together", pd.DataFrame(rows, columns=["measure", "value"])),),
        tuple(pictures),
    )


# ------------------------------------------------------------------------------------------------------- writing


def _templates_reviewed(study: Study) -> Section | None:
    cycles = read_cycles(OutputFolder(study.output))
    if not cycles:
        return None
    known = template_reviews(cycles)
    rows = [
        ("approved on the first attempt", known.first_pass_approval, "reviews"),
        ("approved in the end", known.convergence, "reviews"),
        ("sent to arbitration", known.arbitration, "attempts that both reviewers reported on"),
    ]
    return Section(
        "templates",
        "Templates of bank statements",
        f"{known.reviews} reviews of templates in {known.attempts} attempts; {known.input_tokens:,} tokens in, "
        f"{known.output_tokens:,} out, "
        + ("price not known." if known.cost_usd is None else f"{known.cost_usd:.4f} US dollars."),
        (
            Table("Shares with 95 % intervals", pd.DataFrame(rows, columns=["measure", "share", "of"])),
            Table(
                "Issues that only one reviewer reported, where the two disagreed",
                pd.DataFrame(list(known.disagreement_categories.items()), columns=["category", "issues"]),
            ),
            Table(
                "Why a person decides",
                pd.DataFrame(list(known.escalations.items()), columns=["reason", "reviews"]),
            ),
        ),
    )


def write_html(report: Report, to: Path | str) -> None:
    """One file that needs nothing else and can be printed; mode 0600. UsageError where it cannot be written."""
    text = _templates().get_template("report.html.j2").render(report=report, version=version("evalkit"))
    try:
        with replacing(Path(to)) as temporary:
            write_private(temporary, text)  # names of files may be those of patients
    except OSError as error:
        raise UsageError(
            f"{to} cannot be written ({error.strerror})", code="REPORT", remedy="Name another file with --to."
        ) from error


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("evalkit.evaluation"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(cell=cell, svg=plots.svg, is_number=_is_number)
    return environment


def to_json(report: Report) -> dict[str, Any]:
    """The report's tables as plain JSON values; what is not defined is null."""
    return {
        "made_at": report.made_at,
        "output": report.output,
        "warnings": list(report.warnings),
        "sections": [
            {
                "title": one.title,
                "about": one.about,
                "tables": [
                    {"caption": table.caption, "rows": [_plain(row) for row in table.frame.to_dict("records")]}
                    for table in one.tables
                ],
            }
            for one in report.sections
        ],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):  # numpy's own numbers
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def cell(value: Any) -> str:
    """A value as a reader sees it.

    >>> cell(Estimate(0.9, 0.555, 0.9975, 10, "exact")), cell(0.25), cell(("a", "b")), cell(None), cell(3.0)
    ('90 % (56–100 %)', '0.25', 'a, b', '–', '3')
    """
    if isinstance(value, Estimate):
        shown = f"{100 * value.low:.0f}–{100 * value.high:.0f} %"
        return f"not known ({shown})" if value.value is None else f"{100 * value.value:.0f} % ({shown})"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        left_out = len(value) - _SHOWN
        return (", ".join(map(str, value[:_SHOWN])) or "–") + (f" and {left_out} more" if left_out > 0 else "")
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Estimate | Decimal) and not isinstance(value, bool)
