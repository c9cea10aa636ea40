"""Every family of tampering can be done, does what it says, and leaves alone what it cannot change."""

import hashlib
import json
from pathlib import Path

import pytest
from benchmarks.first_contact.tampering import applying
from benchmarks.first_contact.tampering.applying import OPERATIONS, Family, apply_family, read_families

HALVES = ("open", "sealed")
DAY = "2026-03-0{}T08:00:00+00:00"


def write_json(path: Path, record: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False))


def write_chain(folder: Path, records: list[dict]) -> None:
    before = None
    for number, record in enumerate(records, 1):
        path = folder / f"{number:04d}.json"
        write_json(path, {"schema_version": 1, **record, "prev_sha256": before})
        before = hashlib.sha256(path.read_bytes()).hexdigest()


def review(outcome: str, day: int) -> dict:
    kinds = {"before": {"dominant_type_overall": "Other"}, "after": {"dominant_type_overall": "Clinical Note"}}
    return {
        "reviewer": "dr_lee",
        "submitted_at": DAY.format(day),
        "seconds_active": 3.0,
        "outcome": outcome,
        **kinds,
        "issue_verdicts": [{"issue_id": "V4-0001", "verdict": "confirmed"}],
        "vouched": ["dominant_type"],
        "pages_seen": [1],
        "packet_sha256": "ab" * 32,
    }


def event(kind: str, day: int) -> dict:
    return {"kind": kind, "happened_at": DAY.format(day), "stratum": "fax", "upper_bound": 0.0093, "audits": 412}


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "output"
    write_chain(folder / "reviews" / "letter", [review("corrected", 1), review("reopened", 2), review("corrected", 3)])
    write_chain(folder / "reviews" / "note", [review("validated", 2)])
    write_chain(folder / "reviews" / "letter.second", [review("validated", 4)])
    write_chain(folder / "reviews" / "letter.adjudication", [review("corrected", 5)])
    write_chain(folder / "reviews" / "planted-12ab", [review("validated", 6)])
    write_chain(
        folder / "events", [event(kind, day) for day, kind in enumerate(("certificate", "brake", "certified"), 1)]
    )
    for case, reason in (
        ("letter", "audit"),
        ("note", "sample"),
        ("waiting", "escalated"),
        ("letter.second", "requested"),
    ):
        packet = {"v5_decision": "ESCALATE_TO_SME", "review_reason": reason, "inclusion_probability": 0.2}
        write_json(folder / f"sme_packets/sme_packet_{case}.json", {**packet, "created_at": DAY.format(1)})
    for doc, decision in (("letter", "ESCALATE_TO_SME"), ("note", "AUTO_ACCEPT")):
        composition = [{"document_type": "Other", "confidence": 0.4}]
        result = {
            "doc_id": doc,
            "fingerprint": hashlib.sha256(doc.encode()).hexdigest(),
            "decision": decision,
            "classification": {"segments": [{"segment_composition": composition}]},
            "issues": [{"severity": "BLOCKER"}],
            "versions": {"weights": "dec0a64eb5e8"},
        }
        write_json(folder / f"results/{doc}.json", result)
        write_json(folder / f"document_bundles/{doc}.json", {"pages": [{"status": "failed", "text": "A letter"}]})
        write_json(folder / f"extractions/{doc}.json", {"extractions": [{"fields": {"date": {"value": "2026-01-01"}}}]})
    write_json(folder / "results/torn.json", {"doc_id": "torn", "error": {"code": "READER-DAMAGED"}})
    for doc, source in (("letter", "SME_CORRECTED"), ("note", "AUTO_ACCEPTED")):
        truth = {"ground_truth_source": source, "corrected_dominant_type": "Clinical Note"}
        write_json(folder / f"ground_truth/gt_{doc}.json", truth)
    fault = {"shown_type": "Clinical Note", "true_type": "Other"}
    write_json(folder / "seeded/planted-12ab.json", {"doc_id": "letter", "fault": fault})
    draw = {"value": "Other", "probability": {"letter": 0.5, "note": 0.75}, "drawn": ["note"]}
    write_json(folder / "draws/0001.json", {"drawn_at": DAY.format(1), "strata": [draw]})
    write_json(folder / "purged/gone.json", {"purged_at": DAY.format(1)})
    write_json(folder / "reviewers.json", {"reviewers": {"dr_lee": "77" * 32, "dr_kim": "b0" * 32}})
    write_json(folder / "production.json", {"labels": {"letter": {"dominant_type": "Clinical Note"}}})
    write_json(folder / "weights/champion.json", {"bias": [0.25, 0.5]})
    rows = "<tr><td>412</td><td>0.93 %</td></tr>"
    plot = '<svg><path d="M10 20 L30 40 L50 61 L22 33 Z"/></svg>'
    text = f"<p>Made on 2026-03-09. The certificate was not withdrawn.</p><table>{rows}</table>{plot}"
    (folder / "dossier.html").write_text(f"<html><body>{text}</body></html>")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_chained(folder: Path) -> bool:
    files = sorted(folder.glob("*.json"))
    hashes = [None, *(hashlib.sha256(path.read_bytes()).hexdigest() for path in files)]
    return [json.loads(path.read_text())["prev_sha256"] for path in files] == hashes[:-1]


