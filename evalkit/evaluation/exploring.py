"""Filtering of a study's documents, and the figures that the explorer shows.

A choice is a filter for each of some properties; all must hold. Each part of the screen counts the documents that
pass all filters but its own, so that the other values of a filter can be seen and chosen.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from evalkit.core.data_frames import convert_to_records
from evalkit.document_types import list_type_names
from evalkit.evaluation.confidence_calibration import tabulate_reliability
from evalkit.evaluation.headline_estimates import TYPE_HEADLINES, estimate_headline
from evalkit.evaluation.metrics import CANNOT_TELL, find_boundaries, list_page_types, tabulate_confusion
from evalkit.evaluation.production import get_production_type, get_true_type
from evalkit.evaluation.study import DocumentLabels, DocumentRecord, Study
from evalkit.evaluation.verifier_performance import summarise_rule_cases, tabulate_rule_cases

#: Property of a document → its name on the screen, of those by which documents are sliced.
SLICES = {
    "source": "Source folder",
    "sender": "Sender",
    "form": "Scan or text",
    "pages": "Pages",
    "language": "Language",
    "reader": "Reader",
    "model": "Model",
    "decision": "Decision",
    "review": "Review",
}
#: Name of a comparison → the property that is the reference (rows), and the one that is judged (columns).
COMPARISONS = {
    "program": ("truth", "program"),
    "production": ("truth", "production"),
    "both": ("program", "production"),
}
#: All properties that a filter can name.
FILTERS = (*SLICES, "truth", "program", "production", "confidence", "rule")

_UNKNOWN = "unknown"
_PAGE_GROUPS = {1: "1", 5: "2–5", 20: "6–20", 100: "21–100"}
_MOST_PAGES = "over 100"
_DECISIONS = {"AUTO_ACCEPT": "accepted", "ESCALATE_TO_SME": "escalated"}
_BIN_COUNT = 10
_MAX_VALUES = 12
_ROWS_PER_PAGE = 25

_BoolArray = npt.NDArray[np.bool_]


class PageDifference(NamedTuple):
    """A page on which two answers about a document differ."""

    page: int
    sentence: str


class StudyExplorer:
    """The documents of a study, with figures for each combination of filters."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.frame = tabulate_properties(study)
        cases = tabulate_rule_cases(study)
        cases["rule"] = _name_rules(cases)
        self._rule_cases = cases
        self._positions_by_rule = {rule: positions.unique() for rule, positions in cases.groupby("rule")["position"]}

    def select(self, filters: Mapping[str, str], *, ignored: Sequence[str] = ()) -> _BoolArray:
        """Mark the documents that pass all filters except the ignored filters."""
        chosen: _BoolArray = np.ones(len(self.frame), dtype=bool)
        for name, value in filters.items():
            if name in ignored:
                continue
            if name == "rule":
                is_raised = np.zeros(len(self.frame), dtype=bool)
                is_raised[self._positions_by_rule.get(value, [])] = True
                chosen &= is_raised
            else:
                chosen &= (self.frame[name] == value).to_numpy()
        return chosen

    def list_doc_ids(self, filters: Mapping[str, str], comparison: str) -> list[str]:
        """List the filtered doc_ids, documents with different answers first."""
        positions = self._sort_errors_first(np.flatnonzero(self.select(filters)), comparison)
        return self.frame["doc_id"].iloc[positions].tolist()

    def answer(self, filters: Mapping[str, str], comparison: str, page: int = 0) -> dict[str, Any]:
        """Compute what the screen shows for these filters; list pages count from 0."""
        reference, judged = COMPARISONS[comparison]
        matching = np.flatnonzero(self.select(filters))
        last_page = max(len(matching) - 1, 0) // _ROWS_PER_PAGE
        page = min(max(page, 0), last_page)
        rows = self.frame.iloc[self._sort_errors_first(matching, comparison)]
        return {
            "total": len(self.frame),
            "matching": len(matching),
            "shares": self._measure_shares(matching),
            "slices": [self._count_slice(name, filters) for name in SLICES],
            "matrix": self._count_matrix(filters, reference, judged),
            "rules": self._summarise_rules(filters),
            "reliability": self._measure_reliability(filters),
            "page": page,
            "page_count": last_page + 1,
            "documents": convert_to_records(rows.iloc[page * _ROWS_PER_PAGE : (page + 1) * _ROWS_PER_PAGE]),
        }

    def _sort_errors_first(self, positions: npt.NDArray[np.intp], comparison: str) -> npt.NDArray[np.intp]:
        reference, judged = (self.frame[name].to_numpy(object)[positions] for name in COMPARISONS[comparison])
        is_known = (reference != _UNKNOWN) & (judged != _UNKNOWN)
        return positions[np.argsort(np.where(is_known, np.where(reference != judged, 0, 2), 1), kind="stable")]

    def _measure_shares(self, positions: npt.NDArray[np.intp]) -> list[dict[str, Any]]:
        """Estimate as the report does how often each system is right about the chosen."""
        documents = [self.study.documents[position] for position in positions]
        shares = []
        for name, (is_included, measure) in TYPE_HEADLINES.items():
            headline = estimate_headline(name, "", list(filter(is_included, documents)), measure)
            value, low, high, *_ = headline.estimate
            shares.append({"of": name, "value": value, "low": low, "high": high, "n": headline.reviewed_count})
        return shares

    def _count_slice(self, name: str, filters: Mapping[str, str]) -> dict[str, Any]:
        counts = self.frame[name][self.select(filters, ignored=[name])].value_counts(sort=False)
        if name != "pages":
            counts = counts.sort_values(ascending=False, kind="stable")
        counts = counts[counts > 0]
        shown = counts[:_MAX_VALUES]
        if (value := filters.get(name)) is not None and value not in shown.index:
            shown = pd.concat([shown, pd.Series({value: counts.get(value, 0)})])
        return {
            "name": name,
            "label": SLICES[name],
            "values": [[str(value), int(count)] for value, count in shown.items()],
            "more": max(len(counts) - _MAX_VALUES, 0),
            "is_varied": self.frame[name].nunique() > 1,
        }

    def _count_matrix(self, filters: Mapping[str, str], reference: str, judged: str) -> dict[str, Any]:
        frame = self.frame[self.select(filters, ignored=[reference, judged])]
        known = frame[(frame[reference] != _UNKNOWN) & (frame[judged] != _UNKNOWN)]
        table = tabulate_confusion(known[reference].tolist(), known[judged].tolist(), list_type_names())
        table = table.drop(columns=table.columns[-1])  # no answer is the type "cannot tell" here
        if CANNOT_TELL not in table.columns:
            table[CANNOT_TELL] = 0
        return {
            "reference": reference,
            "judged": judged,
            "rows": table.index.tolist(),
            "columns": table.columns.tolist(),
            "counts": table.to_numpy(dtype=int).tolist(),
            "unknown": len(frame) - len(known),
        }

    def _summarise_rules(self, filters: Mapping[str, str]) -> list[dict[str, Any]]:
        is_chosen = self.select(filters, ignored=["rule"])
        table = summarise_rule_cases(self._rule_cases[is_chosen[self._rule_cases["position"].to_numpy(dtype=int)]])
        table["rule"] = _name_rules(table)
        table = table.sort_values(["wrong", "raised"], ascending=False, kind="stable")
        names = (
            "rule",
            "origin",
            "documents",
            "judged",
            "precision",
            "low",
            "high",
            "wrong",
            "alone",
            "validated",
            "minutes",
            "verdict",
        )
        return convert_to_records(table[list(names)])

    def _measure_reliability(self, filters: Mapping[str, str]) -> list[dict[str, Any]]:
        frame = self.frame[self.select(filters, ignored=["confidence"])]
        known = frame[(frame["truth"] != _UNKNOWN) & frame["stated"].notna()]
        is_right = (known["truth"] == known["program"]).tolist()
        table = tabulate_reliability(known["stated"].tolist(), is_right, bin_count=_BIN_COUNT)
        table["bin"] = [_name_bin(low, high) for low, high in zip(table["low"], table["high"], strict=True)]
        return convert_to_records(table)


