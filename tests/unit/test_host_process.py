"""Programs that rtscope starts: their output is bounded, and they end in time."""

import os
import signal
import sys
import time

import pytest

from rtscope.host import process
from rtscope.host.errors import TargetError


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_what_a_program_says_and_its_status_come_back() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    done = process.run(python(code), timeout_s=60)
    assert (done.status, done.stdout, done.stderr) == (3, b"out\n", "err\n")


def test_much_goes_in_and_comes_out_at_once() -> None:
    given = os.urandom(1 << 20) * 8
    assert process.run(["cat"], timeout_s=60, stdin=given).stdout == given


def test_a_program_that_reads_nothing_ends_too() -> None:
    assert process.run(["true"], timeout_s=60, stdin=b"x" * (1 << 20)).status == 0


@pytest.mark.slow
@pytest.mark.parametrize("to", ["", ">&2"])
@pytest.mark.parametrize(
    "program", ["cat /dev/zero", "yes", "while :; do echo; done", "yes & yes"]
)
def test_a_program_that_never_ends_its_answer_is_ended(program: str, to: str) -> None:
    argv = ["sh", "-c", f"({program}) {to}"]
    with pytest.raises(TargetError, match="sh wrote more than 1,000,000 bytes: sh -c"):
        process.run(argv, timeout_s=60, most_bytes=1_000_000)


def test_the_signal_that_ended_it_is_its_status() -> None:
    done = process.run(["sh", "-c", "kill -TERM $$"], timeout_s=60)
    assert done.status == -signal.SIGTERM


@pytest.mark.parametrize("code", ["sleep 1000", "exec >&- 2>&-; sleep 1000"])
def test_a_program_that_does_not_end_is_ended_with_all_that_it_started(
    code: str,
) -> None:
    begun = time.monotonic()
    with pytest.raises(TargetError, match="did not end within 0 s"):
        process.run(["sh", "-c", f"{code} & {code}"], timeout_s=0.2)
    assert time.monotonic() - begun < 500


def test_a_missing_program_is_named() -> None:
    with pytest.raises(TargetError, match="nosuch: not installed on this machine"):
        process.run(["nosuch"], timeout_s=1)


def test_a_program_in_front_has_this_ones_streams_and_its_status_comes_back() -> None:
    looks: list[int] = []
    argv = ["sh", "-c", 'sleep 1; exit "$given"']
    kept = signal.getsignal(signal.SIGTERM)

    status = process.run_in_front(
        argv, {**os.environ, "given": "7"}, watch=lambda: looks.append(1)
    )

    assert (status, len(looks) > 0) == (7, True)
    assert signal.getsignal(signal.SIGTERM) is kept


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_the_programs_that_is_in_front(signo: signal.Signals) -> None:
    sent: list[int] = []

    def send_once() -> None:
        if not sent:
            sent.append(signo)
            os.kill(os.getpid(), signo)

    kept = signal.signal(signo, signal.SIG_DFL)  # nohup, for one, ignores it
    try:
        status = process.run_in_front(["sleep", "600"], os.environ, watch=send_once)
    finally:
        signal.signal(signo, kept)

    assert status == 128 + signo


def test_a_program_in_front_that_is_missing_is_named() -> None:
    with pytest.raises(TargetError, match="nosuch: not installed"):
        process.run_in_front(["nosuch"], os.environ, watch=lambda: None)
