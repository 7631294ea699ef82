"""
From the records of a program to what each thread did between two sleeps. Pure.

Two CPUs are in step to two quanta only: a wake-up by another CPU may stand in the
record before the sleep that it ends. Times of one thread on one CPU are exact.
"""

from dataclasses import dataclass, field

from rtscope.programs.calls import names_of_calls
from rtscope.programs.outside.file import Entry, Kind, ProgramRecord, name_of

UNKNOWN_NS = -(1 << 63)
"""Of a release: the kernel was writing its clock when it was to be read."""

TIMER_ABSTIME = 1

_SLEEPING = 0
_PREEMPTED = 1
_UNINTERRUPTIBLE = 0x1002
"""Bits of a state: TASK_UNINTERRUPTIBLE, and TASK_RTLOCK_WAIT of PREEMPT_RT."""
_BY_INTERRUPT = 1


@dataclass(frozen=True, slots=True)
class Party:
    """A thread, of the program or another, as it was called then."""

    tid: int
    name: str
    own: bool
    """Of the program."""
    prio: int | None = None
    """The kernel's: below 100 real-time; None: not seen."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """A time in which a thread was ready, and another one had its CPU."""

    by: Party
    began_ns: int
    ended_ns: int


@dataclass(slots=True)
class Call:
    """A system call."""

    number: int
    name: str
    arguments: tuple[int, int, int]
    began_ns: int
    ended_ns: int | None = None
    """None: the thread is still in it."""
    result: int | None = None
    asked_ns: int | None = None
    """Of clock_nanosleep: the time that it asks for, of its own clock."""
    slept: bool = False
    user_before: int = 0
    """Own instructions of the wake-up until the call."""
    on_cpu_before_ns: int = 0
    """Time on a CPU of the wake-up until the call."""
    place: int = 0
    """The number of its stack; 0: it has none."""


@dataclass(slots=True)
class Use:
    """A call of a function of the program that was asked for."""

    function: int
    """Its number."""
    place: int
    """The number of its stack; 0: it has none."""
    began_ns: int
    ended_ns: int | None = None
    """None: it did not return."""


@dataclass(slots=True)
class Wakeup:
    """What a thread did from a wake-up to the next sleep; virtual ns."""

    cpu: int
    woken_ns: int
    waker: Party | None
    """None: unknown, itself, or a timer."""
    release_ns: int | None
    """When the timer that woke it was due; None: no timer did, or it was not seen."""
    expires_ns: int | None
    """The same by CLOCK_MONOTONIC, exact."""
    in_ns: int = 0
    first_ns: int | None = None
    """Its first own instruction; None: it executed none."""
    asleep_ns: int | None = None
    """None: it had not gone to sleep at the end of the record."""
    on_cpu_ns: int = 0
    user_instructions: int = 0
    preemptions: list[Preemption] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    faults: list[Entry] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    wait: Call | None = None
    """The call in which it went to sleep; None: in none (a page fault, a lock)."""
    exited: bool = False
    prio: int = 0
    behind: Party | None = None
    """Who had its CPU before it."""
    held_by: Party | None = None
    """Who held what it slept for; None: unknown."""
    after: Call | None = None
    """The call in which it slept before it was woken."""
    uninterruptible: bool = False
    """No signal would end the sleep behind it: it waits for the kernel or a device."""
    by_interrupt: bool = False
    """What woke it had interrupted who seems to have done it."""


@dataclass(slots=True)
class OwnThread:
    """A thread of the program."""

    tid: int
    process: int
    names: list[str] = field(default_factory=list)
    wakeups: list[Wakeup] = field(default_factory=list)
    began_ns: int = 0
    exit_ns: int | None = None
    """None: it did not end."""
    parent: int = 0

    @property
    def name(self) -> str:
        """Its last name."""
        return self.names[-1] if self.names else ""


@dataclass(slots=True)
class _State:
    thread: OwnThread
    now: Wakeup | None = None
    """None: it sleeps."""
    in_entry: Entry | None = None
    out_ns: int = 0
    out_state: int = 0
    """The kernel's, as it left its CPU."""
    pushed_by: Party | None = None
    """Who has its CPU while it is ready."""
    undecided: bool = False
    """It left its CPU, and whether it sleeps is not known."""
    woken: tuple[int, Party | None] | None = None
    by_interrupt: bool = False
    activated: bool = False
    """That wake-up put it into a queue: it did sleep."""
    release: Entry | None = None
    due: Entry | None = None
    """The release with which its last wake-up began."""
    call: Call | None = None
    last_wait: Call | None = None
    held: Party | None = None
    use: Use | None = None
    """The function that has not returned."""


