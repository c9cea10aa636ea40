"""The one Settings: the only reader of the environment and of ``evalkit.toml``.

Precedence: what is passed in > ``EVALKIT_NAME`` or ``EVALKIT_SECTION__NAME`` > ``./evalkit.toml`` > default.
"""

from __future__ import annotations

import os
import re
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from evalkit.core.safe_io import open_regular_file
from evalkit.errors import UsageError

LOCAL_EXECUTOR = "local"
"""The executor that is this machine."""

_MAX_FILE_BYTES = 16 * 1024**2
"""Bytes of ``evalkit.toml``."""

DocumentTypeName = Literal["Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other"]
"""The contract's five types, whose meaning is known floors above."""
_ModelName = Annotated[str, Field(min_length=1)]
_EntryPointName = Annotated[str, Field(min_length=1, max_length=100)]


#: A user without ``:``, a password without ``@`` and ``/``, a host or none, a port, a name.
_DATABASE_URL_PATTERN = re.compile(
    r"postgresql(\+psycopg)?://([^@:/\s]+(:[^@/\s]*)?@)?(\[[0-9a-fA-F:.]+\]|[^@:/?\s]*)(:[0-9]{1,5})?(/[^@/?\s]*)?(\?\S*)?"
)


def _validate_database_url(url: object) -> object:
    """An address that is read as it was meant: of a wrong one nothing is repeated, since it may have a password."""
    if isinstance(url, str) and not _DATABASE_URL_PATTERN.fullmatch(url):
        raise ValueError(
            "write postgresql://USER@HOST:PORT/NAME; the password belongs into ~/.pgpass, or with %40 and %2F in the place "
            "of its @ and /"
        )
    return url


_CLUSTER_URL_PATTERN = re.compile(r"dask://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")


def _validate_executor(executor: str) -> str:
    if executor != LOCAL_EXECUTOR and not _CLUSTER_URL_PATTERN.fullmatch(executor):
        raise ValueError("write local, or dask://HOST:PORT, the scheduler's address")
    return executor


class ModelSettings(BaseModel):
    """``[models]``: which model answers: ``embedded``, or provider and model such as ``gemini:gemini-2.5-flash``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    default: _ModelName = "embedded"
    """The model of every role that has none of its own."""
    classifier: _ModelName | None = None
    """Finds documents and types; here and below, not set: ``default``."""
    v2: _ModelName | None = None
    """Answers V2's question: do text and label agree?"""
    v3: _ModelName | None = None
    """Answers V3's question: is it one of the known traps?"""
    v4: _ModelName | None = None
    """Answers V4's question: is the evidence convincing?"""
    verifier: _ModelName | None = None
    """Answers the one question of V2, V3 and V4 together: ``profile = "lean"``."""
    extractor: _ModelName | None = None
    """Reads the fields of reports and forms."""
    evaluator: _ModelName | None = None
    """Judges the values that were read in reports."""
    grader: _ModelName | None = None
    """Judges tax forms that the rules have passed."""

    @property
    def model_name_by_role(self) -> dict[str, str]:
        """The models of the roles that have one of their own."""
        return {role: name for role, name in self.model_dump(exclude={"default"}).items() if name is not None}

    @property
    def all_model_names(self) -> set[str]:
        """All of them."""
        return {self.default, *self.model_name_by_role.values()}


class LimitSettings(BaseModel):
    """``[limits]``: how much language models may be asked and paid; a document that would exceed a limit escalates."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls_per_document: int = Field(40, ge=0)
    """Calls, repeated ones included; 0, here and below: no limit."""
    tokens_per_document: int = Field(0, ge=0)
    """Tokens in and out, thoughts and cached ones included."""
    usd_per_document: Decimal = Field(Decimal(0), ge=0)
    """US dollars by the provider's price list; calls under way count at their estimated cost."""
    calls_per_run: int = Field(0, ge=0)
    """Calls of one run."""
    tokens_per_run: int = Field(0, ge=0)
    """Tokens of one run."""
    usd_per_run: Decimal = Field(Decimal(0), ge=0)
    """US dollars of one run."""


