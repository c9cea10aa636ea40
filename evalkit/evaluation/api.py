"""Public functions of the evaluation: report and compare."""

from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

from evalkit.core.clocks import format_iso_seconds, utc_now
from evalkit.core.document_cache import keep_results
from evalkit.errors import UsageError
from evalkit.evaluation.report import EvaluationReport, build_report
from evalkit.evaluation.run_comparison import RunComparison, compare_studies
from evalkit.evaluation.study import read_folder_study, read_study, select_run
from evalkit.pipeline.run_history import read_run_records
from evalkit.settings import Settings
from evalkit.store import open_existing_output_folder, open_output_folder


@keep_results()
def report(
    output: Path | str | None = None,
    *,
    truth: Path | str | None = None,
    production: Path | str | None = None,
    max_error_rate: float | None = None,
    settings: Settings | None = None,
) -> EvaluationReport:
    """Estimate how good the decisions about all documents are, with 95 % intervals.

    Args:
        output: the output folder of a run; None means the folder of the settings.
        truth: CSV or JSON file of labels known to be right; they replace the truth from reviews.
        production: CSV or JSON file of the production classifier's labels, if the run was not given them.
        max_error_rate: tolerated share of wrong answers among the accepted documents; None means the setting.
        settings: settings to use instead of the environment and ``evalkit.toml``.

    UsageError if the folder has no results, or if a file of labels cannot be read.
    """
    settings = settings or Settings.load()
    study = read_study(
        output or settings.output,
        truth=truth,
        production=production,
        foreign_types=settings.foreign_types,
        settings=settings,
    )
    certificate_settings = settings.certificate
    if max_error_rate is not None:
        certificate_settings = certificate_settings.model_copy(update={"max_error_rate": max_error_rate})
    return build_report(study, made_at=format_iso_seconds(utc_now()), certificate_settings=certificate_settings)


@keep_results()
def compare(
    a: Path | str,
    b: Path | str,
    *,
    output: Path | str | None = None,
    truth: Path | str | None = None,
    settings: Settings | None = None,
) -> RunComparison:
    """Compare two runs over the same documents: what changed, and which is right.

    ``a`` and ``b`` are names of runs of ``output`` (None means the folder of the settings), or output folders; a name goes
    before a folder of that name. ``truth`` is as for :func:`report`. UsageError if a folder has no results.
    """
    settings = settings or Settings.load()
    run_names: set[str] = set()
    with nullcontext() if output else suppress(UsageError):  # two folders need no third one
        runs_folder = open_existing_output_folder(output or settings.output, settings.database)
        run_names = {record.name for record in read_run_records(runs_folder)}
    # Both are opened before one is read: a folder's own document types may be those of the truth.
    folder_by_name = {name: open_output_folder(name, settings.database) for name in (a, b) if name not in run_names}
    read = partial(read_folder_study, truth=truth, foreign_types=settings.foreign_types)
    newest = read(runs_folder) if run_names & {a, b} else None
    return compare_studies(
        *(
            select_run(newest, runs_folder, str(name)) if newest and name in run_names else read(folder_by_name[name])
            for name in (a, b)
        )
    )
