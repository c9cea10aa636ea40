"""The dossier of 10,000 records, changed bytes, and tampering by families of another author.

`cd tests && PYTHONPATH=. ../.venv/bin/python -m benchmarks.dossier` (`--half sealed` for the other families, `--records`,
`--bytes`, `--whole` for smaller runs, `--json`).

A changed byte is written into the file, and the product's own comparison judges the folder with the file's new digest, so
that not all files are read 10,000 times; `--whole` of them go through the whole of `audit verify --dossier`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.first_contact.tampering.applying import apply_family, read_families
from benchmarks.reporting import make_reviewed_folder
from places import open_folder

from evalkit.evaluation.attention_checks import plant_and_queue_attention_checks
from evalkit.evaluation.dossier import _BASIS_PATTERN, DossierBasis, verify_dossier, write_dossier
from evalkit.pipeline.audit.file_digests import FolderComparison, compute_file_digest
from evalkit.pipeline.audit.trail import list_audit_events_and_problems
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.event_log import append_event
from evalkit.pipeline.purge import purge
from evalkit.review.ground_truth import Review
from evalkit.review.index_rebuild import reindex
from evalkit.review.kinds import get_packet_class
from evalkit.review.packet import compute_packet_digest
from evalkit.review.roster import ReviewerRoster
from evalkit.settings import Settings
from evalkit.store import RESULTS_FOLDER, encode_indented_json

NOW = "2026-06-01T00:00:00+00:00"
_SEEDS_PER_FAMILY = 5


def make_full_folder(folder: Path) -> Path:
    """Make the demo's folder with everything that a dossier tells: reviews, checks, log, roster, a purge."""
    output = make_reviewed_folder(folder)
    files = open_folder(output)
    plant_and_queue_attention_checks(files, 3, seed="bench", drawn_at=NOW)
    from evalkit.samples.simulated_experts import simulate_and_submit_reviews

    simulate_and_submit_reviews(files, folder / "demo" / "truth.csv")
    for name in ("dr_lee", "dr_kim"):
        ReviewerRoster(files).add_reviewer_or_replace_code(name)
    for day, kind in enumerate(("certified", "braked", "certificate_withdrawn", "released", "promoted"), 1):
        facts = {"audits": 300 + day, "bound": 0.0087, "version": f"v{day}", "is_proven": True}
        append_event(
            files,
            kind,
            recorded_at=f"2026-05-0{day}T00:00:00+00:00",
            stratum="Other | inbox | local | embedded | 0a1b2c3d",
            facts=facts,
        )
    purge(files, [Path(files.list_json_files(RESULTS_FOLDER)[-1]).stem], purged_at=NOW)
    return output


