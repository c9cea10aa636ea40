"""Ground truth as data: JSON Lines, CSV, Parquet, or a dataset folder with a data card.

What is written is read again and compared before it takes its name, so that a file of that name is always a whole and
right export. Files are 0600 in folders of 0700: notes, quotes and texts may tell who a patient is.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evalkit.classification.document_result import SCHEMA_VERSION as RESULT_VERSION
from evalkit.errors import EvalkitError, StoreError, UsageError
from evalkit.evaluation.card import MARK, Facts, data_card
from evalkit.evaluation.deidentify import Aliases, Known, NamedFile, deidentified, harm, masked, misses
from evalkit.evaluation.ground_truth import COLUMNS, Level, Row, Truth, Truths, dtype, read_truths, rows
from evalkit.evaluation.splitting import Traits, check_shares
from evalkit.evaluation.splitting import split as divided
from evalkit.review.ground_truth import GroundTruth
from evalkit.review.loaders import read_bundle
from evalkit.review.roster import Roster
from evalkit.store import RESULTS_FOLDER, OutputFolder, OutputIndex, has_database, result_file_name

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from evalkit.documents.bundle import DocumentBundle

Format = Literal["jsonl", "csv", "parquet", "folder"]

#: Columns of the CSV of documents. ``segments`` reads ``1-5 Genomic Report; 6-8 Clinical Note``; ``vouched`` is
#: separated by spaces.
CSV_COLUMNS = (
    "doc_id",
    "ground_truth_source",
    "dominant_type",
    "number_of_segments",
    "segments",
    "vouched",
    "reviewer",
    "reviewed_at",
    "review_reason",
    "inclusion_probability",
    "revision",
    "correction_notes",
    "is_simulated",
)

#: Between the pages of a text.
PAGE_BREAK = "\f"
_TEXT = "What stands on the pages; a form feed between two."
_SPLIT = "The part of the split that the document belongs to."

#: The one part of a folder whose documents are not divided.
_UNDIVIDED = "train"
#: Identifiers of each kind, planted to measure what de-identifying misses; their seed; documents looked at for harm.
_PLANTED, _PLANTED_SEED, _LOOKED_AT = 200, 0, 200


class ExportedTruth(GroundTruth):
    """One line of an export of documents as JSON Lines: the stored record, and what only the whole folder tells.

    ``schema_version`` is that of the record; what is added here changes nothing of it.
    """

    is_simulated: bool
    """Whether a program answered any case of the document, for a demonstration or test."""
    split: str | None = None
    """The part of the split that the document belongs to, where one was asked for."""
    text: str | None = None
    """What stands on the pages, a form feed between two, where it was asked for."""


@dataclass(frozen=True)
class _Document:
    """One document of an export."""

    truth: Truth
    pages: tuple[str, ...] = ()
    """What they say, if that is wanted."""
    part: str | None = None
    """Of the split."""


@dataclass(frozen=True)
class _Wanted:
    """What is asked for."""

    level: Level
    silver: bool
    deidentify: bool
    shares: Mapping[str, float] | None
    seed: int
    with_text: bool

    @property
    def needs_bundles(self) -> bool:
        """Whether what stands in the documents matters, not only what is said about them."""
        return self.deidentify or self.with_text or self.shares is not None

    @property
    def columns(self) -> dict[str, str]:
        """The columns of a row, and what they mean."""
        more = {"split": _SPLIT} if self.shares else {}
        return COLUMNS[self.level] | more | ({"text": _TEXT} if self.with_text else {})


def export_ground_truth(
    output: Path | str,
    to: Path | str | None,
    *,
    file_format: Format = "jsonl",
    level: Level = "document",
    silver: bool = False,
    deidentify: bool = False,
    split: Mapping[str, float] | None = None,
    seed: int = 0,
    with_text: bool = False,
) -> int:
    """Write the ground truth of an output folder to a file or a new folder; how many rows there were.

    Args:
        output: The output folder.
        to: The file; of ``folder`` a folder that is not there yet, or an earlier export; None is standard output.
        file_format: ``jsonl`` (of documents the whole records, :class:`ExportedTruth`), ``csv``, ``parquet``, or ``folder``: a data card and
            one JSON Lines file per part of the split.
        level: One row per document, segment or page.
        silver: The AUTO_ACCEPTED records too, which no expert has seen.
        deidentify: Documents and reviewers under other names, free text masked by patterns (no guarantee).
        split: Shares by part, such as ``{"train": 0.8, "test": 0.2}``; a patient, or near copies, are never divided.
        seed: Of the split.
        with_text: What the pages say, too.

    UsageError where the options do not fit or ``to`` cannot be written; EvalkitError where what was written does not
    read as it was meant. Where documents had to be left out or lack something, all others are written, and then a
    StoreError names them.
    """
    wanted = _Wanted(level, silver, deidentify, split, seed, with_text)
    target = None if to is None else Path(os.path.realpath(to))
    _check_options(wanted, target, file_format)
    gathered = _gathered(OutputFolder(output), wanted)
    try:
        if file_format == "folder":
            assert target is not None  # noqa: S101 - _check_options
            count = _write_folder(gathered, wanted, target, OutputFolder(output))
        else:
            count = _write_file(gathered.documents, wanted, target, file_format)
    except OSError as error:
        raise UsageError(
            f"{to} cannot be written ({error.strerror or type(error).__name__})",
            code="EXPORT",
            remedy="Name another file or folder.",
        ) from error
    if gathered.problems:
        raise StoreError(
            f"{count} rows were written, but not all is there: {'; '.join(gathered.problems)}",
            code="EXPORT-INCOMPLETE",
            remedy="Restore these files from a backup or run the documents with --fresh, then export again.",
        )
    return count


def _check_options(wanted: _Wanted, target: Path | None, file_format: Format) -> None:
    if wanted.shares is not None:
        check_shares(wanted.shares)
    if target is None and file_format in ("parquet", "folder"):
        raise UsageError(f"{file_format} needs a place to be written to", code="EXPORT", remedy="Name one with --to.")
    if target is None or not target.exists():
        return
    if file_format == "folder" and not _is_ours(target):
        raise UsageError(
            f"{target} is there already and is no export, or holds more than one",
            code="EXPORT",
            remedy="Name a folder that is not there yet.",
        )
    if file_format != "folder" and not target.is_file():
        raise UsageError(f"{target} is there already and is no file", code="EXPORT", remedy="Name another file.")


# --- what is written ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Gathered:
    """What an export consists of."""

    documents: tuple[_Document, ...]
    problems: tuple[str, ...]
    """A sentence for each document that is left out or lacks something."""
    words: frozenset[str] = frozenset()
    """Masked everywhere: those of the folder's names."""


