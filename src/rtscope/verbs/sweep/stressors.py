"""Ask the stress-ng of a virtual board which stressors it has: one boot."""

from collections.abc import Callable

from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import BootTimeout, boot, in_steps
from rtscope.boards.runs.inspect import INSERT_RESULTS, SEED
from rtscope.host.errors import BoardError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_S

_LIST = "stressors"


def stressors_of(
    prepared: Prepared,
    *,
    stopped: Callable[[], bool] = lambda: False,
    progress: Progress = lambda _step: None,
) -> tuple[str, ...]:
    """Boot once; return the names. Raises BoardError if the board lists none."""
    booted = boot(
        prepared,
        Job(f"{INSERT_RESULTS}\nstress-ng --stressors >/out/{_LIST} 2>&1\ntrue\n"),
        seed=SEED,
        timeout=BootTimeout(NS_PER_S, 0),
        stopped=stopped,
        on_progress=in_steps("asking the board for its stressors", progress),
    )
    words = booted.text(_LIST).split()
    if "cpu" not in words:
        raise BoardError(
            f"{prepared.board.name}: its stress-ng listed no stressors: "
            f"{booted.text(_LIST)[:200] or 'no output'}"
        )
    return tuple(words)
