"""What others rely on, collected from the program itself: schemas, commands, settings, imports, database_tables, widgets, requests.

``python tests/contract/surface.py`` (with ``PYTHONPATH=tests``) writes it anew into ``tests/contract/frozen/``; a commit
that changes a line there names it.
"""

from __future__ import annotations

import enum
import hashlib
import importlib
import inspect
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_origin

import ipywidgets
import pytest
import sqlalchemy as sa
import typer
from commands import evalkit_command
from pydantic import BaseModel
from samples.demo_runs import PATIENT_SALT, read_output_files, run_samples
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable
from system.runs.live import MODEL, serve_model

import evalkit
from evalkit.cli import app
from evalkit.documents.ocr import resolve_ocr_engine
from evalkit.llm.json_schema import build_inlined_json_schema as flat_schema
from evalkit.llm.model import Question
from evalkit.samples import write_demo_folder
from evalkit.settings import Settings
from evalkit.store import database_tables

FROZEN = Path(__file__).parent / "frozen"
ROOT = Path(__file__).parents[2]
PROMISED = (
    *("evalkit", "evalkit.issue", "evalkit.errors", "evalkit.settings", "evalkit.review", "evalkit.evaluation"),
    *(f"evalkit.classification.{name}" for name in ("schema", "v1_schema", "v2_consistency", "v3_traps")),
    *(f"evalkit.classification.{name}" for name in ("v4_evidence_quality", "v5_arbiter", "autofix", "orchestrator")),
)
"""Ruling 36's import paths."""
ASKED = ("classifier", "verifier", "V2", "V3", "V4")
"""The roles that the test's server answers as the embedded model would; others get an empty object."""
SPECIFIED = re.compile(
    r"V[1-5]\w+|AutoFixEngine|RetryOrchestrator|SMEPacketGenerator|SMEReviewHelper|Issue|IssueSeverity|Verdict|Decision|"
    r"Settings|\w*Error|ClassificationOutput|Segment|Evidence|DocumentType|PresenceLevel|export_ground_truth|view"
)
"""What the contract names of their contents; of evalkit itself it is all."""


def schemas() -> dict[str, Any]:
    """Every ``evalkit schema``, by a process of its own: which models are built already decides what is inlined."""
    program = (
        "import json; from commands import evalkit_command\n"
        "names = evalkit_command('schema').stdout.split()\n"
        "print(json.dumps({name: json.loads(evalkit_command('schema', name).stdout) for name in names}))"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def commands() -> dict[str, Any]:
    """Every command with its arguments and flags."""
    return dict(_commands(typer.main.get_command(app), ""))


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(inner, f"{path} {name}".strip())
    if path:
        yield path, [_parameter(parameter) for parameter in command.params]


def _parameter(parameter: Any) -> dict[str, Any]:
    annotation = parameter.type_descriptor.annotation
    is_choice = get_origin(annotation) is Literal
    return {
        "names": [*parameter.opts, *parameter.secondary_opts],
        "type": str(annotation if is_choice else getattr(annotation, "__name__", annotation)),
        "metavar": parameter.metavar,
        "required": parameter.required,
        "several": parameter.multiple or parameter.nargs != 1,
        "default": None if callable(parameter.default) else repr(parameter.default),
        "variable": parameter.envvar,
    }


def settings() -> dict[str, str]:
    """Every setting with its default, by the name of its environment variable."""
    return dict(_settings(Settings(), "EVALKIT_"))


def _settings(section: BaseModel, prefix: str) -> Iterator[tuple[str, str]]:
    for name in type(section).model_fields:
        setting = getattr(section, name)
        if isinstance(setting, BaseModel):
            yield from _settings(setting, f"{prefix}{name.upper()}__")
        else:
            yield f"{prefix}{name.upper()}", str(setting)


def imports() -> dict[str, dict[str, Any]]:
    """The promised modules' names, with the signatures of those that the contract describes."""
    return {path: _names(importlib.import_module(path)) for path in PROMISED}


def _names(module: Any) -> dict[str, Any]:
    names = getattr(module, "__all__", None) or vars(module)
    promised = [name for name in names if module is evalkit or SPECIFIED.fullmatch(name)]
    return {name: _described(getattr(module, name)) for name in sorted(promised) if _is_own(module, name)}


def _is_own(module: Any, name: str) -> bool:
    return hasattr(module, "__all__") or getattr(vars(module)[name], "__module__", None) == module.__name__


def _described(found: Any) -> Any:
    if not inspect.isclass(found):
        return _signature(found)
    if issubclass(found, enum.Enum):
        return [member.value for member in found]
    if issubclass(found, BaseModel):
        return sorted(found.model_fields)
    methods = inspect.getmembers(found, callable)
    own = {name: _signature(method) for name, method in methods if name[0] != "_" and name not in dir(Exception)}
    return {"": _signature(found), **own}


def _signature(found: Callable[..., Any]) -> str:
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return "(…)"
    return ", ".join(
        f"{'**' if one.kind is one.VAR_KEYWORD else '*' if one.kind is one.VAR_POSITIONAL else ''}{one.name}"
        f"{'' if one.default is one.empty else '='}"
        for one in parameters
    )


def sql() -> dict[str, list[str]]:
    """Tables, columns and indexes in each of the two databases, as they are made."""
    dialects = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}
    return {
        name: sorted(
            " ".join(str(made.compile(dialect=dialect)).split())
            for table in database_tables.metadata.sorted_tables
            for made in (CreateTable(table), *map(CreateIndex, table.indexes))
            if made.element is table or _is_made(made.element, dialect)
        )
        for name, dialect in dialects.items()
    }


