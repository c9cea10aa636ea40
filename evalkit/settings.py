"""The settings, and the only reader of the environment and of ``evalkit.toml``.

Precedence: arguments > ``EVALKIT_NAME`` or ``EVALKIT_SECTION__NAME`` > ``./evalkit.toml`` > default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from evalkit.core.records import StrictRecord
from evalkit.core.safe_io import open_regular_file
from evalkit.errors import UsageError

LOCAL_EXECUTOR = "local"
"""The executor of this machine."""

_MAX_FILE_BYTES = 16 * 1024**2
"""The largest ``evalkit.toml``, in bytes."""

DocumentTypeName = Literal["Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other"]
"""The five document types; ``classification/types.toml`` defines them."""
_ModelName = Annotated[str, Field(min_length=1)]
_EntryPointName = Annotated[str, Field(min_length=1, max_length=100)]


#: A user without ``:``, a password without ``@`` and ``/``, an optional host, a port, a name.
_DATABASE_URL_PATTERN = re.compile(
    r"postgresql(\+psycopg)?://([^@:/\s]+(:[^@/\s]*)?@)?(\[[0-9a-fA-F:.]+\]|[^@:/?\s]*)(:[0-9]{1,5})?(/[^@/?\s]*)?(\?\S*)?"
)


def _validate_database_url(url: object) -> object:
    """Check a database address; the error does not repeat it: it may have a password."""
    if isinstance(url, str) and not _DATABASE_URL_PATTERN.fullmatch(url):
        raise ValueError(
            "write postgresql://USER@HOST:PORT/NAME; put the password into ~/.pgpass, or write %40 and %2F for its @ and /"
        )
    return url


_CLUSTER_URL_PATTERN = re.compile(r"dask://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")


def _validate_executor(executor: str) -> str:
    if executor != LOCAL_EXECUTOR and not _CLUSTER_URL_PATTERN.fullmatch(executor):
        raise ValueError(f"{executor!r} is no executor: write local, or a scheduler's address, dask://HOST:PORT")
    return executor


class ModelSettings(StrictRecord):
    """``[models]``: the model of each role.

    ``embedded``, or provider and model such as ``gemini:gemini-2.5-flash``.
    """

    default: _ModelName = "embedded"
    """The model of every role that has none of its own."""
    classifier: _ModelName | None = None
    """Finds documents and their types. Not set, here and below: ``default``."""
    v2: _ModelName | None = None
    """Answers V2's question: do text and label agree?"""
    v3: _ModelName | None = None
    """Answers V3's question: is it one of the known traps?"""
    v4: _ModelName | None = None
    """Answers V4's question: is the evidence convincing?"""
    verifier: _ModelName | None = None
    """Answers V2, V3 and V4 in one question, with ``profile = "lean"``."""
    extractor: _ModelName | None = None
    """Extracts the fields of reports and forms."""
    evaluator: _ModelName | None = None
    """Judges the values that were extracted from reports."""
    grader: _ModelName | None = None
    """Judges forms that the rules have passed."""

    @property
    def model_name_by_role(self) -> dict[str, str]:
        """The models of the roles that have one of their own."""
        return {role: name for role, name in self.model_dump(exclude={"default"}).items() if name is not None}

    @property
    def all_model_names(self) -> set[str]:
        """The models of all roles."""
        return {self.default, *self.model_name_by_role.values()}


class LimitSettings(StrictRecord):
    """``[limits]``: limits of calls, tokens and costs.

    A document that would exceed one goes to a person.
    """

    calls_per_document: int = Field(40, ge=0)
    """Calls, repeated ones included. 0, here and below: no limit."""
    tokens_per_document: int = Field(0, ge=0)
    """Tokens of input and output, with reasoning and cached ones."""
    usd_per_document: Decimal = Field(Decimal(0), ge=0)
    """US dollars by the provider's list prices."""
    calls_per_run: int = Field(0, ge=0)
    """Calls of one run."""
    tokens_per_run: int = Field(0, ge=0)
    """Tokens of one run."""
    usd_per_run: Decimal = Field(Decimal(0), ge=0)
    """US dollars of one run."""


