"""An audit of the machine lies beside each record."""

import json
import shutil
from typing import Any

import pytest

from fakes import targets
from fakes.story import TWO_CPUS, Story, StoryOf, detail
from fakes.targets import target
from rtscope.host.errors import TargetError
from rtscope.record.model import RunRecord


def audit_of(told: Story, kept: RunRecord) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        (told.run_dir(kept) / "audit.json").read_text()
    )
    return document


def test_an_audit_lies_beside_the_record_and_its_grave_failures_are_a_caveat(
    story: StoryOf,
) -> None:
    told = story("idle")
    (kept,) = told.run()

    document = audit_of(told, kept)
    failed = {
        (row["severity"], row["id"])
        for row in document["checks"]
        if row["outcome"] == "fail" and row["severity"] in ("high", "fatal")
    }
    said = detail(kept, "audit_failed")

    assert document["target"] == "fake"
    assert document["schema"] == 2
    assert {key for row in document["checks"] for key in row} == {
        *("id", "title", "outcome", "severity", "message", "expected", "evidence"),
        *("rationale", "source", "remedy", "permanent_remedy", "risk"),
        "remedy_refused",
    }
    assert {
        key for row in document["checks"] for e in row["evidence"] for key in e
    } == {
        *("path", "value"),
    }
    assert ("fatal", "preempt_rt") in failed
    assert said.startswith("fatal: preempt_rt; high: ")
    assert all(name in said for _, name in failed)
    # The agent has rights of its own: what the user may do says nothing of the run.
    assert not {row["id"] for row in document["checks"]} & {"realtime_policy"}


def test_a_machine_that_cannot_be_audited_is_measured_and_that_is_said(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise TargetError("it does not answer")

    monkeypatch.setattr("rtscope.measure.settings.read_context", broken)
    told = story("idle")
    (kept,) = told.run()

    assert detail(kept, "audit_missing") == "it does not answer"
    assert not (told.run_dir(kept) / "audit.json").exists()
    assert kept.result == targets.result()


def test_the_measured_cpus_are_those_set_apart_if_others_are_left(
    story: StoryOf,
) -> None:
    files = {"/sys/devices/system/cpu/online": "0-1\n", "/proc/self/status": TWO_CPUS}

    def audited(cpus: tuple[int, ...]) -> object:
        told = story("idle", on=target(files=files), cpus=cpus)
        (kept,) = told.run()
        found = audit_of(told, kept)["cpus"]
        shutil.rmtree(told.store.path)
        return found

    assert audited((1,)) == [1]
    assert audited((0, 1)) is None
