"""Cases go to Label Studio, and what its annotators answer comes back as reviews."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from PIL import Image
from places import open_folder

from evalkit.classification.schema import DocumentType
from evalkit.errors import ReviewRefused, UsageError
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.exports.label_studio import describe_truth
from evalkit.evaluation.ground_truth_table import load_ground_truth, read_folder_ground_truth
from evalkit.evaluation.label_studio.answers_import import (
    ImportedRow,
    import_label_studio_answers,
    parse_annotators,
)
from evalkit.evaluation.label_studio.regions import (
    WORDS_BY_FLAG,
    LabelledAnswer,
    build_results,
    describe_answer,
    parse_results,
)
from evalkit.pipeline import RunSummary
from evalkit.review import SMEReviewHelper
from evalkit.review.case_files import read_numbered_reviews, read_packet, read_packet_bundle
from evalkit.review.draft import ExpertQuote, SegmentFlag
from evalkit.review.gapless_segments import SegmentDraft
from evalkit.review.opinions import CaseOpinions
from evalkit.review.roster import ReviewerRoster

Json = dict[str, Any]
NOTE, OTHER = DocumentType.CLINICAL_NOTE, DocumentType.OTHER
LEE, KIM = "lee@hospital.org", "kim@hospital.org"
PEOPLE = {LEE: "dr_lee", KIM: "dr_kim"}
#: An escalated case with an answer, one with three documents, and one that is answered blind.
ESCALATED, THREE, BLIND = "adjoining_notes", "misfiled_page", "doc2_6"


@pytest.fixture(scope="module")
def exported(demo_run: RunSummary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("label_studio") / "cases"
    export_ground_truth(demo_run.output, folder, file_format="labelstudio")
    return folder


@pytest.fixture
def output(demo_run: RunSummary, tmp_path: Path) -> Path:
    folder = tmp_path / "output"
    shutil.copytree(demo_run.output, folder)
    for name in ("dr_lee", "dr_kim", "dr_ada"):
        ReviewerRoster(open_folder(folder)).add_reviewer_or_replace_code(name)
    return folder


def read_tasks(exported: Path) -> dict[str, Json]:
    return {task["data"]["case_id"]: task for task in json.loads((exported / "tasks.json").read_text())}


def answer(
    task: Json, result: list[Json] | None = None, who: str = LEE, at: str = "2025-03-01T10:00:00.5Z", **more: Any
) -> Json:
    """The task as Label Studio exports it, with one annotation: the program's answer, if no other is given."""
    given = task["predictions"][0]["result"] if result is None else result
    annotation = {
        "id": 7,
        "completed_by": {"id": 3, "email": who},
        "result": given,
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": at,
        "updated_at": at,
        "lead_time": 41.5,
        "parent_prediction": None,
    }
    return {**copy.deepcopy(task), "id": 12, "drafts": [], "annotations": [annotation | more]}


def choose(control: str, *choices: str, page: int | None = None) -> Json:
    place = {} if page is None else {"item_index": page - 1}
    row = {"id": f"{control}{page}", "from_name": control, "to_name": "pages", "type": "choices"}
    return row | place | {"value": {"choices": list(choices)}}


def box(page: int = 1, label: str = "Other", **value: Any) -> Json:
    place = {"x": 10, "y": 20, "width": 30, "height": 4, "rotation": 0, "rectanglelabels": [label]}
    row = {"id": "b", "from_name": "quotes", "to_name": "pages", "type": "rectanglelabels", "item_index": page - 1}
    return row | {"value": place | value}


def verdict(accepted: bool, day: int) -> Json:
    return {"id": day, "accepted": accepted, "created_at": f"2025-03-{day:02}T10:00:00.5Z"}


WHOLE_OTHER = [choose("begins", "Other", page=1), choose("file_type", "Other")]


@pytest.fixture
def bring(output: Path, tmp_path: Path) -> Callable[..., list[ImportedRow]]:
    def bring_back(*tasks: Json | str, people: dict[str, str] = PEOPLE) -> list[ImportedRow]:
        (tmp_path / "answers.json").write_text(json.dumps(tasks))
        return import_label_studio_answers(output, tmp_path / "answers.json", people)

    return bring_back


# --- export ---------------------------------------------------------------------------------------------------------


