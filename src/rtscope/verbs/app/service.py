"""
The unit of systemd that a running program needs: each line with its reason.

It asks for what the program had when it was seen, once. Where systemd has no setting,
or the value would hurt a real-time program, there is a remark in its place.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from rtscope.contract import FIXED_PRIORITY
from rtscope.host.escape import printable
from rtscope.host.files.systemdunit import (
    NO_FILE_OF_SYSTEMD,
    unit_argument,
    unit_character,
    unit_directory,
    unit_path,
)
from rtscope.host.units import is_whole
from rtscope.machine.cpulist import format_cpulist
from rtscope.machine.tasks.model import Thread
from rtscope.verbs.app.running import DELETED, START_MARK, RunningProgram

SYS_NICE = "CAP_SYS_NICE"
DEFAULT_UMASK = "0022"
DEFAULT_SLACK_NS = 50_000
"""Of the kernel: init/init_task.c."""

ENVIRONMENT = (
    *("LD_BIND_NOW", "LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES"),
    *("MALLOC_ARENA_MAX", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_"),
    *("MALLOC_TOP_PAD_", "MALLOC_MMAP_THRESHOLD_"),
)
"""Variables that change how a program is loaded or how it allocates memory."""

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,30}")
"""Names that every systemd accepts (its "strict mode")."""

_OCTAL = re.compile(r"0[0-7]{3}")


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the unit; without a key a remark: why a setting is not there."""

    why: str
    key: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """A unit to be written."""

    program: RunningProgram
    settings: tuple[Setting, ...]
    """Of [Service]."""
    general: tuple[Setting, ...]
    """Of [Unit]."""
    install: tuple[Setting, ...]
    """Of [Install]."""
    unknown: tuple[str, ...]
    """What could not be known from outside, a sentence each."""


def service_of(program: RunningProgram, *, starter: Sequence[str] = ()) -> Service:
    """
    Return the unit of a program that runs.

    `starter`: the command rtscope on its machine, for what systemd cannot give.
    """
    settings = (
        *_command(program, starter),
        *_user(program),
        *_policy(program),
        *_cpus(program),
        *_limits(program),
        *_rights(program),
        *_surroundings(program),
        *_devices(program),
    )
    described = program.name.strip()
    if described.endswith("\\"):  # at the end of a line it would continue it
        described += f" (process {program.pid})"
    description = printable(described).replace("%", "%%")
    return Service(
        program,
        settings,
        (Setting("", "Description", description),),
        (
            Setting(
                "systemctl enable starts it at boot.", "WantedBy", "multi-user.target"
            ),
        ),
        tuple(_unknown(program)),
    )


# --- what is started, and as whom -----------------------------------------------


def _command(program: RunningProgram, starter: Sequence[str]) -> Iterator[Setting]:
    yield Setting(
        "A policy, CPU or limit that cannot be had fails the start of the unit.",
        "Type",
        "exec",
    )
    path = (program.executable or "").removesuffix(DELETED)
    if not path or not program.argv:
        yield Setting("No ExecStart=: its command could not be read. Add it.")
        return
    first, *others = program.argv
    why = "Its program and arguments, as /proc/PID/cmdline has them."
    # In the path systemd expands % alone, in the name passed on $ as well.
    words = [unit_path(path)]
    if NO_FILE_OF_SYSTEMD.search(path):
        why += " systemd takes no file with such characters in its name: a shell does."
        words = ["/bin/sh", "-c", unit_argument('exec "$0" "$@"'), unit_argument(path)]
    elif "$" in path or not _is_name_of(path, first):
        why += " After @: the file, then the name that the program was started by."
        words = [f"@{words[0]}", unit_argument(first)]
    command = " ".join([*words, *map(unit_argument, others)])
    given = _given_by_start(program)
    if starter and given:
        why = "systemd gives no SCHED_DEADLINE and no locked memory: rtscope does."
        file, *more = starter
        rest = (*more, "app", "start", *given, "--", path, *others)
        command = " ".join([unit_path(file), *map(unit_argument, rest)])
    yield Setting(why, "ExecStart", command)
    yield from _directory(program.directory)


