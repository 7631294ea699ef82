"""An allocation in a cycle is found in programs of all kinds, with its place."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rig import PATIENCE_S, most_long, rtscope, until

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]

SOURCES = Path(__file__).parent.parent / "offenders"
LOOKS = 3
COMPILED_S = 2.0
JEMALLOC = ("libjemalloc.so.2", "libjemalloc2")


def allocations(*command: str | Path, threads: str = "cycle") -> dict[str, Any]:
    """Check a program; return what was found of its allocations."""
    words = ("app", "check", "--json", "--duration", "1s", "--settle", "1s")
    named = ("--thread", threads, "--", *map(str, command))
    with rtscope(*words, *named) as program:
        done = program.finish(3 * PATIENCE_S)
    assert done.status == 1, done.stderr
    findings = [
        one for one in json.loads(done.stdout)["findings"] if one["id"] == "RA07"
    ]
    (one,) = findings
    assert one["thread"] == threads
    assert one["count"] > 0
    assert all(_is_whole(stack) for stack in one["stacks"]), one["stacks"]
    found: dict[str, Any] = one
    return found


def _is_whole(stack: dict[str, Any]) -> bool:
    """Whether it goes to where the thread began; musl has no table for that place."""
    why = str(stack["ends_early"])
    return bool(stack["complete"]) or why.endswith("no unwind table for start")


def functions_in(finding: dict[str, Any]) -> list[list[str]]:
    return [[f["function"] for f in s["frames"]] for s in finding["stacks"]]


def compiled(argv: Sequence[str | Path]) -> None:
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot be compiled here: {done.stderr[-300:]}")


@pytest.fixture(params=["", "x86"], ids=["own", "32 bits"], scope="module")
def static(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the offender as a static program of musl; also one of fewer bits."""
    machine = os.uname().machine
    if request.param and machine != "x86_64":
        pytest.skip("needs a processor with a mode of 32 bits and zig's musl for it")
    out = tmp_path_factory.mktemp("static") / "prog"
    target = f"{request.param or machine}-linux-musl"
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", target, "-static")
    compiled([*zig, "-O1", "-g", "-o", out, SOURCES / "offender.c"])
    return out


def test_a_static_program_of_musl(static: Path) -> None:
    found = allocations(static, "malloc")

    assert all(names[1:3] == ["offend", "cycle"] for names in functions_in(found))
    lines = {f["line"] for s in found["stacks"] for f in s["frames"][1:2]}
    text = (SOURCES / "offender.c").read_text().splitlines()
    assert {text[line - 1].strip() for line in lines} == {
        "char *p = malloc(100);",
        "free(p);",
    }


def test_a_call_of_a_program_of_32_bits_goes_through_the_kernels_code(
    static: Path, request: pytest.FixtureRequest
) -> None:
    words = ("app", "check", "--json", "--duration", "1s", "--thread", "cycle")
    with rtscope(*words, "--", str(static), "write") as program:
        done = program.finish(3 * PATIENCE_S)

    findings = json.loads(done.stdout)["findings"]
    (found,) = [one for one in findings if one["id"] == "RA09"]
    names = functions_in(found)
    if "32 bits" in request.node.name:
        # then comes assembler of musl that moves the stack without saying so
        assert {tuple(one[:2]) for one in names} == {
            ("__kernel_vsyscall", "__syscall6")
        }
    else:
        assert names
        assert all("offend_in_system" in one for one in names)


def jemalloc(scratch: Path) -> Path:
    """Return the library, of this system or taken out of its package."""
    name, package = JEMALLOC
    for place in Path("/usr/lib").glob(f"*-linux-gnu/{name}"):
        return place
    if shutil.which("apt-get") is None:
        pytest.skip("needs jemalloc")
    taken = subprocess.run(
        ["apt-get", "download", package], cwd=scratch, capture_output=True
    )
    files = list(scratch.glob("*.deb"))
    if taken.returncode or not files:
        pytest.skip("needs jemalloc, and cannot download it")
    subprocess.run(["dpkg-deb", "-x", files[0], scratch], check=True)
    return next(scratch.rglob(name))


