"""output/: what machines and people said is in files; the database only indexes them and coordinates people.

:class:`Files` writes JSON atomically and creates reviews exclusively. :class:`Index` holds the tables of documents, cases
and closed cases, which can always be rebuilt from the files, and six that cannot and that a rebuild leaves alone:
:class:`Claims`, who has which case open, :class:`Drafts`, what somebody has not submitted yet, :class:`Deferrals`, what
somebody has put off and why, :class:`Calls`, what language models answered, :class:`Views`, who opened which case, and :class:`Heads`, the digest of each newest
review.
"""

from evalkit.store.calls import Call
from evalkit.store.canonical import canonical, digest, once_each, shaped
from evalkit.store.case_list import Moments
from evalkit.store.claims import Claim
from evalkit.store.database import chosen, described, is_there
from evalkit.store.deferrals import Deferral
from evalkit.store.drafts import StoredDraft
from evalkit.store.files import Files, parsed
from evalkit.store.heads import Head
from evalkit.store.index import CASE_COLUMNS, Index
from evalkit.store.moving import move
from evalkit.store.names import (
    BUNDLES,
    DRAWS,
    EXTRACTIONS,
    GROUND_TRUTH,
    MOVED,
    PACKETS,
    PRODUCTION,
    PURGED,
    PURGING,
    RESULTS,
    REVIEWS,
    ROSTER,
    SEEDED,
    TEMPLATE_REVIEWS,
    TEMPLATES,
    bundle_name,
    cycle_name,
    draw_name,
    extraction_name,
    ground_truth_name,
    packet_name,
    purged_name,
    result_name,
    review_name,
    seeded_name,
    template_name,
)
from evalkit.store.place import located
from evalkit.store.views import Viewed

__all__ = [
    "BUNDLES",
    "CASE_COLUMNS",
    "DRAWS",
    "EXTRACTIONS",
    "GROUND_TRUTH",
    "MOVED",
    "PACKETS",
    "PRODUCTION",
    "PURGED",
    "PURGING",
    "RESULTS",
    "REVIEWS",
    "ROSTER",
    "SEEDED",
    "TEMPLATES",
    "TEMPLATE_REVIEWS",
    "Call",
    "Claim",
    "Deferral",
    "Files",
    "Head",
    "Index",
    "Moments",
    "StoredDraft",
    "Viewed",
    "bundle_name",
    "canonical",
    "chosen",
    "cycle_name",
    "described",
    "digest",
    "draw_name",
    "extraction_name",
    "ground_truth_name",
    "is_there",
    "located",
    "move",
    "once_each",
    "packet_name",
    "parsed",
    "purged_name",
    "result_name",
    "review_name",
    "seeded_name",
    "shaped",
    "template_name",
]
