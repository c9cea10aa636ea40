"""Write the generated blocks of the README and the documents from the program itself.

``PYTHONPATH=.:tests python tests/contract/generate_docs.py`` rewrites every block between ``<!-- generated: NAME -->``
and ``<!-- end: NAME -->``; a test fails while a block differs from what this prints.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from pydantic import BaseModel

from evalkit import errors
from evalkit.classification.v5_arbiter import DECISION_TABLE
from evalkit.cli import app
from evalkit.llm.model_families import Fact, load_model_family_table
from evalkit.settings import Settings

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "tests/benchmarks/figures.toml"
PAGES = (ROOT / "README.md", *sorted((ROOT / "evalkit/docs").glob("*.md")))
_BLOCK = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end: \2 -->)", re.DOTALL)
_SEVERITIES = ("BLOCKER", "MAJOR", "MINOR", "depends")
"""Worst first; ``depends``: on a row of a table, or on what was found."""
_FORM_SEVERITIES = {"ERROR": "BLOCKER", "WARNING": "MAJOR", "INFO": "MINOR"}
"""Specification 003's words for the severities of a form's issues."""
_ISSUE_CODE = re.compile(r"(V[1-4]|READER|CLASSIFIER|EXTRACTOR|EVALUATOR|GRADER|EXTRACTION|…)-[A-Z0-9-]+")
_ERROR_CODE = re.compile(r"[A-Z]{3,}(-[A-Z]+)*")


def write_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Format a Markdown table; bars inside cells are escaped."""
    lines = [list(header), *rows]
    text = ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(lines[0]), *text[1:]])


# ---------------------------------------------------------------------------------------------------------- settings


def settings_tables() -> str:
    """Describe every setting by section of ``evalkit.toml``: name, variable, default and meaning."""
    sections = dict(_iterate_sections(Settings, Settings(), "", "EVALKIT_"))
    return "\n\n".join(
        (f"### `[{name}]`\n\n{_show_purpose(model)}\n\n" if name else "")
        + write_table(("setting", "variable", "default", "meaning"), rows)
        for name, (model, rows) in sections.items()
    )


def _iterate_sections(
    model: type[BaseModel], defaults: BaseModel, name: str, prefix: str
) -> Iterator[tuple[str, tuple[type[BaseModel], list[tuple[str, ...]]]]]:
    meanings = _read_field_docs(model)
    values = {field: getattr(defaults, field) for field in model.model_fields}
    rows = [
        (
            f"`{field}`",
            f"`{prefix}{field.upper()}`",
            _show_default(value),
            meanings.get(field, "") + _show_allowed_values(model.model_fields[field].annotation),
        )
        for field, value in values.items()
        if not isinstance(value, BaseModel)
    ]
    if rows:
        yield name, (model, rows)
    for field, value in values.items():
        if isinstance(value, BaseModel):
            path = f"{name}.{field}" if name else field
            yield from _iterate_sections(type(value), value, path, f"{prefix}{field.upper()}__")


def _show_purpose(section: type[BaseModel]) -> str:
    purpose = _as_toml(_plain(inspect.getdoc(section) or "").partition(": ")[2])
    return purpose[:1].upper() + purpose[1:]


def _show_default(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool | tuple | dict | str):  # as TOML writes them
        return f"`{json.dumps(value)}`"
    return f"`{value}`"


def _show_allowed_values(annotation: Any) -> str:
    """Show the words that a setting, or each entry of its table, may be.

    >>> _show_allowed_values(dict[str, Literal["one", "several"]]), _show_allowed_values(int)
    (' Allowed: `one`, `several`.', '')
    """
    for part in (annotation, *get_args(annotation)):
        if get_origin(part) is Literal:
            return f" Allowed: {', '.join(f'`{value}`' for value in get_args(part))}."
    return ""


def _read_field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Read the strings below a model's fields."""
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    pairs = zip(definition.body, definition.body[1:], strict=False)
    return {
        field.target.id: _as_toml(_plain(doc.value.value))
        for field, doc in pairs
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(doc, ast.Expr)
        and isinstance(doc.value, ast.Constant)
    }


def _plain(doc: str) -> str:
    return " ".join(doc.replace("``", "`").split())


