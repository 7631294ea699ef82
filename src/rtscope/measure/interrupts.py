"""Put off Ctrl-C, TERM and HUP in steps that would lose a measurement."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

PATIENCE = 2
"""So many are put off; the next one ends the step after all."""


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block for a signal that came in it."""
    came = 0

    def note(_signo: int, _frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came > PATIENCE:
            raise KeyboardInterrupt

    former = {
        signo: signal.signal(signo, note)
        for signo in SIGNALS
        if signal.getsignal(signo) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    finally:
        for signo, handler in former.items():
            signal.signal(signo, handler)
    if came:
        raise KeyboardInterrupt
