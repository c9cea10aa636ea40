"""What the embedded model has learned: the file is checked, a judgement can be explained, and it is learned from texts."""

from __future__ import annotations

import copy
import json
import math
import random
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.classification.explanation import explain_as_text_lines, explain_segment_types
from evalkit.classification.offline.model_weights import (
    LEXICON_FEATURE_NAMES,
    load_embedded_weights,
    load_shipped_weights,
    parse_weights_json,
)
from evalkit.classification.offline.type_scoring import (
    combine_page_scores,
    compute_damping_factor,
    extract_terms,
    read_page_for_scoring,
    softmax,
)
from evalkit.classification.primary_classifier import classify_by_embedded_model
from evalkit.classification.schema import DocumentType
from evalkit.classification.training.__main__ import main
from evalkit.classification.training.fitting import (
    CANDIDATE_THRESHOLDS,
    ActJudgements,
    FittedWeights,
    TrainingSet,
    assign_folds_to_groups,
    build_training_set,
    calibrate_probabilities,
    compute_probabilities,
    find_proper_names,
    fit_weights,
    list_source_parts_by_variant,
    mark_independent_rows,
    predict_out_of_fold_sums,
    train_model_with_held_out_sums,
)
from evalkit.classification.training.labelled_texts import (
    LabelledText,
    build_pages_from_text,
    create_text_variants,
    read_labelled_texts,
    simulate_ocr_errors,
)
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.identity.identifier_values import load_given_names
from evalkit.errors import UsageError

NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = DocumentType
INVENTED = Path(__file__).parents[1] / "invented.toml"


def bundle_of(text: str) -> DocumentBundle:
    pages = build_pages_from_text(text)
    return DocumentBundle(
        doc_id="d",
        file_path="d.pdf",
        sha256="0" * 64,
        reader="by hand",
        total_pages=len(pages),
        processing_timestamp="2025-01-01T00:00:00Z",
        pages=pages,
    )


@pytest.fixture
def data() -> dict[str, Any]:
    """The shipped file, free to be spoilt."""
    return copy.deepcopy(json.loads((files("evalkit.classification.offline") / "weights.json").read_text("utf-8")))


# ------------------------------------------------------------------------------------------------------- the file


def test_the_shipped_file_is_small_and_has_no_names() -> None:
    file = files("evalkit.classification.offline") / "weights.json"
    assert len(file.read_bytes()) < 4_000_000
    assert load_embedded_weights() is load_embedded_weights()
    assert all(count >= 3 for count in load_embedded_weights().training_group_counts.values())
    words = {word for term in load_embedded_weights().weights_by_term for word in term.split()}
    assert not words & load_given_names()
    assert not words & {"january", "smith", "monday", "john", "usa", "abc", "abcd", "xyz"}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["schema_version"], 2, "schema_version: Input should be 1"),
        (["version"], 3, "version: Input should be a valid string"),
        (["types"], ["Other"], "types: must list the five"),
        (["terms"], [], "terms: Input should be a valid dictionary"),
        (["terms", "MRN 4711"], [0] * 5, "terms.MRN 4711.[key]: String should match pattern"),
        (["terms", "liver"], [0] * 4, "terms.liver: Tuple should have at least 5 items"),
        (["terms", "liver"], [0, 0, 0, 0, "x"], "terms.liver.4: Input should be a valid number"),
        (["terms", "liver"], [0, 0, 0, 0, True], "terms.liver.4: Input should be a valid number"),
        (["bias"], None, "bias: Input should be a valid tuple"),
        (["lexicon"], [1.0], f"lexicon: Tuple should have at least {len(LEXICON_FEATURE_NAMES)} items"),
        (["temperature"], 0, "temperature: Input should be greater than or equal to 0.01"),
        (["least"], 1.5, "least: Input should be less than or equal to 1"),
        (["joins", "title"], math.inf, "joins.title: Input should be a finite number"),
        (["joins", "types"], 2, "joins.types: Input should be less than or equal to 1"),
        (["more"], 1, "more: Extra inputs are not permitted"),
    ],
)
def test_what_is_wrong_with_the_file_is_named(data: dict[str, Any], path: list[str], value: Any, said: str) -> None:
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(UsageError) as error:
        parse_weights_json(data)
    assert said in error.value.message