class ReliabilityLoopSettings(BaseModel):
    """``[reliability_loop]``: how often reading the fields of a clinical report is tried. ``MARC_…`` variables work too."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    """``false``: a single attempt, still evaluated. Also ``MARC_RELIABILITY_LOOP_ENABLED``."""
    profile: Literal["real-time", "batch", "clinical"] = "batch"
    """Score and attempts: real-time 0.85 and 2, batch 0.95 and 3, clinical 0.98 and 5; the settings below win."""
    quality_threshold: float | None = Field(None, ge=0, le=1)
    """The score that is enough. Also ``MARC_QUALITY_THRESHOLD``."""
    max_iterations: int | None = Field(None, ge=1, le=20)
    """Attempts at one report. Also ``MARC_MAX_ITERATIONS``."""
    min_improvement: float | None = Field(None, ge=0, le=1)
    """An attempt that gains less than this is the last; not set: 0.05. Also ``MARC_MIN_IMPROVEMENT``."""
    timeout_ms: int | None = Field(None, ge=1, le=3_600_000)
    """Milliseconds for all attempts at one report; not set: 30000. Also ``MARC_TIMEOUT_MS``."""
    ensemble: tuple[_ModelName, ...] = ()
    """Models that judge the values together, their median counts; empty: the evaluator's model alone."""


_MIN_PAGE_MB = 256


class ReviewServerSettings(BaseModel):
    """``[review]``: limits of the experts' screen, and logins by a proxy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pages: int = Field(64, ge=0)
    """Screens open at once, of all reviewers together; each is a process. 0: no limit."""
    page_memory_mb: int = Field(1024, ge=0, le=1_048_576)
    """Megabytes that one screen may use before it is closed and its draft kept, at least 256; 0: no limit."""
    user_header: str | None = Field(None, pattern=r"^[A-Za-z][A-Za-z0-9-]*$")
    """The header in which a proxy names the reviewer it has logged in, such as ``X-Forwarded-User``; the proxy must
    remove it from what its clients send."""
    proxies: tuple[IPv4Address, ...] = ()
    """This machine's addresses that the proxy connects from; the header is ignored from others."""

    @model_validator(mode="after")
    def _check_consistency(self) -> ReviewServerSettings:
        if (self.user_header is None) != (not self.proxies):
            raise ValueError("user_header and proxies are set together, or neither")
        if any(not proxy.is_loopback for proxy in self.proxies):
            raise ValueError("only this machine is listened on, so that a proxy's address is 127.0.0.1 or the like")
        if 0 < self.page_memory_mb < _MIN_PAGE_MB:
            raise ValueError(f"page_memory_mb is at least {_MIN_PAGE_MB}, or 0: a page needs as much to open")
        return self


class RetentionSettings(BaseModel):
    """``[retention]``: how long documents are kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: int = Field(0, ge=0, le=36_525)
    """`evalkit purge --expired --yes` removes documents that were finished this many days ago; 0: none."""


class TemplateReviewerSettings(BaseModel):
    """``[vllm_review.reviewers]``: models that review bank-statement templates; one that is not set is ``[models] default``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layout_model: _ModelName | None = None
    """Reviews regions and columns; `evalkit doctor` tells if it can see pictures."""
    semantic_model: _ModelName | None = None
    """Reviews meaning: signs, dates, sums."""
    arbitrator_model: _ModelName | None = None
    """Decides if the two disagree."""
    layout_temperature: float = Field(0.1, ge=0, le=2)
    """The layout reviewer's temperature: precise and consistent."""
    semantic_temperature: float = Field(0.2, ge=0, le=2)
    """The semantic reviewer's temperature: a little more exploratory."""
    arbitrator_temperature: float = Field(0.0, ge=0, le=2)
    """The arbitrator's temperature."""

    @property
    def model_name_by_role(self) -> dict[str, str]:
        """The models of the roles that have one of their own."""
        model_names = {
            "layout_geometry": self.layout_model,
            "semantic_financial": self.semantic_model,
            "arbitrator": self.arbitrator_model,
        }
        return {role: name for role, name in model_names.items() if name is not None}


class TemplateReviewTimeoutSettings(BaseModel):
    """``[vllm_review.timeouts]``: time limits of a template's review, in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    single_reviewer_seconds: float = Field(60, gt=0, le=3_600)
    """One reviewer."""
    both_reviewers_seconds: float = Field(90, gt=0, le=3_600)
    """Both reviewers in parallel, reading the statement included."""
    arbitration_seconds: float = Field(45, gt=0, le=3_600)
    """The arbitrator."""
    total_cycle_seconds: float = Field(180, gt=0, le=3_600)
    """One attempt with all that is asked about it; building the next template may take as long again."""


class TemplateReviewRetrySettings(BaseModel):
    """``[vllm_review.retry]``: how often another template is tried."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_attempts: int = Field(3, ge=0, le=20)
    """Attempts after the first; fewer after arbitration, or if nothing improves."""
    convergence_threshold: float = Field(-0.2, ge=-1, le=0)
    """A lower score sends the template to a person at once."""


