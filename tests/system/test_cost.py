"""
What measuring costs, counted exactly on a virtual board: guest instructions.

The comparison with cyclictest is `make bench`: it needs one more package.
"""

import pytest
from rig import NEEDS_APT, are_built

from virtual_cost import AGENT_TO_BARE, LIBRARY_TO_BARE, costs, prepare_board

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]


@pytest.mark.skipif(
    not are_built("jh7110-6.12-rt"),
    reason="its kernel takes minutes to compile: rtscope board build jh7110",
)
def test_the_agent_costs_hardly_more_than_sleeping_and_reading_the_clock() -> None:
    found = costs(prepare_board("jh7110", others=False), ("agent", "bare"))

    agent, bare = found["agent"], found["bare"]
    assert agent.whole <= AGENT_TO_BARE * bare.whole
    # Its own part, the kernel's left out: the histogram, the sums and the worst.
    assert bare.in_program < agent.in_program < bare.in_program + 150


def test_the_library_keeps_all_of_its_statistics_with_one_system_call_in_a_cycle() -> (
    None
):
    found = costs(prepare_board("pc", others=False), ("library", "bare"))

    library, bare = found["library"], found["bare"]
    assert library.whole <= LIBRARY_TO_BARE["pc"] * bare.whole
    # A second reading of the clock, four histograms, and what the cycle is told.
    assert bare.in_program < library.in_program < bare.in_program + 300
