"""The user's own QEMU, which must show that it can boot a board before it may."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtscope import process
from rtscope.board.catalogue import Board, get_arch
from rtscope.board.pluginfit import PATIENCE_S, WITHOUT_MACHINE, questions, refusal
from rtscope.board.qemu import Qemu, quantum_by_plugin
from rtscope.errors import TargetError, UsageError

OLDEST = (10, 0)
"""The plugin uses QEMU's internals (plugin/qemu.h); older ones were never tested."""


@dataclass(frozen=True, slots=True)
class Told:
    """The answers of a QEMU about itself."""

    version: str
    number: tuple[int, int]
    """Major and minor."""
    arch: str
    """What it emulates, as `uname -m` says it."""
    plugins: bool
    """Whether it takes plugins."""


def own_qemu(program: Path, board: Board, *, plugin: Path) -> Qemu:
    """
    Return the user's own QEMU for a board, once it has taken the plugin.

    Its results hold for it alone: the digest is of the program, not of the libraries
    that it loads. Raises UsageError with what is missing and what to do.
    """
    need = get_arch(board.arch).qemu
    if not program.is_file():
        reason = "a directory" if program.is_dir() else "no such file"
        raise UsageError(f"--qemu {program}: {reason}; name the program {need}")
    prefix = (str(program.absolute()),)
    try:
        told = _ask(prefix)
        digest = hashlib.sha256(program.read_bytes()).hexdigest()
    except (TargetError, OSError) as error:
        raise UsageError(f"--qemu {program}: does not start: {error}") from error
    if told is None:
        raise UsageError(
            f"--qemu {program}: no QEMU that emulates a whole machine; name the "
            f"program {need}"
        )
    reason = _unfit(told, board, need=need) or _why_no_plugin(prefix, board, plugin)
    if reason:
        raise UsageError(f"--qemu {program}: {reason}")
    return Qemu(prefix, version=told.version, digest=digest)


def _unfit(told: Told, board: Board, *, need: str) -> str:
    """Return why a QEMU cannot boot the board, and what to do; empty if it can."""
    if told.number < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return (
            f"QEMU {told.version} is too old: the plugin that bounds the CPUs' quantum "
            f"needs {oldest} or newer; name a newer one, or leave --qemu out for "
            "the pinned one"
        )
    if told.arch != board.arch:
        return (
            f"it emulates {told.arch}, and the board {board.name} is {board.arch}; "
            f"name the program {need}"
        )
    if not told.plugins:
        return (
            "it was built without plugins, and nothing else bounds the CPUs' quantum; "
            "build it with --enable-plugins, or leave --qemu out for the pinned one"
        )
    return ""


def _why_no_plugin(prefix: Sequence[str], board: Board, plugin: Path) -> str:
    """Return why a QEMU does not take the plugin, and what to do; empty if it does."""
    try:
        said = refusal(prefix, quantum_by_plugin(plugin, board))
    except TargetError as error:
        return f"does not start with the plugin that bounds the CPUs' quantum: {error}"
    if not said:
        return ""
    if missing := re.search(r"undefined symbol: (\w+)", said):
        # QEMU's plugins/meson.build: only modules make it export more than that.
        return (
            f"it does not export {missing[1]}, which the plugin that bounds the CPUs' "
            "quantum needs: without modules QEMU exports no more than its interface "
            "for plugins; build it with --enable-plugins --enable-modules, or leave "
            "--qemu out for the pinned one"
        )
    return (
        "it refuses the plugin that bounds the CPUs' quantum: "
        f"{said.splitlines()[-1]}; leave --qemu out for the pinned one"
    )


def _ask(prefix: Sequence[str]) -> Told | None:
    """Start it without a machine and ask; None if it does not answer as QEMU does."""
    words = (*prefix, *WITHOUT_MACHINE)
    done = process.run(words, timeout_s=PATIENCE_S, stdin=questions("query-target"))
    answers = list(_answers(done.stdout))
    try:
        version = next(a["QMP"] for a in answers if "QMP" in a)["version"]
        major, minor, micro = (version["qemu"][n] for n in ("major", "minor", "micro"))
        targets = (a["return"] for a in answers if "return" in a)
        arch = next(target["arch"] for target in targets if "arch" in target)
        package = str(version["package"])
    except (KeyError, TypeError, StopIteration):
        return None
    options = process.run([*prefix, "-help"], timeout_s=PATIENCE_S).stdout
    return Told(
        version=f"{major}.{minor}.{micro}" + (f" ({package})" if package else ""),
        number=(int(major), int(minor)),
        arch=str(arch),
        plugins=b"\n-plugin " in options,
    )


def _answers(stdout: bytes) -> Iterator[dict[str, Any]]:
    for line in stdout.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict):
            yield answer
