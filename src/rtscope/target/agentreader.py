"""A Reader that asks the agent on the target: one round trip for many files."""

import base64
import binascii
import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence

from rtscope.contract import AgentError, FileLine, Line
from rtscope.errors import ContractError, TargetError
from rtscope.reading import MAX_FILE_BYTES, Content, Denied, Missing

RunAgent = Callable[[Sequence[str]], Iterable[Line]]
"""Runs the agent to its end with these arguments and gives its lines."""


class AgentReader:
    """Reads files of a board through `rtscope-agent read`."""

    def __init__(self, run_agent: RunAgent) -> None:
        self._run_agent = run_agent

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        """Read files, patterns included; TargetError if the agent cannot run."""
        if not paths:
            return {}
        found: dict[str, Content] = {}
        for line in self._run_agent(["read", "--", *paths]):
            if isinstance(line, AgentError):
                raise TargetError(line.message)
            if isinstance(line, FileLine):
                found[line.path] = _content(line)
        missing: dict[str, Content] = {
            path: Missing()
            for path in paths
            if not any(fnmatch.fnmatchcase(name, path) for name in found)
        }
        return {**missing, **found}


def _content(line: FileLine) -> Content:
    if line.status == "missing":
        return Missing()
    if line.status == "denied":
        return Denied(line.reason)
    try:
        content = base64.b64decode(line.base64, validate=True)
    except binascii.Error as error:
        raise ContractError(f"the agent garbled {line.path!a}") from error
    return content[:MAX_FILE_BYTES]
