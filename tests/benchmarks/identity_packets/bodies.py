"""The texts under the headers: labelled records without the names, birth dates and ages of their own patients.

A record is left out if a person would still stand in it. Names of clinicians stay. The records of each type are dealt out in turn:
the 1st, 3rd, 5th … to the open half, the 2nd, 4th, 6th … to the sealed half; `build.HALVES` tells which of the two each later half takes.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

AGE = "{AGE}"
PLAIN = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "...", "•": "-", "\t": " ", "\u00a0": " "}
)
YEARS = re.compile(r"(?<![\d/.])(\d{1,3})([- ]years?[- ]old\b|[- ]?y/?o\b)", re.I)
CHILD = re.compile(r"\b\d+[- ](?:month|week|day)s?[- ]old\b|\binfant\b|\bnewborn\b|\btoddler\b", re.I)
TITLED = re.compile(r"\b(?:Mr|Mrs|Ms|Miss|Master)\.? (?:[A-Z][a-z]+|[A-Z]{3}\b)")
MASKED = re.compile(r"\b(?:Mr|Mrs|Ms)\. (?:ABC|XYZ|X|Y|Sample Patient|Patient)\b")
CLINICIAN_BEFORE = re.compile(r"\bDr\.\s+(?:[A-Z][a-z]+\s+)?$")
OTHER_FACTS = re.compile(r"\bDOB\b|\bMRN\b|date of birth|birth ?date|MM/DD/YYYY|\bRE: ", re.I)
GENOMIC_LETTERHEAD = re.compile(
    r"Doe\b|Hamsburg|CeGaT|IBAN|SWIFT|Paul-Ehrlich|\bTel\b|Fax|e-mail|Managing|Court District|Accredited|American Pathologists|DIN EN|Page \d|"
    r"^\W*BC\d+|MRN|DOB|^Name:|^Patient|^Sex|^Client|Provider|Recipient|Submitter|CLIA|mytestpath|^ID:|Facility|Physician|physician|\d+ yrs|"
    r"Main:|Lab Ave|01\.01\.1901|^\d{5,}$",
    re.I,
)


@dataclass(frozen=True)
class Body:
    record: str
    type: str
    paragraphs: tuple[str, ...]
    sex: str | None
    grown: bool

    @property
    def neutral(self) -> bool:
        """No sex and no age in it: fits anybody, a child too."""
        return self.sex is None and not self.grown

    def speak_of(self, age: int) -> list[str]:
        article = "an" if str(age).startswith("8") or age in (11, 18) else "a"
        return [
            re.sub(
                r"\b([Aa])n? (?=\{AGE\})", lambda m: ("A" if m.group(1) == "A" else "a") + article[1:] + " ", p
            ).replace(AGE, str(age))
            for p in self.paragraphs
        ]


def call_patient(text: str, names: list[str]) -> str:
    for name in sorted(set(names), key=len, reverse=True):
        words = re.compile(rf"(?P<start>^|[.!?:]\s+|\n\s*)?(?:\b(?:Mr|Mrs|Ms|Miss)\.? )?\b{re.escape(name)}\b")
        text = words.sub(
            lambda m: (
                m.group(0)
                if CLINICIAN_BEFORE.search(m.string, 0, m.start())
                else (m.group("start") or "") + ("The patient" if m.group("start") is not None else "the patient")
            ),
            text,
        )
    return text


def find_names(record: dict) -> list[str]:
    """The names of the record's own patient, as its source writes them."""
    text, found = record["text"], []
    if "llm-synthetic" in record["tags"]:
        match = re.search(r"Patient Information.*?Name: ([^\n]+)", text, re.S)
        found = [match.group(1).strip()] if match else []
    elif "aci" in record["tags"]:
        match = re.search(
            r"(?:^|\n|\. |by )(?:Mr\. |Mrs\. |Ms\. |Miss )?([A-Z][a-z]+ [A-Z][a-z]+) is (?:a|an|here|in)\b", text
        )
        found = [match.group(1)] if match else []
        found += re.findall(r"\b(?:Mr|Mrs|Ms|Miss)\. ([A-Z][a-z]+)\b", text)
    return [part for name in found for part in (name, *name.split()) if part not in ("The", "Patient")]


def cut_head(record: dict) -> str | None:
    text = record["text"].translate(PLAIN)
    if "llm-synthetic" in record["tags"]:
        start = re.search(r"Chief Complaint|Lab Results|Reason for", text)
        return text[start.start() :] if start else None
    if record["type"] == "Genomic Report":
        return "\n".join(
            line.strip() for line in text.split("\n") if line.strip() and not GENOMIC_LETTERHEAD.search(line.strip())
        )
    if "roi-form" in record["tags"]:
        return "\n".join(line.strip() for line in text.split("\n") if re.search(r"[A-Za-z]{3}", line))
    return text


def tell_sex(text: str) -> str | None:
    woman = len(re.findall(r"\b(?:she|her|hers|woman|female|lady|girl)\b", text, re.I)) + 3 * len(
        re.findall(
            r"\b(?:uterus|uterine|ovar\w+|pregnan\w+|vagina\w*|mammogra\w+|cervical smear|menopaus\w+|mastectomy)\b",
            text,
            re.I,
        )
    )
    man = len(re.findall(r"\b(?:he|his|him|man|male|gentleman|boy)\b", text, re.I)) + 3 * len(
        re.findall(r"\b(?:prostat\w+|testic\w+|testis|testes|scrot\w+|penis|penile)\b", text, re.I)
    )
    stated = re.search(r"(?:gender|ender|sex)\s*:\s*([FM])\b", text, re.I)
    if stated:
        return stated.group(1).upper()
    return None if woman == man == 0 else ("F" if woman >= man else "M")


def clean(record: dict) -> Body | None:
    text = cut_head(record)
    form = "roi-form" in record["tags"]
    if text is None or len(text) < 300:
        return None
    if not form:
        text = MASKED.sub("the patient", call_patient(text, find_names(record)))
        if TITLED.search(text) or OTHER_FACTS.search(text) or CHILD.search(text):
            return None
        ages = [int(m.group(1)) for m in YEARS.finditer(text)]
        if ages and ages[0] < 18:
            return None
        if ages:
            text = YEARS.sub(lambda m: AGE + m.group(2) if abs(int(m.group(1)) - ages[0]) <= 1 else m.group(0), text)
        if record["type"] != "Genomic Report":
            text = re.sub(r"(?<=[a-z])\.(?=[A-Z][a-z])", ". ", text)
    text = text.encode("latin-1", "replace").decode("latin-1").replace("\r", "")
    paragraphs = tuple(" ".join(p.split()) for p in text.split("\n") if p.strip())
    grown = not form and (
        AGE in text
        or bool(
            re.search(r"\b(?:wife|husband|smok\w+|alcohol|married|elderly|middle-aged|years? of age)\b", text, re.I)
        )
    )
    return Body(record["id"], record["type"], paragraphs, None if form else tell_sex(text), grown)


def read_bodies(folder: Path, half: str) -> dict[str, list[Body]]:
    """The usable records of a half by type."""
    kept: dict[str, list[Body]] = defaultdict(list)
    with (folder / "clinical_text.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            body = clean(json.loads(line))
            if body is not None:
                kept[body.type].append(body)
    return {kind: bodies[0 if half == "open" else 1 :: 2] for kind, bodies in kept.items()}
