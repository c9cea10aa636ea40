"""How FHIR exports fare on files and truths by another author: `python -m benchmarks.interchange_fhir open`.

With folders or files instead of a half, only how many Bundles of the program's answers about these keep to the schema.
Prints, for the files to be cut, in how many cuts or Bundle entries a word of another page or patient was found, and how many
pages show their own words; and how many truths came back as their author expects.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pymupdf
from benchmarks.first_contact.interchange.packets import Segment, SourceFile
from benchmarks.first_contact.interchange.revealing import find_words, read_shown_words
from benchmarks.first_contact.interchange.truths import RoundTrip
from evaluation.truths import bundle_of
from places import open_folder
from servers.fhir import list_schema_errors

import evalkit
from evalkit.errors import EvalkitError
from evalkit.evaluation.deidentify import create_document_pseudonym
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.ground_truth_table import read_folder_ground_truth
from evalkit.store import bundle_file_name, ground_truth_file_name, review_file_name

PACKAGE = "benchmarks.first_contact.interchange"
HEADER = {
    "schema_version": 1,
    "ground_truth_source": "SME_VALIDATED",
    "correction_notes": "",
    "reviewer": "dr_lee",
    "reviewed_at": "2026-03-02T09:30:00+00:00",
    "vouched": ["dominant_type", "segments"],
    "review_reason": "audit",
    "inclusion_probability": None,
    "packet_sha256": "ab" * 32,
    "revision": 1,
    "supersedes": None,
    "corrected_dominant_type": None,
}


def build(half: str, kind: str) -> list[Any]:
    return list(importlib.import_module(f"{PACKAGE}.{half}_{kind}").build())


def check_bundles(folder: Path) -> Counter[str]:
    """Count an export's Bundles, and those that break the schema of FHIR R4."""
    counts: Counter[str] = Counter()
    for path in (folder / "bundles").glob("*.json"):
        counts["Bundles"] += 1
        if errors := list_schema_errors(json.loads(path.read_text())):
            counts["Bundles that break the schema"] += 1
            print(f"{path.name}: {errors[:3]}", file=sys.stderr)
    return counts


def score_files(paths: list[str]) -> Counter[str]:
    """Count the Bundles of what the program says of these files, its unreviewed answers too."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        result = evalkit.run(paths, output=folder / "output")
        try:
            export_ground_truth(folder / "output", folder / "fhir", file_format="fhir", silver=True)
        except EvalkitError as error:  # the others are written first
            print(error, file=sys.stderr)
        return Counter({"documents": len(result.documents)}) + check_bundles(folder / "fhir")


# --- cutting ----------------------------------------------------------------------------------------------------------


def classify(segments: list[Segment]) -> dict[str, Any]:
    kinds = ["Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other"]

    def compose(kind: str, share_name: str) -> list[dict[str, Any]]:
        return [
            {
                "document_type": other,
                "presence_level": "PRIMARY" if other == kind else "NO_EVIDENCE",
                "confidence": 0.9,
                share_name: float(other == kind),
            }
            for other in kinds
        ]

    return {
        "dominant_type_overall": segments[0].document_type,
        "number_of_segments": len(segments),
        "segments": [
            {
                "segment_index": index,
                "start_page": segment.start,
                "end_page": segment.end,
                "segment_page_count": segment.end - segment.start + 1,
                "dominant_type": segment.document_type,
                "segment_composition": [
                    row | {"top_evidence": []} for row in compose(segment.document_type, "segment_share")
                ],
            }
            for index, segment in enumerate(segments, 1)
        ],
        "document_mixture": compose(segments[0].document_type, "overall_share"),
    }


def name_part(file_path: str, source: SourceFile) -> str:
    """The part of a mail of which evalkit made a document; empty for the file itself."""
    if not any(segment.part for segment in source.segments):
        return ""
    name = Path(file_path).name
    return "body" if name == f"{source.name}.{source.suffix}" else name


def export_source(source: SourceFile, folder: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield each segment's number, the PDF that was cut for it, and its entry in the Bundle."""
    records, output = folder / "records", folder / "output"
    records.mkdir()
    (records / f"{source.name}.{source.suffix}").write_bytes(source.data)
    evalkit.run([records], output=output)
    files = open_folder(output)
    numbers_by_doc_id: dict[str, list[int]] = {}
    for path in sorted((output / "document_bundles").iterdir()):
        part = name_part(json.loads(path.read_text())["file_path"], source)
        numbers = [number for number, segment in enumerate(source.segments) if segment.part == part]
        if not numbers:
            continue
        numbers_by_doc_id[path.stem] = numbers
        record = HEADER | {
            "doc_id": path.stem,
            "ground_truth_classification": classify([source.segments[number] for number in numbers]),
        }
        files.write_json(ground_truth_file_name(path.stem), record)
    export_ground_truth(output, folder / "fhir", file_format="fhir")
    for doc_id, numbers in numbers_by_doc_id.items():
        sha256 = json.loads((output / bundle_file_name(doc_id)).read_text())["sha256"]
        path = folder / "fhir" / "bundles" / f"{create_document_pseudonym(sha256)}.json"
        bundle = json.loads(path.read_text())
        entries = [entry for entry in bundle["entry"] if entry["resource"].get("relatesTo")]
        assert len(entries) == len(numbers)
        for number, entry in zip(numbers, entries, strict=True):
            attachment = entry["resource"]["content"][0]["attachment"]
            yield number, base64.b64decode(attachment.pop("data")), json.dumps(entry).encode()


