"""The error tree, grouped by what the caller can do next.

::

    EvalkitError
    ├── UsageError          change the call, an option or a setting; nothing was done (exit status 2)
    │   └── ModelSetupError a language model refuses the key, its name or its parameters
    ├── DocumentError       fix or replace this document; the others are processed (exit status 1)
    ├── ModelError          a language model gave no usable answer; a person decides the document
    ├── RunStopped          no document is at fault, but the run cannot go on; start again later, finished documents are kept
    ├── ExecutorError       the reading machines are unreachable; start again later, finished documents are kept
    ├── StoreError          fix the output folder (space, rights, a newer schema), then start again
    │   └── NotFound        the output folder has no document, case or file of this name (exit status 2)
    └── ReviewRefused       the rules forbid this review; correct the review and save it again
        ├── ReviewConflict  somebody else saved a review of the case meanwhile; load the case again
        └── CaseTaken       the case is open in another session; take the case over, or open another case

Every message is one line: what is wrong and which value; ``remedy`` says what to do. Messages may name files, but never
quote a document's text.
"""

import errno


class EvalkitError(Exception):
    """Base of all errors that evalkit raises on purpose.

    ``code`` identifies the kind of error and never changes, so that programs may test for it; ``remedy`` is a sentence
    that tells the reader what to do.
    """

    def __init__(self, message: str, *, code: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}"

    def _render_traceback_(self) -> list[str]:
        # IPython prints these lines instead of a traceback. What is wrong is in them; where it was noticed helps nobody.
        return [f"{type(self).__name__}: {self.message}", f"What to do: {self.remedy}", f"Code: {self.code}"]

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (the reading pool), and the default would lose keyword arguments.
        return _rebuild_error, (type(self), self.message, self.code, self.remedy)


def _rebuild_error(error_class: type[EvalkitError], message: str, code: str, remedy: str) -> EvalkitError:
    return error_class(message, code=code, remedy=remedy)


class UsageError(EvalkitError):
    """The call, an option, a setting or an input file next to the documents is wrong."""


class ModelSetupError(UsageError):
    """A language model refuses the key, its name or every request of a role."""


class DocumentError(EvalkitError):
    """One document cannot be read; the run continues with the other documents."""


class ModelError(EvalkitError):
    """A model could not be asked, or gave no usable answer."""


class RunStopped(EvalkitError):
    """A model's service is down or refuses every call, or the run's budget is spent.

    No document is at fault and none is escalated; finished documents are kept.
    """


class ExecutorError(EvalkitError):
    """The machines that read PDFs are unreachable; finished documents are kept."""


class StoreError(EvalkitError):
    """The output folder cannot be read or written."""


class NotFound(StoreError):
    """The output folder has no document, case or file of the requested name."""


class ReviewRefused(EvalkitError):
    """A review was not saved, because the rules forbid its content or its reviewer."""


class ReviewConflict(ReviewRefused):
    """Somebody else saved a review of the case while this review was being written."""


class CaseTaken(ReviewRefused):
    """The case is open in another session: another reviewer's, or another tab.

    ``holder``: the reviewer who has it open. ``since``: when it was opened (ISO 8601, UTC). ``same_reviewer``: the
    holder is the reviewer who tried to open the case. The message gives the time in UTC; screens show ``since`` in
    local time.
    """

    def __init__(self, holder: str, since: str, same_reviewer: bool) -> None:
        super().__init__(
            f"open {'in another of your tabs' if same_reviewer else f'by {holder}'} since {since[11:16]}",
            code="REVIEW-CASE-TAKEN",
            remedy="Take the case over if you are sure, or open another case.",
        )
        self.holder = holder
        self.since = since
        self.same_reviewer = same_reviewer

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.holder, self.since, self.same_reviewer)


def is_disk_full(error: OSError) -> bool:
    """Return True if the disk, or this user's quota of it, has no room left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def choose_disk_remedy(error: OSError, remedy: str) -> str:
    """Return ``remedy``, or what helps if the disk is full."""
    full_remedy = "Free some disk space and run the command again: what was saved before is kept."
    return full_remedy if is_disk_full(error) else remedy
