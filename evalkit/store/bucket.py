"""The JSON files of an output folder in a bucket: S3 and what speaks its protocol, Google Cloud Storage.

An object is put whole or not at all, and who creates one is decided by the store: ``If-None-Match: *`` at S3,
``ifGenerationMatch=0`` at Google. A bucket has no locks; the folder's PostgreSQL database keeps the turns.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import sqlalchemy as sa

from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.extras import installing
from evalkit.store import postgresql
from evalkit.store.database import chosen, unreached
from evalkit.store.files import Files, ended, parts_of
from evalkit.store.names import CREATED_ONCE, PART

if TYPE_CHECKING:
    from fsspec.asyn import AsyncFileSystem

log = logging.getLogger(__name__)

_Held = TypeVar("_Held", sa.Connection, sa.Connection | None)

_SECONDS = 30
"""One request may take so long, all that the client tries again included."""
_ATTEMPTS = 3
_WRITER = "writer"
"""What an object that was created says of who did: whose answer was lost asks again, and must not lose to itself."""


class BucketFiles(Files):
    """The JSON files of one output folder in a bucket. Made by :class:`Files` for a URL.

    What no method here does for a bucket says that it needs a folder on this machine.
    """

    root: str

    @property
    def _folder(self) -> Path:
        raise UsageError(
            f"this needs an output folder on this machine, not {self.root}",
            code="OUTPUT-REMOTE",
            remedy="Copy it here with the provider's own tool, and name the copy with --output.",
        )

    @property
    def _kind(self) -> _Kind:
        return _KINDS[self.root.partition(":")[0]]

    @cached_property
    def _store(self) -> AsyncFileSystem:
        for name in ("fsspec", "s3fs", "gcsfs", "botocore", "aiobotocore"):
            # They log requests and failures with the names of objects, which may be a patient's.
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            return self._kind.opened()
        except ImportError:
            raise UsageError(
                f"{self.root} cannot be read: a package is not installed",
                code="OUTPUT-URL",
                remedy=f"Run {installing(self._kind.extra)}.",
            ) from None
        except Exception as error:  # noqa: BLE001 - there is no one base of all that the clients raise
            raise _failure(self.root, None, error) from None

    @cached_property
    def _turns(self) -> tuple[str, str]:
        """The folder's schema, and the database it is in."""
        url = chosen(self.root, self._database)
        assert url is not None  # noqa: S101 - `chosen` refuses a bucket without
        try:
            return postgresql.joined(self.root, url), url
        except sa.exc.SQLAlchemyError as error:
            raise unreached(url, error) from None

    def is_there(self, folder: str | None = None) -> bool:
        """Whether there is anything in the output folder, or a folder of that name in it. StoreError."""
        listed = self._listed(None)
        return bool(listed) if folder is None else listed.get(folder) == "directory"

    def _in_root(self) -> set[str]:
        itself = self.root.rpartition("/")[2]  # who makes a "folder" at a bucket's console makes an object of its name
        return set(self._listed(None)) - {itself}

    def exists(self, name: str) -> bool:
        """Whether there is such an object. StoreError."""
        try:
            self._asked(name, self._kind.looks)
        except FileNotFoundError:
            return False
        return True

    def names(self, folder: str) -> list[str]:
        """The JSON files of a folder, sorted, as names that ``read`` takes. StoreError."""
        listed = self._listed(folder).items()
        ours = (name for name, kind in listed if kind == "file" and name.endswith(".json") and PART.fullmatch(name))
        return sorted(f"{folder}/{name}" for name in ours)

    def strays(self, folder: str) -> list[str]:
        """What lies in a folder under names that are none of evalkit's, sorted: it is passed over. StoreError."""
        # Who makes "folders" at a bucket makes objects of no name.
        return sorted(name for name in self._listed(folder) if name and not PART.fullmatch(name))

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder, sorted, by their bare names. StoreError."""
        listed = self._listed(folder).items()
        return sorted(name for name, kind in listed if kind == "directory" and PART.fullmatch(name))

    def raw(self, name: str, at_most: int | None = None) -> bytes:
        """The bytes of an object, or so many of them as there are. NotFound, or StoreError where it cannot be read."""
        try:
            return bytes(self._asked(name, "_cat_file", end=at_most))
        except FileNotFoundError:
            raise NotFound(f"{name} is not there", code="STORE-NOT-FOUND", remedy="Run the document first.") from None
        except StoreError:
            if at_most is None:
                raise
            return self.raw(name)[:at_most]  # of an empty object no part can be asked for

    def remove(self, name: str) -> bool:
        """Remove an object; whether there was one. StoreError."""
        if not self.exists(name):
            return False
        with suppress(FileNotFoundError):
            self._asked(name, "_rm_file")
        return True

    def remove_folder(self, name: str) -> list[str]:
        """Remove all objects in a folder and in those inside; their names. StoreError."""
        inside = self._below(name)
        for one in inside:
            with suppress(FileNotFoundError):
                self._asked_at(one, "_rm_file")
        return inside

    def contents(self, folder: str) -> Iterator[tuple[str, bytes]]:
        """Every object in a folder and in those inside, by name: its name, whatever that is, and its bytes. StoreError."""
        for one in self._below(folder):
            yield one, bytes(self._asked_at(one, "_cat_file"))

    def written_at(self, name: str) -> float | None:
        """When an object was written, by the store's clock (seconds since 1970); None where there is none. StoreError."""
        try:
            written: datetime = self._asked(name, "_info")[self._kind.modified]
        except FileNotFoundError:
            return None
        return written.timestamp()

    def links(self) -> list[str]:
        """None: an object is no link."""
        return []

    def sweep(self, older_than: float) -> None:
        """Nothing: an object has its name when it is there."""

    @contextmanager
    def run_lock(self) -> Iterator[None]:
        """Hold the folder for one run. UsageError if another run holds it, or if the store lets two create one object."""
        held = self._taken(postgresql.run_of)
        if held is None:
            raise UsageError(
                f"another run is writing to {self.root}",
                code="OUTPUT-BUSY",
                remedy="Wait until it has ended, or choose another folder with --output.",
            )
        try:
            self._check_created_once()
            yield
        finally:
            _let_go(held, "during the run: see that no other run wrote to the output folder meanwhile")

    @contextmanager
    def turn(self, about: str | None = None) -> Iterator[None]:
        """Wait for the turn to change several files: those ``about`` one thing, or any, where nothing is named.

        Not reentrant; see :func:`evalkit.review.lock.writing`. StoreError.
        """
        held = self._taken(partial(postgresql.turn_of, about=about))
        try:
            yield
        finally:
            _let_go(
                held, "while files were written: run `evalkit reindex`, which makes again what follows from reviews"
            )

    def _taken(self, take: Callable[[str, str], _Held]) -> _Held:
        name, url = self._turns
        try:
            return take(name, url)
        except sa.exc.SQLAlchemyError as error:
            if "LockNotAvailable" in _signs(error):
                raise StoreError(
                    f"others have been writing to {self.root} all the time",
                    code="STORE-BUSY",
                    remedy="Nothing was saved: try again, and see that no evalkit hangs.",
                ) from None
            raise unreached(url, error) from None

    def _put(self, name: str, text: bytes) -> None:
        try:
            self._asked(name, "_pipe_file", ended(text))
        except FileNotFoundError as error:
            raise _failure(self.root, name, error, is_new=True) from None

    def _create(self, name: str, text: bytes) -> bool:
        writer = secrets.token_hex(16)
        said = {self._kind.metadata: {_WRITER: writer}}
        for _ in range(_ATTEMPTS):
            try:
                self._asked(name, "_pipe_file", ended(text), mode="create", **said)
            except FileExistsError:
                return self._writer(name) == writer
            except FileNotFoundError as error:
                raise _failure(self.root, name, error, is_new=True) from None
            except _Contended:
                continue
            return True
        raise _failure(self.root, name, TimeoutError())

    def _writer(self, name: str) -> str | None:
        try:
            found = self._asked(name, "_getxattr", _WRITER)
        except (FileNotFoundError, KeyError):
            return None
        return None if found is None else str(found)

    def _check_created_once(self) -> None:
        """There are stores that speak S3's protocol and do not know the condition: two reviews could be one there."""
        once = b'{"schema_version": 1}'
        if self._create(CREATED_ONCE, once) and self._create(CREATED_ONCE, once):
            raise UsageError(
                f"the store of {self.root} lets two create one object",
                code="OUTPUT-STORE",
                remedy="Use one that honours If-None-Match (S3) or ifGenerationMatch (Google Cloud Storage) when it writes.",
            )

    def _listed(self, folder: str | None) -> dict[str, str]:
        """What is in a folder, or in the output folder itself: ``file`` or ``directory`` by its bare name."""
        try:
            found = self._asked(folder, self._kind.lists, refresh=True, **self._kind.listing)
        except FileNotFoundError:
            return {}
        return {entry["name"].rstrip("/").rpartition("/")[2]: entry["type"] for entry in found}

    def _below(self, folder: str) -> list[str]:
        """The names of all objects in a folder and in those inside, sorted; others may have put some there."""
        try:
            found = self._asked(folder, "_find")
        except FileNotFoundError:
            return []
        own = self._store._strip_protocol(self.root) + "/"  # noqa: SLF001 - as in `_asked_at`
        return sorted(path.removeprefix(own) for path in found)

    def _asked(self, name: str | None, method: str, *given: Any, **options: Any) -> Any:
        """What the store answers about a file; the output folder itself, where no name is given.

        FileNotFoundError, FileExistsError, _Contended, KeyError: the caller knows what it means; StoreError.
        """
        return self._asked_at("/".join(parts_of(name)) if name is not None else "", method, *given, **options)

    def _asked_at(self, name: str, method: str, *given: Any, **options: Any) -> Any:
        """As ``_asked``, of an object that others may have named."""
        from fsspec.asyn import sync

        path = f"{self.root}/{name}".rstrip("/")
        store = self._store
        call = getattr(store, method)
        try:
            return sync(store.loop, call, store._strip_protocol(path), *given, timeout=_SECONDS, **options)  # noqa: SLF001 - fsspec's, for those who call its coroutines
        except (FileExistsError, KeyError):
            raise
        except Exception as error:  # there is no one base of all that the clients raise
            signs = _signs(error)
            if "PreconditionFailed" in signs:
                raise FileExistsError from None
            if "ConditionalRequestConflict" in signs:
                raise _Contended from None
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in signs:
                raise
            # Without the cause: the clients' words have addresses and the names of objects in them.
            raise _failure(self.root, name or None, error) from None


