"""The time that boots take of this machine, from boots that it has measured. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.prepare import RunRequest
from rtscope.measure.campaign.model import Campaign
from rtscope.record.model import Run


@dataclass(frozen=True, slots=True)
class Kind:
    """Boots that take about the same time."""

    board: str
    load: str
    virtual_ns: int
    """With settling and warm-up."""
    records: bool = True
    """Whether paths are recorded, which takes time."""


@dataclass(frozen=True, slots=True)
class Took:
    """What one boot took."""

    kind: Kind
    host_s: float


@dataclass(frozen=True, slots=True)
class HostTime:
    """An estimate, and from how many boots it is."""

    seconds: float
    runs: int


def kind_of(run: Run, campaign: Campaign) -> Kind:
    """Return the kind of a run's boot."""
    waits_ns = campaign.settling_ns + campaign.warmup_ns
    virtual_ns = run.duration_ns + waits_ns
    return Kind(campaign.board or "", run.load, virtual_ns, campaign.record)


def took(request: RunRequest, booted: Booted) -> Took:
    """Return what the boot of a run took."""
    return Took(kind_of(request.run, request.campaign), booted.host_seconds)


def host_time(
    kinds: Sequence[Kind], earlier: Iterable[Took], *, at_once: int
) -> HostTime | None:
    """Return how long boots take together; None if of one kind no boot is known."""
    host_times: dict[Kind, list[float]] = {kind: [] for kind in kinds}
    for one in earlier:
        if one.kind in host_times:
            host_times[one.kind].append(one.host_s)
    if not host_times or not all(host_times.values()):
        return None
    means = {kind: fmean(times) for kind, times in host_times.items()}
    seconds = sum(means[kind] for kind in kinds) / at_once
    return HostTime(seconds, sum(map(len, host_times.values())))
