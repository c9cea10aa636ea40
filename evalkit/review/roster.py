"""The roster of reviewers: names, roles, and SHA-256 hashes of their login codes.

A code has 79 random bits, so that it cannot be recovered from its unsalted hash. The code is shown once, when it is
created, and is stored nowhere; a lost code is replaced by adding the reviewer again.
"""

import hashlib
import hmac
import math
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args

from pydantic import Field

from evalkit.core.records import StrictRecord
from evalkit.errors import NotFound, UsageError
from evalkit.review.packet import ReviewTask
from evalkit.review.permissions import Permissions, ReviewerRole
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.store import ROSTER_FILE, OutputFolder, parse_stored_record

#: Version of a roster with roles or tasks. A roster without them is written as version 1, so that older versions of
#: evalkit, which would ignore them, refuse only rosters that have some.
SCHEMA_VERSION = 2

_NAME_PATTERN = re.compile(r"[A-Za-z0-9._-]{1,40}")
#: The characters of login codes; 0, o, 1, i and l are left out, because they are confused on paper and on the telephone.
_CODE_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_CODE_GROUPS, _GROUP_LENGTH = 4, 4

LetterPicker = Callable[[Sequence[str]], str]


class _RosterContent(StrictRecord):
    schema_version: int = SCHEMA_VERSION
    reviewers: dict[str, Annotated[str, Field(pattern=r"^[\x00-\x7f]*$")]]
    """SHA-256 (hex) of each reviewer's login code, by name."""
    roles: dict[str, ReviewerRole] = {}
    """Roles other than expert, by name, including those of removed reviewers."""
    tasks: dict[str, tuple[ReviewTask, ...]] = {}
    """The tasks of reviewers who have only some, by name, including those of removed reviewers."""


