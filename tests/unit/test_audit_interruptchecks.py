"""What the checks of interrupts answer at their edges, and what they show."""

from dataclasses import replace

import pytest

from fakes.audited import (
    FAIL,
    NO,
    NONE,
    NOT_APART,
    PASS,
    REFUSED,
    UNKNOWN,
    Case,
    Shown,
    Wanted,
    answer,
    interrupts,
    seen,
)
from fakes.trees import CPU
from rtscope.machine.audit.context import Observed
from rtscope.machine.audit.examine import catalogue
from rtscope.machine.audit.interruptchecks import counts_of, labels_of
from rtscope.machine.audit.model import CheckOutcome, Profile
from rtscope.machine.reader import Content

INTERRUPTS = "/proc/interrupts"


# --- the kernel's table -----------------------------------------------------------

TABLE = (
    "           CPU0       CPU2\n"
    " 24:          5          6   IO-APIC   5-edge      eth0\n"
    "LOC:        900          7   Local timer interrupts\n"
    "IPI0:         1          2   Rescheduling interrupts\n"
    "BAD:          x          2   Something\n"
    "ERR:          0\n"
    "a line without a colon 1 2\n"
)


def test_the_table_is_read_by_row_and_cpu() -> None:
    assert counts_of(TABLE) == {
        "24": {0: 5, 2: 6},
        "LOC": {0: 900, 2: 7},
        "IPI0": {0: 1, 2: 2},
    }
    assert counts_of("") == {}
    labels = labels_of(TABLE)
    assert labels["24"] == "IO-APIC 5-edge eth0"
    assert labels["LOC"] == "Local timer interrupts"
    assert labels["ERR"] == ""
    assert labels_of("") == {}


# --- where they are directed ------------------------------------------------------


def directed(number: int, effective: str | None, allowed: str | None) -> dict[str, str]:
    place = f"/proc/irq/{number}"
    files = {
        f"{place}/effective_affinity_list": effective,
        f"{place}/smp_affinity_list": allowed,
    }
    return {path: text for path, text in files.items() if text is not None}


EFFECTIVE = "/proc/irq/24/effective_affinity_list"
ALLOWED = "/proc/irq/24/smp_affinity_list"


@pytest.mark.parametrize(
    ("files", "cpus", "wanted", "shown"),
    [
        (
            *(directed(24, "0", "0-3"), (1,)),
            *((PASS, "none of 1 interrupts"), [(EFFECTIVE, "0")]),
        ),
        (
            *(directed(24, "1", "0-3"), (1, 2)),
            *((FAIL, "1 interrupt is directed at CPU 1-2"), [(EFFECTIVE, "1")]),
        ),
        (
            *(directed(24, None, "0-3"), (1,)),
            *((FAIL, "1 interrupt is directed at CPU 1"), [(ALLOWED, "0-3")]),
        ),
        (
            *(directed(24, "", "0"), (1,)),
            *((PASS, "none of 1 interrupts"), [(ALLOWED, "0")]),
        ),
        # It was redirected, and has not come since.
        (
            *(directed(24, "1", "0"), (1,)),
            *((PASS, "none of 1 interrupts"), [(ALLOWED, "0")]),
        ),
        (
            *(directed(24, "1", "x"), (1,)),
            *((FAIL, "1 interrupt is directed at CPU 1"), [(EFFECTIVE, "1")]),
        ),
        (
            *(directed(24, "x", "0"), (1,)),
            (UNKNOWN, "the CPUs of some interrupts are unknown"),
            [(EFFECTIVE, "cannot be read as a CPU list")],
        ),
        (
            *({}, (1,)),
            (UNKNOWN, "the CPUs of some interrupts are unknown"),
            [(ALLOWED, "cannot be read as a CPU list")],
        ),
        (directed(24, "1", "1"), None, (NONE, NOT_APART), []),
    ],
)
def test_an_interrupt_is_directed_at_its_effective_cpus(
    files: dict[str, str],
    cpus: tuple[int, ...] | None,
    wanted: Wanted,
    shown: Shown,
) -> None:
    case = Case({INTERRUPTS: interrupts(1), **files}, cpus=cpus)

    assert answer("irq_affinity", case) == (*wanted, shown)


def rows(*labels: str) -> str:
    lines = (f" {n}:  5  6  {label}\n" for n, label in enumerate(labels, 30))
    return "       CPU0  CPU1\n" + "".join(lines)


