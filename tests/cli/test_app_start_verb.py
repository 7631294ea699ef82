"""`rtscope app start`: the command line, and how the program is executed."""

import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from fakes.commandline import Rtscope
from rtscope.host import process
from rtscope.verbs.app import start as appstart


@pytest.fixture
def executed(
    monkeypatch: pytest.MonkeyPatch,
) -> list[tuple[list[str], Mapping[str, str]]]:
    """What would be executed, with its environment."""
    seen: list[tuple[list[str], Mapping[str, str]]] = []

    def become(argv: Sequence[str], environ: Mapping[str, str]) -> int:
        seen.append((list(argv), environ))
        return 0

    monkeypatch.setattr(process, "become", become)
    monkeypatch.setattr(appstart, "agent_file", lambda machine: Path("/agent"))
    return seen


def test_words_after_the_dashes_are_the_programs(
    rtscope: Rtscope, executed: list[tuple[list[str], Mapping[str, str]]]
) -> None:
    words = ("--priority", "7", "--policy", "rr", "--json", "/dev/fd/3")
    program = ("./control", "--policy", "x", "", "--", "-h")
    said = rtscope("app", "start", *words, "--", *program)
    [(argv, environ)] = executed

    assert said.status == 0, said.err
    assert argv == [
        *("/agent", "start", "--policy", "rr", "--priority", "7"),
        *("--given", "/dev/fd/3", "--", *program),
    ]
    assert environ == dict(os.environ)


def test_a_user_has_his_own_variables(
    rtscope: Rtscope,
    executed: list[tuple[list[str], Mapping[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon = pwd.getpwnam("daemon")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    rtscope("app", "start", "--user", "daemon", "--", "./control")
    [(argv, environ)] = executed

    assert argv[2:4] == ["--user", f"{daemon.pw_uid}:{daemon.pw_gid}"]
    assert argv[4] == "--groups"
    assert (environ["USER"], environ["HOME"]) == ("daemon", daemon.pw_dir)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("./control",), "before the program write --"),
        (("--policy", "fifo", "--", "./control"), "add --priority 80"),
        (("--policy", "fof", "--", "./control"), "Invalid value for '--policy'"),
        (("--priority", "100", "--", "./control"), "less than or equal to 99"),
        (("--user", "no-such-user", "--", "x"), "getent passwd"),
        (
            ("--target", "virtual:pc", "--", "./control", "a b"),
            "rtscope app check --target virtual:pc -- ./control 'a b'",
        ),
        (("--policy", "rr", "--policy", "rr", "--", "x"), "given twice"),
        (("--",), "Missing argument"),
    ],
)
def test_a_wrong_command_line_says_what_to_type(
    words: Sequence[str],
    says: str,
    rtscope: Rtscope,
    executed: list[tuple[list[str], Mapping[str, str]]],
) -> None:
    said = rtscope("app", "start", *words)

    assert (said.status, executed) == (2, [])
    assert says in said.err


def test_only_root_starts_programs_as_another_user(
    rtscope: Rtscope,
    executed: list[tuple[list[str], Mapping[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    said = rtscope("app", "start", "--user", "daemon", "--", "./control")

    assert (said.status, executed) == (3, [])
    assert "sudo rtscope app start --user daemon" in said.err
