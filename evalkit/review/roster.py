"""The reviewers: names, roles, and SHA-256 of their login codes.

A code has 79 random bits, so that its plain hash cannot be turned back. It is shown once, when it is made, and stored
nowhere; a lost code is replaced by adding the reviewer again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from evalkit.core.records import StrictRecord
from evalkit.errors import NotFound, UsageError
from evalkit.review.permissions import Permissions, ReviewerRole
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.store import ROSTER_FILE, OutputFolder, parse_stored_record

SCHEMA_VERSION = 2
"""With roles; without any it is written as 1, so that only an evalkit that would not heed them is kept out."""

_NAME_PATTERN = re.compile(r"[A-Za-z0-9._-]{1,40}")
_CODE_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
"""Without 0 and o, 1, i and l: codes are read from paper and over the telephone."""
_CODE_GROUPS, _GROUP_LENGTH = 4, 4

LetterPicker = Callable[[Sequence[str]], str]


class _RosterContent(StrictRecord):
    schema_version: int = SCHEMA_VERSION
    reviewers: dict[str, Annotated[str, Field(pattern=r"^[\x00-\x7f]*$")]]
    """SHA-256 (hex) of the codes, by name."""
    roles: dict[str, ReviewerRole] = {}
    """Of those who are no experts; of those who were removed, too."""


class ReviewerRoster:
    """The reviewers of one output folder.

    Every call reads the file: a new code is good without a restart.
    """

    def __init__(self, output_folder: OutputFolder) -> None:
        self._output_folder = output_folder

    def list_reviewers(self) -> list[str]:
        """List all reviewers, sorted."""
        return sorted(self._read_roster().reviewers)

    def list_deciding_reviewers(self) -> list[str]:
        """List the reviewers who may answer cases: all but analysts, sorted."""
        return [name for name, role in self.read_roles().items() if role != "analyst"]

    def read_roles(self) -> dict[str, ReviewerRole]:
        """Read every reviewer's role, by name, sorted."""
        roster = self._read_roster()
        return {name: roster.roles.get(name, "expert") for name in sorted(roster.reviewers)}

    def get_permissions(self, reviewer: str) -> Permissions:
        """Get a reviewer's permissions.

        One who never was on the roster, as in a notebook, is an expert.
        """
        roster = self._read_roster()
        adjudicators = (
            other_name for other_name in sorted(roster.reviewers) if roster.roles.get(other_name) == "adjudicator"
        )
        return Permissions(roster.roles.get(reviewer, "expert"), tuple(adjudicators))

    def set_role(self, name: str, role: ReviewerRole) -> None:
        """Set a reviewer's role, at once; the code stays valid.

        UsageError if there is no such reviewer.
        """
        with hold_case_write_lock(self._output_folder):
            roster = self._read_roster_requiring_reviewer(name)
            self._write_roster(roster.reviewers, {**roster.roles, name: role})

    def remove_reviewer(self, name: str) -> None:
        """Remove a reviewer: their code and logins end.

        UsageError if there is no such reviewer. Their reviews stay theirs, and so do name and role: anyone
        added under that name again is taken for them.
        """
        with hold_case_write_lock(self._output_folder):
            roster = self._read_roster_requiring_reviewer(name)
            # An analyst whose page is still open must not become an expert for its last seconds.
            self._write_roster(
                {other_name: digest for other_name, digest in roster.reviewers.items() if other_name != name},
                roster.roles,
            )

    def add_reviewer_or_replace_code(
        self, reviewer: str, pick_letter: LetterPicker = secrets.choice, *, role: ReviewerRole | None = None
    ) -> str:
        """Create a code for a new reviewer, or replace the code of one who exists.

        ``role``, if it is not None, is theirs from now on; else they keep theirs, and a new reviewer is an expert.
        UsageError for a name that is not 1–40 letters, digits, ``.``, ``_`` or ``-``.
        """
        if not _NAME_PATTERN.fullmatch(reviewer):
            raise UsageError(
                f"{reviewer[:60]!r} cannot be a reviewer's name",
                code="REVIEWER-NAME",
                remedy="A name is 1 to 40 letters, digits, '.', '_' or '-'.",
            )
        code = "-".join("".join(pick_letter(_CODE_LETTERS) for _ in range(_GROUP_LENGTH)) for _ in range(_CODE_GROUPS))
        with hold_case_write_lock(self._output_folder):
            roster = self._read_roster()
            roles = roster.roles if role is None else {**roster.roles, reviewer: role}
            self._write_roster({**roster.reviewers, reviewer: hash_login_code(code)}, roles)
        return code

    def find_reviewer_by_code(self, code: str) -> str | None:
        """Find whose code this is, in constant time.

        Capitals, blanks and hyphens do not matter.
        """
        typed_digest, reviewer = hash_login_code(code), None
        for name, digest in self._read_roster().reviewers.items():
            if hmac.compare_digest(typed_digest, digest):
                reviewer = name
        return reviewer

    def get_code_digest(self, reviewer: str) -> str | None:
        """Get the SHA-256 of the reviewer's present code; None for an unknown one."""
        return self._read_roster().reviewers.get(reviewer)

    def _read_roster_requiring_reviewer(self, reviewer: str) -> _RosterContent:
        roster = self._read_roster()
        if reviewer not in roster.reviewers:
            raise UsageError(
                f"{reviewer[:60]!r} is not a reviewer here",
                code="REVIEWER-UNKNOWN",
                remedy="Run `evalkit reviewers list`, or add them: `evalkit reviewers add NAME`.",
            )
        return roster

    def _read_roster(self) -> _RosterContent:
        try:
            stored = self._output_folder.read_json(ROSTER_FILE, max_schema_version=SCHEMA_VERSION)
        except NotFound:
            return _RosterContent(reviewers={})
        return parse_stored_record(_RosterContent, stored, ROSTER_FILE, "Restore it from a backup.")

    def _write_roster(self, digests: Mapping[str, str], roles: Mapping[str, ReviewerRole]) -> None:
        other_roles = {name: role for name, role in roles.items() if role != "expert"}
        header = {"schema_version": SCHEMA_VERSION, "roles": other_roles} if other_roles else {"schema_version": 1}
        self._output_folder.write_json(ROSTER_FILE, {**header, "reviewers": dict(digests)})


def hash_login_code(code: str) -> str:
    """Hash a typed code (SHA-256, hex). Capitals, blanks and hyphens do not matter."""
    return hashlib.sha256("".join(filter(str.isalnum, code.lower())).encode()).hexdigest()
