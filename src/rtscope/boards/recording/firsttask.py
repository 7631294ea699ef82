"""
Where a kernel without BTF keeps what is recorded of a program: from its first task.

`init_task` is filled in when the kernel is compiled: with its name, its priorities, the
address of its stack and, several times, its own (init/init_task.c). Each of them stands
beside a member that is looked for (include/linux/sched.h, the same from Linux 6.1 to
6.12). Structures of timers are the same in all these kernels, but for the size of a
lock that PREEMPT_RT makes larger. The plugin proves all of them where they are first
read.
"""

import re
import struct
from collections.abc import Iterator, Mapping

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from rtscope.host.errors import BoardError
from rtscope.machine.kernelconfig import KernelConfig

LARGEST_TASK = 32_768
"""A task has some 10,000 bytes in the kernels of distributions."""

KNOWN = ((6, 1), (6, 12))

_DEBUGGED = ("DEBUG_LOCK_ALLOC", "DEBUG_SPINLOCK")
"""Options of kernels whose locks are larger."""

_WORD = 8
_NAME = b"swapper\0"
_PRIORITIES = struct.pack("<4I", 120, 120, 120, 0)
"""prio, static_prio, normal_prio and rt_priority; on_rq stands before them."""
_ENTITY_ALIGNMENT = 64
_DELAYED_IN_ENTITY = 81
"""sched_delayed in se, which follows the priorities; since 6.12."""

_OF_TIMERS: Mapping[str, int] = {
    **{"last": 16, "mult": 24, "shift": 28, "xtime": 32, "ns": 40},
    **{"expires": 24, "function": 40, "base": 48, "task": 64},
}
_OF_AREAS: Mapping[str, int] = {"area": 0, "area_end": 8}
_OF_LOCKS: Mapping[str, int] = {"mutex": 0, "rwsem": 8}
_OF_LENDING: Mapping[str, int] = {"blocked": 0, "lock": 0, "owner": 24}
"""Nothing in the first task tells where a task has what it waits for: 0."""


def read_first_task(vmlinux: ELFFile, address: int) -> bytes:
    """Return the first task as it was compiled; BoardError if it is not there."""
    try:
        for segment in vmlinux.iter_segments("PT_LOAD"):
            at = address - segment["p_vaddr"]
            if 0 <= at < segment["p_filesz"]:
                content: bytes = segment.data()[at : at + LARGEST_TASK]
                return content
    except ELFError as error:
        raise BoardError(f"the kernel's vmlinux is damaged: {error}") from error
    raise BoardError("the kernel's vmlinux does not have init_task")


def offsets_of_first_task(
    task: bytes, *, address: int, stack: int, release: str, config: KernelConfig
) -> dict[str, int]:
    """
    Return the offsets that the plugin needs, as of BTF; 0: unknown.

    `address` is that of init_task, `stack` that of init_stack. Raises BoardError for a
    kernel of another series, or whose first task has not what is looked for.
    """
    number = re.match(r"(\d+)\.(\d+)", release)
    series = (int(number[1]), int(number[2])) if number else (0, 0)
    if not KNOWN[0] <= series <= KNOWN[1] or any(
        config.is_on(one) for one in _DEBUGGED
    ):
        raise BoardError(
            f"where kernel {release or 'without a release'} keeps its tasks is not "
            "known: build it with CONFIG_DEBUG_INFO_BTF"
        )
    own = struct.pack("<Q", address)
    prio = _first(_places(task, _PRIORITIES, 4), "priorities")
    parents = _first(_parents(task, address, own), "parents")
    rt = config.is_on("PREEMPT_RT")
    pid = parents - (2 if config.is_on("STACKPROTECTOR") else 1) * _WORD
    entity = -(-(prio + len(_PRIORITIES)) // _ENTITY_ALIGNMENT) * _ENTITY_ALIGNMENT
    stack_at = _first(_places(task, struct.pack("<Q", stack), _WORD), "stack")
    return {
        "pid": pid,
        "tgid": pid + 4,
        "comm": _first(_places(task, _NAME, 4), "name"),
        "prio": prio,
        "state": stack_at - _WORD,
        "on_rq": prio - 4,
        "delayed": entity + _DELAYED_IN_ENTITY if series >= (6, 12) else 0,
        **_OF_LENDING,
        **({"mutex": 0, "rwsem": 0} if rt else _OF_LOCKS),
        **_OF_AREAS,
        **_OF_TIMERS,
        "offset": 64 if rt else 56,
        "keeper": 16 if rt else 8,
    }


def _places(task: bytes, wanted: bytes, alignment: int) -> Iterator[int]:
    at = task.find(wanted)
    while at >= 0:
        if at % alignment == 0:
            yield at
        at = task.find(wanted, at + 1)


def _parents(task: bytes, address: int, own: bytes) -> Iterator[int]:
    """Yield where real_parent, parent, children, sibling and group_leader stand."""
    for at in _places(task, 2 * own, _WORD):
        lists = (at + 2 * _WORD, at + 4 * _WORD)
        wanted = [address, address]
        wanted += [address + place for place in lists for _ in range(2)]
        wanted.append(address)
        if task[at : at + len(wanted) * _WORD] == struct.pack("<7Q", *wanted):
            yield at


def _first(places: Iterator[int], what: str) -> int:
    found = next(places, None)
    if found is None:
        raise BoardError(
            f"the kernel's first task does not have its {what} where they are looked "
            "for: build it with CONFIG_DEBUG_INFO_BTF"
        )
    return found
