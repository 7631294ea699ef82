"""What /proc says of a running program: command, user, rights, limits, threads."""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtscope.host.units import is_whole
from rtscope.machine.capabilities import CAPABILITIES
from rtscope.machine.facts import cpus_in
from rtscope.machine.reader import Content, Denied, text_of
from rtscope.machine.tasks.model import Thread
from rtscope.programs.memorymap import MemoryMap, parse_maps

FILES = (
    *("cmdline", "auxv", "maps", "status", "limits", "environ"),
    *("cgroup", "oom_score_adj"),
)
"""Of /proc/PID."""

PASSWD, GROUP = "/etc/passwd", "/etc/group"
ONLINE = "/sys/devices/system/cpu/online"

START_MARK = "RTSCOPE_START"
"""A variable of the environment: agent/start/start.c writes it."""

_AT_PHDR = 3
"""auxv(5): where the headers of the program lie in its memory, linked in or not."""

DELETED = " (deleted)"
_LIMIT = re.compile(r"(Max [a-z ]+?) {2,}(\S+) +(\S+) *(\S*)")


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of users, by number."""

    names: Mapping[int, str]
    of_user: frozenset[int]
    """Those that a login as the user of the program has."""
    own: int | None
    """The group that /etc/passwd has for that user; None without such a user."""


@dataclass(frozen=True, slots=True)
class RunningProgram:
    """A process as it was seen once; what could not be read is None or empty."""

    pid: int
    name: str
    threads: tuple[Thread, ...]
    """The first one first."""
    argv: tuple[str, ...]
    """Bytes that are no UTF-8 as surrogates."""
    executable: str | None
    directory: str | None
    online: frozenset[int] | None
    user: str | None
    """The name of its real user; None if the machine has none for its number."""
    groups: Groups
    status: Mapping[str, str]
    limits: Mapping[str, str]
    """Soft limits by their names in /proc/PID/limits, in the units of the kernel."""
    hard_limits: Mapping[str, str]
    environ: Mapping[str, str]
    service: str | None
    """The unit of systemd that it runs in."""
    cgroups: tuple[str, ...]
    """Directories that may have the limits of its control group, the first best."""
    oom_score_adj: int
    denied: Mapping[str, str]
    """Files of /proc/PID that could not be read, and why."""
    memory_max_bytes: int | None = None
    """The limit of its control group; None if there is none, or none was seen."""
    devices: Mapping[str, str] | None = None
    """Files in /dev that it has open, each with r, w or rw; None: not known."""

    @property
    def first(self) -> Thread:
        """Its first thread, whose settings a new thread inherits."""
        return self.threads[0]

    @property
    def uid(self) -> int | None:
        """Its real user."""
        uids = self.status.get("Uid", "").split()
        return int(uids[0]) if uids and is_whole(uids[0]) else None

    @property
    def gid(self) -> int | None:
        """Its real group."""
        return next(iter(self._numbers("Gid")), None)

    @property
    def other_gids(self) -> frozenset[int]:
        """The groups that it has besides."""
        return frozenset(self._numbers("Groups")) - {self.gid}

    def _numbers(self, key: str) -> list[int]:
        words = self.status.get(key, "").split()
        return [int(word) for word in words if is_whole(word)]

    @property
    def locked_kb(self) -> int:
        """How much of its memory is locked."""
        words = self.status.get("VmLck", "").split()
        return int(words[0]) if words and is_whole(words[0]) else 0

    @property
    def locked_at_start(self) -> bool:
        """Whether `rtscope app start` locked its memory: its mark has its number."""
        inside = self.status.get("NSpid", "").split() or [str(self.pid)]
        return self.environ.get(START_MARK) == f"{inside[-1]} lock"

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Those in effect, `CAP_SYS_NICE`, in the order of their numbers."""
        try:
            bits = int(self.status.get("CapEff", ""), 16)
        except ValueError:
            return ()
        return tuple(
            f"CAP_{name}" for bit, name in enumerate(CAPABILITIES) if bits >> bit & 1
        )

    @property
    def contained(self) -> bool:
        """Whether it has another number in a PID namespace of its own."""
        return len(self.status.get("NSpid", "").split()) > 1


