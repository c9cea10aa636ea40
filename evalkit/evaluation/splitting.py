"""Training and test documents without leakage.

Documents that share a patient, or whose text is nearly the same, are one group, and a group is never divided: what was
learned from a page would else be "recognised" in its twin. A group's side follows from the smallest SHA-256 in it and
the seed alone, so that it stays where it is when other documents come or go. Shares are therefore reached on average,
not exactly.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evalkit.documents.bundle import DocumentBundle
from evalkit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

#: Words of a shingle.
SHINGLE = 8
#: Two documents are nearly the same where more than this share of the shorter one's shingles stands in the other.
OVERLAP = 0.30

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORD = re.compile(r"\w+")
#: What tells whose a page is; a report's date does not.
_WHOSE = ("patient", "date_of_birth", "mrn")
_Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Traits:
    """What of a document decides with which others it belongs together."""

    doc_id: str
    sha256: str
    patients: frozenset[tuple[str, str]]
    """Kind and normal form of each patient's name, birth date and record number on its pages."""
    shingles: _Hashes = field(repr=False)
    """A hash of every run of ``SHINGLE`` words, each once, sorted. Of a shorter text one of all its words."""

    @classmethod
    def of(cls, bundle: DocumentBundle) -> Traits:
        """The traits of a document, as its bundle shows them."""
        found = (one for page in bundle.pages for one in page.identifiers)
        return cls(
            doc_id=bundle.doc_id,
            sha256=bundle.sha256,
            patients=frozenset((one.kind, one.normal) for one in found if one.kind in _WHOSE),
            shingles=shingles("\n".join(page.text for page in bundle.pages)),
        )


def shingles(text: str) -> _Hashes:
    """The hashes of a text's shingles: equal in every process and on every machine, whatever the case and spacing."""
    words = np.array([_hash(word) for word in _WORD.findall(text.casefold())], np.uint64)
    size = min(SHINGLE, len(words))
    if not size:
        return words
    # A polynomial of the words' hashes modulo 2^64, for all places of the text at once.
    hashes = np.zeros(len(words) - size + 1, np.uint64)
    for k in range(size):
        hashes = hashes * np.uint64(0x9E3779B97F4A7C15) + words[k : len(words) - size + 1 + k]
    return np.unique(hashes)


@lru_cache(maxsize=1 << 18)
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def split(records: Iterable[Traits], shares: Mapping[str, float], *, seed: int) -> dict[str, list[str]]:
    """The doc_ids of each part, by the parts' names in the order of ``shares``; doc_ids as ``records`` come.

    ``shares`` are 0..1 and together 1, such as ``{"train": 0.8, "test": 0.2}``. UsageError where they are not.
    """
    check_shares(shares)
    documents = list(records)
    side = {
        one.doc_id: _side(min(other.sha256 for other in group), shares, seed)
        for group in groups(documents)
        for one in group
    }
    return {name: [one.doc_id for one in documents if side[one.doc_id] == name] for name in shares}


def by_type(parts: Mapping[str, Iterable[str]], types: Mapping[str, str | None]) -> pd.DataFrame:
    """How many documents of each type a split has: one row per type, one column per part. ``types`` is by doc_id."""
    import pandas as pd

    told = [(types[doc_id] or "none", name) for name, doc_ids in parts.items() for doc_id in doc_ids]
    kinds = sorted({kind for kind, _ in told})
    counts = [[told.count((kind, name)) for name in parts] for kind in kinds]
    return pd.DataFrame(counts, index=pd.Index(kinds, name="type", dtype="str"), columns=list(parts))


def groups(documents: Sequence[Traits]) -> list[list[Traits]]:
    """The documents that belong together, directly or by way of others."""
    joined = _Joined(len(documents))
    owner: dict[tuple[str, str], int] = {}
    for i, document in enumerate(documents):
        for patient in document.patients:
            joined.join(i, owner.setdefault(patient, i))
    for i, j in _alike([document.shingles for document in documents], joined):
        joined.join(i, j)
    found: dict[int, list[Traits]] = {}
    for i, document in enumerate(documents):
        found.setdefault(joined.root(i), []).append(document)
    return list(found.values())


def check_shares(shares: Mapping[str, float]) -> None:
    """UsageError where parts have no usable names, or shares are not 0..1 and together 1."""
    bad = [name for name in shares if not _NAME.fullmatch(name)]
    if bad or not shares:
        raise UsageError(
            f"a part of a split cannot be called {bad[0]!r}" if bad else "a split has no parts",
            code="SPLIT",
            remedy="Name the parts in letters, digits and '_', such as train and test.",
        )
    if any(not share >= 0 for share in shares.values()) or not math.isclose(sum(shares.values()), 1, abs_tol=1e-9):
        raise UsageError(
            f"the shares {', '.join(f'{share:g}' for share in shares.values())} are not 0 to 1 and together 1",
            code="SPLIT",
            remedy="Give shares such as 0.8 and 0.2.",
        )