def _is_made(index: sa.Index, dialect: sa.Dialect) -> bool:
    condition = index._ddl_if
    return condition is None or condition.dialect == dialect.name


def widgets() -> dict[str, Any]:
    """Each widget's traits; the messages that its script sends and those that it is sent."""
    found: dict[str, Any] = {}
    for path in sorted((ROOT / "widgets").glob("*.py")):
        module = importlib.import_module(f"widgets.{path.stem}")
        for name, widget in vars(module).items():
            if (
                inspect.isclass(widget)
                and issubclass(widget, ipywidgets.DOMWidget)
                and widget.__module__ == module.__name__
            ):
                own = set(widget.class_traits(sync=True)) - set(ipywidgets.DOMWidget.class_traits(sync=True))
                found[f"{path.stem}.{name}"] = sorted(own)
    for path in sorted((ROOT / "widgets").glob("*.js")):
        script = path.read_text()
        found[path.name] = {
            "actions": sorted(set(re.findall(r"action: \"(\w+)\"", script))),
            "sent": sorted(set(re.findall(r"\bsend\w*\(\"(\w+)\"", script))),
            "traits": sorted(set(re.findall(r"model\.get\(\"(\w+)\"\)", script))),
            "kinds": sorted(set(re.findall(r"kind === \"(\w+)\"", script))),
        }
    return found


def requests() -> dict[str, Any]:
    """The journal's keys of all that a language model is asked about one document, and the shapes of every answer."""
    return {"keys": {profile: _journal_keys(profile) for profile in ("full", "lean")}, "answers": _answers()}


def _journal_keys(profile: str) -> list[str]:
    """A key digests model, role, prompt, schema and pictures."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        documents, output = Path(folder) / "samples", Path(folder) / "output"
        write_demo_folder(documents)
        with serve_model(output, instead=lambda call: None if call.role in ASKED else "{}") as server:
            for name, text in {**server.environment, "EVALKIT_PROFILE": profile}.items():
                patch.setenv(name, text)
            for command in ("run", "extract"):
                path = documents / "pathology_report.pdf"
                evalkit_command(command, path, "--output", output, "--model", f"gemini:{MODEL}")
        with sqlite3.connect(output / "evalkit.sqlite") as database:
            return sorted(" ".join(row) for row in database.execute("SELECT DISTINCT role, question FROM calls"))


def _answers() -> dict[str, Any]:
    for path in sorted((ROOT / "evalkit").rglob("*.py")):
        if "Question[" in path.read_text():
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return {
        question.__name__: _shape(question.answer_type)
        for question in sorted(_subclasses(Question), key=lambda question: question.__name__)
        if hasattr(question, "answer_type") and question.__module__.startswith("evalkit.")
    }


def _shape(answer_type: type[BaseModel]) -> Any:
    try:
        return flat_schema(answer_type)
    except ValueError:  # such a question writes its schema itself
        return answer_type.model_json_schema()


def _subclasses(base: type) -> Iterator[Any]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def demo() -> dict[str, str]:
    """The demo's documents and the files that a run over them leaves, drawn and run anew."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALKIT_PATIENT_SALT", PATIENT_SALT)
        documents, output = Path(name) / "samples", Path(name) / "output"
        write_demo_folder(documents)
        run_samples(documents, output)
        return describe_demo(documents, output)


def describe_demo(documents: Path, output: Path) -> dict[str, str]:
    """The digests of the demo's documents and of the files that a run over them left, clocks apart.

    Of recognised pages the engine decides, so that its version stands in the place of their folder's.
    """
    drawn = {
        f"samples/{path.relative_to(documents)}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(documents.rglob("*"))
        if path.is_file()
    }
    left = {
        path: _digest(_placeless(content, str(documents.parent)))
        for path, content in read_output_files(output).items()
        if not path.startswith("runs/")  # the run's name has the day
    }
    found = resolve_ocr_engine()
    return {"engine": found.name_and_version if found else "none", **drawn, **left}


def _placeless(content: Any, folder: str) -> Any:
    """Where the documents lay is no part of what was made of them."""
    return json.loads(json.dumps(content).replace(folder, "FOLDER"))


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


SURFACES: dict[str, Callable[[], Any]] = {
    surface.__name__: surface for surface in (schemas, commands, settings, imports, sql, widgets, requests, demo)
}


def frozen_text(name: str) -> str:
    """The surface as its file has it."""
    return json.dumps(SURFACES[name](), indent=1, ensure_ascii=False, sort_keys=name != "commands") + "\n"


if __name__ == "__main__":
    for surface in sys.argv[1:] or SURFACES:
        (FROZEN / f"{surface}.json").write_text(frozen_text(surface))
