"""What `rtscope history` prints, and the status that it ends with."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fakes.commandline import Rtscope
from fakes.htmltables import uneven_rows
from fakes.nights import keep, lab, latencies, run
from rtscope.present.words import NOTHING


@pytest.fixture
def nights(here: Path) -> Path:
    """Three nights of two boards, and a fourth one of a under another load."""
    lab(here / "nights", 3, boards=("a", "b"))
    other = run(latencies(9), night=3, load="memory", release="6.12.44")
    keep(here / "nights/night-03/a", other)
    return here / "nights"


def listed(rtscope: Rtscope, *words: str) -> list[tuple[str, str]]:
    said = rtscope("history", "list", "--json", *words)
    assert said.status == 0
    runs = json.loads(said.out)["runs"]
    return [(one["machine"], one["load"]) for one in runs]


def test_nights_are_indexed_and_listed_newest_first(
    rtscope: Rtscope, nights: Path
) -> None:
    said = rtscope("history", "index", nights)
    assert said.status == 0
    assert said.out == (
        "history.db: 7 new runs, 0 changed, 0 unchanged, 0 vanished, 0 damaged\n"
    )
    again = json.loads(rtscope("history", "index", nights, "--json").out)
    assert (again["new"], again["unchanged"], again["damaged"]) == (0, 7, [])

    shown = rtscope("history", "list").out.splitlines()
    assert "2026-11-04 02:00" in shown[1]
    assert "ssh:a memory" in shown[1]
    assert shown[-1] == "7 runs."
    assert "the newest 2 are shown" in rtscope("history", "list", "--limit", "2").out


def test_wake_ups_beyond_a_limit_are_counted_from_the_histogram(
    rtscope: Rtscope, here: Path
) -> None:
    keep(here / "nights/x", run([10_000] * 97 + [60_000, 70_000, 80_000]))
    rtscope("history", "index", here / "nights")
    said = rtscope("history", "list", "--later-than", "65us", "--json")
    assert json.loads(said.out)["runs"][0]["later"] == 2
    assert "> 65 us" in rtscope("history", "list", "--later-than", "65us").out
    assert rtscope("history", "list", "--later-than", "65").status == 2


def test_filters_choose_runs(rtscope: Rtscope, nights: Path) -> None:
    rtscope("history", "tag", "good", nights / "night-01")
    rtscope("history", "index", nights)

    assert len(listed(rtscope)) == 7
    assert listed(rtscope, "--load", "memory") == [("ssh:a", "memory")]
    assert listed(rtscope, "--kernel", "6.12.44") == [("ssh:a", "memory")]
    assert set(listed(rtscope, "--machine", "*b")) == {("ssh:b", "idle")}
    assert len(listed(rtscope, "--since", "2026-11-03")) == 3
    assert len(listed(rtscope, "--tag", "good")) == 2
    assert listed(rtscope, "--tag", "good", "--since", "2026-11-04") == []
    assert listed(rtscope, "--load", "idle' OR 1=1 --") == []


def test_a_tag_is_added_once_and_taken_away(rtscope: Rtscope, nights: Path) -> None:
    added = rtscope("history", "tag", "good", nights)
    assert added.out == "good: added to 7 results; 0 results had it\n"
    again = rtscope("history", "tag", "good", nights / "night-00/a")
    assert again.out == "good: added to 0 results; 1 result had it\n"
    gone = rtscope("history", "tag", "good", nights, "--remove")
    assert gone.out == "good: taken from 7 results; 0 results did not have it\n"
    assert not list(nights.rglob("tags.json"))


def test_a_damaged_record_is_named_and_costs_no_other(
    rtscope: Rtscope, nights: Path
) -> None:
    path = nights / "night-00/a/runs/001-idle/record.json"
    path.write_text("{")
    said = rtscope("history", "index", nights)
    assert said.status == 0
    assert "6 new runs" in said.out
    assert "1 damaged" in said.out
    assert str(path) in said.err.replace("\n", "")
    assert "1 damaged record not indexed" in rtscope("history", "list").out


def test_a_folder_without_results_is_named(rtscope: Rtscope, nights: Path) -> None:
    (nights.parent / "none").mkdir()
    said = rtscope("history", "index", nights, nights.parent / "none")
    again = rtscope("history", "index", nights)
    assert (said.status, again.status, again.err) == (0, 0, "")
    assert "7 new runs" in said.out
    assert "none: no results below it" in said.err.replace("\n", "")


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["index", "nowhere"], 2, "nowhere: no such directory"),
        (["index", ".", "--index", "no/such.db"], 3, "make its directory first"),
        (["list"], 2, "rtscope history index DIR --index history.db"),
        (["tag", "good", "nowhere"], 2, "no such file or directory"),
        (["tag", "Not Good", "."], 2, "no tag"),
    ],
)
def test_what_is_wrong_is_told(
    rtscope: Rtscope, here: Path, words: list[str], status: int, told: str
) -> None:
    said = rtscope("history", *words)
    assert said.status == status
    assert told in said.err
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--since", "yesterday"], "write a day, 2026-11-01, or days, 30d"),
        (["--tag", "*"], "no tag"),
    ],
)
def test_a_wrong_filter_is_told(
    rtscope: Rtscope, nights: Path, words: list[str], told: str
) -> None:
    rtscope("history", "index", nights)
    said = rtscope("history", "list", *words)
    assert said.status == 2
    assert told in said.err


def test_names_of_others_send_nothing_to_the_terminal(
    rtscope: Rtscope, here: Path
) -> None:
    keep(here / "nights/x", run(latencies(1), board="a\nb\x1b[2J"))
    rtscope("history", "index", here / "nights")
    for verb in ("list", "show", "check"):
        said = rtscope("history", verb).out
        assert "\x1b" not in said
        assert "ssh:a\\x0ab" in said, verb


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("", "nothing is in it; make it: rtscope history index DIR --index other.db"),
        ("CREATE TABLE mine (a)", "another file, and no index of rtscope"),
    ],
)
def test_a_file_of_others_is_no_old_index(
    rtscope: Rtscope, here: Path, table: str, told: str
) -> None:
    with closing(sqlite3.connect(here / "other.db")) as other:
        other.execute(table or "VACUUM")
    said = rtscope("history", "list", "--index", "other.db")
    assert said.status == 2
    assert told in said.err


def test_an_index_that_another_holds_is_left_when_it_is_free(
    rtscope: Rtscope, nights: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtscope.verbs.history.database.PATIENCE_S", 0.01)
    rtscope("history", "index", nights)
    with closing(sqlite3.connect(here / "history.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        (nights / "night-00").rename(here / "away")
        said = rtscope("history", "index", nights)
    assert said.status == 3
    assert "another process holds it" in said.err
    assert rtscope("history", "index", nights).status == 0


# --- check ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty equal nights of two boards, and four of which those of b are worse."""
    nights = tmp_path_factory.mktemp("made") / "nights"
    lab(nights, 20, boards=("a", "b"))
    for night in range(20, 24):
        for board, worst_ns in (("a", 40_000), ("b", 400_000)):
            of_night = latencies(night * 3, worst_ns=worst_ns)
            place = nights / f"night-{night}/{board}"
            keep(place, run(of_night, night=night, board=board, release="6.12.44"))
    return nights


