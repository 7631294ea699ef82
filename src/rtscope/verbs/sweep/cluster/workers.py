"""What the workers of a cluster do, as one sees it: computing, done, failed, gone."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rtscope.measure.execute import WorkerProgress, WorkersProgress


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
