"""
A test as jobs of boards: the program built, its files brought together, its loads.

Only the build command runs on this computer: as the user, in the directory of the test
file. Packages are unpacked; none of their scripts runs.
"""

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from rtscope.boards.catalogue import Board, get_arch, get_board, with_append
from rtscope.boards.events import with_devices_for
from rtscope.boards.parts.aptroot import Lock, read_lock
from rtscope.boards.parts.buildcontext import BuildContext, cached_lock
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Entry
from rtscope.boards.parts.prepare import check_kernel, prepare_all
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.program import Program, program_of
from rtscope.boards.parts.programtree import (
    PASSWD,
    ProgramTree,
    entries_of,
    put_all,
    put_merged_links,
    put_users,
    tree_for,
)
from rtscope.boards.parts.qemu import Phase, ProgramView
from rtscope.boards.recording.programseen import outside_view
from rtscope.boards.recording.programuses import ProgramUses, program_uses
from rtscope.boards.runs.prepare import load_place
from rtscope.boards.runs.programscript import ProgramJob, spread_phases
from rtscope.host import process
from rtscope.host.errors import MeasurementError, UsageError, no_such
from rtscope.host.files.heldfolders import temporary_folder
from rtscope.host.files.opening import read_named
from rtscope.host.process import Progress, Step
from rtscope.host.units import NS_PER_S
from rtscope.machine.target import agent_file
from rtscope.measure.loads import get_load, make_command
from rtscope.record.model import TIMER
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.packages import (
    packages_entries,
    packages_name,
    packages_part,
)

BUILD_PATIENCE_S = 3600.0
SHOWN_LINES, SHOWN_CHARACTERS = 12, 200
"""Of a build that failed: its last lines."""

