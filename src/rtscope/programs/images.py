"""The files in the memory of a process: probes in them, and stacks through them."""

import base64
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self

from rtscope.contract import FileLine, Line
from rtscope.host.files.heldfolders import held_folder
from rtscope.machine.reader import Content, Denied
from rtscope.machine.target.agentreader import content_of
from rtscope.programs.binaries.allocators import OF_C
from rtscope.programs.binaries.reading import Answer, Request, Row, answer_to
from rtscope.programs.memorymap import VDSO
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.naming import NamedFrame, NamedStack, origin_of
from rtscope.programs.probes import (
    ALLOCATIONS,
    ALLOCATIONS_OF_GO,
    LEAST,
    LOCKS_OF_GO,
    NAMES_OF_SYMBOLS,
    OPERATORS_PROBED,
    OWN_ALLOCATORS,
    PROBE,
    by_use,
)

_OF_THE_C_LIBRARY = re.compile(r".*/(libc|libc-[\d.]+|ld-musl-\w+)\.so[.\d]*$")

MAX_PROBES = 16
"""Of the agent: agent/options.h."""

MAX_FILES = 1024
"""Of a process that are read; the first ones."""

DEBUG_FILES = Path("/usr/lib/debug/.build-id")


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


@dataclass(frozen=True, slots=True)
class MadeFiles:
    """Files in which a process names the code that it makes while it runs."""

    uid: int
    """Whose they have to be."""
    maps: Sequence[str]
    dumps: Sequence[str]


Sample = tuple[str, str, bool]
"""Registers and stack in base64; whether it is of the begin of a function."""


@dataclass(frozen=True, slots=True)
class Stacks:
    """Stacks with names, and what could not be named."""

    named: Sequence[NamedStack]
    """One for each sample."""
    not_named: Mapping[str, str]
    """Why functions of a file have no names, by its path."""
    bare: Mapping[str, str]
    """Numbers of the builds of files on the stacks that lack debug information."""


