"""The open half of Label Studio's answers, with what a careful user expects of each."""

from __future__ import annotations

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

idea = LabelIdeas("open")
adapt = idea.adapt
A, B, ONE = make_answer("packet_a"), make_answer("packet_b"), make_answer("letter")
Made = tuple[bytes, Expected]


def build(writers: Callable[[str], Writer] | None = None) -> Iterator[LabelFile]:
    """All files of this half."""
    return idea.build(writers)


def with_sound_task(w: Writer, task: dict[str, Any], *told: str, answers: Mapping[str, Answer] | None = None) -> Made:
    """A sound task and then a special one, of which only the answers named are taken over."""
    return dump([w.task("packet_b", w.annotation(B)), task]), accept({"packet_b": B, **(answers or {})}, *told)


@idea("full_one", "one task with one annotation")
def _(w: Writer) -> Made:
    return dump([w.task("packet_a", w.annotation(A))]), accept({"packet_a": A})


@idea("full_three", "three tasks, each with an annotation")
def _(w: Writer) -> Made:
    rows = {name: make_answer(name) for name in ("letter", "packet_a", "scan_ü")}
    return dump([w.task(name, w.annotation(row)) for name, row in rows.items()]), accept(rows)


@idea("minimal_one_page", "JSON_MIN of a document of one page: nothing is lost")
def _(w: Writer) -> Made:
    return dump([w.minimal("letter", ONE)]), accept({"letter": ONE})


@idea("minimal_pages", "JSON_MIN of three pages: which page a choice belongs to is lost")
def _(w: Writer) -> Made:
    return dump([w.minimal("packet_a", A)]), refuse("page|JSON_MIN|full")


@idea("cancelled", "an annotation that its author cancelled")
def _(w: Writer) -> Made:
    return with_sound_task(w, w.task("packet_a", w.annotation(A, was_cancelled=True)), "cancel|skip")


@idea("skipped_empty", "a task that was skipped: cancelled and without results")
def _(w: Writer) -> Made:
    return with_sound_task(w, w.task("packet_a", w.annotation(None, was_cancelled=True)), "cancel|skip")


@idea("only_skipped", "a file of skipped tasks only")
def _(w: Writer) -> Made:
    return dump([w.task(name, w.annotation(None, was_cancelled=True)) for name in ("packet_a", "letter")]), skip(
        "cancel|skip"
    )


@idea("prediction_only", "a task with a prediction and no annotation: nobody has answered")
def _(w: Writer) -> Made:
    prediction = {"id": 3, "model_version": "v2", "score": 0.83, "result": w.results(A), "created_ago": "2 days"}
    return with_sound_task(
        w,
        w.task("packet_a", predictions=[prediction], total_predictions=1),
        "no annotation|not annotated|prediction|without",
    )


@idea("prediction_and_answer", "the answer differs from the prediction that was shown")
def _(w: Writer) -> Made:
    other = make_answer("packet_a", "other")
    prediction = {"id": 3, "model_version": "v2", "score": 0.83, "result": w.results(other)}
    return dump([w.task("packet_a", w.annotation(A, prediction=prediction), predictions=[prediction])]), accept(
        {"packet_a": A}
    )


@idea("draft_only", "a draft that nobody submitted")
def _(w: Writer) -> Made:
    draft = {
        "id": 9,
        "user": "lee@example.org",
        "result": w.results(A),
        "lead_time": 12.0,
        "created_at": "2026-03-02T09:00:00Z",
        "was_postponed": False,
    }
    return with_sound_task(w, w.task("packet_a", drafts=[draft]), "draft|no annotation|not annotated|without")


@idea("two_annotators", "two annotators by e-mail who disagree")
def _(w: Writer) -> Made:
    other = make_answer("packet_a", "other")
    people = [
        {"id": n, "email": mail, "first_name": "", "last_name": ""}
        for n, mail in ((1, "lee@example.org"), (2, "Bell@Example.org"))
    ]
    task = w.task("packet_a", w.annotation(A, people[0]), w.annotation(other, people[1]))
    told = "several|annotators|two|2|disagree|differ"
    return dump([task]), accept(
        {"packet_a": [A, other]}, told, annotators={"packet_a": ("lee@example.org", "Bell@Example.org")}
    )


@idea("ground_truth_flag", "two annotations, of which one is starred as ground truth")
def _(w: Writer) -> Made:
    other = make_answer("packet_a", "other")
    task = w.task("packet_a", w.annotation(other, 1), w.annotation(A, 2, ground_truth=True))
    return dump([task]), accept({"packet_a": A}, "ground truth|starred|preferred|other annotation")


