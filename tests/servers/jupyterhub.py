"""The part of JupyterHub's API that a service asks, on 127.0.0.1; the whole hub is in `make stress`."""

from __future__ import annotations

import json
import secrets
import threading
from base64 import urlsafe_b64encode
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

API_TOKEN = "the service's own secret"
PREFIX = "/services/evalkit/"
CLIENT = "service-evalkit"
SCOPES = ["access:services!service=evalkit"]


class HubApi:
    """Gives codes to whoever a test says has logged in, and takes them back as a hub does."""

    def __init__(self) -> None:
        outer = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                given = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self._say(*outer.exchange({name: values[0] for name, values in given.items()}))

            def do_GET(self) -> None:
                self._say(*outer.user(self.headers["Authorization"].removeprefix("token ")))

            def _say(self, status: int, body: dict[str, Any]) -> None:
                said = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self._codes: dict[str, tuple[str, str]] = {}
        self.users: dict[str, dict[str, Any]] = {}
        """By token; without it, the token is good no more."""
        self.scopes = list(SCOPES)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def environ(self, port: int) -> dict[str, str]:
        """What a hub tells the service that it starts on this port."""
        api = f"http://127.0.0.1:{self._server.server_port}/hub/api"
        return {
            "JUPYTERHUB_API_TOKEN": API_TOKEN,
            "JUPYTERHUB_API_URL": api,
            "JUPYTERHUB_BASE_URL": "/",
            "JUPYTERHUB_CLIENT_ID": CLIENT,
            "JUPYTERHUB_SERVICE_NAME": "evalkit",
            "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
            "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{port}",
            "JUPYTERHUB_OAUTH_ACCESS_SCOPES": json.dumps(SCOPES),
        }

    def authorized(self, asked: str, name: str) -> str:
        """Where the hub sends a browser in which ``name`` has logged in, from the address that it was sent to."""
        query = {one: values[0] for one, values in parse_qs(urlsplit(asked).query).items()}
        assert urlsplit(asked).path == "/hub/api/oauth2/authorize"
        assert (query["client_id"], query["response_type"], query["code_challenge_method"]) == (CLIENT, "code", "S256")
        code = secrets.token_hex(8)
        self._codes[code] = name, query["code_challenge"]
        return f"{query['redirect_uri']}?code={code}&state={query['state']}"

    def exchange(self, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """A token for a code, once, for the service and the browser that have asked for it."""
        name, challenge = self._codes.pop(given["code"], ("", ""))
        proof = urlsafe_b64encode(sha256(given.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        if not name or proof != challenge or given["client_secret"] != API_TOKEN:
            return 400, {"error": "invalid_grant"}
        token = secrets.token_hex(8)
        self.users[token] = {"name": name, "kind": "user", "admin": False, "scopes": self.scopes}
        return 200, {"access_token": token, "token_type": "Bearer"}

    def user(self, token: str) -> tuple[int, dict[str, Any]]:
        """Whose a token is."""
        return (200, self.users[token]) if token in self.users else (403, {"message": "no such token"})
