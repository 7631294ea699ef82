"""
The contract between agent and host: JSON Lines in, frozen values out.

`format/README.md` describes every line type; this package is its only reader.
All times are int64 nanoseconds of CLOCK_MONOTONIC on the target. Whatever does
not fit the contract raises ContractError: a damaged result must never become a
number. Unknown keys are ignored, so that an older host reads a newer agent of the
same schema.

    lines.py        a line of the agent as a value, and back: `parse_line`, `dump_line`
    values.py       numbers and texts with their bounds, counters of the machine
    measurement.py  lines of a measurement and of its trace
    threads.py      one measured thread: histogram, its growth, counters; the digest
    commands.py     lines of loads, settings, tasks, demonstrations
    watching.py     `watch`, `cycles`: events of a program's threads
"""

from rtscope.contract.commands import Applied as Applied
from rtscope.contract.commands import DeadlineParameters as DeadlineParameters
from rtscope.contract.commands import DemoBegin as DemoBegin
from rtscope.contract.commands import DemoEnd as DemoEnd
from rtscope.contract.commands import DemoEvent as DemoEvent
from rtscope.contract.commands import DemoEvents as DemoEvents
from rtscope.contract.commands import DemoThread as DemoThread
from rtscope.contract.commands import DemoThreadEnd as DemoThreadEnd
from rtscope.contract.commands import DiskLine as DiskLine
from rtscope.contract.commands import FileLine as FileLine
from rtscope.contract.commands import Keeping as Keeping
from rtscope.contract.commands import LoadEnd as LoadEnd
from rtscope.contract.commands import LoadHello as LoadHello
from rtscope.contract.commands import LoadTick as LoadTick
from rtscope.contract.commands import LoadWindow as LoadWindow
from rtscope.contract.commands import ProcessInWindow as ProcessInWindow
from rtscope.contract.commands import Refused as Refused
from rtscope.contract.commands import Restored as Restored
from rtscope.contract.commands import TaskLine as TaskLine
from rtscope.contract.commands import TasksEnd as TasksEnd
from rtscope.contract.commands import Tuned as Tuned
from rtscope.contract.lines import Line as Line
from rtscope.contract.lines import dump_line as dump_line
from rtscope.contract.lines import parse_line as parse_line
from rtscope.contract.measurement import LOST as LOST
from rtscope.contract.measurement import AgentError as AgentError
from rtscope.contract.measurement import AgentResult as AgentResult
from rtscope.contract.measurement import Around as Around
from rtscope.contract.measurement import CpuRuns as CpuRuns
from rtscope.contract.measurement import Hello as Hello
from rtscope.contract.measurement import KeptTrace as KeptTrace
from rtscope.contract.measurement import KernelMessage as KernelMessage
from rtscope.contract.measurement import KernelThread as KernelThread
from rtscope.contract.measurement import Machine as Machine
from rtscope.contract.measurement import Samples as Samples
from rtscope.contract.measurement import Started as Started
from rtscope.contract.measurement import ThreadStarted as ThreadStarted
from rtscope.contract.measurement import Tick as Tick
from rtscope.contract.measurement import TickCpu as TickCpu
from rtscope.contract.measurement import TracedCpu as TracedCpu
from rtscope.contract.measurement import TraceFile as TraceFile
from rtscope.contract.measurement import TracePages as TracePages
from rtscope.contract.measurement import Tracing as Tracing
from rtscope.contract.measurement import WorstSoFar as WorstSoFar
from rtscope.contract.threads import FIXED_PRIORITY as FIXED_PRIORITY
from rtscope.contract.threads import REAL_TIME as REAL_TIME
from rtscope.contract.threads import ClockCost as ClockCost
from rtscope.contract.threads import CpuGrowth as CpuGrowth
from rtscope.contract.threads import ForeignBuckets as ForeignBuckets
from rtscope.contract.threads import Growth as Growth
from rtscope.contract.threads import HwlatWindows as HwlatWindows
from rtscope.contract.threads import OwnNumbers as OwnNumbers
from rtscope.contract.threads import ThreadEvent as ThreadEvent
from rtscope.contract.threads import ThreadResult as ThreadResult
from rtscope.contract.threads import TimerlatPart as TimerlatPart
from rtscope.contract.threads import Wakeup as Wakeup
from rtscope.contract.threads import bucket_low_ns as bucket_low_ns
from rtscope.contract.threads import bucket_width_ns as bucket_width_ns
from rtscope.contract.threads import is_bucket_low as is_bucket_low
from rtscope.contract.threads import require as require
from rtscope.contract.threads import result_digest as result_digest
from rtscope.contract.threads import sha256_of_json as sha256_of_json
from rtscope.contract.values import HIST_MAX_BITS as HIST_MAX_BITS
from rtscope.contract.values import HIST_SUB_BITS as HIST_SUB_BITS
from rtscope.contract.values import MAX_LINE_BYTES as MAX_LINE_BYTES
from rtscope.contract.values import Count as Count
from rtscope.contract.values import CounterDelta as CounterDelta
from rtscope.contract.values import CpuTime as CpuTime
from rtscope.contract.values import Finite as Finite
from rtscope.contract.values import Flag as Flag
from rtscope.contract.values import Text as Text
from rtscope.contract.values import Whole as Whole
from rtscope.contract.watching import BY_CPU as BY_CPU
from rtscope.contract.watching import CycleRuns as CycleRuns
from rtscope.contract.watching import CyclesBegin as CyclesBegin
from rtscope.contract.watching import CyclesEnd as CyclesEnd
from rtscope.contract.watching import EventCount as EventCount
from rtscope.contract.watching import EventTimes as EventTimes
from rtscope.contract.watching import Inversion as Inversion
from rtscope.contract.watching import Meanwhile as Meanwhile
from rtscope.contract.watching import Party as Party
from rtscope.contract.watching import Settable as Settable
from rtscope.contract.watching import Waker as Waker
from rtscope.contract.watching import WatchBegin as WatchBegin
from rtscope.contract.watching import WatchCost as WatchCost
from rtscope.contract.watching import WatchedCall as WatchedCall
from rtscope.contract.watching import WatchedEvent as WatchedEvent
from rtscope.contract.watching import WatchedThread as WatchedThread
from rtscope.contract.watching import WatchedWord as WatchedWord
from rtscope.contract.watching import WatchEnd as WatchEnd
from rtscope.contract.watching import WatchExecuted as WatchExecuted
from rtscope.contract.watching import WatchSample as WatchSample
