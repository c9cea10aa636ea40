"""The README and the documents: short, generated where they can be, and every command and link in them exists.

`make stress` types the commands for many machines.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer
from contract.generate_docs import FIGURES, GENERATORS, PAGES, ROOT, regenerate
from distributed.cli import dask_scheduler, dask_worker
from pipeline.operations import SETUP, TWO_COMMANDS
from places import open_folder

from evalkit.cli import app
from evalkit.pipeline.executor.dask import parse_scheduler_address
from evalkit.settings import Settings
from evalkit.store import resolve_postgresql_url

_TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text() for path in PAGES}
_MAX_README_BYTES = 10_000


@pytest.mark.parametrize("page", _TEXTS)
def test_generated_blocks_are_current(page: str) -> None:
    assert regenerate(_TEXTS[page]) == _TEXTS[page], "PYTHONPATH=.:tests python tests/contract/generate_docs.py"


def test_every_generated_block_has_a_place() -> None:
    blocks = {name for text in _TEXTS.values() for name in re.findall(r"<!-- generated: (\S+) -->", text)}
    assert blocks == {*GENERATORS, *(f"figures/{name}" for name in tomllib.loads(FIGURES.read_text()))}


def test_generated_codes_hold_examples_of_each_kind() -> None:
    """The tables are read out of the source: a renamed constructor would leave rows out in silence."""
    reference = _TEXTS["evalkit/docs/reference.md"]
    for code in ("LLM-KEY", "DOCUMENTAI-RATE", "STORE-BUCKET", "TRUTH-LABELS", "SETTINGS", "REVIEW-FIELD"):
        assert f"\n| `{code}` |" in reference
    for code in ("V1-SHARE-RANGE", "V2-PAGES-ORDER", "V3-CONTEXT", "READER-NO-TEXT", "GRADER-VOID", "EXTRACTION-NONE"):
        assert f"\n| `{code}` |" in reference


def test_figures_have_command_date_and_commit() -> None:
    for name, table in tomllib.loads(FIGURES.read_text()).items():
        assert "command" in table, name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", table["date"]), name
        assert re.fullmatch(r"[0-9a-f]{7,40}", table["commit"]), name
        assert "sentence" in table or {len(row) for row in table["rows"]} == {len(table["columns"])}, name


def test_glossary_is_alphabetical() -> None:
    words = re.findall(r"^### (.+)$", _TEXTS["evalkit/docs/glossary.md"], re.MULTILINE)
    assert words == sorted(words, key=str.lower)
    assert {"silver", "vouched", "deciding issue", "look-alike"} <= {*words}


@pytest.mark.parametrize("readme", sorted((ROOT / "evalkit").glob("*/README.md")), ids=lambda path: path.parent.name)
def test_package_readme_names_every_module(readme: Path) -> None:
    words = set(re.findall(r"\w+", readme.read_text()))
    modules = {path.stem for path in readme.parent.glob("*.py") if not path.stem.startswith("_")}
    assert modules - words == set()


def test_readme_is_short_and_counts_the_demo() -> None:
    decisions = tomllib.loads((ROOT / "evalkit/samples/content/expected.toml").read_text())
    assert len(_TEXTS["README.md"].encode()) <= _MAX_README_BYTES
    assert f"draws {len(decisions)} hospital documents" in _TEXTS["README.md"]


@pytest.mark.parametrize("page", _TEXTS)
def test_page_begins_with_its_heading_and_its_readers(page: str) -> None:
    heading, blank, opening = _TEXTS[page].splitlines()[:3]
    assert heading.startswith("# ")
    assert blank == ""
    assert page == "README.md" or opening.startswith("For ")


@pytest.mark.parametrize("page", _TEXTS)
def test_links_lead_somewhere(page: str) -> None:
    for path, _, anchor in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", _TEXTS[page])):
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), path
        headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE) if anchor else []
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in headings}


@pytest.mark.parametrize("page", _TEXTS)
def test_named_files_and_modules_exist(page: str) -> None:
    code = "\n".join(re.findall(r"^```.*?^```|`[^`\n]+`", _TEXTS[page], re.DOTALL | re.MULTILINE))
    for path in re.findall(r"(?<![\w./{])(?:evalkit|widgets|tests|prompts|notebooks)/[\w./-]*", code):
        assert (ROOT / path).exists(), path
    for module in re.findall(r"-m ((?:evalkit|benchmarks)[\w.]+)", code):
        file = ROOT / ("tests" if module.startswith("benchmarks") else "") / module.replace(".", "/")
        assert file.with_suffix(".py").exists() or file.is_dir(), module


@pytest.mark.parametrize("page", _TEXTS)
def test_commands_and_options_exist(page: str) -> None:
    root = typer.main.get_command(app)
    blocks = re.findall(r"^```.*?^```", _TEXTS[page], re.DOTALL | re.MULTILINE)
    code = "\n".join([*blocks, *re.findall(r"`[^`\n]+`", _TEXTS[page])])
    for words in re.findall(r"(?:^`?|bin/)evalkit ([a-z-][^`#\n]*)", code, re.MULTILINE):
        command, options = root, set(root.params)
        for word in words.split():
            if word in getattr(command, "commands", {}):
                command = command.commands[word]  # type: ignore[attr-defined]
                options |= set(command.params)
        known = {name for option in options for name in (*option.opts, *option.secondary_opts)} | {"--help"}
        assert command is not root, words
        assert set(re.findall(r"(?<!\S)--[a-z-]+", words)) <= known, words


def test_every_variable_of_the_program_is_described() -> None:
    named = re.compile(r"\"((?:GOOGLE|MARC)_[A-Z_]+|EVALKIT_PATIENT_[A-Z]+|[A-Z]+_(?:API_KEY|BASE_URL))\"")
    paths = (ROOT / "evalkit").rglob("*.py")
    names = {name for path in paths for name in named.findall(path.read_text())}
    assert {"GEMINI_API_KEY", "MARC_TIMEOUT_MS", "EVALKIT_PATIENT_SALT"} <= names
    assert {name for name in names if f"`{name}`" not in _TEXTS["evalkit/docs/settings.md"]} == set()


def test_the_two_commands_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, run = TWO_COMMANDS
    said = dict(word.split("=", 1) for word in shlex.split(settings.removeprefix("export ")))
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    program, name, *words = shlex.split(run)
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    options = command.make_context(name, words).params
    given = Settings.load(executor=options["executor"])
    assert (program, name) == (".venv/bin/evalkit", "run")
    assert set(said.values()) == {given.output, given.database}
    assert resolve_postgresql_url(open_folder(given.output)) == given.database
    assert parse_scheduler_address(given.executor).startswith("tcp://")


def test_documented_cluster_commands_are_valid_and_bind_locally() -> None:
    install, database, scheduler, worker = (shlex.split(command) for command in SETUP)
    extras = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert install[:2] == ["make", "install"]
    assert set(install[2].removeprefix("EXTRAS=").split()) == {"dask", "postgresql", "s3"} <= extras.keys()
    assert (database[0], database[4]) == ("createuser", "createdb")
    for words, program in ((scheduler, dask_scheduler), (worker, dask_worker)):
        assert words[:2] == [".venv/bin/dask", program.__name__.rpartition("_")[2]]
        given = program.main.make_context(words[1], words[2:]).params
        assert given["host"].startswith("10.")
        assert given["dashboard_address"].startswith("127.0.0.1:")
    assert given["scheduler"] == parse_scheduler_address(f"dask://{scheduler[scheduler.index('--host') + 1]}:8786")
    assert given["memory_limit"] == "0"
