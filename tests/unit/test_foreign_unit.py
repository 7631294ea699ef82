"""Nanoseconds taken for microseconds, and the opposite, are a doubt by any evidence."""

from pathlib import Path

import pytest

from fakes import foreigncases
from fakes.foreign import TIMERLAT
from rtscope.record.foreign import read
from rtscope.record.foreign.source import Source
from rtscope.verbs.exchange.records import Stated, record_of

OUTPUTS = Path(__file__).parent.parent / "foreign"

UNSTATED = Stated()

ASSUMED, CONTRADICTED = "import_unit_assumed", "import_unit_contradicted"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path / "x")


def doubts(
    source: Source, text: str, *, unit_ns: int | None = None, stated: Stated = UNSTATED
) -> dict[str, str]:
    """Return the doubts about the unit, with their reasons."""
    source.path.write_text(text)
    found: dict[str, str] = {}
    for run in read(source, unit_ns=unit_ns):
        record = record_of(
            run, source, stated, run_id="001-x", repetition=1, command=()
        )
        found |= {
            c.id: c.detail for c in record.caveats if c.id.startswith("import_unit")
        }
    return found


def summary(low: int, mean: int, high: int, *, interval: int = 1000) -> str:
    return (
        f"T: 0 ( 4090) P:99 I:{interval} C: 100000 Min: {low:6} Act: 1303 "
        f"Avg: {mean:6} Max: {high:6}\n"
    )


def histogram(counts: dict[int, int], mean: int) -> str:
    rows = "".join(f"{value:06} {number:06}\n" for value, number in counts.items())
    return (
        f"# Histogram\n{rows}# Min Latencies: {min(counts):05}\n"
        f"# Avg Latencies: {mean:05}\n# Max Latencies: {max(counts):05}\n"
        "# Histogram Overflows: 00000\n"
    )


