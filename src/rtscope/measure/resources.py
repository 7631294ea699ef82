"""What a target has free for a run: CPUs to measure, memory and disk for a load."""

from collections.abc import Mapping

from rtscope.contract import AgentError, DiskLine
from rtscope.cpulist import parse_cpulist
from rtscope.errors import TargetError
from rtscope.loads import MemoryRoom, StorageRoom
from rtscope.machine.facts import FactValue, memory_available_bytes
from rtscope.machine.reader import read, text_of
from rtscope.target import Target
from rtscope.target.stream import collect

ANSWER_S = 30.0

# linux/magic.h; the storage load wants to know only what is no disk.
_FILE_SYSTEMS = {
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
    0x794C7630: "overlay",
}


def usable_cpus(target: Target) -> tuple[int, ...]:
    """Return the CPUs that a program on the target may use; TargetError if unknown."""
    status = text_of(read(target.reader, "/proc/self/status")) or ""
    for line in status.splitlines():
        if line.startswith("Cpus_allowed_list:"):
            allowed = parse_cpulist(line.split(":", 1)[1].strip())
            online = text_of(read(target.reader, "/sys/devices/system/cpu/online"))
            if not online:
                return allowed
            there = frozenset(parse_cpulist(online))
            return tuple(cpu for cpu in allowed if cpu in there)
    raise TargetError(f"{target.name}: /proc/self/status does not name its CPUs")


def memory_room(facts: Mapping[str, FactValue]) -> MemoryRoom:
    """Return the free memory; where it is not known, there is none."""
    return MemoryRoom(memory_available_bytes(facts) or 0)


def storage_room(target: Target, directory: str) -> StorageRoom:
    """Look at a directory of the target; TargetError if it is not there."""
    stream = target.start_agent(["disk", "--", directory])
    for line in collect(stream, timeout_s=ANSWER_S):
        if isinstance(line, AgentError):
            raise TargetError(f"{target.name}: {line.message}; {line.remedy}")
        if isinstance(line, DiskLine):
            return StorageRoom(
                directory=directory,
                file_systems=(_FILE_SYSTEMS.get(line.fs_magic, "disk"),),
                free_bytes=line.free_bytes,
                free_inodes=line.free_inodes or None,
            )
    raise TargetError(f"{target.name}: the agent does not say how full {directory} is")
