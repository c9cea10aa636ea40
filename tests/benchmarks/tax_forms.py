"""How many of the values on tax forms are read right: the forms of ../shared/data/tax, and redrawn ones of made-up people.

    PYTHONPATH=tests python tests/benchmarks/tax_forms.py [--forms 60] [--seed 0] [--scans 0.6] [--wrong] [--loop 120]

Redrawn forms have the labels of the official ones and boxes of other sizes in other places, other fonts, with borders or
without; a share of them is printed, put on a scanner a little askew, and scanned with 150 to 200 dpi. A value is right if
it is equal after normalising. A value that the form does not have is invented, whatever it says.

With ``--loop``, the loop as an ablation: the first attempt beside what was kept of up to three. The scripted model's gain is
what its table makes of it: it shows that feedback arrives and that nothing is lost on the way, not how good any model is.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pymupdf
from benchmarks.reliability import interval, share
from PIL import Image, ImageFilter
from rich.console import Console
from rich.table import Table

from evalkit.documents.bundle import DocumentBundle
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.evaluation.intervals import estimate_proportion
from evalkit.extraction.extraction_schema import Extraction, FieldStatus, FieldValue
from evalkit.extraction.field_template import get_field_template
from evalkit.extraction.form_filling import FormFieldExtractor
from evalkit.extraction.forms.form_extractor import FormAnswer, FormQuestion, PlacedFormField
from evalkit.llm.embedded import EmbeddedModel
from evalkit.llm.model import Answer, AnswerT, Model, Question, Usage

SHARED = Path(os.environ.get("EVALKIT_SHARED", Path(__file__).parents[2].parent / "shared")) / "data" / "tax"

# ---------------------------------------------------------------------------------------------- made-up people

FIRST = ("Dana", "Miguel", "Priya", "Tom", "Aisha", "Kenji", "Olga", "Ruth", "Liam", "Noor", "Hans", "Grace")
LAST = ("Whitfield", "Ortega", "Raman", "Novak", "Bello", "Tanaka", "Petrov", "Klein", "O'Dell", "Haddad", "Berg")
FIRM = ("Cobalt", "Harbor", "Juniper", "Summit", "Redwood", "Lakeside", "Ironbridge", "Bluefin", "Maple", "Orchard")
TRADE = ("Logistics LLC", "Dental Group", "Savings Bank", "Consulting Inc.", "Foods Co.", "Partners LP", "Credit Union")
STREET = ("Elm St", "Mill Road", "Harbor Avenue", "2nd Street NW", "Cedar Lane", "Union Blvd", "Quarry Drive")
CITY = ("Salem, OR 97301", "Akron, OH 44308", "Boise ID 83702", "Tulsa, OK 74103", "Dover DE 19901", "Macon, GA 31201")


@dataclass
class Person:
    name: str
    street: str
    city: str
    tin: str


def person(rng: random.Random, *, firm: bool) -> Person:
    name = f"{rng.choice(FIRM)} {rng.choice(TRADE)}" if firm else f"{rng.choice(FIRST)} {rng.choice(LAST)}"
    digits = "".join(rng.choice("0123456789") for _ in range(9))
    tin = f"{digits[:2]}-{digits[2:]}" if firm else f"{digits[:3]}-{digits[3:5]}-{digits[5:]}"
    if not firm and rng.random() < 0.15:
        tin = f"{rng.choice(('***', 'XXX'))}-{'**' if '*' in tin else 'XX'}-{digits[5:]}".replace("XXX-**", "XXX-XX")
        tin = tin.replace("***-XX", "***-**")
    return Person(name, f"{rng.randint(2, 9800)} {rng.choice(STREET)}", rng.choice(CITY), tin)


def amount(rng: random.Random, *, most: int = 90_000) -> str:
    cents = rng.randint(100, most * 100)
    value = Decimal(cents) / 100
    style = rng.random()
    if style < 0.15:
        return f"{int(value)}"
    return f"{value:,.2f}" if style < 0.8 else f"{value:.2f}"


#: Amounts that are a part of another one on their form.
PARTS = {
    "1099-DIV": {"qualified_dividends": "total_dividends", "box_2b": "box_2a", "box_2d": "box_2a"},
    "1099-INT": {"box_9": "box_8"},
    "1099-NEC": {"federal_tax_withheld": "nonemployee_compensation"},
    "K-1": {"box_6b": "box_6a"},
}


def plausible(kind: str, name: str, value: str, truth: dict[str, str]) -> str:
    """The amount, or a smaller one where it would exceed what it is a part of; a total is its parts' sum."""

    def of(text: str) -> Decimal:
        return Decimal(normal(kind, name, text)) if text else Decimal(0)

    if (kind, name) == ("K-1", "box_4c") and value and truth["box_4a"] and truth["box_4b"]:
        return f"{of(truth['box_4a']) + of(truth['box_4b']):,.2f}"
    whole = truth.get(PARTS.get(kind, {}).get(name, ""), "")
    if value and whole and of(value) > of(whole):
        return f"{of(whole) * (Decimal('0.4') if of(whole) > 0 else Decimal('1.4')):,.2f}"
    return value


