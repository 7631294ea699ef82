"""CPU lists as the kernel writes them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.host.errors import UsageError
from rtscope.machine.cpulist import MAX_CPUS, format_cpulist, parse_cpulist


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0-3,5,8-11", (0, 1, 2, 3, 5, 8, 9, 10, 11)),
        ("5,1,1,0-1", (0, 1, 5)),
        (" 2 , 4-4\n", (2, 4)),
        ("4095", (4095,)),
    ],
)
def test_a_list_gives_its_cpus_ascending_and_once(
    text: str, cpus: tuple[int, ...]
) -> None:
    assert parse_cpulist(text) == cpus


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "write 0-3"),
        ("all", "write 0-3"),
        ("1,", "write 0-3"),
        ("-1", "write 0-3"),
        ("1-", "write 0-3"),
        ("0-9:1/2", "write 0-3"),
        ("٣", "write 0-3"),
        ("3-0", "runs backwards; write 0-3"),
        ("4096", "no CPU 4096"),
        ("0-999999", "no CPU 999999"),
        ("0-99999999999999999999", "write 0-3"),
        ("0," * 40_000, "80000 characters"),
    ],
)
def test_what_is_no_list_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_cpulist(text)


@pytest.mark.parametrize(
    ("cpus", "text"),
    [([], ""), ([3], "3"), ([0, 1], "0-1"), ([5, 0, 1, 2, 2], "0-2,5")],
)
def test_cpus_are_written_as_the_shortest_list(cpus: list[int], text: str) -> None:
    assert format_cpulist(cpus) == text


@given(st.sets(st.integers(0, MAX_CPUS - 1), min_size=1))
def test_a_list_written_reads_back_unchanged(cpus: set[int]) -> None:
    assert parse_cpulist(format_cpulist(cpus)) == tuple(sorted(cpus))


@given(st.text(alphabet="0123456789-, x", max_size=40))
def test_any_text_is_a_list_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_cpulist(text)
