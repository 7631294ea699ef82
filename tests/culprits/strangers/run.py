"""
Measure and explain the designs of a stranger; write lab/designs-of-a-stranger.md.

    PYTHONPATH=src:tests python -m culprits.strangers.run [DESIGN ...]

A run that was interrupted goes on after the last design of its journal. The journals
and the records of each set stay in build/strangers; --again measures designs that are
already there, and --explain only explains their records again.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from shutil import rmtree
from typing import Any

from culprits.build import Tree, build_modules, build_program
from culprits.scenes import BOTH
from culprits.strangers.boots import Boot, boots_of
from culprits.strangers.judge import VERDICTS, Judgement, judge
from culprits.strangers.truth import HERE, PATH, SETS, Design, DesignSet, read_designs

WORK = Path("build/strangers")
BOOT_S = 1500.0
"""After that a design is given up: both of its boots."""
END = "<!-- end -->\n"


def main() -> None:
    """Measure what is not in the journals, and write the page."""
    words = _read_words()
    named = (one for one in (*SETS, PATH) if one.name.startswith(words.set))
    for one in named if words.set else SETS:
        _run_set(one, words)


def _run_set(of: DesignSet, words: argparse.Namespace) -> None:
    designs = read_designs(of)
    if words.designs and not set(words.designs) & {one.name for one in designs}:
        return
    work = words.work / of.name.replace(" ", "-")
    work.mkdir(parents=True, exist_ok=True)
    journal = work / "journal.jsonl"
    files = None if words.explain else build_files(of, work)
    done = {one.design for one in _read_journal(journal)}
    todo = [
        boot
        for boot in boots_of(designs)
        if (not words.designs or boot.names & set(words.designs))
        and (words.again or words.explain or not boot.names <= done)
    ]

    def judged(boot: Boot) -> list[Judgement]:
        out = work / boot.name
        if files is not None:
            measure(boot, files, out)
        return list(explained(boot, out))

    with ThreadPoolExecutor(words.jobs) as workers:
        for one in chain.from_iterable(workers.map(judged, todo)):
            _append(journal, one)
            print(f"{one.verdict:9} {one.design}, {one.kernel}: {one.title}")
            print(f"          {one.sentence}", flush=True)
    rows = list(_read_journal(journal))
    if words.keep:
        of.first.write_text(f"{json.dumps(_verdicts(rows), indent=1)}\n")
    first = json.loads(of.first.read_text()) if of.first.exists() else {}
    print(f"{of.name}: {summary(rows)}")
    if words.table:
        head, slot, rest = words.table.read_text().partition(of.slot)
        _old, end, foot = rest.partition(END)
        rows_of = brief_table if of.brief else table
        made = f"{summary(rows)}\n\n{rows_of(designs, rows, first)}"
        words.table.write_text(f"{head}{slot}\n{made}\n{end}{foot}")


def _read_words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("designs", nargs="*", help="only these")
    parser.add_argument("--work", type=Path, default=WORK, help="journal and records")
    parser.add_argument("--again", action="store_true", help="measure again")
    parser.add_argument("--jobs", type=int, default=1, help="boots at the same time")
    parser.add_argument("--explain", action="store_true", help="explain records again")
    parser.add_argument("--table", type=Path, help="page to write the table to")
    parser.add_argument("--set", default="", help="this one, by the begin of its name")
    parser.add_argument(
        "--keep", action="store_true", help="keep the verdicts as those of a first run"
    )
    return parser.parse_args()


def build_files(of: DesignSet, work: Path) -> dict[str, list[Path]]:
    """Return the files of each module and program."""
    into = work / "files"
    into.mkdir(exist_ok=True)
    files = {name: [build_program(one, into)] for name, one in of.sources.items()}
    name = of.folder.relative_to(HERE.parent).as_posix().replace("/", "-")
    tree = Tree(name, of.folder / "modules", of.modules)
    for kernel in BOTH:
        for name, made in build_modules(kernel, into, tree=tree).items():
            files.setdefault(name, []).append(made)
    return files


def measure(boot: Boot, files: Mapping[str, Sequence[Path]], out: Path) -> None:
    """Measure a boot on both kernels."""
    rmtree(out, ignore_errors=True)
    needed = {n: 0 for d in boot.designs for n in (*d.modules, *d.programs)}
    # There has to be one, also where the board has all that is needed.
    brought = [one for name in needed or ("hog",) for one in files[name]]
    argv = [sys.executable, "-m", "rtscope", "run", *boot.campaign(brought, out)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=BOOT_S)
    if done.returncode not in boot.designs[0].status:
        print(f"{boot.name}: status {done.returncode}\n{done.stderr[-1500:]}")


def explained(boot: Boot, out: Path) -> Iterator[Judgement]:
    """Yield the judgement of each design and kernel of a result."""
    argv = (sys.executable, "-m", "rtscope", "explain", str(out), "--json")
    done = subprocess.run(argv, capture_output=True, text=True)
    documents: list[dict[str, Any]] = json.loads(done.stdout) if done.stdout else []
    for design in boot.designs:
        window_ns = boot.window_ns(design)
        found = {d["kernel"]: judge(design, d, window_ns) for d in documents}
        for kernel in BOTH:
            lost = Judgement(design.name, kernel, "wrong", 0.0, "not explained")
            yield found.get(kernel, lost)


def _append(journal: Path, one: Judgement) -> None:
    with journal.open("a") as lines:
        lines.write(json.dumps(one.as_row()) + "\n")


def _read_journal(journal: Path) -> Iterator[Judgement]:
    """Yield the last judgement of each design and kernel."""
    if not journal.exists():
        return
    rows = map(json.loads, journal.read_text().splitlines())
    yield from {(r["design"], r["kernel"]): Judgement(**r) for r in rows}.values()


def _verdicts(rows: Sequence[Judgement]) -> dict[str, dict[str, str]]:
    kept: dict[str, dict[str, str]] = {}
    for one in rows:
        kept.setdefault(one.design, {})[one.kernel] = one.verdict
    return kept


def summary(rows: Sequence[Judgement]) -> str:
    """Count the verdicts; what was late and quiet apart, and by both truths."""
    late = [one for one in rows if one.title]
    quiet = Counter(one.verdict for one in rows if not one.title)
    now = Counter(one.verdict for one in late)
    first = Counter(one.at_first or one.verdict for one in late)
    return (
        f"Of {len(late)} late wake-ups {first['right']} are explained right by the "
        f"truth as first written ({_counts(first)}), and {now['right']} by the "
        f"completed truth ({_counts(now)}); of {quiet.total()} others {quiet['right']} "
        "were rightly not late."
    )


def _counts(verdicts: Mapping[str, int]) -> str:
    return ", ".join(f"{verdicts[v]} {v}" for v in VERDICTS if verdicts.get(v))


def table(
    designs: Sequence[Design],
    rows: Sequence[Judgement],
    first: Mapping[str, Mapping[str, str]],
) -> str:
    """
    Write a row for each design and kernel, and the sentences that are not right.

    What was rightly not late, in the first run too, has none.
    """
    lines = [
        "| design | kernel | title | first run | first truth | now |",
        "|---|---|---|---|---|---|",
    ]
    wrong = []
    for design in designs:
        for one in (r for r in rows if r.design == design.name):
            kernel = one.kernel.removeprefix("debian-")
            before = first.get(design.name, {}).get(one.kernel, "")
            if not one.title and {one.verdict, before} <= {"right", ""}:
                continue
            told = (one.title or "nothing late").replace("|", "\\|")
            counts = (told, before, one.at_first or one.verdict, one.verdict)
            lines.append(f"| {' | '.join((f'`{design.name}`', kernel, *counts))} |")
            if one.verdict != "right":
                said = one.sentence.partition(" Rest (")[0] or told
                wrong.append(f"| `{design.name}` | {kernel} | {said} |")
    if wrong:
        lines += ["", "| not right now | kernel | sentence |", "|---|---|---|", *wrong]
    lines += ["", *_completions(designs)]
    return "\n".join(lines) + "\n"


def brief_table(
    designs: Sequence[Design],
    rows: Sequence[Judgement],
    first: Mapping[str, Mapping[str, str]],
) -> str:
    """Write a row for each design; a verdict other than right stands in its cell."""
    short = [kernel.removeprefix("debian-") for kernel in BOTH]
    lines = [f"| design | {' | '.join(short)} |", "|---|---|---|"]
    for design in designs:
        by_kernel = {one.kernel: one for one in rows if one.design == design.name}
        before = first.get(design.name, {})
        cells = (_brief(by_kernel.get(k), before.get(k, "")) for k in BOTH)
        lines.append(f"| `{design.name}` | {' | '.join(cells)} |")
    return "\n".join((*lines, "", *_completions(designs))) + "\n"


def _brief(one: Judgement | None, before: str) -> str:
    if one is None:
        return "not measured"
    told = re.sub(r" \[\w+\]", "", one.title.replace("|", "\\|")) or "quiet"
    late = f", {one.latency_us:,.0f} µs" if one.title else ""
    then = f"; first: {before}" if before not in ("", one.verdict) else ""
    by_first = one.at_first or one.verdict
    truth = f"; first truth: {by_first}" if by_first != one.verdict else ""
    now = "" if one.verdict == "right" else f"**{one.verdict}**: "
    return f"{now}{told}{late}{then}{truth}"


def _completions(designs: Sequence[Design]) -> Iterator[str]:
    """Yield a row for each truth that was completed."""
    completed = [one for one in designs if one.completed]
    if completed:
        yield "| truth completed | on | by | why | recorded path |"
        yield "|---|---|---|---|---|"
    for design in completed:
        if (one := design.completed) is not None:
            by = ", ".join(one.causes) or "words"
            row = (f"`{design.name}`", str(one.on), by, one.why, f"`{one.path}`")
            yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    main()
