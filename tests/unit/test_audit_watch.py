"""An audit watches for a while, reads the kernel log, and tries a real-time policy."""

import errno

from fakes.audited import BOOTED, Case, judged
from fakes.trees import reader_of
from rtscope.audit.context import WATCHED, Observed
from rtscope.audit.model import CheckOutcome
from rtscope.audit.observe import read_kernel_log, try_realtime, watch


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
