"""
The contract between agent and host: JSON Lines in, frozen values out.

`format/README.md` describes every line type; this package is its only reader.
All times are int64 nanoseconds of CLOCK_MONOTONIC on the target. Whatever does
not fit the contract raises ContractError: a damaged result must never become a
number. Unknown keys are ignored, so that an older host reads a newer agent of the
same schema.
"""

from rtscope.contract.digest import result_digest, sha256_of_json
from rtscope.contract.lines import (
    MAX_LINE_BYTES,
    AgentError,
    AgentResult,
    Applied,
    ClockCost,
    DiskLine,
    FileLine,
    Hello,
    Keeping,
    KernelMessage,
    KernelThread,
    Line,
    LoadEnd,
    LoadHello,
    LoadTick,
    Machine,
    Refused,
    Restored,
    ThreadResult,
    Tick,
    TickCpu,
    Tuned,
    Wakeup,
    WorstSoFar,
    dump_line,
    parse_line,
)
from rtscope.contract.tasks import DeadlineParameters, TaskLine, TasksEnd
from rtscope.contract.tracing import (
    Around,
    CpuRuns,
    KeptTrace,
    TracedCpu,
    TraceFile,
    TracePages,
    Tracing,
)
from rtscope.contract.values import (
    HIST_MAX_BITS,
    HIST_SUB_BITS,
    Count,
    CounterDelta,
    CpuTime,
    Text,
    bucket_width_ns,
    is_bucket_low,
)

__all__ = [
    "HIST_MAX_BITS",
    "HIST_SUB_BITS",
    "MAX_LINE_BYTES",
    "AgentError",
    "AgentResult",
    "Applied",
    "Around",
    "ClockCost",
    "Count",
    "CounterDelta",
    "CpuRuns",
    "CpuTime",
    "DeadlineParameters",
    "DiskLine",
    "FileLine",
    "Hello",
    "Keeping",
    "KeptTrace",
    "KernelMessage",
    "KernelThread",
    "Line",
    "LoadEnd",
    "LoadHello",
    "LoadTick",
    "Machine",
    "Refused",
    "Restored",
    "TaskLine",
    "TasksEnd",
    "Text",
    "ThreadResult",
    "Tick",
    "TickCpu",
    "TraceFile",
    "TracePages",
    "TracedCpu",
    "Tracing",
    "Tuned",
    "Wakeup",
    "WorstSoFar",
    "bucket_width_ns",
    "dump_line",
    "is_bucket_low",
    "parse_line",
    "result_digest",
    "sha256_of_json",
]
