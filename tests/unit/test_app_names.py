"""Names for people: whose a frame is, made code, a cache, packages, a server, words."""

import http.server
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rtscope.host.errors import UsageError
from rtscope.programs.binaries.jitcode import made_code
from rtscope.programs.binaries.namecache import NameCache, key_of
from rtscope.programs.naming import NamedFrame, NamedStack, Origin, origin_of
from rtscope.programs.packages import debug_package, owners_in
from rtscope.programs.stackwords import frame_words, stack_lines, stack_words
from rtscope.verbs.app.debuginfod import debuginfod_at
from rtscope.verbs.app.eventstacks import made_files, with_call
from rtscope.verbs.app.unnamed import naming_advice

UID = os.getuid()


@pytest.mark.parametrize(
    ("path", "function", "source", "origin"),
    [
        ("/srv/me/control", "control_step", "/srv/me/main.rs", "program"),
        (
            "/srv/me/control",
            "core::fmt::write",
            "/rustc/59807616/library/x.rs",
            "runtime",
        ),
        ("/srv/me/control", "std::io::Write::write_all", "", "runtime"),
        ("/srv/me/control", "main.step", "/srv/me/main.go", "program"),
        (
            "/srv/me/control",
            "runtime.mallocgc",
            "/usr/local/go/src/runtime/m.go",
            "runtime",
        ),
        (
            "/srv/me/control",
            "fmt.Fprintln",
            "/usr/lib/go-1.19/src/fmt/print.go",
            "runtime",
        ),
        (
            "/srv/me/control",
            "std::vector<int>::push_back",
            "/usr/include/c++/12/bits/v.h",
            "runtime",
        ),
        (
            "/srv/me/control",
            "rclcpp::Executor::spin",
            "/opt/ros/humble/include/rclcpp/rclcpp/executor.hpp",
            "runtime",
        ),
        ("/srv/me/control", "fmt::print", "/srv/b/_deps/fmt-src/fmt.h", "runtime"),
        ("/opt/me/control", "control_step", "/opt/me/src/main.cc", "program"),
        ("/srv/me/libplant.so", "plant_step", "", "program"),
        ("/usr/sbin/corosync", "", "", "program"),
        ("/usr/lib/x86_64-linux-gnu/libfluidsynth.so.3", "fluid_mixer", "", "library"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "malloc", "malloc.c", "runtime"),
        ("/usr/lib/x86_64-linux-gnu/libgomp.so.1", "GOMP_parallel", "", "runtime"),
        ("/lib/ld-musl-x86_64.so.1", "malloc", "", "runtime"),
        ("/srv/loop", "acquire__locks_71", "/usr/lib/nim/core/locks.nim", "runtime"),
        ("/srv/loop", "append", "/usr/lib/gcc/x/12/include/d/std/array.d", "runtime"),
        ("/srv/static", "alloc_slot", "/x/libc/musl/src/malloc/malloc.c", "runtime"),
        ("/lib64/ld-linux-x86-64.so.2", "_dl_fixup", "", "runtime"),
        ("[vdso]", "__vdso_clock_gettime", "", "runtime"),
        ("", "JS:*step /tmp/x.js:3", "", "program"),
        ("", "JS:^writeFileSync node:fs:2360:23", "", "runtime"),
        ("/usr/bin/node", "node::Start(int, char**)", "", "library"),
        ("", "py::step:/srv/me/loop.py", "", "program"),
        ("", "py::step:/usr/lib/python3.12/site-packages/me/loop.py", "", "program"),
        ("", "py::Thread.run:/usr/lib/python3.12/threading.py", "", "runtime"),
        ("", "py::_find_spec:<frozen importlib._bootstrap>", "", "runtime"),
        ("/usr/bin/python3.12", "take_gil", "ceval_gil.c", "library"),
        ("/opt/me/lib/libpython3.13.so.1.0", "take_gil", "", "library"),
        ("/srv/me/node", "control_step", "", "program"),
        ("/srv/me/bin/node_of_ros", "control_step", "", "program"),
        ("", "void java.io.RandomAccessFile.writeBytes(byte[])", "", "runtime"),
        ("", "void Control.save(java.io.RandomAccessFile)", "", "program"),
        ("", "", "", "runtime"),
    ],
)
def test_a_frame_is_of_the_program_a_library_or_the_runtime(
    path: str, function: str, source: str, origin: str
) -> None:
    found = origin_of(path, function, source, program="/usr/sbin/corosync")

    assert found == Origin(origin)