class ReliabilityLoopSettings(StrictRecord):
    """``[reliability_loop]``: attempts at the fields of clinical reports.

    The variables ``MARC_…`` set it as well.
    """

    enabled: bool = True
    """False: a single attempt, which is evaluated. ``MARC_RELIABILITY_LOOP_ENABLED``."""
    profile: Literal["real-time", "batch", "clinical"] = "batch"
    """Threshold and most attempts: ``real-time`` 0.85 and 2, ``batch`` 0.95 and 3, ``clinical`` 0.98 and 5; the settings below
    override them."""
    quality_threshold: float | None = Field(None, ge=0, le=1)
    """The score at which the loop stops. ``MARC_QUALITY_THRESHOLD``."""
    max_iterations: int | None = Field(None, ge=1, le=20)
    """The most attempts at one report. ``MARC_MAX_ITERATIONS``."""
    min_improvement: float | None = Field(None, ge=0, le=1)
    """The loop stops if an attempt improves the score by less. ``MARC_MIN_IMPROVEMENT``."""
    timeout_ms: int | None = Field(None, ge=1, le=3_600_000)
    """Milliseconds for all attempts at one report. ``MARC_TIMEOUT_MS``."""
    ensemble: tuple[_ModelName, ...] = ()
    """Models that judge the values together; the median counts. Empty: the evaluator's model only."""


_MIN_PAGE_MB = 256


class ReviewServerSettings(StrictRecord):
    """``[review]``: limits of the experts' screen, and a proxy that logs reviewers in."""

    pages: int = Field(64, ge=0)
    """The most open pages of all reviewers together; each is a process. 0: no limit."""
    page_memory_mb: int = Field(1024, ge=0, le=1_048_576)
    """The megabytes that one page may use before it is ended. 0: no limit."""
    user_header: str | None = Field(None, pattern=r"^[A-Za-z][A-Za-z0-9-]*$")
    """The header in which a proxy on this machine names the reviewer that it has logged in. It must remove this header from
    its clients' requests. None: no proxy logs reviewers in."""
    proxies: tuple[IPv4Address, ...] = ()
    """The addresses that the proxy connects from; the header of others is ignored."""

    @model_validator(mode="after")
    def _check_consistency(self) -> ReviewServerSettings:
        if (self.user_header is None) != (not self.proxies):
            raise ValueError("user_header and proxies belong together: set both, or neither")
        if any(not proxy.is_loopback for proxy in self.proxies):
            raise ValueError("proxies must be on this machine: use an address such as 127.0.0.1")
        if 0 < self.page_memory_mb < _MIN_PAGE_MB:
            raise ValueError(f"page_memory_mb is too small: a page needs {_MIN_PAGE_MB} to open; 0 sets no limit")
        return self


class RetentionSettings(StrictRecord):
    """``[retention]``: how long documents are kept."""

    days: int = Field(0, ge=0, le=36_525)
    """Days after a document was finished when `evalkit purge --expired --yes` deletes it. 0: never."""


class TemplateReviewerSettings(StrictRecord):
    """``[vllm_review.reviewers]``: the models that review bank-statement templates.

    None: ``[models] default``.
    """

    layout_model: _ModelName | None = None
    """Reviews regions and columns; `evalkit doctor` tells if it can see pictures."""
    semantic_model: _ModelName | None = None
    """Reviews signs, dates and sums."""
    arbitrator_model: _ModelName | None = None
    """Decides if the two disagree."""
    layout_temperature: float = Field(0.1, ge=0, le=2)
    """Low, for precise and consistent answers."""
    semantic_temperature: float = Field(0.2, ge=0, le=2)
    """Slightly higher, for a second view."""
    arbitrator_temperature: float = Field(0.0, ge=0, le=2)
    """Zero: the same answer each time, as far as the model can."""

    @property
    def model_name_by_role(self) -> dict[str, str]:
        """The models of the roles that have one of their own."""
        model_names = {
            "layout_geometry": self.layout_model,
            "semantic_financial": self.semantic_model,
            "arbitrator": self.arbitrator_model,
        }
        return {role: name for role, name in model_names.items() if name is not None}