@pytest.fixture
def worse(rtscope: Rtscope, here: Path, made: Path) -> Path:
    """The nights of `made`, in the index."""
    shutil.copytree(made, here / "nights")
    rtscope("history", "index", "nights")
    return here / "nights"


def test_the_worse_board_is_named_with_status_1(rtscope: Rtscope, worse: Path) -> None:
    said = rtscope("history", "check", "--junit", "h.xml")
    assert said.status == 1
    assert said.out.startswith("Worse: ssh:b idle (1 of 2 series).\n")
    assert "kernel 6.12.43" in said.out
    assert "[[run]]" in said.out
    assert 'failures="1"' in (worse.parent / "h.xml").read_text()

    quiet = rtscope("history", "check", "-q")
    assert len(quiet.out.splitlines()) == 2
    document = json.loads(rtscope("history", "check", "--json").out)
    assert document["exit_status"] == 1
    assert [one["word"] for one in document["series"]] == ["NOT WORSE", "WORSE"]
    assert rtscope("history", "check", "--machine", "*a").status == 0


def test_a_check_says_since_when_as_show_does(rtscope: Rtscope, here: Path) -> None:
    for night in range(24):
        worst_ns, release = (40_000, "6.12.43") if night < 14 else (400_000, "6.12.44")
        of_night = latencies(night, worst_ns=worst_ns)
        keep(here / f"n/{night:02}", run(of_night, night=night, release=release))
    rtscope("history", "index", "n")
    said = rtscope("history", "check", "--latest", "10", "--json", "--junit", "h.xml")
    shown = json.loads(rtscope("history", "show", "--json").out)
    since = json.loads(said.out)["series"][0]["since"]
    assert said.status == 1
    assert since == shown["series"][0]["change_points"]
    assert {one["started"][:10] for one in since} == {"2026-11-15"}
    assert all("kernel 6.12.43 → 6.12.44" in one["changed"] for one in since)
    assert "2026-11-15; there: kernel" in (here / "h.xml").read_text()

    text = " ".join(rtscope("history", "check", "--latest", "10").out.split())
    assert "on this level since 2026-11-15" in text
    assert all(f"ssh:a idle: {one['sentence']}" in text for one in since)


