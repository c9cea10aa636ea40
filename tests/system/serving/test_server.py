"""Who gets in, what a page's kernel is told, and what nobody gets to see: a real server, plain clients."""

import html
import json
import os
import re
import resource
import signal
import socket
import sys
import uuid
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
import requests
import websocket
import zmq
from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1, serialize_msg_to_ws_v1
from patience import SECONDS, eventually
from places import open_folder
from system.serving.nginx import NGINX
from system.serving.nginx import proxy as nginx
from system.serving.running import PATIENT, SECRETS, Client, Server
from zmq.utils.monitor import recv_monitor_message

from evalkit.cli import main
from evalkit.review.roster import ReviewerRoster
from evalkit.serving.launch import find_review_notebook
from evalkit.serving.login_sessions import MAX_FAILURES

KERNEL = str(uuid.UUID(int=7))
V1 = "v1.kernel.websocket.jupyter.org"
ENDINGS = ("png", "jpg", "jpeg", "gif", "svg", "ipynb", "html", "txt", "json", "pdf", "py", "toml", "sqlite")
CLOSED = [
    "/",
    "/?case=doc2_6",
    "/index.html",
    "/sme_review.ipynb",
    "/favicon.ico",
    "/metrics",
    "/lab",
    "/tree",
    "/terminals/1",
    "/terminals/websocket/1",
    "/files/reviewers.json",
    "/static/style/style.min.css",
    "/custom/custom.css",
    "/login/",
    "/login/../voila/static/voila.js",
    "//login",
    "/nbextensions/anywidget/index.js",
    "/api",
    "/api/me",
    "/api/kernels",
    f"/api/kernels/{KERNEL}",
    f"/api/kernels/{KERNEL}/restart",
    "/api/kernelspecs",
    "/api/contents",
    "/api/contents/sme_review.ipynb",
    "/api/sessions",
    "/api/terminals",
    "/api/status",
    "/voila/",
    "/voila/tree",
    "/voila/render/sme_review.ipynb",
    "/voila/render/..%2f..%2fetc%2fpasswd",
    "/voila/api/contents/",
    f"/voila/api/shutdown/{KERNEL}",
    f"/voila/query/{KERNEL}",
    f"/voila/execution/{KERNEL}",
    "/voila/static/voila.js",
    "/voila/static/voila-style.js",
    "/voila/static/../../etc/passwd",
    "/voila/templates/evalkit/static/voila.js",
    "/voila/templates/lab/static/voila.js",
    "/voila/api/themes/@jupyterlab/theme-light-extension/index.css",
    "/voila/labextensions/anywidget/package.json",
    *(f"/voila/files/sme_review.{ending}" for ending in ENDINGS),
    *(f"/voila/files/..%2f..%2foutput/reviewers.{ending}" for ending in ENDINGS),
]


def message(kind: str, on: str = "shell", **content: object) -> bytes:
    header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "username": "", "session": "s", "version": "5.3"}
    parts = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    return serialize_msg_to_ws_v1(parts, on, lambda part: json.dumps(part).encode())


def heard(channel: websocket.WebSocket, until: str) -> dict[str, dict[str, object]]:
    """The kinds of all messages that come, up to that one, each with the last one's content."""
    contents = {}
    while until not in contents:
        _, parts = deserialize_msg_from_ws_v1(channel.recv())
        contents[json.loads(parts[0])["msg_type"]] = json.loads(parts[3])
    return contents


def connect(
    server: Server, kernel_id: str, client: Client | None, address: str = "127.0.0.1", **given: object
) -> websocket.WebSocket:
    url = f"ws://127.0.0.1:{server.port}/api/kernels/{kernel_id}/channels"
    link = socket.create_connection(("127.0.0.1", server.port), 20, source_address=(address, 0))
    given = {"subprotocols": [V1], "timeout": 20, "cookie": client.cookie if client else None} | given
    return websocket.create_connection(url, socket=link, **given)


def refused(server: Server, kernel_id: str, client: Client | None, **given: object) -> int:
    with pytest.raises(websocket.WebSocketBadStatusException) as caught:
        connect(server, kernel_id, client, **given)
    return caught.value.status_code


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """`evalkit …` in ``tmp_path``, in this process: another takes a second to begin."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["evalkit", *words])
        monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("it became a server"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return Said(ended.value.code, *capsys.readouterr())

    return run


# ------------------------------------------------------------------------------------------------ without a login


@pytest.mark.parametrize("path", CLOSED)
def test_without_a_login_there_is_only_the_login_page(server: Server, path: str) -> None:
    client = server.client()
    answer = client.get(path)
    if KERNEL in path and answer.status_code == 403:  # asked by scripts, which a redirect would not help
        assert "You may not open this page." in answer.text
    else:
        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/login?next=")
        assert answer.content == b""
    assert client.ask("HEAD", path).status_code in (302, 403, 405)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert client.ask(method, path).status_code in (403, 405), method


def test_a_method_that_there_is_not_is_refused_and_is_no_fault(server: Server) -> None:
    for path in ("/", "/login", "/nothing", f"/api/kernels/{KERNEL}", f"/api/kernels/{KERNEL}/channels"):
        answer = server.client().ask("TRACE", path)
        assert (answer.status_code, "There is no such page." in answer.text) == (405, True), path
    assert "AttributeError" not in server.log


def test_no_library_file_is_public_either(server: Server) -> None:
    share = Path(sys.prefix, "share/jupyter")
    folders = {"static": share / "voila/templates/base/static"}
    folders["labextensions"] = share / "labextensions"
    client = server.client()
    for route, folder in folders.items():
        files = [one.relative_to(folder) for one in folder.rglob("*.js")][:40]
        assert files
        for one in files:
            assert client.get(f"/voila/{route}/{one}").status_code == 302, one


def test_no_websocket_without_a_login_or_for_a_strangers_page(server: Server) -> None:
    client = server.client("dr_lee")
    kernel_id, _ = server.open(client)
    assert refused(server, kernel_id, None) == 403
    assert refused(server, KERNEL, None) == 403
    assert refused(server, kernel_id, None, header={"X-Reviewer": "dr_lee", "Authorization": "token "}) == 403
    assert refused(server, kernel_id, client, origin="http://evil.example") == 403
    connect(server, kernel_id, client, origin=server.base).close()


def test_a_foreign_host_name_is_refused(server: Server) -> None:
    answer = server.client("dr_lee").get("/", headers={"Host": "evil.example"})
    assert answer.status_code == 403
    assert "evalkit cannot be reached at this address." in answer.text


# ------------------------------------------------------------------------------------------------ logging in


def test_the_login_page_is_plain_and_says_what_to_do(server: Server) -> None:
    answer = server.client().get("/login?next=/%3Fcase%3Dabc")
    assert answer.status_code == 200
    assert "<title>evalkit</title>" in answer.text
    assert "Type the code" in answer.text
    assert 'name="next" value="/?case=abc"' in answer.text
    assert "<script" not in answer.text
    assert not re.search(r"https?://", answer.text)


def test_the_login_page_has_a_head(server: Server) -> None:
    answer = server.client().ask("HEAD", "/login")
    assert (answer.status_code, answer.content) == (200, b"")
    assert server.client("dr_lee").ask("HEAD", "/login").headers["Location"] == "/"


def test_headers(server: Server) -> None:
    client = server.client("dr_lee")
    for path in ("/login", "/", "/nothing"):
        headers = (client if path != "/login" else server.client()).get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-eval" not in policy
        assert "http" not in policy
        assert "script-src 'unsafe-inline'" not in policy
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
        assert "no-store" in headers["Cache-Control"]
        assert "Server" not in headers


def test_every_script_of_the_page_has_its_nonce(server: Server) -> None:
    client = server.client("dr_lee")
    first, second = client.get("/"), client.get("/")
    nonces = []
    for answer in (first, second):
        policy = answer.headers["Content-Security-Policy"]
        nonces.append(re.search(r"script-src 'self' blob: 'nonce-([\w-]{20,})'; ", policy).group(1))
        assert "connect-src 'self'" in policy
        tags = re.findall(r"<script[^>]*>", answer.text)
        assert len(tags) >= 5
        for tag in tags:
            assert "src=" in tag or "json" in tag or f'nonce="{nonces[-1]}"' in tag
        assert not re.search(r"""(src|href)=["']?(https?:)?//""", answer.text)
        assert "<title>evalkit</title>" in answer.text
    assert nonces[0] != nonces[1]


