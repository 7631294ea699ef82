"""
Drive kbuild by tuxmake: configure and build a source tree, and pack what it gave.

tuxmake runs as a program, in an environment of our own: what the user has set in theirs
(KCFLAGS, LOCALVERSION) would give another kernel. Time, user and paths of the build are
fixed, so that the same recipe and compiler give the same bytes.

Both have the same files in the same places, in a fixed order, with a fixed time and
owner: the same kernel gives the same bytes.
"""

import gzip
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import IO

from rtscope.boards.kernels.recipe import (
    Arch,
    Recipe,
    base_file,
    fragments_of,
    get_arch,
)
from rtscope.host import process
from rtscope.host.errors import KernelError, TargetError
from rtscope.host.files import new_file

# What kbuild looks for on the machine, and notes in the configuration, which is in the
# image: whether it is there must not make another kernel. None of ours needs them.
_NOT_SOUGHT = (
    "RUSTC=/nonexistent/rustc",
    "BINDGEN=/nonexistent/bindgen",
    "PAHOLE=/nonexistent/pahole",
    # Without header files no program for the target can be compiled, C library or not.
    "USERCFLAGS=-nostdinc",
)

EPOCH = 1767225600
"""2026-01-01: when every kernel was built, for all who ask it."""

FREE_BYTES = {"virtual": 3 << 30, "board": 6 << 30}
"""Disk space for a build: the source takes 1.6 GB, the objects 0.5 to 3 GB."""

FULL_BYTES = 64 << 20
"""With less free space than this, a full disk made the build fail, whatever the error:
ccache cannot write down the compiler's messages then."""

END_PATIENCE_S = 10.0

ABOUT_FILES = {("virtual", "riscv64"): 1_000, ("virtual", "x86_64"): 1_450}
"""Compiled files of a build: 930 to 1,070 for the kernels of jh7110, 1,400 of pc."""

_PROGRAMS = ("make", "gcc", "flex", "bison", "bc", "git", "xz")
MAX_LINE_BYTES = 64 << 10
"""Of the output of a build, which may be one line without an end."""

_COMPILED = re.compile(r"^\s+(?:CC|AS|LD)(?: \[M\])?\s+(\S+\.o)\s*$")
# gcc, then the linker and other tools, then make itself, which names only the place.
_ERRORS = (
    re.compile(r"^(\S+?:\d+:(?:\d+:)? (?:fatal )?error: .*)$", re.M),
    re.compile(
        # tuxmake begins what is no error with I: and W:, of whatever it did not find.
        r"^(?![IW]: )(.*(?:No space left on device|undefined reference to"
        r"|not found).*)$",
        re.M,
    ),
    re.compile(r"^(\*\*\* .*|.*: error: .*|(?:E|ERROR): .*)$", re.M),
    re.compile(r"^(make\S*: \*\*\* .*)$", re.M),
)


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where one kernel is built."""

    source: Path
    build: Path
    log_file: Path
    """The output of all programs; kept when the build has failed."""
    log: Callable[[str], None]
    progress: process.Progress
    """Takes note of each compiled file."""
    ccache: Path | None = None
    """Where compiled files are kept for the next build; None to compile all."""

    @property
    def root(self) -> Path:
        """The folder that source and build directory are in."""
        return self.source.parent


def missing_programs(arch: Arch) -> tuple[str, ...]:
    """Return the programs that building for an architecture lacks."""
    return tuple(
        program
        for program in (f"{arch.cross}gcc", *_PROGRAMS)
        if shutil.which(program) is None
    )


def missing_headers(arch: Arch) -> tuple[str, ...]:
    """Return the header files that the kernel's own build programs lack."""
    return tuple(
        header
        for header in arch.headers
        if process.run(
            ["gcc", "-E", "-include", header, "-x", "c", "/dev/null"], timeout_s=60
        ).status
    )


def check_machine(recipe: Recipe, *, where: Path) -> str:
    """Return the compiler's version; KernelError names what or how much is missing."""
    check_programs(recipe)
    free, needed = shutil.disk_usage(where).free, FREE_BYTES[recipe.size]
    if free < needed:
        raise KernelError(
            f"{where}: {free / 1e9:.1f} GB free, building {recipe.name} needs "
            f"{needed / 1e9:.1f} GB: free some space, or set XDG_CACHE_HOME to "
            "another disk"
        )
    return _first_line([f"{get_arch(recipe.arch).cross}gcc", "--version"])


