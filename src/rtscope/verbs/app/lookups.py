"""Findings about functions that a thread looked up at their first call."""

import re
from collections.abc import Iterator

from rtscope.contract import WatchedThread
from rtscope.present.words import enumeration
from rtscope.programs.binaries.lookups import LOOKUP
from rtscope.verbs.app.model import Finding, Observation, Unseen


def lookups(seen: Observation, watched: WatchedThread) -> Iterator[Finding]:
    """Find functions that this thread called first, and waited for their lookup."""
    names = [name for name in watched.events if name.partition(".")[0] == LOOKUP]
    count = sum(watched.events[name].count for name in names)
    if not count:
        return
    yield Finding(
        "RA20",
        "functions that are looked up when they are first called, in "
        f"{enumeration(seen.lazy_images)}",
        tid=watched.tid,
        thread=watched.name,
        count=count,
        stacks=tuple(s for name in names for s in seen.watch.stacks_of(watched, name)),
        variant="lookup",
    )


def unseen_lookups(seen: Observation) -> Iterator[Unseen]:
    """Yield that lookups could not be seen, where there may be some."""
    probed = any(e.name.partition(".")[0] == LOOKUP for e in seen.watch.begin.events)
    now = re.search("(^|\0)LD_BIND_NOW=[^\0]", seen.files.environ or "")
    if seen.lazy_images and not now and not probed:
        yield Unseen(
            ("RA20",),
            "functions that are looked up at their first call",
            seen.no_probe or "where its dynamic linker does that is not known",
            "start it with LD_BIND_NOW=1",
        )
