"""
A run of a virtual board: what booted, and all that its result depends on.

The board's results follow from its inputs: runs with equal inputs are the same run,
and must have the same result on every host. `VirtualRun.inputs_by_label` is the only
list of them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import Field

from rtscope.contract import Count, Flag, Text, sha256_of_json


@dataclass(frozen=True, slots=True)
class InputDigests:
    """SHA-256 of each input; the seed as it is."""

    kernel: Text
    initrd: Text
    """User space, agent, modules and the job, which follows from campaign and seed."""
    qemu: Text
    plugin: Text
    board: Text
    """All of QEMU's command line but files and seed, and the board's revision."""
    campaign: Text
    """What of the campaign concerns this run."""
    seed: Count

    @property
    def digest(self) -> str:
        """One digest over all of them."""
        return sha256_of_json(asdict(self))


@dataclass(frozen=True, slots=True)
class VirtualRun:
    """Everything that the result of a virtual board depends on, and what it cost."""

    board: Text
    cpus: Count
    mips: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Million instructions per virtual second, of each CPU since revision 2."""
    quantum_instructions: Count | None
    seed: Count
    kernel: Text
    kernel_digest: Text
    initrd_digest: Text
    qemu_digest: Text
    plugin_digest: Text
    qemu_version: Text = ""
    """Its version."""
    board_revision: Count = 1
    """Of the board's model: in the first one all CPUs shared one clock."""
    settle_ns: Count = 0
    input_digests: InputDigests | None = None
    """None in a record of an older rtscope."""
    inputs_digest: Text | None = None
    part_digests: Mapping[str, Text] = field(default_factory=dict)
    """Digests by name: what to boot it with again."""
    kernel_bytes: Count | None = None
    """Size of the kernel's image, as it is on the disk; None in an older record."""
    disk_filesystem: Text = ""
    """File system of the disk in memory."""
    module_addresses: Mapping[str, Text] = field(default_factory=dict)
    """Addresses by name, as in /proc/modules."""
    module_symbols: str = ""
    """Of modules that the load has inserted; no others know them."""
    plugin_counters: Mapping[str, Any] = field(default_factory=dict)
    """What the plugin has counted up to the agent's last mark."""
    not_modelled: tuple[Text, ...] = ()
    trace: Mapping[str, Any] | None = None
    """The file of recorded paths, or why there is none."""
    reused: Flag = False
    """
    Whether this is a stored result of equal inputs, not a new measurement; `started_at`
    is when it was computed.
    """
    worker: Text = ""
    """The worker of a cluster that booted it; empty: the host of rtscope itself."""

    @property
    def inputs_by_label(self) -> Mapping[str, object]:
        """All that must be equal in two runs to be the same run."""
        known = self.input_digests
        return {
            "kernel": self.kernel_digest,
            "initrd": self.initrd_digest,
            "qemu": self.qemu_digest,
            "plugin": self.plugin_digest,
            "board": (
                *(self.board, self.cpus, self.mips, self.quantum_instructions),
                known and known.board,
            ),
            "model": f"revision {self.board_revision}",
            "campaign": known and known.campaign,
            "seed": self.seed,
        }
