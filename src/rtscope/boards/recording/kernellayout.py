"""
Where a kernel keeps its current task and its preemption count, for the plugin. Pure.

* riscv64: `tp` is the task, whose first member is thread_info: flags, then the count
  (arch/riscv/include/asm/thread_info.h, the same from Linux 5.x to 6.12).
* arm64: SP_EL0 is the task; in its thread_info the count follows the flags and, with
  CONFIG_ARM64_SW_TTBR0_PAN, the saved ttbr0.
* x86-64: variables of each CPU, reached by gs: `pcpu_hot` (6.2 to 6.14: task, then
  count), before and after that `current_task` and `__preempt_count`.

A CPU runs another task from `finish_task_switch` on. The offset of a task's name is
found by searching `init_task` for its known name.
"""

import re
from collections.abc import Mapping

from rtscope.host.errors import UsageError
from rtscope.machine.kernelconfig import parse_config
from rtscope.record.instructions.symbols import SymbolTable

FIELDS = ("task", "preempt")

_SAVED_TTBR0 = "ARM64_SW_TTBR0_PAN"
_LONG = 8


def kernel_layout(arch: str, *, config: str, symbols: SymbolTable) -> dict[str, str]:
    """Return the layout as in `plugin/options.h`, without unknown parts."""
    layout = _of_arch(arch, config=config, symbols=symbols)
    switched = symbols.address_of("finish_task_switch")
    first = symbols.values.get("init_task")
    if "task" in layout and switched is not None and first is not None:
        layout |= {"switched": str(switched), "first-task": str(first)}
    return layout


def _of_arch(arch: str, *, config: str, symbols: SymbolTable) -> dict[str, str]:
    match arch:
        case "riscv64":
            return {"task": "tp", "preempt": f"tp@{_LONG}:4"}
        case "aarch64" if config:
            resolved = parse_config(config.encode(), source="kernel configuration")
            count = 2 * _LONG if resolved.is_on(_SAVED_TTBR0) else _LONG
            return {"task": "SP_EL0", "preempt": f"SP_EL0@{count}:4"}
        case "x86_64":
            return _x86_64(symbols.values)
        case _:
            return {}


_SYMBOLS = {
    "schedule": "__schedule",
    "idle": "do_idle",
    "sleep": "do_nanosleep",
    "exit": "do_exit",
}

# TIF_NEED_RESCHED in arch/*/include/asm/thread_info.h, read of 6.1 (with and without
# its patches for PREEMPT_RT) and of 6.12; x86 tells it in the preemption count too.
_DUE: Mapping[str, int] = {"riscv64": 3, "aarch64": 1}
_DUE_KNOWN = ((6, 1), (6, 12))


def section_options(arch: str, *, release: str, symbols: SymbolTable) -> dict[str, int]:
    """
    Return the options to record the longest sections, as in `plugin/options.h`.

    Raises UsageError if the kernel lacks these symbols, or if its bit for a due task
    switch is unknown.
    """
    addresses = {option: symbols.address_of(name) for option, name in _SYMBOLS.items()}
    if None in addresses.values():
        raise UsageError(
            f"no sections of kernel {release}: its symbols lack one of "
            f"{', '.join(_SYMBOLS.values())}"
        )
    due = {} if arch == "x86_64" else {"due": _due(arch, release)}
    return {k: v for k, v in addresses.items() if v is not None} | due


def _due(arch: str, release: str) -> int:
    number = re.match(r"(\d+)\.(\d+)", release)
    series = (int(number[1]), int(number[2])) if number else (0, 0)
    if arch not in _DUE or not _DUE_KNOWN[0] <= series <= _DUE_KNOWN[1]:
        raise UsageError(
            f"no sections of kernel {release or 'without a release'} on {arch}: by "
            "which flag it tells that a switch is due is known of 6.1 to 6.12"
        )
    return _DUE[arch]


def _x86_64(values: Mapping[str, int]) -> dict[str, str]:
    hot = values.get("pcpu_hot")
    if hot is not None:
        return {"task": f"gs_base@{hot}", "preempt": f"gs_base@{hot + _LONG}:4"}
    task, count = values.get("current_task"), values.get("__preempt_count")
    if task is None or count is None:
        return {}
    return {"task": f"gs_base@{task}", "preempt": f"gs_base@{count}:4"}
