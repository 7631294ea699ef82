"""
Take mutants and see which of them the fast tests notice: `make mutants`.

The tree is copied, once for each process that works, and nothing is written into it.
The fast tests run once on unchanged code, to learn which test executes which line. Then
each mutant is written into a copy, and the tests that execute its lines run there, the
fastest first, until one fails or they have taken so much CPU time that the journal
calls the mutant capped. See `jobs`.

Each mutant has a name that outlives a move of its file. With --same-as, the mutants of
an earlier journal are tried again in this tree. See `comparison`.

Killed is what a test fails for. Looped is what takes many times the CPU time that its
tests take on unchanged code. What does not end, and takes no CPU time either, is
unsure, and counts as if it had survived: the machine may have been busy. Now and then
unchanged code takes the place of a mutant, to see how often tests fail for no reason.
"""

import argparse
import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mutants import areas, baseline, comparison, drawing, jobs
from mutants.baseline import Baseline
from mutants.drawing import Mutant
from mutants.jobs import Job
from mutants.results import KILLED, LOOPED, SURVIVED, UNSURE, Journal, Result

ROOT = Path(__file__).parents[2]
SEED = 20261122
COUNT = 1200
WANTED = 0.7
"""Share of dead mutants of all of src: what lab/mutants.md has, less its interval."""
MOST_BYTES = 4 << 30
"""Of memory: more is an error in the mutant, which it then is killed by."""
LONGEST_S, WAIT_FACTOR = 120, 8
"""After so long, and so many times the CPU time, what waits is ended."""
NOT_FOUND = 4
"""pytest's status where a test has another name than before."""

CONTROL_EVERY = 25
"""Mutants, for one time unchanged code."""


@dataclass(slots=True)
class Slot:
    """A copy of the tree, and the process that works in it."""

    tree: Path
    job: Job | None = None
    pid: int = 0
    ends_at: float = 0.0
    made_ns: int = 0
    """When the file was made that is replaced."""

    def take(self, job: Job) -> None:
        """Write a mutant."""
        path = self.tree / "src" / "rtscope" / job.mutant.file
        self.job, self.made_ns = job, path.stat().st_mtime_ns
        path.write_text(job.mutated)
        os.utime(path, (1, 1))  # not when the file was made that there is bytecode of

    def restore(self) -> None:
        """Write back what was there."""
        assert self.job is not None
        path = self.tree / "src" / "rtscope" / self.job.mutant.file
        path.write_text(self.job.original)
        os.utime(path, ns=(self.made_ns, self.made_ns))


