"""Which process a check is of."""

import pytest

from fakes.threads import kernel, listing, task
from rtscope.host.errors import UsageError
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
