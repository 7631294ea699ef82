"""Start a program with a policy, CPUs, limits and locked memory, and become it."""

import getpass
import os
import platform
import pwd
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from rtscope.host import process
from rtscope.host.errors import TargetError, UsageError, no_such, quote
from rtscope.host.units import is_whole, parse_duration
from rtscope.machine.capabilities import CAPABILITIES
from rtscope.machine.cpulist import format_cpulist, parse_cpulist
from rtscope.machine.target import agent_file
from rtscope.machine.target.address import address_of, open_target


class Policy(StrEnum):
    """The policies of sched(7)."""

    FIFO = "fifo"
    RR = "rr"
    OTHER = "other"
    BATCH = "batch"
    IDLE = "idle"
    DEADLINE = "deadline"


FIXED = (Policy.FIFO, Policy.RR)
NICE = (None, Policy.OTHER, Policy.BATCH)
IO_CLASSES = {"realtime": 1, "best-effort": 2, "idle": 3}
"""Of ioprio_set(2)."""

DEFAULT_IO_LEVEL = 4

MOST_NS = 10_000_000_000
"""Of a runtime, deadline or period: more than a kernel admits."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
"""A user over SSH: his name becomes part of a script."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a program is to have; what is None stays as it is."""

    policy: Annotated[Policy | None, typer.Option()] = None
    """Scheduling policy (default: unchanged), e.g. fifo."""
    priority: Annotated[int | None, typer.Option(min=1, max=99)] = None
    """Priority, 1 to 99, policies fifo and rr only, e.g. 80."""
    runtime: str | None = None
    """CPU time in each period, policy deadline only, as RUNTIME/PERIOD or
    RUNTIME/DEADLINE/PERIOD, e.g. 2ms/10ms."""
    nice: Annotated[int | None, typer.Option(min=-20, max=19)] = None
    """Nice value, -20 to 19, policies other and batch only (default: unchanged), e.g.
    -5."""
    reset_on_fork: bool = False
    """Ordinary policy for the threads and processes that it makes; always with
    deadline."""
    cpus: str | None = None
    """CPUs that it may use (default: unchanged), e.g. 3 or 2-3."""
    shield: bool = False
    """These CPUs for the program alone until it ends; needs root and cgroup v2."""
    lock: bool = False
    """Locked memory, before its first instruction, of this program alone: not of
    programs that it starts or becomes."""
    io: str | None = None
    """I/O class and level: realtime:0-7, best-effort:0-7 or idle (default: unchanged),
    e.g. best-effort:0."""
    user: str | None = None
    """User that it becomes, if root types this (default: the same), e.g. robot."""
    capabilities: str | None = None
    """Capabilities that it gets beside those that the rest needs (default: none), e.g.
    sys_nice,ipc_lock."""


def start(
    command: Annotated[
        list[str], typer.Argument(help="Program and its arguments, after --.")
    ],
    request: Request,
    *,
    target: Annotated[
        str,
        typer.Option(
            help="Machine: local, ssh:HOST or lab:PLACE (default: local), e.g. "
            "ssh:board."
        ),
    ] = "local",
    json: Annotated[
        str | None,
        typer.Option(
            help="File or descriptor for what it has, as JSON, before it begins, e.g. "
            "given.json or /dev/fd/3."
        ),
    ] = None,
) -> int:
    """Start a program with a policy, CPUs, limits and locked memory, and become it.

    With --shield it stays beside the program instead, and puts all back at its end.
    Everything is read back from the kernel first; a refusal names its cause and ends
    with status 3. The program has the terminal, signals and exit status from then on.
    The status is 126 if it cannot be executed, and 127 if it is not there.
    """
    if "--" not in sys.argv:
        raise UsageError(
            "before the program write --: rtscope app start --policy fifo --priority "
            f"80 -- {shlex.join(command)}"
        )
    address = address_of(target, boards=True)
    if address.board is not None:
        raise UsageError(
            "--target virtual: a virtual board runs no program beside its measurement; "
            f"to run one there and watch it, type rtscope app check --target {target} "
            f"-- {shlex.join(command)}"
        )
    words = options_of(request)
    if json is not None:
        words += ["--given", json]
    if request.shield and not address.is_here:
        raise UsageError(
            f"--shield is of this machine: hold it there with rtscope tasks --target "
            f"{target} --shield {request.cpus}, and start the program on the machine"
        )
    if not address.is_here:
        # Only a board needs the contract, which takes as long to load as all the rest.
        from rtscope.machine.target.ssh import SshTarget

        with open_target(address) as machine:
            assert isinstance(machine, SshTarget)
            return machine.run_attached(
                lambda agent: _script([agent, "start", *words], request.user, command)
            )
    more, variables = _become(request.user) if request.user is not None else ([], {})
    agent = [str(agent_file(platform.machine())), "start", *words, *more]
    environ = {**os.environ, **variables}
    if request.shield:
        return _start_behind(request, [*agent, "--", *command], environ)
    return process.become([*agent, "--", *command], environ)


