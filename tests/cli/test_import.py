"""`rtscope import`, and what the verbs that read records say of its result."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes import foreigncases
from fakes.commandline import Rtscope
from fakes.foreign import DESCRIBED, UNVERIFIED
from fakes.fulldisk import full_for

OUTPUTS = Path(__file__).parent.parent / "foreign"

SMALL = """\
# /dev/cpu_dma_latency set to 0us
# Histogram
000010 000900\t000800
000012 000090\t000190
000030 000010\t000010
# Min Latencies: 00010 00010
# Avg Latencies: 00010 00010
# Max Latencies: 00030 00030
# Histogram Overflows: 00000 00000
# Histogram Overflow at cycle number:
# Thread 0:
# Thread 1:

"""


@pytest.fixture
def small(here: Path) -> Path:
    path = here / "any name"
    path.write_text(SMALL)
    return path


def test_a_histogram_becomes_a_report(rtscope: Rtscope, small: Path) -> None:
    said = rtscope("import", small, "--out", "x", "--interval", "1ms")
    assert (said.status, said.err) == (0, "")
    assert said.out == (
        "any name: cyclictest, 2 threads, 2,000 samples\nreport: rtscope report x\n"
    )

    named = rtscope("import", small, "--out", "a b", "--interval", "1ms")
    assert named.out.endswith("\nreport: rtscope report 'a b'\n")

    shown = rtscope("report", "x", "--deadline", "50us", "--json")
    model = json.loads(shown.out)
    assert model["verdict"]["word"] == "NOT SHOWN"
    raised = {caveat["id"] for caveat in model["caveats"]}
    assert {"import_load_unknown", "import_time_counted"} <= raised
    # No maximum reaches an interval, so no period was missed.
    assert "import_missed_periods" not in raised


@pytest.mark.parametrize(
    ("deadline", "status"), [("29us", 1), ("30.9us", 1), ("31us", 0)]
)
def test_a_deadline_is_judged_by_the_longest_that_a_value_may_be(
    rtscope: Rtscope, small: Path, deadline: str, status: int
) -> None:
    rtscope("import", small, "--out", "x", "--interval", "1ms", "--load", "idle")
    assert rtscope("report", "x", "--deadline", deadline).status == status


@pytest.mark.parametrize("verb", ["report", "compare"])
def test_a_foreign_file_is_answered_with_the_command(
    rtscope: Rtscope, small: Path, verb: str
) -> None:
    said = rtscope(verb, small)
    assert said.status == 2
    assert said.err == (
        f"rtscope: {small}: a result of another tool (cyclictest-text); import it "
        f"first: rtscope import '{small}'\n"
    )


def test_two_imports_are_compared(rtscope: Rtscope, here: Path, small: Path) -> None:
    other = here / "other"
    other.write_text(SMALL.replace("000030", "000040").replace("00030", "00040"))
    rtscope("import", small, "--out", "a", "--load", "idle")
    rtscope("import", other, "--out", "b", "--load", "idle")
    said = rtscope("compare", "a", "b")
    assert said.status == 0, said.err
    assert "b has the higher maximum" in said.out


def test_a_published_table_is_compared_once_the_kernel_is_named(
    rtscope: Rtscope, small: Path
) -> None:
    rtscope("import", small, "--out", "x", "--load", "idle", "--preempt-rt", "yes")
    said = rtscope("compare", "x", "--published", "starfive-visionfive2", "-v")
    assert said.status == 0, said.err
    assert "30.0" in said.out
    shown = " ".join(said.out.split())
    assert "measured cyclictest. The published histogram ends" in shown
    assert "rtscope counts" not in shown


def test_runs_of_known_and_of_unknown_interval_are_not_compared(
    rtscope: Rtscope, small: Path
) -> None:
    rtscope("import", small, "--out", "a", "--load", "idle", "--interval", "1ms")
    rtscope("import", small, "--out", "b", "--load", "idle")
    said = " ".join(rtscope("compare", "a", "b", "-v").out.split())
    assert "different intervals (unknown, 1 ms) do not compare" in said
    assert "name it with rtscope import --interval" in said


def test_no_record_is_overwritten(rtscope: Rtscope, small: Path) -> None:
    rtscope("import", small, "--out", "x")
    said = rtscope("import", small, "--out", "x")
    assert (said.status, said.err) == (
        2,
        "rtscope: --out x: not empty; name another directory\n",
    )


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("000900\t", "000901\t", ""),
        ("# Max Latencies: 00030", "# Max Latencies: 00029", "the maximum is said"),
        ("# Max Latencies: 00030", "# Max Latencies: 00099", "the maximum is said"),
        ("# Min Latencies: 00010", "# Min Latencies: 00011", "the minimum is said"),
        ("# Avg Latencies: 00010", "# Avg Latencies: 00019", "the average is said"),
        ("Overflows: 00000", "Overflows: 00003", "beyond the histogram"),
        ("000012 000090\t000190", "000009 000090\t000190", "row 9 comes after row 10"),
        ("000012 000090\t000190", "000012 000090", "columns"),
    ],
)
def test_what_contradicts_itself_is_invalid(
    rtscope: Rtscope, small: Path, old: str, new: str, why: str
) -> None:
    assert old in SMALL
    small.write_text(SMALL.replace(old, new))
    rtscope("import", small, "--out", "x")
    model = json.loads(rtscope("report", "x", "--json").out)
    found = [c for c in model["caveats"] if c["id"] == "import_contradicts"]
    assert why in json.dumps(found)
    assert bool(found) is bool(why)


def test_rows_of_zeros_change_nothing_but_are_held_to_their_order(
    rtscope: Rtscope, small: Path, here: Path
) -> None:
    zeros = "".join(f"{row:06} 000000\t000000\n" for row in range(13, 30))
    both = SMALL.replace("000030 000010", f"{zeros}000030 000010")
    (here / "with").write_text(both)
    (here / "twice").write_text(both.replace("000020 0", "000018 0"))
    models = []
    for name in (small, here / "with", here / "twice"):
        rtscope("import", name, "--out", f"{name.name} x")
        shown = rtscope("report", f"{name.name} x", "--json", "--deadline", "50us")
        models.append(json.loads(shown.out))
    first, second, third = models
    assert first["rows"] == second["rows"]
    assert "row 18 comes after row 19" in json.dumps(third["caveats"])


def test_a_copied_column_is_found(rtscope: Rtscope, small: Path) -> None:
    rows = "".join(f"{n:06} {n:06}\t{n:06}\n" for n in range(10, 30))
    small.write_text(
        f"# Histogram\n{rows}# Min Latencies: 10 10\n# Max Latencies: 29 29"
    )
    rtscope("import", small, "--out", "x")
    model = json.loads(rtscope("report", "x", "--json").out)
    assert "import_copied" in {c["id"] for c in model["caveats"]}


def test_a_file_cut_short_is_invalid(rtscope: Rtscope, small: Path) -> None:
    small.write_text(SMALL[: SMALL.index("# Min")])
    rtscope("import", small, "--out", "x")
    model = json.loads(rtscope("report", "x", "--json").out)
    assert "import_cut_short" in {c["id"] for c in model["caveats"]}


def test_what_is_of_no_format_is_refused(rtscope: Rtscope, here: Path) -> None:
    (here / "x").write_text("hello\n")
    said = rtscope("import", here / "x")
    assert said.status == 3
    assert "no format that rtscope knows" in said.err


@pytest.mark.slow
@pytest.mark.parametrize("name", DESCRIBED)
def test_every_format_becomes_a_report(rtscope: Rtscope, here: Path, name: str) -> None:
    (here / "x").write_text(DESCRIBED[name])
    said = rtscope("import", here / "x", "--out", "y")
    assert (said.status, said.err) == (0, "")
    shown = rtscope("report", "y", "--deadline", "5ms", "--claim", "1/1h")
    assert shown.status == 4, shown.out  # at most NOT SHOWN
    unverified = "read after its description" in " ".join(shown.out.split())
    assert unverified is (name in UNVERIFIED)


def test_an_export_goes_to_a_file_and_says_what_it_lacks(
    rtscope: Rtscope, small: Path
) -> None:
    rtscope("import", small, "--out", "x")
    said = rtscope("export", "x", "--to", "junit", "--deadline", "20us", "-o", "j.xml")
    assert (said.status, said.out) == (0, "")
    assert said.err == "rtscope: junit: histograms and notes are left out\n"
    assert '<failure message="10 of 1000 wake-ups' in Path("j.xml").read_text()


def test_an_export_goes_to_standard_output(rtscope: Rtscope, small: Path) -> None:
    rtscope("import", small, "--out", "x")
    said = rtscope("export", "x", "--to", "cyclictest-text")
    head, *rows = said.out.splitlines()
    assert head == "# Histogram"
    assert [rows[us] for us in (9, 10, 12)] == [
        *("000009 000000\t000000", "000010 000900\t000800", "000012 000090\t000190"),
    ]


def test_an_origin_that_kcidb_refuses_is_refused(rtscope: Rtscope, small: Path) -> None:
    rtscope("import", small, "--out", "x")
    said = rtscope("export", "x", "--to", "kcidb", "--origin", "My Lab")
    assert said.status == 2


def test_a_summary_has_the_verdict_and_the_grave_caveats(
    rtscope: Rtscope, small: Path
) -> None:
    rtscope("import", small, "--out", "x")
    said = rtscope("report", "x", "--deadline", "20us", "--summary", "s.md")
    assert said.status == 1
    text = Path("s.md").read_text()
    assert text.startswith("### Wake-up latency of unknown\n\n**NO**: Is every")
    assert "| unknown | **30.0** |" in text
    assert "* **LIMITS VERDICT** unknown how long the run was" in text
    assert "further notes in the report" in text


def test_nobody_is_sent_to_explain_what_another_tool_measured(
    rtscope: Rtscope, small: Path
) -> None:
    rtscope("import", small, "--out", "x")
    shown = rtscope("report", "x", "--deadline", "20us").out
    assert "rtscope explain" not in shown
    assert "rtscope run --explain" in shown


def test_no_gap_is_no_latency_of_zero(rtscope: Rtscope, here: Path) -> None:
    (here / "x").write_text(
        "hwlatdetect:  test duration 120 seconds\nMax Latency: Below threshold\n"
        "Samples recorded: 0\nSamples exceeding threshold: 0\n"
    )
    assert rtscope("import", here / "x", "--out", "y").status == 0
    shown = rtscope("report", "y", "--deadline", "20us")
    assert shown.status == 3
    assert "a run has no samples" in " ".join(shown.out.split())


def test_the_same_file_twice_is_refused(rtscope: Rtscope, small: Path) -> None:
    copy = small.with_name("copy")
    copy.write_bytes(small.read_bytes())
    said = rtscope("import", small, copy, "--out", "x")
    assert said.status == 2
    assert "are the same, byte for byte" in said.err


def test_a_copy_in_another_place_counts_once(rtscope: Rtscope, here: Path) -> None:
    whole = OUTPUTS / "cyclictest-2.10.json"
    rtscope("import", whole, "--out", "a")
    rtscope("import", whole, "--out", "b")
    model = json.loads(rtscope("report", "a", "b", "--json").out)
    assert "copied_record" in {caveat["id"] for caveat in model["caveats"]}


def test_two_runs_that_found_nothing_are_no_copies(
    rtscope: Rtscope, here: Path
) -> None:
    for name in ("a", "b"):
        line = "T: 0 (  1) P:80 I:1000 C: 9 Min: 2 Act: 2 Avg: 2 Max: 3"
        (here / name).write_text(f"# {name}\n{line}\n")
    assert rtscope("import", here / "a", here / "b", "--out", "x").status == 0
    model = json.loads(rtscope("report", "x", "--json").out)
    assert "copied_record" not in {caveat["id"] for caveat in model["caveats"]}


def test_loads_that_nobody_names_are_not_the_same(rtscope: Rtscope, here: Path) -> None:
    (here / "idle.log").write_text(foreigncases.IDLE)
    (here / "stress.log").write_text(foreigncases.STRESS)
    said = rtscope("import", "idle.log", "stress.log", "--out", "x")
    assert "unknown under which loads: a row for each of 2 files" in said.out
    assert "import them again with --load NAME" in said.out

    named = rtscope("import", "idle.log", "stress.log", "--out", "y", "--load", "os")
    assert "unknown under which loads" not in named.out
    for name, repetitions in (("x", [1, 1]), ("y", [1, 2])):
        records = sorted(Path(name).rglob("record.json"))
        found = [json.loads(one.read_text())["run"]["repetition"] for one in records]
        assert found == repetitions


def test_several_latencies_of_one_file_are_no_loads(
    rtscope: Rtscope, here: Path
) -> None:
    (here / "hist").write_text(foreigncases.NO_SUMMARY)
    said = rtscope("import", "hist", "--out", "x")
    assert "unknown under which loads" not in said.out


def test_nothing_found_is_said_when_it_is_imported(
    rtscope: Rtscope, here: Path
) -> None:
    (here / "out").write_text(foreigncases.NOTHING_FOUND)
    said = rtscope("import", "out", "--out", "x")
    assert "nothing of 10 us or more" in said.out
    shown = rtscope("report", "x")
    assert "no latency of 10.0 µs or more was found" in shown.out


def test_a_missing_file_is_named(rtscope: Rtscope, here: Path) -> None:
    said = rtscope("import", here / "no", "--out", "x")
    assert said.status == 3
    assert "No such file or directory" in said.err


@pytest.mark.parametrize("kept", [0, 1])
def test_a_full_disk_is_told_with_how_much_is_kept_and_advice_that_fits(
    rtscope: Rtscope, here: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    (here / "a").write_text(SMALL)
    (here / "b").write_text(SMALL.replace("000900", "000901"))
    full_for(monkeypatch, "record.json", after=kept)

    said = rtscope("import", "a", "b", "--out", "x")

    assert said.status == 3
    assert "No space left on device; free some space" in said.err
    assert f"{kept} of 2 records are in x: remove it, then import all" in said.err
    assert "--resume" not in said.err
    assert len(list((here / "x").glob("runs/*/record.json"))) == kept


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda p: p.symlink_to("/dev/zero")]
)
def test_what_is_no_file_is_not_imported(
    rtscope: Rtscope, here: Path, make: Callable[[Path], None]
) -> None:
    make(here / "odd")
    said = rtscope("import", "odd", "--out", "x")

    assert said.status == 3
    assert "not a regular file" in said.err
    assert not (here / "x").exists()


def test_a_row_that_no_number_of_the_record_has_is_named(
    rtscope: Rtscope, here: Path
) -> None:
    rows = "\n".join(["5", "6", "7", "9" * 5_000, "8"])
    (here / "a").write_text(f"latency_us\n{rows}\n")
    said = rtscope("import", "a", "--out", "x")

    assert said.status == 0
    assert "a table, 1 thread, 4 samples" in said.out
    assert "a: rows not understood: 1, the first in line 5" in said.out


def test_a_pipe_of_the_shell_is_imported(rtscope: Rtscope, here: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, SMALL.encode())
    os.close(writing)
    try:
        said = rtscope("import", f"/dev/fd/{reading}", "--out", "x")
    finally:
        os.close(reading)

    assert said.status == 0, said.err
    assert "standard-input: cyclictest, 2 threads, 2,000 samples" in said.out


def test_a_column_is_imported_with_the_command_of_the_refusal(
    rtscope: Rtscope, here: Path
) -> None:
    rows = "".join(f"{i};{3 + i % 4};{i}\n" for i in range(200))
    (here / "loop.csv").write_text(rows)
    refused = rtscope("import", "loop.csv")

    assert refused.status == 3
    assert "rtscope import loop.csv --column 3 --unit us" in refused.err
    done = rtscope(
        *("import", "loop.csv", "--column", "2", "--unit", "us", "--out", "loop"),
        *("--time-column", "1:ms", "--load", "idle"),
    )
    assert done.status == 0
    report = json.loads(rtscope("report", "loop", "--json").out)
    assert report["rows"][0]["summary"]["samples"] == 200


def test_the_report_has_the_distance_in_each_format(
    rtscope: Rtscope, here: Path
) -> None:
    late = {600 * i + i % 5 for i in range(1, 13)}
    rows = "".join(
        f"{i / 10:.1f},{400 + i % 7 if i in late else 3 + i % 3}\n" for i in range(8000)
    )
    (here / "loop.csv").write_text(f"time_s,latency_us\n{rows}")
    rtscope("import", "loop.csv", "--out", "loop", "--load", "idle")
    said = "The 12 longest latencies under idle come every 60."

    assert said in " ".join(rtscope("report", "loop").out.split())
    assert said in rtscope("report", "loop", "--format", "markdown").out
    report = json.loads(rtscope("report", "loop", "--json").out)
    late_row = report["rows"][0]["latest_over_time"]
    assert late_row["sentence"].startswith(said)
    assert abs(late_row["steady_distance"]["period_ns"] / 1e9 - 60) < 1
    rtscope("report", "loop", "--html", "page.html")
    assert said in (here / "page.html").read_text()


def test_the_time_in_which_nothing_was_found_supports_a_rate(
    rtscope: Rtscope, here: Path
) -> None:
    (here / "out").write_text(foreigncases.NOTHING_FOUND)
    rtscope("import", "out", "--out", "x")
    shown = " ".join(rtscope("report", "x").out.split())

    assert "None in 30 min" in shown
    assert "such ones occur less than once per 10 min" in shown
    assert "of unknown does not count" not in shown
