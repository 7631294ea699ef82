"""What a tracer, or rtla, reports of a latency is told in our words, and no more."""

import gzip
from collections.abc import Mapping
from pathlib import Path

import pytest

from rtscope.explain.directory import explained_file
from rtscope.explain.events.explain import traits_told
from rtscope.explain.events.window import WakeupSelector
from rtscope.explain.model import Cause, Confidence, Explanation
from rtscope.explain.words import sentence
from rtscope.host.errors import UsageError


def explained(text: str | bytes, folder: Path) -> tuple[Explanation, ...]:
    file = folder / "trace.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = explained_file(file, WakeupSelector(), bound=False, log=lambda _: None)
    (run,) = found.runs
    return run.explanations


def only(text: str | bytes, folder: Path) -> Explanation:
    (found,) = explained(text, folder)
    return found


def said(found: Explanation) -> str:
    return sentence(found, of=found.head)


# --- irqsoff, preemptoff, preemptirqsoff ------------------------------------------


def off(
    tracer: str = "irqsoff",
    *lines: str,
    us: int = 16,
    cpu: int = 0,
    task: str = "swapper/0-0 (uid:0 nice:0 policy:0 rt_prio:0)",
    places: tuple[str, str] = ("run_timer_softirq", "run_timer_softirq"),
) -> str:
    head = [
        f"# tracer: {tracer}",
        "#",
        f"# {tracer} latency trace v1.1.5 on 6.1.0-18-rt-amd64",
        "# --------------------------------------------------------------------",
        f"# latency: {us} us, #4/4, CPU#{cpu} | (M:preempt_rt VP:0, KP:0, SP:0 HP:0)",
        "#    -----------------",
        f"#    | task: {task}",
        "#    -----------------",
        f"#  => started at: {places[0]}",
        f"#  => ended at:   {places[1]}",
        "#",
    ]
    return "\n".join([*head, *lines, ""])


CALLS = (
    "  <idle>-0       0d.s2    0us+: _raw_spin_lock_irq <-run_timer_softirq",
    "  <idle>-0       0dNs3   12us : _raw_spin_unlock_irq <-run_timer_softirq",
    "  <idle>-0       0dNs3   16us : <stack trace>",
    " => _raw_spin_unlock_irq",
    " => run_timer_softirq",
)


@pytest.mark.parametrize(
    ("tracer", "cause", "told"),
    [
        ("irqsoff", Cause.INTERRUPTS_OFF, "CPU 0 had interrupts off for 16.0 µs"),
        ("preemptoff", Cause.PREEMPTION_OFF, "CPU 0 had preemption off for 16.0 µs"),
        (
            "preemptirqsoff",
            Cause.PREEMPTION_OFF,
            "CPU 0 had interrupts or preemption off for 16.0 µs",
        ),
    ],
)
def test_a_section_is_told_with_its_cause_place_length_and_cpu(
    tracer: str, cause: Cause, told: str, tmp_path: Path
) -> None:
    found = only(off(tracer, *CALLS), tmp_path)

    assert found.dominant is not None
    assert (found.cpu, found.latency_ns) == (0, 16_000)
    assert (found.dominant.cause, found.dominant.duration_ns) == (cause, 16_000)
    assert found.dominant.name == (
        "run_timer_softirq, in swapper/0-0 (not real-time, nice 0)"
    )
    assert said(found).startswith(told)
    assert any("no wake-up" in note for note in found.notes)
    evidence = found.dominant.evidence
    assert "12.0 µs, from _raw_spin_lock_irq" in evidence[1]
    assert evidence[2] == "ended by _raw_spin_unlock_irq < run_timer_softirq"