class ReviewerRoster:
    """Roster file of one output folder.

    Every call reads the file anew, so that a new code is valid without a restart of the server; with ``cache_seconds``,
    code hashes are read at most that often.
    """

    def __init__(
        self, output_folder: OutputFolder, *, cache_seconds: float = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._output_folder = output_folder
        self._cache_seconds, self._clock = cache_seconds, clock
        self._cached_digests: Mapping[str, str] = {}
        self._cached_until = -math.inf

    def list_reviewers(self) -> list[str]:
        """List the names of all reviewers, sorted."""
        return sorted(self._read_roster().reviewers)

    def list_deciding_reviewers(self) -> list[str]:
        """List the names of all reviewers who may decide cases (all but analysts), sorted."""
        return [name for name, role in self.read_roles().items() if role != "analyst"]

    def read_roles(self) -> dict[str, ReviewerRole]:
        """Read the role of each reviewer, by name, sorted by name."""
        roster = self._read_roster()
        return {name: roster.roles.get(name, "expert") for name in sorted(roster.reviewers)}

    def get_permissions(self, reviewer: str) -> Permissions:
        """Get the permissions that follow from a reviewer's role and tasks.

        A name that was never on the roster, for example of a notebook's user, has the role expert.
        """
        roster = self._read_roster()
        adjudicators = (
            other_name for other_name in sorted(roster.reviewers) if roster.roles.get(other_name) == "adjudicator"
        )
        return Permissions(roster.roles.get(reviewer, "expert"), tuple(adjudicators), roster.tasks.get(reviewer, ()))

    def set_role(self, name: str, role: ReviewerRole) -> None:
        """Change a reviewer's role, effective immediately; the login code stays valid.

        UsageError if there is no such reviewer.
        """
        with hold_case_write_lock(self._output_folder):
            roster = self._read_roster_requiring_reviewer(name)
            self._write_roster(roster, roles={**roster.roles, name: role})

    def remove_reviewer(self, name: str) -> None:
        """Remove a reviewer, so that their login code and open logins become invalid.

        Their reviews keep their name, and a role other than expert is kept: a person who is added later under the same name
        is treated as the same reviewer. UsageError if there is no such reviewer.
        """
        with hold_case_write_lock(self._output_folder):
            roster = self._read_roster_requiring_reviewer(name)
            # Roles are kept: a removed analyst whose page is still open must not become an expert.
            self._write_roster(
                roster,
                reviewers={other_name: digest for other_name, digest in roster.reviewers.items() if other_name != name},
            )

    def add_reviewer_or_replace_code(
        self,
        reviewer: str,
        pick_letter: LetterPicker = secrets.choice,
        *,
        role: ReviewerRole | None = None,
        tasks: Sequence[ReviewTask] | None = None,
    ) -> str:
        """Create and return a reviewer's login code; it replaces an earlier code.

        ``role`` is the reviewer's new role; None keeps the role of an existing reviewer, and makes a new reviewer an expert.
        ``tasks`` are the reviewer's new tasks; None keeps those of an existing reviewer, and gives a new reviewer all.
        UsageError if the name is not 1–40 letters, digits, ``.``, ``_`` or ``-``.
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
            self._write_roster(
                roster,
                reviewers={**roster.reviewers, reviewer: hash_login_code(code)},
                roles=roster.roles if role is None else {**roster.roles, reviewer: role},
                tasks=roster.tasks if tasks is None else {**roster.tasks, reviewer: tuple(dict.fromkeys(tasks))},
            )
        return code

    def find_reviewer_by_code(self, code: str) -> str | None:
        """Find the reviewer to whom a typed login code belongs; None for an unknown code.

        Compares in constant time, and ignores case, blanks and hyphens.
        """
        typed_digest, reviewer = hash_login_code(code), None
        for name, digest in self.read_code_digests().items():
            if hmac.compare_digest(typed_digest, digest):
                reviewer = name
        return reviewer

    def read_code_digests(self) -> Mapping[str, str]:
        """Read the SHA-256 (hex) of each reviewer's login code, by the reviewer's name."""
        if self._clock() >= self._cached_until:
            self._cached_digests = self._read_roster().reviewers
            self._cached_until = self._clock() + self._cache_seconds
        return self._cached_digests

    def _read_roster_requiring_reviewer(self, reviewer: str) -> _RosterContent:
        roster = self._read_roster()
        if reviewer not in roster.reviewers:
            raise UsageError(
                f"no reviewer of this output folder is named {reviewer[:60]!r}",
                code="REVIEWER-UNKNOWN",
                remedy="`evalkit reviewers list` prints all names; `evalkit reviewers add NAME` adds one.",
            )
        return roster

    def _read_roster(self) -> _RosterContent:
        try:
            stored = self._output_folder.read_json(ROSTER_FILE, max_schema_version=SCHEMA_VERSION)
        except NotFound:
            return _RosterContent(reviewers={})
        return parse_stored_record(_RosterContent, stored, ROSTER_FILE, "Restore the file from a backup.")

    def _write_roster(self, roster: _RosterContent, **changed_fields: Mapping[str, Any]) -> None:
        fields: dict[str, Any] = {
            "reviewers": roster.reviewers,
            "roles": roster.roles,
            "tasks": roster.tasks,
        } | changed_fields
        limits = {
            "roles": {name: role for name, role in fields["roles"].items() if role != "expert"},
            "tasks": {
                name: tasks for name, tasks in fields["tasks"].items() if set(tasks) != set(get_args(ReviewTask))
            },
        }
        stored_limits = {name: limit for name, limit in limits.items() if limit}
        header = {"schema_version": SCHEMA_VERSION, **stored_limits} if stored_limits else {"schema_version": 1}
        self._output_folder.write_json(ROSTER_FILE, {**header, "reviewers": dict(fields["reviewers"])})


def hash_login_code(code: str) -> str:
    """Compute the SHA-256 (hex) of a login code, ignoring case, blanks and hyphens."""
    return hashlib.sha256("".join(filter(str.isalnum, code.lower())).encode()).hexdigest()
