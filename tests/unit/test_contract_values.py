"""The bounds of numbers and texts of an agent: what is beyond is no value."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from rtscope.contract.threads import bucket_width_ns, is_bucket_low
from rtscope.contract.values import (
    MAX_TEXT,
    BucketLow,
    Count,
    Cpu,
    Flag,
    Schema,
    Sum,
    Text,
    Times,
)

BOUNDS: list[tuple[Any, int, int]] = [
    (Count, 0, 2**63 - 1),
    (Times, 0, 2**45),
    (BucketLow, 0, 2**34 - 1),
    (Sum, 0, 2**128 - 1),
    (Schema, 2, 2),
    (Cpu, 0, 2**16 - 1),
]
NUMBERS = [kind for kind, *_ in BOUNDS]


def refused(kind: Any, value: object) -> bool:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return True
    return False


@pytest.mark.parametrize(("kind", "least", "most"), BOUNDS)
def test_a_number_within_its_bounds_is_taken_and_none_beyond(
    kind: Any, least: int, most: int
) -> None:
    for value in (least, most):
        assert TypeAdapter(kind).validate_python(value) == value
    for value in (least - 1, most + 1):
        assert refused(kind, value)


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("value", [True, 1.0, None, "x", b"1"])
def test_only_an_integer_is_a_number(kind: Any, value: object) -> None:
    assert refused(kind, value)


@pytest.mark.parametrize("kind", [kind for kind in NUMBERS if kind is not Sum])
def test_only_a_sum_may_be_a_text(kind: Any) -> None:
    assert refused(kind, "1")


def test_a_sum_is_a_decimal_text_in_json() -> None:
    adapter: TypeAdapter[int] = TypeAdapter(Sum)
    most = 2**128 - 1

    assert adapter.dump_json(most) == f'"{most}"'.encode()
    assert adapter.dump_python(most) == most
    assert adapter.validate_python(str(most)) == adapter.validate_python(most) == most


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "+1",
        " 1",
        "1_0",
        "1.0",
        "0x1",
        "²",
        "\u0661",
        str(2**128),
        "1" * 5_000,
    ],
)
def test_a_sum_has_ascii_digits_alone_and_few_enough(text: str) -> None:
    assert refused(Sum, text)


def test_a_text_is_at_most_64_kib_and_no_number() -> None:
    assert TypeAdapter(Text).validate_python("x" * MAX_TEXT) == "x" * MAX_TEXT
    assert MAX_TEXT == 65_536
    assert refused(Text, "x" * (MAX_TEXT + 1))
    assert refused(Text, b"x")


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_a_flag_is_true_or_false(value: object) -> None:
    assert refused(Flag, value)
    assert not refused(Flag, value=True)


@pytest.mark.parametrize(
    ("low_ns", "width_ns"),
    [(0, 1), (1_023, 1), (1_024, 1), (2_047, 1), (2_048, 2), (2**33, 2**23)],
)
def test_a_bucket_spans_a_1024th_of_its_power_of_two(
    low_ns: int, width_ns: int
) -> None:
    assert bucket_width_ns(low_ns) == width_ns
    assert is_bucket_low(low_ns)
    assert is_bucket_low(low_ns + width_ns)
    if width_ns > 1:
        assert not is_bucket_low(low_ns + 1)


def test_no_bucket_begins_below_0_or_from_17_s_on() -> None:
    assert is_bucket_low(2**34 - 2**23)
    assert not is_bucket_low(2**34)
    assert not is_bucket_low(-1)
