"""
What became of each mutant: written down as it is known, and told as a table.

A journal has a line of JSON that says what was asked, then one for each mutant. A run
that is begun again with it takes the mutants that it has not.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import scipy  # whose stats take a second, and load when they are used

KILLED, LOOPED, SURVIVED, UNSURE = "killed", "looped", "survived", "unsure"
OUTCOMES = (KILLED, LOOPED, SURVIVED, UNSURE)
DEAD = (KILLED, LOOPED)
"""What is unsure counts as if it had survived."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one mutant, or of unchanged code in its place."""

    name: str
    file: str
    line: int
    area: str
    outcome: str
    cpu_s: float
    by: str = ""
    """The test that failed."""
    diff: str = ""
    """The change; empty for unchanged code."""
    capped: bool = False
    """Whether it survived, and more tests execute it than ran."""
    was: str = ""
    """Its name in the journal that this one is compared with."""

    @property
    def control(self) -> bool:
        """Whether nothing was changed."""
        return not self.diff

    @property
    def key(self) -> tuple[str, bool]:
        """What no other result has."""
        return self.name, self.control

    @property
    def dead(self) -> bool:
        """Whether a test noticed it."""
        return self.outcome in DEAD


@dataclass(slots=True)
class Journal:
    """The results that are known, and the file they are kept in."""

    asked: Mapping[str, object]
    results: list[Result] = field(default_factory=list)
    path: Path | None = None

    @classmethod
    def opened(cls, path: Path | None, asked: Mapping[str, object]) -> "Journal":
        """Read what is there, if it answers what is asked; exit if it does not."""
        if path is None:
            return cls(asked)
        known = cls.read(path) if path.is_file() else None
        if known and dict(known.asked) != dict(asked):
            raise SystemExit(f"{path} answers {known.asked}, not {asked}")
        results = known.results if known else []
        whole = [json.dumps(one) for one in (asked, *map(asdict, results))]
        path.write_text("\n".join(whole) + "\n", encoding="utf-8")
        return cls(asked, results, path)

    @classmethod
    def read(cls, path: Path) -> "Journal":
        """Read one; its last line may be cut."""
        first, *others = path.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = [line for line in others if line.endswith("\n")]
        return cls(json.loads(first), [Result(**json.loads(line)) for line in whole])

    def add(self, result: Result) -> None:
        """Note one."""
        self.results.append(result)
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                print(json.dumps(asdict(result)), file=file)

    @property
    def mutants(self) -> list[Result]:
        """Return those that are not of unchanged code."""
        return [one for one in self.results if not one.control]

    @property
    def share(self) -> float:
        """How many died."""
        return _died(self.mutants) / max(len(self.mutants), 1)

    def told(self) -> Iterator[str]:
        """Yield the lines of a report."""
        for one in sorted(self.mutants, key=lambda one: (one.file, one.line)):
            if not one.dead:
                some = ", not by all its tests" if one.capped else ""
                yield f"{one.outcome}{some}: {one.name} ({one.area})\n{one.diff}\n"
        yield ", ".join(
            f"{name} {value}"
            for name, value in self.asked.items()
            if not isinstance(value, list)
        )
        yield from self._table()
        controls = [one for one in self.results if one.control]
        failed = [one for one in controls if one.outcome != SURVIVED]
        yield f"unchanged code failed {len(failed)} of {len(controls)} times" + "".join(
            f"\n  {one.name}: {one.outcome} {one.by}" for one in failed
        )
        capped = sum(one.capped for one in self.mutants)
        yield f"{capped} survivors did not run all their tests (cap of CPU time)"
        yield f"{sum(one.cpu_s for one in self.results):.0f} s of CPU time"

    def _table(self) -> Iterator[str]:
        yield f"{'area':12}" + "".join(f"{h:>10}" for h in ("total", *OUTCOMES, "dead"))
        areas = dict.fromkeys(sorted(one.area for one in self.mutants))
        rows = {area: [m for m in self.mutants if m.area == area] for area in areas}
        for name, row in (rows | {"all": self.mutants}).items():
            counts = Counter(one.outcome for one in row)
            figures = (len(row), *(counts[outcome] for outcome in OUTCOMES))
            dead = f"{_died(row) / len(row):.1%}" if row else "-"
            yield f"{name:12}" + "".join(f"{n:10}" for n in figures) + f"{dead:>10}"
        if self.mutants:
            died = scipy.stats.binomtest(_died(self.mutants), len(self.mutants))
            low, high = died.proportion_ci()
            yield f"95 % interval of the dead: {low:.1%} to {high:.1%}"


def _died(results: Sequence[Result]) -> int:
    return sum(one.dead for one in results)
