"""Every input is broken until checked: one clear line, the rest finished, nothing lost."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from patience import SECONDS, eventually_async
from places import open_index

import evalkit
from evalkit.documents import DocumentBundle
from evalkit.errors import StoreError, UsageError
from evalkit.pipeline.document_discovery import sanitise_file_stem
from evalkit.pipeline.executor.protocol import ReaderConfig
from evalkit.pipeline.executor.reader_pool import ReaderPool
from evalkit.settings import Settings
from evalkit.store import LocalOutputFolder, OutputFolder


@pytest.fixture
def pdf(samples: Path) -> bytes:
    return (samples / "quest_cbc.pdf").read_bytes()


def test_a_wrong_path_beside_a_right_one(samples: Path, tmp_path: Path) -> None:
    run = evalkit.run([samples / "quest_cbc.pdf", tmp_path / "gone"], output=tmp_path / "output")
    assert run.documents[0].decision == "AUTO_ACCEPT"
    assert len(run.problems) == 1
    assert str(tmp_path / "gone") in run.problems[0]
    assert run.exit_status == 1


@pytest.mark.parametrize("make", [lambda folder: folder, lambda folder: folder / "gone"])
def test_nothing_to_do_is_a_usage_error(tmp_path: Path, make) -> None:
    with pytest.raises(UsageError):
        evalkit.run([make(tmp_path)], output=tmp_path / "output")


def test_no_path_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        evalkit.run([], output=tmp_path / "output")


def test_unreadable_documents_are_named_and_the_others_finished(pdf: bytes, tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    (records / "a_good.pdf").write_bytes(pdf)
    (records / "b_empty.pdf").write_bytes(b"")
    (records / "c_page.pdf").write_bytes(b"<html><body>Sign in</body></html>")
    (records / "d_half.pdf").write_bytes(pdf[: len(pdf) // 2])
    (records / "e_good.pdf").write_bytes(pdf + b"\n% another copy\n")
    run = evalkit.run([records], output=tmp_path / "output")
    by_id = {one.doc_id: one for one in run.documents}
    assert by_id["a_good"].decision == by_id["e_good"].decision == "AUTO_ACCEPT"
    assert {one.doc_id for one in run.failed} >= {"b_empty", "c_page"}
    for one in run.failed:
        assert one.error
        assert "\n" not in one.error
        assert one.pdf_filename in one.error
        stored = json.loads((tmp_path / f"output/results/{one.doc_id}.json").read_text())
        assert set(stored["error"]) == {"code", "message", "remedy"}
    assert run.exit_status == 1
    half = by_id["d_half"]
    assert half.error or half.decision == "ESCALATE_TO_SME"


def test_unreadable_document_is_not_read_again_on_resume(tmp_path: Path) -> None:
    (tmp_path / "empty.pdf").write_bytes(b"")
    first, second = (evalkit.run([tmp_path / "empty.pdf"], output=tmp_path / "output") for _ in range(2))
    assert first.documents[0].error == second.documents[0].error
    assert second.documents[0].resumed
    assert second.exit_status == 1


def test_a_name_that_is_no_text_fails_alone(pdf: bytes, tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    (records / "good.pdf").write_bytes(pdf)
    (records / os.fsdecode(b"b\xffad.pdf")).write_bytes(pdf + b"\n% other\n")
    run = evalkit.run([records], output=tmp_path / "output")
    assert {one.decision for one in run.documents} == {"AUTO_ACCEPT", None}
    assert "Rename" in (run.failed[0].error or "")


def test_an_unforeseen_fault_fails_its_document_alone(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalkit.classification.orchestrator import RetryOrchestrator

    real = RetryOrchestrator.evaluate

    async def evaluate(self: RetryOrchestrator, bundle: DocumentBundle, *arguments: Any, **options: Any) -> object:
        if bundle.doc_id == "quest_cbc":
            raise LookupError("Zebulon Quagmire, born 1950")
        return await real(self, bundle, *arguments, **options)

    monkeypatch.setattr(RetryOrchestrator, "evaluate", evaluate)
    run = evalkit.run([samples / "quest_cbc.pdf", samples / "consent_form.pdf"], output=tmp_path / "output")
    assert [one.doc_id for one in run.failed] == ["quest_cbc"]
    assert "LookupError" in (run.failed[0].error or "")
    assert "Zebulon" not in (run.failed[0].error or "")


def test_storage_error_fails_only_its_own_document(
    pdf: bytes, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torn.pdf").write_bytes(pdf[:200])
    (tmp_path / "torn.pdf").chmod(0)
    exists = LocalOutputFolder.has_file

    def unsure(files: OutputFolder, name: str) -> bool:
        if "torn" in name:
            raise StoreError("no answer", code="STORE-FAILED", remedy="Try again.")
        return exists(files, name)

    monkeypatch.setattr(LocalOutputFolder, "has_file", unsure)
    monkeypatch.setattr(
        "evalkit.pipeline.document_run._TRANSIENT_ERROR_CODES", frozenset({"READER-DAMAGED", "READER-UNREADABLE"})
    )
    run = evalkit.run([tmp_path / "torn.pdf", samples / "quest_cbc.pdf"], output=tmp_path / "output")
    assert {one.doc_id: one.decision for one in run.documents} == {"torn": None, "quest_cbc": "AUTO_ACCEPT"}
    assert "no answer" in (run.failed[0].error or "")


@pytest.mark.parametrize("option", ["model", "reader", "workers", "profile", "executor"])
def test_an_option_beside_settings_is_not_passed_over_in_silence(samples: Path, tmp_path: Path, option: str) -> None:
    given: dict[str, Any] = {option: 1 if option == "workers" else "local"}
    with pytest.raises(UsageError, match=f"cannot be combined with `settings`: {option}"):
        evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "output", settings=Settings(), **given)
    assert not (tmp_path / "output").exists()


def test_a_file_beyond_all_limits_is_named_and_not_waited_for(pdf: bytes, tmp_path: Path) -> None:
    (tmp_path / "good.pdf").write_bytes(pdf)
    (tmp_path / "huge.pdf").touch()
    os.truncate(tmp_path / "huge.pdf", 200 * 1024**3)
    for _ in range(2):
        run = evalkit.run([tmp_path], output=tmp_path / "output")
        assert [(one.doc_id, one.decision) for one in run.documents] == [("good", "AUTO_ACCEPT"), ("huge", None)]
        assert "larger than 512 MB" in (run.failed[0].error or "")


def test_a_link_that_leads_nowhere_is_named(pdf: bytes, tmp_path: Path) -> None:
    (tmp_path / "good.pdf").write_bytes(pdf)
    (tmp_path / "gone.pdf").symlink_to(tmp_path / "nowhere.pdf")
    run = evalkit.run([tmp_path], output=tmp_path / "output")
    assert [one.doc_id for one in run.documents] == ["good"]
    assert "gone.pdf" in run.problems[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(pdf: bytes, tmp_path: Path) -> None:
    locked = tmp_path / "locked.pdf"
    locked.write_bytes(pdf)
    locked.chmod(0)
    run = evalkit.run([locked], output=tmp_path / "output")
    assert "right" in (run.documents[0].error or "")


def test_two_files_of_one_stem_and_the_same_file_twice(pdf: bytes, tmp_path: Path) -> None:
    for folder, extra in (("a", b""), ("b", b"\n% other bytes\n"), ("c", b"")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "report.pdf").write_bytes(pdf + extra)
    run = evalkit.run([tmp_path / "c", tmp_path / "b", tmp_path / "a", tmp_path / "a"], output=tmp_path / "output")
    ids = [one.doc_id for one in run.documents]
    assert ids[0] == "report"
    assert len(ids) == 2
    assert len(ids[1]) == len("report-") + 8
    assert len(run.copies) == 1
    assert "c/report.pdf" in run.copies[0]
    # The id is given once: another order, another run, the same names.
    again = evalkit.run([tmp_path / "b"], output=tmp_path / "output")
    assert [one.doc_id for one in again.documents] == ids[1:]


def test_new_bytes_at_an_old_path_are_a_new_document(pdf: bytes, tmp_path: Path) -> None:

    path, output = tmp_path / "report.pdf", tmp_path / "output"
    path.write_bytes(pdf)
    evalkit.run([path], output=output)
    path.write_bytes(pdf + b"\n% corrected\n")
    run = evalkit.run([path], output=output)
    new = run.documents[0].doc_id
    assert new.startswith("report-")
    rows = {row["doc_id"]: row["replaced"] for row in open_index(output).list_documents()}
    assert rows == {"report": True, new: False}


@pytest.mark.parametrize(
    ("name", "doc_id"),
    [
        ("doc2_6.pdf", "doc2_6"),
        ("Smith, John (2).pdf", "Smith_John_2_"),
        ("../../etc/passwd.pdf", "passwd"),
        ("....pdf", "document"),
        ("%2e%2e%2f.pdf", "_2e_2e_2f"),
        ("记录.pdf", "document"),
        ("a" * 300 + ".pdf", "a" * 120),
    ],
)
def test_names_are_made_safe(name: str, doc_id: str) -> None:
    assert sanitise_file_stem(name) == doc_id


def test_document_content_cannot_name_files_outside_output(samples: Path, tmp_path: Path) -> None:
    supplied = json.loads((samples / "classifications/segment_count.json").read_text())
    supplied |= {"doc_id": "../../escaped", "vendor_signals": ["../../escaped"], "self_evaluation": "../../x"}
    folder = tmp_path / "classifications"
    folder.mkdir()
    (folder / "segment_count.json").write_text(json.dumps(supplied))
    records = tmp_path / "records"
    records.mkdir()
    evil = records / "segment_count.pdf"
    evil.write_bytes((samples / "segment_count.pdf").read_bytes())
    evalkit.run([records], output=tmp_path / "output", classifications=folder)
    assert {path.name for path in tmp_path.iterdir()} == {"classifications", "records", "output"}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '"text"', "{}", '{"segments": 3}', "[" * 100_000, "\ufeff{}", "\x00", "NaN"]
)
def test_a_classification_of_wrong_shape_escalates_its_document(samples: Path, tmp_path: Path, text: str) -> None:
    folder = tmp_path / "classifications"
    folder.mkdir()
    (folder / "quest_cbc.json").write_text(text)
    run = evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "output", classifications=folder)
    result = json.loads((tmp_path / "output/results/quest_cbc.json").read_text())
    assert run.documents[0].decision == "ESCALATE_TO_SME"
    assert [issue["code"] for issue in result["issues"]] == ["V1-UNPARSEABLE"]
    assert result["classification"] is None
    assert (tmp_path / "output/sme_packets/sme_packet_quest_cbc.json").exists()


@pytest.mark.parametrize("first", ["dominant_type_overall", "dominant_type"])
def test_duplicate_json_key_in_classification_escalates(samples: Path, tmp_path: Path, first: str) -> None:
    text = (samples / "classifications/segment_count.json").read_text()
    folder = tmp_path / "classifications"
    folder.mkdir()
    (folder / "segment_count.json").write_text(text.replace(f'"{first}":', f'"{first}": 1, "{first}":'))
    evalkit.run([samples / "segment_count.pdf"], output=tmp_path / "output", classifications=folder)
    result = json.loads((tmp_path / "output/results/segment_count.json").read_text())
    assert [issue["code"] for issue in result["issues"]] == ["V1-UNPARSEABLE"]
    assert result["classification"] is None


@pytest.mark.parametrize("value", [r"\ud800", "x" * 3 + r"\udfff"])
def test_lone_surrogate_in_classification_escalates(samples: Path, tmp_path: Path, value: str) -> None:
    text = (samples / "classifications/segment_count.json").read_text()
    folder = tmp_path / "classifications"
    folder.mkdir()
    (folder / "segment_count.json").write_text(text.replace("{", f'{{"ignored": "{value}", ', 1))
    names = ["segment_count.pdf", "quest_cbc.pdf"]
    run = evalkit.run([samples / name for name in names], output=tmp_path / "output", classifications=folder)
    by_id = {one.doc_id: one for one in run.documents}
    assert by_id["segment_count"].decision == "ESCALATE_TO_SME"
    assert by_id["quest_cbc"].decision == "AUTO_ACCEPT"


def test_a_classification_for_an_unknown_document_is_one_line(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "classifications"
    folder.mkdir()
    (folder / "who.json").write_text("{}")
    run = evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "output", classifications=folder)
    assert run.documents[0].decision == "AUTO_ACCEPT"
    assert len(run.problems) == 1
    assert "who.json" in run.problems[0]


@pytest.mark.parametrize(
    "text", ["", "name,label\na,Other\n", "doc_id,dominant_type\nx,\n", "doc_id\nx\n", "\xff\xfe\x00"]
)
def test_production_labels_without_their_columns(samples: Path, tmp_path: Path, text: str) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"labels\.csv"):
        evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "output", production=labels)


def test_production_labels_as_json_by_file_name(samples: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.json"
    labels.write_text(json.dumps([{"filename": "adjoining_notes.pdf", "dominant_type": "Other", "confidence": 0.4}]))
    evalkit.run([samples / "adjoining_notes.pdf"], output=tmp_path / "output", production=labels)
    packet = json.loads((tmp_path / "output/sme_packets/sme_packet_adjoining_notes.json").read_text())
    assert packet["production_classification"] == {"dominant_type": "Other", "confidence": 0.4}


def test_a_file_name_that_two_documents_bear_labels_neither(samples: Path, tmp_path: Path) -> None:
    for folder, name in (("a", "adjoining_notes"), ("b", "misfiled_page")):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "scan.pdf").write_bytes((samples / f"{name}.pdf").read_bytes())
    labels = tmp_path / "labels.csv"
    labels.write_text("filename,dominant_type\nscan.pdf,Other\n")
    run = evalkit.run([tmp_path / "in"], output=tmp_path / "output", production=labels)
    (problem,) = run.problems
    assert "several documents are called scan.pdf" in problem
    assert run.exit_status == 1
    packets = [json.loads(path.read_text()) for path in (tmp_path / "output/sme_packets").iterdir()]
    assert packets
    assert {packet["production_classification"] is None for packet in packets} == {True}
    assert not (tmp_path / "output/production.json").exists()


def test_labels_that_belong_to_no_document_are_one_line(samples: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("doc_id,dominant_type\nquest_cbc,Other\nnobody,Other\n")
    run = evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "output", production=labels)
    (problem,) = run.problems
    assert "1 row of production labels belongs to no document: nobody" in problem
    # A row about a document of an earlier run is no slip.
    labels.write_text("doc_id,dominant_type\nquest_cbc,Other\nconsent_form.pdf,Other\n")
    later = evalkit.run([samples / "consent_form.pdf"], output=tmp_path / "output", production=labels)
    assert later.problems == ()


def test_a_folder_of_classifications_that_is_not_there(samples: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone"):
        evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "output", classifications=tmp_path / "gone")


def test_an_output_folder_that_cannot_be_made(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="output folder"):
        evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "file")


def test_a_full_disk_fails_the_document_and_keeps_what_was(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "output"
    evalkit.run([samples / "quest_cbc.pdf"], output=output)
    real = os.fsync

    def full(handle: int) -> None:
        if os.path.realpath(f"/proc/self/fd/{handle}").startswith(str(output / ".tmp")):
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    run = evalkit.run([samples / "quest_cbc.pdf", samples / "requisition.pdf"], output=output)
    monkeypatch.undo()
    by_id = {one.doc_id: one for one in run.documents}
    assert by_id["quest_cbc"].resumed
    assert "space" in (by_id["requisition"].error or "")
    assert run.exit_status == 1
    assert list((output / ".tmp").iterdir()) == []
    assert evalkit.run([samples / "requisition.pdf"], output=output).documents[0].decision == "AUTO_ACCEPT"


def test_a_file_that_kills_its_reader_ends_alone(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalkit.pipeline.executor import reader_pool

    monkeypatch.setattr(reader_pool, "read_with_limits", _deadly_read)
    names = ["quest_cbc.pdf", "requisition.pdf", "consent_form.pdf"]
    run = evalkit.run([samples / name for name in names], output=tmp_path / "output", workers=2)
    by_id = {one.doc_id: one for one in run.documents}
    assert "crashed the process" in (by_id["requisition"].error or "")
    assert by_id["quest_cbc"].decision == by_id["consent_form"].decision == "AUTO_ACCEPT"


def test_interrupt_does_not_wait_for_a_read(tmp_path: Path) -> None:
    async def interrupted() -> float:
        with ReaderPool(1, ReaderConfig(processor_seconds=600)) as readers:
            again = asyncio.create_task(readers.run_in_worker(_mark_and_sleep, tmp_path / "begun"))
            assert await eventually_async((tmp_path / "begun").exists)
            again.cancel()
            began = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await again
            return time.monotonic() - began

    assert asyncio.run(interrupted()) < SECONDS


def _mark_and_sleep(mark: Path) -> None:
    mark.touch()
    time.sleep(600)


def test_a_pipe_is_not_waited_for(samples: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    run = evalkit.run([tmp_path / "pipe.pdf", samples / "quest_cbc.pdf"], output=tmp_path / "output")
    assert [one.doc_id for one in run.documents] == ["quest_cbc"]
    assert "pipe" in run.problems[0]


def _deadly_read(how: ReaderConfig, path: Path, doc_id: str, timestamp: str):
    import signal

    from evalkit.pipeline.executor.reader_pool import read_with_limits

    if path.stem == "requisition":
        os.kill(os.getpid(), signal.SIGSEGV)
    return read_with_limits(how, path, doc_id, timestamp)
