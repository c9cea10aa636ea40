"""Label Studio's answers of another author become reviews, or are refused with the reason."""

import pytest
from benchmarks.label_answers import measure

OTHERWISE = {
    "open": {
        "minimal_one_page",  # JSON-MIN leaves out pages, also of one
        "ground_truth_flag",  # two people's answers are both kept, whichever was starred
        "page_without_type",  # in our labelling config a page without a type continues the document before it
    },
    "sealed": {
        "json_lines",  # Label Studio exports no JSON lines; refused, and told to export as JSON
        "latin_letters",  # ids of our cases are ASCII, so that the file has no letter that Latin-1 writes otherwise
        "minimal_two_answers",  # JSON-MIN leaves out pages
        "author_deleted",  # a review needs a person who answers for it
        "author_escape",  # the answer of somebody whom the command does not name as a reviewer
        "three_agree",  # a case has two opinions, and then somebody who decides; the third is refused, and told
        "index_as_text",  # Label Studio writes numbers of pages as numbers; refused, and told
        "page_turned",  # versions differ in where the box of a turned picture lies: left out, and told
        "type_changes_inside",  # in our labelling config a type chosen on a page begins a document there
        "overall_against_pages",  # refused by the rule that the review screen has too; the remedy says what to do
        "many_strangers",  # each task has a row of its own; the command prints the sums
    },
}


@pytest.mark.parametrize("half", OTHERWISE)
def test_answers_are_taken_as_their_author_expects(half: str) -> None:
    outcomes = dict(measure(half))
    assert {name for name, difference in outcomes.items() if difference} == OTHERWISE[half]
    assert len(outcomes) > 40
