"""Ctrl-C and TERM end a command in words, at whichever of its lines they come."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fakes import interrupting

CONFIG = "CONFIG_PREEMPT_RT=y\n"
FOREIGN = Path(__file__).parents[1] / "foreign/cyclictest-2.10-histogram.txt"


VERBS = {
    "version": ("--version",),
    "audit": ("audit", "--config", "CONFIG"),
    "import": ("import", str(FOREIGN), "--out", "imported"),
    "refused": ("report", "gone"),
    "mistaken": ("sweep", "CONFIG", "--dry-run"),
}


@pytest.mark.parametrize(
    ("verb", "signo"),
    [
        ("version", signal.SIGINT),
        *(
            pytest.param(verb, signo, marks=pytest.mark.slow)
            for verb, signo in (
                *((verb, signal.SIGINT) for verb in VERBS if verb != "version"),
                ("audit", signal.SIGTERM),
                ("refused", signal.SIGHUP),
            )
        ),
    ],
)
def test_a_signal_at_any_line_ends_a_command_in_words(
    verb: str, signo: signal.Signals, tmp_path: Path
) -> None:
    config = tmp_path / "kernel.config"
    config.write_text(CONFIG)
    words = [str(config) if word == "CONFIG" else word for word in VERBS[verb]]
    done = subprocess.run(
        [sys.executable, interrupting.__file__, "16", str(int(signo)), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    ends = [line.split("\t") for line in done.stdout.splitlines()]

    assert len(ends) >= 16
    assert {(status, said) for status, _, said in ends} == {
        ("130", repr("rtscope: interrupted\n"))
    }, [one for one in ends if one[0] != "130"]


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    """As `nohup` and a shell's `command &` ask for."""
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "sys.argv = ['rtscope', '--version']\n"
        "sys.settrace(lambda *_: os.kill(os.getpid(), signal.SIGINT))\n"
        "from rtscope.cli.start import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)

    assert done.returncode == 0
    assert done.stdout.startswith(b"rtscope ")
