"""The page of the record of a run."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from classpages import HEAD, field_rows
from rtscope.record.model import RunRecord

SRC = Path(__file__).parents[2] / "src" / "rtscope"

# What the doc strings of the record leave to the name of the field.
WORDS: Mapping[str, str] = {
    "RunRecord.schema": "Version of this format.",
    "RunRecord.rtscope": "Version of the program that wrote it.",
    "RunRecord.campaign": "The resolved campaign: every key with its value.",
    "RunRecord.host_duration_s": "Duration of the run on the host, load and facts "
    "included, in seconds.",
    "RunRecord.facts_before": "Facts of the machine before the load was started.",
    "RunRecord.facts_after": "The same facts after the load had ended.",
    "RunRecord.result_digest": "SHA-256 over what was measured; equal ones are the "
    "same measurement.",
    "RunRecord.kernel_digest": "Identity of a kernel that rtscope built; else null.",
    "Run.id": "Name of the run and of its directory.",
    "Run.target": "`local`, `ssh:HOST` or `lab:PLACE`.",
    "Run.load": "A name from [the loads](loads.md).",
    "Run.event": "An event from [the events](events.md); left out for `timer`.",
    "Run.repetition": "From 1.",
    "Run.policy": "Of the measuring threads.",
    "Run.priority": "Of the measuring threads; 0 for policies without one.",
    "Run.interval_ns": "Time between two wake-ups.",
    "Run.duration_ns": "How long was to be measured.",
    "FactValue.value": "Null if unknown.",
    "FactValue.reason": "Reason for a missing value.",
    "LoadRecord.name": "A name from [the loads](loads.md).",
    "LoadRecord.version": "Of stress-ng, if it was used.",
    "LoadRecord.ticks": "Once a second: processes and CPU time.",
    "LoadRecord.end": "How it ended.",
    "LoadRecord.log_tail": "The last words of its output.",
    "Caveat.id": "A name from [the caveats](caveats.md).",
    "Caveat.detail": "This run's own figures or names.",
}

PAGE_HEAD = """\
# The record of a run

`rtscope run --out DIR` writes:

| file | what it is |
|---|---|
| `DIR/campaign.json` | the resolved campaign, and the command to repeat it |
| `DIR/runs/ID/record.json` | a run that was measured to its end |
| `DIR/runs/ID/audit.json` | how the machine was set up when the run began |
| `DIR/runs/ID/interrupted.json` | a run that was not; `--resume` measures it again |
| `DIR/unfinished/ID.jsonl` | ticks and maxima of a run whose agent told nothing else |
| `DIR/report.html` | the report, made from the records |

A record is written as a whole or not at all, and never edited.
If a machine was lost, `result.stopped` is `lost`, and null stands for what the agent \
would have told at its end.
A record of another schema is refused, never guessed at.
Its parts that are lines of the agent are described in \
[the contract](../../format/README.md)."""


def record_page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield PAGE_HEAD
    schema = TypeAdapter(RunRecord).json_schema()
    schemas = {"RunRecord": schema, **schema["$defs"]}
    for file, classes in (
        ("record/model.py", ("RunRecord", "Run", "LoadRecord")),
        ("machine/facts.py", ("FactValue",)),
        ("record/caveats/catalogue.py", ("Caveat",)),
    ):
        for node in ast.parse((SRC / file).read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name in classes:
                yield from _class(node, schemas[node.name]["properties"])


def _class(node: ast.ClassDef, schemas: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"## {node.name}", "", ast.get_docstring(node) or "", "", *HEAD)
    yield from field_rows(node, schemas, WORDS, _linked)


def _linked(name: str, kind: str) -> str:
    inner = re.sub(r"^(list|table) of: ", "", kind)
    here = {"Run", "LoadRecord", "FactValue", "Caveat"}
    if inner in here:
        return f"See [{inner}](#{inner.lower()})."
    if inner in ("Hello", "Tick", "AgentResult", "KernelMessage"):
        return "See [the contract](../../format/README.md)."
    raise SystemExit(f"tools/docs/recordpage.py: WORDS says nothing about {name}")
