"""Traces of the kernel's tracers osnoise, hwlat and timerlat."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from rtscope.host.errors import RecordError
from rtscope.record.foreign import format_of, read
from rtscope.record.foreign.source import Source
from rtscope.record.model import RunRecord
from rtscope.stats.latetimes import timing_of
from rtscope.stats.runcaveats import all_caveats
from rtscope.verbs.exchange.records import Stated, record_of

OUTPUTS = Path(__file__).parent.parent / "foreign"
US = 1000


def imported(text: str, tmp_path: Path) -> Sequence[RunRecord]:
    path = tmp_path / "x"
    path.write_text(text)
    source = Source(path)
    return [
        record_of(run, source, Stated(), run_id="001-x", repetition=1, command=())
        for run in read(source)
    ]


def trace(name: str) -> str:
    return (OUTPUTS / f"tracer-6.12-{name}.txt").read_text()


def listed(record: RunRecord) -> list[tuple[int | None, int]]:
    """CPU and value of every sample, in ns."""
    return sorted(
        (thread.cpu or 0, low)
        for thread in record.result.threads
        for low, count in thread.histogram
        for _ in range(count)
    )


def test_each_period_of_osnoise_has_its_longest_noise(tmp_path: Path) -> None:
    text = trace("osnoise")
    rows = re.findall(r"\[(\d+)\] .*: \d+ +\d+ +[\d.]+ +(\d+)(?: +\d+){5}$", text, re.M)
    (record,) = imported(text, tmp_path)

    assert len(rows) > 20
    assert listed(record) == sorted((int(cpu), int(us) * US) for cpu, us in rows)


def test_the_period_of_osnoise_is_no_distance(tmp_path: Path) -> None:
    timing = timing_of(imported(trace("osnoise"), tmp_path))

    assert timing is None or timing.steady.found is None


def test_a_gap_of_hwlat_is_the_longer_of_inner_and_outer(tmp_path: Path) -> None:
    text = trace("hwlat")
    rows = re.findall(r"\[(\d+)\].*inner/outer\(us\): +(\d+)/(\d+)", text)
    (record,) = imported(text, tmp_path)

    assert len(rows) == 8
    assert listed(record) == sorted(
        (int(cpu), max(int(a), int(b)) * US) for cpu, a, b in rows
    )
    assert "import_other_quantity" in {c.id for c in all_caveats(record)}


def test_gaps_each_minute_are_found(tmp_path: Path) -> None:
    text = "".join(
        ROW.format(cpu=i % 2, flags="dn...", s=60 * i + 7, us=17 * i)
        + f"#{i}     inner/outer(us):   12/14    ts:1499801089.066141940\n"
        for i in range(12)
    )
    timing = timing_of(imported(text, tmp_path))

    assert timing is not None
    assert timing.steady.found is not None
    assert timing.steady.found.period_ns == pytest.approx(60e9, rel=0.02)


def test_timerlat_has_a_run_of_each_context(tmp_path: Path) -> None:
    text = trace("timerlat")
    runs = imported(text, tmp_path)

    assert [record.run.variant for record in runs] == ["irq", "thread"]
    for record in runs:
        rows = re.findall(
            rf"\[(\d+)\].*context +{record.run.variant} timer_latency +(\d+) ns", text
        )
        assert len(rows) > 30
        assert listed(record) == sorted((int(cpu), int(ns)) for cpu, ns in rows)


def test_the_longest_have_the_time_of_their_line(tmp_path: Path) -> None:
    runs = imported(trace("timerlat"), tmp_path)
    first_us = int(re.findall(r" (\d+)\.(\d{6}): #", trace("timerlat"))[0][1])
    worst = runs[1].result.threads[0].worst[0]

    line = next(
        one
        for one in trace("timerlat").splitlines()
        if f" {worst.latency_ns} ns" in one
    )
    at_us = int(re.findall(r"\.(\d{6}):", line)[0])
    assert worst.expiry_ns // US == (at_us - first_us) % 1_000_000


ROW = "   osnoise/{cpu}-17{cpu}     [00{cpu}] {flags} {s}.{us:06d}: "


@pytest.mark.parametrize("flags", ["....", "....1..", "d.h1", "d..h...", ".l..1"])
@pytest.mark.parametrize(
    ("rest", "value"),
    [
        ("1000000 190 99.98100 9 18 0 1007 18 1", 9_000),
        (
            "1000000        656  99.93440     212      0      0   1004     6     3",
            212_000,
        ),
        ("#1     inner/outer(us):   12/14    ts:1499801089.066141940", 14_000),
        ("#6     inner/outer(us):    0/8   ts:1.2 nmi-total:4 nmi-count:1", 8_000),
        ("#34    context    irq timer_latency       932 ns", 932),
        ("#34    context user-ret timer_latency   11700 ns", 11_700),
    ],
)
def test_lines_of_several_kernels_are_read(
    flags: str, rest: str, value: int, tmp_path: Path
) -> None:
    text = "".join(
        ROW.format(cpu=cpu, flags=flags, s=54, us=29_328 + cpu) + rest + "\n"
        for cpu in (0, 1)
    )
    (record,) = imported(text, tmp_path)

    assert listed(record) == [(0, value), (1, value)]


def test_events_of_other_kinds_between_them_are_left_alone(tmp_path: Path) -> None:
    noise = (
        "   bash-232 [000] d.h..   947.630000: irq_noise: timer:206 start 947.6 ns\n"
    )
    text = trace("timerlat").replace("\n", f"\n{noise}", 30)

    assert len(imported(text, tmp_path)) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("# entries-in-buffer/entries-written: 8/2008   #P:2", "2,000 lines"),
        ("CPU:1 [LOST 70 EVENTS]", "70 lines"),
    ],
)
def test_lines_that_the_buffer_lost_are_told(
    line: str, said: str, tmp_path: Path
) -> None:
    (record,) = imported(f"{line}\n{trace('osnoise')}", tmp_path)
    (caveat,) = [c for c in all_caveats(record) if c.id == "import_trace_lost"]

    assert caveat.detail == said


@pytest.mark.parametrize("tracer", ["osnoise", "hwlat", "timerlat"])
def test_a_trace_without_a_line_says_why(tracer: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="tracing_thresh"):
        imported(f"# tracer: {tracer}\n#\n", tmp_path)


@pytest.mark.parametrize("tracer", ["nop", "function", "wakeup_rt", "irqsoff"])
def test_other_tracers_are_not_taken_for_these(tracer: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(
        f"# tracer: {tracer}\n#\n  bash-232 [000] d.h.. 947.630000: schedule <-exit\n"
    )

    assert format_of(Source(path)) == ""