@pytest.mark.parametrize(
    ("label", "is_device"),
    [
        ("IO-APIC 5-edge eth0", True),
        ("RISC-V INTC 5 riscv-timer", False),
        ("SiFive PLIC 10 ttyS0", True),
        ("GICv3 27 Level arch_timer", False),
        ("GICv4 16 Level x", False),
        ("GIC-0 31 Level x", False),
        ("GIC 30 Level x", False),
        ("GICv3 15 Level x", True),
        ("GICv3 32 Level eth0", True),
        ("GICv3 270 Level eth0", True),
        ("bcm2836-timer 1 Edge arch_timer", False),
    ],
)
def test_interrupts_that_every_cpu_has_of_its_own_are_no_devices(
    label: str, is_device: bool
) -> None:
    files = {INTERRUPTS: rows(label), "/proc/irq/30/smp_affinity_list": "1"}

    outcome, _, _ = answer("irq_affinity", Case(files))
    assert outcome is (FAIL if is_device else UNKNOWN)


def test_of_many_interrupts_sixteen_are_shown_but_all_that_are_wrong() -> None:
    labels = [f"IO-APIC {n}-edge x" for n in range(20)]
    table = {INTERRUPTS: rows(*labels)}
    files = {f"/proc/irq/{n}/smp_affinity_list": "0" for n in range(30, 50)}
    good = Case({**table, **files})
    bad = replace(good, files={**table, **dict.fromkeys(files, "1")})

    assert len(answer("irq_affinity", good)[2]) == 16
    assert answer("irq_affinity", bad)[1] == "20 interrupts are directed at CPU 1"
    assert len(answer("irq_affinity", bad)[2]) == 20
    assert len(answer("irq_affinity", Case(table))[2]) == 16


def test_without_the_table_nothing_is_known() -> None:
    assert answer("irq_affinity", Case()) == (UNKNOWN, f"no {INTERRUPTS}", [])
    assert answer("irq_affinity", Case(also={INTERRUPTS: REFUSED})) == (
        *(UNKNOWN, f"no {INTERRUPTS}"),
        [(INTERRUPTS, NO)],
    )


# --- where they came --------------------------------------------------------------

FEW = "as few as expected in 1.0 s"
NOT_WATCHED = "no observation window (--observe 0, or a capture without one)"


@pytest.mark.parametrize(
    ("device", "window_ns", "wanted"),
    [
        (0, 10**9, (PASS, FEW)),
        (3, 10**9, (FAIL, "3 in 1.0 s, most of them 24 eth0")),
        (3, 5 * 10**8, (FAIL, "3 in 0.5 s, most of them 24 eth0")),
        (3, 0, (UNKNOWN, NOT_WATCHED)),
    ],
)
def test_a_devices_interrupt_on_a_cpu_set_apart_is_told(
    device: int, window_ns: int, wanted: Wanted
) -> None:
    case = Case(observed=replace(seen(device=device), window_ns=window_ns))
    outcome, message, shown = answer("observed_device_interrupts", case)

    assert (outcome, message) == wanted
    if wanted[0] is FAIL:
        assert shown == [(INTERRUPTS, "24 eth0: 3")]
    if wanted[0] is PASS:
        assert shown == [(INTERRUPTS, "24")]
    apart = replace(case, cpus=None)
    assert answer("observed_device_interrupts", apart) == (NONE, NOT_APART, [])


def test_a_limit_is_for_each_second_and_at_least_for_one() -> None:
    a_second = int(catalogue()["observed_ipis"].args["a_second"])

    def outcome(count: int, window_ns: int) -> CheckOutcome:
        watched = replace(seen(call=count), window_ns=window_ns)
        return answer("observed_ipis", Case(observed=watched))[0]

    assert outcome(a_second, 10**9) is PASS
    assert outcome(a_second + 1, 10**9) is FAIL
    assert outcome(2 * a_second, 2 * 10**9) is PASS
    assert outcome(2 * a_second + 1, 2 * 10**9) is FAIL
    assert outcome(a_second, 10**8) is PASS


def test_the_row_with_the_most_is_named_and_all_are_shown() -> None:
    head = "       CPU0  CPU1  CPU2\n"
    before = f"{head} 24: 0 1 0 A 1-edge a\n 25: 0 1 0 A 2-edge b\n"
    after = (
        f"{head} 24: 9 3 0 A 1-edge a\n 25: 9 4 5 A 2-edge b\n 26: 0 1 0 A 3-edge c\n"
    )
    watched = Observed(
        window_ns=10**9, before={INTERRUPTS: before}, after={INTERRUPTS: after}
    )

    assert answer(
        "observed_device_interrupts", Case(observed=watched, cpus=(1, 2))
    ) == (
        FAIL,
        "11 in 1.0 s, most of them 25 b",
        [(INTERRUPTS, "25 b: 8"), (INTERRUPTS, "24 a: 2"), (INTERRUPTS, "26 c: 1")],
    )


