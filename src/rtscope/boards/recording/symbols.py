"""
The symbols of a board's kernel, and where that keeps its current task.

The System.map of a packaged kernel is a stub. Its /proc/kallsyms is read in the guest
by an extra boot and cached under the digests of the kernel's image and of its part,
which holds the modules; `nokaslr` makes it valid for every boot. Modules get their
addresses in the run.

* riscv64: `tp` is the task, whose first member is thread_info: flags, then the count
  (arch/riscv/include/asm/thread_info.h, the same from Linux 5.x to 6.12).
* arm64: SP_EL0 is the task; in its thread_info the count follows the flags and, with
  CONFIG_ARM64_SW_TTBR0_PAN, the saved ttbr0.
* x86-64: variables of each CPU, reached by gs: `pcpu_hot` (6.2 to 6.14: task, then
  count), before and after that `current_task` and `__preempt_count`.

A CPU runs another task from `finish_task_switch` on. The offset of a task's name is
found by searching `init_task` for its known name.
"""

import gzip
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rtscope.boards.kernels.catalogue import IMAGE, SYMBOLS
from rtscope.boards.parts.cache import (
    Part,
    all_parts,
    build_part,
    find_part,
    imported_parts,
    locked,
    part_key,
)
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import boot, in_steps
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.host.errors import BoardError, UsageError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_S
from rtscope.machine.kernelconfig import parse_config
from rtscope.record.instructions.symbols import (
    MAX_SYMBOLS_BYTES,
    SymbolTable,
    parse_symbols,
)

# --- where a kernel keeps its current task and its preemption count, for the plugin ---

FIELDS = ("task", "preempt")
WAKE_UP = "try_to_wake_up"
"""Every wake-up of a task that sleeps goes through it."""
RENAME = "__set_task_comm"
"""By prctl, exec, /proc/PID/comm and the kernel itself; since Linux 2.6."""

_SAVED_TTBR0 = "ARM64_SW_TTBR0_PAN"
_LONG = 8


def kernel_layout(arch: str, *, config: str, symbols: SymbolTable) -> dict[str, str]:
    """Return the layout as in `plugin/options.h`, without unknown parts."""
    layout = _of_arch(arch, config=config, symbols=symbols)
    switched = symbols.address_of("finish_task_switch")
    first = symbols.values.get("init_task")
    if first is None:  # since Linux 6.15 it lies among the functions
        first = symbols.address_of("init_task")
    if "task" in layout and switched is not None and first is not None:
        layout |= {"switched": str(switched), "first-task": str(first)}
    for option, function in (("wake", WAKE_UP), ("rename", RENAME)):
        address = symbols.address_of(function)
        if address is not None:
            layout[option] = str(address)
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
    # Since Linux 6.15 addresses of the kernel, to which `gs_base` adds the difference.
    places = (value - (value >> 63 << 64) for value in (task, count))
    return {
        "task": f"gs_base@{next(places)}",
        "preempt": f"gs_base@{next(places)}:4",
    }


# --- find the symbols of a board's kernel: its System.map, or its own /proc/kallsyms --

RECIPE = 1
"""Increment it when the cached content changes."""

KALLSYMS = "kallsyms.gz"
MODULES = "modules"

# The modules are those of the disk, which every run inserts.
_SCRIPT = f"cat /proc/kallsyms >/out/kallsyms\ncat /proc/modules >/out/{MODULES}\n"
_BOOT_NS = 120 * NS_PER_S
"""Virtual time for a boot and for sending some 10 MB."""


def find_symbols(
    cache: Path,
    kernel_digest: str,
    *,
    modules: Mapping[str, str],
    parts: Mapping[str, str],
) -> SymbolTable | None:
    """
    Return the symbols of a kernel by its image's digest; None if unknown.

    `modules` are those of a run: name and address, as in /proc/modules. `parts` are
    the digests of its parts by name: no other part of a bundle may give symbols. Of
    several parts with this image and different symbols only the run's own counts.
    Raises BoardError for symbols that were changed in the cache.
    """
    imported = [p for p in imported_parts(cache) if parts.get(p.name) == p.digest]
    fitting = [
        part
        for part in (*all_parts(cache), *imported)
        if part.sha256_of(IMAGE) == kernel_digest and part.sha256_of(SYMBOLS)
    ]
    own = [part for part in fitting if parts.get(part.name) == part.digest]
    if own or len({part.sha256_of(SYMBOLS) for part in fitting}) == 1:
        content = (own or fitting)[0].content(SYMBOLS)
        return parse_symbols(content.decode("ascii", "replace"))
    inputs = _inputs(kernel_digest, parts)
    symbols_part = find_part(cache, _name(kernel_digest), part_key(inputs))
    return _of_part(symbols_part, modules) if symbols_part else None


