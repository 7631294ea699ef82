"""The wheel, built once, installed where nothing can be written, and used."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

pytestmark = [pytest.mark.system, pytest.mark.long]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rtscope"
PATIENCE_S = 900.0
MACHINES = {
    "x86_64": "EM_X86_64",
    "aarch64": "EM_AARCH64",
    "armv7l": "EM_ARM",
    "riscv64": "EM_RISCV",
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """On a disk that is not mounted without executables, as /tmp may be."""
    made = Path("/var/tmp") / f"install-{os.getpid()}"
    made.mkdir()
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def environment(folder: Path) -> Path:
    """A new environment with the wheel; its dependencies are those of the tests."""
    pip = [sys.executable, "-m", "pip", "--quiet"]
    options = ["--no-deps", "--no-build-isolation", "--no-index"]
    run([*pip, "wheel", *options, "--wheel-dir", str(folder), str(ROOT)])
    run([sys.executable, "-m", "venv", str(folder / "env")])
    (wheel,) = folder.glob("rtscope-*.whl")
    python = folder / "env" / "bin" / "python"
    run([str(python), "-m", "pip", "--quiet", "install", *options[::2], str(wheel)])
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    (site / "tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder / "env"


def run(
    argv: list[str], *, home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    own = {} if home is None else {"HOME": str(home)}
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=home or "/",
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **own},
    )
    assert done.returncode in (0, 4), (argv, done.stdout, done.stderr)
    return done


def read_only(environment: Path, *words: str | Path, home: Path) -> str:
    """Run rtscope from an environment that is mounted read-only."""
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    argv = ["unshare", *own, "--mount", "sh", "-c", script, str(environment)]
    command = [str(environment / "bin" / "rtscope"), *map(str, words)]
    return run([*argv, *command], home=home).stdout


def test_the_installed_program_measures_and_reports_from_a_read_only_place(
    environment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("run", "--load", "idle", "--duration", "1s", "--out", out)
    read_only(environment, *words, home=tmp_path)
    told = read_only(environment, "report", out, "--format", "json", home=tmp_path)

    assert json.loads(told)["runs"]
    assert (out / "report.html").is_file()


def test_all_agents_and_the_plugin_are_what_they_say(environment: Path) -> None:
    (package,) = (environment / "lib").glob("python*/site-packages/rtscope")
    for arch, machine in MACHINES.items():
        agent = package / "agents" / arch / "rtscope-agent"
        assert os.access(agent, os.X_OK)
        with agent.open("rb") as file:
            elf = ELFFile(file)
            assert elf["e_machine"] == machine
            kinds = {segment["p_type"] for segment in elf.iter_segments()}
            assert not kinds & {"PT_INTERP", "PT_DYNAMIC"}, "not static"
    assert (package / "plugins" / "rtscope-plugin.so").is_file()


def test_all_files_of_the_package_are_installed(environment: Path) -> None:
    (package,) = (environment / "lib").glob("python*/site-packages/rtscope")

    def files(folder: Path) -> set[str]:
        return {
            path.relative_to(folder).as_posix()
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }

    assert files(package) == files(PACKAGE)
    shared = environment / "share" / "doc" / "rtscope"
    # What make has compiled there is no example.
    examples = {name for name in files(ROOT / "examples") if "/build/" not in name}
    assert files(shared / "examples") == examples
    library = {f"rtscope_task.{end}" for end in ("c", "h")}
    assert files(shared / "lib") == library
    man = {path.name for path in (environment / "share/man/man1").glob("rtscope*")}
    assert man == {path.name for path in (ROOT / "docs" / "man").glob("*.1")}
    assert (environment / "share/bash-completion/completions/rtscope.bash").is_file()
    assert {path.name for path in (shared / "plugin").glob("*.c")} == {
        path.name for path in (ROOT / "plugin").glob("*.c")
    }


def test_a_virtual_board_starts_from_a_read_only_place(
    environment: Path, tmp_path: Path
) -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("needs apt to fetch QEMU and kernels")
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    home = tmp_path / "home"
    home.mkdir()
    (home / ".cache").symlink_to(cache)
    words = ("--target", "virtual:pc", "--kernel", "debian-6.12-rt", "--load", "idle")
    out = tmp_path / "out"
    read_only(environment, "run", *words, "--duration", "1s", "--out", out, home=home)

    assert len(list(out.glob("runs/*/record.json"))) == 1
