"""The main job, as a user does it: PDFs in, verified decisions out."""

import asyncio
import hashlib
import json
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from places import open_folder
from samples.demo_runs import list_file_stamps, run_samples

import evalkit
from evalkit.errors import DocumentError, ReviewConflict, StoreError, UsageError
from evalkit.pipeline import RunSummary
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.review import SMEReviewHelper
from evalkit.review.index_rebuild import reindex
from evalkit.samples.__main__ import describe_wrong_decisions
from evalkit.settings import Settings
from evalkit.store import MONITORING_FILE


def test_every_sample_is_decided_as_expected(samples: Path, demo_run: RunSummary) -> None:
    assert describe_wrong_decisions(samples, Path(demo_run.output)) == []
    assert demo_run.exit_status == 0
    decided = {(one.decision, one.attempts > 1) for one in demo_run.documents}
    assert decided == {("AUTO_ACCEPT", False), ("AUTO_ACCEPT", True), ("ESCALATE_TO_SME", False)}


def test_the_check_of_the_samples_sees_a_difference(samples: Path, demo_run: RunSummary, tmp_path: Path) -> None:
    expected = json.loads((samples / "expected.json").read_text())
    expected["documents"]["quest_cbc"]["dominant_type"] = "Genomic Report"
    (tmp_path / "expected.json").write_text(json.dumps(expected))
    assert [line.split(":")[0] for line in describe_wrong_decisions(tmp_path, Path(demo_run.output))] == ["quest_cbc"]


def test_escalated_and_audited_get_packets_accepted_silver(demo_run: RunSummary) -> None:
    output = Path(demo_run.output)
    packets = {path.stem.removeprefix("sme_packet_") for path in (output / "sme_packets").iterdir()}
    escalated = {one.doc_id for one in demo_run.documents if one.decision == "ESCALATE_TO_SME"}
    silver = {path.stem.removeprefix("gt_") for path in (output / "ground_truth").iterdir()}
    assert escalated <= packets
    assert silver == {one.doc_id for one in demo_run.documents if one.decision == "AUTO_ACCEPT"}
    for case_id in packets - escalated:
        packet = json.loads((output / "sme_packets" / f"sme_packet_{case_id}.json").read_text())
        assert (packet["review_reason"], packet["inclusion_probability"]) == ("audit", 0.2)


def test_everything_is_private_to_the_user(demo_run: RunSummary) -> None:
    output = Path(demo_run.output)
    for path in output.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path.name


def test_a_second_run_asks_and_writes_nothing(samples: Path, demo_run: RunSummary, tmp_path: Path) -> None:
    shutil.copytree(demo_run.output, tmp_path / "output")
    before = list_file_stamps(tmp_path / "output")
    second = run_samples(samples, tmp_path / "output")
    assert list_file_stamps(tmp_path / "output") == before
    assert all(one.resumed and one.calls == 0 for one in second.documents)
    assert sum(one.calls for one in demo_run.documents) > 0
    decisions = [[(one.doc_id, one.decision, one.decision_rule) for one in run.documents] for run in (demo_run, second)]
    assert decisions[0] == decisions[1]


def test_fresh_does_everything_again(samples: Path, tmp_path: Path) -> None:
    one = samples / "quest_cbc.pdf"
    evalkit.run([one], output=tmp_path / "output")
    before = list_file_stamps(tmp_path / "output")["results/quest_cbc.json"]
    again = evalkit.run([one], output=tmp_path / "output", fresh=True)
    assert not again.documents[0].resumed
    assert list_file_stamps(tmp_path / "output")["results/quest_cbc.json"] != before


def test_what_made_the_result_is_in_its_fingerprint(samples: Path, tmp_path: Path) -> None:
    def fingerprint(**options: object) -> str:
        run = evalkit.run([samples / "segment_count.pdf"], output=tmp_path / "output", **options)
        return str(json.loads((Path(run.output) / "results/segment_count.json").read_text())["fingerprint"])

    asked = fingerprint()
    supplied = fingerprint(classifications=_only(samples, tmp_path, "segment_count"))
    lossless = fingerprint(settings=Settings.load(output=str(tmp_path / "output"), lossless_repair=True))
    assert len({asked, supplied, lossless}) == 3
    assert fingerprint(workers=2, no_classifications=True) == asked
    assert fingerprint(production=samples / "production.csv") == asked


def _only(samples: Path, tmp_path: Path, doc_id: str) -> Path:
    folder = tmp_path / "classifications"
    folder.mkdir(exist_ok=True)
    (folder / f"{doc_id}.json").write_bytes((samples / "classifications" / f"{doc_id}.json").read_bytes())
    return folder