class Images:
    """
    The files in the memory of a process; another process reads them: a context manager.

    `read` returns the content of a file, or a path that the other process can open;
    `find` are functions to look for; of `marks`, those that a file has are named;
    `every` lists all functions.
    """

    def __init__(
        self,
        read: Callable[[Piece], Content | Path],
        *,
        debug_files: Sequence[Path] = (DEBUG_FILES,),
        cache: Path | None = None,
        find: Sequence[str] = ALLOCATIONS,
        marks: Sequence[str] = (),
        every: bool = False,
    ) -> None:
        self._read_file, self._cache, self._find = read, cache, find
        self._marks, self._every = marks, every
        self.debug_files = tuple(debug_files)
        self._files: dict[str, Mapping[str, str]] = {}
        self._left_out: dict[str, str] = {}
        self._about: dict[str, Row] = {}
        self._vdso = ""
        self._stack = ExitStack()
        self._folder: Path | None = None
        self.unread: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def learn(self, lines: Iterable[Line]) -> None:
        """Take the kernel's code from the lines of the agent, which has the same."""
        for line in lines:
            if isinstance(line, FileLine) and line.path == VDSO:
                content = content_of(line)
                if isinstance(content, bytes):
                    self._vdso = base64.b64encode(content).decode()

    def read(self, pieces: Iterable[Piece]) -> None:
        """Read the files in pieces of memory that hold code, each once."""
        new: dict[str, Mapping[str, str]] = {}
        for piece in pieces:
            if not (piece.executable and piece.is_file):
                continue
            key = _key(piece)
            if key in self._files or key in new or piece.path in self.unread:
                continue
            if len(self._files) + len(new) >= MAX_FILES:
                self.unread[piece.path] = f"it has more than {MAX_FILES:,} such files"
                continue
            path = self._path(piece)
            if path is not None:
                new[key] = {"path": path, "name": piece.path}
        if new:
            self._files |= new
            self._take(self._ask(new))

    def _ask(
        self, files: Mapping[str, Mapping[str, str]], stacks: Row | None = None
    ) -> Answer:
        of_machine = stacks is None and self._find is ALLOCATIONS
        request = Request(
            dict(files),
            find=() if stacks is not None else self._find,
            find_beside=OPERATORS_PROBED if of_machine else (),
            find_own=OWN_ALLOCATORS if of_machine else (),
            find_in_go=() if stacks is not None else (*LOCKS_OF_GO, *ALLOCATIONS_OF_GO),
            marks=self._marks if of_machine else (),
            every=self._every and stacks is None,
            vdso=self._vdso,
            debug=[str(one) for one in self.debug_files],
            cache="" if self._cache is None else str(self._cache),
            stacks=stacks,
            left_out=self._left_out,
        )
        return answer_to(request)

    def _take(self, answer: Answer) -> None:
        for row in answer.of("file"):
            name = self._files[row["file"]]["name"]
            self._about[row["file"]] = row
            why = row.get("error") or row.get("damaged")
            if why:
                self.unread[name] = why
        if answer.ended:
            for key, file in self._files.items():
                if key not in self._about:
                    self.unread[file["name"]] = f"the reading process {answer.ended}"

    def _path(self, piece: Piece) -> str | None:
        content = self._read_file(piece)
        if isinstance(content, Path):
            return str(content)
        if not isinstance(content, bytes):
            reason = content.reason if isinstance(content, Denied) else "not there"
            self.unread[piece.path] = reason
            return None
        if self._folder is None:
            held = held_folder(Path(tempfile.gettempdir()), prefix="rtscope-files-")
            self._folder = self._stack.enter_context(held)
        path = self._folder / str(len(list(self._folder.iterdir())))
        path.write_bytes(content)
        return str(path)

    @property
    def lazy(self) -> tuple[str, ...]:
        """Those whose functions are looked up at their first call."""
        return tuple(
            PurePosixPath(self._files[key]["name"]).name
            for key, row in self._about.items()
            if row.get("lazy")
        )

    def functions(self, piece: Piece) -> Sequence[tuple[str, int]]:
        """
        Return the functions in a file that are probed, and where each begins.

        They are allocators, and in programs of Go waits for locks. `read` was before.
        """
        row = self._about.get(_key(piece), {})
        of_go = [
            (ALLOCATIONS_OF_GO.get(str(name), PROBE), int(at))
            for name, at in row.get("of_go", ())
        ]
        beside = [
            (NAMES_OF_SYMBOLS.get(str(name), str(name)), int(at))
            for name, at in row.get("beside", ())
        ]
        found = ((str(n), int(at)) for n, at in row.get("functions", ()))
        return [*found, *beside, *of_go]

    @property
    def marks(self) -> Mapping[str, Sequence[str]]:
        """By the path of each file, those of the `marks` that it has."""
        return {
            self._files[key]["name"]: [str(one) for one in row.get("marks", ())]
            for key, row in self._about.items()
        }

    def every_function(self, piece: Piece) -> Sequence[tuple[str, int, int]] | str:
        """
        Return name, offset and size of each function in a file; or why nobody knows.

        `read` was before, and `every` was asked for.
        """
        row = self._about.get(_key(piece), {})
        if "every" in row:
            return [(str(name), int(at), int(size)) for name, at, size in row["every"]]
        known = self.unread.get(piece.path) or row.get("why_no_names")
        return str(known or "it cannot be read")

    def why_hidden(self, piece: Piece) -> str:
        """Return why some functions of a file are not found; empty if all are."""
        row = self._about.get(_key(piece), {})
        known = self.unread.get(piece.path) or row.get("hidden")
        return str(known or "")

    def stacks(
        self,
        pieces: Sequence[Piece],
        samples: Sequence[Sample],
        *,
        arch: str,
        made: MadeFiles | None = None,
    ) -> Stacks:
        """Return the named stacks of samples; of what was not read they say why."""
        program = next((p.path for p in pieces if p.executable and p.is_file), "")
        maps = [
            [p.start, p.end, p.offset, p.path, _key(p) if p.is_file else None]
            for p in pieces
            if p.executable or p.is_vdso
        ]
        for row in maps:
            row[4] = row[4] if row[4] in self._files else None
        asked = {
            "arch": arch,
            "maps": maps,
            "samples": samples,
            "made": None
            if made is None
            else {"uid": made.uid, "maps": made.maps, "dumps": made.dumps},
        }
        answer = self._ask(self._files, asked)
        return _Naming(self._files, answer, program).stacks(len(samples))