def check_programs(recipe: Recipe) -> None:
    """Raise KernelError if this machine lacks what building or configuring needs."""
    if importlib.util.find_spec("tuxmake") is None:
        raise KernelError(
            f"building {recipe.name} needs tuxmake, which this installation of rtscope "
            "lacks: pipx inject rtscope tuxmake (or pip install 'rtscope[kernels]'); "
            "Debian's packages have none, so install rtscope with pipx for this, or "
            "run from a bundle with this kernel: rtscope run --bundle FILE"
        )
    arch = get_arch(recipe.arch)
    missing = missing_programs(arch) or missing_headers(arch)
    if missing:
        packages = [arch.compiler, "gcc", "libc6-dev", *arch.host]
        raise KernelError(
            f"building {recipe.name} needs {', '.join(missing)}: install them (Debian, "
            f"Ubuntu: apt install {' '.join(packages)} make flex bison bc git "
            "xz-utils), or run from a bundle with this kernel: rtscope run --bundle "
            "FILE"
        )


def configure(recipe: Recipe, place: Workplace) -> str:
    """Make the configuration; return it as kbuild resolved it."""
    folder = place.root / "fragments"
    folder.mkdir(exist_ok=True)
    options: list[str] = []
    # Without a fragment, tuxmake copies a configuration; kbuild then resolves nothing.
    fragments = fragments_of(recipe) or {"none": ""}
    for number, (name, text) in enumerate(fragments.items()):
        file = folder / f"{number:02}-{Path(name).stem}.config"
        file.write_text(text)
        options += ["-K", str(file)]
    base = base_file(recipe)
    options += ["-k", str(base.resolve()) if base else recipe.base]
    _tuxmake(recipe, place, ["config"], options=options)
    return (place.build / ".config").read_text()


def compile_kernel(recipe: Recipe, place: Workplace) -> None:
    """Build what the recipe's size has: an image, for a board modules and trees too."""
    goals = ["kernel"]
    if recipe.size == "board":
        goals += ["modules"] + (["dtbs"] if recipe.arch != "x86_64" else [])
    _tuxmake(recipe, place, goals, options=[])


def release_of(place: Workplace) -> str:
    """Return the release, as `uname -r` will print it."""
    return (place.build / "include/config/kernel.release").read_text().strip()


def first_error(log: str) -> str:
    """Return the first line of a log with an error; empty if none."""
    for pattern in _ERRORS:
        match = pattern.search(log)
        if match:
            return match[1].strip()[:300]
    return ""


def _tuxmake(
    recipe: Recipe, place: Workplace, goals: Sequence[str], *, options: Sequence[str]
) -> None:
    arch = get_arch(recipe.arch)
    argv = [
        *("nice", "env", "-i", *_environment(place)),
        *(sys.executable, "-m", "tuxmake", "--runtime", "null", "--fail-fast"),
        *("--verbose", "--target-arch", arch.tuxmake, "--kernel-image", arch.goal),
        *("--directory", str(place.source), "--build-dir", str(place.build)),
        *("--output-dir", str(place.root / "out"), "--compression-type", "none"),
        *("--jobs", str(len(os.sched_getaffinity(0)))),
        *(("--wrapper", "ccache") if place.ccache else ()),
        *(word for setting in _same_bytes(place) for word in ("-e", setting)),
        *options,
        f"CROSS_COMPILE={arch.cross}",
        *_NOT_SOUGHT,
        *goals,
    ]
    status = _follow(argv, place, recipe)
    if status != 0:
        log = place.log_file.read_text("utf-8", "replace")
        raise KernelError(
            f"building {recipe.name} failed: {first_error(log) or f'status {status}'}"
            f"{_full_disk(place)} (whole log: {place.log_file})"
        )


def _full_disk(place: Workplace) -> str:
    """Return a message that names the disk that a build has filled, if one is full."""
    for folder in (place.root, Path(tempfile.gettempdir())):
        free = shutil.disk_usage(folder).free
        if free < FULL_BYTES:
            return (
                f"; the disk of {folder} is full ({free / 1e6:.0f} MB free): free some "
                "space and build again"
            )
    return ""


