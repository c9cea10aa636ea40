"""One table of all that was tried against evalkit in a session, and what came of it; `make stress` ends with it.

``EVALKIT_TABLES=FOLDER`` keeps it there, as ``faults.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_COLUMNS = ("tried", "valid", "refused", "crashes", "losses")


@dataclass
class Table:
    """What was tried, and what came of it.

    ``valid``: it was read or went on as if nothing had been; ``refused``: an error of ours says what was wrong.
    """

    rows: dict[str, Counter[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """A sentence for each crash and each word of a document in an error."""

    def add(self, kind: str, outcome: str, times: int = 1) -> None:
        """So many more of a kind had this outcome."""
        self.rows.setdefault(kind, Counter()).update({"tried": times, outcome: times})

    def take(self, other: Table) -> None:
        """All of another table."""
        for kind, row in other.rows.items():
            self.rows.setdefault(kind, Counter()).update(row)
        self.faults += other.faults

    def __str__(self) -> str:
        """As Markdown."""
        every = [*self.rows.items(), ("**all**", sum(self.rows.values(), Counter()))]
        lines = [f"| input or fault | {' | '.join(_COLUMNS)} |", "|---|" + "---:|" * len(_COLUMNS)]
        return "\n".join(
            lines + [f"| {kind} | {' | '.join(f'{row[one]:,}' for one in _COLUMNS)} |" for kind, row in every]
        )


#: Of this session.
EVERY = Table()


@dataclass
class Tried:
    """How often a fault was tried."""

    times: int = 0


@contextmanager
def trying(kind: str, times: int = 0) -> Iterator[Tried]:
    """A fault, tried as often as is told inside: nothing comes of it, or else the test fails and something is lost."""
    tried = Tried(times)
    try:
        yield tried
    except BaseException:
        EVERY.add(kind, "losses")
        raise
    EVERY.add(kind, "valid", tried.times)
