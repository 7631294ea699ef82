"""A search that was ended goes on where it was, with the trials it would have made."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rtscope.verbs.test.search import kept as kept_rounds
from rtscope.verbs.test.search.kept import SEARCHES, KeptRounds
from rtscope.verbs.test.search.levers import Lever, Space
from rtscope.verbs.test.search.rounds import how_to_go_on, make_rounds
from rtscope.verbs.test.search.trials import Instant, Proposal, Trial

SPACE = Space.of([Lever("phase 2", 0, 998, 2, 1000, frozenset({"t"}), period=1000)])
COUNT = 70


class Board:
    """Starts that are counted; the board fails after some rounds."""

    def __init__(self, rounds: int = 100) -> None:
        self.left = rounds
        self.made = 0

    def make(self, proposals: Sequence[Proposal]) -> tuple[Trial, ...]:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        self.made += len(proposals)
        return tuple(trial_of(one) for one in proposals)


def trial_of(proposal: Proposal) -> Trial:
    [phase] = proposal.settings
    busy = Instant("t", "running", phase * 1000)
    return Trial(
        *(proposal, 1000 - abs(phase - 700), "control", frozenset({"t"})),
        instants=(busy,),
        phases_ns=(None,),
    )


def search(
    board: Board, cache: Path, log: Callable[[str], None] = print
) -> list[Trial]:
    trials = [trial_of(Proposal((0,), "first"))]
    rounds = KeptRounds.of(cache, ["a test"], log=log)
    with how_to_go_on(trials, COUNT, log):
        make_rounds(
            *(SPACE, trials),
            count=COUNT,
            seed=1,
            make=board.make,
            rounds=rounds,
            log=log,
        )
    rounds.prune()
    return trials


def test_a_search_that_was_ended_goes_on_with_the_same_trials(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        search(Board(rounds=2), tmp_path, said.append)
    second = Board()

    trials = search(second, tmp_path, said.append)

    assert any(one.startswith("41 of 70 starts made: type the same") for one in said)
    assert "40 starts taken from an earlier search" in said
    assert said[-1].startswith("70 of 70 starts: worst response 0.998 virtual µs, of")
    assert second.made == COUNT - 41
    assert trials == search(Board(), tmp_path / "other")


def test_a_damaged_round_is_made_again(tmp_path: Path) -> None:
    trials = search(Board(), tmp_path)
    one = min((tmp_path / SEARCHES).rglob("*.json"))
    one.write_text('[{"half')
    again = Board()

    assert search(again, tmp_path) == trials
    assert 0 < again.made <= 20


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / SEARCHES).write_text("no directory")
    said: list[str] = []

    assert len(search(Board(), tmp_path, said.append)) == COUNT
    assert any("begins anew" in one for one in said)


def test_only_the_newest_searches_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_rounds, "MOST_SEARCHES", 1)
    old = tmp_path / SEARCHES / "old"
    old.mkdir(parents=True)

    search(Board(), tmp_path)

    assert not old.exists()
    assert len(list((tmp_path / SEARCHES).iterdir())) == 1
