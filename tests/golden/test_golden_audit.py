"""
What each check says of machines and units, to the letter.

Of a machine the answers to three cases, and the outcome of each changed case; a digest
holds every word of all, with the evidence.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import auditcases, audited, unitcases
from rtscope.machine.audit.examine import catalogue
from rtscope.machine.audit.model import Check, Profile

KEPT = Path(__file__).parent / "audit"
ODD = "x -1 y: 2, " * 20
"""No list and no number, and longer than what is shown of a file."""
MANY = 18
"""More than evidence is shown of."""
_NUMBER = re.compile(r"(?<=[a-z/])\d+(?=/)")
DIGITS = 16
"""Of a digest in hexadecimal."""
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


def by_profile(name: str, case: audited.Case) -> dict[str, audited.Case]:
    """Return the machine for other uses, if the check is not alike for all of them."""
    kind = catalogue()[name]
    if kind.profiles == frozenset(Profile) and not kind.severity_for:
        return {}
    return {
        ", polling": replace(case, profile=Profile.POLLING),
        ", of a host of guests": replace(case, profile=Profile.HOST),
        ", audio": replace(case, profile=Profile.AUDIO),
    }


def damaged(case: audited.Case) -> dict[str, audited.Case]:
    """Return the machine with one of its files gone, refused, or of another kind."""
    changed = {}
    for number, path in enumerate(case.files, 1):
        others = {p: text for p, text in case.files.items() if p != path}
        refused = {**case.also, path: audited.REFUSED}
        changed[f", file {number} gone"] = replace(case, files=others)
        changed[f", file {number} refused"] = replace(case, files=others, also=refused)
        changed[f", file {number} odd"] = replace(case, files={**others, path: ODD})
    return {
        **changed,
        ", on Linux 5.4": replace(case, release="5.4.1"),
        ", on an unknown Linux": replace(case, release="next"),
        ", on RISC-V": replace(case, arch="riscv64"),
        ", on an unknown machine": replace(case, arch=""),
    }


def multiplied(case: audited.Case) -> audited.Case | None:
    """Return the machine with many of each thing that has a number."""
    files = {
        f"{more}".join(_NUMBER.split(path)): text
        for more in range(MANY)
        for path, text in case.files.items()
    }
    return replace(case, files=files, cpus=None) if files != case.files else None


def counted(answer: list[str]) -> list[str]:
    """Return an answer with the first and the last of much evidence."""
    head, *evidence = answer or [""]
    if len(evidence) < MANY // 2:
        return answer
    return [head, evidence[0], f"      ({len(evidence)} in all)", evidence[-1]]


def answers_to(name: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Yield the answers to each case of a check and to its changes."""
    for title in TITLES:
        case = getattr(auditcases.CASES[name], title)
        changed = {
            "": case,
            ", for all CPUs": replace(case, cpus=None),
            ", for CPU 7": replace(case, cpus=(7,)),
            **by_profile(name, case),
            **(damaged(case) if title == "bad" else {}),
        }
        answers = {how: of_machine(name, one) for how, one in changed.items()}
        if title != "unseen" and (many := multiplied(case)):
            answers[", many"] = counted(of_machine(name, many))
        yield title, answers


def every_word(name: str) -> list[str]:
    return [
        line for title, answers in answers_to(name) for line in told(title, answers)
    ]


def digest_of(words: list[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:DIGITS]


def of_machines() -> Iterator[str]:
    for name in auditcases.CASES:
        whole = every_word(name)
        answers = [line for line in whole if not line.startswith("      ")]
        unchanged = tuple(f"  {title}: " for title in TITLES)
        outcomes = [
            line.strip().partition(" (")[0]
            for line in answers
            if not line.startswith(unchanged)
        ]
        yield name
        yield from (line for line in answers if line.startswith(unchanged))
        yield f"  {'; '.join([*outcomes, digest_of(whole)])}"


def every_word_of_changed(text: str, kept: str) -> Iterator[str]:
    """Yield what checks of machines say whose digest has changed."""
    for name in auditcases.CASES:
        words = every_word(name)
        if (digest := digest_of(words)) in text and digest not in kept:
            yield from (name, *words)


def of_units() -> Iterator[str]:
    for name, cases in unitcases.CASES.items():
        yield name
        for title, case in zip(TITLES, cases, strict=True):
            changed = {"": case, ", for all CPUs": replace(case, cpus=None)}
            answers = {
                how: lines(unitcases.judged(name, one)) for how, one in changed.items()
            }
            yield from told(title, answers)


@pytest.mark.slow
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

    kept = (KEPT / name).read_text("utf-8")
    assert text == kept, "\n".join(every_word_of_changed(text, kept))
