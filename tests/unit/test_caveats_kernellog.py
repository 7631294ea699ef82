"""Kernel messages, word for word as kernels write them, and the doubts they raise."""

import pytest

from rtscope.contract import KernelMessage
from rtscope.record.caveats.catalogue import (
    Caveat,
    catalogue,
    caveats_from_log,
    kind_of_message,
    table,
)

WARNING = 4
ERROR = 3


def said(text: str, *, level: int = WARNING) -> KernelMessage:
    return KernelMessage(time_us=1, level=level, text=text)


@pytest.mark.parametrize(
    ("text", "caveat", "title"),
    [
        ("sched: RT throttling activated", "rt_throttled", "RT throttling"),
        (
            "sched: DL replenish lagged too much",
            "kernel_warning",
            "deadline server late",
        ),
        (
            "rcu: INFO: rcu_preempt self-detected stall on CPU",
            "kernel_stall",
            "RCU stall",
        ),
        (
            "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
            "kernel_stall",
            "RCU stall",
        ),
        (
            "INFO: rcu_sched self-detected stall on CPU { 1}  (t=5250 jiffies)",
            "kernel_stall",
            "RCU stall",
        ),
        (
            "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 3-... }",
            "kernel_stall",
            "RCU stall",
        ),
        ("INFO: rcu_tasks detected stalls on tasks:", "kernel_stall", "RCU stall"),
        (
            "rcu: rcu_preempt kthread starved for 5252 jiffies! g1 f0x0",
            "kernel_stall",
            "RCU stall",
        ),
        (
            "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [stress-ng:411]",
            "kernel_stall",
            "lockup",
        ),
        (
            "watchdog: Watchdog detected hard LOCKUP on cpu 3",
            "kernel_stall",
            "lockup",
        ),
        (
            "NMI watchdog: Watchdog detected hard LOCKUP on cpu 27",
            "kernel_stall",
            "lockup",
        ),
        (
            "BUG: workqueue lockup - pool cpus=0 node=0 flags=0 nice=0 stuck for 31s!",
            "kernel_stall",
            "lockup",
        ),
        (
            "INFO: task jbd2/mmcblk0p2-8:90 blocked for more than 120 seconds.",
            "kernel_stall",
            "hung task",
        ),
        (
            "INFO: task dd:456 blocked in I/O wait for more than 122 seconds.",
            "kernel_stall",
            "hung task",
        ),
        (
            "Out of memory: Killed process 611 (stress-ng) total-vm:1048576kB",
            "oom_kill",
            "process killed",
        ),
        (
            "Memory cgroup out of memory: Killed process 611 (stress-ng)",
            "oom_kill",
            "process killed",
        ),
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/",
            "oom_kill",
            "out of memory",
        ),
        (
            "stress-ng invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0",
            "oom_kill",
            "out of memory",
        ),
        (
            "CPU7: Core temperature is above threshold, cpu clock is throttled "
            "(total events = 219)",
            "cpu_throttled",
            "CPU throttled",
        ),
        (
            "CPU0: Package temperature above threshold, cpu clock throttled "
            "(total events = 2)",
            "cpu_throttled",
            "CPU throttled",
        ),
        (
            "CPU1: Package power limit notification (total events = 1)",
            "cpu_throttled",
            "CPU throttled",
        ),
        ("smpboot: CPU 1 is now offline", "cpus_changed", "CPU offline or online"),
        (
            "smpboot: Booting Node 0 Processor 1 APIC 0x1",
            "cpus_changed",
            "CPU offline or online",
        ),
        ("psci: CPU3 killed (polled 0 ms)", "cpus_changed", "CPU offline or online"),
        (
            "CPU3: Booted secondary processor 0x0000000003 [0x410fd083]",
            "cpus_changed",
            "CPU offline or online",
        ),
        ("CPU1: shutdown", "cpus_changed", "CPU offline or online"),
        ("CPU1: off", "cpus_changed", "CPU offline or online"),
        (
            "thermal thermal_zone0: cpu-thermal: critical temperature reached",
            "cpu_throttled",
            "critical temperature",
        ),
        (
            "clocksource: timekeeping watchdog on CPU2: Marking clocksource 'tsc' as "
            "unstable because the skew is too large:",
            "clocksource_changed",
            "clock source changed",
        ),
        (
            "tsc: Marking TSC unstable due to clocksource watchdog",
            "clocksource_changed",
            "clock source changed",
        ),
        (
            "clocksource: Switched to clocksource hpet",
            "clocksource_changed",
            "clock source changed",
        ),
        (
            "clocksource: timekeeping watchdog on CPU1: wd-tsc-wd excessive read-back "
            "delay of 100us vs. limit of 62us",
            "kernel_warning",
            "clock source problem",
        ),
        (
            "systemd-journald[211]: Time jumped backwards, rotating.",
            "clock_stepped",
            "wall clock stepped",
        ),
        (
            "perf: interrupt took too long (2503 > 2500), lowering "
            "kernel.perf_event_max_sample_rate to 79750",
            "kernel_warning",
            "long interrupt",
        ),
        ("hrtimer: interrupt took 23434934 ns", "kernel_warning", "long interrupt"),
        (
            "workqueue: psi_avgs_work hogged CPU for >13333us 8 times, consider "
            "switching to WQ_UNBOUND",
            "kernel_warning",
            "work item hogged a CPU",
        ),
        (
            "NOHZ tick-stop error: local softirq work is pending, handler #08!!!",
            "kernel_warning",
            "softirq pending",
        ),
        (
            "mce: [Hardware Error]: Machine check events logged",
            "kernel_warning",
            "hardware error",
        ),
        (
            "hwmon hwmon1: Undervoltage detected!",
            "kernel_warning",
            "supply voltage too low",
        ),
        (
            "Internal error: Oops: 96000005 [#1] PREEMPT_RT SMP",
            "kernel_warning",
            "oops",
        ),
        (
            "BUG: scheduling while atomic: stress-ng/411/0x00000002",
            "kernel_warning",
            "kernel bug",
        ),
        ("------------[ cut here ]------------", "kernel_warning", "kernel warning"),
        (
            "WARNING: CPU: 5 PID: 912 at kernel/sched/deadline.c:1995 enqueue_dl",
            "kernel_warning",
            "kernel warning",
        ),
    ],
)
def test_messages_of_real_kernels_are_recognized(
    text: str, caveat: str, title: str
) -> None:
    kind = kind_of_message(said(text))

    assert kind is not None
    assert (kind.caveat, kind.title) == (caveat, title)