def test_tasks_show_every_page_at_an_address_without_a_name(exported: Path) -> None:
    tasks = read_tasks(exported)
    assert {ESCALATED, THREE, BLIND} <= tasks.keys()
    for case_id, task in tasks.items():
        assert len(task["data"]["pages"]) == task["data"]["total_pages"]
        for address in task["data"]["pages"]:
            assert case_id not in address
            path = exported.parent / address.removeprefix("/data/local-files/?d=")
            assert Image.open(path).width > 500
            assert path.stat().st_mode & 0o777 == 0o600
    assert not list(exported.rglob("*.pdf"))


def test_the_answer_is_hidden_where_the_expert_answers_blind(exported: Path) -> None:
    tasks = read_tasks(exported)
    assert (tasks[BLIND]["data"]["answer_shown"], tasks[BLIND]["data"]["question"]) == (False, "")
    assert tasks[BLIND].keys() == {"data"}
    assert tasks[ESCALATED]["data"]["answer_shown"] is True
    assert "page 2" in tasks[ESCALATED]["data"]["question"]
    assert tasks[ESCALATED]["predictions"][0]["model_version"] == "embedded"


def test_every_result_belongs_to_the_labelling_config(exported: Path) -> None:
    config = etree.parse(exported / "labelling_config.xml")
    choices = {
        control.get("name"): {item.get("value") for item in control}
        for control in config.iter("Choices", "RectangleLabels")
    }
    per_page = {control.get("name") for control in config.iter("Choices") if control.get("perItem") == "true"}
    controls = {control.get("name") for control in config.iter("Choices", "RectangleLabels", "TextArea")}
    assert {control.get("toName") for control in config.iter("Choices", "RectangleLabels", "TextArea")} == {"pages"}
    results = [
        row for task in read_tasks(exported).values() for row in task.get("predictions", [{}])[0].get("result", ())
    ]
    assert {row["from_name"] for row in results} == {"file_type", "begins", "quotes", "quote_text"} < controls
    for row in results:
        labels = row["value"].get(row["type"], []) if row["type"] != "textarea" else []
        assert set(labels) <= choices.get(row["from_name"], set())
        assert ("item_index" in row) == (row["from_name"] in per_page | {"quotes", "quote_text"})
        assert all(0 <= row["value"].get(name, 0) <= 100 for name in ("x", "y", "width", "height"))


@pytest.mark.parametrize(
    "options", [{"level": "page"}, {"deidentify": True}, {"split": {"a": 1.0}}, {"with_text": True}]
)
def test_options_of_tables_are_refused(demo_run: RunSummary, tmp_path: Path, options: Any) -> None:
    with pytest.raises(UsageError, match="--"):
        export_ground_truth(demo_run.output, tmp_path / "f", file_format="labelstudio", **options)
    assert not (tmp_path / "f").exists()


def test_a_case_without_its_file_is_named_and_leaves_no_page(output: Path, exported: Path, tmp_path: Path) -> None:
    packet = read_packet(open_folder(output), ESCALATED)
    bundle_path = output / packet.document_bundle_path
    bundle_path.write_text(bundle_path.read_text().replace("adjoining_notes.pdf", "moved.pdf"))
    with pytest.raises(Exception, match=r"moved\.pdf"):
        export_ground_truth(output, tmp_path / "f", file_format="labelstudio")
    left = read_tasks(exported).keys() - read_tasks(tmp_path / "f").keys()
    assert left == {ESCALATED}
    assert len(list((tmp_path / "f" / "pages").iterdir())) == len(read_tasks(exported)) - 1


# --- an answer and its results --------------------------------------------------------------------------------------

_boxes = st.tuples(*[st.integers(0, 4999)] * 2, *[st.integers(5000, 10000)] * 2)


