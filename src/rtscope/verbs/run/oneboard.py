"""
One board of a campaign over several: `python -m rtscope.verbs.run.oneboard`.

It takes one request, a line of JSON, from its standard input, measures as `rtscope run`
does, and tells its progress in lines of JSON. Messages go to standard error. When its
standard input ends, the process that started it is gone: it ends as after Ctrl-C.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatchmethod
from pathlib import Path
from typing import Any

from rtscope.cli.options import DisplayOptions
from rtscope.cli.progress import OVERHEAD_NS, name_of, settings_text
from rtscope.cli.results import PAGE, model_of, question_in, write_page
from rtscope.contract import KernelMessage, Tick
from rtscope.host.errors import MeasurementError, RecordError, RtscopeError
from rtscope.host.files.jsontext import json_text
from rtscope.host.process import start_thread
from rtscope.measure.campaign.file import from_dict
from rtscope.measure.campaign.options import Options
from rtscope.measure.execute import (
    SIGNALS,
    BoardsProgress,
    Event,
    LineReceived,
    RunFinished,
    RunStarted,
    SettingsChanged,
    Settling,
    execute,
)
from rtscope.measure.plan import Plan
from rtscope.record.directory import place
from rtscope.record.directory.place import CAMPAIGN
from rtscope.record.model import Run
from rtscope.verbs.run.boardprocess import INTERRUPTED
from rtscope.verbs.run.run import RunRequest, Work, begin, open_again, runner_of

CRASHED = os.EX_SOFTWARE

AGAIN_S = 10.0
"""Between two signals to a process that nobody waits for any more."""


def main() -> int:
    """Measure one board as asked; the exit status is that of `rtscope run`."""
    for signo in SIGNALS:
        signal.signal(signo, signal.default_int_handler)
    request = json.loads(sys.stdin.buffer.readline())
    said = _Said(_taken_over())
    status, why = _ended(request, said)
    with contextlib.suppress(KeyboardInterrupt):
        said.tell("ended", status=status, why=why)
    return status


def _taken_over() -> int:
    """Keep both pipes from all that is started here; return the one for lines."""
    lines, link = os.dup(1), os.dup(0)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    main_thread = threading.main_thread().ident
    assert main_thread is not None

    def watch() -> None:
        while os.read(link, 64):
            pass
        while True:
            signal.pthread_kill(main_thread, signal.SIGINT)
            time.sleep(AGAIN_S)

    start_thread(watch)
    return lines


def _ended(request: Mapping[str, Any], said: "_Said") -> tuple[int, str]:
    """Measure; return the exit status, and the reason where it is an error."""
    try:
        return _measure(request, said), ""
    except RtscopeError as error:
        return error.exit_status, str(error)
    except OSError as error:
        where = error.filename or "cannot write a file"
        return MeasurementError.exit_status, f"{where}: {error.strerror}"
    except KeyboardInterrupt:
        return INTERRUPTED, "interrupted"
    except Exception:
        traceback.print_exc()
        return CRASHED, "an error of rtscope itself: see above"


def _measure(request: Mapping[str, Any], said: "_Said") -> int:
    path = Path(request["directory"])
    resumed = CAMPAIGN.is_in(path)
    asked = RunRequest(
        options=Options(),
        jobs=request["jobs"],
        reuse=request["reuse"],
        out=path,
        resume=path if resumed else None,
        yes=True,
        display=DisplayOptions(),
    )
    sys.argv = list(request["command"])
    with contextlib.ExitStack() as held:
        if resumed:
            held.enter_context(place.hold(path))
            work = open_again(path, None, asked, held)
        else:
            campaign = from_dict(request["campaign"], source=str(path))
            work = begin(campaign, None, asked, held)
            held.enter_context(place.hold(path))
        said.begin(work.plan)
        try:
            with (
                place.resumable(path, CAMPAIGN),
                runner_of(work, reuse=asked.reuse) as runner,
            ):
                for _ in execute(work.plan, runner, work.store, on_event=said):
                    pass
        except (RtscopeError, KeyboardInterrupt):
            with contextlib.suppress(RecordError):  # the first cause counts
                _write(work)
            raise
        return _write(work)


def _write(work: Work) -> int:
    """Write the page of the board; return the exit status of its verdict."""
    records = work.store.records()
    if not records:
        return 0
    question = question_in(work.campaign)
    model = model_of(records, question, paths=[work.store.path])
    write_page(model, work.store.path / PAGE)
    return model.exit_status


@dataclass(slots=True)
class _Said:
    """Tells the events of a campaign in lines of JSON."""

    lines: int
    """The descriptor."""
    plan: Plan | None = None
    left_ns: int = 0
    done: set[str] = field(default_factory=set)

    def begin(self, plan: Plan) -> None:
        """Tell how much there is to do."""
        self.plan, self.left_ns = plan, 0
        if not plan.boots_each:
            self.left_ns = plan.total_ns + OVERHEAD_NS * len(plan.runs)
        self.tell("plan", runs=len(plan.runs), left_ns=self.left_ns)

    def tell(self, kind: str, **values: object) -> None:
        """Write a line; one that nobody reads is dropped."""
        line = json_text({"is": kind, **values}, indent=None).encode()
        with contextlib.suppress(BrokenPipeError):
            while line:
                line = line[os.write(self.lines, line) :]

    def __call__(self, event: Event) -> None:
        """Tell an event."""
        self._told(event)

    @singledispatchmethod
    def _told(self, event: Event) -> None:
        """Leave out what nobody waits for."""

    @_told.register
    def _(self, event: Settling) -> None:
        self.tell("phase", text="settling", left_ns=self.left_ns)

    @_told.register
    def _(self, event: SettingsChanged) -> None:
        self.tell("note", text=settings_text(event.tuned))

    @_told.register
    def _(self, event: RunStarted) -> None:
        assert self.plan is not None
        if not self.plan.boots_each:  # a board's has ended by now
            left_ns, self.left_ns = self.left_ns, self.left_ns - self._cost_ns(event)
            head = f"{event.number} of {event.of}: {name_of(event.run)}"
            duration_ns = event.run.duration_ns
            self.tell("run", text=head, left_ns=left_ns, duration_ns=duration_ns)

    def _cost_ns(self, event: RunStarted) -> int:
        assert self.plan is not None
        return self.plan.measuring_ns(event.run) + self.plan.warmup_ns + OVERHEAD_NS

    @_told.register
    def _(self, event: LineReceived) -> None:
        match event.line:
            case Tick(cpus=cpus) if cpus:
                self.tell("worst", max_ns=max(cpu.max_ns for cpu in cpus))
            case KernelMessage() if event.line.level <= 4:
                self.tell("note", text=f"kernel: {event.line.text[:200]}")

    @_told.register
    def _(self, event: BoardsProgress) -> None:
        assert self.plan is not None
        runs = {run.id: run for run in self.plan.runs}
        parts = [_part(one.measured_ns, runs[name]) for name, one in _in(event, runs)]
        names = ", ".join(name_of(runs[name]) for name, _ in _in(event, runs))
        self.tell("boots", text=names, part=sum(parts))

    @_told.register
    def _(self, event: RunFinished) -> None:
        self.done.add(event.record.run.id)
        self.tell(
            "done",
            text=name_of(event.record.run),
            max_ns=event.record.max_ns,
            number=len(self.done),
        )


def _in(event: BoardsProgress, runs: Mapping[str, Run]) -> list[tuple[str, Any]]:
    return [pair for pair in sorted(event.boards.items()) if pair[0] in runs]


def _part(measured_ns: int | None, run: Run) -> float:
    return min(1.0, (measured_ns or 0) / run.duration_ns)


if __name__ == "__main__":
    sys.exit(main())
