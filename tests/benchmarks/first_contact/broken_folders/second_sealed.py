"""The sealed half of the second broken folders: records, chains, modes and backups that somebody has changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from .faults import (
    DELETE,
    Answer,
    Ideas,
    Scene,
    break_record,
    change_record,
    compile_library,
    either,
    expect_all,
    list_records,
    put_back,
    refuses,
    repairs,
    works,
)

IDEAS = Ideas()
Built = Iterator[Scene | None]

REMEDY = "restore|backup|run the document|run it again|evalkit run"
ABSENT = "missing|does not exist|not there|not found|gone|is absent|no packet|no file|no result|no text"
UNREADABLE = "damaged|cannot be read|unreadable|not valid|incomplete|not json|cut"


def complains(*gist: str) -> Answer:
    """Refuse, and never advise to delete what a case rests on."""
    return refuses(*gist, never=DELETE)


UNTOUCHED = either(works(), repairs(), complains(f"changed|differs|not as|{ABSENT}", REMEDY))


@IDEAS(
    "text_of_the_open_case_deleted",
    "records",
    "the document bundle of the case that is opened was deleted",
    expect_all(
        either(works(), repairs(), complains("bundle|text|pages|document", ABSENT, REMEDY)),
        claim=complains("bundle|text|pages|document", ABSENT, REMEDY),
        save=complains("bundle|text|pages|document", ABSENT, REMEDY),
        audit_verify=complains("document_bundles/|bundle", ABSENT),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    break_record(root, workspace, "document_bundles/adjoining_notes.json")
    yield None


CUT = complains("packet|case", UNREADABLE, REMEDY)


@IDEAS(
    "packet_cut_short",
    "records",
    "the second half of a waiting case's packet is gone, after a copy that was interrupted",
    expect_all(
        CUT,
        report=either(works(), repairs(), CUT),
        show=works(),
        export=works(),
        run=either(works(), repairs(), CUT),
        save=either(works(), repairs(), CUT),
        backup=either(works(), CUT),
        audit_verify=complains("sme_packets/|packet", f"changed|differs|{UNREADABLE}"),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    name = "sme_packets/sme_packet_segment_count.json"
    content = (root / name).read_bytes()
    break_record(root, workspace, name, content[: len(content) // 2])
    yield None


@IDEAS(
    "review_outcome_edited",
    "records",
    "somebody changed the outcome and the name in a stored review",
    expect_all(
        UNTOUCHED,
        audit_verify=complains("review", "changed|differs|altered|hash|digest|not what"),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    name = "reviews/altered_quotes/0001.json"
    break_record(root, workspace, name, change_record(root / name, outcome="corrected", reviewer="dr_nobody"))
    yield None


NO_RESULT = complains("result|document|adjoining_notes", ABSENT, REMEDY)


@IDEAS(
    "result_of_the_open_case_deleted",
    "records",
    "the result of the case that is opened was deleted; its packet still waits",
    expect_all(
        either(works(), repairs(), NO_RESULT),
        show=NO_RESULT,
        audit_verify=complains("results/|result", ABSENT),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    break_record(root, workspace, "results/adjoining_notes.json")
    yield None


NO_RESULTS = complains("result", ABSENT, REMEDY)


@IDEAS(
    "results_renamed",
    "records",
    "the folder results was renamed to results.old",
    expect_all(
        either(works(), repairs(), NO_RESULTS),
        show=NO_RESULTS,
        audit_verify=complains("results", ABSENT),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    shutil.copytree(root / "results", workspace / "results.old")
    for name in list_records(root, "results"):
        break_record(root, workspace, name)
    (root / "results").rmdir()
    shutil.move(workspace / "results.old", root / "results.old")
    yield None
    shutil.rmtree(root / "results.old", ignore_errors=True)


NO_PACKETS = complains("packet|case", ABSENT, REMEDY)


@IDEAS(
    "all_packets_deleted",
    "records",
    "every packet was deleted; the folder of the packets is empty",
    expect_all(
        NO_PACKETS,
        report=either(works(), repairs(), NO_PACKETS),
        show=works(),
        export=works(),
        run=either(works(), repairs(), NO_PACKETS),
        backup=either(works(), NO_PACKETS),
        audit_verify=complains("sme_packets/|packet", ABSENT),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    for name in list_records(root, "sme_packets"):
        break_record(root, workspace, name)
    yield None


@IDEAS(
    "chain_without_its_middle",
    "chains",
    "one file in the middle of the chain of changes was deleted",
    expect_all(UNTOUCHED, audit_verify=complains("changes|chain", f"{ABSENT}|broken|does not follow|gap")),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    names = list_records(root, "changes")
    break_record(root, workspace, names[len(names) // 2])
    yield None


@IDEAS(
    "chain_link_forged",
    "chains",
    "a time in the second file of the chain of changes was rewritten by hand",
    expect_all(UNTOUCHED, audit_verify=complains("changes|chain", "changed|differs|broken|does not follow|not match")),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    name = list_records(root, "changes")[1]
    content = change_record(root / name, recorded_at="2024-02-29T12:00:00.000Z")
    break_record(root, workspace, name, json.dumps(json.loads(content), separators=(",", ":")).encode())
    yield None


def close_to_others(root: Path, workspace: Path) -> None:
    """Let only the owner read the folder again."""
    for path in (root, *root.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)


@IDEAS(
    "readable_by_everybody",
    "modes",
    "everybody on the machine may read the folder, after a copy that did not keep the modes",
    expect_all(
        either(works(), complains("read|mode|permission", "chmod|permission")),
        audit_verify=complains("may read|can read|readable|permission|mode"),
    ),
    close_to_others,
)
def _(root: Path, workspace: Path) -> Built:
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield None


LINK = complains("packet|case", f"link|cannot be read|not a file|not a regular|damaged|{ABSENT}", f"{REMEDY}|remove")


@IDEAS(
    "packet_is_a_link_to_elsewhere",
    "records",
    "the packet of a waiting case is a symbolic link to a file outside of the folder",
    expect_all(
        LINK,
        report=either(works(), repairs(), LINK),
        show=works(),
        export=works(),
        run=either(works(), repairs(), LINK),
        save=either(works(), repairs(), LINK),
        backup=either(works(), LINK),
        audit_verify=complains("sme_packets/|packet", "link|changed|cannot be read|not a file|not a regular|missing"),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    name = "sme_packets/sme_packet_with_blank_page.json"
    outside = workspace / "outside.json"
    outside.write_bytes(change_record(root / name, decision_reason="nothing is in doubt"))
    break_record(root, workspace, name)
    (root / name).symlink_to(outside)
    yield None


CLOCK = r"""
#define _GNU_SOURCE
#include <time.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += 86400L * 366 * 18;
    return status;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    int status = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec, now->tv_usec = precise.tv_nsec / 1000;
    return status;
}
time_t time(time_t *place) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (place) *place = precise.tv_sec;
    return precise.tv_sec;
}
"""


@IDEAS(
    "clock_years_ahead",
    "clock",
    "the machine's clock is eighteen years ahead, beyond the 32-bit seconds; later it is set right",
    expect_all(either(works(), complains("clock|time", "set|check|correct|doctor"))),
    needs=("compiler",),
)
def _(root: Path, workspace: Path) -> Built:
    yield Scene(root, {"LD_PRELOAD": str(compile_library(workspace, CLOCK))})


@IDEAS(
    "backup_database_cut_short",
    "backups",
    "the database in the newest backup lost its second half before the backup was restored",
    expect_all(
        works(),
        restore=complains("backup", "damaged|incomplete|changed|missing", "another|older|earlier|again|other backup"),
    ),
    moment="backup",
)
def _(root: Path, workspace: Path) -> Built:
    def cut() -> None:
        for path in (workspace / "backups").rglob("*.sqlite"):
            content = path.read_bytes()
            path.write_bytes(content[: len(content) // 2])

    yield Scene(root, strike=cut)
