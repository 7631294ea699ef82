"""The matrix of planted culprits judges titles; a wrong one stays in its table."""

import json
from typing import Any

import pytest

from culprits.matrix import head_of, rows_of, table_of
from culprits.plans import BOOTS, Boot, Culprit


def wakeup(at_ms: int, cause: str, name: str, *evidence: str) -> dict[str, Any]:
    segment = {"cause": cause, "name": name, "task": "", "evidence": list(evidence)}
    late = {"sequence": at_ms * 10, "latency_ns": 500_000, "dominant_segment": 0}
    return {**late, "segments": [segment]}


def test_each_turn_is_judged_by_its_own_culprit() -> None:
    culprits = (
        Culprit("", "first", ("interrupts off",), ("k",)),
        Culprit("", "second", ("interrupts off",), ("k",)),
        Culprit("", "remote", ("waiting for a lock",), ("k",), elsewhere=True),
        Culprit("", "never", ("a softirq",), ("another",)),
    )
    other = "CPU 0 executed 9 µs in this time, 99 % of it in remote [m] < caller"
    wakeups = [
        wakeup(100, "interrupts off", "first [m]"),
        wakeup(112, "interrupts off", "helper [m]"),
        wakeup(124, "waiting for a lock", "waiter [m]", other),
    ]
    document = json.dumps([{"kernel": "k", "wakeups": wakeups}])

    rows = list(rows_of(Boot("near", culprits), document))

    assert [row.right for row in rows] == [True, False, True, True]
    assert head_of(rows) == (
        "2 of 3 titles are right; 1 of 1 turns without a culprit on that kernel were "
        "quiet.\n"
    )
    assert "| **no**: interrupts off: `helper` |" in table_of(rows)


@pytest.mark.parametrize(("board", "culprits"), [("pc", 68), ("rpi3", 49)])
def test_no_culprit_is_planted_twice_on_a_board(board: str, culprits: int) -> None:
    boots = [boot for boot in BOOTS if boot.board == board]
    names = [(one.what, one.name) for boot in boots for one in boot.culprits]
    assert len(names) == len(set(names)) == culprits
