"""What the expert says: types, where documents begin, the overall type, notes; and the decision."""

from __future__ import annotations

import anywidget
import traitlets

from evalkit.classification.schema import DocumentType, load_type_definitions
from widgets.assets import read_widget_script, read_widget_style
from widgets.panel_traits import PressCounter


class SegmentEditor(PressCounter, anywidget.AnyWidget):
    """Shows what is being said; says what was pressed (custom messages ``type``, ``split``, ``validate``, …)."""

    _esm = read_widget_script("segment_editor")
    _css = read_widget_style("segment_editor")

    token = traitlets.Unicode().tag(sync=True)
    """The case on screen; presses carry it back, so that one meant for another case decides nothing."""
    definitions = traitlets.Dict(
        default_value={
            document_type.value: load_type_definitions()[document_type.value]["definition"]
            for document_type in DocumentType
        }
    ).tag(sync=True)
    """What the five types mean, in one sentence each."""
    segments = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``{start, end, type, flags, note}`` in order, all pages covered."""
    page = traitlets.Int(0).tag(sync=True)
    """The page on screen: its segment is the current one."""
    dominant = traitlets.Unicode(allow_none=True, default_value=None).tag(sync=True)
    """The type of the whole document; None: cannot tell."""
    mixture = traitlets.List(trait=traitlets.Dict()).tag(sync=True)
    """``{type, percent}`` of the whole document as it would be saved."""
    notes = traitlets.Unicode().tag(sync=True)
    issue_id = traitlets.Unicode().tag(sync=True)
    """The issue that is open; empty for none: a note is about it."""
    issue_notes = traitlets.Dict().tag(sync=True)
    """issue_id → the expert's note."""
    changes = traitlets.List(trait=traitlets.Unicode()).tag(sync=True)
    """What differs from the agent's answer, a sentence each."""
    kind = traitlets.Unicode("classification").tag(sync=True)
    """Which task asks: only in a classification are there segments, types or shares to say anything of."""
    unmet = traitlets.Unicode().tag(sync=True)
    """Of a template, what is wrong with its sums; empty where they are met."""
    unmet_sums = traitlets.Unicode().tag(sync=True)
    """Why it may be approved all the same, in the expert's words."""
    is_blind = traitlets.Bool(default_value=False).tag(sync=True)
    """The agent's answer is hidden until the expert has given theirs."""
    can_ask = traitlets.Bool(default_value=False).tag(sync=True)
    """Whether a second expert can be asked about this case."""
    undo = traitlets.Unicode().tag(sync=True)
    """What undoing would undo; empty: nothing."""
    is_changed = traitlets.Bool(default_value=False).tag(sync=True)
    """Whether the expert says something else than the agent."""
    can_correct = traitlets.Bool(default_value=False).tag(sync=True)
    """Whether there is something to submit as a correction."""
    is_locked = traitlets.Bool(default_value=False).tag(sync=True)
    """Completed, or somebody else's: it can only be read."""
    why_not = traitlets.Unicode().tag(sync=True)
    """Why it cannot be validated yet; empty: it can."""
    saved = traitlets.Unicode().tag(sync=True)
    """The answer of the last write: ``Saved 10:42:07``."""
    problem = traitlets.Unicode().tag(sync=True)
    """What went wrong, in plain words."""
