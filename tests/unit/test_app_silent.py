"""A program whose real-time threads leave the agent no CPU time."""

import pytest

from rtscope.host.errors import TargetError
from rtscope.machine.target.stream import PipeStream
from rtscope.verbs.app import watch


class Silent:
    """A machine whose agent says nothing."""

    name = "silent"

    def start_agent(self, *_: object, **__: object) -> PipeStream:
        """Start a program that waits in place of the agent."""
        return PipeStream(["cat"], heartbeat=False)


def test_who_hears_nothing_is_told_what_may_be_in_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "TIMEOUT_S", 0.05)

    with pytest.raises(TargetError, match=r"all CPUs\?.* taskset -apc 1 70"):
        watch._watched(Silent(), 70, 0, ())  # type: ignore[arg-type]