@pytest.mark.parametrize("half", HALVES)
def test_every_family_changes_the_folder(half, output):
    before = contents(output)
    for number, family in enumerate(read_families(half)):
        copy = output.with_name(f"copy{number}")
        for path, content in before.items():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (copy / path).write_bytes(content)
        paths = apply_family(copy, family, 0)
        assert paths, family.name
        after = contents(copy)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        if family.is_harmless:
            assert not any(path in before for path in changed), family.name
        else:
            assert changed == set(paths), family.name


@pytest.mark.parametrize("half", HALVES)
def test_an_empty_folder_is_left_alone(half, tmp_path):
    (tmp_path / "output").mkdir()
    assert {apply_family(tmp_path / "output", family, 0) for family in read_families(half)} == {None}
    assert contents(tmp_path / "output") == {}


def test_thirty_families_have_names_of_their_own():
    families = [read_families(half) for half in HALVES]
    names = [family.name for half in families for family in half]
    assert len(names) == len(set(names)) >= 60
    assert min(sum(not family.is_harmless for family in half) for half in families) >= 20
    told = (applying.HERE / "README.md").read_text() + (applying.HERE / "open.toml").read_text()
    assert not any(family.name in told for family in families[1])


@pytest.mark.parametrize("style", [{"indent": 2}, {"indent": 4}, {"separators": (",", ":")}, {"ensure_ascii": False}])
@pytest.mark.parametrize("ending", ["", "\n"])
def test_a_set_value_changes_nothing_else_in_its_file(tmp_path, style, ending):
    path = tmp_path / "review.json"
    path.write_text(json.dumps({"reviewer": "Müller", "outcome": "corrected", "seen": [1, 2.0]}, **style) + ending)
    before = path.read_text()
    step = {"files": "review.json", "operation": "set", "pointer": "/outcome", "value": "validated"}
    assert apply_family(tmp_path, Family("one", "", [step]), 0) == ["review.json"]
    assert path.read_text() == before.replace("corrected", "validated")
    assert apply_family(tmp_path, Family("again", "", [step]), 0) is None


def test_a_family_is_done_whole_or_not_at_all(output):
    before = contents(output)
    steps = [{"files": "results/{doc}.json", "operation": "delete"}, {"files": "absent/{doc}", "operation": "delete"}]
    assert apply_family(output, Family("half", "", steps), 0) is None
    assert contents(output) == before
    steps[1]["optional"] = True
    assert len(apply_family(output, Family("whole", "", steps), 0)) == 1


def test_names_are_bound_by_the_first_step(output):
    steps = [
        {"files": "results/{doc}.json", "where": {"/decision": "AUTO_ACCEPT"}, "operation": "delete"},
        {"files": "ground_truth/gt_{doc}.json", "operation": "delete"},
    ]
    assert apply_family(output, Family("bound", "", steps), 0) == ["ground_truth/gt_note.json", "results/note.json"]


def test_an_unsigned_change_breaks_the_chain(output):
    step = {"files": "events/0001.json", "operation": "change_leaf", "leaf": "number"}
    assert is_chained(output / "events")
    apply_family(output, Family("broken", "", [step]), 0)
    assert not is_chained(output / "events")


def test_signing_again_follows_a_change(output):
    steps = [
        {"files": "events/0001.json", "operation": "change_leaf", "leaf": "number"},
        {"files": "events/0001.json", "operation": "rechain"},
    ]
    assert apply_family(output, Family("signed", "", steps), 0) == [f"events/000{n}.json" for n in (1, 2, 3)]
    assert is_chained(output / "events")


def test_the_seed_chooses_the_file(output):
    step = {"files": "reviews/*/*.json", "operation": "append", "text": " "}
    chosen = {tuple(apply_family(output, Family("any", "", [step]), seed) or ()) for seed in range(30)}
    assert len(chosen) > 3


def test_every_operation_is_used():
    families = [family for half in HALVES for family in read_families(half)]
    assert {step["operation"] for family in families for step in family.steps} == set(OPERATIONS)
