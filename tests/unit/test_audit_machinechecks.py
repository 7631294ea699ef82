"""What the checks of the whole machine answer at their edges, and what they show."""

import pytest

from fakes.audited import (
    FAIL,
    NO,
    NONE,
    PASS,
    REFUSED,
    UNKNOWN,
    ZONE,
    Case,
    Shown,
    Wanted,
    answer,
    smis,
    stat,
    zone,
)
from rtscope.machine.audit.context import Observed
from rtscope.machine.audit.model import CheckOutcome
from rtscope.machine.reader import Content

NOT_WATCHED = "no observation window (--observe 0, or a capture without one)"
CPUINFO, STAT, SWAPS = "/proc/cpuinfo", "/proc/stat", "/proc/swaps"
LOCKDOWN = "/sys/kernel/security/lockdown"
UNCOUNTED = "only Intel processors count SMIs; look for their gaps: rtla hwnoise"


@pytest.mark.parametrize(
    ("files", "wanted", "shown"),
    [
        (
            {CPUINFO: "flags\t\t: fpu hypervisor\n"},
            (FAIL, "a guest"),
            [(CPUINFO, "has the flag 'hypervisor'")],
        ),
        (
            {CPUINFO: "flags\t\t: fpu\n"},
            (PASS, "no hypervisor"),
            [(CPUINFO, "lacks the flag 'hypervisor'")],
        ),
        (
            {"/sys/class/dmi/id/sys_vendor": "QEMU"},
            (FAIL, "a guest"),
            [("/sys/class/dmi/id", "names QEMU")],
        ),
        (
            {"/sys/class/dmi/id/sys_vendor": "Dell Inc."},
            (PASS, "the firmware names the hardware"),
            [("the firmware", "calls the machine 'Dell Inc.', no hypervisor")],
        ),
        ({}, (UNKNOWN, "neither CPU flags nor firmware show it"), []),
    ],
)
def test_a_guest_is_known_by_its_cpu_or_its_firmware(
    files: dict[str, str], wanted: Wanted, shown: Shown
) -> None:
    assert answer("bare_metal", Case(files)) == (*wanted, shown)


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (stat(5), stat(8), (FAIL, "3 ticks of 10 ms within the window")),
        (stat(5), stat(6), (FAIL, "1 ticks of 10 ms within the window")),
        (stat(5), stat(5), (PASS, "none within the window")),
        (stat(8), stat(5), (PASS, "none within the window")),
        (stat(0), "", (UNKNOWN, NOT_WATCHED)),
        ("", stat(0), (UNKNOWN, NOT_WATCHED)),
        ("cpu 1 2 3 4 5 6 7", stat(5), (UNKNOWN, NOT_WATCHED)),
        ("cpu0 1 2 3 4 5 6 7 8", stat(5), (UNKNOWN, NOT_WATCHED)),
        ("cpu 1 2 3 4 5 6 7 x", stat(5), (UNKNOWN, NOT_WATCHED)),
        ("cpu 1 2 3 4 5 6 7 5", stat(8), (FAIL, "3 ticks of 10 ms within the window")),
    ],
)
def test_stolen_time_is_what_the_host_took_within_the_window(
    before: str, after: str, wanted: Wanted
) -> None:
    seen = Observed(window_ns=10**9, before={STAT: before}, after={STAT: after})
    outcome, message, shown = answer("steal", Case(observed=seen))

    assert (outcome, message) == wanted
    if wanted[0] is not UNKNOWN:
        first, second = (text.split()[8] for text in (before, after))
        assert shown == [(STAT, f"steal {first}, then {second} ticks")]
    alone = Observed(window_ns=0, before={STAT: before}, after={STAT: after})
    assert answer("steal", Case(observed=alone))[:2] == (UNKNOWN, NOT_WATCHED)


@pytest.mark.parametrize(
    ("text", "wanted", "shown"),
    [
        ("Filename Type Size\n", (PASS, "no swap"), ["empty"]),
        (
            "Filename Type Size\n/dev/a x 1\n/dev/b y 2\n",
            (FAIL, "/dev/a, /dev/b"),
            ["/dev/a x 1", "/dev/b y 2"],
        ),
        ("x" * 99, (UNKNOWN, "not a table of swap areas"), ["x" * 80]),
        ("", (UNKNOWN, "not a table of swap areas"), [""]),
        (None, (NONE, "this kernel cannot swap"), []),
    ],
)
def test_swap_is_each_area_of_the_kernels_table(
    text: str | None, wanted: Wanted, shown: list[str]
) -> None:
    files = {} if text is None else {SWAPS: text}

    assert answer("swap", Case(files)) == (*wanted, [(SWAPS, row) for row in shown])


def server(cpu: int) -> str:
    return f"/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"


