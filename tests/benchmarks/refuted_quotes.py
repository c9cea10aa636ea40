"""Quotes that an expert refutes: cases by an author who has not read the code.

From ``tests``: ``python -m benchmarks.refuted_quotes [--half open|sealed]``. Each case is an answer, what an expert does on
the screen, and the truth that must follow. The words of the cases are translated to the session's calls here: a type that
evalkit does not have stands for one of the five that the case leaves free, and pages are counted from 1.

A validation that the session refuses because the expert has answered that a type is not there counts as the one question:
nothing was recorded, and the screen has said why.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from review.conftest import Build, Clock, Workspace

from evalkit.classification.patient_keys import drop_patient_keys
from evalkit.classification.schema import (
    ClassificationOutput,
    DocumentType,
    Evidence,
    PresenceLevel,
    Segment,
    TypePresence,
    compute_mixture,
)
from evalkit.errors import EvalkitError
from evalkit.issue import Issue
from evalkit.review import Draft, ExpertQuote, ReviewCase, ReviewSession

Json = dict[str, Any]
FOLDER = Path(__file__).parent / "first_contact" / "refuted_quotes"
#: By kind of issue: its code, and the facts that its sentence needs.
_ISSUES: dict[str, tuple[str, Json]] = {
    "quote": ("V4-QUOTE-ABSENT", {}),
    "type": ("V2-UNSURE", {"pages": "page 1", "percent": 40}),
    "boundary": ("V2-BOUNDARY-DOUBT", {"doubt": "stated"}),
    "presence": ("V4-PRESENCE-UNSUPPORTED", {"pages": "page 1", "percent": 20}),
}


def read_cases(half: str) -> list[Json]:
    """Read the cases of a half: ``open`` or ``sealed``."""
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text("utf-8").splitlines()]


def find_failures(case: Json, folder: Path) -> list[str]:
    """Do what the expert does; return the names of the parts of the truth that differ."""
    run = _Run(case, folder)
    try:
        run.act()
        if not run.is_recorded():
            return [] if not case["truth"].get("recorded", True) else ["nothing recorded"]
        return sorted({*run.failures, *run.compare(case["truth"], run.read_record())})
    except EvalkitError as error:
        return [f"refused: {error.code}"]
    finally:
        run.tab.close()


class _Run:
    """One case in an output folder of its own."""

    def __init__(self, case: Json, folder: Path) -> None:
        self.actions, self.failures, self.first = case["expert"], list[str](), case["truth"].get("first")
        self.asks, self.is_asked = 0, False
        segments = case["answer"]["segments"]
        all_pages = sorted({page for segment in segments for page in segment["pages"]})
        self.numbers = {page: number for number, page in enumerate(all_pages, 1)}
        self.types = _translate_types(case)
        self.answer = self.build_answer(segments)
        self.issues = list(self.build_issues())
        texts = {number: ["a page"] for number in self.numbers.values()}
        for segment in self.answer.segments:
            for presence in segment.segment_composition:
                for quote in presence.top_evidence:
                    texts[quote.page].append(quote.snippet)
        self.workspace = Workspace(folder)
        self.packet = self.workspace.publish(self.answer, self.issues, Build.bundle([*texts.values()]))
        self.tab = ReviewSession(self.workspace.files, "dr_lee", "tab", clock=Clock())

    def build_answer(self, segments: Sequence[Json]) -> ClassificationOutput:
        built = tuple(self.build_segment(number, row) for number, row in enumerate(segments, 1))
        mixture = compute_mixture(built)
        largest = max(mixture, key=lambda entry: entry.overall_share).document_type
        return ClassificationOutput(
            dominant_type_overall=largest, number_of_segments=len(built), segments=built, document_mixture=mixture
        )

    def build_segment(self, number: int, row: Json) -> Segment:
        claims = {self.types[claim["type"]]: claim for claim in row["presence"]}
        pages = [self.numbers[page] for page in row["pages"]]
        return Segment(
            segment_index=number,
            start_page=pages[0],
            end_page=pages[-1],
            segment_page_count=len(pages),
            dominant_type=self.types[row["type"]],
            segment_composition=tuple(
                TypePresence(
                    document_type=kind,
                    presence_level=PresenceLevel(claims[kind]["level"] if kind in claims else "NO_EVIDENCE"),
                    confidence=0.9 if kind in claims else 0.0,
                    segment_share=float(claims[kind]["share"]) if kind in claims else 0.0,
                    top_evidence=tuple(
                        Evidence(snippet=quote["text"], page=self.numbers[quote["page"]])
                        for quote in (claims[kind]["quotes"] if kind in claims else ())
                    ),
                )
                for kind in DocumentType
            ),
        )

    def build_issues(self) -> Iterator[Issue]:
        rows = {_get_issue_key(row): row for row in self.actions if "issue" in row}
        for number, row in enumerate(rows.values(), 1):
            code, facts = _ISSUES[row["issue"]]
            segment = self.answer.segments[row["segment"] - 1]
            yield Build.issue(
                f"{code[:2]}-{number:04d}",
                "MAJOR",
                code,
                facts=facts,
                segment_index=row["segment"],
                document_type=self.types[row["type"]].value,
                quote=row["quote"],
                page=segment.start_page,
            )

    def find_issue_id(self, row: Json) -> str:
        keys = list(dict.fromkeys(_get_issue_key(other) for other in self.actions if "issue" in other))
        return self.issues[keys.index(_get_issue_key(row))].issue_id

    def act(self) -> None:
        """Do what the expert does, one action after the other, as the screen does it."""
        case, draft = self.open()
        for row in self.actions:
            action = row.get("action", "verdict")
            if action == "verdict":
                draft = draft.set_issue_verdict(self.find_issue_id(row), row["says"])
            elif action == "quote":
                draft = draft.add_quote(
                    ExpertQuote(
                        page=self.numbers[row["page"]], snippet=row["text"], document_type=self.types[row["type"]]
                    )
                )
            elif action == "asked":
                self.failures += [] if self.asks else ["not asked"]
            elif action == "revise":
                self.failures += [f"first: {part}" for part in self.compare(self.first, self.read_record())]
                self.tab.undo_last_submission_and_get_case_id()
                case, draft = self.open()
            elif action == "undeterminable":
                self.tab.submit_review("doc2_6", draft, undeterminable_reason=row["reason"])
            else:
                for number, segment in enumerate(row.get("segments", ())):
                    draft = self.redraw(draft, number, segment)
                self.submit(case, draft, validate=action == "validate")

    def open(self) -> tuple[ReviewCase, Draft]:
        """Open the case and look at all of it."""
        case = self.tab.open_and_claim_case("doc2_6")
        draft = case.draft
        for page in self.numbers.values():
            draft = draft.show_page_and_mark_seen(page)
        for issue in self.issues:
            draft = draft.show_issue_and_mark_seen(issue.issue_id)
        return case, draft

    def redraw(self, draft: Draft, position: int, segment: Json) -> Draft:
        first, last = self.numbers[segment["pages"][0]], self.numbers[segment["pages"][-1]]
        starts = [row.start_page for row in draft.segments]
        for page in range(first, last + 1):
            if (page in starts) != (page == first):
                draft = draft.toggle_boundary(page)
        return draft.set_segment_type(position, self.types[segment["type"]])

    def submit(self, case: ReviewCase, draft: Draft, *, validate: bool) -> None:
        is_removal = validate and case.explain_validation_block(draft) is not None
        if not self.is_asked and (is_removal or case.find_contradiction(draft)):
            self.asks, self.is_asked = self.asks + 1, True
            return
        self.tab.submit_review("doc2_6", draft, validate=validate)

    def is_recorded(self) -> bool:
        """Return True if the expert's answer was written as a review."""
        return bool(self.workspace.files.list_json_files("reviews/doc2_6"))

    def read_record(self) -> Json:
        """Read what was recorded: the newest review, and the truth if there is one."""
        (*_, name) = self.workspace.files.list_json_files("reviews/doc2_6")
        return {"review": self.workspace.files.read_json(name), "truth": self.workspace.truth()}

    def compare(self, wanted: Json, record: Json) -> Iterator[str]:
        """Yield the names of the parts of the truth that differ."""
        review, truth = record["review"], record["truth"]
        names = {kind: name for name, kind in self.types.items()}
        numbers = {number: page for page, number in self.numbers.items()}
        classification = truth["ground_truth_classification"] if truth else {"segments": []}
        segments = [_describe_segment(segment, names, numbers) for segment in classification["segments"]]
        actual_vouched, actual_unvouched = _list_vouched(segments, truth)
        listed = [
            {"segment": row["segment"], "document_type": names[row["document_type"]], "snippet": row["snippet"]}
            for row in review.get("refuted", ())
        ]
        changes = [_rename(line, names) for line in review.get("changes", ())]
        comparisons: dict[str, bool] = {
            "asks": self.asks == wanted["asks"],
            "source": (truth["ground_truth_source"] if truth else None) == wanted["source"],
            "segments": wanted["segments"] is None or _is_same_truth(wanted["segments"], segments),
            "refuted": wanted["refuted"] is None or _sort(wanted["refuted"]) == _sort(listed),
            "vouched": set(wanted["vouched"]) == actual_vouched,
            "unvouched": set(wanted["unvouched"]) <= actual_unvouched,
            "changes": _sort(wanted["changes"]) == _sort(changes),
            "before": review["before"] == drop_patient_keys(self.answer).model_dump(mode="json"),
            "must_not_contain": not any(_contains(phrase, segments, truth) for phrase in wanted["must_not_contain"]),
            "issue_kept": wanted.get("issue_kept") in [None, *(row["verdict"] for row in review["issue_verdicts"])],
        }
        yield from (name for name, is_same in comparisons.items() if not is_same)
        yield from _compare_errors(wanted["errors"], review) if "errors" in wanted else ()