# ------------------------------------------------------------------------------------------------------- forms


@dataclass
class Box:
    label: str
    value: str = ""
    lines: tuple[str, ...] = ()
    number: str = ""
    is_amount: bool = False


@dataclass
class Drawing:
    form: str
    title: tuple[str, str]
    year: str
    left: list[Box]
    right: list[Box]
    truth: dict[str, str]
    notice: str = ""


NOTICE = (
    "This is important tax information and is being furnished to the IRS. If you are required to file a return, a"
    " negligence penalty or other sanction may be imposed on you if this income is taxable and the IRS determines that"
    " it has not been reported."
)


def form_1099(rng: random.Random, kind: str) -> Drawing:
    payer, payee = person(rng, firm=True), person(rng, firm=False)
    known = get_field_template(kind)
    truth = {
        "payer_name": ", ".join((payer.name, payer.street, payer.city)),
        "payer_tin": payer.tin,
        "recipient_tin": payee.tin,
        "recipient_name": payee.name,
        "recipient_street": payee.street,
        "recipient_city": payee.city,
        "account_number": str(rng.randint(10**6, 10**10)) if rng.random() < 0.5 else "",
        "tax_year": str(rng.randint(2018, 2024)),
    }
    left = [
        Box(known.get_field("payer_name").labels[0], lines=(payer.name, payer.street, payer.city)),  # type: ignore[union-attr]
        Box("PAYER'S TIN", payer.tin),
        Box("RECIPIENT'S TIN", payee.tin),
        Box("RECIPIENT'S name", payee.name),
        Box("Street address (including apt. no.)", payee.street),
        Box("City or town, state or province, country, and ZIP or foreign postal code", payee.city),
        Box("Account number (see instructions)", truth["account_number"]),
    ]
    right = []
    for one in known.fields:
        if not one.box or one.format != "currency":
            continue
        must = one.need.value == "required"
        value = amount(rng) if must or rng.random() < 0.45 else ""
        if value and kind != "1099-NEC" and rng.random() < 0.04:
            value = f"({value})"
        value = plausible(kind, one.name, value, truth)
        right.append(Box(one.labels[0], value, number=one.box, is_amount=True))
        truth[one.name] = value
    titles = {
        "1099-NEC": "Nonemployee Compensation",
        "1099-INT": "Interest Income",
        "1099-DIV": "Dividends and Distributions",
        "1099-MISC": "Miscellaneous Income",
    }
    return Drawing(kind, (kind, titles[kind]), truth["tax_year"], left, right, truth, NOTICE)


