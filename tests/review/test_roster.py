"""The roster: names, codes, and that codes are stored nowhere."""

import itertools
import json
from pathlib import Path

import pytest
from places import open_folder

from evalkit.errors import StoreError, UsageError
from evalkit.review.roster import ReviewerRoster
from evalkit.store import ROSTER_FILE


@pytest.fixture
def roster(tmp_path: Path) -> ReviewerRoster:
    return ReviewerRoster(open_folder(tmp_path))


def test_a_code_is_its_reviewers_only(roster: ReviewerRoster) -> None:
    assert roster.list_reviewers() == []
    assert roster.find_reviewer_by_code("anything") is None
    lee, kim = roster.add_reviewer_or_replace_code("dr_lee"), roster.add_reviewer_or_replace_code("dr.kim-2")
    assert lee != kim
    assert roster.list_reviewers() == ["dr.kim-2", "dr_lee"]
    assert (roster.find_reviewer_by_code(lee), roster.find_reviewer_by_code(kim)) == ("dr_lee", "dr.kim-2")
    for wrong in ("", "-", lee[:-1], lee + "2", kim + lee, "dr_lee"):
        assert roster.find_reviewer_by_code(wrong) is None


def test_codes_are_easy_to_type(roster: ReviewerRoster) -> None:
    code = roster.add_reviewer_or_replace_code("dr_lee")
    assert [len(part) for part in code.split("-")] == [4, 4, 4, 4]
    assert not set(code) & set("0o1ilO")
    assert roster.find_reviewer_by_code(f" {code.upper().replace('-', ' ')}\n") == "dr_lee"


def test_codes_come_from_the_given_randomness(roster: ReviewerRoster) -> None:
    letters = itertools.count()
    assert (
        roster.add_reviewer_or_replace_code("dr_lee", lambda choices: choices[next(letters) % len(choices)])
        == "2345-6789-abcd-efgh"
    )
    assert len({roster.add_reviewer_or_replace_code("dr_lee") for _ in range(20)}) == 20


def test_adding_again_replaces_the_code(roster: ReviewerRoster) -> None:
    old = roster.add_reviewer_or_replace_code("dr_lee")
    before = roster.read_code_digests()["dr_lee"]
    new = roster.add_reviewer_or_replace_code("dr_lee")
    assert roster.list_reviewers() == ["dr_lee"]
    assert roster.find_reviewer_by_code(old) is None
    assert roster.find_reviewer_by_code(new) == "dr_lee"
    assert roster.read_code_digests()["dr_lee"] != before
    assert "nobody" not in roster.read_code_digests()


def test_who_is_removed_has_no_code_and_no_role_any_more(roster: ReviewerRoster) -> None:
    code, kept = (
        roster.add_reviewer_or_replace_code("dr_lee", role="adjudicator"),
        roster.add_reviewer_or_replace_code("dr_kim", role="analyst"),
    )
    roster.remove_reviewer("dr_lee")
    assert roster.read_roles() == {"dr_kim": "analyst"}
    assert (
        roster.find_reviewer_by_code(code),
        roster.find_reviewer_by_code(kept),
        roster.read_code_digests().get("dr_lee"),
    ) == (None, "dr_kim", None)
    with pytest.raises(UsageError, match="no reviewer of this output folder is named"):
        roster.remove_reviewer("dr_lee")
    roster.remove_reviewer("dr_kim")
    assert (roster.read_roles(), roster.get_permissions("dr_kim").role) == ({}, "analyst"), (
        "its page may be open for some seconds"
    )
    assert roster.get_permissions("dr_kim").adjudicators == ()
    assert roster.find_reviewer_by_code(roster.add_reviewer_or_replace_code("dr_lee")) == "dr_lee"
    assert roster.read_roles() == {"dr_lee": "adjudicator"}


@pytest.mark.parametrize("name", ["", "a" * 41, "dr lee", "dr/lee", "dr_lée", "dr_lee\n", "dr,lee", "<b>"])
def test_names_that_cannot_be(roster: ReviewerRoster, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a reviewer's name"):
        roster.add_reviewer_or_replace_code(name)
    assert roster.list_reviewers() == []


@pytest.mark.parametrize("name", ["a", "a" * 40, "Dr.Lee_2-b"])
def test_names_that_can(roster: ReviewerRoster, name: str) -> None:
    assert roster.find_reviewer_by_code(roster.add_reviewer_or_replace_code(name)) == name


def test_the_file_holds_hashes_and_is_private(roster: ReviewerRoster, tmp_path: Path) -> None:
    code = roster.add_reviewer_or_replace_code("dr_lee")
    path = tmp_path / ROSTER_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    stored = json.loads(path.read_text())
    assert stored["schema_version"] == 1
    assert set(stored["reviewers"]) == {"dr_lee"}
    assert len(stored["reviewers"]["dr_lee"]) == 64
    assert code not in path.read_text()
    assert code.replace("-", "") not in path.read_text()


@pytest.mark.parametrize("text", ["{}", "[]", "", '{"schema_version": 1}', '{"schema_version": 3, "reviewers": {}}',
                                  '{"schema_version": 1, "reviewers": {"a": 1}}'])  # fmt: skip
def test_a_torn_roster_lets_nobody_in(roster: ReviewerRoster, tmp_path: Path, text: str) -> None:
    code = roster.add_reviewer_or_replace_code("dr_lee")
    (tmp_path / ROSTER_FILE).write_text(text)
    with pytest.raises(StoreError):
        roster.find_reviewer_by_code(code)
