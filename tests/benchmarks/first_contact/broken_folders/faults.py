"""What the ideas of both halves are made of: the descriptions of a fault, and the means to bring it about."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

#: The cases that the simulated experts leave: name them when the healthy folder is made.
WAITING = (
    *("adjoining_notes", "fabricated_quote", "poor_scan", "quest_genomic", "segment_count"),
    *("scanned", "with_blank_page", "misfiled_page"),
)
READING = ("queue", "report", "show", "export", "audit verify", "open_review")
WRITING = ("run", "review", "claim", "save")
COMMANDS = (*READING, *WRITING)
#: Commands of which only the second halves expect something: ``restore`` lists the cases of a backup that was restored.
STORING = ("backup", "restore")
#: What no command may say in any of these states.
NEVER = (
    *(
        "nothing waits",
        "no cases are waiting",
        "traceback",
        "operationalerror",
        "databaseerror",
        "sqlalchemy",
        "sqlite3.",
    ),
    *("select ", "insert into", "pragma ", "disk i/o error", "errno"),
)
#: Advice that destroys something: allowed only if the database itself is damaged.
DELETE = ("delete the", "delete evalkit.sqlite", "delete it", "remove the file", "remove evalkit.sqlite", "rm ")
DAMAGED = ("damaged", "malformed", "corrupt", "not a database")
LOCKS = {".lock", ".review.lock"}


@dataclass(frozen=True)
class Answer:
    """What a command does in a state: one of the outcomes, with the words of a message if it refuses."""

    outcomes: frozenset[str]
    gist: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def works() -> Answer:
    """Give the answer of the healthy folder."""
    return Answer(frozenset({"works"}))


def repairs(never: tuple[str, ...] = DELETE) -> Answer:
    """Answer as the healthy folder does, and say that the index was rebuilt."""
    return Answer(frozenset({"repairs"}), (), never)


def refuses(*gist: str, never: tuple[str, ...] = (*DELETE, *DAMAGED)) -> Answer:
    """Refuse with the gist and without words that mislead."""
    return Answer(frozenset({"refuses"}), gist, never)


def either(*answers: Answer) -> Answer:
    """Accept several outcomes; the words are those of the answer that has some."""
    return Answer(
        frozenset().union(*(answer.outcomes for answer in answers)),
        next((answer.gist for answer in answers if answer.gist), ()),
        next((answer.never for answer in answers if answer.never), ()),
    )


def expect(reading: Answer, writing: Answer | None = None, **commands: Answer) -> dict[str, Answer]:
    """Expect one answer of all commands that read, one of those that write, and others by name."""
    answers = dict.fromkeys(READING, reading) | dict.fromkeys(WRITING, writing or reading)
    return answers | {name.replace("audit_verify", "audit verify"): answer for name, answer in commands.items()}


def expect_all(answer: Answer, **commands: Answer) -> dict[str, Answer]:
    """Expect one answer of all commands, backups among them, and others by name."""
    return dict.fromkeys(STORING, answer) | expect(answer, **commands)


@dataclass
class Scene:
    """Where and how a command meets the fault."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    is_nobody: bool = False
    strike: Callable[[], None] = lambda: None

    def wrap(self, command: list[str]) -> list[str]:
        """Wrap a command line so that it runs as the fault needs it: user, limits, environment."""
        limits = [f"--{name}={value}" for name, value in self.limits.items()]
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if self.is_nobody else []
        names = [f"{name}={value}" for name, value in self.environment.items()]
        # The environment comes last: a preloaded library is for the command, not for the programs that start it.
        return [*nobody, *(["prlimit", *limits] if limits else []), *(["env", *names] if names else []), *command]


@dataclass(frozen=True)
class BrokenFolder:
    """A state of an output folder after a storage fault, and what a user expects of each command in it."""

    name: str
    family: str
    description: str
    build: Callable[[Path, Path], AbstractContextManager[Scene]]
    expectation: Mapping[str, Answer]
    mend: Callable[[Path, Path], None]
    #: ``root``, ``mounts``, ``immutable``, ``compiler``, ``ext4``.
    needs: tuple[str, ...] = ()
    #: ``before`` a command, after a ``backup`` and before its restore, at a ``claim`` or ``save`` with the case listed or open, or ``beneath`` an open screen.
    moment: str = "before"
    #: Cases that wait beyond those of the healthy folder.
    waiting: int = 0
    is_unchanged: bool = False
    seconds: float = 60.0


