"""Demonstrations on a virtual board: exact, and the same every time."""

import json
from typing import Any

import pytest
from rig import NEEDS_APT, rtscope

from rtscope.demo.model import Scenario

pytestmark = [pytest.mark.system, NEEDS_APT]

PATIENCE_S = 900.0
"""The first call fetches QEMU and a kernel."""


def demo(scenario: str, kernel: str) -> dict[str, Any]:
    words = ("--target", "virtual:pc", "--kernel", kernel, "--json")
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
