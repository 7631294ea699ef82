"""Demonstrations on a virtual board: exact, and the same every time."""

import json
from dataclasses import replace
from typing import Any

import pytest
from rig import NEEDS_APT, are_built, rtscope

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.machine.target import agent_file
from rtscope.verbs.demo.board import result_of, script_of
from rtscope.verbs.demo.judge import judged
from rtscope.verbs.demo.model import (
    DURATION_NS,
    GROUP_PERIOD,
    GROUP_RUNTIME,
    Scenario,
    demos,
)

pytestmark = [pytest.mark.system, NEEDS_APT]

PATIENCE_S = 900.0
"""The first call fetches QEMU and a kernel."""


def demo(scenario: str, kernel: str, board: str = "pc") -> dict[str, Any]:
    words = ("--target", f"virtual:{board}", "--kernel", kernel, "--json")
    with rtscope("app", "demo", scenario, *words) as program:
        done = program.finish(PATIENCE_S)
    assert done.status == 0, (done.stderr, done.stdout.decode())
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["preempt", "rr", "inversion", "periodic"])
def test_the_same_demonstration_has_the_same_timeline(scenario: str) -> None:
    one, again = (demo(scenario, "debian-6.12") for _ in range(2))

    assert one["digest"] == again["digest"]
    assert one["cases"] == again["cases"]


@pytest.mark.long
@pytest.mark.parametrize("scenario", [*demos()])
def test_what_must_happen_happens_on_a_preempt_rt_kernel(scenario: Scenario) -> None:
    assert demo(scenario.value, "debian-6.12-rt")["held"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kernel", "limiter"),
    [
        ("debian-6.1", "RT throttling"),
        ("debian-6.12", "The fair server"),
        ("debian-6.12-rt", "The fair server"),
    ],
)
def test_d3_each_kernel_has_its_own_limiter(kernel: str, limiter: str) -> None:
    found = demo("throttle", kernel)

    assert found["notes"][0].startswith(f"{limiter} limits")
    off = [c for c in found["cases"] if c["name"] == "off"]
    assert bool(off) is (limiter == "The fair server")


KERNEL_7 = "jh7110-7.3"
needs_kernel_7 = pytest.mark.skipif(
    not are_built(KERNEL_7), reason=f"type: rtscope kernel build {KERNEL_7}"
)


@pytest.mark.long
@needs_kernel_7
def test_d3_the_fair_server_limits_on_linux_7() -> None:
    found = demo("throttle", KERNEL_7, "jh7110")

    assert found["notes"][0].startswith("The fair server limits")
    # The kernel of that recipe has no debugfs, and so no settings of the server.
    assert set(found["not_tried"]) == {"off"}


@pytest.mark.long
@needs_kernel_7
@pytest.mark.parametrize("scenario", [one for one in demos() if one != "throttle"])
def test_what_must_happen_happens_on_linux_7(scenario: Scenario) -> None:
    assert demo(scenario.value, KERNEL_7, "jh7110")["held"]


RTGROUP = "pc-6.12-rtgroup"
needs_rtgroup = pytest.mark.skipif(
    not are_built(RTGROUP), reason=f"type: rtscope kernel build {RTGROUP}"
)


@pytest.mark.long
@needs_rtgroup
def test_d3_the_fair_server_limits_with_rt_group_sched_too() -> None:
    found = demo("throttle", RTGROUP)

    assert found["notes"][0].startswith("The fair server limits")
    assert not found["not_tried"]


@pytest.mark.long
@needs_rtgroup
@pytest.mark.parametrize("scenario", [one for one in demos() if one != "throttle"])
def test_what_must_happen_happens_with_rt_group_sched(scenario: Scenario) -> None:
    assert demo(scenario.value, RTGROUP)["held"]


GROUP = "/tmp/cpu/limited"
IN_GROUP = f"""\
mkdir -p /tmp/cpu
mount -t cgroup -o cpu cgroup /tmp/cpu
mkdir {GROUP}
echo 300000 >{GROUP}/cpu.rt_runtime_us
echo $$ >{GROUP}/tasks
cat {GROUP}/cpu.rt_runtime_us {GROUP}/cpu.rt_period_us >/out/limits
"""
"""Version 1: control groups of version 2 have no limit for real-time threads."""


@pytest.mark.long
@needs_rtgroup
def test_d3_a_control_group_with_a_limit_is_seen_to_limit() -> None:
    board, throttle = get_board("pc"), demos()[Scenario.THROTTLE]
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    prepared = prepare(board, RTGROUP, context=context)
    booted = boot(
        prepared,
        Job(IN_GROUP + "\n".join(script_of(throttle, board.cpus - 1)) + "\n"),
        seed=1,
        timeout=BootTimeout(DURATION_NS * len(throttle.cases)),
        stopped=lambda: False,
    )
    runtime, period = booted.text("limits").split()
    limits = {GROUP_RUNTIME: runtime, GROUP_PERIOD: period}
    result = result_of(prepared, throttle, booted)
    found = judged(
        throttle,
        replace(
            result,
            facts={**result.facts, **limits},
            facts_after={**result.facts_after, **limits},
        ),
        "virtual:pc",
    )

    assert found.held, found.checks
    assert found.notes[0].startswith("RT throttling of its control group limits")
