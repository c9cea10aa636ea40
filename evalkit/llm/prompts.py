"""Fill in prompt files, and fence quoted documents and answers within prompts.

A prompt file is a ``string.Template``: ``${name}`` is a variable, ``$$`` a dollar sign. Missing and unknown variables
are errors. The document's text comes first in every prompt, byte for byte equal for all roles. It is fenced, because
document text is data, never an instruction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from evalkit.documents.bundle import DocumentBundle, Page, PageStatus
from evalkit.errors import UsageError
from evalkit.store import encode_canonical_json


def list_prompt_names() -> list[str]:
    """List the names of the prompt files without ``.txt``, sorted."""
    return sorted(path.stem for path in _find_prompts_folder().glob("*.txt"))


def fill_prompt_template(prompt_name: str, **variables: str) -> str:
    """Return ``prompts/{prompt_name}.txt`` with its variables filled in.

    UsageError PROMPT-VARIABLES if variables are missing or unknown, PROMPT-MISSING if there is no such file.
    """
    template, declared_names = _load_template(prompt_name)
    if mismatched_names := sorted(declared_names ^ variables.keys()):
        raise UsageError(
            f"prompt {prompt_name}: these variables are missing or unknown: {', '.join(mismatched_names)}",
            code="PROMPT-VARIABLES",
            remedy=f"Pass exactly the variables that the prompt file declares: {', '.join(sorted(declared_names)) or 'none'}.",
        )
    return template.substitute(variables)


def describe_pictures(prompt_name: str, page_numbers: Sequence[int]) -> str:
    """Return the named prompt about the pages whose pictures are sent; empty if none are."""
    page_list = ", ".join(f"page {page_number}" for page_number in page_numbers)
    return "\n" + fill_prompt_template(prompt_name, pages=page_list) if page_numbers else ""


def compute_prompt_versions() -> dict[str, str]:
    """Return each prompt file's version by name: 12 hex digits of its SHA-256."""
    return {name: hashlib.sha256(_read_prompt_file(name).encode()).hexdigest()[:12] for name in list_prompt_names()}


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
    """Return a model's output about the document as JSON between fence marks."""
    return fence_json(model_output, tag_name, bundle.sha256)


def fence_json(json_value: Any, tag_name: str, fence_seed: str) -> str:
    """Return a value as JSON between fence marks, which the value cannot forge.

    The marks contain a part of the hash of the JSON and ``fence_seed``, such as the document's hash.
    """
    return fence_text(dump_compact_json(json_value), tag_name, fence_seed)


def fence_text(text: str, tag_name: str, fence_seed: str) -> str:
    """Return a text between fence marks, which the text cannot forge."""
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
def _load_template(prompt_name: str) -> tuple[Template, frozenset[str]]:
    template = Template(_read_prompt_file(prompt_name))
    return template, frozenset(template.get_identifiers())


@cache
def _read_prompt_file(prompt_name: str) -> str:
    path = _find_prompts_folder() / f"{prompt_name}.txt"
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise UsageError(
            f"prompt {prompt_name} does not exist",
            code="PROMPT-MISSING",
            remedy=f"Use one of {', '.join(list_prompt_names())}.",
        ) from error