def form_w2(rng: random.Random) -> Drawing:
    employer, employee = person(rng, firm=True), person(rng, firm=False)
    wages = Decimal(rng.randint(8_000_00, 140_000_00)) / 100
    shown = {
        "wages_tips": wages,
        "federal_tax_withheld": wages * Decimal("0.11"),
        "ss_wages": wages,
        "ss_tax_withheld": wages * Decimal("0.062"),
        "medicare_wages": wages,
        "medicare_tax_withheld": wages * Decimal("0.0145"),
    }
    truth = {name: f"{value:,.2f}" for name, value in shown.items()}
    truth |= {
        "employee_ssn": employee.tin,
        "employer_ein": employer.tin,
        "employer_name": employer.name,
        "employer_address": f"{employer.street}, {employer.city}",
        "employee_name": employee.name,
        "employee_address": f"{employee.street}, {employee.city}",
        "control_number": "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(6))
        if rng.random() < 0.6
        else "",
        "tax_year": str(rng.randint(2018, 2024)),
    }
    left = [
        Box("Employee's social security number", employee.tin, number="a"),
        Box("Employer identification number (EIN)", employer.tin, number="b"),
        Box(
            "Employer's name, address, and ZIP code", lines=(employer.name, employer.street, employer.city), number="c"
        ),
        Box("Control number", truth["control_number"], number="d"),
        Box("Employee's first name and initial", lines=(employee.name, employee.street, employee.city), number="e"),
    ]
    right = []
    for one in get_field_template("W-2").fields:
        if not one.box[:1].isdigit() or one.format != "currency" or int(one.box) > 14:
            continue
        value = truth.get(one.name, "")
        if one.need.value == "extra":
            value = amount(rng, most=4000) if rng.random() < 0.25 and one.name != "box_7" else ""
        truth[one.name] = value
        right.append(Box(one.labels[0], value, number=one.box, is_amount=True))
    return Drawing("W-2", ("W-2", "Wage and Tax Statement"), truth["tax_year"], left, right, truth)


def form_k1(rng: random.Random) -> Drawing:
    firm, partner = person(rng, firm=True), person(rng, firm=False)
    truth = {
        "partnership_ein": firm.tin,
        "partnership_name": firm.name,
        "partnership_address": f"{firm.street}, {firm.city}",
        "partner_tin": partner.tin,
        "partner_name": partner.name,
        "partner_address": f"{partner.street}, {partner.city}",
        "tax_year": str(rng.randint(2018, 2024)),
    }
    left = [
        Box("Partnership's employer identification number", firm.tin, number="A"),
        Box(
            "Partnership's name, address, city, state, and ZIP code",
            lines=(firm.name, firm.street, firm.city),
            number="B",
        ),
        Box(
            "Partner's SSN or TIN (Do not use TIN of a disregarded entity. See instructions.)", partner.tin, number="E"
        ),
        Box(
            "Name, address, city, state, and ZIP code for partner entered in E. See instructions.",
            lines=(partner.name, partner.street, partner.city),
            number="F",
        ),
    ]
    right = []
    for one in get_field_template("K-1").fields:
        if not one.box[:1].isdigit() or one.format != "currency" or one.name == "box_4":
            continue
        value = amount(rng) if one.name == "ordinary_income" or rng.random() < 0.4 else ""
        if value and rng.random() < 0.15:
            value = f"({value})" if rng.random() < 0.5 else f"-{value}"
        value = plausible("K-1", one.name, value, truth)
        truth[one.name] = value
        right.append(Box(one.labels[0], value, number=one.box, is_amount=True))
    return Drawing(
        "K-1",
        ("Schedule K-1", "Partner's Share of Income, Deductions, Credits, etc."),
        truth["tax_year"],
        left,
        right,
        truth,
    )


def form(rng: random.Random, number: int) -> Drawing:
    kind = ("W-2", "1099-NEC", "1099-INT", "1099-DIV", "1099-MISC", "K-1")[number % 6]
    if kind == "W-2":
        return form_w2(rng)
    return form_k1(rng) if kind == "K-1" else form_1099(rng, kind)


