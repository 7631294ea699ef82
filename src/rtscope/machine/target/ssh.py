"""
A board reached over SSH: the user's own OpenSSH client, configuration and keys.

Nothing is installed on the board. The agent is copied to a private temporary
directory, which the board itself removes at the end of the session. All commands
share one connection (ControlMaster), so a password is asked for once.

During a measurement it carries a byte to each agent five times a second, and a line
from each once a second. These network interrupts are part of the result.
"""

import os
import secrets
import shlex
import shutil
import string
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Self

from rtscope.contract import AgentError, Line
from rtscope.host import process
from rtscope.host.errors import MeasurementError, TargetError
from rtscope.host.files.heldfolders import held_folder
from rtscope.host.units import is_whole
from rtscope.machine.reader import Reader
from rtscope.machine.target import agent_file
from rtscope.machine.target.agentreader import AgentReader
from rtscope.machine.target.patience import Patience
from rtscope.machine.target.stream import LOST, PipeStream, collect

FAILED = 255
"""ssh's exit status when ssh itself failed; otherwise that of the command."""

GAVE_UP = 3
"""The agent says no more than its exit status: no measurement, agent/host/emit.h."""

STALLED = (
    "the agent could write nothing for three seconds: the link was lost, or the host "
    "stood still; go on with rtscope run --resume"
)

CONNECT_S = 60.0
"""To type a password in, or for a file to arrive."""

COMMAND_S = 30.0

MAX_WORDS_BYTES = 4 << 20
"""Of a command's few words, after what the login shell may print."""

LOST_S = 1.0
"""All sessions of a lost connection end within that time of each other."""

MAX_CONTROL_DIR = 70
"""sun_path has 108 bytes, and ssh appends 17 characters and a NUL while it binds."""

# These settings for interactive work would disturb:
# RequestTTY, RemoteCommand, forwardings (a second session cannot bind their ports).
_QUIET = (
    "-T",
    "-x",
    "-a",
    "-oRemoteCommand=none",
    "-oPermitLocalCommand=no",
    "-oClearAllForwardings=yes",
    "-oLogLevel=ERROR",
)

# A board that is gone is noticed within 8 s; the board itself notices within 4.
# ControlPersist puts the connection into the background, out of Ctrl-C's reach; it
# ends that long after its last user, in case nobody is left to end it.
_CONNECTION = (
    "-oControlMaster=yes",
    "-oControlPersist=3s",
    "-oConnectTimeout=15",
    "-oServerAliveInterval=2",
    "-oServerAliveCountMax=3",
)

# Through the connection or not at all: when that is gone, ssh would make another one,
# and the campaign would go on with a board that may have been restarted.
_SHARED = ("-oBatchMode=yes", "-oControlMaster=no", "-oProxyCommand=false")

_PROBE = "uname -m; id -u; id -g; sudo -n true 2>/dev/null && echo sudo; exit 0"

# Where a file can be put and run: /tmp is noexec on hardened boards.
_DIRECTORIES = ('"$TMPDIR"', "/tmp", "/var/tmp", "/dev/shm", '"$HOME"')

# mkdir refuses what is there already, a link too; mktemp is not on every board.
_UPLOAD = (
    "d={directory}; [ -d \"$d\" ] || {{ echo 'no such directory' >&2; exit 1; }}; "
    'w="$d/{name}"; umask 077; mkdir "$w" || exit 1; '
    'cat > "$w/rtscope-agent" && chmod 700 "$w/rtscope-agent" '
    '&& "$w/rtscope-agent" version >&2 && echo "$w" || {{ rm -rf "$w"; exit 1; }}'
)

# The rest means something in single quotes of some shell: \ in fish, ! in csh.
_HARMLESS = frozenset(f"{string.ascii_letters}{string.digits} @%+=:,./_-".encode())

_UNPACK = """exec sh -c 'eval "$(printf %b "$1")"' sh """


