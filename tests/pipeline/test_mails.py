"""Mails from arrival to the files that a run leaves: attachments are documents of their own, nothing is passed over."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest
from documents.arrivals.arrival import Arrival
from documents.arrivals.build_open import build
from documents.drawing import LEFT, lines, pdf
from typer.testing import CliRunner

from evalkit.cli import app
from evalkit.documents.attachments import has_mail_signature, parse_mail
from evalkit.documents.readers import read_document
from evalkit.documents.source_file import read_source_file
from evalkit.errors import DocumentError
from evalkit.pipeline import run
from evalkit.pipeline.purge import purge
from evalkit.review.case_files import read_packet
from evalkit.review.loaders import read_bundle
from evalkit.review.page_view import view
from evalkit.settings import Settings
from evalkit.store import open_output_folder

REPORT = pdf(lines(LEFT))
SETTINGS = Settings(ocr="none", workers=1)


def write_mail(path: Path, *attachments: tuple[str, bytes]) -> Path:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "ward@example.org", "records@example.org", "Report of the clinic"
    mail.set_content("Please file the report that is attached to this mail.")
    for name, content in attachments:
        mail.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    path.write_bytes(mail.as_bytes())
    return path


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    write_mail(folder / "letter.eml", ("report.pdf", REPORT), ("sheet.xlsx", b"PK\x03\x04"))
    (folder / "table.ods").write_bytes(b"PK\x03\x04")
    return folder


def test_attachments_are_documents_and_other_files_are_named(inbox: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    summary = run([inbox], output=output, settings=SETTINGS)
    assert [(document.doc_id, document.error) for document in summary.documents] == [("letter", None), ("report", None)]
    assert [one.file for one in summary.skipped] == [str(inbox / "table.ods"), str(inbox / "letter.eml" / "sheet.xlsx")]
    folder = open_output_folder(output)
    report = read_bundle(folder, "report")
    assert report.file_path == str(inbox / "letter.eml" / "report.pdf")
    assert (output / "converted" / "report.pdf").read_bytes() == REPORT
    for name in ("letter", "report"):
        assert (output / "converted" / f"{name}.pdf").stat().st_mode & 0o077 == 0
        assert view(name, output=output, page=1).pages[0].image.width > 100
    assert "Report of the clinic" in read_bundle(folder, "letter").pages[0].text
    again = run([inbox], output=output, settings=SETTINGS)
    assert [document.resumed for document in again.documents] == [True, True]


def test_the_packet_names_the_pages_that_are_shown(inbox: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    summary = run([inbox], output=output, settings=SETTINGS.model_copy(update={"audit_fraction": 1.0}))
    waiting = [
        one.doc_id for one in summary.documents if (output / "sme_packets" / f"sme_packet_{one.doc_id}.json").exists()
    ]
    assert waiting
    for doc_id in waiting:
        assert read_packet(open_output_folder(output), doc_id).pdf_path == f"converted/{doc_id}.pdf"


def test_with_a_mail_its_attachments_are_purged(inbox: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    run([inbox], output=output, settings=SETTINGS)
    purged = purge(open_output_folder(output), ["letter"], purged_at="2026-01-01T00:00:00Z")
    assert [one.doc_id for one in purged] == ["report", "letter"]
    assert list((output / "converted").iterdir()) == []
    assert "converted/report.pdf" in purged[0].removed_files


def test_skipped_files_fail_a_strict_run_only(inbox: Path, tmp_path: Path) -> None:
    arguments = ["run", str(inbox), "--output", str(tmp_path / "output")]
    loose, strict = (CliRunner().invoke(app, [*arguments, *more]) for more in ((), ("--strict",)))
    assert (loose.exit_code, strict.exit_code) == (0, 1)
    assert "2 documents: " in loose.output
    assert "2 files skipped" in loose.output
    assert "table.ods" in loose.stderr


def test_attached_mails_are_opened_but_not_without_end(tmp_path: Path) -> None:
    inner = write_mail(tmp_path / "inner.eml", ("report.pdf", REPORT))
    for _ in range(8):
        inner.write_bytes(write_mail(tmp_path / "outer.eml", ("inner.eml", inner.read_bytes())).read_bytes())
    summary = run([inner], output=tmp_path / "output", settings=SETTINGS)
    assert len(summary.documents) == 5
    assert len(summary.skipped) == 1


def test_an_attached_pdf_is_shown_although_its_mail_is_on_another_machine() -> None:
    shown: list[bytes] = []
    for path in (Path("/elsewhere/letter.eml/report.pdf"), Path("/elsewhere/report.pdf")):
        read_document(path, doc_id="x", processing_timestamp="t", file_bytes=REPORT, on_shown_pdf=shown.append)
    assert shown == [REPORT]


def test_an_attachment_is_found_by_its_path_only(inbox: Path) -> None:
    mail = inbox / "letter.eml"
    assert read_source_file(mail / "report.pdf") == REPORT
    for name in ("gone.pdf", "report.pdf/more.pdf"):
        with pytest.raises(DocumentError):
            read_source_file(mail / name)


@pytest.fixture(scope="module")
def arrivals(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Arrival]]:
    folder = tmp_path_factory.mktemp("arrivals")
    return folder, [arrival for arrival in build(folder) if arrival.format == "EML"]


def test_every_attachment_of_the_open_mails_is_found(arrivals: tuple[Path, list[Arrival]]) -> None:
    folder, mails = arrivals
    for arrival in mails:
        content = (folder / arrival.file).read_bytes()
        if arrival.outcome == "named":
            continue
        assert has_mail_signature(content)
        names = [*parse_mail(content, arrival.file).attachments]
        expected = [*arrival.attachments, *arrival.named_attachments]
        assert len(names) >= len(expected), arrival.what
        assert set(filter(None, expected)) <= set(names), arrival.what
        assert not any("/" in name or name.startswith(".") for name in names)
