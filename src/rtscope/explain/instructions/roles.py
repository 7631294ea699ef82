"""
The roles of functions: those of Linux 6.1 to 7.x on x86-64, arm64 and riscv64. Pure.

`roles.toml` has the names of the functions with a role; `calls.role_of` reads it.
"""

from enum import Enum, auto


class Role(Enum):
    """What a function is, of the few that matter here."""

    # Millions of runs ask for the roles they are within: Enum's own is in Python.
    __hash__ = object.__hash__

    INTERRUPT = auto()
    """Entry of a hardware interrupt."""
    TRAP = auto()
    """Entry of an interrupt, a fault or a system call: its callees show which."""
    SOFTIRQ = auto()
    SCHEDULE = auto()
    PREEMPT = auto()
    """Calls the scheduler because another thread is to run."""
    SWITCH = auto()
    IDLE = auto()
    TIMER = auto()
    """Runs the timers that expire in hard interrupt context."""
    TICK = auto()
    """Runs the timers from the tick, where high-resolution timers are off."""
    SOFT_TIMER = auto()
    """Runs the others: those of threads that are not real-time, on PREEMPT_RT."""
    UNTHROTTLE = auto()
    """Gives the real-time threads of a CPU their time for the next period."""
    ENQUEUE = auto()
    """Puts a real-time thread among those that want to run."""
    ENQUEUE_FAIR = auto()
    """The same for a thread that is not real-time."""
    RESCHEDULE = auto()
    """Says that the running thread has to give way."""
    FAIR_SERVER = auto()
    """Chooses an ordinary thread before all real-time ones, since Linux 6.8."""
    PICK_REALTIME = auto()
    """Chooses among the real-time threads."""
    PICK_FAIR = auto()
    """The same among those that are not real-time."""
    WAKE = auto()
    """A sleeping thread's timer has expired."""
    SLEEP = auto()
    """Lets a thread sleep until a timer expires."""
    OVERDUE = auto()
    """Has a timer expire at once that was due when it was armed."""
    LOCK = auto()
    PROBE = auto()
    """Leads to the handler of a probe or a tracer, and back."""
    FAULT = auto()
    SYSCALL = auto()
    READ_CLOCK = auto()
    """The system call by which a program reads a clock."""
    DISPATCH = auto()
    """Leads from the entry of an interrupt to its handler, and back."""
    DELIVER = auto()
    """Hands a received packet to whoever asked for such: of no interrupt by itself."""
    OTHER = auto()
