"""`evalkit docs`: the pages that ship with evalkit."""

from pathlib import Path

import pytest
from commands import evalkit_command

import evalkit

PAGES = sorted((Path(evalkit.__file__).parent / "docs").glob("*.md"))


def test_pages_are_listed_with_their_heading() -> None:
    listed = evalkit_command("docs").stdout.splitlines()
    assert listed == [f"{page.stem:<14}{page.read_text().splitlines()[0].removeprefix('# ')}" for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_printed_as_it_is(page: Path) -> None:
    assert page.read_text().startswith("# ")
    assert evalkit_command("docs", page.stem).stdout == page.read_text()


def test_an_unknown_page_names_those_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "settings.md").write_text("# Settings\n\nAll of them.\n")
    (tmp_path / "docs" / "models.md").write_text("# Language models\n")
    monkeypatch.setattr("evalkit.cli.maintenance.files", lambda _: tmp_path)
    assert evalkit_command("docs").stdout == "models        Language models\nsettings      Settings\n"
    assert evalkit_command("docs", "settings").stdout == "# Settings\n\nAll of them.\n"
    shown = evalkit_command("docs", "setings")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr == (
        "evalkit: there is no page 'setings' in the documentation. The pages are models, settings.\n"
    )
