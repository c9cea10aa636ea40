"""Split documents into training and test parts without leakage.

Documents that share a patient or have nearly the same text form a group, and a group is never divided; otherwise a
model could recognise in the test part what it learned from a near copy. A group's part depends only on the smallest
SHA-256 of its documents and the seed, so it does not change if other documents are added or removed. Therefore the
requested shares are reached on average, not exactly.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csc_array
from scipy.sparse.csgraph import connected_components

from evalkit.classification.patient_keys import list_person_keys
from evalkit.core.document_cache import cache_document_text
from evalkit.core.grouping import group_pairs
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.identity.file_persons import group_pages_by_person
from evalkit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

#: Number of consecutive words in a shingle.
SHINGLE_WORDS = 8
#: Two documents are nearly the same if more than this share of the shorter document's shingles appears in the longer
#: one.
OVERLAP_THRESHOLD = 0.30

_PART_NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORD_PATTERN = re.compile(r"\w+")
#: Kinds of identifier that tell which patient a page belongs to.
_PATIENT_IDENTIFIER_KINDS = ("patient", "date_of_birth", "mrn")
_HashArray = npt.NDArray[np.uint64]
_Numbers = npt.NDArray[np.int64]
#: Number of pairs of documents that are compared at once.
_MAX_PAIRS_IN_MEMORY = 1 << 22


@dataclass(frozen=True)
class GroupingFeatures:
    """A document's patient identifiers and text shingles, which decide its group."""

    doc_id: str
    sha256: str
    patient_identifiers: frozenset[tuple[str, str]]
    """(kind, normal form) of each patient name, birth date and record number on the pages; and ("key", patient key)."""
    shingle_hashes: _HashArray = field(repr=False)
    """Distinct, sorted hashes of all runs of ``SHINGLE_WORDS`` words; one hash of all words if the text is shorter."""

    @classmethod
    def from_bundle(cls, bundle: DocumentBundle) -> GroupingFeatures:
        """Extract a document's patient identifiers and shingles from its bundle."""
        identifiers = (identifier for page in bundle.pages for identifier in page.identifiers)
        # The keys are only compared and never stored, so an empty salt is enough.
        patient_keys = (list_person_keys(person, salt=b"") for person in group_pages_by_person(bundle.pages))
        return cls(
            doc_id=bundle.doc_id,
            sha256=bundle.sha256,
            patient_identifiers=frozenset(
                (identifier.kind, identifier.normal)
                for identifier in identifiers
                if identifier.kind in _PATIENT_IDENTIFIER_KINDS
            )
            | {("key", key) for keys in patient_keys for key in keys},
            shingle_hashes=hash_shingles("\n".join(page.text for page in bundle.pages)),
        )


def hash_shingles(text: str) -> _HashArray:
    """Return the sorted hashes of a text's shingles, ignoring case and spacing.

    The hashes are the same on every machine.
    """
    word_hashes = np.array([_hash_word(word) for word in _WORD_PATTERN.findall(text.casefold())], np.uint64)
    shingle_length = min(SHINGLE_WORDS, len(word_hashes))
    if not shingle_length:
        return word_hashes
    # Polynomial hash of the words' hashes modulo 2^64, computed for all positions of the text at once.
    hashes = np.zeros(len(word_hashes) - shingle_length + 1, np.uint64)
    for offset in range(shingle_length):
        hashes = (
            hashes * np.uint64(0x9E3779B97F4A7C15)
            + word_hashes[offset : len(word_hashes) - shingle_length + 1 + offset]
        )
    return np.unique(hashes)