def _environment(place: Workplace) -> list[str]:
    passed = [
        f"{name}={os.environ[name]}"
        for name in ("PATH", "HOME", "PYTHONPATH", "TMPDIR")
        if name in os.environ
    ]
    cache = [
        f"CCACHE_DIR={place.ccache}",
        # Each build is in a directory of another name.
        f"CCACHE_BASEDIR={place.root}",
        "CCACHE_NOHASHDIR=1",
    ]
    return [*passed, "LC_ALL=C", "PYTHONUNBUFFERED=1", *(cache if place.ccache else [])]


def _same_bytes(place: Workplace) -> tuple[str, ...]:
    """Return what would otherwise be the time, user, machine and place of the build."""
    return (
        "KBUILD_BUILD_TIMESTAMP=2026-01-01",
        "KBUILD_BUILD_USER=rtscope",
        "KBUILD_BUILD_HOST=rtscope",
        "KBUILD_BUILD_VERSION=1",
        f"SOURCE_DATE_EPOCH={EPOCH}",
        # The last one that matches counts, also over kbuild's own map of the source:
        # messages name files as the source tree does, wherever it was.
        f"KCFLAGS=-ffile-prefix-map={place.root}/= -ffile-prefix-map={place.source}/=",
    )


def _follow(argv: Sequence[str], place: Workplace, recipe: Recipe) -> int:
    """Run a build, write its log and report progress; return its status."""
    compiled, about = 0, ABOUT_FILES.get((recipe.size, recipe.arch), 0)
    with place.log_file.open("ab") as log:
        build = process.start(argv, stderr=log)
        try:
            output = build.stdout
            assert output is not None
            for raw in iter(lambda: output.readline(MAX_LINE_BYTES), b""):
                log.write(raw)
                match = _COMPILED.match(raw.decode("utf-8", "replace"))
                if match:
                    compiled += 1
                    what = f"compiling {recipe.name}"
                    place.progress(process.Step(what, compiled, about))
            return build.wait()
        finally:
            _end(build.pid, build)


def _end(group: int, build: "process.Started") -> None:
    """End a build with all that it has started; it may have ended already."""
    for pipe in (build.stdin, build.stdout):
        if pipe is not None:
            pipe.close()
    if build.poll() is None:
        os.killpg(group, signal.SIGTERM)
        try:
            build.wait(timeout=END_PATIENCE_S)
        except process.TimeoutExpired:
            os.killpg(group, signal.SIGKILL)
            build.wait()


def _first_line(argv: Sequence[str]) -> str:
    try:
        done = process.run(argv, timeout_s=60)
    except TargetError as error:
        raise KernelError(str(error)) from error
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.status != 0 or not lines:
        words = " ".join(done.stderr.split())[-200:]
        raise KernelError(
            f"{' '.join(argv)} failed: {words or f'status {done.status}'}: the "
            "compiler that is found first in PATH does not work"
        )
    return lines[0]


# --- pack a built kernel for the board: one archive, or a Debian package --------------

PATIENCE_S = 1800.0
SUMS = "SHA256SUMS"


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """What is packed."""

    name: str
    """The recipe's."""
    title: str
    release: str
    arch: str
    """As Debian calls it."""
    digest: str
    """SHA-256 of the image."""
    image: Path
    config: Path
    symbols: Path
    modules: Path | None
    """An archive with lib/modules/RELEASE; None if it has none."""
    device_trees: Path | None
    """An archive with dtbs/VENDOR/*.dtb; None if there are none."""