CLOSED = (
    "kernel lockdown (none [integrity]) closes debugfs even to root: the fair server "
    "cannot be turned off either"
)


@pytest.mark.parametrize(
    ("runtimes", "cpus", "wanted", "shown"),
    [
        ({0: "50", 1: "0"}, (1,), (PASS, "off"), {1: "0"}),
        ({0: "0", 1: "0"}, None, (PASS, "off"), {0: "0", 1: "0"}),
        (
            *({0: "50", 1: "60", 2: "70"}, (1, 2)),
            *((FAIL, "60 ns of each period on CPU 1-2"), {1: "60", 2: "70"}),
        ),
        (
            *({0: "0", 1: "60", 2: "70"}, (0, 2)),
            *((FAIL, "70 ns of each period on CPU 2"), {2: "70"}),
        ),
        (
            *({}, (1,)),
            (
                UNKNOWN,
                "debugfs is not mounted, or this kernel does not show it there",
            ),
            {},
        ),
        (
            *({0: "50"}, (1,)),
            (
                UNKNOWN,
                "debugfs is not mounted, or this kernel does not show it there",
            ),
            {},
        ),
    ],
)
def test_the_fair_server_is_off_where_its_runtime_is_0(
    runtimes: dict[int, str],
    cpus: tuple[int, ...] | None,
    wanted: Wanted,
    shown: dict[int, str],
) -> None:
    files = {server(cpu): text for cpu, text in runtimes.items()}
    paths = [(server(cpu), text) for cpu, text in shown.items()]

    assert answer("fair_server", Case(files, cpus=cpus)) == (*wanted, paths)


@pytest.mark.parametrize(
    ("files", "also", "why"),
    [
        ({server(1): "0"}, {}, "only partly readable"),
        ({}, {}, "not readable: run as root"),
        ({LOCKDOWN: "[none] integrity"}, {}, "not readable: run as root"),
        ({LOCKDOWN: "none [integrity]"}, {}, CLOSED),
        (
            *({}, {LOCKDOWN: REFUSED}),
            "not readable, nor is the state of kernel lockdown: run as root",
        ),
    ],
)
def test_why_the_fair_server_cannot_be_seen_is_told(
    files: dict[str, str], also: dict[str, Content], why: str
) -> None:
    case = Case(files, {**also, server(0): REFUSED})

    assert answer("fair_server", case) == (UNKNOWN, why, [(server(0), NO)])


SWITCH, MASK = "/proc/sys/kernel/watchdog", "/proc/sys/kernel/watchdog_cpumask"


@pytest.mark.parametrize(
    ("files", "cpus", "wanted"),
    [
        ({SWITCH: "0"}, (1,), (PASS, "off")),
        ({SWITCH: "1"}, (1,), (FAIL, "on")),
        ({SWITCH: "1", MASK: "0-3"}, (1, 2), (FAIL, "on, also on CPU 1-2")),
        ({SWITCH: "1", MASK: "0,2-3"}, (1, 2), (FAIL, "on, also on CPU 2")),
        ({SWITCH: "1", MASK: "0"}, (1, 2), (PASS, "on, and on other CPUs only")),
        ({}, (1,), (NONE, "this kernel has no lockup watchdog")),
    ],
)
def test_the_watchdog_leaves_the_cpus_set_apart_alone(
    files: dict[str, str], cpus: tuple[int, ...], wanted: Wanted
) -> None:
    assert answer("watchdog", Case(files, cpus=cpus)) == (*wanted, [*files.items()])


@pytest.mark.parametrize(("mask", "cpus"), [("0-3", None), ("x", (1,))])
def test_a_watchdog_whose_cpus_mean_nothing_is_on(
    mask: str, cpus: tuple[int, ...] | None
) -> None:
    case = Case({SWITCH: "1", MASK: mask}, cpus=cpus)

    assert answer("watchdog", case) == (FAIL, "on", [(SWITCH, "1")])


TRACING = "/sys/kernel/tracing"
TRACER = f"{TRACING}/current_tracer"
EVENTS_A = f"{TRACING}/instances/a/events/enable"
TRACER_B = f"{TRACING}/instances/b/current_tracer"


@pytest.mark.parametrize(
    ("files", "also", "wanted", "shown"),
    [
        (
            *({EVENTS_A: "0", TRACER_B: "nop"}, {}),
            *((PASS, "none traces"), [(TRACER, "no instance that traces")]),
        ),
        (
            *({EVENTS_A: "X", TRACER_B: "nop"}, {}),
            *((FAIL, f"X in {EVENTS_A}"), [(EVENTS_A, "X")]),
        ),
        (
            *({EVENTS_A: "1", TRACER_B: "function"}, {}),
            (FAIL, f"1 in {EVENTS_A}"),
            [(EVENTS_A, "1"), (TRACER_B, "function")],
        ),
        (
            *({TRACER_B: "nop"}, {EVENTS_A: REFUSED}),
            *((UNKNOWN, "only partly readable"), [(EVENTS_A, NO)]),
        ),
    ],
)
def test_an_instance_of_tracing_traces_by_events_or_by_a_tracer(
    files: dict[str, str], also: dict[str, Content], wanted: Wanted, shown: Shown
) -> None:
    case = Case({TRACER: "nop", **files}, also)

    assert answer("trace_instances", case) == (*wanted, shown)