def test_the_right_code_opens_the_page_that_was_asked_for(server: Server) -> None:
    client = server.client()
    answer = client.log_in(server.codes["dr_lee"], "/?case=abc")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/?case=abc")
    assert client.get("/login").status_code == 302
    for path in ("//evil.example/", "https://evil.example/", "/\\evil.example", "/voila/static/voila.js"):
        assert server.client().log_in(server.codes["dr_lee"], path).headers["Location"] == "/"


def test_a_code_may_be_pasted_and_has_no_control_characters(server: Server) -> None:
    code = server.codes["dr_lee"]
    for typed in (
        f"  {code}\t\r\n",
        code.upper(),
        code.replace("-", " "),
        code.replace("-", "\u2013"),
        f"\u00a0{code}",
    ):
        assert server.client().log_in(typed).status_code == 302, typed
    for typed in (f"\0{code}", code.replace("-", "\0"), f"{code}\0", code.replace("-", "\r\n"), "\x1b[2J", "\0", ""):
        assert server.client().log_in(typed).status_code == 401, typed


def test_cookie_is_http_only_and_same_site(server: Server) -> None:
    answer = server.client().log_in(server.codes["dr_lee"])
    (cookie,) = [one for one in answer.raw.headers.getlist("Set-Cookie") if one.startswith("evalkit-")]
    assert cookie.startswith(f"evalkit-{server.port}=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Expires" not in cookie
    assert server.codes["dr_lee"] not in cookie
    assert "dr_lee" not in cookie


def test_a_login_needs_the_form(server: Server) -> None:
    answer = server.client().ask("POST", "/login", data={"code": server.codes["dr_lee"]})
    assert answer.status_code == 403
    assert "has expired" in answer.text
    assert "Set-Cookie" not in answer.headers or "evalkit-" not in answer.headers["Set-Cookie"]


def test_no_code_in_the_address(server: Server) -> None:
    code = server.codes["dr_lee"]
    for query in (f"token={code}", f"code={code}", "token=parent"):
        assert server.client().get(f"/?{query}").status_code == 302
        assert server.client().get("/", headers={"Authorization": f"token {code}"}).status_code == 302


def test_many_wrong_codes_are_refused_and_a_right_one_is_not(server: Server) -> None:
    client, forwarded = server.client(address="127.0.0.2"), server.client(address="127.0.0.2")
    forwarded.session.headers["X-Forwarded-For"] = forwarded.session.headers["X-Real-Ip"] = "10.0.0.9"
    for number in range(MAX_FAILURES):
        answer = (client, forwarded)[number % 2].log_in("aaaa-bbbb-cccc-dddd")
        assert answer.status_code == 401
        assert "not valid" in answer.text
    for other in (client, forwarded, client):
        answer = other.log_in("aaaa-bbbb-cccc-dddd")
        assert answer.status_code == 429
        assert 0 < int(answer.headers["Retry-After"]) <= 60
        assert "not valid" in answer.text
    assert server.log.count("many wrong login codes from 127.0.0.2: ") == 1
    assert server.client(address="127.0.0.5").log_in("aaaa-bbbb-cccc-dddd").status_code == 401
    assert client.get("/").status_code == 302
    assert client.log_in(server.codes["dr_lee"]).status_code == 302


# ------------------------------------------------------------------------------------------------ identity


def test_the_kernel_learns_reviewer_and_folder_and_no_keys(server: Server) -> None:
    _, seen = server.open(server.client("dr_lee"), "case=abc")
    environ = seen["environ"]
    assert environ["HTTP_X_REVIEWER"] == "dr_lee"
    assert environ["EVALKIT_OUTPUT"] == str(server.output)
    assert environ["QUERY_STRING"] == "case=abc"
    assert not set(SECRETS) & set(environ)
    assert not any("parent" in value for value in environ.values())
    assert not Path(environ["HOME"]).is_relative_to(Path.home())
    assert seen["cwd"] == ["sme_review.ipynb"]
    assert environ["MALLOC_TRIM_THRESHOLD_"] == "131072"  # of the kernel's own specification
    (process,) = [one for one in psutil.Process(server.process.pid).children() if one.pid == seen["pid"]]
    assert not any(name in process.environ() for name in SECRETS)
    assert not [one.path for one in process.memory_maps() if "pydevd" in one.path], "a page has no debugger"
    assert set(psutil.Process(server.process.pid).environ()) <= {
        "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONUSERBASE",
        "EVALKIT_OUTPUT", "EVALKIT_LOG_FORMAT", "EVALKIT_PATIENT_SALT",
    }  # fmt: skip


def test_the_kernel_in_reserve_knows_nobody_and_becomes_one_page(server: Server) -> None:
    reserve = server.in_reserve()
    assert not {"HTTP_X_REVIEWER", "QUERY_STRING", *SECRETS} & set(reserve.environ())
    _, seen = server.open(server.client("dr_lee"), "case=abc")
    assert seen["pid"] == reserve.pid
    assert (seen["environ"]["HTTP_X_REVIEWER"], seen["environ"]["QUERY_STRING"]) == ("dr_lee", "case=abc")
    assert seen["cwd"] == ["sme_review.ipynb"]
    assert reserve.rlimit(psutil.RLIMIT_DATA)[0] > 0, "it may not take all memory there is"
    _, another = server.open(server.client("dr_kim"))
    assert another["pid"] != seen["pid"]
    assert another["environ"]["HTTP_X_REVIEWER"] == "dr_kim"
    assert server.in_reserve().is_running()


def test_a_page_opens_where_the_kernel_in_reserve_has_ended(server: Server) -> None:
    reserve = server.in_reserve()
    reserve.kill()
    assert eventually(lambda: reserve.status() == psutil.STATUS_ZOMBIE)
    kernel_id, seen = server.open(server.client("dr_lee"))
    assert seen["environ"]["VOILA_KERNEL_ID"] == kernel_id
    assert "the kernel in reserve could not be used for a page" in server.log


def test_an_environment_that_no_pipe_holds_keeps_nobody_waiting(tmp_path: Path) -> None:
    server = Server(tmp_path, EVALKIT_PATIENT_SALT=70_000 * "s")
    try:
        client, reserve = server.client("dr_lee"), server.in_reserve()
        reserve.suspend()  # as if it were loading
        _, seen = server.open(client, "case=abc")
        assert seen["pid"] != reserve.pid
        assert seen["environ"]["QUERY_STRING"] == "case=abc"
    finally:
        server.stop()


def test_a_server_ends_while_the_kernel_in_reserve_is_loading(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        reserve = server.in_reserve()  # it has only just begun
    finally:
        status = server.stop(signal.SIGTERM)
    assert status == 0
    assert not reserve.is_running()
    assert "Traceback" not in server.log
    assert list(server.scratch.iterdir()) == []


def test_a_server_ends_with_status_1_if_a_change_is_not_recorded(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        assert server.client().get("/login").status_code == 200
        open_folder(server.output).changes.announce(["reviewers.json"])  # by a page that ends before it is recorded
    finally:
        status = server.stop()
    assert status == 1
    assert "The chain of changes lacks what was saved last" in server.log
    assert "Traceback" not in server.log


def test_a_forged_identity_changes_nothing(server: Server) -> None:
    names = ("X-Reviewer", "X_Reviewer", "x_reviewer", "Remote-User", "X-Forwarded-User")
    forged = dict.fromkeys(names, "dr_kim")
    assert server.client().get("/", headers=forged).status_code == 302
    _, seen = server.open(server.client("dr_lee"), "reviewer=dr_kim&HTTP_X_REVIEWER=dr_kim", headers=forged)
    assert seen["environ"]["HTTP_X_REVIEWER"] == "dr_lee"
    assert {key for key, value in seen["environ"].items() if value == "dr_kim"} == set()


NAMED = {"X-Forwarded-User": "dr_lee"}
PROXY = {"EVALKIT_REVIEW__USER_HEADER": "X-Forwarded-User", "EVALKIT_REVIEW__PROXIES": '["127.0.0.9", "127.0.0.10"]'}
LIMITS = {"EVALKIT_REVIEW__PAGES": "2", "EVALKIT_REVIEW__PAGE_MEMORY_MB": "256"}


@pytest.fixture(scope="module")
def behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("proxied"), "--public-url", "https://review.example", **PROXY, **LIMITS)
    yield server
    server.stop()


def test_a_trusted_proxy_says_who_the_reviewer_is(behind_proxy: Server) -> None:
    said = behind_proxy.process.stdout.readline()
    assert said == (
        "Reviewers are logged in by a proxy (127.0.0.9, 127.0.0.10), which sends their name in the header X-Forwarded-User.\n"
    )
    proxy, other = behind_proxy.client(address="127.0.0.9"), behind_proxy.client(address="127.0.0.10")
    kernel_id, seen = behind_proxy.open(proxy, "case=abc", headers=NAMED | {"X-Reviewer": "dr_kim"})
    assert seen["environ"]["HTTP_X_REVIEWER"] == "dr_lee"
    assert not [name for name in seen["environ"] if "FORWARDED" in name]
    assert [name for name, value in seen["environ"].items() if value in ("dr_lee", "dr_kim")] == ["HTTP_X_REVIEWER"]
    assert not any(one.name.startswith("evalkit-") for one in proxy.session.cookies)
    assert proxy.get("/login?next=/?case=abc", headers=NAMED).headers["Location"] == "/?case=abc"
    for wrong in ("//elsewhere.example/", "/?case=abc%0d%0aSet-Cookie:x", "https://review.example/?"):
        assert proxy.get(f"/login?next={wrong}", headers=NAMED).headers["Location"] == "/", wrong
    assert other.get(f"/api/kernels/{kernel_id}", headers=NAMED).json()["id"] == kernel_id
    kim = {"X-Forwarded-User": "dr_kim"}
    assert proxy.get(f"/api/kernels/{kernel_id}", headers=kim).status_code == 404
    channel = connect(behind_proxy, kernel_id, None, header=NAMED, address="127.0.0.9")
    assert refused(behind_proxy, kernel_id, None, header=kim, address="127.0.0.9") == 404
    assert "Uncaught" not in behind_proxy.log, "a page that asks for a kernel that is gone is no fault"
    channel.close()
    answer = proxy.log_out(headers=NAMED)
    assert "Log out there too" in answer.text
    assert eventually(lambda: not psutil.pid_exists(seen["pid"]))


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("127.0.0.1", NAMED),
        ("127.0.0.1", NAMED | {"X-Forwarded-For": "127.0.0.9", "X-Real-Ip": "127.0.0.9"}),
        ("127.0.0.1", NAMED | {"X-Forwarded-For": "dr_lee, 127.0.0.9", "Forwarded": "for=127.0.0.9"}),
        ("127.0.0.9", {}),
        ("127.0.0.9", {"X_Forwarded_User": "dr_lee"}),
        ("127.0.0.9", {"X-Reviewer": "dr_lee", "Remote-User": "dr_lee", "X-Forwarded-Users": "dr_lee"}),
    ],
)
def test_nobody_else_gets_anything_from_the_header(behind_proxy: Server, address: str, headers: dict[str, str]) -> None:
    client = behind_proxy.client(address=address)
    assert client.get("/", headers=headers).status_code == 302
    assert client.get("/login", headers=headers).status_code == 200
    assert refused(behind_proxy, KERNEL, None, header=headers, source_address=(address, 0)) == 403


