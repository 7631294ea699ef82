"""
Where a board's kernel keeps what tells what the threads of a program do.

Addresses of functions come from its symbols, offsets in its structures from its BTF,
which an extra boot reads once from /sys/kernel/btf/vmlinux. Only offsets are kept. Of a
kernel that was built without BTF, they come from its first task: see `firsttask`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from rtscope.boards.kernels.sourcekernel import DEBUG
from rtscope.boards.parts.cache import build_part, find_part, locked, part_key
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import ProgramView
from rtscope.boards.recording.btf import Btf
from rtscope.boards.recording.firsttask import offsets_of_first_task, read_first_task
from rtscope.boards.recording.symbols import (
    find_symbols,
    kernel_layout,
    require_symbols,
)
from rtscope.boards.runs.boot import boot, in_steps
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.host.errors import BoardError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_S
from rtscope.machine.kernelconfig import parse_config
from rtscope.record.instructions.symbols import SymbolTable

RECIPE = 2
"""Increment it when the kept offsets change."""

OFFSETS = "offsets.json"
_SCRIPT = "cat /sys/kernel/btf/vmlinux >/out/btf\ntrue\n"
_BOOT_NS = 120 * NS_PER_S

_HOOKS = {
    "wake": ("try_to_wake_up",),
    "activate": ("ttwu_do_activate",),
    "switched": ("finish_task_switch",),
    "sleeper": ("hrtimer_wakeup",),
    "timerfd": ("timerfd_tmrproc",),
    "posix_timer": ("posix_timer_fn",),
    "itimer": ("it_real_fn",),
    "new": ("wake_up_new_task",),
    "rename": ("__set_task_comm",),
    "exit": ("do_exit",),
    "call": ("do_syscall_64", "do_trap_ecall_u", "invoke_syscall", "el0_svc_common"),
    "fault": ("handle_mm_fault",),
    "mutex": ("__mutex_lock",),
    "read": ("rwsem_down_read_slowpath",),
    "write": ("rwsem_down_write_slowpath",),
    "lending": ("task_blocks_on_rt_mutex",),
}
"""In the order of `enum options_hook` of plugin/options.h; the first that there is."""

_PLACES = ("hrtimer_interrupt", "irq_exit_rcu", "__schedule")
"""In the order of `enum options_place`."""

_NEEDED = ("wake", "switched", "new", "rename", "exit", "call")

_Path = tuple[str, ...]

_FIELDS: Mapping[str, _Path] = {
    "pid": ("task_struct", "pid"),
    "tgid": ("task_struct", "tgid"),
    "comm": ("task_struct", "comm"),
    "prio": ("task_struct", "prio"),
    "state": ("task_struct", "__state"),
    "on_rq": ("task_struct", "on_rq"),
    "delayed": ("task_struct", "se", "sched_delayed"),
    "blocked": ("task_struct", "pi_blocked_on"),
    "lock": ("rt_mutex_waiter", "lock"),
    "owner": ("rt_mutex_base", "owner"),
    "mutex": ("mutex", "owner"),
    "rwsem": ("rw_semaphore", "owner"),
    "area": ("vm_area_struct", "vm_start"),
    "area_end": ("vm_area_struct", "vm_end"),
}
"""In the order of `enum options_field`."""
_NOT_IN_ALL = frozenset({"delayed", "mutex", "rwsem"})
"""Since 6.12; and with PREEMPT_RT both kinds of lock are others."""

_TIMES: Mapping[str, _Path] = {
    "last": ("tk_read_base", "cycle_last"),
    "mult": ("tk_read_base", "mult"),
    "shift": ("tk_read_base", "shift"),
    "xtime": ("tk_read_base", "xtime_nsec"),
    "ns": ("tk_read_base", "base"),
    "expires": ("hrtimer", "node", "expires"),
    "function": ("hrtimer", "function"),
    "base": ("hrtimer", "base"),
    "offset": ("hrtimer_clock_base", "offset"),
    "task": ("hrtimer_sleeper", "task"),
}
"""In the order of `enum options_time`, behind the first two and before the last."""
_MONOTONIC = ("timekeeper", "tkr_mono")
_SEQUENCE = "seqcount_raw_spinlock_t"
"""What stands in tk_core before its timekeeper."""
_CORES = ("tk_core", "timekeeper_data")
"""Since Linux 6.17 it is the first of the timekeepers of all clocks."""

COUNTER_HZ = {
    "x86_64": 1_000_000_000,
    "aarch64": 62_500_000,
    "riscv64": 10_000_000,
}
"""Of the counter that each kernel reads, in virtual time: QEMU 10.0 with -icount."""


def program_view(
    prepared: Prepared,
    *,
    cache: Path,
    log: Callable[[str], None],
    progress: Progress = lambda _step: None,
) -> ProgramView:
    """
    Return where this kernel keeps what is recorded of a program.

    Boots the board up to twice, once for each kernel. Raises BoardError if the kernel
    lacks symbols or BTF.
    """
    require_symbols(prepared, cache=cache, log=log, progress=progress)
    parts = {part.name: part.digest for part in prepared.parts}
    symbols = find_symbols(cache, prepared.kernel.digest, modules={}, parts=parts)
    name = prepared.kernel.name
    if symbols is None:
        raise BoardError(f"{name}: its symbols are not known: no program is watched")
    config = prepared.kernel.config
    text = config.read_text("utf-8", "replace") if config else ""
    layout = kernel_layout(prepared.board.arch, config=text, symbols=symbols)
    if "task" not in layout or "preempt" not in layout:
        raise BoardError(f"{name}: where it keeps its current task is not known")
    offsets = _built_in(prepared, symbols) or _offsets(
        prepared, cache=cache, log=log, progress=progress
    )
    hooks = _hooks(symbols, name)
    if offsets["blocked"]:  # each task says for what it waits
        hooks["lending"] = 0
    return ProgramView(
        task=layout["task"],
        preempt=layout["preempt"],
        hooks=tuple(hooks.values()),
        fields=tuple(offsets[one] for one in _FIELDS),
        time=_times(symbols, offsets, prepared.board.arch),
    )


def parts_view(
    prepared: Prepared,
    *,
    cache: Path,
    log: Callable[[str], None],
    progress: Progress = lambda _step: None,
) -> ProgramView:
    """
    Return where this kernel passes between the parts of a wake-up of the agent.

    Boots the board as `program_view` does. Raises BoardError as that does, and if a
    place is not known.
    """
    view = program_view(prepared, cache=cache, log=log, progress=progress)
    parts = {part.name: part.digest for part in prepared.parts}
    symbols = find_symbols(cache, prepared.kernel.digest, modules={}, parts=parts)
    places = {one: symbols and symbols.address_of(one) for one in _PLACES}
    if missing := [name for name, place in places.items() if not place]:
        raise BoardError(
            f"{prepared.kernel.name}: no parts of wake-ups: its symbols lack "
            f"{', '.join(missing)}; leave --parts out"
        )
    return replace(view, parts=tuple(place or 0 for place in places.values()))


def _hooks(symbols: SymbolTable, kernel: str) -> dict[str, int]:
    found = {}
    for hook, names in _HOOKS.items():
        places = (symbols.address_of(name) for name in names)
        found[hook] = next((place for place in places if place is not None), 0)
    if missing := [_HOOKS[hook][0] for hook in _NEEDED if not found[hook]]:
        raise BoardError(f"{kernel}: its symbols lack {', '.join(missing)}")
    return found


def _times(
    symbols: SymbolTable, offsets: Mapping[str, int], arch: str
) -> tuple[int, ...]:
    found = (symbols.values[one] for one in _CORES if one in symbols.values)
    core = next(found, 0)
    keeper = core and core + offsets["keeper"]
    return (core, keeper, *(offsets[one] for one in _TIMES), COUNTER_HZ[arch])


def _built_in(prepared: Prepared, symbols: SymbolTable) -> Mapping[str, int] | None:
    """Return what the first task of a kernel of ours tells; None: another has BTF."""
    kernel = prepared.kernel
    files = [part for part in prepared.parts if part.sha256_of(DEBUG)]
    if not files or kernel.config is None:
        return None
    config = parse_config(kernel.config.read_bytes(), source=str(kernel.config))
    task, stack = (symbols.values.get(one, 0) for one in ("init_task", "init_stack"))
    if config.is_on("DEBUG_INFO_BTF") or not task:
        return None
    with files[0].file(DEBUG).open("rb") as file:
        return offsets_of_first_task(
            read_first_task(ELFFile(file), task),
            address=task,
            stack=stack,
            release=kernel.release or "",
            config=config,
        )


def _offsets(
    prepared: Prepared,
    *,
    cache: Path,
    log: Callable[[str], None],
    progress: Progress,
) -> Mapping[str, int]:
    digest, kernel = prepared.kernel.digest, prepared.kernel
    name, inputs = f"places-{digest[:12]}", {"kernel": digest, "recipe": RECIPE}
    if part := find_part(cache, name, part_key(inputs)):
        kept: dict[str, int] = json.loads(part.content(OFFSETS))
        return kept

    def build(work: Path) -> Mapping[str, Any]:
        log(f"reading the types of {kernel.name}: one boot, once")
        booted = boot(
            prepared,
            Job(_SCRIPT),
            seed=1,
            timeout=BootTimeout(duration_ns=0, boot_ns=_BOOT_NS),
            stopped=lambda: False,
            on_progress=in_steps(f"{kernel.name} boots", progress),
        )
        content = booted.files.get("btf", b"")
        if not content:
            raise BoardError(
                f"{kernel.name}: has no /sys/kernel/btf/vmlinux; build a kernel with "
                "CONFIG_DEBUG_INFO_BTF"
            )
        (work / OFFSETS).write_text(json.dumps(offsets_in(Btf(content))))
        return {"kernel": kernel.name, "release": kernel.release}

    with locked(cache, log=log):
        part = build_part(cache, name, inputs=inputs, build=build)
    made: dict[str, int] = json.loads(part.content(OFFSETS))
    return made


def offsets_in(btf: Btf) -> dict[str, int]:
    """Return the offsets that the plugin needs; BoardError names a missing one."""
    pointer = 8
    keeper = -(-btf.size_of(_SEQUENCE) // pointer) * pointer
    offsets = {"keeper": keeper + btf.offset_of(*_MONOTONIC)}
    for name, path in (*_FIELDS.items(), *_TIMES.items()):
        try:
            offsets[name] = btf.offset_of(*path)
        except BoardError:
            if name not in _NOT_IN_ALL:
                raise
            offsets[name] = 0
    return offsets