def test_a_change_before_the_newest_nights_is_named_without_an_alarm(
    rtscope: Rtscope, here: Path
) -> None:
    """Of 24 nights the last ten are worse: the newest four are as those before."""
    for night in range(24):
        worst_ns = 40_000 if night < 14 else 400_000
        of_night = latencies(night, worst_ns=worst_ns)
        keep(here / f"nights/night-{night:02}", run(of_night, night=night))
    rtscope("history", "index", "nights")
    said = rtscope("history", "check", "--latest", "1")
    assert said.status == 0
    assert "since 2026-11-15" in said.out
    old = rtscope("history", "check", "nights/night-10", "--json")
    assert json.loads(old.out)["series"][0]["since"] == []
    recent = rtscope("history", "check", "--baseline", "last:5", "--json")
    assert json.loads(recent.out)["series"][0]["since"] == []


def test_a_named_result_is_checked(rtscope: Rtscope, worse: Path) -> None:
    one = rtscope("history", "check", worse / "night-20/b", "--json")
    document = json.loads(one.out)
    assert document["series"][0]["new"] == [str(worse / "night-20/b")]
    assert len(document["series"][0]["before"]) == 20
    assert one.status == 1


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["--baseline", "best"], 2, "write last:20"),
        (["--latest", "0"], 2, "greater than or equal to 1"),
        (["nights/night-20", "--latest", "2"], 2, "--latest chooses the newest"),
        (["--machine", "nobody"], 2, "no run to check"),
        (["--junit", "no/h.xml"], 3, "cannot write no/h.xml"),
        (["nowhere"], 2, "no such file or directory"),
        (["--deadline", "200"], 2, "no unit"),
    ],
)
@pytest.mark.usefixtures("worse")
def test_a_wrong_question_is_told(
    rtscope: Rtscope, words: list[str], status: int, told: str
) -> None:
    said = rtscope("history", "check", *words)
    assert said.status == status
    assert told in said.err.replace("\n", " ")


def test_a_result_that_is_not_indexed_is_told(rtscope: Rtscope, worse: Path) -> None:
    keep(worse / "night-30/a", run(latencies(99), night=30))
    said = rtscope("history", "check", worse / "night-30")
    assert said.status == 2
    assert "not in the index history.db" in said.err


