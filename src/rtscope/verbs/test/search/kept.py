"""
The rounds of searches, in the cache: the same command goes on where one was ended.

Equal starts of a board are equal, so a round that is kept is as good as a new one. It
is found by its settings: one that the search would not make now is never taken.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from rtscope.boards.parts.cache import part_key
from rtscope.host.errors import RecordError
from rtscope.host.files import write_atomically
from rtscope.host.files.opening import read_bounded
from rtscope.verbs.test.search.trials import Proposal, Trial

SEARCHES = "searches"
"""A directory of the cache."""

MOST_SEARCHES = 20
"""That are kept; the oldest go first."""

MAX_BYTES = 64 << 20
"""Of a round."""

_ROUND = TypeAdapter(tuple[Trial, ...])


@dataclass(frozen=True, slots=True)
class KeptRounds:
    """The rounds of one search."""

    folder: Path
    log: Callable[[str], None]

    @classmethod
    def of(
        cls, cache: Path, inputs: object, *, log: Callable[[str], None]
    ) -> "KeptRounds":
        """Return those of the search with these inputs: all that decides its trials."""
        return cls(cache / SEARCHES / part_key(inputs)[:32], log)

    def find(self, proposals: Sequence[Proposal]) -> tuple[Trial, ...] | None:
        """Return the trials of a round; None: it was not made, or is damaged."""
        try:
            content = read_bounded(
                self._path(proposals), limit=MAX_BYTES, kind="round of a search"
            )
            trials = _ROUND.validate_json(content)
        except (RecordError, ValueError):
            return None
        same = [one.proposal for one in trials] == list(proposals)
        return trials if same else None

    def keep(self, proposals: Sequence[Proposal], trials: Sequence[Trial]) -> None:
        """Keep a round; one that cannot be written is logged, and no error."""
        path = self._path(proposals)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, _ROUND.dump_json(tuple(trials)))
        except (RecordError, OSError) as error:
            self.log(f"{error}: a search that is ended begins anew")

    def prune(self) -> None:
        """Remove the rounds of all but the newest searches."""
        with suppress(OSError):
            every = sorted(
                self.folder.parent.iterdir(), key=lambda one: one.stat().st_mtime_ns
            )
            for one in every[:-MOST_SEARCHES]:
                shutil.rmtree(one, ignore_errors=True)

    def _path(self, proposals: Sequence[Proposal]) -> Path:
        key = part_key([[one.settings, one.how, one.base] for one in proposals])
        return self.folder / f"{key[:32]}.json"
