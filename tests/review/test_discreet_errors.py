"""No error of a public function or method prints an object, whose words may be a patient's."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evalkit.grounding import QuoteLocator

SECRET = "Zorblatt"
PACKAGES = [
    "evalkit",
    "evalkit.documents",
    "evalkit.evaluation",
    "evalkit.evaluation.challenge",
    "evalkit.grounding",
    "evalkit.pipeline",
    "evalkit.pipeline.purge",
    "evalkit.review",
    "evalkit.review.attention_checks",
    "evalkit.samples",
    "evalkit.store",
]
#: What pydantic gives every record, and what would remove the test's own folder.
NOT_CALLED = {
    "close",
    "construct",
    "copy",
    "dict",
    "from_orm",
    "json",
    "parse_file",
    "parse_obj",
    "parse_raw",
    "remove_folder",
} | {
    *("schema", "schema_json", "update_forward_refs", "validate"),
}
#: Strings that errors may name: files, folders, ids, and what one chooses from.
MAY_BE_NAMED = {
    *(
        "a",
        "b",
        "case_id",
        "corrected_dominant_type",
        "limit",
        "classifications",
        "database",
        "doc_id",
        "doc_ids",
        "executor",
        "file_format",
        "file_name",
        "folder",
    ),
    *(
        "issue_id",
        "kinds",
        "level",
        "model",
        "name",
        "output",
        "output_folder",
        "path",
        "paths",
        "patients_file",
        "production",
    ),
    *(
        "production_path",
        "profile",
        "reader",
        "reviewer",
        "root",
        "settings",
        "subfolder",
        "target_id",
        "template",
        "to",
        "truth",
    ),
    *("types_file",),
}


def find_leaks(
    calls: Iterable[tuple[str, Callable[..., Any]]], values: Mapping[str, Any], suitable: Mapping[str, Any]
) -> list[str]:
    """Call each function with each value in each parameter's place, and name the errors that print the secret."""
    leaks = []
    for name, function in calls:
        parameters = [
            parameter
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        for parameter in parameters:
            for value_name, value in values.items():
                if isinstance(value, str) and parameter.name in MAY_BE_NAMED:
                    continue
                arguments = {
                    other.name: suitable.get(other.name)
                    for other in parameters
                    if other.default is inspect.Parameter.empty
                }
                arguments[parameter.name] = value
                positional = [arguments.pop(other.name) for other in parameters if other.kind == other.POSITIONAL_ONLY]
                try:
                    finish(function(*positional, **arguments))
                except Exception as error:  # noqa: BLE001 - which error it is says nothing here
                    if SECRET in "".join(traceback.format_exception(error)):
                        leaks.append(f"{name}({parameter.name}={value_name})")
    return leaks


def finish(returned: Any) -> None:
    """Do what a caller does with what was returned: some functions begin only then."""
    if inspect.iscoroutine(returned):
        asyncio.run(returned)
    elif isinstance(returned, Generator):
        list(returned)
    elif isinstance(returned, AbstractContextManager) and not isinstance(returned, Path):
        with returned:
            pass


def list_functions(package: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    module = import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            yield f"{package}.{name}", value


def list_methods(instance: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(type(instance)):
        if (
            name.startswith(("_", "model_"))
            or name in NOT_CALLED
            or not inspect.isroutine(getattr(type(instance), name))
        ):
            continue
        if inspect.isroutine(method := getattr(instance, name)):
            yield f"{type(instance).__name__}.{name}", method


@pytest.fixture
def case(workspace, build, open_tab, tmp_path, monkeypatch) -> dict[str, Any]:
    """A published and opened case about the secret, by the names of the parameters that it is suitable for."""
    monkeypatch.chdir(tmp_path)
    bundle = build.bundle([[f"Surgical pathology of {SECRET}", f"Diagnosis: {SECRET} has a carcinoma"]])
    answer = build.single("Pathology Report", 1, [(f"{SECRET} has a carcinoma", 1)])
    issue = build.issue(quote=f"{SECRET} has a carcinoma", message=f"not {SECRET}", segment_index=1, page=1)
    packet = workspace.publish(answer, [issue], bundle)
    tab = open_tab()
    return {
        "output": workspace.root,
        "output_folder": workspace.files,
        "index": workspace.index,
        "bundle": bundle,
        "classification": answer,
        "issue": issue,
        "issue_id": issue.issue_id,
        "packet": packet,
        "result": build.result(answer, [issue]),
        "case": tab.open_and_claim_case(packet.case_id),
        "tab": tab,
        "helper": workspace.helper("dr_kim"),
        "locator": QuoteLocator(bundle),
        "case_id": packet.case_id,
        "doc_id": packet.doc_id,
        "agrees": True,
        "document_type": "Pathology Report",
        "page": 1,
        "to": tmp_path / "export.jsonl",
    }


@pytest.fixture
def values(case) -> dict[str, Any]:
    return {
        "record": case["bundle"],
        "page": case["bundle"].pages[0],
        "issue": case["issue"],
        "packet": case["packet"],
        "records": [case["issue"]],
        "answer": {"segments": case["classification"].model_dump(mode="json")["segments"]},
        "table": pd.DataFrame({"quote": [SECRET]}),
        "text": f"{SECRET} has a carcinoma.\nNo metastasis.",
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_no_error_of_a_public_function_prints_an_object(package, case, values) -> None:
    assert find_leaks(list_functions(package), values, case) == []


@pytest.mark.parametrize(
    "name", ["helper", "tab", "case", "packet", "bundle", "issue", "locator", "output_folder", "index", "result"]
)
def test_no_error_of_a_public_method_prints_an_object(name, case, values) -> None:
    methods = list(list_methods(case[name]))
    assert methods or name == "result"
    assert find_leaks(methods, values, case) == []


def test_an_error_that_prints_an_object_is_seen(case, values) -> None:
    def look_up(issue: object, notes: str = "") -> None:
        {}[f"{issue}"]

    assert {"look_up(issue=issue)", "look_up(issue=text)"} <= {*find_leaks([("look_up", look_up)], values, case)}


def test_all_packages_with_public_names_are_tried() -> None:
    root = Path(import_module("evalkit").__file__).parent
    found = {
        ".".join(path.parent.relative_to(root.parent).parts)
        for path in root.rglob("__init__.py")
        if "__all__ = [" in path.read_text()
    }
    assert found - {"evalkit.cli"} == {*PACKAGES}
