"""The plugin in a real QEMU: exact counts, bounded quanta, whole paths."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bare import NO_QEMU, ROOT, Board, address_of, build, build_guest, find_qemu

from rtscope.record.instructions.file import whole_from_ns
from rtscope.record.instructions.section import (
    RecordKind,
    SectionKind,
    TraceSection,
    requests_of,
    task_switches,
    wakes_of_tasks,
)

QUANTUM = 2500
NS_PER_INSTRUCTION = 2
QEMU_TURN_NS = 100_000_000
"""QEMU's own timer ends the turn of a spinning CPU, if no quantum does."""

SUPERVISOR = 0xFFFFFFFF80000000
"""From here on the guest is a kernel, as far as the plugin can tell."""


@pytest.fixture(scope="session")
def qemu() -> Sequence[str]:
    """Return how a QEMU is started that can load the plugin, which is built."""
    found = find_qemu()
    if found is None:
        pytest.skip(NO_QEMU)
    subprocess.run(["make", "-s", "-C", str(ROOT / "plugin"), "WERROR=1"], check=True)
    return found


@pytest.fixture
def board(qemu: Sequence[str], tmp_path: Path) -> Board:
    return Board(qemu, tmp_path)


def of_kind(section: TraceSection, kind: RecordKind) -> list[int]:
    return [int(value) for value in section.values[section.kinds == kind]]


def marked_latencies(section: TraceSection) -> list[int]:
    return of_kind(section, RecordKind.MARK)


def test_every_instruction_counts_once(board: Board) -> None:
    few = board.count(build_guest(spins=10_000), cpus=1)
    many = board.count(build_guest(spins=70_000), cpus=1)

    assert many["last_mark"] - few["last_mark"] == 2 * 60000
    programs = "last_mark_in_programs"
    assert many[programs] - few[programs] == 2 * 60000
    # After the spinning the guest goes to the upper half, and marks there.
    assert 0 < few["last_mark"] - few[programs] < 100


def test_the_cpus_add_up_to_all(board: Board) -> None:
    counted = board.count(build_guest(rounds=3), cpus=2, quantum=QUANTUM)

    assert len(counted["per_cpu"]) == 2
    assert min(counted["per_cpu"]) > QUANTUM
    assert sum(counted["per_cpu"]) == counted["instructions"]
    assert counted["marks"] == 3 + 1


def test_two_runs_are_identical(board: Board) -> None:
    guest = build_guest(rounds=5)
    paths = board.work / "paths"
    arguments = {"quantum": QUANTUM, "out": paths, "shift": 1}

    first = board.count(guest, cpus=2, **arguments)["last_mark"], paths.read_bytes()
    again = board.count(guest, cpus=2, **arguments)["last_mark"], paths.read_bytes()

    assert first == again


def test_recording_changes_nothing_in_the_guest(board: Board) -> None:
    guest = build_guest(rounds=5)

    silent = board.count(guest, cpus=2, quantum=QUANTUM)
    recorded = board.count(
        guest,
        cpus=2,
        quantum=QUANTUM,
        out=board.work / "paths",
        shift=1,
        window="200:60000",
        task="tp",
    )

    assert recorded["last_mark"] == silent["last_mark"]


@pytest.mark.slow
def test_unbounded_turns_keep_a_cpu_waiting_and_bounded_ones_do_not(
    board: Board,
) -> None:
    guest = build_guest(rounds=4)

    unbounded = board.record(guest, cpus=2, quantum=0, worst=4, ring=4096)
    bounded = board.record(guest, cpus=2, quantum=QUANTUM, worst=4, ring=4096)

    assert [s.latency_ns for s in unbounded.sections] == [QEMU_TURN_NS] * 4
    # Each CPU sees what the other one wrote at most a quantum late, and the machine's
    # clock ticks every 100 ns.
    worst_ns = max(s.latency_ns for s in bounded.sections)
    assert worst_ns <= 2 * QUANTUM * NS_PER_INSTRUCTION + 200


THREE_WORST = {"cpus": 2, "quantum": 0, "worst": 3, "ring": 4096}


@pytest.fixture(scope="module")
def equally_late() -> Path:
    """A guest with four latencies of the same length."""
    return build_guest(rounds=4, latency_ns=4_000_000)


@pytest.fixture(scope="module")
def three_worst(
    qemu: Sequence[str], equally_late: Path, tmp_path_factory: pytest.TempPathFactory
) -> Sequence[TraceSection]:
    board = Board(qemu, tmp_path_factory.mktemp("three"))
    return board.record(equally_late, **THREE_WORST).sections