def _given_by_start(program: RunningProgram) -> list[str]:
    """Return the options of `app start` for what it has and no unit can give."""
    words = ["--lock"] if program.locked_at_start else []
    deadline = program.first.line.deadline
    if program.first.line.policy == "deadline" and deadline is not None:
        times = (deadline.runtime_ns, deadline.deadline_ns, deadline.period_ns)
        words += ["--policy", "deadline", "--runtime"]
        words.append("/".join(f"{ns}ns" for ns in times))
    return words


def _directory(path: str | None) -> Iterator[Setting]:
    if path is None or path == "/":
        return
    if path.endswith(DELETED):
        yield Setting("No WorkingDirectory=: the one it has was deleted.")
    elif (written := unit_directory(path)) is None:
        yield Setting("No WorkingDirectory=: no unit can name the one it has.")
    else:
        yield Setting(
            "Its working directory now: relative paths begin there.",
            "WorkingDirectory",
            written,
        )


def _is_name_of(path: str, first: str) -> bool:
    """Whether a program cannot tell its own path from the name it was started by."""
    relative = not first.startswith("/")
    return first == path or (
        relative and PurePosixPath(first).name == PurePosixPath(path).name
    )


def _user(program: RunningProgram) -> Iterator[Setting]:
    uid = program.uid
    if uid is None:
        yield Setting("No User=: its user is unknown. Without one, it runs as root.")
    elif uid == 0:
        limits = " The limits below are enough for another user too."
        real_time = any(t.real_time for t in program.threads)
        yield Setting("No User=: it ran as root." + (limits if real_time else ""))
    else:
        named = program.user and _USER.fullmatch(program.user)
        yield Setting("It ran as this user.", "User", named[0] if named else f"{uid}")
    yield from _groups(program)
    umask = program.status.get("Umask", DEFAULT_UMASK)
    if umask != DEFAULT_UMASK and _OCTAL.fullmatch(umask):
        yield Setting("As it had it; systemd's default is 0022.", "UMask", umask)


def _groups(program: RunningProgram) -> Iterator[Setting]:
    if program.gid is not None and program.gid != (program.groups.own or 0):
        why = "Its group; the one of its user in /etc/passwd is another."
        yield Setting(why, "Group", _group(program, program.gid))
    if more := program.other_gids - _login_groups(program):
        names = " ".join(_group(program, gid) for gid in sorted(more))
        why = "Groups that it had besides those of its user."
        yield Setting(why, "SupplementaryGroups", names)


def _login_groups(program: RunningProgram) -> frozenset[int]:
    """Return the groups that systemd gives by itself: none without User=."""
    return program.groups.of_user if program.uid else frozenset({0})


def _group(program: RunningProgram, gid: int) -> str:
    name = program.groups.names.get(gid, "")
    return name if _USER.fullmatch(name) else f"{gid}"


# --- how it is scheduled ----------------------------------------------------------


def _policy(program: RunningProgram) -> Iterator[Setting]:
    first = program.first.line
    own = [t for t in program.threads[1:] if t.real_time and not _same(t, program)]
    if first.policy in FIXED_PRIORITY:
        why = "The policy of its first thread; threads that it makes inherit it."
        yield Setting(why, "CPUSchedulingPolicy", first.policy)
        yield Setting(
            "The priority of the same thread.",
            "CPUSchedulingPriority",
            f"{first.priority}",
        )
        if first.reset_on_fork:
            yield Setting(
                "Its first thread has the flag: its children start as ordinary ones.",
                "CPUSchedulingResetOnFork",
                "yes",
            )
    elif first.policy in ("batch", "idle"):
        why = "The policy of its first thread."
        yield Setting(why, "CPUSchedulingPolicy", first.policy)
    elif first.policy == "deadline":
        yield Setting(
            "No CPUSchedulingPolicy=: its first thread has SCHED_DEADLINE, which "
            "systemd cannot set. The program has to, or chrt -d in ExecStart=."
        )
    elif own:
        yield Setting(
            "No CPUSchedulingPolicy=: its first thread is ordinary, and would pass a "
            "policy on to all others."
        )
    if own:
        yield Setting(
            f"Set by the program, or by chrt from outside, which a unit cannot repeat: "
            f"{_names(own)}."
        )
    if first.policy in ("other", "batch") and first.nice:
        yield Setting("Of its first thread.", "Nice", str(first.nice))