def multiply_records(output: Path, to: Path, count: int) -> None:
    """Write copies of every document's records under other names, with hashes that fit, until there are ``count``."""
    doc_ids = [Path(name).stem for name in open_folder(output).list_json_files(RESULTS_FOLDER)]
    for number in range(count):
        doc_id = doc_ids[number % len(doc_ids)]
        _copy_document(output, to, doc_id, number // len(doc_ids))
    for name in ("patient_salt.json", "reviewers.json"):
        shutil.copy(output / name, to / name)
    reindex(open_folder(to))


def _copy_document(output: Path, to: Path, doc_id: str, number: int) -> None:
    copy_id = f"{doc_id}_{number}"

    def write(name: str, record: dict[str, Any], **changed: Any) -> bytes:
        path = to / name.replace(doc_id, copy_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = encode_indented_json(record | changed)
        path.write_bytes(content)
        return content

    def load(name: str) -> dict[str, Any] | None:
        return json.loads((output / name).read_bytes()) if (output / name).exists() else None

    for folder in ("results", "document_bundles"):
        if record := load(f"{folder}/{doc_id}.json"):
            sha256 = record.get("sha256") and f"{number:08x}{record['sha256'][8:]}"
            paths = {"file_path": f"/in/{copy_id}.pdf"} if "file_path" in record else {}
            write(f"{folder}/{doc_id}.json", record, doc_id=copy_id, sha256=sha256, **paths)
    for ending in ("", ".second", ".adjudication"):
        case_id, name = f"{doc_id}{ending}", f"sme_packets/sme_packet_{doc_id}{ending}.json"
        digest = None
        if record := load(name):
            record |= {"doc_id": copy_id, "case_id": f"{copy_id}{ending}"}
            record["document_bundle_path"] = f"document_bundles/{copy_id}.json"
            write(name, record)
            digest = compute_packet_digest(get_packet_class(record).model_validate(record))
        previous = None
        for path in sorted((output / f"reviews/{case_id}").glob("*.json")):
            record = json.loads(path.read_bytes()) | {"packet_sha256": digest, "prev_sha256": previous}
            record["signature"]["record_sha256"] = Review.model_validate(record).compute_record_digest()
            previous = compute_file_digest(write(f"reviews/{case_id}/{path.name}", record))
        if record := load(f"ground_truth/gt_{case_id}.json"):
            write(f"ground_truth/gt_{case_id}.json", record, doc_id=copy_id, packet_sha256=digest)


def time_command(*words: object) -> tuple[float, int]:
    """Return the seconds and the exit status of the whole command, in a process of its own."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "evalkit", *map(str, words)], capture_output=True, check=False)
    return time.perf_counter() - began, done.returncode


def change_bytes(output: Path, dossier: Path, count: int, seed: int) -> tuple[int, list[str]]:
    """Change one byte at a time anywhere in the records; return how many were found, and the files that were not."""
    comparison, chance = _compare(output, dossier), random.Random(seed)
    present = comparison._present.files
    names = {comparison._hasher.reveal(hashed): hashed for hashed in present if hashed in comparison._recorded.files}
    sizes = {name: (output / name).stat().st_size for name in names}
    missed = []
    # Half of them where most bytes are, half in any file with the same chance.
    by_size = chance.choices(list(sizes), weights=list(sizes.values()), k=count // 2)
    for name in (*by_size, *chance.choices(list(sizes), k=count - count // 2)):
        path = output / name
        content = path.read_bytes()
        place = chance.randrange(len(content))
        changed = content[:place] + bytes([content[place] ^ chance.randrange(1, 256)]) + content[place + 1 :]
        path.write_bytes(changed)
        old_digest, present[names[name]] = present[names[name]], compute_file_digest(changed)
        changes = comparison.find_changes()
        if name not in {change.file for change in changes.changed} and not any(name in note for note in changes.notes):
            missed.append(name)
        path.write_bytes(content)
        present[names[name]] = old_digest
    return count - len(missed), missed


def _compare(output: Path, dossier: Path) -> FolderComparison:
    basis = DossierBasis.model_validate_json(_BASIS_PATTERN.search(dossier.read_text())[1])
    return FolderComparison(open_folder(output), basis.digests)


def change_bytes_of_dossier(output: Path, dossier: Path, count: int, seed: int) -> int:
    """Change one byte of the dossier at a time; return how many the check of seal and log found."""
    from evalkit.evaluation.dossier import _check_log_and_seal

    content, chance, files = dossier.read_bytes(), random.Random(seed), open_folder(output)
    found = 0
    for _ in range(count):
        place = chance.randrange(len(content))
        changed = content[:place] + bytes([content[place] ^ chance.randrange(1, 256)]) + content[place + 1 :]
        found += bool(list(_check_log_and_seal(files, dossier, changed.decode("utf-8", "surrogateescape"))))
    return found


def check_whole(output: Path, dossier: Path, export: Path) -> dict[str, list[str]]:
    """Return the files that each of the three ways to verify names."""
    files = open_folder(output)
    plain = verify_integrity(files)
    against = verify_integrity(files, earlier_export_path=export)
    by_dossier = verify_dossier(files, dossier, fault_count=len(plain.faults))
    return {
        "verify": [fault.file for fault in plain.faults],
        "against": [fault.file for fault in against.faults[len(plain.faults) :]],
        "dossier": [fault.file for fault in by_dossier.faults],
        "told": list(by_dossier.notes),
    }


def change_bytes_and_verify_whole(output: Path, dossier: Path, export: Path, count: int, seed: int) -> int:
    """Change one byte at a time, and verify everything; return how many were found by the file's name."""
    chance, found = random.Random(seed), 0
    names = list(_list_names(_compare(output, dossier)))
    for _ in range(count):
        name = chance.choice(names)
        content = (output / name).read_bytes()
        place = chance.randrange(len(content))
        (output / name).write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        named = check_whole(output, dossier, export)
        found += name in named["dossier"] or any(name in note for note in named["told"])
        (output / name).write_bytes(content)
    return found


def _list_names(comparison: FolderComparison) -> Iterator[str]:
    yield from map(comparison._hasher.reveal, comparison._recorded.files)


def try_families(half: str, output: Path, dossier: Path, export: Path, scratch: Path) -> list[dict[str, Any]]:
    """Apply each family with several seeds, and tell which of the three ways finds it."""
    rows = []
    shutil.copy(dossier, output / "dossier.html")
    for family in read_families(half):
        row: dict[str, Any] = {"family": family.name, "harmless": family.is_harmless, "tried": 0}
        row |= dict.fromkeys(("verify", "against", "dossier", "any"), 0)
        for seed in range(_SEEDS_PER_FAMILY):
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.copytree(output, scratch, symlinks=True)
            if apply_family(scratch, family, seed) is None:
                continue
            row["tried"] += 1
            named = check_whole(scratch, scratch / "dossier.html", export)
            for way in ("verify", "against", "dossier"):
                row[way] += bool(named[way])
            row["any"] += bool(named["verify"] or named["against"] or named["dossier"])
        rows.append(row)
    return rows


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("open", "sealed", "none"), default="open")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=10_000)
    parser.add_argument("--whole", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        output = make_full_folder(folder)
        dossier, export = folder / "dossier.html", folder / "decisions.json"
        if asked.records:
            many, many_dossier = folder / "many", folder / "many.html"
            many.mkdir()
            multiply_records(output, many, asked.records)
            seconds, status = time_command("dossier", "--output", many, "--to", many_dossier)
            measured |= {"records": asked.records, "dossier_seconds": round(seconds, 1), "dossier_status": status}
            measured["dossier_megabytes"] = round(many_dossier.stat().st_size / 1e6, 1)
            seconds, status = time_command("audit", "verify", "--dossier", many_dossier, "--output", many)
            measured |= {"verify_seconds": round(seconds, 1), "verify_status": status}
            measured["files"] = len(list(_list_names(_compare(many, many_dossier))))
        write_dossier(open_folder(output), dossier, Settings(), made_at=NOW)
        export.write_text(json.dumps({"events": list_audit_events_and_problems(open_folder(output))[0]}))
        measured["faults_untouched"] = check_whole(output, dossier, export)
        found, missed = change_bytes(output, dossier, asked.bytes, seed=1)
        measured |= {"bytes_changed": asked.bytes, "bytes_found": found, "bytes_missed_in": sorted(set(missed))}
        count = min(asked.bytes, 1000)
        measured |= {
            "dossier_bytes_changed": count,
            "dossier_bytes_found": change_bytes_of_dossier(output, dossier, count, seed=2),
            "whole_changed": asked.whole,
            "whole_found": change_bytes_and_verify_whole(output, dossier, export, asked.whole, seed=3),
        }
        scratch = folder / "scratch"
        measured["families"] = (
            try_families(asked.half, output, dossier, export, scratch) if asked.half != "none" else []
        )
    if asked.json:
        print(json.dumps(measured, indent=1))
        return
    for name, value in measured.items():
        if name != "families":
            print(f"{name}: {value}")
    for row in measured["families"]:
        print(" ".join(f"{value!s:>10}" if name != "family" else f"{value:36}" for name, value in row.items()))


if __name__ == "__main__":
    main()