def test_the_worst_are_kept_worst_first_and_of_equal_ones_the_earlier(
    three_worst: Sequence[TraceSection],
) -> None:
    assert [(s.latency_ns, s.sequence) for s in three_worst] == [
        (QEMU_TURN_NS, 1),
        (QEMU_TURN_NS, 2),
        (QEMU_TURN_NS, 3),
    ]


def test_a_path_ends_at_its_mark_and_begins_well_before_its_expiry(
    board: Board,
) -> None:
    guest = build_guest(spins=200_000, latency_ns=50_000)

    (path,) = board.record(guest, cpus=1).sections

    assert path.kind is SectionKind.WORST
    assert (path.cpu, path.latency_ns, path.sequence) == (0, 50_000, 7)
    assert marked_latencies(path) == [50_000]
    assert of_kind(path, RecordKind.SEQUENCE) == [7]
    assert int(path.at_ns[-1]) == path.last_ns
    expiry_ns = path.last_ns - 50_000
    # and what the disorder of several CPUs could hide: here of one, whose turns end
    # with its timers only
    assert expiry_ns - path.first_ns >= 40_000
    assert not path.cut


@pytest.mark.parametrize(
    ("latency_ns", "lead_ns"),
    [(50_000, 40_000), (200_000, 100_000), (1_200_000, 500_000)],
)
def test_the_later_a_wakeup_the_longer_before_its_expiry_its_path_begins(
    board: Board, latency_ns: int, lead_ns: int
) -> None:
    guest = build_guest(spins=600_000, latency_ns=latency_ns)

    (path,) = board.record(guest, cpus=1, quantum=QUANTUM).sections

    # Before that comes what the disorder of CPUs could hide: a quantum.
    before_ns = path.last_ns - path.latency_ns - path.first_ns
    assert lead_ns <= before_ns <= lead_ns + 2 * QUANTUM * NS_PER_INSTRUCTION
    assert whole_from_ns(replace(path, cut=True, first_ns=path.last_ns)) == (
        path.last_ns - path.latency_ns - lead_ns
    )


def test_a_path_begins_where_interrupts_went_off_that_are_off_before_its_expiry(
    board: Board,
) -> None:
    guest = build_guest(spins=9_000, spins_off=50_000, latency_ns=50_000)

    (path,) = board.record(guest, cpus=1, quantum=QUANTUM).sections

    assert of_kind(path, RecordKind.INTERRUPTS) == [0, 1, 0]
    (_, _, off_ns) = path.at_ns[path.kinds == RecordKind.INTERRUPTS]
    # two instructions for each spin
    assert path.last_ns - off_ns > 2 * 50_000 * NS_PER_INSTRUCTION
    assert path.first_ns < off_ns
    assert not path.cut


def test_what_had_interrupts_off_for_longer_than_is_looked_back_is_not_recorded(
    board: Board,
) -> None:
    guest = build_guest(spins_off=300_000, latency_ns=50_000)

    (path,) = board.record(guest, cpus=1, quantum=QUANTUM).sections

    assert of_kind(path, RecordKind.INTERRUPTS) == [0]
    assert path.last_ns - path.first_ns < 200_000


def test_blocks_account_for_every_instruction_of_a_path(board: Board) -> None:
    guest = build_guest(spins=30_000)

    (path,) = board.record(guest, cpus=1).sections

    blocks = path.kinds == RecordKind.BLOCK
    spinning = (
        path.values[blocks]
        == np.bincount((path.values[blocks] & np.uint64(0xFFF)).astype(int)).argmax()
        + 0x80000000
    )
    steps_ns = np.diff(path.at_ns[blocks])
    assert set(steps_ns[spinning[:-1]]) == {2 * NS_PER_INSTRUCTION}


def test_a_short_ring_says_that_the_path_was_cut(board: Board) -> None:
    guest = build_guest(spins=200_000, latency_ns=50_000)

    (path,) = board.record(guest, cpus=1, ring=1024).sections

    assert path.cut
    assert marked_latencies(path) == [50_000]


def test_interrupts_are_seen_to_be_enabled_and_disabled(board: Board) -> None:
    (path,) = board.record(build_guest(), cpus=1).sections

    assert of_kind(path, RecordKind.INTERRUPTS) == [0, 1, 0]
    changes_ns = path.at_ns[path.kinds == RecordKind.INTERRUPTS]
    # `csrsi` to `csrci`: three instructions of one block, one and one of two others
    assert int(changes_ns[2] - changes_ns[1]) == 5 * NS_PER_INSTRUCTION


