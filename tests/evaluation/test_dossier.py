"""The dossier: what it says, that every change of it or of its records is named, and that later work is no change."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import evalkit_command
from once import make_once
from pipeline.patient import DOC, FILE, NOW, OTHER, create_patient_output
from places import open_folder

import evalkit
from evalkit.evaluation.dossier import DossierVerification, _compute_seal, _read_seal, verify_dossier, write_dossier
from evalkit.evaluation.sampling import draw_and_queue_sample
from evalkit.pipeline.audit.file_digests import COVERED_FOLDERS
from evalkit.pipeline.audit.trail import list_audit_events_and_problems
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.event_log import append_event
from evalkit.pipeline.purge import purge
from evalkit.review import SMEReviewHelper
from evalkit.review.roster import ReviewerRoster
from evalkit.settings import DossierSettings, Settings

Change = Callable[[Path], object]


@pytest.fixture(scope="session")
def described_folder(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder with a log and a purge, and beside it the dossier of it."""

    def make(folder: Path) -> Path:
        output = create_patient_output(samples, folder)
        ReviewerRoster(open_folder(output)).add_reviewer_or_replace_code("dr_first")
        for kind in ("certified", "braked"):
            facts = {"audits": 40, "bound": 0.0087}
            append_event(open_folder(output), kind, recorded_at=NOW, stratum="Other | inbox", facts=facts)
        write_dossier(open_folder(output), folder / "dossier.html", Settings(), made_at=NOW)
        return folder

    return make_once(tmp_path_factory, "described", make)


@pytest.fixture
def folder(described_folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(described_folder, tmp_path / "described")
    return tmp_path / "described"


def check(folder: Path) -> DossierVerification:
    output_folder = open_folder(folder / "output")
    fault_count = len(verify_integrity(output_folder).faults)
    return verify_dossier(output_folder, folder / "dossier.html", fault_count=fault_count)


def list_faults(folder: Path) -> dict[str, str]:
    return {fault.file.removeprefix(f"{folder}/"): fault.what for fault in check(folder).faults}


def test_an_untouched_folder_has_no_fault(folder: Path) -> None:
    assert check(folder) == DossierVerification((), ())


def test_the_dossier_names_no_document_and_needs_no_script(folder: Path) -> None:
    html = (folder / "dossier.html").read_text()
    visible = re.sub(r"<(style|script).*?</\1>", "", html, flags=re.DOTALL)
    for word in (*FILE.removesuffix(".pdf").replace(",", "").split()[:2], DOC, OTHER, "quest_cbc", "requisition"):
        assert word not in html
    assert html.count("<script") == 1
    assert '<script type="application/json"' in html
    assert not re.search(r'(src|href)="(?!#)', visible)
    for heading in ("Intended use", "Local validation", "Certificate", "Drift", "Incidents", "Learning", "oversight"):
        assert heading in visible
    assert "audits 40; bound 0.0087" in visible
    assert "0 of 1 strata that ever had a certificate have one now. Do not rely on those of Other from inbox" in visible
    assert "dr_first" in visible


def test_reviewers_can_appear_as_numbers(folder: Path) -> None:
    settings = Settings(dossier=DossierSettings(reviewer_names=False))
    write_dossier(open_folder(folder / "output"), folder / "dossier.html", settings, made_at=NOW)
    html = (folder / "dossier.html").read_text()
    assert "dr_first" not in html
    assert "Person 1" in html
    assert check(folder).faults == ()


def test_the_site_states_its_own_use(folder: Path) -> None:
    text = "# Our use\n\nOnly letters of <b>ward 3</b>.\n- never at night"
    (folder / "output/intended_use.md").write_text(text)
    write_dossier(open_folder(folder / "output"), folder / "dossier.html", Settings(), made_at=NOW)
    html = (folder / "dossier.html").read_text()
    assert "Only letters of &lt;b&gt;ward 3&lt;/b&gt;." in html
    assert "<li>never at night</li>" in html
    assert check(folder).faults == ()
    (folder / "output/intended_use.md").write_text(text.replace("never", "also"))
    assert set(list_faults(folder)) == {"intended_use.md", "dossier.html"}


def test_every_record_file_is_covered(folder: Path) -> None:
    output = folder / "output"
    *_, last_but_one, last = sorted(f"changes/{path.name}" for path in (output / "changes").iterdir())
    names = sorted(str(path.relative_to(output)) for path in output.rglob("*") if path.is_file())
    tried = {last_but_one, last}
    for top in (*COVERED_FOLDERS, "reviewers.json", "production.json"):
        of_top = [name for name in names if name.partition("/")[0] == top]
        tried |= {*of_top[:2], *of_top[-2:]}
    for name in sorted(tried):
        path = output / name
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        verification = check(folder)
        assert (
            name in {fault.file for fault in verification.faults}
            or name in " ".join(verification.notes)
            or (
                name in {"events/0003.json", last_but_one, last}
                and verification.faults  # the event of the dossier itself
            )
        ), name
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("pattern", "replacement", "place"),
    [
        (r">\d+ % \(", ">99 % (", "table “"),
        (r"validated beside", "approved beside", ""),
        (r"<path d=\"M (\d)", r'<path d="M 9\1', "plot"),
        (r"“Person|dr_first", "dr_last", "table “"),
        (r"\"value\":0\.\d+", '"value":0.999', "number in “Local validation”"),
        (r"<h2>2\. Intended use", "<h2>2. Extended use", "Intended use"),
        (r"max-width: 78ch", "max-width: 79ch", "the head"),
        (r'"audit_rate":"[^"]*"', '"audit_rate":"0.5"', ""),
    ],
)
def test_a_change_of_the_dossier_is_named(folder: Path, pattern: str, replacement: str, place: str) -> None:
    html = (folder / "dossier.html").read_text()
    changed_html = re.sub(pattern, replacement, html, count=1)
    if changed_html == html:
        pytest.skip("this dossier has no such text")
    for is_sealed_again in (False, True):
        if is_sealed_again:
            seal = _read_seal(changed_html)
            changed_html = changed_html.replace(seal, _compute_seal(changed_html, seal))
        (folder / "dossier.html").write_text(changed_html)
        faults = [fault.what for fault in check(folder).faults]
        assert any("SHA-256" in what for what in faults)
        assert any(place in what for what in faults)
        assert ("its seal does not fit its content" in faults) is not is_sealed_again


