"""A real-time thread `cycle` that shares a lock, or a queue, with `holder`."""

import ctypes
import queue
import sys
import threading
import time

PR_SET_NAME, SCHED_FIFO = 15, 1
libc = ctypes.CDLL(None, use_errno=True)
lock = threading.Lock()
work: "queue.SimpleQueue[int]" = queue.SimpleQueue()
kind = sys.argv[1] if len(sys.argv) > 1 else "lock"


def hold() -> None:
    libc.prctl(PR_SET_NAME, b"holder", 0, 0, 0)
    while True:
        if kind == "queue":
            work.put(1)
        elif kind == "lock":
            with lock:
                time.sleep(0.003)
        else:
            until = time.monotonic() + 0.003
            while time.monotonic() < until:
                pass
        time.sleep(0.004)


def cycle() -> None:
    libc.prctl(PR_SET_NAME, b"cycle", 0, 0, 0)
    if libc.sched_setscheduler(0, SCHED_FIFO, ctypes.byref(ctypes.c_int(61))):
        raise SystemExit(3)
    while True:
        if kind == "queue":
            work.get()
        elif kind == "lock":
            with lock:
                pass
        time.sleep(0.001)


threading.Thread(target=hold, daemon=True).start()
thread = threading.Thread(target=cycle, daemon=True)
thread.start()
thread.join()