# ----------------------------------------------------------------------------------------------------- drawing


class Canvas:
    def __init__(self, page: Any, rng: random.Random) -> None:
        self.page = page
        self.print = rng.choice(("helv", "helv", "tiro"))
        self.entry = rng.choice(("helv", "cour", "tiro", "hebo"))
        self.small = rng.uniform(5.8, 7.6)
        self.large = rng.uniform(8.0, 10.5)
        self.align = rng.choice(("left", "right", "middle"))
        self.dollar = rng.random() < 0.5
        self.border = rng.choice((0.7, 0.7, 0.4, 0.0))
        self.ink = rng.choice(((0, 0, 0), (0, 0, 0), (0.1, 0.1, 0.5)))
        self.rng = rng

    def text(self, x: float, y: float, text: str, size: float, font: str, color: Any = (0, 0, 0)) -> None:
        self.page.insert_text((x, y), text, fontsize=size, fontname=font, color=color)

    def wrapped(self, x: float, y: float, width: float, text: str, size: float) -> float:
        line = ""
        for word in text.split():
            longer = f"{line} {word}".strip()
            if line and pymupdf.get_text_length(longer, self.print, size) > width:
                self.text(x, y, line, size, self.print)
                y, line = y + size * 1.15, word
            else:
                line = longer
        self.text(x, y, line, size, self.print)
        return y

    def box(self, box: Box, x: float, y: float, width: float, height: float) -> None:
        if self.border:
            self.page.draw_rect(pymupdf.Rect(x, y, x + width, y + height), width=self.border)
        at = x + 3
        if box.number:
            self.text(at, y + self.small + 2, box.number, self.small, "hebo")
            at += self.small * (0.6 * len(box.number) + 0.8)
        end = self.wrapped(at, y + self.small + 2, x + width - at - 2, box.label, self.small)
        lines = box.lines or ((box.value,) if box.value else ())
        step = self.large * 1.25
        room = y + height - end - 3
        first = y + height - 4 - step * (len(lines) - 1) - self.rng.uniform(0, max(room - step * len(lines), 0)) * 0.6
        if box.is_amount and self.dollar:
            self.text(x + 3, y + height - 4, "$", self.large, self.print)
            first = y + height - 4
        for number, line in enumerate(lines):
            long = pymupdf.get_text_length(line, self.entry, self.large)
            left = {"left": x + 14, "right": x + width - 4 - long, "middle": x + (width - long) / 2}[
                self.align if box.is_amount else "left"
            ]
            self.text(max(left, x + 10 * box.is_amount), first + step * number, line, self.large, self.entry, self.ink)