class TemplateReviewTimeoutSettings(StrictRecord):
    """``[vllm_review.timeouts]``: seconds."""

    single_reviewer_seconds: float = Field(60, gt=0, le=3_600)
    """One reviewer."""
    both_reviewers_seconds: float = Field(90, gt=0, le=3_600)
    """Both in parallel, and reading the statement for them."""
    arbitration_seconds: float = Field(45, gt=0, le=3_600)
    """The arbitrator."""
    total_cycle_seconds: float = Field(180, gt=0, le=3_600)
    """One attempt with all questions about it; building another template may take as long again."""


class TemplateReviewRetrySettings(StrictRecord):
    """``[vllm_review.retry]``: attempts at a template."""

    max_attempts: int = Field(3, ge=0, le=20)
    """The most attempts after the first; fewer after arbitration, or without improvement."""
    convergence_threshold: float = Field(-0.2, ge=-1, le=0)
    """An attempt with a lower score sends the template to a person at once."""


class TemplatePassCriteria(StrictRecord):
    """``[vllm_review.pass_criteria]``: the most issues with which a template passes."""

    max_critical: int = Field(0, ge=0)
    """Critical issues."""
    max_high: int = Field(0, ge=0)
    """Issues of high severity."""
    max_medium: int = Field(3, ge=0)
    """Issues of medium severity."""
    max_low: int = Field(10, ge=0)
    """Issues of low severity."""


class TemplateIssueCaps(StrictRecord):
    """``[vllm_review.issue_caps]``: the most issues shown of a category.

    The worst come first; all of them count.
    """

    bbox_accuracy: int = Field(5, ge=1)
    """Boxes that miss or cut off rows."""
    column_mapping: int = Field(3, ge=1)
    """Columns with wrong names."""
    sign_logic: int = Field(2, ge=1)
    """Inverted signs."""
    date_format: int = Field(3, ge=1)
    """Dates that cannot be read."""
    multiline_handling: int = Field(3, ge=1)
    """Rows of several lines."""
    reconciliation_strategy: int = Field(2, ge=1)
    """Sums that are not met."""
    provenance: int = Field(5, ge=1)
    """Values that are not printed as they were read."""
    other: int = Field(5, ge=1)
    """All others."""


class TemplateReviewSettings(StrictRecord):
    """``[vllm_review]``: the two reviewers of bank-statement templates."""

    enabled: bool = True
    """False: one reviewer, and a person decides in any case."""
    reviewers: TemplateReviewerSettings = TemplateReviewerSettings()
    timeouts: TemplateReviewTimeoutSettings = TemplateReviewTimeoutSettings()
    retry: TemplateReviewRetrySettings = TemplateReviewRetrySettings()
    pass_criteria: TemplatePassCriteria = TemplatePassCriteria()
    issue_caps: TemplateIssueCaps = TemplateIssueCaps()


