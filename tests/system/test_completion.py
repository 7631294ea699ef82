"""A person types in a real shell and presses Tab: what then stands on the line."""

import os
import pty
import re
import select
import shutil
import time
from pathlib import Path

import pytest

from rtscope.cli.completion import FILES, Shell

pytestmark = pytest.mark.system

COMPLETIONS = Path(__file__).parents[2] / "src" / "rtscope" / "cli" / "completions"
PATIENCE_S = 120.0

START = {
    Shell.BASH: (["bash", "--norc", "--noprofile", "-i"], "source {0}"),
    Shell.ZSH: (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit; compinit -u -D; source {0}",
    ),
    Shell.FISH: (["fish", "--no-config", "-i"], "source {0}"),
}


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, argv: list[str], place: Path) -> None:
        self.pid, self.number = pty.fork()
        if self.pid == 0:
            os.chdir(place)
            own = {"HOME": str(place), "TMPDIR": str(place)}
            os.environ |= {"TERM": "xterm", "LC_ALL": "C.UTF-8", **own}
            os.execvp(argv[0], argv)
        self.seen = ""

    def type(self, keys: str) -> None:
        os.write(self.number, keys.encode())

    def wait_for(self, pattern: str) -> str:
        """Read until the terminal shows it; fail with what it shows."""
        end = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.seen):
            left = end - time.monotonic()
            assert left > 0, f"{pattern} is not in {self.seen!r}"
            if select.select([self.number], [], [], left)[0]:
                text = os.read(self.number, 65536).decode(errors="replace")
                self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x08|\r|\x07", "", text)
        return self.seen

    def close(self) -> None:
        os.close(self.number)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


@pytest.mark.parametrize("shell", Shell)
@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("rtscope bo\tbui\tp\t", r"rtscope +board +build +pc"),
        ("rtscope run -t virtual:p\t", r"rtscope run -t +virtual:pc"),
        ("rtscope run -l idle,mem\t", r"rtscope run -l +idle,memory"),
        ("rtscope report --form\tmark\t", r"--format +markdown"),
    ],
)
def test_tab_completes(shell: Shell, typed: str, line: str, tmp_path: Path) -> None:
    argv, setup = START[shell]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"needs {argv[0]}")
    terminal = Terminal(argv, tmp_path)
    try:
        terminal.type(setup.format(COMPLETIONS / FILES[shell]) + "; echo re''ady\n")
        terminal.wait_for("ready")
        terminal.seen = ""
        for part in re.findall(r"[^\t]*\t", typed):
            terminal.type(part)
        terminal.wait_for(line)
    finally:
        terminal.close()