def _hide_placeholders(message: str) -> str:
    """Replace the names of facts that are filled in later.

    >>> _hide_placeholders("{name} may not be read or written")
    '… may not be read or written'
    """
    return re.sub(r"\{\w+\}", "…", message)


def _as_toml(meaning: str) -> str:
    """Replace the words of Python by those of ``evalkit.toml``.

    >>> _as_toml("False: one. None: that of the folder.")
    '`false`: one. Not set: that of the folder.'
    """
    return meaning.replace("False:", "`false`:").replace("True:", "`true`:").replace("None:", "Not set:")


# ---------------------------------------------------------------------------------------------------------- commands


def commands_table() -> str:
    """List every command with the first sentence of its help."""
    return write_table(("command", "does"), _iterate_commands(typer.main.get_command(app), "evalkit"))


def _iterate_commands(command: Any, path: str) -> Iterator[tuple[str, str]]:
    for name, inner in getattr(command, "commands", {}).items():
        if hasattr(inner, "commands"):
            yield from _iterate_commands(inner, f"{path} {name}")
        else:
            arguments = "".join(f" {_show_argument(one)}" for one in inner.params if one.param_type_name == "argument")
            yield f"`{path} {name}{arguments}`", _plain((inner.help or "").partition("\n\n")[0])


