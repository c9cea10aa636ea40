"""Storage of the output folder: JSON files are the truth, the database an index.

An :class:`OutputFolder` writes JSON atomically and creates reviews exclusively. :class:`OutputIndex` holds the tables
of documents, cases and closed cases, which can always be rebuilt from the files. Eight further tables cannot be rebuilt,
and a rebuild leaves them alone: claims (who has which case open), drafts (unsubmitted work), deferrals (postponed cases
and why), replies to questions, each reviewer's place in the list, the journal of language models' answers, the view log
(who opened which case), and the digest of each case's newest review.
"""

from evalkit.store.call_journal import ModelCall
from evalkit.store.canonical_json import (
    build_dict_without_duplicate_keys,
    encode_canonical_json,
    hash_canonical_json,
    parse_stored_record,
)
from evalkit.store.case_list import CaseAgeCutoffs
from evalkit.store.database import check_and_describe_database, has_database, resolve_postgresql_url
from evalkit.store.file_names import (
    ATTENTION_CHECKS_FOLDER,
    BUNDLES_FOLDER,
    CONVERTED_FOLDER,
    EVENTS_FOLDER,
    EXTRACTIONS_FOLDER,
    GROUND_TRUTH_FOLDER,
    MOVED_SQLITE_FILE,
    PACKETS_FOLDER,
    PATIENT_SALT_FILE,
    PRODUCTION_LABELS_FILE,
    PURGE_INTENT_FILE,
    PURGE_RECORDS_FOLDER,
    RESULTS_FOLDER,
    REVIEWS_FOLDER,
    ROSTER_FILE,
    SAMPLE_DRAWS_FOLDER,
    SITE_WEIGHTS_FOLDER,
    TEMPLATE_REVIEWS_FOLDER,
    TEMPLATES_FOLDER,
    bundle_file_name,
    converted_file_name,
    event_file_name,
    extraction_file_name,
    ground_truth_file_name,
    packet_file_name,
    purge_record_file_name,
    result_file_name,
    review_file_name,
    sample_draw_file_name,
    site_weights_file_name,
    template_file_name,
    template_review_file_name,
)
from evalkit.store.index import CASE_COLUMNS, OutputIndex
from evalkit.store.local_folder import LocalOutputFolder
from evalkit.store.output_folder import (
    OutputFolder,
    list_numbered_files_or_raise_on_gap,
    list_unrecognised_names,
    parse_stored_json,
    require_evalkit_output_folder,
)
from evalkit.store.output_location import open_output_folder, parse_output_location
from evalkit.store.reviewer_records import (
    CaseClaim,
    CaseView,
    ColleagueReply,
    Deferral,
    QueuePlace,
    ReviewChainHead,
    StoredDraft,
)
from evalkit.store.sqlite_to_postgresql import migrate_sqlite_to_postgresql

__all__ = [
    "ATTENTION_CHECKS_FOLDER",
    "BUNDLES_FOLDER",
    "CASE_COLUMNS",
    "CONVERTED_FOLDER",
    "EVENTS_FOLDER",
    "EXTRACTIONS_FOLDER",
    "GROUND_TRUTH_FOLDER",
    "MOVED_SQLITE_FILE",
    "PACKETS_FOLDER",
    "PATIENT_SALT_FILE",
    "PRODUCTION_LABELS_FILE",
    "PURGE_INTENT_FILE",
    "PURGE_RECORDS_FOLDER",
    "RESULTS_FOLDER",
    "REVIEWS_FOLDER",
    "ROSTER_FILE",
    "SAMPLE_DRAWS_FOLDER",
    "SITE_WEIGHTS_FOLDER",
    "TEMPLATES_FOLDER",
    "TEMPLATE_REVIEWS_FOLDER",
    "CaseAgeCutoffs",
    "CaseClaim",
    "CaseView",
    "ColleagueReply",
    "Deferral",
    "LocalOutputFolder",
    "ModelCall",
    "OutputFolder",
    "OutputIndex",
    "QueuePlace",
    "ReviewChainHead",
    "StoredDraft",
    "build_dict_without_duplicate_keys",
    "bundle_file_name",
    "check_and_describe_database",
    "converted_file_name",
    "encode_canonical_json",
    "event_file_name",
    "extraction_file_name",
    "ground_truth_file_name",
    "has_database",
    "hash_canonical_json",
    "list_numbered_files_or_raise_on_gap",
    "list_unrecognised_names",
    "migrate_sqlite_to_postgresql",
    "open_output_folder",
    "packet_file_name",
    "parse_output_location",
    "parse_stored_json",
    "parse_stored_record",
    "purge_record_file_name",
    "require_evalkit_output_folder",
    "resolve_postgresql_url",
    "result_file_name",
    "review_file_name",
    "sample_draw_file_name",
    "site_weights_file_name",
    "template_file_name",
    "template_review_file_name",
]