class Settings(BaseSettings):
    """All settings, by their names in ``evalkit.toml``."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="EVALKIT_",
        env_nested_delimiter="__",
        toml_file="evalkit.toml",
        hide_input_in_errors=True,
    )

    output: str = Field("output", min_length=1)
    """The output folder; with ``database`` also one in a bucket: ``s3://BUCKET/PREFIX``, ``gs://…``."""
    database: Annotated[str | None, BeforeValidator(_validate_database_url)] = Field(None, repr=False)
    """The database of claims, drafts, journal and index: ``postgresql://USER@HOST/NAME``; None: ``evalkit.sqlite`` in the
    output folder."""
    workers: int = Field(0, ge=0, le=256)
    """Processes that read PDFs; 0: one per core."""
    executor: Annotated[str, AfterValidator(_validate_executor)] = LOCAL_EXECUTOR
    """Where PDFs are read: ``local``, or a Dask scheduler, ``dask://HOST:PORT``."""
    log_format: Literal["text", "json"] = "text"
    """The format of the command line's log; ``json``: one object a line."""
    read_seconds: int = Field(300, ge=1, le=86_400)
    """Seconds that reading one PDF may take; with OCR, seconds from one recognised page to the next."""
    read_memory_mb: int = Field(4096, ge=0, le=1_048_576)
    """Megabytes of address space that reading one PDF may take; 0: no limit."""
    ocr: Literal["auto", "tesseract", "rapidocr", "none"] = "auto"
    """The OCR engine of scanned pages; ``auto``: tesseract, or RapidOCR if tesseract is not installed."""
    ocr_seconds: int = Field(30, ge=1, le=3_600)
    """Seconds that one recognition of one page may take."""
    reader: Literal["local", "documentai"] = "local"
    """The reader of PDFs: this machine, or Google Document AI."""
    documentai_processor: str | None = None
    """``projects/P/locations/L/processors/ID``; append ``/processorVersions/V`` to fix the version."""
    documentai_endpoint: str | None = None
    """The address of Document AI; None: that of the processor's location."""
    documentai_transport: Literal["grpc", "rest"] = "grpc"
    """``rest``: for networks whose proxy does not let gRPC through."""
    documentai_seconds: int = Field(120, ge=1, le=3_600)
    """Seconds that one call for up to 15 pages may take; with retries twice as many."""
    models: ModelSettings = ModelSettings()
    profile: Literal["full", "lean"] = "full"
    """``lean``: V2, V3 and V4 in one question, two calls a document instead of four."""
    limits: LimitSettings = LimitSettings()
    calls_in_flight: int = Field(16, ge=1, le=1_000)
    """The most simultaneous calls of language models; fewer while a provider limits the rate."""
    call_seconds: float = Field(60, gt=0, le=3_600)
    """Seconds that one question may take, including retries and the waits between them."""
    window_characters: int = Field(400_000, ge=1_000)
    """The most characters of a document in one question; longer documents are asked about in parts."""
    gemini_base_url: str | None = None
    """The address of Gemini, if it is not Google's: a gateway, a test server."""
    openai_base_url: str | None = None
    """The address of any server that speaks OpenAI's protocol."""
    anthropic_base_url: str | None = None
    """The address of Anthropic, if it is not its own: a gateway."""
    ollama_base_url: str | None = None
    """The address of an Ollama server. Not set: ``http://127.0.0.1:11434/v1``."""
    reliability_loop: ReliabilityLoopSettings = ReliabilityLoopSettings()
    vllm_review: TemplateReviewSettings = TemplateReviewSettings()
    traps_file: str | None = Field(None, min_length=1)
    """A file with a site's own traps, in the form of ``classification/traps.toml``, in addition to the shipped ones."""
    verifiers: tuple[_EntryPointName, ...] = ()
    """A site's own verifiers, run after V4: names of entry points in the group ``evalkit.verifiers``."""
    verifier_seconds: float = Field(10, gt=0, le=600)
    """Seconds that an own verifier may take for one step of one document."""
    lossless_repair: bool = False
    """Apply lossless repairs (counts, missing types, share sums) before the arbiter counts issues."""
    on_agent_failure: Literal["escalate", "ignore"] = "escalate"
    """``ignore``: a verifier that could not answer raises no issue, and is only named in the result's ``unanswered``. Meant
    only for comparisons with older systems."""
    audit_rate_start: float = Field(0.20, ge=0, le=1)
    """Share of accepted documents drawn for audit until ``audit_target`` audits are done."""
    audit_rate: float = Field(0.05, ge=0, le=1)
    """Share drawn for audit after that."""
    audit_target: int = Field(300, ge=0)
    """Audits after which ``audit_rate`` applies."""
    audit_seed: str = "evalkit"
    """The seed of the draws: another one draws other documents."""
    foreign_types: dict[str, DocumentTypeName] = {}
    """The type of each label of the production classifier."""
    patients: Literal["one", "several"] = "one"
    """Patients that a file may be about; with ``several``, documents of several patients in one file are a MINOR issue."""
    patients_by_folder: dict[str, Literal["one", "several"]] = {}
    """The same by source folder, for the files in and below it; the innermost folder counts."""
    review: ReviewServerSettings = ReviewServerSettings()
    retention: RetentionSettings = RetentionSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - one file is enough
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: arguments, environment, the specification's variables, file."""
        return init_settings, env_settings, _MarcSettingsSource(settings_cls), TomlConfigSettingsSource(settings_cls)

    @classmethod
    def load(cls, **overrides: Any) -> Settings:
        """Load the settings; arguments that are None count as missing.

        UsageError names the wrong setting.
        """
        _require_readable_file_if_present(str(cls.model_config["toml_file"]))
        try:
            return cls(**{name: value for name, value in overrides.items() if value is not None})
        except ValidationError as error:
            first_error = error.errors()[0]
            raise UsageError(
                f"setting {'.'.join(str(part) for part in first_error['loc'])}: {first_error['msg'].removeprefix('Value error, ')}",
                code="SETTINGS",
                remedy="Correct the option, the EVALKIT_… variable or the line in evalkit.toml.",
            ) from error
        except (
            ValueError,
            RecursionError,
        ) as error:  # TOML that cannot be parsed, JSON in a variable that cannot be parsed
            raise UsageError(
                f"evalkit.toml or an EVALKIT_… variable cannot be read: {error}",
                code="SETTINGS",
                remedy="Correct it; `evalkit docs settings` lists every setting.",
            ) from error