def test_a_window_also_tells_the_task_and_the_preemption_count(board: Board) -> None:
    trace = board.record(
        build_guest(), cpus=1, window="0:2000", task="tp", preempt="tp@8:4"
    )

    window = trace.sections[-1]
    assert window.kind is SectionKind.WINDOW
    assert of_kind(window, RecordKind.PREEMPT) == [0, 3]
    (task,) = of_kind(window, RecordKind.TASK)
    assert task > SUPERVISOR
    assert of_kind(window, RecordKind.INTERRUPTS) == [0, 1, 0]
    assert of_kind(window, RecordKind.BLOCK)[-1] > SUPERVISOR


def test_a_path_tells_the_preemption_count_of_what_an_interrupt_interrupted(
    board: Board,
) -> None:
    guest = build_guest()

    (told,) = board.record(guest, cpus=1, preempt="tp@8:4").sections
    (silent,) = board.record(guest, cpus=1).sections

    assert of_kind(told, RecordKind.PREEMPT) == [3]
    assert of_kind(silent, RecordKind.PREEMPT) == []
    assert told.last_ns == silent.last_ns


def test_a_task_is_told_by_name_where_the_kernel_has_switched_to_it(
    board: Board,
) -> None:
    guest = build_guest()
    places = {
        "task": "tp",
        "switched": address_of(guest, "switched"),
        "first-task": address_of(guest, "task"),
    }

    (path,) = board.record(guest, cpus=1, **places).sections
    silent = board.count(guest, cpus=1)

    (told,) = task_switches(path)
    assert (told.task, told.name) == (address_of(guest, "task"), "swapper/0")
    assert told.policy == "not real-time, nice 0"
    assert path.first_ns < told.at_ns < path.last_ns
    assert path.last_ns == silent["last_mark"] * NS_PER_INSTRUCTION


def test_a_task_without_a_known_name_is_told_all_the_same(board: Board) -> None:
    guest = build_guest()
    switched = address_of(guest, "switched")

    (path,) = board.record(guest, cpus=1, task="tp", switched=switched).sections

    (told,) = task_switches(path)
    assert (told.task, told.name) == (address_of(guest, "task"), "")


def test_a_name_holds_from_where_a_task_gets_it_also_before_a_path(
    board: Board,
) -> None:
    guest = build("renames.S", SPINS=30_000, LATENCY_NS=2000)  # of 40 µs and more
    first, second = address_of(guest, "first"), address_of(guest, "second")
    places = {
        "task": "tp",
        "switched": address_of(guest, "switched"),
        "first-task": first,
        "rename": address_of(guest, "rename"),
    }

    trace = board.record(guest, cpus=1, quantum=QUANTUM, **places)
    silent = board.count(guest, cpus=1, quantum=QUANTUM)

    paths = sorted(trace.sections, key=lambda path: path.sequence)
    assert [[(t.task, t.name) for t in task_switches(path)] for path in paths] == [
        [(first, "swapper/0"), (first, "one")],
        [(first, "one")],
        [(first, "one"), (first, "two")],
        [(second, "four"), (first, "three")],
    ]
    kept = of_kind(paths[0], RecordKind.RENAMED)
    assert kept == [first]  # it had the name already when it got it again
    assert paths[-1].last_ns == silent["last_mark"] * NS_PER_INSTRUCTION


def test_a_window_tells_a_name_that_a_task_got_in_it(board: Board) -> None:
    guest = build("renames.S", SPINS=1, LATENCY_NS=2000)
    places = {
        "task": "tp",
        "first-task": address_of(guest, "first"),
        "rename": address_of(guest, "rename"),
    }

    window = board.record(guest, cpus=1, window="0:2000", **places).sections[-1]

    told = [(t.task, t.name) for t in task_switches(window)]
    assert window.kind is SectionKind.WINDOW
    assert [name for _task, name in told] == [
        *("swapper/0", "one", "two"),
        *("other", "four", "three"),
    ]


def test_whom_the_kernel_wakes_is_told_where_it_does_so(board: Board) -> None:
    guest = build_guest()
    wake = address_of(guest, "switched")

    (path,) = board.record(guest, cpus=1, task="tp", wake=wake).sections
    silent = board.count(guest, cpus=1)

    (woken,) = wakes_of_tasks(path)
    assert (woken.cpu, woken.task) == (0, address_of(guest, "task"))
    assert path.first_ns < woken.at_ns < path.last_ns
    assert path.last_ns == silent["last_mark"] * NS_PER_INSTRUCTION


