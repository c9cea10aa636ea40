"""The logins, in memory: a logout, a new code or a restart ends one at once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from evalkit.review.roster import ReviewerRoster, hash_login_code

#: Hours that a login lasts: a working day.
LOGIN_HOURS = 12


@dataclass(frozen=True)
class LoginSession:
    """One login."""

    session_id: str
    """Random; only the browser has it, in a signed cookie."""
    reviewer: str
    code_digest: str
    """The hash of the reviewer's code at login; a new code, or none, in the roster ends the session."""
    expires_at: float
    hub_token: str = field(default="", repr=False)
    """The token by which JupyterHub confirms the login; empty for logins of other kinds."""


class LoginSessions:
    """The logins of one server."""

    def __init__(
        self, roster: ReviewerRoster, clock: Callable[[], float] = time.time, *, roster_cache_seconds: float = 0
    ) -> None:
        """Take the roster; re-read a reviewer's code after ``roster_cache_seconds``."""
        self._roster = roster
        self._clock = clock
        self._roster_cache_seconds = roster_cache_seconds
        self._code_digest_cache: dict[str, tuple[float, str | None]] = {}
        self._session_by_id: dict[str, LoginSession] = {}
        self._proxied_session_ids: dict[str, str] = {}

    def log_in_by_code(self, code: str) -> LoginSession | None:
        """Log in the reviewer of this code. None for a code that nobody has."""
        reviewer = self._roster.find_reviewer_by_code(code)
        if reviewer is None:
            return None
        return self._add_session(secrets.token_hex(32), reviewer, hash_login_code(code))

    def log_in_or_renew_by_proxy(self, reviewer: str) -> LoginSession | None:
        """Log in a reviewer whom a trusted proxy names.

        There is one login for all browsers, which each call renews.

        None for a name that is not in the roster.
        """
        stored_digest = self._get_code_digest(reviewer)
        if stored_digest is None:
            return None
        existing_session = self.find_valid_session(self._proxied_session_ids.get(reviewer, ""))
        session = self._add_session(
            existing_session.session_id if existing_session else secrets.token_hex(32), reviewer, stored_digest
        )
        self._proxied_session_ids[reviewer] = session.session_id
        return session

    def log_in_by_hub(self, reviewer: str, hub_token: str) -> LoginSession | None:
        """Log in a reviewer whom JupyterHub names, in one browser. None for no reviewer."""
        stored_digest = self._roster.get_code_digest(reviewer)
        return (
            None
            if stored_digest is None
            else self._add_session(secrets.token_hex(32), reviewer, stored_digest, hub_token)
        )

    def find_valid_session(self, session_id: str) -> LoginSession | None:
        """Find the session of this id, if it is still valid."""
        session = self._session_by_id.get(session_id)
        if session is None or session.expires_at <= self._clock():
            return None
        return session if self._get_code_digest(session.reviewer) == session.code_digest else None

    def end_session(self, session_id: str) -> None:
        """Log out."""
        self._session_by_id.pop(session_id, None)

    def _get_code_digest(self, reviewer: str) -> str | None:
        now = self._clock()
        checked_at, stored_digest = self._code_digest_cache.get(reviewer, (now, None))
        if not checked_at < now < checked_at + self._roster_cache_seconds:
            stored_digest = self._roster.get_code_digest(reviewer)
            if stored_digest is None:
                self._code_digest_cache.pop(reviewer, None)  # a reviewer who is added later can log in at once
            else:
                self._code_digest_cache[reviewer] = now, stored_digest
        return stored_digest

    def _add_session(self, session_id: str, reviewer: str, stored_digest: str, hub_token: str = "") -> LoginSession:
        now = self._clock()
        self._session_by_id = {
            open_session.session_id: open_session
            for open_session in self._session_by_id.values()
            if open_session.expires_at > now
        }
        session = LoginSession(session_id, reviewer, stored_digest, now + LOGIN_HOURS * 3600, hub_token)
        self._session_by_id[session_id] = session
        return session
