"""The rules of the house: what the lock, the wheel and the names of things must be. Lint and types are `make check`."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_lock_names_packages_and_versions_only() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line for line in lines if line and not line.lstrip().startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?==[^\s;]+( ; .+)?", pin) for pin in pins)
    assert not any("://" in line for line in lines)


def test_the_lock_holds_every_direct_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    pinned = {line.split("==")[0].partition("[")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()}
    for requirement in wanted:
        assert re.split(r"[<>=\[ ]", requirement)[0].lower().replace("_", "-") in pinned, requirement


def test_prompts_and_notebooks_are_in_the_wheel() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"prompts": "evalkit/_prompts", "notebooks": "evalkit/_notebooks"}
    assert set(wheel["packages"]) == {"evalkit", "widgets"}


def test_nobody_is_told_to_install_what_pypi_calls_evalkit() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for path in (ROOT / "evalkit").rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"pip install[^\n]*evalkit\[", text), path
        assert set(re.findall(r"installing\(['\"](\w+)['\"]\)", text)) <= extras.keys(), path
