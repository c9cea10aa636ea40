"""Login by JupyterHub, which starts the server and identifies reviewers by OAuth.

One server in a separate account serves all reviewers: notebook servers of the hub's users need no rights in the output
folder, and users cannot impersonate each other with environment variables. After the login the browser has the same
cookie as after a login by code; the cookie is valid as long as the hub confirms the login.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any, cast

from jupyter_server.auth.decorator import allow_unauthenticated
from jupyterhub.services.auth import HubOAuth
from tornado.httputil import url_concat
from tornado.web import HTTPError, RequestHandler

from evalkit.serving.handlers import LoginFormHandler
from evalkit.serving.identity import REVIEWER_HEADER, LoggedInReviewer, NotOnReviewerRoster, ReviewerIdentityProvider
from evalkit.serving.login_sessions import LoginSession

#: Path, below the service's URL prefix, to which the hub redirects browsers after the login.
CALLBACK_PATH = "oauth_callback"


class HubIdentityProvider(ReviewerIdentityProvider):
    """Identity by login session, valid while the hub accepts the session's token."""

    @property
    def hub(self) -> HubOAuth:
        """JupyterHub's OAuth client, which caches answers of the hub for five minutes."""
        return cast("HubOAuth", self.parent.hub)

    async def get_user(self, handler: RequestHandler) -> LoggedInReviewer | None:  # type: ignore[override]  # awaited as well
        """Return the logged-in reviewer of a request; None without a valid login.

        None also if the user logged out of the hub or lost access to this service.
        """
        reviewer = super().get_user(handler)
        session = self.sessions.find_valid_session(reviewer.session_id) if reviewer else None
        if reviewer is None or session is None:
            return None
        # The cache key contains the hub's own cookie, which changes or disappears after a logout from the hub. So neither
        # earlier answers nor answers obtained without a browser are used after the logout.
        if await self.is_login_confirmed(session, f"browser {self.hub.get_session_id(handler)}"):
            return reviewer
        self.sessions.end_session(reviewer.session_id)
        del handler.request.headers[REVIEWER_HEADER]  # the kernel must not get the name
        return None

    async def is_login_confirmed(self, session: LoginSession, hub_session_key: str = "") -> bool:
        """Return True if the hub still admits the user of this login.

        ``hub_session_key``: the key of the cached answer. HTTPError if the hub does not answer.
        """
        return self.is_admitted(
            await self.hub.user_for_token(session.hub_token, session_id=hub_session_key, sync=False)
        )

    def is_admitted(self, hub_user: Mapping[str, Any] | None) -> bool:
        """Return True if the hub's answer describes a user with access to this service."""
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
    """Handler of the login: redirects to the hub's login page."""

    @allow_unauthenticated
    def get(self) -> None:
        """Redirect to the hub's login, or to the requested page if already logged in."""
        if self.current_user:
            self.redirect(self.next_url)
            return
        code_verifier, code_challenge, challenge_method = self.hub.generate_pkce_code_challenge()
        state = self.hub.set_state_cookie(self, next_url=self.next_url, code_verifier=code_verifier)
        query_parameters = {"state": state, "code_challenge": code_challenge, "code_challenge_method": challenge_method}
        self.redirect(url_concat(self.hub.login_url, query_parameters))

    head = get


class HubCallbackHandler(_HubLoginFormHandler):
    """Handler to which the hub redirects the browser after its login."""

    @allow_unauthenticated
    async def get(self) -> None:
        """Log in the user named by the hub and redirect to the requested page.

        NotOnReviewerRoster if the user is not a reviewer; HTTPError 403 if the hub gives no access to this service.
        """
        state, authorization_code, hub = self.get_argument("state", ""), self.get_argument("code", ""), self.hub
        state_cookie = self.get_signed_cookie(hub.get_state_cookie_name(state), min_version=2) or b""
        next_url, code_verifier = hub.get_next_url(state), hub.get_code_verifier(state)
        hub.clear_oauth_state_cookies(self)
        if not state or not hmac.compare_digest(state_cookie, state.encode()):  # the login began in another browser
            raise HTTPError(403)
        hub.clear_oauth_state(state)
        if not authorization_code:  # the hub refused the login; its parameter ``error`` has the reason
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
