"""How many damaged files are accepted although text is lost, and how many sound ones are called damaged.

    PYTHONPATH=tests python -m benchmarks.damaging [--half open|sealed] [--folder FOLDER] [--scans 2] [--wrong]

Every PDF of ``../shared/data`` (clinical_pdf, clinical_more, tax, and the sound ones of nasty) is written anew in plain
form and damaged in eight ways, byte by byte; the place is chosen by the hash of the file's name. Only damage that loses
text counts: at least three words of a page that are read from the sound file and not from the damaged one. A ninth way,
streams that end between two operators, makes valid files and is reported without a goal.

A file is told as damaged if it is refused, was repaired, or has a page that failed or is damaged. Scanned files are damaged
in their pictures, and recognised: a few only. A file of nasty is sound if a page shows what its text says
(``UNSOUND_FILES``).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pymupdf
from benchmarks.lying_fonts import is_told
from rich.console import Console
from rich.table import Table

from evalkit.documents.bundle import DocumentBundle, PageStatus
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.documents.readers import read_document
from evalkit.documents.scanned_pages import PageOcrSettings
from evalkit.errors import DocumentError

DATA = Path(os.environ.get("EVALKIT_SHARED", Path(__file__).parents[2].parent / "shared")) / "data"
FOLDERS = ("clinical_pdf", "clinical_more", "tax", "nasty")
UNSOUND = {"corrupt", "truncated", "empty", "encrypted"}
#: Not sound either, whatever its category: the one glyph of its one font is a composite of itself, which nothing can draw,
#: so that a page that says "hello world" shows nothing.
UNSOUND_FILES = {"fonts__recursiveCompositGlyf.pdf"}
LEAST_WORDS = 3


def number(*parts: str) -> int:
    """Return a number that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:6], "big")


# ---------------------------------------------------------------------------------------------------------- sources


def sources(half: str) -> list[Path]:
    """Return the sound PDFs of a half."""
    paths = []
    for folder in FOLDERS:
        found = sorted((DATA / folder).rglob("*.pdf"))
        turns = sorted(found, key=lambda path: number("half", path.name))
        for path in found:
            # By the hash alone four fifths of this folder would be sealed: every second one in the order of the hash.
            by_turn = folder == "clinical_pdf"
            is_open = (turns.index(path) if by_turn else number("half", folder, path.name)) % 2 == 0
            if is_open != (half == "open") or path.name in UNSOUND_FILES:
                continue
            if folder == "nasty" and path.name.partition("__")[0] in UNSOUND:
                continue
            with pymupdf.open(path) as document:
                if not document.needs_pass and not document.is_repaired:
                    paths.append(path)
    return paths


def in_plain_form(path: Path) -> bytes:
    """Return the file with every object at a place of its own, streams packed, and no encryption."""
    with pymupdf.open(path) as document:
        return bytes(document.tobytes(use_objstms=0, deflate=True, encryption=pymupdf.PDF_ENCRYPT_NONE, no_new_id=True))


@dataclass
class Target:
    """A file in plain form, and the page that damage strikes."""

    name: str
    data: bytes
    page: int
    """Number of the page's object."""
    streams: list[int]
    """Numbers of the page's content streams; of its pictures, if it is scanned."""
    fonts: list[int]
    is_scan: bool

    def choose(self, kind: str, below: int) -> int:
        return number(kind, self.name) % max(below, 1)

    def span(self, xref: int) -> tuple[int, int]:
        """Return where an object starts and ends."""
        found = re.search(rb"(?:^|[\r\n])%d 0 obj" % xref, self.data)
        if found is None:
            raise LookupError(xref)
        return found.end(), self.data.index(b"endobj", found.end())

    def stream(self) -> tuple[int, int, int, int]:
        """Return the longest stream's object and, within it, its data: four places."""
        rows = []
        for xref in self.streams:
            start, _ = self.span(xref)
            opened = re.compile(rb"stream\r?\n").search(self.data, start)
            length = re.compile(rb"/Length (\d+)(?! \d+ R)").search(self.data, start)
            if opened and length and length.start() < opened.start():
                end = opened.end() + int(length[1])
                rows.append((int(length[1]), start, self.data.index(b"endobj", end), opened.end(), end))
        if not rows:
            raise LookupError("no stream")
        return max(rows)[1:]

    def replaced(self, start: int, end: int, new: bytes) -> bytes:
        """Return the file with other bytes at a place, as many as before."""
        if len(new) > end - start:
            raise LookupError("no room")
        return self.data[:start] + new.ljust(end - start) + self.data[end:]