def _gathered(files: OutputFolder, wanted: _Wanted) -> _Gathered:
    found = read_truths(files.root, silver=wanted.silver)
    problems = list(found.problems)
    if not wanted.needs_bundles:
        return _Gathered(tuple(_Document(truth) for truth in found.truths), found.problems)
    aliases = _aliases(files, found, problems) if wanted.deidentify else None
    documents, traits = [], []
    for truth in found.truths:
        if truth.sha256 is None:
            continue  # named by read_truths
        try:
            bundle = read_bundle(files, truth.record.doc_id)
        except StoreError as error:
            problems.append(f"{truth.record.doc_id!r}: {error.message}")
            continue
        document = _document(truth, bundle, wanted, aliases)
        documents.append(document)
        if wanted.shares is not None:
            traits.append(replace(Traits.of(bundle), doc_id=document.truth.record.doc_id))
    if wanted.shares is not None:
        parts = divided(traits, wanted.shares, seed=wanted.seed)
        part = {doc_id: name for name, doc_ids in parts.items() for doc_id in doc_ids}
        documents = [replace(one, part=part[one.truth.record.doc_id]) for one in documents]
    return _Gathered(tuple(documents), tuple(problems), aliases.words if aliases else frozenset())


def _aliases(files: OutputFolder, found: Truths, problems: list[str]) -> Aliases:
    """Other names for all documents and reviewers of the folder, exported or not: notes may speak of any."""
    rows: dict[str, dict[str, Any]] = {}
    reviewers = set(found.reviewers)
    try:
        reviewers.update(Roster(files).list_names())
        if has_database(files.root):
            with OutputIndex(files.root) as index:
                rows = {row["doc_id"]: row for row in index.list_documents()}
    except StoreError as error:
        problems.append(error.message)
    hashes = {truth.record.doc_id: truth.sha256 for truth in found.truths}
    of_results = {name.rpartition("/")[2].removesuffix(".json") for name in files.list_json_files(RESULTS_FOLDER)}
    named = []
    for doc_id in sorted(of_results | rows.keys() | hashes.keys()):
        row = rows.get(doc_id, {})
        sha256 = hashes.get(doc_id) or row.get("sha256") or _hash_of(files, doc_id)
        named.append(NamedFile(doc_id, Path(row.get("file_path") or f"{doc_id}.pdf").name, sha256))
    return Aliases(named, reviewers)


