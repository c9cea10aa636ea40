"""Every file that evalkit loads, and what happens when it is damaged."""

from __future__ import annotations

import json
import os
import random
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pymupdf
from benchmarks.tax_forms import draw, form_w2
from pipeline.patient import DOC, OTHER
from places import open_folder, open_index
from statements.spoilt import publish_template_case, spoil_template
from statements.test_statement_template import TEXT
from tables import Table

from evalkit.classification.traps import load_shipped_and_site_traps
from evalkit.errors import EvalkitError
from evalkit.evaluation.ground_truth_table import read_folder_ground_truth
from evalkit.evaluation.study import read_study
from evalkit.evaluation.template_review_metrics import read_template_review_cycles
from evalkit.extraction.field_template import FieldTemplate
from evalkit.pipeline import extract
from evalkit.pipeline.audit.trail import list_audit_events_and_problems
from evalkit.pipeline.audit.verify import verify_integrity
from evalkit.pipeline.document_discovery import discover_documents
from evalkit.pipeline.purge import exclude_purged, is_purge_unfinished, purge, read_purge_records
from evalkit.pipeline.sample_draws import read_all_draws
from evalkit.pipeline.statement_templates import review_and_publish_template
from evalkit.pipeline.supplied_labels import (
    read_production_labels,
    read_stored_production_labels,
    read_supplied_classifications,
    read_true_labels,
)
from evalkit.review import ReviewSession, compute_packet_digest, withdraw_silver_ground_truth
from evalkit.review.attention_checks import read_attention_check
from evalkit.review.case_files import read_packet, read_review
from evalkit.review.ground_truth import read_silver_audit_probability, remove_mismatched_silver_fields
from evalkit.review.index_rebuild import reindex
from evalkit.review.loaders import read_bundle, read_extractions, read_result
from evalkit.review.opinions import CaseOpinions
from evalkit.review.roster import ReviewerRoster
from evalkit.settings import Settings
from evalkit.statements.statement_template import parse_template_toml
from evalkit.store import OutputFolder, StoredDraft
from evalkit.store.postgresql import read_schema_name
from evalkit.store.toml_records import parse_toml_record

from .mutation import MARK, damaged_json, damaged_text

Load = Callable[[Path], Any]


class Kind(NamedTuple):
    """A kind of file: where it lies below the folder, what loads it, and how it is damaged."""

    name: str
    load: Load
    is_json: bool = True
    shows: str = ""
    """What an error must name; empty: the file's own name."""
    is_own: bool = False
    """Whether it is the user's own words, which an error may show."""


def _draft(folder: Path) -> None:
    """The workbench reads drafts from the database: what is damaged lies in a file here, and is put there."""
    index = open_index(folder / "output")
    text = (folder / "draft.json").read_bytes().decode(errors="replace")
    index.drafts.save(StoredDraft("requisition", "dr_lee", "tab", "0" * 64, text, "2027-01-01T00:00:00+00:00"))
    index.close()
    desk = ReviewSession(open_folder(folder / "output"), "dr_lee", "tab")
    try:
        desk.open_and_claim_case("requisition")
    finally:
        desk.close()


def _settings(folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)
    try:
        Settings.load()
    finally:
        os.chdir(before)


def _opened(case_id: str) -> Load:
    """The case as the workbench opens it."""

    def load(folder: Path) -> None:
        desk = ReviewSession(open_folder(folder / "output"), "dr_lee", "tab")
        try:
            desk.open_and_claim_case(case_id)
        finally:
            desk.close()

    return load


def _purging(folder: Path) -> None:
    files = open_folder(folder / "output")
    exclude_purged(files, discover_documents([folder / "records"], {}), ())
    if is_purge_unfinished(open_folder(folder / "output")):
        purge(open_folder(folder / "output"), [], purged_at="2027-01-01T00:00:00+00:00")


def _seeded_name(folder: Path) -> str:
    (path,) = (folder / "output/seeded").iterdir()
    return path.stem


def _f(load: Callable[[OutputFolder], Any]) -> Load:
    return lambda folder: load(open_folder(folder / "output"))


