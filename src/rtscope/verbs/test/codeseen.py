"""What the boots of a test executed of the program, and what they never reached."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rtscope.boards.parts.program import Program
from rtscope.host.errors import BoardError, ContractError
from rtscope.host.escape import all_printable
from rtscope.programs.memorymap import Mapping as Piece
from rtscope.programs.naming import NamedFrame
from rtscope.programs.outside.file import Kind, ProgramRecord
from rtscope.programs.outside.model import OutsideThread
from rtscope.programs.outside.placed import CpusOfThreads
from rtscope.verbs.test.codefile import ProgramCode, parse_program_code
from rtscope.verbs.test.executed import (
    ThreadBlocks,
    ThreadUses,
    blocks_of_threads,
    worst_uses,
)
from rtscope.verbs.test.functions import Naming, naming_of
from rtscope.verbs.test.judge import SeenStart
from rtscope.verbs.test.places import pieces_of
from rtscope.verbs.test.profile import ThreadProfile
from rtscope.verbs.test.reached import OwnFile, Unreached, path_of, unreached_in
from rtscope.verbs.test.running import Ran

Judging = Callable[[SeenStart], Sequence[OutsideThread]]
"""Gives the threads of a start that are judged."""


@dataclass(frozen=True, slots=True)
class ThreadCode:
    """What a judged thread executed in one start."""

    run: str
    thread: str
    tid: int
    used: ThreadUses
    cycles: int


@dataclass(frozen=True, slots=True)
class CodeSeen:
    """What a test executed of its program."""

    threads: tuple[ThreadCode, ...]
    files: tuple[Unreached, ...]
    """The program's own file, of each board and process that has another one."""


class CodeReader:
    """Takes the boots of a test one by one, so that none has to be kept."""

    def __init__(self, judged: Judging, *, shown: bool, kept: bool) -> None:
        self._judged, self._shown, self._kept = judged, shown, kept
        self._threads: list[ThreadCode] = []
        self._files: dict[tuple[str, str], OwnFile] = {}
        self._names: dict[object, dict[int, Sequence[NamedFrame]]] = {}

    def take(
        self, ran: Ran, record: ProgramRecord, starts: Sequence[SeenStart]
    ) -> list[SeenStart]:
        """
        Take a boot; return its starts, each with the code that it executed.

        Raises BoardError if what it recorded is damaged.
        """
        if ran.run.code is None:
            return list(starts)
        try:
            code = parse_program_code(ran.run.code)
        except ContractError as error:
            raise BoardError(f"{ran.run.identity.kernel}: {error}") from error
        cpus = CpusOfThreads(record)
        taken: list[SeenStart] = []
        for one, start in zip(starts, ran.run.starts, strict=True):
            threads = self._judged(one)
            profiles: dict[int, ThreadProfile] = {}
            for thread in threads:
                pieces = pieces_of(ran.boot.job.program, start.maps, thread.process)
                named = self._naming(ran.boot.job.program, pieces, record.arch)
                blocks = ThreadBlocks(
                    code, thread, named, cpus=partial(cpus.of, thread.tid)
                )
                if self._kept:
                    profiles[thread.tid] = ThreadProfile(blocks)
                if self._shown:
                    self._threads.append(_thread_code(one, thread, blocks))
            if self._shown:
                self._take_blocks(ran, record, code, threads, start.maps)
            taken.append(replace(one, code=profiles))
        return taken

    def result(self) -> CodeSeen | None:
        """Return what all boots executed; None: that is not to be shown."""
        if not self._shown:
            return None
        files = (unreached_in(one) for one in self._files.values())
        return CodeSeen(tuple(self._threads), tuple(files))

    def _take_blocks(
        self,
        ran: Ran,
        record: ProgramRecord,
        code: ProgramCode,
        threads: Sequence[OutsideThread],
        maps: Mapping[int, Sequence[Piece]],
    ) -> None:
        program, board = ran.boot.job.program, ran.run.identity.board
        judged = {one.tid for one in threads}
        own: dict[int, set[int]] = {one.process: set() for one in threads}
        for entry in record.entries:
            if entry.kind == Kind.THREAD and entry.detail in own:
                own[entry.detail].add(entry.tid)
        for process, tids in sorted(own.items()):
            pieces = pieces_of(program, maps, process)
            path = path_of(pieces)
            file = self._files.setdefault(
                (board, path), OwnFile(board, path, program, record.arch)
            )
            file.pieces = pieces
            file.lost |= code.lost > 0
            file.add(blocks_of_threads(code, tids & judged), judged=True)
            file.add(blocks_of_threads(code, tids - judged), judged=False)

    def _naming(self, program: Program, pieces: Sequence[Piece], arch: str) -> Naming:
        """Return what names addresses, and remembers those of equal memory."""
        code = tuple(one for one in pieces if one.executable)
        known = self._names.setdefault((arch, code), {})
        name = naming_of(program, pieces, arch=arch)

        def named(addresses: Sequence[int]) -> Mapping[int, Sequence[NamedFrame]]:
            new = [one for one in addresses if one not in known]
            if new:
                found = name(new)
                known.update({one: found.get(one, ()) for one in new})
            return {one: known[one] for one in addresses if known[one]}

        return named


def _thread_code(
    one: SeenStart, thread: OutsideThread, blocks: ThreadBlocks
) -> ThreadCode:
    used = worst_uses(thread, blocks)
    names = one.name, thread.name, thread.tid
    return all_printable(ThreadCode(*names, used, cycles=len(thread.cycles)))
