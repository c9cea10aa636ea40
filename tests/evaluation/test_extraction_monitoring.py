"""Figures of extracted fields over all documents, and fields in which two runs differ."""

from __future__ import annotations

from evalkit.evaluation.extraction_monitoring import (
    compare_fields,
    list_alerts,
    list_judged_extractions,
    tabulate_attempts,
    tabulate_shares,
)
from evalkit.extraction.extraction_schema import Extraction, Extractions, FieldStatus, FieldValue, IterationRecord


def extraction(*scores: float, grade: str = "2", decision: str | None = "AUTO_ACCEPT") -> Extraction:
    """A pathology report on page 1, with the score of each attempt."""
    history = tuple(
        IterationRecord(
            iteration=number, template="pathology", score=score,
            improvement=None if number == 1 else round(score - scores[number - 2], 4),
        )
        for number, score in enumerate(scores, 1)
    )  # fmt: skip
    value = FieldValue(status=FieldStatus.FOUND, value=grade, raw=grade, page=1)
    return Extraction(
        template="pathology", document_type="Pathology Report", start_page=1, end_page=1, score=scores[-1],
        confidence=scores[-1], met_threshold=scores[-1] >= 0.95, stopped_reason="", iterations=len(scores),
        history=history, decision=decision, fields={"grade": value},
    )  # fmt: skip


def document(name: str, *extractions: Extraction, sha256: str | None = None) -> Extractions:
    return Extractions(
        doc_id=name, sha256=sha256 or name, fingerprint="", extractions=extractions, model="embedded", reader="local"
    )


DOCUMENTS = [
    document("a", extraction(0.7, 0.9, 0.97)),
    document("b", extraction(0.99), extraction(1.0, decision=None)),
    document("c", extraction(0.6, 0.61, decision="ESCALATE_TO_SME")),
]
JUDGED = list_judged_extractions(DOCUMENTS)


def test_shares_leave_out_what_was_not_judged() -> None:
    shares = {row.measure: (row.share.value, row.share.n) for row in tabulate_shares(JUDGED).itertuples()}
    assert shares["met the threshold"] == (2 / 3, 3)
    assert shares["accepted"] == (2 / 3, 3)
    assert shares["ended after 3 attempts"] == (1 / 3, 3)


def test_gain_by_attempt_has_an_interval() -> None:
    rows = tabulate_attempts(JUDGED)
    assert list(rows["reports and forms"]) == [3, 2, 1]
    assert rows["gain"][0] is None
    assert round(rows["gain"][1].value, 4) == 0.105
    assert rows["gain"][1].low <= 0.105 <= rows["gain"][1].high


def test_alerts_name_the_documents() -> None:
    alerts = {metric: doc_ids for metric, _, doc_ids in list_alerts(JUDGED)}
    assert alerts["marc.final_score"] == ["c"]
    assert alerts["marc.improvement_per_iteration"] == ["c"]
    assert alerts["marc.threshold_met_rate"] == ["c"]
    assert "marc.iteration_count" not in alerts


def test_fields_that_differ_between_runs_are_listed() -> None:
    other = [
        document("z", extraction(0.99, grade="3", decision="ESCALATE_TO_SME"), sha256="a"),
        document("only", extraction(0.99)),
    ]
    decisions, changes = compare_fields(DOCUMENTS, other)
    assert decisions.loc["AUTO_ACCEPT", "ESCALATE_TO_SME"] == 1
    assert decisions.to_numpy().sum() == 1
    assert changes.to_numpy().tolist() == [["a", "pathology", "1-1", "grade", "2", "3"]]
