"""Where kernels keep what a window tells of them."""

import pytest

from rtscope.symbols import NO_SYMBOLS, parse_symbols
from rtscope.virtual.places import places_of


def test_riscv_has_the_task_in_tp() -> None:
    assert places_of("riscv64", config="", symbols=NO_SYMBOLS) == {
        "task": "tp",
        "preempt": "tp@8:4",
    }


@pytest.mark.parametrize(
    ("config", "offset"),
    [
        ("CONFIG_ARM64_SW_TTBR0_PAN=y\n", 16),
        ("# CONFIG_ARM64_SW_TTBR0_PAN is not set\n", 8),
    ],
)
def test_arm64_has_the_count_behind_what_its_configuration_puts_first(
    config: str, offset: int
) -> None:
    assert places_of("aarch64", config=config, symbols=NO_SYMBOLS) == {
        "task": "SP_EL0",
        "preempt": f"SP_EL0@{offset}:4",
    }


def test_arm64_without_its_configuration_is_not_guessed() -> None:
    assert places_of("aarch64", config="", symbols=NO_SYMBOLS) == {}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("00000000000001c0 A pcpu_hot\n", ("gs_base@448", "gs_base@456:4")),
        (
            "0000000000000100 A current_task\n0000000000000200 A __preempt_count\n",
            ("gs_base@256", "gs_base@512:4"),
        ),
    ],
)
def test_x86_has_variables_of_each_cpu(text: str, places: tuple[str, str]) -> None:
    found = places_of("x86_64", config="", symbols=parse_symbols(text))

    assert (found["task"], found["preempt"]) == places


def test_x86_without_these_variables_is_not_guessed() -> None:
    assert places_of("x86_64", config="", symbols=NO_SYMBOLS) == {}
