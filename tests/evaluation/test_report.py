"""The report: every section from a real folder, written so that nothing in it can run, and marked where simulated."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from commands import evalkit_command
from evaluation.studies import GENOMIC, NOTE, OTHER, answer, document, escalated_document, labels, study, truth
from markupsafe import escape
from places import open_folder
from sklearn.metrics import f1_score
from statements.reviewing import break_template, build_sound_template, review_without_model, statement, wrong_dates
from typer.testing import CliRunner

from evalkit.cli import app
from evalkit.evaluation.confidence_calibration import measure_confidence_calibration
from evalkit.evaluation.document_type_scores import score_document_types
from evalkit.evaluation.intervals import estimate_proportion
from evalkit.evaluation.report import (
    EvaluationReport,
    _UpperBound,
    build_report,
    convert_report_to_json,
    format_cell,
    warn_about_learned_documents,
)
from evalkit.evaluation.reviewer_performance import (
    measure_expert_agreement,
    tabulate_reviewer_performance,
    tabulate_wrong_validations,
)
from evalkit.evaluation.sampling import draw_and_queue_sample
from evalkit.evaluation.segmentation_metrics import estimate_segmentation_measures
from evalkit.evaluation.study import Study, read_study
from evalkit.pipeline import RunSummary
from evalkit.pipeline.event_log import LoggedEvent
from evalkit.samples.simulated_experts import simulate_and_submit_reviews
from evalkit.store import template_review_file_name

NOW = "2026-01-01T00:00:00Z"
KEYS = [
    "processed",
    "headlines",
    "certificate",
    "drift",
    "types",
    "segments",
    "patients",
    "evidence",
    "production",
    "verifiers",
    "calibration",
    "doubts",
    "experts",
    "cost",
]


@pytest.fixture(scope="module")
def reviewed(demo_run: RunSummary, samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    output = tmp_path_factory.mktemp("reviewed") / "output"
    shutil.copytree(demo_run.output, output)
    draw_and_queue_sample(open_folder(output), 30, "type", seed="one", drawn_at=NOW)
    simulate_and_submit_reviews(open_folder(output), samples / "truth.csv")
    return read_study(output)


@pytest.fixture(scope="module")
def report_of_reviewed(reviewed: Study) -> EvaluationReport:
    return build_report(reviewed, made_at=NOW)


def test_documents_that_weights_were_learned_from_are_told() -> None:
    def log(kind: str) -> LoggedEvent:
        facts = {"cutoff": "2026-01-05T00:00:00Z"}
        return LoggedEvent(kind=kind, recorded_at=NOW, recorded_by="a", stratum="", facts=facts, prev_sha256=None)

    documents = [
        document(f"d{day}", truth=truth(), reviews=(answer(f"d{day}", submitted_at=f"2026-01-0{day}T00:00:00Z"),))
        for day in (2, 4, 6)
    ]
    old, new = documents, [replace(one, decided_at="2026-01-08T00:00:00Z") for one in documents]
    promoted, reverted = log("promoted"), log("promotion_reversed")
    for decided, events, count in (
        (old, (), 0), (new, (), 0), (old, (promoted,), 0), (new, (promoted,), 2), (new, (promoted, reverted), 0),
    ):  # fmt: skip
        warnings = warn_about_learned_documents(replace(study(*decided), events=events))
        assert [warning[:31] for warning in warnings] == [f"Learned: {count} of 3 reviewed documents"[:31]] * bool(
            count
        )


def test_patients_are_counted_by_source_folder(reviewed: Study, report_of_reviewed: EvaluationReport) -> None:
    (table,) = report_of_reviewed["patients"].tables
    (row,) = table.frame.to_dict("records")
    assert (row["files"], row["files with several patients"], row["pages of others"]) == (23, 1, 1)
    misfiled = next(one for one in reviewed.documents if one.doc_id == "misfiled_page")
    assert (row["source folder"], misfiled.patients_in_file, misfiled.pages_of_others) == ("samples", 2, 1)


def test_reviews_of_templates_have_a_section_where_there_are_any(reviewed: Study, tmp_path: Path) -> None:
    bundle = statement()
    for number, cycle in enumerate(review_without_model(break_template(bundle, wrong_dates), bundle).cycles, 1):
        open_folder(tmp_path).write_json(template_review_file_name("bank", number), cycle.model_dump(mode="json"))
    made = build_report(replace(reviewed, output=tmp_path), made_at=NOW)
    assert [one.key for one in made.sections] == [*KEYS, "templates"]
    section = made["templates"]
    assert section.about.startswith("1 reviews of templates in 2 attempts; 0 tokens in, 0 out, 0.0000 US dollars")
    shares = dict(section.tables[0].frame[["measure", "share"]].itertuples(index=False))
    assert shares["approved on the first attempt (first-pass approval)"] == estimate_proportion(0, 1)
    assert shares["approved within the retry limit (convergence)"] == estimate_proportion(1, 1)
    assert shares["sent to arbitration (arbitration rate)"] == estimate_proportion(1, 2)
    assert set(section.tables[1].frame["category"]) == {"date_format", "reconciliation_strategy"}
    made.write_html(tmp_path / "report.html")
    assert "Templates of bank statements" in (tmp_path / "report.html").read_text()


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data) -> None:
        self.words.append(data)


def test_all_sections_present_and_simulation_named_first(
    reviewed: Study, report_of_reviewed: EvaluationReport, tmp_path: Path
) -> None:
    made = report_of_reviewed
    assert [one.key for one in made.sections] == KEYS
    made.write_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    told = f"{len(reviewed.reviews)} of {len(reviewed.reviews)} reviews were made by a program"
    assert text.index(told) < text.index("Documents processed")
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o600
    page = Page(text)
    ids = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    assert ids == KEYS
    assert [attrs["href"] for tag, attrs in page.tags if tag == "a"] == [f"#{key}" for key in KEYS]
    assert sum(tag == "svg" for tag, _ in page.tags) >= 6


def test_the_report_needs_nothing_from_outside(report_of_reviewed: EvaluationReport, tmp_path: Path) -> None:
    report_of_reviewed.write_html(tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text())
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object"}
    for _, attrs in page.tags:
        for name in ("src", "href", "xlink:href"):
            assert attrs.get(name, "#").startswith("#")


def test_nothing_that_a_label_or_a_name_says_becomes_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    made = build_report(
        study(
            escalated_document(
                evil,
                truth=truth(evil, reviewer=evil),
                production_labels=labels(evil),
                agent_labels=labels(GENOMIC),
                decision_reason=evil,
            ),
            document("fine", truth=truth()),
        ),
        made_at=NOW,
    )
    made.write_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_every_figure_has_words_and_its_numbers_stay(report_of_reviewed: EvaluationReport, tmp_path: Path) -> None:
    report_of_reviewed.write_html(tmp_path / "report.html")
    markup = (tmp_path / "report.html").read_text()
    figures = [figure for section in report_of_reviewed.sections for figure in section.figures]
    assert len(figures) >= 10
    assert markup.count('role="img" aria-label="') == markup.count("<figure>") == len(figures)
    for section in report_of_reviewed.sections:
        assert all(figure.words for figure in section.figures) or section.tables
        folded = [table.caption for table in section.tables if table.is_folded]
        assert not folded or section.figures
        assert all(f"<summary>{escape(caption)}" in markup for caption in folded)
    assert [figure.caption.split(",")[0] for figure in report_of_reviewed["verifiers"].figures] == [
        "How often each rule is right",
        "Documents that only this rule escalated: was the review needed?",
        "Issues by agent and severity",
    ]


@pytest.mark.parametrize(
    "made",
    [
        (),
        (document("unseen"),),
        (escalated_document("waiting"),),
        (
            document(
                "broken",
                truth_status="unreadable",
                decision=None,
                agent_labels=None,
                review_probability=None,
                page_count=None,
            ),
        ),
        (escalated_document("null", agent_labels=None, truth=truth()),),
        (escalated_document("odd", agent_labels=labels(None), truth=truth(OTHER)),),
    ],
)
def test_a_folder_without_much_has_a_report_too(made, tmp_path: Path) -> None:
    report = build_report(study(*made), made_at=NOW)
    report.write_html(tmp_path / "report.html")
    for key in ("headlines", "verifiers", "calibration", "types", "segments", "experts", "cost"):  # a notebook's cells
        assert report[key]._repr_html_()


def test_a_section_is_a_notebooks_cell(report_of_reviewed: EvaluationReport) -> None:
    made = report_of_reviewed
    shown = made["headlines"]._repr_html_()
    assert "Type of the document right" in shown
    assert "<script" not in shown
    with pytest.raises(KeyError, match="headlines"):
        made["nothing"]


def test_the_figures_of_the_samples_are_those_counted_by_hand(
    reviewed: Study, report_of_reviewed: EvaluationReport
) -> None:
    shown = convert_report_to_json(report_of_reviewed)
    rows = {row["figure"]: row for row in shown["sections"][1]["tables"][0]["rows"]}
    known = [one for one in reviewed.reviewed_documents if one.truth.is_vouched("dominant_type")]
    right = sum(one.agent_labels.dominant_type == one.truth.labels.dominant_type for one in known)
    row = rows["Type of the document right"]
    assert row["estimate"]["value"] == pytest.approx(right / 23)
    archive = row["these documents only"]
    assert archive["high"] == pytest.approx((right + 1) / 23)  # one that nobody can tell
    assert row["estimate"]["high"] > archive["high"]
    assert row["estimate"]["low"] < archive["low"]
    assert row["reviewed only"]["value"] == pytest.approx(right / 22)
    json.dumps(rows)


def test_segments_are_measured_in_both_readings() -> None:
    made = study(
        escalated_document("cut", truth=truth(), agent_labels=labels(NOTE, (1, 1, NOTE), (2, 2, NOTE))),
        escalated_document(
            "right",
            truth=truth(GENOMIC, (1, 1, GENOMIC), (2, 4, NOTE)),
            agent_labels=labels(GENOMIC, (1, 1, GENOMIC), (2, 4, NOTE)),
            page_count=4,
        ),
    )
    by_name = estimate_segmentation_measures(made)
    assert by_name["documents with every segment right"][0].value == 0.5
    assert by_name["documents with every segment right"][1].value == 1.0
    assert by_name["boundaries, F1"][0].value == pytest.approx(2 / 3)
    assert by_name["pages with the right type, all together"][0].value == 1.0


def test_type_scores_equal_scikit_learn_and_are_weighted() -> None:
    made = [
        escalated_document("a", truth=truth(), agent_labels=labels(NOTE)),
        escalated_document("b", truth=truth(), agent_labels=labels(GENOMIC)),
    ]
    made += [
        escalated_document("c", truth=truth(GENOMIC), agent_labels=labels(None)),
        escalated_document("d", truth=truth(OTHER), agent_labels=labels(OTHER)),
    ]
    measures, type_scores, _ = score_document_types(study(*made))
    names = [NOTE, GENOMIC, OTHER]
    expected = f1_score([NOTE, NOTE, GENOMIC, OTHER], [NOTE, GENOMIC, "none", OTHER], labels=names, average="macro")
    macro_f1, reviewed_macro_f1 = measures["macro F1"]
    assert macro_f1.value == pytest.approx(expected, abs=1e-9)
    assert reviewed_macro_f1 == pytest.approx(expected, abs=1e-9)
    accuracy, reviewed_accuracy = measures["accuracy"]
    assert accuracy.value == reviewed_accuracy == 0.5
    assert {one.type_name: one.recall.value for one in type_scores}[GENOMIC] == 0.0
    drawn = document("e", truth=truth(), agent_labels=labels(GENOMIC), review_probability=0.25)
    accuracy, reviewed_accuracy = score_document_types(study(*made, drawn))[0]["accuracy"]
    assert (accuracy.value, reviewed_accuracy) == (pytest.approx(2 / 8), pytest.approx(2 / 5))


def test_common_types_do_not_narrow_intervals_of_rare_ones() -> None:
    """Both of two genomic reports were found: that shows as little among 300 documents as among two."""
    rare = [escalated_document(f"g{i}", truth=truth(GENOMIC), agent_labels=labels(GENOMIC)) for i in range(2)]
    common = [escalated_document(f"n{i}", truth=truth(), agent_labels=labels()) for i in range(298)]
    found = {one.type_name: one for one in score_document_types(study(*rare, *common))[1]}
    for one in (found[GENOMIC].recall, found[GENOMIC].precision, found[GENOMIC].f1):
        assert (one.value, one.n) == (1.0, 2)
        assert one.low == pytest.approx(estimate_proportion(2, 2).low)
    assert found[NOTE].recall.low > 0.98
    assert found[OTHER].recall.value is None


def test_documents_without_boundaries_make_nobody_surer_of_them() -> None:
    two = ((1, 1, NOTE), (2, 2, OTHER))
    cut = [escalated_document(f"c{i}", truth=truth(NOTE, *two), agent_labels=labels(NOTE, *two)) for i in range(3)]
    whole = [escalated_document(f"w{i}", truth=truth()) for i in range(200)]
    of_all, of_whole = (
        {name: as_given for name, (as_given, _) in estimate_segmentation_measures(study(*some)).items()}
        for some in ([*cut, *whole], whole)
    )
    assert of_all["boundaries, F1"].low == pytest.approx(estimate_proportion(3, 3).low)
    assert of_all["documents with every boundary right"].low > 0.97
    assert of_whole["boundaries, F1"].value is None


def test_experts_are_compared_with_the_agent_shown_and_hidden() -> None:
    made = study(
        escalated_document("a", reviews=(answer("a"),)),
        escalated_document("b", reviews=(answer("b", OTHER, outcome="corrected", active_seconds=90.0),)),
        document("c", reviews=(answer("c", GENOMIC, outcome="corrected", is_blind=True, active_seconds=None),)),
        escalated_document("d", reviews=(answer("d", outcome="undeterminable", labels_after=None),)),
        escalated_document("e", reviews=(answer("e"), answer("e", outcome="reopened", labels_after=None))),
    )
    (row,) = tabulate_reviewer_performance(made).to_dict("records")
    assert (row["cases"], row["validated"], row["corrected"], row["undeterminable"]) == (4, 1, 2, 1)
    assert row["median_seconds"] == 30.0
    assert row["same_shown"].value == 0.5
    assert (row["same_hidden"].value, row["same_hidden"].n) == (0.0, 1)


def test_second_opinions_tell_how_far_experts_agree() -> None:
    def twice(name: str, first: str, second: str):
        return escalated_document(
            name, reviews=(answer(name, first), answer(f"{name}.second", second, reviewer="dr_ito", is_blind=True))
        )

    made = study(
        twice("a", NOTE, NOTE),
        twice("b", NOTE, OTHER),
        twice("c", OTHER, OTHER),
        twice("d", OTHER, OTHER),
        escalated_document("e"),
    )
    pair_table, agreed = measure_expert_agreement(made)
    assert agreed["same type"].value == 0.75
    kappa = agreed["Cohen's kappa, types"]
    assert kappa.value == pytest.approx(0.5)
    assert kappa.low < 0.5 < kappa.high
    assert list(pair_table["doc_id"]) == ["a", "b", "c", "d"]


def test_a_validated_case_that_others_found_wrong_is_named() -> None:
    wrong = escalated_document("a", reviews=(answer("a"),), truth=truth(OTHER, source="GOLD", reviewer=None))
    fine = escalated_document("b", reviews=(answer("b"),), truth=truth())
    assert list(tabulate_wrong_validations(study(wrong, fine))["doc_id"]) == ["a"]


def test_agreement_ignores_segment_order_and_unvouched_parts() -> None:
    two = ((1, 1, NOTE), (2, 2, OTHER))
    backwards = labels(NOTE, *two[::-1])
    validated = answer("a", labels_after=backwards)
    second = answer("a.second", reviewer="dr_ito", is_blind=True, labels_after=labels(NOTE, *two))
    segments_only = truth(GENOMIC, *two, vouched=frozenset({"segments"}))
    for known in (truth(NOTE, *two), segments_only):
        made = study(escalated_document("a", reviews=(validated, second), truth=known))
        assert tabulate_wrong_validations(made).empty
    assert measure_expert_agreement(made)[1]["same segments"].value == 1.0
    assert len(tabulate_wrong_validations(study(escalated_document("a", reviews=(validated,), truth=truth(NOTE))))) == 1


def audited(number: int, right: bool, confidence: float = 0.9, **fields):
    said = NOTE if right else OTHER
    given = {
        "agent_labels": labels(confidence=confidence), "truth": truth(said, review_reason="audit"),
        "reviews": (answer(f"d{number}", said, is_blind=True),),
    } | fields  # fmt: skip
    return document(f"d{number}", **given)


def test_confidence_is_measured_where_there_is_any() -> None:
    made = study(
        audited(1, right=True),
        audited(2, right=False, confidence=0.7),
        escalated_document("c", truth=truth(), agent_labels=labels(None)),
    )
    measures, _ = measure_confidence_calibration(made)
    assert measures["documents with truth and confidence"] == 2


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123456, "0.123"),
        (12345.6, "12,346"),
        (float("nan"), "–"),
        (None, "–"),
        (True, "yes"),
        ((), "–"),
        (_UpperBound(0.0343, 0.0, 0.0343, 99, "one-sided"), "at most 3.43 %"),
        (_UpperBound(1.0, 0.0, 1.0, 0, "one-sided"), "nothing proven"),
        (tuple("abcdefghij"), "a, b, c, d, e, f, g, h and 2 more"),
    ],
)
def test_cells_read_well(value, shown) -> None:
    assert format_cell(value) == shown


def reported(output: Path, to: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return evalkit_command("report", "--output", output, "--to", to, *more)


def test_a_folder_of_templates_alone_has_a_report(tmp_path: Path) -> None:
    (cycle,) = review_without_model(build_sound_template(statement()), statement()).cycles
    open_folder(tmp_path).write_json(template_review_file_name("bank", 1), cycle.model_dump(mode="json"))
    done = CliRunner().invoke(app, ["report", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for measure in ("first-pass approval", "convergence", "arbitration rate"):
        assert measure in done.output


def test_the_command_prints_the_headlines_and_writes_the_page(reviewed: Study, tmp_path: Path) -> None:
    done = reported(reviewed.output, tmp_path / "r.html")
    assert done.returncode == 0
    assert "Type of the document right" in done.stdout
    assert "made by a program" in done.stderr
    assert (tmp_path / "r.html").stat().st_size > 50_000
    told = json.loads(reported(reviewed.output, tmp_path / "r.html", "--json").stdout)
    assert [one["title"] for one in told["sections"]][:2] == ["Documents processed", "How good is it?"]


def test_a_page_that_cannot_be_written_is_one_line(reviewed: Study, tmp_path: Path) -> None:
    done = reported(reviewed.output, tmp_path / "no" / "r.html")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_section_without_any_document_says_so() -> None:
    made = build_report(study(document("a")), made_at=NOW)
    assert "no expert has opened and confirmed a document's mixture yet" in made["evidence"].about
    assert not any(" 0 documents" in one.about for one in made.sections)
    known = build_report(
        study(document("a", agent_labels=labels(NOTE), truth=truth(NOTE, vouched=frozenset({"mixture"})))), made_at=NOW
    )
    assert "Presence and mixture are measured on the 1 documents" in known["evidence"].about
