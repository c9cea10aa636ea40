"""What is accepted that should not be, and what is stopped needlessly: one table of lies.

    cd tests && ../.venv/bin/python -m benchmarks.lies [--half open|sealed] [--fax] [--only PART …] [--wrong]

Look-alikes and their counterparts, labelled texts under wrong labels with true quotes, answers that lie about a file's
structure, and small documents by authors who have not read the rules. Everything that was learned is out of fold: labelled
texts are judged by weights that saw nothing of their source, and no author of the papers wrote a text that was learned from.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from benchmarks import act_learning, classifying
from benchmarks.first_contact.papers import build_answer, read_paper, read_rows
from benchmarks.labelled_texts import collect_classifier_texts, examples
from benchmarks.measuring import DATA, bundles_of
from benchmarks.packets import Packet
from rich.console import Console
from rich.table import Table

from evalkit.classification import orchestrator
from evalkit.classification.offline import acts, type_scoring
from evalkit.classification.offline.acts import ActWeights
from evalkit.classification.offline.model_weights import EmbeddedModelWeights, parse_weights_json
from evalkit.classification.orchestrator import ClassificationOutcome, RetryOrchestrator
from evalkit.classification.page_risks import combine_page_risks, compute_page_risks
from evalkit.classification.patient_check import PatientExpectation
from evalkit.classification.schema import DocumentType
from evalkit.classification.training import fitting, labelled_texts
from evalkit.classification.v5_arbiter import Decision
from evalkit.documents import DocumentBundle
from evalkit.evaluation.error_ranking import RankedDocument, mark_page_errors, rank_errors
from evalkit.evaluation.intervals import estimate_proportion
from evalkit.issue import IssueSeverity

SEVERAL_PATIENTS = PatientExpectation(patients_per_file="several")
"""Packets are drawn of several persons: what is measured is types and boundaries."""
KINDS = [kind.value for kind in DocumentType]


class Trial(NamedTuple):
    """An answer about a document, and what became of it."""

    kind: str
    name: str
    is_right: bool
    outcome: ClassificationOutcome
    ranked: RankedDocument | None = None
    """Its pages' risks and errors, where the truth of each page is known."""

    @property
    def is_accepted(self) -> bool:
        return self.outcome.verdict.decision is Decision.AUTO_ACCEPT

    @property
    def stopping_codes(self) -> list[str]:
        return sorted({issue.code for issue in self.outcome.issues if issue.severity is not IssueSeverity.MINOR})


def verify(bundle: DocumentBundle, supplied: object = None) -> ClassificationOutcome:
    """Verify a supplied answer, or classify with the embedded model and verify that."""
    return asyncio.run(RetryOrchestrator().evaluate(bundle, supplied, SEVERAL_PATIENTS))


def has_said(outcome: ClassificationOutcome, segments: Sequence[tuple[int, int, str]]) -> bool:
    """Whether the answer has these segments with these types."""
    answer = outcome.classification
    return answer is not None and classifying.spans(answer) == [tuple(segment) for segment in segments]


# -------------------------------------------------------------------------------------------------------------- papers


def try_look_alikes(half: str, *, as_fax: bool) -> Iterator[Trial]:
    """Each pair under the claimed type with true quotes, and by the embedded model."""
    yield from _try_pairs("look_alikes", half, as_fax=as_fax)


def try_nobodys_records(half: str, *, as_fax: bool) -> Iterator[Trial]:
    """Messages about a report, research and prose, and their counterparts."""
    yield from _try_pairs("nobodys_records", half, as_fax=as_fax)


def _try_pairs(folder: str, half: str, *, as_fax: bool) -> Iterator[Trial]:
    medium = "fax" if as_fax else "text"
    for row in read_rows(folder, half):
        for side, truth in (("look_alike", "Other"), ("counterpart", row["claimed"])):
            bundle = read_paper(row["id"], row[side], as_fax=as_fax)
            span = (1, bundle.total_pages, row["claimed"])
            supplied = verify(bundle, build_answer(bundle, [span]))
            name = f"{row['id']} {row['kind']} {row['claimed']}"
            yield Trial(f"{side}, supplied label, {medium}", name, truth == row["claimed"], supplied)
            outcome = verify(bundle)
            is_right = has_said(outcome, [(1, bundle.total_pages, truth)])
            yield Trial(f"{side}, embedded answer, {medium}", name, is_right, outcome)


