"""A thousand units, judged by rtscope and by `systemd-analyze verify`."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rtscope.machine.audit.unit import merge

ANALYZE = shutil.which("systemd-analyze")
VERSION = "252"
"""Other versions know other settings and words."""
UNITS = 1_000
BATCH = 100

NUMBERS = (
    *(
        "0",
        "1",
        "2",
        "5",
        "9",
        "19",
        "20",
        "50",
        "99",
        "100",
        "120",
        "-1",
        "-20",
        "-21",
    ),
    *("+5", "010", "09", "0x10", "0b11", "0o7", "77", "2147483647", "2147483648"),
    *("1.5", "x", "", "5 ", "5 # no", "%i", "%%", '"5"', "50%", "5K"),
)
WORDS = ("fifo", "rr", "other", "batch", "idle", "FIFO", "deadline", "Rr", *NUMBERS)
BOOLEANS = (
    *("yes", "YES", "no", "On", "oFF", "t", "F", "y", "N", "1", "0", "true", "false"),
    *("enable", "2", "", "ja", "yes no"),
)
CPUS = (
    *("0", "0-3", "0 1", "0,1", "0, 1", "1,,2", "3-1", "0 3-1", "numa", "numa 0", ""),
    *("0-", "-1", "all", "8191", "8192", "0x3", "010", "09", "0:1", "1-2-3", '"0 1"'),
    *("0xff", "0-8191", "1 2,3-4", "+1"),
)
SIZES = (
    *(
        "64K",
        "64k",
        "1G",
        "1.5G",
        "1T",
        "1P",
        "1E",
        "1Z",
        "8B",
        "1KB",
        "1 G",
        "1G 512M",
    ),
    *("512M 1G", "infinity", "Infinity", "unlimited", "64M:128M", "128M:64M", "64M:"),
    *(":64M", "infinity:64M", "64M:infinity", "0", "100", "-1", "", "50%", "0x100"),
)
PRIORITIES = (
    *("infinity", "10:20", "20:10", "10:infinity", "infinity:10", "99", "0x10", "1K"),
    *("", "-1", "10:", ":10", "010", "unlimited", "10:20:30", "100"),
)
TIMES = (
    *("200ms", "200000", "1s", "1s:2s", "2s:1s", "infinity", "1min 30s", "1.5s", "x"),
    *("", "-1", "1 s", "1h", "2days", "1d 2h", "10us", "5µs", "1S", "1sec", "1ms1us"),
)
PERCENT = (
    *("50%", "50", "0%", "200%", "12.5%", "12.55%", "12.555%", "-5%", "50 %", "%", ""),
    *("100.0%", "5‰", "0.0%"),
)
CAPABILITIES = ("CAP_SYS_NICE", "cap_ipc_lock", "~CAP_KILL", "", "~", "CAP_KILL 23")
USERS = ("root", "0", "robot", "1000", "65535", "4294967295", "a:b", "", "a/b", "_x-y")
VALUES = {
    "CPUSchedulingPolicy": WORDS,
    "CPUSchedulingPriority": NUMBERS,
    "CPUSchedulingResetOnFork": BOOLEANS,
    "RestrictRealtime": BOOLEANS,
    "CPUAffinity": CPUS,
    "AllowedCPUs": CPUS,
    "Nice": NUMBERS,
    "IOSchedulingClass": ("realtime", "rt", "best-effort", "none", *NUMBERS),
    "IOSchedulingPriority": NUMBERS,
    "LimitRTPRIO": PRIORITIES,
    "LimitMEMLOCK": SIZES,
    "LimitRTTIME": tuple(one for one in TIMES if ":" not in one or one == "1s:2s"),
    "LimitNICE": ("40", "41", "+5", "-10", "-21", "0", "", "x", "-20:5", "infinity"),
    "CPUWeight": ("idle", "1", "10000", "10001", "0", "", "x", "100"),
    "CPUQuota": PERCENT,
    "CPUQuotaPeriodSec": tuple(one for one in TIMES if ":" not in one),
    "NUMAPolicy": ("bind", "default", "preferred", "1", "x", "", "local"),
    "NUMAMask": ("0", "all", "0-1", "x", ""),
    "TimerSlackNSec": ("1", "50us", "x", "1ms", "100ns", ""),
    "AmbientCapabilities": CAPABILITIES,
    "CapabilityBoundingSet": CAPABILITIES,
    "User": USERS,
    "DynamicUser": BOOLEANS,
    "Slice": ("rt.slice", "rt", "-.slice", "a-b.slice", ""),
    "LimitRTPRIo": ("5",),
    "CPUSchedulingPolcy": ("fifo",),
    "Description": ("odd",),
    "X-Own": ("1",),
}
ODD_LINES = ("words", "=5", "# a comment", "; another", "", "[Unit]\nNice=3\n[Service]")


def made(random_: random.Random) -> str:
    """Return the text of a unit."""
    lines = ["[Service]", "ExecStart=/bin/true"]
    for _ in range(random_.randint(1, 8)):
        if random_.random() < 0.1:
            lines += random_.choice(ODD_LINES).split("\n")
            continue
        key = random_.choice(list(VALUES))
        value = random_.choice(VALUES[key])
        if random_.random() < 0.05:
            lines += [f"{key}=\\", "# inside", f"  {value}"]
        else:
            lines.append(random_.choice((f"{key}={value}", f" {key} = {value}")))
    return "\n".join(lines) + "\n"


def of_systemd(folder: Path, texts: dict[str, str]) -> tuple[dict[str, set[int]], str]:
    """Return the lines that systemd complains of, by unit, and all it said."""
    for name, text in texts.items():
        (folder / name).write_text(text)
    paths = [str(folder / name) for name in texts]
    assert ANALYZE is not None
    said = subprocess.run(
        [ANALYZE, "verify", "--man=no", *paths],
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    lines: dict[str, set[int]] = {name: set() for name in texts}
    for name, number in re.findall(r"(u\d+\.service):(\d+): ", said):
        lines[name].add(int(number))
    return lines, said


def _is_version(wanted: str) -> bool:
    if ANALYZE is None:
        return False
    said = subprocess.run([ANALYZE, "--version"], capture_output=True, text=True)
    return said.stdout.startswith(f"systemd {wanted} ")


@pytest.mark.system
@pytest.mark.skipif(not _is_version(VERSION), reason=f"no systemd {VERSION} here")
def test_rtscope_names_the_lines_that_systemd_names(tmp_path: Path) -> None:
    random_ = random.Random(38)
    units = {f"u{n}.service": made(random_) for n in range(UNITS)}
    names = list(units)
    for start in range(0, UNITS, BATCH):
        texts = {name: units[name] for name in names[start : start + BATCH]}
        lines, said = of_systemd(tmp_path, texts)
        for name, text in texts.items():
            mistakes = merge(name, {name: text}).mistakes
            # It counts a continued line by its end, and reads no further when it fails.
            rows = text.split("\n")
            lines_of = {
                n + 2 if rows[n - 1].endswith("\\") else n: m
                for m in mistakes
                if (n := _line(m.line.where)) and "no capability" not in m.why
            }
            last = min(
                (n for n, m in lines_of.items() if "load" in m.effect),
                default=len(rows),
            )
            assert {n for n in lines_of if n <= last} == lines[name], (
                text,
                mistakes,
                said,
            )


def _line(where: str) -> int:
    return int(where.rpartition(":")[2])