def test_what_is_missing_is_named(data: dict[str, Any]) -> None:
    del data["joins"], data["bias"]
    with pytest.raises(UsageError, match="bias: Field required"):
        parse_weights_json(data)
    with pytest.raises(UsageError, match="Input should be a valid dictionary"):
        parse_weights_json([])  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- judging

NOTE_TEXT = "She presents today with a cough. She denies fever. Plan: fluids, return to clinic in one week."


def test_terms_are_words_and_pairs_without_the_furniture() -> None:
    text = "Gross: 3 RED cm\nis firm"
    assert [term.text for term in extract_terms(text)] == [
        "gross",
        "gross red",
        "red",
        "red cm",
        "cm is",
        "is firm",
        "firm",
    ]
    assert all(text[term.start : term.end].lower().startswith(term.text.split()[0]) for term in extract_terms(text))
    assert all(text[term.start : term.end].lower().endswith(term.text.split()[-1]) for term in extract_terms(text))
    assert [term.text for term in extract_terms(text, [(0, 7)])] == ["red", "red cm", "cm is", "is firm", "firm"]


def test_probabilities_are_the_sum_of_the_parts() -> None:
    judgement = combine_page_scores([read_page_for_scoring(page) for page in build_pages_from_text(NOTE_TEXT)])
    sums = [
        (bias + sum(part.weights[at] for part in judgement.iter_contributions))
        * compute_damping_factor(sum(judgement.lexicon_scores.values()))
        / judgement.model_weights.temperature
        for at, bias in enumerate(judgement.model_weights.bias)
    ]
    assert list(judgement.probabilities.values()) == pytest.approx(softmax(sums))
    assert math.fsum(judgement.probabilities.values()) == pytest.approx(1)
    assert judgement.types_by_probability[0] is NOTE


def test_a_higher_temperature_is_less_sure(data: dict[str, Any]) -> None:
    cool, warm = parse_weights_json(data), parse_weights_json(data | {"temperature": 4 * data["temperature"]})
    sure, unsure = (
        combine_page_scores(
            [read_page_for_scoring(page, model_weights=known) for page in build_pages_from_text(NOTE_TEXT)]
        )
        for known in (cool, warm)
    )
    assert max(unsure.probabilities.values()) < max(sure.probabilities.values())


def test_below_the_least_probability_nobody_can_tell(data: dict[str, Any]) -> None:
    bundle = bundle_of(NOTE_TEXT)
    assert (
        classify_by_embedded_model(
            bundle, model_weights=parse_weights_json(data | {"least": 0.5})
        ).dominant_type_overall
        is NOTE
    )
    told = classify_by_embedded_model(bundle, model_weights=parse_weights_json(data | {"least": 1.0}))
    assert told.dominant_type_overall is None
    assert told.segments[0].dominant_type is None


def test_learned_terms_are_quoted_where_the_lexicon_has_nothing(data: dict[str, Any]) -> None:
    data["terms"] = {"zebra": [600.0, 0.0, 0.0, 0.0, 0.0], "stripes": [0.0, 600.0, 0.0, 0.0, 0.0]}
    known = parse_weights_json(data)
    (segment,) = classify_by_embedded_model(
        bundle_of("a zebra stood here\nzebra and zebra again\nthe biopsy shows carcinoma"), model_weights=known
    ).segments
    assert segment.dominant_type is NOTE
    row = next(one for one in segment.segment_composition if one.document_type is NOTE)
    assert "zebra" in row.top_evidence[0].snippet
    assert "'zebra' (learned)" in segment.reasoning


# ------------------------------------------------------------------------------------------------------- reasons


