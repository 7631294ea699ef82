"""
The first module of the command: Ctrl-C, TERM and HUP end it in words at any moment.

Only a verb has something to put back. While one works a signal raises
KeyboardInterrupt; before, while modules are loaded, and after it, a signal ends the
process at once. Every import above `main` is time in which Python itself answers, with
a traceback.
"""

import contextlib
import gc
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
"""The exit status, as the shell gives it to a program that Ctrl-C has ended."""

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAID = "rtscope: interrupted"

AT_WORK = "at_work"
"""The function of `app.py` in which every verb runs."""


def main() -> None:
    """Load the command line, then run it and exit."""
    for signo in ENDING:
        if signal.getsignal(signo) is not signal.SIG_IGN:  # nohup wants that kept
            signal.signal(signo, _end)
    sys.unraisablehook = _again
    gc.disable()  # loading makes no garbage, and is a tenth shorter: until `at_work`
    from rtscope.cli.main import main as run

    run()


def _end(_signo: int, frame: FrameType | None) -> None:
    """End the process, or the verb that is at work."""
    while frame is not None:
        if frame.f_code.co_name == AT_WORK:
            raise KeyboardInterrupt
        frame = frame.f_back
    with contextlib.suppress(OSError):  # nobody can read it
        os.write(2, f"{SAID}\n".encode())
    os._exit(INTERRUPTED)


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
