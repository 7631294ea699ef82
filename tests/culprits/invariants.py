"""
Count how many explained wake-ups of recorded runs keep all invariants, by kind.

    PYTHONPATH=src:tests python -m culprits.invariants RESULT...

It explains every recorded wake-up of the results of virtual boards, and writes nothing.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rtscope.analysis import every_run, stream_of, symbols_of
from rtscope.board.cache import cache_dir
from rtscope.errors import RtscopeError
from rtscope.exectrace.file import with_windows
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Explanation


def explanations_of(path: Path) -> Iterator[tuple[str, Explanation]]:
    """Yield kernel and load of each recorded wake-up, and its explanation."""
    for one in every_run(path):
        try:
            stream = stream_of(one)
        except RtscopeError as error:
            _log(f"{one.directory}: {error}")
            continue
        symbols = symbols_of(one, cache=cache_dir(), log=_log)
        virtual = one.record.virtual
        of = f"{virtual.kernel if virtual else ''}, {one.record.run.load}"
        for section in with_windows(stream):
            yield of, explain_path(section, symbols, arch=stream.arch)


def _log(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main(paths: Sequence[str]) -> None:
    """Print a row for each kernel and load, then all together."""
    known: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for path in paths:
        for of, explanation in explanations_of(Path(path)):
            known[of] += 1
            kept[of] += not explanation.broken
            broken.update({one.invariant.name for one in explanation.broken})
    for of, number in sorted(known.items()):
        print(f"{of}: {kept[of]} of {number}")
    share = 100 * kept.total() / max(1, known.total())
    print(f"all: {kept.total()} of {known.total()} ({share:.1f} %)")
    for name, number in broken.most_common():
        print(f"broken: {name.lower()} in {number}")


if __name__ == "__main__":
    main(sys.argv[1:])