def test_the_reasons_add_up_and_say_where() -> None:
    bundle = bundle_of(f"OFFICE VISIT\n{NOTE_TEXT}")
    told = explain_segment_types(bundle, classify_by_embedded_model(bundle).segments)
    (segment,) = told.segments
    assert segment.types[0].document_type is NOTE
    judgement = combine_page_scores([read_page_for_scoring(page) for page in bundle.pages])
    first = segment.types[0]
    assert {reason.what for reason in first.reasons} <= {
        *(part.name for part in judgement.iter_contributions),
        *(f"lexicon, {kind}" for kind in LEXICON_FEATURE_NAMES),
    }
    pages = {reason.what: reason.pages for reason in first.reasons}
    assert pages["fever"] == (1,)
    at = list(DocumentType).index(NOTE)
    spoke = (
        sum(part.weights[at] - sum(part.weights) / 5 for part in judgement.iter_contributions)
        * compute_damping_factor(sum(judgement.lexicon_scores.values()))
        / judgement.model_weights.temperature
    )
    assert sum(reason.weight for reason in first.reasons) == pytest.approx(spoke, abs=0.01)
    assert json.dumps(told.to_json())


def test_the_reasons_as_lines() -> None:
    bundle = bundle_of(f"OFFICE VISIT\n{NOTE_TEXT}")
    shown = "\n".join(explain_as_text_lines(bundle, classify_by_embedded_model(bundle).segments))
    assert "page 1: Clinical Note 9" in shown
    assert "Clinical Note, lexicon: 'office visit' (title) +6.00 (page 1)" in shown
    assert "Clinical Note, for: lexicon, " in shown
    assert "against: " in shown


# ------------------------------------------------------------------------------------------------------- learning


def made_up(count: int = 8) -> list[LabelledText]:
    """Five types, each with words of its own, one name and one number in each."""
    words = dict(zip(DocumentType, ("walks", "tissue", "codon", "shadow", "tariff"), strict=True))
    return [
        LabelledText(
            f"{kind.name}{n}",
            kind,
            f"The {word} of {n}{n}{n} was seen by Zorblatt. The {word} is a tumor.",
            f"{kind}{n}",
        )
        for kind, word in words.items()
        for n in range(count)
    ]


def test_learning_finds_the_words_of_each_type_and_no_names() -> None:
    some = made_up()
    data, sums, found = train_model_with_held_out_sums(some, {"types": 0.5})
    known = parse_weights_json(json.loads(json.dumps(data)))
    for at, word in enumerate(("walks", "tissue", "codon", "shadow", "tariff")):
        assert max(range(5), key=known.weights_by_term[word].__getitem__) == at
    assert not any("zorblatt" in term for term in known.weights_by_term)
    assert not any(character.isdigit() for term in known.weights_by_term for character in term)
    whole = [row for row, one in enumerate(found.variants) if one.name == "whole"]
    assert (sums[whole].argmax(axis=1) == found.true_types[whole]).all()
    assert train_model_with_held_out_sums(some, {"types": 0.5})[0] == data


def test_terms_of_few_groups_or_one_source_are_not_learned() -> None:
    some = made_up()
    rare = [LabelledText(f"r{n}", OTHER, "xylophone tariff", f"rare{n}") for n in range(3)]
    shared = [LabelledText(f"s{n}", NOTE, "walks kettle", f"s{n}") for n in range(4)]
    one_group = [LabelledText(f"o{n}", GENOMIC, "codon kettle", "the same patient") for n in range(9)]
    data, _, _ = train_model_with_held_out_sums([*some, *rare, *shared, *one_group], {"types": 0.5})
    assert "xylophone" not in data["terms"]
    assert data["terms"]["kettle"][list(DocumentType).index(GENOMIC)] <= 0 < data["terms"]["kettle"][0]


