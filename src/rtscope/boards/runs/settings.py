"""
Choose the settings of `--tuned` for a virtual board; each kernel is inspected once.

The inspection is a boot of its own, so that reading the files costs the measured boot
nothing. Equal boards show equal files: what is chosen depends on declared inputs alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.guestfiles import GuestFiles
from rtscope.boards.runs.inspect import inspect_guest
from rtscope.contract import sha256_of_json
from rtscope.host.process import Progress
from rtscope.machine.audit.catalogue import catalogue
from rtscope.machine.audit.examine import paths
from rtscope.machine.audit.model import CheckKind
from rtscope.machine.settings.remedies import TuningPlan, tunable
from rtscope.measure.settings import planned_for, refuse_missing


@dataclass(slots=True)
class GuestInspections:
    """The files of boards, each of which boots once for them."""

    progress: Progress
    known: dict[str, GuestFiles] = field(default_factory=dict)
    """By kernel, board and kernel parameters."""

    def files(self, prepared: Prepared) -> GuestFiles:
        """Return the files that any remedy asks for; BoardError if it does not boot."""
        board = prepared.board
        key = sha256_of_json([prepared.kernel.digest, board.name, list(board.append)])
        if key not in self.known:
            kinds = [*tunable(), catalogue()["irqbalance"]]
            settings = [one.file for kind in kinds for one in kind.apply]
            wanted = list(dict.fromkeys([*paths(kinds), *settings]))
            seen = inspect_guest(prepared, wanted, window_ns=0, progress=self.progress)
            self.known[key] = seen.reader
        return self.known[key]


def settings_for(
    prepared: Prepared,
    kinds: Sequence[CheckKind],
    inspections: GuestInspections,
    *,
    named: Sequence[str],
    cpus: tuple[int, ...] | None,
) -> TuningPlan:
    """
    Return the changes that remedy these checks on a board.

    Raises TargetError if a check that is `named` cannot be remedied.
    """
    _, planned = planned_for(inspections.files(prepared), kinds, cpus=cpus)
    refuse_missing(prepared.board.name, named, planned.impossible)
    return planned