@idea("same_annotator_twice", "one annotator submitted twice: the later answer counts")
def _(w: Writer) -> Made:
    other = make_answer("packet_a", "other")
    first = w.annotation(other, 1, created_at="2026-03-02T08:00:00Z", updated_at="2026-03-02T08:00:00Z")
    second = w.annotation(A, 1, created_at="2026-03-03T08:00:00Z", updated_at="2026-03-03T08:00:00Z")
    return dump([w.task("packet_a", second, first)]), accept({"packet_a": A}, "later|latest|newest|twice|earlier")


@idea("ids_as_text", "numbers of tasks and annotations are strings")
def _(w: Writer) -> Made:
    task = w.task("packet_a", w.annotation(A, "1"))
    task["id"] = str(task["id"])
    task["annotations"][0] |= {"id": str(task["annotations"][0]["id"]), "task": task["id"]}
    return dump([task]), accept({"packet_a": A})


@idea("unknown_control", "results of a control that the exporter's configuration does not have")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    annotation["result"].append(w.result("mood", "choices", {"choices": ["good"]}))
    return dump([w.task("packet_a", annotation)]), accept({"packet_a": A}, "mood")


@idea("unknown_label", "a page is called a type that is in no list")
def _(w: Writer) -> Made:
    wrong = Answer(((1, 3, "Cardiology Report"),))
    return with_sound_task(w, w.task("packet_a", w.annotation(wrong)), "Cardiology Report")


@idea("label_other_case", "types in small letters, as an older configuration had them: no guess is needed")
def _(w: Writer) -> Made:
    small, right = (Answer(((1, 3, name),)) for name in ("clinical note", "Clinical Note"))
    return with_sound_task(w, w.task("packet_a", w.annotation(small)), answers={"packet_a": right})


@idea("empty_results", "submitted without any result")
def _(w: Writer) -> Made:
    return with_sound_task(w, w.task("packet_a", w.annotation(None)), "empty|no result|nothing|without")


@idea("page_without_type", "the second of three pages has no type")
def _(w: Writer) -> Made:
    annotation = w.annotation(Answer(((1, 3, "Other"),)))
    annotation["result"] = [row for row in annotation["result"] if row.get("item_index") != 1]
    return with_sound_task(w, w.task("packet_a", annotation), "page 2|pages")


@idea("page_with_two_types", "one page has two types")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    annotation["result"].append(
        w.result(
            "page_type",
            "choices",
            {"choices": [next(k for k in ("Other", "Clinical Note") if k != A.segments[0][2])]},
            1,
        )
    )
    return with_sound_task(w, w.task("packet_a", annotation), "page 1|two types|several")


@idea("page_beyond", "a result about page 9 of a document of 3 pages")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    annotation["result"].append(w.result("page_type", "choices", {"choices": ["Other"]}, 9))
    return with_sound_task(w, w.task("packet_a", annotation), "page 9|3 pages|beyond|pages")


@idea("page_negative", "a result about the page before the first")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    annotation["result"].append(w.result("page_type", "choices", {"choices": ["Other"]}, -4))
    return with_sound_task(w, w.task("packet_a", annotation), "page|item_index")


@idea("rotated_box", "a box turned by 90 degrees about its corner: its upright frame counts")
def _(w: Writer) -> Made:
    annotation = w.annotation(Answer(A.segments, (), "", A.document_type))
    kind = A.segments[0][2]
    rows = w.write_quote(Quote(1, kind, "Turned words", (50.0, 10.0, 22.0, 3.0)))
    for row in rows:
        row["value"]["rotation"] = 90
    annotation["result"] += rows
    # In pixels: 374 wide, 66 high; turned clockwise about its left upper corner it is 66 wide and 374 high, left of x = 850.
    quote = Quote(1, kind, "Turned words", (50 - 100 * 66 / 1700, 10.0, 100 * 66 / 1700, 100 * 374 / 2200))
    return dump([w.task("packet_a", annotation)]), accept({"packet_a": A._replace(quotes=(quote,))})


@idea("box_outside", "a box that goes beyond the right edge of the page")
def _(w: Writer) -> Made:
    kind = A.segments[0][2]
    wide = A._replace(quotes=(Quote(1, kind, "Words at the edge", (90.0, 10.0, 25.0, 3.0)),))
    told = "outside|edge|beyond|clipped"
    return dump([w.task("packet_a", w.annotation(wide))]), accept(
        {"packet_a": A._replace(quotes=(Quote(1, kind, "Words at the edge", (90.0, 10.0, 10.0, 3.0)),))}, told
    )


@idea("box_far_outside", "a box that lies wholly outside of the page")
def _(w: Writer) -> Made:
    far = A._replace(quotes=(Quote(1, A.segments[0][2], "Nowhere", (180.0, -50.0, 5.0, 3.0)),))
    return dump([w.task("packet_a", w.annotation(far))]), accept({"packet_a": A._replace(quotes=())}, "outside|beyond")


