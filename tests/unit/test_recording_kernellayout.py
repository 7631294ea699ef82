"""Where kernels keep what a window tells of them."""

import pytest

from rtscope.boards.recording.symbols import kernel_layout, section_options
from rtscope.host.errors import UsageError
from rtscope.record.instructions.symbols import NO_SYMBOLS, parse_symbols


def test_riscv_has_the_task_in_tp() -> None:
    assert kernel_layout("riscv64", config="", symbols=NO_SYMBOLS) == {
        "task": "tp",
        "preempt": "tp@8:4",
    }


@pytest.mark.parametrize(
    ("config", "offset"),
    [
        ("CONFIG_ARM64_SW_TTBR0_PAN=y\n", 16),
        ("# CONFIG_ARM64_SW_TTBR0_PAN is not set\n", 8),
        (
            "CONFIG_ARM64_SW_TTBR0_PAN=y\n# CONFIG_ARM64_SW_TTBR0_PAN is not set\n",
            8,
        ),
    ],
)
def test_arm64_has_the_count_behind_what_its_configuration_puts_first(
    config: str, offset: int
) -> None:
    assert kernel_layout("aarch64", config=config, symbols=NO_SYMBOLS) == {
        "task": "SP_EL0",
        "preempt": f"SP_EL0@{offset}:4",
    }


def test_arm64_without_its_configuration_is_not_guessed() -> None:
    assert kernel_layout("aarch64", config="", symbols=NO_SYMBOLS) == {}


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("00000000000001c0 A pcpu_hot\n", ("gs_base@448", "gs_base@456:4")),
        (
            "0000000000000100 A current_task\n0000000000000200 A __preempt_count\n",
            ("gs_base@256", "gs_base@512:4"),
        ),
        (
            "ffffffff83c68018 D current_task\nffffffff83c68030 D __preempt_count\n",
            ("gs_base@-2084143080", "gs_base@-2084143056:4"),
        ),
    ],
)
def test_x86_has_variables_of_each_cpu(text: str, places: tuple[str, str]) -> None:
    found = kernel_layout("x86_64", config="", symbols=parse_symbols(text))

    assert (found["task"], found["preempt"]) == places


@pytest.mark.parametrize("kind", ["D", "T"])
def test_the_first_task_is_known_wherever_it_lies(kind: str) -> None:
    text = (
        "00000000000001c0 A pcpu_hot\nffffffff8139fac0 t finish_task_switch.isra.0\n"
        f"ffffffff8301d080 {kind} init_task\n"
    )

    found = kernel_layout("x86_64", config="", symbols=parse_symbols(text))

    assert found["first-task"] == str(0xFFFFFFFF8301D080)
    assert found["switched"] == str(0xFFFFFFFF8139FAC0)


def test_x86_without_these_variables_is_not_guessed() -> None:
    assert kernel_layout("x86_64", config="", symbols=NO_SYMBOLS) == {}


FOUR = parse_symbols(
    "00000010 t __schedule\n00000020 t do_idle\n00000030 t do_nanosleep\n"
    "00000040 T do_exit\n"
)
ADDRESSES = {"schedule": 0x10, "idle": 0x20, "sleep": 0x30, "exit": 0x40}


@pytest.mark.parametrize(
    ("arch", "release", "due"),
    [
        ("riscv64", "6.1.176-rt64", {"due": 3}),
        ("riscv64", "6.12.95", {"due": 3}),
        ("aarch64", "6.12.107+deb13-rt-arm64", {"due": 1}),
        ("x86_64", "7.2.1", {}),
        ("x86_64", "", {}),
    ],
)
def test_sections_are_told_by_four_functions_and_a_flag(
    arch: str, release: str, due: dict[str, int]
) -> None:
    assert section_options(arch, release=release, symbols=FOUR) == ADDRESSES | due


@pytest.mark.parametrize("release", ["6.13.0", "7.2", "5.15.1", "6.0", "", "rt"])
def test_a_flag_that_was_not_read_in_the_source_is_not_guessed(release: str) -> None:
    with pytest.raises(UsageError, match=r"is known of 6\.1 to 6\.12"):
        section_options("riscv64", release=release, symbols=FOUR)


def test_sections_without_the_symbols_are_refused() -> None:
    with pytest.raises(UsageError, match="lack one of __schedule, do_idle"):
        section_options("x86_64", release="6.12", symbols=NO_SYMBOLS)


def test_where_a_cpu_has_switched_and_the_first_task_are_told_if_both_are_known() -> (
    None
):
    switch = "ffffffff81000000 t finish_task_switch.isra.0\n"
    first = "ffffffff82000000 D init_task\n"

    both = kernel_layout("riscv64", config="", symbols=parse_symbols(switch + first))
    one = kernel_layout("riscv64", config="", symbols=parse_symbols(switch))

    assert both["switched"] == str(0xFFFFFFFF81000000)
    assert both["first-task"] == str(0xFFFFFFFF82000000)
    assert one.keys() == {"task", "preempt"}


def test_where_a_task_gets_a_name_is_told_by_the_kernels_own_function() -> None:
    text = "ffffffff81000000 T __set_task_comm\nffffffff81000100 T try_to_wake_up\n"

    found = kernel_layout("riscv64", config="", symbols=parse_symbols(text))

    assert found["rename"] == str(0xFFFFFFFF81000000)
    assert found["wake"] == str(0xFFFFFFFF81000100)