KINDS: dict[str, Kind] = {
    "bundle": Kind(f"output/document_bundles/{OTHER}.json", _f(lambda f: read_bundle(f, OTHER))),
    "result": Kind(f"output/results/{OTHER}.json", _f(lambda f: read_result(f, OTHER))),
    "packet": Kind(f"output/sme_packets/sme_packet_{DOC}.json", _f(lambda f: compute_packet_digest(read_packet(f, DOC)))),
    "review": Kind(f"output/reviews/{DOC}/0001.json", _f(lambda f: read_review(f, DOC, 1))),
    "opinions": Kind(f"output/reviews/{DOC}.second/0001.json", _f(lambda f: CaseOpinions.read(f, DOC).build_ground_truth())),
    "silver truth": Kind(
        f"output/ground_truth/gt_{OTHER}.json",
        _f(lambda f: (read_silver_audit_probability(f, OTHER), remove_mismatched_silver_fields(f, OTHER), withdraw_silver_ground_truth(f, OTHER))),
    ),
    "exported truth": Kind(f"output/ground_truth/gt_{DOC}.json", lambda folder: read_folder_ground_truth(folder / "output"), shows=" "),
    "fields": Kind(f"output/extractions/{OTHER}.json", _f(lambda f: read_extractions(f, OTHER))),
    "case of fields": Kind("output/sme_packets/sme_packet_w2.extraction.json", _opened("w2.extraction"), shows=" "),
    "case of a template": Kind("output/sme_packets/sme_packet_bank_bank.statement_template.json", _opened("bank_bank.statement_template"), shows=" "),
    "review of a template": Kind("output/template_reviews/bank_bank/cycle_1.json", _f(read_template_review_cycles)),
    "where the database is": Kind("moved/database.json", lambda folder: read_schema_name(open_folder(folder / "moved"))),
    "decisions of before": Kind(
        "decisions.json", lambda folder: verify_integrity(open_folder(folder / "output"), earlier_export_path=folder / "decisions.json"), is_own=True
    ),
    "index": Kind(f"output/results/{OTHER}.json", lambda folder: reindex(open_folder(folder / "output"))),
    "roster": Kind("output/reviewers.json", _f(lambda f: (ReviewerRoster(f).list_reviewers(), ReviewerRoster(f).find_reviewer_by_code("abcd")))),
    "production": Kind("output/production.json", _f(read_stored_production_labels)),
    "draw": Kind("output/draws/0001.json", _f(read_all_draws)),
    "purge record": Kind("output/purged/0001.json", _f(read_purge_records)),
    "purge begun": Kind("output/purging.json", _purging),
    "draft": Kind("draft.json", _draft, shows=" "),
    "template of a statement": Kind(
        "bank.toml", lambda folder: parse_template_toml((folder / "bank.toml").read_bytes().decode(errors="replace"), "bank.toml"), is_json=False
    ),
    "template of a form": Kind(
        "form.toml", lambda folder: parse_toml_record((folder / "form.toml").read_bytes().decode(errors="replace"), "form.toml", FieldTemplate), is_json=False
    ),
    "settings": Kind("evalkit.toml", _settings, is_json=False, shows=" "),
    "traps": Kind("traps.toml", lambda folder: load_shipped_and_site_traps.__wrapped__(str(folder / "traps.toml")), is_json=False),
    "production labels": Kind("labels.csv", lambda folder: read_production_labels(folder / "labels.csv"), is_json=False),
    "true labels": Kind("truth.json", lambda folder: read_true_labels(folder / "truth.json"), is_own=True),
    "supplied": Kind("answers/x.json", lambda folder: read_supplied_classifications(folder / "answers", ())),
}  # fmt: skip
for _where in (
    *("document_bundles/{}.json", "results/{}.json", "sme_packets/sme_packet_{}.json", "reviews/{}/0001.json"),
    "ground_truth/gt_{}.json",
):
    KINDS[f"study of {_where.partition('/')[0]}"] = Kind(
        f"output/{_where.format(OTHER)}", lambda folder: read_study(folder / "output"), shows=" "
    )
    KINDS[f"audit of {_where.partition('/')[0]}"] = Kind(
        f"output/{_where.format(DOC)}",
        lambda folder: (
            verify_integrity(open_folder(folder / "output")),
            list_audit_events_and_problems(open_folder(folder / "output")),
        ),
        shows=" ",
    )