@st.composite
def _answers(draw: st.DrawFn) -> tuple[LabelledAnswer, int]:
    pages = draw(st.integers(1, 8))
    starts = [1, *sorted(draw(st.sets(st.integers(2, pages))))] if pages > 1 else [1]
    kinds = st.sampled_from(DocumentType)
    segments = tuple(
        SegmentDraft(start_page=start, end_page=next_start - 1, dominant_type=draw(kinds))
        for start, next_start in zip(starts, [*starts[1:], pages + 1], strict=True)
    )
    letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    texts = draw(st.lists(st.text(letters, min_size=1, max_size=40).filter(str.strip), max_size=4, unique=True))
    quotes = []
    for text in texts:
        page = draw(st.integers(1, pages))
        boxes = draw(st.lists(_boxes, min_size=1, max_size=3, unique=True))
        places = tuple((page, *(corner / 10_000 for corner in one)) for one in boxes)
        quotes.append(ExpertQuote(page=page, snippet=text, boxes=places, document_type=draw(kinds)))
    flags = draw(st.sets(st.tuples(st.sampled_from(starts), st.sampled_from(list(WORDS_BY_FLAG)))))
    return (
        LabelledAnswer(
            dominant_type=draw(st.none() | kinds),
            segments=draw(st.none() | st.just(segments)) if not flags else segments,
            quotes=tuple(quotes),
            flags=tuple(SegmentFlag(start_page=page, flag=flag) for page, flag in sorted(flags)),
            notes=draw(st.text(letters, max_size=30)).strip(),
            is_undeterminable=draw(st.booleans()),
        ),
        pages,
    )


@given(_answers())
def test_an_answer_is_read_back_as_it_was_written(drawn: tuple[LabelledAnswer, int]) -> None:
    given_answer, pages = drawn
    results = json.loads(json.dumps(build_results(given_answer, [(800, 1000)] * pages, "x")))
    assert parse_results(results, pages) == given_answer


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (choose("file_type", "Letter"), "'Letter' is not a document type"),
        (choose("begins", "type not known", page=1), "no type was chosen"),
        (choose("begins", "Other", page=9), "on page 9, but the file has 3"),
        (choose("begins", "Other", page=0), "on page 0"),
        (choose("begins", "Other"), "does not say on which page"),
        (choose("begins", "Other", page=2), "no document begins on page 1"),
        (choose("begins", "Other", "Clinical Note", page=1), "several types were chosen"),
        (choose("file_type", "Other", "Clinical Note"), "the file has several types"),
        (choose("document_problem", "duplicate", page=1), "no document begins there"),
        (box(width=float("nan")), "finite"),
        (box(width=-2), "greater than or equal to 0"),
        (box() | {"original_width": 0}, "greater than 0"),
        (box(label="Verdict"), "'Verdict' is not a document type"),
        (box() | {"item_index": "1"}, "valid integer"),
        (box() | {"to_name": "text"}, "labelling config"),
        (box() | {"type": "polygonlabels"}, "labelling config"),
        (box() | {"from_name": "quote_text", "type": "textarea", "value": {"text": ["x"]}}, "has no box"),
        (box() | {"from_name": "notes", "type": "textarea", "value": {"text": ["a", "b\0"]}}, "character NUL"),
        ("text", "result 1"),
        ({"type": "choices"}, "result 1.from_name"),
    ],
)
def test_results_that_cannot_be_true_are_named(result: Any, reason: str) -> None:
    with pytest.raises(ReviewRefused, match=reason):
        parse_results([result], 3)


@pytest.mark.parametrize(
    ("shown", "corners", "remark"),
    [
        (box(x=95), (0.95, 0.2, 1.0, 0.24), "clipped at the edge of page 1"),
        (box(x=-5), (0.0, 0.2, 0.25, 0.24), "clipped"),
        (box(rotation=90) | {"original_width": 500, "original_height": 1000}, (0.02, 0.2, 0.1, 0.35), "no text"),
        (box(rotation=180), (0.0, 0.16, 0.1, 0.2), "clipped"),
        (box(x=180), None, "outside of the page"),
        (box(height=0), None, "empty"),
        (box() | {"image_rotation": 90}, None, "turned"),
        (box() | {"image_rotation": 360}, (0.1, 0.2, 0.4, 0.24), "no text"),
    ],
)
def test_a_box_counts_as_far_as_it_is_on_the_page(shown: Json, corners: Any, remark: str) -> None:
    read = parse_results([*WHOLE_OTHER, shown], 3)
    assert [quote.boxes for quote in read.quotes] == ([((1, *corners),)] if corners else [])
    assert any(remark in sentence for sentence in read.remarks)


def test_types_in_other_letters_are_the_same_types() -> None:
    assert parse_results([choose("file_type", "clinical  NOTE")], 1).dominant_type is NOTE


def test_repeated_results_count_once_and_foreign_parts_are_told() -> None:
    relation = {"type": "relation", "from_id": "a", "to_id": "b", "direction": "right"}
    read = parse_results([*WHOLE_OTHER, *WHOLE_OTHER, relation, choose("mood", "good")], 3)
    assert (read.dominant_type, read.segments) == (
        OTHER,
        (SegmentDraft(start_page=1, end_page=3, dominant_type=OTHER),),
    )
    assert read.remarks == (
        "relations between boxes left out",
        "the control 'mood', which the labelling config lacks, left out",
    )