def find_kernel_layout(prepared: Prepared, *, cache: Path) -> dict[str, str]:
    """
    Return the layout of a kernel, as options of the plugin.

    Empty for a packaged kernel whose symbols have not been read yet.
    """
    parts = {part.name: part.digest for part in prepared.parts}
    symbols = find_symbols(cache, prepared.kernel.digest, modules={}, parts=parts)
    if symbols is None:
        return {}
    config = prepared.kernel.config
    text = config.read_text("utf-8", "replace") if config else ""
    return kernel_layout(prepared.board.arch, config=text, symbols=symbols)


def require_symbols(
    prepared: Prepared,
    *,
    cache: Path,
    log: Callable[[str], None],
    progress: Progress,
) -> None:
    """
    Have the symbols of a kernel in the cache before its wake-ups are recorded.

    They say where it keeps its current task: what a recording has must not depend on
    what the cache happens to have. Logs why a kernel gives none; tasks are then left
    out of each recording of it.
    """
    parts = {part.name: part.digest for part in prepared.parts}
    if find_symbols(cache, prepared.kernel.digest, modules={}, parts=parts) is not None:
        return
    try:
        read_symbols(prepared, cache=cache, log=log, progress=progress)
    except BoardError as error:
        log(f"tasks are not recorded: {error}")


def read_symbols(
    prepared: Prepared,
    *,
    cache: Path,
    log: Callable[[str], None],
    progress: Progress = lambda _step: None,
) -> None:
    """
    Boot once and cache /proc/kallsyms and /proc/modules.

    Raises BoardError if the board does not boot, or its kernel has no symbols.
    """
    digest = prepared.kernel.digest
    parts = {part.name: part.digest for part in prepared.parts}

    def build(work: Path) -> Mapping[str, Any]:
        log(f"reading the symbols of {prepared.kernel.name}: one boot, once")
        booted = boot(
            prepared,
            Job(_SCRIPT, disk=True),
            seed=1,
            timeout=BootTimeout(duration_ns=0, boot_ns=_BOOT_NS),
            stopped=lambda: False,
            on_progress=in_steps(f"{prepared.kernel.name} boots", progress),
        )
        text = booted.files.get("kallsyms", b"")
        if not text:
            raise BoardError(
                f"{prepared.kernel.name}: has no /proc/kallsyms; build a kernel with "
                "CONFIG_KALLSYMS, or keep its System.map"
            )
        parse_symbols(text.decode("ascii", "replace"))
        (work / KALLSYMS).write_bytes(gzip.compress(text, mtime=0))
        (work / MODULES).write_bytes(booted.files.get(MODULES, b""))
        return {"kernel": prepared.kernel.name, "release": prepared.kernel.release}

    with locked(cache, log=log):
        inputs = _inputs(digest, parts)
        build_part(cache, _name(digest), inputs=inputs, build=build)


def module_addresses(listing: bytes) -> dict[str, str]:
    """Return the address of each module, from /proc/modules."""
    rows = [line.split() for line in listing.decode("ascii", "replace").splitlines()]
    return {row[0]: row[5] for row in rows if len(row) >= 6}


def parts_by_digest(cache: Path, digests: Mapping[str, str]) -> Sequence[Part]:
    """Return the parts with these digests, by name; BoardError names missing ones."""
    known = (*imported_parts(cache), *all_parts(cache))
    there = {(part.name, part.digest): part for part in known}
    wanted = digests.items()
    if gone := sorted(name for name, digest in wanted if (name, digest) not in there):
        raise BoardError(
            f"{', '.join(gone)}: not in {cache} as it was then; a bundle of that time "
            "has it: rtscope board import FILE"
        )
    return [there[item] for item in wanted]


def _of_part(part: Part, modules: Mapping[str, str]) -> SymbolTable:
    with gzip.open(part.file(KALLSYMS)) as file:
        text = file.read(MAX_SYMBOLS_BYTES).decode("ascii", "replace")
    then = module_addresses(part.file(MODULES).read_bytes())
    moved = {
        name: int(modules[name], 16) - int(address, 16)
        for name, address in then.items()
        if name in modules
    }
    return parse_symbols(text, moved=moved)


def _name(kernel_digest: str) -> str:
    return f"symbols-{kernel_digest[:12]}"


def _inputs(kernel_digest: str, parts: Mapping[str, str]) -> dict[str, object]:
    kernel = {name: d for name, d in parts.items() if name.startswith("kernel-")}
    return {"kernel": kernel_digest, "part": kernel, "recipe": RECIPE}
