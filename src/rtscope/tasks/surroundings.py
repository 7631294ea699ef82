"""Read what the threads of a machine are to be judged against."""

import re
from collections.abc import Mapping

from rtscope.cpulist import parse_cpulist
from rtscope.errors import UsageError
from rtscope.machine.reader import Content, Reader, text_of
from rtscope.tasks.model import Surroundings

ISOLATED_AT_BOOT = "/sys/devices/system/cpu/isolated"
ISOLATED_NOW = "/sys/fs/cgroup/cpuset.cpus.isolated"
"""By cpuset partitions; since Linux 6.7, with cgroup v2."""

IRQ_ACTIONS = "/sys/kernel/irq/*/actions"
SCHED_EXT_STATE = "/sys/kernel/sched_ext/state"
SCHED_EXT_OPS = "/sys/kernel/sched_ext/root/ops"
MOUNTS = "/proc/self/mountinfo"

PATHS = (
    ISOLATED_AT_BOOT,
    ISOLATED_NOW,
    IRQ_ACTIONS,
    SCHED_EXT_STATE,
    SCHED_EXT_OPS,
    MOUNTS,
)


def read_surroundings(reader: Reader) -> Surroundings:
    """Read them; TargetError if the machine does not answer."""
    files = reader.read_many(PATHS)
    return Surroundings(
        isolated=_isolated(files),
        irq_devices=_irq_devices(files),
        sched_ext=_sched_ext(files),
        hidepid=_hidepid(text_of(files[MOUNTS]) or ""),
    )


def _isolated(files: Mapping[str, Content]) -> frozenset[int] | None:
    texts = [text_of(files[path]) for path in (ISOLATED_AT_BOOT, ISOLATED_NOW)]
    told = [text for text in texts if text is not None]
    if not told:
        return None
    try:
        return frozenset(cpu for text in told if text for cpu in parse_cpulist(text))
    except UsageError:
        return None


def _irq_devices(files: Mapping[str, Content]) -> Mapping[int, tuple[str, ...]]:
    found = {}
    for path, content in files.items():
        number = re.fullmatch(r"/sys/kernel/irq/([0-9]{1,9})/actions", path)
        if number and (text := text_of(content)):
            found[int(number[1])] = tuple(text.split(","))
    return found


def _sched_ext(files: Mapping[str, Content]) -> str | None:
    if text_of(files[SCHED_EXT_STATE]) != "enabled":
        return None
    return text_of(files[SCHED_EXT_OPS]) or "of an unknown name"


def _hidepid(mounts: str) -> str | None:
    for line in mounts.splitlines():
        words = line.split()
        if len(words) > 4 and words[4] == "/proc":
            found = re.search(r"hidepid=(\w+)", words[-1])
            if found and found[1] not in ("0", "off"):
                return found[1]
    return None
