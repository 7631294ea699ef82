"""
Measure every scene, and print what was blamed as a table in Markdown.

    PYTHONPATH=src:tests python -m culprits.table

lab/planted-culprits.md sums it up.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from culprits.build import build_module, build_rival, know_kernel
from culprits.scenes import (
    BOTH,
    DEMOTED,
    DEMOTED_THERE,
    FAULTS,
    LATE_NS,
    OUTSIDE,
    PLANTED_US,
    RIVALS,
    STARVED,
    THROTTLED,
    Blamed,
    Scene,
    blamed_by_kernel,
    held_back,
    late,
    over_quota,
    planted,
    told,
)
from rtscope.record.directory.records import open_records

HEAD = """\
| kernel | latency | blamed | attributed |
|---|---|---|---|"""


def main() -> None:
    """Print the table."""
    print(HEAD)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        files = [*(build_module(kernel, work) for kernel in BOTH), build_rival(work)]
        for kernel in THROTTLED.kernels:
            know_kernel(kernel)
        for number, scene in enumerate((planted(PLANTED_US), RIVALS)):
            for kernel, blamed in _measured(scene, files, work / str(number)).items():
                print("\n".join(_row(kernel, one) for one in _each(late(blamed))))
        away = [held_back(how) for how in ("stop", "freeze", "trace")]
        away += [over_quota(), over_quota(beside=OUTSIDE)]
        for number, scene in enumerate((DEMOTED, FAULTS, THROTTLED, *away), 2):
            for kernel, blamed in _measured(scene, files, work / str(number)).items():
                print(_row(kernel, _worst(blamed)))
        (work / "jh7110").mkdir()
        files = [build_rival(work / "jh7110", arch="riscv64")]
        for number, scene in enumerate((STARVED, DEMOTED_THERE), 10):
            for kernel, blamed in _measured(scene, files, work / str(number)).items():
                rows = _each([b for b in blamed if b.latency_ns > LATE_NS])
                shown = rows if scene is STARVED else [_worst(blamed)]
                print("\n".join(_row(kernel, one) for one in shown))


def _worst(blamed: Sequence[Blamed]) -> Blamed:
    return max(blamed, key=lambda one: one.latency_ns)


def _measured(
    scene: Scene, files: Sequence[Path], out: Path
) -> dict[str, list[Blamed]]:
    _rtscope("run", *scene.campaign(files, out), status=scene.status)
    (interval_ns,) = {record.run.interval_ns for record in open_records(out)}
    return blamed_by_kernel(_rtscope("explain", str(out), "--json"), interval_ns)


def _rtscope(*words: str, status: int = 0) -> str:
    argv = (sys.executable, "-m", "rtscope", *words)
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout


def _each(blamed: Sequence[Blamed]) -> Iterator[Blamed]:
    """Yield the latest wake-up of each culprit."""
    for _, group in groupby(blamed, key=lambda one: (told(one.cause), one.name)):
        yield max(group, key=lambda one: one.latency_ns)


def _row(kernel: str, one: Blamed) -> str:
    where = f"{one.cause}: `{one.name}`" + (f", task {one.task}" if one.task else "")
    return f"| {kernel} | {one.latency_ns / 1000:,.1f} | {where} | {one.share:.2%} |"


if __name__ == "__main__":
    main()