def test_bytes_that_are_no_text_are_told(folder: Path) -> None:
    content = (folder / "dossier.html").read_bytes()
    for word in (b"Local validation", b'"made_at"', b'<code id="seal">'):
        (folder / "dossier.html").write_bytes(content.replace(word, word[:-1] + b"\x88"))
        assert "its seal does not fit its content" in {fault.what for fault in check(folder).faults}


def test_a_dossier_that_cannot_be_read_is_told(folder: Path) -> None:
    (folder / "dossier.html").write_bytes(b"\xff<html>")
    assert len(check(folder).faults) == 3


def test_without_the_salt_nothing_is_compared_or_written(folder: Path) -> None:
    (folder / "output/patient_salt.json").unlink()
    assert set(list_faults(folder)) == {"patient_salt.json"}
    assert not (folder / "output/patient_salt.json").exists()


CHANGES: dict[str, tuple[Change, str]] = {
    "the newest event is removed": (lambda output: (output / "events/0002.json").unlink(), "events/0002.json"),
    "the newest review is removed": (
        lambda output: (output / f"reviews/{OTHER}/0001.json").unlink(),
        f"reviews/{OTHER}/0001.json",
    ),
    "a case is called completed": (
        lambda output: replace_text(output / "sme_packets/sme_packet_requisition.json", '"pending"', '"completed"'),
        "sme_packets/sme_packet_requisition.json",
    ),
    "a reviewer gets another name": (
        lambda output: replace_text(output / "reviewers.json", "dr_first", "dr_last"),
        "reviewers.json",
    ),
    "the text of a document is changed": (
        lambda output: replace_text(output / "document_bundles/quest_cbc.json", "Quest", "Best"),
        "document_bundles/quest_cbc.json",
    ),
    "a decision is changed in the record of its run": (
        lambda output: replace_text(find_run_record(output), '"AUTO_ACCEPT"', '"ESCALATE_TO_SME"'),
        "runs/one/run.json",
    ),
    "a session of a run is changed": (
        lambda output: replace_text(find_run_record(output), '"is_complete": true', '"is_complete": false'),
        "runs/one/run.json",
    ),
    "a link of the chain is removed": (lambda output: (output / "changes/0002.json").unlink(), "changes/0002.json"),
}


def find_run_record(output: Path) -> Path:
    (path,) = output.glob("runs/*/run.json")
    return path


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_record_is_named(folder: Path, change: str) -> None:
    act, name = CHANGES[change]
    act(folder / "output")
    (run,) = (path.name for path in (folder / "output/runs").iterdir())
    assert name.replace("/one/", f"/{run}/") in list_faults(folder)


