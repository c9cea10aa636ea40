"""Figures of a report. Each takes what a function of this package returned and gives a matplotlib figure.

Colours can be told apart by colour-blind readers and on a grey printer; what a figure says stands in a table too.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, GRID, MAIN, SECOND = "#1f2937", "#d7dbe0", "#0b5cad", "#b8540a"
SEVERITY = {"BLOCKER": "#b42318", "MAJOR": "#b8740a", "MINOR": "#667085"}

_SIZE = (5.2, 3.4)
_PLAIN = {"parse_math": False}
"""Of text that comes from data: what stands between dollar signs in it is no formula."""


def svg(figure: Figure) -> str:
    """The figure as an SVG element that needs nothing else; its text stays text."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "evalkit"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _axes(across: str, up: str, size: tuple[float, float] = _SIZE) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(across, color=INK)
    axes.set_ylabel(up, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def confusion(table: pd.DataFrame) -> Figure:
    """How many documents of each true type (rows) were called what (columns): darker is more, each cell says how many."""
    figure, axes = _axes("said", "true", (6.2, 3.8))
    axes.grid(visible=False)
    shares = table.div(table.sum(axis=1).clip(lower=1e-12), axis=0)
    edges = [[place - 0.5 for place in range(len(names) + 1)] for names in (table.columns, table.index)]
    axes.pcolormesh(*edges, shares.to_numpy(dtype=float), cmap="Blues", vmin=0, vmax=1.2)  # shapes, not a picture
    axes.invert_yaxis()
    axes.set_xticks(range(len(table.columns)), [_broken(name) for name in table.columns], fontsize=8, **_PLAIN)
    axes.set_yticks(range(len(table.index)), [str(name) for name in table.index], fontsize=8, **_PLAIN)
    for row, name in enumerate(table.index):
        for column, said in enumerate(table.columns):
            count = table.loc[name, said]
            if count:
                dark = shares.loc[name, said] > 0.7
                axes.text(column, row, f"{count:g}", ha="center", va="center", color="white" if dark else INK)
    return figure


def _broken(name: object) -> str:
    return str(name).replace(" ", "\n")


def reliability(table: pd.DataFrame) -> Figure:
    """Confidence against accuracy with 95 % intervals; on the diagonal, confidence can be believed."""
    figure, axes = _axes("confidence", "share that is right")
    axes.plot([0, 1], [0, 1], color=GRID, linestyle="--")
    below, above = table["accuracy"] - table["accuracy_low"], table["accuracy_high"] - table["accuracy"]
    axes.errorbar(
        table["confidence"], table["accuracy"], yerr=[below.clip(lower=0), above.clip(lower=0)],
        fmt="o", color=MAIN, ecolor=MAIN, elinewidth=1, capsize=3,
    )  # fmt: skip
    for confidence, accuracy, n in zip(table["confidence"], table["accuracy"], table["n"], strict=True):
        axes.annotate(
            f"n {n}", (confidence, accuracy), xytext=(5, -12), textcoords="offset points", fontsize=7, color=INK
        )
    axes.set_xlim(0, 1.03)
    axes.set_ylim(0, 1.03)
    return figure


def risk_coverage(table: pd.DataFrame, rate: float) -> Figure:
    """The wrong share of what is accepted from some confidence upwards, against how much that is."""
    figure, axes = _axes("coverage: share of documents accepted", "risk: wrong share of them")
    axes.step(table["coverage"], table["risk"], where="post", color=MAIN)
    axes.plot(table["coverage"], table["risk"], "o", color=MAIN, markersize=3)
    axes.axhline(rate, color=SECOND, linestyle="--", linewidth=1)
    axes.annotate(f"{rate:.0%}", (0, rate), xytext=(2, 3), textcoords="offset points", color=SECOND, fontsize=8)
    axes.set_xlim(0, 1.03)
    axes.set_ylim(0, max(0.05, *table["risk"], rate) * 1.15)
    return figure


def stacked(counts: Mapping[str, Mapping[str, int]], colours: Mapping[str, str], across: str) -> Figure:
    """Bars of counts: row → part → how many."""
    figure, axes = _axes(across, "", (5.2, 1.1 + 0.32 * max(len(counts), 1)))
    axes.grid(axis="y", visible=False)
    names = list(counts)[::-1]
    left = [0] * len(names)
    for part, colour in colours.items():
        widths = [counts[name].get(part, 0) for name in names]
        axes.barh(range(len(names)), widths, left=left, color=colour, label=part)
        left = [one + more for one, more in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(names)), names, **_PLAIN)
    figure.legend(fontsize=7, frameon=False, loc="outside upper right", ncols=len(colours))
    axes.tick_params(labelsize=8)
    return figure


def histogram(values: Sequence[float], across: str, up: str = "documents") -> Figure:
    """How many have which value."""
    figure, axes = _axes(across, up)
    axes.hist(list(values), bins=min(30, max(5, len(values) // 3)), color=MAIN, edgecolor="white")
    return figure
