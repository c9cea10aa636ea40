"""A Document AI of this machine: REST and gRPC on 127.0.0.1, answers by script or derived from the PDF that it is sent.

It answers while the client waits, so that MuPDF, which is not thread-safe, is used by one thread at a time.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

import grpc
import pymupdf
from google.cloud import documentai
from google.protobuf import json_format
from google.rpc import error_details_pb2, status_pb2

PROCESSOR = "projects/demo/locations/us/processors/layout1"
VERSION = f"{PROCESSOR}/processorVersions/pretrained-layout-parser-v1.0-2024-06-03"
SERVICE = "google.cloud.documentai.v1.DocumentProcessorService"
Block = documentai.Document.DocumentLayout.DocumentLayoutBlock


class Call(NamedTuple):
    """A request, as it came."""

    name: str
    """Of the processor, or of its version."""
    pages: int
    """Of the PDF; 0 where none was sent."""
    data: bytes
    options: dict[str, Any]
    """``process_options`` as JSON."""
    mask: list[str]
    """The fields that are asked for."""
    headers: dict[str, str]


@dataclass(frozen=True)
class Fault:
    """An answer that is none. ``hang`` and ``drop`` are instead of a status."""

    status: int = 0
    retry_after: float | None = None
    body: bytes | None = None
    """Sent as it is; with status 200 an answer that cannot be parsed."""
    headers: tuple[tuple[str, str], ...] = ()
    hang: bool = False
    drop: bool = False


@dataclass(frozen=True)
class Layout:
    """How an answer is derived from the PDF."""

    blocks: bool = True
    """False: ``document.pages`` alone."""
    pages: bool = False
    """``document.pages`` with paragraphs and lines."""
    tokens: bool = False
    boxes: bool = True
    nested: bool = False
    """All blocks of a page below its first one."""
    annotations: str = ""
    """What the model claims that it sees."""
    margins: bool = False
    """The first block of a page is its header, the last one its footer."""
    confidence: float = 0.98


Answer = documentai.Document | Fault | Callable[[bytes], documentai.Document]


@dataclass
class DocumentAiServer:
    """The server, as a context; it can be stopped and started again on the same port."""

    script: list[Answer] = field(default_factory=list)
    """What the next calls get, one each; those after them get an answer derived from the PDF."""
    layout: Layout = field(default_factory=Layout)
    default_version: str = VERSION
    processor_fault: Fault | None = None
    """What asking for the processor gets."""
    port: int = 0
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @cached_property
    def grpc_address(self) -> str:
        """Where gRPC is served, from the first time that this is asked."""
        self._grpc = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_receive_message_length", -1)])
        self._grpc.add_generic_rpc_handlers([_grpc_handler(self)])
        port = self._grpc.add_insecure_port("127.0.0.1:0")
        self._grpc.start()
        return f"127.0.0.1:{port}"

    def start(self) -> Self:
        self.stopping.clear()
        self._http = _Http(("127.0.0.1", self.port), self)
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def stop(self) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.drop_all()
        self._http.server_close()
        self._thread.join()
        if "grpc_address" in vars(self):
            self._grpc.stop(None).wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def answer(self, name: str, request: documentai.ProcessRequest, headers: dict[str, str]) -> Any:
        """A Fault, or the Document."""
        data = request.raw_document.content
        with pymupdf.open(stream=data, filetype="pdf") as document:
            pages = document.page_count
        options = documentai.ProcessOptions.to_dict(request.process_options)
        call = Call(name, pages, data, options, list(request.field_mask.paths), headers)
        with self._lock:
            self.calls.append(call)
            planned = self.script.pop(0) if self.script else None
        if planned is None:
            return derived(data, self.layout)
        return planned(data) if callable(planned) and not isinstance(planned, Fault) else planned

    def processor(self, name: str) -> Any:
        """A Fault, or the Processor."""
        with self._lock:
            self.calls.append(Call(name, 0, b"", {}, [], {}))
        return self.processor_fault or documentai.Processor(name=name, default_processor_version=self.default_version)


# Answers


def derived(data: bytes, layout: Layout) -> documentai.Document:
    """What a Layout Parser might say of the PDF; blank pages are left out, as by the real one."""
    blocks: list[Any] = []
    pages: list[documentai.Document.Page] = []
    text = ""
    with pymupdf.open(stream=data, filetype="pdf") as document:
        for number, page in enumerate(document, 1):
            found = [block for block in page.get_text("blocks") if block[6] == 0 and block[4].strip()]
            if not found:
                continue
            here = [_block(block, page, number, layout) for block in found]
            if layout.margins:
                here[0].text_block.type_, here[-1].text_block.type_ = "header", "footer"
            if layout.nested:
                here[0].text_block.blocks = here[1:]
                here = here[:1]
            blocks += here
            if layout.pages or layout.tokens or not layout.blocks:
                said, text = _page(page, number, text, layout)
                pages.append(said)
    told = documentai.Document(text=text, pages=pages)
    if layout.blocks:
        told.document_layout = documentai.Document.DocumentLayout(blocks=blocks)
    if layout.annotations:
        chunk = documentai.Document.ChunkedDocument.Chunk(content=layout.annotations)
        told.chunked_document = documentai.Document.ChunkedDocument(chunks=[chunk])
        image = Block.LayoutImageBlock(image_text=layout.annotations, annotations={"description": layout.annotations})
        told.document_layout.blocks.append(Block(image_block=image, page_span=span(1)))
    return told


def _block(block: Any, page: Any, number: int, layout: Layout) -> Any:
    x0, y0, x1, y1, text, *_ = block
    kind = "heading-1" if text.strip().isupper() else "paragraph"
    said = paragraph(text, number, kind=kind, box=_shares(page, x0, y0, x1, y1) if layout.boxes else None)
    if layout.annotations:
        said.text_block.annotations = documentai.Document.Annotations(description=layout.annotations)
    return said


def _page(page: Any, number: int, text: str, layout: Layout) -> tuple[Any, str]:
    """The page outside the tree of blocks, and the text of all pages so far."""
    paragraphs: dict[int, list[Any]] = {}
    tokens: list[Any] = []
    start = len(text)
    for x0, y0, x1, y1, word, block, *_ in page.get_text("words"):
        layout_of = _anchored(len(text), len(text) + len(word) + 1, _shares(page, x0, y0, x1, y1), layout.confidence)
        text += word + " "
        tokens.append(documentai.Document.Page.Token(layout=layout_of))
        paragraphs.setdefault(block, []).append((layout_of, (x0, y0, x1, y1)))
    told = documentai.Document.Page(
        page_number=number,
        dimension={"width": page.rect.width, "height": page.rect.height, "unit": "points"},
        layout=_anchored(start, len(text), (0, 0, 1, 1), layout.confidence),
        tokens=tokens if layout.tokens else [],
    )
    for words in paragraphs.values():
        lefts, tops, rights, bottoms = zip(*(box for _, box in words), strict=True)
        first, last = (one.text_anchor.text_segments[0] for one in (words[0][0], words[-1][0]))
        box = _shares(page, min(lefts), min(tops), max(rights), max(bottoms))
        told.paragraphs.append({"layout": _anchored(first.start_index, last.end_index, box, layout.confidence)})
    return told, text


def _anchored(start: int, end: int, box: tuple[float, ...], confidence: float) -> documentai.Document.Page.Layout:
    return documentai.Document.Page.Layout(
        text_anchor={"text_segments": [{"start_index": start, "end_index": end}]},
        confidence=confidence,
        bounding_poly=polygon(box),
    )


def _shares(page: Any, *box: float) -> tuple[float, ...]:
    rect = pymupdf.Rect(*box) * page.rotation_matrix
    width, height = page.rect.width, page.rect.height
    return rect.x0 / width, rect.y0 / height, rect.x1 / width, rect.y1 / height


def polygon(box: Iterable[float]) -> documentai.BoundingPoly:
    x0, y0, x1, y1 = box
    corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    return documentai.BoundingPoly(normalized_vertices=[{"x": x, "y": y} for x, y in corners])


def span(start: int, end: int = 0) -> Any:
    return Block.LayoutPageSpan(page_start=start, page_end=end or start)


def paragraph(
    text: str,
    page: int = 1,
    *,
    end: int = 0,
    kind: str = "paragraph",
    box: Iterable[float] | None = None,
    blocks: Iterable[Any] = (),
) -> Any:
    """A text block with what is in it; page 0 is a block that says nothing of its page."""
    said = Block(text_block=Block.LayoutTextBlock(text=text, type_=kind, blocks=blocks))
    if page:
        said.page_span = span(page, end)
    if box:
        said.bounding_box = polygon(box)
    return said


def table(
    rows: Iterable[Iterable[Any]], page: int = 1, *, caption: str = "", box: Iterable[float] | None = None
) -> Any:
    """A table block, its first row a header; a cell is a text, or blocks, or a cell with its spans."""
    told = []
    for row in rows:
        cells = [
            cell
            if isinstance(cell, Block.LayoutTableCell)
            else Block.LayoutTableCell(blocks=[paragraph(cell, page)] if isinstance(cell, str) else cell)
            for cell in row
        ]
        told.append(Block.LayoutTableRow(cells=cells))
    said = Block(
        table_block=Block.LayoutTableBlock(header_rows=told[:1], body_rows=told[1:], caption=caption),
        page_span=span(page),
    )
    if box:
        said.bounding_box = polygon(box)
    return said


def bullets(entries: Iterable[Iterable[Any]], page: int = 1) -> Any:
    """A list block."""
    told = [Block.LayoutListEntry(blocks=entry) for entry in entries]
    return Block(list_block=Block.LayoutListBlock(list_entries=told, type_="unordered"), page_span=span(page))


def laid_out(*blocks: Any) -> documentai.Document:
    """An answer of these blocks."""
    return documentai.Document(document_layout=documentai.Document.DocumentLayout(blocks=blocks))


# REST


class _Http(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], served: DocumentAiServer) -> None:
        self.served = served
        self._open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is none of the tests' concern."""

    def drop_all(self) -> None:
        for request in list(self._open):
            try:
                request.shutdown(socket.SHUT_RDWR)
            except OSError:
                self._open.discard(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name, _, verb = self.path.partition("?")[0].removeprefix("/v1/").partition(":")
        if verb != "process":
            self._send(404, b"{}")
            return
        request = documentai.ProcessRequest()
        json_format.Parse(body, documentai.ProcessRequest.pb(request))
        answer = self.server.served.answer(name, request, dict(self.headers))
        self._answer(answer, lambda: documentai.ProcessResponse(document=answer))

    def do_GET(self) -> None:
        answer = self.server.served.processor(self.path.partition("?")[0].removeprefix("/v1/"))
        self._answer(answer, lambda: answer)

    def _answer(self, answer: Any, message: Callable[[], Any]) -> None:
        if not isinstance(answer, Fault):
            self._send(200, type(message()).to_json(message(), indent=None).encode())
        elif answer.hang:
            self.server.served.stopping.wait(30)
        elif answer.drop:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            error = {"error": {"code": answer.status, "message": "Carcinoma in the file", "status": "FAULT"}}
            headers = list(answer.headers)
            if answer.retry_after is not None:
                headers.append(("Retry-After", f"{answer.retry_after:g}"))
            self._send(answer.status, answer.body if answer.body is not None else json.dumps(error).encode(), headers)

    def _send(self, status: int, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


# gRPC

_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
}


def _grpc_handler(served: DocumentAiServer) -> Any:
    def process(request: documentai.ProcessRequest, context: Any) -> bytes:
        headers = {key: str(value) for key, value in context.invocation_metadata()}
        answer = served.answer(request.name, request, headers)
        return _raw(answer, context, lambda: documentai.ProcessResponse(document=answer))

    def processor(request: documentai.GetProcessorRequest, context: Any) -> bytes:
        answer = served.processor(request.name)
        return _raw(answer, context, lambda: answer)

    def _raw(answer: Any, context: Any, message: Callable[[], Any]) -> bytes:
        if not isinstance(answer, Fault):
            return bytes(type(message()).serialize(message()))
        if answer.hang:
            served.stopping.wait(30)
        if answer.status == 200:
            return answer.body or b""
        code = grpc.StatusCode.UNAVAILABLE if answer.drop else _CODES.get(answer.status, grpc.StatusCode.UNKNOWN)
        if answer.retry_after is not None:
            info = error_details_pb2.RetryInfo()
            info.retry_delay.FromMilliseconds(round(1000 * answer.retry_after))
            status = status_pb2.Status(code=code.value[0], message="Carcinoma in the file")
            status.details.add().Pack(info)
            context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString())])
        context.abort(code, "Carcinoma in the file")
        raise AssertionError

    def unary(function: Any, request: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(function, request_deserializer=request.deserialize)

    methods = {
        "ProcessDocument": unary(process, documentai.ProcessRequest),
        "GetProcessor": unary(processor, documentai.GetProcessorRequest),
    }
    return grpc.method_handlers_generic_handler(SERVICE, methods)
