"""Numbers and nouns as reports write them."""

import pytest

from rtscope.host.units import plural
from rtscope.present.words import as_sentence


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


@pytest.mark.parametrize(
    ("phrase", "sentence"),
    [
        ("lock the memory", "Lock the memory."),
        ("mlockall(MCL_CURRENT) first", "mlockall(MCL_CURRENT) first."),
        ("pthread_setaffinity_np", "pthread_setaffinity_np."),
        ("skew_tick=1 on the command line", "skew_tick=1 on the command line."),
        ("chrt -f -p 80 TID", "chrt -f -p 80 TID."),
        ("p99 is higher", "p99 is higher."),
    ],
)
def test_a_sentence_keeps_the_name_or_command_that_begins_it(
    phrase: str, sentence: str
) -> None:
    assert as_sentence(phrase) == sentence
