"""A check on a virtual board is of what `rtscope test` sees, and costs nothing."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rig import NEEDS_APT, rtscope

from rtscope.boards.catalogue import get_arch, get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.program import Program, program_of
from rtscope.boards.parts.programtree import put_users, tree_for
from rtscope.boards.recording.programseen import (
    outside_starts,
    outside_view,
    record_of,
)
from rtscope.boards.recording.programuses import program_uses
from rtscope.boards.runs.program import run_program
from rtscope.boards.runs.programscript import SETTLE_NS, ProgramJob
from rtscope.host.units import NS_PER_MS, NS_PER_S
from rtscope.machine.target import agent_file
from rtscope.verbs.app.boardwatch import facts_of
from rtscope.verbs.app.cycles import Cycle
from rtscope.verbs.app.model import Finding
from rtscope.verbs.app.outsidecycles import thread_cycles
from rtscope.verbs.app.outsidewatch import outside_watch
from rtscope.verbs.app.rules import examine

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

OFFENDERS = Path(__file__).parent.parent / "offenders"
PATIENCE_S = 1800.0
KERNEL = "debian-6.12-rt"
WARMUP_NS, DURATION_NS = 300 * NS_PER_MS, NS_PER_S
TICK_MS, FEW = 4, 10
"""The kernel's own timer interrupt, and others, between a begin and its reading."""

OFFENCE_NS = 4 * NS_PER_S
"""The greedy one takes its CPU each 2 s."""

OFFENCES: Mapping[str, tuple[str, str]] = {
    "malloc": ("RA07", "= malloc(100)"),
    "write": ("RA09", "write(fd"),
    "mmap": ("RA08", "munmap(mmap("),
    "relative-sleep": ("RA09", ""),
    "minor-fault": ("RA05", ""),
    "migration": ("RA15", ""),
    "mutex": ("RA10", ""),
    "inversion": ("RA11", ""),
    "woken": ("RA12", ""),
    "preempted": ("RA13", ""),
    "throttled": ("RA14", ""),
    "not-locked": ("RA04", ""),
    "priority-99": ("RA02", ""),
    "urgent": ("", ""),
}
"""The finding that each has, and a text of the line that has to be on its stack."""


def built(folder: Path, name: str) -> Path:
    out = folder / name
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl")
    options = ("-O1", "-g", "-static", "-o", out, OFFENDERS / f"{name}.c")
    subprocess.run([*zig, *options], check=True)
    return out


def asked(*words: object) -> dict[str, Any]:
    done = rtscope(*map(str, words)).finish(PATIENCE_S)
    assert done.status in (0, 1), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize(
    ("name", "words", "thread"),
    [("twoloops", ["3000"], "fast"), ("offender", ["malloc"], "cycle")],
)
def test_it_has_the_digits_of_a_test(
    name: str, words: Sequence[str], thread: str, tmp_path: Path
) -> None:
    program = built(tmp_path, name)
    times = ("--duration", "1s", "--json")
    test = asked(
        *("test", "--kernel", KERNEL, "--warmup", "300ms", *times),
        *("--", program, *words),
    )
    check = asked(
        *("app", "check", "--target", "virtual:pc", "--kernel", KERNEL),
        *("--settle", "300ms", *times, "--html", tmp_path / "check.html"),
        *("--", program, *words),
    )
    (mine,) = (one for one in check["cycles"]["threads"] if one["thread"] == thread)
    (its,) = (one for one in test["threads"] if one["thread"] == thread)
    found = [one for one in check["findings"] if one["tid"] == mine["tid"]]

    assert mine["cycles"] == its["cycles"] > 900
    assert mine["response_ns"]["max"] == its["response"]
    assert mine["latency_ns"]["max"] == its["latency"]
    assert mine["execution_ns"]["max"] == its["execution"]
    assert mine["period"]["missed"] + mine["period"]["overruns"] == its["missed"]
    assert mine["waits"] == its["blocking"]
    for id_, counter in (("RA05", "faults"), ("RA07", "allocations")):
        assert sum(one["count"] for one in found if one["id"] == id_) == its[counter]
    page = (tmp_path / "check.html").read_text("utf-8")
    assert page.count('class="flame"') == len(check["cycles"]["threads"])
    assert f"{thread}, cycle {its['worst']['cycle']}: " in page
    assert check["disturbance"] is None
    assert {id_ for one in check["not_seen"] for id_ in one["ids"]} == {"RA06", "RA21"}


