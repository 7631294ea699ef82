"""
Search the worst start on a board: several starts in each boot, the worst again alone.

What a start leaves behind in the kernel carries over to the next one of its boot. So
each of the worst is started again in a boot of its own, which is what a user can type
again; if it takes another time there, the answer has both.
"""

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from rtscope.boards.parts.qemu import Phase
from rtscope.boards.recording.programseen import record_of
from rtscope.host.errors import MeasurementError, UsageError
from rtscope.host.units import NS_PER_MS, NS_PER_US
from rtscope.host.version import __version__
from rtscope.present.words import duration
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.judge import SeenStart, budget_of
from rtscope.verbs.test.kinds import phase_text
from rtscope.verbs.test.plan import Boot, with_load
from rtscope.verbs.test.running import Ran
from rtscope.verbs.test.runs import seen_starts
from rtscope.verbs.test.search.kept import KeptRounds
from rtscope.verbs.test.search.levers import Space
from rtscope.verbs.test.search.proposals import NOISE
from rtscope.verbs.test.search.rounds import BOOTS, how_to_go_on, make_rounds
from rtscope.verbs.test.search.seen import (
    Record,
    Start,
    judged_name,
    needed_warmup_ns,
    settings_seen,
    space_of,
    thread_of,
    trial_of,
)
from rtscope.verbs.test.search.trials import Proposal, Trial

REPEATED, CORRECTIONS = 3, 2
"""So many of the worst are started again alone, and as often with corrected phases."""

RunBoots = Callable[[Sequence[Boot]], Sequence[Ran]]


@dataclass(frozen=True, slots=True)
class Alone:
    """One of the worst trials, and its repetition in a boot of its own."""

    trial: int
    """From 1."""
    worst_ns: int
    """In the search."""
    again: Trial
    """With the settings of the repetition."""
    ran: Ran
    seen: SeenStart

    @property
    def alone_ns(self) -> int:
        """The worst of the repetition."""
        return self.again.worst_ns


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search on one board found."""

    boot: Boot
    thread: str
    space: Space
    trials: tuple[Trial, ...]
    repeated: tuple[Alone, ...]
    """The worst first, by what they gave alone."""
    limit_ns: int | None = None
    """Of the thread's response; None: it has none."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Of threads, by their number."""

    @property
    def first(self) -> Trial:
        """The start without a search."""
        return self.trials[0]

    @property
    def worst(self) -> Alone:
        """The worst start that can be typed again."""
        return self.repeated[0]


def search_worst(
    test: ProgramTest,
    boot: Boot,
    *,
    count: int,
    seed: int,
    thread: str | None,
    run: RunBoots,
    cache: Path,
    log: Callable[[str], None],
) -> Searched:
    """
    Search `count` starts on one board, the first as the test has it.

    `thread` is judged; None: the one that is nearest to its limit.

    Rounds of the same search that are kept in the cache are taken from there. `log`
    hears how bad the worst is by then. Raises BoardError if a start did not run as
    asked, MeasurementError if no thread had a whole cycle in the first one, UsageError
    if that thread had none, or the warm-up is too short for threads that stand still.
    """
    [(ran, start, _)] = started(test, run([boot]))
    name = judged_name(test, start, wanted=thread)
    if name is None:
        raise MeasurementError(
            "no real-time thread had a whole cycle, so no start can be worse than "
            "another: let it run longer with --duration"
        )
    space = space_of(test, start)
    _refuse_short_warmup(test, space, start)
    own = boot.job.values[0] if boot.job.values else {}
    first = Proposal(settings_seen(space, start, own), "first")
    trials = [trial_of(first, start, space, name)]
    rounds = KeptRounds.of(cache, _decisive(test, ran, space, name, seed), log=log)
    with how_to_go_on(trials, count, log):
        make_rounds(
            space,
            trials,
            count=count,
            seed=seed,
            make=partial(_round, test, boot, space, name, run),
            rounds=rounds,
            log=log,
        )
        repeated = _repeated(test, boot, space, trials, name, run)
    rounds.prune()
    limit_ns = budget_of(test, name).response_ns
    names = {number: one.name for number, one in start.threads.items()}
    return Searched(boot, name, space, tuple(trials), repeated, limit_ns, names)


