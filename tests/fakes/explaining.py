"""Explanations of runs without a path: as late as the run, by one cause."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakes.paths import Step, section
from fakes.wakeuppaths import SWITCH, TABLE, THREAD, TIMER
from rtscope.explain.activity import Recording
from rtscope.explain.directory import Explained, every_run
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.runs import explained_run
from rtscope.host.errors import UsageError
from rtscope.record.explanation import EXPLAINED, write_explained
from rtscope.record.model import RunRecord

OTHERS_NS = sum(step[0] for step in (*TIMER, *SWITCH, *THREAD))


class FakeExplaining:
    """Put it in place of `rtscope.explain.directory.explained_runs`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        """The runs that were to be explained: cell/run."""
        self.culprit: Callable[[str], str] = lambda cell: "zap"
        """The function that kept interrupts off, by the directory of the cell."""
        self.before: Callable[[str], None] = lambda run: None
        """Called with each run first; may raise."""

    def __call__(self, path: Path, run_id: str, **_: Any) -> Explained:
        """Explain a run, and write that beside its record, as the real one does."""
        place = f"{path.name}/{run_id}"
        self.asked.append(place)
        self.before(place)
        (one,) = every_run(path, run_id)
        recording = self._recording(one.record, self.culprit(path.name))
        made = explained_run(one.record, [recording.explanation])
        write_explained(one.directory / EXPLAINED, made.document)
        return Explained((made,), ((recording,),))

    def _recording(self, record: RunRecord, culprit: str) -> Recording:
        late = record.max_ns or 0
        if late <= OTHERS_NS:
            raise UsageError(f"{record.run.id}: no paths were recorded (too short)")
        off_ns = late - OTHERS_NS
        steps: list[Step] = [(100, culprit), (off_ns, f"{culprit}+")]
        steps += [*TIMER, *SWITCH, *THREAD]
        found = section(
            steps, TABLE, late=late, flags=((0, 1), (50, 0), (100 + off_ns, 1))
        )
        explanation = explain_path(found, TABLE, arch="riscv64")
        title = f"{record.run.id}, worst wake-up 1"
        return Recording(title, found, explanation, TABLE, "riscv64")
