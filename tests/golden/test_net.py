"""Every verb says and writes what `tests/net` holds; `make net` shows what differs."""

from pathlib import Path

import pytest

from net.cases import Case, all_cases
from net.outcome import run_case
from net.run import DIGESTS, KEYS, differences, held

ROOT = Path(__file__).parents[2]

NAMES = [case.name for case in all_cases()]


@pytest.mark.parametrize("case", all_cases(), ids=NAMES)
def test_a_case_gives_what_is_held(case: Case) -> None:
    assert differences(case.name, run_case(case)) == []


def test_nothing_is_held_of_a_case_that_is_gone() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert held(DIGESTS).keys() == set(NAMES)
    assert held(KEYS).keys() <= set(NAMES)
