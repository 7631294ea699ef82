"""No program on a virtual board reads a clock that goes backwards, on any CPU."""

import os

import pytest
from rig import NEEDS_APT, are_built

from clocks.measure import hand_over

pytestmark = [
    pytest.mark.system,
    NEEDS_APT,
]

HANDED = int(os.environ.get("RTSCOPE_TEST_HANDED", "20000"))
"""Readings of each clock; `make clocks` hands over ten million."""

COMPILED = ("jh7110-6.12-rt", "jh7110-6.1-rt", "jh7110-7.3-rt")
BOARDS = [
    ("pc", "debian-6.12"),
    pytest.param("pc", "debian-6.12-rt", marks=pytest.mark.long),
    pytest.param("rpi3", "debian-6.12-rt", marks=pytest.mark.long),
    *(pytest.param("jh7110", one, marks=pytest.mark.long) for one in COMPILED),
]


@pytest.mark.parametrize(("name", "kernel"), BOARDS)
def test_no_clock_goes_backwards_from_cpu_to_cpu(name: str, kernel: str) -> None:
    if kernel in COMPILED and not are_built(kernel):
        pytest.skip(f"takes minutes to compile: rtscope kernel build {kernel}")

    found = hand_over(name, kernel, times=HANDED)

    assert {clock.name for clock in found} == {"monotonic", "counter"}
    for clock in found:
        assert clock.handed >= HANDED
        assert (clock.backwards, clock.worst) == (0, 0)