MAX_STDIN_BYTES = 16 << 20
MAX_BOOTS = 10_000


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot of a test."""

    board: str
    kernel: str
    load: str
    seed: int
    prepared: Prepared
    job: ProgramJob
    view: ProgramView
    uses: ProgramUses


def _phases(test: ProgramTest) -> tuple[Phase, ...]:
    return tuple(
        Phase(start, int(thread), period_ns, after_ns)
        for start in range(1, test.starts + 1)
        for thread, (after_ns, period_ns) in test.phases.items()
    )


def boots_of(
    test: ProgramTest, *, log: Callable[[str], None], progress: Progress
) -> tuple[Boot, ...]:
    """
    Return all boots of a test, ready to run.

    Raises UsageError for mistakes in the test and its files, BoardError if a part
    cannot be fetched or built, MeasurementError if the build command fails.
    """
    boards = [with_append(get_board(name), test.append) for name in test.boards]
    kernels = {board.name: _kernels(test, board) for board in boards}
    for board in boards:
        for kernel in kernels[board.name]:
            check_kernel(board, kernel, ())
    _refuse_too_many(test, sum(map(len, kernels.values())))
    with_devices = _with_devices(boards, test.loads)
    stdin = _stdin(test)
    _build(test, progress)
    context = BuildContext(
        cache=cache_dir(),
        agent=agent_file,
        lock=read_lock(test.path(test.lockfile)) if test.lockfile else None,
        log=log,
        progress=progress,
    )
    boots: list[Boot] = []
    phases = _phases(test)
    for board in boards:
        tree = _tree(test, board, context)
        program = _program(test, board, tree, context)
        job = ProgramJob(
            program,
            duration_ns=test.longest_ns,
            warmup_ns=test.warmup_ns,
            settle_ns=test.settle_ns,
            phases_ns=spread_phases(test.starts),
            values=(test.value_of,) * test.starts if test.value_of else (),
            environment=tuple(test.environment.items()),
            stdin=stdin,
            directory=test.directory,
            user=_user(test, tree),
            policy=(test.policy, test.priority or 0) if test.policy else None,
            cpus=test.cpus or None,
        )
        names = kernels[board.name]
        made = prepare_all(
            board,
            names,
            context=context,
            own_qemu=test.path(test.qemu) if test.qemu else None,
        )
        ready = [
            (name, replace(one, board=board))
            for name, one in zip(names, made, strict=True)
        ]
        uses = program_uses(program)
        judged_ns = (test.warmup_ns, test.warmup_ns + test.longest_ns)
        views = {
            name: outside_view(
                one, uses, judged_ns, cache=cache_dir(), log=log, progress=progress
            )
            for name, one in ready
        }
        for (name, one), load, seed in product(ready, test.loads, test.seeds):
            loaded = with_load(replace(job, seed=seed), board, load)
            view = replace(views[name], phases=phases)
            booted = replace(one, board=with_devices[board.name, load])
            boots.append(Boot(board.name, name, load, seed, booted, loaded, view, uses))
    return tuple(boots)


def lock_of(test: ProgramTest, boots: Sequence[Boot]) -> Lock:
    """Return the exact packages of the boards of a test, and of its program."""
    names = {part.name for one in boots for part in one.prepared.parts}
    arches = {get_arch(one.prepared.board.arch) for one in boots}
    names |= {packages_name(test.packages, arch) for arch in arches}
    known = cached_lock(cache_dir())
    return replace(
        known, parts={name: known.parts[name] for name in names & known.parts.keys()}
    )


def _with_devices(
    boards: Sequence[Board], loads: Sequence[str]
) -> Mapping[tuple[str, str], Board]:
    """Return each board as each load needs it; UsageError if it has no such devices."""
    return {
        (board.name, load): with_devices_for(board, TIMER, load)
        for board, load in product(boards, loads)
    }


def _kernels(test: ProgramTest, board: Board) -> list[str]:
    names = test.kernels or board.kernels[:1]
    return [str(test.path(name)) if "/" in name else name for name in names]


def _refuse_too_many(test: ProgramTest, kernels: int) -> None:
    boots = kernels * len(test.loads) * len(test.seeds)
    if boots > MAX_BOOTS:
        raise UsageError(
            f"{boots:,} boots; write at most {MAX_BOOTS:,}: fewer boards, kernels, "
            "loads or seeds"
        )


def _stdin(test: ProgramTest) -> bytes | None:
    if test.stdin is None:
        return None
    path = test.path(test.stdin)
    return read_named(
        path, limit=MAX_STDIN_BYTES, kind="standard input", error=UsageError
    )


def with_load(job: ProgramJob, board: Board, load: str) -> ProgramJob:
    """Return a job with a load that lasts as long as all of its starts."""
    lasts_ns = job.lead_ns + job.starts_ns
    command = make_command(
        get_load(load),
        load_place(board, None),
        duration_s=int(lasts_ns / NS_PER_S) + 1,
        custom=(),
        seed=job.seed,
    )
    return replace(job, load=load, load_command=command)


# --- the program and its files ----------------------------------------------------


def _build(test: ProgramTest, progress: Progress) -> None:
    """Run the build command; MeasurementError with its last lines if it fails."""
    if not test.build:
        return
    with temporary_folder("build", error=MeasurementError) as folder:
        log = folder / "log"
        status = process.run_watched(
            test.build,
            timeout_s=BUILD_PATIENCE_S,
            log=log,
            watch=lambda: progress(Step("building the program", 0)),
            cwd=test.path("."),
        )
        if status == 0:
            return
        lines = log.read_bytes()[-(64 << 10) :].decode("utf-8", "replace").splitlines()
    shown = "".join(f"\n  {one[:SHOWN_CHARACTERS]}" for one in lines[-SHOWN_LINES:])
    how = f"status {status}" if status >= 0 else f"signal {-status}"
    raise MeasurementError(
        f"the build command ended with {how}: {' '.join(test.build)[:200]}"
        f"{shown or '; it printed nothing'}"
    )


def _tree(test: ProgramTest, board: Board, context: BuildContext) -> ProgramTree:
    tree = tree_for(board)
    if test.packages:
        part = packages_part(context, test.packages, get_arch(board.arch))
        put_all(tree, packages_entries(part))
        put_merged_links(tree)
    if test.root is not None:
        put_all(tree, _folder(test, test.root))
    for place, path in test.files.items():
        put_all(tree, entries_of(test.path(path), place))
    put_users(tree)
    return tree


def _folder(test: ProgramTest, root: str) -> Mapping[str, Entry]:
    path = test.path(root)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: no directory: write a file into files")
    return entries_of(path, "")


def _program(
    test: ProgramTest, board: Board, tree: ProgramTree, context: BuildContext
) -> Program:
    if not test.command:
        raise UsageError(
            'name the program to run: command = ["./control"] in the table [program], '
            "or rtscope test -- ./control"
        )
    program = program_of(
        test.command,
        get_arch(board.arch),
        tree=tree,
        base=test.path("."),
        checked=[one for one in test.files if tree.file(one) is not None],
    )
    for word, place in _files_left_here(test, tree):
        context.log(
            f"{word} is a file of this computer, and not of the board: if the program "
            f"is to find it, add --files {place}={word}"
        )
    if test.directory not in _MADE and not tree.has_folder(test.directory):
        raise UsageError(
            f"directory: {test.directory}: the board has no such directory: bring it "
            "with files or root, or write /tmp"
        )
    return program


def _files_left_here(test: ProgramTest, tree: ProgramTree) -> Iterator[tuple[str, str]]:
    """Yield arguments that name a file here which nothing brings, and its place."""
    for word in test.command[1:]:
        path = posixpath.join(test.directory, word)
        place = posixpath.normpath(path).lstrip("/")
        with suppress(OSError, ValueError):
            is_here = test.path(word).is_file() and not place.startswith(_KERNELS)
            if is_here and tree.file(place) is None:
                yield word, place


_KERNELS = ("proc/", "sys/", "dev/")


_MADE = ("/", "/tmp", "/dev/shm", "/run")


def _user(test: ProgramTest, tree: ProgramTree) -> tuple[int, int]:
    """Return the uid and gid of the user of a test."""
    if test.user[0].isdigit():
        uid, _, gid = test.user.partition(":")
        return int(uid), int(gid or uid)
    file = tree.file(PASSWD)
    text = b"" if file is None else file.content
    rows = [line.split(":") for line in text.decode("utf-8", "replace").splitlines()]
    users = {row[0]: row for row in rows if len(row) > _GID}
    row: Sequence[str] = users.get(test.user, ())
    if not row or not (row[_UID].isdecimal() and row[_GID].isdecimal()):
        raise UsageError(
            f"user: {no_such('user', test.user, list(users))}: bring /etc/passwd with "
            "files, or write a number such as 1000"
        )
    return int(row[_UID]), int(row[_GID])


_UID, _GID = 2, 3
