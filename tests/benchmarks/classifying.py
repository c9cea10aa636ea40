"""How good the embedded model is on documents that it did not learn from, beside five regular expressions.

    PYTHONPATH=tests .venv/bin/python tests/benchmarks/classifying.py [--plot FILE] [--learn] [--wrong N]

Texts of ``../shared/data`` and invented ones (``labelled_texts``), whole and as they might have been (a part, misread, with a report quoted in
them), judged by models that had not seen their group, and by models that had not seen anything of their source, nor of
that of a quoted report. Temperatures, thresholds and the weights of joins are each time those of other folds, sources or
records. The blank forms of hospitals are never learned from. Packets are drawn from the same texts (``packets``), each of texts that
its model had not seen; the real PDFs by models without their records. ``--learn`` writes ``weights.json`` anew.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from benchmarks import act_learning
from benchmarks.join_weights import PageChain, fit_join_weights
from benchmarks.labelled_texts import NOT_LEARNED, collect_classifier_texts, examples
from benchmarks.measuring import DATA, ROOT, bundles_of
from benchmarks.packets import TITLED, Packet, packets
from classification.keyword_vote import keyword_vote
from rich.console import Console
from rich.table import Table

from evalkit.classification.offline import page_segmentation
from evalkit.classification.offline.acts import ActWeights
from evalkit.classification.offline.model_weights import WEIGHTS_FILE, EmbeddedModelWeights, parse_weights_json
from evalkit.classification.offline.type_scoring import ScoredPage, read_page_for_scoring
from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.classification.schema import ClassificationOutput, DocumentType
from evalkit.classification.training import (
    fitting,
    labelled_texts,
)
from evalkit.classification.training.fitting import FittedWeights, ProbabilityCalibration, TrainingSet
from evalkit.classification.training.labelled_texts import LabelledText
from evalkit.classification.v5_arbiter import Decision
from evalkit.documents import DocumentBundle
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.evaluation import metrics, plots
from evalkit.evaluation.confidence_calibration import compute_expected_calibration_error, tabulate_reliability
from evalkit.evaluation.intervals import estimate_by_bootstrap, estimate_proportion
from evalkit.issue import IssueSeverity
from evalkit.pipeline.supplied_labels import TypedPageRange

UNSEEN = ROOT / "tests" / "classification" / "unseen.toml"
WEIGHTS = ROOT / "evalkit" / "classification" / "offline" / WEIGHTS_FILE
PACKETS, BINS, LEVEL = 40, 5, 0.95
"""Packets a fold; bins of equal mass; of the bounds."""

KINDS = labelled_texts.DOCUMENT_TYPES
Flags = npt.NDArray[np.bool_]


class Chances(NamedTuple):
    """What is believed of every variant, by temperatures and thresholds from other folds or sources."""

    of_types: fitting.FloatArray
    least: fitting.FloatArray
    temperatures: tuple[float, float]
    """The lowest and the highest."""

    @property
    def said(self) -> list[str | None]:
        """The answers: a type, or None for "cannot tell"."""
        return [
            KINDS[row.argmax()].value if row.max() >= least else None
            for row, least in zip(self.of_types, self.least, strict=True)
        ]


@dataclass(frozen=True)
class Judged:
    """Every variant, by models that had not seen its group, and its source."""

    some: TrainingSet
    by_group: fitting.FloatArray
    by_source: fitting.FloatArray
    of_fold: Sequence[fitting.SourceParts]
    of_source: Sequence[fitting.SourceParts]
    """The folds, and the sources, of each variant's words."""
    fits: Mapping[int, FittedWeights]
    folds: Mapping[str, int | None]
    act_judgements: fitting.ActJudgements
    """By acts learned without the variant's source."""

    @cached_property
    def whole(self) -> Flags:
        return np.array([one.name == "whole" for one in self.some.variants])

    @property
    def sources(self) -> list[str]:
        return [one.original.source for one in self.some.variants]

    @cached_property
    def believed(self) -> ProbabilityCalibration:
        """Temperature and threshold of the shipped model, from texts of sources that had not been seen."""
        return fitting.calibrate_probabilities(self.by_source, self.some, self.act_judgements)

    def believed_without(
        self, parts: Sequence[fitting.SourceParts], held_out: fitting.SourceParts
    ) -> ProbabilityCalibration:
        """The same, from nothing of the parts that are held out: what is reported of them was not fitted to them."""
        return fitting.calibrate_probabilities(
            self.by_source, self.some, self.act_judgements, fitting.mark_independent_rows(parts, held_out)
        )

    @cached_property
    def chances_by_group(self) -> Chances:
        return self._chances(self.by_group, self.of_fold)

    @cached_property
    def chances_by_source(self) -> Chances:
        return self._chances(self.by_source, self.of_source)

    def _chances(self, sums: fitting.FloatArray, parts: Sequence[fitting.SourceParts]) -> Chances:
        found, least = np.zeros_like(sums), np.zeros(len(sums))
        temperatures = []
        for held_out in dict.fromkeys(parts):
            believed = self.believed_without(parts, held_out)
            those = np.array([place for place, one in enumerate(parts) if one == held_out])
            found[those] = fitting.compute_probabilities(sums[those], believed.temperature)
            least[those] = believed.min_probability
            temperatures.append(believed.temperature)
        return Chances(found, least, (min(temperatures), max(temperatures)))

    def known(self, fold: int, joins: Mapping[str, float]) -> EmbeddedModelWeights:
        believed = self.believed_without(self.of_fold, frozenset({fold}))
        return parse_weights_json(fitting.build_weights_json(self.fits[fold], believed, joins))


