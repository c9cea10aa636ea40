"""Damaged PDFs among whole ones, and runs over folders that were damaged: what is refused, what ends, what is lost."""

from __future__ import annotations

import random
import re
import shutil
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from documents.bombs import BOMBS
from pipeline.patient import OTHER
from places import open_folder
from tables import Table

import evalkit
from evalkit.errors import EvalkitError
from evalkit.pipeline import DocumentSummary
from evalkit.settings import Settings

from .mutation import damaged_json, damaged_text

_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)
_NUMBER = re.compile(rb"(?<=[ \[/<])\d+(?=[ \]/>])")

Damage = Callable[[random.Random, bytes], bytes]


def _in_streams(dice: random.Random, data: bytes) -> bytes:
    """What stands packed in the file is damaged and packed again: the reader gets past the unpacking."""

    def change(found: re.Match[bytes]) -> bytes:
        if dice.random() < 0.5:
            return found[0]
        try:
            inner = zlib.decompress(found[1])
        except zlib.error:
            return found[0]
        return b"stream\n" + zlib.compress(damaged_text(dice, inner)[1]) + b"\nendstream"

    return _STREAM.sub(change, data)


def _numbers(dice: random.Random, data: bytes) -> bytes:
    """References, lengths, boxes and counts that mean something else."""
    others = (b"0", b"1", b"3", b"-1", b"99999999999", b"2147483648", b"1e30")
    return _NUMBER.sub(lambda found: dice.choice(others) if dice.random() < 0.02 else found[0], data)


def _cut(dice: random.Random, data: bytes) -> bytes:
    return data[: dice.randrange(len(data))]


def _spliced(dice: random.Random, data: bytes) -> bytes:
    half = len(data) // 2
    return data[:half] + data[dice.randrange(half) :]


def _flipped(dice: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(dice.randint(1, 200)):
        out[dice.randrange(len(out))] = dice.randrange(256)
    return bytes(out)


DAMAGES: Mapping[str, Damage] = {
    "PDF, bytes": _flipped,
    "PDF, numbers": _numbers,
    "PDF, streams": _in_streams,
    "PDF, cut off": _cut,
    "PDF, spliced": _spliced,
    "PDF, noise": lambda dice, data: b"%PDF-1.7\n" + dice.randbytes(len(data) // 4),
}


def read_damaged(samples: Path, folder: Path, *, each: int, seed: int, bombs: int = 0, seconds: int = 10) -> Table:
    """One run over damaged files and whole ones: each must be decided or refused by name.

    ``bombs`` is their strength; 0: none. A file that is decided although it was damaged is one that a reader mends; nobody
    may accept it as anything else than the whole one.
    """
    records = folder / "records"
    records.mkdir(parents=True)
    dice = random.Random(seed)
    whole = sorted(samples.glob("*.pdf"))
    kinds: dict[str, str] = {}
    made_of: dict[str, str] = {}
    for path in whole:  # with bytes of their own: damage may leave a file as it was, and equal bytes are one document
        (records / f"whole_{path.name}").write_bytes(path.read_bytes() + b"\n% whole\n")
    for kind, damage in DAMAGES.items():
        for number in range(each):
            name, path = f"{re.sub('[^a-z]', '', kind)}{number}", dice.choice(whole)
            kinds[name], made_of[name] = kind, f"whole_{path.stem}"
            (records / f"{name}.pdf").write_bytes(damage(dice, path.read_bytes()))
    for number, bomb in enumerate(BOMBS.values() if bombs else ()):
        kinds[f"bomb{number}"] = "PDF, bombs"
        (records / f"bomb{number}.pdf").write_bytes(bomb(bombs))
    settings = Settings.load(
        read_seconds=seconds, read_memory_mb=1500, ocr="none", workers=2, output=str(folder / "output")
    )
    table = Table()
    run = evalkit.run([records], settings=settings, output=folder / "output")
    done = {one.doc_id: one for one in run.documents}
    copies = {Path(line.split(" is ", 1)[0]).stem for line in run.copies}
    for name, kind in kinds.items():
        one = done.get(name)
        outcome = _outcome(one) if one else ("valid" if name in copies else "losses")
        _note(table, kind, outcome, f"{name}: {one.error}" if one else name)
        if one and one.decision == "AUTO_ACCEPT" and name in made_of and _said(one) != _said(done[made_of[name]]):
            table.faults.append(f"{kind}: {name} is accepted as {_said(one)}, and is {made_of[name]}")
    if done["whole_clinical_note"].decision != "AUTO_ACCEPT":
        table.faults.append("a whole document among them was not accepted")
    return table


def _outcome(one: DocumentSummary) -> str:
    if one.error is None:
        return "valid"
    is_ours = "failed unexpectedly" not in one.error and one.pdf_filename in one.error
    return "refused" if is_ours else "crashes"


def _said(one: DocumentSummary) -> tuple[str | None, int | None]:
    return one.dominant_type, one.pages


def _note(table: Table, kind: str, outcome: str, told: str) -> None:
    table.add(kind, outcome)
    if outcome in ("crashes", "losses"):
        table.faults.append(f"{kind}: {outcome}: {told}")


def resumed_over_damage(made: Path, folder: Path, *, each: int, seed: int) -> Table:
    """A finished folder, one file of which is damaged, run again: a document fails by name or is decided as before.

    Nobody's review is lost by it: those that were not damaged are byte for byte what they were.
    """
    table, dice = Table(), random.Random(seed)
    records = made.parent / "records"
    for number in range(each):
        output = folder / f"damaged{number}"
        shutil.copytree(made, output)
        files = [one for one in sorted(output.rglob("*.json")) if OTHER in one.name or one.parent.name == "reviews"]
        reviews = {one: one.read_bytes() for one in output.glob("reviews/*/*.json")}
        victim = dice.choice([*files, output / "production.json", *reviews])
        how, data = damaged_json(dice, victim.read_bytes())
        victim.write_bytes(data)
        told = f"{victim.relative_to(output)}, {how}"
        outcome = _run_again(records, output, told, table)
        lost = [one for one, before in reviews.items() if one != victim and one.read_bytes() != before]
        _note(table, "a run over a damaged folder", "losses" if lost else outcome, told)
        shutil.rmtree(output)
    return table


def _run_again(records: Path, output: Path, told: str, table: Table) -> str:
    settings: dict[str, Any] = {"ocr": "none", "workers": 1, "output": str(output)}
    try:
        run = evalkit.run([records / f"{OTHER}.pdf"], output=output, settings=Settings.load(**settings))
    except EvalkitError:
        return "refused"
    except Exception as error:  # noqa: BLE001 - that is what is counted
        table.faults.append(f"{told}: {type(error).__name__}")
        return "crashes"
    if any("unexpectedly" in (one.error or "") for one in run.documents):
        table.faults.append(f"{told}: {run.documents[0].error}")
        return "crashes"
    assert open_folder(output).list_json_files("results")
    return "refused" if run.failed else "valid"
