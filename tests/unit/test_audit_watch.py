"""An audit watches for a while, reads the kernel log, and tries a real-time policy."""

import errno
import os
import signal

import pytest

from fakes.audited import BOOTED, Case, judged
from fakes.trees import reader_of
from rtscope.machine.audit import observe
from rtscope.machine.audit.context import WATCHED, Observed, Trial
from rtscope.machine.audit.model import CheckOutcome
from rtscope.machine.audit.observe import (
    observe_here,
    read_kernel_log,
    try_realtime,
    watch,
    watch_here,
)


def test_a_log_that_lost_its_beginning_proves_nothing() -> None:
    late = Observed(kernel_log="[ 1000.000000] something\n")

    for name in ("unknown_parameters", "logged_delays", "clock_doubted"):
        assert judged(name, Case(observed=late)).outcome is CheckOutcome.UNKNOWN


def test_a_boot_image_alone_is_no_unknown_parameter() -> None:
    line = 'Unknown kernel command line parameters "BOOT_IMAGE=/v splash", will be'
    log = Observed(kernel_log=BOOTED + line)

    assert judged("unknown_parameters", Case(observed=log)).outcome is CheckOutcome.PASS


def test_a_window_reads_twice_and_waits_between() -> None:
    reader = reader_of({"/proc/stat": "cpu 1"})
    waits: list[float] = []

    found = watch(reader, 500_000_000, sleep=waits.append)

    assert reader.trips == [WATCHED, WATCHED]
    assert waits == [0.5]
    assert found.window_ns >= 500_000_000
    assert found.before == found.after == {"/proc/stat": "cpu 1"}


def test_no_window_reads_nothing() -> None:
    reader = reader_of({})

    assert watch(reader, 0) == Observed()
    assert reader.trips == []


def test_a_log_that_is_refused_says_why() -> None:
    log, why = read_kernel_log("/nowhere/kmsg")

    assert log is None
    assert why == "the kernel log cannot be read: No such file or directory"


def test_the_trial_leaves_this_process_as_it_was() -> None:
    tried = try_realtime()

    assert tried.error in (None, errno.EPERM)


def test_what_unpacks_the_kernel_knows_nokaslr() -> None:
    line = 'Unknown kernel command line parameters "nokaslr nohz_full=1", will be'
    log = Observed(kernel_log=BOOTED + line)

    assert judged("unknown_parameters", Case(observed=log)).message == "nohz_full=1"


@pytest.mark.parametrize(
    ("ended", "error", "reason"),
    [
        (0, None, ""),
        (errno.EPERM << 8, errno.EPERM, "Operation not permitted"),
        (signal.SIGKILL, errno.EIO, "the child was ended by signal 9"),
    ],
)
def test_the_child_that_asks_for_real_time_tells_by_its_end(
    monkeypatch: pytest.MonkeyPatch, ended: int, error: int | None, reason: str
) -> None:
    monkeypatch.setattr(os, "fork", lambda: 4_242)
    monkeypatch.setattr(os, "waitpid", lambda pid, _options: (pid, ended))

    assert try_realtime() == Trial(
        "sched_setscheduler(SCHED_FIFO, 80) in a child", error, reason
    )


def test_looking_here_tries_a_policy_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trial = Trial("asked", None)
    monkeypatch.setattr(observe, "try_realtime", lambda: trial)
    monkeypatch.setattr(observe, "read_kernel_log", lambda: (None, "closed"))
    monkeypatch.setattr(observe, "read_dma_latency", lambda: (5, ""))
    monkeypatch.setattr(observe, "who_holds", lambda: {"/proc/7/fd/3": "loop"})
    monkeypatch.setattr(observe, "read_coalescing", lambda: (None, "no driver"))

    found = observe_here(Observed(window_ns=7))

    assert found.trial is trial
    assert found.window_ns == 7
    assert (found.kernel_log, found.why_no_log) == (None, "closed")
    assert (found.dma_latency_us, found.why_no_dma_latency) == (5, "")
    assert found.dma_holders == {"/proc/7/fd/3": "loop"}
    assert (found.coalescing, found.why_no_coalescing) == (None, "no driver")
    assert observe_here(Observed(), trial=False).trial is None


def test_the_window_has_the_management_interrupts_of_its_begin_and_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = iter([({"msr": 1}, "before"), ({"msr": 4}, "after")])
    monkeypatch.setattr(observe, "smi_counts", lambda: next(counts))
    monkeypatch.setattr(observe, "observe_here", lambda observed: observed)

    found = watch_here(reader_of({}), 1)

    assert (found.smi_before, found.smi_after) == ({"msr": 1}, {"msr": 4})
    assert found.why_no_smi == "after"
    assert found.window_ns > 0
