"""Numbers and nouns as reports write them."""

import pytest

from rtscope.host.units import plural


@pytest.mark.parametrize(
    ("number", "noun", "written"),
    [
        (1, "run", "1 run"),
        (0, "run", "0 runs"),
        (2_000, "run", "2,000 runs"),
        (1, "patch", "1 patch"),
        (5, "patch", "5 patches"),
    ],
)
def test_a_number_has_the_noun_of_its_kind(
    number: int, noun: str, written: str
) -> None:
    assert plural(number, noun) == written
