"""What cannot be read, or not for every CPU, is never given a value."""

import pytest

from fakes.gathered import fact
from fakes.trees import CLOCK, CPU, reader_of
from rtscope.machine.facts import FactValue, catalogue
from rtscope.machine.gather import gather
from rtscope.machine.reader import Denied

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"


def governors(*each: str) -> dict[str, str]:
    return {
        f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": governor
        for cpu, governor in enumerate(each)
    }


@pytest.mark.parametrize(
    ("online", "each", "value"),
    [
        ("0-1", ("schedutil", "schedutil"), "schedutil"),
        ("0-1", ("schedutil", "performance"), ("0=schedutil", "1=performance")),
        ("0-3", ("performance",), ("0=performance",)),
        (None, ("performance",), ("0=performance",)),
    ],
)
def test_a_governor_read_on_some_cpus_does_not_pass_for_all(
    online: str | None, each: tuple[str, ...], value: object
) -> None:
    there = {f"{CPU}/online": online} if online else {}

    assert fact({**governors(*each), **there}, "governor").value == value


def test_refused_files_say_so_and_give_no_value() -> None:
    pattern = f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor"
    refused = {
        "/proc/meminfo": Denied("Permission denied"),
        f"{CPU}/cpu0/cpufreq/scaling_governor": Denied("Input/output error"),
        f"{CLOCK}/current_clocksource": Denied("Operation not permitted"),
        "/proc/[0-9]*/comm": Denied("Permission denied"),
    }

    facts = gather(reader_of({}, also=refused))

    assert facts["memory_total_kb"] == FactValue(
        None, "/proc/meminfo", "/proc/meminfo: Permission denied"
    )
    assert facts["governor"] == FactValue(
        None, pattern, f"{CPU}/cpu0/cpufreq/scaling_governor: Input/output error"
    )
    assert facts["clocksource"].reason.endswith("clocksource: Operation not permitted")
    assert facts["irqbalance"].value is None


def test_a_refused_directory_is_a_refusal_of_its_facts() -> None:
    pattern = f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor"
    facts = gather(reader_of({}, also={pattern: Denied("Permission denied")}))

    assert facts["governor"].reason == f"{pattern}: Permission denied"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("rt_runtime_us", RUNTIME),
        ("uptime_s", "/proc/uptime"),
        ("smt_active", f"{CPU}/smt/active"),
        ("load_average", "/proc/loadavg"),
        ("memory_total_kb", "/proc/meminfo"),
        ("transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("timebase_frequency_hz", "/proc/device-tree/cpus/timebase-frequency"),
        ("distribution", "/etc/os-release"),
        ("cpu_model", "/proc/cpuinfo"),
    ],
)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe?", b"PRETTY_NAME='open"])
def test_nonsense_gives_no_value_but_a_reason(
    name: str, path: str, content: bytes
) -> None:
    got = fact({path: content}, name)

    assert got.value is None
    assert got.reason.endswith("unexpected contents")


def test_a_machine_that_shows_nothing_has_no_fact_but_reasons() -> None:
    facts = gather(reader_of({}))
    told = {name for name, f in facts.items() if f.value is not None}

    assert told == {"preempt_rt_how", "preemption_model_how"}
    assert all(f.reason for name, f in facts.items() if name not in told)
    assert tuple(facts) == tuple(catalogue())
