"""How many boards fit into this machine at once: by its CPUs and its free memory."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from rtscope.board.catalogue import Board
from rtscope.errors import BoardError
from rtscope.machine.reader import Reader, read, text_of

MIB = 1 << 20

QEMU_BYTES = 512 * MIB
"""QEMU besides the guest's memory: 256 MiB of translated code, itself, the recorder."""

_UNLIMITED_BYTES = 1 << 62
"""Version 1 of cgroups writes a number near 2^63 for no limit."""


@dataclass(frozen=True, slots=True)
class HostRoom:
    """What this machine has for boards."""

    cpus: int
    available_bytes: int | None
    """None if it is not known: then it is no bound."""


@dataclass(frozen=True, slots=True)
class AtOnce:
    """How many boards run at once, and what to say about it."""

    boards: int
    said: str = ""


def at_once(room: HostRoom, board: Board, *, asked: int | None, runs: int) -> AtOnce:
    """
    Return how many boots of a campaign run at once.

    As many as there are CPUs, for each QEMU is one thread; `asked` takes their place.
    Raises BoardError if not even one fits into the free memory.
    """
    wanted = max(1, min(room.cpus if asked is None else asked, runs))
    if room.available_bytes is None:
        return AtOnce(wanted)
    each_bytes = board.memory_bytes + QEMU_BYTES
    fit = room.available_bytes // each_bytes
    free = f"{room.available_bytes // MIB} MiB are free on this machine"
    if fit < 1:
        raise BoardError(
            f"{board.name}: one board takes up to {each_bytes // MIB} MiB "
            f"({board.memory} and QEMU), and {free}; free some memory"
        )
    if fit >= wanted:
        return AtOnce(wanted)
    return AtOnce(
        fit,
        f"{fit} of {wanted} boards at once: each takes up to {each_bytes // MIB} MiB, "
        f"and {free}",
    )


def available_bytes(reader: Reader) -> int | None:
    """Return the memory that is free for us: of the machine, or of our cgroups if less.

    Page cache in a cgroup counts as used there, so this is rather too little.
    """
    rooms = [_meminfo_bytes(reader), *_cgroup_rooms(reader)]
    return min((room for room in rooms if room is not None), default=None)


def _meminfo_bytes(reader: Reader) -> int | None:
    for line in (text_of(read(reader, "/proc/meminfo")) or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _cgroup_rooms(reader: Reader) -> list[int | None]:
    rooms: list[int | None] = []
    for line in (text_of(read(reader, "/proc/self/cgroup")) or "").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            files = ("/sys/fs/cgroup", "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            mount = "/sys/fs/cgroup/memory"
            files = (mount, "memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        folder = PurePosixPath(path)
        # Each limit above ours holds too; in a container "/" is its own.
        rooms += [_room_of(reader, files, str(p)) for p in (folder, *folder.parents)]
    return rooms


def _room_of(reader: Reader, files: tuple[str, str, str], folder: str) -> int | None:
    mount, limit_file, used_file = files
    base = f"{mount}{folder}".rstrip("/")
    limit, used = (
        (text_of(read(reader, f"{base}/{name}")) or "").strip()
        for name in (limit_file, used_file)
    )
    if not (limit.isdigit() and used.isdigit()) or int(limit) >= _UNLIMITED_BYTES:
        return None
    return max(0, int(limit) - int(used))
