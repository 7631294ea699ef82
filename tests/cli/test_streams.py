"""Output that cannot be written costs nothing but itself; what is shown is harmless."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tty
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.text import Text

from fakes.forked import Forked
from rtscope.cli.console import VisibleConsole

TESTS = Path(__file__).parents[1]

MEASURE = """
import contextlib
from fakes import targets
from rtscope.cli import main
from rtscope.verbs.run import run
run.open_target = lambda address, **_: contextlib.nullcontext(targets.target())
main.main()
"""

RTSCOPE = "from rtscope.cli.start import main; main()"
IDLE = ("run", "--load", "idle", "--duration", "6s", "--interval", "100ms")
RUN = (*IDLE, "--out", "out")
HARMLESS = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}


def shell(redirected: str, *words: str, here: Path) -> subprocess.CompletedProcess[str]:
    """Type a command, with streams redirected."""
    return subprocess.run(
        ["bash", "-c", f'"$@" {redirected}', "bash", *words],
        cwd=here,
        env={**HARMLESS, "PYTHONPATH": str(TESTS)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


GONE = {
    "full": "2>/dev/full",
    "closed": "2>&-",
    "stdout full": ">/dev/full",
    "stdout closed": ">&-",
    "all closed": "<&- >&- 2>&-",
    "read only": "2</dev/null",
    "broken pipe": "2> >(exec 0<&-)",
}


@pytest.mark.parametrize(
    "redirected",
    [
        pytest.param(words, id=name, marks=() if name == "full" else pytest.mark.slow)
        for name, words in GONE.items()
    ],
)
def test_output_that_cannot_be_written_costs_no_measurement(
    redirected: str, tmp_path: Path, forked: Forked
) -> None:
    # One is started as a user starts it, by an interpreter that finds all closed.
    started = (
        (sys.executable, "-c", MEASURE)
        if redirected == GONE["all closed"]
        else forked(MEASURE)
    )
    done = shell(redirected, *started, *RUN, "--deadline", "6500ns", here=tmp_path)

    assert "Traceback" not in done.stderr + done.stdout
    assert done.returncode == 1  # measured: the deadline was missed
    if redirected in (GONE["stdout full"], GONE["stdout closed"]):
        assert "cannot write to standard output" in done.stderr
    [saved] = (tmp_path / "out" / "runs").iterdir()
    assert json.loads((saved / "record.json").read_text())["result"] is not None


UNWRITABLE = {"full": ">/dev/full", "closed": ">&-", "read only": "1</dev/null"}
PRINTING = {
    "help": ("--help",),
    "help of a verb": ("report", "--help"),
    "version": ("--version",),
    "text": ("completion", "bash"),
    "table": ("kernel", "list"),
    "checks": ("audit", "--config", "config"),
    "checks as JSON": ("audit", "--config", "config", "--json"),
}


@pytest.mark.slow
@pytest.mark.parametrize("redirected", UNWRITABLE.values(), ids=UNWRITABLE)
@pytest.mark.parametrize("words", PRINTING.values(), ids=PRINTING)
def test_a_result_that_cannot_be_written_keeps_the_status_and_is_told(
    words: tuple[str, ...], redirected: str, tmp_path: Path, forked: Forked
) -> None:
    (tmp_path / "config").write_text("CONFIG_PREEMPT_RT=y\n")
    written = shell(">/dev/null", *forked(RTSCOPE), *words, here=tmp_path)
    lost = shell(redirected, *forked(RTSCOPE), *words, here=tmp_path)

    assert lost.returncode == written.returncode
    assert lost.stderr.count("cannot write to standard output") == 1
    assert "Traceback" not in lost.stderr


def test_a_reader_that_has_read_enough_is_told_nothing(
    tmp_path: Path, forked: Forked
) -> None:
    done = shell("| head -c 1", *forked(RTSCOPE), "--help", here=tmp_path)

    assert done.stderr == ""


def full_pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    fill(writer)
    return reader, writer


def full_terminal() -> tuple[int, int]:
    master, slave = os.openpty()
    tty.setraw(slave)
    fill(slave)
    return master, slave


def fill(descriptor: int) -> None:
    os.set_blocking(descriptor, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(descriptor, b".")
    os.set_blocking(descriptor, True)


@pytest.mark.slow
@pytest.mark.parametrize("full", [full_pipe, full_terminal])
def test_messages_that_nobody_reads_stop_no_measurement(
    full: Callable[[], tuple[int, int]], tmp_path: Path, forked: Forked
) -> None:
    reader, writer = full()
    try:
        done = subprocess.run(
            [*forked(MEASURE), *RUN, "--deadline", "6500ns"],
            cwd=tmp_path,
            env={**HARMLESS, "PYTHONPATH": str(TESTS), "TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=writer,
            timeout=600,
            check=False,
        )
        blocking = os.get_blocking(writer)  # whoever shares it did not ask for that
    finally:
        os.close(writer)
        os.close(reader)

    assert done.returncode == 1
    assert b"NO: the deadline was missed" in done.stdout
    assert blocking
    [saved] = (tmp_path / "out" / "runs").iterdir()
    assert json.loads((saved / "record.json").read_text())["result"] is not None


SAY_MUCH = """
import os, sys
from rtscope.cli.streams import open_streams
from rtscope.cli.streams import never_wait_for_readers
open_streams()
never_wait_for_readers()
for number in range(3000):
    print(f"line {number:4} " + 90 * "x", file=sys.stderr)