def test_login_code_works_behind_proxy_and_headers_are_ignored(behind_proxy: Server) -> None:
    client = behind_proxy.client()
    form = client.get("/login")
    headers = {"Cookie": form.headers["Set-Cookie"].partition(";")[0]}  # by hand: the cookies are for TLS
    data = {
        "_xsrf": re.search(r'name="_xsrf" value="([^"]+)"', form.text).group(1),
        "code": behind_proxy.codes["dr_kim"],
    }
    answer = client.ask("POST", "/login", data=data, headers=headers | NAMED)
    headers = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
    _, seen = behind_proxy.open(client, headers=NAMED | headers)
    assert seen["environ"]["HTTP_X_REVIEWER"] == "dr_kim"


@pytest.mark.skipif(NGINX is None, reason="Debian's nginx is not installed")
def test_the_printed_nginx_example_works_and_lets_nobody_pose(behind_proxy: Server, tmp_path: Path) -> None:
    with nginx(
        tmp_path / "nginx", "review.example", behind_proxy.port, {"dr_ray": "of ray", "dr_who": "of who"}
    ) as tls:
        base, ray = f"https://127.0.0.1:{tls.port}", ("dr_ray", "of ray")
        ask = partial(
            requests.get,
            verify=str(tls.certificate),
            headers={"Host": "review.example"},
            timeout=SECONDS,
            allow_redirects=False,
        )
        posing = {
            "Host": "review.example",
            "X-Forwarded-User": "dr_lee",
            "X-Reviewer": "dr_lee",
            "X_Forwarded_User": "dr_lee",
        }

        answer = ask(base, auth=ray, headers=posing)
        kernel_id = re.search(r'"kernelId": "([^"]+)"', answer.text).group(1)
        seen = json.loads((behind_proxy.output / "seen" / f"{kernel_id}.json").read_text())
        assert seen["environ"]["HTTP_X_REVIEWER"] == "dr_ray"
        assert "of ray" not in json.dumps(seen)
        assert answer.headers["Strict-Transport-Security"]
        assert all(one.secure for one in answer.cookies)

        socket_of = f"wss://127.0.0.1:{tls.port}/api/kernels/{kernel_id}/channels"
        given = {"sslopt": {"ca_certs": str(tls.certificate)}, "timeout": 20, "host": "review.example"}
        given |= {"origin": "https://review.example", "subprotocols": [V1]}
        login = {"Authorization": "Basic " + b64encode(b"dr_ray:of ray").decode()}
        channel = websocket.create_connection(socket_of, header=login, **given)
        channel.send_binary(message("comm_info_request"))
        heard(channel, "comm_info_reply")
        channel.close()

        assert ask(base).status_code == 401
        assert ask(base, headers=posing).status_code == 401
        assert ask(base, auth=("dr_ray", "guessed")).status_code == 401
        assert "“dr_who” is not the name of a reviewer here." in ask(base, auth=("dr_who", "of who")).text
        with pytest.raises(websocket.WebSocketBadStatusException, match="401"):
            websocket.create_connection(socket_of, header=["X-Forwarded-User: dr_ray"], **given)
        with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
            websocket.create_connection(socket_of, header=login, **given | {"origin": "https://elsewhere.example"})
        plain = requests.get(f"http://127.0.0.1:{tls.port}/", auth=ray, timeout=SECONDS)
        assert (plain.status_code, "evalkit" in plain.text) == (400, False)
        token = {"_xsrf": answer.cookies["_xsrf"]}
        leaving = requests.post(
            f"{base}/logout",
            data=token,
            cookies=token,
            auth=ray,
            verify=str(tls.certificate),
            headers={"Host": "review.example"},
        )
        assert leaving.status_code == 200
    assert eventually(lambda: not psutil.pid_exists(seen["pid"]))


