#!/usr/bin/env python3
"""
Let a hostile board answer each verb, and print status, time and memory of rtscope.

    .venv/bin/python bench/hostile_ssh.py [VERB ...]

A program in place of `ssh` runs each command on this machine, but for one, which it
answers as a hostile board would. Needs root, as the agent does.
"""

import itertools
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

JOBS = 4
MOST_BYTES = 3 << 30
"""Of address space, so that no mistake takes this machine's memory."""
MOST_S = 300

SSH = r"""#!/usr/bin/env python3
import os, re, subprocess, sys, time

words = sys.argv[1:]
if "--" not in words:
    sys.exit(0)
command = words[words.index("--") + 2]
packed = command.rsplit("'", 2)[1]
script = re.sub(r"\\0([0-7]{3})", lambda m: chr(int(m[1], 8)), packed)
word = script.split("echo; echo ", 1)[1].split(";", 1)[0]
agent = re.search(r"rtscope-agent (\w+)", script)
stage = "login" if "uname -m" in script else "upload" if "mkdir" in script else (
    agent[1] if agent else "command")
how, at = os.environ["HOSTILE"], os.environ["HOSTILE_AT"].split(",")
if how == "slow answers" and stage != "keep":
    time.sleep(7)
if stage not in at or how == "slow answers":
    os.execvp("sh", ["sh", "-c", command])


def out(piece, number=1):
    while piece:
        try:
            piece = piece[os.write(number, piece):]
        except BrokenPipeError:
            sys.exit(0)


def endless(piece, number=1, pause=0):
    while True:
        out(piece, number)
        time.sleep(pause)


def real():
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, timeout=20)
    return done.stdout


begin = f"\n{word}\n".encode()
if how == "silence":
    time.sleep(600)
if how == "silence after the word":
    out(begin)
    time.sleep(600)
if how == "zeros":
    endless(bytes(65536))
if how == "noise":
    out(begin)
    while True:
        out(os.urandom(65536))
if how == "lines":
    out(begin)
    endless(b"rtscope\n" * 8000)
if how == "empty lines":
    out(begin)
    endless(b"\n" * 65536)
if how == "a line without an end":
    out(begin)
    endless(b'{"type":"' + b"x" * 65000)
if how == "its own words":
    endless(begin)
if how == "standard error":
    endless(b"an error\n" * 7000, 2)
if how == "closes":
    sys.exit(0)
if how == "closes with 255":
    sys.exit(255)
answer = real()
if how == "ends in the middle":
    out(answer[: len(answer) * 2 // 3])
if how == "valid, then silence":
    out(answer[: answer.rstrip().rfind(b"\n") + 1])
    time.sleep(600)
if how == "a byte at a time":
    for number in answer:
        out(bytes([number]))
        time.sleep(0.2)
if how == "valid without an end":
    out(answer)
    rest = answer.partition(begin)[2] or b"{}\n"
    endless(rest)
if how == "valid, a line a second":
    out(answer)
    rest = answer.partition(begin)[2] or b"{}\n"
    lines = rest.splitlines(True)
    while True:
        for line in lines:
            out(line)
            time.sleep(1)
"""

RUN = ("run", "--duration", "1s", "--warmup", "0s", "--interval", "1ms")
BOARD = ("--target", "ssh:board")
VERBS: dict[str, tuple[tuple[str, ...], str]] = {
    "tasks": (("tasks", *BOARD), "tasks"),
    "audit": (("audit", *BOARD), "read"),
    "audit --capture": (("audit", *BOARD, "--capture", "OUT"), "read"),
    "doctor": (("doctor", *BOARD), "measure,read"),
    "run": ((*RUN, *BOARD, "--load", "idle", "--out", "OUT"), "measure"),
    "run, its load": ((*RUN, *BOARD, "--load", "cpu", "--out", "OUT"), "load"),
    "run --explain": (
        (*RUN, *BOARD, "--load", "idle", "--explain", "--out", "OUT"),
        "trace,measure",
    ),
    "app check": (("app", "check", *BOARD, "--duration", "1s", "1"), "watch"),
    "app check, its files": (("app", "check", *BOARD, "--duration", "1s", "1"), "read"),
    "app demo": (("app", "demo", *BOARD, "preempt"), "demo"),
    "sweep survey-machine": (
        ("sweep", "survey-machine", *BOARD, "--out", "OUT"),
        "measure,load",
    ),
    "kernel verify": (("kernel", "verify", *BOARD), "read"),
}
HOW = re.findall(r'if how == "([^"]+)"', SSH)


@dataclass(frozen=True, slots=True)
class Said:
    """What one hostile answer led to."""

    verb: str
    how: str
    at: str
    status: int | None
    seconds: float
    mib: int
    last: str
    left: str


def tried(verb: str, how: str, at: str) -> Said:
    """Run a verb against a hostile board in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        place = Path(name)
        ssh = place / "bin" / "ssh"
        ssh.parent.mkdir()
        ssh.write_text(SSH)
        ssh.chmod(0o755)
        for folder in ("tmp", "work", "state"):
            (place / folder).mkdir()
        # A name of its own: one measurement of a machine waits for another.
        its = {"OUT": str(place / "work/out"), "ssh:board": f"ssh:{place.name}"}
        words = [its.get(word, word) for word in VERBS[verb][0]]
        env = {
            **os.environ,
            "PATH": f"{ssh.parent}:{os.environ['PATH']}",
            "TMPDIR": str(place / "tmp"),
            "XDG_RUNTIME_DIR": str(place / "tmp"),
            "XDG_STATE_HOME": str(place / "state"),
            "HOSTILE": how,
            "HOSTILE_AT": at,
        }
        began = time.monotonic()
        with (place / "err").open("wb") as err:
            program = subprocess.Popen(
                [sys.executable, "-m", "rtscope", *words],
                env=env,
                cwd=place / "work",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=err,
                process_group=0,
                preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES)
                ),
            )
        status = None
        while time.monotonic() - began < MOST_S:
            pid, code, used = os.wait4(program.pid, os.WNOHANG)
            if pid:
                program.returncode = status = os.waitstatus_to_exitcode(code)
                break
            time.sleep(0.05)
        else:
            os.killpg(program.pid, signal.SIGKILL)
            _, _, used = os.wait4(program.pid, 0)
            program.returncode = -9
        seconds = time.monotonic() - began
        lines = (place / "err").read_text("utf-8", "replace").splitlines() or [""]
        left = [str(p.relative_to(place)) for p in (place / "tmp").iterdir()]
        left += [str(p.relative_to(place)) for p in (place / "work").rglob("*")]
        return Said(
            verb,
            how,
            at,
            status,
            seconds,
            used.ru_maxrss >> 10,
            lines[-1][:230],
            " ".join(left)[:80],
        )


def main(names: list[str]) -> None:
    """Print a row for each verb and answer, and the most of each verb."""
    if shutil.which("sh") is None or os.geteuid() != 0:
        sys.exit("needs root")
    verbs = [verb for verb in VERBS if not names or verb in names]
    hows = [how for how in HOW if not (names and how == "slow answers")]
    cases = [(verb, how, VERBS[verb][1]) for how in hows for verb in verbs]
    if not names or "login" in names:
        at = itertools.product(("tasks",), HOW, ("login", "upload", "read", "keep"))
        cases += list(at)
    with ThreadPoolExecutor(JOBS) as pool:
        for said in pool.map(lambda case: tried(*case), cases):
            print(
                f"| {said.verb} | {said.at} | {said.how} | {said.status} | "
                f"{said.seconds:.0f} | {said.mib} | {said.left} | {said.last}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