class _Contended(Exception):
    """Somebody else was writing the same object just then; S3 says: try again."""


class _Kind(NamedTuple):
    opened: Callable[[], AsyncFileSystem]
    extra: str
    metadata: str
    """What the client calls what is said of an object."""
    looks: str
    """How it is asked about one object, and not also whether there is a folder of that name."""
    lists: str
    """How it is asked what is in a folder, and not, of an empty one, what else is beside it: thousands of reviews."""
    listing: Mapping[str, bool]
    modified: str
    """What the client calls the moment at which an object was written."""


def _s3() -> AsyncFileSystem:
    from s3fs import S3FileSystem

    retries = {"mode": "standard", "total_max_attempts": _ATTEMPTS}
    store = S3FileSystem(
        use_listings_cache=False,  # others write there too
        config_kwargs={"connect_timeout": 5, "read_timeout": _SECONDS / 2, "retries": retries},
        max_concurrency=1,  # else it asks for the size before each read
    )
    store.retries = 1  # botocore does it
    return store


def _gs() -> AsyncFileSystem:
    from gcsfs.core import GCSFileSystem

    # As Google's own client: who names a server of their own for tests has no credentials for it.
    token = "anon" if os.environ.get("STORAGE_EMULATOR_HOST") else "google_default"
    return GCSFileSystem(token=token, use_listings_cache=False, timeout=_SECONDS)


