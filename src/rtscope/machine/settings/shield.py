"""
A shield: CPUs that only chosen programs run on, for as long as it is held.

The CPUs become a cpuset partition of cgroup v2; interrupts and unbound workqueues go to
the others. The agent makes each change through its journal, the partition first: where
that is refused, nothing else was changed. All of it is read back, and what stays on the
CPUs is named with the reason.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtscope.host.errors import TargetError, UsageError
from rtscope.machine.audit.context import INTERRUPTS, ONLINE, AuditContext
from rtscope.machine.audit.examine import catalogue
from rtscope.machine.cpulist import format_cpulist, parse_cpulist
from rtscope.machine.facts import cpus_in
from rtscope.machine.reader import text_of
from rtscope.machine.settings.change import HeldSettings, RefusedSetting, hold
from rtscope.machine.settings.remedies import SettingChange, planned_for, undone_by
from rtscope.machine.target import Target
from rtscope.machine.tasks.agentlist import list_threads
from rtscope.machine.tasks.model import Listing, Thread, ThreadKind

ROOT = "/sys/fs/cgroup"
GROUP = f"{ROOT}/rtscope.shield"
"""As in agent/journal/shieldgroup.h."""

CONTROLLERS = f"{ROOT}/cgroup.controllers"
CONTROLLERS_BELOW = f"{ROOT}/cgroup.subtree_control"
PARTITION = f"{GROUP}/cpuset.cpus.partition"
EFFECTIVE = f"{GROUP}/cpuset.cpus.effective"
VERSION_1 = f"{ROOT}/cpuset/cpuset.cpus"

KINDS = ("isolated", "root")

SHIELD, CPUSETS = "shield", "cgroup_cpusets"
"""Knobs of the agent."""

CHECKS = ("irq_affinity", "default_irq_affinity", "workqueues")
"""Whose remedies move the rest away."""

RESCUER = "kworker/R-"

_BOUND = "the kernel binds it to its CPU"
_RESCUER = "rescuer of a workqueue, at work when memory is short; nobody may move it"
_NOT_MOVED = "the kernel did not move it"


@dataclass(frozen=True, slots=True)
class Stays:
    """Something that stays on the CPUs, or may come there, and why."""

    what: str
    """`thread`, `interrupt` or `setting`."""
    name: str
    reason: str
    tid: int | None = None
    cpus: str = ""


@dataclass(frozen=True, slots=True)
class Shield:
    """A shield that is held."""

    cpus: tuple[int, ...]
    partition: str
    """`isolated`, or `root` before Linux 6.1: its CPUs then balance their load."""
    changed: tuple[SettingChange, ...]
    moved: int
    """Threads that were allowed on the CPUs before."""
    stays: tuple[Stays, ...]
    undone_by: str = ""
    """A running service that would move interrupts back."""

    @property
    def cpu_list(self) -> str:
        """Its CPUs as the kernel writes them."""
        return format_cpulist(self.cpus)


def shield_cpus(text: str, option: str) -> tuple[int, ...]:
    """Return the CPUs of an option; UsageError if it is no list of them."""
    try:
        return parse_cpulist(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from error


@contextlib.contextmanager
def shielded(
    target: Target, cpus: tuple[int, ...]
) -> Iterator[tuple[Shield, HeldSettings]]:
    """
    Hold a shield for as long as the block lasts.

    Raises UsageError for CPUs that cannot be shielded, TargetError where there can be
    no shield, a setting does not hold, or one was not put back.
    """
    _refuse(target, cpus)
    kinds = [catalogue()[name] for name in CHECKS]
    context, planned = planned_for(target.reader, kinds, cpus=cpus)
    before = list_threads(target)
    with hold(target, [*_partition(cpus), *planned.changes]) as holding:
        result = holding.result
        for refused in result.refused:
            if refused.change.knob in (SHIELD, CPUSETS):
                raise TargetError(
                    f"{target.name}: no shield of CPU {format_cpulist(cpus)}: "
                    f"{refused.reason}; all settings are restored"
                )
        partition = _read_back(target, cpus, result.applied)
        after = list_threads(target)
        stays = (
            *_threads(after, cpus),
            *_refused(result.refused, context),
            *(Stays("setting", name, why) for name, why in planned.impossible.items()),
        )
        shield = Shield(
            cpus,
            partition,
            changed=tuple(change for change in result.applied if change.changed),
            moved=_moved(before, after, cpus),
            stays=stays,
            undone_by=undone_by(context, planned.changes),
        )
        yield shield, holding


def _partition(cpus: tuple[int, ...]) -> Iterator[SettingChange]:
    yield SettingChange(SHIELD, CPUSETS, 0, CONTROLLERS_BELOW, "", "present")
    yield SettingChange(SHIELD, SHIELD, 0, GROUP, "", format_cpulist(cpus))


def _refuse(target: Target, cpus: tuple[int, ...]) -> None:
    """Raise an error where there can be no shield; nothing was changed yet."""
    files = target.reader.read_many([ONLINE, CONTROLLERS, VERSION_1])
    online = cpus_in(text_of(files[ONLINE]) or "")
    text = format_cpulist(cpus)
    if online and set(cpus) - online:
        raise UsageError(
            f"CPU {format_cpulist(set(cpus) - online)} is not online; this machine has "
            f"{format_cpulist(online)}"
        )
    if online and online <= set(cpus):
        raise UsageError(
            f"CPU {text} is all that this machine has: leave one to the other tasks"
        )
    controllers = text_of(files[CONTROLLERS])
    if controllers is not None and "cpuset" in controllers.split():
        return
    if text_of(files[VERSION_1]) is not None:
        why = (
            f"its CPU sets are those of cgroup v1 ({ROOT}/cpuset), which have no "
            "partitions; boot with systemd.unified_cgroup_hierarchy=1"
        )
    elif controllers is None:
        why = f"no cgroup v2 is mounted at {ROOT}"
    else:
        why = f"its cgroup v2 has no CPU sets ({CONTROLLERS}): CONFIG_CPUSETS"
    raise TargetError(
        f"{target.name}: no shield of CPU {text}: {why}; or set the CPUs apart at "
        f"boot: isolcpus={text} nohz_full={text}"
    )


def _read_back(
    target: Target, cpus: tuple[int, ...], applied: Sequence[SettingChange]
) -> str:
    """Return the kind of the partition; TargetError for what is not as it was set."""
    settings = {c.path: c.value for c in applied if c.knob not in (SHIELD, CPUSETS)}
    files = target.reader.read_many([PARTITION, EFFECTIVE, *settings])
    now = {path: text_of(content) for path, content in files.items()}
    wanted = {EFFECTIVE: format_cpulist(cpus), **settings}
    wrong = [path for path, value in wanted.items() if now.get(path) != value]
    partition = now.get(PARTITION) or "no partition"
    if partition not in KINDS:
        wrong.insert(0, PARTITION)
    if wrong:
        raise TargetError(
            f"{target.name}: {wrong[0]} was set and now shows "
            f"{now.get(wrong[0]) or 'nothing'}: does another program set it? All "
            "settings are restored"
        )
    return partition


def _is_there(thread: Thread, cpus: tuple[int, ...]) -> bool:
    return not thread.cpus.isdisjoint(cpus)


def _moved(before: Listing, after: Listing, cpus: tuple[int, ...]) -> int:
    were = {thread.line.tid for thread in before.threads if _is_there(thread, cpus)}
    return sum(
        thread.line.tid in were and not _is_there(thread, cpus)
        for thread in after.threads
    )


def _threads(listing: Listing, cpus: tuple[int, ...]) -> Iterator[Stays]:
    for thread in listing.threads:
        if not _is_there(thread, cpus):
            continue
        reason = _NOT_MOVED
        if thread.kind is not ThreadKind.USER:
            bound = thread.cpus <= set(cpus)
            rescuer = thread.name.startswith(RESCUER)
            reason = _BOUND if bound else _RESCUER if rescuer else _NOT_MOVED
        yield Stays(
            "thread",
            thread.name,
            reason,
            tid=thread.line.tid,
            cpus=format_cpulist(thread.cpus),
        )


def _refused(
    refused: Sequence[RefusedSetting], context: AuditContext
) -> Iterator[Stays]:
    devices = _devices(context.text(INTERRUPTS) or "")
    for one in refused:
        change = one.change
        if change.knob == "irq_affinity":
            device = devices.get(change.index, "")
            name = f"{change.index} {device}".strip()
            yield Stays("interrupt", name, one.reason, cpus=change.old)
        else:
            yield Stays("setting", change.path, one.reason)


_IRQ = re.compile(r"^ *([0-9]+):(?: +[0-9]+)+ +(.*)$", re.MULTILINE)


def _devices(table: str) -> Mapping[int, str]:
    """Return the last words of each interrupt's row, which name its device."""
    return {int(number): text.split()[-1] for number, text in _IRQ.findall(table)}