def test_common_given_names_are_not_learned() -> None:
    headed = [LabelledText(f"h{n}", NOTE, f"name: alice {n}. walks", f"h{n}") for n in range(8)]
    data, _, _ = train_model_with_held_out_sums([*made_up(), *headed], {"types": 0.5})
    assert "walks" in data["terms"]
    assert not any("alice" in term for term in data["terms"])


def test_what_stands_for_anything_is_not_learned() -> None:
    headed = [LabelledText(f"h{n}", NOTE, "abc clinic, abcd street, usa. walks defend", f"h{n}") for n in range(8)]
    data, _, _ = train_model_with_held_out_sums([*made_up(), *headed], {"types": 0.5})
    words = {word for term in data["terms"] for word in term.split()}
    assert {"walks", "defend"} <= words
    assert not words & {"abc", "abcd", "usa"}


def test_names_are_words_with_a_capital_letter_inside_sentences() -> None:
    assert find_proper_names(["seen by Doe and by Doe.", "The liver of Doe. Liver and a liver"]) == {"doe"}


def test_groups_stay_together_and_types_are_spread() -> None:
    folds = assign_folds_to_groups([*made_up(), LabelledText("again", OTHER, "tariff", f"{OTHER}0")])
    assert set(folds.values()) == set(range(5))
    assert folds == assign_folds_to_groups(reversed(made_up()))


def test_what_is_quoted_in_a_note_is_of_its_own_fold() -> None:
    texts = [
        LabelledText("n", NOTE, "walk " * 200, "n"),
        *(LabelledText(f"r{n}", RADIOLOGY, f"shadow{'abcdefgh'[n]} " * 200, f"r{n}") for n in range(8)),
    ]
    folds = {"n": 1} | {f"r{n}": n % 2 for n in range(8)}
    quoting = [one for one in create_text_variants(texts, folds) if one.name.startswith("quotes")]
    assert len(quoting) == 1
    assert any(f"shadow{letter}" in quoting[0].text for letter in "bdfh")
    assert not any(f"shadow{letter}" in quoting[0].text for letter in "aceg")
    assert quoting[0].quoted_report in texts[1:]
    assert quoting[0].quoted_report.text[:20] in quoting[0].text


def test_held_out_source_excludes_notes_that_quote_it() -> None:
    """Held out by source: neither the notes that quote the source are learned from, nor are they judged as if unseen."""
    texts = [
        *(LabelledText(f"n{n}", NOTE, "walk eat sleep " * 60, f"n{n}", "ward") for n in range(6)),
        *(LabelledText(f"r{n}", RADIOLOGY, "shadow lung beam " * 60, f"r{n}", "clinic") for n in range(6)),
        *(LabelledText(f"o{n}", OTHER, "tariff invoice due " * 60, f"o{n}", "office") for n in range(6)),
    ]
    some = build_training_set(create_text_variants(texts, dict.fromkeys((one.group for one in texts), 0)))
    parts = list_source_parts_by_variant(some, lambda one: one.source)
    quoting = [place for place, one in enumerate(some.variants) if one.quoted_report]
    assert {parts[place] for place in quoting} == {frozenset({"ward", "clinic"})}
    free = mark_independent_rows(parts, frozenset({"clinic"}))
    assert not any(free[place] for place in quoting)
    assert [
        one.original.source for one, is_free in zip(some.variants, free, strict=True) if is_free and one.name == "whole"
    ] == ["ward"] * 6 + ["office"] * 6
    _, fits = predict_out_of_fold_sums(some, parts)
    assert "shadow lung" in fits[frozenset({"ward"})].terms
    assert "shadow lung" not in fits[frozenset({"clinic"})].terms
    assert fits[frozenset({"ward", "clinic"})].terms == [
        "due",
        "due tariff",
        "invoice",
        "invoice due",
        "tariff",
        "tariff invoice",
    ]


def build_whole_texts(count: int) -> TrainingSet:
    some = made_up(count)
    return build_training_set(
        [one for one in create_text_variants(some, assign_folds_to_groups(some)) if one.name == "whole"]
    )