def test_the_policy_of_the_task_is_that_of_the_head(tmp_path: Path) -> None:
    names: Mapping[str, str] = {
        "irq/30-eth0-312 (uid:0 nice:0 policy:1 rt_prio:50)": "real-time, priority 50",
        "worker 1-99 (uid:0 nice:0 policy:2 rt_prio:7)": "real-time, priority 7",
        "dl-98 (uid:0 nice:0 policy:6 rt_prio:0)": "SCHED_DEADLINE",
        "make-5 (uid:0 nice:-5 policy:0 rt_prio:0)": "not real-time, nice -5",
    }
    for task, words in names.items():
        found = only(off(task=task), tmp_path)
        assert found.dominant is not None
        assert words in found.dominant.name


def test_a_head_without_lines_says_that_no_function_is_known(tmp_path: Path) -> None:
    found = only(off(us=150, cpu=3, places=("foo+0x12/0x40", "bar+0x1/0x2")), tmp_path)

    assert found.dominant is not None
    assert found.dominant.name.startswith("foo, in swapper/0-0")
    assert "from foo to bar" in found.dominant.evidence[0]
    assert any("no functions of this time" in note for note in found.notes)


@pytest.mark.parametrize("how", ["gzip", "CRLF", "UTF-16", "quoted", "journal"])
def test_a_report_is_read_as_people_keep_it(how: str, tmp_path: Path) -> None:
    text = off("irqsoff", *CALLS)
    lines = text.splitlines()
    forms: Mapping[str, bytes] = {
        "gzip": gzip.compress(text.encode()),
        "CRLF": text.replace("\n", "\r\n").encode(),
        "UTF-16": text.encode("utf-16"),
        "quoted": "".join(f"> {line}\n" for line in lines).encode(),
        "journal": "".join(
            f"Nov 27 18:00:01 box rt[8]: {line}\n" for line in lines
        ).encode(),
    }
    found = only(forms[how], tmp_path)

    assert said(found).startswith("CPU 0 had interrupts off for 16.0 µs")


# --- wakeup, wakeup_rt, wakeup_dl -------------------------------------------------


def wakeup(
    *lines: str,
    tracer: str = "wakeup_rt",
    task: str = "cyclictest-2389 (uid:0 nice:0 policy:1 rt_prio:95)",
) -> str:
    return off(tracer, us=150, cpu=3, task=task).split("#  => started")[0] + "\n".join(
        [*lines, ""]
    )


WOKEN = (
    "  {by}       3dN.h4..    0us :   {pid}:{prio}:R   + [003]  2389:  4:R cyclictest"
)
RUNS = (
    "  {by}       3d...2..  150us :   {pid}:{prio}:R ==> [003]  2389:  4:R cyclictest"
)


def waits(*between: str, by: str = "drm-1234", pid: int = 1234, prio: int = 120) -> str:
    return wakeup(
        WOKEN.format(by=by, pid=pid, prio=prio),
        *between,
        RUNS.format(by=by, pid=pid, prio=prio),
    )


def test_a_wait_is_explained_by_the_functions_of_who_ran(tmp_path: Path) -> None:
    found = only(
        waits(
            "  drm-1234       3dNh4..     1us : ttwu_do_activate <-try_to_wake_up",
            "  drm-1234  3.N..1..    4us!: i915_gem_evict <-i915_gem_do_execbuffer",
            "  drm-1234       3.N..1..  144us : _raw_spin_unlock <-i915_gem_evict",
            "  drm-1234       3d...2..  149us : __schedule <-preempt_schedule",
        ),
        tmp_path,
    )

    assert found.dominant is not None
    assert (found.cpu, found.latency_ns) == (3, 150_000)
    assert found.dominant.cause is Cause.PREEMPTION_OFF
    assert found.dominant.name == "drm (not real-time, nice 0), in i915_gem_evict"
    assert any("140.000 us, in i915_gem_evict" in x for x in found.dominant.evidence)


def test_a_wait_behind_a_more_urgent_task_is_told(tmp_path: Path) -> None:
    found = only(waits(by="hog-77", pid=77, prio=1), tmp_path)

    assert found.dominant is not None
    assert found.dominant.cause is Cause.OTHER_TASK
    assert found.dominant.name == "hog (real-time, priority 98)"


