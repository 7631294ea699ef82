"""What the unit of a running program says goes on in the one that is written."""

from dataclasses import replace

import pytest

from fakes.seenprograms import EXE, FIFO, LIMITS, MAPS, program, settings, status
from fakes.threads import DEADLINE, task
from rtscope.machine.audit.unit import merge, parse
from rtscope.verbs.app.ownunit import is_its_own, with_own_unit
from rtscope.verbs.app.running import RunningProgram, devices_of, memory_max
from rtscope.verbs.app.service import service_of
from rtscope.verbs.app.unit import render_unit

COROSYNC = f"""\
[Unit]
Description=Control loop
After=network-online.target
Requires=network-online.target

[Service]
Type=notify
EnvironmentFile=-/etc/default/control
ExecStartPre=/bin/mkdir -p /run/control
ExecStart={EXE} -f $OPTIONS
Restart=on-failure
DevicePolicy=closed
DeviceAllow=/dev/watchdog rw
LimitCORE=infinity
LimitRTPRIO=10

[Install]
WantedBy=cluster.target
Alias=loop.service
"""
DROP_IN = "[Service]\nMemoryMax=1G\nNice=-3\nEnvironment=A=1\n"


def written(
    seen: RunningProgram, *texts: str, name: str = "control.service"
) -> tuple[str, dict[str, str]]:
    files = {f"/etc/{n}.conf" if n else f"/lib/{name}": t for n, t in enumerate(texts)}
    text = render_unit(with_own_unit(service_of(seen), merge(name, files)))
    found, odd = parse(text, name="unit")
    assert odd == []
    return text, {f"{a.section}.{a.key}": a.value for a in found}


def test_all_that_its_unit_says_is_kept_and_its_policy_is_that_of_now() -> None:
    text, found = written(program(), COROSYNC, DROP_IN)

    assert found["Service.Type"] == "notify"
    assert found["Service.ExecStart"] == f"{EXE} -f $OPTIONS"
    assert found["Service.ExecStartPre"] == "/bin/mkdir -p /run/control"
    assert found["Service.EnvironmentFile"] == "-/etc/default/control"
    assert found["Service.LimitCORE"] == "infinity"
    assert (found["Service.MemoryMax"], found["Service.Nice"]) == ("1G", "-3")
    assert found["Service.DevicePolicy"] == "closed"
    assert found["Unit.After"] == found["Unit.Requires"] == "network-online.target"
    assert found["Unit.Description"] == "Control loop"
    assert found["Install.WantedBy"] == "cluster.target"
    assert "Install.Alias" not in found
    assert (
        found["Service.CPUSchedulingPriority"] == found["Service.LimitRTPRIO"] == "80"
    )
    assert "control.service says 10." in " ".join(text.replace("\n#", "").split())
    assert "From here on as /lib/control.service says." in text
    assert "From here on as /etc/1.conf says." in text


def test_each_setting_that_holds_one_value_stands_there_once() -> None:
    text, _ = written(program(), COROSYNC, DROP_IN)
    keys = [line.partition("=")[0] for line in text.splitlines() if line[:1].isupper()]

    assert sorted(keys) == sorted(set(keys))


def test_a_user_that_the_program_takes_itself_is_no_line() -> None:
    text, found = written(program(), COROSYNC)
    _, said = written(program(), COROSYNC, "[Service]\nUser=motor\n")

    assert "Service.User" not in found
    remark = "does not say it, so the program changes it itself: it has robot."
    assert remark in " ".join(text.replace("\n#", "").split())
    assert said["Service.User"] == "motor"


@pytest.mark.parametrize("kind", ["simple", "exec", "idle"])
def test_a_type_that_fails_late_becomes_exec(kind: str) -> None:
    own = COROSYNC.replace("notify", kind)

    assert written(program(), own)[1]["Service.Type"] == "exec"


@pytest.mark.parametrize("kind", ["notify-reload", "dbus", "forking", "oneshot"])
def test_a_type_that_says_how_it_is_ready_is_kept(kind: str) -> None:
    own = COROSYNC.replace("notify", kind)

    assert written(program(), own)[1]["Service.Type"] == kind


@pytest.mark.parametrize(
    ("command", "is_own"),
    [
        (EXE, True),
        (f"@{EXE} control -f", True),
        (f"-{EXE}", True),
        (f"/usr/bin/chrt -f 20 {EXE} --fast", True),
        ('"/opt/app/control" -x', True),
        ("/usr/sbin/sshd -D", False),
        ("/usr/bin/containerd", False),
        ("/usr/sbin/cron -f", False),
        ("/opt/app/controller", False),
    ],
)
def test_a_unit_is_its_own_if_it_starts_this_program(
    command: str, is_own: bool
) -> None:
    unit = merge("x.service", {"/x": f"[Service]\nExecStart={command}\n"})

    assert is_its_own(unit, service_of(program())) is is_own


def test_devices_of_the_unit_and_those_that_are_open_stand_there_once() -> None:
    seen = replace(program(), devices={"/dev/gpiochip0": "rw", "/dev/watchdog": "w"})
    text, _ = written(seen, COROSYNC)
    lines = [line for line in text.splitlines() if line.startswith("DeviceAllow=")]

    assert lines == ["DeviceAllow=/dev/gpiochip0 rw", "DeviceAllow=/dev/watchdog w"]