def _side(sha256: str, shares: Mapping[str, float], seed: int) -> str:
    drawn = int.from_bytes(hashlib.sha256(f"{seed}:{sha256}".encode()).digest()[:8], "big") / 2**64
    for name, share in shares.items():
        if drawn < share:
            return name
        drawn -= share
    return max(shares, key=lambda name: shares[name])  # only what rounding has left over comes here


class _Joined:
    """Which things belong together: each has a root, and things of one group have the same."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def root(self, i: int) -> int:
        while self._parent[i] != i:
            self._parent[i] = i = self._parent[self._parent[i]]
        return i

    def join(self, i: int, j: int) -> None:
        self._parent[self.root(j)] = self.root(i)

    def roots(self) -> npt.NDArray[np.int64]:
        return np.array([self.root(i) for i in range(len(self._parent))], np.int64)


@dataclass(frozen=True)
class _Shared:
    """Shingles that stand in exactly the same documents, such as the lines of one letterhead."""

    members: npt.NDArray[np.int64]
    """The documents, ascending; two or more."""
    weight: int
    """How many shingles."""


def _alike(hashes: Sequence[_Hashes], joined: _Joined) -> Iterator[tuple[int, int]]:
    """Pairs whose texts are nearly the same; of documents that are together already, not all.

    ``joined`` is looked at again after each pair: what is together needs no more counting.
    """
    sizes = np.array([len(one) for one in hashes], np.int64)
    every = _shared(hashes)
    yield from _neighbours(every, sizes)
    by_document: dict[int, list[_Shared]] = {}
    for one in every:
        for i in one.members.tolist():
            by_document.setdefault(i, []).append(one)
    roots = joined.roots()
    for i, sets in by_document.items():
        # Whoever shares more than OVERLAP of this text shares something outside any OVERLAP of it: what most documents
        # have is left out first. Where the rest is shared with none that is apart, there is nothing to count.
        rare = _without_common(sets, OVERLAP * sizes[i])
        if not any((roots[one.members] != roots[i]).any() for one in rare):
            continue
        members = np.concatenate([one.members for one in sets])
        weights = np.repeat([one.weight for one in sets], [len(one.members) for one in sets])
        counts = np.bincount(members, weights, minlength=len(hashes))
        alike = (counts > OVERLAP * sizes[i]) & (sizes >= sizes[i]) & (roots != roots[i])
        yield from ((i, j) for j in np.flatnonzero(alike).tolist())
        if alike.any():
            roots = joined.roots()


def _neighbours(every: Sequence[_Shared], sizes: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Pairs that are alike already by what they share as neighbours in lists of documents: all copies of one form."""
    if not every:
        return
    pairs = np.concatenate([one.members[:-1] * len(sizes) + one.members[1:] for one in every])
    weights = np.repeat([one.weight for one in every], [len(one.members) - 1 for one in every])
    pairs, place = np.unique(pairs, return_inverse=True)
    first, second = pairs // len(sizes), pairs % len(sizes)
    alike = np.bincount(place, weights) > OVERLAP * np.minimum(sizes[first], sizes[second])
    yield from zip(first[alike].tolist(), second[alike].tolist(), strict=True)


def _without_common(sets: Sequence[_Shared], most: float) -> list[_Shared]:
    """The sets without the most common ones, as long as those are together at most ``most`` shingles."""
    by_commonness = sorted(sets, key=lambda one: -len(one.members))
    left_out = np.cumsum([one.weight for one in by_commonness]) <= most
    return [one for one, out in zip(by_commonness, left_out.tolist(), strict=True) if not out]


def _shared(hashes: Sequence[_Hashes]) -> list[_Shared]:
    """Which documents share shingles, and how many: counted with a weight, a letterhead costs one look."""
    if not hashes:
        return []
    every = np.concatenate(hashes)
    order = np.argsort(every, kind="stable")  # stable: the documents of one shingle stay ascending
    who = np.repeat(np.arange(len(hashes), dtype=np.int64), [len(one) for one in hashes])[order]
    every = every[order]
    begins = np.flatnonzero(np.r_[True, every[1:] != every[:-1]])[: len(every)]
    ends = np.r_[begins[1:], len(every)]
    several = ends - begins > 1
    weights: dict[bytes, int] = {}
    for begin, end in zip(begins[several].tolist(), ends[several].tolist(), strict=True):
        key = who[begin:end].tobytes()
        weights[key] = weights.get(key, 0) + 1
    return [_Shared(np.frombuffer(key, np.int64), weight) for key, weight in weights.items()]
