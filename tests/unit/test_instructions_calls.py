"""From executed blocks to calls: who called whom is known where it can be."""

import pytest

from fakes.paths import section, symbols
from fakes.wakeuppaths import TABLE
from rtscope.explain.instructions.calls import runs_of
from rtscope.explain.instructions.stretches import FIRMWARE
from rtscope.record.instructions.section import blocks_of


def test_callers_from_before_the_path_are_known_from_their_ends() -> None:
    path = section(
        [(10, "_raw_spin_lock+"), (10, "zap"), (10, "free_pages+"), (10, "user")],
        TABLE,
        late=5,
    )

    names = [
        [frame.name for frame in run.frame.chain()]
        for run in runs_of(blocks_of(path, 0), TABLE, arch="riscv64")
    ]

    below = ["free_pages", "(user space)"]
    assert names == [
        ["_raw_spin_lock", *below],
        ["zap", "_raw_spin_lock", *below],
        below,
        below[1:],
    ]


def test_a_thunk_is_part_of_the_function_that_jumps_through_it() -> None:
    table = symbols("zap", "__x86_indirect_thunk_rax", "free_pages")
    path = section(
        [
            (10, "zap"),
            (3, "__x86_indirect_thunk_rax"),
            (10, "free_pages"),
            (2, "__x86_indirect_thunk_rax+"),
            (10, "zap+"),
        ],
        table,
        late=5,
    )

    found = runs_of(blocks_of(path, 0), table, arch="x86_64")

    assert [([f.name for f in r.frame.chain()], r.executed_ns) for r in found] == [
        (["zap"], 13),
        (["free_pages", "zap"], 12),
        (["zap"], 10),
    ]


def test_a_path_that_begins_in_a_thunk_begins_in_the_function_behind_it() -> None:
    table = symbols("zap", "__x86_indirect_thunk_rax", "free_pages")
    path = section(
        [(3, "__x86_indirect_thunk_rax"), (10, "free_pages"), (10, "zap+")],
        table,
        late=5,
    )

    found = runs_of(blocks_of(path, 0), table, arch="x86_64")

    assert [([f.name for f in r.frame.chain()], r.executed_ns) for r in found] == [
        (["free_pages", "zap"], 13),
        (["zap"], 10),
    ]


def test_what_comes_behind_a_switch_called_nothing_before_it() -> None:
    path = section(
        [(10, "zap+"), (10, "__schedule"), (10, "__switch_to"), (10, "free_pages+")],
        TABLE,
        late=5,
    )

    last = runs_of(blocks_of(path, 0), TABLE, arch="riscv64")

    assert [frame.name for frame in last[0].frame.chain()] == ["zap"]
    assert [frame.name for frame in last[-1].frame.chain()] == ["free_pages"]


def test_firmware_is_a_call_and_its_caller_goes_on_afterwards() -> None:
    path = section([(10, "zap"), (10, "free_pages")], TABLE, late=5)
    path.values[path.kinds == 1] = path.values[path.kinds == 1]

    names = [
        [frame.name for frame in run.frame.chain()]
        for run in runs_of(blocks_of(path, 0), TABLE, arch="riscv64")
    ]

    assert names == [["zap"], ["free_pages", "zap"]]
    assert FIRMWARE not in names[0]


def test_what_an_exception_of_arm64_interrupts_goes_on_with_its_callers() -> None:
    names = ("plant", "dally", "vectors", "el1h_64_irq", "ret_to_kernel")
    table = symbols(*names, "__switch_to")
    path = section(
        [
            (10, "__switch_to"),
            (10, "plant"),
            (10, "dally"),
            (7, "vectors+"),
            (7, "vectors+"),
            (10, "el1h_64_irq"),
            (10, "ret_to_kernel"),
            (10, "dally+"),
            (10, "plant+"),
        ],
        table,
        late=5,
    )

    found = [
        [frame.name for frame in run.frame.chain()]
        for run in runs_of(blocks_of(path, 0), table, arch="aarch64")
    ]

    assert found[3][:3] == ["vectors", "dally", "plant"]
    assert [chain[:2] for chain in found[-2:]] == [["dally", "plant"], found[1][:2]]


def test_callers_are_known_from_their_ends_behind_an_exception_too() -> None:
    table = symbols("plant", "dally", "vectors", "el1h_64_irq")
    path = section(
        [
            (10, "dally+"),
            (7, "vectors+"),
            (10, "el1h_64_irq"),
            (10, "dally+"),
            (10, "plant+"),
        ],
        table,
        late=5,
    )

    first = runs_of(blocks_of(path, 0), table, arch="aarch64")[0]

    assert [frame.name for frame in first.frame.chain()] == ["dally", "plant"]


@pytest.mark.parametrize(
    ("whole", "cold"),
    [
        ("my_print", "my_print.cold"),
        ("my_print.isra.0", "my_print.isra.0.cold"),
        ("my_print.part.0", "my_print.part.0.cold"),
        ("my_print", "my_print.cold.12"),
        ("my_print [mine]", "my_print.cold [mine]"),
        ("my_print.constprop.0 [mine]", "my_print.constprop.0.cold [mine]"),
    ],
)
def test_the_cold_part_of_a_function_keeps_its_callers(whole: str, cold: str) -> None:
    table = symbols("vfs_write", whole, "printk", cold)
    path = section(
        [
            *((10, "vfs_write"), (10, whole), (5, cold), (9, "printk")),
            *((5, f"{cold}+"), (10, f"{whole}+"), (5, f"{cold}+"), (9, "printk")),
            *((5, f"{cold}+"), (10, "vfs_write+")),
        ],
        table,
        late=5,
    )

    found = runs_of(blocks_of(path, 0), table, arch="x86_64")

    inside = [whole, "vfs_write"]
    assert [[f.name for f in r.frame.chain()] for r in found] == [
        *(["vfs_write"], inside, ["printk", *inside], inside),
        *(["printk", *inside], inside, ["vfs_write"]),
    ]


def test_a_function_whose_name_only_begins_like_a_cold_part_stays_itself() -> None:
    table = symbols("vfs_write", "my.coldstart")
    path = section([(10, "vfs_write"), (9, "my.coldstart")], table, late=5)

    found = runs_of(blocks_of(path, 0), table, arch="x86_64")

    assert [run.frame.name for run in found] == ["vfs_write", "my.coldstart"]
