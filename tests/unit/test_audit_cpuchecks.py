"""What the checks of CPUs answer, at the edges of what is good, and what they show."""

from dataclasses import replace

import pytest

from fakes.audited import FAIL, NONE, NOT_APART, PASS, UNKNOWN, Case, Wanted
from fakes.audited import answer_by_path as answer
from fakes.trees import CPU, Files
from rtscope.machine.audit.context import Observed
from rtscope.machine.audit.model import CheckOutcome
from rtscope.machine.reader import Denied

DMA_LATENCY = "/dev/cpu_dma_latency"

Shown = dict[str, str]


# --- frequency --------------------------------------------------------------------


def policies(*ranges: tuple[str, str | None]) -> Files:
    files: dict[str, str] = {}
    for n, (low, high) in enumerate(ranges):
        policy = f"{CPU}/cpufreq/policy{n}"
        files[f"{policy}/scaling_min_freq"] = low
        if high is not None:
            files[f"{policy}/scaling_max_freq"] = high
    return files


LOWEST = f"{CPU}/cpufreq/policy{{}}/scaling_min_freq"
CURRENT = f"{CPU}/cpufreq/policy0/scaling_cur_freq"


@pytest.mark.parametrize(
    ("ranges", "wanted", "shown"),
    [
        ([], (NONE, "this machine has no CPU frequency scaling"), {}),
        ([("1", "1"), ("2", "2")], (PASS, "1 kHz"), {0: "1", 1: "2"}),
        (
            [("1", "1"), ("1", "2"), ("3", "4")],
            (FAIL, "2 of 3 vary: 1 to 2 kHz"),
            {1: "1 to 2 kHz", 2: "3 to 4 kHz"},
        ),
        (
            [("1", "1"), ("1", None), ("2", None)],
            (UNKNOWN, "no highest frequency"),
            {1: "without scaling_max_freq"},
        ),
        (
            [("1", None), ("1", "2")],
            (FAIL, "1 of 2 vary: 1 to 2 kHz"),
            {1: "1 to 2 kHz"},
        ),
    ],
)
def test_a_frequency_is_fixed_where_lowest_and_highest_are_one(
    ranges: list[tuple[str, str | None]], wanted: Wanted, shown: dict[int, str]
) -> None:
    paths = {LOWEST.format(n): text for n, text in shown.items()}

    files = {f"{CPU}/online": "0-1", **policies(*ranges)}
    assert answer("fixed_frequency", Case(files)) == (*wanted, paths)


@pytest.mark.parametrize(
    ("before", "after", "wanted", "shown"),
    [
        ("5\n", " 5 ", (PASS, "1 kHz"), {LOWEST.format(0): "1"}),
        (
            *("5\n", " 6 "),
            (FAIL, "changed within the window: 5 kHz, then 6"),
            {CURRENT: "5 kHz, then 6"},
        ),
    ],
)
def test_a_frequency_that_changed_meanwhile_is_not_fixed(
    before: str, after: str, wanted: Wanted, shown: Shown
) -> None:
    seen = Observed(
        window_ns=10**9,
        before={CURRENT: before, "/proc/stat": "1"},
        after={CURRENT: after, "/proc/stat": "2"},
    )
    case = Case(policies(("1", "1")), observed=seen)

    assert answer("fixed_frequency", case) == (*wanted, shown)
    # What could be read once alone says nothing.
    once = replace(case, observed=replace(seen, after={}))
    assert answer("fixed_frequency", once)[0] is PASS


def test_of_many_cpus_sixteen_are_shown() -> None:
    outcome, message, shown = answer(
        "fixed_frequency", Case(policies(*[("1", "2")] * 20))
    )

    assert (outcome, message) == (FAIL, "20 of 20 vary: 1 to 2 kHz")
    assert len(shown) == 16


NO_TURBO, BOOST = f"{CPU}/intel_pstate/no_turbo", f"{CPU}/cpufreq/boost"


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({NO_TURBO: "1"}, (PASS, "off")),
        ({NO_TURBO: "0"}, (FAIL, "on")),
        ({BOOST: "0"}, (PASS, "off")),
        ({BOOST: "1"}, (FAIL, "on")),
        ({NO_TURBO: "0", BOOST: "0"}, (FAIL, "on")),
        ({NO_TURBO: "1", BOOST: "1"}, (PASS, "off")),
        ({}, (NONE, "this machine has no switch for turbo")),
    ],
)
def test_turbo_is_off_by_the_switch_that_the_driver_has(
    files: dict[str, str], wanted: Wanted
) -> None:
    shown = dict(list(files.items())[:1])
    there = {f"{CPU}/online": "0-1", **files}

    assert answer("turbo", Case(there)) == (*wanted, shown)