def frame(function: str, line: int = 0, **more: object) -> NamedFrame:
    known = NamedFrame(function, "/src/app.c" if line else "", line, "app", 16, False)
    return replace(known, **more)  # type: ignore[arg-type]


def stack(*frames: NamedFrame, ends_early: str | None = None) -> NamedStack:
    return NamedStack(frames, ends_early)


RUNTIME = Origin.RUNTIME
DEEP = stack(
    frame("futex_wait", 146, origin=RUNTIME),
    *(frame(f"library_function_{n}", n, origin=RUNTIME) for n in range(1, 20)),
    frame("control_step", 9, origin=Origin.PROGRAM),
    frame("main", 40, origin=Origin.PROGRAM),
    frame("__clone3", 81, origin=RUNTIME),
)


def test_a_runtime_without_lines_in_the_program_does_not_lead() -> None:
    """As of Free Pascal, or of the C library in a static program."""
    own = [
        frame(name, line, origin=Origin.PROGRAM)
        for name, line in (("malloc", 0), ("step", 9), ("main", 40), ("_start", 0))
    ]
    other = frame("next", origin=Origin.PROGRAM, image="libmine.so")

    assert stack(*own).leading == 1
    assert stack(other, *own).leading == 0
    assert stack(own[0], own[3]).leading == 0


def test_a_place_without_a_name_does_not_lead_where_a_line_is_known() -> None:
    """As of a library without symbols that somebody else delivered."""
    place = frame("", origin=Origin.PROGRAM, image="libtheirs.so")
    caller = frame("main", 40, origin=Origin.PROGRAM)
    bare = frame("main", origin=Origin.PROGRAM)

    assert stack(place, caller).leading == 1
    assert stack(place, bare).leading == 0


def test_the_first_frame_of_the_program_leads_then_come_the_ends() -> None:
    lines = stack_lines(DEEP, 19, width=74)

    assert len(lines) == 2
    assert all(len(line) <= 74 for line in lines)
    assert lines[0].startswith("19x control_step app.c:9: futex_wait app.c:146 <")
    assert lines[1].endswith("__clone3 app.c:81")
    assert "more" in " ".join(lines)


def test_a_whole_stack_has_each_frame() -> None:
    words = stack_words(DEEP)

    assert words.startswith("control_step app.c:9: futex_wait app.c:146 < ")
    assert words.count(" < ") == len(DEEP.frames) - 1
    assert "more" not in words


def test_a_stack_without_a_frame_of_the_program_leads_with_that_of_a_library() -> None:
    inner = frame("futex_wait", origin=RUNTIME)
    mixer = frame("fluid_mixer", origin=Origin.LIBRARY)

    assert stack_words(stack(inner, mixer)) == "fluid_mixer: futex_wait < fluid_mixer"
    assert stack_words(stack(inner)) == "futex_wait"
    assert stack_words(stack(mixer, inner)) == "fluid_mixer < futex_wait"
    assert stack_words(stack(ends_early="why")) == " (ends early: why)"


def test_a_frame_without_a_name_has_its_place_in_the_file() -> None:
    bare = frame("", image="corosync", offset=0x1234, build_id="ab" * 20)

    assert frame_words(bare) == "corosync+0x1234 (build id abababababab)"
    assert frame_words(replace(bare, build_id="")) == "corosync+0x1234"
    nowhere = replace(bare, offset=-1, image="", build_id="")
    assert frame_words(nowhere) == "0x10"
    assert frame_words(replace(nowhere, image="[heap]")) == "0x10 in [heap]"
    assert frame_words(replace(bare, file="a.c", line=3)) == "corosync+0x1234 a.c:3"