def _key(piece: Piece) -> str:
    return f"{piece.device} {piece.inode} {piece.path}"


class _Naming:
    """Puts the lines of an answer together."""

    def __init__(
        self, files: Mapping[str, Mapping[str, str]], answer: Answer, program: str
    ) -> None:
        self._files, self._answer, self._program = files, answer, program
        self._frames = {tuple(row["frame"]): row for row in answer.of("frame")}
        self._known: dict[tuple[Any, ...], tuple[NamedFrame, ...]] = {}

    def stacks(self, count: int) -> Stacks:
        answer = self._answer
        why = f"not named, because the reading process {answer.ended}"
        named = [
            NamedStack(
                tuple(one for at in row["stack"] for one in self._named(tuple(at))),
                row["ends_early"],
            )
            for row in answer.of("stack")
        ][:count]
        missing = [NamedStack((), why)] * (count - len(named))
        not_named = {
            self._name(row["not_named"]): str(row["why"])
            for row in answer.of("not_named")
        }
        for row in answer.of("file"):
            if row.get("error"):
                not_named[self._name(row["file"])] = str(row["error"])
        if answer.ended:
            not_named["all files"] = f"the reading process {answer.ended}"
        bare = {
            self._name(row["bare"]): str(row["build_id"] or "")
            for row in answer.of("bare")
            if row["bare"] in self._files
        }
        return Stacks([*named, *missing], not_named, bare)

    def _name(self, key: str) -> str:
        return self._files[key]["name"] if key in self._files else key

    def _named(self, at: tuple[Any, ...]) -> tuple[NamedFrame, ...]:
        if at not in self._known:
            self._known[at] = tuple(self._frames_of(at))
        return self._known[at]

    def _frames_of(self, at: tuple[Any, ...]) -> Iterable[NamedFrame]:
        row = self._frames.get(at)
        address = int(at[0])
        if row is None:
            yield NamedFrame("", "", 0, "", address, inlined=False)
            return
        path = str(row["path"])
        image = PurePosixPath(path).name if row["key"] else path
        vaddr = row["vaddr"]
        for function, file, line, inlined in row["names"] or [("", "", 0, False)]:
            yield NamedFrame(
                function,
                file,
                line,
                image,
                address,
                inlined,
                offset=-1 if vaddr is None else vaddr,
                build_id=row["build_id"],
                origin=origin_of(path, function, file, program=self._program),
            )


def probes_in(maps: Sequence[Piece], images: Images, *, directory: str) -> list[Probe]:
    """
    Return where the functions of a process begin that are probed.

    They are the allocators, of the C library or of another, and waits for locks.

    The directory has links to its files, by their places in memory.
    """
    images.read(maps)
    found = [
        (piece, images.functions(piece))
        for piece in maps
        if piece.executable and piece.is_file
    ]
    allocators = {one.inode for one, names in found if OF_C in dict(names)}
    places: list[tuple[int, Probe]] = []
    for piece, functions in found:
        # of the C library, if another one has its place, for the calls that are left
        last = len(allocators) > 1 and _OF_THE_C_LIBRARY.match(piece.path) is not None
        for name, offset in functions:
            link = f"{directory}/{piece.start:x}-{piece.end:x}"
            use = LEAST if last else by_use(name)
            places.append((use, Probe(name, offset, link, piece.inode)))
    places.sort(key=lambda one: one[0])
    return each_once((one.inode, one) for _, one in places)


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
