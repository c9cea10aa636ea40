"""The error tree, grouped by what the caller can do next.

::

    EvalkitError
    ├── UsageError          change the call, an option or a setting; nothing was done (exit status 2)
    ├── DocumentError       fix or replace this document; the others are processed (exit status 1)
    ├── ModelError          the model gave no usable answer; the case goes to a person
    ├── ExecutorError       the reading machines are unreachable; start again later, finished documents are kept
    ├── StoreError          fix the output folder (space, rights, a newer schema), then start again
    │   └── NotFound        nothing of that name is stored
    └── ReviewRefused       the rules forbid the review; change it and save again
        ├── ReviewConflict  somebody else has saved since; load the case again
        └── CaseTaken       the case is open elsewhere; take it over on purpose, or open another

Every message is one line: what is wrong and which value; ``remedy`` says what to do. Messages may name files, but never
quote a document's text.
"""


class EvalkitError(Exception):
    """Base of all errors that evalkit raises on purpose.

    ``code`` is stable, so that programs may rely on it; ``remedy`` is a sentence for the person who reads it.
    """

    def __init__(self, message: str, *, code: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (the reading pool), and the default would lose keyword arguments.
        return _rebuild_error, (type(self), self.message, self.code, self.remedy)


def _rebuild_error(error_class: type[EvalkitError], message: str, code: str, remedy: str) -> EvalkitError:
    return error_class(message, code=code, remedy=remedy)


class UsageError(EvalkitError):
    """The call, an option, a setting or an input file next to the documents is wrong."""


class DocumentError(EvalkitError):
    """One document cannot be read; the others are not affected."""


class ModelError(EvalkitError):
    """A model could not be asked, or gave no usable answer."""


class ExecutorError(EvalkitError):
    """The machines that read documents cannot be reached; finished documents are kept."""


class StoreError(EvalkitError):
    """The output folder cannot be read or written."""


class NotFound(StoreError):
    """Nothing of that name is stored."""


class ReviewRefused(EvalkitError):
    """A review would put something into the ground truth that the rules forbid."""


class ReviewConflict(ReviewRefused):
    """Another review was saved since this one was begun."""


class CaseTaken(ReviewRefused):
    """The case is open elsewhere, with another reviewer or in another tab.

    ``holder``: the reviewer who has it open. ``since``: when it was opened (ISO 8601, UTC). ``same_reviewer``: the holder
    is the reviewer who asks. The message's time is UTC; screens show ``since`` in local time.
    """

    def __init__(self, holder: str, since: str, same_reviewer: bool) -> None:
        super().__init__(
            f"open by {holder} since {since[11:16]}",
            code="REVIEW-CASE-TAKEN",
            remedy="Take it over on purpose, or open another case.",
        )
        self.holder = holder
        self.since = since
        self.same_reviewer = same_reviewer

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.holder, self.since, self.same_reviewer)
