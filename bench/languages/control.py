"""A loop of 5 ms that allocates, writes, and waits for a lock."""

import json
import threading
import time
from pathlib import Path

LOCK = threading.Lock()


def other() -> None:
    """Hold the lock for some time, again and again."""
    while True:
        with LOCK:
            sum(range(20_000))
        time.sleep(0.003)


def main() -> None:
    """Go round for ever."""
    threading.Thread(target=other, daemon=True).start()
    with Path("/dev/null").open("w") as null:
        while True:
            with LOCK:
                text = json.dumps({"numbers": [1] * 200, "text": "x" * 1000})
            null.write(text)
            null.flush()
            time.sleep(0.005)


if __name__ == "__main__":
    main()
