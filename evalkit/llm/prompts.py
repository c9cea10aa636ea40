"""Prompt files: fill in variables, and fence quoted documents and answers.

A prompt file is a ``string.Template``: ``${name}`` is a variable, ``$$`` a dollar sign. Missing and unknown variables
are errors. The document's text comes first in every prompt, byte for byte equal for all roles. It is fenced, because
document text is data, never an instruction.

A site's own prompts (setting ``prompts_folder``) replace the shipped ones of the same names, with the same variables.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from evalkit.core.safe_io import read_regular_file
from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.errors import UsageError
from evalkit.store import encode_canonical_json

#: A site's own prompts by name, in this task and those it starts.
_OWN_PROMPTS: ContextVar[Mapping[str, str]] = ContextVar("own prompts", default={})  # noqa: B039 - never changed


def list_prompt_names() -> list[str]:
    """List the names of the prompt files without ``.txt``, sorted."""
    return sorted(path.stem for path in _find_prompts_folder().glob("*.txt"))


def fill_prompt_template(prompt_name: str, **variables: str) -> str:
    """Return ``prompts/{prompt_name}.txt`` with its variables filled in.

    UsageError PROMPT-VARIABLES if variables are missing or unknown, PROMPT-MISSING if there is no such file.
    """
    template, declared_names = _parse_template(_OWN_PROMPTS.get().get(prompt_name) or _read_shipped_prompt(prompt_name))
    if mismatched_names := sorted(declared_names ^ variables.keys()):
        raise UsageError(
            f"prompt {prompt_name}: these variables are missing or unknown: {', '.join(mismatched_names)}",
            code="PROMPT-VARIABLES",
            remedy=f"Pass exactly the variables that the prompt file declares: {', '.join(sorted(declared_names)) or 'none'}.",
        )
    return template.substitute(variables)


def describe_pictures(prompt_name: str, page_numbers: Sequence[int]) -> str:
    """Return the prompt text about the page images; empty if none are sent."""
    page_list = ", ".join(f"page {page_number}" for page_number in page_numbers)
    return "\n" + fill_prompt_template(prompt_name, pages=page_list) if page_numbers else ""


def compute_prompt_versions(prompts_folder: str | None = None) -> dict[str, str]:
    """Return each prompt's version by name: 12 hex digits of its SHA-256.

    ``prompts_folder``: folder with a site's own prompts; UsageError as for ``load_own_prompts``.
    """
    prompts = {name: _read_shipped_prompt(name) for name in list_prompt_names()} | load_own_prompts(prompts_folder)
    return {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in prompts.items()}


@contextmanager
def use_own_prompts(prompts_folder: str | None) -> Iterator[None]:
    """Use the prompts in a site's folder in this task and in tasks it starts."""
    token = _OWN_PROMPTS.set(load_own_prompts(prompts_folder))
    try:
        yield
    finally:
        _OWN_PROMPTS.reset(token)


@cache
def load_own_prompts(prompts_folder: str | None) -> dict[str, str]:
    """Load a site's own prompts by name; none without a folder.

    UsageError PROMPT-FOLDER if the folder or a file cannot be read or no file is a prompt, PROMPT-MISSING if a file has
    another name than the shipped prompts, PROMPT-VARIABLES if it has other variables.
    """
    if prompts_folder is None:
        return {}
    try:
        texts = {path.stem: read_regular_file(path).decode() for path in sorted(Path(prompts_folder).glob("*.txt"))}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a file is not UTF-8 text"
        raise _create_folder_error(f"{prompts_folder} cannot be read: {reason}") from error
    if not texts:
        raise _create_folder_error(f"{prompts_folder} holds no prompt, a file whose name ends with .txt")
    for name, text in texts.items():
        (template, own_names), (_, shipped_names) = _parse_template(text), _parse_template(_read_shipped_prompt(name))
        if not template.is_valid():
            raise _create_folder_error(f"{prompts_folder}/{name}.txt has a $ that begins no variable; write it $$")
        if own_names != shipped_names:
            raise UsageError(
                f"{prompts_folder}/{name}.txt has other variables than the prompt it replaces: "
                f"{', '.join(sorted(own_names ^ shipped_names))}",
                code="PROMPT-VARIABLES",
                remedy=f"Use each of these once or more, and no other: {', '.join(sorted(shipped_names)) or 'none'}.",
            )
    return texts


def _create_folder_error(problem: str) -> UsageError:
    return UsageError(
        problem,
        code="PROMPT-FOLDER",
        remedy="Correct the setting prompts_folder, or leave it out: `evalkit docs models`.",
    )


def fence_document(bundle: DocumentBundle, pages: Iterable[Page] | None = None) -> str:
    """Return the pages' numbered paragraphs between fence marks.

    ``pages``: default: all pages. The marks contain a part of the document's hash, so that its text cannot forge them. A
    page begins with its mark, which names a status other than text, and ends at the next mark.
    """
    fence_id = hashlib.sha256(f"fence:{bundle.sha256}".encode()).hexdigest()[:12]
    fenced_pages = [
        f"<page-{fence_id} {page.page_num}{'' if page.status is PageStatus.TEXT else f' {page.status.value}'}>\n{_number_paragraphs(page)}"
        for page in (bundle.pages if pages is None else pages)
    ]
    return "\n".join([f"<document-{fence_id} pages={bundle.total_pages}>", *fenced_pages, f"</document-{fence_id}>"])


def _number_paragraphs(page: Page) -> str:
    return "\n".join(f"{number}|{paragraph}" for number, paragraph in enumerate(page.paragraphs, 1))


def fence_model_output(bundle: DocumentBundle, model_output: Any, tag_name: str = "classification") -> str:
    """Return a model's earlier output as JSON between fence marks."""
    return fence_json(model_output, tag_name, bundle.sha256)


def fence_json(json_value: Any, tag_name: str, fence_seed: str) -> str:
    """Return a value as JSON between fence marks that the value cannot imitate.

    The marks contain a part of the hash of the JSON and ``fence_seed``, such as the document's hash.
    """
    return fence_text(dump_compact_json(json_value), tag_name, fence_seed)


def fence_text(text: str, tag_name: str, fence_seed: str) -> str:
    """Return a text between fence marks that the text cannot imitate."""
    # Other marks than the document's: the model that wrote the text has read those.
    fence_id = hashlib.sha256(f"fence:{fence_seed}:{text}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"<{tag_name}-{fence_id}>\n{text}\n</{tag_name}-{fence_id}>"


def dump_compact_json(json_value: Any) -> str:
    """Return a value as compact JSON; equal values give equal text."""
    return encode_canonical_json(json_value).decode()


@cache
def _find_prompts_folder() -> Path:
    packaged_folder = Path(str(files("evalkit"))) / "_prompts"  # in a wheel; next to the package in a checkout
    return packaged_folder if packaged_folder.is_dir() else Path(__file__).parents[2] / "prompts"


@cache
def _parse_template(text: str) -> tuple[Template, frozenset[str]]:
    template = Template(text)
    return template, frozenset(template.get_identifiers())


@cache
def _read_shipped_prompt(prompt_name: str) -> str:
    path = _find_prompts_folder() / f"{prompt_name}.txt"
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise UsageError(
            f"prompt {prompt_name} does not exist",
            code="PROMPT-MISSING",
            remedy=f"Use one of {', '.join(list_prompt_names())}.",
        ) from error
