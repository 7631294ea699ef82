"""What a survey adds to a sweep: the stressors of a board, and explanations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import boot, in_steps
from rtscope.boards.runs.inspect import SEED
from rtscope.boards.runs.prepare import prepare_campaign
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.cli.console import log, note, stderr_console
from rtscope.cli.progress import Waiting
from rtscope.host.errors import BoardError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_S
from rtscope.measure.loads import safe_stressors
from rtscope.measure.plan import Plan, make_plan
from rtscope.record.directory.records import ResultDir
from rtscope.record.explanation import EXPLAINED, find_explained
from rtscope.record.model import RunRecord
from rtscope.verbs.sweep.causes import explain_each
from rtscope.verbs.sweep.design import BASE, cells_of
from rtscope.verbs.sweep.file import Survey, Sweep, with_stressors
from rtscope.verbs.sweep.preflight import refuse_impossible
from rtscope.verbs.sweep.ranking import Ranking, ranking_of

RUNNING = "the running kernel"
"""Where a load did not run, on a machine."""


def with_listed(sweep: Sweep, *, command: tuple[str, ...]) -> Sweep:
    """
    Return a survey with its stressors as loads.

    Unnamed, they are those that the board lists, or those that a machine survives.
    """
    survey = sweep.survey or Survey()
    if survey.stressors is not None:
        return with_stressors(sweep, ())
    campaign = cells_of(sweep)[0].campaign
    if campaign.board is None:
        return with_stressors(sweep, sorted(safe_stressors()))
    refuse_impossible({BASE: campaign}, source=sweep.source)
    plan = make_plan(campaign)
    with Waiting(stderr_console()) as waiting:
        prepared = prepare_campaign(
            replace(plan, runs=plan.runs[:1]),
            campaign,
            command=command,
            jobs=1,
            log=waiting.over(note),
            progress=waiting,
        )
        listed = stressors_of(prepared.runs[0][1], progress=waiting)
    return with_stressors(sweep, listed)


def ranked(
    records: Sequence[RunRecord],
    store: ResultDir,
    plan: Plan,
    *,
    failures: Mapping[str, str],
) -> Ranking:
    """Rank all loads, with what explanations say of their worst wake-ups."""
    runs = {run.id: run for run in plan.runs}
    return ranking_of(
        records,
        explained=find_explained([store.path], records, log=log),
        failures={
            (runs[run].load, runs[run].kernel or RUNNING): why
            for run, why in failures.items()
            if run in runs
        },
    )


def explain_recorded(records: Sequence[RunRecord], store: ResultDir) -> None:
    """Explain the runs of a survey that can be, and are not yet explained."""
    explain_missing([one for one in records if _may_explain(one)], store)


def _may_explain(record: RunRecord) -> bool:
    """Whether its worst wake-ups were recorded, or traced."""
    return record.virtual is not None or record.result.tracing is not None


def explain_missing(records: Sequence[RunRecord], store: ResultDir) -> None:
    """Explain the worst wake-up of each run that has no explanation yet."""
    explain_each(
        (store.path, record.run.id)
        for record in records
        if not (store.run_dir(record.run.id) / EXPLAINED).is_file()
    )


# --- ask the stress-ng of a virtual board which stressors it has: one boot ------------

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
        Job(f"stress-ng --stressors >/out/{_LIST} 2>&1\ntrue\n"),
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
