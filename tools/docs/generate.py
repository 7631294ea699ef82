"""
Write docs/reference, the manual and completions from the program: they cannot disagree.

`make docs` runs it; `tests/unit/test_docs.py` fails when a page is out of date. What a
page says in prose comes from the tables and doc strings of the program; only the links
to explanations are kept here.
"""

import re
from collections.abc import Iterator, Mapping
from inspect import getdoc
from pathlib import Path

from completions import scripts
from jsonpage import json_page
from kernelpages import kernels_page
from manpages import man_pages
from prose import cell, ended, sentences, whole
from recordpage import record_page
from rtscope import __version__
from rtscope.cli import main as cli
from rtscope.machine.audit.examine import catalogue as check_catalogue
from rtscope.machine.audit.model import CheckKind
from rtscope.machine.facts import catalogue as fact_catalogue
from rtscope.machine.settings.remedies import FUNCTIONS
from rtscope.measure.events import event_names, get_event
from rtscope.measure.loads.command import (
    STRESSOR,
    Need,
    SignsOfLife,
    get_load,
    load_names,
    safe_stressors,
    unsafe_stressors,
)
from rtscope.present.formats.data import csv_headings, render_csv, render_json
from rtscope.present.words import NOTHING, as_published
from rtscope.record.caveats import catalogue
from rtscope.record.published import get_published, published_names
from rtscope.stats.figures import definitions
from sourcespage import sources_page
from typedpages import campaign_page, commands_page, test_file_page

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "rtscope"
REFERENCE = ROOT / "docs" / "reference"
MANUAL = ROOT / "docs" / "man"
COMPLETIONS = SRC / "cli" / "completions"

NEEDS: Mapping[Need, str] = {
    Need.MEMORY: "Memory: it is made smaller if half of what is free is less than it "
    "usually takes, and refused if that is too little to be a load.",
    Need.STORAGE: "A directory on a real disk: `--storage-dir`, else the directory of "
    "the results, and on a board `/var/tmp`; nothing of it stays behind.",
    Need.MEMORY_LIMIT: "Root's rights and a memory control group: it is bounded, so "
    "that the rest of the machine keeps its memory.",
    Need.COMMAND: "The command itself: `--command`, or `command` in the campaign.",
}

CALLED = ("irq_priority", "coalescing")
"""Settings that are made by a call of the kernel, not by a file."""

EXPLAINED_IN: Mapping[str, str] = {
    "identity_broken": "missed-periods.md#the-identity",
    "sums_inconsistent": "published-tables.md#what-rtscope-makes-of-it",
    "clock_coarse": "wake-up-latency.md#the-clock",
    "clock_slow": "wake-up-latency.md#the-clock",
    "early": "wake-up-latency.md#the-clock",
    "missed_periods": "missed-periods.md",
    "guest": "virtual-machines.md",
    "steal": "virtual-machines.md",
    "agent_competes": "wake-up-latency.md#other-threads-that-run",
    "no_housekeeping_cpu": "wake-up-latency.md#other-threads-that-run",
    "rt_throttling": "changes-of-a-machine.md#rt-throttling",
    "rt_throttled": "changes-of-a-machine.md#rt-throttling",
    "cpu_held_awake": "changes-of-a-machine.md#idle-states",
    "knobs_changed": "changes-of-a-machine.md",
    "governor": "changes-of-a-machine.md#frequency",
    "audit_failed": "../how-to/audit-a-machine.md#with-every-measurement",
    "file_not_kept": "../how-to/resume-an-interrupted-campaign.md",
    "audit_missing": "../how-to/audit-a-machine.md#with-every-measurement",
    "frequency_varied": "changes-of-a-machine.md#frequency",
    "load_died": "proof-that-a-load-ran.md",
    "load_stalled": "proof-that-a-load-ran.md",
    "load_unproved": "proof-that-a-load-ran.md",
    "worker_died": "proof-that-a-load-ran.md#each-worker",
    "worker_stopped": "proof-that-a-load-ran.md#each-worker",
    "worker_idle": "proof-that-a-load-ran.md#each-worker",
    "load_reduced": "proof-that-a-load-ran.md#smaller-than-usual",
    "no_oom_kill": "proof-that-a-load-ran.md",
    "short_run": "a-maximum-is-not-a-bound.md",
    "stopped_early": "a-maximum-is-not-a-bound.md",
    "max": "a-maximum-is-not-a-bound.md",
    "samples": "a-maximum-is-not-a-bound.md#samples-are-not-independent",
    "p99_9": "percentiles.md",
    "p99_999": "percentiles.md",
    "other_board_model": "virtual-boards.md#cpus-that-execute-at-the-same-time",
    "identical_repeats": "virtual-boards.md#what-comparing-means-there",
    "not_deterministic": "virtual-boards.md#what-comparing-means-there",
    "avg": "published-tables.md",
    "stdev": "published-tables.md",
    "throughput": "proof-that-a-load-ran.md#throughput",
    "exposure": "a-maximum-is-not-a-bound.md#exposure",
    "tail": "percentiles.md#the-shaded-part",
    "caveats": "verdicts.md#caveats",
    "min": "wake-up-latency.md",
    "timeline": "wake-up-latency.md#other-threads-that-run",
}

