"""What every command pays for before it does anything."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("words", [["--version"], ["report", "--help"]])
def test_no_command_loads_statistics_to_show_its_help(words: list[str]) -> None:
    program = (
        "import sys\n"
        "from rtscope.cli.main import main\n"
        "try: main()\n"
        "finally: print('scipy' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    assert done.stderr.splitlines()[-1] == "False"
