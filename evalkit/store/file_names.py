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
EVENTS_FOLDER = "events"
#: The chain of the changes of files.
CHANGES_FOLDER = "changes"
#: Proposed weights of the built-in model; the log of events says which are in force.
SITE_WEIGHTS_FOLDER = "site_weights"
#: One folder for each run: its record, and those of its results that later runs replaced.
RUNS_FOLDER = "runs"
TEMPLATES_FOLDER = "templates"
TEMPLATE_REVIEWS_FOLDER = "template_reviews"
PRODUCTION_LABELS_FILE = "production.json"
#: A site's own document types, as the last run had them.
OWN_TYPES_FILE = "own_types.toml"
#: Counts of what was new in each run's documents.
MONITORING_FILE = "monitoring.json"
PURGE_RECORDS_FOLDER = "purged"
#: The purge in progress; removed when the purge is finished.
PURGE_INTENT_FILE = "purging.json"
#: The reviewers, their roles, and the digests of their login codes.
ROSTER_FILE = "reviewers.json"

#: The site's own statement of what evalkit is used for, which the dossier shows.
INTENDED_USE_FILE = "intended_use.md"

#: The salt from which patients' keys are computed. It leaves the folder only in a backup.
PATIENT_SALT_FILE = "patient_salt.json"

#: Folder of temporary files, which are renamed when they are complete.
TEMP_FOLDER = ".tmp"
#: Lock file of a run; below it, the lock file of writers of packets, reviews or ground truth.
RUN_LOCK_FILE = ".lock"
WRITE_LOCK_FILE = ".review.lock"
#: Lock file of what a backup must not interrupt: the saving of a document in several files.
SAVE_LOCK_FILE = ".backup.lock"
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
            EVENTS_FOLDER,
            CHANGES_FOLDER,
            SITE_WEIGHTS_FOLDER,
            RUNS_FOLDER,
            TEMPLATES_FOLDER,
            PRODUCTION_LABELS_FILE,
            OWN_TYPES_FILE,
            MONITORING_FILE,
            INTENDED_USE_FILE,
            PURGE_RECORDS_FOLDER,
            DATABASE_SCHEMA_FILE,
        ),
        *(TEMP_FOLDER, RUN_LOCK_FILE, WRITE_LOCK_FILE, SAVE_LOCK_FILE, "evalkit.toml"),
        *(".gitkeep", ".keep", ".DS_Store", "lost+found", "Thumbs.db", "desktop.ini"),
    )
)
#: First parts of names that mean something only where the output folder is: locks, temporary files and databases.
_COORDINATION_NAME_PATTERN = re.compile(
    "|".join(map(re.escape, (TEMP_FOLDER, RUN_LOCK_FILE, WRITE_LOCK_FILE, SAVE_LOCK_FILE, DATABASE_SCHEMA_FILE)))
    + rf"|{re.escape(SQLITE_FILE)}.*|\.nfs.*"
)


def is_coordination_file(name: str) -> bool:
    """Return True for locks, temporary files and databases, which are not backed up.

    >>> is_coordination_file("evalkit.sqlite-wal"), is_coordination_file(".tmp/1-2"), is_coordination_file("results/a.json")
    (True, True, False)
    """
    return _COORDINATION_NAME_PATTERN.fullmatch(name.partition("/")[0]) is not None


#: Beginning of the name of a file that was removed from a network drive, but is still open in a process.
NETWORK_DRIVE_PREFIX = ".nfs"
#: A file name without its folders; no file system allows longer names.
NAME_PART_PATTERN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}")


# Functions that build the name of a file: from a doc_id, a case_id, a template_id, or the number of a draw or record.
bundle_file_name = f"{BUNDLES_FOLDER}/{{}}.json".format
#: The PDF shown instead of a document's own file.
converted_file_name = f"{CONVERTED_FOLDER}/{{}}.pdf".format
result_file_name = f"{RESULTS_FOLDER}/{{}}.json".format
extraction_file_name = f"{EXTRACTIONS_FOLDER}/{{}}.json".format
packet_file_name = f"{PACKETS_FOLDER}/sme_packet_{{}}.json".format
#: From a case_id and the review's number.
review_file_name = f"{REVIEWS_FOLDER}/{{}}/{{:04d}}.json".format
ground_truth_file_name = f"{GROUND_TRUTH_FOLDER}/gt_{{}}.json".format
sample_draw_file_name = f"{SAMPLE_DRAWS_FOLDER}/{{:04d}}.json".format
#: From the number of an event in the log.
event_file_name = f"{EVENTS_FOLDER}/{{:04d}}.json".format
#: From the number of a link.
change_link_file_name = f"{CHANGES_FOLDER}/{{:04d}}.json".format
site_weights_file_name = f"{SITE_WEIGHTS_FOLDER}/{{:04d}}.json".format
run_file_name = f"{RUNS_FOLDER}/{{}}/run.json".format
#: From a run's name and the name of a file that a later run replaced.
kept_file_name = f"{RUNS_FOLDER}/{{}}/{{}}".format
template_file_name = f"{TEMPLATES_FOLDER}/{{}}.toml".format
#: From a template_id and the cycle's number.
template_review_file_name = f"{TEMPLATE_REVIEWS_FOLDER}/{{}}/cycle_{{}}.json".format
purge_record_file_name = f"{PURGE_RECORDS_FOLDER}/{{:04d}}.json".format
