"""Names of functions of D: the path as `c++filt -s dlang` has it, without arguments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtscope.programs.binaries.demangling import demangled
from rtscope.programs.binaries.dnames import from_d

COLLECTOR = "_D4core8internal2gc4impl12conservativeQw"


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_D5ticks7controlFZv", "ticks.control"),
        (
            "_D2rt8lifetime12__arrayAllocFmKS4core6memory8BlkInfo_Zv",
            "rt.lifetime.__arrayAlloc(…)",
        ),
        (
            f"{COLLECTOR}3Gcx11fullcollectMFNbbbbZm",
            "core.internal.gc.impl.conservative.gc.Gcx.fullcollect",
        ),
        (
            "_D3std5array__T14arrayAllocImplVbi0TAaTmZQBaFNaNbmZQp",
            "std.array.arrayAllocImpl!(…)",
        ),
        ("_D3std4conv16__T6toImplTAyaTiZQoFiZAya", "std.conv.toImpl!(…)"),
        ("_D3std4zlib10UnCompress6__dtorMFZv", "std.zlib.UnCompress.~this"),
        ("_Dmain", "_Dmain"),
        ("_D9cutFZv", "_D9cutFZv"),
        ("_D2abQzFZv", "ab"),
    ],
)
def test_names_of_d(mangled: str, name: str) -> None:
    assert demangled(mangled) == name


@given(st.text("_DTQZz0159a__T", max_size=60))
def test_whatever_follows_the_prefix_is_read_to_an_end(rest: str) -> None:
    assert from_d(f"_D{rest}") != ""


def test_templates_behind_lengths_without_end_are_no_name() -> None:
    assert from_d("_D" + "9__T" * 2000) is None
