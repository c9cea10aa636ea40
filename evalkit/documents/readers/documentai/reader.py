"""Reader of PDFs with the Layout Parser of Google's Document AI.

The number of pages, their sizes, blank and broken pages and hidden text come from the PDF itself. Document AI omits
blank pages, accepts at most 15 pages and 20 MB in one call, and adds descriptions that its model wrote. So files are sent
in chunks, and only words that are printed on a page become its text.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any, Literal, NamedTuple

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, stop_before_delay
from tenacity import wait_exponential_jitter as wait_with_jitter

from evalkit.core.remote_services import mute_loggers, parse_retry_after
from evalkit.documents.addressed_text import add_addressed_texts
from evalkit.documents.bundle import Page
from evalkit.documents.input_format import PagesRead
from evalkit.documents.mupdf import OpenedPdf, load_pymupdf, open_pdf
from evalkit.documents.page_builder import create_failed_page
from evalkit.documents.page_content import VerifiedGlyphs
from evalkit.documents.readers.documentai.response import (
    MalformedResponseError,
    PageWithKnownWords,
    build_pages_from_response,
)
from evalkit.documents.readers.pdf import get_local_reader_version, load_page_content_or_none
from evalkit.errors import DocumentError, UsageError

#: Version of the rules that turn a response into pages (order, word places, status). Raise it with every change that
#: alters a bundle.
CONVERSION_VERSION = 1
#: Document AI's limits for one call: pages and bytes.
MAX_CHUNK_PAGES, MAX_CHUNK_BYTES = 15, 20_000_000
#: A chunk is sent at most this many times, and all attempts together may take this many times ``seconds_per_call``.
_MAX_ATTEMPTS, _RETRY_TIME_FACTOR = 5, 2.0
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0

_PROCESSOR_NAME = re.compile(
    r"projects/[\w.:-]+/locations/[a-z0-9-]+/processors/[\w-]+(?:/processorVersions/(?P<version>[\w.-]+))?"
)
_LOOPBACK_ENDPOINT = re.compile(r"(?P<scheme>http://)?(?:127\.0\.0\.1|localhost|\[::1\]):\d{1,5}")
_HOST_ENDPOINT = re.compile(r"(?:https://)?(?P<host>[A-Za-z0-9.-]+(?::\d{1,5})?)")
_RESPONSE_FIELDS = [
    *("text", "error", "document_layout"),
    *(f"pages.{name}" for name in ("page_number", "dimension", "layout", "blocks", "paragraphs", "lines", "tokens")),
]
#: Entries of the PDF's catalog that a chunk keeps: without OCProperties, text in hidden layers would be visible.
_KEPT_CATALOG_KEYS = frozenset({"Type", "Version", "Pages", "OCProperties", "AcroForm"})
#: Loggers that would write whole requests and responses, hence patients' data, at level DEBUG.
_VERBOSE_LOGGERS = (
    "google.auth.transport.requests",
    "google.cloud.documentai_v1.services.document_processor_service.transports.grpc",
    "google.cloud.documentai_v1.services.document_processor_service.transports.rest",
)


@dataclass(frozen=True)
class DocumentAiReader:
    """Reader that sends PDFs to Google's Layout Parser, or to a local server."""

    processor: str
    """Name of the processor: ``projects/P/locations/L/processors/ID``, with or without ``/processorVersions/V``."""
    endpoint: str | None = None
    """Server to call; None for Google's server at the processor's location. ``http://127.0.0.1:PORT`` is called by REST
    and ``127.0.0.1:PORT`` by gRPC, both without credentials; every other host is called over TLS, with Google's default
    credentials."""
    seconds_per_call: float = 120.0
    """Time limit of one call in seconds; a chunk of up to 15 pages may take twice as long, retries included."""
    transport: Literal["grpc", "rest"] = "grpc"
    """Protocol of the calls; for a server on this machine, the form of ``endpoint`` decides instead. With REST, every
    byte that arrives restarts ``seconds_per_call``."""
    before_chunk: Callable[[], None] | None = None
    """Function that is called before each chunk is sent, e.g. to restart a time limit."""

    def __post_init__(self) -> None:
        if not _PROCESSOR_NAME.fullmatch(self.processor):
            raise UsageError(
                f"{self.processor!r} is not the name of a Document AI processor",
                code="DOCUMENTAI-PROCESSOR",
                remedy="Give the processor's full name: projects/PROJECT/locations/us/processors/ID/processorVersions/VERSION.",
            )
        if self.endpoint and not (
            _LOOPBACK_ENDPOINT.fullmatch(self.endpoint) or _HOST_ENDPOINT.fullmatch(self.endpoint)
        ):
            raise UsageError(
                f"documents may not be sent to the endpoint {self.endpoint!r}",
                code="DOCUMENTAI-ENDPOINT",
                remedy="Give a host name, which is called over TLS; only a server at 127.0.0.1 may be called without TLS.",
            )

    @property
    def reader_version(self) -> str:
        """Versions of the parser, of the rules for its response, and of the local reader.

        For example ``documentai 3.16.0 pretrained-layout-parser-v1.0-2024-06-03 walk 1, pymupdf 1.28.2 layout 12``. Part
        of every fingerprint. UsageError as ``fetch_processor_version_name``.
        """
        parser_version = self.fetch_processor_version_name.rpartition("/")[2]
        return f"documentai {version('google-cloud-documentai')} {parser_version} walk {CONVERSION_VERSION}, {get_local_reader_version()}"

    @cached_property
    def fetch_processor_version_name(self) -> str:
        """Full name of the processor with its version.

        If ``processor`` names no version, Google is asked once for the default version. UsageError (DOCUMENTAI-…) if the
        default version cannot be fetched or is not set.
        """
        if "/processorVersions/" in self.processor:
            return self.processor
        with self._create_client() as client:
            try:
                processor = self._call_with_retries(partial(client.get_processor, name=self.processor))
                default_version = str(processor.default_processor_version)
            except Exception as error:  # noqa: BLE001 - the client passes on errors of several libraries
                failure = _find_api_failure(error)
                raise UsageError(
                    f"the version of the Document AI processor could not be fetched: {failure.message}",
                    code=failure.code,
                    remedy=f"{failure.remedy} Or give the version: …/processors/ID/processorVersions/VERSION.",
                ) from None
        if (match := _PROCESSOR_NAME.fullmatch(default_version)) is None or not match["version"]:
            raise UsageError(
                "the Document AI processor has no default version",
                code="DOCUMENTAI-PROCESSOR",
                remedy="Set a default version in Google's console, or give a version: …/processors/ID/processorVersions/VERSION.",
            )
        return default_version

    def read_pages(self, content: bytes, file_name: str) -> PagesRead:
        """Read all pages of a PDF from its bytes; if a call fails, no page is returned.

        ``file_name`` appears only in errors. DocumentError (READER-…, DOCUMENTAI-…); UsageError without credentials, and
        as ``fetch_processor_version_name``.
        """
        opened_pdf = open_pdf(content, file_name)
        with opened_pdf.document:
            with self._create_client() as client:
                pages = tuple(self._generate_pages(client, opened_pdf, content, file_name))
            pages = add_addressed_texts(opened_pdf.document, pages)
            return PagesRead(pages, opened_pdf.is_page_tree_repaired or bool(opened_pdf.document.is_repaired))

    def _generate_pages(self, client: Any, opened_pdf: OpenedPdf, pdf_bytes: bytes, file_name: str) -> Iterator[Page]:
        verified_glyphs: VerifiedGlyphs = {}
        for start in range(1, opened_pdf.total_pages + 1, MAX_CHUNK_PAGES):
            page_numbers = range(start, min(start + MAX_CHUNK_PAGES, opened_pdf.total_pages + 1))
            contents = {
                page_num: load_page_content_or_none(opened_pdf.document, page_num - 1, verified_glyphs)
                for page_num in page_numbers
            }
            pages_by_number = {page_num: create_failed_page(page_num) for page_num in page_numbers}
            intact_numbers = [page_num for page_num in page_numbers if contents[page_num] is not None]
            for chunk_numbers, chunk_bytes, problem in _split_pages_into_pdf_chunks(pdf_bytes, intact_numbers):
                if problem:
                    problem_update = {"quality": 0.0, "problems": (problem,)}
                    pages_by_number |= {
                        page_num: pages_by_number[page_num].model_copy(update=problem_update)
                        for page_num in chunk_numbers
                    }
                    continue
                known_pages = [
                    PageWithKnownWords(page_num, content)
                    for page_num in chunk_numbers
                    if (content := contents[page_num]) is not None
                ]
                response_document = (
                    None
                    if all(known_page.content.is_blank for known_page in known_pages)
                    else self._send_chunk(client, chunk_bytes, file_name)
                )
                try:
                    pages_by_number |= {
                        content.page_num: content
                        for content in build_pages_from_response(response_document, known_pages)
                    }
                except MalformedResponseError:
                    raise _build_document_error(_MALFORMED_RESPONSE, file_name) from None
            yield from pages_by_number.values()

    def _send_chunk(self, client: Any, chunk_bytes: bytes, file_name: str) -> Any:
        """Send a PDF of some pages, and return Google's protobuf ``Document``.

        ``file_name`` appears only in errors. DocumentError (DOCUMENTAI-…) if the call fails.
        """
        from google.cloud import documentai

        if self.before_chunk:
            self.before_chunk()
        request = documentai.ProcessRequest(
            name=self.fetch_processor_version_name,
            raw_document=documentai.RawDocument(content=chunk_bytes, mime_type="application/pdf"),
            field_mask={"paths": _RESPONSE_FIELDS},
            process_options=documentai.ProcessOptions(
                layout_config=documentai.ProcessOptions.LayoutConfig(return_bounding_boxes=True)
            ),
            skip_human_review=True,
        )
        try:
            process_response = documentai.ProcessResponse.pb(
                self._call_with_retries(partial(client.process_document, request=request))
            )
        except Exception as error:  # noqa: BLE001 - as above; the error may quote the document: not chained
            raise _build_document_error(_find_api_failure(error), file_name) from None
        if not process_response.HasField("document"):
            raise _build_document_error(_MALFORMED_RESPONSE, file_name)
        if process_response.document.error.code:
            raise _build_document_error(_REQUEST_REFUSED, file_name)
        return process_response.document

    def _call_with_retries(self, call: Callable[..., Any]) -> Any:
        """Call a method of Google's client; retry transient errors while time is left.

        The client's own retries are off, because they would go on for minutes without a message. The last error is
        raised.
        """
        deadline = time.monotonic() + _RETRY_TIME_FACTOR * self.seconds_per_call
        retryer = Retrying(
            retry=retry_if_exception(lambda error: _find_api_failure(error).is_transient),
            stop=stop_after_attempt(_MAX_ATTEMPTS) | stop_before_delay(_RETRY_TIME_FACTOR * self.seconds_per_call),
            wait=_compute_retry_wait_seconds,
            reraise=True,
        )
        return retryer(
            lambda: call(retry=None, timeout=max(min(self.seconds_per_call, deadline - time.monotonic()), 0.001))
        )

    def _create_client(self) -> Any:
        """Create Google's client, to be used in ``with``. UsageError without credentials."""
        from google.auth.credentials import AnonymousCredentials
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.documentai import DocumentProcessorServiceClient as Client

        mute_loggers(_VERBOSE_LOGGERS)
        endpoint = self.endpoint or f"{self.processor.split('/')[3]}-documentai.googleapis.com"
        loopback = _LOOPBACK_ENDPOINT.fullmatch(endpoint)
        if loopback and loopback["scheme"]:
            anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
            client = Client(client_options={"api_endpoint": endpoint}, credentials=anonymous, transport="rest")
        elif loopback:
            client = Client(transport=_create_insecure_transport(endpoint))
        else:
            try:
                client = Client(
                    client_options={"api_endpoint": endpoint.removeprefix("https://")}, transport=self.transport
                )
            except GoogleAuthError as error:
                failure = _find_api_failure(error)
                raise UsageError(failure.message, code=failure.code, remedy=failure.remedy) from None
        if session := getattr(client.transport, "_session", None):
            session.max_redirects = 0  # redirects could send a document to another host
            session.trust_env = session.trust_env and not loopback  # no proxy for a server on this machine
        return client


