"""Captures: what is taken out, what comes back, and archives that mean harm."""

import contextlib
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.audited import RELEASE, seen
from fakes.trees import GUEST, reader_of
from rtscope.host.errors import UsageError
from rtscope.machine.audit.context import AuditContext, Trial
from rtscope.machine.audit.examine import auditing, examine, read_context
from rtscope.machine.reader import Denied, Missing
from rtscope.machine.redaction import GONE, Redactions, redact_text
from rtscope.verbs.audit import capture

DEBUG = "/sys/kernel/debug/sched/fair_server/cpu*/runtime"


def of_guest() -> AuditContext:
    observed = replace(
        seen(device=3),
        kernel_log="[    0.000000] Linux version 6.18.44\n",
        trial=Trial("FIFO", 1, "Operation not permitted"),
        clock_cost_ns=60,
        clock_resolution_ns=1,
    )
    reader = reader_of(GUEST, also={DEBUG: Denied("Permission denied")})
    return read_context(reader, auditing(), cpus=(1,), observed=observed)


def unpacked(content: bytes, place: Path) -> capture.Captured:
    file = place / "archive"
    file.write_bytes(content)
    tree = place / "tree"
    tree.mkdir()
    capture.unpack(file, tree)
    return capture.open_tree(tree)


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for member, content in members:
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    info.type = kind
    info.linkname = "/etc/passwd"
    return info


def test_a_capture_is_judged_as_the_machine_was(tmp_path: Path) -> None:
    context = of_guest()
    made = capture.archive(context)
    content, _, _ = made.content, made.redacted, made.files

    tree = unpacked(content, tmp_path)
    again = read_context(tree, auditing(), cpus=(1,), observed=tree.observed)

    assert examine(again, auditing()) == examine(context, auditing())


def test_what_was_refused_there_stays_refused(tmp_path: Path) -> None:
    content = capture.archive(of_guest()).content

    tree = unpacked(content, tmp_path)

    assert tree.read_many([DEBUG]) == {DEBUG: Denied("Permission denied")}
    assert tree.read_many([RELEASE + "x"]) == {RELEASE + "x": Missing()}


@pytest.mark.parametrize(
    ("text", "left", "kinds"),
    [
        ("ip=eth0 mac=52:54:00:12:34:56", f"ip=eth0 mac={GONE}", "hardware addresses"),
        ("Serial\t\t: 10000000abcdef01", f"Serial\t\t: {GONE}", "serial numbers"),
        (
            "androidboot.serialno=R5CT a",
            f"androidboot.serialno={GONE} a",
            "serial numbers",
        ),
        ("SerialNumber: 4C53", f"SerialNumber: {GONE}", "serial numbers"),
        ("quiet luks.key=abc x", f"quiet luks.key={GONE} x", "secrets"),
        ("app.password=hunter2", f"app.password={GONE}", "secrets"),
        ("-- --api-token abc -v", f"-- --api-token {GONE} -v", "secrets"),
        ('API_TOKEN="a b" c', f"API_TOKEN={GONE} c", "secrets"),
        ("root=http://me:pw@host/", f"root=http://{GONE}@host/", "secrets"),
        ("netroot=iscsi:u:PW@h::3260", f"netroot=iscsi:{GONE}@h::3260", "secrets"),
        ("netroot=iscsi:u:P:v:W@h", f"netroot=iscsi:{GONE}@h", "secrets"),
        ("systemd.setenv=A=b1 x", f"systemd.setenv=A={GONE} x", "secrets"),
        ('systemd.setenv=A="b 1" x', f"systemd.setenv=A={GONE} x", "secrets"),
        ("pw=abc x", f"pw={GONE} x", "secrets"),
        ("wifi.pin=1234", f"wifi.pin={GONE}", "secrets"),
        ("apikey:abc", f"apikey:{GONE}", "secrets"),
        ("my-api_key:abc x", f"my-api_key:{GONE} x", "secrets"),
        ("x password:abc", f"x password:{GONE}", "secrets"),
        ("mac 5254.0012.3456 x", f"mac {GONE} x", "hardware addresses"),
        ("at 0:1b:2:c:4:5", f"at {GONE}", "hardware addresses"),
        ("macaddr=525400123456", f"macaddr={GONE}", "hardware addresses"),
        ("BOOTIF=01-52-54-00-12-34-56", f"BOOTIF={GONE}", "hardware addresses"),
    ],
)
def test_what_identifies_or_opens_is_taken_out(
    text: str, left: str, kinds: str
) -> None:
    tally = Redactions()

    assert redact_text(text, tally) == left
    assert tally.counts == {kinds: 1}


