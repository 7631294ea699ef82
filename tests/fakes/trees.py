"""
Machines as files: trees for `FileReader`, and a reader that answers what it is told.

Each machine is what its own /proc, /sys and /boot would say, as far as facts need it.
"""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from rtscope.machine.reader import Content, Missing

CPU = "/sys/devices/system/cpu"
CLOCK = "/sys/devices/system/clocksource/clocksource0"

Files = Mapping[str, str | bytes]

# From StarFive's verification of the JH-7110 DevKit (its figures 8-4 to 8-8).
STARFIVE_CONFIG = """\
CONFIG_HAVE_PREEMPT_LAZY=y
CONFIG_PREEMPT_LAZY=y
# CONFIG_PREEMPT_NONE is not set
# CONFIG_PREEMPT_VOLUNTARY is not set
# CONFIG_PREEMPT is not set
CONFIG_PREEMPT_RT=y
CONFIG_PREEMPTION=y
CONFIG_DEBUG_PREEMPT=y
CONFIG_HZ_1000=y
CONFIG_HZ=1000
CONFIG_CPU_FREQ_DEFAULT_GOV_PERFORMANCE=y
"""

VISIONFIVE: Files = {
    "/proc/sys/kernel/osrelease": "5.15.0-rt17+\n",
    "/proc/sys/kernel/version": "#5 SMP PREEMPT RT Wed Oct 25 17:51:59 CST 2023\n",
    "/proc/sys/kernel/hostname": "buildroot\n",
    "/proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "/proc/sys/kernel/sched_rt_period_us": "1000000\n",
    "/proc/config.gz": gzip.compress(STARFIVE_CONFIG.encode(), mtime=0),
    "/proc/cmdline": "root=/dev/mmcblk1p4 console=ttyS0,115200 earlycon\n",
    "/proc/cpuinfo": "".join(
        f"processor\t: {cpu}\nhart\t\t: {cpu + 1}\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\n"
        "uarch\t\t: sifive,u74-mc\n\n"
        for cpu in range(4)
    ),
    "/proc/device-tree/model": b"StarFive VisionFive V2\0",
    "/proc/device-tree/compatible": b"starfive,visionfive-v2\0starfive,jh7110\0",
    "/proc/device-tree/cpus/timebase-frequency": (4_000_000).to_bytes(4, "big"),
    "/proc/meminfo": (
        "MemTotal:        8140892 kB\nMemAvailable:    7801234 kB\n"
        "SwapTotal:             0 kB\nSwapFree:              0 kB\n"
    ),
    "/proc/1/cgroup": "0::/\n",
    "/proc/1/comm": "init\n",
    "/proc/2/comm": "kthreadd\n",
    "/proc/uptime": "301.52 1190.10\n",
    "/proc/loadavg": "0.15 0.10 0.04 1/107 321\n",
    "/etc/os-release": 'NAME=Buildroot\nPRETTY_NAME="Buildroot 2021.11"\n',
    f"{CPU}/online": "0-3\n",
    f"{CPU}/possible": "0-3\n",
    f"{CPU}/isolated": "\n",
    **{f"{CPU}/cpu{n}/cpufreq/scaling_governor": "performance\n" for n in range(4)},
    **{f"{CPU}/cpu{n}/cpufreq/scaling_max_freq": "1500000\n" for n in range(4)},
    f"{CLOCK}/current_clocksource": "riscv_clocksource\n",
    f"{CLOCK}/available_clocksource": "riscv_clocksource \n",
    "/sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
    "/sys/class/thermal/thermal_zone0/temp": "54300\n",
}

DEBIAN_RT_RELEASE = "6.12.43+deb13-rt-amd64"

