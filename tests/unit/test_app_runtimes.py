"""A runtime that allocates unseen is named, with how its own count is read."""

from pathlib import Path

import pytest

from fakes.elffiles import CODE, elf_file, symbols
from rtscope.programs.images import Images
from rtscope.programs.memorymap import parse_maps
from rtscope.verbs.app.check import FailOn, status_of
from rtscope.verbs.app.rules import examine
from rtscope.verbs.app.runtimes import marks, runtimes, runtimes_in
from unit.test_app_rules import seen


def names(files: dict[str, list[str]], environ: str = "") -> list[str]:
    return [one.name for one in runtimes_in(files, environ)]


@pytest.mark.parametrize(
    ("path", "functions", "name"),
    [
        ("/opt/game", ["luaJIT_setmode"], "LuaJIT"),
        ("/opt/server", ["stg_gc_noregs"], "GHC"),
        ("/usr/bin/node (deleted)", [], "V8"),
        ("/opt/jdk/lib/server/libjvm.so", [], "the JVM"),
        ("/usr/lib/libpypy3.9-c.so", [], "PyPy"),
    ],
)
def test_a_runtime_is_known_by_a_function_or_a_file(
    path: str, functions: list[str], name: str
) -> None:
    assert names({"/usr/lib/libc.so.6": [], path: functions}) == [name]


def test_a_setting_with_which_all_calls_are_seen_is_respected() -> None:
    python = {"/usr/bin/python3": ["PyObject_Malloc"]}

    assert names(python, "HOME=/\0PYTHONMALLOC=debug") == ["Python"]
    assert names(python, "HOME=/\0PYTHONMALLOC=malloc\0A=1") == []


def test_what_is_not_seen_of_it_is_said_and_fails_no_check() -> None:
    (jit,) = runtimes_in({"/usr/bin/luajit": ["luaJIT_setmode"]}, "")

    examined = examine(seen(runtimes=(jit,)))

    (unseen,) = examined.unseen
    assert unseen.ids == ("RA07",)
    assert "inside LuaJIT" in unseen.cause
    assert "collectgarbage" in unseen.remedy
    assert status_of(examined, FailOn.LOW) == 0


def test_each_has_a_mark_and_an_advice() -> None:
    for one in runtimes():
        assert one.functions or one.files
        assert one.advice


def test_the_files_of_a_process_are_searched_for_marks(tmp_path: Path) -> None:
    path = tmp_path / "game"
    path.write_bytes(elf_file(symbols(("luaJIT_setmode", CODE, 16))))
    maps = parse_maps(f"{CODE:x}-{CODE + 4096:x} r-xp 00000000 08:01 7 {path}")

    with Images(lambda _piece: path, marks=marks()) as images:
        images.read(maps)

        assert images.marks == {str(path): ["luaJIT_setmode"]}