def test_a_switch_that_may_not_be_read_is_named() -> None:
    refused = Case(also={BOOST: Denied("Permission denied")})

    assert answer("turbo", refused) == (
        *(UNKNOWN, "not readable"),
        {BOOST: "cannot be read: Permission denied"},
    )


# --- idle -------------------------------------------------------------------------

RESUME = f"{CPU}/cpu1/power/pm_qos_resume_latency_us"


def state(
    number: int, latency: str, *, name: str = "C6", disable: str = "0", cpu: int = 1
) -> dict[str, str]:
    place = f"{CPU}/cpu{cpu}/cpuidle/state{number}"
    named = {f"{place}/name": name} if name else {}
    return {f"{place}/latency": latency, f"{place}/disable": disable, **named}


DEEP = (FAIL, "1 enabled, such as C6, 500 us to wake")
SHALLOW = (PASS, "none above 10 us is enabled")


@pytest.mark.parametrize(
    ("files", "cpus", "wanted"),
    [
        (state(1, "500"), (1,), DEEP),
        (state(1, "500"), None, DEEP),
        (state(1, "500", cpu=0), (1,), SHALLOW),
        (state(1, "500", disable="1"), (1,), SHALLOW),
        (state(1, "10"), (1,), SHALLOW),
        (state(1, "11"), (1,), (FAIL, "1 enabled, such as C6, 11 us to wake")),
        (
            *(state(1, "500", name=""), (1,)),
            (FAIL, "1 enabled, such as ?, 500 us to wake"),
        ),
        (
            {**state(1, "1"), **state(2, "500"), **state(3, "900", name="C8")},
            *((1,), (FAIL, "2 enabled, such as C6, 500 us to wake")),
        ),
        (state(1, "x"), (1,), (UNKNOWN, "a latency is not a number")),
        ({**state(1, "x"), **state(2, "500")}, (1,), DEEP),
        ({**state(1, "500"), RESUME: "0"}, (1,), DEEP),
        ({**state(1, "500"), RESUME: "1"}, (1,), SHALLOW),
        ({**state(1, "500"), RESUME: "10"}, (1,), SHALLOW),
        ({**state(1, "500"), RESUME: "11"}, (1,), DEEP),
        ({**state(1, "500"), RESUME: "n/a"}, (1,), SHALLOW),
        ({**state(1, "500"), RESUME: "junk"}, (1,), DEEP),
    ],
)
def test_a_state_is_too_deep_if_it_is_enabled_here_and_wakes_slowly(
    files: Files, cpus: tuple[int, ...] | None, wanted: Wanted
) -> None:
    assert answer("idle_states", Case(files, cpus=cpus))[:2] == wanted


def test_a_state_that_is_too_deep_is_shown_and_an_odd_latency_too() -> None:
    place = f"{CPU}/cpu1/cpuidle/state1"

    assert answer("idle_states", Case(state(1, "500")))[2] == {
        place: "C6, 500 us to wake"
    }
    assert answer("idle_states", Case(state(1, "x" * 99)))[2] == {
        f"{place}/latency": "x" * 80
    }


HOLDERS = {f"/proc/{n}/fd/3": name for n, name in enumerate("bacaed", 1)}


@pytest.mark.parametrize(
    ("asked_us", "outcome", "message", "says"),
    [
        (0, PASS, "none above 0 us while a program requests that", "0 us"),
        (10, PASS, "none above 10 us while a program requests that", "10 us"),
        (11, *DEEP, None),
    ],
)
def test_deep_states_do_no_harm_while_a_program_asks_for_short_ones(
    asked_us: int, outcome: CheckOutcome, message: str, says: str | None
) -> None:
    seen = Observed(dma_latency_us=asked_us, dma_holders=HOLDERS)
    found = answer("idle_states", Case(state(1, "500"), observed=seen))

    assert found[:2] == (outcome, message)
    if says is not None:
        assert found[2] == {DMA_LATENCY: f"{says}, requested by a, b, c, d"}


def test_who_limits_idle_states_is_shown() -> None:
    seen = Observed(dma_latency_us=1_999_999_999, dma_holders=HOLDERS)
    says = "1999999999 us, requested by a, b, c, d"

    assert answer("cpu_dma_latency", Case(observed=seen)) == (
        *(FAIL, says),
        {DMA_LATENCY: says, **HOLDERS},
    )
    nobody = Observed(dma_latency_us=2_000_000_000)
    assert answer("cpu_dma_latency", Case(observed=nobody)) == (
        *(PASS, "no program limits them"),
        {DMA_LATENCY: "2000000000 us"},
    )


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        (
            "# CONFIG_CPU_IDLE is not set",
            (NONE, "CPU_IDLE is not set: there are no idle states"),
        ),
        (
            "CONFIG_CPU_IDLE=y",
            (UNKNOWN, "not read: only on this machine, or by the agent of a board"),
        ),
    ],
)
def test_a_kernel_without_idle_states_needs_no_request(
    option: str, wanted: Wanted
) -> None:
    config = f"# Automatically generated file; DO NOT EDIT.\n{option}\n"

    assert answer("cpu_dma_latency", Case({"/boot/config-6.12.1": config})) == (
        *wanted,
        {},
    )


