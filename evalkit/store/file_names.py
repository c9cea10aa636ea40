"""Names of all files and folders in the output folder; pattern of valid names."""

from __future__ import annotations

import re

BUNDLES_FOLDER = "document_bundles"
CONVERTED_FOLDER = "converted"
RESULTS_FOLDER = "results"
PACKETS_FOLDER = "sme_packets"
REVIEWS_FOLDER = "reviews"
GROUND_TRUTH_FOLDER = "ground_truth"
EXTRACTIONS_FOLDER = "extractions"
ATTENTION_CHECKS_FOLDER = "seeded"
SAMPLE_DRAWS_FOLDER = "draws"
TEMPLATES_FOLDER = "templates"
TEMPLATE_REVIEWS_FOLDER = "template_reviews"
PRODUCTION_LABELS_FILE = "production.json"
PURGE_RECORDS_FOLDER = "purged"
#: The purge in progress; removed when the purge is finished.
PURGE_INTENT_FILE = "purging.json"
#: The reviewers, their roles, and the digests of their login codes.
ROSTER_FILE = "reviewers.json"

#: The salt from which patients' keys are computed. It leaves the folder only in a backup.
PATIENT_SALT_FILE = "patient_salt.json"

#: Folder of temporary files, which are renamed when they are complete.
TEMP_FOLDER = ".tmp"
#: Lock file of a run; below it, the lock file of writers of packets, reviews or ground truth.
RUN_LOCK_FILE = ".lock"
WRITE_LOCK_FILE = ".review.lock"
#: The SQLite database, unless PostgreSQL is set; below it, the file with the folder's schema name in PostgreSQL.
SQLITE_FILE = "evalkit.sqlite"
DATABASE_SCHEMA_FILE = "database.json"
#: The SQLite file's name after its rows were moved to PostgreSQL; nothing reads it.
MOVED_SQLITE_FILE = f"{SQLITE_FILE}.moved"
#: Object with which a run tests that the bucket refuses to create an existing object again.
EXCLUSIVE_CREATE_PROBE_FILE = "created_once.json"
#: Names any of which shows that a folder is an output folder.
OUTPUT_MARKERS = frozenset(
    (
        BUNDLES_FOLDER,
        PACKETS_FOLDER,
        GROUND_TRUTH_FOLDER,
        TEMPLATE_REVIEWS_FOLDER,
        SQLITE_FILE,
        MOVED_SQLITE_FILE,
        ROSTER_FILE,
        PATIENT_SALT_FILE,
        PURGE_INTENT_FILE,
        EXCLUSIVE_CREATE_PROBE_FILE,
    ),
)
#: Names that may occur in any folder, and so do not show that a folder is an output folder.
NEUTRAL_NAMES = frozenset(
    (
        *(
            CONVERTED_FOLDER,
            RESULTS_FOLDER,
            REVIEWS_FOLDER,
            EXTRACTIONS_FOLDER,
            ATTENTION_CHECKS_FOLDER,
            SAMPLE_DRAWS_FOLDER,
            TEMPLATES_FOLDER,
            PRODUCTION_LABELS_FILE,
            PURGE_RECORDS_FOLDER,
            DATABASE_SCHEMA_FILE,
        ),
        *(TEMP_FOLDER, RUN_LOCK_FILE, WRITE_LOCK_FILE, "evalkit.toml"),
        *(".gitkeep", ".keep", ".DS_Store", "lost+found", "Thumbs.db", "desktop.ini"),
    )
)
#: A file name without its folders; no file system allows longer names.
NAME_PART_PATTERN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}")


def bundle_file_name(doc_id: str) -> str:
    """Return the file name of a document's bundle."""
    return f"{BUNDLES_FOLDER}/{doc_id}.json"


def converted_file_name(doc_id: str) -> str:
    """Return the file name of the PDF shown instead of a document's own file."""
    return f"{CONVERTED_FOLDER}/{doc_id}.pdf"


def result_file_name(doc_id: str) -> str:
    """Return the file name of a document's result."""
    return f"{RESULTS_FOLDER}/{doc_id}.json"


def extraction_file_name(doc_id: str) -> str:
    """Return the file name of a document's extracted fields."""
    return f"{EXTRACTIONS_FOLDER}/{doc_id}.json"


def packet_file_name(case_id: str) -> str:
    """Return the file name of a case's packet."""
    return f"{PACKETS_FOLDER}/sme_packet_{case_id}.json"


def review_file_name(case_id: str, revision: int) -> str:
    """Return the file name of a case's review with this number."""
    return f"{REVIEWS_FOLDER}/{case_id}/{revision:04d}.json"


def ground_truth_file_name(case_id: str) -> str:
    """Return the file name of a case's ground truth."""
    return f"{GROUND_TRUTH_FOLDER}/gt_{case_id}.json"


def sample_draw_file_name(number: int) -> str:
    """Return the file name of the draw with this number."""
    return f"{SAMPLE_DRAWS_FOLDER}/{number:04d}.json"


def template_file_name(template_id: str) -> str:
    """Return the file name of a bank-statement template."""
    return f"{TEMPLATES_FOLDER}/{template_id}.toml"


def template_review_file_name(template_id: str, cycle_number: int) -> str:
    """Return the file name of a template's review cycle with this number."""
    return f"{TEMPLATE_REVIEWS_FOLDER}/{template_id}/cycle_{cycle_number}.json"


def purge_record_file_name(number: int) -> str:
    """Return the file name of the purge record with this number."""
    return f"{PURGE_RECORDS_FOLDER}/{number:04d}.json"
