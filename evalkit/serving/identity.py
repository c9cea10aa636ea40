"""Identification of a request's reviewer, by login cookie or trusted proxy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from jupyter_server.auth.identity import IdentityProvider, User
from tornado.web import HTTPError

from evalkit.serving.login_sessions import LoginSession

if TYPE_CHECKING:
    from tornado.web import RequestHandler

    from evalkit.serving.login_sessions import LoginSessions
    from evalkit.settings import ReviewServerSettings

#: Request header with the reviewer's name, which Voilà passes to the kernel as ``HTTP_X_REVIEWER``.
REVIEWER_HEADER = "X-Reviewer"


@dataclass
class LoggedInReviewer(User):
    """Jupyter's user object for a logged-in reviewer, with the login session."""

    session_id: str = ""
    is_external_login: bool = False
    """True if a trusted proxy or JupyterHub logged the reviewer in; this server cannot end such a login."""


class NotOnReviewerRoster(HTTPError):
    """HTTP 403: the name sent by a trusted proxy or JupyterHub is not in the roster."""

    def __init__(self, reviewer_name: str) -> None:
        super().__init__(403)
        self.reviewer_name = reviewer_name


class ReviewServerPart:
    """Mixin for parts of the review server: access to its logins and settings."""

    parent: Any

    @property
    def sessions(self) -> LoginSessions:
        """The server's login sessions."""
        return cast("LoginSessions", self.parent.sessions)

    @property
    def review_settings(self) -> ReviewServerSettings:
        """The settings section ``[review]``: limits for pages, trusted proxies."""
        return cast("ReviewServerSettings", self.parent.review_settings)


class ReviewerIdentityProvider(ReviewServerPart, IdentityProvider):
    """Jupyter identity provider that identifies reviewers by login session.

    Jupyter's own token login is not supported: the token would appear in URLs and identify no reviewer.
    """

    def get_user(self, handler: RequestHandler) -> LoggedInReviewer | None:
        """Return the logged-in reviewer of a request; None without a valid login.

        Identity headers sent by the client are removed; ``X-Reviewer`` is set only for a valid login.
        NotOnReviewerRoster if a trusted proxy sent a name that is not in the roster.
        """
        headers, proxied_name = handler.request.headers, self._get_proxied_name(handler)
        identity_headers = {
            header_name.lower() for header_name in (REVIEWER_HEADER, self.review_settings.user_header) if header_name
        }
        for header_name in [
            header_name for header_name in headers if header_name.replace("_", "-").lower() in identity_headers
        ]:
            del headers[header_name]
        if proxied_name is not None:
            session = self.sessions.log_in_or_renew_by_proxy(proxied_name)
            if session is None:
                raise NotOnReviewerRoster(proxied_name)
        else:
            session = self.sessions.find_valid_session(self._read_session_id(handler))
        if session is None:
            return None
        headers[REVIEWER_HEADER] = session.reviewer
        is_external_login = proxied_name is not None or bool(session.hub_token)
        return LoggedInReviewer(session.reviewer, session_id=session.session_id, is_external_login=is_external_login)

    async def is_login_confirmed(self, session: LoginSession) -> bool:  # noqa: ARG002 - HubIdentityProvider needs it
        """Return True if the login's source still confirms the login.

        Always True here: logins by code or proxy are checked by the session itself.
        """
        return True

    def write_session_cookie(self, handler: RequestHandler, session: LoginSession) -> None:
        """Set the signed login cookie, which the browser deletes when it is closed."""
        handler.set_signed_cookie(
            self.get_cookie_name(handler),
            session.session_id,
            expires_days=None,
            httponly=True,
            samesite="Lax",
            secure=bool(self.secure_cookie),
            path=handler.settings["base_url"],  # do not send the cookie to other services of the same host
        )

    def end_session_and_clear_cookie(self, handler: RequestHandler) -> None:
        """End the request's login session, if any, and delete its cookie."""
        self.sessions.end_session(self._read_session_id(handler))
        handler.clear_cookie(self.get_cookie_name(handler), path=handler.settings["base_url"])

    def _get_proxied_name(self, handler: RequestHandler) -> str | None:
        # Use the connection's peer, not remote_ip, which comes from the header X-Forwarded-For with --public-url.
        peer_address = handler.request.connection.context.address[0]  # type: ignore[union-attr]  # of every HTTP/1 request
        if self.review_settings.user_header is None or peer_address not in map(str, self.review_settings.proxies):
            return None
        return handler.request.headers.get(self.review_settings.user_header)

    def has_login_cookie(self, handler: RequestHandler) -> bool:
        """Return True if the request has a login cookie, valid or not."""
        return bool(handler.get_cookie(self.get_cookie_name(handler)))

    def _read_session_id(self, handler: RequestHandler) -> str:
        # Exclude version 1 of Tornado's signatures: it uses SHA-1 and logs the cookies that it refuses.
        cookie = handler.get_signed_cookie(self.get_cookie_name(handler), max_age_days=1, min_version=2)
        return cookie.decode("ascii", "replace") if cookie else ""
