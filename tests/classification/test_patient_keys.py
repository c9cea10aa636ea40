"""Patients' keys: the same for one person however the facts are written, another for everybody else, and never a name."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from builders import NOTE, answer, compose_single_type, document, page, parse_answer, segment
from hypothesis import given
from hypothesis import strategies as st
from places import open_folder

import evalkit
from evalkit.classification.patient_keys import (
    KeyedClassification,
    PatientKeys,
    attach_patient_keys,
    compute_patient_keys_by_page_range,
    drop_patient_keys,
    list_person_keys,
    load_or_create_patient_salt,
)
from evalkit.classification.primary_classifier import ClassifierQuestion
from evalkit.classification.schema import ReviewedClassification
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.identity.file_persons import group_pages_by_person
from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.errors import UsageError
from evalkit.store import PATIENT_SALT_FILE

SALT = b"a salt of sixteen or more"
HELEN = "Pine Hill Hospital\nPatient: Helen A. Marsh DOB: 03/22/1971 MRN: 70021"
STORY = "No pain at all."


def build_bundle(*texts: str) -> DocumentBundle:
    pages = [
        page(number, text).model_copy(update={"identifiers": find_patient_identifiers(text, ())})
        for number, text in enumerate(texts, 1)
    ]
    return document(*pages)


def build_answer(*ranges: tuple[int, int]) -> Any:
    segments = [
        segment(index, start, end, NOTE, compose_single_type(NOTE)) for index, (start, end) in enumerate(ranges, 1)
    ]
    return parse_answer(answer(*segments, overall=NOTE, shares={NOTE: 1.0}))


def key_pages(*texts: str, ranges: tuple[tuple[int, int], ...] = (), salt: bytes = SALT) -> list[PatientKeys | None]:
    persons = group_pages_by_person(build_bundle(*texts).pages)
    patients = compute_patient_keys_by_page_range(build_answer(*(ranges or ((1, len(texts)),))), persons, salt)
    return list(patients.values())


def name_key(line: str) -> str | None:
    (patient,) = key_pages(f"Pine Hill Hospital\n{line}")
    return patient and patient.name_key


@pytest.mark.parametrize(
    "line",
    [
        "Patient: MARSH, HELEN A. DOB: 22 March 1971",
        "Patient: Ms. Helen Marsh DOB: 1971-03-22",
        "Patient: Marsh, Helen Anne DOB: 03/22/71",
        "Patient: HELEN MARSH DOB: 03-22-1971 Sex: F",
    ],
)
def test_one_person_written_differently_has_one_key(line: str) -> None:
    assert name_key(line) == name_key("Patient: Helen A. Marsh DOB: 03/22/1971") is not None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Jan van der Berg", "VAN DER BERG, JAN"),
        ("Ann O'Hara", "O’HARA, ANN"),
        ("Helen Smith-Jones", "SMITH-JONES, HELEN"),
        ("Karl Müller", "MUELLER, KARL"),
        ("Paul Marshall", "PAUL MARSHA11"),
    ],
)
def test_spelling_of_a_name_does_not_change_its_key(first: str, second: str) -> None:
    keys = {name_key(f"Patient: {name} DOB: 03/22/1971") for name in (first, second)}
    assert len(keys) == 1
    assert None not in keys


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Helen Marsh DOB: 03/22/1971", "Helen Marsh DOB: 03/23/1971"),
        ("Helen Marsh DOB: 03/22/1971", "Hilda Marsh DOB: 03/22/1971"),
        ("Helen Marsh DOB: 03/22/1971", "Helen Moor DOB: 03/22/1971"),
        ("Baby Girl A Marsh DOB: 03/22/2021", "Baby Girl B Marsh DOB: 03/22/2021"),
    ],
)
def test_other_persons_have_other_keys(first: str, second: str) -> None:
    keys = [name_key(f"Patient: {line}") for line in (first, second)]
    assert None not in keys
    assert keys[0] != keys[1]


@pytest.mark.parametrize("line", ["Patient: Helen Marsh", "Patient: H. Marsh DOB: 03/22/1971", "DOB: 03/22/1971"])
def test_a_name_key_needs_name_and_birth_date(line: str) -> None:
    assert name_key(line) is None


def number_key(text: str) -> str | None:
    (patient,) = key_pages(text)
    return patient and patient.number_key


def test_a_number_counts_with_its_institution() -> None:
    own = number_key(HELEN)
    assert own is not None
    assert own == number_key("PINE HILL HOSPITAL\nPatient: Uwe Ott MRN: MRN-0070021")
    assert own != number_key("Lakeside Hospital\nPatient: Helen Marsh MRN: 70021")
    assert own != number_key("Pine Hill Hospital\nPatient: Helen Marsh MRN: 70022")
    assert number_key("Patient: Helen Marsh DOB: 03/22/1971 MRN: 70021") is None


def test_pages_that_print_nothing_have_no_patient() -> None:
    first, second, third = key_pages(HELEN, STORY, "Patient: Helen Marsh", ranges=((1, 1), (2, 2), (3, 3)))
    assert first is not None
    assert first.fields_seen == ("date_of_birth", "mrn", "patient")
    assert second is None
    assert third == PatientKeys(name_key=None, number_key=None, fields_seen=("patient",))


def test_a_misread_page_has_the_key_of_the_others() -> None:
    misread = HELEN.replace("1971", "1977")
    first, second = key_pages(HELEN, HELEN, misread, ranges=((1, 2), (3, 3)))
    assert first is not None
    assert second is not None
    assert first.name_key == second.name_key


def test_a_segment_has_the_keys_of_most_of_its_pages() -> None:
    uwe = "Pine Hill Hospital\nPatient: Uwe Ott DOB: 01/02/1950 MRN: 88"
    mixed, own = key_pages(HELEN, uwe, HELEN, uwe, ranges=((1, 3), (4, 4)))
    assert mixed is not None
    assert own is not None
    assert mixed.name_key == name_key("Patient: Helen Marsh DOB: 03/22/1971")
    assert own.name_key == name_key("Patient: Uwe Ott DOB: 01/02/1950")


@given(st.permutations(["Helen Marsh", "Uwe Ott", "Jane Doe"]), st.lists(st.integers(1, 2), min_size=3, max_size=3))
def test_every_segmentation_has_keys_of_the_files_persons(names: list[str], page_counts: list[int]) -> None:
    """So that who looks for a person in the bundles misses no segment, whichever pages an expert makes one of."""
    texts = [
        f"Pine Hill Hospital\nPatient: {name} DOB: 03/2{index}/1971 MRN: 7002{index}"
        for index, (name, count) in enumerate(zip(names, page_counts, strict=True))
        for _ in range(count)
    ]
    persons = group_pages_by_person(build_bundle(*texts).pages)
    file_keys = set[str]().union(*(list_person_keys(person, SALT) for person in persons))
    assert len(file_keys) == 6
    ranges = tuple((start, end) for end in range(1, len(texts) + 1) for start in range(1, end + 1))
    for patient in compute_patient_keys_by_page_range(build_answer(*ranges), persons, SALT).values():
        assert patient is not None
        assert {patient.name_key, patient.number_key} <= file_keys


@given(st.binary(min_size=16, max_size=40), st.binary(min_size=16, max_size=40))
def test_a_key_depends_on_the_salt(first: bytes, second: bytes) -> None:
    keys = [key_pages(HELEN, salt=salt) for salt in (first, second, first)]
    assert keys[0] == keys[2]
    assert (keys[0] == keys[1]) == (first == second)


def test_a_key_shows_nothing_of_the_facts() -> None:
    (patient,) = key_pages(HELEN)
    assert patient is not None
    dumped = patient.model_dump_json()
    assert not [word for word in ("marsh", "helen", "1971", "70021", "pine") if word in dumped.lower()]
    assert {len(patient.name_key or ""), len(patient.number_key or "")} == {32}


# ------------------------------------------------------------------------------------- answers and their schema


def test_no_answer_can_set_its_patient() -> None:
    forged = PatientKeys(name_key="f" * 32, number_key=None, fields_seen=()).model_dump(mode="json")
    plain = build_answer((1, 1))
    claimed = plain.to_json()
    claimed["segments"][0]["patient"] = forged
    read = type(plain).model_validate(claimed)
    assert "f" * 32 not in read.model_dump_json()
    stored = KeyedClassification.model_validate(claimed)
    assert attach_patient_keys(stored, {}).segments[0].patient is None


def test_a_supplied_patient_is_overwritten(tmp_path: Path, samples: Path) -> None:
    supplied = json.loads((samples / "classifications/altered_quotes.json").read_text())
    for part in supplied["segments"]:
        part["patient"] = {"name_key": "f" * 32, "number_key": "f" * 32, "fields_seen": ["sex"]}
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers/altered_quotes.json").write_text(json.dumps(supplied))
    evalkit.run([samples / "altered_quotes.pdf"], output=tmp_path / "out", classifications=tmp_path / "answers")
    for name in ("results/altered_quotes.json", "sme_packets/sme_packet_altered_quotes.json"):
        stored = json.loads((tmp_path / "out" / name).read_text())
        (patient,) = [part["patient"] for part in stored["classification"]["segments"]]
        assert "f" * 32 not in patient.values()
        assert patient["name_key"]


def test_a_model_is_not_asked_for_a_patient() -> None:
    schema = json.dumps(ClassifierQuestion.answer_type.model_json_schema())
    assert "patient" not in schema.replace("patient's", "").lower()


def test_to_json_and_reviews_have_no_keys() -> None:
    plain = build_answer((1, 1))
    keyed = attach_patient_keys(plain, dict(zip([(1, 1)], key_pages(HELEN), strict=True)))
    assert keyed.segments[0].patient
    assert keyed.to_json() == plain.to_json()
    reviewed = ReviewedClassification.model_validate(plain)
    assert drop_patient_keys(keyed) == drop_patient_keys(plain) == reviewed
    assert drop_patient_keys(reviewed.model_copy(update={"segments": keyed.segments})) == reviewed


# --------------------------------------------------------------------------------------------------------- salt


@pytest.fixture
def without_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALKIT_PATIENT_SALT")


@pytest.mark.usefixtures("without_variable")
def test_the_salt_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    folder = open_folder(tmp_path / "out")
    salt = load_or_create_patient_salt(folder)
    assert len(salt) == 64
    assert load_or_create_patient_salt(folder) == salt
    assert stat.S_IMODE((tmp_path / "out" / PATIENT_SALT_FILE).stat().st_mode) == 0o600
    assert load_or_create_patient_salt(open_folder(tmp_path / "other")) != salt


@pytest.mark.usefixtures("without_variable")
def test_who_loads_the_salt_second_takes_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = open_folder(tmp_path / "out")
    salt = load_or_create_patient_salt(folder)
    has_file = folder.has_file
    monkeypatch.setattr(type(folder), "has_file", lambda self, name: name != PATIENT_SALT_FILE and has_file(name))
    assert load_or_create_patient_salt(folder) == salt


@pytest.mark.usefixtures("without_variable")
def test_a_lost_salt_is_not_replaced_by_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = open_folder(tmp_path / "out")
    folder.write_json("results/a.json", {"schema_version": 1})
    with pytest.raises(UsageError, match=r"patient_salt\.json is missing .*backup"):
        load_or_create_patient_salt(folder)
    monkeypatch.setenv("EVALKIT_PATIENT_SALT", "0123456789abcdef")
    assert load_or_create_patient_salt(folder) == b"0123456789abcdef"


def test_the_salt_works_in_a_bucket(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALKIT_PATIENT_SALT")
    assert load_or_create_patient_salt(open_folder(bucket)) == load_or_create_patient_salt(open_folder(bucket))


def test_the_variables_salt_is_not_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALKIT_PATIENT_SALT", "0123456789abcdef")
    folder = open_folder(tmp_path / "out")
    assert load_or_create_patient_salt(folder) == b"0123456789abcdef"
    assert "0123456789abcdef" not in (tmp_path / "out" / PATIENT_SALT_FILE).read_text()


@pytest.mark.parametrize(
    ("first", "then"), [("0" * 16, "1" * 16), ("0" * 16, ""), ("", "1" * 16), ("0" * 16, "0" * 15)]
)
def test_keys_of_two_salts_are_never_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, then: str
) -> None:
    monkeypatch.setenv("EVALKIT_PATIENT_SALT", first)
    load_or_create_patient_salt(open_folder(tmp_path / "out"))
    monkeypatch.setenv("EVALKIT_PATIENT_SALT", then)
    with pytest.raises(UsageError) as refused:
        load_or_create_patient_salt(open_folder(tmp_path / "out"))
    assert refused.value.code == "PATIENT-SALT"
    assert "0" * 15 not in str(refused.value)


@pytest.mark.usefixtures("without_variable")
def test_a_repeated_run_is_equal_to_the_byte(tmp_path: Path, samples: Path) -> None:
    def run() -> dict[str, bytes]:
        evalkit.run([samples / "adjoining_notes.pdf"], output=tmp_path / "out", fresh=True)
        results = json.loads((tmp_path / "out/results/adjoining_notes.json").read_text())
        return {
            "salt": (tmp_path / "out" / PATIENT_SALT_FILE).read_bytes(),
            "classification": json.dumps(results["classification"]).encode(),
            "fingerprint": results["fingerprint"].encode(),
        }

    first = run()
    assert run() == first


def test_the_salt_is_no_part_of_the_fingerprint(tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fingerprints, keys = set(), set()
    for salt in ("0" * 16, "1" * 16):
        monkeypatch.setenv("EVALKIT_PATIENT_SALT", salt)
        result = evalkit.evaluate(samples / "adjoining_notes.pdf")
        fingerprints.add(result.fingerprint)
        keys.update(part.patient.name_key for part in result.classification.segments)
    assert (len(fingerprints), len(keys)) == (1, 2)
    monkeypatch.delenv("EVALKIT_PATIENT_SALT")
    result = evalkit.evaluate(samples / "adjoining_notes.pdf")
    assert {part.patient for part in result.classification.segments} == {None}
