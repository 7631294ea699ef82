"""Everything that the judges get to see of a machine: read once, before they begin."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rtscope.audit.model import Evidence, Profile
from rtscope.audit.unitfile import Unit
from rtscope.machine.kernelconfig import KernelConfig
from rtscope.machine.kernelidentity import KernelIdentity
from rtscope.machine.reader import Content, Denied, Missing, fits, text_of

_LITERAL = re.compile(r"[^*?\[]*")


@dataclass(frozen=True, slots=True)
class Expected:
    """The kernel that a machine is meant to run, as far as its image tells."""

    name: str
    """What the user called it."""
    banner: str | None = None
    """As /proc/version says it."""
    build_id: str | None = None
    """Hexadecimal; from the linker, over the whole kernel."""
    config_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """What the kernel said when a child asked for a real-time policy."""

    asked: str
    error: int | None
    """errno; None: it was granted."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """What was tried or watched, beside what the files say."""

    window_ns: int = 0
    """Between the two readings; 0: nothing was watched."""
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    """The files that were read twice, by path."""
    kernel_log: str | None = None
    """As `dmesg` prints it."""
    why_no_log: str = "the kernel log was not read"
    trial: Trial | None = None
    clock_cost_ns: int | None = None
    """Median of one reading of CLOCK_MONOTONIC, with what Python adds to it."""
    clock_resolution_ns: int | None = None
    dma_latency_us: int | None = None
    """What /dev/cpu_dma_latency said: the wake-up time that programs ask for."""
    dma_holders: Mapping[str, str] = field(default_factory=dict)
    """Names of the processes that have it open, by descriptor, as far as seen."""
    why_no_dma_latency: str = "it was not read: only on this machine or a board's own"
    smi_before: Mapping[str, int] = field(default_factory=dict)
    smi_after: Mapping[str, int] = field(default_factory=dict)
    """System management interrupts since the reset of each CPU, by register file."""
    why_no_smi: str = "the counters were not read: only on this machine"


@dataclass(frozen=True, slots=True)
class Scene:
    """What was read, and for whom it is judged."""

    files: Mapping[str, Content]
    kernel: KernelIdentity
    profile: Profile = Profile.CONTROL
    cpus: tuple[int, ...] | None = None
    """The CPUs that real-time threads run on; None: all of them."""
    arch: str | None = None
    """As `uname -m` says it; None if it is not known."""
    expected: Expected | None = None
    alone: bool = False
    """There is a configuration and no machine."""
    observed: Observed = field(default_factory=Observed)
    """What was tried or watched."""
    unit: Unit | None = None
    """The unit of systemd that is judged."""

    @property
    def config(self) -> KernelConfig | None:
        """The kernel's configuration."""
        return self.kernel.config

    def content(self, path: str) -> Content:
        """Return what reading a path gave; what was never asked for is missing."""
        return self.files.get(path, Missing())

    def text(self, path: str) -> str | None:
        """Return a file's text without white space at its ends; None if none."""
        found = text_of(self.content(path))
        return None if found is None else found.strip("\0 \t\r\n")

    def matching(self, pattern: str) -> Mapping[str, str]:
        """Return the texts of the files that a pattern stands for, by path."""
        return {
            path: text
            for path in self._paths(pattern)
            if (text := self.text(path)) is not None
        }

    def refusals(self, pattern: str) -> tuple[Evidence, ...]:
        """Return the files of a pattern that are there and may not be read."""
        return tuple(
            Evidence(path, f"cannot be read: {content.reason}")
            for path in self._paths(pattern)
            if isinstance(content := self.files[path], Denied)
        )

    def _paths(self, pattern: str) -> list[str]:
        # Most patterns have few matches, and a machine may have 20,000 threads.
        literal = _LITERAL.match(pattern)
        start = literal[0] if literal else ""
        near = [path for path in self.files if path.startswith(start)]
        return sorted(path for path in near if path == pattern or fits(path, pattern))
