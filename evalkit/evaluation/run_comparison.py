"""Comparison of two runs, A and B, by document: changes and accuracies.

Documents are matched by the hash of their PDFs. The accuracies are compared twice: on the documents whose truth is
known in either folder (not a random selection, so the result holds for reviewed documents only), and over all documents
of both runs, with each randomly drawn document counting for the number of documents that it represents.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import pandas as pd
from scipy.stats import binomtest

from evalkit.classification.v5_arbiter import Decision
from evalkit.core.data_frames import OUTPUT_ATTRIBUTE, convert_to_records
from evalkit.core.notebook_cards import format_card
from evalkit.core.wording import format_count
from evalkit.evaluation.extraction_monitoring import compare_fields, read_all_extractions
from evalkit.evaluation.headline_estimates import is_outside_random_draw
from evalkit.evaluation.intervals import Estimate, Observation, estimate_proportion, estimate_weighted_mean
from evalkit.evaluation.metrics import is_exact_segmentation, merge_same_type_neighbours
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, Study
from evalkit.evaluation.verifier_performance import ERROR_LEVELS, ErrorLevel
from evalkit.pipeline.supplied_labels import (
    CANNOT_TELL_LABEL,
    TypedPageRange,
    format_typed_page_ranges,
    sort_typed_page_ranges,
)

#: Fewest documents on which exactly one answer is right for a p-value below 0.05 to be possible: with 5, the smallest
#: p-value is 2 · 0.5⁵ = 0.0625.
_MIN_DISCORDANT_COUNT = 6


@dataclass(frozen=True)
class PairedAccuracy:
    """Counts of documents on which A, B, both or neither is right; McNemar's test."""

    both_right: int
    only_a_right: int
    only_b_right: int
    neither_right: int
    p_value: float | None
    """p-value of McNemar's exact test that A and B are equally accurate; None if no document has exactly one right
    answer."""
    difference: Estimate
    """Accuracy of B − accuracy of A, -1..1, with the 95 % interval."""

    @property
    def document_count(self) -> int:
        """Number of compared documents."""
        return self.both_right + self.only_a_right + self.only_b_right + self.neither_right

    @property
    def discordant_count(self) -> int:
        """Number of documents on which exactly one of A and B is right."""
        return self.only_a_right + self.only_b_right

    def describe_winner(self, name_a: str = "A", name_b: str = "B") -> str:
        """Describe which answer is right more often, or that neither is shown to be."""
        if self.discordant_count < _MIN_DISCORDANT_COUNT:
            return (
                f"too few to tell: exactly one answer is right on {self.discordant_count} documents, "
                f"at least {_MIN_DISCORDANT_COUNT} are needed"
            )
        if self.p_value is None or self.p_value >= 0.05:
            return "no difference shown"
        return f"{name_b if self.only_b_right > self.only_a_right else name_a} is right more often"


class PairedDocument(NamedTuple):
    """One document of both runs: which answers are right, and how it was selected."""

    correctness: tuple[bool, bool] | None
    """(A is right, B is right); None if the truth is unknown or cannot be determined."""
    is_same_answer: bool
    """True if A and B gave the same answer; then they do not differ in accuracy, whatever the truth is."""
    review_probability: float | None
    """Probability (0..1) with which the document was selected for review; None if unknown."""
    has_expert_action: bool


@dataclass(frozen=True)
class OverallAccuracyComparison:
    """Estimated accuracies of A and B over all documents, reviewed or not."""

    population_size: int
    """Number of documents in both runs."""
    observed_count: int
    """Number of documents with known truth from which the accuracies are estimated."""
    missing_count: int
    """Number of documents that were certain to be reviewed and have no known truth: both accuracies count them as wrong
    answers, the high ends of their intervals as right ones."""
    accuracy_a: Estimate
    """Accuracy of A, 0..1."""
    accuracy_b: Estimate
    """Accuracy of B, 0..1."""
    difference: Estimate
    """Accuracy of B − accuracy of A, -1..1."""


