"""What is installed is what the lock names, and nothing that evalkit can do without."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
from locked_requirements import ROOT, read_direct_requirements, select_requirements

LOCK = """\
app==1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:ab
    # via evalkit (pyproject.toml)
hatchling==1.33.0 \\
    --hash=sha256:bb
leaf==2.0 ; python_full_version < '3.12' \\
    --hash=sha256:cc
    # via
    #   app
    #   tool
leaf==2.1 ; python_full_version >= '3.12' \\
    --hash=sha256:dd
    # via
    #   app
    #   tool
test-only==3 \\
    --hash=sha256:ee
    # via tool
tool==1 \\
    --hash=sha256:ff
    # via evalkit (pyproject.toml)
"""


@pytest.mark.parametrize(
    ("direct", "names"),
    [
        (["App[x]>=1"], ["app", "leaf", "leaf"]),
        (["app", "hatchling>=1.27"], ["app", "hatchling", "leaf", "leaf"]),
        (["tool"], ["leaf", "leaf", "test-only", "tool"]),
        (["Test_Only"], ["test-only"]),
        ([], []),
    ],
)
def test_pins_are_those_that_are_needed(direct: list[str], names: list[str]) -> None:
    selected = select_requirements(LOCK, direct)
    assert sorted(re.findall(r"^([\w-]+)==", selected, re.MULTILINE)) == names
    assert selected.count("--hash") == len(names) + names.count("app")


def test_a_package_that_the_lock_lacks_is_named() -> None:
    with pytest.raises(ValueError, match=r"lacks new-package: run make lock"):
        select_requirements(LOCK, ["app", "new_package>=1"])


def test_an_unknown_extra_is_named_with_the_known_ones() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "tests" / "locked_requirements.py", "s4"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert re.search(r"no extra 's4': choose among postgresql, s3, ", result.stderr)


def test_an_installation_without_extras_has_no_test_tool() -> None:
    pyproject, lock = (ROOT / "pyproject.toml").read_text(), (ROOT / "requirements.lock").read_text()
    extras = tomllib.loads(pyproject)["project"]["optional-dependencies"]
    names_by_extras = {
        chosen: {
            *re.findall(
                r"^([\w.-]+)==", select_requirements(lock, read_direct_requirements(pyproject, chosen)), re.MULTILINE
            )
        }
        for chosen in [(), ("dask", "ocr"), tuple(extras)]
    }
    base, demo, everything = names_by_extras.values()
    assert {"hatchling", "editables", "pandas"} <= base
    assert not base & {"pytest", "mypy", "playwright", "jupyterhub", "rapidocr", "distributed", "anthropic"}
    assert demo - base >= {"rapidocr", "distributed"}
    assert everything == {*re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}


def test_every_installation_of_the_makefile_compares_hashes() -> None:
    makefile = re.sub(r"\\\n", " ", (ROOT / "Makefile").read_text())
    installations = re.findall(r"^.*(?:pip install (?!.*--no-deps$)|\$\(PIP\) ).*$", makefile, re.MULTILINE)
    assert len(installations) >= 4
    assert [line for line in installations if "--require-hashes" not in line and "--editable ." not in line] == []
