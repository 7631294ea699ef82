"""Boards as they are: login shells, full or hardened disks, users, missing tools."""

import os
import pwd
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rig import CPUS, records_in, rtscope

from fakes.sshd import SSHD, board, make_key
from rtscope.contract import AgentError, AgentResult, Line
from rtscope.host.errors import TargetError
from rtscope.machine.reader import read, text_of
from rtscope.machine.target.ssh import SshTarget
from rtscope.machine.target.stream import collect

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(SSHD is None, reason="needs openssh-server"),
]

# All that a board has to have, besides its kernel.
NEEDED = ("sh", "cat", "chmod", "id", "mkdir", "rm", "uname")

HARD_WORDS = (
    "two words",
    "it's",
    'a "quote"',
    "$HOME `id` $(id)",
    "one\\ two\\\\",
    "!x",
    "two\nlines\n",
    "é€",
    "*",
    "%s\\n",
    "",
    "-n",
    ";&|<>#~",
)

SHELLS = {
    "bash": "bash",
    "dash": "dash",
    "busybox": "busybox sh",
    "zsh": "zsh",
    "fish": "fish",
    "tcsh": "tcsh",
}


def said_by(target: SshTarget, *args: str, privileged: bool = False) -> list[Line]:
    return collect(target.start_agent(args, privileged=privileged), timeout_s=30)


