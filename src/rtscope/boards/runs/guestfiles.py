"""Files that the agent of a board has read, as the files of a machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import Booted
from rtscope.contract import FileLine
from rtscope.machine.reader import Content, answer_from
from rtscope.machine.target.agentreader import content_of


@dataclass(frozen=True, slots=True)
class GuestFiles:
    """A Reader over the files that the board's agent has read."""

    files: Mapping[str, Content]

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        """Return those files; others are missing."""
        contents: dict[str, Content] = {}
        for path in paths:
            contents |= answer_from(self.files, path)
        return contents


def files_of(prepared: Prepared, booted: Booted, name: str) -> GuestFiles:
    """Return what the agent of a board has read, and its kernel's configuration."""
    files: dict[str, Content] = {}
    for line in booted.lines(name):
        if isinstance(line, FileLine):
            files[line.path] = content_of(line)
    kernel = prepared.kernel
    if kernel.config is not None and kernel.release is not None:
        files[f"/boot/config-{kernel.release}"] = kernel.config.read_bytes()
    return GuestFiles(files)