def test_without_tracefs_it_says_how_to_mount_it() -> None:
    outcome, message, _ = answer("trace_instances", Case())

    assert outcome is UNKNOWN
    assert message.endswith(
        "mount it first: mount -t tracefs tracefs /sys/kernel/tracing"
    )


@pytest.mark.parametrize(
    ("cost_ns", "resolution_ns", "outcome", "says"),
    [
        (60, 1, PASS, "60 ns, in steps of 1 ns"),
        (60, None, PASS, "60 ns"),
        (60, 2, FAIL, "60 ns, in steps of 2 ns"),
        (1000, 1, PASS, "1000 ns, in steps of 1 ns"),
        (1001, 1, FAIL, "1001 ns, in steps of 1 ns"),
        (0, 1, PASS, "0 ns, in steps of 1 ns"),
    ],
)
def test_a_clock_is_good_that_costs_a_microsecond_at_most_and_counts_ns(
    cost_ns: int, resolution_ns: int | None, outcome: CheckOutcome, says: str
) -> None:
    seen = Observed(clock_cost_ns=cost_ns, clock_resolution_ns=resolution_ns)
    shown = [("clock_gettime(CLOCK_MONOTONIC), measured", says)]

    assert answer("clock_cost", Case(observed=seen)) == (outcome, says, shown)


HWMON = "/sys/class/hwmon/hwmon"
MODEL = "/proc/device-tree/model"


@pytest.mark.parametrize(
    ("name", "alarm", "model", "wanted"),
    [
        ("rpi_volt", "1", "", (FAIL, "the supply voltage was too low")),
        ("rpi_volt", "0", "", (PASS, "no alarm")),
        ("rpi_volt", "2", "", (UNKNOWN, "the alarm cannot be read")),
        (
            *("cpu_thermal", "1", "Raspberry Pi 4"),
            (UNKNOWN, "a Raspberry Pi whose kernel has no driver for the alarm"),
        ),
    ],
)
def test_a_raspberry_pi_tells_of_too_low_a_voltage_by_its_alarm(
    name: str, alarm: str, model: str, wanted: Wanted
) -> None:
    at = f"{HWMON}1/in0_lcrit_alarm"
    files = {
        f"{HWMON}0/name": "other",
        f"{HWMON}1/name": name,
        **{at: alarm, MODEL: model},
    }
    shown = [] if wanted[0] is UNKNOWN else [(at, alarm)]

    assert answer("undervoltage", Case(files, arch="aarch64")) == (*wanted, shown)


@pytest.mark.parametrize(
    ("isas", "wanted", "shown"),
    [
        (["rv64imac_sstc_x", "rv64_sstc"], (PASS, "sstc"), ["rv64imac_sstc_x"]),
        (["rv64imac_sstc", "rv64imac"], (FAIL, "no sstc"), ["rv64imac"]),
        (["rv64sstc"] * 6, (FAIL, "no sstc"), ["rv64sstc"] * 4),
        ([], (UNKNOWN, f"{CPUINFO} does not show the ISA"), []),
    ],
)
def test_every_hart_needs_the_extension(
    isas: list[str], wanted: Wanted, shown: list[str]
) -> None:
    text = "".join(f"hart\t: 0\nisa\t\t: {isa}\n" for isa in isas)
    case = Case({CPUINFO: text}, arch="riscv64")

    assert answer("riscv_timer", case) == (*wanted, [(CPUINFO, isa) for isa in shown])


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        ("[none] integrity", (PASS, "none")),
        ("none [integrity]", (FAIL, "none [integrity]")),
        ("none integrity", (UNKNOWN, "no mode is marked")),
    ],
)
def test_lockdown_is_the_mode_in_brackets(mode: str, wanted: Wanted) -> None:
    assert answer("lockdown", Case({LOCKDOWN: mode})) == (*wanted, [(LOCKDOWN, mode)])


def test_where_lockdown_is_refused_it_is_unknown() -> None:
    assert answer("lockdown", Case(also={LOCKDOWN: REFUSED})) == (
        *(UNKNOWN, "not readable"),
        [(LOCKDOWN, NO)],
    )


INTEL = "vendor_id\t: GenuineIntel\nflags\t\t: fpu\n"


