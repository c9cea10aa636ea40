"""Who may review: names, roles, and SHA-256 of the codes that they log in with.

A code has 79 random bits, so that its plain hash cannot be turned back. It is shown once, when it is made, and stored
nowhere; a lost code is replaced by adding the reviewer again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, get_args

from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.review.lock import writing
from evalkit.review.roles import Role, Standing
from evalkit.store import ROSTER, Files

SCHEMA_VERSION = 2
"""With roles; without any it is written as 1, so that only an evalkit that would not heed them is kept out."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
"""Without 0 and o, 1, i and l: codes are read from paper and over the telephone."""
_GROUPS, _GROUP = 4, 4

Pick = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class _Stored:
    digests: dict[str, str]
    roles: dict[str, Role]
    """Of those who are no experts; of those who were removed, too."""


class Roster:
    """The reviewers of one output folder. Every call reads the file: a new code is good without a restart."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def names(self) -> list[str]:
        """The reviewers there are, sorted."""
        return sorted(self._read().digests)

    def deciding(self) -> list[str]:
        """The reviewers who may answer cases: all but analysts, sorted."""
        return [name for name, role in self.roles().items() if role != "analyst"]

    def roles(self) -> dict[str, Role]:
        """Every reviewer's role, by name, sorted."""
        found = self._read()
        return {name: found.roles.get(name, "expert") for name in sorted(found.digests)}

    def standing(self, name: str) -> Standing:
        """What that reviewer may do; one who never was on the roster, as in a notebook, is an expert."""
        found = self._read()
        adjudicators = (one for one in sorted(found.digests) if found.roles.get(one) == "adjudicator")
        return Standing(found.roles.get(name, "expert"), tuple(adjudicators))

    def appoint(self, name: str, role: Role) -> None:
        """Give a reviewer another role, at once; the code stays good. UsageError where there is no such reviewer."""
        with writing(self._files):
            found = self._with(name)
            self._write(found.digests, {**found.roles, name: role})

    def remove(self, name: str) -> None:
        """Take a reviewer off the roster: their code and logins end. What they have reviewed stays theirs, and so do the
        name and the role: who is added under it again is taken for them. UsageError where there is no such reviewer.
        """
        with writing(self._files):
            found = self._with(name)
            # An analyst whose page is still open must not become an expert for its last seconds.
            self._write({one: digest for one, digest in found.digests.items() if one != name}, found.roles)

    def add(self, name: str, pick: Pick = secrets.choice, *, role: Role | None = None) -> str:
        """A new code for a reviewer, who may be new; the code given before is no longer good. ``role``, if it is given,
        is theirs from now on; else they keep what they have, and who is new is an expert. UsageError for a name that is
        not 1–40 letters, digits, ``.``, ``_`` or ``-``.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name[:60]!r} cannot be a reviewer's name",
                code="REVIEWER-NAME",
                remedy="A name is 1 to 40 letters, digits, '.', '_' or '-'.",
            )
        code = "-".join("".join(pick(_LETTERS) for _ in range(_GROUP)) for _ in range(_GROUPS))
        with writing(self._files):
            found = self._read()
            roles = found.roles if role is None else {**found.roles, name: role}
            self._write({**found.digests, name: code_digest(code)}, roles)
        return code

    def check(self, code: str) -> str | None:
        """Whose code this is. Capitals, blanks and hyphens do not matter. Takes equally long for right and wrong."""
        given, found = code_digest(code), None
        for name, digest in self._read().digests.items():
            if hmac.compare_digest(given, digest):
                found = name
        return found

    def digest(self, name: str) -> str | None:
        """The SHA-256 of the reviewer's present code: it changes when the code is replaced."""
        return self._read().digests.get(name)

    def _with(self, name: str) -> _Stored:
        found = self._read()
        if name not in found.digests:
            raise UsageError(
                f"{name[:60]!r} is not a reviewer here",
                code="REVIEWER-UNKNOWN",
                remedy="Run `evalkit reviewers list`, or add them: `evalkit reviewers add NAME`.",
            )
        return found

    def _read(self) -> _Stored:
        try:
            stored = self._files.read(ROSTER, schema_version=SCHEMA_VERSION)
        except NotFound:
            return _Stored({}, {})
        reviewers, roles = stored.get("reviewers"), stored.get("roles", {})
        if not _is_of(reviewers, str.isascii) or not _is_of(roles, get_args(Role).__contains__):
            raise StoreError(f"{ROSTER} is not a roster", code="STORE-TORN", remedy="Restore it from a backup.")
        return _Stored(dict(reviewers), dict(roles))

    def _write(self, digests: Mapping[str, str], roles: Mapping[str, Role]) -> None:
        named = {name: role for name, role in roles.items() if role != "expert"}
        said = {"schema_version": SCHEMA_VERSION, "roles": named} if named else {"schema_version": 1}
        self._files.write(ROSTER, {**said, "reviewers": dict(digests)})


def _is_of(value: object, is_good: Callable[[str], bool]) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and all(isinstance(one, str) and is_good(one) for one in value.values())


def code_digest(code: str) -> str:
    """The SHA-256 of a code as it is typed. Capitals, blanks and hyphens do not matter."""
    return hashlib.sha256("".join(filter(str.isalnum, code.lower())).encode()).hexdigest()