# --- import ---------------------------------------------------------------------------------------------------------


def test_the_unchanged_answer_validates_what_it_states(output: Path, exported: Path, bring: Any) -> None:
    task = read_tasks(exported)[THREE]
    (row,) = bring(answer(task))
    assert (row.status, row.case_id, row.annotator) == ("imported", THREE, LEE)
    [(_, review)] = read_numbered_reviews(open_folder(output), THREE)
    assert (review.reviewer, review.outcome, review.seconds_active) == ("dr_lee", "validated", 41.5)
    assert review.vouched == ("dominant_type", "segments")
    assert (review.pages_seen, review.evidence_seen, review.shown.agent) == ((), (), True)
    assert review.imported is not None
    assert (review.imported.annotator, review.imported.annotation_id) == (LEE, "7")
    assert review.imported.answered_at == "2025-03-01T10:00:00+00:00"
    assert review.signature is not None
    assert "not signed" in review.signature.meaning
    truth = read_folder_ground_truth(output).documents
    packet = read_packet(open_folder(output), THREE)
    (record,) = [one.record for one in truth if one.record.doc_id == THREE]
    assert packet.classification is not None
    assert record.ground_truth_classification.typed_page_ranges == packet.classification.typed_page_ranges


def test_only_what_is_stated_is_vouched_for(output: Path, exported: Path, bring: Any) -> None:
    tasks = read_tasks(exported)
    kind = next(row for row in tasks[THREE]["predictions"][0]["result"] if row["from_name"] == "file_type")
    (row,) = bring(answer(tasks[THREE], [kind]))
    assert row.message == "validated by dr_lee, who vouches for dominant_type"
    (row,) = bring(answer(tasks[ESCALATED], [choose("begins", "Other", page=1)]))
    assert row.message == "corrected by dr_lee, who vouches for segments"


def test_a_corrected_answer_with_an_own_quote(output: Path, exported: Path, bring: Any) -> None:
    text = box() | {"from_name": "quote_text", "type": "textarea"}
    text["value"] = {**box()["value"], "text": ["the expert's words"]}
    notes = {"id": "n", "from_name": "notes", "to_name": "pages", "type": "textarea", "value": {"text": ["my notes"]}}
    problem = choose("document_problem", "another patient's", page=1)
    (row,) = bring(answer(read_tasks(exported)[ESCALATED], [*WHOLE_OTHER, box(), text, notes, problem]))
    assert row.status == "imported", row
    [(_, review)] = read_numbered_reviews(open_folder(output), ESCALATED)
    assert (review.outcome, review.correction_notes) == ("corrected", "my notes")
    assert [(flag["start_page"], flag["flag"]) for flag in review.segment_flags] == [(1, "other_patient")]
    quotes = [
        (quote.snippet, quote.page, quote.boxes)
        for segment in review.after.segments  # type: ignore[union-attr]
        for presence in segment.segment_composition
        for quote in presence.top_evidence
        if quote.by == "expert"
    ]
    assert quotes == [("the expert's words", 1, ((1, 0.1, 0.2, 0.4, 0.24),))]


def test_undeterminable_needs_a_reason(output: Path, exported: Path, bring: Any) -> None:
    task, cannot = read_tasks(exported)[ESCALATED], choose("cannot_tell", "nobody can tell")
    assert "without a reason" in bring(answer(task, [cannot]))[0].message
    assert "also states" in bring(answer(task, [cannot, *WHOLE_OTHER]))[0].message
    notes = {"id": "n", "from_name": "notes", "to_name": "pages", "type": "textarea", "value": {"text": "illegible"}}
    assert bring(answer(task, [cannot, notes]))[0].status == "imported"
    assert read_numbered_reviews(open_folder(output), ESCALATED)[0][1].outcome == "undeterminable"


def test_a_blind_answer_counts_as_blind_only_if_it_was(output: Path, exported: Path, bring: Any) -> None:
    task = read_tasks(exported)[BLIND]
    bring(answer(task, WHOLE_OTHER))
    [(_, review)] = read_numbered_reviews(open_folder(output), BLIND)
    assert review.shown.agent is False
    other = next(
        task for case_id, task in read_tasks(exported).items() if not task["data"]["answer_shown"] and case_id != BLIND
    )
    bring(answer(other | {"predictions": [5]}, WHOLE_OTHER))
    assert read_numbered_reviews(open_folder(output), other["data"]["case_id"])[0][1].shown.agent is True