def test_the_keys_of_json_are_held(rtscope: Rtscope, worse: Path) -> None:
    checked = json.loads(rtscope("history", "check", "--json").out)
    listed = json.loads(rtscope("history", "list", "--json").out)
    indexed = json.loads(rtscope("history", "index", worse, "--json").out)

    assert list(indexed) == [
        *("index", "new", "changed", "unchanged", "vanished", "damaged"),
    ]
    assert list(checked) == [
        *("sentence", "exit_status", "baseline", "alpha", "tests", "series"),
    ]
    assert list(checked["series"][0]) == [
        *("series", "machine", "load", "word", "alarms", "sentence", "since"),
        *(
            "new",
            "before",
            "misses",
            "changed",
            "not_compared",
            "other_lengths",
            "figures",
        ),
    ]
    assert list(checked["series"][0]["figures"][0]) == [
        *("figure", "ratio", "p", "adjusted_p", "worse", "detectable_ratio"),
    ]
    assert list(listed) == ["runs", "total", "damaged"]
    assert list(listed["runs"][0]) == [
        *("path", "run", "series", "started", "machine", "board_revision", "kernel"),
        *("kernel_release", "load", "variant", "event", "policy", "priority"),
        *("interval_ns", "observed_ns", "seed", "agent", "rtscope", "digest", "why"),
        *("cause", "deadline_ns", "misses", "celsius", "vanished", "virtual", "counts"),
        *("tags", "caveats", "figures"),
    ]


# --- show -----------------------------------------------------------------------------


def test_one_series_has_a_line_for_each_night(rtscope: Rtscope, nights: Path) -> None:
    rtscope("history", "index", nights)
    several = rtscope("history", "show")
    assert several.status == 0
    assert "ssh:a memory" in several.out
    one = rtscope("history", "show", "--machine", "*b", "--nights", "2")
    assert "2026-11-03" in one.out
    assert "2026-11-01" not in one.out
    assert "3 nights, of which the newest 2 are shown; --nights shows more." in one.out


def test_the_newest_nights_are_never_cut_from_a_chart(
    rtscope: Rtscope, here: Path, made: Path
) -> None:
    shutil.copytree(made, here / "nights")
    keep(here / "nights/rack", run(latencies(1), board="rack-2-" * 5))
    rtscope("history", "index", "nights")
    out = rtscope("history", "show").out
    assert "▁" * 20 + "█" * 4 in out

    one = rtscope("history", "show", "--machine", "ssh:" + "rack-2-" * 5).out
    assert "2026-11-01" in one
    assert "█" * 12 in one


def test_the_page_names_each_series_and_its_change(
    rtscope: Rtscope, worse: Path, here: Path
) -> None:
    said = rtscope("history", "show", "--html", "h.html")
    assert said.status == 0
    page = (here / "h.html").read_text()
    assert page.count("<h2>ssh:") == 2
    assert page.count('class="chart nights"') == 2
    assert page.count('class="chart stacked"') == 2
    assert "kernel 6.12.43 → 6.12.44" in page
    assert not list(uneven_rows(page))


def test_the_keys_of_show_are_held(rtscope: Rtscope, worse: Path) -> None:
    document = json.loads(rtscope("history", "show", "--json").out)
    assert list(document) == ["series", "older_runs"]
    series = document["series"][0]
    assert list(series) == [
        *("series", "machine", "load", "virtual", "nights", "change_points"),
    ]
    assert list(series["nights"][0]) == [
        *("directory", "started", "counts", "why", "max_ns", "p99_9_ns", "p50_ns"),
        *("celsius", "kernel", "caveats", "changed", "begins"),
    ]


def test_names_of_others_are_text_of_the_page(rtscope: Rtscope, here: Path) -> None:
    odd = run(latencies(1), board="<b>x</b>", release="6.12\x1b[2J")
    keep(here / "nights/x", odd)
    rtscope("history", "index", here / "nights")
    assert rtscope("history", "show", "--html", "h.html").status == 0
    page = (here / "h.html").read_text()
    assert "<b>x" not in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["--machine", "nobody"], 2, "no run to show"),
        (["--html", "no/h.html"], 3, "cannot write no/h.html"),
        (["--nights", "0"], 2, "greater than or equal to 1"),
    ],
)
@pytest.mark.usefixtures("worse")
def test_a_wrong_show_is_told(
    rtscope: Rtscope, words: list[str], status: int, told: str
) -> None:
    said = rtscope("history", "show", *words)
    assert said.status == status
    assert told in said.err.replace("\n", " ")