def tabulate_properties(study: Study) -> pd.DataFrame:
    """Tabulate the properties by which documents are filtered, a row each.

    Columns: ``doc_id``, ``file``, ``page_count``, ``stated`` (the program's confidence, 0..1), and as text each property
    of ``FILTERS`` but ``rule``; a value that is not known is ``unknown``.
    """
    rows = [_describe_document(document) for document in study.documents]
    frame = pd.DataFrame(rows, columns=["doc_id", "file", "page_count", "stated", *FILTERS[:-1]])
    answers = ["truth", "program", "production"]
    other_types = sorted(
        {str(name) for name in pd.unique(frame[answers].to_numpy().ravel())} - {"", *list_type_names()}
    )
    orders = {name: [*list_type_names(), *other_types] for name in answers}
    orders["pages"] = [*_PAGE_GROUPS.values(), _MOST_PAGES]
    for name in FILTERS[:-1]:
        values = frame[name].mask(frame[name] == "", _UNKNOWN)
        frame[name] = pd.Categorical(values, [*orders[name], _UNKNOWN] if name in orders else None)
    return frame.astype({"stated": float})


def _describe_document(document: DocumentRecord) -> tuple[Any, ...]:
    agent_labels, stratum = document.agent_labels, document.stratum
    confidence = agent_labels.confidence if agent_labels else None
    is_valid = confidence is not None and 0 <= confidence <= 1
    edge = min(max(int(np.ceil((confidence or 0) * _BIN_COUNT)), 1), _BIN_COUNT) if is_valid else 0
    return (
        document.doc_id,
        document.filename,
        document.page_count,
        confidence if is_valid else None,
        document.source_folder,
        document.sender,
        document.page_form,
        _name_page_group(document.page_count),
        document.language,
        stratum.reader if stratum else "",
        stratum.model if stratum else "",
        _DECISIONS.get(document.decision or "", "not read"),
        document.truth_status,
        get_true_type(document) or (CANNOT_TELL if document.truth_status == "undeterminable" else ""),
        (agent_labels and agent_labels.dominant_type) or CANNOT_TELL,
        get_production_type(document) or "",
        _name_bin((edge - 1) / _BIN_COUNT, edge / _BIN_COUNT) if is_valid else "",
    )


