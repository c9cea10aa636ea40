"""Two experts at one moment: one decision for each case, the other is told, nobody's words are lost.

Two hundred races run in `make stress`.
"""

from system.browser.racing import Race, race, raced

__all__ = ["race", "raced"]


def test_five_races_have_one_decision_each(race: Race) -> None:
    race.run(5)