def test_a_program_with_an_allocator_of_its_own(scratch: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    scratch.chmod(0o777)
    library = jemalloc(scratch)
    out = scratch / "prog"
    rpath = f"-Wl,-rpath,{library.parent}"
    source = SOURCES / "offender.c"
    compiled(["gcc", "-O1", "-g", "-o", out, source, library, rpath, "-pthread"])

    found = allocations(out, "malloc")

    frames = [s["frames"][:2] for s in found["stacks"]]
    assert {first["image"] for first, _ in frames} == {JEMALLOC[0]}
    assert {second["function"] for _, second in frames} == {"offend"}


def test_a_program_in_cpp(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    out = tmp_path / "prog"
    compiled(["g++", "-O1", "-g", "-o", out, SOURCES / "offender.cc", "-pthread"])

    found = allocations(out)

    named = [names for names in functions_in(found) if names[0] == "malloc"]
    assert named
    for names in named:
        assert names[1].startswith("operator new(")
        assert any(name.endswith("append") or "::append(" in name for name in names)


def test_a_program_in_rust(tmp_path: Path) -> None:
    rustc = shutil.which("rustc") or str(Path.home() / ".cargo" / "bin" / "rustc")
    if not Path(rustc).exists():
        pytest.skip("needs rustc")
    out = tmp_path / "prog"
    compiled([rustc, "-g", "-C", "opt-level=1", "-o", out, SOURCES / "offender.rs"])

    found = allocations(out)

    for names in functions_in(found):
        assert any(name.endswith("append") for name in names), names


def test_a_program_in_python() -> None:
    found = allocations(
        os.path.realpath(sys.executable), SOURCES / "offender.py", threads=python_name()
    )

    # names of Python's own functions are not on the stack: those of its C are
    for names in functions_in(found):
        assert any(name.startswith(("Py", "_Py")) for name in names), names


def python_name() -> str:
    """Return the name that the kernel gives the program: 15 bytes of its file's."""
    return Path(os.path.realpath(sys.executable)).name[:15]


def offences(*command: str | Path) -> dict[str, Any]:
    """Check a program or a process; return what was found of one thread, by ids."""
    words = ("app", "check", "--json", "--duration", "1s", "--settle", "1s")
    with rtscope(*words, *map(str, command)) as program:
        done = program.finish(3 * PATIENCE_S)
    assert done.status in (0, 1, 3), done.stderr
    assert done.stdout, done.stderr
    return {one["id"]: one for one in json.loads(done.stdout)["findings"]}


@pytest.fixture(
    scope="module", params=most_long(["", "-s -w"]), ids=["whole", "stripped"]
)
def in_go(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    go_cache: Path,
) -> Path:
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not Path(go).exists():
        pytest.skip("needs go")
    place = tmp_path_factory.mktemp("go")
    env = {**os.environ, "GOCACHE": str(go_cache), "GO111MODULE": "off"}
    argv = [go, "build", "-ldflags", request.param, "-o", str(place / "prog")]
    argv.append(str(SOURCES / "offender.go"))
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env=env)
    if done.returncode:
        pytest.skip(f"cannot be compiled here: {done.stderr[-300:]}")
    return place / "prog"


@pytest.mark.parametrize(
    ("kind", "id_", "word", "text"),
    [
        ("allocate", "RA07", "mallocgc", "// allocates"),
        ("file", "RA09", "pwrite64", "// writes"),
        ("block", "RA09", "read", "// waits"),
    ],
)
def test_offences_of_go_have_the_users_line(
    in_go: Path,
    kind: str,
    id_: str,
    word: str,
    text: str,
    request: pytest.FixtureRequest,
) -> None:
    one = offences("--", in_go, kind)[id_]

    assert word in one["detail"]
    lines = (SOURCES / "offender.go").read_text().splitlines()
    (line,) = (n for n, code in enumerate(lines, 1) if code.endswith(text))
    of_user = [
        [frame["line"] for frame in stack["frames"] if frame["function"] == "main.step"]
        for stack in one["stacks"]
    ]
    assert all(of_user)
    # stripped, what is inlined there has no line
    unknown = [0] in of_user and "stripped" in request.node.name
    assert [line] in of_user or unknown


@pytest.fixture(scope="module")
def in_java(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not all(map(shutil.which, ("java", "javac", "jcmd"))):
        pytest.skip("needs a JDK")
    place = tmp_path_factory.mktemp("java")
    compiled(["javac", "-d", place, SOURCES / "Offender.java"])
    return place


@contextmanager
def with_names(place: Path, kind: str) -> Iterator[int]:
    """Run the program until the names of its compiled code are written."""
    words = ["java", "-XX:TieredStopAtLevel=1", "-XX:+PreserveFramePointer", "-Xmx64m"]
    with subprocess.Popen([*words, "-cp", place, "Offender", kind]) as java:
        names = Path(f"/tmp/perf-{java.pid}.map")
        asked = ["jcmd", str(java.pid), "Compiler.perfmap"]

        def written() -> bool:
            subprocess.run(asked, check=False, capture_output=True, timeout=PATIENCE_S)
            return names.exists() and f"Offender.{kind}(" in names.read_text()

        try:
            until(written, what=f"Offender.{kind} is compiled", within_s=3 * PATIENCE_S)
            time.sleep(COMPILED_S)  # it goes on to compile what these call
            written()
            yield java.pid
        finally:
            java.kill()
            names.unlink(missing_ok=True)


# When Java compiles, and what again, is its own: it takes minutes, and not each time.
@pytest.mark.long
@pytest.mark.parametrize(("kind", "call"), [("save", "write"), ("block", "read")])
def test_calls_of_java_have_the_users_method(
    in_java: Path, kind: str, call: str
) -> None:
    # the virtual machine may have put the method into the one that calls it, and may
    # compile again what was named before
    for _ in range(LOOKS):
        with with_names(in_java, kind) as pid:
            one = offences("--thread", "cycle", str(pid))["RA09"]
        assert call in {row["name"] for row in one["calls"]}
        of_user = [
            frame["function"]
            for stack in one["stacks"]
            for frame in stack["frames"]
            if frame["origin"] == "program"
        ]
        if any("Offender" in name for name in of_user):
            return
    pytest.fail(f"no method of the user: {one['stacks']}")
