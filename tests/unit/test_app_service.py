"""The unit of a program that runs: each line from what was seen, and nothing else."""

import struct
from collections.abc import Mapping
from dataclasses import replace

import pytest

from fakes.seenprograms import (
    EXE,
    FIFO,
    LIMITS,
    MAIN,
    MAPS,
    program,
    settings,
    status,
    text_of,
)
from fakes.threads import DEADLINE, task
from fakes.trees import CPU, Files, reader_of
from rtscope.machine.audit.examine import auditing_a_unit, examine, read_context
from rtscope.machine.audit.unit import Unit, merge, parse
from rtscope.machine.reader import Denied
from rtscope.verbs.app.running import RunningProgram


def unit_of(seen: RunningProgram) -> Unit:
    return merge("control.service", {"control.service": text_of(seen)})


def found_in(unit: Unit, *, cpus: tuple[int, ...] | None = None) -> list[str]:
    kinds = auditing_a_unit()
    files: Files = {"/proc/sys/kernel/osrelease": "6.12.1", f"{CPU}/online": "0-3"}
    context = read_context(reader_of(files), kinds, cpus=cpus)
    checks = examine(replace(context, unit=unit), kinds)
    return [check.kind.id for check in checks if check.failed]


def test_a_loop_with_a_policy_gets_its_policy_cpu_limits_and_user() -> None:
    assert settings(program()) == {
        "Type": "exec",
        "ExecStart": f"{EXE} --fast",
        "User": "robot",
        "CPUSchedulingPolicy": "fifo",
        "CPUSchedulingPriority": "80",
        "CPUAffinity": "1",
        "LimitRTPRIO": "80",
        "LimitMEMLOCK": "infinity",
    }


def test_the_policies_of_later_threads_are_left_to_the_program() -> None:
    loop = task(101, "rr", pid=100, priority=70, name="loop", cpus="2")
    seen = program(MAIN, loop)
    found = settings(seen)

    assert found.keys().isdisjoint({"CPUSchedulingPolicy", "CPUAffinity", "Nice"})
    assert (found["LimitRTPRIO"], found["LimitMEMLOCK"]) == ("70", "infinity")
    assert "loop rr 70" in text_of(seen)
    assert "loop on 2" in text_of(seen)


def test_a_deadline_thread_needs_a_capability_and_all_cpus() -> None:
    loop = task(101, "deadline", pid=100, name="loop", deadline=DEADLINE)
    found = settings(program(task(100, name="control", cpus="0-1"), loop))

    assert found["AmbientCapabilities"] == "CAP_SYS_NICE"
    assert found.keys().isdisjoint({"CPUAffinity", "LimitRTPRIO"})


@pytest.mark.parametrize(
    ("seen", "key", "value"),
    [
        (program(task(100, "batch", nice=5)), "CPUSchedulingPolicy", "batch"),
        (program(task(100, "batch", nice=5)), "Nice", "5"),
        (program(MAIN, task(101, pid=100, nice=-7)), "LimitNICE", "-7"),
        (program(task(100, timer_slack_ns=1)), "TimerSlackNSec", "1ns"),
        (program(oom_score_adj=b"-900\n"), "OOMScoreAdjust", "-900"),
        (program(status=status(Umask="0077")), "UMask", "0077"),
        (program(status=status(NoNewPrivs="1")), "NoNewPrivileges", "yes"),
        (program(status=status(Uid="77 77")), "User", "77"),
        (
            program(status=status(CapEff="0000000000804000")),
            *("AmbientCapabilities", "CAP_IPC_LOCK CAP_SYS_NICE"),
        ),
        (
            program(environ=b"SECRET=1\0LD_BIND_NOW=%1\0"),
            *("Environment", '"LD_BIND_NOW=%%1"'),
        ),
        (
            program(task(100, "fifo", priority=80, reset_on_fork=True)),
            *("CPUSchedulingResetOnFork", "yes"),
        ),
    ],
)
def test_what_differs_from_the_default_is_kept(
    seen: RunningProgram, key: str, value: str
) -> None:
    assert settings(seen)[key] == value


def test_groups_that_systemd_gives_by_itself_need_no_line() -> None:
    own = settings(program(status=status(Gid="1000 1000", Groups="29 1000")))
    root = settings(program(status=status(Uid="0 0", Gid="0 0", Groups="0")))

    assert {*own, *root}.isdisjoint({"Group", "SupplementaryGroups"})


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"Gid": "44 44", "Groups": "29"}, ("rt", None)),
        ({"Gid": "77 77", "Groups": "29"}, ("77", None)),
        ({"Gid": "1000 1000", "Groups": "29 44 77"}, (None, "rt 77")),
        ({"Uid": "77 77", "Gid": "44 44", "Groups": ""}, ("rt", None)),
        ({"Uid": "0 0", "Gid": "0 0", "Groups": "0 29"}, (None, "audio")),
    ],
)
def test_other_groups_than_systemd_would_give_are_kept(
    changed: Mapping[str, str], expected: tuple[str | None, str | None]
) -> None:
    found = settings(program(status=status(**changed)))

    assert (found.get("Group"), found.get("SupplementaryGroups")) == expected


