"""Object stores on this machine: moto for S3, gcp-storage-emulator for Google Cloud Storage.

Neither decides by itself who of several creates an object: moto looks and then writes, and the emulator does not know
the condition. So that a test can lose, moto gets one request at a time, and the emulator a handler in front that answers
as Google documents ``ifGenerationMatch=0``.
"""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from http.server import HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
from gcp_storage_emulator.exceptions import NotFound
from gcp_storage_emulator.handlers.buckets import create_bucket
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUCKET = "hospital"
SECRET = "not-a-real-secret"
PERFORMED = "performed, and the answer is lost"
SLOW = 1.0
"""Seconds."""


class Faults:
    """What is wrong with a store: how the next requests go, one after the other, or all of them."""

    def __init__(self) -> None:
        self.end()

    def end(self) -> None:
        """Nothing is wrong any more, and nothing was asked."""
        self.next: list[int | str] = []
        """Statuses, ``PERFORMED``, or ``slow``."""
        self.all: int | str | None = None
        self.seen: list[str] = []
        """The requests: method, path and query, and S3's condition."""

    def of(self, request: str) -> int | str | None:
        """What goes wrong with this request."""
        self.seen.append(request)
        fault = self.next.pop(0) if self.next else self.all
        if fault == "slow":
            time.sleep(SLOW)
        return fault


class S3Server:
    """moto."""

    scheme = "s3"

    def __init__(self) -> None:
        self.faults = Faults()
        self._app = DomainDispatcherApplication(create_backend_app)
        self._turn = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_silent())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.client.create_bucket(Bucket=BUCKET)

    @property
    def environment(self) -> dict[str, str]:
        """What a machine that works with it has in its environment."""
        return {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_ACCESS_KEY_ID": "lee",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @property
    def client(self) -> Any:
        """Amazon's own client."""
        given = self.environment
        return boto3.client(
            "s3",
            endpoint_url=given["AWS_ENDPOINT_URL_S3"],
            aws_access_key_id="lee",
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    def stop(self) -> None:
        """Nobody answers any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        # Werkzeug would close a connection with unread bytes in it, which looks like another fault.
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        query = environ.get("QUERY_STRING")
        condition = environ.get("HTTP_IF_NONE_MATCH")
        asked = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{query}"
        fault = self.faults.of(asked + f" If-None-Match: {condition}" * bool(condition))
        if fault == PERFORMED:
            with self._turn:
                list(self._app(environ, lambda *_: None))
            fault = 500
        if isinstance(fault, int):
            code = {403: "AccessDenied", 409: "ConditionalRequestConflict", 500: "InternalError"}[fault]
            start(f"{fault} {code}", [("Content-Type", "application/xml")])
            said = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>"
            return [said.encode()] if environ["REQUEST_METHOD"] != "HEAD" else []
        with self._turn:
            return list(self._app(environ, start))


class GcsServer:
    """gcp-storage-emulator; as it is, where it is not to honour the condition."""

    scheme = "gs"

    def __init__(self, *, honours: bool = True) -> None:
        self.faults = Faults()
        storage = Storage(use_memory_fs=True)
        create_bucket(BUCKET, storage)
        self._server = _Listening(("127.0.0.1", 0), partial(_Handler, self.faults, honours, storage))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        """What a machine that works with it has in its environment."""
        return {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{self._server.server_port}"}

    def stop(self) -> None:
        """Nobody answers any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Listening(HTTPServer):
    request_queue_size = 64
    """As many may knock at once; with five, others wait a second before they knock again."""


class _Handler(RequestHandler):
    def __init__(self, faults: Faults, honours: bool, *given: Any) -> None:
        self._faults, self._honours = faults, honours
        super().__init__(*given)

    def handle(self) -> None:
        with suppress(BrokenPipeError):  # the client asks two things at once, and hangs up on the slower one
            super().handle()

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.rfile = io.BytesIO(body)
        fault = self._faults.of(f"{self.command} {self.path}")
        if fault == PERFORMED:
            kept, self.wfile = self.wfile, io.BytesIO()
            getattr(self, f"do_{self.command}")()
            self.wfile, fault = kept, 500
            self._headers_buffer = []
        if fault is None and self._honours and self._is_there_already(body):
            fault = 412
        if isinstance(fault, int):
            answer = json.dumps({"error": {"code": fault, "message": "no"}}).encode()
            self.send_response(fault)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            return False
        return True

    def _is_there_already(self, body: bytes) -> bool:
        address = urlsplit(self.path)
        if self.command != "POST" or parse_qs(address.query).get("ifGenerationMatch") != ["0"]:
            return False
        said, _ = json.JSONDecoder().raw_decode(body[body.index(b"{") :].decode())
        try:
            self.storage.get_file_obj(address.path.split("/")[-2], said["name"])
        except NotFound:
            return False
        return True


def _silent() -> type:
    from moto.moto_server.werkzeug_app import MotoRequestHandler

    class Silent(MotoRequestHandler):
        def log(self, *_: Any) -> None:
            pass

    return Silent
