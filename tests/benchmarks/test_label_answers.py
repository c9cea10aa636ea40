"""Label Studio's answers of another author become reviews, or are refused with the reason."""

from benchmarks.label_answers import measure

#: JSON-MIN leaves out pages, also of one; two people's answers are both kept, whichever was starred; in our labelling
#: config a page without a type continues the document before it.
OTHERWISE = {"minimal_one_page", "ground_truth_flag", "page_without_type"}


def test_the_open_half_is_taken_as_its_author_expects() -> None:
    outcomes = dict(measure("open"))
    assert {name for name, difference in outcomes.items() if difference} == OTHERWISE
    assert len(outcomes) > 40