def calibrate(sums, training_set, rows=None, contradictions=None):
    """Nothing is contradicted unless it is said."""
    if contradictions is None:
        contradictions = np.zeros((len(training_set.variants), 5), dtype=bool)
    acts = ActJudgements(np.full(contradictions.shape, 0.2), contradictions)
    return calibrate_probabilities(sums, training_set, acts, rows)


def test_belief_rests_on_the_rows_that_are_given() -> None:
    found = build_whole_texts(2)
    sums = np.eye(5)[found.true_types] * 8
    sums[::2] = np.roll(sums[::2], 1, axis=1)
    right = sums.argmax(axis=1) == found.true_types
    assert calibrate(sums, found, right).temperature == 1
    assert calibrate(sums, found).temperature > 2


@given(st.text(max_size=60), st.integers())
def test_misreading_keeps_what_is_no_letter(text: str, seed: int) -> None:
    assert simulate_ocr_errors(text, 0.0, random.Random(seed)) == text
    kept = [character for character in text if not character.isalnum() and character != " "]
    assert [
        one for one in simulate_ocr_errors(text, 0.5, random.Random(seed)) if not one.isalnum() and one != " "
    ] == kept


def test_an_overconfident_model_is_cooled_and_asked_for_more() -> None:
    found = build_whole_texts(2)
    right = np.eye(5)[found.true_types] * 8
    assert calibrate(right, found).temperature == 1
    half_wrong = right.copy()
    half_wrong[::2] = np.roll(right[::2], 1, axis=1)
    assert calibrate(half_wrong, found).temperature > 2


def test_threshold_is_lowest_that_admits_few_errors() -> None:
    found = build_whole_texts(4)
    sums = np.eye(5)[found.true_types] * 6
    sums[0] = np.roll(np.eye(5)[found.true_types[0]], 1) * 3.2
    believed = calibrate(sums, found)
    sure = compute_probabilities(sums, believed.temperature).max(axis=1)
    assert sure[0] < believed.min_probability < sure[1:].min()
    assert sure[0] >= believed.min_probability - 0.05


def test_errors_that_acts_contradict_ask_for_no_higher_threshold() -> None:
    found = build_whole_texts(4)
    sums = np.eye(5)[found.true_types] * 6
    sums[0] = np.roll(np.eye(5)[found.true_types[0]], 1) * 3.2
    contradictions = np.zeros((len(sums), 5), dtype=bool)
    contradictions[0, sums[0].argmax()] = True
    assert calibrate(sums, found, contradictions=contradictions).min_probability == CANDIDATE_THRESHOLDS[0]


def test_texts_with_fewer_known_words_than_learned_are_believed_less() -> None:
    found = build_whole_texts(4)
    fitted = fit_weights(found, np.arange(len(found.variants)), 2)
    assert fitted.min_known_share > 0
    strange = replace(found, term_sets=[terms | {f"strange{n}" for n in range(999)} for terms in found.term_sets])
    rows = np.arange(len(found.variants))
    assert (
        np.abs(fitted.compute_damped_type_sums(strange, rows)).max()
        < np.abs(fitted.compute_damped_type_sums(found, rows)).max() / 5
    )


def test_unknown_words_make_an_answer_less_sure() -> None:
    note = "The patient was seen today. Assessment and plan: hypertension, continue lisinopril. Physical examination."
    weights = parse_weights_json(
        json.loads((files("evalkit.classification.offline") / "weights.json").read_text()) | {"familiar": 0.5}
    )
    strange = f"{note} " + " ".join(f"qx{'abcdefghij'[n % 10] * 3}{'klmnopqrst'[n // 10] * 3}" for n in range(99))
    familiar, unfamiliar = (
        combine_page_scores([read_page_for_scoring(page, weights) for page in build_pages_from_text(text)])
        for text in (note, strange)
    )
    assert unfamiliar.damping < familiar.damping / 3
    assert max(unfamiliar.probabilities.values()) < max(familiar.probabilities.values())


