"""The settings; no other module reads the environment or ``evalkit.toml``.

The first source that sets a value counts: arguments > ``EVALKIT_NAME`` or ``EVALKIT_SECTION__NAME`` >
``./evalkit.toml`` > default.
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

from evalkit.core.model_names import complete_model_name
from evalkit.core.records import StrictRecord
from evalkit.core.safe_io import open_regular_file
from evalkit.document_types import list_type_names, load_own_types, use_own_types
from evalkit.errors import UsageError

#: The setting ``executor`` for reading PDFs on this machine.
LOCAL_EXECUTOR = "local"

#: A larger ``evalkit.toml`` is refused.
_MAX_FILE_BYTES = 16 * 1024**2

#: Name of a model; its provider is added if only one can be meant.
_ModelName = Annotated[str, Field(min_length=1), AfterValidator(complete_model_name)]
_LanguageCode = Annotated[str, Field(pattern="^[a-z]{2}$")]
_EntryPointName = Annotated[str, Field(min_length=1, max_length=100)]


#: ``postgresql://USER:PASSWORD@HOST:PORT/NAME?OPTIONS``; all parts after ``//`` are optional, a password has no ``@``
#: or ``/``.
_DATABASE_URL_PATTERN = re.compile(
    r"postgresql(\+psycopg)?://([^@:/\s]+(:[^@/\s]*)?@)?(\[[0-9a-fA-F:.]+\]|[^@:/?\s]*)(:[0-9]{1,5})?(/[^@/?\s]*)?(\?\S*)?"
)


def _validate_database_url(url: object) -> object:
    """Return a valid database address; ValueError, which does not quote it, otherwise.

    The address may contain a password.
    """
    if isinstance(url, str) and not _DATABASE_URL_PATTERN.fullmatch(url):
        raise ValueError(
            "write postgresql://USER@HOST:PORT/NAME; put the password into ~/.pgpass, or write %40 and %2F for @ and / in the password"
        )
    return url


_CLUSTER_URL_PATTERN = re.compile(r"dask://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}")


def _validate_executor(executor: str) -> str:
    if executor != LOCAL_EXECUTOR and not _CLUSTER_URL_PATTERN.fullmatch(executor):
        raise ValueError("write local, or the address of a Dask scheduler, dask://HOST:PORT")  # it may hold a password
    return executor


class ModelSettings(StrictRecord):
    """``[models]``: the model for each task.

    ``embedded`` (the built-in model, offline), or provider and model such as ``gemini:gemini-2.5-flash``.
    """

    default: _ModelName = "embedded"
    """The model for every task for which no model is set below."""
    classifier: _ModelName | None = None
    """The model that divides a file into documents and names their types. If not set, here and below: ``default``."""
    v2: _ModelName | None = None
    """The model that verifier V2 asks if the text agrees with the type it was given."""
    v3: _ModelName | None = None
    """The model that verifier V3 asks if the document is one of the known traps (look-alikes of another type)."""
    v4: _ModelName | None = None
    """The model that verifier V4 asks if the quoted evidence is convincing."""
    verifier: _ModelName | None = None
    """The model that answers V2, V3 and V4 in one question; used with ``profile = "lean"`` only."""
    extractor: _ModelName | None = None
    """The model that extracts the fields of reports and forms."""
    evaluator: _ModelName | None = None
    """The model that judges the values extracted from reports."""
    grader: _ModelName | None = None
    """The model that judges extracted forms in which the rules found no fault."""

    @property
    def model_name_by_role(self) -> dict[str, str]:
        """The model names of the roles that do not use ``default``."""
        return {role: name for role, name in self.model_dump(exclude={"default"}).items() if name is not None}

    @property
    def all_model_names(self) -> set[str]:
        """The names of all models that these settings use, each once."""
        return {self.default, *self.model_name_by_role.values()}


class LimitSettings(StrictRecord):
    """``[limits]``: limits of calls, tokens and costs of language models.

    A person decides each document that would exceed a limit. Running calls count with their expected cost. A call that
    costs more than expected, because the model reasons for long, may exceed a limit of tokens or dollars by the
    difference.
    """

    calls_per_document: int = Field(40, ge=0)
    """Maximum number of calls for one document, including repeated calls. 0, here and below: no limit."""
    tokens_per_document: int = Field(0, ge=0)
    """Maximum number of tokens for one document: input and output, including reasoning and cached tokens."""
    usd_per_document: Decimal = Field(Decimal(0), ge=0)
    """Highest cost of one document in US dollars, by the provider's list prices."""
    calls_per_run: int = Field(0, ge=0)
    """Maximum number of calls in one run."""
    tokens_per_run: int = Field(0, ge=0)
    """Maximum number of tokens in one run."""
    usd_per_run: Decimal | None = Field(None, ge=0)
    """Highest cost of one run in US dollars. None: a paid model needs this or another limit of the run; the command
    line asks for it at a terminal."""

    @property
    def has_run_limit(self) -> bool:
        """True if a run has a limit, or explicitly none (``usd_per_run = 0``)."""
        return self.usd_per_run is not None or bool(self.calls_per_run or self.tokens_per_run)

    @property
    def has_usd_limit(self) -> bool:
        """True if a limit is in dollars, so that prices must be known."""
        return bool(self.usd_per_document or self.usd_per_run)


