"""
Run boots on the workers of a cluster: bundles sent, boots run, what each worker does.

The scheduler places tasks and gives those of a dead worker to another. What it cannot
know is here: who lacks which part, who must not compute a run again, and which worker
fails where others do not.
"""

import contextlib
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from rtscope.boards.parts.cache import Part
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import Recording
from rtscope.boards.recording.secondpass import is_cut
from rtscope.boards.runs.assemble import inputs_before, inputs_of
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.prepare import PreparedCampaign, RunRequest
from rtscope.boards.runs.runner import measured_of, recording_of
from rtscope.boards.runs.store import Origin, Stored, StoredResults
from rtscope.host.errors import BoardError, MeasurementError, TargetError
from rtscope.measure.assemble import Measured
from rtscope.measure.execute import (
    OnEvent,
    PendingRuns,
    WorkerProgress,
    WorkersProgress,
)
from rtscope.measure.plan import Plan
from rtscope.record.model import InputDigests
from rtscope.verbs.sweep.cluster.task import Answer, Task, task_of

# --- what the workers of a cluster do, as one sees it: computing, done, failed, gone --


@dataclass(slots=True)
class Workers:
    """The workers that were ever seen."""

    log: Callable[[str], None]
    done: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    _boards: dict[str, int] = field(default_factory=dict)
    _there: frozenset[str] = frozenset()
    _runs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By worker, those that compute first."""

    def see(self, there: Mapping[str, int], runs: Mapping[str, Sequence[str]]) -> None:
        """Take note of who is there with so many boards, and of the runs of each."""
        for name in sorted(self._there - there.keys()):
            had = len(self._runs.get(name, ()))
            others = f": others compute its {had} run{'s' * (had > 1)}" if had else ""
            self.log(f"worker {name} is gone{others}")
        for name in sorted((there.keys() & self._boards.keys()) - self._there):
            self.log(f"worker {name} is back")
        self._boards |= there
        self._there, self._runs = frozenset(there), runs

    def progress(self, refused: Mapping[str, str]) -> WorkersProgress:
        """Return what each does; `refused` has why some get no more."""
        return WorkersProgress(
            {name: self._one(name, refused.get(name, "")) for name in self._boards}
        )

    def _one(self, name: str, refused: str) -> WorkerProgress:
        boards = self._boards[name]
        runs = self._runs.get(name, ()) if name in self._there else ()
        return WorkerProgress(
            boards,
            runs=tuple(runs[:boards]),
            waiting=len(runs[boards:]),
            done=self.done[name],
            failed=self.failed[name],
            refused=refused,
            is_gone=name not in self._there,
        )


# Run boots on the workers of a cluster, and send each worker the bundles that it lacks.

POLL_S = 2.0
WAIT_S = 120.0
"""For the first worker, or for another one when all are gone."""
QUEUED_PER_THREAD = 2
"""Tasks that wait at the scheduler for each thread of a worker."""
TRIES = 2
"""Boots of a run that may fail, each on another worker if that is known."""
MAX_PART_REQUESTS = 8
"""Times that a worker may request parts of a run: each is sent once."""


class Scheduler(Protocol):
    """The scheduler of a cluster, as far as it is used here."""

    @property
    def address(self) -> str:
        """Its address."""
        ...

    def workers(self) -> Mapping[str, int]:
        """Return the threads of each worker by its name; TargetError if it is gone."""
        ...

    def examine(self, worker: str) -> str:
        """Return why a worker cannot take tasks, else nothing."""
        ...

    def submit(self, task: Task, *, among: Collection[str] | None) -> int:
        """Give it a task, for these workers alone if any are named; return a ticket."""
        ...

    def give_up(self, ticket: int) -> None:
        """Take a task back."""
        ...

    def answers(self, timeout_s: float) -> Mapping[int, Answer]:
        """Wait for the next answers, and return them by ticket; empty if too late."""
        ...

    def computing(self) -> Mapping[str, Sequence[int]]:
        """Return the tickets that each worker computes or has waiting."""
        ...

    def send(self, part: Part, pin: str, *, worker: str) -> str:
        """Give a part to a worker; return why it could not take it, else nothing."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait before looking again."""
        ...


