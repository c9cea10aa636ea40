"""The reader that asks Google's Document AI: its Layout Parser says what stands on the pages of a PDF, and in which order.

How many pages there are, how large, which of them are blank or broken and what on them is hidden, the PDF itself says.
Document AI leaves out blank pages, takes 15 pages and 20 MB at once, and writes descriptions of its own beside what it
read: files are cut into portions here, and of the answer only what is printed on a page becomes its text.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, stop_before_delay
from tenacity import wait_exponential_jitter as backing_off

from evalkit.documents.bundle import DocumentBundle, Page
from evalkit.documents.documentai_answer import NonsenseError, Seen, answered
from evalkit.documents.drawn import Proven
from evalkit.documents.mupdf import OpenPdf, library, open_pdf
from evalkit.documents.pdf import failed_page, look, reader_version
from evalkit.errors import DocumentError, UsageError
from evalkit.http import seconds_to_wait, silence

#: Of what is decided here about order, places and status; raise it with every change that alters a bundle.
WALK_VERSION = 1
#: What Document AI takes in one call.
PAGES_AT_ONCE, BYTES_AT_ONCE = 15, 20_000_000
#: How often a portion is sent at most, and how many times ``seconds`` all of that may take.
_TRIES, _PATIENCE = 5, 2.0
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0

_PROCESSOR = re.compile(
    r"projects/[\w.:-]+/locations/[a-z0-9-]+/processors/[\w-]+(?:/processorVersions/(?P<version>[\w.-]+))?"
)
_LOOPBACK = re.compile(r"(?P<scheme>http://)?(?:127\.0\.0\.1|localhost|\[::1\]):\d{1,5}")
_HOST = re.compile(r"(?:https://)?(?P<host>[A-Za-z0-9.-]+(?::\d{1,5})?)")
_FIELDS = [
    *("text", "error", "document_layout"),
    *(f"pages.{name}" for name in ("page_number", "dimension", "layout", "blocks", "paragraphs", "lines", "tokens")),
]
#: What of a document's catalog a portion keeps: without its layers, text in those that are switched off would be seen.
_KEPT = frozenset({"Type", "Version", "Pages", "OCProperties", "AcroForm"})
#: These write whole requests and answers into the log, once anybody asks for DEBUG.
_TALKATIVE = (
    "google.auth.transport.requests",
    "google.cloud.documentai_v1.services.document_processor_service.transports.grpc",
    "google.cloud.documentai_v1.services.document_processor_service.transports.rest",
)


@dataclass(frozen=True)
class DocumentAi:
    """A Layout Parser at Google, or at a server on this machine."""

    processor: str
    """``projects/P/locations/L/processors/ID``, with ``/processorVersions/V`` or without."""
    endpoint: str | None = None
    """None: Google's of the processor's location. ``http://127.0.0.1:PORT`` is asked by REST and ``127.0.0.1:PORT`` by
    gRPC, both without credentials; everything else is asked over TLS, with Google's default credentials."""
    seconds: float = 120.0
    """That one call may take; a portion of 15 pages may take twice as long, with all that is tried again."""
    transport: Literal["grpc", "rest"] = "grpc"
    """Not of a server on this machine, whose address says it. REST counts ``seconds`` anew with every byte."""
    before_each: Callable[[], None] | None = None
    """Called before each portion: whoever limits the time begins anew."""

    def __post_init__(self) -> None:
        if not _PROCESSOR.fullmatch(self.processor):
            raise UsageError(
                f"{self.processor!r} names no processor of Document AI",
                code="DOCUMENTAI-PROCESSOR",
                remedy="Name it in full: projects/PROJECT/locations/us/processors/ID/processorVersions/VERSION.",
            )
        if self.endpoint and not (_LOOPBACK.fullmatch(self.endpoint) or _HOST.fullmatch(self.endpoint)):
            raise UsageError(
                f"{self.endpoint!r} is no endpoint that documents may be sent to",
                code="DOCUMENTAI-ENDPOINT",
                remedy="Name a host, which is asked over TLS; only a server at 127.0.0.1 may be asked without.",
            )

    @property
    def reader_version(self) -> str:
        """What reads: ``documentai 3.16.0 pretrained-layout-parser-v1.0-2024-06-03 walk 1, pymupdf 1.28.2 layout 6``.

        Part of every fingerprint. UsageError as ``pinned``.
        """
        parser = self.pinned.rpartition("/")[2]
        return f"documentai {version('google-cloud-documentai')} {parser} walk {WALK_VERSION}, {reader_version()}"

    @cached_property
    def pinned(self) -> str:
        """The processor with its version; where none was named, what Google has as its default, asked once.

        UsageError (DOCUMENTAI-…) where that cannot be asked.
        """
        if "/processorVersions/" in self.processor:
            return self.processor
        with self._client() as client:
            try:
                found = self._persisting(lambda seconds: client.get_processor(name=self.processor, **_once(seconds)))
                named = str(found.default_processor_version)
            except Exception as error:  # noqa: BLE001 - the client raises what its libraries raise
                fault = _fault(error)
                raise UsageError(
                    f"the version of the Document AI processor could not be asked: {fault.what}",
                    code=fault.code,
                    remedy=f"{fault.remedy} Or name the version: …/processors/ID/processorVersions/VERSION.",
                ) from None
        if (match := _PROCESSOR.fullmatch(named)) is None or not match["version"]:
            raise UsageError(
                "the Document AI processor has no default version",
                code="DOCUMENTAI-PROCESSOR",
                remedy="Set one in Google's console, or name it: …/processors/ID/processorVersions/VERSION.",
            )
        return named

    def read(self, data: bytes, *, file_path: str, doc_id: str, sha256: str, timestamp: str) -> DocumentBundle:
        """The bundle of the PDF in ``data``, whole or not at all.

        ``sha256`` is the hash of ``data``, ``timestamp`` ISO 8601 UTC; ``file_path`` is recorded, not read.
        DocumentError (READER-…, DOCUMENTAI-…); UsageError as ``pinned``. A broken page alone becomes a ``failed`` one.
        """
        opened = open_pdf(data, file_path)
        try:
            reader = self.reader_version
            with self._client() as client:
                pages = tuple(self._pages(client, opened, data, PurePath(file_path).name))
            is_repaired = opened.is_mended or bool(opened.document.is_repaired)
        finally:
            opened.document.close()
        return DocumentBundle(
            doc_id=doc_id,
            file_path=file_path,
            sha256=sha256,
            reader=reader,
            is_repaired=is_repaired,
            total_pages=opened.total_pages,
            processing_timestamp=timestamp,
            pages=pages,
        )

    def _pages(self, client: Any, opened: OpenPdf, data: bytes, name: str) -> Iterator[Page]:
        proven: Proven = {}
        for start in range(1, opened.total_pages + 1, PAGES_AT_ONCE):
            numbers = range(start, min(start + PAGES_AT_ONCE, opened.total_pages + 1))
            drawn = {number: look(opened.document, number - 1, proven) for number in numbers}
            done = {number: failed_page(number) for number in numbers}
            asked = [number for number in numbers if drawn[number] is not None]
            for portion in _portions(data, asked):
                if portion.problem:
                    told = {"quality": 0.0, "problems": (portion.problem,)}
                    done |= {number: done[number].model_copy(update=told) for number in portion.numbers}
                    continue
                seen = [Seen(number, page) for number in portion.numbers if (page := drawn[number]) is not None]
                answer = None if all(one.drawn.is_blank for one in seen) else self._ask(client, portion.data, name)
                try:
                    done |= {page.page_num: page for page in answered(answer, seen)}
                except NonsenseError:
                    raise _document_error(_NONSENSE, name) from None
            yield from done.values()

    def _ask(self, client: Any, data: bytes, name: str) -> Any:
        """Google's protobuf ``Document`` about a portion; ``name`` is the file's, for errors."""
        from google.cloud import documentai

        if self.before_each:
            self.before_each()
        request = documentai.ProcessRequest(
            name=self.pinned,
            raw_document=documentai.RawDocument(content=data, mime_type="application/pdf"),
            field_mask={"paths": _FIELDS},
            process_options=documentai.ProcessOptions(
                layout_config=documentai.ProcessOptions.LayoutConfig(return_bounding_boxes=True)
            ),
            skip_human_review=True,
        )
        try:
            response = self._persisting(lambda seconds: client.process_document(request=request, **_once(seconds)))
            answer = documentai.ProcessResponse.pb(response)
        except Exception as error:  # noqa: BLE001 - as above; it may quote the document: not chained
            raise _document_error(_fault(error), name) from None
        if not answer.HasField("document"):
            raise _document_error(_NONSENSE, name)
        if answer.document.error.code:
            raise _document_error(_REFUSED, name)
        return answer.document

    def _persisting(self, call: Callable[[float], Any]) -> Any:
        """What the call returns, which is told its seconds; tried again where that may help and time is left."""
        until = time.monotonic() + _PATIENCE * self.seconds
        retrying = Retrying(
            retry=retry_if_exception(lambda error: _fault(error).may_pass),
            stop=stop_after_attempt(_TRIES) | stop_before_delay(_PATIENCE * self.seconds),
            wait=_wait,
            reraise=True,
        )
        return retrying(lambda: call(max(min(self.seconds, until - time.monotonic()), 0.001)))

    def _client(self) -> Any:
        """Google's client, as a context that closes its connections. UsageError where there are no credentials."""
        from google.auth.credentials import AnonymousCredentials
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.documentai import DocumentProcessorServiceClient as Client

        silence(_TALKATIVE)
        endpoint = self.endpoint or f"{self.processor.split('/')[3]}-documentai.googleapis.com"
        local = _LOOPBACK.fullmatch(endpoint)
        if local and local["scheme"]:
            nobody = AnonymousCredentials()  # type: ignore[no-untyped-call]
            client = Client(client_options={"api_endpoint": endpoint}, credentials=nobody, transport="rest")
        elif local:
            client = Client(transport=_insecure(endpoint))
        else:
            try:
                host = endpoint.removeprefix("https://")
                client = Client(client_options={"api_endpoint": host}, transport=self.transport)
            except GoogleAuthError as error:
                fault = _fault(error)
                raise UsageError(fault.what, code=fault.code, remedy=fault.remedy) from None
        if session := getattr(client.transport, "_session", None):
            session.max_redirects = 0  # a document goes where it was sent and nowhere else
            session.trust_env = session.trust_env and not local  # not by way of a proxy to this machine itself
        return client


