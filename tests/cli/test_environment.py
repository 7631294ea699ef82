"""`setup/environment` says how far it is, and ends as pip does."""

import subprocess
from pathlib import Path

import pytest

ENVIRONMENT = Path(__file__).parents[2] / "setup/environment"

PYTHON = """#!/bin/sh
case "$*" in
'-m venv .venv')
	mkdir -p .venv/bin
	cp "$0" .venv/bin/python
	echo "command = python -m venv $(pwd -P)/.venv" >.venv/pyvenv.cfg ;;
*'install --require-hashes'*)
	for i in $(seq {collected}); do
		echo "Collecting name$i==1.0 (from -r constraints.txt)"
		echo '  Using cached it'
	done
	echo 'Installing collected packages: all'
	exit {status} ;;
esac
"""


def made(where: Path, *, collected: int, status: int) -> tuple[int, str]:
    """Return how it ends there, and what it prints, with a pip that does as told."""
    script = where / "setup/environment"
    script.parent.mkdir()
    script.write_bytes(ENVIRONMENT.read_bytes())
    packages = "".join(f"name{i}==1.0 \\\n    --hash=x\n" for i in range(collected))
    (where / "constraints.txt").write_text(packages)
    python = where / "python"
    python.write_text(
        PYTHON.replace("{collected}", str(collected)).replace("{status}", str(status))
    )
    python.chmod(0o755)
    done = subprocess.run(
        ["sh", str(script), "run"],
        env={"PATH": "/usr/bin:/bin", "PYTHON": str(python)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout


def test_the_packages_are_counted_while_they_are_fetched(tmp_path: Path) -> None:
    status, told = made(tmp_path, collected=45, status=0)

    assert status == 0
    assert told.splitlines()[1:] == [
        "  package 20 of 45: name20",
        "  package 40 of 45: name40",
        "  installing 45 packages",
    ]
    assert (tmp_path / ".venv/.stamp-run").exists()


@pytest.mark.parametrize("status", [1, 2])
def test_what_pip_refuses_is_not_taken_for_made(tmp_path: Path, status: int) -> None:
    assert made(tmp_path, collected=1, status=status)[0] == status
    assert not (tmp_path / ".venv/.stamp-run").exists()