def test_a_wait_of_5_us_of_the_kernels_own_example_is_read(tmp_path: Path) -> None:
    text = wakeup(
        "  <idle>-0       3d.h4    0us :      0:120:R   + [003]  2389: 94:R sleep",
        "  <idle>-0   3d.h4    1us+: ttwu_do_activate.constprop.87 <-try_to_wake_up",
        "  <idle>-0       3d..3    5us : __schedule <-schedule",
        "  <idle>-0       3d..3    5us :      0:120:R ==> [003]  2389: 94:R sleep",
        task="sleep-2389 (uid:0 nice:0 policy:1 rt_prio:5)",
    )
    found = only(text, tmp_path)

    assert (found.cpu, found.latency_ns) == (3, 5_000)
    assert sum(s.duration_ns for s in found.segments) == 5_000


def test_an_ordinary_thread_of_the_tracer_wakeup_is_told(tmp_path: Path) -> None:
    text = waits(by="make-77", pid=77).replace("  4:R cyc", "120:R cyc")
    found = only(text.replace("wakeup_rt", "wakeup"), tmp_path)

    assert found.dominant is not None
    assert found.dominant.cause is Cause.NOT_REALTIME


def test_a_head_of_a_wait_without_its_lines_tells_the_length_only(
    tmp_path: Path,
) -> None:
    found = only(wakeup(tracer="wakeup_dl"), tmp_path)

    assert (found.cpu, found.latency_ns) == (3, 150_000)
    assert [s.cause for s in found.segments] == [Cause.UNKNOWN]
    assert "cyclictest-2389 (real-time, priority 95) waited" in found.segments[0].name
    assert found.attributed_share == 0


@pytest.mark.parametrize(
    ("kernel", "release", "preemptible"),
    [
        ("6.1.0-18-rt-amd64 preempt_rt", (6, 1), True),
        ("Linux box 6.12.1 #1 SMP PREEMPT_RT Debian x86_64", (6, 12), True),
        ("Linux box 6.12.1 #1 SMP PREEMPT_DYNAMIC Debian x86_64", (6, 12), None),
        ("3.8.0-test+ server", (3, 8), False),
        ("5.10.0 preempt", (5, 10), True),
        ("", None, None),
    ],
)
def test_a_trace_that_names_its_kernel_tells_what_it_does(
    kernel: str, release: tuple[int, int] | None, preemptible: bool | None
) -> None:
    traits = traits_told(kernel)

    assert (traits.release, traits.preemptible) == (release, preemptible)


# --- rtla timerlat -a -------------------------------------------------------------

STACK = """\
    Blocking thread stack trace
\t\t-> timerlat_irq
\t\t-> __hrtimer_run_queues
\t\t-> hrtimer_interrupt
\t\t-> asm_sysvec_apic_timer_interrupt
\t\t-> _raw_spin_unlock_irqrestore
\t\t-> cgroup_rstat_flush_locked
\t\t-> cgroup_rstat_flush_irqsafe
"""
LATE_INTERRUPT = f"""\
   23 #12320     |       28         0         1        28 |       41         3
rtla timerlat hit stop tracing
## CPU 23 hit stop tracing, analyzing it ##
  IRQ handler delay:                                        27.49 us (65.52 %)
  IRQ latency:                                              28.13 us
  Timerlat IRQ duration:                                     9.59 us (22.85 %)
  Blocking thread:                                           3.79 us (9.03 %)
                         objtool:49256                       3.79 us
{STACK}\
------------------------------------------------------------------------
  Thread latency:                                          41.96 us (100%)

The system has exit from idle latency!
  Max timerlat IRQ latency from idle: 17.48 us in cpu 4
"""
BLOCKED = """\
## CPU 3 hit stop tracing, analyzing it ##
  Previous IRQ interference:\t\t\t up to       2.22 us
  IRQ handler delay:\t\t                \t     1.30 us (0.11 %)
  IRQ latency:\t\t\t\t\t\t     1.90 us
  Timerlat IRQ duration:\t\t\t\t     3.00 us (0.24 %)
  Blocking thread:\t\t\t\t\t  1223.16 us (99.00 %)
\t                  insync:4048\t\t  1223.16 us
    Blocking thread stack trace
\t\t-> timerlat_irq
\t\t-> asm_sysvec_apic_timer_interrupt
\t\t-> insync_lock
\t\t-> do_syscall_64
  IRQ interference\t\t\t\t\t     4.93 us (0.40 %)
\t             local_timer:236\t\t     4.93 us
------------------------------------------------------------------------
  Thread latency:\t\t\t\t\t  1235.47 us (100%)
"""
AT_INTERRUPT = f"""\
## CPU 1 hit stop tracing, analyzing it ##
  IRQ handler delay:                                         0.00 us (0.00 %)
  IRQ latency:                                             709.25 us
  Blocking thread:
                              ip:3567
{STACK}\
------------------------------------------------------------------------
  IRQ latency:                                             709.25 us (100%)
"""
FROM_IDLE = """\
## CPU 0 hit stop tracing, analyzing it ##
  IRQ handler delay:           (exit from idle)             17.48 us (80.00 %)
  IRQ latency:                                              18.00 us
  Timerlat IRQ duration:                                     1.00 us (5.00 %)
  Blocking thread:                                           1.20 us (6.00 %)
                       swapper/0:0                           1.20 us
------------------------------------------------------------------------
  Thread latency:                                           21.85 us (100%)
"""