def _insecure(address: str) -> Any:
    """A transport to a gRPC server on this machine."""
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


def _once(seconds: float) -> dict[str, Any]:
    """How Google's client is to make one call: its own retrying goes on for minutes, and nobody knows of it."""
    return {"retry": None, "timeout": seconds}


# What went wrong


class _Fault(NamedTuple):
    """Why a call failed."""

    code: str
    what: str
    remedy: str
    may_pass: bool = False
    """The same call may succeed a little later."""


_NONSENSE = _Fault(
    "DOCUMENTAI-MALFORMED",
    "Document AI's answer makes no sense",
    "Run it again; if it happens again, check the endpoint, or read the file with the local reader.",
)
_REFUSED = _Fault(
    "DOCUMENTAI-REQUEST",
    "Document AI refuses the file",
    "Check that the processor is a Layout Parser; print the file to a new PDF, or read it with the local reader.",
)
_KEY = _Fault(
    "DOCUMENTAI-KEY",
    "Document AI does not accept the credentials",
    "Log in (gcloud auth application-default login) as somebody with the role Document AI API User in that project.",
)
_UNREACHABLE = _Fault(
    "DOCUMENTAI-UNREACHABLE",
    "Document AI cannot be reached",
    "Check the network and the endpoint, and run again.",
    may_pass=True,
)
_TIMEOUT = _Fault(
    "DOCUMENTAI-TIMEOUT",
    "Document AI does not answer in time",
    "Run it again; if it happens again, allow more seconds.",
    may_pass=True,
)
_SERVER = _Fault(
    "DOCUMENTAI-SERVER",
    "Document AI reports a fault of its own, or is down",
    "Run it again in a few minutes; status.cloud.google.com tells of outages.",
    may_pass=True,
)
_BY_STATUS: Mapping[int, _Fault] = {
    401: _KEY,
    403: _KEY,
    404: _Fault(
        "DOCUMENTAI-PROCESSOR",
        "Document AI has no such processor, or no such version of it",
        "Check project, location, ID and version of the processor in Google's console.",
    ),
    429: _Fault(
        "DOCUMENTAI-RATE",
        "Document AI takes no more pages for now",
        "Run it again later with fewer workers, or ask Google for a larger quota.",
        may_pass=True,
    ),
    500: _SERVER,
    502: _SERVER,
    503: _SERVER,
    504: _TIMEOUT,
}


