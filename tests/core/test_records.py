"""A validation error names the place and the problem, never what stood there."""

from __future__ import annotations

import importlib
import pkgutil
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

import evalkit
from evalkit.core.records import DiscreetModel

WORD = "Zebrafish"
#: Of a site's own tables, the wrong value is named: no document's text ever comes there.
CONFIGURATION = {"BoundaryCue", "CueGroup", "DateRules", "DocumentTypeRecord", "StatementTemplate"}
_hostile_values = st.recursive(
    st.sampled_from([WORD, f"{WORD} Miller", f"\n{WORD}\x00", WORD * 50]),
    lambda inner: st.lists(inner, min_size=1, max_size=2) | st.fixed_dictionaries({"page": inner, "code": inner}),
    max_leaves=4,
)


def list_models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from list_models(model)


@pytest.fixture(scope="module")
def models() -> list[type[BaseModel]]:
    for module in pkgutil.walk_packages(evalkit.__path__, "evalkit."):
        if "serving" not in module.name and "__main__" not in module.name:
            importlib.import_module(module.name)
    return [
        model
        for model in list_models(BaseModel)
        if model.__module__.startswith("evalkit.") and not model.__qualname__.startswith("RootModel[")
    ]


def test_every_model_hides_its_input(models: list[type[BaseModel]]) -> None:
    assert len(models) > 100
    assert [model.__qualname__ for model in models if not model.model_config.get("hide_input_in_errors")] == []


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_no_validation_error_quotes_its_input(models: list[type[BaseModel]], data: Any) -> None:
    value = data.draw(_hostile_values)
    for model in models:
        for content in (value, dict.fromkeys(model.model_fields, value)):
            try:
                model.model_validate(content)
            except Exception as error:  # noqa: BLE001 - whatever it is
                shown = f"{error}{error!r}{''.join(traceback.format_exception(error))}"
                assert WORD not in shown or model.__qualname__ in CONFIGURATION, model.__qualname__


def test_the_place_and_the_problem_are_named() -> None:
    class Row(DiscreetModel):
        page: int

    with pytest.raises(ValidationError, match="page\n  Input should be a valid integer"):
        Row.model_validate({"page": WORD})
