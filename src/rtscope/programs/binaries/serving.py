"""
The process that reads the files of a checked program: `python -m ...serving`.

It takes one request, a JSON document, from its standard input, and answers in lines of
JSON. It has little memory and time, and says which file it is at: if it ends there, the
file is left out and another such process does the rest. See reading.py.
"""

import base64
import json
import mmap
import os
import resource
import signal
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any

from rtscope.programs.binaries.allocators import beside_malloc, of_language
from rtscope.programs.binaries.elf import Damaged
from rtscope.programs.binaries.image import Image
from rtscope.programs.binaries.jitcode import MadeCode, made_code
from rtscope.programs.binaries.lookups import is_loader, lookups_in
from rtscope.programs.binaries.namecache import NameCache
from rtscope.programs.binaries.namer import DAMAGED, Namer, why_damaged
from rtscope.programs.binaries.tailcalls import TailCalls
from rtscope.programs.binaries.unwind import (
    BY_MACHINE,
    Frame,
    Stack,
    Unwinder,
    registers_in,
)
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.memorymap import MemoryMap

MEMORY_BYTES = 256 << 20
"""Of its own; the files are mapped, and do not count."""
CPU_S = 30
"""Of the whole process."""
FILE_CPU_S = 5
"""Of one file: more, and it is left out."""
MAX_IMAGE_BYTES = 256 << 20
MAX_FUNCTIONS = 4_000
"""Of a file, where all are asked for."""


class TookTooLong(Exception):
    """A file needed more than FILE_CPU_S."""


_FAILED = (*DAMAGED, TookTooLong, MemoryError, RecursionError, OSError)


def main() -> int:
    """Answer one request."""
    limit_this_process()
    request = json.load(sys.stdin)
    for line in answers(request):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    return 0


def limit_this_process() -> None:
    """Take limits of memory and time; nothing is written when it is killed."""
    for what, limit in (
        (resource.RLIMIT_DATA, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_CORE, 0),
    ):
        most = resource.getrlimit(what)[1]
        least = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(what, (least, least))
    signal.signal(signal.SIGPROF, _too_long)


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TookTooLong(f"it took more than {FILE_CPU_S} s of CPU time")


@contextmanager
def _limited_time() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, FILE_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _memory() -> str:
    return f"more than {resource.getrlimit(resource.RLIMIT_DATA)[0] >> 20} MiB"


