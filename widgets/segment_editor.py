"""The expert's answer: types, boundaries, notes; and the decision."""

from __future__ import annotations

import traitlets

from evalkit.classification.schema import DocumentType, load_type_definitions
from widgets.assets import read_widget_script, read_widget_style
from widgets.screen_widget import PressCounter

#: The words on the buttons that decide a case; a kind of case may call some of them otherwise.
DECISION_LABELS = {
    "validate": "Validate and next",
    "correct": "Submit correction",
    "undeterminable": "Cannot tell",
    "undeterminable_question": "Why can nobody tell?",
    "undeterminable_answer": "Close as undeterminable",
    "changed": "to the program's answer",
}


class SegmentEditor(PressCounter):
    """The controls under the panel: the answer, and the buttons that decide the case."""

    _esm = read_widget_script("segment_editor")
    _css = read_widget_style("segment_editor")

    token = traitlets.Unicode(
        help="The case on screen; presses carry it back, so that one for another case does nothing."
    )
    definitions = traitlets.Dict(
        default_value={
            document_type.value: load_type_definitions()[document_type.value]["definition"]
            for document_type in DocumentType
        },
        help="The meaning of the five types, in one sentence each.",
    )
    segments = traitlets.List(
        trait=traitlets.Dict(), help="``{start, end, type, flags, note}`` in order, all pages covered."
    )
    page = traitlets.Int(0, help="The page on screen: its segment is the current one.")
    dominant = traitlets.Unicode(
        allow_none=True, default_value=None, help="The type of the whole file; None: cannot tell."
    )
    mixture = traitlets.List(trait=traitlets.Dict(), help="``{type, percent}`` of the whole file as it would be saved.")
    notes = traitlets.Unicode(help="The expert's notes for the record.")
    issue_id = traitlets.Unicode(help="The issue that a note would be about; empty for none.")
    issue_notes = traitlets.Dict(help="issue_id → the expert's note.")
    changes = traitlets.List(trait=traitlets.Unicode(), help="What differs from the program's answer, a sentence each.")
    has_segments = traitlets.Bool(
        default_value=True,
        help="Whether documents, types and shares are asked.",
    )
    labels = traitlets.Dict(
        default_value=DECISION_LABELS,
        help="The words on the deciding buttons, by the keys of ``DECISION_LABELS``.",
    )
    unmet = traitlets.Unicode(help="The sums of a template that are not met; empty if all are.")
    unmet_sums = traitlets.Unicode(help="The expert's words why it may be approved all the same.")
    is_blind = traitlets.Bool(
        default_value=False, help="Whether the program's answer is hidden until the expert has answered."
    )
    can_ask = traitlets.Bool(default_value=False, help="Whether a second expert can be asked.")
    undo = traitlets.Unicode(help="What Undo would do; empty for nothing.")
    is_changed = traitlets.Bool(default_value=False, help="Whether the answer differs from the program's.")
    can_correct = traitlets.Bool(default_value=False, help="Whether there is something to submit as a correction.")
    is_locked = traitlets.Bool(default_value=False, help="Whether the case can only be read.")
    why_not = traitlets.Unicode(help="Why it cannot be validated yet; empty if it can.")
    saved = traitlets.Unicode(help="The answer of the last write: ``Draft saved 10:42:07``.")
    problem = traitlets.Unicode(help="What went wrong, in plain words.")
