"""Durations, sizes and microseconds: exact on the way in, readable on the way out."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.host.errors import UsageError
from rtscope.host.units import (
    MAX_DURATION_NS,
    exact_duration,
    format_duration,
    format_number,
    format_size,
    format_us,
    parse_claim,
    parse_duration,
    parse_size,
)

S = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("500ns", 500),
        ("200us", 200_000),
        ("200 µs", 200_000),
        ("20ms", 20_000_000),
        ("90s", 90 * S),
        ("10m", 600 * S),
        ("10min", 600 * S),
        ("1.5h", 5_400 * S),
        ("1h30m", 5_400 * S),
        ("1h 30m", 5_400 * S),
        ("2d", 172_800 * S),
        ("366d", MAX_DURATION_NS),
        ("0.1s", 100_000_000),
        ("1.000000001s", S + 1),
        ("4.35us", 4_350),
    ],
)
def test_a_duration_is_read_exactly(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("200", r"200: no unit; write 200us, 200ms or 200s"),
        ("1.5", r"1.5: no unit; write 1.5us"),
        ("", "not a duration"),
        ("-5s", "not a duration"),
        ("1e3s", "not a duration"),
        ("5 parsecs", "not a duration"),
        ("1h30", "not a duration"),
        ("30m1h", "not a duration"),
        ("1m1m", "not a duration"),
        ("٣s", "not a duration"),
        ("9" * 5000 + "s", "not a duration"),
        ("0s", "more than 0"),
        ("1.5ns", "finer than 1 ns"),
        ("367d", "too long; write 366d or less"),
        ("1\x1b[31ms", r"\\x1b"),
    ],
)
def test_what_is_no_duration_is_refused_with_what_to_write(
    text: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        parse_duration(text)


@given(st.integers(min_value=1, max_value=MAX_DURATION_NS))
def test_an_exact_duration_reads_back_unchanged(ns: int) -> None:
    assert parse_duration(exact_duration(ns)) == ns


@given(st.text(max_size=60))
def test_any_text_is_a_duration_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert 0 < parse_duration(text) <= MAX_DURATION_NS


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0s"), (1, "1ns"), (5_400 * S, "90m"), (86_400 * S, "1d"), (1_500, "1500ns")],
)
def test_an_exact_duration_takes_the_largest_unit(ns: int, text: str) -> None:
    assert exact_duration(ns) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 s"),
        (500, "500 ns"),
        (200_000, "200 us"),
        (999_999, "1 ms"),
        (20 * S, "20 s"),
        (60 * S, "1 min"),
        (90 * S, "90 s"),
        (200 * S, "3.3 min"),
        (600 * S, "10 min"),
        (3_599 * S, "1 h"),
        (10_200 * S, "2 h 50 min"),
        (86_400 * S, "1 d"),
        (129_600 * S, "1 d 12 h"),
    ],
)
def test_a_duration_for_people_is_short(ns: int, text: str) -> None:
    assert format_duration(ns) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "\N{EN DASH}"),
        (float("nan"), "\N{EN DASH}"),
        (float("inf"), "\N{EN DASH}"),
        (0, "0"),
        (3, "0.003"),
        (500, "0.500"),
        (1_234, "1.23"),
        (12_345, "12.3"),
        (99_940, "99.9"),
        (99_960, "100"),
        (123_456, "123"),
        (1_234_567, "1,235"),
        (1_000_000_000, "1,000,000"),
        (-1_500, "-1.50"),
    ],
)
def test_microseconds_have_three_digits_below_100_and_none_after_the_point_above(
    ns: float | None, text: str
) -> None:
    assert format_us(ns) == text


def test_microseconds_are_never_finer_than_a_nanosecond() -> None:
    assert format_us(12_345, digits=9) == "12.345"


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("1/1h", (1, 3_600 * S)),
        ("3/1.5h", (3, 5_400 * S)),
        (" 1 / 1d ", (1, 86_400 * S)),
    ],
)
def test_a_claim_is_misses_and_time(text: str, claim: tuple[int, int]) -> None:
    assert parse_claim(text) == claim


@pytest.mark.parametrize(
    "text", ["1", "/1h", "1/", "0/1h", "-1/1h", "1/1", "1/0h", "2000000/1h", "x/1h"]
)
def test_what_is_no_claim_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_claim(text)


def test_that_never_a_miss_cannot_be_claimed_is_said() -> None:
    with pytest.raises(UsageError, match="no test can show zero misses"):
        parse_claim("0/1h")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64M", 64 << 20),
        ("64 MiB", 64 << 20),
        ("1.5g", 3 << 29),
        ("512B", 512),
        ("2TB", 2 << 40),
        ("1k", 1024),
    ],
)
def test_a_size_is_read_in_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["64", "", "-1M", "0M", "0.3B", "M", "9999999T", "1e3M"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="64M"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (64 << 20, "64 MiB"),
        ((1 << 20) - 1, "1 MiB"),
        (150 << 20, "150 MiB"),
        (3 << 29, "1.5 GiB"),
        (1 << 60, "1 EiB"),
    ],
)
def test_a_size_for_people_is_short(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("value", "digits", "written"),
    [
        (21_860.4, 3, "21,900"),
        (9_012.0, 2, "9,000"),
        (28.52, 3, "28.5"),
        (0.308, 2, "0.31"),
        (0, 3, "0"),
        (999.9, 3, "1,000"),
    ],
)
def test_a_number_is_written_without_an_exponent(
    value: float, digits: int, written: str
) -> None:
    assert format_number(value, digits) == written