class ReliabilityLoopSettings(StrictRecord):
    """``[reliability_loop]``: repeated extraction of a clinical report's fields.

    The variables ``MARC_…`` set the same values; a variable ``EVALKIT_…`` takes precedence.
    """

    enabled: bool = True
    """False: extract the fields once and evaluate them, without further attempts. ``MARC_RELIABILITY_LOOP_ENABLED``."""
    profile: Literal["real-time", "batch", "clinical"] = "batch"
    """Quality threshold and maximum number of attempts: 0.85 and 2 (``real-time``), 0.95 and 3 (``batch``), 0.98 and 5
    (``clinical``); the settings below override them."""
    quality_threshold: float | None = Field(None, ge=0, le=1)
    """The quality score, 0 to 1, at which no further attempt is made. ``MARC_QUALITY_THRESHOLD``."""
    max_iterations: int | None = Field(None, ge=1, le=20)
    """Maximum number of attempts for one report. ``MARC_MAX_ITERATIONS``."""
    min_improvement: float | None = Field(None, ge=0, le=1)
    """No further attempt is made if the last one improved the quality score by less than this.
    ``MARC_MIN_IMPROVEMENT``."""
    timeout_ms: int | None = Field(None, ge=1, le=3_600_000)
    """Milliseconds that all attempts for one report may take together. ``MARC_TIMEOUT_MS``."""
    ensemble: tuple[_ModelName, ...] = ()
    """Models that each score the extracted values; the median score counts. Empty: only the evaluator's model."""


#: Memory in megabytes that a review page needs to open.
_MIN_PAGE_MB = 256


class PriceSettings(StrictRecord):
    """``[prices]``: costs by which the program chooses and orders experts' questions.

    Only their ratio counts: a part of an answer is asked about if its risk times ``wrong_accept_usd`` exceeds the
    minutes that the question takes times ``minute_usd``.
    """

    wrong_accept_usd: float = Field(100, ge=0)
    """What it costs if a wrong document type, boundary or patient is accepted, in US dollars; the default is half an hour
    of an expert, to find and correct it later."""
    minute_usd: float = Field(3, gt=0)
    """What a minute of an expert costs in US dollars."""


class ReviewServerSettings(StrictRecord):
    """``[review]``: limits of the review server, and a proxy that logs reviewers in."""

    pages: int = Field(64, ge=0)
    """Maximum number of browser pages that all reviewers together may have open; each needs one process. 0: no
    limit."""
    page_memory_mb: int = Field(1024, ge=0, le=1_048_576)
    """Megabytes of memory that the process of one open page may use before the server ends it. 0: no limit."""
    user_header: str | None = Field(None, pattern=r"^[A-Za-z][A-Za-z0-9-]*$")
    """The HTTP header in which a proxy on this machine names the reviewer that the proxy has logged in. The proxy must
    remove this header from the requests of its clients. None: no proxy logs reviewers in."""
    proxies: tuple[IPv4Address, ...] = ()
    """The addresses that the proxy connects from; the header is ignored in requests from any other address."""

    @model_validator(mode="after")
    def _check_consistency(self) -> ReviewServerSettings:
        if (self.user_header is None) != (not self.proxies):
            raise ValueError("user_header and proxies depend on each other: set both of them, or neither")
        if any(not proxy.is_loopback for proxy in self.proxies):
            raise ValueError("every address in proxies must be of this machine, such as 127.0.0.1")
        if 0 < self.page_memory_mb < _MIN_PAGE_MB:
            raise ValueError(
                f"page_memory_mb is {self.page_memory_mb}, but a page needs {_MIN_PAGE_MB} to open: set at least that, or 0 for no limit"
            )
        return self


