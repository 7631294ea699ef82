"""Offenders are found inside virtual boards, where this machine cannot show them."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agentinside import watch_inside
from rig import NEEDS_APT, are_built, rtscope

from rtscope.boards.catalogue import get_arch, get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.program import program_of
from rtscope.host.units import NS_PER_S
from rtscope.machine.target import agent_file
from rtscope.verbs.app.rules import examine

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

SOURCE = Path(__file__).parent.parent / "offenders" / "offender.c"
PATIENCE_S = 900.0
BLIND = {"RA06", "RA21"}
"""What no record of a board has; RA22 too, where a processor has it."""
PC = ("pc", "debian-6.12-rt")
RISCV = ("jh7110", "jh7110-6.12-rt")
ARM = ("rpi3", "debian-6.12-rt")
TARGETS = {
    "pc": "x86_64-linux-musl",
    "jh7110": "riscv64-linux-musl",
    "rpi3": "arm-linux-musleabihf",
}
"""Of zig. 32 bits on rpi3: its kernel aligns for such programs alone."""

ALLOCATOR = """
#include <stddef.h>
static char room[1 << 20];
static size_t used;
void *malloc(size_t size)
{
	char *at = room + used;
	used = (used + size + 15) % (sizeof(room) / 2) & ~(size_t)15;
	return at;
}
void free(void *at) { __asm__ volatile("" : : "r"(at)); }
"""

Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Return a function that compiles the offender for a board: static, with musl."""

    def compiled(board: str = "pc", *options: str) -> Path:
        out = tmp_path / "prog"
        zig = (sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[board])
        subprocess.run(
            [*zig, "-O1", "-g", "-static", *options, "-o", out, SOURCE], check=True
        )
        return out

    return compiled


def checked(
    program: Path,
    offence: str,
    *options: str,
    where: tuple[str, str] = PC,
    duration: str = "1s",
) -> tuple[int, dict[str, Any]]:
    board, kernel = where
    place = ("--target", f"virtual:{board}", "--kernel", kernel)
    times = ("--duration", duration, "--settle", "300ms")
    words = ("app", "check", "--json", *place, *times, *options)
    with rtscope(*words, "--", str(program), offence) as running:
        done = running.finish(PATIENCE_S)
    assert done.status in (0, 1, 3), done.stderr
    return done.status, json.loads(done.stdout)


def ids(document: dict[str, Any]) -> set[str]:
    return {one["id"] for one in document["findings"]}


def one_of(document: dict[str, Any], id_: str) -> dict[str, Any]:
    (found,) = (one for one in document["findings"] if one["id"] == id_)
    assert isinstance(found, dict)
    return found


def line_of(text: str) -> int:
    lines = SOURCE.read_text().splitlines()
    (number,) = (n for n, line in enumerate(lines, 1) if text in line)
    return number


def test_the_same_program_gives_the_same_answer_twice(
    build: Build, tmp_path: Path
) -> None:
    program, page = build(), tmp_path / "page.html"

    first = checked(program, "malloc", "--html", str(page))
    again = checked(program, "malloc")

    assert first == again
    status, document = first
    assert status == 1
    assert document["virtual"]["board"] == "pc"
    assert "irtual board pc with debian-6.12-rt" in page.read_text()
    found = one_of(document, "RA07")
    assert found["thread"] == "cycle"
    assert found["detail"].startswith("malloc ")
    (frame, *_) = found["stacks"][0]["frames"][1:]
    assert (frame["function"], frame["line"]) == ("offend", line_of("= malloc(100)"))
    (cycles,) = document["cycles"]["threads"]
    assert cycles["period"]["period_ns"] == 1_000_000
    assert cycles["longest"]["explained"]