class Reader:
    """Goes through the records of a program once."""

    def __init__(self, record: ProgramRecord) -> None:
        self.record = record
        self._slack_ns = 2 * record.quantum_ns
        self._activates = Kind.ACTIVATE in record.kinds
        self._calls = names_of_calls(record.arch)
        self._names: dict[int, str] = {}
        self._prios: dict[int, int] = {}
        self._own: dict[int, _State] = {}
        self._gone: list[OwnThread] = []
        for entry in record.entries:
            self._take(entry)
        self.end_ns = max((one.at_ns for one in record.entries), default=0)

    @property
    def threads(self) -> tuple[OwnThread, ...]:
        """All threads of the program, in the order of their begin."""
        known = [*self._gone, *(one.thread for one in self._own.values())]
        return tuple(sorted(known, key=lambda one: (one.began_ns, one.tid)))

    # --- one record -------------------------------------------------------------------

    def _take(self, entry: Entry) -> None:
        match entry.kind:
            case Kind.THREAD:
                self._thread(entry)
            case Kind.NAME:
                self._name(entry)
            case _ if (state := self._own.get(entry.tid)) is not None:
                self._of_own(state, entry)

    def _thread(self, entry: Entry) -> None:
        self._names.pop(entry.tid, None)
        self._prios.pop(entry.tid, None)
        if (old := self._own.pop(entry.tid, None)) is not None:
            self._gone.append(old.thread)
        if not entry.user:
            return
        thread = OwnThread(
            entry.tid,
            entry.detail,
            began_ns=entry.at_ns,
            parent=entry.value & 0xFFFFFFFF,
        )
        state = _State(thread)
        if not thread.parent:  # the process that was marked, which executes
            state.now = Wakeup(entry.cpu, entry.at_ns, None, None, None)
            state.now.in_ns = entry.at_ns
            thread.wakeups.append(state.now)
        self._own[entry.tid] = state

    def _name(self, entry: Entry) -> None:
        name = name_of(entry)
        self._names[entry.tid] = name
        if state := self._own.get(entry.tid):
            state.thread.names.append(name)

    def _of_own(self, state: _State, entry: Entry) -> None:
        if entry.kind == Kind.EXIT:
            state.thread.exit_ns = entry.at_ns
        match entry.kind:
            case Kind.WAKE:
                self._wake(state, entry)
            case Kind.IN:
                self._in(state, entry)
            case Kind.OUT:
                self._out(state, entry)
            case Kind.HELD:
                state.held = self._party(entry.value & 0xFFFFFFFF)
            case Kind.ACTIVATE:
                state.activated = True
            case Kind.RELEASE if self._may_be_woken(state):
                state.release = entry
            case Kind.CALL | Kind.ARGUMENTS | Kind.ASKED | Kind.RETURN:
                self._call(state, entry)
            case _:
                _in_wakeup(state, entry)

    def _party(self, tid: int) -> Party | None:
        if not tid:
            return None
        return Party(
            tid, self._names.get(tid, ""), tid in self._own, self._prios.get(tid)
        )

    def _wake(self, state: _State, entry: Entry) -> None:
        if state.undecided:
            self._sleeps(state, state.out_ns)
        if self._may_be_woken(state):
            # what a timer interrupts has nothing to do with it
            timed = state.release is not None
            by = None if timed else self._party(entry.value & 0xFFFFFFFF)
            state.woken = (entry.at_ns, by)
            state.by_interrupt = entry.detail == _BY_INTERRUPT
            state.activated = False

    def _may_be_woken(self, state: _State) -> bool:
        """
        Return whether a wake-up may be the one that ends the sleep.

        One before it may have met a thread that did not sleep, as where that spins for
        a lock: it put none into a queue.
        """
        return state.woken is None or (self._activates and not state.activated)

    def _in(self, state: _State, entry: Entry) -> None:
        self._prios[entry.tid] = _signed32(entry.detail)
        if state.now is None:
            self._begins(state, entry)
        elif state.pushed_by is not None:
            state.now.preemptions.append(
                Preemption(state.pushed_by, state.out_ns, entry.at_ns)
            )
        state.undecided, state.pushed_by = False, None
        state.in_entry = entry

    def _begins(self, state: _State, entry: Entry) -> None:
        woken, release = state.woken, state.release
        if woken is None:
            woken = (entry.at_ns, None)
        if release is not None and release.signed == UNKNOWN_NS:
            release = None
        release = release or _of_the_same_call(state)
        state.due = release
        state.now = Wakeup(
            entry.cpu,
            min(woken[0], entry.at_ns),
            woken[1],
            None if release is None else release.signed,
            None if release is None else release.expires_ns,
            in_ns=entry.at_ns,
            prio=self._prios[entry.tid],
            after=state.last_wait,
            behind=self._party(entry.value & 0xFFFFFFFF),
            held_by=state.held,
            by_interrupt=woken[1] is not None and state.by_interrupt,
        )
        state.held = None
        state.thread.wakeups.append(state.now)
        state.woken = state.release = None

    def _out(self, state: _State, entry: Entry) -> None:
        if state.now is not None:
            used = _used(state, state.now, entry)
            state.now.on_cpu_ns, state.now.user_instructions = used
        state.out_ns = entry.at_ns
        state.out_state = entry.value & 0xFFFFFFFF
        if entry.detail == _SLEEPING:
            self._sleeps(state, entry.at_ns)
            return
        state.pushed_by = self._party(entry.value >> 32)
        state.undecided = entry.detail != _PREEMPTED
        state.woken = state.release = None

    def _sleeps(self, state: _State, at_ns: int) -> None:
        if state.now is not None:
            state.now.asleep_ns, state.now.wait = at_ns, state.call
            state.now.uninterruptible = bool(state.out_state & _UNINTERRUPTIBLE)
            if state.call is not None:
                state.call.slept = True
        state.last_wait = state.call
        state.now, state.undecided, state.pushed_by = None, False, None
        # one that another CPU gave before it slept, by its own time
        if state.woken is not None and state.woken[0] < at_ns - self._slack_ns:
            state.woken = state.release = None

    def _call(self, state: _State, entry: Entry) -> None:
        call = state.call
        if entry.kind == Kind.CALL:
            name = self._calls.get(entry.detail, f"system call {entry.detail}")
            state.call = Call(entry.detail, name, (entry.value, 0, 0), entry.at_ns)
            if state.now is not None:
                used = _used(state, state.now, entry)
                state.call.on_cpu_before_ns, state.call.user_before = used
                state.now.calls.append(state.call)
        elif call is None:
            return
        elif entry.kind == Kind.ARGUMENTS:
            call.arguments = (call.arguments[0], entry.value, entry.user)
            call.place = entry.place
        elif entry.kind == Kind.ASKED:
            call.asked_ns = entry.signed
        else:
            call.ended_ns, call.result = entry.at_ns, entry.signed
            state.call = None


