"""
A board on this machine: a private OpenSSH server on 127.0.0.1, for one test.

It has its own port, host key, authorized keys and client configuration; neither the
user's ~/.ssh nor the machine's sshd takes part. What shall be different on the board
(a full disk, other users, programs that are missing) is mounted in a mount namespace
of its own, which needs root.
"""

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")

_PATIENCE_S = 60.0

_SERVER = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/user_key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
X11Forwarding no
PrintMotd no
MaxStartups 100
MaxSessions 20
MaxAuthTries 20
{settings}
"""

_CLIENT = """\
Host board
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {directory}/user_key
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {directory}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
{options}
"""


@dataclass(frozen=True, slots=True)
class Board:
    """A server that runs, and how to reach it."""

    directory: Path
    port: int
    pid: int

    @property
    def ssh(self) -> tuple[str, ...]:
        """The client with this board's configuration; the host is called `board`."""
        return ("ssh", "-F", str(self.directory / "config"))

    @property
    def path(self) -> str:
        """A PATH whose `ssh` is that client, for programs that we only start."""
        return f"{self.directory / 'bin'}:{os.environ['PATH']}"

    def processes(self) -> list[int]:
        """Return all that sessions have started on the board, zombies not counted."""
        servers = {self.pid, *self.sessions()}
        return [pid for pid in _below(self.pid) if pid not in servers]

    def sessions(self) -> list[int]:
        """Return the server's processes, one or two for each connection."""
        return [pid for pid in _below(self.pid) if _status(pid)[0].startswith("sshd")]

    def clients(self) -> list[int]:
        """Return the ssh processes of this machine that were started for the board."""
        config = str(self.directory / "config")
        return [pid for pid in _all() if f"-F {config} " in _command_line(pid)]

    def masters(self) -> list[int]:
        """Return the processes of this machine that hold a connection to the board."""
        sockets = {f"socket:[{inode}]" for inode in _connected_to(self.port)}
        return [pid for pid in _all() if sockets & _open_files(pid)]


@contextlib.contextmanager
def board(
    directory: Path,
    *,
    settings: Sequence[str] = (),
    options: Sequence[str] = (),
    user: str | None = None,
    mounts: Sequence[str] = (),
) -> Iterator[Board]:
    """
    Run a server.

    `settings` go into its configuration, `options` into the client's; `mounts` are
    shell commands that change the file system as the board sees it.
    """
    assert SSHD is not None
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    write_files(directory, port, settings=settings, options=options, user=user)
    argv = [SSHD, "-D", "-e", "-f", str(directory / "sshd_config")]
    if os.geteuid() == 0:
        # The server of root wants its directory; in a namespace it leaves no trace.
        steps = [*mounts, "mkdir -p /run/sshd", f"exec {shlex.join(argv)}"]
        prepare = ["mount -t tmpfs tmpfs /run", *steps]
        argv = ["unshare", "-m", "sh", "-ec", "\n".join(prepare)]
    with (directory / "sshd.log").open("wb") as log:
        server = subprocess.Popen(argv, stdout=log, stderr=log, process_group=0)
    running = Board(directory, port, server.pid)
    try:
        _wait_until_it_answers(running, server)
        yield running
    finally:
        _end(running, server)


def write_files(
    directory: Path,
    port: int,
    *,
    settings: Sequence[str] = (),
    options: Sequence[str] = (),
    user: str | None = None,
) -> None:
    """Write the keys and the configurations of a server and of its client."""
    for name in ("host_key", "user_key"):
        make_key(directory / name)
    host_key = (directory / "host_key.pub").read_text()
    (directory / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}")
    (directory / "sshd_config").write_text(
        _SERVER.format(port=port, directory=directory, settings="\n".join(settings))
    )
    (directory / "config").write_text(
        _CLIENT.format(
            port=port,
            directory=directory,
            user=user or me(),
            options="\n".join(options),
        )
    )
    _write_client(directory / "bin", directory / "config")


def _write_client(place: Path, config: Path) -> None:
    place.mkdir(exist_ok=True)
    real = shlex.quote(shutil.which("ssh") or "ssh")
    client = place / "ssh"
    client.write_text(f'#!/bin/sh\nexec {real} -F {shlex.quote(str(config))} "$@"\n')
    client.chmod(0o755)


def client_of(place: Path, boards: Mapping[str, Board]) -> str:
    """Return a PATH whose `ssh` knows boards by their names, and by 127.0.0.1."""
    configs = {
        name: (one.directory / "config").read_text() for name, one in boards.items()
    }
    own = [text.replace("Host board", f"Host {name}") for name, text in configs.items()]
    known = " ".join(str(one.directory / "known_hosts") for one in boards.values())
    keys = [f"IdentityFile {one.directory}/user_key" for one in boards.values()]
    of_all = (
        *("Host 127.0.0.1", *keys, "IdentitiesOnly yes", "IdentityAgent none"),
        *(f"UserKnownHostsFile {known}", "GlobalKnownHostsFile /dev/null"),
        "StrictHostKeyChecking yes",
    )
    place.mkdir(exist_ok=True)
    (place / "config").write_text("".join(own) + "\n    ".join(of_all) + "\n")
    _write_client(place, place / "config")
    return f"{place}:{os.environ['PATH']}"


def make_key(path: Path) -> None:
    """Make a key pair without a passphrase."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=_PATIENCE_S,
    )


def me() -> str:
    """Return the name of the user who runs the tests."""
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_it_answers(running: Board, server: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + _PATIENCE_S
    while True:
        said = (running.directory / "sshd.log").read_text("utf-8", "replace")
        if "listening on" in said:
            return
        assert server.poll() is None, said
        assert time.monotonic() < end, said
        time.sleep(0.01)


def _end(running: Board, server: "subprocess.Popen[bytes]") -> None:
    mine = [*_below(running.pid), *running.clients()]
    agents = [pid for pid in mine if _status(pid)[0] == "rtscope-agent"]
    server.terminate()
    _kill([pid for pid in mine if pid not in agents])
    # Without a connection they end by themselves; killed before, they leave a journal.
    end = time.monotonic() + _PATIENCE_S
    while any(_status(pid)[0] == "rtscope-agent" for pid in agents):
        if time.monotonic() > end:
            break
        time.sleep(0.02)
    _kill(agents)
    server.wait(_PATIENCE_S)


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            os.kill(pid, signal.SIGCONT)


def _below(pid: int) -> list[int]:
    parents = {child: _status(child) for child in _all()}
    found = [pid]
    for above in found:
        found += [
            child
            for child, (_, parent, state) in parents.items()
            if parent == above and state != "Z"
        ]
    return found[1:]


def _all() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]


def _status(pid: int) -> tuple[str, int, str]:
    """Return a process's name, parent and state."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return "", 0, ""
    name, _, rest = text.partition("(")[2].rpartition(")")
    state, parent = rest.split()[:2]
    return name, int(parent), state


def _connected_to(port: int) -> list[str]:
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    words = [row.split() for row in rows]
    established = "01"
    return [
        row[9]
        for row in words
        if row[2].endswith(f":{port:04X}") and row[3] == established
    ]


def _open_files(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(str(link.readlink()))
    return found


def _command_line(pid: int) -> str:
    try:
        content = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return content.replace(b"\0", b" ").decode("utf-8", "replace")
