"""Where in a program something was: in words, and by the files of a board."""

import subprocess
import sys
from dataclasses import replace
from struct import pack

import pytest

from fakes.programrecords import ALL, Written, file_of
from rtscope.boards.parts.initrd import File
from rtscope.boards.parts.program import Program
from rtscope.programs.binaries.image import Image
from rtscope.programs.naming import NamedFrame, NamedStack, Origin
from rtscope.programs.outside.cycles import outside_of
from rtscope.programs.outside.file import Kind, parse_program_record
from rtscope.programs.outside.model import Place
from rtscope.verbs.test.places import named_stacks, places_words, where

LOOP = 11
LIBRARY = NamedFrame("__libc_x", "", 0, "libc.so.6", 1, False, origin=Origin.RUNTIME)
WRAPPER = NamedFrame("wrapper", "", 0, "loop", 2, False, origin=Origin.PROGRAM)
OWN = NamedFrame("push", "/src/queue.c", 12, "loop", 3, False, origin=Origin.PROGRAM)
BARE = replace(LIBRARY, function="", offset=0x40)


def stack(*frames: NamedFrame) -> NamedStack:
    return NamedStack(frames, None)


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        ((LIBRARY, OWN), "push() queue.c:12"),
        ((LIBRARY, WRAPPER, OWN), "push() queue.c:12"),
        ((LIBRARY, WRAPPER), "wrapper()"),
        ((LIBRARY,), "__libc_x()"),
        ((replace(OWN, function="Queue::push(int)"),), "Queue::push(int) queue.c:12"),
        ((BARE,), "libc.so.6+0x40"),
        ((), ""),
    ],
)
def test_a_place_is_the_programs_own_line(
    frames: tuple[NamedFrame, ...], said: str
) -> None:
    assert where(stack(*frames)) == said


def test_places_of_one_line_are_one_and_the_rest_is_counted() -> None:
    stacks = {1: stack(OWN), 2: stack(LIBRARY, OWN), 3: stack(replace(OWN, line=20))}
    places = {
        Place("malloc", 1): 2,
        Place("malloc", 2): 3,
        Place("free", 3): 1,
        Place("calloc", 0): 1,
        Place("realloc", 9): 4,
    }

    assert places_words(places, stacks) == [
        "malloc in push() queue.c:12 (5 times)",
        "realloc (4 times)",
        "free in push() queue.c:20 (once)",
        "1 elsewhere",
    ]


@pytest.mark.parametrize(("callers", "caller"), [(2, ""), (3, " for c0() queue.c:12")])
def test_a_function_that_many_call_is_named_with_its_caller(
    callers: int, caller: str
) -> None:
    own = replace(OWN, function="take", file="/src/mem.c", line=9)
    stacks = {
        n: stack(LIBRARY, own, replace(OWN, function=f"c{n}")) for n in range(callers)
    }

    assert places_words({Place("malloc", 0): 2}, stacks) == [
        f"malloc in take() mem.c:9{caller} (2 times)"
    ]


# --- by the files of a board ----------------------------------------------------------

SOURCE = """
static volatile int taken;
__attribute__((noinline)) void own_allocator(void) { taken++; }
__attribute__((noinline)) int cycle(void)
{
\town_allocator();
\treturn taken;
}
int main(void) { return cycle() + cycle(); }
"""
CALL_LINE = 6


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A program at fixed addresses, of which no process tells what is where."""
    folder = tmp_path_factory.mktemp("fixed")
    source, out = folder / "loop.c", folder / "loop"
    source.write_text(SOURCE)
    options = ("-g", "-O1", "-static", "-nostdlib", "-ffreestanding", "-e", "main")
    unwound = ("-fasynchronous-unwind-tables", "-fno-pie", "-no-pie")
    target = ("-target", "x86_64-linux-musl")
    zig = (sys.executable, "-m", "ziglang", "cc", *target)
    subprocess.run([*zig, *options, *unwound, "-o", out, source], check=True)
    tree = {"program/loop": File(out.read_bytes(), runs=True)}
    return Program(("/loop",), tree, ())


def test_a_use_is_named_by_the_line_of_its_caller(program: Program) -> None:
    content = program.image("/program/loop") or b""
    image = Image(content, "loop")
    (begins,) = image.functions_named("own_allocator")
    (cycle,) = image.functions_named("cycle")
    at = image.offset_of(cycle.vaddr) or 0
    called = cycle.vaddr + content.index(b"\xe8", at) - at + 5
    registers = [0] * 20
    registers[7], registers[8] = 0x7000, begins.vaddr
    kept = pack("<20Q", *registers) + pack("<2Q", called, 0)
    written = Written()
    written.thread(LOOP, "loop")
    written.cycle(LOOP, 10_000, inside=((Kind.USED, 1 << 16),))
    written.put(
        *(Kind.STACK, 10_006, LOOP),
        detail=len(kept) // 32 + 1,
        user=16 << 32 | len(registers),
    )
    written.records.append(kept.ljust((len(kept) // 32 + 1) * 32, b"\0"))
    for number in range(1, 5):
        written.cycle(LOOP, 10_000 + 1_000 * number)
    record = parse_program_record(file_of(written.records, kinds=ALL))
    threads = outside_of(record, functions=("own_allocator",)).threads

    named = named_stacks(program, record, threads, {})

    assert places_words({Place("own_allocator", 1): 1}, named) == [
        f"own_allocator in cycle() loop.c:{CALL_LINE} (once)"
    ]


def test_what_no_file_tells_has_no_place(program: Program) -> None:
    written = Written()
    written.thread(LOOP, "loop")
    for number in range(4):
        inside = ((Kind.USED, 7 << 16),)
        written.cycle(LOOP, 10_000 + 1_000 * number, inside=inside)
    record = parse_program_record(file_of(written.records, kinds=ALL))
    threads = outside_of(record).threads

    assert named_stacks(program, record, threads, {}) == {}
    broken = Program(("/loop",), {"program/loop": File(b"\x7fELF")}, ())
    assert named_stacks(broken, record, threads, {}) == {}