# --- what it has open, and its limits -------------------------------------------------


def test_devices_that_every_unit_may_use_need_no_line() -> None:
    opened = [
        *(("/dev/null", 2), ("/dev/zero (deleted)", 2), ("/dev/pts/3", 2)),
        *(("/dev/shm/x", 2), ("/tmp/dev", 0)),
        *(("/dev/urandom", 0), ("socket:[1]", 2), ("/dev/tty", 2)),
        *(("/dev/i2c-1", 0o100002), ("/dev/ttyS0", 0o4001), ("/dev/input/event3", 0)),
        *(("/dev/snd/pcmC0D0p", 0), ("/dev/snd/pcmC0D0p", 1)),
    ]

    assert devices_of(opened) == {
        "/dev/i2c-1": "rw",
        "/dev/input/event3": "r",
        "/dev/snd/pcmC0D0p": "rw",
        "/dev/ttyS0": "w",
    }


def test_a_device_that_no_unit_can_name_leaves_a_remark() -> None:
    seen = replace(program(), devices={"/dev/a b": "r", "/dev/50%": "rw"})
    text = render_unit(service_of(seen))

    assert "# No DeviceAllow=: no unit can name '/dev/a b'." in text
    assert "DeviceAllow=/dev/50%% rw" in text


@pytest.mark.parametrize(
    ("texts", "limit"),
    [
        (("1073741824\n",), 1 << 30),
        (("max\n",), None),
        (("9223372036854771712\n",), None),  # none, in version 1
        ((None, "4096"), 4096),
        (("", "x"), None),
        ((), None),
    ],
)
def test_a_memory_limit_is_a_number_that_limits(
    texts: tuple[str | None, ...], limit: int | None
) -> None:
    assert memory_max(texts) == limit


@pytest.mark.parametrize(
    ("soft", "hard", "value"),
    [
        ("65536", "65536", "65536"),
        ("4096", "524288", "4096:524288"),
        ("unlimited", "unlimited", "infinity"),
        ("1024", "524288", None),
        ("256", "256", "256"),
    ],
)
def test_the_limit_of_open_files_is_kept_unless_it_is_that_of_systemd(
    soft: str, hard: str, value: str | None
) -> None:
    line = f"Max open files            {soft:<20} {hard:<20} files\n"
    seen = program(limits=(LIMITS + line).encode())

    assert settings(seen).get("LimitNOFILE") == value


def test_memory_has_the_limit_of_its_group_or_a_remark_with_its_peak() -> None:
    seen = program(status=status(VmHWM="    5120 kB"))

    assert "No MemoryMax=: it had none. Its peak so far was 5,120 KiB." in (
        render_unit(service_of(seen))
    )
    assert (
        settings(replace(seen, memory_max_bytes=1 << 30))["MemoryMax"] == "1073741824"
    )
    assert program(cgroup=b"0::/a/b.service\n").cgroups == (
        "/sys/fs/cgroup/a/b.service/memory.max",
    )
    old = program(cgroup=b"9:memory:/x\n1:name=systemd:/x\n")
    assert old.cgroups == ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes",)


# --- what app start gave --------------------------------------------------------------


def started(seen: RunningProgram) -> str:
    text = render_unit(service_of(seen, starter=("/usr/bin/rtscope",)))
    found, _ = parse(text, name="unit")
    return next(a.value for a in found if a.key == "ExecStart")


@pytest.mark.parametrize(
    ("mark", "nspid", "prefix"),
    [
        ("100 lock", "100", "/usr/bin/rtscope app start --lock -- "),
        ("7 lock", "100\t7", "/usr/bin/rtscope app start --lock -- "),
        ("100", "100", ""),
        ("99 lock", "100", ""),  # of its parent
        ("", "100", ""),
        ("lock", "100", ""),
    ],
)
def test_a_lock_that_no_unit_can_give_is_given_by_the_same_command(
    mark: str, nspid: str, prefix: str
) -> None:
    environ = f"RTSCOPE_START={mark}\0".encode()
    seen = program(FIFO, environ=environ, status=status(NSpid=nspid))

    assert started(seen) == f"{prefix}{EXE} --fast"
    assert settings(seen)["LimitMEMLOCK"] == "infinity"
    assert "its 1 other environment variables" not in render_unit(service_of(seen))


def test_a_deadline_that_no_unit_can_give_is_given_by_the_same_command() -> None:
    seen = program(task(100, "deadline", name="control", deadline=DEADLINE))
    times = "/".join(
        f"{ns}ns"
        for ns in (DEADLINE.runtime_ns, DEADLINE.deadline_ns, DEADLINE.period_ns)
    )

    assert started(seen) == (
        f"/usr/bin/rtscope app start --policy deadline --runtime {times} -- "
        f"{EXE} --fast"
    )


def test_the_path_of_a_started_program_is_an_argument_then() -> None:
    environ = b"RTSCOPE_START=100 lock\0"
    maps = MAPS.replace(EXE, "/opt/$x/50%/con trol").encode()
    seen = program(environ=environ, maps=maps, cmdline=b"-other\0a b\0")

    assert started(seen) == (
        '/usr/bin/rtscope app start --lock -- "/opt/$$x/50%%/con trol" "a b"'
    )
