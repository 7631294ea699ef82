"""Newer checks: no file, garbage and refusals never pass; absence is proved."""

import gzip

import pytest

from fakes.auditcases import CASES
from fakes.audited import (
    FAIL,
    HEAD,
    IRQ,
    KERNEL,
    KTHREADD,
    NONE,
    PASS,
    UNKNOWN,
    Case,
    judged,
    thread,
    threads,
)
from fakes.trees import CPU, Files
from rtscope.machine.audit.examine import catalogue
from rtscope.machine.audit.model import CheckOutcome, Severity
from rtscope.machine.audit.observe import TRIAL_PRIORITY
from rtscope.machine.audit.threadchecks import MEASURED
from rtscope.machine.kernelidentity import CMDLINE
from rtscope.machine.reader import Denied

NEW = (
    *("skewed_ticks", "threaded_interrupts", "busy_polling", "mitigations"),
    *("late_microcode", "efi_runtime", "kernel_threads", "ptp_threads"),
    *("cache_partition", "interrupt_coalescing", "rcu_grace_periods"),
    *("packet_steering", "cpu_partitions", "background_compaction", "split_locks"),
    *("deferred_polls", "threaded_polls"),
)
VERSION = "/proc/sys/kernel/version"
WEAK = f"{CPU}/vulnerabilities"
PARAMETER = "/sys/module/rcutree/parameters/kthread_prio"
FORCED = "IRQ_FORCED_THREADING"


def config(*lines: str) -> Files:
    text = "\n".join((HEAD, "CONFIG_SMP=y", *lines))
    return {"/proc/config.gz": gzip.compress(text.encode(), mtime=0)}


@pytest.mark.parametrize("name", NEW)
def test_absent_garbled_and_refused_files_pass_nothing(name: str) -> None:
    paths = catalogue()[name].paths
    somewhere = [path.replace("[0-9]*", "1").replace("*", "1") for path in paths]
    somewhere = [path.replace("[pr]", "p") for path in somewhere]
    refused = dict.fromkeys(paths, Denied("Permission denied"))
    # A number of sevens is also a mask with CPU 1 in it.
    for text in ("", "\0\xff{", "7" * 5000, "-1", "0=,;()"):
        found = judged(name, Case(dict.fromkeys(somewhere, text)))
        assert found.outcome is not PASS, text
    assert judged(name, Case()).outcome is UNKNOWN
    assert judged(name, Case(also=refused)).outcome is UNKNOWN


@pytest.mark.parametrize("name", NEW)
def test_each_has_a_source_a_remedy_and_is_no_grave_failure(name: str) -> None:
    kind = catalogue()[name]
    assert "/" in kind.source
    assert kind.remedy
    # A grave failure is a caveat of every record.
    assert kind.severity <= Severity.MEDIUM


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("mitigations", "GENERIC_CPU_VULNERABILITIES"),
        ("busy_polling", "NET_RX_BUSY_POLL"),
        ("sched_ext", "SCHED_CLASS_EXT"),
        ("pcie_links", "PCIEASPM"),
        ("timer_migration", "NO_HZ_COMMON"),
        ("rcu_grace_periods", "TREE_RCU"),
        ("background_compaction", "COMPACTION"),
        ("packet_steering", "RPS"),
        ("deferred_polls", "NET"),
        ("threaded_polls", "NET"),
    ],
)
def test_only_a_whole_configuration_proves_that_a_file_cannot_be(
    name: str, option: str
) -> None:
    assert judged(name, Case(config())).outcome is NONE
    assert judged(name, Case(config(f"CONFIG_{option}=y"))).outcome is UNKNOWN
    extract = {"/boot/config-6.12.1": "CONFIG_SMP=y\n"}
    assert judged(name, Case(extract)).outcome is UNKNOWN


GROUPS = "/sys/fs/cgroup"


@pytest.mark.parametrize(
    ("states", "wanted"),
    [
        ({"a": "member", "b": "root"}, PASS),
        ({"a": "isolated", "b/c": "isolated invalid (x)"}, FAIL),
        ({"a": "root invalid"}, FAIL),
        ({"a": "isolated", "b": "garbage"}, UNKNOWN),
        ({"a": "member"}, NONE),
        ({}, NONE),
    ],
)
def test_a_partition_is_valid_or_an_ordinary_group(
    states: dict[str, str], wanted: CheckOutcome
) -> None:
    files = {f"{GROUPS}/{n}/cpuset.cpus.partition": t for n, t in states.items()}
    case = Case({**files, f"{GROUPS}/cgroup.controllers": "cpuset cpu"})
    assert judged("cpu_partitions", case).outcome is wanted


