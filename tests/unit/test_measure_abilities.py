"""What a machine can do is what its agent could do when it was tried."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from fakes import targets
from fakes.faketarget import FakeStream, FakeTarget
from rtscope.contract import AgentError, Applied, Line, Tracing, Tuned
from rtscope.machine.gather import gather
from rtscope.measure.preflight import Ability, State, machine_abilities

TRACED = Tracing(
    enabled=True,
    cause="",
    reason="",
    remedy="",
    clock="mono",
    page_bytes=4096,
    buffer_kb=4096,
    longest_read_gap_ns=1,
    candidates_lost=0,
    events=("sched:sched_switch", "preemptirq:irq_disable"),
    missing_events=(),
    cpus=(),
    kept=(),
)
AS_IT_IS = Applied("rt_runtime_us", 0, old="950000", value="950000")
TUNED = Tuned(schema=2, applied=0, already=1, refused=0)
NO_RIGHT = AgentError(
    message="cannot set SCHED_FIFO 99 on CPU 0: Operation not permitted: RLIMIT_RTPRIO "
    "allows priorities up to 50 only",
    cause="rlimit",
    remedy="ask for --priority 50 or less",
)
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"


class Machine(FakeTarget):
    """Answers by what is asked of its agent; what is not refused works."""

    refusals: Mapping[str, Line]
    tracing: Tracing = TRACED

    def start_agent(
        self, args: Sequence[str], *, privileged: bool = False
    ) -> FakeStream:
        asked = " ".join(args)
        self.log.append(asked)
        for words, line in self.refusals.items():
            if words in asked:
                return FakeStream([[line]], log=self.log, name=args[0])
        if args[0] == "hold":
            return FakeStream([[AS_IT_IS, TUNED], []], log=self.log, name="hold")
        done = targets.traced_result(self.tracing)
        return FakeStream([[done]], log=self.log, name=args[0])


Found = Callable[..., Mapping[str, Ability]]


def machine(refusals: Mapping[str, Line] | None = None) -> Machine:
    well = targets.target(files={RT_RUNTIME: "950000\n"})
    made = Machine({}, reader=well.reader, programs={"stress-ng": targets.STRESS_NG})
    made.refusals = refusals or {}
    return made


def found(target: FakeTarget) -> Mapping[str, Ability]:
    abilities = machine_abilities(target, gather(target.reader))
    return {one.name: one for one in abilities}


def test_where_nothing_is_refused_only_the_guest_is_a_limit() -> None:
    target = machine()
    abilities = found(target)

    wanting = [one.name for one in abilities.values() if one.state is not State.WORKS]
    assert wanting == ["hardware"]
    assert abilities["hardware"].remedy == "measure on bare metal"
    assert abilities["loads"].what == "stress-ng, version 0.15.06"


def test_every_trial_is_short_and_changes_no_setting() -> None:
    target = machine()
    found(target)

    trials = [line for line in target.log if line.startswith("measure")]
    assert len(trials) == 4
    assert all("--duration-ns 10000000 " in line for line in trials)
    assert not any("--set" in line for line in trials)
    (held,) = [line for line in target.log if line.startswith("hold")]
    assert held.endswith("rt_runtime_us:0=950000"), "as it is"


@pytest.mark.parametrize(
    ("asked", "name", "state"),
    [
        ("--policy fifo", "real-time threads", State.MISSING),
        ("--policy deadline", "SCHED_DEADLINE", State.LIMITED),
        ("--trace", "tracing", State.MISSING),
        ("--hold-cpu-awake", "idle states", State.LIMITED),
    ],
)
def test_what_the_agent_refuses_has_its_cause_and_remedy(
    asked: str, name: str, state: State
) -> None:
    abilities = found(machine({asked: NO_RIGHT}))

    assert abilities[name] == Ability(
        name, state, "RLIMIT_RTPRIO allows priorities up to 50 only", *NO_RIGHT_ADVICE
    )
    others = {n: a.state for n, a in abilities.items() if n not in (name, "hardware")}
    assert set(others.values()) == {State.WORKS}, "one refusal hides nothing else"


NO_RIGHT_ADVICE = (NO_RIGHT.remedy, NO_RIGHT.cause)


def test_a_locked_down_kernel_is_named_as_what_refuses_its_trace() -> None:
    target = machine()
    reason = "the kernel is locked down (confidentiality): it gives out no trace"
    remedy = "boot with lockdown=integrity or none to trace"
    target.tracing = replace(
        TRACED, enabled=False, cause="lockdown", reason=reason, remedy=remedy
    )

    tracing = found(target)["tracing"]
    assert tracing == Ability("tracing", State.MISSING, reason, remedy, "lockdown")


def test_a_kernel_without_the_events_of_sections_traces_less() -> None:
    target = machine()
    target.tracing = replace(TRACED, events=("sched:sched_switch",))

    tracing = found(target)["tracing"]
    assert tracing.state is State.LIMITED
    assert "CONFIG_PREEMPTIRQ_TRACEPOINTS" in tracing.remedy


def test_settings_that_cannot_be_journalled_say_why() -> None:
    no = AgentError("no journal: it needs root", cause="capability", remedy="be root")
    settings = found(machine({"hold": no}))["settings"]

    assert settings.state is State.LIMITED
    assert "no journal" in settings.what
    assert "be root" in settings.remedy


def test_without_stress_ng_the_idle_load_is_left() -> None:
    well = targets.target(files={RT_RUNTIME: "950000\n"})
    target = Machine({}, reader=well.reader, programs={})
    target.refusals = {}

    loads = found(target)["loads"]
    assert loads.state is State.LIMITED
    assert "stress-ng" in loads.what
    assert "install it" in loads.remedy
    assert "--load idle" in loads.remedy
