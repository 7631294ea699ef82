"""The files in the memory of a process: read once each, and where to probe them."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from rtscope.contract import FileLine, Line
from rtscope.host.errors import TargetError
from rtscope.machine.reader import Content, Denied
from rtscope.machine.target.agentreader import content_of
from rtscope.verbs.app.image import Image
from rtscope.verbs.app.locks import PROBE, probed_functions
from rtscope.verbs.app.memorymap import VDSO
from rtscope.verbs.app.memorymap import Mapping as Piece
from rtscope.verbs.app.rules import ALLOCATIONS

MAX_PROBES = 16
"""Of the agent: agent/options.h."""

MAX_IMAGE_BYTES = 256 << 20
DEBUG_FILES = Path("/usr/lib/debug/.build-id")

_LOADERS = ("ld-linux", "ld-2", "ld.so", "ld64")
"""They have an allocator of their own, for before the C library is there."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Where a function begins in a file."""

    name: str
    offset: int
    path: str
    """Where the agent finds the file."""
    inode: int

    @property
    def argument(self) -> str:
        """The probe as the agent takes it."""
        return f"{self.name}:{self.offset}:{self.path}"


class Images:
    """The files in the memory of a process; each is read once."""

    def __init__(
        self, read: Callable[[Piece], Content], *, debug_files: Path = DEBUG_FILES
    ) -> None:
        self._read_file, self._debug_files = read, debug_files
        self._known: dict[tuple[str, int], Image | None] = {}
        self._vdso: Image | None = None
        self.unread: dict[str, str] = {}

    def learn(self, lines: Iterable[Line]) -> None:
        """Take the kernel's code from the lines of the agent, which has the same."""
        for line in lines:
            if isinstance(line, FileLine) and line.path == VDSO:
                content = content_of(line)
                if isinstance(content, bytes):
                    with suppress(TargetError):
                        self._vdso = Image(content, VDSO)

    def of(self, piece: Piece) -> Image | None:
        """Return the file that a piece of memory shows; None if it cannot be read."""
        if piece.is_vdso:
            return self._vdso
        key = (piece.device, piece.inode)
        if key not in self._known:
            self._known[key] = self._read(piece)
        return self._known[key]

    def _read(self, piece: Piece) -> Image | None:
        content = self._read_file(piece)
        if not isinstance(content, bytes):
            reason = content.reason if isinstance(content, Denied) else "not there"
            self.unread[piece.path] = reason
            return None
        try:
            return Image(content, piece.path)
        except TargetError as error:
            self.unread[piece.path] = str(error)
            return None

    def debug_file(self, build_id: str) -> Image | None:
        """Return the debug file of a build, if its package is installed here."""
        path = self._debug_files / build_id[:2] / f"{build_id[2:]}.debug"
        try:
            if path.stat().st_size > MAX_IMAGE_BYTES:
                return None
            return Image(path.read_bytes(), str(path))
        except (OSError, TargetError):
            return None

    @property
    def lazy(self) -> tuple[str, ...]:
        """Those whose functions are looked up at their first call."""
        images = (one for one in self._known.values() if one is not None)
        return tuple(PurePosixPath(one.name).name for one in images if one.lazy)


def probes_in(maps: Sequence[Piece], images: Images, *, directory: str) -> list[Probe]:
    """
    Return where the functions of a process begin that are probed.

    They are the allocators, of the C library or of another, and waits for locks.

    The directory has links to its files, by their places in memory.
    """
    places: list[tuple[Hashable, Probe]] = []
    for piece in maps:
        image = images.of(piece) if piece.executable and piece.is_file else None
        if image is None:
            continue
        link = f"{directory}/{piece.start:x}-{piece.end:x}"
        places += [
            (piece.inode, Probe(function, offset, link, piece.inode))
            for function, offset in (*allocators_in(image), *waits_in(image))
        ]
    return each_once(places)


def each_once(places: Iterable[tuple[Hashable, Probe]]) -> list[Probe]:
    """
    Return the probes of the agent, from functions and the files that they are in.

    A function with several names, or in both tables of symbols, is one place. Those of
    the same name in different places are numbered.
    """
    seen: set[tuple[Hashable, int]] = set()
    names: Counter[str] = Counter()
    probes: list[Probe] = []
    for file, one in places:
        if (file, one.offset) in seen:
            continue
        seen.add((file, one.offset))
        names[one.name] += 1
        number = names[one.name]
        name = one.name if number == 1 else f"{one.name}.{number}"
        probes.append(replace(one, name=name))
    return probes[:MAX_PROBES]


def waits_in(image: Image) -> Iterable[tuple[str, int]]:
    """Yield each function of a program of Go whose callers wait for a lock."""
    if image.elf.get_section_by_name(".go.buildinfo") is None:
        return
    for function in probed_functions():
        for symbol in image.functions_named(function):
            offset = image.offset_of(symbol.vaddr)
            if offset is not None:
                yield PROBE, offset


def allocators_in(image: Image) -> Iterable[tuple[str, int]]:
    """Yield each function of an allocator in a file, and where it begins there."""
    if PurePosixPath(image.name).name.startswith(_LOADERS):
        return
    for function in ALLOCATIONS:
        for symbol in image.functions_named(function):
            offset = image.offset_of(symbol.vaddr)
            if offset is not None:
                yield function, offset
