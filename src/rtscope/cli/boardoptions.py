"""Options that a virtual board has and a real machine has not."""

from typing import Annotated

import typer

from rtscope.host.errors import UsageError
from rtscope.measure.campaign.values import MAX_SEED
from rtscope.present.words import enumeration

BoardKernel = Annotated[
    str | None,
    typer.Option(
        help="Kernel of a virtual board, by name or path of an image (default: the "
        "first kernel of the board), e.g. debian-6.12-rt."
    ),
]


BoardSeed = Annotated[
    int | None,
    typer.Option(
        help="Seed of a virtual board's random numbers (default: 1), e.g. 7.",
        min=0,
        max=MAX_SEED,
    ),
]


def refuse_board_options(board: str | None, **options: object) -> None:
    """
    Raise UsageError if one of these options is given and the machine is no board.

    All that a verb has are given by their names, in the order of its help.
    """
    if board is None and any(value is not None for value in options.values()):
        names = [f"--{name}" for name in options]
        raise UsageError(
            f"{enumeration(names)} {'is' if len(names) == 1 else 'are'} for virtual "
            "boards only: add --target virtual:BOARD"
        )