def prepared() -> Prepared:
    context = BuildContext(cache=cache_dir(), agent=agent_file, log=print)
    return prepare(get_board("pc"), KERNEL, context=context)


def on_board(*command: str) -> Program:
    board = get_board("pc")
    tree = tree_for(board)
    put_users(tree)
    return program_of(command, get_arch(board.arch), tree=tree)


def test_no_wake_up_takes_longer_than_unwatched(tmp_path: Path) -> None:
    program, board = on_board(str(built(tmp_path, "twoloops")), "1500"), prepared()
    job = ProgramJob(
        program,
        duration_ns=2 * DURATION_NS,
        warmup_ns=WARMUP_NS,
        settle_ns=SETTLE_NS,
        describes=True,
    )
    uses = program_uses(program)
    span_ns = (WARMUP_NS, WARMUP_NS + 2 * DURATION_NS)
    view = outside_view(board, uses, span_ns, cache=cache_dir(), log=print)

    alone, run = run_program(board, job), run_program(board, job, view=view)
    (unwatched,) = alone.starts
    (seen,) = outside_starts(run, job, uses, record_of(run), title="twoloops")

    assert seen.start.stdout == unwatched.stdout
    own: dict[str, list[int]] = {}
    for name, due, began in (
        line.split() for line in unwatched.stdout.text.splitlines()
    ):
        own.setdefault(name, []).append(int(began) - int(due))
    for thread in seen.outside.threads:
        apart = nearest(thread_cycles(thread).cycles, own[thread.name])
        same = sum(apart[least(apart) + n] for n in range(3))
        assert apart.total() > 500
        assert apart.total() - same <= apart.total() // TICK_MS + FEW
        assert 0 < least(apart) < 1_000


def nearest(cycles: Sequence[Cycle], own: Sequence[int]) -> Counter[int]:
    """Return how its own readings differ, where most differ by the same."""
    latencies = [one.latency_ns for one in cycles]
    apart = (
        Counter(mine - seen for mine, seen in zip(own[at:], latencies, strict=False))
        for at in range(len(own) - len(latencies) + 1)
    )
    return max(apart, key=lambda one: one.most_common(1)[0][1])


def least(apart: Counter[int]) -> int:
    """Return the usual difference, less the ns that its clock is cut to."""
    return apart.most_common(1)[0][0] - 1


@pytest.fixture(scope="module")
def found(
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, Sequence[Finding]]:
    """The findings in each offence: one boot has them all."""
    board = prepared()
    program = on_board(
        str(built(tmp_path_factory.mktemp("offender"), "offender")), "{OFFENCE}"
    )
    job = ProgramJob(
        program,
        duration_ns=OFFENCE_NS,
        warmup_ns=WARMUP_NS,
        settle_ns=SETTLE_NS,
        phases_ns=(0,) * len(OFFENCES),
        values=tuple({"OFFENCE": name} for name in OFFENCES),
        describes=True,
    )
    uses = program_uses(program)
    span_ns = (WARMUP_NS, WARMUP_NS + OFFENCE_NS)
    view = outside_view(board, uses, span_ns, cache=cache_dir(), log=print)
    run = run_program(board, job, view=view)
    reader = record_of(run)
    starts = outside_starts(run, job, uses, reader, title="offender")
    return {
        name: examine(
            outside_watch(program, reader, one, facts_of(run, one)).observation
        ).findings
        for name, one in zip(OFFENCES, starts, strict=True)
    }


@pytest.mark.parametrize("offence", OFFENCES)
def test_each_offence_is_found(
    offence: str, found: Mapping[str, Sequence[Finding]]
) -> None:
    id_, text = OFFENCES[offence]
    some = [one for one in found[offence] if one.id == id_]

    assert bool(some) == bool(id_), found[offence]
    if offence == "urgent":
        assert found[offence] == ()
    if text:
        lines = (OFFENDERS / "offender.c").read_text().splitlines()
        (number,) = (n for n, line in enumerate(lines, 1) if text in line)
        frames = [one for row in some for s in row.stacks for one in s.stack.frames]
        assert number in {one.line for one in frames}
