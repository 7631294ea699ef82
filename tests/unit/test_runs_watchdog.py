"""How long a board is waited for: by its own time, whatever this machine does."""

import subprocess
import sys
import time
from dataclasses import replace

import pytest

from rtscope.boards.runs.watchdog import (
    BOOT_NS,
    END_NS,
    BootTimeout,
    CpuUse,
    Watchdog,
    cpu_use,
    read_progress,
)
from rtscope.host.units import NS_PER_S
from rtscope.measure.execute import BoardProgress

TIMEOUT = BootTimeout(duration_ns=10 * NS_PER_S, warmup_ns=NS_PER_S)


def asleep() -> CpuUse:
    """Return what a QEMU has that waits for nothing, as its board has no timer set."""
    return CpuUse(0.0, wants_more=False)


def booting(host_s: float, virtual_ns: int) -> BoardProgress:
    return BoardProgress(host_s, virtual_ns)


def measuring(host_s: float, measured_ns: int) -> BoardProgress:
    return BoardProgress(host_s, NS_PER_S + measured_ns, NS_PER_S)


def test_the_plugins_line_is_read() -> None:
    one, two = b"%020d %020d\n" % (5, 0), b"%020d %020d\n" % (7, 6)

    assert read_progress(one, host_s=1.0) == BoardProgress(1.0, 5)
    assert read_progress(two, host_s=1.0) == BoardProgress(1.0, 7, 6)


@pytest.mark.parametrize("content", [b"", b"%020d" % 5, b"5 6\n", b"x" * 42])
def test_what_is_no_line_yet_is_no_progress(content: bytes) -> None:
    assert read_progress(content, host_s=1.0) == BoardProgress(1.0)


def test_a_slow_host_is_waited_for_as_long_as_the_board_gets_on() -> None:
    watchdog = Watchdog(TIMEOUT, asleep)

    for second in range(1, 3000):
        assert watchdog.check(booting(float(second), second)) == ""


def test_a_board_that_gets_on_too_slowly_is_ended_at_the_limit_of_the_user() -> None:
    watchdog = Watchdog(replace(TIMEOUT, host_s=300.0), asleep)

    assert watchdog.check(booting(300.0, 5)) == ""
    assert "not ended within 300 s of host time" in watchdog.check(booting(300.5, 6))


def test_a_board_whose_time_stands_still_is_given_up() -> None:
    watchdog = Watchdog(TIMEOUT, asleep)
    said = [watchdog.check(booting(float(second), 5)) for second in range(1, 123)]

    assert said[:120] == [""] * 120
    assert "its time stands still at 0.000 s" in said[-1]


def test_time_in_which_qemu_waits_for_a_cpu_does_not_count() -> None:
    ran_s = iter(0.01 * turn for turn in range(10_000))
    watchdog = Watchdog(TIMEOUT, lambda: CpuUse(next(ran_s), wants_more=True))

    assert {watchdog.check(booting(float(s), 5)) for s in range(1, 9_000)} == {""}


def test_time_in_which_qemu_runs_without_its_board_counts() -> None:
    ran_s = iter(map(float, range(200)))
    watchdog = Watchdog(TIMEOUT, lambda: CpuUse(next(ran_s), wants_more=True))
    said = [watchdog.check(booting(float(second), 5)) for second in range(1, 123)]

    assert "its time stands still" in said[-1]


@pytest.mark.parametrize("wants_more", [True, False])
def test_a_program_that_computes_wants_a_cpu_and_one_that_sleeps_does_not(
    wants_more: bool,
) -> None:
    code = "while True: pass" if wants_more else "input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE
    ) as program:
        while not _is_so(cpu_use(program.pid), wants_more):
            time.sleep(0.01)
        program.kill()
    assert cpu_use(program.pid) is None


def _is_so(use: CpuUse | None, wants_more: bool) -> bool:
    assert use is not None
    return use.wants_more is wants_more and (use.cpu_s > 0 or not wants_more)


def test_a_board_that_goes_on_after_a_pause_has_all_its_time_again() -> None:
    watchdog = Watchdog(TIMEOUT, asleep)
    for second in range(1, 100):
        watchdog.check(booting(float(second), 5))
    watchdog.check(booting(100.0, 6))

    assert all(watchdog.check(booting(100.0 + s, 6)) == "" for s in range(1, 119))


def test_time_in_which_we_were_stopped_ourselves_does_not_count() -> None:
    watchdog = Watchdog(TIMEOUT, asleep)
    watchdog.check(booting(1.0, 5))

    assert watchdog.check(booting(1000.0, 5)) == ""


def test_a_qemu_that_never_runs_the_board_is_given_up() -> None:
    watchdog = Watchdog(TIMEOUT, asleep)
    said = [watchdog.check(BoardProgress(second)) for second in range(1, 123)]

    assert said[-1] == "QEMU did not begin to run it within 120 s"


def test_a_boot_has_a_limit_in_the_time_of_the_board() -> None:
    limit_ns = BOOT_NS + TIMEOUT.warmup_ns
    watchdog = Watchdog(TIMEOUT, asleep)

    assert watchdog.check(booting(1.0, limit_ns)) == ""
    assert "31 s of its own time and has not begun to measure" in watchdog.check(
        booting(1.1, limit_ns + 1)
    )


def test_so_has_the_end_after_the_measurement() -> None:
    limit_ns = TIMEOUT.duration_ns + END_NS
    watchdog = Watchdog(TIMEOUT, asleep)

    assert watchdog.check(measuring(1.0, limit_ns)) == ""
    assert "after the 10 s of the measurement" in watchdog.check(
        measuring(1.1, limit_ns + 1)
    )


def test_even_a_board_that_gets_on_has_a_last_limit() -> None:
    watchdog = Watchdog(TIMEOUT, asleep)

    assert "within 16800 s of host time" in watchdog.check(booting(16801.0, 1))
