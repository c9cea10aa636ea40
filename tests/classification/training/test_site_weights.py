"""Weights of a site: what moves them, what never enters them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from builders import document as build_bundle
from evaluation.letter_hospital import write_letters

from evalkit.classification.offline.letterheads import iter_letterhead_keys
from evalkit.classification.offline.model_weights import load_shipped_weights, parse_weights_json, use_site_weights
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.classification.schema import DocumentType
from evalkit.classification.training.guard import GuardErrors, count_guard_errors
from evalkit.classification.training.labelled_texts import build_pages_from_text
from evalkit.classification.training.site_weights import SiteDocument, SiteTrainingSet
from evalkit.documents.bundle import Identifier

SALT = "salt"


def name_patient(letter):
    """The letter's page, with the patient's name as the reader finds it."""
    name = letter.text.split("Patient: ")[1].split("   ")[0]
    identifier = Identifier(kind="patient", value=name, normal=name.upper(), box=(0.0, 0.0, 1.0, 1.0))
    return tuple(page.model_copy(update={"identifiers": (identifier,)}) for page in build_pages_from_text(letter.text))


def build_documents(count=32, *, patients=None, reviewers=("dr_a", "dr_b"), is_blind=False):
    """Letters by a number of patients; None: each has a patient of its own."""
    return [
        SiteDocument(
            letter.name,
            name_patient(letter),
            DocumentType(letter.kind),
            f"patient {number % (patients or count)}",
            f"2026-W{number // 8:02}",
            frozenset({reviewers[number % len(reviewers)]}),
            is_blind=is_blind,
        )
        for number, letter in enumerate(write_letters(count))
    ]


def learn(documents):
    training_set = SiteTrainingSet(documents, load_shipped_weights(), SALT)
    return parse_weights_json(training_set.build_weights(np.ones(len(documents), dtype=bool)))


@pytest.fixture(scope="module")
def learned():
    return learn(build_documents())


def test_learned_weights_read_the_sites_later_letters(learned):
    later = [letter for letter in write_letters(48) if letter.kind == "Pathology Report"][16:]
    bundles = [build_bundle(letter.text) for letter in later]

    def count_right(weights):
        with use_site_weights(weights):
            return sum(
                classify_by_embedded_model(bundle).dominant_type_overall == "Pathology Report" for bundle in bundles
            )

    assert (count_right(None), count_right(learned)) == (0, len(bundles))


def test_words_of_fewer_than_four_patients_keep_their_weight():
    shipped, few, many = load_shipped_weights(), learn(build_documents(patients=3)), learn(build_documents(patients=4))
    assert few.weights_by_term == shipped.weights_by_term
    assert few.weights_by_letterhead == {}
    assert many.weights_by_term != shipped.weights_by_term
    assert many.weights_by_letterhead


def test_every_moved_word_is_in_four_patients_letters(learned):
    shipped = load_shipped_weights().weights_by_term
    moved = {term for term, row in learned.weights_by_term.items() if shipped.get(term) != row}
    assert moved
    texts = [" ".join(letter.text.casefold().replace("\n", " ").split()) for letter in write_letters(32)]
    for term in moved:
        first, *_ = term.split()
        assert sum(first in text for text in texts) >= 4, term


def test_names_are_never_learned(learned):
    names = {
        word.strip(",").casefold()
        for letter in write_letters(32)
        for word in letter.text.split("Patient: ")[1].split()[:2]
    }
    assert names.isdisjoint(word for term in learned.weights_by_term for word in term.split())


def test_letterheads_are_keyed_hashes(learned):
    page = build_pages_from_text(next(write_letters(1)).text)[0]
    keys = set(iter_letterhead_keys(page, SALT))
    assert keys & learned.weights_by_letterhead.keys()
    assert keys.isdisjoint(iter_letterhead_keys(page, "other salt"))
    assert all(len(key) == 16 and int(key, 16) >= 0 for key in learned.weights_by_letterhead)


def test_letterheads_need_two_reviewers_or_blind_answers():
    alone = learn(build_documents(reviewers=("dr_a",)))
    assert alone.weights_by_letterhead == {}
    assert learn(build_documents(reviewers=("dr_a",), is_blind=True)).weights_by_letterhead


@pytest.mark.parametrize(
    ("first", "second", "are_equal"),
    [
        ("Seen 3 January 2026 at ward 7", "Seen 14 Feb 2027 at ward 9", True),
        ("NORTH CLINIC", "north  clinic", True),
        ("North Clinic", "South Clinic", False),
    ],
)
def test_a_dated_line_has_one_key(first, second, are_equal):
    keys = [tuple(iter_letterhead_keys(build_pages_from_text(text)[0], SALT)) for text in (first, second)]
    assert (keys[0] == keys[1]) is are_equal


def test_answers_against_the_other_weeks_have_little_support():
    documents = build_documents()
    swapped = {number for number in range(8, 16) if number % 2}
    changed = [
        SiteDocument(**{**vars(document), "document_type": DocumentType.OTHER}) if number in swapped else document
        for number, document in enumerate(documents)
    ]
    training_set = SiteTrainingSet(changed, load_shipped_weights(), SALT)
    support = training_set.compute_support(np.ones(len(changed), dtype=bool))
    assert max(support[sorted(swapped)]) < 0.3 < min(np.delete(support, sorted(swapped)))


def test_the_guard_notices_forgotten_words(learned):
    shipped = load_shipped_weights()
    assert count_guard_errors(shipped) == GuardErrors(200, 0)
    assert count_guard_errors(learned).errors <= 4
    rows = list(shipped.weights_by_term.values())
    random.Random(1).shuffle(rows)
    forgotten = shipped.model_copy(update={"weights_by_term": dict(zip(shipped.weights_by_term, rows, strict=True))})
    assert count_guard_errors(forgotten).errors > 20


def test_the_guard_was_written_for_the_shipped_weights():
    import json
    from importlib.resources import files

    stored = json.loads((files("evalkit.classification.training") / "guard.json").read_text("utf-8"))
    assert stored["weights"] == load_shipped_weights().version