@pytest.mark.parametrize("shell", SHELLS)
def test_arguments_arrive_unharmed_and_noise_is_ignored(
    tmp_path: Path, shell: str
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    noise = 'echo "Welcome!"; printf "no newline, {"; echo oops >&2'
    login = f'ForceCommand {noise}; exec {SHELLS[shell]} -c "$SSH_ORIGINAL_COMMAND"'
    with (
        board(tmp_path, settings=[login]) as there,
        SshTarget("board", ssh=there.ssh) as target,
    ):
        log = target.work_path("log")
        said_by(target, "load", "--log", log, "--", "printf", "<%s>", *HARD_WORDS)

        content = read(target.reader, log)

    assert isinstance(content, bytes)
    assert content.decode() == "".join(f"<{word}>" for word in HARD_WORDS)


def minimal_path(directory: Path) -> Path:
    """Make a directory with the programs of a small board and no others."""
    directory.mkdir()
    for name in NEEDED:
        (directory / name).symlink_to(shutil.which(name) or name)
    return directory


def test_a_campaign_measures_the_board_and_leaves_nothing_there(
    scratch: Path, private_tmp: Path, root: None
) -> None:
    board_tmp = scratch / "board-tmp"
    board_tmp.mkdir()
    (scratch / "os-release").write_text('ID=alpine\nPRETTY_NAME="Board OS 7"\n')
    settings = [f"SetEnv TMPDIR={board_tmp}"]
    mounts = [f"mount --bind {scratch}/os-release /etc/os-release"]
    before = set(Path("/var/tmp").iterdir())

    with board(scratch / "ssh", settings=settings, mounts=mounts) as there:
        words = "run --target ssh:board --load storage --duration 1s --warmup 50ms"
        out = scratch / "out"
        with rtscope(*words.split(), "--out", out, env={"PATH": there.path}) as program:
            done = program.finish()
        accepted = (there.directory / "sshd.log").read_text().count("Accepted")
        left = (there.processes(), there.masters(), there.clients())

    assert done.status == 0, done.stderr
    assert accepted == 1  # one connection: a password would be asked for once
    assert left == ([], [], [])
    assert list(board_tmp.iterdir()) == []
    assert list(private_tmp.iterdir()) == []
    mine = {p for p in Path("/var/tmp").iterdir() if p.name.startswith("rtscope-")}
    assert mine <= before
    kept = records_in(out)["storage"]
    assert kept.facts_before["distribution"].value == "Board OS 7"
    assert {thread.cpu for thread in kept.result.threads} == set(CPUS)
    assert kept.run.target == "ssh:board"
    assert any("/var/tmp/rtscope-scratch-" in word for word in kept.load.argv)


def test_a_board_without_stress_ng_is_told_how_to_install_it(
    scratch: Path, root: None
) -> None:
    (scratch / "os-release").write_text("ID=alpine\n")
    with board(
        scratch / "ssh",
        settings=[f"SetEnv PATH={minimal_path(scratch / 'bin')}"],
        mounts=[f"mount --bind {scratch}/os-release /etc/os-release"],
    ) as there:
        words, out = "run --target ssh:board --load idle,cpu", scratch / "out"
        with rtscope(*words.split(), "--out", out, env={"PATH": there.path}) as program:
            done = program.finish()

    assert done.status == 3
    assert "need stress-ng, which is not installed" in done.stderr
    assert "apk add stress-ng" in done.stderr


def test_a_program_of_the_board_that_fails_is_no_lost_connection(
    tmp_path: Path,
) -> None:
    for name, status in (("fails", 255), ("works", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\necho $1\nexit {status}\n")
        (tmp_path / name).chmod(0o755)

    with (
        board(tmp_path / "ssh") as there,
        SshTarget("board", ssh=there.ssh) as target,
    ):
        said = [
            target.first_line([f"{tmp_path}/{name}", "a b"])
            for name in ("fails", "works", "missing")
        ]

    assert said == ["a b", "a b", None]


def hardened(directory: Path) -> list[str]:
    return [
        f"mount --bind {directory} {directory}",
        f"mount -o remount,bind,noexec {directory}",
    ]


def test_a_directory_where_nothing_may_be_run_is_passed_over(
    scratch: Path, root: None
) -> None:
    with (
        board(scratch, mounts=hardened(Path("/tmp"))) as there,
        SshTarget("board", ssh=there.ssh) as target,
    ):
        assert target.work_path("x").startswith("/var/tmp/")
        assert text_of(read(target.reader, "/proc/sys/kernel/ostype")) == "Linux"


def test_a_full_disk_is_passed_over_and_nothing_stays_on_it(
    scratch: Path, root: None
) -> None:
    full, seen = scratch / "full", scratch / "seen"
    full.mkdir()
    with (
        board(
            scratch / "ssh",
            settings=[f"SetEnv TMPDIR={full}"],
            mounts=[f"mount -t tmpfs -o size=64k tmpfs {full}"],
        ) as there,
        SshTarget("board", ssh=there.ssh) as target,
    ):
        assert target.work_path("x").startswith("/tmp/")
        look = f"ls {full} > {seen}"
        said_by(target, "load", "--log", "/dev/null", "--", "sh", "-c", look)
        assert seen.read_text() == ""


def test_a_board_with_no_place_for_the_agent_is_refused_with_each_reason(
    scratch: Path, root: None
) -> None:
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    places = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), home]
    mounts = [line for place in places for line in hardened(place)]
    with (
        board(scratch / "ssh", mounts=mounts) as there,
        pytest.raises(TargetError, match="no directory for the agent") as refusal,
        SshTarget("board", ssh=there.ssh),
    ):
        pass
    assert str(refusal.value).count("Permission denied") == len(places)
    assert there.masters() == []


def test_an_architecture_without_an_agent_is_named(tmp_path: Path) -> None:
    programs = minimal_path(tmp_path / "bin")
    (programs / "uname").unlink()
    (programs / "uname").write_text("#!/bin/sh\necho mips64\n")
    (programs / "uname").chmod(0o755)
    with (
        board(tmp_path / "ssh", settings=[f"SetEnv PATH={programs}"]) as there,
        pytest.raises(TargetError, match="no agent for 'mips64'"),
        SshTarget("board", ssh=there.ssh),
    ):
        pass
    assert there.masters() == []


USER_ID = 54321


def a_user(scratch: Path, *, sudo: str) -> list[str]:
    """Return what gives the board a user of its own, with these rights in sudoers."""
    home = scratch / "home"
    home.mkdir()
    os.chown(home, USER_ID, USER_ID)
    added = {
        "passwd": f"someone:x:{USER_ID}:{USER_ID}::{home}:/bin/sh\n",
        "group": f"someone:x:{USER_ID}:\n",
        "shadow": "someone:*:19000::::::\n",
    }
    for name, line in added.items():
        (scratch / name).write_text(Path("/etc", name).read_text() + line)
    (scratch / "sudoers").write_text(f"root ALL=(ALL) ALL\n{sudo}\n")
    (scratch / "sudoers").chmod(0o440)
    files = [*added, "sudoers"]
    return [f"mount --bind {scratch}/{name} /etc/{name}" for name in files]


def measure_as_someone(scratch: Path, sudo: str) -> tuple[list[Line], object]:
    with (
        board(
            scratch / "ssh", user="someone", mounts=a_user(scratch, sudo=sudo)
        ) as there,
        SshTarget("board", ssh=there.ssh) as target,
    ):
        words = "measure --priority 99 --interval-ns 1000000 --duration-ns 100000000"
        return said_by(target, *words.split(), privileged=True), target.load_user()


needs_sudo = pytest.mark.skipif(shutil.which("sudo") is None, reason="needs sudo")


@needs_sudo
def test_a_user_with_sudo_measures_with_real_time_priority(
    scratch: Path, root: None
) -> None:
    lines, load_user = measure_as_someone(scratch, "someone ALL=(ALL) NOPASSWD: ALL")

    assert isinstance(lines[-1], AgentResult), lines[-1]
    assert {thread.policy for thread in lines[-1].threads} == {"fifo"}
    assert load_user == (USER_ID, USER_ID)


def test_a_user_without_sudo_is_told_which_right_is_missing(
    scratch: Path, root: None
) -> None:
    lines, load_user = measure_as_someone(scratch, "")

    assert isinstance(lines[-1], AgentError), lines[-1]
    assert lines[-1].cause in ("capability", "rlimit", "memlock")
    assert load_user is None


def test_a_path_too_long_for_a_socket_is_not_used_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with (
        board(tmp_path / "ssh") as there,
        SshTarget("board", ssh=there.ssh) as target,
    ):
        assert text_of(read(target.reader, "/proc/sys/kernel/ostype")) == "Linux"
    assert list(long.iterdir()) == []


def test_a_configuration_for_interactive_work_and_a_jump_host_do_no_harm(
    tmp_path: Path,
) -> None:
    theirs = tmp_path / "their-socket"
    options = [
        *("RequestTTY force", "RemoteCommand echo mine", "ForwardX11 yes"),
        *("ControlMaster auto", f"ControlPath {theirs}", "ExitOnForwardFailure yes"),
        "LocalForward 127.0.0.1:1 127.0.0.1:1",
    ]
    with board(tmp_path / "ssh") as jump:
        through = f"    ProxyCommand {' '.join(jump.ssh)} -W %h:%p board"
        with (
            board(tmp_path / "far", options=[*options, through]) as there,
            SshTarget("board", ssh=there.ssh) as target,
        ):
            assert text_of(read(target.reader, "/proc/sys/kernel/ostype")) == "Linux"
            assert jump.sessions()
    assert not theirs.exists()


# --- no connection ------------------------------------------------------------------


def refusal(host: str, ssh: Sequence[str]) -> str:
    with pytest.raises(TargetError) as caught, SshTarget(host, ssh=ssh):
        pass
    return str(caught.value)


def test_a_changed_host_key_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with board(tmp_path / "ssh") as there:
        make_key(tmp_path / "other")
        other = (tmp_path / "other.pub").read_text()
        known = there.directory / "known_hosts"
        known.write_text(f"[127.0.0.1]:{there.port} {other}")
        words = refusal("board", there.ssh)

    assert "Host key verification failed" in words
    assert "ssh-keygen -R board" in words


def test_a_refused_key_is_told_how_to_be_given(tmp_path: Path) -> None:
    with board(tmp_path / "ssh") as there:
        (there.directory / "user_key.pub").write_text("")
        words = refusal("board", there.ssh)

    assert "Permission denied" in words
    assert "ssh-copy-id board" in words


def test_a_login_that_runs_no_commands_is_told_from_a_lost_connection(
    tmp_path: Path,
) -> None:
    login = "ForceCommand echo This account is not available. >&2; exit 1"
    with board(tmp_path / "ssh", settings=[login]) as there:
        words = refusal("board", there.ssh)

    assert "This account is not available." in words
    assert "the board ran no command" in words


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_board_that_never_answers_is_given_up(silent_port: int) -> None:
    ssh = ("ssh", "-F", "/dev/null", "-oConnectTimeout=1", f"-p{silent_port}")

    assert "timed out" in refusal("127.0.0.1", ssh)


def test_a_port_without_a_server_is_told_from_a_dead_board() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        words = refusal("someone@127.0.0.1", ("ssh", "-F", "/dev/null", f"-p{port}"))

    assert "Connection refused" in words
    assert "start an SSH server there" in words


def test_a_missing_client_is_named() -> None:
    assert "openssh-client" in refusal("board", ("ssh-that-is-not-there",))