def test_a_second_annotator_gives_the_second_opinion(output: Path, exported: Path, bring: Any) -> None:
    task = read_tasks(exported)[BLIND]
    first, second = (
        answer(task, WHOLE_OTHER),
        answer(task, [choose("file_type", "Clinical Note")], KIM, "2025-03-02T10:00:00Z"),
    )
    rows = bring(first | {"annotations": [*second["annotations"], *first["annotations"]]})
    assert [row.status for row in rows] == ["imported", "imported"]
    folder = open_folder(output)
    [(_, base)], [(_, further)] = (read_numbered_reviews(folder, BLIND + end) for end in ("", ".second"))
    assert (base.reviewer, further.reviewer) == ("dr_lee", "dr_kim")
    assert (base.shown.agent, further.shown.agent) == (False, False)
    assert CaseOpinions.read(folder, BLIND).further_packet_by_case_id.keys() == {
        f"{BLIND}.second",
        f"{BLIND}.adjudication",
    }
    assert BLIND not in set(load_ground_truth(output)["doc_id"])  # two answers, and nobody has decided
    third = answer(task, WHOLE_OTHER, "ada@hospital.org", "2025-03-03T10:00:00Z")
    (row,) = bring(third, people=PEOPLE | {"ada@hospital.org": "dr_ada"})
    assert row.status == "refused"


def test_the_same_file_twice_writes_nothing_more(output: Path, exported: Path, bring: Any) -> None:
    tasks = read_tasks(exported)
    given_tasks = [answer(tasks[ESCALATED]), answer(tasks[BLIND], WHOLE_OTHER)]
    assert {row.status for row in bring(*given_tasks)} == {"imported"}
    assert {row.status for row in bring(*given_tasks)} == {"unchanged"}
    assert len(read_numbered_reviews(open_folder(output), ESCALATED)) == 1


def test_a_later_answer_revises_and_an_older_one_is_refused(output: Path, exported: Path, bring: Any) -> None:
    task = read_tasks(exported)[ESCALATED]
    bring(answer(task))
    assert bring(answer(task, WHOLE_OTHER, at="2025-02-01T10:00:00Z"))[0].message.startswith(
        "the case was reviewed after"
    )
    assert bring(answer(task, WHOLE_OTHER, at="2025-04-01T10:00:00Z"))[0].status == "imported"
    assert bring(answer(task))[0].status == "refused"  # the first answer again, older than the second
    assert len(read_numbered_reviews(open_folder(output), ESCALATED)) == 2


@pytest.mark.parametrize("time", ["2199-01-01T00:00:00Z", "2025-01-01T00:00:00", "yesterday", 1772443899])
def test_a_time_that_cannot_be_trusted_is_not_recorded(output: Path, exported: Path, bring: Any, time: Any) -> None:
    (row,) = bring(answer(read_tasks(exported)[ESCALATED], at=time))
    assert "not recorded" in row.message
    [(_, review)] = read_numbered_reviews(open_folder(output), ESCALATED)
    assert review.imported is not None
    assert review.imported.answered_at is None
    assert bring(answer(read_tasks(exported)[ESCALATED], WHOLE_OTHER, at=time))[0].status == "refused"


def test_a_persons_later_annotation_counts(output: Path, exported: Path, bring: Any) -> None:
    task = read_tasks(exported)[ESCALATED]
    later = answer(task, WHOLE_OTHER, at="2025-04-01T10:00:00Z")
    rows = bring(later | {"annotations": [*later["annotations"], *answer(task)["annotations"]]})
    assert [row.status for row in rows] == ["skipped", "imported"]
    [(_, review)] = read_numbered_reviews(open_folder(output), ESCALATED)
    assert review.outcome == "corrected"