def _create_insecure_transport(address: str) -> Any:
    import grpc  # type: ignore[import-untyped]
    from google.cloud.documentai_v1.services.document_processor_service.transports import (
        DocumentProcessorServiceGrpcTransport as Transport,
    )

    options = [
        ("grpc.max_send_message_length", -1),
        ("grpc.max_receive_message_length", -1),
        ("grpc.enable_http_proxy", 0),
    ]
    return Transport(channel=grpc.insecure_channel(address, options=options))


# Failures


class _ApiFailure(NamedTuple):
    code: str
    message: str
    remedy: str
    is_transient: bool = False
    """True if the same call may succeed a little later."""


_MALFORMED_RESPONSE = _ApiFailure(
    "DOCUMENTAI-MALFORMED",
    "Document AI's response is malformed",
    "Run the file again; if the error returns, check the endpoint, or read the file with the local reader.",
)
_REQUEST_REFUSED = _ApiFailure(
    "DOCUMENTAI-REQUEST",
    "Document AI rejects the file",
    "Check that the processor is a Layout Parser; print the file to a new PDF, or read it with the local reader.",
)
_CREDENTIALS_REJECTED = _ApiFailure(
    "DOCUMENTAI-KEY",
    "Document AI does not accept the credentials",
    "Log in (gcloud auth application-default login) as a user with the role Document AI API User in that project.",
)
_SERVICE_UNREACHABLE = _ApiFailure(
    "DOCUMENTAI-UNREACHABLE",
    "Document AI cannot be reached",
    "Check the network and the endpoint, and run again.",
    is_transient=True,
)
_CALL_TIMED_OUT = _ApiFailure(
    "DOCUMENTAI-TIMEOUT",
    "Document AI does not answer in time",
    "Run the file again; if the error returns, raise the time limit.",
    is_transient=True,
)
_SERVER_FAILED = _ApiFailure(
    "DOCUMENTAI-SERVER",
    "Document AI reports an internal error, or is down",
    "Run the file again in a few minutes; status.cloud.google.com lists outages.",
    is_transient=True,
)
_FAILURES_BY_STATUS: Mapping[int, _ApiFailure] = {
    401: _CREDENTIALS_REJECTED,
    403: _CREDENTIALS_REJECTED,
    404: _ApiFailure(
        "DOCUMENTAI-PROCESSOR",
        "Document AI does not have the processor, or not that version of it",
        "Compare the processor's project, location, ID and version with Google's console.",
    ),
    429: _ApiFailure(
        "DOCUMENTAI-RATE",
        "Document AI accepts no more pages for now",
        "Run the file again later with fewer workers, or ask Google for a larger quota.",
        is_transient=True,
    ),
    500: _SERVER_FAILED,
    502: _SERVER_FAILED,
    503: _SERVER_FAILED,
    504: _CALL_TIMED_OUT,
}


