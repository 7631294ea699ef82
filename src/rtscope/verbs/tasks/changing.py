"""Changes of threads as they are seen: a line each, for a terminal or as JSON."""

from rtscope.host.escape import printable
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import NS_PER_S, format_duration, plural
from rtscope.machine.tasks.model import Thread
from rtscope.present.document import Phrase, Weight, Words
from rtscope.verbs.tasks.changes import Change
from rtscope.verbs.tasks.text import cut

_WORDS = {
    "name": "name",
    "policy": "policy",
    "effective": "runs as",
    "cpus": "CPUs",
    "state": "state",
    "cgroup": "group",
    "capabilities": "capabilities",
}

NAME_WIDTH = 22

_WEIGHTS: dict[str, Weight] = {
    "begun": "good",
    "ended": "muted",
    "policy": "open",
    "effective": "open",
    "cpus": "unseen",
    "state": "alarm",
}


def heading(threads: int, interval_ns: int) -> Phrase:
    """Say what is watched, before the first change."""
    return (
        f"{plural(threads, 'thread')}, looked at every {format_duration(interval_ns)}; "
        "Ctrl-C ends",
        "strong",
    )


def change_words(change: Change, at_ns: int) -> Words:
    """Return a change in a line: seconds since the begin, thread, change."""
    thread = change.thread
    named = cut(_named(thread), NAME_WIDTH, left=True)
    said = f"{at_ns / NS_PER_S:6.1f} s {thread.line.tid:7} {named} "
    return Words((said, (_change(change), _WEIGHTS.get(change.what, ""))))


def change_json(change: Change, at_ns: int) -> str:
    """Return a change as a line of JSON."""
    thread = change.thread
    return json_text(
        {
            "at_ns": at_ns,
            "pid": thread.line.pid,
            "tid": thread.line.tid,
            "name": thread.name,
            "process": thread.process,
            "what": change.what,
            "before": change.before,
            "after": change.after,
        },
        indent=None,
    )


def _named(thread: Thread) -> str:
    name, process = (printable(one, limit=80) for one in (thread.name, thread.process))
    return name if thread.is_leader or process == name else f"{name} [{process}]"


def _change(change: Change) -> str:
    if change.what == "begun":
        cpus = f", CPUs {change.thread.line.cpus}" if change.thread.line.cpus else ""
        return f"begun, {change.after}{cpus}"
    if change.what == "ended":
        return "ended"
    before, after = (printable(one or "") for one in (change.before, change.after))
    return f"{_WORDS[change.what]} {before} → {after}"


def ending(looks: int, seen: int) -> Phrase:
    """Sum up what was seen in so many looks."""
    return (f"{plural(seen, 'change')} in {plural(looks, 'look')}", "strong")
