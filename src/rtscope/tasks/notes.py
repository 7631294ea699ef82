"""What a list of threads does not tell, and why: nothing is left out without a word."""

from collections import Counter
from collections.abc import Iterator

from rtscope.tasks.model import Kind, Listing

_WORDS = {
    "reset_on_fork": "reset on fork",
    "slice_ns": "slice",
    "util_clamp": "clamps of utilisation",
    "deadline": "deadline parameters",
    "timer_slack_ns": "timer slack",
    "cpus": "allowed CPUs",
    "voluntary_switches": "voluntary switches",
    "involuntary_switches": "involuntary switches",
    "effective": "effective priority",
}


def notes_of(listing: Listing) -> list[str]:
    """Return a sentence for each thing that was not seen, or could not be judged."""
    return [*_unseen(listing), *_unread(listing), *_unjudged(listing)]


def _unseen(listing: Listing) -> Iterator[str]:
    end = listing.end
    if end.vanished:
        yield f"{end.vanished} ended while they were read, and are not shown."
    if end.missed:
        yield (
            f"{end.missed} could not be listed: begun just then, or closed to this "
            "user (a closed process counts once)."
        )
    if end.window_ended:
        yield f"{end.window_ended} ended within the window; their share is not shown."
    if not any(thread.line.kind == "kernel" for thread in listing.threads):
        yield (
            "No kernel thread is visible: /proc shows a part of this machine only, "
            "that of a container or of this user."
        )
    if end.uid and listing.around.hidepid:
        yield (
            "The processes of other users may be hidden: /proc is mounted with "
            f"hidepid={listing.around.hidepid}. Run as root to see them."
        )


def _unread(listing: Listing) -> Iterator[str]:
    unread = Counter(
        (key, why) for t in listing.threads for key, why in t.line.unread.items()
    )
    for (key, why), count in unread.items():
        remedy = ""
        if key == "timer_slack_ns" and listing.end.uid and "permitted" in why:
            remedy = " That of others needs CAP_SYS_NICE: run as root."
        what = _WORDS.get(key, key)
        yield f"The {what} of {count} could not be read: {why}.{remedy}"


def _unjudged(listing: Listing) -> Iterator[str]:
    users = any(t.kind is Kind.USER and t.real_time for t in listing.threads)
    isolated = listing.around.isolated
    if users and isolated is None:
        yield "Which CPUs are isolated is unknown: housekeeping CPUs are not marked."
    elif users and not isolated:
        yield "No CPU is isolated: every CPU is a housekeeping CPU, and none is marked."
    if any(not thread.line.cpu_time_exact for thread in listing.threads):
        ms = listing.end.tick_ns // 1_000_000
        yield f"CPU times of this kernel come in steps of {ms} ms."
    if listing.around.sched_ext is not None:
        yield (
            f"A sched_ext scheduler is loaded ({listing.around.sched_ext}): it may "
            "schedule the threads of policy other, batch and idle too."
        )