@dataclass(slots=True)
class _Job:
    """A run on its way."""

    request: RunRequest
    prepared: Prepared
    recording: Recording | None
    inputs: InputDigests
    task: Task
    failed_on: dict[str, str] = field(default_factory=dict)
    """Why it failed, by worker."""
    failures: int = 0
    """How often it failed; one cannot always tell on which worker."""
    lacked: Counter[str] = field(default_factory=Counter)
    """How often a worker lacked parts of it."""
    among: frozenset[str] | None = None
    """The workers that it waits for; None: any."""


@dataclass(frozen=True, slots=True)
class ClusterRunner:
    """Boots each prepared run on a worker."""

    scheduler: Scheduler
    prepared: PreparedCampaign
    failed: Callable[[str, MeasurementError], None]
    """Gets a run without a result by its id."""
    log: Callable[[str], None]
    results: StoredResults | None = None
    reuse: bool = False
    again: Mapping[str, str] = field(default_factory=dict)
    """
    Runs that are computed a second time, on another worker than the named run; left
    out if that fails.
    """

    @contextlib.contextmanager
    def start(self, plan: Plan, on_event: OnEvent) -> Iterator[PendingRuns]:
        """Submit as many tasks as workers take, and yield each run when it is over."""
        work = _Work(self)
        try:
            yield work.finished(on_event)
        finally:
            work.give_up()


