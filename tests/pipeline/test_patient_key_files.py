"""What is done with patients' keys in an output folder: corrected, audited, found and purged by them."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from builders import NOTE, answer, compose_single_type, segment
from commands import evalkit_command
from once import make_once
from places import open_folder

import evalkit
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.evaluation.export import export_ground_truth
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.purge import find_doc_ids_of_patient
from evalkit.review import SMEReviewHelper
from evalkit.review.index_rebuild import reindex
from evalkit.samples.manuscript import Manuscript
from evalkit.samples.pdf_drawing import draw_pdf
from evalkit.store import OutputIndex

CORRECTED = [(1, 2, "Pathology Report"), (3, 3, "Pathology Report"), (4, 4, "Pathology Report")]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """Dorothy Kessler's file with a page of Miriam Varga's inside one document; Miriam's own file; somebody else's."""

    def make(place: Path) -> Path:
        records, answers = place / "records", place / "answers"
        records.mkdir()
        answers.mkdir()
        shutil.copy(samples / "misfiled_page.pdf", records / "dorothy.pdf")
        shutil.copy(samples / "clinical_note.pdf", records / "other.pdf")
        text = (files("evalkit.samples") / "content/adjoining_notes.toml").read_text("utf-8")
        for old, new in (("Osgood", "Varga"), ("Walter", "Miriam"), ("02/08/1956", "11/30/1972")):
            text = text.replace(old, new)
        (records / "miriam.pdf").write_bytes(draw_pdf(Manuscript.parse_toml(text)))
        one_document = segment(1, 1, 4, NOTE, compose_single_type(NOTE))
        (answers / "dorothy.json").write_text(json.dumps(answer(one_document, overall=NOTE, shares={NOTE: 1.0})))
        evalkit.run([records], output=place / "output", classifications=answers)
        return place / "output"

    return make_once(tmp_path_factory, "patient_keys", make)


@pytest.fixture
def output(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "output")
    return tmp_path / "output"


def list_patients(output: Path, name: str, part: str = "classification") -> list[Any]:
    return [one["patient"] for one in json.loads((output / name).read_text())[part]["segments"]]


def find_key(output: Path, doc_id: str, name: str = "name_key") -> str:
    return str(list_patients(output, f"results/{doc_id}.json")[0][name])


def correct(output: Path) -> None:
    helper = SMEReviewHelper(output, "dr_lee")
    helper.save_review("dorothy", corrected_segments=CORRECTED)
    helper.close()


def list_corrected(output: Path) -> list[Any]:
    patients = list_patients(output, "ground_truth/gt_dorothy.json", "ground_truth_classification")
    return [patient and patient["name_key"] for patient in patients]


def test_packet_has_the_keys_of_its_result(output: Path) -> None:
    patients = list_patients(output, "results/dorothy.json")
    assert [sorted(patient) for patient in patients] == [["fields_seen", "name_key", "number_key"]]
    assert list_patients(output, "sme_packets/sme_packet_dorothy.json") == patients


def test_corrected_pages_have_the_keys_of_their_patients(output: Path) -> None:
    correct(output)
    own, other = find_key(output, "dorothy"), find_key(output, "miriam")
    assert list_corrected(output) == [own, other, own]
    assert verify_integrity(open_folder(output)).faults == ()
    assert "patient" not in json.dumps(json.loads((output / "reviews/dorothy/0001.json").read_text())["after"])


def test_a_validated_answer_keeps_the_keys_of_its_packet(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALKIT_PATIENT_SALT")  # which nobody asks for
    helper = SMEReviewHelper(output, "dr_lee")
    helper.save_review("dorothy", corrected_dominant_type="Pathology Report", vouched=["dominant_type"])
    helper.close()
    assert list_corrected(output) == [find_key(output, "dorothy")]


def test_corrections_are_saved_without_the_salt_and_keyed_later(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.delenv("EVALKIT_PATIENT_SALT")
        correct(output)
    assert list_corrected(output) == [None, None, None]
    assert verify_integrity(open_folder(output)).faults == ()
    reindex(open_folder(output))
    assert None not in list_corrected(output)


@pytest.mark.parametrize(("name", "value"), [("dominant_type", "Other"), ("reasoning", "forged")])
def test_an_audit_still_finds_forged_ground_truth(output: Path, name: str, value: str) -> None:
    correct(output)
    path = output / "ground_truth/gt_dorothy.json"
    stored = json.loads(path.read_text())
    stored["ground_truth_classification"]["segments"][1][name] = value
    path.write_text(json.dumps(stored))
    assert [fault.file for fault in verify_integrity(open_folder(output)).faults] == ["ground_truth/gt_dorothy.json"]


def test_a_patient_is_found_on_every_page_of_every_file(output: Path) -> None:
    folder = open_folder(output)
    assert find_doc_ids_of_patient(folder, find_key(output, "miriam")) == ["dorothy", "miriam"]
    assert find_doc_ids_of_patient(folder, find_key(output, "dorothy")) == ["dorothy"]
    assert find_doc_ids_of_patient(folder, find_key(output, "other")) == ["other"]


def test_keys_of_one_person_lead_to_each_other(output: Path) -> None:
    """Miriam's number at her own clinic is on no page of Dorothy's file, but her name and birth date are."""
    number_key = find_key(output, "miriam", "number_key")
    assert number_key not in (output / "results/dorothy.json").read_text()
    assert find_doc_ids_of_patient(open_folder(output), number_key) == ["dorothy", "miriam"]


def test_an_unknown_key_or_another_salt_is_refused(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound):
        find_doc_ids_of_patient(open_folder(output), "0" * 32)
    monkeypatch.setenv("EVALKIT_PATIENT_SALT", "another one of many characters")
    with pytest.raises(UsageError):
        find_doc_ids_of_patient(open_folder(output), find_key(output, "other"))


@pytest.mark.parametrize(
    "spoil", [lambda text: text[:-9], lambda text: text.replace('"date_of_birth"', '"11/30/1972"')]
)
def test_a_damaged_bundle_is_named_and_not_passed_over(output: Path, spoil: Any) -> None:
    path = output / "document_bundles/dorothy.json"
    path.write_text(spoil(path.read_text()))
    with pytest.raises(StoreError, match=r"document_bundles/dorothy\.json") as refused:
        find_doc_ids_of_patient(open_folder(output), find_key(output, "other"))
    assert "1972" not in f"{refused.value}{refused.value.__cause__}"


def test_a_records_officer_purges_by_the_key_that_show_shows(output: Path) -> None:
    shown = evalkit_command("show", "miriam", "--output", output).stdout
    key = find_key(output, "miriam")
    assert f"patient keys: name {key}, number {find_key(output, 'miriam', 'number_key')}" in shown
    listed = evalkit_command("purge", "--patient-key", key, "--output", output)
    assert listed.returncode == 0
    assert "results/dorothy.json" in listed.stdout
    assert "2 documents would be purged; nothing was removed; give --yes to remove them" in listed.stdout
    assert (output / "results/dorothy.json").exists()
    refused = evalkit_command("purge", "--patient-key", key, "--older-than", "1", "--output", output)
    assert (refused.returncode, "--older-than" in refused.stderr) == (2, True)
    salt = (output / "patient_salt.json").read_bytes()
    purged = evalkit_command("purge", "--patient-key", key, "--yes", "--json", "--output", output)
    assert [one["doc_id"] for one in json.loads(purged.stdout)] == ["dorothy", "miriam"]
    assert [path.name for path in sorted((output / "results").iterdir())] == ["other.json"]
    assert (output / "patient_salt.json").read_bytes() == salt
    assert evalkit_command("purge", "--patient-key", key, "--output", output).returncode == 2


def test_an_interrupted_purge_by_key_says_how_to_finish(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("purge", "--patient-key", find_key(output, "other"), "--yes", "--output", output)
    with monkeypatch.context() as patch:
        patch.setattr(OutputIndex, "vacuum", lambda _: False)
        assert evalkit_command(*words).returncode == 1
    again = evalkit_command(*words)
    assert (again.returncode, "run `evalkit purge` without a name to finish it" in again.stderr) == (2, True)
    assert evalkit_command("purge", "--output", output).returncode == 0
    assert not (output / "purging.json").exists()


def test_a_patients_files_are_in_one_part_of_a_split(output: Path, tmp_path: Path) -> None:
    correct(output)
    helper = SMEReviewHelper(output, "dr_lee")
    helper.save_review("miriam", corrected_segments=[(1, 2, NOTE)])
    helper.close()
    for seed in range(8):
        target = tmp_path / f"{seed}.jsonl"
        export_ground_truth(output, target, silver=True, split={"train": 0.5, "test": 0.5}, seed=seed)
        lines = [json.loads(line) for line in target.read_text().splitlines()]
        part_by_document = {line["doc_id"]: line["split"] for line in lines}
        assert part_by_document["dorothy"] == part_by_document["miriam"]
        assert "patient" not in [
            key for line in lines for one in line["ground_truth_classification"]["segments"] for key in one
        ]
