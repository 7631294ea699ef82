"""The only reader of the lines that the agent writes; `format/README.md` has each."""

from functools import cache
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from rtscope.contract.commands import (
    Applied,
    DemoBegin,
    DemoEnd,
    DemoEvents,
    DiskLine,
    FileLine,
    Keeping,
    LoadEnd,
    LoadHello,
    LoadTick,
    LoadWindow,
    Refused,
    Restored,
    TaskLine,
    TasksEnd,
    Tuned,
)
from rtscope.contract.measurement import (
    AgentError,
    AgentResult,
    Hello,
    KernelMessage,
    Samples,
    Started,
    Tick,
    TraceFile,
    TracePages,
    WorstSoFar,
)
from rtscope.contract.threads import Growth
from rtscope.contract.values import MAX_LINE_BYTES
from rtscope.contract.watching import (
    CycleRuns,
    CyclesBegin,
    CyclesEnd,
    WatchBegin,
    WatchedThread,
    WatchEnd,
    WatchExecuted,
    WatchSample,
)
from rtscope.host.errors import ContractError
from rtscope.host.files import first_mistake
from rtscope.host.files.documents import JsonShape

Line = Annotated[
    Hello
    | Started
    | Growth
    | Tick
    | WorstSoFar
    | KernelMessage
    | AgentResult
    | AgentError
    | LoadHello
    | LoadTick
    | LoadWindow
    | LoadEnd
    | FileLine
    | DiskLine
    | Keeping
    | Restored
    | TaskLine
    | TasksEnd
    | Applied
    | Refused
    | Tuned
    | TraceFile
    | TracePages
    | Samples
    | WatchBegin
    | WatchSample
    | WatchExecuted
    | WatchedThread
    | WatchEnd
    | CyclesBegin
    | CycleRuns
    | CyclesEnd
    | DemoBegin
    | DemoEvents
    | DemoEnd,
    Field(discriminator="type"),
]


@cache
def _line_shape() -> JsonShape[Line]:
    return JsonShape(TypeAdapter(Line))


def parse_line(line: bytes) -> Line:
    """Read one line of the agent; raise ContractError if it is not one."""
    if len(line) > MAX_LINE_BYTES:
        raise ContractError(f"the agent wrote a line of {len(line)} bytes")
    try:
        agent_line = _line_shape().read(line)
    except ValidationError as error:
        raise ContractError(
            "the agent wrote a line that breaks its contract: "
            f"{first_mistake(error, whole='line')} "
            f"(in {line[:60].decode('utf-8', 'replace')!a})"
        ) from error
    if isinstance(agent_line, AgentResult) and any(
        t.foreign for t in agent_line.threads
    ):
        raise ContractError("the agent wrote a thread of another tool")
    return agent_line


def dump_line(line: Line) -> bytes:
    """Write a line as the agent would: the inverse of `parse_line`."""
    return _line_shape().write(line)
