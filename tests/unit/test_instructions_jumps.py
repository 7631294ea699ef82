"""A function that jumps to another leaves no return address: a title says its doubt."""

from fakes.paths import Step, section, symbols
from fakes.wakeuppaths import NAMES, SWITCH, THREAD, TIMER
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.model import Cause, Confidence, Explanation, Segment
from rtscope.explain.words import evidence, sentence

TABLE = symbols(*NAMES, "plant", "walk", "dally", "__const_udelay", "ktime_get")
RETURN: list[Step] = [(5, "handle_exception+")]
ENDS: list[Step] = [(10, "plant+"), *SWITCH, *THREAD]


def spun(function: str) -> list[Step]:
    return [(5, "ktime_get"), (200, function + "+")] * 3


def explained(before: list[Step], after: list[Step]) -> Explanation:
    late = sum(step[0] for step in after)
    return explain_path(section([*before, *after], TABLE, late=late), TABLE, arch="arm")


def blamed(explanation: Explanation) -> Segment:
    found = [one for one in explanation.segments if one.cause is Cause.PREEMPTION_OFF]
    return max(found, key=lambda one: one.duration_ns)


def test_who_jumped_to_a_helper_before_the_path_may_be_missing_and_is_told() -> None:
    told = explained([(50, "dally+")], [*TIMER, *RETURN, *spun("dally"), *ENDS])

    segment = blamed(told)

    assert (segment.name, segment.jumped_to) == ("dally", "dally")
    assert segment.confidence is Confidence.INFERRED
    assert evidence(segment)[-2].startswith("dally was called before the path begins")
    assert "dally < plant (or a function that jumped to it)" in sentence(told)


def test_who_jumped_to_a_helper_in_the_path_is_named() -> None:
    before: list[Step] = [(10, "plant"), (10, "walk"), (50, "dally")]

    told = explained(before, [*TIMER, *RETURN, *spun("dally"), *ENDS])

    assert (blamed(told).name, blamed(told).jumped_to) == ("walk", "")
    assert blamed(told).confidence is Confidence.SEEN
    assert "jumped" not in sentence(told)


def test_a_helper_that_is_known_by_its_name_may_have_been_jumped_to() -> None:
    before: list[Step] = [(50, "__const_udelay+")]
    after = [*TIMER, *RETURN, (400, "__const_udelay+"), *ENDS]

    segment = blamed(explained(before, after))

    assert (segment.name, segment.jumped_to) == ("plant", "__const_udelay")


def test_a_function_with_work_of_its_own_is_to_blame_however_it_was_reached() -> None:
    before: list[Step] = [(50, "walk+")]
    after = [*TIMER, *RETURN, (400, "walk+"), *ENDS]

    segment = blamed(explained(before, after))

    assert (segment.name, segment.jumped_to) == ("walk", "")
    assert segment.confidence is Confidence.SEEN
