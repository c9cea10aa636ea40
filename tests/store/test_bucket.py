"""Output folders in S3 and Google Cloud Storage: what a folder on this machine has no counterpart of.

All else is tested in each place, by the fixture ``place``.
"""

from __future__ import annotations

import csv
import json
import logging
import os
import pickle
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from commands import evalkit_command
from patience import eventually
from places import in_bucket, open_folder, open_index
from review.conftest import Build, Workspace
from review.racing import run_together
from servers.postgresql import PostgreSQLServer

import evalkit
from evalkit.doctor import run_doctor_checks
from evalkit.errors import NotFound, ReviewConflict, StoreError, UsageError
from evalkit.evaluation.export import export_ground_truth
from evalkit.review import SMEReviewHelper
from evalkit.review.index_rebuild import move_database, reindex
from evalkit.review.roster import ReviewerRoster
from evalkit.review.write_lock import hold_case_write_lock
from evalkit.serving.launch import build_server_environment
from evalkit.settings import Settings
from evalkit.store import OutputFolder, parse_output_location, require_evalkit_output_folder
from evalkit.store import bucket as buckets
from evalkit.store import postgresql as postgresql_store
from evalkit.store.local_folder import require_local_folder

if TYPE_CHECKING:
    from servers.buckets import Faults, S3Server

REVIEW = "reviews/john_doe_1950/0001.json"
"""A document's name may be its patient's."""
ONE = {"schema_version": 1}


@pytest.fixture
def faults(bucket: str, request: pytest.FixtureRequest) -> Iterator[Faults]:
    """What is wrong with the store of ``bucket``."""
    found: Faults = request.getfixturevalue(bucket.partition(":")[0]).faults
    yield found
    found.end()


def kinds_of_use(files: OutputFolder) -> list[Callable[[], object]]:
    return [
        files.has_folder,
        partial(files.has_file, REVIEW),
        partial(files.list_json_files, "reviews"),
        partial(files.list_subfolder_names, "reviews"),
        partial(files.read_bytes, REVIEW),
        partial(files.read_json, REVIEW),
        partial(files.write_json, REVIEW, ONE),
        partial(files.create_json_if_absent, REVIEW, ONE),
        partial(files.remove_file, REVIEW),
    ]


def told(error: BaseException) -> str:
    return f"{error!r} {error} " + "".join(traceback.format_exception(error))


# --- where ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("output", Path("output")),
        (Path("/srv/output"), Path("/srv/output")),
        ("file:///srv/out%20put", Path("/srv/out put")),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        (Path("s3://bucket/a"), "s3://bucket/a"),
        ("gs://bucket.of.ours/year=2025", "gs://bucket.of.ours/year=2025"),
        ("C:/output", Path("C:/output")),
        ("S3://bucket/a", "s3://bucket/a"),
        ("file://localhost/srv/output", Path("/srv/output")),
    ],
)
def test_a_place_is_a_folder_or_a_url(given: Path | str, meant: Path | str) -> None:
    assert parse_output_location(given) == meant
    assert parse_output_location(parse_output_location(given)) == meant


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3://key:secret@bucket/a",
        "s3://bucket/a?versionId=secret",
        "s3://bucket/../other",
        "s3://bucket/a//b",
        "s3://Bucket/ä",
        "http://bucket/a",
        "file://host/secret",
        "memory://a",
        "Memory:/a",
        "s3:bucket/a",
        "GS:bucket",
        "file:output",
    ],
)
def test_any_other_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_folder(url)
    assert refused.value.code == "OUTPUT-URL"
    assert "secret" not in str(refused.value)


def test_a_folder_on_this_machine_loads_no_store(tmp_path: Path) -> None:
    code = (
        "import sys; from evalkit.review import SMEReviewHelper; from evalkit.store import OutputIndex, open_output_folder\n"
        f"files = open_output_folder({str(tmp_path)!r}); files.write_json('a.json', {{'schema_version': 1}}); OutputIndex(files).close()\n"
        "print(sorted({'fsspec', 's3fs', 'gcsfs', 'botocore', 'aiohttp', 'psycopg'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "[]\n"


@pytest.mark.parametrize(
    ("names", "is_ours"), [([""], True), (["", "reviewers.json"], True), (["results/a.json"], True), (["a.csv"], False)]
)
def test_folder_created_in_the_console_is_an_output_folder(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, s3: S3Server, names: list[str], is_ours: bool
) -> None:
    url = in_bucket("s3", request, monkeypatch)
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    for name in names:
        s3.client.put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=b"")
    if is_ours:
        require_evalkit_output_folder(open_folder(url))
    else:
        with pytest.raises(UsageError, match="not an output folder of evalkit"):
            require_evalkit_output_folder(open_folder(url))


