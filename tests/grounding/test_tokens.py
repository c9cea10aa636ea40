"""Words, numbers and signs."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from evalkit.grounding.tokens import _TOKEN

_CAREFULLY = re.compile(_TOKEN.pattern.partition("|")[2])


@given(st.text(st.sampled_from("acgmpxXé01'.,:>*^_-(/[] \n")))
@example("c.12A>G p.Arg1* 10^3 m's x-1 B12 [x] 5mg abcé a_b A-")
def test_the_short_way_for_a_word_alone_leads_to_the_same_tokens(text: str) -> None:
    assert _TOKEN.findall(text) == _CAREFULLY.findall(text)
