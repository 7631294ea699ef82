"""
A shield of CPU 1, on kernels with cgroup v2: what moves, and that all of it comes back.

Inside a virtual board by its agent alone; and over ssh by `rtscope tasks --shield`, on
a guest with this machine's own sshd.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from rig import NEEDS_APT, until

from fakes.sshd import SSHD
from fakes.sshguest import BUSYBOX, Guest, guest
from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import Booted, boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.contract import AgentResult, Applied, Refused, Restored
from rtscope.host.errors import TargetError
from rtscope.host.units import NS_PER_S
from rtscope.machine.reader import text_of
from rtscope.machine.settings.shield import CONTROLLERS_BELOW, GROUP
from rtscope.machine.target import agent_file
from rtscope.machine.target.ssh import SshTarget

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

OVER_SSH = pytest.mark.skipif(
    SSHD is None or BUSYBOX is None, reason="needs openssh-server and busybox"
)

RTSCOPE = (sys.executable, "-m", "rtscope")
PATIENCE_S = 60.0
MOST_OF_THEM = 10

SETTINGS = (
    CONTROLLERS_BELOW,
    "/sys/fs/cgroup/cpuset.cpus.effective",
    "/proc/irq/default_smp_affinity",
    "/sys/devices/virtual/workqueue/cpumask",
    f"{GROUP}/cpuset.cpus.partition",
)

HOLD = (
    "rtscope-agent hold --set cgroup_cpusets=present --set shield={} --set {} >/out/{}"
)
MASK = "default_irq_affinity=1"

MEASURE = (
    "rtscope-agent start --shield -- rtscope-agent measure --cpus 1 --priority 80 "
    "--duration-ns 100000000"
)

SCRIPT = f"""
mkdir -p /run
value() {{ echo "$1=$(cat $1 2>/dev/null)"; }}
look() {{ for f in {" ".join(SETTINGS)}; do value $f; done >/out/$1; }}
held() {{ until grep -q '"tuned"' /out/$1; do sleep 0.05; done; }}
allowed() {{ grep Cpus_allowed_list /proc/$1/status | cut -f2 >/out/$2; }}
look before
taskset 2 sleep 1000 & pinned=$!
{HOLD.format("1", MASK, "hold")} & agent=$!
held hold; look during; allowed $pinned pinned-during
rtscope-agent start --shield --cpus 1 -- cat /proc/self/cgroup >/out/started
{MEASURE} >/out/measured
rtscope-agent start --shield -- sleep 1000 & left=$!
until grep -q shield /proc/$left/cgroup; do sleep 0.05; done
kill -TERM $agent; wait $agent; look ended; allowed $pinned pinned-ended
cat /proc/$left/cgroup >/out/left
{HOLD.format("1", MASK, "killed")} & agent=$!
held killed; kill -KILL $agent; wait $agent; look killed-state
rtscope-agent measure --cpus 0 --policy other --duration-ns 1000000000 >/out/next
look next-state
{HOLD.format("0-1", MASK, "all")} & agent=$!
held all; kill -TERM $agent; wait $agent; look all-state
"""


def prepared(kernel: str = "debian-6.12-rt") -> Prepared:
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    return prepare(get_board("pc"), kernel, context=context)


def shown(booted: Booted, name: str) -> list[str]:
    """Return the values of the settings, as they were then."""
    return [line.partition("=")[2] for line in booted.text(name).splitlines()]


FOUND = ["", "0-1", "3", "3", ""]
SHIELDED = ["cpuset", "0", "1", "1", "isolated"]


@pytest.fixture(scope="module")
def booted() -> Booted:
    job = Job(SCRIPT, disk=True)
    timeout = BootTimeout(30 * NS_PER_S, 0)
    return boot(prepared(), job, seed=1, timeout=timeout, stopped=lambda: False)


def test_a_shield_moves_all_that_can_move_and_its_end_brings_it_back(
    booted: Booted,
) -> None:
    assert shown(booted, "before") == FOUND
    assert shown(booted, "during") == SHIELDED
    assert shown(booted, "ended") == FOUND
    restored = [x.knob for x in booted.lines("hold") if isinstance(x, Restored)]
    assert restored == ["default_irq_affinity", "shield", "cgroup_cpusets"]


def test_a_thread_that_was_bound_to_the_cpu_comes_back_to_it(booted: Booted) -> None:
    assert booted.text("pinned-during").strip() == "0"
    assert booted.text("pinned-ended").strip() == "1"


def test_a_program_starts_inside_and_what_it_leaves_lives_on_outside(
    booted: Booted,
) -> None:
    assert booted.text("started").strip() == "0::/rtscope.shield"
    assert booted.text("left").strip() == "0::/"


def test_the_shielded_cpu_alone_is_measured(booted: Booted) -> None:
    *_, result = booted.lines("measured")

    assert isinstance(result, AgentResult), result
    assert [thread.cpu for thread in result.threads] == [1]


def test_the_next_start_puts_back_what_a_killed_agent_left(booted: Booted) -> None:
    assert shown(booted, "killed-state") == SHIELDED
    assert not any(isinstance(x, Restored) for x in booted.lines("killed"))
    assert shown(booted, "next-state") == FOUND


def test_a_partition_that_the_kernel_does_not_keep_is_refused_in_its_words(
    booted: Booted,
) -> None:
    refused = [x for x in booted.lines("all") if isinstance(x, Refused)]
    applied = [x.knob for x in booted.lines("all") if isinstance(x, Applied)]

    assert [x.cause for x in refused] == ["partition"]
    assert "invalid (Parent unable to distribute cpu downstream)" in refused[0].reason
    assert applied == ["cgroup_cpusets", "default_irq_affinity"]
    assert shown(booted, "all-state") == FOUND


# --- `rtscope tasks --shield` over ssh ------------------------------------------------


def settings_of(there: Guest) -> Mapping[str, str | None]:
    with SshTarget("board", ssh=there.board.ssh) as target:
        files = target.reader.read_many(SETTINGS)
    return {path: text_of(content) for path, content in files.items()}


def came_back(there: Guest, found: Mapping[str, str | None]) -> bool:
    """Whether they are as they were; the killed command's session may still end."""
    try:
        return settings_of(there) == found
    except TargetError:
        return False


