"""
A campaign over several boards: `rtscope run --target a,b`, or `--lab lab.toml`.

    OUT/lab.json                 the boards, and the campaign of each
    OUT/boards/NAME              the result directory of one, as `rtscope run` makes it
    OUT/report.html              the page of all

Machines are measured beside each other, each by a process of its own. This machine
comes first and alone, since work for others would disturb it. Virtual boards, which
take all CPUs of this machine, take turns beside the others.
"""

import contextlib
import selectors
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rtscope.cli.console import put_json, say, stderr_console, typed_words
from rtscope.cli.options import ask_command, ask_programs
from rtscope.cli.results import PAGE
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files import write_atomically
from rtscope.measure.campaign.file import from_dict, to_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.execute import put_off
from rtscope.measure.plan import make_plan, with_order_drawn
from rtscope.measure.preflight import refuse_full_disk
from rtscope.present.document import Detail
from rtscope.present.render.page import page_of
from rtscope.record.directory import place
from rtscope.record.directory.place import CAMPAIGN, LAB
from rtscope.record.directory.records import ResultDir, read_record, refuse_links
from rtscope.record.model import RunRecord
from rtscope.verbs.run.boardprocess import INTERRUPTED, BoardProcess, BoardTask, Ended
from rtscope.verbs.run.boardsreport import (
    BoardResult,
    boards_report,
    print_boards,
    report_json,
    report_page,
    result_of,
)
from rtscope.verbs.run.boardsview import BoardsDisplay
from rtscope.verbs.run.labfile import (
    MAX_BOARDS,
    LabBoard,
    boards_of,
    campaigns_of,
    checked_name,
    load_lab,
)
from rtscope.verbs.run.run import RunRequest, check_target, kernels_of, refuse_more

STARTING = 8
"""Processes at once that do not measure yet: each takes a second of a CPU to load."""

POLL_S = 0.5
ENDING_S = 90.0
"""For boards that were interrupted: longer than each of them is waited for."""

WORST_LAST = (0, 4, 1, 2, 3, INTERRUPTED, 70)
"""Exit statuses of boards, in the order in which one hides another."""


@dataclass(frozen=True, slots=True)
class LabWork:
    """The boards of a directory, with the campaign of each."""

    path: Path
    boards: tuple[LabBoard, ...]
    campaigns: tuple[Campaign, ...]
    typed: tuple[str, ...]
    jobs: int | None
    reuse: bool
    broken: Mapping[str, str] = field(default_factory=dict)
    """Why the directory of a board is of no use, by the board's name."""

    def directory(self, board: LabBoard) -> Path:
        """Return the result directory of a board."""
        return self.path / LAB.parts / board.name


def run_boards(request: RunRequest) -> int:
    """Measure several boards; show one report, and return the worst exit status."""
    if request.resume is not None:
        refuse_more(request)
        with place.hold(request.resume):
            return _carry_out(_opened(request.resume, request), request)
    work = _begun(request)
    with place.hold(work.path):
        return _carry_out(work, request)


def _carry_out(work: LabWork, request: RunRequest) -> int:
    ended: dict[str, Ended] = {}
    try:
        runs = _runs(work, ended)
        with (
            place.resumable(work.path, LAB),
            BoardsDisplay(stderr_console(), runs) as display,
        ):
            for name, how in ended.items():
                display.ended(name, how)
            _measure(work, runs, display, ended)
    except KeyboardInterrupt:
        with contextlib.suppress(RecordError):  # the first cause counts
            _show(work, ended, request)
        raise
    status = _show(work, ended, request)
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    return status


# --- a new directory, or one to go on with --------------------------------------------


def _begun(request: RunRequest) -> LabWork:
    options = replace(request.options, kernel=kernels_of(request.options.kernel))
    _refuse_of_one(request)
    if request.lab is not None:
        if options.target is not None:
            raise UsageError("--lab names the boards: leave --target out")
        boards = load_lab(request.lab, tags=request.tag)
    else:
        boards = boards_of(options.target or "")
    campaigns = campaigns_of(boards, request.campaign_file, options)
    _refuse_impossible(boards, campaigns, request)
    path = place.new_place(request.out)
    place.refuse_used(path, empty=False)
    refuse_full_disk(path)
    campaigns = [with_order_drawn(one) for one in campaigns]
    work = LabWork(
        *(path, boards, tuple(campaigns), typed_words(), request.jobs, request.reuse)
    )
    place.make_directory(path)
    place.write_document(path, LAB, _document(work), command=work.typed)
    return work


