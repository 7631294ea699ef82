"""Recorded paths of every version load for ever, with their numbers."""

import json
from pathlib import Path

import pytest

from rtscope.record.instructions.file import VERSION, parse_trace
from rtscope.record.instructions.section import RecordKind

FORMAT = Path(__file__).parents[2] / "format"
FIRST = [kind for kind in RecordKind if kind <= RecordKind.SEQUENCE]
"""Those that had files first: 0 of them is written down, too."""
TRACES = sorted(FORMAT.glob("plugin-v*/*.trace"))


def numbers_of(path: Path) -> dict[str, object]:
    trace = parse_trace(path.read_bytes())
    return {
        "arch": trace.arch,
        "cpus": trace.cpus,
        "instruction_ns": trace.instruction_ns,
        "quantum": trace.quantum,
        "sections": [
            {
                "kind": s.kind.name,
                "cpu": s.cpu,
                "latency_ns": s.latency_ns,
                "sequence": s.sequence,
                "first_ns": s.first_ns,
                "last_ns": s.last_ns,
                "cut": s.cut,
                "records": {
                    kind.name: number
                    for kind in RecordKind
                    # Kinds that came later are in no file from before.
                    if (number := int((s.kinds == kind).sum())) or kind in FIRST
                },
                "begins": [int(s.at_ns[0]), int(s.cpus[0]), int(s.values[0])],
                "values": sum(int(value) for value in s.values),
            }
            for s in trace.sections
        ],
    }


@pytest.mark.parametrize("path", TRACES, ids=lambda p: p.relative_to(FORMAT).as_posix())
def test_a_recorded_trace_still_says_what_it_said(path: Path, rewrite: bool) -> None:
    expected = path.parent / "expected.json"
    numbers = json.loads(expected.read_text()) if expected.exists() else {}
    if rewrite and path.name not in numbers:
        numbers[path.name] = numbers_of(path)
        expected.write_text(json.dumps(numbers, indent=1, sort_keys=True) + "\n")
    assert numbers[path.name] == numbers_of(path)


def test_there_is_a_trace_of_every_version() -> None:
    versions = [f"plugin-v{version}" for version in range(2, VERSION + 1)]
    assert sorted({path.parent.name for path in TRACES}) == versions