def test_lossless_repair_accepts_the_wrong_segment_count(samples: Path, tmp_path: Path) -> None:
    settings = Settings.load(output=str(tmp_path / "output"), lossless_repair=True)
    run = evalkit.run(
        [samples / "segment_count.pdf"],
        classifications=_only(samples, tmp_path, "segment_count"),
        settings=settings,
    )
    assert run.documents[0].decision == "AUTO_ACCEPT"
    issues = run.issues_frame()
    assert issues.set_index("code").loc["V1-SEGMENT-COUNT", "status"] == "repaired"


def test_a_document_that_is_accepted_now_leaves_the_queue(samples: Path, tmp_path: Path) -> None:
    one, output = samples / "segment_count.pdf", tmp_path / "output"
    evalkit.run([one], output=output, classifications=_only(samples, tmp_path, "segment_count"))
    assert (output / "sme_packets/sme_packet_segment_count.json").exists()
    settings = Settings.load(output=str(output), audit_rate_start=0.0)
    evalkit.run([one], settings=settings, no_classifications=True)
    assert not (output / "sme_packets/sme_packet_segment_count.json").exists()
    assert (output / "ground_truth/gt_segment_count.json").exists()


def test_newly_escalated_document_loses_its_silver_record(samples: Path, tmp_path: Path) -> None:
    one, output = samples / "segment_count.pdf", tmp_path / "output"
    evalkit.run([one], output=output)
    assert (output / "ground_truth/gt_segment_count.json").exists()
    evalkit.run([one], output=output, classifications=_only(samples, tmp_path, "segment_count"))
    assert not (output / "ground_truth/gt_segment_count.json").exists()
    assert (output / "sme_packets/sme_packet_segment_count.json").exists()


def test_production_labels_reach_packet_of_resumed_document(samples: Path, tmp_path: Path) -> None:
    one, output = samples / "fabricated_quote.pdf", tmp_path / "output"
    supplied = _only(samples, tmp_path, "fabricated_quote")
    packet = output / "sme_packets/sme_packet_fabricated_quote.json"
    evalkit.run([one], output=output, classifications=supplied)
    assert json.loads(packet.read_text())["production_differs"] is None
    run = evalkit.run([one], output=output, classifications=supplied, production=samples / "production.csv")
    assert run.documents[0].resumed
    assert json.loads(packet.read_text())["production_differs"] is True


def test_unknown_production_label_is_null_and_named(samples: Path, tmp_path: Path) -> None:
    one, output, labels = samples / "fabricated_quote.pdf", tmp_path / "output", tmp_path / "labels.csv"
    packet = output / "sme_packets/sme_packet_fabricated_quote.json"
    found = {}
    for word in ("LAB", " genomic  REPORT", "gen", "Other"):
        labels.write_text(f"doc_id,dominant_type\nfabricated_quote,{word}\n")
        settings = Settings.load(output=str(output), foreign_types={"GEN": "Genomic Report"})
        classifications = _only(samples, tmp_path, "fabricated_quote")
        run = evalkit.run([one], classifications=classifications, production=labels, settings=settings)
        stored = json.loads(packet.read_text())
        found[word] = stored["production_differs"], stored["production_classification"]["dominant_type"]
        assert run.exit_status == 0
        assert run.to_json(vars)["unknown_production_labels"] == (["LAB"] if word == "LAB" else [])
        assert (run.label_hint is not None and "'LAB'" in run.label_hint) == (word == "LAB")
    agent_type = json.loads(packet.read_text())["classification"]["dominant_type_overall"]
    assert found == {
        "LAB": (None, None),
        " genomic  REPORT": (agent_type != "Genomic Report", "Genomic Report"),
        "gen": (agent_type != "Genomic Report", "Genomic Report"),
        "Other": (agent_type != "Other", "Other"),
    }


def test_all_audits_and_none(samples: Path, tmp_path: Path) -> None:
    for rate, expected in ((1.0, True), (0.0, False)):
        settings = Settings.load(output=str(tmp_path / f"output_{rate}"), audit_rate_start=rate)
        evalkit.run([samples / "quest_cbc.pdf"], settings=settings)
        assert (tmp_path / f"output_{rate}/sme_packets/sme_packet_quest_cbc.json").exists() is expected