def test_a_request_for_an_interrupt_tells_who_asked_whom_and_when(board: Board) -> None:
    guest = build("wakes.S", ROUNDS=3, SPINS=700)
    wake = address_of(guest, "sleeper")  # never there: the requests are what counts

    (path, *_) = board.record(guest, cpus=2, task="tp", wake=wake, quantum=50).sections

    asked = [one for one in requests_of(path) if one.by == 0]
    blocks = path.at_ns[(path.kinds == RecordKind.BLOCK) & (path.cpus == 0)]
    assert [one.cpu for one in asked] == [1, 1, 1]
    for one in asked:
        begun = int(blocks[blocks <= one.at_ns][-1])
        assert 0 <= one.at_ns - begun < 100 * NS_PER_INSTRUCTION


def test_every_window_tells_the_state_anew(board: Board) -> None:
    guest = build_guest(spins=1)
    (path,) = board.record(guest, cpus=1).sections
    end = path.last_ns
    last_four, last_two = f"{end - 8}:{end - 5}", f"{end - 4}:99999"

    trace = board.record(
        guest, cpus=1, task="tp", **{"window": f"{last_four},window={last_two}"}
    )

    first, second = trace.sections[1:]
    assert of_kind(first, RecordKind.TASK) == of_kind(second, RecordKind.TASK) != []
    assert of_kind(first, RecordKind.INTERRUPTS) == [1, 0]
    assert of_kind(second, RecordKind.INTERRUPTS) == [0]


def test_a_window_holds_just_what_began_in_it(board: Board) -> None:
    guest = build_guest(spins=5000)

    trace = board.record(guest, cpus=1, window="200:399")

    window = trace.sections[-1]
    assert int(window.at_ns[0]) >= 200
    assert int(window.at_ns[-1]) <= 399
    assert len(of_kind(window, RecordKind.BLOCK)) == 50


@pytest.mark.parametrize(
    "arguments",
    [
        {"quantum": "-1"},
        {"quantum": "5us"},
        {"speed": "7"},
        {"out": "x", "window": "9:3"},
        {"out": "x", "worst": "65"},
        {"task": "tp"},
        {"out": ""},
    ],
)
def test_a_wrong_argument_ends_qemu_and_is_named(
    board: Board, arguments: dict[str, str]
) -> None:
    done = board.start(build_guest(), cpus=1, **arguments)

    assert done.returncode != 0
    assert "rtscope-plugin: bad argument: " in done.stderr


def test_a_register_that_the_cpu_lacks_is_named(board: Board) -> None:
    done = board.start(build_guest(), cpus=1, out=board.work / "x", task="sp_el0")

    assert done.returncode != 0
    assert "the CPU has no register sp_el0" in done.stderr


def test_progress_is_told_from_outside_and_changes_nothing(board: Board) -> None:
    # long enough for its thread to get a CPU, on a busy machine too
    guest = build_guest(rounds=3, spins=2_000_000, latency_ns=9)
    told, summary = board.work / "progress", board.work / "watched.json"
    host, held = os.pipe()

    alone = board.count(guest, cpus=2, quantum=100)
    done = replace(board, stdin=host).start(
        guest, cpus=2, quantum=100, progress=told, summary=summary
    )
    os.close(host)
    os.close(held)

    assert done.returncode == 0, done.stderr
    watched = json.loads(summary.read_text())
    for name in ("marks", "last_mark"):  # QEMU ends some time after the guest has
        assert watched[name] == alone[name]
    virtual_ns, since_ns = map(int, told.read_bytes().split())
    assert len(told.read_bytes()) == 42
    assert 0 <= since_ns <= virtual_ns


def test_a_qemu_whose_host_is_gone_ends(board: Board) -> None:
    guest = build_guest(spins=2_000_000_000)

    done = board.start(guest, cpus=1, progress=board.work / "progress")

    assert done.returncode == 3


@pytest.mark.slow
def test_paths_that_have_no_room_are_left_out_by_name(
    board: Board, equally_late: Path, three_worst: Sequence[TraceSection]
) -> None:
    whole = three_worst
    room = len(whole[0].at_ns) + len(whole[1].at_ns)
    kept = board.record(equally_late, **THREE_WORST, room=room).sections

    assert {len(s.at_ns) for s in whole} == {4096 + 2}, "the ring is what limits each"
    assert [s.left_out for s in kept] == [False, False, True]
    assert [len(s.at_ns) for s in kept] == [len(s.at_ns) for s in whole[:2]] + [0]
    assert [s.last_ns for s in kept] == [s.last_ns for s in whole]
