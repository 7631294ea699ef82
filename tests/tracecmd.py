"""Run trace-cmd, which mounts tracefs where it is not, so that no mount stays."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

needs_trace_cmd = pytest.mark.skipif(
    shutil.which("trace-cmd") is None, reason="needs trace-cmd"
)


def trace_cmd(*words: str | Path) -> bytes:
    """
    Return what it prints.

    Raises:
        subprocess.CalledProcessError: it refuses what it was given.

    """
    # Who may not mount needs no namespace, and may have none.
    apart = ("unshare", "--mount") if os.geteuid() == 0 else ()
    return subprocess.run(
        [*apart, "trace-cmd", *words], capture_output=True, check=True, timeout=600
    ).stdout
