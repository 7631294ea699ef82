"""Nights of a lab: result directories with made records, one a night and board."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from fakes.measurements import record, thread
from rtscope.record.directory.records import ResultDir, create
from rtscope.record.model import RunRecord

FIRST = datetime(2026, 11, 1, 2, 0)
SAMPLES = 400


def run(
    latencies_ns: Sequence[int],
    *,
    night: int = 0,
    board: str = "a",
    load: str = "idle",
    release: str = "6.12.43",
    agent: str = "0.1.0",
    **facts: str | bool,
) -> RunRecord:
    """Return the record of one run of a board."""
    started = (FIRST + timedelta(days=night)).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = record(
        [thread(latencies_ns)],
        load,
        target=f"ssh:{board}",
        started=started,
        facts={"kernel_release": release, **facts},
    )
    return replace(made, hello=replace(made.hello, agent=agent))


def latencies(
    night: int, *, mean_ns: int = 10_000, worst_ns: int = 40_000
) -> list[int]:
    """Return latencies that no other night has, about as long."""
    body = [mean_ns + (at * 37 + night * 101) % 1_000 for at in range(SAMPLES - 1)]
    return [*body, worst_ns + (night * 7_919) % 5_000]


def keep(place: Path, *records: RunRecord) -> ResultDir:
    """Write records as the result directory of one campaign."""
    store = create(place, {}, command=("rtscope", "run"))
    for one in records:
        store.save(one)
    return store


def lab(
    place: Path, nights: int, *, boards: Sequence[str] = ("a",), load: str = "idle"
) -> None:
    """Write nights of equal boards below a place."""
    for night in range(nights):
        for number, board in enumerate(boards):
            of_night = latencies(night * len(boards) + number)
            keep(
                place / f"night-{night:02}" / board,
                run(of_night, night=night, board=board, load=load),
            )