def _start_behind(
    request: Request, argv: Sequence[str], environ: Mapping[str, str]
) -> int:
    """Start the program behind a shield, which is held until it ends."""
    # Only a shield needs the contract and the audit.
    from rtscope.cli.shielding import run_behind
    from rtscope.machine.settings.shield import shield_cpus

    cpus = shield_cpus(request.cpus or "", "--cpus")
    with open_target(address_of("local"), may_ask=False) as machine:
        return run_behind(machine, cpus, argv, environ=environ)


def options_of(request: Request) -> list[str]:
    """Return the options of the agent; UsageError for those that do not fit."""
    _refuse_misfits(request)
    values: dict[str, object] = {
        "policy": request.policy and request.policy.value,
        "priority": request.priority,
        "nice": request.nice,
        "cpus": None if request.cpus is None else _cpus(request.cpus),
        "io": None if request.io is None else _io(request.io),
        "capabilities": None
        if request.capabilities is None
        else _bits(request.capabilities),
    }
    if request.runtime is not None:
        values |= zip(_TIMES, _times(request.runtime), strict=True)
    switches = {
        "reset-on-fork": request.reset_on_fork,
        "shield": request.shield,
        "lock-memory": request.lock,
    }
    given = [(name, value) for name, value in values.items() if value is not None]
    return [
        *(word for name, value in given for word in (f"--{name}", str(value))),
        *(f"--{name}" for name, is_on in switches.items() if is_on),
    ]


def _refuse_misfits(request: Request) -> None:
    policy = request.policy
    if policy in FIXED and request.priority is None:
        raise UsageError(
            f"--policy {policy} needs a priority: add --priority 80 (1 to 99)"
        )
    if policy not in FIXED and request.priority is not None:
        raise UsageError(
            "--priority is of the policies fifo and rr: add --policy fifo, or leave it "
            "out"
        )
    if policy is Policy.DEADLINE and request.runtime is None:
        raise UsageError(
            "--policy deadline needs its CPU time in each period: add --runtime "
            "2ms/10ms"
        )
    if policy is not Policy.DEADLINE and request.runtime is not None:
        raise UsageError("--runtime is of the policy deadline: add --policy deadline")
    if request.shield and request.cpus is None:
        raise UsageError("--shield is of CPUs: add --cpus 3")
    if policy not in NICE and request.nice is not None:
        raise UsageError(
            f"--nice: {policy} has no nice value: leave it out, or take --policy other"
        )


_TIMES = ("runtime-ns", "deadline-ns", "period-ns")