class CertificateSettings(StrictRecord):
    """``[certificate]``: error rate to prove by blind audits of accepted documents."""

    max_error_rate: float = Field(0.01, gt=0, lt=1)
    """Tolerated share (0 to 1) of accepted documents with a wrong type."""
    confidence: float = Field(0.95, ge=0.5, lt=1)
    """Probability (0 to 1) with which a certificate is right, at whatever moment it is read."""


class DossierSettings(StrictRecord):
    """``[dossier]``: texts of the dossier for the committee that oversees AI."""

    reviewer_names: bool = True
    """False: reviewers and analysts appear as numbers, not with their names."""


class RetentionSettings(StrictRecord):
    """``[retention]``: the time after which finished documents may be deleted."""

    days: int = Field(0, ge=0, le=36_525)
    """`evalkit purge --expired --yes` deletes documents that were finished at least this many days ago. 0: no
    document."""


class TemplateReviewerSettings(StrictRecord):
    """``[vllm_review.reviewers]``: the models that review bank-statement templates.

    A model that is not set is ``default`` of ``[models]``.
    """

    layout_model: _ModelName | None = None
    """The model that reviews the template's regions and columns; `evalkit doctor` says if this model can see images."""
    semantic_model: _ModelName | None = None
    """The model that reviews the template's signs, dates and sums."""
    arbitrator_model: _ModelName | None = None
    """The model that decides if the two reviewers disagree."""
    layout_temperature: float = Field(0.1, ge=0, le=2)
    """Sampling temperature of the layout reviewer: low, for consistent answers."""
    semantic_temperature: float = Field(0.2, ge=0, le=2)
    """Sampling temperature of the semantic reviewer: slightly higher, for a second view."""
    arbitrator_temperature: float = Field(0.0, ge=0, le=2)
    """Sampling temperature of the arbitrator: zero, for the same answer each time as far as the model can."""

    @property
    def model_name_by_role(self) -> dict[str, str]:
        """The model names of the roles for which a model is set."""
        model_names = {
            "layout_geometry": self.layout_model,
            "semantic_financial": self.semantic_model,
            "arbitrator": self.arbitrator_model,
        }
        return {role: name for role, name in model_names.items() if name is not None}


class TemplateReviewTimeoutSettings(StrictRecord):
    """``[vllm_review.timeouts]``: time limits of a template's review, in seconds."""

    single_reviewer_seconds: float = Field(60, gt=0, le=3_600)
    """Seconds that one reviewer may take."""
    both_reviewers_seconds: float = Field(90, gt=0, le=3_600)
    """Seconds that both reviewers, who work in parallel, may take, including reading the statement."""
    arbitration_seconds: float = Field(45, gt=0, le=3_600)
    """Seconds that the arbitrator may take."""
    total_cycle_seconds: float = Field(180, gt=0, le=3_600)
    """Seconds that the review of one template may take, with all questions; building another template afterwards may
    take as long again."""


class TemplateReviewRetrySettings(StrictRecord):
    """``[vllm_review.retry]``: when another template is built after a rejected one."""

    max_attempts: int = Field(3, ge=0, le=20)
    """Maximum number of further templates after the first; fewer (at most 2) after an arbitration or if the issues do
    not decrease."""
    convergence_threshold: float = Field(-0.2, ge=-1, le=0)
    """If a template's convergence score (-1: only new issues, 1: all issues fixed) is below this, a person decides at
    once."""


class TemplatePassCriteria(StrictRecord):
    """``[vllm_review.pass_criteria]``: the maximum number of issues for acceptance."""

    max_critical: int = Field(0, ge=0)
    """Maximum number of critical issues."""
    max_high: int = Field(0, ge=0)
    """Maximum number of issues of high severity."""
    max_medium: int = Field(3, ge=0)
    """Maximum number of issues of medium severity."""
    max_low: int = Field(10, ge=0)
    """Maximum number of issues of low severity."""