def test_one_page_too_many_and_one_too_large_are_told_so(behind_proxy: Server) -> None:
    proxy, kim = behind_proxy.client(address="127.0.0.9"), {"X-Forwarded-User": "dr_kim"}
    kernel_id, seen = behind_proxy.open(proxy, "large", headers=NAMED)
    others = [connect(behind_proxy, kernel_id, None, header=NAMED, address="127.0.0.9")]
    while (answer := proxy.get("/", headers=kim)).status_code == 200:  # pages of earlier tests may still be open
        another = re.search(r'"kernelId": "([^"]+)"', answer.text).group(1)
        others.append(connect(behind_proxy, another, None, header=kim, address="127.0.0.9"))
    assert answer.status_code == 503
    assert "There is no room for another review page." in answer.text
    assert "Close pages that you do not need" in answer.text
    assert "Error " not in answer.text, "nothing failed"
    assert eventually(lambda: not psutil.pid_exists(seen["pid"]))
    gone = f"/api/kernels/{kernel_id}"
    assert eventually(lambda: proxy.get(gone, headers=NAMED).status_code == 404)
    assert proxy.get(gone, headers=NAMED).json() == {"reason": "memory"}
    assert "reason" not in proxy.get(gone, headers=kim).text
    assert "MB of memory: the limit" in behind_proxy.log
    for one in others:
        one.close()


@pytest.mark.parametrize("name", ["dr_who", "", "dr_lee,dr_kim", "DR_LEE", "dr_lee@hospital.example", "<b>dr_lee</b>"])
def test_unknown_proxy_user_is_refused_in_plain_words(behind_proxy: Server, name: str) -> None:
    proxy = behind_proxy.client(address="127.0.0.9")
    for path in ("/", "/login", "/logout", "/nothing", f"/api/kernels/{KERNEL}"):
        answer = proxy.get(path, headers={"X-Forwarded-User": name})
        assert answer.status_code == 403, path
        assert f"“{html.escape(name)}” is not the name of a reviewer here." in answer.text
        assert "Ask the administrator of evalkit" in answer.text
    assert name == "" or name not in behind_proxy.log


