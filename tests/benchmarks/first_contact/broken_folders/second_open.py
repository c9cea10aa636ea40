"""The open half of the second broken folders: records, chains and backups that a person or a half restore has changed."""

from __future__ import annotations

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
    list_reviewed,
    put_back,
    refuses,
    remove_database,
    repairs,
    works,
)

IDEAS = Ideas()
Built = Iterator[Scene | None]

RESTORE = "restore|backup|run the document|run it again|evalkit run"
MISSING = "missing|does not exist|not there|not found|gone|is absent|no packet|no file"


def complains(*gist: str) -> Answer:
    """Refuse, and never advise to delete what a case rests on."""
    return refuses(*gist, never=DELETE)


#: Nothing that a command needs is gone: it works, or it names the record that is not as it was.
BYSTANDER = either(works(), repairs(), complains(f"changed|differs|not as|{MISSING}", RESTORE))
PACKET_MISSING = complains("packet|case", MISSING, RESTORE)
PACKET_UNREADABLE = complains("packet|case", "damaged|cannot be read|unreadable|empty|not valid|incomplete", RESTORE)


@IDEAS(
    "waiting_packet_deleted",
    "records",
    "somebody deleted the packet of a waiting case",
    expect_all(
        PACKET_MISSING,
        report=either(works(), repairs(), PACKET_MISSING),
        show=works(),
        export=works(),
        run=either(works(), repairs(), PACKET_MISSING),
        save=either(works(), repairs(), PACKET_MISSING),
        backup=either(works(), PACKET_MISSING),
        audit_verify=complains("sme_packets/|packet", MISSING),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    break_record(root, workspace, "sme_packets/sme_packet_poor_scan.json")
    yield None


@IDEAS(
    "open_case_packet_empty",
    "records",
    "the packet of the case that is opened has 0 bytes, as after a power failure",
    expect_all(
        PACKET_UNREADABLE,
        report=either(works(), repairs(), PACKET_UNREADABLE),
        show=either(works(), repairs(), PACKET_UNREADABLE),
        export=works(),
        run=either(works(), repairs(), PACKET_UNREADABLE),
        backup=either(works(), PACKET_UNREADABLE),
        audit_verify=complains("sme_packets/|packet", "changed|empty|cannot be read|damaged|differs|not valid"),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    break_record(root, workspace, "sme_packets/sme_packet_adjoining_notes.json", b"")
    yield None


@IDEAS(
    "decision_edited",
    "records",
    "somebody wrote AUTO_ACCEPT into the result of a document that waits for an expert",
    expect_all(
        BYSTANDER,
        audit_verify=complains("results/|result", "changed|differs|altered|not what|other"),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    name = "results/fabricated_quote.json"
    break_record(root, workspace, name, change_record(root / name, decision="AUTO_ACCEPT", decision_rule="1"))
    yield None


@IDEAS(
    "review_deleted",
    "records",
    "the folder with an expert's review was deleted; its ground truth is still there",
    expect_all(
        either(works(), repairs(), complains("review", MISSING, RESTORE)),
        audit_verify=complains("review", MISSING),
    ),
    put_back,
    waiting=1,
)
def _(root: Path, workspace: Path) -> Built:
    break_record(root, workspace, "reviews/doc2_6/0001.json")
    (root / "reviews" / "doc2_6").rmdir()
    yield None


@IDEAS(
    "ground_truth_deleted",
    "records",
    "the folder ground_truth was deleted, with the experts' and the accepted answers",
    expect_all(
        BYSTANDER,
        export=either(works(), repairs(), complains("ground_truth|ground truth", MISSING, "restore|reindex|backup")),
        audit_verify=complains("ground_truth|ground truth", MISSING),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    for name in list_records(root, "ground_truth"):
        break_record(root, workspace, name)
    (root / "ground_truth").rmdir()
    yield None


@IDEAS(
    "chain_without_its_end",
    "chains",
    "the last two files of the chain of changes were cut off",
    expect_all(
        BYSTANDER,
        audit_verify=complains("changes|chain|not listed|not recorded|not in a record"),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    for name in list_records(root, "changes")[-2:]:
        break_record(root, workspace, name)
    yield None


@IDEAS(
    "run_record_deleted",
    "chains",
    "the folder of the only run was deleted, with its record",
    expect_all(
        BYSTANDER,
        audit_verify=complains("run.json|runs/|run record|record of the run|record of run", MISSING),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    (name,) = list_records(root, "runs")
    break_record(root, workspace, name)
    shutil.rmtree(root / "runs")
    yield None


def remove_visitor(root: Path, workspace: Path) -> None:
    """Take the other folder's packet away, and have the index made again."""
    (root / "sme_packets" / "sme_packet_visitor.json").unlink(missing_ok=True)
    remove_database(root)


VISITOR = complains(
    "visitor|packet|case", "no result|not of this|another|unknown|not listed|not recorded|added|missing|not exist"
)


@IDEAS(
    "packet_of_another_folder",
    "foreign records",
    "a packet of another output folder was copied among ours; its document was never here",
    expect_all(either(works(), repairs(), VISITOR), audit_verify=VISITOR),
    remove_visitor,
    waiting=1,
)
def _(root: Path, workspace: Path) -> Built:
    packets = root / "sme_packets"
    content = change_record(
        packets / "sme_packet_poor_scan.json",
        case_id="visitor",
        doc_id="visitor",
        pdf_filename="visitor.pdf",
        pdf_path="/srv/other/visitor.pdf",
        document_bundle_path="document_bundles/visitor.json",
    )
    (packets / "sme_packet_visitor.json").write_bytes(content)
    (packets / "sme_packet_visitor.json").chmod(0o600)
    yield None


SWAPPED = complains(
    "packet|case|poor_scan|scanned", "does not match|do not match|another|other|differs|changed|belongs|not the"
)


@IDEAS(
    "packets_exchanged",
    "foreign records",
    "the packets of two waiting cases have each other's names, after a rename by hand",
    expect_all(
        SWAPPED,
        report=either(works(), repairs(), SWAPPED),
        show=works(),
        export=works(),
        run=either(works(), repairs(), SWAPPED),
        save=either(works(), repairs(), SWAPPED),
        backup=either(works(), repairs(), SWAPPED),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    names = [f"sme_packets/sme_packet_{case}.json" for case in ("poor_scan", "scanned")]
    for name, content in zip(names, [(root / name).read_bytes() for name in reversed(names)], strict=True):
        break_record(root, workspace, name, content)
    yield None


CLOCK = r"""
#define _GNU_SOURCE
#include <time.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#define BACK (3 * 86400)
int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = syscall(SYS_clock_gettime, clock, now);
    if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec -= BACK;
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
    "clock_three_days_back",
    "clock",
    "the machine's clock was set back three days after the run and the reviews",
    expect_all(either(works(), complains("clock|time", "set|check|correct|doctor"))),
    needs=("compiler",),
)
def _(root: Path, workspace: Path) -> Built:
    yield Scene(root, {"LD_PRELOAD": str(compile_library(workspace, CLOCK))})


HALF = complains(f"{MISSING}|fewer|incomplete", RESTORE)


@IDEAS(
    "half_of_a_backup_by_hand",
    "records",
    "a backup was copied back by hand and stopped half way: results, text and packets end at the letter m",
    expect_all(
        HALF,
        show=works(),
        export=works(),
        report=either(works(), repairs(), HALF),
        run=either(works(), repairs(), HALF),
        save=either(works(), repairs(), HALF),
        backup=either(works(), HALF),
        audit_verify=complains("results/|document_bundles/|sme_packets/", MISSING),
    ),
    put_back,
)
def _(root: Path, workspace: Path) -> Built:
    for folder in ("results", "document_bundles", "sme_packets"):
        for name in list_records(root, folder):
            case = Path(name).stem.removeprefix("sme_packet_")
            if case > "m" and case not in list_reviewed(root):
                break_record(root, workspace, name)
    yield None


@IDEAS(
    "backup_lost_a_packet",
    "backups",
    "a packet of a waiting case was deleted from the newest backup before it was restored",
    expect_all(
        works(),
        restore=complains("backup", "missing|damaged|incomplete|changed", "another|older|earlier|again|other backup"),
    ),
    moment="backup",
)
def _(root: Path, workspace: Path) -> Built:
    def lose() -> None:
        for path in (workspace / "backups").rglob("sme_packet_quest_genomic.json"):
            path.unlink()

    yield Scene(root, strike=lose)
