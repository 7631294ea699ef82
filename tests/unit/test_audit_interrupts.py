"""What an audit says of interrupts and their threads, on machines of every kind."""

import pytest

from fakes.audited import IRQ, KTHREADD, Case, judged, seen, thread, threads
from fakes.trees import CPU
from rtscope.machine.audit.context import Observed
from rtscope.machine.audit.model import CheckOutcome, Profile


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({f"{CPU}/isolated": "1"}, CheckOutcome.PASS),
        ({f"{CPU}/nohz_full": "1"}, CheckOutcome.PASS),
        ({"/sys/fs/cgroup/cpuset.cpus.isolated": "1"}, CheckOutcome.FAIL),
        ({"/etc/default/irqbalance": "IRQBALANCE_BANNED_CPUS=2"}, CheckOutcome.PASS),
        (
            # Named CPUs take the place of those that it would leave alone by itself.
            {
                f"{CPU}/isolated": "1",
                "/etc/default/irqbalance": 'IRQBALANCE_BANNED_CPULIST="2-3"',
            },
            CheckOutcome.FAIL,
        ),
    ],
)
def test_irqbalance_leaves_alone_what_it_is_known_to(
    files: dict[str, str], outcome: CheckOutcome
) -> None:
    check = judged("irqbalance", Case({"/proc/8/comm": "irqbalance", **files}))

    assert check.outcome is outcome


def test_interrupts_of_another_cpu_do_not_count() -> None:
    check = judged(
        "observed_device_interrupts", Case(observed=seen(device=9), cpus=(0,))
    )

    assert check.outcome is CheckOutcome.PASS


def test_a_cpu_that_is_offline_hides_nothing_of_the_others() -> None:
    other = judged(
        "observed_device_interrupts", Case(observed=seen(device=3), cpus=(1, 5))
    )
    offline = judged(
        "observed_device_interrupts", Case(observed=seen(device=3), cpus=(5,))
    )

    assert (other.outcome, offline.outcome) == (CheckOutcome.FAIL, CheckOutcome.UNKNOWN)


def test_an_interrupt_seen_is_named() -> None:
    check = judged("observed_device_interrupts", Case(observed=seen(device=3)))

    assert check.message == "3 in 1.0 s, most of them 24 eth0"


RISCV = """\
           CPU0       CPU1
 10:        103         96  RISC-V INTC   5 Edge      riscv-timer
 12:          2          {device}  SiFive PLIC  10 Edge      ttyS0
IPI1:         3         {call}  Function call interrupts
"""
ARM = """\
           CPU0       CPU1
 11:        103         96     GICv3  27 Level     arch_timer
 12:          2          {device}     GICv3  78 Edge      ttyS0
IPI1:         3         {call}       Function call interrupts
"""


def seen_in(table: str, *, device: int = 0, call: int = 0) -> Observed:
    return Observed(
        window_ns=10**9,
        before={"/proc/interrupts": table.format(device=0, call=0)},
        after={"/proc/interrupts": table.format(device=device, call=call)},
    )


@pytest.mark.parametrize("table", [RISCV, ARM])
def test_the_timer_that_each_cpu_has_is_no_device(table: str) -> None:
    files = {
        "/proc/interrupts": table.format(device=0, call=0),
        "/proc/irq/10/smp_affinity_list": "0-1",
        "/proc/irq/11/smp_affinity_list": "0-1",
        "/proc/irq/12/effective_affinity_list": "0",
    }
    quiet = seen_in(table).after
    ticking = {p: t.replace(" 96 ", " 996 ") for p, t in quiet.items()}
    ticks = Observed(window_ns=10**9, before=quiet, after=ticking)
    polling = Case(files, observed=ticks, profile=Profile.POLLING)

    directed = judged("irq_affinity", Case(files))
    assert directed.outcome is CheckOutcome.PASS
    assert directed.message == "none of 1 interrupts"
    assert judged("observed_device_interrupts", polling).outcome is CheckOutcome.PASS
    assert judged("observed_ticks", polling).outcome is CheckOutcome.FAIL


@pytest.mark.parametrize("table", [RISCV, ARM])
def test_devices_and_calls_are_found_by_their_names(table: str) -> None:
    case = Case(observed=seen_in(table, device=3, call=40))

    device = judged("observed_device_interrupts", case)
    call = judged("observed_ipis", case)
    assert device.message == "3 in 1.0 s, most of them 12 ttyS0"
    assert call.message == "40 in 1.0 s, most of them IPI1 Function call interrupts"


@pytest.mark.parametrize(
    "stats",
    [(KTHREADD, IRQ, thread("sh")), (KTHREADD, thread("loop", 1, 80))],
    ids=["no real-time thread", "no interrupt thread"],
)
def test_interrupt_threads_are_judged_beside_others_only(
    stats: tuple[str, ...],
) -> None:
    check = judged("interrupt_threads", Case(threads(*stats)))

    assert check.outcome is CheckOutcome.NOT_APPLICABLE


def test_a_container_does_not_show_that_nobody_has_99() -> None:
    check = judged("real_time_threads", Case(threads(thread("sh"))))

    assert check.outcome is CheckOutcome.UNKNOWN


def test_a_program_cannot_pass_for_an_interrupt_or_hide_behind_brackets() -> None:
    ours = thread("irq/1) R 0", 1, 50)

    check = judged("interrupt_threads", Case(threads(KTHREADD, IRQ, ours)))

    assert check.message == "1 of 1 are not below irq/1) R 0 (FIFO 50)"
