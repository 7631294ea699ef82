"""
Threads of a program begin on a virtual board at the phases that they were given.

The command that a search prints makes exactly its worst start.
"""

import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rig import NEEDS_APT, rtscope

from rtscope.boards.parts.qemu import Phase
from rtscope.boards.runs.program import run_program
from rtscope.programs.outside.file import Kind, ProgramRecord, parse_program_record
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.plan import Boot, boots_of

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

SOURCE = Path(__file__).parent.parent / "search" / "programs" / "lock.c"
MS, US = 1_000_000, 1000
PATIENCE_S = 900.0
CONTROL, LOGGER = 2, 3
"""Their numbers: in the order in which the program makes them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the program."""
    made = tmp_path_factory.mktemp("program")
    words = ["gcc", "-O2", "-static", "-o", str(made / "lock"), str(SOURCE)]
    subprocess.run([*words, "-lpthread"], check=True)
    return made


@pytest.fixture(scope="module")
def boot(folder: Path) -> Boot:
    """A boot of the program without phases."""
    test = ProgramTest(
        command=("./lock",),
        kernels=("debian-6.12-rt",),
        warmup_ns=100 * MS,
        duration_ns=20 * MS,
        settle_ns=0,
        base=str(folder),
    )
    [made] = boots_of(test, log=lambda _line: None, progress=lambda _step: None)
    return made


def recorded(boot: Boot, phases: Sequence[Phase]) -> bytes:
    view = replace(boot.view, phases=tuple(phases))
    record = run_program(boot.prepared, boot.job, view=view).record
    assert record is not None
    return record


def threads(record: ProgramRecord) -> Mapping[int, int]:
    """Return the tids of the threads that the program makes, by their number."""
    return {
        one.detail: one.value
        for one in record.entries
        if one.kind == Kind.FORK and one.detail
    }


def holds(record: ProgramRecord) -> Mapping[int, tuple[int, int]]:
    """Return from when and for how long threads stood still, by their number."""
    return {
        one.detail: (one.at_ns, one.value)
        for one in record.entries
        if one.kind == Kind.HOLD
    }


def own_times(record: ProgramRecord, tid: int) -> Sequence[int]:
    """Return when a thread went on by itself, after a switch or a call."""
    return [
        one.at_ns
        for one in record.entries
        if one.tid == tid and one.kind in (Kind.FIRST, Kind.RETURN)
    ]


def test_a_thread_begins_at_its_phase_and_others_as_before(boot: Boot) -> None:
    without = parse_program_record(recorded(boot, []))
    given = recorded(boot, [Phase(1, LOGGER, 8 * MS, 3210 * US)])
    record = parse_program_record(given)
    [(number, (from_ns, lasted_ns))] = holds(record).items()
    until_ns = from_ns + lasted_ns
    logger = threads(record)[LOGGER]

    assert number == LOGGER
    assert until_ns % (8 * MS) == 3210 * US
    times = own_times(record, logger)
    # an interrupt that came meanwhile is handled first, in a time that no test knows
    [after_ns, *_] = [at for at in times if at > from_ns]
    assert until_ns <= after_ns < until_ns + MS

    # until then both boots are the same
    assert holds(without) == {}
    assert from_ns in own_times(without, threads(without)[LOGGER])
    before = [one for one in record.entries if one.at_ns < from_ns]
    assert before == [one for one in without.entries if one.at_ns < from_ns]

    assert recorded(boot, [Phase(1, LOGGER, 8 * MS, 3210 * US)]) == given


def test_threads_of_every_start_begin_at_their_own_phases(boot: Boot) -> None:
    twice = replace(boot, job=replace(boot.job, phases_ns=(0, 0)))
    phases = [
        Phase(1, CONTROL, MS, 100 * US),
        Phase(2, CONTROL, MS, 700 * US),
        Phase(2, 1, 4 * MS, 1000 * US),
    ]

    record = parse_program_record(recorded(twice, phases))

    found = [
        (one.detail, (one.at_ns + one.value) % MS)
        for one in record.entries
        if one.kind == Kind.HOLD
    ]
    assert found == [(CONTROL, 100 * US), (1, 0), (CONTROL, 700 * US)]


def test_the_command_of_a_search_makes_exactly_its_worst_start(folder: Path) -> None:
    searched, repeated = folder / "searched.json", folder / "repeated.json"
    words = [
        *("test", "--kernel", "debian-6.12-rt", "--settle", "0s"),
        *("--warmup", "100ms", "--duration", "20ms", "--json"),
    ]
    program = ("--", str(folder / "lock"))

    found = answer(*words, "--search", "2", "--save", str(searched), *program)
    [search] = found["search"]
    _, *command = shlex.split(search["alone"][0]["command"])
    again = answer("test", "--save", str(repeated), *command[1:])

    assert len(search["trials"]) == 2
    assert search["growth"][0]["trial"] == 1
    assert "--search" not in command
    assert repeated.read_bytes() == searched.read_bytes()
    assert {**found, "search": None} == {**again, "search": None}


def answer(*words: str | Path) -> dict[str, Any]:
    """Return what `rtscope test` prints as JSON; it must run as asked."""
    with rtscope(*words) as program:
        done = program.finish(PATIENCE_S)
    assert done.status == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
