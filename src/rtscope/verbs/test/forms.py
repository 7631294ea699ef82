"""The answer of a test for programs: JSON and JUnit. Pure."""

from collections.abc import Iterator
from typing import Any

from rtscope.host.files.junit import Outcome as CaseOutcome
from rtscope.host.files.junit import TestCase, TestSuite, junit_file
from rtscope.host.units import NS_PER_S, plural
from rtscope.host.version import __version__
from rtscope.programs.naming import NamedStack
from rtscope.programs.outside.file import Kind
from rtscope.programs.outside.model import OutsideThread, Place
from rtscope.programs.stackwords import frame_words
from rtscope.stats.summary import summarize_samples
from rtscope.verbs.test.answer import (
    Answer,
    cycle_words,
    places_of,
    shown,
    worst_of,
)
from rtscope.verbs.test.codetables import code_row
from rtscope.verbs.test.functions import functions_row
from rtscope.verbs.test.grown import growth_row
from rtscope.verbs.test.judge import (
    MEASURES,
    Judged,
    Outcome,
    SeenStart,
    judged_threads,
)
from rtscope.verbs.test.latencyparts import parts_row
from rtscope.verbs.test.places import frame_of


def answer_row(answer: Answer) -> dict[str, Any]:
    """Return the answer for a JSON document; times in virtual ns."""
    return {
        "schema": 1,
        "made_by": f"rtscope {__version__}",
        "name": answer.test.title,
        "answer": answer.sentence,
        "exit_status": answer.exit_status,
        "outcome": answer.outcome.value,
        "budgets": [_judged_json(one) for one in answer.judged],
        "baseline": answer.compared or None,
        "differences": [
            {
                "where": one.where,
                "thread": one.thread,
                "says": one.words,
                "worse": one.worse,
                "cycle": one.cycle,
                **growth_row(one.growth),
            }
            for one in answer.differences
        ],
        "changed": list(answer.changed),
        "cause": answer.cause or None,
        "functions": functions_row(answer.functions),
        "code": None if answer.code is None else code_row(answer.code),
        "doubts": [
            {"run": one.name, "says": doubt}
            for one in answer.tested
            for doubt in (*one.doubts, *one.notes)
        ],
        "threads": [
            _thread_json(thread, one)
            for one in answer.tested
            for thread in judged_threads(answer.test, one.outside)
        ],
    }


def _judged_json(one: Judged) -> dict[str, Any]:
    return {
        "run": one.tested.name,
        "thread": one.name,
        "budget": one.measure.name,
        "unit": one.measure.unit,
        "limit": one.limit,
        "value": one.value,
        "outcome": one.outcome.value,
        "why": one.why,
        "cycle": None if one.cycle is None else one.cycle.number,
        "places": [
            _place_json(place, times, one.tested.stacks.get(place.number))
            for place, times in one.places.items()
        ],
    }


def _place_json(place: Place, times: int, stack: NamedStack | None) -> dict[str, Any]:
    frame = frame_of(stack)
    return {
        "what": place.what,
        "times": times,
        "function": frame.function if frame else "",
        "file": frame.file if frame else "",
        "line": frame.line if frame else 0,
        "stack": [frame_words(one) for one in stack.frames] if stack else [],
        "ends_early": stack.ends_early if stack else None,
    }


def _thread_json(thread: OutsideThread, one: SeenStart) -> dict[str, Any]:
    response = summarize_samples([cycle.response_ns for cycle in thread.cycles])
    seen = {measure.name: one.value_of(measure, thread) for measure in MEASURES}
    return {
        "run": one.name,
        "thread": thread.name,
        "tid": thread.tid,
        "priority": thread.priority_words,
        "cycles": len(thread.cycles),
        "period_ns": thread.period_ns,
        "response_mean_ns": response.mean_ns,
        "lost_records": one.outside.lost,
        **seen,
        "latency_parts": parts_row(thread),
        "calls": _calls_json(thread) if Kind.CALL in one.outside.kinds else None,
        "worst": {
            "cycle": thread.worst.number,
            "begin_ns": thread.worst.begin_ns,
            "says": cycle_words(thread, thread.worst, one.outside.shift, one.stacks),
        },
    }