def _find_api_failure(error: BaseException) -> _ApiFailure:
    """Return the failure (code, message, remedy) for an error of Google's client."""
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError, TransportError
    from requests import exceptions

    if isinstance(error, GoogleAPICallError):
        status = int(error.code or 500)
        return _FAILURES_BY_STATUS.get(status) or (
            _REQUEST_REFUSED if 400 <= status < 500 else _SERVER_FAILED._replace(is_transient=False)
        )
    if isinstance(error, GoogleAuthError):
        return _SERVICE_UNREACHABLE if isinstance(error, TransportError) else _CREDENTIALS_REJECTED
    if isinstance(error, exceptions.Timeout):
        return _CALL_TIMED_OUT
    connection_errors = (exceptions.ConnectionError, exceptions.ChunkedEncodingError)
    return _SERVICE_UNREACHABLE if isinstance(error, connection_errors) else _MALFORMED_RESPONSE


def _build_document_error(failure: _ApiFailure, file_name: str) -> DocumentError:
    return DocumentError(f"{file_name} was not read: {failure.message}", code=failure.code, remedy=failure.remedy)


def _compute_retry_wait_seconds(retry_state: RetryCallState) -> float:
    """Return the seconds to wait before the next attempt.

    The wait is random, grows with each attempt, and is never shorter than Google asked for.
    """
    error = retry_state.outcome.exception() if retry_state.outcome else None
    backoff = wait_with_jitter(_FIRST_WAIT, _LONGEST_WAIT, jitter=_FIRST_WAIT)(retry_state)
    return max(backoff, _get_requested_wait_seconds(error) if error else 0.0)