def _same(thread: Thread, program: RunningProgram) -> bool:
    first = program.first.line
    line = thread.line
    return (line.policy, line.priority) == (first.policy, first.priority)


def _names(threads: Sequence[Thread]) -> str:
    named = [
        f"{t.name} {t.line.policy}"
        + (f" {t.line.priority}" if t.line.policy in FIXED_PRIORITY else "")
        for t in threads
    ]
    return ", ".join(named)


def _cpus(program: RunningProgram) -> Iterator[Setting]:
    if _deadlines(program):
        yield Setting(
            "No CPUAffinity=: a SCHED_DEADLINE thread needs all CPUs of its root "
            "domain. To keep it to some, make a cpuset partition (AllowedCPUs=)."
        )
        return
    cpus = program.first.cpus
    allowed = cpus if program.online is None else cpus & program.online
    if not allowed:
        yield Setting("No CPUAffinity=: its CPUs could not be read.")
    elif allowed == program.online:
        yield Setting(
            "No CPUAffinity=: its first thread may run on every CPU, "
            f"{format_cpulist(allowed)}."
        )
    else:
        yield Setting(
            "The CPUs of its first thread; threads that it makes inherit them.",
            "CPUAffinity",
            format_cpulist(allowed),
        )
    if own := [t for t in program.threads[1:] if t.cpus != cpus]:
        placed = [f"{t.name} on {format_cpulist(t.cpus) or '?'}" for t in own]
        yield Setting(f"Placed by the program, or from outside: {', '.join(placed)}.")


def _deadlines(program: RunningProgram) -> list[Thread]:
    return [t for t in program.threads if t.line.policy == "deadline"]


# --- what it may do -----------------------------------------------------------------


DEFAULT_FILES = "1024"
"""The soft limit of open files that systemd gives."""


def _limits(program: RunningProgram) -> Iterator[Setting]:
    files = program.limits.get("Max open files", DEFAULT_FILES)
    if files != DEFAULT_FILES:
        hard = program.hard_limits.get("Max open files", files)
        both = files if files == hard else f"{files}:{hard}"
        yield Setting(
            "Its limit of open files, soft and hard; systemd's soft one is 1024.",
            "LimitNOFILE",
            both.replace("unlimited", "infinity"),
        )
    yield from _memory_limit(program)
    fixed = [t for t in program.threads if t.line.policy in FIXED_PRIORITY]
    if fixed:
        top = max(fixed, key=lambda t: t.line.priority)
        yield Setting(
            f"The highest priority that it may ask for: that of {_names([top])}.",
            "LimitRTPRIO",
            str(top.line.priority),
        )
    real_time = any(t.real_time for t in program.threads)
    if program.locked_kb:
        why = (
            f"It had {program.locked_kb:,} KiB of memory locked; behind a limit "
            "mlockall() or a later thread fails."
        )
        yield Setting(why, "LimitMEMLOCK", "infinity")
    elif real_time:
        why = (
            "It had no memory locked, and should have: see RA04 of rtscope app check. "
            "With this, mlockall() works."
        )
        yield Setting(why, "LimitMEMLOCK", "infinity")
    timeout = program.limits.get("Max realtime timeout", "unlimited")
    if real_time and is_whole(timeout):
        yield Setting(
            f"No LimitRTTIME=: it had {timeout} µs. A real-time thread that runs "
            "longer without a sleep gets SIGXCPU, then SIGKILL."
        )
    nice = min(t.line.nice for t in program.threads)
    if nice < 0 and nice < program.first.line.nice:
        why = "The least nice value that its threads have."
        yield Setting(why, "LimitNICE", str(nice))