@idea("box_without_words", "a rectangle for which nobody typed the words: the box stays")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    annotation["result"] = [row for row in annotation["result"] if row["from_name"] != w.names["snippet"]]
    bare = A._replace(quotes=tuple(quote._replace(snippet="") for quote in A.quotes))
    return dump([w.task("packet_a", annotation)]), accept({"packet_a": bare}, "words|text|snippet")


@idea("number_not_a_number", "a box with NaN, as Python writes it")
def _(w: Writer) -> Made:
    data = dump(
        [w.task("packet_a", w.annotation(A._replace(quotes=(Quote(1, "Other", "x", (float("nan"), 1.0, 2.0, 2.0)),))))]
    )
    return data, refuse("NaN|number|JSON")


@idea("relations", "a relation between two rectangles, which has no place in a truth")
def _(w: Writer) -> Made:
    annotation = w.annotation(A)
    annotation["result"].append({"from_id": "a", "to_id": "b", "type": "relation", "direction": "right", "labels": []})
    return dump([w.task("packet_a", annotation)]), accept({"packet_a": A}, "relation")


@idea("note_lines", "a note in two paragraphs with an emoji")
def _(w: Writer) -> Made:
    answer = A._replace(notes="Unsure of page 2.\n\nAsk again ☎")
    return dump([w.task("packet_a", w.annotation(answer))]), accept({"packet_a": answer})


@idea("future", "submitted in the year 2099")
def _(w: Writer) -> Made:
    task = w.task("packet_a", w.annotation(A, created_at="2099-01-01T00:00:00Z", updated_at="2099-01-01T00:00:00Z"))
    return dump([task]), accept({"packet_a": A}, "2099|future|clock")


@idea("no_zone", "times without a zone")
def _(w: Writer) -> Made:
    task = w.task("packet_a", w.annotation(A, created_at="2026-03-02 09:30:11", updated_at="2026-03-02 09:31:11"))
    return dump([task]), accept({"packet_a": A})


@idea("same_task_twice", "one task twice in the file, with the same answer")
def _(w: Writer) -> Made:
    task = w.task("packet_a", w.annotation(A))
    return dump([task, task]), accept({"packet_a": A}, "twice|duplicate|repeated|again")


@idea("two_tasks_one_document", "two tasks about one document whose answers contradict each other")
def _(w: Writer) -> Made:
    other = make_answer("packet_a", "other")
    tasks = [
        w.task("packet_b", w.annotation(B)),
        w.task("packet_a", w.annotation(A)),
        w.task("packet_a", w.annotation(other, 2)),
    ]
    return dump(tasks), accept({"packet_b": B, "packet_a": [A, other]}, "packet_a|twice|two tasks|several")


@idea("other_project", "tasks of another project: pictures of cats")
def _(w: Writer) -> Made:
    task = {
        "id": 1,
        "data": {"image": "cat.png"},
        "annotations": [w.annotation(None, result=[w.result("animal", "choices", {"choices": ["cat"]})])],
    }
    return dump([task]), refuse("project|document|not|task")


@idea("unknown_document", "a document that this output folder does not have")
def _(w: Writer) -> Made:
    task = w.task("packet_a", w.annotation(A))
    task["data"][w.names["document"]] = "someone_else"
    task["data"][w.names["sha256"]] = "0" * 64
    return with_sound_task(w, task, "someone_else|unknown|not known|no document")


@idea("other_bytes", "the document has the right name and another SHA-256: it was replaced since")
def _(w: Writer) -> Made:
    task = w.task("packet_a", w.annotation(A))
    task["data"][w.names["sha256"]] = "f" * 64
    return with_sound_task(w, task, "replaced|changed|SHA-256|other bytes|another version")


@idea("truncated", "the file ends in the middle")
def _(w: Writer) -> Made:
    data = dump([w.task("packet_a", w.annotation(A)), w.task("packet_b", w.annotation(B))])
    return data[: len(data) * 2 // 3], refuse("JSON|truncated|incomplete|end")


@idea("byte_order_mark", "UTF-8 with a mark at its beginning")
def _(w: Writer) -> Made:
    return b"\xef\xbb\xbf" + dump([w.task("packet_a", w.annotation(A))]), accept({"packet_a": A})


@idea("empty_list", "an export of a project without tasks")
def _(w: Writer) -> Made:
    return b"[]", skip("no task|empty|nothing")


@idea("empty_file", "no byte at all")
def _(w: Writer) -> Made:
    return b"", refuse("empty|JSON")


@idea("deep", "lists in lists, 100,000 deep")
def _(w: Writer) -> Made:
    return b"[" * 100_000 + b"]" * 100_000, refuse("deep|JSON|nest")


@idea("page_text", "the whole export is the error page of a proxy")
def _(w: Writer) -> Made:
    return b"<!DOCTYPE html><html><title>502 Bad Gateway</title></html>", refuse("JSON")
