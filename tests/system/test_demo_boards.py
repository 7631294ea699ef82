"""Demonstrations on a virtual board: exact, and the same every time."""

import json
from typing import Any

import pytest
from rig import NEEDS_APT, are_built, rtscope

from rtscope.demo.model import Scenario

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
@pytest.mark.parametrize("scenario", [*Scenario])
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
@pytest.mark.parametrize("scenario", [one for one in Scenario if one != "throttle"])
def test_what_must_happen_happens_on_linux_7(scenario: Scenario) -> None:
    assert demo(scenario.value, KERNEL_7, "jh7110")["held"]