def test_half_a_proxy_is_a_mistake_in_the_settings(tmp_path: Path, command: Callable[..., Said]) -> None:
    ReviewerRoster(open_folder(tmp_path / "output")).add_reviewer_or_replace_code("dr_lee")
    for text in (
        'user_header = "X-Forwarded-User"',
        'proxies = ["127.0.0.1"]',
        'user_header = "X-Forwarded-User"\nproxies = ["10.0.0.1"]',
        'user_header = "X_Forwarded_User"\nproxies = ["127.0.0.1"]',
        'user_header = "X-Forwarded-User"\nproxies = ["*"]',
        "page_memory_mb = 255",
        "pages = -1",
    ):
        (tmp_path / "evalkit.toml").write_text(f"[review]\n{text}\n")
        done = command("review", "--port", "0")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), text
        assert done.stderr.startswith("evalkit: setting review"), text


def test_an_altered_or_old_cookie_is_refused(server: Server) -> None:
    client = server.client("dr_kim")
    good, name = client.login_cookie, f"evalkit-{server.port}"
    fields = good.split("|")
    other = server.client("dr_lee").login_cookie.split("|")
    altered = [
        good[:-1] + ("0" if good[-1] != "0" else "1"),
        "|".join([*other[:-1], fields[-1]]),
        "|".join([*fields[:-2], other[-2], fields[-1]]),
        good + "0",
        "",
        "dr_kim",
        "2|1:0|10:1|9:x|0:|" + "0" * 64,
    ]
    for value in altered:
        assert server.client().get("/login", cookies={name: value}).status_code == 200
        assert server.client().get("/", cookies={name: value}).status_code == 302
    assert server.client().get("/nothing", cookies={name: good}).status_code == 404
    assert client.log_out().status_code == 200
    assert server.client().get("/", cookies={name: good}).status_code == 302


def test_a_new_code_ends_the_logins_with_the_old_one(server: Server) -> None:
    client = server.client("dr_ray")
    assert client.get("/nothing").status_code == 404
    old, server.codes["dr_ray"] = (
        server.codes["dr_ray"],
        ReviewerRoster(open_folder(server.output)).add_reviewer_or_replace_code("dr_ray"),
    )
    assert client.get("/nothing").status_code == 302
    assert server.client(address="127.0.0.3").log_in(old).status_code == 401
    assert server.client("dr_ray").get("/nothing").status_code == 404


def test_whose_login_has_ended_is_told_so(server: Server) -> None:
    client = server.client("dr_kim")
    cookie = {f"evalkit-{server.port}": client.login_cookie}
    assert "Your login has ended." not in server.client().get("/login").text
    assert "Your login has ended." not in client.log_out().text
    assert "Your login has ended." not in client.get("/login").text, "the cookie is gone"
    assert "Your login has ended." in server.client().get("/login?next=/", cookies=cookie).text


# ------------------------------------------------------------------------------------------------ kernels


def test_a_logged_in_expert_cannot_run_code(server: Server) -> None:
    client = server.client("dr_lee")
    kernel_id, _ = server.open(client)
    proof = server.output / "executed"
    channel = connect(server, kernel_id, client)
    code = f"open({str(proof)!r}, 'w')"
    asked = {"type": "request", "command": "evaluate", "arguments": {"expression": code}}
    for on in ("shell", "control"):
        channel.send_binary(message("execute_request", on, code=code, silent=False))
        channel.send_binary(message("debug_request", on, **asked))
    channel.send_binary(message("kernel_info_request"))
    answers = heard(channel, "kernel_info_reply")
    channel.close()
    assert not proof.exists()
    assert not {"execute_reply", "execute_input", "debug_reply"} & set(answers)


@pytest.mark.parametrize("offered", [None, ["kernel"], [f"x{V1}"], [V1.replace("1", "2")]], ids=str)
def test_a_page_that_speaks_another_protocol_is_not_listened_to(server: Server, offered: list[str] | None) -> None:
    client = server.client("dr_lee")
    kernel_id, _ = server.open(client)
    assert refused(server, kernel_id, client, subprotocols=offered) == 400


@pytest.mark.parametrize(
    "frame",
    [
        (2**63 - 1).to_bytes(8, "little"),
        b"",
        b"\0\0\0\1" + bytes(8),
        "{}",
        message("kernel_info_request").decode("latin-1"),
    ],
)
def test_malformed_message_closes_only_its_own_websocket(server: Server, frame: bytes | str) -> None:
    client = server.client("dr_lee")
    kernel_id, _ = server.open(client)
    channel = connect(server, kernel_id, client)
    channel.send(frame, websocket.ABNF.OPCODE_TEXT if isinstance(frame, str) else websocket.ABNF.OPCODE_BINARY)
    while (heard := channel.recv_data())[0] != websocket.ABNF.OPCODE_CLOSE:
        pass
    assert heard[1] == (1003).to_bytes(2, "big")
    assert client.get(f"/api/kernels/{kernel_id}").status_code == 200


def test_slow_websocket_reader_is_disconnected(server: Server) -> None:
    client = server.client("dr_lee")
    kernel_id, _ = server.open(client)
    channel = connect(server, kernel_id, client)
    channel.send_binary(message("comm_info_request"))
    comms = heard(channel, "comm_info_reply")["comm_info_reply"]["comms"]

    def tell_all(**data: object) -> None:
        for comm_id in comms:
            channel.send_binary(message("comm_msg", comm_id=comm_id, data=data))

    tell_all(method="update", state={"asked": True}, buffer_paths=[])  # the stub's picture has 4 MB from now on
    for _ in range(40):
        tell_all(method="request_state")
    assert eventually(lambda: "closed the websocket of a page that does not read its messages" in server.log)
    assert psutil.Process(server.process.pid).memory_info().rss < 300 << 20
    with suppress(websocket.WebSocketConnectionClosedException, ConnectionError):
        while channel.recv():
            pass
    connect(server, kernel_id, client).close()
    assert "Uncaught" not in server.log