def check_programs(ssh: str = "ssh") -> None:
    """Raise TargetError if this computer has no ssh."""
    if shutil.which(ssh) is None:
        raise TargetError(
            f"{ssh} is not installed on this machine; install it (Debian, Ubuntu: "
            "apt install openssh-client)"
        )


class SshTarget:
    """A board. A context manager: connects on entry, cleans up on exit."""

    def __init__(
        self, host: str, *, name: str = "", ssh: Sequence[str] = ("ssh",)
    ) -> None:
        """Host: as ssh takes it; see `address`, which refuses others."""
        self.name = name or f"ssh:{host}"
        self.reader: Reader = AgentReader(self._run_agent)
        self.default_storage_dir = "/var/tmp"
        self._host = host
        self._ssh = tuple(ssh)
        self._shell = RemoteShell()
        self._control = Path()
        self._stack = ExitStack()
        self._work_dir = ""
        self._root: tuple[str, ...] = ()
        self._user: tuple[int, int] | None = None
        self._keeper: PipeStream | None = None
        self._patience = Patience()

    def __enter__(self) -> Self:
        check_programs(self._ssh[0])
        self._control = _make_control_dir(self._stack) / "s"
        try:
            self._upload(agent_file(self._connect()))
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

    def _argv(self, *options: str) -> list[str]:
        control = f"-oControlPath={self._control}"
        return [*self._ssh, *_QUIET, control, *options, "--", self._host]

    def _connect(self) -> str:
        """Log in; return the board's architecture."""
        terminal = sys.stdin.isatty()
        batch = () if terminal else ("-oBatchMode=yes",)
        done = self._wait_for(
            [*self._argv(*_CONNECTION, *batch), self._shell.wrap(_PROBE)],
            timeout_s=CONNECT_S,
            terminal=terminal,
        )
        words = (self._shell.answer(done.stdout) or "").split()
        if done.status != 0 or len(words) < 3:
            why = why_refused(self._host, status=done.status, stderr=done.stderr)
            raise TargetError(f"{self.name}: {why}")
        machine, uid, gid, *sudo = words
        if not (is_whole(uid) and is_whole(gid)):
            raise TargetError(
                f"{self.name}: id -u printed {uid!a} and id -g {gid!a}, not numbers"
            )
        if uid != "0" and sudo:
            self._root = ("sudo", "-n", "--")
            self._user = (int(uid), int(gid))
        return machine

    def _upload(self, agent: Path) -> None:
        content = agent.read_bytes()
        reasons: list[str] = []
        for directory in _DIRECTORIES:
            name = f"rtscope-{secrets.token_hex(8)}"
            script = _UPLOAD.format(directory=directory, name=name)
            done = self._command(script, timeout_s=CONNECT_S, stdin=content)
            answer = self._shell.answer(done.stdout) or ""
            if done.status == 0 and answer.endswith(f"/{name}\n"):
                self._work_dir = answer.removesuffix("\n")
                self._keeper = self._start(["keep", self._work_dir])
                return
            why = (
                last_line(done.stderr)[:200] or f"status {done.status}, no reason given"
            )
            reasons.append(f"{directory}: {why}")
        raise TargetError(
            f"{self.name}: no directory for the agent ({'; '.join(reasons)}); "
            "free some space there, or set TMPDIR on the board to a directory not "
            "mounted noexec"
        )

    def _disconnect(self) -> None:
        if self._control.exists():
            with self._patience.ending(), suppress(TargetError):  # it ends without us
                timeout_s = min(COMMAND_S, self._patience.ending_s)
                process.run(self._argv("-Oexit"), timeout_s=timeout_s)
        self._stack.close()

    def _wait_for(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        terminal: bool = False,
    ) -> process.Completed:
        patience, advice = self._patience, "check that the board is up and reachable"
        # On a terminal, somebody types a password.
        if not terminal and patience.answers_s < timeout_s:
            timeout_s, advice = patience.answers_s, patience.says
        try:
            with nullcontext() if terminal else patience.answering():
                return process.run(
                    argv,
                    timeout_s=timeout_s,
                    stdin=stdin,
                    terminal=terminal,
                    most_bytes=MAX_WORDS_BYTES,
                )
        except TargetError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise TargetError(
                    f"{self.name}: no answer within {timeout_s:.0f} s; {advice}"
                ) from error
            if isinstance(error.__cause__, OverflowError):
                raise TargetError(
                    f"{self.name}: the board answered with more than "
                    f"{MAX_WORDS_BYTES:,} bytes; look at what it prints: "
                    f"ssh {shlex.quote(self._host)} uname -m"
                ) from error
            raise

    def _command(
        self, script: str, *, timeout_s: float = COMMAND_S, stdin: bytes = b""
    ) -> process.Completed:
        """Run a script on the board; TargetError if the connection is lost."""
        self._refuse_if_lost()
        done = self._wait_for(
            [*self._argv(*_SHARED), self._shell.wrap(script)],
            timeout_s=timeout_s,
            stdin=stdin,
        )
        if done.status == FAILED or self._shell.answer(done.stdout) is None:
            raise self._lost(last_line(done.stderr))
        return done

    def _lost(self, words: str = "") -> TargetError:
        because = f" ({words})" if words and words != LOST else ""
        return TargetError(f"{self.name}: {LOST}{because}")

    def _refuse_if_lost(self) -> None:
        if self._keeper is not None and self._keeper.status is not None:
            raise self._lost()

    def _start(self, args: Sequence[str], *, root: Sequence[str] = ()) -> PipeStream:
        self._refuse_if_lost()
        agent = f"{self._work_dir}/rtscope-agent"
        script = exec_line([*root, agent, args[0], "--heartbeat", *args[1:]])
        return PipeStream(
            [*self._argv(*_SHARED), self._shell.wrap(script)],
            heartbeat=True,
            begins_after=self._shell.word,
            why_ended=self._why_ended,
            patience=self._patience,
        )

    def _why_ended(self, status: int) -> str:
        """Distinguish an agent that was killed from a link that stalled or is gone."""
        if status == GAVE_UP:
            return STALLED
        if status != FAILED:
            return ""
        keeper = self._keeper  # all share one connection, and end with it
        if keeper is None or keeper.ends_within(LOST_S):
            return LOST
        return (
            "the agent was killed on the board, and the connection is there; look for "
            "its killer in dmesg, then type rtscope run --resume"
        )

    def start_agent(
        self, args: Sequence[str], *, privileged: bool = False
    ) -> PipeStream:
        """Start the agent on the board; it ends within 3 s without the link."""
        return self._start(args, root=self._root if privileged else ())

    def run_attached(self, make_script: Callable[[str], str]) -> int:
        """
        Run a script on the board that has the streams of this process; its status.

        It is made with the path of the agent there. A terminal stays one, so that the
        board gets Ctrl-C.
        """
        self._refuse_if_lost()
        script = make_script(f"{self._work_dir}/rtscope-agent")
        terminal = ("-t",) if sys.stdin.isatty() and sys.stdout.isatty() else ()
        argv = [*self._argv(*_SHARED, *terminal), self._shell.wrap(script, bare=True)]
        return process.run_attached(argv)

    def _run_agent(self, args: Sequence[str]) -> list[Line]:
        stream = self._start(args)
        try:
            lines = collect(stream, timeout_s=COMMAND_S)
        finally:
            stream.kill()
        if stream.status != 0 and not any(isinstance(x, AgentError) for x in lines):
            raise self._lost(last_line(stream.stderr_tail()))
        return lines

    def work_path(self, name: str) -> str:
        """Return the path of a file in the board's private directory."""
        return f"{self._work_dir}/{name}"

    def begin_run(self) -> None:
        """Give the board all its time for answers again."""
        self._patience.renew()

    def load_user(self) -> tuple[int, int] | None:
        """Return the user logged in as, when the agent runs as another through sudo."""
        return self._user

    def first_line(self, command: Sequence[str]) -> str | None:
        """Return the first line that a program prints; None if it is not installed."""
        # 255 would be ssh's own: the program's is then another failure
        end = f"s=$?; [ $s != {FAILED} ] || s=1; exit $s"
        done = self._command(f"({exec_line(command)}) 2>/dev/null; {end}")
        if done.status in (126, 127):
            return None
        lines = (self._shell.answer(done.stdout) or "").splitlines()
        return lines[0].strip() if lines else ""


