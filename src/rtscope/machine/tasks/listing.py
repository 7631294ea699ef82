"""
Make the threads of a machine from the lines that its agent wrote.

They are checked against settings that are read from the machine. What the list lacks
is noted, with the reason.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from rtscope.contract import AgentError, Line
from rtscope.contract.commands import TaskLine, TasksEnd
from rtscope.host.errors import ContractError, TargetError
from rtscope.machine.facts import cpus_in
from rtscope.machine.reader import Content, Reader, text_of
from rtscope.machine.tasks.marks import marked
from rtscope.machine.tasks.model import Irq, Listing, Surroundings, Thread, ThreadKind

_IRQ_NAME = re.compile(r"irq/([0-9]{1,9})-(?:s-)?(.*)", re.DOTALL)
"""As request_threaded_irq() names it; `s-` is the second thread of an interrupt."""


def make_listing(lines: Iterable[Line], around: Surroundings) -> Listing:
    """
    Return the threads by process and number, with their marks.

    Raises TargetError if the agent could not list them, ContractError if the list
    has no end, or its end has another number of threads.
    """
    tasks: list[TaskLine] = []
    end: TasksEnd | None = None
    for line in lines:
        if isinstance(line, AgentError):
            remedy = f" ({line.remedy})" if line.remedy else ""
            raise TargetError(f"{line.message}{remedy}")
        if isinstance(line, TaskLine):
            tasks.append(line)
        elif isinstance(line, TasksEnd):
            end = line
    if end is None or end.threads != len(tasks):
        raise ContractError("the agent's list of threads is not complete")
    tasks.sort(key=lambda task: (task.pid, task.tid != task.pid, task.tid))
    names = {task.tid: name_of(task) for task in tasks}
    threads = [_thread(task, names, around.irq_devices) for task in tasks]
    return Listing(tuple(marked(threads, around)), end, around)


def name_of(task: TaskLine) -> str:
    """Return its name; a byte that is no UTF-8 is written as `\\xff`."""
    if task.name_hex is None:
        return task.name
    try:
        return bytes.fromhex(task.name_hex).decode("utf-8", "backslashreplace")
    except ValueError as error:
        raise ContractError(f"thread {task.tid}: its name is garbled") from error


def _thread(
    task: TaskLine,
    names: Mapping[int, str],
    devices: Mapping[int, tuple[str, ...]],
) -> Thread:
    name = names[task.tid]
    # A user may call a thread irq/9-acpi; the kernel's flag decides.
    irq = irq_of(name, devices) if task.kind == "kernel" else None
    return Thread(
        line=task,
        name=name,
        process=names.get(task.pid, ""),
        kind=ThreadKind.IRQ if irq else ThreadKind(task.kind),
        irq=irq,
        cpus=_cpus_of(task.cpus),
    )


def irq_of(name: str, devices: Mapping[int, tuple[str, ...]]) -> Irq | None:
    """
    Return the interrupt of a thread with this name; None if it is of none.

    A kernel before 5.17 cuts the name to 15 characters: the device is then the one
    of the interrupt's that begins so.
    """
    match = _IRQ_NAME.fullmatch(name)
    if match is None:
        return None
    number, said = int(match[1]), match[2]
    known = devices.get(number, ())
    whole = [device for device in known if device.startswith(said)]
    return Irq(number, said if said in known or len(whole) != 1 else whole[0])


@lru_cache(maxsize=4096)
def _cpus_of(text: str | None) -> frozenset[int]:
    return cpus_in(text) or frozenset()


ISOLATED_AT_BOOT = "/sys/devices/system/cpu/isolated"
ISOLATED_NOW = "/sys/fs/cgroup/cpuset.cpus.isolated"
"""By cpuset partitions; since Linux 6.7, with cgroup v2."""

IRQ_ACTIONS = "/sys/kernel/irq/*/actions"
SCHED_EXT_STATE = "/sys/kernel/sched_ext/state"
SCHED_EXT_OPS = "/sys/kernel/sched_ext/root/ops"
MOUNTS = "/proc/self/mountinfo"

PATHS = (
    *(ISOLATED_AT_BOOT, ISOLATED_NOW, IRQ_ACTIONS),
    *(SCHED_EXT_STATE, SCHED_EXT_OPS, MOUNTS),
)


def read_surroundings(reader: Reader) -> Surroundings:
    """Read them; TargetError if the machine does not answer."""
    files = reader.read_many(PATHS)
    return Surroundings(
        isolated=_isolated(files),
        irq_devices=irq_devices(files),
        sched_ext=_sched_ext(files),
        hidepid=_hidepid(text_of(files[MOUNTS]) or ""),
    )


def _isolated(files: Mapping[str, Content]) -> frozenset[int] | None:
    texts = [text_of(files[path]) for path in (ISOLATED_AT_BOOT, ISOLATED_NOW)]
    readable = [text for text in texts if text is not None]
    sets = [cpus_in(text) for text in readable if text]
    known = [cpus for cpus in sets if cpus is not None]
    return frozenset().union(*known) if readable and len(known) == len(sets) else None


def irq_devices(files: Mapping[str, Content]) -> Mapping[int, tuple[str, ...]]:
    """Return the devices of each interrupt, as far as IRQ_ACTIONS was read."""
    devices = {}
    for path, content in files.items():
        number = re.fullmatch(r"/sys/kernel/irq/([0-9]{1,9})/actions", path)
        if number and (text := text_of(content)):
            devices[int(number[1])] = tuple(text.split(","))
    return devices


def _sched_ext(files: Mapping[str, Content]) -> str | None:
    if text_of(files[SCHED_EXT_STATE]) != "enabled":
        return None
    return text_of(files[SCHED_EXT_OPS]) or "of an unknown name"


def _hidepid(mounts: str) -> str | None:
    for line in mounts.splitlines():
        words = line.split()
        if len(words) > 4 and words[4] == "/proc":
            match = re.search(r"hidepid=(\w+)", words[-1])
            if match and match[1] not in ("0", "off"):
                return match[1]
    return None


_WORDS = {
    "reset_on_fork": "reset on fork",
    "slice_ns": "slice",
    "util_clamp": "clamps of utilisation",
    "deadline": "deadline parameters",
    "timer_slack_ns": "timer slack",
    "cpus": "allowed CPUs",
    "voluntary_switches": "voluntary switches",
    "involuntary_switches": "involuntary switches",
    "kernel_priority": "effective priority",
}


def notes_of(listing: Listing) -> list[str]:
    """Return a sentence for each thing that is missing or was not checked."""
    return [*_unseen(listing), *_unread(listing), *_unjudged(listing)]


def _unseen(listing: Listing) -> Iterator[str]:
    end = listing.end
    if end.vanished:
        yield f"{end.vanished} ended while they were read and are not shown."
    if end.not_read:
        yield (
            f"{end.not_read} could not be listed: too new, or not readable for this "
            "user (such a process counts once)."
        )
    if end.window_ended:
        yield f"{end.window_ended} ended within the window: their share is not shown."
    if not any(thread.line.kind == "kernel" for thread in listing.threads):
        yield (
            "No kernel thread is visible: /proc shows only the part of this machine "
            "that belongs to a container or to this user."
        )
    if end.uid and listing.around.hidepid:
        yield (
            "The processes of other users may be hidden: /proc is mounted with "
            f"hidepid={listing.around.hidepid}. Run as root to see them."
        )


def _unread(listing: Listing) -> Iterator[str]:
    unread = Counter(
        (key, why) for t in listing.threads for key, why in t.line.unreadable.items()
    )
    for (key, why), count in unread.items():
        remedy = ""
        if key == "timer_slack_ns" and listing.end.uid and "permitted" in why:
            remedy = " Run as root to read that of other users (CAP_SYS_NICE)."
        what = _WORDS.get(key, key)
        yield f"The {what} of {count} could not be read: {why}.{remedy}"


def _unjudged(listing: Listing) -> Iterator[str]:
    users = any(t.kind is ThreadKind.USER and t.real_time for t in listing.threads)
    isolated = listing.around.isolated
    if users and isolated is None:
        yield "The isolated CPUs are unknown: housekeeping CPUs are not marked."
    elif users and not isolated:
        yield "No CPU is isolated: every CPU is a housekeeping CPU, and none is marked."
    if any(not thread.line.cpu_time_exact for thread in listing.threads):
        ms = listing.end.tick_ns // 1_000_000
        yield f"CPU times of this kernel come in steps of {ms} ms."
    if listing.around.sched_ext is not None:
        yield (
            f"A sched_ext scheduler is loaded ({listing.around.sched_ext}): it may "
            "schedule the threads of policy other, batch and idle too."
        )