sys.stdout.write("all is said")
sys.stdout.flush()
sys.stdin.read(1)
print("later", file=sys.stderr)
"""


def test_messages_that_were_dropped_are_counted() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAY_MUCH],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None
        assert program.stdout.read(11) == b"all is said"
        os.set_blocking(program.stderr.fileno(), False)
        kept = program.stderr.read()
        os.set_blocking(program.stderr.fileno(), True)
        program.stdin.write(b"g")
        program.stdin.flush()
        rest = program.stderr.read().decode()

    count = re.search(r"rtscope: ([0-9,]+) bytes of messages were dropped", rest)
    assert count is not None
    assert len(kept) + int(count[1].replace(",", "")) == 3000 * 101
    assert rest.endswith("nobody read standard error\nlater\n")


def test_an_error_without_a_reader_keeps_its_status(
    tmp_path: Path, forked: Forked
) -> None:
    for redirected in GONE.values():
        done = shell(redirected, *forked(RTSCOPE), "report", "none", here=tmp_path)

        assert "Traceback" not in done.stderr + done.stdout
        assert done.returncode == 2


@pytest.mark.parametrize("ignored", [True, False])
def test_a_terminal_that_is_gone_ends_only_a_campaign_that_listens(
    ignored: bool, tmp_path: Path, forked: Forked
) -> None:
    """`nohup` has SIGHUP ignored; the terminal of the messages is gone in both."""
    # Whatever these tests were started with, nohup perhaps.
    signals = "--ignore-signal=HUP" if ignored else "--default-signal=HUP"
    hanging_up = (*forked(HANG_UP + MEASURE), *RUN)
    master, slave = os.openpty()
    with subprocess.Popen(
        ["env", signals, *hanging_up],
        cwd=tmp_path,
        env={**HARMLESS, "PYTHONPATH": str(TESTS), "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=slave,
    ) as run:
        os.close(slave)
        os.close(master)
        shown, _ = run.communicate(timeout=600)

    assert b"Traceback" not in shown
    assert run.returncode == (0 if ignored else 130)


HANG_UP = """
import os, signal
from rtscope.measure import execute
def assemble(measured, assemble=execute.assemble):
    os.kill(os.getpid(), signal.SIGHUP)
    return assemble(measured)
execute.assemble = assemble
"""

NASTY = "\x1b]0;owned\x07\x9b31m\u202e"


@pytest.mark.parametrize("terminal", [True, False])
def test_foreign_text_cannot_control_a_terminal(
    terminal: bool, tmp_path: Path, forked: Forked
) -> None:
    runs = tmp_path / "out" / "runs"
    (runs / f"001-{NASTY}").mkdir(parents=True)
    (tmp_path / "out" / "campaign.json").write_text("{}")
    (runs / f"001-{NASTY}" / "record.json").write_text(json.dumps({NASTY: 1}))
    for words in (
        (*forked(RTSCOPE), "report", "out"),
        (*forked(MEASURE), "run", "--resume", "out"),
        (*forked(RTSCOPE), "explain", "out"),
    ):
        said = (
            _on_terminal(*words, here=tmp_path)
            if terminal
            else _piped(*words, here=tmp_path)
        )

        assert "\x1b" not in said
        assert "\x9b" not in said
        assert "\u202e" not in said


def _piped(*words: str, here: Path) -> str:
    done = shell("", *words, here=here)
    return done.stdout + done.stderr


def _on_terminal(*words: str, here: Path) -> str:
    master, slave = os.openpty()
    subprocess.run(
        words,
        cwd=here,
        env={**HARMLESS, "PYTHONPATH": str(TESTS), "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        timeout=600,
        check=False,
    )
    os.close(slave)
    shown = os.read(master, 1 << 16)
    os.close(master)
    return shown.decode()


def test_a_console_shows_foreign_sequences_and_sends_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with (tmp_path / "shown").open("w+") as file:
        console = VisibleConsole(file=file, force_terminal=True, width=60)
        console.print(Text(f"a{NASTY}b\n", style="bold"))
        file.seek(0)
        shown = file.read()

    assert r"\x1b]0;owned" in shown
    assert "\x1b[1m" in shown
    assert "\x1b]" not in shown
    assert "\u202e" not in shown
