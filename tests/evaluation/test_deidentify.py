"""De-identifying: what is masked, what is kept, what is known to be missed, and that hostile texts end."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.deidentifying import measure_masked_medical_terms, measure_missed_planted_identifiers
from evaluation.truths import Output, bundle_of
from hypothesis import given
from hypothesis import strategies as st

from evalkit.documents.readers import read_document
from evalkit.evaluation import deidentify
from evalkit.evaluation.deidentify import (
    KnownIdentifiers,
    NamedDocument,
    PseudonymMap,
    assign_reviewer_pseudonyms,
    create_document_pseudonym,
    deidentify_document,
    find_labelled_identifiers,
    find_mask_spans,
    mask_text,
)
from evalkit.evaluation.ground_truth_table import read_folder_ground_truth
from evalkit.samples import write_demo_folder


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Patient: Helen A. Marsh\tSex: F", "Patient: [NAME]\tSex: F"),
        ("discussed with dr_kim, Dr_Kim-Lee", "discussed with dr_[NAME], Dr_[NAME]"),
        ("in 123456.pdf and jones_ann.PDF", "in [NAME].pdf and [NAME].PDF"),
        ("Name: MARSH, HELEN", "Name: [NAME]"),
        ("seen by Dr. O'Neill today", "seen by Dr. [NAME] today"),
        ("Electronically signed by: José Álvarez", "Electronically signed by: [NAME]"),
        ("Helen Park, MD", "[NAME], MD"),
        ("DOB: 03/22/1971", "DOB: [DATE]"),
        ("on March 22nd, 1971 and 1971-03-22", "on [DATE] and [DATE]"),
        ("Last seen on 10/99.", "Last seen on [DATE]."),
        ("Tel (555) 555-0142, Fax 555-0143", "Tel [PHONE], Fax [PHONE]"),
        ("write to h.marsh@mail.example.org.", "write to [EMAIL]."),
        ("SSN 123-45-6789", "SSN [ID]"),
        ("MRN: LR-204417", "MRN: [ID]"),
        ("Accession: PH-CT-5518", "Accession: [ID]"),
        ("lives at: 400 Harbor Road, Apt 3, Lakeside, OH 43440", "lives at: [ADDRESS]"),
        ("a 94-year-old man", "a [AGE]-year-old man"),
    ],
)
def test_what_is_masked(text: str, expected: str) -> None:
    assert mask_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "BRCA1 c.5266dupC (p.Gln1756Profs*74), NM_007294.4, rs80357906, chr17:43094692",
        "HER2 negative, ER 90 %, Ki-67 12 %, CD20 positive, CA 19-9 and CA-125 normal, COVID-19",
        "pT2 N1a M0, Stage IIA, Gleason 3+4, grade 2, 2/14 lymph nodes",
        "blood pressure 146/88, pulse 82, glucose 118-164, 12.5 mg twice a day, 49 / 51 mg",
        "a 66-year-old woman, diagnosed 2021, Cholecystectomy 2009",
        "Carvedilol 12.5 mg, Metformin 1000 mg, trastuzumab 440 mg",
        "Father died of a myocardial infarction at 71.",
        "9 mm nodule (series 5, image 41), motor 5/5, murmur 2/6",
    ],
)
def test_what_is_kept(text: str) -> None:
    assert mask_text(text) == text


def test_a_labelled_name_is_masked_on_every_page() -> None:
    bundle = bundle_of(
        "d", ["Patient: Helen Marsh\tMRN: LR-204417", "MARSH will return. helen marsh, LR-204417", "Marsh's arm"]
    )
    names = KnownIdentifiers.from_bundle(bundle)
    assert [mask_text(page.text, names) for page in bundle.pages[1:]] == [
        "[NAME] will return. [NAME], [ID]",
        "[NAME]'s arm",
    ]
    assert mask_text("Marsh's arm") == "Marsh's arm"


def test_a_running_head_without_label_is_known_from_the_bundle() -> None:
    names = KnownIdentifiers.from_bundle(bundle_of("d", ["x"], [("patient", "Ellison, Margaret")]))
    assert mask_text("Mrs Ellison and Margaret", names) == "Mrs [NAME] and [NAME]"


LETTERS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=10).map(str.title)


@given(
    given=LETTERS,
    family=LETTERS,
    label=st.sampled_from(["Patient: ", "Name: ", "Patient Name: ", "Attending: ", "Dr. "]),
)
def test_nothing_that_was_labelled_survives(given: str, family: str, label: str) -> None:
    pages = [
        f"{label}{given} {family}",
        f"today {given} {family} and {family.upper()} came",
    ]
    names = find_labelled_identifiers(pages)
    parts = [part for name in names.names for part in name.split()]
    for part in parts:
        if part.casefold() not in deidentify._NON_NAME_WORDS:
            assert part not in mask_text(pages[1], names).replace("today", "").split()


@given(st.text(max_size=300))
def test_masks_are_in_order_and_all_else_stays(text: str) -> None:
    found = find_mask_spans(text)
    assert all(0 <= start < end <= len(text) for start, end, _ in found)
    assert all(one[1] <= other[0] for one, other in pairwise(found))
    left, at = "", 0
    for start, end, mask in found:
        left += text[at:start] + f"[{mask}]"
        at = end
    assert mask_text(text) == left + text[at:]


UNITS = [
    " ",
    "\t",
    "a",
    "A",
    "1",
    "-",
    ".",
    "\n",
    "A ",
    "1 ",
    "A.",
    "A'",
    "Patient: ",
    "a@",
    "1/",
    "Dr. ",
    "de la ",
    "MRN: ",
    "Order ",
    "(",
    "Jan ",
]


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_texts_end(unit: str) -> None:
    text = unit * (10_000 // len(unit))
    started = time.monotonic()
    mask_text(text, find_labelled_identifiers([text]))
    assert time.monotonic() - started < 5


def test_records_tell_nobody(tmp_path: Path) -> None:
    output = Output(tmp_path)
    quote = "Mr. Haverstock, seen 03/22/1971"
    output.add(
        "Haverstock_1",
        quote=quote,
        correction_notes="dr_lee: see Haverstock_1, Haverstock is 94 years old",
        pages=["x"],
    )
    (truth,) = read_folder_ground_truth(tmp_path).documents
    changed = truth.record.ground_truth_classification.model_copy(
        update={"self_evaluation": {"Haverstock": ["Haverstock"]}, "vendor_signals": ("Haverstock",)}
    )
    truth = deidentify.replace(truth, record=truth.record.model_copy(update={"ground_truth_classification": changed}))
    name = create_document_pseudonym(output.sha256("Haverstock_1"))
    aliases = PseudonymMap(
        [NamedDocument("Haverstock_1", "Haverstock_1.pdf", output.sha256("Haverstock_1"))], ["dr_lee"]
    )
    made = deidentify_document(truth, find_labelled_identifiers(["Patient: Amos Haverstock"]), aliases)
    told = made.record.model_dump_json()
    for secret in ("Haverstock", "03/22", "dr_lee", "94"):
        assert secret not in told
    assert made.record.doc_id == name
    assert made.record.correction_notes == f"reviewer_1: see {name}, [NAME] is [AGE] years old"


def test_pseudonyms_do_not_follow_the_alphabet_and_keep_the_mark() -> None:
    names = [f"dr_{letter}" for letter in "abcdefgh"]
    made = assign_reviewer_pseudonyms([*names, "simulated_1"])
    assert made == assign_reviewer_pseudonyms(["simulated_1", *reversed(names)])
    assert [made[name] for name in names] != sorted(made[name] for name in names)
    assert made["simulated_1"].startswith("simulated_reviewer_")


FOLDER = PseudonymMap(
    [
        NamedDocument("smith_john_req", "smith_john_req.pdf", "a" * 64),
        NamedDocument("helen_marsh", "helen_marsh.pdf", "dad" * 22),
        NamedDocument("Smith_Helen_CT", "Smith, Helen CT.pdf", "c" * 64),
        NamedDocument("M_ller_Jane_2_", "Mu\u0308ller, Jane (2).PDF", "d" * 64),
        NamedDocument("clinical_note", "clinical note.pdf", "e" * 64),
        NamedDocument("report", "report.pdf", "f" * 64),
        NamedDocument("page_2", "2.pdf", "1" * 64),
        NamedDocument("BRCA1", "BRCA1.pdf", "2" * 64),
        NamedDocument("may_brown", "may_brown.pdf", None),
        NamedDocument("scan-20441799", "scan.pdf", "3" * 64),
    ],
    ["dr_kim", "Ann Lee", "simulated_ash", "analyst"],
)
KIM, LEE, ASH, ANALYST = (
    FOLDER.reviewer_pseudonyms[name] for name in ("dr_kim", "Ann Lee", "simulated_ash", "analyst")
)


def told(text: str) -> str:
    return mask_text(FOLDER.pseudonymise_text(text), KnownIdentifiers(folder_words=FOLDER.folder_words))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("as smith_john_req (pending)", "as doc_aaaaaaaaaaaa (pending)"),
        ("SMITH_JOHN_REQ.PDF, smith-john-req", "doc_aaaaaaaaaaaa, doc_aaaaaaaaaaaa"),
        ("and helen_marsh.pdf; next", "and doc_daddaddaddad; next"),
        ("cf. 'Smith, Helen CT.pdf' / Smith_Helen_CT", "cf. 'doc_cccccccccccc' / doc_cccccccccccc"),
        ("Müller, Jane (2).pdf or M_ller_Jane_2_", "doc_dddddddddddd).pdf or doc_dddddddddddd_"),
        ("smith_old, helen2 and Müller's", "[NAME]_old, [NAME]2 and [NAME]'s"),
        ("batch of 20441799", "batch of [ID]"),
        ("asked dr_kim, Dr. Kim, DR_KIM", f"asked {KIM}, {KIM}, {KIM}"),
        ('by ann  lee; "Ann_Lee", said simulated_ash', f'by {LEE}; "{LEE}", said {ASH}'),
        ("by analyst. Analyst of words", f"by {ANALYST}. Analyst of words"),
        ("see clinical_note, clinical note.pdf", "see doc_eeeeeeeeeeee, doc_eeeeeeeeeeee"),
        ("see report.pdf or 2.pdf", "see doc_ffffffffffff or doc_111111111111"),
        ("she may have brown spots, asked May", "she may have brown spots, asked [NAME]"),
        ("may_brown.pdf", "[NAME]"),
    ],
)
def test_what_the_folder_calls_its_documents_and_reviewers(text: str, expected: str) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a clinical note, a CT scan report and a pathology report; page 2 of 2, BRCA1 variant",
        "the ash tree; request of a req form, note on page_3",
        "smithy, blacksmith, helenium",
    ],
)
def test_ordinary_words_of_the_folders_names_stay(text: str) -> None:
    assert told(text) == text


def test_needless_masks_of_the_folders_names_are_counted() -> None:
    assert (
        measure_masked_medical_terms(["tamoxifen"], frozenset(["tamoxifen"])).set_index("kind").loc["drug", "masked"]
        == 1
    )


def test_numbers_without_words_are_masked_in_free_form(tmp_path: Path) -> None:
    output = Output(tmp_path)
    output.add("one")
    (truth,) = read_folder_ground_truth(tmp_path).documents
    free = {
        "mrn": 12345678,
        "2044179": [-20441, 20441.0, "20441", "id:20441."],
        "kept": [9999, 0.5, True, None, 12345.5, 1e400],
    }
    answer = truth.record.ground_truth_classification.model_copy(update={"self_evaluation": free})
    truth = deidentify.replace(truth, record=truth.record.model_copy(update={"ground_truth_classification": answer}))
    aliases = PseudonymMap([NamedDocument("one", "one.pdf", truth.sha256)], ["dr_lee"])
    told_free = deidentify_document(
        truth, KnownIdentifiers(), aliases
    ).record.ground_truth_classification.self_evaluation
    assert told_free == {
        "mrn": "[ID]",
        "[ID]": ["[ID]", "[ID]", "[ID]", "id:[ID]."],
        "kept": [9999, 0.5, True, None, 12345.5, None],
    }


def test_misses_are_measured_and_the_same_each_time() -> None:
    table = measure_missed_planted_identifiers(0, 60)
    assert list(table.columns) == ["kind", "planted", "missed", "share", "high"]
    assert table.equals(measure_missed_planted_identifiers(0, 60))
    assert ((table["share"] <= table["high"]) & (table["high"] <= 1)).all()
    by_kind = table.set_index("kind")["share"]
    for kind in (
        "name after a label",
        "labelled name on a later page",
        "date, with numbers",
        "record number",
        "telephone or fax",
    ):
        assert by_kind[kind] <= 0.05, kind
    # What has no label is known to be missed, and said.
    assert by_kind["name in small letters"] > 0.1


def test_without_masking_everything_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deidentify, "find_mask_spans", lambda *_: [])
    assert (measure_missed_planted_identifiers(0, 20)["share"] == 1).all()


def test_medical_words_of_the_samples_stay(tmp_path: Path) -> None:
    write_demo_folder(tmp_path)
    bundles = [
        read_document(path, doc_id=path.stem, processing_timestamp="2025-01-01T00:00:00+00:00")
        for path in sorted(tmp_path.glob("*.pdf"))
    ]
    texts = ["\n".join(page.text for page in bundle.pages) for bundle in bundles]
    table = measure_masked_medical_terms(texts)
    assert table["words"].sum() > 200
    assert table["masked"].sum() / table["words"].sum() <= 0.01


def test_harm_counts_what_is_masked() -> None:
    table = measure_masked_medical_terms(["Name: Ibuprofen\nTamoxifen 20 mg"]).set_index("kind")
    assert table.loc["drug", ["words", "masked"]].tolist() == [2, 1]
    assert table.loc["blood pressure", "words"] == 0


SHARED = Path(__file__).parents[3] / "shared/data/clinical_text.jsonl"


@pytest.mark.skipif(not SHARED.is_file(), reason="the developers' data (../shared/data) is not there")
def test_medical_words_of_real_texts_stay() -> None:
    table = measure_masked_medical_terms(json.loads(line)["text"] for line in SHARED.read_text().splitlines())
    assert table["masked"].sum() / table["words"].sum() <= 0.01