def _require_readable_file_if_present(name: str) -> None:
    """Raise UsageError for an unreadable file, which would be ignored silently."""
    try:
        open_regular_file(name, _MAX_FILE_BYTES).close()
    except OSError as error:
        if not os.path.lexists(name):
            return
        reason = "it is a broken link" if isinstance(error, FileNotFoundError) else error.strerror
        raise UsageError(
            f"{name} in this folder cannot be read: {reason}", code="SETTINGS", remedy="Fix or remove the file."
        ) from error


#: Specification 002, section 4.3.
_MARC_FIELDS = {
    "MARC_RELIABILITY_LOOP_ENABLED": "enabled",
    "MARC_QUALITY_THRESHOLD": "quality_threshold",
    "MARC_MAX_ITERATIONS": "max_iterations",
    "MARC_MIN_IMPROVEMENT": "min_improvement",
    "MARC_TIMEOUT_MS": "timeout_ms",
}


class _MarcSettingsSource(PydanticBaseSettingsSource):
    """The variables ``MARC_…`` as the section ``[reliability_loop]``."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002 - pydantic's
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        set_fields = {name: value for variable, name in _MARC_FIELDS.items() if (value := os.environ.get(variable))}
        return {"reliability_loop": set_fields} if set_fields else {}


PATIENT_SALT_VARIABLE = "EVALKIT_PATIENT_SALT"
_MIN_SALT_LENGTH = 16
"""The fewest characters of a salt, so that nobody can guess it."""


def read_patient_salt() -> str | None:
    """Read the salt of patients' keys from the environment; it is never in a file.

    UsageError if it is too short.
    """
    salt = os.environ.get(PATIENT_SALT_VARIABLE, "").strip()
    if salt and len(salt) < _MIN_SALT_LENGTH:
        raise UsageError(
            f"{PATIENT_SALT_VARIABLE} has fewer than {_MIN_SALT_LENGTH} characters",
            code="PATIENT-SALT",
            remedy="Set a random one, for example the output of `openssl rand -hex 32`.",
        )
    return salt or None


def read_environment_variables(names: Iterable[str]) -> dict[str, str]:
    """Read the variables that are set: providers' keys and projects, never in a file."""
    return {name: value for name in names if (value := os.environ.get(name))}
