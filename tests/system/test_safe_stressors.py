"""The stressors that a machine takes, held against the classes of its stress-ng."""

import shutil

import pytest

from rtscope.host.process import run
from rtscope.measure.loads import safe_stressors

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        shutil.which("stress-ng") is None, reason="needs stress-ng to ask for classes"
    ),
]

COUNTER_IN_MEMORY = {"eventfd"}
"""Of these classes, and yet no file."""


@pytest.mark.parametrize(
    "kind", ["device", "filesystem", "gpu", "io", "network", "security", "vm"]
)
def test_no_member_of_a_class_that_pokes_at_the_machine_is_safe(kind: str) -> None:
    done = run(("stress-ng", "--class", f"{kind}?"), timeout_s=60)
    said = f"{done.stdout.decode()}\n{done.stderr}"
    head, _, listed = said.partition(f"class '{kind}' stressors:")
    if not listed:
        assert "nknown class" in head  # of a later stress-ng
        pytest.skip(f"this stress-ng has no class {kind}")

    assert not safe_stressors() & {*listed.split()} - COUNTER_IN_MEMORY