def test_a_long_name_keeps_what_it_does() -> None:
    long = frame(
        "void ns::outer<std::map<int, std::string> >::run(std::vector<int> const&)"
    )
    path = frame("a::" + "module_of_a_name::" * 4 + "control_step")

    assert frame_words(long, name=40) == "ns::outer::run"
    assert frame_words(path, name=40).endswith("::control_step")
    assert len(frame_words(path, name=40)) == 40
    assert frame_words(long) == long.function


@pytest.mark.parametrize(
    ("function", "call", "shown"),
    [
        ("internal/runtime/syscall/linux.Syscall6", "write", "write"),
        ("internal/runtime/syscall.Syscall6", "fsync", "fsync"),
        ("syscall.RawSyscall6", "openat", "openat"),
        ("syscall.rawSyscallNoError", "getpid", "getpid"),
        ("syscall", "membarrier", "membarrier"),
        ("syscall.Syscall6.abi0", "pread64", "pread64"),
        ("runtime.futex", "futex", "runtime.futex"),
        ("__GI___libc_write", "write", "__GI___libc_write"),
        ("main.Syscalls", "write", "main.Syscalls"),
    ],
)
def test_a_gate_through_which_calls_go_is_named_as_the_call(
    function: str, call: str, shown: str
) -> None:
    frames = with_call([frame(function), frame("main")], call)

    assert [one.function for one in frames] == [shown, "main"]
    assert with_call([], call) == ()


# --- code that a program makes ------------------------------------------------------


def dump(*codes: tuple[int, int, str]) -> bytes:
    content = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0)
    for begin, size, name in codes:
        body = struct.pack("<IIQQQQ", 1, 1, begin, begin, size, 1)
        body += name.encode() + b"\0" + b"\x90" * 8
        content += struct.pack("<IIQ", 0, 16 + len(body), 0) + body
    return content


_LITTLE_MEMORY = """
import resource, sys
from rtscope.programs.binaries.reading import Request, answer_to
resource.setrlimit(resource.RLIMIT_DATA, (120 << 20, 120 << 20))
made = {"uid": int(sys.argv[2]), "maps": [sys.argv[1]], "dumps": []}
stacks = {"arch": "x86_64", "maps": [], "samples": [], "made": made}
answer = answer_to(Request({}, stacks=stacks))
print(answer.ended, [row["why"] for row in answer.of("not_named")])
"""


def test_names_that_need_too_much_memory_are_said_to(tmp_path: Path) -> None:
    path = tmp_path / "perf-1.map"
    path.write_text("".join(f"{n:x}00 80 a::name{n}\n" for n in range(1, 800_000)))

    done = subprocess.run(
        [sys.executable, "-c", _LITTLE_MEMORY, str(path), str(path.stat().st_uid)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout == (' ["the file\'s table of names needs more than 120 MiB"]\n')


def test_made_code_is_named_by_a_map_or_a_dump(tmp_path: Path) -> None:
    map_, jit = tmp_path / "perf-1.map", tmp_path / "jit-1.dump"
    map_.write_text("1000 20 JS:*step /tmp/x.js:3\nno line\n\n2000 0 empty\n2100 8 a\n")
    jit.write_bytes(dump((0x5000, 0x10, "Ctl.step()")))

    made = made_code([str(map_)], [str(jit)], uid=UID)

    assert made.at(0x101F) == "JS:*step /tmp/x.js:3"
    assert made.at(0x2107) == "a"
    assert made.at(0x5008) == "Ctl.step()"
    assert [made.at(one) for one in (0, 0x1020, 0x2000, 0x5010, 1 << 70)] == [""] * 5


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 100,
        b"zz 10 name\n" + b"10 zz name\n",
        b"9" * 1000 + b" 10 name\n",
        b"10 -5 name\n",
        dump((0x5000, 0x10, "a"))[:50],
        dump()[:40] + struct.pack("<IIQ", 0, 0, 0) * 3,
        dump()[:40] + struct.pack("<IIQ", 0, 0xFFFFFFFF, 0),
        dump((1 << 63, (1 << 64) - 1, "x"))[:-1],
    ],
)
def test_a_damaged_map_or_dump_names_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "perf-1.map"
    path.write_bytes(content)

    made = made_code([str(path)], [str(path)], uid=UID)

    assert made.at(0x5008) == ""


