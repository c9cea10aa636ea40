"""An output folder in a bucket: S3 (and compatible), or Google Cloud Storage.

Objects are written atomically. Of several writers that create the same object, the store accepts only the first:
``If-None-Match: *`` at S3, ``ifGenerationMatch=0`` at Google. A bucket has no locks, so PostgreSQL's locks are used.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from typing_extensions import override

from evalkit.core.install_hint import format_install_hint
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.store import postgresql
from evalkit.store.database import build_connection_error, get_driver_error_type_name, resolve_postgresql_url
from evalkit.store.file_names import EXCLUSIVE_CREATE_PROBE_FILE, NAME_PART_PATTERN
from evalkit.store.output_folder import (
    FileVersion,
    OutputFolder,
    add_trailing_newline,
    build_run_lock_held_error,
    split_and_validate_file_name,
)

if TYPE_CHECKING:
    from fsspec.asyn import AsyncFileSystem

log = logging.getLogger(__name__)


#: Time limit of one request in seconds, including the client's retries.
_REQUEST_SECONDS = 30
_MAX_ATTEMPTS = 3
#: Metadata key of the id of an object's creator: if the answer to a creation is lost, the retry recognises its own
#: object.
_WRITER_KEY = "writer"


class BucketOutputFolder(OutputFolder):
    """An :class:`OutputFolder` in a bucket."""

    def __init__(self, root: str, database_url: str | None) -> None:
        """Use the folder at the URL ``root``; no request is sent yet."""
        self.root: str = root
        self.database_url = database_url

    def __reduce__(self) -> tuple[object, ...]:
        return BucketOutputFolder, (self.root, self.database_url)

    @property
    def _provider(self) -> _BucketProvider:
        return _PROVIDERS[self.root.partition(":")[0]]

    @cached_property
    def _filesystem(self) -> AsyncFileSystem:
        for name in ("fsspec", "s3fs", "gcsfs", "botocore", "aiobotocore"):
            # These libraries log the names of objects, which may contain a patient's name.
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            return self._provider.open_filesystem()
        except ImportError:
            raise UsageError(
                f"{self.root} cannot be read: the package for this kind of bucket is not installed",
                code="OUTPUT-URL",
                remedy=f"Run {format_install_hint(self._provider.install_extra)}.",
            ) from None
        except Exception as error:  # noqa: BLE001 - the clients' errors have no common base
            raise _build_store_error(self.root, None, error) from None

    @override
    def has_folder(self, subfolder: str | None = None) -> bool:
        child_kinds = self._map_child_names_to_kinds(None)
        return bool(child_kinds) if subfolder is None else child_kinds.get(subfolder) == "directory"

    @override
    def list_file_and_folder_names(self, subfolder: str | None = None) -> set[str]:
        # A "folder" made in the provider's console is an object: at the root it has the folder's name, in a folder none.
        console_name = self.root.rpartition("/")[2] if subfolder is None else ""
        return {name for name in self._map_child_names_to_kinds(subfolder) if name != console_name}

    @override
    def has_file(self, name: str) -> bool:
        try:
            self._call_client_on_file(name, self._provider.exists_method)
        except FileNotFoundError:
            return False
        return True

    @override
    def list_subfolder_names(self, subfolder: str) -> list[str]:
        children = self._map_child_names_to_kinds(subfolder).items()
        return sorted(name for name, kind in children if kind == "directory" and NAME_PART_PATTERN.fullmatch(name))

    @override
    def read_bytes(self, name: str, max_bytes: int | None = None) -> bytes:
        return self.read_listed_file("/".join(split_and_validate_file_name(name)), max_bytes)

    @override
    def read_listed_file(self, name: str, max_bytes: int | None = None) -> bytes:
        try:
            return bytes(self._call_client_on_object(name, "_cat_file", end=max_bytes))
        except FileNotFoundError:
            raise NotFound(
                f"{name} does not exist",
                code="STORE-NOT-FOUND",
                remedy="Process the document with `evalkit run` first.",
            ) from None
        except StoreError:
            if max_bytes is None:
                raise
            return self.read_listed_file(name)[:max_bytes]  # reading a range of an empty object is an error

    @override
    def _remove_file(self, name: str) -> bool:
        if not self.has_file(name):
            return False
        with suppress(FileNotFoundError):
            self._call_client_on_file(name, "_rm_file")
        return True

    @override
    def remove_folder(self, name: str) -> list[str]:
        object_names = sorted(self.map_file_versions(name))
        for object_name in object_names:
            with suppress(FileNotFoundError):
                self._call_client_on_object(object_name, "_rm_file")
        return object_names

    @override
    def map_file_versions(self, subfolder: str | None = None) -> dict[str, FileVersion]:
        try:
            objects = self._call_client_on_file(subfolder, "_find", detail=True)
        except FileNotFoundError:
            return {}
        root_prefix = self._filesystem._strip_protocol(self.root) + "/"  # noqa: SLF001 - as in `_call_client_on_object`
        return {
            path.removeprefix(root_prefix): FileVersion(
                entry["size"], f"{entry.get(self._provider.version_key)} {entry.get(self._provider.modified_key)}"
            )
            for path, entry in objects.items()
        }

    @override
    def get_modification_time(self, name: str) -> float | None:
        try:
            modified_at: datetime = self._call_client_on_file(name, "_info")[self._provider.modified_key]
        except FileNotFoundError:
            return None
        return modified_at.timestamp()

    @override
    @contextmanager
    def _acquire_run_lock(self) -> Iterator[None]:
        """Hold the run lock, and check that the store supports exclusive creation.

        UsageError if another run holds the lock, or if the store accepts the creation of an object that exists.
        """
        lost_warning = "during the run: check that no other run wrote to the output folder meanwhile"
        with self._hold_lock(postgresql.try_connect_with_run_lock, lost_warning):
            self._require_exclusive_create_support()
            yield

    @override
    def hold_save_lock(self, *, for_backup: bool = False) -> AbstractContextManager[None]:
        return self._hold_lock(
            partial(postgresql.connect_with_save_lock, is_exclusive=for_backup),
            "while files were saved: a backup made meanwhile may lack some",
        )

    @override
    def _acquire_write_lock(self, document_key: str | None) -> AbstractContextManager[None]:
        return self._hold_lock(
            partial(postgresql.connect_with_write_lock, document_key=document_key),
            "while files were written: run `evalkit reindex`, which rewrites the files derived from reviews",
        )

    @contextmanager
    def _hold_lock(self, acquire: Callable[[str, str], sa.Connection | None], lost_warning: str) -> Iterator[None]:
        lock_connection = self._acquire_lock(acquire)
        if lock_connection is None:
            raise build_run_lock_held_error(self.root)
        try:
            yield
        finally:
            _release_lock_or_warn(lock_connection, lost_warning)

    @cached_property
    def _schema_and_url(self) -> tuple[str, str]:
        url = resolve_postgresql_url(self)
        assert url is not None  # noqa: S101 - a bucket without PostgreSQL is refused
        try:
            return postgresql.ensure_schema(self, url), url
        except sa.exc.SQLAlchemyError as error:
            raise build_connection_error(url, error) from None

    def _acquire_lock(self, acquire: Callable[[str, str], sa.Connection | None]) -> sa.Connection | None:
        schema, url = self._schema_and_url
        try:
            return acquire(schema, url)
        except sa.exc.SQLAlchemyError as error:
            if get_driver_error_type_name(error) == "LockNotAvailable":
                raise StoreError(
                    f"other processes have held the write lock of {self.root} for too long",
                    code="STORE-BUSY",
                    remedy="Nothing was saved: try again, and check that no evalkit process hangs.",
                ) from None
            raise build_connection_error(url, error) from None

    @override
    def _write_atomically(self, name: str, content: bytes) -> None:
        try:
            self._call_client_on_file(name, "_pipe_file", add_trailing_newline(content))
        except FileNotFoundError as error:
            raise _build_store_error(self.root, name, error, is_object_creation=True) from None

    @override
    def _create_atomically_if_absent(self, name: str, content: bytes) -> bool:
        writer_id = secrets.token_hex(16)
        metadata_option = {self._provider.metadata_keyword: {_WRITER_KEY: writer_id}}
        for _ in range(_MAX_ATTEMPTS):
            try:
                self._call_client_on_file(
                    name, "_pipe_file", add_trailing_newline(content), mode="create", **metadata_option
                )
            except FileExistsError:
                return self._read_writer_id(name) == writer_id
            except FileNotFoundError as error:
                raise _build_store_error(self.root, name, error, is_object_creation=True) from None
            except _WriteConflict:
                continue
            return True
        raise _build_store_error(self.root, name, TimeoutError())

    def _read_writer_id(self, name: str) -> str | None:
        try:
            writer_id = self._call_client_on_file(name, "_getxattr", _WRITER_KEY)
        except (FileNotFoundError, KeyError):
            return None
        return None if writer_id is None else str(writer_id)

    def _require_exclusive_create_support(self) -> None:
        """Raise UsageError if the store lets an existing object be created again.

        Otherwise, of two reviews saved at once, one would overwrite the other.
        """
        content = b'{"schema_version": 1}'
        if self._create_atomically_if_absent(
            EXCLUSIVE_CREATE_PROBE_FILE, content
        ) and self._create_atomically_if_absent(EXCLUSIVE_CREATE_PROBE_FILE, content):
            raise UsageError(
                f"the service of the bucket {self.root} overwrites existing objects although told not to",
                code="OUTPUT-STORE",
                remedy="Use a bucket whose service honours If-None-Match (S3) or ifGenerationMatch (Google Cloud Storage) when it writes.",
            )

    def _map_child_names_to_kinds(self, subfolder: str | None) -> dict[str, str]:
        """Map each name in a folder, by default the root, to ``file`` or ``directory``."""
        try:
            children = self._call_client_on_file(
                subfolder, self._provider.list_method, refresh=True, **self._provider.list_options
            )
        except FileNotFoundError:
            return {}
        return {child["name"].rstrip("/").rpartition("/")[2]: child["type"] for child in children}

    def _call_client_on_file(
        self, file_name: str | None, client_method_name: str, *arguments: Any, **options: Any
    ) -> Any:
        """Call a client method on a file or, if no name is given, on the output folder.

        FileNotFoundError, FileExistsError, _WriteConflict and KeyError are for the caller to interpret; StoreError for
        all other failures.
        """
        return self._call_client_on_object(
            "/".join(split_and_validate_file_name(file_name)) if file_name is not None else "",
            client_method_name,
            *arguments,
            **options,
        )

    def _call_client_on_object(self, object_name: str, client_method_name: str, *arguments: Any, **options: Any) -> Any:
        """Call a client method on an object whose name is not checked.

        Other programs may have chosen the name. Errors as for ``_call_client_on_file``.
        """
        from fsspec.asyn import sync

        object_path = f"{self.root}/{object_name}".rstrip("/")
        filesystem = self._filesystem
        client_method = getattr(filesystem, client_method_name)
        try:
            return sync(
                filesystem.loop,
                client_method,
                filesystem._strip_protocol(object_path),  # noqa: SLF001 - fsspec has no public name for it
                *arguments,
                timeout=_REQUEST_SECONDS,
                **options,
            )
        except (FileExistsError, KeyError):
            raise
        except Exception as error:  # the clients' errors have no common base
            error_names = _collect_error_names(error)
            if "PreconditionFailed" in error_names:
                raise FileExistsError from None
            if "ConditionalRequestConflict" in error_names:
                raise _WriteConflict from None
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in error_names:
                raise
            # Without the cause: the clients' messages contain addresses and object names.
            raise _build_store_error(self.root, object_name or None, error) from None


def _release_lock_or_warn(lock_connection: sa.Connection, lost_lock_warning: str) -> None:
    """Release a lock; warn if it was lost earlier, so that others may have written."""
    try:
        lock_connection.exec_driver_sql("SELECT 1")
    except sa.exc.SQLAlchemyError:
        log.warning("the connection to the database was lost %s", lost_lock_warning)
    with suppress(sa.exc.SQLAlchemyError):
        lock_connection.close()


class _WriteConflict(Exception):
    """Error for an object that another process is writing; S3 asks to try again."""


class _BucketProvider(NamedTuple):
    open_filesystem: Callable[[], AsyncFileSystem]
    install_extra: str
    metadata_keyword: str
    """The client's keyword argument for an object's metadata."""
    exists_method: str
    """The client's method that checks for one object, and ignores a folder of the same name."""
    list_method: str
    """The client's method that lists a folder and, if the folder is empty, does not list its thousands of siblings."""
    list_options: Mapping[str, bool]
    modified_key: str
    """The client's key for the modification time in an object's description."""
    version_key: str
    """The client's key for what differs between two contents of an object."""


