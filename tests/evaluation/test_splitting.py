"""Splits: nothing leaks, nothing moves without need, and ten thousand documents take seconds."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import time
from dataclasses import replace

import builders
import numpy as np
import pytest
from evaluation.truths import bundle_of
from hypothesis import given
from hypothesis import strategies as st

from evalkit.documents.identity.page_identity import find_patient_identifiers
from evalkit.errors import UsageError
from evalkit.evaluation.splitting import (
    OVERLAP_THRESHOLD,
    SHINGLE_WORDS,
    GroupingFeatures,
    count_types_by_part,
    group_related_documents,
    hash_shingles,
    split_documents,
)

SHARES = {"train": 0.8, "test": 0.2}
WORDS = [f"w{i}" for i in range(3000)]


def words(count: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def document(name: str, text: str = "", *patients: tuple[str, str]) -> GroupingFeatures:
    return GroupingFeatures.from_bundle(bundle_of(name, [text], patients))


def together(*documents: GroupingFeatures) -> list[set[str]]:
    return sorted(({one.doc_id for one in group} for group in group_related_documents(documents)), key=min)


@pytest.mark.parametrize(
    "shared", [("patient", "MARSH HELEN"), ("mrn", "LR204417"), ("date_of_birth", "1971-03-22")], ids=lambda one: one[0]
)
def test_who_shares_a_patient_is_together(shared: tuple[str, str]) -> None:
    found = together(
        document("a", words(50, 1), shared), document("b", words(50, 2)), document("c", words(50, 3), shared)
    )
    assert found == [{"a", "c"}, {"b"}]


def test_one_date_of_report_makes_no_patient() -> None:
    date = ("report_date", "2025-01-28")
    assert together(document("a", words(50, 1), date), document("b", words(50, 2), date)) == [{"a"}, {"b"}]


def test_groups_go_on_by_way_of_others() -> None:
    one, other = ("mrn", "A1"), ("patient", "MARSH HELEN")
    assert together(document("a", "", one), document("b", "", one, other), document("c", "", other)) == [
        {"a", "b", "c"}
    ]


@pytest.mark.parametrize(("share", "expected"), [(0.2, 2), (0.45, 1), (1.0, 1)])
def test_who_says_nearly_the_same_is_together(share: float, expected: int) -> None:
    # 100 shingles of the shorter text, of which this share stands in the longer one.
    short = words(100 + SHINGLE_WORDS - 1, 1).split()
    common = short[: round(share * 100) + SHINGLE_WORDS - 1]
    found = group_related_documents([document("a", " ".join(short)), document("b", " ".join([*common, words(500, 2)]))])
    assert len(found) == expected


def test_similarity_is_found_despite_intermediate_documents() -> None:
    blocks = [words(40, 100 + k) for k in range(4)]
    rest = [words(150, 200 + i) for i in range(6)]
    between = [document(f"x{k}", f"{blocks[k]} {rest[k]}") for k in range(4)]
    first, last = (document(name, " ".join([*blocks, rest[i]])) for name, i in (("b", 4), ("c", 5)))
    assert together(first, *between, last) == [{"b", "c"}, {"x0"}, {"x1"}, {"x2"}, {"x3"}]


def test_case_and_spacing_make_no_difference() -> None:
    text = words(60, 1)
    assert np.array_equal(hash_shingles(text), hash_shingles(text.upper().replace(" ", " \n\t")))
    assert len(together(document("a", text), document("b", text.upper()))) == 1


def test_empty_documents_and_none_at_all() -> None:
    assert group_related_documents([]) == []
    assert together(document("a"), document("b")) == [{"a"}, {"b"}]
    assert split_documents([], SHARES, seed=0) == {"train": [], "test": []}


def overlap(one: GroupingFeatures, other: GroupingFeatures) -> float:
    smaller = min(len(one.shingle_hashes), len(other.shingle_hashes))
    return len(set(one.shingle_hashes.tolist()) & set(other.shingle_hashes.tolist())) / smaller if smaller else 0.0


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 9), max_size=6), st.sets(st.integers(0, 3), max_size=2)),
        min_size=1,
        max_size=9,
    ),
    st.integers(0, 5),
)
def test_nothing_leaks(made: list[tuple[list[int], set[int]]], seed: int) -> None:
    """Against every pair counted one by one: blocks are sentences that documents share or not."""
    documents = [
        document(f"d{i}", " ".join(words(20, block) for block in blocks), *(("mrn", str(one)) for one in patients))
        for i, (blocks, patients) in enumerate(made)
    ]
    where = {
        doc_id: name
        for name, ids in split_documents(documents, {"a": 0.5, "b": 0.5}, seed=seed).items()
        for doc_id in ids
    }
    assert sorted(where) == sorted(one.doc_id for one in documents)
    joined = [{one.doc_id for one in group} for group in group_related_documents(documents)]
    for one in documents:
        for other in documents:
            if one.patient_identifiers & other.patient_identifiers or overlap(one, other) > OVERLAP_THRESHOLD:
                assert where[one.doc_id] == where[other.doc_id]
                assert any({one.doc_id, other.doc_id} <= group for group in joined)


PRINTED = ("Patient: Helen A. Marsh", "Patient: MARSH, HELEN", "Patient: Ms. Helen Anne Marsh", "Patient: Marsh Helen")
BIRTHS = ("03/22/{year}", "22 March {year}", "{year}-03-22")


@given(
    st.lists(st.tuples(st.sampled_from(PRINTED), st.sampled_from(BIRTHS), st.integers(0, 3)), min_size=2, max_size=8),
    st.integers(0, 5),
)
def test_one_persons_files_are_never_divided(made: list[tuple[str, str, int]], seed: int) -> None:
    """However name and birth date are printed: by the keys alone."""
    documents = []
    for i, (name, birth, person) in enumerate(made):
        text = f"{name} DOB: {birth.format(year=1950 + person)}"
        bundle = builders.document(
            builders.page(1, text).model_copy(update={"identifiers": find_patient_identifiers(text, ())})
        )
        features = GroupingFeatures.from_bundle(bundle.model_copy(update={"doc_id": str(i)}))
        keys = frozenset(pair for pair in features.patient_identifiers if pair[0] == "key")
        documents.append(
            replace(features, sha256=f"{i:064x}", patient_identifiers=keys, shingle_hashes=hash_shingles(""))
        )
    parts = split_documents(documents, {"a": 0.5, "b": 0.5}, seed=seed)
    part_by_doc_id = {doc_id: part for part, doc_ids in parts.items() for doc_id in doc_ids}
    persons = [{str(i) for i, row in enumerate(made) if row[2] == person} for person in {row[2] for row in made}]
    assert all(len({part_by_doc_id[doc_id] for doc_id in person}) == 1 for person in persons)
    assert together(*documents) == sorted(persons, key=min)


@given(st.randoms(use_true_random=False))
def test_order_and_strangers_move_nobody(rng: random.Random) -> None:
    documents = [document(f"d{i}", words(30, i // 2)) for i in range(20)]
    before = split_documents(documents, SHARES, seed=7)
    shuffled = rng.sample(documents, len(documents))
    more = [document(f"x{rng.random()}", words(30, 1000 + i)) for i in range(5)]
    after = split_documents([*shuffled, *more], SHARES, seed=7)
    for name, doc_ids in before.items():
        assert set(doc_ids) <= set(after[name])


def test_the_side_is_the_same_in_every_process() -> None:
    code = (
        "from evalkit.evaluation.splitting import GroupingFeatures, hash_shingles, split_documents\n"
        "documents = [GroupingFeatures(str(i), f'{i:064x}', frozenset(), hash_shingles(f'text {i} of nobody')) for i in range(40)]\n"
        "test_side = split_documents(documents, {'train': 0.8, 'test': 0.2}, seed=3)['test']\n"
    )
    here: dict[str, list[str]] = {}
    exec(code, here)
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", f"{code}print(test_side)"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    assert shown == f"{here['test_side']}\n" != "[]\n"


def test_shares_are_reached_on_average_and_seeds_differ() -> None:
    documents = [
        GroupingFeatures(str(i), hashlib.sha256(str(i).encode()).hexdigest(), frozenset(), hash_shingles(""))
        for i in range(2000)
    ]
    first, second = (split_documents(documents, SHARES, seed=seed) for seed in (0, 1))
    assert 340 < len(first["test"]) < 460
    assert first != second


@pytest.mark.parametrize(
    "shares",
    [
        {},
        {"train": 0.8},
        {"train": 0.8, "test": 0.3},
        {"train": 1.2, "test": -0.2},
        {"../x": 1.0},
        {"a b": 1.0},
        {"a": float("nan")},
    ],
)
def test_wrong_shares_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        split_documents([], shares, seed=0)


def test_types_are_counted_by_part() -> None:
    table = count_types_by_part({"train": ["a", "b"], "test": ["c"]}, {"a": "Other", "b": "Other", "c": None})
    assert table.to_dict() == {"train": {"Other": 2, "none": 0}, "test": {"Other": 0, "none": 1}}


def test_thousands_of_similar_letterheads_take_seconds() -> None:
    head = words(60, 1)
    documents = [
        GroupingFeatures(
            str(i),
            hashlib.sha256(str(i).encode()).hexdigest(),
            frozenset(),
            hash_shingles(f"{head} {words(300, 10 + i // 2)}"),
        )
        for i in range(4000)
    ]
    started = time.monotonic()
    assert len(group_related_documents(documents)) == 2000
    assert time.monotonic() - started < 20