class TemplateIssueCaps(StrictRecord):
    """``[vllm_review.issue_caps]``: the maximum number of issues shown per category.

    The worst are shown; the hidden issues count for the pass criteria too.
    """

    bbox_accuracy: int = Field(5, ge=1)
    """Maximum number of issues about regions that miss or cut off rows."""
    column_mapping: int = Field(3, ge=1)
    """Maximum number of issues about columns with wrong names."""
    sign_logic: int = Field(2, ge=1)
    """Maximum number of issues about inverted signs."""
    date_format: int = Field(3, ge=1)
    """Maximum number of issues about dates that cannot be read."""
    multiline_handling: int = Field(3, ge=1)
    """Maximum number of issues about transactions that are printed in several lines."""
    reconciliation_strategy: int = Field(2, ge=1)
    """Maximum number of issues about printed sums that the transactions do not add up to."""
    provenance: int = Field(5, ge=1)
    """Maximum number of issues about values that were read differently from how they are printed."""
    other: int = Field(5, ge=1)
    """Maximum number of issues about anything else."""


class TemplateReviewSettings(StrictRecord):
    """``[vllm_review]``: the two reviewers of bank-statement templates."""

    enabled: bool = True
    """False: only one reviewer checks each template, and a person always decides."""
    reviewers: TemplateReviewerSettings = TemplateReviewerSettings()
    timeouts: TemplateReviewTimeoutSettings = TemplateReviewTimeoutSettings()
    retry: TemplateReviewRetrySettings = TemplateReviewRetrySettings()
    pass_criteria: TemplatePassCriteria = TemplatePassCriteria()
    issue_caps: TemplateIssueCaps = TemplateIssueCaps()