def _open_s3() -> AsyncFileSystem:
    from s3fs import S3FileSystem

    retry_config = {"mode": "standard", "total_max_attempts": _MAX_ATTEMPTS}
    filesystem = S3FileSystem(
        use_listings_cache=False,  # other programs write there too
        config_kwargs={"connect_timeout": 5, "read_timeout": _REQUEST_SECONDS / 2, "retries": retry_config},
        max_concurrency=1,  # with more, the client asks for the size before each read
    )
    filesystem.retries = 1  # s3fs itself does not retry, because botocore does
    return filesystem


def _open_gcs() -> AsyncFileSystem:
    from gcsfs.core import GCSFileSystem

    # As Google's own client: an emulator for tests has no credentials.
    token = "anon" if os.environ.get("STORAGE_EMULATOR_HOST") else "google_default"
    return GCSFileSystem(token=token, use_listings_cache=False, timeout=_REQUEST_SECONDS)


_PROVIDERS = {
    "s3": _BucketProvider(_open_s3, "s3", "Metadata", "_metadata", "_lsdir", {}, "LastModified", "ETag"),
    "gs": _BucketProvider(_open_gcs, "gcs", "metadata", "_get_object", "_ls", {"detail": True}, "mtime", "generation"),
}


class _FailureRule(NamedTuple):
    error_names: frozenset[str]
    """Names of the client's error types and codes of the store; any of them selects this rule."""
    code: str
    message: str
    remedy: str


