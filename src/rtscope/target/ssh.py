"""
A board reached over SSH: the user's own OpenSSH client, configuration and keys.

Nothing is installed on the board. The agent goes into a private temporary directory
that the board itself removes when the session ends, however it ends. All connections
share one (ControlMaster), so a password is asked for once.
"""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rtscope import process
from rtscope.contract import AgentError, Line
from rtscope.errors import TargetError, UsageError
from rtscope.reading import Reader
from rtscope.target.agentfile import agent_file
from rtscope.target.agentreader import AgentReader
from rtscope.target.stream import PipeStream, collect

CONNECT_S = 60.0
"""Also the time to type a password."""

COMMAND_S = 30.0

# A board that is gone is noticed within 6 s; the board itself notices within 2.
_OPTIONS = (
    "-T",
    "-oControlMaster=auto",
    "-oControlPersist=10s",
    "-oServerAliveInterval=2",
    "-oServerAliveCountMax=3",
    "-oConnectTimeout=15",
)

# Where a file can be put and run: /tmp is noexec on hardened boards.
_DIRECTORIES = ('"${TMPDIR:-/tmp}"', "/var/tmp", "/dev/shm", '"$HOME"')

_UPLOAD = (
    "w=$(mktemp -d %s/rtscope-XXXXXXXX) || exit 1; "
    'cat > "$w/rtscope-agent" && chmod 700 "$w/rtscope-agent" '
    '&& "$w/rtscope-agent" version >&2 && echo "$w" || { rm -rf "$w"; exit 1; }'
)


class SshTarget:
    """A board. A context manager: connects on entry, cleans up on exit."""

    def __init__(self, host: str, *, ssh: Sequence[str] = ("ssh",)) -> None:
        if not host or host.startswith("-") or not host.isprintable() or " " in host:
            raise UsageError(f"not a host name: {host!a}; write --target ssh:HOST")
        self.name = f"ssh:{host}"
        self.reader: Reader = AgentReader(self._run_agent)
        self.default_storage_dir = "/var/tmp"
        self._host = host
        self._ssh = tuple(ssh)
        self._control_dir = ""
        self._work_dir = ""
        self._root: tuple[str, ...] = ()
        self._user: tuple[int, int] | None = None
        self._keeper: PipeStream | None = None

    def __enter__(self) -> Self:
        self._control_dir = tempfile.mkdtemp(prefix="rtscope-ssh-")
        try:
            self._connect()
        except BaseException:
            self._disconnect()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._keeper is not None:
            self._keeper.kill()
        self._disconnect()

    def _argv(self, command: str) -> list[str]:
        control = f"-oControlPath={self._control_dir}/%C"
        return [*self._ssh, *_OPTIONS, control, "--", self._host, command]

    def _command(
        self, command: str, *, timeout_s: float = COMMAND_S, stdin: bytes = b""
    ) -> process.Completed:
        return process.run(self._argv(command), timeout_s=timeout_s, stdin=stdin)

    def _connect(self) -> None:
        first = process.run(
            self._argv("uname -m; id -u; id -g; sudo -n true 2>/dev/null && echo sudo"),
            timeout_s=CONNECT_S,
            terminal=sys.stdin.isatty(),
        )
        words = first.stdout.decode("utf-8", "replace").split()
        if len(words) < 3 or not (words[1].isdigit() and words[2].isdigit()):
            raise TargetError(
                f"{self.name}: cannot log in or run a command there"
                + _because(first.stderr)
                + f"; does `ssh {shlex.quote(self._host)} uname -m` work?"
            )
        if words[1] != "0" and words[3:] == ["sudo"]:
            self._root = ("sudo", "-n", "--")
            self._user = (int(words[1]), int(words[2]))
        self._upload(agent_file(words[0]))

    def _upload(self, agent: Path) -> None:
        content = agent.read_bytes()
        reasons: list[str] = []
        for directory in _DIRECTORIES:
            command = "sh -c " + shlex.quote(_UPLOAD % directory)
            done = self._command(command, timeout_s=CONNECT_S, stdin=content)
            if done.status == 0:
                self._work_dir = done.stdout.decode("utf-8", "replace").strip()
                break
            reasons.append(f"{directory}{_because(done.stderr)}")
        if "/rtscope-" not in self._work_dir:
            raise TargetError(
                f"{self.name}: nowhere to put the agent and run it: "
                f"{'; '.join(reasons)[:500]}; free some space there, or set TMPDIR "
                "on the board to a directory that is not mounted noexec"
            )
        self._keeper = PipeStream(
            self._argv(self._agent_command(["keep", self._work_dir])), heartbeat=False
        )

    def _disconnect(self) -> None:
        if Path(self._control_dir).is_dir():
            control = f"-oControlPath={self._control_dir}/%C"
            process.run(
                [*self._ssh, control, "-O", "exit", "--", self._host],
                timeout_s=COMMAND_S,
            )
            shutil.rmtree(self._control_dir, ignore_errors=True)

    def _agent_command(
        self, args: Sequence[str], *, root: Sequence[str] = (), heartbeat: bool = False
    ) -> str:
        tether = "--heartbeat" if heartbeat else "--tether"
        agent = f"{self._work_dir}/rtscope-agent"
        return "exec " + shlex.join([*root, agent, args[0], tether, *args[1:]])

    def start_agent(
        self, args: Sequence[str], *, privileged: bool = False
    ) -> PipeStream:
        """Start the agent on the board; it ends within 2 s of losing us."""
        root = self._root if privileged else ()
        command = self._agent_command(args, root=root, heartbeat=True)
        return PipeStream(self._argv(command), heartbeat=True)

    def _run_agent(self, args: Sequence[str]) -> list[Line]:
        command = self._agent_command(args)
        stream = PipeStream(self._argv(command), heartbeat=False)
        lines = collect(stream, timeout_s=COMMAND_S)
        if stream.status != 0 and not any(isinstance(x, AgentError) for x in lines):
            raise TargetError(f"{self.name}: lost{_because(stream.last_words())}")
        return lines

    def work_path(self, name: str) -> str:
        """Return the path of a file in the board's private directory."""
        return f"{self._work_dir}/{name}"

    def load_user(self) -> tuple[int, int] | None:
        """Return the user logged in as, when the agent runs as another through sudo."""
        return self._user

    def program_version(self, program: str) -> str | None:
        """Return the first line of `PROGRAM --version`; None if it is not installed."""
        done = self._command(f"{shlex.quote(program)} --version 2>/dev/null")
        if done.status == os.EX_UNAVAILABLE or done.status in (126, 127):
            return None
        if done.status == 255:
            raise TargetError(f"{self.name}: lost{_because(done.stderr)}")
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        return lines[0].strip() if lines else ""


def _because(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    return f": {lines[-1].strip()}" if lines else ""
