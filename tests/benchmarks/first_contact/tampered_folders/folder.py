"""Build a realistic output folder with the command line: everything that the tamperings change is in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pymupdf
from commands import evalkit_command

from evalkit.review import SMEReviewHelper
from evalkit.samples.simulated_experts import main as simulate_experts

from .changes import execute, list_packets, list_reviews, read_json, run_again, run_evalkit

#: Samples that take long to recognise: left out, so that a folder is built in seconds.
SLOW_SAMPLES = ("poor_scan.*", "faxed_packet.*", "faxed_result.*", "scanned.*", "colon_biopsy.*")
#: Cases that the simulated experts leave in the queue.
WAITING = ("adjoining_notes", "fabricated_quote", "quest_genomic", "segment_count")
ROWS = (
    ("01/03/2024", "OPENING DEPOSIT", "500.00", "1,500.00"),
    ("01/09/2024", "PHARMACY", "-40.00", "1,460.00"),
    ("01/17/2024", "PAYROLL", "900.00", "2,360.00"),
    ("01/28/2024", "RENT", "-700.00", "1,660.00"),
)


def build_folder(base: Path) -> Path:
    """Build an output folder from ``base/samples`` and return its path, ``base/output``.

    ``base/audit.json`` is its export, ``base/older`` the folder as it was before the newest work, and ``base/statement.pdf``
    the statement of its template.
    """
    samples, root = base / "samples", base / "output"
    evalkit_command("samples", samples)
    for pattern in SLOW_SAMPLES:
        for path in [*samples.glob(pattern), *samples.glob(f"classifications/{pattern}")]:
            path.unlink()
    leave_out_rows(samples / "production.csv")
    run_again(root, "--extract", "--name", "first")
    run_evalkit("run", samples / "clinical_note.pdf", "--fresh", "--no-classifications", "--name", "second", root=root)
    for name in ("anna", "bert"):
        run_evalkit("reviewers", "add", name, root=root)
    run_evalkit("sample", "3", root=root)
    simulate_experts([str(root), str(samples / "truth.csv"), *WAITING])
    shutil.copytree(root, base / "older")
    helper = SMEReviewHelper(str(root), reviewer="anna")
    helper.load_packet(WAITING[0])
    helper.save_review(WAITING[3], undeterminable="illegible scan")
    helper.save_review(list_reviews(root, "validated")[0].parent.name, agrees=True)
    add_views(root)
    run_evalkit("purge", "quest_cbc", root=root)
    write_statement(base / "statement.pdf")
    run_evalkit("build-template", base / "statement.pdf", root=root)
    template = sorted((root / "templates").glob("*.toml"))[0]
    run_evalkit("review-template", template.stem, base / "statement.pdf", root=root)
    run_evalkit("apply-template", template.stem, base / "statement.pdf", root=root)
    run_evalkit("dossier", "--to", base / "dossier.html", root=root)
    run_evalkit("audit", "export", "--to", base / "audit.json", root=root)
    return root


def leave_out_rows(path: Path) -> None:
    """Leave out the rows of the documents that were left out."""
    names = tuple(pattern.split(".")[0] for pattern in SLOW_SAMPLES)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith(names)), encoding="utf-8")


def add_views(root: Path) -> None:
    """Note in the view log that experts opened each reviewed case, as the screen does when a case is opened."""
    for path in list_packets(root, is_reviewed=True):
        case_id = read_json(path)["case_id"]
        review = read_json(root / "reviews" / case_id / "0001.json")
        values = (case_id, review["reviewer"], review["submitted_at"])
        execute(root, "INSERT INTO views (case_id, reviewer, opened_at) VALUES (?, ?, ?)", *values)


def write_statement(path: Path, bank: str = "First Orchard Bank") -> None:
    """Write a bank statement whose balances agree with its transactions."""
    with pymupdf.open() as document:
        page = document.new_page()
        page.insert_text((60, 60), bank, fontsize=16)
        page.insert_text((60, 85), "Statement period 01/01/2024 to 01/31/2024")
        page.insert_text((60, 100), "Account number 0042-1177")
        page.insert_text((60, 120), "Opening balance 1,000.00")
        for column, title in zip((60, 150, 350, 450), ("Date", "Description", "Amount", "Balance"), strict=True):
            page.insert_text((column, 150), title)
        for number, row in enumerate(ROWS):
            for column, word in zip((60, 150, 350, 450), row, strict=True):
                page.insert_text((column, 170 + 18 * number), word)
        page.insert_text((60, 260), "Closing balance 1,660.00")
        document.save(path, no_new_id=True)