@pytest.mark.parametrize(
    ("text", "cpu", "latency_ns", "cause", "name", "took_ns"),
    [
        (
            *(LATE_INTERRUPT, 23, 41_960, Cause.INTERRUPTS_OFF),
            *("cgroup_rstat_flush_locked, in objtool", 27_490),
        ),
        (
            *(BLOCKED, 3, 1_235_470, Cause.PREEMPTION_OFF),
            *("insync, in insync_lock", 1_223_160),
        ),
        (
            *(AT_INTERRUPT, 1, 709_250, Cause.INTERRUPTS_OFF),
            *("cgroup_rstat_flush_locked, in ip", 709_250),
        ),
        (FROM_IDLE, 0, 21_850, Cause.IDLE_EXIT, "idle", 17_480),
    ],
)
def test_the_analysis_of_rtla_is_told_with_cause_function_length_and_cpu(
    text: str,
    cpu: int,
    latency_ns: int,
    cause: Cause,
    name: str,
    took_ns: int,
    tmp_path: Path,
) -> None:
    found = only(text, tmp_path)

    assert found.dominant is not None
    assert (found.cpu, found.latency_ns) == (cpu, latency_ns)
    assert (found.dominant.cause, found.dominant.name) == (cause, name)
    assert found.dominant.duration_ns == took_ns
    assert found.residual_ns >= 0
    assert said(found).startswith(f"CPU {cpu}: the ")


def test_what_rtla_lists_below_an_interference_keeps_its_name(tmp_path: Path) -> None:
    found = only(BLOCKED, tmp_path)

    interrupts = [s for s in found.segments if s.cause is Cause.OTHER_INTERRUPT]
    assert [(s.name, s.duration_ns) for s in interrupts] == [("local_timer", 4_930)]
    assert any("by up to 2.22 µs" in note for note in found.notes)


def test_each_cpu_of_an_analysis_is_told_worst_first(tmp_path: Path) -> None:
    found = explained(LATE_INTERRUPT + BLOCKED + AT_INTERRUPT, tmp_path)

    assert [one.cpu for one in found] == [3, 1, 23]


def test_an_analysis_without_a_stack_does_not_name_a_function(tmp_path: Path) -> None:
    found = only(LATE_INTERRUPT.replace(STACK, ""), tmp_path)

    assert found.segments[0].cause is Cause.UNKNOWN
    assert found.segments[0].confidence is Confidence.GUESSED


def test_an_analysis_that_was_cut_before_its_sum_is_of_the_interrupt(
    tmp_path: Path,
) -> None:
    found = only(LATE_INTERRUPT.split("  Timerlat IRQ duration")[0], tmp_path)

    assert found.latency_ns == 28_130
    assert any("stopped at the interrupt" in note for note in found.notes)


