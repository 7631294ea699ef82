"""What events need on a virtual board, and what is refused before it boots."""

import pytest

from rtscope.boards.catalogue import get_board, read_table
from rtscope.boards.events import needs_of, with_devices_for
from rtscope.boards.kernels.catalogue import get_kernel_row
from rtscope.boards.runs.assemble import board_digest
from rtscope.host.errors import UsageError
from rtscope.measure.events.event import event_names, parse_event

TABLE = read_table("events")
DEVICES, BESIDE = TABLE.pop("devices"), TABLE.pop("beside")
OF_HOST = ("socket", "pty", "pipe", "udp", "tap", "user", "tcp", "vc", "stdio")
"""Back-ends that bring the host's time onto a board."""


@pytest.mark.parametrize("event", TABLE)
def test_each_row_is_of_an_event_that_there_is(event: str) -> None:
    assert parse_event(event) == event
    assert event.partition(":")[0] in event_names()
    assert needs_of(f"{event}:priority=7") == needs_of(event)
    device = needs_of(event).device
    assert not device or device in DEVICES


def test_what_a_load_has_beside_an_event_is_on_the_same_boards() -> None:
    for device, row in BESIDE.items():
        assert parse_event(row["event"]) == row["event"]
        assert DEVICES[row["device"]]["boards"] == DEVICES[device]["boards"]


@pytest.mark.parametrize(
    ("kernel", "arch"),
    [
        ("debian-6.12-rt", "x86_64"),
        ("debian-6.12", "x86_64"),
        ("debian-6.17", "x86_64"),
        ("debian-6.1", "x86_64"),
        ("debian-6.12-rt", "aarch64"),
        ("debian-6.12", "aarch64"),
    ],
)
def test_kernels_have_the_modules_in_the_order_of_insertion(
    kernel: str, arch: str
) -> None:
    has = get_kernel_row(kernel, arch).event_modules

    for event in TABLE:
        wanted = needs_of(event).modules
        assert sorted(wanted, key=has.index) == list(wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_no_device_of_an_event_goes_through_the_host(device: str) -> None:
    words = ",".join(DEVICES[device]["options"]).replace("=", ",").split(",")

    assert not set(OF_HOST) & set(words)
    assert not any("virtio" in word for word in words)


def test_only_a_run_whose_event_needs_them_has_devices() -> None:
    board = get_board("pc")
    with_can = with_devices_for(board, "can:from=can0:to=can1:priority=5")

    assert with_devices_for(board, "timer") == board
    assert with_devices_for(board, "udp") == board
    assert "kvaser_pci,canbus=can" in with_can.event_devices
    assert board_digest(with_can) != board_digest(board)


@pytest.mark.parametrize(
    ("board", "event", "said"),
    [
        ("jh7110", "uio", "the virtual board jh7110 has not .*that has them: pc, rpi3"),
        ("jh7110", "can:from=can0:to=can1", "has not two CAN controllers"),
        ("pc", "can:from=can1:to=can0", "write can, can:from=can0:to=can1"),
        ("pc", "serial", "write serial:from=ttyS1:to=ttyS1, serial:"),
        ("pc", "raw:from=eth0:to=eth2", "write raw, raw:from=eth0:to=eth1"),
    ],
)
def test_what_a_board_has_not_is_refused_with_what_to_write(
    board: str, event: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        with_devices_for(get_board(board), event)
