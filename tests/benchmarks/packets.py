"""Packets for measuring how pages are cut into documents: real and invented texts on invented paper.

Each packet is drawn as a PDF and read again as any other, so that letterheads, running headers, stamps and where a text
ends on its page are what a reader sees. Everything is drawn by a seed; the people on it are invented.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pymupdf

from evalkit.classification.schema import DocumentType
from evalkit.classification.training.labelled_texts import LabelledText
from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.readers import read_document
from evalkit.pipeline.supplied_labels import TypedPageRange

NOTE, PATHOLOGY, GENOMIC, RADIOLOGY, OTHER = DocumentType
WIDTH, HEIGHT = 612, 792
TITLED = 0.4
"""Of the documents that are no "Other", as many are given a title."""
LONGEST = 7000
"""Characters of a text that are drawn; more of it says nothing new about joins."""

_FAMILIES = [
    "Alder",
    "Brook",
    "Castell",
    "Dunn",
    "Eriksen",
    "Farrow",
    "Goss",
    "Hale",
    "Imhof",
    "Jarvis",
    "Keane",
    "Lund",
    "Moss",
    "Nolan",
    "Orr",
    "Pell",
    "Quill",
    "Rowe",
    "Stout",
    "Tran",
]
_GIVEN = [
    "Ada",
    "Bela",
    "Cora",
    "Dov",
    "Edda",
    "Finn",
    "Gil",
    "Hana",
    "Ivo",
    "June",
    "Kai",
    "Lena",
    "Milo",
    "Nora",
    "Otis",
    "Pia",
    "Rhea",
    "Seth",
    "Tess",
    "Uma",
]
_PLACES = [
    "Ashford",
    "Birchwood",
    "Clearwater",
    "Dover",
    "Elmhurst",
    "Fairview",
    "Granite",
    "Hillcrest",
    "Ironwood",
    "Juniper",
]
_HOUSES = ("{} General Hospital", "{} Medical Center", "{} Clinic", "{} Health System", "{} Physicians Group")
_LABS = ("{} Laboratories", "{} Diagnostics", "{} Pathology Associates", "{} Imaging Center", "{} Reference Laboratory")
_STREETS = ("Harbor Street", "Mill Road", "Oak Avenue", "River Drive", "Station Lane")
_TITLES: Mapping[DocumentType, Sequence[str]] = {
    NOTE: ("PROGRESS NOTE", "Office Visit", "CONSULTATION", "Clinic Note", "Encounter Summary"),
    PATHOLOGY: ("SURGICAL PATHOLOGY REPORT", "Pathology Report", "FINAL REPORT"),
    GENOMIC: ("MOLECULAR DIAGNOSTICS REPORT", "Genetic Test Report", "FINAL REPORT"),
    RADIOLOGY: ("RADIOLOGY REPORT", "Diagnostic Imaging", "IMAGING REPORT", "FINAL REPORT"),
    OTHER: ("LABORATORY RESULTS", "PATIENT FORM"),
}
_IDENTITY = re.compile(r"(?i)\b(?:name|date of birth|dob|mrn|patient)\s*[:#]")
_FONTS = ("helv", "tiro", "cour")


@dataclass(frozen=True)
class Packet:
    """A drawn packet, read."""

    bundle: DocumentBundle
    truth: tuple[TypedPageRange, ...]
    records: tuple[str, ...]
    titled: bool
    """Whether a title was inserted that the text of some document may lack."""
    patients: tuple[str, ...]
    """Name that is printed on the paper of each document; empty without one."""


@dataclass
class _Paper:
    """How one source document looks."""

    kind: DocumentType
    text: str
    person: str
    born: str
    number: str
    dated: str
    letterhead: list[str]
    title: str
    block: str
    accession: str
    sign: str
    strip: str
    counts: bool
    font: str
    size: float
    margin: float
    footer: str
    ragged: bool
    """Its pages end early, as where sections begin on a page of their own."""
    varied: bool
    """Its later pages are set smaller."""


def packets(examples: Sequence[LabelledText], count: int, seed: int) -> list[Packet]:
    """So many packets of these texts."""
    chance = random.Random(seed)
    by_kind = {kind: [one for one in examples if one.document_type is kind] for kind in DocumentType}
    return [_packet(by_kind, chance, f"packet-{seed}-{number}") for number in range(count)]


def _packet(by_kind: Mapping[DocumentType, Sequence[LabelledText]], chance: random.Random, name: str) -> Packet:
    stamp = chance.choice(("none", "none", "count", "fax", "number"))
    one_person = chance.random() < 0.75
    sender = chance.choice(_HOUSES).format(chance.choice(_PLACES))
    person = _person(chance)
    papers: list[_Paper] = []
    records: list[str] = []
    kinds = [kind for kind, some in by_kind.items() if some]
    kind = chance.choice(kinds)
    for number in range(chance.choice((1, 1, 2, 3, 3, 4, 5))):
        kind = kind if number and chance.random() < 0.25 else chance.choice(kinds)
        example = chance.choice(by_kind[kind])
        records.append(example.id)
        papers.append(_paper(example, person if one_person else _person(chance), sender, chance))
    pdf = pymupdf.open()
    truth: list[TypedPageRange] = []
    if chance.random() < 0.15:
        _cover(pdf, sender, chance)
        truth.append((1, 1, OTHER.value))
    for paper in papers:
        first = len(pdf) + 1
        _draw(pdf, paper)
        truth.append((first, len(pdf), paper.kind.value))
    _stamp(pdf, stamp, sender, person[2], chance)
    data = pdf.tobytes()
    bundle = read_document(
        Path(f"{name}.pdf"), file_bytes=data, doc_id=name, processing_timestamp="2026-01-01T00:00:00Z"
    ).model_copy(update={"sha256": name})
    return Packet(
        bundle, tuple(truth), tuple(records), any(paper.title for paper in papers), tuple(map(_printed_patient, papers))
    )


def _printed_patient(paper: _Paper) -> str:
    return paper.person if paper.block != "none" or paper.strip == "person" else ""


def _person(chance: random.Random) -> tuple[str, str, str]:
    born = f"{chance.randint(1, 12):02}/{chance.randint(1, 28):02}/{chance.randint(1930, 2005)}"
    return f"{chance.choice(_FAMILIES)}, {chance.choice(_GIVEN)}", born, str(chance.randint(1_000_000, 99_999_999))


def _paper(example: LabelledText, person: tuple[str, str, str], sender: str, chance: random.Random) -> _Paper:
    is_report = example.document_type in {PATHOLOGY, GENOMIC, RADIOLOGY}
    house = chance.choice(_LABS).format(chance.choice(_PLACES)) if is_report and chance.random() < 0.5 else sender
    street = f"{chance.randint(10, 9999)} {chance.choice(_STREETS)}"
    phone = f"Tel (555) {chance.randint(100, 999)}-{chance.randint(1000, 9999)}"
    letterhead = chance.choice(([], [house], [house, street], [house, f"{street}  {phone}"], [house, street, phone]))
    dated = f"{chance.randint(1, 12):02}/{chance.randint(1, 28):02}/{chance.randint(2015, 2024)}"
    doctor = f"{chance.choice(_GIVEN)} {chance.choice(_FAMILIES)}, MD"
    name, born, number = person
    accession = f"{chance.choice('SGMR')}{chance.randint(15, 24)}-{chance.randint(1000, 99999)}" if is_report else ""
    is_named = names_somebody(example.text)  # it would be somebody else
    return _Paper(
        kind=example.document_type,
        text=_cut(example.text, chance),
        person=name,
        born=born,
        number=number,
        dated=dated,
        letterhead=letterhead,
        title=chance.choice(_TITLES[example.document_type])
        if chance.random() < TITLED and example.document_type is not OTHER
        else "",
        block="none" if is_named else chance.choice(("lines", "lines", "one", "short", "none")),
        accession=accession if chance.random() < 0.6 else "",
        sign=chance.choice(
            ("", "", f"Electronically signed by {doctor} {dated}", f"Signed: {doctor}", f"Dictated by: {doctor}")
        ),
        strip="" if is_named else chance.choice(("", "", "person", "person", "title")),
        counts=chance.random() < 0.25,
        font=chance.choice(_FONTS),
        size=chance.choice((9.0, 9.5, 10.0, 11.0)),
        margin=chance.choice((48.0, 54.0, 64.0, 72.0)),
        footer=chance.choice(("", "", house, f"{house}  {phone}", "Confidential patient information")),
        ragged=chance.random() < 0.15,
        varied=chance.random() < 0.15,
    )


def names_somebody(text: str) -> bool:
    """Whether a text seems to name its patient."""
    return bool(_IDENTITY.search(text))


def _cut(text: str, chance: random.Random) -> str:
    """A text that is too long begins with its beginning, and is cut between lines."""
    if len(text) <= LONGEST:
        return text
    end = text.rfind("\n", 0, chance.randint(LONGEST // 2, LONGEST))
    return text[: end if end > 0 else LONGEST]


def _first_lines(paper: _Paper) -> list[str]:
    lines = [*paper.letterhead]
    if paper.title:
        lines += ["", paper.title, ""]
    record = f"  Accession: {paper.accession}" if paper.accession else ""
    if paper.block == "lines":
        lines += [
            f"Patient: {paper.person}  DOB: {paper.born}",
            f"MRN: {paper.number}  Date: {paper.dated}{record}",
            "",
        ]
    elif paper.block == "one":
        lines += [f"Patient Name: {paper.person}   MRN: {paper.number}   Date of service: {paper.dated}{record}", ""]
    elif paper.block == "short":
        lines += [f"RE: {paper.person}", paper.dated + record, ""]
    elif record:
        lines += [record.strip(), ""]
    return lines


def _draw(pdf: pymupdf.Document, paper: _Paper) -> None:
    across = int((WIDTH - 2 * paper.margin) / (paper.size * (0.6 if paper.font == "cour" else 0.47)))
    lines = _first_lines(paper)
    for line in paper.text.split("\n"):
        lines += textwrap.wrap(line, across) or [""]
    if paper.sign:
        lines += ["", paper.sign]
    leading = paper.size * 1.25
    room = int((HEIGHT - 2 * 60) / leading * (0.6 if paper.ragged else 1))
    pages = [lines[:room]]
    rest = lines[room:]
    head = {"person": f"{paper.person}  MRN: {paper.number}  DOB: {paper.born}", "title": paper.title or paper.person}
    while rest:
        pages.append(rest[: room - 2])
        rest = rest[room - 2 :]
    for number, page_lines in enumerate(pages, 1):
        page = pdf.new_page(width=WIDTH, height=HEIGHT)
        size = paper.size - 1.5 if paper.varied and number > 1 else paper.size
        top = [head[paper.strip], ""] if number > 1 and paper.strip else []
        for row, line in enumerate([*top, *page_lines]):
            if line.strip():
                bold = {"helv": "hebo", "tiro": "tibo", "cour": "cobo"}[paper.font]
                is_head = line in {paper.title, *paper.letterhead[:1]} or (line.endswith(":") and len(line) < 50)
                page.insert_text(
                    (paper.margin, 60 + row * leading), line, fontname=bold if is_head else paper.font, fontsize=size
                )
        if paper.counts:
            page.insert_text((WIDTH - 140, HEIGHT - 24), f"Page {number} of {len(pages)}", fontsize=8)
        if paper.footer:
            page.insert_text((paper.margin, HEIGHT - 24), paper.footer, fontsize=8)


def _cover(pdf: pymupdf.Document, sender: str, chance: random.Random) -> None:
    page = pdf.new_page(width=WIDTH, height=HEIGHT)
    lines = [
        sender, "", chance.choice(("FAX COVER SHEET", "FACSIMILE TRANSMITTAL", "Fax")), "",
        f"To: Dr. {chance.choice(_FAMILIES)}", f"From: {sender}, Medical Records", "Fax: (555) 010-2000",
        f"Number of pages including this sheet: {chance.randint(2, 20)}", "",
        "This transmission is intended for the addressee only. If you have received it in error, please destroy it",
        "and notify the sender.",
    ]  # fmt: skip
    for row, line in enumerate(lines):
        page.insert_text((64, 80 + 16 * row), line, fontsize=11)


def _stamp(pdf: pymupdf.Document, stamp: str, sender: str, number: str, chance: random.Random) -> None:
    shift = chance.choice((0, 0, chance.randint(1, 30)))
    for at, page in enumerate(pdf, 1):
        if stamp == "count":
            page.insert_text((270, HEIGHT - 40), f"Page {at + shift} of {len(pdf) + shift}", fontsize=8)
        elif stamp == "fax":
            line = f"02/03/2024 09:{at:02}  FROM: {sender.upper()}  TO: (555) 010-2000  P.{at + shift:03}/{len(pdf) + shift:03}"
            page.insert_text((40, 20), line, fontname="cour", fontsize=8)
        elif stamp == "number":
            page.insert_text((400, 20), f"MRN: {number}  {at:04}", fontsize=8)