DEBIAN_RT: Files = {
    "/proc/sys/kernel/osrelease": f"{DEBIAN_RT_RELEASE}\n",
    "/proc/sys/kernel/version": "#1 SMP PREEMPT_RT Debian 6.12.43-1 (2025-08-27)\n",
    "/proc/sys/kernel/random/boot_id": "9a2fbb0e-4f5c-4a39-8f1d-1b8a6c1f2e3d\n",
    "/proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "/proc/sys/kernel/sched_rt_period_us": "1000000\n",
    f"/boot/config-{DEBIAN_RT_RELEASE}": (
        "CONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT=y\n# CONFIG_RT_GROUP_SCHED is not set\n"
        'CONFIG_LOCALVERSION="-rt"\n'
    ),
    "/proc/cmdline": "quiet isolcpus=2-3\n",
    "/proc/cpuinfo": (
        "processor\t: 0\nmodel name\t: Intel(R) Core(TM) i5-8500 CPU @ 3.00GHz\n"
        "flags\t\t: fpu vme tsc constant_tsc nonstop_tsc\n\n"
        "processor\t: 1\nmodel name\t: Intel(R) Core(TM) i5-8500 CPU @ 3.00GHz\n"
        "flags\t\t: fpu vme tsc constant_tsc nonstop_tsc\n"
    ),
    "/proc/meminfo": (
        "MemTotal:       16310328 kB\nMemAvailable:   15000000 kB\n"
        "SwapTotal:        999420 kB\nSwapFree:         999000 kB\n"
    ),
    "/proc/1/cgroup": "0::/init.scope\n",
    "/proc/1/environ": b"HOME=/\0init=/sbin/init\0TERM=linux\0",
    "/proc/2/comm": "kthreadd\n",
    "/proc/845/comm": "irqbalance\n",
    f"{CPU}/online": "0-3\n",
    f"{CPU}/isolated": "2-3\n",
    f"{CPU}/nohz_full": "(null)\n",
    f"{CPU}/smt/active": "0\n",
    f"{CPU}/intel_pstate/no_turbo": "0\n",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave\n",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave\n",
    f"{CPU}/cpu2/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpu3/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/vulnerabilities/l1tf": "Mitigation: PTE Inversion\n",
    f"{CPU}/vulnerabilities/srbds": "Not affected\n",
    f"{CLOCK}/current_clocksource": "tsc\n",
    f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm \n",
    "/sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
    "/sys/class/dmi/id/product_name": "OptiPlex 5060\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "/sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
    "/usr/lib/os-release": 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\n',
}

DYNAMIC_CONFIG = """\
CONFIG_PREEMPT_BUILD=y
CONFIG_ARCH_HAS_PREEMPT_LAZY=y
CONFIG_PREEMPT_NONE=y
# CONFIG_PREEMPT_VOLUNTARY is not set
# CONFIG_PREEMPT is not set
# CONFIG_PREEMPT_LAZY is not set
CONFIG_PREEMPT_DYNAMIC=y
CONFIG_RT_GROUP_SCHED=y
# CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED is not set
"""

GUEST: Files = {
    "/proc/sys/kernel/osrelease": "6.18.44\n",
    "/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC\n",
    "/proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "/proc/sys/kernel/sched_rt_period_us": "1000000\n",
    "/proc/config.gz": gzip.compress(DYNAMIC_CONFIG.encode(), mtime=0),
    "/proc/cmdline": "console=ttyS0 quiet -- --preempt=full preempt=full\n",
    "/proc/cpuinfo": "model name\t: AMD EPYC\nflags\t\t: fpu hypervisor lahf_lm\n",
    "/proc/2/comm": "kthreadd\n",
    "/.dockerenv": b"",
    f"{CPU}/online": "0-1\n",
    f"{CLOCK}/current_clocksource": "tsc\n",
    f"{CLOCK}/available_clocksource": "tsc kvm-clock \n",
}

CONTAINER: Files = {
    "/proc/sys/kernel/osrelease": "6.1.0-40-amd64\n",
    "/proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Debian 6.1.153-1\n",
    "/proc/cmdline": "quiet preempt=voluntary\n",
    "/proc/1/comm": "sh\n",
    "/proc/1/cgroup": "0::/\n",
    "/.dockerenv": b"",
}


def write_tree(root: Path, files: Files) -> Path:
    """Write a machine's files below root."""
    for path, content in files.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        raw = content if isinstance(content, bytes) else content.encode()
        place.write_bytes(raw)
    return root


@dataclass(frozen=True, slots=True)
class FakeReader:
    """Answers from a table, and writes down each round trip."""

    contents: Mapping[str, Content]
    trips: list[tuple[str, ...]] = field(default_factory=list)

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        """See `reading.Reader`."""
        self.trips.append(tuple(paths))
        answers: dict[str, Content] = {}
        for path in paths:
            found = {
                name: content
                for name, content in self.contents.items()
                if name == path or PurePosixPath(name).match(path)
            }
            answers |= found or {path: Missing()}
        return answers


def reader_of(files: Files, *, also: Mapping[str, Content] | None = None) -> FakeReader:
    """Make a reader of a machine's files, with further answers."""
    contents: dict[str, Content] = {
        path: content if isinstance(content, bytes) else content.encode()
        for path, content in files.items()
    }
    return FakeReader({**contents, **(also or {})})