def running_program(
    pid: int,
    threads: Sequence[Thread],
    contents: Mapping[str, Content],
    *,
    directory: str | None,
) -> RunningProgram:
    """
    Make it of files by their paths, and of the threads of the machine.

    `directory`: its working directory, if that can be known.
    """
    texts: dict[str, str] = {}
    raw: dict[str, bytes] = {}
    denied: dict[str, str] = {}
    for name in FILES:
        content = contents.get(f"/proc/{pid}/{name}")
        if isinstance(content, bytes):
            raw[name] = content
            texts[name] = content.decode("utf-8", "surrogateescape")
        elif isinstance(content, Denied):
            denied[name] = content.reason
    status = _status(texts.get("status", ""))
    own = sorted(
        (t for t in threads if t.line.pid == pid), key=lambda t: not t.is_leader
    )
    passwd, group = (text_of(contents.get(p, b"")) or "" for p in (PASSWD, GROUP))
    user = _user_row(status.get("Uid", ""), passwd)
    score = texts.get("oom_score_adj", "0").strip()
    return RunningProgram(
        pid=pid,
        name=own[0].name,
        threads=tuple(own),
        argv=tuple(_strings(texts.get("cmdline", ""))),
        executable=_executable(raw.get("auxv", b""), texts.get("maps", "")),
        directory=directory,
        online=cpus_in(text_of(contents.get(ONLINE, b"")) or ""),
        user=user[0] if user else None,
        groups=_groups(user, group),
        status=status,
        limits=_limits(texts.get("limits", ""), 2),
        hard_limits=_limits(texts.get("limits", ""), 3),
        environ=_environ(texts.get("environ", "")),
        service=_service(texts.get("cgroup", "")),
        cgroups=tuple(_memory_groups(texts.get("cgroup", ""))),
        oom_score_adj=int(score) if is_whole(score.lstrip("-")) else 0,
        denied=denied,
    )


def _strings(text: str) -> list[str]:
    """Return strings that end in NUL each; the last one may lack it."""
    return text.removesuffix("\0").split("\0") if text else []


def _status(text: str) -> Mapping[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {key: value.strip() for key, _, value in pairs}


def _limits(text: str, column: int) -> Mapping[str, str]:
    matches = (_LIMIT.match(line) for line in text.splitlines())
    return {one[1]: one[column] for one in matches if one}


def _environ(text: str) -> Mapping[str, str]:
    pairs = (one.partition("=") for one in _strings(text))
    return {key: value for key, equals, value in pairs if equals}


def _user_row(uids: str, passwd: str) -> list[str]:
    """Return the fields of /etc/passwd for a user, or nothing."""
    uid = (uids.split() or [""])[0]
    rows = (line.split(":") for line in passwd.splitlines())
    return next((row for row in rows if len(row) > 3 and row[2] == uid), [])


def _groups(user: Sequence[str], group: str) -> Groups:
    """Make them of the fields of /etc/passwd for a user, and of /etc/group."""
    rows = [line.split(":") for line in group.splitlines()]
    whole = [row for row in rows if len(row) > 3 and is_whole(row[2])]
    own = int(user[3]) if user and is_whole(user[3]) else None
    member = {int(row[2]) for row in whole if user and user[0] in row[3].split(",")}
    return Groups(
        names={int(row[2]): row[0] for row in whole},
        of_user=frozenset(member if own is None else {own, *member}),
        own=own,
    )


def _service(cgroups: str) -> str | None:
    last = (line.rpartition("/")[2] for line in cgroups.splitlines())
    return next((name for name in last if name.endswith(".service")), None)


def _memory_groups(cgroups: str) -> Iterator[str]:
    """Yield the files with its limit of memory, of version 2 and of version 1."""
    for line in cgroups.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield f"/sys/fs/cgroup{path.rstrip('/')}/memory.max"
        elif "memory" in controllers.split(","):
            yield f"/sys/fs/cgroup/memory{path.rstrip('/')}/memory.limit_in_bytes"


MOST_BYTES = 1 << 60
"""Of a limit; version 1 of control groups writes a number beyond it for none."""


def memory_max(texts: Iterable[str | None]) -> int | None:
    """Return the limit in the first file that has one, in bytes."""
    numbers = (int(text) for text in texts if text and is_whole(text.strip()))
    return next((number for number in numbers if number < MOST_BYTES), None)


_ORDINARY = re.compile(
    r"/dev/(null|zero|full|u?random|tty|ptmx|pts/.*|shm/.*|mqueue/.*|hugepages/.*)"
)
"""Devices that every unit may use (systemd.resource-control(5)), and no devices."""

_O_ACCMODE = 3
_ACCESS = ("r", "w", "rw", "rw")


def devices_of(opened: Iterable[tuple[str, int]]) -> Mapping[str, str]:
    """Return the devices of open files: path, and flags of open(2)."""
    found: dict[str, set[str]] = {}
    for link, flags in opened:
        path = link.removesuffix(DELETED)
        if path.startswith("/dev/") and not _ORDINARY.fullmatch(path):
            access = found.setdefault(path, set())
            access.update(_ACCESS[flags & _O_ACCMODE])
    return {path: "".join(sorted(found[path])) for path in sorted(found)}


def _executable(auxv: bytes, maps: str) -> str | None:
    """Return the file of the program: the one that holds its headers in memory."""
    pieces = MemoryMap(parse_maps(maps))
    for word in ("Q", "I"):
        pair = struct.Struct(f"={word}{word}")
        whole = auxv[: len(auxv) - len(auxv) % pair.size]
        for key, address in pair.iter_unpack(whole):
            piece = pieces.at(address) if key == _AT_PHDR else None
            if piece is not None and piece.is_file:
                return piece.path
    return None
