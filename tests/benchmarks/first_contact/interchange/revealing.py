"""Find words in any byte of a file: in streams, strings, attachments, archives, mails, images and their QR codes.

It is made to be more curious than an attacker, and shares nothing with what cuts the files.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import html
import io
import json
import quopri
import re
import subprocess
import tempfile
import urllib.parse
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pymupdf
import zxingcpp
from PIL import Image, ImageSequence

DEEPEST = 7
_STREAM = re.compile(rb"(<<(?:(?!endobj|stream\r?\n).){0,6000}?>>)\s*stream\r?\n", re.DOTALL)
_FILTER = re.compile(rb"/(FlateDecode|Fl|ASCIIHexDecode|AHx|ASCII85Decode|A85|RunLengthDecode|RL|LZWDecode|LZW)\b")
_HEX = re.compile(rb"(?:<|ID\s)([0-9A-Fa-f\s]{8,})>")
_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]{4}[\r\n]*){6,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_LITERAL = re.compile(rb"\\([0-7]{1,3})")
_PICTURE = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff[\xe0\xe1]|PK\x03\x04|\x1f\x8b\x08")
_IMAGE = (b"\x89PNG", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"GIF8", b"BM")


def find_words(data: bytes, words: Iterable[str]) -> set[str]:
    """Those of the words that the file holds anywhere, forwards or backwards, whole or letter by letter."""
    rest = set(words)
    found = set()
    for heap in _reveal(data, 0, set()):
        hits = {word for word in rest if word in heap or word[::-1] in heap}
        found |= hits
        rest -= hits
        if not rest:
            break
    return found


def _squeeze(data: bytes) -> str:
    """The letters alone, in capitals: spaces, kerning numbers and the zeros of UTF-16 hide nothing."""
    return re.sub(rb"[^A-Za-z]+", b"", data).decode("ascii").upper()


def _reveal(data: bytes, depth: int, seen: set[int]) -> Iterator[str]:
    if depth > DEEPEST or not data or hash(data) in seen:
        return
    seen.add(hash(data))
    yield _squeeze(data)
    yield _squeeze(_LITERAL.sub(lambda match: bytes([int(match[1], 8) & 255]), data))
    yield _squeeze(re.sub(rb"[#=%\\]x?([0-9A-Fa-f]{2})", lambda match: bytes([int(match[1], 16)]), data))
    if data.lstrip()[:1] in b"{[":
        yield from _reveal_json(data, depth, seen)
    if b"&#" in data:
        yield _squeeze(html.unescape(data.decode("latin-1")).encode("latin-1", "ignore"))
    for inner in _unpack(data):
        yield from _reveal(inner, depth + 1, seen)
    if data.startswith(_IMAGE):
        yield from _read_image(data)
    if data.startswith(b"\0\0\0\x0cjP") or b"%PDF-" in data[:1100]:
        yield from _read_pdf(data, depth, seen)


def _reveal_json(data: bytes, depth: int, seen: set[int]) -> Iterator[str]:
    try:
        nodes = [json.loads(data)]
    except ValueError:
        return
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            nodes += [*node, *node.values()]
        elif isinstance(node, list):
            nodes += node
        elif isinstance(node, str):
            yield _squeeze(node.encode())
            if len(node) >= 24 and re.fullmatch(r"[A-Za-z0-9+/=\s_-]+", node):
                try:
                    yield from _reveal(base64.b64decode(node), depth + 1, seen)
                except ValueError:
                    continue


def _unpack(data: bytes) -> Iterator[bytes]:
    """What is packed in these bytes, one layer down."""
    for match in _STREAM.finditer(data):
        start = match.end()
        end = data.find(b"endstream", start)
        decoded = _decode(data[start : end if end >= 0 else len(data)], match[1])
        yield decoded
        if b"/Image" in match[1]:
            yield from _read_samples(decoded, match[1])
    for match in _HEX.finditer(data):
        digits = re.sub(rb"\s", b"", match[1]).decode()
        yield bytes.fromhex(digits[: len(digits) // 2 * 2])
    for match in _PICTURE.finditer(data, 1):
        yield data[match.start() :]
    if re.search(rb"(?i)quoted-printable", data):
        yield quopri.decodestring(data)
    if b"%PDF-" not in data[:1100]:
        if re.search(rb"%[0-9A-Fa-f]{2}", data):
            yield urllib.parse.unquote_to_bytes(data)
        for match in _BASE64.finditer(data):
            with contextlib.suppress(ValueError):
                yield base64.b64decode(match[0])
    yield from _open_archive(data)


def _open_archive(data: bytes) -> Iterator[bytes]:
    if data.startswith(b"PK"):
        with (
            contextlib.suppress(zipfile.BadZipFile, RuntimeError, ValueError),
            zipfile.ZipFile(io.BytesIO(data)) as archive,
        ):
            for name in archive.namelist():
                yield name.encode()
                yield archive.read(name)
    if data.startswith(b"\x1f\x8b"):
        with contextlib.suppress(OSError, EOFError, zlib.error):
            yield gzip.decompress(data)


def _decode(raw: bytes, entries: bytes) -> bytes:
    for name in _FILTER.findall(entries):
        try:
            if name in {b"FlateDecode", b"Fl"}:
                raw = zlib.decompressobj().decompress(raw)
            elif name in {b"ASCIIHexDecode", b"AHx"}:
                raw = bytes.fromhex(re.sub(rb"[\s>]", b"", raw).decode())
            elif name in {b"ASCII85Decode", b"A85"}:
                raw = base64.a85decode(raw.strip().removesuffix(b"~>"))
            elif name in {b"RunLengthDecode", b"RL"}:
                raw = _decode_runs(raw)
        except (ValueError, zlib.error):
            return raw
    return raw


def _decode_runs(raw: bytes) -> bytes:
    out, place = bytearray(), 0
    while place < len(raw) and raw[place] != 128:
        length = raw[place]
        if length < 128:
            out += raw[place + 1 : place + 2 + length]
            place += length + 2
        else:
            out += raw[place + 1 : place + 2] * (257 - length)
            place += 2
    return bytes(out)


def _read_samples(samples: bytes, entries: bytes) -> Iterator[bytes]:
    """The codes in raw samples, with rows below the declared height."""
    width = re.search(rb"/W(?:idth)?\s+(\d+)", entries)
    bits = re.search(rb"/(?:BitsPerComponent|BPC)\s+(\d+)", entries)
    if not width or not samples or (bits and int(bits[1]) not in {1, 8}):
        return
    columns, single = int(width[1]), bool(bits and int(bits[1]) == 1)
    colours = 3 if b"/DeviceRGB" in entries or b"/RGB" in entries else 1
    stride = (columns + 7) // 8 if single else columns * colours
    rows = len(samples) // stride
    if not 20 <= rows <= 20_000:
        return
    mode = "1" if single else ("RGB" if colours == 3 else "L")
    image = Image.frombytes(mode, (columns, rows), samples[: rows * stride])
    yield from (word.encode() for word in _read_codes(image))


def _read_codes(image: Image.Image) -> list[str]:
    """What the QR codes of an image say, which may be negative, turned or small."""
    array = np.asarray(image.convert("L"))
    codes = [code.text for code in zxingcpp.read_barcodes(array)]
    return codes or [code.text for code in zxingcpp.read_barcodes(255 - array)]


def _read_image(data: bytes) -> Iterator[str]:
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data)) as image:
            for frame in ImageSequence.Iterator(image):
                yield from (_squeeze(code.encode()) for code in _read_codes(frame))
                yield _squeeze(repr(frame.info).encode())
                yield _squeeze(repr(dict(frame.getexif())).encode())
    except Exception:  # noqa: BLE001 - Pillow says in many ways that it cannot read a damaged picture
        return


def open_pdf(data: bytes) -> pymupdf.Document:
    """The PDF, opened with the empty password if it asks for one."""
    document = pymupdf.open(stream=data, filetype="pdf")
    if document.needs_pass:
        document.authenticate("")
    return document


def _read_pdf(data: bytes, depth: int, seen: set[int]) -> Iterator[str]:
    try:
        document = open_pdf(data)
    except (RuntimeError, ValueError):
        return
    if document.needs_pass and document.is_encrypted:
        return
    if b"/Encrypt" in data:
        yield from _reveal(document.tobytes(encryption=pymupdf.PDF_ENCRYPT_NONE), depth + 1, seen)
    for number in range(1, document.xref_length()):
        try:
            if document.xref_is_stream(number):
                decoded = document.xref_stream(number) or b""
                yield from _reveal(decoded, depth + 1, seen)
                if document.xref_get_key(number, "Subtype")[1] == "/Image":
                    yield from _read_image(pymupdf.Pixmap(document, number).tobytes("png"))
        except (RuntimeError, ValueError):
            continue
    for page in document:
        yield _squeeze(page.get_text("text", clip=pymupdf.INFINITE_RECT(), flags=0).encode())
        document.xref_set_key(page.xref, "CropBox", "null")
        yield from (_squeeze(code.encode()) for code in _read_codes(draw_page(page)))


def draw_page(page: pymupdf.Page, dots: int = 150) -> Image.Image:
    """What the page shows."""
    pixels = page.get_pixmap(dpi=dots, colorspace=pymupdf.csGRAY, alpha=False)
    return Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)


def read_shown_words(page: pymupdf.Page, words: Iterable[str], *, recognise: bool = False) -> set[str]:
    """Those of the words that the page shows within its box, as text or a code, or by OCR if asked."""
    rest = set(words)
    text = _squeeze(page.get_text("text", clip=page.rect).encode())
    shown = {word for word in rest if word in text}
    if rest - shown:
        codes = _squeeze(" ".join(_read_codes(draw_page(page))).encode())
        shown |= {word for word in rest if word in codes}
    if recognise and rest - shown:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "page.png"
            draw_page(page, 220).save(path)
            command = ["tesseract", str(path), "-", "--psm", "6"]
            read = subprocess.run(command, capture_output=True, check=True).stdout
        shown |= {word for word in rest if word in _squeeze(read)}
    return shown
