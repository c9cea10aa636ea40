"""The registry of kinds of case: complete, and the only place that asks for a kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import evalkit.review
from evalkit.review import SMEPacket
from evalkit.review.case import ReviewCase
from evalkit.review.case_files import read_packet
from evalkit.review.ground_truth import GroundTruthRecord, Review
from evalkit.review.kinds import CASE_KINDS, StoredPacket, find_case_kind, get_packet_class, list_document_case_ids
from evalkit.review.submission import Correction

FOLDER = Path(evalkit.review.__file__).parent


def all_subclasses(base: type) -> Iterator[type]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from all_subclasses(subclass)


def test_every_packet_class_has_a_kind_and_every_kind_a_packet() -> None:
    packet_classes = {kind.packet_class for kind in CASE_KINDS.values()}
    assert packet_classes == set(all_subclasses(SMEPacket))
    assert packet_classes == set(get_args(StoredPacket.model_fields["root"].annotation))
    for name, kind in CASE_KINDS.items():
        assert get_args(kind.packet_class.model_fields["kind"].annotation) == (name,)
        assert kind.packet_class.model_fields["kind"].default == name
        assert not getattr(kind.case_class, "__abstractmethods__", ()), name


def test_every_case_class_and_correction_belongs_to_one_kind() -> None:
    for base, attribute in ((ReviewCase, "case_class"), (Correction, "correction_class")):
        assert sorted(getattr(kind, attribute).__name__ for kind in CASE_KINDS.values()) == sorted(
            subclass.__name__ for subclass in all_subclasses(base)
        )
    for kind in CASE_KINDS.values():
        empty = kind.correction_class()
        assert not empty.is_given
        assert not empty.is_change


def test_the_id_of_a_case_tells_its_kind() -> None:
    suffixes = [kind.case_id_suffix for kind in CASE_KINDS.values()]
    assert len(set(suffixes)) == len(suffixes)
    for kind in CASE_KINDS.values():
        for ending in ("", ".second", ".adjudication"):
            assert find_case_kind("scan" + kind.case_id_suffix + ending) is kind
    assert list_document_case_ids("scan")[:2] == ("scan", "scan.extraction")


def test_a_packet_without_a_kind_is_a_classification(build: Any, workspace: Any) -> None:
    packet = workspace.publish(build.single("Other"), [build.issue()])
    name = "sme_packets/sme_packet_doc2_6.json"
    stored = workspace.files.read_json(name)
    del stored["kind"]
    workspace.files.write_json(name, stored)
    assert read_packet(workspace.files, "doc2_6") == packet
    assert get_packet_class({"kind": ["no", "kind"]}) is CASE_KINDS["classification"].packet_class


def modules_outside_the_kinds() -> list[Path]:
    return [path for path in FOLDER.rglob("*.py") if path.parent.name != "kinds"]


@pytest.mark.parametrize("path", modules_outside_the_kinds(), ids=lambda path: path.stem)
def test_only_the_kinds_ask_for_a_kind(path: Path) -> None:
    kind_classes = {
        subclass.__name__
        for base in (SMEPacket, ReviewCase, Correction, GroundTruthRecord, Review)
        for subclass in all_subclasses(base)
    }
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare):
            literals = {inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)}
            assert not literals & CASE_KINDS.keys(), f"{path.name}:{node.lineno} compares a kind"
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"isinstance", "issubclass", "type"}:
            names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
            assert not names & kind_classes, f"{path.name}:{node.lineno} asks for the class of a kind"
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "endswith":
            names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
            assert not names & {"EXTRACTION_SUFFIX", "TEMPLATE_CASE_SUFFIX"}, f"{path.name}:{node.lineno}"