def draw(one: Drawing, rng: random.Random, page: Any, top: float = 40.0) -> None:
    """The form: two blocks of boxes beside each other, a title above or below."""
    canvas = Canvas(page, rng)
    x0, width = rng.uniform(28, 50), rng.uniform(490, 530)
    share = rng.uniform(0.42, 0.52)
    columns = 2
    rows = -(-len(one.right) // columns)
    height = rng.uniform(27, 34) if rows < 12 else rng.uniform(26, 29)
    if any(len(box.label) > 55 for box in one.right):
        height = max(height, 34)
    block = max(height * rows, 300 if len(one.left) > 5 else 230)
    height = min(block / rows, 46.0)
    title_above = one.form != "W-2" or rng.random() < 0.3
    y = top + (42 if title_above else 0)
    notice = one.notice and rng.random() < 0.5
    form_width = width * (0.84 if notice else 1.0)
    right_first = rng.random() < 0.15
    left_width = form_width * share
    left_x = x0 + (form_width - left_width if right_first else 0)
    right_x = x0 if right_first else x0 + left_width
    weights = [3.0 if box.lines else 1.25 if len(box.label) > 60 else 1.0 for box in one.left]
    at = y
    number = 0
    while number < len(one.left):
        box = one.left[number]
        high = block * weights[number] / sum(weights) if "TIN" not in box.label or one.form == "K-1" else height
        if box.label == "PAYER'S TIN":
            canvas.box(box, left_x, at, left_width / 2, high)
            canvas.box(one.left[number + 1], left_x + left_width / 2, at, left_width / 2, high)
            number += 1
        else:
            canvas.box(box, left_x, at, left_width, high)
        at += high
        number += 1
    wide = (form_width - left_width) / columns
    for number, box in enumerate(one.right):
        canvas.box(box, right_x + wide * (number % columns), y + height * (number // columns), wide, height)
    if notice:
        canvas.wrapped(x0 + form_width + 4, y + 60, width - form_width - 6, one.notice, 6)
    line = top + 16 if title_above else y + block + 22
    form_word = "" if one.form == "K-1" else "Form"
    canvas.text(x0, line, form_word, 7, canvas.print)
    canvas.text(x0 + 20, line, one.title[0], 15, "hebo")
    canvas.text(x0 + 130, line, one.title[1], 10, "hebo")
    long = pymupdf.get_text_length(one.title[1], "hebo", 10)
    canvas.text(
        max(x0 + width - rng.uniform(60, 120), x0 + 150 + long),
        line + rng.uniform(-2, 4),
        one.year,
        rng.uniform(14, 20),
        "helv",
    )
    canvas.text(x0, line + 13, "Department of the Treasury - Internal Revenue Service", 6.5, canvas.print)


def scanned(pdf: bytes, rng: random.Random) -> bytes:
    """Printed and scanned: askew, grey, a little blurred, as JPEG."""
    out = pymupdf.open()
    for page in pymupdf.open(stream=pdf):
        pixmap = page.get_pixmap(dpi=rng.choice((150, 170, 200)))
        image = Image.frombytes("RGB", (pixmap.width, pixmap.height), pixmap.samples).convert("L")
        image = image.rotate(rng.uniform(-1.8, 1.8), fillcolor=255, resample=Image.Resampling.BICUBIC)
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.6)))
        noise = Image.effect_noise(image.size, rng.uniform(6, 22))
        image = Image.blend(image, noise, rng.uniform(0.03, 0.09))
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=rng.randint(60, 85))
        made = out.new_page(width=page.rect.width, height=page.rect.height)
        made.insert_image(made.rect, stream=buffer.getvalue())
    data: bytes = out.tobytes()
    return data


def redrawn(number: int, seed: int, scans: float) -> tuple[bytes, Drawing, bool]:
    """One variant: its PDF, what is on it, whether it is a scan."""
    rng = random.Random(f"{seed}:{number}")
    one = form(rng, number)
    document = pymupdf.open()
    draw(one, rng, document.new_page(width=612, height=792), rng.uniform(30, 70))
    data: bytes = document.tobytes()
    is_scan = rng.random() < scans
    return (scanned(data, rng) if is_scan else data), one, is_scan


# --------------------------------------------------------------------------------------------------- measuring


@dataclass
class Score:
    right: int = 0
    labelled: int = 0
    invented: int = 0
    typed: int = 0
    forms: int = 0
    accepted: int = 0
    accepted_wrong: int = 0
    wrong: Counter[str] = field(default_factory=Counter)

    def told(self, name: str) -> str:
        found = estimate_proportion(self.right, self.labelled)
        return (
            f"{name}: values {self.right}/{self.labelled} = {self.right / max(self.labelled, 1):.3f}"
            f" [{found.low:.3f}, {found.high:.3f}], invented {self.invented}, typed {self.typed}/{self.forms},"
            f" accepted {self.accepted} of which with a wrong value {self.accepted_wrong}"
        )


def normal(form_name: str, name: str, value: str) -> str:
    known = get_field_template(form_name).get_field(name)
    made = known.normalise(value) if known else None
    plain = made or value
    return " ".join(plain.replace(",", " ").split()).casefold() if known and known.format == "text" else plain