def _get_requested_wait_seconds(error: BaseException) -> float:
    """Return the seconds of ``Retry-After`` or Google's ``RetryInfo``; 0 without."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    waits = [parse_retry_after(str(headers.get("Retry-After", ""))) or 0.0]
    for detail in getattr(error, "details", ()):
        delay = detail.get("retryDelay", "") if isinstance(detail, dict) else getattr(detail, "retry_delay", "")
        seconds = (
            delay.ToTimedelta().total_seconds() if hasattr(delay, "ToTimedelta") else parse_retry_after(str(delay))
        )
        waits.append(seconds or 0.0)
    return max(waits)


# Chunks


def _split_pages_into_pdf_chunks(
    pdf_bytes: bytes, page_numbers: Sequence[int]
) -> Iterator[tuple[Sequence[int], bytes, str]]:
    """Split pages into PDFs that are small enough for Document AI.

    Each chunk is the numbers of its pages in the file, a PDF of these pages alone, and a sentence for a clinician: why a
    page that is broken, or too large by itself, cannot be sent. Then the PDF is empty; else the sentence is.
    """
    if not page_numbers:
        return
    chunk_bytes = _extract_pages_as_pdf(pdf_bytes, page_numbers)
    if chunk_bytes is not None and len(chunk_bytes) <= MAX_CHUNK_BYTES:
        yield page_numbers, chunk_bytes, ""
    elif len(page_numbers) > 1:
        half = len(page_numbers) // 2
        yield from _split_pages_into_pdf_chunks(pdf_bytes, page_numbers[:half])
        yield from _split_pages_into_pdf_chunks(pdf_bytes, page_numbers[half:])
    else:
        problem = (
            "the page is broken: export or scan it again"
            if chunk_bytes is None
            else f"the page alone is larger than the {MAX_CHUNK_BYTES // 1_000_000} MB that Document AI takes: "
            "export it with smaller images"
        )
        yield page_numbers, b"", problem


def _extract_pages_as_pdf(pdf_bytes: bytes, page_numbers: Sequence[int]) -> bytes | None:
    """Return a PDF of these pages alone, without other data of the file.

    None if the pages cannot be extracted.
    """
    pymupdf = load_pymupdf()
    try:
        with open_pdf(pdf_bytes, "").document as document:
            catalog = document.pdf_catalog()
            for key in set(document.xref_get_keys(catalog)) - _KEPT_CATALOG_KEYS:
                document.xref_set_key(catalog, key, "null")
            document.xref_set_key(-1, "Info", "null")
            document.select([page_num - 1 for page_num in page_numbers])
            return bytes(document.tobytes(garbage=2, deflate=True, encryption=pymupdf.PDF_ENCRYPT_NONE))
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base but Exception
        return None