def test_a_page_has_a_handful_of_websockets(server: Server) -> None:
    client = server.client("dr_lee")
    kernel_id, _ = server.open(client)
    with ThreadPoolExecutor() as pool:
        tried = [pool.submit(connect, server, kernel_id, client) for _ in range(9)]
    opened = [one.result() for one in tried if one.exception() is None]
    assert len(opened) == 3
    assert {one.exception().status_code for one in tried if one.exception()} == {429}
    opened[0].close()

    def has_room() -> bool:
        with suppress(websocket.WebSocketBadStatusException):
            opened.append(connect(server, kernel_id, client))
        return len(opened) == 4

    assert eventually(has_room)
    for one in opened[1:]:
        one.close()


def test_another_experts_kernel_does_not_exist(server: Server) -> None:
    lee, kim = server.client("dr_lee"), server.client("dr_kim")
    kernel_id, seen = server.open(lee)
    second_browser = server.client("dr_lee")
    for other in (kim, second_browser):
        assert other.get(f"/api/kernels/{kernel_id}").status_code == 404
        xsrf = {"X-XSRFToken": other.session.cookies["_xsrf"]}
        assert other.ask("POST", f"/voila/api/shutdown/{kernel_id}", headers=xsrf).status_code == 404
        assert other.ask("DELETE", f"/api/kernels/{kernel_id}", headers=xsrf).status_code in (404, 405)
        assert refused(server, kernel_id, other) == 404
    assert psutil.pid_exists(seen["pid"])
    assert lee.get(f"/api/kernels/{kernel_id}").json()["id"] == kernel_id


def test_a_closed_page_and_a_logout_end_their_kernels(server: Server) -> None:
    client = server.client("dr_kim")
    first, second, third = server.open(client), server.open(client), server.open(server.client("dr_kim"))
    token = client.session.cookies["_xsrf"]
    assert client.ask("POST", f"/voila/api/shutdown/{first[0]}").status_code == 403
    answer = client.ask("POST", f"/voila/api/shutdown/{first[0]}", data={"_xsrf": token})
    assert answer.status_code == 204
    assert eventually(lambda: not psutil.pid_exists(first[1]["pid"]))
    assert psutil.pid_exists(second[1]["pid"])
    assert "You are logged out" in client.log_out().text
    assert not psutil.pid_exists(second[1]["pid"])
    assert psutil.pid_exists(third[1]["pid"])


@pytest.mark.parametrize("end", ["logout", "remove_reviewer", "add_reviewer_or_replace_code"])
def test_websockets_and_kernels_end_with_their_login(server: Server, end: str) -> None:
    roster, name = ReviewerRoster(open_folder(server.output)), f"dr_{end[:6]}"
    server.codes[name] = roster.add_reviewer_or_replace_code(name)
    client, other = server.client(name), server.client("dr_kim")
    (kernel_id, seen), (other_id, other_seen) = server.open(client), server.open(other)
    channels, other_channel = [connect(server, kernel_id, client) for _ in range(2)], connect(server, other_id, other)
    if end == "logout":
        client.log_out()
    else:
        getattr(roster, end)(name)
    for channel in channels:
        while (heard := channel.recv_data(control_frame=True))[0] != websocket.ABNF.OPCODE_CLOSE:
            pass
        assert heard[1] == (1008).to_bytes(2, "big")
    assert eventually(lambda: not psutil.pid_exists(seen["pid"]))
    assert refused(server, kernel_id, client) == 403
    assert psutil.pid_exists(other_seen["pid"])
    other_channel.send_binary(message("comm_info_request"))
    heard_by_other = deserialize_msg_from_ws_v1(other_channel.recv())
    assert heard_by_other
    other.log_out()


def test_the_health_check_tells_state_and_version_only(server: Server) -> None:
    roster = server.output / "reviewers.json"
    before, pages = roster.read_bytes(), {*server.output.glob("seen/*")}
    client = server.client()
    answer = client.get("/health", headers={"X-Reviewer": "dr_lee"})
    assert (answer.status_code, answer.json()) == (200, {"state": "ok", "version": version("evalkit")})
    assert client.ask("HEAD", "/health").status_code == 200
    assert "Set-Cookie" not in answer.headers
    try:
        roster.write_text("{}")
        assert eventually(lambda: client.get("/health").status_code == 503)
        assert client.get("/health").json() == {"state": "unavailable", "version": version("evalkit")}
    finally:
        roster.write_bytes(before)
    assert eventually(lambda: client.get("/health").status_code == 200)
    assert client.ask("POST", "/health").status_code in (403, 405)
    assert {*server.output.glob("seen/*")} == pages, "it opens no page"


def test_a_strangers_page_can_log_nobody_out_and_may_lead_here(server: Server) -> None:
    client = server.client("dr_kim")
    _, seen = server.open(client, headers={"Sec-Fetch-Site": "cross-site"})
    for answer in (
        client.get("/logout"),
        client.get("/logout", headers={"Sec-Fetch-Site": "same-origin"}),
        client.ask("POST", "/logout"),
        client.ask("POST", "/logout", data={"_xsrf": "guessed"}, headers={"Sec-Fetch-Site": "same-origin"}),
    ):
        assert answer.status_code in (403, 405)
        assert "Set-Cookie" not in answer.headers
    assert psutil.pid_exists(seen["pid"])
    assert client.get("/nothing").status_code == 404
    assert "You are logged out" in client.log_out().text
    assert client.get("/nothing").status_code == 302


def test_the_page_sets_the_cookie_that_its_closing_needs(server: Server) -> None:
    client = server.client("dr_lee")
    client.session.cookies.clear_expired_cookies()
    kept = {one.name: one.value for one in client.session.cookies if one.name != "_xsrf"}
    answer = server.client().get("/", cookies=kept)
    assert any(one.startswith("_xsrf=") for one in answer.raw.headers.getlist("Set-Cookie"))


def test_who_only_knows_the_ports_of_a_kernel_hears_nothing(server: Server) -> None:
    client = server.client("dr_lee")
    kernel_id, seen = server.open(client)
    ports = {one.laddr.port for one in psutil.Process(seen["pid"]).net_connections() if one.status == "LISTEN"}
    assert len(ports) >= 5
    channel = connect(server, kernel_id, client)
    with zmq.Context() as context, context.socket(zmq.SUB) as stranger:
        stranger.linger = 0
        stranger.subscribe(b"")
        events = stranger.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        for port in ports:
            stranger.connect(f"tcp://127.0.0.1:{port}")
        answered = {}
        while len(answered) < len(ports):
            event = recv_monitor_message(events)
            answered[event["endpoint"]] = event["event"]
        stranger.disable_monitor()
        channel.send_binary(message("kernel_info_request"))
        heard(channel, "kernel_info_reply")
        assert not stranger.poll(200)
    assert set(answered.values()) == {zmq.EVENT_DISCONNECTED}
    channel.close()