def test_sums_do_not_depend_on_the_order_of_texts() -> None:
    some = made_up(3)
    folds = assign_folds_to_groups(some)
    what = FittedWeights(np.ones(4), np.zeros(5), ["codon"], np.ones((1, 5)))
    rows = np.arange(3)
    forward, backward = (build_training_set(list(create_text_variants(some, folds))[:3][::step]) for step in (1, -1))
    assert what.compute_damped_type_sums(forward, rows) == pytest.approx(
        what.compute_damped_type_sums(backward, rows)[::-1]
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.jsonl", '{"type": "Other"}', "x.jsonl, row 1 has no type or no text"),
        (
            "x.jsonl",
            '{"type": "Other", "text": "a"}\n{"type": "Letter", "text": "b"}',
            "row 2 has a type that is not one of the five",
        ),
        ("x.jsonl", "{", "x.jsonl cannot be read"),
        ("x.toml", "[[document]]\nid = 3", "x.toml, row 1"),
        ("x.jsonl", '{"type": "Other", "text": "a"}', "no text of type Clinical Note, Pathology Report"),
    ],
)
def test_a_wrong_example_is_named(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError) as error:
        read_labelled_texts([tmp_path / name])
    assert said in error.value.message


def test_the_command_learns_from_a_folder_by_types(tmp_path: Path) -> None:
    for one in made_up(5):
        (tmp_path / "records" / one.document_type.value).mkdir(parents=True, exist_ok=True)
        (tmp_path / "records" / one.document_type.value / f"{one.id}.txt").write_text(one.text)
    command = [sys.executable, "-m", "evalkit.classification.training", str(tmp_path / "records"), "--to"]
    done = subprocess.run([*command, str(tmp_path / "w.json")], capture_output=True, text=True, check=True)
    assert "Of 25 texts, judged without their groups" in done.stdout
    assert "tariff" in parse_weights_json(json.loads((tmp_path / "w.json").read_text())).weights_by_term


def test_the_invented_documents_are_of_all_types() -> None:
    found = read_labelled_texts([INVENTED])
    assert len({one.id for one in found}) == len(found) > 60


# --------------------------------------------------------------------------------------------- what it is given


def test_a_patient_with_records_of_several_types_is_one_group() -> None:
    # Of each type the last record of a patient decides nothing: every patient here ends with Other.
    some = [
        LabelledText(
            f"{patient} {kind}", kind, f"{kind.value} of {patient}: findings and plan of {kind.value}", patient
        )
        for patient in ("a", "b", "c", "d", "e", "f")
        for kind in DocumentType
    ]
    data, sums, _ = train_model_with_held_out_sums(some, {"types": 1.0})
    assert data["learned_from"] == {kind.value: 6 for kind in DocumentType}
    assert np.isfinite(sums).all()
    parse_weights_json(data)


def _rows(group: str) -> str:
    return "\n".join(json.dumps({"type": kind.value, "text": "x", "group": group}) for kind in DocumentType)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("one.jsonl", _rows("the same").encode(), "all have the same `group`"),
        ("number.toml", b"document = 3", "number.toml has no rows"),
        ("Other/a.txt", b"\xff\xfe", "Other/a.txt cannot be read as UTF-8 text"),
    ],
)
def test_what_cannot_be_learned_from_is_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        read_labelled_texts([tmp_path if "/" in name else file])


def test_the_command_says_what_is_wrong_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "weights.json"
    monkeypatch.setattr(sys, "argv", ["training", str(tmp_path / "none.jsonl"), "--to", str(made)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "none.jsonl cannot be read" in capsys.readouterr().err
    assert not made.exists()


def test_weights_that_are_no_json_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights.json").write_text("{", "utf-8")
    monkeypatch.setattr("evalkit.classification.offline.model_weights.files", lambda _: tmp_path)
    with pytest.raises(UsageError, match="cannot be read as JSON") as error:
        load_shipped_weights.__wrapped__()
    assert "Reinstall" in error.value.remedy
