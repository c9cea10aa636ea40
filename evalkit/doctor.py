"""The checks of `evalkit doctor`: installation, settings, models, output folder."""

import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from evalkit.classification.offline.lexicon import load_lexicon
from evalkit.classification.offline.model_weights import load_embedded_weights
from evalkit.classification.own_verifiers import load_own_verifiers
from evalkit.classification.trap_examples import describe_failing_examples, describe_weakened_traps
from evalkit.classification.traps import load_shipped_and_site_traps, load_shipped_traps, parse_traps
from evalkit.core.clocks import format_zulu_now
from evalkit.core.install_hint import format_install_hint
from evalkit.core.safe_io import read_regular_file
from evalkit.core.wording import format_count
from evalkit.document_types import compute_types_version
from evalkit.errors import EvalkitError
from evalkit.llm.model import Provider, Request
from evalkit.llm.model_families import find_model_facts
from evalkit.llm.prompts import list_prompt_names, load_own_prompts
from evalkit.llm.request_options import send_with_all_options
from evalkit.llm.vision_support import MIN_CONTEXT_TOKENS, TEST_IMAGE_TEXT, render_vision_test_png
from evalkit.pipeline.run_history import read_run_records
from evalkit.settings import LOCAL_EXECUTOR, Settings
from evalkit.store import (
    RESULTS_FOLDER,
    SQLITE_FILE,
    LocalOutputFolder,
    check_and_describe_database,
    is_sqlite_missing,
    measure_database_clock_skew,
    open_output_folder,
    parse_output_location,
)
from evalkit.store.local_folder import EXPOSING_MODES

_REQUIRED_PACKAGES = (
    "pymupdf",
    "zxing-cpp",
    "pydantic",
    "rapidfuzz",
    "sqlalchemy",
    "pandas",
    "ipywidgets",
    "jupyterlab",
    "voila",
)
#: Below this much free disk space, the check of the output folder fails.
_MIN_FREE_BYTES = 1 << 30
#: Below room for this many files on a disk, a check fails: a document has some five.
_MIN_FREE_FILES = 10_000
#: The most seconds by which two clocks may differ: a heartbeat is missed after 40.
_MAX_CLOCK_SKEW_SECONDS = 10


@dataclass(frozen=True)
class DoctorCheck:
    """The outcome of one check: its name, result, finding and remedy."""

    name: str
    is_fine: bool
    found: str
    remedy: str = ""
    """The command or step that fixes the problem; may be set although the check is fine."""


def run_doctor_checks(settings: Settings, *, asks_models: bool = False) -> list[DoctorCheck]:
    """Run every check of the installation and settings; return one result per check.

    Writes nothing. Connects to the database, bucket and cluster that the settings name. ``asks_models``: also send one
    test question to each language model in the settings, and one request to Document AI if the settings choose it as
    reader; no document is sent.
    """
    return [
        DoctorCheck("python", sys.version_info >= (3, 11), sys.version.split()[0], "Install Python 3.11 or newer."),
        *(_check_package(package_name) for package_name in _REQUIRED_PACKAGES),
        _run_check("OCR", partial(_describe_ocr, settings)),
        _run_check("reader", partial(_describe_reader, settings, asks_document_ai=asks_models)),
        _run_check("executor", partial(_describe_executor, settings)),
        *_check_models(settings, asks_models=asks_models),
        _run_check("prompts and tables", partial(_describe_prompts_and_tables, settings.prompts_folder)),
        *(
            _run_check("own traps", partial(_describe_own_traps, path))
            for path in [settings.traps_file]
            if path is not None
        ),
        *(
            _run_check(f"verifier {name}", partial(_describe_own_verifier, name, settings.verifier_seconds))
            for name in settings.verifiers
        ),
        _run_check("output folder", partial(_describe_output_folder, settings.output)),
        _run_check("temporary folder", partial(_describe_disk, "temporary folder", Path(tempfile.gettempdir()))),
        _run_check("clock", partial(_describe_clock, settings)),
        _run_check("database", partial(_describe_database, settings)),
    ]