class Ideas(list[BrokenFolder]):
    """The ideas of a half; each is a generator that yields a scene, and afterwards takes the cause away."""

    def __call__(
        self,
        name: str,
        family: str,
        description: str,
        expectation: Mapping[str, Answer],
        mend: Callable[[Path, Path], None] = lambda root, workspace: None,
        **others: object,
    ) -> Callable[[Callable[[Path, Path], Iterator[Scene | None]]], None]:
        """Add a generator as an idea."""

        def add(generate: Callable[[Path, Path], Iterator[Scene | None]]) -> None:
            @contextmanager
            def build(root: Path, workspace: Path) -> Iterator[Scene]:
                workspace.mkdir(parents=True, exist_ok=True)
                shutil.copy2(database(root), workspace / "healthy.sqlite")
                steps = generate(root, workspace)
                scene = next(steps)
                try:
                    yield scene or Scene(root)
                finally:  # the cause goes away whatever the harness met
                    next(steps, None)

            self.append(BrokenFolder(name, family, description, build, expectation, mend, **others))

        return add


def find_obstacle(broken: BrokenFolder) -> str | None:
    """Say what this machine lacks for a state, or None."""
    for need in broken.needs:
        if os.geteuid() != 0 and need != "compiler":
            return f"needs {need}, which only root may"
        probe = {
            "mounts": ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"],
            "immutable": ["sh", "-c", "f=$(mktemp -p /var/tmp) && chattr +i $f && chattr -i $f && rm $f"],
            "compiler": ["cc", "--version"],
            "ext4": ["mkfs.ext4", "-V"],
            "root": ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "true"],
        }[need]
        if shutil.which(probe[0]) is None or subprocess.run(probe, capture_output=True, check=False).returncode:
            return f"needs {need}"
    return None


def database(root: Path) -> Path:
    """Name the database of a folder."""
    return root / "evalkit.sqlite"


def remove_database(root: Path) -> None:
    """Remove the database and what SQLite lays beside it."""
    for path in root.glob("evalkit.sqlite*"):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def restore_database(root: Path, workspace: Path) -> None:
    """Put the database of the healthy folder back, as an administrator does with a backup."""
    remove_database(root)
    shutil.copy2(workspace / "healthy.sqlite", database(root))


def break_record(root: Path, workspace: Path, name: str, content: bytes | None = None) -> None:
    """Replace the content of a record, or remove it; ``put_back`` undoes it."""
    path, kept, broken = root / name, workspace / "kept" / name, workspace / "broken" / name
    for place in (kept, broken):
        place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, kept)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
        broken.write_bytes(content)


def put_back(root: Path, workspace: Path) -> None:
    """Put broken records back as from a backup, except those that a command has written anew."""
    for kept in sorted((workspace / "kept").rglob("*.json")):
        name = kept.relative_to(workspace / "kept")
        path, broken = root / name, workspace / "broken" / name
        is_as_broken = path.is_symlink() or (broken.is_file() and path.read_bytes() == broken.read_bytes())
        if is_as_broken or not path.exists():
            path.unlink(missing_ok=True)
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            shutil.copy2(kept, path)


def change_record(path: Path, **values: object) -> bytes:
    """Name the content of a JSON record in which somebody changed values by hand."""
    return json.dumps(json.loads(path.read_bytes()) | values, indent=2).encode()


def list_records(root: Path, folder: str) -> list[str]:
    """List the JSON files of a folder and below it, by their path from the root."""
    return sorted(path.relative_to(root).as_posix() for path in (root / folder).rglob("*.json"))


