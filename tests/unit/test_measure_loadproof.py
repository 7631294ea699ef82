"""Each process of a load must have worked; one that did not is named with its time."""

from collections.abc import Sequence

import pytest

from rtscope.contract import LoadTick, LoadWindow, ProcessInWindow
from rtscope.measure.loadproof import LoadProof
from rtscope.measure.loads import get_load, load_names
from rtscope.record.caveats.catalogue import Effect, catalogue
from rtscope.record.model import WorkerRecord

S = 1_000_000_000
ARGV = ("stress-ng", "--matrix", "2")
DEAD = None, 0, 0
BUSY = 950_000_000, 0, 50

Work = tuple[int | None, int, int]
"""CPU time in ns, voluntary and involuntary switches."""
Look = tuple[str, Work]
"""State at the end of a window, and what was done in it."""


def process(
    pid: int, look: Look, *, parent: int = 1, name: str = "worker", started: int = 5
) -> ProcessInWindow:
    state, (cpu_ns, voluntary, involuntary) = look
    return ProcessInWindow(
        pid=pid,
        parent=parent,
        started_ns=started,
        name=name,
        state=state,
        cpu_ns=cpu_ns,
        voluntary_switches=voluntary,
        involuntary_switches=involuntary,
    )


def window(n: int, *processes: ProcessInWindow, not_watched: int = 0) -> LoadWindow:
    """Return the window that ends n seconds after the measurement began, at 100 s."""
    to_ns = (100 + n) * S
    return LoadWindow(to_ns - S, to_ns, processes, not_watched)


def working(*looks: Look, **changes: int) -> list[LoadWindow]:
    """Return windows of two workers from the start, of which the second is as said."""
    well = ("R", BUSY)
    first = window(-1, process(7, well), process(8, well))
    rest = [
        window(n, process(7, well), process(8, look), **changes)
        for n, look in enumerate(looks, 1)
    ]
    return [first, window(0, process(7, well), process(8, well)), *rest]


def proof(
    windows: Sequence[LoadWindow],
    *,
    load: str = "cpu",
    argv: tuple[str, ...] = ARGV,
    seconds: int = 6,
    ticks: Sequence[LoadTick] = (),
) -> LoadProof:
    span = (100 * S, (100 + seconds) * S)
    return LoadProof(get_load(load), argv, windows, span, ticks)


def raised(
    windows: Sequence[LoadWindow],
    *,
    load: str = "cpu",
    argv: tuple[str, ...] = ARGV,
    ended_early: bool = False,
) -> dict[str, str]:
    made = proof(windows, load=load, argv=argv)
    return {c.id: c.detail for c in made.caveats(ended_early=ended_early)}


def worker(windows: Sequence[LoadWindow], pid: int) -> WorkerRecord:
    (found,) = [w for w in proof(windows).workers if w.pid == pid]
    return found


R, S_, T, Z = (("R", BUSY), ("S", (0, 0, 0)), ("T", (0, 0, 0)), ("Z", (0, 0, 0)))
GONE: Look = ("gone", DEAD)


def test_workers_that_worked_raise_nothing_and_have_their_shares() -> None:
    windows = working(R, R, ("S", (900_000_000, 3, 9)), R, R, R)

    assert raised(windows) == {}
    seen = worker(windows, 8)
    assert (seen.least_share, seen.most_share) == (0.9, 0.95)
    assert seen.cpu_ns == 5_650_000_000
    assert (seen.voluntary_switches, seen.involuntary_switches) == (3, 259)
    assert not seen.lapses


def test_a_load_that_was_not_watched_raises_nothing() -> None:
    assert raised([]) == {}
    assert proof([]).workers == ()


@pytest.mark.parametrize("end", [GONE, Z, ("X", (0, 0, 0))])
def test_one_that_died_is_named_with_its_time(end: Look) -> None:
    assert raised(working(R, R, end)) == {
        "worker_died": "worker (pid 8) died between 2.0 and 3.0 s"
    }


def test_one_that_worked_before_it_died_in_a_window_died_in_it() -> None:
    said = {"worker_died": "worker (pid 8) died between 2.0 and 3.0 s"}
    assert raised(working(R, R, ("Z", BUSY), Z, Z, GONE)) == said
    assert raised(working(R, R, ("Z", BUSY))) == said


