"""What a worker answers: a result, or why it has none."""

import errno
import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from fakes.measurements import on_board, record, thread
from rtscope.boards.catalogue import get_board, with_append
from rtscope.boards.parts.bundle import export_part, find_pinned, import_part
from rtscope.boards.parts.cache import Part, install, part_key
from rtscope.boards.parts.initrd import AGENT
from rtscope.boards.parts.prepared import Prepared, assemble
from rtscope.boards.parts.qemu import Recording
from rtscope.boards.runs.assemble import inputs_before
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.outcome import read_booted
from rtscope.boards.runs.prepare import request_for
from rtscope.host.errors import BoardError, ContractError
from rtscope.measure.campaign.model import Campaign
from rtscope.verbs.sweep.cluster import task as tasks
from rtscope.verbs.sweep.cluster.task import (
    Answer,
    Task,
    answer_of,
    answer_to,
    task_of,
)

BOARD = with_append(get_board("pc"), ("nohz=off",))
BOOTED = Booted({"measure.jsonl": b"{}"}, {}, "a" * 64, "b" * 64, 1.0, None)

FILES: dict[str, dict[str, str]] = {
    "qemu-x86_64": {"bin/qemu": "emulator"},
    "plugin-x86_64": {"rtscope-plugin.so": "plugin"},
    "userland-x86_64": {"userland.cpio": "programs"},
    "agent-x86_64": {"agent.cpio": AGENT},
    "kernel-debian-6.12-rt-x86_64": {"kernel": "image"},
}
NOTES: dict[str, Any] = {
    "release": None,
    "program": "bin/qemu",
    "loader": "lib/ld",
    "version": "11",
}


def part_of(cache: Path, name: str, content: str | None = None) -> Part:
    work = cache / "work"
    for file, text in FILES[name].items():
        (work / file).parent.mkdir(parents=True, exist_ok=True)
        (work / file).write_text(content or text)
    (cache / "parts").mkdir(exist_ok=True)
    inputs = {"packages": [], "content": content or name}
    return install(
        cache, work, name=name, key=part_key(inputs), inputs=inputs, notes=NOTES
    )


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The cache of the machine that asks."""
    place = tmp_path / "here"
    place.mkdir()
    return place


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The cache of a worker."""
    return tmp_path / "there"


@pytest.fixture
def prepared(here: Path) -> Prepared:
    parts = [part_of(here, name) for name in FILES]
    return assemble(BOARD, "debian-6.12-rt", parts=parts)


@pytest.fixture
def task(prepared: Prepared) -> Task:
    campaign = Campaign(target="virtual:pc", append=("nohz=off",))
    run = replace(on_board(record([thread([9_000])])).run, id="000-x/001-idle-s1")
    request = request_for(run, campaign, BOARD, ("rtscope",))
    inputs = inputs_before(request, prepared)
    return task_of(request, prepared, Recording(16), inputs)


Asked = Callable[..., Answer]


