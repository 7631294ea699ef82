"""
The `rtscope` command: choose the verb, run it, turn errors into an exit status.

0 passed or done, 1 deadline missed or check failed, 2 wrong usage, 3 no valid
measurement, 4 claim not shown, 70 rtscope itself failed, 125 kernel to skip, 126 no
execution of a program, 127 no such program, 128 no verdict for `git bisect run`,
130 interrupted.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from rtscope.cli.app import make_app
from rtscope.cli.start import INTERRUPTED
from rtscope.cli.streams import open_streams
from rtscope.host.errors import MeasurementError, UsageError
from rtscope.host.files.opening import IN_A_CIRCLE
from rtscope.host.process import NO_THREAD
from rtscope.host.version import __version__

CRASHED = os.EX_SOFTWARE
"""70 of sysexits.h: Python's own 1 would say that a deadline was missed."""

_LOOP = "Symlink loop from "
"""What Python says before 3.13 when it resolves a link that leads to itself."""

VERDICTS = (0, 1, 125)
NO_VERDICT = 128
"""git takes 1 to 127 for a bad kernel, but for 125, and stops at 128 and above."""


def _keep_numpy_to_one_thread() -> None:
    """Its threads do nothing here; where they cannot start, it sends SIGINT."""
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.putenv("OPENBLAS_NUM_THREADS", "1")  # not in os.environ, which loads get


def main() -> NoReturn:
    """Run the command line and exit."""
    is_verdict = _judges_a_kernel(sys.argv[1:])
    try:
        _run()
    except SystemExit as ended:
        if is_verdict and ended.code not in VERDICTS:
            interrupted = ended.code == INTERRUPTED
            status = INTERRUPTED if interrupted else NO_VERDICT
            raise SystemExit(status) from ended
        raise


def _judges_a_kernel(words: Sequence[str]) -> bool:
    """Whether `git bisect run` may read the exit status: an error is no bad kernel."""
    return words[:1] == ["bisect"] and any(
        word.partition("=")[0] == "--measured" for word in words
    )


def _run() -> NoReturn:
    _keep_numpy_to_one_thread()
    open_streams()
    try:
        make_app(sys.argv[1:])(prog_name="rtscope")
    except SystemExit as ended:
        if ended.code == UsageError.exit_status:
            _name_foreign(sys.argv[1:])
        if isinstance(ended.__context__, typer.Abort):  # Ctrl-C at a question
            raise SystemExit(INTERRUPTED) from ended
        raise
    except MemoryError:
        print("rtscope: not enough memory", file=sys.stderr)
        raise SystemExit(MeasurementError.exit_status) from None
    except Exception as error:
        raise SystemExit(_status_of(error)) from error
    raise SystemExit(0)


def _status_of(error: Exception) -> int:
    """Print an error that has no class of ours, and return the exit status."""
    # Python has no type for a thread that could not be started, nor, before 3.13, for
    # a link that leads to itself.
    words = str(error) if type(error) is RuntimeError else ""
    if words == "can't start new thread":
        print(f"rtscope: {NO_THREAD}", file=sys.stderr)
        return MeasurementError.exit_status
    if words.startswith(_LOOP):
        path = words.removeprefix(_LOOP).strip("'\"")
        print(f"rtscope: cannot read {path}: {IN_A_CIRCLE}", file=sys.stderr)
        return MeasurementError.exit_status
    _keep_traceback(error)
    return CRASHED


def _keep_traceback(error: Exception) -> None:
    """Say where the traceback of a bug is, and how to report it."""
    import tempfile
    import traceback

    trace = "".join(traceback.format_exception(error))
    what = traceback.format_exception_only(error)[-1].strip()[:300]
    print(f"rtscope: internal error, a bug of rtscope: {what}", file=sys.stderr)
    try:
        number, name = tempfile.mkstemp(prefix="rtscope-crash-", suffix=".txt")
        with os.fdopen(number, "w", errors="backslashreplace") as file:
            file.write(f"rtscope {__version__}: {shlex.join(sys.argv[1:])}\n{trace}")
    except OSError:
        print(f"{trace}rtscope: report it with this traceback", file=sys.stderr)
    else:
        print(f"rtscope: the traceback is in {name}: report it", file=sys.stderr)


def _name_foreign(words: Sequence[str]) -> None:
    from rtscope.cli.otherlines import answer

    if words[:1] == ["run"] or words[0].startswith("-"):
        for line in answer(words[words[:1] == ["run"] :]):
            print(f"rtscope: {line}", file=sys.stderr)