def judged(
    some: Sequence[LabelledText],
    select_act_weights: Callable[[LabelledText], ActWeights],
    folds: Mapping[str, int | None] | None = None,
) -> Judged:
    """``folds``: group → fold, if they are not to be drawn; those of None are always learned from."""
    folds = folds or fitting.assign_folds_to_groups(some)
    found = fitting.build_training_set(labelled_texts.create_text_variants(some, folds))
    allowed = np.array([one.original.source for one in found.variants]) != NOT_LEARNED
    of_fold = fitting.list_source_parts_by_variant(found, lambda one: folds[one.group])
    of_source = fitting.list_source_parts_by_variant(found, lambda one: one.source)
    by_group, fits = fitting.predict_out_of_fold_sums(found, of_fold, allowed)
    by_source, _ = fitting.predict_out_of_fold_sums(found, of_source, allowed)
    by_fold = {fold: fits[frozenset({fold})] for fold in sorted({one for one in folds.values() if one is not None})}
    acts = fitting.judge_acts(found, select_act_weights)
    return Judged(found, by_group, by_source, of_fold, of_source, by_fold, folds, acts)


# ---------------------------------------------------------------------------------------------------------------- texts


def lexicon_alone(some: TrainingSet) -> list[str | None]:
    """What the lexicon's scores alone would say, as the first version did: enough of one type, ahead of the next."""
    ranked = [
        sorted(zip(np.expm1(row[:, 0]).tolist(), KINDS, strict=True), reverse=True)[:2] for row in some.lexicon_features
    ]
    return [first[1].value if first[0] >= max(3.0, 1.15 * next_[0]) else None for first, next_ in ranked]


def text_table(judged_: Judged) -> Table:
    some = judged_.some
    truth = [KINDS[one].value for one in some.true_types]
    answers: dict[str, Sequence[str | None]] = {
        "five expressions": [keyword_vote(one.text).value for one in some.variants],
        "lexicon alone": lexicon_alone(some),
        "its group not seen": judged_.chances_by_group.said,
        "its source not seen": judged_.chances_by_source.said,
    }
    table = Table("documents", "n", *answers, title="dominant type: right (wrong)")

    def row(name: str, chosen: Flags) -> None:
        places = np.flatnonzero(chosen)
        cells = []
        for column in answers.values():
            right = sum(column[at] == truth[at] for at in places)
            wrong = sum(column[at] not in (None, truth[at]) for at in places)
            cells.append(f"{right} = {right / len(places):.1%} ({wrong})")
        table.add_row(name, str(len(places)), *cells)

    sources = np.array(judged_.sources)
    for source in dict.fromkeys(judged_.sources):
        row(source, judged_.whole & (sources == source))
    table.add_section()
    for kind in KINDS:
        row(kind.value, judged_.whole & (some.true_types == KINDS.index(kind)))
    table.add_section()
    row("all", judged_.whole)
    each = [np.flatnonzero(judged_.whole & (sources == source)) for source in dict.fromkeys(judged_.sources)]
    macro = [
        f"{np.mean([np.mean([column[at] == truth[at] for at in places]) for places in each]):.1%}"
        for column in answers.values()
    ]
    table.add_row("  mean of sources", "", *macro)
    f1 = [
        f"{metrics.compute_macro_f1([truth[at] for at in places], [column[at] for at in places]):.3f}"
        for column in answers.values()
        for places in [np.flatnonzero(judged_.whole)]
    ]
    table.add_row("  macro F1", "", *f1)
    table.add_section()
    names = np.array([one.name for one in some.variants])
    for name in dict.fromkeys(one.name for one in some.variants):
        if name != "whole":
            row(name, names == name)
    return table


