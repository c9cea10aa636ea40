"""The table of document types: records, codes, titles; a site's own types."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import pickle
import re
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from benchmarks.first_contact.interchange import open_types_files
from benchmarks.first_contact.interchange.own_types import TypesFile
from builders import Json, document, evidence, one_segment, page
from pydantic import ValidationError

from evalkit.classification.classifier_answer import build_answer_schema
from evalkit.classification.findings import render_judging_guide
from evalkit.classification.orchestrator import RetryOrchestrator
from evalkit.classification.schema import DocumentType, MixtureEntry
from evalkit.core.records import StrictRecord
from evalkit.document_types import (
    FIVE_TYPES,
    FREE_KEYS,
    compute_types_version,
    get_report_category,
    get_type_coding,
    list_type_names,
    load_own_types,
    load_type_records,
    use_own_types,
)
from evalkit.errors import StoreError, UsageError
from evalkit.settings import Settings
from evalkit.store import open_output_folder, parse_stored_record, store_own_types


def test_each_type_has_a_record_and_a_key() -> None:
    records = load_type_records()
    assert list(records) == [kind.value for kind in DocumentType]
    assert len({record.key for record in records.values()}) == len(records)


@pytest.mark.parametrize(
    ("document_type", "text", "code"),
    [
        ("Clinical Note", "", "34109-9"),
        ("Clinical Note", "St. Example Hospital\n\n** Discharge  Summary: **\nPatient: X", "18842-5"),
        ("Clinical Note", "See the discharge summary of March.", "34109-9"),
        ("Clinical Note", "\n".join(["Address"] * 5 + ["Discharge Summary"]), "34109-9"),
        ("Clinical Note", "H&P", "34117-2"),
        ("Pathology Report", "Discharge Summary", "11526-1"),
        ("Genomic Report", "", "51969-4"),
        ("Radiology Report", "CT CHEST", "18748-4"),
        ("Other", "", "UNK"),
        ("Other", "LABORATORY REPORT", "11502-2"),
    ],
)
def test_title_chooses_the_narrower_code(document_type: str, text: str, code: str) -> None:
    assert get_type_coding(document_type, text).code == code


def test_titles_are_written_as_they_are_compared() -> None:
    for document_type, record in load_type_records().items():
        for coding in record.titles:
            for name in coding.names:
                assert get_type_coding(document_type, name.upper()).code == coding.code


def test_only_reports_of_results_have_a_category() -> None:
    categories = {kind: get_report_category(kind) for kind in DocumentType}
    assert [kind for kind, category in categories.items() if category is None] == ["Clinical Note", "Other"]
    assert categories[DocumentType.RADIOLOGY_REPORT].code == "LP29684-5"  # type: ignore[union-attr]


# ---------------------------------------------------------------------------------------------- a site's own types

OPERATIVE = '["Operative Note"]\ndefinition = "A surgeon\'s account."\nloinc = "11504-8"\n'


@pytest.fixture(autouse=True)
def no_own_types() -> Iterator[None]:
    yield
    use_own_types({})


def write(folder: Path, text: str) -> str:
    """The path of a types file with this text."""
    (folder / "types.toml").write_text(text, "utf-8", newline="")
    return str(folder / "types.toml")


def row(name: str, **changes: object) -> str:
    fields: dict[str, object] = {"definition": "A surgeon's account.", "loinc": "11504-8"} | changes
    lines = [f"{key} = {json.dumps(value)}" for key, value in fields.items() if value is not None]
    return "\n".join([f"[{json.dumps(name)}]", *lines, ""])


@pytest.mark.parametrize(
    "text",
    [
        row("Operative Note", key="6"),
        row("Zahnärztlicher Befund", includes=["Füllungen"], excludes=[]),
        row("Dental record", loinc=None),
        row("Echo report", loinc="34552-0", version=None),
        'version = "3"\n' + row("Dental"),
        "".join(row(f"Kind {letter}") for letter in "ABCDEFGHIJ"),
        "\ufeff".join(["", row("Dental")])[1:],
        '["Local form"]\ndefinition = "X of a house."\nloinc = { code = "LF-1", system = "urn:house", display = "Form" }\n',
    ],
)
def test_good_types_files_extend_the_five(text: str, tmp_path: Path) -> None:
    records = load_own_types(write(tmp_path, text))
    use_own_types(records)
    assert [kind.value for kind in DocumentType] == [*map(str, FIVE_TYPES), *records]
    for name in records:
        kind = DocumentType(name)
        assert pickle.loads(pickle.dumps(kind)) is kind
        assert MixtureEntry.model_validate({**ENTRY, "document_type": name}).document_type is kind
    assert compute_types_version() != "1"
    use_own_types({})
    assert (len(DocumentType), compute_types_version()) == (5, "1")
    with pytest.raises(ValidationError):
        MixtureEntry.model_validate({**ENTRY, "document_type": next(iter(records))})


ENTRY = {"presence_level": "PRIMARY", "confidence": 1.0, "overall_share": 1.0}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "it has 0 types"),
        ("".join(row(f"Kind {number}x") for number in range(500)), "it has 500 types; 1 to 20"),
        (row("Dental") + row("Dental"), "Cannot declare"),
        (row("Dental") + row("DENTAL"), "DENTAL: this name is used twice"),
        (row("dental  note"), "without double spaces"),
        (row("Dental note") + row("Dental-note"), "Dental-note: this name is used twice"),
        (row("Dental", key="6") + row("Echo", key="6"), "Echo: key: 6 is already the key of Dental"),
        (row("Dental", key="66"), "Dental: key: choose one of 6 7 8 9"),
        (row("Dental", key="1"), "Dental: key: choose one of"),
        (row("Dental", key="s"), "Dental: key: choose one of"),
        (row("Dental", loinc="11504-9"), "Dental: loinc: 11504-9 is no LOINC code: the check digit of 11504 is 8"),
        (row("Dental", loinc="dental"), "Dental: loinc: 'dental' is no LOINC code"),
        (row("Dental", definition=None), "Dental: definition: Field required"),
        (row("Dental", definition=""), "Dental: definition: write one line"),
        (row("Dental", definition="  "), "Dental: definition: write one line"),
        (row("Dental", definition="<b>x</b>"), "Dental: definition: write one line"),
        (row("Dental", includes=["a\u001b[31m"]), "Dental: includes.0: write one line"),
        (row("Dental", includes="fillings"), "Dental: includes: Input should be a valid tuple"),
        (row("Dental", colour="red"), "Dental: colour: Extra inputs are not permitted"),
        (row("Clinical Note"), "Clinical Note: this is one of evalkit's five types"),
        (row("other"), "other: this is one of evalkit's five types"),
        (row("clinical-note"), "clinical-note: this is one of evalkit's five types"),
        (row("Cannot tell"), "Cannot tell: this name is used twice, or is reserved for an unknown type"),
        (row("<script>alert(1)</script>"), "a name has 2 to 40 letters"),
        (row("Note; 3-4 Other"), "a name has 2 to 40 letters"),
        (row("Note\u001b[31m"), r"Note\\x1b\[31m: a name has 2 to 40 letters"),
        (row("x" * 41), "a name has 2 to 40 letters"),
        (row("7 days"), "must begin with a letter"),
        ("Dental = 3\n", "Dental: Input should be"),
        ("[[Dental]]\ndefinition = 'x'\n", "Dental: Input should be"),
        ("[Dental\n", "the file is not valid TOML: .*line 1"),
        ("[" * 100_000, "the file is not valid TOML"),
    ],
)
def test_bad_types_file_error_names_file_row_and_remedy(text: str, named: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UsageError, match=named) as refused:
        load_own_types(path)
    assert (refused.value.code, path in refused.value.message, bool(refused.value.remedy)) == ("TYPES-FILE", True, True)
    assert refused.value.message.isprintable()


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "binary", "large"])
def test_unreadable_types_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "types.toml"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind != "missing":
        path.write_bytes(b"\xff\x00" if kind == "binary" else b"#" * 300_000)
    with pytest.raises(UsageError, match=str(path)):
        load_own_types(str(path))


def test_settings_put_the_own_types_in_force(tmp_path: Path) -> None:
    path = write(tmp_path, OPERATIVE)
    assert Settings.load(types_file=path, foreign_types={"OP": "Operative Note"}).foreign_types == {
        "OP": "Operative Note"
    }
    with pytest.raises(UsageError, match=r"foreign_types\.OP: Operativ Note is no document type"):
        Settings.load(types_file=path, foreign_types={"OP": "Operativ Note"})


def test_output_folder_keeps_the_types_of_its_run(tmp_path: Path) -> None:
    folder = open_output_folder(tmp_path / "output")
    store_own_types(folder, write(tmp_path, OPERATIVE))
    use_own_types({})
    assert "Operative Note" not in list_type_names()
    open_output_folder(tmp_path / "output")
    assert "Operative Note" in list_type_names()
    store_own_types(folder, write(tmp_path, row("Dental")))
    assert list_type_names()[5:] == ["Dental"]


def test_a_type_that_reviews_may_name_is_not_dropped(tmp_path: Path) -> None:
    folder = open_output_folder(tmp_path / "output")
    store_own_types(folder, write(tmp_path, OPERATIVE))
    folder.write_json("reviews/a/0001.json", {})
    with pytest.raises(UsageError, match=r"lacks Operative Note, without which reviews in .* could not be read"):
        store_own_types(folder, write(tmp_path, row("Dental")))
    assert list_type_names()[5:] == ["Operative Note"]
    store_own_types(folder, write(tmp_path, row("Operative Note", definition="Another account.") + row("Dental")))
    assert list_type_names()[5:] == ["Operative Note", "Dental"]


def test_a_type_that_is_not_in_force_is_named_with_the_remedy(tmp_path: Path) -> None:
    use_own_types(load_own_types(write(tmp_path, OPERATIVE)))

    class Labelled(StrictRecord):
        dominant_type: DocumentType

    parse = partial(parse_stored_record, Labelled, file_name="reviews/a/0001.json", remedy="Restore it.")
    assert parse({"dominant_type": "Operative Note"}).dominant_type == "Operative Note"
    use_own_types({})
    with pytest.raises(StoreError, match=r"0001\.json contains a document type that .* the type to the types file"):
        parse({"dominant_type": "Operative Note"})
    for no_name in ("A patient said: my knee hurts.", 5, "other"):
        with pytest.raises(StoreError, match="invalid ones") as refused:
            parse({"dominant_type": no_name})
        assert str(no_name) not in str(refused.value)


def test_requests_to_models_follow_the_types_in_force(tmp_path: Path) -> None:
    five = (json.dumps(build_answer_schema()), render_judging_guide())
    use_own_types(load_own_types(write(tmp_path, OPERATIVE)))
    six = (json.dumps(build_answer_schema()), render_judging_guide())
    assert ['"Operative Note"' in six[0], "Operative Note: A surgeon's account." in six[1]] == [True, True]
    use_own_types({})
    assert (json.dumps(build_answer_schema()), render_judging_guide()) == five


def rewrite(path: Path) -> None:
    """Write a benchmark's list of types as tables by name, with keys that the screen has."""
    try:
        rows = tomllib.loads(path.read_text("utf-8"))["types"]
    except (OSError, ValueError, KeyError):
        return
    keys: dict[str, str] = {}
    for fields in rows:
        key = fields.pop("key", None)
        if key is not None and len(keys.keys() | {key}) <= len(FREE_KEYS):
            fields["key"] = keys.setdefault(key, FREE_KEYS[len(keys)] if len(key) == 1 else key)
    texts = (row(fields.pop("name"), loinc=fields.pop("code", None), **fields) for fields in rows)
    path.write_text("".join(texts), "utf-8")