def _run_check(check_name: str, describe: Callable[[], str | DoctorCheck]) -> DoctorCheck:
    """Run ``describe`` and return its result; an EvalkitError is a failed check."""
    try:
        outcome = describe()
    except EvalkitError as error:
        return DoctorCheck(check_name, False, error.message, error.remedy)
    return DoctorCheck(check_name, True, outcome) if isinstance(outcome, str) else outcome


def _check_package(package_name: str) -> DoctorCheck:
    try:
        return DoctorCheck(package_name, True, version(package_name))
    except PackageNotFoundError:
        return DoctorCheck(package_name, False, "not installed", f"pip install {package_name}")


def _describe_ocr(settings: Settings) -> str | DoctorCheck:
    from evalkit.documents.ocr import find_second_reader, resolve_ocr_engine

    if settings.ocr == "none":
        return "switched off: a person decides documents with scanned pages"
    ocr_engine = resolve_ocr_engine(settings.ocr)
    if ocr_engine is None:
        remedy = f"apt-get install tesseract-ocr, or {format_install_hint('ocr')}; without an engine a person decides documents with scanned pages"
        return DoctorCheck("OCR", False, "no OCR engine is installed", remedy)
    if second_reader := find_second_reader(ocr_engine.name_and_version):
        return f"{ocr_engine.name_and_version}; numbers are read again by {second_reader.name_and_version}"
    return f"{ocr_engine.name_and_version}; no second engine reads numbers again, so that more of them go to a person"


def _describe_reader(settings: Settings, *, asks_document_ai: bool) -> str:
    from evalkit.pipeline.run_setup import create_document_ai_reader

    if settings.reader == "local":
        return "this machine"
    documentai_reader = create_document_ai_reader(settings)
    return documentai_reader.reader_version if asks_document_ai else f"Document AI: {documentai_reader.processor}"


def _describe_executor(settings: Settings) -> str:
    from evalkit.pipeline.event_loop import run_sync
    from evalkit.pipeline.executor.protocol import ReaderConfig
    from evalkit.pipeline.executor.selection import create_cluster

    if settings.executor == LOCAL_EXECUTOR:
        return "this machine"
    cluster = create_cluster(settings, ReaderConfig(settings.read_seconds, settings.ocr), decides_on_workers=False)
    return run_sync(cluster.connect_and_describe())


def _check_models(settings: Settings, *, asks_models: bool) -> Iterator[DoctorCheck]:
    """Check each model in the settings, and that template reviewers can see images."""
    reviewer_settings = settings.vllm_review.reviewers
    reviewer_models = (
        reviewer_settings.layout_model,
        reviewer_settings.semantic_model,
        reviewer_settings.arbitrator_model,
    )
    reviewing_models = {model_name or settings.models.default for model_name in reviewer_models}
    for model_name in sorted(settings.models.all_model_names | reviewing_models):
        check, answer_text = _check_model(
            model_name, settings, asks_model=asks_models, is_reviewer=model_name in reviewing_models
        )
        yield check
        if model_name in reviewing_models:
            vision_check = _check_vision(model_name, settings, answer_text)
            # If [vllm_review.reviewers] does not name the model, a lack of vision is reported but is no failure.
            yield vision_check if model_name in reviewer_models else replace(vision_check, is_fine=True)


def _check_model(
    model_name: str, settings: Settings, *, asks_model: bool, is_reviewer: bool
) -> tuple[DoctorCheck, str | None]:
    """Check that a model can be used; return its answer too, None if not asked."""
    from evalkit.pipeline.event_loop import run_sync
    from evalkit.pipeline.model_session import EMBEDDED_MODEL_NAME, create_provider

    check_name = "language model" if model_name != EMBEDDED_MODEL_NAME else "model"
    if model_name == EMBEDDED_MODEL_NAME:
        return DoctorCheck(check_name, True, "embedded: no key, no network"), None
    try:
        provider = create_provider(model_name, settings)
        answer_text = (
            run_sync(_send_test_request(provider, settings.call_seconds, is_reviewer=is_reviewer))
            if asks_model
            else None
        )
        return DoctorCheck(
            check_name, True, f"{model_name} {'answers' if asks_model else '(not asked; --live sends a test question)'}"
        ), answer_text
    except EvalkitError as error:
        return DoctorCheck(check_name, False, f"{model_name}: {error.message}", error.remedy), None


