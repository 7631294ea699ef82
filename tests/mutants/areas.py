"""
The parts of src/rtscope that mutants are drawn from.

This table is all that changes when files move to other folders: every Python file
belongs to the first area with a pattern for it, and no area may be empty.
"""

from pathlib import Path

# area: globs below src/rtscope
AREAS: dict[str, tuple[str, ...]] = {
    "host": ("*.py", "host/**/*.py"),
    "contract": ("contract/**/*.py",),
    "machine": ("machine/**/*.py",),
    "statistics": ("stats/**/*.py", "record/caveats/**/*.py"),
    "causes": ("explain/**/*.py", "record/instructions/*.py", "record/events/*.py"),
    "record": ("record/**/*.py",),
    "measure": ("measure/**/*.py",),
    "boards": ("boards/**/*.py",),
    "present": ("present/**/*.py",),
    "app": ("programs/**/*.py", "verbs/app/**/*.py", "verbs/demo/**/*.py"),
    "cluster": ("verbs/sweep/cluster/**/*.py",),
    "sweep": ("verbs/sweep/**/*.py",),
    "bisect": ("verbs/bisect/**/*.py",),
    "verbs": ("verbs/**/*.py",),
    "cli": ("cli/**/*.py",),
}
FEWEST = 40
"""Mutants of an area, where it has so many, however small its share."""


def files_of(source: Path) -> dict[str, str]:
    """Return all files and the area of each; exit if one has none, or an area none."""
    areas: dict[str, str] = {}
    for area, globs in AREAS.items():
        for path in sorted({path for glob in globs for path in source.glob(glob)}):
            areas.setdefault(path.relative_to(source).as_posix(), area)
    every = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    if missed := sorted(every - areas.keys()):
        raise SystemExit(f"files without an area: {', '.join(missed)}")
    if empty := sorted(AREAS.keys() - areas.values()):
        raise SystemExit(f"areas without a file: {', '.join(empty)}")
    return areas


def quotas(sizes: dict[str, int], count: int) -> dict[str, int]:
    """
    Return how many mutants to draw of each area: in proportion, but at least FEWEST.

    Exit if an area has none to draw.
    """
    fewest = min(FEWEST, count // max(len(sizes), 1))
    floors = {area: min(fewest, size) for area, size in sizes.items()}
    if empty := sorted(area for area, floor in floors.items() if not floor):
        raise SystemExit(f"areas without a drawn mutant: {', '.join(empty)}")
    quota = dict(floors)
    for _ in range(min(count, sum(sizes.values())) - sum(floors.values())):
        left = [area for area in sizes if quota[area] < sizes[area]]
        quota[max(left, key=lambda area: sizes[area] / quota[area])] += 1
    return quota
