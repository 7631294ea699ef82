"""One boot of a virtual board: QEMU from start to end, and why it failed."""

import hashlib
import json
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtscope import process
from rtscope.board.initrd import Job
from rtscope.board.prepare import Prepared, write_initrd
from rtscope.board.qemu import Boot, command_line, turns_by_plugin
from rtscope.board.results import read_results
from rtscope.errors import BoardError

PLUGIN = Path(__file__).parent.parent / "plugins" / "rtscope-plugin.so"

BOOT_PATIENCE_S = 120.0
PATIENCE_PER_VIRTUAL_S = 60.0
"""A busy board of four CPUs takes some 5 s for one virtual second on a free host."""

LOOK_S = 0.1
TAIL_LINES = 12

# What the kernel says last, and what it means.
_REASONS = (
    (r"Kernel panic - not syncing: (.{1,200})", "the kernel panicked: {}"),
    (r"No working init found", "the kernel found no program to start"),
    (r"Out of memory: (.{1,200})", "the board ran out of memory: {}"),
)


@dataclass(frozen=True, slots=True)
class Booted:
    """What one boot gave."""

    files: Mapping[str, bytes]
    """What the board has sent."""
    counts: Mapping[str, Any]
    """The plugin's summary: instructions, per CPU, turns."""
    initrd_digest: str
    plugin_digest: str
    host_seconds: float


def boot(
    prepared: Prepared,
    job: Job,
    *,
    seed: int,
    virtual_s: float,
    stopped: Callable[[], bool],
) -> Booted:
    """
    Boot once and return what the board sent.

    Raises BoardError with the reason and the end of the console if it hangs, panics
    or sends nothing; `stopped` is asked all the time, and ends it.
    """
    with tempfile.TemporaryDirectory(prefix="rtscope-board-") as name:
        folder = Path(name)
        digest = write_initrd(folder / "initrd", prepared, job)
        summary = folder / "summary.json"
        argv = command_line(
            prepared.qemu, prepared.board, _boot(prepared, folder, seed, summary)
        )
        began = time.monotonic()
        patience_s = BOOT_PATIENCE_S + PATIENCE_PER_VIRTUAL_S * virtual_s
        error = _run(argv, folder, patience_s=patience_s, stopped=stopped)
        try:
            files = read_results(folder / "results")
        except (BoardError, OSError) as missing:
            raise BoardError(
                f"{prepared.board.name}: {error or _why(folder) or missing}"
                + _console_tail(folder)
            ) from missing
        return Booted(
            files=files,
            counts=json.loads(summary.read_text()) if summary.exists() else {},
            initrd_digest=digest,
            plugin_digest=hashlib.sha256(PLUGIN.read_bytes()).hexdigest(),
            host_seconds=round(time.monotonic() - began, 3),
        )


def _boot(prepared: Prepared, folder: Path, seed: int, summary: Path) -> Boot:
    if not PLUGIN.is_file():
        raise BoardError("the plugin for QEMU is not built: run make plugin")
    option, value = turns_by_plugin(PLUGIN, prepared.board)
    return Boot(
        kernel=prepared.kernel.image,
        initrd=folder / "initrd",
        console=folder / "console",
        results=folder / "results",
        seed=seed,
        turns=(option, f"{value},summary={summary}"),
    )


def _run(
    argv: tuple[str, ...],
    folder: Path,
    *,
    patience_s: float,
    stopped: Callable[[], bool],
) -> str:
    """Run QEMU to its end; return why it had to be ended, or what it complained of."""
    with (folder / "stderr").open("w+b") as stderr:
        qemu = process.start(argv, stderr=stderr)
        until = time.monotonic() + patience_s
        try:
            while qemu.poll() is None:
                if stopped():
                    return "interrupted"
                if time.monotonic() > until:
                    return (
                        f"the board did not end within {patience_s:.0f} s of host time"
                    )
                time.sleep(LOOK_S)
        finally:
            qemu.kill()
            qemu.wait()
            for pipe in (qemu.stdin, qemu.stdout):
                if pipe is not None:
                    pipe.close()
        if qemu.returncode == 0:
            return ""
        stderr.seek(0)
        words = stderr.read(4000).decode("utf-8", "replace").strip().splitlines()
        return f"QEMU failed: {words[-1] if words else qemu.returncode}"


def _console(folder: Path) -> list[str]:
    path = folder / "console"
    text = path.read_text("utf-8", "replace") if path.exists() else ""
    return [line for line in text.splitlines() if line.strip()]


def _why(folder: Path) -> str:
    text = "\n".join(_console(folder))
    for pattern, words in _REASONS:
        if found := re.search(pattern, text):
            return words.format(*found.groups())
    return ""


def _console_tail(folder: Path) -> str:
    tail = _console(folder)[-TAIL_LINES:]
    if not tail:
        return "; its console said nothing"
    return "; the end of its console:\n  " + "\n  ".join(line[:200] for line in tail)