def _check_vision(model_name: str, settings: Settings, answer_text: str | None) -> DoctorCheck:
    """Check that a model sees images and reads prompts long enough for templates.

    ``answer_text``: the model's answer to the test image; None if no question was sent.
    """
    from evalkit.pipeline.model_session import EMBEDDED_MODEL_NAME

    check_name, remedy = "template reviewer", "Set a model that accepts images in the section [vllm_review.reviewers]."
    if model_name == EMBEDDED_MODEL_NAME:
        return DoctorCheck(check_name, True, "embedded: the program's own checks only; no images are looked at")
    facts = find_model_facts(model_name, settings.context_tokens)
    if answer_text is not None and TEST_IMAGE_TEXT not in answer_text:
        return DoctorCheck(check_name, False, f"{model_name} did not read the number on a test image", remedy)
    if answer_text is None and facts.has_vision is False:
        return DoctorCheck(check_name, False, f"{model_name} cannot see images", remedy)
    picture_note = "sees images" if answer_text or facts.has_vision else "images: not known (--live sends one)"
    if facts.context_tokens is None:
        context_note = f"its context length is not known: {MIN_CONTEXT_TOKENS:,} tokens are needed"
    elif facts.context_tokens < MIN_CONTEXT_TOKENS:
        return DoctorCheck(
            check_name,
            False,
            f"{model_name} reads {facts.context_tokens:,} tokens at once, {MIN_CONTEXT_TOKENS:,} are needed",
            "Set another model in the section [vllm_review.reviewers], or start your own server with a larger context "
            "and set context_tokens.",
        )
    else:
        context_note = f"reads {facts.context_tokens:,} tokens at once"
    return DoctorCheck(check_name, True, f"{model_name} {picture_note}; {context_note}")


async def _send_test_request(provider: Provider, time_limit_seconds: float, *, is_reviewer: bool) -> str:
    """Ask a model a short test question and return its answer.

    ``is_reviewer``: ask about a number on a test image. ModelCallError if there is no answer.
    """
    properties: dict[str, Any] = {"ready": {"type": "boolean"}}
    prompt = 'Answer with JSON: {"ready": true}'
    if is_reviewer:
        properties |= {"number": {"type": ["string", "null"]}}
        prompt = 'Which number is in the image? Answer with JSON: {"ready": true, "number": ...}, null if you see none.'
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    try:
        reply = await send_with_all_options(
            provider, Request(prompt, schema, time_limit_seconds, (render_vision_test_png(),) if is_reviewer else ())
        )
        return reply.text
    finally:
        await provider.close()


def _describe_prompts_and_tables(prompts_folder: str | None) -> str | DoctorCheck:
    versions = (
        f"{len(list_prompt_names())} prompts, {len(load_own_prompts(prompts_folder))} of them your own, types {compute_types_version()}, "
        f"lexicon {load_lexicon().version}, weights {load_embedded_weights().version}, traps {load_shipped_traps().version}"
    )
    return DoctorCheck(
        "prompts and tables", bool(list_prompt_names()), versions, "Reinstall evalkit: its prompt files are missing."
    )


def _describe_own_traps(path: str) -> str | DoctorCheck:
    """Summarise a site's own traps; a failed check if one misses its examples."""
    failed_examples = describe_failing_examples(load_shipped_and_site_traps(path))
    own_traps = parse_traps(read_regular_file(path).decode(), path)
    if failed_examples:
        more_note = f" and {len(failed_examples) - 3} more" * (len(failed_examples) > 3)
        faults = f"{path}: {'; '.join(failed_examples[:3])}{more_note}"
        return DoctorCheck("own traps", False, faults, "Correct these rows of the traps file, or their examples.")
    example_count = sum(len(row.fires) + len(row.silent) for row in own_traps.rows)
    summary = f"{path}: {format_count(len(own_traps.rows), 'row')}, {format_count(example_count, 'example')}, version {own_traps.version}"
    return "; ".join([summary, *describe_weakened_traps(load_shipped_traps(), own_traps)])


