"""Controls for the expert's answer: types, boundaries, flags, notes, decision."""

import traitlets

from widgets.screen_widget import PressCounter, TypesWidget

#: The labels of the buttons that decide a case; a kind of case may replace some of them.
DECISION_LABELS = {
    "validate": "Validate and next",
    "correct": "Submit correction",
    "undeterminable": "Cannot tell",
    "undeterminable_question": "Why can nobody tell?",
    "undeterminable_answer": "Close as undeterminable",
}


class SegmentEditor(PressCounter, TypesWidget, scripts=("segment_editor",), styles=("segment_editor",)):
    """Controls below the panel: the expert's answer and the deciding buttons."""

    token = traitlets.Unicode(
        help="Token of the case on screen; presses send it back, so that a press for another case is ignored."
    )
    segments = traitlets.List(
        trait=traitlets.Dict(),
        help="The segments in page order, covering all pages: ``{start, end, type, flags, note}``.",
    )
    quotes = traitlets.List(trait=traitlets.Dict(), help="The expert's quotes, as in ``PagePane``.")
    page = traitlets.Int(0, help="The page on screen; the controls apply to its segment.")
    dominant = traitlets.Unicode(
        allow_none=True, default_value=None, help="The overall type of the file; None for cannot tell."
    )
    mixture = traitlets.List(
        trait=traitlets.Dict(), help="The shares of the file that a submission would save: ``{type, percent}``."
    )
    notes = traitlets.Unicode(help="The expert's notes on the whole case.")
    issue_id = traitlets.Unicode(help="The id of the issue to which a new note would belong; empty for none.")
    issue_notes = traitlets.Dict(help="The expert's notes: issue_id → text.")
    record = traitlets.List(
        trait=traitlets.Dict(),
        help="The lines of what a submission would record: ``{text, kind}``, see ``RecordLine``.",
    )
    has_segments = traitlets.Bool(
        default_value=True,
        help="True if the expert answers with segments, types and shares.",
    )
    labels = traitlets.Dict(
        default_value=DECISION_LABELS,
        help="The labels of the deciding buttons, by the keys of ``DECISION_LABELS``.",
    )
    signatures = traitlets.Dict(
        help="What the expert signs by each decision: ``validated``, ``corrected``, ``blind``, ``undeterminable``."
    )
    unmet = traitlets.Unicode(help="A sentence about the sums that do not add up; empty if all do.")
    unmet_sums = traitlets.Unicode(
        help="The expert's reason for approving the template although its sums do not add up."
    )
    is_blind = traitlets.Bool(
        default_value=False, help="True if the program's answer is hidden until the expert has answered."
    )
    can_reply = traitlets.Bool(
        default_value=False, help="True if a colleague has asked something about the case that the expert can answer."
    )
    can_ask = traitlets.Bool(default_value=False, help="True if the expert can ask for a second opinion.")
    undo = traitlets.Unicode(help="A sentence about the effect of Undo; empty if there is nothing to undo.")
    is_changed = traitlets.Bool(default_value=False, help="True if the answer differs from the program's.")
    can_correct = traitlets.Bool(
        default_value=False, help="True if the answer can be submitted as a correction or a blind answer."
    )
    is_locked = traitlets.Bool(default_value=False, help="True if the case can only be read.")
    why_not = traitlets.Unicode(help="A sentence why the case cannot be validated yet; empty if it can.")
    open_doubts = traitlets.Unicode(
        help="How many doubts have no answer yet, once the case can be validated; empty if none is left."
    )
    saved = traitlets.Unicode(help="The result of the last attempt to save, e.g. ``Draft saved 10:42:07``.")
    question = traitlets.Unicode(
        help="A question about a contradiction in the expert's answer, asked once before it is submitted; empty for none."
    )
    problem = traitlets.Unicode(help="The last problem, in one sentence for a clinician.")