def unseen_line() -> str:
    """Of the documents that were written when everything was fixed: what the shipped model makes of them."""
    some = labelled_texts.read_labelled_texts([UNSEEN])
    said_ = [spans(classify_by_embedded_model(as_bundle(one.text, one.id))) for one in some]
    types = [answer[0][2] for answer in said_]
    right = sum(kind == one.document_type for kind, one in zip(types, some, strict=True))
    wrong = sum(kind not in {None, one.document_type.value} for kind, one in zip(types, some, strict=True))
    votes = sum(keyword_vote(one.text) is one.document_type for one in some)
    return (
        f"unseen.toml: {right} of {len(some)} right, {wrong} wrong, the others cannot be told; five expressions {votes}"
    )


def confusion_table(judged_: Judged) -> Table:
    places = np.flatnonzero(judged_.whole)
    answers = judged_.chances_by_source.said
    counts = metrics.tabulate_confusion(
        [KINDS[judged_.some.true_types[at]].value for at in places],
        [answers[at] for at in places],
        [kind.value for kind in KINDS],
    )
    table = Table("true \\ said", *map(str, counts.columns), title="confusion, source not seen")
    for name, line in counts.iterrows():
        table.add_row(str(name), *(str(n) if n else "" for n in line))
    return table


def confidence_table(judged_: Judged, plot: Path | None) -> Table:
    """How far confidence can be believed; the plot is of all variants, their sources not seen."""
    table = Table(
        "confidence", "n", f"ECE, {BINS} bins of equal mass", "95 %", "temperature", title="honest confidence"
    )
    some = judged_.some
    groups = np.array([one.original.group for one in some.variants])
    for name, believed, chosen in (
        ("whole texts, group not seen", judged_.chances_by_group, judged_.whole),
        ("whole texts, source not seen", judged_.chances_by_source, judged_.whole),
        ("all variants, source not seen", judged_.chances_by_source, np.ones(len(groups), dtype=bool)),
    ):
        chances = believed.of_types[chosen]
        sure, right = chances.max(axis=1), chances.argmax(axis=1) == some.true_types[chosen]

        members = [np.flatnonzero(groups[chosen] == group) for group in np.unique(groups[chosen])]

        def error(
            drawn: npt.NDArray[np.intp],
            sure: fitting.FloatArray = sure,
            right: Flags = right,
            members: list[npt.NDArray[np.intp]] = members,
        ) -> float:
            rows = np.concatenate([members[number] for number in drawn])
            return compute_expected_calibration_error(
                sure[rows].tolist(), right[rows].tolist(), bin_count=BINS, is_equal_mass=True
            )

        found = estimate_by_bootstrap(error, len(members), seed=20, repeats=400)
        table.add_row(
            name,
            str(len(sure)),
            f"{found.value:.3f}",
            f"{found.low:.3f} to {found.high:.3f}",
            "{:.2f} to {:.2f}".format(*believed.temperatures),
        )
        if plot and name.startswith("all"):
            figure = plots.plot_reliability(tabulate_reliability(sure.tolist(), right.tolist(), bin_count=2 * BINS))
            figure.savefig(plot, dpi=110, metadata={"Software": None})
    return table


# -------------------------------------------------------------------------------------------------------------- packets


