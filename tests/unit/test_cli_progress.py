"""What a person sees of a campaign that runs: on a terminal, and in a log."""

import io
import time
from dataclasses import replace

import pytest
from rich.console import Console

from fakes.measurements import SECOND_NS, on_board, record, thread
from rtscope.cli.progress import LiveDisplay, Waiting
from rtscope.contract import KernelMessage, Tick, TickCpu
from rtscope.host.process import Step
from rtscope.measure.execute import (
    BoardProgress,
    BoardsProgress,
    LineReceived,
    RunFailed,
    RunFinished,
    RunStarted,
    Settling,
    WorkerProgress,
    WorkersProgress,
)
from rtscope.measure.plan import Plan
from rtscope.record.model import Run

MADE = record([thread([9_000])])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds, which a test lets pass."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def run(name: str, *, target: str = "local", kernel: str | None = None) -> Run:
    load = name.partition("-")[2]
    return replace(
        MADE.run,
        id=name,
        load=load,
        target=target,
        kernel=kernel,
        duration_ns=10 * SECOND_NS,
    )


def display(*runs: Run, log: io.StringIO, boots_each: bool = False) -> LiveDisplay:
    plan = Plan(runs, settle_ns=0, warmup_ns=SECOND_NS, boots_each=boots_each)
    return LiveDisplay(Console(file=log, width=72), plan)


def drawn(shown: LiveDisplay) -> list[str]:
    """Return what a terminal would show, without the bar's own characters."""
    console = Console(file=io.StringIO(), width=72)
    console.print(shown._picture())
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().replace("━", "").replace("╸", "").splitlines()
    return [" ".join(line.split()) for line in lines]


def test_a_machine_shows_its_cpus_worst_first_and_the_time_left(
    clock: list[float],
) -> None:
    first, second = run("001-idle"), run("002-cpu")
    log = io.StringIO()
    shown = display(first, second, log=log)

    shown(Settling(3 * SECOND_NS))
    shown(RunStarted(1, 2, first))
    clock[0] += 5
    cpus = (TickCpu(0, 1_000, 2, 7_000), TickCpu(None, 10, 0, 9_000))
    shown(LineReceived(Tick(SECOND_NS, cpus, {}, {})))
    shown(LineReceived(KernelMessage(1, 3, "bad\x1b thing")))
    shown(LineReceived(KernelMessage(1, 6, "nothing")))

    bar, head, *rows, note = drawn(shown)
    assert bar == "1 of 2: idle 21 s left"
    assert head == "CPU maximum, us last second, us samples missed periods"
    assert rows == ["any 9.00 9.00 10 0", "0 7.00 7.00 1,000 2"]
    assert note.startswith("kernel: bad")
    assert "\x1b" not in note

    shown(RunFinished(replace(MADE, run=first)))
    assert drawn(shown)[0] == "1 of 2: idle 13 s left"
    assert log.getvalue() == (
        "settling for 3 s\n1 of 2: idle, 10 s\n  maximum 9.00 us\n"
    )