# --- query ----------------------------------------------------------------------------


@pytest.fixture
def few(rtscope: Rtscope, nights: Path) -> Path:
    """Three nights, in the index."""
    rtscope("history", "index", nights)
    return nights


@pytest.mark.usefixtures("few")
def test_a_query_may_call_its_columns_as_those_of_run(rtscope: Rtscope) -> None:
    said = rtscope(
        *("history", "query", "--json"),
        "SELECT 'x' AS started, count(*) AS counts, NULL AS path FROM run",
    )
    assert json.loads(said.out) == {
        "columns": ["started", "counts", "path"],
        "rows": [["x", 7, None]],
        "more": False,
    }


@pytest.mark.usefixtures("few")
def test_rows_are_bounded_and_values_harmless(rtscope: Rtscope) -> None:
    two = rtscope("history", "query", "SELECT id FROM run", "--limit", "2")
    assert two.out.splitlines()[-1] == "2 rows, and more; --limit 0 shows all."
    rows = rtscope("history", "query", "SELECT id FROM run", "--limit", "0", "--csv")
    assert len(rows.out.splitlines()) == 8
    odd = "SELECT char(27) AS a, NULL AS b, zeroblob(812) AS histogram"
    shown = rtscope("history", "query", odd).out
    assert "\x1b" not in shown
    assert shown.splitlines()[1].split() == [
        r"\x1b",
        NOTHING,
        "histogram,",
        "812",
        "bytes",
    ]
    rows_below = rtscope("history", "query", "SELECT * FROM run LIMIT 1").out
    assert "  kernel_release" in rows_below


@pytest.mark.usefixtures("few")
def test_conditions_are_read_as_json(rtscope: Rtscope) -> None:
    query = "SELECT DISTINCT key FROM conditions, json_each(text) WHERE key = 'load'"
    said = rtscope("history", "query", query, "--json")
    assert json.loads(said.out)["rows"] == [["load"]]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("DELETE FROM run", "open for reading alone"),
        ("ATTACH 'other.db' AS other", "open for reading alone"),
        ("VACUUM INTO 'other.db'", "open for reading alone"),
        ("PRAGMA journal_mode = DELETE", "open for reading alone"),
        ("CREATE TEMP TABLE x (y)", "open for reading alone"),
        ("SELECT 1 FROM runs", "no such table: runs; tables: conditions, run"),
        ("SELECT worst FROM tag", "columns of tag: directory, tag"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("SELECT ?", "bindings"),
        ("SELECT zeroblob(1000000000)", "too big"),
        ("SELECT '\udcff'", "surrogates"),
        (" ", "no query"),
        ("worst-per-nigth", "did you mean 'worst-per-night'"),
    ],
)
def test_a_refused_query_is_told(
    rtscope: Rtscope, few: Path, here: Path, query: str, told: str
) -> None:
    before = (here / "history.db").read_bytes()
    said = rtscope("history", "query", query)
    assert said.status == 2
    assert told in said.err.replace("\n", " ")
    assert (here / "history.db").read_bytes() == before
    assert sorted(one.name for one in here.iterdir()) == ["history.db", few.name]


@pytest.mark.parametrize(
    "words",
    [[], ["SELECT 1", "--list"], ["--list", "--csv"], ["SELECT 1", "--csv", "--json"]],
)
def test_words_that_do_not_go_together(rtscope: Rtscope, words: list[str]) -> None:
    assert rtscope("history", "query", *words).status == 2


def test_datasette_has_the_queries_and_columns(rtscope: Rtscope, here: Path) -> None:
    said = rtscope("history", "query", "--index", "lab.db", "--datasette", "m.json")
    assert "datasette lab.db --metadata m.json" in said.out
    database = json.loads((here / "m.json").read_text())["databases"]["lab"]
    listed = json.loads(rtscope("history", "query", "--list", "--json").out)
    assert database["queries"] == listed["queries"]
    assert database["tables"] == listed["tables"]