_KINDS = {
    "s3": _Kind(_s3, "s3", "Metadata", "_metadata", "_lsdir", {}, "LastModified"),
    "gs": _Kind(_gs, "gcs", "metadata", "_get_object", "_ls", {"detail": True}, "mtime"),
}


def _let_go(held: sa.Connection, when: str) -> None:
    """End a lock; what was done stands, but if it was lost before, others may have done something at the same time."""
    try:
        held.exec_driver_sql("SELECT 1")
    except sa.exc.SQLAlchemyError:
        log.warning("the database went away %s", when)
    with suppress(sa.exc.SQLAlchemyError):
        held.close()


class _Row(NamedTuple):
    signs: frozenset[str]
    """Any of them: the types of what a client raised, and what the store answered."""
    code: str
    message: str
    remedy: str


_AGAIN = "Nothing is half written: see that the network and the store answer, then try again."
_FAILURES = (
    _Row(
        frozenset({
            *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound"),
            *("DefaultCredentialsError", "RefreshError", "401"),
        }),
        "STORE-CREDENTIALS",
        "there are no credentials for {root}",
        "Give them as the provider's own tools take them: the environment, its configuration file, the machine's role.",
    ),
    _Row(
        frozenset({"NoSuchBucket"}),
        "STORE-BUCKET",
        "there is no bucket of {root}",
        "Make it (private, encrypted), or mend `output`.",
    ),
    _Row(
        frozenset({"PermissionError", "403"}),
        "STORE-DENIED",
        "{name} may not be read or written",
        "Give this account the rights to list, read, write and delete objects there, and see that its key is good.",
    ),
    _Row(
        frozenset({
            *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "HTTPClientError"),
            *("ClientConnectionError", "ConnectionError", "RequestException", "FSTimeoutError", "TimeoutError"),
        }),
        "STORE-UNREACHED",
        "the store did not answer when {name} was to be read or written",
        _AGAIN,
    ),
    _Row(frozenset({"Exception"}), "STORE-FAILED", "{name} could not be read or written ({type})", _AGAIN),
)  # fmt: skip


def _failure(root: str, name: str | None, error: Exception, *, is_new: bool = False) -> StoreError:
    """What is said of a request that failed; ``is_new``: where a new object could not be put, there is no bucket."""
    signs = _signs(error) | ({"NoSuchBucket"} if is_new else set())
    row = next(row for row in _FAILURES if row.signs & signs)
    said: Mapping[str, str] = {"root": root, "name": name or root, "type": type(error).__name__}
    return StoreError(row.message.format_map(said), code=row.code, remedy=row.remedy)


def _signs(error: BaseException | None) -> set[str]:
    """The names of what was raised, and the codes of what was answered, through all causes."""
    found: set[str] = set()
    while error is not None:
        found.update(kind.__name__ for kind in type(error).__mro__)
        answer = getattr(error, "response", None)
        if isinstance(answer, dict):
            found.add(str(answer.get("Error", {}).get("Code")))
        found.add(str(getattr(error, "code", None)))
        if str(error).startswith("Forbidden: "):  # gcsfs has no type for it
            found.add("403")
        error = error.__cause__
    return found