def main() -> int:
    """Run; return 1 if too many survived."""
    asked = _asked()
    if asked.show:
        _told(asked, Journal.read(asked.journal))
        return 0
    # Children do not need a thread for each CPU.
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for signo in (signal.SIGTERM, signal.SIGHUP):  # the copies go then too
        signal.signal(signo, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="rtscope-mutants-") as folder:
        slots = [Slot(copied(Path(folder) / str(i))) for i in range(asked.jobs)]
        _preload()
        return _run(asked, slots)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--all", action="store_true", help="take all mutants: hours")
    parser.add_argument(
        "--count", type=int, default=COUNT, help="take so many: %(default)s"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="draw with: %(default)s")
    parser.add_argument(
        "--files",
        nargs="+",
        default=["*"],
        metavar="PATTERN",
        help="take mutants of these files alone, such as 'audit/*'; default: all",
    )
    parser.add_argument(
        "--journal",
        type=Path,
        metavar="FILE",
        help="write each result there, and leave out mutants whose result it has",
    )
    parser.add_argument(
        "--same-as",
        type=Path,
        metavar="JOURNAL",
        help="take the mutants that this journal has as killed, first with the test "
        "that killed each, and list those that live now",
    )
    parser.add_argument(
        "--show", action="store_true", help="tell what the journal has, and end"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tests", nargs="+", default=["tests/unit"])
    asked = parser.parse_args()
    if asked.show and not asked.journal:
        parser.error("--show needs --journal")
    return asked


@dataclass(frozen=True, slots=True)
class Draw:
    """The mutants to try, with what became of each before, in the order of trial."""

    mutants: list[tuple[Mutant, Result | None]]
    request: dict[str, object]
    """The first line of the journal."""
    names: list[str]
    """Of all mutants of the tree."""


def _run(asked: argparse.Namespace, slots: list[Slot]) -> int:
    source = slots[0].tree / "src" / "rtscope"
    in_areas = areas.files_of(source)
    texts = {file: (source / file).read_text() for file in in_areas}
    draw = _drawn(asked, in_areas, texts)
    kept = _beside(asked.journal, "baseline") if asked.journal else None
    if kept and not asked.journal.is_file():
        kept.unlink(missing_ok=True)  # of another journal of this name
    journal = Journal.opened(asked.journal, draw.request)
    if asked.journal:
        _beside(asked.journal, "names").write_text("\n".join(draw.names) + "\n")
    known = _baseline(asked.tests, slots, draw, texts, kept=kept)
    done = {result.key for result in journal.results}
    users = jobs.importers(texts)
    left = (
        job
        for i, (mutant, before) in enumerate(draw.mutants)
        for job in _with_control(
            i, jobs.job_of(mutant, texts[mutant.file], known, users, before=before)
        )
        if job.key not in done
    )
    with contextlib.suppress(KeyboardInterrupt):  # what is known is told
        work(slots, left, done=lambda result: _note(journal, result))
    return _told(asked, journal)


def _drawn(
    asked: argparse.Namespace, in_areas: dict[str, str], texts: dict[str, str]
) -> Draw:
    """Find all mutants, and draw some or take those of an earlier journal."""
    every = [
        mutant
        for file in drawing.fitting(in_areas, asked.files)
        for mutant in drawing.mutants_of(texts[file], file=file, area=in_areas[file])
    ]
    names = [mutant.name for mutant in every]
    request: dict[str, object] = {
        "commit": _git("describe", "--always", "--dirty").decode().strip(),
        "tests": " ".join(asked.tests),
        "of": len(every),
    }
    if not asked.same_as:
        every = drawing.unambiguous(every)
        count = len(every) if asked.all else asked.count
        drawn = drawing.drawn(every, count, seed=asked.seed)
        request |= {"seed": asked.seed, "drawn": len(drawn)}
        return Draw([(mutant, None) for mutant in drawn], request, names)
    before = Journal.read(asked.same_as)
    pairs, gone = comparison.matched(before.mutants, every)
    killed = [(mutant, result) for result, mutant in pairs if result.dead]
    request |= {"drawn": len(killed), "gone": [result.name for result in gone]}
    listed = _beside(asked.same_as, "names")
    if listed.is_file():
        request |= comparison.differences(listed.read_text().splitlines(), names)
    return Draw([(mutant, result) for mutant, result in killed], request, names)


def _beside(journal: Path, what: str) -> Path:
    """Return the name of another file of a journal."""
    return journal.with_name(f"{journal.name}.{what}")


def _baseline(
    tests: Sequence[str],
    slots: list[Slot],
    draw: Draw,
    texts: dict[str, str],
    *,
    kept: Path | None,
) -> Baseline:
    """Run the tests on unchanged code, or read the file that an ended run has kept."""
    if kept and kept.is_file():
        known = baseline.merged([kept])
    else:
        lines: dict[str, set[int]] = {file: set() for file in texts}
        for mutant, _ in draw.mutants:
            text = texts[mutant.file]
            lines[mutant.file] |= drawing.lines_to_run(text, mutant)
        known = first_run(slots, tests=tests, lines=lines)
        if kept:
            baseline.write(known, kept)
    seconds = sum(known.cpu_s.values())
    print(f"{len(known.cpu_s)} fast tests in {seconds:.0f} s of CPU time")
    if known.broken:
        print("left out, for they fail without a mutant:", *known.broken, sep="\n  ")
    sys.stdout.flush()
    return known


def _told(asked: argparse.Namespace, journal: Journal) -> int:
    """Print the report; return 1 if too many survived."""
    print(*journal.told(), sep="\n")
    if not asked.same_as:
        return 0 if journal.share >= WANTED else 1
    before = Journal.read(asked.same_as)
    print(*comparison.told(before, journal), sep="\n")
    return 1 if comparison.revived(before, journal) else 0


def _with_control(i: int, job: Job) -> Iterator[Job]:
    yield job
    if i % CONTROL_EVERY == CONTROL_EVERY - 1:
        yield replace(job, mutated=job.original)


def _note(journal: Journal, result: Result) -> None:
    """Keep a result; say what did not die, and now and then how far it is."""
    journal.add(result)
    if not result.control and result.outcome in (SURVIVED, UNSURE):
        print(f"{result.outcome}: {result.name}", file=sys.stderr, flush=True)
    if len(journal.results) % 50 == 0:
        counts = Counter(one.outcome for one in journal.mutants)
        told = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
        print(f"{len(journal.mutants)} mutants: {told}", file=sys.stderr, flush=True)


def copied(to: Path) -> Path:
    """Copy the tree: what git knows or would take, and the programs that were built."""
    listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    built = [
        path.relative_to(ROOT).as_posix()
        for folder in ("agents", "plugins")
        for path in (ROOT / "src" / "rtscope" / folder).rglob("*")
        if path.is_file()
    ]
    for name in (*names, *built):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    (to / ".venv").symlink_to(ROOT / ".venv")  # make builds the plugin with it
    return to


def _git(*words: str) -> bytes:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, check=True, timeout=60
    ).stdout


def _preload() -> None:
    """Import what most tests need and no mutant is in; children are copies of us."""
    import hypothesis
    import jinja2
    import matplotlib.figure
    import numpy as np
    import pydantic
    import rich.table
    import scipy.stats
    import typer
    import yaml

    del hypothesis, jinja2, matplotlib, np, pydantic, rich, scipy, typer, yaml


