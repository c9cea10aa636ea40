"""Who may review: names, and SHA-256 of the codes that they log in with.

A code has 79 random bits, so that its plain hash cannot be turned back. It is shown once, when it is made, and stored
nowhere; a lost code is replaced by adding the reviewer again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence

from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.review.lock import writing
from evalkit.store import Files

ROSTER = "reviewers.json"
"""Where the roster lies in the output folder."""

SCHEMA_VERSION = 1

_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
"""Without 0 and o, 1, i and l: codes are read from paper and over the telephone."""
_GROUPS, _GROUP = 4, 4

Pick = Callable[[Sequence[str]], str]


class Roster:
    """The reviewers of one output folder. Every call reads the file: a new code is good without a restart."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def names(self) -> list[str]:
        """The reviewers there are, sorted."""
        return sorted(self._digests())

    def add(self, name: str, pick: Pick = secrets.choice) -> str:
        """A new code for a reviewer, who may be new; the code given before is no longer good. UsageError for a name
        that is not 1–40 letters, digits, ``.``, ``_`` or ``-``.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name[:60]!r} cannot be a reviewer's name",
                code="REVIEWER-NAME",
                remedy="A name is 1 to 40 letters, digits, '.', '_' or '-'.",
            )
        code = "-".join("".join(pick(_LETTERS) for _ in range(_GROUP)) for _ in range(_GROUPS))
        with writing(self._files):
            reviewers = {**self._digests(), name: _digest(code)}
            self._files.write(ROSTER, {"schema_version": SCHEMA_VERSION, "reviewers": reviewers})
        return code

    def check(self, code: str) -> str | None:
        """Whose code this is. Capitals, blanks and hyphens do not matter. Takes equally long for right and wrong."""
        given, found = _digest(code), None
        for name, digest in self._digests().items():
            if hmac.compare_digest(given, digest):
                found = name
        return found

    def digest(self, name: str) -> str | None:
        """The SHA-256 of the reviewer's present code: it changes when the code is replaced."""
        return self._digests().get(name)

    def _digests(self) -> dict[str, str]:
        try:
            reviewers = self._files.read(ROSTER, schema_version=SCHEMA_VERSION).get("reviewers")
        except NotFound:
            return {}
        if not isinstance(reviewers, dict) or not all(
            isinstance(digest, str) and digest.isascii() for digest in reviewers.values()
        ):
            raise StoreError(f"{ROSTER} is not a roster", code="STORE-TORN", remedy="Restore it from a backup.")
        return reviewers


def _digest(code: str) -> str:
    return hashlib.sha256("".join(filter(str.isalnum, code.lower())).encode()).hexdigest()
