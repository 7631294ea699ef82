"""What a user lacks is named, with the remedy; only what needs root runs as root."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import (
    JOURNAL_DIR,
    PATIENCE_S,
    UNTIL_KILLED_S,
    Done,
    Program,
    children_of,
    measuring,
    native_agent,
    out_of_memory,
    records_in,
    rtscope,
    until,
)

import rtscope as rtscope_package
from rings.leftovers import is_held
from rtscope.contract import Hello

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


RTPRIO_10 = ("prlimit", "--rtprio=10")

# Where even root may not raise a limit (CAP_SYS_RESOURCE): getrlimit is made to say so.
TOLD_10 = (
    *("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=prlimit64", "-e"),
    f"inject=prlimit64:retval=0:poke_exit=@arg4={2 * '0a00000000000000'}",
)


def may_raise_limits() -> bool:
    done = subprocess.run([*RTPRIO_10, "true"], check=False, capture_output=True)
    return done.returncode == 0


def test_a_limit_of_the_priority_is_named_with_the_highest_allowed(
    public_agent: Path,
) -> None:
    prefix: tuple[str, ...] = (*RTPRIO_10, *AS_NOBODY)
    if not may_raise_limits() and shutil.which("strace"):
        prefix = (*AS_NOBODY, *TOLD_10, "--")
    elif not may_raise_limits():
        pytest.skip("may not raise RLIMIT_RTPRIO here, and there is no strace")
    done = refused(*prefix, agent=public_agent)

    assert done.error.cause == "rlimit"
    assert "RLIMIT_RTPRIO allows priorities up to 10 only" in done.error.message
    assert "--priority 10 or less" in done.error.remedy


def test_the_priority_that_the_limit_allows_is_measured(public_agent: Path) -> None:
    if not may_raise_limits():
        pytest.skip("may not raise RLIMIT_RTPRIO here (CAP_SYS_RESOURCE)")
    prefix = (*RTPRIO_10, "prlimit", "--memlock=67108864", *AS_NOBODY)
    with measuring(
        priority=10, seconds=0.1, prefix=prefix, agent=public_agent
    ) as agent:
        result = agent.finish().result

    assert {(t.policy, t.priority) for t in result.threads} == {("fifo", 10)}


def test_a_missing_capability_is_named_for_a_user_without_any(
    public_agent: Path,
) -> None:
    done = refused("prlimit", "--rtprio=0", *AS_NOBODY, agent=public_agent)

    assert done.error.cause == "capability"
    assert "lacks CAP_SYS_NICE" in done.error.message


def test_a_user_whose_shell_is_nice_is_not_sent_to_what_was_refused(
    public_agent: Path,
) -> None:
    done = refused(
        *("nice", "-n", "5", "prlimit", "--nice=0", *AS_NOBODY),
        agent=public_agent,
        policy="other",
    )

    assert done.error.cause == "capability"
    assert re.search(r"runs at nice \d+, and may not go back to 0", done.error.message)
    assert "--policy other" not in done.error.remedy
    assert "from a shell at nice 0" in done.error.remedy


def test_a_missing_capability_is_named_for_root_in_a_container() -> None:
    done = refused("prlimit", "--rtprio=0", "setpriv", "--bounding-set=-sys_nice")

    assert done.error.cause == "capability"
    assert "lacks CAP_SYS_NICE" in done.error.message
    assert "--cap-add SYS_NICE" in done.error.remedy


def test_a_cgroup_without_real_time_is_named_though_root_asks() -> None:
    mounted = Path("/sys/fs/cgroup/cpu")
    if not (mounted / "cpu.rt_runtime_us").exists():
        pytest.skip("this machine has no cgroup v1 hierarchy with cpu.rt_runtime_us")
    group = mounted / f"rtscope-test-{os.getpid()}"
    group.mkdir()
    try:
        assert (group / "cpu.rt_runtime_us").read_text().strip() == "0"
        enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        done = refused("sh", "-c", enter, "sh")
    finally:
        until(lambda: (group / "cgroup.procs").read_text() == "", what="it is empty")
        group.rmdir()

    assert done.error.cause == "cgroup"
    assert f"{group}/cpu.rt_runtime_us is 0" in done.error.message
    assert "cpu.rt_runtime_us" in done.error.remedy


def test_a_limit_of_locked_memory_is_named(public_agent: Path) -> None:
    done = refused(
        "prlimit", "--memlock=65536", *AS_NOBODY, agent=public_agent, policy="other"
    )

    assert done.error.cause == "memlock"
    assert "RLIMIT_MEMLOCK is 64 KB" in done.error.message
    assert "ulimit -l" in done.error.remedy


def test_a_setting_that_only_root_may_change_is_named(public_agent: Path) -> None:
    with measuring(
        *("--set", "rt_runtime_us=-1"),
        policy="other",
        prefix=AS_NOBODY,
        agent=public_agent,
    ) as agent:
        done = agent.finish()

    assert done.status == 3
    assert done.error.cause == "knob"
    assert done.error.remedy == "changing settings of the machine needs root"


def refused(*prefix: str, agent: Path | None = None, policy: str = "fifo") -> Done:
    with measuring(prefix=prefix, agent=agent, policy=policy) as running:
        done = running.finish()
    assert done.status == 3, done
    return done


def test_root_gives_up_what_measuring_does_not_need() -> None:
    with measuring(seconds=0.6) as agent:
        until(lambda: "NoNewPrivs:\t1" in status_of(agent.pid), what="rights dropped")
        status = status_of(agent.pid)
        assert agent.finish().status == 0

    effective = next(x for x in status.splitlines() if x.startswith("CapEff:"))
    kill, ipc_lock, sys_rawio, sys_nice = 5, 14, 17, 23
    may_keep = sum(1 << bit for bit in (kill, ipc_lock, sys_rawio, sys_nice))
    assert int(effective.split()[1], 16) & ~may_keep == 0


def status_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/status").read_text()
    return ""


USER = "rtscope-test"


@pytest.fixture
def sudoer() -> Iterator[str]:
    """A user who may become root without a password."""
    for program in ("useradd", "sudo"):
        if subprocess.run(["which", program], capture_output=True).returncode:
            pytest.skip(f"needs {program}")
    rule = Path(f"/etc/sudoers.d/{USER}")
    # A run of the tests that was killed has left the user.
    subprocess.run(
        ["userdel", USER], check=False, timeout=PATIENCE_S, capture_output=True
    )
    subprocess.run(
        ["useradd", "--no-create-home", USER], check=True, timeout=PATIENCE_S
    )
    try:
        rule.write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
        rule.chmod(0o440)
        yield USER
    finally:
        rule.unlink(missing_ok=True)
        subprocess.run(
            ["userdel", USER], check=False, timeout=PATIENCE_S, capture_output=True
        )


def python_for(user: str) -> list[str]:
    """Return how another user starts rtscope; skip where they cannot reach it."""
    version = f"python3.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/local/bin/{version}", f"/usr/bin/{version}"):
        paths = [str(Path(rtscope_package.__file__).parents[1])]
        paths += [path for path in sys.path if path.endswith("site-packages")]
        argv = ["env", f"PYTHONPATH={':'.join(paths)}", python, "-Bm", "rtscope"]
        works = subprocess.run(
            ["setpriv", *become(user), *argv, "--version"],
            check=False,
            capture_output=True,
            cwd="/",
        )
        if works.returncode == 0:
            return argv
    pytest.skip("this tree or its Python lies where another user cannot read it")


def become(user: str) -> list[str]:
    return [f"--reuid={user}", f"--regid={user}", "--clear-groups"]


def test_only_the_agent_runs_as_root_and_the_load_as_the_user(
    sudoer: str, scratch: Path
) -> None:
    rtscope = python_for(sudoer)
    scratch.chmod(0o777)
    argv = ("run", "--load", "cpu,oom", "--warmup", "200ms")
    for seconds in UNTIL_KILLED_S:
        out = scratch / f"results-{seconds}"
        own = ("--duration", f"{seconds}s", "--out", out)
        with Program(
            ["setpriv", *become(sudoer), *rtscope, *argv, *own],
            env={"HOME": str(scratch), "MPLCONFIGDIR": str(scratch)},
        ) as campaign:
            seen = users_and_names(campaign)
            done = campaign.finish()
        assert done.status == 0, done.stderr
        kept = records_in(out)
        if out_of_memory(kept["oom"]):
            break

    user = int(subprocess.check_output(["id", "-u", sudoer]))
    workers = {(who, name) for who, name in seen if name.startswith("stress-ng")}
    assert {name for _, name in workers} >= {"stress-ng-matri", "stress-ng-bighe"}
    assert {who for who, _ in workers} == {user}
    as_root = {name for who, name in seen if who == 0}
    # `sudo true` is how rtscope finds out that it may; PAM 1.7 asks by unix_chkpwd.
    of_sudo = {"sudo", "true", "unix_chkpwd"}
    assert "rtscope-agent" in as_root <= {*of_sudo, "rtscope-agent"}
    assert {t.policy for t in kept["cpu"].result.threads} == {"fifo"}
    assert out_of_memory(kept["oom"]) > 0
    assert (out / "report.html").stat().st_uid == user
    assert all(map(is_held, JOURNAL_DIR.glob("journal.*")))  # those of others alone


def users_and_names(campaign: Program) -> set[tuple[int, str]]:
    """Return what runs as whom, from now to the campaign's end."""
    seen: set[tuple[int, str]] = set()
    end = time.monotonic() + PATIENCE_S
    while campaign.running and time.monotonic() < end:
        for pid in children_of(campaign.pid):
            with contextlib.suppress(OSError):
                status = status_of(pid)
                name = re.search(r"^Name:\t(.*)$", status, re.MULTILINE)
                user = re.search(r"^Uid:\t\d+\t(\d+)", status, re.MULTILINE)
                if name and user:
                    seen.add((int(user[1]), name[1]))
        time.sleep(0.02)
    return seen


def test_a_user_who_cannot_become_root_is_told_what_is_missing(scratch: Path) -> None:
    """As in a container without sudo: measured with the user's own limits, or not."""
    agent = scratch / "rtscope-agent"
    agent.write_bytes(native_agent().read_bytes())
    agent.chmod(0o755)
    with measuring(policy="other", seconds=0.1, prefix=AS_NOBODY, agent=agent) as run:
        done = run.finish()

    assert isinstance(done.lines[0], Hello)
    assert {t.policy for t in done.result.threads} == {"other"}


def test_the_message_of_a_refusal_reaches_the_user(scratch: Path) -> None:
    no_such_cpu = "500"
    with rtscope(
        *("run", "--load", "idle", "--cpus", no_such_cpu, "--duration", "1s"),
        *("--out", scratch / "results"),
    ) as campaign:
        done = campaign.finish()

    assert done.status == 3
    assert done.stdout == b""
    last = done.stderr.strip().splitlines()[-1]
    assert f"CPU {no_such_cpu} cannot be measured" in last
    assert "choose from --cpus" in last
    assert "Traceback" not in done.stderr