@pytest.mark.parametrize("file", list(open_types_files.build()), ids=lambda file: file.name)
def test_files_of_another_author_are_read_or_refused(file: TypesFile, tmp_path: Path) -> None:
    path = tmp_path / "types.toml"
    file.make(path)
    if path.is_file():
        rewrite(path)
    if file.outcome == "read":
        records = load_own_types(str(path))
        assert [(name, record.definition) for name, record in records.items()] == [
            (own_type.name, own_type.definition) for own_type in file.types
        ]
        return
    with pytest.raises(UsageError) as refused:
        load_own_types(str(path))
    assert all(re.search(words, refused.value.message, re.IGNORECASE) for words in file.told), refused.value.message


def decide_in_worker(orchestrator: RetryOrchestrator, answer: Json) -> list[str | None]:
    """The types of an answer that another process decided about."""
    outcome = asyncio.run(
        orchestrator.evaluate(document(page(1, "Bitewing films reviewed, no further caries.")), answer)
    )
    assert outcome.classification is not None
    return [segment.dominant_type for segment in outcome.classification.segments]


def test_types_travel_to_other_processes(tmp_path: Path) -> None:
    use_own_types(load_own_types(write(tmp_path, row("Dental"))))
    answer = one_segment("Dental", 1, evidence("Bitewing films reviewed", 1, "films"))
    orchestrator = RetryOrchestrator()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(decide_in_worker, orchestrator, answer).result() == ["Dental"]