def _fault(error: BaseException) -> _Fault:
    """Which fault an error of Google's client, or of a library that it calls, stands for."""
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError, TransportError
    from requests import exceptions

    if isinstance(error, GoogleAPICallError):
        status = int(error.code or 500)
        return _BY_STATUS.get(status) or (_REFUSED if 400 <= status < 500 else _SERVER._replace(may_pass=False))
    if isinstance(error, GoogleAuthError):
        return _UNREACHABLE if isinstance(error, TransportError) else _KEY
    if isinstance(error, exceptions.Timeout):
        return _TIMEOUT
    dropped = (exceptions.ConnectionError, exceptions.ChunkedEncodingError)
    return _UNREACHABLE if isinstance(error, dropped) else _NONSENSE


def _document_error(fault: _Fault, name: str) -> DocumentError:
    return DocumentError(f"{name} was not read: {fault.what}", code=fault.code, remedy=fault.remedy)


def _wait(state: RetryCallState) -> float:
    """Longer each time, by chance so that many readers do not come back together, and not before Google asked for."""
    error = state.outcome.exception() if state.outcome else None
    own = backing_off(_FIRST_WAIT, _LONGEST_WAIT, jitter=_FIRST_WAIT)(state)
    return max(own, _asked_to_wait(error) if error else 0.0)


