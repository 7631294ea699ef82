"""How a program ended, in words."""

import pytest

from rtscope.programs.ends import end_words, left_words


def test_a_signal_counts_before_a_status() -> None:
    assert end_words(None, 11) == "by signal 11"
    assert end_words(4, None) == "with status 4"
    assert end_words(0, None) == "with status 0"


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (0, ""),
        (1, "left 1 process, which was ended: have it stay in the foreground"),
        (1200, "left 1,200 processes, all ended: have them stay in the foreground"),
    ],
)
def test_what_was_left_is_told_with_what_to_do(left: int, said: str) -> None:
    assert left_words(left) == said
