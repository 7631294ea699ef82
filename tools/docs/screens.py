# SPDX-License-Identifier: MIT
"""
screens.py [NAME...] - pictures of what a terminal of 80 x 24 shows, into docs/images.

It types real commands into a real terminal, tmux, and draws that terminal's characters
and colours. The numbers are those of the machine it runs on, and of virtual boards:
minutes.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
COLUMNS, ROWS = 80, 24
PATIENCE_S = 3600.0

# The terminal alone: no window around it, and no font from the network.
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg"
  viewBox="-12 -8 {terminal_width} {terminal_height}">
<style>
.{unique_id}-matrix {{
  font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
{styles}
</style>
<defs>{lines}</defs>
<rect x="-12" y="-8" width="100%" height="100%" rx="6" fill="#1c1f26"/>
<g>
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


@dataclass(frozen=True, slots=True)
class Screen:
    """A picture: the command that is typed, and what of its output is drawn."""

    name: str
    command: str
    first_rows: bool = False
    """The first rows of a longer output, not the last."""
    before: str = ""
    """Typed before it, and not drawn."""


_KERNELS = (
    "[ -d kernels ] || rtscope run -t virtual:pc --kernel debian-6.12-rt,debian-6.12 "
    "-l memory -d 1s --interval 1ms --seeds 4 -o kernels"
)
_PAIR = f"[ -d pair ] || rtscope run {ROOT}/examples/two-kernels.toml -d 2s -o pair"

SCREENS = (
    Screen("run", "rtscope run -l idle,cpu,memory -d 5s -o first"),
    Screen("audit", "rtscope audit", first_rows=True),
    Screen("compare", "rtscope compare kernels", before=_KERNELS),
    Screen(
        "explain",
        "rtscope explain pair --run 004-memory-debian-6.12",
        before=_PAIR,
    ),
    Screen("make-run", "make run"),
)


class Terminal:
    """A tmux of its own with one shell in it. A context manager: it ends both."""

    def __init__(self, folder: Path, name: str) -> None:
        self._tmux = ("tmux", "-f", "/dev/null", "-S", str(folder / f"{name}.socket"))
        programs = folder / "bin"
        programs.mkdir(exist_ok=True)
        program = programs / "rtscope"
        if not program.exists():
            program.symlink_to(ROOT / ".venv" / "bin" / "rtscope")
        prompt = "PROMPT_COMMAND=tmux wait-for -S prompt"
        path = f"PATH={programs}:{os.environ['PATH']}"
        shell = ("env", "PS1=$ ", prompt, path, "bash", "--norc", "--noprofile")
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        self._do("new-session", "-d", *size, "-c", str(folder), *shell)
        self._do("set-option", "-g", "status", "off")
        self._do("resize-window", *size)
        self._do("wait-for", "prompt")

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self._do("kill-server")

    def _do(self, *words: str) -> str:
        argv = [*self._tmux, *words]
        done = subprocess.run(
            argv, check=True, capture_output=True, text=True, timeout=PATIENCE_S
        )
        return done.stdout

    def type(self, command: str) -> None:
        """Type a command, and wait for the next prompt."""
        self._do("send-keys", "-l", command)
        self._do("send-keys", "Enter")
        self._do("wait-for", "prompt")

    def clear(self) -> None:
        """Forget all that was shown."""
        self._do("send-keys", "-R", "C-l")
        self._do("clear-history")

    def rows(self) -> list[str]:
        """Return all rows to the prompt, with colours, without empty ones after it."""
        rows: list[str] = []
        while not rows or Text.from_ansi(rows[-1]).plain.strip() != "$":
            time.sleep(0.1)
            rows = self._do("capture-pane", "-e", "-p", "-S", "-").rstrip().splitlines()
        return rows


def drawn(rows: list[str], *, title: str) -> str:
    """Return rows of a terminal as a picture (SVG)."""
    text = Text.from_ansi("\n".join([*rows, *[""] * (ROWS - len(rows))]))
    text.no_wrap = True
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    console.print(text, crop=False, overflow="ignore")
    svg = console.export_svg(title=title, code_format=SVG, unique_id="screen")
    return re.sub(
        r'(viewBox="-12 -8) ([\d.]+) ([\d.]+)"',
        lambda m: f'{m[1]} {float(m[2]) + 24:.1f} {float(m[3]) + 16:.1f}"',
        svg,
    )


def picture(screen: Screen, folder: Path) -> Path:
    """Type a screen's commands, and write its picture; return the file."""
    with Terminal(folder, screen.name) as terminal:
        if screen.before:
            terminal.type(screen.before)
            terminal.clear()
        if screen.name == "make-run":
            terminal.type(f"cd {ROOT}")
            terminal.clear()
        terminal.type(screen.command)
        rows = terminal.rows()
    shown = rows[:ROWS] if screen.first_rows else rows[-ROWS:]
    target = IMAGES / f"screen-{screen.name}.svg"
    target.write_text(drawn(shown, title=screen.command), "utf-8")
    return target


def main(names: list[str]) -> int:
    """Draw the screens with these names, or all."""
    if unknown := set(names) - {screen.name for screen in SCREENS}:
        print(f"screens.py: no such screen: {min(unknown)}", file=sys.stderr)
        return 2
    if shutil.which("tmux") is None:
        print("screens.py: needs tmux", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="screens-", dir="/var/tmp") as made:
        for screen in SCREENS:
            if not names or screen.name in names:
                print(picture(screen, Path(made)).relative_to(ROOT), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
