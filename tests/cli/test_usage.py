"""What is typed wrong is told in one clear message, and nothing is done."""

import errno
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.boards import campaign
from fakes.commandline import Rtscope
from fakes.forked import Forked
from fakes.measurements import record, thread
from rtscope import __version__
from rtscope.measure.campaign.file import to_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.record.caveats.catalogue import make
from rtscope.record.directory.records import ResultDir, create


@pytest.fixture
def measured(here: Path) -> ResultDir:
    """A campaign of two loads."""
    store = create(here / "out", {}, command=("rtscope", "run"))
    asked = to_dict(Campaign())
    for kept in campaign(loads=("idle", "memory"), cpus=2, seconds=3):
        store.save(replace(kept, campaign=asked, caveats=(make("guest"),)))
    return store


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run --duration 0", "--duration: 0: no unit; write 0us, 0ms or 0s"),
        ("run --duration 0s", "--duration: "),
        ("run --duration 200", "write 200us, 200ms or 200s"),
        ("run --duration -5s", "--duration: "),
        ("run --interval 1ns", "--interval: "),
        ("run --load memroy", "'memroy'; did you mean 'memory'?"),
        ("run --load ,", "--load: "),
        ("run --cpus 0-", "'0-': not a CPU list; write 0-3 or 0,2,5-7"),
        ("run --cpus 3-1", "--cpus: "),
        ("run --deadline 200", "--deadline: 200: no unit; write 200us"),
        ("run --claim 1/1h", "write deadline too, for example 200us"),
        ("run --claim often --deadline 1ms", "--claim: "),
        ("run --policy fifi", "'fifi'"),
        ("run --policy other --priority 5", "policy other has no priority"),
        ("run --policy deadline --cpus 0", "pins no thread of policy deadline"),
        ("run --priority 100", "--priority: 100: write 1 to 99"),
        ("run --priority \u00b2", "write a whole number, 1 to 99"),
        ("run --priority " + "9" * 5000, "write a whole number, 1 to 99"),
        ("run --repetitions 0", "--repetitions: 0: write 1 to 10000"),
        ("run --worst -1", "--worst: "),
        ("run --load custom", "the custom load needs a command"),
        ("run --command ls", "no run has the custom load"),
        ("run --rt-throttling on", "--rt-throttling: "),
        ("run --target ssh:-oProxyCommand=x", "does not begin with '-'"),
        ("run --target there", "write local, ssh:HOST, lab:PLACE or virtual:BOARD"),
        ("run --target virtual:vf2", "no such board"),
        ("run --kernel debian-6.12", "--kernel is for virtual boards only"),
        ("app check 1 --append nohz=off", "--append and --seed are for virtual boards"),
        ("run none.toml", "cannot read none.toml: No such file"),
        ("run --resume none", "none: no campaign there: it has no campaign.json"),
        ("report none", "none: no such file or directory"),
        ("tasks --target there", "write local, ssh:HOST or lab:PLACE; a host is"),
        ("tasks --target ssh:-oProxyCommand=x", "does not begin with '-'"),
        ("tasks --share 1", "--share: 1: no unit; write 1us, 1ms or 1s"),
        ("tasks --share 1ms", "--share: 1ms: write 10ms to 1h"),
        ("tasks --watch 2h", "--watch: 2h: write 10ms to 1h"),
        ("tasks --share 1s --watch 1s", "--watch measures shares too"),
        ("tasks --watch 1s --json", "rtscope tasks --share 1s --json"),
        ("report x --json --format csv", "leave it or --format csv out"),
        ("compare x y --json --format markdown", "--json is short for --format json"),
        ("tasks --sort share", "--share 1s"),
        ("compare none none", "none: no such file or directory"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(
    words: str, told: str, rtscope: Rtscope, here: Path
) -> None:
    said = rtscope(*words.split(" "))

    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("rtscope: ")
    assert said.err.count("\n") == 1
    assert told in said.err
    assert len(said.err) < 600
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run --no-such", "No such option: --no-such"),
        ("run --durations 5s", "--duration"),
        ("run --repetitions many", "should be a valid integer"),
        ("report", "Missing argument"),
        ("report x --format xml", "'markdown'"),
        ("frobnicate", "No such command 'frobnicate'"),
    ],
)
def test_a_word_that_does_not_exist_is_told_with_how_to_get_help(
    words: str, told: str, rtscope: Rtscope
) -> None:
    said = rtscope(*words.split(" "))

    assert (said.status, said.out) == (2, "")
    assert told in said.err
    assert "--help" in said.err
    assert "Traceback" not in said.err