@pytest.mark.parametrize(
    ("row", "label", "named"),
    [
        ("CAL", "Function call interrupts", "CAL"),
        ("IPI1", "Function call interrupts", "IPI1 Function call interrupts"),
    ],
)
def test_calls_of_other_cpus_are_known_by_name_or_by_label(
    row: str, label: str, named: str
) -> None:
    def table(count: int) -> str:
        return f"       CPU0  CPU1\n{row}:  0  {count}  {label}\n"

    watched = Observed(
        window_ns=10**9,
        before={INTERRUPTS: table(0)},
        after={INTERRUPTS: table(10**6)},
    )
    outcome, message, _ = answer("observed_ipis", Case(observed=watched))

    assert outcome is FAIL
    assert message == f"1000000 in 1.0 s, most of them {named}"


def test_a_table_without_the_cpus_or_the_rows_tells_nothing() -> None:
    why = f"{INTERRUPTS} does not count them on these CPUs"

    assert answer(
        "observed_device_interrupts", Case(observed=seen(device=3), cpus=(5,))
    ) == (UNKNOWN, why, [])
    empty = Observed(window_ns=1, before={INTERRUPTS: ""}, after={})
    assert answer("observed_device_interrupts", Case(observed=empty))[1] == why


def test_ticks_count_where_threads_poll() -> None:
    polling = Case(observed=seen(tick=250), profile=Profile.POLLING)

    assert answer("observed_ticks", polling) == (
        *(FAIL, "250 in 1.0 s, most of them LOC"),
        [(INTERRUPTS, "LOC: 250")],
    )


# --- irqbalance -------------------------------------------------------------------

COMM = "/proc/[0-9]*/comm"
AT = "/proc/8/comm"
DEBIAN, FEDORA = "/etc/default/irqbalance", "/etc/sysconfig/irqbalance"
SPARES = (PASS, "running, but it spares these CPUs")
BY_ITSELF = f"{CPU}/isolated, {CPU}/nohz_full"


@pytest.mark.parametrize(
    ("files", "cpus", "wanted", "told"),
    [
        ({}, (1,), (FAIL, "running, and may use CPU 1"), (BY_ITSELF, "none")),
        ({f"{CPU}/isolated": "1"}, (1,), SPARES, (BY_ITSELF, "1")),
        ({f"{CPU}/nohz_full": "1-2"}, (1,), SPARES, (BY_ITSELF, "1-2")),
        (
            *({f"{CPU}/isolated": "1", f"{CPU}/nohz_full": "2"}, (1, 2, 3)),
            *((FAIL, "running, and may use CPU 3"), (BY_ITSELF, "1-2")),
        ),
        (
            *({DEBIAN: "IRQBALANCE_BANNED_CPULIST=1,3"}, (1,)),
            *(SPARES, (DEBIAN, "IRQBALANCE_BANNED_CPULIST=1,3")),
        ),
        (
            *({FEDORA: "x\n  IRQBALANCE_BANNED_CPUS='a'\n"}, (1, 3)),
            *(SPARES, (FEDORA, "IRQBALANCE_BANNED_CPUS=a")),
        ),
        (
            {DEBIAN: "IRQBALANCE_BANNED_CPUS=2\nIRQBALANCE_BANNED_CPULIST=5\n"},
            *((1,), (FAIL, "running, and may use CPU 1")),
            (DEBIAN, "IRQBALANCE_BANNED_CPULIST=5"),
        ),
        (
            {DEBIAN: "IRQBALANCE_BANNED_CPULIST=5\nIRQBALANCE_BANNED_CPULIST=1\n"},
            *((1,), SPARES, (DEBIAN, "IRQBALANCE_BANNED_CPULIST=1")),
        ),
        (
            *({DEBIAN: "#IRQBALANCE_BANNED_CPULIST=1\n"}, (1,)),
            *((FAIL, "running, and may use CPU 1"), (BY_ITSELF, "none")),
        ),
        ({}, None, (FAIL, "running: it moves interrupts every 10 s"), None),
    ],
)
def test_irqbalance_spares_the_cpus_that_its_configuration_bans(
    files: dict[str, str],
    cpus: tuple[int, ...] | None,
    wanted: Wanted,
    told: tuple[str, str] | None,
) -> None:
    case = Case({AT: "irqbalance", **files}, cpus=cpus)
    shown = [(AT, "irqbalance"), *([] if told is None else [told])]

    assert answer("irqbalance", case) == (*wanted, shown)


def test_irqbalance_that_does_not_run_moves_nothing() -> None:
    files = {AT: "bash", "/proc/9/comm": "irqbalance-ui"}
    refused: dict[str, Content] = {COMM: REFUSED}

    assert answer("irqbalance", Case(files)) == (
        *(PASS, "not running"),
        [(COMM, "2 read")],
    )
    assert answer("irqbalance", Case(also=refused)) == (
        *(UNKNOWN, "the processes are not visible"),
        [(COMM, NO)],
    )