def _show_argument(argument: Any) -> str:
    name = (argument.metavar or argument.name.upper()).strip("[]…") + ("…" if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


# ------------------------------------------------------------------------------------------------ decisions and codes


def decision_table() -> str:
    """Show V5's table: the first row that applies decides."""
    rows = ((str(number), row.decision.value, row.reason) for number, row in enumerate(DECISION_TABLE, 1))
    return write_table(("rule", "decision", "because"), rows)


def error_tree() -> str:
    """Show the error classes by what the caller can do next, with their exit statuses."""
    drawing = inspect.getdoc(errors).partition("::\n\n")[2].partition("\n\nEvery message")[0]  # type: ignore[union-attr]
    return "```text\n" + textwrap.dedent(drawing) + "\n```"


def error_table() -> str:
    """List every error code with what is wrong and what to do: one row for each remedy of a code."""
    messages: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for tree in _product_trees():
        functions = _map_nodes_to_functions(tree)
        for node in ast.walk(tree):
            for code, message, remedy in _iterate_remedies(node, functions.get(node)):
                known = messages[code][remedy]
                sentence = _hide_placeholders(message)
                known += [sentence] if sentence and sentence not in known else []
    return write_table(
        ("code", "what is wrong", "what to do"),
        (
            (f"`{code}`", "<br>".join(messages[code][remedy]) or "…", remedy or "as the message says")
            for code in sorted(messages)
            for remedy in sorted(messages[code])
            if remedy or len(messages[code]) == 1
        ),
    )


def _map_nodes_to_functions(tree: ast.Module) -> dict[ast.AST, ast.FunctionDef]:
    """Map each node inside a function to the innermost one."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]  # outer ones come first
    return {node: function for function in functions for node in ast.walk(function)}


def _iterate_remedies(node: ast.AST, function: ast.FunctionDef | None) -> Iterator[tuple[str, str, str]]:
    """Find the codes of an error with its message and remedy; what is not known is empty."""
    if isinstance(node, ast.Call):
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if "code" in keywords and "remedy" in keywords:
            message = _find_sentence(node.args, function)
            remedies = list(_read_texts(keywords["remedy"])) or [""]
            for code in filter(_ERROR_CODE.fullmatch, _read_texts(keywords["code"])):
                yield from ((code, message, remedy) for remedy in remedies)
        else:
            yield from _iterate_row_remedies(node.args)
    elif isinstance(node, ast.Tuple):
        yield from _iterate_row_remedies(node.elts)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(value, ast.Call) and key is not None:
                yield from _iterate_row_remedies([key, *value.args])


def _find_sentence(cells: Iterable[ast.expr], function: ast.FunctionDef | None = None) -> str:
    """Find the first text of several words."""
    return next((text for cell in cells for text in _read_texts(cell, function) if " " in text), "")


def _iterate_row_remedies(cells: list[ast.expr]) -> Iterator[tuple[str, str, str]]:
    """Read a table's row: a code somewhere, perhaps a message, a sentence as remedy at its end."""
    texts = [" ".join(_read_texts(cell)) for cell in cells]
    codes = [text for text in texts if _ERROR_CODE.fullmatch(text) and "-" in text]
    remedies = [text for text in texts if re.fullmatch(r"[A-Z].* .*\.", text)]
    if len(codes) == 1 and remedies and not _ISSUE_CODE.fullmatch(codes[0]):
        message = next((text for text in texts if " " in text and text != remedies[-1]), "")
        yield codes[0], message, remedies[-1]


def issue_table() -> str:
    """List every issue code with its severities and its longest message, else the sentence that the screen shows."""
    found: dict[str, tuple[set[str], list[str]]] = defaultdict(lambda: (set(), []))
    for tree in _product_trees():
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                for code, severities, message in _iterate_issues(call, function, tree):
                    found[code][0].update(severities)
                    found[code][1].append(message)
    rows = (
        (
            f"`{code}`",
            ", ".join(sorted(severities, key=_SEVERITIES.index)) or "depends",
            max(messages, key=lambda message: (len(message), message)) or _read_screen_sentence(code),
        )
        for code, (severities, messages) in sorted(found.items())
    )
    return write_table(("code", "severity", "message"), rows)


def _read_screen_sentence(code: str) -> str:
    rows = tomllib.loads((ROOT / "evalkit/review/plain_sentences.toml").read_text())["sentence"]
    sentence = next((row["text"] for row in rows if row["code"] == code), "")
    return _hide_placeholders(sentence)


def _iterate_issues(
    call: ast.Call, function: ast.FunctionDef, tree: ast.Module
) -> Iterator[tuple[str, list[str], str]]:
    name = ast.unparse(call.func).rpartition(".")[2]
    if name == "FormIssue" and len(call.args) >= 3:
        severities = [_FORM_SEVERITIES[text] for text in _read_texts(call.args[0], function)]
        for kind in _read_texts(call.args[1], function):
            code = f"GRADER-{kind.upper().replace('_', '-')}"
            yield code, severities, next(_read_texts(call.args[2], function), "")
    elif name == "create" or re.search(r"(build|create)_\w*issue", name):
        texts = [list(_read_texts(cell, function)) for cell in call.args]
        positions = [at for at, cell in enumerate(texts) if any(map(_ISSUE_CODE.fullmatch, cell))]
        if not positions:
            return
        helpers = [helper for helper in ast.walk(tree) if isinstance(helper, ast.FunctionDef) and helper.name == name]
        severities = _read_severities(call.args[positions[0] + 1 :]) or _read_severities(helpers)
        messages = [text for cell in texts[positions[0] + 1 :] for text in cell if " " in text]
        for code in filter(_ISSUE_CODE.fullmatch, texts[positions[0]]):
            yield code, severities, messages[0] if messages else ""


def _read_severities(nodes: Iterable[ast.AST]) -> list[str]:
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    return [severity for severity in _SEVERITIES if severity in names] + ["depends"] * ("severity" in names)


@cache
def _product_trees() -> tuple[ast.Module, ...]:
    paths = [*sorted((ROOT / "evalkit").rglob("*.py")), *sorted((ROOT / "widgets").rglob("*.py"))]
    return tuple(ast.parse(path.read_text()) for path in paths)


@cache
def _constants() -> dict[str, ast.expr]:
    """Map the names of the product's module constants to their values, if a name is used once."""
    found: dict[str, list[ast.expr]] = defaultdict(list)
    for tree in _product_trees():
        for node in tree.body:
            for name, value in _iterate_assignments(node):
                found[name].append(value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _iterate_assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            if value is not None:
                yield name, value
        case ast.For(target=ast.Tuple(elts=targets), iter=ast.Tuple(elts=rows)):  # a table inside a function
            for row in rows:
                if isinstance(row, ast.Tuple):
                    yield from (
                        (target.id, cell)
                        for target, cell in zip(targets, row.elts, strict=False)
                        if isinstance(target, ast.Name)
                    )


def _read_texts(node: ast.expr, function: ast.FunctionDef | None = None) -> Iterator[str]:
    """Read the strings that an expression may become; what is only known at run time is ``…``."""
    match node:
        case ast.Constant(value=str(text)):
            yield _plain(text)
        case ast.JoinedStr(values=parts):
            pieces = [part.value if isinstance(part, ast.Constant) else "…" for part in parts]
            yield re.sub("…+", "…", _plain("".join(map(str, pieces))))
        case ast.IfExp(body=body, orelse=orelse):
            yield from _read_texts(body, function)
            yield from _read_texts(orelse, function)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            ends = ["…"] if isinstance(right, ast.IfExp) else list(_read_texts(right, function))[:1]
            yield _plain(" ".join([*list(_read_texts(left, function))[:1], *ends]))
        case ast.Name(id=name):
            yield from _read_named_texts(name, function)
        case ast.Subscript(value=ast.Name(id=name)):
            table = _constants().get(name)
            for value in table.values if isinstance(table, ast.Dict) else ():
                yield from _read_texts(value)
        case ast.Call(func=ast.Attribute(attr="render_message"), args=[default, *_]):
            yield from _read_texts(default, function)


def _read_named_texts(name: str, function: ast.FunctionDef | None) -> Iterator[str]:
    """Read the strings of a local variable, else of a constant; a name that stands for another name is not followed."""
    assignments = [pair for node in (ast.walk(function) if function else ()) for pair in _iterate_assignments(node)]
    values = [value for local, value in assignments if local == name] or [_constants().get(name)]
    for value in values:
        if value is not None and not isinstance(value, ast.Name | ast.BinOp):
            yield from _read_texts(value, function)


# ----------------------------------------------------------------------------------------------------------- figures


def figures_table(name: str) -> str:
    """Show one table of measured figures with its command, date and commit; a sentence is shown alone."""
    table = tomllib.loads(FIGURES.read_text())[name]
    if "sentence" in table:
        return textwrap.fill(table["sentence"], 125, break_long_words=False, break_on_hyphens=False)
    command = f"`{table['command']}`" + (f" (needs {table['needs']})" if "needs" in table else "")
    origin = f"Measured by {command}; recorded {table['date']} in commit `{table['commit']}`."
    return f"{write_table(table['columns'], table['rows'])}\n\n{origin}"


# ------------------------------------------------------------------------------------------------------------- models

_FACT_NAMES = ("temperature", "thinking", "images", "context", "output", "answers", "caching")


def model_family_table() -> str:
    """Describe the model families: for each fact its value and, in brackets, its page."""
    table = load_model_family_table()
    numbers = {name: number for number, name in enumerate(table.sources, 1)}
    rows = ((row.name, *(_show_fact(getattr(row, name), numbers) for name in _FACT_NAMES)) for row in table.families)
    pages = (f"{numbers[name]}. {page.address} ({page.as_of})" for name, page in table.sources.items())
    return (
        write_table(("models", *_FACT_NAMES), rows)
        + "\n\nPages, with the date of the page or of reading it:\n\n"
        + "\n".join(pages)
    )


def _show_fact(fact: Fact[Any] | None, numbers: dict[str, int]) -> str:
    if fact is None:
        return ""
    value = {True: "yes", False: "no"}.get(fact.value, fact.value) if isinstance(fact.value, bool) else fact.value
    shown = ", ".join(value) if isinstance(value, tuple) else f"{value:,}" if isinstance(value, int) else value
    return f"{shown} [{numbers[fact.source]}]"


def model_server_table() -> str:
    """Describe the servers with OpenAI's protocol: name, default address, key."""
    return write_table(
        ("`--model`", "what", "default address", "key"),
        (
            (f"`{name}:MODEL`", provider.title, f"`{provider.address.value}`", f"`{provider.key}`")
            for name, provider in load_model_family_table().providers.items()
            if provider.address
        ),
    )


GENERATORS: dict[str, Callable[[], str]] = {
    "settings": settings_tables,
    "model-families": model_family_table,
    "model-servers": model_server_table,
    "commands": commands_table,
    "decisions": decision_table,
    "error-classes": error_tree,
    "errors": error_table,
    "issues": issue_table,
}


def regenerate(text: str) -> str:
    """Return the page with every block as the program has it now."""

    def replace(block: re.Match[str]) -> str:
        name = block[2]
        content = figures_table(name.removeprefix("figures/")) if name.startswith("figures/") else GENERATORS[name]()
        return f"{block[1]}{content}\n{block[3]}"

    return _BLOCK.sub(replace, text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(regenerate(page.read_text()))
