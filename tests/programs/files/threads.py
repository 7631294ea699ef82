"""Two threads of Python that share its lock: one paced, one that computes."""

import threading
import time


def compute() -> None:
    while True:
        sum(range(20_000))
        time.sleep(0.02)


threading.Thread(target=compute).start()
while True:
    time.sleep(0.005)
