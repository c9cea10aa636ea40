"""The one Settings: the only reader of the environment and of ``evalkit.toml``.

Precedence: what is passed in > ``EVALKIT_NAME`` or ``EVALKIT_SECTION__NAME`` > ``./evalkit.toml`` > default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
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
    """``[models]``: which model answers; ``embedded``, or provider and model such as ``gemini:gemini-2.5-flash``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    default: _ModelName = "embedded"
    """Of every role that has none of its own."""
    classifier: _ModelName | None = None
    """Finds documents and their types. Not set, here and below: ``default``."""
    v2: _ModelName | None = None
    """Answers V2's question: do text and label agree?"""
    v3: _ModelName | None = None
    """Answers V3's question: is it one of the known traps?"""
    v4: _ModelName | None = None
    """Answers V4's question: is the evidence convincing?"""
    verifier: _ModelName | None = None
    """V2, V3 and V4 in one question: ``profile = "lean"``."""
    extractor: _ModelName | None = None
    """Reads the fields of reports and forms."""
    evaluator: _ModelName | None = None
    """Judges the values that were read in reports."""
    grader: _ModelName | None = None
    """Judges forms that the rules have passed."""

    @property
    def model_name_by_role(self) -> dict[str, str]:
        """The models of the roles that have one of their own."""
        return {role: name for role, name in self.model_dump(exclude={"default"}).items() if name is not None}

    @property
    def all_model_names(self) -> set[str]:
        """All of them."""
        return {self.default, *self.model_name_by_role.values()}


class LimitSettings(BaseModel):
    """``[limits]``: what language models may be asked and paid; a document that would go beyond escalates."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls_per_document: int = Field(40, ge=0)
    """Calls, repeated ones too; 0, here and below: as many as it takes."""
    tokens_per_document: int = Field(0, ge=0)
    """Input and output, thoughts and cached ones too."""
    usd_per_document: Decimal = Field(Decimal(0), ge=0)
    """US dollars by the provider's list."""
    calls_per_run: int = Field(0, ge=0)
    """Calls of one run."""
    tokens_per_run: int = Field(0, ge=0)
    """Tokens of one run."""
    usd_per_run: Decimal = Field(Decimal(0), ge=0)
    """US dollars of one run."""


class ReliabilityLoopSettings(BaseModel):
    """``[reliability_loop]``: how often fields of clinical reports are tried. Also by specification 002's ``MARC_…``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    """False: one attempt, which is evaluated. ``MARC_RELIABILITY_LOOP_ENABLED``."""
    profile: Literal["real-time", "batch", "clinical"] = "batch"
    """Score and attempts: 0.85 and 2, 0.95 and 3, 0.98 and 5; what is set below counts instead."""
    quality_threshold: float | None = Field(None, ge=0, le=1)
    """The score that is enough. ``MARC_QUALITY_THRESHOLD``."""
    max_iterations: int | None = Field(None, ge=1, le=20)
    """Attempts at one report. ``MARC_MAX_ITERATIONS``."""
    min_improvement: float | None = Field(None, ge=0, le=1)
    """An attempt that gains less over the one before is the last. ``MARC_MIN_IMPROVEMENT``."""
    timeout_ms: int | None = Field(None, ge=1, le=3_600_000)
    """Milliseconds for all attempts at one report. ``MARC_TIMEOUT_MS``."""
    ensemble: tuple[_ModelName, ...] = ()
    """Models that judge the values together; the median counts. Empty: the evaluator's model alone."""


_MIN_PAGE_MB = 256


