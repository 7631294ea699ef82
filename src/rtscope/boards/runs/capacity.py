"""How many virtual boards this machine can run at once, by its CPUs and free memory."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from rtscope.boards.catalogue import Board
from rtscope.host.errors import BoardError
from rtscope.machine.reader import Reader, read, text_of

MIB = 1 << 20

QEMU_BYTES = 512 * MIB
"""Memory of QEMU itself: 256 MiB of translated code, its own, the recorder."""

_UNLIMITED_BYTES = 1 << 62
"""Version 1 of cgroups writes a number near 2^63 for no limit."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The number of boards to run at once, with a message if memory limits it."""

    boards: int
    message: str = ""


def host_capacity(
    board: Board, *, cpus: int, free_bytes: int | None, jobs: int | None, runs: int
) -> Capacity:
    """
    Return the number of boots of a campaign to run at once.

    One per CPU (each QEMU is one thread), or `jobs`, as far as memory allows; if
    `free_bytes` is None, memory is no limit. Raises BoardError if not even one fits.
    """
    wanted = max(1, min(cpus if jobs is None else jobs, runs))
    if free_bytes is None:
        return Capacity(wanted)
    each_bytes = board.memory_bytes + QEMU_BYTES
    fit = free_bytes // each_bytes
    free = f"{free_bytes // MIB} MiB are free on this machine"
    if fit < 1:
        raise BoardError(
            f"{board.name}: one board takes up to {each_bytes // MIB} MiB "
            f"({board.memory} and QEMU), and {free}; free some memory"
        )
    if fit >= wanted:
        return Capacity(wanted)
    return Capacity(
        fit,
        f"{fit} of {wanted} boards at once: each takes up to {each_bytes // MIB} MiB, "
        f"and {free}",
    )


def free_memory_bytes(reader: Reader) -> int | None:
    """Return the free memory of this machine, or of our cgroups if that is less.

    A cgroup counts its page cache as used, so the result may be too small.
    """
    free = [_meminfo_bytes(reader), *_cgroup_bytes(reader)]
    return min((one for one in free if one is not None), default=None)


def _meminfo_bytes(reader: Reader) -> int | None:
    for line in (text_of(read(reader, "/proc/meminfo")) or "").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _cgroup_bytes(reader: Reader) -> list[int | None]:
    free: list[int | None] = []
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
        free += [_free_below(reader, files, str(p)) for p in (folder, *folder.parents)]
    return free


def _free_below(reader: Reader, files: tuple[str, str, str], folder: str) -> int | None:
    mount, limit_file, used_file = files
    base = f"{mount}{folder}".rstrip("/")
    limit, used = (
        (text_of(read(reader, f"{base}/{name}")) or "").strip()
        for name in (limit_file, used_file)
    )
    if not (limit.isdigit() and used.isdigit()) or int(limit) >= _UNLIMITED_BYTES:
        return None
    return max(0, int(limit) - int(used))
