"""
What a board boots into: user space, the kernel's modules, the agent, and the job.

Archives one after the other in one file; the kernel unpacks all of them. They are not
compressed: the guest would spend more instructions on that than on copying.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from rtscope.board import cpio

AGENT = "bin/rtscope-agent"


@dataclass(frozen=True, slots=True)
class Job:
    """What a board does once it has booted."""

    script: str
    """For busybox's sh, in /tmp; what it leaves in /out comes back."""
    disk: bool = False
    """Make a disk in memory and mount it at /disk before the script starts."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """More files, by their names below /job."""


def agent_archive(agent: bytes) -> bytes:
    """Return the archive with the agent and the first process."""
    init = resources.files("rtscope.board").joinpath("init").read_bytes()
    return cpio.pack(
        {AGENT: cpio.File(agent, runs=True), "init": cpio.File(init, runs=True)}
    )


def job_archive(job: Job, *, results: str) -> bytes:
    """Return the archive with the job; `results` is the board's device for them."""
    entries: dict[str, cpio.Entry] = {
        f"job/{name}": cpio.File(content) for name, content in job.files.items()
    }
    entries["job/script"] = cpio.File(job.script.encode())
    entries["job/results"] = cpio.File(f"{results}\n".encode())
    if job.disk:
        entries["job/disk"] = cpio.File(b"")
    return cpio.pack(entries)


def write_initrd(path: Path, archives: list[bytes]) -> str:
    """Write archives one after the other; return the SHA-256 of the file."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for archive in archives:
            file.write(archive)
            digest.update(archive)
    return digest.hexdigest()