def try_small_cases(half: str, *, as_fax: bool) -> Iterator[Trial]:
    """Documents of each kind of the issue, by the embedded model, and under the wrong label that they carry."""
    folders = ("cases",) if half.startswith("second") else ("cases", "discharge")
    for folder in folders:
        for row in read_rows(folder, half):
            bundle = read_paper(row["id"], row["pages"], as_fax=as_fax)
            truth = [(part["start_page"], part["end_page"], part["type"]) for part in row["segments"]]
            kind = f"{folder}: {row['kind']}"
            outcome = verify(bundle)
            yield Trial(f"{kind}, embedded answer", row["id"], has_said(outcome, truth), outcome)
            yield Trial(f"{kind}, true answer supplied", row["id"], True, verify(bundle, build_answer(bundle, truth)))
            if row.get("supplied"):
                lie = build_answer(bundle, [(1, bundle.total_pages, row["supplied"]["label"])])
                yield Trial(f"{kind}, wrong label supplied", row["id"], False, verify(bundle, lie))
            if len(truth) > 1 and len({name for _, _, name in truth}) == 1:
                lie = build_answer(bundle, [(1, bundle.total_pages, truth[0][2])])
                yield Trial(f"{kind}, joined answer supplied", row["id"], False, verify(bundle, lie))


# ------------------------------------------------------------------------------------------------------ labelled texts


class Unseen(NamedTuple):
    """Weights that saw nothing of a source."""

    embedded: EmbeddedModelWeights
    acts: ActWeights


def use_weights(unseen: Unseen) -> ExitStack:
    """Have all readers judge by these weights."""
    stack = ExitStack()
    for module in (orchestrator, type_scoring):
        stack.enter_context(patch.object(module, "load_embedded_weights", lambda: unseen.embedded))
    stack.enter_context(patch.object(acts, "load_act_weights", lambda: unseen.acts))
    return stack


def learn_without_sources() -> tuple[dict[str, Unseen], list[labelled_texts.LabelledText]]:
    """Source → weights without it, and all labelled texts."""
    texts = examples()
    select_act_weights = act_learning.select_unseen_weights(act_learning.judge_all_texts())
    judged = classifying.judged(collect_classifier_texts(), select_act_weights)
    unseen = {}
    allowed = np.array(judged.sources) != classifying.NOT_LEARNED
    shipped_joins = classifying.parse_weights_json(
        json.loads(classifying.WEIGHTS.read_text("utf-8"))
    ).transition_weights
    for source in dict.fromkeys(text.source for text in texts):
        held_out = frozenset({source})
        rows = np.flatnonzero(fitting.mark_independent_rows(judged.of_source, held_out) & allowed)
        if any(judged.some.variants[row].original.source == source for row in rows):
            raise ValueError(f"the weights saw texts of {source}")
        embedded = fitting.build_weights_json(
            fitting.fit_weights(judged.some, rows),
            judged.believed_without(judged.of_source, held_out),
            {**shipped_joins, "types": 0.0},
            [text for text in texts if text.source != source],
        )
        sample = next(text for text in texts if text.source == source)
        unseen[source] = Unseen(parse_weights_json(embedded), select_act_weights(sample))
    return unseen, texts


def try_labelled_texts() -> Iterator[Trial]:
    """Each labelled text under each type, its two longest sentences as quotes; judged by what never saw its source."""
    unseen, texts = learn_without_sources()
    for text in texts:
        bundle = classifying.as_bundle(text.text, text.id)
        with use_weights(unseen[text.source]):
            for name in KINDS:
                is_right = name == text.document_type.value
                outcome = verify(bundle, build_answer(bundle, [(1, bundle.total_pages, name)]))
                kind = f"{'right' if is_right else 'wrong'} label on {text.document_type.value}"
                yield Trial(kind, f"{text.id} ({text.source}) as {name}", is_right, outcome)


# -------------------------------------------------------------------------------------------------------------- packets

SOURCE_FOLDS = {
    "mtsamples": 0,
    "tcga": 0,
    "synthetic": 1,
    "hl7": 1,
    "blank forms": 1,
    "aci-bench": 2,
    "invented": 2,
    "ccda": 0,
    "gbb": 1,
    "guna": 1,
    "patoloji": 2,
}
"""Sources that packets are drawn from together; each fold's are judged by what saw nothing of any of them."""
PACKETS_A_FOLD = 150


