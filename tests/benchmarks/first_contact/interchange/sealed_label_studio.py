"""The sealed half of Label Studio's answers, with what a careful user expects of each."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .answers import (
    Answer,
    Expected,
    LabelFile,
    LabelIdeas,
    Quote,
    Writer,
    accept,
    dump,
    make_answer,
    refuse,
    skip,
)

idea = LabelIdeas("sealed")
adapt = idea.adapt
A, C, ONE = make_answer("packet_a", "sealed"), make_answer("packet_c", "sealed"), make_answer("letter", "sealed")
Made = tuple[bytes, Expected] | tuple[bytes, Expected, str]


def build(writers: Callable[[str], Writer] | None = None) -> Iterator[LabelFile]:
    """All files of this half."""
    return idea.build(writers)


def with_sound_task(
    w: Writer, annotation: dict[str, Any] | None, *told: str, answers: Mapping[str, Answer] | None = None
) -> Made:
    """A sound task about packet_c and one with this annotation about packet_a; only the named answers are taken over."""
    tasks = [w.task("packet_a", *([annotation] if annotation else [])), w.task("packet_c", w.annotation(C))]
    return dump(tasks), accept({"packet_c": C, **(answers or {})}, *told)


def add(w: Writer, *rows: dict[str, Any], answer: Answer = A) -> dict[str, Any]:
    annotation = w.annotation(answer)
    annotation["result"] += rows
    return annotation


@idea("full_eight_pages", "eight pages in several documents")
def _(w: Writer) -> Made:
    return dump([w.task("packet_c", w.annotation(C))]), accept({"packet_c": C})


@idea("full_forty_pages", "forty pages in several documents, with a note")
def _(w: Writer) -> Made:
    answer = make_answer("batch")._replace(notes='=1+1; "quoted", <b>, \\n')
    return dump([w.task("batch", w.annotation(answer))]), accept({"batch": answer})


@idea("single_object", "one task as the API gives it: an object, not a list")
def _(w: Writer) -> Made:
    return dump(w.task("packet_a", w.annotation(A))), accept({"packet_a": A})


@idea("json_lines", "a task on each line, an empty line between, no last end of line")
def _(w: Writer) -> Made:
    rows = [w.task("packet_a", w.annotation(A)), w.task("letter", w.annotation(ONE))]
    return "\n\n".join(json.dumps(row) for row in rows).encode(), accept({"packet_a": A, "letter": ONE}), "jsonl"


@idea("lines_one_broken", "a task on each line, the second one cut off")
def _(w: Writer) -> Made:
    rows = [json.dumps(w.task("packet_a", w.annotation(A))), json.dumps(w.task("letter", w.annotation(ONE)))[:200]]
    return "\n".join(rows).encode(), refuse("line 2|JSON|truncated"), "jsonl"


@idea("latin_letters", "a document's name in Latin-1 where UTF-8 is due")
def _(w: Writer) -> Made:
    return dump([w.task("scan_ü", w.annotation(make_answer("scan_ü")))]).decode().encode("latin-1"), refuse(
        "UTF-8|encod"
    )


@idea("utf16", "UTF-16, as a Windows editor saved it")
def _(w: Writer) -> Made:
    return dump([w.task("packet_a", w.annotation(A))]).decode().encode("utf-16"), refuse("UTF-8|encod|JSON")


@idea("archive", "the export still in its archive")
def _(w: Writer) -> Made:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("project-4-at-2026.json"), dump([w.task("packet_a", w.annotation(A))]))
    return buffer.getvalue(), refuse("zip|archive|JSON|unpack"), "zip"


@idea("table", "exported as CSV")
def _(w: Writer) -> Made:
    return (
        b"annotation_id,annotator,created_at,document,id\r\n7,lee@example.org,2026-03-02,packet_a,1\r\n",
        refuse("JSON"),
        "csv",
    )


@idea("coco", "exported as COCO: boxes and categories, no tasks")
def _(w: Writer) -> Made:
    return dump(
        {"images": [{"id": 0, "file_name": "1.png"}], "categories": [{"id": 0, "name": "Other"}], "annotations": []}
    ), refuse("task|COCO|JSON")


@idea("old_completions", "exported by a version before 1.0, which said completions")
def _(w: Writer) -> Made:
    task = w.task("packet_a", w.annotation(A))
    task["completions"] = task.pop("annotations")
    return dump([task]), refuse("completions|old|annotation|version")


@idea("minimal_two_answers", "JSON_MIN with two annotators' answers on one page, a row each")
def _(w: Writer) -> Made:
    other = make_answer("letter", "third")
    rows = [w.minimal("letter", ONE, "a@example.org"), w.minimal("letter", other, "b@example.org")]
    rows[1]["id"] = rows[0]["id"]
    told = "several|annotators|two|2|disagree|differ"
    return dump(rows), accept({"letter": [ONE, other]}, told, annotators={"letter": ("a@example.org", "b@example.org")})


@idea("two_files_in_one", "two exports, one behind the other")
def _(w: Writer) -> Made:
    return dump([w.task("packet_a", w.annotation(A))]) + dump([w.task("letter", w.annotation(ONE))]), refuse(
        "JSON|extra|two"
    )


@idea("trailing_comma", "somebody has edited it: a comma too many")
def _(w: Writer) -> Made:
    return dump([w.task("packet_a", w.annotation(A))])[:-2] + b",\n]", refuse("JSON|comma|line")


@idea("key_twice", "a task with two lists of annotations under one key")
def _(w: Writer) -> Made:
    data = dump([w.task("packet_a", w.annotation(A))])
    return data.replace(b'"annotations": [', b'"annotations": [], "annotations": [', 1), refuse(
        "twice|duplicate|annotations"
    )


@idea("author_deleted", "the annotator's account was deleted")
def _(w: Writer) -> Made:
    return dump([w.task("packet_a", w.annotation(A, None))]), accept({"packet_a": A}, "annotator|nobody|unknown|who")


@idea("author_escape", "an annotator whose name has terminal escapes and markup")
def _(w: Writer) -> Made:
    person = {
        "id": 5,
        "email": "x@example.org",
        "first_name": "\x1b[31mRed\x1b[0m",
        "last_name": "<img src=x onerror=alert(1)>",
    }
    return dump([w.task("packet_a", w.annotation(A, person))]), accept(
        {"packet_a": A}, annotators={"packet_a": ("x@example.org",)}
    )


@idea("three_agree", "three annotators who agree to the letter")
def _(w: Writer) -> Made:
    return dump([w.task("packet_a", *(w.annotation(A, n) for n in (1, 2, 3)))]), accept({"packet_a": [A, A, A]})


@idea("cancelled_and_answered", "one annotator cancelled with results in it, another answered")
def _(w: Writer) -> Made:
    other = make_answer("packet_a", "third")
    task = w.task("packet_a", w.annotation(other, 1, was_cancelled=True), w.annotation(A, 2))
    return dump([task]), accept({"packet_a": A}, "cancel|skip")


@idea("rejected", "an answer that a reviewer of the other program rejected")
def _(w: Writer) -> Made:
    return with_sound_task(
        w, w.annotation(A, reviews=[{"id": 1, "accepted": False, "created_by": 9}]), "reject|not accepted"
    )


@idea("prediction_taken", "an annotator submitted the prediction as it was")
def _(w: Writer) -> Made:
    annotation = w.annotation(A, parent_prediction=17)
    for row in annotation["result"]:
        row["origin"] = "prediction"
    return dump([w.task("packet_a", annotation)]), accept({"packet_a": A})


@idea("hidden_regions", "regions that are locked or hidden on the screen")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    for row in annotation["result"]:
        row |= {"readonly": True, "hidden": True, "meta": {"text": ["look again"]}}
    return dump([w.task("packet_a", annotation)]), accept({"packet_a": A})


@idea("other_result_types", "pairwise, number, rating and ranker results of controls that nobody defined")
def _(w: Writer) -> Made:
    rows = [
        w.result("better", "pairwise", {"selected": "left"}), w.result("age", "number", {"number": 71}),
        w.result("stars", "rating", {"rating": 4}), w.result("order", "ranker", {"ranker": {"_": ["a", "b"]}}),
    ]  # fmt: skip
    return dump([w.task("packet_a", add(w, *rows))]), accept({"packet_a": A}, "better", "age", "stars", "order")


@idea("taxonomy_type", "the whole type as a path in a taxonomy in place of a choice")
def _(w: Writer) -> Made:
    row = w.result("document_type", "taxonomy", {"taxonomy": [["Reports", "Pathology Report"]]})
    return with_sound_task(w, add(w, row, answer=A._replace(document_type="")), "taxonomy|kind of result|type")


@idea("choice_in_region", "a choice about a rectangle in the name of the whole task's choice")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    box = next(row for row in annotation["result"] if row["type"] == "rectanglelabels")
    value = {key: box["value"][key] for key in ("x", "y", "width", "height", "rotation")}
    annotation["result"].append(
        {**box, "from_name": w.names["document_type"], "type": "choices", "value": {**value, "choices": ["Other"]}}
    )
    return with_sound_task(w, annotation, "region|rectangle|two types|document_type|type")


@idea("two_choices", "the whole document has two types at once")
def _(w: Writer) -> Made:
    row = w.result("document_type", "choices", {"choices": ["Other", "Genomic Report"]})
    return with_sound_task(w, add(w, row, answer=A._replace(document_type="")), "two|several|more than one|Genomic")


@idea("index_as_text", "numbers of pages are strings")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    for row in annotation["result"]:
        if "item_index" in row:
            row["item_index"] = str(row["item_index"])
    return with_sound_task(w, annotation, answers={"packet_a": A})


@idea("index_half", "a page number that is between two pages")
def _(w: Writer) -> Made:
    row = w.result("page_type", "choices", {"choices": ["Other"]}, 1) | {"item_index": 0.5}
    return with_sound_task(w, add(w, row), "page|item_index|0.5")


@idea("index_missing_single", "one page: results without the number of a page")
def _(w: Writer) -> Made:
    annotation = w.annotation(ONE)
    for row in annotation["result"]:
        row.pop("item_index", None)
    return dump([w.task("letter", annotation)]), accept({"letter": ONE})


@idea("index_missing_many", "three pages: results without the number of a page")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    for row in annotation["result"]:
        row.pop("item_index", None)
    return with_sound_task(w, annotation, "page")


@idea("box_of_text", "the box's numbers are strings with a comma")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    box = next(row for row in annotation["result"] if row["type"] == "rectanglelabels")
    box["value"]["x"] = "12,5"
    return with_sound_task(w, annotation, "12,5|number|box")


@idea("box_endless", "a box of infinite width")
def _(w: Writer) -> Made:
    annotation = add(w, *w.write_quote(Quote(1, "Other", "x", (1.0, 1.0, float("inf"), 2.0))))
    return dump([w.task("packet_a", annotation)]), refuse("Infinity|number|JSON")


@idea("box_of_no_size", "a click without a drag: a box of no size with words")
def _(w: Writer) -> Made:
    quote = Quote(1, A.segments[0][2], "Clicked words", (30.0, 30.0, 0.0, 0.0))
    annotation = w.annotation(A._replace(quotes=(*A.quotes, quote)))
    return with_sound_task(w, annotation, "box|size|empty", answers={"packet_a": A})


@idea("pixels_unknown", "boxes without the picture's size: percent are enough")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    for row in annotation["result"]:
        row.pop("original_width", None)
        row.pop("original_height", None)
    return with_sound_task(w, annotation, answers={"packet_a": A})


@idea("page_turned", "the annotator turned the picture of page 1 on the screen")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    for row in annotation["result"]:
        if "image_rotation" in row and row["item_index"] == 0:
            row["image_rotation"] = 90
    return with_sound_task(w, annotation, "turn|rotat", answers={"packet_a": A})


@idea("other_shapes", "a polygon, an ellipse and a brush stroke beside the boxes")
def _(w: Writer) -> Made:
    rows = [
        w.result(
            "area", "polygonlabels", {"points": [[1, 1], [2, 1], [2, 2]], "closed": True, "polygonlabels": ["Other"]}, 1
        ),
        w.result("spot", "ellipselabels", {"x": 5, "y": 5, "radiusX": 1, "radiusY": 2, "ellipselabels": ["Other"]}, 1),
        w.result("stroke", "brushlabels", {"format": "rle", "rle": [0, 1, 2], "brushlabels": ["Other"]}, 1),
    ]
    return with_sound_task(w, add(w, *rows), "area", "spot", "stroke", answers={"packet_a": A})


@idea("text_no_list", "a note that is a string and not a list of strings")
def _(w: Writer) -> Made:
    row = w.result("notes", "textarea", {"text": "Typed by an import"})
    return with_sound_task(w, add(w, row), answers={"packet_a": A._replace(notes="Typed by an import")})


@idea("note_long", "a note of 100,000 letters")
def _(w: Writer) -> Made:
    answer = A._replace(notes="Long. " * 16_666)
    return with_sound_task(w, w.annotation(answer), answers={"packet_a": answer})


@idea("note_zero", "a snippet with the character of number zero")
def _(w: Writer) -> Made:
    answer = A._replace(quotes=(Quote(1, A.segments[0][2], "words\x00after", (5.0, 5.0, 30.0, 2.0)),))
    return with_sound_task(w, w.annotation(answer), "character|control|NUL|\\x00|text")


@idea("half_a_letter", "a note with half of a pair of surrogates")
def _(w: Writer) -> Made:
    data = json.dumps(
        [w.task("packet_c", w.annotation(C)), w.task("packet_a", w.annotation(A._replace(notes="x\ud800y")))]
    ).encode()
    return data, accept({"packet_c": C}, "character|Unicode|surrogate|text|encod")


@idea("no_first_page", "no document begins on page 1")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    annotation["result"] = [
        row
        for row in annotation["result"]
        if not (row["from_name"] == w.names["begins"] and row.get("item_index") == 0)
    ]
    return with_sound_task(w, annotation, "page 1|first page|begin")


@idea("type_changes_inside", "the type changes on page 2, where no document begins")
def _(w: Writer) -> Made:
    annotation = w.annotation(Answer(((1, 3, "Radiology Report"),)))
    for row in annotation["result"]:
        if row["from_name"] == w.names["page_type"] and row["item_index"] == 1:
            row["value"]["choices"] = ["Pathology Report"]
    return with_sound_task(w, annotation, "page 2|begin|two types")


@idea("quote_of_other_type", "a quote of another type than its document: something embedded")
def _(w: Writer) -> Made:
    other = "Genomic Report" if A.segments[0][2] != "Genomic Report" else "Other"
    answer = A._replace(quotes=(Quote(1, other, "Copied in", (5.0, 5.0, 30.0, 2.0)),))
    return with_sound_task(w, w.annotation(answer), answers={"packet_a": answer})


@idea("overall_against_pages", "the whole is called what no page is called: the expert's word stays, and is told")
def _(w: Writer) -> Made:
    absent = next(
        kind
        for kind in ("Other", "Genomic Report", "Clinical Note", "Radiology Report")
        if kind not in {s[2] for s in A.segments}
    )
    answer = A._replace(document_type=absent)
    return with_sound_task(
        w, w.annotation(answer), "no page|contradict|differ|dominant|agree", answers={"packet_a": answer}
    )


@idea("way_out", "a document whose name climbs out of the folder")
def _(w: Writer) -> Made:
    task = w.task("packet_a", w.annotation(A))
    task["data"][w.names["document"]] = "../../../tmp/gt_evil"
    task["data"][w.names["sha256"]] = "a" * 64
    return dump([task]), refuse("unknown|not known|no document|name")


@idea("not_tasks", "null, a number and a word among the tasks")
def _(w: Writer) -> Made:
    return dump([None, 7, "task", w.task("packet_c", w.annotation(C))]), accept(
        {"packet_c": C}, "3|not a task|no task|skipped"
    )


@idea("annotations_an_object", "annotations by their numbers, not in a list")
def _(w: Writer) -> Made:
    task = w.task("packet_a")
    task["annotations"] = {"12": w.annotation(A)}
    return dump([task, w.task("packet_c", w.annotation(C))]), accept({"packet_c": C}, "annotations|list|shape")


@idea("many_strangers", "two thousand tasks of documents of another hospital, and one of ours")
def _(w: Writer) -> Made:
    stranger = w.task("letter", w.annotation(ONE))
    rows = []
    for number in range(2_000):
        data = {**stranger["data"], w.names["document"]: f"other_{number}", w.names["sha256"]: f"{number:064x}"}
        rows.append({**stranger, "id": 10_000 + number, "data": data})
    return json.dumps([*rows, w.task("packet_c", w.annotation(C))]).encode(), accept(
        {"packet_c": C}, "2,000|2000|2 000"
    )


@idea("numbers_huge", "identifiers of thirty digits and a time in seconds since 1970")
def _(w: Writer) -> Made:
    task = w.task("packet_a", w.annotation(A, created_at=1772443811, updated_at=1772443899))
    task["id"] = 10**30
    return dump([task]), accept({"packet_a": A})


@idea("nothing_but_comments", "a task with a comment and no answer")
def _(w: Writer) -> Made:
    return dump([w.task("packet_a", comment_count=1, comments=[{"text": "please look"}])]), skip(
        "no annotation|not annotated|without"
    )
