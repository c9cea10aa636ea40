"""The log of a folder's own decisions: appended, read and checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import open_folder

from evalkit.errors import StoreError
from evalkit.pipeline.event_log import append_event, find_changed_events, read_events
from evalkit.store import OutputFolder


def log_with_three_events(root: Path) -> OutputFolder:
    output_folder = open_folder(root)
    for count in (1, 2, 3):
        append_event(
            output_folder,
            "certified",
            recorded_at=f"2026-01-0{count}T00:00:00Z",
            stratum="Other",
            facts={"audits": count},
        )
    return output_folder


def test_events_are_read_in_the_order_of_recording(tmp_path: Path) -> None:
    output_folder = log_with_three_events(tmp_path)
    assert [event.facts["audits"] for event in read_events(output_folder)] == [1, 2, 3]
    assert list(find_changed_events(output_folder)) == []


@pytest.mark.parametrize("number", [1, 2])
def test_a_changed_event_is_named(tmp_path: Path, number: int) -> None:
    output_folder = log_with_three_events(tmp_path)
    name = f"events/000{number}.json"
    stored = output_folder.read_json(name, max_schema_version=1)
    output_folder.write_json(name, stored | {"recorded_by": "somebody"})
    assert list(find_changed_events(output_folder)) == [name]


def test_a_missing_first_event_is_found(tmp_path: Path) -> None:
    output_folder = log_with_three_events(tmp_path)
    output_folder.remove_file("events/0001.json")
    with pytest.raises(StoreError, match=r"events/0001\.json is missing"):
        read_events(output_folder)


def test_a_log_that_begins_in_the_middle_is_found(tmp_path: Path) -> None:
    output_folder = log_with_three_events(tmp_path)
    last = output_folder.read_json("events/0003.json", max_schema_version=1)
    for number in (1, 2, 3):
        output_folder.remove_file(f"events/000{number}.json")
    output_folder.write_json("events/0001.json", last)
    assert list(find_changed_events(output_folder)) == ["events/0001.json"]