def test_a_map_of_another_user_a_link_or_no_plain_file_is_not_read(
    tmp_path: Path,
) -> None:
    path, link, pipe = tmp_path / "map", tmp_path / "link", tmp_path / "pipe"
    path.write_text("1000 20 name\n")
    link.symlink_to(path)
    os.mkfifo(pipe)

    own = UID if UID else 0
    assert made_code([str(path)], [], uid=own).at(0x1000) == "name"
    if UID:
        assert made_code([str(path)], [], uid=UID + 1).at(0x1000) == ""
    for other in (link, pipe, tmp_path, tmp_path / "none"):
        assert made_code([str(other)], [], uid=own).at(0x1000) == ""


def test_a_map_of_another_user_is_not_read_by_root(tmp_path: Path) -> None:
    if UID:
        pytest.skip("needs root, to give a file away")
    path = tmp_path / "map"
    path.write_text("1000 20 name\n")
    os.chown(path, 1234, 1234)

    assert made_code([str(path)], [], uid=4321).at(0x1000) == ""
    assert made_code([str(path)], [], uid=1234).at(0x1000) == "name"


def test_a_process_in_a_container_names_its_code_by_its_own_number() -> None:
    status = "Name:\tx\nUid:\t7\t8\t9\t10\nNSpid:\t500\t3\n"

    made = made_files(status, ["/lib/libc.so.6", "/tmp/jit-3.dump"], 500)

    assert made is not None
    assert (made.uid, list(made.dumps)) == (8, ["/tmp/jit-3.dump"])
    assert list(made.maps) == ["/proc/500/root/tmp/perf-3.map"]
    assert made_files(None, [], 500) is None
    assert made_files("Name:\tx\n", [], 500) is None


# --- what is kept -------------------------------------------------------------------

NAMES = {16: (("inner", "a.c", 3, True), ("outer", "a.c", 9, False)), 99: ()}
KEY = key_of(memoryview(b"a file"))


def test_kept_names_come_back(tmp_path: Path) -> None:
    cache = NameCache(tmp_path / "names")

    assert cache.read(KEY) == {}
    cache.write(KEY, NAMES)
    assert cache.read(KEY) == NAMES
    assert cache.read(key_of(memoryview(b"another"))) == {}
    assert key_of(memoryview(b"a"), memoryview(b"b")) != key_of(memoryview(b"ab"))


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: b"",
        lambda raw: raw[:-3],
        lambda raw: raw.replace(b"outer", b"0uter"),
        lambda raw: b"\xff" * 100,
        lambda raw: raw.partition(b"\n")[2],
        lambda raw: raw + b" ",
    ],
)
def test_kept_names_that_were_changed_are_as_if_not_there(
    tmp_path: Path, change: "type[bytes]"
) -> None:
    cache = NameCache(tmp_path)
    cache.write(KEY, NAMES)
    (path,) = tmp_path.iterdir()
    path.write_bytes(change(path.read_bytes()))

    assert cache.read(KEY) == {}
    cache.write(KEY, NAMES)
    assert cache.read(KEY) == NAMES


def test_names_of_one_file_do_not_serve_another(tmp_path: Path) -> None:
    cache, other = NameCache(tmp_path), key_of(memoryview(b"another"))
    cache.write(KEY, NAMES)
    (path,) = tmp_path.iterdir()
    path.rename(tmp_path / f"{other}.json")

    assert cache.read(other) == {}


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = NameCache(tmp_path / "file")

    cache.write(KEY, NAMES)

    assert cache.read(KEY) == {}