def _refuse_short_warmup(test: ProgramTest, space: Space, start: Start) -> None:
    births_ns = [one.began_ns for one in start.threads.values()]
    needed_ns = needed_warmup_ns(space, births_ns)
    if test.warmup_ns < needed_ns:
        needed_ms = -(-needed_ns // NS_PER_MS)
        raise UsageError(
            f"a warm-up of {duration(test.warmup_ns)} is too short for a search: each "
            "thread may stand still for its period at its birth, one after the other; "
            f"add --warmup {needed_ms}ms"
        )


def _round(
    test: ProgramTest,
    boot: Boot,
    space: Space,
    name: str,
    run: RunBoots,
    proposals: Sequence[Proposal],
) -> tuple[Trial, ...]:
    boots = [with_proposals(boot, space, some) for some in _in_boots(proposals)]
    return tuple(
        trial_of(proposal, start, space, name)
        for proposal, (_, start, _) in zip(
            proposals, started(test, run(boots)), strict=True
        )
    )


def _decisive(
    test: ProgramTest, ran: Ran, space: Space, name: str, seed: int
) -> object:
    """Return all that decides the trials of a search, with its first start."""
    record = hashlib.sha256(ran.run.record or b"").hexdigest()
    levers = [{**asdict(one), "moves": sorted(one.moves)} for one in space.levers]
    board = asdict(ran.run.identity)
    return [__version__, board, repr(test), record, name, seed, levers]


def _repeated(
    test: ProgramTest,
    boot: Boot,
    space: Space,
    trials: Sequence[Trial],
    name: str,
    run: RunBoots,
) -> tuple[Alone, ...]:
    """
    Return the worst trials, each in a boot of its own.

    A thread takes another time from its begin to its first period there, by some us:
    its phase is corrected by that, so that it is due when it was in the trial.
    """
    order = sorted(range(len(trials)), key=lambda n: (-trials[n].worst_ns, n))
    places = order[:REPEATED]
    proposals = [trials[place].proposal for place in places]
    found: list[Alone] = []
    for _ in range(1 + CORRECTIONS):
        boots = [with_proposals(boot, space, [one]) for one in proposals]
        again = [
            Alone(
                place + 1,
                trials[place].worst_ns,
                trial_of(proposal, start, space, name),
                ran,
                seen,
            )
            for place, proposal, (ran, start, seen) in zip(
                places, proposals, started(test, run(boots)), strict=True
            )
        ]
        found += again
        better = {
            one.trial - 1: corrected(space, trials[one.trial - 1], one.again)
            for one in again
            if one.alone_ns < one.worst_ns * (1 - NOISE)
        }
        done = {one.again.settings for one in found}
        places = [at for at, one in better.items() if one.settings not in done]
        proposals = [better[place] for place in places]
        if not places:
            break
    return tuple(sorted(found, key=lambda one: (-one.alone_ns, one.trial)))


def corrected(space: Space, wanted: Trial, again: Trial) -> Proposal:
    """Return the settings by which threads are due as in the trial that is wanted."""
    values = list(again.settings)
    both = zip(wanted.phases_ns, again.phases_ns, strict=True)
    for axis, (due_ns, was_ns) in enumerate(both):
        lever = space.levers[axis]
        if due_ns is not None and was_ns is not None and lever.period:
            value = values[axis] + round((due_ns - was_ns) / lever.ns_per_unit)
            values[axis] = lever.low + (value - lever.low) % lever.period
    return Proposal(tuple(values), "repeat")


def _in_boots(proposals: Sequence[Proposal]) -> Iterator[Sequence[Proposal]]:
    each = -(-len(proposals) // BOOTS)
    for at in range(0, len(proposals), each):
        yield proposals[at : at + each]


def started(
    test: ProgramTest, boots: Sequence[Ran]
) -> Sequence[tuple[Ran, Start, SeenStart]]:
    """Return each start of boots that were run; BoardError if a record is damaged."""
    found = []
    for ran in boots:
        reader = record_of(ran.run)
        record, seens = Record(reader), seen_starts(test, ran, reader)
        for seen, one in zip(seens, ran.run.starts, strict=True):
            found.append((ran, record.start(seen.outside, one.pid), seen))
    return found


# --- settings ---------------------------------------------------------------------


def with_proposals(boot: Boot, space: Space, proposals: Sequence[Proposal]) -> Boot:
    """Return a boot with a start for each proposal; the first one is as the test is."""
    starts = [
        {} if one.how == "first" else space.by_name(one.settings) for one in proposals
    ]
    periods = {one.name: one.period for one in space.levers if one.period}
    own = boot.job.values[0] if boot.job.values else {}
    values = [
        {**own, **{n: str(v) for n, v in one.items() if thread_of(n) is None}}
        for one in starts
    ]
    kept = {one.thread: one for one in boot.view.phases if one.start == 1}
    phases = [
        replace(one, start=number)
        for number, settings in enumerate(starts, 1)
        for one in {**kept, **_phases(settings, periods)}.values()
    ]
    job = replace(
        boot.job,
        values=tuple(values) if any(values) else (),
        phases_ns=boot.job.phases_ns[:1] * len(starts),
    )
    job = with_load(job, boot.prepared.board, boot.load)
    return replace(boot, job=job, view=replace(boot.view, phases=tuple(phases)))


def _phases(
    settings: Mapping[str, int], periods: Mapping[str, int]
) -> Mapping[int, Phase]:
    return {
        thread: Phase(1, thread, periods[name] * NS_PER_US, value * NS_PER_US)
        for name, value in settings.items()
        if (thread := thread_of(name)) is not None
    }


def options_of(searched: Searched, trial: Trial) -> tuple[str, ...]:
    """Return the options of `rtscope test` that make exactly this start."""
    boot = with_proposals(searched.boot, searched.space, [trial.proposal])
    words = [
        *("--board", boot.board, "--kernel", boot.kernel, "--load", boot.load),
        *("--seed", str(boot.seed), "--starts", "1"),
    ]
    if boot.view.phases:
        phases = (
            f"{one.thread}={phase_text((one.after_ns, one.period_ns))}"
            for one in boot.view.phases
        )
        words += ["--phase", ",".join(phases)]
    if boot.job.values:
        pairs = (f"{name}={text}" for name, text in boot.job.values[0].items())
        words += ["--value", ",".join(pairs)]
    return tuple(words)


FILES_WRITTEN = ("--save", "--save-lock", "--junit", "--markdown", "--html")


def command_of(argv: Sequence[str], options: Sequence[str]) -> str:
    """
    Return a command line with options, without its own of the same names and --search.

    Nor does it write a file over that of the search. The options stand before `--`,
    after which the words are of the program.
    """
    at = argv.index("--") if "--" in argv else len(argv)
    dropped = {one for one in options if one.startswith("--")}
    dropped |= {"--search", "--search-seed", "--search-thread", *FILES_WRITTEN}
    kept: list[str] = []
    words = iter(argv[:at])
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in dropped:
            kept.append(word)
        elif not equals:
            next(words, None)
    return shlex.join(["rtscope", *kept, *options, *argv[at:]])
