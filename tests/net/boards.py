"""
Result digests of virtual boards: `python -m net.boards`; `--rewrite` holds new ones.

A digest holds for its inputs alone: kernel, packages, QEMU, agent. Where they differ,
because an archive has newer packages or the agent has other bytes, nothing is compared.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

STORED = Path(__file__).with_name("boards.toml")
TYPED = ("run", "--seed", "1", "--duration", "1s", "--load", "idle,memory")


@dataclass(frozen=True, slots=True)
class Digests:
    """What one run was computed from, and its result."""

    inputs: str
    result: str


def stored() -> Mapping[str, Mapping[str, Digests]]:
    """Return the digests that are held, by target and kernel, then by load."""
    tables = tomllib.loads(STORED.read_text("utf-8"))
    return {
        board: {load: Digests(**row) for load, row in rows.items()}
        for board, rows in tables.items()
    }


def measure(board: str, folder: Path) -> Mapping[str, Digests]:
    """Boot a board such as `virtual:pc debian-6.12` under each load."""
    target, kernel = board.split()
    out = folder / "results"
    words: Sequence[str] = (*TYPED, "--target", target, "--kernel", kernel)
    subprocess.run(
        [sys.executable, "-m", "rtscope", *words, "--out", str(out)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    records = [json.loads(p.read_bytes()) for p in out.rglob("record.json")]
    return {
        one["run"]["load"]: Digests(
            one["virtual"]["inputs_digest"], one["result_digest"]
        )
        for one in records
    }


def differences(
    held: Mapping[str, Digests], measured: Mapping[str, Digests]
) -> Iterator[str]:
    """Yield the loads of equal inputs that had another result."""
    for load, before in held.items():
        now = measured[load]
        if now.inputs == before.inputs and now.result != before.result:
            yield f"{load}: {before.result} -> {now.result}"


def main() -> int:
    """Compare each board, or hold its digests."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[1])
    parser.add_argument("--rewrite", action="store_true")
    rewrite = parser.parse_args().rewrite
    lines, status = [], 0
    for board, held in stored().items():
        with tempfile.TemporaryDirectory() as folder:
            measured = measure(board, Path(folder))
        for difference in differences(held, measured):
            print(f"{board} {difference}")
            status = 1
        lines.append(f'["{board}"]')
        lines += [
            f'{load} = {{ inputs = "{one.inputs}", result = "{one.result}" }}'
            for load, one in sorted(measured.items())
        ]
    if rewrite:
        STORED.write_text("\n".join(lines) + "\n", "utf-8")
    return 0 if rewrite else status


if __name__ == "__main__":
    raise SystemExit(main())
