"""Plots of the evaluation report; each function draws one figure from a table.

The colours are distinguishable for colour-blind readers and in greyscale; the report also shows each figure's data as a
table.
"""

import io
from collections.abc import Mapping, Sequence
from datetime import datetime

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from evalkit.evaluation.intervals import Estimate

TEXT_COLOUR, GRID_COLOUR, MAIN_COLOUR, ACCENT_COLOUR = "#1f2937", "#d7dbe0", "#0b5cad", "#b8540a"
NEED_COLOURS = {"needed": "#1a7442", "needless": "#b8540a", "not known": "#9aa5ae"}
SEVERITY_COLOURS = {"BLOCKER": "#b42318", "MAJOR": "#b8740a", "MINOR": "#667085"}

_FIGURE_SIZE = (5.2, 3.4)
_MARKERS = "os^Dvx+*"
#: Lowest value of a detector, as a share of its limit, that is drawn.
_LOWEST_LEVEL = 1e-4
#: Text options for labels that come from data: text between dollar signs is not rendered as a formula.
_PLAIN_TEXT = {"parse_math": False}


def render_svg(figure: Figure) -> str:
    """Render a figure as an SVG element for HTML, with searchable text."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "evalkit"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    markup = buffer.getvalue()
    return markup[markup.index("<svg") :]


def _create_axes(x_label: str, y_label: str, size: tuple[float, float] = _FIGURE_SIZE) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(x_label, color=TEXT_COLOUR)
    axes.set_ylabel(y_label, color=TEXT_COLOUR)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GRID_COLOUR, linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def plot_confusion(table: pd.DataFrame) -> Figure:
    """Plot a confusion matrix: true types (rows), answered types (columns)."""
    figure, axes = _create_axes("program's type", "true type", (6.2, 3.8))
    axes.grid(visible=False)
    shares = table.div(table.sum(axis=1).clip(lower=1e-12), axis=0)
    cell_edges = [
        [position - 0.5 for position in range(len(axis_names) + 1)] for axis_names in (table.columns, table.index)
    ]
    axes.pcolormesh(*cell_edges, shares.to_numpy(dtype=float), cmap="Blues", vmin=0, vmax=1.2)  # vector, not a bitmap
    axes.invert_yaxis()
    axes.set_xticks(
        range(len(table.columns)),
        [str(true_name).replace(" ", "\n") for true_name in table.columns],
        fontsize=8,
        **_PLAIN_TEXT,
    )
    axes.set_yticks(range(len(table.index)), [str(true_name) for true_name in table.index], fontsize=8, **_PLAIN_TEXT)
    for row_number, true_name in enumerate(table.index):
        for column_number, predicted_name in enumerate(table.columns):
            count = table.loc[true_name, predicted_name]
            if count:
                is_dark = shares.loc[true_name, predicted_name] > 0.7
                axes.text(
                    column_number,
                    row_number,
                    f"{count:g}",
                    ha="center",
                    va="center",
                    color="white" if is_dark else TEXT_COLOUR,
                )
    return figure


def plot_reliability(table: pd.DataFrame) -> Figure:
    """Plot accuracy with 95 % intervals by confidence; the diagonal is ideal."""
    figure, axes = _create_axes("confidence", "share that is right")
    axes.plot([0, 1], [0, 1], color=GRID_COLOUR, linestyle="--")
    margin_below, margin_above = table["accuracy"] - table["accuracy_low"], table["accuracy_high"] - table["accuracy"]
    axes.errorbar(
        table["confidence"], table["accuracy"], yerr=[margin_below.clip(lower=0), margin_above.clip(lower=0)],
        fmt="o", color=MAIN_COLOUR, ecolor=MAIN_COLOUR, elinewidth=1, capsize=3,
    )  # fmt: skip
    for confidence, accuracy, document_count in zip(table["confidence"], table["accuracy"], table["n"], strict=True):
        axes.annotate(
            f"n {document_count}",
            (confidence, accuracy),
            xytext=(5, -12),
            textcoords="offset points",
            fontsize=7,
            color=TEXT_COLOUR,
        )
    axes.set_xlim(0, 1.03)
    axes.set_ylim(0, 1.03)
    return figure


def plot_stacked_bars(counts: Mapping[str, Mapping[str, int]], colours: Mapping[str, str], x_label: str) -> Figure:
    """Plot horizontal stacked bars of ``counts``: bar name → part → count."""
    figure, axes = _create_axes(x_label, "", (5.2, 1.1 + 0.32 * max(len(counts), 1)))
    axes.grid(axis="y", visible=False)
    bar_names = list(counts)[::-1]
    bar_starts = [0] * len(bar_names)
    for part, colour in colours.items():
        widths = [counts[bar_name].get(part, 0) for bar_name in bar_names]
        axes.barh(range(len(bar_names)), widths, left=bar_starts, color=colour, label=part)
        bar_starts = [bar_start + width for bar_start, width in zip(bar_starts, widths, strict=True)]
    axes.set_yticks(range(len(bar_names)), bar_names, **_PLAIN_TEXT)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(fontsize=7, frameon=False, loc="outside upper right", ncols=len(colours))
    axes.tick_params(labelsize=8)
    return figure


def plot_intervals(estimates: Mapping[str, Estimate], x_label: str) -> Figure:
    """Plot estimated shares with their intervals, a line each, first at the top."""
    figure, axes = _create_axes(x_label, "", (7.2, 0.9 + 0.34 * max(len(estimates), 1)))
    for position, estimate in enumerate(reversed(list(estimates.values()))):
        axes.plot([estimate.low, estimate.high], [position] * 2, color=MAIN_COLOUR, linewidth=2, alpha=0.5)
        if estimate.value is not None:
            axes.plot(estimate.value, position, "o", color=MAIN_COLOUR)
    axes.set_yticks(range(len(estimates)), list(estimates)[::-1], fontsize=8, **_PLAIN_TEXT)
    axes.set_xlim(0, 1.02)
    return figure


def plot_histogram(values: Sequence[float], x_label: str, y_label: str = "documents") -> Figure:
    """Plot a histogram of the values."""
    figure, axes = _create_axes(x_label, y_label)
    axes.hist(list(values), bins=min(30, max(5, len(values) // 3)), color=MAIN_COLOUR, edgecolor="white")
    return figure


def plot_drift(levels_by_stratum: Mapping[str, Sequence[tuple[datetime, float]]]) -> Figure:
    """Plot each stratum's detector over time, as a share of its limit."""
    figure, axes = _create_axes("accepted on", "detector, share of limit", (6.2, 3.8))
    for number, (stratum, levels) in enumerate(levels_by_stratum.items()):
        times, shares = zip(*levels, strict=True)
        # Markers differ, too, so that strata can be told apart without colour.
        axes.plot(times, shares, marker=_MARKERS[number % len(_MARKERS)], markersize=4, linewidth=1, label=stratum)
    axes.axhline(1, color=ACCENT_COLOUR, linestyle="--", linewidth=1)
    axes.set_yscale("log")
    axes.set_ylim(_LOWEST_LEVEL, None)
    axes.tick_params(axis="x", labelrotation=30, labelsize=8)
    for text in figure.legend(fontsize=7, frameon=False, loc="outside upper left", ncols=2).get_texts():
        text.set_parse_math(False)
    return figure
