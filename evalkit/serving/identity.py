"""The reviewer of a request, by login cookie or trusted proxy, never by a claim."""

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

#: The header that Voilà passes to the kernel as ``HTTP_X_REVIEWER``.
REVIEWER_HEADER = "X-Reviewer"


@dataclass
class LoggedInReviewer(User):
    """A reviewer who is logged in."""

    session_id: str = ""
    is_external_login: bool = False
    """True if a trusted proxy or JupyterHub logged them in: this server cannot end such a login."""


class NotOnReviewerRoster(HTTPError):
    """A trusted proxy or JupyterHub names somebody who is no reviewer here."""

    def __init__(self, reviewer_name: str) -> None:
        super().__init__(403)
        self.reviewer_name = reviewer_name


class ReviewServerPart:
    """A part of the review server, with its logins and settings."""

    parent: Any

    @property
    def sessions(self) -> LoginSessions:
        """The server's logins."""
        return cast("LoginSessions", self.parent.sessions)

    @property
    def review_settings(self) -> ReviewServerSettings:
        """The ``[review]`` section: limits of pages, and a trusted proxy."""
        return cast("ReviewServerSettings", self.parent.review_settings)


class ReviewerIdentityProvider(ReviewServerPart, IdentityProvider):
    """Identity by session.

    There is no token: it would appear in addresses and belong to nobody.
    """

    def get_user(self, handler: RequestHandler) -> LoggedInReviewer | None:
        """Identify the reviewer of this request.

        Identity headers that the client sent are removed; evalkit's own is set for a valid login only. NotOnReviewerRoster
        if a trusted proxy sent a name that is no reviewer's.
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
        """Ask whether the login is still valid; of codes and proxies the session knows it."""
        return True

    def write_session_cookie(self, handler: RequestHandler, session: LoginSession) -> None:
        """Set the login cookie, which the browser drops when it is closed."""
        handler.set_signed_cookie(
            self.get_cookie_name(handler),
            session.session_id,
            expires_days=None,
            httponly=True,
            samesite="Lax",
            secure=bool(self.secure_cookie),
            path=handler.settings["base_url"],  # not for other services of the same host
        )

    def end_session_and_clear_cookie(self, handler: RequestHandler) -> None:
        """End the login of this request, if there is one."""
        self.sessions.end_session(self._read_session_id(handler))
        handler.clear_cookie(self.get_cookie_name(handler), path=handler.settings["base_url"])

    def _get_proxied_name(self, handler: RequestHandler) -> str | None:
        # The peer of the connection, not remote_ip: with --public-url that is taken from X-Forwarded-For.
        peer_address = handler.request.connection.context.address[0]  # type: ignore[union-attr]  # of every HTTP/1 request
        if self.review_settings.user_header is None or peer_address not in map(str, self.review_settings.proxies):
            return None
        return handler.request.headers.get(self.review_settings.user_header)

    def has_login_cookie(self, handler: RequestHandler) -> bool:
        """Check whether the browser sends a login cookie, valid or not."""
        return bool(handler.get_cookie(self.get_cookie_name(handler)))

    def _read_session_id(self, handler: RequestHandler) -> str:
        # Version 1 of Tornado's signatures uses SHA-1 and logs what it refuses.
        cookie = handler.get_signed_cookie(self.get_cookie_name(handler), max_age_days=1, min_version=2)
        return cookie.decode("ascii", "replace") if cookie else ""
