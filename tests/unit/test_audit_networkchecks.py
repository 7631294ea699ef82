"""How long network interfaces delay interrupts: the question, and its answers."""

import errno
from collections.abc import Mapping
from pathlib import Path

import pytest

from fakes.audited import FAIL, NONE, PASS, UNKNOWN, Case, judged
from fakes.trees import Files
from rtscope.machine.audit.context import Observed
from rtscope.machine.audit.model import CheckOutcome
from rtscope.machine.audit.observe import Coalescing, ask_driver, read_coalescing
from rtscope.machine.reader import Denied

NET = "/sys/class/net"
LO: Files = {f"{NET}/lo/type": "772"}
ETH: Files = {f"{NET}/eth0/type": "1", f"{NET}/eth0/device/uevent": "DRIVER=e1000e"}


def told(**values: int) -> Observed:
    """What the driver of eth0 says."""
    return Observed(
        coalescing={"eth0": {n.replace("_", "-"): v for n, v in values.items()}}
    )


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        (told(rx_usecs=0, rx_frames=1, adaptive_rx=0), PASS),
        (told(rx_usecs=0, rx_frames=0, adaptive_rx=0), PASS),
        (told(rx_usecs=57, rx_frames=1, adaptive_rx=0), PASS),
        (told(rx_usecs=3, rx_frames=0, adaptive_rx=0), FAIL),
        (told(rx_usecs=0, rx_frames=8, adaptive_rx=0), FAIL),
        (told(rx_usecs=0, rx_frames=1, adaptive_rx=1), FAIL),
        (told(), UNKNOWN),
        (Observed(coalescing={}), NONE),
        (Observed(), UNKNOWN),
    ],
)
def test_a_packet_waits_if_the_device_may_wait_for_another(
    seen: Observed, wanted: CheckOutcome
) -> None:
    assert judged("interrupt_coalescing", Case(observed=seen)).outcome is wanted


def test_a_silent_driver_beside_a_good_one_leaves_it_open() -> None:
    both = Observed(coalescing={"eth0": {"rx-usecs": 0}, "eth1": {}})
    check = judged("interrupt_coalescing", Case(observed=both))
    assert check.outcome is UNKNOWN
    assert "eth1" in check.message


@pytest.mark.parametrize(
    ("files", "also", "wanted"),
    [
        ({}, {}, UNKNOWN),
        (LO, {}, NONE),
        ({**LO, **ETH}, {}, UNKNOWN),
        (LO, {f"{NET}/eth0/device/uevent": Denied("Permission denied")}, UNKNOWN),
        ({}, {f"{NET}/*/type": Denied("Permission denied")}, UNKNOWN),
    ],
)
def test_elsewhere_only_a_list_without_hardware_proves_anything(
    files: Files, also: Mapping[str, Denied], wanted: CheckOutcome
) -> None:
    assert judged("interrupt_coalescing", Case(files, also)).outcome is wanted


def interface(folder: Path, name: str, state: str, *, device: bool = True) -> None:
    (folder / name / "device").mkdir(parents=True) if device else (
        folder / name
    ).mkdir()
    (folder / name / "operstate").write_text(f"{state}\n")


def test_only_hardware_that_is_up_is_asked(tmp_path: Path) -> None:
    interface(tmp_path, "eth0", "up")
    interface(tmp_path, "eth1", "down")
    interface(tmp_path, "lo", "unknown", device=False)
    interface(tmp_path, "veth0", "up", device=False)
    asked: list[str] = []

    def ask(name: str) -> Coalescing:
        asked.append(name)
        return {"rx-usecs": 3}

    assert read_coalescing(tmp_path, ask=ask) == ({"eth0": {"rx-usecs": 3}}, "")
    assert asked == ["eth0"]


def test_a_refusal_and_an_absent_directory_are_reasons(tmp_path: Path) -> None:
    def refuse(_name: str) -> Coalescing:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    interface(tmp_path, "eth0", "up")
    found, why = read_coalescing(tmp_path, ask=refuse)
    assert found is None
    assert why.endswith("Operation not permitted")

    found, why = read_coalescing(tmp_path / "none")
    assert found is None
    assert why.endswith("No such file or directory")


def test_the_loopback_of_this_machine_has_no_driver_to_tell() -> None:
    assert ask_driver("lo") == {}


def test_an_interface_that_is_not_there_is_an_error() -> None:
    with pytest.raises(OSError, match="No such device"):
        ask_driver("rtscope-none0")
