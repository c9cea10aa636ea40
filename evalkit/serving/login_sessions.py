"""Login sessions in memory, and rate limit for wrong login codes.

A logout, new code or restart ends a session at once.
"""

import math
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from evalkit.review.roster import ReviewerRoster, hash_login_code

#: Hours until a login expires: a working day.
LOGIN_HOURS = 12


@dataclass(frozen=True)
class LoginSession:
    """Login session of one reviewer."""

    session_id: str
    """Random id, which the browser holds in a signed cookie."""
    reviewer: str
    code_digest: str
    """Hash of the reviewer's code at login; the session ends if the roster's code changes or is removed."""
    expires_at: float
    """End of the session, in seconds of the sessions' clock (Unix time by default)."""
    hub_token: str = field(default="", repr=False)
    """OAuth token by which JupyterHub confirms the login; empty for logins by code or proxy."""


class LoginSessions:
    """All login sessions of one server, by session id."""

    def __init__(self, roster: ReviewerRoster, clock: Callable[[], float] = time.time) -> None:
        """Create an empty set of sessions for the reviewers of a roster."""
        self._roster = roster
        self._clock = clock
        self._session_by_id: dict[str, LoginSession] = {}
        self._proxied_session_ids: dict[str, str] = {}

    def log_in_by_code(self, code: str) -> LoginSession | None:
        """Create a session for the reviewer with this code; None for an unknown code."""
        reviewer = self._roster.find_reviewer_by_code(code)
        return self._add_session(reviewer, hash_login_code(code)) if reviewer is not None else None

    def log_in_or_renew_by_proxy(self, reviewer: str) -> LoginSession | None:
        """Create or renew the session of a reviewer named by a trusted proxy.

        A reviewer has one session for all browsers. None if the name is not in the roster.
        """
        stored_digest = self._roster.read_code_digests().get(reviewer)
        if stored_digest is None:
            return None
        existing_session = self.find_valid_session(self._proxied_session_ids.get(reviewer, ""))
        session = self._add_session(
            reviewer, stored_digest, session_id=existing_session.session_id if existing_session else ""
        )
        self._proxied_session_ids[reviewer] = session.session_id
        return session

    def log_in_by_hub(self, reviewer: str, hub_token: str) -> LoginSession | None:
        """Create a session for a reviewer named by JupyterHub; None if not in the roster."""
        stored_digest = self._roster.read_code_digests().get(reviewer)
        return None if stored_digest is None else self._add_session(reviewer, stored_digest, hub_token=hub_token)

    def find_valid_session(self, session_id: str) -> LoginSession | None:
        """Return the session with this id; None if unknown, expired or code changed."""
        session = self._session_by_id.get(session_id)
        if session is None or session.expires_at <= self._clock():
            return None
        return session if self._roster.read_code_digests().get(session.reviewer) == session.code_digest else None

    def list_ended_sessions(self, session_ids: Iterable[str]) -> set[str]:
        """Return the given session ids that are no longer valid."""
        return {session_id for session_id in set(session_ids) if self.find_valid_session(session_id) is None}

    def end_session(self, session_id: str) -> None:
        """Delete the session with this id, if it exists."""
        self._session_by_id.pop(session_id, None)

    def _add_session(
        self, reviewer: str, stored_digest: str, *, session_id: str = "", hub_token: str = ""
    ) -> LoginSession:
        now = self._clock()
        self._session_by_id = {
            open_session.session_id: open_session
            for open_session in self._session_by_id.values()
            if open_session.expires_at > now
        }
        session = LoginSession(
            session_id or secrets.token_hex(32), reviewer, stored_digest, now + LOGIN_HOURS * 3600, hub_token
        )
        self._session_by_id[session.session_id] = session
        return session


#: After this many wrong codes from an address within the window, further wrong codes are refused with 429.
MAX_FAILURES = 30
WINDOW_SECONDS = 60.0
#: Maximum number of addresses to remember; the oldest are forgotten.
_MAX_ADDRESSES = 10_000


class LoginThrottle:
    """Times of wrong login codes by client address, in a sliding window.

    A right code is never refused, however many wrong ones come from the same address: codes have 79 random bits, which
    nobody guesses, and a pause would let anyone keep experts out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures_by_address: dict[str, deque[float]] = {}

    def get_seconds_to_wait(self, address: str) -> int:
        """Return the seconds until this address may try a login code again."""
        failures = self._failures_by_address.get(address, deque())
        if len(failures) < MAX_FAILURES:
            return 0
        return max(0, math.ceil(failures[0] + WINDOW_SECONDS - self._clock()))

    def record_failure(self, address: str) -> None:
        """Record that this address sent a wrong code now."""
        failures = self._failures_by_address.pop(address, None) or deque(maxlen=MAX_FAILURES)
        failures.append(self._clock())
        self._failures_by_address[address] = failures  # at the end: the oldest addresses come first
        if len(self._failures_by_address) > _MAX_ADDRESSES:
            del self._failures_by_address[next(iter(self._failures_by_address))]