def test_a_group_that_systemd_gives_besides_is_listed_as_not_taken_away() -> None:
    seen = program(status=status(Gid="1000 1000", Groups=""))
    said = " ".join(text_of(seen).partition("Not known")[2].replace("#", "").split())

    assert "SupplementaryGroups" not in settings(seen)
    assert "It did not have the group audio, which systemd gives to robot" in said


@pytest.mark.parametrize(
    ("seen", "key", "remark"),
    [
        (program(status=status(Uid="0 0")), "User", "it ran as root"),
        (program(status=b""), "User", "its user is unknown"),
        (program(task(100, "fifo", priority=9)), "CPUAffinity", "on every CPU, 0-3"),
        (program(task(100, "deadline")), "CPUSchedulingPolicy", "cannot set"),
        (
            program(limits=LIMITS.replace("unlimited", "200000   ", 1).encode()),
            *("LimitRTTIME", "200000 µs"),
        ),
        (program(cmdline=b""), "ExecStart", "could not be read"),
    ],
)
def test_where_a_setting_is_missing_a_remark_says_why(
    seen: RunningProgram, key: str, remark: str
) -> None:
    assert key not in settings(seen)
    assert f"# No {key}=" in text_of(seen)
    assert remark in " ".join(text_of(seen).replace("\n#", "").split())


def test_memory_that_was_not_locked_is_said_to_be_so() -> None:
    assert "It had 2,048 KiB of memory locked" in text_of(program())
    seen = program(status=status(VmLck="0 kB"))

    assert settings(seen)["LimitMEMLOCK"] == "infinity"
    assert "It had no memory locked" in text_of(seen)
    assert "LimitMEMLOCK" not in settings(program(MAIN, status=status(VmLck="0 kB")))


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (b"control\0", EXE),
        (b"/opt/app/control\0a\0", f"{EXE} a"),
        (b"/venv/control\0", f"@{EXE} /venv/control"),
        (b"-sh\0", f"@{EXE} -sh"),
        (b"control\0a b\0\0", f'{EXE} "a b" ""'),
        (b'control\0say "\\"\0', rf'{EXE} "say \"\\\""'),
        (b"control\0$HOME\x00100%\0;\0", f'{EXE} $$HOME 100%% ";"'),
        (b"control\0a\nb\xff\0", rf'{EXE} "a\x0ab\xff"'),
    ],
)
def test_arguments_reach_the_program_as_they_were(argv: bytes, command: str) -> None:
    assert settings(program(cmdline=argv))["ExecStart"] == command


def test_systemd_expands_no_dollar_in_the_path_but_in_the_name_it_passes_on() -> None:
    maps = MAPS.replace(EXE, "/opt/$x/50%/control").encode()
    seen = program(maps=maps, cmdline=b"/opt/$x/50%/control\0$y\0")

    assert settings(seen)["ExecStart"] == (
        "@/opt/$x/50%%/control /opt/$$x/50%%/control $$y"
    )


@pytest.mark.parametrize(
    "directory",
    ["/a\nb", "/a\\", "/a ", " /a", "/a\udcff", "/srv/gone (deleted)"],
)
def test_a_directory_that_a_unit_cannot_name_leaves_a_remark_and_all_other_lines(
    directory: str,
) -> None:
    seen = replace(program(), directory=directory)
    found = settings(seen)

    assert "# No WorkingDirectory=" in text_of(seen)
    assert found == settings(program())
    assert found["User"] == "robot"


def test_a_directory_that_a_unit_can_name_is_the_one_it_has_now() -> None:
    seen = replace(program(), directory="/srv/100% of it")

    assert settings(seen)["WorkingDirectory"] == "/srv/100%% of it"
    assert "Its working directory now" in text_of(seen)


