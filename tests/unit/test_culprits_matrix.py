"""The matrix of planted culprits judges titles; a wrong one stays in its table."""

import json
from typing import Any

from culprits.matrix import BOOTS, Boot, Culprit, rows_of, table_of


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
    assert "interrupts off: `helper` | **no** |" in table_of(rows)


def test_no_culprit_is_planted_twice() -> None:
    names = [one.name for boot in BOOTS for one in boot.culprits]
    assert len(names) == len(set(names)) == 31