@pytest.mark.parametrize(
    "text",
    [
        "quiet isolcpus=2-3 vconsole.keymap=de root=/dev/sda2 console=ttyS0,115200",
        "isa\t\t: rv64imafdc_zicsr\nmmu\t\t: sv39\n",
        "[    0.000000] serial8250: ttyS0 at I/O 0x3f8",
        "12:34:56 CST 2023",
        "spin=1 pinctrl.x=1 mapping=2 pci=0000:00:1f.0 3.1.2 4096.1234",
        "systemd.unit=rescue.target deadbeefdead iscsi: registered",
        "certificate 'Build time autogenerated kernel key: 0123456789abcdef0123'",
        "-- --auth-required --token-file",
    ],
)
def test_what_harms_nobody_stays(text: str) -> None:
    tally = Redactions()

    assert redact_text(text, tally) == text
    assert tally.counts == {}


def test_no_secret_of_the_command_line_is_in_the_archive(tmp_path: Path) -> None:
    files = {**GUEST, "/proc/cmdline": "quiet password=hunter2 isolcpus=1"}
    context = read_context(reader_of(files), auditing())
    context = replace(
        context,
        observed=replace(context.observed, kernel_log="Command line: password=hunter2"),
    )

    made = capture.archive(context)
    content, tally, _ = made.content, made.redacted, made.files

    tree = unpacked(content, tmp_path)
    everything = b"".join(
        path.read_bytes() for path in tree.root.rglob("*") if path.is_file()
    )
    assert b"hunter2" not in everything
    assert b"isolcpus=1" in everything
    assert tally.counts["secrets"] == 2


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: tar_of((member("../x"), b"")), "not a path below"),
        (lambda: tar_of((member("a/../../x"), b"")), "not a path below"),
        (lambda: tar_of((member("/etc/x"), b"")), "not a path below"),
        (
            lambda: tar_of((member("x", kind=tarfile.SYMTYPE), b"")),
            "regular file",
        ),
        (
            lambda: tar_of((member("x", kind=tarfile.LNKTYPE), b"")),
            "regular file",
        ),
        (
            lambda: tar_of((member("x", kind=tarfile.FIFOTYPE), b"")),
            "regular file",
        ),
        (
            lambda: tar_of((member("x", kind=tarfile.CHRTYPE), b"")),
            "regular file",
        ),
        (
            lambda: tar_of((member("x", size=5 * 1024**2), bytes(5 * 1024**2))),
            "too large",
        ),
        (lambda: tar_of((member("x"), b""), (member("x"), b"")), "File exists"),
        (lambda: b"", "empty"),
        (lambda: b"hello", "not a capture, or damaged"),
        (lambda: b"\x1f\x8bhello", "not a capture, or damaged"),
    ],
)
def test_an_archive_that_means_harm_is_refused(
    make: Callable[[], bytes], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=complaint):
        unpacked(make(), tmp_path)

    outside = [p for p in tmp_path.rglob("*") if p.name == "x"]
    assert all(tmp_path / "tree" in p.parents for p in outside)


def test_a_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "MAX_TOTAL_BYTES", 1000)

    with pytest.raises(UsageError, match="too large"):
        unpacked(
            tar_of(*((member(f"f{n}", 300), bytes(300)) for n in range(9))), tmp_path
        )


def test_too_many_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "MAX_FILES", 3)

    with pytest.raises(UsageError, match="or 3 files"):
        unpacked(tar_of(*((member(f"f{n}"), b"") for n in range(4))), tmp_path)


@pytest.mark.parametrize(
    "notes",
    [
        "",
        "[]",
        '{"schema": 1}',
        '{"schema": 1, "denied": {"a": 1}, "observed": {}}',
        '{"schema": 1, "denied": {}, "observed": {"trial": null, "x": 1}}',
        '{"schema": 1, "denied": {}, "observed": {"trial": null, "window_ns": "1"}}',
        '{"schema": 1, "denied": {}, "observed": {"trial": {"error": {}}}}',
        '{"schema": 1, "denied": {}, "observed": {"trial": {"reason": []}}}',
        '{"schema": 1, "denied": {}, "observed": {"dma_holders": {"1": {}}}}',
    ],
)
def test_damaged_notes_are_refused(notes: str, tmp_path: Path) -> None:
    (tmp_path / capture.NOTES_NAME).write_text(notes)

    with pytest.raises(UsageError, match="damaged"):
        capture.open_tree(tmp_path)