def _refuse_of_one(request: RunRequest) -> None:
    options = {
        "--identical-to": request.identical_to,
        "--bundle": request.bundle,
        "--require-identical": request.options.require_identical,
    }
    for name, value in options.items():
        if value:
            raise UsageError(f"{name} is for one board: leave it out, or name one")


def _refuse_impossible(
    boards: Sequence[LabBoard], campaigns: Sequence[Campaign], request: RunRequest
) -> None:
    """Refuse what a board cannot do, before anything is measured."""
    are_virtual = [one.board is not None for one in campaigns]
    for board, campaign, is_virtual in zip(boards, campaigns, are_virtual, strict=True):
        asked = request
        if any(are_virtual) and not is_virtual:
            asked = replace(request, jobs=None, reuse=False)
        try:
            check_target(campaign, asked)
            if campaign.require_identical:
                raise UsageError("require_identical is for a campaign of one board")
        except UsageError as error:
            raise UsageError(f"{board.title}: {error}") from error
        make_plan(campaign)


def _document(work: LabWork) -> Mapping[str, Any]:
    boards = [
        {
            "name": board.name,
            "target": board.target,
            "tags": list(board.tags),
            "campaign": to_dict(campaign),
        }
        for board, campaign in zip(work.boards, work.campaigns, strict=True)
    ]
    return {"boards": boards, "jobs": work.jobs, "reuse": work.reuse}


def _opened(path: Path, request: RunRequest) -> LabWork:
    document = place.read_document(path, LAB)
    refuse_links(path / LAB.parts)
    try:
        asked = document.asked
        rows, jobs = asked["boards"], asked["jobs"]
        if not 0 < len(rows) <= MAX_BOARDS or not isinstance(jobs, int | None):
            raise LAB.damaged(path)
        read = [_board_again(row, document.source, path) for row in rows]
        work = LabWork(
            path=path,
            boards=tuple(board for board, _, _ in read),
            campaigns=tuple(campaign for _, campaign, _ in read),
            typed=document.command,
            jobs=jobs,
            reuse=bool(asked["reuse"]),
            broken={board.name: why for board, _, why in read if why},
        )
    except (KeyError, TypeError) as error:
        raise LAB.damaged(path) from error
    if len({board.name for board in work.boards}) < len(work.boards):
        raise LAB.damaged(path)
    if not request.yes:
        for campaign in work.campaigns:
            ask_command(campaign)
        ask_programs(work.campaigns)
    if request.jobs is not None or request.reuse:
        return replace(
            work, jobs=request.jobs or work.jobs, reuse=work.reuse or request.reuse
        )
    return work


def _board_again(row: Any, source: str, path: Path) -> tuple[LabBoard, Campaign, str]:
    """
    Return a board of the document, and why its own directory is of no use.

    Of a campaign that has begun its own document counts.
    """
    name = checked_name(row["name"], f"{source}:")
    directory = path / LAB.parts / name
    refuse_links(directory)
    campaign = from_dict(row["campaign"], source=f"{source}: board {name}")
    tags, why = tuple(str(tag) for tag in row["tags"]), ""
    try:
        if CAMPAIGN.is_in(directory):
            begun = place.read_document(directory, CAMPAIGN)
            campaign = from_dict(begun.asked, source=begun.source)
    except (RecordError, UsageError) as error:
        why = f"{error}; {_anew(directory)}"
    return LabBoard(name, campaign.target, tags), campaign, why


# --- the processes --------------------------------------------------------------------


