"""The names of all files in the output folder, and which names are allowed."""

from __future__ import annotations

import re

BUNDLES_FOLDER = "document_bundles"
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
#: The purge under way; removed when it is finished.
PURGE_INTENT_FILE = "purging.json"
#: The reviewers, their roles, and the digests of their codes.
ROSTER_FILE = "reviewers.json"

#: The salt of patients' keys. It leaves the folder only in a backup.
PATIENT_SALT_FILE = "patient_salt.json"

#: Files that do not have their name yet.
TEMP_FOLDER = ".tmp"
#: Locked by a run, and by writers of packets, reviews or ground truth.
RUN_LOCK_FILE = ".lock"
WRITE_LOCK_FILE = ".review.lock"
#: The database, unless another one is set; and the folder's schema in that one.
SQLITE_FILE = "evalkit.sqlite"
DATABASE_SCHEMA_FILE = "database.json"
#: The file's name after its rows were moved to another database; nothing reads it.
MOVED_SQLITE_FILE = f"{SQLITE_FILE}.moved"
#: In a bucket: tests that only the first of two may create an object.
EXCLUSIVE_CREATE_PROBE_FILE = "created_once.json"
#: Any of these identifies an output folder.
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
#: Names that occur in any folder: they do not show that it is evalkit's.
NEUTRAL_NAMES = frozenset(
    (
        *(
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
#: No file system allows longer ones.
NAME_PART_PATTERN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}")


def bundle_file_name(doc_id: str) -> str:
    """Name a document's bundle."""
    return f"{BUNDLES_FOLDER}/{doc_id}.json"


def result_file_name(doc_id: str) -> str:
    """Name a document's result."""
    return f"{RESULTS_FOLDER}/{doc_id}.json"


def extraction_file_name(doc_id: str) -> str:
    """Name the extracted fields of a document's reports and forms."""
    return f"{EXTRACTIONS_FOLDER}/{doc_id}.json"


def packet_file_name(case_id: str) -> str:
    """Name a case's packet."""
    return f"{PACKETS_FOLDER}/sme_packet_{case_id}.json"


def review_file_name(case_id: str, revision: int) -> str:
    """Name a case's review of that number."""
    return f"{REVIEWS_FOLDER}/{case_id}/{revision:04d}.json"


def ground_truth_file_name(case_id: str) -> str:
    """Name a case's ground truth."""
    return f"{GROUND_TRUTH_FOLDER}/gt_{case_id}.json"


def sample_draw_file_name(number: int) -> str:
    """Name the draw of that number."""
    return f"{SAMPLE_DRAWS_FOLDER}/{number:04d}.json"


def template_file_name(template_id: str) -> str:
    """Name a statement template."""
    return f"{TEMPLATES_FOLDER}/{template_id}.toml"


def template_review_file_name(template_id: str, cycle_number: int) -> str:
    """Name the review cycle of that number of a template."""
    return f"{TEMPLATE_REVIEWS_FOLDER}/{template_id}/cycle_{cycle_number}.json"


def purge_record_file_name(number: int) -> str:
    """Name the record of the purge of that number."""
    return f"{PURGE_RECORDS_FOLDER}/{number:04d}.json"