def chain(packet: Packet, pages: Sequence[ScoredPage]) -> PageChain:
    telling = [
        index for index, page in enumerate(pages) if not page_segmentation.is_uninformative(page.lexicon_reading)
    ]
    signs = page_segmentation.collect_transition_signs([pages[index].lexicon_reading for index in telling], len(pages))
    own = [next(span for span in packet.truth if span[0] <= index + 1 <= span[1]) for index in telling]
    return PageChain(
        np.array([page_segmentation.compute_damped_type_log_ratios(pages[index]) for index in telling]),
        np.array([[one.get(name, 0.0) for name in page_segmentation.JOIN_SIGNS] for one in signs]).reshape(
            -1, len(page_segmentation.JOIN_SIGNS)
        ),
        np.array([after != before for before, after in itertools.pairwise(own)], dtype=bool),
        np.array([KINDS.index(DocumentType(kind)) for _, _, kind in own]),
    )


def spans(answer: ClassificationOutput) -> list[TypedPageRange]:
    return [
        (one.start_page, one.end_page, one.dominant_type.value if one.dominant_type else None)
        for one in answer.segments
    ]


class Cut(NamedTuple):
    """One document's segments, true and said."""

    truth: Sequence[TypedPageRange]
    said: Sequence[TypedPageRange]
    pages: int


def cut_row(name: str, some: Sequence[Cut]) -> list[str]:
    pages = sum(one.pages for one in some)
    right = sum(metrics.compute_page_accuracy(one.truth, one.said, one.pages) * one.pages for one in some)
    found = metrics.pool_detection_scores(metrics.score_boundaries(one.truth, one.said) for one in some)
    exact = sum(metrics.is_exact_segmentation(one.truth, one.said, compare_types=False) for one in some)
    typed = sum(metrics.is_exact_segmentation(one.truth, one.said, compare_types=True) for one in some)
    share = f"{exact} = {exact / len(some):.1%}"
    return [
        name,
        str(len(some)),
        str(pages),
        f"{right / pages:.1%}",
        f"{found.f1:.3f}",
        share,
        f"{typed / len(some):.1%}",
    ]


class Drawn(NamedTuple):
    """The packets of each fold, heard by the fold's model."""

    packets: Mapping[int, Sequence[Packet]]
    chains: Mapping[int, Sequence[PageChain]]

    def joins(self, without: int | None = None, without_records: AbstractSet[str] = frozenset()) -> dict[str, float]:
        """Learned from all packets, or from those of other folds, or those that have none of these records."""
        return fit_join_weights(
            [
                chain_
                for fold, some in self.packets.items()
                for packet, chain_ in zip(some, self.chains[fold], strict=True)
                if fold != without and without_records.isdisjoint(packet.records)
            ]
        )


def drawn(judged_: Judged, some: Sequence[LabelledText], count: int = PACKETS) -> Drawn:
    made = {
        fold: packets([one for one in some if judged_.folds[one.group] == fold], count, 100 + fold)
        for fold in judged_.fits
    }
    chains = {}
    for fold, those in made.items():
        known = judged_.known(fold, {"types": 0.0})
        chains[fold] = [
            chain(one, [read_page_for_scoring(page, model_weights=known) for page in one.bundle.pages]) for one in those
        ]
    return Drawn(made, chains)


def cut_of(packet: Packet, answer: ClassificationOutput) -> Cut:
    return Cut(packet.truth, spans(answer), packet.bundle.total_pages)


def packet_rows(drawn_: Drawn, known: Mapping[int, EmbeddedModelWeights]) -> dict[str, list[Cut]]:
    """All packets; and those in which the drawing inserted no title, which says of itself what follows."""
    cuts: dict[str, list[Cut]] = {"drawn, texts and packets not seen": [], "  of these without an inserted title": []}
    everything, untitled = cuts.values()
    for fold, those in drawn_.packets.items():
        for one in those:
            cut = cut_of(one, classify_by_embedded_model(one.bundle, model_weights=known[fold]))
            everything.append(cut)
            if not one.titled:
                untitled.append(cut)
    return cuts


class Real(NamedTuple):
    """A PDF of ``clinical_pdf`` and its classification by a model without its records."""

    label: Mapping[str, object]
    bundle: DocumentBundle
    answer: ClassificationOutput

    @property
    def cut(self) -> Cut:
        truth = [(one["start"], one["end"], one["type"]) for one in self.label["segments"]]  # type: ignore[attr-defined]
        return Cut(truth, spans(self.answer), self.bundle.total_pages)