def _why(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"it needs {_memory()}"
    if isinstance(error, OSError):
        return error.strerror or "it cannot be read"
    return str(error) if isinstance(error, TookTooLong) else why_damaged(error)


def answers(request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of an answer."""
    files = Files(request)
    for key in request["files"]:
        yield {"reading": key}
        image = files.image(key)
        if image is None:
            yield {"file": key, "error": files.errors[key]}
        else:
            yield _about(key, image, request)
    if request["stacks"] is not None:
        yield from Stacks(request, files).lines()
    yield {"done": True}


def _about(key: str, image: Image, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is known of a file without any place in it."""
    row: dict[str, Any] = {"file": key, "build_id": None, "lazy": False}
    row["functions"] = []
    try:
        with _limited_time():
            row["functions"] = list(_functions(image, request["find"]))
            row["beside"] = list(_beside(image, request))
            if image.elf.section(".go.buildinfo") is not None:
                row["of_go"] = list(_functions(image, request["find_in_go"]))
            row["marks"] = [x for x in request["marks"] if image.functions_named(x)]
            row["build_id"] = image.build_id
            row["lazy"] = image.lazy
            row["hidden"] = image.why_hidden
            if request["every"]:
                row |= _every_function(image)
            image.elf.check_sections()
    except _FAILED as error:
        row["damaged"] = _why(error)
    return row


def _functions(image: Image, find: Sequence[str]) -> Iterator[tuple[str, int]]:
    if is_loader(image):
        # It has an allocator of its own, for before the C library is there.
        yield from lookups_in(image) if find else ()
        return
    for function in find:
        for symbol in image.functions_named(function):
            offset = image.offset_of(symbol.vaddr)
            if offset is not None:
                yield function, offset


def _beside(image: Image, request: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    if is_loader(image):
        return
    found = chain(
        beside_malloc(image, request["find_beside"], known=request["find"]),
        of_language(image, request["find_own"]),
    )
    for symbol in found:
        offset = image.offset_of(symbol.vaddr)
        if offset is not None:
            yield symbol.name, offset


def _every_function(image: Image) -> Mapping[str, Any]:
    if not image.has_names:
        return {"why_no_names": "it is stripped of the names of its functions"}
    places = [(image.offset_of(one.vaddr), one) for one in image.every_function()]
    every = [(one.name, at, one.size) for at, one in places if at is not None]
    if len(every) > MAX_FUNCTIONS:
        return {"why_no_names": f"it has more than {MAX_FUNCTIONS:,} functions"}
    return {"every": every}


class Files:
    """The files of a request; each is opened once."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._files, self._debug = request["files"], request["debug"]
        self.errors: dict[str, str] = dict(request["left_out"])
        self._images: dict[str, Image | None] = {}
        self._debug_files: dict[str, Image | None] = {}
        self.vdso: Image | None = None
        if request["vdso"]:
            with suppress(*DAMAGED):
                self.vdso = Image(base64.b64decode(request["vdso"]), "[vdso]")

    def image(self, key: str) -> Image | None:
        """Return a file; None if it cannot be read: `errors` says why."""
        if key not in self._images:
            self._images[key] = self._opened(key)
        return self._images[key]

    def _opened(self, key: str) -> Image | None:
        if key in self.errors:
            return None
        try:
            return _opened(Path(self._files[key]["path"]), self._files[key]["name"])
        except _FAILED as error:
            self.errors[key] = _why(error)
            return None

    def debug_file(self, build_id: str) -> Image | None:
        """Return the debug file of a build, if there is one in these directories."""
        if build_id not in self._debug_files:
            self._debug_files[build_id] = self._found(build_id)
        return self._debug_files[build_id]

    def _found(self, build_id: str) -> Image | None:
        for directory in self._debug:
            path = Path(directory) / build_id[:2] / f"{build_id[2:]}.debug"
            with suppress(*_FAILED):
                image = _opened(path, str(path))
                if image.build_id == build_id:
                    return image
        return None


def _opened(path: Path, name: str) -> Image:
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            raise Damaged("not a plain file")
        if about.st_size > MAX_IMAGE_BYTES:
            raise Damaged(f"larger than {MAX_IMAGE_BYTES >> 20} MiB")
        if not about.st_size:
            raise Damaged("it is empty")
        content = mmap.mmap(number, 0, prot=mmap.PROT_READ)
    finally:
        os.close(number)
    return Image(memoryview(content), name)


_Place = tuple[int, bool]
"""An address, and whether a call returns there."""


class Stacks:
    """The stacks of a request: unwound, then named file by file."""

    def __init__(self, request: Mapping[str, Any], files: Files) -> None:
        self._files = files
        self._asked = request["stacks"]
        self._cache = NameCache(Path(request["cache"])) if request["cache"] else None
        self._keys: dict[int, str | None] = {}
        pieces = []
        for start, end, offset, path, key in self._asked["maps"]:
            self._keys[start] = key
            inode = 0 if key is None else 1
            pieces.append(Piece(start, end, "r-xp", offset, "", inode, path))
        self._maps = MemoryMap(pieces)
        self._frames: dict[_Place, Frame] = {}

    def _image_of(self, piece: Piece) -> Image | None:
        if piece.is_vdso:
            return self._files.vdso
        key = self._keys.get(piece.start)
        return None if key is None else self._files.image(key)

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Yield a line for each stack, then one for each of its frames."""
        machine = BY_MACHINE[self._arch()]
        made = self._made_code()  # not within the time of a stack
        if made is not None and made.too_large:
            why = f"the file's table of names needs {_memory()}"
            yield {"not_named": made.too_large, "why": why}
        unwinder = Unwinder(
            machine,
            self._maps,
            self._image_of,
            made=lambda address: "" if made is None else made.at(address),
        )
        tail_calls, too_long = TailCalls(), ""
        for regs, copied, at_entry in self._asked["samples"]:
            registers = registers_in(base64.b64decode(regs), machine)
            stack = Stack((), too_long)
            if not too_long:
                try:
                    with _limited_time():
                        stack = unwinder.unwind(
                            registers, base64.b64decode(copied), at_entry=at_entry
                        )
                        frames = tail_calls.with_left_out(stack.frames)
                        stack = Stack(frames, stack.ends_early)
                except _FAILED as error:
                    stack = Stack((), f"its unwind table cannot be read: {_why(error)}")
                    if isinstance(error, TookTooLong):
                        too_long = stack.ends_early or ""
            if not stack.frames and machine.pc in registers:
                frame = unwinder.frame(registers[machine.pc], called=False)
                stack = Stack((frame,), stack.ends_early)
            yield self._line(stack)
        yield from self._named(made)

    def _arch(self) -> str:
        """Return that of the program, which a kernel of 64 bits may run with 32."""
        arch = str(self._asked["arch"])
        key = next((row[4] for row in self._asked["maps"] if row[4] is not None), None)
        image = None if key is None else self._files.image(key)
        narrow = image is not None and image.elf.machine == "EM_386"
        return "i386" if arch == "x86_64" and narrow else arch

    def _line(self, stack: Stack) -> Mapping[str, Any]:
        for one in stack.frames:
            self._frames.setdefault((one.address, one.called), one)
        return {
            "stack": [(one.address, one.called) for one in stack.frames],
            "ends_early": stack.ends_early,
        }

    def _named(self, made: MadeCode | None) -> Iterator[Mapping[str, Any]]:
        namer = Namer(self._files.debug_file, self._cache)
        by_key: dict[str, list[Frame]] = {}
        for frame in self._frames.values():
            by_key.setdefault(self._key(frame), []).append(frame)
        for key, frames in by_key.items():
            yield {"reading": key}
            image = frames[0].image
            if image is None:
                for frame in frames:
                    yield _row(frame, "", made_names(made, frame), None)
                continue
            yield from self._of_image(namer, key, image, frames)

    def _of_image(
        self, namer: Namer, key: str, image: Image, frames: Sequence[Frame]
    ) -> Iterator[Mapping[str, Any]]:
        names: Mapping[int, Any] = {}
        build_id = None
        try:
            with _limited_time():
                build_id = image.build_id
                places = {one.place for one in frames if one.place is not None}
                if namer.bare(image):
                    yield {"bare": key, "build_id": build_id}
                names = namer.named(image, places)
                for why in namer.failed(image):
                    yield {"not_named": key, "why": why}
        except _FAILED as error:
            yield {"not_named": key, "why": _why(error)}
        for frame in frames:
            place = -1 if frame.place is None else frame.place
            yield _row(frame, key, names.get(place, ()), build_id)

    def _key(self, frame: Frame) -> str:
        if frame.image is None or frame.mapping is None:
            return ""
        if frame.mapping.is_vdso:
            return "[vdso]"
        return self._keys.get(frame.mapping.start) or ""

    def _made_code(self) -> MadeCode | None:
        asked = self._asked["made"]
        if asked is None:
            return None
        return made_code(asked["maps"], asked["dumps"], uid=asked["uid"])


def made_names(made: MadeCode | None, frame: Frame) -> list[Any]:
    """Return the name of code that the program made; none if it is unknown."""
    file = frame.mapping is not None and frame.mapping.is_file
    address = frame.address - 1 if frame.called else frame.address
    name = "" if made is None or file else made.at(address)
    return [(name, "", 0, False)] if name else []


def _row(
    frame: Frame, key: str, names: Sequence[Any], build_id: str | None
) -> Mapping[str, Any]:
    return {
        "frame": (frame.address, frame.called),
        "key": key,
        "path": "" if frame.mapping is None else frame.mapping.path,
        "vaddr": frame.place,
        "build_id": build_id or "",
        "names": list(names),
    }


if __name__ == "__main__":
    raise SystemExit(main())
