"""What an audit must not be fooled by: hidden files, other spellings, idle CPUs."""

import pytest

from fakes.audited import FAIL, NONE, PASS, UNKNOWN, Case, judged
from rtscope.machine.audit.context import INTERRUPTS, STAT, Observed
from rtscope.machine.audit.model import Profile
from rtscope.machine.reader import Denied

REFUSED = "Operation not permitted"
BOOT = "/boot/config-6.12.1"
CMDLINE = "/proc/cmdline"
HRTIMERS = "CONFIG_HIGH_RES_TIMERS=y\nCONFIG_HZ_PERIODIC=n\n"


def configured(*lines: str) -> dict[str, str]:
    """A whole configuration with these lines."""
    head = "# Automatically generated file; DO NOT EDIT.\nCONFIG_X86_64=y\n"
    return {BOOT: head + "".join(f"{line}\n" for line in lines)}


# --- lockdown: securityfs may not be mounted ----------------------------------------


@pytest.mark.parametrize(
    ("lines", "cmdline", "log", "wanted"),
    [
        (("# CONFIG_SECURITY_LOCKDOWN_LSM is not set",), "quiet", None, NONE),
        (("CONFIG_SECURITY_LOCKDOWN_LSM=y",), "quiet", None, UNKNOWN),
        (("CONFIG_SECURITY_LOCKDOWN_LSM=y",), "lockdown=integrity", None, FAIL),
        (
            (
                "CONFIG_SECURITY_LOCKDOWN_LSM=y",
                "CONFIG_LOCK_DOWN_KERNEL_FORCE_INTEGRITY=y",
            ),
            *("quiet", None, FAIL),
        ),
        (
            ("CONFIG_SECURITY_LOCKDOWN_LSM=y",),
            "quiet",
            "[0.1] Kernel is locked down from EFI Secure Boot mode; see man kernel_l",
            FAIL,
        ),
        (
            ("CONFIG_SECURITY_LOCKDOWN_LSM=y",),
            "quiet",
            "[9.1] Lockdown: python: debugfs access is restricted; see man kernel_l",
            FAIL,
        ),
    ],
)
def test_lockdown_is_found_where_securityfs_is_not_mounted(
    lines: tuple[str, ...], cmdline: str, log: str | None, wanted: object
) -> None:
    observed = Observed(kernel_log=log)
    case = Case({**configured(*lines), CMDLINE: cmdline}, observed=observed)
    assert judged("lockdown", case).outcome is wanted


def test_an_absent_file_proves_nothing_of_lockdown() -> None:
    check = judged("lockdown", Case())
    assert check.outcome is UNKNOWN
    assert "securityfs is not mounted" in check.message


# --- timers and ticks ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("cmdline", "wanted"),
    [
        ("quiet", PASS),
        ("highres=on", PASS),
        ("highres=1", PASS),
        ("highres=off", FAIL),
        ("highres=0", FAIL),
        ("highres=n", FAIL),
        ("highres=no", FAIL),
        ("highres=off highres=on", PASS),
        ("quiet -- highres=off", PASS),
    ],
)
def test_high_resolution_timers_can_be_turned_off_at_boot(
    cmdline: str, wanted: object
) -> None:
    case = Case({**configured(HRTIMERS), CMDLINE: cmdline})
    assert judged("hrtimers", case).outcome is wanted


def test_without_them_in_the_kernel_no_parameter_helps() -> None:
    off = configured("# CONFIG_HIGH_RES_TIMERS is not set")
    case = Case({**off, CMDLINE: "highres=on"})
    assert judged("hrtimers", case).outcome is FAIL


@pytest.mark.parametrize(
    ("lines", "cmdline", "wanted"),
    [
        (("CONFIG_HZ_PERIODIC=y",), "quiet", PASS),
        (("# CONFIG_HZ_PERIODIC is not set",), "quiet", FAIL),
        (("# CONFIG_HZ_PERIODIC is not set",), "nohz=off", PASS),
        (("# CONFIG_HZ_PERIODIC is not set",), "nohz=0", PASS),
        (("# CONFIG_HZ_PERIODIC is not set",), "nohz=on", FAIL),
        (("# CONFIG_HZ_PERIODIC is not set",), "nohz_full=1-3", NONE),
        (("# CONFIG_HZ_PERIODIC is not set",), "nohz=off nohz_full=1-3", FAIL),
    ],
)
def test_the_tick_goes_on_as_the_remedy_says(
    lines: tuple[str, ...], cmdline: str, wanted: object
) -> None:
    case = Case({**configured(*lines), CMDLINE: cmdline})
    assert judged("tick_mode", case).outcome is wanted


