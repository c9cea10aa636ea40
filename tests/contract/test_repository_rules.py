"""The rules of the house: what the lock, the wheel and the names of things must be. Lint and types are `make check`."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_package_of_the_lock_has_a_hash() -> None:
    lines = [
        line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.lstrip().startswith("#")
    ]
    pins = [line for line in lines if not line.startswith(" ")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[^\s;]+( ; .+)? \\", pin) for pin in pins)
    hashes = [line for line in lines if line.startswith(" ")]
    assert all(re.fullmatch(r" {4}--hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes)
    assert len(pins) == sum(not line.endswith("\\") for line in hashes) > 0


def test_no_lock_holds_an_address() -> None:
    small_model = ROOT / "tests" / "stress" / "small_model"
    locks = (ROOT / "requirements.lock", small_model / "package-lock.json", small_model / "requirements.txt")
    assert [path.name for path in locks if "://" in path.read_text()] == []


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


#: Fragments that say nothing of what they are.
BANNED = {"one", "said", "told", "given", "made", "kept", "found", "at", "beside", "stands", "it"}
ALLOWED = {
    "evalkit/doctor.py": {"found"},  # a key of `evalkit doctor --json`
    "evalkit/extraction/field_template.py": {"stands"},  # a key of the templates' TOML
    "evalkit/pipeline/audit/verify.py": {"at"},  # a key of `evalkit audit export`
    "evalkit/statements/reconciliation.py": {"found"},  # a key of `evalkit apply-template --json`
}


def product_trees() -> Iterator[tuple[str, ast.Module]]:
    for path in (*(ROOT / "evalkit").rglob("*.py"), *(ROOT / "widgets").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def bound_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def test_no_name_is_a_fragment() -> None:
    for path, tree in product_trees():
        assert not BANNED.intersection(bound_names(tree)) - ALLOWED.get(path, set()), path


def test_no_class_name_stands_for_two_things() -> None:
    paths_by_class = defaultdict(list)
    for path, tree in product_trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                paths_by_class[node.name].append(path)
    assert {name: paths for name, paths in paths_by_class.items() if len(paths) > 1} == {}