@pytest.fixture
def ask(there: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Ask a worker whose boots end well, or as `raised` says."""

    def asked(task: Task, *, raised: Exception | None = None) -> Answer:
        def boot_run(*words: object, **_: object) -> Booted:
            assert words[2] == Recording(16)
            if raised is not None:
                raise raised
            return BOOTED

        monkeypatch.setattr(tasks, "boot_run", boot_run)
        return answer_to(task, worker="w1", cache=there, stopped=lambda: False)

    return asked


def send_all(prepared: Prepared, there: Path, folder: Path) -> None:
    for part in prepared.parts:
        export_part(folder / "part.tar", part)
        pin = part_key(part.manifest)
        import_part(folder / "part.tar", pin=pin, cache=there)


def test_a_worker_names_the_parts_that_it_lacks_and_then_boots(
    ask: Asked, task: Task, prepared: Prepared, there: Path, tmp_path: Path
) -> None:
    lacking = ask(task)
    send_all(prepared, there, tmp_path)
    answer = ask(task)

    assert (lacking.kind, set(lacking.lacking)) == ("lacks", set(FILES))
    assert (answer.kind, answer.why) == ("booted", "")
    assert read_booted(answer.content, source="it") == BOOTED


def test_a_worker_on_this_machine_has_the_parts_already(
    ask: Asked, task: Task, here: Path, there: Path
) -> None:
    shutil.copytree(here, there)

    assert ask(task).kind == "booted"


def test_other_parts_of_a_worker_are_not_looked_at(
    ask: Asked, task: Task, here: Path, there: Path
) -> None:
    shutil.copytree(here, there)
    for other in ("parts/kernel-other-x86_64", "imported/userland-aarch64"):
        damaged = there / f"{other}-0123456789abcdef"
        damaged.mkdir(parents=True)
        (damaged / "manifest.json").write_text("{")

    assert ask(task).kind == "booted"


def test_another_version_of_rtscope_is_unfit(ask: Asked, task: Task) -> None:
    answer = ask(replace(task, rtscope="0.0.0"))

    assert answer.kind == "unfit"
    assert "not 0.0.0" in answer.why


def test_a_worker_of_another_architecture_is_unfit_before_it_gets_parts(
    ask: Asked, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")

    answer = ask(task)

    assert answer.kind == "unfit"
    assert answer.why == "it is a machine of aarch64; boards run on x86_64"


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": "0" * 64},
        {"kernel": "debian-6.12-rt", "board": {}},
        {"run": {}},
        {"campaign": {"nonsense": 1}},
    ],
)
def test_a_worker_that_would_boot_other_inputs_does_not(
    ask: Asked,
    task: Task,
    prepared: Prepared,
    there: Path,
    tmp_path: Path,
    change: dict[str, Any],
) -> None:
    send_all(prepared, there, tmp_path)

    assert ask(replace(task, **change)).kind == "unfit"


def test_a_changed_part_of_a_worker_is_seen_before_the_boot(
    ask: Asked, task: Task, here: Path, there: Path
) -> None:
    shutil.copytree(here, there)
    (file,) = there.glob("parts/userland*/userland.cpio")
    file.write_text("other programs")

    answer = ask(task)

    assert answer.kind == "unfit"
    assert "was changed" in answer.why


@pytest.mark.parametrize(
    "raised",
    [
        BoardError("it panics"),
        ContractError("it panics"),
        ValueError("it panics"),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/x"),
    ],
)
def test_a_boot_without_a_result_is_no_end_of_the_worker(
    ask: Asked, task: Task, here: Path, there: Path, raised: Exception
) -> None:
    shutil.copytree(here, there)

    answer = ask(task, raised=raised)

    assert answer.kind == "failed"
    assert "it panics" in answer.why or "No space left" in answer.why


def test_a_result_that_does_not_fit_into_the_memory_is_no_end_of_the_worker(
    ask: Asked,
    task: Task,
    here: Path,
    there: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pack(_: Booted) -> bytes:
        raise MemoryError

    shutil.copytree(here, there)
    monkeypatch.setattr(tasks, "pack_booted", pack)

    answer = ask(task)

    assert (answer.kind, answer.worker) == ("failed", "w1")
    assert "too little memory" in answer.why


def test_a_part_is_taken_only_if_it_is_the_one_that_was_asked_for(
    prepared: Prepared, there: Path, here: Path, tmp_path: Path
) -> None:
    part = prepared.parts[0]
    file = tmp_path / "part.tar"
    export_part(file, part)

    with pytest.raises(BoardError, match="not the part that was asked for"):
        import_part(file, pin="0" * 64, cache=there)
    assert find_pinned(there, {part.name: part_key(part.manifest)}) == {}
    assert not list((there / "imported").iterdir())


@pytest.fixture
def arrive(prepared: Prepared, there: Path, tmp_path: Path) -> Callable[[], Part]:
    """Let the first part arrive, and return it as it was sent."""
    part = prepared.parts[0]
    file = tmp_path / "arriving.tar"
    export_part(file, part)

    def again() -> Part:
        import_part(file, pin=part_key(part.manifest), cache=there)
        return part

    return again


@pytest.mark.parametrize("number", [errno.ENOTEMPTY, errno.EEXIST])
def test_a_part_that_another_task_placed_first_is_there(
    arrive: Callable[[], Part],
    there: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    def placed_first(path: Path, place: Path) -> None:
        shutil.copytree(path, place)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "rename", placed_first)

    part = arrive()

    assert part.name in find_pinned(there, {part.name: part_key(part.manifest)})


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "no space left: free some there, or set XDG_CACHE_HOME"),
        (errno.EDQUOT, "no space left: free some there, or set XDG_CACHE_HOME"),
        (errno.EACCES, "Permission denied: make it writable for this user, or set"),
        (errno.EROFS, "Read-only file system: set XDG_CACHE_HOME to another"),
    ],
)
def test_a_cache_that_takes_no_part_is_named_with_its_remedy(
    arrive: Callable[[], Part],
    there: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    advice: str,
) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "rename", refused)

    with pytest.raises(BoardError) as raised:
        arrive()

    assert f"{there / 'imported'}: {advice}" in str(raised.value)


def test_what_a_killed_worker_had_received_is_removed(
    arrive: Callable[[], Part], there: Path
) -> None:
    old, new = there / "imported/.receiving-old", there / "imported/.receiving-new"
    for path in (old, new):
        (path / "parts").mkdir(parents=True)
    os.utime(old, (5, 5))

    arrive()

    assert not old.exists()
    assert new.exists()


def test_a_part_that_arrives_changed_is_refused(
    prepared: Prepared, there: Path, tmp_path: Path
) -> None:
    part = prepared.parts[0]
    file = tmp_path / "part.tar"
    export_part(file, part)
    file.write_bytes(file.read_bytes().replace(b"emulator", b"malware!"))

    with pytest.raises(BoardError, match="was changed"):
        import_part(file, pin=part_key(part.manifest), cache=there)


def test_a_worker_makes_the_settings_that_were_chosen_for_it(
    ask: Asked, prepared: Prepared, there: Path, tmp_path: Path
) -> None:
    campaign = Campaign(target="virtual:pc")
    run = on_board(record([thread([9_000])])).run
    settings = ("--set", "watchdog:0=0")
    request = request_for(run, campaign, BOARD, (), settings=settings)
    asked = task_of(request, prepared, Recording(16), inputs_before(request, prepared))
    send_all(prepared, there, tmp_path)

    assert ask(asked).kind == "booted"
    assert ask(replace(asked, settings=())).kind == "unfit"


def test_a_run_is_asked_for_by_what_it_is_and_not_by_its_number(task: Task) -> None:
    assert task.run["id"] == "001-run"
    assert len(task.bundle) == 64


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        "booted",
        {},
        {"kind": "booted"},
        {"kind": "bad", "worker": "w"},
        {"kind": ["booted"], "worker": "w"},
        {"kind": "booted", "worker": 5},
        {"kind": "booted", "worker": "w", "content": 10**9},
        {"kind": "lacks", "worker": "w", "lacking": "kernel"},
        {"kind": "lacks", "worker": "w", "lacking": (1,)},
        {"kind": "lacks", "worker": "w", "lacking": ("x",) * 101},
        {"kind": "failed", "worker": "w", "why": ["x"]},
    ],
    ids=repr,
)
def test_what_is_no_answer_is_refused(said: object) -> None:
    with pytest.raises(ValueError, match=r"Answer|lacks"):
        answer_of(said)


def test_the_words_of_a_worker_cannot_move_the_cursor() -> None:
    given = Answer("failed", "tcp://a\x1b[2J", why="\x1b]0;x\x07\u202e" + "y" * 10**6)
    answer = answer_of(asdict(given))

    assert answer.worker == "tcp://a\\x1b[2J"
    assert answer.why.startswith("\\x1b]0;x\\x07\\u202e")
    assert len(answer.why) < 3000
