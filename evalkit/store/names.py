"""Where everything lies in the output folder, and which names may be written there."""

from __future__ import annotations

import re

BUNDLES = "document_bundles"
RESULTS = "results"
PACKETS = "sme_packets"
REVIEWS = "reviews"
GROUND_TRUTH = "ground_truth"
EXTRACTIONS = "extractions"
SEEDED = "seeded"
DRAWS = "draws"
TEMPLATES = "templates"
TEMPLATE_REVIEWS = "template_reviews"
PRODUCTION = "production.json"
PURGED = "purged"
#: What is being purged at this moment; it is gone when that is done.
PURGING = "purging.json"
#: The reviewers, their roles, and the digests of their codes.
ROSTER = "reviewers.json"

#: What is written before it has its name.
SCRATCH = ".tmp"
#: Held by a run, and by who changes packets, reviews or ground truth.
LOCK = ".lock"
TURN = ".review.lock"
#: The database, unless another one is set; and which part of that other one is the folder's.
SQLITE = "evalkit.sqlite"
DATABASE = "database.json"
#: What the file is called after its rows were moved to another database; nobody reads it any more.
MOVED = f"{SQLITE}.moved"
#: In a bucket: what only the first of two may create.
CREATED_ONCE = "created_once.json"
#: By any of these an output folder is known, whatever else lies in it.
TELLING = frozenset(
    (BUNDLES, PACKETS, GROUND_TRUTH, TEMPLATE_REVIEWS, SQLITE, MOVED, ROSTER, PURGING, CREATED_ONCE),
)
#: What others call theirs too, and what machines and people put into any folder: it tells nothing.
COMMON = frozenset(
    (
        *(RESULTS, REVIEWS, EXTRACTIONS, SEEDED, DRAWS, TEMPLATES, PRODUCTION, PURGED, DATABASE),
        *(SCRATCH, LOCK, TURN, "evalkit.toml"),
        *(".gitkeep", ".keep", ".DS_Store", "lost+found", "Thumbs.db", "desktop.ini"),
    )
)
#: No file system takes longer ones.
PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,254}")


def bundle_name(doc_id: str) -> str:
    """Where a document's bundle lies."""
    return f"{BUNDLES}/{doc_id}.json"


def result_name(doc_id: str) -> str:
    """Where a document's result lies."""
    return f"{RESULTS}/{doc_id}.json"


def extraction_name(doc_id: str) -> str:
    """Where the fields of a document's reports and forms lie."""
    return f"{EXTRACTIONS}/{doc_id}.json"


def packet_name(case_id: str) -> str:
    """Where a case's packet lies."""
    return f"{PACKETS}/sme_packet_{case_id}.json"


def review_name(case_id: str, revision: int) -> str:
    """Where a case's review of that number lies."""
    return f"{REVIEWS}/{case_id}/{revision:04d}.json"


def ground_truth_name(case_id: str) -> str:
    """Where a case's ground truth lies."""
    return f"{GROUND_TRUTH}/gt_{case_id}.json"


def seeded_name(case_id: str) -> str:
    """Where it stands what was planted in a seeded case."""
    return f"{SEEDED}/{case_id}.json"


def draw_name(number: int) -> str:
    """Where the draw of that number lies."""
    return f"{DRAWS}/{number:04d}.json"


def template_name(template_id: str) -> str:
    """Where a statement template lies."""
    return f"{TEMPLATES}/{template_id}.toml"


def cycle_name(template_id: str, number: int) -> str:
    """Where the review of a template's attempt of that number lies."""
    return f"{TEMPLATE_REVIEWS}/{template_id}/cycle_{number}.json"


def purged_name(number: int) -> str:
    """Where the record of the purge of that number lies."""
    return f"{PURGED}/{number:04d}.json"
