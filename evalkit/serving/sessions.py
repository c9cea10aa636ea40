"""Who is logged in. Kept in the server's memory: logging out, a new code or a restart end a login at once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from evalkit.review.roster import Roster, code_digest

HOURS = 12
"""A login lasts a working day."""


@dataclass(frozen=True)
class Session:
    """One login."""

    session_id: str
    """Random; the browser holds it in a signed cookie, nobody else."""
    reviewer: str
    code_digest: str
    """Of the code that was typed, or that there was: another code in the roster ends the session, and none does."""
    ends: float
    token: str = field(default="", repr=False)
    """By which JupyterHub is asked whether it still stands by it; empty for a login of any other kind."""


class Sessions:
    """The logins of one server."""

    def __init__(self, roster: Roster, clock: Callable[[], float] = time.time, *, remembered: float = 0) -> None:
        """``remembered``: so many seconds is a reviewer's code believed without a look at the roster."""
        self._roster = roster
        self._clock = clock
        self._remembered = remembered
        self._codes: dict[str, tuple[float, str | None]] = {}
        self._open: dict[str, Session] = {}
        self._vouched: dict[str, str] = {}

    def begin(self, code: str) -> Session | None:
        """Log in. None for a code that nobody has."""
        reviewer = self._roster.check(code)
        if reviewer is None:
            return None
        return self._opened(secrets.token_hex(32), reviewer, code_digest(code))

    def vouch(self, reviewer: str) -> Session | None:
        """The login of a reviewer for whom another program answers: one for all browsers, renewed whenever it is asked
        for. None for a name that is not on the roster.
        """
        digest = self._digest(reviewer)
        if digest is None:
            return None
        known = self.find(self._vouched.get(reviewer, ""))
        session = self._opened(known.session_id if known else secrets.token_hex(32), reviewer, digest)
        self._vouched[reviewer] = session.session_id
        return session

    def vouch_for_token(self, reviewer: str, token: str) -> Session | None:
        """The login of a reviewer whom JupyterHub has named, in one browser. None for a name that is not on the roster."""
        digest = self._roster.digest(reviewer)
        return None if digest is None else self._opened(secrets.token_hex(32), reviewer, digest, token)

    def find(self, session_id: str) -> Session | None:
        """The session of that id, if it is still good."""
        session = self._open.get(session_id)
        if session is None or session.ends <= self._clock():
            return None
        return session if self._digest(session.reviewer) == session.code_digest else None

    def end(self, session_id: str) -> None:
        """Log out."""
        self._open.pop(session_id, None)

    def _digest(self, reviewer: str) -> str | None:
        now = self._clock()
        seen, digest = self._codes.get(reviewer, (now, None))
        if not seen < now < seen + self._remembered:
            digest = self._roster.digest(reviewer)
            if digest is None:
                self._codes.pop(reviewer, None)  # who is added is let in at once
            else:
                self._codes[reviewer] = now, digest
        return digest

    def _opened(self, session_id: str, reviewer: str, digest: str, token: str = "") -> Session:
        now = self._clock()
        self._open = {one.session_id: one for one in self._open.values() if one.ends > now}
        session = Session(session_id, reviewer, digest, now + HOURS * 3600, token)
        self._open[session_id] = session
        return session