def test_the_oldest_names_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtscope.programs.binaries.namecache.MAX_BYTES", 400)
    cache = NameCache(tmp_path)
    keys = [key_of(memoryview(bytes([n]))) for n in range(6)]
    for number, key in enumerate(keys):
        cache.write(key, NAMES)
        os.utime(tmp_path / f"{key}.json", (number, number))

    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 400
    assert cache.read(keys[-1]) == NAMES
    assert cache.read(keys[0]) == {}


# --- packages, and a server ---------------------------------------------------------


def test_a_package_is_that_of_the_file() -> None:
    said = (
        "corosync: /usr/sbin/corosync\n"
        "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\n"
        "libjack0, libjack-jackd2-0:amd64: /usr/lib/libjack.so.0\n"
        "diversion by dash from: /bin/sh\n"
    )

    owners = owners_in(said)

    assert owners["/usr/sbin/corosync"] == "corosync"
    assert owners["/lib/x86_64-linux-gnu/libc.so.6"] == "libc6"
    assert owners["/usr/lib/libjack.so.0"] == "libjack0"
    assert "/bin/sh" not in owners
    assert debug_package("corosync") == "corosync-dbgsym"
    assert debug_package("libc6") == "libc6-dbg"


BUILD = "ab" * 20


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == f"/buildid/{BUILD}/debuginfo":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"a debug file")
        elif "cdcd" in self.path:
            self.send_response(302)
            self.send_header("Location", "file:///etc/hostname")
            self.end_headers()
        else:
            self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    one = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=one.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{one.server_address[1]}/"
    one.shutdown()
    one.server_close()


def test_debug_files_come_from_a_server_and_are_kept(
    server: str, tmp_path: Path
) -> None:
    source = debuginfod_at(server, tmp_path)
    steps: list[object] = []

    assert (
        source.fetch([BUILD, "ef" * 20, "../../etc", "", "cd" * 20], steps.append) == 1
    )
    path = tmp_path / "debuginfod" / "ab" / f"{BUILD[2:]}.debug"
    assert path.read_bytes() == b"a debug file"
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == [path]
    gone = debuginfod_at("http://127.0.0.1:9", tmp_path)
    assert gone.fetch([BUILD], steps.append) == 1
    assert gone.fetch(["ef" * 20], steps.append) == 0


def test_a_debug_file_that_is_too_large_is_not_kept(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtscope.verbs.app.debuginfod.MAX_FILE_BYTES", 5)

    assert debuginfod_at(server, tmp_path).fetch([BUILD], lambda _: None) == 0
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []


@pytest.mark.parametrize(
    "url", ["", "debian.net", "file:///etc", "ftp://x/", "http://"]
)
def test_an_address_that_is_none_of_the_web_is_refused(
    url: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="--debuginfod"):
        debuginfod_at(url, tmp_path)


@pytest.mark.parametrize(
    ("image", "made", "advice"),
    [
        ("libpython3.12.so.1.0", "py::step:/srv/loop.py", "python3 -X perf"),
        ("python3.11", "py::step:/srv/loop.py", "python3 -X perf"),
        ("node", "JS:^step /srv/loop.js:3:9", "node --perf-basic-prof"),
        ("libjvm.so", "void Control.step(int)", "jcmd PID Compiler.perfmap"),
    ],
)
def test_where_no_function_of_a_text_is_named_it_says_what_names_them(
    image: str, made: str, advice: str
) -> None:
    of_runtime = stack(frame("malloc", image="libc.so.6"), frame("run", image=image))
    named = stack(frame(made, image=""), *of_runtime.frames)

    (said,) = naming_advice([of_runtime])
    assert advice in said
    assert not [*naming_advice([of_runtime, named])]
    assert not [*naming_advice([stack(frame("step", image="node_of_ros"))])]