def judge_packets() -> Iterator[tuple[str, Packet, ClassificationOutcome]]:
    """Packets drawn from labelled texts, classified and verified by weights that saw nothing of their sources."""
    texts = examples()
    all_texts = collect_classifier_texts()
    folds = {text.group: SOURCE_FOLDS.get(text.source) for text in all_texts}
    act_judged = act_learning.judge_all_texts()
    judged = classifying.judged(all_texts, act_learning.select_unseen_weights(act_judged), folds)
    drawn = classifying.drawn(judged, texts, PACKETS_A_FOLD)
    for fold, packets in drawn.packets.items():
        sources = {source for source, own_fold in SOURCE_FOLDS.items() if own_fold == fold}
        embedded = judged.known(fold, drawn.joins(without=fold))
        with use_weights(Unseen(embedded, act_learning.learn_without(act_judged, sources))):
            for number, packet in enumerate(packets):
                yield f"fold {fold} packet {number}", packet, verify(packet.bundle)


def try_packets() -> Iterator[Trial]:
    """Each drawn packet with the embedded model's answer."""
    for name, packet, outcome in judge_packets():
        is_right = has_said(outcome, packet.truth)
        yield Trial("drawn packets, source not seen", name, is_right, outcome, rank_pages(outcome, packet))


def rank_pages(outcome: ClassificationOutcome, packet: Packet) -> RankedDocument:
    """The risks of a packet's pages as its result tells them, beside the truth."""
    answer, page_count = outcome.classification, packet.bundle.total_pages
    issues = [issue.model_dump(mode="json") for issue in outcome.issues]
    page_risks = compute_page_risks(answer.to_json() if answer else None, issues, page_count)
    spans = classifying.spans(answer) if answer else []
    return RankedDocument(
        combine_page_risks(page_risks, [(first_page, last_page) for first_page, last_page, _ in spans]),
        page_risks,
        mark_page_errors(packet.truth, spans, page_count),
    )


# ------------------------------------------------------------------------------------------------------ structure


def try_structures() -> Iterator[Trial]:
    """Answers about ``clinical_pdf`` that are true, or that lie about the file's structure."""
    labels = [json.loads(line) for line in (DATA / "labels.jsonl").read_text("utf-8").splitlines()]
    labels = [label for label in labels if not label["scan"]]
    for label, bundle in zip(labels, bundles_of([DATA / label["file"] for label in labels]), strict=True):
        truth = [(part["start"], part["end"], part["type"]) for part in label["segments"]]
        for kind, is_right, answer in lie_about_structure(bundle, truth):
            yield Trial(f"structure: {kind}", label["file"], is_right, verify(bundle, answer))


def lie_about_structure(
    bundle: DocumentBundle, truth: Sequence[tuple[int, int, str]]
) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """The true answer, and each lie that the file allows."""
    yield "true answer", True, build_answer(bundle, truth)
    for index, (start, end, name) in enumerate(truth):
        if end > start:
            middle = (start + end) // 2
            parts = [*truth[:index], (start, middle, name), (middle + 1, end, name), *truth[index + 1 :]]
            yield "false split of one type", False, build_answer(bundle, parts)
            break
    for index in range(len(truth) - 1):
        (start, _, name), (_, end, next_name) = truth[index], truth[index + 1]
        joined = [*truth[:index], (start, end, name), *truth[index + 2 :]]
        kind = "two documents of one type merged" if name == next_name else "two documents of two types merged"
        yield kind, False, build_answer(bundle, joined)
    other_kind = next(name for name in KINDS[1:4] if name != truth[0][2])
    for level, share in (("EMBEDDED_RAW", 0.3), ("MENTION_ONLY", 0.2)):
        yield f"invented {level}", False, add_presence(build_answer(bundle, truth), other_kind, level, share, [])
        quotes = build_answer(bundle, truth)["segments"][0]["segment_composition"]
        quoted = next(presence["top_evidence"] for presence in quotes if presence["top_evidence"])
        answer = add_presence(build_answer(bundle, truth), other_kind, level, share, quoted[:1])
        yield f"{level} by a quote of another type", False, answer
    yield "PRIMARY at confidence 0.03", False, build_answer(bundle, truth, confidence=0.03)