def ticks(busy: int, idle: int) -> Observed:
    """A window of 1 s in which CPU 1 was so busy (in hundredths of a second)."""
    table = "           CPU0       CPU1\n LOC:  {0}  {0}  Local timer interrupts\n"
    stat = "cpu0 0 0 0 0 0 0 0 0\ncpu1 {} 0 0 {} 0 0 0 0\n"
    return Observed(
        window_ns=10**9,
        before={INTERRUPTS: table.format(0), STAT: stat.format(0, 0)},
        after={INTERRUPTS: table.format(1), STAT: stat.format(busy, idle)},
    )


def test_no_tick_of_an_idle_cpu_shows_nothing() -> None:
    idle = Case(observed=ticks(0, 100), profile=Profile.POLLING)
    check = judged("observed_ticks", idle)
    assert check.outcome is UNKNOWN
    assert "CPU 1 was idle" in check.message
    busy = Case(observed=ticks(95, 5), profile=Profile.POLLING)
    assert judged("observed_ticks", busy).outcome is PASS


# --- throttling since 6.12, and a fair server that root may not see ------------------

RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"


@pytest.mark.parametrize(
    ("release", "lines", "runtime", "wanted"),
    [
        ("6.11.0", (), "950000", FAIL),
        ("6.11.0", (), "-1", PASS),
        ("6.12.1", ("# CONFIG_RT_GROUP_SCHED is not set",), "950000", NONE),
        ("6.12.1", ("CONFIG_RT_GROUP_SCHED=y",), "950000", FAIL),
        ("6.12.1", ("CONFIG_RT_GROUP_SCHED=y",), "-1", PASS),
    ],
)
def test_since_6_12_only_kernels_with_budgets_of_groups_throttle(
    release: str, lines: tuple[str, ...], runtime: str, wanted: object
) -> None:
    files = {**configured(*lines), RUNTIME: runtime}
    if release != "6.12.1":
        files = {RUNTIME: runtime}
    case = Case(files, release=release, profile=Profile.POLLING)
    assert judged("rt_throttling", case).outcome is wanted


def test_throttling_is_unknown_where_the_configuration_is() -> None:
    case = Case({RUNTIME: "950000"}, profile=Profile.POLLING)
    assert judged("rt_throttling", case).outcome is UNKNOWN


def test_what_even_root_may_not_read_is_not_said_to_need_root() -> None:
    server = "/sys/kernel/debug/sched/fair_server/cpu1/runtime"
    even_root = judged("fair_server", Case(also={server: Denied(REFUSED)}))
    assert even_root.outcome is UNKNOWN
    assert "refuses it even to root" in even_root.message
    assert "run as root" not in even_root.message
    user = judged("fair_server", Case(also={server: Denied("Permission denied")}))
    assert "run as root" in user.message


# --- checks of lists ------------------------------------------------------------------


@pytest.mark.parametrize(
    "option", ["DEBUG_PLIST", "DEBUG_LIST", "DEBUG_SG", "DEBUG_NOTIFIERS"]
)
def test_the_checks_that_the_reason_speaks_of_are_the_ones_looked_for(
    option: str,
) -> None:
    assert (
        judged("list_debugging", Case(configured(f"CONFIG_{option}=y"))).outcome is FAIL
    )
    assert judged("list_debugging", Case(configured())).outcome is PASS


# --- values of the new checks -------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path", "text", "wanted"),
    [
        ("memory_statistics", "/proc/sys/vm/stat_interval", "9", FAIL),
        ("memory_statistics", "/proc/sys/vm/stat_interval", "120", PASS),
        ("console_level", "/proc/sys/kernel/printk", "3 4 1 7", PASS),
        ("console_level", "/proc/sys/kernel/printk", "10 4 1 7", FAIL),
        ("console_level", "/proc/sys/kernel/printk", "15\t4\t1\t7", FAIL),
        ("timer_migration", "/proc/sys/kernel/other", "0", UNKNOWN),
        ("sched_ext", "/sys/kernel/sched_ext/state", "disabling", FAIL),
        ("idle_polling", CMDLINE, "idle=nomwait", PASS),
    ],
)
def test_a_value_is_judged_by_its_meaning(
    name: str, path: str, text: str, wanted: object
) -> None:
    assert judged(name, Case({path: text})).outcome is wanted