def first_run(
    slots: Sequence[Slot], *, tests: Sequence[str], lines: dict[str, set[int]]
) -> Baseline:
    """Run the tests on unchanged code, a part of their files in each copy."""
    tree = slots[0].tree
    modules = sorted(
        (
            path.relative_to(tree).as_posix()
            for name in tests
            for path in (
                [tree / name] if name.endswith(".py") else _modules(tree / name)
            )
        ),
        key=lambda name: -(tree / name).stat().st_size,
    )
    slots = slots[: len(modules)]  # a copy without a module would run all of them
    answers, pids = [], []
    for i, slot in enumerate(slots):
        answers.append(slot.tree / "baseline.json")
        mine = modules[i :: len(slots)]

        def begin(
            slot: Slot = slot, mine: list[str] = mine, to: Path = answers[-1]
        ) -> int:
            return baseline.measure(slot.tree, tests=mine, lines=lines, to=to)

        pids.append(_forked(slot.tree, begin, log=slot.tree / "baseline.log"))
    try:
        for pid in pids:
            os.waitpid(pid, 0)
    except KeyboardInterrupt:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        raise
    for slot in slots:
        if not (slot.tree / "baseline.json").is_file():
            raise SystemExit((slot.tree / "baseline.log").read_text()[-4000:])
    return baseline.merged(answers)


def _modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("test_*.py"))


def work(
    slots: list[Slot], left: Iterator[Job], *, done: Callable[[Result], None]
) -> None:
    """Keep a process in each copy until there are no more jobs."""
    busy: list[Slot] = []
    try:
        for job in left:
            while len(busy) == len(slots):
                _reap(busy, done)
            free = next(slot for slot in slots if slot not in busy)
            _begin(free, job)
            busy.append(free)
        while busy:
            _reap(busy, done)
    finally:
        for slot in busy:
            _kill(slot)


def _begin(slot: Slot, job: Job) -> None:
    slot.take(job)
    slot.ends_at = time.monotonic() + LONGEST_S + WAIT_FACTOR * job.limit_s

    def begin() -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (job.limit_s, job.limit_s + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        return _status_of(job.groups)

    slot.pid = _forked(slot.tree, begin, log=slot.tree / "mutant.log")


def _status_of(groups: Sequence[Sequence[str]]) -> int:
    """Run groups of tests until one fails; 0 if none does."""
    import pytest

    options = (*baseline.OPTIONS, "-x", "-m", baseline.FAST)
    for group in groups:
        status = int(pytest.main([*options, *group]))
        if status == NOT_FOUND:
            files = dict.fromkeys(test.partition("::")[0] for test in group)
            status = int(pytest.main([*options, *files]))
        if status:
            return status
    return 0


def _reap(busy: list[Slot], done: Callable[[Result], None]) -> None:
    """Take back the copies whose process has ended, and end what takes too long."""
    time.sleep(0.01)
    for slot in list(busy):
        assert slot.job is not None
        pid, status, used = os.wait4(slot.pid, os.WNOHANG)
        late = not pid and time.monotonic() > slot.ends_at
        if not pid and not late:
            continue
        _kill(slot, ended=bool(pid))
        busy.remove(slot)
        slot.restore()
        outcome = UNSURE if late else _outcome(status)
        mutant = slot.job.mutant
        done(
            Result(
                name=mutant.name,
                file=mutant.file,
                line=mutant.lines[0],
                area=mutant.area,
                outcome=outcome,
                cpu_s=round(used.ru_utime + used.ru_stime, 2),
                by=_failed(slot.tree / "mutant.log") if outcome == KILLED else "",
                diff=slot.job.diff,
                capped=outcome == SURVIVED and slot.job.capped,
                was=slot.job.was,
            )
        )


def _outcome(status: int) -> str:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return LOOPED
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return UNSURE  # not by us: the machine ran out of memory
    return KILLED if status else SURVIVED


def _failed(log: Path) -> str:
    """Return the test that pytest says has failed; empty where it did not begin."""
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.partition(" ")[2].partition(" - ")[0].strip()
    return ""


def _kill(slot: Slot, *, ended: bool = False) -> None:
    """End the process and all that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(slot.pid, signal.SIGKILL)
    if not ended:
        os.waitpid(slot.pid, 0)


def _forked(tree: Path, run: Callable[[], int], *, log: Path) -> int:
    """Start a process of its own group that works in a copy; return its pid."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 3
    try:
        os.setsid()
        for signo in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(signo, signal.SIG_DFL)
        os.chdir(tree)
        own = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for fd in (1, 2):
            os.dup2(own, fd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.dont_write_bytecode = "baseline" not in log.name
        source = str(tree / "src")
        sys.path[:] = [
            source,
            *(p for p in sys.path if not p.startswith(str(ROOT) + "/src")),
        ]
        os.environ["PYTHONPATH"] = source
        os.environ.pop("MAKEFLAGS", None)
        if sys.dont_write_bytecode:
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        status = run()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    raise SystemExit(main())
