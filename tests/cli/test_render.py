"""Summaries as texts and tables, without a process."""

from types import SimpleNamespace

import pytest

from evalkit.cli.render import (
    format_usage,
    render_attention_checks,
    render_doctor_checks,
    render_purge_preview,
    render_queue,
    render_run_summary,
)
from evalkit.cli.terminal import ConsoleTable
from evalkit.doctor import DoctorCheck
from evalkit.llm.model import Usage
from evalkit.pipeline import RunSummary


class Summary(SimpleNamespace):
    headline = RunSummary.headline


def summarise(count: int) -> RunSummary:
    return Summary(  # type: ignore[return-value]
        documents=[
            SimpleNamespace(
                doc_id=f"doc{number}",
                pages=2,
                decision="AUTO_ACCEPT" if number else None,
                decision_rule="7",
                dominant_type="Clinical Note",
                blocker=0,
                major=0,
                minor=1,
                raised_by=("V2", "V3"),
                attempts=1 + number,
                resumed=number == 1,
            )
            for number in range(count)
        ],
        by_agent={"V2": Usage(calls=1, input_tokens=1200, output_tokens=30, cost_usd="0.5")},
        skipped=(),
        run="baseline",
        kept_classifications=None,
        weights_note=None,
        label_hint=None,
        setting_hint="a hint",
        timings=SimpleNamespace(format_timing_line=lambda seconds: f"{seconds} s"),
        seconds=3,
        output="out",
    )


def test_a_run_has_a_row_a_document_and_counts_decisions() -> None:
    table, *lines = render_run_summary(summarise(3), lambda output: f"evalkit queue --output {output}")
    assert isinstance(table, ConsoleTable)
    assert [row[:3] for row in table.rows] == [
        ("doc0", "2", "NOT READ"),
        ("doc1", "2", "AUTO_ACCEPT after 1 repair"),
        ("doc2", "2", "AUTO_ACCEPT after 2 repairs"),
    ]
    assert table.rows[0][3:] == ("7", "Clinical Note", "0/0/1", "V2, V3")
    assert lines == [
        "3 documents: 2 AUTO_ACCEPT, 1 NOT READ; 1 were finished before",
        "V2: 1 call, 1,200 tokens in, 30 out, 0.5000 US dollars",
        "a hint",
        "3 s",
        "Results in out, run baseline. Waiting cases: evalkit queue --output out",
    ]


def test_a_long_run_is_counted_only() -> None:
    blocks = list(render_run_summary(summarise(61), lambda _: "evalkit queue"))
    assert all(isinstance(block, str) for block in blocks)
    assert blocks[0] == "61 documents: 60 AUTO_ACCEPT, 1 NOT READ; 1 were finished before"


def test_a_price_may_be_unknown() -> None:
    usage = Usage(calls=2, input_tokens=1, output_tokens=0, cost_usd=None)
    assert format_usage(usage) == "2 calls, 1 tokens in, 0 out, price unknown"


def test_an_empty_queue_says_so() -> None:
    assert list(render_queue([])) == ["No cases are waiting for an expert."]
    (line,) = render_queue([], lost_count=2)
    assert line.startswith("2 cases cannot be listed")


@pytest.mark.parametrize(("requested", "ending"), [(1, "among the other cases"), (2, "yet (2 were requested)")])
def test_fewer_attention_checks_than_requested_are_explained(requested: int, ending: str) -> None:
    _, line, _ = render_attention_checks([("case", "doc", "type", "fault")], requested)
    assert str(line).endswith(ending)


@pytest.mark.parametrize("is_confirmable", [True, False])
def test_a_purge_preview_names_files_and_the_way_on(is_confirmable: bool) -> None:
    blocks = list(render_purge_preview({"a": ["results/a.json"]}, is_confirmable=is_confirmable))
    hint = "; give --yes to remove them" if is_confirmable else ""
    assert blocks == ["results/a.json", f"1 document would be purged; nothing was removed{hint}"]


def test_a_check_has_its_remedy_only_if_it_fails() -> None:
    checks = [DoctorCheck("python", True, "3.12", "Install it."), DoctorCheck("OCR", False, "none", "Install it.")]
    (table,) = render_doctor_checks(checks)
    assert isinstance(table, ConsoleTable)
    assert table.rows == [("ok", "python", "3.12", ""), ("missing", "OCR", "none", "Install it.")]
