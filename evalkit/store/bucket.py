"""An output folder in a bucket: S3 and compatible stores, Google Cloud Storage.

An object is written whole or not at all, and the store decides who creates it: ``If-None-Match: *`` at S3,
``ifGenerationMatch=0`` at Google. A bucket has no locks; PostgreSQL has them.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import override

from evalkit.core.install_hint import format_install_hint
from evalkit.errors import NotFound, StoreError, UsageError
from evalkit.store.file_names import EXCLUSIVE_CREATE_PROBE_FILE, NAME_PART_PATTERN
from evalkit.store.output_folder import OutputFolder, add_trailing_newline, split_and_validate_file_name
from evalkit.store.postgresql_locks import PostgreSQLLocks

if TYPE_CHECKING:
    from fsspec.asyn import AsyncFileSystem

_REQUEST_SECONDS = 30
"""Seconds of one request, the client's retries included."""
_MAX_ATTEMPTS = 3
_WRITER_KEY = "writer"
"""The metadata key of an object's creator: a retry after a lost answer must not lose to itself."""


class BucketOutputFolder(OutputFolder):
    """An :class:`OutputFolder` in a bucket."""

    def __init__(self, root: str, database_url: str | None) -> None:
        """Take the folder's URL; no request is sent yet."""
        self.root: str = root
        self.database_url = database_url
        self._locks = PostgreSQLLocks()

    def __reduce__(self) -> tuple[object, ...]:
        return BucketOutputFolder, (self.root, self.database_url)

    @property
    def _provider(self) -> _BucketProvider:
        return _PROVIDERS[self.root.partition(":")[0]]

    @cached_property
    def _filesystem(self) -> AsyncFileSystem:
        for name in ("fsspec", "s3fs", "gcsfs", "botocore", "aiobotocore"):
            # They log requests and failures with the names of objects, which may be a patient's.
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            return self._provider.open_filesystem()
        except ImportError:
            raise UsageError(
                f"{self.root} cannot be read: a package is not installed",
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
        # A "folder" made in a bucket's console is an object: of its name at the root, of no name in a folder.
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
    def list_json_files(self, subfolder: str) -> list[str]:
        children = self._map_child_names_to_kinds(subfolder).items()
        json_names = (
            name
            for name, kind in children
            if kind == "file" and name.endswith(".json") and NAME_PART_PATTERN.fullmatch(name)
        )
        return sorted(f"{subfolder}/{name}" for name in json_names)

    @override
    def list_subfolder_names(self, subfolder: str) -> list[str]:
        children = self._map_child_names_to_kinds(subfolder).items()
        return sorted(name for name, kind in children if kind == "directory" and NAME_PART_PATTERN.fullmatch(name))

    @override
    def read_bytes(self, name: str, max_bytes: int | None = None) -> bytes:
        try:
            return bytes(self._call_client_on_file(name, "_cat_file", end=max_bytes))
        except FileNotFoundError:
            raise NotFound(f"{name} is not there", code="STORE-NOT-FOUND", remedy="Run the document first.") from None
        except StoreError:
            if max_bytes is None:
                raise
            return self.read_bytes(name)[:max_bytes]  # a range of an empty object is an error

    @override
    def remove_file(self, name: str) -> bool:
        if not self.has_file(name):
            return False
        with suppress(FileNotFoundError):
            self._call_client_on_file(name, "_rm_file")
        return True

    @override
    def remove_folder(self, name: str) -> list[str]:
        object_names = self._list_object_names_recursively(name)
        for object_name in object_names:
            with suppress(FileNotFoundError):
                self._call_client_on_object(object_name, "_rm_file")
        return object_names

    @override
    def iterate_files_recursively(self, subfolder: str) -> Iterator[tuple[str, bytes]]:
        for object_name in self._list_object_names_recursively(subfolder):
            yield object_name, bytes(self._call_client_on_object(object_name, "_cat_file"))

    @override
    def get_modification_time(self, name: str) -> float | None:
        try:
            modified_at: datetime = self._call_client_on_file(name, "_info")[self._provider.modified_key]
        except FileNotFoundError:
            return None
        return modified_at.timestamp()

    @override
    @contextmanager
    def hold_run_lock(self) -> Iterator[None]:
        """Hold the folder for one run.

        UsageError if another run holds it, or if the store lets two create one object.
        """
        with self._locks.hold_run_lock(self):
            self._require_exclusive_create_support()
            yield

    @override
    def hold_write_lock(self, document_key: str | None = None) -> AbstractContextManager[None]:
        return self._locks.hold_write_lock(self, document_key)

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
        """Raise UsageError if the store ignores the condition of exclusive creation.

        Two reviews could become one.
        """
        content = b'{"schema_version": 1}'
        if self._create_atomically_if_absent(
            EXCLUSIVE_CREATE_PROBE_FILE, content
        ) and self._create_atomically_if_absent(EXCLUSIVE_CREATE_PROBE_FILE, content):
            raise UsageError(
                f"the store of {self.root} allows creating an object twice",
                code="OUTPUT-STORE",
                remedy="Use one that honours If-None-Match (S3) or ifGenerationMatch (Google Cloud Storage) when it writes.",
            )

    def _map_child_names_to_kinds(self, subfolder: str | None) -> dict[str, str]:
        """Map the names in a folder, or in the root, to ``file`` or ``directory``."""
        try:
            children = self._call_client_on_file(
                subfolder, self._provider.list_method, refresh=True, **self._provider.list_options
            )
        except FileNotFoundError:
            return {}
        return {child["name"].rstrip("/").rpartition("/")[2]: child["type"] for child in children}

    def _list_object_names_recursively(self, subfolder: str) -> list[str]:
        """List all objects in and below a folder, sorted; others may have put some there."""
        try:
            object_paths = self._call_client_on_file(subfolder, "_find")
        except FileNotFoundError:
            return []
        root_prefix = self._filesystem._strip_protocol(self.root) + "/"  # noqa: SLF001 - as in `_call_client_on_object`
        return sorted(object_path.removeprefix(root_prefix) for object_path in object_paths)

    def _call_client_on_file(
        self, file_name: str | None, client_method_name: str, *arguments: Any, **options: Any
    ) -> Any:
        """Call a client method on a file, or on the output folder if no name is given.

        FileNotFoundError, FileExistsError, _WriteConflict, KeyError, for the caller to interpret; StoreError.
        """
        return self._call_client_on_object(
            "/".join(split_and_validate_file_name(file_name)) if file_name is not None else "",
            client_method_name,
            *arguments,
            **options,
        )

    def _call_client_on_object(self, object_name: str, client_method_name: str, *arguments: Any, **options: Any) -> Any:
        """Do as ``_call_client_on_file`` for an object that others may have named."""
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


class _WriteConflict(Exception):
    """Another process was writing the same object; S3 says: try again."""


class _BucketProvider(NamedTuple):
    open_filesystem: Callable[[], AsyncFileSystem]
    install_extra: str
    metadata_keyword: str
    """The client's name for an object's metadata."""
    exists_method: str
    """The client's method that checks one object, not also a folder of that name."""
    list_method: str
    """The client's method that lists a folder, and not, if that is empty, thousands of siblings."""
    list_options: Mapping[str, bool]
    modified_key: str
    """The client's name for an object's modification time."""


def _open_s3() -> AsyncFileSystem:
    from s3fs import S3FileSystem

    retry_config = {"mode": "standard", "total_max_attempts": _MAX_ATTEMPTS}
    filesystem = S3FileSystem(
        use_listings_cache=False,  # others write there too
        config_kwargs={"connect_timeout": 5, "read_timeout": _REQUEST_SECONDS / 2, "retries": retry_config},
        max_concurrency=1,  # otherwise it asks for the size before each read
    )
    filesystem.retries = 1  # botocore retries
    return filesystem


def _open_gcs() -> AsyncFileSystem:
    from gcsfs.core import GCSFileSystem

    # As Google's own client: an emulator for tests has no credentials.
    token = "anon" if os.environ.get("STORAGE_EMULATOR_HOST") else "google_default"
    return GCSFileSystem(token=token, use_listings_cache=False, timeout=_REQUEST_SECONDS)


_PROVIDERS = {
    "s3": _BucketProvider(_open_s3, "s3", "Metadata", "_metadata", "_lsdir", {}, "LastModified"),
    "gs": _BucketProvider(_open_gcs, "gcs", "metadata", "_get_object", "_ls", {"detail": True}, "mtime"),
}


class _FailureRule(NamedTuple):
    error_names: frozenset[str]
    """Any of them: error types of the client, or codes of the store."""
    code: str
    message: str
    remedy: str


_RETRY_REMEDY = "Nothing is half written: check the network and the store, then try again."
_FAILURE_RULES = (
    _FailureRule(
        frozenset({
            *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound"),
            *("DefaultCredentialsError", "RefreshError", "401"),
        }),
        "STORE-CREDENTIALS",
        "there are no credentials for {root}",
        "Provide them as for the provider's own tools: environment, configuration file, or the machine's role.",
    ),
    _FailureRule(
        frozenset({"NoSuchBucket"}),
        "STORE-BUCKET",
        "there is no bucket of {root}",
        "Create it (private, encrypted), or correct `output`.",
    ),
    _FailureRule(
        frozenset({"PermissionError", "403"}),
        "STORE-DENIED",
        "{name} may not be read or written",
        "Give this account the rights to list, read, write and delete objects there, and check its key.",
    ),
    _FailureRule(
        frozenset({
            *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "HTTPClientError"),
            *("ClientConnectionError", "ConnectionError", "RequestException", "FSTimeoutError", "TimeoutError"),
        }),
        "STORE-UNREACHED",
        "the store did not answer when {name} was to be read or written",
        _RETRY_REMEDY,
    ),
    _FailureRule(frozenset({"Exception"}), "STORE-FAILED", "{name} could not be read or written ({type})", _RETRY_REMEDY),
)  # fmt: skip


def _build_store_error(
    root: str, file_name: str | None, error: Exception, *, is_object_creation: bool = False
) -> StoreError:
    """Build the error of a failed request.

    An object creation fails if there is no bucket.
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
