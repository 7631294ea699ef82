"""The parts of all wake-ups: their numbers, and whether they add up."""

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fakes.measurements import record, thread
from rtscope.contract import TimerlatPart
from rtscope.host.errors import BoardError
from rtscope.present.model.build import build_model
from rtscope.present.model.wakeparts import parts_chart, parts_section
from rtscope.record.model import RunRecord, record_from_json, record_to_json
from rtscope.record.wakeparts import (
    PARTS,
    PartHistogram,
    ThreadParts,
    WakeupParts,
    wakeup_parts,
)
from rtscope.stats.runcaveats import lint
from rtscope.stats.wakeparts import PartsSeen, parts_seen
from rtscope.verbs.exchange.writers import WRITERS, ExportOptions

WAKEUPS_NS = [(200, 3000, 400, 2200, 700), (250, 3100, 0, 2300, 700)]
"""The parts of each wake-up."""
LATENCIES_NS = [sum(parts) for parts in WAKEUPS_NS]


def histogram(values_ns: Sequence[int]) -> dict[str, Any]:
    return {
        "overflow": 0,
        "min_ns": min(values_ns),
        "max_ns": max(values_ns),
        "sum_ns": sum(values_ns),
        "sum_sq_ns2": [0, sum(x * x for x in values_ns)],
        "histogram": [list(one) for one in sorted(Counter(values_ns).items())],
    }


def summary(tid: int = 100, **other: object) -> dict[str, Any]:
    """Return what the plugin writes of the wake-ups above."""
    parts = [histogram(one) for one in zip(*WAKEUPS_NS, strict=True)]
    own = {"tid": tid, "checked": 2, "wrong": 0, "most_wrong_ns": 1, "parts": parts}
    return {
        "schema": 2,
        "parts_tolerance_ns": 4,
        "parts_unknown": "",
        "parts": [{**own, **other}],
    }


def with_parts(counts: dict[str, Any], latencies_ns: Sequence[int]) -> RunRecord:
    made = record([replace(thread(latencies_ns), tid=100)])
    return replace(made, parts=wakeup_parts(counts, [100]))


def seen_of(kept: RunRecord) -> PartsSeen:
    seen = parts_seen([kept])
    assert seen is not None
    return seen


def test_the_parts_are_summarized_as_latencies_are() -> None:
    seen = seen_of(with_parts(summary(), LATENCIES_NS))
    assert (seen.checked, seen.unknown, seen.withdrawn) == (2, 0, "")
    assert tuple(part.kind.key for part in seen.parts) == PARTS
    for number, part in enumerate(seen.parts):
        values_ns = [parts[number] for parts in WAKEUPS_NS]
        of = part.summary
        assert (of.samples, of.min_ns, of.max_ns) == (2, min(values_ns), max(values_ns))
        assert of.mean_ns == sum(values_ns) / 2
    assert sum(part.summary.mean_ns or 0 for part in seen.parts) * 2 == sum(
        LATENCIES_NS
    )


def test_wakeups_without_parts_are_counted() -> None:
    assert seen_of(with_parts(summary(), [*LATENCIES_NS, 9000])).unknown == 1


@pytest.mark.parametrize(
    ("counts", "latencies_ns", "why"),
    [
        (summary(wrong=1, most_wrong_ns=77), LATENCIES_NS, "differ by up to 77 ns"),
        (summary(), [LATENCIES_NS[0], LATENCIES_NS[1] + 100], "by 100 ns"),
        (summary() | {"parts_unknown": "try_to_wake_up"}, LATENCIES_NS, "try_to_wake"),
        (summary() | {"parts": []}, LATENCIES_NS, "no wake-up was seen"),
        (summary(tid=7), LATENCIES_NS, "no wake-up was seen"),
    ],
)
def test_parts_that_do_not_add_up_are_withdrawn_everywhere(
    counts: dict[str, Any], latencies_ns: Sequence[int], why: str
) -> None:
    kept = with_parts(counts, latencies_ns)
    seen = seen_of(kept)
    assert why in seen.withdrawn
    assert seen.parts == ()
    (row,) = build_model([kept]).rows
    assert parts_chart(row) is None
    section = parts_section([(row.name, row)])
    assert section is not None
    assert [type(one) for one in section.blocks] == [tuple]
    rows = csv.reader(io.StringIO(WRITERS["csv"]([kept], ExportOptions())))
    assert {row[-1] for row in rows} == {"of", "latency"}


