"""Units as people have them: `systemctl cat` and `show`, odd files, encodings."""

import os
from pathlib import Path

import pytest

from rtscope.host.errors import UsageError
from rtscope.machine.audit.unit import Unit, merge
from rtscope.machine.audit.unitfiles import load_unit
from rtscope.machine.audit.unitmeaning import (
    SYS_NICE,
    asks_for_realtime,
    cpus_of,
    has_capability,
    policy_of,
    runs_as_root,
    soft_limit,
)
from rtscope.machine.filetree import FileReader

CAT = """\
# /usr/lib/systemd/system/motor.service
[Unit]
Description=motor
# a comment
[Service]
ExecStart=/usr/bin/motor
CPUSchedulingPolicy=other

# /etc/systemd/system/motor.service.d/override.conf
[Service]
CPUSchedulingPolicy=fifo
CPUSchedulingPriority=50
Nonsense
"""

SHOW = """\
Type=simple
ExecStart={ path=/usr/bin/motor ; argv[]=/usr/bin/motor -v ; ignore_errors=no }
LimitMEMLOCK=infinity
LimitMEMLOCKSoft=67108864
LimitRTPRIO=60
LimitRTPRIOSoft=50
LimitRTTIME=infinity
LimitRTTIMESoft=200000
CPUWeight=[not set]
CPUShares=18446744073709551615
CPUQuotaPerSecUSec=500ms
CPUAffinity=2-3
AllowedCPUs=
AmbientCapabilities=cap_sys_nice
CPUSchedulingPolicy=1
CPUSchedulingPriority=50
CPUSchedulingResetOnFork=no
Nice=0
User=motor
RestrictRealtime=no
Id=motor.service
FragmentPath=/etc/systemd/system/motor.service
ActiveState=active
"""


def of(text: str) -> Unit:
    return merge("motor.service", {"motor.service": text})


def test_what_systemctl_cat_prints_is_read_as_its_files() -> None:
    unit = of(CAT)

    assert (policy_of(unit).name, policy_of(unit).priority) == ("fifo", 50)
    assert [str(m) for m in unit.mistakes] == [
        "Nonsense: no assignment; systemd ignores the line"
    ]
    override = "/etc/systemd/system/motor.service.d/override.conf"
    assert unit.mistakes[0].line.where == f"{override}:4"


def test_what_systemctl_show_prints_is_read_as_a_unit() -> None:
    unit = of(SHOW)

    assert not unit.mistakes
    assert (policy_of(unit).name, policy_of(unit).priority) == ("fifo", 50)
    assert soft_limit(unit.last("LimitRTPRIO")) == 50
    assert soft_limit(unit.last("LimitMEMLOCK")) == 64 << 20
    assert soft_limit(unit.last("LimitRTTIME")) == 200_000
    assert cpus_of(unit, "CPUAffinity") == frozenset({2, 3})
    assert cpus_of(unit, "AllowedCPUs") is None
    assert unit.last("CPUWeight") is None
    assert unit.last("Nice") is None
    assert unit.all("CPUQuota")[0].value == "50.00%"
    assert not runs_as_root(unit)
    assert has_capability(unit, SYS_NICE)


def test_a_shown_setting_is_named_by_its_own_line() -> None:
    user = of(SHOW).last("User")

    assert user is not None
    assert SHOW.splitlines()[int(user.where.partition(":")[2]) - 1] == "User=motor"


def test_an_ordinary_unit_that_is_shown_asks_for_nothing() -> None:
    text = (
        "Id=x.service\nCPUSchedulingPolicy=0\nCPUSchedulingPriority=0\nLimitRTPRIO=0\n"
    )

    assert not asks_for_realtime(of(text))
    assert not of(text).mistakes


def test_lines_without_a_section_are_no_properties() -> None:
    assert len(of("Nice=1\nLimitRTPRIO=5\n").mistakes) == 2


@pytest.mark.parametrize(
    "content",
    [
        CAT.encode("utf-16"),
        b"\xef\xbb\xbf" + CAT.encode(),
        CAT.replace("\n", "\r\n").encode(),
    ],
)
def test_a_unit_is_read_in_any_encoding(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "motor.service"
    path.write_bytes(content)

    assert policy_of(load_unit(str(path), FileReader())).name == "fifo"


def test_a_fifo_and_a_device_are_no_units(tmp_path: Path) -> None:
    fifo = tmp_path / "motor.service"
    os.mkfifo(fifo)
    device = tmp_path / "null.service"
    device.symlink_to("/dev/zero")

    for path in (fifo, device):
        with pytest.raises(UsageError, match="not a regular file"):
            load_unit(str(path), FileReader())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[Servce]\nNice=1\nNice=2\n",
            "[Servce]: no section of such a unit; [Service] is meant, as it seems; "
            "systemd ignores it whole",
        ),
        (
            "[service]\nNice=1\n",
            "[service]: no section of such a unit; [Service] is meant, as it seems; "
            "systemd ignores it whole",
        ),
        (
            "[Socket]\nNice=1\n",
            "[Socket]: no section of such a unit; systemd ignores it whole",
        ),
    ],
)
def test_a_section_of_another_name_is_told_once(text: str, message: str) -> None:
    assert [str(m) for m in of(text).mistakes] == [message]


def test_what_is_for_others_or_newer_than_rtscope_is_no_mistake() -> None:
    unit = of("[X-Vendor]\nA=b\n[Service]\nX-Own=1\nBrandNewSetting=1\n")

    assert not unit.mistakes
    assert [line.key for line in unit.unknown_keys] == ["BrandNewSetting"]