_RETRY_REMEDY = "No file is incomplete: check the network and the bucket's service, then try again."
_FAILURE_RULES = (
    _FailureRule(
        frozenset({
            *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound"),
            *("DefaultCredentialsError", "RefreshError", "401"),
        }),
        "STORE-CREDENTIALS",
        "there are no valid credentials for {root}",
        "Provide credentials as for the provider's own tools: environment variables, configuration file, or the machine's role.",
    ),
    _FailureRule(
        frozenset({"NoSuchBucket"}),
        "STORE-BUCKET",
        "the bucket of {root} does not exist",
        "Create the bucket (private, encrypted), or correct the setting `output`.",
    ),
    _FailureRule(
        frozenset({"PermissionError", "403"}),
        "STORE-DENIED",
        "this account may not read or write {name}",
        "Give this account permission to list, read, write and delete objects in the bucket, and check its key.",
    ),
    _FailureRule(
        frozenset({
            *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "HTTPClientError"),
            *("ClientConnectionError", "ConnectionError", "RequestException", "FSTimeoutError", "TimeoutError"),
        }),
        "STORE-UNREACHED",
        "the store did not answer the request to read or write {name}",
        _RETRY_REMEDY,
    ),
    _FailureRule(frozenset({"Exception"}), "STORE-FAILED", "{name} could not be read or written ({type})", _RETRY_REMEDY),
)  # fmt: skip


def _build_store_error(
    root: str, file_name: str | None, error: Exception, *, is_object_creation: bool = False
) -> StoreError:
    """Build the StoreError for a failed request to the store.

    ``is_object_creation``: a missing object then means that the bucket is missing.
    """
    error_names = _collect_error_names(error) | ({"NoSuchBucket"} if is_object_creation else set())
    rule = next(rule for rule in _FAILURE_RULES if rule.error_names & error_names)
    placeholders: Mapping[str, str] = {"root": root, "name": file_name or root, "type": type(error).__name__}
    return StoreError(rule.message.format_map(placeholders), code=rule.code, remedy=rule.remedy)


def _collect_error_names(error: BaseException | None) -> set[str]:
    error_names: set[str] = set()
    while error is not None:
        error_names.update(error_type.__name__ for error_type in type(error).__mro__)
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            error_names.add(str(response.get("Error", {}).get("Code")))
        error_names.add(str(getattr(error, "code", None)))
        if str(error).startswith("Forbidden: "):  # gcsfs has no type for it
            error_names.add("403")
        error = error.__cause__
    return error_names