SPREAD = {850 + n: 12 + (n < 400) * 30 for n in range(0, 3000, 3)}
SPREAD_MEAN = sum(v * n for v, n in SPREAD.items()) // sum(SPREAD.values())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (foreigncases.NANOSECONDS, "1190, is above the interval of 1000 us"),
        (summary(1100, 3000, 90_000), "the smallest is 1100"),
        (summary(421, 2890, 18_373), "2890, is above the interval"),
        (summary(928, 1154, 18_373, interval=10_000), "is near it"),
        (summary(640, 1154, 18_373, interval=10_000), "is near it"),
        (summary(60, 251, 18_373, interval=250), "251, is above the interval of 250"),
        (histogram(SPREAD, SPREAD_MEAN), "is near it"),
        (histogram({v // 4: n for v, n in SPREAD.items()}, 5000), "the average, 5000"),
        (histogram({1200: 5, 1300: 900, 4000: 7}, 1320), "the smallest is 1200"),
        (
            "".join(f"       0: {n:7}: {871 + n % 7 * 100:7}\n" for n in range(200)),
            "is near it",
        ),
    ],
)
def test_what_no_microseconds_can_be_is_a_doubt(
    source: Source, text: str, reason: str
) -> None:
    if "the average, 5000" in reason:
        found = doubts(source, text, stated=Stated(interval_ns=1_000_000))
    else:
        found = doubts(source, text)
    assert set(found) == {ASSUMED}
    assert reason in found[ASSUMED]


@pytest.mark.parametrize(
    "stated",
    [Stated(interval_ns=200_000), Stated(duration_ns=10 * 10**9)],
    ids=["interval", "length"],
)
def test_what_the_user_says_of_the_run_is_evidence(
    source: Source, stated: Stated
) -> None:
    text = histogram({90: 5000, 200: 50_000, 900: 9000}, 294)
    assert not doubts(source, text)
    assert set(doubts(source, text, stated=stated)) == {ASSUMED}


def test_samples_that_are_spread_over_many_rows_are_a_doubt(source: Source) -> None:
    text = histogram({150: 1, **{500 + 7 * n: 3 for n in range(900)}}, 3600)
    found = doubts(source, text)
    assert "spread over 901 rows" in found[ASSUMED]


@pytest.mark.parametrize(
    "text",
    [
        foreigncases.IDLE,
        foreigncases.STRESS,
        foreigncases.LEFT_OUT,
        summary(3, 9, 18_373),
        summary(45, 190, 4000, interval=200),
        histogram({3: 1, **{5 + n: 2 for n in range(2000)}}, 1000),
        histogram({90: 10, 110: 1000, 400: 9}, 112),
        *(path.read_text() for path in sorted(OUTPUTS.glob("cyclictest-*.txt"))),
    ],
)
def test_microseconds_are_no_doubt(source: Source, text: str) -> None:
    assert not doubts(source, text)


@pytest.mark.parametrize(
    "command",
    [
        "$ cyclictest -N -m -Sp99\n",
        "# /usr/bin/cyclictest --nsecs -q\n",
        "+ sudo cyclictest -mN -p 99 -D 1m\n",
        "running cmd: cyclictest -q -D 10m -p 95 -t 16 -N\n",
        "root@board:~# ./cyclictest -a0 -N -l 1000\n",
    ],
)
def test_a_command_in_the_file_decides_for_nanoseconds(
    source: Source, command: str
) -> None:
    text = command + foreigncases.NANOSECONDS
    assert not doubts(source, text)
    (run,) = read(source)
    assert run.threads[0].max_ns == 17_650
    assert run.command.startswith("cyclictest ")


@pytest.mark.parametrize(
    "command", ["$ cyclictest -m -Sp99 -D 10m\n", "cyclictest -q\n"]
)
def test_a_command_in_the_file_decides_for_microseconds(
    source: Source, command: str
) -> None:
    assert not doubts(source, command + foreigncases.NANOSECONDS)
    (run,) = read(source)
    assert run.threads[0].max_ns == 17_650_000
    assert run.duration_ns == (600 * 10**9 if "-D" in command else 0)


def test_commands_that_disagree_decide_nothing(source: Source) -> None:
    text = f"$ cyclictest -m\n$ cyclictest -N -m\n{foreigncases.NANOSECONDS}"
    assert set(doubts(source, text)) == {ASSUMED}


@pytest.mark.parametrize(
    ("text", "unit_ns"),
    [
        (summary(3, 9, 120), 1),
        (histogram({2: 900, 5: 100, 30: 1}, 2), 1),
        (f"$ cyclictest -N\n{summary(3, 9, 120)}", None),
        (f"$ cyclictest -N\n{summary(871, 1190, 17_650)}", 1000),
        (f"$ cyclictest -m\n{summary(3, 9, 120)}", 1),
        (TIMERLAT, 1),
        (TIMERLAT.replace("microseconds (us)", "nanoseconds (ns)"), 1000),
        ((OUTPUTS / "cyclictest-2.10-nanoseconds.json").read_text(), 1000),
        ((OUTPUTS / "cyclictest-2.10.json").read_text(), 1),
        ((OUTPUTS / "jitterdebugger-0.3.json").read_text(), 1),
    ],
)
def test_a_unit_that_does_not_fit_the_file_is_a_doubt(
    source: Source, text: str, unit_ns: int | None
) -> None:
    assert set(doubts(source, text, unit_ns=unit_ns)) == {CONTRADICTED}


@pytest.mark.parametrize(
    ("text", "unit_ns"),
    [
        (foreigncases.NANOSECONDS, 1),
        (foreigncases.NANOSECONDS, 1000),
        (f"$ cyclictest -N\n{foreigncases.NANOSECONDS}", 1),
        (TIMERLAT, 1000),
        (TIMERLAT, None),
        ((OUTPUTS / "cyclictest-2.10-nanoseconds.json").read_text(), 1),
        ((OUTPUTS / "rtla-6.12-timerlat-hist-ns.txt").read_text(), None),
    ],
)
def test_a_unit_that_is_named_and_fits_is_no_doubt(
    source: Source, text: str, unit_ns: int | None
) -> None:
    assert not doubts(source, text, unit_ns=unit_ns)