def _hash_of(files: OutputFolder, doc_id: str) -> str | None:
    """What the result says, of a document that the index does not know."""
    try:
        sha256 = files.read_json(result_file_name(doc_id), schema_version=RESULT_VERSION).get("sha256")
    except StoreError:
        return None
    return sha256 if isinstance(sha256, str) else None


def _document(truth: Truth, bundle: DocumentBundle, wanted: _Wanted, aliases: Aliases | None) -> _Document:
    pages = tuple(_writable(page.text) for page in bundle.pages) if wanted.with_text else ()
    if aliases is None:
        return _Document(truth, pages)
    names = replace(Known.of(bundle), words=aliases.words)
    return _Document(deidentified(truth, names, aliases), tuple(masked(page, names) for page in pages))


def _writable(page: str) -> str:
    """The text without half characters, which cannot be written, and without what stands between pages."""
    return page.encode("utf-8", "replace").decode().replace(PAGE_BREAK, " ")


def _rows(documents: Iterable[_Document], wanted: _Wanted) -> Iterator[Row]:
    for document in documents:
        for row in rows([document.truth], wanted.level):
            yield row | _more(document, wanted, row)


def _records(documents: Iterable[_Document], wanted: _Wanted) -> Iterator[Row]:
    for document in documents:
        told = {"is_simulated": document.truth.is_simulated}
        yield document.truth.record.model_dump(mode="json") | told | _more(document, wanted, {})


def _more(document: _Document, wanted: _Wanted, row: Row) -> Row:
    more: Row = {}
    if wanted.shares:
        more["split"] = document.part
    if wanted.with_text:
        first, last = row.get("page") or row.get("start_page") or 1, row.get("page") or row.get("end_page")
        more["text"] = PAGE_BREAK.join(document.pages[max(first, 1) - 1 : last])
    return more


# --- files ----------------------------------------------------------------------------------------------------------


def _write_file(documents: Sequence[_Document], wanted: _Wanted, target: Path | None, file_format: Format) -> int:
    whole = file_format == "jsonl" and wanted.level == "document"
    found = list(_records(documents, wanted) if whole else _rows(documents, wanted))
    names = list(wanted.columns)
    if file_format == "csv" and wanted.level == "document":
        names = [*CSV_COLUMNS, *(name for name in ("split", "text") if name in names)]
    if target is None:
        sys.stdout.write(_jsonl(found) if file_format == "jsonl" else _csv(names, found))
        return len(found)
    with replacing(target) as temporary:
        if file_format == "parquet":
            _write_parquet(temporary, names, found)
            _compare(_read_parquet(temporary), found, target.name)
        elif file_format == "csv":
            write_private(temporary, _csv(names, found))
            _compare(_read_csv(temporary), [_cells(names, row) for row in found], target.name)
        else:
            write_private(temporary, _jsonl(found))
            _compare(_read_jsonl(temporary), found, target.name)
    return len(found)


def _jsonl(found: Iterable[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in found)


def _csv(names: Sequence[str], found: Iterable[Row]) -> str:
    text = StringIO(newline="")
    table = csv.DictWriter(text, names)
    table.writeheader()
    table.writerows(_cells(names, row) for row in found)
    return text.getvalue()


def _cells(names: Iterable[str], row: Row) -> dict[str, str]:
    return {name: "" if row[name] is None else str(_inert(row[name])) for name in names}


def save_table(frame: pd.DataFrame, to: Path | str) -> None:
    """A table as CSV that only its owner can read, and in which no text runs as a formula. UsageError: not writable."""
    target = Path(to)
    with _named(target), replacing(target) as temporary:
        plain = frame.astype(object)
        rows = plain.where(plain.notna(), None).to_dict("records")  # what is missing is empty, not the word nan
        cells = [{str(name): value for name, value in row.items()} for row in rows]
        write_private(temporary, _csv(list(map(str, frame.columns)), cells))


def save_json(value: Any, to: Path | str) -> None:
    """A JSON value as a file that only its owner can read. UsageError: not writable."""
    target = Path(to)
    with _named(target), replacing(target) as temporary:
        write_private(temporary, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


@contextmanager
def _named(target: Path) -> Iterator[None]:
    """What keeps the file from being written is told by its name."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written ({error.strerror})", code="EXPORT", remedy="Name another file."
        ) from error


def _inert(value: Any) -> Any:
    """Free text that a spreadsheet would run as a formula is quoted."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _read_jsonl(path: Path) -> list[Any]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]


def _read_csv(path: Path) -> list[Any]:
    with path.open(encoding="utf-8", newline="") as file:
        csv.field_size_limit(sys.maxsize)  # the text of a document is longer than the default
        return list(csv.DictReader(file))


def _write_parquet(path: Path, names: Iterable[str], found: list[Row]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, _arrow(name)) for name in names])
    with os.fdopen(_private(path), "wb") as file:
        pq.write_table(pa.Table.from_pylist(found, schema), file)
        file.flush()
        os.fsync(file.fileno())