def _sort(rows: Sequence[Any]) -> list[str]:
    return sorted(map(str, rows))


def _get_issue_key(row: Json) -> tuple[Any, ...]:
    return row["issue"], row["segment"], row["type"], row["quote"]


def _translate_types(case: Json) -> dict[str, DocumentType]:
    """Give every type of a case one of the five types."""
    names = dict.fromkeys(_iterate_type_names([case["answer"], case["expert"]]))
    known = {kind.value: kind for kind in DocumentType if kind.value in names}
    free = [kind for kind in reversed(DocumentType) if kind not in known.values()]
    return known | dict(zip((name for name in names if name not in known), free, strict=False))


def _iterate_type_names(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from [str(part["type"])] if "type" in part else []
    if isinstance(part, dict | list):
        for inner in part.values() if isinstance(part, dict) else part:
            yield from _iterate_type_names(inner)


def _describe_segment(segment: Json, names: dict[DocumentType, str], numbers: dict[int, int]) -> Json:
    presences = []
    for claim in segment["segment_composition"]:
        kind = DocumentType(claim["document_type"])
        quotes = [
            {"page": numbers[quote["page"]], "text": quote["snippet"]}
            | {name: quote[name] for name in ("by", "vouched") if name in quote}
            for quote in claim["top_evidence"]
        ]
        presence = {"type": names.get(kind, ""), "level": claim["presence_level"], "share": claim["segment_share"]}
        marks = {name: claim[name] for name in ("evidence", "share_vouched") if name in claim}
        presences.append(presence | {"quotes": quotes} | marks)
    pages = [numbers[page] for page in range(segment["start_page"], segment["end_page"] + 1)]
    kind = DocumentType(segment["dominant_type"])
    return {"segment": segment["segment_index"], "pages": pages, "type": names[kind], "presence": presences}


def _is_same_truth(wanted: list[Json], actual: list[Json]) -> bool:
    """Compare segments; a type of which a case says nothing must not be present."""
    if len(wanted) != len(actual):
        return False
    for wanted_segment, segment in zip(wanted, actual, strict=True):
        wanted_presences = {row["type"]: row for row in wanted_segment["presence"]}
        for row in segment["presence"]:
            absent = {"type": row["type"], "level": "NO_EVIDENCE", "share": 0.0, "quotes": []}
            if row != wanted_presences.pop(row["type"], absent):
                return False
        if wanted_presences or any(segment[name] != wanted_segment[name] for name in ("segment", "pages", "type")):
            return False
    return True


def _list_vouched(segments: list[Json], truth: Json | None) -> tuple[set[str], set[str]]:
    vouched, unvouched = set(), set()
    for segment in segments:
        label = f"segment {segment['segment']}"
        if truth and "segments" in truth["vouched"]:
            vouched.add(f"{label}: type {segment['type']}, pages {segment['pages']}")
        for presence in segment["presence"]:
            if presence.get("share_vouched") is False:
                unvouched.add(f"{label}, {presence['type']}: share {presence['share']:.4f} (derived)")
            for quote in presence["quotes"]:
                line = f'{label}, {presence["type"]}: quote "{quote["text"]}"'
                (vouched if quote["vouched"] else unvouched).add(line)
    return vouched, unvouched


def _rename(line: str, names: dict[DocumentType, str]) -> str:
    head, colon, tail = line.partition(": ")
    for kind, name in names.items():
        if kind.value != name:
            head = head.replace(kind.value, name)
            tail = tail.replace(kind.value, name) if tail.startswith("type ") else tail
    return head + colon + tail


def _compare_errors(wanted: Json, review: Json) -> Iterator[str]:
    before, after = (
        {(segment["start_page"], segment["end_page"]): segment["dominant_type"] for segment in review[name]["segments"]}
        for name in ("before", "after")
    )
    errors = {
        "evidence": len(review.get("refuted", ())),
        "type": sum(before[pages] != kind for pages, kind in after.items() if pages in before),
        "segment": len(after.keys() - before.keys()),
    }
    yield from (f"errors: {name}" for name, count in wanted.items() if count is not None and count != errors[name])


def _contains(phrase: str, segments: list[Json], truth: Json | None) -> bool:
    """Return True if the truth contains what a phrase of ``must_not_contain`` says."""
    if not phrase.startswith("segment "):
        return truth is not None and not (phrase.startswith("source") and truth["ground_truth_source"] not in phrase)
    lines = set()
    for segment in segments:
        label = f"segment {segment['segment']}"
        for presence in segment["presence"]:
            lines.add(f"{label}: {presence['type']} as {presence['level']}")
            lines |= {f'{label}, {presence["type"]}: quote "{quote["text"]}"' for quote in presence["quotes"]}
    return phrase in lines


def main() -> None:
    """Print the parts that differ, case by case, without the words of the cases."""
    parser = argparse.ArgumentParser(description="Run the cases about refuted quotes.")
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    cases = read_cases(parser.parse_args().half)
    failed = 0
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            failures = find_failures(case, Path(folder) / "output")
        if failures:
            failed += 1
            print(case["id"], ", ".join(failures))
    print(f"{len(cases) - failed} of {len(cases)} hold")


if __name__ == "__main__":
    main()