def _times(text: str) -> tuple[int, int, int]:
    """Return runtime, deadline and period in ns."""
    parts = text.split("/")
    if len(parts) not in (2, 3):
        raise UsageError(
            f"--runtime {quote(text)}: write RUNTIME/PERIOD or "
            "RUNTIME/DEADLINE/PERIOD, e.g. 2ms/10ms"
        )
    try:
        times = [parse_duration(part) for part in parts]
    except UsageError as error:
        raise UsageError(f"--runtime: {error}") from error
    runtime, deadline, period = (
        times[0],
        times[-2] if times[2:] else times[-1],
        times[-1],
    )
    if not 1024 <= runtime <= deadline <= period <= MOST_NS:
        raise UsageError(
            f"--runtime {quote(text)}: the kernel wants 1024 ns <= runtime <= deadline "
            "<= period, and no period beyond 4 s: write e.g. 2ms/10ms"
        )
    return runtime, deadline, period


MOST_CPUS = 1024
"""Of the agent: agent/machine/cpulist.h."""


def _cpus(text: str) -> str:
    try:
        cpus = parse_cpulist(text)
    except UsageError as error:
        raise UsageError(f"--cpus: {error}") from error
    if cpus[-1] >= MOST_CPUS:
        raise UsageError(f"--cpus: CPU {cpus[-1]}: name CPUs below {MOST_CPUS:,}")
    return format_cpulist(cpus)


def _io(text: str) -> str:
    name, colon, level = text.partition(":")
    if name not in IO_CLASSES or (colon and (name == "idle" or level not in _LEVELS)):
        raise UsageError(
            f"--io {quote(text)}: write realtime:0 to realtime:7, best-effort:0 to "
            "best-effort:7, or idle"
        )
    default = 0 if name == "idle" else DEFAULT_IO_LEVEL
    return f"{IO_CLASSES[name]}:{level or default}"


_LEVELS = tuple("01234567")


def _bits(text: str) -> str:
    """Return a bit for each capability of a list of their names, as hex digits."""
    bits = 0
    for word in text.split(","):
        name = word.strip().upper().removeprefix("CAP_")
        if name not in CAPABILITIES:
            known = [f"{one.lower()}" for one in CAPABILITIES]
            raise UsageError(f"--capabilities: {no_such('capability', word, known)}")
        bits |= 1 << CAPABILITIES.index(name)
    return f"{bits:x}"


# --- as another user ------------------------------------------------------------------


def _become(name: str) -> tuple[list[str], Mapping[str, str]]:
    """Return options of the agent, and variables of the environment, for a user."""
    try:
        user = pwd.getpwuid(int(name)) if is_whole(name) else pwd.getpwnam(name)
    except (KeyError, OverflowError) as error:
        raise UsageError(
            f"--user {quote(name)}: this machine has no such user; see them: getent "
            "passwd"
        ) from error
    if os.geteuid() not in (0, user.pw_uid):
        me = str(os.geteuid())
        with suppress(KeyError, OSError):
            me = getpass.getuser()
        raise TargetError(
            f"--user {name}: {me} may not start programs as another user; type: sudo "
            f"rtscope app start --user {name} ..."
        )
    if os.geteuid() == user.pw_uid:
        return [], {}
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    words = ["--user", f"{user.pw_uid}:{user.pw_gid}"]
    variables = {"USER": user.pw_name, "LOGNAME": user.pw_name, "HOME": user.pw_dir}
    return [*words, "--groups", ",".join(map(str, groups))], variables


def _script(words: Sequence[str], user: str | None, command: Sequence[str]) -> str:
    """Return the script with which the shell of a board becomes the program."""
    tail = shlex.join(["--", *command])
    if user is None:
        return f"exec {shlex.join(words)} {tail}"
    if not _NAME.fullmatch(user):
        raise UsageError(f"--user {quote(user)}: write the name of a user of the board")
    return (
        f"u=$(id -u {user}) && g=$(id -g {user}) && G=$(id -G {user} | tr ' ' ,) || "
        f"exit 2; USER={user} LOGNAME={user} HOME=$(eval echo ~{user}); "
        f'export USER LOGNAME HOME; exec {shlex.join(words)} --user "$u:$g" '
        f'--groups "$G" {tail}'
    )