# --- timerlat and osnoise ---------------------------------------------------------

TIMERLAT = """\
# tracer: timerlat
#
          <idle>-0       [000] d.h1.  54.029328: #1     context    irq timer_latency   932 ns
           <...>-867     [000] .....  54.029339: #1     context thread timer_latency 11700 ns
         objtool-49256   [001] dnh1.  60.000027: irq_noise: eth0:41 start 59.999990000 duration 12000 ns
         objtool-49256   [001] dnh1.  60.000100: #7     context    irq timer_latency 80000 ns
         objtool-49256   [001] dnh1.  60.000101: <stack trace>
 => timerlat_irq
 => __hrtimer_run_queues
 => hrtimer_interrupt
 => asm_sysvec_apic_timer_interrupt
 => _raw_spin_unlock_irqrestore
 => cgroup_rstat_flush_locked
         objtool-49256   [001] dnh1.  60.000110: irq_noise: local_timer:236 start 60.000098000 duration 11000 ns
         objtool-49256   [001] d.s1.  60.000118: softirq_noise:    RCU:9 start 60.000112000 duration 6000 ns
         objtool-49256   [001] d....  60.000140: thread_noise: objtool:49256 start 59.999000000 duration 1113000 ns
      timerlat/1-870     [001] .....  60.000145: #7     context thread timer_latency 125000 ns
"""  # noqa: E501 -- as the kernel writes it


def test_a_wake_up_of_timerlat_is_explained_by_noise(tmp_path: Path) -> None:
    found = only(TIMERLAT, tmp_path)

    assert [(s.cause, s.name, s.duration_ns) for s in found.segments] == [
        (Cause.EARLIER_INTERRUPT, "eth0 (41)", 7_000),
        (Cause.INTERRUPTS_OFF, "cgroup_rstat_flush_locked", 73_000),
        (Cause.TIMER_INTERRUPT, "local_timer (236)", 10_000),
        (Cause.PREEMPTION_OFF, "objtool", 2_000),
        (Cause.SOFTIRQ, "RCU", 6_000),
        (Cause.PREEMPTION_OFF, "objtool", 22_000),
        (Cause.SCHEDULER, "to the thread", 5_000),
    ]
    assert found.latency_ns == 125_000


def test_a_timerlat_that_stopped_at_its_interrupt_is_explained(tmp_path: Path) -> None:
    lines = TIMERLAT.splitlines()
    found = only("\n".join([*lines[:2], *lines[4:12]]) + "\n", tmp_path)

    assert found.latency_ns == 80_000
    assert found.dominant is not None
    assert found.dominant.cause is Cause.INTERRUPTS_OFF


def test_without_noise_the_time_of_timerlat_stays_unknown(tmp_path: Path) -> None:
    lines = [
        line
        for line in TIMERLAT.splitlines()
        if "_noise" not in line and "=>" not in line and "<stack" not in line
    ]
    found = only("\n".join(lines) + "\n", tmp_path)

    assert [s.cause for s in found.segments] == [Cause.UNKNOWN, Cause.SCHEDULER]
    assert any("no thread_noise" in note for note in found.notes)


def test_a_trace_without_any_wake_up_is_refused_with_what_to_record(
    tmp_path: Path,
) -> None:
    with pytest.raises(UsageError, match="sched_waking"):
        explained("  a-1 [000] d..2. 1.000001: x: y=1\n", tmp_path)


@pytest.mark.parametrize(
    ("selector", "bound"),
    [(WakeupSelector("7"), False), (WakeupSelector(), True)],
)
def test_a_report_has_nothing_to_choose_from(
    selector: WakeupSelector, bound: bool, tmp_path: Path
) -> None:
    (tmp_path / "rtla.txt").write_text(BLOCKED)

    with pytest.raises(UsageError, match="leave out --bound, --thread and --at"):
        explained_file(tmp_path / "rtla.txt", selector, bound=bound, log=lambda _: None)