def _make_control_dir(stack: ExitStack) -> Path:
    """Make a private directory with a path short enough for a socket."""
    named = (os.environ.get(name) for name in ("XDG_RUNTIME_DIR", "TMPDIR"))
    wanted = (*named, "/tmp")
    for parent in wanted:
        if parent and len(os.fsencode(parent)) <= MAX_CONTROL_DIR:
            try:
                held = held_folder(Path(parent), prefix="rtscope-")
                return stack.enter_context(held)
            except OSError:
                continue
    raise MeasurementError(
        "no directory for the control socket of ssh: free some space in /tmp, and make "
        "it writable"
    )


# --- commands ------------------------------------------------------------------


def _new_word() -> bytes:
    return f"rtscope-{secrets.token_hex(8)}".encode()


@dataclass(frozen=True, slots=True)
class RemoteShell:
    """
    Wraps commands for one board, whatever its shell is and prints by itself.

    sshd hands a command to the login shell of the user. That may be fish or csh, which
    quote differently from sh, and its start-up files may print. So a command is sent as
    one word of harmless characters that every shell passes on unchanged; sh runs it,
    and it first prints an agreed word.
    """

    word: bytes = field(default_factory=_new_word)
    """Stands alone on a line where the command's own output begins."""

    def wrap(self, script: str, *, bare: bool = False) -> str:
        """Return the argument for ssh with which sh runs it; bare: without the word."""
        whole = script if bare else f"echo; echo {self.word.decode()}; {script}"
        return f"{_UNPACK}'{_packed(whole)}'"

    def answer(self, stdout: bytes) -> str | None:
        """Return the output of the script; None if the board never ran it."""
        _, separator, answer = stdout.partition(b"\n" + self.word + b"\n")
        return answer.decode("utf-8", "replace") if separator else None