class Settings(BaseSettings):
    """All settings; the field names are the names in ``evalkit.toml``."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="EVALKIT_",
        env_nested_delimiter="__",
        toml_file="evalkit.toml",
        hide_input_in_errors=True,
    )

    output: str = Field("output", min_length=1)
    """The output folder; if ``database`` is set, also a folder in a bucket: ``s3://BUCKET/PREFIX`` or
    ``gs://BUCKET/PREFIX``."""
    database: Annotated[str | None, BeforeValidator(_validate_database_url)] = Field(None, repr=False)
    """The PostgreSQL database of open cases, drafts, stored model answers and the index:
    ``postgresql://USER@HOST/NAME``. None: ``evalkit.sqlite`` in the output folder."""
    workers: int = Field(0, ge=0, le=256)
    """Number of processes that read PDFs, or of pages of one PDF that are recognised at a time; 0: one per processor
    core."""
    executor: Annotated[str, AfterValidator(_validate_executor)] = LOCAL_EXECUTOR
    """The machines that read PDFs: ``local`` (this machine), or the workers of a Dask scheduler,
    ``dask://HOST:PORT``."""
    log_format: Literal["text", "json"] = "text"
    """The format of the log of the command line; ``json``: one JSON object in each line."""
    read_seconds: int = Field(300, ge=1, le=86_400)
    """Seconds of processor time that reading one PDF may take; with OCR, from each recognised page to the next."""
    read_memory_mb: int = Field(4096, ge=0, le=1_048_576)
    """Megabytes of address space that the process reading one PDF may use; 0: no limit."""
    ocr: Literal["auto", "tesseract", "rapidocr", "none"] = "auto"
    """The OCR engine for scanned pages; ``auto``: tesseract, or RapidOCR if tesseract is not installed; ``none``: no
    OCR."""
    ocr_seconds: int = Field(30, ge=1, le=3_600)
    """Seconds of processor time that OCR of one page may take each time that the page is recognised."""
    languages: tuple[_LanguageCode, ...] = Field(("en",), min_length=1)
    """ISO 639-1 codes of the languages that documents may be in; a person decides each document with a page in another
    language. evalkit's rules know English only."""
    reader: Literal["local", "documentai"] = "local"
    """The reader of PDFs: ``local`` (evalkit's own reader) or ``documentai`` (Google Document AI)."""
    documentai_processor: str | None = None
    """The Document AI processor: ``projects/P/locations/L/processors/ID``; append ``/processorVersions/V`` to fix its
    version."""
    documentai_endpoint: str | None = None
    """The address of Document AI. None: the standard address for the processor's location."""
    documentai_transport: Literal["grpc", "rest"] = "grpc"
    """The protocol for Document AI; choose ``rest`` in networks whose proxy does not let gRPC through."""
    documentai_seconds: int = Field(120, ge=1, le=3_600)
    """Seconds that one call of Document AI, for up to 15 pages, may take; with retries twice as many."""
    models: ModelSettings = ModelSettings()
    profile: Literal["full", "lean"] = "full"
    """``full``: one question each for V2, V3 and V4, four calls a document; ``lean``: one question for all three, two
    calls."""
    limits: LimitSettings = LimitSettings()
    calls_in_flight: int = Field(16, ge=1, le=1_000)
    """Maximum number of simultaneous calls of language models; fewer are made while a provider limits the rate."""
    call_seconds: float = Field(60, gt=0, le=3_600)
    """Seconds that one question to a language model may take, including retries and the waits between them."""
    outage_seconds: float = Field(600, ge=0, le=86_400)
    """Seconds that documents wait for a language model whose service is down; then the run stops, and the next run
    continues it."""
    window_characters: int | None = Field(None, ge=1_000)
    """Maximum number of characters of a document in one question; a longer document is sent in parts, one question
    each. None: as many as all models in use can read, 400000 if that is unknown."""
    context_tokens: int | None = Field(None, ge=1_024)
    """Number of tokens that the model on a server of your own reads at once, as the server was started
    (Ollama: ``OLLAMA_CONTEXT_LENGTH``). None: what is known about the model; for Ollama that is 4096."""
    pictures_per_document: int = Field(12, ge=0, le=100)
    """Maximum number of pages of a document whose pictures are sent to a model that sees: pages that were read poorly,
    or have tick boxes, stamps or tables. 0: none."""
    picture_pixels: int = Field(1_200_000, ge=100_000, le=20_000_000)
    """Maximum number of pixels of a page's picture that is sent to a model; 1,200,000: A4 at 111 dpi."""
    gemini_base_url: str | None = None
    """The address of Gemini, if it is not Google's: a gateway, a test server."""
    openai_base_url: str | None = None
    """The address for models ``openai:…``: any server that speaks OpenAI's protocol."""
    anthropic_base_url: str | None = None
    """The address for Anthropic's models. None: Anthropic's own; set it for a gateway."""
    mistral_base_url: str | None = None
    """The address of Mistral's models. None: Mistral's own; set it for a gateway."""
    ollama_base_url: str | None = None
    """The address of the Ollama server. None: ``http://127.0.0.1:11434/v1``."""
    llamacpp_base_url: str | None = None
    """The address of llama.cpp's server. None: ``http://127.0.0.1:8080/v1``."""
    lmstudio_base_url: str | None = None
    """The address of LM Studio's server. None: ``http://127.0.0.1:1234/v1``."""
    vllm_base_url: str | None = None
    """The address of the vLLM server. None: ``http://127.0.0.1:8000/v1``."""
    reliability_loop: ReliabilityLoopSettings = ReliabilityLoopSettings()
    vllm_review: TemplateReviewSettings = TemplateReviewSettings()
    types_file: str | None = Field(None, min_length=1)
    """A TOML file with a site's own document types, in the form of ``classification/types.toml``; the five types stay in
    force."""
    prompts_folder: str | None = Field(None, min_length=1)
    """A folder with a site's own prompts, each a file with the name and the variables of the shipped prompt that it
    replaces; the shipped prompts without such a file stay in force."""
    traps_file: str | None = Field(None, min_length=1)
    """A TOML file with a site's own traps (look-alikes that V3 warns of), in the form of ``classification/traps.toml``;
    the shipped traps stay in force."""
    verifiers: tuple[_EntryPointName, ...] = ()
    """A site's own verifiers, which run after V4: names of entry points in the group ``evalkit.verifiers``."""
    verifier_seconds: float = Field(10, gt=0, le=600)
    """Seconds that a site's own verifier may take for one step of one document."""
    lossless_repair: bool = False
    """True: repair errors that need no judgement (counts, missing types, sums of shares) before the arbiter counts
    issues."""
    on_agent_failure: Literal["escalate", "ignore"] = "escalate"
    """The effect of a verifier that could not answer. ``escalate``: an issue, so that a person decides; ``ignore``: no
    issue, the result only names the verifier in ``unanswered`` (meant only for comparisons with older systems)."""
    audit_rate_start: float = Field(0.20, ge=0, le=1)
    """Share (0 to 1) of accepted documents that are drawn for audit until ``audit_target`` audits are done."""
    audit_rate: float = Field(0.05, ge=0, le=1)
    """Share (0 to 1) of accepted documents that are drawn for audit once ``audit_target`` audits are done."""
    audit_target: int = Field(300, ge=0)
    """Number of finished audits from which on ``audit_rate`` applies instead of ``audit_rate_start``."""
    audit_seed: str = "evalkit"
    """Seed of the random draws for audit; another seed draws other documents."""
    foreign_types: dict[str, str] = {}
    """The document type that each label of the production classifier stands for."""
    patients: Literal["one", "several"] = "one"
    """The number of patients that a file may be about. ``several``: documents of several patients in one file are only
    a MINOR issue."""
    patients_by_folder: dict[str, Literal["one", "several"]] = {}
    """The setting ``patients`` for all files in and below a source folder, by folder; the innermost folder counts."""
    prices: PriceSettings = PriceSettings()
    review: ReviewServerSettings = ReviewServerSettings()
    certificate: CertificateSettings = CertificateSettings()
    retention: RetentionSettings = RetentionSettings()
    dossier: DossierSettings = DossierSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - one file is enough
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources, first wins: arguments, ``EVALKIT_…``, ``MARC_…``, file."""
        return init_settings, env_settings, _MarcSettingsSource(settings_cls), TomlConfigSettingsSource(settings_cls)

    @classmethod
    def load(cls, **overrides: Any) -> Settings:
        """Load the settings from all sources; arguments that are None are ignored.

        The types of ``types_file`` become those of this process. UsageError if a setting is invalid, which the message
        names, or if a file or a variable cannot be read.
        """
        _require_readable_file_if_present(str(cls.model_config["toml_file"]))
        try:
            settings = cls(**{name: value for name, value in overrides.items() if value is not None})
        except ValidationError as error:
            first_error = error.errors()[0]
            raise UsageError(
                f"setting {'.'.join(str(part) for part in first_error['loc'])}: {first_error['msg'].removeprefix('Value error, ')}",
                code="SETTINGS",
                remedy="Correct this setting where you set it: option, EVALKIT_… variable or evalkit.toml.",
            ) from error
        except (
            ValueError,
            RecursionError,
        ) as error:  # TOML that cannot be parsed, JSON in a variable that cannot be parsed
            raise UsageError(
                f"evalkit.toml or an EVALKIT_… variable cannot be read: {error}",
                code="SETTINGS",
                remedy="Correct the syntax; `evalkit docs settings` lists every setting.",
            ) from error
        if settings.types_file is not None:
            use_own_types(load_own_types(settings.types_file))
        for label, type_name in settings.foreign_types.items():
            if type_name not in list_type_names():
                raise UsageError(
                    f"setting foreign_types.{label}: {type_name} is no document type",
                    code="SETTINGS",
                    remedy=f"Write one of {', '.join(list_type_names())}.",
                )
        return settings


def _require_readable_file_if_present(name: str) -> None:
    """Raise UsageError if the file exists but cannot be read; do not ignore it."""
    try:
        open_regular_file(name, _MAX_FILE_BYTES).close()
    except OSError as error:
        if not os.path.lexists(name):
            return
        reason = "it is a broken link" if isinstance(error, FileNotFoundError) else error.strerror
        raise UsageError(
            f"{name} in this folder cannot be read: {reason}",
            code="SETTINGS",
            remedy="Make the file readable or remove it.",
        ) from error


#: Field of ``[reliability_loop]`` by the variable that sets it: specification 002, section 4.3.
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
#: The fewest characters of a salt, so that nobody can guess it.
_MIN_SALT_LENGTH = 16


def read_patient_salt() -> str | None:
    """Read the secret salt of patients' keys from the environment; None if not set.

    UsageError if the salt is too short. The salt is never stored in a file.
    """
    salt = os.environ.get(PATIENT_SALT_VARIABLE, "").strip()
    if salt and len(salt) < _MIN_SALT_LENGTH:
        raise UsageError(
            f"{PATIENT_SALT_VARIABLE} has fewer than {_MIN_SALT_LENGTH} characters",
            code="PATIENT-SALT",
            remedy="Set the variable to a random text, for example the output of `openssl rand -hex 32`.",
        )
    return salt or None


def read_environment_variables(names: Iterable[str]) -> dict[str, str]:
    """Return the named environment variables that are set.

    They hold the providers' keys and projects, which are never stored in a file.
    """
    return {name: value for name in names if (value := os.environ.get(name))}
