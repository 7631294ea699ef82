"""
A program with a thread of each policy, for the tests of `rtscope tasks`.

    policies.py             one thread of each policy and some with odd names
    policies.py many N      N threads that sleep
    policies.py vanishing   threads that begin and end all the time
    policies.py boosted     an ordinary thread with a lock that a FIFO thread wants

It prints a line of JSON, thread ids by name, once all is set, and ends with its
standard input.
"""

import _thread
import ctypes
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

STACK_BYTES = 64 * 1024
"""Python 3.14 takes no less than 52 KiB; 20,000 of these fit."""

MS = 1_000_000
PRIO_INHERIT = 1
"""PTHREAD_PRIO_INHERIT of <pthread.h>."""

ODD_NAMES = (
    b"two\nlines",
    b") R 1 (",
    b"\x1b[31mred",
    b" a [b] 'c\"\\",
    b"\xff\xfe broken",
    "irq/9-\u202eacpi".encode(),
)


def fifo(tid: int) -> None:
    """Priority 80, on the first CPU."""
    os.sched_setaffinity(tid, {min(os.sched_getaffinity(0))})
    os.sched_setscheduler(tid, os.SCHED_FIFO, os.sched_param(80))


def fifo_reset(tid: int) -> None:
    """Priority 80, on every CPU; its children are ordinary."""
    policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    os.sched_setscheduler(tid, policy, os.sched_param(80))


def fifo_99(tid: int) -> None:
    """Set the priority that nobody should use."""
    os.sched_setscheduler(tid, os.SCHED_FIFO, os.sched_param(99))


def rr(tid: int) -> None:
    """Priority 7."""
    os.sched_setscheduler(tid, os.SCHED_RR, os.sched_param(7))


def batch(tid: int) -> None:
    """Batch and nice, which leaves a trace in the priority that the kernel tells."""
    os.sched_setscheduler(tid, os.SCHED_BATCH, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, tid, 5)


def idle(tid: int) -> None:
    """Only when nothing else runs."""
    os.sched_setscheduler(tid, os.SCHED_IDLE, os.sched_param(0))


def deadline(tid: int) -> None:
    """2 ms in each 100 ms, within 50 ms. Python has no call for it; chrt has."""
    times = {"runtime": 2 * MS, "deadline": 50 * MS, "period": 100 * MS}
    words = [word for k, v in times.items() for word in (f"--sched-{k}", str(v))]
    subprocess.run(["chrt", "-d", *words, "-p", "0", str(tid)], check=True)


POLICIES: dict[str, Callable[[int], None]] = {
    "fifo": fifo,
    "fifo_reset": fifo_reset,
    "fifo_99": fifo_99,
    "rr": rr,
    "batch": batch,
    "idle": idle,
    "deadline": deadline,
}


def sleeper() -> int:
    """Start a thread that sleeps for ever; return its number."""
    known = threading.Event()
    found: list[int] = []

    def sleep() -> None:
        found.append(threading.get_native_id())
        known.set()
        threading.Event().wait()

    threading.Thread(target=sleep, daemon=True).start()
    known.wait()
    return found[0]


def one_of_each() -> dict[str, int]:
    """Start and set a thread for each policy and each odd name."""
    made = {}
    for name, give in POLICIES.items():
        made[name] = sleeper()
        Path(f"/proc/self/task/{made[name]}/comm").write_text(name)
        give(made[name])
    for odd in ODD_NAMES:
        made[odd.decode("utf-8", "backslashreplace")] = tid = sleeper()
        Path(f"/proc/self/task/{tid}/comm").write_bytes(odd)
    return made


def many(number: int) -> dict[str, int]:
    """Start threads that wait for a lock which nobody gives back."""
    lock = _thread.allocate_lock()
    lock.acquire()
    for _ in range(number):
        _thread.start_new_thread(lock.acquire, ())
    return {"threads": number}


def boosted() -> dict[str, int]:
    """Let a thread hold a lock with priority inheritance, and FIFO 70 wait for it."""
    libc = ctypes.CDLL(None, use_errno=True)
    attribute, mutex = (ctypes.create_string_buffer(64) for _ in range(2))
    libc.pthread_mutexattr_init(attribute)
    assert libc.pthread_mutexattr_setprotocol(attribute, PRIO_INHERIT) == 0
    assert libc.pthread_mutex_init(mutex, attribute) == 0
    made: dict[str, int] = {}
    locked, known = threading.Event(), threading.Event()

    def hold() -> None:
        made["holder"] = threading.get_native_id()
        assert libc.pthread_mutex_lock(mutex) == 0
        locked.set()
        threading.Event().wait()

    def want() -> None:
        made["waiter"] = tid = threading.get_native_id()
        os.sched_setscheduler(tid, os.SCHED_FIFO, os.sched_param(70))
        known.set()
        libc.pthread_mutex_lock(mutex)

    threading.Thread(target=hold, daemon=True).start()
    locked.wait()
    threading.Thread(target=want, daemon=True).start()
    known.wait()
    return made


def vanish() -> None:
    """Begin and end threads until the program ends."""
    while True:
        threads = [threading.Thread(target=os.getpid) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main() -> None:
    """Start the threads that the command line asks for."""
    threading.stack_size(STACK_BYTES)
    made: dict[str, int] = {}
    match sys.argv[1:]:
        case ["many", number]:
            made = many(int(number))
        case ["boosted"]:
            made = boosted()
        case ["vanishing"]:
            threading.Thread(target=vanish, daemon=True).start()
        case _:
            made = one_of_each()
    print(json.dumps(made), flush=True)
    sys.stdin.read()
    os._exit(0)  # without waiting for threads that never end


if __name__ == "__main__":
    main()
