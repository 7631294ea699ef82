"""The answer of a test for programs: JSON and JUnit. Pure."""

from typing import Any

from rtscope.host.files.junit import Outcome as CaseOutcome
from rtscope.host.files.junit import TestCase, TestSuite, junit_file
from rtscope.host.units import NS_PER_S
from rtscope.host.version import __version__
from rtscope.programs.naming import NamedStack
from rtscope.programs.outside.model import OutsideThread, Place
from rtscope.programs.stackwords import frame_words
from rtscope.stats.summary import summarize_samples
from rtscope.verbs.test.answer import Answer, cycle_words, places_of, shown
from rtscope.verbs.test.judge import (
    MEASURES,
    Judged,
    Outcome,
    SeenStart,
    judged_threads,
    outcome_of,
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
        "outcome": outcome_of(answer.judged).value,
        "budgets": [_judged_json(one) for one in answer.judged],
        "baseline": answer.compared or None,
        "differences": [
            {
                "where": one.where,
                "thread": one.thread,
                "says": one.words,
                "worse": one.worse,
            }
            for one in answer.differences
        ],
        "changed": list(answer.changed),
        "cause": answer.cause or None,
        "doubts": [
            {"run": one.name, "says": doubt}
            for one in answer.tested
            for doubt in one.doubts
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
        "worst": {
            "cycle": thread.worst.number,
            "begin_ns": thread.worst.begin_ns,
            "says": cycle_words(thread, thread.worst, one.outside.shift, one.stacks),
        },
    }


def answer_junit(answer: Answer) -> str:
    """Return the answer as JUnit: a case for each budget, figures as properties."""
    cases = [_case(one) for one in answer.judged]
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


def _case(one: Judged) -> TestCase:
    limit = shown(one.measure, one.limit)
    values = (
        {}
        if one.value is None
        else {f"{one.measure.name} {one.measure.unit}": str(one.value)}
    )
    found = "not seen" if one.value is None else shown(one.measure, one.value)
    text = ""
    if one.cycle is not None and one.thread is not None:
        shift, stacks = one.tested.outside.shift, one.tested.stacks
        text = cycle_words(one.thread, one.cycle, shift, stacks)
    why = one.why or places_of(one)
    outcome = CaseOutcome(
        message=f"{one.measure.what} {found}, {limit} allowed{why and f': {why}'}",
        type=one.measure.name,
        text=text,
    )
    return TestCase(
        classname=one.tested.name,
        name=f"{one.measure.what} of {one.name} at most {limit}",
        properties={**values, f"limit {one.measure.unit}": str(one.limit)},
        failures=[outcome] if one.outcome is Outcome.BROKEN else [],
        error=outcome if one.outcome is Outcome.NOT_SEEN else None,
    )
