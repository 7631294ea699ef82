"""What each check says of machines and units, with its evidence, to the letter."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import auditcases, audited, unitcases
from rtscope.audit.model import Check, Profile

KEPT = Path(__file__).parent / "audit"
TITLES = ("good", "bad", "unseen")


def lines(check: Check) -> list[str]:
    evidence = [f"      {seen.path}: {seen.value}" for seen in check.evidence]
    severity = check.severity.name.lower()
    return [f"{check.outcome.value} ({severity}): {check.message}", *evidence]


def told(title: str, answers: Mapping[str, list[str]]) -> Iterator[str]:
    """Tell of a case, and of its changes that make another answer."""
    first, *_ = answers.values()
    for change, answer in answers.items():
        if answer and (answer is first or answer != first):
            head, *evidence = answer
            yield f"  {title}{change}: {head}"
            yield from evidence


def of_machine(name: str, case: audited.Case) -> list[str]:
    """Return the answer; none where the check is not for this profile."""
    try:
        return lines(audited.judged(name, case))
    except IndexError:
        return []


def of_machines() -> Iterator[str]:
    for name, cases in auditcases.CASES.items():
        yield name
        for title in TITLES:
            case = getattr(cases, title)
            changed = {
                "": case,
                ", for all CPUs": replace(case, cpus=None),
                ", for CPU 7": replace(case, cpus=(7,)),
                ", polling": replace(case, profile=Profile.POLLING),
                ", of a host of guests": replace(case, profile=Profile.HOST),
                ", audio": replace(case, profile=Profile.AUDIO),
            }
            answers = {how: of_machine(name, one) for how, one in changed.items()}
            yield from told(title, answers)


def of_units() -> Iterator[str]:
    for name, cases in unitcases.CASES.items():
        yield name
        for title, case in zip(TITLES, cases, strict=True):
            changed = {"": case, ", for all CPUs": replace(case, cpus=None)}
            answers = {
                how: lines(unitcases.judged(name, one)) for how, one in changed.items()
            }
            yield from told(title, answers)


@pytest.mark.parametrize(
    ("name", "of"), [("machines.txt", of_machines), ("units.txt", of_units)]
)
def test_checks_say_what_they_said(
    name: str, of: Callable[[], Iterator[str]], rewrite: bool
) -> None:
    text = "\n".join(of()) + "\n"
    if rewrite:
        KEPT.mkdir(exist_ok=True)
        (KEPT / name).write_text(text, encoding="utf-8")

    assert text == (KEPT / name).read_text("utf-8")