@pytest.mark.parametrize(
    "text",
    [
        "CPU7: Core temperature/speed normal (total events = 219)",
        "EXT4-fs (sda5): re-mounted. Opts: errors=remount-ro,commit=0",
        "oom_reaper: reaped process 611 (stress-ng), now anon-rss:0kB",
        "rcu: Hierarchical SRCU implementation.",
        "stress-ng[411]: segfault at 0 ip 0000 sp 0000 error 4",
    ],
)
def test_ordinary_messages_raise_nothing(text: str) -> None:
    assert caveats_from_log([said(text)], load="cpu") == ()


def test_an_error_without_a_row_is_a_warning_and_a_warning_without_one_is_not() -> None:
    text = "nvme nvme0: I/O 12 QID 3 timeout, aborting"

    assert caveats_from_log([said(text, level=WARNING)], load="idle") == ()
    assert caveats_from_log([said(text, level=ERROR)], load="idle") == (
        Caveat("kernel_warning", f"other error: 1 message: {text}"),
    )


def test_one_caveat_for_each_id_with_counts_and_first_messages() -> None:
    log = [
        said("INFO: task dd:1 blocked for more than 120 seconds."),
        said("perf: interrupt took too long (2503 > 2500)"),
        said("INFO: task dd:2 blocked for more than 120 seconds."),
        said("BUG: soft lockup - CPU#1 stuck for 22s!"),
    ]

    assert caveats_from_log(log, load="storage") == (
        Caveat(
            "kernel_stall",
            "hung task: 2 messages, the first: INFO: task dd:1 blocked for more than "
            "120 seconds.; lockup: 1 message: BUG: soft lockup - CPU#1 stuck for 22s!",
        ),
        Caveat(
            "kernel_warning",
            "long interrupt: 1 message: perf: interrupt took too long (2503 > 2500)",
        ),
    )


@pytest.mark.parametrize(
    ("load", "prefix"), [("oom", "expected under this load; "), ("memory", "")]
)
def test_a_killed_process_is_expected_under_the_oom_load_only(
    load: str, prefix: str
) -> None:
    killed = said("Out of memory: Killed process 611 (stress-ng)", level=ERROR)

    assert caveats_from_log([killed, killed], load=load) == (
        Caveat(
            "oom_kill",
            f"{prefix}process killed: 2 messages, the first: "
            "Out of memory: Killed process 611 (stress-ng)",
        ),
    )


def test_details_are_bounded_to_the_first_line() -> None:
    long = said("BUG: " + "x" * 10_000 + "\nCall Trace:")
    cut = said("BUG: short\nCall Trace:\n a\n")

    (bounded,) = caveats_from_log([long] * 1_000, load="cpu")
    (first_line,) = caveats_from_log([cut], load="cpu")

    text = "BUG: " + "x" * 234 + "…"
    assert bounded.detail == f"kernel bug: 1000 messages, the first: {text}"
    assert first_line.detail == "kernel bug: 1 message: BUG: short"


def test_only_what_a_kernel_can_write_on_a_line_is_looked_at() -> None:
    assert kind_of_message(said("x" * 1020 + "BUG: late")) is None
    assert kind_of_message(said("user text\nBUG: below")) is None
    assert kind_of_message(said("x" * 1018 + " BUG: late")) is not None


def test_a_silent_kernel_raises_nothing() -> None:
    assert caveats_from_log([], load="idle") == ()


def test_every_row_names_a_caveat_of_the_catalogue() -> None:
    assert {kind.caveat for kind in table()} <= set(catalogue())