def score_cuts(half: str, names: Collection[str] = ()) -> Counter[str]:
    """Count files, cuts, those with a foreign word, and pages that show their own words; only of some, if they are named."""
    counts: Counter[str] = Counter()
    for source in build(half, "source_files"):
        if names and source.name not in names:
            continue
        counts["files"] += 1
        counts["segments"] += len(source.segments)
        with tempfile.TemporaryDirectory() as folder:
            try:
                cuts = list(export_source(source, Path(folder)))
                counts += check_bundles(Path(folder, "fhir"))
            except (EvalkitError, FileNotFoundError, AssertionError) as error:
                counts["files not exported"] += 1
                print(f"{source.name}: {source.what}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
                continue
        for number, pdf, entry in cuts:
            segment, foreign = source.segments[number], source.foreign_words[number]
            counts["cuts"] += 1
            if leaked := find_words(pdf, foreign) | find_words(entry, foreign):
                counts["cuts with a foreign word"] += 1
                print(f"{source.name}: {source.what}: segment {number + 1} has {leaked}", file=sys.stderr)
            for page, words in count_shown(source, segment, pdf):
                counts["pages"] += 1
                counts["pages that show their words"] += words
                if not words:
                    print(f"{source.name}: {source.what}: {page} lacks its words", file=sys.stderr)
    return counts


def count_shown(source: SourceFile, segment: Segment, pdf: bytes) -> Iterator[tuple[str, bool]]:
    with pymupdf.open(stream=pdf) as cut:
        assert cut.page_count == segment.end - segment.start + 1
        for index in range(cut.page_count):
            wanted = set(source.words_of_page.get((segment.part, segment.start + index), ()))
            yield f"page {segment.start + index}", read_shown_words(cut[index], wanted, recognise=True) == wanted


# --- there and back ---------------------------------------------------------------------------------------------------


def go_and_come_back(case: RoundTrip, folder: Path) -> tuple[list[dict[str, Any]], str]:
    """Export what is in a folder with this truth and read it back; return the records, and what was refused."""
    output = folder / "output"
    document = pymupdf.open()
    for text in case.pages:
        document.new_page().insert_textbox((40, 40, 550, 800), text)
    path = folder / f"{case.name}.pdf"
    document.save(path)
    doc_id = case.records[0].get("doc_id", case.name) if case.records else case.name
    bundle = bundle_of(doc_id, case.pages)
    stored = bundle.model_dump(mode="json") | {
        "file_path": str(path),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    files = open_folder(output)
    files.write_json(bundle_file_name(doc_id), stored)
    for number, review in enumerate(case.reviews, 1):
        files.write_json(review_file_name(doc_id, number), review)
    for record in case.records:
        if case.kind == "classification":
            nobody = {
                "ground_truth_source": "AUTO_ACCEPTED",
                "reviewer": None,
                "vouched": [],
                "review_reason": None,
                "packet_sha256": None,
                "revision": 0,
            }
            stored_record = HEADER | nobody | {"doc_id": doc_id, "ground_truth_classification": record}
        else:
            stored_record = record
        files.write_json(ground_truth_file_name(doc_id), stored_record)
    refusal = ""
    try:
        export_ground_truth(output, folder / "fhir", file_format="fhir", silver=True)
    except EvalkitError as error:
        refusal = str(error)
    truth = read_folder_ground_truth(folder / "fhir", include_silver=True)
    return [document.record.model_dump(mode="json") for document in truth.documents], refusal


def drop_keys(record: dict[str, Any]) -> dict[str, Any]:
    """The record without what no export has: patients' keys, and the document's name."""
    record.pop("doc_id", None)
    for segment in record["ground_truth_classification"]["segments"]:
        segment.pop("patient", None)
    return record


def contains(read: Any, meant: Any) -> bool:
    """Whether all that was meant was read; what a reader adds as a default is no difference."""
    if isinstance(meant, dict):
        return isinstance(read, dict) and all(
            contains(read.get(name, [] if value == [] else None), value) for name, value in meant.items()
        )
    if isinstance(meant, list):
        return len(read) == len(meant) and all(map(contains, read, meant))
    return (type(read) is type(meant) and read == meant) or (isinstance(meant, (int, float)) and read == meant)


def score_round_trips(half: str) -> Counter[str]:
    """Count the truths, and those that came back as expected."""
    counts: Counter[str] = Counter()
    for case in build(half, "ground_truths"):
        with tempfile.TemporaryDirectory() as folder:
            read, refusal = go_and_come_back(case, Path(folder))
            counts += check_bundles(Path(folder, "fhir"))
        if case.outcome == "refused":
            is_right = not read and bool(refusal)
        elif case.outcome == "nothing":
            is_right = not read and not refusal
        else:
            newest = case.records[-1]
            meant = newest if case.kind == "ground_truth" else {"ground_truth_classification": newest}
            is_right = not refusal and len(read) == 1 and contains(drop_keys(read[0]), drop_keys(meant))
        counts["truths"] += 1
        counts[f"{case.outcome}, as expected"] += is_right
        if not is_right:
            print(
                f"{case.name} ({case.what}): expected {case.outcome}; {refusal or 'no refusal'}, {len(read)} read",
                file=sys.stderr,
            )
    return counts


if __name__ == "__main__":
    os.environ.setdefault("EVALKIT_PATIENT_SALT", "a salt of benchmarks")
    half, *names = sys.argv[1:]
    if half in ("open", "sealed"):
        print(half, dict(score_cuts(half, names)))
        if not names:
            print(half, dict(score_round_trips(half)))
    else:
        print(dict(score_files([half, *names])))
