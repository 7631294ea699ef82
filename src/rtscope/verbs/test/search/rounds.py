"""A search in rounds of starts, made or taken from an earlier one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rtscope.host.errors import RtscopeError
from rtscope.host.units import plural
from rtscope.present.words import us
from rtscope.verbs.test.judge import VIRTUAL
from rtscope.verbs.test.search.kept import KeptRounds
from rtscope.verbs.test.search.levers import Space
from rtscope.verbs.test.search.proposals import propose
from rtscope.verbs.test.search.trials import Proposal, Trial, growth

STARTS, BOOTS = 10, 2
"""Of a round, which is proposed as a whole; the same on every computer, as the trials
of a search must be."""

Log = Callable[[str], None]


def make_rounds(
    space: Space,
    trials: list[Trial],
    *,
    count: int,
    seed: int,
    make: Callable[[Sequence[Proposal]], tuple[Trial, ...]],
    rounds: KeptRounds,
    log: Log,
) -> None:
    """
    Add rounds of trials until there are `count`, or all settings were tried.

    `make` starts the program once for each proposal; a round that is kept is not made
    again. `log` hears of each one how bad the worst is by then.
    """
    kept = 0
    while len(trials) < count:
        left = min(count - len(trials), STARTS * BOOTS)
        proposals = propose(space, trials, seed=seed, count=left)
        if not proposals:
            break
        found = rounds.find(proposals)
        if found is None:
            _log_kept(kept, log)
            kept = 0
            found = make(proposals)
            rounds.keep(proposals, found)
        else:
            kept += len(found)
        trials += found
        if not kept:
            log(_so_far(trials, count))
    _log_kept(kept, log)


def _log_kept(kept: int, log: Log) -> None:
    if kept:
        log(f"{plural(kept, 'start')} taken from an earlier search")


def _so_far(trials: Sequence[Trial], count: int) -> str:
    worst = growth(trials)[-1]
    return (
        f"{len(trials)} of {plural(count, 'start')}: worst response "
        f"{us(worst.worst_ns, VIRTUAL)}, of start {worst.trial}"
    )


@contextmanager
def how_to_go_on(trials: Sequence[Trial], count: int, log: Log) -> Iterator[None]:
    """Say how a search goes on that an error or Ctrl-C ends."""
    try:
        yield
    except (RtscopeError, KeyboardInterrupt):
        log(
            f"{len(trials)} of {plural(count, 'start')} made: type the same command "
            "again to go on from there"
        )
        raise