class ReviewServerSettings(BaseModel):
    """``[review]``: how many pages the experts' screen may have open, and who may say who a reviewer is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pages: int = Field(64, ge=0)
    """Pages that may be open at once, of all reviewers together; each is a process. 0: as many as it takes."""
    page_memory_mb: int = Field(1024, ge=0, le=1_048_576)
    """Memory that one page may use before it is ended. 0: as much as there is."""
    user_header: str | None = Field(None, pattern=r"^[A-Za-z][A-Za-z0-9-]*$")
    """The header in which a proxy on this machine, which logs reviewers in itself, names them; it must remove it from
    what its clients send. Nobody does, if it is not set."""
    proxies: tuple[IPv4Address, ...] = ()
    """The addresses that it connects from; of others the header means nothing."""

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
    """So many days after a document was finished, `evalkit purge --expired --yes` removes it. 0: it removes none."""


class TemplateReviewerSettings(BaseModel):
    """``[vllm_review.reviewers]``: who looks at bank-statement templates; a model that is not named is ``[models] default``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layout_model: _ModelName | None = None
    """Reviews regions and columns; `evalkit doctor` tells if it can see pictures."""
    semantic_model: _ModelName | None = None
    """Reviews signs, dates and sums."""
    arbitrator_model: _ModelName | None = None
    """Decides if the two disagree."""
    layout_temperature: float = Field(0.1, ge=0, le=2)
    """Precise and consistent."""
    semantic_temperature: float = Field(0.2, ge=0, le=2)
    """A little more exploratory."""
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


class TemplateReviewTimeoutSettings(BaseModel):
    """``[vllm_review.timeouts]``: seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    single_reviewer_seconds: float = Field(60, gt=0, le=3_600)
    """One reviewer."""
    both_reviewers_seconds: float = Field(90, gt=0, le=3_600)
    """Both side by side, and reading the statement for them."""
    arbitration_seconds: float = Field(45, gt=0, le=3_600)
    """The arbitrator."""
    total_cycle_seconds: float = Field(180, gt=0, le=3_600)
    """One attempt with all that is asked about it; the building of another one has as long again."""


class TemplateReviewRetrySettings(BaseModel):
    """``[vllm_review.retry]``: how long a template is tried."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_attempts: int = Field(3, ge=0, le=20)
    """So many attempts may follow the first one; fewer after arbitration, or where nothing gets better."""
    convergence_threshold: float = Field(-0.2, ge=-1, le=0)
    """An attempt with a lower score sends the template to a person at once."""