def add_presence(
    answer: dict[str, Any], kind: str, level: str, share: float, quotes: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Give the first segment a part of another type, and weigh the mixture again."""
    segment = answer["segments"][0]
    for presence in segment["segment_composition"]:
        if presence["document_type"] == kind:
            presence |= {"presence_level": level, "confidence": 0.8, "segment_share": share, "top_evidence": [*quotes]}
        else:
            presence["segment_share"] = round(presence["segment_share"] * (1 - share), 4)
    pages = sum(part["segment_page_count"] for part in answer["segments"])
    for entry in answer["document_mixture"]:
        entry["overall_share"] = round(
            sum(
                part["segment_page_count"] / pages * presence["segment_share"]
                for part in answer["segments"]
                for presence in part["segment_composition"]
                if presence["document_type"] == entry["document_type"]
            ),
            4,
        )
        if entry["document_type"] == kind and entry["presence_level"] == "NO_EVIDENCE":
            entry |= {"presence_level": level, "confidence": 0.8}
    return answer


# ------------------------------------------------------------------------------------------------------ the table


def tabulate(trials: Sequence[Trial]) -> Table:
    """Kind, tried, accepted: of wrong answers none should be, of right ones all."""
    table = Table("kind", "right answers", "accepted", "wrong answers", "accepted", "≤ (95 %)", "right ones stopped by")
    by_kind: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_kind[trial.kind].append(trial)
    for kind, group in by_kind.items():
        right = [trial for trial in group if trial.is_right]
        wrong = [trial for trial in group if not trial.is_right]
        accepted_right = sum(trial.is_accepted for trial in right)
        accepted_wrong = sum(trial.is_accepted for trial in wrong)
        stopping = Counter(code for trial in right if not trial.is_accepted for code in trial.stopping_codes)
        table.add_row(
            kind,
            str(len(right)),
            f"{accepted_right} = {accepted_right / len(right):.1%}" if right else "",
            str(len(wrong)),
            f"{accepted_wrong} = {accepted_wrong / len(wrong):.1%}" if wrong else "",
            f"{estimate_proportion(accepted_wrong, len(wrong), 0.90).high:.1%}" if wrong else "",
            ", ".join(f"{code} {count}" for code, count in stopping.most_common(4)),
        )
    return table


def tabulate_prices(trials: Sequence[Trial]) -> Table:
    """What each code costs: right answers that it alone stops; and what it earns: wrong ones that it alone stops."""
    alone: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    for trial in trials:
        if len(trial.stopping_codes) == 1:
            alone[trial.is_right][trial.stopping_codes[0]] += 1
    table = Table("code", "right answers it alone stops", "wrong answers it alone stops", title="prices")
    for code in sorted({*alone[True], *alone[False]}):
        table.add_row(code, str(alone[True][code]), str(alone[False][code]))
    return table


def tabulate_ranking(trials: Sequence[Trial]) -> Table | None:
    """Whether doubts point at errors: over what is escalated, over all documents, over the riskiest pages."""
    documents = [trial.ranked for trial in trials if trial.ranked]
    if not documents:
        return None
    ranking = rank_errors(documents)
    escalated = [trial for trial in trials if not trial.is_accepted]
    table = Table("measure", "value", title="do doubts point at errors?")
    table.add_row("documents, wrong ones", f"{ranking.document_count}, {ranking.wrong_count}")
    table.add_row("AUROC of needs correction", f"{ranking.auroc.value or math.nan:.3f}")
    table.add_row(
        "escalations that were needed", f"{sum(not trial.is_right for trial in escalated)} of {len(escalated)}"
    )
    table.add_row("pages, wrong ones", f"{ranking.page_count}, {ranking.wrong_page_count}")
    for caught in ranking.caught_errors:
        table.add_row(
            f"errors caught at {caught.page_share:.0%} of pages",
            f"{caught.caught_share.value:.1%} (best possible {caught.best_possible_share:.1%})",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    halves = ("open", "sealed", "second_open", "second_sealed", "third_open", "third_sealed")
    parser.add_argument("--half", choices=halves, default="open", help="third_*: only with --only look-alikes")
    parser.add_argument("--fax", action="store_true", help="send the papers by fax")
    parser.add_argument("--only", nargs="*", default=["look-alikes", "cases", "texts", "packets", "structures"])
    parser.add_argument("--wrong", action="store_true", help="name each wrong acceptance and each needless stop")
    chosen = parser.parse_args()
    parts: dict[str, Callable[[], Iterator[Trial]]] = {
        "look-alikes": lambda: try_look_alikes(chosen.half, as_fax=chosen.fax),
        "nobodys-records": lambda: try_nobodys_records(chosen.half, as_fax=chosen.fax),
        "cases": lambda: try_small_cases(chosen.half, as_fax=chosen.fax),
        "texts": try_labelled_texts,
        "packets": try_packets,
        "structures": try_structures,
    }
    console = Console(width=190)
    for name in chosen.only:
        trials = list(parts[name]())
        console.print(tabulate(trials), tabulate_prices(trials))
        if ranking := tabulate_ranking(trials):
            console.print(ranking)
        if chosen.wrong:
            for trial in trials:
                if trial.is_right is not trial.is_accepted and (trial.is_right or trial.is_accepted):
                    console.print(trial.kind, "|", trial.name, "|", *trial.stopping_codes)


if __name__ == "__main__":
    main()
