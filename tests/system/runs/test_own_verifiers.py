"""A verifier of a site's own, installed as a distribution and named in evalkit.toml: nothing of evalkit is edited."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from evalkit.review import SMEReviewHelper

MODULE = """
from evalkit.issue import Issue, IssueSeverity

class MicroscopyVerifier:
    agent = "ACME"

    def validate(self, classification, bundle):
        return [
            Issue.create("ACME", "ACME-MICROSCOPY", IssueSeverity.MAJOR, "Microscopy is reported.", page=page.page_num)
            for page in bundle.pages if "icroscopic" in page.text
        ]

    def questions(self, classification, bundle, pages=None):
        return []

    def read(self, answers):
        return []
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder into which pip has installed the verifier's wheel."""
    wheel, info = tmp_path / "acme_rules-1.0-py3-none-any.whl", "acme_rules-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("acme_rules.py", MODULE)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        entry_point = "microscopy = acme_rules:MicroscopyVerifier"
        archive.writestr(f"{info}/entry_points.txt", f"[evalkit.verifiers]\n{entry_point}\n")
        archive.writestr(f"{info}/RECORD", f"acme_rules.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    folder = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", folder, wheel]
    subprocess.run(command, check=True)
    return folder


def evalkit_run(words: list[str], cwd: Path, *folders: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([*map(str, folders), *sys.path])
    command = [sys.executable, "-m", "evalkit", *words]
    return subprocess.run(
        command, cwd=cwd, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


def test_own_verifier_raises_an_issue_in_a_run(samples: Path, site: Path, tmp_path: Path) -> None:
    words, folder = ["run", str(samples / "pathology_report.pdf")], tmp_path / "work"
    folder.mkdir()
    before = evalkit_run(words, folder)
    assert before.returncode == 0, before.stderr
    result_file = folder / "output" / "results" / "pathology_report.json"
    plain = json.loads(result_file.read_text())

    (folder / "evalkit.toml").write_text('verifiers = ["microscopy"]\n')
    missing = evalkit_run(words, folder)
    assert (missing.returncode, "no installed distribution offers it" in missing.stderr) == (2, True)

    after = evalkit_run(words, folder, site)
    assert after.returncode == 0, after.stderr
    verified = json.loads(result_file.read_text())
    assert (plain["decision"], verified["decision"]) == ("AUTO_ACCEPT", "ESCALATE_TO_SME")
    assert plain["fingerprint"] != verified["fingerprint"]
    (version,) = verified["versions"]["own_verifiers"]
    assert (version["name"], version["version"]) == ("microscopy", "1.0")
    assert {issue["code"] for issue in verified["issues"]} == {"ACME-MICROSCOPY"}

    packet = SMEReviewHelper(folder / "output", reviewer="dr_lee").load_packet("pathology_report")
    assert {issue.agent for issue in packet.issues} == {"ACME"}
    doctor = evalkit_run(["doctor"], folder, site)
    assert "ACME, version 1.0" in doctor.stdout