def test_exports_have_the_buckets_of_each_part() -> None:
    kept = with_parts(summary(), LATENCIES_NS)
    rows = list(csv.DictReader(io.StringIO(WRITERS["csv"]([kept], ExportOptions()))))
    counts = Counter[str]()
    for row in rows:
        counts[row["of"]] += int(row["count"])
    assert counts == {"latency": 2, **dict.fromkeys(PARTS, 2)}
    text = WRITERS["openmetrics"]([kept], ExportOptions())
    for part in PARTS:
        assert f'part="{part}"}} 2' in text


def test_a_record_keeps_the_parts_and_is_as_before_without() -> None:
    kept = with_parts(summary(), LATENCIES_NS)
    assert record_from_json(record_to_json(kept), name="x") == kept
    without = replace(kept, parts=None)
    assert "parts" not in json.loads(record_to_json(without))
    assert parts_seen([without]) is None


def test_a_summary_of_the_plugin_is_checked() -> None:
    assert wakeup_parts({"schema": 2}, [100]) is None
    damaged = summary(checked=-1)
    with pytest.raises(BoardError, match="parts of wake-ups"):
        wakeup_parts(damaged, [100])
    assert wakeup_parts(summary(), [100]) == WakeupParts(
        4,
        "",
        (
            ThreadParts(
                *(100, 2, 0, 1),
                tuple(
                    PartHistogram(
                        *(0, min(one), max(one), sum(one)),
                        (0, sum(x * x for x in one)),
                        tuple(sorted(Counter(one).items())),
                    )
                    for one in zip(*WAKEUPS_NS, strict=True)
                ),
            ),
        ),
    )


# --- of the kernel's own thread, by its tracer ---------------------------------------


def by_tracer(*parts_ns: Sequence[int]) -> RunRecord:
    """Return a run of the tracer timerlat, with the two parts of each latency."""
    parts = [
        TimerlatPart(
            *(0, min(one), max(one), sum(one), sum(x * x for x in one)),
            tuple(sorted(Counter(one).items())),
        )
        for one in zip(*parts_ns, strict=True)
    ]
    one = thread([sum(both) for both in parts_ns])
    made = record([replace(one, timerlat=(parts[0], parts[1]))])
    return replace(made, run=replace(made.run, event="timerlat"))


def test_parts_of_the_kernels_own_thread_are_said_to_be_of_its_tracer() -> None:
    made = by_tracer((200, 900), (300, 1000))
    seen = seen_of(made)

    assert (seen.withdrawn, seen.unknown, seen.by_tracer) == ("", 0, True)
    keys = [part.kind.key for part in seen.parts]
    assert keys == ["timerlat_before", "timerlat_thread"]
    assert [part.summary.mean_ns for part in seen.parts] == [250, 950]
    assert record_from_json(record_to_json(made), name="one") == made
    (row,) = build_model([made]).rows
    section = parts_section([("idle", row)])
    assert section is not None
    assert "the kernel's tracer timerlat, of its own thread" in str(section)
    assert any(caveat.id == "timerlat_thread" for caveat in lint(made))


def test_parts_of_the_kernels_own_thread_that_do_not_add_up_are_withdrawn() -> None:
    made = by_tracer((200, 900), (300, 1000))
    (one,) = made.result.threads
    assert one.timerlat is not None
    first, second = one.timerlat
    wrong = replace(one, timerlat=(replace(first, sum_ns=first.sum_ns + 1), second))
    broken = replace(made, result=replace(made.result, threads=(wrong,)))

    assert "differ from their latencies by 1 ns" in seen_of(broken).withdrawn
