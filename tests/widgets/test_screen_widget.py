"""A widget refuses what it does not have."""

from __future__ import annotations

import pytest

from widgets.field_panel import FieldPanel
from widgets.queue_panel import QueuePanel
from widgets.screen_widget import ScreenWidget


def test_unknown_trait_in_the_constructor_is_a_type_error() -> None:
    assert QueuePanel(notice="saved").notice == "saved"
    with pytest.raises(TypeError, match="QueuePanel has no trait 'notise'"):
        QueuePanel(notise="saved")


def test_assignment_to_an_unknown_trait_is_a_type_error() -> None:
    panel = FieldPanel()
    panel.place = "Highlighted on page 1."
    with pytest.raises(TypeError, match="no trait 'plaice'"):
        panel.plaice = "Highlighted on page 1."


def test_own_traits_are_synchronised() -> None:
    assert {"values", "wanted", "selected", "answered"} <= set(FieldPanel.class_traits(sync=True))
    assert issubclass(FieldPanel, ScreenWidget)
