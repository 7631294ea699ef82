"""Equal inputs give the result digests that the net holds: see tests/net/README.md."""

from pathlib import Path

import pytest
from rig import NEEDS_APT, are_built

from net.boards import differences, measure, stored
from rtscope.boards.kernels.recipe import recipe_names

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]


@pytest.mark.parametrize("board", stored())
def test_a_board_gives_the_digests_that_are_held(board: str, tmp_path: Path) -> None:
    kernel = board.split()[1]
    if kernel in recipe_names() and not are_built(kernel):
        pytest.skip(f"{kernel} is not built here")
    measured = measure(board, tmp_path)
    held = stored()[board]

    assert measured.keys() == held.keys()
    assert list(differences(held, measured)) == []
    if all(measured[load].inputs != one.inputs for load, one in held.items()):
        pytest.skip("it has other inputs: PYTHONPATH=tests python -m net.boards")
