"""What must happen in a demonstration, and whether it did."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rtscope.verbs.demo.caseresult import digest_of
from rtscope.verbs.demo.limits import throttle
from rtscope.verbs.demo.memory import malloc, pagefault
from rtscope.verbs.demo.model import (
    CaseResult,
    Check,
    Demo,
    DemoResult,
    Judged,
    Lane,
    Scenario,
)
from rtscope.verbs.demo.timing import deadline, periodic
from rtscope.verbs.demo.urgency import inherit, preempt, take_turns
from rtscope.verbs.demo.words import ms


def judged(demo: Demo, result: DemoResult, target: str) -> Judged:
    """Return a demonstration with all of its checks."""
    common = _folded([list(common_checks(one)) for one in result.results], result)
    checks_and_notes = (*common, *_CHECKS[demo.scenario](result))
    return Judged(
        demo,
        target,
        result.results,
        checks=tuple(one for one in checks_and_notes if isinstance(one, Check)),
        notes=tuple(one for one in checks_and_notes if isinstance(one, str)),
        settings=result.facts,
        settings_after=result.facts_after,
        not_tried=result.not_tried,
        digest=digest_of(result.results),
    )


def _folded(by_case: Sequence[Sequence[Check]], result: DemoResult) -> Iterator[Check]:
    """Yield each check once for all cases, with what was seen where it failed."""
    titles = [one.case.title for one in result.results]
    for same in zip(*by_case, strict=True):
        pairs = list(zip(titles, same, strict=True))
        failed = [f"{title}: {one.seen}" for title, one in pairs if not one.held]
        seen = same[0].seen if len(same) == 1 else f"in {len(same)} cases"
        yield Check(same[0].says, not failed, "; ".join(failed) or seen)


# --- what must hold of every case ---------------------------------------------------


def common_checks(one: CaseResult) -> Iterator[Check]:
    """Yield what must hold of any case, whatever it shows."""
    wrong = [lane for lane in one.lanes if lane.script.split(":")[1:3] != _had(lane)]
    yield Check(
        "each thread had its policy before its first step",
        not wrong,
        ", ".join(f"{lane.name} {_policy(lane)}" for lane in one.lanes),
    )
    pinned = [lane for lane in one.lanes if lane.got.policy != "deadline"]
    yield Check(
        "all had one CPU",
        {lane.got.affinity for lane in pinned} <= {str(one.begin.cpu)},
        f"CPU {', '.join(sorted({lane.got.affinity for lane in pinned})) or '-'}",
    )
    stopped = [lane.name for lane in one.lanes if lane.times("done")[0][1]]
    yield Check(
        "all took their last step",
        not stopped,
        f"stopped: {', '.join(stopped) or 'none'}",
    )


def _had(lane: Lane) -> list[str]:
    """Return policy and parameter as a script has them."""
    got = lane.got
    if got.policy == "deadline":
        return [got.policy, f"{got.runtime_ns}/{got.period_ns}"]
    return [got.policy, f"{got.priority}"]


def _policy(lane: Lane) -> str:
    got = lane.got
    if got.policy == "deadline":
        return f"deadline {ms(got.runtime_ns)} in {ms(got.period_ns)}"
    return f"{got.policy} {got.priority}" if got.priority else got.policy


_CHECKS: Mapping[Scenario, Callable[[DemoResult], Iterator[Check | str]]] = {
    Scenario.PREEMPT: preempt,
    Scenario.RR: take_turns,
    Scenario.DEADLINE: deadline,
    Scenario.THROTTLE: throttle,
    Scenario.INVERSION: inherit,
    Scenario.PAGEFAULT: pagefault,
    Scenario.MALLOC: malloc,
    Scenario.PERIODIC: periodic,
}
