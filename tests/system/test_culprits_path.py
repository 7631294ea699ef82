"""A culprit on the way of a packet, on two kernels: all are `make path-culprits`."""

from pathlib import Path

import pytest
from rig import NEEDS_APT

from culprits.strangers.boots import boots_of
from culprits.strangers.run import build_files, explained, measure
from culprits.strangers.truth import PATH, read_designs

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]
HELD = "queue-stopped"
"""Its name needs the sender's CPU, a timer of that, and the device."""


def test_a_culprit_on_the_way_of_an_event_is_named(tmp_path: Path) -> None:
    files = build_files(PATH, tmp_path)
    boot = next(one for one in boots_of(read_designs(PATH)) if one.name == HELD)
    measure(boot, files, tmp_path / boot.name)

    told = [*explained(boot, tmp_path / boot.name)]
    assert [one.verdict for one in told] == ["right", "right"], told
