"""Monitoring of field extraction over an output folder, as tables.

Source: specification 002, section 8. The figures come from the stored extractions, and from the fields that experts
checked. Reports and forms without a decision are left out.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import pandas as pd
from pydantic import ValidationError

from evalkit.evaluation.intervals import FloatArray, RowNumbers, estimate_by_bootstrap, estimate_proportion
from evalkit.extraction.clinical.clinical_rules import get_base_field_name
from evalkit.extraction.extraction_schema import NOT_PRESENT_VALUE, Extraction, Extractions
from evalkit.extraction.report_extraction import LOOP_METRICS, MIN_THRESHOLD_MET_RATE
from evalkit.issue import IssueSeverity
from evalkit.review import EXTRACTION_SUFFIX, ExtractedFields, FieldsGroundTruth, format_field_value, read_extractions
from evalkit.review.field_answers import find_changed_fields, split_field_key_to_index_and_name
from evalkit.review.ground_truth import read_json_unless_missing_or_torn
from evalkit.store import EXTRACTIONS_FOLDER, OutputFolder, ground_truth_file_name

_FIELD_CHANGE_COLUMNS = ("doc_id", "template", "pages", "field", "value_a", "value_b")


def read_all_extractions(output_folder: OutputFolder) -> list[Extractions]:
    """Read all stored extractions by document; StoreError names a damaged file."""
    names = output_folder.list_json_files(EXTRACTIONS_FOLDER)
    return [read_extractions(output_folder, name.rpartition("/")[2].removesuffix(".json")) for name in names]


def list_judged_extractions(documents: Iterable[Extractions]) -> list[tuple[Extractions, Extraction]]:
    """List the reports and forms with a decision, each with its document."""
    return [
        (document, extraction) for document in documents for extraction in document.extractions if extraction.decision
    ]


def tabulate_shares(judged: Sequence[tuple[Extractions, Extraction]]) -> pd.DataFrame:
    """Tabulate shares of accepted reports and of attempts, with intervals."""
    extractions = [extraction for _, extraction in judged]
    counts = {
        "met the threshold": sum(extraction.met_threshold for extraction in extractions),
        "accepted": sum(extraction.decision == "AUTO_ACCEPT" for extraction in extractions),
    }
    for number, count in sorted(Counter(extraction.iterations for extraction in extractions).items()):
        counts[f"ended after {number} attempt{'s' * (number != 1)}"] = count
    rows = [(measure, estimate_proportion(count, len(extractions))) for measure, count in counts.items()]
    return pd.DataFrame(rows, columns=["measure", "share"])


def tabulate_attempts(judged: Sequence[tuple[Extractions, Extraction]]) -> pd.DataFrame:
    """Tabulate mean score and gain of each attempt, the gain with its interval."""
    histories = [extraction.history for _, extraction in judged]
    rows = []
    for number in range(1, max(map(len, histories), default=0) + 1):
        records = [history[number - 1] for history in histories if len(history) >= number]
        scores = [record.score for record in records if record.score is not None]
        gains = np.array([record.improvement for record in records if record.improvement is not None])
        gain = estimate_by_bootstrap(partial(_average_rows, gains), len(gains), seed=number, value_range=(-1.0, 1.0))
        rows.append((number, len(records), np.mean(scores) if scores else None, gain if len(gains) else None))
    return pd.DataFrame(rows, columns=["attempt", "reports and forms", "mean_score", "gain"])


def _average_rows(numbers: FloatArray, rows: RowNumbers) -> float:
    return float(numbers[rows].mean())


def tabulate_field_errors(output_folder: OutputFolder, documents: Sequence[Extractions]) -> pd.DataFrame:
    """Tabulate, by template and field, open doubts and the share of wrong values.

    Wrong: values that experts changed, of those that they checked. Fields without a doubt or check are left out.
    """
    extracted, doubted, checked, wrong = (Counter[tuple[str, str]]() for _ in range(4))
    for document in documents:
        judged = [extraction for _, extraction in list_judged_extractions([document])]
        for extraction in judged:
            open_issues = (issue for issue in extraction.issues if issue.status == "open")
            doubts = {issue.location for issue in open_issues if issue.severity is not IssueSeverity.MINOR}
            for counts, names in ((extracted, extraction.fields), (doubted, doubts)):
                counts.update({(extraction.template, get_base_field_name(name)) for name in names})
        if truth := _read_expert_fields(output_folder, document.doc_id):
            changed = find_changed_fields(list(map(ExtractedFields.from_extraction, judged)), truth.ground_truth_fields)
            for key in {*changed, *truth.vouched}:
                index, name = split_field_key_to_index_and_name(key)
                if index < len(judged):
                    checked[judged[index].template, get_base_field_name(name)] += 1
                    wrong[judged[index].template, get_base_field_name(name)] += key in changed
    rows = [
        (*key, count, doubted[key], estimate_proportion(wrong[key], checked[key]))
        for key, count in sorted(extracted.items())
        if doubted[key] or checked[key]
    ]
    return pd.DataFrame(rows, columns=["template", "field", "reports and forms", "doubted", "wrong"])


def _read_expert_fields(output_folder: OutputFolder, doc_id: str) -> FieldsGroundTruth | None:
    stored = read_json_unless_missing_or_torn(output_folder, ground_truth_file_name(doc_id + EXTRACTION_SUFFIX))
    try:
        truth = FieldsGroundTruth.model_validate(stored)
    except ValidationError:
        return None
    return truth if truth.ground_truth_source != "AUTO_ACCEPTED" else None


def list_alerts(judged: Sequence[tuple[Extractions, Extraction]]) -> list[tuple[str, str, list[str]]]:
    """List metrics beyond their threshold: name, meaning, and ids of the documents."""
    alerts = []
    for metric in LOOP_METRICS:
        doc_ids = [
            document.doc_id
            for document, extraction in judged
            if any(map(metric.is_alert, metric.measure(extraction, _get_seconds(document))))
        ]
        if doc_ids:
            alerts.append((metric.name, metric.alert_message, list(dict.fromkeys(doc_ids))))
    missed = [document.doc_id for document, extraction in judged if not extraction.met_threshold]
    if len(missed) > (1 - MIN_THRESHOLD_MET_RATE) * len(judged):
        meaning = f"less than {MIN_THRESHOLD_MET_RATE:.0%} of the reports and forms met the threshold"
        alerts.append(("marc.threshold_met_rate", meaning, list(dict.fromkeys(missed))))
    return alerts


def _get_seconds(document: Extractions) -> float:
    return sum(document.times.get("seconds", {}).get(step, 0.0) for step in ("extracting", "asking"))


def compare_fields(
    documents_a: Iterable[Extractions], documents_b: Iterable[Extractions]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare the fields of files that two runs have in common.

    Reports and forms are matched by file, template and pages. Returns two tables: number of reports and forms by decision
    in A (rows) and in B (columns), "none" if not judged or not in that run; and the fields with another status or value.
    """
    side_a, side_b = (
        {
            (document.sha256, extraction.template, extraction.start_page, extraction.end_page): (
                document.doc_id,
                extraction,
            )
            for document in documents
            for extraction in document.extractions
        }
        for documents in (documents_a, documents_b)
    )
    common_files = {key[0] for key in side_a} & {key[0] for key in side_b}
    decisions, changes = [], []
    for key in sorted(key for key in {*side_a, *side_b} if key[0] in common_files):
        sides = [side.get(key) for side in (side_a, side_b)]
        doc_id = next(doc_id for doc_id, _ in filter(None, sides))
        decisions.append([(side and side[1].decision) or "none" for side in sides])
        fields = [side[1].fields if side else {} for side in sides]
        for name in dict.fromkeys([*fields[0], *fields[1]]):
            values = [format_field_value(values.get(name, NOT_PRESENT_VALUE)) for values in fields]
            if values[0] != values[1]:
                changes.append((doc_id, key[1], f"{key[2]}-{key[3]}", name, *values))
    decision_frame = pd.DataFrame(decisions, columns=["a", "b"], dtype=object)
    return pd.crosstab(decision_frame["a"], decision_frame["b"]), pd.DataFrame(
        changes, columns=list(_FIELD_CHANGE_COLUMNS)
    )