@cache_document_text(1 << 18)
def _hash_word(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def split_documents(
    features: Iterable[GroupingFeatures], share_by_part: Mapping[str, float], *, seed: int
) -> dict[str, list[str]]:
    """Split documents into parts without dividing a group; return doc_ids by part.

    The doc_ids of a part are in the order of ``features``. ``share_by_part``: shares 0..1 that sum to 1, such as
    ``{"train": 0.8, "test": 0.2}``; otherwise UsageError.
    """
    require_valid_split_shares(share_by_part)
    documents = list(features)
    part_by_doc_id = {
        document.doc_id: _choose_split_part(min(member.sha256 for member in group), share_by_part, seed)
        for group in group_related_documents(documents)
        for document in group
    }
    return {
        part: [document.doc_id for document in documents if part_by_doc_id[document.doc_id] == part]
        for part in share_by_part
    }


def count_types_by_part(
    doc_ids_by_part: Mapping[str, Iterable[str]], type_by_doc_id: Mapping[str, str | None]
) -> pd.DataFrame:
    """Count the documents of a split by type (rows) and part (columns)."""
    import pandas as pd

    typed_parts = [
        (type_by_doc_id[doc_id] or "none", part) for part, doc_ids in doc_ids_by_part.items() for doc_id in doc_ids
    ]
    type_names = sorted({type_name for type_name, _ in typed_parts})
    counts = [[typed_parts.count((type_name, part)) for part in doc_ids_by_part] for type_name in type_names]
    return pd.DataFrame(counts, index=pd.Index(type_names, name="type", dtype="str"), columns=list(doc_ids_by_part))


def group_related_documents(
    documents: Sequence[GroupingFeatures], overlap_threshold: float = OVERLAP_THRESHOLD
) -> list[list[GroupingFeatures]]:
    """Group documents that share a patient or text, directly or via others."""
    first_by_patient: dict[tuple[str, str], int] = {}
    patient_pairs = [
        (index, first_by_patient.setdefault(patient, index))
        for index, document in enumerate(documents)
        for patient in document.patient_identifiers
    ]
    left, right = np.array(patient_pairs, np.int64).reshape(-1, 2).T
    labels = _join_pairs(np.arange(len(documents)), left, right)
    for left, right in _iterate_similar_pairs([document.shingle_hashes for document in documents], overlap_threshold):
        labels = _join_pairs(labels, left, right)
    return list(group_pairs(zip(labels.tolist(), documents, strict=True)).values())


def parse_split_shares(text: str) -> dict[str, float]:
    """Parse the shares of train and, after a comma, validation; the rest is test.

    UsageError unless these are one or two numbers from 0 to 1 that sum to at most 1.

    >>> parse_split_shares("0.75"), parse_split_shares("0.5,0.25")
    ({'train': 0.75, 'test': 0.25}, {'train': 0.5, 'validation': 0.25, 'test': 0.25})
    """
    names = ("train", "validation")[: text.count(",") + 1]
    try:
        shares = dict(zip(names, map(float, text.split(",")), strict=True))
    except ValueError:
        shares = {"train": math.nan}
    shares["test"] = round(1 - math.fsum(shares.values()), 12)
    if not all(0 <= share <= 1 for share in shares.values()):
        raise UsageError(
            f"{text[:40]!r} is not a list of shares of a split",
            code="SPLIT",
            remedy="Give the share for training, such as 0.8, or those for training and validation, such as 0.7,0.15.",
        )
    return shares


def require_valid_split_shares(share_by_part: Mapping[str, float]) -> None:
    """Raise UsageError unless names are valid and shares are 0..1 and sum to 1."""
    bad_names = [part for part in share_by_part if not _PART_NAME_PATTERN.fullmatch(part)]
    if bad_names or not share_by_part:
        raise UsageError(
            f"{bad_names[0]!r} is not a valid name for a part of a split" if bad_names else "the split has no parts",
            code="SPLIT",
            remedy="Give each part a name of letters, digits and '_' that begins with a letter, such as train and test.",
        )
    if any(not share >= 0 for share in share_by_part.values()) or not math.isclose(
        sum(share_by_part.values()), 1, abs_tol=1e-9
    ):
        raise UsageError(
            f"the shares of the split, {', '.join(f'{share:g}' for share in share_by_part.values())}, are not all between 0 "
            "and 1 or do not sum to 1",
            code="SPLIT",
            remedy="Give shares that sum to 1, such as 0.8 and 0.2.",
        )


def _choose_split_part(group_sha256: str, share_by_part: Mapping[str, float], seed: int) -> str:
    position = int.from_bytes(hashlib.sha256(f"{seed}:{group_sha256}".encode()).digest()[:8], "big") / 2**64
    for part, share in share_by_part.items():
        if position < share:
            return part
        position -= share
    return max(share_by_part, key=lambda part: share_by_part[part])  # reached only because of rounding errors


def _join_pairs(labels: _Numbers, left: _Numbers, right: _Numbers) -> _Numbers:
    """Join the groups of each pair of documents, and number all groups anew."""
    _, first_members = np.unique(labels, return_index=True)
    ends = np.r_[np.arange(len(labels)), left], np.r_[first_members[labels], right]
    graph = coo_array((np.ones(len(ends[0]), bool), ends), shape=(len(labels), len(labels)))
    joined: _Numbers = connected_components(graph, directed=False)[1].astype(np.int64)
    return joined


def _iterate_similar_pairs(
    hashes_by_document: Sequence[_HashArray], overlap_threshold: float
) -> Iterator[tuple[_Numbers, _Numbers]]:
    """Yield pairs of documents with nearly equal text: left and right, as arrays."""
    shingle_counts = np.array([len(hashes) for hashes in hashes_by_document], np.int64)
    if not shingle_counts.any():
        return
    _, columns = np.unique(np.concatenate(hashes_by_document), return_inverse=True)
    owners = np.repeat(np.arange(len(shingle_counts)), shingle_counts)
    # Shingles with the same owners, such as the lines of a letterhead, become one column with their number: the sum of
    # their owners' random keys is the same.
    owner_keys = np.random.default_rng(0).integers(1 << 64, size=len(shingle_counts), dtype=np.uint64)
    column_keys = np.zeros(columns.max() + 1, np.uint64)
    np.add.at(column_keys, columns, owner_keys[owners])
    _, kept_columns, column_counts = np.unique(column_keys, return_index=True, return_counts=True)
    incidence = csc_array((np.ones(len(owners), np.int64), (owners, columns)))[:, kept_columns].tocsr()
    weighted, by_column = incidence.multiply(column_counts).tocsr(), incidence.T.tocsr()
    block_size = max(_MAX_PAIRS_IN_MEMORY // len(shingle_counts), 1)
    for start in range(0, len(shingle_counts), block_size):
        shared = (weighted[start : start + block_size] @ by_column).tocoo()
        left, right = shared.row + start, shared.col
        is_similar = shared.data > overlap_threshold * np.minimum(shingle_counts[left], shingle_counts[right])
        yield left[is_similar], right[is_similar]
