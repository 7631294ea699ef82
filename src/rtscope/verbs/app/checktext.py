"""What was found in a running program: at most 40 lines, worst first; and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from rtscope.contract import BY_CPU
from rtscope.host.escape import printable
from rtscope.host.units import count, plural
from rtscope.present import document
from rtscope.present.document import Block, Fit, Phrase, Table, Words
from rtscope.present.words import duration, enumeration
from rtscope.programs.stackwords import DIGITS, frame_row, stack_lines, stack_words
from rtscope.verbs.app.cycletables import WIDE
from rtscope.verbs.app.eventstacks import told_apart
from rtscope.verbs.app.executed import MAX_SHOWN, execution_rows, execution_words
from rtscope.verbs.app.model import (
    BoardLabel,
    EventStack,
    Examined,
    Finding,
    Observation,
    Unseen,
    Watch,
    Weight,
    Worst,
)
from rtscope.verbs.app.unnamed import naming_advice

SCHEMA = 1
MAX_LINES = 40
MAX_THREADS = 3
MAX_STACKS = 2
MAX_TEXT = 4
"""Lines of one thread."""

NOT_BUILT = {
    "denormals": "denormal numbers, which nothing outside of it can see",
}
"""What this version does not look for: never said to be clean."""

_WEIGHTS: Mapping[Weight, document.Weight] = {
    Weight.HIGH: "alarm",
    Weight.MEDIUM: "limit",
    Weight.LOW: "note",
}


def examined_blocks(
    examined: Examined,
    *,
    width: int | None,
    everything: bool,
    board: BoardLabel | None = None,
    cycles: Sequence[Phrase | Table] = (),
    verdict: Sequence[Phrase] = (),
) -> Iterator[Block]:
    """
    Yield verdict, findings, what could not be seen, and what the watching cost.

    Without a width, of a file or pipe, no line is cut.
    """
    yield (headline(examined), "strong")
    yield from _executed(examined, everything=everything)
    narrow = width is not None and not everything
    for sentence in verdict:
        if narrow or isinstance(sentence, Words):
            yield sentence
        else:
            yield Words((sentence,), fit="whole")
    label = (
        [] if board is None else wrap(printable(board.words, limit=400), width or WIDE)
    )
    yield from (Words(((one, "limit"),), fit="whole") for one in label)
    end = [*cycles, *_end(examined)]
    room = MAX_LINES - 2 - sum(map(_height, end)) - len(label) - len(verdict)
    lines: list[Phrase | Table] = []
    groups = _by_kind(examined.findings)
    for number, some in enumerate(groups):
        block = list(_block(some, width, everything=everything))
        rest = len(groups) - number - 1
        whole = everything or width is None or len(block) + rest <= room
        lines += block if whole else block[:1]
        room -= len(block) if whole else 1
    fit: Fit = "whole" if everything or width is None else "cut"
    for one in (*lines, *end):
        if not isinstance(one, Table):
            one = Words(one.spans if isinstance(one, Words) else (one,), fit=fit)
        yield one


def _executed(examined: Examined, *, everything: bool) -> Iterator[Block]:
    seen = examined.observation
    most = len(seen.executed) if everything else MAX_SHOWN
    for one in execution_words(seen.executed, seen.pid, most=most):
        yield Words(((one, "limit"),), fit="whole")


def _height(block: Phrase | Table) -> int:
    return 1 + len(block.rows) if isinstance(block, Table) else 1


def headline(examined: Examined) -> str:
    """Return the answer in a sentence."""
    seen = examined.observation
    lasted = duration(seen.watch.window_ns)
    who = f"{seen.name} (process {seen.pid})"
    judged = plural(len(examined.judged), "thread")
    if examined.findings:
        kinds = len({one.id for one in examined.findings})
        said = f"{plural(kinds, 'finding')}"
    elif examined.unseen:
        said = "nothing found, but not everything could be checked"
    else:
        said = "nothing found"
    sentence = f"{who}: {said}; {judged} judged, watched for {lasted}"
    return printable(sentence, limit=400)


def _by_kind(findings: Sequence[Finding]) -> list[list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for one in findings:
        groups.setdefault(one.id + one.variant, []).append(one)
    return list(groups.values())


def _block(
    findings: Sequence[Finding], width: int | None, *, everything: bool
) -> Iterator[Phrase]:
    kind = findings[0].kind
    total = sum(one.count or 0 for one in findings)
    said = f"{kind.title}: {total:,}. " if total else f"{kind.title}. "
    head = f"{findings[0].id} {kind.weight:6} "
    yield Words(((head, _WEIGHTS[kind.weight]), (said, "strong"), kind.why))
    for one in findings if everything else findings[:MAX_THREADS]:
        yield from _thread(one, width, everything=everything)
        yield from _stacks(told_apart(one.stacks) if everything else (), None)
    if len(findings) > MAX_THREADS and not everything:
        yield (f"  and {len(findings) - MAX_THREADS:,} more: see -v", "muted")
    if not everything:
        yield from _stacks(told_apart(findings[0].stacks)[:MAX_STACKS], width)
    remedies = list(dict.fromkeys(one.remedy for one in findings))
    for remedy in remedies if everything else remedies[:MAX_STACKS]:
        lines = wrap(f"do: {remedy}", (width or WIDE) - 2, subsequent_indent="    ")
        yield from ((f"  {line}", "good") for line in lines)


def _thread(one: Finding, width: int | None, *, everything: bool) -> Iterator[Phrase]:
    words = printable(finding_words(one), limit=WIDE)
    if width is None:
        yield f"  {words}"
        return
    lines = wrap(words, width - 2)
    shown = lines if everything else lines[:MAX_TEXT]
    yield from (f"  {line}" for line in shown)
    if len(lines) > len(shown):
        yield ("  and more: see -v", "muted")


def _stacks(stacks: Sequence[EventStack], width: int | None) -> Iterator[Phrase]:
    for one in stacks:
        if width is None:
            lines = [f"{one.times}x {stack_words(one.stack)}"]
        else:
            lines = stack_lines(one.stack, one.times, width=width - 6)
        yield from ((f"  {line}", "note") for line in lines)


def finding_words(one: Finding) -> str:
    """Return what was found, of which thread, how often and how long."""
    who = f"thread {one.tid} {one.thread}: " if one.tid is not None else ""
    times = "" if one.count is None else plural(one.count, "time")
    rate = "" if one.rate_per_s is None else f"{count(one.rate_per_s)} a second"
    worst = "" if one.worst is None else _worst_words(one.worst)
    return who + ", ".join(filter(None, [times, rate, worst, one.detail]))


def _worst_words(worst: Worst) -> str:
    where = f" ({worst.where})" if worst.where else ""
    after = duration(worst.after_ns)
    return f"worst {duration(worst.lasted_ns)}{where} after {after}"


def _end(examined: Examined) -> Iterator[Phrase]:
    seen = examined.observation
    same: dict[tuple[str, str], list[Unseen]] = {}
    for one in examined.unseen:
        same.setdefault((one.cause, one.remedy), []).append(one)
    for (cause, remedy), some in same.items():
        ids = ", ".join(dict.fromkeys(id_ for one in some for id_ in one.ids))
        yield (printable(f"not seen: {ids}: {cause}", limit=WIDE), "unseen")
        if remedy:
            yield (printable(f"  do: {remedy}", limit=WIDE), "good")
    yield from _files(seen)
    stacks = (stack.stack for one in examined.findings for stack in one.stacks)
    yield from ((f"  do: {advice}", "good") for advice in naming_advice(stacks))
    yield (f"not looked for by this version: {', '.join(NOT_BUILT.values())}", "muted")
    for first, *more in (*kernel_waits(examined), *disturbance(examined)):
        yield (first, "muted")
        yield from ((f"  {one}", "muted") for one in more)


def _files(seen: Observation) -> Iterator[Phrase]:
    """Say which files were not read, or have no names, why, and what would help."""
    for said, files in (("read", seen.unread_images), ("named", seen.not_named)):
        reasons: dict[str, list[str]] = {}
        for path, why in files.items():
            if said == "read" or path not in seen.unread_images:
                reasons.setdefault(why, []).append(path)
        for why, paths in reasons.items():
            text = f"not {said}, because {why}: {enumeration(paths)}"
            yield (printable(text, limit=WIDE), "unseen")
    packages = sorted({one.package for one in seen.bare_files.values() if one.package})
    for path, bare in seen.bare_files.items():
        build = f" (build id {bare.build_id[:DIGITS]})" if bare.build_id else ""
        yield (printable(f"no debug information: {path}{build}"), "unseen")
    if packages:
        yield (f"  do: apt install {' '.join(packages)}", "good")


UNKNOWN = "unknown"

_WAKEUPS = {"wakeup": "a wake-up", "wakeup_beside": "one that interrupts a thread"}
_EVENTS = {"fault": "fault", "call": "call", "probe": "allocation"}


def disturbance(examined: Examined) -> Iterator[tuple[str, ...]]:
    """Say what the watching cost: each in a line or two."""
    watch = examined.observation.watch
    if watch.from_outside:
        yield ("it was watched from outside the board, which cost it nothing",)
        return
    share = 100 * watch.end.agent_cpu_ns / max(1, watch.window_ns)
    yield (
        f"the watching used {share:.2f} % of a CPU, and copied "
        f"{plural(watch.end.stacks, 'stack')}{_lost(watch)}",
    )
    costs: list[str] = []
    for said, names in (
        ("it adds in µs:", _WAKEUPS),
        ("in µs (with stack):", _EVENTS),
    ):
        here = [
            f"{name} {_us(one.counted_ns - one.plain_ns)}"
            + (f" ({_us(one.copied_ns - one.plain_ns)})" if one.copied_ns else "")
            for key, name in names.items()
            if (one := watch.end.costs.get(key)) is not None
            and one.counted_ns
            and one.plain_ns
        ]
        if here:
            yield (f"{said} {', '.join(here)}",)
        costs += here
    if any(UNKNOWN in one for one in costs):
        yield (f"{UNKNOWN}: other work hid it; watch again on a quiet machine",)
    if own := watch.end.own_events:
        why = next(
            (e.reason for e in watch.begin.events if e.name == BY_CPU and not e.seen),
            "there is room for 8 of them",
        )
        threads = plural(own, "real-time thread")
        yield (
            f"{threads} wake some µs later: their events are their own, not of CPUs",
            f"why: {printable(why)}",
        )


def _lost(watch: Watch) -> str:
    lost = stacks_lost(watch)
    return f"; {lost:,} more had no room" if lost else ""


def stacks_lost(watch: Watch) -> int:
    """Return how many stacks could not be copied."""
    return watch.end.samples_lost + sum(one.samples_lost for one in watch.threads)


def kernel_waits(examined: Examined) -> Iterator[tuple[str, str]]:
    """Say which judged threads waited inside the kernel: each in two lines."""
    judged = {one.line.tid for one in examined.judged}
    for one in examined.observation.watch.threads:
        times = one.kernel_waits
        if one.tid in judged and times.count > sum(c.held.count for c in one.calls):
            by = f", ended by {printable(times.worst_in)}" if times.worst_in else ""
            yield (
                f"thread {one.tid} {printable(one.name)} waited for a lock of the "
                "kernel or a device:",
                f"{plural(times.count, 'time')}, at most "
                f"{duration(times.worst_ns)}{by}",
            )


def _us(ns: int) -> str:
    """Write what is added; nothing is added for less than nothing."""
    return f"{ns / 1000:.1f}" if ns > 0 else UNKNOWN


def examined_row(examined: Examined) -> dict[str, Any]:
    """Return the result for a JSON document: stable keys, times in ns."""
    seen = examined.observation
    watch = seen.watch
    watched = {one.tid: (one.from_ns, one.to_ns) for one in watch.threads}
    return {
        "schema": SCHEMA,
        "pid": seen.pid,
        "name": seen.name,
        "window_ns": watch.window_ns,
        "stopped": watch.end.stopped,
        "threads": [
            {
                "tid": one.line.tid,
                "name": one.name,
                "policy": one.line.policy,
                "priority": one.line.priority,
                "cpus": sorted(one.cpus),
                "watched_ns": watched.get(one.line.tid),
            }
            for one in examined.judged
        ],
        "findings": [_finding_row(one) for one in examined.findings],
        "not_seen": [asdict(one) for one in examined.unseen],
        "not_looked_for": list(NOT_BUILT),
        "unread_files": dict(seen.unread_images),
        "not_named_files": dict(seen.not_named),
        "files_without_debug_information": {
            path: {"build_id": one.build_id, "debug_package": one.package}
            for path, one in seen.bare_files.items()
        },
        **({} if watch.from_outside else _only_inside(seen)),
        "disturbance": None if watch.from_outside else _disturbance_row(watch),
        "kernel_waits": {
            str(one.tid): asdict(one.kernel_waits)
            for one in watch.threads
            if one.kernel_waits.count
        },
    }


def _only_inside(seen: Observation) -> dict[str, Any]:
    return {"executed": execution_rows(seen.executed)}


def _disturbance_row(watch: Watch) -> dict[str, Any]:
    return {
        "agent_cpu_ns": watch.end.agent_cpu_ns,
        "stacks_copied": watch.end.stacks,
        "costs": {name: asdict(one) for name, one in watch.end.costs.items()},
        "stacks_lost": stacks_lost(watch),
        "threads_with_own_events": watch.end.own_events,
    }


def _finding_row(one: Finding) -> dict[str, Any]:
    return {
        "id": one.id,
        "weight": one.weight.value,
        "title": one.kind.title,
        "tid": one.tid,
        "thread": one.thread,
        "count": one.count,
        "rate_per_s": one.rate_per_s,
        "detail": one.detail,
        "worst": None if one.worst is None else asdict(one.worst),
        "remedy": one.remedy,
        "calls": [asdict(call) for call in one.calls],
        "stacks": [
            {
                "times": stack.times,
                "complete": stack.stack.complete,
                "ends_early": stack.stack.ends_early,
                "address": f"{stack.address:#x}",
                "frames": [frame_row(frame) for frame in stack.stack.frames],
            }
            for stack in one.stacks
        ],
    }