QUEUE = "/sys/class/net/{}/queues/rx-0/rps_cpus"


@pytest.mark.parametrize(
    ("masks", "cpus", "wanted"),
    [
        (("0", "0"), (1,), PASS),
        (("0", "00000000,00000002"), (1,), FAIL),
        (("garbage", "2"), (1,), FAIL),
        (("garbage", "1"), (1,), UNKNOWN),
        (("3",), None, NONE),
    ],
)
def test_packets_are_steered_to_other_cpus(
    masks: tuple[str, ...], cpus: tuple[int, ...] | None, wanted: CheckOutcome
) -> None:
    files = {QUEUE.format(f"eth{n}"): mask for n, mask in enumerate(masks)}
    assert judged("packet_steering", Case(files, cpus=cpus)).outcome is wanted


@pytest.mark.parametrize(
    ("cmdline", "online", "wanted"),
    [
        ("skew_tick=1", "0-3", PASS),
        ("skew_tick=1 skew_tick=0", "0-3", FAIL),
        ("skew_tick=", "0-3", FAIL),
        ("quiet -- skew_tick=1", "0-3", FAIL),
        ("quiet", "0", NONE),
        ("quiet", "garbage", FAIL),
    ],
)
def test_ticks_are_skewed_by_the_last_word(
    cmdline: str, online: str, wanted: CheckOutcome
) -> None:
    files = {CMDLINE: cmdline, f"{CPU}/online": online}
    assert judged("skewed_ticks", Case(files)).outcome is wanted


@pytest.mark.parametrize(
    ("version", "lines", "cmdline", "wanted"),
    [
        ("#1 SMP PREEMPT_RT", (), "quiet", NONE),
        ("#1 SMP PREEMPT_DYNAMIC", (), "quiet", FAIL),
        ("#1 SMP PREEMPT_DYNAMIC", (f"CONFIG_{FORCED}=y",), "threadirqs", PASS),
        ("#1 SMP PREEMPT_DYNAMIC", (f"CONFIG_{FORCED}=y",), "nothreadirqs", FAIL),
        ("#1 SMP PREEMPT_DYNAMIC", (f"# CONFIG_{FORCED} is not set",), "quiet", FAIL),
    ],
)
def test_handlers_are_in_threads_by_a_word_or_by_the_kernel(
    version: str, lines: tuple[str, ...], cmdline: str, wanted: CheckOutcome
) -> None:
    files: Files = {VERSION: version, CMDLINE: cmdline}
    if lines:
        files = {**files, **config(*lines)}
    assert judged("threaded_interrupts", Case(files)).outcome is wanted


@pytest.mark.parametrize(
    ("texts", "wanted", "says"),
    [
        (("Not affected", "Vulnerable"), PASS, "none in force; vulnerable: w1"),
        (("Not affected", "Vulnerable: No microcode"), PASS, "vulnerable: w1"),
        (("Mitigation: PTI", "Not affected"), FAIL, "1 in force: w0"),
        (("KVM: Mitigation: VMX disabled", "Not affected"), UNKNOWN, "neither"),
        (("", "Not affected"), UNKNOWN, "neither"),
    ],
)
def test_mitigations_are_counted_and_named(
    texts: tuple[str, ...], wanted: CheckOutcome, says: str
) -> None:
    files = {f"{WEAK}/w{n}": text for n, text in enumerate(texts)}
    check = judged("mitigations", Case(files))
    assert check.outcome is wanted
    assert says in check.message


KSOFTIRQD = thread("ksoftirqd/1", flags=KERNEL)
RCUC = thread("rcuc/1", 1, 50, KERNEL)
LOOP = thread("loop", 1, 50)