def test_a_quote_that_is_not_closed_is_told(rtscope: Rtscope, here: Path) -> None:
    said = rtscope("run", "--load", "custom", "--command", "sh -c 'x")

    assert said.status == 2
    assert '--command: "sh -c \'x": no closing quotation mark' in said.err
    assert list(here.iterdir()) == []


def test_results_are_never_mixed_with_older_ones(
    rtscope: Rtscope, measured: ResultDir
) -> None:
    said = rtscope("run", "--out", "out")

    assert said.status == 2
    assert "out already holds a campaign" in said.err
    assert "rtscope run --resume out" in said.err


@pytest.mark.parametrize(
    "more", [("--duration", "1s"), ("--out", "x"), ("campaign.toml",), ("--load", "os")]
)
def test_what_is_resumed_was_asked_for_then(
    more: tuple[str, ...], rtscope: Rtscope, measured: ResultDir
) -> None:
    said = rtscope("run", "--resume", "out", *more)

    assert said.status == 2
    assert "--resume continues the campaign as it was started" in said.err


def test_one_record_cannot_be_compared(rtscope: Rtscope, measured: ResultDir) -> None:
    said = rtscope("compare", "out")

    assert said.status == 2
    assert "name two records or more" in said.err


def test_two_records_of_one_name_need_another(
    rtscope: Rtscope, measured: ResultDir
) -> None:
    said = rtscope("compare", "out", "./out")

    assert said.status == 2
    assert "two records are called 'out'; write NAME=DIR" in said.err


def test_a_claim_without_a_deadline_means_nothing_in_a_report(
    rtscope: Rtscope, measured: ResultDir
) -> None:
    said = rtscope("report", "out", "--claim", "1/1h")

    assert said.status == 2
    assert "add --deadline" in said.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{}", "schema None, and this rtscope reads 2"),
        ('{"schema": 3}', "read it with the newer rtscope"),
        ('{"schema": 1}', "measure again: rtscope run"),
        ("not json", "damaged record"),
    ],
)
def test_a_damaged_record_is_no_valid_measurement(
    content: str, told: str, rtscope: Rtscope, measured: ResultDir
) -> None:
    (measured.run_dir("001-idle-r1") / "record.json").write_text(content)
    said = rtscope("report", "out")

    assert (said.status, said.out) == (3, "")
    assert said.err.startswith("rtscope: ")
    assert told in said.err
    assert said.err.count("\n") == 1


def test_a_page_that_cannot_be_written_is_told(
    rtscope: Rtscope, measured: ResultDir
) -> None:
    said = rtscope("report", "out", "--html", "no/such/place.html")

    assert said.status == 3
    assert "cannot write no/such/place.html: No such file" in said.err
    assert said.err.endswith("make its directory first\n")
    assert said.out == ""


def test_a_file_in_the_place_of_the_charts_is_refused(
    rtscope: Rtscope, measured: ResultDir, here: Path
) -> None:
    (here / "charts").write_text("mine")
    said = rtscope("report", "out", "--charts", "charts")

    assert (said.status, said.out) == (2, "")
    assert "--charts charts: a file; name a directory" in said.err
    assert (here / "charts").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "advice"),
    [("-q -v", "leave one out"), ("--notes -v", "leave out -q and -v")],
)
def test_two_amounts_of_output_are_refused(
    rtscope: Rtscope, measured: ResultDir, words: str, advice: str
) -> None:
    said = rtscope("report", "out", *words.split())

    assert (said.status, said.out) == (2, "")
    assert advice in said.err


def test_help_and_version_are_results(rtscope: Rtscope) -> None:
    assert rtscope("--version").out == f"rtscope {__version__}\n"
    for verb in ("run", "report", "compare"):
        said = rtscope(verb, "--help")
        assert (said.status, said.err) == (0, "")
        assert said.out.startswith(f"Usage: rtscope {verb} [OPTIONS]")


# --- where the result goes ------------------------------------------------------------


def test_the_page_is_as_wide_as_the_terminal_says(
    rtscope: Rtscope, measured: ResultDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    said = rtscope("report", "out")

    assert said.status == 0
    assert max(map(len, said.out.splitlines())) <= 60


def typed(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "rtscope", *words],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=600,
        check=False,
    )


RTSCOPE = "from rtscope.cli.start import main; main()"


def test_who_stops_reading_has_seen_enough(measured: ResultDir, forked: Forked) -> None:
    argv = [*forked(RTSCOPE), "report", str(measured.path)]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        done = subprocess.run(
            argv, stdout=gone, stderr=subprocess.PIPE, timeout=600, check=False
        )

    assert (done.returncode, done.stderr) == (0, b"")