def pack_folder(folder: Path, archive: Path) -> None:
    """Write the regular files below a folder into an archive, sorted, without dates."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    with archive.open("wb") as out:
        _write_tar(files, out)


def write_tar(kernel: BuiltKernel, path: Path) -> None:
    """Write a .tar.gz with all files of a kernel, and SHA256SUMS over them."""
    files = _files(kernel)
    sums = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in sorted(files.items())
    )
    with (
        new_file(path, KernelError) as new,
        new.open("wb") as out,
        gzip.GzipFile("", "wb", fileobj=out, mtime=EPOCH) as zipped,
    ):
        _write_tar({**files, SUMS: sums.encode()}, zipped)


def write_deb(kernel: BuiltKernel, path: Path) -> None:
    """Write a Debian package; KernelError if dpkg-deb is missing or refuses."""
    if shutil.which("dpkg-deb") is None:
        raise KernelError(
            "cannot make a .deb without dpkg-deb: install it (apt install dpkg)"
        )
    with (
        new_file(path, KernelError) as new,
        tempfile.TemporaryDirectory(prefix="rtscope-deb-", dir=path.parent) as name,
    ):
        root = Path(name)
        size = 0
        for file, content in _files(kernel).items():
            target = root / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(0o644)
            size += len(content)
        _write_control(kernel, root / "DEBIAN", size_kib=-(-size // 1024))
        for folder in (root, *(p for p in root.rglob("*") if p.is_dir())):
            folder.chmod(0o755)
        options = ("--root-owner-group", "-Zxz", "--build", str(root), str(new))
        env = ("env", f"SOURCE_DATE_EPOCH={EPOCH}", "LC_ALL=C")
        done = process.run([*env, "dpkg-deb", *options], timeout_s=PATIENCE_S)
        if done.status != 0:
            raise KernelError(f"dpkg-deb: {done.stderr.strip()[-400:]}")


def deb_name(kernel: BuiltKernel) -> str:
    """Return what Debian calls the file of a package."""
    return f"{_package_name(kernel)}_{_version(kernel)}_{kernel.arch}.deb"


def _package_name(kernel: BuiltKernel) -> str:
    """Return a name that Debian allows, whatever local version the kernel has."""
    allowed = re.sub(r"[^a-z0-9+.-]", "-", kernel.release.lower())
    return f"linux-image-{allowed}"


def _version(kernel: BuiltKernel) -> str:
    numbers = re.match(r"[0-9.]+", kernel.release)
    # The digest: two builds of one release are two versions.
    return f"{numbers[0] if numbers else '0'}+rtscope.{kernel.digest[:8]}"


def _write_control(kernel: BuiltKernel, folder: Path, *, size_kib: int) -> None:
    folder.mkdir()
    texts = _texts()
    text = texts["control"].format(
        package=_package_name(kernel),
        version=_version(kernel),
        arch=kernel.arch,
        depends="Depends: kmod\n" if kernel.modules else "",
        size_kib=size_kib,
        title=kernel.title,
        name=kernel.name,
        digest=kernel.digest,
    )
    (folder / "control").write_text(text)
    release = kernel.release
    first = {"postinst": "", "postrm": ""}
    if kernel.modules:
        first = {"postinst": f"depmod {release}\n", "postrm": texts["forget"]}
    for stage, text in first.items():
        script = folder / stage
        words = texts["script"].format(
            first=text.format(release=release), stage=stage, release=release
        )
        script.write_text(words)
        script.chmod(0o755)


@cache
def _texts() -> Mapping[str, str]:
    folder = resources.files("rtscope.boards.kernels")
    return tomllib.loads(folder.joinpath("package.toml").read_text("utf-8"))


def _files(kernel: BuiltKernel) -> dict[str, bytes]:
    """Return the content of every file, by where it goes on the board."""
    release = kernel.release
    files = {
        f"boot/vmlinuz-{release}": kernel.image.read_bytes(),
        f"boot/config-{release}": kernel.config.read_bytes(),
        f"boot/System.map-{release}": kernel.symbols.read_bytes(),
    }
    for name, content in archived(kernel.modules):
        files[name if name.startswith("usr/") else f"usr/{name}"] = content
    for name, content in archived(kernel.device_trees):
        files[f"usr/lib/linux-image-{release}/{name.removeprefix('dtbs/')}"] = content
    return files


def archived(archive: Path | None) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive that pack_folder() wrote; none if there is none."""
    if archive is None:
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is not None:
                yield member.name, content.read()


def _write_tar(files: Mapping[str, bytes], out: IO[bytes] | gzip.GzipFile) -> None:
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o644
            member.mtime = EPOCH
            tar.addfile(member, BytesIO(content))