def test_each_call_of_a_dynamic_program_is_counted_once(tmp_path: Path) -> None:
    # an allocator of its own, which both of its tables of symbols name
    out, own = tmp_path / "prog", tmp_path / "own.c"
    own.write_text(ALLOCATOR)
    flags = ("-O1", "-g", "-pthread", "-fno-builtin", "-Wl,-z,now", "-Wl,-E")
    subprocess.run(["gcc", *flags, "-o", out, SOURCE, own], check=True)

    _, document = checked(out, "malloc")

    found = one_of(document, "RA07")
    calls = re.fullmatch(r"malloc ([\d,]+), free ([\d,]+)", found["detail"])
    assert calls is not None, found["detail"]
    (cycles,) = document["cycles"]["threads"]
    samples = cycles["response_ns"]["samples"]
    assert [int(one.replace(",", "")) for one in calls.groups()] == [samples] * 2


def test_another_seed_gives_another_answer(build: Build) -> None:
    program = build()

    digests = {
        checked(program, "clean", "--seed", seed)[1]["virtual"]["answer_digest"]
        for seed in ("1", "2")
    }

    assert len(digests) == 2


def test_a_clean_program_has_no_findings(build: Build) -> None:
    status, document = checked(build(), "urgent")

    assert document["findings"] == []
    assert {id_ for one in document["not_seen"] for id_ in one["ids"]} == BLIND
    assert status == 0


def test_a_board_boots_with_what_is_appended(build: Build) -> None:
    plain = checked(build(), "clean")[1]
    status, more = checked(build(), "clean", "--append", "nowatchdog")

    assert (status, more["findings"]) == (0, [])
    assert (plain["virtual"]["append"], more["virtual"]["append"]) == ("", "nowatchdog")
    assert plain["virtual"]["board_digest"] != more["virtual"]["board_digest"]


def test_allocations_of_a_program_without_symbols_are_not_called_none(
    build: Build,
) -> None:
    status, document = checked(build("pc", "-s"), "urgent")

    unseen = {id_ for one in document["not_seen"] for id_ in one["ids"]}
    assert unseen == {"RA07", *BLIND}
    assert (status, document["findings"]) == (3, [])


def test_the_cpu_that_the_kernel_takes_from_a_greedy_thread_is_found(
    build: Build,
) -> None:
    _, document = checked(build(), "throttled", duration="4s")

    found = one_of(document, "RA14")
    assert found["thread"] == "cycle"
    assert found["count"] >= 1
    # the thread that starves, or one of the kernel that starves with it
    assert found["worst"]["lasted_ns"] > 1_000_000


def test_what_the_kernel_aligns_is_found_by_an_agent(build: Build) -> None:
    # no machine of a developer does that
    board = get_board("rpi3")
    context = BuildContext(cache=cache_dir(), agent=agent_file, log=print)
    seen = watch_inside(
        prepare(board, ARM[1], context=context),
        program_of([str(build("rpi3")), "unaligned"], get_arch(board.arch)),
        settle_ns=NS_PER_S // 2,
        duration_ns=NS_PER_S,
    )
    (found,) = examine(seen.observation).findings
    (cycles,) = seen.recording.threads.values()

    assert (found.id, found.thread) == ("RA22", "cycle")
    # one in each cycle; the cycles were recorded before, and the first events of a
    # thread come some ms after it is watched
    assert cycles.period is not None
    assert found.rate_per_s is not None
    assert 0.98 <= found.rate_per_s * cycles.period.period_ns / NS_PER_S <= 1.0
    (unseen,) = (one for one in seen.observation.watch.begin.events if not one.seen)
    assert (unseen.name, unseen.cause) == ("relative_sleep", "limit")


@pytest.mark.skipif(not are_built(RISCV[1]), reason="needs the kernel jh7110-6.12-rt")
def test_a_kernel_without_events_is_seen_from_outside(build: Build) -> None:
    status, document = checked(build("jh7110"), "malloc", where=RISCV)

    found = one_of(document, "RA07")
    (cycles,) = document["cycles"]["threads"]
    assert (found["thread"], found["count"]) == ("cycle", 2 * cycles["cycles"])
    unseen = {id_ for one in document["not_seen"] for id_ in one["ids"]}
    assert unseen == {"RA22", *BLIND}
    assert status == 1