def _asked_to_wait(error: BaseException) -> float:
    """The seconds of ``Retry-After`` or of Google's ``RetryInfo``; 0 where neither is given."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    waits = [seconds_to_wait(str(headers.get("Retry-After", ""))) or 0.0]
    for detail in getattr(error, "details", ()):
        delay = detail.get("retryDelay", "") if isinstance(detail, dict) else getattr(detail, "retry_delay", "")
        given = delay.ToTimedelta().total_seconds() if hasattr(delay, "ToTimedelta") else seconds_to_wait(str(delay))
        waits.append(given or 0.0)
    return max(waits)


# Portions


class _Portion(NamedTuple):
    """Pages that are sent together."""

    numbers: tuple[int, ...]
    """From 1, as the file counts."""
    data: bytes = b""
    """A PDF of these pages alone."""
    problem: str = ""
    """Why it cannot be sent, for a clinician."""


def _portions(data: bytes, numbers: Sequence[int]) -> Iterator[_Portion]:
    """The pages in as few PDFs as Document AI takes; a page that it does not take is a portion with a problem."""
    if not numbers:
        return
    cut = _cut(data, numbers)
    if cut is not None and len(cut) <= BYTES_AT_ONCE:
        yield _Portion(tuple(numbers), cut)
    elif len(numbers) > 1:
        half = len(numbers) // 2
        yield from _portions(data, numbers[:half])
        yield from _portions(data, numbers[half:])
    elif cut is None:
        yield _Portion(tuple(numbers), problem="the page is broken: export or scan it again")
    else:
        limit = BYTES_AT_ONCE // 1_000_000
        told = f"the page alone is larger than the {limit} MB that Document AI takes: export it with smaller images"
        yield _Portion(tuple(numbers), problem=told)


def _cut(data: bytes, numbers: Sequence[int]) -> bytes | None:
    """A PDF of these pages alone, with nothing else of the file; None where they cannot be cut out."""
    mupdf = library()
    try:
        document = open_pdf(data, "").document
        with document:
            catalog = document.pdf_catalog()
            for key in set(document.xref_get_keys(catalog)) - _KEPT:
                document.xref_set_key(catalog, key, "null")
            document.xref_set_key(-1, "Info", "null")
            document.select([number - 1 for number in numbers])
            return bytes(document.tobytes(garbage=2, deflate=True, encryption=mupdf.PDF_ENCRYPT_NONE))
    except Exception:  # noqa: BLE001 - MuPDF's errors share no base but Exception
        return None
