"""Which process a check is of, and how one of its own begins."""

from dataclasses import replace

import pytest

from fakes.targets import ASKED, LOAD_HELLO, loading, target
from fakes.threads import kernel, listing, task
from rtscope.host.errors import TargetError, UsageError
from rtscope.verbs.app import watch


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program, one that has ended, one whose first thread has, the kernel's."""
    there = listing(
        task(100, name="control"),
        task(200, name="control", state="Z"),
        task(300, name="first", state="Z"),
        task(301, pid=300, name="second"),
        task(400, name="gone", state="Z"),
        kernel(500, "migration/0"),
    )
    monkeypatch.setattr(watch, "list_threads", lambda _machine: there)


def found(name: str) -> int:
    return watch.find_process(None, name)  # type: ignore[arg-type]


def test_a_name_is_of_the_process_that_runs() -> None:
    assert found("control") == 100
    assert found("100") == 100


def test_a_process_whose_first_thread_has_ended_runs() -> None:
    assert found("301") == found("300") == 300


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gone", "there is no such process"),
        ("400", "the process has ended"),
        ("500", "a thread of the kernel is no program; see it with rtscope tasks"),
    ],
)
def test_what_has_no_code_to_check_is_refused(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        found(name)


def test_a_command_that_begins_late_is_waited_for() -> None:
    late = target({"load": [[], [], [], *loading()]})

    with watch.running_command(late, ["control"], settle_s=0.0) as pid:
        assert pid == LOAD_HELLO.pid


def test_a_command_that_ends_at_once_is_told_though_its_begin_came_along() -> None:
    end = replace(ASKED, status=3, stop_requested=False)
    short = target({"load": [[LOAD_HELLO, end]]})

    with (
        pytest.raises(TargetError, match="3"),
        watch.running_command(short, ["control"], settle_s=0.1),
    ):
        pytest.fail("it has ended")


def test_a_guard_that_says_nothing_is_no_reason_that_is_empty() -> None:
    silent = target({"load": []})

    with (
        pytest.raises(TargetError, match="control did not begin: its guard ended"),
        watch.running_command(silent, ["control"], settle_s=0.1),
    ):
        pytest.fail("nothing began")
