"""
The audit inside virtual boards says what is true of them.

What is true is known: which kernel was booted, with which configuration, which words on
its command line, and what was done to its CPUs. A board boots in seconds of host time.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rig import NEEDS_APT, are_built, rtscope

from rtscope.boards.catalogue import get_board, with_append
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.runs.inspect import inspect_guest
from rtscope.machine.audit.examine import auditing, examine, paths, read_context
from rtscope.machine.audit.model import Check, CheckOutcome
from rtscope.machine.target import agent_file

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    NEEDS_APT,
]

PATIENCE_S = 300.0

ISOLATED = (
    "isolcpus=managed_irq,domain,1 nohz_full=1 rcu_nocbs=1 irqaffinity=0 nowatchdog "
    "trace_event=sched:sched_switch"
)
LOCKED = "lockdown=confidentiality preempt=full isolcqus=1"

Rows = Mapping[str, Mapping[str, Any]]


CONTEXT = BuildContext(cache=cache_dir(), agent=agent_file)


def audited(*words: str, board: str, kernel: str) -> tuple[int, Rows]:
    """Run the command; return its exit status and its checks by id."""
    where = ("--target", f"virtual:{board}", "--kernel", kernel)
    with rtscope("audit", *where, *words, "--json") as program:
        done = program.finish(PATIENCE_S)
    assert done.status in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert document["kernel"]["config_digest"] == config_digest(board, kernel)
    return done.status, {row["id"]: row for row in document["checks"]}


def config_digest(board: str, kernel: str) -> str:
    """Return the digest of the configuration that a kernel was built with."""
    config = prepare(get_board(board), kernel, context=CONTEXT).kernel.config
    assert config is not None
    return hashlib.sha256(config.read_bytes()).hexdigest()


def outcomes(rows: Rows, *names: str) -> dict[str, str]:
    return {name: rows[name]["outcome"] for name in names}


def test_a_real_time_pc_is_what_its_command_line_made_it(tmp_path: Path) -> None:
    archive = tmp_path / "board.tar.gz"
    status, rows = audited(
        *("--profile", "polling", "--append", ISOLATED, "--capture", str(archive)),
        board="pc",
        kernel="debian-6.12-rt",
    )

    assert status == 1
    right = (
        *("preempt_rt", "hrtimers", "rt_group_sched", "isolated_cpus", "nohz_full"),
        *("rcu_callbacks", "default_irq_affinity", "workqueues", "housekeeping"),
        *("offline_cpus", "clocksource", "clock_doubted", "logged_delays", "watchdog"),
        *("realtime_policy", "current_tracer", "locked_memory_moves", "lockdown"),
        *("unknown_parameters", "cpu_dma_latency", "real_time_threads"),
    )
    assert outcomes(rows, *right) == dict.fromkeys(right, "pass")
    # What was done to it on purpose, and what a virtual board cannot hide.
    wrong = ("debugging_parameters", "trace_events", "bare_metal", "fair_server")
    assert outcomes(rows, *wrong) == dict.fromkeys(wrong, "fail")
    assert rows["debugging_parameters"]["message"] == "trace_event=sched:sched_switch"
    nothing = ("scaling_governor", "fixed_frequency", "turbo", "smt", "smi_count")
    absent = (*nothing, "preemption_model", "rt_throttling", "transparent_hugepages")
    assert outcomes(rows, *absent) == dict.fromkeys(absent, "not applicable")

    with rtscope(
        *("audit", "--root", archive, "--profile", "polling", "--json")
    ) as program:
        again = json.loads(program.finish(PATIENCE_S).stdout)["checks"]
    assert {row["id"]: row["outcome"] for row in again} == {
        name: row["outcome"] for name, row in rows.items()
    }


@pytest.mark.skipif(
    not are_built("jh7110-6.12-rt"), reason="rtscope kernel build jh7110-6.12-rt"
)
def test_a_riscv_board_is_what_its_recipe_and_command_line_made_it() -> None:
    status, rows = audited(
        *("--append", "isolcpus=2-3 maxcpus=3 nohz_full=3", "--observe", "0.2"),
        board="jh7110",
        kernel="jh7110-6.12-rt",
    )

    assert status == 1
    right = ("preempt_rt", "hrtimers", "isolated_cpus", "workqueues", "clocksource")
    assert outcomes(rows, *right) == dict.fromkeys(right, "pass")
    assert rows["isolated_cpus"]["message"] == "CPU 2 is covered"
    assert rows["offline_cpus"]["message"] == "CPU 3 is offline"
    # The kernel is built without it, and says so.
    assert rows["unknown_parameters"]["message"] == "nohz_full=3"
    # Its timer is an interrupt by number, and no device's.
    assert rows["observed_device_interrupts"]["outcome"] == "pass"
    assert rows["cpu_dma_latency"]["outcome"] == "not applicable"
    assert rows["riscv_timer"]["outcome"] == "pass"
    assert rows["bare_metal"]["outcome"] == "fail"


@pytest.fixture(scope="module")
def locked() -> Mapping[str, Check]:
    """An ordinary kernel, locked down, from which a CPU was taken away."""
    board = with_append(get_board("pc"), LOCKED.split())
    inside = inspect_guest(
        prepare(board, "debian-6.12", context=CONTEXT),
        paths(auditing()),
        window_ns=0,
        first=["echo 0 >/sys/devices/system/cpu/cpu1/online"],
    )
    context = read_context(
        inside.reader, auditing(), cpus=(1,), observed=inside.observed
    )
    return {check.kind.id: check for check in examine(context, auditing())}


def test_preempt_full_is_not_called_real_time(locked: Mapping[str, Check]) -> None:
    assert locked["preempt_rt"].outcome is CheckOutcome.FAIL
    assert locked["preemption_model"].outcome is CheckOutcome.PASS
    # The file that marks the model is refused; the log tells it.
    assert locked["preemption_model"].message == (
        "full: the kernel log says 'Dynamic Preempt: full'"
    )


def test_what_lockdown_refuses_is_named_and_passes_nothing(
    locked: Mapping[str, Check],
) -> None:
    assert locked["lockdown"].message == "none integrity [confidentiality]"
    for name in ("fair_server", "current_tracer", "trace_events", "trace_instances"):
        assert locked[name].outcome is CheckOutcome.UNKNOWN, name
        assert locked[name].message.startswith("kernel lockdown"), name
    assert locked["fair_server"].evidence[0].value == (
        "cannot be read: Operation not permitted"
    )


def test_a_cpu_that_was_taken_away_is_missed(locked: Mapping[str, Check]) -> None:
    assert locked["offline_cpus"].message == "CPU 1 is offline"
    assert locked["housekeeping"].message == "one CPU is online"
    # Nothing can be said of where interrupts go on a CPU that is not there.
    assert locked["irq_affinity"].outcome is CheckOutcome.NOT_APPLICABLE


def test_a_misspelt_parameter_is_found(locked: Mapping[str, Check]) -> None:
    assert locked["unknown_parameters"].message == "isolcqus=1"
