"""
Type every case and compare it with what is held: `python -m net.run`, or `make net`.

Prints what differs, by case; 1 if anything does. With --keep the whole outputs are
kept, and a later run with --against shows how its own differ from them.
"""

import argparse
import difflib
import re
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from net import families
from net.cases import HERE, all_cases
from net.outcome import Outcome, run_case

DIGESTS, KEYS = HERE / "digests.toml", HERE / "keys.toml"
MAX_DIFF_LINES = 40

Table = Mapping[str, Any]


@cache
def held(path: Path) -> Table:
    """Return what a file holds of each case."""
    return tomllib.loads(path.read_text("utf-8")) if path.exists() else {}


def differences(name: str, outcome: Outcome) -> list[str]:
    """Return what is other than held of a case."""
    was = held(DIGESTS).get(name)
    if was is None:
        return ["not held yet"]
    old, new = _flat(was), _flat(outcome.digests())
    found = [
        f"{part}: {old.get(part, 'nothing')!s:.20} -> {new.get(part, 'nothing')!s:.20}"
        for part in sorted(old.keys() | new.keys())
        if old.get(part) != new.get(part)
    ]
    return found + [
        f"keys of {document}: + {key}"
        for document, keys in outcome.keys.items()
        for key in sorted(keys - set(held(KEYS).get(document, {}).get("keys", ())))
    ]


def _flat(about: Table) -> Table:
    files = {f"file {name}": digest for name, digest in about.get("files", {}).items()}
    return {**files, **{name: one for name, one in about.items() if name != "files"}}


def as_toml(table: Table) -> str:
    """Write tables of cases, whose values are texts, numbers, lists or tables."""
    return "\n".join(
        f"[{_quoted(name)}]\n{''.join(_lines(about))}" for name, about in table.items()
    )


def _lines(about: Table, before: str = "") -> Iterator[str]:
    for name, value in about.items():
        key = f"{before}{_quoted(name)}"
        if isinstance(value, Mapping):
            yield from _lines(value, f"{key}.")
        elif isinstance(value, list) and value and isinstance(value[0], str):
            items = "".join(f"  {_quoted(one, bare=False)},\n" for one in value)
            yield f"{key} = [\n{items}]\n"
        elif isinstance(value, str):
            yield f"{key} = {_quoted(value, bare=False)}\n"
        else:
            yield f"{key} = {value}\n"


def _quoted(text: str, *, bare: bool = True) -> str:
    if bare and re.fullmatch(r"[A-Za-z0-9_-]+", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def keep(folder: Path, name: str, outcome: Outcome) -> None:
    """Write the whole output of a case."""
    for path, text in _texts(outcome).items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def _texts(outcome: Outcome) -> dict[str, str]:
    files = {f"files/{name}": text for name, text in outcome.files.items()}
    return {"stdout": outcome.out, "stderr": outcome.err, **files}


def diff(folder: Path, name: str, outcome: Outcome) -> Iterator[str]:
    """Yield how the output of a case differs from one that was kept."""
    for path, text in _texts(outcome).items():
        file = folder / name / path
        old = file.read_text("utf-8") if file.exists() else ""
        yield from difflib.unified_diff(
            old.splitlines(), text.splitlines(), f"{name}/{path}", lineterm="", n=1
        )


@dataclass(slots=True)
class Run:
    """What the cases that were typed gave."""

    whole: bool
    """Whether they were all cases."""
    digests: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, set[str]] = field(default_factory=dict)
    differing: int = 0

    def add(self, name: str, outcome: Outcome, *, against: Path | None) -> None:
        """Note a case, and print how it differs from what is held."""
        self.digests[name] = outcome.digests()
        for document, paths in outcome.keys.items():
            self.keys[document] = self.keys.get(document, set()) | paths
        if found := differences(name, outcome):
            self.say(name, found)
            lines = list(diff(against, name, outcome)) if against else []
            print("".join(f"    {line}\n" for line in lines[:MAX_DIFF_LINES]), end="")
            if (left := len(lines) - MAX_DIFF_LINES) > 0:
                print(f"    and {left} more lines: use --keep and diff -r")

    def say(self, name: str, found: Sequence[str]) -> None:
        """Print what differs, if anything does."""
        self.differing += bool(found)
        lines = [name, *(f"  {line}" for line in found)] if found else []
        print("".join(f"{line}\n" for line in lines), end="")

    def end(self) -> None:
        """Print what all cases together no longer have."""
        gone = [
            f"{document}: - {key}"
            for document, about in held(KEYS).items()
            for key in sorted(set(about["keys"]) - self.keys.get(document, set()))
        ]
        if self.whole:
            self.say("keys", gone)
            self.say("families", families.differing())

    def rewrite(self) -> None:
        """Hold what was given."""
        digests, keys = self.digests, self.keys
        if self.whole:
            families.rewrite()
        else:
            digests = {**held(DIGESTS), **digests}
            for document, about in held(KEYS).items():
                keys[document] = keys.get(document, set()) | set(about["keys"])
        order = [case.name for case in all_cases() if case.name in digests]
        DIGESTS.write_text(as_toml({name: digests[name] for name in order}))
        lists = {name: {"keys": sorted(keys[name])} for name in sorted(keys)}
        KEYS.write_text(as_toml(lists))


def main() -> int:
    """Run the cases; print, rewrite or keep what they give."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("cases", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--rewrite", action="store_true", help="hold what is given now")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write whole outputs")
    parser.add_argument("--against", type=Path, metavar="DIR", help="show differences")
    asked = parser.parse_args()
    begun, run = time.process_time(), Run(whole=not asked.cases)
    for case in all_cases():
        if run.whole or case.name.startswith(tuple(asked.cases)):
            outcome = run_case(case)
            run.add(case.name, outcome, against=asked.against)
            if asked.keep:
                keep(asked.keep, case.name, outcome)
    run.end()
    if asked.rewrite:
        run.rewrite()
    used_s = time.process_time() - begun
    print(f"{len(run.digests)} cases, {run.differing} differ, {used_s:.0f} s of CPU")
    return 1 if run.differing and not asked.rewrite else 0


if __name__ == "__main__":
    sys.exit(main())