def test_later_work_is_no_change(folder: Path) -> None:
    output = folder / "output"
    output_folder = open_folder(output)
    draw_and_queue_sample(output_folder, 1, "type", seed="two", drawn_at=NOW)
    helper = SMEReviewHelper(output, "dr_nine")
    helper.save_review("requisition", undeterminable="illegible")
    helper.save_review("quest_cbc", corrected_dominant_type="Clinical Note")
    helper.reopen(OTHER, "again")
    helper.close()
    append_event(output_folder, "released", recorded_at=NOW, facts={})
    ReviewerRoster(output_folder).add_reviewer_or_replace_code("dr_nine")
    verification = check(folder)
    assert verification.faults == ()
    told = " ".join(verification.notes)
    assert "3 reviews" in told
    assert "1 events of the log" in told
    assert "reviewers.json was changed: 1 entries added" in told


def test_a_run_that_goes_on_is_no_change(described_folder: Path, folder: Path) -> None:
    inbox, content = folder / "more", (described_folder / "records/quest_cbc.pdf").read_bytes()
    inbox.mkdir()
    (inbox / "one.pdf").write_bytes(content + b"\n% one\n")
    evalkit.run([inbox], output=folder / "output", workers=1, name="daily")
    write_dossier(open_folder(folder / "output"), folder / "dossier.html", Settings(), made_at=NOW)
    (inbox / "two.pdf").write_bytes(content + b"\n% two\n")
    evalkit.run([inbox], output=folder / "output", workers=1, name="daily")
    verification = check(folder)
    assert verification.faults == ()
    assert "runs/daily/run.json was changed" in " ".join(verification.notes)


def test_a_purge_is_told_apart_from_a_removal(folder: Path) -> None:
    purge(open_folder(folder / "output"), [DOC], purged_at=NOW)
    verification = check(folder)
    assert verification.faults == ()
    assert any("Removed since by recorded purges" in note for note in verification.notes)
    assert any("No longer to be computed" in note for note in verification.notes)
    (folder / "output/results/quest_cbc.json").unlink()
    assert "results/quest_cbc.json" in list_faults(folder)


def test_a_forged_purge_does_not_explain_a_removal(folder: Path) -> None:
    output = folder / "output"
    sha256 = json.loads((output / "results/quest_cbc.json").read_text())["sha256"]
    record = {"schema_version": 2, "sha256": sha256, "purged_at": NOW, "chains": [], "draws": [], "prev_sha256": None}
    (output / "purged").mkdir(exist_ok=True)
    (output / "purged/0001.json").write_text(json.dumps(record))
    for path in output.rglob("*quest_cbc*.json"):
        path.unlink()
    assert "the index still lists it" in list_faults(folder)["results/quest_cbc.json"]


def test_the_log_of_an_export_is_compared(folder: Path, tmp_path: Path) -> None:
    output = folder / "output"
    events, problems = list_audit_events_and_problems(open_folder(output))
    assert problems == []
    logged = [event for event in events if event["event"] == "logged"]
    assert [(event["revision"], event["outcome"]) for event in logged] == [
        (1, "certified"), (2, "braked"), (3, "dossier_written"),
    ]  # fmt: skip
    assert logged[2]["sha256"] == hashlib.sha256((output / "events/0003.json").read_bytes()).hexdigest()
    export = tmp_path / "decisions.json"
    export.write_text(json.dumps({"events": events}))
    assert verify_integrity(open_folder(output), earlier_export_path=export).faults == ()
    (output / "events/0003.json").unlink()
    faults = verify_integrity(open_folder(output), earlier_export_path=export).faults
    assert [fault.file for fault in faults] == ["events/0003.json"]


def test_a_signature_that_was_moved_is_found(folder: Path) -> None:
    output_folder = open_folder(folder / "output")
    name = f"reviews/{OTHER}/0001.json"
    other = output_folder.read_json(f"reviews/{DOC}/0001.json")
    output_folder.write_json(name, output_folder.read_json(name) | {"signature": other["signature"]})
    faults = [fault.what for fault in verify_integrity(output_folder).faults if fault.file == name]
    assert "its signature belongs to another record" in faults


def test_the_commands(folder: Path) -> None:
    output, file = str(folder / "output"), str(folder / "second.html")
    assert evalkit_command("dossier", "--output", output, "--to", file).returncode == 0
    checked = evalkit_command("audit", "verify", "--dossier", file, "--output", output, "--json")
    assert checked.returncode == 0
    assert json.loads(checked.stdout)["notes"] == []
    (folder / "second.html").write_text((folder / "second.html").read_text().replace("Local", "Global"))
    assert evalkit_command("audit", "verify", "--dossier", file, "--output", output).returncode == 1