def test_a_killed_kernel_is_not_replaced_by_an_empty_one(server: Server) -> None:
    client = server.client("dr_lee")
    kernel_id, seen = server.open(client)
    channel = connect(server, kernel_id, client)
    os.kill(seen["pid"], signal.SIGKILL)
    assert eventually(lambda: client.get(f"/api/kernels/{kernel_id}").status_code == 404)
    statuses = []
    while "dead" not in statuses:
        statuses += re.findall(r'"execution_state": ?"(\w+)"', channel.recv().decode(errors="replace"))
    assert "restarting" not in statuses
    channel.close()


# ------------------------------------------------------------------------------------------------ what people see


def test_an_unknown_page_is_friendly(server: Server) -> None:
    answer = server.client("dr_lee").get("/voila/files/../../../etc/passwd?x=1")
    assert answer.status_code == 404
    assert "There is no such page." in answer.text
    assert "Error " not in answer.text, "nothing failed"
    assert "Traceback" not in answer.text
    assert "passwd" not in answer.text


def test_no_file_is_served_to_experts_either(server: Server) -> None:
    client = server.client("dr_lee")
    for path in CLOSED:
        if path.startswith(("/voila/files", "/voila/render", "/api/contents", "/terminals", "/files", "/voila/query")):
            assert client.get(path).status_code == 404, path
    for path in ("anywidget/package.json", "jupyterlab_pygments/package.json", "anywidget/static/../package.json"):
        assert client.get(f"/voila/labextensions/{path}").status_code == 404
    assert client.get("/voila/static/voila.js").status_code == 200
    encoded = "/voila/labextensions/%40jupyter-widgets/jupyterlab-manager/static/"  # as some proxies send it
    assert client.get(f"{encoded}nothing.js").status_code == 404
    library = next(
        Path(sys.prefix, "share/jupyter/labextensions/@jupyter-widgets/jupyterlab-manager/static").glob("remote*.js")
    )
    assert client.get(encoded + library.name).status_code == 200
    assert client.get("/voila/static/..%2f..%2f..%2fshare").status_code in (403, 404)


def test_libraries_are_compressed_and_asked_for_only_once(server: Server) -> None:
    client = server.client("dr_lee")
    static = re.search(r'src="([^"]*/static)/voila.js"', client.get("/").text)[1]
    permanent, changing = client.get(f"{static}/voila.js"), client.get("/voila/static/voila.js")
    assert permanent.headers["Content-Encoding"] == "gzip"
    assert permanent.headers["Cache-Control"] == "private, max-age=31536000, immutable"
    assert changing.headers["Cache-Control"] == "private, no-cache"
    assert permanent.text == changing.text
    assert client.get(f"{static[:-8]}0/static/voila.js").status_code == 404, "another version's address"
    assert server.client().get(f"{static}/voila.js").status_code == 302, "not without a login"


def test_a_notebook_that_fails_shows_an_id_and_hides_the_rest(server: Server) -> None:
    answer = server.client("dr_lee").get("/?fail")
    assert answer.status_code == 200
    assert "The review page could not be opened." in answer.text
    error_id = re.search(r"Error ([0-9a-f]{8})<", answer.text).group(1)
    for word in (PATIENT, "Traceback", "ValueError", "workbench.py"):
        assert word not in answer.text
    assert error_id in server.log
    assert PATIENT not in server.log


def test_a_page_whose_kernel_ends_at_its_start_says_so(server: Server) -> None:
    client = server.client("dr_lee")
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(client.get, "/")

        def end_kernels() -> bool:
            for kernel in psutil.Process(server.process.pid).children():
                with suppress(psutil.Error):
                    kernel.kill()
            return opening.done()

        assert eventually(end_kernels)
    answer = opening.result()
    assert "The review page could not be opened." in answer.text
    error_id = re.search(r"Error ([0-9a-f]{8})<", answer.text).group(1)
    assert f"error {error_id}: the kernel of a page ended" in server.log
    assert "voila_heartbeat" not in answer.text, "a script that the page's own policy forbids"
    server.open(client)


def test_a_fault_of_the_server_is_friendly_too(server: Server) -> None:
    client, roster = server.client("dr_lee"), server.output / "reviewers.json"
    kept = roster.read_bytes()
    try:
        roster.write_text("{}")
        answer = client.get("/?case=roe_jane")
    finally:
        roster.write_bytes(kept)
    assert answer.status_code == 500
    assert "Something went wrong in evalkit." in answer.text
    error_id = re.search(r"Error ([0-9a-f]{8})<", answer.text).group(1)
    assert "Traceback" not in answer.text
    (line,) = [line for line in server.log.splitlines() if error_id in line]
    assert "GET /?…" in line
    assert "StoreError" in server.log.partition(line)[2]


def test_server_log_has_kernel_errors_but_no_secrets(server: Server) -> None:
    server.client().get("/?case=roe_jane")
    server.client("dr_lee").get("/nothing?case=roe_jane")
    server.client(address="127.0.0.4").log_in("zzzz-yyyy-xxxx-wwww")
    log = server.log
    assert "ERROR evalkit.widgets: told by a kernel" in log
    for word in ("roe_jane", "dr_lee", "dr_kim", "zzzz-yyyy", PATIENT, *server.codes.values(), "case="):
        assert word not in log, word


# ------------------------------------------------------------------------------------------------ start and end