def test_evaluate_writes_nothing_and_agrees_with_the_run(
    samples: Path, demo_run: RunSummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = evalkit.evaluate(samples / "doc2_6.pdf")
    stored = json.loads((Path(demo_run.output) / "results/doc2_6.json").read_text())
    assert list(tmp_path.iterdir()) == []
    assert result.fingerprint == stored["fingerprint"]
    assert result.decision == stored["decision"]
    assert [segment.end_page for segment in result.classification.segments] == [5, 8]  # slide 2


def test_inside_a_running_event_loop(samples: Path, tmp_path: Path) -> None:
    asyncio.run(_inside_a_loop(samples, tmp_path))


async def _inside_a_loop(samples: Path, tmp_path: Path) -> None:
    run = evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "output")  # as in a notebook
    twin = await evalkit.arun([samples / "quest_cbc.pdf"], output=tmp_path / "output")
    assert (run.exit_status, twin.documents[0].resumed) == (0, True)
    assert (await evalkit.aevaluate(samples / "quest_cbc.pdf")).decision == run.documents[0].decision


def test_calls_are_counted_by_agent(demo_run: RunSummary) -> None:
    usage = {path.stem: json.loads(path.read_text())["usage"] for path in (Path(demo_run.output) / "results").iterdir()}
    assert usage["clinical_note"]["calls"] == 4
    assert set(usage["clinical_note"]["by_agent"]) == {"classifier", "V2", "V3", "V4"}
    assert usage["shares_106"]["calls"] == 3  # supplied, and the repair asks nothing again
    assert usage["segment_count"]["calls"] == 0  # supplied, and V1 stops it
    assert usage["poor_scan"]["calls"] == 0


def test_the_frame_has_one_row_per_document(demo_run: RunSummary) -> None:
    frame = demo_run.to_frame()
    assert list(frame["doc_id"]) == [one.doc_id for one in demo_run.documents]
    assert {"decision", "dominant_type", "blocker", "error"} <= set(frame.columns)
    assert RunSummary((), (), (), "output", 0.0).to_frame().empty


def test_one_output_folder_takes_one_run_at_a_time(samples: Path, tmp_path: Path) -> None:

    with open_folder(tmp_path / "output").hold_run_lock(), pytest.raises(UsageError, match="another run"):
        evalkit.run([samples / "quest_cbc.pdf"], output=tmp_path / "output")


def test_view_lights_the_evidence(demo_run: RunSummary) -> None:
    shown = evalkit.view("fabricated_quote", output=demo_run.output)
    assert shown.pages
    assert "ESCALATE_TO_SME" in shown.headline
    yellow = [sum(pixel[2] < pixel[0] - 40 for pixel in page.image.get_flattened_data()) for page in shown.pages]
    assert all(count > 200 for count in yellow)  # something is filled on each page
    assert "data:image/webp;base64," in shown._repr_html_()


