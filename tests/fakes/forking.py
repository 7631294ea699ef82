"""Ask what `fakes.forked` has loaded for a process with these streams, and wait."""

import json
import os
import signal
import socket
import sys

_, place, program, *words = sys.argv


def is_open(number: int) -> bool:
    """Whether this process was given the stream."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


# Before the socket, which would take the number of a closed one.
streams = [number for number in range(3) if is_open(number)]
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect(place)
asked = {
    "program": program,
    "words": words,
    "directory": os.getcwd(),  # noqa: PTH109 -- pathlib takes long to load
    "environment": dict(os.environ),
    "open": streams,
    "ignored": [
        signo
        for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(signo) is signal.SIG_IGN
    ],
}
socket.send_fds(connection, [json.dumps(asked).encode()], streams)
# Whoever reads what the program says waits for all that could still say something.
for number in streams:
    os.close(number)
status = int(connection.recv(16))
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