def test_an_open_case_of_somebody_else_is_left_alone(output: Path, exported: Path, bring: Any) -> None:
    with SMEReviewHelper(output, "dr_kim")._index as index:
        from evalkit.core.clocks import utc_now
        from evalkit.review.claiming import ClaimHolder

        ClaimHolder("dr_kim", "tab").acquire_or_renew_claim(index, ESCALATED, utc_now())
    (row,) = bring(answer(read_tasks(exported)[ESCALATED]))
    assert (row.status, "dr_kim" in row.message) == ("refused", True)


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (lambda task: task["data"].update(case_id="another"), "refused", "no such case"),
        (lambda task: task["data"].update(case_id="../results/x"), "refused", ""),
        (lambda task: task["data"].update(packet_sha256="0" * 64), "refused", "run again"),
        (lambda task: task["data"].update(document_sha256="0" * 64), "refused", "another document"),
        (lambda task: task["data"].pop("packet_sha256"), "refused", "not a task of evalkit"),
        (lambda task: task.update(data=["x"]), "refused", "not a task of evalkit"),
        (lambda task: task.pop("data"), "refused", "JSON-MIN"),
        (lambda task: task.update(annotations=[]), "skipped", "nobody has answered"),
        (lambda task: task.update(annotations=["x"]), "refused", "not an annotation"),
        (lambda task: task["annotations"][0].update(was_cancelled=True), "skipped", "skipped the task"),
        (lambda task: task["annotations"][0].update(result=[]), "refused", "empty"),
        (lambda task: task["annotations"][0].update(completed_by=99), "refused", "'99'"),
        (lambda task: task["annotations"][0].update(completed_by=None), "refused", "names nobody"),
        (lambda task: task["annotations"][0].update(reviews=[{"accepted": False}]), "refused", "rejected"),
        (lambda task: task["annotations"][0].update(reviews=[verdict(True, 1), verdict(False, 2)]), "refused", "rejec"),
        (
            lambda task: task["annotations"][0].update(reviews=[verdict(True, 1), {"accepted": False}]),
            "refused",
            "rejected",
        ),
        (lambda task: task["annotations"][0].update(updated_by=4), "refused", "another person"),
        (lambda task: task["annotations"][0].update(lead_time=None), "not read", "a copy of the program's answer"),
        (lambda task: task["annotations"][0].update(lead_time=0.9), "not read", "0.9 s of work"),
        (lambda task: task["annotations"][0].update(lead_time=float("inf")), "not read", "0.0 s of work"),
        (
            lambda task: task["annotations"][0].update(lead_time=None, parent_prediction=3, result=WHOLE_OTHER),
            "not read",
            "copy",
        ),
        (
            lambda task: task["annotations"][0].update(lead_time=None, parent_annotation=5, result=WHOLE_OTHER),
            "refused",
            "copy of another annotation",
        ),
        (
            lambda task: task["annotations"].append({**task["annotations"][0], "result": WHOLE_OTHER}),
            "refused",
            "not alike",
        ),
        (
            lambda task: task["annotations"][0].update(result=[box()]),
            "refused",
            "states neither",
        ),
    ],
)
def test_each_answer_that_cannot_be_taken_is_named(
    output: Path, exported: Path, bring: Any, change: Callable[[Json], Any], status: str, reason: str
) -> None:
    tasks = read_tasks(exported)
    changed = answer(tasks[ESCALATED])
    change(changed)
    rows = bring(changed, answer(tasks[THREE]))
    assert rows[-1].status == "imported"  # the others are finished
    assert {row.status for row in rows[:-1]} == {status}
    assert all(reason in row.message and row.task == "task 12" for row in rows[:-1])
    assert not read_numbered_reviews(open_folder(output), ESCALATED)


@pytest.mark.parametrize("changes", [{"seconds": 60.0}, {"seconds": 0.9, "origin": "prediction-changed"}])
def test_answer_that_a_person_worked_on_is_taken(exported: Path, bring: Any, changes: Json) -> None:
    task = read_tasks(exported)[ESCALATED]
    given = [row | {"origin": changes.get("origin", "prediction")} for row in task["predictions"][0]["result"]]
    (row,) = bring(answer(task, given, lead_time=changes["seconds"], parent_prediction=3))
    assert row.status == "imported", row


def test_other_runs_of_a_document_are_not_answered(output: Path, exported: Path, bring: Any) -> None:
    """The case was rewritten by a later run, so that the annotator saw another answer."""
    path = output / "sme_packets" / f"sme_packet_{ESCALATED}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"decision_reason": "another"}))
    assert "run again" in bring(answer(read_tasks(exported)[ESCALATED]))[0].message


def test_a_rejected_answer_counts_once_it_is_accepted(exported: Path, bring: Any) -> None:
    reviews = [verdict(True, 2), verdict(False, 1)]
    assert bring(answer(read_tasks(exported)[ESCALATED], reviews=reviews))[0].status == "imported"


