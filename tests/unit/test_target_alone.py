"""Two measurements of one machine: the second waits, and names the first."""

import subprocess
import sys
import threading

from rtscope.machine.target.address import hold_alone

HOLDER = """
import sys
from rtscope.machine.target.address import hold_alone
with hold_alone(sys.argv[1], print):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_waits_for_the_first_and_names_it() -> None:
    name = f"test-{threading.get_native_id()}"
    first = subprocess.Popen(
        [sys.executable, "-c", HOLDER, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdin is not None
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"
    told: list[str] = []

    def end_the_first(text: str) -> None:
        told.append(text)
        assert first.stdin is not None
        first.stdin.close()  # it ends; only then does the second go on

    with hold_alone(name, end_the_first):
        assert first.wait(timeout=600) == 0

    (said,) = told
    assert f"{name} is being measured by process {first.pid} of user " in said
    assert name in said.partition("(")[2]
    first.stdout.close()


def test_other_machines_are_measured_at_the_same_time() -> None:
    told: list[str] = []
    name = f"test-{threading.get_native_id()}"
    with hold_alone(f"{name}-a", told.append), hold_alone(f"{name}-b", told.append):
        assert told == []
    with hold_alone(f"{name}-a", told.append):  # given back
        assert told == []
