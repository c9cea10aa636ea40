"""Options of ``run`` and ``evaluate``, and the settings that they replace."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from evalkit.document_types import load_own_types, use_own_types
from evalkit.errors import UsageError
from evalkit.pipeline.document_discovery import InputPaths
from evalkit.pipeline.run_summary import RunProgressCallback
from evalkit.settings import Settings

Parameters = ParamSpec("Parameters")
OptionsT = TypeVar("OptionsT")
OutcomeT = TypeVar("OutcomeT")

#: Options that replace the setting of the same name; ``model`` replaces the default model, ``usd_per_run`` the limit.
_SETTING_OPTIONS = ("model", "workers", "reader", "profile", "executor", "usd_per_run")


@dataclass(frozen=True, kw_only=True)
class ProcessingOptions:
    """Options of ``run``, ``arun`` and ``extract``; ``RunOptions`` describes them."""

    paths: InputPaths = field(kw_only=False)
    output: Path | str | None = None
    model: str | None = None
    reader: str | None = None
    workers: int | None = None
    executor: str | None = None
    fresh: bool = False
    even_purged: bool = False
    yes: bool = False
    probe: bool = True
    usd_per_run: Decimal | float | None = None
    settings: Settings | None = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(ProcessingOptions):
    """Options of ``run`` and ``arun``.

    Args:
        paths: a PDF file, a folder that is searched for them, or several of both.
        output: the folder to write to.
        model: the model that classifies and answers the verifiers' questions.
        reader: ``local`` or ``documentai``.
        profile: ``full``, or ``lean``, which makes two calls of a model per document instead of four.
        production: CSV or JSON with the production classifier's labels.
        patients_file: CSV or JSON with the patient whom each document should be about.
        name: name of the run. A run that has it is continued if it is the newest and its inputs and settings are equal;
            None: the newest unnamed run is continued, or a new run gets date and number as its name.
        classifications: folder with ``{doc_id}.json``: another system's answers, which are verified; no model is asked.
            None: those of the run before, if it had any.
        no_classifications: ask the model, even if the run before had classifications.
        workers: number of processes that read PDFs; 0 means one per core.
        executor: where PDFs are read, and decided about if no language model is asked: ``local`` or ``dask://HOST:PORT``.
        fresh: process all documents again, even those that an earlier run finished.
        extract: extract the fields of reports and forms too.
        even_purged: process documents again that were purged.
        settle_seconds: leave files that changed that recently for the next run, and accept folders without a document.
        yes: accept ``/``, the home folder and the output folder as inputs.
        probe: ask each language model a tiny test question first, unless every document is finished.
        usd_per_run: the highest cost of the run in US dollars; 0: no limit.
        on_progress: called after each document.
        settings: used instead of the environment, ``evalkit.toml`` and the options that replace settings.
    """

    name: str | None = None
    profile: str | None = None
    production: Path | str | None = None
    patients_file: Path | str | None = None
    classifications: Path | str | None = None
    no_classifications: bool = False
    extract: bool = False
    settle_seconds: float = 0
    on_progress: RunProgressCallback | None = None


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Options of ``evaluate``; see ``RunOptions`` for options not described here.

    Args:
        path: the PDF.
        classification: another system's answer as JSON value or text, which is verified; no model is asked.
    """

    path: Path | str = field(kw_only=False)
    classification: Mapping[str, Any] | str | None = None
    model: str | None = None
    reader: str | None = None
    profile: str | None = None
    settings: Settings | None = None


def accept_options(
    options_type: Callable[Parameters, OptionsT],
) -> Callable[[Callable[[OptionsT], OutcomeT]], Callable[Parameters, OutcomeT]]:
    """Decorate a function to accept the fields of its options record as arguments.

    The function also gets the record's description.
    """

    def spread_options(function: Callable[[OptionsT], OutcomeT]) -> Callable[Parameters, OutcomeT]:
        def call_function(*args: Parameters.args, **kwargs: Parameters.kwargs) -> OutcomeT:
            return function(options_type(*args, **kwargs))

        async def await_function(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Any:
            return await function(options_type(*args, **kwargs))  # type: ignore[misc]  # a coroutine function

        call: Any = wraps(function)(await_function if inspect.iscoroutinefunction(function) else call_function)
        outcome_type = inspect.signature(function).return_annotation
        vars(call)["__signature__"] = inspect.signature(options_type).replace(return_annotation=outcome_type)
        call.__doc__ = "\n\n".join(
            inspect.cleandoc(documented.__doc__ or "") for documented in (function, options_type)
        )
        return cast("Callable[Parameters, OutcomeT]", call)

    return spread_options


def resolve_settings(*, settings: Settings | None = None, output: Path | str | None = None, **options: Any) -> Settings:
    """Return the given settings, or settings from the environment and options.

    UsageError if settings are given together with options that replace settings. Only ``output`` may be given too:
    every caller takes it from its own argument first. The document types of the settings, and no others, are then in
    force in this process.
    """
    replaced_settings = {name: options[name] for name in _SETTING_OPTIONS if options.get(name) is not None}
    if settings is None:
        if "model" in replaced_settings:
            replaced_settings["models"] = {"default": replaced_settings.pop("model")}
        if "usd_per_run" in replaced_settings:
            replaced_settings["limits"] = {"usd_per_run": replaced_settings.pop("usd_per_run")}
        settings = Settings.load(output=None if output is None else str(output), **replaced_settings)
    elif replaced_settings:
        raise UsageError(
            f"these options cannot be combined with `settings`: {', '.join(replaced_settings)}",
            code="SETTINGS",
            remedy="Give either settings or options: Settings.load(…) takes these options too.",
        )
    use_own_types({} if settings.types_file is None else load_own_types(settings.types_file))
    return settings