def compare_paired_accuracy(correctness_pairs: Sequence[tuple[bool, bool]]) -> PairedAccuracy:
    """Compare the accuracies of A and B on reviewed documents by McNemar's exact test.

    Each pair is (A is right, B is right) of one document.

    Source: McNemar, Psychometrika 12 (1947), here exactly, as a binomial test of the discordant pairs; the interval is
    Newcombe's, Statistics in Medicine 17 (1998) 2635, method 10.

    >>> outcome = compare_paired_accuracy([(True, True)] * 36 + [(False, True)] * 12 + [(True, False)] * 2)
    >>> round(outcome.p_value, 6), [round(number, 4) for number in outcome.difference[:3]], outcome.describe_winner()
    (0.012939, [0.2, 0.0569, 0.3404], 'B is right more often')
    """
    counts_by_correctness = Counter((bool(a), bool(b)) for a, b in correctness_pairs)
    both_right, neither_right = counts_by_correctness[True, True], counts_by_correctness[False, False]
    only_a_right, only_b_right = counts_by_correctness[True, False], counts_by_correctness[False, True]
    discordant_count = only_a_right + only_b_right
    return PairedAccuracy(
        both_right,
        only_a_right,
        only_b_right,
        neither_right,
        p_value=float(binomtest(only_b_right, discordant_count).pvalue) if discordant_count else None,
        difference=_estimate_accuracy_difference(both_right, only_b_right, only_a_right, neither_right),
    )


def _estimate_accuracy_difference(
    both_right: int, only_first_right: int, only_second_right: int, neither_right: int
) -> Estimate:
    """Estimate the first accuracy minus the second on the same documents, -1..1."""
    document_count = both_right + only_first_right + only_second_right + neither_right
    if document_count == 0:
        return Estimate(None, -1.0, 1.0, 0, "Newcombe")
    right_count_1, right_count_2 = both_right + only_first_right, both_right + only_second_right
    share_1, share_2 = right_count_1 / document_count, right_count_2 / document_count
    (low_1, high_1), (low_2, high_2) = (
        binomtest(right_count, document_count).proportion_ci(method="wilson")
        for right_count in (right_count_1, right_count_2)
    )
    association = both_right * neither_right - only_first_right * only_second_right
    spread = math.sqrt(
        right_count_1 * (document_count - right_count_1) * right_count_2 * (document_count - right_count_2)
    )
    # Continuity correction: with few documents, the observed correlation of the two answers is exaggerated.
    correlation = (
        (max(association - document_count / 2, 0) if association > 0 else association) / spread if spread else 0.0
    )
    margin_below, margin_above = share_1 - low_1, high_2 - share_2
    distance_below = math.sqrt(margin_below**2 - 2 * correlation * margin_below * margin_above + margin_above**2)
    margin_below, margin_above = share_2 - low_2, high_1 - share_1
    distance_above = math.sqrt(margin_below**2 - 2 * correlation * margin_below * margin_above + margin_above**2)
    share_difference = (only_first_right - only_second_right) / document_count
    return Estimate(
        share_difference,
        max(share_difference - distance_below, -1.0),
        min(share_difference + distance_above, 1.0),
        document_count,
        "Newcombe",
    )


def compare_overall_accuracy(paired_documents: Sequence[PairedDocument]) -> OverallAccuracyComparison:
    """Estimate both accuracies and their difference over all documents.

    Intervals are 95 %. The accuracies are estimated by :func:`~evalkit.evaluation.intervals.estimate_weighted_mean`.
    For the difference, documents on which both answers are equal contribute 0 without a review. Of the others,
    documents that were certain to be reviewed are counted; their missing results may favour A or B, which widens the
    interval. Documents that could only be drawn are estimated from the drawn ones, a document with probability p
    counting 1 / p times. The ends of their interval combine the Clopper-Pearson intervals of the shares on which only B
    and only A is right, for the effective number of documents (sum of the weights divided by the largest); Newcombe's
    interval is too narrow for few documents. Drawn documents whose truth cannot be determined may favour A or B as
    well.

    >>> met = [PairedDocument((False, True), False, 1.0, True)] * 4 + [PairedDocument((True, True), True, 0.2, True)] * 20
    >>> unseen = [PairedDocument(None, True, 0.2, False)] * 76
    >>> compare_overall_accuracy(met + unseen).difference
    Estimate(value=0.04, low=0.04, high=0.04, n=4, method='weighted')
    """
    accuracy_a, accuracy_b = (_estimate_side_accuracy(paired_documents, side) for side in (0, 1))
    return OverallAccuracyComparison(
        len(paired_documents),
        sum(document.correctness is not None for document in paired_documents if _counts_as_observation(document)),
        sum(document.correctness is None and document.review_probability == 1 for document in paired_documents),
        accuracy_a,
        accuracy_b,
        _estimate_overall_accuracy_difference(paired_documents),
    )


