"""
The mutants of an earlier journal in a tree whose files have moved.

A mutant is the same if it has the same name; if its file has a new name, the rest of
the name decides, where one mutant alone has it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from mutants.drawing import Mutant
from mutants.results import Journal, Result

MOST_KILLERS = 5
"""Tests of one name that run first."""


def matched(
    before: Sequence[Result], now: Sequence[Mutant]
) -> tuple[list[tuple[Result, Mutant]], list[Result]]:
    """Return the mutants that are still there, and those that are gone."""
    by_name: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in now:
        by_name[mutant.name].append(mutant)
        by_name[mutant.name_in_module].append(mutant)
    pairs, gone = [], []
    for result in before:
        same = _nearest(by_name[result.name], result.file) or _only(
            by_name[result.name.partition(": ")[2]]
        )
        if same:
            pairs.append((result, same))
        else:
            gone.append(result)
    return pairs, gone


def _only(mutants: Sequence[Mutant]) -> Mutant | None:
    return mutants[0] if len(mutants) == 1 else None


def _nearest(mutants: Sequence[Mutant], file: str) -> Mutant | None:
    """Return the one whose file has the most folders in common with the old one."""
    folders = set(PurePosixPath(file).parent.parts)
    alike = [len(folders & set(PurePosixPath(m.file).parent.parts)) for m in mutants]
    best = [m for m, n in zip(mutants, alike, strict=True) if n == max(alike)]
    return _only(best)


def killers(by: str, tests: Iterable[str]) -> list[str]:
    """Return the tests with the name of one, whichever file they are in."""
    name = _function(by)
    if not name:
        return []
    same = [test for test in tests if _function(test) == name]
    wanted = by.rpartition("::")[2]
    same.sort(key=lambda t: (t != by, t.rpartition("::")[2] != wanted, t))
    return same[:MOST_KILLERS]


def _function(test: str) -> str:
    return test.partition("[")[0].rpartition("::")[2] if "::" in test else ""


def differences(before: Iterable[str], now: Iterable[str]) -> dict[str, list[str]]:
    """
    Return how many mutants only one of two trees has, by function.

    Of all mutants, drawn or not. The name of a module does not count.
    """
    old, new = (Counter(name.partition(": ")[2] for name in n) for n in (before, now))
    return {"gone of all": _by_function(old - new), "new": _by_function(new - old)}


def _by_function(names: Counter[str]) -> list[str]:
    functions: Counter[str] = Counter()
    for name, count in names.items():
        functions[name.partition(": ")[0]] += count
    return [f"{count} of {function}" for function, count in sorted(functions.items())]


def told(before: Journal, now: Journal) -> Iterator[str]:
    """Yield the lines of a report: each mutant that was killed, before and now."""
    answers = {one.was: one for one in now.mutants}
    killed = [one for one in before.mutants if one.dead]
    gone = set(_names(now, "gone"))
    dead = [one for one in killed if one.name in answers and answers[one.name].dead]
    alive = revived(before, now)
    waiting = len(killed) - len(dead) - len(alive) - sum(o.name in gone for o in killed)
    yield f"killed before and killed now: {len(dead)}"
    yield f"killed before and alive now: {len(alive)}"
    for one in alive:
        yield f"  {one.name}\n    {answers[one.name].file}, was killed by {one.by}"
    yield f"gone: {sum(one.name in gone for one in before.mutants)}"
    yield from (f"  {one.name}" for one in before.mutants if one.name in gone)
    for heading in ("gone of all", "new"):
        counts = _names(now, heading)
        total = sum(int(line.partition(" ")[0]) for line in counts)
        yield f"{heading}: {total} in {len(counts)} functions"
        yield from (f"  {line}" for line in counts)
    yield f"killed before and not tried yet: {waiting}"


def _names(journal: Journal, heading: str) -> list[str]:
    value = journal.asked.get(heading, [])
    assert isinstance(value, list)
    return value


def revived(before: Journal, now: Journal) -> list[Result]:
    """Return the mutants that were killed and are alive now."""
    alive = {one.was for one in now.mutants if not one.dead}
    return [one for one in before.mutants if one.dead and one.name in alive]