def prepare(made: Path, folder: Path) -> None:
    """The patient's folder with one file of each kind beside it."""
    shutil.copytree(made, folder / "output")
    shutil.copytree(made.parent / "records", folder / "records")
    purge(open_folder(folder / "output"), ["quest_cbc"], purged_at="2026-02-02T00:00:00+00:00")
    ReviewerRoster(open_folder(folder / "output")).add_reviewer_or_replace_code("dr_lee")
    desk = ReviewSession(open_folder(folder / "output"), "dr_lee", "tab")
    case = desk.open_and_claim_case("requisition")
    (folder / "draft.json").write_text(case.draft.model_dump_json())
    desk.close()
    (folder / "output/purging.json").write_text('{"schema_version": 1, "doc_id": null, "number": 2}')
    root = Path(__file__).parents[2]
    shipped = (root / "evalkit/classification/traps.toml").read_text()
    (folder / "traps.toml").write_text(shipped.replace('\nid = "', '\nid = "own-'))
    (folder / "evalkit.toml").write_text(
        'workers = 2\nocr = "none"\n[models]\ndefault = "embedded"\n[limits]\nusd_per_run = 5\n'
    )
    (folder / "labels.csv").write_text(
        "doc_id,dominant_type,confidence,segments\na,Other,0.5,1-2 Other; 3 Other\nb,X,,\n"
    )
    (folder / "truth.json").write_text('[{"doc_id": "a", "dominant_type": "Other", "segments": "1-2 Other"}]')
    (folder / "answers").mkdir()
    shutil.copy(folder / f"records/answers/{OTHER}.json", folder / "answers/x.json")
    shutil.copy(root / "evalkit/extraction/templates/tax/1099-div.toml", folder / "form.toml")
    (folder / "bank.toml").write_text(TEXT)
    open_folder(folder / "moved").write_json("database.json", {"schema_version": 1, "schema": f"evalkit_{0:016x}"})
    events, _ = list_audit_events_and_problems(open_folder(folder / "output"))
    (folder / "decisions.json").write_text(json.dumps({"events": events}))
    form = pymupdf.open()
    draw(form_w2(random.Random(1)), random.Random(4), form.new_page(width=612, height=792))
    form.save(folder / "w2.pdf")
    extract([folder / "w2.pdf"], output=folder / "output", tax_year=2099)  # of which the form is none
    bank = spoil_template(folder, "bank")
    review_and_publish_template(bank.case.template, "bank.toml", folder / "bank.pdf", output=folder / "output")
    index = open_index(folder / "output")
    publish_template_case(open_folder(folder / "output"), index, bank)  # as if no builder had found a better one
    index.close()


def fuzz(made: Path, folder: Path, *, each: int, seed: int) -> Table:
    """Damage every kind of file ``each`` times and load it; afterwards it is whole again."""
    prepare(made, folder)
    kinds = {
        **KINDS,
        "seeded": Kind(
            f"output/seeded/{_seeded_name(folder)}.json", _f(lambda f: read_attention_check(f, _seeded_name(folder)))
        ),
    }
    table = Table()
    for name, kind in kinds.items():
        path = folder / kind.name
        whole = path.read_bytes()
        kind.load(folder)  # undamaged it loads
        dice = random.Random(f"{seed}:{name}")
        for _ in range(each):
            how, data = (damaged_json if kind.is_json else damaged_text)(dice, whole)
            path.write_bytes(data)
            table.add(name, _outcome(kind, folder, f"{name}, {how}", table))
            path.write_bytes(whole)
    return table


def _outcome(kind: Kind, folder: Path, told: str, table: Table) -> str:
    try:
        kind.load(folder)
    except EvalkitError as error:
        text = "".join(traceback.format_exception(error))
        if MARK in text and not kind.is_own:
            table.faults.append(f"{told}: the error quotes the file: {error}")
            return "crashes"
        own = Path(kind.name).name
        named = kind.shows or own
        if named not in str(error) and Path(kind.name).parent.name not in str(error):
            table.faults.append(f"{told}: the error does not name the file: {error}")
            return "crashes"
        return "refused"
    except Exception as error:  # noqa: BLE001 - that is what is counted
        where = traceback.extract_tb(error.__traceback__)[-1]
        ours = [one for one in traceback.extract_tb(error.__traceback__) if "/evalkit/" in one.filename][-1:]
        table.faults.append(f"{told}: {type(error).__name__} in {where.name}, from {ours}")
        return "crashes"
    return "valid"