def coolers(*devices: tuple[str, str | None]) -> Files:
    place = "/sys/class/thermal/cooling_device"
    files = {f"{place}{n}/type": kind for n, (kind, _) in enumerate(devices)}
    states = {f"{place}{n}/cur_state": s for n, (_, s) in enumerate(devices) if s}
    return {**files, **states}


@pytest.mark.parametrize(
    ("devices", "wanted", "shown"),
    [
        (
            [("Processor", "1"), ("cpufreq-cpu0", "0"), ("Fan", "3")],
            (FAIL, "1 of 2 cooling devices active"),
            {0: "1"},
        ),
        (
            [("Processor", "0"), ("thermal-cpufreq-0", "0"), ("Fan", "3")],
            (PASS, "no cooling device active"),
            {0: "0", 1: "0"},
        ),
        (
            [("Processor", None), ("cpufreq-cpu0", "0")],
            (UNKNOWN, "not every state is readable"),
            {},
        ),
        (
            [("Processor", None), ("cpufreq-cpu0", "2")],
            (FAIL, "1 of 2 cooling devices active"),
            {1: "2"},
        ),
    ],
)
def test_a_processor_is_slowed_down_where_its_cooling_is_active(
    devices: list[tuple[str, str | None]], wanted: Wanted, shown: dict[int, str]
) -> None:
    place = "/sys/class/thermal/cooling_device{}/{}"
    states = {place.format(n, "cur_state"): text for n, text in shown.items()}
    found = answer("cooling", Case(coolers(*devices)))

    assert found[:2] == wanted
    assert list(found[2].values()) == list(states.values())


# --- what CPUs share --------------------------------------------------------------


@pytest.mark.parametrize(
    ("active", "cpu", "wanted"),
    [
        ("1", "fpu", (FAIL, "two CPUs share a core")),
        ("1", "hypervisor", (FAIL, "two CPUs share a core")),
        ("0", "fpu", (PASS, "no two CPUs share a core")),
        (
            *("0", "hypervisor"),
            (NONE, "a guest does not see which of the host's CPUs share a core"),
        ),
        ("2", "fpu", (UNKNOWN, "neither 0 nor 1")),
    ],
)
def test_a_shared_core_is_seen_but_by_a_guest(
    active: str, cpu: str, wanted: Wanted
) -> None:
    files = {f"{CPU}/smt/active": active, "/proc/cpuinfo": f"flags\t\t: {cpu}\n"}

    assert answer("smt", Case(files)) == (*wanted, {f"{CPU}/smt/active": active})


def cache(cpu: int, level: str, shared: str) -> Files:
    place = f"{CPU}/cpu{cpu}/cache/index{level}"
    return {f"{place}/level": level, f"{place}/shared_cpu_list": shared}


CACHE = f"{CPU}/cpu{{}}/cache/index2/shared_cpu_list"
NO_CACHE = "the kernel does not describe the second-level cache of these CPUs"


@pytest.mark.parametrize(
    ("files", "cpus", "wanted", "shown"),
    [
        (cache(1, "2", "1"), None, (NONE, NOT_APART), {}),
        (
            *(cache(1, "2", "1"), (1,)),
            *((PASS, "not shared with other CPUs"), {CACHE.format(1): "1"}),
        ),
        (
            *(cache(1, "2", "1-2"), (1, 2)),
            *((PASS, "not shared with other CPUs"), {CACHE.format(1): "1-2"}),
        ),
        (
            {**cache(1, "2", "0-1"), **cache(2, "2", "2-3")},
            *((1, 2), (FAIL, "shared with CPU 0")),
            {
                CACHE.format(1): "shared with CPU 0",
                CACHE.format(2): "shared with CPU 3",
            },
        ),
        (cache(1, "3", "0-1"), (1,), (UNKNOWN, NO_CACHE), {}),
        (cache(0, "2", "0-1"), (1,), (UNKNOWN, NO_CACHE), {}),
        (
            *(cache(1, "2", "x"), (1,)),
            *((UNKNOWN, "not a CPU list"), {CACHE.format(1): "x"}),
        ),
    ],
)
def test_a_second_level_cache_is_private_among_the_cpus_set_apart(
    files: Files, cpus: tuple[int, ...] | None, wanted: Wanted, shown: Shown
) -> None:
    assert answer("private_cache", Case(files, cpus=cpus)) == (*wanted, shown)
