"""A Reader that asks the agent on the target: one round trip for many files."""

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rtscope.contract import AgentError, FileLine, Line
from rtscope.host.errors import ContractError, TargetError
from rtscope.machine.reader import MAX_FILE_BYTES, Content, Denied, Missing, answer_from

RunAgent = Callable[[Sequence[str]], Iterable[Line]]
"""Runs the agent to its end with these arguments and gives its lines."""

# dropbear takes commands of 9000 bytes (MAX_CMD_LEN); a character may travel as five.
MAX_PATHS_BYTES = 3000


class AgentReader:
    """Reads files of a board through `rtscope-agent read`."""

    def __init__(self, run_agent: RunAgent) -> None:
        self._run_agent = run_agent

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        """
        Read files, patterns included; see `machine.reader.Reader`.

        Raises TargetError if the agent cannot run or leaves a path unanswered,
        ContractError for an invalid answer.
        """
        received: dict[str, Content] = {}
        for some in _batches(list(dict.fromkeys(paths))):
            for line in self._run_agent(["read", "--", *some]):
                if isinstance(line, AgentError):
                    raise TargetError(line.message)
                if isinstance(line, FileLine):
                    received[line.path] = content_of(line)
        contents: dict[str, Content] = {}
        for path in paths:
            contents.update(_answer(path, received))
        return contents


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        if batch and size + len(path) >= MAX_PATHS_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += len(path) + 1
    if batch:
        yield batch


def _answer(path: str, received: Mapping[str, Content]) -> Mapping[str, Content]:
    """Return the contents for a path, or for all matches of a pattern."""
    if path not in received and not any(character in path for character in "*?["):
        raise TargetError(f"the agent did not answer for {path!a}")
    return answer_from(received, path)


def content_of(line: FileLine) -> Content:
    """Return the content of the file in the line; ContractError for invalid base64."""
    if line.status == "missing":
        return Missing()
    if line.status == "denied":
        return Denied(line.reason)
    try:
        content = base64.b64decode(line.base64, validate=True)
    except binascii.Error as error:
        raise ContractError(
            f"the agent sent invalid base64 for {line.path!a}"
        ) from error
    return content[:MAX_FILE_BYTES]