def _describe_own_verifier(name: str, time_limit_seconds: float) -> str:
    (verifier,) = load_own_verifiers([name], time_limit_seconds)
    return f"{verifier.agent}, version {verifier.code.version}"


def _describe_output_folder(output: str) -> str | DoctorCheck:
    folder = parse_output_location(output)
    if isinstance(folder, str):
        return folder if open_output_folder(folder).has_folder() else f"{folder}; nothing is stored there yet"
    if folder.exists() and not folder.is_dir():
        return DoctorCheck("output folder", False, f"{folder} is not a folder", "Choose another folder with --output.")
    existing_folder = _find_existing_folder(folder)
    folder_status = existing_folder.stat()
    if not os.access(existing_folder, os.R_OK | os.W_OK | os.X_OK):
        return DoctorCheck(
            "output folder", False, f"{folder} cannot be written", "Choose another folder with --output."
        )
    if folder.exists() and folder_status.st_uid != os.geteuid():
        remedy = "Start evalkit as the folder's owner, so that all its files belong to one user."
        return DoctorCheck("output folder", False, f"{folder} belongs to another user ({folder_status.st_uid})", remedy)
    if folder.exists() and folder_status.st_mode & EXPOSING_MODES:
        mode = f"{stat.S_IMODE(folder_status.st_mode):04o}"
        remedy = LocalOutputFolder.get_permission_remedy(folder)
        return DoctorCheck("output folder", False, f"{folder} is open to other users (mode {mode})", remedy)
    return _describe_disk("output folder", folder)


def _find_existing_folder(folder: Path) -> Path:
    return next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())


def _describe_disk(check_name: str, folder: Path) -> DoctorCheck:
    """Check that a folder's disk has room for bytes and for files."""
    disk = os.statvfs(_find_existing_folder(folder))
    free_bytes = disk.f_bavail * disk.f_frsize
    has_room_for_files = not disk.f_files or disk.f_favail >= _MIN_FREE_FILES  # some file systems have no limit
    files_note = "" if has_room_for_files else f", room for {disk.f_favail:,} more files only"
    return DoctorCheck(
        check_name,
        free_bytes >= _MIN_FREE_BYTES and has_room_for_files,
        f"{folder}, {free_bytes / 2**30:.0f} GiB free{files_note}",
        "Free some space on this disk." if has_room_for_files else "Remove files that are not needed on this disk.",
    )


def _describe_database(settings: Settings) -> str | DoctorCheck:
    output_folder = open_output_folder(settings.output, settings.database)
    description = check_and_describe_database(output_folder)
    if is_sqlite_missing(output_folder) and output_folder.list_json_files(RESULTS_FOLDER):
        return DoctorCheck("database", False, f"{SQLITE_FILE} is missing", "Run `evalkit reindex`.")
    return description


def _describe_clock(settings: Settings) -> str | DoctorCheck:
    """Compare this machine's clock with those of disk, database and newest run."""
    remedy = "Set the clock (timedatectl set-ntp true): claims, reviews and audits are ordered by time."
    folder = parse_output_location(settings.output)
    output_folder = open_output_folder(folder, settings.database)
    skew_by_clock = {"the database server": measure_database_clock_skew(output_folder)}
    if isinstance(folder, Path):
        # On Linux the file has no name: nothing is seen in the folder, and nothing stays.
        with suppress(OSError), tempfile.TemporaryFile(dir=_find_existing_folder(folder)) as probe:
            skew_by_clock["the output folder's disk"] = os.fstat(probe.fileno()).st_mtime - time.time()
    for clock_name, skew_seconds in skew_by_clock.items():
        if abs(skew_seconds) > _MAX_CLOCK_SKEW_SECONDS:
            return DoctorCheck("clock", False, f"{skew_seconds:+.0f} s between this machine and {clock_name}", remedy)
    now = format_zulu_now()[:19]
    newest = max((record.started_at[:19] for record in read_run_records(output_folder)), default="")
    if newest > now:
        return DoctorCheck("clock", False, f"it is {now[:10]} here, but the newest run began {newest[:10]}", remedy)
    return f"{now[:16]}Z"
