"""Type the blocks of a page in order, and see that they do what the page says."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pages.blocks import NEEDS, Block, Page
from pages.session import Shell

PATIENCE_S = 3600.0


class NotAsWrittenError(AssertionError):
    """A command of a page that does something else than the page says."""


@dataclass(frozen=True, slots=True)
class Typed:
    """What became of a block: the seconds it took, or why it was left out."""

    page: str
    line: int
    first_command: str
    took_s: float | None
    left_out: str = ""


def type_page(page: Page, *, slow: bool) -> Iterator[Typed]:
    """
    Type a page's blocks into one shell; `slow` also those that need time or root.

    Raises NotAsWrittenError for the first command that does not do as the page says.
    """
    with Shell() as shell:
        printed = None
        for block in page.blocks:
            place = f"{page.name}:{block.line}"
            if block.file is not None:
                (shell.here / block.file).write_text(block.text, "utf-8")
            elif block.language == "output" and printed is not None:
                _compare(place, block, printed)
            elif block.language == "sh":
                why = why_left_out(block, slow=slow, root=os.geteuid() == 0)
                printed, start_s = None, time.monotonic()
                if not why:
                    printed = _type_block(place, shell, block)
                took_s = None if why else time.monotonic() - start_s
                yield Typed(page.name, block.line, block.commands[0], took_s, why)


def trace_cmd_works() -> bool:
    """Tell whether this kernel lets trace-cmd write what it writes first."""
    enabled = Path("/proc/sys/kernel/ftrace_enabled")
    try:
        enabled.write_text(enabled.read_text().strip())
    except OSError:
        return False
    return shutil.which("trace-cmd") is not None


def why_left_out(block: Block, *, slow: bool, root: bool) -> str:
    """Return why a block is not typed; empty if it is."""
    met = {"time": slow, "root": slow and root}
    if slow and "trace-cmd" in block.needs:
        met["trace-cmd"] = trace_cmd_works()
    return "; ".join(NEEDS[one] for one in sorted(block.needs) if not met.get(one))


def _type_block(place: str, shell: Shell, block: Block) -> str:
    whole = ""
    for command in block.given:
        _type_one(place, shell, command, frozenset({0}))
    # 124 says that `timeout` had to end it, and 130 that it ended as Ctrl-C does.
    stop = f"timeout --signal INT {block.stop_s} " if block.stop_s else ""
    statuses = frozenset({124, 130}) if block.stop_s else block.statuses
    for command in block.commands:
        whole += _type_one(place, shell, stop + command, statuses)
    for command in block.then:
        _type_one(place, shell, command, frozenset({0}))
    return whole


def _type_one(place: str, shell: Shell, command: str, statuses: frozenset[int]) -> str:
    status, printed = shell.type(command, within_s=PATIENCE_S)
    if status not in statuses or "Traceback (most recent" in printed:
        told = f"status {status}, and not {sorted(statuses)}"
        raise NotAsWrittenError(f"{place}: {command}: {told}\n{printed[-3000:]}")
    return printed


def _compare(place: str, block: Block, printed: str) -> None:
    """Find the lines of a block in what was printed, one below the other."""
    shown = "\n".join(" ".join(line.split()) for line in block.text.splitlines())
    found = "\n".join(" ".join(line.split()) for line in printed.splitlines())
    if not re.search(re.escape(shown).replace(r"\.\.\.", r"[^\0]*?"), found):
        raise NotAsWrittenError(f"{place}: not what was printed:\n{printed}")
