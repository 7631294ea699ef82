"""`rtscope app start`: what a program was given, as the kernel and the program say."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rig import CPUS, Done, Program, native_agent, rtscope, until

from fakes.sshd import SSHD, board

pytestmark = pytest.mark.system

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
LAST = str(CPUS[-1])
CHRT = "/usr/bin/chrt"
STATUS = ("grep", "", "/proc/self/status")


def started(*words: str | Path) -> Done:
    """Start a program to its end."""
    with rtscope("app", "start", *words) as program:
        return program.finish()


def as_nobody(agent: Path, *words: str, prefix: tuple[str, ...] = ()) -> Done:
    """The agent of the command, where nobody else than root could read the source."""
    with Program([*prefix, *AS_NOBODY, agent, "start", *words]) as program:
        return program.finish()


def status_of(done: Done) -> dict[str, str]:
    """What /proc/self/status said, read by the program itself."""
    assert done.status == 0, done.stderr
    pairs = (line.partition(":") for line in done.stdout.decode().splitlines())
    return {key: value.strip() for key, _, value in pairs}


def given(path: Path) -> dict[str, Any]:
    row = json.loads(path.read_text())
    assert isinstance(row, dict)
    return row


def shows_chrt(done: Done) -> str:
    assert done.status == 0, done.stderr
    return re.sub(r"pid \d+'s current ", "", done.stdout.decode())


# --- what it is given -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--policy", "fifo", "--priority", "80"), "SCHED_FIFO\nscheduling prio.*80"),
        (("--policy", "rr", "--priority", "1"), "SCHED_RR\nscheduling priority: 1\n"),
        (("--policy", "batch"), "SCHED_BATCH\n"),
        (("--policy", "idle"), "SCHED_IDLE\n"),
        (("--policy", "other"), "SCHED_OTHER\n"),
        (
            ("--policy", "fifo", "--priority", "9", "--reset-on-fork"),
            r"SCHED_FIFO\|SCHED_RESET_ON_FORK\n",
        ),
        (
            ("--policy", "deadline", "--runtime", "2ms/10ms"),
            "SCHED_DEADLINE.*\n.*\n.*: 2000000/10000000/10000000",
        ),
        (
            ("--policy", "deadline", "--runtime", "1ms/5ms/20ms"),
            "SCHED_DEADLINE.*\n.*\n.*: 1000000/5000000/20000000",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_a_program_has_its_policy(
    words: tuple[str, ...], says: str, root: None, tmp_path: Path
) -> None:
    done = started(*words, "--json", tmp_path / "given.json", "--", CHRT, "-p", "0")

    assert re.search(says, shows_chrt(done)), done.stdout
    assert given(tmp_path / "given.json")["policy"] == words[1]


def test_a_program_has_its_cpus_nice_value_and_io_class(
    root: None, tmp_path: Path
) -> None:
    path = tmp_path / "given.json"
    words = ("--cpus", LAST, "--nice", "-5", "--io", "best-effort:0", "--json", path)
    seen = status_of(started(*words, "--", *STATUS))
    inside = started(*words, "--", "sh", "-c", "nice; ionice")

    assert seen["Cpus_allowed_list"] == LAST
    assert inside.stdout.decode().split("\n")[:2] == ["-5", "best-effort: prio 0"]
    row = given(path)
    assert (row["affinity"], row["nice"]) == (LAST, -5)
    assert (row["io_class"], row["io_level"]) == ("best-effort", 0)


def test_what_is_not_asked_for_stays_as_it_is(tmp_path: Path) -> None:
    bare = subprocess.run(STATUS, capture_output=True, text=True, check=True).stdout
    seen = status_of(started("--", *STATUS))
    pairs = (line.partition(":") for line in bare.splitlines())
    before = {key: value.strip() for key, _, value in pairs}

    same = (
        "SigIgn",
        "SigBlk",
        "Uid",
        "Groups",
        "CapEff",
        "CapAmb",
        "Cpus_allowed",
        "VmLck",
        "NoNewPrivs",
    )
    assert {key: seen[key] for key in same} == {key: before[key] for key in same}


def test_another_user_has_his_groups_home_and_only_what_it_needs(
    root: None, tmp_path: Path
) -> None:
    words = ("--user", "daemon", "--policy", "rr", "--priority", "7")
    done = started(
        *words, "--", "sh", "-c", "cat /proc/self/status; echo Home: $HOME $USER"
    )
    seen = status_of(done)

    assert seen["Uid"].split() == ["1"] * 4
    assert seen["Groups"].split() == ["1"]
    assert seen["Home"] == "/usr/sbin daemon"
    assert seen["CapPrm"] == seen["CapAmb"]
    assert int(seen["CapAmb"], 16) & ~(1 << 23) == 0


def test_capabilities_that_are_asked_for_are_ambient(root: None) -> None:
    words = ("--user", "daemon", "--capabilities", "sys_nice,CAP_IPC_LOCK")
    seen = status_of(started(*words, "--", *STATUS))

    assert seen["CapAmb"] == seen["CapEff"] == "0000000000804000"


# --- the lock -------------------------------------------------------------------------


def test_memory_is_locked_before_the_first_instruction_and_later_memory_too(
    root: None, tmp_path: Path
) -> None:
    path = tmp_path / "given.json"
    script = (
        "import os\n"
        "def kb():\n"
        "    text = open('/proc/self/status').read()\n"
        "    return int(text.split('VmLck:')[1].split()[0])\n"
        "first = kb()\n"
        "more = bytearray(32 << 20)\n"
        "print(first, kb(), os.getppid())\n"
    )
    done = started("--lock", "--json", path, "--", sys.executable, "-c", script)
    assert done.status == 0, done.stderr
    first, then, _ = map(int, done.stdout.split())
    row = given(path)

    assert 0 < row["locked_kb"] <= first
    assert then - first >= 32 << 10


def test_the_lock_leaves_no_child_and_no_tracer_with_the_program(root: None) -> None:
    script = "ps -o pid= --ppid $$ | wc -l; grep TracerPid /proc/self/status"
    done = started("--lock", "--", "sh", "-c", f"sleep 0.2; {script}")

    # ps and wc alone
    assert done.stdout.decode().split() == ["2", "TracerPid:", "0"]


@pytest.mark.parametrize("words", [(), ("--lock",)], ids=["plain", "locked"])
@pytest.mark.parametrize(
    ("script", "status"), [("exit 7", 7), ("kill -TERM $$", -signal.SIGTERM)]
)
def test_the_exit_status_is_the_programs(
    words: tuple[str, ...], script: str, status: int, root: None
) -> None:
    assert started(*words, "--", "sh", "-c", script).status == status


@pytest.mark.parametrize("words", [(), ("--lock",)], ids=["plain", "locked"])
def test_standard_input_and_signals_are_the_programs(
    words: tuple[str, ...], root: None
) -> None:
    caught = "trap 'echo caught; exit 5' INT; echo ready; read x; echo $x; sleep 60"
    with rtscope("app", "start", *words, "--", "sh", "-c", caught) as program:
        comm = Path(f"/proc/{program.pid}/comm")
        until(lambda: comm.read_text() == "sh\n", what="it has become the program")
        program.tell(b"word\n")
        children = Path(f"/proc/{program.pid}/task/{program.pid}/children")
        until(lambda: children.read_text().strip() != "", what="it sleeps")
        os.killpg(program.pid, signal.SIGINT)
        done = program.finish()

    assert (done.status, done.stdout) == (5, b"ready\nword\ncaught\n"), done.stderr


def test_a_program_that_the_lock_was_refused_to_never_begins(
    public_agent: Path, root: None
) -> None:
    prefix = ("prlimit", "--memlock=65536:65536")
    done = as_nobody(
        public_agent, "--lock-memory", "--", "echo", "began", prefix=prefix
    )

    assert (done.status, done.stdout) == (3, b"")
    assert "RLIMIT_MEMLOCK is 64 KiB" in done.stderr
    assert "memlock unlimited" in done.stderr


def test_no_lock_is_claimed_for_a_program_with_rights_of_its_own(
    public_agent: Path, root: None, scratch: Path
) -> None:
    program = scratch / "raised"
    shutil.copy("/bin/true", program)
    program.chmod(0o4755)
    done = as_nobody(public_agent, "--lock-memory", "--", str(program))

    assert done.status == 3
    assert "set-user-ID" in done.stderr


# --- what is refused ------------------------------------------------------------------


def test_a_refused_start_leaves_no_file_and_an_old_one_as_it_was(
    root: None, tmp_path: Path
) -> None:
    new, old = tmp_path / "new.json", tmp_path / "old.json"
    old.write_text("from before, and longer than what is written\n" * 99)
    before = old.read_text()
    # Its CPUs have to be all of its root domain.
    deadline = ("--policy", "deadline", "--runtime", "2ms/10ms", "--cpus", LAST)

    def is_refused(path: Path) -> bool:
        """Not while a shield makes a root domain of that CPU."""
        status = started(*deadline, "--json", path, "--", "true").status
        if status == 0:
            new.unlink(missing_ok=True)
            old.write_text(before)
        return status == 3

    for path in (new, old):
        until(partial(is_refused, path), what="the kernel refuses the deadline")
    assert not new.exists()
    assert old.read_text() == before

    assert started("--nice", "1", "--json", old, "--", "true").status == 0
    assert given(old)["nice"] == 1


@pytest.mark.parametrize(
    ("words", "says", "types"),
    [
        (
            ("--policy", "fifo", "--priority", "80"),
            "SCHED_FIFO 80: Operation not permitted",
            "rtprio 80",
        ),
        (
            (
                "--policy",
                "deadline",
                "--runtime-ns",
                "2000000",
                "--period-ns",
                "9000000",
            ),
            "no limit allows SCHED_DEADLINE",
            "AmbientCapabilities=CAP_SYS_NICE",
        ),
        (("--nice", "-5"), "RLIMIT_NICE, which allows 20 or more", "LimitNICE=-5"),
        (("--io", "1:0"), "I/O class realtime", "--io"),
        (("--user", "0:0"), "another user: Operation not permitted", "sudo"),
        (("--capabilities", "800000"), "capabilities: Operation not", "sudo setcap"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_an_ordinary_user_lacks_is_named_with_what_to_type(
    words: tuple[str, ...], says: str, types: str, public_agent: Path, root: None
) -> None:
    done = as_nobody(public_agent, *words, "--", "echo", "began")

    assert (done.status, done.stdout) == (3, b"")
    said, typed = done.stderr.splitlines()
    assert says in said
    assert typed.startswith("rtscope: type: ")
    assert types in typed


def test_an_ordinary_user_gets_what_needs_no_right(public_agent: Path) -> None:
    prefix = AS_NOBODY if os.geteuid() == 0 else ()
    words = ("--policy", "batch", "--cpus", LAST, "--nice", "19", "--io", "3:0")
    with Program([*prefix, public_agent, "start", *words, "--", *STATUS]) as program:
        seen = status_of(program.finish())

    assert seen["Cpus_allowed_list"] == LAST


def test_a_deadline_program_on_fewer_cpus_than_its_root_domain_is_refused(
    root: None,
) -> None:
    if len(CPUS) < 2:
        pytest.skip("needs two CPUs")
    words = ("--policy", "deadline", "--runtime", "2ms/10ms", "--cpus", LAST)
    done = started(*words, "--", "echo", "began")

    assert (done.status, done.stdout) == (3, b"")
    assert "every CPU of its root domain: it is allowed on 1 of" in done.stderr
    assert "cpuset.cpus.partition" in done.stderr


def test_a_cpu_that_the_machine_has_not_is_named(root: None) -> None:
    done = started("--cpus", "900", "--", "echo", "began")

    assert (done.status, done.stdout) == (3, b"")
    assert "this machine has no CPU 900" in done.stderr


def test_a_namespace_in_which_capabilities_count_for_nothing_is_named() -> None:
    prefix = ("unshare", "--user", "--map-root-user")
    if subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    words = ("start", "--policy", "fifo", "--priority", "10", "--", "true")
    with Program([*prefix, native_agent(), *words]) as program:
        done = program.finish()

    assert done.status == 3
    assert "user namespace" in done.stderr


@pytest.fixture
def unready(tmp_path: Path) -> dict[str, Path]:
    """Programs that cannot be executed, by what is wrong with them."""
    plain = tmp_path / "plain"
    plain.write_text("text")
    orphan = tmp_path / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o755)
    return {
        "plain": plain,
        "orphan": orphan,
        "folder": tmp_path,
        "gone": tmp_path / "x",
    }


@pytest.mark.parametrize(
    ("which", "status", "says"),
    [
        ("gone", 127, "No such file or directory"),
        ("orphan", 127, "interpreter"),
        ("plain", 126, "Permission denied"),
        ("folder", 126, "directory"),
    ],
)
def test_a_program_that_cannot_be_executed_has_the_status_of_env(
    which: str, status: int, says: str, unready: dict[str, Path]
) -> None:
    done = started("--", unready[which])
    like = subprocess.run(
        ["env", str(unready[which])], check=False, capture_output=True
    )

    assert done.status == like.returncode == status
    assert says in done.stderr
    # what runs a program to watch it says the same
    with rtscope("app", "check", "--", str(unready[which])) as program:
        checked = program.finish()
    assert checked.status == 3
    assert says in checked.stderr
    typed = done.stderr.partition("type: ")[2].strip()
    assert typed in checked.stderr


def test_a_name_is_looked_for_in_the_path(tmp_path: Path) -> None:
    assert started("--", "no-such-program-at-all").status == 127
    assert started("--", "true").status == 0


# --- over SSH -------------------------------------------------------------------------


@pytest.mark.skipif(SSHD is None, reason="needs sshd")
def test_a_program_on_a_board_has_what_was_asked_for(
    tmp_path: Path, root: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.ExitStack() as held:
        there = held.enter_context(board(tmp_path))
        monkeypatch.setenv("PATH", there.path)
        words = ("--target", "ssh:board", "--policy", "fifo", "--priority", "8")
        done = started(*words, "--lock", "--", "sh", "-c", "chrt -p $$; exit 9")
        refused = started(*words, "--cpus", "900", "--", "true")

    assert b"SCHED_FIFO" in done.stdout, done.stderr
    assert done.status == 9
    assert (refused.status, "no CPU 900" in refused.stderr) == (3, True)
