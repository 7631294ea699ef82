"""What `make fresh` does, on a machine of a shell and three programs of this one."""

import os
import re
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "setup"
PROGRAMS = ("sh", "cat", "mkdir", "sleep")
UNAVAILABLE = 77


def may_mount() -> bool:
    argv = ["unshare", "--mount", "true"]
    return (
        os.geteuid() == 0 and subprocess.run(argv, capture_output=True).returncode == 0
    )


needs_root = pytest.mark.skipif(
    not may_mount() or shutil.which("git") is None,
    reason="a machine in a chroot needs root, mounts and git",
)


def runs(process: str) -> bool:
    try:
        Path("/proc", process, "root").readlink()
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Computer:
    """Where `setup/fresh` runs: a clone, a cache, a place for machines."""

    here: Path

    @property
    def machines(self) -> Path:
        return self.here / "machines"

    def start(self, *words: str) -> subprocess.Popen[str]:
        env = {
            **os.environ,
            "PATH": f"{self.here / 'bin'}:{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(self.here / "cache"),
            "TMPDIR": str(self.machines),
        }
        return subprocess.Popen(
            [self.here / "clone" / "setup" / "fresh", *words],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        said, _ = process.communicate(timeout=600)
        return process.returncode, said

    def keep_base(self, suite: str) -> None:
        """Put a tiny system where the smallest system of a suite is kept."""
        root = self.here / "base"
        for folder in ("bin", "dev", "etc", "proc", "root", "run", "sys", "usr/sbin"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            source = shutil.which(program)
            assert source is not None
            shutil.copy(source, root / "bin" / program)
            ldd = subprocess.run(["ldd", source], capture_output=True, text=True)
            for library in re.findall(r"(/\S+) \(0x", ldd.stdout):
                copy = root / library.lstrip("/")
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, copy)
        kept = self.here / "cache" / "rtscope" / "fresh" / f"{suite}.tar"
        kept.parent.mkdir(parents=True)
        with tarfile.open(kept, "w") as tar:
            tar.add(root, ".")


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    computer = Computer(tmp_path)
    shutil.copytree(SETUP, tmp_path / "clone" / "setup")
    for folder in ("bin", "machines"):
        (tmp_path / folder).mkdir()
    # Nothing is installed here, and no archive answers.
    for program in ("mmdebstrap", "apt-get"):
        fake = tmp_path / "bin" / program
        fake.write_text("#!/bin/sh\nexit 100\n")
        fake.chmod(0o755)
    return computer


@pytest.fixture
def committed(computer: Computer) -> Computer:
    """The same, with a commit in the clone and a file that is not committed."""
    clone = computer.here / "clone"
    (clone / "committed").write_text("yes\n")
    git = ("git", "-C", clone, "-c", "user.name=n", "-c", "user.email=e")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], check=True)
    (clone / "uncommitted").touch()
    return computer


@pytest.fixture
def mounts(computer: Computer) -> Iterator[None]:
    """Hold that no mount stays where this test makes its machines."""
    yield
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    assert [one for one in mounts if str(computer.here) in one] == []


@pytest.mark.parametrize("words", [(), ("lenny",), ("trixie", "nobody")])
def test_an_unknown_suite_or_user_is_refused_with_what_to_type(
    computer: Computer, words: tuple[str, ...]
) -> None:
    status, said = computer.run(*words)

    assert status == 2
    assert "make fresh SUITE=trixie" in said


@needs_root
@pytest.mark.parametrize(
    ("suite", "why"),
    [("trixie", "does not answer"), ("noble", "does not answer|without .*keyring")],
)
def test_an_archive_that_does_not_answer_is_no_failure_of_the_command(
    committed: Computer, suite: str, why: str
) -> None:
    status, said = committed.run(suite, "root", "true")

    assert status == UNAVAILABLE
    assert re.search(f"no fresh machine here: .*({why})", said)
    assert list(committed.machines.iterdir()) == []


@needs_root
@pytest.mark.usefixtures("mounts")
def test_the_command_sees_the_committed_files_and_its_status_is_returned(
    committed: Computer,
) -> None:
    committed.keep_base("trixie")
    command = "cat committed; cat /proc/self/comm; cat uncommitted || exit 3"

    status, said = committed.run("trixie", "root", command)

    assert status == 3
    assert "yes\ncat\n" in said
    assert "uncommitted: No such file" in said
    assert re.search(r"status 3 after [0-9]+ s\n$", said)
    assert list(committed.machines.iterdir()) == []


@needs_root
@pytest.mark.usefixtures("mounts")
def test_a_program_left_behind_ends_with_the_machine(committed: Computer) -> None:
    committed.keep_base("trixie")

    status, said = committed.run("trixie", "root", "sleep 1000 & echo $!")

    left = re.search(r"^([0-9]+)$", said, re.MULTILINE)
    assert status == 0
    assert left is not None
    assert not runs(left[1])


@pytest.mark.slow
@needs_root
@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_folder_no_mount_and_no_program(
    committed: Computer, number: signal.Signals
) -> None:
    committed.keep_base("trixie")
    process = committed.start("trixie", "root", "echo $$; exec sleep 1000")
    assert process.stdout is not None
    left = next(line.strip() for line in process.stdout if line.strip().isdigit())

    os.killpg(process.pid, number)

    process.communicate(timeout=600)
    assert process.returncode == 128 + number
    assert not runs(left)
    assert list(committed.machines.iterdir()) == []
