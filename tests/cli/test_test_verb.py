"""`rtscope test` refuses what no board can run, before anything boots or is built."""

import os
import shutil
from pathlib import Path

import pytest

from fakes.commandline import Rtscope

ENV = Path(shutil.which("env") or "/usr/bin/env").resolve()
OTHER = slice(18, 20)
"""Of an ELF header: the processor."""


@pytest.fixture
def control(here: Path) -> Path:
    """A program of this computer."""
    shutil.copy(ENV, here / "control")
    return here / "control"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.toml"], "cannot read none.toml"),
        (["--", "./none"], "./none: there is no such program"),
        (["--response", "fast", "--", "env"], "--response: 'fast': not a duration"),
        (["--board", "pv", "--", "env"], "--board: no such board: 'pv'"),
        (["--kernel", "debian-9", "--", "env"], "no kernel 'debian-9'"),
        (["--load", "custom", "--", "env"], "--load: custom: a test has no command"),
        (["--stdin", "none", "--", "env"], "none"),
        (["--files", "etc/x=none", "--", "env"], "No such file"),
        (["--root", "control", "--", "env"], "control: no directory"),
        (["--directory", "/none", "--", "env"], "/none: the board has no such"),
        (["--user", "robot", "--", "env"], "no such user: 'robot'"),
        (["--policy", "fifo", "--", "env"], "add --priority 80"),
        (["--priority", "80", "--", "env"], "add --policy fifo"),
        (
            ["--directory", "/none", "--files", "b=control", "--", "env", "./control"],
            "add --files none/control=./control",
        ),
        (["--tolerance", "2%", "--", "env"], "--tolerance is for --no-worse-than"),
        (["--no-worse-than", "none.json", "--", "env"], "none.json"),
        (["--junit", "none/t.xml", "--", "env"], "cannot write none/t.xml"),
        (["-q", "-v", "--", "env"], "--quiet and --verbose exclude"),
        (["control"], "control: a program, no test file: before a command write --"),
        (["a.toml", "b.toml"], "b.toml: name one test file"),
        (["a.toml", "--", "./b", "c"], "a.toml: a test file has its command: write"),
    ],
)
def test_a_mistake_is_refused_with_its_remedy(
    rtscope: Rtscope, control: Path, words: list[str], said: str
) -> None:
    answer = rtscope("test", *words)

    assert answer.status in (2, 3), answer.err
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_a_program_of_another_processor_is_refused(
    rtscope: Rtscope, control: Path
) -> None:
    content = control.read_bytes()
    control.write_bytes(content[: OTHER.start] + b"\x16\0" + content[OTHER.stop :])

    answer = rtscope("test", "--", "./control")

    assert answer.status == 2
    assert "is built for S390" in answer.err


def test_a_library_that_is_missing_is_named(rtscope: Rtscope, control: Path) -> None:
    content = control.read_bytes()
    if b"libc.so.6\0" not in content:
        pytest.skip("the programs of this computer need no libc.so.6")
    control.write_bytes(content.replace(b"libc.so.6\0", b"libc.so.x\0"))

    answer = rtscope("test", "--", "./control")

    assert answer.status == 2
    assert "control needs libc.so.x" in answer.err


def test_a_script_without_its_interpreter_names_the_package(
    rtscope: Rtscope, here: Path
) -> None:
    script = here / "control.py"
    script.write_text("#!/usr/bin/env python3\n")
    script.chmod(0o755)

    answer = rtscope("test", "--", "./control.py")

    assert answer.status == 2
    assert "--package python3-minimal" in answer.err


def test_a_link_out_of_a_directory_is_refused(
    rtscope: Rtscope, control: Path, here: Path
) -> None:
    (here / "install").mkdir()
    (here / "install" / "link").symlink_to("../../secret")

    answer = rtscope("test", "--root", "install", "--", "./control")

    assert answer.status == 2
    assert "leads out of" in answer.err


def test_a_build_that_fails_is_told_with_its_last_lines(
    rtscope: Rtscope, here: Path
) -> None:
    (here / "tests").mkdir()
    (here / "tests" / "t.toml").write_text(
        "[program]\ncommand = ['./made']\n"
        "build = ['sh', '-c', 'pwd; seq 30; echo no header >&2; exit 7']\n"
    )

    answer = rtscope("test", "tests/t.toml")

    assert answer.status == 3
    assert "the build command ended with status 7" in answer.err
    assert answer.err.rstrip().endswith("no header")
    assert "\n  30\n" in answer.err
    assert "\n  2\n" not in answer.err  # its last lines only


def test_a_build_runs_where_the_file_is_and_makes_the_program(
    rtscope: Rtscope, here: Path
) -> None:
    (here / "tests").mkdir()
    (here / "tests" / "t.toml").write_text(
        f"[program]\ncommand = ['./made']\nbuild = 'cp {ENV} made'\nuser = 'robot'\n"
    )

    answer = rtscope("test", "tests/t.toml")

    assert (here / "tests" / "made").is_file()
    assert "no such user: 'robot'" in answer.err


def test_a_build_that_cannot_run_is_named(rtscope: Rtscope, control: Path) -> None:
    answer = rtscope("test", "--build", "none-of-this-name", "--", "./control")

    assert answer.status == 3
    assert "none-of-this-name: not installed" in answer.err


@pytest.mark.slow
def test_too_much_for_the_memory_of_a_board_is_refused(
    rtscope: Rtscope, control: Path, here: Path
) -> None:
    with (here / "big").open("wb") as file:
        os.truncate(file.fileno(), 257 << 20)

    answer = rtscope("test", "--files", "opt/big=big", "--", "./control")

    assert answer.status == 2
    assert "more than 256 MiB, and a board has no room for it" in answer.err
