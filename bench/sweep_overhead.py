"""
What the engine of a sweep costs: its CPU time for each cell, without QEMU's.

    PYTHONPATH=src:tests .venv/bin/python bench/sweep_overhead.py
    PYTHONPATH=src:tests .venv/bin/python bench/sweep_overhead.py --where cluster

Boots of one run each, all measured: as seeds of `rtscope run`, as cells of a sweep on
this machine, and as cells on a scheduler with two workers on loopback. Counted is the
CPU time of rtscope's own process, and with a cluster also of the scheduler and its
workers; QEMU is a process of its own. The difference between few and many leaves out
what each pays once: Python, imports, and the parts of the board. What is more than with
`rtscope run`, which writes the same initrd and reads the same results, is the engine's.
"""

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

HEAD = """
[base]
target.address = "virtual:pc"
kernel.names = ["debian-6.12-rt"]
campaign = { settle = "0s", warmup = "0s", record = false }
run = [{ load = "idle", duration = "1s", interval = "1ms" }]
[[axis]]
name = "cell"
level = [
"""
LEVEL = '  {{ name = "{number}", kernel.append = "rtscope.cell={number}" }},\n'
"""A parameter that no kernel knows: other inputs, and the same work."""

COUNTED = """
import resource
from pathlib import Path
from rtscope.cli.main import main
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    Path({count!r}).write_text(str(used.ru_utime + used.ru_stime))
"""
"""rtscope, which writes its own CPU time into a file at its end."""

DASK = Path(sys.executable).with_name("dask")
RUN = (
    *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt", "--load", "idle"),
    *("--duration", "1s", "--interval", "1ms", "--settle", "0s", "--warmup", "0s"),
    "--no-record",
)

QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
}
"""As docs/how-to/sweep-on-a-cluster.md says: Dask watches itself, 2 % of a CPU."""


def sweep_file(folder: Path, cells: int) -> Path:
    """Write a sweep of so many cells, the base among them."""
    path = folder / f"{cells}.toml"
    levels = "".join(LEVEL.format(number=number) for number in range(1, cells))
    path.write_text(HEAD + levels + "]\n")
    return path


def cpu_of(folder: Path, out: str, *argv: str | Path) -> float:
    """Run rtscope; return the CPU time of its own process."""
    count = folder / "cpu"
    words = [*map(str, argv), "-q", "--out", str(folder / out)]
    subprocess.run(
        [sys.executable, "-c", COUNTED.format(count=str(count)), *words],
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return float(count.read_text())


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, without that of its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, Sequence[int]]]:
    """Give the address of a scheduler with two workers, and all their processes."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    url = f"tcp://127.0.0.1:{port}"
    few = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
    worker = ("worker", url, "--nthreads", "1", "--memory-limit", "0", "--no-nanny")
    with contextlib.ExitStack() as running:
        pids = []
        for number, words in enumerate(
            (("scheduler", "--port", str(port)), worker, worker)
        ):
            cache = {"XDG_CACHE_HOME": str(folder / f"cache-{number}")}
            program = subprocess.Popen(
                [DASK, *words, *few],
                env={**os.environ, **QUIET, **cache},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            running.callback(program.wait)
            running.callback(program.kill)
            pids.append(program.pid)
            time.sleep(5)
        yield url, pids


def of_run(folder: Path, cells: Sequence[int]) -> Iterator[float]:
    """Yield the CPU time of `rtscope run` with so many seeds."""
    for number in cells:
        yield cpu_of(folder, f"run-{number}", *RUN, "--seeds", str(number))


def of_local(folder: Path, cells: Sequence[int]) -> Iterator[float]:
    """Yield the CPU time of sweeps of so many cells on this machine."""
    for number in cells:
        file = sweep_file(folder, number)
        yield cpu_of(folder, f"local-{number}", "sweep", file, "--no-reuse")


def of_cluster(folder: Path, cells: Sequence[int]) -> Iterator[float]:
    """Yield the same on two workers, with the CPU time of the whole cluster."""
    with cluster(folder) as (url, pids):
        on = ("--no-reuse", "--on", url)
        # Workers get the parts of the board.
        cpu_of(folder, "first", "sweep", sweep_file(folder, 3), *on)
        for number in cells:
            before_s = sum(map(cpu_s, pids))
            file = sweep_file(folder, number)
            own_s = cpu_of(folder, f"cluster-{number}", "sweep", file, *on)
            yield own_s + sum(map(cpu_s, pids)) - before_s


WHERE: Mapping[str, Callable[[Path, Sequence[int]], Iterator[float]]] = {
    "run": of_run,
    "local": of_local,
    "cluster": of_cluster,
}


def main() -> None:
    """Measure and print each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="2,10", help="few,many")
    parser.add_argument("--where", default=",".join(WHERE))
    options = parser.parse_args()
    few, many = (int(number) for number in options.cells.split(","))
    with tempfile.TemporaryDirectory(prefix="rtscope-bench-") as name:
        for where in options.where.split(","):
            began = time.monotonic()
            less_s, more_s = WHERE[where](Path(name), (few, many))
            print(
                f"{where}: {(more_s - less_s) / (many - few):.3f} CPU s for each cell "
                f"({few} cells {less_s:.2f} s, {many} cells {more_s:.2f} s; all in "
                f"{time.monotonic() - began:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