def test_server_raises_descriptor_limit_for_its_pages(tmp_path: Path) -> None:
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, most), most))
    try:
        server = Server(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
    try:
        server.client().get("/login")
        given, _ = psutil.Process(server.process.pid).rlimit(psutil.RLIMIT_NOFILE)
        assert given == (65_536 if most < 0 else min(65_536, most))
    finally:
        server.stop()


def test_the_address_is_said_once(server: Server) -> None:
    assert server.said.startswith(f"The experts' screen is at {server.base}/ ")
    (listening,) = [one for one in psutil.Process(server.process.pid).net_connections() if one.status == "LISTEN"
                    and one.laddr.port == server.port]  # fmt: skip
    assert listening.laddr.ip == "127.0.0.1"


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Busy(NamedTuple):
    """A server of its own, with a page's kernel and one in reserve."""

    server: Server
    page: psutil.Process
    reserve: psutil.Process


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[signal.Signals, Busy]]:
    """One for each signal, all at once: each has its next kernel in reserve five seconds after its page has opened."""
    servers: dict[signal.Signals, Server] = {}
    try:
        for number in (*SIGNALS, signal.SIGKILL):
            # What ignores a signal, as under nohup, hands that on.
            before = None if number is signal.SIGKILL else signal.signal(number, signal.default_int_handler)
            try:
                servers[number] = Server(tmp_path_factory.mktemp(number.name))
            finally:
                if number is not signal.SIGKILL:
                    signal.signal(number, before)
        pages = {number: one.open(one.client("dr_lee"))[1]["pid"] for number, one in servers.items()}
        yield {number: Busy(one, psutil.Process(pages[number]), one.in_reserve()) for number, one in servers.items()}
    finally:
        for one in servers.values():
            if one.process.poll() is None:
                one.stop(signal.SIGKILL)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupt_ends_server_and_kernels_and_leaves_nothing(
    busy: dict[signal.Signals, Busy], number: signal.Signals
) -> None:
    server, page, reserve = busy[number]
    assert server.stop(number) == 0
    assert eventually(lambda: not page.is_running())
    assert not reserve.is_running()
    assert list(server.scratch.iterdir()) == []
    assert "Traceback" not in server.log


def test_warm_kernel_ends_with_a_killed_server(busy: dict[signal.Signals, Busy]) -> None:
    server, *kernels = busy[signal.SIGKILL]
    server.stop(signal.SIGKILL)
    assert psutil.wait_procs(kernels, timeout=SECONDS)[1] == []


def test_server_started_with_nohup_survives_hangup(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        server = Server(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    try:
        for _ in range(2):  # while it is loading, and when it has loaded
            server.process.send_signal(signal.SIGHUP)
            assert server.client().get("/login").status_code == 200
    finally:
        assert server.stop() == 0


def test_tls_proxy_means_secure_cookies_and_its_client_address(tmp_path: Path) -> None:
    server = Server(tmp_path, "--public-url", "https://review.example")
    try:
        assert "https://review.example" in server.said
        client = server.client()
        client.session.headers.update({"Host": "review.example", "X-Forwarded-Proto": "https"})
        form = client.get("/login")
        (cookie,) = form.raw.headers.getlist("Set-Cookie")
        assert "Secure" in cookie
        client.session.headers["Cookie"] = cookie.partition(";")[0]
        data = {"_xsrf": re.search(r'name="_xsrf" value="([^"]+)"', form.text).group(1), "code": "wrong"}
        for number in range(2 * MAX_FAILURES):
            spoofed = {"X-Forwarded-For": f"192.0.2.{number}, 10.0.0.{number % 2}", "X-Real-Ip": f"10.0.1.{number}"}
            answer = client.ask("POST", "/login", data=data, headers=spoofed)
            assert answer.status_code == 401
        assert client.ask("POST", "/login", data=data, headers=spoofed).status_code == 429
        answer = client.ask("POST", "/login", data={**data, "code": server.codes["dr_lee"]})
        assert answer.status_code == 302
        assert "Secure" in answer.headers["Set-Cookie"]
    finally:
        server.stop()


def test_what_a_user_can_get_wrong_is_one_line(tmp_path: Path, command: Callable[..., Said]) -> None:
    done = command("review")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    (tmp_path / "output").mkdir()
    done = command("review")
    assert done.returncode == 2
    assert "evalkit reviewers add NAME" in done.stderr
    added = command("reviewers", "add", "dr_lee")
    assert added.returncode == 0
    code = re.search(r"dr_lee's code: ((?:\w{4}-){3}\w{4})$", added.stdout, re.MULTILINE).group(1)
    assert ReviewerRoster(open_folder(tmp_path / "output")).find_reviewer_by_code(code) == "dr_lee"
    assert command("reviewers", "add", "dr lee").returncode == 2
    assert command("reviewers", "remove", "dr_kim").returncode == 2
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = command("review", "--port", port)
    assert done.returncode == 2
    assert done.stderr == f"evalkit: port {port} is in use. Choose another port with --port.\n"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://review.example", True),
        ("https://Review.example:8443/", True),
        ("https://xn--prfung-5ya.example", True),
        ("https://127.0.0.1", True),
        ("https://[::1]:8443", True),
        ("http://review.example", False),
        ("review.example", False),
        ("https://", False),
        ("https://u@review.example", False),
        ("https://review.example/x", False),
        ("https://review.example/?x", False),
        ("https://review.example/#x", False),
        ("https://review.example:abc", False),
        ("https://review.example:99999", False),
        ("https://prüfung.example", False),  # browsers send another form of it
        ("https://review example", False),
        ("https://.example", False),
        ("https://[::1", False),
        ("https://10.0.0.5", False),  # the server answers to names only
    ],
)
def test_public_url_must_be_a_reachable_https_address(
    tmp_path: Path, command: Callable[..., Said], url: str, expected: bool
) -> None:
    (tmp_path / "output").mkdir()
    done = command("review", "--public-url", url)  # there is no reviewer, so that it does not start
    refusal = "evalkit reviewers add NAME" if expected else "is not a valid address of a TLS proxy. Write https://HOST"
    assert (done.returncode, done.stderr.count("\n"), refusal in done.stderr) == (2, 1, True)


def test_the_notebook_is_a_front_door() -> None:
    notebook = json.loads(find_review_notebook().read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert 1 <= len(cells) <= 2
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    assert "from widgets.workbench import show" in "".join(cells[0]["source"])


def test_kernel_gets_database_url_and_command_lines_do_not(tmp_path: Path) -> None:
    url = "postgresql://evalkit:of-nobody@127.0.0.1:1/evalkit"
    server = Server(tmp_path, EVALKIT_DATABASE=url)
    try:
        _, seen = server.open(server.client("dr_lee"))
        assert seen["environ"]["EVALKIT_DATABASE"] == url
        root = psutil.Process(server.process.pid)
        words = [word for one in (root, *root.children(recursive=True)) for word in one.cmdline()]
        assert words
        assert not any("of-nobody" in text for text in (*words, server.log, server.said))
    finally:
        server.stop()