# --- as the kernel 6.12.117+deb13-rt-amd64 of Debian wrote it -----------------------

REAL_WAKEUP = """\
# tracer: wakeup_rt
#
# wakeup_rt latency trace v1.1.5 on 6.12.117+deb13-rt-amd64
# --------------------------------------------------------------------
# latency: 12121 us, #6/6, CPU#0 | (M:preempt_rt VP:0, KP:0, SP:0 HP:0 #P:1)
#    -----------------
#    | task: init-138 (uid:0 nice:0 policy:1 rt_prio:95)
#    -----------------
#
    init-137       0dNh4.    1us+:      137:120:R   + [000]     138:  4:R init
    init-137       0dNh4.   21us : <stack trace>
 => __ftrace_trace_stack
 => probe_wakeup
 => ttwu_do_activate
 => try_to_wake_up
 => hrtimer_wakeup
 => __hrtimer_run_queues
 => hrtimer_interrupt
 => __sysvec_apic_timer_interrupt
 => sysvec_apic_timer_interrupt
 => asm_sysvec_apic_timer_interrupt
 => update_iter
 => s_next
 => seq_read_iter
 => seq_read
 => proc_reg_read
 => vfs_read
 => ksys_read
 => do_syscall_64
 => entry_SYSCALL_64_after_hwframe
    init-137       0dNh4.   23us+: 0
    init-137       0d..3.   47us : __schedule
    init-137       0d..3.   48us*:      137:120:R ==> [000]     138:  4:R init
    init-137       0d..3. 12114us : <stack trace>
 => __ftrace_trace_stack
 => probe_wakeup_sched_switch
 => __schedule
 => preempt_schedule_irq
 => asm_sysvec_apic_timer_interrupt
 => update_iter
 => s_next
 => seq_read_iter
 => seq_read
 => proc_reg_read
 => vfs_read
 => ksys_read
 => do_syscall_64
 => entry_SYSCALL_64_after_hwframe
"""
REAL_TIMERLAT = """\
# tracer: timerlat
#
            init-1       [000] d.h..    37.517740: #2     context    irq timer_latency    197194 ns
            init-1       [000] dNh1.    37.518639: irq_noise: local_timer:236 start 37.517590349 duration 909382 ns
            init-1       [000] d..3.    37.519108: thread_noise:     init:1 start 37.517691510 duration 534110 ns
      timerlat/0-152     [000] ....1    37.519242: #2     context thread timer_latency   1747146 ns
      timerlat/0-152     [000] d.h21    37.519541: irq_noise: irq_work:246 start 37.519338117 duration 97106 ns
      timerlat/0-152     [000] d.h21    37.536062: irq_noise: local_timer:236 start 37.535832016 duration 217847 ns
      timerlat/0-152     [000] ...11    37.536104: <stack trace>
 => timerlat_irq
 => __hrtimer_run_queues
 => hrtimer_interrupt
 => __sysvec_apic_timer_interrupt
 => sysvec_apic_timer_interrupt
"""  # noqa: E501 -- as the kernel writes it


def test_a_real_text_of_wakeup_rt_is_explained(tmp_path: Path) -> None:
    found = only(REAL_WAKEUP, tmp_path)

    assert [(s.cause, s.duration_ns) for s in found.segments] == [
        (Cause.TIMER_INTERRUPT, 22_000),
        (Cause.SCHEDULER, 25_000),
    ]
    assert any("the head says 12,121 µs" in note for note in found.notes)


def test_a_real_text_of_timerlat_is_explained(tmp_path: Path) -> None:
    found = only(REAL_TIMERLAT, tmp_path)

    assert found.latency_ns == 1_747_146
    assert [(s.cause, s.duration_ns) for s in found.segments] == [
        (Cause.UNKNOWN, 197_194),
        (Cause.TIMER_INTERRUPT, 946_952),
        (Cause.PREEMPTION_OFF, 469_000),
        (Cause.UNKNOWN, 134_000),
    ]