EXIT_WORDS: Mapping[int, str] = {
    0: "The command did what it was asked. With a deadline: no miss; with a claim as "
    "well: the claim is supported.",
    1: "Measured, and the deadline was missed: the verdict is NO. Of `rtscope audit`: "
    "a check failed, or a setting could not be changed or put back. Of `rtscope "
    "doctor`: `rtscope run` cannot measure the machine. Of `rtscope app check`: a "
    "finding. Of `rtscope app unit`: the audit of the unit finds something. Of "
    "`rtscope sweep`: runs are missing. Of `rtscope bisect --measured`: the kernel is "
    "bad. Of `rtscope history check`: a series is worse, or missed its deadline.",
    2: "The command line or the campaign file is wrong; the message says what to "
    "write instead. Nothing was measured.",
    3: "There is no valid measurement: target, agent or record failed, or the verdict "
    "is INVALID. What was measured before is saved. Also: a comparison in which equal "
    "inputs of a virtual board gave different results. Of `rtscope app start`: the "
    "kernel refused what the program was to have, and it did not begin.",
    4: "The claim or number of boots that was asked for is not supported, or a CPU has "
    "fewer than 1,000 wake-ups: the verdict is NOT SHOWN. Of `rtscope bisect`: good "
    "and bad do not differ by more than the margin, or no single change was found. Of "
    "`rtscope kernel verify` and `rtscope audit --config`: no check fails, and the "
    "configuration is an excerpt. Of `rtscope history check`: nothing was compared, or "
    "a series was not.",
    70: "rtscope itself failed: a bug. The message names the file with the traceback; "
    "report it with that file. Says nothing about the machine.",
    125: "Of `rtscope bisect --measured` alone: the kernel is like neither end, or has "
    "too few valid runs; `git bisect run` skips it.",
    128: "Of `rtscope bisect --measured` alone: there is no verdict, for a reason that "
    "is 2, 3 or 70 elsewhere; `git bisect run` stops, and takes it for no bad kernel.",
    126: "Of `rtscope app start` alone: the program is there and cannot be executed.",
    127: "Of `rtscope app start` alone: there is no such program.",
    130: "Interrupted by Ctrl-C or a signal; what was measured is saved, and `rtscope "
    "run --resume` goes on.",
}