class TemplatePassCriteria(BaseModel):
    """``[vllm_review.pass_criteria]``: so many issues a template may have and pass."""

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
    """``[vllm_review.issue_caps]``: so many issues of a category are shown, the worst first; all of them count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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


class TemplateReviewSettings(BaseModel):
    """``[vllm_review]``: the two reviewers of bank-statement templates, as specification 004 sets them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    """False: one reviewer, and a person in any case."""
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
    """The folder that everything is written to; or, with ``database``, one in a bucket: ``s3://BUCKET/PREFIX``, ``gs://…``."""
    database: Annotated[str | None, BeforeValidator(_validate_database_url)] = Field(None, repr=False)
    """Where claims, drafts, journal and index are: ``postgresql://USER@HOST/NAME``; None: ``evalkit.sqlite`` in the output
    folder."""
    workers: int = Field(0, ge=0, le=256)
    """Processes that read PDFs; 0: one per core."""
    executor: Annotated[str, AfterValidator(_validate_executor)] = LOCAL_EXECUTOR
    """Where PDFs are read: ``local``, or ``dask://HOST:PORT``, the scheduler of a Dask cluster."""
    log_format: Literal["text", "json"] = "text"
    """How the command line writes its log; ``json``: one object a line."""
    read_seconds: int = Field(300, ge=1, le=86_400)
    """Seconds that reading one PDF may take, or from one recognised page to the next."""
    read_memory_mb: int = Field(4096, ge=0, le=1_048_576)
    """Megabytes of address space that reading one PDF may take; 0: as much as there is."""
    ocr: Literal["auto", "tesseract", "rapidocr", "none"] = "auto"
    """What recognises pages that are pictures; ``auto``: tesseract, else RapidOCR, whichever is installed."""
    ocr_seconds: int = Field(30, ge=1, le=3_600)
    """Seconds that recognising one page once may take."""
    reader: Literal["local", "documentai"] = "local"
    """What reads PDFs: this machine, or Google Document AI."""
    documentai_processor: str | None = None
    """``projects/P/locations/L/processors/ID``, with ``/processorVersions/V`` to stay with one version."""
    documentai_endpoint: str | None = None
    """Where Document AI is, if not where its location says."""
    documentai_transport: Literal["grpc", "rest"] = "grpc"
    """``rest``: for networks whose proxy does not let gRPC through."""
    documentai_seconds: int = Field(120, ge=1, le=3_600)
    """Seconds that one call for up to 15 pages may take; with all that is tried again twice as many."""
    models: ModelSettings = ModelSettings()
    profile: Literal["full", "lean"] = "full"
    """``lean``: V2, V3 and V4 in one question; two calls a document instead of four."""
    limits: LimitSettings = LimitSettings()
    calls_in_flight: int = Field(16, ge=1, le=1_000)
    """Calls of language models at once, at most; fewer after a provider said that it is too many."""
    call_seconds: float = Field(60, gt=0, le=3_600)
    """Seconds that one question may take, repeated calls and the waiting between them included."""
    window_characters: int = Field(400_000, ge=1_000)
    """A language model is asked about so much text at once; longer documents are asked about in parts."""
    gemini_base_url: str | None = None
    """Where Gemini is, if not at Google's: a proxy, a test server."""
    openai_base_url: str | None = None
    """Of any server that speaks OpenAI's protocol."""
    anthropic_base_url: str | None = None
    """The address of Anthropic, if it is not its own: a gateway."""
    ollama_base_url: str | None = None
    """The address of an Ollama server. Not set: ``http://127.0.0.1:11434/v1``."""
    reliability_loop: ReliabilityLoopSettings = ReliabilityLoopSettings()
    vllm_review: TemplateReviewSettings = TemplateReviewSettings()
    traps_file: str | None = Field(None, min_length=1)
    """A site's own traps, in the form of ``classification/traps.toml``; they come on top of the shipped ones."""
    verifiers: tuple[_EntryPointName, ...] = ()
    """A site's own verifiers, which come after V4: names of entry points in the group ``evalkit.verifiers``."""
    verifier_seconds: float = Field(10, gt=0, le=600)
    """Seconds that one of them may take for one document and one step."""
    lossless_repair: bool = False
    """Apply repairs that lose nothing (counts, missing types, share sums) before the arbiter counts."""
    on_agent_failure: Literal["escalate", "ignore"] = "escalate"
    """``ignore``: a verifier that could not answer raises no issue, and is named in the result's ``unanswered`` alone. Only
    for comparing with older systems."""
    audit_rate_start: float = Field(0.20, ge=0, le=1)
    """Share of accepted documents drawn for audit until ``audit_target`` audits are done."""
    audit_rate: float = Field(0.05, ge=0, le=1)
    """Share drawn after that."""
    audit_target: int = Field(300, ge=0)
    """Audits after which ``audit_rate`` applies."""
    audit_seed: str = "evalkit"
    """Another seed draws other documents."""
    foreign_types: dict[str, DocumentTypeName] = {}
    """A label of the production classifier → one of the five types."""
    patients: Literal["one", "several"] = "one"
    """How many patients a file may be about; with ``several`` documents of several in one file are a MINOR issue."""
    patients_by_folder: dict[str, Literal["one", "several"]] = {}
    """Source folder → the same for the files in and below it; of several folders the innermost counts."""
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
                remedy="Correct it; the README lists every setting.",
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
            f"{name} in this folder cannot be read: {reason}", code="SETTINGS", remedy="Mend it, or take it away."
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


def read_environment_variables(names: Iterable[str]) -> dict[str, str]:
    """Read the variables that are set: keys and projects by their providers' names. Never a setting, never in a file."""
    return {name: value for name in names if (value := os.environ.get(name))}
