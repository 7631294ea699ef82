"""What an interrupt found: the functions below it in a stack that it recorded. Pure."""

import re
from collections.abc import Iterable, Sequence

from rtscope.explain.events.spans import is_exit
from rtscope.ftrace.events import Event

_ENTRY_FRAME = re.compile(
    r"asm_(sysvec|common_interrupt|spurious)|el[01]\w*_(irq|interrupt)|__irq_(svc|usr)"
    r"|handle_exception$|ret_from_exception$|do_irq$"
)
"""The functions that x86, arm64, 32-bit ARM and RISC-V enter an interrupt by."""


def stack_under(events: Iterable[Event], entered_ns: int) -> list[str] | None:
    """
    Return the functions that an interrupt found, innermost first; [] in user space.

    None if no stack was recorded in the interrupt that was entered then. `events` are
    those of one CPU.
    """
    for event in events:
        if event.at_ns < entered_ns:
            continue
        if event.name == "kernel_stack":
            return _below_the_interrupt(event.text("stack").split(" < "))
        if is_exit(event):
            return None
    return None


def _below_the_interrupt(functions: Sequence[str]) -> list[str] | None:
    entered = [bool(_ENTRY_FRAME.match(name)) for name in functions]
    if True not in entered:
        return None
    first = entered.index(True)
    after = entered.index(False, first) if False in entered[first:] else len(entered)
    return [name for name in functions[after:] if name]
