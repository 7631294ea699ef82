"""Eight culprits of the matrix in one boot: all of it is `make culprits`."""

from dataclasses import replace
from pathlib import Path

import pytest
from rig import NEEDS_APT

from culprits.matrix import measured
from culprits.plans import NEAR, RT, Boot

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    NEEDS_APT,
]
EIGHT = {
    *("mask_and_poll", "pinned_section", "drain_fifo", "settle_phy", "copy_frame"),
    *("sample_adc", "scrub_cache", "pump/1"),
}


def test_helpers_of_several_modules_are_never_blamed(tmp_path: Path) -> None:
    rows = measured(replace(Boot("near", NEAR), kernels=(RT,)), tmp_path)

    right = {row.culprit.name for row in rows if row.right}
    assert right >= EIGHT, [row for row in rows if not row.right]