def _memory_limit(program: RunningProgram) -> Iterator[Setting]:
    if program.memory_max_bytes is not None:
        why = "The limit of its control group: beyond it the kernel ends it."
        yield Setting(why, "MemoryMax", str(program.memory_max_bytes))
        return
    peak = program.status.get("VmHWM", "").removesuffix(" kB").strip()
    if is_whole(peak):
        yield Setting(
            f"No MemoryMax=: it had none. Its peak so far was {int(peak):,} KiB."
        )


def _devices(program: RunningProgram) -> Iterator[Setting]:
    if not program.devices:
        return
    yield Setting(
        "Devices that it had open. With DeviceAllow= systemd refuses all others, but "
        "for those that every unit may use: add those that it opens later."
    )
    for path, access in program.devices.items():
        if path.isprintable() and not set(path) & set(" \\\"'"):
            value = path.replace("%", "%%")
            yield Setting("", "DeviceAllow", f"{value} {access}")
        else:
            yield Setting(f"No DeviceAllow=: no unit can name {path!a}.")


def _rights(program: RunningProgram) -> Iterator[Setting]:
    if program.uid:
        needed = dict.fromkeys(program.capabilities)
        why = "The capabilities that it had in effect."
        if _deadlines(program) and SYS_NICE not in needed:
            needed[SYS_NICE] = None
            why = f"It had {SYS_NICE}, or was given its policy: no limit allows "
            why += "SCHED_DEADLINE."
        if needed:
            yield Setting(why, "AmbientCapabilities", " ".join(needed))
    if program.status.get("NoNewPrivs") == "1":
        why = "It cannot get more rights by executing a program."
        yield Setting(why, "NoNewPrivileges", "yes")


def _surroundings(program: RunningProgram) -> Iterator[Setting]:
    first = program.first.line
    slack = first.timer_slack_ns
    if not program.first.real_time and slack not in (None, 0, DEFAULT_SLACK_NS):
        why = "The timer slack of its first thread; threads that it makes inherit it."
        yield Setting(why, "TimerSlackNSec", f"{slack}ns")
    if program.oom_score_adj:
        why = "As it had it: the kernel ends such programs first when memory is short."
        yield Setting(why, "OOMScoreAdjust", str(program.oom_score_adj))
    for name in ENVIRONMENT:
        if (value := program.environ.get(name)) is not None:
            pair = f"{name}={value}".replace("%", "%%")
            quoted = "".join(map(unit_character, pair))
            why = "It changes how the program is loaded, or how it allocates."
            yield Setting(why, "Environment", f'"{quoted}"')


# --- what is not known --------------------------------------------------------------


def _unknown(program: RunningProgram) -> Iterator[str]:
    for name, why in program.denied.items():
        path = f"/proc/{program.pid}/{name}"
        yield f"What is in {path}: {why}. Try again with sudo."
    if program.executable is not None and program.executable.endswith(DELETED):
        yield "Its file was deleted or replaced while it ran: check ExecStart=."
    if program.directory is None and program.argv:
        yield "Its working directory: add WorkingDirectory= if its paths are relative."
    if program.gid is not None:
        for gid in sorted(
            _login_groups(program) - program.other_gids - {program.gid, 0}
        ):
            yield (
                f"It did not have the group {_group(program, gid)}, which systemd "
                f"gives to {program.user}: no unit can take a group away."
            )
    others = sorted(set(program.environ) - {*ENVIRONMENT, START_MARK})
    if others:
        yield (
            f"Which of its {len(others)} other environment variables it needs: they "
            "may hold secrets and are not here. Add Environment= lines."
        )
    if program.uid == 0:
        yield "Which of root's capabilities it uses."
    if program.devices is None:
        yield "Which devices it has open: add DeviceAllow= to limit them."
    yield "What it will ask for later: threads, policies, memory, files and devices."
    yield "What it needs to be started first: add After= and Requires=."
    if program.contained:
        yield "What its container gives it: paths and users here are those inside."