def target(path: Path) -> Target | None:
    """Return the file with a page chosen by the hash of its name; None if no page has content."""
    data = in_plain_form(path)
    with pymupdf.open("pdf", data) as document:
        texts = [page for page in document if len(page.get_text().split()) >= LEAST_WORDS and page.get_contents()]
        scans = [page for page in document if page.get_images()]
        pages = texts or scans
        if not pages:
            return None
        page = pages[number("page", path.name) % len(pages)]
        streams = page.get_contents() if texts else [image[0] for image in page.get_images()]
        fonts = [font[0] for font in page.get_fonts() if font[0]]
        return Target(path.name, data, page.xref, streams, fonts, not texts)


# ----------------------------------------------------------------------------------------------------------- damage


def stream_cut(one: Target) -> bytes:
    """Keep seven tenths of a stream, and say so in its length."""
    start, end, first, last = one.stream()
    kept = (last - first) * 7 // 10
    head = re.sub(rb"/Length \d+", b"/Length %d" % kept, one.data[start:first], count=1)
    return one.replaced(start, end + 6, head + one.data[first : first + kept] + b"\nendstream\nendobj")


def stream_zeroed(one: Target) -> bytes:
    """Write zeros over three tenths of a stream."""
    _, _, first, last = one.stream()
    size = (last - first) * 3 // 10
    start = first + (last - first) * (10 + one.choose("zeroed", 60)) // 100
    return one.data[:start] + bytes(size) + one.data[start + size :]


