"""How many boards run at once."""

import pytest

from fakes.trees import reader_of
from rtscope.board.catalogue import get_board
from rtscope.errors import BoardError
from rtscope.virtual.hostroom import MIB, AtOnce, HostRoom, at_once, available_bytes

BOARD = get_board("pc")
EACH = 1536 * MIB