def _estimate_side_accuracy(paired_documents: Sequence[PairedDocument], side: int) -> Estimate:
    return estimate_weighted_mean(
        [
            Observation(
                None if document.correctness is None else float(document.correctness[side]),
                document.review_probability or 0.0,
            )
            for document in paired_documents
            if _counts_as_observation(document)
        ],
        len(paired_documents),
        certain_count=sum(document.review_probability == 1 for document in paired_documents),
    )


def _counts_as_observation(document: PairedDocument) -> bool:
    """Return True if the document counts as an observation of the estimates.

    A document that was certain to be reviewed must have a known truth; a drawn document must have been reviewed.
    """
    return (
        document.correctness is not None
        if document.review_probability == 1
        else bool(document.review_probability) and document.has_expert_action
    )


def _estimate_overall_accuracy_difference(paired_documents: Sequence[PairedDocument]) -> Estimate:
    if not paired_documents:
        return Estimate(None, -1.0, 1.0, 0, "weighted")
    differing_documents = [candidate for candidate in paired_documents if not candidate.is_same_answer]
    certain_correctness = [
        candidate.correctness for candidate in differing_documents if candidate.review_probability == 1
    ]
    known_correctness = [correctness for correctness in certain_correctness if correctness is not None]
    drawn_documents = [
        candidate
        for candidate in differing_documents
        if candidate.review_probability != 1 and _counts_as_observation(candidate)
    ]
    drawable_count, unknown_count = (
        len(differing_documents) - len(certain_correctness),
        len(certain_correctness) - len(known_correctness),
    )
    net_count = sum(b - a for a, b in known_correctness)
    middle_estimate, lowest_estimate, highest_estimate = (
        _estimate_drawn_difference(drawn_documents, candidate)
        for candidate in ((False, False), (True, False), (False, True))
    )
    has_drawn_truth = any(candidate.correctness is not None for candidate in drawn_documents)
    is_known = has_drawn_truth or (not drawable_count and bool(known_correctness or not differing_documents))
    return Estimate(
        (net_count + drawable_count * (middle_estimate.value or 0.0)) / len(paired_documents) if is_known else None,
        (net_count - unknown_count + drawable_count * lowest_estimate.low) / len(paired_documents),
        (net_count + unknown_count + drawable_count * highest_estimate.high) / len(paired_documents),
        len(known_correctness) + (middle_estimate.n if has_drawn_truth else 0),
        "weighted",
    )


def _estimate_drawn_difference(
    drawn_documents: Sequence[PairedDocument], assumed_correctness: tuple[bool, bool]
) -> Estimate:
    """Estimate accuracy B − A over drawn documents, with an assumed result if unknown."""
    weight_by_correctness: dict[tuple[bool, bool], float] = defaultdict(float)
    for document in drawn_documents:
        weight_by_correctness[document.correctness or assumed_correctness] += 1 / (document.review_probability or 1.0)
    largest_weight = max((1 / (document.review_probability or 1.0) for document in drawn_documents), default=1.0)
    effective_size = sum(weight_by_correctness.values()) / largest_weight
    only_a_share, only_b_share = (
        estimate_proportion(weight_by_correctness[correctness] / largest_weight, effective_size)
        for correctness in ((True, False), (False, True))
    )
    return Estimate(
        None if only_a_share.value is None or only_b_share.value is None else only_b_share.value - only_a_share.value,
        only_b_share.low - only_a_share.high,
        only_b_share.high - only_a_share.low,
        effective_size,
        "weighted",
    )


#: Shown instead of a decision if the document could not be read.
NOT_READ_LABEL = "NOT READ"

#: Sources of a known truth: a file of labels, the reviews of one run only, or the reviews of both runs.
TRUTH_ORIGINS = ("given", "A", "B", "both")

