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


def test_where_a_cpu_has_switched_and_the_first_task_are_told_if_both_are_known() -> (
    None
):
    switch = "ffffffff81000000 t finish_task_switch.isra.0\n"
    first = "ffffffff82000000 D init_task\n"

    both = places_of("riscv64", config="", symbols=parse_symbols(switch + first))
    one = places_of("riscv64", config="", symbols=parse_symbols(switch))

    assert both["switched"] == str(0xFFFFFFFF81000000)
    assert both["first-task"] == str(0xFFFFFFFF82000000)
    assert one.keys() == {"task", "preempt"}