def pages() -> Mapping[str, str]:
    """Return the text of every generated page by its file name."""
    made = {
        "commands.md": (commands_page(), "src/rtscope/cli/"),
        "campaign.md": (campaign_page(), "src/rtscope/measure/campaign/model.py"),
        "test-file.md": (test_file_page(), "src/rtscope/verbs/test/file.py"),
        "loads.md": (_loads(), "src/rtscope/measure/loads/loads.toml"),
        "events.md": (_events(), "src/rtscope/measure/events/events.toml"),
        "checks.md": (_checks(), "src/rtscope/machine/audit/checks/"),
        "facts.md": (_facts(), "src/rtscope/machine/facts.toml"),
        "caveats.md": (_caveats(), "src/rtscope/record/caveats/caveats.toml"),
        "kernel-log.md": (_kernel_log(), "src/rtscope/record/caveats/kernellog.toml"),
        "report.md": (_report(), "src/rtscope/stats/figures.toml"),
        "published.md": (_published(), "src/rtscope/record/published/tables/"),
        "kernels.md": (kernels_page(), "src/rtscope/kernel/"),
        "record.md": (record_page(), "src/rtscope/record/model.py"),
        "sweeps.md": (json_page(), "tools/docs/jsonpage.py and the classes it names"),
        "sources.md": (sources_page(), "lab/sources.toml"),
        "exit-status.md": (_exit_status(), "src/rtscope/cli/main.py"),
    }
    return {
        name: f"<!-- Made by tools/docs/generate.py from {source}: edit that, then "
        f"type `make docs`. -->\n\n{chr(10).join(lines).rstrip()}\n"
        for name, (lines, source) in made.items()
    }


def _explained(name: str) -> Iterator[str]:
    if name in EXPLAINED_IN:
        place = EXPLAINED_IN[name]
        yield from ("", f"Explained in [{place}](../explanation/{place}).")


def _loads() -> Iterator[str]:
    yield "# Loads"
    yield ""
    yield "What keeps the machine busy while its wake-ups are measured."
    yield "Most are run by stress-ng, with one worker for each measured CPU."
    yield "A load counts as alive while its CPU time grows."
    yield "A worker works if one of its signs is seen in each window."
    page = "proof-that-a-load-ran.md"
    yield f"How it is shown that one ran: [{page}](../explanation/{page})."
    for name in load_names():
        load = get_load(name)
        yield from ("", f"## {name}", "", sentences(load.why), "")
        argv = " ".join(load.argv).replace("{workers}", "WORKERS")
        started = f"`stress-ng {argv}`" if argv else "no stress-ng"
        event = f"the agent, with the event `{load.event}`" if load.event else ""
        yield f"* Started as: {event or started}."
        for need in Need:
            if need in load.needs and need in NEEDS:
                yield f"* Needs: {NEEDS[need]}"
        if load.needs and not load.expects_progress:
            yield "* If its CPU time does not grow, that it ran is unproved."
        if load.argv or load.needs:
            yield f"* Works: {_signs(load.alive)}."

    yield from (
        "",
        f"## {STRESSOR}NAME",
        "",
        "One stressor of stress-ng with its default options, by its own name.",
        "A virtual board takes every one.",
        "A machine takes these, which leave its settings, devices and disks alone: "
        f"{', '.join(f'`{name}`' for name in sorted(safe_stressors()))}.",
        "",
        "It takes none of these, which look harmless:",
        "",
        *(f"* `{name}` {why}." for name, why in unsafe_stressors().items()),
    )


def _events() -> Iterator[str]:
    yield "# Events"
    yield ""
    yield "What wakes the measuring threads: `rtscope run --event NAME[:OPTION=VALUE]`."
    yield (
        "A stimulus thread sleeps to an absolute grid, reads the clock and makes its "
        "call; the latency ends when the measuring thread's call has returned."
    )
    yield (
        "`cpu=same`, `cpu=other` (default) or `cpu=N` places the stimulus; it has the "
        "policy of the thread that it wakes and one priority less, or FIFO with "
        "`priority=N`."
    )
    yield "No event was ever run by us on the hardware of a board."
    yield "We ran"
    yield ""
    by_places: dict[str, list[str]] = {}
    for name in event_names():
        by_places.setdefault(get_event(name).places, []).append(f"`{name}`")
    for places, names in by_places.items():
        yield f"* on {places}: {', '.join(names)};"
    for name in event_names():
        event = get_event(name)
        yield from ("", f"## {name}", "", f"{whole(event.title)}", "")
        yield f"* Stimulus: {event.stimulus}."
        yield f"* Wait: {event.wait}."
        yield f"* Path: {event.path}."
        if event.needs:
            yield f"* Needs: {event.needs}."
        if event.options:
            named = ", ".join(f"`{option}=`" for option in event.options)
            yield f"* Options of its own: {named}."


