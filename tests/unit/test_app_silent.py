"""A program whose real-time threads leave the agent no CPU time."""

import pytest

from rtscope.contract import LoadEnd
from rtscope.host.errors import TargetError
from rtscope.machine.target.stream import PipeStream
from rtscope.verbs.app import watch
from rtscope.verbs.app.watch import early_end


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


@pytest.mark.parametrize(("settle_s", "advised"), [(1.0, True), (0.1, False)])
def test_to_watch_earlier_is_no_advice_to_who_does_so(
    settle_s: float, *, advised: bool
) -> None:
    end = LoadEnd(0, None, stop_requested=False, killed=0, oom_kills=None, cpu_ns=0)

    said = early_end("true", end, settle_s=settle_s)

    assert said.startswith("true ended before it could be watched, with status 0")
    assert ("--settle" in said) == advised
    assert "run it by itself to see why" in said
