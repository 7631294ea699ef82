"""
A second pass for paths that the recorder's ring was too short for.

A delay of some ms of busy CPUs has more blocks than the ring of each boot. The board
does the same again, with a longer ring; so its paths are whole, and the record of the
run has them from the beginning.
"""

from collections.abc import Callable
from dataclasses import replace

from rtscope.boards.parts.qemu import Recording
from rtscope.boards.runs.boot import Booted
from rtscope.contract import AgentResult, result_digest
from rtscope.host.errors import BoardError, ContractError
from rtscope.record.instructions.file import parse_trace
from rtscope.record.instructions.section import SectionKind

RING = 1 << 24
"""Records of 16 bytes, four times those of each boot: 256 MB of memory."""
ROOM = 1 << 24
"""Of all paths together: 256 MB, unpacked, are the most that the second pass adds."""

Boot = Callable[[Recording], Booted]


def with_whole_paths(
    booted: Booted,
    recording: Recording | None,
    boot: Boot,
    *,
    stopped: Callable[[], bool],
) -> Booted:
    """
    Return a boot with the paths of a second one, if its own were cut.

    Only the paths: they are of the same run, or the first ones stay. So they do if the
    second boot fails, as with too little memory; a caveat then tells it. The host time
    is that of both boots. Raises BoardError if the second boot was `stopped`.
    """
    if recording is None or not is_cut(booted):
        return booted
    try:
        again = boot(replace(recording, ring=RING, room=ROOM))
    except BoardError:
        if stopped():
            raise
        return booted
    both_s = round(booted.host_seconds + again.host_seconds, 3)
    same = _digests(booted) and _digests(booted) == _digests(again)
    stream = again.stream if same and again.stream else booted.stream
    return replace(booted, stream=stream, host_seconds=both_s)


def is_cut(booted: Booted) -> bool:
    """Return whether the ring was too short for the path of a worst wake-up."""
    if booted.stream is None:
        return False
    try:
        sections = parse_trace(booted.stream).sections
    except ContractError:  # whoever keeps the stream says so
        return False
    return any(s.cut for s in sections if s.kind is SectionKind.WORST)


def _digests(booted: Booted) -> list[str]:
    try:
        lines = list(booted.lines("measure.jsonl"))
    except ContractError:
        return []
    return [result_digest(one.threads) for one in lines if isinstance(one, AgentResult)]