def change_database(path: Path, *statements: str) -> None:
    """Execute statements and leave a database at rest."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def leave_journal(path: Path, mode: str, *statements: str) -> None:
    """Stop in the middle: the database, with the statements only in its ``-wal``, or half done beside a ``-journal``."""
    suffixes = ("", "-wal", "-shm") if mode == "wal" else ("", "-journal")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA cache_size=2")
        if mode != "wal":
            connection.execute("BEGIN")
        for statement in statements:
            connection.execute(statement)
        copies = {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in suffixes}
        if mode != "wal":
            connection.execute("ROLLBACK")
    for suffix, content in copies.items():
        Path(f"{path}{suffix}").write_bytes(content)


def find_page(path: Path, name: str) -> tuple[int, int]:
    """Find the offset and size of the root page of a table or index."""
    with closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    return (number - 1) * size, size


def overwrite(path: Path, offset: int, content: bytes) -> None:
    """Overwrite bytes in the middle of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def draw_bytes(seed: str, length: int) -> bytes:
    """Draw bytes that mean nothing, the same ones each time."""
    return random.Random(seed).randbytes(length)


def list_waiting(root: Path) -> list[str]:
    """List the cases with a packet and without a review, by name."""
    names = (path.stem.removeprefix("sme_packet_") for path in (root / "sme_packets").glob("*.json"))
    return sorted(name for name in names if not (root / "reviews" / name).exists())


def list_reviewed(root: Path) -> list[str]:
    """List the cases with a review, by name."""
    return sorted(path.name for path in (root / "reviews").iterdir())


def give_to_nobody(root: Path) -> None:
    """Give the folder to the user nobody."""
    for path in (root, *root.rglob("*")):
        os.chown(path, 65534, 65534)


def take_back(root: Path) -> None:
    """Give the folder to the user who runs the harness."""
    for path in (root, *root.rglob("*")):
        os.chown(path, os.geteuid(), os.getegid())


@contextmanager
def mount(*arguments: str | Path) -> Iterator[None]:
    """Mount something; unmount it at the end, the last argument being the place."""
    subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(arguments[-1])], check=True, capture_output=True)


@contextmanager
def move_to_small_disk(root: Path, workspace: Path, options: str = "") -> Iterator[Path]:
    """Move the folder to a disk of its own, with 2 MB of room; at the end bring it back as it is then."""
    disk, size = workspace / "disk", sum(path.stat().st_size + 4096 for path in root.rglob("*")) + (2 << 20)
    disk.mkdir()
    with mount("-t", "tmpfs", "-o", f"size={size},mode=0755{options}", "none", disk):
        shutil.copytree(root, disk / "output", symlinks=True)
        yield disk / "output"
        (disk / "filling").unlink(missing_ok=True)
        shutil.rmtree(root)
        shutil.copytree(disk / "output", root, symlinks=True)


@contextmanager
def move_to_failing_disk(root: Path, workspace: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """Move the folder to a disk of its own; yield it, and what makes the disk read-only as an error of the disk does.

    Files that are open for writing stay open, which no other remount allows.
    """
    disk, image = workspace / "disk", workspace / "disk.ext4"
    disk.mkdir()
    image.touch()
    os.truncate(image, sum(path.stat().st_size + 4096 for path in root.rglob("*")) + (32 << 20))
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)

    @cache  # each command of a state strikes, and a disk that failed cannot fail again
    def fail() -> None:
        subprocess.run(["mount", "-o", "remount,abort", str(disk)], check=True)

    with mount("-o", "loop", image, disk):
        disk.chmod(0o755)
        shutil.copytree(root, disk / "output", symlinks=True)
        yield disk / "output", fail
        shutil.rmtree(root)
        shutil.copytree(disk / "output", root, symlinks=True)


def fill(disk: Path, spare: int) -> None:
    """Fill a disk up to so many spare bytes."""
    with (disk / "filling").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() // 4096 * 4096 - spare))


@contextmanager
def hold(script: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run a Python script in a process of its own from its line ``ready`` on, and end it at last."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the process that holds the folder did not begin")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


HOLD_DATABASE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    connection.execute(statement).fetchone()
print("ready", flush=True)
sys.stdin.read()
"""


def compile_library(workspace: Path, source: str) -> Path:
    """Compile a library that stands between a program and the system (LD_PRELOAD)."""
    (workspace / "between.c").write_text(source)
    library = workspace / "between.so"
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(workspace / "between.c"), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    library.chmod(0o755)
    return library