def bytes_flipped(one: Target) -> bytes:
    """Flip the bits of one byte in fifty, and of three at least."""
    _, _, first, last = one.stream()
    data = bytearray(one.data)
    for count in range(max(3, (last - first) // 50)):
        data[first + number("flip", one.name, str(count)) % (last - first)] ^= 0xFF
    return bytes(data)


def contents_null(one: Target) -> bytes:
    """Say that the page has no content."""
    start, end = one.span(one.page)
    found = re.search(rb"/Contents\s*(\[[^\]]*\]|\d+ 0 R)", one.data[start:end])
    if found is None:
        raise LookupError("no content")
    return one.replaced(start + found.start(), start + found.end(), b"/Contents null")


def object_missing(one: Target) -> bytes:
    """Take away a content stream or a font of the page, and mark it as free."""
    parts = one.fonts if one.fonts and one.choose("missing", 3) == 0 else one.streams
    xref = parts[one.choose("which", len(parts))]
    start, end = one.span(xref)
    head = len(b"%d 0 obj" % xref)
    if xref in one.streams:
        end = one.stream()[1] if len(one.streams) == 1 else end
    data = one.replaced(start - head, end + 6, b"")
    table = data.rfind(b"\nxref")
    place = b"%010d 00000 n" % (start - head)
    return data[:table] + data[table:].replace(place, b"0000000000 65535 f")


def filter_unknown(one: Target) -> bytes:
    """Name a filter that nobody knows."""
    start, _, first, _ = one.stream()
    found = re.search(rb"/(\w+Decode)\b", one.data[start:first])
    if found is None:
        raise LookupError("no filter")
    return one.replaced(start + found.start(1), start + found.end(1), b"X" + found[1][1:-1] + b"k")


def tree_broken(one: Target) -> bytes:
    """Lead the page tree past one of its pages."""
    for found in re.finditer(rb"/Kids\s*\[([^\]]*)\]", one.data):
        kid = re.search(rb"(?<!\d)%d 0 R" % one.page, found[1])
        if kid:
            start = found.start(1) + kid.start()
            other = b"0 0 R" if one.choose("tree", 2) else b"%d 0 R" % (10 ** (len(str(one.page))) - 1)
            return one.replaced(start, start + kid.end() - kid.start(), other)
    raise LookupError("no tree")


def file_truncated(one: Target) -> bytes:
    """End the file early, after 30 to 90 % of it."""
    return one.data[: len(one.data) * (30 + one.choose("truncated", 61)) // 100]


def stream_halved(one: Target) -> bytes:
    """End a stream between two operators, in its middle: a valid file."""
    if one.is_scan:
        raise LookupError("a picture has no operators")
    start, end, first, last = one.stream()
    content = zlib.decompress(one.data[first:last])
    places = [found.end() for found in re.finditer(rb"(?<=[\s\])>])(?:ET|Tj|TJ|Q)(?=\s)", content)]
    if not places:
        raise LookupError("no operator")
    packed = zlib.compress(content[: min(places, key=lambda place: abs(place - len(content) // 2))], 9)
    head = re.sub(rb"/Length \d+", b"/Length %d" % len(packed), one.data[start:first], count=1)
    return one.replaced(start, end + 6, head + packed + b"\nendstream\nendobj")


KINDS: dict[str, Callable[[Target], bytes]] = {
    "stream cut": stream_cut,
    "stream zeroed": stream_zeroed,
    "bytes flipped": bytes_flipped,
    "contents null": contents_null,
    "object missing": object_missing,
    "unknown filter": filter_unknown,
    "page tree broken": tree_broken,
    "file truncated": file_truncated,
    "halved (no goal)": stream_halved,
}

# ---------------------------------------------------------------------------------------------------------- reading


def words(bundle: DocumentBundle) -> list[Counter[str]]:
    return [Counter(page.text.split()) for page in bundle.pages]


def loses_text(sound: DocumentBundle, damaged: DocumentBundle) -> bool:
    """Return whether words of a page are lost: of the file, if pages are missing and the rest moved up."""
    before, after = words(sound), words(damaged)
    if len(before) != len(after):
        before, after = [sum(before, Counter())], [sum(after, Counter())]
    return any((page - other).total() >= LEAST_WORDS for page, other in zip(before, after, strict=True))


@dataclass
class Row:
    """What became of the files of one kind of damage."""

    files: int = 0
    lost: int = 0
    told: int = 0
    unreadable: int = 0
    """Of those accepted: files with a page that is said to have something that could not be read, or pictures unread."""
    accepted: list[str] = field(default_factory=list)


def read(data: bytes, name: str, folder: Path, recogniser: PageOcrSettings | None) -> DocumentBundle | None:
    """Read a file; None if it is refused."""
    path = folder / name
    path.write_bytes(data)
    try:
        return read_document(path, doc_id=path.stem, processing_timestamp="", ocr_settings=recogniser)
    except DocumentError:
        return None


def damaged(one: Target) -> Iterator[tuple[str, bytes]]:
    for kind, damage in KINDS.items():
        try:
            yield kind, damage(one)
        except (LookupError, ValueError, zlib.error):
            continue


def count(row: Row, name: str, before: DocumentBundle, after: DocumentBundle | None) -> None:
    """Count a damaged file by what was read from it; None if it was refused."""
    row.files += 1
    if after is not None and not loses_text(before, after):
        return
    row.lost += 1
    if after is None or is_told(after):
        row.told += 1
        return
    row.accepted.append(name)
    row.unreadable += any(page.status is PageStatus.IMAGE or page.unread for page in after.pages)


def measure(paths: list[Path], folder: Path, scans: int) -> tuple[dict[str, Row], list[str], int]:
    """Return the rows of all kinds, the sound files called damaged, and the number of scanned files."""
    rows: dict[str, Row] = defaultdict(Row)
    engine = resolve_ocr_engine("auto") if scans else None
    recogniser = PageOcrSettings(engine, 60) if engine else None
    alarms, scanned = [], 0
    for path in paths:
        sound = read(path.read_bytes(), path.name, folder, None)
        if sound is None or is_told(sound):
            alarms.append(path.name)
        one = target(path)
        if one is None:
            continue
        settings = None
        if one.is_scan:
            if recogniser is None or scanned >= scans or (sound and sound.total_pages > 2):
                continue
            scanned += 1
            settings = recogniser
        before = read(one.data, f"{path.stem}.plain.pdf", folder, settings)
        if before is None:
            continue
        for kind, data in damaged(one):
            name = f"{path.stem}.{kind.partition(' (')[0].replace(' ', '_')}.pdf"
            count(rows[kind], path.name, before, read(data, name, folder, settings))
    return rows, alarms, scanned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--half", choices=("open", "sealed"), default="open")
    parser.add_argument("--folder", type=Path, help="keep the files here")
    parser.add_argument("--scans", type=int, default=2, help="how many scanned files are damaged and recognised")
    parser.add_argument("--limit", type=int, default=0, help="read only so many files")
    parser.add_argument("--wrong", action="store_true", help="name the files that were accepted")
    asked = parser.parse_args()
    start = time.process_time()
    paths = sources(asked.half)[: asked.limit or None]
    with tempfile.TemporaryDirectory() as kept:
        folder = asked.folder or Path(kept)
        folder.mkdir(parents=True, exist_ok=True)
        rows, alarms, scanned = measure(paths, folder, asked.scans)
    table = Table("damage", "files", "with lost text", "told", "accepted with lost text", "of these not all read")
    for kind in KINDS:
        row = rows[kind]
        table.add_row(kind, *map(str, (row.files, row.lost, row.told, len(row.accepted), row.unreadable)))
    Console().print(table)
    print(f"sound files told as damaged: {len(alarms)} of {len(paths)}")
    print(f"scanned files damaged: {scanned}; {time.process_time() - start:.0f} seconds of CPU without recognition")
    if asked.wrong:
        for kind, row in rows.items():
            print(f"{kind}: {', '.join(row.accepted)}")
        print(f"sound, told as damaged: {', '.join(alarms)}")


if __name__ == "__main__":
    main()
