"""Measure a scene and have it explained, for tests: every explanation must be whole."""

from collections.abc import Sequence
from pathlib import Path

from rig import Done, rtscope

from culprits.scenes import Blamed, Scene, blamed_by_kernel
from rtscope.record.directory.records import open_records

PATIENCE_S = 900.0


def finished(*words: str | Path, status: int = 0) -> Done:
    with rtscope(*words) as program:
        done = program.finish(PATIENCE_S)
    assert done.status == status, done.stderr
    return done


def explained(
    scene: Scene, files: Sequence[Path], out: Path
) -> dict[str, list[Blamed]]:
    """Measure, explain, and return what was blamed by kernel: all of it whole."""
    finished("run", *scene.campaign(files, out), status=scene.status)
    (interval_ns,) = {record.run.interval_ns for record in open_records(out)}
    documents = finished("explain", out, "--json").stdout.decode()
    found = blamed_by_kernel(documents, interval_ns)
    assert set(found) == set(scene.kernels)
    for one in (one for blamed in found.values() for one in blamed):
        assert one.share >= 0.95, one
        assert one.sum_ns + one.residual_ns == one.latency_ns
    return found


def worst(blamed: Sequence[Blamed]) -> Blamed:
    return max(blamed, key=lambda one: one.latency_ns)