def _arrow(column: str) -> pa.DataType:
    import pyarrow as pa

    types: dict[str, pa.DataType] = {"Int64": pa.int64(), "Float64": pa.float64(), "bool": pa.bool_()}
    return types.get(dtype(column), pa.string())


def _read_parquet(path: Path) -> list[Any]:
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        return list(pq.read_table(file).to_pylist())


def _compare(found: Sequence[Any], meant: Sequence[Row], name: str) -> None:
    """EvalkitError where the rows that were read are not those that were meant; it names row and column."""
    for number, (one, other) in enumerate(zip_longest(found, meant), 1):
        if one != other:
            columns = () if not (one and other) else [key for key in other if one.get(key) != other[key]]
            raise EvalkitError(
                f"{name} does not read as it was meant: row {number} {', '.join(columns) or 'is missing or too many'}",
                code="EXPORT-DIFFERS",
                remedy="Nothing was left behind. Export again, and report it if it happens again.",
            )


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read (0600), and sync it. OSError where it is there or cannot be made."""
    with os.fdopen(_private(path), "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _private(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A new name beside the target; what stands there in the end takes the target's place, or nothing is left of it."""
    temporary = target.with_name(f".evalkit-{os.getpid()}-{secrets.token_hex(8)}")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


# --- folders --------------------------------------------------------------------------------------------------------


def _write_folder(gathered: _Gathered, wanted: _Wanted, target: Path, files: OutputFolder) -> int:
    parts = {name: list[_Document]() for name in wanted.shares or [_UNDIVIDED]}
    for document in gathered.documents:
        parts[document.part or _UNDIVIDED].append(document)
    tables = {name: list(_rows(inside, wanted)) for name, inside in parts.items()}
    card = data_card(
        Facts(
            level=wanted.level,
            documents={name: tuple(one.truth for one in inside) for name, inside in parts.items()},
            rows={name: len(table) for name, table in tables.items()},
            columns={name: (dtype(name), meaning) for name, meaning in wanted.columns.items()},
            left_out=len(gathered.problems),
            is_divided=wanted.shares is not None,
            misses=misses(_PLANTED_SEED, _PLANTED) if wanted.deidentify else None,
            harm=harm(_texts(files, wanted), gathered.words) if wanted.deidentify else None,
        )
    )
    temporary = target.with_name(f".evalkit-{os.getpid()}-{secrets.token_hex(8)}")
    try:
        temporary.mkdir(mode=0o700)
        (temporary / "data").mkdir(mode=0o700)
        for name, table in tables.items():
            path = temporary / "data" / f"{name}.jsonl"
            write_private(path, _jsonl(table))
            _compare(_read_jsonl(path), table, path.name)
        write_private(temporary / "README.md", card)
        _take_place(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return sum(map(len, tables.values()))


def _texts(files: OutputFolder, wanted: _Wanted) -> Iterator[str]:
    """What some of the documents say: those with the smallest hashes, so that it is the same ones every time."""
    truths = [one for one in read_truths(files.root, silver=wanted.silver).truths if one.sha256]
    for truth in sorted(truths, key=lambda one: one.sha256 or "")[:_LOOKED_AT]:
        try:
            yield "\n".join(page.text for page in read_bundle(files, truth.record.doc_id).pages)
        except StoreError:
            continue  # named with the documents


def _is_ours(folder: Path) -> bool:
    """Whether a folder is an export and nothing else, so that another may take its place."""
    try:
        inside = {str(path.relative_to(folder)) for path in folder.rglob("*")}
        names = {name for name in inside if name not in ("README.md", "data")}
        return all(Path(name).parent == Path("data") and name.endswith(".jsonl") for name in names) and MARK in (
            folder / "README.md"
        ).read_text("utf-8").split("\n---\n")[0].split("\n")
    except (OSError, ValueError):
        return False


def _take_place(temporary: Path, target: Path) -> None:
    old = temporary.with_name(f"{temporary.name}-old")
    if not target.exists():
        temporary.rename(target)
        return
    target.rename(old)
    try:
        temporary.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old)