def test_one_task_without_its_list_is_imported(output: Path, exported: Path, tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text(json.dumps(answer(read_tasks(exported)[ESCALATED])))
    assert import_label_studio_answers(output, tmp_path / "task.json", PEOPLE)[0].status == "imported"


def test_half_a_letter_is_refused_alone(exported: Path, bring: Any) -> None:
    tasks = read_tasks(exported)
    notes = {"id": "n", "from_name": "notes", "to_name": "pages", "type": "textarea", "value": {"text": ["x\ud800"]}}
    rows = bring(answer(tasks[ESCALATED], [*WHOLE_OTHER, notes]), answer(tasks[THREE]))
    assert [row.status for row in rows] == ["refused", "imported"]
    assert "broken character" in rows[0].message


def test_a_key_given_twice_is_refused(output: Path, exported: Path, tmp_path: Path) -> None:
    text = json.dumps([answer(read_tasks(exported)[ESCALATED])])
    (tmp_path / "task.json").write_text(text.replace('"annotations": [', '"annotations": [], "annotations": [', 1))
    with pytest.raises(UsageError, match="a key twice"):
        import_label_studio_answers(output, tmp_path / "task.json", PEOPLE)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1, 2", b"\xff\xfe[", b"[" * 100_000, b'{"id": 1}\n{"id": 2}\n', b"PK\x03\x04"]
)
def test_a_file_that_is_no_export_is_refused(output: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "answers.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"answers\.json"):
        import_label_studio_answers(output, tmp_path / "answers.json", PEOPLE)


def test_special_files_are_refused_and_a_byte_order_mark_is_not(output: Path, exported: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError):
            import_label_studio_answers(output, path, PEOPLE)
    text = json.dumps([answer(read_tasks(exported)[ESCALATED])])
    (tmp_path / "bom.json").write_text(text, encoding="utf-8-sig")
    assert import_label_studio_answers(output, tmp_path / "bom.json", PEOPLE)[0].status == "imported"


def test_only_reviewers_who_may_decide_are_named(output: Path, exported: Path, bring: Any) -> None:
    ReviewerRoster(open_folder(output)).set_role("dr_kim", "analyst")
    for name in ("dr_kim", "dr_nobody"):
        with pytest.raises(UsageError, match=name):
            bring(answer(read_tasks(exported)[ESCALATED]), people={LEE: name})


def test_annotators_are_given_as_pairs() -> None:
    assert parse_annotators(["dr_lee=Lee@Hospital.org", "dr_kim=4"]) == {"lee@hospital.org": "dr_lee", "4": "dr_kim"}
    for pairs in (["dr_lee"], ["=4"], ["dr_lee="], ["dr_lee=4", "dr_kim=4"]):
        with pytest.raises(UsageError):
            parse_annotators(pairs)


def test_the_remedy_names_an_unknown_annotator_as_the_file_does(exported: Path, bring: Any) -> None:
    (row,) = bring(answer(read_tasks(exported)[THREE]), people={"9": "dr_kim"})
    assert row.status == "refused"
    assert row.message.endswith(f"Add --annotator NAME={LEE}.")


def test_truth_goes_out_and_comes_back_as_it_is(output: Path, exported: Path, tmp_path: Path, bring: Any) -> None:
    tasks = read_tasks(exported)
    bring(answer(tasks[ESCALATED], [*WHOLE_OTHER, box()]), answer(tasks[THREE]))
    export_ground_truth(output, tmp_path / "again", file_format="labelstudio")
    truths = {case_id: task for case_id, task in read_tasks(tmp_path / "again").items() if "annotations" in task}
    assert truths.keys() == {ESCALATED, THREE}
    assert {row.status for row in bring(*truths.values())} == {"unchanged"}
    folder = open_folder(output)
    records = {truth.record.doc_id: truth.record for truth in read_folder_ground_truth(output).documents}
    for case_id, task in truths.items():
        opinions = CaseOpinions.read(folder, case_id)
        bundle = read_packet_bundle(folder, opinions.base_packet)
        stated = describe_truth(opinions, records[case_id], bundle)
        assert parse_results(task["annotations"][0]["result"], bundle.total_pages) == stated
        assert stated is not None
        assert stated.quotes == describe_answer(records[case_id].ground_truth_classification, bundle).quotes