def test_the_last_character_of_a_name_does_not_swallow_the_next_line() -> None:
    for name in ("foo\\", "foo\\ ", "foo\\\\", "\\", "100%\\"):
        seen = replace(program(), name=name)
        described = name.strip().replace("%", "%%")

        assert f"\nDescription={described} (process 100)\n\n" in text_of(seen)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("con\\012trol", r'"/opt/app/con\x0atrol"'),  # as maps writes a new line
        ("con\ttrol", r'"/opt/app/con\x09trol"'),
        ("con\rtrol", r'"/opt/app/con\x0dtrol"'),
        ("con'trol", '"/opt/app/con\'trol"'),
        ('con"trol', r'"/opt/app/con\"trol"'),
        ("con\\trol", r'"/opt/app/con\\trol"'),
        ("con\x7ftrol%", r'"/opt/app/con\x7ftrol%%"'),
    ],
)
def test_a_file_that_systemd_takes_by_no_spelling_is_started_by_a_shell(
    name: str, written: str
) -> None:
    maps = MAPS.replace(EXE, f"/opt/app/{name}").encode()
    found = settings(program(maps=maps, cmdline=b"control\0--fast\0"))

    assert found["ExecStart"] == (
        rf'/bin/sh -c "exec \"$$0\" \"$$@\"" {written} --fast'
    )


@pytest.mark.parametrize("name", ["con\u2028trol", "con\x0btrol", "con\x1ctrol"])
def test_only_a_line_feed_ends_a_line_of_the_memory_map(name: str) -> None:
    maps = MAPS.replace(EXE, f"/opt/app/{name}").encode()

    assert program(maps=maps, cmdline=b"x\0").executable == f"/opt/app/{name}"


def test_a_32_bit_program_is_found_by_its_headers_too() -> None:
    auxv = struct.pack("=6I", 6, 4096, 3, 0x10040, 0, 0)
    maps = f"00010000-00011000 r--p 00000000 08:01 77      {EXE}\n"
    seen = program(auxv=auxv, maps=maps.encode())

    assert seen.executable == EXE


def test_names_cannot_add_lines_to_the_unit() -> None:
    bad = "x\nExecStart=/bin/evil\x1b\\"
    first = replace(FIFO, name=bad)
    later = task(101, "rr", pid=100, priority=70, name=bad, cpus="2")
    seen = program(first, later, environ=b"LD_PRELOAD=a\nUser=root\0")
    seen = replace(seen, directory="/x\nUser=root", user="robot\nGroup=root")
    found, odd = parse(text_of(seen), name="unit")

    assert odd == []
    assert all(line.isprintable() for line in text_of(seen).splitlines())
    assert [a.value for a in found if a.key == "ExecStart"] == [f"{EXE} --fast"]
    assert [a.value for a in found if a.key in ("User", "Group")] == ["1000"]


def test_each_thread_of_its_own_is_named() -> None:
    some = [
        task(tid, "rr", pid=100, priority=tid - 100, name=f"loop{tid}", cpus="2")
        for tid in range(101, 190)
    ]

    said = " ".join(text_of(program(FIFO, *some)).replace("#", "").split())

    assert [t.name for t in some if f"{t.name} rr {t.priority}" not in said] == []
    assert [t.name for t in some if f"{t.name} on 2" not in said] == []


def test_what_could_not_be_known_is_listed() -> None:
    seen = program(
        environ=Denied("Permission denied"),
        cgroup=b"0::/system.slice/old.service\n",
        status=status(Uid="0 0", NSpid="100 1"),
        maps=MAPS.replace(EXE, f"{EXE} (deleted)").encode(),
    )
    said = " ".join(text_of(seen).partition("Not known")[2].replace("#", "").split())

    assert "/proc/100/environ: Permission denied" in said
    assert "Which of root's capabilities" in said
    assert "What its container gives it" in said
    assert "deleted or replaced" in said
    assert settings(seen)["ExecStart"] == f"{EXE} --fast"


def test_secrets_of_the_environment_stay_out() -> None:
    seen = program(environ=b"TOKEN=hunter2\0HOME=/\0")

    assert "hunter2" not in text_of(seen)
    assert "its 2 other environment variables" in text_of(seen)


@pytest.mark.parametrize(
    "seen",
    [
        program(),
        program(MAIN, task(101, "rr", pid=100, priority=70, cpus="2")),
        program(MAIN, task(101, "deadline", pid=100)),
        program(task(100, "idle")),
        program(status=status(Uid="0 0", VmLck="0 kB")),
        program(limits=LIMITS.replace("unlimited", "200000   ", 1).encode()),
        program(status=status(CapEff="000001ffffffffff")),
    ],
)
def test_the_audit_finds_nothing_in_it(seen: RunningProgram) -> None:
    assert found_in(unit_of(seen)) == []


def test_a_real_time_thread_beside_an_ordinary_first_one_may_have_a_cpu_apart() -> None:
    loop = task(101, "fifo", pid=100, priority=70, cpus="3")
    seen = program(task(100, name="control", cpus="0-2"), loop)

    assert found_in(unit_of(seen), cpus=(3,)) == []


def test_the_audit_finds_what_is_wrong_with_the_program_itself() -> None:
    top = program(task(100, "fifo", priority=99, cpus="1"))

    assert found_in(unit_of(top)) == ["unit_top_priority"]
