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
from functools import cache
from pathlib import Path
from typing import Any

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
    keys = held(KEYS).get(name, {})
    for document in sorted(keys.keys() | outcome.keys.keys()):
        had, has = set(keys.get(document, ())), set(outcome.keys.get(document, ()))
        found += [f"keys of {document}: - {key}" for key in sorted(had - has)]
        found += [f"keys of {document}: + {key}" for key in sorted(has - had)]
    return found


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


def _chosen(words: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    for case in all_cases():
        if not words or any(case.name.startswith(word) for word in words):
            yield case.name, run_case(case)


def main() -> int:
    """Run the cases; print, rewrite or keep what they give."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("cases", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--rewrite", action="store_true", help="hold what is said now")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write whole outputs")
    parser.add_argument("--against", type=Path, metavar="DIR", help="show differences")
    asked = parser.parse_args()
    begun = time.process_time()
    digests: dict[str, Any] = dict(held(DIGESTS)) if asked.cases else {}
    keys: dict[str, Any] = dict(held(KEYS)) if asked.cases else {}
    count = differing = 0
    for name, outcome in _chosen(asked.cases):
        count += 1
        digests[name] = outcome.digests()
        keys.pop(name, None)
        if outcome.keys:
            keys[name] = outcome.keys
        if asked.keep:
            keep(asked.keep, name, outcome)
        if found := differences(name, outcome):
            differing += 1
            print(f"{name}\n" + "".join(f"  {line}\n" for line in found), end="")
            lines = list(diff(asked.against, name, outcome)) if asked.against else []
            print("".join(f"    {line}\n" for line in lines[:MAX_DIFF_LINES]), end="")
            if (left := len(lines) - MAX_DIFF_LINES) > 0:
                print(f"    and {left} more lines: diff with --keep")
    if asked.rewrite:
        order = [case.name for case in all_cases()]
        for path, table in ((DIGESTS, digests), (KEYS, keys)):
            path.write_text(as_toml({n: table[n] for n in order if n in table}))
    print(
        f"{count} cases, {differing} differ, {time.process_time() - begun:.0f} s of CPU"
    )
    return 1 if differing and not asked.rewrite else 0


if __name__ == "__main__":
    sys.exit(main())
