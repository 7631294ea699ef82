"""All that decides the result of a boot of a program of the user's."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rtscope.boards.catalogue import appended
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.assemble import board_digest
from rtscope.boards.runs.boot import Booted
from rtscope.host.units import NS_PER_US


@dataclass(frozen=True, slots=True)
class BoardIdentity:
    """All that decides the result."""

    board: str
    cpus: int
    mips: float
    quantum_instructions: int | None
    revision: int
    seed: int
    kernel: str
    append: str
    """Additional kernel parameters."""
    kernel_digest: str
    initrd_digest: str
    qemu_digest: str
    plugin_digest: str
    board_digest: str
    phases: str = ""
    """Of threads: start, thread, period and phase in ns of each."""

    @property
    def words(self) -> str:
        """Say what its times are, and what is needed to get them again."""
        held = dict.fromkeys(map(_phase_words, self.phases.split()))
        phases = f", with thread {', '.join(held)}" if held else ""
        return (
            f"virtual board {self.board} with {self.kernel}"
            f"{self.append and f' and {self.append}'}: {self.cpus} CPUs of "
            f"{self.mips:g} million instructions per virtual second, quantum "
            f"{self.quantum_instructions} instructions, revision {self.revision}, seed "
            f"{self.seed}{phases}; its times are virtual, of no real board"
        )

    def row(self) -> Mapping[str, Any]:
        """Return it for a JSON document."""
        row = asdict(self)
        if not self.phases:
            del row["phases"]
        return row


def _phase_words(phase: str) -> str:
    """Say when a thread begins, as `3 at 6818 of 8000 µs`, in whatever start."""
    _, thread, period_ns, after_ns = phase.split(":")
    after_us, period_us = (
        f"{int(ns) / NS_PER_US:.12g}" for ns in (after_ns, period_ns)
    )
    return f"{thread} at {after_us} of {period_us} \N{MICRO SIGN}s"


def identity_of(prepared: Prepared, booted: Booted, seed: int) -> BoardIdentity:
    """Return all that has decided the result of a boot, but for phases of threads."""
    board = prepared.board
    return BoardIdentity(
        board=board.name,
        cpus=board.cpus,
        mips=board.mips,
        quantum_instructions=board.quantum_instructions,
        revision=board.revision,
        seed=seed,
        kernel=prepared.kernel.name,
        append=" ".join(appended(board)),
        kernel_digest=prepared.kernel.digest,
        initrd_digest=booted.initrd_digest,
        qemu_digest=prepared.qemu.digest,
        plugin_digest=booted.plugin_digest,
        board_digest=board_digest(board),
    )