def _calls_json(thread: OutsideThread) -> dict[str, dict[str, int]]:
    """Return how often each system call was made: in a cycle at most, and in all."""
    names = sorted({name for cycle in thread.cycles for name in cycle.calls})
    every = {name: [one.calls.get(name, 0) for one in thread.cycles] for name in names}
    return {
        name: {"most": max(times), "all": sum(times)} for name, times in every.items()
    }


def answer_junit(answer: Answer) -> str:
    """Return the answer as JUnit: a case for each budget, figures as properties."""
    cases = [_case(one, answer) for one in answer.judged]
    if answer.compared:
        failures = [
            CaseOutcome(
                message=f"{one.where} {one.thread}: {one.words}", type="baseline"
            )
            for one in answer.differences
            if answer.exact or one.worse
        ]
        name = (
            f"as in {answer.compared}"
            if answer.exact
            else f"no worse than {answer.compared}"
        )
        cases.append(
            TestCase(classname=answer.test.title, name=name, failures=failures)
        )
    longest = max(
        (one.outside.ended_ns - one.outside.began_ns for one in answer.tested),
        default=0,
    )
    properties = {
        f"virtual board {number}": one.identity.words
        for number, one in enumerate(answer.tested, 1)
    }
    return junit_file(
        [
            TestSuite(
                name=f"rtscope test {answer.test.title}",
                cases=cases,
                time_s=longest / NS_PER_S,
                properties=properties,
            )
        ]
    )


def _case(one: Judged, answer: Answer) -> TestCase:
    limit = shown(one.measure, one.limit)
    found = "not seen" if one.value is None else shown(one.measure, one.value)
    why = one.why or places_of(one)
    outcome = CaseOutcome(
        message=f"{one.measure.what} {found}, {limit} allowed{why and f': {why}'}",
        type=one.measure.name,
        text="\n".join(_cause_lines(one, answer)),
    )
    return TestCase(
        classname=one.tested.name,
        name=f"{one.measure.what} of {one.name} at most {limit}",
        properties=dict(_properties(one)),
        failures=[outcome] if one.outcome is Outcome.BROKEN else [],
        error=outcome if one.outcome is Outcome.NOT_SEEN else None,
    )


def _cause_lines(one: Judged, answer: Answer) -> Iterator[str]:
    """Yield what took the time of the cycle of a budget, and where all of it was."""
    if one.cycle is not None and one.thread is not None:
        shift, stacks = one.tested.outside.shift, one.tested.stacks
        yield cycle_words(one.thread, one.cycle, shift, stacks)
        worst = worst_of(answer)
        if answer.cause and worst is not None and worst.cycle is one.cycle:
            yield answer.cause
    for place, times in one.places.items():
        stack = one.tested.stacks.get(place.number)
        if stack is not None:
            chain = " < ".join(frame_words(frame) for frame in stack.frames)
            yield f"{place.what}, {plural(times, 'time')}: {chain}"


def _properties(one: Judged) -> Iterator[tuple[str, str]]:
    """Yield the figures of a budget, and of the thread that it is about."""
    if one.value is not None:
        yield f"{one.measure.name} {one.measure.unit}", str(one.value)
    yield f"limit {one.measure.unit}", str(one.limit)
    if one.cycle is not None:
        yield "cycle", str(one.cycle.number)
    thread = one.thread
    if thread is None:
        return
    yield "cycles", str(len(thread.cycles))
    for measure in MEASURES:
        value = one.tested.value_of(measure, thread)
        if measure is not one.measure and value is not None:
            yield f"{measure.name} {measure.unit}", str(value)