@contextlib.contextmanager
def holding(there: Guest, told: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Hold the shield, and give the command that does when it has said so."""
    argv = [*RTSCOPE, "tasks", "--target", "ssh:board", "--shield", "1", "--json"]
    errors = told.with_suffix(".err")
    with (
        # What a killed command has of ssh stays there.
        tempfile.TemporaryDirectory(prefix="ssh-") as own,
        told.open("wb") as out,
        errors.open("wb") as err,
        subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, "PATH": there.board.path, "TMPDIR": own},
        ) as command,
    ):
        try:
            until(lambda: told.read_bytes().endswith(b"}\n"), what="the shield is held")
            yield command
        finally:
            command.kill()


@OVER_SSH
def test_ctrl_c_a_signal_and_sigkill_end_the_shield_and_nothing_stays(
    tmp_path: Path,
) -> None:
    with guest(tmp_path / "guest", prepared("debian-6.12"), cpus=2) as there:
        found = settings_of(there)
        assert found[f"{GROUP}/cpuset.cpus.partition"] is None

        for signo in (signal.SIGINT, signal.SIGTERM):
            told = tmp_path / signo.name
            with holding(there, told) as command:
                command.send_signal(signo)
                status = command.wait(PATIENCE_S)
            said = told.with_suffix(".err").read_text()
            document = json.loads(told.read_bytes())
            assert status == 0, said
            assert document["partition"] == "isolated"
            assert document["threads_moved"] > MOST_OF_THEM
            assert {one["what"] for one in document["not_moved"]} >= {"thread"}
            assert all(one["reason"] for one in document["not_moved"])
            assert "all settings are restored" in said
            assert settings_of(there) == found

        with holding(there, tmp_path / "killed") as command:
            command.kill()
            command.wait(PATIENCE_S)
        until(lambda: came_back(there, found), what="the settings come back")
