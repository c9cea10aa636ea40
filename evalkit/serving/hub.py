"""Behind JupyterHub: the hub says who somebody is, and starts this server as a service of its own.

One server for all reviewers, in an account of its own: whoever has a notebook server on the hub gets no rights in the
output folder by it, and nobody can pose as another by what stands in their own environment. The hub is asked by OAuth;
what browsers hold afterwards is the same cookie as after a code, for as long as the hub stands by its answer.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from jupyter_server.auth.decorator import allow_unauthenticated
from jupyterhub.services.auth import HubOAuth
from tornado.httputil import url_concat
from tornado.web import HTTPError

from evalkit.serving.handlers import LoginPage
from evalkit.serving.identity import NotOnRoster, Reviewer, ReviewerIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tornado.web import RequestHandler

    from evalkit.serving.sessions import Session

CALLBACK = "oauth_callback"
"""Below the service's prefix, where the hub sends browsers back to."""


class HubIdentity(ReviewerIdentity):
    """Identity by session, while the hub lets the token in that the session began with."""

    @property
    def hub(self) -> HubOAuth:
        """The hub; what it is asked is remembered for five minutes."""
        hub: HubOAuth = self.parent.hub  # type: ignore[union-attr]  # the server makes it, as its child
        return hub

    async def get_user(self, handler: RequestHandler) -> Reviewer | None:  # type: ignore[override]  # awaited as well
        """The reviewer of this request, as for codes; nobody, once they have logged out of the hub or may not use it."""
        user = super().get_user(handler)
        session = self.sessions.find(user.session_id) if user else None
        if user is None or session is None:
            return None
        # With the hub's own cookie, which is another after a logout there, or none: then what is remembered does not count,
        # nor what was asked for no browser.
        if await self.stands_by(session, f"browser {self.hub.get_session_id(handler)}"):
            return user
        self.sessions.end(user.session_id)
        self.forget(handler)
        return None

    async def stands_by(self, session: Session, hub_session: str = "") -> bool:
        """Whether the hub would still let this login in; ``hub_session`` tells apart what is remembered for
        whom. HTTPError where the hub does not answer.
        """
        return self.admits(await self.hub.user_for_token(session.token, session_id=hub_session, sync=False))

    def admits(self, found: Mapping[str, Any] | None) -> bool:
        """Whether whom the hub describes is a person who may use this service now."""
        return (
            found is not None and found.get("kind") == "user" and self.hub.check_scopes(self.hub.access_scopes, found)
        )


class _HubPage(LoginPage):
    @property
    def identity(self) -> HubIdentity:
        """Who is who."""
        identity: HubIdentity = self.settings["identity_provider"]
        return identity

    @property
    def hub(self) -> HubOAuth:
        """The hub."""
        return self.identity.hub


class HubLogin(_HubPage):
    """To the hub, and back to the page that was asked for."""

    @allow_unauthenticated
    def get(self) -> None:
        """Ask the hub who this is."""
        if self.current_user:
            self.redirect(self.next_page)
            return
        verifier, challenge, method = self.hub.generate_pkce_code_challenge()
        state = self.hub.set_state_cookie(self, next_url=self.next_page, code_verifier=verifier)
        asked = {"state": state, "code_challenge": challenge, "code_challenge_method": method}
        self.redirect(url_concat(self.hub.login_url, asked))

    head = get


class HubCallback(_HubPage):
    """The hub's answer."""

    @allow_unauthenticated
    async def get(self) -> None:
        """Log in whom the hub names. NotOnRoster where that is no reviewer; 403 for whoever may not use the service."""
        state, code, hub = self.get_argument("state", ""), self.get_argument("code", ""), self.hub
        given = self.get_signed_cookie(hub.get_state_cookie_name(state), min_version=2) or b""
        next_page, verifier = hub.get_next_url(state), hub.get_code_verifier(state)
        hub.clear_oauth_state_cookies(self)
        if not state or not hmac.compare_digest(given, state.encode()):  # the login began in another browser
            raise HTTPError(403)
        hub.clear_oauth_state(state)
        if not code:  # the hub says why in ``error``: it lets this person not in
            raise HTTPError(403)
        token = await hub.token_for_code(code, code_verifier=verifier, sync=False)
        user = await hub.user_for_token(token, use_cache=False, sync=False)
        if user is None or not self.identity.admits(user):
            raise HTTPError(403)
        session = self.identity.sessions.vouch_for_token(user["name"], token)
        if session is None:
            raise NotOnRoster(user["name"])
        self.identity.log_in(self, session)
        self.redirect(next_page)
