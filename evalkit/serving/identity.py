"""Who is asking: the login cookie decides, never what a client says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_server.auth.identity import IdentityProvider, User

from evalkit.serving.sessions import Session

if TYPE_CHECKING:
    from tornado.web import RequestHandler

    from evalkit.serving.sessions import Sessions

REVIEWER_HEADER = "X-Reviewer"
"""Voilà hands it to the kernel as ``HTTP_X_REVIEWER``."""


@dataclass
class Reviewer(User):
    """A reviewer who is logged in."""

    session_id: str = ""


class ReviewerIdentity(IdentityProvider):
    """Identity by session. There is no token: it would stand in addresses, and would be nobody's."""

    @property
    def sessions(self) -> Sessions:
        """The server's logins."""
        sessions: Sessions = self.parent.sessions  # type: ignore[union-attr]  # the server makes it, as its child
        return sessions

    def get_user(self, handler: RequestHandler) -> User | None:
        """The reviewer of this request; the identity header is removed, and set by us for a good login only."""
        headers = handler.request.headers
        for name in [name for name in headers if name.replace("_", "-").lower() == REVIEWER_HEADER.lower()]:
            del headers[name]
        session = self.sessions.find(self._session_id(handler))
        if session is None:
            return None
        headers[REVIEWER_HEADER] = session.reviewer
        return Reviewer(session.reviewer, session_id=session.session_id)

    def log_in(self, handler: RequestHandler, session: Session) -> None:
        """Give the browser its cookie; it forgets it when it is closed."""
        handler.set_signed_cookie(
            self.get_cookie_name(handler),
            session.session_id,
            expires_days=None,
            httponly=True,
            samesite="Lax",
            secure=bool(self.secure_cookie),
        )

    def log_out(self, handler: RequestHandler) -> None:
        """End the login of this request, if there is one."""
        self.sessions.end(self._session_id(handler))
        handler.clear_cookie(self.get_cookie_name(handler))

    def _session_id(self, handler: RequestHandler) -> str:
        # Version 1 of Tornado's signatures uses SHA-1 and logs what it refuses.
        value = handler.get_signed_cookie(self.get_cookie_name(handler), max_age_days=1, min_version=2)
        return value.decode("ascii", "replace") if value else ""
