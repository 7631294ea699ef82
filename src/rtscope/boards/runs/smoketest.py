"""
Test that a kernel runs as it was built, without complaints in its log. Pure.

A record has the kernel's messages during the measurement only; here the whole log
counts, from its first line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtscope.contract import KernelMessage
from rtscope.machine.facts import FactValue
from rtscope.record.caveats.catalogue import uncounted
from rtscope.record.caveats.kernellog import kind_of as kind_of_message
from rtscope.record.model import RunRecord

KERNEL_LOG = "kernel.log"
"""Attachment of a record: the whole kernel log, with the level of each line."""

CONFIG_IN_GUEST = "/proc/config.gz"

_WARNING = 4
"""Messages of a lower level are no complaints: a booting kernel reports a lot."""

# Without CONFIG_PRINTK_TIME there is no time in front.
_LINE = re.compile(r"<(\d{1,4})>(?:\[ *(\d{1,9})\.(\d{6})\] ?)?(.*)")
_SEVERITY = 8
"""A priority modulo this is the severity; the rest is the facility."""


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """The kernel as it was built."""

    name: str
    release: str
    digest: str
    config_digest: str
    preempt_rt: bool


@dataclass(frozen=True, slots=True)
class SmokeBoot:
    """One boot of a kernel."""

    record: RunRecord
    log: str
    """The whole kernel log, as `dmesg -r` prints it."""


@dataclass(frozen=True, slots=True)
class SmokeTest:
    """The result of testing one kernel."""

    kernel: BuiltKernel
    worst_ns: Mapping[str, int]
    """The longest latency under each load, in virtual time, of runs that count."""
    messages: tuple[KernelMessage, ...]
    """Its complaints, each text once."""
    problems: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether it runs as built and complained of nothing."""
        return not self.problems and not self.messages


def smoke_test(
    kernel: BuiltKernel, boots: Sequence[SmokeBoot], *, failures: Sequence[str] = ()
) -> SmokeTest:
    """
    Test a kernel by its boots, one or more for each load.

    `failures` are the errors of boots that ended without a measurement.
    """
    worst: dict[str, int] = {}
    for boot in boots:
        load = boot.record.run.load
        if uncounted(boot.record.caveats):
            continue
        worst[load] = max(worst.get(load, 0), boot.record.max_ns or 0)
    messages = {
        message.text: message
        for boot in boots
        for message in complaints(boot.log, boot.record.kernel_log)
    }
    problems = dict.fromkeys(p for boot in boots for p in _problems(kernel, boot))
    problems |= dict.fromkeys(failures)
    return SmokeTest(kernel, worst, tuple(messages.values()), tuple(problems))


def complaints(
    log: str, watched: Sequence[KernelMessage] = ()
) -> Iterator[KernelMessage]:
    """Yield the messages of a kernel log that are errors, or known to cause caveats."""
    logged = [m for m in messages_of(log) if m.level <= _WARNING]
    for message in (*logged, *watched):
        if kind_of_message(message) is not None:
            yield message


def messages_of(log: str) -> Iterator[KernelMessage]:
    """Yield the messages of a raw kernel log; lines without a priority are skipped."""
    for line in log.splitlines():
        match = _LINE.match(line)
        if match:
            priority, seconds, micros, text = match.groups()
            yield KernelMessage(
                time_us=int(seconds or 0) * 1_000_000 + int(micros or 0),
                level=int(priority) % _SEVERITY,
                text=text,
            )


def _problems(kernel: BuiltKernel, boot: SmokeBoot) -> Iterator[str]:
    facts, run = boot.record.facts_before, boot.record.run
    for name, wanted in (
        ("kernel_release", kernel.release),
        ("kernel_config_digest", kernel.config_digest),
        ("preempt_rt", kernel.preempt_rt),
    ):
        fact = facts.get(name)
        value = None if fact is None else fact.value
        if value != wanted:
            yield f"{name}: {_value_text(fact)} runs, and {wanted} was built"
    config = facts.get("kernel_config_digest")
    if config is not None and not config.source.startswith(CONFIG_IN_GUEST):
        yield f"its configuration could not be read from inside ({config.source})"
    if not any(messages_of(boot.log)):
        lost = boot.record.why_lost(KERNEL_LOG)
        why = f"{KERNEL_LOG} was not kept: {lost}" if lost else "it sent no kernel log"
        yield f"{run.id}: {why}"
    for caveat in boot.record.caveats:
        if uncounted([caveat]):
            yield f"{run.id}: {caveat.id}: {caveat.detail}"


def _value_text(fact: FactValue | None) -> str:
    if fact is None or fact.value is None:
        return "an unknown value" + (f" ({fact.reason})" if fact else "")
    return str(fact.value)
