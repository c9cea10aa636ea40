"""Figures of what anybody may have written."""

import re

import pandas as pd
import pytest

from evalkit.evaluation.metrics import tabulate_confusion as counted
from evalkit.evaluation.plots import plot_confusion, plot_stacked_bars, render_svg

#: A formula that cannot be set, one that can, and one sign alone.
NAMES = [r"$\frac$ x", "$a$ <b>", "5 $"]


@pytest.mark.parametrize("name", NAMES)
def test_what_stands_between_dollars_is_text(name: str) -> None:
    table = counted([name, "Other"], ["Other", name], ["Other"])
    assert isinstance(table, pd.DataFrame)
    for figure in (plot_confusion(table), plot_stacked_bars({name: {"MAJOR": 2}}, {"MAJOR": "#b8740a"}, "issues")):
        drawn = re.sub("<!--.*?-->", "", render_svg(figure), flags=re.DOTALL)
        assert all(part in drawn for part in name.replace("<", "&lt;").replace(">", "&gt;").split())
        assert any(name.split(maxsplit=1)[0] in label.get_text() for label in figure.axes[0].get_yticklabels())
