"""`rtscope history schedule`: units that systemd takes, and what they start."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.commandline import Rtscope
from rtscope.cli import console
from rtscope.host.files.systemdunit import unit_argument, unit_command, unit_directory

ANALYZE = shutil.which("systemd-analyze")

NIGHT = ("history", "schedule", "ni%ghts $x", "--on-alarm", "mail -s 'wor%se $HOME' a")


def unquoted(value: str) -> list[str]:
    """Split a command as systemd does: quotes, escapes, `%%` and `$$`."""
    found = []
    for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', value):
        raw = re.sub(
            rb"\\(x[0-9a-f]{2}|.)",
            lambda m: bytes.fromhex(m[1][1:].decode()) if len(m[1]) > 1 else m[1],
            (quoted or plain).encode(),
        )
        word = raw.decode("utf-8", "surrogateescape")
        found.append(word.replace("%%", "%").replace("$$", "$"))
    return found


def units(rtscope: Rtscope, *words: str) -> dict[str, str]:
    said = (
        rtscope(*words[:-1], words[-1], "--json")
        if "--" not in words
        else rtscope(*words[: words.index("--")], "--json", *words[words.index("--") :])
    )
    assert said.status == 0, said.err
    made: dict[str, str] = json.loads(said.out)["units"]
    return made


def lines(text: str, key: str) -> list[str]:
    return [
        line.partition("=")[2]
        for line in text.splitlines()
        if line.startswith(f"{key}=")
    ]


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20))
def test_every_argument_comes_back_as_it_was(word: str) -> None:
    assert unquoted(unit_argument(word)) == [word] or word == ""
    assert "\n" not in unit_argument(word)


def test_a_file_with_a_quote_is_started_by_a_shell() -> None:
    words = ['/odd "name"/rtscope', "a b"]

    assert unquoted(unit_command(words)) == ["/bin/sh", "-c", 'exec "$0" "$@"', *words]
    assert unit_directory("/ends\\") is None
    assert unit_directory("/50%") == "/50%%"


def test_a_night_measures_into_a_new_directory_and_then_is_checked(
    rtscope: Rtscope, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = here / "rtscope"
    typed.write_text('#!/bin/sh\nfor w in "$@"; do printf "%s\\n" "$w"; done > typed\n')
    typed.chmod(0o755)
    monkeypatch.setattr(console, "own_command", lambda: (str(typed),))
    monkeypatch.setattr(
        "rtscope.verbs.history.schedule.own_command", lambda: (str(typed),)
    )
    made = units(
        *(rtscope, *NIGHT, "--budget", "2G"),
        *("--", "-t", "ssh:a,ssh:b", "-d", "9s", "--", "-x.toml"),
    )

    assert list(made) == [
        *("rtscope-nights.timer", "rtscope-nights.service"),
        "rtscope-nights-check.service",
    ]
    timer, measuring, checking = made.values()
    assert lines(timer, "OnCalendar") == ["*-*-* 02:00:00"]
    assert lines(timer, "RandomizedDelaySec") == ["1800"]
    [start] = lines(measuring, "ExecStart")
    subprocess.run(unquoted(start), check=True, cwd=here)
    words = (here / "typed").read_text().splitlines()
    assert words[:2] == ["run", "--out"]
    assert words[3:] == ["-t", "ssh:a,ssh:b", "-d", "9s", "--", "-x.toml"]
    place = re.escape(str(here / "ni%ghts $x"))
    assert re.fullmatch(rf"{place}/20\d\d-\d\d-\d\d-\d{{6}}", words[2])
    commands = [unquoted(one.removeprefix("-")) for one in lines(checking, "ExecStart")]
    assert [one[2] for one in commands] == ["index", "thin", "check"]
    assert commands[1][-2:] == ["--budget", "2G"]
    assert lines(checking, "Wants") == ["rtscope-nights.service"]


@pytest.mark.parametrize(("status", "starts"), [("0", 0), ("1", 1), ("3", 0), ("4", 0)])
def test_the_hook_is_started_by_an_alarm_alone(
    status: str, starts: int, rtscope: Rtscope, here: Path
) -> None:
    command = ("history", "schedule", "n", "--on-alarm", "touch 'a b'")
    [hook] = lines(
        units(rtscope, *command)["rtscope-nights-check.service"], "ExecStopPost"
    )
    env = {**os.environ, "EXIT_STATUS": status}

    done = subprocess.run(unquoted(hook), env=env, cwd=here, check=False)

    assert done.returncode == 0
    assert len(list(here.glob("a b"))) == starts


@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("user", [(), ("--user",)])
def test_systemd_finds_nothing_wrong(
    rtscope: Rtscope, here: Path, user: tuple[str, ...]
) -> None:
    said = rtscope(*NIGHT, "--out", "units", *user, "--", "-t", "ssh:a", "-l", "idle")
    assert said.status == 0, said.err
    files = sorted((here / "units").iterdir())

    done = subprocess.run(
        [ANALYZE or "", *user, "verify", "--man=no", *files],
        capture_output=True,
        text=True,
        check=False,
    )

    assert len(files) == 3
    told = [line for line in done.stderr.splitlines() if "rtscope" in line]
    assert told == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--name", "../x"), "--name '../x': write small"),
        (("--name", "a\nb"), "--name 'a\\nb'"),
        (("--at", "25:00"), "write a time of day"),
        (("--at", "02:00\n[Service]"), "write a time of day"),
        (("--jitter", "13h"), "write 12h or less"),
        (("--jitter", "x"), "x"),
        (("--budget", "x"), "not a size"),
        (("--on-alarm", "'x"), "--on-alarm"),
        (("--on-alarm", ""), "--on-alarm"),
        (("--", "--out", "x"), "'--out' after --: leave it out"),
        (("--", "-oout"), "'-oout' after --"),
        (("--", "--resume=x"), "after --: leave it out"),
        (("--", "--lod", "idle"), "No such option"),
        (("--", "--repetitions", "x"), "--repetitions"),
        (("--", "a", "b"), "argument"),
    ],
)
def test_a_mistake_is_refused_and_nothing_is_written(
    words: tuple[str, ...], why: str, rtscope: Rtscope, here: Path
) -> None:
    said = rtscope("history", "schedule", "nights", "--out", "units", *words)

    assert said.status == 2
    assert why in said.err
    assert not (here / "units").exists()


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=30,
    deadline=None,
)
@given(
    st.text(
        st.characters(exclude_characters="\0/", codec="utf-8"), min_size=1, max_size=12
    )
)
def test_a_folder_of_any_name_adds_no_line_of_its_own(
    rtscope: Rtscope, name: str
) -> None:
    if name.startswith("-"):
        name = f"./{name}"
    made = units(rtscope, "history", "schedule", name)
    for text in made.values():
        for line in text.splitlines():
            assert line == "" or line[0] in "#[" or re.match("[A-Z][A-Za-z]+=", line)
            assert not line.endswith("\\")
    [start] = lines(made["rtscope-nights.service"], "ExecStart")
    assert unquoted(start)[4].endswith(Path(name).name)


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_a_unit_of_others_is_left_as_it_is(
    rtscope: Rtscope, here: Path, kind: str
) -> None:
    units = here / "units"
    units.mkdir()
    other = units / "ssh-check.service"
    if kind == "file":
        other.write_text("[Unit]\nDescription=mine\n")
    elif kind == "link":
        other.symlink_to("/dev/null")
    else:
        other.mkdir()
    said = rtscope("history", "schedule", "nights", "--name", "ssh", "--out", "units")

    assert said.status == 2
    assert "ssh-check.service: another file, which is left as it is" in said.err
    assert [one.name for one in units.iterdir()] == ["ssh-check.service"]


def test_units_of_before_are_replaced(rtscope: Rtscope, here: Path) -> None:
    words = ("history", "schedule", "nights", "--out", "units")
    assert rtscope(*words).status == 0
    assert rtscope(*words, "--at", "23:30", "--jitter", "0s").status == 0
    timer = (here / "units/rtscope-nights.timer").read_text()
    assert "OnCalendar=*-*-* 23:30:00" in timer
    assert "RandomizedDelaySec=0\n" in timer


def test_what_measures_nothing_is_no_night(rtscope: Rtscope) -> None:
    said = rtscope("history", "schedule", "nights", "--", "--event", "list")
    assert (said.status, "it measures nothing" in said.err) == (2, True)
