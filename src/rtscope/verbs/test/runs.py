"""What each boot of a test gave besides times: output, end, identity. As JSON."""

from collections.abc import Mapping
from typing import Any

from rtscope.boards.runs.program import Output, ProgramStart
from rtscope.verbs.test.running import Ran


def run_row(ran: Ran) -> Mapping[str, Any]:
    """Return a boot for a JSON document."""
    return {
        "load": ran.boot.load,
        "virtual": ran.run.identity.row(),
        "inputs_digest": ran.run.inputs_digest,
        "caveats": [{"id": one.id, "detail": one.detail} for one in ran.run.caveats],
        "starts": [_start_row(one) for one in ran.run.starts],
    }


def _start_row(start: ProgramStart) -> Mapping[str, Any]:
    return {
        "number": start.number,
        "stopped": start.stopped,
        "status": start.status,
        "signal": start.signal,
        "lasted_ns": start.lasted_ns,
        "stdout": _output_row(start.stdout),
        "stderr": _output_row(start.stderr),
    }


def _output_row(output: Output) -> Mapping[str, Any]:
    return {
        "text": output.text,
        "bytes": output.size,
        "cut_bytes": output.cut_bytes,
        "refused": output.refused,
    }