def _signs(alive: SignsOfLife) -> str:
    """What shows that a worker works, in words."""
    signs = [f"has {alive.cpu_percent:g} % of the CPU time it could have"]
    signs += ["is preempted"] if alive.preempted else []
    if alive.switches_per_s is not None:
        each = alive.switches_per_s
        signs.append(f"switches {'once' if each == 1 else f'{each:g} times'} a second")
    signs += ["waits for a disk"] if alive.disk_wait else []
    return " or ".join(signs)


def _facts() -> Iterator[str]:
    yield "# Facts about a machine"
    yield ""
    yield "Read before and after every run, and kept in its record."
    yield "An unknown fact says why it is unknown; it is never guessed."
    for kind in fact_catalogue().values():
        yield from ("", f"## `{kind.name}`", "", f"{whole(kind.title)}")
        yield sentences(whole(kind.means))
        yield ""
        yield f"* Read from: {', '.join(f'`{path}`' for path in kind.paths)}."
        if kind.absent:
            yield f"* Without it: {kind.absent}."


def _checks() -> Iterator[str]:
    yield "# Checks"
    yield ""
    yield "Whether a kernel or a machine is set up for real time."
    yield "Each is answered in one of four ways: pass, fail, unknown, not applicable."
    yield "What is unknown says why; a missing file never passes."
    yield "Those marked *verify* belong to `rtscope kernel verify`."
    yield "Those marked *safe* are what `--apply safe` and `--tuned safe` mean."
    group = ""
    for kind in check_catalogue().values():
        if kind.group != group:
            group = kind.group
            yield from ("", f"## {group.capitalize()}")
        yield from ("", f"### `{kind.id}`", "", f"{whole(kind.title)}")
        yield from (sentences(kind.rationale), "")
        weights = [f"{p.value}: {s.name.lower()}" for p, s in kind.severity_for.items()]
        other = f" ({', '.join(weights)})" if weights else ""
        yield f"* Severity: {kind.severity.name.lower()}{other}."
        yield f"* Expected: {whole(kind.expected)}"
        yield f"* Remedy: {whole(kind.remedy)}"
        if kind.permanent_remedy:
            yield f"* Permanent: {whole(kind.permanent_remedy)}"
        for part, mode in kind.refused_by.items():
            words = "what makes it last" if part == "permanent_remedy" else "the remedy"
            yield f"* Kernel lockdown refuses {words}: from `{mode}` on."
        if kind.risk:
            yield f"* Risk: {whole(kind.risk)}"
        yield f"* Source: {whole(kind.source)}"
        yield from _settings(kind)
        if kind.verifies:
            yield "* *verify*"


def _settings(kind: CheckKind) -> Iterator[str]:
    """Yield what --apply writes, where that can be put back."""
    for setting in kind.apply:
        if setting.value:
            yield f"* `--apply` writes `{setting.value}` into `{setting.file}`."
            continue
        said = (FUNCTIONS[setting.values].__doc__ or "").rstrip(".")
        does = "sets, for" if setting.knob in CALLED else "writes into"
        yield f"* `--apply` {does} `{setting.file}`: {said[0].lower()}{said[1:]}."
    if kind.safe:
        yield "* *safe*"


_COUNTS = {
    catalogue.Counts.YES: "",
    catalogue.Counts.UNRANKED: " Its load has no rank in a survey.",
    catalogue.Counts.NO: " The run does not count.",
}


