"""Make the threads of a machine from the lines that its agent wrote."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from rtscope.contract import AgentError, Line
from rtscope.contract.tasks import TaskLine, TasksEnd
from rtscope.cpulist import parse_cpulist
from rtscope.errors import ContractError, TargetError, UsageError
from rtscope.tasks.marks import marked
from rtscope.tasks.model import Irq, Kind, Listing, Surroundings, Thread

_IRQ_NAME = re.compile(r"irq/([0-9]{1,9})-(?:s-)?(.*)", re.DOTALL)
"""As request_threaded_irq() names it; `s-` is the second thread of an interrupt."""


def make_listing(lines: Iterable[Line], around: Surroundings) -> Listing:
    """
    Return the threads by process and number, with their marks.

    Raises TargetError if the agent could not list them, ContractError if the list
    has no end or another number of threads than its end says.
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
    # A user may call a thread irq/9-acpi; the kernel's flag tells.
    irq = irq_of(name, devices) if task.kind == "kernel" else None
    return Thread(
        line=task,
        name=name,
        process=names.get(task.pid, ""),
        kind=Kind.IRQ if irq else Kind(task.kind),
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
    try:
        return frozenset(parse_cpulist(text or ""))
    except UsageError:
        return frozenset()