class TemplatePassCriteria(BaseModel):
    """``[vllm_review.pass_criteria]``: how many issues of each severity a template may have and still pass."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_critical: int = Field(0, ge=0)
    """Critical issues."""
    max_high: int = Field(0, ge=0)
    """Issues of high severity."""
    max_medium: int = Field(3, ge=0)
    """Issues of medium severity."""
    max_low: int = Field(10, ge=0)
    """Issues of low severity."""


class TemplateIssueCaps(BaseModel):
    """``[vllm_review.issue_caps]``: how many issues of each category are shown, worst first; all of them count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bbox_accuracy: int = Field(5, ge=1)
    """Boxes that miss or cut off rows."""
    column_mapping: int = Field(3, ge=1)
    """Columns named wrongly."""
    sign_logic: int = Field(2, ge=1)
    """Inverted signs."""
    date_format: int = Field(3, ge=1)
    """Dates that cannot be read."""
    multiline_handling: int = Field(3, ge=1)
    """Rows of several lines."""
    reconciliation_strategy: int = Field(2, ge=1)
    """Sums that are not met."""
    provenance: int = Field(5, ge=1)
    """Values without a place on the page."""
    other: int = Field(5, ge=1)
    """All others."""


class TemplateReviewSettings(BaseModel):
    """``[vllm_review]``: the two reviewers of bank-statement templates."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    """``false``: a single reviewer, and a person decides in any case."""
    reviewers: TemplateReviewerSettings = TemplateReviewerSettings()
    timeouts: TemplateReviewTimeoutSettings = TemplateReviewTimeoutSettings()
    retry: TemplateReviewRetrySettings = TemplateReviewRetrySettings()
    pass_criteria: TemplatePassCriteria = TemplatePassCriteria()
    issue_caps: TemplateIssueCaps = TemplateIssueCaps()


class Settings(BaseSettings):
    """Everything that can be set. Names are those of ``evalkit.toml``."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="EVALKIT_",
        env_nested_delimiter="__",
        toml_file="evalkit.toml",
        hide_input_in_errors=True,
    )

    output: str = Field("output", min_length=1)
    """The output folder; with ``database`` also a bucket: ``s3://BUCKET/PREFIX``, ``gs://…``."""
    database: Annotated[str | None, BeforeValidator(_validate_database_url)] = Field(None, repr=False)
    """The database of claims, drafts, journal and index: ``postgresql://USER@HOST/NAME``; not set: ``evalkit.sqlite`` in the
    output folder."""
    workers: int = Field(0, ge=0, le=256)
    """Processes that read documents; 0: one per core."""
    executor: Annotated[str, AfterValidator(_validate_executor)] = LOCAL_EXECUTOR
    """Where documents are read: ``local``, or ``dask://HOST:PORT``, the scheduler of a Dask cluster, which also decides
    if no language model is asked."""
    log_format: Literal["text", "json"] = "text"
    """The log's format, `evalkit review` included; ``json``: one object a line."""
    read_seconds: int = Field(300, ge=1, le=86_400)
    """Seconds for reading one document, or from one recognised page to the next."""
    read_memory_mb: int = Field(4096, ge=0, le=1_048_576)
    """Megabytes of address space for reading one document; 0: no limit."""
    ocr: Literal["auto", "tesseract", "rapidocr", "none"] = "auto"
    """The engine that recognises scanned pages; ``auto``: tesseract if it is installed, else RapidOCR."""
    ocr_seconds: int = Field(30, ge=1, le=3_600)
    """Seconds for recognising one page once."""
    reader: Literal["local", "documentai"] = "local"
    """What reads PDFs: this machine, or Google Document AI."""
    documentai_processor: str | None = None
    """``projects/P/locations/L/processors/ID``; add ``/processorVersions/V`` to stay with one version."""
    documentai_endpoint: str | None = None
    """Document AI's host, if not that of the processor's location."""
    documentai_transport: Literal["grpc", "rest"] = "grpc"
    """``rest``: for networks whose proxy does not let gRPC through."""
    documentai_seconds: int = Field(120, ge=1, le=3_600)
    """Seconds for one call of up to 15 pages; twice as many with repeated calls."""
    models: ModelSettings = ModelSettings()
    profile: Literal["full", "lean"] = "full"
    """``lean``: V2, V3 and V4 in one question, two calls for a document instead of four."""
    limits: LimitSettings = LimitSettings()
    calls_in_flight: int = Field(16, ge=1, le=1_000)
    """Calls of one model at once; fewer while the provider says that it is too many."""
    call_seconds: float = Field(60, gt=0, le=3_600)
    """Seconds for one question, repeated calls and the waits between them included."""
    window_characters: int = Field(400_000, ge=1_000)
    """Characters that a language model is asked about at once; longer documents are asked about in parts."""
    gemini_base_url: str | None = None
    """Gemini's address, if not Google's: a gateway of your own."""
    openai_base_url: str | None = None
    """The address of a server that speaks OpenAI's protocol; not set: OpenAI's."""
    anthropic_base_url: str | None = None
    """Anthropic's address, if not its own: a gateway of your own."""
    ollama_base_url: str | None = None
    """The address of an Ollama server; not set: ``http://127.0.0.1:11434/v1``."""
    reliability_loop: ReliabilityLoopSettings = ReliabilityLoopSettings()
    vllm_review: TemplateReviewSettings = TemplateReviewSettings()
    traps_file: str | None = Field(None, min_length=1)
    """A file with traps of your own, in addition to the shipped ones."""
    verifiers: tuple[_EntryPointName, ...] = ()
    """Verifiers of your own, which run after V4: names of entry points in the group ``evalkit.verifiers``."""
    verifier_seconds: float = Field(10, gt=0, le=600)
    """Seconds for one of these verifiers, one document and one step."""
    lossless_repair: bool = False
    """Repair wrong counts, missing types, a missing mixture and share sums before the arbiter counts issues."""
    on_agent_failure: Literal["escalate", "ignore"] = "escalate"
    """``ignore``: a verifier that could not answer raises no issue and is only named in the result's ``unanswered``; for
    comparing with older systems."""
    audit_rate_start: float = Field(0.20, ge=0, le=1)
    """Share of accepted documents that is drawn for audit at first."""
    audit_rate: float = Field(0.05, ge=0, le=1)
    """Share that is drawn after ``audit_target`` audits."""
    audit_target: int = Field(300, ge=0)
    """Audits after which ``audit_rate`` applies."""
    audit_seed: str = "evalkit"
    """Another seed draws other documents."""
    foreign_types: dict[str, DocumentTypeName] = {}
    """A label of the production classifier → one of the five types; a table in the file, JSON in the variable."""
    patients: Literal["one", "several"] = "one"
    """How many patients a file may be about; with ``several``, documents of several patients are a MINOR issue."""
    patients_by_folder: dict[str, Literal["one", "several"]] = {}
    """Source folder → ``one`` or ``several`` for the files in and below it, the innermost folder wins; a table in the file,
    JSON in the variable."""
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
        """Arguments, then the environment, then the specification's own variables, then the file."""
        return init_settings, env_settings, _MarcSettingsSource(settings_cls), TomlConfigSettingsSource(settings_cls)

    @classmethod
    def load(cls, **overrides: Any) -> Settings:
        """The settings in force; arguments that are None are not given. UsageError naming the one that is wrong."""
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
    """UsageError where something of that name is no file that can be read: it would be passed over in silence."""
    try:
        open_regular_file(name, _MAX_FILE_BYTES).close()
    except OSError as error:
        if not os.path.lexists(name):
            return
        reason = "it is a link that leads nowhere" if isinstance(error, FileNotFoundError) else error.strerror
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
    """``MARC_QUALITY_THRESHOLD`` and the others, as the section ``[reliability_loop]``."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002 - pydantic's
        """Not asked: all variables are one section."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """The variables that are set."""
        set_fields = {name: value for variable, name in _MARC_FIELDS.items() if (value := os.environ.get(variable))}
        return {"reliability_loop": set_fields} if set_fields else {}


PATIENT_SALT_VARIABLE = "EVALKIT_PATIENT_SALT"
_MIN_SALT_LENGTH = 16
"""Characters of a salt that nobody guesses."""


def read_patient_salt() -> str | None:
    """The salt of patients' keys, if the environment has it; never a setting, never in a file. UsageError if it is short."""
    salt = os.environ.get(PATIENT_SALT_VARIABLE, "").strip()
    if salt and len(salt) < _MIN_SALT_LENGTH:
        raise UsageError(
            f"{PATIENT_SALT_VARIABLE} has fewer than {_MIN_SALT_LENGTH} characters",
            code="PATIENT-SALT",
            remedy="Take a random one, for example of `openssl rand -hex 32`.",
        )
    return salt or None


#: Keys, projects and addresses, by the providers' own names.
_CREDENTIAL_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_GEMINI_BASE_URL",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_VERTEX_BASE_URL",
    "OLLAMA_API_KEY",
    "OPENAI_API_KEY",
)


def read_environment_credentials() -> dict[str, str]:
    """What the environment says about who pays, by the providers' own names; never a setting, never in a file."""
    return {name: value for name in _CREDENTIAL_VARIABLES if (value := os.environ.get(name))}
