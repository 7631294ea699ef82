"""
Build and measure one kernel after the other, each once, and note what came of it.

What cannot be built or does not boot is skipped, with the reason. Kernels with equal
configurations or equal images are one kernel and are not measured again. Every step is
in the journal before the next one starts, so that a search goes on where it ended.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from rtscope.host.errors import (
    HostError,
    KernelError,
    MeasurementError,
    RecordError,
    TargetError,
    UsageError,
)
from rtscope.record.directory.journal import Journal, Tried
from rtscope.stats.comparison.design import Exact
from rtscope.verbs.bisect.criterion import Values


class Verdict(StrEnum):
    """What a kernel is, against good and bad."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


class CannotGoOnError(KernelError):
    """No kernel can be built here, whatever its source: the search ends."""


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel that can be booted."""

    digest: str
    """SHA-256 of its image."""
    label: str
    """Names it in records."""


class Kernels(Protocol):
    """Builds kernels: of a commit, of some patches, of some settings."""

    def configure(self, name: str) -> str:
        """Make source and configuration; return what identifies them. KernelError."""
        ...

    def compile(self, name: str) -> Built:
        """Build what was configured; KernelError with the first error."""
        ...


class Boards(Protocol):
    """Measures kernels."""

    def measure(self, built: Built, name: str) -> Values:
        """Boot a kernel once for each seed; MeasurementError if it gives no figure."""
        ...


@dataclass(slots=True)
class Trials:
    """The kernels of one search."""

    kernels: Kernels
    boards: Boards
    journal: Journal
    log: Callable[[str], None] = lambda _: None
    threshold: Exact | None = None
    """Set after good and bad were measured."""
    _by_content: dict[str, Tried] = field(default_factory=dict)

    def measured(self, name: str) -> Tried:
        """Return the figures of a kernel, from the journal or measured now."""
        known = self.journal.steps.get(name)
        if known is None:
            known = self._try(name)
            self.journal.add(known)
        for key in filter(None, (known.source, known.kernel_digest)):
            self._by_content.setdefault(key, known)
        return known

    def required(self, name: str, *, option: str) -> Tried:
        """Return the figures of an end of the search; KernelError if it has none."""
        step = self.measured(name)
        if not step.values:
            self.journal.forget(step.name)
            raise KernelError(f"{option} {step.name} cannot be tested: {step.why}")
        return step

    def verdict(self, name: str) -> Verdict:
        """Return which end of the search a kernel belongs to."""
        tried = self.measured(name)
        if self.threshold is None:
            raise UsageError("measure good and bad before the kernels between them")
        if not tried.values:
            return Verdict.SKIPPED
        bad = self.threshold.is_like_second(tried.values)
        return Verdict.BAD if bad else Verdict.GOOD

    def _try(self, name: str) -> Tried:
        try:
            source = self.kernels.configure(name)
            if (same := self._by_content.get(source)) and same.values:
                self.log(f"{name}: the same source and configuration as {same.name}")
                return same.named(name, source, built=False)
            built = self.kernels.compile(name)
        except CannotGoOnError:
            raise
        except KernelError as error:
            self.log(f"{name}: skipped: {error}")
            return Tried(name, why=f"it does not build: {error}", built=False)
        if (same := self._by_content.get(built.digest)) and same.values:
            self.log(f"{name}: the same image as {same.name}")
            return same.named(name, source, built=True)
        try:
            values = self.boards.measure(built, name)
        except (RecordError, HostError, TargetError):  # no fault of the kernel
            raise
        except MeasurementError as error:
            self.log(f"{name}: skipped: {error}")
            return Tried(
                name,
                source=source,
                kernel_digest=built.digest,
                why=f"it gives no result: {error}",
            )
        return Tried(
            name, source=source, kernel_digest=built.digest, values=dict(values)
        )
