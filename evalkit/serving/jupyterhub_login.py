"""Login by JupyterHub, which starts the server and names reviewers by OAuth.

One server for all reviewers, in an account of its own: a notebook server on the hub gives no rights in the output folder,
and nobody can pose as another by setting variables in their own environment. After the login browsers hold the same cookie
as after a code, for as long as the hub confirms it.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, cast

from jupyter_server.auth.decorator import allow_unauthenticated
from jupyterhub.services.auth import HubOAuth
from tornado.httputil import url_concat
from tornado.web import HTTPError

from evalkit.serving.handlers import LoginFormHandler
from evalkit.serving.identity import REVIEWER_HEADER, LoggedInReviewer, NotOnReviewerRoster, ReviewerIdentityProvider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tornado.web import RequestHandler

    from evalkit.serving.login_sessions import LoginSession

#: The path below the service's prefix to which the hub sends browsers back.
CALLBACK_PATH = "oauth_callback"


class HubIdentityProvider(ReviewerIdentityProvider):
    """Identity by session, as long as the hub accepts the session's token."""

    @property
    def hub(self) -> HubOAuth:
        """The hub, whose answers are cached for five minutes."""
        return cast("HubOAuth", self.parent.hub)

    async def get_user(self, handler: RequestHandler) -> LoggedInReviewer | None:  # type: ignore[override]  # awaited as well
        """Identify the reviewer of this request.

        None also after a logout from the hub, or without access to this service.
        """
        reviewer = super().get_user(handler)
        session = self.sessions.find_valid_session(reviewer.session_id) if reviewer else None
        if reviewer is None or session is None:
            return None
        # The cache is keyed by the hub's own cookie, which changes or is gone after a logout there, so that an earlier
        # answer does not count then, nor one that was asked for no browser.
        if await self.is_login_confirmed(session, f"browser {self.hub.get_session_id(handler)}"):
            return reviewer
        self.sessions.end_session(reviewer.session_id)
        del handler.request.headers[REVIEWER_HEADER]  # the kernel must not get the name
        return None

    async def is_login_confirmed(self, session: LoginSession, hub_session_key: str = "") -> bool:
        """Ask the hub whether it still admits this login. HTTPError without an answer.

        ``hub_session_key``: the key of the cached answer.
        """
        return self.is_admitted(
            await self.hub.user_for_token(session.hub_token, session_id=hub_session_key, sync=False)
        )

    def is_admitted(self, hub_user: Mapping[str, Any] | None) -> bool:
        """Check that the hub describes a person who may use this service now."""
        return (
            hub_user is not None
            and hub_user.get("kind") == "user"
            and self.hub.check_scopes(self.hub.access_scopes, hub_user)
        )


class _HubLoginFormHandler(LoginFormHandler):
    @property
    def reviewer_identity(self) -> HubIdentityProvider:
        return cast("HubIdentityProvider", self.settings["identity_provider"])

    @property
    def hub(self) -> HubOAuth:
        return self.reviewer_identity.hub


class HubLoginHandler(_HubLoginFormHandler):
    """The way to the hub, and back to the requested page."""

    @allow_unauthenticated
    def get(self) -> None:
        """Redirect to the hub's login, unless the reviewer is logged in already."""
        if self.current_user:
            self.redirect(self.next_url)
            return
        code_verifier, code_challenge, challenge_method = self.hub.generate_pkce_code_challenge()
        state = self.hub.set_state_cookie(self, next_url=self.next_url, code_verifier=code_verifier)
        query_parameters = {"state": state, "code_challenge": code_challenge, "code_challenge_method": challenge_method}
        self.redirect(url_concat(self.hub.login_url, query_parameters))

    head = get


class HubCallbackHandler(_HubLoginFormHandler):
    """The hub's answer."""

    @allow_unauthenticated
    async def get(self) -> None:
        """Log in the user whom the hub names.

        NotOnReviewerRoster if that is no reviewer, HTTPError 403 without access to this service.
        """
        state, authorization_code, hub = self.get_argument("state", ""), self.get_argument("code", ""), self.hub
        state_cookie = self.get_signed_cookie(hub.get_state_cookie_name(state), min_version=2) or b""
        next_url, code_verifier = hub.get_next_url(state), hub.get_code_verifier(state)
        hub.clear_oauth_state_cookies(self)
        if not state or not hmac.compare_digest(state_cookie, state.encode()):  # the login began in another browser
            raise HTTPError(403)
        hub.clear_oauth_state(state)
        if not authorization_code:  # the hub refuses this person; its reason is in ``error``
            raise HTTPError(403)
        token = await hub.token_for_code(authorization_code, code_verifier=code_verifier, sync=False)
        hub_user = await hub.user_for_token(token, use_cache=False, sync=False)
        if hub_user is None or not self.reviewer_identity.is_admitted(hub_user):
            raise HTTPError(403)
        session = self.reviewer_identity.sessions.log_in_by_hub(hub_user["name"], token)
        if session is None:
            raise NotOnReviewerRoster(hub_user["name"])
        self.reviewer_identity.write_session_cookie(self, session)
        self.redirect(next_url)