def test_a_first_thread_that_ended_is_no_death() -> None:
    assert raised(working(*[("Z", BUSY)] * 6)) == {}


def test_one_that_died_before_the_start_was_missing_all_the_time() -> None:
    windows = working(R, R)
    windows[1] = window(0, process(7, R), process(8, GONE))
    for n in (1, 2):
        windows[n + 1] = window(n, process(7, R))

    assert raised(windows) == {"worker_died": "worker (pid 8) died before the start"}


def test_one_that_died_after_the_end_was_there() -> None:
    assert raised(working(R, R, R, R, R, R, GONE)) == {}


def test_of_a_load_that_ended_early_the_deaths_are_not_named_one_by_one() -> None:
    assert raised(working(R, GONE), ended_early=True) == {}
    assert set(raised(working(R, T, GONE), ended_early=True)) == {"worker_stopped"}


@pytest.mark.parametrize(
    ("looks", "said"),
    [
        ((R, R, T, T, T, T), "stopped between 2.0 and 3.0 s"),
        ((R, T, T, R, R, R), "stopped between 1.0 and 2.0 s, until 4.0 s"),
        # it goes on too late in the window to have worked in it
        ((R, T, S_, R, R, R), "stopped between 1.0 and 2.0 s, until 4.0 s"),
        # traced, or stopped although it had worked for most of the window
        ((R, R, R, ("t", BUSY), R, R), "stopped between 3.0 and 4.0 s, until 5.0 s"),
    ],
)
def test_one_that_was_stopped_is_named_with_its_time(
    looks: tuple[Look, ...], said: str
) -> None:
    assert raised(working(*looks)) == {"worker_stopped": f"worker (pid 8) {said}"}


@pytest.mark.parametrize(
    ("looks", "said"),
    [
        ((R, R, S_, S_, S_, S_), "idle from 2.0 s to the end"),
        ((S_, S_, R, R, R, R), "idle from 0.0 s to 2.0 s"),
        # a tick in each window, and going to sleep again and again, is no work
        ((R, *[("S", (90_000_000, 500, 0))] * 5), "idle from 1.0 s to the end"),
        # ready, but it never ran: something took its CPU
        ((R, ("R", (0, 0, 0)), R, R, R, R), "idle from 1.0 s to 2.0 s"),
        # waiting for a disk is not what a CPU load is for
        ((R, ("D", (0, 9, 0)), R, R, R, R), "idle from 1.0 s to 2.0 s"),
    ],
)
def test_one_that_idled_is_named_with_its_time(
    looks: tuple[Look, ...], said: str
) -> None:
    assert raised(working(*looks)) == {"worker_idle": f"worker (pid 8) {said}"}


def test_two_times_of_one_worker_are_both_named() -> None:
    assert raised(working(R, S_, R, S_, R, R)) == {
        "worker_idle": "worker (pid 8) idle from 1.0 s to 2.0 s; "
        "worker (pid 8) idle from 3.0 s to 4.0 s"
    }


@pytest.mark.parametrize(
    "look", [("R", (100_000_000, 0, 0)), ("R", (0, 0, 1)), ("S", (20_000_000, 5, 3))]
)
def test_a_share_of_what_it_could_have_or_a_preemption_is_life(look: Look) -> None:
    assert raised(working(*[look] * 6)) == {}


@pytest.mark.parametrize(
    ("load", "flag", "look", "alive"),
    [
        ("storage", "--dir", ("D", (0, 0, 0)), True),
        ("storage", "--dir", ("S", (0, 1, 0)), True),
        ("storage", "--dir", ("S", (0, 0, 0)), False),
        ("network", "--sock", ("S", (10_000_000, 10, 0)), True),
        ("network", "--sock", ("S", (10_000_000, 9, 0)), False),
    ],
)
def test_what_counts_as_idle_is_a_matter_of_the_load(
    load: str, flag: str, look: Look, alive: bool
) -> None:
    found = raised(working(*[look] * 6), load=load, argv=("stress-ng", flag, "2"))
    assert set(found) == (set() if alive else {"worker_idle"})


def test_every_load_says_what_counts_as_idle() -> None:
    for name in load_names():
        load = get_load(name)
        assert name == "idle" or load.alive.cpu_percent > 0
        assert load.alive.cpu_percent <= 10


