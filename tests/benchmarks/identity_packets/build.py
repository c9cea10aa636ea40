"""Draw 150 packets of a half, with the truth of every page.

    cd tests && python -m benchmarks.identity_packets.build FOLDER --data DATA_FOLDER --half open|sealed|c|d|e|f|g|h_open|h_sealed [--count N]

FOLDER gets the PDFs and `truth.jsonl`, one line a packet: `pages` tell what is printed on each page (name, birth date and numbers as printed,
or null), `documents` who each document is about, `expected` what the packet is: `one` person, `several` persons in documents of their own,
or `mixed` (a page of another person inside a document; `foreign_pages`). A document with a foreign page inside is listed from its first to
its last page, and the foreign page once more as a document of its own. Where family and given name stand in cells of their own, `name` holds both with a comma
between. `number_kinds` runs parallel to `numbers`. A page without name is still of the document's person.
The same half is the same packet by packet, whatever the count. `c` to `g` have layouts and persons of their own under the texts of the
sealed, the open, the sealed, the open and the sealed half. `h_open` and `h_sealed` have persons and layouts of their own under the texts of
the open and the sealed half.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pymupdf

from .bodies import Body, read_bodies
from .drawing import Document, Layout, Sheet, check_sheet, draw_setting, lay_out, squeeze
from .fax import send
from .persons import VARIANTS, Card, Institution, Person, draw_day, draw_namesake, draw_person

SEED = 20251
# The module of layouts and the half of the texts that each half draws from.
HALVES = {
    "open": ("layouts_open", "open"),
    "sealed": ("layouts_sealed", "sealed"),
    "c": ("layouts_c", "sealed"),
    "d": ("layouts_d", "open"),
    "e": ("layouts_e", "sealed"),
    "f": ("layouts_f", "open"),
    "g": ("layouts_g", "sealed"),
    "h_open": ("layouts_h_open", "open"),
    "h_sealed": ("layouts_h_sealed", "sealed"),
}
KINDS = {
    "two_persons_separate": (20, 10),
    "foreign_page_inside": (16, 8),
    "same_name_other_birth_date": (16, 8),
    "one_person_variants": (35, 17),
    "one_person_plain": (13, 7),
}
EXPECTED = {
    "two_persons_separate": "several",
    "foreign_page_inside": "mixed",
    "one_person_variants": "one",
    "one_person_plain": "one",
}
TYPES = ("Clinical Note",) * 5 + ("Radiology Report",) * 4 + ("Pathology Report",) * 2 + ("Genomic Report", "Other")


def plan(half: str) -> list[tuple[str, bool]]:
    """Kind and fax of each packet of the half, in a fixed shuffled order."""
    packets = [(kind, at >= text) for kind, (text, faxes) in KINDS.items() for at in range(text + faxes)]
    random.Random(f"{SEED} {half}").shuffle(packets)
    return packets


class Packet:
    """Draws the documents of one packet."""

    def __init__(self, half: str, at: int, kind: str, fax: bool, bodies: dict[str, list[Body]]):
        self.half, self.kind, self.fax, self.bodies = half, kind, fax, bodies
        self.words: ModuleType = import_module(f".{HALVES[half][0]}", __package__)
        self.rng = random.Random(f"{SEED} {half} {at}")
        self.institutions = [Institution(*row) for row in self.rng.sample(self.words.POOL.institutions, 4)]
        self.taken: set[str] = set()
        self.records: set[str] = set()
        self.fitting: list[Layout] = []
        self.documents: list[Document] = []
        self.order: list[tuple[Document, Sheet]] = []
        self.foreign: list[int] = []

    def draw_person(self, sex: str | None = None, child: bool = False) -> Person:
        return draw_person(self.rng, self.words.POOL, self.taken, sex, child)

    def draw_layout(self, person: Person, full: bool = False) -> Layout:
        """Layouts come round: each is used before any is used again."""

        def suits(layout: Layout) -> bool:
            return (person.adult or not layout.grown_only) and (not full or layout.every_page)

        if not any(suits(layout) for layout in self.fitting):
            self.fitting = list(self.words.LAYOUTS)
            self.rng.shuffle(self.fitting)
        layout = next(layout for layout in self.fitting if suits(layout))
        self.fitting.remove(layout)
        return layout

    def draw_card(
        self, person: Person, institution: Institution, variant: str | None = None, short_middle: bool = True
    ) -> Card:
        rng = self.rng
        seen = draw_day(rng, 2022, 2025)
        return Card(
            person,
            institution,
            seen,
            rng,
            variant,
            short_middle,
            account=str(rng.randint(10**9, 10**10 - 1)),
            accession=f"{rng.choice('GSXR')}{seen.year % 100}-{rng.randint(10000, 99999)}",
            visit=f"V{rng.randint(10**7, 10**8 - 1)}",
        )

    def draw_body(self, person: Person, kind: str, age: int) -> list[str]:
        fit = [
            body
            for body in self.bodies[kind]
            if body.record not in self.records and body.sex in (None, person.sex) and (person.adult or body.neutral)
        ]
        if not fit:
            return []
        body = self.rng.choice(fit)
        self.records.add(body.record)
        return body.speak_of(age)

    def draw_tests(self) -> list[str]:
        rng, lines = self.rng, []
        for name, unit, low, high in rng.sample(self.words.TESTS, rng.randint(8, len(self.words.TESTS))):
            seen = rng.uniform(low * 0.9, high * 1.1)
            flag = "L" if seen < low else "H" if seen > high else ""
            lines.append(f"{name} {seen:.1f} {flag} {unit} ({low} - {high})".replace("  ", " "))
        return lines

    def write_document(
        self,
        person: Person,
        mark: str,
        institution: Institution | None = None,
        layout: Layout | None = None,
        variant: str | None = None,
        least: int = 1,
        most: int = 3,
        full: bool = False,
        short_middle: bool = True,
    ) -> Document:
        rng, words = self.rng, self.words
        institution = institution or rng.choice(self.institutions)
        layout = layout or self.draw_layout(person, full)
        card = self.draw_card(person, institution, variant, short_middle)
        kind = (
            "Other"
            if layout.body != "text"
            else rng.choice(layout.types or (TYPES if layout.name != "named_in_text" else TYPES[:9]))
        )
        if layout.grown_only and kind == "Other":
            kind = "Clinical Note"
        if not person.adult and kind != "Other":
            kind = "Radiology Report"
        if layout.body == "laboratory" and least > 1:
            least = 1
        wished = kind
        setting = draw_setting(rng, words.POOL, card, rng.choice(words.TITLES[kind]), self.half)
        signature = rng.choice(words.SIGNATURES).format(setting.clinicians[rng.choice((0, 2))], setting.seen)
        if layout.body == "laboratory":
            paragraphs = self.draw_tests()
            signature = words.LABORATORY_SIGNATURE.format(setting.clinicians[3], setting.seen)
        elif layout.body == "cover":
            paragraphs, signature = list(words.COVER_TEXT), ""
        else:
            kind, paragraphs = next(
                (other, found)
                for other in (kind, "Radiology Report", "Other")
                if (found := self.draw_body(person, other, card.age))
            )
            setting.title = setting.title if kind == wished else rng.choice(words.TITLES[kind])
        while True:
            before = rng.getstate()
            document = lay_out(layout, setting, kind, paragraphs, most, signature)
            if len(document.sheets) >= least:
                break
            rng.setstate(before)
            more = (
                self.draw_body(person, kind, card.age)
                or self.draw_body(person, "Clinical Note", card.age)
                or self.draw_body(person, "Radiology Report", card.age)
            )
            if not more:
                raise ValueError("no text left for so long a document")
            paragraphs = [*paragraphs, "ADDENDUM", *more]
        if (
            self.kind == "same_name_other_birth_date"
            and layout.body != "cover"
            and not any(is_numbered(sheet) for sheet in document.sheets)
        ):
            return self.write_document(person, mark, institution, None, variant, least, most, full, short_middle)
        document.person = mark
        self.documents.append(document)
        return document

    def put(self, document: Document) -> None:
        self.order += [(document, sheet) for sheet in document.sheets]

    def put_around(self, host: Document, sheet: Sheet, stranger: Document) -> None:
        """The host's pages with one page of the stranger's between them, where the host is named before and after."""
        places = [
            at for at in range(1, len(host.sheets)) if is_named(host.sheets[at - 1]) and is_named(host.sheets[at])
        ] or [1]
        place = self.rng.choice(places)
        start = len(self.order)
        self.order += (
            [(host, own) for own in host.sheets[:place]]
            + [(stranger, sheet)]
            + [(host, own) for own in host.sheets[place:]]
        )
        self.foreign.append(start + place + 1)

    def draw(self) -> None:
        getattr(self, f"draw_{self.kind}")()
        if self.rng.random() < (0.35 if self.fax else 0.12) and not self.foreign:
            first = self.documents[0]
            cover = self.write_document(
                first.setting.card.person,
                "A",
                first.setting.card.institution,
                self.words.COVER,
                most=1,
                short_middle=first.setting.card.short_middle,
            )
            self.order = [(cover, cover.sheets[0]), *self.order]

    def draw_two_persons_separate(self) -> None:
        rng = self.rng
        child = rng.random() < 0.15
        persons = [self.draw_person(child=child), self.draw_person()]
        marks = [0, 1] if rng.random() < 0.6 else rng.choice(([0, 0, 1], [0, 1, 1], [0, 1, 0], [0, 1, 2]))
        if 2 in marks:
            persons.append(self.draw_person())
        shared = rng.choice(self.institutions) if rng.random() < 0.6 else None
        for mark in marks:
            self.put(self.write_document(persons[mark], "ABC"[mark], shared))

    def insert_page(self, first: Person, second: Person, shared: Institution) -> None:
        rng = self.rng
        if rng.random() < 0.25:
            self.put(self.write_document(first, "A", shared, most=2))
        host = self.write_document(first, "A", shared, least=3, most=5, full=True)
        other = (
            shared if rng.random() < 0.7 or self.kind == "same_name_other_birth_date" else rng.choice(self.institutions)
        )
        alike = host.layout if rng.random() < 0.5 else None
        stranger = self.write_document(second, "B", other, alike, least=2 if alike else 1, most=3)
        told = [
            sheet
            for sheet in stranger.sheets
            if (is_numbered if self.kind == "same_name_other_birth_date" else is_named)(sheet)
        ]
        self.put_around(host, rng.choice(told), stranger)

    def draw_foreign_page_inside(self) -> None:
        self.insert_page(self.draw_person(), self.draw_person(), self.rng.choice(self.institutions))

    def draw_same_name_other_birth_date(self) -> None:
        rng = self.rng
        other_sex = rng.random() < 0.3
        first = self.draw_person()
        if other_sex:
            first = replace(first, given=rng.choice(self.words.POOL.unisex), middle="", suffix="")
        second = draw_namesake(rng, first, {"F": "M", "M": "F"}[first.sex] if other_sex else None)
        shared = rng.choice(self.institutions)
        if rng.random() < 0.5:
            self.insert_page(first, second, shared)
        else:
            marks = rng.choice(([0, 1], [0, 1], [0, 1, 0], [0, 0, 1]))
            for mark in marks:
                self.put(self.write_document((first, second)[mark], "AB"[mark], shared))

    def draw_one_person_variants(self) -> None:
        rng = self.rng
        wanted = rng.choice([name for name in VARIANTS if not (self.fax and name == "misread")])
        person = self.draw_person(sex="F" if wanted == "married" else "M" if wanted == "suffix" else None)
        if wanted == "suffix" and not person.suffix:
            person = replace(person, suffix=rng.choice(("Jr.", "Sr.", "II")))
        if wanted == "middle" and not person.middle:
            person = replace(
                person, middle=rng.choice(self.words.POOL.women if person.sex == "F" else self.words.POOL.men)[0]
            )
        several = rng.random() < 0.6
        count = rng.choice((2, 2, 3, 3, 4))
        odd = rng.randrange(1, count)
        spare = ["middle", "capitals", "birth_format", "nickname", None, None]
        for at in range(count):
            variant = None if at == 0 else wanted if at == odd else rng.choice(spare)
            institution = self.institutions[at] if several else self.institutions[0]
            self.put(self.write_document(person, "A", institution, variant=variant, most=2))

    def draw_one_person_plain(self) -> None:
        rng = self.rng
        person = self.draw_person(child=rng.random() < 0.2)
        institution = rng.choice(self.institutions)
        for _ in range(rng.choice((1, 2, 2, 3))):
            self.put(self.write_document(person, "A", institution, most=4))

    def tell_pages(self) -> list[dict]:
        numbers = {id(document): at for at, document in enumerate(self.list_documents(), start=1)}
        return [
            {
                "page": page,
                "person": document.person,
                "document": numbers[id(document)],
                "type": document.type,
                "name": sheet.printed_name,
                "birth_date": sheet.printed_birth,
                "numbers": sheet.numbers,
                "number_kinds": sheet.number_kinds,
                "layout": document.layout.name,
            }
            for page, (document, sheet) in enumerate(self.order, start=1)
        ]

    def list_documents(self) -> list[Document]:
        listed: list[Document] = []
        for document, _ in self.order:
            if document not in listed:
                listed.append(document)
        return listed

    def tell_documents(self) -> list[dict]:
        spans = []
        for document in self.list_documents():
            pages = [at for at, (owner, _) in enumerate(self.order, start=1) if owner is document]
            spans.append(
                {"start_page": pages[0], "end_page": pages[-1], "type": document.type, "person": document.person}
            )
        return spans

    def check(self) -> None:
        """Every page must say what the truth says, and no page may name the other persons of the packet."""
        persons = {document.person: document.setting.card.person for document in self.documents}
        for document, sheet in self.order:
            check_sheet(sheet)
            text = squeeze(sheet.page.get_text())
            for mark, person in persons.items():
                others = {person.numbers.get(place.name) for place in self.institutions} - {None}
                if mark != document.person and (
                    any(number in text for number in others)
                    or (
                        person.family != document.setting.card.person.family
                        and squeeze(f"{person.given}{person.family}") in text
                    )
                ):
                    raise ValueError(f"page of {document.person} shows {mark}")
        if EXPECTED.get(self.kind) in ("several", "mixed") or len(persons) > 1:
            for document in self.list_documents():
                if document.layout.body != "cover" and not any(
                    is_named(sheet) for owner, sheet in self.order if owner is document
                ):
                    raise ValueError("a document of several persons shows no name with birth date")
                if (
                    self.kind == "same_name_other_birth_date"
                    and document.layout.body != "cover"
                    and not any(is_numbered(sheet) for owner, sheet in self.order if owner is document)
                ):
                    raise ValueError("a namesake's document shows no record number")

    def save(self, path: Path) -> None:
        pdf = pymupdf.open()
        for document, sheet in self.order:
            pdf.insert_pdf(document.pdf, from_page=sheet.number - 1, to_page=sheet.number - 1)
        if self.fax:
            rng = self.rng
            day = max(document.setting.card.seen for document in self.documents) + timedelta(days=rng.randint(1, 20))
            header = (
                f"{day:%b %d %Y}  {rng.randint(7, 18):02}:{rng.randint(0, 59):02}   {rng.choice(self.words.FAX_SENDERS)}   555 {rng.randint(200, 999)} "
                f"{rng.randint(1000, 9999)}    P.{{page}}/{{pages}}"
            )
            pdf = send(pdf, header.replace(f"{day:%b}", f"{day:%b}".upper()), rng, gray=rng.random() < 0.4)
        pdf.set_metadata({})
        pdf.save(path, deflate=True, garbage=3, no_new_id=True)


def is_named(sheet: Sheet) -> bool:
    return sheet.printed_name is not None and sheet.printed_birth is not None


def is_numbered(sheet: Sheet) -> bool:
    return is_named(sheet) and "record" in sheet.number_kinds


def build(folder: Path, texts: Path, half: str, count: int | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    bodies = read_bodies(texts, HALVES[half][1])
    with (folder / "truth.jsonl").open("w", encoding="utf-8") as truth:
        for at, (kind, fax) in enumerate(plan(half)[:count], start=1):
            packet = Packet(half, at, kind, fax, bodies)
            packet.draw()
            packet.check()
            name = f"{half}_{at:03}.pdf"
            packet.save(folder / name)
            expected = EXPECTED.get(kind) or ("mixed" if packet.foreign else "several")
            truth.write(
                json.dumps(
                    {
                        "file": name,
                        "kind": kind,
                        "fax": fax,
                        "pages": packet.tell_pages(),
                        "documents": packet.tell_documents(),
                        "expected": expected,
                        "foreign_pages": packet.foreign,
                    },
                    ensure_ascii=False,
                )
                + "\n"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw packets with known identities.")
    parser.add_argument("folder", type=Path, help="where the PDFs and truth.jsonl go")
    parser.add_argument(
        "--data", dest="texts", type=Path, required=True, help="the folder that holds clinical_text.jsonl"
    )
    parser.add_argument("--half", choices=tuple(HALVES), required=True)
    parser.add_argument("--count", type=int, help="only the first so many packets")
    options = parser.parse_args()
    build(options.folder, options.texts, options.half, options.count)


if __name__ == "__main__":
    main()