def test_bucket_without_postgresql_is_refused_before_writing(
    bucket: str, faults: Faults, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("EVALKIT_DATABASE")
    monkeypatch.chdir(tmp_path)
    for use in (
        lambda: evalkit.run([tmp_path], output=bucket),
        lambda: reindex(open_folder(bucket)),
        lambda: open_index(bucket),
        lambda: ReviewerRoster(open_folder(bucket)).add_reviewer_or_replace_code("dr_lee"),
    ):
        with pytest.raises(UsageError, match="PostgreSQL") as refused:
            use()
        assert refused.value.code == "DATABASE"
        assert "EVALKIT_DATABASE" in refused.value.remedy
    assert not any(request.startswith(("PUT", "POST")) for request in faults.seen)
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_is_missing_is_named(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("s3fs", "gcsfs", "gcsfs.core"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=r"make install EXTRAS=(s3|gcs)"):
        open_folder(bucket).has_folder()


# --- who creates ---------------------------------------------------------------------------------------------------


_CREATING = (
    "import sys; from evalkit.store import open_output_folder\n"
    "files = open_output_folder(sys.argv[1])\n"
    "files.has_folder(); print('ready', flush=True); sys.stdin.readline()\n"
    "for number in range(20): print(files.create_json_if_absent(f'reviews/a/{number}.json', {'schema_version': 1, 'by': sys.argv[2]}))"
)


def test_of_several_processes_exactly_one_creates(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = in_bucket("s3", request, monkeypatch)
    words = [sys.executable, "-c", _CREATING, bucket]
    given: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*words, str(number)], **given) for number in range(3)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 3
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    won = [process.communicate()[0].split() for process in processes]
    for number, outcomes in enumerate(zip(*won, strict=True)):
        assert outcomes.count("True") == 1
        assert open_folder(bucket).read_json(f"reviews/a/{number}.json")["by"] == str(outcomes.index("True"))


def test_the_condition_is_the_stores_own(bucket: str, faults: Faults) -> None:
    open_folder(bucket).create_json_if_absent(REVIEW, ONE)
    assert len(faults.seen) == 1, "one request: nothing is looked up before"
    assert faults.seen[0].endswith(("ifGenerationMatch=0", "If-None-Match: *"))


def test_whose_answer_was_lost_has_won_all_the_same(bucket: str, faults: Faults) -> None:
    from servers.buckets import PERFORMED

    faults.next = [PERFORMED]
    assert open_folder(bucket).create_json_if_absent(REVIEW, ONE) is True
    assert open_folder(bucket).create_json_if_absent(REVIEW, ONE) is False


def test_who_came_second_and_has_lost_the_answer_has_lost(bucket: str, faults: Faults) -> None:
    open_folder(bucket).create_json_if_absent(REVIEW, ONE)
    faults.next = [500]
    assert open_folder(bucket).create_json_if_absent(REVIEW, ONE) is False


def test_s3_may_ask_to_try_again(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, s3: S3Server) -> None:
    files = open_folder(in_bucket("s3", request, monkeypatch))
    s3.faults.next = [409, 409]
    assert files.create_json_if_absent(REVIEW, ONE) is True
    s3.faults.next = [409] * 3
    with pytest.raises(StoreError) as refused:
        files.create_json_if_absent("reviews/a/0001.json", ONE)
    assert refused.value.code == "STORE-UNREACHED"


def test_a_store_that_lets_two_create_one_object_is_refused(
    monkeypatch: pytest.MonkeyPatch, postgresql: PostgreSQLServer, tmp_path: Path
) -> None:
    from servers.buckets import BUCKET, GcsServer

    server = GcsServer(honours=False)
    try:
        for name, value in {**server.environment, "EVALKIT_DATABASE": postgresql.url}.items():
            monkeypatch.setenv(name, value)
        for _ in range(2):
            with pytest.raises(UsageError, match="overwrites existing objects although told not to") as refused:
                evalkit.run([tmp_path], output=f"gs://{BUCKET}/output")
            assert refused.value.code == "OUTPUT-STORE"
    finally:
        server.stop()


# --- whose turn ----------------------------------------------------------------------------------------------------


def test_write_lock_is_exclusive_within_a_folder_only(bucket: str) -> None:
    inside: list[str] = []

    def change(who: str) -> None:
        with hold_case_write_lock(open_folder(bucket)):
            inside.append(who)
            time.sleep(0.05)
            inside.append(who)

    run_together(*(partial(change, who) for who in "abcd"))
    assert inside[::2] == inside[1::2]
    assert sorted(inside[::2]) == list("abcd")
    with hold_case_write_lock(open_folder(bucket)), hold_case_write_lock(open_folder(f"{bucket}_other")):
        pass
    with hold_case_write_lock(open_folder(bucket), "scan"), hold_case_write_lock(open_folder(bucket), "fax"):
        pass


def test_who_waits_too_long_for_the_turn_is_told(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = in_bucket("s3", request, monkeypatch)
    monkeypatch.setattr(postgresql_store, "_LOCK_TIMEOUT_SECONDS", 1)
    postgresql_store._get_lock_engine.cache_clear()
    try:
        for held, wanted in ((None, None), (None, "scan"), ("scan", None), ("scan", "scan.second")):
            with (
                hold_case_write_lock(open_folder(bucket), held),
                pytest.raises(StoreError) as refused,
                hold_case_write_lock(open_folder(bucket), wanted),
            ):
                pass
            assert refused.value.code == "STORE-BUSY"
    finally:
        postgresql_store._get_lock_engine.cache_clear()


_HOLDING = (
    "import os, sys, time; from evalkit.store import open_output_folder\n"
    "with getattr(open_output_folder(sys.argv[1], os.environ['EVALKIT_DATABASE']), sys.argv[2])():\n"
    "    print('held', flush=True); time.sleep(600)"
)


@pytest.mark.parametrize("lock", ["hold_write_lock", "hold_run_lock"])
def test_what_a_dead_process_held_is_free(
    lock: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = in_bucket("s3", request, monkeypatch)
    process = subprocess.Popen([sys.executable, "-c", _HOLDING, bucket, lock], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    if lock == "hold_run_lock":
        with pytest.raises(UsageError, match="another run"), open_folder(bucket).hold_run_lock():
            pass
    process.kill()
    process.wait()
    process.stdout.close()

    def is_free() -> bool:
        with suppress(UsageError), getattr(open_folder(bucket), lock)():
            return True
        return False  # the server has not noticed yet

    assert eventually(is_free)


def test_a_run_says_so_when_it_has_lost_its_hold(
    bucket: str, postgresql: PostgreSQLServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), open_folder(bucket).hold_run_lock():
        postgresql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'evalkit'")
    assert "no other run" in caplog.text


def test_lost_lock_logs_how_to_repair_the_index(
    bucket: str, postgresql: PostgreSQLServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), open_folder(bucket).hold_write_lock("a"):
        postgresql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'evalkit'")
    assert "evalkit reindex" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING), open_folder(bucket).hold_write_lock("a"):
        pass
    assert caplog.text == ""


def test_of_an_empty_object_the_beginning_is_empty(bucket: str) -> None:
    """Its store refuses to give a part of it."""
    files = open_folder(bucket)
    files._call_client_on_file("results/a.json", "_pipe_file", b"")
    assert files.read_bytes("results/a.json", 100) == b""


def test_the_schema_is_the_same_for_all_machines(bucket: str) -> None:
    outcomes = run_together(*[partial(open_index, bucket)] * 4)
    for index in outcomes:
        index.close()
    name = postgresql_store.read_schema_name(open_folder(bucket))
    assert name == postgresql_store.read_schema_name(open_folder(f"{bucket}/"))
    assert name != postgresql_store.read_schema_name(open_folder(f"{bucket}_other"))
    assert json.loads(open_folder(bucket).read_bytes("database.json")) == {"schema_version": 1, "schema": name}


# --- faults --------------------------------------------------------------------------------------------------------


def test_denied_access_logs_no_key_and_no_names(bucket: str, faults: Faults, caplog: pytest.LogCaptureFixture) -> None:
    faults.all = 403
    with caplog.at_level(logging.DEBUG):
        for use in kinds_of_use(open_folder(bucket)):
            with pytest.raises(StoreError) as refused:
                use()
            assert refused.value.code == "STORE-DENIED"
            assert "not-a-real-secret" not in told(refused.value)
            assert refused.value.__cause__ is None
    ours = [record for record in caplog.records if not record.name.startswith("gcp_storage_emulator")]
    logged = " ".join(f"{record.name} {record.getMessage()} {record.exc_info}" for record in ours)
    assert "john_doe" not in logged
    assert "not-a-real-secret" not in logged


def test_no_bucket_is_told(bucket: str) -> None:
    files = open_folder(bucket.replace("hospital", "nobodys"))
    for use in (partial(files.write_json, REVIEW, ONE), partial(files.create_json_if_absent, REVIEW, ONE)):
        with pytest.raises(StoreError, match="the bucket of") as refused:
            use()
        assert refused.value.code == "STORE-BUCKET"
    if bucket.startswith("s3:"):  # Google, and S3 of one object, say only that it is not there
        for use in (files.has_folder, partial(files.list_json_files, "reviews"), partial(files.read_bytes, REVIEW)):
            with pytest.raises(StoreError) as refused:
                use()
            assert refused.value.code == "STORE-BUCKET"


@pytest.mark.parametrize("fault", [500, "slow"])
def test_a_store_that_stumbles_is_asked_again_or_waited_for(bucket: str, faults: Faults, fault: int | str) -> None:
    files = open_folder(bucket)
    files.create_json_if_absent(REVIEW, ONE)
    faults.next = [fault]
    assert files.read_json(REVIEW) == ONE
    faults.next = [fault]
    files.write_json(REVIEW, {**ONE, "is": "new"})
    assert files.read_json(REVIEW)["is"] == "new"


@pytest.mark.parametrize("fault", [500, "slow"])
def test_a_store_that_does_not_recover_is_an_error_in_time(
    bucket: str, faults: Faults, monkeypatch: pytest.MonkeyPatch, fault: int | str
) -> None:
    files = open_folder(bucket)
    files.create_json_if_absent(REVIEW, ONE)
    monkeypatch.setattr(buckets, "_REQUEST_SECONDS", 0.5)
    faults.all = fault
    began = time.monotonic()
    with pytest.raises(StoreError) as refused:
        files.read_bytes(REVIEW)
    assert time.monotonic() - began < 20  # libraries of their own accord try for half a minute
    assert refused.value.code in ("STORE-UNREACHED", "STORE-FAILED")
    assert not isinstance(refused.value, NotFound)


@pytest.fixture
def nobody(bucket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store where nobody listens."""
    from s3fs import S3FileSystem

    for name in ("AWS_ENDPOINT_URL_S3", "STORAGE_EMULATOR_HOST"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setattr(buckets, "_REQUEST_SECONDS", 0.5)
    S3FileSystem.clear_instance_cache()
    yield bucket
    S3FileSystem.clear_instance_cache()


def test_a_store_that_is_gone_is_told(nobody: str, tmp_path: Path) -> None:
    files = open_folder(nobody)
    for use in (files.has_folder, partial(files.create_json_if_absent, REVIEW, ONE)):
        with pytest.raises(StoreError) as refused:
            use()
        assert refused.value.code == "STORE-UNREACHED"
    check = next(one for one in run_doctor_checks(Settings.load(output=nobody)) if one.name == "output folder")
    assert not check.is_fine
    assert "did not answer" in check.found


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_no_credentials_are_told(scheme: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from s3fs import S3FileSystem

    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "STORAGE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in (
        "GCE_METADATA_HOST",
        "GCE_METADATA_IP",
    ):  # where Google's client asks whether this machine is one of theirs
        monkeypatch.setenv(name, "127.0.0.1:9")
    S3FileSystem.clear_instance_cache()
    try:
        with pytest.raises(StoreError) as refused:
            open_folder(f"{scheme}://hospital/output").write_json("a.json", ONE)
    finally:
        S3FileSystem.clear_instance_cache()
    assert refused.value.code == "STORE-CREDENTIALS"


# --- all of it -----------------------------------------------------------------------------------------------------


def test_files_of_a_bucket_can_be_sent_to_another_process(bucket: str, tmp_path: Path) -> None:
    for files in (open_folder(bucket, "postgresql://elsewhere/evalkit"), open_folder(tmp_path)):
        copy = pickle.loads(pickle.dumps(files))
        assert type(copy) is type(files)
        assert vars(copy) == vars(files)


def test_what_is_not_built_for_a_bucket_says_so(bucket: str) -> None:
    with pytest.raises(UsageError, match="on this machine") as refused:
        require_local_folder(open_folder(bucket))
    assert refused.value.code == "OUTPUT-REMOTE"
    with pytest.raises(UsageError, match="already in PostgreSQL"):
        move_database(open_folder(bucket), os.environ["EVALKIT_DATABASE"])


def test_a_case_is_reviewed(output_location: Path | str) -> None:
    desk = Workspace(output_location)
    desk.publish(Build.single("Genomic Report"), [Build.issue()])
    lee, kim = desk.helper(), desk.helper("dr_kim")
    assert lee.load_packet("doc2_6").case_id == "doc2_6"
    saves = [partial(one.save_review, "doc2_6", agrees=True, base_revision=0) for one in (lee, kim)]
    outcomes = run_together(*saves)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Review", "ReviewConflict"]
    winner = next(one.reviewer for one in outcomes if not isinstance(one, ReviewConflict))
    truth = desk.truth()
    assert truth is not None
    assert truth["reviewer"] == winner
    lee.reopen("doc2_6", "looked at the wrong page")
    assert desk.truth() is None
    lee.save_review("doc2_6", corrected_dominant_type="Other", base_revision=2)
    assert desk.files.list_json_files("reviews/doc2_6") == [f"reviews/doc2_6/000{number}.json" for number in (1, 2, 3)]
    desk.index.close()


def test_a_run_its_queue_its_review_and_its_export(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, samples: Path, tmp_path: Path
) -> None:
    bucket = in_bucket("s3", request, monkeypatch)
    pdfs = [samples / f"{name}.pdf" for name in ("doc2_6", "segment_count", "with_blank_page")]
    options: Any = {"output": bucket, "classifications": samples / "classifications", "workers": 1}
    summary = evalkit.run(pdfs, **options)
    assert summary.output == bucket
    assert [one.error for one in summary.documents] == [None] * 3
    assert all(one.resumed for one in evalkit.run(pdfs, **options).documents)
    shown = evalkit_command("queue", "--output", bucket, "--json", cwd=tmp_path)
    waiting = [row["case_id"] for row in json.loads(shown.stdout)]
    assert "segment_count" in waiting
    assert list(tmp_path.iterdir()) == []
    SMEReviewHelper(bucket, "dr_lee").save_review("segment_count", corrected_dominant_type="Other")
    assert export_ground_truth(bucket, tmp_path / "truth.csv", file_format="csv") == 1
    with (tmp_path / "truth.csv").open() as file:
        assert [row["doc_id"] for row in csv.DictReader(file)] == ["segment_count"]
    assert reindex(open_folder(bucket))[0] == 3


def test_kernel_gets_only_credentials_of_its_bucket() -> None:
    given = {
        "HOME": "/home/lee",
        "AWS_PROFILE": "review",
        "AWS_CONFIG_FILE": "/etc/aws",
        "GOOGLE_APPLICATION_CREDENTIALS": "/etc/key.json",
        "OPENAI_API_KEY": "k",
        "GEMINI_API_KEY": "k",
    }
    made = build_server_environment(given, "s3://hospital/output", "postgresql://db/evalkit")
    assert made["EVALKIT_OUTPUT"] == "s3://hospital/output"
    assert made["AWS_PROFILE"] == "review"
    assert made["AWS_CONFIG_FILE"] == "/etc/aws"
    assert made["AWS_SHARED_CREDENTIALS_FILE"].endswith("/.aws/credentials")
    assert made["GOOGLE_APPLICATION_CREDENTIALS"] == "/etc/key.json"
    assert not {"OPENAI_API_KEY", "GEMINI_API_KEY"} & made.keys()
    assert not any(name.startswith(("AWS", "GOOGLE")) for name in build_server_environment(given, Path("output")))