def test_a_result_that_cannot_be_written_is_told(
    measured: ResultDir, forked: Forked
) -> None:
    argv = [*forked(RTSCOPE), "report", str(measured.path)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            argv,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=600,
            check=False,
            # With it Python writes even what is empty, and /dev/full refuses that.
            env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
        )

    told = b"rtscope: cannot write to standard output: No space left on device"
    assert done.returncode == 0  # the measurement's, whoever reads it
    assert done.stderr.startswith(told)


def failing(error: Exception) -> Callable[[], Path]:
    def fail() -> Path:
        raise error

    return fail


def test_a_full_disk_is_no_bug(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/there")
    monkeypatch.setattr("rtscope.verbs.kernel.kernel.cache_dir", failing(full))
    said = rtscope("kernel", "list")

    assert said.status == 3
    assert said.err == "rtscope: /there: No space left on device\n"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OverflowError("too\nlarge"), 70),
        (RuntimeError("OverflowError"), 70),
        (RuntimeError("can't start new thread"), 3),
        (MemoryError(), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_a_bug_has_a_status_of_its_own_and_keeps_its_traceback(
    rtscope: Rtscope,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: Exception,
    status: int,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("rtscope.verbs.kernel.kernel.cache_dir", failing(error))
    said = rtscope("kernel", "list")

    kept = list(tmp_path.glob("rtscope-crash-*"))
    assert (said.status, len(kept)) == (status, int(status == 70))
    assert "Traceback" not in said.err
    for file in kept:
        assert str(file) in said.err
        text = file.read_text()
        assert "kernel list" in text
        assert "Traceback" in text
        assert "OverflowError" in text


def test_a_bug_is_told_where_no_file_can_be_written(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    monkeypatch.setattr("rtscope.verbs.kernel.kernel.cache_dir", failing(KeyError("x")))
    said = rtscope("kernel", "list")

    assert said.status == 70
    assert "Traceback" in said.err


@pytest.mark.slow
def test_a_terminal_that_knows_only_ascii_gets_what_it_can_show(
    measured: ResultDir,
) -> None:
    done = typed("report", measured.path, PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, b"")
    assert b"memory" in done.stdout
    assert max(done.stdout) < 128


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)]
)
def test_colours_are_for_terminals_whose_user_wants_them(
    environment: dict[str, str], coloured: bool, measured: ResultDir, forked: Forked
) -> None:
    master, slave = os.openpty()
    argv = [*forked(RTSCOPE), "report", str(measured.path)]
    plain = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    with subprocess.Popen(
        argv,
        stdout=slave,
        stderr=subprocess.PIPE,
        env={**plain, "TERM": "xterm-256color", **environment},
    ) as report:
        os.close(slave)
        shown = b""
        while piece := read(master):
            shown += piece
        assert report.stderr is not None
        assert report.stderr.read() == b""
    os.close(master)

    colours = re.findall(rb"\x1b\[[0-9;]*3[0-9][0-9;]*m", shown)  # bold may stay
    assert bool(colours) == coloured
    assert report.returncode == 0


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody holds the other side any more
        return b""


@pytest.mark.parametrize("form", ["markdown", "csv", "json"])
def test_a_result_is_printed_in_each_format(
    form: str, rtscope: Rtscope, measured: ResultDir
) -> None:
    said = rtscope("report", "out", "--format", form)

    assert (said.status, said.err) == (0, "")
    assert "memory" in said.out
    if form == "json":
        assert json.loads(said.out)
        assert rtscope("report", "out", "--json").out == said.out


def test_two_machines_are_compared(rtscope: Rtscope, here: Path) -> None:
    for name, scale in (("slow", 9_000), ("fast", 5_000)):
        store = create(here / name, {}, command=())
        store.save(record([thread([scale, scale + 100] * 30)]))
    said = rtscope("compare", "slow", "quick=fast", "--html", "page.html")

    assert (said.status, said.err) == (0, "")
    assert "slow" in said.out
    assert "quick" in said.out
    assert (here / "page.html").read_text().startswith("<!")


@pytest.mark.parametrize(
    ("asked", "status", "told"),
    [
        ({"campaign": {"deadline": "soon"}}, 2, "the record: [campaign] deadline: "),
        ({"campaign": []}, 2, "the record: [campaign] "),
        ({"target": {"from_a_later_rtscope": 1}}, 0, ""),
    ],
)
def test_a_report_needs_only_the_question_of_the_campaign(
    rtscope: Rtscope, here: Path, asked: dict[str, object], status: int, told: str
) -> None:
    store = create(here / "out", {}, command=("rtscope", "run"))
    store.save(replace(record([thread([10])]), campaign=asked))
    done = rtscope("report", "out")
    assert done.status == status
    assert told in done.err