@dataclass(slots=True)
class _Lanes:
    """The boards that still wait: this machine alone first, virtual ones in turn."""

    here: list[BoardTask] = field(default_factory=list)
    virtual: list[BoardTask] = field(default_factory=list)
    machines: list[BoardTask] = field(default_factory=list)

    def next_one(self, running: Mapping[str, "_Running"]) -> BoardTask | None:
        """Take a board that may begin beside those that run; None: none may."""
        kinds = [one.kind for one in running.values()]
        if "here" in kinds or (self.here and kinds):
            return None
        if self.here:
            return self.here.pop(0)
        if sum(not one.measures for one in running.values()) >= STARTING:
            return None
        if self.machines:
            return self.machines.pop(0)
        return self.virtual.pop(0) if self.virtual and "virtual" not in kinds else None

    def kind_of(self, work: LabWork, task: BoardTask) -> str:
        """Return the lane of a board."""
        (target,) = (one.target for one in work.boards if one.name == task.name)
        if target == "local":
            return "here"
        return "virtual" if target.startswith("virtual:") else "machine"


@dataclass(slots=True)
class _Running:
    """A process of a board."""

    process: BoardProcess
    kind: str
    open_pipes: set[int]
    measures: bool = False


def _measure(
    work: LabWork,
    runs: Mapping[str, tuple[int, int]],
    display: BoardsDisplay,
    ended: dict[str, Ended],
) -> None:
    """Measure each board that is not done; note how each ended, as soon as it has."""
    lanes = _Lanes()
    by_kind = {"here": lanes.here, "virtual": lanes.virtual, "machine": lanes.machines}
    for task in _tasks(work, runs, ended):
        by_kind[lanes.kind_of(work, task)].append(task)
    running: dict[str, _Running] = {}
    with selectors.DefaultSelector() as pipes:
        try:
            while True:
                while (free := lanes.next_one(running)) is not None:
                    _start(free, lanes.kind_of(work, free), running, pipes, display)
                if not running:
                    return
                _read(running, pipes, display, ended)
        finally:
            if running:
                _end(running, pipes, display, ended)


def _runs(work: LabWork, ended: dict[str, Ended]) -> dict[str, tuple[int, int]]:
    """Return of each board its runs done, and those it wants; end it if none can."""
    counts = {}
    for board, campaign in zip(work.boards, work.campaigns, strict=True):
        done, planned, why = _done(work, board, campaign)
        if why:
            ended[board.name] = Ended(RecordError.exit_status, why)
        counts[board.name] = done, planned
    return counts


def _done(work: LabWork, board: LabBoard, campaign: Campaign) -> tuple[int, int, str]:
    """Return the runs done, those planned, and why the directory is of no use."""
    planned = {run.id for run in make_plan(campaign).runs}
    directory = work.directory(board)
    if why := work.broken.get(board.name, ""):
        return 0, len(planned), why
    try:
        is_begun = CAMPAIGN.is_in(directory)
        done = planned & ResultDir(directory).done_ids() if is_begun else ()
    except RecordError as error:
        return 0, len(planned), f"{error}; {_anew(directory)}"
    return len(done), len(planned), ""


def _anew(directory: Path) -> str:
    removed = shlex.quote(str(directory))
    return f"mend it, or remove {removed}: --resume then measures the board anew"


def _tasks(
    work: LabWork,
    runs: Mapping[str, tuple[int, int]],
    ended: Mapping[str, Ended],
) -> Iterator[BoardTask]:
    for board, campaign in zip(work.boards, work.campaigns, strict=True):
        done, planned = runs[board.name]
        if done == planned or board.name in ended:
            continue
        directory = work.directory(board)
        is_virtual = campaign.board is not None
        yield BoardTask(
            name=board.name,
            directory=directory,
            campaign=to_dict(campaign),
            command=work.typed,
            jobs=work.jobs if is_virtual else None,
            reuse=work.reuse and is_virtual,
        )


def _start(
    task: BoardTask,
    kind: str,
    running: dict[str, _Running],
    pipes: selectors.BaseSelector,
    display: BoardsDisplay,
) -> None:
    started = BoardProcess.start(task)
    running[task.name] = _Running(started, kind, set(started.pipes))
    for pipe in started.pipes:
        pipes.register(pipe, selectors.EVENT_READ, (task.name, pipe))
    display.begun(task.name)