CHANGE_COLUMNS = (
    *("doc_id", "doc_id_b", "decision_a", "decision_b", "rule_a", "rule_b", "type_a", "type_b"),
    *("segments_a", "segments_b", "score_a", "score_b", "appeared", "disappeared", "changed"),
    *("truth", "right_a", "right_b", "true_segments", "segments_right_a", "segments_right_b"),
    *("segments_merged_right_a", "segments_merged_right_b", "truth_from", "simulated"),
)
#: Prefixes (before ``_a`` and ``_b``) of the columns that tell if A and B are right, by level of error.
_CORRECTNESS_COLUMNS: dict[ErrorLevel, str] = {
    "type": "right",
    "segments": "segments_right",
    "segments merged": "segments_merged_right",
}

LabelPart = Literal["dominant_type", "segments"]


@dataclass(frozen=True)
class RunComparison:
    """Comparison of two output folders, A and B: changes, accuracies and effort."""

    output_a: str
    """Output folder of run A, or its name if both are runs of one folder."""
    output_b: str
    """Output folder of run B, or its name."""
    documents_table: pd.DataFrame
    """One row per document in both runs: ``doc_id`` (in A), ``doc_id_b``; of each run (``…_a``, ``…_b``) the decision,
    rule, type (None: cannot tell, or no answer), segments (as ``1-2 Clinical Note; 3 Other``) and evidence quality
    score; ``appeared`` and ``disappeared``, the open issues that only B or only A has, as code → number; ``changed``,
    True if any of these differs; ``truth`` and ``true_segments`` (None if unknown), and if A and B are right about type
    and segments (as given and with neighbours merged); ``truth_from`` (A, B, both, given, disputed); ``simulated``, 1
    if a simulated reviewer (a program) supplied the truth."""
    only_in_a: tuple[str, ...]
    """The doc_ids of A's documents without a match in B, including damaged ones whose hash is unknown."""
    only_in_b: tuple[str, ...]
    """The doc_ids of B's documents without a match in A, including damaged ones whose hash is unknown."""
    decision_crosstab: pd.DataFrame
    """Number of documents by decision in A (rows) and in B (columns)."""
    type_changes: pd.DataFrame
    """``type_a, type_b, documents``: number of documents by each pair of different types."""
    type_accuracy: PairedAccuracy
    """Accuracy of the document type on reviewed documents only."""
    segment_accuracy: PairedAccuracy
    """Share of reviewed documents whose segments are all exactly right, as given."""
    merged_segment_accuracy: PairedAccuracy
    """Like ``segment_accuracy``, after merging neighbouring segments of one type (contract, ruling 12)."""
    sampling_run: Literal["A", "B"]
    """The run whose inclusion probabilities weight the documents: the run with more reviewed documents."""
    overall_accuracies: Mapping[ErrorLevel, OverallAccuracyComparison]
    """Accuracies estimated over all documents of both runs, by level of error."""
    disputed_doc_ids: tuple[str, ...]
    """The doc_ids of documents for which the two folders have different truths; the disputed part is not compared."""
    simulated_truth_count: int
    """Number of documents whose truth a simulated reviewer (a program) supplied."""
    truth_origin_counts: Mapping[str, int]
    """Number of documents with known truth by its source: ``given`` (a file of labels), ``A`` only, ``B`` only,
    ``both``."""
    versions_table: pd.DataFrame
    """Models, prompts, tables and program: ``of``, and the version or versions in each run, ``a`` and ``b``."""
    effort_table: pd.DataFrame
    """``measure, a, b``: calls, tokens and cost_usd (None if unknown) of the documents in both runs; seconds of the
    documents that were timed in both runs."""
    field_decisions: pd.DataFrame
    """Number of reports and forms by decision in A (rows) and in B (columns); "none": not judged, or not in this run."""
    field_changes: pd.DataFrame
    """``doc_id, template, pages, field, value_a, value_b``: fields with another status or value."""
    problems: tuple[str, ...] = ()
    """A sentence for each damaged file of A or B."""
    label_warnings: tuple[str, ...] = ()
    """A sentence for each label in a file that could not be used, or only in part."""

    @property
    def headline(self) -> str:
        """Line that names the two runs and counts their documents."""
        return (
            f"A is {self.output_a}, B is {self.output_b}: {len(self.documents_table)} documents in both, "
            f"{len(self.only_in_a)} only in A, {len(self.only_in_b)} only in B"
        )

    def _repr_html_(self) -> str:
        return format_card(
            self.headline,
            (
                f"{format_count(len(self.changed_documents), 'document')} changed",
                f"Type, reviewed documents: {self.type_accuracy.describe_winner()}",
                f"Segments, reviewed documents: {self.segment_accuracy.describe_winner()}",
            ),
            (
                ("evalkit.show(comparison.changed_documents)", "the documents that changed"),
                (f"evalkit compare {self.output_a} {self.output_b}", "all figures"),
            ),
        )

    @property
    def changed_documents(self) -> pd.DataFrame:
        """The rows of ``documents_table`` in which decision, answer or issues differ."""
        return self.documents_table[self.documents_table["changed"]]

    @property
    def comparability_warning(self) -> str | None:
        """Warning if most truths come from one run's reviews; else None."""
        run = "A" if self.truth_origin_counts["A"] > self.truth_origin_counts["B"] else "B"
        if self.truth_origin_counts["A"] == self.truth_origin_counts["B"]:
            return None
        decisions = self.documents_table.loc[self.documents_table["truth_from"] == run, f"decision_{run.lower()}"]
        escalated_count = int((decisions == Decision.ESCALATE_TO_SME.value).sum())
        return (
            f"The comparison of reviewed documents is biased: {self.truth_origin_counts[run]} of the truths come from "
            f"reviews of {run} only. The experts may have seen the answer of {run} (a bias in favour of {run})"
            + f", and {run} escalated {escalated_count} of these documents, which are difficult for {run} "
            f"(a bias against {run})" * bool(escalated_count)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON-serialisable data; amounts of money as text."""
        return {
            "a": self.output_a,
            "b": self.output_b,
            "versions": convert_to_records(self.versions_table),
            "documents": convert_to_records(self.documents_table),
            "only_a": list(self.only_in_a),
            "only_b": list(self.only_in_b),
            "decisions": {
                a: {b: int(n) for b, n in row.items()} for a, row in self.decision_crosstab.T.to_dict().items()
            },
            "types": convert_to_records(self.type_changes),
            "type": _convert_paired_to_json(self.type_accuracy),
            "segments": _convert_paired_to_json(self.segment_accuracy),
            "segments_merged": _convert_paired_to_json(self.merged_segment_accuracy),
            "drawn_by": self.sampling_run,
            "overall": {level: _convert_overall_to_json(self.overall_accuracies[level]) for level in ERROR_LEVELS},
            "disputed": list(self.disputed_doc_ids),
            "simulated": self.simulated_truth_count,
            "known_from": dict(self.truth_origin_counts),
            "leaning": self.comparability_warning,
            "effort": [
                {name: str(value) if isinstance(value, Decimal) else value for name, value in row.items()}
                for row in convert_to_records(self.effort_table)
            ],
            "field_decisions": {
                a: {b: int(n) for b, n in row.items()} for a, row in self.field_decisions.T.to_dict().items()
            },
            "fields": convert_to_records(self.field_changes),
        }


def compare_studies(study_a: Study, study_b: Study) -> RunComparison:
    """Compare the documents of two studies, matched by the SHA-256 of their PDFs."""
    documents_a, documents_b = _index_by_sha256(study_a), _index_by_sha256(study_b)
    document_pairs = [
        (document, documents_b[sha256]) for sha256, document in documents_a.items() if sha256 in documents_b
    ]
    paired_object_ids = {id(document) for document_pair in document_pairs for document in document_pair}
    rows = [_build_change_row(*document_pair) for document_pair in document_pairs]
    documents_table = pd.DataFrame(rows, columns=list(CHANGE_COLUMNS))
    documents_table.attrs[OUTPUT_ATTRIBUTE] = str(study_a.output)
    sampling_run = _choose_sampling_run(document_pairs)
    field_decisions, field_changes = compare_fields(
        *(read_all_extractions(study.folder) for study in (study_a, study_b))
    )
    return RunComparison(
        output_a=study_a.run or str(study_a.output),
        output_b=study_b.run or str(study_b.output),
        documents_table=documents_table.astype({"changed": bool}),
        only_in_a=tuple(document.doc_id for document in study_a.documents if id(document) not in paired_object_ids),
        only_in_b=tuple(document.doc_id for document in study_b.documents if id(document) not in paired_object_ids),
        decision_crosstab=pd.crosstab(documents_table["decision_a"], documents_table["decision_b"]),
        type_changes=_tabulate_type_changes(document_pairs),
        type_accuracy=_compare_accuracy(rows, "type"),
        segment_accuracy=_compare_accuracy(rows, "segments"),
        merged_segment_accuracy=_compare_accuracy(rows, "segments merged"),
        sampling_run=sampling_run,
        overall_accuracies={
            level: compare_overall_accuracy(
                [
                    _build_paired_document(*pair_and_row, sampling_run, level)
                    for pair_and_row in zip(document_pairs, rows, strict=True)
                ]
            )
            for level in ERROR_LEVELS
        },
        disputed_doc_ids=tuple(row["doc_id"] for row in rows if row["truth_from"] == "disputed"),
        simulated_truth_count=sum(row["simulated"] for row in rows),
        truth_origin_counts={origin: sum(row["truth_from"] == origin for row in rows) for origin in TRUTH_ORIGINS},
        versions_table=_tabulate_versions(document_pairs),
        effort_table=_tabulate_effort(document_pairs),
        field_decisions=field_decisions,
        field_changes=field_changes,
        problems=tuple(dict.fromkeys((*study_a.problems, *study_b.problems))),
        label_warnings=tuple(dict.fromkeys((*study_a.label_warnings, *study_b.label_warnings))),
    )


def _index_by_sha256(study: Study) -> dict[str, DocumentRecord]:
    return {document.sha256: document for document in study.documents if document.sha256 is not None}


# ---------------------------------------------------------------------------------------------------------------------
# What changed


def _build_change_row(document_a: DocumentRecord, document_b: DocumentRecord) -> dict[str, Any]:
    codes_a, codes_b = _count_open_codes(document_a), _count_open_codes(document_b)
    sides = {"a": _summarise_document(document_a), "b": _summarise_document(document_b)}
    return {
        "doc_id": document_a.doc_id,
        "doc_id_b": document_b.doc_id,
        **{f"{name}_{side}": value for side, values in sides.items() for name, value in values.items()},
        "appeared": dict(codes_b - codes_a),
        "disappeared": dict(codes_a - codes_b),
        "changed": (sides["a"], codes_a) != (sides["b"], codes_b),
        **_score_pair_against_truth(document_a, document_b),
    }


def _summarise_document(document: DocumentRecord) -> dict[str, Any]:
    agent_labels = document.agent_labels
    return {
        "decision": document.decision or NOT_READ_LABEL,
        "rule": document.decision_rule,
        "type": agent_labels.dominant_type if agent_labels else None,
        "segments": format_typed_page_ranges(agent_labels.segments) if agent_labels else None,
        "score": document.evidence_quality_score,
    }


def _count_open_codes(document: DocumentRecord) -> Counter[str]:
    return Counter(issue.code for issue in document.issues if issue.status == "open")


def _tabulate_type_changes(document_pairs: Sequence[tuple[DocumentRecord, DocumentRecord]]) -> pd.DataFrame:
    type_pairs = [
        (_summarise_document(a)["type"] or CANNOT_TELL_LABEL, _summarise_document(b)["type"] or CANNOT_TELL_LABEL)
        for a, b in document_pairs
    ]
    change_counts = Counter(type_pair for type_pair in type_pairs if type_pair[0] != type_pair[1])
    sorted_changes = sorted(
        change_counts.items(), key=lambda type_pair_count: (-type_pair_count[1], type_pair_count[0])
    )
    return pd.DataFrame(
        [(*type_pair, document_count) for type_pair, document_count in sorted_changes],
        columns=["type_a", "type_b", "documents"],
    )


def _tabulate_versions(document_pairs: Sequence[tuple[DocumentRecord, DocumentRecord]]) -> pd.DataFrame:
    sides = [list(dict.fromkeys(tuple(pair[side].versions.items()) for pair in document_pairs)) for side in (0, 1)]
    names = dict.fromkeys(name for versions in (*sides[0], *sides[1]) for name, _ in versions)
    rows = [
        (
            name,
            *(
                ", ".join(dict.fromkeys(dict(versions)[name] for versions in side if name in dict(versions)))
                for side in sides
            ),
        )
        for name in names
    ]
    return pd.DataFrame(rows, columns=["of", "a", "b"], dtype=object)


def _tabulate_effort(document_pairs: Sequence[tuple[DocumentRecord, DocumentRecord]]) -> pd.DataFrame:
    timed_seconds = [
        (a.processing_seconds, b.processing_seconds)
        for a, b in document_pairs
        if a.processing_seconds is not None and b.processing_seconds is not None
    ]
    documents_a, documents_b = [a for a, _ in document_pairs], [b for _, b in document_pairs]
    rows = [
        (
            "calls",
            sum(document.call_count for document in documents_a),
            sum(document.call_count for document in documents_b),
        ),
        (
            "tokens",
            sum(document.token_count for document in documents_a),
            sum(document.token_count for document in documents_b),
        ),
        ("cost_usd", _sum_costs(documents_a), _sum_costs(documents_b)),
        ("seconds", sum(a for a, _ in timed_seconds), sum(b for _, b in timed_seconds)),
    ]
    return pd.DataFrame(rows, columns=["measure", "a", "b"], dtype=object)


def _sum_costs(documents: Sequence[DocumentRecord]) -> Decimal | None:
    costs = [priced.cost_usd for priced in documents]
    return None if None in costs else sum((priced for priced in costs if priced is not None), Decimal(0))


# ---------------------------------------------------------------------------------------------------------------------
# Which is right


def _score_pair_against_truth(document_a: DocumentRecord, document_b: DocumentRecord) -> dict[str, Any]:
    true_types, true_segmentations = (
        _collect_truths(document_a, document_b, "dominant_type"),
        _collect_truths(document_a, document_b, "segments"),
    )
    true_type, true_segments = _get_agreed_truth(true_types), _get_agreed_truth(true_segmentations)
    merged_true_segments = _get_agreed_truth(
        {tuple(merge_same_type_neighbours(candidate)) for candidate in true_segmentations}
    )
    is_disputed = len(true_types) > 1 or len(true_segmentations) > 1
    return {
        "truth": true_type,
        "right_a": None
        if true_type is None
        else document_a.agent_labels is not None and document_a.agent_labels.dominant_type == true_type,
        "right_b": None
        if true_type is None
        else document_b.agent_labels is not None and document_b.agent_labels.dominant_type == true_type,
        "true_segments": None if true_segments is None else format_typed_page_ranges(true_segments),
        "segments_right_a": None
        if true_segments is None
        else _has_exact_segments(document_a.agent_labels, true_segments),
        "segments_right_b": None
        if true_segments is None
        else _has_exact_segments(document_b.agent_labels, true_segments),
        "segments_merged_right_a": None
        if merged_true_segments is None
        else _has_exact_segments(_merge_same_type_segments(document_a.agent_labels), merged_true_segments),
        "segments_merged_right_b": None
        if merged_true_segments is None
        else _has_exact_segments(_merge_same_type_segments(document_b.agent_labels), merged_true_segments),
        "truth_from": "disputed" if is_disputed else _determine_truth_origin(document_a, document_b),
        "simulated": int(
            any(candidate is not None and candidate.is_simulated for candidate in (document_a.truth, document_b.truth))
        ),
    }


def _collect_truths(document_a: DocumentRecord, document_b: DocumentRecord, part: LabelPart) -> set[Any]:
    """Collect the different true labels that two records of a document have.

    If a file of labels supplies a truth, reviews are ignored.
    """
    vouched_truths = [truth for truth in (document_a.truth, document_b.truth) if truth and truth.is_vouched(part)]
    gold_truths = [truth for truth in vouched_truths if truth.source == "GOLD"]
    return {
        truth.labels.dominant_type if part == "dominant_type" else sort_typed_page_ranges(truth.labels.segments)
        for truth in gold_truths or vouched_truths
    }


def _get_agreed_truth(truths: AbstractSet[Any]) -> Any:
    """Return the only truth; None if there is none or several contradict each other."""
    return next(iter(truths)) if len(truths) == 1 else None


def _merge_same_type_segments(agent_labels: DocumentLabels | None) -> DocumentLabels | None:
    """Return the labels with neighbouring segments of one type merged (ruling 12)."""
    return agent_labels and replace(agent_labels, segments=tuple(merge_same_type_neighbours(agent_labels.segments)))


def _has_exact_segments(agent_labels: DocumentLabels | None, true_segments: Sequence[TypedPageRange]) -> bool:
    """Return True if the segments equal the true ones in pages and types.

    False without an answer.
    """
    return agent_labels is not None and is_exact_segmentation(true_segments, agent_labels.segments, compare_types=True)


def _determine_truth_origin(document_a: DocumentRecord, document_b: DocumentRecord) -> str:
    """Say whose reviews supply the truth.

    Of two runs of one folder: those whose answer the experts saw.
    """
    known = [document for document in (document_a, document_b) if document.truth is not None]
    if any(document.truth is not None and document.truth.source == "GOLD" for document in known):
        return "given"
    seen = [document for document in known if document.is_answer_shown] or known
    if len(seen) == 1:
        return "A" if seen[0] is document_a else "B"
    return "both" if seen else ""


def _compare_accuracy(rows: Sequence[Mapping[str, Any]], level: ErrorLevel) -> PairedAccuracy:
    return compare_paired_accuracy(
        [correctness for row in rows if (correctness := _get_correctness(row, level)) is not None]
    )


def _get_correctness(row: Mapping[str, Any], level: ErrorLevel) -> tuple[bool, bool] | None:
    is_right_a, is_right_b = (row[f"{_CORRECTNESS_COLUMNS[level]}_{side}"] for side in "ab")
    return None if is_right_a is None else (is_right_a, is_right_b)


# ---------------------------------------------------------------------------------------------------------------------
# Over all documents


def _choose_sampling_run(document_pairs: Sequence[tuple[DocumentRecord, DocumentRecord]]) -> Literal["A", "B"]:
    """Choose the run with more reviewed documents, whose probabilities are used.

    The draws of the two runs are not independent, so their probabilities cannot be combined.
    """
    reviewed_count_a, reviewed_count_b = (
        sum(document_pair[side].has_expert_action for document_pair in document_pairs) for side in (0, 1)
    )
    return "B" if reviewed_count_b > reviewed_count_a else "A"


def _build_paired_document(
    document_pair: tuple[DocumentRecord, DocumentRecord],
    row: Mapping[str, Any],
    sampling_run: Literal["A", "B"],
    level: ErrorLevel,
) -> PairedDocument:
    sampling_document = document_pair["AB".index(sampling_run)]
    is_surely_reviewed = is_outside_random_draw(sampling_document) or any(
        document.truth is not None and document.truth.source == "GOLD" for document in document_pair
    )
    answer_a, answer_b = (_get_level_answer(document.agent_labels, level) for document in document_pair)
    return PairedDocument(
        _get_correctness(row, level),
        answer_a == answer_b,
        1.0 if is_surely_reviewed else sampling_document.review_probability,
        sampling_document.has_expert_action,
    )


def _get_level_answer(agent_labels: DocumentLabels | None, level: ErrorLevel) -> Any:
    """Return a run's answer at this level in comparable form; None if there is none."""
    if agent_labels is None or level == "type":
        return agent_labels and agent_labels.dominant_type
    return (
        sort_typed_page_ranges(
            merge_same_type_neighbours(agent_labels.segments) if level == "segments merged" else agent_labels.segments
        )
        or None
    )


def _convert_overall_to_json(accuracies: OverallAccuracyComparison) -> dict[str, Any]:
    estimates = {"a": accuracies.accuracy_a, "b": accuracies.accuracy_b, "difference": accuracies.difference}
    return {
        "population": accuracies.population_size,
        "documents": accuracies.observed_count,
        "missing": accuracies.missing_count,
        **{key: estimate._asdict() for key, estimate in estimates.items()},
    }


def _convert_paired_to_json(paired_accuracy: PairedAccuracy) -> dict[str, Any]:
    return {
        "documents": paired_accuracy.document_count,
        "both": paired_accuracy.both_right,
        "only_a": paired_accuracy.only_a_right,
        "only_b": paired_accuracy.only_b_right,
        "neither": paired_accuracy.neither_right,
        "discordant": paired_accuracy.discordant_count,
        "p_value": paired_accuracy.p_value,
        "difference": paired_accuracy.difference._asdict(),
        "verdict": paired_accuracy.describe_winner(),
    }