def _of_the_same_call(state: _State) -> Entry | None:
    """Return the release of a wake-up that slept again before it left the kernel."""
    before = state.thread.wakeups[-1] if state.thread.wakeups else None
    if before is None or before.first_ns is not None or before.wait is None:
        return None
    return state.due if before.wait is before.after else None


def _used(state: _State, now: Wakeup, entry: Entry) -> tuple[int, int]:
    """Return the time on a CPU in ns, and the own instructions, of a wake-up so far."""
    begin = state.in_entry
    began_ns = now.in_ns if begin is None else begin.at_ns
    on_cpu_ns = now.on_cpu_ns + max(0, entry.at_ns - began_ns)
    if begin is None or begin.cpu != entry.cpu:
        return on_cpu_ns, now.user_instructions
    return on_cpu_ns, now.user_instructions + max(0, entry.user - begin.user)


def _in_wakeup(state: _State, entry: Entry) -> None:
    now = state.now
    if entry.kind == Kind.DONE and state.use is not None:
        state.use.ended_ns, state.use = entry.at_ns, None
    if now is None:
        return
    if entry.kind == Kind.FIRST and now.first_ns is None:
        now.first_ns = entry.at_ns
    elif entry.kind == Kind.FAULT:
        now.faults.append(entry)
    elif entry.kind == Kind.USED:
        state.use = Use(entry.function, entry.place, entry.at_ns)
        now.uses.append(state.use)
    elif entry.kind == Kind.EXIT:
        now.exited = True


def _signed32(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
