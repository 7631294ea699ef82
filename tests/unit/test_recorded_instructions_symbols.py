"""Symbol tables: the right function for each address, or none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.host.errors import ContractError
from rtscope.record.instructions.symbols import SymbolTable, merged, parse_symbols

TEXT = """\
0000000000032f40 A pcpu_hot
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff810000f0 t __pfx_schedule
ffffffff81000100 T schedule
ffffffff81000100 t __alias_of_schedule
ffffffff81000200 D jiffies
ffffffffc0000000 t ext4_read\t[ext4]
"""


def named(table: SymbolTable, *addresses: int) -> list[str | None]:
    return table.names_of(np.array(addresses, np.uint64))


def test_an_address_is_in_the_function_that_begins_before_it() -> None:
    table = parse_symbols(TEXT)

    assert named(table, 0xFFFFFFFF81000100, 0xFFFFFFFF810001FF) == ["schedule"] * 2
    assert named(table, 0xFFFFFFFF81000001) == ["startup_64"]


def test_the_first_address_of_a_symbol_is_told_from_all_others() -> None:
    schedule = 0xFFFFFFFF81000100
    asked = np.array([0, schedule - 1, schedule, schedule + 1, 2**64 - 1], np.uint64)

    found = parse_symbols(TEXT).are_starts(asked)

    assert found.tolist() == [False, False, True, False, False]
    assert not SymbolTable(np.empty(0, np.uint64), (), {}).are_starts(asked).any()


def test_data_and_what_lies_outside_have_no_function() -> None:
    table = parse_symbols(TEXT)

    assert named(table, 0x1000, 0xFFFFFFFF80FFFFFF, 0xFFFFFFFF81000200) == [None] * 3
    assert named(table, 0xFFFFFFFFC0200000) == [None]


def test_a_module_is_named_and_looked_for_where_the_run_had_it() -> None:
    moved = parse_symbols(TEXT, moved={"ext4": 0x5000})

    assert named(moved, 0xFFFFFFFFC0005010) == ["ext4_read [ext4]"]
    assert named(moved, 0xFFFFFFFFC0000010) == [None]


def test_variables_are_found_by_name() -> None:
    assert parse_symbols(TEXT).values["pcpu_hot"] == 0x32F40


def test_a_kernel_that_hides_its_addresses_is_told() -> None:
    with pytest.raises(ContractError, match="kptr_restrict"):
        parse_symbols("0000000000000000 T schedule\n")


def test_a_label_with_a_space_at_its_end_is_a_line() -> None:
    table = parse_symbols(
        "ffffffff803bca46 t __efistub_.L0 \nffffffff803bca50 T efi_entry\n"
    )

    assert table.names[-1] == "efi_entry"


def test_another_file_is_refused() -> None:
    with pytest.raises(ContractError, match="not a line of a symbol table"):
        parse_symbols("ELF")


@given(st.text(max_size=200))
def test_garbage_is_read_or_refused(text: str) -> None:
    try:
        table = parse_symbols(text)
    except ContractError:
        return
    assert len(table.starts) == len(table.names)


@given(
    st.lists(st.integers(1, 2**20), min_size=1, unique=True),
    st.integers(0, 2**20),
)
def test_the_nearest_lower_symbol_is_the_one(starts: list[int], address: int) -> None:
    text = "".join(f"{start:016x} T f{start}\n" for start in starts)
    below = [start for start in starts if start <= address]

    (name,) = named(parse_symbols(text), address)

    assert name == (f"f{max(below)}" if below else None)


def test_symbols_of_modules_that_came_later_are_added() -> None:
    kernel = parse_symbols("ffffffff81000000 t zap\nffffffff82000000 D init_task\n")
    module = parse_symbols("ffffffffc0000010 t mine\t[my]\n")

    both = merged(kernel, module)

    assert both.names == ("zap", None, "mine [my]")
    assert both.values == {"init_task": 0xFFFFFFFF82000000}
    assert merged(kernel, parse_symbols("")) is kernel


def test_a_function_is_found_by_its_name_or_as_a_clone() -> None:
    table = parse_symbols("ffffffff81000000 t zap.isra.0\nffffffff81000100 t zapped\n")

    assert table.address_of("zap") == 0xFFFFFFFF81000000
    assert table.address_of("za") is None


@pytest.mark.parametrize("clone", ["", ".isra.0", ".constprop.0.isra.1"])
def test_a_function_does_not_begin_at_its_seldom_executed_piece(clone: str) -> None:
    table = parse_symbols(
        f"ffffffff81000000 t do_exit{clone}.cold\nffffffff81000100 T do_exit{clone}\n"
    )

    assert list(table.addresses_of("do_exit")) == [0xFFFFFFFF81000100]


def test_a_function_comes_before_its_clones() -> None:
    table = parse_symbols("ffffffff81000000 t zap.part.0\nffffffff81000100 t zap\n")

    assert table.address_of("zap") == 0xFFFFFFFF81000100
