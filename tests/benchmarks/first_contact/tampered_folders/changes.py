"""What both halves are made of: a Tampering, and small helpers that change the files of an output folder."""

from __future__ import annotations

import hashlib
import json
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from commands import evalkit_command

Change = Callable[[Path, random.Random], None]
SeenBy = Literal["verify", "against", "either"]


class NotApplicableError(Exception):
    """The folder has nothing that the tampering could change."""


@dataclass(frozen=True)
class Tampering:
    """A change to an output folder: dishonest if it matters, else honest work that must not be told as a fault."""

    name: str
    family: str
    description: str
    apply: Change
    matters: bool = True
    #: The check that must tell it: ``audit verify``, the same ``--against`` an earlier export, or one of them; None for honest work.
    seen_by: SeenBy | None = "either"


class Tamperings(list[Tampering]):
    """The tamperings of a half; ``add`` and ``add_honest`` decorate the functions that do them."""

    def add(self, family: str, seen_by: SeenBy = "either") -> Callable[[Change], Change]:
        """Add a dishonest change; its docstring is the description."""
        return lambda apply: self._append(apply, family, True, seen_by)

    def add_honest(self, family: str) -> Callable[[Change], Change]:
        """Add honest work; its docstring is the description."""
        return lambda apply: self._append(apply, family, False, None)

    def _append(self, apply: Change, family: str, matters: bool, seen_by: SeenBy | None) -> Change:
        self.append(Tampering(apply.__name__, family, (apply.__doc__ or "").strip(), apply, matters, seen_by))
        return apply


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, content: Any) -> None:
    """Write JSON as the program writes it: bundles and links in one line, with the mode that its files have."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    style: dict[str, Any] = (
        {"separators": (",", ":")} if path.parent.name in {"document_bundles", "changes"} else {"indent": 2}
    )
    path.write_text(json.dumps(content, ensure_ascii=False, **style) + "\n", encoding="utf-8")
    path.chmod(0o600)


@contextmanager
def edit_json(path: Path) -> Iterator[Any]:
    """Yield a JSON file's content and write it back, with the file's times as they were."""
    times = path.stat()
    content = read_json(path)
    yield content
    write_json(path, content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def choose(rng: random.Random, options: list[Any]) -> Any:
    """Choose one of the options, or raise NotApplicableError if there is none."""
    if not options:
        raise NotApplicableError("the folder has no such file")
    return rng.choice(options)


def list_files(root: Path, pattern: str, keep: Callable[[Any], bool] = lambda _: True) -> list[Path]:
    """List the JSON files of a pattern whose content passes ``keep``, sorted."""
    return [path for path in sorted(root.glob(pattern)) if path.is_file() and keep(read_json(path))]


def list_results(root: Path, decision: str | None = None, *, is_reviewed: bool | None = None) -> list[str]:
    """List the doc_ids with a result of this decision, with or without a review."""
    paths = list_files(root, "results/*.json", lambda result: decision in (None, result.get("decision")))
    return [path.stem for path in paths if is_reviewed in (None, (root / "reviews" / path.stem).is_dir())]


def list_packets(root: Path, reason: str | None = None, *, is_reviewed: bool | None = None) -> list[Path]:
    """List the packets of this review reason, with or without a review."""
    packets = list_files(root, "sme_packets/*.json", lambda packet: reason in (None, packet["review_reason"]))
    return [path for path in packets if is_reviewed in (None, (root / "reviews" / read_json(path)["case_id"]).is_dir())]


def list_records(root: Path, source: str) -> list[Path]:
    """List the records of truth about a classification whose source begins so: AUTO_ACCEPTED for silver, SME_ for experts'."""
    records = list_files(root, "ground_truth/*.json", lambda record: "ground_truth_classification" in record)
    return [path for path in records if (read_json(path)["ground_truth_source"] or "").startswith(source)]


def list_reviews(root: Path, outcome: str | None = None) -> list[Path]:
    """List the newest review of each case of a classification: those with this outcome, or those with an answer."""
    newest = [
        sorted(case.glob("*.json"))[-1] for case in sorted((root / "reviews").glob("*")) if any(case.glob("*.json"))
    ]
    listed = []
    for path in newest:
        review = read_json(path)
        has_answer = "dominant_type_overall" in (review["after"] or {})
        if "." not in path.parent.name and (review["outcome"] == outcome if outcome else has_answer):
            listed.append(path)
    return listed


def list_document_files(root: Path, doc_id: str) -> list[Path]:
    """List every file about a document, except runs and logs that name many documents."""
    patterns = (
        f"results/{doc_id}.json",
        f"document_bundles/{doc_id}.json",
        f"ground_truth/gt_{doc_id}*.json",
        f"sme_packets/sme_packet_{doc_id}.json",
        f"sme_packets/sme_packet_{doc_id}.*.json",
        f"reviews/{doc_id}/*.json",
        f"reviews/{doc_id}.*/*.json",
        f"extractions/{doc_id}.json",
        f"converted/{doc_id}.pdf",
        f"runs/*/results/{doc_id}.json",
        f"runs/*/extractions/{doc_id}.json",
    )
    return sorted({path for pattern in patterns for path in root.glob(pattern)})


def remove_document(root: Path, doc_id: str) -> None:
    """Remove every file and every row of the database about a document, and its name from runs and labels."""
    for path in list_document_files(root, doc_id):
        path.unlink()
        if path.parent.parent.name == "reviews" and not any(path.parent.iterdir()):
            path.parent.rmdir()
    for path in root.glob("runs/*/run.json"):
        with edit_json(path) as run:
            run["documents"].pop(doc_id, None)
    execute(root, "DELETE FROM documents WHERE doc_id = ?", doc_id)
    execute(root, "DELETE FROM cases WHERE doc_id = ?", doc_id)
    for table in ("claims", "closings", "drafts", "heads", "views"):
        execute(root, f"DELETE FROM {table} WHERE case_id = ? OR case_id LIKE ? || '.%'", doc_id, doc_id)


