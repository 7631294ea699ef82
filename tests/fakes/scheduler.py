"""A scheduler without a network: its workers answer as they are told."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rtscope.boards.parts.cache import Part
from rtscope.host.errors import TargetError
from rtscope.verbs.sweep.cluster.task import Answer, Task

Answers = Callable[[str, Task], Answer | None]
"""What a worker makes of a task; None: it has died of it."""


@dataclass
class FakeScheduler:
    """Gives each task to the worker with the fewest so far; a dead one's to another."""

    answer: Answers
    threads: dict[str, int]
    address: str = "tcp://127.0.0.1:8786"
    unfit: dict[str, str] = field(default_factory=dict)
    """Why workers cannot take tasks."""
    refuses: dict[str, str] = field(default_factory=dict)
    """Why workers cannot take parts."""
    joins: dict[int, str] = field(default_factory=dict)
    """Workers that come when somebody has waited so many times."""
    lost_after: int | None = None
    """Answers after which the scheduler is gone."""
    sent: list[tuple[str, str]] = field(default_factory=list)
    """(worker, part)."""
    asked: Counter[str] = field(default_factory=Counter)
    """Tasks by worker."""
    given_up: list[int] = field(default_factory=list)
    works_on: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Tickets by worker, as the scheduler tells them."""
    waits: int = 0
    _tickets: int = 0
    _tasks: dict[int, tuple[Task, frozenset[str] | None]] = field(default_factory=dict)

    def workers(self) -> Mapping[str, int]:
        """Return the threads of each worker."""
        if self.lost_after == 0:
            raise TargetError(f"the scheduler at {self.address} does not answer")
        return dict(self.threads)

    def examine(self, worker: str) -> str:
        """Return why a worker cannot take tasks."""
        return self.unfit.get(worker, "")

    def submit(self, task: Task, *, among: Collection[str] | None) -> int:
        """Take a task."""
        self._tickets += 1
        self._tasks[self._tickets] = task, None if among is None else frozenset(among)
        return self._tickets

    def give_up(self, ticket: int) -> None:
        """Drop a task."""
        self.given_up.append(ticket)
        self._tasks.pop(ticket, None)

    def answers(self, timeout_s: float) -> Mapping[int, Answer]:
        """Let a worker answer the oldest task that one of them may take."""
        self.workers()
        for ticket, (task, among) in self._tasks.items():
            able = [name for name in self.threads if among is None or name in among]
            if not able:
                continue
            worker = min(able, key=lambda name: (self.asked[name], name))
            self.asked[worker] += 1
            if (answer := self.answer(worker, task)) is None:
                del self.threads[worker]
                return {}
            del self._tasks[ticket]
            if self.lost_after is not None:
                self.lost_after -= 1
            return {ticket: answer}
        return {}

    def computing(self) -> Mapping[str, Sequence[int]]:
        """Return what it was made to tell."""
        self.workers()
        return self.works_on

    def send(self, part: Part, pin: str, *, worker: str) -> str:
        """Note what was sent to whom."""
        self.sent.append((worker, part.name))
        return self.refuses.get(worker, "")

    def wait(self, seconds: float) -> None:
        """Let no time pass."""
        self.waits += 1
        if (name := self.joins.pop(self.waits, None)) is not None:
            self.threads[name] = 1
