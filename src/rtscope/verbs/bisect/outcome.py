"""
What came of each kernel of a search, built and measured once, and of the search.

What cannot be built or does not boot is skipped, with the reason. Kernels with equal
configurations or equal images are one kernel and are not measured again. Every step is
in the journal before the next one starts, so that a search goes on where it ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from rtscope.host.errors import (
    HostError,
    KernelError,
    MeasurementError,
    RecordError,
    TargetError,
    UsageError,
)
from rtscope.record.directory.journal import Journal, Tried
from rtscope.stats.comparison.design import Exact, typical
from rtscope.verbs.bisect.criterion import Margin, Values, threshold_of, unit_of_values

SCHEMA = 1

WHOLE = 0.75
"""With less than this share of the difference, other changes have parts of it."""


class Kind(StrEnum):
    """What is searched."""

    COMMIT = "commit"
    PATCH = "patch"
    SETTING = "setting"


@dataclass(frozen=True, slots=True)
class Change:
    """One that a search ended with."""

    name: str
    """A commit, a patch, or a symbol as NAME=VALUE."""
    title: str = ""
    """The subject of a commit or a patch; of a symbol its value before."""


@dataclass(frozen=True, slots=True)
class Located:
    """Where a search ended."""

    changes: tuple[Change, ...]
    """One commit or patch, unless others could not be tested; of settings, all."""
    before: str
    """The kernel without them, as the journal names it."""
    after: str
    along: tuple[Change, ...] = ()
    """What Kconfig made change with them; it is not bad without them."""
    without: str = ""
    """The kernel in which only that was changed; empty: there is none."""
    narrowed: bool = True
    """Whether nothing that was skipped can be the cause as well, or a part of it."""


@dataclass(frozen=True, slots=True)
class Side:
    """A kernel beside the change."""

    name: str
    values: Values
    explanation: str = ""
    """Its worst wake-up in a sentence; empty: not explained."""

    @property
    def typical(self) -> float:
        """The median over seeds."""
        return typical(self.values)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search came to."""

    kind: Kind
    figure: str
    load: str
    margin: float
    candidates: int
    good: Side
    """The two ends of the search."""
    bad: Side
    located: Located | None = None
    """None: the ends do not differ by more than the margin."""
    before: Side | None = None
    """The two kernels beside the change."""
    after: Side | None = None
    without: Side | None = None
    """The kernel in which only what Kconfig made change with it was changed."""
    builds: int = 0
    boots: int = 0
    skipped: tuple[Tried, ...] = field(default=())

    @property
    def differs(self) -> bool:
        """Whether there was anything to search for."""
        return self.located is not None

    @property
    def share(self) -> float:
        """Part of the difference of the ends that the change makes."""
        return self._share_of(self.after)

    @property
    def share_without(self) -> float:
        """The part of what Kconfig made change with it, without the change itself."""
        return self._share_of(self.without)

    def _share_of(self, side: Side | None) -> float:
        if self.before is None or side is None:
            return 0
        ends = Exact(self.good.typical, self.bad.typical, self.margin)
        return ends.share_of(self.before.values, side.values)

    @property
    def is_found(self) -> bool:
        """Whether the search ended with the change, and nothing else can be it."""
        return self.located is not None and self.located.narrowed


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome for JSON."""
    return {
        "schema": SCHEMA,
        **asdict(outcome),
        "unit": unit_of_values(outcome.figure),
        "differs": outcome.differs,
        "found": outcome.is_found,
        "share": round(outcome.share, 4) if outcome.differs else None,
        "share_without": round(outcome.share_without, 4) if outcome.without else None,
    }


def ends_of(good: Tried, bad: Tried, margin: Margin) -> tuple[Side, Side, Exact]:
    """Return the ends of a search, and what they say about kernels between them."""
    threshold = threshold_of(good.values, bad.values, margin)
    return Side(good.name, good.values), Side(bad.name, bad.values), threshold


def skipped_of(steps: Sequence[Tried]) -> tuple[Tried, ...]:
    """Return the kernels that could not be tested."""
    return tuple(tried for tried in steps if not tried.values)


# --- build and measure one kernel after the other, each once, and note what came of it


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
