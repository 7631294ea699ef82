"""On which CPUs threads of a program were, by its record. Pure."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rtscope.programs.outside.file import Kind, ProgramRecord
from rtscope.programs.outside.model import OutsideCycle

_TELLING = frozenset((Kind.IN, Kind.FIRST, Kind.OUT, Kind.CALL))
"""Records of the CPU that their thread is on."""


class CpusOfThreads:
    """Finds the CPUs of cycles: one pass over a record, when it is asked first."""

    def __init__(self, record: ProgramRecord) -> None:
        self._record = record

    @cached_property
    def _seen(self) -> Mapping[int, NDArray[np.int64]]:
        seen: dict[int, list[tuple[int, int]]] = {}
        for one in self._record.entries:
            if one.kind in _TELLING:
                seen.setdefault(one.tid, []).append((one.at_ns, one.cpu))
        return {tid: np.array(sorted(rows), np.int64) for tid, rows in seen.items()}

    def of(self, tid: int, cycle: OutsideCycle) -> tuple[int, ...]:
        """Return on which CPUs a thread executed a cycle, ascending."""
        if tid not in self._seen:
            return ()
        at_ns, cpus = self._seen[tid].T
        first = np.searchsorted(at_ns, cycle.woken_ns, "left")
        last = np.searchsorted(at_ns, cycle.done_ns, "right")
        return tuple(np.unique(cpus[first:last]).tolist())
