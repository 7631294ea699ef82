"""A program watched on a virtual board from outside: its end, its descriptors."""

from pathlib import Path

import pytest

from fakes.printed import printed
from fakes.programrecords import Written, file_of
from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import Kernel
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.program import Program
from rtscope.boards.parts.qemu import Qemu
from rtscope.boards.recording.programuses import ProgramUses
from rtscope.boards.runs.identity import BoardIdentity
from rtscope.boards.runs.inspect import GuestFiles
from rtscope.boards.runs.program import Output, ProgramRun, ProgramStart
from rtscope.host.errors import BoardError, UsageError
from rtscope.machine.reader import Content
from rtscope.machine.target.address import address_of
from rtscope.programs.outside.file import Kind
from rtscope.verbs.app import boardwatch as appwatch
from rtscope.verbs.app.boardwatch import nonblocking_in
from rtscope.verbs.app.check import examined_junit
from rtscope.verbs.app.checktext import MAX_LINES, examined_blocks
from rtscope.verbs.app.model import (
    BoardLabel,
    answer_digest,
    board_row,
    digest_words,
)
from rtscope.verbs.app.rules import examine
from rtscope.verbs.app.source import WatchRequest, watch_program
from unit.test_app_rules import seen, thread

MS = 1_000_000
PREPARED = Prepared(
    get_board("pc"),
    Qemu((), version="1", digest=""),
    plugin=Path("/plugin.so"),
    kernel=Kernel("debian-6.12-rt", Path("/kernel"), "a" * 64),
    archives=(),
    parts=(),
)
IDENTITY = BoardIdentity(
    *("pc", 2, 500.0, 2500, 1, 1, "debian-6.12-rt", ""), *("a" * 64,) * 5
)
NONE = Output(b"", b"", 0, refused=False)
LABEL = BoardLabel("pc", "virtual board pc, seed 1", {"board": "pc", "seed": 1})


def described(fd: int, text: str) -> dict[str, Content]:
    return {f"/proc/17/fdinfo/{fd}": text.encode()}


def test_what_a_descriptor_is_of_says_whether_it_blocks() -> None:
    plain, nonblocking = "pos:\t0\nflags:\t02\n", "pos:\t0\nflags:\t04002\n"
    files = GuestFiles(
        {
            **described(0, plain),
            **described(1, nonblocking),
            **described(2, f"{plain}mnt_id:\t1\nclockid: 1\n"),
            **described(3, nonblocking.replace("pos:\t0", "pos:\t512")),
            **described(4, "nothing"),
            "/proc/18/fdinfo/5": nonblocking.encode(),
        }
    )
    says = nonblocking_in(files, 17)

    assert [says(fd) for fd in range(6)] == [False, True, True, False, None, None]


def test_a_program_that_ends_early_is_named_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = Written()
    written.thread(171, "prog", parent=0)
    for number in range(4):
        written.cycle(171, 10_000 + 1_000 * number)
    written.put(Kind.EXIT, 100_000, 171)
    start = ProgramStart(1, 171, 0, None, False, 10**8, 0, NONE, NONE, {})
    monkeypatch.setattr(appwatch, "program_uses", lambda _: ProgramUses((), {}))
    monkeypatch.setattr(appwatch, "outside_view", lambda *_, **__: None)
    monkeypatch.setattr(
        appwatch,
        "run_program",
        lambda *_, **__: ProgramRun(
            (start,), IDENTITY, file_of(written.records), GuestFiles({}), (), "", 1.0
        ),
    )

    with pytest.raises(BoardError, match=r"prog ended 100 virtual ms .*n 81ms"):
        appwatch.watch_on_board(
            PREPARED,
            Program(("/prog",), {}, ()),
            warmup_ns=10 * MS,
            duration_ns=1000 * MS,
            seed=1,
            period_ns=None,
            draws=False,
            cache=Path("/none"),
            log=print,
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"light": True}, "--light: nothing in a virtual board watches"),
        ({"perfetto": True}, "--perfetto: .* on the page: --html page.html"),
        ({"debuginfod": "x"}, "--debuginfod: .* build it with -g"),
        ({"is_command": False}, "a virtual board has no running programs"),
    ],
)
def test_what_means_nothing_on_a_board_is_refused(
    options: dict[str, object], said: str
) -> None:
    words: dict[str, object] = {"is_command": True, **options}
    request = WatchRequest(["./prog"], settle_ns=MS, duration_ns=MS, **words)  # type: ignore[arg-type]

    with pytest.raises(UsageError, match=said):
        watch_program(address_of("virtual:pc", boards=True), request)


def test_a_script_is_refused_before_the_board_is_prepared(tmp_path: Path) -> None:
    script = tmp_path / "control"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    request = WatchRequest([str(script)], is_command=True, settle_ns=MS, duration_ns=MS)

    with pytest.raises(UsageError, match="a board has no interpreter for scripts"):
        watch_program(address_of("virtual:pc", boards=True), request)


def test_an_answer_of_a_board_is_labelled_everywhere() -> None:
    examined = examine(seen(thread(1)))
    blocks = examined_blocks(examined, width=100, everything=False, board=LABEL)
    lines = printed(blocks, width=100).splitlines()

    assert LABEL.words in lines[1]
    assert len(lines) <= MAX_LINES
    assert LABEL.words in examined_junit(examined, LABEL)
    assert board_row(None, {}) == {}


def test_the_digest_of_an_answer_is_of_all_that_was_found() -> None:
    answer = {"findings": [{"id": "RA07", "count": 2}], "cycles": {}}
    other = {"cycles": {}, "findings": [{"count": 3, "id": "RA07"}]}

    same = dict(reversed(answer.items()))
    assert answer_digest(answer) == answer_digest(same) != answer_digest(other)
    assert digest_words(answer) == (
        f"answer {answer_digest(answer)[:12]}: the same command gives it again, with "
        "the same rtscope and libraries"
    )
    row = board_row(LABEL, answer)["virtual"]
    assert row == {"board": "pc", "seed": 1, "answer_digest": answer_digest(answer)}