def real(judged_: Judged, drawn_: Drawn) -> list[Real]:
    """By models, thresholds and joins in which nothing of the PDF's own records is, not even as a quotation."""
    labels = [json.loads(line) for line in (DATA / "labels.jsonl").read_text("utf-8").splitlines()]
    group_of = {one.original.id: one.original.group for one in judged_.some.variants}
    of_group = fitting.list_source_parts_by_variant(judged_.some, lambda one: one.group)
    records_of = {group: {name for name, its in group_of.items() if its == group} for group in group_of.values()}
    allowed = np.array(judged_.sources) != NOT_LEARNED
    found = resolve_ocr_engine()
    recogniser = PageOcrSettings(found, seconds_per_page=60) if found else None
    done = []
    for label in labels:
        if label["scan"] and recogniser is None:
            continue
        given = label.get("records") or [label["record"]]
        held_out = frozenset(group_of[record] for record in given if record in group_of)
        what = fitting.fit_weights(
            judged_.some, np.flatnonzero(fitting.mark_independent_rows(of_group, held_out) & allowed)
        )
        joins = drawn_.joins(without_records={name for group in held_out for name in records_of[group]})
        known = parse_weights_json(
            fitting.build_weights_json(what, judged_.believed_without(of_group, held_out), joins)
        )
        (bundle,) = bundles_of([DATA / label["file"]], recogniser)
        done.append(Real(label, bundle, classify_by_embedded_model(bundle, model_weights=known)))
    return done


# ------------------------------------------------------------------------------------------------------------ decisions


def decided(bundle: DocumentBundle, answer: ClassificationOutput) -> ClassificationOutcome:
    return asyncio.run(RetryOrchestrator().evaluate(bundle, supplied=answer.to_json()))


class Decided(NamedTuple):
    """What became of a document."""

    name: str
    truth: str
    said: str | None
    outcome: ClassificationOutcome

    @classmethod
    def by_type(cls, name: str, truth: str, outcome: ClassificationOutcome) -> Self:
        """Right is the type of the whole document."""
        answer = outcome.classification
        said = answer.dominant_type_overall.value if answer and answer.dominant_type_overall else None
        return cls(name, truth, said, outcome)

    @classmethod
    def by_cut(cls, name: str, cut: Cut, outcome: ClassificationOutcome) -> Self:
        """Right is every beginning, and every document's type."""
        truth, said = (", ".join(f"{start}-{end} {kind}" for start, end, kind in one) for one in (cut.truth, cut.said))
        return cls(name, truth, said, outcome)

    @property
    def is_accepted(self) -> bool:
        return self.outcome.verdict.decision is Decision.AUTO_ACCEPT

    @property
    def stopped_by(self) -> set[str]:
        return {one.agent for one in self.outcome.issues if one.severity is not IssueSeverity.MINOR}


def as_bundle(text: str, name: str) -> DocumentBundle:
    pages = labelled_texts.build_pages_from_text(text)
    return DocumentBundle(
        doc_id=name, file_path=f"{name}.txt", sha256=name, reader="text", total_pages=len(pages),
        processing_timestamp="2026-01-01T00:00:00Z", pages=pages,
    )  # fmt: skip


def decisions(judged_: Judged, known: Mapping[int, EmbeddedModelWeights]) -> dict[str, list[Decided]]:
    """Whole, misread and quoting texts, classified by models that had not seen their group, verified and decided."""
    made: dict[str, list[Decided]] = {}
    for variant in judged_.some.variants:
        if variant.name in {"whole", "misread"} or variant.name.startswith("quotes"):
            bundle = as_bundle(variant.text, variant.original.id)
            outcome = decided(
                bundle, classify_by_embedded_model(bundle, model_weights=known[judged_.folds[variant.original.group]])
            )
            name = "notes that quote a report" if variant.name.startswith("quotes") else f"{variant.name} texts"
            made.setdefault(name, []).append(
                Decided.by_type(variant.original.id, variant.original.document_type.value, outcome)
            )
    return made


