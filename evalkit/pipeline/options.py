"""The options of ``run`` and ``evaluate``, and the settings that they replace."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from evalkit.errors import UsageError
from evalkit.pipeline.run_summary import RunProgressCallback
from evalkit.settings import Settings

Parameters = ParamSpec("Parameters")
OptionsT = TypeVar("OptionsT")
OutcomeT = TypeVar("OutcomeT")

_SETTING_OPTIONS = ("model", "workers", "reader", "profile", "executor")
"""The options that replace a setting; ``model`` replaces the default one."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run.

    Args:
        paths: PDF files, and folders that are searched.
        output: the folder to write to.
        model: the model that classifies and answers the verifiers' questions.
        reader: ``local`` or ``documentai``.
        profile: ``full``, or ``lean``: two calls a document instead of four.
        production: CSV or JSON with the production classifier's labels.
        patients_file: CSV or JSON with the patient whom each document should be about.
        classifications: folder with ``{doc_id}.json``: answers of another system, to be verified instead of asking.
        workers: processes that read PDFs; 0 is one per core.
        executor: ``local``, or ``dask://HOST:PORT``: where PDFs are read, and decided about without a language model.
        fresh: process everything again, also what an earlier run finished.
        extract: extract the fields of reports and forms too.
        even_purged: import documents again that were purged.
        on_progress: called after each document.
        settings: instead of the environment, ``evalkit.toml`` and the options from ``model`` to ``executor``.
    """

    paths: Iterable[Path | str]
    _: KW_ONLY
    output: Path | str | None = None
    model: str | None = None
    reader: str | None = None
    profile: str | None = None
    production: Path | str | None = None
    patients_file: Path | str | None = None
    classifications: Path | str | None = None
    workers: int | None = None
    executor: str | None = None
    fresh: bool = False
    extract: bool = False
    even_purged: bool = False
    on_progress: RunProgressCallback | None = None
    settings: Settings | None = None


@dataclass(frozen=True)
class EvaluateOptions:
    """The options of an evaluation; see :class:`RunOptions` for undescribed ones.

    Args:
        path: the PDF.
        classification: the answer of another system, as JSON value or text, to be verified instead of asking.
    """

    path: Path | str
    _: KW_ONLY
    classification: Mapping[str, Any] | str | None = None
    model: str | None = None
    reader: str | None = None
    profile: str | None = None
    settings: Settings | None = None


def accept_options(
    options_type: Callable[Parameters, OptionsT],
) -> Callable[[Callable[[OptionsT], OutcomeT]], Callable[Parameters, OutcomeT]]:
    """Give a function the fields and the description of its options record."""

    def spread_options(function: Callable[[OptionsT], OutcomeT]) -> Callable[Parameters, OutcomeT]:
        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> OutcomeT:
            return function(options_type(*args, **kwargs))

        outcome_type = inspect.signature(function).return_annotation
        vars(call)["__signature__"] = inspect.signature(options_type).replace(return_annotation=outcome_type)
        call.__doc__ = "\n\n".join(
            inspect.cleandoc(documented.__doc__ or "") for documented in (function, options_type)
        )
        return call

    return spread_options


def resolve_settings(*, settings: Settings | None = None, output: Path | str | None = None, **options: Any) -> Settings:
    """Return these settings, or the environment's with the ``options`` of a call.

    UsageError if both are given, except for ``output``, which every caller takes from its own argument first.
    """
    replaced_settings = {name: options[name] for name in _SETTING_OPTIONS if options.get(name) is not None}
    if settings is None:
        if "model" in replaced_settings:
            replaced_settings["models"] = {"default": replaced_settings.pop("model")}
        return Settings.load(output=None if output is None else str(output), **replaced_settings)
    if replaced_settings:
        raise UsageError(
            f"settings are given, and also {', '.join(replaced_settings)}",
            code="SETTINGS",
            remedy="Give one of the two: Settings.load(…) takes the options too.",
        )
    return settings