def _name_page_group(page_count: int | None) -> str:
    if not page_count:
        return ""
    return next((name for most, name in _PAGE_GROUPS.items() if page_count <= most), _MOST_PAGES)


def _name_bin(low: float, high: float) -> str:
    return f"{100 * low:.0f}–{100 * high:.0f} %"


def _name_rules(frame: pd.DataFrame) -> list[str]:
    """Name each row's rule by its code.

    The agent comes first, unless the code begins with it.
    """
    return [
        code if code.lower().startswith(f"{agent}-".lower()) else f"{agent} {code}"
        for agent, code in zip(frame["agent"], frame["code"], strict=True)
    ]


def list_page_differences(document: DocumentRecord, comparison: str) -> list[PageDifference]:
    """List the pages on which two answers about a document differ, in page order.

    Without known pages of both, or if these agree, and the main types differ, the first page with the judged type.
    """
    names = COMPARISONS[comparison]
    reference, judged = (_get_labels(document, name) for name in names)
    page_count = document.page_count or 0
    if reference is None or judged is None or not page_count:
        return []
    titles = {"truth": "the truth", "program": "the program", "production": "production"}
    first, second = (titles[name] for name in names)
    differences = []
    if reference.segments and judged.segments:
        spans = reference.segments, judged.segments
        type_pairs = zip(*(list_page_types(own_spans, page_count) for own_spans in spans), strict=True)
        reference_starts, judged_starts = map(find_boundaries, spans)
        for page, (reference_type, judged_type) in enumerate(type_pairs, 1):
            if reference_type != judged_type:
                words = f"{second} says {judged_type or CANNOT_TELL}, {first} {reference_type or CANNOT_TELL}"
            elif page in reference_starts ^ judged_starts:
                by, other = (first, second) if page in reference_starts else (second, first)
                words = f"a document begins here for {by}, not for {other}"
            else:
                continue
            differences.append(PageDifference(page, f"Page {page}: {words}."))
    if not differences and reference.dominant_type != judged.dominant_type:
        words = f"{second} calls the file {judged.dominant_type or CANNOT_TELL}, {first} {reference.dominant_type or CANNOT_TELL}"
        page_types = list_page_types((judged.segments or reference.segments), page_count)
        page = page_types.index(judged.dominant_type) + 1 if judged.dominant_type in page_types else 1
        differences.append(PageDifference(page, f"{words[0].upper()}{words[1:]}."))
    return differences


def _get_labels(document: DocumentRecord, name: str) -> DocumentLabels | None:
    if name == "truth":
        return document.truth.labels if document.truth and get_true_type(document) else None
    return document.agent_labels if name == "program" else document.production_labels