def count(score: Score, truth: dict[str, str], made: Extraction, kind: str, *, show: str = "") -> None:
    """``truth`` by our names; an empty value says that the form has none there."""
    score.forms += 1
    score.typed += made.document_type == kind
    bad = 0
    for name, value in truth.items():
        found = made.fields.get(name)
        said = found.value if found and found.status is FieldStatus.FOUND else None
        if not value:
            if said is not None:
                score.invented += 1
                bad += 1
                if show:
                    print(f"  {show} {name}: invented {said!r} ({made.decision})")
            continue
        score.labelled += 1
        if said is not None and normal(kind, name, said) == normal(kind, name, value):
            score.right += 1
        else:
            bad += said is not None
            score.wrong[f"{kind}.{name}"] += 1
            if show:
                how = f"{found.status.value}, {found.confidence:.2f}" if found else "-"
                print(f"  {show} {name}: {value!r} read as {said!r} ({how}; {made.decision})")
    score.accepted += made.decision == "AUTO_ACCEPT"
    score.accepted_wrong += made.decision == "AUTO_ACCEPT" and bad > 0


def extractions(bundle: DocumentBundle) -> list[Extraction]:
    return list(asyncio.run(FormFieldExtractor(EmbeddedModel()).extract_forms(bundle)))


def bundle_of(data: bytes, name: str) -> DocumentBundle:
    found = resolve_ocr_engine("auto")
    recogniser = PageOcrSettings(found, 60) if found else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.pdf")
        path.write_bytes(data)
        return read_document(path, doc_id=name, processing_timestamp="2026-01-01T00:00:00Z", ocr_settings=recogniser)


#: The labels of ../shared/data/tax in our names; where a form's box has a name of its own, that.
NAMES = {
    "ein": "employer_ein", "payer": "payer_name", "recipient": "recipient_name", "account": "account_number",
}  # fmt: skip


def ours(kind: str, name: str) -> str:
    """Our name for a label: ``box1`` is whichever field of the template has that number."""
    if name.startswith("box"):
        by_box = {one.box: one.name for one in reversed(get_field_template(kind).fields)}
        return by_box.get(name.removeprefix("box"), name)
    return NAMES.get(name, name)


def golden_truth(kind: str, labels: dict[str, Any]) -> dict[str, str]:
    truth = {ours(kind, name): str(value) for name, value in labels.items()}
    if kind == "1099-NEC" and "recipient_name" in truth:  # labelled with the address, which has boxes of its own
        truth["recipient_name"] = truth["recipient_name"].split(",")[0]
    return truth


