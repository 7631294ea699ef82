"""Numbers of system calls on x86-64, by name, from the header of this machine."""

import re
import subprocess


def _numbers() -> dict[str, int]:
    shown = subprocess.run(
        ["cc", "-dM", "-E", "-include", "asm/unistd_64.h", "-xc", "/dev/null"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = re.findall(r"^#define __NR_(\w+) (\d+)$", shown, re.MULTILINE)
    return {name: int(number) for name, number in found}


NUMBERS = _numbers()
