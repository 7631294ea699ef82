"""What was read of a machine at one time: its files, and the kernel they tell of."""

from collections.abc import Mapping
from dataclasses import dataclass

from rtscope.machine.kernelidentity import KernelIdentity
from rtscope.machine.reader import Content, Denied, Missing, paths_matching, text_of


@dataclass(frozen=True, slots=True)
class MachineSnapshot:
    """A machine's files as they were read, by path; what was never read is missing."""

    files: Mapping[str, Content]
    kernel: KernelIdentity

    def content(self, path: str) -> Content:
        """Return what reading a file gave."""
        return self.files.get(path, Missing())

    def text(self, path: str) -> str | None:
        """Return a file's text without white space and NUL at its ends."""
        text = text_of(self.content(path))
        return None if text is None else text.strip("\0 \t\r\n")

    def raw(self, path: str) -> bytes | None:
        """Return a file's bytes, None if they could not be read."""
        content = self.content(path)
        return content if isinstance(content, bytes) else None

    def exists(self, path: str) -> bool:
        """Whether the file is there, readable or not."""
        return not isinstance(self.content(path), Missing)

    def matching(self, pattern: str) -> Mapping[str, str]:
        """Return the texts of the files that a pattern stands for, by path."""
        return {
            path: text
            for path in paths_matching(pattern, self.files)
            if (text := self.text(path)) is not None
        }

    def refusals(self, pattern: str) -> Mapping[str, str]:
        """Return why files of a pattern could not be read, by path."""
        # A pattern whose directory was refused is answered under its own name.
        return {
            path: content.reason
            for path in paths_matching(pattern, self.files)
            if isinstance(content := self.files[path], Denied)
        }
