"""One measurement: who is started and ended when, and what is said when it fails."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from fakes import targets, traces
from fakes.faketarget import FakeStream, FakeTarget, Script
from fakes.targets import loading, measuring, target
from rtscope.contract import AgentError, Line, LoadEnd, Tick
from rtscope.host.errors import MeasurementError, TargetError
from rtscope.measure.observe import PATIENCE_S, AgentCommands, Observation, observe

UNDER_LOAD = AgentCommands(
    measure_args=("measure",),
    measure_privileged=True,
    load_args=("load", "--", "stress-ng"),
    load_privileged=False,
    warmup_ns=2_000_000_000,
    duration_ns=6_000_000_000,
)


def ticking(*, step_s: float = 0.5) -> Callable[[], float]:
    """Return a clock that moves on whenever it is looked at."""
    now = [0.0]

    def clock() -> float:
        now[0] += step_s
        return now[0]

    return clock


def seen_on(
    on: FakeTarget, *, request: AgentCommands = UNDER_LOAD, step_s: float = 0.5
) -> Observation:
    return observe(on, request, on_line=lambda line: None, clock=ticking(step_s=step_s))


ENDED = LoadEnd(
    status=7, signal=None, stop_requested=False, killed=0, oom_kills=None, cpu_ns=0
)


def test_the_load_runs_before_the_agent_starts_and_ends_after_it() -> None:
    on = target()
    seen = seen_on(on)

    assert on.log == [
        "load -- stress-ng",
        "root measure",
        "stop load",
        "kill measure",
        "kill load",
    ]
    assert seen.result == targets.result()
    assert not seen.load_ended_early
    assert not seen.interrupted


PRICED = replace(UNDER_LOAD, untraced_args=("measure", "--less"))


def test_what_tracing_costs_is_measured_before_and_after_under_the_same_load() -> None:
    on = target()
    seen = seen_on(on, request=PRICED)

    assert on.log == [
        "load -- stress-ng",
        "root measure --less",
        "root measure",
        "root measure --less",
        "stop load",
        *(["kill measure"] * 3),
        "kill load",
    ]
    assert seen.untraced == [targets.result()] * 2
    assert len(seen.ticks) == 6  # those of the run that counts


def test_a_limit_of_processes_is_named_in_place_of_the_command() -> None:
    refused = AgentError(
        cause="other",
        message="cannot run stress-ng: Resource temporarily unavailable",
        remedy="check the command and the directories named",
    )
    on = target({"load": [[refused]]})

    with pytest.raises(
        MeasurementError, match=r"unavailable; raise .* ulimit -u .*max"
    ):
        seen_on(on)


def test_ctrl_c_before_the_run_that_counts_leaves_nothing_to_keep() -> None:
    on = target()
    looks = iter(range(100))

    def clock() -> float:
        if (look := next(looks)) == 1:  # when the first line has come
            raise KeyboardInterrupt
        return float(look)

    with pytest.raises(KeyboardInterrupt):
        observe(
            on, replace(PRICED, load_args=()), on_line=lambda line: None, clock=clock
        )

    assert on.log == ["root measure --less", "stop measure", "kill measure"]


def test_only_the_run_that_counts_is_shown() -> None:
    heard: list[Line] = []
    observe(target(), PRICED, on_line=heard.append, clock=ticking())

    assert sum(isinstance(line, Tick) for line in heard) == 6


def test_the_trace_is_what_the_run_that_counts_has_sent() -> None:
    sent: list[Line] = [*traces.FILES]
    sent.append(traces.trace_pages(0, 3, [traces.page(7)]))
    on = target({"measure": [[targets.HELLO, *sent, targets.result()]]})
    seen = seen_on(on, request=PRICED)

    assert seen.trace.files["events/sched/sched_switch/format"] == traces.SWITCH
    assert [page.seq for page in seen.trace.pages[0]] == [3]


def test_the_load_is_warm_before_the_agent_starts() -> None:
    waited = [0]

    def clock() -> float:
        waited[0] += 1
        return waited[0] * 0.1

    started: list[int] = []

    class Told(FakeTarget):
        def start_agent(
            self, args: Sequence[str], *, privileged: bool = False
        ) -> FakeStream:
            started.append(waited[0])
            return super().start_agent(args, privileged=privileged)

    on = Told({"load": loading(), "measure": measuring()})
    observe(on, UNDER_LOAD, on_line=lambda line: None, clock=clock)

    load, meter = started
    assert (meter - load) * 0.1 >= 2


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (ENDED, "(exit status 7)"),
        (
            LoadEnd(
                status=None,
                signal=9,
                stop_requested=False,
                killed=0,
                oom_kills=None,
                cpu_ns=0,
            ),
            "(signal 9)",
        ),
    ],
)
def test_a_load_that_ends_before_the_measurement_is_an_error(
    end: LoadEnd, why: str
) -> None:
    on = target({"load": [[targets.LOAD_HELLO], [], [end]]})

    with pytest.raises(MeasurementError, match=re.escape(why)):
        seen_on(on)

    assert on.log == ["load -- stress-ng", "kill load"]


def test_a_load_that_does_not_start_is_given_up() -> None:
    on = target({"load": [[]] * 1000})

    with pytest.raises(TargetError, match="the load did not start within 30 s"):
        seen_on(on)

    assert on.log[-1] == "kill load"


def test_a_load_that_ends_during_the_measurement_is_noted() -> None:
    script: Script = [*loading()[:6], [ENDED]]

    assert seen_on(target({"load": script})).load_ended_early


def test_a_guard_that_vanishes_during_the_measurement_is_noted() -> None:
    seen = seen_on(target({"load": loading()[:8]}))

    assert seen.load_ended_early
    assert seen.load_end is None


def test_a_load_that_does_not_stop_is_killed_after_a_while() -> None:
    on = target(on_stop={"load": [[]] * 1000})

    seen = seen_on(on)

    assert seen.result is not None
    assert seen.load_end is None
    assert on.log[-1] == "kill load"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ([[]] * 1000, "no line from the agent for 30 s"),
        ([[targets.HELLO], *([[]] * 1000)], "no line from the agent for 25 s"),
        ([[targets.HELLO]], "the agent ended without a result"),
        ([[AgentError("no", cause="cpu", remedy="yes")]], "no; yes"),
        ([[AgentError("no", cause="cpu", remedy="")]], "^no$"),
    ],
)
def test_an_agent_without_a_result_is_an_error_and_ends_the_load(
    script: Script, why: str
) -> None:
    on = target({"measure": script})

    with pytest.raises(MeasurementError, match=why):
        seen_on(on)

    assert on.log[-2:] == ["kill measure", "kill load"]


def interrupting(times: int) -> Callable[[Line], None]:
    left = iter(range(times))

    def hear(line: Line) -> None:
        if isinstance(line, Tick) and next(left, None) is not None:
            raise KeyboardInterrupt

    return hear


def test_an_agent_that_never_comes_to_its_result_is_given_up() -> None:
    tick = Tick(1, (), {}, {})
    on = target({"measure": [[targets.HELLO], *([[tick]] * 5_000)]})

    with pytest.raises(TargetError, match="no result after 606 s"):
        seen_on(on)

    assert on.log[-2:] == ["kill measure", "kill load"]


def test_ctrl_c_asks_the_agent_for_what_it_has() -> None:
    on = target()
    seen = observe(on, UNDER_LOAD, on_line=interrupting(1), clock=ticking())

    assert seen.interrupted
    assert seen.result == targets.result(stopped="signal")
    assert on.log[2:] == ["stop measure", "stop load", "kill measure", "kill load"]


def test_a_second_ctrl_c_does_not_cost_what_the_first_has_asked_for() -> None:
    on = target(on_stop={"measure": measuring(stopped="signal")})
    seen = observe(on, UNDER_LOAD, on_line=interrupting(2), clock=ticking())

    assert seen.interrupted
    assert seen.result == targets.result(stopped="signal")
    assert on.log[2:] == ["stop measure", "stop load", "kill measure", "kill load"]


def test_a_second_ctrl_c_ends_an_agent_that_does_not_stop() -> None:
    on = target(on_stop={"measure": measuring()})

    with pytest.raises(KeyboardInterrupt):
        observe(
            on,
            UNDER_LOAD,
            on_line=interrupting(2),
            clock=ticking(step_s=PATIENCE_S + 1),
        )

    assert on.log[-2:] == ["kill measure", "kill load"]


@pytest.mark.parametrize(
    "script",
    [[], [[targets.HELLO]], [[AgentError("no samples", cause="other", remedy="")]]],
)
@pytest.mark.parametrize("untraced", [(), ("measure",)])
def test_ctrl_c_before_there_is_a_result_is_an_interruption(
    script: Script, untraced: tuple[str, ...]
) -> None:
    on = target(on_stop={"measure": script})
    commands = replace(UNDER_LOAD, untraced_args=untraced)

    with pytest.raises(KeyboardInterrupt):
        observe(on, commands, on_line=interrupting_at_start(on), clock=ticking())

    assert on.log[-2:] == ["kill measure", "kill load"]


def interrupting_at_start(on: FakeTarget) -> Callable[[Line], None]:
    """Interrupt as soon as the agent was started, by a line of the load."""
    left = iter([1])

    def hear(_line: Line) -> None:
        if "root measure" in on.log and next(left, None):
            raise KeyboardInterrupt

    return hear


def test_whatever_goes_wrong_both_agents_are_ended() -> None:
    def hear(line: Line) -> None:
        if isinstance(line, Tick):
            raise ZeroDivisionError

    on = target()
    with pytest.raises(ZeroDivisionError):
        observe(on, UNDER_LOAD, on_line=hear, clock=ticking())

    assert on.log[-2:] == ["kill measure", "kill load"]


@pytest.fixture(autouse=True)
def _nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_sleep(_seconds: float) -> None:
        raise AssertionError("a unit test sleeps")

    monkeypatch.setattr("time.sleep", no_sleep)
