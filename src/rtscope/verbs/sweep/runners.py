"""What boots the boards of a sweep: this machine, or the workers of a cluster."""

import contextlib
from collections.abc import Callable, Iterator

from rtscope.boards.runs.store import StoredResults
from rtscope.cli.console import note
from rtscope.host.errors import MeasurementError
from rtscope.host.units import plural
from rtscope.measure.execute import Runner
from rtscope.verbs.sweep.boots import StartRunner, SweepRuns
from rtscope.verbs.sweep.cluster.address import SchedulerAddress

Failed = Callable[[str, MeasurementError], None]


@contextlib.contextmanager
def boots_on(
    address: SchedulerAddress | None,
    results: StoredResults | None,
    *,
    reuse: bool,
    log: Callable[[str], None],
) -> Iterator[StartRunner]:
    """Give what starts the boots; leave the cluster afterwards."""
    if address is None:
        # Loaded for a board only.
        from rtscope.boards.runs.runner import BoardRunner

        def local(runs: SweepRuns, failed: Failed) -> Runner:
            return BoardRunner(runs.prepared, failed, results, reuse, runs.again)

        yield local
        return

    # Dask takes a second to load.
    from rtscope.verbs.sweep.cluster.dask import connected
    from rtscope.verbs.sweep.cluster.runner import ClusterRunner

    with connected(address) as scheduler:
        workers = scheduler.workers()
        threads = plural(sum(workers.values()), "board")
        note(f"{plural(len(workers), 'worker')} at {address.url}, {threads} at once")
        if address.certificates is None:
            note(
                "  on plain tcp, any user of this machine can run programs as you; if "
                "you share the machine, use tls://"
            )

        def remote(runs: SweepRuns, failed: Failed) -> Runner:
            return ClusterRunner(
                scheduler, runs.prepared, failed, log, results, reuse, runs.again
            )

        yield remote
