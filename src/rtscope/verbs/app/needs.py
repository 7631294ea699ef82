"""Look at a running program once: its files in /proc and its threads."""

from pathlib import Path

from rtscope.host.errors import TargetError
from rtscope.machine.target import Target
from rtscope.verbs.app.running import (
    FILES,
    GROUP,
    ONLINE,
    PASSWD,
    RunningProgram,
    running_program,
)
from rtscope.verbs.app.watch import list_threads, privileged_reader


def see_program(machine: Target, pid: int) -> RunningProgram:
    """Return what is seen of a process; TargetError if it is not there any more."""
    paths = [*(f"/proc/{pid}/{name}" for name in FILES), PASSWD, GROUP, ONLINE]
    contents = privileged_reader(machine).read_many(paths)
    threads = list_threads(machine).threads
    if not any(thread.line.pid == pid for thread in threads):
        raise TargetError(f"process {pid} ended while it was looked at")
    directory = _directory(pid) if machine.name == "local" else None
    return running_program(pid, threads, contents, directory=directory)


def _directory(pid: int) -> str | None:
    """Return its working directory: a link, which only this machine's can be read."""
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return None