def golden(*, show: bool) -> Iterator[str]:
    """The forms that were labelled by hand."""
    score, blanks = Score(), []
    for line in (SHARED / "labels.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        bundle = bundle_of((SHARED / row["file"]).read_bytes(), row["file"].removesuffix(".pdf"))
        made = extractions(bundle)
        if not row.get("fields") and not row.get("fields_by_page"):
            values = sum(
                value.status is FieldStatus.FOUND
                for one in made
                for name, value in one.fields.items()
                if name not in ("tax_year", "document_title")
            )
            blanks.append((row["file"], values, {one.stopped_reason for one in made}))
            continue
        by_page = row.get("fields_by_page") or {"1": row["fields"]}
        for segment in row["segments"]:
            kind, start = segment["type"], segment["start"]
            mine = [one for one in made if one.start_page == start]
            if not mine:
                score.forms += 1
                continue
            truth = golden_truth(kind, by_page[str(start)])
            empty = {one.name: "" for one in get_field_template(kind).fields if one.format == "currency"}
            count(score, empty | truth, mine[0], kind, show=f"{row['file']}:{start}" if show else "")
    yield score.told("labelled by hand")
    for file, values, reasons in blanks:
        yield f"{file}: {values} values, {', '.join(sorted(reasons))}"


def variants(number: int, seed: int, scans: float, *, show: bool) -> Iterator[str]:
    """Redrawn forms."""
    whole, files, pictures = Score(), Score(), Score()
    began = time.monotonic()
    for at in range(number):
        data, one, is_scan = redrawn(at, seed, scans)
        made = extractions(bundle_of(data, f"variant{at}"))
        for score, told in ((whole, ""), (pictures if is_scan else files, f"variant {at}" if show else "")):
            if made:
                count(score, one.truth, made[0], one.form, show=told)
    yield whole.told(f"{number} redrawn forms")
    yield files.told(f"  of them files, {files.forms}")
    yield pictures.told(f"  of them scans, {pictures.forms}")
    if whole.wrong:
        yield "  most often wrong: " + ", ".join(f"{name} {times}" for name, times in whole.wrong.most_common(8))
    yield f"  {time.monotonic() - began:.0f} s"


# ---------------------------------------------------------------------------------------------------- ablation


class Right(NamedTuple):
    """How much of one attempt at a form is right."""

    share: float
    """Of the values that the form has."""
    wrong: int
    """Values that it has not."""

    @classmethod
    def of(cls, one: Drawing, fields: Mapping[str, FieldValue]) -> Right:
        score = Score()
        for name, value in one.truth.items():
            found = fields.get(name)
            said = found.value if found and found.is_found else None
            is_right = said is not None and normal(one.form, name, said) == normal(one.form, name, value)
            score.labelled += bool(value)
            score.right += bool(value) and is_right
            score.invented += said is not None and not is_right
        return cls(score.right / score.labelled, score.invented)


class Tried(NamedTuple):
    """A drawn form, and what the loop made of it."""

    made: Extraction
    first: Right
    final: Right


def tried(one: Drawing, bundle: DocumentBundle, model: Model) -> Tried:
    made = asyncio.run(FormFieldExtractor(model).extract_forms(bundle))[0]
    return Tried(made, Right.of(one, made.history[0].fields), Right.of(one, made.fields))


#: Of each value, at the first attempt: how often it errs so. At another attempt it mends what the feedback names with
#: MENDS, and errs anew in what was right with SLIPS.
ERRS = {"omits": 0.15, "alters a digit": 0.04, "takes another box": 0.04}
MENDS, SLIPS = 0.7, 0.03


class Imperfect:
    """Knows the truth of a form, and errs as the table says; it mends only what the feedback in its prompt names."""

    name = "imperfect"

    def __init__(self, one: Drawing, seed: str) -> None:
        self._one = one
        self._dice = random.Random(seed)
        self._truth = {name: value for name, value in one.truth.items() if value}
        self._says: dict[str, str] = {}

    async def ask(self, question: Question[AnswerT]) -> Answer[AnswerT]:
        value: Any = self._answer(question.prompt()) if isinstance(question, FormQuestion) else question.offline()
        return Answer(question, value, usage=Usage(calls=1))

    def _answer(self, prompt: str) -> FormAnswer:
        feedback = prompt.partition("Previous attempt feedback:")[2]
        known = get_field_template(self._one.form)
        for name, true in self._truth.items():
            field = known.get_field(name)
            if not feedback:
                self._says[name] = self._erring(name)
            elif self._says[name] != true:
                if field and field.description in feedback and self._dice.random() < MENDS:
                    self._says[name] = true
            elif self._dice.random() < SLIPS:
                self._says[name] = self._erring(name, certainly=True)
        return FormAnswer(
            likely_type=self._one.form,
            overall_confidence=0.9,
            fields=tuple(
                PlacedFormField(name=name, value=said, raw_text=said, page=1, confidence=0.9)
                for name, said in self._says.items()
                if said
            ),
        )

    def _erring(self, name: str, *, certainly: bool = False) -> str:
        ways = [*ERRS, ""]
        way = self._dice.choices(ways, [*ERRS.values(), 0 if certainly else 1 - sum(ERRS.values())])[0]
        value = self._truth[name]
        if way == "omits":
            return ""
        if way == "alters a digit":
            at = self._dice.choice([at for at, sign in enumerate(value) if sign.isdigit()] or [0])
            return value[:at] + str((ord(value[at]) + 1) % 10) + value[at + 1 :]
        if way == "takes another box":
            amounts = [other for other in self._truth.values() if other != value and "." in other]
            return self._dice.choice(amounts) if amounts and "." in value else value
        return value


def ablation(title: str, cases: Sequence[Tried]) -> Table:
    """First attempt beside what the loop kept."""
    n = len(cases)
    accepted = [case for case in cases if case.made.decision == "AUTO_ACCEPT"]
    again = [case for case in cases if case.made.iterations > 1]
    table = Table("", "first attempt", "kept of up to three", "gain", title=f"{title}, n = {n}, 95 % intervals")
    for name, some in (("values right, mean share", cases), (f"  of the {len(again)} tried again", again)):
        if some:
            table.add_row(
                name,
                interval([case.first.share for case in some]),
                interval([case.final.share for case in some]),
                interval([case.final.share - case.first.share for case in some], (-1.0, 1.0)),
            )
    table.add_row(
        "forms without any error",
        share(sum(case.first == (1, 0) for case in cases), n),
        share(sum(case.final == (1, 0) for case in cases), n),
        interval([float(case.final == (1, 0)) - (case.first == (1, 0)) for case in cases], (-1.0, 1.0)),
    )
    wrongs = sum(case.first.wrong for case in cases), sum(case.final.wrong for case in cases)
    table.add_row("wrong values, in all", *map(str, wrongs), f"{wrongs[1] - wrongs[0]:+d}")
    passed = sum(case.made.history[0].score is not None and case.made.iterations == 1 for case in cases)
    table.add_row("ended after one attempt", share(passed, n), "", "")
    table.add_row("kept is worse than first", "", share(sum(c.final.share < c.first.share for c in cases), n), "")
    table.add_row("accepted", "", share(len(accepted), n), "")
    wrong = sum(case.final.wrong > 0 for case in accepted)
    table.add_row("accepted with a wrong value", "", share(wrong, len(accepted)), "")
    missed = sum(case.final.share < 1 and not case.final.wrong for case in accepted)
    table.add_row("accepted with a value missed", "", share(missed, len(accepted)), "")
    return table


def ablations(number: int, seed: int, scans: float) -> Iterator[Table]:
    """For the embedded model over files and scans, and for one that errs over files."""
    drawn = [redrawn(at, seed, scans) for at in range(number)]
    bundles = [bundle_of(data, f"variant{at}") for at, (data, _, _) in enumerate(drawn)]
    embedded = [tried(one, bundle, EmbeddedModel()) for (_, one, _), bundle in zip(drawn, bundles, strict=True)]
    yield ablation("embedded model", embedded)
    files = [redrawn(at, seed, 0.0) for at in range(number)]
    yield ablation(
        "scripted imperfect model",
        [
            tried(one, bundle_of(data, f"variant{at}"), Imperfect(one, f"{seed}:{at}"))
            for at, (data, one, _) in enumerate(files)
        ],
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--forms", type=int, default=60)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--scans", type=float, default=0.6, help="the share that is scanned")
    options.add_argument("--wrong", action="store_true", help="print what was not right; made-up people only")
    options.add_argument("--loop", type=int, default=0, metavar="N", help="only the loop's gain, over N drawn forms")
    given = options.parse_args()
    if given.loop:
        for table in ablations(given.loop, given.seed, given.scans):
            Console(width=140).print(table)
        return
    if SHARED.is_dir():
        for line in golden(show=given.wrong):
            print(line)
    for line in variants(given.forms, given.seed, given.scans, show=given.wrong):
        print(line)


if __name__ == "__main__":
    os.environ.setdefault("OMP_THREAD_LIMIT", "1")
    sys.exit(main())
