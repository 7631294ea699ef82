"""The machines of a report: who they are, and every fact with where it was read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtscope.machine.facts import FactValue
from rtscope.record.model import RunRecord
from rtscope.report.escape import printable
from rtscope.report.model.rows import kernel_of
from rtscope.report.words import plural

_NAMES = ("machine_model", "hostname", "cpu_model")


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact: its value before the first run, and whether it stayed."""

    name: str
    value: str
    """Empty if unknown; `why` then says why. A known empty one reads `none`."""
    raw: str | int | float | bool | tuple[str, ...] | None
    """The value itself, for programs; its text is printable."""
    source: str
    why: str
    others: tuple[str, ...]
    """Other values that it had before or after some run."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One target with one kernel."""

    name: str
    target: str
    kernel: str
    preemption: str
    hardware: str
    facts: tuple[FactRow, ...]


def machines_of(records: Sequence[RunRecord]) -> tuple[Machine, ...]:
    """Return each combination of target and kernel once, in the order of the runs."""
    grouped: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        grouped.setdefault((record.run.target, kernel_of(record)), []).append(record)
    return tuple(_machine(runs) for runs in grouped.values())


def _machine(records: Sequence[RunRecord]) -> Machine:
    facts = records[0].facts_before
    target = printable(records[0].run.target)
    if target.startswith("virtual:"):
        named = [f"virtual board {target.removeprefix('virtual:')}"]
    else:
        named = [text for name in _NAMES if (text := _text(facts, name))]
    fallback = "this machine" if target == "local" else target
    cpus = {t.cpu for r in records for t in r.result.threads if t.cpu is not None}
    hardware = [
        text
        for text in (_text(facts, "cpu_model"), printable(records[0].hello.arch))
        if text and text not in named[:1]
    ]
    if cpus:
        hardware.append(f"{plural(len(cpus), 'CPU')} measured")
    return Machine(
        name=named[0] if named else fallback,
        target=target,
        kernel=kernel_of(records[0]),
        preemption=_preemption(facts),
        hardware=", ".join(hardware),
        facts=tuple(_fact_rows(records)),
    )


def _preemption(facts: Mapping[str, FactValue]) -> str:
    fact = facts.get("preempt_rt")
    if fact is None or fact.value is None:
        return "PREEMPT_RT or not: unknown"
    if fact.value:
        return "PREEMPT_RT"
    model = _text(facts, "preemption_model")
    return f"not PREEMPT_RT: {model}" if model else "not PREEMPT_RT"


def _fact_rows(records: Sequence[RunRecord]) -> list[FactRow]:
    names = dict.fromkeys(name for r in records for name in r.facts_before)
    rows = []
    for name in names:
        seen = [
            facts[name]
            for r in records
            for facts in (r.facts_before, r.facts_after)
            if name in facts
        ]
        values = list(dict.fromkeys(_written(fact) for fact in seen))
        rows.append(
            FactRow(
                name=printable(name),
                value=values[0],
                raw=_raw(seen[0]),
                source=printable(seen[0].source),
                why=printable(seen[0].why),
                others=tuple(value or "unknown" for value in values[1:]),
            )
        )
    return rows


def _text(facts: Mapping[str, FactValue], name: str) -> str:
    fact = facts.get(name)
    return _written(fact) if fact is not None and fact.value else ""


def _raw(fact: FactValue) -> str | int | float | bool | tuple[str, ...] | None:
    if isinstance(fact.value, str):
        return printable(fact.value)
    if isinstance(fact.value, tuple):
        return tuple(printable(item) for item in fact.value)
    return fact.value


def _written(fact: FactValue) -> str:
    if fact.value is None:
        return ""
    if fact.value in ("", ()):
        return "none"
    if isinstance(fact.value, bool):
        return "yes" if fact.value else "no"
    if isinstance(fact.value, tuple):
        return ", ".join(printable(item) for item in fact.value)
    return printable(str(fact.value))