@dataclass(slots=True)
class _Work:
    """The state of a campaign on a cluster."""

    runner: ClusterRunner
    waiting: deque[tuple[RunRequest, Prepared]] = field(default_factory=deque)
    next: _Job | None = None
    """Submitted as soon as there is room for it."""
    after: dict[str, tuple[RunRequest, Prepared]] = field(default_factory=dict)
    """Second computations, by the id of the first one."""
    underway: dict[int, _Job] = field(default_factory=dict)
    by_worker: dict[str, str] = field(default_factory=dict)
    """Who computed a run, by its id."""
    refused: dict[str, str] = field(default_factory=dict)
    """Workers that get nothing more, and why."""
    known: set[str] = field(default_factory=set)
    """Workers that are there and were examined."""
    sent: set[tuple[str, str]] = field(default_factory=set)
    """(worker, pin of a part)."""
    is_alone_told: bool = False
    """Whether a message has named the worker that checks itself."""
    workers: Workers = field(init=False)

    def __post_init__(self) -> None:
        self.workers = Workers(self.runner.log)
        again = self.runner.again
        for request, prepared in self.runner.prepared.runs:
            if (first := again.get(request.run.id)) is not None:
                self.after[first] = (request, prepared)
            else:
                self.waiting.append((request, prepared))

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler."""
        return self.runner.scheduler

    def finished(self, on_event: OnEvent) -> PendingRuns:
        """Yield each run when its result is there."""
        self._progress()
        while self.waiting or self.next is not None or self.underway:
            yield from self._fill()
            answers = self.scheduler.answers(POLL_S) if self.underway else {}
            for ticket, answer in answers.items():
                if (job := self.underway.pop(ticket, None)) is not None:
                    yield from self._take(job, answer)
            on_event(self._progress())
            if not answers and self.underway:
                self._wait_for_workers()
                self._rescue()

    def _progress(self) -> WorkersProgress:
        """Return what each worker does."""
        ids = {ticket: job.request.run.id for ticket, job in self.underway.items()}
        runs = {
            worker: [ids[ticket] for ticket in sorted(tickets) if ticket in ids]
            for worker, tickets in self.scheduler.computing().items()
        }
        self.workers.see(self.scheduler.workers(), runs)
        return self.workers.progress(self.refused)

    def give_up(self) -> None:
        """Take back what is under way."""
        for ticket in self.underway:
            self.scheduler.give_up(ticket)
        self.underway.clear()

    def _usable(self) -> dict[str, int]:
        """Return the threads of the workers that can compute."""
        workers = self.scheduler.workers()
        self.known &= workers.keys()
        for name in workers.keys() - self.known:
            self.known.add(name)
            # One that comes back was mended, or has lost what it was sent.
            self.refused.pop(name, None)
            self.sent = {(worker, pin) for worker, pin in self.sent if worker != name}
            if why := self.scheduler.examine(name):
                self._refuse(name, why)
        return {name: n for name, n in workers.items() if name not in self.refused}

    def _wait_for_workers(self) -> dict[str, int]:
        """Return the workers, at least one; TargetError if none comes."""
        waited_s = 0.0
        while not (usable := self._usable()):
            there = self.scheduler.workers().keys()
            all_refused = bool(there) and there <= self.refused.keys()
            if all_refused or waited_s >= WAIT_S:
                whys = "".join(f"; {name}: {why}" for name, why in self.refused.items())
                raise TargetError(
                    f"{self.scheduler.address}: no worker is left{whys}; start one: "
                    f"{worker_command(self.scheduler.address)}"
                )
            if waited_s == 0:
                self.runner.log(
                    f"no worker is connected to {self.scheduler.address}: waiting up "
                    f"to {WAIT_S:.0f} s for one"
                )
            self.scheduler.wait(POLL_S)
            waited_s += POLL_S
        return usable

    def _fill(self) -> PendingRuns:
        """Submit tasks; yield the runs whose results are stored, without any worker."""
        room: int | None = None
        while self.next is not None or self.waiting:
            if self.next is None:
                request, prepared = self.waiting.popleft()
                inputs = inputs_before(request, prepared)
                recording = recording_of(request, prepared)
                if (stored := self._stored(request, inputs, recording)) is not None:
                    self.by_worker[request.run.id] = stored.origin.worker
                    yield request.run, partial(_of_stored, request, prepared, stored)
                    self._second(request.run.id)
                    continue
                task = task_of(request, prepared, recording, inputs)
                self.next = _Job(request, prepared, recording, inputs, task)
            if room is None:
                threads = sum(self._wait_for_workers().values())
                room = QUEUED_PER_THREAD * threads - len(self.underway)
            if room <= 0:
                return
            job, self.next = self.next, None
            self._submit(job)
            room -= 1

    def _stored(
        self, request: RunRequest, inputs: InputDigests, recording: Recording | None
    ) -> Stored | None:
        runner = self.runner
        if not runner.reuse or runner.results is None or self._is_second(request):
            return None
        if request.campaign.parts:  # a stored result may lack them
            return None
        return runner.results.find(inputs, recording)

    def _is_second(self, request: RunRequest) -> bool:
        return request.run.id in self.runner.again

    def _second(self, first: str) -> None:
        """Let the second computation of a run begin, if there is one."""
        if (second := self.after.pop(first, None)) is not None:
            self.waiting.appendleft(second)

    def _submit(self, job: _Job) -> None:
        """Give a job to the scheduler, for workers that have not failed with it."""
        avoid = {*job.failed_on, *self.refused}
        first = self.runner.again.get(job.request.run.id, "")
        if worker := self.by_worker.get(first):
            avoid.add(worker)
        job.among = None
        if avoid:
            others = frozenset(self.scheduler.workers()) - avoid
            job.among = others or frozenset(self._wait_for_workers())
        if worker and job.among == frozenset({worker}):
            self._tell_alone(worker)
        self.underway[self.scheduler.submit(job.task, among=job.among)] = job

    def _tell_alone(self, worker: str) -> None:
        """Say once that one worker computes a run twice."""
        if not self.is_alone_told:
            self.is_alone_told = True
            self.runner.log(
                f"no other worker than {worker} is there: it computes again what "
                "another one should check"
            )

    def _rescue(self) -> None:
        """Submit again what waits for workers that are all gone."""
        there = self.scheduler.workers().keys()
        for ticket, job in list(self.underway.items()):
            if job.among is not None and not job.among & there:
                self.scheduler.give_up(ticket)
                del self.underway[ticket]
                self._submit(job)

    def _take(self, job: _Job, answer: Answer) -> PendingRuns:
        if answer.kind == "booted":
            yield from self._booted(job, answer)
        elif answer.kind == "failed":
            self._failed(job, answer)
        else:
            if answer.kind == "lacks":
                self._send(job, answer)
            else:
                self._refuse(answer.worker, answer.why)
            self._submit(job)

    def _send(self, job: _Job, answer: Answer) -> None:
        """Send a worker the parts that it lacks, each once."""
        job.lacked[answer.worker] += 1
        if job.lacked[answer.worker] > MAX_PART_REQUESTS:
            self._refuse(answer.worker, "it loses the parts that rtscope sends")
            return
        parts = {part.name: part for part in job.prepared.parts}
        if not 0 < len(answer.lacking) == len(parts.keys() & {*answer.lacking}):
            self._refuse(answer.worker, "it asks for what is no part of the board")
            return
        for name in answer.lacking:
            key = (answer.worker, job.task.pins[name])
            if key in self.sent:
                continue
            self.sent.add(key)
            why = self.scheduler.send(parts[name], key[1], worker=answer.worker)
            if why:
                self._refuse(answer.worker, f"it cannot take {name}: {why}")
                return

    def _refuse(self, worker: str, why: str) -> None:
        """Give a worker nothing more."""
        if worker not in self.refused:
            self.refused[worker] = why
            self.runner.log(f"worker {worker} gets no more runs: {why}")

    def _failed(self, job: _Job, answer: Answer) -> None:
        """Try another worker, as the first may have no space; then it is a failure."""
        job.failed_on[answer.worker] = answer.why
        self.workers.failed[answer.worker] += 1
        job.failures += 1
        others = self._usable().keys() - job.failed_on.keys()
        if job.failures < TRIES and others:
            self._submit(job)
            return
        name = job.request.run.id
        who = " and ".join(sorted(job.failed_on))
        self.runner.failed(name, BoardError(f"{name}: on {who}: {answer.why}"))

    def _booted(self, job: _Job, answer: Answer) -> PendingRuns:
        request, prepared = job.request, job.prepared
        try:
            booted = answer.booted()
            if inputs_of(request, prepared, booted) != job.inputs:
                raise BoardError("it booted other inputs than those of the task")
        except BoardError as error:
            self._refuse(answer.worker, str(error))
            self._submit(job)
            return
        for worker in job.failed_on.keys() & self.known:
            why = job.failed_on[worker]
            self._refuse(worker, f"it failed where {answer.worker} did not: {why}")
        self.by_worker[request.run.id] = answer.worker
        self.workers.done[answer.worker] += 1
        yield request.run, partial(self._measured, job, booted, answer.worker)
        self._second(request.run.id)

    def _measured(self, job: _Job, booted: Booted, worker: str) -> Measured:
        """Return what was measured, and store it; BoardError if that is nothing."""
        measured = measured_of(job.request, job.prepared, booted, worker=worker)
        results = self.runner.results
        is_second = self._is_second(job.request)
        if results is not None and not is_second and not is_cut(booted):
            origin = Origin(job.request.started, worker)
            results.keep(job.inputs, job.recording, booted, origin)
        return measured


def worker_command(address: str) -> str:
    """Return what to type for a worker; plain, it must listen on this machine alone."""
    options = (
        "--tls-ca-file FILE --tls-cert FILE --tls-key FILE"
        if address.startswith("tls:")
        else "--host 127.0.0.1"
    )
    return f"dask worker {address} {options} --memory-limit 0"


def _of_stored(request: RunRequest, prepared: Prepared, stored: Stored) -> Measured:
    return measured_of(request, prepared, stored.booted, stored=stored.origin)
