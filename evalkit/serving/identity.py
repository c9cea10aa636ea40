"""Who is asking: the login cookie decides, or a trusted proxy, never what a client says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_server.auth.identity import IdentityProvider, User
from tornado.web import HTTPError

from evalkit.serving.sessions import Session

if TYPE_CHECKING:
    from tornado.web import RequestHandler

    from evalkit.serving.sessions import Sessions
    from evalkit.settings import Review

REVIEWER_HEADER = "X-Reviewer"
"""Voilà hands it to the kernel as ``HTTP_X_REVIEWER``."""


@dataclass
class Reviewer(User):
    """A reviewer who is logged in."""

    session_id: str = ""
    by_other: bool = False
    """Whether a trusted proxy or JupyterHub said so: such a login is not ours to end."""


class NotOnRoster(HTTPError):
    """A trusted proxy names somebody who is no reviewer here."""

    def __init__(self, name: str) -> None:
        super().__init__(403)
        self.name = name


class ReviewerIdentity(IdentityProvider):
    """Identity by session. There is no token: it would stand in addresses, and would be nobody's."""

    @property
    def sessions(self) -> Sessions:
        """The server's logins."""
        sessions: Sessions = self.parent.sessions  # type: ignore[union-attr]  # the server makes it, as its child
        return sessions

    @property
    def trusted(self) -> Review:
        """The proxy that may name reviewers, if there is one."""
        trusted: Review = self.parent.review  # type: ignore[union-attr]  # as above
        return trusted

    def get_user(self, handler: RequestHandler) -> Reviewer | None:
        """The reviewer of this request; the identity headers are removed, and ours is set for a good login only.

        NotOnRoster for a name that a trusted proxy sent and that is no reviewer's.
        """
        headers, named = handler.request.headers, self._named(handler)
        ours = {name.lower() for name in (REVIEWER_HEADER, self.trusted.user_header) if name}
        for name in [name for name in headers if name.replace("_", "-").lower() in ours]:
            del headers[name]
        if named is not None:
            session = self.sessions.vouch(named)
            if session is None:
                raise NotOnRoster(named)
        else:
            session = self.sessions.find(self._session_id(handler))
        if session is None:
            return None
        headers[REVIEWER_HEADER] = session.reviewer
        by_other = named is not None or bool(session.token)
        return Reviewer(session.reviewer, session_id=session.session_id, by_other=by_other)

    async def stands_by(self, session: Session) -> bool:  # noqa: ARG002 - who else said so is asked by its own
        """Whether whoever said who this is would say so still. Of codes and proxies the session knows it."""
        return True

    def log_in(self, handler: RequestHandler, session: Session) -> None:
        """Give the browser its cookie; it forgets it when it is closed."""
        handler.set_signed_cookie(
            self.get_cookie_name(handler),
            session.session_id,
            expires_days=None,
            httponly=True,
            samesite="Lax",
            secure=bool(self.secure_cookie),
            path=self.path(handler),
        )

    def log_out(self, handler: RequestHandler) -> None:
        """End the login of this request, if there is one."""
        self.sessions.end(self._session_id(handler))
        handler.clear_cookie(self.get_cookie_name(handler), path=self.path(handler))

    def forget(self, handler: RequestHandler) -> None:
        """Let nobody hear the name that was found for this request."""
        del handler.request.headers[REVIEWER_HEADER]

    def path(self, handler: RequestHandler) -> str:
        """Where our cookies are sent to: other services of the same host must not see them."""
        base: str = handler.settings["base_url"]
        return base

    def _named(self, handler: RequestHandler) -> str | None:
        """Whom a trusted proxy names in this request."""
        # Who connected, not remote_ip: behind --public-url that is whatever X-Forwarded-For says.
        address = handler.request.connection.context.address[0]  # type: ignore[union-attr]  # of every HTTP/1 request
        if self.trusted.user_header is None or address not in map(str, self.trusted.proxies):
            return None
        return handler.request.headers.get(self.trusted.user_header)

    def has_cookie(self, handler: RequestHandler) -> bool:
        """Whether the browser sends a login cookie, good or not."""
        return bool(handler.get_cookie(self.get_cookie_name(handler)))

    def _session_id(self, handler: RequestHandler) -> str:
        # Version 1 of Tornado's signatures uses SHA-1 and logs what it refuses.
        value = handler.get_signed_cookie(self.get_cookie_name(handler), max_age_days=1, min_version=2)
        return value.decode("ascii", "replace") if value else ""
