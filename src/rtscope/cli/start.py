"""
The first module of the command: Ctrl-C, TERM and HUP end it in words at any moment.

Only a verb has something to put back. While it works a signal raises KeyboardInterrupt;
before, while modules are loaded, and after it, a signal ends the process at once. Every
import above `main` is time in which Python itself answers, with a traceback.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

INTERRUPTED = 130
"""The exit status, as the shell gives it to a program that Ctrl-C has ended."""

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAID = "rtscope: interrupted"


def main() -> None:
    """Load the command line, then run it and exit."""
    end_at_once()
    from rtscope.cli.main import main as run

    run()


def end_at_once() -> None:
    """From now on a signal ends the process: nothing is changed that must go back."""
    _on_signals(_leave)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """While the block runs a signal raises KeyboardInterrupt: it restores a machine."""
    former, sys.unraisablehook = sys.unraisablehook, _again
    _on_signals(_interrupt)
    try:
        yield
    finally:
        end_at_once()
        sys.unraisablehook = former


def _on_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    for signo in ENDING:
        if signal.getsignal(signo) is not signal.SIG_IGN:  # nohup wants that kept
            signal.signal(signo, handler)


def _leave(_signo: int, _frame: FrameType | None) -> None:
    with contextlib.suppress(OSError):  # nobody may read it
        os.write(2, f"{SAID}\n".encode())
    os._exit(INTERRUPTED)


def _interrupt(_signo: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _again(lost: "sys.UnraisableHookArgs") -> None:
    """Send a signal again that came in a destructor, where Python drops exceptions."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    import threading

    # Not here: this, too, is called where exceptions are dropped.
    again = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    again.daemon = True
    again.start()