def _packed(script: str) -> str:
    if "\0" in script:
        raise TargetError("a command cannot contain a NUL character; leave it out")
    # printf %b of POSIX: \0 and up to three octal digits.
    return "".join(
        chr(byte) if byte in _HARMLESS else f"\\0{byte:03o}"
        for byte in script.encode("utf-8", "surrogateescape")
    )


def exec_line(argv: Sequence[str]) -> str:
    """Return the script that becomes a program."""
    return f"exec {shlex.join(argv)}"


# --- failures ------------------------------------------------------------------


def last_line(stderr: str) -> str:
    """Return the last line of ssh's own output; empty if there is none."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1] if lines else ""


@cache
def _advice() -> Mapping[str, str]:
    """Return the rows of `refusals.toml`, which explains them."""
    file = resources.files("rtscope.machine.target").joinpath("refusals.toml")
    return tomllib.loads(file.read_text("utf-8"))


def why_refused(host: str, *, status: int, stderr: str) -> str:
    """Return why the connection or its shell failed, and the remedy."""
    name = shlex.quote(host)
    words = last_line(stderr)
    if status != FAILED:
        because = f" ({words})" if words else ""
        return (
            f"logged in, but the board ran no command{because}; give the user a login "
            f"shell, and try: ssh {name} uname -m"
        )
    for part, advice in _advice().items():
        if part in words:
            return f"{words}; {advice.format(host=name)}"
    return f"cannot log in{': ' if words else ''}{words}; try: ssh {name} uname -m"