def list_rows(root: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query to the folder's SQLite database."""
    with sqlite3.connect(root / "evalkit.sqlite") as connection:
        rows = connection.execute(query, values).fetchall()
    connection.close()
    return rows


def execute(root: Path, statement: str, *values: Any) -> int:
    """Execute a statement in the folder's SQLite database; return the number of changed rows."""
    with sqlite3.connect(root / "evalkit.sqlite") as connection:
        count = connection.execute(statement, values).rowcount
        connection.commit()
    connection.close()
    return count


def hash_canonically(content: Any) -> str:
    """Return the hash of JSON with sorted keys and no spaces: what a forger tries who does not know the program's form."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def link_reviews(root: Path, case_id: str) -> None:
    """Link a case's reviews again, each to the bytes of the one before, and their head in the database."""
    paths = sorted((root / "reviews" / case_id).glob("*.json"))
    previous = None
    for path in paths:
        with edit_json(path) as review:
            if "signature" in review:
                unsigned = {key: value for key, value in review.items() if key != "signature"}
                review["signature"]["record_sha256"] = hash_canonically(unsigned | {"prev_sha256": previous})
            review["prev_sha256"] = previous
        previous = hash_file(path)
    if previous:
        execute(root, "UPDATE heads SET revision = ?, sha256 = ? WHERE case_id = ?", len(paths), previous, case_id)


def record_result_in_runs(root: Path, doc_id: str) -> None:
    """Make every run whose newest result this is name the changed decision and hash."""
    path = root / "results" / f"{doc_id}.json"
    result = read_json(path)
    for run_path in sorted(root.glob("runs/*/run.json"))[-1:]:
        with edit_json(run_path) as run:
            if entry := run["documents"].get(doc_id):
                entry["decision"] = result["decision"]
                entry["decision_rule"] = result["decision_rule"]
                if isinstance(entry.get("result"), dict):
                    entry["result"]["sha256"] = hash_file(path)


def accept_document(root: Path, doc_id: str) -> None:
    """Make an escalated document an accepted one, in its result, its packet, its silver record, its run and the index."""
    path = root / "results" / f"{doc_id}.json"
    with edit_json(path) as result:
        result |= {
            "decision": "AUTO_ACCEPT",
            "decision_rule": "7",
            "decision_reason": "no check found anything",
            "issues": [],
        }
        for attempt in result["attempts"]:
            attempt |= {"decision": "AUTO_ACCEPT", "decision_rule": "7", "issues": []}
        classification, at = result["classification"], result["times"]["finished_at"]
    (root / "sme_packets" / f"sme_packet_{doc_id}.json").unlink(missing_ok=True)
    write_silver_record(root, doc_id, classification, at)
    record_result_in_runs(root, doc_id)
    execute(root, "UPDATE documents SET decision = 'AUTO_ACCEPT' WHERE doc_id = ?", doc_id)
    execute(root, "DELETE FROM cases WHERE doc_id = ?", doc_id)


def write_silver_record(root: Path, doc_id: str, classification: Any, at: str) -> None:
    """Write the record of an accepted answer that no expert saw, in the form of the folder's other ones."""
    silver = choose(
        random.Random(0),
        list_records(root, "AUTO_ACCEPTED"),
    )
    record = read_json(silver) | {"doc_id": doc_id, "reviewed_at": at, "ground_truth_classification": classification}
    write_json(root / "ground_truth" / f"gt_{doc_id}.json", record)


def set_type(classification: Any, document_type: str) -> None:
    """Make a classification name this type everywhere, with shares that agree."""
    classification["dominant_type_overall"] = document_type
    for segment in classification["segments"]:
        segment["dominant_type"] = document_type
        trade_type(segment["segment_composition"], document_type)
    trade_type(classification["document_mixture"], document_type)


def trade_type(mixture: list[Any], document_type: str) -> None:
    """Exchange the leading type of a mixture with another type, so that numbers and quotes go with it."""
    leading = max(mixture, key=lambda part: part["confidence"])
    for part in mixture:
        if part["document_type"] == document_type:
            part["document_type"] = leading["document_type"]
    leading["document_type"] = document_type


def choose_other_type(rng: random.Random, document_type: str | None) -> str:
    """Choose another of the five types."""
    types = ["Clinical Note", "Genomic Report", "Pathology Report", "Radiology Report", "Other"]
    return rng.choice([name for name in types if name != document_type])


def run_evalkit(
    *arguments: str | Path, root: Path, settings: dict[str, str] | None = None, statuses: tuple[int, ...] | None = None
) -> str:
    """Run the command line on a folder as a user does; return what it printed.

    Status 1 of ``run`` is no failure here: it says that a purged document was left out.
    """
    expected = statuses or ((0, 1) if arguments[0] == "run" else (0,))
    done = evalkit_command(*arguments, "--output", root, **(settings or {}))
    if done.returncode not in expected:
        raise RuntimeError(f"evalkit {' '.join(map(str, arguments))}: status {done.returncode}: {done.stderr[:4000]}")
    return done.stdout


def run_again(root: Path, *arguments: str | Path, **options: Any) -> str:
    """Run evalkit over the folder's documents as the first run did."""
    samples = root.parent / "samples"
    given = ("--classifications", samples / "classifications", "--production", samples / "production.csv")
    return run_evalkit("run", samples, *given, *arguments, root=root, **options)