@pytest.mark.parametrize(
    ("cpu", "seen", "wanted", "shown"),
    [
        (
            *(INTEL, smis(5, 5), (PASS, "none in 1.0 s")),
            [("/dev/cpu/0/msr", "0 in 1.0 s, 5 since the reset")],
        ),
        (
            *(INTEL, smis(5, 6), (FAIL, "1 in 1.0 s")),
            [("/dev/cpu/0/msr", "1 in 1.0 s, 6 since the reset")],
        ),
        (
            INTEL,
            Observed(
                window_ns=2 * 10**9,
                smi_before={"a": 1, "b": 2},
                smi_after={"a": 3, "b": 7, "c": 9},
            ),
            (FAIL, "5 in 2.0 s"),
            [
                ("a", "2 in 2.0 s, 3 since the reset"),
                ("b", "5 in 2.0 s, 7 since the reset"),
            ],
        ),
        (
            INTEL,
            Observed(window_ns=1, smi_before={"a": 1}, smi_after={"c": 9}),
            *((UNKNOWN, "no CPU's counter could be read twice"), []),
        ),
        (
            INTEL,
            Observed(smi_before={"a": 1}, smi_after={"a": 9}),
            *((UNKNOWN, "no observation window (--observe 0)"), []),
        ),
        (INTEL, Observed(why_no_smi="not root"), (UNKNOWN, "not root"), []),
        (
            INTEL.replace("GenuineIntel", "AuthenticAMD"),
            *(smis(5, 6), (UNKNOWN, UNCOUNTED), []),
        ),
        (
            INTEL.replace("fpu", "fpu hypervisor"),
            *(smis(5, 6), (NONE, "a guest does not see the SMIs of its host"), []),
        ),
    ],
)
def test_management_interrupts_are_counted_within_the_window(
    cpu: str, seen: Observed, wanted: Wanted, shown: Shown
) -> None:
    assert answer("smi_count", Case({CPUINFO: cpu}, observed=seen)) == (*wanted, shown)


def test_of_many_counters_sixteen_are_shown() -> None:
    paths = [str(n) for n in range(20)]
    seen = Observed(
        window_ns=10**9,
        smi_before=dict.fromkeys(paths, 1),
        smi_after=dict.fromkeys(paths, 2),
    )

    assert len(answer("smi_count", Case({CPUINFO: INTEL}, observed=seen))[2]) == 16


@pytest.mark.parametrize(
    ("temperature", "outcome", "says"),
    [
        ("-5000", PASS, "-5 of 95 C"),
        ("75400", PASS, "75 of 95 C"),
        ("85000", PASS, "85 of 95 C"),
        ("85001", FAIL, "85 of 95 C"),
        ("96000", FAIL, "96 of 95 C"),
    ],
)
def test_a_processor_is_too_hot_within_10_degrees_of_its_limit(
    temperature: str, outcome: CheckOutcome, says: str
) -> None:
    shown = [(f"{ZONE}/temp", says)]

    assert answer("temperature", Case(zone(temperature))) == (outcome, says, shown)


NO_LIMIT = "no processor's zone shows a temperature and a limit"


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"temp": "x"}, (UNKNOWN, NO_LIMIT)),
        ({"trip_point_1_type": "active"}, (UNKNOWN, NO_LIMIT)),
        ({"trip_point_1_temp": "-1"}, (UNKNOWN, NO_LIMIT)),
        ({"trip_point_1_temp": "x"}, (UNKNOWN, NO_LIMIT)),
        ({"trip_point_1_temp": "1"}, (FAIL, "50 of 0 C")),
        ({"trip_point_1_type": "hot"}, (PASS, "50 of 95 C")),
        ({"trip_point_1_type": "critical"}, (PASS, "50 of 95 C")),
        ({"trip_point_2_temp": "55000"}, (FAIL, "50 of 55 C")),
        ({"type": "wifi"}, (NONE, "the kernel knows no processor's temperature")),
        ({"type": "X86_PKG_TEMP"}, (PASS, "50 of 95 C")),
        ({"type": "soc-thermal"}, (PASS, "50 of 95 C")),
        ({"type": "acpitz"}, (PASS, "50 of 95 C")),
    ],
)
def test_a_limit_is_the_lowest_trip_that_slows_a_processor_down(
    changes: dict[str, str], wanted: Wanted
) -> None:
    files = {**zone("50000"), **{f"{ZONE}/{name}": t for name, t in changes.items()}}

    assert answer("temperature", Case(files))[:2] == wanted


def test_of_two_zones_the_hot_one_is_told() -> None:
    other = {p.replace("zone0", "zone1"): t for p, t in zone("90000").items()}

    assert answer("temperature", Case({**zone("50000"), **other})) == (
        *(FAIL, "90 of 95 C"),
        [(f"{ZONE.replace('zone0', 'zone1')}/temp", "90 of 95 C")],
    )