def _read(
    running: dict[str, _Running],
    pipes: selectors.BaseSelector,
    display: BoardsDisplay,
    ended: dict[str, Ended],
) -> None:
    """Take what the processes tell, for a moment; note those that ended."""
    ready = pipes.select(POLL_S)
    for key, _ in ready:
        name, pipe = key.data
        one = running[name]
        lines = one.process.read(pipe)
        if lines is None:
            pipes.unregister(pipe)
            one.open_pipes.discard(pipe)
            continue
        for line in filter(None, lines):
            said = one.process.told(line) if pipe == one.process.pipes[0] else None
            if said is None:
                display.message(name, line)
            else:
                one.measures |= said["is"] == "plan"
                display.told(name, said)
    heard = {key.data[0] for key, _ in ready}
    for name, one in list(running.items()):
        # What it has started may keep a pipe open.
        is_over = name not in heard and one.process.is_over
        if one.open_pipes and not is_over:
            continue
        for pipe in one.open_pipes:
            pipes.unregister(pipe)
        ended[name] = one.process.close()
        del running[name]
        display.ended(name, ended[name])


def _end(
    running: dict[str, _Running],
    pipes: selectors.BaseSelector,
    display: BoardsDisplay,
    ended: dict[str, Ended],
) -> None:
    """Interrupt all that run, and wait until settings are back; then end them."""
    until = time.monotonic() + ENDING_S
    try:
        with put_off():
            for one in running.values():
                one.process.interrupt()
            while running and time.monotonic() < until:
                _read(running, pipes, display, ended)
    finally:
        for name, one in running.items():
            one.process.kill()
            ended[name] = one.process.close()
            display.ended(name, ended[name])
        running.clear()


# --- the answer -----------------------------------------------------------------------


def _show(work: LabWork, ended: Mapping[str, Ended], request: RunRequest) -> int:
    """
    Print the report of all boards and write its page; return the worst status.

    Raises RecordError, behind the report, for a page that cannot be written.
    """
    pairs = list(zip(work.boards, work.campaigns, strict=True))
    results = [_result(work, *pair, ended.get(pair[0].name)) for pair in pairs]
    report = boards_report(results, [one.deadline_ns for one in work.campaigns])
    status = _worst(one.status for one in results)
    page, failed = work.path / PAGE, None
    try:
        write_atomically(page, page_of(report_page(report)).encode())
    except RecordError as error:
        failed, status = error, _worst([status, error.exit_status])
    if request.json:
        put_json({**report_json(report), "exit_status": status})
    else:
        shown = "" if failed else str(page)
        print_boards(report, detail=request.display.detail, page=shown)
    if request.display.detail is not Detail.QUIET and report.is_to_continue:
        say(f"to continue: {LAB.to_go_on(work.path)}")
    if failed is not None and status == failed.exit_status:
        raise failed
    if failed is not None:
        say(f"{failed}")
    return status


def _worst(statuses: Iterable[int]) -> int:
    return max(statuses, key=WORST_LAST.index)


def _result(
    work: LabWork, board: LabBoard, campaign: Campaign, ended: Ended | None
) -> BoardResult:
    done, planned, why = _done(work, board, campaign)
    records: list[RunRecord] = []
    if not why:
        records, why = _records(ResultDir(work.directory(board)))
    if why:
        # What its process said of the same file has no word of what helps.
        said, status = "", RecordError.exit_status
        if ended is not None and ended.why:
            said, status = ended.why, ended.status
        both = why if not said or said in why else f"{said}; {why}"
        ended = Ended(status, both)
    return result_of(
        *(board, campaign, work.directory(board)),
        records=records,
        planned=planned,
        done=done,
        ended=ended,
        is_damaged=bool(why),
    )


def _records(store: ResultDir) -> tuple[list[RunRecord], str]:
    """Return the records that can be read, and why another cannot be."""
    read: list[RunRecord] = []
    why = ""
    for file in store.record_files():
        try:
            read.append(read_record(file))
        except RecordError as error:
            removed = shlex.quote(str(file.parent))
            why = f"{error}; remove {removed}: --resume then measures that run again"
    return read, why
