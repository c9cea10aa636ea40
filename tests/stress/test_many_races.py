"""Ten thousand races at the store, and two hundred of two experts who press at one moment."""

from pathlib import Path

import pytest
from review.conftest import Build
from review.conftest import Workspace as Folder
from review.racing import race_for_claims, race_for_reviews
from system.browser.conftest import CHROMIUM
from system.browser.racing import EXPERTS, Race, race, raced
from tables import trying

__all__ = ["race", "raced"]

pytestmark = pytest.mark.stress


def test_5000_races_for_a_review_have_one_winner_each(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "output")
    folder.publish(Build.single("Other"))
    review = folder.helper().save_review("doc2_6", undeterminable="illegible")
    with trying("two reviews of one case at one moment", 5000):
        race_for_reviews(folder.root, review, 5000)


def test_5000_races_for_a_claim_have_one_winner_each(tmp_path: Path) -> None:
    with trying("two claims of one case at one moment", 5000):
        race_for_claims(tmp_path, 5000)


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")
def test_two_hundred_races_have_one_decision_each(race: Race) -> None:
    with trying("two experts who press at one moment", 200):
        race.run(200)
    print(f"\n200 races: opened first {dict(race.told.opened)}, decided {dict(race.told.decided)}")
    assert set(race.told.opened) == set(EXPERTS), "one browser is always first: that is no race"
