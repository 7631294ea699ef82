"""A program watched inside a virtual board: the script, and a program that ends."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.printed import printed
from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import Kernel
from rtscope.boards.parts.initrd import File
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.program import Program
from rtscope.boards.parts.qemu import Qemu
from rtscope.boards.runs.boot import Booted
from rtscope.host.errors import BoardError, TargetError
from rtscope.programs.images import Probe
from rtscope.verbs.app import boardwatch as appwatch
from rtscope.verbs.app.boardwatch import watching_script
from rtscope.verbs.app.check import examined_junit
from rtscope.verbs.app.checktext import MAX_LINES, examined_blocks
from rtscope.verbs.app.model import (
    BoardLabel,
    answer_digest,
    board_row,
    digest_words,
)
from rtscope.verbs.app.rules import examine
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
STATIC = Program(("/prog", "--name", "a b"), {"program/prog": File(b"")}, ())
LABEL = BoardLabel("pc", "virtual board pc, seed 1", {"board": "pc", "seed": 1})


def script(program: Program = STATIC, seed: int = 1) -> list[str]:
    return watching_script(
        program,
        [Probe("malloc", 4096, "/program/prog", 0)],
        facts=["/proc/version"],
        settle_ns=300 * MS,
        duration_ns=1000 * MS,
        seed=seed,
    ).splitlines()


def test_the_program_runs_in_its_own_root_and_is_watched_there() -> None:
    lines = script()

    begun = next(i for i, line in enumerate(lines) if " load " in line)
    assert lines[begun : begun + 2] == [
        "rtscope-agent load --log /out/program.log -- busybox chroot /program /prog "
        "--name 'a b' </dev/null >/out/load.jsonl &",
        "sleep 0.3",
    ]
    assert (
        'rtscope-agent watch --pid "$pid" --duration-ns 1000000000 --stacks 32 '
        "--probe malloc:4096:/program/prog >/out/watch.jsonl"
    ) in lines
    cycles = 'rtscope-agent cycles --pid "$pid" --duration-ns 1000000000 >/out/cycles'
    assert any(line.startswith(cycles) and line.endswith("&") for line in lines)


def test_each_seed_begins_the_program_at_another_time() -> None:
    assert "sleep 0.000037013" in script()
    assert "sleep 0.000074026" in script(seed=2)


def test_a_shell_takes_the_script() -> None:
    text = "\n".join(script())

    subprocess.run(["sh", "-n"], input=text, text=True, check=True)


def test_the_process_is_taken_from_the_line_of_the_agent(tmp_path: Path) -> None:
    (line,) = (line for line in script() if line.startswith("pid="))
    answer = tmp_path / "load.jsonl"
    answer.write_text('{"type":"load_hello","schema":2,"pid":171,"argv":["pid"]}\n')
    text = line.replace("/out/load.jsonl", str(answer))

    done = subprocess.run(
        ["sh", "-c", f'{text}; echo "$pid"'], capture_output=True, text=True, check=True
    )

    assert done.stdout == "171\n"


def test_a_dynamic_program_finds_its_libraries() -> None:
    lines = script(replace(STATIC, libraries=("/lib",)))

    assert any(line.startswith("LD_LIBRARY_PATH=/lib rtscope") for line in lines)


HELLO = b'{"type":"load_hello","schema":2,"pid":171,"argv":["busybox"]}\n'
END = (
    b'{"type":"load_end","status":4,"signal":null,"stop_requested":false,"killed":0,'
    b'"oom_kills":null,"cpu_ns":1,"t_ns":1}\n'
)
ERROR = b'{"type":"error","message":"no room","cause":"other","remedy":""}\n'


def watched(monkeypatch: pytest.MonkeyPatch, **files: bytes) -> None:
    """Watch a program on a board that sends these files."""
    named = {name.replace("_", "."): content for name, content in files.items()}
    booted = Booted(named, {}, "", "", 1.0)
    monkeypatch.setattr(appwatch, "boot", lambda *_, **__: booted)
    appwatch.watch_on_board(
        PREPARED,
        Program(("/prog",), {}, ()),
        settle_ns=MS,
        duration_ns=MS,
        seed=1,
    )


def test_a_program_that_ends_at_once_is_named_with_what_it_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(
        BoardError, match=r"prog ended .* with status 4; it printed: no data"
    ):
        watched(monkeypatch, load_jsonl=HELLO + END, program_log=b"no data\n")


def test_a_program_that_did_not_begin_is_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(BoardError, match="did not begin; it printed nothing"):
        watched(monkeypatch)


def test_an_error_of_the_agent_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="no room"):
        watched(monkeypatch, load_jsonl=ERROR)


def probes_of(monkeypatch: pytest.MonkeyPatch, program: Program) -> list[Probe]:
    """Return what the script of a board gets to probe in a program."""
    given: list[Probe] = []

    def script_of(_program: Program, probes: list[Probe], **_: object) -> str:
        given.extend(probes)
        return ""

    monkeypatch.setattr(appwatch, "watching_script", script_of)
    monkeypatch.setattr(appwatch, "boot", lambda *_, **__: Booted({}, {}, "", "", 1.0))
    with pytest.raises(BoardError, match="did not begin"):
        appwatch.watch_on_board(PREPARED, program, settle_ns=MS, duration_ns=MS, seed=1)
    return given


ALLOCATOR = """
void *malloc(unsigned long size) { return (void *)size; }
void *calloc(unsigned long size) { return (char *)malloc(size) + 1; }
void *memalign(unsigned long size) __attribute__((alias("calloc")));
"""


def test_a_place_is_probed_once_whatever_its_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # a library that is not stripped has each function in two tables of symbols
    out = tmp_path / "liballoc.so"
    flags = ("-O0", "-shared", "-fPIC", "-nostdlib", "-fno-builtin", "-x", "c")
    subprocess.run(
        ["gcc", *flags, "-", "-o", out], input=ALLOCATOR, text=True, check=True
    )
    files = {f"program/lib/{name}": File(out.read_bytes()) for name in ("a.so", "b.so")}

    probes = probes_of(monkeypatch, Program(("/prog",), files, ("/lib",)))

    assert [one.name for one in probes] == ["malloc", "calloc", "malloc.2", "calloc.2"]
    assert len({(one.path, one.offset) for one in probes}) == len(probes) == 4


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