@pytest.mark.usefixtures("clock")
def test_boards_show_their_own_time_and_what_is_left_of_the_runs() -> None:
    runs = [run(f"00{n}-idle", target="virtual:pc", kernel="k") for n in range(1, 5)]
    log = io.StringIO()
    shown = display(*runs, log=log, boots_each=True)
    assert drawn(shown) == ["preparing"]

    boards = {
        "001-idle": BoardProgress(5.0, 4 * SECOND_NS, SECOND_NS),
        "002-idle": BoardProgress(30.0, 13 * SECOND_NS, SECOND_NS),
        "003-idle": BoardProgress(2.0, SECOND_NS // 2),
        "004-idle": BoardProgress(1.0),
    }
    shown(BoardsProgress(boards))
    assert drawn(shown) == [
        "0 of 4 runs done",
        "run phase virtual s host s left",
        "idle, k measuring 3.0 of 10 5 9 s",
        "idle, k ending 10.0 of 10 30",
        "idle, k booting 0.5 2",
        "idle, k starting 1",
    ]

    done = replace(on_board(MADE), run=runs[1], host_duration_s=31.0)
    shown(RunStarted(2, 4, runs[1]))
    shown(RunFinished(done))
    shown(BoardsProgress({"001-idle": boards["001-idle"]}))
    # Four at once: 26 s of the one that runs, and 31 s of each that waits.
    assert drawn(shown)[0] == "1 of 4 runs done about 26 s left"
    assert log.getvalue() == "2 of 4: idle, k: maximum 9.00 us\n"


@pytest.mark.usefixtures("clock")
def test_workers_show_what_each_computes_and_which_are_lost() -> None:
    runs = [run(f"00{n}-idle", target="virtual:pc", kernel="k") for n in range(1, 7)]
    log = io.StringIO()
    shown = display(*runs, log=log, boots_each=True)
    took = replace(on_board(MADE), run=runs[0], host_duration_s=30.0)
    shown(RunStarted(1, 6, runs[0]))
    shown(RunFinished(took))
    shown(RunFailed(runs[1]))
    shown(
        WorkersProgress(
            {
                "tcp://h:1": WorkerProgress(2, ("003-idle", "004-idle"), 1, done=1),
                "tcp://h:2": WorkerProgress(1, failed=1, refused="it has no space"),
                "tcp://h:3": WorkerProgress(1, is_gone=True),
            }
        )
    )

    # Four are left, two at once, of which two have begun.
    assert drawn(shown) == [
        "1 of 6 runs done, 1 failed about 1 min left",
        "worker boards done failed computes",
        "h:1 2 1 0 idle, k (+ 1 more, 1 waiting)",
        "h:2 0 0 1 no more runs: it has no space",
        "h:3 0 0 0 gone: others compute its runs",
    ]


@pytest.mark.usefixtures("clock")
def test_the_counts_of_a_worker_stay_whole_on_a_narrow_terminal() -> None:
    one = replace(run("001-idle", target="virtual:pc", kernel="k"), variant="v" * 60)
    shown = display(one, log=io.StringIO(), boots_each=True)
    shown(
        WorkersProgress(
            {
                "tls://node-17.cluster:40123": WorkerProgress(8, ("001-idle",)),
                "tls://node-18.cluster:40123": WorkerProgress(8, refused="why " * 40),
            }
        )
    )

    _, head, *rows = drawn(shown)
    assert head == "worker boards done failed computes"
    assert rows[0].startswith("node-17.cluster:40123 8 0 0 idle")
    assert rows[1].startswith("node-18.cluster:40123 0 0 0 no more")
    assert all(row.endswith("…") for row in rows)


def test_a_message_beside_the_display_stands_above_it(clock: list[float]) -> None:
    out = io.StringIO()
    console = Console(
        file=out, width=72, force_terminal=True, _environ={"TERM": "xterm"}
    )
    plan = Plan((run("001-idle"),), 0, 0, boots_each=True)
    with LiveDisplay(console, plan) as shown:
        shown.log("worker w1 is [gone]")

    assert "rtscope: worker w1 is [gone]" in out.getvalue()
    # The bar is drawn again below the line.
    assert "preparing" in out.getvalue().split("[gone]")[1]


@pytest.mark.usefixtures("clock")
def test_many_workers_are_counted_those_that_are_lost_last() -> None:
    runs = [run("001-idle", target="virtual:pc", kernel="k")]
    shown = display(*runs, log=io.StringIO(), boots_each=True)
    workers = {f"tcp://h:{n}": WorkerProgress(1) for n in range(10, 40)}
    shown(WorkersProgress({"tcp://h:1": WorkerProgress(1, is_gone=True), **workers}))

    _, _, first, *rest = drawn(shown)
    assert first == "h:10 1 0 0"
    assert rest[-1] == "and 15 more workers: 14 compute, 1 is gone"
    assert len(rest) == 16


def test_a_run_that_fails_is_no_run_that_is_left(clock: list[float]) -> None:
    runs = [run(f"00{n}-idle", target="virtual:pc", kernel="k") for n in (1, 2)]
    shown = display(*runs, log=io.StringIO(), boots_each=True)

    shown(RunFailed(runs[0]))
    shown(RunStarted(2, 2, runs[1]))
    shown(RunFinished(replace(on_board(MADE), run=runs[1], host_duration_s=9.0)))

    assert drawn(shown) == ["1 of 2 runs done, 1 failed about 1 s left"]


HALF = Step("downloading", 90_000_000, 180_000_000, unit="bytes")


def test_a_log_says_every_half_minute_how_long_boards_take(
    clock: list[float],
) -> None:
    runs = [run(f"{n:03}-idle", target="virtual:pc", kernel="rt") for n in range(5)]
    log = io.StringIO()
    shown = display(*runs, log=log, boots_each=True)
    stored = on_board(replace(MADE, host_duration_s=500.0), reused=True)
    booted = on_board(replace(MADE, host_duration_s=20.0))

    for number, made in enumerate([stored, booted, booted], 1):
        clock[0] += 20
        shown(RunStarted(number, 5, runs[number - 1]))
        shown(RunFinished(replace(made, run=runs[number - 1])))

    # A stored result took no time, and says nothing of the rest.
    assert log.getvalue().splitlines() == [
        "1 of 5: idle, rt: maximum 9.00 us",
        "2 of 5: idle, rt: maximum 9.00 us, about 1 min left",
        "3 of 5: idle, rt: maximum 9.00 us",
    ]


def test_without_a_terminal_a_step_is_a_line_every_half_minute(
    clock: list[float],
) -> None:
    out = io.StringIO()
    with Waiting(Console(file=out, width=72)) as waiting:
        waiting(HALF)
        clock[0] += 31
        waiting(HALF)
        waiting(HALF)
        clock[0] += 31
        waiting(Step("compiling jh7110-6.12", 512, 1_000))
        clock[0] += 31
        waiting(Step("compiling \x1b[2J", 3))

    assert out.getvalue().splitlines() == [
        "downloading: 90 of 180 MB",
        "compiling jh7110-6.12: 512 of about 1,000 files",
        r"compiling \x1b[2J: 3 files",
    ]


def test_on_a_terminal_a_bar_vanishes_before_a_line_and_at_the_end() -> None:
    out, lines = io.StringIO(), list[str]()
    console = Console(
        file=out, width=72, force_terminal=True, _environ={"TERM": "xterm"}
    )
    with Waiting(console) as waiting:
        waiting(HALF)
        drawn_before = out.getvalue()
        waiting.over(lines.append)("building userland")
        erased = out.getvalue()
        waiting(Step("compiling jh7110-6.12", 1_200, 1_000))

    assert "90 of 180 MB" in drawn_before
    assert lines == ["building userland"]
    assert erased.endswith("\x1b[2K"), "the bar stands above the line"
    assert "1,200 files" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")


def test_a_download_that_is_complete_leaves_no_bar() -> None:
    out = io.StringIO()
    with Waiting(
        Console(file=out, width=72, force_terminal=True, _environ={"TERM": "xterm"})
    ) as waiting:
        waiting(HALF)
        waiting(replace(HALF, done=HALF.about))
        assert out.getvalue().endswith("\x1b[2K")


def test_what_has_no_known_end_is_not_of_about_none() -> None:
    out = io.StringIO()
    console = Console(
        file=out, width=72, force_terminal=True, _environ={"TERM": "xterm"}
    )
    with Waiting(console) as waiting:
        waiting(Step("debian-6.12 boots", 0, unit="virtual s"))

    assert "0 virtual s" in out.getvalue()
    assert "about" not in out.getvalue()
