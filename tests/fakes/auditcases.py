"""
For every check of a machine: one where it passes, one where it fails, one unseen.

A check that is answered by the configuration alone is not here: tests/unit/
test_audit_kernel.py makes these from its row.
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fakes.audited import (
    BOOTED,
    IRQ,
    KERNEL,
    KTHREADD,
    SELF,
    ZONE,
    Case,
    interrupts,
    limits,
    seen,
    smis,
    stat,
    status,
    thread,
    threads,
    watched,
    zone,
)
from fakes.trees import CPU, Files
from rtscope.machine.audit.context import Observed, Trial
from rtscope.machine.audit.model import Profile
from rtscope.machine.reader import Denied

VERSION = "/proc/sys/kernel/version"
POLICY = f"{CPU}/cpufreq/policy0"
FAIR = "/sys/kernel/debug/sched/fair_server/cpu*/runtime"
NO = Denied("Permission denied")
HEAD = "# Automatically generated file; DO NOT EDIT.\n"
INTEL = "vendor_id\t: GenuineIntel\nflags\t\t: fpu\n"
STATS = "/proc/[0-9]*/task/[0-9]*/stat"
TRACING = "/sys/kernel/tracing"
INSTANCE = f"{TRACING}/instances/foo"
MACHINE = Case()
POLLING = replace(MACHINE, profile=Profile.POLLING)
OLD = replace(MACHINE, release="6.6.1")


@dataclass(frozen=True, slots=True)
class Cases:
    """A good one, a bad one, and one where it must say unknown."""

    good: Case
    bad: Case
    unseen: Case


def _files(good: Files, bad: Files, *, like: Case = MACHINE) -> Cases:
    """Cases in files alone; unseen: all of them are refused."""
    refused = dict.fromkeys({**good, **bad}, NO)
    return Cases(
        replace(like, files=good), replace(like, files=bad), replace(like, also=refused)
    )


def _file(path: str, good: str, bad: str, *, like: Case = MACHINE) -> Cases:
    return _files({path: good}, {path: bad}, like=like)


def _log(line: str) -> Cases:
    return Cases(
        Case(observed=Observed(kernel_log=BOOTED)),
        Case(observed=Observed(kernel_log=f"{BOOTED}[    1.000000] {line}\n")),
        Case(observed=Observed(why_no_log="Operation not permitted")),
    )


def _seen(good: Observed, bad: Observed, *, like: Case = MACHINE) -> Cases:
    return Cases(replace(like, observed=good), replace(like, observed=bad), like)


RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
NET = "/proc/sys/net/core"
EFI = "/sys/firmware/efi/fw_platform_size"
RESCTRL = "/sys/fs/resctrl"
ETH0 = "/sys/class/net/eth0"
RPS = f"{ETH0}/queues/rx-0/rps_cpus"
DYNAMIC = "#1 SMP PREEMPT_DYNAMIC"
KTIMERS = thread("ktimers/1", 1, 1, KERNEL)
L3 = {
    f"{CPU}/online": "0-1",
    **{f"{CPU}/cpu{n}/cache/index3/level": "3" for n in (0, 1)},
    **{f"{CPU}/cpu{n}/cache/index3/id": "0" for n in (0, 1)},
}


def partition(mask: str, cpus: str) -> Files:
    """A group with ways of the cache, beside the default group with the lower four."""
    return {
        f"{RESCTRL}/schemata": "    MB:0=100\n    L3:0=0f\n",
        f"{RESCTRL}/rt/schemata": f"    MB:0=100\n    L3:0={mask}\n",
        f"{RESCTRL}/rt/cpus_list": cpus,
    }


COMM = "/proc/[0-9]*/comm"
RT_GROUPS = gzip.compress(f"{HEAD}CONFIG_RT_GROUP_SCHED=y\n".encode(), mtime=0)
PI = "/sys/class/hwmon/hwmon0"

CASES: Mapping[str, Cases] = {
    "unknown_parameters": _log(
        'Unknown kernel command line parameters "BOOT_IMAGE=/v isolcpu=1", will be'
    ),
    "harmful_parameters": _file("/proc/cmdline", "quiet -- noapic", "quiet noapic"),
    "debugging_parameters": _file("/proc/cmdline", "quiet", "trace_event=sched:*"),
    "isolated_cpus": _file(f"{CPU}/isolated", "1\n", "0\n"),
    "nohz_full": _file(f"{CPU}/nohz_full", "1\n", "(null)\n", like=POLLING),
    "rcu_callbacks": _file("/proc/cmdline", "rcu_nocbs=1", "quiet", like=POLLING),
    "rt_throttling": _file(
        RUNTIME, "-1\n", "950000\n", like=replace(OLD, profile=Profile.POLLING)
    ),
    "rt_safety_net": _file(RUNTIME, "950000\n", "-1\n", like=OLD),
    "deadline_admission": _file(RUNTIME, "950000\n", "-1\n"),
    "fair_server": Cases(
        Case({FAIR.replace("*", "0"): "50000000", FAIR.replace("*", "1"): "0"}),
        Case({FAIR.replace("*", "1"): "50000000"}),
        Case(
            {"/sys/kernel/security/lockdown": "none [integrity] confidentiality"},
            {FAIR: Denied("Operation not permitted")},
        ),
    ),
    "watchdog": _files(
        {"/proc/sys/kernel/watchdog": "1", "/proc/sys/kernel/watchdog_cpumask": "0"},
        {"/proc/sys/kernel/watchdog": "1", "/proc/sys/kernel/watchdog_cpumask": "0-1"},
    ),
    "current_tracer": _file("/sys/kernel/tracing/current_tracer", "nop", "function"),
    "trace_events": _file("/sys/kernel/tracing/events/enable", "0", "X"),
    "stack_tracer": _file("/proc/sys/kernel/stack_tracer_enabled", "0", "1"),
    "logged_delays": _log("sched: RT throttling activated"),
    "clock_doubted": _log("tsc: Marking TSC unstable due to clocksource watchdog"),
    "preempt_rt": Cases(
        Case({VERSION: "#1 SMP PREEMPT_RT"}),
        Case({VERSION: "#1 SMP PREEMPT_DYNAMIC"}),
        Case({"/sys/kernel/realtime": "1"}),
    ),
    "preemption_model": Cases(
        Case({VERSION: "#1 SMP PREEMPT_DYNAMIC", "/proc/cmdline": "preempt=full"}),
        Case({VERSION: "#1 SMP PREEMPT_DYNAMIC", "/proc/cmdline": "preempt=none"}),
        Case({VERSION: "#1 SMP PREEMPT_DYNAMIC", "/proc/cmdline": "quiet"}),
    ),
    "scaling_governor": _file(f"{POLICY}/scaling_governor", "performance", "ondemand"),
    "trace_instances": Cases(
        Case({f"{TRACING}/current_tracer": "nop", f"{INSTANCE}/events/enable": "0"}),
        Case(
            {
                f"{TRACING}/current_tracer": "nop",
                f"{INSTANCE}/current_tracer": "osnoise",
            }
        ),
        Case(),
    ),
    "offline_cpus": Cases(
        Case({f"{CPU}/present": "0-2", f"{CPU}/online": "0-1"}),
        Case({f"{CPU}/present": "0-2", f"{CPU}/online": "0,2"}),
        Case({f"{CPU}/present": "0-2"}),
    ),
    "real_time_threads": Cases(
        Case(
            threads(KTHREADD, thread("migration/0", 1, 99, KERNEL), thread("a", 1, 80))
        ),
        Case(threads(KTHREADD, thread("a) b (", 2, 99))),
        Case({}, {STATS: NO}),
    ),
    "interrupt_threads": Cases(
        Case(threads(KTHREADD, IRQ, thread("loop", 1, 80), thread("dl", 6))),
        Case(threads(KTHREADD, IRQ, thread("loop", 1, 80), thread("late", 2, 50))),
        Case(threads(thread("loop", 1, 80))),
    ),
    "cpu_dma_latency": _seen(
        Observed(dma_latency_us=2_000_000_000),
        Observed(dma_latency_us=0, dma_holders={"/proc/7/fd/3": "cyclictest"}),
    ),
    "smi_count": Cases(
        Case({"/proc/cpuinfo": INTEL}, observed=smis(7, 7)),
        Case({"/proc/cpuinfo": INTEL}, observed=smis(7, 9)),
        Case({"/proc/cpuinfo": INTEL}),
    ),
    "throttled_by_heat": _files(
        {f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "0"},
        {
            f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "0",
            f"{CPU}/cpu1/thermal_throttle/package_throttle_count": "3",
        },
    ),
    "temperature": Cases(
        Case(zone("85000")), Case(zone("85001")), Case({f"{ZONE}/type": "cpu-thermal"})
    ),
    "fixed_frequency": Cases(
        Case({f"{POLICY}/scaling_min_freq": "9", f"{POLICY}/scaling_max_freq": "9"}),
        Case({f"{POLICY}/scaling_min_freq": "8", f"{POLICY}/scaling_max_freq": "9"}),
        Case({f"{POLICY}/scaling_min_freq": "8"}),
    ),
    "turbo": _file(f"{CPU}/intel_pstate/no_turbo", "1", "0"),
    "energy_preference": _file(
        f"{POLICY}/energy_performance_preference", "performance", "balance_power"
    ),
    "idle_states": _files(
        {
            f"{CPU}/cpu0/cpuidle/state3/latency": "800",
            f"{CPU}/cpu1/cpuidle/state3/latency": "800",
            f"{CPU}/cpu1/cpuidle/state3/disable": "1",
        },
        {
            f"{CPU}/cpu1/cpuidle/state3/latency": "800",
            f"{CPU}/cpu1/cpuidle/state3/disable": "0",
        },
    ),
    "cooling": Cases(
        Case(
            {
                "/sys/class/thermal/cooling_device0/type": "Processor",
                "/sys/class/thermal/cooling_device0/cur_state": "0",
                "/sys/class/thermal/cooling_device1/type": "Fan",
                "/sys/class/thermal/cooling_device1/cur_state": "3",
            }
        ),
        Case(
            {
                "/sys/class/thermal/cooling_device0/type": "thermal-cpufreq-0",
                "/sys/class/thermal/cooling_device0/cur_state": "2",
            }
        ),
        Case({"/sys/class/thermal/cooling_device0/type": "Processor"}),
    ),
    "smt": _file(f"{CPU}/smt/active", "0", "1"),
    "private_cache": Cases(
        Case(
            {
                f"{CPU}/cpu1/cache/index2/level": "2",
                f"{CPU}/cpu1/cache/index2/shared_cpu_list": "1",
            }
        ),
        Case(
            {
                f"{CPU}/cpu1/cache/index2/level": "2",
                f"{CPU}/cpu1/cache/index2/shared_cpu_list": "0-1",
            }
        ),
        Case(),
    ),
    "housekeeping": Cases(
        Case({f"{CPU}/online": "0-1"}),
        Case({f"{CPU}/online": "0-1"}, cpus=(0,)),
        Case(),
    ),
    "transparent_hugepages": _file(
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never",
        "[always] madvise never",
    ),
    "ksm": _file("/sys/kernel/mm/ksm/run", "2", "1"),
    "swap": _file(
        "/proc/swaps",
        "Filename\tType\n",
        "Filename\tType\n/dev/sda2 partition 999 0 -2\n",
    ),
    "numa_balancing": _file("/proc/sys/kernel/numa_balancing", "0", "1"),
    "memory_statistics": _file("/proc/sys/vm/stat_interval", "10", "1"),
    "timer_migration": _file("/proc/sys/kernel/timer_migration", "0", "1"),
    "console_level": _file("/proc/sys/kernel/printk", "4\t4\t1\t7", "7\t4\t1\t7"),
    "sched_ext": _file("/sys/kernel/sched_ext/state", "disabled", "enabled"),
    "pcie_links": _file(
        "/sys/module/pcie_aspm/parameters/policy",
        "default [performance] powersave powersupersave",
        "[default] performance powersave powersupersave",
    ),
    "idle_polling": _file("/proc/cmdline", "quiet idle=halt", "quiet idle=poll"),
    "rcu_grace_periods": _file("/sys/kernel/rcu_normal", "1", "0"),
    "packet_steering": _file(RPS, "00000001", "3"),
    "cpu_partitions": _file(
        "/sys/fs/cgroup/rt/cpuset.cpus.partition",
        "isolated",
        "isolated invalid (Cpu list in cpuset.cpus not exclusive)",
    ),
    "background_compaction": _file("/proc/sys/vm/compaction_proactiveness", "0", "20"),
    "split_locks": _log("x86/split lock detection: #AC: a/7 took a split_lock trap at"),
    "skewed_ticks": _file("/proc/cmdline", "skew_tick=0 skew_tick=1", "skew_tick=0"),
    "threaded_interrupts": _files(
        {VERSION: DYNAMIC, "/proc/cmdline": "quiet threadirqs"},
        {VERSION: DYNAMIC, "/proc/cmdline": "quiet -- threadirqs"},
    ),
    "deferred_polls": _files(
        {f"{ETH0}/gro_flush_timeout": "0"}, {f"{ETH0}/gro_flush_timeout": "20000"}
    ),
    "threaded_polls": _files({f"{ETH0}/threaded": "0"}, {f"{ETH0}/threaded": "1"}),
    "busy_polling": _files(
        {f"{NET}/busy_poll": "0", f"{NET}/busy_read": "0"},
        {f"{NET}/busy_poll": "0", f"{NET}/busy_read": "50"},
    ),
    "interrupt_coalescing": _seen(
        Observed(coalescing={"eth0": {"rx-usecs": 0, "adaptive-rx": 0}}),
        Observed(coalescing={"eth0": {"rx-usecs": 0, "adaptive-rx": 1}}),
    ),
    "mitigations": _file(
        f"{CPU}/vulnerabilities/meltdown", "Not affected", "Mitigation: PTI"
    ),
    "late_microcode": _log(
        "microcode: load: updated on 4 primary CPUs with 4 siblings"
    ),
    "efi_runtime": Cases(
        Case({EFI: "64", "/proc/cmdline": "quiet efi=noruntime"}),
        Case({EFI: "64", "/proc/cmdline": "quiet efi=debug,runtime"}),
        Case({"/proc/cmdline": "quiet"}),
    ),
    "kernel_threads": Cases(
        Case(threads(KTHREADD, KTIMERS, thread("loop", 1, 80), thread("ptp4l", 1, 1))),
        Case(threads(KTHREADD, KTIMERS, thread("loop", 1, 1))),
        Case(threads(thread("loop", 1, 80))),
    ),
    "ptp_threads": Cases(
        Case(threads(KTHREADD, thread("ptp4l", 1, 10), thread("loop", 1, 80))),
        Case(threads(KTHREADD, thread("phc2sys"), thread("loop", 1, 80))),
        Case(threads(thread("loop", 1, 80))),
    ),
    "cache_partition": Cases(
        Case({**L3, **partition("f0", "1"), f"{RESCTRL}/cpus_list": "0"}),
        Case({**L3, **partition("18", "1"), f"{RESCTRL}/cpus_list": "0"}),
        Case({"/proc/cpuinfo": "flags\t\t: fpu cat_l3 tsc\n"}),
    ),
    "locked_memory_moves": _file("/proc/sys/vm/compact_unevictable_allowed", "0", "1"),
    "irq_affinity": Cases(
        Case(
            {
                "/proc/interrupts": interrupts(0),
                "/proc/irq/24/effective_affinity_list": "0",
                "/proc/irq/24/smp_affinity_list": "0-1",
                "/proc/irq/9/smp_affinity_list": "0-1",
            }
        ),
        Case(
            {
                "/proc/interrupts": interrupts(0),
                "/proc/irq/24/smp_affinity_list": "0-1",
            }
        ),
        Case({"/proc/interrupts": interrupts(0)}),
    ),
    "default_irq_affinity": _file("/proc/irq/default_smp_affinity", "1", "3"),
    "workqueues": _file("/sys/devices/virtual/workqueue/cpumask", "00000001", "3"),
    "observed_device_interrupts": _seen(seen(tick=1000), seen(device=1)),
    "observed_ticks": _seen(seen(tick=1), seen(tick=250), like=POLLING),
    "observed_ipis": _seen(seen(call=2), seen(call=200)),
    "irqbalance": Cases(
        Case(
            {
                "/proc/8/comm": "irqbalance",
                "/etc/default/irqbalance": "#X=1\nIRQBALANCE_BANNED_CPULIST=1-3\n",
            }
        ),
        Case({"/proc/8/comm": "irqbalance"}),
        Case({}, {COMM: NO}),
    ),
    "stray_processes": Cases(
        Case(
            {
                "/proc/2/status": status("kthreadd", "0-1", memory=False),
                "/proc/7/status": status("init", "0"),
                "/proc/8/status": status("loop", "1"),
            }
        ),
        Case({"/proc/7/status": status("init", "0-1")}),
        Case({}, {"/proc/[0-9]*/status": NO}),
    ),
    "clocksource": _file(
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc",
        "hpet",
    ),
    "clock_cost": _seen(
        Observed(clock_cost_ns=60, clock_resolution_ns=1),
        Observed(clock_cost_ns=1500, clock_resolution_ns=1),
    ),
    "lockdown": _file(
        "/sys/kernel/security/lockdown",
        "[none] integrity confidentiality",
        "none [integrity] confidentiality",
    ),
    "bare_metal": _file(
        "/proc/cpuinfo", "flags\t\t: fpu tsc\n", "flags\t\t: fpu hypervisor tsc\n"
    ),
    "steal": _seen(
        watched("/proc/stat", stat(5), stat(5)), watched("/proc/stat", stat(5), stat(6))
    ),
    "undervoltage": Cases(
        Case({f"{PI}/name": "rpi_volt", f"{PI}/in0_lcrit_alarm": "0"}, arch="aarch64"),
        Case({f"{PI}/name": "rpi_volt", f"{PI}/in0_lcrit_alarm": "1"}, arch="aarch64"),
        Case({"/proc/device-tree/model": b"Raspberry Pi 4 Model B\0"}, arch="aarch64"),
    ),
    "riscv_timer": _file(
        "/proc/cpuinfo",
        "isa\t\t: rv64imafdc_zicntr_sstc\n",
        "isa\t\t: rv64imafdc\n",
        like=replace(MACHINE, arch="riscv64"),
    ),
    "realtime_policy": _seen(
        Observed(trial=Trial("FIFO", None)), Observed(trial=Trial("FIFO", 1, "no"))
    ),
    "rtprio_limit": _files(limits(rtprio="99"), limits(rtprio="79")),
    "memlock_limit": _files(limits(), limits(memlock="8388608")),
    "rttime_limit": _files(limits(), limits(rttime="200000")),
    "limits_files": _file(
        "/etc/security/limits.d/rt.conf", "@rt - rtprio 9\n", "@rt - rtpio 9\n"
    ),
    "rtkit": Cases(
        Case({"/proc/7/comm": "sh"}), Case({"/proc/7/comm": "rtkit-daemon"}), Case()
    ),
    "group_budget": Cases(
        Case({"/proc/config.gz": RT_GROUPS, f"{SELF}/cgroup": "0::/\n"}),
        Case(
            {
                "/proc/config.gz": RT_GROUPS,
                f"{SELF}/cgroup": "0::/user.slice/x\n",
                "/sys/fs/cgroup/user.slice/cgroup.controllers": "cpuset cpu io\n",
            }
        ),
        Case({"/proc/config.gz": RT_GROUPS, f"{SELF}/cgroup": "0::/user.slice\n"}),
    ),
    "rt_group_sched": _files(
        {"/proc/config.gz": RT_GROUPS, "/proc/cmdline": "rt_group_sched=0"},
        {"/proc/config.gz": RT_GROUPS, "/proc/cmdline": "quiet"},
    ),
}