@pytest.mark.parametrize(
    ("stats", "parameter", "wanted"),
    [
        ((KTHREADD, KSOFTIRQD), "0", PASS),
        ((KTHREADD, KSOFTIRQD, RCUC), "50", PASS),
        ((KTHREADD, KSOFTIRQD, RCUC, LOOP), "1", FAIL),
        ((KTHREADD, KSOFTIRQD), str(MEASURED), FAIL),
        ((KTHREADD, KSOFTIRQD), str(MEASURED - 1), PASS),
        ((KTHREADD, KSOFTIRQD, LOOP), "50", FAIL),
        ((KTHREADD, IRQ), "1", UNKNOWN),
        ((LOOP,), "1", UNKNOWN),
        ((LOOP,), "99", FAIL),
        ((KTHREADD, thread("rcuc/0", 1, 99), LOOP), "1", UNKNOWN),
    ],
)
def test_threads_that_run_callbacks_are_below_yours(
    stats: tuple[str, ...], parameter: str, wanted: CheckOutcome
) -> None:
    files = {**threads(*stats), PARAMETER: parameter}
    assert judged("kernel_threads", Case(files)).outcome is wanted


def test_a_measurement_has_the_priority_that_threads_are_compared_with() -> None:
    assert MEASURED == TRIAL_PRIORITY


PTP = thread("ptp4l", 1, 10)


@pytest.mark.parametrize(
    ("stats", "wanted"),
    [
        ((KTHREADD, PTP), PASS),
        ((KTHREADD, PTP, thread("loop", 2, 80)), PASS),
        ((KTHREADD, PTP, thread("loop", 2, 10)), FAIL),
        ((KTHREADD, PTP, thread("phc2sys")), FAIL),
        ((KTHREADD, thread("ptp4l", 6)), PASS),
        ((KTHREADD,), NONE),
        ((KTHREADD, thread("ptp4l", flags=KERNEL)), NONE),
        ((PTP,), PASS),
        ((LOOP,), UNKNOWN),
    ],
)
def test_what_steers_the_clock_needs_the_cpu_in_time(
    stats: tuple[str, ...], wanted: CheckOutcome
) -> None:
    assert judged("ptp_threads", Case(threads(*stats))).outcome is wanted


def test_interrupt_threads_may_be_above_what_steers_the_clock() -> None:
    """It waits for them: otherwise the remedy of one check would fail the other."""
    both = Case(threads(KTHREADD, IRQ, PTP, thread("loop", 1, 80)))
    assert judged("interrupt_threads", both).outcome is PASS
    alone = Case(threads(KTHREADD, IRQ, PTP))
    assert judged("interrupt_threads", alone).outcome is NONE


WITHOUT = [kind for kind in catalogue().values() if kind.args.get("absent")]
OF_SYSFS = [k.id for k in WITHOUT if k.paths[0].startswith("/sys/") and not k.archs]
OF_PROC = [k.id for k in WITHOUT if k.paths[0].startswith("/proc/sys/")]


@pytest.mark.parametrize("name", OF_SYSFS)
def test_without_sysfs_nothing_is_absent(name: str) -> None:
    hidden = judged(name, Case())
    assert hidden.outcome is UNKNOWN
    assert f"no {CPU}/online either" in hidden.message
    shown = judged(name, Case({f"{CPU}/online": "0-1"}))
    assert shown.outcome is NONE


@pytest.mark.parametrize("name", OF_PROC)
def test_with_the_settings_of_a_kernel_one_of_them_is_absent(name: str) -> None:
    assert judged(name, Case()).outcome is NONE


@pytest.mark.parametrize(
    ("cpuinfo", "wanted"),
    [
        ("vendor_id\t: GenuineIntel\nflags\t: fpu\n", UNKNOWN),
        ("vendor_id\t: GenuineIntel\nflags\t: fpu hypervisor\n", NONE),
        ("vendor_id\t: AuthenticAMD\nflags\t: fpu\n", NONE),
        ("", UNKNOWN),
    ],
)
def test_heat_that_nobody_counts_is_not_heat_that_is_hidden(
    cpuinfo: str, wanted: CheckOutcome
) -> None:
    files = {"/proc/cpuinfo": cpuinfo, f"{CPU}/online": "0-1"}
    assert judged("throttled_by_heat", Case(files)).outcome is wanted


def test_the_new_checks_have_their_cases() -> None:
    assert set(NEW) <= set(CASES)
