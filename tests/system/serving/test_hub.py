"""As a service of JupyterHub: who the hub names is who reviews, and nobody else."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from jupyterhub.services.auth import HubOAuth
from patience import SECONDS
from places import open_folder
from servers.jupyterhub import API_TOKEN, PREFIX, HubApi
from system.serving.nginx import free_port
from system.serving.running import Client, Server
from traitlets.config import LoggingConfigurable

from evalkit.errors import UsageError
from evalkit.review.roster import ReviewerRoster
from evalkit.serving.identity import REVIEWER_HEADER, LoggedInReviewer, ReviewerIdentityProvider
from evalkit.serving.jupyterhub_login import HubIdentityProvider
from evalkit.serving.kernel_manager import ReviewKernelManager
from evalkit.serving.launch import exec_review_server
from evalkit.serving.login_sessions import LoginSessions
from evalkit.settings import ReviewServerSettings


@pytest.fixture(scope="module")
def hub() -> Iterator[HubApi]:
    with HubApi() as running:
        yield running


@pytest.fixture(scope="module")
def service(hub: HubApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("service"), "--jupyterhub", **hub.environ(free_port()))
    yield server
    server.stop()


def asked(client: Client, page: str = "") -> str:
    """Where the hub is asked who this is; the browser was sent there from the page."""
    login = client.get(f"{PREFIX}{page}")
    assert login.status_code == 302
    answer = client.get(login.headers["Location"])
    assert answer.status_code == 302
    return answer.headers["Location"]


def logged_in(service: Server, hub: HubApi, name: str, page: str = "") -> Client:
    client = Client(service.base)
    back = client.get(hub.authorized(asked(client, page), name))
    assert back.status_code == 302, back.text + service.log
    assert (back.status_code, back.headers["Location"]) == (302, f"{PREFIX}{page}")
    return client


def test_whom_the_hub_names_reviews_and_nobody_in_their_place(service: Server, hub: HubApi) -> None:
    assert service.said.endswith(f"{PREFIX}  (Ctrl-C ends it)\n")
    lee, kim = logged_in(service, hub, "dr_lee", "?case=abc"), logged_in(service, hub, "dr_kim")
    assert not [name for name in service.in_reserve().environ() if name.startswith("JUPYTERHUB_")]
    posing = {"X-Reviewer": "dr_kim", "X-Forwarded-User": "dr_kim"}
    page = lee.get(PREFIX, headers=posing)
    kernel_id = re.search(r'"kernelId": "([^"]+)"', page.text).group(1)
    assert f'"baseUrl": "{PREFIX}"' in page.text
    environ = json.loads((service.output / "seen" / f"{kernel_id}.json").read_text())["environ"]
    assert environ["HTTP_X_REVIEWER"] == "dr_lee"
    assert not [name for name in environ if name.startswith("JUPYTERHUB_")]
    assert API_TOKEN not in environ.values()
    assert lee.get(f"{PREFIX}api/kernels/{kernel_id}").json()["id"] == kernel_id
    assert kim.get(f"{PREFIX}api/kernels/{kernel_id}").status_code == 404
    assert {one.path for one in lee.session.cookies} == {PREFIX}
    assert lee.get(f"{PREFIX}voila/static/voila.js").status_code == 200

    token = next(token for token, user in hub.users.items() if user["name"] == "dr_lee")
    hub.users[token]["scopes"] = ["self"]
    assert kim.get(f"{PREFIX}nothing").status_code == 404
    assert lee.get(PREFIX, cookies={"jupyterhub-session-id": "another, after leaving a group"}).status_code == 302
    lee = logged_in(service, hub, "dr_lee")
    del hub.users[next(reversed(hub.users))]
    assert lee.get(PREFIX, cookies={"jupyterhub-session-id": "another, after a logout"}).status_code == 302
    assert lee.get(f"{PREFIX}api/kernels/{kernel_id}").status_code == 403
    assert kim.get(PREFIX).status_code == 200  # the page has the token for logging out
    assert "Log out there too" in kim.log_out(PREFIX).text
    assert kim.get(f"{PREFIX}nothing").status_code == 302
    assert not {"dr_lee", "dr_kim", token, API_TOKEN} & set(re.split(r"[\s'\"=?&,]", service.log))


def test_an_answer_of_the_hub_counts_only_where_it_was_asked_for(service: Server, hub: HubApi) -> None:
    lee, kim = Client(service.base), Client(service.base)
    mine, theirs = hub.authorized(asked(lee), "dr_lee"), hub.authorized(asked(kim), "dr_kim")
    assert lee.get(theirs).status_code == 403  # whoever is sent another's answer would work in their name
    without_state = theirs.partition("&state=")[0]
    for wrong in (without_state, f"{without_state}&state=x", f"{PREFIX}oauth_callback"):
        assert lee.get(wrong).status_code == 403
    assert lee.get(f"{PREFIX}nothing").status_code == 302
    refused = hub.authorized(asked(lee), "dr_lee").replace("?code=", "?error=access_denied&was=")
    assert lee.get(refused).status_code == 403
    mine = hub.authorized(asked(lee), "dr_lee")
    assert lee.get(mine).status_code == 302
    again = lee.get(mine)
    assert again.status_code in (403, 500)
    assert "Traceback" not in again.text


def test_hub_user_without_review_access_is_refused(service: Server, hub: HubApi) -> None:
    client = Client(service.base)
    answer = client.get(hub.authorized(asked(client), "dr_who"))
    assert (answer.status_code, "“dr_who” is not the name of a reviewer here." in answer.text) == (403, True)
    hub.scopes = ["access:services!service=another"]
    try:
        answer = client.get(hub.authorized(asked(client), "dr_lee"))
    finally:
        hub.scopes = ["access:services!service=evalkit"]
    assert (answer.status_code, "You may not open this page." in answer.text) == (403, True)
    assert client.get(f"{PREFIX}nothing").status_code == 302
    assert urlsplit(asked(client, "?case=abc")).path == "/hub/api/oauth2/authorize"
    assert client.get(f"{PREFIX}login?next=https://elsewhere.example/").status_code == 302
    head = client.ask("HEAD", f"{PREFIX}login")
    assert (head.status_code, urlsplit(head.headers["Location"]).path) == (302, "/hub/api/oauth2/authorize")


def test_open_page_ends_with_its_hub_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ReviewerRoster(open_folder(tmp_path)).add_reviewer_or_replace_code("dr_lee")
    sessions, ended = LoginSessions(ReviewerRoster(open_folder(tmp_path))), []

    class Kernels(ReviewKernelManager):
        def __init__(self, parent: LoggingConfigurable, session_id: str) -> None:
            self.parent, self.session_id, self.kernel_id_by_websocket = parent, session_id, {}

        def __contains__(self, kernel_id: object) -> bool:
            return True

        async def wait_until_idle(self, kernel_id: str) -> None:
            pass

        async def shutdown_kernel(self, kernel_id: str, now: bool = False, restart: bool = False) -> None:
            ended.append(kernel_id)

    async def look() -> list[str]:
        kernels.session_id_by_kernel_id = {"k": kernels.session_id}
        await kernels.cull_kernel_if_idle("k")
        return ended

    monkeypatch.setattr(AsyncMappingKernelManager, "cull_kernel_if_idle", lambda self, kernel_id: asyncio.sleep(0))
    with HubApi() as hub:
        for name, value in hub.environ(8866).items():
            monkeypatch.setenv(name, value)

        class Parent(LoggingConfigurable):
            hub = HubOAuth()

        server = Parent()
        server.sessions = sessions
        server.identity_provider = identity = HubIdentityProvider(parent=server)
        kernels = Kernels(server, sessions.log_in_by_hub("dr_lee", "t").session_id)
        lets_in = {"name": "dr_lee", "kind": "user", "scopes": hub.scopes}
        hub.users["t"] = lets_in
        assert asyncio.run(look()) == []
        hub.users["t"] = lets_in | {"scopes": ["self"]}
        assert asyncio.run(look()) == [], "it is asked once in five minutes"
        sent_away = SimpleNamespace(
            request=SimpleNamespace(headers={REVIEWER_HEADER: "dr_lee"}), get_cookie=lambda name, default: default
        )
        who = LoggedInReviewer("dr_lee", session_id=kernels.session_id)
        with monkeypatch.context() as patched:
            patched.setattr(ReviewerIdentityProvider, "get_user", lambda self, handler: who)
            patched.setattr(sessions, "end_session", ended.append)
            assert asyncio.run(identity.get_user(sent_away)) is None, "a logout at the hub leaves no cookie there"
        assert ended == [who.session_id]
        assert sent_away.request.headers == {}
        ended.clear()
        identity.hub.cache.clear()
        assert asyncio.run(look()) == ["k"]
        identity.hub.cache.clear()
        ended.clear()
    assert asyncio.run(look()) == [], "a hub that does not answer has not said no"
    monkeypatch.setattr(identity, "is_login_confirmed", lambda session: asyncio.sleep(600))
    monkeypatch.setattr("evalkit.serving.kernel_manager._CONFIRMATION_TIMEOUT", 0.01)
    began = time.monotonic()
    assert asyncio.run(look()) == []
    assert time.monotonic() - began < SECONDS, "nor is it waited for"


@pytest.mark.parametrize(
    ("environ", "settings", "message"),
    [
        ({}, ReviewServerSettings(), "a service that JupyterHub starts itself"),
        (
            {"JUPYTERHUB_SERVICE_URL": "http://10.0.0.1:8866"},
            ReviewServerSettings(),
            "a service that JupyterHub starts itself",
        ),
        (
            {"JUPYTERHUB_SERVICE_NAME": "", "JUPYTERHUB_USER": "dr_lee"},
            ReviewServerSettings(),
            "a service that JupyterHub starts",
        ),
        (
            {},
            ReviewServerSettings(user_header="X-User", proxies=("127.0.0.1",)),
            "by JupyterHub and by a proxy's header X-User",
        ),
    ],
)
def test_a_hub_that_cannot_be_asked_is_a_mistake(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    settings: ReviewServerSettings,
    message: str,
) -> None:
    if settings.user_header or environ:
        with HubApi() as hub:
            for name, value in (hub.environ(8866) | environ).items():
                monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=message):
        exec_review_server(open_folder(tmp_path), 0, None, settings, print, is_hub_service=True)