def test_a_pair_that_takes_turns_has_half_a_cpu_each() -> None:
    argv = ("stress-ng", "--switch", "1")
    well, slow = ("S", (500_000_000, 9, 0)), ("S", (50_000_000, 9, 0))
    assert raised(working(*[well] * 6), load="switch", argv=argv) == {}
    assert raised(working(*[slow] * 6), load="switch", argv=argv) == {}
    assert "worker_idle" in raised(working(*[slow] * 6), load="timers", argv=ARGV)


def test_a_parent_waits_for_its_children_but_may_neither_stop_nor_die() -> None:
    def family(*looks: Look) -> list[LoadWindow]:
        child = process(9, R, parent=8)
        return [
            window(n, process(7, R), process(8, look), child)
            for n, look in enumerate((S_, S_, *looks), -1)
        ]

    assert raised(family(S_, S_, S_, S_)) == {}
    assert [w.waits for w in proof(family(S_)).workers] == [False, True, False]
    assert set(raised(family(S_, T, T))) == {"worker_stopped"}
    assert set(raised(family(S_, GONE))) == {"worker_died"}


def test_a_window_that_is_too_short_judges_nobody() -> None:
    # the last look comes when the load is told to end
    windows = working(R, R, R, R, R, R)
    last = windows[-1].to_ns
    late = LoadWindow(last, last + S // 5, (process(7, R), process(8, S_)), 0)
    assert raised([*windows, late]) == {}
    # nor does it end what was going on
    windows = working(R, R, R, R, S_, S_)
    assert raised([*windows, late]) == {
        "worker_idle": "worker (pid 8) idle from 4.0 s to the end"
    }


def test_one_that_is_seen_to_go_on_is_stopped_no_longer_however_short_the_look() -> (
    None
):
    windows = working(R, R, R, R, R, T)
    last = windows[-1].to_ns
    late = LoadWindow(last, last + S // 5, (process(7, R), process(8, R)), 0)
    made = LoadProof(get_load("cpu"), ARGV, [*windows, late], (100 * S, 107 * S))
    (found,) = made.caveats(ended_early=False)
    assert found.detail == "worker (pid 8) stopped between 5.0 and 6.0 s, until 6.2 s"


def test_half_a_second_and_half_of_a_window_are_enough_to_judge() -> None:
    def judged(*, length_ns: int, inside_ns: int) -> bool:
        windows = working(R, R)
        last = windows[-1].to_ns
        idle = LoadWindow(
            last, last + length_ns, (process(7, R), process(8, S_)), not_watched=0
        )
        span = (100 * S, last + inside_ns)
        made = LoadProof(get_load("cpu"), ARGV, [*windows, idle], span)
        return "worker_idle" in {c.id for c in made.caveats(ended_early=False)}

    assert judged(length_ns=S // 2, inside_ns=S // 2)
    assert judged(length_ns=S, inside_ns=S // 2)
    assert not judged(length_ns=S // 2 - 1, inside_ns=S)
    assert not judged(length_ns=S, inside_ns=S // 2 - 1)


def test_a_window_mostly_outside_of_the_measurement_judges_nobody() -> None:
    windows = working(S_, R, R)
    early = LoadProof(get_load("cpu"), ARGV, windows, (101 * S - S // 3, 106 * S))
    assert list(early.caveats(ended_early=False)) == []


def replaced_each_second() -> list[LoadWindow]:
    """Return windows of a shell that starts one compiler after the other."""
    shell = process(8, S_, name="sh")
    windows = [window(-1, shell)]
    for n in range(5):
        young = process(20 + n, R, parent=8, name="cc1", started=50 + n)
        old = process(19 + n, GONE, parent=8, name="cc1", started=49 + n)
        windows.append(window(n, shell, *([old] if n else []), young))
    return windows


def ticks(*cpu_ms: int) -> list[LoadTick]:
    """Return the CPU time of the load at each second from the start."""
    return [
        LoadTick((100 + n) * S, processes=2, cpu_ns=ms * 1_000_000)
        for n, ms in enumerate(cpu_ms)
    ]


def test_processes_that_are_replaced_are_taken_together() -> None:
    windows = replaced_each_second()
    made = proof(windows, load="custom", argv=("sh",))

    assert list(made.caveats(ended_early=False)) == []
    together = made.workers[-1]
    assert (together.name, together.pid, together.processes) == ("cc1", None, 5)
    assert together.least_share is None
    # stress-ng's own workers are never replaced: there a death is a death
    assert "worker_died" in raised(windows, load="cpu", argv=("stress-ng",))


@pytest.mark.parametrize(
    ("cpu_ms", "said"),
    [
        ((0, 10, 20, 30, 40, 50), None),
        ((0, 9, 18, 27, 36, 45), "from 0.0 s to the end"),
        ((0, 900, 905, 909, 1800, 2700), "from 1.0 s to 3.0 s"),
    ],
)
def test_together_they_must_still_use_cpu_time(
    cpu_ms: tuple[int, ...], said: str | None
) -> None:
    made = proof(
        replaced_each_second(), load="custom", argv=("sh",), ticks=ticks(*cpu_ms)
    )
    found = {c.id: c.detail for c in made.caveats(ended_early=False)}
    expected = {"worker_idle": f"cc1 (5 short-lived) idle {said}"} if said else {}
    assert found == expected


def test_a_command_whose_only_process_sleeps_is_idle() -> None:
    asleep = [window(n, process(8, S_, name="sleep")) for n in range(-1, 7)]
    assert raised(asleep, load="custom", argv=("sleep", "100")) == {
        "worker_idle": "sleep (pid 8) idle from 0.0 s to the end"
    }


def test_one_of_a_command_that_is_not_replaced_died() -> None:
    windows = working(R, R, GONE)
    assert set(raised(windows, load="custom", argv=("sh",))) == {"worker_died"}


def test_what_a_command_prepared_before_the_measurement_is_not_its_load() -> None:
    windows = working(R, R, R)
    shell = process(30, R, name="make")
    before = LoadWindow(97 * S, 98 * S, (shell,), 9)
    gone = process(30, GONE, name="make")
    ended = LoadWindow(98 * S, 99 * S, (gone, *windows[0].processes), 9)
    made = proof([before, ended, *windows[1:]], load="custom", argv=("sh",))

    assert list(made.caveats(ended_early=False)) == []
    assert [w.pid for w in made.workers] == [7, 8]
    # of a fixed set it was missing
    assert "worker_died" in raised([before, ended, *windows[1:]])


def test_what_was_not_watched_after_the_measurement_does_not_count() -> None:
    late = LoadWindow(107 * S, 108 * S, (), not_watched=5)
    assert raised([*working(*[R] * 6), late]) == {}


def test_a_parent_of_short_lived_children_of_its_name_is_watched_by_itself() -> None:
    windows = [
        window(
            n,
            process(8, ("S", (10_000_000, 0, 0))),
            *([process(19 + n, GONE, parent=8, started=49 + n)] if n else []),
            process(20 + n, R, parent=8, started=50 + n),
        )
        for n in range(6)
    ]
    parent, together = proof(windows, load="oom", argv=("sh",)).workers
    assert (parent.pid, parent.waits) == (8, True)
    assert (together.pid, together.processes) == (None, 6)
    # its own time is in no other's figures
    assert together.cpu_ns == 5 * 950_000_000


def test_three_are_named_without_counting_the_rest() -> None:
    three = [
        window(n, *(process(pid, R if n < 2 else S_) for pid in range(10, 13)))
        for n in range(-1, 7)
    ]
    said = raised(three)["worker_idle"]
    assert said.count("(pid ") == 3
    assert "more" not in said


def test_what_was_not_watched_is_not_proved() -> None:
    windows = working(*[R] * 6, not_watched=3)
    assert raised(windows) == {"load_unproved": "3 of its processes were not watched"}


def test_fewer_workers_than_asked_for_are_told() -> None:
    argv = ("stress-ng", "--matrix", "4")
    assert raised(working(*[R] * 6), argv=argv) == {
        "load_unproved": "2 of 4 workers were seen"
    }


def test_many_are_counted_and_the_first_are_named() -> None:
    many = [
        window(n, *(process(pid, R if n < 2 else S_) for pid in range(10, 20)))
        for n in range(-1, 7)
    ]
    said = raised(many)["worker_idle"]
    assert said.count("(pid ") == 3
    assert said.endswith("; and 7 more")


@pytest.mark.parametrize("name", ["worker_died", "worker_stopped", "worker_idle"])
def test_a_worker_that_was_missing_limits_the_verdict(name: str) -> None:
    assert catalogue()[name].effect is Effect.LIMIT