def _caveats() -> Iterator[str]:
    yield "# Caveats"
    yield ""
    yield "Every doubt that a record can carry, the effect it has, and what to do."
    yield ""
    yield "* **invalid**: the figures are no evidence; the only verdict is INVALID."
    yield "* **limit**: a deadline that was held is at most NOT SHOWN; NO stays NO."
    yield "* **note**: for the reader; no effect on a verdict."
    yield ""
    yield (
        "A run that *does not count* is in no comparison, effect, ranking and search, "
        "and adds no time to a rate; an invalid one never counts."
    )
    for kind in catalogue.catalogue().values():
        effect = f"Effect: **{kind.effect}**.{_COUNTS[kind.counts]}"
        yield from ("", f"## `{kind.id}`", "", effect, "")
        yield sentences(whole(kind.message))
        yield f"What to do: {ended(kind.remedy)}"
        yield from _explained(kind.id)


def _published() -> Iterator[str]:
    yield "# Published tables"
    yield ""
    yield "What `rtscope compare RESULT --published NAME` sets beside a measurement."
    yield f"Latencies are in microseconds, as published; {NOTHING} was not published."
    yield "How: [the guide](../how-to/compare-with-a-published-table.md)."
    for name in published_names():
        table = get_published(name)
        yield from ("", f"## {name}", "", "| | |", "|---|---|")
        yield f"| source | {cell(table.source)} |"
        yield f"| machine | {cell(table.machine)} |"
        yield from ("", f"    {table.command}", "")
        yield "| load | kernel | min | avg | stdev | max |"
        yield "|---|---|---:|---:|---:|---:|"
        for (load, kind), f in table.rows.items():
            kernel = table.kernels[kind].release
            values = (f.min_ns, f.avg_ns, f.stdev_ns, f.max_ns)
            cells = " | ".join(map(as_published, values))
            yield f"| {load} | {kernel} | {cells} |"
        yield from ("", "What does not add up, or must be known:", "")
        yield from (f"* {whole(note.says)}" for note in table.notes)


def _kernel_log() -> Iterator[str]:
    yield "# Messages of the kernel"
    yield ""
    yield "The kernel's log is watched through every run."
    yield "The first pattern that is found in a message counts."
    other = catalogue.OTHER_ERROR.caveat
    yield f"With none, it counts as `{other}` if the kernel called it an error."
    yield "Silence proves little: the kernel prints several of these once per boot."
    for kind in catalogue.table():
        yield from ("", f"## {kind.title}", "")
        yield f"Caveat: [`{kind.caveat}`](caveats.md#{kind.caveat})."
        yield from ("", f"    {kind.pattern.pattern}")


def _report() -> Iterator[str]:
    yield "# Numbers of a report"
    yield ""
    yield "What each means, its weakness first."
    for definition in definitions():
        yield from ("", f"## {definition.name}", "")
        yield f"Weakness: {sentences(definition.weakness)}"
        yield from ("", sentences(definition.meaning))
        yield from _explained(definition.key)
    yield from ("", "## CSV", "", sentences(getdoc(render_csv) or ""), "")
    yield from (f"    {','.join(csv_headings())}", "")
    yield from ("## JSON", "", sentences(getdoc(render_json) or ""))


def _exit_status() -> Iterator[str]:
    said = {int(n) for n in re.findall(r"\b(\d+) [a-z]", cli.__doc__ or "")}
    if said != set(EXIT_WORDS):
        raise SystemExit(
            f"tools/docs/generate.py: EXIT_WORDS has other numbers than {said}"
        )
    yield "# Exit status"
    yield ""
    yield "| status | meaning |"
    yield "|---|---|"
    for status, words in EXIT_WORDS.items():
        yield f"| {status} | {words} |"
    yield ""
    page = "use-exit-codes-in-ci.md"
    yield f"How they make a gate: [{page}](../how-to/{page})."


def installed() -> Mapping[Path, str]:
    """Return what is installed with the program: completions, pages of the manual."""
    pages = man_pages(EXIT_WORDS, __version__)
    return {
        **{COMPLETIONS / name: text for name, text in scripts().items()},
        **{MANUAL / name: text for name, text in pages.items()},
    }


def main() -> None:
    """Write the pages, and what is installed."""
    made = {REFERENCE / name: text for name, text in pages().items()}
    for path, text in {**made, **installed()}.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