def test_a_newer_capture_is_refused_by_its_number(tmp_path: Path) -> None:
    (tmp_path / capture.NOTES_NAME).write_text(json.dumps({"schema": 2}))

    with pytest.raises(UsageError, match="schema 2"):
        capture.open_tree(tmp_path)


WHOLE = capture.archive(of_guest()).content


def test_the_notes_of_a_capture_have_a_line_for_each_value() -> None:
    with tarfile.open(fileobj=io.BytesIO(WHOLE)) as tar:
        notes = tar.extractfile(capture.NOTES_NAME)
        assert notes is not None
        assert notes.read().startswith(b'{\n "schema": 1,\n')


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(junk=st.binary(max_size=200), at=st.integers(0, len(WHOLE)))
def test_damage_never_gives_anything_but_a_clear_error(
    junk: bytes, at: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("damaged")
    try:
        tree = unpacked(WHOLE[:at] + junk + WHOLE[at + len(junk) :], place)
    except UsageError:
        return
    examine(read_context(tree, auditing(), observed=tree.observed), auditing())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(name=st.text(min_size=1, max_size=40))
def test_no_name_leads_outside(name: str, tmp_path: Path) -> None:
    place = tmp_path / f"named-{len(list(tmp_path.iterdir()))}"
    place.mkdir()
    try:
        content = tar_of((member(name, 1), b"x"))
    except (ValueError, UnicodeError):
        return
    with contextlib.suppress(UsageError):
        unpacked(content, place)
    assert {p.name for p in place.iterdir()} <= {"archive", "tree"}


def test_what_an_archive_holds_is_listed_by_place() -> None:
    files = {
        **{f"/proc/{n}/comm": "x" for n in (1, 22)},
        **{"/proc/1/status": "x", "/proc/irq/24/smp_affinity": "1"},
        **{"/proc/irq/default_smp_affinity": "1", "/proc/cmdline": "x"},
        **{"/sys/kernel/mm/ksm/run": "0", "/sys/kernel/mm/ksm/sleep": "0"},
        **{"/sys/irq": "x"},
    }
    context = of_guest()
    machine = replace(
        context.machine, files={path: text.encode() for path, text in files.items()}
    )
    listed = [*capture.taken(replace(context, machine=machine))]

    assert listed == [
        "/proc/PID (names and state of processes): 3 files",
        "/proc/cmdline: 1 file",
        "/proc/irq: 2 files",
        "/sys/irq: 1 file",
        "/sys/kernel/mm: 2 files",
        "the kernel log",
        "the counters of the observation window",
    ]
    unwatched = replace(context.observed, kernel_log=None, window_ns=0)
    denied = replace(machine, files={"/proc/cmdline": Denied("no")})
    assert not [*capture.taken(replace(context, machine=denied, observed=unwatched))]


def test_a_pattern_of_which_all_was_refused_there_is_no_file_itself(
    tmp_path: Path,
) -> None:
    one = "/sys/kernel/debug/sched/fair_server/cpu0/runtime"
    tree = capture.Captured(tmp_path, {one: "Permission denied"})

    assert tree.read_many([one.replace("cpu0", "cpu*")]) == {
        one: Denied("Permission denied")
    }


@pytest.mark.parametrize(
    ("sizes", "left"),
    [
        ([5 << 10, 10], {"/proc/x0"}),
        ([4 << 10] * 14, {f"/proc/x{number}" for number in (12, 13)}),
        ([3 << 10, 4 << 10, 3 << 10] * 4 + [4 << 10] * 4, None),
        ([0] * 510, None),
        ([(4 << 10) + 1] * 3, {"/proc/x0", "/proc/x1", "/proc/x2"}),
        ([100] * 3, set()),
    ],
)
def test_a_capture_has_no_more_than_its_reader_accepts(
    sizes: list[int],
    left: set[str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {
        "MAX_FILES": 500,
        "MAX_FILE_BYTES": 4 << 10,
        "MAX_TOTAL_BYTES": 128 << 10,
        "_NOTES_BYTES": 80 << 10,
    }
    for name, limit in limits.items():
        monkeypatch.setattr(capture, name, limit)
    files = {f"/proc/x{number}": b"7" * size for number, size in enumerate(sizes)}
    context = of_guest()
    machine = replace(context.machine, files=files)
    made = capture.archive(replace(context, machine=machine))
    tree = unpacked(made.content, tmp_path)

    assert left in (None, set(made.left_out))
    assert bool(made.left_out) == (left != set())
    assert len(made.left_out) + made.files == len(sizes)
    assert made.left_out.items() <= tree.denied.items()
    assert all("left out of the capture" in why for why in made.left_out.values())