def decision_table(made: Mapping[str, Sequence[Decided]]) -> Table:
    table = Table(
        "documents",
        "n",
        "accepted",
        "of those wrong",
        f"upper bound {LEVEL:.0%}",
        "errors stopped by",
        title="decisions",
    )
    for name, some in made.items():
        accepted = [one for one in some if one.is_accepted]
        wrong = [one for one in accepted if one.said != one.truth]
        errors = [one for one in some if one.said != one.truth]
        stopped = Counter(agent for one in errors for agent in one.stopped_by)
        by = ", ".join(f"{agent} {n} of {len(errors)}" for agent, n in sorted(stopped.items())) or "–"
        bound = estimate_proportion(len(wrong), len(accepted), 2 * LEVEL - 1).high
        table.add_row(name, str(len(some)), f"{len(accepted) / len(some):.1%}", str(len(wrong)), f"{bound:.1%}", by)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, help="where the reliability plot goes")
    parser.add_argument("--learn", action="store_true", help="write weights.json anew")
    parser.add_argument("--wrong", type=int, default=0, help="name so many wrong records")
    chosen = parser.parse_args()
    console = Console(width=150)
    some = collect_classifier_texts()
    judged_ = judged(some, act_learning.select_unseen_weights(act_learning.judge_all_texts()))
    console.print(unseen_line())
    console.print(text_table(judged_), confusion_table(judged_), confidence_table(judged_, chosen.plot))
    drawn_ = drawn(judged_, examples())
    if chosen.learn:
        rows = np.flatnonzero(np.array(judged_.sources) != NOT_LEARNED)
        data = fitting.build_weights_json(
            fitting.fit_weights(judged_.some, rows),
            judged_.believed,
            drawn_.joins(),
            [one for one in some if one.source != NOT_LEARNED],
        )
        WEIGHTS.write_text(fitting.format_weights_json(data), "utf-8")
    table = Table(
        "packets", "n", "pages", "page type", "boundary F1", "exact", "exact, typed", title="where documents begin"
    )
    known = {fold: judged_.known(fold, drawn_.joins(without=fold)) for fold in judged_.fits}
    for name, cuts in packet_rows(drawn_, known).items():
        table.add_row(*cut_row(name, cuts))
    made = decisions(judged_, known)
    made["drawn packets, type and cut"] = [
        Decided.by_cut(f"packet {number} of fold {fold}", cut_of(one, answer), decided(one.bundle, answer))
        for fold, those in drawn_.packets.items()
        for number, one in enumerate(those)
        for answer in [classify_by_embedded_model(one.bundle, model_weights=known[fold])]
    ]
    if DATA.is_dir():
        files = real(judged_, drawn_)
        for name, which in REAL.items():
            if those := [one for one in files if which(one.label)]:
                table.add_row(*cut_row(name, [one.cut for one in those]))
        outcomes = [(str(one.label["file"]), one.cut, decided(one.bundle, one.answer)) for one in files]
        made["clinical_pdf"] = [Decided.by_type(name, _most(cut.truth), outcome) for name, cut, outcome in outcomes]
        made["clinical_pdf, type and cut"] = [Decided.by_cut(*one) for one in outcomes]
    console.print(table)
    console.print(
        f"In the drawn packets {TITLED:.0%} of the reports and notes were given a title that names their type, which their own "
        "text may lack."
    )
    console.print(decision_table(made))
    for name, those in made.items():
        for one in [one for one in those if one.said != one.truth][: chosen.wrong]:
            console.print(
                f"{name}: {one.name} is {one.truth}, said {one.said}, {'accepted' if one.is_accepted else 'escalated'}"
            )


REAL: Mapping[str, Callable[[Mapping[str, object]], bool]] = {
    "clinical_pdf, singles": lambda label: label["kind"] == "single" and not label["scan"],
    "clinical_pdf, scans": lambda label: bool(label["scan"]),
    "clinical_pdf, packets": lambda label: label["kind"] == "multi",
}


def _most(truth: Iterable[TypedPageRange]) -> str:
    """The type of most pages."""
    pages: Counter[str] = Counter()
    for first, last, kind in truth:
        pages[str(kind)] += last - first + 1
    return pages.most_common(1)[0][0]


if __name__ == "__main__":
    main()