def test_a_lost_index_is_made_again_before_anything_is_named(samples: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    for folder, name in (("d1", "quest_cbc"), ("d2", "consent_form")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "report.pdf").write_bytes((samples / f"{name}.pdf").read_bytes())
    evalkit.run([tmp_path / "d1"], output=output)
    before = list_file_stamps(output)
    for path in output.glob("evalkit.sqlite*"):
        path.unlink()
    run = evalkit.run([tmp_path / "d2"], output=output)
    assert run.documents[0].doc_id.startswith("report-")
    del before[MONITORING_FILE]  # counts of every run
    assert {name: stamp for name, stamp in list_file_stamps(output).items() if name in before} == before


def test_stem_and_hash_collision_keeps_file_names_distinct(samples: Path, tmp_path: Path) -> None:
    first, second, third = (
        (samples / f"{name}.pdf").read_bytes() for name in ("quest_cbc", "consent_form", "requisition")
    )
    digits = hashlib.sha256(second).hexdigest()[:8]
    for name, content in (("d1/a.pdf", first), (f"d1/a-{digits}.pdf", third), ("d2/a.pdf", second)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    run = evalkit.run([tmp_path / "d1", tmp_path / "d2"], output=tmp_path / "output")
    assert len({one.doc_id for one in run.documents}) == 3


def test_a_drawn_audit_stays_drawn_with_its_probability(samples: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    documents = [samples / "quest_cbc.pdf", samples / "consent_form.pdf"]
    plan = {"audit_rate_start": 1.0, "audit_rate": 0.0, "audit_target": 1}
    evalkit.run(documents, settings=Settings.load(output=str(output), **plan))
    SMEReviewHelper(output, "dr_lee").save_review("quest_cbc", agrees=True)
    for options in ({"production": samples / "production.csv"}, {"fresh": True}):
        evalkit.run(documents, settings=Settings.load(output=str(output), **plan), **options)
        assert (output / "sme_packets/sme_packet_consent_form.json").exists()
        silver = json.loads((output / "ground_truth/gt_consent_form.json").read_text())
        assert silver["inclusion_probability"] == 1.0


def test_an_accepted_result_does_not_touch_a_review(samples: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    settings = Settings.load(output=str(output), audit_rate_start=1.0)
    evalkit.run([samples / "quest_cbc.pdf"], settings=settings)
    helper = SMEReviewHelper(output, "dr_lee")
    for note in ("first", "second"):
        helper.save_review("quest_cbc", corrected_dominant_type="Clinical Note", correction_notes=note)
    before = (output / "ground_truth/gt_quest_cbc.json").read_bytes()
    assert (json.loads(before)["revision"], json.loads(before)["supersedes"]) == (2, 1)
    evalkit.run([samples / "quest_cbc.pdf"], settings=settings, fresh=True)
    assert (output / "ground_truth/gt_quest_cbc.json").read_bytes() == before
    assert sorted(path.name for path in (output / "reviews/quest_cbc").iterdir()) == ["0001.json", "0002.json"]


def test_a_review_of_a_packet_that_was_run_anew_is_refused(samples: Path, tmp_path: Path) -> None:
    output, one = tmp_path / "output", samples / "segment_count.pdf"
    evalkit.run([one], output=output, classifications=_only(samples, tmp_path, "segment_count"))
    helper = SMEReviewHelper(output, "dr_lee")
    helper.load_packet("segment_count")
    other = json.loads((tmp_path / "classifications/segment_count.json").read_text())
    other["segments"][0]["reasoning"] = "another answer"
    (tmp_path / "classifications/segment_count.json").write_text(json.dumps(other))
    evalkit.run([one], output=output, classifications=tmp_path / "classifications")
    with pytest.raises(ReviewConflict):
        helper.save_review("segment_count", agrees=True)
    helper.load_packet("segment_count")
    assert helper.save_review("segment_count", agrees=True).outcome == "validated"


def test_transient_read_failure_keeps_results_and_is_retried(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, one = tmp_path / "output", samples / "quest_cbc.pdf"
    evalkit.run([one], output=output)
    before = list_file_stamps(output)

    async def crash(*_: object, **__: object) -> None:
        raise DocumentError("it crashed", code="READER-CRASHED", remedy="Try again.")

    monkeypatch.setattr("evalkit.pipeline.executor.reader_pool.ReaderPool.read", crash)
    assert evalkit.run([one], output=output, fresh=True).exit_status == 1
    assert list_file_stamps(output) == before
    assert evalkit.run([one], output=tmp_path / "other").exit_status == 1
    monkeypatch.undo()
    assert evalkit.run([one], output=tmp_path / "other").documents[0].decision == "AUTO_ACCEPT"


def list_json_names(output: Path) -> set[str]:
    """List the JSON files without the chain of changes: its links are as many as the commands."""
    names = (path.relative_to(output).as_posix() for path in output.rglob("*.json"))
    return {name for name in names if not name.startswith("changes/")}


@pytest.mark.parametrize("name", ["quest_genomic", "quest_cbc"])
def test_run_interrupted_before_packet_or_truth_is_resumed(
    samples: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the index was made again meanwhile, which knows the result."""
    output = tmp_path / "output"
    given: dict[str, Any] = {"output": output, "classifications": samples / "classifications"}
    evalkit.run([samples / f"{name}.pdf"], **given)
    (output / MONITORING_FILE).unlink()  # counts the documents that a run has decided itself
    wanted = list_json_names(output)
    shutil.rmtree(output)

    def away(*_: object, **__: object) -> None:
        raise StoreError("the database is away", code="STORE-INDEX", remedy="See that it runs.")

    with monkeypatch.context() as patch:
        patch.setattr("evalkit.pipeline.document_run.publish_packet_unless_frozen", away)
        patch.setattr("evalkit.pipeline.document_run.write_silver_ground_truth", away)
        assert evalkit.run([samples / f"{name}.pdf"], **given).exit_status == 1
    assert list_json_names(output) < wanted
    reindex(open_folder(output))
    (again,) = evalkit.run([samples / f"{name}.pdf"], **given).documents
    assert again.resumed
    assert list_json_names(output) == wanted
    assert verify_integrity(open_folder(output)).faults == ()


@pytest.mark.parametrize(("name", "fresh"), [("results", False), ("results", True), ("document_bundles", False)])
def test_what_a_newer_evalkit_wrote_is_not_written_over(samples: Path, tmp_path: Path, name: str, fresh: bool) -> None:
    output = tmp_path / "output"
    evalkit.run([samples / "quest_cbc.pdf"], output=output)
    path = output / name / "quest_cbc.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 99}))
    newer = path.read_bytes()
    (told,) = evalkit.run([samples / "quest_cbc.pdf"], output=output, fresh=fresh).documents
    assert "schema version 99" in (told.error or "")
    assert path.read_bytes() == newer
